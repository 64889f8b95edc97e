"""Text of figures, and notes on runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd._runs.result import Result


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
