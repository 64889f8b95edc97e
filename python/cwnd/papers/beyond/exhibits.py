"""All laws of the five papers, TCP and CUBIC with each other on one grid of networks.

No paper has this: each compares its law with TCP, on a network of its own choice.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd.papers.claims import alike, at_most, less
from cwnd.papers.exhibit import Findings, Lab, exhibit
from cwnd.papers.figure import Figure, Panel, Regions, Table
from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cwnd.papers.claims import Claim
    from cwnd.records import Series
    from cwnd.result import Result

LAWS = {
    "TCP": "reno",
    "CUBIC": "cubic",
    "SIMD": "simd(beta=1/16)",
    "GAIMD": "aimd(0.31, 1/8)",
    "AIRA": "aira",
    "DAIMD": "daimd",
    "UDT": "udt",
    "AIAD_φ": "aiad(rate=receiver)",
}
"""Names and specifications; TCP repairs losses with SACK, and so do all windows."""

_SYNCHRONOUS = (
    "DropTail makes both lose at the same instants, and then who gives up less has more: at α/β "
    "and a mean of 1 - β/2 of the largest window, (0.31, 1/8) gets 1.55 times what (1, 1/2) gets, "
    "where friendliness supposes losses that strike each flow by its own rate. With RED on the "
    "same grid the ratio is {red}; random delays before each packet change little."
)
WHY_FAR = {
    "SIMD": _SYNCHRONOUS.format(red="1.03"),
    "GAIMD": _SYNCHRONOUS.format(red="1.18"),
    "AIAD_φ": (
        "With half a product of buffer, r d is two thirds of the window or more: it gives up less "
        "than TCP, and with four flows each its estimate is too large by clumps besides. With two "
        "products of buffer and one flow each it gets less than TCP."
    ),
}
SHORT_QUEUE = (
    "With one flow each it is about so for DAIMD; with four each DAIMD gets three times as much. "
    "Eq. 20 compares response functions at one loss rate. Here the buffer is 8 or 16 packets: "
    "TCP's bursts lose more than paced packets do and wait for timeouts, and each of four DAIMD "
    "flows adds as if it were alone. It varies much from seed to seed."
)
CUBIC_FAR = (
    "RFC 9438's friendly window grows by 0.53 packets a round trip up to the last maximum and by 1 "
    "beyond it, and gives up 0.3: beyond that maximum it is TCP with a smaller decrease."
)
SMOOTHER = "It varies less in the mean, but four seeds do not bring the interval above 0."
DRAINS = (
    "A window cut by 1/9 takes as much from the queue and keeps the link busy; a rate cut by 1/9 "
    "stays below the capacity until it has grown again. Meanwhile the queue drains, at times to "
    "nothing."
)

PACKET_BITS = 8 * 1500.0


class Network(NamedTuple):
    """A dumbbell of the grid.

    Attributes
    ----------
    rate
        Capacity of the bottleneck, bit/s.
    rtt
        Propagation there and back, seconds.
    deep
        Whether the buffer holds two bandwidth-delay products (and at least 16 packets), or half of
        one (and at least 8).
    flows
        Flows of each of the two laws.
    """

    rate: float
    rtt: float
    deep: bool
    flows: int

    @property
    def queue(self) -> int:
        """Packets that may wait."""
        bdp = self.rate * self.rtt / PACKET_BITS
        return max(16, round(2 * bdp)) if self.deep else max(8, round(bdp / 2))

    @property
    def label(self) -> str:
        """What it is called on an axis."""
        return f"{self.rate / 1e6:g}M {self.rtt * 1e3:g}ms {self.queue}p {2 * self.flows}fl"


GRID = [Network(*place) for place in product((4e6, 20e6), (0.02, 0.12), (False, True), (1, 4))]
"""Every combination of rate, round-trip time, buffer and flows."""

QUARTER = [n for n in GRID if n.deep == (n.rate > 1e7) and (n.flows == 4) == (n.rtt > 0.1)]
"""A quarter of the grid in which each of the four takes both values evenly."""

Pair = tuple[str, str]


def versus(first: str, second: str, network: Network, *, quick: bool = False) -> Scenario:
    """Put the flows of two laws (or twice as many of one) on a network.

    Parameters
    ----------
    first, second
        Names of `LAWS`.
    network
        Where.
    quick
        Half as long.

    Returns
    -------
    Scenario
        With RFC habits and timestamps of 1 ms; a quarter of it is warm-up.
    """
    duration = (16.0 if network.rtt < 0.1 else 36.0) / (2 if quick else 1)
    return Scenario.from_toml(
        f"""
name = "beyond"
title = "{first} and {second}, {network.label}"
duration = {duration}
warmup = {duration / 4}

[dumbbell]
rate = {network.rate}
delay = {network.rtt / 2}
queue = "{network.queue}p"

[access]
delay = "0ms..1ms"

[tcp]
timestamps = true

[[flow]]
name = "first"
controller = "{LAWS[first]}"
count = {network.flows}
start = "0s..1s"

[[flow]]
name = "second"
controller = "{LAWS[second]}"
count = {network.flows}
start = "0s..1s"
"""
    )


class Met(NamedTuple):
    """What became of two laws on one network.

    Attributes
    ----------
    share
        Goodput of the first law's flows over that of all.
    queue
        Mean queueing delay over that of a full buffer.
    used
        Utilisation of the bottleneck.
    repeated
        Packets sent again over packets sent.
    variation
        Coefficient of variation of a flow's throughput over 10 round-trip times, mean of the flows.
    """

    share: float
    queue: float
    used: float
    repeated: float
    variation: float


def meet(result: Result) -> Met:
    """Measure a run of `versus`."""
    flows = result.measured_flows
    half = len(flows) // 2
    rates = np.array([result.goodput_bps(flow) for flow in flows])
    link = result.bottleneck
    full = link["queue_limit"] * PACKET_BITS / link["rate_bps"]
    sent = sum(flow["packets_sent"] for flow in flows)
    again = sum(flow["retransmissions"] for flow in flows)
    scale = result.scales[1]
    return Met(
        float(rates[:half].sum() / rates.sum()),
        link["delay"]["mean"] / full,
        link["utilization"],
        again / sent,
        float(np.nanmean([result.smoothness(flow, [scale])[scale] for flow in flows])),
    )


@exhibit("matrix", "New: all laws with each other on one grid", cost=45.0, new=True)
def matrix(lab: Lab) -> Findings:
    """Let every law meet every other one on every network of the grid."""
    grid = lab.pick(GRID, QUARTER)
    found = lab.run(
        {
            (pair, network): versus(*pair, network, quick=lab.quick)
            for pair in product(LAWS, LAWS)
            for network in grid
        },
        meet,
        lab.seeds(4),
    )
    met = Meetings(found, grid)
    names = list(LAWS)
    share = np.array([[met.mean_share(a, b) for b in names] for a in names])
    queue = np.array([[met.mean_queue(a, b) for b in names] for a in names])
    labels = [network.label for network in grid]
    against = np.array([[met.on(a, "TCP", n, share=True) for n in grid] for a in names])
    alone = np.array([[met.on(a, a, n, share=False) for n in grid] for a in names])
    figures = [
        Figure(
            "matrix",
            "Means over the grid: share of the row's law against the column's, and the queue",
            [
                _map("share of the row against the column", names, names, share),
                _map("mean queueing delay / full buffer", names, names, queue),
            ],
        ),
        Figure("against-tcp", "Share against TCP by network", [_map("", names, labels, against)]),
        Figure(
            "queue-alone",
            "Mean queueing delay over that of a full buffer, each law alone, by network",
            [_map("", names, labels, alone)],
        ),
    ]
    return Findings(
        _claims(met),
        figures,
        [_summary(met), _factors(met)],
        "both laws; rate, round-trip time, buffer and number of flows",
        [
            "All rules were fixed before the first run.",
            "Shares are averaged over the grid before one is divided by the other.",
            "Each pair runs twice with a seed, either law first: flows draw by their number.",
            f"Grid: {', '.join(labels)}; DropTail. fl counts the flows of both laws.",
            "Rates are far below those DAIMD is made for, so that every law can be on the grid.",
        ],
    )


class Meetings:
    """Everything that was measured, by pair and network.

    Parameters
    ----------
    found
        For each pair, in both orders, and network one `Met` a seed. A flow's start goes by its
        number, so that both orders together favour neither law.
    grid
        The networks.
    """

    def __init__(
        self, found: dict[tuple[Pair, Network], list[Met]], grid: Sequence[Network]
    ) -> None:
        self._found = found
        self.grid = grid

    def shares(self, law: str, other: str, grid: Sequence[Network] | None = None) -> Series:
        """Give the share of a law against another: one row a network, one column a seed."""
        rows = [
            [
                (there.share + 1 - back.share) / 2
                for there, back in zip(
                    self._found[(law, other), network],
                    self._found[(other, law), network],
                    strict=True,
                )
            ]
            for network in grid or self.grid
        ]
        return np.array(rows)

    def ratios(self, law: str, other: str, grid: Sequence[Network] | None = None) -> Series:
        """Give what a law gets over what another gets, by seed, shares averaged over networks."""
        share = self.shares(law, other, grid).mean(axis=0)
        return np.asarray(share / (1 - share))

    def figure(self, law: str, get: Callable[[Met], float]) -> Series:
        """Give a figure of a law alone, by seed, averaged over the networks."""
        values = [[get(m) for m in self._found[(law, law), network]] for network in self.grid]
        return np.asarray(np.mean(values, axis=0))

    def mean_share(self, law: str, other: str) -> float:
        """Average a share over networks and seeds."""
        return float(self.shares(law, other).mean())

    def mean_queue(self, law: str, other: str) -> float:
        """Average the queue of a pair over networks and seeds."""
        return float(np.mean([self.on(law, other, n, share=False) for n in self.grid]))

    def on(self, law: str, other: str, network: Network, *, share: bool) -> float:
        """Give the mean share or queue of a pair on one network."""
        if share:
            return float(self.shares(law, other, [network]).mean())
        met = self._found[(law, other), network] + self._found[(other, law), network]
        return float(np.mean([m.queue for m in met]))


def _claims(met: Meetings) -> list[Claim]:
    """Hold what each paper says of its law, on networks that are not its own."""
    friendly = {
        "SIMD": "SIMD paper: TCP-friendly",
        "GAIMD": "GAIMD paper: TCP-friendly at (0.31, 7/8)",
        "AIRA": "AIRA paper, Fig. 20: SACK fares beside it as before",
        "AIAD_φ": "(own question) friendly to TCP",
    }
    small = [n for n in met.grid if n.rtt**2 * n.rate <= 1e8 * 0.01**2 / 6]
    claims = [
        alike(
            f"{law} over TCP, whole grid",
            met.ratios(law, "TCP"),
            published=said,
            why=WHY_FAR.get(law, ""),
        )
        for law, said in friendly.items()
    ]
    for law in ("DAIMD", "UDT"):
        claims += [
            at_most(
                f"{law} over TCP where Eq. 20 of the DAIMD paper holds (4 Mb/s, 20 ms)",
                1.0,
                met.ratios(law, "TCP", small),
                published="DAIMD paper: obtains less bandwidth than coexisting TCP",
                why=SHORT_QUEUE,
            ),
            at_most(
                f"{law} over TCP, whole grid",
                5.0,
                met.ratios(law, "TCP"),
                published="DAIMD paper: at 1 Gb/s and 100 ms only about 5 times",
            ),
        ]
    claims += [
        alike(
            "CUBIC over TCP at 4 Mb/s and 20 ms",
            met.ratios("CUBIC", "TCP", small),
            published="RFC 9438, section 4.3: as Reno where the product is small",
            why=CUBIC_FAR,
        ),
    ]
    smoother = {"SIMD": "SIMD paper: smoother", "GAIMD": "GAIMD paper: smaller fluctuation"}
    claims += [
        less(
            f"variation of a flow's rate alone, {law} against TCP",
            met.figure(law, lambda m: m.variation),
            met.figure("TCP", lambda m: m.variation),
            published=said,
            why=SMOOTHER,
        )
        for law, said in smoother.items()
    ]
    return [
        *claims,
        less(
            "packets sent again alone, AIRA against TCP",
            met.figure("AIRA", lambda m: m.repeated),
            met.figure("TCP", lambda m: m.repeated),
            published="AIRA paper: fewer retransmissions",
        ),
        less(
            "utilisation alone, TCP against DAIMD",
            met.figure("TCP", lambda m: m.used),
            met.figure("DAIMD", lambda m: m.used),
            published="DAIMD paper: efficient",
            why=DRAINS,
        ),
        *(
            less(
                f"queueing delay alone, TCP against {law}",
                met.figure("TCP", lambda m: m.queue),
                met.figure(law, lambda m: m.queue),
                published="(own question) who gives up less leaves more in the queue",
                why=DRAINS,
            )
            for law in ("SIMD", "GAIMD", "DAIMD", "UDT")
        ),
    ]


def _map(title: str, rows: Sequence[str], columns: Sequence[str], values: Series) -> Panel:
    """Draw a matrix with its numbers."""
    regions = Regions(range(len(columns)), range(len(rows)), values, numbers=True)
    return Panel("", "", title=title, regions=regions, ticks=columns, y_ticks=rows)


def _summary(met: Meetings) -> Table:
    """List each law's figures, means over the grid."""
    rows: list[list[str | float]] = []
    for law in LAWS:
        by_network = met.shares(law, "TCP").mean(axis=1)
        rows.append(
            [
                law,
                met.mean_share(law, "TCP"),
                float(by_network.min()),
                float(by_network.max()),
                met.mean_share(law, "CUBIC"),
                *(
                    float(met.figure(law, get).mean())
                    for get in (
                        lambda m: m.queue,
                        lambda m: m.used,
                        lambda m: m.repeated,
                        lambda m: m.variation,
                    )
                ),
            ]
        )
    columns = [
        "law",
        "share against TCP",
        "lowest network",
        "highest network",
        "share against CUBIC",
        "queue / full, alone",
        "utilisation, alone",
        "sent again, alone",
        "variation of rate, alone",
    ]
    return Table("summary", "Each law on the grid, means over networks and seeds", columns, rows)


FACTORS: dict[str, Callable[[Network], bool]] = {
    "4 Mb/s": lambda n: n.rate < 1e7,
    "20 Mb/s": lambda n: n.rate > 1e7,
    "20 ms": lambda n: n.rtt < 0.1,
    "120 ms": lambda n: n.rtt > 0.1,
    "half a BDP": lambda n: not n.deep,
    "two BDP": lambda n: n.deep,
    "one flow each": lambda n: n.flows == 1,
    "four each": lambda n: n.flows == 4,
}
"""Halves of the grid."""


def _factors(met: Meetings) -> Table:
    """List each law's share against TCP on each half of the grid."""
    rows: list[list[str | float]] = []
    for law in LAWS:
        halves = [[n for n in met.grid if within(n)] for within in FACTORS.values()]
        rows.append([law, *(float(met.shares(law, "TCP", half).mean()) for half in halves)])
    caption = "Share against TCP on halves of the grid"
    return Table("factors", caption, ["law", *FACTORS], rows)
