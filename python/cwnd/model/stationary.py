"""The stationary distribution of a window law under random losses, by the law's own code.

Each packet is lost with probability ``p``, independently of all others (the loss model of section 3
of the SIMD paper, of Ott, Kemperman and Mathis 1996, and of the scenario ``random-loss``). The
windows at successive losses are then a Markov chain, if the window at a loss is all that the law
remembers of the past. It is put on a grid: from each point the law is cut and grown,
acknowledgement by acknowledgement, each of which may be the last with probability ``p``; windows
between two points are split so that the mean is kept. The stationary vector weighs what the epochs
take, which gives the distribution over time.

What surrounds the law is modelled so:

* The loss of a packet is found when the next one's acknowledgement comes; all packets before it
  have been acknowledged and have grown the window.
* Then a round-trip time of recovery passes at the window that the law leaves. Nothing grows, and
  nothing that was in flight behind the lost packet cuts again if it is lost. What is sent in
  recovery grows the window after it, and is answered if it is lost.
* Whole packets are sent: what the window says without its fraction. The acknowledgements of a round
  are spread evenly, by the window that was sent in the round before.
* There are no timeouts, no slow start, no largest window; the smallest window is 1 packet.

In the ideal of Ott, Kemperman and Mathis there is no recovery, and fractions of packets are sent.
The GAIMD paper (section 2.2) leaves the variance of the sending rate open: here it is for any such
law, and by `aimd_moments` in closed form for AIMD at small ``p``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cwnd import _native
from cwnd.errors import ArgumentError
from cwnd.model import checks, law
from cwnd.model.checks import plain

if TYPE_CHECKING:
    import numpy.typing as npt

    from cwnd.controller import Spec
    from cwnd.model.checks import Array, Value

POINTS = 200
LEAST_P = 1e-6
TAIL = 1e-9
"""Probability of an epoch that goes on beyond what is followed, and of a loss at the grid's top."""
WIDEST = 1e9
COARSE = 50


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and spread of a window over time, in packets: numbers, or arrays of one shape.

    Attributes
    ----------
    mean, variance
        Of the window; packets and their square.
    """

    mean: Value
    variance: Value

    @property
    def cv(self) -> Value:
        """The coefficient of variation: standard deviation over mean."""
        return plain(np.sqrt(self.variance) / self.mean)


@dataclass(frozen=True, slots=True)
class Stationary:
    """A window law under random losses, in the long run.

    Attributes
    ----------
    p, rtt
        The probability that a packet is lost, and the round-trip time in seconds.
    grid
        Windows in packets, ascending.
    over_time, at_loss
        Probabilities of the grid's windows: at a time, and at a loss just before the cut.
    mean, variance
        Of the window over time, in packets and their square; not of the grid but of what the law
        passes through.
    rate
        Packets sent in a second, retransmissions included.
    loss_events
        Cuts for each packet sent; below ``p``, because losses of one round are answered once.
    epoch
        Mean time between two cuts, in seconds.
    """

    p: float
    rtt: float
    grid: Array
    over_time: Array
    at_loss: Array
    mean: float
    variance: float
    rate: float
    loss_events: float
    epoch: float

    @property
    def cv(self) -> float:
        """The coefficient of variation of the window, and of the rate: deviation over mean."""
        return float(np.sqrt(self.variance) / self.mean)

    @property
    def rate_variance(self) -> float:
        """Variance over time of window / round-trip time, in packets²/s²."""
        return self.variance / self.rtt**2

    def quantile(self, q: npt.ArrayLike) -> Value:
        """Return windows in packets that are not exceeded for a share of the time.

        Divided by the round-trip time they are quantiles of the rate.

        Parameters
        ----------
        q
            Shares of the time, above 0 and below 1.

        Raises
        ------
        ArgumentError
            A share out of its range.
        """
        shares = checks.fraction("q", q)
        return plain(np.interp(shares, np.cumsum(self.over_time), self._edges()[1:]))

    def density(self) -> tuple[Array, Array]:
        """Return the density of the window over time.

        Returns
        -------
        windows, density
            The grid, in packets, and the density there, in 1/packets.
        """
        return self.grid, np.asarray(self.over_time / np.diff(self._edges()))

    def _edges(self) -> Array:
        """Return the bounds of the cells around the points of the grid."""
        middle = (self.grid[1:] + self.grid[:-1]) / 2
        return np.concatenate([self.grid[:1], middle, self.grid[-1:]])


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a stationary distribution: numbers, or arrays of one shape.

    Attributes
    ----------
    mean, cv
        Of the window over time: packets, and the standard deviation over the mean.
    low, median, high
        Windows that are not exceeded for 5, 50 and 95 % of the time, in packets.
    rate, loss_events, epoch
        As in `Stationary`: packets/s, cuts for each packet, seconds.
    """

    mean: Value
    cv: Value
    low: Value
    median: Value
    high: Value
    rate: Value
    loss_events: Value
    epoch: Value


def stationary(
    spec: Spec,
    p: float,
    *,
    rtt: float = law.RTT_S,
    ideal: bool = False,
    points: int = POINTS,
    packet: int = law.PACKET_BYTES,
) -> Stationary:
    """Find the stationary distribution of a window law under Bernoulli losses.

    The time it takes goes with ``points / p``: a second or so at 200 points and ``p`` = 1e-4.

    Parameters
    ----------
    spec
        A specification of a window law that remembers nothing but the window at the last loss.
    p
        Probability that a packet is lost, from 1e-6 to 0.5.
    rtt
        Round-trip time in seconds; it changes the window of laws that know clock time, else only
        the rate.
    ideal
        Whether a loss costs no round-trip time of recovery and each loss is answered.
    points
        Points of the grid; its windows grow geometrically. The error goes with their inverse
        square.
    packet
        Bytes in a packet.

    Returns
    -------
    Stationary
        Distribution, moments, rate and losses.

    Raises
    ------
    ArgumentError
        Something out of its range; a law with more memory, whose chain has more than one dimension.
    SpecError
        Not a window law of the registry.

    Examples
    --------
    >>> tcp = stationary("reno", 1e-3, rtt=0.1)
    >>> round(tcp.mean, 1), round(tcp.cv, 2), round(tcp.rate), round(tcp.loss_events, 6)
    (40.6, 0.42, 406, 0.000954)
    """
    name = law.specification(spec)
    chance = float(checks.between("p", p, LEAST_P, 0.5))
    size = int(checks.between("points", checks.whole("points", points), 10, 5000))
    if not law.forgets(spec, rtt=rtt, packet=packet):
        raise ArgumentError(
            "spec",
            f"{name} remembers more than the window at the last loss: its chain has more than one"
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

    # On a coarse grid first: how far the window gets.
    top = 8 / np.sqrt(chance) + 8
    while True:
        grid, at_loss, stays, _ = solve(1.0, top, COARSE)
        if at_loss[-1] <= TAIL:
            break
        top *= 1.5
        if top > WIDEST:
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
    spec: Spec, p: npt.ArrayLike, *, rtt: float = law.RTT_S, ideal: bool = False
) -> Figures:
    """Return figures of the stationary distribution, at one or many loss rates.

    Ott, Kemperman and Mathis 1996, for any law that remembers no more than its window at a loss.

    Parameters
    ----------
    spec
        A specification of a window law.
    p
        Probabilities that a packet is lost, from 1e-6 to 0.5.
    rtt
        Round-trip time in seconds.
    ideal
        Whether a loss costs no round-trip time of recovery and each loss is answered.

    Raises
    ------
    ArgumentError, SpecError
        As for `stationary`.

    Examples
    --------
    >>> f = figures("aimd(0.31, 1/8)", 1e-2)
    >>> round(f.mean, 1), round(f.cv, 3), round(f.low, 1), round(f.high, 1)
    (15.2, 0.186, 10.9, 20.2)
    """
    chances = checks.between("p", p, LEAST_P, 0.5)
    runs = [stationary(spec, float(chance), rtt=rtt, ideal=ideal) for chance in chances.flat]
    shares = [0.05, 0.5, 0.95]
    rows = [
        [r.mean, r.cv, *np.ravel(r.quantile(shares)), r.rate, r.loss_events, r.epoch] for r in runs
    ]
    columns = np.array(rows, dtype=float).reshape(*chances.shape, -1)
    return Figures(*(plain(columns[..., i]) for i in range(columns.shape[-1])))


def aimd_moments(alpha: npt.ArrayLike, beta: npt.ArrayLike, p: npt.ArrayLike) -> Moments:
    """Return mean and variance of AIMD's window over time in the limit of small ``p``.

    With ``X = W² / 2`` at a loss, ``X' = (1 - beta)² X + alpha E``, E exponential of mean ``1 /
    p``: growth by ``alpha / W`` for each packet is growth of ``X`` by ``alpha``. The moments of
    such a sum are ``E X^s = (alpha / p)^s Γ(1 + s) Π (1 - c^(k + s)) / (1 - c^k)``, k = 1, 2, …,
    with ``c = (1 - beta)²`` (for TCP: Ott, Kemperman and Mathis, *The stationary behavior of ideal
    TCP congestion avoidance*, 1996). The time from a loss to the next is ``beta W / alpha``
    round-trip times in the mean, in which ``1 / p`` packets are sent, so that the mean window is
    ``alpha / (p beta E W)``. The square follows from gains and losses that balance, ``alpha = p
    beta E W²``.

    Parameters
    ----------
    alpha
        Packets gained in each round-trip time.
    beta
        The fraction given up (the GAIMD paper's is 1 minus that).
    p
        Probability that a packet is lost, small.

    Raises
    ------
    ArgumentError
        Something out of its range.

    Examples
    --------
    The constant of the square-root law under random losses, and TCP's spread:

    >>> tcp = aimd_moments(1, 1/2, 1e-6)
    >>> round(tcp.mean * 1e-3, 4), round(tcp.cv, 4)
    (1.3098, 0.4071)
    """
    a, b, chance = np.broadcast_arrays(
        checks.positive("alpha", alpha), checks.fraction("beta", beta), checks.probability("p", p)
    )
    from scipy.special import gamma

    c = (1 - b) ** 2
    half = np.full(c.shape, gamma(1.5))
    power = c.copy()
    # Until factors are 1 to the last bit.
    while (power > 1e-17).any():
        half = half * (1 - power * np.sqrt(c)) / (1 - power)
        power = power * c
    mean = np.sqrt(a / (2 * chance)) / (b * half)
    return Moments(plain(mean), plain(a / (b * chance) - mean**2))


def _stationary_vector(moves: Array) -> Array:
    """Solve v P = v for a matrix of transitions with rows that add up to 1."""
    size = len(moves)
    system = moves.T - np.eye(size)
    system[-1] = 1.0
    right = np.zeros(size)
    right[-1] = 1.0
    return np.asarray(np.clip(np.linalg.solve(system, right), 0.0, None))
