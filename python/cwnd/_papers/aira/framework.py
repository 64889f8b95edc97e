"""Sections 4.2 and 4.3: observations on diverse increases, and the ALPHA Fairness Index."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.aira import networks as net
from cwnd._papers.aira.claims import column
from cwnd._papers.aira.measures import row
from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Table
from cwnd._papers.grades import fact, less
from cwnd.metrics import alpha_fairness, jain
from cwnd.model.aira import desired_slope_decrease, desired_slope_increase

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cwnd._papers.grades import Grade
    from cwnd.model.checks import Array


@exhibit("section-4-2", cost=0.1)
def section_4_2(lab: Lab) -> None:
    """Compare the slope a/W with the desired one, for all loss rates p and p' up to 1/2."""
    percent = np.arange(51.0)
    now, last = np.meshgrid(percent, percent, indexing="ij")
    # All gaps are over the slope a/W.
    sparse = 1 - np.asarray(desired_slope_decrease(1, now / 100, 1))
    ample = np.asarray(desired_slope_increase(1, now / 100, last / 100, 1)) - 1
    rise, fall = now > last, now < last
    given = last if lab.option("given", "nothing") == "previous" else np.zeros_like(last)
    lab.claim("above", _all("above", sparse[rise] > 0))
    lab.claim("above-wider", _widens((now - last)[rise], sparse[rise], given[rise]))
    lab.claim("below", _all("below", ample[fall] > 0))
    lab.claim("below-wider", _widens((last - now)[fall], ample[fall], given[fall]))
    lab.claim("below-defined", _all("below", sparse[fall] < 0))
    lab.claim("never-below", _all("not below", sparse >= 0))
    spread = float(np.ptp(sparse, axis=1).max())
    words = f"the gap at one p varies by {spread:.2g} of a/W with p'"
    lab.claim("only-p", fact(words, holds=spread < 1e-9))
    heads = ["p, %", "p', %", "above Eq. 12's slope, of a/W", "below Eq. 20's slope, of a/W"]
    cases = ((10, 0), (50, 49), (0, 10), (49, 50))
    gaps: list[list[str | float]] = [[p, q, sparse[p, q], ample[p, q]] for p, q in cases]
    lab.show(Table("gaps", "Gaps between the slope and the desired one", heads, gaps))


@exhibit("section-4-3", cost=1.2, seeds=(10, 20))
def section_4_3(lab: Lab) -> None:
    """Flows with fixed increases: ALPHA fairness and fairness, with equal and diverse RTTs."""
    equal = {(1.0, 1.0, b, b): net.static((1.0, 1.0, b, b)) for b in (1.0, 0.5, 0.2)}
    pairs = ((1.0, 1.0), (1.0, 0.5), (0.5, 1.0))
    diverse = {(a, a, b, b): net.diverse(net.fixed(a), net.fixed(b)) for a, b in pairs}
    found = [
        {case: column(by, "fairness") for case, by in lab.run(cases, row).items()}
        for cases in (equal, diverse)
    ]
    for high, low in pairwise(equal):
        of = {"low": f"{alpha_fairness(low):.2g}", "high": f"{alpha_fairness(high):.2g}"}
        lab.claim("homogeneous", less(found[0][low], found[0][high]), **of)
        less_even, even = (jain(synchronous(case)) for case in (low, high))
        words = f"{less_even:.3g} against {even:.3g}"
        lab.claim("synchronous", fact(words, holds=less_even < even), **of)
    same, slow_far, slow_near = found[1].values()
    lab.claim("far-reduced", less(slow_far, same))
    lab.claim("far-increased", less(same, slow_near))
    rows: list[list[str | float]] = [
        [rtts, ", ".join(f"{a:g}" for a in case), alpha_fairness(case), float(np.mean(values))]
        for rtts, by in zip(("80 ms", "60 and 220 ms"), found, strict=True)
        for case, values in by.items()
    ]
    lab.show(Table("means", "Means", ["RTT", "a of the flows", "α-fairness", "fairness"], rows))


def synchronous(increases: Sequence[float]) -> Array:
    """Return the windows after 100 rounds in which all flows lose at a total window of 100."""
    a = np.array(increases)
    windows = np.ones(a.size)
    for _ in range(100):
        windows = (windows + a * (100 - windows.sum()) / a.sum()) / 2
    return windows


def _all(what: str, holds: npt.NDArray[np.bool_]) -> Grade:
    """Grade the claim that a relation holds in all cases."""
    return fact(f"{what} in {holds.sum()} of {holds.size} cases", holds=bool(holds.all()))


def _widens(distance: Array, gap: Array, given: Array) -> Grade:
    """Grade the claim that a greater distance has a wider gap, among cases with equal ``given``."""
    wider = []
    for value in np.unique(given):
        far, wide = distance[given == value], gap[given == value]
        by_distance = [wide[far == step] for step in np.unique(far)]
        wider += [bool(b.min() > a.max()) for a, b in pairwise(by_distance)]
    return _all("wider", np.array(wider))
