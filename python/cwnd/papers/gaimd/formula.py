"""Sending-rate formula of the GAIMD paper, and its validation in section 2.4."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from cwnd.model.throughput import (
    gaimd,
    gaimd_td,
    gaimd_timeout_probability,
    gaimd_to,
    pftk,
    square_root,
)
from cwnd.papers.exhibit import Lab, exhibit
from cwnd.papers.figure import Curve, Figure, Panel
from cwnd.papers.gaimd import networks as net
from cwnd.papers.gaimd.measures import Group, group, see_both
from cwnd.papers.grades import alike, at_least, between, fact
from cwnd.stats import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.papers.gaimd.networks import Pair

LAWS: dict[str, Pair] = {"GAIMD": net.SMOOTH, "Reno": net.TCP}


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
    rates = gaimd(0.02, rtt, rto, alpha=alphas, beta=1 - kept)
    rises = bool(np.all(np.diff(rates, axis=0) > 0) and np.all(np.diff(rates, axis=1) > 0))
    lab.claim("rises", fact("everywhere" if rises else "not everywhere", holds=rises))
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


@exhibit("section-2.4", cost=21, seeds=(8, 16), quick=(6, 6))
def section_2_4(lab: Lab) -> None:
    """Apply the formula to 16 GAIMD and 16 Reno flows among ON/OFF sources."""
    light, heavy = lab.pick(((10, 30, 50, 70), (85, 100, 115)), ((10, 70), (100,)))
    every = (*light, *heavy)
    runs = lab.run(
        {(of, m): net.validation(net.SMOOTH, m, of) for of in net.QUEUES for m in every}, see_both
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
                m: group([run[color] for run in runs[network, m]], pair, net.clock(network))
                for m in every
            }
            groups[law] = found
            over = {m: [g.ratio for g in found[m]] for m in every}
            of = {"network": network, "law": law}
            lab.claim("accurate-light", alike(np.mean([over[m] for m in light], axis=0), 1), **of)
            for m in heavy:
                lab.claim("accurate", alike(over[m], 1), **of, sources=m)
            lab.claim("upper", at_least(1.0, min(over.values(), key=fmean)), **of)
            by_lost = np.mean([[g.lost_ratio for g in found[m]] for m in every], axis=0)
            lab.claim("by-lost", alike(by_lost, 1), **of)
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
    cases = {p: net.validation(p, 30, network) for p in pairs if p not in LAWS.values()}
    for pair, runs in lab.run(cases, see_both).items():
        found = group([run[0] for run in runs], pair, net.clock(network))
        of = {"alpha": f"{pair[0]:g}", "beta": f"{pair[1]:g}"}
        lab.claim("grid", alike([g.ratio for g in found], 1), **of)
