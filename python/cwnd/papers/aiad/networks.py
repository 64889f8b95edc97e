"""The network of the letter on AIAD, and what is read from a run on it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from cwnd.metrics import binned_rate, coefficient_of_variation, jain
from cwnd.running import run
from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from cwnd.records import FlowRecord, Series
    from cwnd.result import Result

KAPPA, PHI = "aiad(rate=ack)", "aiad(rate=receiver)"
"""AIAD with the rate of the acknowledgements, and with that of the arrivals at the receiver."""

NAMES = {KAPPA: "AIAD_κ", PHI: "AIAD_φ"}
"""What the letter calls them."""

_TCP, _SYN, _TIMESTAMPS = 6, 2, 8
"""TCP's number in IPv4, its flag SYN, and the kind of its option with timestamps."""

_IP_HEADER = 20
"""Bytes of an IPv4 header without options."""

RATE = 3e6
"""Capacity of the bottleneck each way, bit/s."""
CBR = 2e6
"""Rate of the CBR flow on the way back, bit/s."""
PACKET, ACK = 1000, 40
"""Bytes of a data packet and of an acknowledgement."""
RHO = ACK / PACKET
BUSY = 50.0
"""Length of the CBR flow's on and off periods, and when the first begins, in seconds."""
BIN = 1.0
"""Length over which throughput is averaged, in seconds."""

INFERRED = [
    "The propagation delay is not printed: 52 ms one way, of which 1 ms on each access link.",
    "At 6, 22, 72, 102 and 152 ms Fig. 2 comes out alike; at 37 ms κ and CBR stay in step.",
    "A data packet is 1000 bytes on the wire with its headers, so that an ACK is 0.04 of it.",
    "ns-2's queue of 20 packets holds 19 waiting and one being sent.",
    "Flows start in the first second, which is the only randomness.",
    "The estimate's filter is that of Westwood's first paper, with a time constant of 0.5 s.",
    "Timestamps have a granularity of 1 µs where no other is said.",
]
"""What the letter leaves open, and what was chosen."""


def letter(
    controller: str,
    flows: int = 1,
    *,
    queue: int = 20,
    duration: float = 500.0,
    clock: str = "1us",
    scale: float = 1.0,
    sample: str = "500ms",
) -> Scenario:
    """Make the network of section IV: 3 Mb/s each way, and a CBR flow on and off on the way back.

    Parameters
    ----------
    controller
        Whose flows.
    flows
        How many, N.
    queue
        Packets that fit into the bottleneck's buffer, the one being sent included.
    duration
        Length of the run in seconds.
    clock
        Granularity of the timestamps.
    scale
        What all rates are multiplied by.
    sample
        Time between two samples.

    Returns
    -------
    Scenario
        One that differs from run to run in when flows start.
    """
    return Scenario.from_toml(
        f"""
name = "aiad"
title = "{controller}, {flows} flows, against a busy reverse path"
duration = {duration}
sample = "{sample}"

[dumbbell]
rate = {RATE * scale}
delay = "50ms"
queue = "{queue - 1}p"

[access]
rate = {100e6 * scale}
delay = "1ms"

[tcp]
conventions = "ns2"
packet = {PACKET}
header = 0
ack = {ACK}
timestamps = "{clock}"

[[flow]]
controller = "{controller}"
count = {flows}
start = "0s..1s"

[[cbr]]
rate = {CBR * scale}
packet = 1000
start = "50s"
on = "50s"
off = "50s"
reverse = true
"""
    )


def steady_reverse(controller: str, cbr: float, *, duration: float) -> Scenario:
    """Make the same network with one flow, and a CBR flow that is on all the time.

    Parameters
    ----------
    controller
        Whose flow.
    cbr
        Rate of the CBR flow on the way back in bit/s; 0 leaves it out.
    duration
        Length of the run in seconds.
    """
    document = letter(controller, duration=duration).to_dict()
    source = document.pop("cbr")[0] | {"rate": cbr, "start": 0.0}
    if cbr > 0:
        # One phase for ever would depend on the instant at which the flow starts.
        document["cbr"] = [
            {key: source[key] for key in ("rate", "packet", "start", "reverse")} | {"jitter": 0.1}
        ]
    return Scenario(document)


class Samples(NamedTuple):
    """Rates from the times of consecutive packets of a flow, as section II defines them.

    Attributes
    ----------
    sending, receiving, acks
        x, φ and κ in bit/s, one a pair of packets.
    share
        Packets of the flow among all that were sent on the forward path between the two, which is
        x/y_f of Eq. 2.
    """

    sending: Series
    receiving: Series
    acks: Series
    share: Series


def capture(scenario: Scenario, seed: int, start: float, end: float) -> list[Samples]:
    """Run a scenario and read every sample from what crosses the reverse bottleneck.

    An acknowledgement carries when its packet was sent (echoed) and when it arrived (stamped), and
    is seen when it leaves the bottleneck on the way back. It cannot carry more, so the timestamps
    have to be those of 1 µs.

    Parameters
    ----------
    scenario
        Of `letter` or `steady_reverse`.
    seed
        Its seed.
    start, end
        Which part of the run counts, in seconds.

    Returns
    -------
    list of Samples
        One a flow.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reverse.pcap"
        run(scenario, seed, pcap=("right-left", path))
        stamps = read_stamps(path.read_bytes())
    stamps = stamps[(stamps[:, 3] >= start) & (stamps[:, 3] < end)]
    order = np.argsort(np.argsort(stamps[:, 1], kind="stable"))
    return [_samples(stamps[here], order[here]) for here in _by_flow(stamps[:, 0])]


def _by_flow(flow: Series) -> list[npt.NDArray[np.bool_]]:
    """Tell which acknowledgements are whose."""
    return [flow == number for number in np.unique(flow)]


def _samples(stamps: Series, order: npt.NDArray[np.int64]) -> Samples:
    """Turn the times of one flow's packets into rates."""
    bits = 8.0 * PACKET
    sent, received, returned = stamps[:, 1], stamps[:, 2], stamps[:, 3]
    later = (np.diff(sent) > 0) & (np.diff(received) > 0) & (np.diff(order) > 0)
    return Samples(
        bits / np.diff(sent)[later],
        bits / np.diff(received)[later],
        bits / np.diff(returned)[later],
        1.0 / np.diff(order)[later],
    )


def read_stamps(data: bytes) -> Series:
    """Read the acknowledgements of a capture (pcap in nanoseconds, IPv4 without a link layer).

    Parameters
    ----------
    data
        The file's content.

    Returns
    -------
    numpy.ndarray
        One row an acknowledgement: number of the flow; when its packet was sent, when it arrived
        (both stamped in µs, RFC 7323 section 3) and when the acknowledgement was seen, in seconds.
    """
    places = []
    place = 24
    while place < len(data):
        places.append(place)
        place += 16 + int.from_bytes(data[place + 8 : place + 12], "little")
    # One byte more, for what looks behind the last option.
    octets = np.frombuffer(data + b"\0", dtype=np.uint8)
    packet = np.array(places, dtype=np.int64) + 16
    packet = packet[octets[packet + 9] == _TCP]
    packet = packet[octets[packet + _IP_HEADER + 13] & _SYN == 0]
    option = _find_timestamps(octets, packet + _IP_HEADER)
    packet, option = packet[option > 0], option[option > 0]
    seen = _words(octets, packet - 16, "<u4")
    stamped = _words(octets, option + 2, ">u4")
    flow = octets[packet + 14] * 256.0 + octets[packet + 15]
    return np.stack(
        [flow, stamped[:, 1] * 1e-6, stamped[:, 0] * 1e-6, seen[:, 0] + seen[:, 1] * 1e-9], axis=1
    )


def _words(octets: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], kind: str) -> Series:
    """Read two words of four bytes at each of some places."""
    return np.asarray(octets[at[:, None] + np.arange(8)].view(kind), dtype=np.float64)


def _find_timestamps(
    octets: npt.NDArray[np.uint8], tcp: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Tell where the option with TSval and TSecr of each TCP header begins; 0 if it has none."""
    found = np.zeros_like(tcp)
    at, end = tcp + 20, tcp + 4 * (octets[tcp + 12] >> 4)
    # All headers at once, an option of each at a time.
    left = np.arange(tcp.size)
    while left.size:
        left = left[at[left] < end[left]]
        kind = octets[at[left]]
        found[left[kind == _TIMESTAMPS]] = at[left[kind == _TIMESTAMPS]]
        left = left[(kind != _TIMESTAMPS) & (kind != 0)]
        here = at[left]
        at[left] += np.where(octets[here] == 1, 1, octets[here + 1])
    return found


class Flow(NamedTuple):
    """One flow of a run over time.

    Attributes
    ----------
    time, estimate
        Samples of the estimated rate: seconds, bit/s.
    bins, throughput
        Beginnings of the intervals in seconds, and the throughput in each in bit/s.
    """

    time: Series
    estimate: Series
    bins: Series
    throughput: Series


def follow(result: Result) -> Flow:
    """Give the first flow's estimated rate and throughput over time."""
    flow = result.measured_flows[0]
    bins, rates = binned_rate(result.time, flow["sent"], flow["packet_bytes"], BIN, 0.0)
    return Flow(result.time, estimated(flow), bins, rates)


def estimated(flow: FlowRecord) -> Series:
    """Give a flow's estimated rate in bit/s."""
    return flow["gauges"]["rate"] * 8.0 * flow["packet_bytes"]


def busy(time: npt.ArrayLike, *, on: bool) -> npt.NDArray[np.bool_]:
    """Tell at which times the CBR flow is on (or, from its first start on, off).

    The first 5 s of each period are left out: the filter's memory and the queue's.

    Examples
    --------
    >>> busy([40.0, 52.0, 60.0, 110.0], on=True).tolist()
    [False, False, True, False]
    """
    t = np.asarray(time, dtype=np.float64)
    period = np.floor(t / BUSY)
    here = (t - BUSY * period >= 5.0) & (period >= 1)
    on_now = np.equal(period % 2, 1.0 if on else 0.0)
    return np.asarray(here & on_now, dtype=np.bool_)


class Spread(NamedTuple):
    """How evenly N flows share.

    Attributes
    ----------
    deviation
        Standard deviation of the throughput ratio x̂/x₀ of section IV, x₀ = C/N.
    jain
        Jain's index of the flows' throughputs.
    """

    deviation: float
    jain: float


def spread(result: Result) -> Spread:
    """Measure how evenly the flows of a run shared."""
    rates = np.array([result.goodput_bps(flow) for flow in result.measured_flows])
    return Spread(deviation(rates, result.bottleneck["rate_bps"]), jain(rates))


def deviation(rates: npt.ArrayLike, capacity: float) -> float:
    """Give the standard deviation of x̂/x₀, x₀ = C/N (section IV).

    Parameters
    ----------
    rates
        Each flow's throughput x̂ in bit/s.
    capacity
        C in bit/s.

    Examples
    --------
    >>> deviation([1.0, 3.0], 4.0)
    0.5
    """
    x = np.asarray(rates, dtype=np.float64)
    return float(np.std(x * x.size / capacity))


class Alone(NamedTuple):
    """What one flow did while the way back was busy, and while it was not.

    Attributes
    ----------
    on, off
        Mean estimate over the capacity.
    cov
        Coefficient of variation of the throughput over `BIN`, while busy.
    drops
        Packets that the forward bottleneck dropped in the run.
    """

    on: float
    off: float
    cov: float
    drops: float


def alone(result: Result) -> Alone:
    """Measure one flow."""
    flow = follow(result)
    link = next(link for link in result.record["links"] if link["name"] == "left-right")
    over = flow.estimate / link["rate_bps"]
    return Alone(
        float(over[busy(flow.time, on=True)].mean()),
        float(over[busy(flow.time, on=False)].mean()),
        coefficient_of_variation(flow.throughput[busy(flow.bins, on=True)]),
        float(link["drops"]),
    )


def cumulative(values: Series, points: int = 200) -> tuple[Series, Series]:
    """Give the distribution function of samples, thinned to so many points.

    Examples
    --------
    >>> x, share = cumulative(np.array([3.0, 1.0, 2.0, 4.0]), 3)
    >>> x.tolist(), share.tolist()
    ([1.0, 2.5, 4.0], [0.0, 0.5, 1.0])
    """
    share = np.linspace(0.0, 1.0, points)
    return np.quantile(values, share), share
