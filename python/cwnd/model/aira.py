"""AIRA's analysis: its rules, its bounds, and rounds of a single flow (Psaras & Tsaoussidis).

A round is the time between two window reductions. Increases ``a`` are in packets per round-trip
time, windows in packets. A loss rate is the ratio of packets lost to packets sent in a round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError
from cwnd.model.checks import Array, Value, between, non_negative, plain, positive, whole

LEAST_INCREASE = 0.1
"""Lower bound of the increase in packets per round-trip time (section 6.1)."""

RESET = 1.5
"""Window, relative to its last peak, at which the increase is reset to 1."""

_EXTRA = 0.3
"""Rounds for the growth from W to 3W/2 in Eq. 24."""


def desired_slope_decrease(
    increase: npt.ArrayLike, loss: npt.ArrayLike, window: npt.ArrayLike
) -> Value:
    """Growth per ACK that would have caused no loss: a(1-p)/W (AIRA, Eq. 12, 13).

    Parameters
    ----------
    increase
        The round's increase a, in packets per round-trip time.
    loss
        The round's loss rate, from 0 to 1.
    window
        Window in packets.

    Returns
    -------
    float or ndarray
        Packets per ACK.

    Raises
    ------
    ArgumentError
        An argument outside its domain.

    Examples
    --------
    >>> desired_slope_decrease(1.0, 0.1, 10.0)
    0.09
    """
    increase, loss = positive("increase", increase), between("loss", loss, 0, 1)
    return plain(increase * (1 - loss) / positive("window", window))


def desired_slope_increase(
    increase: npt.ArrayLike,
    loss: npt.ArrayLike,
    previous_loss: npt.ArrayLike,
    window: npt.ArrayLike,
) -> Value:
    """Growth per ACK that would have used the spare rate: a(1+φ)/W, φ = p' - p (AIRA, Eq. 20, 21).

    Parameters
    ----------
    increase
        The round's increase a, in packets per round-trip time.
    loss
        The round's loss rate p, from 0 to 1.
    previous_loss
        The loss rate p' of the previous round.
    window
        Window in packets.

    Returns
    -------
    float or ndarray
        Packets per ACK.

    Raises
    ------
    ArgumentError
        An argument outside its domain.

    Examples
    --------
    >>> round(desired_slope_increase(1.0, 0.1, 0.2, 10.0), 12)
    0.11
    """
    increase, loss = positive("increase", increase), between("loss", loss, 0, 1)
    previous = between("previous_loss", previous_loss, 0, 1)
    return plain(increase * (1 + previous - loss) / positive("window", window))


def next_increase(
    increase: npt.ArrayLike, loss: npt.ArrayLike, previous_loss: npt.ArrayLike
) -> Value:
    """Increase of the next round, before bounds are applied (AIRA, Eq. 5, 14).

    a(1-p) if the loss rate rose, a(1+p'-p) if it fell, a if it is unchanged.

    Parameters
    ----------
    increase
        The round's increase a, in packets per round-trip time.
    loss
        The round's loss rate p, from 0 to 1.
    previous_loss
        The loss rate p' of the previous round; 0 in the first round.

    Returns
    -------
    float or ndarray
        Packets per round-trip time.

    Raises
    ------
    ArgumentError
        An argument outside its domain.

    Examples
    --------
    >>> next_increase(1.0, 0.1, 0.0), next_increase(0.5, 0.25, 0.5), next_increase(0.5, 0.1, 0.1)
    (0.9, 0.625, 0.5)
    """
    increase, loss = positive("increase", increase), between("loss", loss, 0, 1)
    previous = between("previous_loss", previous_loss, 0, 1)
    factor = np.where(loss > previous, 1 - loss, 1 + (previous - loss))
    return plain(increase * factor)


def mail(rounds: npt.ArrayLike) -> Value:
    """Minimum Additive Increase Limit after a number of rounds: 1 - 0.9·R% (AIRA, Eq. 23).

    Parameters
    ----------
    rounds
        Rounds completed, a whole number.

    Returns
    -------
    float or ndarray
        Packets per round-trip time: from 1 down to 0.1 at 100 rounds, then constant.

    Raises
    ------
    ArgumentError
        The number of rounds is not a whole number.

    Examples
    --------
    >>> mail(0), round(mail(50), 12), mail(1000)
    (1.0, 0.55, 0.1)
    """
    fallen = 1 - (1 - LEAST_INCREASE) * whole("rounds", rounds) / 100
    return plain(np.maximum(LEAST_INCREASE, fallen))


def reset_threshold(window: npt.ArrayLike) -> Value:
    """Window at which the increase is reset to 1: 3W/2 (AIRA, section 6.3).

    Parameters
    ----------
    window
        Peak W of the window in previous rounds, in packets.

    Returns
    -------
    float or ndarray
        Packets.

    Raises
    ------
    ArgumentError
        The window is not above 0.

    Examples
    --------
    >>> reset_threshold(20)
    30.0
    """
    return plain(RESET * positive("window", window))


def extra_time(increase: npt.ArrayLike, round_duration: npt.ArrayLike = 1) -> Value:
    """Time to grow from W to 3W/2, as printed: 0.3·R/a (AIRA, T_x of Eq. 24).

    The paper does not derive 0.3. A round is the growth by W/2, so that linear growth by another
    W/2 takes one more round, not 0.3 rounds.

    Parameters
    ----------
    increase
        The flow's increase a, in packets per round-trip time.
    round_duration
        Duration of a round of a flow with a = 1: R_D1 in seconds; by default in rounds.

    Returns
    -------
    float or ndarray
        In the unit of ``round_duration``.

    Raises
    ------
    ArgumentError
        An argument outside its domain.

    Examples
    --------
    >>> round(extra_time(0.6), 12)
    0.5
    """
    duration = positive("round_duration", round_duration)
    return plain(_EXTRA * duration / positive("increase", increase))


def total_time(increase: npt.ArrayLike, round_duration: npt.ArrayLike = 1) -> Value:
    """Time of a round and the growth to 3W/2: 1.3·R/a (AIRA, TotalT_x of Eq. 25).

    Parameters
    ----------
    increase
        The flow's increase a, in packets per round-trip time.
    round_duration
        Duration of a round of a flow with a = 1: R_D1 in seconds; by default in rounds.

    Returns
    -------
    float or ndarray
        In the unit of ``round_duration``.

    Raises
    ------
    ArgumentError
        An argument outside its domain.

    Examples
    --------
    >>> round(total_time(0.65), 12)
    2.0
    """
    duration = positive("round_duration", round_duration)
    return plain((1 + _EXTRA) * duration / positive("increase", increase))


class Rounds(NamedTuple):
    """Rounds of one flow: one element for each round, at its end; see `one_flow`."""

    increase: Array
    loss: Array
    packets: Array
    seconds: Array


def one_flow(
    rounds: int, rate: float, rtt: float, queue: float, *, lost: float = 1, slowest: bool = False
) -> Rounds:
    """Simulate a single flow on a DropTail link, round by round (AIRA, Fig. 14).

    The window grows from half its peak to the peak, rate·RTT + queue, by ``a`` per round-trip time,
    which is w/rate while there is a queue. A round carries 3W²/(8a) packets.

    Parameters
    ----------
    rounds
        Number of rounds.
    rate
        Rate of the link in packets per second.
    rtt
        Round-trip time without queueing, in seconds.
    queue
        Capacity of the queue in packets.
    lost
        Packets lost at the end of each round.
    slowest
        Whether the increase is the lower bound MAIL, instead of the result of the rules for the
        round's losses: the longest possible rounds.

    Returns
    -------
    Rounds
        ``increase`` and ``loss`` of each round; ``packets`` sent and ``seconds`` elapsed at its
        end.

    Raises
    ------
    ArgumentError
        An argument outside its domain, or ``lost`` above the packets of a round.

    Examples
    --------
    >>> flow = one_flow(50, rate=125, rtt=0.04, queue=15)
    >>> flow.packets[0].item(), round(flow.seconds[0].item(), 2)
    (150.0, 1.2)
    """
    count = int(whole("rounds", rounds, least=1))
    capacity = float(positive("rate", rate))
    pipe = capacity * float(positive("rtt", rtt))
    peak = pipe + float(non_negative("queue", queue))
    losses = float(non_negative("lost", lost))
    area = 3 * peak**2 / 8
    if losses > area:
        raise ArgumentError("lost", f"a round carries only {area:.3g} packets")
    low = max(peak / 2, min(peak, pipe))
    duration = (low - peak / 2) * pipe / capacity + (peak**2 - low**2) / (2 * capacity)
    increases, rates = np.empty(count), np.empty(count)
    increase, before = 1.0, 0.0
    for number in range(count):
        # Round k uses the increase after k completed rounds.
        least = float(mail(number))
        increase = least if slowest else max(least, increase)
        loss = losses * increase / area
        increases[number], rates[number] = increase, min(1.0, loss)
        increase, before = float(next_increase(increase, rates[number], before)), rates[number]
    packets, seconds = np.cumsum(area / increases), np.cumsum(duration / increases)
    return Rounds(increases, rates, packets, seconds)
