"""Confidence intervals of means, differences and ratios over independent runs.

Every interval is at the 95 % level and is the union of two intervals, each of which is too narrow
for some distributions:

* Student's interval of the mean on a transformed scale without bounds (the logarithm for values of
  zero or more, the logit between two bounds), mapped back. It has n - 2 degrees of freedom from
  four runs on, as the coverage with n - 1 is too low for five runs. Metrics without bounds are not
  transformed.
* Student's interval corrected for the skewness of the values by Hall's cubic transformation
  (P. Hall, "On the removal of skewness by transformation", J. R. Statist. Soc. B 54, 1992), as far
  as its slope is positive.

`docs/metrics.md` has the measured coverage and its limits.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable

    Array: TypeAlias = npt.NDArray[np.float64]

LEVEL = 0.95
"""Confidence level of every interval."""

_MAX_EXPONENT = 700.0
"""Largest argument of the exponential function that does not overflow."""


@dataclass(frozen=True, slots=True)
class Range:
    """Range of values of a metric.

    Attributes
    ----------
    low, high
        The smallest and the largest value; infinite without a bound.
    step
        Increment of a count by one event; 0 for a metric that is not a count.
    """

    low: float = -math.inf
    high: float = math.inf
    step: float = 0.0


ANY = Range()
"""Any number, such as a difference."""

POSITIVE = Range(low=0.0)
"""Zero or more: rates, times, ratios."""

UNIT = Range(low=0.0, high=1.0)
"""Zero to one: shares, loss rates, utilisation, Jain's index."""

COUNT = Range(low=0.0, step=1.0)
"""Numbers of events: timeouts, cuts, retransmissions."""


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
        """Whether the estimate has an interval."""
        return math.isfinite(self.low)

    def to_json(self) -> dict[str, object]:
        """Return the mean and the interval as plain data; unknown numbers are None."""
        return {
            "mean": self.mean if math.isfinite(self.mean) else None,
            "interval": [self.low, self.high] if self.known else None,
        }


def estimate(values: Iterable[float], within: Range = ANY) -> Estimate:
    """Estimate a mean from independent runs.

    Parameters
    ----------
    values
        One value for each run; NaN (a run without this value) is ignored.
    within
        The metric's range of values, which bounds the interval.

    Returns
    -------
    Estimate
        The mean and its interval; no interval with fewer than two values.

    Notes
    -----
    Equal values have an interval of width zero: a continuous metric that is equal for all seeds
    does not depend on the seed. A count differs, because no event may have occurred in any run even
    if its rate is not zero. The interval of a count extends to the rate at which ``n`` runs without
    an event have probability 2.5 % (Poisson): 3.69 / n steps.

    Examples
    --------
    >>> e = estimate([9.0, 10.0, 11.0])
    >>> round(e.mean, 3), round(e.low, 3), round(e.high, 3)
    (10.0, 7.516, 12.484)
    >>> e = estimate([0.3, 0.8], UNIT)
    >>> round(e.low, 2), round(e.high, 2)
    (0.0, 1.0)
    >>> estimate([0, 0, 0, 0, 0], COUNT).high
    0.7377...
    """
    x = _array(values)
    x = x[np.isfinite(x)]
    if x.size < 2:
        mean = float(x[0]) if x.size else math.nan
        return Estimate(mean, math.nan, math.nan, x.size)
    if x.min() == x.max():
        mean = float(x[0])
        reach = within.step * -math.log((1 - LEVEL) / 2) / x.size
        return _union(mean, [(mean - reach, mean + reach)], x.size, within)
    mean = _mean(x)
    deviations = x - mean
    deviation = math.sqrt(_sum(deviations * deviations) / (x.size - 1))
    skewness = _skewness(deviations) if x.size > 2 else 0.0
    return _union(
        mean,
        [
            _on_open_scale(mean, deviation / math.sqrt(x.size), x.size, within),
            _without_skewness(mean, deviation, skewness, x.size),
        ],
        x.size,
        within,
    )


def estimate_difference(a: Iterable[float], b: Iterable[float]) -> Estimate:
    """Estimate the mean of ``a`` minus the mean of ``b``.

    Parameters
    ----------
    a, b
        One value for each run. If both have the same number of values, these are paired in order,
        because the same seed generates the same traffic; NaN removes its pair. Otherwise the
        interval is Welch's.

    Returns
    -------
    Estimate
        The difference and its interval. ``n`` is the number of pairs, or of the fewer runs.

    Examples
    --------
    >>> estimate_difference([3.0, 4.0, 6.0], [1.0, 2.0, 4.0])
    Estimate(mean=2.0, low=2.0, high=2.0, n=3)
    """
    x, y = _array(a), _array(b)
    if x.size == y.size:
        return estimate(x - y)
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    n = min(x.size, y.size)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    difference = float(x.mean() - y.mean())
    if n == 1:
        return Estimate(difference, math.nan, math.nan, 1)
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():
        # SciPy warns of equal values; runs that do not depend on their seed have variance 0.
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = ttest_ind(x, y, equal_var=False).confidence_interval(LEVEL)
    return Estimate(difference, float(interval.low), float(interval.high), n)


def estimate_ratio(numerators: Iterable[float], denominators: Iterable[float]) -> Estimate:
    """Estimate the mean of ``numerators`` divided by the mean of ``denominators``.

    The ratio of two means is linearised: run ``i`` contributes (x_i - r y_i) / mean(y) to the
    deviation from the ratio r.

    Parameters
    ----------
    numerators, denominators
        One value of zero or more for each run, equally many of both, paired in order; NaN removes
        its pair.

    Returns
    -------
    Estimate
        The ratio and its interval; NaN if all denominators are 0.

    Examples
    --------
    >>> estimate_ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    Estimate(mean=2.0, low=2.0, high=2.0, n=3)
    """
    x, y = _array(numerators), _array(denominators)
    paired = np.isfinite(x) & np.isfinite(y)
    x, y = x[paired], y[paired]
    scale = float(y.mean()) if y.size else 0.0
    if scale <= 0:
        return Estimate(math.nan, math.nan, math.nan, x.size)
    ratio = float(x.mean()) / scale
    return estimate(ratio + (x - ratio * y) / scale, POSITIVE)


def _array(values: Iterable[float]) -> Array:
    """Convert numbers to an array."""
    return np.fromiter(values, dtype=np.float64)


@lru_cache
def _student(freedom: float) -> float:
    """Return the quantile of Student's t that bounds an interval."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def _sum(x: Array) -> float:
    """Return the sum of an array."""
    # The methods of arrays execute Python code, which takes several times as long.
    return float(np.add.reduce(x))


def _mean(x: Array) -> float:
    """Return the mean of an array."""
    return _sum(x) / x.size


def _skewness(deviations: Array) -> float:
    """Return the sample skewness of at least three values, adjusted for their number.

    ``deviations`` are the differences from the mean.
    """
    # scipy.stats.skew(x, bias=False) gives the same, but scipy.stats takes 0.7 s to import.
    deviations = deviations / np.abs(deviations).max()
    n = deviations.size
    moment = _mean(deviations**3) / float(_mean(deviations**2) ** 1.5)
    return moment * math.sqrt(n * (n - 1)) / (n - 2)


def _on_open_scale(mean: float, error: float, n: int, within: Range) -> tuple[float, float]:
    """Return Student's interval on a transformed scale on which a range has no bounds.

    ``error`` is the standard error of the mean of ``n`` values.
    """
    below, above = mean - within.low, within.high - mean
    if below <= 0 or above <= 0 or math.isinf(below):
        reach = _student(n - 1) * error
        return mean - reach, mean + reach
    reach = _student(n - 2 if n > 3 else n - 1) * error
    if math.isinf(above):
        factor = math.exp(min(reach / below, _MAX_EXPONENT))
        return within.low + below / factor, within.low + below * factor
    width = within.high - within.low
    factor = math.exp(min(reach / below * (width / above), _MAX_EXPONENT))
    return (
        within.low + width * below / (below + above * factor),
        within.low + width * below / (below + above / factor),
    )


def _without_skewness(
    mean: float, deviation: float, skewness: float, n: int
) -> tuple[float, float]:
    """Return Hall's interval: Student's after a cubic transformation that removes the skewness.

    The inverse transformation is limited to where the slope of the cubic is positive.
    """
    t = _student(n - 1) / math.sqrt(n)
    if abs(skewness) < 1e-9:
        low, high = -t, t
    else:
        low, high = (
            3 / skewness * (max(1 + skewness * (side - skewness / (6 * n)), 0.0) ** (1 / 3) - 1)
            for side in (-t, t)
        )
    return mean - deviation * high, mean - deviation * low


def _union(mean: float, intervals: list[tuple[float, float]], n: int, within: Range) -> Estimate:
    """Return an estimate with the union of some intervals, clipped to a range."""
    low = max(min(low for low, _ in intervals), within.low)
    high = min(max(high for _, high in intervals), within.high)
    return Estimate(mean, float(min(low, mean)), float(max(high, mean)), n)
