"""DAIMD's analysis: UDT's increase, stages, equilibrium, time to fill a link, utility and bounds.

Gu, Hong & Grossman give the rate x in packets per second in Eq. 8 and in packets per SYN, the
control interval of 0.01 s, from Eq. 9 on. Here the name or the docstring of a function states the
unit. Packets have 1500 bytes (the paper's standard packet S) except in Eq. 8. L is the capacity of
the link in bits per second. In stage k, L - C(x) is in (10^(e-k-1), 10^(e-k)], where
10^(e-1) < L ≤ 10^e and C(x) is the rate in bits per second.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError
from cwnd.model.checks import (
    MAX_STAGE,
    Array,
    Value,
    between,
    non_negative,
    plain,
    positive,
    probability,
    whole,
)
from cwnd.model.quantities import (
    BitRate,
    Bytes,
    Capacity,
    OneCapacity,
    PacketRate,
    PacketsPerSyn,
    Rtt,
    Stage,
    Unit,
    document,
)

Change: TypeAlias = Annotated[Value, "Change in each SYN", Unit("packets/SYN²")]
LossProbability: TypeAlias = Annotated[npt.ArrayLike, "Probability of a loss; above 0, at most 1"]
RatePerSyn: TypeAlias = Annotated[PacketsPerSyn, "Rate x"]

SYN = 0.01
"""UDT's control interval in seconds."""

BETA = 1 / 9
"""Fraction of the rate given up on a loss: the packet interval grows by 1/8."""

TAU = 9
"""The constant τ of Eq. 8."""

PACKET_BYTES = 1500
"""Size of the standard packet."""

BITS_PER_SYN = 8 * PACKET_BYTES / SYN
"""Bits per second for one standard packet per SYN."""

MAX_INTERVALS = 100_000
"""Largest number of intervals of a trajectory."""

_STAGES = 40
"""Number of stages in the utility; the last of 40 is 10^-40 of the capacity."""


def exponent(
    capacity_bps: Annotated[BitRate, "Capacity L, or any rate"],
) -> Annotated[Array, "Whole numbers"]:
    """Find e with 10^(e-1) < L ≤ 10^e, regardless of rounding errors (DAIMD, section III).

    Examples
    --------
    >>> exponent([1e9, 1.5e9]).tolist()
    [9.0, 10.0]
    """
    capacity = positive("capacity_bps", capacity_bps)
    found = np.ceil(np.log10(capacity))
    found = np.where(10 ** (found - 1) >= capacity, found - 1, found)
    return np.where(10**found < capacity, found + 1, found)


def increase_per_syn(
    rate: Annotated[PacketsPerSyn, "Rate x in packets of 1500 bytes"],
    capacity_bps: Capacity,
) -> Annotated[Value, "Increase in each SYN", Unit("packets/SYN")]:
    """Increase of UDT in one SYN: 10^(⌈log(L - C(x))⌉ - 9) (DAIMD, Eq. 9).

    The increase is 0 from the capacity on, where the paper's logarithm is undefined.

    Examples
    --------
    >>> increase_per_syn([0.0, 760.0], 1e9).tolist()
    [1.0, 0.1]
    """
    spare = positive("capacity_bps", capacity_bps) - non_negative("rate", rate) * BITS_PER_SYN
    return plain(_increase(spare))


def increase_per_second(
    rate: Annotated[PacketRate, "Rate x"],
    capacity_bps: Capacity,
    packet_bytes: Annotated[Bytes, "Packet size S"] = PACKET_BYTES,
) -> Annotated[Value, "Increase in each SYN; 0 from the capacity on", Unit("packets/s")]:
    """Increase of UDT in one SYN: 10^(⌈log(L - C(x))⌉ - 9) · 1500/S · 1/SYN (DAIMD, Eq. 8).

    Examples
    --------
    >>> increase_per_second(0.0, 1e9)
    100.0
    """
    size = positive("packet_bytes", packet_bytes)
    spare = positive("capacity_bps", capacity_bps) - non_negative("rate", rate) * size * 8
    return plain(_increase(spare) * PACKET_BYTES / size / SYN)


def stage_increase(
    stage: Stage, capacity_bps: Capacity
) -> Annotated[Value, "Increase in each SYN", Unit("packets/SYN")]:
    """Increase of a stage: α_k = 10^(e - k - 9) (DAIMD, Eq. 11).

    Examples
    --------
    >>> stage_increase([0, 1], 1e9).tolist()
    [1.0, 0.1]
    """
    return plain(10 ** (exponent(capacity_bps) - whole("stage", stage, most=MAX_STAGE) - TAU))


def stage_end(
    stage: Stage, capacity_bps: Capacity
) -> Annotated[Value, "Rate", Unit("packets/SYN")]:
    """Rate at which a stage ends: L - 10^(e - k - 1) (DAIMD, section III).

    Examples
    --------
    >>> stage_end(0, 1e9)
    750.0
    """
    capacity = positive("capacity_bps", capacity_bps)
    end = capacity - 10 ** (exponent(capacity) - whole("stage", stage, most=MAX_STAGE) - 1)
    return plain(end / BITS_PER_SYN)


def equilibrium(
    p: LossProbability, capacity_bps: Capacity, stage: Stage = 0
) -> Annotated[Value, "Rate; may be outside the stage: see `stable_stage`", Unit("packets/SYN")]:
    """Equilibrium rate of a stage: (-α + √(α² + 4βα/p))/(2β) (DAIMD, Eq. 10).

    Eq. 12 is its limit for small p: `cwnd.model.throughput.udt_response`.

    Examples
    --------
    >>> round(equilibrium(1e-4, 1e9), 2)
    295.53
    """
    p, increase = probability("p", p), np.asarray(stage_increase(stage, capacity_bps))
    root = np.sqrt(increase**2 + 4 * BETA * increase / p)
    # Equivalent to the printed form, without its cancellation.
    return plain(2 * increase / (p * (increase + root)))


def equilibrium_bps(
    p: LossProbability,
    capacity_bps: Capacity,
    stage: Stage = 0,
    *,
    printed: Annotated[bool, "Whether to use the printed exponent"] = False,
) -> Annotated[Value, "Rate", Unit("bit/s")]:
    """Rate of Eq. 12 in bits per second: 3.6/SYN · p^-0.5 · 10^((e-k-1)/2) (DAIMD, Eq. 13).

    The paper prints 10^((e-k+1)/2), ten times the value of its Eq. 12 and first line of Eq. 13.

    Examples
    --------
    >>> round(equilibrium_bps(1e-4, 1e9)), round(equilibrium_bps(1e-4, 1e9, printed=True))
    (360000000, 3600000000)
    """
    power = exponent(capacity_bps) - whole("stage", stage, most=MAX_STAGE) + (1 if printed else -1)
    return plain(3.6 / SYN / np.sqrt(probability("p", p)) * 10 ** (power / 2))


def stable_stage(
    p: LossProbability,
    capacity_bps: Capacity,
    *,
    printed: Annotated[bool, "Whether to use the printed d"] = False,
) -> Annotated[
    int | npt.NDArray[np.int64],
    "The smallest k whose `equilibrium_bps` is not beyond the stage's end",
]:
    """Stage of a flow's equilibrium: ⌈e - 1 - 2 log(√(d² + L) - d)⌉⁺ (DAIMD, Eq. 14).

    d = 1.8/(SYN√p). The paper prints 18, from the error in its Eq. 13.

    Examples
    --------
    >>> stable_stage([1e-4, 1e-6], 1e9).tolist()
    [0, 2]
    """
    capacity = positive("capacity_bps", capacity_bps)
    d = (18 if printed else 1.8) / (SYN * np.sqrt(probability("p", p)))
    # Equal to √(d² + L) - d, without cancellation and overflow.
    room = capacity / (np.hypot(d, np.sqrt(capacity)) + d)
    stage = np.asarray(np.maximum(0, np.ceil(exponent(capacity) - 1 - 2 * np.log10(room))))
    return int(stage) if stage.ndim == 0 else stage.astype(np.int64)


def trajectory(
    intervals: Annotated[int, f"Number of SYN intervals; at most {MAX_INTERVALS}"],
    capacity_bps: OneCapacity,
    start: Annotated[float, "Initial rate", Unit("packets/SYN")] = 0.0,
) -> Annotated[Array, "``intervals + 1`` rates; the first is ``start``", Unit("packets/SYN")]:
    """Rate of a flow without loss for each SYN (DAIMD, Eq. 15).

    Examples
    --------
    >>> trajectory(752, 1e9)[[0, 750, 751, 752]].tolist()
    [0.0, 750.0, 750.1, 750.2]
    """
    count = int(whole("intervals", intervals, most=MAX_INTERVALS))
    capacity = float(positive("capacity_bps", capacity_bps))
    rates = np.empty(count + 1)
    rates[0] = base = float(non_negative("start", start))
    increase, steps = 0.0, 0
    for number in range(count):
        now = float(_increase(np.asarray(capacity - rates[number] * BITS_PER_SYN)))
        if now != increase:
            base, increase, steps = float(rates[number]), now, 0
        # Multiply instead of adding repeatedly: rounding errors would shift the stage's end.
        steps += 1
        rates[number + 1] = base + steps * increase
    return rates


def time_to_fraction(
    fraction: Annotated[npt.ArrayLike, "Fraction of the capacity; from 0 to below 1"],
    capacity_bps: Capacity,
) -> Annotated[Value, "Time", Unit("s")]:
    """Time from 0 to a fraction of the capacity, without loss (DAIMD, section III, after Eq. 15).

    Growth is linear within a stage. It reaches 0.9 after 7.5 s on any link, and each further
    digit 9 takes another 7.5 s. `trajectory` may be 0.1 s faster per stage, as the step that ends a
    stage may equal up to ten steps of the next.

    Examples
    --------
    >>> [round(time_to_fraction(0.9, capacity), 9) for capacity in (1e8, 2.5e8, 1e9)]
    [7.5, 7.5, 7.5]
    """
    wanted = between("fraction", fraction, 0, 1)
    if np.any(wanted == 1):
        raise ArgumentError("fraction", "must be below 1: the capacity is never reached")
    capacity = positive("capacity_bps", capacity_bps)
    scale = 10 ** exponent(capacity)
    spare = capacity * (1 - wanted) / scale
    # In stage k a fraction 10^-(k+1) of 10^e takes 7.5/9 s.
    stage = np.maximum(0, np.floor(-np.log10(spare) + 1e-12))
    in_stage = np.where(stage > 0, 1.0, capacity / scale)
    before = np.where(stage > 0, capacity / scale - 0.1 + 0.9 * (stage - 1), 0.0)
    now = in_stage - spare * np.where(stage > 0, 10**stage, 1.0)
    return plain((before + now) * 10.0**TAU / BITS_PER_SYN * SYN)


def tcp_recovery_time(
    rate_bps: Annotated[BitRate, "Rate before the loss"],
    rtt: Rtt,
    packet_bytes: Annotated[Bytes, "Packet size that the rate includes"] = 1472,
) -> Annotated[Value, "Time", Unit("s")]:
    """Time for TCP to regain a rate after one loss: W/2 round-trip times (DAIMD, section III).

    The paper's 28 min at 1 Gb/s and 4 h 43 min at 10 Gb/s, 200 ms, are for packets of 1472 bytes:
    1500 bytes less the headers of IP and UDP.

    Examples
    --------
    >>> round(tcp_recovery_time(1e9, 0.2) / 60), round(tcp_recovery_time(1e10, 0.2) / 60)
    (28, 283)
    """
    rtt, size = positive("rtt", rtt), positive("packet_bytes", packet_bytes)
    window = positive("rate_bps", rate_bps) * rtt / (8 * size)
    return plain(window / 2 * rtt)


def expected_change(
    rate: RatePerSyn,
    p: Annotated[npt.ArrayLike, "Probability of a loss; from 0 to 1"],
    capacity_bps: Capacity,
) -> Change:
    """Mean change of the rate, with a decrease for each lost packet (DAIMD, Eq. 3).

    The x packets of a SYN are lost independently, so that P(0) = (1 - p)^x and the sum over
    P(i) (1 - (1 - β)^i) is 1 - (1 - βp)^x.

    Examples
    --------
    >>> round(expected_change(100.0, 0.001, 1e9), 3), round(rate_of_change(100.0, 0.001, 1e9), 3)
    (-0.2, -0.211)
    """
    x, p = non_negative("rate", rate), between("p", p, 0, 1)
    increase = np.asarray(increase_per_syn(x, capacity_bps))
    return plain((1 - p) ** x * increase - (1 - (1 - BETA * p) ** x) * x)


def rate_of_change(
    rate: RatePerSyn,
    p: Annotated[
        npt.ArrayLike,
        "Probability of a loss; from 0 to 1; that of a loss in a SYN, x·p, is at most 1",
    ],
    capacity_bps: Capacity,
) -> Change:
    """Change of the rate at a loss probability: (1 - xp)α(x) - βx²p (DAIMD, Eq. 4).

    Examples
    --------
    >>> abs(rate_of_change(equilibrium(1e-4, 1e9), 1e-4, 1e9)) < 1e-12
    True
    """
    x, p = non_negative("rate", rate), between("p", p, 0, 1)
    if np.any(x * p > 1):
        raise ArgumentError("p", "rate times p is the probability of a loss in a SYN: at most 1")
    increase = np.asarray(increase_per_syn(x, capacity_bps))
    return plain((1 - x * p) * increase - BETA * x**2 * p)


def marginal_utility(
    rate: RatePerSyn, capacity_bps: Capacity
) -> Annotated[Value, "Marginal utility", Unit("SYN/packet")]:
    """Loss probability at which a rate is constant: U'(x) = α/(xα + βx²) (DAIMD, Eq. 5, 6).

    Examples
    --------
    >>> round(marginal_utility(equilibrium(1e-4, 1e9), 1e9), 12)
    0.0001
    """
    x = positive("rate", rate)
    increase = np.asarray(increase_per_syn(x, capacity_bps))
    return plain(increase / (x * increase + BETA * x**2))


def utility(
    rate: Annotated[PacketsPerSyn, "Rate x; below the capacity"],
    capacity_bps: Capacity,
) -> Annotated[Value, "Utility; the constant of stage 0 is 0"]:
    """Integrate the utility U(x) = ∫ α/(xα + βx²) dx, stage by stage (DAIMD, Eq. 6).

    Within a stage it is ln(x/(α_k + βx)) plus a constant that makes U continuous.

    Examples
    --------
    >>> utility(800.0, 1e9) > utility(700.0, 1e9)
    True
    """
    x, capacity = np.broadcast_arrays(
        positive("rate", rate), positive("capacity_bps", capacity_bps)
    )
    if np.any(x * BITS_PER_SYN >= capacity):
        raise ArgumentError("rate", "must be below the capacity, where the increase ends")
    total = _log_utility(x, stage_increase(0, capacity))
    for stage in range(_STAGES):
        end = np.asarray(stage_end(stage, capacity))
        here, after = stage_increase(stage, capacity), stage_increase(stage + 1, capacity)
        beyond = x >= end
        join = np.where(beyond, end, x)
        change = _log_utility(join, here) - _log_utility(join, after)
        change += _log_utility(x, after) - _log_utility(x, here)
        total = total + np.where(beyond, change, 0.0)
    return plain(total)


def _increase(spare_bps: Array) -> Array:
    """Return the increase in packets per SYN for a spare capacity."""
    power = exponent(np.where(spare_bps > 0, spare_bps, 1.0)) - TAU
    return np.where(spare_bps > 0, 10**power, 0.0)


def _log_utility(x: Array, increase: Value) -> Array:
    """Return the integral of 1/x - β/(α + βx)."""
    return np.asarray(np.log(x / (increase + BETA * x)), dtype=float)


document(globals())
