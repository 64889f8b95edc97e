"""What is kept of the runs of the SIMD paper's networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cwnd.metrics import binned_rate
from cwnd.model.friendliness import simd_alpha

if TYPE_CHECKING:
    from cwnd.records import FlowRecord, Series
    from cwnd.result import Result

EPSILON = 10.0
"""Packets between two windows that count as equal (section 5.3)."""

NO_QUEUE = 115.0
"""Packets in flight up to which no queue builds up in `cwnd.papers.simd.networks.growth`."""

SCALES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds over which a rate is averaged before its variation is taken."""

SOME, MOST = 10, 13
"""Mb/s of the 15 that other traffic takes away and gives back."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A window after its last loss."""

    rtts: Series  # since the window began to grow
    window: Series  # packets, then
    largest: float  # w_max and w_0: packets before and after the loss
    smallest: float
    alpha: float  # SIMD's; NaN for other laws

    def exponent(self) -> float:
        """Fit k in w - w_0 ∝ tᵏ, from the 10th round-trip time on."""
        late = self.rtts >= 10
        slope, _ = np.polyfit(np.log(self.rtts[late]), np.log(self.window[late] - self.smallest), 1)
        return float(slope)

    def grown(self, rtts: float) -> float:
        """Return by how many packets the window has grown after a time."""
        return float(np.interp(rtts, self.rtts, self.window)) - self.smallest

    def eq4(self, beta: float) -> Series:
        """Return the window by Eq. 4 at the same times, in packets."""
        alpha = float(simd_alpha(beta, self.largest))
        return np.asarray(self.smallest + alpha**2 / 4 * self.rtts**2)


def read_growth(result: Result) -> Growth:
    """Read the growth after the last loss before the other traffic of `growth` ended."""
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
    """The congestion epochs of one SIMD(1/16) flow."""

    increase: float  # mean increase of the window in an epoch, packets
    alpha2: float  # mean of α² by Eq. 3
    window: float  # mean: throughput times round-trip time, packets
    loss: float  # fraction of the packets lost

    def relation(self) -> float:
        """Return the rate over the TCP-friendly one, √(3/2)/(R√p)."""
        return self.window * math.sqrt(self.loss / 1.5)


def read_epochs(result: Result) -> Epochs:
    """Read the epochs of the only flow after the warm-up, and after the cut of slow start."""
    flow = result.record["flows"][0]
    cuts = flow["cuts"]
    first = max(int(np.searchsorted(cuts["time"], result.warmup_s)), 1)
    before, after = cuts["before"][first:], cuts["after"][first:]
    span = result.duration_s - result.warmup_s
    return Epochs(
        float(np.mean(before[1:] - after[:-1])),
        float(np.mean(np.asarray(simd_alpha(1 / 16, before[:-1])) ** 2)),
        float(flow["packets_sent"] * flow["mean_rtt_s"] / span),
        float(flow["packets_lost"] / flow["packets_sent"]),
    )


def throughput(result: Result) -> float:
    """Return the packets per second of the only flow, retransmissions included."""
    return result.record["flows"][0]["packets_sent"] / result.duration_s


@dataclass(frozen=True, slots=True)
class Shares:
    """What flows of a law and of TCP got of a link."""

    law: Series  # throughput of each flow over its fair share, retransmissions included
    tcp: Series
    loss: float  # fractions of the data packets dropped and marked
    marks: float
    rtt: float  # mean in seconds: 60 ms of propagation, and both queues
    cuts: float  # of a flow of the law while it was measured
    variation: Series  # mean coefficient of variation of the law's rates at each of `SCALES`

    @property
    def spread(self) -> float:
        """Deviation of the flows' throughput from their group's mean, over the fair share."""
        groups = (self.law, self.tcp)
        return math.sqrt(float(np.mean([np.mean((x - x.mean()) ** 2) for x in groups])))


def read_shares(result: Result) -> Shares:
    """Read what each flow of `compatibility` got of the bottleneck."""
    flows = result.measured_flows
    fair = result.bottleneck["rate_bps"] / len(flows) * result.measured_s
    sent = sum(flow["packets_sent"] for flow in flows)

    def shares(group: list[FlowRecord]) -> Series:
        return np.array([8 * flow["packets_sent"] * flow["packet_bytes"] / fair for flow in group])

    trunks = [x for x in result.record["links"] if x["name"] in ("left-right", "right-left")]
    law = [flow for flow in flows if flow["name"].startswith("law")]
    cuts = [np.count_nonzero(flow["cuts"]["time"] >= result.warmup_s) for flow in law]
    scales = [scale for scale in SCALES if scale >= result.time[1] - result.time[0]]
    rough = [list(result.smoothness(flow, scales).values()) for flow in law]
    return Shares(
        shares(law),
        shares([flow for flow in flows if flow["name"].startswith("tcp")]),
        sum(flow["packets_lost"] for flow in flows) / sent,
        sum(flow["packets_marked"] for flow in flows) / sent,
        0.06 + sum(link["delay"]["mean"] for link in trunks),
        float(np.mean(cuts)),
        np.mean(rough, axis=0),
    )


@dataclass(frozen=True, slots=True)
class Sudden:
    """How two flows answered a sudden change."""

    time: Series  # where intervals of 0.2 s begin, seconds
    rate: Series  # of both flows in each, Mb/s
    down_s: float  # from the other traffic's arrival until the rate was 5/4 of what is left
    up_s: float  # from its end until the rate was 4/5 of the link's
    lost: float  # percent of the packets dropped in the first 5 s of the other traffic


def read_sudden(result: Result, other: float) -> Sudden:
    """Read how the flows of `sudden` gave way to ``other`` Mb/s and took them back."""
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
    """How two flows converged once they were alone; windows in packets, times in RTT."""

    w1: float  # windows when the others ended
    w2: float
    t1: float  # until one cut its window for a loss on the shared link
    total: float  # sum and difference of the windows just before that cut
    delta: float
    t2: float  # until the windows were first less than `EPSILON` apart
    roughness: float  # mean relative change of a window within a second, from then on
    time: Series  # for the figures, every 0.2 s: seconds since the others ended
    windows: Series


def read_convergence(result: Result) -> Convergence:
    """Read how the flows of `convergence` converge; a round trip is 50 ms and the shared queue."""
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
    # A cut just after the others ended can still answer a drop on another link.
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
        float(np.mean(np.abs(np.diff(after)) / after[:, :-1])),
        time[shown] - switch,
        windows[:, shown],
    )
