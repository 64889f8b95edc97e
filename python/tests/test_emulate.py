from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from cwnd.emulation import read_links, summarise
from cwnd.errors import ArgumentError

pytestmark = pytest.mark.realtime

TELL = "import os; print(os.environ['CWND_PEER'], os.environ['CWND_BASE'])"
ECHO = """
import os, socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    end.settimeout(5)
    end.connect((os.environ[sys.argv[1]], int(sys.argv[2])))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        end.send(b"x" * 100)
        end.recv(2048)
        times.append(time.perf_counter() - start)
    print(min(times))
"""

IDLE = {"busy_s": 0.0, "receive_window_s": 0.0, "send_buffer_s": 0.0}
MTU = """
import os, socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    end.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
    end.settimeout(5)
    end.connect((os.environ["CWND_PEER"], int(sys.argv[1])))
    end.send(bytes(int(sys.argv[2]) - 28))
    print(len(end.recv(1 << 16)) + 28)
    try:
        end.send(bytes(int(sys.argv[2]) - 27))
    except OSError as refused:
        print(refused.strerror)
"""

HASH = """
import hashlib, os, socket, sys
data = os.urandom(int(sys.argv[2]))
with socket.create_connection((os.environ["CWND_BASE"], int(sys.argv[1])), timeout=30) as end:
    end.sendall(data)
    end.shutdown(socket.SHUT_WR)
    print(hashlib.sha256(data).hexdigest(), end.makefile().read())
"""


def reason() -> str | None:
    """Say why links cannot be emulated here, if they cannot."""
    if sys.platform != "linux":
        return "not Linux"
    from cwnd._native import Emulation

    try:
        Emulation(read_links({"rate": "1mbit"}), 1, None).stop(series=False)
    except OSError as problem:
        return f"no link can be emulated here: {problem}"
    return None


@pytest.fixture(scope="module")
def permitted() -> None:
    why = reason()
    if why is not None:
        pytest.skip(why)


@pytest.fixture
def echo():
    """Answer whatever comes to a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("0.0.0.0", 0))
        end.settimeout(0.1)
        stop = threading.Event()

        def answer() -> None:
            while not stop.is_set():
                try:
                    data, sender = end.recvfrom(1 << 16)
                except TimeoutError:
                    continue
                end.sendto(data, sender)

        thread = threading.Thread(target=answer)
        thread.start()
        yield end.getsockname()[1]
        stop.set()
        thread.join()


@pytest.fixture
def emulate(complete):
    """Run `cwnd emulate` as a user does."""
    return partial(complete, sys.executable, "-m", "cwnd", "emulate")


@pytest.fixture
def refuse(command):
    """Run `cwnd emulate` in this process, up to a mistake."""
    return partial(command, "emulate")


def one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("cwnd: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def is_here(address: str) -> bool:
    """Test whether a device of this network namespace has an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        try:
            end.bind((address, 0))
        except OSError:
            return False
    return True


def test_status_output_and_result_are_the_commands(permitted, tmp_path, emulate):
    result, record = tmp_path / "r.json", tmp_path / "r.csv"
    program = "import sys; print(sys.stdin.read()); sys.exit(7)"
    options = ("--rate", "10mbit", "--result", result, "--record", record)
    done = emulate(*options, "--", sys.executable, "-c", program, input="as it is")
    assert done.returncode == 7, done.stderr
    assert done.stdout == "as it is\n"
    document = json.loads(result.read_text())
    assert [link["name"] for link in document["links"]] == ["up", "down"]
    assert document["links"][0]["rate_bps"] == 10e6
    assert set(document["tool"]) >= {"realtime", "cpu_s", "lateness_s", "limit"}
    assert record.read_text() == "time_s,link,bytes,ecn,dataless,fate,arrives_s\n"


def test_a_signal_is_told_as_a_shell_tells_it(permitted, emulate):
    assert emulate("--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM


def test_both_directions_are_delayed(permitted, echo, tmp_path, emulate):
    record = tmp_path / "r.csv"
    options = ("--delay", "30ms", "--down", "delay=10ms", "--record", record)
    done = emulate(*options, "--", sys.executable, "-c", ECHO, "CWND_PEER", echo)
    assert done.returncode == 0, done.stderr
    assert 0.040 < float(done.stdout) < 0.048
    lines = [line.split(",") for line in record.read_text().splitlines()[1:]]
    for way, delay in (("up", 0.030), ("down", 0.010)):
        packets = [line for line in lines if line[1] == way]
        assert [line[2] for line in packets] == ["128"] * 10
        assert all(line[5] == "passed" for line in packets)
        taken = [float(line[6]) - float(line[0]) for line in packets]
        assert taken == pytest.approx([delay] * 10)


def test_nested_links_add_up(permitted, echo, emulate):
    inner = (sys.executable, "-m", "cwnd", "emulate", "--delay", "10ms", "--")
    done = emulate("--delay", "20ms", "--", *inner, sys.executable, "-c", ECHO, "CWND_BASE", echo)
    assert done.returncode == 0, done.stderr
    assert 0.060 < float(done.stdout) < 0.070


@pytest.fixture
def hashing():
    """Answer a stream with its hash."""

    def serve() -> None:
        end, _ = listener.accept()
        with end:
            total = hashlib.sha256()
            while piece := end.recv(1 << 16):
                total.update(piece)
            end.sendall(total.hexdigest().encode())

    with socket.create_server(("0.0.0.0", 0)) as listener:
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        yield listener
        server.join(timeout=30)


def test_streams_arrive_as_they_were_sent(permitted, hashing, emulate):
    # Super-packets at the sender, forwarded ones between, bundles and losses on the way.
    link = ("--rate", "300mbit", "--delay", "2ms", "--queue", "300p")
    inner = (sys.executable, "-m", "cwnd", "emulate", "--delay", "1ms", "--loss", "1e-3", "--")
    port = hashing.getsockname()[1]
    done = emulate(*link, "--", *inner, sys.executable, "-c", HASH, port, 10_000_000)
    assert done.returncode == 0, done.stderr
    sent, received = done.stdout.split()
    assert sent == received


def test_a_file_is_sent_through_a_link_with_losses(permitted, spawn, complete, emulate, tmp_path):
    cwnd = (sys.executable, "-m", "cwnd")
    key, file, out = tmp_path / "key", tmp_path / "file", tmp_path / "in"
    file.write_bytes(os.urandom(2_000_000))
    assert complete(*cwnd, "keygen", key).returncode == 0
    words = ("recv", "--once", "--port", "0", "--out", out, "--key", key)
    receiver = spawn(*cwnd, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = re.search(r"port (\d+)", receiver.stderr.readline())[1]
    script = 'exec "$0" -m cwnd send --cc bbr3 --json --key "$1" "$2" "$CWND_PEER:$3"'
    link = ("--rate", "20mbit", "--delay", "10ms", "--loss", "1%")
    done = emulate(*link, "--", "sh", "-c", script, sys.executable, key, file, port)
    assert done.returncode == 0, done.stderr
    receiver.communicate(timeout=30)
    assert receiver.returncode == 0
    assert (out / "file").read_bytes() == file.read_bytes()


@pytest.mark.parametrize("mtu", [576, 9000, 65535])
def test_packets_have_at_most_the_mtu(permitted, echo, tmp_path, emulate, mtu):
    record = tmp_path / "r.csv"
    words = ("--mtu", mtu, "--record", record, "--", sys.executable, "-c", MTU, echo, mtu)
    done = emulate(*words)
    assert done.stdout.splitlines() == [str(mtu), "Message too long"], done.stderr
    sizes = [int(line.split(",")[2]) for line in record.read_text().splitlines()[1:]]
    assert sizes == [mtu, mtu]


def test_a_stream_crosses_a_router_with_a_smaller_mtu(permitted, hashing, tmp_path, emulate):
    record = tmp_path / "r.csv"
    outer = ("--mtu", "1280", "--rate", "300mbit", "--record", record)
    port = hashing.getsockname()[1]
    inner = (sys.executable, "-m", "cwnd", "emulate", "--delay", "1ms", "--")
    done = emulate(*outer, "--", *inner, sys.executable, "-c", HASH, port, 4_000_000)
    sent, received = done.stdout.split()
    assert sent == received
    lines = [line.split(",") for line in record.read_text().splitlines()[1:]]
    assert max(int(line[2]) for line in lines if line[1] == "up") == 1280


def test_the_mtu_is_the_packet_of_a_queue_in_bdp(permitted, tmp_path, emulate):
    result = tmp_path / "r.json"
    link = ("--rate", "96mbit", "--delay", "30ms", "--queue", "1bdp", "--result", result)
    for mtu, packets in {1500: 480, 9000: 80}.items():
        assert emulate("--mtu", mtu, *link, "--", "true").returncode == 0
        assert json.loads(result.read_text())["links"][0]["queue_limit"] == packets


BUFFERS = """
import pathlib
for name in "tcp_rmem", "tcp_wmem":
    print(pathlib.Path("/proc/sys/net/ipv4", name).read_text().split()[2])
"""


def test_tcp_has_large_buffers(permitted, emulate):
    assert emulate("--", sys.executable, "-c", BUFFERS).stdout.split() == [str(512 << 20)] * 2


BULK = """
import os, socket, sys
with socket.create_connection((os.environ["CWND_PEER"], int(sys.argv[1])), timeout=30) as end:
    end.sendall(bytes(1_000_000))
    end.shutdown(socket.SHUT_WR)
    while end.recv(1 << 16):
        pass
"""


@pytest.mark.parametrize(
    ("option", "limits"),
    [
        (socket.SO_RCVBUF, ["up by the receiver's window", "net.ipv4.tcp_rmem outside"]),
        (socket.SO_SNDBUF, ["down by the send buffer", "net.ipv4.tcp_wmem outside"]),
        (None, []),
    ],
)
def test_buffers_that_limit_a_stream_are_named(permitted, emulate, tmp_path, option, limits):
    def serve() -> None:
        end, _ = listener.accept()
        with end:
            while end.recv(1 << 16):
                pass
            end.sendall(bytes(1_000_000))

    result = tmp_path / "r.json"
    # An end that reads late limits its stream on a busy machine: one of three is enough.
    for _ in range(1 if limits else 3):
        with socket.create_server(("0.0.0.0", 0)) as listener:
            if option is not None:
                listener.setsockopt(socket.SOL_SOCKET, option, 1 << 15)
            server = threading.Thread(target=serve)
            server.start()
            port = listener.getsockname()[1]
            link = ("--rate", "50mbit", "--delay", "20ms", "--result", result)
            done = emulate(*link, "--", sys.executable, "-c", BULK, port)
            server.join(timeout=30)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if "TCP's buffers" in line]
        if not lines:
            break
    assert len(lines) == bool(limits), done.stderr
    assert all(words in line for words in limits for line in lines)
    up, down = json.loads(result.read_text())["tcp"]
    assert 0.1 < up["busy_s"] < 30
    assert 0.1 < down["busy_s"] < 30


def test_links_stand_side_by_side(permitted, spawn, emulate):
    other = spawn(
        *[sys.executable, "-m", "cwnd", "emulate", "--", sys.executable, "-c", f"{TELL}; input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )
    first = other.stdout.readline().split()
    second = emulate("--", sys.executable, "-c", TELL).stdout.split()
    other.communicate("\n", timeout=30)
    assert len(set(first)) == len(set(second)) == 1
    assert first != second
    assert other.returncode == 0


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_signals_reach_the_command_and_nothing_is_left(permitted, spawn, how):
    mark = f"9{os.getpid()}.5"
    script = f"trap 'echo heard; exit 5' TERM; sleep {mark} & echo $CWND_PEER; wait; wait"
    tool = spawn(
        *[sys.executable, "-m", "cwnd", "emulate", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    address = tool.stdout.readline().strip()
    assert is_here(address)
    tool.send_signal(getattr(signal, f"SIG{how}"))
    output, _ = tool.communicate(timeout=30)
    assert (tool.returncode, output) == ((5, "heard\n") if how == "TERM" else (-9, ""))
    limit = time.monotonic() + 10
    while is_here(address) or any(map(_is(mark), Path("/proc").glob("[0-9]*/cmdline"))):
        assert time.monotonic() < limit
        time.sleep(0.02)


def _is(mark: str):
    def found(path: Path) -> bool:
        try:
            return path.read_bytes() == f"sleep\0{mark}\0".encode()
        except OSError:
            return False

    return found


def test_mistakes_are_one_line(permitted, refuse):
    one_line(refuse("--", "no-such-command-anywhere"), "no such command")
    one_line(refuse("--", Path(__file__)), "no such command")
    one_line(refuse("--record", "/nowhere/x.csv", "--", "true"), "--record", "/nowhere/x.csv")
    one_line(refuse("--seed", "-1", "--", "true"), "--seed")
    one_line(refuse("--mtu", "575", "--", "true"), "--mtu", "576")
    one_line(refuse("--mtu", "65536", "--", "true"), "--mtu", "65535")


def test_wrong_links_are_one_line(refuse):
    one_line(refuse("--rate", "fast", "--", "true"), "--rate", "fast")
    one_line(refuse("--rate", "15", "--", "true"), "--rate: a rate needs a unit")
    one_line(refuse("--up", "delay=5", "--", "true"), "--up: delay: a time needs a unit")
    one_line(refuse("--rate", "8mbps", "--", "true"), "--rate", "8mbit")
    one_line(refuse("--queue", "fifo", "--", "true"), "--queue", "fifo")
    one_line(refuse("--loss", "2", "--", "true"), "--loss")
    one_line(refuse("--up", "delay=-1s", "--", "true"), "--up", "delay")
    one_line(refuse("--set", "speed=1mbit", "--", "true"), "--set", "speed=1mbit")
    one_line(refuse("--down", "speed=1mbit", "--", "true"), "--down", "speed=1mbit")
    one_line(refuse("--rate", "1mbit"), "COMMAND")


def test_what_is_missing_is_one_line(permitted, complete):
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        pytest.skip("rights cannot be given up without setpriv and root")
    words = [setpriv, "--bounding-set=-net_admin,-sys_admin", sys.executable, "-m", "cwnd"]
    done = complete(*words, "emulate", "--", "true")
    one_line(done, "needs root", "CAP_NET_ADMIN", "unshare")


def test_a_user_has_links_in_a_namespace_of_their_own(permitted, complete):
    own = ["unshare", "--user", "--map-root-user", "--net"]
    if complete(*own, "true").returncode != 0:
        pytest.skip("users may have no namespaces here")
    words = [*own, sys.executable, "-m", "cwnd", "emulate", "--", sys.executable, "-c", TELL]
    done = complete(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("198.18.")


def test_queues_are_read_as_in_scenario_files():
    options = {"rate": "10mbit", "queue": "red-ecn"}
    table = '{ kind = "red", limit = "50p", ecn = true }'
    links = json.loads(read_links(options, down=f"queue={table},loss=1%"))["link"]
    assert links[0]["queue"] == {"kind": "red", "ecn": True}
    assert links[1]["queue"]["limit"] == "50p"
    assert links[1]["rate"] == "10mbit"
    with pytest.raises(ArgumentError, match="queue"):
        read_links({"rate": "10mbit", "queue": '{ kind = "red"'})


def test_every_key_of_a_link_can_be_set():
    set_keys = ["bdp_rtt=100ms", 'queue={ kind = "red", limit = "50p" }']
    links = json.loads(
        read_links({"rate": "10mbit"}, more=set_keys, down="bdp_rtt='1s',rate=1mbit")
    )
    up, down = links["link"]
    assert (up["bdp_rtt"], up["queue"]["limit"], up["rate"]) == ("100ms", "50p", "10mbit")
    assert (down["bdp_rtt"], down["queue"]["limit"], down["rate"]) == ("1s", "50p", "1mbit")
    for mistake, words in {
        "bdp_rtt=5": "set: bdp_rtt: a time needs a unit",
        "bdp_rtt=-1s": "set: bdp_rtt: ",
        "loss": "set: 'loss' is not KEY=VALUE with a KEY of ",
        "name=x": "set: 'name=x' is not KEY=VALUE with a KEY of ",
        "queue={": "set: 'queue={': ",
    }.items():
        with pytest.raises(ArgumentError, match=words):
            read_links({"rate": "10mbit"}, more=[mistake])


def test_links_that_vary(permitted, tmp_path, emulate, refuse):
    trace, result = tmp_path / "one.trace", tmp_path / "r.json"
    trace.write_text("1\n2\n2\n5\n")
    options = (
        "--up",
        f"trace={trace}",
        "--delay",
        "1ms",
        "--down",
        "trace={ rate = [1] },jitter=2ms",
    )
    done = emulate(*options, "--result", result, "--", "true")
    assert done.returncode == 0, done.stderr
    up, down = json.loads(result.read_text())["links"]
    # Four and five opportunities of 1504 bytes each 5 ms.
    assert up["rate_bps"] == pytest.approx(4 * 1504 * 8 / 0.005)
    assert down["rate_bps"] == pytest.approx(1504 * 8 / 0.001)
    for keys in (
        "model={ kind = 'leo', rate = '50mbit..250mbit' }",
        "ack_thinning=5ms",
        "policer={rate='1mbit',burst='9kb'}",
    ):
        assert emulate("--set", keys, "--", "true").returncode == 0, keys
    changes = "changes=[{ at = '1s', rate = '5mbit' }]"
    one_line(refuse("--set", changes, "--", "true"), "--set: changes: ", "finite")
    leo = "model={kind='leo',rate='9mbit'}"
    one_line(refuse("--rate", "5mbit", "--set", leo, "--", "true"), "--rate")
    one_line(
        refuse("--up", "trace=/nowhere/x", "--down", "rate=1mbit", "--", "true"),
        "--up: trace: /nowhere/x",
    )


def test_a_trace_is_of_one_direction(tmp_path):
    trace = tmp_path / "one.trace"
    trace.write_text("1\n2\n")
    given = f"trace={trace}"
    both = "--up trace=FILE and --down trace=FILE, which may be the same file"
    with pytest.raises(ArgumentError, match=f"^set: trace: a trace is of one direction: .*{both}"):
        read_links({}, more=[given])
    for named, other in (("up", "down"), ("down", "up")):
        with pytest.raises(ArgumentError, match=rf"^{named}: trace: .* --{other} trace=FILE or "):
            read_links({}, **{named: given})
        links = json.loads(read_links({}, **{named: given, other: "rate=1mbit"}))["link"]
        assert sum("trace" in link for link in links) == 1
    links = json.loads(read_links({}, up=given, down=given))["link"]
    assert [link["trace"]["rate"] for link in links] == [[1, 2], [1, 2]]


def test_links_have_one_line():
    with pytest.raises(ArgumentError, match="more than one line"):
        read_links({"rate": "10mbit\n"})


@pytest.mark.parametrize(
    ("rate", "used", "shown"),
    [
        # A constant rate, to which the measured time and the emulator's clock differ a little.
        (10e6, 0.95, "9.4 Mbit/s of 10 Mbit/s"),
        # A rate that varies: half of its largest value is 6 Mbit/s.
        (6e6, 0.94, "9.4 Mbit/s of 10 Mbit/s"),
        (float("inf"), 0.94, "9.4 Mbit/s of 10 Mbit/s"),
        (float("inf"), float("nan"), "9.4 Mbit/s of infinite"),
    ],
)
def test_the_summary_has_the_rate_that_the_link_offered(rate, used, shown):
    link = {"name": "up", "rate_bps": rate, "utilization": used, "arrivals": 1, "departures": 1}
    link |= {"drops": 0, "marks": 0, "losses": 0, "bytes_departed": 9.4e6 / 8}
    tool = {"wall_s": 1.0, "packets": 0, "limit": None}
    assert summarise({"links": [link], "tool": tool, "tcp": [IDLE, IDLE]}) == [
        f"up: 1 packets, {shown}"
    ]
