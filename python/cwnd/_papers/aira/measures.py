"""Measurements of the AIRA paper's networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cwnd.metrics import alpha_fairness, jain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd._base.records import FlowRecord, Series
    from cwnd._runs.result import Result

Row: TypeAlias = dict[str, float]
"""A row of Tables 3 and 4: goodput, retransmissions, fairness and alpha; see `row`."""

KILO = 1024.0
"""Bytes in the paper's KB: then 118.9 KB/s is 97.4 % of 1 Mb/s."""

LEAVE = 205.0
"""Time in seconds at which flows 3 and 4 leave in section 6.4."""

NEAR = 0.12
"""Round-trip time of section 5.4's network with a full queue, in seconds."""


def row(result: Result) -> Row:
    """Return the quantities of Tables 3 and 4, over the whole run.

    ``goodput`` of all flows in KB/s of 1024 bytes; ``retransmissions`` in packets; ``fairness``,
    Jain's index of the packets sent (Eq. 3); and ``alpha``, that of the additive increases at the
    end (Eq. 4), 1 for a law with a fixed increase. Not in the tables: ``rate-fairness``, Jain's
    index of the packets sent per second of each flow's time; ``events``, cuts except at timeouts;
    and ``timeouts``.
    """
    flows = result.measured_flows
    delivered = sum(flow["bytes_delivered"] for flow in flows)
    increases = [float(flow["gauges"]["a"][-1]) if flow["gauges"] else 1.0 for flow in flows]
    sent = np.array([flow["packets_sent"] for flow in flows])
    times = [min(flow["stop_s"], result.duration_s) - flow["start_s"] for flow in flows]
    return {
        "goodput": delivered / result.duration_s / KILO,
        "retransmissions": float(sum(flow["retransmissions"] for flow in flows)),
        "fairness": jain(sent),
        "alpha": alpha_fairness(increases),
        "rate-fairness": jain(sent / times),
        "events": float(sum(_ends(flow).size for flow in flows)),
        "timeouts": float(sum(flow["timeouts"] for flow in flows)),
    }


@dataclass(frozen=True, slots=True)
class Traced:
    """Row of a run, and the additive increase ``a`` of each flow over time (1 for AIMD)."""

    row: Row
    time: Series
    increases: list[Series]

    def at(self, flow: int, when: float) -> float:
        """Return the additive increase of a flow at ``when`` seconds."""
        return float(self.increases[flow][_last(self.time, when)])


def traced(result: Result) -> Traced:
    """Return the row and the additive increases of a run."""
    ones = np.ones(result.time.size)
    increases = [flow["gauges"].get("a", ones) for flow in result.measured_flows]
    return Traced(row(result), result.time, increases)


class Contended(NamedTuple):
    """Traced run of section 5.4, and loss rates: drops over packets sent by all flows.

    ``alone`` is that of the first flow from 10 to 30 s and from 30 to 50 s; ``losses`` are those
    with one to four flows, each from 10 s after an entry until the next entry.
    """

    traced: Traced
    alone: tuple[float, float]
    losses: list[float]


def contended(result: Result) -> Contended:
    """Measure the losses as flows enter every 50 s (Figure 9)."""
    entries = [50.0 * k for k in range(4)]
    return Contended(
        traced(result),
        (lost(result, 10, 30), lost(result, 30, 50)),
        [lost(result, begin + 10, begin + 50) for begin in entries],
    )


def lost(result: Result, begin_s: float, end_s: float) -> float:
    """Return the packets dropped by the bottleneck over those sent, between two times."""
    counters = (result.bottleneck["drops_series"], sum(f["sent"] for f in result.measured_flows))
    drops, sent = (np.diff(np.interp([begin_s, end_s], result.time, of))[0] for of in counters)
    return float(drops / sent)


def short_and_long(result: Result) -> tuple[float, float]:
    """Return the goodput of the last flow until its file has arrived, and the others' mean, KB/s.

    A file that has not arrived at the end of the run counts until then.
    """
    *others, short = result.measured_flows
    done = short["completed_s"]
    times = [short["start_s"], done if np.isfinite(done) else result.duration_s]

    def goodput(flow: FlowRecord) -> float:
        (packets,) = np.diff(np.interp(times, result.time, flow["delivered"]))
        return float(packets) * flow["packet_bytes"] / (times[1] - times[0]) / KILO

    return goodput(short), float(np.mean([goodput(flow) for flow in others]))


def by_round(result: Result) -> Series:
    """Return the additive increase of the only flow at the end of each round."""
    (flow,) = result.measured_flows
    return np.array([flow["gauges"]["a"][_last(result.time, end)] for end in _ends(flow)])


def progress(result: Result) -> tuple[Series, Series]:
    """Return seconds since the start and bytes delivered by the only flow at each round's end.

    The end of the run is the last round's end.
    """
    (flow,) = result.measured_flows
    ends = np.append(_ends(flow), result.duration_s)
    data = np.interp(ends, result.time, flow["delivered"]) * flow["packet_bytes"]
    return ends - flow["start_s"], data


def per_flow(result: Result) -> tuple[list[float], list[float]]:
    """Return the goodput in KB/s and the retransmissions of each flow."""
    flows = result.measured_flows
    goodputs = [result.goodput_bps(flow) / 8 / KILO for flow in flows]
    return goodputs, [float(flow["retransmissions"]) for flow in flows]


def together(cuts: Iterable[Series], begin: float, end: float) -> float:
    """Return the fraction of the flows' cuts that are within `NEAR` of a cut of another flow.

    Only cuts from ``begin`` to ``end`` (seconds) are included; NaN without a cut.
    """
    times = [t[(t >= begin) & (t <= end)] for t in cuts]
    shared = 0
    for number, mine in enumerate(times):
        others = np.concatenate([t for k, t in enumerate(times) if k != number])
        shared += int((np.abs(mine[:, None] - others[None, :]) <= NEAR).any(axis=1).sum())
    count = sum(t.size for t in times)
    return shared / count if count else math.nan


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of the second and the third flow of section 5.4, at 50 and 100 s."""

    time: Series
    windows: list[Series]  # packets over time
    delivered: list[float]  # packets of each of the two in its first 10 s
    jains: list[float]  # Jain's index of all flows until the next entry
    together: list[float]  # for cuts with two or three flows (50 to 150 s) and with four
    earlier: list[float]  # packets of the earlier flows (mean) and of the newcomer until the next
    newcomer: list[float]


def entry(result: Result) -> Entry:
    """Measure the entry of flows for Figures 10 and 11."""
    flows, time = result.measured_flows, result.time

    def delivered(k: int, begin: float, end: float) -> float:
        counts = np.interp([begin, end], time, flows[k]["delivered"])
        return float(counts[1] - counts[0])

    first = [flow["start_s"] + 10 for flow in flows]
    cuts = [flow["cuts"]["time"] for flow in flows]
    later = [[delivered(i, first[k], 50 * k + 50) for i in range(k + 1)] for k in (1, 2)]
    return Entry(
        time,
        [flow["window"] for flow in flows],
        [delivered(k, first[k] - 10, first[k]) for k in (1, 2)],
        [jain(packets) for packets in later],
        [together(cuts, 50, 150), together(cuts, 150, 300)],
        [float(np.mean(packets[:-1])) for packets in later],
        [packets[-1] for packets in later],
    )


def growth(result: Result) -> tuple[float, float]:
    """Return the duration of the growth from W to 3W/2 after flows left, and of a round before.

    Both are means over flows 1 and 2 in seconds, NaN if one of them never grows that far. W is the
    mean window at cuts in the 50 s before `LEAVE`, a round the mean time between these cuts.
    """
    time, growths, rounds = result.time, [], []
    for flow in result.measured_flows[:2]:
        cuts, window = flow["cuts"], flow["window"]
        before = (cuts["time"] > LEAVE - 50) & (cuts["time"] < LEAVE)
        peak = float(cuts["before"][before].mean())
        high = int(np.argmax((time > LEAVE) & (window >= 1.5 * peak)))
        if high == 0:
            return math.nan, math.nan
        # The growth begins at the last crossing of W.
        low = int(np.flatnonzero(window[:high] < peak)[-1])
        growths.append(float(time[high] - time[low]))
        rounds.append(float(np.diff(cuts["time"][before]).mean()))
    return float(np.mean(growths)), float(np.mean(rounds))


@dataclass(frozen=True, slots=True)
class Reset:
    """Response of flows 1 and 2 to the others' departure."""

    traced: Traced
    waits: list[float]  # rounds from `LEAVE` until a is 1 again, or until the end of the run
    levels: list[float]  # mean a from 5 s after `LEAVE` on
    peaks: list[float]  # mean window at cuts from 5 s after `LEAVE` on, over W
    first: list[float]  # window at the first cut after `LEAVE`, over that at the last one before
    spreads: list[float]  # standard deviation of a over time from 5 s after `LEAVE` on
    losses: tuple[float, float]  # loss rate of the first and the second half of that time


def reset(result: Result) -> Reset:
    """Measure the response of flows 1 and 2 to the departure of others (Figure 19)."""
    time, waits, levels, peaks, first, spreads = result.time, [], [], [], [], []
    for flow in result.measured_flows[:2]:
        a, cuts, window = flow["gauges"]["a"], flow["cuts"]["time"], flow["cuts"]["before"]
        before = (cuts > LEAVE - 50) & (cuts < LEAVE)
        ones = time[(time > LEAVE) & (a >= 0.999)]
        wait = float(ones[0] if ones.size else time[-1]) - LEAVE
        waits.append(wait / float(np.diff(cuts[before]).mean()))
        levels.append(float(a[time > LEAVE + 5].mean()))
        spreads.append(float(a[time > LEAVE + 5].std()))
        peaks.append(float(window[cuts > LEAVE + 5].mean() / window[before].mean()))
        first.append(float(window[cuts > LEAVE][0] / window[before][-1]))
    begin, end = LEAVE + 5, result.duration_s
    middle = (begin + end) / 2
    losses = lost(result, begin, middle), lost(result, middle, end)
    return Reset(traced(result), waits, levels, peaks, first, spreads, losses)


def _ends(flow: FlowRecord) -> Series:
    """Return the times at which rounds end: cuts, except at timeouts."""
    cuts = flow["cuts"]
    return cuts["time"][[cause != "timeout" for cause in cuts["cause"]]]


def _last(time: Series, when: float) -> int:
    """Return the index of the last sample at or before ``when``."""
    return int(np.searchsorted(time, when, side="right")) - 1
