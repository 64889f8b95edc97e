"""Types of the records that the simulator returns.

Times are in seconds. Counters cover the run without the warm-up; series cover the whole run, at
the times of ``RunRecord["time"]``.
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
"""A JSON object."""


class Limited(TypedDict):
    """Seconds for which each limit held back a flow."""

    window: float
    pacing: float
    receiver: float
    application: float


class CutsRecord(TypedDict):
    """Window reductions of a flow in the whole run; causes are loss, mark and timeout."""

    time: Series
    cause: list[str]
    before: Series
    after: Series


class TransfersRecord(TypedDict):
    """Transfers of an application: on periods, responses or chunks, one value each.

    A transfer begins when it is requested or first written, and ends when the sender receives the
    acknowledgement of its last byte; the end is NaN if it is incomplete.
    """

    begin: Series
    bytes: Series
    end: Series


class FlowRecord(TypedDict):
    """Record of one traffic source; its kind is tcp, udt, cbr or pareto.

    ``path`` has the indices of the links from source to sink, and ``base_rtt_s`` is the least
    propagation time, both ways. ``header_bytes`` are those of a data packet, 0 for a source whose
    packets are given on the wire.
    ``application`` has the figures of a ``video`` or ``media`` source by name.
    ``transfers`` belong to an application (``source``). A flow of ``bytes`` bytes without one is a
    single transfer from ``start_s`` to ``acknowledged_s``: `flow_groups.transfers` returns it.
    At ``completed_s`` all data had arrived, and at ``acknowledged_s`` the sender knew. Data is
    delivered when it arrives for the first time, in any order; a SYN is no data. ``sent`` and
    ``delivered`` count packets since the start, ``sent_bytes`` and ``delivered_bytes`` the bytes of
    their payload.
    """

    name: str
    controller: str
    kind: str
    measured: bool
    packet_bytes: int
    header_bytes: int
    path: tuple[int, ...]
    base_rtt_s: float
    start_s: float
    stop_s: float
    completed_s: float
    acknowledged_s: float
    bytes: int | None
    transfers: TransfersRecord | None
    application: dict[str, float]
    packets_sent: int
    bytes_sent: int
    packets_delivered: int
    bytes_delivered: int
    packets_received: int
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
    sent_bytes: Series
    delivered: Series
    delivered_bytes: Series
    gauges: dict[str, Series]


class KernelFlowRecord(FlowRecord):
    """Record of a connection of the kernel's TCP, as far as its controller observes it.

    Series have one value for each event that reports the window, at ``time``. ``port`` is the local
    port. ``measured`` tells whether the trace covers the connection from its beginning. ``losses``
    are its retransmissions. ``agreement`` holds the number of steps replayed through the law, the
    number of cuts among them, and the largest deviation relative to the window.
    """

    port: int
    time: Series
    agreement: tuple[int, int, float] | None


class KernelInstance(TypedDict):
    """A controller loaded into the kernel."""

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
    """Record of one link; ``losses`` occur on the link itself, ``drops`` in its queue.

    ``token_rate_bps`` is the lowest rate of a policer or a shaper, infinite without one.
    ``capacity_bps`` is the mean rate of each sampling interval, empty if the rate is constant.
    ``offered`` are the packets of which ``drops``, ``marks`` and ``losses`` are a part.
    ``queue_limit`` is in ``queue_limit_unit``: packets or bytes.
    """

    name: str
    rate_bps: float
    token_rate_bps: float
    delay_s: float
    arrivals: int
    offered: int
    departures: int
    drops: int
    marks: int
    losses: int
    bytes_departed: float
    utilization: float
    mean_queue: float
    queue_limit: float
    queue_limit_unit: str
    delay: DelayRecord
    queue: Series
    drops_series: Series
    capacity_bps: Series


class EngineRecord(TypedDict):
    """Cost of a run: packets sent by all sources, events processed, wall-clock seconds."""

    packets: int
    events: int
    wall_s: float


class RunRecord(TypedDict):
    """One run of one scenario with one seed.

    ``conventions`` has the conventions of the TCP flows, each once; empty in real time.
    """

    scenario: str
    seed: int
    duration_s: float
    warmup_s: float
    conventions: list[str]
    engine: EngineRecord
    time: Series
    flows: list[FlowRecord]
    links: list[LinkRecord]


class RealRecord(TypedDict):
    """A run in real time, over an emulated network.

    ``limit`` is the reason why the emulator, not the network, was the bottleneck, if it was.
    ``notes`` names parts of the scenario that the backend does not support or approximates.
    """

    record: RunRecord
    limit: str | None
    notes: list[str]


class Compiled(TypedDict):
    """Summary of a compiled scenario; ``conventions`` as in `RunRecord`."""

    flows: int
    links: list[str]
    duration_s: float
    conventions: list[str]


class ParameterRecord(TypedDict):
    """A parameter of an algorithm; ``choices`` is empty for a number."""

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
