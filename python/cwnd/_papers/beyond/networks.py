"""Grid of networks for pairs of laws."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from cwnd._papers.networks import dumbbell, flow

if TYPE_CHECKING:
    from cwnd._runs.scenario import Scenario

LAWS = {
    "TCP": "reno",
    "CUBIC": "cubic",
    "SIMD": "simd(beta=1/16)",
    "GAIMD": "aimd(0.31, 1/8)",
    "AIRA": "aira",
    "DAIMD": "daimd",
    "UDT": "udt",
    "AIAD_φ": "aiad(rate=receiver)",
    "BBR": "bbr",
    "BBRv3": "bbr3",
    "Copa": "copa",
    "C4": "c4",
    "LEDBAT": "ledbat",
}
"""Specifications by name: TCP, CUBIC, the five papers' laws and controllers of today.

Flows that set a window recover losses with SACK. DCTCP and Prague need marks, which DropTail queues
do not set.
"""

PACKET_BITS = 8 * 1500.0


class Network(NamedTuple):
    """A dumbbell of the grid: capacity in bit/s, round-trip propagation delay in seconds.

    A ``deep`` buffer holds two bandwidth-delay products (at least 16 packets), a shallow one half a
    bandwidth-delay product (at least 8). Each of the two laws has ``flows`` flows.
    """

    rate: float
    rtt: float
    deep: bool
    flows: int

    @property
    def queue(self) -> int:
        """Limit of the queue in packets."""
        bdp = self.rate * self.rtt / PACKET_BITS
        return max(16, round(2 * bdp)) if self.deep else max(8, round(bdp / 2))

    @property
    def label(self) -> str:
        """Label on an axis; fl counts the flows of both laws."""
        return f"{self.rate / 1e6:g}M {self.rtt * 1e3:g}ms {self.queue}p {2 * self.flows}fl"


GRID = [Network(*place) for place in product((4e6, 20e6), (0.02, 0.12), (False, True), (1, 4))]
"""All combinations of rate, round-trip time, buffer and flows."""

QUARTER = [n for n in GRID if n.deep == (n.rate > 1e7) and (n.flows == 4) == (n.rtt > 0.1)]
"""A quarter of the grid that is balanced in all four parameters."""

HALVES = {
    "4 Mb/s": [n for n in GRID if n.rate < 1e7],
    "20 Mb/s": [n for n in GRID if n.rate > 1e7],
    "20 ms": [n for n in GRID if n.rtt < 0.1],
    "120 ms": [n for n in GRID if n.rtt > 0.1],
    "half a BDP": [n for n in GRID if not n.deep],
    "two BDP": [n for n in GRID if n.deep],
    "one flow each": [n for n in GRID if n.flows == 1],
    "four each": [n for n in GRID if n.flows == 4],
}
"""Halves of the grid by name."""

SMALL = [n for n in GRID if n.rate < 1e7 and n.rtt < 0.1]
"""Networks of 4 Mb/s and 20 ms, where Eq. 20 of the DAIMD paper holds."""


def versus(first: str, second: str, network: Network, *, quick: bool = False) -> Scenario:
    """Return a network with flows of two of `LAWS`, or twice as many of one.

    A quarter of the run is warm-up; a quick one is half as long.
    """
    duration = (16.0 if network.rtt < 0.1 else 36.0) / (2 if quick else 1)
    return dumbbell(
        "beyond",
        duration,
        [
            flow(LAWS[law], name=name, count=network.flows)
            for name, law in (("first", first), ("second", second))
        ],
        bottleneck={"rate": network.rate, "delay": network.rtt / 2, "queue": f"{network.queue}p"},
        access={"delay": "0ms..1ms"},
        tcp={"conventions": "rfc5681", "packet": 1460, "timestamps": True, "overhead": "0s"},
        warmup=duration / 4,
        title=f"{first} and {second}, {network.label}",
    )
