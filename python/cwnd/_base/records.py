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


# Begin of the types that bench/records.py generates.


class AcksRecord(TypedDict):
    """Acknowledgements and reports that a sender received; rates are in packets per second."""

    time: Series
    """Times in seconds."""
    window: Series
    """Congestion windows in packets after them."""
    in_flight: Series
    """Packets in flight after them; NaN for a report."""
    rtt: Series
    """Round-trip time samples in seconds; NaN without a sample."""
    pacing_rate: Series
    """Pacing rates after them; NaN without pacing."""
    delivery_rate: Series
    """Delivery-rate samples, and the arrival rates of reports; NaN for a controller that uses
    none."""


class Closed(TypedDict):
    """The end of a connection with an error."""

    at_s: float
    """Time in seconds."""
    reason: str
    """Which end closed it, and why."""


class CutsRecord(TypedDict):
    """Window reductions of a flow."""

    time: Series
    """Times in seconds."""
    cause: list[str]
    """`loss`, `mark`, `timeout` or `persistent-congestion`."""
    before: Series
    """Windows before the reductions."""
    after: Series
    """Windows after the reductions."""


class Delay(TypedDict):
    """Mean and percentiles of a delay in seconds."""

    mean: float
    """Mean."""
    p50: float
    """Median."""
    p95: float
    """95th percentile."""
    p99: float
    """99th percentile."""


class EngineRecord(TypedDict):
    """Cost of a run."""

    packets: int
    """Data packets sent by all sources, including the warm-up."""
    events: int
    """Events processed."""
    wall_s: float
    """Wall time in seconds: the only value that differs between equal runs."""


class FlowRecord(TypedDict):
    """Record of one traffic source."""

    name: str
    """Name in the scenario."""
    controller: str
    """Specification of the controller; empty without one."""
    kind: str
    """`tcp`, `udt`, `quic`, `cbr` or `pareto`."""
    measured: bool
    """Whether the metrics of the run include it; of a connection of the kernel, whether the trace
    has its beginning."""
    packet_bytes: int
    """Bytes of a data packet."""
    header_bytes: int
    """Bytes of its headers; 0 for a source whose packets are given on the wire."""
    path: tuple[int, ...]
    """Indices of the links from source to sink."""
    base_rtt_s: float
    """Least propagation time in seconds, both ways."""
    start_s: float
    """Scheduled start in seconds."""
    stop_s: float
    """Scheduled stop in seconds."""
    completed_s: float
    """Time in seconds at which all data had arrived at the receiver; NaN if some had not."""
    acknowledged_s: float
    """Time in seconds at which the sender received the acknowledgement of all data; NaN if it did
    not."""
    application: dict[str, float]
    """Figures of a `video` or `media` source by name, over the whole run."""
    packets_sent: int
    """Data packets sent, including retransmissions. A SYN is no data packet."""
    bytes_sent: int
    """Bytes of payload of the data packets sent."""
    packets_delivered: int
    """Data packets that arrived at the receiver for the first time, in any order."""
    bytes_delivered: int
    """Bytes of payload that arrived at the receiver for the first time."""
    packets_received: int
    """Data packets that arrived at the receiver, duplicates included."""
    packets_lost: int
    """Data packets dropped by queues or lost on links."""
    packets_marked: int
    """Data packets received with the CE codepoint."""
    retransmissions: int
    """Retransmitted packets."""
    timeouts: int
    """Retransmission timeouts."""
    ecn_cuts: int
    """Window reductions in response to ECN marks."""
    limited: Limited
    """Seconds for which `window`, `pacing`, the `receiver` or the `application` limited the
    sender."""
    mean_rtt_s: float
    """Mean round-trip time sample of the sender in seconds; NaN without samples."""
    min_rtt_s: float
    """Minimum round-trip time in seconds; NaN without samples."""
    window: Series
    """Congestion window in packets; flow window of a paced flow."""
    rtt: Series
    """Last round-trip time in seconds; NaN before the first sample."""
    sent: Series
    """Data packets sent so far."""
    sent_bytes: Series
    """Bytes of payload sent so far."""
    delivered: Series
    """Data packets that have arrived for the first time so far, in any order."""
    delivered_bytes: Series
    """Bytes of payload that have arrived for the first time so far."""
    gauges: dict[str, Series]
    """Variables of the controller by name."""
    mean_window: float
    """Time average of the window in packets."""
    cuts: CutsRecord
    """Window reductions in the whole run."""
    ssthresh: Series
    """Slow start threshold in packets."""
    acks: AcksRecord | None
    """Acknowledgements that the sender received, if they were recorded."""
    bytes: int | None
    """Bytes to send, if they are limited. Without an application they are a single transfer from
    `start_s` to `acknowledged_s`."""
    closed: Closed | None
    """The end of a connection with an error; `None` if it had none, and for other protocols than
    QUIC."""
    transfers: TransfersRecord | None
    """Transfers of an application (`source`)."""


class Limited(TypedDict):
    """Seconds for which each limit held back a flow."""

    window: float
    """The congestion window, or the flow window."""
    pacing: float
    """The pacing rate."""
    receiver: float
    """The receiver's window."""
    application: float
    """The data that the application had written."""


class LinkRecord(TypedDict):
    """Record of one direction of a link."""

    name: str
    """Name in the scenario."""
    rate_bps: float
    """Rate in bit/s; infinite without one."""
    token_rate_bps: float
    """Lowest token rate of a policer or a shaper in bit/s; infinite without one."""
    delay_s: float
    """Propagation delay in seconds."""
    arrivals: int
    """Packets that arrived at the queue."""
    offered: int
    """Packets of which `drops`, `losses` and `marks` are a part: the arrivals, and with disciplines
    that decide at departure those that waited at the end of the warm-up."""
    departures: int
    """Packets that left the queue for the transmitter."""
    drops: int
    """Packets dropped by the queue."""
    marks: int
    """Packets marked by the queue."""
    losses: int
    """Packets lost on the link after the queue."""
    bytes_departed: float
    """Bytes transmitted: a packet counts for the part of its transmission in the measured time."""
    utilization: float
    """`bytes_departed` divided by the bytes that the link could transmit: at its rate, at its mean
    rate if that varies, at most those for which a shaper has tokens. NaN for an infinite rate."""
    mean_queue: float
    """Time average of the queue length in packets."""
    delay: Delay
    """Queueing delay in seconds: `mean`, `p50`, `p95` and `p99`."""
    queue: Series
    """Queue length in packets at the sample times."""
    drops_series: Series
    """Packets dropped or lost so far, at the sample times."""
    capacity_bps: Series
    """Mean rate in bits per second that the link offers in the sampling interval that begins at
    each sample time; empty if the rate is constant."""
    queue_limit: float
    """Limit of the queue."""
    queue_limit_unit: str
    """Unit of `queue_limit`: `packets` or `bytes`."""


class TransfersRecord(TypedDict):
    """Transfers of an application: on periods, responses or chunks, one value each."""

    begin: Series
    """Times in seconds at which the data was requested or its writing began."""
    bytes: Series
    """Sizes in bytes."""
    end: Series
    """Times in seconds at which the sender received the acknowledgement of the last byte; NaN if
    incomplete."""


class RunRecord(TypedDict):
    """One run of one scenario with one seed."""

    scenario: str
    """Name of the scenario."""
    seed: int
    """Seed of the run."""
    duration_s: float
    """Length of the run in seconds."""
    warmup_s: float
    """Length of the warm-up in seconds, which no counter includes."""
    conventions: list[str]
    """Conventions of the TCP flows, each once, such as `linux`; empty in real time."""
    engine: EngineRecord
    """Cost of the run: `packets` sent by all sources, `events` processed, `wall_s` of wall time,
    which is the only figure that differs between equal runs."""
    notes: list[str]
    """Notes on parts of the scenario that have no effect, or that the backend does not support or
    approximates: one sentence each."""
    time: Series
    """Times of the samples of all series in seconds."""
    flows: list[FlowRecord]
    """Traffic sources in the order of the scenario."""
    links: list[LinkRecord]
    """Directions of the links in the order of the scenario."""


FLOW_COUNTERS = (
    "packets_sent",
    "bytes_sent",
    "packets_delivered",
    "bytes_delivered",
    "packets_received",
    "packets_lost",
    "packets_marked",
    "retransmissions",
    "timeouts",
)


LINK_COUNTERS = (
    "arrivals",
    "offered",
    "departures",
    "drops",
    "marks",
    "losses",
)


# End of these types.


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
    hash: str | None
    default: bool


class RealRecord(TypedDict):
    """A run in real time, over an emulated network.

    ``limit`` is the reason why the emulator, not the network, was the bottleneck, if it was.
    """

    record: RunRecord
    limit: str | None


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


class HookRecord(TypedDict):
    """A hook of a law in a file."""

    name: str
    cost_ns: int
    """The most nanoseconds that it takes, by the costs of its operations."""


class LawFaultRecord(TypedDict):
    """A fault of a law's text."""

    severity: str
    """``error`` or ``warning``."""
    line: int
    column: int
    """Of the first character, counted from 1."""
    length: int
    """Characters that are concerned."""
    message: str
    help: str | None
    """What to write instead."""


class LawDescriptionRecord(TypedDict):
    """What the text of a law describes."""

    name: str
    title: str
    kind: str
    """``window`` or ``rate``."""
    hash: str
    """The identity of the law, which comments and texts do not change."""
    parameters: list[str]
    states: list[str]
    hooks: list[HookRecord]


class LawRecord(TypedDict):
    """A law's text as its reader finds it."""

    law: LawDescriptionRecord | None
    """None if one of the faults is an error."""
    faults: list[LawFaultRecord]


class StateRecord(TypedDict):
    """A variable that a law in a file keeps."""

    name: str
    meaning: str


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
    states: list[StateRecord]
    hash: str | None
    """The identity of a law in a file."""
    mathml: list[tuple[str | None, str]]
    """The hook, if it is of one, and the MathML of each equation of a law that is a text."""
