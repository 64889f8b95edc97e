"""Pairs of all laws of the five papers, TCP and controllers of today on one grid of networks."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cwnd._papers.beyond.networks import (
    GRID,
    HALVES,
    LAWS,
    PACKET_BITS,
    QUARTER,
    SMALL,
    Network,
    versus,
)
from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Figure, Panel, Regions, Table
from cwnd._papers.grades import alike, at_least, at_most, between, less
from cwnd.stats import UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import Series
    from cwnd._runs.result import Result


class Met(NamedTuple):
    """Measurements of two laws on one network."""

    share: float  # goodput of the first law's flows over that of all
    queue: float  # mean queueing delay over that of a full buffer
    used: float  # utilisation of the bottleneck
    repeated: float  # retransmissions over packets sent
    variation: float  # mean coefficient of variation of a flow's rate over 10 round-trip times


Found: TypeAlias = "dict[tuple[str, str, Network], list[Met]]"


def meet(result: Result) -> Met:
    """Measure a run of `versus`."""
    flows = result.measured_flows
    half = len(flows) // 2
    rates = np.array([result.goodput_bps(flow) for flow in flows])
    link = result.bottleneck
    scale = result.scales[1]
    return Met(
        float(rates[:half].sum() / rates.sum()),
        link["delay"]["mean"] * link["rate_bps"] / (link["queue_limit"] * PACKET_BITS),
        link["utilization"],
        sum(f["retransmissions"] for f in flows) / sum(f["packets_sent"] for f in flows),
        float(np.nanmean([result.smoothness(flow, [scale])[scale] for flow in flows])),
    )


class Meetings:
    """Measurements by pair, in both orders, and network: one `Met` for each seed."""

    def __init__(self, found: Found, grid: Sequence[Network]) -> None:
        self._found = found
        self.grid = grid

    def shares(self, law: str, other: str, grid: Sequence[Network] | None = None) -> Series:
        """Return the share of a law against another: one row per network, one column per seed."""
        rows = [
            [
                (there.share + 1 - back.share) / 2
                for there, back in zip(
                    self._found[law, other, network], self._found[other, law, network], strict=True
                )
            ]
            for network in grid or self.grid
        ]
        return np.array(rows)

    def ratios(self, law: str, grid: Sequence[Network] | None = None) -> Series:
        """Return a law's goodput over TCP's for each seed; shares are first averaged."""
        share = self.shares(law, "TCP", grid).mean(axis=0)
        return np.asarray(share / (1 - share))

    def alone(self, law: str, quantity: str, grid: Sequence[Network] | None = None) -> Series:
        """Return a quantity of a law alone for each seed, averaged over networks."""
        values = [
            [getattr(met, quantity) for met in self._found[law, law, network]]
            for network in grid or self.grid
        ]
        return np.asarray(np.mean(values, axis=0))

    def eq_20(self, law: str, grid: Sequence[Network]) -> Series:
        """Return RTT² L / (SYN² 10⁸/6) beside TCP for each seed, averaged over networks.

        The round-trip time includes the mean queueing delay.
        """
        values = [
            [
                (network.rtt + met.queue * network.queue * PACKET_BITS / network.rate) ** 2
                * (network.rate / (0.01**2 * 1e8 / 6))
                for met in self._found[law, "TCP", network]
            ]
            for network in grid
        ]
        return np.asarray(np.mean(values, axis=0))

    def queue(self, law: str, other: str, networks: Sequence[Network]) -> float:
        """Return the mean queue of a pair over networks and seeds."""
        met = (m for n in networks for m in self._found[law, other, n])
        return float(np.mean([m.queue for m in met]))


@exhibit("matrix", cost=55, seeds=(12, 12), quick=(12, 12), new=True)
def matrix(lab: Lab) -> None:
    """Run every pair of laws on every network of the grid."""
    grid = lab.pick(GRID, QUARTER)
    cases = {
        (a, b, n): versus(a, b, n, quick=lab.quick) for a, b in product(LAWS, LAWS) for n in grid
    }
    claimed = {case: run for case, run in cases.items() if "TCP" in case or case[0] == case[1]}
    rest = {case: run for case, run in cases.items() if case not in claimed}
    met = Meetings({**lab.run(claimed, meet), **lab.run(rest, meet, seeds=1)}, grid)
    _claims(lab, met)
    _places(lab, met)
    names = list(LAWS)
    share = np.array([[met.shares(a, b).mean() for b in names] for a in names])
    queue = np.array([[met.queue(a, b, grid) for b in names] for a in names])
    labels = [network.label for network in grid]
    against = np.array([[met.shares(a, "TCP", [n]).mean() for n in grid] for a in names])
    alone = np.array([[met.queue(a, a, [n]) for n in grid] for a in names])
    lab.show(
        Figure(
            "Means over the grid: share of the row's law against the column's, and the queue",
            [
                _map("share of the row against the column", names, names, share),
                _map("mean queueing delay / full buffer", names, names, queue),
            ],
        ),
        Figure("Share against TCP", [_map("", names, labels, against)], name="against-tcp"),
        Figure(
            "Mean queueing delay over that of a full buffer, each law alone",
            [_map("", names, labels, alone)],
            name="queue-alone",
        ),
    )
    _tables(lab, met)


def _claims(lab: Lab, met: Meetings) -> None:
    """Test claims of the papers, and questions of this project, on networks of neither."""
    grids = {"4 Mb/s, 20 ms": [n for n in met.grid if n in SMALL], "whole grid": met.grid}
    for law in LAWS:
        if law not in {"TCP", "LEDBAT"}:
            near = np.abs(met.shares(law, "TCP") - 1 / 2) <= 1 / 6
            lab.claim("factor-two", at_least(0.75, near.mean(axis=0), UNIT), law=law)
    for law in ("SIMD", "GAIMD", "AIRA", "AIAD_φ"):
        lab.claim("friendly", alike(met.ratios(law), 1), law=law)
    for law in ("DAIMD", "UDT"):
        for bound, grid in zip((1.0, 5.0), grids, strict=True):
            grade = at_most(bound, met.ratios(law, grids[grid]))
            lab.claim(f"at-most-{bound:g}", grade, law=law)
    lab.claim("yields", at_most(0.5, met.ratios("LEDBAT")))
    for law in ("BBR", "BBRv3", "Copa", "C4", "LEDBAT"):
        lab.claim("short", less(met.alone(law, "queue"), met.alone("TCP", "queue")), law=law)
    lab.claim("cubic", alike(met.ratios("CUBIC", grids["4 Mb/s, 20 ms"]), 1))
    for law in ("SIMD", "GAIMD"):
        lab.claim(
            "smoother", less(met.alone(law, "variation"), met.alone("TCP", "variation")), law=law
        )
    lab.claim("repeated", less(met.alone("AIRA", "repeated"), met.alone("TCP", "repeated")))
    lab.claim("efficient", less(met.alone("TCP", "used"), met.alone("DAIMD", "used")))
    for law in ("SIMD", "GAIMD", "DAIMD", "UDT"):
        lab.claim("queue", less(met.alone("TCP", "queue"), met.alone(law, "queue")), law=law)


def _places(lab: Lab, met: Meetings) -> None:
    """Test on which of the networks claims hold that do not hold on the whole grid."""
    two = [n for n in met.grid if n.flows == 1]
    far, fast = [n for n in two if n.deep and n.rtt > 0.1], [n for n in two if n.rate > 1e7]
    near = {
        ("DAIMD", "two flows"): two,
        ("UDT", "two flows, 20 ms"): [n for n in two if n.rtt < 0.1],
        ("BBR", "two flows, two BDP, 120 ms"): far,
        ("BBRv3", "two flows, two BDP, 120 ms"): far,
        ("Copa", "two flows, not at 4 Mb/s and 20 ms"): [n for n in two if n not in SMALL],
    }
    for (law, where), grid in near.items():
        if grid:
            lab.claim("near", between(0.5, 2.0, met.ratios(law, grid)), law=law, where=where)
    deep = met.ratios("AIAD_φ", [n for n in two if n.deep])
    lab.claim("equal", alike(deep, 1), law="AIAD_φ", where="two flows, two BDP")
    shorter = {("BBR", "two BDP, 120 ms"): far, ("C4", "20 Mb/s"): fast}
    for (law, where), grid in shorter.items():
        if grid:
            grade = less(met.alone(law, "queue", grid), met.alone("TCP", "queue", grid))
            lab.claim("shorter", grade, law=law, where=where)
    small, short = ([n for n in grid if n in met.grid] for grid in (SMALL, HALVES["half a BDP"]))
    for law in ("DAIMD", "UDT"):
        lab.claim("eq-20", at_least(1.0, met.eq_20(law, small)), law=law)
    slow = [n for n in met.grid if n.queue * PACKET_BITS / n.rate > 0.1]
    lab.claim("yields-slow", at_most(0.5, met.ratios("LEDBAT", slow)))
    lab.number("synchronous", met.ratios("GAIMD"))
    used = [met.alone(law, "used", [n for n in short if n in two]) for law in ("TCP", "DAIMD")]
    lab.claim("efficient-short", less(*used))
    lab.claim("queue-small", less(*(met.alone(law, "queue", small) for law in ("TCP", "UDT"))))


def _map(title: str, rows: Sequence[str], columns: Sequence[str], values: Series) -> Panel:
    """Draw a matrix with its values."""
    regions = Regions(range(len(columns)), range(len(rows)), values, numbers=True)
    return Panel("", "", title=title, regions=regions, ticks=columns, y_ticks=rows)


def _tables(lab: Lab, met: Meetings) -> None:
    """Show each law's means over the grid, and its share against TCP on halves of the grid."""
    halves = [[n for n in half if n in met.grid] for half in HALVES.values()]
    summary: list[list[str | float]] = []
    factors: list[list[str | float]] = []
    for law in LAWS:
        share = met.shares(law, "TCP").mean(axis=1)
        against = [share.mean(), share.min(), share.max(), met.shares(law, "CUBIC").mean()]
        alone = [met.alone(law, of).mean() for of in ("queue", "used", "repeated", "variation")]
        summary.append([law, *map(float, (*against, *alone))])
        factors.append([law, *(float(met.shares(law, "TCP", half).mean()) for half in halves)])
    columns = ["law", "share against TCP", "lowest network", "highest network"]
    columns += ["share against CUBIC", "queue / full, alone", "utilisation, alone"]
    columns += ["retransmission rate, alone", "variation of rate, alone"]
    lab.show(
        Table("summary", "Each law on the grid, means over networks and runs", columns, summary),
        Table("factors", "Share against TCP on halves of the grid", ["law", *HALVES], factors),
    )
