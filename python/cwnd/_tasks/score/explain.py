"""Sentences that say where a candidate lost, in the terms of a law's writer."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cwnd._tasks.score.objectives import objectives, score_network
from cwnd.units import counted, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd._tasks.score.measure import Facts
    from cwnd._tasks.score.suite import Network

MOST = 10
"""Largest number of sentences."""

MOST_OF_ONE = 3
"""Largest number of sentences about one objective."""

LEAST = 0.02
"""Least relative loss of a network's score that is explained."""

FLOOR = 1e-3
"""Objectives below it count as this much in the order of the sentences."""


class _Loss(NamedTuple):
    """An objective that a reference reached better than the candidate."""

    size: float
    """Part of the network's score, relative, that this objective alone would regain."""
    objective: str
    network: Network
    own: Facts
    best: str
    other: Facts


def explain(
    networks: Sequence[Network],
    found: Sequence[Facts | str],
    references: Mapping[str, Sequence[Facts]],
    weights: Mapping[str, float],
) -> list[str]:
    """Return at most `MOST` sentences, the largest loss first.

    A network is compared with the reference that has the best score there.
    """
    losses = []
    faults: dict[str, list[str]] = {}
    for network, own in zip(networks, found, strict=True):
        if isinstance(own, str):
            faults.setdefault(own, []).append(network.label)
    failed = [
        f"{len(labels)} of {counted(len(networks), 'network')}, first {labels[0]}: {fault}."
        for fault, labels in faults.items()
    ]
    for place, (network, own) in enumerate(zip(networks, found, strict=True)):
        if isinstance(own, str):
            continue
        mine = objectives(own)
        best = max(
            references,
            key=lambda name: score_network(objectives(references[name][place]), weights),
        )
        other = references[best][place]
        theirs = objectives(other)
        total = sum(weights[name] for name in mine)
        for name, value in mine.items():
            ratio = max(theirs.get(name, 0), FLOOR) / max(value, FLOOR)
            size = 1 - ratio ** (-weights[name] / total)
            if size >= LEAST:
                losses.append(_Loss(size, name, network, own, best, other))
    losses.sort(key=lambda loss: -loss.size)
    said: Counter[str] = Counter()
    sentences = failed[:MOST_OF_ONE]
    for loss in losses:
        if len(sentences) < MOST and said[loss.objective] < MOST_OF_ONE:
            said[loss.objective] += 1
            sentences.append(f"{loss.network.label}: {_SENTENCES[loss.objective](loss)}.")
    return sentences


def _goodput(loss: _Loss) -> str:
    """Say why the goodput is low."""
    own, network = loss.own, loss.network
    used, theirs = (
        f"{100 * one.goodput_bps / one.capacity_bps:.0f} %" for one in (own, loss.other)
    )
    text = f"the goodput was {used} of the capacity ({loss.best} {theirs})"
    if own.timeouts > loss.other.timeouts:
        text += f", with {counted(own.timeouts, 'timeout')} ({loss.best} {loss.other.timeouts})"
    recovery = own.recovery
    if recovery is not None and recovery.seconds > 20 * own.base_rtt_s:
        cause = recovery.cause.replace("-", " ")
        begin = f"after the {cause} at {recovery.at_s:.1f} s the window"
        packets, lasted = f"{recovery.window:.0f} packets", f"{recovery.seconds:.2g} s"
        if recovery.returned:
            return f"{text}; {begin} needed {lasted} to return to {packets}"
        return f"{text}; {begin} had not returned to {packets} at the end, {lasted} later"
    if own.mean_window < network.path_packets:
        text += (
            f"; the mean window was {_packets(own.mean_window)}, "
            f"and the path holds {_packets(network.path_packets)} packets of each flow"
        )
    return text


def _delay(loss: _Loss) -> str:
    """Say how long packets wait."""
    own, other = (format_time(one.queue_delay_s, 2) for one in (loss.own, loss.other))
    base = format_time(loss.own.base_rtt_s, 3)
    mine, theirs = (_packets(one.mean_window) for one in (loss.own, loss.other))
    window = f"{mine} packets ({loss.best} {theirs})"
    return (
        f"packets waited {own} in the queue on average ({loss.best} {other}), beside a round-trip "
        f"time of {base}; the mean window was {window}"
    )


def _dropped(loss: _Loss) -> str:
    """Say how many packets the queue drops."""
    own, other = (_percent(one.dropped) for one in (loss.own, loss.other))
    return f"{own} of the packets were dropped by the queue ({loss.best} {other})"


def _fairness(loss: _Loss) -> str:
    """Say how flows share the link."""
    own, other = loss.own, loss.other
    if own.other_bps is not None and other.other_bps is not None:
        mine, theirs = (
            f"{100 * (one.other_bps or 0) / one.capacity_bps:.0f} %" for one in (own, other)
        )
        return (
            f"the other flow was left {mine} of the capacity ({loss.best} left {theirs}); half is "
            "its right"
        )
    mine, theirs = (_ratio(one) for one in (own, other))
    return f"the fastest flow had {mine} the rate of the slowest ({loss.best} {theirs})"


def _percent(part: float) -> str:
    """Format a part of packets."""
    return f"{100 * part:.2g} %"


def _packets(number: float) -> str:
    """Format a number of packets."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _ratio(one: Facts) -> str:
    """Format how much faster the fastest flow is."""
    times = one.fastest_bps / one.slowest_bps if one.slowest_bps > 0 else math.inf
    return f"{times:.2g} times" if times < 1000 else "more than 1000 times"


_SENTENCES = {"goodput": _goodput, "delay": _delay, "loss": _dropped, "fairness": _fairness}
