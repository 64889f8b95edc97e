"""Measurements of the DAIMD paper's networks, and small models. Rates are in Mb/s."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd import metrics
from cwnd._papers.daimd.networks import PACKET_BITS, PARKING_LOT, PATHS
from cwnd.model.daimd import BITS_PER_SYN, SYN, increase_per_syn, marginal_utility, time_to_fraction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import FlowRecord
    from cwnd._runs.result import Result

Array: TypeAlias = npt.NDArray[np.float64]
Quantities: TypeAlias = "dict[str, float]"
"""Measured quantities by name and unit, as in the printed tables."""

CELLS = 20_000
"""Number of steps of the rate in `sharing`."""


class Staircase(NamedTuple):
    """Stages of Table 1, and each flow's rate in each second in Mb/s."""

    stages: list[Quantities]
    rates: Array


class Shares(NamedTuple):
    """Rates of the flows after the warm-up, their indices, and their rates over time."""

    rates: Array
    indices: Quantities
    series: Array


class Climb(NamedTuple):
    """Initial rate of a flow and its rate over time, in Mb/s, with times in seconds."""

    start: float
    time: Array
    rates: Array


class Response(NamedTuple):
    """Mean rate of a flow in packets per RTT, or per SYN, and its increases and decreases.

    ``increase`` and ``decrease`` are divided by the paper's values for each window.
    """

    window: float
    increase: float
    decrease: float
    largest: float


def rate(result: Result, flow: FlowRecord, begin_s: float, end_s: float) -> float:
    """Return the delivery rate of a flow between two times, in Mb/s."""
    first, last = np.interp([begin_s, end_s], result.time, flow["delivered"])
    return float(last - first) * flow["packet_bytes"] * 8e-6 / (end_s - begin_s)


def sent(result: Result, flows: Sequence[FlowRecord], begin_s: float, end_s: float) -> Array:
    """Return each flow's sending rate per second between two times in Mb/s, one row per flow."""
    here = result.time <= end_s + 1e-9
    rows = [
        metrics.binned_rate(
            result.time[here], flow["sent"][here], flow["packet_bytes"], 1.0, begin_s
        )[1]
        for flow in flows
    ]
    return np.array(rows) / 1e6


def indices(rates: Array, series: Array) -> Quantities:
    """Return EI in Mb/s, FI (Eq. 7) and SI (Eq. 18), for samples of one second."""
    return {
        "EI": metrics.efficiency_index(rates),
        "FI": metrics.fairness_index(rates),
        "SI": metrics.stability_index(series),
    }


def read_shares(result: Result) -> Shares:
    """Measure rates and indices after the warm-up (Tables 2 to 5, Fig. 10 and 14)."""
    flows, begin, end = result.measured_flows, result.warmup_s, float(result.time[-1])
    rates = np.array([rate(result, flow, begin, end) for flow in flows])
    series = sent(result, flows, begin, end)
    return Shares(rates, indices(rates, series), series)


def read_stages(result: Result) -> Staircase:
    """Measure the seven stages of Table 1."""
    length = result.measured_flows[0]["stop_s"] / 7
    link = result.bottleneck
    stages = []
    for number in range(7):
        begin, end = number * length, (number + 1) * length
        middle = (begin + end) / 2
        flows = [f for f in result.measured_flows if f["start_s"] < middle <= f["stop_s"]]
        rates = np.array([rate(result, f, begin, end) for f in flows])
        here = (result.time > begin) & (result.time <= end + 1e-9)
        packets, drops = (
            sum(float(np.diff(np.interp([begin, end], result.time, s))[0]) for s in counters)
            for counters in ([f["sent"] for f in flows], [link["drops_series"]])
        )
        stages.append(
            {f"flow {n}": float(each) for n, each in enumerate(rates, 1)}
            | indices(rates, sent(result, flows, begin, end))
            | {
                "RTT, ms": 1e3 * float(np.mean([np.nanmean(f["rtt"][here]) for f in flows])),
                "loss": metrics.loss_rate(drops, packets),
            }
        )
    return Staircase(stages, sent(result, result.measured_flows, 0.0, 7 * length))


def window_bound(result: Result, *, largest: bool = False) -> float:
    """Return the ratio of packets sent in an RTT to the flow window's limit.

    The limit is (1 + SYN/RTT) times the packets that arrived in the previous RTT, from which the
    sender knows the arrival rate; with ``largest`` the rate is the largest one known within an RTT
    before and after. The result is the 99th percentile over time, mean over the flows.
    """
    found = []
    for flow in result.measured_flows:
        rtt, arrival = np.asarray(flow["rtt"]), np.asarray(flow["gauges"]["arrival"])
        end = result.time[-1] - np.nanmax(rtt)
        at = (result.time > result.warmup_s) & (result.time < end) & (arrival > 0) & (rtt > 0)
        t, rtt = result.time[at], rtt[at]
        first, last = (np.interp(x, result.time, flow["sent"]) for x in (t, t + rtt))
        known = arrival[at]
        if largest:
            near = np.searchsorted(t, [t - rtt, t + rtt])
            known = np.array([known[a:b].max() for a, b in near.T])
        found.append(float(np.quantile((last - first) / (known * (rtt + SYN)), 0.99)))
    return float(np.mean(found))


def largest_window_bound(result: Result) -> float:
    """Return `window_bound` for the largest arrival rate near each time."""
    return window_bound(result, largest=True)


def read_climb(result: Result) -> Climb:
    """Measure the rates of a flow from the time at which the link is idle."""
    flow, begin = result.measured_flows[0], result.record["flows"][-1]["stop_s"]
    edges, rates = metrics.binned_rate(result.time, flow["sent"], 1500, 0.1, begin)
    start = float(np.interp(begin, result.time, flow["gauges"]["rate"]))
    return Climb(start * PACKET_BITS / 1e6, edges - begin + 0.05, rates / 1e6)


def time_to(climb: Climb, fraction: float, capacity_mbps: float) -> float:
    """Return the seconds from rate 0 until a fraction of the capacity is first sent.

    Includes the time of Eq. 15 from 0 to the initial rate. If the fraction is not reached, the
    length of the run is used.
    """
    reached = np.flatnonzero(climb.rates >= fraction * capacity_mbps)
    seconds = climb.time[reached[0] if reached.size else -1]
    before = time_to_fraction(min(climb.start / capacity_mbps, fraction), capacity_mbps * 1e6)
    return float(seconds + before)


def read_recovery(result: Result) -> float:
    """Return the mean time in seconds between cuts of a window that fills the link."""
    cuts = result.measured_flows[0]["cuts"]
    full = cuts["before"] > 0.9 * cuts["before"].max(initial=0.0)
    return float(np.mean(np.diff(cuts["time"][full]))) if full.sum() > 1 else float("nan")


def printed_increase(law: str, w: Array) -> Array:
    """Return the increase per RTT printed in Table 6, at windows in packets; for BIC its limit."""
    if law == "highspeed":
        cut = printed_decrease(law, w)
        return 0.1578 * w**0.8024 * cut / (2 - cut)
    return {"reno": 1 + 0 * w, "scalable": 0.1 * w, "bic": 32 + 0 * w}[law]


def printed_decrease(law: str, w: Array) -> Array:
    """Return the fraction given up as printed in Table 6, at windows in packets."""
    if law == "highspeed":
        return np.asarray(0.6892 - 0.0520 * np.log(w))
    return np.full_like(w, 0.5 if law == "reno" else 0.125)


def read_response(result: Result) -> Response:
    """Measure the mean window of a TCP flow, its growth per round trip, and its cuts.

    Only round trips without loss or recovery are included; a run has one sample each.
    """
    flow = result.measured_flows[0]
    law, cuts = flow["controller"].partition("(")[0], flow["cuts"]
    time, w, grown = result.time[:-1], flow["window"][:-1], np.diff(flow["window"])
    events = np.concatenate([[0.0], cuts["time"], [result.duration_s]])
    nearest = np.searchsorted(events, time, side="right")
    alone = (time - events[nearest - 1] > 0.35) & (events[nearest] - time > 0.1)
    free = (time > result.warmup_s) & alone & (grown > 0)
    late = cuts["time"] > result.warmup_s
    before, after = cuts["before"][late], cuts["after"][late]
    return Response(
        flow["packets_sent"] * 0.1 / result.measured_s,
        float(np.median(grown[free] / printed_increase(law, w[free]))),
        float(np.mean((1 - after / before) / printed_decrease(law, before))),
        float(grown[free].max(initial=0.0)),
    )


def read_paced(result: Result) -> Response:
    """Measure the mean rate of a UDT flow in packets per SYN, its growth per SYN, and its cuts."""
    flow = result.measured_flows[0]
    x = flow["gauges"]["rate"] * SYN
    late = result.time[:-1] > result.warmup_s
    step = np.diff(x)
    grew = late & (step > 0)
    given = 1 - flow["cuts"]["after"] / flow["cuts"]["before"]
    expected = np.asarray(increase_per_syn(x[:-1][grew], result.bottleneck["rate_bps"]))
    some = expected > 0
    return Response(
        flow["packets_sent"] * SYN / result.measured_s,
        float(np.median(step[grew][some] / expected[some])),
        float(np.mean(given)),
        float(step[grew].max(initial=0.0)),
    )


def capacity_estimate(result: Result) -> float:
    """Return the mean of the flows' capacity estimates after the warm-up, in Mb/s."""
    here = result.time > result.warmup_s
    estimates = [f["gauges"]["capacity"][here] for f in result.measured_flows]
    return float(np.nanmean(estimates)) * PACKET_BITS / 1e6


def max_min() -> Array:
    """Return the max-min fair rates of the parking lot's flows in Mb/s, by progressive filling."""
    names = [a for a, _, _ in PARKING_LOT] + [PARKING_LOT[-1][1]]
    crossed = np.array(
        [[names.index(a) <= n < names.index(b) for n in range(len(PARKING_LOT))] for a, b in PATHS]
    )
    left = np.array([float(capacity) for _, _, capacity in PARKING_LOT])
    rates, open_ = np.zeros(len(PATHS)), np.ones(len(PATHS), dtype=bool)
    while open_.any():
        users = crossed[open_].sum(axis=0)
        level = np.where(users > 0, left / np.maximum(users, 1), np.inf).min()
        rates[open_] += level
        left = left - level * users
        open_ &= ~crossed[:, left < 1e-9].any(axis=1)
    return rates


def sharing(capacity_mbps: float, believed_mbps: float) -> float:
    """Return the rate of a flow with an incorrect capacity over that of one with the correct one.

    Both experience the same loss probability. Each has the largest rate whose marginal utility
    (Eq. 5, 6) is at least that probability, for which they fill the link.
    """
    x = np.linspace(0, capacity_mbps * 1e6 / BITS_PER_SYN, CELLS + 1)[1:]
    believed = (capacity_mbps * 1e6, believed_mbps * 1e6)
    rising = [-np.asarray(marginal_utility(x, capacity)) for capacity in believed]

    def rates(p: float) -> list[float]:
        # The marginal utility decreases with the rate.
        counts = [int(u.searchsorted(-p, side="right")) for u in rising]
        return [float(x[n - 1]) if n else 0.0 for n in counts]

    low, high = -15.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if sum(rates(10**middle)) > x[-1]:
            low = middle
        else:
            high = middle
    first, second = rates(10**high)
    return second / first
