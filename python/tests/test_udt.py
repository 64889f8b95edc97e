"""UDT sockets over loopback."""

from __future__ import annotations

import hashlib
import random
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import cwnd
from cwnd import udt
from cwnd.errors import ArgumentError

pytestmark = pytest.mark.realtime

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
        with pytest.raises(TimeoutError, match=f"^{HERE}:{port}: no answer$"):
            udt.connect(HERE, port, timeout="300ms")
    with pytest.raises(cwnd.SpecError, match="udtt"):
        udt.connect(HERE, 9000, "udtt")
    for wrong in (
        {"mtu": 20},
        {"buffer": 1},
        {"timeout": "soon"},
        {"rate_limit": "2mbps"},
        {"rate_limit": 2e6},
    ):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            udt.connect(HERE, 9000, **wrong)
    for opening in (udt.connect, udt.client_options):
        with pytest.raises(ArgumentError, match="packet_size: the name is now `mtu`"):
            opening(HERE, 9000, packet_size=1500)
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
        with pytest.raises(ConnectionRefusedError, match="requires credentials"):
            udt.connect(*listener.address)
        with pytest.raises(TimeoutError, match="it has another key"):
            udt.connect(*listener.address, key=random.Random(5).randbytes(32), timeout="500ms")
    with (
        udt.listen(0, HERE) as plain,
        pytest.raises(TimeoutError, match="it has another key"),
    ):
        udt.connect(*plain.address, key=key, timeout="500ms")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (b"short", "5 bytes; it needs at least 32"),
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


def test_the_credentials_of_a_connection_are_of_one_kind():
    key, code = random.Random(3).randbytes(32), udt.generate_code()
    public = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
    private = b"cwnd-private-key-v1 dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo="
    for wrong, words in (
        ({"key": key, "code": code}, "code: a code excludes a key"),
        ({"pair": private, "code": code}, "code: a code excludes a key"),
        ({"pair": private}, "peers: a pair needs the public keys"),
        ({"peers": [public]}, "peers: the peers' public keys need this endpoint's pair"),
        ({"pair": private, "peers": public}, "peers: a list is needed"),
        ({"pair": private, "peers": ["x"]}, "peers: .*'?x.* is not a public key"),
        ({"pair": public.encode(), "peers": [public]}, "pair: .*cwnd keygen --pair"),
        ({"code": "4821-kavo-mirx"}, "code: .* is not a code.*4821-kavo-miro"),
        ({"key": b"short", "pair": private, "peers": [public]}, "key: .*5 bytes"),
    ):
        for open_end in (
            lambda kw: udt.connect(HERE, 9, **kw),
            lambda kw: udt.listen(0, HERE, **kw),
        ):
            with pytest.raises(ArgumentError, match=words) as error:
                open_end(wrong)
            assert "\n" not in str(error.value)
    with pytest.raises(ArgumentError, match="peers: a client needs exactly one public key"):
        udt.connect(HERE, 9, pair=private, peers=[public, public])
    for wrong, words in (
        ({"allow": ["10.0.0.0/33"]}, "allow: .* is no network, such as 10.0.0.0/8"),
        ({"per_address": 0}, "per_address: 0 is not at least 1"),
    ):
        with pytest.raises(ArgumentError, match=words):
            udt.listen(0, HERE, **wrong)


def test_key_pairs_tell_who_the_peer_is(tmp_path):
    names = ["server", "alice", "mallory"]
    public = {name: udt.generate_pair(tmp_path / name) for name in names}
    private = {name: udt.read_secret(tmp_path / name) for name in names}
    listed = tmp_path / "peers"
    listed.write_text(f"# ours\n{public['alice']} alice\n\n{public['server']}\n")
    peers = udt.read_peers(listed)
    assert peers == {public["alice"]: "alice", public["server"]: ""}
    with udt.listen(0, HERE, pair=private["server"], peers=peers) as listener:
        ours = {"pair": private["alice"], "peers": [public["server"]]}
        with (
            udt.connect(*listener.address, **ours) as client,
            listener.accept(timeout="5s") as server,
        ):
            assert peers[server.identity] == "alice"
            assert client.identity == public["server"]
        stranger = {"pair": private["mallory"], "peers": [public["server"]]}
        with pytest.raises(TimeoutError, match="does not accept this end's public key"):
            udt.connect(*listener.address, timeout="500ms", **stranger)
    client, server = pair()
    with client, server:
        assert (client.identity, server.identity) == (None, None)
    listed.write_text(f"{public['alice']}\nbob\n")
    with pytest.raises(ArgumentError, match=r"peers: .*peers: line 2: \"bob\" is not a public key"):
        udt.read_peers(listed)


def test_a_code_is_void_after_five_wrong_guesses():
    code = udt.generate_code()
    with udt.listen(0, HERE, code=code) as listener:
        with udt.connect(*listener.address, code=code.upper()) as client:
            client.send(b"it is me")
            assert listener.accept(timeout="5s").recv(timeout="5s") == b"it is me"
        wrong = code[:-1] + ("a" if code[-1] != "a" else "e")
        for _ in range(5):
            with pytest.raises(TimeoutError):
                listener.accept(timeout="10ms")
            with pytest.raises(TimeoutError, match="the code is wrong or has expired"):
                udt.connect(*listener.address, code=wrong, timeout="400ms")
        with pytest.raises(PermissionError, match="the code was revoked after 5 wrong guesses"):
            listener.accept(timeout="5s")
        with pytest.raises(TimeoutError):
            udt.connect(*listener.address, code=code, timeout="400ms")


def test_a_spent_code_lets_nobody_in():
    code = udt.generate_code()
    with udt.listen(0, HERE, code=code) as listener:
        with udt.connect(*listener.address, code=code):
            listener.spend_code()
        with pytest.raises(TimeoutError, match="no answer"):
            udt.connect(*listener.address, code=code, timeout="400ms")


RECEIVER = """
import sys
from cwnd import udt
listener = udt.listen(int(sys.argv[1]), "127.0.0.1", key=bytes(range(32)))
print(listener.address[1], flush=True)
while True:
    connection = listener.accept()
    while connection.recv():
        pass
"""


def test_a_receiver_that_was_restarted_resets_its_old_connections(spawn):
    def start(port: int) -> tuple[subprocess.Popen[str], int]:
        command = [sys.executable, "-c", RECEIVER, port]
        process = spawn(*command, stdout=subprocess.PIPE, text=True)
        return process, int(process.stdout.readline())

    receiver, port = start(0)
    client = udt.connect(HERE, port, key=bytes(range(32)))
    client.send(b"something")
    receiver.kill()
    receiver.wait()
    start(port)
    begun = time.monotonic()
    with pytest.raises(ConnectionResetError, match="does not know this connection"):
        client.recv(timeout="10s")
    assert time.monotonic() - begun < 3


def test_a_listener_answers_allowed_addresses_only():
    with (
        udt.listen(0, HERE, allow=["192.0.2.0/24", "fd00::/8"]) as listener,
        pytest.raises(TimeoutError, match="no answer"),
    ):
        udt.connect(*listener.address, timeout="400ms")
    with udt.listen(0, HERE, allow=[HERE], per_address=1) as listener:
        with udt.connect(*listener.address), pytest.raises(TimeoutError):
            udt.connect(*listener.address, timeout="400ms")
        udt.connect(*listener.address).close()


def test_secrets_are_for_their_owner(tmp_path):
    key, pair_file = tmp_path / "key", tmp_path / "pair"
    udt.generate_key(key)
    public = udt.generate_pair(pair_file)
    assert [path.stat().st_mode & 0o777 for path in (key, pair_file)] == [0o600, 0o600]
    assert (tmp_path / "pair.pub").read_text().split()[0] == public
    before = key.read_bytes()
    for generate, path in ((udt.generate_key, key), (udt.generate_pair, pair_file)):
        with pytest.raises(FileExistsError, match=str(path)):
            generate(path)
    assert key.read_bytes() == before
    key.chmod(0o644)
    with pytest.raises(PermissionError, match=f"mode 644.*chmod 600 {key}"):
        udt.read_secret(key)
