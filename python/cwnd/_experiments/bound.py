"""Thresholds of a test, and what an interval of a metric decides about them."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from cwnd._native import read_bound, read_limit
from cwnd.metrics.catalog import range_of_dimension
from cwnd.stats import ANY, Estimate, estimate, estimate_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd._runs.expect import Operator
    from cwnd.metrics.catalog import Dimension
    from cwnd.stats import Range

Grade: TypeAlias = Literal["meets", "concern", "fails", "undecided", "does not apply"]
"""Verdict of a test."""

GRADES: tuple[Grade, ...] = ("fails", "concern", "undecided", "meets", "does not apply")
"""All grades; the worst one first."""

RULE = (
    "A controller meets a threshold, or misses it, if the whole 95 % interval is on that side of "
    "it: the interval of the metric, or of its ratio to the baseline for a threshold that is a "
    "multiple of the baseline. Otherwise the grade is undecided. A run that fails, or that does "
    "not determine the metric, fails its test. A test meets if every cell meets, and has the grade "
    "of its worst cell: fails, concern (neither threshold holds), undecided, meets."
)

_OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_TIMES = re.compile(r"(\S+)\s+baseline")


@dataclass(frozen=True, slots=True)
class Bound:
    """One threshold."""

    text: str
    """As in the file, such as ``<= 1.5 baseline`` or ``< 5%``."""
    operator: Operator
    limit: float
    """In the metric's unit, or a factor."""
    relative: bool
    """Whether the limit is a multiple of the baseline's metric on the same network."""

    def holds(self, measured: Measured) -> bool | None:
        """Decide whether a metric is within the bound; None if its interval is on both sides."""
        figure = measured.ratio if self.relative else measured.value
        if math.isnan(figure.low):
            return None
        compare = _OPERATORS[self.operator]
        ends = {compare(figure.low, self.limit), compare(figure.high, self.limit)}
        return ends.pop() if len(ends) == 1 else None


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric on one network: the estimates that are graded and shown."""

    value: Estimate
    baseline: Estimate
    ratio: Estimate
    """Paired by seed."""


def measure(values: Iterable[float], base: Iterable[float], within: Range = ANY) -> Measured:
    """Estimate a metric and its ratio to the baseline from values paired by seed.

    Examples
    --------
    >>> measure([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]).ratio.high
    2.0
    >>> measure([0.0, 0.0], [0.0, 0.0]).ratio.mean, measure([3.0, 3.0], [0.0, 0.0]).ratio.low
    (1.0, inf)
    """
    x, y = np.fromiter(values, float), np.fromiter(base, float)
    value, baseline = estimate(x, within), estimate(y, within)
    ratio = estimate_ratio(x, y)
    if baseline.mean == 0:
        # The ratio of equal values is 1; that of a value above 0 is infinite.
        mean = 1.0 if value.mean == 0 else math.inf
        end = mean if mean == 1 or value.low > 0 else math.nan
        ratio = Estimate(mean, end, end, ratio.n)
    return Measured(value, baseline, ratio)


def read_bounds(dimension: Dimension, texts: str | Sequence[str]) -> tuple[Bound, ...]:
    """Read a threshold, or alternatives of one; ValueError if a bound is invalid.

    Examples
    --------
    >>> [bound.limit for bound in read_bounds("fraction", ["<= 1.5 baseline", "<= 1%"])]
    [1.5, 0.01]
    """
    found = []
    for text in [texts] if isinstance(texts, str) else texts:
        relation, value = read_bound(text)
        times = _TIMES.fullmatch(value)
        limit = read_limit("number", times[1]) if times else read_limit(dimension, value)
        found.append(Bound(text, relation, limit, times is not None))
    return tuple(found)


def grade(meets: Sequence[Bound], fails: Sequence[Bound], measured: Measured) -> Grade:
    """Grade a metric on one network: one bound of ``meets`` has to hold, or all of ``fails``.

    Examples
    --------
    >>> good = read_bounds("fraction", ["<= 1.5 baseline", "<= 1%"])
    >>> poor = read_bounds("fraction", ["> 3 baseline", "> 5%"])
    >>> grade(good, poor, measure([0.02, 0.021, 0.022], [0.01, 0.011, 0.012]))
    'concern'
    >>> grade(good, poor, measure([0.2, 0.21, 0.22], [0.01, 0.011, 0.012]))
    'fails'
    """
    good = [bound.holds(measured) for bound in meets]
    poor = [bound.holds(measured) for bound in fails]
    if any(good):
        return "meets"
    if all(poor):
        return "fails"
    if None not in good and False in poor:
        return "concern"
    return "undecided"


def judge(
    meets: Sequence[Bound],
    fails: Sequence[Bound],
    values: Sequence[float],
    base: Sequence[float],
    dimension: Dimension,
) -> tuple[Grade, Measured]:
    """Grade the runs on one network, paired by seed.

    A run without a finite value fails, also if the others meet the threshold. If a run of the
    baseline has no value, the interval of the ratio is unknown: no bound that is a multiple of the
    baseline is decided, and the others are.

    Examples
    --------
    >>> bounds = read_bounds("count", "<= 5"), read_bounds("count", "> 9")
    >>> judge(*bounds, [1.0, 1.0], [1.0, 1.0], "count")[0]
    'meets'
    >>> judge(*bounds, [1.0, math.nan], [1.0, 1.0], "count")[0]
    'fails'
    >>> bounds = read_bounds("count", "<= 2 baseline"), read_bounds("count", "> 9")
    >>> judge(*bounds, [1.0, 1.0], [1.0, math.nan], "count")[0]
    'undecided'
    """
    measured = measure(values, base, range_of_dimension(dimension))
    if not np.isfinite(values).all():
        return "fails", measured
    if not np.isfinite(base).all():
        unknown = replace(measured.ratio, low=math.nan, high=math.nan)
        measured = replace(measured, ratio=unknown)
    return grade(meets, fails, measured), measured


def worst(grades: Iterable[Grade]) -> Grade:
    """Return the worst grade; ``does not apply`` without one.

    Examples
    --------
    >>> worst(["meets", "undecided", "concern"])
    'concern'
    """
    return min(grades, key=GRADES.index, default="does not apply")
