"""The command line: how fast it starts, and how many cores it keeps busy."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import table

ROUNDS = 15
CWND = str(Path(sys.executable).with_name("cwnd"))


def main() -> None:
    """Print how the command behaves."""
    _start()
    _compare()


def _run(arguments: list[str]) -> tuple[float, float]:
    """Run a command; give the seconds it took, and those of all cores together."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, busy


def _start() -> None:
    """Print the times of starting, medians over alternating rounds."""
    commands = {
        "python, doing nothing": [sys.executable, "-c", "pass"],
        "import cwnd": [sys.executable, "-c", "import cwnd"],
        "cwnd --version": [CWND, "--version"],
        "cwnd --help": [CWND, "--help"],
    }
    rounds = [[_run(command)[0] for command in commands.values()] for _ in range(ROUNDS)]
    medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
    rows = [[name, f"{1e3 * took:.0f}"] for name, took in zip(commands, medians, strict=True)]
    table("Start", ("", "ms"), rows)


def _compare() -> None:
    """Print how busy a comparison with many seeds keeps the cores."""
    controllers = ("reno", "aimd(0.31, 1/8)", "simd", "aira", "aiad")
    rest = ("--repeat", "20", "--time", "60s")
    _busy("cwnd compare, 5 controllers, --repeat 20", [CWND, "compare", *controllers, *rest])


def reproduce() -> None:
    """Print how long all papers take, and how busy they keep the cores."""
    with tempfile.TemporaryDirectory() as out:
        _busy("cwnd reproduce", [CWND, "reproduce", "--out", out])


def _busy(name: str, command: list[str]) -> None:
    """Run a command once, and print its time and that of all cores."""
    cores = len(os.sched_getaffinity(0))
    took, busy = _run(command)
    row = [name, f"{took:.1f}", f"{busy:.1f}", f"{busy / took / cores:.0%}"]
    table("Many runs", ("", "s", "s of all cores", f"of {cores} cores"), [row])
