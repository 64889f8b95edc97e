"""Sections II, III and VII: equations, single flows, and an incorrect capacity."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.daimd import measures as read
from cwnd._papers.daimd import networks as net
from cwnd._papers.daimd.networks import LAW
from cwnd._papers.exhibit import exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import alike, at_most, fact
from cwnd.metrics import jain
from cwnd.model import daimd as model
from cwnd.model import daimd_sharing as shared
from cwnd.model.throughput import udt_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd._papers.exhibit import Lab

CAPACITIES = (10.0, 100.0, 200.0, 1000.0)
"""Capacities for single flows in Mb/s."""

FREQUENT = (0.01, 0.03)
"""Loss rates at which several packets of a SYN are lost, for Eq. 3."""

LOSS = 1e-4
"""Loss rate where ten flows fill 1 Gb/s, for the integration of Eq. 5."""

ALONE = (0.5, 3.0, -0.25, -0.7)
"""Relative errors of a single flow's capacity, one for each of the printed conditions."""

ERRORS = (0.25, 0.5, 0.75, 1.5, 3.0, 8.0, -0.1, -0.25, -0.45, -0.5, -0.6, -0.7, -0.8)
"""Relative errors ε of the second flow's capacity."""


@exhibit("eq-8", cost=5, seeds=(5, 5), quick=(5, 5))
def eq_8(lab: Lab) -> None:
    """Check the equations of sections II and III, and the growth of single flows on idle links."""
    utility(lab)
    equilibria(lab)
    stages(lab)
    begin = lab.pick(10.0, 5.0)
    cases = {}
    for mbps, ms in product(lab.pick(CAPACITIES, CAPACITIES[:3]), (10, 200)):
        cases["ninety", mbps, ms] = net.climb(LAW, mbps, ms / 1e3, begin, 16.0)
        law = net.without_window(LAW, mbps)
        cases["ninety-alone", mbps, ms] = net.climb(law, mbps, ms / 1e3, begin, 16.0)
    climbs = lab.run(cases, read.read_climb)
    for (key, mbps, ms), found in climbs.items():
        seconds = [read.time_to(climb, 0.9, mbps) for climb in found]
        lab.number(key, seconds, ms=ms, mbps=f"{mbps:g}")
    slow = lab.pick((10.0, 20.0, 50.0, 100.0), (10.0, 20.0))
    tcp = lab.run({m: net.recovery(m, 0.2, 60 + 8 * m) for m in slow}, read.read_recovery)
    for mbps, times in tcp.items():
        formula = float(model.tcp_recovery_time(mbps * 1e6, 0.2, model.PACKET_BYTES))
        lab.claim("tcp-recovery", alike(times, formula), mbps=f"{mbps:g}")
    lab.show(
        increases(),
        climbing(
            {m: c[0] for (key, m, ms), c in climbs.items() if (key, ms) == ("ninety-alone", 10)}
        ),
    )


def utility(lab: Lab) -> None:
    """Check Eq. 3 to 6 and footnote 1."""
    x = np.linspace(0, 1e9 / model.BITS_PER_SYN, 50_001)[1:-1]
    rises = int(np.sum(np.diff(np.asarray(model.marginal_utility(x, 1e9))) >= 0))
    lab.claim("eq-5", fact(f"{rises} rises in {x.size} rates on 1 Gb/s", holds=rises == 0))
    beyond = np.linspace(1, 10, 1000) * 1e9 / model.BITS_PER_SYN
    k = beyond * np.asarray(model.increase_per_syn(beyond, 1e9)) + model.BETA * beyond**2
    falls = int(np.sum(np.diff(k) <= 0))
    lab.claim("footnote-1", fact(f"{falls} falls beyond c = L on 1 Gb/s", holds=falls == 0))
    k = x * np.asarray(model.increase_per_syn(x, 1e9)) + model.BETA * x**2
    words = f"{int(np.sum(np.diff(k) < 0))} falls below L, k ≥ {k.min():.2g}"
    lab.claim("footnote-1-falls", fact(words, holds=bool(np.any(np.diff(k) < 0) and k.min() > 0)))
    # α decreases by 2^-n within 3^-n around x = n: to 0, but with increasing slope.
    n = np.arange(1, 13)
    slope = 0.5**n + n * -((3 / 2.0) ** n) + 2 * model.BETA * n
    words = f"k'(n) < 0 at {int(np.sum(slope < 0))} of {n.size} steps"
    lab.claim("footnote-1-proof", fact(words, holds=bool(np.all(slope[-3:] > 0))))
    around = np.column_stack([2 * 0.5**n, 0.5**n]).ravel()
    words = f"α falls from {around[0]:g} to {around[-1]:.2g} and never rises"
    lab.claim("counterexample", fact(words, holds=bool(np.all(np.diff(around) <= 0))))
    fairness(lab)
    p = np.logspace(-4, -1, 31)
    rows = [(loss, three(loss), float(model.equilibrium(loss, 1e9))) for loss in p]
    near = [abs(b / a - 1) for loss, a, b in rows if loss * a <= 0.1]
    far = max(abs(b / a - 1) for _, a, b in rows)
    words = f"{100 * max(near):.2g} % apart up to p x = 0.1, {100 * far:.2g} % up to p = 0.1"
    lab.claim("eq-4", fact(words, holds=max(near) < 0.05))
    law = net.without_window("daimd(feedback=packet)", 1000.0)
    cases = {p: net.lossy(law, p, lab.pick(200.0, 40.0), 0.1, 1000.0) for p in FREQUENT}
    for loss, runs in lab.run(cases, read.read_paced).items():
        lab.claim("eq-3", alike([run.window for run in runs], three(loss)), p=loss)


def fairness(lab: Lab) -> None:
    """Check what an increase, a decrease and Eq. 5 do to the fairness of ten flows on 1 Gb/s."""
    share = 1e9 / model.BITS_PER_SYN / 10
    x = np.random.default_rng(1).uniform(0, 2 * share, (1000, 10))
    more, less = x + np.asarray(model.increase_per_syn(x, 1e9)), (1 - model.BETA) * x
    before, grown, cut = ([float(jain(row)) for row in rates] for rates in (x, more, less))
    words = f"rises in {int(np.sum(np.greater(grown, before)))} of {len(x)} cases"
    lab.claim("increase-fair", fact(words, holds=bool(np.all(np.greater(grown, before)))))
    apart = float(np.max(np.abs(np.subtract(cut, before))))
    lab.claim("decrease-fair", fact(f"changes FI by at most {apart:.1g}", holds=apart < 1e-12))
    rates = x[:10].copy()
    for _ in range(6_000):
        p = LOSS * (rates.sum(axis=1, keepdims=True) / (10 * share)) ** 10
        increase = np.asarray(model.increase_per_syn(rates, 1e9))
        k = rates * increase + model.BETA * rates**2
        # The quotient is the marginal utility.
        rates += k * (increase / k - np.minimum(p, 1))
    ends = rates / rates.mean()
    words = (
        f"after a minute {ends.min():.3f} to {ends.max():.3f} of the mean, from 10 starting points"
    )
    lab.claim("eq-5-converges", fact(words, holds=bool(np.all(np.abs(ends - 1) < 0.05))))


def three(p: float) -> float:
    """Return the rate in packets per SYN at which Eq. 3 has no net change on 1 Gb/s."""
    low, high = 0.0, float(model.stage_end(0, 1e9))
    for _ in range(60):
        middle = (low + high) / 2
        rising = float(model.expected_change(middle, p, 1e9)) > 0
        low, high = (middle, high) if rising else (low, middle)
    return low


def equilibria(lab: Lab) -> None:
    """Check Eq. 10 to 14."""
    losses, capacities = np.logspace(-7, -2, 51), np.logspace(6, 10, 41)
    p, capacity = (grid.ravel() for grid in np.meshgrid(losses, capacities))
    exact, response = (np.asarray(f(p, capacity)) for f in (model.equilibrium, udt_response))
    high = 100 * float(np.max((response / exact)[p <= 1e-3]) - 1)
    lab.claim("eq-10", fact(f"at most {high:.1f} % too high up to p = 10⁻³", holds=high < 10))
    u = np.sqrt(np.asarray(model.stage_increase(0, capacity)) * p / (4 * model.BETA))
    apart = float(np.max(np.abs(response / exact * (np.sqrt(1 + u**2) - u) - 1)))
    lab.claim("eq-10-error", fact(f"{apart:.1g} apart", holds=apart < 1e-9))
    bits = np.asarray(model.equilibrium_bps(p, capacity, printed=True))
    ratio = bits / (response * model.BITS_PER_SYN)
    holds = bool(np.allclose(ratio, 1, rtol=0.02))
    lab.claim("eq-13", fact(f"{ratio.mean():.4g} times Eq. 12", holds=holds))
    ratio = np.asarray(model.equilibrium_bps(p, capacity)) / (response * model.BITS_PER_SYN)
    holds = bool(np.allclose(ratio, 1, rtol=1e-9))
    lab.claim("eq-13-mended", fact(f"{ratio.mean():.4g} times Eq. 12", holds=holds))
    printed, mended = (
        np.asarray(model.stable_stage(p, capacity, printed=b)) for b in (True, False)
    )
    wrong = float(np.mean(printed != mended))
    words = f"another stage in {100 * wrong:.0f} % of {p.size} pairs of p and L"
    lab.claim("eq-14", fact(words, holds=wrong == 0))
    every = np.arange(20)[:, None]
    fits = udt_response(p, capacity, every) <= np.asarray(model.stage_end(every, capacity))
    wrong = int(np.sum(mended[fits.any(axis=0)] != fits.argmax(axis=0)[fits.any(axis=0)]))
    words = f"another stage in {wrong} of {int(fits.any(axis=0).sum())} pairs"
    lab.claim("eq-14-mended", fact(words, holds=wrong == 0))


def stages(lab: Lab) -> None:
    """Check the stages and Eq. 15."""
    spans = [
        float(
            (np.asarray(model.stage_end(k, c)) - np.asarray(model.stage_end(k - 1, c)))
            / np.asarray(model.stage_increase(k, c))
        )
        for k in range(1, 6)
        for c in (2e7, 1e8, 3e8, 1e9)
    ]
    words = f"{min(spans):.6g} to {max(spans):.6g} SYN"
    lab.claim("stages", fact(words, holds=bool(np.allclose(spans, spans[0]))))
    times = np.asarray(model.time_to_fraction(0.9, np.array([1, 10, 25, 100, 622, 1e3, 1e4]) * 1e6))
    words = f"{times.min():.4g} to {times.max():.4g} s from 1 Mb/s to 10 Gb/s"
    lab.claim("eq-15", fact(words, holds=bool(np.allclose(times, 7.5))))
    lab.number("decrease", 1 - 1 / (1 + 1 / 8))
    for gbps in (1, 10):
        lab.number(f"tcp-{gbps}", float(model.tcp_recovery_time(gbps * 1e9, 0.2)) / 60)


def increases() -> Figure:
    """Draw figures 1 and 2."""
    w = np.geomspace(1, 832, 400)
    big = w[w >= 38]
    curves = [
        Curve("Scalable TCP, as printed", w, read.printed_increase("scalable", w)),
        Curve("HighSpeed TCP", big, read.printed_increase("highspeed", big)),
        Curve("DAIMD on 1 Gb/s", w, model.increase_per_syn(w, 1e9), "steps"),
        Curve("TCP Reno", w, read.printed_increase("reno", w), dashed=True),
    ]
    x = np.linspace(0, 832.5, 2000)
    piecewise = [
        Curve(f"{mbps} Mb/s", rate, model.increase_per_syn(rate, mbps * 1e6), "steps")
        for mbps in (1000, 500, 100)
        for rate in [x[x * model.BITS_PER_SYN < mbps * 1e6]]
    ]
    label, step = "rate, packets per RTT = SYN = 10 ms", "increase, packets per RTT"
    panels = [
        Panel(label, step, curves, "Figure 1", x_log=True, y_log=True),
        Panel(label, step, piecewise, "Figure 2", y_log=True, y_limits=(1e-5, 3)),
    ]
    return Figure("Increases of DAIMD and of TCPs (Fig. 1); UDT's α(x) (Fig. 2)", panels)


def climbing(climbs: Mapping[float, read.Climb]) -> Figure:
    """Draw figure 3, with model and simulation."""
    t = np.arange(1301) * model.SYN
    curves = []
    for color, (mbps, climbed) in enumerate(climbs.items()):
        x = model.trajectory(t.size - 1, mbps * 1e6) * model.BITS_PER_SYN / 1e6
        curves += [
            Curve(f"{mbps:g} Mb/s", climbed.time, climbed.rates / mbps, color=color),
            Curve("", t, x / mbps, color=color, dashed=True),
        ]
    curves.append(Curve("90 % after 7.5 s", [7.5], [0.9], "published"))
    panel = Panel("time, s", "rate over capacity", curves)
    title = "Single flows, rate control alone, at 10 ms; dashed: Eq. 15 (Fig. 3)"
    return Figure(title, [panel], name="fig-3")


@exhibit("section-7", cost=5, seeds=(5, 5), quick=(5, 5))
def section_7(lab: Lab) -> None:
    """Run two flows, one of which has an incorrect capacity."""
    spans = lab.pick((90.0, 20.0), (18.0, 5.0))
    pairs = {str(error): (100.0, 100.0 * (1 + error)) for error in ERRORS}
    pairs |= {"both": (150.0, 150.0), "near": (101.0, 99.0)}
    runs = lab.run(
        {name: net.misjudged(pair, *spans) for name, pair in pairs.items()}, read.read_shares
    )
    ratio = {name: [run.rates[1] / run.rates[0] for run in runs[name]] for name in pairs}
    for name in ("both", "near"):
        lab.claim(name, alike(ratio[name], 1))
    larger = {}
    for error in ERRORS:
        bound = float(shared.estimate_error_ratio(error))
        solved = larger_ratio(error)
        # With an underestimate the other flow is faster.
        found = larger[error] = [r if error > 0 else 1 / r for r in ratio[str(error)]]
        part = "over" if error > 0 else "under"
        words = f"{solved:.3f}, bound {bound:.4g}"
        lab.claim(part, fact(words, holds=solved <= 1.01 * bound), error=error)
        edge = min((at_edge(error, stage) for stage in (1, 2)), key=lambda x: abs(x - solved))
        if solved > 1.01 * bound:
            words = f"{solved:.3f} and {edge:.3f}"
            lab.claim("edge", fact(words, holds=abs(solved / edge - 1) < 0.02), error=error)
        equal = -0.5 < error < 0
        grade = alike(found, 1) if equal else at_most(bound, found)
        lab.claim(f"{part}-simulated", grade, error=error)
        if error >= 1:
            lab.number("always", solved, error=error)
            lab.number("always-simulated", found, error=error)
    cases = {error: net.misjudged((100 * (1 + error),), *spans) for error in (0.0, *ALONE)}
    alone = lab.run(cases, read.read_shares)
    rates = {error: [float(run.rates[0]) for run in found] for error, found in alone.items()}
    for error in ALONE:
        lab.claim("alone", alike(rates[error], rates[0.0]), error=error)
    same_stage(lab)
    estimates = lab.run({"": net.ten_flows(LAW, 0.01, 8.0, 4.0)}, read.capacity_estimate)
    lab.claim("underestimate", at_most(990.0, estimates[""]))
    e = np.concatenate([np.linspace(-0.85, -0.01, 85), np.geomspace(0.01, 8.9, 85)])
    curves = [
        Curve("bound, printed", 1 + e, shared.estimate_error_ratio(e), dashed=True),
        Curve("Eq. 4", 1 + e, [larger_ratio(float(error)) for error in e]),
        Curve.of_means("simulated", [1 + error for error in larger], larger.values(), "points"),
    ]
    x, y = "capacity believed over capacity, 1 + ε", "larger rate over the smaller"
    panel = Panel(x, y, curves, x_log=True, y_log=True)
    lab.show(Figure("Two flows, one of which misjudges the capacity", [panel]))


def same_stage(lab: Lab) -> None:
    """Compare the increases of the flows with 101 and 99 Mb/s up to half of the link each."""
    mbps = np.linspace(1, 50, 491)[1:]
    first, second = (
        np.asarray(model.increase_per_syn(mbps * 1e6 / model.BITS_PER_SYN, capacity))
        for capacity in (101e6, 99e6)
    )
    both = np.concatenate([first, second])
    words = f"{both.min():g} to {both.max():g} packets per SYN"
    lab.claim("same-stage", fact(words, holds=bool(both.min() == both.max())))


def at_edge(error: float, stage: int) -> float:
    """Return the larger rate over the smaller one if flow 2's stage ends where it is.

    The two flows fill a capacity of a power of ten. Further than √10 apart the rates do not get
    in one stage (Eq. 10).
    """
    believed = 1 + error
    second = error if error > 0 else believed - 10.0**-stage
    ratio = second / (1 - second) if error > 0 else (1 - second) / second
    return min(ratio, np.sqrt(10)) if stage == 1 else ratio


def larger_ratio(error: float) -> float:
    """Return the larger rate over the smaller one at the equilibrium of Eq. 4."""
    ratio = read.sharing(100.0, 100.0 * (1 + error))
    return ratio if error > 0 else 1 / ratio
