"""Chiu and Jain's synchronous model for any laws, and the closed forms of the SIMD paper.

Flows share a capacity of ``W`` packets. The efficiency line is where the sum of their windows is
``W``. All rounds have the same length. At the end of a round that reaches the line every flow
experiences one loss, and the next round begins with the reduced windows. (Chiu and Jain, *Computer
Networks and ISDN Systems* 17, 1989; Jin, Guo, Matta and Bestavros, BU-CS-2001-006, section 4.)

`trajectory` and `convergence` step the laws' own code. `table1`, `epoch_length`, `contraction`,
`fairness_epochs` and `epoch_sum` are the paper's Table 1 and appendix A, with its approximations;
the paper's laws are TCP (AIMD(1, 1/2)), AIMD(3 beta / (2 - beta), beta), IIAD(3 beta / 2, beta)
and SIMD(beta). Windows are in packets, times in round-trip times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cwnd import _native
from cwnd.controller import Spec
from cwnd.errors import ArgumentError
from cwnd.model import checks, law
from cwnd.model.checks import Array, Value, plain
from cwnd.model.quantities import OneRtt, Packets, Unit, document

Name: TypeAlias = Literal["tcp", "aimd", "iiad", "simd"]
"""A law of the SIMD paper's Table 1."""

_FAIR = "Difference of two windows that is considered fair"
_LINE = "The paper's W"

ClockRtt: TypeAlias = Annotated[
    OneRtt, "Round-trip time; for laws that depend on clock time, and for rate laws"
]
EpochWindow: TypeAlias = Annotated[
    Packets, "Windows at the beginning of the epoch, just after a loss"
]
Fair: TypeAlias = Annotated[Packets, _FAIR]
FirstWindow: TypeAlias = Annotated[Packets, "Initial windows of congestion avoidance; broadcast"]
InFlight: TypeAlias = Annotated[
    float, "Packets that the flows can have in flight without a loss", Unit("packets")
]
InitialWindow: TypeAlias = Annotated[
    Packets, "Initial windows; in any order, broadcast, with a sum of at most ``capacity``"
]
Line: TypeAlias = Annotated[Packets, _LINE]
LineWindow: TypeAlias = Annotated[
    Packets, "Windows on the efficiency line, at the first loss; positive after a loss"
]
Reduction: TypeAlias = Annotated[
    npt.ArrayLike | None,
    "Fraction of the window given up (IIAD: packets); the paper's by default; TCP's is 1/2",
]
Share: TypeAlias = Annotated[
    npt.ArrayLike, "Different allocations as fractions of the capacity; with a sum below 1"
]
Start: TypeAlias = Annotated[Array, "Starting points", Unit("packets")]
TableLaw: TypeAlias = Annotated[Name, "A law; ``tcp``, ``aimd``, ``iiad`` or ``simd``"]
Total: TypeAlias = Annotated[Array, "``t1 + t2`` of each law", Unit("RTT")]

BETAS: dict[Name, float] = {"tcp": 1 / 2, "aimd": 1 / 16, "iiad": 2 / 3, "simd": 1 / 16}
"""Fraction of the window (for IIAD: packets) given up in the paper's runs."""
MAX_ROUNDS = 1_000_000
MAX_EPOCHS = 20_000


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Windows of flows in the synchronous model, one row per round and one column per flow."""

    windows: Annotated[
        Array,
        "Windows at the start (row 0) and at the end of each round, before its loss",
        Unit("packets"),
    ]
    after: Annotated[Array, "Windows after the loss, if there is one", Unit("packets")]
    losses: Annotated[npt.NDArray[np.intp], "Row numbers of rounds that end with a loss"]


@dataclass(frozen=True, slots=True)
class Convergence:
    """Convergence of two flows to efficiency and fairness: numbers, or arrays of one shape."""

    t1: Annotated[
        Value,
        "Round-trip times until the efficiency line; infinite if it is not reached",
        Unit("RTT"),
    ]
    delta: Annotated[Value, "Difference of the windows at that time", Unit("packets")]
    t2: Annotated[
        Value,
        "Further round-trip times until the difference is below epsilon; infinite beyond the limit",
        Unit("RTT"),
    ]
    epochs: Annotated[Value, "Number of losses in ``t2``"]


@dataclass(frozen=True, slots=True)
class PhasePlane:
    """Path of two windows: at the start, at the end of each round, and after each loss."""

    w1: Annotated[Array, "Window of flow 1", Unit("packets")]
    w2: Annotated[Array, "Window of flow 2", Unit("packets")]


@dataclass(frozen=True, slots=True)
class Table1:
    """A row of the SIMD paper's Table 1."""

    t1: Annotated[Value, "Round-trip times until the efficiency line", Unit("RTT")]
    delta: Annotated[Value, "Difference of the windows at that time", Unit("packets")]
    t2: Annotated[Value, "Further round-trip times until the difference is fair", Unit("RTT")]


@dataclass(frozen=True, slots=True)
class Plane:
    """Convergence times for starting points in the plane of two windows."""

    w1: Start
    w2: Start
    simd: Total
    aimd: Total
    iiad: Total

    @property
    def simd_faster(self) -> npt.NDArray[np.bool_]:
        """Points from which SIMD converges faster than AIMD."""
        return np.asarray(self.simd < self.aimd)

    @property
    def iiad_slowest(self) -> npt.NDArray[np.bool_]:
        """Points from which IIAD converges more slowly than both."""
        return np.asarray((self.iiad > self.simd) & (self.iiad > self.aimd))


def trajectory(
    specs: Annotated[Spec | Sequence[Spec], "A specification for each flow, or one for all"],
    windows: Annotated[
        Sequence[float],
        "Initial windows of congestion avoidance; one for each flow",
        Unit("packets"),
    ],
    capacity: InFlight,
    rounds: Annotated[int, f"Number of rounds; at most {MAX_ROUNDS}"],
    *,
    rtt: ClockRtt = law.RTT_S,
    per: law.Stepping = "ack",
) -> Trajectory:
    """Step flows round by round.

    Rate laws receive a capacity of ``capacity / rtt``; ``rtt`` also sets their control intervals.

    Examples
    --------
    >>> run = trajectory("reno", [10, 80], 100, 10, per="round")
    >>> run.losses.tolist(), run.windows[5].tolist(), run.after[5].tolist()
    ([5], [15.0, 85.0], [7.5, 42.5])
    """
    start = checks.between("windows", list(windows), 1, 1e9)
    if start.ndim != 1 or start.size == 0:
        raise ArgumentError("windows", "must be one number for each flow, and at least one")
    many = isinstance(specs, Sequence) and not isinstance(specs, str)
    given = list(cast("Sequence[Spec]", specs)) if many else [cast("Spec", specs)] * start.size
    if len(given) != start.size:
        problem = f"{len(given)} specifications for {start.size} windows: give one, or one for each"
        raise ArgumentError("specs", problem)
    before, after = law.step(
        _native.synchronous,
        given,
        start.tolist(),
        _in_flight(capacity),
        int(checks.whole("rounds", rounds, most=MAX_ROUNDS)),
        rtt=float(checks.positive("rtt", rtt)),
        packet=law.PACKET_BYTES,
        whole=law.whole_rounds(per),
    )
    return Trajectory(before, after, np.flatnonzero(before.sum(axis=1) >= capacity))


def phase_plane(
    spec: Annotated[Spec, "The law of both flows"],
    w1: Annotated[float, "Initial window of flow 1, in congestion avoidance", Unit("packets")],
    w2: Annotated[float, "Initial window of flow 2", Unit("packets")],
    capacity: InFlight,
    rounds: Annotated[int, f"Number of rounds; at most {MAX_ROUNDS}"] = 200,
    *,
    rtt: ClockRtt = law.RTT_S,
    per: law.Stepping = "ack",
) -> PhasePlane:
    """Return the path of two flows' windows under synchronous feedback (Chiu and Jain, 1989).

    A plot has the efficiency line, where the windows' sum is ``capacity``, and the fairness line.

    Examples
    --------
    >>> path = phase_plane("reno", 10, 80, 100, 6, per="round")
    >>> list(zip(path.w1.tolist(), path.w2.tolist()))[4:]
    [(14.0, 84.0), (15.0, 85.0), (7.5, 42.5), (8.5, 43.5)]
    """
    run = trajectory(spec, [w1, w2], capacity, rounds, rtt=rtt, per=per)
    path = np.insert(run.windows, run.losses + 1, run.after[run.losses], axis=0)
    return PhasePlane(*path.T)


def convergence(
    specs: Annotated[Spec | tuple[Spec, Spec], "The law of both flows, or one law for each"],
    w1: FirstWindow,
    w2: FirstWindow,
    capacity: InFlight,
    epsilon: Annotated[float, _FAIR, Unit("packets")],
    *,
    rtt: ClockRtt = law.RTT_S,
    per: law.Stepping = "ack",
    limit: Annotated[
        int, "Largest number of rounds; one of n times the capacity counts as n"
    ] = MAX_ROUNDS,
) -> Convergence:
    """Simulate two flows until they use and share a link, for one or many starting points.

    The paper's T1, Delta and T2 without its approximations. The difference is checked on the line,
    at the end of each round and after each loss; T2 ends when it is first below ``epsilon``. Rate
    laws receive a capacity of ``capacity / rtt``; ``rtt`` also sets their control intervals.

    Examples
    --------
    From (10, 30) TCP takes 30 rounds to (40, 60), and five losses with 25 rounds between them to
    reduce the difference of 20 below 1.

    >>> convergence("reno", 10, 30, 100, 1, per="round")
    Convergence(t1=30.0, delta=20.0, t2=100.0, epochs=5.0)
    """
    pair = specs if isinstance(specs, tuple) else (specs, specs)
    if len(pair) != 2:
        raise ArgumentError("specs", "must be one specification or two")
    first, second = np.broadcast_arrays(
        checks.between("w1", w1, 1, 1e9), checks.between("w2", w2, 1, 1e9)
    )
    found = law.step(
        _native.converge,
        pair,
        np.ravel(first),
        np.ravel(second),
        _in_flight(capacity),
        float(checks.positive("epsilon", epsilon)),
        limit=int(checks.whole("limit", limit, 1)),
        rtt=float(checks.positive("rtt", rtt)),
        packet=law.PACKET_BYTES,
        whole=law.whole_rounds(per),
    )
    return Convergence(*(plain(column.reshape(first.shape)) for column in found.T))


def table1(
    name: TableLaw,
    w1: InitialWindow,
    w2: InitialWindow,
    capacity: Line,
    epsilon: Fair,
    beta: Reduction = None,
) -> Table1:
    """Return the closed forms of the SIMD paper's Table 1 (derived in its appendix A).

    ``delta`` is the difference where the efficiency line is first reached. ``t2`` starts there and
    assumes epochs of the length near fairness. IIAD's ``t2`` is a lower bound, as the paper says.
    Flows may start on the line.

    Examples
    --------
    The analytic columns of Table 3, experiment 2:

    >>> simd, iiad = table1("simd", 10.2, 33.2, 110, 10), table1("iiad", 11.8, 31.2, 110, 10)
    >>> round(simd.t1, 1), round(simd.delta, 1), round(iiad.t1), round(iiad.delta, 1)
    (85.1, 12.3, 1242, 7.6)
    """
    b = _beta(name, beta)
    small, large, w = _points(w1, w2, capacity)
    gap = w - small - large
    if name in ("tcp", "aimd"):
        alpha = 3 * b / (2 - b)
        t1, delta = gap / (2 * alpha), large - small
    elif name == "iiad":
        t1 = ((large**2 - small**2) ** 2 / w**2 - 2 * (small**2 + large**2) + w**2) / (12 * b)
        delta = (large**2 - small**2) / w
    else:
        gamma = 2 * (1 - 2 * b / 3) * np.sqrt(2 / (9 * b * (1 - b)))
        t1 = gamma * np.sqrt(small * large * gap / (small + large))
        delta = np.abs((2 - w / (small + large)) * (large - small))
    t2 = _fairness_epochs(name, delta, w, checks.positive("epsilon", epsilon), b)
    return Table1(plain(t1), plain(delta), plain(t2 * _steady_length(name, w, b)))


def epoch_length(
    name: TableLaw, w1: EpochWindow, w2: EpochWindow, beta: Reduction = None
) -> Annotated[Value, "Length L", Unit("RTT")]:
    """Return the round-trip times L of a congestion epoch, from loss to loss (appendix A.2).

    The appendix writes some of them in terms of W, which is ``(w1 + w2) / (1 - beta)`` there, and
    ``w1 + w2 + 2 beta`` for IIAD.

    Examples
    --------
    >>> epoch_length("tcp", 20, 30)
    25.0
    """
    b = _beta(name, beta)
    a, c = checks.positive("w1", w1), checks.positive("w2", w2)
    return plain(_epoch_length(name, a, c, b))


def contraction(
    name: TableLaw,
    capacity: Annotated[
        Packets, "The paper's W; only IIAD's contraction depends on it, and that is a lower bound"
    ],
    beta: Reduction = None,
) -> Annotated[Value, "Factor"]:
    """Return the factor by which an epoch reduces two windows' difference (appendix A.2).

    Examples
    --------
    >>> contraction("tcp", 100), contraction("simd", 100, 1/16)
    (0.5, 0.875)
    """
    return plain(_contraction(name, checks.positive("capacity", capacity), _beta(name, beta)))


def fairness_epochs(
    name: TableLaw,
    delta: Annotated[Packets, "Difference of the windows on the efficiency line"],
    capacity: Line,
    epsilon: Fair,
    beta: Reduction = None,
) -> Annotated[Value, "T2", Unit("epochs")]:
    """Return T2 in congestion epochs, not rounded (appendix A.2): a logarithm of epsilon / Delta.

    Examples
    --------
    >>> fairness_epochs("tcp", 16, 100, 1), fairness_epochs("tcp", 0.5, 100, 1)
    (4.0, 0.0)
    """
    return plain(
        _fairness_epochs(
            name,
            checks.non_negative("delta", delta),
            checks.positive("capacity", capacity),
            checks.positive("epsilon", epsilon),
            _beta(name, beta),
        )
    )


def epoch_sum(
    name: TableLaw,
    w1: LineWindow,
    w2: LineWindow,
    epsilon: Fair,
    beta: Reduction = None,
) -> Annotated[Value, "T2", Unit("RTT")]:
    """Sum the round-trip times of epochs until fairness: T2 "iteratively" (appendix A.2).

    Each epoch begins with the reduced windows, has the length of `epoch_length` for these, and ends
    on the line with the increments derived in the appendix. Unlike Table 1 it does not assume equal
    lengths of all epochs.

    Examples
    --------
    >>> epoch_sum("tcp", 40, 60, 1)
    100.0
    """
    b = _beta(name, beta)
    small, large, w = _points(w1, w2, None)
    limit, b, small, large, w = np.broadcast_arrays(
        checks.positive("epsilon", epsilon), b, small, large, w
    )
    # Both windows after a loss.
    kept = [window - b if name == "iiad" else (1 - b) * window for window in (small, large)]
    a, c = (np.array(window, dtype=float) for window in kept)
    if np.any(a <= 0):
        raise ArgumentError("w1", "a loss would take the whole smaller window")
    total = np.zeros(a.shape)
    for _ in range(MAX_EPOCHS):
        if not (far := c - a >= limit).any():
            return plain(total)
        length = np.where(far, _epoch_length(name, a, c, b), 0.0)
        total = total + length
        gap = w - a - c
        share = 1 / 2 if name in ("tcp", "aimd") else c / (a + c)
        grown_a, grown_c = a + gap * share, c + gap * (1 - share)
        if name == "iiad":
            grown_a, grown_c = grown_a - b, grown_c - b
        else:
            grown_a, grown_c = (1 - b) * grown_a, (1 - b) * grown_c
        a, c = np.where(far, grown_a, a), np.where(far, grown_c, c)
    raise ArgumentError(
        "epsilon", f"{MAX_EPOCHS} epochs do not reach it: it or beta must be larger"
    )


def simd_fairer(x1: Share, x2: Share) -> npt.NDArray[np.bool_]:
    """Test where SIMD reaches the efficiency line at a fairer point than AIMD (figure 4a).

    Compares the fairness index max(x1/x2, x2/x1) of the two intersections of section 4.2; the
    paper's condition x1 + x2 > 1/3 is not used.

    Examples
    --------
    >>> simd_fairer([0.1, 0.1], [0.2, 0.3]).tolist()
    [False, True]
    """
    a, c = checks.fraction("x1", x1), checks.fraction("x2", x2)
    if np.any(a + c >= 1):
        raise ArgumentError("x1", "x1 + x2 must be below 1: below the efficiency line")
    aimd = ((1 + a - c) / 2, (1 - a + c) / 2)
    simd = (a - c + c / (a + c), c - a + a / (a + c))
    return np.asarray(_index(*simd) < _index(*aimd))


def plane(
    w1: InitialWindow,
    w2: InitialWindow,
    *,
    capacity: Annotated[float, _LINE, Unit("packets")] = 100.0,
    epsilon: Annotated[float, _FAIR, Unit("packets")] = 1.0,
    beta: Annotated[float, "Fraction given up by SIMD and AIMD; IIAD is (1, 2/3)"] = 1 / 16,
    exact: Annotated[
        bool, "Whether to step the laws by round trips, instead of using Table 1"
    ] = False,
) -> Plane:
    """Compare the laws' convergence times for points of the plane (figure 4c).

    Examples
    --------
    >>> points = plane([5, 20], [40, 40])
    >>> points.simd_faster.tolist(), points.iiad_slowest.tolist()
    ([True, True], [True, True])
    """
    small, large, _ = _points(w1, w2, capacity)

    def total(name: Name, spec: str, b: float | None) -> Array:
        if exact:
            run = convergence(spec, small, large, capacity, epsilon, per="round")
            return np.asarray(np.add(run.t1, run.t2), dtype=float)
        row = table1(name, small, large, capacity, epsilon, b)
        return np.asarray(np.add(row.t1, row.t2), dtype=float)

    return Plane(
        small,
        large,
        total("simd", f"simd(beta={beta!r})", beta),
        total("aimd", f"friendly(beta={beta!r})", beta),
        total("iiad", "iiad", None),
    )


def _in_flight(capacity: float) -> float:
    """Validate a capacity: windows are at most 1e9 packets."""
    return float(checks.between("capacity", checks.positive("capacity", capacity), 0, 2e9))


def _index(a: Array, c: Array) -> Array:
    """Return the paper's fairness index of two shares; 1 is fair."""
    return np.maximum(a / c, c / a)


def _points(
    w1: npt.ArrayLike, w2: npt.ArrayLike, capacity: npt.ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Validate two windows; return the smaller, the larger, and the capacity or else their sum."""
    a, c = np.broadcast_arrays(checks.positive("w1", w1), checks.positive("w2", w2))
    total = a + c
    w = total if capacity is None else checks.positive("capacity", capacity)
    if np.any(total > w * (1 + 1e-12)):
        raise ArgumentError("capacity", "must be at least w1 + w2: flows start below the line")
    return np.minimum(a, c), np.maximum(a, c), w


def _beta(name: Name, beta: npt.ArrayLike | None) -> Array:
    """Validate a law's beta; the default is the paper's."""
    if name not in BETAS:
        raise ArgumentError("name", f"must be one of {', '.join(BETAS)}, not {name!r}")
    if beta is None:
        return np.asarray(BETAS[name])
    b = checks.fraction("beta", beta)
    if name == "tcp" and np.any(b != BETAS["tcp"]):
        raise ArgumentError("beta", "TCP's is 1/2: use 'aimd' for another")
    if name == "simd" and np.any(b >= 0.5):
        raise ArgumentError("beta", "SIMD's must be below 1/2 for the appendix's contraction")
    return b


def _steady_length(name: Name, w: Array, b: Array) -> Array:
    """Return the length of an epoch near fairness, as Table 1 approximates it."""
    factors: dict[str, float] = {"iiad": 1 / 3, "simd": float(np.sqrt(2)) / 3}
    return np.asarray(factors[name] * w if name in factors else (2 - b) / 6 * w)


def _epoch_length(name: Name, a: Array, c: Array, b: Array) -> Array:
    """Return appendix A.2's L for windows just after a loss."""
    if name == "simd":
        return np.asarray(2 / 3 * (1 - 2 * b / 3) / (1 - b) * np.sqrt(2 * a * c))
    if name == "iiad":
        return np.asarray(4 / 3 * a * c / (a + c))
    return np.asarray((2 - b) / 6 * (a + c) / (1 - b))


def _contraction(name: Name, w: Array, b: Array) -> Array:
    """Return appendix A.2's Delta' / Delta."""
    taken = {"iiad": 2 * b / w, "simd": 2 * b}.get(name, b)
    return np.asarray(1 - taken + 0 * w)


def _fairness_epochs(name: Name, delta: Array, w: Array, epsilon: Array, b: Array) -> Array:
    """Return the logarithm of epsilon / delta to the base of the contraction, at least 0."""
    ratio = np.maximum(delta / epsilon, 1.0)
    return np.asarray(-np.log(ratio) / np.log(_contraction(name, w, b)))


document(globals())
