"""Numerical integration of AIAD's nonlinear delayed system (Xu & Ansari, Eq. 4).

    ẋᵢ(t) = 1/τᵢ² - [xᵢ(t) - ηᵢrᵢ(t)]·xᵢ(t - τᵢ)·p(y(t - τᵢ)),    q̇(t) = y(t) - C,

with τᵢ = dᵢ + q/C, ηᵢ = dᵢ/τᵢ, y = Σxᵢ and the estimate rᵢ = ratio·C·xᵢ/y: ``ratio`` is 1 for
AIAD_φ (Eq. 2) and gamma/rho for AIAD_κ (Eq. 3 with a total receiving rate of C).

The paper requires only that p(y) is non-decreasing. Here p(y) = min(1, p₀·(y/C)^s), the usual
smooth approximation of a short queue, with p(C) = p₀ and sharpness s = C·p'(C)/p₀. The fluid
loss max(0, 1 - C/y) is unsuitable: it is 0 at y = C, where the equilibrium must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from cwnd.errors import ArgumentError
from cwnd.model.aiad import CAPACITY, DELAY, FLOWS, LOSS_AT_CAPACITY, RATIO
from cwnd.model.checks import Array, non_negative, positive, probability, whole
from cwnd.model.quantities import PacketRate, Unit, document

Duration: TypeAlias = Annotated[float, "Duration", Unit("s")]
OneCapacity: TypeAlias = Annotated[float, CAPACITY, Unit("packets/s")]
OneLoss: TypeAlias = Annotated[float, LOSS_AT_CAPACITY]
OneRatio: TypeAlias = Annotated[float, RATIO]
Sharpness: TypeAlias = Annotated[float, "s of p(y) = min(1, p₀(y/C)^s); at least 0"]

_STEPS_PER_DELAY = 16
_MAX_STEPS = 2_000_000
_MAX_CELLS = 10_000_000
"""Largest number of steps times flows, each of which takes 64 bytes."""
MAX_FLOWS = 1000
"""Largest number of equal flows."""
_MIN_TOTAL = 1e-12
"""Lower bound of the total rate, which avoids 0/0 if no flow sends."""


@dataclass(frozen=True)
class System:
    """AIAD flows on one link.

    Examples
    --------
    >>> system = System(capacity=100.0, delays=(0.1,), p0=0.01, sharpness=2.0)
    >>> round(system.rest().queue, 6)
    6.18034
    """

    capacity: OneCapacity
    delays: Annotated[tuple[float, ...], "Round-trip propagation delay of each flow", Unit("s")]
    p0: OneLoss
    sharpness: Sharpness
    ratio: OneRatio = 1.0
    buffer: Annotated[float, "Capacity of the queue; infinite by default", Unit("packets")] = np.inf
    held: Annotated[bool, "Whether the queue and every delay stay constant, as in Eq. 5"] = False

    def __post_init__(self) -> None:
        """Validate every argument."""
        positive("capacity", self.capacity)
        if not self.delays:
            raise ArgumentError("delays", "at least one flow is needed")
        positive("delays", np.asarray(self.delays))
        probability("p0", self.p0)
        non_negative("sharpness", self.sharpness)
        positive("ratio", self.ratio)
        positive("buffer", self.buffer, infinite=True)

    def rest(self) -> Rest:
        """Find the equilibrium for an infinite queue: Σ xᵢ = C with every ẋᵢ = 0.

        If the queue is above ``buffer``, there is no such equilibrium.
        """
        from scipy.optimize import brentq

        d = np.asarray(self.delays)

        # τ - ratio·d of each flow, minus its value at the shortest queue valid for all flows.
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
            raise ArgumentError("ratio", "the equilibrium is below the capacity: it has no queue")
        if excess(high) > 0:
            raise ArgumentError("capacity", "the equilibrium is above the capacity at any queue")
        log_wait = float(brentq(excess, low, high, xtol=1e-13, rtol=1e-15))
        queue = (shortest + float(np.exp(log_wait))) * self.capacity
        return Rest(rates(log_wait), queue)


class Rest(NamedTuple):
    """Equilibrium of a system."""

    rates: Annotated[Array, "Rate of each flow", Unit("packets/s")]
    queue: Annotated[float, "Queue", Unit("packets")]


class Motion(NamedTuple):
    """Solution of a system over time.

    The actual error is a fifteenth of ``error`` for a smooth solution, and larger if a kink of the
    history, or an empty or full queue, is within a step. An ``error`` near 1 means that the step is
    too long for the system.
    """

    time: Annotated[Array, "Ends of the coarse steps", Unit("s")]
    rates: Annotated[Array, "Rates; one row per step and one column per flow", Unit("packets/s")]
    queue: Annotated[Array, "Queue", Unit("packets")]
    error: Annotated[
        float,
        "Largest difference from the solution with twice the step, relative to the largest rate",
    ]


class Course(NamedTuple):
    """Solution for equal flows over time."""

    time: Annotated[Array, "Time", Unit("s")]
    total: Annotated[Array, "Rate of all flows", Unit("packets/s")]
    queue: Annotated[Array, "Queue", Unit("packets")]
    error: Annotated[float, "Relative error by step halving"]


def integrate(
    system: Annotated[System, "Flows and link"],
    duration: Duration,
    rates: Annotated[PacketRate, "Initial rate of each flow; one number for equal rates"],
    queue: Annotated[float, "Initial queue; at most the buffer", Unit("packets")],
    *,
    step: Annotated[
        float | None,
        "Length of a coarse step; at most the shortest delay; 1/16 of it by default",
        Unit("s"),
    ] = None,
) -> Motion:
    """Integrate Eq. 4 over time, and again with half the step to estimate the error.

    Method of steps with the classical fourth-order Runge-Kutta formula; the history is interpolated
    by cubic Hermite polynomials. Before 0 the rates are constant. The result has the ends of the
    coarse steps, computed with the fine steps. SciPy's solvers do not support delays.

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
    count = np.ceil(length / longest_step)
    most = min(_MAX_STEPS, _MAX_CELLS // len(system.delays))
    if count > most:
        raise ArgumentError("duration", f"needs {count} steps; the limit is {most}")
    count = int(count)
    start = np.array(np.broadcast_to(non_negative("rates", rates), (len(system.delays),)))
    filled = float(non_negative("queue", queue))
    if filled > system.buffer:
        raise ArgumentError("queue", "must not be above the buffer")
    coarse = _Solver(system, start, filled, length / count, count).run()
    fine = _Solver(system, start, filled, length / (2 * count), 2 * count).run()
    kept = fine.x[::2]
    error = float(np.abs(kept - coarse.x).max() / max(float(kept.max()), _MIN_TOTAL))
    return Motion(np.linspace(0.0, length, count + 1), kept, fine.q[::2], error)


class _Solver:
    """One integration with a fixed step."""

    def __init__(self, system: System, start: Array, queue: float, step: float, count: int) -> None:
        self.system, self.step, self.count = system, step, count
        # Flows with equal delays share one lookup of the history.
        distinct, self._group = np.unique(np.asarray(system.delays), return_inverse=True)
        self._delays = [float(delay) for delay in distinct]
        # Rates and their derivatives, adjacent for the interpolation.
        self._past = np.zeros((count + 1, 2, start.size))
        self._rows = self._past.reshape(2 * (count + 1), start.size)
        self.q = np.zeros(count + 1)
        self._past[0, 0], self.q[0] = start, queue

    @property
    def x(self) -> Array:
        """Rates, one row per step."""
        return self._past[:, 0]

    def run(self) -> _Solver:
        """Compute all steps."""
        h = self.step
        for n in range(self.count):
            t, x, q = n * h, self._past[n, 0], float(self.q[n])
            k1, l1 = self._change(t, x, q)
            # Store the derivative at t before the next step interpolates up to t.
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
        total = max(float(np.add.reduce(x)), _MIN_TOTAL)
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
    flows: Annotated[int, f"{FLOWS}; at most {MAX_FLOWS}"],
    capacity: OneCapacity,
    delay: Annotated[float, DELAY, Unit("s")],
    p0: OneLoss,
    sharpness: Sharpness,
    ratio: OneRatio = 1,
    duration: Duration = 30,
    kick: Annotated[float, "Initial rate divided by the rate at equilibrium"] = 1.05,
) -> Course:
    """Simulate equal flows that all start off their equilibrium together (AIAD, Eq. 4).

    Examples
    --------
    >>> course = motion(1, capacity=100, delay=0.1, p0=0.01, sharpness=2, duration=10)
    >>> round(course.total[-1].item(), 2)
    100.0
    """
    delays = (float(positive("delay", delay)),) * int(
        whole("flows", flows, least=1, most=MAX_FLOWS)
    )
    system = System(capacity, delays, p0, sharpness, ratio)
    rest = system.rest()
    moved = integrate(system, duration, rest.rates * positive("kick", kick), rest.queue)
    return Course(moved.time, moved.rates.sum(axis=1), moved.queue, moved.error)


document(globals())
