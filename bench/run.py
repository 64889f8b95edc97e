"""The speed of the simulator beside ns-2's: the same dumbbells, run in turn.

    python bench/run.py [--rounds 3] [--all]

Prints packets per second, nanoseconds per packet and the ratio, from the median over the rounds.
Packets are data packets put on the wire by the senders. ns-2 is left out where it is not installed
(Debian: ns2); its figure is that of the whole process, which for a run of seconds is the run.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from cwnd import _native

TCL = Path(__file__).with_name("dumbbell.tcl")


@dataclass(frozen=True)
class Network:
    """A dumbbell: SACK flows through one RED queue, every hop simulated."""

    megabits: int
    flows: int
    seconds: int

    def __str__(self) -> str:
        return f"{self.megabits} Mb/s, {self.flows} flows, {self.seconds} s"

    def scenario(self) -> str:
        """Give the network as `dumbbell.tcl` has it, in ns-2's conventions."""
        access = 10 * self.megabits if self.megabits > 900 else 1000
        spacing = 0.01 if self.flows > 20 else 0.1
        limit = int(2.5 * int(self.megabits * 1e6 * 0.1 / 8000))
        flows = [
            {
                "name": f"flow-{i}",
                "controller": "reno",
                "start": spacing * i,
                "access": {"rate": f"{access}mbit", "delay": (1 + 0.1 * i) / 1000},
            }
            for i in range(self.flows)
        ]
        return json.dumps(
            {
                "name": "speed",
                "duration": float(self.seconds),
                "dumbbell": {
                    "rate": f"{self.megabits}mbit",
                    "delay": "40ms",
                    "queue": {"kind": "red", "limit": f"{limit}p", "mean_packet": 1000},
                },
                "access": {"queue": "1000000p"},
                "tcp": {"conventions": "ns2", "window": 100_000},
                "flow": flows,
            }
        )


def run_cwnd(network: Network) -> tuple[int, float]:
    """Give the packets sent and the seconds it took."""
    (record,) = _native.simulate([(network.scenario(), 1)], threads=1)
    return record["engine"]["packets"], record["engine"]["wall_s"]


def run_ns2(ns: str, network: Network) -> tuple[int, float]:
    """Give the packets sent and the seconds it took."""
    size = [str(value) for value in (network.megabits, network.flows, network.seconds)]
    begin = time.perf_counter()
    done = subprocess.run([ns, str(TCL), *size], capture_output=True, text=True, check=True)
    took = time.perf_counter() - begin
    match = re.search(r"packets (\d+)", done.stdout)
    if match is None:
        raise RuntimeError(f"ns-2 printed no count of packets: {done.stdout!r}")
    return int(match[1]), took


def report(name: str, runs: list[tuple[int, float]]) -> float:
    """Print a simulator's figures; give its packets per second."""
    rate = statistics.median(packets / took for packets, took in runs)
    packets, took = runs[0][0], statistics.median(took for _, took in runs)
    print(
        f"  {name:5} {packets:>10,} packets {took:8.3f} s "
        f"{rate / 1e6:8.2f} M packets/s {1e9 / rate:9.1f} ns/packet"
    )
    return rate


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="The speed of the simulator beside ns-2's.")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each network (3)")
    parser.add_argument("--all", action="store_true", help="also 10 Gb/s with 100 flows (minutes)")
    arguments = parser.parse_args()
    networks = [Network(100, 8, 100)]
    if arguments.all:
        networks.append(Network(10_000, 100, 10))
    ns = shutil.which("ns")
    for network in networks:
        print(network)
        ours, theirs = [], []
        for _ in range(max(arguments.rounds, 1)):
            ours.append(run_cwnd(network))
            if ns is not None:
                theirs.append(run_ns2(ns, network))
        rate = report("cwnd", ours)
        if theirs:
            print(f"ratio to ns-2: {rate / report('ns-2', theirs):.1f}x")
        else:
            print("  ns-2 is not installed: no ratio")


if __name__ == "__main__":
    main()
