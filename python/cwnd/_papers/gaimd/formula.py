"""Sending-rate formula of the GAIMD paper, and its validation in section 2.4."""

from __future__ import annotations

from math import comb
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel, Table
from cwnd._papers.gaimd import networks as net
from cwnd._papers.gaimd.measures import Group, Seen, group, see_both
from cwnd._papers.gaimd.rounds import Totals, play
from cwnd._papers.grades import alike, at_least, at_most, between, fact, less
from cwnd._tasks.comparison.verdict import ALIKE
from cwnd.model.throughput import (
    gaimd,
    gaimd_td,
    gaimd_timeout_probability,
    gaimd_to,
    pftk,
    square_root,
)
from cwnd.stats import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd._papers.gaimd.networks import Pair

LAWS: dict[str, Pair] = {"GAIMD": net.SMOOTH, "Reno": net.TCP}


@exhibit("eq-1", cost=0.1)
def eq_1(lab: Lab) -> None:
    """Iterate AIMD with synchronous feedback over a wide range of α, β and starting windows."""
    capacity, steps = 100.0, 20_000
    grid = np.meshgrid((0.1, 0.31, 1.0, 2.0, 5.0), (0.05, 0.25, 0.5, 0.75, 0.875, 0.95))
    alpha, kept = (of.reshape(-1, 1, 1) for of in grid)
    starts = np.array([[0, 0, 90], [1, 2, 3], [30, 40, 50], [200, 10, 0]], dtype=float)
    windows = np.broadcast_to(starts, (alpha.shape[0], *starts.shape)).copy()
    first = np.ptp(windows, axis=-1).max()
    low, high = np.full(windows.shape[:2], np.inf), np.zeros(windows.shape[:2])
    for step in range(steps):
        over = windows.sum(axis=-1, keepdims=True) > capacity
        windows = np.where(over, kept * windows, windows + alpha)
        if step >= steps // 2:
            total = windows.sum(axis=-1)
            low, high = np.minimum(low, total), np.maximum(high, total)
    apart = float(np.ptp(windows, axis=-1).max())
    words = f"largest difference of two windows {apart:.1g} packets, {first:g} at first"
    lab.claim("fair", fact(words, holds=apart < 1e-6))
    flows = starts.shape[-1]
    above = float((high - capacity - flows * alpha[..., 0]).max())
    below = float((kept[..., 0] * capacity - low).max())
    words = f"largest excess above {above:.2g}, below {below:.2g} packets"
    lab.claim("stable", fact(words, holds=above <= 0 and below <= 0))
    parts = (alpha, kept, np.ptp(windows, axis=-1).max(axis=-1), low.min(-1), high.max(-1))
    rows = np.column_stack([part.reshape(-1) for part in parts]).tolist()
    heads = ["α", "β", "largest difference, packets", "least sum", "largest sum"]
    lab.show(Table("windows", "Windows in the second half of the rounds", heads, rows))


@exhibit("eq-2", cost=0.1)
def eq_2(lab: Lab) -> None:
    """Reduce the sending rate to two known formulas."""
    p, rtt, rto = np.logspace(-4, np.log10(0.5), 200), 0.1, 0.4

    def same(key: str, ratios: Iterable[object]) -> None:
        worst = max(float(np.max(np.abs(np.asarray(ratio) - 1))) for ratio in ratios)
        lab.claim(key, fact(f"largest relative difference {worst:.1g}", holds=worst < 1e-12))

    same("square-root", (1 / gaimd_td(p, rtt, b) / square_root(p, rtt, b) for b in (1, 2)))
    same("pftk", (gaimd(p, rtt, rto, b) / pftk(p, rtt, rto, b) for b in (1, 2)))
    small = np.array([1e-7, 1e-6])
    lab.number("td-power", float(np.diff(np.log10(gaimd_td(small, rtt)))[0]))
    lab.number("to-power", float(np.diff(np.log10(gaimd_to(small, rto)))[0]))
    kept, alphas = np.linspace(0.05, 0.95, 19)[:, None], np.array([0.1, 0.31, 1.0, 2.0])
    rates = np.asarray(gaimd(0.02, rtt, rto, alpha=alphas, beta=1 - kept))
    times = np.geomspace(0.01, 10, 31)
    falls = np.asarray(gaimd(p[:, None, None], times[:, None], times))
    for key, values in (("rises", rates), ("falls", -np.moveaxis(falls, 0, -1))):
        holds = all(bool(np.all(np.diff(values, axis=axis) > 0)) for axis in (0, 1))
        lab.claim(key, fact("everywhere" if holds else "not everywhere", holds=holds))
    least = float(gaimd(0.02, rtt, rto, alpha=1e-12))
    lab.claim("vanishes", fact(f"{least:.1g} packets/s", holds=least < 1e-3))
    light = p[p <= 0.01]
    parts_of = [
        (np.asarray(gaimd_td(light, rtt, **of)), np.asarray(gaimd_to(light, rto, **of)))
        for of in ({"alpha": alpha, "beta": 1 - beta} for alpha, beta in LAWS.values())
    ]
    most = max(float((to / td).max()) for td, to in parts_of)
    lab.claim("dominates", fact(f"TO is at most {most:.2g} of TD", holds=most < 1))
    most = max(float((1 + to / td).max()) for td, to in parts_of)
    lab.claim("mainly", fact(f"at most {most:.3g} times Eq. 2", holds=most <= ALIKE))
    q = np.asarray(gaimd_timeout_probability(p))
    rises = bool(np.all(np.diff(q) >= 0)) and q[0] < 0.02 and q[-1] == 1
    lab.claim("q", fact(f"{q[0]:.2g} to {q[-1]:g}", holds=rises))
    loss = "loss rate p"
    parts = Panel(loss, "seconds per packet", title="TD and TO", x_log=True, y_log=True)
    rate = Panel(loss, "packets/s", title="Eq. 2, RTT 0.1 s, T₀ 0.4 s", x_log=True, y_log=True)
    chance = Panel(loss, "Q", title="Q, the probability of a timeout", x_log=True)
    for color, (label, (alpha, beta)) in enumerate(LAWS.items()):
        given = {"alpha": alpha, "beta": 1 - beta}
        parts.curves += [
            Curve(f"TD, {label}", p, gaimd_td(p, rtt, **given), color=color),
            Curve(f"TO, {label}", p, gaimd_to(p, rto, **given), color=color, dashed=True),
        ]
        rate.curves.append(Curve(label, p, gaimd(p, rtt, rto, **given)))
        chance.curves.append(Curve(label, p, gaimd_timeout_probability(p, **given)))
    lab.show(Figure("The sending rate and its parts", [rate, parts, chance], columns=3))


@exhibit("section-2.4", cost=72, seeds=(8, 16), quick=(6, 6))
def section_2_4(lab: Lab) -> None:
    """Apply the formula to 16 GAIMD and 16 Reno flows among ON/OFF sources."""
    light, heavy = lab.pick(((10, 30, 50, 70), (85, 100, 115)), ((10, 70), (100,)))
    every = (*light, *heavy)
    room = lab.option("room", "")
    runs = lab.run(
        {(of, m): net.validation(net.SMOOTH, m, of, room) for of in net.QUEUES for m in every},
        see_both,
    )
    counts = [int(sources) for sources in lab.text.printed["ns-2"].columns]
    ns2 = {
        row: dict(zip(counts, map(float, cells), strict=True))
        for row, cells in lab.text.printed["ns-2"].rows.items()
    }
    rates, ratios = [], []
    for network in net.QUEUES:
        rate = Panel("p, %", "packets/s", [], network, x_log=True, y_log=True)
        rate.x_limits, rate.y_limits = (0.5, 30), (1, 200)
        ratio = Panel("ON/OFF sources", "Eq. 2 over measured", [], network, y_limits=(0, 6))
        groups: dict[str, dict[int, list[Group]]] = {}
        for color, (law, pair) in enumerate(LAWS.items()):
            found = {
                m: _group(lab, [run[color] for run in runs[network, m]], pair, network)
                for m in every
            }
            groups[law] = found
            over = {m: [g.ratio for g in found[m]] for m in every}
            of = {"network": network, "law": law}
            lab.claim("accurate-light", alike(np.mean([over[m] for m in light], axis=0), 1), **of)
            for m in heavy:
                lab.claim("accurate", alike(over[m], 1), **of, sources=m)
            lab.claim("upper", at_least(1.0, min(over.values(), key=fmean)), **of)
            by_lost = {m: [g.lost_ratio for g in found[m]] for m in every}
            lab.claim("lower", at_most(1.0, max(by_lost.values(), key=fmean)), **of)
            lab.claim("by-lost", alike(np.mean([*by_lost.values()], axis=0), 1), **of)
            lab.claim("trend", less(over[every[0]], over[every[-1]]), **of)
            spread = [[g.rate.std() / g.rate.mean() for g in found[m]] for m in every]
            lab.claim("variation", less(spread[0], spread[-1]), **of)
            known = {m: ns2[f"{network}, {law}"][m] for m in every}
            beside = np.mean([np.divide(over[m], known[m]) for m in every], axis=0)
            lab.claim("ns-2", alike(beside, 1), **of)
            p, measured = (
                np.concatenate([getattr(found[m][0], part) for m in every])
                for part in ("loss", "rate")
            )
            mean_p, formula = (
                [_mean(found[m], part) for m in every] for part in ("loss", "formula")
            )
            rate.curves += [
                Curve(law, 100 * p, measured, "points", color=color),
                Curve(f"{law}, Eq. 2", 100 * np.array(mean_p), formula, color=color, dashed=True),
            ]
            ratio.curves += [
                Curve.of_means(law, every, over.values(), color=color),
                Curve(f"{law}, ns-2", list(known), list(known.values()), "points", color=color),
            ]
        rates.append(rate)
        ratios.append(ratio)
        _conditions(lab, network, groups, heavy, ns2[f"{network}, rate of GAIMD over Reno"])
    lab.show(Figure("Formula and simulation", [*rates, *ratios], columns=3))
    _grid(lab)
    if not lab.quick:
        _assumptions(lab)
        _elsewhere(lab)


def _group(lab: Lab, seen: list[Seen], pair: Pair, network: str) -> list[Group]:
    """Apply Eq. 2 as the trial does."""
    return group(
        seen,
        pair,
        net.clock(network),
        by_lost=lab.option("p", "reductions") == "lost",
        mean_rtt=lab.option("rtt", "timer") == "mean",
    )


def _mean(groups: list[Group], part: str) -> float:
    """Return the mean of an attribute over flows, then over runs."""
    return float(np.mean([getattr(g, part).mean() for g in groups]))


def _conditions(
    lab: Lab,
    network: str,
    groups: dict[str, dict[int, list[Group]]],
    heavy: tuple[int, ...],
    known: dict[int, float],
) -> None:
    """Add claims on the ranges of p and Q, and on the rates of both laws in ns-2."""
    for m in (10, 70):
        p = [100 * float(g.loss.mean()) for g in groups["Reno"][m]]
        lab.number(f"loss-{m}", p, network=network)
    for m in sorted({heavy[0], heavy[-1]}):
        both = zip(*(groups[law][m] for law in LAWS), strict=True)
        p = [float(np.mean([g.loss.mean() for g in run])) for run in both]
        lab.claim("loss-heavy", between(0.06, 0.2, p, UNIT), network=network, sources=m)
    every = [found for law in LAWS for found in groups[law].values()]
    timeouts, likely = (
        np.mean([[getattr(g, part).mean() for g in found] for found in every], axis=0)
        for part in ("timeouts", "likely")
    )
    lab.claim("timeouts", alike(timeouts, likely), network=network)
    beside = [
        [
            a.rate.mean() / b.rate.mean() / known[m]
            for a, b in zip(found, groups["Reno"][m], strict=True)
        ]
        for m, found in groups["GAIMD"].items()
    ]
    lab.claim("ns-2-share", alike(np.mean(beside, axis=0), 1), network=network)


def _grid(lab: Lab) -> None:
    """Vary α and β over a wide range, with 30 ON/OFF sources and the timer granularity of 2000."""
    network = "RED, 0.1 s clock"
    alphas = lab.pick((0.2, 0.31, 1.0, 2.0), (0.31, 1.0))
    kept = lab.pick((0.5, 0.75, 0.875), (0.5, 0.875))
    pairs = [(alpha, beta) for beta in kept for alpha in alphas]
    room = lab.option("room", "")
    cases = {p: net.validation(p, 30, network, room) for p in pairs if p not in LAWS.values()}
    for pair, runs in lab.run(cases, see_both).items():
        found = _group(lab, [run[0] for run in runs], pair, network)
        of = {"alpha": f"{pair[0]:g}", "beta": f"{pair[1]:g}"}
        lab.claim("grid", alike([g.ratio for g in found], 1), **of)


def _assumptions(lab: Lab) -> None:
    """Add claims on Eq. 2 under the assumptions of section 2.2, and on the printed load."""
    pairs: list[Pair] = [(alpha, kept) for kept in (0.75, 0.875) for alpha in (1.0, 2.0)]
    cases = {
        **{(law, p): LAWS[law] for law in LAWS for p in (0.03, 0.1, 0.15)},
        **{(f"GAIMD{pair}", 0.02): pair for pair in pairs},
    }
    found = play(tuple((pair, p) for (_, p), pair in cases.items()))
    for at, ((law, p), (alpha, kept)) in enumerate(cases.items()):
        seen = Totals(*(total[at] for total in found))
        # The timeouts of the three networks are 1.4 to 2.5 times their round-trip times.
        own, counted = (
            np.min(
                [
                    gaimd(loss, 1, rto, alpha=alpha, beta=1 - kept) / seen.rate(1, rto)
                    for rto in (1.4, 2.5)
                ],
                axis=0,
            )
            for loss in (p, seen.cuts / seen.sent)
        )
        of = {"law": law, "loss": f"{p:.0%}"}
        if (law, p) != ("Reno", 0.03):
            lab.claim("model", at_least(5 / 4, counted), **of)
        if p == 0.03:
            lab.claim("own", at_least(1, own), **of)
    # The flows' largest rates: no queue, the least timeout. A source is on for a third of the time.
    flows = sum(16 * float(gaimd(0.3, 0.1, 0.2, alpha=a, beta=1 - b)) for a, b in LAWS.values())
    on = np.arange(71)
    chance = np.array([comb(70, n) * 2.0 ** (70 - n) / 3.0**70 for n in on])
    load = 0.5 * on + flows * 0.008
    excess = float(chance @ np.maximum(load - 15, 0) / (chance @ load))
    lab.claim("overload", fact(f"{excess:.1%}", holds=excess < 0.25))


def _elsewhere(lab: Lab) -> None:
    """Run other bandwidths and delays, with as many sources for each Mb/s."""
    links = {("15mbit", "50ms"): 30, ("7.5mbit", "100ms"): 15, ("30mbit", "20ms"): 60}
    room = lab.option("room", "")
    cases = {
        (rate, delay): net.validation(net.SMOOTH, sources, "RED", room).with_values(
            {"dumbbell.rate": rate, "dumbbell.delay": delay}
        )
        for (rate, delay), sources in links.items()
    }
    runs = lab.run(cases, see_both)
    for color, (law, pair) in enumerate(LAWS.items()):
        first, *others = (
            [g.ratio for g in _group(lab, [run[color] for run in found], pair, "RED")]
            for found in runs.values()
        )
        for (rate, delay), over in zip([*links][1:], others, strict=True):
            lab.claim("elsewhere", alike(over, first), law=law, rate=rate, delay=delay)
