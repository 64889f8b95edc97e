"""Measurements of runs and captures."""

from __future__ import annotations

import math
import struct
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from cwnd._papers.aiad.networks import BUSY, PACKET, letter
from cwnd._runs.run import run
from cwnd.metrics import binned_rate, coefficient_of_variation, jain

if TYPE_CHECKING:
    from cwnd._base.records import FlowRecord, LinkRecord, Series
    from cwnd._runs.result import Result

SETTLED = 20.0
"""Time in seconds from which filtered estimates are used."""
FROM, LENGTH = 55.0, 20.0
"""Start and length of the captured part of a run in seconds; the reverse path is busy."""
BIN, LONG = 1.0, 10.0
"""Averaging intervals of throughput in seconds, for one flow and for several."""


class Spread(NamedTuple):
    """Standard deviation of the throughput ratio x̂/x₀, x₀ = C/N, Jain's index, `fluctuation`."""

    deviation: float
    jain: float
    fluctuation: float


def spread(result: Result) -> Spread:
    """Measure how evenly the flows of a run share the bottleneck."""
    rates = np.array([result.goodput_bps(flow) for flow in result.measured_flows])
    return Spread(deviation(rates, result.bottleneck["rate_bps"]), jain(rates), fluctuation(result))


def fluctuation(result: Result) -> float:
    """Return the mean coefficient of variation of a flow's throughput over `LONG`.

    Flows that deliver nothing are omitted; NaN in runs of less than two intervals.
    """
    varied = [
        coefficient_of_variation(
            binned_rate(result.time, flow["delivered"], flow["packet_bytes"], LONG, 0.0)[1]
        )
        for flow in result.measured_flows
    ]
    known = [value for value in varied if np.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def deviation(rates: npt.ArrayLike, capacity: float) -> float:
    """Return the standard deviation of x̂/x₀, x₀ = C/N (section IV); all rates in bit/s."""
    x = np.asarray(rates, dtype=np.float64)
    return float(np.std(x * x.size / capacity))


class Alone(NamedTuple):
    """One flow with a busy and with an idle reverse path."""

    on: float  # mean estimate over C while busy and while idle
    off: float
    cov: float  # coefficient of variation of the throughput while busy
    drops: float  # packets dropped by the forward bottleneck


def alone(result: Result) -> Alone:
    """Measure the flow of a run with one flow."""
    time, estimate, bins, throughput = course(result)
    link = _forward(result)
    over = estimate / link["rate_bps"]
    return Alone(
        float(over[busy(time, on=True)].mean()),
        float(over[busy(time, on=False)].mean()),
        coefficient_of_variation(throughput[busy(bins, on=True)]),
        float(link["drops"]),
    )


def course(result: Result) -> tuple[Series, Series, Series, Series]:
    """Return times and estimates (s, bit/s), then intervals and throughput, of the first flow."""
    flow = result.measured_flows[0]
    bins, rates = binned_rate(result.time, flow["sent"], flow["packet_bytes"], BIN, 0.0)
    return result.time, estimated(flow), bins, rates


def estimated(flow: FlowRecord) -> Series:
    """Return a flow's rate estimates in bit/s."""
    return flow["gauges"]["rate"] * 8.0 * flow["packet_bytes"]


def busy(time: npt.ArrayLike, *, on: bool) -> npt.NDArray[np.bool_]:
    """Return whether the CBR flow is on, or off after its first on period, at each time.

    The first 5 s of each period are excluded, because filter and queues have memory.
    """
    t = np.asarray(time, dtype=np.float64)
    period = np.floor(t / BUSY)
    counts = (t - BUSY * period >= 5.0) & (period >= 1)
    return np.asarray(counts & (period % 2 == (1.0 if on else 0.0)), dtype=np.bool_)


class Quality(NamedTuple):
    """Mean of |estimate/(C/N) - 1|, forward drops in % of arrivals, and `Spread.deviation`."""

    error: float
    drops: float
    deviation: float


def quality(result: Result) -> Quality:
    """Measure the error of the flows' estimates, and its effect on the network."""
    link = _forward(result)
    fair = link["rate_bps"] / len(result.measured_flows)
    return Quality(
        float(np.abs(_late_estimates(result) / fair - 1).mean()),
        100.0 * link["drops"] / link["arrivals"],
        spread(result).deviation,
    )


def filtered(result: Result) -> tuple[float, float]:
    """Return the sum over the flows of the mean estimates, and the largest estimate, over C."""
    rates = _late_estimates(result) / _forward(result)["rate_bps"]
    return float(rates.mean(axis=1).sum()), float(rates.max())


def _late_estimates(result: Result) -> Series:
    """Return the estimates from `SETTLED` on in bit/s, one row per flow."""
    late = result.time >= SETTLED
    return np.array([estimated(flow)[late] for flow in result.measured_flows])


def _forward(result: Result) -> LinkRecord:
    """Return the record of the forward bottleneck."""
    return next(link for link in result.record["links"] if link["name"] == "left-right")


class Samples(NamedTuple):
    """Rates in bit/s from the times of consecutive packets of a flow (section II)."""

    sending: Series  # x, φ and κ
    receiving: Series
    acks: Series
    share: Series  # of the packets sent in between: x/y_f of Eq. 2


@cache
def capture(controller: str, flows: int, seed: int) -> Samples:
    """Return all samples of all flows from an interval with a busy reverse path.

    An ACK carries the time at which its packet was sent (echoed) and the time at which it arrived
    (receiver's timestamp), and is captured when it leaves the reverse bottleneck. The timestamps
    are in microseconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reverse.pcap"
        scenario = letter(controller, flows, duration=FROM + LENGTH)
        run(scenario, seed, pcap=("right-left", path))
        stamps = read_stamps(path.read_bytes())
    stamps = stamps[stamps[:, 3] >= FROM]
    order = np.argsort(np.argsort(stamps[:, 1], kind="stable"))
    bits, parts = 8.0 * PACKET, []
    for number in np.unique(stamps[:, 0]):
        own = stamps[:, 0] == number
        steps = np.column_stack([np.diff(stamps[own, 1:], axis=0), np.diff(order[own])])
        # Retransmissions and duplicate ACKs give no sample.
        sent, received, returned, packets = steps[(steps[:, [0, 1, 3]] > 0).all(axis=1)].T
        parts.append((bits / sent, bits / received, bits / returned, 1 / packets))
    return Samples(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def read_stamps(data: bytes) -> Series:
    """Parse the ACKs of a capture of the simulator (pcap in nanoseconds, IPv4, no link layer).

    Each row has the number of the flow, and the times in seconds at which the packet was sent, the
    packet arrived and the ACK was captured.
    """
    rows, at = [], 24
    while at < len(data):
        seconds, nanos, length = struct.unpack_from("<III", data, at)
        packet = data[at + 16 : at + 16 + length]
        at += 16 + length
        # TCP without SYN: two no-ops and the timestamps are the first options.
        if packet[9] == 6 and not packet[33] & 2:
            (flow,) = struct.unpack_from(">H", packet, 14)
            stamp, echo = struct.unpack_from(">II", packet, 44)
            rows.append((flow, echo * 1e-6, stamp * 1e-6, seconds + nanos * 1e-9))
    return np.array(rows)
