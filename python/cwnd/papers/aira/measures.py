"""What is measured of a run for the AIRA paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cwnd.metrics import alpha_fairness, jain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.records import FlowRecord, Series
    from cwnd.result import Result

Row: TypeAlias = dict[str, float]
"""A row of Tables 3 and 4: goodput, retransmissions, fairness and alpha."""

KILO = 1024.0
"""Bytes in the paper's KB: 118.9 KB/s is 97.4 % of 1 Mb/s with it."""

LEAVE = 205.0
"""When flows 3 and 4 leave in section 6.4, in seconds."""


def row(result: Result) -> Row:
    """Measure what Tables 3 and 4 print, over the whole run.

    Parameters
    ----------
    result
        A run.

    Returns
    -------
    dict
        ``goodput`` of all flows in KB/s of 1024 bytes; ``retransmissions`` in packets;
        ``fairness``, Jain's index of what the flows sent (Eq. 3); and ``alpha``, that of their
        increases at the end (Eq. 4), 1 where the law's increase is fixed.
    """
    flows = result.measured_flows
    delivered = sum(flow["packets_delivered"] * flow["packet_bytes"] for flow in flows)
    increases = [float(flow["gauges"]["a"][-1]) if flow["gauges"] else 1.0 for flow in flows]
    return {
        "goodput": delivered / result.duration_s / KILO,
        "retransmissions": float(sum(flow["retransmissions"] for flow in flows)),
        "fairness": jain([flow["packets_sent"] for flow in flows]),
        "alpha": alpha_fairness(increases),
    }


def column(rows: Iterable[Row], name: str) -> list[float]:
    """Take one figure out of each row.

    Parameters
    ----------
    rows
        One for each seed.
    name
        Of the figure.
    """
    return [row[name] for row in rows]


def increase_at(result: Result, flow: FlowRecord, when: float) -> float:
    """Give a flow's additive increase at a time.

    Parameters
    ----------
    result
        A run.
    flow
        One of its flows, under AIRA.
    when
        Seconds.
    """
    return float(flow["gauges"]["a"][int(np.searchsorted(result.time, when, side="right")) - 1])


def together(cuts: Iterable[Series], within: float, window: tuple[float, float]) -> float:
    """Give the fraction of the cuts that come with a cut of another flow.

    Parameters
    ----------
    cuts
        Times at which each flow cut its window, in seconds, ascending.
    within
        How near the other cut has to be, in seconds.
    window
        From when to when.

    Returns
    -------
    float
        NaN without a cut.

    Examples
    --------
    >>> together([np.array([1.0, 5.0]), np.array([1.1, 3.0])], 0.2, (0.0, 9.0))
    0.5
    """
    times = [t[(t >= window[0]) & (t <= window[1])] for t in cuts]
    count = sum(t.size for t in times)
    if count == 0:
        return float("nan")
    shared = 0
    for number, mine in enumerate(times):
        others = np.concatenate([t for k, t in enumerate(times) if k != number])
        shared += int((np.abs(mine[:, None] - others[None, :]) <= within).any(axis=1).sum())
    return shared / count


@dataclass(frozen=True, slots=True)
class Entry:
    """What is seen as flows 2 and 3 enter at 50 and 100 s.

    Attributes
    ----------
    time, windows
        The flows' windows over time, in packets.
    starts
        When each started.
    delivered
        Packets that flow 2 and flow 3 got through in their first 10 s.
    jains
        Jain's index of the flows there, from 10 s after flow 2 and flow 3 started to the next one.
    together
        Fraction of the cuts from 50 to 150 s with one of another flow within 0.12 s, a round-trip
        time with a full queue.
    """

    time: Series
    windows: list[Series]
    starts: list[float]
    delivered: list[float]
    jains: list[float]
    together: float


def entry(result: Result) -> Entry:
    """Measure how flows enter in Figures 10 and 11.

    Parameters
    ----------
    result
        A run.
    """
    flows, time = result.measured_flows, result.time

    def delivered(k: int, begin: float, end: float) -> float:
        counts = np.interp([begin, end], time, flows[k]["delivered"])
        return float(counts[1] - counts[0])

    starts = [flow["start_s"] for flow in flows]
    return Entry(
        time,
        [flow["window"] for flow in flows],
        starts,
        [delivered(k, starts[k], starts[k] + 10) for k in (1, 2)],
        [
            jain([delivered(i, starts[k] + 10, 50.0 * (k + 1)) for i in range(k + 1)])
            for k in (1, 2)
        ],
        together([flow["cuts"]["time"] for flow in flows], 0.12, (50.0, 150.0)),
    )


def growth(result: Result, k: int) -> tuple[float, float]:
    """Measure how long a flow grows from W to 3W/2 after others left, and a round before.

    Parameters
    ----------
    result
        A run of Figure 19's network.
    k
        The flow's place in it: 0 or 1.

    Returns
    -------
    tuple of float
        The growth and a round, in seconds; NaN if it never got there. W is the mean of the windows
        at the cuts in the 50 s before the others left, a round the mean time between them.
    """
    flow = result.measured_flows[k]
    cuts = flow["cuts"]
    before = (cuts["time"] > LEAVE - 50) & (cuts["time"] < LEAVE)
    peak = float(cuts["before"][before].mean())
    time, window = result.time, flow["window"]
    high = int(np.argmax((time > LEAVE) & (window >= 1.5 * peak)))
    if high == 0:
        return math.nan, math.nan
    # The growth that got there: what came before its last crossing of W does not count.
    low = int(np.flatnonzero(window[:high] < peak)[-1])
    return float(time[high] - time[low]), float(np.diff(cuts["time"][before]).mean())


@dataclass(frozen=True, slots=True)
class Reset:
    """What the flows that stay do after `LEAVE`.

    Attributes
    ----------
    time, increases
        The flows' additive increases over time.
    waits
        Rounds of flow 1 and flow 2 until a is 1 again; until the end for one that never is.
    levels
        Mean a of flow 1 and flow 2 from 5 s after on.
    row
        What Table 3 prints.
    """

    time: Series
    increases: list[Series]
    waits: list[float]
    levels: list[float]
    row: Row


def reset(result: Result) -> Reset:
    """Measure what happens when two of four flows leave (Figure 19).

    Parameters
    ----------
    result
        A run under AIRA.
    """
    time, waits, levels = result.time, [], []
    for flow in result.measured_flows[:2]:
        a, cuts = flow["gauges"]["a"], flow["cuts"]["time"]
        ones = time[(time > LEAVE) & (a >= 0.999)]
        wait = float(ones[0] if ones.size else time[-1]) - LEAVE
        waits.append(wait / float(np.diff(cuts[(cuts > LEAVE - 50) & (cuts < LEAVE)]).mean()))
        levels.append(float(a[time > LEAVE + 5].mean()))
    increases = [flow["gauges"]["a"] for flow in result.measured_flows]
    return Reset(time, increases, waits, levels, row(result))
