"""Sections 2, 3 and 5.1 of the SIMD paper: window growth after a loss, and rate under losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import alike, at_least, between, fact, less
from cwnd._papers.simd import networks as net
from cwnd._papers.simd.measures import read_epochs, read_growth, read_shares, throughput
from cwnd._tasks.comparison.verdict import ALIKE
from cwnd.model import law
from cwnd.model.friendliness import simd_alpha, simd_alpha_periodic
from cwnd.model.stationary import stationary
from cwnd.model.throughput import gaimd_td, gaimd_to, simd_eq8

if TYPE_CHECKING:
    from collections.abc import Iterable

GROWTH = {"SIMD(1/16)": 1 / 16, "SIMD(1/8)": 1 / 8, "SIMD(1/4)": 1 / 4}
LINEAR = {"AIMD(1/10, 1/16)": net.LAWS["AIMD"], "IIAD": net.LAWS["IIAD"]}


@exhibit("fig-1", cost=1, seeds=(5, 20), quick=(5, 10))
def fig_1(lab: Lab) -> None:
    """Compare windows after their last loss with Eq. 4."""
    cases = {name: net.growth(f"simd(beta={beta})") for name, beta in GROWTH.items()}
    cases |= {name: net.growth(spec) for name, spec in LINEAR.items()}
    cases["small window"] = net.growth(net.SIMD, "8.5mbit")
    cases["TCP"] = net.growth("reno")
    runs = lab.run(cases, read_growth)
    exponents = {name: [g.exponent() for g in found] for name, found in runs.items()}
    for name, beta in GROWTH.items():
        over = [g.window / g.eq4(beta) for g in runs[name]]
        lab.number("eq-4", [float(x[np.argmax(np.abs(x - 1))]) for x in over], law=name)
        alphas = [g.alpha / float(simd_alpha(beta, g.largest)) for g in runs[name]]
        lab.number("eq-3", alphas, law=name)
        lab.claim("square", between(1.95, 2.05, exponents[name]), law=name)
    aimd, iiad = (exponents[name] for name in LINEAR)
    lab.claim("linear", between(0.95, 1.05, aimd))
    lab.claim("sub-linear", less(iiad, aimd))
    small, large = ([g.grown(50) for g in runs[x]] for x in ("small window", "SIMD(1/16)"))
    lab.claim("aggressive", less(large, small))
    simd, tcp = ([g.grown(10) for g in runs[x]] for x in ("SIMD(1/16)", "TCP"))
    lab.claim("conservative", less(simd, tcp))

    def panel(title: str, names: Iterable[str]) -> Panel:
        curves = []
        for color, name in enumerate(names):
            g = runs[name][0]
            curves.append(Curve(name, g.rtts, g.window, color=color))
            if name in GROWTH:
                y = g.eq4(GROWTH[name])
                curves.append(Curve(f"{name}, Eq. 4", g.rtts, y, color=color, dashed=True))
        return Panel("round-trip times since the loss", "window, packets", curves, title)

    panels = [panel("super-linear: SIMD", GROWTH), panel("linear and below: AIMD, IIAD", LINEAR)]
    lab.show(Figure("Increase patterns of the congestion window", panels))


def periodic_epoch(beta: float, w: float, alpha: float) -> tuple[float, int]:
    """Iterate Eq. 9 between losses at ``w`` packets; return round-trip times and packets."""
    start = window = (1 - beta) * w
    rounds, packets = 0.0, 0
    while window < w:
        each = alpha * np.sqrt(window - start) if packets else alpha**2 / 4
        window += each / window
        rounds += 1 / window
        packets += 1
    return rounds, packets


RANDOM = (0.001, 0.002, 0.005, 0.01)
LOSS_WINDOWS = (20, 50, 100)
"""Packets in flight at periodic losses."""


@exhibit("eq-6", cost=4, seeds=(5, 10), quick=(8, 8))
def eq_6(lab: Lab) -> None:
    """Compare the increases of section 3 with the law and with runs."""
    for p in RANDOM:
        j = np.arange(round(40 / p))
        exact = float(np.sum(j**2 * (1 - p) ** j * p))
        lab.number("sum", exact / (2 / p**2), p=p)
    for p in lab.pick((1e-4, 1e-3, 1e-2), (1e-3, 1e-2)):
        chain = stationary(net.SIMD, p, ideal=True)
        before = float(np.sum(chain.grid * chain.at_loss))
        alpha2 = float(np.sum(np.asarray(simd_alpha(1 / 16, chain.grid)) ** 2 * chain.at_loss))
        increase = before / 16
        lab.number("random-law", increase / (alpha2 / (2 * (p * chain.mean) ** 2)), p=f"{p:g}")
    for w in LOSS_WINDOWS:
        tooth = law.sawtooth(net.SIMD, w)
        epoch, mean = float(tooth.packets), float(tooth.packets / tooth.rounds)
        expected = float(simd_alpha(1 / 16, w)) ** 2 / 4 * (epoch / mean) ** 2
        lab.number("periodic-law", float(w - tooth.after) / expected, w=w)
        alpha = float(simd_alpha_periodic(1 / 16, w))
        rounds, packets = periodic_epoch(1 / 16, w, alpha)
        lab.number("duration", rounds / (2 * np.sqrt(w / 16) / alpha), w=w)
        lab.number("packets", packets / ((1 - 1 / 24) * w * rounds), w=w)
        lab.number("eq-5", packets / rounds / np.sqrt(1.5 * packets), w=w)
    random = lab.run(
        {p: net.random_loss(net.SIMD, p, lab.pick(12000, 3000)) for p in RANDOM}, read_epochs
    )
    periodic = lab.run({w: net.periodic_loss(net.SIMD, w) for w in LOSS_WINDOWS}, read_epochs)
    relation = []
    for p, found in random.items():
        eq6 = [e.alpha2 / (2 * (p * e.window) ** 2) for e in found]
        lab.claim("random", alike([e.increase for e in found], eq6), p=p)
        relation.append([e.relation() for e in found])
        lab.number("friendly", relation[-1], p=p)
    for w, found in periodic.items():
        eq7 = [e.alpha2 / (4 * (e.loss * e.window) ** 2) for e in found]
        lab.claim("periodic", alike([e.increase for e in found], eq7), w=w)
        lab.number("unfriendly", [e.relation() for e in found], w=w)
    curves = [
        Curve.of_means("random losses", RANDOM, relation, "points"),
        Curve("TCP-friendly", RANDOM, np.ones(len(RANDOM)), "published"),
        Curve("periodic losses, by Eq. 5", RANDOM, np.full(len(RANDOM), 2**-0.25), dashed=True),
    ]
    axes = ("packet loss rate p", "rate over √(3/2)/(R√p)")
    panel = Panel(*axes, curves, x_log=True, y_limits=(0.0, 1.2))
    lab.show(Figure("SIMD(1/16) with Eq. 3", [panel], columns=1))


LOSSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
AIMD = "AIMD(1/5, 1/8)"
CURVES = {
    "SIMD(1/16)": net.SIMD,
    "SIMD(1/8)": "simd(beta=1/8)",
    "SIMD(1/4)": "simd(beta=1/4)",
    "SIMD(1/2)": "simd(beta=1/2)",
    AIMD: "aimd(0.2, 1/8)",
}


@exhibit("fig-5", cost=15, seeds=(10, 20), quick=(8, 8))
def fig_5(lab: Lab) -> None:
    """Compare the throughput of SIMD and AIMD(1/5, 1/8) with TCP's at each loss rate."""
    losses = lab.pick(LOSSES, (0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 0.3))
    low, high = losses[0], losses[-1]
    specs = {**CURVES, "TCP": "reno"}
    cases = {(name, p): net.random_loss(specs[name], p) for name in specs for p in losses}
    runs = lab.run(cases, throughput)
    over = {
        (name, p): [x / tcp for x, tcp in zip(runs[name, p], runs["TCP", p], strict=True)]
        for name in CURVES
        for p in losses
    }
    for name in CURVES:
        middle = np.mean([over[name, p] for p in losses if 0.05 <= p <= 0.2], axis=0)
        for p in (low, high):
            lab.claim("dip", less(middle, over[name, p]), law=name, p=p)
            lab.claim("ends", alike(runs[name, p], runs["TCP", p]), law=name, p=p)
    simd = {p: over["SIMD(1/16)", p] for p in losses}
    aimd = {p: over[AIMD, p] for p in losses}
    lab.claim("at-least", at_least(0.75, simd[0.15]))
    seeds = range(len(simd[low]))
    lab.number("worst", [100 * min(losses, key=lambda p: simd[p][seed]) for seed in seeds])
    lowest = min(losses, key=lambda p: float(np.mean(simd[p])))
    lab.claim("lowest", at_least(0.75, simd[lowest]))
    for name in ("SIMD(1/8)", "SIMD(1/4)", "SIMD(1/2)"):
        lab.claim("worse", less(simd[0.15], over[name, 0.15]), law=name)
    lab.claim("closer-at", less(aimd[0.15], simd[0.15]))

    def distance(ratios: dict[float, list[float]]) -> list[float]:
        return [float(np.mean([abs(ratios[p][seed] - 1) for p in losses])) for seed in seeds]

    lab.claim("closer", less(distance(simd), distance(aimd)))
    for p in losses:
        if low < p < 0.05:
            lab.claim("internet", alike(runs["SIMD(1/16)", p], runs["TCP", p]), p=p)
    grid = np.geomspace(low, high, 121)
    eq8 = {
        rto: np.asarray(simd_eq8(grid, 0.1, rto, 1 / 5, 1 / 8, 128))
        / np.asarray(simd_eq8(grid, 0.1, rto, max_window=128))
        for rto in (0.2, 0.4)
    }
    dips = "; ".join(
        f"T₀ = {rto:g} s: {y.min():.2f} at p = {grid[np.argmin(y)]:.2g}" for rto, y in eq8.items()
    )
    inside = all(0 < np.argmin(y) < grid.size - 1 for y in eq8.values())
    lab.claim("eq-8", fact(dips, holds=inside))
    for key, p in (("low-loss", low), ("high-loss", high)):
        over_td = [float(gaimd_to(p, rto)) / float(gaimd_td(p, 0.1)) for rto in eq8]
        holds = max(over_td) < 1 if key == "low-loss" else min(over_td) > 1
        words = " and ".join(f"{ratio:.2g}" for ratio in over_td)
        lab.claim(key, fact(f"{words} times, T₀ = 0.2 and 0.4 s", holds=holds))
    ns2 = lab.text.printed["ns-2"]
    shown = {f"p = {p:g}": {ns2.columns[0]: aimd[p]} for p in losses if f"p = {p:g}" in ns2.rows}
    lab.cells("ns-2", shown, kind="ns-2")
    curves = [Curve.of_means(name, losses, [over[name, p] for p in losses]) for name in CURVES]
    curves += [
        Curve(f"Eq. 8, {AIMD}, T₀ = {rto:g} s", grid, y, color=4 + i, dashed=True)
        for i, (rto, y) in enumerate(eq8.items())
    ]
    curves.append(Curve("SIMD(1/16): at least", [0.15], [0.75], "published"))
    axes = ("packet loss rate p", "throughput over TCP's")
    panel = Panel(*axes, curves, x_log=True, y_limits=(0.0, 1.4))
    lab.show(Figure("TCP-friendliness", [panel], columns=1))


RECOVERIES = {"Reno": "reno", "NewReno": "newreno"}


@exhibit("section-5", cost=2, seeds=(10, 20), quick=(5, 5), beside="fig-5")
def section_5(lab: Lab) -> None:
    """Repeat points of Figures 5 and 7 with other recoveries, and of Figure 5 with a larger α."""
    losses = lab.pick((0.001, 0.01, 0.02, 0.05, 0.1, 0.2), (0.01, 0.1))
    laws = {"SIMD": net.SIMD, "TCP": "reno"}
    runs = lab.run(
        {
            (law, recovery, p): net.random_loss(spec, p, recovery=recovery)
            for law, spec in laws.items()
            for recovery in ("sack", *RECOVERIES.values())
            for p in losses
        },
        throughput,
    )
    mild = [p for p in losses if p < 0.03]
    large = lab.run({p: net.random_loss("aimd(0.4, 1/8)", p) for p in mild}, throughput)
    warmup, measured = lab.pick((30, 60), (15, 25))
    shared = lab.run(
        {
            name: net.compatibility(
                15, "RED", 8, warmup=warmup, measured=measured, recovery=recovery
            )
            for name, recovery in RECOVERIES.items()
        },
        read_shares,
    )

    def over_tcp(recovery: str, p: float) -> list[float]:
        pairs = zip(runs["SIMD", recovery, p], runs["TCP", recovery, p], strict=True)
        return [x / tcp for x, tcp in pairs]

    for name, recovery in RECOVERIES.items():
        for p in losses:
            lab.claim("similar", alike(over_tcp(recovery, p), over_tcp("sack", p)), name=name, p=p)
        means = ([getattr(run, group).mean() for run in shared[name]] for group in ("law", "tcp"))
        lab.claim("compatible", alike(*means), name=name)
    for p in mild:
        tcp = runs["TCP", "sack", p]
        lab.claim(
            "large", at_least(ALIKE, [x / y for x, y in zip(large[p], tcp, strict=True)]), p=p
        )
    rows = {
        (recovery, p): [[ratio] for ratio in over_tcp(recovery, p)]
        for recovery in ("sack", *RECOVERIES.values())
        for p in losses
    }
    lab.means(["recovery", "p", "SIMD over TCP"], rows)
