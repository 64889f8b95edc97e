"""A mean over repeats and how far it can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its interval of 95 % confidence.

    Attributes
    ----------
    mean
        Mean over the repeats; NaN when no repeat gave a number.
    low, high
        Bounds of the interval; NaN when there are fewer than two repeats.
    """

    mean: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.low)

    @property
    def half_width(self) -> float:
        """Half the interval; NaN without one."""
        return (self.high - self.low) / 2

    def to_json(self) -> dict[str, object]:
        """Give the mean and the interval as plain data; what is not known is None."""
        return {
            "mean": self.mean if math.isfinite(self.mean) else None,
            "interval": [self.low, self.high] if self.known else None,
        }


def estimate(values: Iterable[float]) -> Estimate:
    """Estimate a mean from repeats, by Student's t distribution.

    Parameters
    ----------
    values
        One figure for each repeat. NaN (a figure that a repeat could not give) is left out.

    Returns
    -------
    Estimate
        The mean and its interval of 95 % confidence.

    Examples
    --------
    >>> e = estimate([9.0, 10.0, 11.0])
    >>> round(e.mean, 3), round(e.low, 3), round(e.high, 3)
    (10.0, 7.516, 12.484)
    """
    x = np.asarray(list(values), dtype=float)
    x = x[np.isfinite(x)]
    if x.size == 0:
        return Estimate(math.nan, math.nan, math.nan)
    mean = float(x.mean())
    if x.size == 1:
        return Estimate(mean, math.nan, math.nan)
    from scipy.special import stdtrit

    error = float(x.std(ddof=1)) / math.sqrt(x.size)
    reach = float(stdtrit(x.size - 1, 0.975)) * error
    return Estimate(mean, mean - reach, mean + reach)
