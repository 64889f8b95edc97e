"""The networks of the GAIMD paper, and what its section 2.4 measures on them.

The paper's β is the fraction of the window that is kept: its (0.31, 7/8) is what `gaimd(0.31, 7/8)`
means too, and what the model calls ``beta=1/8``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd.model.throughput import gaimd, gaimd_timeout_probability
from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.model.checks import Array
    from cwnd.result import Result

QUEUES = {
    "DropTail": ('"99p"', "ns2"),
    "RED": ('{ kind = "red", limit = "250p" }', "ns2"),
    "RED, 0.1 s clock": ('{ kind = "red", limit = "250p" }', "ns2-2001"),
}
"""By what they are called: the queue, and whose conventions the flows follow."""

CLOCK = {"ns2": (0.01, 0.2), "ns2-2001": (0.1, 0.2)}
"""Granularity of the retransmission timer and its least value, in seconds."""


def validation(
    alpha: float, kept: float, sources: int, network: str, duration: float = 120.0
) -> Scenario:
    """Give section 2.4's network: 16 GAIMD flows, 16 of Reno, and ON/OFF sources.

    Parameters
    ----------
    alpha
        Increase in packets per round-trip time.
    kept
        Fraction of the window kept at a loss, the paper's β.
    sources
        How many ON/OFF sources.
    network
        One of `QUEUES`.
    duration
        Seconds.
    """
    head = f"""
name = "gaimd-validation"
duration = "{duration}s"
sample = "200ms"
"""
    laws = {"gaimd": f"gaimd({alpha}, {kept})", "reno": "reno"}
    return _mixed(head, network, "reno", laws, 16, sources)


def sharing(flows: int, queue: str, recovery: str, duration: float) -> Scenario:
    """Give the abstract's network: GAIMD(0.31, 7/8) and as many TCP flows share a link.

    Parameters
    ----------
    flows
        Of each.
    queue
        ``DropTail`` or ``RED``.
    recovery
        ``reno`` or ``sack``.
    duration
        Seconds; the first sixth is not measured.
    """
    head = f"""
name = "gaimd-sharing"
duration = "{duration}s"
warmup = "{duration / 6}s"
"""
    return _mixed(head, queue, recovery, {"gaimd": "gaimd(0.31, 7/8)", "tcp": "reno"}, flows, 10)


def _mixed(
    head: str, network: str, recovery: str, laws: dict[str, str], count: int, sources: int
) -> Scenario:
    """Give the paper's dumbbell with ``count`` flows of each law and ON/OFF sources."""
    queue, conventions = QUEUES[network]
    flows = "".join(
        f"""
[[flow]]
name = "{name}"
controller = "{law}"
count = {count}
start = "0s..10s"
"""
        for name, law in laws.items()
    )
    return Scenario.from_toml(f"""{head}
[dumbbell]
rate = "15mbit"
delay = "50ms"
queue = {queue}

[access]
rate = "100mbit"
delay = "0ms..10ms"

[tcp]
conventions = "{conventions}"
recovery = "{recovery}"
packet = 1000
{flows}
[[pareto]]
rate = "500kbit"
packet = 1000
on = "1s"
off = "2s"
shape = 1.5
count = {sources}
start = "0s..3s"
""")


def lossy(law: str, loss: float, duration: float) -> Scenario:
    """Give one flow a path of 100 ms that never queues and loses packets at random.

    Parameters
    ----------
    law
        Specification of the controller.
    loss
        Probability that a packet is lost.
    duration
        Seconds.
    """
    return Scenario.from_toml(f"""
name = "gaimd-lossy"
duration = "{duration}s"
sample = "1s"

[dumbbell]
rate = "1gbit"
delay = "50ms"
queue = "infinite"
loss = {loss}

[tcp]
conventions = "ns2"
recovery = "reno"
packet = 1000

[[flow]]
controller = "{law}"
""")


@dataclass(frozen=True, slots=True)
class Group:
    """Flows of one kind in section 2.4: one figure a flow.

    Attributes
    ----------
    loss
        Window reductions over packets sent.
    rate
        Packets per second, from the flow's start to the end.
    formula
        Eq. 2 with the flow's own loss rate, round-trip time and timeout, as `timer` has them.
    expiries
        Timeouts over window reductions.
    likely
        Q, which approximates the probability that a loss is found by a timeout.
    """

    loss: Array
    rate: Array
    formula: Array
    expiries: Array
    likely: Array

    @property
    def ratio(self) -> float:
        """Mean rate by the formula over the mean rate measured."""
        return float(self.formula.mean() / self.rate.mean())


class Seen(NamedTuple):
    """What was seen of the flows of one kind in a run of section 2.4: one figure a flow.

    Attributes
    ----------
    cuts, sent, expiries
        Window reductions, packets sent, timeouts.
    seconds
        From the flow's start to the end.
    rtt
        Samples of the round-trip time in seconds: one row a flow; NaN before the first.
    phases
        Where in a tick of its clock each of them was taken, 0 to 1.
    """

    cuts: Array
    sent: Array
    expiries: Array
    seconds: Array
    rtt: Array
    phases: Array


def see(result: Result, name: str) -> Seen:
    """Pick what is needed of the flows of one kind.

    Parameters
    ----------
    result
        A run of section 2.4's network.
    name
        What the flows are called.

    Returns
    -------
    Seen
        A flow that never measured a round-trip time or never lost a packet is left out: for it
        the formula has no rate.
    """
    flows = [
        flow
        for flow in result.record["flows"]
        if flow["name"].startswith(name) and flow["mean_rtt_s"] > 0 and flow["cuts"]["time"].size
    ]
    rtt = np.array([flow["rtt"] for flow in flows]).reshape(len(flows), result.time.size)
    return Seen(
        np.array([float(flow["cuts"]["time"].size) for flow in flows]),
        np.array([float(flow["packets_sent"]) for flow in flows]),
        np.array([float(flow["timeouts"]) for flow in flows]),
        result.duration_s - np.array([flow["start_s"] for flow in flows]),
        rtt,
        np.random.default_rng(result.seed).random(rtt.shape),
    )


def see_both(result: Result) -> tuple[Seen, Seen]:
    """Pick what is needed of GAIMD's flows and of Reno's."""
    return see(result, "gaimd"), see(result, "reno")


def group(
    seen: Sequence[Seen], pair: tuple[float, float], clock: tuple[float, float]
) -> list[Group]:
    """Give the formula what flows of one kind saw.

    Parameters
    ----------
    seen
        What was seen in runs of one length.
    pair
        The flows' increase, and the fraction of the window they keep.
    clock
        Granularity of the retransmission timer and its least value, in seconds.

    Returns
    -------
    list of Group
        One a run.
    """
    # All runs in one go: the timer takes a step a sample, whatever the number of flows.
    ends = np.cumsum([len(run.sent) for run in seen])[:-1]
    times = timer(
        np.concatenate([run.rtt for run in seen]),
        clock,
        np.concatenate([run.phases for run in seen]),
    )
    alpha, kept = pair
    return [
        Group(
            loss := run.cuts / run.sent,
            run.sent / run.seconds,
            np.asarray(gaimd(loss, rtt, rto, alpha=alpha, beta=1 - kept)),
            run.expiries / run.cuts,
            np.asarray(gaimd_timeout_probability(loss, alpha=alpha, beta=1 - kept)),
        )
        for run, rtt, rto in zip(seen, *(np.split(time, ends) for time in times), strict=True)
    ]


def both(
    seen: Sequence[tuple[Seen, Seen]], pair: tuple[float, float], clock: tuple[float, float]
) -> list[tuple[Group, Group]]:
    """Measure GAIMD's flows and Reno's.

    Parameters
    ----------
    seen
        What `see_both` gave, one a run.
    pair
        The increase of the GAIMD flows, and the fraction of the window they keep.
    clock
        Granularity of the retransmission timer and its least value, in seconds.

    Returns
    -------
    list of tuple
        One a run.
    """
    ours, reno = zip(*seen, strict=True)
    return list(zip(group(ours, pair, clock), group(reno, (1.0, 0.5), clock), strict=True))


def timer(samples: Array, clock: tuple[float, float], phases: Array) -> tuple[Array, Array]:
    """Give what the timer of each flow makes of round-trip times, by ns-2's arithmetic.

    It counts whole ticks, and drops fractions in such a way that the smoothed round-trip time is
    0.4 ticks too long.

    Parameters
    ----------
    samples
        Round-trip times in seconds: one row a flow, about one sample a round-trip time; NaN before
        the first.
    clock
        Granularity of the timer and its least value, in seconds.
    phases
        Where in a tick each packet was sent, 0 to 1: as many as samples.

    Returns
    -------
    rtt, rto : ndarray
        Mean smoothed round-trip time and mean timeout, not backed off, of each flow in seconds.

    Examples
    --------
    >>> phases = np.random.default_rng(1).random((1, 4000))
    >>> rtt, rto = timer(np.full((1, 4000), 0.15), (0.1, 0.2), phases)
    >>> rtt.round(2).tolist(), rto.round(1).tolist()
    ([0.19], [0.5])
    """
    step, least = clock
    smooth = np.zeros(samples.shape[0], dtype=np.int64)
    spread, rtt, rto = smooth.copy(), np.zeros(smooth.shape), np.zeros(smooth.shape)
    there = np.isfinite(samples).T
    taken = np.maximum(np.where(there, samples.T, 0.0) / step + phases.T, 1).astype(np.int64)
    for known, ticks in zip(there, taken, strict=True):
        first = known & (smooth == 0)
        error = ticks - (smooth >> 3)
        spread = np.where(known, spread + np.abs(error) - (spread >> 2), spread)
        smooth = np.where(known, smooth + error, smooth)
        smooth, spread = np.where(first, ticks << 3, smooth), np.where(first, ticks << 1, spread)
        rtt += np.where(known, smooth / 8 * step, 0.0)
        rto += np.where(known, np.maximum((((spread << 3) + smooth) >> 3) * step, least), 0.0)
    count = there.sum(axis=0)
    return rtt / count, rto / count


@dataclass(frozen=True, slots=True)
class Shares:
    """What GAIMD and TCP flows got of a link they shared.

    Attributes
    ----------
    ratio
        Throughput of a GAIMD flow over that of a TCP flow.
    gaimd, tcp
        Coefficient of variation of a flow's throughput over ten round-trip times, mean of each
        kind.
    """

    ratio: float
    gaimd: float
    tcp: float


def shares(result: Result) -> Shares:
    """Measure how flows share a link.

    Parameters
    ----------
    result
        A run of the abstract's network.
    """
    flows = result.measured_flows
    half = len(flows) // 2
    sent = np.array([float(flow["packets_sent"]) for flow in flows])
    scale = result.scales[1]
    spread = np.array([result.smoothness(flow, [scale])[scale] for flow in flows])
    return Shares(
        float(sent[:half].mean() / sent[half:].mean()),
        float(np.nanmean(spread[:half])),
        float(np.nanmean(spread[half:])),
    )
