"""Text of figures, and notes on runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cwnd.units import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd._runs.result import Result

ROUND_TRIPS = 10
"""Round-trip times that the scale of smoothness and the windows of Jain's index have."""


def join_parts(*parts: str) -> str:
    """Join the parts of a line that are not empty.

    Examples
    --------
    >>> join_parts("2 flows", "", "3 × 20 s")
    '2 flows; 3 × 20 s'
    """
    return "; ".join(filter(None, parts))


def caveats(results: Iterable[Result]) -> list[str]:
    """Return notes on runs, one line each.

    They are about what had no effect, connections that were closed and short runs, and in real time
    about approximations and limits.
    """
    runs = list(results)
    lines = [f"{run.on}: {note}" for run in runs for note in run.notes]
    for on in dict.fromkeys(run.on for run in runs):
        here = [run for run in runs if run.on == on]
        limits = [run.limit for run in here if run.limit is not None]
        often = f" in {len(limits)} of {len(here)} runs" if len(here) > 1 else ""
        if limits:
            lines.append(f"{on}: limited by the emulator, not by the network{often}: {limits[0]}")
    lines += _closed(runs)
    short = min(runs, key=_round_trips, default=None)
    if short is not None and _round_trips(short) < ROUND_TRIPS:
        measured, rtt = short.duration_s - short.warmup_s, _longest_rtt(short)
        lines.append(
            f"the measured time of {format_time(measured)} is only {_round_trips(short):.2g} "
            f"round-trip times of {format_time(rtt)}"
        )
    return list(dict.fromkeys(lines))


def _closed(runs: list[Result]) -> list[str]:
    """Return a line for each flow and reason for which its connection was closed."""
    times: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for flow in run.record["flows"]:
            if closed := flow["closed"]:
                times.setdefault((flow["name"], closed["reason"]), []).append(closed["at_s"])
    often = f" in {{}} of {len(runs)} runs" if len(runs) > 1 else ""
    return [
        f"{name}: the connection was closed at {format_time(min(at))}{often.format(len(at))}: {why}"
        for (name, why), at in times.items()
    ]


def _round_trips(run: Result) -> float:
    """Return the measured time of a run in its longest round-trip time without queueing."""
    rtt = _longest_rtt(run)
    return (run.duration_s - run.warmup_s) / rtt if rtt > 0 else math.inf


def _longest_rtt(run: Result) -> float:
    """Return the longest round-trip time without queueing of the measured flows; 0 if unknown."""
    times = (flow["base_rtt_s"] for flow in run.measured_flows)
    return max(filter(math.isfinite, times), default=0.0)
