"""The simulator beside ns-2: the same dumbbells, run in turn."""

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
# ns-2 takes most of a minute for the second.
NETWORKS = ((Dumbbell(100, 8, 100), 5), (Dumbbell(10_000, 100, 10), 2))


@dataclass(frozen=True)
class Run:
    """Data packets that the senders put on the wire, and the seconds it took."""

    packets: int
    seconds: float


def run_cwnd(network: Dumbbell) -> Run:
    """Run a network here, as Python does; Python's own start is not counted."""
    scenario = json.dumps(network.scenario())
    (record,) = _native.simulate([(scenario, 1)], threads=1)
    return Run(record["engine"]["packets"], record["engine"]["wall_s"])


def run_ns2(ns: str, network: Dumbbell) -> Run:
    """Run a network in ns-2; its start is counted, for a run of seconds it is nothing."""
    size = [str(value) for value in (network.megabits, network.flows, network.seconds)]
    begin = time.perf_counter()
    done = subprocess.run([ns, str(TCL), *size], capture_output=True, text=True, check=True)
    took = time.perf_counter() - begin
    match = re.search(r"packets (\d+)", done.stdout)
    if match is None:
        raise RuntimeError(f"ns-2 printed no count of packets: {done.stdout!r}")
    return Run(int(match[1]), took)


def main() -> None:
    """Print packets a second and their ratio, medians over alternating rounds."""
    ns = shutil.which("ns")
    rows = []
    for network, rounds in NETWORKS:
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(run_cwnd(network))
            if ns is not None:
                theirs.append(run_ns2(ns, network))
        rate, row = _row(network, "cwnd", ours)
        rows.append([*row, ""])
        if theirs:
            peer, row = _row(network, "ns-2", theirs)
            rows.append([*row, f"{rate / peer:.1f}"])
    heads = ("network", "", "rounds", "packets", "s", "M packets/s", "ns/packet", "cwnd/ns-2")
    table("Beside ns-2", heads, rows)
    if ns is None:
        print("ns-2 is not installed: no ratio")


def _row(network: Dumbbell, name: str, runs: list[Run]) -> tuple[float, list[str]]:
    """Give a simulator's packets per second, and its row."""
    seconds = statistics.median(run.seconds for run in runs)
    packets = runs[0].packets
    rate = packets / seconds
    figures = [str(len(runs)), f"{packets:,}", f"{seconds:.3f}"]
    return rate, [str(network), name, *figures, f"{rate / 1e6:.2f}", f"{1e9 / rate:.1f}"]
