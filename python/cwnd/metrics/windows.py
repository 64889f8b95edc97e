"""Fairness over windows of time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    t = np.asarray(time, dtype=float)
    number = max(math.floor((float(t[-1]) - start) / window + 1e-9), 0) if t.size else 0
    edges = start + window * np.arange(number + 1, dtype=float)
    spans = np.array(active if active is not None else [(-math.inf, math.inf)] * len(delivered))
    spans = spans.reshape(-1, 2)
    first = np.searchsorted(edges, spans[:, 0] - 1e-9)
    last = np.searchsorted(edges, spans[:, 1] + 1e-9, side="right") - 1
    total, squares, flows = np.zeros(number), np.zeros(number), np.zeros(number)
    for flow in np.flatnonzero(last > first).tolist():
        inside = slice(first[flow], last[flow])
        counted = np.interp(
            edges[first[flow] : last[flow] + 1], t, np.asarray(delivered[flow], dtype=float)
        )
        rate = np.diff(counted)
        total[inside] += rate
        squares[inside] += rate * rate
        flows[inside] += 1
    known = (squares > 0) & (flows > 1)
    jain = np.full(number, math.nan)
    jain[known] = total[known] ** 2 / (flows[known] * squares[known])
    ends = (float(jain[known].min()), float(jain[known].mean())) if known.any() else (math.nan,) * 2
    return JainSeries(edges[:-1], jain, *ends)
