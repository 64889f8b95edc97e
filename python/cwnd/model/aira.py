"""AIRA's analysis: its rules, its bounds, and rounds of a single flow (Psaras & Tsaoussidis).

A round is the time between two window reductions. Increases ``a`` are in packets per round-trip
time, windows in packets. A loss rate is the ratio of packets lost to packets sent in a round.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError
from cwnd.model.checks import Array, Value, between, non_negative, plain, positive, whole
from cwnd.model.quantities import Packets, PacketsPerRtt, Seconds, Unit, Whole, document

RoundIncrease: TypeAlias = Annotated[PacketsPerRtt, "The round's increase a"]
FlowIncrease: TypeAlias = Annotated[PacketsPerRtt, "The flow's increase a"]
RoundLoss: TypeAlias = Annotated[npt.ArrayLike, "The round's loss rate p; from 0 to 1"]
RoundDuration: TypeAlias = Annotated[
    Seconds, "Duration R_D1 of a round of a flow with a = 1; by default in rounds"
]
Window: TypeAlias = Annotated[Packets, "Window"]
Slope: TypeAlias = Annotated[Value, "Growth", Unit("packets/ACK")]
Duration: TypeAlias = Annotated[Value, "Time; in the unit of ``round_duration``"]

MIN_INCREASE = 0.1
"""Lower bound of the increase in packets per round-trip time (section 6.1)."""

MAX_ROUNDS = 100_000
"""Largest number of rounds of one flow."""

RESET = 1.5
"""Window, relative to its last peak, at which the increase is reset to 1."""

_EXTRA = 0.3
"""Rounds for the growth from W to 3W/2 in Eq. 24."""


def desired_slope_decrease(increase: RoundIncrease, loss: RoundLoss, window: Window) -> Slope:
    """Growth per ACK that would have caused no loss: a(1-p)/W (AIRA, Eq. 12, 13).

    Examples
    --------
    >>> desired_slope_decrease(1.0, 0.1, 10.0)
    0.09
    """
    increase, loss = positive("increase", increase), between("loss", loss, 0, 1)
    return plain(increase * (1 - loss) / positive("window", window))


def desired_slope_increase(
    increase: RoundIncrease,
    loss: RoundLoss,
    previous_loss: Annotated[npt.ArrayLike, "The loss rate p' of the previous round; from 0 to 1"],
    window: Window,
) -> Slope:
    """Growth per ACK that would have used the spare rate: a(1+φ)/W, φ = p' - p (AIRA, Eq. 20, 21).

    Examples
    --------
    >>> round(desired_slope_increase(1.0, 0.1, 0.2, 10.0), 12)
    0.11
    """
    increase, loss = positive("increase", increase), between("loss", loss, 0, 1)
    previous = between("previous_loss", previous_loss, 0, 1)
    return plain(increase * (1 + previous - loss) / positive("window", window))


def next_increase(
    increase: RoundIncrease,
    loss: RoundLoss,
    previous_loss: Annotated[
        npt.ArrayLike, "The loss rate p' of the previous round; from 0 to 1; 0 in the first round"
    ],
) -> Annotated[Value, "Increase", Unit("packets/RTT")]:
    """Increase of the next round, before bounds are applied (AIRA, Eq. 5, 14).

    a(1-p) if the loss rate rose, a(1+p'-p) if it fell, a if it is unchanged.

    Examples
    --------
    >>> next_increase(1.0, 0.1, 0.0), next_increase(0.5, 0.25, 0.5), next_increase(0.5, 0.1, 0.1)
    (0.9, 0.625, 0.5)
    """
    increase, loss = positive("increase", increase), between("loss", loss, 0, 1)
    previous = between("previous_loss", previous_loss, 0, 1)
    factor = np.where(loss > previous, 1 - loss, 1 + (previous - loss))
    return plain(increase * factor)


def mail(
    rounds: Annotated[Whole, "Rounds completed"],
) -> Annotated[
    Value,
    "Lower bound of the increase; from 1 down to 0.1 at 100 rounds, then constant",
    Unit("packets/RTT"),
]:
    """Minimum Additive Increase Limit after a number of rounds: 1 - 0.9·R% (AIRA, Eq. 23).

    Examples
    --------
    >>> mail(0), round(mail(50), 12), mail(1000)
    (1.0, 0.55, 0.1)
    """
    fallen = 1 - (1 - MIN_INCREASE) * whole("rounds", rounds) / 100
    return plain(np.maximum(MIN_INCREASE, fallen))


def reset_threshold(
    window: Annotated[Packets, "Peak W of the window in previous rounds"],
) -> Annotated[Value, "Window", Unit("packets")]:
    """Window at which the increase is reset to 1: 3W/2 (AIRA, section 6.3).

    Examples
    --------
    >>> reset_threshold(20)
    30.0
    """
    return plain(RESET * positive("window", window))


def extra_time(increase: FlowIncrease, round_duration: RoundDuration = 1) -> Duration:
    """Time to grow from W to 3W/2, as printed: 0.3·R/a (AIRA, T_x of Eq. 24).

    The paper does not derive 0.3. A round is the growth by W/2, so that linear growth by another
    W/2 takes one more round, not 0.3 rounds.

    Examples
    --------
    >>> round(extra_time(0.6), 12)
    0.5
    """
    duration = positive("round_duration", round_duration)
    return plain(_EXTRA * duration / positive("increase", increase))


def total_time(increase: FlowIncrease, round_duration: RoundDuration = 1) -> Duration:
    """Time of a round and the growth to 3W/2: 1.3·R/a (AIRA, TotalT_x of Eq. 25).

    Examples
    --------
    >>> round(total_time(0.65), 12)
    2.0
    """
    duration = positive("round_duration", round_duration)
    return plain((1 + _EXTRA) * duration / positive("increase", increase))


class Rounds(NamedTuple):
    """Rounds of one flow: one element for each round, at its end; see `one_flow`."""

    increase: Annotated[Array, "Increase of each round", Unit("packets/RTT")]
    loss: Annotated[Array, "Loss rate of each round"]
    packets: Annotated[Array, "Packets sent until the end of each round", Unit("packets")]
    seconds: Annotated[Array, "Time at the end of each round", Unit("s")]


def one_flow(
    rounds: Annotated[int, f"Number of rounds; from 1 to {MAX_ROUNDS}"],
    rate: Annotated[float, "Rate of the link", Unit("packets/s")],
    rtt: Annotated[float, "Round-trip time without queueing", Unit("s")],
    queue: Annotated[float, "Capacity of the queue", Unit("packets")],
    *,
    lost: Annotated[
        float, "Packets lost at the end of each round; at most those of a round", Unit("packets")
    ] = 1,
    slowest: Annotated[bool, "Whether the increase is the lower bound MAIL"] = False,
) -> Rounds:
    """Simulate a single flow on a DropTail link, round by round (AIRA, Fig. 14).

    The window grows from half its peak to the peak, rate·RTT + queue, by ``a`` per round-trip time,
    which is w/rate while there is a queue. A round carries 3W²/(8a) packets. With ``slowest`` MAIL
    replaces the result of the rules for the round's losses: the longest possible rounds.

    Examples
    --------
    >>> flow = one_flow(50, rate=125, rtt=0.04, queue=15)
    >>> flow.packets[0].item(), round(flow.seconds[0].item(), 2)
    (150.0, 1.2)
    """
    count = int(whole("rounds", rounds, least=1, most=MAX_ROUNDS))
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


document(globals())
