"""What recording costs: the same run, watched and not."""

from __future__ import annotations

import os

from networks import Dumbbell, Scenario, sampled
from stages import run
from tables import table

ROUNDS = 9


def main() -> None:
    """Print what each way of watching adds to a run, the least over alternating rounds.

    What is sought is a few per cent: whatever else the machine does only adds.
    """
    rows = _rows(Dumbbell(100, 8, 100)) + _rows(Dumbbell(10_000, 100, 2))
    table("Watching", ("network", "", "ns/packet", "beside sampled once"), rows)


def _rows(network: Dumbbell) -> list[list[str]]:
    """Measure one network."""
    usual = network.scenario()
    once = sampled(usual, network.seconds)
    ways: list[tuple[str, Scenario, list[str]]] = [
        ("sampled once", once, []),
        ("default: every 100 ms", usual, []),
        ("and every event told to a controller", usual, ["--tell"]),
        ("default, a tap on the bottleneck", usual, ["--tap"]),
        ("default, pcap of the bottleneck", usual, ["--pcap", os.devnull]),
    ]
    rounds = [[run(scenario, *how) for _, scenario, how in ways] for _ in range(ROUNDS)]
    costs = [min(r.ns_per_packet for r in runs) for runs in zip(*rounds, strict=True)]
    return [
        [str(network), name, f"{cost:.1f}", f"{cost / costs[0] - 1:+.1%}"]
        for (name, _, _), cost in zip(ways, costs, strict=True)
    ]
