"""UDT sockets over loopback."""

from __future__ import annotations

import hashlib
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import cwnd
from cwnd import udt
from cwnd.errors import ArgumentError

HERE = "127.0.0.1"


def pair(**settings):
    with udt.listen(0, HERE, **settings) as listener:
        client = udt.connect(*listener.address, **settings)
        return client, listener.accept(timeout="5s")


@pytest.mark.parametrize("controller", ["udt", "simd(beta=1/16)"])
def test_a_stream_arrives_as_it_was_sent(controller):
    data = random.Random(1).randbytes(20_000_000)
    client, server = pair(controller=controller)

    def pour():
        with client:
            client.send(data)

    digest = hashlib.sha256()
    with ThreadPoolExecutor() as pool, server:
        sent = pool.submit(pour)
        while piece := server.recv():
            digest.update(piece)
        sent.result()
    assert digest.hexdigest() == hashlib.sha256(data).hexdigest()
    stats = client.stats()
    assert stats["byte_sent_total"] == len(data)
    assert stats["pkt_sent_total"] - stats["pkt_retrans_total"] >= len(data) / 1456


def test_an_abort_tells_the_peer_and_delivers_nothing_more():
    client, server = pair(rate_limit="1mbit")
    with server:
        client.send(bytes(500_000))
        client.abort()
        with pytest.raises(BrokenPipeError):
            client.send(b"more")
        client.abort()
        count, begun = 0, time.monotonic()
        while piece := server.recv(timeout="10s"):
            count += len(piece)
    # All of it would take 4 s.
    assert count < 500_000
    assert time.monotonic() - begun < 3


def test_both_ends_know_each_other():
    client, server = pair()
    with client, server:
        assert client.peer == server.address
        assert server.peer[1] == client.address[1]
        client.send(bytearray(b"one"))
        client.send(memoryview(b"two"))
        time.sleep(0.05)
        assert server.recv(4, timeout="5s") == b"onet"
        assert server.recv(timeout="5s") == b"wo"
        with pytest.raises(TimeoutError):
            server.recv(timeout="20ms")
        client.close()
        assert server.recv() == b""
        with pytest.raises(BrokenPipeError, match="closed by the peer"):
            server.send(b"x")


def test_messages_come_as_they_were_sent():
    client, server = pair(messages=True)
    with client, server:
        for size in (1, 1456, 100_000):
            client.send(b"m" * size)
        assert [len(server.recv(timeout="5s")) for _ in range(3)] == [1, 1456, 100_000]
        with pytest.raises(OSError, match="larger than the send buffer"):
            client.send(b"m" * 40_000_000)


def test_a_rate_limit_is_kept():
    client, server = pair(rate_limit="80mbit")
    with server:
        start = time.monotonic()
        client.send(bytes(2_000_000))
        client.close()
        # 1456 of 1500 bytes are the user's.
        assert time.monotonic() - start > 0.19
        assert sum(len(piece) for piece in iter(server.recv, b"")) == 2_000_000


def test_sending_stops_when_nobody_receives():
    client, server = pair(buffer=32)
    with pytest.raises(TimeoutError):
        client.send(bytes(1_000_000), timeout="200ms")
    server.close(timeout="5s")


def test_clear_counters_begin_anew():
    client, server = pair()
    with client, server:
        client.send(b"x" * 5000)
        assert server.recv(timeout="5s")
        assert client.stats(clear=True)["pkt_sent"] > 0
        again = client.stats()
        assert again["pkt_sent"] == 0
        assert again["pkt_sent_total"] > 0


def test_mistakes_are_one_line_each():
    with udt.listen(0, HERE) as listener:
        port = listener.address[1]
        with pytest.raises(OSError, match=rf"^{HERE}:{port}: .*in use"):
            udt.listen(port, HERE)
        with pytest.raises(ConnectionRefusedError, match=f"{HERE}:{port}: the peer refused"):
            udt.connect(HERE, port, messages=True)
        with pytest.raises(TimeoutError):
            listener.accept(timeout="20ms")
    with pytest.raises(OSError, match="listener is closed"):
        listener.accept()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind((HERE, 0))
        port = nobody.getsockname()[1]
        with pytest.raises(TimeoutError, match=f"^{HERE}:{port}: nobody answered$"):
            udt.connect(HERE, port, timeout="300ms")
    with pytest.raises(cwnd.SpecError, match="udtt"):
        udt.connect(HERE, 9000, "udtt")
    for wrong in ({"packet_size": 20}, {"buffer": 1}, {"timeout": "soon"}, {"rate_limit": "2mbps"}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            udt.connect(HERE, 9000, **wrong)
    with pytest.raises(ArgumentError, match="port"):
        udt.listen(65_536)


def test_a_broken_with_block_does_not_wait():
    client, server = pair(buffer=32)

    def work():
        with client:
            client.send(bytes(40_000))
            raise KeyError

    start = time.monotonic()
    with pytest.raises(KeyError):
        work()
    assert time.monotonic() - start < 2
    server.close(timeout="5s")


def test_with_a_key():
    key = random.Random(3).randbytes(32)
    data = random.Random(4).randbytes(3_000_000)
    with udt.listen(0, HERE, key=key) as listener:
        with udt.connect(*listener.address, key=key.hex().encode()) as client:
            server = listener.accept(timeout="5s")
            with ThreadPoolExecutor() as pool:
                sent = pool.submit(client.send, data)
                arrived = b""
                while len(arrived) < len(data):
                    arrived += server.recv(timeout="5s")
                sent.result()
            assert arrived == data
            server.close()
        with pytest.raises(ConnectionRefusedError, match="only those who have its key"):
            udt.connect(*listener.address)
        with pytest.raises(TimeoutError, match="none that has this key"):
            udt.connect(*listener.address, key=random.Random(5).randbytes(32), timeout="500ms")
    with (
        udt.listen(0, HERE) as plain,
        pytest.raises(TimeoutError, match="none that has this key"),
    ):
        udt.connect(*plain.address, key=key, timeout="500ms")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (b"short", "5 bytes, at least 32"),
        (b"a pass phrase of more than 32 bytes", "pass phrase"),
        (bytes(32), "not random"),
        (random.Random(1).randbytes(2000), "more than 1024 bytes"),
    ],
)
def test_what_is_no_key_is_refused(key, words):
    with pytest.raises(ArgumentError, match=words):
        udt.connect(HERE, 9, key=key)
    with pytest.raises(ArgumentError, match=words):
        udt.listen(0, HERE, key=key)
