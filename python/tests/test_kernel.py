"""Controllers under the kernel's own TCP: what the commands say, and do.

What needs root, BTF and namespaces runs in namespaces of its own, with a BPF file system of its
own: nothing of it outlives the test, and the machine's default controller is not touched.
"""

import asyncio
import fcntl
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cwnd import _native, kernel
from cwnd._cli import run
from cwnd._runs.kernel_sockets import kernel_sockets, sockets_of
from cwnd.errors import KernelError

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is not Linux"),
]

PREPARE = (
    "mount -t bpf bpf /sys/fs/bpf && ip link set lo up && "
    "echo reno > /proc/sys/net/ipv4/tcp_congestion_control"
)
TRAFFIC = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listener.getsockname())
receiver, _ = listener.accept()
def drain():
    while receiver.recv(1 << 20):
        pass
threading.Thread(target=drain, daemon=True).start()
print("ready", flush=True)
import time
for _ in range({chunks}):
    sender.sendall(bytes(1 << 16))
    time.sleep(0.001)
"""


@pytest.fixture
def inside(isolated):
    """Run a script in namespaces of its own; `cwnd` in it is the command.

    Names of controllers are not in a namespace: one test at a time loads some.
    """

    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no BTF")
    command = f'cwnd() {{ "{sys.executable}" -m cwnd "$@"; }}; {PREPARE} || exit 99; '

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return isolated(command + script)

    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield run


def test_controllers_without_kernel_implementation_are_refused_in_one_line(capsys):
    assert run(["kernel", "load", "copa"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "these have one: aimd, reno" in told
    assert run(["kernel", "load", "simd", "--name", "a.b"]) == 2
    assert "1 to 15 letters" in capsys.readouterr().err
    assert run(["kernel", "load", "simd(beta=2)"]) == 2
    assert "beta" in capsys.readouterr().err


def test_without_rights_it_says_what_it_needs(complete):
    if os.geteuid() != 0:
        pytest.skip("only root can take its own rights away")
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "cwnd"]
    if shutil.which("setpriv") is None:
        pytest.skip("it needs the program setpriv")
    done = complete(*words, "kernel", "load", "simd")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("cwnd: ")
    assert "root" in done.stderr or "BTF" in done.stderr


def test_processes_that_are_not_there():
    with pytest.raises(KernelError, match="there is no process"):
        sockets_of(2**22 + 1)
    with pytest.raises(KernelError, match="is not loaded"):
        kernel.find("never_loaded")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_connections_are_those_of_the_system(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((address, port)) as sender:
            controller = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            own = os.fstat(sender.fileno()).st_ino
            [found] = [it for it in kernel_sockets() if it.inode == own]
            assert found.controller.encode() == controller.rstrip(b"\0")
            assert found.peer == (address, port)
            assert found.local == sender.getsockname()[:2]
            assert found.window >= 1
            assert 0 < found.rtt_s < 10
            assert own in sockets_of(os.getpid())


def test_connections_are_listed_where_an_event_loop_runs():
    async def in_a_notebook():
        return kernel_sockets()

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as sender,
    ):
        local = sender.getsockname()
        found = asyncio.run(in_a_notebook())
    assert local in [it.local for it in found]


def test_a_closed_connection_has_no_controller():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as sender:
            local = sender.getsockname()
            receiver, _ = listener.accept()
        with receiver:
            assert receiver.recv(1) == b""
    # It waits for stray packets (TIME_WAIT), without a socket.
    [closed] = [it for it in kernel_sockets() if it.local == local]
    assert (closed.controller, closed.inode, closed.window) == ("", 0, 0)
    assert math.isnan(closed.rtt_s)
    assert closed.to_json()["rtt_s"] is None


def test_instances_live_side_by_side_and_the_default_comes_back(inside, tmp_path, check_json):
    done = inside(
        f"""
        default=/proc/sys/net/ipv4/tcp_congestion_control
        cwnd kernel load 'aimd(0.31, 1/8)' --default
        cwnd kernel load simd --name mine --default; cat $default
        cwnd kernel load simd --name mine; echo status $?
        cwnd kernel list --json
        cwnd kernel check --json > {tmp_path}/check.json
        cwnd kernel unload 'aimd(0.31, 1/8)'; cat $default
        cwnd kernel unload mine; cat $default
        cwnd kernel unload mine; echo status $?
        ls /sys/fs/bpf/cwnd 2>&1
        """
    )
    lines = done.stdout.splitlines()
    assert lines[:4] == [
        "cwnd_aimd: aimd(alpha=0.31, beta=1/8), the default",
        "mine: simd, the default",
        "mine",
        "status 2",
    ]
    loaded = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
    findings = json.loads((tmp_path / "check.json").read_text())
    check_json(findings, "`cwnd kernel check --json`")
    check_json(loaded, "`cwnd kernel list --json`")
    check_json(loaded["controllers"][0], "`cwnd kernel load SPEC --json`, `unload`")
    names = [(it["name"], it["default"]) for it in loaded["controllers"]]
    assert names == [("cwnd_aimd", False), ("mine", True)]
    # Who would have returned to the one that is gone returns to the one before it.
    assert lines[-6:-1] == ["cwnd_aimd: unloaded", "mine", "mine: unloaded", "reno", "status 2"]
    assert "mine is already loaded, as simd" in done.stderr
    assert "`mine` is not loaded. No cwnd controllers are loaded." in done.stderr


def test_unload_takes_what_load_took(inside):
    done = inside(
        """
        cwnd kernel load 'aimd(0.31, 1/8)' > /dev/null
        cwnd kernel unload aimd
        cwnd kernel load 'aimd(alpha=0.31)' > /dev/null
        cwnd kernel load aimd --name mild > /dev/null
        # The specification comes before its name alone.
        cwnd kernel unload aimd
        cwnd kernel load 'aimd(0.31, 1/8)' --name mild > /dev/null
        cwnd kernel unload aimd
        cwnd kernel unload 'aimd(0.31)'
        cwnd kernel unload 'aimd(alpha=0.31, beta=0.125)'
        cwnd kernel load simd --name a > /dev/null
        cwnd kernel load simd --name b > /dev/null
        cwnd kernel unload simd
        cwnd kernel unload a
        cwnd kernel unload simd
        """
    )
    unloaded = ["cwnd_aimd", "mild", "cwnd_aimd", "mild", "a", "b"]
    assert done.stdout.splitlines() == [f"{name}: unloaded" for name in unloaded]
    assert done.stderr.splitlines() == [
        "cwnd: `aimd` is loaded several times: name one of cwnd_aimd, mild",
        "cwnd: `simd` is loaded several times: name one of a, b",
    ]


def test_a_controller_with_a_number_for_a_name_is_traced(inside):
    done = inside(
        "cwnd kernel load simd --name 7 && cwnd kernel trace 7 --time 0.1s && cwnd kernel unload 7"
    )
    assert done.returncode == 0, done.stderr


NAMED = """
default=/proc/sys/net/ipv4/tcp_congestion_control
mount -t tmpfs none /run && ip netns add named || exit 99
named() { ip netns exec named "$@"; }
export default
export -f cwnd named
"""


def test_a_controller_loaded_in_a_named_namespace_stays(inside):
    done = inside(
        NAMED
        + """
        # Process 1 here is this shell, whose mount namespace has the BPF file system.
        unshare -p -f --mount-proc bash -c '
        named bash -c "echo reno > $default; cwnd kernel load simd --default; cat $default"
        named bash -c "cwnd kernel list; cwnd kernel check" | grep -e ^cwnd_simd -e system
        cwnd kernel list
        cwnd kernel unload simd
        named cat $default
        named bash -c "cwnd kernel load simd; cwnd kernel unload simd"
        ls -d /sys/fs/bpf/cwnd'
        """
    )
    assert done.stdout.splitlines() == [
        "cwnd_simd: simd, the default",
        "cwnd_simd",
        "cwnd_simd: simd, the default",
        "yes  BPF file system: mounted on /proc/1/root/sys/fs/bpf",
        # The namespace has its previous default again.
        "cwnd_simd: simd",
        "cwnd_simd: unloaded",
        "reno",
        "cwnd_simd: simd",
        "cwnd_simd: unloaded",
    ], done.stderr


def test_a_controller_that_would_not_stay_is_refused(inside):
    done = inside(
        NAMED
        + """
        # Also the one of the machine, below that of the test.
        while umount /sys/fs/bpf; do :; done 2> /dev/null
        unshare -p -f --mount-proc bash -c '
        named bash -c "echo reno > $default; cwnd kernel load simd --default; echo status \\$?"
        named bash -c "cat $default; cwnd kernel check" | grep -e ^reno -e "^no "
        cat /proc/sys/net/ipv4/tcp_available_congestion_control'
        """
    )
    status, default, finding, available = done.stdout.splitlines()
    assert (status, default) == ("status 2", "reno")
    reason = "no BPF file system is mounted on /sys/fs/bpf"
    assert finding.startswith(f"no   BPF file system: {reason}")
    assert "simd" not in available
    assert done.stderr.startswith(f"cwnd: {reason}")
    assert done.stderr.count("\n") == 1


def test_no_namespace_keeps_a_default_that_is_unloaded(inside):
    done = inside(
        NAMED
        + """
        cwnd kernel load simd --default
        named bash -c "echo cwnd_simd > $default"
        coproc unshare -n bash -c "echo cwnd_simd > $default; cat $default; read; cat $default"
        exec 5<&${COPROC[0]}
        read -u 5 before
        cwnd kernel unload simd
        echo >&${COPROC[1]}
        read -u 5 after
        echo $before, $after, $(named cat $default), $(cat $default)
        # Without a previous default.
        cwnd kernel load simd
        echo cwnd_simd > $default
        cwnd kernel unload simd
        cat $default
        # With a previous default that was removed.
        cwnd kernel load simd --default
        rm -r /sys/fs/bpf/cwnd
        cwnd kernel load simd --default
        cwnd kernel unload simd
        cat $default
        """
    )
    plain, unloaded = "cwnd_simd: simd", "cwnd_simd: unloaded"
    default = f"{plain}, the default"
    assert done.stdout.splitlines() == [
        *[default, unloaded, "cwnd_simd, reno, reno, reno"],
        *[plain, unloaded, "reno"],
        *[default, default, unloaded, "reno"],
    ], done.stderr


def test_without_btf_it_says_so(inside):
    done = inside("mount -t tmpfs none /sys/kernel/btf; cwnd kernel load simd; echo $?")
    assert done.stdout == "2\n"
    assert done.stderr.count("\n") == 1
    assert "/sys/kernel/btf/vmlinux is missing" in done.stderr


def test_status_and_trace_tell_of_a_connection(tmp_path, inside, check_json, result):
    traffic = TRAFFIC.format(chunks=60_000)
    (tmp_path / "traffic.py").write_text(traffic)
    done = inside(
        f"""
        cwnd kernel load simd --default >&2
        coproc {sys.executable} {tmp_path}/traffic.py
        read -u ${{COPROC[0]}} word
        cwnd kernel status --json > {tmp_path}/status.json
        cwnd kernel trace $COPROC_PID --time 0.5s --json > {tmp_path}/trace.json
        cwnd kernel trace simd --time 0.3s --record {tmp_path}/records
        kill $COPROC_PID
        wait
        cwnd kernel unload simd >&2
        """
    )
    assert done.returncode == 0, done.stderr
    status = json.loads((tmp_path / "status.json").read_text())
    check_json(status, "`cwnd kernel status --json`")
    [loaded] = status["controllers"]
    # Both ends of it are here.
    assert len(loaded["connections"]) == 2
    # On the loopback interface the packets become larger as the receiver's window grows, and the
    # window in packets becomes smaller.
    assert all(it["window"] >= 2 for it in loaded["connections"])
    document = json.loads((tmp_path / "trace.json").read_text())
    of_run = result.to_json()["flows"][0]
    names = {*of_run, *of_run["limited"]}
    check_json(document, "`cwnd kernel trace WHAT --json`", data=names)
    assert document["missed"] == 0
    sender = max(document["flows"], key=lambda flow: flow["packets_sent"])
    assert sender["packets_sent"] > 100
    assert len(sender["time"]) == len(sender["window"]) > 10
    assert sender["agreement"] is None
    records = sorted((tmp_path / "records").iterdir())
    assert " acked " in records[0].read_text().splitlines()[0]
    assert "it began before the trace" in done.stdout


def test_connections_without_samples_have_no_round_trip_time(tmp_path, inside):
    (tmp_path / "idle.py").write_text(
        """
import socket, subprocess, sys, time
with socket.create_server(("127.0.0.1", 0)) as listener:
    for options in [], ["--json"]:
        tool = ["-m", "cwnd", "kernel", "trace", "simd", "--time", "1s", *options]
        trace = subprocess.Popen([sys.executable, *tool], stderr=subprocess.STDOUT)
        ends = []
        while trace.poll() is None:
            ends.append(socket.create_connection(listener.getsockname()))
            ends.append(listener.accept()[0])
            time.sleep(0.05)
"""
    )
    done = inside(
        f"""
        cwnd kernel load simd --default >&2
        {sys.executable} {tmp_path}/idle.py || exit
        cwnd kernel unload simd >&2
        """
    )
    text, start, document = done.stdout.partition("{")
    assert "mean rtt – ms" in text
    assert "nan" not in text
    flows = json.loads(start + document)["flows"]
    assert flows
    assert all(flow["mean_rtt_s"] is None for flow in flows)


def test_a_trace_is_heard_in_any_thread(tmp_path, inside):
    (tmp_path / "traffic.py").write_text(TRAFFIC.format(chunks=500))
    (tmp_path / "listen.py").write_text(
        """
import subprocess, sys
from concurrent.futures import ThreadPoolExecutor
from cwnd import kernel
with ThreadPoolExecutor(3) as pool:
    trace = pool.submit(kernel.trace, "reno").result()
    traffic = subprocess.Popen([sys.executable, sys.argv[1]], stdout=subprocess.DEVNULL)
    heard = []
    while traffic.poll() is None:
        parts = [pool.submit(trace.read, 0.05) for _ in range(3)]
        trace.flows()
        heard += [line for part in parts for line in part.result()]
    while rest := trace.read(0.1):
        heard += rest
    print(trace.missed(), len(heard) > 10, len(trace.flows()) > 0)
"""
    )
    done = inside(
        f"""
        cwnd kernel load reno --default >&2
        {sys.executable} {tmp_path}/listen.py {tmp_path}/traffic.py || exit
        cwnd kernel unload reno >&2
        """
    )
    assert done.stdout == "0 True True\n", done.stderr


LAW = """law mine "AIMD that remembers its cuts"
parameter beta = 1/2 in (0, 1) "reduction at a loss as a fraction of the window"
state cuts = 0 "reductions"
on grow:
    return w + (1 + log(1 + cuts)) * acked / w
on cut:
    cuts = cuts + 1
    return w - beta * w
"""


def test_a_law_in_a_file_is_loaded_with_its_text_and_replays_to_the_bit(tmp_path, inside):
    if shutil.which("tc") is None:
        pytest.skip("it needs the program tc")
    (tmp_path / "mine.law").write_text(LAW)
    (tmp_path / "traffic.py").write_text(TRAFFIC.format(chunks=60_000))
    done = inside(
        f"""
        cd {tmp_path}
        cwnd kernel load 'mine.law(beta=0.125)' --default
        echo '# a comment' >> mine.law
        cwnd kernel load 'mine.law(beta=0.125)' 2> again || true
        # The law is that which was loaded, wherever the command runs.
        echo 'a text that is no law' > mine.law
        cd /
        ip link set lo mtu 1500
        tc qdisc add dev lo root tbf rate 30mbit burst 10k limit 30k || exit
        cwnd kernel status
        cwnd kernel trace mine.law --time 2s --json > {tmp_path}/trace.json &
        trace=$!
        sleep 0.8
        timeout 2 {sys.executable} {tmp_path}/traffic.py > /dev/null
        wait $trace
        cwnd kernel unload mine
        ls /sys/fs/bpf/cwnd 2> /dev/null
        """
    )
    loaded = f"cwnd_mine: mine.law(beta=1/8), hash {_native.hash_law('mine.law', LAW)}, the default"
    assert done.stdout == f"{loaded}\n{loaded}, 0 connections\ncwnd_mine: unloaded\n"
    again = "cwnd_mine is already loaded, as mine.law(beta=1/8) before it was edited"
    assert again in (tmp_path / "again").read_text()
    flows = json.loads((tmp_path / "trace.json").read_text())["flows"]
    sender = max(flows, key=lambda flow: flow["packets_sent"])
    assert sender["controller"] == "mine.law(beta=1/8)"
    steps, cuts, worst = sender["agreement"]
    assert steps > 50
    assert cuts > 1
    assert worst == 0


def test_bbr3_paces_and_its_record_is_replayed(tmp_path, inside):
    (tmp_path / "traffic.py").write_text(TRAFFIC.format(chunks=500))
    (tmp_path / "listen.py").write_text(
        """
import json, subprocess, sys
from cwnd import kernel
trace = kernel.trace("bbr3")
lines = []
# The comparison of a flow ends where rounding changes a decision: then another flow is traced.
for _ in range(5):
    traffic = subprocess.Popen([sys.executable, sys.argv[1]], stdout=subprocess.DEVNULL)
    while traffic.poll() is None:
        lines += trace.read(0.05)
    while rest := trace.read(0.1):
        lines += rest
    flow = max(trace.flows(), key=lambda flow: flow["agreement"][0])
    steps, _, worst = flow["agreement"]
    if steps > 20:
        break
acks = [line for _, _, line in lines if " acked " in line]
rate = flow["gauges"]["rate"]
print(json.dumps([
    len(acks) > 100,
    all(" delivery " in line for line in acks),
    steps > 20,
    worst < 6e-8,
    len(rate) == len(flow["window"]) and bool(min(rate) > 0),
    bool(min(flow["window"]) >= 4),
    trace.missed(),
]))
"""
    )
    done = inside(
        f"""
        cwnd kernel load bbr3 --default >&2
        {sys.executable} {tmp_path}/listen.py {tmp_path}/traffic.py || exit
        cwnd kernel unload bbr3 >&2
        """
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, True, True, True, True, True, 0], done.stderr


def test_a_killed_trace_leaves_nothing(tmp_path, inside):
    (tmp_path / "traffic.py").write_text(TRAFFIC.format(chunks=60_000))
    done = inside(
        f"""
        cwnd kernel load reno --default >&2
        coproc {sys.executable} {tmp_path}/traffic.py
        read -u ${{COPROC[0]}} word
        {sys.executable} -m cwnd kernel trace reno > {tmp_path}/lines &
        trace=$!
        until grep -q -m1 acked {tmp_path}/lines; do sleep 0.05; done
        kill -9 $trace
        wait $trace 2> /dev/null
        ls /sys/fs/bpf/cwnd /sys/fs/bpf/cwnd/cwnd_reno
        cwnd kernel trace reno --time 0.3s --record {tmp_path}/records >&2
        kill $COPROC_PID
        wait
        cwnd kernel unload reno
        ls -d /sys/fs/bpf/cwnd
        """
    )
    # Only the entries of the load remain; a second trace works, and unload removes the entries.
    expected = "/sys/fs/bpf/cwnd: cwnd_reno /sys/fs/bpf/cwnd/cwnd_reno: control events link"
    assert done.stdout.split() == [*expected.split(), "cwnd_reno:", "unloaded"], done.stderr
    assert list((tmp_path / "records").iterdir())


def test_a_law_is_scored_in_the_kernel(inside, tmp_path):
    law, suite = tmp_path / "mine.law", tmp_path / "short.toml"
    packaged = Path(kernel.__file__).parent / "_tasks/score/suites/default.toml"
    text = packaged.read_text("utf-8").replace('"50mbit"', '"3mbit"').replace('"20s"', '"3s"')
    for key in ("quick", "training", "held_out"):
        text = re.sub(f"^{key} = [0-9]+", f"{key} = 1", text, flags=re.MULTILINE)
    suite.write_text(text, "utf-8")
    law.write_text(
        'law mine "Mine"\n\non grow:\n    return w + acked / w\n\non cut:\n    return w / 2\n'
    )
    done = inside(f"cwnd score {law} --suite {suite} --stage kernel --json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["networks"][-1]["part"] == "kernel"
    assert found["metrics"]["kernel_score"] > 0.5, found
