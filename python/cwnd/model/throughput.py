"""Sending rate as a function of loss: square-root law, PFTK, GAIMD, SIMD, and DAIMD's Table 6.

Rates are in packets per second, the response functions' windows in packets (UDT's in packets per
control interval). ``p`` is the probability of a loss event as the formulas define it: window
reductions divided by packets sent, not lost packets divided by packets sent. ``beta`` is the
fraction given up on a loss. The GAIMD paper's β is the fraction kept: its (0.31, 7/8) is
``alpha=0.31, beta=1/8`` here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError
from cwnd.model.checks import MAX_STAGE, Value, fraction, plain, positive, probability, whole
from cwnd.model.daimd import exponent
from cwnd.model.quantities import (
    Beta,
    Capacity,
    GaimdBeta,
    Increase,
    Loss,
    Packets,
    Rate,
    Rtt,
    Seconds,
    Stage,
    Unit,
    document,
)

AckRatio: TypeAlias = Annotated[
    npt.ArrayLike, "Packets acknowledged by one ACK; 2 with delayed ACKs"
]
Formula: TypeAlias = Callable[..., Value]
MeanWindow: TypeAlias = Annotated[Value, "Mean window", Unit("packets")]
Rto: TypeAlias = Annotated[Seconds, "First timeout"]
TimePerPacket: TypeAlias = Annotated[Value, "Time per packet", Unit("s/packet")]

_MIN_LOSS = 1e-30
"""Smallest loss probability of the inverse, lower than on any link."""


def square_root(p: Loss, rtt: Rtt, b: AckRatio = 1) -> Rate:
    """Rate of TCP by the square-root law: √(3/(2bp))/RTT (Mathis et al. 1997; GAIMD, section 2.3).

    Examples
    --------
    >>> round(square_root(0.01, rtt=0.1), 2)
    122.47
    """
    p, rtt, b = probability("p", p), positive("rtt", rtt), positive("b", b)
    return plain(np.sqrt(3 / (2 * b * p)) / rtt)


def pftk(
    p: Loss,
    rtt: Rtt,
    rto: Rto,
    b: AckRatio = 1,
    max_window: Annotated[Packets, "Largest window; unlimited by default"] = np.inf,
) -> Rate:
    """Rate of TCP with timeouts, Padhye et al. 1998, approximate model (GAIMD, section 2.3).

    min(max_window/RTT, 1/(RTT√(2bp/3) + RTO·min(1, 3√(3bp/8))·p(1+32p²))).

    Examples
    --------
    >>> round(pftk(0.01, rtt=0.1, rto=0.4), 2)
    112.33
    """
    p, rtt, rto = probability("p", p), positive("rtt", rtt), positive("rto", rto)
    b, most = positive("b", b), positive("max_window", max_window, infinite=True)
    timeout = np.minimum(1, 3 * np.sqrt(3 * b * p / 8))
    rate = 1 / (rtt * np.sqrt(2 * b * p / 3) + rto * timeout * p * (1 + 32 * p**2))
    return plain(np.minimum(most / rtt, rate))


def gaimd(
    p: Loss,
    rtt: Rtt,
    rto: Rto,
    b: AckRatio = 1,
    alpha: Increase = 1,
    beta: GaimdBeta = 0.5,
) -> Rate:
    """Rate of AIMD(α, β) with timeouts: 1/(TD + TO) (GAIMD, Eq. 2).

    Examples
    --------
    >>> round(gaimd(0.01, rtt=0.1, rto=0.4, alpha=0.31, beta=1/8), 2)
    137.02
    """
    between_losses = gaimd_td(p, rtt, b, alpha, beta)
    in_timeouts = gaimd_to(p, rto, b, alpha, beta)
    return plain(1 / (between_losses + in_timeouts))


def gaimd_td(
    p: Loss,
    rtt: Rtt,
    b: AckRatio = 1,
    alpha: Increase = 1,
    beta: GaimdBeta = 0.5,
) -> TimePerPacket:
    """Mean time per packet in congestion avoidance: RTT√(2bβp/(α(2-β))) (GAIMD, Eq. 3).

    The rate without timeouts is its inverse.

    Examples
    --------
    >>> round(1 / gaimd_td(0.01, rtt=0.1), 2)
    122.47
    """
    p, rtt, b = probability("p", p), positive("rtt", rtt), positive("b", b)
    alpha, beta = positive("alpha", alpha), fraction("beta", beta)
    return plain(rtt * np.sqrt(2 * b * beta * p / (alpha * (2 - beta))))


def gaimd_to(
    p: Loss,
    rto: Rto,
    b: AckRatio = 1,
    alpha: Increase = 1,
    beta: GaimdBeta = 0.5,
) -> TimePerPacket:
    """Mean time per packet in timeouts: RTO·Q·p(1+32p²) (GAIMD, Eq. 4).

    Examples
    --------
    >>> round(gaimd_to(0.01, rto=0.4), 6)
    0.000737
    """
    rto, timeout = positive("rto", rto), gaimd_timeout_probability(p, b, alpha, beta)
    p = probability("p", p)
    return plain(rto * timeout * p * (1 + 32 * p**2))


def gaimd_timeout_probability(
    p: Loss,
    b: AckRatio = 1,
    alpha: Increase = 1,
    beta: GaimdBeta = 0.5,
) -> Annotated[Value, "Probability; from 0 to 1"]:
    """Probability that a loss is a timeout: min(1, 3√(β(2-β)bp/(2α))) (GAIMD, Q of section 2.3).

    Examples
    --------
    >>> round(gaimd_timeout_probability(0.01), 4), gaimd_timeout_probability(0.3)
    (0.1837, 1.0)
    """
    p, b = probability("p", p), positive("b", b)
    alpha, beta = positive("alpha", alpha), fraction("beta", beta)
    return plain(np.minimum(1, 3 * np.sqrt(beta * (2 - beta) * b * p / (2 * alpha))))


def simd_eq8(
    p: Loss,
    rtt: Rtt,
    rto: Rto,
    alpha: Increase = 1,
    beta: Beta = 0.5,
    max_window: Annotated[
        Packets, "Largest window; unlimited by default, 128 in the paper's runs"
    ] = np.inf,
) -> Rate:
    """Rate of AIMD(α, β) with timeouts and a largest window (SIMD, Eq. 8).

    The text prints p behind the radicals. Here p is under them, as in GAIMD's Eq. 2, which gives
    the TCP-friendly equation at (1, 1/2) as the text states.

    Examples
    --------
    >>> simd_eq8(0.00001, rtt=0.1, rto=0.4, max_window=128)
    1280.0
    """
    most = positive("max_window", max_window, infinite=True) / positive("rtt", rtt)
    return plain(np.minimum(most, gaimd(p, rtt, rto, 1, alpha, beta)))


def reno_response(p: Loss) -> MeanWindow:
    """Mean window of TCP Reno: 1.22 p^-0.5, as printed (DAIMD, Table 6).

    Examples
    --------
    >>> round(reno_response(0.01), 9)
    12.2
    """
    return plain(1.22 * probability("p", p) ** -0.5)


def scalable_response(p: Loss) -> MeanWindow:
    """Mean window of Scalable TCP: 0.8/p, as printed (DAIMD, Table 6).

    The constant matches the printed increase 0.1w; Kelly's constant 0.01 gives 0.08/p.

    Examples
    --------
    >>> scalable_response(0.01)
    80.0
    """
    return plain(0.8 / probability("p", p))


def highspeed_response(p: Loss) -> MeanWindow:
    """Mean window of HighSpeed TCP: 0.12 p^-0.835 (DAIMD, Table 6; RFC 3649, section 5).

    Examples
    --------
    >>> round(highspeed_response(1e-7))
    83981
    """
    return plain(0.12 * probability("p", p) ** -0.835)


def bic_response(p: Loss) -> MeanWindow:
    """Mean window of BIC TCP: 24.65 p^-0.5, as printed (DAIMD, Table 6).

    AIMD(32, 1/8) alone, which the paper calls close, gives 15.5 p^-0.5.

    Examples
    --------
    >>> round(bic_response(0.01), 9)
    246.5
    """
    return plain(24.65 * probability("p", p) ** -0.5)


def udt_response(
    p: Loss, capacity_bps: Capacity, stage: Stage = 0
) -> Annotated[Value, "Mean rate", Unit("packets/SYN")]:
    """Mean rate of UDT in one stage: 3·10^((-k+⌈log L⌉-9)/2) p^-0.5 (DAIMD, Eq. 12, Table 6).

    Packets have 1500 bytes. A SYN is 0.01 s: 100 times the rate is in packets per second.

    Examples
    --------
    >>> round(udt_response(0.0001, 1e9, stage=2), 6)
    30.0
    """
    p, stage = probability("p", p), whole("stage", stage, most=MAX_STAGE)
    return plain(3 * p**-0.5 * 10 ** ((exponent(capacity_bps) - stage - 9) / 2))


RESPONSES: Mapping[str, Formula] = {
    "reno": reno_response,
    "scalable": scalable_response,
    "highspeed": highspeed_response,
    "bic": bic_response,
    "udt": udt_response,
}
"""Response functions of DAIMD's Table 6."""

FORMULAS: Mapping[str, Formula] = {
    "square_root": square_root,
    "pftk": pftk,
    "gaimd": gaimd,
    "simd_eq8": simd_eq8,
    **{f"{name}_response": formula for name, formula in RESPONSES.items()},
}
"""Formulas by name; all decrease with p."""


def find_formula(
    name: Annotated[str, "Name of the argument, for errors"],
    formula: Annotated[str | Formula, "A name in `FORMULAS`, or a function of ``p``"],
) -> Formula:
    """Find a formula by name; return a function unchanged.

    Examples
    --------
    >>> find_formula("formula", "pftk") is pftk
    True
    """
    if not isinstance(formula, str):
        return formula
    if formula not in FORMULAS:
        raise ArgumentError(name, f"{formula!r} is not one of {', '.join(FORMULAS)}")
    return FORMULAS[formula]


def formula_arguments(
    formula: Annotated[Formula, "A function of ``p``, its first parameter"],
    given: Annotated[Mapping[str, npt.ArrayLike], "Arguments by name"],
) -> dict[str, npt.ArrayLike]:
    """Select the arguments that a formula has besides p.

    Raises
    ------
    ArgumentError
        A required argument is missing.

    Examples
    --------
    >>> formula_arguments(square_root, {"rtt": 0.1, "rto": 0.4})
    {'rtt': 0.1}
    """
    known = list(inspect.signature(formula).parameters.values())[1:]
    for parameter in known:
        if parameter.default is inspect.Parameter.empty and parameter.name not in given:
            raise ArgumentError(parameter.name, f"{formula.__name__} needs it")
    return {parameter.name: given[parameter.name] for parameter in known if parameter.name in given}


def loss_for_rate(
    rate: Annotated[
        npt.ArrayLike, "Rate in the formula's unit; packets/s, or packets for a response function"
    ],
    formula: Annotated[str | Formula, "A name in `FORMULAS`, or a decreasing function of ``p``"],
    **parameters: Annotated[
        npt.ArrayLike, "The formula's other arguments; broadcast with ``rate``"
    ],
) -> Annotated[Value, "Probability of a loss event; in double precision"]:
    """Loss probability at which a formula gives a rate: the inverse of a decreasing formula.

    Raises
    ------
    ArgumentError
        No loss probability gives that rate, or an argument is outside its domain.

    Examples
    --------
    >>> round(loss_for_rate(square_root(0.01, rtt=0.1), "square_root", rtt=0.1), 12)
    0.01
    """
    function = find_formula("formula", formula)
    taken = formula_arguments(function, parameters)
    for name in parameters:
        if name not in taken:
            raise ArgumentError(name, "the formula has no such parameter")
    rates = positive("rate", rate)
    shaped = np.broadcast_arrays(rates, *(np.asarray(v, dtype=float) for v in parameters.values()))
    losses = np.empty(shaped[0].shape)
    for place in np.ndindex(losses.shape):
        values = (float(array[place]) for array in shaped[1:])
        arguments = dict(zip(parameters, values, strict=True))
        losses[place] = _solve(float(shaped[0][place]), function, arguments)
    return plain(losses)


def _solve(rate: float, formula: Formula, arguments: dict[str, float]) -> float:
    """Find the logarithm of the loss probability by bracketing."""
    from scipy.optimize import brentq

    def excess(log_p: float) -> float:
        p = min(1.0, float(np.exp(log_p)))
        return float(np.log(formula(p, **arguments)) - np.log(rate))

    low, high = float(np.log(_MIN_LOSS)), 0.0
    # At the cap of a window the rate does not determine the loss.
    if excess(low) <= 0:
        most = float(formula(_MIN_LOSS, **arguments))
        raise ArgumentError("rate", f"must be below {most:.6g}, the formula's largest rate")
    if excess(high) > 0:
        least = float(formula(1.0, **arguments))
        raise ArgumentError("rate", f"must be at least {least:.6g}, the formula's value at p = 1")
    return float(np.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-15, maxiter=200)))


document(globals())
