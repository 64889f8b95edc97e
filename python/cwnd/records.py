"""The shapes of what the simulator returns, as it returns it.

Times are in seconds. Counters run from the end of the warm-up to the end of the run; series cover
the whole run, at the times of ``RunRecord["time"]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing import Any

Series: TypeAlias = npt.NDArray[np.float64]
"""One number for each sample."""

JsonObject: TypeAlias = "dict[str, Any]"
"""What a JSON object is in Python."""


class Limited(TypedDict):
    """Seconds in which each thing kept a flow from sending more."""

    window: float
    pacing: float
    receiver: float
    application: float


class CutsRecord(TypedDict):
    """The cuts of a flow's window in the whole run; causes are loss, mark and timeout."""

    time: Series
    cause: list[str]
    before: Series
    after: Series


class FlowRecord(TypedDict):
    """What one traffic source did; its kind is tcp, cbr or pareto."""

    name: str
    controller: str
    kind: str
    measured: bool
    packet_bytes: int
    start_s: float
    stop_s: float
    completed_s: float
    packets_sent: int
    packets_delivered: int
    retransmissions: int
    packets_lost: int
    packets_marked: int
    timeouts: int
    ecn_cuts: int
    limited: Limited
    mean_rtt_s: float
    min_rtt_s: float
    mean_window: float
    cuts: CutsRecord
    window: Series
    ssthresh: Series
    rtt: Series
    sent: Series
    delivered: Series
    gauges: dict[str, Series]


class KernelFlowRecord(FlowRecord):
    """What a connection of the kernel's TCP did, as far as a controller sees it.

    Series have one number for each event that tells the window, at ``time``; ``port`` is the one
    here. ``measured`` is whether it
    was seen from its beginning on; its losses are what it sent again. ``agreement`` are the steps
    that were compared with the law, the cuts among them, and the largest difference as a part of
    the window.
    """

    port: int
    time: Series
    agreement: tuple[int, int, float] | None


class KernelInstance(TypedDict):
    """A controller that is loaded into the kernel."""

    name: str
    controller: str
    default: bool


class DelayRecord(TypedDict):
    """Queueing delay in seconds."""

    mean: float
    p50: float
    p95: float
    p99: float


class LinkRecord(TypedDict):
    """What one link did; ``losses`` are those of the link itself, ``drops`` those of its queue."""

    name: str
    rate_bps: float
    delay_s: float
    arrivals: int
    departures: int
    drops: int
    marks: int
    losses: int
    bytes_departed: int
    utilization: float
    mean_queue: float
    queue_limit: float
    delay: DelayRecord
    queue: Series
    drops_series: Series


class EngineRecord(TypedDict):
    """What the run cost: packets sent by all sources, events handled, seconds of wall clock."""

    packets: int
    events: int
    wall_s: float


class RunRecord(TypedDict):
    """One run of one scenario with one seed."""

    scenario: str
    seed: int
    duration_s: float
    warmup_s: float
    engine: EngineRecord
    time: Series
    flows: list[FlowRecord]
    links: list[LinkRecord]


class RealRecord(TypedDict):
    """A run in real time, over an emulated network.

    ``limit`` is why the tool, and not the network, was the limit, if it was. ``notes`` are what of
    the scenario the reality cannot do, or does in another way, a sentence each.
    """

    record: RunRecord
    limit: str | None
    notes: list[str]


class Compiled(TypedDict):
    """What a scenario is compiled to."""

    flows: int
    links: list[str]
    duration_s: float


class ParameterRecord(TypedDict):
    """A parameter of an algorithm; ``choices`` is empty when it is a number."""

    name: str
    symbol: str
    meaning: str
    unit: str
    default: str
    range: str
    choices: list[str]


class AlgorithmRecord(TypedDict):
    """An algorithm of the registry; its kind is window, rate or whole."""

    name: str
    title: str
    kind: str
    summary: str
    source: str
    equations: list[str]
    deviations: list[str]
    parameters: list[ParameterRecord]
