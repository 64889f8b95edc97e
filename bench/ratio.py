"""The processor time of a packet, and its ratio to that of another commit.

The programs run alternately, so that other load of the machine changes both times.
"""

from __future__ import annotations

import os
import statistics
from typing import TYPE_CHECKING

import defaults
from instructions import CASES
from networks import Dumbbell, controlled, long_flows, short_flows
from stages import program, program_of, run
from tables import table

if TYPE_CHECKING:
    from networks import Scenario

ROUNDS = 9
CONTROLLERS = {
    "linux": ("reno", "cubic", "bbr3", "c4", "bbr"),
    "rfc": ("bbr", "bbr3", "c4", "reno"),
}
# Cases of which the quotient has a bar of its own.
OVER = (("reno, linux", "reno, rfc"), ("FQ-CoDel, 8 flows", "DropTail, 8 flows"))


def cases() -> dict[str, Scenario]:
    """Return the measured networks by name."""
    return {
        **{
            f"{spec}, {conventions}": controlled(spec, conventions)
            for conventions, specs in CONTROLLERS.items()
            for spec in specs
        },
        "10³ long flows": long_flows(1000, 2),
        "10⁴ long flows": long_flows(10_000, 2),
        "10⁵ short flows": short_flows(100_000),
        "10⁶ short flows": short_flows(1_000_000),
        "FQ-CoDel, 8 flows": CASES["fq-codel-8"][0],
        "DropTail, 8 flows": CASES["droptail-8"][0],
        "ns-2's network": Dumbbell(100, 8, 100).scenario(),
        "default network": defaults.network("linux"),
    }


def main(base: str) -> None:
    """Print the nanoseconds of a packet before and after, medians of alternating runs."""
    programs = (program_of(base), program())
    print(f"load average: {_load()}")
    costs, rows = {}, []
    for name, scenario in cases().items():
        rounds = [[_cost(path, scenario) for path in programs] for _ in range(ROUNDS)]
        costs[name] = [statistics.median(each) for each in zip(*rounds, strict=True)]
        ratio = statistics.median(before / after for before, after in rounds)
        rows.append([name, *(f"{cost:.1f}" for cost in costs[name]), f"{ratio:.3f}"])
    for name, other in OVER:
        both = zip(costs[name], costs[other], strict=True)
        rows.append([f"{name} / {other}", *(f"{one / two:.2f}" for one, two in both), ""])
    table("Processor time, ns/packet", ("", "before", "after", "ratio"), rows)
    print(f"load average: {_load()}")


def _cost(path: str, scenario: Scenario) -> float:
    """Return the nanoseconds of a packet in one run of a program."""
    done = run(scenario, path=path)
    return 1e9 * done.processor_seconds / done.packets


def _load() -> str:
    """Return the machine's load averages of 1, 5 and 15 minutes."""
    return " ".join(f"{load:.1f}" for load in os.getloadavg())
