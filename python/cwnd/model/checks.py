"""Common code of the models: domains of arguments, and conversion of results.

A check takes the name of an argument and its values. It returns the values as an array, or raises
an `ArgumentError` if an element is out of range.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError

Array: TypeAlias = npt.NDArray[np.float64]
Value: TypeAlias = float | Array
"""Result of a model: a number for numbers, an array if an argument is an array."""

MAX_STAGE = 100
"""Last stage of UDT's increase in the models; it is 10^-100 of the capacity."""

MOST = 1_000_000_000
"""Largest whole number of a model that has no step and no element for each."""


def plain(values: npt.ArrayLike) -> Value:
    """Convert a zero-dimensional array to a number; return other arrays unchanged.

    Examples
    --------
    >>> plain(np.array(2.5)), plain(np.array([2.5])).tolist()
    (2.5, [2.5])
    """
    array = np.asarray(values, dtype=float)
    return float(array) if array.ndim == 0 else array


def positive(name: str, values: npt.ArrayLike, *, infinite: bool = False) -> Array:
    """Validate numbers above 0, finite unless ``infinite``.

    Examples
    --------
    >>> positive("rtt", 0.1).tolist()
    0.1
    """
    array = _numbers(name, values)
    expected = "above 0" if infinite else "above 0 and finite"
    return _check(name, array, (array > 0) & (infinite | np.isfinite(array)), expected)


def non_negative(name: str, values: npt.ArrayLike) -> Array:
    """Validate finite numbers of at least 0.

    Examples
    --------
    >>> non_negative("queue", [0, 2]).tolist()
    [0.0, 2.0]
    """
    array = _numbers(name, values)
    return _check(name, array, (array >= 0) & np.isfinite(array), "at least 0 and finite")


def probability(name: str, values: npt.ArrayLike) -> Array:
    """Validate probabilities above 0 and at most 1.

    Examples
    --------
    >>> probability("p", [0.01, 1]).tolist()
    [0.01, 1.0]
    """
    array = _numbers(name, values)
    return _check(name, array, (array > 0) & (array <= 1), "above 0 and at most 1")


def fraction(name: str, values: npt.ArrayLike) -> Array:
    """Validate fractions above 0 and below 1.

    Examples
    --------
    >>> fraction("beta", 0.5).tolist()
    0.5
    """
    array = _numbers(name, values)
    return _check(name, array, (array > 0) & (array < 1), "above 0 and below 1")


def between(name: str, values: npt.ArrayLike, low: float, high: float) -> Array:
    """Validate numbers from ``low`` to ``high``, both included.

    Examples
    --------
    >>> between("loss", 0, 0, 1).tolist()
    0.0
    """
    array = _numbers(name, values)
    return _check(name, array, (array >= low) & (array <= high), f"between {low:g} and {high:g}")


def whole(name: str, values: npt.ArrayLike, least: int = 0, most: int = MOST) -> Array:
    """Validate whole numbers from ``least`` to ``most``, and convert them to floats.

    ``most`` bounds the memory and the time of a model that has a step or an element for each.

    Examples
    --------
    >>> whole("flows", 3, least=1).tolist()
    3.0
    """
    array = _numbers(name, values)
    good = (array >= least) & (array <= most) & (np.floor(array) == array)
    return _check(name, array, good, f"a whole number from {least} to {most}")


def _numbers(name: str, values: npt.ArrayLike) -> Array:
    """Convert numbers of any type to an array."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(name, f"{values!r} is not a number") from None
    except OverflowError:
        raise ArgumentError(name, "must be at most 1.8e308") from None


def _check(name: str, array: Array, good: npt.NDArray[np.bool_], expected: str) -> Array:
    """Raise an error if an element of an array is invalid."""
    if not np.all(good):
        worst = float(array[~np.asarray(good)].flat[0]) if array.ndim else float(array)
        raise ArgumentError(name, f"must be {expected}, not {worst:g}")
    return array
