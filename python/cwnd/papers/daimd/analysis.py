"""Sections II, III and VII: equations, single flows, and an incorrect capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd.model import daimd as model
from cwnd.model import daimd_sharing as shared
from cwnd.model.throughput import udt_response
from cwnd.papers.daimd import measures as read
from cwnd.papers.daimd import networks as net
from cwnd.papers.daimd.networks import LAWS, READINGS
from cwnd.papers.exhibit import exhibit
from cwnd.papers.figure import Curve, Figure, Panel
from cwnd.papers.grades import alike, at_most, fact, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.papers.exhibit import Lab

CAPACITIES = (10.0, 100.0, 200.0, 1000.0)
"""Capacities for single flows in Mb/s."""

FREQUENT = (0.01, 0.03)
"""Loss rates at which several packets of a SYN are lost, for Eq. 3."""

ERRORS = (0.25, 0.5, 0.75, 1.5, 3.0, 8.0, -0.1, -0.25, -0.45, -0.5, -0.6, -0.7, -0.8)
"""Relative errors ε of the second flow's capacity."""


@exhibit("eq-8", cost=5, seeds=(5, 5), quick=(5, 5))
def eq_8(lab: Lab) -> None:
    """Check the equations of sections II and III, and the growth of single flows on idle links."""
    utility(lab)
    equilibria(lab)
    stages(lab)
    begin = lab.pick(10.0, 5.0)
    laws = {**LAWS, "alone": ""}
    cases = {
        (law, mbps, ms): net.climb(
            laws[law] or net.without_window(LAWS["event"], mbps), mbps, ms / 1e3, begin, 16.0
        )
        for law in laws
        for mbps in lab.pick(CAPACITIES, CAPACITIES[:3])
        for ms in (10, 200)
    }
    climbs = lab.run(cases, read.read_climb)
    for (law, mbps, ms), found in climbs.items():
        seconds = [read.time_to(climb, 0.9, mbps) for climb in found]
        lab.claim("ninety", number("7.5", seconds), net.kind(law), law=law, ms=ms, mbps=f"{mbps:g}")
    slow = lab.pick((10.0, 20.0, 50.0, 100.0), (10.0, 20.0))
    tcp = lab.run({m: net.recovery(m, 0.2, 60 + 8 * m) for m in slow}, read.read_recovery)
    for mbps, times in tcp.items():
        formula = float(model.tcp_recovery_time(mbps * 1e6, 0.2, model.PACKET_BYTES))
        lab.claim("tcp-recovery", alike(times, formula), mbps=f"{mbps:g}")
    lab.show(
        increases(),
        climbing({m: c[0] for (law, m, ms), c in climbs.items() if (law, ms) == ("alone", 10)}),
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
    p = np.logspace(-4, -1, 31)
    rows = [(loss, three(loss), float(model.equilibrium(loss, 1e9))) for loss in p]
    near = [abs(b / a - 1) for loss, a, b in rows if loss * a <= 0.1]
    far = max(abs(b / a - 1) for _, a, b in rows)
    words = f"{100 * max(near):.2g} % apart up to p x = 0.1, {100 * far:.2g} % up to p = 0.1"
    lab.claim("eq-4", fact(words, holds=max(near) < 0.05))
    law = net.without_window(READINGS["packet"], 1000.0)
    cases = {p: net.lossy(law, p, lab.pick(200.0, 40.0), 0.1, 1000.0) for p in FREQUENT}
    for loss, runs in lab.run(cases, read.read_paced).items():
        lab.claim("eq-3", alike([run.window for run in runs], three(loss)), p=loss)


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
    bits = np.asarray(model.equilibrium_bps(p, capacity, printed=True))
    ratio = bits / (response * model.BITS_PER_SYN)
    holds = bool(np.allclose(ratio, 1, rtol=0.02))
    lab.claim("eq-13", fact(f"{ratio.mean():.4g} times Eq. 12", holds=holds))
    printed, mended = (
        np.asarray(model.stable_stage(p, capacity, printed=b)) for b in (True, False)
    )
    wrong = float(np.mean(printed != mended))
    words = f"another stage in {100 * wrong:.0f} % of {p.size} pairs of p and L"
    lab.claim("eq-14", fact(words, holds=wrong == 0))


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
        equal = -0.5 < error < 0
        grade = alike(found, 1) if equal else at_most(bound, found)
        lab.claim(f"{part}-simulated", grade, error=error)
    estimates = lab.run({"UDT": net.ten_flows(LAWS["UDT"], 0.01, 8.0, 4.0)}, read.capacity_estimate)
    lab.claim("underestimate", at_most(990.0, estimates["UDT"]))
    e = np.concatenate([np.linspace(-0.85, -0.01, 85), np.geomspace(0.01, 8.9, 85)])
    curves = [
        Curve("bound, printed", 1 + e, shared.estimate_error_ratio(e), dashed=True),
        Curve("Eq. 4", 1 + e, [larger_ratio(float(error)) for error in e]),
        Curve.of_means("event", [1 + error for error in larger], larger.values(), "points"),
    ]
    x, y = "capacity believed over capacity, 1 + ε", "larger rate over the smaller"
    panel = Panel(x, y, curves, x_log=True, y_log=True)
    lab.show(Figure("Two flows, one of which misjudges the capacity", [panel]))


def larger_ratio(error: float) -> float:
    """Return the larger rate over the smaller one at the equilibrium of Eq. 4."""
    ratio = read.sharing(100.0, 100.0 * (1 + error))
    return ratio if error > 0 else 1 / ratio
