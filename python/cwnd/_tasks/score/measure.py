"""Runs of a candidate on networks: what the score and the explanation need of each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cwnd import metrics
from cwnd._runs.measures import values
from cwnd._runs.run import measure
from cwnd._runs.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cwnd._base.records import FlowRecord, JsonObject
    from cwnd._runs.result import Result
    from cwnd._tasks.score.suite import Network

SECONDS = 10.0
"""Wall time after which a run of a candidate is stopped, for each of its networks."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The longest time in which the window was too small for the path after a reduction."""

    cause: str
    at_s: float
    seconds: float
    """Until the window filled the path again, or until the end."""
    returned: bool
    window: float
    """Window in packets that fills the path, or that of before the reduction if it is smaller."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures of one run; rates are of payload."""

    flows: int
    """Number of flows of the candidate."""
    goodput_bps: float
    """Of all of them."""
    capacity_bps: float
    """Payload that the link can carry."""
    other_bps: float | None
    """Goodput of the other controller's flow."""
    slowest_bps: float
    fastest_bps: float
    jain: float
    base_rtt_s: float
    queue_delay_s: float
    """Mean."""
    dropped: float
    """Packets that the queue dropped, as a part of those that arrived."""
    timeouts: int
    mean_window: float
    """Of the first flow."""
    recovery: Recovery | None


class Overtime(Exception):  # noqa: N818
    """A run took too long."""


def run_networks(
    controller: str,
    networks: Sequence[Network],
    seed: int,
    *,
    seconds: float,
    threads: int = 0,
    made: Callable[[int, Facts], None],
) -> None:
    """Simulate a controller on networks; ``made`` is called with the place and facts of each.

    `Overtime` is raised when the runs take longer than ``seconds`` together.
    """
    jobs = [(Scenario(network.scenario(controller)), seed) for network in networks]
    measure(
        jobs,
        lambda place, result: made(place, facts(result, networks[place])),
        progress=limit(seconds),
        threads=threads,
    )


def run_metrics(
    jobs: Sequence[tuple[JsonObject, int]],
    metrics: Sequence[str],
    *,
    seconds: float,
    threads: int = 0,
) -> list[list[float]]:
    """Simulate scenarios with a seed each, and return some metrics of each.

    `Overtime` is raised when the runs take longer than ``seconds`` together.
    """
    return measure(
        [(Scenario(document), seed) for document, seed in jobs],
        lambda _, result: values(result, metrics),
        progress=limit(seconds),
        threads=threads,
    )


def limit(seconds: float) -> Callable[[float], None]:
    """Return a function for the progress of runs, which raises `Overtime` after some seconds."""
    end = time.monotonic() + seconds

    def progress(_: float) -> None:
        if time.monotonic() > end:
            raise Overtime

    return progress


def facts(result: Result, network: Network) -> Facts:
    """Return the figures of a run."""
    flows = [flow for flow in result.record["flows"] if flow["name"].startswith("candidate")]
    others = [flow for flow in result.record["flows"] if flow not in flows]
    first = flows[0]
    payload = 1 - first["header_bytes"] / first["packet_bytes"]
    rates = result.goodputs_bps(flows) or [0.0]
    link = result.bottleneck
    delay = link["delay"]["mean"]
    return Facts(
        flows=len(flows),
        goodput_bps=sum(rates),
        capacity_bps=network.capacity_bps * payload,
        other_bps=result.total_goodput_bps(others) if others else None,
        slowest_bps=min(rates),
        fastest_bps=max(rates),
        jain=metrics.jain(rates) if any(rates) else 0.0,
        base_rtt_s=first["base_rtt_s"],
        queue_delay_s=delay if np.isfinite(delay) else 0.0,
        dropped=link["drops"] / max(link["offered"], 1),
        timeouts=sum(flow["timeouts"] for flow in flows),
        mean_window=first["mean_window"],
        recovery=_longest_recovery(result, first, network.path_packets),
    )


def _longest_recovery(result: Result, flow: FlowRecord, path: float) -> Recovery | None:
    """Return the reduction after which the window was below that of the path for longest."""
    found = None
    cuts, times, windows = flow["cuts"], result.time, flow["window"]
    for at, cause, before, after in zip(
        cuts["time"], cuts["cause"], cuts["before"], cuts["after"], strict=True
    ):
        target = min(before, path)
        if after >= target:
            continue
        later = times > at
        reached = times[later & (windows >= target)]
        end = float(reached[0]) if reached.size else result.duration_s
        seconds = end - float(at)
        if found is None or seconds > found.seconds:
            found = Recovery(cause, float(at), seconds, bool(reached.size), float(target))
    return found


def from_json(plain: JsonObject) -> Facts:
    """Return facts from those of `dataclasses.asdict`."""
    recovery = plain["recovery"]
    return Facts(**{**plain, "recovery": recovery and Recovery(**recovery)})
