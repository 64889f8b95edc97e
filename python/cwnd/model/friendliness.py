"""TCP-friendliness: the increase for a given decrease, and ratios of rates.

``beta`` is the fraction given up on a loss, 1/2 for TCP. Increases are in packets per round-trip
time.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError
from cwnd.model.checks import Value, fraction, non_negative, plain, positive, probability
from cwnd.model.quantities import Beta, GaimdBeta, Loss, Packets, Unit, document
from cwnd.model.throughput import Formula, find_formula, formula_arguments

Exponent: TypeAlias = Annotated[
    npt.ArrayLike, "The law's exponents, at least 0; (0, 1) is AIMD, (1, 0) IIAD, (1/2, 1/2) SQRT"
]
FriendlyExponent: TypeAlias = Annotated[
    npt.ArrayLike, "The law's exponents, at least 0, whose sum is 1"
]
FriendlyIncrease: TypeAlias = Annotated[Value, "Increase", Unit("packets/RTT")]
LossWindow: TypeAlias = Annotated[Packets, "Window at the last loss"]
SimdAlpha: TypeAlias = Annotated[
    Value,
    "SIMD's α; in t round-trip times the window grows by α²t²/4 packets",
    Unit("√packets/RTT"),
]


def aimd_alpha(beta: Beta) -> FriendlyIncrease:
    """Friendly increase of AIMD without timeouts: 3β/(2-β) (SIMD, section 2; Floyd et al. 2000).

    Examples
    --------
    >>> aimd_alpha(0.5), round(aimd_alpha(1/16), 4)
    (1.0, 0.0968)
    """
    beta = fraction("beta", beta)
    return plain(3 * beta / (2 - beta))


def aimd_alpha_timeouts(beta: GaimdBeta) -> FriendlyIncrease:
    """Friendly increase of AIMD with timeouts: 4(1-(1-β)²)/3 (GAIMD, section 1).

    Examples
    --------
    >>> aimd_alpha_timeouts(0.5), aimd_alpha_timeouts(1/8)
    (1.0, 0.3125)
    """
    beta = fraction("beta", beta)
    return plain(4 * beta * (2 - beta) / 3)


def simd_alpha_periodic(beta: Beta, max_window: LossWindow) -> SimdAlpha:
    """Friendly α of SIMD for periodic losses: 3√β/((1-2β/3)√W) (SIMD, Eq. 5).

    Examples
    --------
    >>> round(simd_alpha_periodic(1/16, 100), 5)
    0.07826
    """
    beta, window = fraction("beta", beta), positive("max_window", max_window)
    return plain(3 * np.sqrt(beta) / ((1 - 2 * beta / 3) * np.sqrt(window)))


def simd_alpha(beta: Beta, max_window: LossWindow) -> SimdAlpha:
    """Friendly α of SIMD for random losses: 3√β/((1-2β/3)√(2W)) (SIMD, Eq. 3).

    Examples
    --------
    >>> round(simd_alpha(1/16, 100), 5)
    0.05534
    """
    return plain(simd_alpha_periodic(beta, max_window) / np.sqrt(2))


def binomial_is_friendly(k: Exponent, l: Exponent) -> bool | npt.NDArray[np.bool_]:  # noqa: E741
    """Test whether a binomial law can be TCP-friendly: k + l = 1 (Bansal & Balakrishnan 2001).

    The window grows by α/wᵏ per round-trip time and falls by βwˡ on a loss. Its mean is
    proportional to p^(-1/(k+l+1)), so that only k + l = 1 gives TCP's exponent of 1/2.

    Examples
    --------
    >>> binomial_is_friendly(1, 0), binomial_is_friendly(1, 1)
    (True, False)
    """
    total = np.asarray(non_negative("k", k) + non_negative("l", l))
    friendly = np.isclose(total, 1, rtol=0, atol=1e-12)
    return bool(friendly) if total.ndim == 0 else np.asarray(friendly)


def binomial_alpha(
    beta: Annotated[Packets, "Packets given up on a loss; βwˡ, less than the window"],
    k: FriendlyExponent,
    l: FriendlyExponent,  # noqa: E741
    max_window: Annotated[
        Packets, "Window at a loss; the limit of large windows by default"
    ] = np.inf,
) -> Annotated[Value, "α; the window grows by α/wᵏ packets per round-trip time"]:
    """Friendly α of a binomial law with k + l = 1, for periodic losses.

    Between losses wᵏ dw = α dt takes the window from W - βWˡ to W. With T round-trip times and X
    packets between losses, the square-root law at p = 1/X, X/T = √(3X/2), gives

        α = 3/2 · (k+2)/(k+1)² · (Wᵏ⁺¹ - w₀ᵏ⁺¹)²/(Wᵏ⁺² - w₀ᵏ⁺²),   w₀ = W - βWˡ.

    This is 3β/(2-β) for AIMD at any W, and 3β/2 in the limit of large W for every other law: for
    IIAD β = 2/3 requires α = 1, as in the SIMD paper's runs.

    Examples
    --------
    >>> binomial_alpha(2/3, 1, 0), binomial_alpha(0.5, 0, 1)
    (1.0, 1.0)
    """
    beta, window = positive("beta", beta), positive("max_window", max_window, infinite=True)
    if not np.all(binomial_is_friendly(k, l)):
        raise ArgumentError("k", "k and l must add up to 1 for a TCP-friendly law")
    k, l = non_negative("k", k), non_negative("l", l)  # noqa: E741
    limitless = np.isinf(window)
    scaled = np.where(limitless, 1.0, window)
    # Fraction of the peak that a loss takes.
    lost = beta * np.where(limitless & (l < 1), 0.0, scaled ** (l - 1))
    if np.any(lost >= 1):
        raise ArgumentError("beta", "a loss would take the whole window")
    # log1p and expm1 avoid cancellation in 1 - kept^n.
    kept = np.log1p(-lost)
    first, second = -np.expm1((k + 1) * kept), -np.expm1((k + 2) * kept)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = 1.5 * (k + 2) / (k + 1) ** 2 * first**2 / second * scaled**k
    return plain(np.where(lost == 0, 1.5 * beta, exact))


def friendliness_ratio(
    first: Annotated[
        str | Formula,
        "Numerator; a name in `cwnd.model.throughput.FORMULAS`, or a function of ``p``",
    ],
    second: Annotated[str | Formula, "Denominator; a name or a function as for ``first``"],
    p: Loss,
    **parameters: Annotated[npt.ArrayLike, "Other arguments of the formulas"],
) -> Annotated[Value, "Ratio; 1 for equal rates"]:
    """Ratio of the rates of two formulas at equal loss.

    A formula receives the parameters that it has; one that neither has is an error. To pass
    different values to both, give functions.

    Examples
    --------
    >>> round(friendliness_ratio(
    ...     "gaimd", "pftk", 0.01, rtt=0.1, rto=0.4, alpha=0.3125, beta=1/8), 3)
    1.225
    """
    loss = probability("p", p)
    functions = (find_formula("first", first), find_formula("second", second))
    taken = [formula_arguments(function, parameters) for function in functions]
    for name in parameters:
        if not any(name in arguments for arguments in taken):
            raise ArgumentError(name, "neither formula has such a parameter")
    first_rate, second_rate = (
        np.asarray(function(loss, **arguments), dtype=float)
        for function, arguments in zip(functions, taken, strict=True)
    )
    return plain(first_rate / second_rate)


document(globals())
