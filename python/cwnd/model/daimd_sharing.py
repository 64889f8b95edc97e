"""Sharing of a link by UDT, from DAIMD's analysis: with TCP, and with other capacity estimates.

L is the capacity of a link in bits per second; `cwnd.model.daimd` defines stages.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError
from cwnd.model.checks import MAX_STAGE, Value, between, plain, positive, whole
from cwnd.model.daimd import SYN, TAU, exponent
from cwnd.model.quantities import BitRate, Capacity, Rtt, Unit, Whole, document


def friendliness_ratio(
    rtt: Rtt,
    capacity_bps: Capacity,
    stage: Annotated[
        Whole, f"Stage k of UDT; 0, the first, is the most aggressive, {MAX_STAGE} the last"
    ] = 0,
) -> Annotated[Value, "Ratio; at most 1 if UDT's rate does not exceed TCP's"]:
    """Ratio of UDT's rate to TCP's at equal loss: RTT/SYN · 10^((e-k-9)/2) · √6 (DAIMD, Eq. 19).

    Examples
    --------
    >>> round(friendliness_ratio(0.1, 1e9), 2)
    24.49
    """
    power = exponent(capacity_bps) - whole("stage", stage, most=MAX_STAGE) - TAU
    return plain(positive("rtt", rtt) / SYN * 10 ** (power / 2) * np.sqrt(6))


def friendly_margin(
    rtt: Rtt, capacity_bps: Capacity
) -> Annotated[Value, "Margin; at least 1 if the condition holds"]:
    """Margin of the condition for UDT's friendliness: SYN²·10⁸/6 over RTT²·L (DAIMD, Eq. 20).

    The condition is sufficient, not necessary.

    Examples
    --------
    >>> round(friendly_margin(0.001, 1e8), 2), round(friendly_margin(0.1, 1e8), 4)
    (16.67, 0.0017)
    """
    rtt = positive("rtt", rtt)
    return plain(SYN**2 * 1e8 / 6 / (rtt**2 * positive("capacity_bps", capacity_bps)))


def estimate_error_ratio(
    error: Annotated[
        npt.ArrayLike, "Relative error ε of one flow's estimate; above -0.9 and below 9"
    ],
) -> Annotated[Value, "The larger rate divided by the smaller"]:
    """Largest ratio of two flows' rates if one estimates L as (1+ε)L (DAIMD, section VII).

    The capacity is a power of 10. The fourth condition is printed as -0.9 < ε ≤ 0.5; -0.5 is used
    instead, the third condition's bound.

    Examples
    --------
    >>> [round(estimate_error_ratio(e), 3) for e in (0.5, 2.0, -0.2, -0.8)]
    [1.702, 3.162, 1.0, 4.0]
    """
    error = between("error", error, -0.9, 9)
    if np.any((error == -0.9) | (error == 9)):
        raise ArgumentError("error", "must be above -0.9 and below 9")
    rest = 11 + 2 * np.sqrt(10)
    return plain(
        np.select(
            [error <= -0.5, error < 0, error < 1],
            [-error / (1 + error), np.ones_like(error), (rest + 9 * error) / (rest - 9 * error)],
            np.sqrt(10),
        )
    )


def least_rate(
    capacity_bps: Annotated[BitRate, "L₂; at most L₁"],
    wider_bps: Annotated[BitRate, "L₁"],
) -> Annotated[Value, "Rate", Unit("bit/s")]:
    """Lower bound of the rate of the flow with the narrower bottleneck: L₂/2 (DAIMD, section IV).

    Flows F1 and F2 share a link of L₁; F2 also crosses a link of L₂ < L₁. From Eq. 16 and 17:
    x₂ ≥ L₂ - (L₁ - x₁) = L₂ - x₂.

    Examples
    --------
    >>> least_rate(1e8, 2e8)
    50000000.0
    """
    narrow, wide = positive("capacity_bps", capacity_bps), positive("wider_bps", wider_bps)
    if np.any(narrow > wide):
        raise ArgumentError("capacity_bps", "must not be above wider_bps")
    return plain(np.broadcast_arrays(narrow / 2, wide)[0])


document(globals())
