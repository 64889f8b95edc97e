"""Number of repeats of a case: fixed, or until its verdicts are decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

Repeat: TypeAlias = int | Literal["auto"]
"""A number of repeats, or ``auto``: as many as the verdicts need, up to a limit."""

MAX_REPEATS = 80
"""Largest number of repeats of ``auto`` on the simulator."""

MAX_REPEATS_REAL = 20
"""Largest number of repeats of ``auto`` in real time."""


def read_repeat(repeat: Repeat, first: int, *, real: bool = False) -> tuple[int, int]:
    """Return the first and the largest number of repeats; ``auto`` starts with ``first``.

    Examples
    --------
    >>> read_repeat(7, 10), read_repeat("auto", 10)
    ((7, 7), (10, 80))
    """
    if repeat == "auto":
        return first, MAX_REPEATS_REAL if real else MAX_REPEATS
    if not isinstance(repeat, int) or repeat < 1:
        raise ArgumentError("repeat", f"{repeat!r} is neither auto nor a whole number above 0")
    return repeat, repeat


def targets(first: int, most: int) -> Iterator[int]:
    """Yield the numbers of repeats after which ``auto`` checks the verdicts, doubling each time.

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
    """Describe how many repeats ``auto`` made, and which verdicts are still undecided.

    Examples
    --------
    >>> repeats_text(20, [])
    '20 repeats: every verdict is decided'
    >>> repeats_text(80, ["fairness of simd"])
    '80 repeats, the limit; undecided: fairness of simd'
    """
    if not undecided:
        return f"{repeat} repeats: every verdict is decided"
    return f"{repeat} repeats, the limit; undecided: {', '.join(undecided)}"
