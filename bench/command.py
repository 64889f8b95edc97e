"""The command line: start-up time, and use of the cores."""

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
    """Print start-up times and the use of the cores."""
    _start()
    _compare()


def _run(arguments: list[str]) -> tuple[float, float]:
    """Run a command; return its wall time and processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, busy


def _start() -> None:
    """Print start-up times, medians over alternating rounds."""
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import cwnd": [sys.executable, "-c", "import cwnd"],
        "cwnd --version": [CWND, "--version"],
        "cwnd --help": [CWND, "--help"],
    }
    rounds = [[_run(command)[0] for command in commands.values()] for _ in range(ROUNDS)]
    medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
    rows = [[name, f"{1e3 * took:.0f}"] for name, took in zip(commands, medians, strict=True)]
    table("Start-up", ("", "ms"), rows)


def _compare() -> None:
    """Print the use of the cores by a comparison with many seeds."""
    controllers = ("reno", "aimd(0.31, 1/8)", "simd", "aira", "aiad")
    rest = ("--repeat", "20", "--time", "60s")
    _busy("cwnd compare, 5 controllers, --repeat 20", [CWND, "compare", *controllers, *rest])


def reproduce() -> None:
    """Print the time of all papers, and their use of the cores."""
    with tempfile.TemporaryDirectory() as out:
        _busy("cwnd reproduce", [CWND, "reproduce", "--out", out])


def _busy(name: str, command: list[str]) -> None:
    """Run a command once, and print its wall time and processor time."""
    cores = len(os.sched_getaffinity(0))
    took, busy = _run(command)
    row = [name, f"{took:.1f}", f"{busy:.1f}", f"{busy / took / cores:.0%}"]
    table("Many runs", ("", "s", "processor time, s", f"of {cores} cores"), [row])
