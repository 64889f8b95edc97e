"""The cost of recording: the same run with and without records."""

from __future__ import annotations

import os

from networks import Dumbbell, Scenario, sampled
from stages import run
from tables import table

ROUNDS = 9


def main() -> None:
    """Print the cost of each kind of record, the minimum over alternating rounds.

    The differences are a few per cent, and other load of the machine only adds time.
    """
    rows = _rows(Dumbbell(100, 8, 100)) + _rows(Dumbbell(10_000, 100, 2))
    table("Recording", ("network", "", "ns/packet", "relative to sampled once"), rows)


def _rows(network: Dumbbell) -> list[list[str]]:
    """Measure one network."""
    default = network.scenario()
    once = sampled(default, network.seconds)
    kinds: list[tuple[str, Scenario, list[str]]] = [
        ("sampled once", once, []),
        ("default: every 100 ms", default, []),
        ("default, all controller events", default, ["--record"]),
        ("default, a tap on the bottleneck", default, ["--tap"]),
        ("default, pcap of the bottleneck", default, ["--pcap", os.devnull]),
    ]
    rounds = [[run(scenario, *options) for _, scenario, options in kinds] for _ in range(ROUNDS)]
    costs = [min(r.ns_per_packet for r in runs) for runs in zip(*rounds, strict=True)]
    return [
        [str(network), name, f"{cost:.1f}", f"{cost / costs[0] - 1:+.1%}"]
        for (name, _, _), cost in zip(kinds, costs, strict=True)
    ]
