"""Measurements of runs. Rates are in Mb/s, times in seconds, queues in packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd import metrics
from cwnd._papers.today.networks import PROBE_RTT
from cwnd._runs.result import loss_rate_of

if TYPE_CHECKING:
    from cwnd._base.records import FlowRecord, Series
    from cwnd._runs.result import Result


class Flow(NamedTuple):
    """Goodput of a flow, its retransmissions, and the fraction of the packets that it lost."""

    goodput: float
    repeated: float
    lost: float


def of_flow(flow: FlowRecord, result: Result) -> Flow:
    """Measure a flow."""
    goodput = result.goodput_bps(flow) / 1e6
    return Flow(goodput, float(flow["retransmissions"]), loss_rate_of([flow]))


def each(result: Result) -> list[Flow]:
    """Measure the flows of a run."""
    return [of_flow(flow, result) for flow in result.measured_flows]


class Shared(NamedTuple):
    """A bottleneck shared by several flows."""

    loss: float  # drops over arrivals
    queue: float  # mean queue
    delay: float  # mean queueing delay
    used: float  # utilisation
    jain: float  # Jain's index of the goodputs
    last: float  # share of the last flow


def shared(result: Result) -> Shared:
    """Measure a bottleneck and how evenly its flows share it."""
    link = result.bottleneck
    rates = np.array([result.goodput_bps(flow) for flow in result.measured_flows])
    return Shared(
        link["drops"] / max(link["offered"], 1),
        link["mean_queue"],
        link["delay"]["mean"],
        link["utilization"],
        metrics.jain(rates),
        float(rates[-1] / rates.sum()),
    )


def share(result: Result) -> float:
    """Return the share of the goodput that the flows of the first group got."""
    group = result.measured_flows[0]["name"].split("-")[0]
    rates = {flow["name"]: result.goodput_bps(flow) for flow in result.measured_flows}
    first = sum(rate for name, rate in rates.items() if name.split("-")[0] == group)
    return first / sum(rates.values())


class Course(NamedTuple):
    """Times, the queue of the bottleneck, and the delivery rate and the RTT of the first flow."""

    time: Series
    queue: Series
    rate: Series
    rtt: Series


def course(result: Result) -> Course:
    """Return a run over time; the rate is that of the last ten samples."""
    flow, time = result.measured_flows[0], result.time
    bits = flow["delivered"] * 8e-6 * flow["packet_bytes"]
    rate = np.full(time.size, np.nan)
    rate[10:] = (bits[10:] - bits[:-10]) / (time[10:] - time[:-10])
    return Course(time, result.bottleneck["queue"], rate, flow["rtt"])


class Beginning(NamedTuple):
    """The queue of one flow that starts on an empty link."""

    most: float  # largest in the first 2 s
    second: float  # mean from 1 s to 2 s
    mean: float  # mean from 2 s on
    low: float  # lowest from the first time at the limit on, over the limit; NaN without one
    high: float  # largest from 2 s on, over the limit


def beginning(result: Result) -> Beginning:
    """Measure the queue of one flow that starts on an empty link."""
    time, queue, _, _ = course(result)
    limit = result.bottleneck["queue_limit"]
    late = time >= 2.0
    full = np.flatnonzero(late & (queue >= limit - 1))
    return Beginning(
        float(queue[time < 2.0].max()),
        float(queue[(time >= 1.0) & (time < 2.0)].mean()),
        float(queue[late].mean()),
        float(queue[full[0] :].min() / limit) if full.size else float("nan"),
        float(queue[late].max() / limit),
    )


class Steps(NamedTuple):
    """Response of BBR to the steps of the rate at 20 s and 40 s."""

    up: float  # time until the estimate is within 5 % of the doubled rate
    down: float  # time until the estimate is within 5 % of the halved rate
    slowest: float  # largest RTT after the second step


def responses(result: Result) -> Steps:
    """Measure how fast BBR's estimate of the bandwidth follows the steps."""
    flow, time = result.measured_flows[0], result.time
    wire = flow["packet_bytes"] + flow["header_bytes"]
    estimate = flow["gauges"]["bandwidth"] * 8e-6 * wire
    up = time[(time >= 20.0) & (estimate >= 0.95 * 20.0)]
    down = time[(time >= 40.0) & (estimate <= 1.05 * 10.0)]
    slowest = float(np.nanmax(flow["rtt"][time >= 40.0]))
    return Steps(
        float(up[0] - 20.0) if up.size else 40.0,
        float(down[0] - 40.0) if down.size else 20.0,
        slowest,
    )


class Probes(NamedTuple):
    """Flows of BBR: Jain's index, and how they probe the RTT together."""

    jain: float
    together: float  # largest difference of their last entries into ProbeRTT
    overlap: float  # time in ProbeRTT of four fifths of the flows over that of any


def probes(result: Result) -> Probes:
    """Measure how evenly flows of BBR share, and whether they probe the RTT together.

    The overlap excludes the first third of the run.
    """
    flows, time = result.measured_flows, result.time
    probing = np.array([flow["gauges"]["state"] == PROBE_RTT for flow in flows])
    entries = [time[1:][each[1:] & ~each[:-1]] for each in probing]
    last = [float(each[-1]) if each.size else 0.0 for each in entries]
    count = probing[:, time > result.duration_s / 3].sum(axis=0)
    overlap = np.mean(count >= 0.8 * len(flows)) / max(float(np.mean(count > 0)), 1e-9)
    rates = [result.goodput_bps(flow) for flow in flows]
    return Probes(metrics.jain(rates), max(last) - min(last), float(overlap))


def rates(result: Result) -> tuple[Series, list[Series]]:
    """Return times, and the goodput of each flow per second."""
    found = [
        metrics.binned_rate(result.time, flow["delivered"], flow["packet_bytes"], 1.0, 0.0)
        for flow in result.measured_flows
    ]
    return found[0][0], [rate / 1e6 for _, rate in found]


class Limits(NamedTuple):
    """What limits a flow of BBR."""

    window: float  # fraction of the time in which its window did
    estimate: float  # median of its estimate of the bandwidth over its goodput


def limits(result: Result) -> Limits:
    """Measure what limited the first flow, of BBR, after the warm-up."""
    flow = result.measured_flows[0]
    late = result.time > result.warmup_s
    estimate = 8 * flow["packet_bytes"] * np.median(flow["gauges"]["bandwidth"][late])
    seconds = sum(flow["limited"][by] for by in ("window", "pacing", "receiver", "application"))
    return Limits(flow["limited"]["window"] / seconds, float(estimate) / result.goodput_bps(flow))


class Wave(NamedTuple):
    """Oscillation of the queue of Copa's flows in packets, and its period in seconds."""

    least: float
    low: float  # 1st percentile
    high: float  # 99th percentile
    period: float
    used: float  # utilisation


def wave(result: Result) -> Wave:
    """Measure the oscillation of the queue after the warm-up: its strongest frequency."""
    late = result.time > result.warmup_s
    queue, step = result.bottleneck["queue"][late], float(result.time[1] - result.time[0])
    power = np.abs(np.fft.rfft(queue - queue.mean()))
    strongest = 1 + int(np.argmax(power[1:]))
    low, high = np.percentile(queue, [1, 99])
    return Wave(
        float(queue.min()),
        float(low),
        float(high),
        queue.size * step / strongest,
        result.bottleneck["utilization"],
    )


def completed(result: Result) -> float:
    """Return the time at which the first flow's transfer was complete; the duration if never."""
    done = result.measured_flows[0]["completed_s"]
    return done if np.isfinite(done) else result.duration_s
