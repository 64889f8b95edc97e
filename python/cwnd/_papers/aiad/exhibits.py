"""Sections II and IV: estimators, figures, and the effects of buffers and timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.aiad import networks as net
from cwnd._papers.aiad.measures import Spread, alone, capture, course, filtered, quality, spread
from cwnd._papers.aiad.networks import CBR, KAPPA, PHI, RATE, RHO, letter, steady_reverse
from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel, sweep
from cwnd._papers.grades import alike, at_least, at_most, less
from cwnd._tasks.comparison.verdict import ALIKE
from cwnd.stats import POSITIVE, UNIT, estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMES = {KAPPA: "AIAD_κ", PHI: "AIAD_φ"}
TICK = 1e-3
"""Relative error of a sample with a clock of 1 µs: 1 µs of a packet's 2.67 ms, rounded up."""
REVERSE = (0.5e6, 1e6, 1.5e6, 2e6, 2.4e6, 2.8e6)
"""Rates of the CBR flow on the reverse path in bit/s."""


@exhibit("eq-2-3", cost=2, seeds=(8, 16), quick=(8, 8))
def eq_2_3(lab: Lab) -> None:
    """Compare the estimators with their equations, for single samples and filtered."""
    duration = lab.pick(100.0, 75.0)
    reverse = lab.run(
        {(law, u): steady_reverse(law, u, duration=duration) for law in NAMES for u in REVERSE},
        filtered,
    )
    shared = lab.run({n: letter(PHI, n, duration=50.0) for n in (1, 5, 20)}, filtered)
    one = [capture(KAPPA, 1, seed) for seed in range(1, 1 + lab.seeds)]
    five = [capture(PHI, 5, seed) for seed in range(1, 1 + lab.seeds)]
    lab.claim("phi-most", at_most(1 + TICK, [s.receiving.max() / RATE for s in five]))
    lab.claim("phi", alike([np.median(s.receiving / (RATE * s.share)) for s in five], 1))
    lab.claim("kappa-most", at_least(1.0, [s.acks.max() / RATE for s in one]))
    lab.claim("kappa-limit", at_most(1 + TICK, [s.acks.max() * RHO / RATE for s in one]))
    for n, runs in shared.items():
        lab.claim("phi-filtered", alike([total for total, _ in runs], 1), flows=n)
        lab.claim("phi-filtered-most", at_most(1.0, [most for _, most in runs]), flows=n)
    for u in (1e6, 2e6, 2.8e6):
        rates = [rate / _eq_3(u) for rate, _ in reverse[KAPPA, u]]
        lab.claim("kappa-filtered", alike(rates, 1), rate=f"{u / 1e6:g}")
    # The mean of the intervals is that of 1/rate: samples are weighted with their intervals.
    average = [float(np.mean(1 / s.receiving) / np.mean(1 / s.acks)) for s in one]
    lab.claim("kappa-average", alike(average, 1))
    printed = [rate * RHO for rate, _ in reverse[KAPPA, CBR]]
    lab.claim("kappa-printed", alike(printed, 1))
    share = np.linspace(0.0, 1.0, 200)
    named = {"x, sent": one[0].sending, "φ, received": one[0].receiving, "κ, ACKs": one[0].acks}
    curves = [Curve(name, np.quantile(v / 1e6, share), share) for name, v in named.items()]
    for name, at in {"C": RATE, "C / 0.04": RATE / RHO}.items():
        curves.append(Curve(name, [at / 1e6] * 2, [0.0, 1.0], dashed=True))
    samples = Panel("sample, Mb/s", "fraction below", curves, "samples, N = 1", x_log=True)
    x = np.array(REVERSE) / 1e6
    curves = [
        Curve.of_means(name, x, [[rate for rate, _ in reverse[law, u]] for u in REVERSE])
        for law, name in NAMES.items()
    ]
    curves.append(Curve("Eq. 3, CBR counted", x, [_eq_3(u) for u in REVERSE], dashed=True))
    means = Panel("CBR on the reverse path, Mb/s", "mean estimate / C", curves, "filtered, N = 1")
    lab.show(Figure("Samples of one flow with a busy reverse path; filtered", [samples, means]))


def _eq_3(cbr: float) -> float:
    """Return Eq. 3 over C for one flow that uses the whole bottleneck and CBR of ``cbr`` bit/s."""
    return RATE / (RHO * RATE + cbr)


@exhibit("fig-2", cost=2, seeds=(10, 40), quick=(6, 12))
def fig_2(lab: Lab) -> None:
    """Run one flow with an on-off CBR flow on the reverse path."""
    cases = {law: letter(law, duration=lab.pick(500.0, 250.0)) for law in NAMES}
    runs = lab.run(cases, alone)
    kappa, phi = runs[KAPPA], runs[PHI]
    lab.claim("kappa-over", at_least(1.0, [run.on for run in kappa]))
    lab.claim("kappa-busy", less([run.off for run in kappa], [run.on for run in kappa]))
    lab.claim("phi-exact", alike([run.on for run in phi], 1))
    lab.claim("smooth", less([run.cov for run in phi], [run.cov for run in kappa]))
    lab.claim("drops", less([run.drops for run in phi], [run.drops for run in kappa]))
    courses = lab.run(cases, course, seeds=1)
    top = max(rate.max() for [(_, rate, _, _)] in courses.values()) / 1e6
    panels = []
    for law, [(time, rate, bins, throughput)] in courses.items():
        edges = np.arange(0.0, time[-1] + 1, net.BUSY)
        cbr = np.where(np.arange(edges.size) % 2 == 1, CBR, 0.0)
        curves = [
            Curve("rate estimate", time, rate / 1e6),
            Curve("throughput", bins, throughput / 1e6, "steps"),
            Curve("CBR on the reverse path", edges, cbr / 1e6, "steps", dashed=True),
        ]
        panels.append(Panel("time, s", "Mb/s", curves, NAMES[law], y_limits=(0.0, 1.05 * top)))
    lab.show(Figure("Rate estimate and throughput of one flow", panels))


LOST = (0.01, 0.1, 0.3)
"""Probabilities of the loss of an ACK."""


@exhibit("lost-acks", cost=2, seeds=(10, 20), quick=(6, 6))
def lost_acks(lab: Lab) -> None:
    """Run the flow of `fig_2` with lost ACKs."""
    losses, duration = lab.pick(LOST, LOST[1:2]), lab.pick(500.0, 150.0)
    cases = {
        (law, p): net.lossy_reverse(law, p, duration=duration) for law in NAMES for p in losses
    }
    runs = lab.run(cases, alone)
    for p in losses:
        kappa, phi = runs[KAPPA, p], runs[PHI, p]
        lab.claim("exact", alike([run.on for run in phi], 1), loss=f"{100 * p:g}")
        errors = ([abs(run.on - 1) for run in found] for found in (phi, kappa))
        lab.claim("closer", less(*errors), loss=f"{100 * p:g}")
        grade = less([run.cov for run in phi], [run.cov for run in kappa])
        lab.claim("smooth", grade, loss=f"{100 * p:g}")
    means = {(NAMES[law], p): [[x.on, x.cov] for x in found] for (law, p), found in runs.items()}
    lab.means(["", "ACKs lost", "estimate over C", "variation of throughput"], means)


SMALL = {"κ": (KAPPA, 20), "φ": (PHI, 20)}
"""Controller and buffer by name, for buffers of 20 packets."""


def _spreads(
    lab: Lab, counts: Sequence[int], cases: Mapping[str, tuple[str, int]]
) -> dict[tuple[str, int], list[Spread]]:
    """Run controllers with their buffers; results by case and number of flows."""
    long = lab.pick(500.0, 250.0)
    scenarios = {
        (name, n): letter(law, n, queue=size, duration=long, sample="10s")
        for name, (law, size) in cases.items()
        for n in counts
    }
    return lab.run(scenarios, spread)


def _show(lab: Lab, title: str, runs: Mapping[tuple[str, int], list[Spread]]) -> None:
    """Draw the evenness of the flows' rates."""
    labels = {"deviation": "standard deviation of x̂/x₀", "jain": "Jain's index"}
    panels = []
    for key, label in labels.items():
        values = {
            (f"AIAD_{name}", n): [getattr(run, key) for run in found]
            for (name, n), found in runs.items()
        }
        curves = sweep(values, UNIT if key == "jain" else POSITIVE)
        panels.append(Panel("number of flows N", label, curves))
    lab.show(Figure(title, panels))


@exhibit("fig-3", cost=95, seeds=(16, 16), quick=(5, 10))
def fig_3(lab: Lab) -> None:
    """Run 5 to 200 flows on the bottleneck."""
    counts = lab.pick((5, 10, 20, 50, 100, 150, 200), (5, 20, 200))
    runs = _spreads(lab, counts, SMALL)
    jain = {case: [run.jain for run in found] for case, found in runs.items()}
    spreads = {case: [run.deviation for run in found] for case, found in runs.items()}
    for n in counts:
        if n >= 20:
            more = [ALIKE * value for value in spreads["φ", n]]
            lab.claim("spread", less(more, spreads["κ", n]), flows=n)
    lab.claim("jain", less(jain["κ", 200], jain["κ", 5]))
    for n in (5, 200):
        lab.claim("fair", alike(jain["φ", n], 1), flows=n)
    lab.claim("kappa-unfair", less(spreads["κ", 5], spreads["κ", 200]))
    varied = {case: [run.fluctuation for run in found] for case, found in runs.items()}
    lab.claim("fluctuates", less(varied["κ", 5], varied["κ", 200]))
    for n in counts:
        if n >= 20:
            lab.claim("steadier", less(varied["φ", n], varied["κ", n]), flows=n)
    _show(lab, "Evenness of the throughputs", runs)


@exhibit("buffers", cost=13, seeds=(8, 16), quick=(5, 10), beside="fig-3")
def buffers(lab: Lab) -> None:
    """Run AIAD_κ with ten times the buffer of AIAD_φ."""
    counts = lab.pick((5, 20, 50, 100, 200), (5, 20, 200))
    large = "κ, 200 packets"
    runs = _spreads(lab, counts, SMALL | {large: (KAPPA, 200)})
    for n in counts:
        roomy, small = runs[large, n], runs["φ", n]
        spreads = [[run.deviation for run in found] for found in (roomy, runs["κ", n], small)]
        lab.claim("helps", less(spreads[0], spreads[1]), flows=n)
        lab.claim("deviation", alike(spreads[0], spreads[2]), flows=n)
        lab.claim("jain", alike([run.jain for run in roomy], [run.jain for run in small]), flows=n)
    _show(lab, "κ with ten times the buffer, and both with 20 packets", runs)


CLOCKS = ("1us", "1ms", "10ms", "100ms", "1s")
PLACES = {"one flow": (1, 1.0), "20 flows": (20, 1.0), "one flow at 30 Mb/s": (1, 10.0)}
"""Number of flows, and factor of the rates and of the buffer."""


@exhibit("granularity", cost=7, seeds=(8, 8), quick=(6, 6), new=True)
def granularity(lab: Lab) -> None:
    """Increase the clock granularity at the receiver until φ is no better than κ."""
    duration = lab.pick(250.0, 100.0)
    places = dict(list(PLACES.items())[: lab.pick(3, 2)])
    laws = {"κ": (KAPPA, "1us")} | {clock: (PHI, clock) for clock in CLOCKS}
    scenarios = {}
    for place, (n, scale) in places.items():
        for name, (law, clock) in laws.items():
            scenarios[place, name] = letter(
                law, n, queue=int(20 * scale), duration=duration, clock=clock, scale=scale
            )
    runs = lab.run(scenarios, quality)
    for clock in CLOCKS:
        for place in places:
            errors = ([run.error for run in runs[place, name]] for name in (clock, "κ"))
            lab.claim("error", less(*errors), place=place, clock=clock)
        if clock != CLOCKS[0]:
            spreads = ([run.deviation for run in runs["20 flows", name]] for name in (clock, "κ"))
            lab.claim("spread", less(*spreads), clock=clock)
    labels = {"error": "mean error of the estimate / fair share", "drops": "drops, % of arrivals"}
    panels = []
    for key, label in labels.items():
        curves = []
        for color, place in enumerate(places):
            by = {name: [getattr(run, key) for run in runs[place, name]] for name in laws}
            x, level = range(len(CLOCKS)), estimate(by["κ"]).mean
            phi = [by[clock] for clock in CLOCKS]
            curves.append(Curve.of_means(f"φ, {place}", x, phi, color=color))
            curves.append(Curve("", [x[0], x[-1]], [level] * 2, color=color, dashed=True))
        panels.append(
            Panel("receiver's clock", label, curves, "dashed: κ", ticks=CLOCKS, y_log=True)
        )
    lab.show(Figure("κ, and φ by ever coarser timestamps", panels))
