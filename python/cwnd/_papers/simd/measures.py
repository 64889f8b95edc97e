"""Measurements of the SIMD paper's networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cwnd._runs.result import loss_rate_of, mark_rate_of
from cwnd.metrics import binned_rate
from cwnd.model.friendliness import simd_alpha

if TYPE_CHECKING:
    from cwnd._base.records import FlowRecord, Series
    from cwnd._runs.result import Result

EPSILON = 10.0
"""Difference in packets of two windows that are considered equal (section 5.3)."""

NO_QUEUE = 115.0
"""Packets in flight up to which `cwnd._papers.simd.networks.growth` has no queue."""

SCALES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Averaging intervals in seconds of the coefficient of variation."""

SOME, MOST = 10, 13
"""Rates in Mb/s, of 15, that other traffic takes and releases."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of a window after its last loss."""

    rtts: Series  # round-trip times since the growth began
    window: Series  # packets, at these times
    largest: float  # w_max and w_0: packets before and after the loss
    smallest: float
    alpha: float  # SIMD's; NaN for other laws

    def exponent(self) -> float:
        """Fit k in w - w_0 ∝ tᵏ, from the 10th round-trip time on."""
        late = self.rtts >= 10
        slope, _ = np.polyfit(np.log(self.rtts[late]), np.log(self.window[late] - self.smallest), 1)
        return float(slope)

    def grown(self, rtts: float) -> float:
        """Return the growth of the window in packets after ``rtts`` round-trip times."""
        return float(np.interp(rtts, self.rtts, self.window)) - self.smallest

    def eq4(self, beta: float) -> Series:
        """Return the window by Eq. 4 at the same times, in packets."""
        alpha = float(simd_alpha(beta, self.largest))
        return np.asarray(self.smallest + alpha**2 / 4 * self.rtts**2)


def read_growth(result: Result) -> Growth:
    """Measure the growth after the last loss before the other traffic of `growth` ends."""
    flow = result.record["flows"][0]
    cuts = flow["cuts"]
    last = int(np.flatnonzero(cuts["time"] < 31.0)[-1])
    after = float(cuts["after"][last])
    time, window = result.time, flow["window"]
    grown = (time > cuts["time"][last]) & (window > after)
    if last + 1 < cuts["time"].size:
        grown &= time < cuts["time"][last + 1]
    over = np.flatnonzero(grown & (window > NO_QUEUE))
    end = over[0] if over.size else time.size
    begin = int(np.flatnonzero(grown)[0])
    part = slice(begin, end)
    rtts = np.cumsum(np.diff(time[begin - 1 : end]) / flow["rtt"][part])
    alpha = float(flow["gauges"]["alpha"][begin]) if "alpha" in flow["gauges"] else math.nan
    return Growth(rtts, window[part], float(cuts["before"][last]), after, alpha)


@dataclass(frozen=True, slots=True)
class Epochs:
    """Congestion epochs of a SIMD(1/16) flow."""

    increase: float  # mean increase of the window in an epoch, packets
    alpha2: float  # mean of α² by Eq. 3
    window: float  # mean: throughput times round-trip time, packets
    loss: float  # fraction of the packets lost

    def relation(self) -> float:
        """Return the rate divided by the TCP-friendly one, √(3/2)/(R√p)."""
        return self.window * math.sqrt(self.loss / 1.5)


def read_epochs(result: Result) -> Epochs:
    """Measure the epochs of the only flow, without the warm-up and slow start's reduction."""
    flow = result.record["flows"][0]
    cuts = flow["cuts"]
    first = max(int(np.searchsorted(cuts["time"], result.warmup_s)), 1)
    before, after = cuts["before"][first:], cuts["after"][first:]
    span = result.duration_s - result.warmup_s
    return Epochs(
        float(np.mean(before[1:] - after[:-1])),
        float(np.mean(np.asarray(simd_alpha(1 / 16, before[:-1])) ** 2)),
        float(flow["packets_sent"] * flow["mean_rtt_s"] / span),
        loss_rate_of([flow]),
    )


def throughput(result: Result) -> float:
    """Return the only flow's rate in packets per second, retransmissions included."""
    return result.record["flows"][0]["packets_sent"] / result.duration_s


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of a link for flows of a law and of TCP."""

    law: Series  # throughput of each flow over its fair share, retransmissions included
    tcp: Series
    loss: float  # fractions of the data packets dropped and marked
    marks: float
    rtt: float  # mean in seconds: 60 ms of propagation plus both queues
    cuts: float  # reductions per flow of the law in the measured time
    variation: Series  # mean coefficient of variation of the law's rates at each of `SCALES`
    burst: float  # packets lost for each reduction of a window

    @property
    def spread(self) -> float:
        """Deviation of the flows' throughput from their group's mean, over the fair share."""
        groups = (self.law, self.tcp)
        return math.sqrt(float(np.mean([np.mean((x - x.mean()) ** 2) for x in groups])))

    @property
    def distance(self) -> float:
        """Root mean square of the flows' distances from the fair share, over the fair share."""
        return math.sqrt(float(np.mean((np.concatenate([self.law, self.tcp]) - 1) ** 2)))


def read_shares(result: Result) -> Shares:
    """Measure each flow's share of the bottleneck of `compatibility`."""
    flows = result.measured_flows
    fair = result.bottleneck["rate_bps"] / len(flows) * result.measured_s

    def shares(group: list[FlowRecord]) -> Series:
        return np.array([8 * flow["bytes_sent"] / fair for flow in group])

    trunks = [x for x in result.record["links"] if x["name"] in ("left-right", "right-left")]
    law = [flow for flow in flows if flow["name"].startswith("law")]
    cuts = {
        flow["name"]: np.count_nonzero(flow["cuts"]["time"] >= result.warmup_s) for flow in flows
    }
    scales = [scale for scale in SCALES if scale >= result.time[1] - result.time[0]]
    rough = [list(result.smoothness(flow, scales).values()) for flow in law]
    return Shares(
        shares(law),
        shares([flow for flow in flows if flow["name"].startswith("tcp")]),
        loss_rate_of(flows),
        mark_rate_of(flows),
        0.06 + sum(link["delay"]["mean"] for link in trunks),
        float(np.mean([cuts[flow["name"]] for flow in law])),
        np.mean(rough, axis=0),
        sum(flow["packets_lost"] for flow in flows) / max(sum(cuts.values()), 1),
    )


@dataclass(frozen=True, slots=True)
class Sudden:
    """Response of two flows to a sudden change."""

    time: Series  # beginnings of intervals of 0.2 s, in seconds
    rate: Series  # total rate of both flows in each interval, Mb/s
    down_s: float  # from the other traffic's arrival until the rate was 5/4 of the remaining rate
    up_s: float  # from its end until the rate was 4/5 of the link's
    lost: float  # percent of the packets dropped in the first 5 s of the other traffic


def read_sudden(result: Result, other: float) -> Sudden:
    """Measure how the flows of `sudden` release ``other`` Mb/s and regain them."""
    begin, end = result.warmup_s, 2 * result.warmup_s
    flows = result.measured_flows
    binned = [binned_rate(result.time, f["sent"], f["packet_bytes"], 0.2) for f in flows]
    time, rate = binned[0][0], np.sum([rates for _, rates in binned], axis=0)
    link = result.bottleneck
    low = np.flatnonzero((time >= begin) & (rate <= 1.25 * (link["rate_bps"] - 1e6 * other)))
    high = np.flatnonzero((time >= end) & (rate >= 0.8 * link["rate_bps"]))
    first = [begin, begin + 5]
    drops = np.interp(first, result.time, link["drops_series"])
    sent = sum(np.diff(np.interp(first, result.time, f["sent"]))[0] for f in flows)
    return Sudden(
        time,
        rate / 1e6,
        float(time[low[0]]) - begin if low.size else math.nan,
        float(time[high[0]]) - end if high.size else math.nan,
        100 * float((drops[1] - drops[0]) / sent),
    )


READ_SUDDEN = {other: partial(read_sudden, other=other) for other in (SOME, MOST)}


@dataclass(frozen=True, slots=True)
class Convergence:
    """Convergence of two flows without others; windows in packets, times in RTT."""

    w1: float  # windows when the others ended
    w2: float
    t1: float  # until the first reduction for a loss on the shared link
    total: float  # sum and difference of the windows just before this reduction
    delta: float
    t2: float  # until the windows first differed by less than `EPSILON`
    end: float  # until the end of the run
    roughness: float  # mean relative change of a window within a second after that
    larger: float  # fraction of the reductions until T₂ that were of the larger window
    time: Series  # for the figures, every 0.2 s: seconds since the others ended
    windows: Series


def read_convergence(result: Result) -> Convergence:
    """Measure the convergence of two flows; an RTT is 50 ms plus the shared queue."""
    flows = result.measured_flows
    switch = min(flow["stop_s"] for flow in result.record["flows"] if not flow["measured"])
    (link,) = [link for link in result.record["links"] if link["name"] == "b2-b3"]
    time = result.time
    windows = np.array([flow["window"] for flow in flows])
    begin = int(np.searchsorted(time, switch - 1e-9))
    rtt = 0.05 + (link["queue"] + 1) * 8 * 500 / link["rate_bps"]
    elapsed = np.cumsum(np.diff(time[begin:]) / rtt[begin + 1 :])
    rtts = np.concatenate([np.zeros(begin + 1), elapsed])
    apart = np.abs(windows[1] - windows[0])
    near = np.flatnonzero((apart < EPSILON) & (time >= time[begin]))
    cuts = np.sort(np.concatenate([flow["cuts"]["time"] for flow in flows]))
    before = np.searchsorted(time, cuts[cuts > time[begin]]) - 1
    # A reduction just after the others ended may be due to a drop on another link.
    drops = link["drops_series"]
    answers = before[drops[before] > drops[begin]]
    t1, total, delta = (
        float(series[answers[0]]) if answers.size else math.nan
        for series in (rtts, windows.sum(axis=0), apart)
    )
    step = round(1.0 / (time[1] - time[0]))
    after = windows[:, begin::step]
    shown = slice(max(begin - 20 * step, 0), None, step // 5)
    return Convergence(
        float(windows[0, begin]),
        float(windows[1, begin]),
        t1,
        total,
        delta,
        float(rtts[near[0]]) if near.size else math.nan,
        float(rtts[-1]),
        float(np.mean(np.abs(np.diff(after)) / after[:, :-1])),
        larger_cuts(result, time[begin], time[near[0]] if near.size else math.inf),
        time[shown] - switch,
        windows[:, shown],
    )


def larger_cuts(result: Result, begin_s: float, end_s: float) -> float:
    """Return the fraction of two flows' reductions that were of the larger window.

    Only reductions between two times are included; NaN if there are none. The other window is its
    last sample before.
    """
    first, second = result.measured_flows
    larger: list[bool] = []
    for own, other in ((first, second), (second, first)):
        cuts = own["cuts"]
        here = (cuts["time"] > begin_s) & (cuts["time"] <= end_s)
        at = np.searchsorted(result.time, cuts["time"][here]) - 1
        larger += (cuts["before"][here] > other["window"][at]).tolist()
    return float(np.mean(larger)) if larger else math.nan
