"""Text of figures, and notes on runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd._runs.result import Result
    from cwnd.stats import Estimate


def number(value: float | None, digits: int, factor: float = 1.0) -> str:
    """Format a number times ``factor`` with a fixed number of decimals; a dash if it is unknown.

    Examples
    --------
    >>> number(0.0314159, 2, factor=100), number(None, 2)
    ('3.14', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value * factor:.{digits}f}"


def interval_text(value: Estimate, digits: int, factor: float = 1.0) -> str:
    """Format the interval of an estimate; empty without one.

    Examples
    --------
    >>> from cwnd.stats import Estimate
    >>> interval_text(Estimate(0.56, 0.31, 0.78, 5), 0, factor=100)
    '31–78'
    """
    if not value.known:
        return ""
    return f"{number(value.low, digits, factor)}–{number(value.high, digits, factor)}"


def join_parts(*parts: str) -> str:
    """Join the parts of a line that are not empty.

    Examples
    --------
    >>> join_parts("2 flows", "", "3 × 20 s")
    '2 flows; 3 × 20 s'
    """
    return "; ".join(filter(None, parts))


def caveats(results: Iterable[Result]) -> list[str]:
    """Return notes on runs in real time, one line each: approximations, and emulator limits."""
    runs = list(results)
    lines = [f"{run.on}: {note}" for run in runs for note in run.notes]
    for on in dict.fromkeys(run.on for run in runs):
        here = [run for run in runs if run.on == on]
        limits = [run.limit for run in here if run.limit is not None]
        often = f" in {len(limits)} of {len(here)} runs" if len(here) > 1 else ""
        if limits:
            lines.append(f"{on}: limited by the emulator, not by the network{often}: {limits[0]}")
    return list(dict.fromkeys(lines))
