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


CONVENTIONS = ("rfc5681", "rfc", "linux")


def main() -> None:
    """Print the packets per second of each controller, beside Reno's in the same round."""
    rows: list[list[str]] = [[spec] for spec in SPECS]
    for conventions in CONVENTIONS:
        rounds = [
            [run(controlled(spec, conventions)).ns_per_packet for spec in SPECS]
            for _ in range(ROUNDS)
        ]
        for at, row in enumerate(rows):
            cost = statistics.median(costs[at] for costs in rounds)
            speed = statistics.median(costs[0] / costs[at] for costs in rounds)
            row += [f"{cost:.0f}", f"{speed:.2f}"]
    columns = (f"{name}: {figure}" for name in CONVENTIONS for figure in ("ns/packet", "Reno = 1"))
    table("Controllers", ("controller", *columns), rows)
