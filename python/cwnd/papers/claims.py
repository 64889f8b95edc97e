"""Claims of a paper, each with the figure measured here and a verdict by a rule fixed beforehand.

A claim is made by one of the functions below, and the function is its rule: the verdict follows
from the figures alone. ``values`` hold one figure for each seed. Every rule speaks at the 95 %
level; ``unclear`` is the verdict when the seeds do not decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from cwnd.stats import estimate
from cwnd.verdict import ALIKE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.records import JsonObject

Verdict: TypeAlias = Literal["holds", "differs", "unclear"]

FEWEST = 3
"""Seeds below which a spread is not one."""

NUMBER_RULE = (
    "holds if the mean over the seeds is within half a unit of the last digit printed, or if what "
    "is printed lies in the interval that 95 % of single runs fall into (mean ± t·s·√(1 + 1/n))"
)
FORMULA_RULE = "holds if the value computed rounds to the digits printed"
ALIKE_RULE = (
    "holds if the 95 % interval of the mean ratio lies between 4/5 and 5/4, differs if it lies "
    "outside"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence or a number of a paper, held against a measurement.

    Attributes
    ----------
    text
        What is claimed, with the unit where there is one.
    published
        The number or the words printed; None for a claim of our own.
    measured
        The figure found here.
    interval
        Its bounds over the seeds; which interval that is, the rule says. None without one.
    rule
        How the verdict follows.
    verdict
        ``holds``, ``differs`` or ``unclear``.
    why
        Where it does not hold: what was tried, and what is thought to be the cause.
    """

    text: str
    published: str | None
    measured: float | str
    interval: tuple[float, float] | None
    rule: str
    verdict: Verdict
    why: str

    def to_json(self) -> JsonObject:
        """Give the claim as plain data; numbers that are not known become None."""
        known = isinstance(self.measured, str) or math.isfinite(self.measured)
        return {
            "text": self.text,
            "published": self.published,
            "measured": self.measured if known else None,
            "interval": list(self.interval) if self.interval else None,
            "rule": self.rule,
            "verdict": self.verdict,
            "why": self.why,
        }


def number(text: str, published: str, values: Iterable[float], *, why: str = "") -> Claim:
    """Hold a number that was printed against simulated runs.

    Parameters
    ----------
    text
        What it is, with its unit.
    published
        As printed: ``"118.9"``; with ``≈`` in front, the last digit that is not 0 counts as the
        last one printed.
    values
        One figure for each seed.
    why
        Told where the claim does not hold.

    Examples
    --------
    >>> number("goodput, KB/s", "118.9", [118.4, 118.9, 119.3]).verdict
    'holds'
    >>> number("retransmissions", "742", [700.0, 701.0, 702.0]).verdict
    'differs'
    """
    x = _finite(values)
    target, precision = read_printed(published)
    mean = float(x.mean()) if x.size else math.nan
    near = abs(mean - target) <= precision * (1 + 1e-9)
    spread = _spread(x)
    if near or (spread is not None and spread[0] <= target <= spread[1]):
        verdict: Verdict = "holds"
    else:
        verdict = "differs" if spread is not None else "unclear"
    return _claim(text, published, mean, spread, NUMBER_RULE, verdict, why)


def formula(text: str, published: str, value: float, *, why: str = "") -> Claim:
    """Hold a number that was printed against one that is computed without chance.

    Parameters
    ----------
    text
        What it is, with its unit.
    published
        As printed; see `number`.
    value
        The value computed.
    why
        Told where the claim does not hold.

    Examples
    --------
    >>> formula("α at β = 1/8", "0.31", 0.3125).verdict
    'holds'
    """
    target, precision = read_printed(published)
    verdict: Verdict = "holds" if abs(value - target) <= precision * (1 + 1e-9) else "differs"
    return _claim(text, published, value, None, FORMULA_RULE, verdict, why)


def at_least(
    text: str, bound: float, values: Iterable[float], *, published: str | None = None, why: str = ""
) -> Claim:
    """Claim that a mean is at least so much.

    Examples
    --------
    >>> at_least("fairness", 0.9, [0.95, 0.96, 0.97]).verdict
    'holds'
    """
    rule = f"holds if the 95 % interval of the mean is above {bound:g}, differs if it is below"
    return _bounded(text, published or f"≥ {bound:g}", values, (bound, math.inf), rule, why)


def at_most(
    text: str, bound: float, values: Iterable[float], *, published: str | None = None, why: str = ""
) -> Claim:
    """Claim that a mean is at most so much.

    Examples
    --------
    >>> at_most("loss", 0.1, [0.05, 0.16, 0.11]).verdict
    'unclear'
    """
    rule = f"holds if the 95 % interval of the mean is below {bound:g}, differs if it is above"
    return _bounded(text, published or f"≤ {bound:g}", values, (-math.inf, bound), rule, why)


def between(
    text: str,
    low: float,
    high: float,
    values: Iterable[float],
    *,
    published: str | None = None,
    why: str = "",
) -> Claim:
    """Claim that a mean lies between two bounds that the paper gives.

    Examples
    --------
    >>> between("share", 0.4, 0.6, [0.5, 0.51, 0.52]).verdict
    'holds'
    """
    rule = (
        f"holds if the 95 % interval of the mean lies between {low:g} and {high:g}, differs if it "
        "lies outside"
    )
    return _bounded(text, published or f"{low:g} to {high:g}", values, (low, high), rule, why)


def alike(
    text: str, ratios: Iterable[float], *, published: str | None = None, why: str = ""
) -> Claim:
    """Claim that two figures are about equal: their ratio for each seed.

    Examples
    --------
    >>> alike("SIMD over TCP", [0.97, 0.99, 1.01]).verdict
    'holds'
    """
    bounds = (1 / ALIKE, ALIKE)
    return _bounded(text, published or "about equal", ratios, bounds, ALIKE_RULE, why)


def less(
    text: str,
    smaller: Iterable[float],
    larger: Iterable[float],
    *,
    published: str | None = None,
    why: str = "",
) -> Claim:
    """Claim that one figure is smaller than another.

    Parameters
    ----------
    text
        What is claimed.
    smaller, larger
        One figure for each seed, paired if there are as many of both: the same seed is the same
        traffic.
    published
        What the paper prints of it.
    why
        Told where the claim does not hold.

    Examples
    --------
    >>> less("AIRA retransmits less", [748.0, 760.0, 755.0], [1065.0, 1090.0, 1001.0]).verdict
    'holds'
    """
    a, b = _raw(smaller), _raw(larger)
    if a.size == b.size:
        interval = _reach(b - a)
        rule = "holds if the 95 % interval of the difference, seed by seed, is above 0"
    else:
        interval = _welch(_finite(b), _finite(a))
        rule = "holds if Welch's 95 % interval of the difference is above 0"
    means = (_mean(a), _mean(b))
    rule += ", differs if no part of it is"
    words = f"{means[0]:.4g} against {means[1]:.4g}"
    # Two that are the same are not one smaller than the other.
    least = float(np.nextafter(0.0, 1.0))
    verdict = _decide(means[1] - means[0], interval, (least, math.inf))
    return _claim(text, published or "smaller", words, interval, rule, verdict, why)


def fact(
    text: str, measured: str, rule: str, *, holds: bool, published: str | None = None, why: str = ""
) -> Claim:
    """Claim something that no chance is in: a formula, a region, the order of computed curves.

    Parameters
    ----------
    text
        What is claimed.
    measured
        What was found, in words.
    rule
        When it holds.
    holds
        Whether it does.
    published
        What the paper prints of it.
    why
        Told where it does not hold.
    """
    return _claim(text, published, measured, None, rule, "holds" if holds else "differs", why)


def read_printed(printed: str) -> tuple[float, float]:
    """Read a printed number and half a unit of its last digit.

    Parameters
    ----------
    printed
        Such as ``118.9``, ``.85``, ``1e-4`` or ``≈600``.

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


def _bounded(
    text: str,
    published: str,
    values: Iterable[float],
    bounds: tuple[float, float],
    rule: str,
    why: str,
) -> Claim:
    """Judge a mean against bounds."""
    x = _raw(values)
    interval = _reach(x)
    verdict = _decide(_mean(x), interval, bounds)
    return _claim(text, published, _mean(x), interval, rule, verdict, why)


def _decide(
    mean: float, interval: tuple[float, float] | None, bounds: tuple[float, float]
) -> Verdict:
    """Tell on which side of the bounds an interval is."""
    if interval is None or not math.isfinite(mean):
        return "unclear"
    if bounds[0] <= interval[0] and interval[1] <= bounds[1]:
        return "holds"
    return "differs" if interval[1] < bounds[0] or bounds[1] < interval[0] else "unclear"


def _claim(
    text: str,
    published: str | None,
    measured: float | str,
    interval: tuple[float, float] | None,
    rule: str,
    verdict: Verdict,
    why: str,
) -> Claim:
    """Put a claim together; only one that does not hold needs a reason."""
    if verdict == "holds":
        reason = ""
    else:
        reason = why or ("Not known." if verdict == "differs" else "The seeds do not decide it.")
    return Claim(text, published, measured, interval, rule, verdict, reason)


def _raw(values: Iterable[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Collect figures."""
    return np.fromiter(values, dtype=np.float64)


def _finite(values: Iterable[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Collect the figures that are numbers."""
    x = _raw(values)
    return x[np.isfinite(x)]


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Average the figures that are numbers."""
    x = values[np.isfinite(values)]
    return float(x.mean()) if x.size else math.nan


def _reach(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float] | None:
    """Give the 95 % interval of the mean; None with too few seeds."""
    x = x[np.isfinite(x)]
    if x.size < FEWEST:
        return None
    e = estimate(x)
    return e.low, e.high


def _spread(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float] | None:
    """Give the interval that 95 % of single runs fall into; None with too few seeds."""
    interval = _reach(x)
    if interval is None:
        return None
    mean, half = float(x.mean()), (interval[1] - interval[0]) / 2
    reach = half * math.sqrt(x.size + 1)
    return mean - reach, mean + reach


def _welch(
    a: np.ndarray[tuple[int], np.dtype[np.float64]], b: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> tuple[float, float] | None:
    """Give Welch's 95 % interval of the difference of two means; None with too few seeds."""
    if min(a.size, b.size) < FEWEST:
        return None
    from scipy.special import stdtrit

    parts = np.array([a.var(ddof=1) / a.size, b.var(ddof=1) / b.size])
    error = math.sqrt(parts.sum())
    difference = float(a.mean() - b.mean())
    if error == 0.0:
        return difference, difference
    freedom = parts.sum() ** 2 / (parts**2 / np.array([a.size - 1, b.size - 1])).sum()
    reach = float(stdtrit(freedom, 0.975)) * error
    return difference - reach, difference + reach
