"""Section 5.3 of the SIMD paper: Table 3, from runs and from the closed forms of Table 1."""

from __future__ import annotations

import math
from statistics import fmean

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import alike, at_least, at_most, fact, less
from cwnd._papers.simd.measures import EPSILON, Convergence, read_convergence
from cwnd._papers.simd.model import NAMES
from cwnd._papers.simd.networks import LAWS, convergence
from cwnd._papers.text import read_text
from cwnd.model.synchronous import table1
from cwnd.stats import UNIT

W = 110.0
"""Approximate capacity of the shared link and its queue in packets (section 5.3)."""

FIELDS = {"W₁": "w1", "W₂": "w2", "T₁": "t1", "T₂": "t2", "Δ": "delta"}
"""Quantities of Table 3, as attributes of `Convergence`."""

AFTER = {"TCP": 60, "AIMD": 120, "IIAD": 700, "SIMD": 120}
"""Seconds that experiment 1 lasts once the other flows have ended."""

Runs = dict[str, list[Convergence]]


def _run(lab: Lab, experiment: int, after: dict[str, int]) -> Runs:
    """Run an experiment with each law, and add its half of Table 3 as claims.

    The analytic columns are compared with Table 1 for W = 110 and the printed windows.
    """
    switch = lab.pick(400, 200)
    cases = {x: convergence(spec, experiment, switch, after[x]) for x, spec in LAWS.items()}
    runs = lab.run(cases, read_convergence)
    columns = lab.text.printed["simulated"].columns
    found = {
        law: {c: [getattr(x, FIELDS[_quantity(c)]) for x in runs[law]] for c in columns}
        for law in LAWS
    }
    lab.cells("simulated", found)
    starts, printed = lab.text.printed["simulated"].rows, lab.text.printed["analytic"]
    forms = {}
    for law in printed.rows:
        w1, w2 = (float(cell) for cell in starts[law][:2])
        if experiment == 1:
            # The flows start on the efficiency line, so that Δ is W₂ - W₁ there.
            w1 = (W - w2 + w1) / 2
            w2 = W - w1
        form = table1(NAMES[law], w1, w2, W, EPSILON)
        forms[law] = {c: float(getattr(form, FIELDS[_quantity(c)])) for c in printed.columns}
    lab.cells("analytic", forms)
    for key in ("w1", "w2"):
        by_seed = zip(*([getattr(x, key) for x in found] for found in runs.values()), strict=True)
        lab.number(key, [fmean(windows) for windows in by_seed])
    panels = []
    for law, of_law in runs.items():
        c = of_law[0]
        curves = [Curve(f"flow {i + 1}", c.time, w, color=i) for i, w in enumerate(c.windows)]
        axes = ("time since the others ended, s", "window, packets")
        panels.append(Panel(*axes, curves, law, y_limits=(0.0, 140.0)))
    lab.show(Figure("Both windows of one run", panels))
    return runs


def _quantity(column: str) -> str:
    """Return the quantity of a column, such as T₂ for "analytic T₂, RTT"."""
    return column.partition(",")[0].split()[-1]


@exhibit("fig-10", cost=14, seeds=(6, 12), quick=(5, 5))
def fig_10(lab: Lab) -> None:
    """Two flows start to share a link that one of them had alone."""
    runs = _run(lab, 1, AFTER)
    t2 = {law: [c.t2 for c in found] for law, found in runs.items()}
    for fast, slow in (("TCP", "SIMD"), ("SIMD", "AIMD"), ("AIMD", "IIAD")):
        lab.claim(f"{fast}-first", less(t2[fast], t2[slow]))
    analytic = lab.text.printed["analytic"].column("analytic T₂, RTT")
    for law, cell in analytic.items():
        lab.claim("below-analysis", at_most(float(cell), t2[law]), law=law)
    gain = {law: [t / float(cell) for t in t2[law]] for law, cell in analytic.items()}
    rough = {law: [c.roughness for c in found] for law, found in runs.items()}
    for law in ("TCP", "AIMD", "IIAD"):
        lab.claim("benefit", less(gain["SIMD"], gain[law]), law=law)
    for law in ("SIMD", "AIMD", "TCP"):
        lab.claim("smoothest", less(rough["IIAD"], rough[law]), law=law)
    lab.claim("outperforms", less(t2["SIMD"], t2["TCP"]))
    for law, found in runs.items():
        lab.claim("larger-loses", at_least(0.5, [c.larger for c in found], UNIT), law=law)


@exhibit("droptail", cost=12, seeds=(6, 12), quick=(5, 5), beside="fig-10")
def droptail(lab: Lab) -> None:
    """Repeat `fig_10` with DropTail on the shared link, with room for as many packets."""
    switch, laws = lab.pick(400, 200), lab.pick(tuple(LAWS), ("SIMD",))
    runs = lab.run(
        {
            (law, queue): convergence(LAWS[law], 1, switch, AFTER[law], queue=queue)
            for law in laws
            for queue in ("red", "35p")
        },
        read_convergence,
    )
    for law in laws:
        red, tail = runs[law, "red"], runs[law, "35p"]
        # The end of the run is a lower bound of T₂.
        late = [c.end if math.isnan(c.t2) else c.t2 for c in tail]
        lab.claim("enhance", less([c.t2 for c in red], late), law=law)
    smaller = ([1 - c.larger for c in runs["SIMD", queue]] for queue in ("red", "35p"))
    lab.claim("smaller-spared", less(*smaller))
    means = {case: [[c.t1, c.t2] for c in found] for case, found in runs.items()}
    lab.means(["law", "queue", "T₁, RTT", "T₂, RTT"], means)


@exhibit("fig-11", cost=10, seeds=(8, 8), quick=(5, 5), beside="fig-10")
def fig_11(lab: Lab) -> None:
    """Two flows take over a link that others had shared."""
    runs = _run(lab, 2, dict.fromkeys(LAWS, lab.pick(120, 90)))
    t1 = {law: [c.t1 for c in found] for law, found in runs.items()}
    for law, found in runs.items():
        lab.number("capacity", [c.total for c in found], law=law)
        forms = [table1(NAMES[law], c.w1, c.w2, W, EPSILON) for c in found]
        lab.claim("matches", alike(t1[law], [float(form.t1) for form in forms]), law=law)
        apart = [float(form.delta) for form in forms]
        lab.claim("delta", alike([c.delta for c in found], apart), law=law)
    for fast, slow in (("TCP", "SIMD"), ("SIMD", "AIMD"), ("AIMD", "IIAD")):
        lab.claim(f"{fast}-first", less(t1[fast], t1[slow]))
    w1, w2 = (float(cell) for cell in lab.text.printed["simulated"].rows["TCP"][:2])
    lab.number("printed", float(table1("tcp", w1, w2, W, EPSILON).t1))
    aimd = runs["AIMD"]
    lab.claim("same-rate", alike([c.delta for c in aimd], [abs(c.w2 - c.w1) for c in aimd]))
    closed = {x: [c.delta / abs(c.w2 - c.w1) for c in runs[x]] for x in ("SIMD", "AIMD")}
    lab.claim("catches-up", less(closed["SIMD"], closed["AIMD"]))
    lab.claim("outperforms", less(t1["SIMD"], t1["TCP"]))
    rough = {law: [c.roughness for c in found] for law, found in runs.items()}
    for law in ("AIMD", "IIAD", "SIMD"):
        lab.claim("variable", less(rough[law], rough["TCP"]), law=law)
    _advantage(lab, t1)


def _advantage(lab: Lab, t1: dict[str, list[float]]) -> None:
    """Compare SIMD's advantage over AIMD in both experiments, as printed and as measured."""
    switch = lab.pick(400, 200)
    cases = {x: convergence(LAWS[x], 1, switch, AFTER[x]) for x in ("SIMD", "AIMD")}
    t2 = {x: [c.t2 for c in found] for x, found in lab.run(cases, read_convergence).items()}
    fair, full = (
        [slow / fast for slow, fast in zip(by["AIMD"], by["SIMD"], strict=True)] for by in (t2, t1)
    )
    lab.claim("pronounced", less(fair, full))
    first, second = (
        {
            law: float(row[2])
            for law, row in read_text("simd").exhibits[name].printed["simulated"].rows.items()
        }
        for name in ("fig-10", "fig-11")
    )
    fair_printed, full_printed = (by["AIMD"] / by["SIMD"] for by in (first, second))
    words = f"{fair_printed:.3g} and {full_printed:.3g} times"
    lab.claim("pronounced-printed", fact(words, holds=fair_printed < full_printed))
