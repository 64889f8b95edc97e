"""AIAD's analysis: rate estimates, equilibrium, linear stability (Xu & Ansari).

N flows share a forward link of C packets per second. ACKs, rho times as long as packets, return
over a link of rate gamma·C. On a loss a flow sets its window to (estimated rate) × (propagation
delay d). The estimate is φ, from the receiver's clock, or κ, from the arrival of ACKs. Both have
the same formulas with ``ratio``, the upper limit of the estimate divided by C: 1 for φ and
gamma/rho (the paper's α) for κ.

``p0`` is the loss probability p(y) at equilibrium and ``slope`` its derivative dp/dy with respect
to the total rate y, in seconds per packet. The paper's p₀' = ∂p/∂x has two readings, see `Moving`.
`cwnd.model.aiad_system` integrates the nonlinear system.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError
from cwnd.model.checks import (
    Array,
    Value,
    non_negative,
    plain,
    positive,
    probability,
    whole,
)
from cwnd.model.quantities import PacketRate, Rate, Seconds, Unit, Whole, document

CAPACITY = "Rate C of the link"
DELAY = "Round-trip propagation delay d"
FLOWS = "Number of flows, N"
LOSS_AT_CAPACITY = "Loss probability at a total rate of C"
RATIO = (
    "Upper limit of the estimate divided by C; 1 for AIAD_φ (case 1), gamma/rho for AIAD_κ (case 2)"
)

Capacity: TypeAlias = Annotated[PacketRate, CAPACITY]
Delay: TypeAlias = Annotated[Seconds, DELAY]
Eta: TypeAlias = Annotated[
    npt.ArrayLike, "Propagation delay divided by round-trip time, η; above 0, at most 1"
]
Finite: TypeAlias = Annotated[npt.ArrayLike, "Real, finite numbers"]
Flows: TypeAlias = Annotated[Whole, FLOWS]
ForwardCapacity: TypeAlias = Annotated[PacketRate, "Rate C of the forward link"]
LossAtRest: TypeAlias = Annotated[npt.ArrayLike, "Loss probability at the equilibrium"]
LossSlope: TypeAlias = Annotated[
    npt.ArrayLike, "Derivative dp/dy with respect to the total rate", Unit("s/packet")
]
Ratio: TypeAlias = Annotated[npt.ArrayLike, RATIO]

Moving: TypeAlias = Literal["one", "all"]
"""Meaning of x in p₀' = ∂p/∂x, with y = Σx: the rate of ``one`` flow while the others are constant,
as in the derivation of K₁, so that p₀' = dp/dy; or of ``all`` flows, which change together, so that
p₀' = N·dp/dy."""

MeaningOfSlope: TypeAlias = Annotated[
    Moving, "Meaning of p₀'; ``one`` for p₀' = dp/dy, or ``all`` for p₀' = N·dp/dy; see `Moving`"
]

_BRANCHES = (0, 1, -1, 2, -2)
"""Branches of Lambert's W that are searched for the rightmost root."""

_MAX_EXPONENT = 500.0
"""Exponent above which W is computed from its logarithm."""


def phi(
    rate: Annotated[PacketRate, "The flow's sending rate x; at most ``total``"],
    total: Annotated[
        PacketRate, "Sending rate y of all flows; at least C for a saturated link, as Eq. 2 assumes"
    ],
    capacity: ForwardCapacity,
) -> Rate:
    """Receiving rate of a flow through a saturated link: φ = C·x/y (AIAD, Eq. 2).

    Examples
    --------
    >>> phi(100, 500, 375)
    75.0
    """
    x, y = non_negative("rate", rate), positive("total", total)
    if np.any(x > y):
        raise ArgumentError("rate", "must not be above total")
    return plain(positive("capacity", capacity) * x / y)


def kappa(
    received: Annotated[PacketRate, "The flow's receiving rate φ; at most ``all_received``"],
    all_received: Annotated[
        PacketRate,
        "Receiving rate of all flows; times rho it is y_b, the rate of ACKs in packet lengths",
    ],
    capacity: ForwardCapacity,
    gamma: Annotated[npt.ArrayLike, "Rate of the reverse link divided by C"] = 1,
    rho: Annotated[npt.ArrayLike, "Length of an ACK divided by that of a packet"] = 0.04,
) -> Rate:
    """Rate estimate from ACKs through a saturated reverse link: κ = gamma·C·φ/y_b (AIAD, Eq. 3).

    With the paper's 40 and 1000 bytes the estimate is up to 25 times C.

    Examples
    --------
    >>> round(kappa(75, 375, 375), 9)
    1875.0
    """
    part, everything = non_negative("received", received), positive("all_received", all_received)
    if np.any(part > everything):
        raise ArgumentError("received", "must not be above all_received")
    gamma, rho = positive("gamma", gamma), positive("rho", rho)
    return plain(gamma * positive("capacity", capacity) * part / (rho * everything))


class Equilibrium(NamedTuple):
    """Equilibrium of equal flows: rates in packets per second, times in seconds."""

    rate: Annotated[Value, "Rate x₀ of a flow", Unit("packets/s")]
    estimate: Annotated[Value, "Estimate ratio·x₀", Unit("packets/s")]
    rtt: Annotated[Value, "Round-trip time τ", Unit("s")]
    queue_delay: Annotated[Value, "Queueing delay τ - d", Unit("s")]
    eta: Annotated[Value, "d/τ"]


def equilibrium(
    flows: Flows,
    capacity: Capacity,
    delay: Delay,
    p0: Annotated[npt.ArrayLike, LOSS_AT_CAPACITY],
    ratio: Ratio = 1,
) -> Equilibrium:
    """Equilibrium of equal flows with an infinite queue: x₀ = C/N, τ from ẋ = 0 (AIAD, Eq. 4).

    1/τ² = (1 - ratio·d/τ)·x₀²·p₀ always has one root, and ratio·η < 1 holds there with η = d/τ. For
    larger ratio·η, which Eq. 7 still allows, no equilibrium exists.

    Examples
    --------
    >>> rest = equilibrium(5, capacity=375, delay=0.05, p0=0.02)
    >>> rest.rate, round(rest.rtt, 4), round(rest.eta, 3)
    (75.0, 0.1225, 0.408)
    """
    x = positive("capacity", capacity) / whole("flows", flows, least=1)
    d, estimate = positive("delay", delay), positive("ratio", ratio)
    half = estimate * d / 2
    tau = half + np.sqrt(half**2 + 1 / (x**2 * probability("p0", p0)))
    return Equilibrium(plain(x), plain(estimate * x), plain(tau), plain(tau - d), plain(d / tau))


class Gains(NamedTuple):
    """K₁ and K₂ of δẋ(t) = K₁δx(t) + K₂δx(t - τ), per second."""

    k1: Annotated[Value, "K₁", Unit("1/s")]
    k2: Annotated[Value, "K₂", Unit("1/s")]


def gains(
    flows: Flows,
    capacity: Capacity,
    eta: Eta,
    p0: LossAtRest,
    slope: LossSlope,
    ratio: Ratio = 1,
    moving: MeaningOfSlope = "one",
) -> Gains:
    """Gains of the linear system of one flow (AIAD, Eq. 5, cases 1 and 2).

    K₁ = (ratio·η(N-1)/N² - 1/N)·C·p₀, K₂ = (ratio·η - 1)/N·C·(p₀ + p₀'C/N). K₁ is for one flow that
    changes while the others are constant. With ``moving="all"`` K₂ is for all flows together, as in
    `mode_gains`, which has the gains of the whole system. The queue, and so τ, is constant.

    Examples
    --------
    >>> [round(k, 4) for k in gains(5, 375, eta=0.4, p0=0.02, slope=0.0004)]
    [-1.02, -2.25]
    >>> [round(k, 4) for k in gains(5, 375, eta=0.4, p0=0.02, slope=0.0004, moving="all")]
    [-1.02, -7.65]
    """
    n, x, factor, p = _operating_point(flows, capacity, eta, p0, ratio)
    k1 = (factor * (n - 1) / n - 1) * x * p
    k2 = (factor - 1) * x * (p + x * _loss_slope(n, slope, moving))
    return Gains(plain(k1), plain(k2))


class ModeGains(NamedTuple):
    """Gains of the mode of all flows together, and of flows against each other, per second."""

    together_k1: Annotated[Value, "K₁ of all flows together", Unit("1/s")]
    together_k2: Annotated[Value, "K₂ of all flows together", Unit("1/s")]
    against_k1: Annotated[Value, "K₁ of flows against each other", Unit("1/s")]
    against_k2: Annotated[Value, "K₂ of flows against each other", Unit("1/s")]


def mode_gains(
    flows: Flows,
    capacity: Capacity,
    eta: Eta,
    p0: LossAtRest,
    slope: LossSlope,
    ratio: Ratio = 1,
) -> ModeGains:
    """Gains of the modes of N equal flows: the linear system of Eq. 4 with a constant queue.

    If all flows change together, an estimate C·x/y is constant and all contribute to the change of
    the loss: K₁ = -x₀p₀, K₂ = (ratio·η - 1)·x₀(p₀ + N·x₀·dp/dy). If they change against each other,
    the loss is constant: K₁ = K₂ = (ratio·η - 1)·x₀p₀. The system is stable if both modes are. With
    one flow, the first mode is the paper's system (`gains`).

    Examples
    --------
    >>> [round(k, 4) for k in mode_gains(5, 375, eta=0.4, p0=0.02, slope=0.0004)]
    [-1.5, -7.65, -0.9, -0.9]
    """
    n, x, factor, p = _operating_point(flows, capacity, eta, p0, ratio)
    against = (factor - 1) * x * p
    together = (factor - 1) * x * (p + x * _loss_slope(n, slope, "all"))
    return ModeGains(plain(-x * p), plain(together), plain(against), plain(against))


class Margins(NamedTuple):
    """Margins of Lemma 1: a condition holds if its margin is above 0."""

    first: Annotated[Value, "1 - b"]
    second: Annotated[Value, "-c - b"]
    third: Annotated[Value, "√(a₁² + b²) + c; NaN for b ≥ 1, where a₁ does not exist"]

    @property
    def stable(self) -> bool | npt.NDArray[np.bool_]:
        """Whether all roots have negative real parts, for each element."""
        good = np.all([np.asarray(margin) > 0 for margin in self], axis=0)
        return bool(good) if good.ndim == 0 else np.asarray(good)


def lemma1(b: Finite, c: Finite) -> Margins:
    """Test whether all roots of be^λ + c - λe^λ = 0 have Re λ < 0 (AIAD, Lemma 1; Johari & Tan).

    With b = τK₁ and c = τK₂: (i) b < 1, (ii) b < -c, (iii) -c < √(a₁² + b²), where a₁ in (0, π)
    solves a = b·tan a, π/2 for b = 0.

    Examples
    --------
    >>> margins = lemma1(0.0, -1.5)
    >>> margins.stable, round(margins.third, 4)
    (True, 0.0708)
    """
    b, c = _finite("b", b), _finite("c", c)
    low, high = np.zeros_like(b), np.full_like(b, np.pi)
    # a·cot a decreases from 1 to minus infinity on (0, π).
    for _ in range(80):
        middle = (low + high) / 2
        right = middle * np.cos(middle) > b * np.sin(middle)
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    root = np.where(b < 1, (low + high) / 2, np.nan)
    third = np.hypot(root, b) + c
    b, c = np.broadcast_arrays(b, c)
    return Margins(plain(1 - b), plain(-c - b), plain(third))


def rightmost_root(
    b: Annotated[npt.ArrayLike, "τK₁; finite and real"],
    c: Annotated[npt.ArrayLike, "τK₂; finite and real"],
) -> Annotated[
    complex | npt.NDArray[np.complex128],
    "λ = sτ with a non-negative imaginary part; a disturbance evolves as e^(λt/τ)",
]:
    """Find the root of be^λ + c - λe^λ = 0 (AIAD, Eq. 6) with the largest real part.

    (λ - b)e^(λ-b) = ce^(-b), so the roots are λ = b + W(ce^(-b)) over the branches of Lambert's W.

    Examples
    --------
    >>> root = rightmost_root(0.0, -1.5707963267948966)
    >>> abs(root.real) < 1e-12, round(root.imag, 6)
    (True, 1.570796)
    """
    first, second = np.broadcast_arrays(_finite("b", b), _finite("c", c))
    roots = np.stack([_root(first, second, branch) for branch in _BRANCHES])
    reals = np.where(np.isfinite(roots), roots.real, -np.inf)
    best = np.take_along_axis(roots, np.argmax(reals, axis=0)[np.newaxis], axis=0)[0]
    best = best.real + 1j * np.abs(best.imag)
    return complex(best) if first.ndim == 0 else best


def queue_delay_bound(
    flows: Flows,
    capacity: Capacity,
    p0: LossAtRest,
    slope: LossSlope,
    delay: Annotated[Seconds, "Round-trip propagation delay d; not needed for φ"] = 0,
    ratio: Ratio = 1,
    moving: MeaningOfSlope = "one",
) -> Annotated[Value, "Queueing delay below which the condition holds", Unit("s")]:
    """Queueing delay that suffices for condition (iii): πN/(2C(p₀ + p₀'C/N)) + (ratio - 1)d (AIAD).

    The bound uses the smallest value of √(a₁² + b²) for b < 0, π/2. With ``moving="all"`` and
    ratio·η < 1 a delay below the bound makes both modes of `mode_gains` stable, and so the linear
    system of all N flows. With ``"one"`` this holds in general for N = 1 only.

    Examples
    --------
    >>> round(queue_delay_bound(5, 375, p0=0.02, slope=0.0004), 4)
    0.4189
    >>> round(queue_delay_bound(5, 375, p0=0.02, slope=0.0004, moving="all"), 4)
    0.1232
    """
    n = whole("flows", flows, least=1)
    x = positive("capacity", capacity) / n
    loss = probability("p0", p0) + x * _loss_slope(n, slope, moving)
    least = (positive("ratio", ratio) - 1) * non_negative("delay", delay)
    return plain(np.pi / (2 * x * loss) + least)


def estimate_bound(
    flows: Flows,
    capacity: Capacity,
    p0: LossAtRest,
    slope: LossSlope,
    moving: MeaningOfSlope = "one",
) -> Annotated[Value, "Bound; above 1, with limit 1 for many flows"]:
    """Bound of ratio·η from condition (ii): (2N + Cp₀'/p₀)/(2N + Cp₀'/p₀ - 1) (AIAD, Eq. 7).

    An equilibrium needs ratio·η < 1: see `equilibrium`.

    Examples
    --------
    >>> round(estimate_bound(5, 375, p0=0.02, slope=0.0004), 4)
    1.0606
    """
    n = whole("flows", flows, least=1)
    sharpness = positive("capacity", capacity) * _loss_slope(n, slope, moving)
    top = 2 * n + sharpness / probability("p0", p0)
    return plain(top / (top - 1))


def buffer_bound(
    capacity: Capacity,
    delay: Delay,
    ratio: Annotated[npt.ArrayLike, "gamma/rho"] = 25,
) -> Annotated[Value, "Capacity of the queues of both directions together", Unit("packets")]:
    """Queue capacity that AIAD_κ needs with many flows: (ratio - 1)·C·d (AIAD, section IV).

    A ``ratio`` of 25, as in the paper's Q > 24Cd, is for equal link rates, packets of 1000 bytes
    and ACKs of 40 bytes.

    Examples
    --------
    >>> round(buffer_bound(375, 0.01), 9)
    90.0
    """
    room = positive("capacity", capacity) * positive("delay", delay)
    return plain(np.maximum(0, positive("ratio", ratio) - 1) * room)


def _operating_point(
    flows: npt.ArrayLike,
    capacity: npt.ArrayLike,
    eta: npt.ArrayLike,
    p0: npt.ArrayLike,
    ratio: npt.ArrayLike,
) -> tuple[Array, Array, Array, Array]:
    """Validate N, x₀, ratio·η and p₀."""
    n = whole("flows", flows, least=1)
    x = positive("capacity", capacity) / n
    return n, x, positive("ratio", ratio) * probability("eta", eta), probability("p0", p0)


def _loss_slope(flows: Array, slope: npt.ArrayLike, moving: Moving) -> Array:
    """Return p₀' of Eq. 5 in seconds per packet."""
    if moving not in get_args(Moving):
        raise ArgumentError("moving", f"must be one of {', '.join(get_args(Moving))}")
    read = non_negative("slope", slope)
    return flows * read if moving == "all" else read


def _finite(name: str, values: npt.ArrayLike) -> Array:
    """Validate finite numbers."""
    array = np.asarray(values, dtype=float)
    if not np.all(np.isfinite(array)):
        raise ArgumentError(name, "must be finite")
    return array


def _root(b: Array, c: Array, branch: int) -> npt.NDArray[np.complex128]:
    """Return b + W(ce^(-b)) of one branch."""
    from scipy.special import lambertw

    size = np.log(np.where(c == 0, 1.0, np.abs(c))) - b
    small = size < _MAX_EXPONENT
    sign = np.sign(c)
    with np.errstate(under="ignore", invalid="ignore"):
        direct = lambertw(sign * np.exp(np.where(small, size, 0.0)), branch)
    # W + log W = log(ce^(-b)) + 2πik, by Newton's method from its asymptote.
    log = np.where(small, 2 * _MAX_EXPONENT, size) + 1j * np.pi * ((sign < 0) + 2 * branch)
    large = log - np.log(log)
    for _ in range(6):
        large = large - (large + np.log(large) - log) * large / (large + 1)
    found = b + np.where(small, direct, large)
    return np.asarray(np.where(c == 0, b, found), dtype=np.complex128)


document(globals())
