"""The verbs `send` and `recv`, in one process and over TCP."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from contextlib import closing

import click
import pytest

from cwnd.cli import run
from cwnd.cli.peers import split_address
from cwnd.cli.transfer import Bars, _Hall

KEY = bytes(range(32))


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def receiver(tcp, free_port, tmp_path):
    """Run `cwnd recv --once` beside the test; gives its port, and its status when called."""

    def start(*options: str) -> tuple[int, threading.Thread, list[int]]:
        statuses: list[int] = []
        arguments = ["recv", "--once", "--port", f"{free_port}", "--out", str(tmp_path / "in")]
        thread = threading.Thread(target=lambda: statuses.append(run([*arguments, *options])))
        thread.start()
        deadline = time.monotonic() + 20
        while not tcp and time.monotonic() < deadline:
            time.sleep(0.01)
        return free_port, thread, statuses

    return start


def one_line(capsys, *words: str) -> None:
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("cwnd: ")
    assert said.err.count("\n") == 1
    for word in words:
        assert word in said.err


def test_a_folder_is_sent_and_received(receiver, capsys, tmp_path):
    source = tmp_path / "folder"
    source.mkdir()
    (source / "a").write_bytes(b"x" * 1000)
    (source / "link").symlink_to("a")
    port, thread, statuses = receiver()
    assert run(["send", str(source), f"127.0.0.1:{port}"]) == 0
    thread.join()
    assert statuses == [0]
    said = capsys.readouterr()
    assert re.search(
        r"^sent 1 file, 1 kB in .* s \(.*bit/s\); 1 name skipped$", said.out, re.MULTILINE
    )
    assert re.search(
        r"^received from 127.0.0.1, port \d+: 1 file, 1 kB in ", said.out, re.MULTILINE
    )
    assert f"cwnd: skipped: {source}/link: a symbolic link\n" in said.err
    assert (tmp_path / "in" / "folder" / "a").read_bytes() == b"x" * 1000


def test_what_is_refused_is_exit_status_1_on_both_sides(receiver, capsys, tmp_path):
    source = tmp_path / "f"
    source.write_bytes(b"x")
    (tmp_path / "in" / "f").mkdir(parents=True)
    port, thread, statuses = receiver()
    assert run(["send", str(source), f"127.0.0.1:{port}"]) == 1
    thread.join()
    assert statuses == [1]
    said = capsys.readouterr()
    assert f"cwnd: not sent: {source}: a directory has its name\n" in said.err
    assert "cwnd: refused: f: a directory has its name\n" in said.err


def test_options_reach_the_transport(receiver, tcp, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    key = tmp_path / "key"
    key.write_bytes(KEY)
    port, thread, _ = receiver("--key", str(key))
    options = ["--cc", "reno", "--rate-limit", "50mbit", "--key", str(key)]
    assert run(["send", *options, str(tmp_path / "f"), f"127.0.0.1:{port}"]) == 0
    thread.join()
    assert tcp == [
        {"key": KEY},
        {"controller": "reno", "rate_limit": 50e6, "key": KEY},
    ]


def test_a_key_that_others_can_read_is_told(receiver, capsys, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    port, thread, _ = receiver("--key", str(key))
    key.chmod(0o640)
    assert run(["send", str(tmp_path / "f"), f"127.0.0.1:{port}", "--key", str(key)]) == 0
    thread.join()
    said = capsys.readouterr().err
    assert said.count("others than its owner can use the key file (mode 640)") == 1


def test_a_port_in_use(tcp, capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert run(["recv", "--port", f"{port}", "--out", str(tmp_path)]) == 2
    one_line(capsys, f"port {port} is in use")


def test_nobody_there(tcp, capsys, free_port, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    assert run(["send", str(tmp_path / "f"), f"127.0.0.1:{free_port}"]) == 1
    one_line(capsys, "no connection to 127.0.0.1: Connection refused")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "127.0.0.1:9000"], "nowhere: No such file"),
        (["/dev/null", "127.0.0.1:9000"], "/dev/null is neither"),
        (["/", "127.0.0.1:9000"], "root directory"),
        (["-", "127.0.0.1:x"], "is not HOST:PORT"),
        (["-", "127.0.0.1:0"], "is not HOST:PORT"),
        (["-", ":9000"], "is not HOST:PORT"),
        (["-", "no-such-host.invalid:9000"], "no such host: no-such-host.invalid"),
        (["-", "127.0.0.1:9000", "--cc", "renoo"], "renoo"),
        (["-", "127.0.0.1:9000", "--rate-limit", "fast"], "--rate-limit"),
        (["-", "127.0.0.1:9000", "--key", "nowhere"], "--key: cannot read nowhere"),
        (["-", "127.0.0.1:9000", "--key", "/"], "--key: cannot read /: Is a directory"),
        (["-", "127.0.0.1:9000", "--key", "/dev/null"], "--key: /dev/null: the key has 0 bytes"),
        (["-", "127.0.0.1:9000", "--key", "/dev/zero"], "more than 1024 bytes"),
        (["-", "127.0.0.1:9000", "--key", "/proc/version"], "pass phrase can be guessed"),
    ],
)
def test_mistakes_are_one_line(tcp, capsys, arguments, words):
    assert run(["send", *arguments]) == 2
    one_line(capsys, words)


def test_a_peer_that_goes_away(tcp, capsys, tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 10_000_000)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def leave():
            end, _ = server.accept()
            end.sendall(b"cwndxfr\x01")
            end.recv(10)
            end.close()

        thread = threading.Thread(target=leave)
        thread.start()
        assert run(["send", str(tmp_path / "f"), f"127.0.0.1:{port}"]) == 1
        thread.join()
    one_line(capsys, f"127.0.0.1, port {port}: ", "goes on where it stopped")


def test_a_receiver_serves_several_and_survives_a_stranger(tcp, capsys, tmp_path, free_port):
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "in").mkdir()
    with closing(sys.modules["cwnd.udt"].listen(free_port)) as listener, Bars() as bars:
        hall = _Hall(listener, tmp_path / "in", bars)
        stop = threading.Event()

        def accept():
            while not stop.is_set():
                try:
                    return listener.accept(timeout=0.05)
                except TimeoutError:
                    continue
            raise KeyboardInterrupt

        hall._accept = accept

        def serve():
            with pytest.raises(KeyboardInterrupt):
                hall.serve()

        thread = threading.Thread(target=serve)
        thread.start()
        with socket.create_connection(("127.0.0.1", free_port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            stranger.recv(100)
        for _ in range(3):
            assert run(["send", str(tmp_path / "f"), f"127.0.0.1:{free_port}"]) == 0
        stop.set()
        thread.join()
    said = capsys.readouterr()
    assert "the other side is neither cwnd send nor cwnd recv" in said.err
    assert said.out.count("sent 1 file") == 3


@pytest.mark.parametrize("verb", ["send", "recv"])
def test_help_says_that_udt_has_no_encryption(verb, capsys):
    assert run([verb, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Plain UDT has no encryption" in said
    assert "--key FILE adds it between two cwnd peers" in said


@pytest.mark.parametrize("text", ["", ":", "host:", "host:99999", "host:-1", "[]:1", "host:²"])
def test_what_is_no_address(text):
    with pytest.raises(click.UsageError):
        split_address(text, 9000)
