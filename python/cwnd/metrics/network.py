"""Metrics of flows and links: RFC 5166 and the papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd import _native
from cwnd.metrics.catalog import DIMENSIONS, FIGURES, metric_of, range_of_dimension
from cwnd.stats import POSITIVE, UNIT, Range

if TYPE_CHECKING:
    from collections.abc import Sequence

Array: TypeAlias = npt.NDArray[np.float64]


def range_of(name: str) -> Range:
    """Return the range of values of a metric of `cwnd.compare` or `cwnd.agree`.

    Parameters
    ----------
    name
        Its name in JSON, or its name in ``[expect]``.

    Examples
    --------
    >>> range_of("jain").high, range_of("goodput_bps").high, range_of("completed.web").high
    (1.0, inf, 1.0)
    """
    if name.startswith("harm_"):
        return Range(high=1.0)
    if name.startswith("limited_"):
        return UNIT
    if name in FIGURES:
        return FIGURES[name].range
    dimension = DIMENSIONS.get(metric_of(name))
    return range_of_dimension(dimension) if dimension else POSITIVE


def throughput(bytes_sent: float, seconds: float) -> float:
    """Payload put on the network, retransmissions included (RFC 5166, section 2.1.1).

    Parameters
    ----------
    bytes_sent
        Bytes of payload sent.
    seconds
        How long the flow was active.

    Returns
    -------
    float
        Bits per second.

    Examples
    --------
    >>> throughput(1_000_000, 8.0)
    1000000.0
    """
    return _native.rate(bytes_sent, seconds)


def goodput(bytes_delivered: float, seconds: float) -> float:
    """Payload that reached the receiver, each byte once (RFC 5166, section 2.1.1).

    Parameters
    ----------
    bytes_delivered
        Bytes of payload that arrived for the first time, in any order.
    seconds
        How long the flow was active.

    Returns
    -------
    float
        Bits per second.

    Examples
    --------
    >>> goodput(950_000, 8.0)
    950000.0
    """
    return _native.rate(bytes_delivered, seconds)


def utilization(bytes_departed: float, rate_bps: float, seconds: float) -> float:
    """Fraction of a link's capacity in use (RFC 5166, section 2.1.1).

    Parameters
    ----------
    bytes_departed
        Bytes sent on the link, headers included.
    rate_bps
        Capacity of the link.
    seconds
        Length of the measurement.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> utilization(1_125_000, 1e6, 10.0)
    0.9
    """
    return _native.rate(bytes_departed, rate_bps * seconds)


def loss_rate(lost: float, packets: float) -> float:
    """Fraction of packets lost (RFC 5166, section 2.1.3).

    Parameters
    ----------
    lost
        Packets dropped by the queue or lost on the link.
    packets
        The packets of which these are a part: those that a link was offered, or those of a flow
        that were lost or arrived.

    Examples
    --------
    >>> loss_rate(5, 1000)
    0.005
    """
    return _native.ratio(lost, packets)


def mark_rate(marked: float, packets: float) -> float:
    """Fraction of packets marked instead of dropped (RFC 3168).

    Parameters
    ----------
    marked
        Packets marked.
    packets
        The packets of which these are a part: those that a link was offered, or those of a flow
        that arrived.

    Examples
    --------
    >>> mark_rate(20, 1000)
    0.02
    """
    return _native.ratio(marked, packets)


def retransmission_rate(retransmissions: float, packets_sent: float) -> float:
    """Fraction of retransmissions among the packets sent.

    Parameters
    ----------
    retransmissions
        Retransmitted packets.
    packets_sent
        Packets sent, retransmissions included.

    Examples
    --------
    >>> retransmission_rate(10, 400)
    0.025
    """
    return _native.ratio(retransmissions, packets_sent)


class Delay(NamedTuple):
    """Queueing delay in seconds: its mean and percentiles."""

    mean: float
    p50: float
    p95: float
    p99: float


def queue_delay(delays: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Delay:
    """Queueing delay of packets (RFC 5166, section 2.1.2).

    Parameters
    ----------
    delays
        Waiting times in seconds, one for each packet or sample.
    weights
        Number of packets of each waiting time; 1 by default.

    Returns
    -------
    Delay
        The mean, and the smallest delays that 50, 95 and 99 % of the packets do not exceed.

    Examples
    --------
    >>> queue_delay([0.01, 0.02, 0.03, 0.04])
    Delay(mean=0.025, p50=0.02, p95=0.04, p99=0.04)
    """
    return Delay(*_native.queue_delay(delays, weights))


def jain(rates: npt.ArrayLike) -> float:
    """Jain's fairness index: (Σx)² / (n Σx²) (RFC 5166, section 2.3; Jain 1984).

    Parameters
    ----------
    rates
        Rate of each flow, in any unit.

    Returns
    -------
    float
        1 for equal rates, 1/n if one flow has everything.

    Examples
    --------
    >>> jain([1.0, 1.0, 1.0, 1.0]), jain([1.0, 0.0, 0.0, 0.0])
    (1.0, 0.25)
    """
    return _native.jain(rates)


def alpha_fairness(increases: npt.ArrayLike) -> float:
    """AIRA's α-fairness: Jain's index of the flows' additive increases (AIRA, Eq. 4).

    The paper prints Σa² over nΣa², which is always 1/n; (Σa)² / (n Σa²) is used instead.

    Parameters
    ----------
    increases
        The additive increase ``a`` of each flow, in packets per round-trip time.

    Returns
    -------
    float
        1 for equal increases.

    Examples
    --------
    >>> alpha_fairness([1.0, 1.0, 0.5, 0.5])
    0.9
    """
    return jain(increases)


def efficiency_index(rates: npt.ArrayLike) -> float:
    """DAIMD's efficiency index EI: the sum of the flows' rates (Gu et al., section V).

    Parameters
    ----------
    rates
        Mean rate of each flow.

    Returns
    -------
    float
        In the unit of the rates.

    Examples
    --------
    >>> efficiency_index([40e6, 50e6])
    90000000.0
    """
    return _native.total(rates)


def fairness_index(rates: npt.ArrayLike) -> float:
    """DAIMD's fairness index FI: Jain's index of the flows' rates (Gu et al., Eq. 7).

    Parameters
    ----------
    rates
        Mean rate of each flow.

    Examples
    --------
    >>> round(fairness_index([25.37, 19.93, 20.17, 19.70, 13.72]), 3)
    0.966
    """
    return jain(rates)


def stability_index(rates: npt.ArrayLike) -> float:
    """DAIMD's stability index SI: mean relative deviation of the flows' rates (Gu et al., Eq. 18).

    Parameters
    ----------
    rates
        One row for each flow: its rate in each of m intervals.

    Returns
    -------
    float
        0 for constant rates. Flows that sent nothing are omitted.

    Examples
    --------
    >>> round(stability_index([[1.0, 3.0], [2.0, 2.0]]), 4)
    0.3536
    """
    return _native.stability_index(_rows(rates))


def binned_rate(
    time: npt.ArrayLike,
    packets: npt.ArrayLike,
    packet_bytes: float,
    scale: float,
    start: float | None = None,
) -> tuple[Array, Array]:
    """Rate of a flow in intervals of equal length.

    Parameters
    ----------
    time
        Times of the samples in seconds, ascending.
    packets
        Packets counted since the start of the flow, at those times.
    packet_bytes
        Payload of a packet in bytes.
    scale
        Length of an interval in seconds.
    start
        Beginning of the first interval; the first sample by default.

    Returns
    -------
    edges : ndarray
        Beginning of each interval.
    rates : ndarray
        Bits per second in each complete interval.

    Examples
    --------
    >>> edges, rates = binned_rate([0.0, 1.0, 2.0], [0, 125, 375], 1000, 1.0)
    >>> rates.tolist()
    [1000000.0, 2000000.0]
    """
    return _native.binned_rate(time, packets, packet_bytes, scale, start)


def coefficient_of_variation(rates: npt.ArrayLike) -> float:
    """Coefficient of variation, deviation over mean: 0 is smooth (RFC 5166, section 2.5).

    Parameters
    ----------
    rates
        Rate in each interval.

    Examples
    --------
    >>> coefficient_of_variation([1.0, 2.0, 3.0])
    0.5
    """
    return _native.coefficient_of_variation(rates)


def smoothness(
    time: npt.ArrayLike,
    packets: npt.ArrayLike,
    scales: Sequence[float],
    start: float | None = None,
) -> dict[float, float]:
    """Coefficient of variation of a flow's rate at several time scales (RFC 5166, section 2.5).

    Parameters
    ----------
    time
        Times of the samples in seconds, ascending.
    packets
        Packets counted since the start of the flow, at those times.
    scales
        Lengths of the intervals in seconds.
    start
        Beginning of the first interval; the first sample by default.

    Returns
    -------
    dict
        The coefficient of variation by time scale; lower is smoother.

    Examples
    --------
    >>> t = [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> {s: round(v, 3) for s, v in smoothness(t, [0, 10, 30, 40, 60], [1.0, 2.0]).items()}
    {1.0: 0.385, 2.0: 0.0}
    """
    return {scale: _native.smoothness(time, packets, scale, start) for scale in scales}


def friendliness(controller: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """Share of the controller's flows in the rates of both groups of flows together.

    Groups of different sizes are compared by their mean rates.

    Parameters
    ----------
    controller
        Rate of each flow of the controller.
    reference
        Rate of each flow of the reference that shared the network with them.

    Returns
    -------
    float
        1/2 for equal mean rates, 1 if the reference has nothing.

    Examples
    --------
    >>> friendliness([3.0, 3.0], [1.0, 1.0])
    0.75
    """
    return _native.friendliness(controller, reference)


def convergence_time(
    time: npt.ArrayLike,
    rates: npt.ArrayLike,
    epsilon: float = 0.1,
    hold: float = 0.0,
) -> float:
    """Time until all flows are within ε of the fair share and stay there for ``hold``.

    The δ-fair convergence time of RFC 5166, section 2.3.2, for any number of flows. The fair share
    is the mean of the flows at each time.

    Parameters
    ----------
    time
        Times of the samples in seconds, ascending; the first is the origin of the result.
    rates
        One row for each flow: its rate (or window) at those times.
    epsilon
        Largest relative deviation from the mean.
    hold
        Seconds for which the flows must stay within ``epsilon``.

    Returns
    -------
    float
        Seconds since the first sample; NaN if not reached, or not held until the end.

    Examples
    --------
    >>> convergence_time([0.0, 1.0, 2.0, 3.0], [[9, 7, 5, 5], [1, 3, 5, 5]])
    2.0
    """
    return _native.convergence_time(time, _rows(rates), epsilon, hold)


def responsiveness(
    time: npt.ArrayLike, rate: npt.ArrayLike, congestion: float, rtt: float, factor: float = 0.5
) -> float:
    """Round-trip times of persistent congestion until a sender has halved its rate.

    RFC 5166, section 2.2.1; Bansal et al. 2001.

    Parameters
    ----------
    time
        Times of the samples in seconds, ascending.
    rate
        The sender's rate (or window) at those times.
    congestion
        Beginning of the congestion in seconds; the rate at that time is the initial one.
    rtt
        Round-trip time in seconds.
    factor
        Fraction of the initial rate to reach.

    Returns
    -------
    float
        Round-trip times; NaN if the rate never fell that far.

    Examples
    --------
    >>> responsiveness([0.0, 0.1, 0.2, 0.3], [8.0, 8.0, 6.0, 4.0], congestion=0.1, rtt=0.1)
    2.0
    """
    return _native.responsiveness(time, rate, congestion, rtt, factor)


def _rows(rates: npt.ArrayLike) -> Array:
    """Return one row for each flow."""
    return np.atleast_2d(np.asarray(rates, dtype=float))
