"""UDT over loopback compared with UDT4, SRT, QUIC and TCP: rates and CPU time.

    python bench/udt.py [--rounds 5] [--megabytes 1000] [NAME ...]

Afterwards, the rate of a transfer of 1 Gb/s during floods of requests.

Each transport transfers the same bytes between two processes in packets of 1500 bytes. TCP uses
Linux's defaults, and once segments of 1448 bytes. A rate is the receiver's, from the first byte to
the last. CPU time is that of the whole process, user and system. A transport that is not available
is omitted with a message.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
ROOT = HERE.parent
REFERENCE = "UDT4"
PATIENCE_S = 120.0
# Time from the start of a receiver to that of its sender.
START_S = 0.3

Command = list[object]


class MissingError(Exception):
    """A program is not available."""


@dataclass(frozen=True)
class Run:
    """A transfer: bytes, seconds at the receiver, CPU seconds of the sender and of the receiver."""

    size: int
    seconds: float
    send_cpu: float
    recv_cpu: float

    @property
    def gigabits(self) -> float:
        """The rate in Gb/s."""
        return 8e-9 * self.size / self.seconds

    @property
    def cpu(self) -> float:
        """CPU seconds of both ends for each gigabyte."""
        return 1e9 * (self.send_cpu + self.recv_cpu) / self.size


class Programs:
    """The compared programs, each built on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def cwnd(self) -> Path:
        """The example `udt-speed` of crate `cwnd-udt`."""
        return self._cargo(ROOT, "-p", "cwnd-udt", "--example", "udt-speed") / "examples/udt-speed"

    @cached_property
    def key(self) -> Path:
        """A shared key."""
        path = self.folder / "key"
        path.write_bytes(os.urandom(32))
        return path

    @cached_property
    def udt4(self) -> Path:
        """The peer with the reference library, which the tests use too."""
        return self._compiled(ROOT / "crates/cwnd-udt/tests/support/udt4.cpp", "udt", "libudt-dev")

    @cached_property
    def srt(self) -> Path:
        """SRT's file mode."""
        return self._compiled(HERE / "udt/srt.cpp", "srt", "libsrt-openssl-dev")

    @cached_property
    def quinn(self) -> Path:
        """QUIC by quinn."""
        return self._cargo(HERE / "udt/quinn") / "bench-quinn"

    @cached_property
    def iperf3(self) -> Path:
        """TCP by iperf3."""
        found = shutil.which("iperf3")
        if found is None:
            raise MissingError("iperf3 is not installed")
        return Path(found)

    def _compiled(self, source: Path, library: str, package: str) -> Path:
        program = self.folder / source.stem
        compiler = os.environ.get("CXX", "c++")
        if shutil.which(compiler) is None:
            raise MissingError("no C++ compiler is installed")
        files = ["-o", str(program), str(source), f"-l{library}", "-lpthread"]
        command = [compiler, "-std=c++17", "-O2", *files]
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            raise MissingError(f"{source.name} does not compile: is Debian's {package} installed?")
        return program

    @staticmethod
    def _cargo(workspace: Path, *words: str) -> Path:
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        # Another workspace has its own target folder.
        target = target if workspace == ROOT else target / workspace.name
        command = ["cargo", "build", "--release", "--quiet", "--locked", f"--target-dir={target}"]
        if subprocess.run([*command, *words], check=False, cwd=workspace).returncode != 0:
            raise MissingError("cargo could not build it")
        return target / "release"


@dataclass(frozen=True)
class Transport:
    """The commands of both ends for a port and a number of bytes; a parser of the seconds."""

    receiver: Callable[[Programs, int, int], Command]
    sender: Callable[[Programs, int, int], Command]
    seconds: Callable[[str, int], float]


def seconds_in(pattern: str) -> Callable[[str, int], float]:
    """Return a parser of the receiver's seconds in its output."""

    def read(text: str, _: int) -> float:
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise RuntimeError(f"no seconds in {text!r}")
        return float(match[1])

    return read


def iperf_seconds(text: str, _: int) -> float:
    """Return the receiver's seconds from iperf3's JSON."""
    return float(json.loads(text)["end"]["sum_received"]["seconds"])


def cwnd_seconds(text: str, size: int) -> float:
    """Return the receiver's seconds from the rate that it prints."""
    match = re.search(r"recv ([\d.]+) Gb/s", text)
    if match is None:
        raise RuntimeError(f"no rate in {text!r}")
    return 8e-9 * size / float(match[1])


def _udt4(p: Programs, port: int, size: int) -> Command:
    return [p.udt4, "listen", "--port", port, "--recv", size, "--until-closed", "--plain"]


def _from_udt4(p: Programs, port: int, size: int) -> Command:
    return [p.udt4, "connect", "--to", f"127.0.0.1:{port}", "--send", size, "--plain"]


def _cwnd(p: Programs, port: int, _: int) -> Command:
    return [p.cwnd, "recv", f"127.0.0.1:{port}"]


def _from_cwnd(law: str) -> Callable[[Programs, int, int], Command]:
    return lambda p, port, size: [p.cwnd, "send", f"127.0.0.1:{port}", size // 1_000_000, law]


def _sealed(
    end: Callable[[Programs, int, int], Command],
) -> Callable[[Programs, int, int], Command]:
    def command(p: Programs, port: int, size: int) -> Command:
        program, *words = end(p, port, size)
        return [program, "--key", p.key, *words]

    return command


def _iperf(p: Programs, port: int, _: int) -> Command:
    return [p.iperf3, "-s", "-1", "-p", port, "-J"]


def _from_iperf(*more: str) -> Callable[[Programs, int, int], Command]:
    return lambda p, port, size: [
        *(p.iperf3, "-c", "127.0.0.1", "-p", port, "-n", size, "-l", 1 << 20),
        *more,
    ]


def _quinn(verb: str, *more: str) -> Callable[[Programs, int, int], Command]:
    return lambda p, port, size: [p.quinn, verb, port, size, *more]


def _srt(verb: str) -> Callable[[Programs, int, int], Command]:
    return lambda p, port, size: [p.srt, verb, port, size]


_OF_UDT4 = seconds_in(r"^received \d+ \w+ ([\d.]+)")
_RECEIVED = seconds_in(r"^received ([\d.]+)")

TRANSPORTS = {
    REFERENCE: Transport(_udt4, _from_udt4, _OF_UDT4),
    "cwnd udt": Transport(_cwnd, _from_cwnd("udt"), cwnd_seconds),
    "cwnd udt with a key": Transport(_sealed(_cwnd), _sealed(_from_cwnd("udt")), cwnd_seconds),
    "cwnd reno": Transport(_cwnd, _from_cwnd("reno"), cwnd_seconds),
    "cwnd cubic": Transport(_cwnd, _from_cwnd("cubic"), cwnd_seconds),
    "cwnd cubic with a key": Transport(_sealed(_cwnd), _sealed(_from_cwnd("cubic")), cwnd_seconds),
    "cwnd udt to UDT4": Transport(_udt4, _from_cwnd("udt"), _OF_UDT4),
    "UDT4 to cwnd": Transport(_cwnd, _from_udt4, cwnd_seconds),
    "SRT file mode": Transport(_srt("recv"), _srt("send"), _RECEIVED),
    "quinn": Transport(_quinn("recv"), _quinn("send"), _RECEIVED),
    "quinn, no encryption": Transport(_quinn("recv", "plain"), _quinn("send", "plain"), _RECEIVED),
    "TCP, iperf3": Transport(_iperf, _from_iperf(), iperf_seconds),
    "TCP, iperf3, MSS 1448": Transport(_iperf, _from_iperf("-M", "1448"), iperf_seconds),
}


def free_port() -> int:
    """Return a port that is free for TCP and UDP."""
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        port: int = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        return port


def _start(command: Command, output: int) -> subprocess.Popen[str]:
    words = [str(word) for word in command]
    return subprocess.Popen(words, stdout=output, text=True)


def _wait(process: subprocess.Popen[str], deadline: float) -> float:
    """Wait for a process to end; return its CPU seconds."""
    while time.monotonic() < deadline:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
            return usage.ru_utime + usage.ru_stime
        time.sleep(0.005)
    raise RuntimeError(f"{process.args!r} takes too long")


def run(transport: Transport, programs: Programs, size: int) -> Run:
    """Transfer `size` bytes."""
    port = free_port()
    commands = [end(programs, port, size) for end in (transport.receiver, transport.sender)]
    deadline = time.monotonic() + PATIENCE_S
    receiver = _start(commands[0], subprocess.PIPE)
    sender = None
    try:
        time.sleep(START_S)
        sender = _start(commands[1], subprocess.DEVNULL)
        send_cpu = _wait(sender, deadline)
        recv_cpu = _wait(receiver, deadline)
        text = receiver.stdout.read() if receiver.stdout else ""
    finally:
        for process in (receiver, sender):
            if process is not None and process.returncode is None:
                process.kill()
                process.wait()
        if receiver.stdout:
            receiver.stdout.close()
    return Run(size, transport.seconds(text, size), send_cpu, recv_cpu)


def _row(name: str, runs: list[Run], reference: float | None) -> list[str]:
    rates = [run.gigabits for run in runs]
    rate = statistics.median(rates)
    send = statistics.median(1e9 * run.send_cpu / run.size for run in runs)
    recv = statistics.median(1e9 * run.recv_cpu / run.size for run in runs)
    ratio = f"{rate / reference:.2f}" if reference else ""
    spread = f"{min(rates):.2f}..{max(rates):.2f}"
    return [name, f"{rate:.2f}", spread, f"{send:.2f}", f"{recv:.2f}", ratio]


@dataclass(frozen=True)
class Goal:
    """Bounds on the ratio of two transports' medians: at least for rates, at most for CPU time."""

    measured: str
    baseline: str
    rate: float | None = None
    cpu: float | None = None

    def rows(self, runs: dict[str, list[Run]]) -> list[list[str]]:
        """Return rows of a table: the transports, the ratio, the bound and whether it holds."""
        measured, baseline = runs.get(self.measured), runs.get(self.baseline)
        if not measured or not baseline:
            return []
        rows = []
        if self.rate is not None:
            pair = [
                statistics.median(run.gigabits for run in runs_of_one)
                for runs_of_one in (measured, baseline)
            ]
            ratio = pair[0] / pair[1]
            bound = f"at least {self.rate:.2f}"
            rows.append(["rate", f"{ratio:.2f}", bound, "yes" if ratio >= self.rate else "NO"])
        if self.cpu is not None:
            pair = [
                statistics.median(run.cpu for run in runs_of_one)
                for runs_of_one in (measured, baseline)
            ]
            ratio = pair[0] / pair[1]
            bound = f"at most {self.cpu:.2f}"
            rows.append(
                ["CPU time a byte", f"{ratio:.2f}", bound, "yes" if ratio <= self.cpu else "NO"]
            )
        return [[f"{self.measured} / {self.baseline}", *row] for row in rows]


# CUBIC is the default of `cwnd send`.
GOALS = (
    Goal("cwnd cubic with a key", "quinn", rate=1.3, cpu=1.0),
    Goal("cwnd cubic", "quinn, no encryption", rate=1.8),
    Goal("cwnd udt", "quinn, no encryption", rate=1.0),
    Goal("cwnd udt to UDT4", REFERENCE, rate=1.0),
)


def goals(runs: dict[str, list[Run]]) -> None:
    """Print the ratios with bounds, and whether they hold."""
    rows = [row for goal in GOALS for row in goal.rows(runs)]
    if rows:
        heads = ("", "of", "ratio", "bound", "holds")
        table("Ratios of medians; CPU time of both ends together", heads, rows)


def floods() -> None:
    """Print the rate of a transfer without and with each kind of flood, by running its tests."""
    command = ["cargo", "test", "--release", "--quiet", "-p", "cwnd-udt", "--no-fail-fast"]
    command += ["--test", "flood", "--test", "sealed_flood"]
    command += ["a_transfer_keeps_its_rate", "--", "--ignored", "--nocapture"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(
        "\nA transfer of at most 1 Gb/s during 10,000 requests a second, and one of 200 Mb/s with a"
    )
    print("key during as many hellos as can be sent")
    for line in done.stdout.splitlines():
        if line.startswith(("good cookies", "hellos")):
            print(f"  {line}")
    kept = "keeps" if done.returncode == 0 else "does not keep"
    print(f"  the transfer {kept} 90 % of its rate")


def main() -> None:
    """Print the medians of alternating rounds."""
    parser = argparse.ArgumentParser(
        description="UDT over loopback compared with other transports."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TRANSPORTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=1000)
    options = parser.parse_args()
    names = options.names or list(TRANSPORTS)
    if unknown := set(names) - TRANSPORTS.keys():
        parser.error(f"unknown transport {', '.join(sorted(unknown))}")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}")
    runs: dict[str, list[Run]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder))
        for _ in range(options.rounds):
            for name in list(runs):
                try:
                    runs[name].append(run(TRANSPORTS[name], programs, options.megabytes * 10**6))
                except MissingError as missing:
                    print(f"{name} is omitted: {missing}")
                    del runs[name]
    reference_runs = runs.get(REFERENCE)
    reference = (
        statistics.median(run.gigabits for run in reference_runs) if reference_runs else None
    )
    heads = (
        "",
        "Gb/s",
        "min..max",
        "send CPU s/GB",
        "receive CPU s/GB",
        f"ratio to {REFERENCE}",
    )
    table(
        f"{options.megabytes} MB over loopback, medians of {options.rounds} rounds",
        heads,
        [_row(name, of_name, reference) for name, of_name in runs.items()],
    )
    goals(runs)
    if not options.names:
        floods()


if __name__ == "__main__":
    main()
