"""What the models share: domains of arguments, and numbers in, numbers out."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError

Array: TypeAlias = npt.NDArray[np.float64]
Value: TypeAlias = float | Array
"""What a model gives: a number for numbers, an array where an argument was one."""


def plain(values: npt.ArrayLike) -> Value:
    """Return a number as a number and an array as an array.

    Parameters
    ----------
    values
        A result of any shape.

    Examples
    --------
    >>> plain(np.array(2.5)), plain(np.array([2.5])).tolist()
    (2.5, [2.5])
    """
    array = np.asarray(values, dtype=float)
    return float(array) if array.ndim == 0 else array


def positive(name: str, values: npt.ArrayLike, *, infinite: bool = False) -> Array:
    """Read numbers above 0.

    Parameters
    ----------
    name
        The argument's name.
    values
        What was given.
    infinite
        Whether infinity is one of them.

    Raises
    ------
    ArgumentError
        One of them is not.

    Examples
    --------
    >>> positive("rtt", 0.1).tolist()
    0.1
    """
    array = _numbers(name, values)
    expected = "above 0" if infinite else "above 0 and finite"
    return _check(name, array, (array > 0) & (infinite | np.isfinite(array)), expected)


def non_negative(name: str, values: npt.ArrayLike) -> Array:
    """Read finite numbers that are not below 0; refuse as `positive` does.

    Parameters
    ----------
    name
        The argument's name.
    values
        What was given.

    Examples
    --------
    >>> non_negative("queue", [0, 2]).tolist()
    [0.0, 2.0]
    """
    array = _numbers(name, values)
    return _check(name, array, (array >= 0) & np.isfinite(array), "at least 0 and finite")


def probability(name: str, values: npt.ArrayLike) -> Array:
    """Read probabilities of something that happens: above 0, at most 1; refuse as `positive` does.

    Parameters
    ----------
    name
        The argument's name.
    values
        What was given.

    Examples
    --------
    >>> probability("p", [0.01, 1]).tolist()
    [0.01, 1.0]
    """
    array = _numbers(name, values)
    return _check(name, array, (array > 0) & (array <= 1), "above 0 and at most 1")


def fraction(name: str, values: npt.ArrayLike) -> Array:
    """Read true fractions: above 0, below 1; refuse as `positive` does.

    Parameters
    ----------
    name
        The argument's name.
    values
        What was given.

    Examples
    --------
    >>> fraction("beta", 0.5).tolist()
    0.5
    """
    array = _numbers(name, values)
    return _check(name, array, (array > 0) & (array < 1), "above 0 and below 1")


def between(name: str, values: npt.ArrayLike, low: float, high: float) -> Array:
    """Read numbers from ``low`` to ``high``, both included; refuse as `positive` does.

    Parameters
    ----------
    name
        The argument's name.
    values
        What was given.
    low, high
        The bounds.

    Examples
    --------
    >>> between("loss", 0, 0, 1).tolist()
    0.0
    """
    array = _numbers(name, values)
    return _check(name, array, (array >= low) & (array <= high), f"between {low:g} and {high:g}")


def whole(name: str, values: npt.ArrayLike, least: int = 0) -> Array:
    """Read whole numbers, as floats; refuse as `positive` does.

    Parameters
    ----------
    name
        The argument's name.
    values
        What was given.
    least
        The smallest that is allowed.

    Examples
    --------
    >>> whole("flows", 3, least=1).tolist()
    3.0
    """
    array = _numbers(name, values)
    good = (array >= least) & np.isfinite(array) & (np.floor(array) == array)
    return _check(name, array, good, f"a whole number of at least {least}")


def _numbers(name: str, values: npt.ArrayLike) -> Array:
    """Read numbers of any kind."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(name, f"{values!r} is not a number") from None


def _check(name: str, array: Array, good: npt.NDArray[np.bool_], expected: str) -> Array:
    """Refuse an array of which some element is not as expected."""
    if not np.all(good):
        worst = float(array[~np.asarray(good)].flat[0]) if array.ndim else float(array)
        raise ArgumentError(name, f"must be {expected}, not {worst:g}")
    return array
