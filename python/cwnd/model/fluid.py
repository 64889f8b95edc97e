"""Fluid model of window laws at one bottleneck, with the laws' own code.

The model of Misra, Gong and Towsley (*Fluid-based analysis of a network of AQM routers supporting
TCP flows with an application to RED*, SIGCOMM 2000), for any law. In each class of flows, with
windows W, queue q, its average x, capacity C and round-trip times R = R0 + q / C::

    dW/dt = a(W) / R  -  c(W) lambda(t - R) p(t - R),     lambda = W / R
    dq/dt = (1 - p) sum lambda - C,                       0 <= q <= limit
    dx/dt = -C ln(1 - weight) (q - x)

where p is the fraction of arriving packets that RED drops, a function of x. Packets that do not fit
into a full queue are dropped as well; a DropTail queue has only these drops. Every arriving loss
causes a reduction. There is no slow start, timeout or recovery, and no window below 1 packet.

a(W), the packets gained per round-trip time, and c(W), those given up at a loss, are those of the
AIMD law equivalent to the law's own code at the operating window: the code runs from a loss at W
until its window is W again; c is the reduction, and a is c divided by the round-trip times in
between. For AIMD these are alpha and beta W, as published; for laws with memory they are averages
over the sawtooth. At equilibrium a = c W p, for TCP ``W² p = 2``.

Queues are in waiting packets, rates in packets per second, times in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from cwnd.controller import Spec
from cwnd.errors import ArgumentError
from cwnd.model import checks, law
from cwnd.model.checks import Array
from cwnd.model.quantities import OneRtt, Unit, document

Count: TypeAlias = Annotated[int, "Number of flows"]
DropProbability: TypeAlias = Annotated[float, "Probability that a packet is dropped"]
LargestDrop: TypeAlias = Annotated[float, "Drop probability at ``high``"]
Limit: TypeAlias = Annotated[float, "Capacity of the queue", Unit("packets")]
LinkCapacity: TypeAlias = Annotated[float, "Capacity of the link", Unit("packets/s")]
Propagation: TypeAlias = Annotated[float, "Round-trip propagation time", Unit("s")]
QueueSize: TypeAlias = Annotated[float, "Queue", Unit("packets")]
Threshold: TypeAlias = Annotated[float, "Thresholds of the averaged queue", Unit("packets")]

MIN_WINDOW = 2.0
"""Smallest window of the model in packets; below it timeouts dominate, not the law."""
MIN_LOSS = 1e-12
WINDOWS = 120
DELAYS = 3
FOLLOWS_THE_PATH = ("aiad", "westwood", "vegas")


@dataclass(frozen=True, slots=True)
class Flows:
    """A class of equal flows."""

    spec: Annotated[Spec, "Their law"]
    count: Count
    rtt: Propagation


@dataclass(frozen=True, slots=True)
class Red:
    """A RED queue, as ns-2 defines it.

    If it is not gentle, the probability jumps to 1 at ``high``. For a probability b the number of
    packets between drops is uniform on 1/b to 2/b if RED waits, and on 1 to 1/b if not.
    """

    limit: Limit
    low: Threshold
    high: Threshold
    max_p: LargestDrop = 0.1
    weight: Annotated[float, "Weight of a packet's arrival in the average"] = 0.002
    gentle: Annotated[bool, "Whether the probability rises linearly to 1 at twice ``high``"] = True
    wait: Annotated[bool, "Whether RED waits between drops (ns-2's ``wait_``)"] = True

    def drops(self, average: Annotated[float, "Averaged queue", Unit("packets")]) -> float:
        """Return the fraction of arriving packets that RED drops.

        For RED's probability b the mean number of packets between drops is (3 / b - 1) / 2 if RED
        waits, and (1 / b + 1) / 2 if not.

        Examples
        --------
        >>> red = Red(limit=200, low=20, high=60)
        >>> [round(red.drops(x), 4) for x in (10, 40, 60, 90, 130)]
        [0.0, 0.0339, 0.069, 0.449, 1.0]
        """
        if average < self.low:
            return 0.0
        if average < self.high:
            b = self.max_p * (average - self.low) / (self.high - self.low)
        elif self.gentle and average < 2 * self.high:
            b = self.max_p + (1 - self.max_p) * (average - self.high) / self.high
        else:
            return 1.0
        return 2 * b / (3 - b) if self.wait else 2 * b / (1 + b)

    def average(
        self, drops: Annotated[float, "Fraction of the packets; above 0 and below 1"]
    ) -> float:
        """Return the averaged queue for a fraction of dropped packets; inverse of `drops`.

        Examples
        --------
        >>> red = Red(limit=200, low=20, high=60)
        >>> round(red.average(red.drops(40)), 9), round(red.average(red.drops(90)), 9)
        (40.0, 90.0)
        """
        b = 3 * drops / (2 + drops) if self.wait else drops / (2 - drops)
        if b <= self.max_p:
            return self.low + b / self.max_p * (self.high - self.low)
        return self.high + (b - self.max_p) / (1 - self.max_p) * self.high


@dataclass(frozen=True, slots=True)
class DropTail:
    """A DropTail queue."""

    limit: Limit


Queue: TypeAlias = Red | DropTail
Classes: TypeAlias = Annotated[Flows | Sequence[Flows], "One or several classes of flows"]
LinkQueue: TypeAlias = Annotated[
    Queue, "Queue of the link: `Red` or `DropTail`; DropTail is full at equilibrium"
]


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Equilibrium: windows, rates and round-trip times of each class."""

    window: Annotated[Array, "Window of one flow of each class", Unit("packets")]
    rtt: Annotated[Array, "Round-trip time of each class", Unit("s")]
    rate: Annotated[Array, "Sending rate of one flow of each class", Unit("packets/s")]
    queue: QueueSize
    loss: DropProbability


@dataclass(frozen=True, slots=True)
class Point:
    """The `Equilibrium` of equal flows."""

    window: Annotated[float, "Window of a flow", Unit("packets")]
    rtt: OneRtt
    rate: Annotated[float, "Sending rate of a flow", Unit("packets/s")]
    queue: QueueSize
    loss: DropProbability


@dataclass(frozen=True, slots=True)
class Transient:
    """Solution over time, one row for each step.

    The ``error`` compares the means of the windows and the queue over the second half.
    """

    time: Annotated[Array, "Time", Unit("s")]
    window: Annotated[
        Array, "Window of one flow of each class; one column for each class", Unit("packets")
    ]
    queue: Annotated[Array, "Queue", Unit("packets")]
    average: Annotated[Array, "RED's average of the queue", Unit("packets")]
    loss: Annotated[Array, "Probability that an arriving packet is dropped"]
    error: Annotated[float, "Largest relative difference from a run with twice the step"]


class _Law:
    """A class of flows, with its equivalent AIMD tabulated by window and round-trip time."""

    def __init__(self, flows: Flows, capacity: float, limit: float) -> None:
        name = law.specification(flows.spec)
        if name.partition("(")[0] in FOLLOWS_THE_PATH:
            raise ArgumentError(
                "flows", f"{name} depends on the delay or the rate of its path, not only on losses"
            )
        self.count = int(checks.whole("flows.count", flows.count, least=1))
        self.rtt = float(checks.positive("flows.rtt", flows.rtt))
        longest = self.rtt + limit / capacity
        widest = 4 * max(capacity * longest / self.count, 4 * MIN_WINDOW)
        self.windows = np.geomspace(MIN_WINDOW, widest, WINDOWS)
        self.delays = np.linspace(self.rtt, longest, DELAYS)
        teeth = [law.sawtooth(flows.spec, self.windows, rtt=float(r)) for r in self.delays]
        self.gains = np.array([tooth.increase for tooth in teeth])
        self.losses = np.array([tooth.at_loss - tooth.after for tooth in teeth])

    def at(self, rtt: float) -> tuple[Array, Array]:
        """Return gains and losses for all windows of the table at a round-trip time."""
        place = (rtt - self.rtt) * self._per_delay()
        below = min(max(int(place), 0), DELAYS - 2)
        part = min(max(place - below, 0.0), 1.0)
        gains = (1 - part) * self.gains[below] + part * self.gains[below + 1]
        losses = (1 - part) * self.losses[below] + part * self.losses[below + 1]
        return gains, losses

    def window(self, loss: float, rtt: float) -> float:
        """Return the window at which gains and losses are equal: a = c W p."""
        gains, losses = self.at(rtt)
        balance = gains / (losses * self.windows)
        return float(np.exp(np.interp(-np.log(loss), -np.log(balance), np.log(self.windows))))

    def _per_delay(self) -> float:
        """Return the rows of the table per second of delay; 0 if all rows are of one delay."""
        span = self.delays[-1] - self.rtt
        return (DELAYS - 1) / span if span > 0 else 0.0

    def rates(self) -> Callable[[float, float], tuple[float, float]]:
        """Return a fast function of window and round-trip time: packets gained and given up."""
        start, step = math.log(self.windows[0]), math.log(self.windows[1] / self.windows[0])
        gains, losses = self.gains.tolist(), self.losses.tolist()
        per_delay = self._per_delay()
        rtt = self.rtt

        def look(window: float, delay: float) -> tuple[float, float]:
            x = min(max((math.log(window) - start) / step, 0.0), WINDOWS - 1.000001)
            y = min(max((delay - rtt) * per_delay, 0.0), DELAYS - 1.000001)
            i, j = int(x), int(y)
            u, v = x - i, y - j
            a0, a1, c0, c1 = gains[j], gains[j + 1], losses[j], losses[j + 1]
            return (
                (1 - v) * ((1 - u) * a0[i] + u * a0[i + 1]) + v * ((1 - u) * a1[i] + u * a1[i + 1]),
                (1 - v) * ((1 - u) * c0[i] + u * c0[i + 1]) + v * ((1 - u) * c1[i] + u * c1[i + 1]),
            )

        return look


def equilibrium(flows: Classes, capacity: LinkCapacity, queue: LinkQueue) -> Equilibrium:
    """Find the equilibrium of gains and losses, and of arrivals and departures.

    Raises
    ------
    ArgumentError
        A law whose cycle does not repeat or that depends on its path; windows below 2 packets; a
        RED queue that would be full.

    Examples
    --------
    TCP's ``W² p = 2``:

    >>> red = Red(limit=1000, low=50, high=150)
    >>> found = equilibrium(Flows("reno", 20, 0.1), 3750, red)
    >>> round(float(found.window[0] ** 2 * found.loss), 2)
    2.0
    """
    from scipy.optimize import brentq

    classes, c, queue = _read(flows, capacity, queue)

    def size_at(loss: float) -> float:
        return queue.average(loss) if isinstance(queue, Red) else queue.limit

    def excess(log: float) -> float:
        loss = math.exp(log)
        rtts = [k.rtt + size_at(loss) / c for k in classes]
        sent = sum(k.count * k.window(loss, r) / r for k, r in zip(classes, rtts, strict=True))
        return sent * (1 - loss) - c

    # Largest loss at which all windows are at least the smallest and RED's queue is not full.
    most = min(float((k.gains[:, 0] / k.losses[:, 0]).min()) / MIN_WINDOW for k in classes)
    if isinstance(queue, Red):
        top = min(queue.limit, 2 * queue.high if queue.gentle else queue.high)
        most = min(most, queue.drops(top * (1 - 1e-9)))
    highest = math.log(most) - 1e-9
    if excess(highest) > 0:
        raise ArgumentError(
            "flows",
            f"too many flows for {c:g} packets/s: windows would be below {MIN_WINDOW:g} packets,"
            " or RED's queue full",
        )
    loss = math.exp(float(brentq(excess, math.log(MIN_LOSS), highest)))
    size = size_at(loss)
    rtt = np.array([k.rtt + size / c for k in classes])
    window = np.array([k.window(loss, float(r)) for k, r in zip(classes, rtt, strict=True)])
    return Equilibrium(window, rtt, window / rtt, size, loss)


def transient(
    flows: Classes,
    capacity: LinkCapacity,
    queue: LinkQueue,
    duration: Annotated[float, "Duration", Unit("s")],
    *,
    start: Annotated[
        Sequence[float] | None,
        "Initial windows, one for each class; 2 by default; the queue is empty at first",
        Unit("packets"),
    ] = None,
    step: Annotated[
        float | None,
        "Step; 1/50 of the shortest round-trip propagation time by default, at most 1/4 of it",
        Unit("s"),
    ] = None,
) -> Transient:
    """Integrate the fluid over time, with its delays.

    Heun's method with a fixed step and interpolation of delayed values; repeated with twice the
    step to estimate the error. SciPy's solvers do not support delays.

    Raises
    ------
    ArgumentError
        A law whose cycle does not repeat or that depends on its path.

    Examples
    --------
    >>> red = Red(limit=1000, low=50, high=150)
    >>> run = transient(Flows("reno", 20, 0.1), 3750, red, 20)
    >>> run.window.shape, run.queue.shape
    ((10001, 1), (10001,))
    """
    classes, c, queue = _read(flows, capacity, queue)
    shortest = min(k.rtt for k in classes)
    h = shortest / 50 if step is None else float(checks.between("step", step, 1e-9, shortest / 4))
    begin = [MIN_WINDOW] * len(classes) if start is None else list(start)
    if len(begin) != len(classes):
        raise ArgumentError("start", "must be one window for each class of flows")
    begin = [float(checks.between("start", w, 1, 1e9)) for w in begin]
    length = float(checks.positive("duration", duration))
    steps = round(length / h)
    if not 20 <= steps <= 20_000_000:
        raise ArgumentError("step", f"duration / step must be from 20 to 20000000, not {steps}")
    fine = _integrate(classes, c, queue, begin, h, steps)
    coarse = _integrate(classes, c, queue, begin, 2 * h, steps // 2)
    window, sizes, average, loss = fine
    means = [
        np.append(w[len(w) // 2 :].mean(axis=0), q[len(q) // 2 :].mean())
        for w, q, _, _ in (fine, coarse)
    ]
    error = float(np.max(np.abs(means[0] - means[1]) / np.maximum(means[0], 1e-9)))
    return Transient(np.arange(steps + 1, dtype=float) * h, window, sizes, average, loss, error)


def red_equilibrium(
    spec: law.WindowLaw,
    count: Count,
    rtt: Propagation,
    capacity: LinkCapacity,
    *,
    low: Annotated[float, "RED's lower threshold", Unit("packets")],
    high: Annotated[
        float, "RED's upper threshold; the queue's capacity is twice ``high``", Unit("packets")
    ],
    max_p: LargestDrop = 0.1,
) -> Point:
    """Return the equilibrium of flows of one law at a RED queue (gentle, with waiting).

    Misra, Gong and Towsley 2000. Errors are those of `equilibrium`.

    Examples
    --------
    >>> point = red_equilibrium("reno", 20, 0.1, 3750, low=20, high=600)
    >>> round(point.window, 1), round(point.queue), round(point.loss, 4)
    (21.7, 57, 0.0043)
    """
    queue = Red(limit=2 * high, low=low, high=high, max_p=max_p)
    return _point(equilibrium(Flows(spec, count, rtt), capacity, queue))


def droptail_equilibrium(
    spec: law.WindowLaw,
    count: Count,
    rtt: Propagation,
    capacity: LinkCapacity,
    limit: Limit,
) -> Point:
    """Return the equilibrium of flows of one law at a DropTail queue, which is full.

    Misra, Gong and Towsley 2000. Errors are those of `equilibrium`.

    Examples
    --------
    >>> round(droptail_equilibrium("reno", 20, 0.1, 3750, 150).loss, 4)
    0.0029
    """
    return _point(equilibrium(Flows(spec, count, rtt), capacity, DropTail(limit)))


def _point(found: Equilibrium) -> Point:
    """Convert the equilibrium of a single class."""
    return Point(
        float(found.window[0]),
        float(found.rtt[0]),
        float(found.rate[0]),
        found.queue,
        found.loss,
    )


def _integrate(
    classes: list[_Law], c: float, queue: Queue, begin: list[float], h: float, steps: int
) -> tuple[Array, Array, Array, Array]:
    """Integrate; return windows, queue, average and loss at each step."""
    looks = [k.rates() for k in classes]
    rtts, counts = [k.rtt for k in classes], [k.count for k in classes]
    every = range(len(classes))
    limit = queue.limit
    red = queue if isinstance(queue, Red) else None
    follow = -c * math.log1p(-red.weight) if red else 0.0
    windows, sizes, averages, losses = [list(begin)], [0.0], [0.0], [0.0]
    # Losses per second that arrive at a flow of each class.
    arrivals: list[list[float]] = []

    def loss(w: list[float], q: float, x: float) -> tuple[float, float]:
        """Return the drop probability and the total sending rate in packets per second."""
        sent = sum(counts[i] * w[i] / (rtts[i] + q / c) for i in every)
        p = red.drops(x) if red else 0.0
        if q >= limit and sent * (1 - p) > c:
            p = 1 - c / sent
        return p, sent

    def ago(i: int, now: float) -> float:
        """Return the losses that arrived at a past time, given in steps."""
        if now <= 0:
            return 0.0
        at = min(int(now), len(arrivals) - 2)
        if at < 0:
            return arrivals[0][i]
        part = min(now - at, 1.0)
        return (1 - part) * arrivals[at][i] + part * arrivals[at + 1][i]

    def slope(
        n: float, w: list[float], q: float, x: float, p: float, sent: float
    ) -> tuple[list[float], float, float]:
        dw = []
        for i in every:
            rtt = rtts[i] + q / c
            gain, give = looks[i](w[i], rtt)
            dw.append(gain / rtt - give * ago(i, n - rtt / h))
        dq = sent * (1 - p) - c
        if (q <= 0 and dq < 0) or (q >= limit and dq > 0):
            dq = 0.0
        return dw, dq, follow * (q - x)

    w, q, x = list(begin), 0.0, 0.0
    p, sent = loss(w, q, x)
    for n in range(steps):
        arrivals.append([w[i] / (rtts[i] + q / c) * p for i in every])
        dw, dq, dx = slope(n, w, q, x, p, sent)
        w1 = [max(w[i] + h * dw[i], 1.0) for i in every]
        q1, x1 = min(max(q + h * dq, 0.0), limit), x + h * dx
        p1, sent1 = loss(w1, q1, x1)
        ew, eq, ex = slope(n + 1, w1, q1, x1, p1, sent1)
        w = [max(w[i] + h / 2 * (dw[i] + ew[i]), 1.0) for i in every]
        q, x = min(max(q + h / 2 * (dq + eq), 0.0), limit), x + h / 2 * (dx + ex)
        p, sent = loss(w, q, x)
        windows.append(w)
        sizes.append(q)
        averages.append(x)
        losses.append(p)
    return np.array(windows), np.array(sizes), np.array(averages), np.array(losses)


def _read(
    flows: Flows | Sequence[Flows], capacity: float, queue: Queue
) -> tuple[list[_Law], float, Queue]:
    """Validate the arguments that both models share."""
    c = float(checks.positive("capacity", capacity))
    limit = float(checks.positive("queue.limit", queue.limit))
    if isinstance(queue, Red):
        low, high = (checks.positive(f"queue.{n}", getattr(queue, n)) for n in ("low", "high"))
        checks.fraction("queue.weight", queue.weight)
        checks.fraction("queue.max_p", queue.max_p)
        if not low < high <= limit:
            raise ArgumentError("queue", "must have low < high <= limit")
    given = [flows] if isinstance(flows, Flows) else list(flows)
    if not given:
        raise ArgumentError("flows", "must be at least one class of flows")
    return [_Law(each, c, limit) for each in given], c, queue


document(globals())
