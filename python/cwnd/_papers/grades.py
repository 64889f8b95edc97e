"""Verdicts on claims, by rules that are fixed in advance.

A number agrees, is close or differs; an order or a bound agrees or differs. A claim is undecided if
the 95 % confidence interval over the runs does not determine the verdict, or if fewer than five
runs have a value: those that have none, such as a flow that never converges, differ from the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from cwnd._tasks.comparison.verdict import ALIKE
from cwnd.stats import ANY, POSITIVE, Range, estimate, estimate_difference, estimate_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.stats import Estimate

Rating: TypeAlias = Literal["agrees", "close", "depends", "differs", "undecided"]
RATINGS: tuple[Rating, ...] = get_args(Rating)

DEPENDS = (
    "A claim that differs as the exhibit runs it depends if it agrees under another reading of the "
    "text: one that the quoted words, or their absence, permit. A cause is shown by a run with one "
    "thing changed in which the claim agrees or is close, or by claims that agree; it is not known "
    "otherwise. Changed runs have the seeds of the exhibit. The quick run omits them."
)
"""The rule of the verdict ``depends``."""

AGREES, CLOSE, WIDE = 0.05, 0.15, 0.25
"""Largest relative deviations of a number that agrees and of one that is close, and largest
relative width of an interval that decides."""

MIN_RUNS = 5
"""The least number of runs with a value that decides."""

RULES = {
    "number": (
        "A number agrees if it is within 5 % of the printed one or within half a unit of its last "
        "digit, is close within 15 %, and differs otherwise. It is undecided if its 95 % interval "
        "covers more than one of these grades and is wider than a quarter of the printed number, "
        "or covers all three."
    ),
    "order": (
        "An order agrees if the whole 95 % interval of the difference is on its side of 0, differs "
        "if the whole interval is on the other side, and is undecided otherwise. Runs are paired "
        "by seed."
    ),
    "bound": (
        "A bound agrees if the whole 95 % interval of the mean is inside, differs if the whole "
        "interval is outside, and is undecided otherwise."
    ),
    "equality": (
        "Two quantities are about equal if the whole 95 % interval of the ratio of their means is "
        "between 4/5 and 5/4, differ if the whole interval is outside, and are undecided otherwise."
    ),
    "computed": "A deterministic statement: it is computed, and agrees or differs.",
}
"""Rules by name."""


@dataclass(frozen=True, slots=True)
class Grade:
    """A measurement compared with a claim."""

    published: str
    """The printed number, or the claim in symbols."""
    measured: float | str
    interval: tuple[float, float] | None
    """95 % confidence interval; None for a computed value."""
    runs: int
    """Number of runs; 0 for a computed value."""
    rule: str
    """A key of `RULES`."""
    verdict: Rating


def number(printed: str, values: Iterable[float] | float, within: Range = POSITIVE) -> Grade:
    """Grade a printed number (see `read_printed`) with a value for each run or a computed value.

    Examples
    --------
    >>> number("118.9", [118.4, 118.9, 119.3, 118.7, 118.8]).verdict
    'agrees'
    >>> number("742", [800.0, 802.0, 798.0, 801.0, 799.0]).verdict
    'close'
    >>> number("0.31", 0.3125).verdict
    'agrees'
    """
    target, precision = read_printed(printed)
    if isinstance(values, (int, float)):
        return Grade(
            printed, values, None, 0, "number", _grade(abs(values - target), target, precision)
        )
    e = estimate(values, within)
    interval = (e.low, e.high) if e.known else None
    verdict: Rating = "undecided"
    if _decides(e):
        nearest = max(e.low - target, target - e.high, 0.0)
        farthest = max(abs(e.low - target), abs(e.high - target))
        best, worst = (_grade(d, target, precision) for d in (nearest, farthest))
        narrow = e.high - e.low <= WIDE * abs(target)
        if best == worst or (narrow and (best, worst) != ("agrees", "differs")):
            verdict = _grade(abs(e.mean - target), target, precision)
    return Grade(printed, e.mean, interval, e.n, "number", verdict)


def at_least(bound: float, values: Iterable[float], within: Range = POSITIVE) -> Grade:
    """Grade the claim that a mean is at least ``bound``."""
    return _bounded(f"≥ {bound:g}", estimate(values, within), (bound, math.inf), "bound")


def at_most(bound: float, values: Iterable[float], within: Range = POSITIVE) -> Grade:
    """Grade the claim that a mean is at most ``bound``."""
    return _bounded(f"≤ {bound:g}", estimate(values, within), (-math.inf, bound), "bound")


def no_more(printed: str, values: Iterable[float], within: Range = POSITIVE) -> Grade:
    """Grade the claim that a mean is no more than a printed number, to the precision of the print.

    Examples
    --------
    >>> no_more("0.11", [0.112, 0.113, 0.112, 0.113, 0.112]).verdict
    'agrees'
    >>> no_more("0.11", [0.13, 0.14, 0.13, 0.14, 0.13]).verdict
    'differs'
    """
    target, precision = read_printed(printed)
    bounds = (-math.inf, target + precision)
    return _bounded(f"≤ {printed}", estimate(values, within), bounds, "bound")


def between(low: float, high: float, values: Iterable[float], within: Range = POSITIVE) -> Grade:
    """Grade the claim that a mean is between two bounds."""
    return _bounded(f"{low:g} to {high:g}", estimate(values, within), (low, high), "bound")


def alike(values: Iterable[float], others: Iterable[float] | float) -> Grade:
    """Grade the claim that two quantities, paired by seed, are about equal.

    The second may be a number. The measured value is the ratio of the means.

    Examples
    --------
    >>> alike([0.97, 0.99, 1.01, 1.0, 0.98], 1).verdict
    'agrees'
    """
    found = [*values]
    ratio = estimate_ratio(
        found, [others] * len(found) if isinstance(others, float | int) else others
    )
    return _bounded("about equal", ratio, (1 / ALIKE, ALIKE), "equality")


def less(smaller: Iterable[float], larger: Iterable[float]) -> Grade:
    """Grade the claim that one quantity is smaller than another, paired by seed.

    Examples
    --------
    >>> aira, aimd = [748.0, 760.0, 755.0, 749.0, 751.0], [1065.0, 1090.0, 1001.0, 1070.0, 1066.0]
    >>> less(aira, aimd).verdict
    'agrees'
    """
    a, b = (np.fromiter(values, dtype=np.float64) for values in (smaller, larger))
    difference = estimate_difference(b, a)
    # Equal quantities are not ordered.
    grade = _bounded("smaller", difference, (float(np.nextafter(0.0, 1.0)), math.inf), "order")
    words = f"{estimate(a, ANY).mean:.4g} against {estimate(b, ANY).mean:.4g}"
    return Grade("smaller", words, grade.interval, grade.runs, "order", grade.verdict)


def fact(measured: str, *, holds: bool) -> Grade:
    """Grade a deterministic statement by its measurement in words and whether it holds."""
    return Grade("", measured, None, 0, "computed", "agrees" if holds else "differs")


def read_printed(printed: str) -> tuple[float, float]:
    """Parse a printed number (``118.9``, ``.85``, ``1e-4``), and half a unit of its last digit.

    After ``≈`` the last digit is the last one that is not 0.

    Examples
    --------
    >>> read_printed("118.9")
    (118.9, 0.05)
    >>> read_printed("≈600")
    (600.0, 50.0)
    """
    digits = printed.removeprefix("≈").strip()
    value = float(digits)
    mantissa, _, exponent = digits.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    if printed.startswith("≈") and places == 0:
        places = -(len(mantissa) - len(mantissa.rstrip("0")))
    return value, 0.5 * 10.0 ** (int(exponent or 0) - places)


def _grade(deviation: float, target: float, precision: float) -> Rating:
    """Grade a deviation from a printed number."""
    if not math.isfinite(deviation):
        return "undecided" if math.isnan(deviation) else "differs"
    # Half a unit, plus the rounding error of decimal fractions.
    precision *= 1 + 1e-9
    if deviation <= max(AGREES * abs(target), precision):
        return "agrees"
    return "close" if deviation <= CLOSE * abs(target) else "differs"


def _decides(e: Estimate) -> bool:
    """Return whether an interval can decide a claim."""
    return e.known and e.n >= MIN_RUNS


def _bounded(published: str, e: Estimate, bounds: tuple[float, float], rule: str) -> Grade:
    """Compare an interval with bounds."""
    verdict: Rating = "undecided"
    if _decides(e) and bounds[0] <= e.low and e.high <= bounds[1]:
        verdict = "agrees"
    elif _decides(e) and (e.high < bounds[0] or bounds[1] < e.low):
        verdict = "differs"
    return Grade(published, e.mean, (e.low, e.high) if e.known else None, e.n, rule, verdict)
