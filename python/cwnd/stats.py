"""Confidence intervals of means, differences and ratios over independent runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable

    Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a metric can take.

    Attributes
    ----------
    low, high
        The smallest and the largest value; infinite without a bound.
    """

    low: float = -math.inf
    high: float = math.inf


ANY = Range()
"""Any number, such as a difference."""

POSITIVE = Range(low=0.0)
"""Zero or more: rates, times, counts, ratios."""

UNIT = Range(low=0.0, high=1.0)
"""Zero to one: shares, loss rates, utilisation, Jain's index."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its 95 % confidence interval.

    Attributes
    ----------
    mean
        Mean over the runs; NaN without a finite value.
    low, high
        Bounds of the interval; NaN with fewer than two values.
    n
        Number of finite values.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)

    @property
    def half_width(self) -> float:
        """Half the width of the interval; NaN without one."""
        return (self.high - self.low) / 2

    def to_json(self) -> dict[str, object]:
        """Return the mean and the interval as plain data; unknown and infinite numbers are None."""

        def plain(x: float) -> float | None:
            return x if math.isfinite(x) else None

        return {
            "mean": plain(self.mean),
            "interval": [plain(self.low), plain(self.high)] if self.known else None,
        }


def estimate(values: Iterable[float], within: Range = ANY) -> Estimate:
    """Estimate a mean from independent runs.

    Parameters
    ----------
    values
        One value for each run; NaN (a run without this value) is left out.
    within
        The values that the metric can take; the interval does not leave this range.
    """
    x = np.asarray(list(values), dtype=np.float64)
    x = x[np.isfinite(x)]
    if x.size == 0:
        return _unknown()
    mean = float(x.mean())
    if x.size == 1:
        return Estimate(mean, math.nan, math.nan, 1)
    error = float(x.std(ddof=1)) / math.sqrt(x.size)
    return _interval(mean, error, x.size - 1, x.size, within)


def estimate_difference(a: Iterable[float], b: Iterable[float]) -> Estimate:
    """Estimate the mean of ``a`` less the mean of ``b``.

    Parameters
    ----------
    a, b
        One value for each run. With as many of both, the runs are paired: the same seed is the same
        traffic. Otherwise the interval is Welch's.
    """
    x, y = (np.asarray(list(each), dtype=np.float64) for each in (a, b))
    if x.size == y.size:
        return estimate(x - y)
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    if min(x.size, y.size) == 0:
        return _unknown()
    n = min(x.size, y.size)
    difference = float(x.mean() - y.mean())
    if n == 1:
        return Estimate(difference, math.nan, math.nan, n)
    parts = np.array([x.var(ddof=1) / x.size, y.var(ddof=1) / y.size])
    error = math.sqrt(parts.sum())
    if error == 0.0:
        return Estimate(difference, difference, difference, n)
    freedom = float(parts.sum() ** 2 / (parts**2 / np.array([x.size - 1, y.size - 1])).sum())
    return _interval(difference, error, freedom, n, ANY)


def estimate_ratio(numerators: Iterable[float], denominators: Iterable[float]) -> Estimate:
    """Estimate the mean of ``numerators`` over the mean of ``denominators``.

    Parameters
    ----------
    numerators, denominators
        One value of zero or more for each run, paired by seed: as many of both.

    Returns
    -------
    Estimate
        NaN where the denominators are all 0.
    """
    x, y = (np.asarray(list(each), dtype=np.float64) for each in (numerators, denominators))
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    if x.size == 0 or y.mean() <= 0:
        return _unknown()
    ratio = float(x.mean() / y.mean())
    if x.size == 1:
        return Estimate(ratio, math.nan, math.nan, 1)
    error = float((x - ratio * y).std(ddof=1)) / math.sqrt(x.size) / float(y.mean())
    return _interval(ratio, error, x.size - 1, x.size, POSITIVE)


def _unknown() -> Estimate:
    """Return the estimate without data."""
    return Estimate(math.nan, math.nan, math.nan, 0)


def _interval(mean: float, error: float, freedom: float, n: int, within: Range) -> Estimate:
    """Return the t interval cut to the range, united with that of the transformed mean."""
    from scipy.special import stdtrit

    reach = float(stdtrit(freedom, 0.975)) * error
    low, high = mean - reach, mean + reach
    return Estimate(mean, max(low, within.low), min(high, within.high), n)
