"""Fairness over windows of time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from cwnd import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cwnd.metrics.network import Array


class JainSeries(NamedTuple):
    """Jain's index in windows of time: their beginnings, the index in each, its worst and mean."""

    time: Array
    jain: Array
    worst: float
    mean: float


def jain_over_time(
    time: npt.ArrayLike,
    delivered: Sequence[npt.ArrayLike],
    window: float,
    start: float = 0.0,
    active: Sequence[tuple[float, float]] | None = None,
) -> JainSeries:
    """Jain's fairness index in windows of equal length (RFC 5166, section 2.3; Jain 1984).

    Parameters
    ----------
    time
        Times of the samples in seconds, ascending.
    delivered
        For each flow, the bytes delivered (or sent) until those times.
    window
        Length of a window in seconds.
    start
        Beginning of the first window.
    active
        Start and end of each flow in seconds; a flow counts in the windows in between. By default
        all flows count in all windows.

    Returns
    -------
    JainSeries
        The index of each complete window, NaN for one with fewer than two flows or without data;
        its worst and its mean are over the others.

    Examples
    --------
    >>> found = jain_over_time([0.0, 1.0, 2.0], [[0, 4, 6], [0, 0, 2]], 1.0)
    >>> found.jain.tolist(), found.worst, found.mean
    ([0.5, 1.0], 0.5, 0.75)
    """
    always = [(-math.inf, math.inf)] * len(delivered)
    spans = always if active is None else [(begin, end) for begin, end in active]
    return JainSeries(*_native.jain_over_time(time, delivered, window, start, spans))
