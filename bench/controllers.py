"""The cost of a packet by controller."""

from __future__ import annotations

import statistics

from networks import controlled
from stages import run
from tables import table

ROUNDS = 3
SPECS = (
    *("reno", "cubic", "simd", "aira", "aiad", "daimd", "vegas", "dctcp", "ledbat"),
    *("copa", "c4", "bbr", "bbr3"),
)


def main() -> None:
    """Print the packets per second of each controller, beside Reno's in the same round."""
    rounds = [[run(controlled(spec)).ns_per_packet for spec in SPECS] for _ in range(ROUNDS)]
    rows = []
    for at, spec in enumerate(SPECS):
        cost = statistics.median(costs[at] for costs in rounds)
        speed = statistics.median(costs[0] / costs[at] for costs in rounds)
        rows.append([spec, f"{cost:.0f}", f"{speed:.2f}"])
    table("Controllers", ("controller", "ns/packet", "packets a second, Reno = 1"), rows)
