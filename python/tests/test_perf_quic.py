"""Tests of speed over QUIC: `make test-quic` runs them, in a build with the stacks."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from cwnd import SpecError
from cwnd._cli import run
from cwnd.errors import ArgumentError
from cwnd.perf import PerfError, PerfOptions, Server, measure, quic

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def _stacks():
    try:
        quic.listen(0, HOST).close()
    except ArgumentError as problem:
        pytest.skip(str(problem))


class Fails:
    """Fails at its first acknowledgement."""

    def grow(self, w, acked, cx):
        raise ZeroDivisionError

    def cut(self, w, why, cx):
        return w / 2


@contextmanager
def serving(stack: str = "noq", **secret) -> Iterator[tuple[int, list[str]]]:
    """Serve tests; the port, and the lines of the reports."""
    lines: list[str] = []
    stop = threading.Event()
    with closing(quic.listen(0, HOST, stack=stack, **secret)) as listener:

        def relisten(controller: str):
            return quic.listen(0, HOST, controller, stack=stack, **secret)

        server = Server(listener, relisten, tell=lines.append, protocol="QUIC")

        def serve() -> None:
            while not stop.is_set():
                server.step()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.address[1], lines
        finally:
            stop.set()
            thread.join()


def dialer(port: int, stack: str = "noq", **options):
    return lambda other: quic.connect(HOST, other or port, stack=stack, **options)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("stacks", [("noq", "quinn"), ("quinn", "noq")])
def test_bytes_end_a_test_of_several_connections(stacks, reverse):
    own = PerfOptions(streams=3, reverse=reverse, bytes=3_000_001, controller="own:cubic")
    ours = {} if reverse else {"controller": own.controller}
    with serving(stacks[1]) as (port, _):
        document = measure(dialer(port, stacks[0], **ours), own, protocol="QUIC")
    for side in ("sum_sent", "sum_received"):
        assert document["end"][side]["bytes"] == 3_000_001
    assert document["start"]["test_start"]["protocol"] == "QUIC"
    assert len(document["start"]["connected"]) == 3


@pytest.mark.parametrize("reverse", [False, True])
def test_intervals_have_the_window_and_the_round_trip_time(reverse):
    lines: list[str] = []
    test = PerfOptions(0.5, reverse=reverse, bitrate=20e6)
    with serving() as (port, _):
        document = measure(dialer(port), test, every=0.1, tell=lines.append)
    assert document["end"]["sum_received"]["bits_per_second"] == pytest.approx(20e6, rel=0.2)
    assert document["end"]["limited"] is None
    assert lines[-1] == "cwnd perf done."
    if not reverse:
        stream = document["end"]["streams"][0]["sender"]
        assert stream["max_snd_cwnd"] >= 2 * 1200
        assert stream["min_rtt"] > 0


@pytest.mark.parametrize(
    ("secret", "words"),
    [({"key": bytes(range(1, 33))}, "other credentials"), ({}, "the other has none")],
)
def test_a_client_without_the_key_reaches_nothing(secret, words):
    with serving(key=bytes(range(32))) as (port, lines):
        with pytest.raises(PermissionError, match=words):
            measure(dialer(port, **secret), PerfOptions(0.2))
        assert lines == []
        measure(dialer(port, "quinn", key=bytes(range(32))), PerfOptions(0.2))
        assert lines


def test_the_command_refuses_another_key_with_status_2(tmp_path, capsys):
    keys = [tmp_path / name for name in ("one", "other")]
    for path in keys:
        assert run(["keygen", str(path)]) == 0
    with serving(key=keys[0].read_bytes()) as (port, _):
        asked = ["perf", "-c", HOST, "-p", f"{port}", "--quic", "-t", "0.2"]
        capsys.readouterr()
        assert run([*asked, "--key", f"{keys[1]}"]) == 2
        why = f"no connection to {HOST}, port {port}: the peer has other credentials"
        assert capsys.readouterr().err == f"cwnd: {why}\n"
        assert run([*asked, "--key", f"{keys[0]}", "-J"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["start"]["test_start"]["protocol"] == "QUIC"


def test_laws_end_no_connection(tmp_path):
    law = tmp_path / "zero.law"
    law.write_text(
        'law zero "divides"\non grow:\n    return w + 1 / (w - w)\n'
        "on cut:\n    return w / (w - w)\n"
    )
    with serving() as (port, _):
        document = measure(dialer(port, controller=law), PerfOptions(0.3, controller=str(law)))
        assert document["end"]["sum_received"]["bytes"] > 0
        with pytest.raises(ZeroDivisionError):
            measure(dialer(port, controller=Fails), PerfOptions(20.0))


def test_a_controller_that_the_servers_stack_lacks_is_refused():
    with serving("noq") as (port, _):
        with pytest.raises(PerfError, match="the stack has no controller bbr"):
            measure(dialer(port), PerfOptions(0.2, reverse=True, controller="own:bbr"))
        with pytest.raises(SpecError, match="the stack has no controller bbr3"):
            measure(dialer(port, "quinn", controller="own:bbr3"), PerfOptions(0.2))


@pytest.mark.parametrize("mtu", [1248, 9000])
def test_packets_of_other_sizes(mtu):
    with serving(mtu=mtu) as (port, _):
        document = measure(dialer(port, mtu=mtu), PerfOptions(bytes=200_000))
    assert document["end"]["sum_received"]["bytes"] == 200_000


def test_a_server_that_is_interrupted_tells_its_client(spawn):
    words = ("perf", "-s", "--quic", "-p", "0", "-B", HOST)
    process = spawn(sys.executable, "-m", "cwnd", *words, stdout=-1, stderr=-1, text=True)
    line = next(line for line in process.stdout if line.startswith("Server listening"))
    port = int(line.split()[3])
    timer = threading.Timer(0.5, process.send_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises((PerfError, OSError), match=r"(ended|closed)"):
        measure(dialer(port), PerfOptions(20.0, bitrate=10e6))
    assert process.wait(10) == 130
    assert process.stderr.read() == "cwnd: interrupted\n"
