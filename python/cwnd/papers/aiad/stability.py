"""The letter on AIAD: its linear conditions on a grid, and the nonlinear system beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd.model import aiad as model
from cwnd.model.aiad_system import System, integrate
from cwnd.papers.aiad_networks import PACKET, RATE, RHO
from cwnd.papers.claims import fact
from cwnd.papers.figure import Curve, Panel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.model.aiad_system import Motion
    from cwnd.papers.claims import Claim
    from cwnd.records import Series

Moved: TypeAlias = "Mapping[tuple[int, float, bool], Motion]"
"""How the system moved, by N, s and whether the queue was held."""

PPS, DELAY, LOSS, RATIO = RATE / (8.0 * PACKET), 0.104, 0.02, 1 / RHO
"""Packets/s of the bottleneck, d in seconds, p₀ where no other is said, and the letter's α."""


class Grid(NamedTuple):
    """Operating points with the margins of Lemma 1, each for κ or φ."""

    phi: model.Margins
    phi_root: Series
    phi_short: npt.NDArray[np.bool_]
    kappa: model.Margins
    kappa_eq_7: npt.NDArray[np.bool_]
    kappa_short: npt.NDArray[np.bool_]


def stability_grid() -> Grid:
    """Evaluate Lemma 1 on a grid of N, p₀, sharpness s, η and d; the short ones are within bounds.

    Returns
    -------
    Grid
        Five axes each.
    """
    n = np.array([1, 2, 5, 20, 100, 200]).reshape(-1, 1, 1, 1, 1)
    p0 = np.logspace(-4, -0.5, 8).reshape(-1, 1, 1, 1)
    slope = np.array([0.0, 1.0, 5.0, 20.0, 100.0]).reshape(-1, 1, 1) * p0 / PPS
    eta = np.linspace(0.02, 0.98, 25).reshape(-1, 1)
    delay = np.array([0.01, 0.1, 0.5])
    tau = delay / eta

    def scaled(ratio: float) -> tuple[Series, Series]:
        k1, k2 = model.gains(n, PPS, eta, p0, slope, ratio)
        return tau * k1, tau * k2

    def short(ratio: float) -> npt.NDArray[np.bool_]:
        bound = model.queue_delay_bound(n, PPS, p0, slope, delay, ratio)
        return np.asarray(tau - delay < bound)

    root = np.asarray(model.rightmost_root(*scaled(1.0))).real
    below = RATIO * eta < model.estimate_bound(n, PPS, p0, slope)
    kappa = model.lemma1(*scaled(RATIO))
    return Grid(
        model.lemma1(*scaled(1.0)),
        root,
        short(1.0),
        kappa,
        np.broadcast_to(below, np.shape(kappa.second)),
        short(RATIO),
    )


def lemma_claims(grid: Grid) -> list[Claim]:
    """Hold what is said of Lemma 1's conditions in cases 1 and 2.

    Parameters
    ----------
    grid
        Of `stability_grid`.
    """
    good = [np.asarray(margin) > 0 for margin in grid.phi]
    total = good[0].size

    def count(what: npt.NDArray[np.bool_]) -> str:
        return f"{np.count_nonzero(what)} of {what.size}"

    phi_two = good[0] & good[1]
    settled = grid.phi_root[grid.phi_short] < 0
    agree = np.asarray(grid.phi.stable) == (grid.phi_root < 0)
    seven = (np.asarray(grid.kappa.second) > 0) == grid.kappa_eq_7
    third = np.asarray(grid.kappa.third)[grid.kappa_short & (np.asarray(grid.kappa.first) > 0)] > 0
    return [
        fact(
            "AIAD_φ satisfies conditions (i) and (ii)",
            count(phi_two),
            f"holds if it does at all {total} points of the grid",
            holds=bool(phi_two.all()),
            published="regardless of the delay",
        ),
        fact(
            "AIAD_φ: all roots to the left where the queueing delay is below its bound",
            count(settled),
            "holds if the rightmost root of Eq. 6 is to the left at all such points",
            holds=bool(settled.all()),
            published="locally stable",
        ),
        fact(
            "Lemma 1 and the rightmost root of Eq. 6 agree",
            count(agree),
            f"holds if they do at all {total} points",
            holds=bool(agree.all()),
            published="if and only if",
        ),
        fact(
            "AIAD_κ: condition (ii) is Eq. 7",
            count(seven),
            f"holds if both say the same at all {total} points",
            holds=bool(seven.all()),
            published="Condition (ii) requires Eq. 7",
        ),
        fact(
            "AIAD_κ: condition (iii) where the queueing delay is below its bound",
            count(third),
            "holds if it is met at all such points with condition (i)",
            holds=bool(third.all()),
            published="Condition (iii) requires it",
        ),
    ]


def settle(flows: int, sharpness: float, *, held: bool) -> Motion:
    """Kick equal flows of AIAD_φ by 5 % and follow Eq. 4 for 20 s.

    Parameters
    ----------
    flows
        How many, N.
    sharpness
        s of p(y) = p₀(y/C)^s.
    held
        Whether the queue stays as it is.
    """
    system = System(PPS, (DELAY,) * flows, LOSS, sharpness, held=held)
    rest = system.rest()
    return integrate(system, 20.0, rest.rates * 1.05, rest.queue, step=DELAY / 3)


def settling_claim(moved: Moved, *, held: bool) -> Claim:
    """Hold the linear bound against the nonlinear system.

    Parameters
    ----------
    moved
        What `settle` gives.
    held
        Which of it.
    """
    words, fine = [], []
    for (n, s, still), motion in moved.items():
        if still == held:
            rest = model.equilibrium(n, PPS, DELAY, LOSS)
            bound = model.queue_delay_bound(n, PPS, LOSS, s * LOSS / PPS)
            if rest.queue_delay < bound:
                late = motion.time >= motion.time[-1] - 2.0
                off = float(np.abs(motion.rates[late].sum(axis=1) / PPS - 1).max())
                fine.append(off < 0.005)
                words.append(f"N = {n}, s = {s:g}: {100 * off:.2g} % off")
    return fact(
        "AIAD_φ, nonlinear, returns to rest below the bound of the queueing delay, queue "
        + ("held" if held else "free"),
        "; ".join(words),
        "holds if the total stays within 0.5 % of C from 18 to 20 s in all cases below the bound",
        holds=all(fine),
        published="locally stable",
        why=TOGETHER,
    )


def kappa_claim(filled: Mapping[str, Motion]) -> Claim:
    """Hold what is said of AIAD_κ with a fixed buffer.

    Parameters
    ----------
    filled
        What `with_buffer` gives for κ and for φ.
    """
    totals = {name: float(motion.rates[-1].sum()) / PPS for name, motion in filled.items()}
    return fact(
        "five flows of AIAD_κ, nonlinear, two buffers of 20 packets, do not rest at C",
        ", ".join(f"{name} ends at {total:.3g} C" for name, total in totals.items()),
        "holds if κ's total ends more than 5 % from C",
        holds=abs(totals["κ"] - 1) > 0.05,
        published="fixed buffer size would lead to instability as the number of flows grows",
    )


def with_buffer(ratio: float) -> Motion:
    """Follow five flows with the letter's two buffers for 2 s, from C and empty ones on.

    Parameters
    ----------
    ratio
        1 for φ, `RATIO` for κ.
    """
    system = System(PPS, (DELAY,) * 5, LOSS, 2.0, ratio=ratio, buffer=40.0)
    return integrate(system, 2.0, PPS / 5, 0.0, step=2e-3)


def panels(moved: Moved, filled: Mapping[str, Motion]) -> list[Panel]:
    """Draw the roots against the bound, and the nonlinear system in time.

    Parameters
    ----------
    moved
        What `settle` gives, by N, s and whether the queue is held.
    filled
        What `with_buffer` gives for κ and for φ.
    """
    sharpness = np.linspace(0.0, 120.0, 121)
    slope = sharpness * LOSS / PPS
    rest = model.equilibrium(5, PPS, DELAY, LOSS)
    tau = float(rest.rtt)
    over = rest.queue_delay / np.asarray(model.queue_delay_bound(5, PPS, LOSS, slope))
    letters = model.gains(5, PPS, rest.eta, LOSS, slope)
    modes = model.mode_gains(5, PPS, rest.eta, LOSS, slope)
    pairs = {
        "one flow moves (letter)": (letters.k1, letters.k2),
        "all flows move together": (modes.together_k1, modes.together_k2),
    }
    curves = [
        Curve(name, over, np.asarray(model.rightmost_root(*(tau * np.asarray(k) for k in ks))).real)
        for name, ks in pairs.items()
    ]
    curves.append(Curve("stable below", over, np.zeros_like(over), dashed=True))
    courses = [
        Curve(f"s = {s:g}", motion.time, motion.rates.sum(axis=1) / PPS)
        for (n, s, held), motion in moved.items()
        if n == 5 and held
    ]
    fills = [
        Curve(f"AIAD_{name}", motion.time, motion.rates.sum(axis=1) / PPS)
        for name, motion in filled.items()
    ]
    kicked = "φ, N = 5, Eq. 4 kicked by 5 %"
    return [
        Panel("queueing delay / its bound", "real part of λ", curves, "N = 5, rightmost root"),
        Panel("time, s", "total rate / C", courses, kicked, y_limits=(0.6, 1.1)),
        Panel(
            "time, s", "total rate / C", fills, "N = 5, Eq. 4, buffers of 20 packets", y_log=True
        ),
    ]


TOGETHER = (
    "The letter's K₁ and K₂ are those of one flow that moves while the others stay. When all move "
    "together the loss answers N times as strongly, p₀ + N x₀ p₀' in place of p₀ + x₀ p₀': with a "
    "sharp p(y) that mode is unstable below the letter's bound."
)
"""Why the linear bound does not hold for more than one flow."""
