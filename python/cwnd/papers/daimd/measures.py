"""What the exhibits of the DAIMD paper keep of a run, and small models of their own.

Rates are in Mb/s.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd import metrics
from cwnd.model.daimd import (
    BITS_PER_SYN,
    SYN,
    increase_per_syn,
    marginal_utility,
    time_to_fraction,
)
from cwnd.papers.daimd_networks import PACKET_BITS, PARKING_LOT, PATHS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.records import FlowRecord
    from cwnd.result import Result

Array: TypeAlias = npt.NDArray[np.float64]

CELLS = 20_000
"""Steps of the rate in `sharing`."""


class Stage(NamedTuple):
    """A stage of Table 1: its rows, with NaN for a flow that is not there."""

    rates: Array
    rtt_ms: float
    loss: float
    ei: float
    fi: float
    si: float


class Shares(NamedTuple):
    """Rates of the flows after the warm-up, and the indices of Table 1 from them."""

    rates: Array
    ei: float
    fi: float
    si: float


class Climb(NamedTuple):
    """Rate of a flow at first, and what it then sent, in Mb/s, over seconds."""

    start: float
    time: Array
    rates: Array


class Response(NamedTuple):
    """Mean rate of a flow in packets per RTT, or per SYN, and how it grew and was cut.

    ``increase`` and ``decrease`` are over what the paper prints for them at each window.
    """

    window: float
    increase: float
    decrease: float
    largest: float


def rate(result: Result, flow: FlowRecord, begin_s: float, end_s: float) -> float:
    """Give what arrived of a flow between two times, on the wire, in Mb/s."""
    first, last = np.interp([begin_s, end_s], result.time, flow["delivered"])
    return float(last - first) * flow["packet_bytes"] * 8e-6 / (end_s - begin_s)


def stability(
    result: Result, flows: Sequence[FlowRecord], begin_s: float, end_s: float, step_s: float
) -> float:
    """Give the stability index of what flows sent in equal intervals (Eq. 18)."""
    here = result.time <= end_s + 1e-9
    rows = [
        metrics.binned_rate(result.time[here], flow["sent"][here], 1.0, step_s, begin_s)[1]
        for flow in flows
    ]
    return metrics.stability_index(np.array(rows))


def read_shares(result: Result) -> Shares:
    """Read rates and indices after the warm-up, in samples of a second (Tables 2 to 5)."""
    flows, begin, end = result.measured_flows, result.warmup_s, float(result.time[-1])
    rates = np.array([rate(result, flow, begin, end) for flow in flows])
    return Shares(
        rates,
        metrics.efficiency_index(rates),
        metrics.fairness_index(rates),
        stability(result, flows, begin, end, 1.0),
    )


def read_stages(result: Result) -> list[Stage]:
    """Read the seven stages of Table 1, each in a hundred samples."""
    length = result.measured_flows[0]["stop_s"] / 7
    link = result.bottleneck
    stages = []
    for number in range(7):
        begin, end = number * length, (number + 1) * length
        middle = (begin + end) / 2
        flows = [f for f in result.measured_flows if f["start_s"] < middle <= f["stop_s"]]
        rates = np.array([rate(result, f, begin, end) for f in flows])
        here = (result.time > begin) & (result.time <= end + 1e-9)

        def during(counter: Array, ends: tuple[float, float] = (begin, end)) -> float:
            first, last = np.interp(ends, result.time, counter)
            return float(last - first)

        stages.append(
            Stage(
                np.concatenate([rates, np.full(4 - rates.size, np.nan)]),
                1e3 * float(np.mean([np.nanmean(f["rtt"][here]) for f in flows])),
                metrics.loss_rate(
                    during(link["drops_series"]), sum((during(f["sent"]) for f in flows), 0.0)
                ),
                metrics.efficiency_index(rates),
                metrics.fairness_index(rates),
                stability(result, flows, begin, end, length / 100),
            )
        )
    return stages


def sent_over_time(result: Result, step_s: float) -> tuple[Array, Array]:
    """Give the middle of each interval, and one row a measured flow of what it sent, in Mb/s."""
    rows = [
        metrics.binned_rate(result.time, f["sent"], f["packet_bytes"], step_s, 0.0)
        for f in result.measured_flows
    ]
    return rows[0][0] + step_s / 2, np.array([row[1] for row in rows]) / 1e6


def read_climb(result: Result) -> Climb:
    """Read how a flow climbs once the link is left to it."""
    flow, begin = result.measured_flows[0], result.record["flows"][-1]["stop_s"]
    edges, rates = metrics.binned_rate(result.time, flow["sent"], 1500, 0.1, begin)
    start = float(np.interp(begin, result.time, flow["gauges"]["rate"]))
    return Climb(start * PACKET_BITS / 1e6, edges - begin + 0.05, rates / 1e6)


def time_to(climb: Climb, fraction: float, capacity_mbps: float) -> float:
    """Give the seconds from 0 until a fraction of the capacity is first sent.

    What Eq. 15 takes from 0 to where the climb starts is added. Where the fraction is not reached
    it is the whole run.
    """
    reached = np.flatnonzero(climb.rates >= fraction * capacity_mbps)
    seconds = climb.time[reached[0] if reached.size else -1]
    before = time_to_fraction(min(climb.start / capacity_mbps, fraction), capacity_mbps * 1e6)
    return float(seconds + before)


def read_recovery(result: Result) -> float:
    """Give the mean time between the cuts of a window that had filled the link."""
    cuts = result.measured_flows[0]["cuts"]
    full = cuts["before"] > 0.9 * cuts["before"].max(initial=0.0)
    return float(np.mean(np.diff(cuts["time"][full]))) if full.sum() > 1 else float("nan")


def printed_increase(law: str, w: Array) -> Array:
    """Give the increase per RTT that Table 6 prints, at windows in packets; BIC's is its limit."""
    if law == "highspeed":
        cut = printed_decrease(law, w)
        return 0.1578 * w**0.8024 * cut / (2 - cut)
    slopes: dict[str, Array] = {
        "reno": np.ones_like(w),
        "scalable": 0.1 * w,
        "bic": np.full_like(w, 32.0),
    }
    return slopes[law]


def printed_decrease(law: str, w: Array) -> Array:
    """Give the fraction given up that Table 6 prints, at windows in packets."""
    constants: dict[str, float] = {"reno": 0.5, "scalable": 0.125, "bic": 0.125}
    return np.asarray(
        -0.0520 * np.log(w) + 0.6892 if law == "highspeed" else constants[law] + 0 * w
    )


def read_response(result: Result, law: str) -> Response:
    """Read the mean window of a TCP, its growth from one round trip to the next, and its cuts.

    Growth is that of round trips without loss or recovery; a run has one sample each.
    """
    flow = result.measured_flows[0]
    cuts = flow["cuts"]
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


def read_paced(result: Result, capacity_mbps: float) -> Response:
    """Read the mean rate of a UDT flow in packets per SYN, its growth from SYN to SYN, its cuts."""
    flow = result.measured_flows[0]
    x = flow["gauges"]["rate"] * SYN
    late = result.time[:-1] > result.warmup_s
    step = np.diff(x)
    grew = late & (step > 0)
    given = 1 - flow["cuts"]["after"] / flow["cuts"]["before"]
    grown = step[grew] / np.asarray(increase_per_syn(x[:-1][grew], capacity_mbps * 1e6))
    return Response(
        flow["packets_sent"] * SYN / result.measured_s,
        float(np.median(grown[np.isfinite(grown)])),
        float(np.mean(given)),
        float(step[grew].max(initial=0.0)),
    )


def capacity_estimate(result: Result) -> float:
    """Give the mean of the flows' estimates of the capacity after the warm-up, in Mb/s."""
    here = result.time > result.warmup_s
    estimates = [f["gauges"]["capacity"][here] for f in result.measured_flows]
    return float(np.nanmean(estimates)) * PACKET_BITS / 1e6


def max_min() -> Array:
    """Give the max-min fair rates of the parking lot's flows in Mb/s, by filling it up."""
    names = [a for a, _, _ in PARKING_LOT] + [PARKING_LOT[-1][1]]
    crossed = np.array(
        [[names.index(a) <= n < names.index(b) for n in range(len(PARKING_LOT))] for a, b in PATHS]
    )
    left = np.array([float(rate) for _, _, rate in PARKING_LOT])
    rates, open_ = np.zeros(len(PATHS)), np.ones(len(PATHS), dtype=bool)
    while open_.any():
        users = crossed[open_].sum(axis=0)
        level = np.where(users > 0, left / np.maximum(users, 1), np.inf).min()
        rates[open_] += level
        left = left - level * users
        open_ &= ~crossed[:, left < 1e-9].any(axis=1)
    return rates


def sharing(capacity_mbps: float, believed_mbps: float) -> float:
    """Solve for the rate of a flow that believes in a capacity over that of one that knows it.

    Both see the same loss probability, and each is where Eq. 4 leaves it: the largest rate whose
    marginal utility (Eq. 5, 6) is not below that probability. It is such that they fill the link.

    Parameters
    ----------
    capacity_mbps, believed_mbps
        Capacity of the link, and what the second flow takes it for, in Mb/s.

    Returns
    -------
    float
        The second flow's rate over the first one's.

    Examples
    --------
    >>> round(sharing(100.0, 100.0), 3), round(sharing(100.0, 300.0), 2)
    (1.0, 3.02)
    """
    x = _rates(capacity_mbps)
    rising = [_negated_utility(capacity_mbps, mbps) for mbps in (capacity_mbps, believed_mbps)]

    def rates(p: float) -> list[float]:
        # The marginal utility falls with the rate.
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


def _rates(capacity_mbps: float) -> Array:
    """Give the rates that `sharing` tells apart, in packets per SYN."""
    return np.linspace(0, capacity_mbps * 1e6 / BITS_PER_SYN, CELLS + 1)[1:]


# Two, since every pair has the flow that knows the capacity in it.
@lru_cache(maxsize=2)
def _negated_utility(capacity_mbps: float, believed_mbps: float) -> Array:
    """Give the marginal utility at each rate, negated, of a flow that believes in a capacity."""
    return -np.asarray(marginal_utility(_rates(capacity_mbps), believed_mbps * 1e6))
