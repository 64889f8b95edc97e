"""Tests of speed, over TCP in one process."""

from __future__ import annotations

import itertools
import json
import math
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cwnd import _native
from cwnd._cli import run
from cwnd.perf import PerfError, PerfOptions, Server, measure
from cwnd.perf import server as server_module
from cwnd.perf.client import check_result
from cwnd.perf.protocol import (
    BLOCK,
    MAGIC,
    Role,
    VersionError,
    greet,
    read_greeting,
    read_message,
    write_message,
)
from cwnd.perf.report import format_bits, format_bytes
from cwnd.perf.streams import Load, Stream

pytestmark = pytest.mark.realtime

# Bytes in full buffers of both ends: 16,384 packets each.
BUFFER = 2 * 16_384 * 1456
# Bytes per second that no connection of this test exceeds: 100 Gbit/s.
LOOPBACK = 12.5e9

# A short test that leaves the processors to others.
SHORT = PerfOptions(0.2, bitrate=8e6)

NAMES = ("seconds", "streams", "reverse", "controller", "count", "cpu", "bytes", "omit", "bitrate")
NAMES += ("burst", "limited", "retransmits", "total", "user", "system", "window", "receiver")


def happens(condition: Callable[[], bool]) -> bool:
    """Wait for a condition, for ten seconds at most."""
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Hall:
    """A server beside the test."""

    def __init__(self, listen) -> None:
        self.listen = listen
        self.door = listen(0)
        self.lines: list[str] = []
        self.documents: list[dict] = []
        self.asked: list[str] = []
        self.server = Server(
            self.door, self.relisten, tell=self.lines.append, publish=self.documents.append
        )
        self.port = self.door.address[1]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def relisten(self, controller: str):
        self.asked.append(controller)
        return self.listen(0, controller=controller)

    def _serve(self) -> None:
        while not self._stop.is_set():
            self.server.step()

    def idle(self) -> bool:
        """Wait until no test is being done."""
        return happens(lambda: self.server._test is None and self.lines[-1:] == ["-" * 59])

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.door.close()


@pytest.fixture
def udt(tcp):
    return sys.modules["cwnd.udt"]


@pytest.fixture
def hall(udt):
    with closing(Hall(udt.listen)) as made:
        yield made


def dialer(udt, hall):
    return lambda port: udt.connect("127.0.0.1", port or hall.port)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("streams", [1, 3])
def test_both_sides_measure_what_flows(udt, hall, reverse, streams):
    lines: list[str] = []
    asked = PerfOptions(0.6, streams, reverse)
    document = measure(dialer(udt, hall), asked, every=0.2, tell=lines.append)
    sent, received = document["end"]["sum_sent"], document["end"]["sum_received"]
    # A stream that begins a little after the others ends with them.
    assert sent["seconds"] > 0.59
    # A sender counts whole blocks; data in its buffer at the end was sent and has not arrived.
    assert received["bytes"] > 0
    # A server that sends hears of the end later than the receiver, which counts no more.
    late = max(0.0, sent["seconds"] - received["seconds"]) if reverse else 0.0
    ahead = sent["bytes"] - received["bytes"]
    assert -streams * BLOCK <= ahead <= streams * (BUFFER + BLOCK) + late * LOOPBACK
    assert len(document["end"]["streams"]) == streams
    assert sum(s["receiver"]["bytes"] for s in document["end"]["streams"]) == received["bytes"]
    # Three of them, but for a machine that is too busy.
    assert 1 <= len(document["intervals"]) <= 3
    end = 0.0
    for interval in document["intervals"]:
        assert interval["sum"]["start"] == end
        end = interval["sum"]["end"]
        assert interval["sum"]["bytes"] == sum(s["bytes"] for s in interval["streams"])
        assert interval["sum"]["sender"] is not reverse
    ours = received if reverse else sent
    assert sum(i["sum"]["bytes"] for i in document["intervals"]) <= ours["bytes"]
    json.dumps(document, allow_nan=False)
    assert lines[-1] == "cwnd perf done."
    assert any("Reverse mode" in line for line in lines) is reverse
    assert any(line.startswith("[SUM]") for line in lines) is (streams > 1)
    assert hall.idle()
    assert hall.documents[0]["end"]["sum_received" if not reverse else "sum_sent"]["bytes"] > 0


def test_lines_look_like_iperf3s(udt, hall):
    lines: list[str] = []
    measure(dialer(udt, hall), replace(SHORT, seconds=0.4, streams=2), every=0.2, tell=lines.append)
    number = r" *\d+(\.\d+)? [KMGT]?"
    span = rf" +\d+\.\d\d-\d+\.\d\d +sec {number}Bytes {number}bits/sec"
    assert sum(bool(re.fullmatch(rf"\[  \d\]{span} +\d+ +{number}Bytes", x)) for x in lines) == 4
    assert sum(bool(re.fullmatch(rf"\[SUM\]{span} +\d+", line)) for line in lines) == 2
    assert sum(bool(re.fullmatch(rf"\[...\]{span} +\d+ +sender", line)) for line in lines) == 3
    assert sum(bool(re.fullmatch(rf"\[...\]{span} +receiver", line)) for line in lines) == 3
    assert "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd" in lines
    assert hall.idle()
    assert f"Server listening on {hall.port} (test #1)" in hall.lines


def test_a_sending_server_has_the_clients_controller(udt, hall):
    measure(dialer(udt, hall), replace(SHORT, streams=2, reverse=True, controller="reno"))
    assert hall.asked == ["reno"]
    with pytest.raises(PerfError, match="renoo"):
        measure(dialer(udt, hall), PerfOptions(0.2, reverse=True, controller="renoo"))
    measure(dialer(udt, hall), replace(SHORT, controller="reno"))
    assert hall.asked == ["reno"]


def test_a_controller_that_the_transport_lacks_is_refused(udt, hall, monkeypatch):
    def refuse(controller: str):
        raise _native.SpecError(f"no {controller} here")

    monkeypatch.setattr(hall.server, "_relisten", refuse)
    with pytest.raises(PerfError, match="no own:reno here"):
        measure(dialer(udt, hall), PerfOptions(0.2, reverse=True, controller="own:reno"))
    assert hall.idle()


def test_an_error_of_a_controller_in_python_ends_the_test(udt, hall, wires, monkeypatch):
    send = type(wires()[0]).send

    def fail(wire, data):
        if len(data) >= BLOCK:
            raise ZeroDivisionError("mine.py, line 3")
        send(wire, data)

    monkeypatch.setattr(type(wires()[0]), "send", fail)
    with pytest.raises(ZeroDivisionError, match=r"mine\.py, line 3"):
        measure(dialer(udt, hall), PerfOptions(5.0))
    assert hall.idle()


def test_a_client_names_no_file_that_the_server_runs(udt, hall, tmp_path):
    law, trace = tmp_path / "mine.py", tmp_path / "ran"
    law.write_text(f"open({str(trace)!r}, 'w')\n\nclass Law:\n    grow = cut = print\n")
    with pytest.raises(PerfError, match="unknown controller"):
        measure(dialer(udt, hall), PerfOptions(0.2, reverse=True, controller=f"{law}:Law"))
    assert hall.idle()
    assert hall.asked == []
    assert not trace.exists()


def test_a_busy_server_says_so(udt, hall):
    first = threading.Thread(target=lambda: measure(dialer(udt, hall), replace(SHORT, seconds=1.5)))
    first.start()
    assert happens(lambda: hall.server._test is not None)
    with pytest.raises(PerfError, match="the server is busy running a test"):
        measure(dialer(udt, hall), SHORT)
    first.join()
    assert hall.idle()


def test_a_client_that_goes_away_leaves_the_server_ready(udt, hall):
    control = udt.connect("127.0.0.1", hall.port)
    greet(control, Role.CONTROL, b"c" * 16)
    write_message(control, PerfOptions(5.0).to_json())
    read_message(control)
    data = udt.connect("127.0.0.1", hall.port)
    greet(data, Role.DATA, b"c" * 16)
    read_message(control)
    # The stream stays open: the error depends on the connection that the server finds closed first.
    control.close()
    assert hall.idle()
    assert any("the test failed: the peer ended" in line for line in hall.lines), hall.lines
    data.close()
    measure(dialer(udt, hall), SHORT)


@pytest.mark.parametrize("opened", [False, True])
def test_another_client_replaces_a_silent_one(udt, hall, monkeypatch, opened):
    monkeypatch.setattr(server_module, "_DEAD", 0.5)
    monkeypatch.setattr(server_module, "PATIENCE", 60.0)
    control = udt.connect("127.0.0.1", hall.port)
    greet(control, Role.CONTROL, b"c" * 16)
    write_message(control, PerfOptions(60.0, streams=2 - opened).to_json())
    read_message(control)
    data = udt.connect("127.0.0.1", hall.port)
    greet(data, Role.DATA, b"c" * 16)
    if opened:
        read_message(control)
    # A new stream shows that a client is alive.
    assert happens(lambda: len(hall.server._test.opened) == 1)
    measure(dialer(udt, hall), SHORT)
    assert hall.idle()
    failed = [line for line in hall.lines if "the test failed" in line]
    assert len(failed) == 1
    assert "the client does not respond, and another waits" in failed[0]
    control.close()
    data.close()


def test_a_client_that_leaves_before_its_streams_frees_the_server(udt, hall, monkeypatch):
    monkeypatch.setattr(server_module, "PATIENCE", 60.0)
    control = udt.connect("127.0.0.1", hall.port)
    greet(control, Role.CONTROL, b"c" * 16)
    write_message(control, PerfOptions(5.0).to_json())
    read_message(control)
    control.close()
    assert hall.idle()
    assert any("the test failed: the peer ended" in line for line in hall.lines), hall.lines


def test_a_client_that_sends_nothing(udt, hall, monkeypatch):
    monkeypatch.setattr(server_module, "_SILENCE", 1.5)
    control = udt.connect("127.0.0.1", hall.port)
    greet(control, Role.CONTROL, b"c" * 16)
    write_message(control, PerfOptions(60.0).to_json())
    read_message(control)
    data = udt.connect("127.0.0.1", hall.port)
    greet(data, Role.DATA, b"c" * 16)
    read_message(control)
    with pytest.raises(PerfError, match="no data for 2 s"):
        read_message(control)
    control.close()
    data.close()
    assert hall.idle()


def test_a_client_that_opens_no_streams(udt, hall, monkeypatch):
    monkeypatch.setattr(server_module, "PATIENCE", 0.2)
    control = udt.connect("127.0.0.1", hall.port)
    greet(control, Role.CONTROL, b"c" * 16)
    write_message(control, PerfOptions(5.0).to_json())
    read_message(control)
    with pytest.raises(PerfError, match="did not open its streams"):
        read_message(control)
    control.close()


def test_strangers_are_sent_away(udt, hall, monkeypatch):
    monkeypatch.setattr(server_module, "PATIENCE", 0.3)
    silent = udt.connect("127.0.0.1", hall.port)
    other = udt.connect("127.0.0.1", hall.port)
    other.send(b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n")
    astray = udt.connect("127.0.0.1", hall.port)
    greet(astray, Role.DATA, b"nobody's cookie.")
    for guest in (silent, other, astray):
        guest.socket.settimeout(5)
        with suppress(ConnectionResetError):
            assert guest.socket.recv(10) == b""
        guest.close()
    measure(dialer(udt, hall), SHORT)


def test_a_server_that_goes_away(udt):
    with closing(udt.listen(0)) as door:

        def serve():
            control = door.accept(timeout=5)
            _, cookie = read_greeting(control)
            read_message(control)
            write_message(control, {"port": None})
            data = door.accept(timeout=5)
            assert read_greeting(data) == (Role.DATA, cookie)
            write_message(control, {"go": True})
            time.sleep(0.1)
            data.close()
            control.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises((PerfError, OSError)):
            measure(lambda _: udt.connect("127.0.0.1", door.address[1]), PerfOptions(5.0))
        thread.join()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_documents_of_strangers_make_sense_or_are_refused(document):
    valid = {
        "seconds": 1.0,
        "streams": [{"count": 1, "retransmits": 0}],
        "cpu": {"total": 1.0, "user": 1.0, "system": 0.0},
        "limited": None,
    }
    for text in (document, PerfOptions().to_json() | document):
        with suppress(PerfError):
            asked = PerfOptions.from_json(text)
            assert asked == PerfOptions.from_json(asked.to_json())
    for text in (document, valid | document):
        with suppress(PerfError):
            json.dumps(check_result(text, 1), allow_nan=False)


@given(st.binary(max_size=100))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_noise_is_a_perf_error(wires, noise):
    for read in (read_greeting, read_message):
        ours, theirs = wires()
        theirs.send(noise)
        theirs.close()
        with suppress(PerfError):
            read(ours)
        ours.close()


def test_the_terminal_is_safe_from_a_peers_sentence(wires):
    ours, theirs = wires()
    write_message(theirs, {"error": "na\u00efve \x1b[2J\n"})
    with pytest.raises(PerfError) as caught:
        read_message(ours)
    assert str(caught.value) == "naïve \\x1b[2J\\n"


def test_messages_are_bounded(wires):
    ours, theirs = wires()
    theirs.send(b"\xff\xff\xff\xff")
    with pytest.raises(PerfError, match="4294967295 bytes"):
        read_message(ours)
    ours, theirs = wires()
    theirs.send(MAGIC + b"\x07\x01" + bytes(16))
    with pytest.raises(VersionError, match="version 7"):
        read_greeting(ours)


def test_a_client_of_another_version_is_told(udt, hall):
    control = udt.connect("127.0.0.1", hall.port)
    control.send(MAGIC + b"\x01\x01" + bytes(16))
    with pytest.raises(PerfError, match="the client has version 1 of perf's protocol"):
        read_message(control)
    control.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seconds", 86401.0),
        ("seconds", 0.0),
        ("seconds", float("nan")),
        ("seconds", True),
        ("streams", 129),
        ("streams", True),
        ("bytes", -1),
        ("bytes", 1 << 61),
        ("omit", 601.0),
        ("bitrate", -1.0),
        ("burst", 0),
        ("burst", 1001),
    ],
)
def test_a_test_out_of_bounds_is_refused_with_the_reason(udt, hall, name, value):
    with pytest.raises(PerfError, match=name):
        PerfOptions.from_json(PerfOptions().to_json() | {name: value})
    if not math.isnan(value):
        control = udt.connect("127.0.0.1", hall.port)
        greet(control, Role.CONTROL, b"c" * 16)
        write_message(control, PerfOptions().to_json() | {name: value})
        with pytest.raises(PerfError, match=name):
            read_message(control)
        control.close()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("streams", [1, 3])
def test_bytes_end_a_test(udt, hall, reverse, streams):
    asked = PerfOptions(streams=streams, reverse=reverse, bytes=1_000_001)
    document = measure(dialer(udt, hall), asked)
    assert document["end"]["sum_sent"]["bytes"] == 1_000_001
    assert document["start"]["test_start"]["bytes"] == 1_000_001
    assert document["start"]["test_start"]["duration"] == 0
    ours = document["end"]["sum_received" if reverse else "sum_sent"]
    assert ours["seconds"] < PerfOptions().seconds / 2
    if reverse:
        assert ours["bytes"] == 1_000_001


@pytest.mark.parametrize("reverse", [False, True])
def test_a_bitrate_limits_each_stream(udt, hall, reverse):
    asked = PerfOptions(1.0, 2, reverse, bitrate=8e6)
    document = measure(dialer(udt, hall), asked)
    for stream in document["end"]["streams"]:
        assert stream["sender"]["bits_per_second"] == pytest.approx(8e6, rel=0.1)
    # A block at most is ahead of the rate.
    assert asked.block <= 8e6 / 8 / 50
    assert document["start"]["test_start"]["target_bitrate"] == 8e6


def test_a_burst_is_sent_at_once():
    sent = []

    class Taker:
        peer = address = ("127.0.0.1", 1)

        def send(self, data):
            sent.append(time.perf_counter())

        def stats(self):
            return {}

        def abort(self):
            pass

    load = Load(PerfOptions(bitrate=800e3, burst=4))
    stream = Stream(1, Taker(), load, threading.Event())
    stream.start()
    time.sleep(0.3)
    stream.end()
    # 2,000 bytes a block: a burst of four lasts 80 ms.
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert all(gap > 0.04 for gap in gaps[3::4])
    assert sum(gap > 0.04 for gap in gaps) == len(gaps[3::4]) >= 2


def test_the_last_block_of_a_load_is_counted():
    begun, taken = threading.Event(), threading.Event()

    class Taker:
        peer = address = ("127.0.0.1", 1)

        def send(self, data):
            # The peer has the data before this end goes on.
            begun.set()
            taken.wait()

        def stats(self):
            return {}

        def abort(self):
            pass

    load = Load(PerfOptions(bytes=1000))
    load.limit(1000)
    stream = Stream(1, Taker(), load, threading.Event())
    stream.start()
    begun.wait()
    assert load.exhausted
    threading.Timer(0.05, taken.set).start()
    stream.settle()
    assert stream.sample().count == 1000
    stream.end()


@pytest.fixture
def taken(monkeypatch):
    """Lengths of the blocks that the loads gave to the streams."""
    lengths: list[int] = []
    take = Load.take

    def counted(load: Load) -> bytes:
        block = take(load)
        lengths.append(len(block))
        return block

    monkeypatch.setattr(Load, "take", counted)
    return lengths


def spans(document, *, omitted):
    return [span["sum"] for span in document["intervals"] if span["sum"]["omitted"] is omitted]


@pytest.mark.parametrize("reverse", [False, True])
def test_omitted_seconds_count_in_no_result(udt, hall, taken, reverse):
    lines: list[str] = []
    asked = PerfOptions(0.4, 1, reverse, omit=0.4, bitrate=8e6)
    start = time.perf_counter()
    document = measure(dialer(udt, hall), asked, every=0.2, tell=lines.append)
    elapsed = time.perf_counter() - start
    omitted, counted = spans(document, omitted=True), spans(document, omitted=False)
    assert omitted
    assert [span["sum"] for span in document["intervals"]] == omitted + counted
    assert counted[0]["start"] == 0.0
    total = document["end"]["sum_received" if reverse else "sum_sent"]
    assert 0.4 <= total["seconds"] <= elapsed - 0.4
    assert total["bytes"] >= sum(span["bytes"] for span in counted) > 0
    assert total["bytes"] + sum(span["bytes"] for span in omitted) <= sum(taken)
    assert sum(line.endswith("(omitted)") for line in lines) == len(omitted)
    assert document["start"]["test_start"]["omit"] == 0.4


@pytest.mark.parametrize("reverse", [False, True])
def test_bytes_are_counted_after_the_omitted_seconds(udt, hall, taken, reverse):
    asked = PerfOptions(60.0, 2, reverse, omit=0.2, bitrate=8e6, bytes=400_000)
    start = time.perf_counter()
    document = measure(dialer(udt, hall), asked, every=0.05)
    elapsed = time.perf_counter() - start
    total = document["end"]["sum_received" if reverse else "sum_sent"]
    omitted = sum(span["bytes"] for span in spans(document, omitted=True))
    assert omitted > 0
    assert 400_000 <= total["bytes"] <= sum(taken) - omitted
    assert total["seconds"] <= elapsed - 0.2


@pytest.mark.parametrize("reverse", [False, True])
def test_what_limited_the_sender_is_told(udt, hall, wires, monkeypatch, reverse):
    start = time.monotonic()

    def stats(_):
        us = 1e6 * (time.monotonic() - start)
        return {"us_limited_receiver_total": 0.8 * us, "us_limited_window_total": 0.2 * us}

    monkeypatch.setattr(type(wires()[0]), "stats", stats)
    lines: list[str] = []
    document = measure(dialer(udt, hall), PerfOptions(0.3, reverse=reverse), tell=lines.append)
    limited = document["end"]["limited"]
    assert limited["receiver"] == pytest.approx(0.8, abs=0.01)
    assert limited["window"] == pytest.approx(0.2, abs=0.01)
    assert limited["disk"] == 0
    assert "the receiver" in document["end"]["advice"]
    text = f"limited by: receiver 80 %, window 20 %: {document['end']['advice']}"
    assert text in lines
    assert hall.idle()
    assert (text in hall.lines) is reverse
    assert document["end"]["sender_congestion"] == "cubic"
    # Where the user has set the rate, there is nothing to advise.
    document = measure(dialer(udt, hall), PerfOptions(0.2, reverse=reverse, bitrate=1e6))
    assert document["end"]["advice"] is None


@pytest.mark.parametrize("reverse", [False, True])
def test_advice_names_a_controller(udt, hall, wires, monkeypatch, reverse):
    counts = itertools.count()

    def stats(_):
        # A packet is lost between any two samples, and the round-trip time is always the least.
        lost = next(counts)
        return {"ms_rtt": 40.0, "pkt_retrans_total": lost, "us_limited_window_total": 1e6 * lost}

    monkeypatch.setattr(type(wires()[0]), "stats", stats)
    monkeypatch.setattr(server_module, "_EVERY", 0.1)
    document = measure(dialer(udt, hall), PerfOptions(0.5, reverse=reverse), every=0.1)
    assert "bbr3" in document["end"]["advice"]


def test_a_server_serves_one_test(udt, capsys):
    done: list[bool] = []
    with closing(udt.listen(0)) as door:
        server = Server(door, lambda _: udt.listen(0))
        thread = threading.Thread(target=lambda: done.append(server.serve(one_off=True)))
        thread.start()
        # A stranger is no test.
        stranger = udt.connect("127.0.0.1", door.address[1])
        stranger.send(b"x")
        stranger.close()
        time.sleep(0.1)
        assert thread.is_alive()
        measure(lambda _: udt.connect("127.0.0.1", door.address[1]), SHORT)
        thread.join(5)
        assert done == [True]


def test_a_reader_that_goes_away_ends_the_server(udt):
    def tell(line):
        if line.startswith("Accepted"):
            raise BrokenPipeError

    with closing(udt.listen(0)) as door:
        server = Server(door, lambda _: udt.listen(0), tell=tell)

        def ask():
            with suppress(PerfError, OSError):
                measure(lambda _: udt.connect("127.0.0.1", door.address[1]), SHORT)

        client = threading.Thread(target=ask)
        client.start()
        with pytest.raises(BrokenPipeError):
            server.serve()
        client.join()


def test_a_server_that_is_interrupted_ends_its_test(udt):
    told: list[str] = []

    def tell(line):
        told.append(line)
        if len(told) == 8:
            raise BrokenPipeError

    with closing(udt.listen(0)) as door:
        server = Server(door, lambda _: udt.listen(0), tell=tell)
        thread = threading.Thread(target=run_quietly, args=[server])
        thread.start()
        asked = replace(SHORT, seconds=10.0)
        with pytest.raises((PerfError, OSError)):
            measure(lambda _: udt.connect("127.0.0.1", door.address[1]), asked)
        thread.join(5)
        assert not thread.is_alive()


def run_quietly(server: Server) -> None:
    with suppress(BrokenPipeError):
        server.serve()


def test_one_off_reports_a_test_that_failed(udt):
    done: list[bool] = []
    with closing(udt.listen(0)) as door:
        server = Server(door, lambda _: udt.listen(0))
        thread = threading.Thread(target=lambda: done.append(server.serve(one_off=True)))
        thread.start()
        control = udt.connect("127.0.0.1", door.address[1])
        greet(control, Role.CONTROL, b"c" * 16)
        write_message(control, PerfOptions(5.0).to_json())
        read_message(control)
        data = udt.connect("127.0.0.1", door.address[1])
        greet(data, Role.DATA, b"c" * 16)
        read_message(control)
        control.close()
        data.close()
        thread.join(5)
        assert done == [False]


def test_addresses_and_families_reach_the_transport(tcp, udt, hall, capsys):
    asked = ["perf", "-c", "localhost", "-p", f"{hall.port}", "-t", "0.2", "-4", "-B", "127.0.0.1"]
    asked += ["-b", "8M"]
    tcp.clear()
    assert run(asked) == 0
    assert tcp[0] == {"controller": "cubic", "bind": "127.0.0.1", "mtu": 1500}
    line = next(line for line in capsys.readouterr().out.splitlines() if "connected to" in line)
    assert re.fullmatch(r"\[  1\] local 127.0.0.1 port \d+ connected to 127.0.0.1 port \d+", line)


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0.00 Bytes"), (1023, "1023 Bytes"), (1024, "1.00 KBytes"), (10240, "10.0 KBytes")],
)
def test_bytes_in_powers_of_1024(count, words):
    assert format_bytes(count) == words


def test_bits_in_powers_of_1000():
    assert format_bits(1e9) == "1.00 Gbits/sec"
    assert format_bits(9.996e6) == "10.0 Mbits/sec"
    assert format_bits(123.4e3) == " 123 Kbits/sec"


def test_the_command_prints_lines_or_json(udt, hall, capsys, check_json):
    asked = ["perf", "-c", "127.0.0.1", "-p", f"{hall.port}", "-t", "0.3", "-i", "0.1"]
    asked += ["-b", "8M"]
    assert run(asked) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Connecting to host 127.0.0.1, port {hall.port}\n")
    assert said.endswith("cwnd perf done.\n")
    assert run([*asked, "-P", "2", "-R", "-C", "reno", "-J"]) == 0
    document = json.loads(capsys.readouterr().out)
    check_json(document, "## `cwnd perf --json`", data=document["end"]["limited"] or ())
    assert document["start"]["test_start"]["num_streams"] == 2
    assert document["start"]["test_start"]["reverse"] == 1
    assert document["end"]["sender_congestion"] == "reno"
    assert document["end"]["sum_received"]["bits_per_second"] > 0
    assert set(document["end"]["cpu_utilization_percent"]) == {
        f"{where}_{kind}" for where in ("host", "remote") for kind in ("total", "user", "system")
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of -s and -c"),
        (["-s", "-c", "x"], "one of -s and -c"),
        (["-s", "-t", "3"], "--time: not for a server"),
        (["-s", "-R"], "--reverse: not for a server"),
        (["-s", "-b", "1M"], "--bitrate: not for a server"),
        (["-s", "-B", "no-such-host.invalid"], "no such host"),
        (["-s", "-4", "-6"], "-4 and -6"),
        (["-s", "-B", "203.0.113.7", "-p", "0"], "203.0.113.7"),
        (["-c", "127.0.0.1", "-1"], "--one-off is a server option"),
        (["-c", "127.0.0.1", "-u"], "-u: UDT always runs over UDP"),
        (["-c", "127.0.0.1", "-n", "1M", "-t", "3"], "--time and --bytes"),
        (["-c", "127.0.0.1", "-n", "0"], "less than a byte"),
        (["-c", "127.0.0.1", "-n", "1x"], "-n"),
        (["-c", "127.0.0.1", "-b", "fast"], "-b"),
        (["-c", "127.0.0.1", "-b", "1M/0"], "number of blocks"),
        (["-c", "127.0.0.1", "-b", "1M/1001"], "number of blocks"),
        (["-c", "127.0.0.1", "-O", "-1"], "-O"),
        (["-c", "127.0.0.1", "-O", "601"], "-O"),
        (["-c", "127.0.0.1", "-p", "0"], "--port"),
        (["-c", "::1", "-4"], "no such host with IPv4: ::1"),
        (["-c", "127.0.0.1", "-6"], "no such host with IPv6: 127.0.0.1"),
        (["-c", "127.0.0.1", "-P", "0"], "-P"),
        (["-c", "127.0.0.1", "-P", "129"], "-P"),
        (["-c", "127.0.0.1", "-t", "0"], "-t"),
        (["-c", "127.0.0.1", "-i", "0.01"], "--interval"),
        (["-c", "127.0.0.1", "-i", "nan"], "--interval"),
        (["-c", "127.0.0.1", "-C", "renoo"], "renoo"),
        (["-c", "127.0.0.1", "-C", "own:cubic"], "-C own:cubic: a QUIC stack's own needs --quic"),
        (["-c", "127.0.0.1", "-R", "-C", "own:cubic"], "needs --quic"),
        (["-c", "127.0.0.1", "--stack", "quinn"], "--stack needs --quic"),
        (["-s", "--quic", "--stack", "picoquic"], "--stack"),
        (["-c", "no-such-host.invalid"], "no such host"),
    ],
)
def test_mistakes_are_one_line(tcp, capsys, arguments, words):
    assert run(["perf", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("cwnd: ")
    assert said.err.count("\n") == 1
    assert words in said.err


def test_a_build_without_the_stacks_says_so(capsys):
    status = run(["perf", "-s", "--quic", "-p", "0", "-B", "127.0.0.1", "--mtu", "1200"])
    said = capsys.readouterr().err
    assert status == 2
    if "QUIC needs" in said:
        pytest.skip("this build has the stacks")
    assert said == "cwnd: --quic: this build has no QUIC stacks: `make build` includes them\n"


def test_a_server_of_one_version_of_ip_admits_no_other(tcp, monkeypatch):
    monkeypatch.setattr(Server, "serve", lambda _, *, one_off: not one_off)
    assert run(["perf", "-s", "-6", "-p", "0"]) == 0
    assert tcp[0]["allow"] == ["::/0"]
    assert tcp[0]["controller"] == "cubic"


def test_no_server_there(tcp, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert run(["perf", "-c", "127.0.0.1", "-p", f"{port}", "-J"]) == 1
    said = capsys.readouterr()
    why = f"no connection to 127.0.0.1, port {port}: Connection refused"
    assert json.loads(said.out) == {"error": why}
    assert said.err == f"cwnd: {why}\n"


def test_help_explains_credentials(capsys):
    assert run(["perf", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "--key FILE" in said
    assert "--pair FILE" in said
    assert "writes no files" in said


def test_another_address_than_ones_own(capsys):
    assert run(["perf", "-c", "127.0.0.1", "-B", "203.0.113.7", "-p", "9"]) == 2
    assert capsys.readouterr().err == "cwnd: --bind: 203.0.113.7 is not an address of this host\n"
