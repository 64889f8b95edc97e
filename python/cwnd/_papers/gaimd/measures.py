"""Measurements of the GAIMD paper: inputs of its formula, and sharing of a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd._papers.gaimd.networks import INTERVAL
from cwnd.model.throughput import gaimd, gaimd_timeout_probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._papers.gaimd.networks import Pair
    from cwnd._runs.result import Result
    from cwnd.model.checks import Array


class Seen(NamedTuple):
    """Flows of one kind in one run: one element, or row of ``rtt`` and ``phases``, per flow."""

    cuts: Array  # window reductions
    sent: Array  # packets
    lost: Array
    timeouts: Array
    seconds: Array  # from the flow's start to the end
    rtt: Array  # round-trip times every `INTERVAL` seconds; NaN without a new one
    phases: Array  # fraction of a clock tick at which each was measured


def see(result: Result, name: str = "") -> Seen:
    """Measure the flows whose names start with ``name``.

    Flows without a round-trip time or a window reduction, for which Eq. 2 has no rate, are omitted.
    """
    flows = [
        flow
        for flow in result.measured_flows
        if flow["name"].startswith(name) and flow["mean_rtt_s"] > 0 and flow["cuts"]["time"].size
    ]
    shape = (len(flows), result.time.size)
    delivered = np.array([flow["delivered"] for flow in flows]).reshape(shape)
    rtt = np.array([flow["rtt"] for flow in flows]).reshape(shape)
    # The series repeats the last round-trip time while no packet arrives.
    fresh = np.diff(delivered, axis=1, prepend=0.0) > 0
    return Seen(
        np.array([float(flow["cuts"]["time"].size) for flow in flows]),
        np.array([float(flow["packets_sent"]) for flow in flows]),
        np.array([float(flow["packets_lost"]) for flow in flows]),
        np.array([float(flow["timeouts"]) for flow in flows]),
        result.duration_s - np.array([flow["start_s"] for flow in flows]),
        np.where(fresh, rtt, np.nan),
        np.random.default_rng(result.seed).random(shape),
    )


def see_both(result: Result) -> tuple[Seen, Seen]:
    """Measure the GAIMD flows and the Reno flows of section 2.4."""
    return see(result, "gaimd"), see(result, "reno")


def see_acks(result: Result) -> tuple[Seen, float]:
    """Measure the only flow, and the mean number of packets for each acknowledgement."""
    (flow,) = result.measured_flows
    back = result.record["links"][1]
    return see(result), flow["packets_received"] / back["departures"]


class Group(NamedTuple):
    """Flows of one kind in one run, with Eq. 2; one element per flow, rates in packets/s."""

    loss: Array  # p: the paper's, which is window reductions over packets sent, or `lost`
    lost: Array  # packets lost over packets sent
    rate: Array
    formula: Array  # Eq. 2 with `loss`, and with `lost`
    by_lost: Array
    timeouts: Array  # timeouts over window reductions
    likely: Array  # Q

    @property
    def ratio(self) -> float:
        """Mean rate by the formula divided by the mean measured rate."""
        return float(self.formula.mean() / self.rate.mean())

    @property
    def lost_ratio(self) -> float:
        """The same ratio with the fraction of lost packets as p."""
        return float(self.by_lost.mean() / self.rate.mean())


def group(
    seen: Sequence[Seen],
    pair: Pair,
    clock: tuple[float, float],
    *,
    b: float = 1,
    by_lost: bool = False,
    mean_rtt: bool = False,
) -> list[Group]:
    """Apply Eq. 2 to flows of one kind, run by run; ``clock`` is as for `timer`.

    ``by_lost`` makes p the fraction of packets lost. ``mean_rtt`` replaces the smoothed round-trip
    time of the timer by the mean of the samples.
    """
    # All runs together: the timer takes one step per sample, for any number of flows.
    ends = np.cumsum([len(run.sent) for run in seen])[:-1]
    rtt, phases = (np.concatenate([getattr(run, of) for run in seen]) for of in ("rtt", "phases"))
    smoothed, timeout = timer(rtt, clock, phases)
    times = (np.split(of, ends) for of in (np.nanmean(rtt, 1) if mean_rtt else smoothed, timeout))
    given = {"b": b, "alpha": pair[0], "beta": 1 - pair[1]}
    return [
        Group(
            loss := (run.lost if by_lost else run.cuts) / run.sent,
            lost := run.lost / run.sent,
            run.sent / run.seconds,
            np.asarray(gaimd(loss, srtt, rto, **given)),
            np.asarray(gaimd(lost, srtt, rto, **given)),
            run.timeouts / run.cuts,
            np.asarray(gaimd_timeout_probability(loss, **given)),
        )
        for run, srtt, rto in zip(seen, *times, strict=True)
    ]


def timer(samples: Array, clock: tuple[float, float], phases: Array) -> tuple[Array, Array]:
    """Return each flow's mean smoothed round-trip time and mean timeout in seconds, as in ns-2.

    ``samples`` and ``phases`` are `Seen.rtt` and `Seen.phases`. ``clock`` is the granularity and
    the minimum of the timer in seconds. ns-2 counts whole ticks and truncates, so that the smoothed
    time is 0.4 ticks too long, and resets it at the fourth back-off.
    """
    step, least = clock
    smooth = np.zeros(samples.shape[0], dtype=np.int64)
    spread, count = smooth.copy(), smooth.copy()
    silent, rtt, rto = (np.zeros(smooth.shape) for _ in range(3))
    there = np.isfinite(samples).T
    taken = np.maximum(np.where(there, samples.T, 0.0) / step + phases.T, 1).astype(np.int64)
    for new, ticks in zip(there, taken, strict=True):
        first = new & (smooth == 0)
        error = ticks - (smooth >> 3)
        spread = np.where(new, spread + np.abs(error) - (spread >> 2), spread)
        smooth = np.where(new, smooth + error, smooth)
        smooth, spread = np.where(first, ticks << 3, smooth), np.where(first, ticks << 1, spread)
        timeout = np.maximum((((spread << 3) + smooth) >> 3) * step, least)
        # The fourth back-off occurs after 1 + 2 + 4 + 8 timeouts.
        silent = np.where(new, 0.0, silent + INTERVAL)
        smooth = np.where(silent > 15 * timeout, 0, smooth)
        count += smooth > 0
        rtt += smooth / 8 * step
        rto += np.where(smooth > 0, timeout, 0.0)
    return rtt / count, rto / count


class Shares(NamedTuple):
    """GAIMD and TCP flows that share a link."""

    ratio: float  # sending rate of a GAIMD flow divided by that of a TCP flow
    gaimd: float  # mean coefficients of variation of a flow's rate over ten round-trip times
    tcp: float


def shares(result: Result) -> Shares:
    """Measure a run of `networks.sharing`."""
    flows = result.measured_flows
    half = len(flows) // 2
    sent = np.array([float(flow["packets_sent"]) for flow in flows])
    scale = result.scales[1]
    spread = np.array([result.smoothness(flow, [scale])[scale] for flow in flows])
    return Shares(
        float(sent[:half].mean() / sent[half:].mean()),
        float(np.nanmean(spread[:half])),
        float(np.nanmean(spread[half:])),
    )


def growth(result: Result) -> float:
    """Return the median growth of the only flow's window in congestion avoidance, per round trip.

    The window is sampled every `INTERVAL` seconds; samples between which it falls are omitted.
    """
    (flow,) = result.measured_flows
    steps = np.diff(flow["window"])
    return float(np.median(steps[steps > 0])) * float(flow["mean_rtt_s"]) / INTERVAL
