"""How often a case is repeated: a fixed number of times, or until its verdicts are decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

Repeat: TypeAlias = int | Literal["auto"]
"""A number of repeats, or ``auto``: as many as the verdicts need."""

MOST = 80
"""Repeats that ``auto`` makes on the simulator, at most."""

MOST_REAL = 20
"""Repeats that ``auto`` makes in real time, at most."""


def read_repeat(repeat: Repeat, first: int, *, real: bool = False) -> tuple[int, int]:
    """Return the number of repeats to begin with, and the largest one.

    Parameters
    ----------
    repeat
        What was asked for.
    first
        What ``auto`` begins with.
    real
        Whether the runs take real time.

    Raises
    ------
    ArgumentError
        It is neither.

    Examples
    --------
    >>> read_repeat(7, 10), read_repeat("auto", 10)
    ((7, 7), (10, 80))
    """
    if repeat == "auto":
        return first, MOST_REAL if real else MOST
    if not isinstance(repeat, int) or repeat < 1:
        raise ArgumentError("repeat", f"{repeat!r} is neither auto nor at least 1")
    return repeat, repeat


def targets(first: int, most: int) -> Iterator[int]:
    """Give the numbers of repeats after which the verdicts are looked at: each doubles the last.

    Examples
    --------
    >>> list(targets(10, 80)), list(targets(5, 5))
    ([10, 20, 40, 80], [5])
    """
    while first < most:
        yield first
        first *= 2
    yield most


def repeats_text(repeat: int, undecided: list[str]) -> str:
    """Say how many repeats ``auto`` has made, and what they did not decide.

    Parameters
    ----------
    repeat
        The number.
    undecided
        What is not decided.

    Examples
    --------
    >>> repeats_text(20, [])
    '20 repeats: every verdict is decided'
    >>> repeats_text(80, ["fairness of simd"])
    '80 repeats, the limit: undecided are fairness of simd'
    """
    if not undecided:
        return f"{repeat} repeats: every verdict is decided"
    return f"{repeat} repeats, the limit: undecided are {', '.join(undecided)}"
