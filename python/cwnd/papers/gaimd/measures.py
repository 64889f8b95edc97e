"""Measures of the GAIMD paper: what its formula needs, and how flows share a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd.model.throughput import gaimd, gaimd_timeout_probability
from cwnd.papers.gaimd.networks import INTERVAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.model.checks import Array
    from cwnd.papers.gaimd.networks import Pair
    from cwnd.result import Result


class Seen(NamedTuple):
    """Flows of one kind in one run; each array has one entry for each flow.

    Attributes
    ----------
    cuts, sent, lost, timeouts
        Window reductions, packets sent, packets lost, timeouts.
    seconds
        From the flow's start to the end.
    rtt
        Samples of the round-trip time in seconds, one row for each flow; NaN without a new one.
    phases
        Fraction of a clock tick at which each sample was taken.
    """

    cuts: Array
    sent: Array
    lost: Array
    timeouts: Array
    seconds: Array
    rtt: Array
    phases: Array


def see(result: Result, name: str = "") -> Seen:
    """Observe the flows whose names start with ``name``.

    Flows without a round-trip time or a window reduction have no rate by Eq. 2 and are left out.
    """
    flows = [
        flow
        for flow in result.record["flows"]
        if flow["measured"]
        and flow["name"].startswith(name)
        and flow["mean_rtt_s"] > 0
        and flow["cuts"]["time"].size
    ]

    def each(key: str) -> Array:
        return np.array([float(flow[key]) for flow in flows])  # type: ignore[literal-required]

    def series(key: str) -> Array:
        rows = [flow[key] for flow in flows]  # type: ignore[literal-required]
        return np.array(rows).reshape(len(flows), result.time.size)

    # The series repeats the last round-trip time while no acknowledgement arrives.
    fresh = np.diff(series("delivered"), axis=1, prepend=0.0) > 0
    return Seen(
        np.array([float(flow["cuts"]["time"].size) for flow in flows]),
        each("packets_sent"),
        each("packets_lost"),
        each("timeouts"),
        result.duration_s - each("start_s"),
        np.where(fresh, series("rtt"), np.nan),
        np.random.default_rng(result.seed).random(fresh.shape),
    )


def see_both(result: Result) -> tuple[Seen, Seen]:
    """Observe the GAIMD flows and the Reno flows of section 2.4."""
    return see(result, "gaimd"), see(result, "reno")


@dataclass(frozen=True, slots=True)
class Group:
    """Flows of one kind in one run beside Eq. 2; each array has one entry for each flow.

    Attributes
    ----------
    loss
        The paper's p: window reductions over packets sent.
    lost
        Packets lost over packets sent.
    rate
        Packets per second, from the flow's start to the end.
    formula, by_lost
        Eq. 2 in packets per second with ``loss`` and with ``lost`` as p, and with the flow's own
        round-trip time and timeout (see `timer`).
    timeouts
        Timeouts over window reductions.
    likely
        Q, the probability that a loss leads to a timeout.
    """

    loss: Array
    lost: Array
    rate: Array
    formula: Array
    by_lost: Array
    timeouts: Array
    likely: Array

    @property
    def ratio(self) -> float:
        """Mean rate by the formula over the mean rate measured."""
        return float(self.formula.mean() / self.rate.mean())

    @property
    def lost_ratio(self) -> float:
        """The same ratio with the fraction of packets lost as p."""
        return float(self.by_lost.mean() / self.rate.mean())


def group(seen: Sequence[Seen], pair: Pair, clock: tuple[float, float]) -> list[Group]:
    """Apply Eq. 2 to flows of one kind; one `Group` for each run.

    ``clock`` is the granularity of the retransmission timer and its least value, in seconds.
    """
    # All runs at once: the timer takes one step a sample, whatever the number of flows.
    ends = np.cumsum([len(run.sent) for run in seen])[:-1]
    rtt, phases = (np.concatenate([getattr(run, of) for run in seen]) for of in ("rtt", "phases"))
    times = (np.split(time, ends) for time in timer(rtt, clock, phases))
    given = {"alpha": pair[0], "beta": 1 - pair[1]}
    return [
        Group(
            loss := run.cuts / run.sent,
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
    """Return each flow's mean smoothed round-trip time and mean timeout, by ns-2's arithmetic.

    ns-2 counts whole ticks and truncates, so that the smoothed time is 0.4 ticks too long. It
    forgets the smoothed time at the fourth back-off.

    Parameters
    ----------
    samples
        Round-trip times in seconds every `INTERVAL`, one row for each flow; NaN without a new one.
    clock
        Granularity of the timer and its least value, in seconds.
    phases
        Fraction of a tick at which each packet was sent.

    Returns
    -------
    rtt, rto : ndarray
        Seconds; the timeout is without back-off. Intervals without a smoothed time do not count.

    Examples
    --------
    >>> phases = np.random.default_rng(1).random((1, 4000))
    >>> rtt, rto = timer(np.full((1, 4000), 0.15), (0.1, 0.2), phases)
    >>> rtt.round(2).tolist(), rto.round(1).tolist()
    ([0.19], [0.5])
    """
    step, least = clock
    smooth = np.zeros(samples.shape[0], dtype=np.int64)
    spread, count = smooth.copy(), smooth.copy()
    rtt, rto = np.zeros(smooth.shape), np.zeros(smooth.shape)
    silent = np.zeros(smooth.shape)
    there = np.isfinite(samples).T
    taken = np.maximum(np.where(there, samples.T, 0.0) / step + phases.T, 1).astype(np.int64)
    for new, ticks in zip(there, taken, strict=True):
        first = new & (smooth == 0)
        error = ticks - (smooth >> 3)
        spread = np.where(new, spread + np.abs(error) - (spread >> 2), spread)
        smooth = np.where(new, smooth + error, smooth)
        smooth, spread = np.where(first, ticks << 3, smooth), np.where(first, ticks << 1, spread)
        timeout = np.maximum((((spread << 3) + smooth) >> 3) * step, least)
        # The fourth back-off comes after 1 + 2 + 4 + 8 timeouts.
        silent = np.where(new, 0.0, silent + INTERVAL)
        smooth = np.where(silent > 15 * timeout, 0, smooth)
        count += smooth > 0
        rtt += smooth / 8 * step
        rto += np.where(smooth > 0, timeout, 0.0)
    return rtt / count, rto / count


class Shares(NamedTuple):
    """GAIMD and TCP flows on a link that they share.

    Attributes
    ----------
    ratio
        Sending rate of a GAIMD flow over that of a TCP flow.
    gaimd, tcp
        Mean coefficient of variation of a flow's sending rate over ten round-trip times.
    """

    ratio: float
    gaimd: float
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
