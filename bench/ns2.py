"""The simulator compared with ns-2: the same dumbbells, run alternately."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from networks import Dumbbell
from tables import table

from cwnd import _native

TCL = Path(__file__).with_name("dumbbell.tcl")
# ns-2 needs a minute for the second network.
NETWORKS = ((Dumbbell(100, 8, 100), 5), (Dumbbell(10_000, 100, 10), 2))
# Runs of cwnd for each run of ns-2, which takes longer and averages over the machine's load.
RUNS_PER_REFERENCE = 3


@dataclass(frozen=True)
class Run:
    """Transmitted data packets, and the seconds of the run."""

    packets: int
    seconds: float


def run_cwnd(network: Dumbbell) -> Run:
    """Run a network in cwnd through Python, without Python's start-up."""
    scenario = json.dumps(network.scenario())
    (record,) = _native.simulate([(scenario, 1)])
    return Run(record["engine"]["packets"], record["engine"]["wall_s"])


def run_ns2(ns: str, network: Dumbbell) -> Run:
    """Run a network in ns-2, including its start-up, which is negligible for runs of seconds."""
    size = [str(value) for value in (network.megabits, network.flows, network.seconds)]
    begin = time.perf_counter()
    done = subprocess.run([ns, str(TCL), *size], capture_output=True, text=True, check=True)
    took = time.perf_counter() - begin
    match = re.search(r"packets (\d+)", done.stdout)
    if match is None:
        raise RuntimeError(f"ns-2 printed no packet count: {done.stdout!r}")
    return Run(int(match[1]), took)


def main() -> None:
    """Print packets a second and their ratio, medians over alternating rounds."""
    ns = shutil.which("ns")
    rows = []
    for network, rounds in NETWORKS:
        runs, reference = [], []
        for _ in range(rounds):
            runs += [run_cwnd(network) for _ in range(RUNS_PER_REFERENCE)]
            if ns is not None:
                reference.append(run_ns2(ns, network))
        for name, measured in {"ns-2": reference, "cwnd": runs}.items():
            if measured:
                ratio = f"{_rate(measured) / _rate(reference):.1f}" if reference else ""
                rows.append([*_row(network, name, measured), ratio])
    heads = ("network", "", "runs", "packets", "s", "M packets/s", "ns/packet", "ratio to ns-2")
    table("Comparison with ns-2", heads, rows)
    if ns is None:
        print("ns-2 is not installed: its rows and the ratios are omitted")


def _rate(runs: list[Run]) -> float:
    """Return the median packets per second."""
    return statistics.median(run.packets / run.seconds for run in runs)


def _row(network: Dumbbell, name: str, runs: list[Run]) -> list[str]:
    """Return the row of a simulator."""
    rate = _rate(runs)
    packets, seconds = runs[0].packets, statistics.median(run.seconds for run in runs)
    figures = [str(len(runs)), f"{packets:,}", f"{seconds:.3f}"]
    return [str(network), name, *figures, f"{rate / 1e6:.2f}", f"{1e9 / rate:.1f}"]
