"""Thresholds of a test, and what an interval of a metric decides about them."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from cwnd.expect import read_bound, read_limit
from cwnd.stats import estimate, estimate_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd.expect import Operator
    from cwnd.measures import Dimension
    from cwnd.records import Series

Grade: TypeAlias = Literal["meets", "concern", "fails", "undecided", "does not apply"]
"""Verdict of a test."""

GRADES: tuple[Grade, ...] = ("fails", "concern", "undecided", "meets", "does not apply")
"""All grades; the worst one first."""

RULE = (
    "A controller meets a threshold, or misses it, if the whole 95 % interval of the metric is on "
    "that side of it; otherwise the grade is undecided. A test meets if every cell meets, and has "
    "the grade of its worst cell: fails, concern (neither threshold holds), undecided, meets."
)

_TIMES = re.compile(r"(\S+)\s+baseline")
_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@dataclass(frozen=True, slots=True)
class Bound:
    """One threshold.

    Attributes
    ----------
    text
        As in the file, such as ``<= 1.5 baseline`` or ``< 5%``.
    operator
        The relation of the metric to the limit.
    limit
        The limit in the metric's unit, or a factor.
    relative
        Whether the limit is a multiple of the baseline's metric on the same network.
    """

    text: str
    operator: Operator
    limit: float
    relative: bool

    def holds(self, values: Series, baseline: Series) -> bool | None:
        """Decide whether the mean of a metric is within the bound; None if the interval is not.

        Parameters
        ----------
        values, baseline
            The metric of the controller and of the baseline, one value for each seed.
        """
        measured = estimate(values)
        limit = self.limit
        if self.relative:
            if np.mean(baseline) > 0:
                measured = estimate_ratio(values, baseline)
            else:
                limit = 0.0
        if not measured.known:
            return None
        compare = _COMPARE[self.operator]
        ends = {compare(measured.low, limit), compare(measured.high, limit)}
        return ends.pop() if len(ends) == 1 else None


def read_bounds(dimension: Dimension, texts: str | Sequence[str]) -> tuple[Bound, ...]:
    """Read a threshold, or alternatives of one.

    Parameters
    ----------
    dimension
        Dimension of the metric.
    texts
        Bounds.

    Raises
    ------
    ValueError
        A bound is invalid.

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


def grade(
    meets: Sequence[Bound], fails: Sequence[Bound], values: Iterable[float], base: Iterable[float]
) -> Grade:
    """Grade a metric on one network.

    Parameters
    ----------
    meets
        The metric meets the threshold if one of these bounds holds.
    fails
        The metric fails if all of these bounds hold.
    values, base
        The metric of the controller and of the baseline, one value for each seed.

    Examples
    --------
    >>> good = read_bounds("fraction", ["<= 1.5 baseline", "<= 1%"])
    >>> poor = read_bounds("fraction", ["> 3 baseline", "> 5%"])
    >>> grade(good, poor, [0.02, 0.021, 0.022], [0.01, 0.011, 0.012])
    'concern'
    >>> grade(good, poor, [0.2, 0.21, 0.22], [0.01, 0.011, 0.012])
    'fails'
    """
    x, y = np.fromiter(values, float), np.fromiter(base, float)
    good = [bound.holds(x, y) for bound in meets]
    poor = [bound.holds(x, y) for bound in fails]
    if any(good):
        return "meets"
    if all(poor):
        return "fails"
    if None not in good and False in poor:
        return "concern"
    return "undecided"


def worst(grades: Iterable[Grade]) -> Grade:
    """Return the worst grade; ``does not apply`` without one.

    Examples
    --------
    >>> worst(["meets", "undecided", "concern"])
    'concern'
    """
    return min(grades, key=GRADES.index, default="does not apply")
