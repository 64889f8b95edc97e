"""The cost of the conventions of TCP on the default network of `cwnd compare`."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from stages import run
from tables import table

from cwnd._runs.defaults import DUMBBELL
from cwnd._runs.networks import dumbbell

if TYPE_CHECKING:
    from networks import Scenario

ROUNDS = 5
CONVENTIONS = ("rfc5681", "rfc", "linux")


def network(conventions: str) -> Scenario:
    """Return the default network with these conventions."""
    return dumbbell({**DUMBBELL, "conventions": conventions}, {}).scenario.to_dict()


def main() -> None:
    """Print the packets per second of each, and their ratio to the first in the same round."""
    networks = [network(name) for name in CONVENTIONS]
    rounds = [[run(each).ns_per_packet for each in networks] for _ in range(ROUNDS)]
    rows = []
    for at, name in enumerate(CONVENTIONS):
        cost = statistics.median(costs[at] for costs in rounds)
        speed = statistics.median(costs[0] / costs[at] for costs in rounds)
        rows.append((name, f"{1e3 / cost:.2f}", f"{speed:.2f}"))
    heads = ("conventions", "million packets/s", f"{CONVENTIONS[0]} = 1")
    table("Conventions on the default network of compare", heads, rows)
