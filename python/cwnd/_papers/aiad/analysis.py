"""Section III: the delayed system, its linear conditions on a grid, and its integration."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast, get_args

import numpy as np
import numpy.typing as npt

from cwnd._papers.aiad.networks import PACKET, RATE, RHO
from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import fact
from cwnd.model import aiad as model
from cwnd.model.aiad import Moving
from cwnd.model.aiad_system import System, integrate

if TYPE_CHECKING:
    from cwnd.model.aiad_system import Motion

PPS, RATIO = RATE / (8.0 * PACKET), 1 / RHO
"""Capacity in packets/s, and the letter's α."""
DELAY, LOSS = 0.104, 0.02
"""Propagation delay d in seconds and p₀ of the integrated systems."""
READINGS: tuple[Moving, ...] = get_args(Moving)
NEAR = 0.9
"""Queueing delay of the integrated systems, divided by its bound."""
KICK, DURATION = 0.01, 40.0
"""Relative disturbance at the start, and length of an integration in seconds."""


def sharpness(flows: int, moving: Moving, part: float = NEAR) -> float:
    """Return s of p(y) = p₀(y/C)^s for a queueing delay of ``part`` times its bound."""
    rest = model.equilibrium(flows, PPS, DELAY, LOSS)
    loss = part * np.pi / (2 * float(rest.rate) * float(rest.queue_delay))
    return (loss / LOSS - 1) * (flows if moving == "one" else 1)


@cache
def settle(flows: int, s: float, *, held: bool) -> Motion:
    """Integrate Eq. 4 for equal flows of AIAD_φ with rates `KICK` above the equilibrium."""
    system = System(PPS, (DELAY,) * flows, LOSS, s, held=held)
    rest = system.rest()
    return integrate(system, DURATION, rest.rates * (1 + KICK), rest.queue, step=DELAY / 3)


def left(motion: Motion) -> float:
    """Return the largest deviation from C in the last 5 s, divided by the initial disturbance."""
    late = motion.time >= motion.time[-1] - 5.0
    return float(np.abs(motion.rates[late].sum(axis=1) / PPS - 1).max() / KICK)


def with_buffer(ratio: float) -> Motion:
    """Integrate Eq. 4 for five flows with the letter's two buffers, from C and empty queues."""
    system = System(PPS, (DELAY,) * 5, LOSS, 2.0, ratio=ratio, buffer=40.0)
    return integrate(system, 2.0, PPS / 5, 0.0, step=2e-3)


def linear(moving: Moving) -> dict[str, npt.NDArray[np.bool_]]:
    """Evaluate the claims on Lemma 1 on a grid of N, p₀, s, η and d; true where a claim holds."""
    n = np.array([1, 2, 5, 20, 100, 200]).reshape(-1, 1, 1, 1, 1)
    p0 = np.logspace(-4, -0.5, 8).reshape(-1, 1, 1, 1)
    slope = np.array([0.0, 1.0, 5.0, 20.0, 100.0]).reshape(-1, 1, 1) * p0 / PPS
    eta = np.linspace(0.02, 0.98, 25).reshape(-1, 1)
    delay = np.array([0.01, 0.1, 0.5])
    tau = delay / eta
    point = (n, PPS, eta, p0, slope)
    loss = (n, PPS, p0, slope)
    phi = [tau * np.asarray(k) for k in model.gains(*point, moving=moving)]
    kappa = [tau * np.asarray(k) for k in model.gains(*point, RATIO, moving)]
    modes = [tau * np.asarray(k) for k in model.mode_gains(*point)]
    short = tau - delay < model.queue_delay_bound(*loss, moving=moving)
    kappa_short = tau - delay < model.queue_delay_bound(*loss, delay, RATIO, moving)
    below = eta * RATIO < model.estimate_bound(*loss, moving)
    root = np.asarray(model.rightmost_root(*phi)).real
    root_modes = [np.asarray(model.rightmost_root(*modes[i : i + 2])).real for i in (0, 2)]
    of_phi, of_kappa = model.lemma1(*phi), model.lemma1(*kappa)
    first, second, third = (np.asarray(margin) > 0 for margin in of_kappa)
    return {
        "conditions": (np.asarray(of_phi.first) > 0) & (np.asarray(of_phi.second) > 0),
        "roots": (root < 0)[short],
        "lemma": (root < 0) == of_phi.stable,
        "eq-7": second == below,
        "kappa-bound": third[kappa_short & first],
        "modes": np.maximum(*root_modes)[short] < 0,
    }


@exhibit("eq-4-7", cost=4)
def eq_4_7(lab: Lab) -> None:
    """Check the conditions on a grid, and integrate Eq. 4 just below the bound."""
    flows = lab.pick((1, 2, 5, 20), (1, 5))
    counts = np.array([1, 2, 5, 20, 50, 100, 200])
    moving = cast("Moving", lab.option("moving", "one"))
    for name, holds in linear(moving).items():
        words = f"at {np.count_nonzero(holds)} of {holds.size} points"
        lab.claim(name, fact(words, holds=bool(holds.all())))
    bound = model.estimate_bound(counts, PPS, LOSS, 2 * LOSS / PPS, moving)
    room = RATIO / np.asarray(bound) - 1
    words = f"{room[0]:.3g} Cd for one flow, {room[2]:.3g} for 5, {room[-1]:.4g} for 200"
    lab.claim("room", fact(words, holds=bool(np.all(np.diff(room) > 0))))
    for queue in ("constant", "varying"):
        found = {}
        for n in flows:
            s = sharpness(n, moving)
            found[f"N = {n}, s = {s:.3g}"] = left(settle(n, s, held=queue == "constant"))
        words = "; ".join(f"{case}: {100 * part:.2g} %" for case, part in found.items())
        lab.claim("settles", fact(words, holds=max(found.values()) < 0.1), queue=queue)
    lab.number("limit", float(model.buffer_bound(PPS, DELAY, RATIO)) / (PPS * DELAY))
    filled = {"κ": with_buffer(RATIO), "φ": with_buffer(1.0)}
    ends = {name: float(motion.rates[-1].sum()) / PPS for name, motion in filled.items()}
    words = ", ".join(f"{name} ends at {total:.3g} C" for name, total in ends.items())
    lab.claim("kappa-buffer", fact(words, holds=abs(ends["κ"] - 1) > 0.05 > abs(ends["φ"] - 1)))
    below = {f"p₀' by {m}": settle(5, sharpness(5, m), held=True) for m in READINGS}
    one = _courses("N = 5, 10 % below the bound, queue constant", below)
    one.x_limits, one.y_limits = (0.0, 10.0), (0.6, 1.1)
    named = {f"AIAD_{name}": motion for name, motion in filled.items()}
    two = _courses("N = 5, buffers of 20 packets", named)
    two.y_log = True
    lab.show(Figure("Linear stability of AIAD_φ, and Eq. 4 integrated", [_roots(), one, two]))


def _roots() -> Panel:
    """Draw the rightmost roots for five flows over the sharpness."""
    s = np.linspace(0.0, 100.0, 101)
    slope = s * LOSS / PPS
    rest = model.equilibrium(5, PPS, DELAY, LOSS)
    point = (5, PPS, rest.eta, LOSS, slope)
    pairs = {f"Eq. 5, p₀' by {m}": model.gains(*point, moving=m) for m in READINGS}
    modes = model.mode_gains(*point)
    pairs["all flows together"] = model.Gains(modes.together_k1, modes.together_k2)
    curves = []
    for name, gains in pairs.items():
        root = model.rightmost_root(*(rest.rtt * np.asarray(k) for k in gains))
        curves.append(Curve(name, s, np.asarray(root).real))
    for m in READINGS:
        at = [sharpness(5, m, 1.0)] * 2
        curves.append(Curve(f"bound, p₀' by {m}", at, [-0.5, 0.5], dashed=True))
    return Panel("sharpness s", "real part of λ", curves, "N = 5, rightmost root")


def _courses(title: str, motions: dict[str, Motion]) -> Panel:
    """Draw the total rate of integrated systems."""
    curves = [Curve(name, m.time, m.rates.sum(axis=1) / PPS) for name, m in motions.items()]
    return Panel("time, s", "total rate / C", curves, title)
