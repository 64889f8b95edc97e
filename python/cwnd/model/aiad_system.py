"""AIAD's nonlinear delayed system (Xu & Ansari, Eq. 4), integrated over time.

    ẋᵢ(t) = 1/τᵢ² - [xᵢ(t) - ηᵢrᵢ(t)]·xᵢ(t - τᵢ)·p(y(t - τᵢ)),    q̇(t) = y(t) - C,

with τᵢ = dᵢ + q/C, ηᵢ = dᵢ/τᵢ, y = Σxᵢ and the estimate rᵢ = ratio·C·xᵢ/y: ``ratio`` is 1 for
AIAD_φ (Eq. 2) and gamma/rho for AIAD_κ (Eq. 3 with all that is received adding up to C).

The paper leaves p(y) open but for being non-decreasing. Here it is p(y) = min(1, p₀·(y/C)^s): the
usual smooth stand-in for a short queue, with p(C) = p₀ and a sharpness s = C·p'(C)/p₀. The fluid
loss max(0, 1 - C/y) would not do: it is 0 at y = C, where the system is to rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cwnd.errors import ArgumentError
from cwnd.model.checks import Array, non_negative, positive, probability, whole

_STEPS_PER_DELAY = 16
_MOST_STEPS = 2_000_000
_LEAST_TOTAL = 1e-12
"""Keeps x/y a number when nobody sends."""


@dataclass(frozen=True)
class System:
    """Flows of AIAD on one link.

    Parameters
    ----------
    capacity
        Rate C of the link in packets per second.
    delays
        Round-trip propagation delay of each flow in seconds.
    p0
        Loss probability where the flows send at C.
    sharpness
        s of p(y) = min(1, p₀(y/C)^s), at least 0.
    ratio
        1 for AIAD_φ, gamma/rho for AIAD_κ.
    buffer
        Places in the queue, in packets; endless by default.
    held
        Whether the queue, and so every delay, stays as it is at first: what the linear system of
        Eq. 5 assumes.

    Raises
    ------
    ArgumentError
        An argument outside its domain.

    Examples
    --------
    >>> system = System(capacity=100.0, delays=(0.1,), p0=0.01, sharpness=2.0)
    >>> round(system.rest().queue, 6)
    6.18034
    """

    capacity: float
    delays: tuple[float, ...]
    p0: float
    sharpness: float
    ratio: float = 1.0
    buffer: float = np.inf
    held: bool = False

    def __post_init__(self) -> None:
        """Check every argument."""
        positive("capacity", self.capacity)
        if not self.delays:
            raise ArgumentError("delays", "at least one flow is needed")
        positive("delays", np.asarray(self.delays))
        probability("p0", self.p0)
        non_negative("sharpness", self.sharpness)
        positive("ratio", self.ratio)
        positive("buffer", self.buffer, infinite=True)

    def rest(self) -> Rest:
        """Find where the system rests if its queue is endless: Σ xᵢ = C with every ẋᵢ = 0.

        Returns
        -------
        Rest
            Rates and queue. A queue above ``buffer`` says that there is no such state.
        """
        from scipy.optimize import brentq

        d = np.asarray(self.delays)

        # τ - ratio·d of each flow, beyond what is left of it in the shortest queue that all bear.
        if self.ratio > 1:
            apart, shortest = (self.ratio - 1) * (d.max() - d), (self.ratio - 1) * float(d.max())
        else:
            apart, shortest = (1 - self.ratio) * d, 0.0

        def rates(log_wait: float) -> Array:
            wait = float(np.exp(log_wait))
            return np.asarray(1 / np.sqrt(self.p0 * (d + shortest + wait) * (apart + wait)))

        def excess(log_wait: float) -> float:
            return float(np.log(rates(log_wait).sum() / self.capacity))

        low, high = -200.0, 60.0
        if excess(low) < 0:
            raise ArgumentError("ratio", "the flows rest below the capacity: there is no queue")
        log_wait = float(brentq(excess, low, high, xtol=1e-13, rtol=1e-15))
        queue = (shortest + float(np.exp(log_wait))) * self.capacity
        return Rest(rates(log_wait), queue)


class Rest(NamedTuple):
    """Where a system rests: rate of each flow in packets per second, queue in packets."""

    rates: Array
    queue: float


class Motion(NamedTuple):
    """How a system moved.

    ``time`` has the steps in seconds, ``rates`` one row a step and one column a flow in packets
    per second, ``queue`` packets. ``error`` is the largest difference from the same motion with
    twice the step, over the largest rate. The motion's own is a fifteenth of that while everything
    is smooth, more where a kink of the past, or an empty or full queue, falls within a step. An
    error near 1 says that the step is too long for so quick a system.
    """

    time: Array
    rates: Array
    queue: Array
    error: float


class Course(NamedTuple):
    """Time in seconds, all flows' rate in packets per second, queue in packets; and the error."""

    time: Array
    total: Array
    queue: Array
    error: float


def integrate(
    system: System,
    duration: float,
    rates: npt.ArrayLike,
    queue: float,
    *,
    step: float | None = None,
) -> Motion:
    """Integrate Eq. 4 over time, twice: the second time with half the step.

    The method of steps with the classical Runge-Kutta formula of fourth order; what was is
    interpolated by Hermite's cubics. Before 0 the rates were what they are at 0. SciPy's
    solvers take no delays.

    Parameters
    ----------
    system
        The flows and their link.
    duration
        How long, in seconds.
    rates
        Rate of each flow at first, in packets per second; one number for all alike.
    queue
        Queue at first, in packets.
    step
        Length of a coarse step in seconds, at most the shortest delay; a sixteenth of that by
        default.

    Returns
    -------
    Motion
        At the ends of the coarse steps, by the fine ones.

    Raises
    ------
    ArgumentError
        An argument outside its domain, or more steps than anyone would wait for.

    Examples
    --------
    >>> system = System(capacity=100.0, delays=(0.1,), p0=0.01, sharpness=2.0)
    >>> rest = system.rest()
    >>> motion = integrate(system, 10.0, rest.rates * 1.1, rest.queue)
    >>> round(motion.rates[-1, 0].item(), 2), motion.error < 1e-5
    (100.0, True)
    """
    shortest = min(system.delays)
    longest_step = shortest / _STEPS_PER_DELAY if step is None else float(positive("step", step))
    if longest_step > shortest:
        raise ArgumentError("step", f"must not be above the shortest delay, {shortest:g} s")
    length = float(positive("duration", duration))
    count = int(np.ceil(length / longest_step))
    if count > _MOST_STEPS:
        raise ArgumentError("duration", f"would take {count} steps; the most is {_MOST_STEPS}")
    start = np.array(np.broadcast_to(non_negative("rates", rates), (len(system.delays),)))
    filled = float(non_negative("queue", queue))
    if filled > system.buffer:
        raise ArgumentError("queue", "must not be above the buffer")
    coarse = _Solver(system, start, filled, length / count, count).run()
    fine = _Solver(system, start, filled, length / (2 * count), 2 * count).run()
    kept = fine.x[::2]
    error = float(np.abs(kept - coarse.x).max() / max(float(kept.max()), _LEAST_TOTAL))
    return Motion(np.linspace(0.0, length, count + 1), kept, fine.q[::2], error)


class _Solver:
    """One integration with a fixed step."""

    def __init__(self, system: System, start: Array, queue: float, step: float, count: int) -> None:
        self.system, self.step, self.count = system, step, count
        # Flows of one delay look back to one time.
        distinct, self._group = np.unique(np.asarray(system.delays), return_inverse=True)
        self._delays = [float(delay) for delay in distinct]
        # Rates and their slopes, side by side for the interpolation.
        self._past = np.zeros((count + 1, 2, start.size))
        self._rows = self._past.reshape(2 * (count + 1), start.size)
        self.q = np.zeros(count + 1)
        self._past[0, 0], self.q[0] = start, queue

    @property
    def x(self) -> Array:
        """Rates: one row a step."""
        return self._past[:, 0]

    def run(self) -> _Solver:
        """Take every step."""
        h = self.step
        for n in range(self.count):
            t, x, q = n * h, self._past[n, 0], float(self.q[n])
            k1, l1 = self._change(t, x, q)
            # The slope at t is known before anything looks back into the step that ends there.
            self._past[n, 1] = k1
            k2, l2 = self._change(t + h / 2, x + h / 2 * k1, q + h / 2 * l1)
            k3, l3 = self._change(t + h / 2, x + h / 2 * k2, q + h / 2 * l2)
            k4, l4 = self._change(t + h, x + h * k3, q + h * l3)
            np.maximum(0.0, x + h / 6 * (k1 + 2 * (k2 + k3) + k4), out=self._past[n + 1, 0])
            moved = q + h / 6 * (l1 + 2 * (l2 + l3) + l4)
            self.q[n + 1] = min(max(moved, 0.0), self.system.buffer)
        return self

    def _change(self, t: float, x: Array, q: float) -> tuple[Array, float]:
        """Evaluate Eq. 4."""
        system = self.system
        held = min(max(q, 0.0), system.buffer)
        wait = held / system.capacity
        total = max(float(np.add.reduce(x)), _LEAST_TOTAL)
        per_rate = system.ratio * system.capacity / total
        rows = [self._look_back(t - delay - wait) for delay in self._delays]
        if len(rows) == 1:
            delay, row = self._delays[0], rows[0]
            tau = delay + wait
            loss = self._loss(row)
            change = 1 / tau**2 - x * (1 - delay / tau * per_rate) * row * loss
        else:
            delays = np.array(self._delays)[self._group]
            taus = delays + wait
            losses = np.array([self._loss(row) for row in rows])[self._group]
            own = np.array(rows)[self._group, np.arange(x.size)]
            change = 1 / taus**2 - x * (1 - delays / taus * per_rate) * own * losses
        if system.held:
            return change, 0.0
        growth = total - system.capacity
        blocked = (held <= 0 and growth < 0) or (held >= system.buffer and growth > 0)
        return change, 0.0 if blocked else growth

    def _loss(self, rates: Array) -> float:
        """Return p(y)."""
        relative = max(float(np.add.reduce(rates)), 0.0) / self.system.capacity
        return min(1.0, float(self.system.p0 * relative**self.system.sharpness))

    def _look_back(self, time: float) -> Array:
        """Return every flow's rate at a time in the past."""
        if time <= 0:
            return np.asarray(self._rows[0])
        index = min(int(time / self.step), self.count - 1)
        u = time / self.step - index
        v = 1 - u
        weights = [
            (1 + 2 * u) * v * v,
            self.step * u * v * v,
            u * u * (3 - 2 * u),
            -self.step * u * u * v,
        ]
        return np.asarray(np.dot(weights, self._rows[2 * index : 2 * index + 4]))


def motion(
    flows: int,
    capacity: float,
    delay: float,
    p0: float,
    sharpness: float,
    ratio: float = 1,
    duration: float = 30,
    kick: float = 1.05,
) -> Course:
    """Follow equal flows that all start off their equilibrium together (AIAD, Eq. 4).

    Parameters
    ----------
    flows
        How many flows, N.
    capacity
        Rate C of the link in packets per second.
    delay
        Round-trip propagation delay d in seconds.
    p0
        Loss probability where the flows send at C.
    sharpness
        s of p(y) = min(1, p₀(y/C)^s).
    ratio
        1 for AIAD_φ, gamma/rho for AIAD_κ.
    duration
        How long, in seconds.
    kick
        Rate at first over the rate at equilibrium.

    Returns
    -------
    Course
        Time in seconds, all flows' rate in packets per second, queue in packets, and the relative
        error by step halving.

    Raises
    ------
    ArgumentError
        An argument outside its domain.

    Examples
    --------
    >>> course = motion(1, capacity=100, delay=0.1, p0=0.01, sharpness=2, duration=10)
    >>> round(course.total[-1].item(), 2)
    100.0
    """
    delays = (float(positive("delay", delay)),) * int(whole("flows", flows, least=1))
    system = System(capacity, delays, p0, sharpness, ratio)
    rest = system.rest()
    moved = integrate(system, duration, rest.rates * positive("kick", kick), rest.queue)
    return Course(moved.time, moved.rates.sum(axis=1), moved.queue, moved.error)
