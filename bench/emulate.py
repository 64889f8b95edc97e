"""Emulated links on this machine: rate, delay, jitter, and the lateness of the emulator.

    python bench/emulate.py [--rounds 5] [--seconds 5] [NAME ...]

Each case is one `cwnd emulate` with a command behind the link and its peer in this process: TCP
(iperf3, the kernel's Reno, without its first seconds), or echoed datagrams, with or without other
traffic. Jitter is the round-trip time above its minimum. Needs root. Without iperf3 the cases with
TCP are omitted. On a virtual machine the figures depend on the processor time that the host takes
away: the round with the least of it is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 9117
SKIPPED_S = 2
PATIENCE_S = 120.0
# Runs behind the link: echoed datagrams, with a flood of `rate` bit/s.
TRIPS = """
import json, os, socket, sys, threading, time
port, seconds, rate = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
peer = (os.environ["CWND_PEER"], port)
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.settimeout(2)
def flood():
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    start, sent = time.perf_counter(), 0
    while True:
        due = (time.perf_counter() - start) * rate / 12000
        while sent < due:
            other.sendto(bytes(1472), (peer[0], port + 1))
            sent += 1
        time.sleep(0.0005)
if rate:
    threading.Thread(target=flood, daemon=True).start()
    time.sleep(0.5)
trips, stop = [], time.perf_counter() + seconds
while time.perf_counter() < stop:
    start = time.perf_counter()
    end.sendto(bytes(100), peer)
    end.recv(2048)
    trips.append(time.perf_counter() - start)
    time.sleep(0.002)
print(json.dumps(trips))
"""


@dataclass(frozen=True)
class Case:
    """A link and its traffic: TCP, or datagrams with a flood of `flood` bit/s."""

    name: str
    link: tuple[str, ...]
    tcp: bool = False
    flood: float = 0.0


CASES = (
    Case("1 Gb/s, 5 ms, TCP", ("--rate=1gbit", "--delay=5ms", "--queue=2000p"), tcp=True),
    Case("100 Mb/s, 10 ms, TCP", ("--rate=100mbit", "--delay=10ms", "--queue=250p"), tcp=True),
    Case("100 Mb/s, 10 ms, idle", ("--rate=100mbit", "--delay=10ms")),
    Case(
        "100 Mb/s, 10 ms, 50 Mb/s of other traffic", ("--rate=100mbit", "--delay=10ms"), flood=50e6
    ),
    Case("10 Mb/s, 20 ms, TCP", ("--rate=10mbit", "--delay=20ms", "--queue=50p"), tcp=True),
)


@contextmanager
def peer() -> Iterator[None]:
    """Echo the datagrams of the first port, and discard those of the second."""
    stop = threading.Event()
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for number, end in enumerate(ends):
        end.bind(("0.0.0.0", PORT + number))
        end.settimeout(0.1)

    def serve(end: socket.socket, *, echoes: bool) -> None:
        while not stop.is_set():
            with suppress(TimeoutError):
                data, sender = end.recvfrom(2048)
                if echoes:
                    end.sendto(data, sender)

    threads = [
        threading.Thread(target=serve, args=(end,), kwargs={"echoes": number == 0})
        for number, end in enumerate(ends)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for end in ends:
            end.close()


@contextmanager
def iperf3_server() -> Iterator[None]:
    """Run an iperf3 server."""
    words = ["iperf3", "--server", "--port", str(PORT)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        time.sleep(0.3)
        try:
            yield
        finally:
            server.terminate()


def behind(link: tuple[str, ...], words: list[str]) -> tuple[str, dict[str, Any]]:
    """Run a command behind a link; return its output and the result of the emulator."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "cwnd", "emulate", *link, f"--result={result}", "--"]
        done = subprocess.run(
            [*command, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        if done.returncode != 0:
            sys.exit(done.stderr.strip() or done.stdout.strip())
        return done.stdout, json.loads(result.read_text())


def tcp(case: Case, seconds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Measure the goodput of TCP at the receiver, in Mb/s."""
    script = (
        f"exec iperf3 --client $CWND_PEER --port {PORT} --congestion reno --json "
        f"--omit {SKIPPED_S} --time {seconds}"
    )
    with iperf3_server():
        output, measured = behind(case.link, ["sh", "-c", script])
    received = json.loads(output)["end"]["sum_received"]["bits_per_second"]
    return {"Mb/s": received / 1e6}, measured


def trips(case: Case, seconds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Measure round-trip times, in milliseconds."""
    words = [sys.executable, "-c", TRIPS, str(PORT), str(seconds), str(case.flood)]
    with peer():
        output, measured = behind(case.link, words)
    times = sorted(1e3 * trip for trip in json.loads(output))
    return {
        "RTT, ms": times[0],
        "jitter p99, ms": float(np.quantile(times, 0.99)) - times[0],
    }, measured


STOLEN = "stolen, %"
COLUMNS = ("Mb/s", "RTT, ms", "jitter p99, ms", "late p50, µs", "late p99, µs", "CPU, %", STOLEN)


def ticks() -> list[int]:
    """Return the ticks of the processors by state; the eighth is time stolen by the host."""
    return [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]


def run(case: Case, rounds: int, seconds: int) -> list[str]:
    """Measure one case."""
    rows = []
    for _ in range(rounds):
        before = ticks()
        row, measured = (tcp if case.tcp else trips)(case, seconds)
        spent = [now - then for now, then in zip(ticks(), before, strict=True)]
        tool = measured["tool"]
        row["late p50, µs"] = 1e6 * tool["lateness_s"]["p50"]
        row["late p99, µs"] = 1e6 * tool["lateness_s"]["p99"]
        row["CPU, %"] = 100 * tool["cpu_s"] / tool["wall_s"]
        row[STOLEN] = 100 * spent[7] / sum(spent)
        rows.append((row, tool["limit"]))
    row, limit = min(rows, key=lambda made: made[0][STOLEN])
    cells = [f"{row[column]:.4g}" if column in row else "" for column in COLUMNS]
    return [case.name, *cells, limit or "no"]


def main() -> None:
    """Measure the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only cases with this in the name")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    chosen = [
        case for case in CASES if not options.names or any(n in case.name for n in options.names)
    ]
    if shutil.which("iperf3") is None:
        print("iperf3 is not installed: the cases with TCP are omitted")
        chosen = [case for case in chosen if not case.tcp]
    load = os.getloadavg()[0]
    print(f"Linux {platform.release()}, {os.cpu_count()} processors, load {load:.1f}")
    rows = [run(case, options.rounds, options.seconds) for case in chosen]
    heads = ("link", *COLUMNS, "limited by the emulator")
    table("Emulated links", heads, rows)


if __name__ == "__main__":
    main()
