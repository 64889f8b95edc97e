"""Stationary distribution of a window law under random losses, with the law's own code.

Each packet is lost with probability ``p``, independently of all others (the loss model of section 3
of the SIMD paper, of Ott, Kemperman and Mathis 1996, and of the scenario ``random-loss``). The
windows at successive losses are a Markov chain if the law's state after a loss depends only on the
window at the loss. The chain is discretised on a grid: from each point the law is reduced and
grown, acknowledgement by acknowledgement, each of which is the last with probability ``p``. Windows
between two points are split among both with the mean preserved. The stationary vector, weighted
with the duration of the epochs, gives the distribution over time.

The law's environment is modelled as follows:

* The loss of a packet is detected with the acknowledgement of the next packet. All packets before
  it have been acknowledged and have grown the window.
* A round-trip time of recovery follows at the reduced window, without growth. Losses of packets
  already in flight cause no further reduction. Packets sent in recovery grow the window after it,
  and their losses cause reductions.
* Whole packets are sent: the window is rounded down. The acknowledgements of a round are evenly
  spaced, by the window sent in the previous round.
* There are no timeouts, no slow start and no largest window; the smallest window is 1 packet.

The ideal model of Ott, Kemperman and Mathis has no recovery, and sends fractions of packets. The
GAIMD paper (section 2.2) does not give the variance of the sending rate: this module computes it
for such laws, and `aimd_moments` has a closed form for AIMD at small ``p``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd import _native
from cwnd.controller import Spec
from cwnd.errors import ArgumentError
from cwnd.model import checks, law
from cwnd.model.checks import Array, Value, plain
from cwnd.model.quantities import Increase, OneRtt, Unit, document

_EPOCH = "Mean time between two reductions"
_LOSS_EVENTS = (
    "Reductions per packet sent; below ``p``, as the losses of one round cause one reduction"
)
_RATE = "Sending rate, retransmissions included"

Ideal: TypeAlias = Annotated[
    bool, "Whether to omit the round-trip time of recovery; every loss then causes a reduction"
]

POINTS = 200
MIN_P = 1e-6
TAIL = 1e-9
"""Truncation: probability of an epoch beyond the followed ones, and of a loss at the grid's top."""
MIN_BETA = 1e-4
"""Smallest decrease of `aimd_moments`."""
MAX_TOP = 1e9
COARSE = 50


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and variance of a window over time: numbers, or arrays of one shape."""

    mean: Annotated[Value, "Mean of the window", Unit("packets")]
    variance: Annotated[Value, "Variance of the window", Unit("packets²")]

    @property
    def cv(self) -> Value:
        """Coefficient of variation: standard deviation divided by mean."""
        return plain(np.sqrt(self.variance) / self.mean)


@dataclass(frozen=True, slots=True)
class Stationary:
    """Stationary distribution of a window law under random losses."""

    p: Annotated[float, "Probability that a packet is lost"]
    rtt: OneRtt
    grid: Annotated[Array, "Windows in ascending order", Unit("packets")]
    over_time: Annotated[Array, "Probabilities of the grid's windows over time"]
    at_loss: Annotated[
        Array, "Probabilities of the grid's windows at a loss, just before the reduction"
    ]
    mean: Annotated[
        float,
        "Mean of the window over time; computed from the law's windows, not from the grid",
        Unit("packets"),
    ]
    variance: Annotated[
        float, "Variance of the window over time; computed as the mean", Unit("packets²")
    ]
    rate: Annotated[float, _RATE, Unit("packets/s")]
    loss_events: Annotated[float, _LOSS_EVENTS]
    epoch: Annotated[float, _EPOCH, Unit("s")]

    @property
    def cv(self) -> float:
        """Coefficient of variation of the window and of the rate."""
        return float(np.sqrt(self.variance) / self.mean)

    @property
    def rate_variance(self) -> float:
        """Variance over time of window / round-trip time, in packets²/s²."""
        return self.variance / self.rtt**2

    def quantile(
        self, q: Annotated[npt.ArrayLike, "Fractions of the time; above 0 and below 1"]
    ) -> Value:
        """Return quantiles of the window over time, in packets.

        Divided by the round-trip time they are quantiles of the rate.
        """
        shares = checks.fraction("q", q)
        return plain(np.interp(shares, np.cumsum(self.over_time), self._edges()[1:]))

    def density(self) -> tuple[Array, Array]:
        """Return the grid in packets and the density of the window over time in 1/packets."""
        return self.grid, np.asarray(self.over_time / np.diff(self._edges()))

    def _edges(self) -> Array:
        """Return the edges of the cells around the points of the grid."""
        middle = (self.grid[1:] + self.grid[:-1]) / 2
        return np.concatenate([self.grid[:1], middle, self.grid[-1:]])


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a stationary distribution: numbers, or arrays of one shape."""

    mean: Annotated[Value, "Mean of the window over time", Unit("packets")]
    cv: Annotated[Value, "Coefficient of variation of the window"]
    low: Annotated[Value, "Quantile of the window at 5 % of the time", Unit("packets")]
    median: Annotated[Value, "Quantile of the window at 50 % of the time", Unit("packets")]
    high: Annotated[Value, "Quantile of the window at 95 % of the time", Unit("packets")]
    rate: Annotated[Value, _RATE, Unit("packets/s")]
    loss_events: Annotated[Value, _LOSS_EVENTS]
    epoch: Annotated[Value, _EPOCH, Unit("s")]


def stationary(
    spec: Annotated[
        Spec,
        "A specification of a window law; its state after a loss depends only on the window there",
    ],
    p: Annotated[float, "Probability that a packet is lost; from 1e-6 to 0.5"],
    *,
    rtt: Annotated[
        float,
        "Round-trip time; affects the window only of laws that depend on clock time",
        Unit("s"),
    ] = law.RTT_S,
    ideal: Ideal = False,
    points: Annotated[int, "Number of grid points"] = POINTS,
    packet: law.PacketSize = law.PACKET_BYTES,
) -> Stationary:
    """Compute the stationary distribution of a window law under Bernoulli losses.

    The run time is proportional to ``points / p``: about a second at 200 points and ``p`` = 1e-4.
    The points are geometrically spaced. The error is proportional to their inverse square.

    Raises
    ------
    ArgumentError
        A law with more memory, whose chain has several dimensions.

    Examples
    --------
    >>> tcp = stationary("reno", 1e-3, rtt=0.1)
    >>> round(tcp.mean, 1), round(tcp.cv, 2), round(tcp.rate), round(tcp.loss_events, 6)
    (40.6, 0.42, 406, 0.000954)
    """
    name = law.specification(spec)
    chance = float(checks.between("p", p, MIN_P, 0.5))
    size = int(checks.whole("points", points, 10, 5000))
    if not law.forgets(spec, rtt=rtt, packet=packet):
        raise ArgumentError(
            "spec",
            f"{name} has more memory than the window at the last loss: its chain has more than one"
            " dimension",
        )

    def solve(low: float, top: float, size: int) -> tuple[Array, Array, Array, Array]:
        grid = np.geomspace(low, top, size)
        moves, stays, sums = law.step(
            _native.loss_chain,
            spec,
            grid,
            chance,
            tail=TAIL,
            ideal=ideal,
            rtt=float(checks.positive("rtt", rtt)),
            packet=packet,
        )
        return grid, _stationary_vector(moves), stays, sums

    # Find the range of the window on a coarse grid.
    top = 8 / np.sqrt(chance) + 8
    while True:
        grid, at_loss, stays, _ = solve(1.0, top, COARSE)
        if at_loss[-1] <= TAIL:
            break
        top *= 1.5
        if top > MAX_TOP:
            raise ArgumentError("spec", f"{name} has no stationary window at p = {chance:g}")
    visited = at_loss + at_loss @ stays
    low = grid[max(np.flatnonzero(np.cumsum(visited) > TAIL)[0] - 1, 0)]
    beyond = np.cumsum(visited[::-1])[::-1]
    top = grid[min(np.flatnonzero(beyond > TAIL)[-1] + 1, COARSE - 1)]
    grid, at_loss, stays, sums = solve(low, top, size)
    rounds, window, square, _, packets = at_loss @ sums
    mean = window / rounds
    over_time = at_loss @ stays
    return Stationary(
        p=chance,
        rtt=rtt,
        grid=grid,
        over_time=over_time / over_time.sum(),
        at_loss=at_loss,
        mean=float(mean),
        variance=float(square / rounds - mean**2),
        rate=float(packets / rounds / rtt),
        loss_events=float(1 / packets),
        epoch=float(rounds * rtt),
    )


def figures(
    spec: law.WindowLaw,
    p: Annotated[npt.ArrayLike, "Probabilities that a packet is lost; from 1e-6 to 0.5"],
    *,
    rtt: OneRtt = law.RTT_S,
    ideal: Ideal = False,
) -> Figures:
    """Summarise the stationary distribution at one or many loss rates.

    Ott, Kemperman and Mathis 1996, for any law without memory beyond its window at a loss.

    Examples
    --------
    >>> f = figures("aimd(0.31, 1/8)", 1e-2)
    >>> round(f.mean, 1), round(f.cv, 3), round(f.low, 1), round(f.high, 1)
    (15.2, 0.186, 10.9, 20.2)
    """
    chances = checks.between("p", p, MIN_P, 0.5)
    runs = [stationary(spec, float(chance), rtt=rtt, ideal=ideal) for chance in chances.flat]
    shares = [0.05, 0.5, 0.95]
    rows = [
        [r.mean, r.cv, *np.ravel(r.quantile(shares)), r.rate, r.loss_events, r.epoch] for r in runs
    ]
    columns = np.array(rows, dtype=float).reshape(*chances.shape, -1)
    return Figures(*(plain(columns[..., i]) for i in range(columns.shape[-1])))


def aimd_moments(
    alpha: Increase,
    beta: Annotated[
        npt.ArrayLike, "Fraction of the window given up on a loss; from 0.0001 to below 1"
    ],
    p: Annotated[npt.ArrayLike, "Probability that a packet is lost; small"],
) -> Moments:
    """Return mean and variance of AIMD's window over time in the limit of small ``p``.

    With ``X = W² / 2`` at a loss, ``X' = (1 - beta)² X + alpha E``, E exponential of mean ``1 /
    p``: growth by ``alpha / W`` for each packet is growth of ``X`` by ``alpha``. The moments of
    such a sum are ``E X^s = (alpha / p)^s Γ(1 + s) Π (1 - c^(k + s)) / (1 - c^k)``, k = 1, 2, …,
    with ``c = (1 - beta)²`` (for TCP: Ott, Kemperman and Mathis, *The stationary behavior of ideal
    TCP congestion avoidance*, 1996). The mean time between losses is ``beta W / alpha`` round-trip
    times, in which ``1 / p`` packets are sent, so that the mean window is ``alpha / (p beta E W)``.
    The second moment follows from equal gains and losses, ``alpha = p beta E W²``.

    Examples
    --------
    The constant of the square-root law under random losses, and TCP's coefficient of variation:

    >>> tcp = aimd_moments(1, 1/2, 1e-6)
    >>> round(tcp.mean * 1e-3, 4), round(tcp.cv, 4)
    (1.3098, 0.4071)
    """
    # The series has about 20 / beta factors.
    b = checks.between("beta", checks.fraction("beta", beta), MIN_BETA, 1)
    a, b, chance = np.broadcast_arrays(
        checks.positive("alpha", alpha), b, checks.probability("p", p)
    )
    from scipy.special import gamma

    c = (1 - b) ** 2
    half = np.full(c.shape, gamma(1.5))
    power = c.copy()
    # Until the factors are 1 in double precision.
    while (power > 1e-17).any():
        half = half * (1 - power * np.sqrt(c)) / (1 - power)
        power = power * c
    mean = np.sqrt(a / (2 * chance)) / (b * half)
    return Moments(plain(mean), plain(a / (b * chance) - mean**2))


def _stationary_vector(moves: Array) -> Array:
    """Solve v P = v for a transition matrix with row sums of 1."""
    size = len(moves)
    system = moves.T - np.eye(size)
    system[-1] = 1.0
    right = np.zeros(size)
    right[-1] = 1.0
    return np.asarray(np.clip(np.linalg.solve(system, right), 0.0, None))


document(globals())
