"""Results of a throughput test: lines and JSON in iperf3's formats."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from cwnd._runs.transport_limits import Path, advise, conclude_limits, to_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd._base.records import JsonObject
    from cwnd._runs.transport_limits import PathState
    from cwnd.perf.protocol import PerfOptions

RULE = "- " * 25


@dataclass(frozen=True)
class Sample:
    """The counters of a stream since its beginning."""

    number: int
    """The stream's number."""
    count: int
    """Bytes received; for a sender, bytes acknowledged by the peer."""
    retransmits: int = 0
    """Retransmitted packets."""
    window: int = 0
    """Congestion window in bytes."""
    rtt_us: int = 0
    limited_s: Mapping[str, float] = field(default_factory=dict)
    """Seconds for which each limit held back the sender; see `cwnd._runs.transport_limits`."""

    def since(self, before: Sample) -> Sample:
        """Return the difference of the counters from an earlier sample."""
        return replace(
            self,
            count=self.count - before.count,
            retransmits=self.retransmits - before.retransmits,
            limited_s={
                name: max(0.0, value - before.limited_s.get(name, 0.0))
                for name, value in self.limited_s.items()
            },
        )


def format_bytes(count: float) -> str:
    """Format a number of bytes as iperf3 does, in powers of 1024.

    Examples
    --------
    >>> format_bytes(0), format_bytes(131072), format_bytes(2621440), format_bytes(1.3e12)
    ('0.00 Bytes', ' 128 KBytes', '2.50 MBytes', '1.18 TBytes')
    """
    return _scale(count, 1024.0, "Bytes")


def format_bits(rate: float) -> str:
    """Format a rate in bit/s as iperf3 does, in powers of 1000.

    Examples
    --------
    >>> format_bits(20971520), format_bits(5.5e9), format_bits(999)
    ('21.0 Mbits/sec', '5.50 Gbits/sec', ' 999 bits/sec')
    """
    return _scale(rate, 1000.0, "bits") + "/sec"


def _scale(number: float, base: float, unit: str) -> str:
    prefixes = ["", "K", "M", "G", "T"]
    while number >= base and len(prefixes) > 1:
        number /= base
        del prefixes[0]
    digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:4.{digits}f} {prefixes[0]}{unit}"


def line(label: int | str, start: float, end: float, count: int, tail: str = "") -> str:
    """Format a line about one stream, or about all of them (SUM), from seconds and bytes.

    Examples
    --------
    >>> line(5, 0.0, 1.0, 2621440, "    0   1.12 MBytes")
    '[  5]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0   1.12 MBytes'
    """
    rate = format_bits(8 * count / max(end - start, 1e-9))
    time_ = f"{start:6.2f}-{end:<6.2f} sec"
    return f"[{label:>3}] {time_}  {format_bytes(count)}  {rate}{tail}".rstrip()


@dataclass
class Report:
    """Results of one side, printed line by line.

    Parameters
    ----------
    options
        Parameters of the test.
    sends
        Whether this side sends.
    tell
        Called with each line.
    protocol
        Transport protocol by name.
    """

    options: PerfOptions
    sends: bool
    tell: Callable[[str], None] = lambda _: None
    protocol: str = "UDT"
    intervals: list[JsonObject] = field(default_factory=list)
    _base: list[Sample] = field(default_factory=list)
    _last: list[Sample] = field(default_factory=list)
    _samples: list[list[Sample]] = field(default_factory=list)
    _start: float = 0.0
    _elapsed: float = 0.0
    _omitted: bool = False
    _cpu: tuple[float, float] = (0.0, 0.0)

    def begin(self, samples: Sequence[Sample], *, omitted: bool = False) -> None:
        """Start a measured period; the warm-up is a period of its own.

        Parameters
        ----------
        samples
            One sample of each stream.
        omitted
            Whether the period is the warm-up, which results exclude.
        """
        if not self._base:
            window = "         Retr  Cwnd" if self.sends else ""
            self.tell(f"[ ID] Interval           Transfer     Bitrate{window}")
        self._start, self._elapsed = time.perf_counter(), 0.0
        self._cpu = _cpu()
        self._base = self._last = list(samples)
        self._omitted = omitted
        self._samples.clear()

    def interval(self, samples: Sequence[Sample]) -> None:
        """Report the time since the last interval."""
        start, self._elapsed = self._elapsed, time.perf_counter() - self._start
        rows = [sample.since(before) for sample, before in zip(samples, self._last, strict=True)]
        if self.intervals:
            self.tell(RULE)
        for row in rows:
            tail = f"  {row.retransmits:3d}   {format_bytes(row.window)}" if self.sends else ""
            self._tell_interval(row.number, start, row.count, tail)
        total, again = sum(row.count for row in rows), sum(row.retransmits for row in rows)
        if len(rows) > 1:
            self._tell_interval("SUM", start, total, f"  {again:3d}" if self.sends else "")
        self.intervals.append(
            {
                "streams": [
                    self._interval_json(start, self._elapsed, row.count, row.retransmits, row)
                    for row in rows
                ],
                "sum": self._interval_json(start, self._elapsed, total, again),
            }
        )
        self._last = list(samples)
        if self.sends:
            self._samples.append(self._last)

    def _tell_interval(self, label: int | str, start: float, count: int, tail: str) -> None:
        text = line(label, start, self._elapsed, count, tail)
        self.tell(f"{text:<80} (omitted)" if self._omitted else text)

    def result(self, samples: Sequence[Sample]) -> JsonObject:
        """Return this side's result so far, to be sent to the peer."""
        elapsed = time.perf_counter() - self._start
        user, system = (
            100.0 * (now - then) / max(elapsed, 1e-9)
            for now, then in zip(_cpu(), self._cpu, strict=True)
        )
        rows = [sample.since(base) for sample, base in zip(samples, self._base, strict=True)]
        limited: dict[str, float] = {}
        if self.sends:
            for row in rows:
                for name, value in row.limited_s.items():
                    limited[name] = limited.get(name, 0.0) + value
        return {
            "seconds": elapsed,
            "streams": [
                {"number": row.number, "count": row.count, "retransmits": row.retransmits}
                for row in rows
            ],
            "cpu": {"total": user + system, "user": user, "system": system},
            "limited": to_shares(limited),
            "path": self._path(),
        }

    def _path(self) -> PathState | None:
        """Return the state of the path, for a sender with intervals."""
        path = Path()
        before = sum(sample.retransmits for sample in self._base)
        for samples in self._samples:
            rtt_us = sum(sample.rtt_us for sample in samples) / len(samples)
            path.add(1e-6 * rtt_us, sum(sample.retransmits for sample in samples) - before)
        return path.state

    def tell_own(self, own: JsonObject) -> None:
        """Print this side's result, for a server."""
        self.tell(RULE)
        self.tell("[ ID] Interval           Transfer     Bitrate" + self._retr())
        self._tell_side(own, sends=self.sends)
        if self.sends:
            self.tell_limits(own)

    def tell_both(self, own: JsonObject, other: JsonObject) -> None:
        """Print both sides' results, for a client."""
        sender, receiver = (own, other) if self.sends else (other, own)
        self.tell(RULE)
        self.tell("[ ID] Interval           Transfer     Bitrate         Retr")
        pairs = zip(sender["streams"], receiver["streams"], strict=True)
        for left, right in pairs:
            self._tell_stream(sender, [left], left["number"], sends=True)
            self._tell_stream(receiver, [right], left["number"], sends=False)
        if self.options.streams > 1:
            self._tell_stream(sender, sender["streams"], "SUM", sends=True)
            self._tell_stream(receiver, receiver["streams"], "SUM", sends=False)
        self.tell("")
        self.tell_limits(sender)
        self.tell("cwnd perf done.")

    def tell_limits(self, sender: JsonObject) -> None:
        """Print the sender's limits, and advice."""
        shares = sender["limited"]
        if shares is not None:
            self.tell(conclude_limits(shares, self._advise(sender)))

    def _advise(self, sender: JsonObject) -> str | None:
        """Return advice on the sender's limit; none if --bitrate is the intended limit."""
        if self.options.bitrate:
            return None
        return advise(sender["limited"], sender["path"], self.options.controller)

    def _retr(self) -> str:
        return "         Retr" if self.sends else ""

    def _tell_side(self, side: JsonObject, *, sends: bool) -> None:
        for stream in side["streams"]:
            self._tell_stream(side, [stream], stream["number"], sends=sends)
        if len(side["streams"]) > 1:
            self._tell_stream(side, side["streams"], "SUM", sends=sends)

    def _tell_stream(
        self, side: JsonObject, streams: Sequence[JsonObject], label: int | str, *, sends: bool
    ) -> None:
        count = sum(stream["count"] for stream in streams)
        again = sum(stream["retransmits"] for stream in streams)
        tail = f"  {again:3d}             sender" if sends else f"{'':18}receiver"
        self.tell(line(label, 0.0, side["seconds"], count, tail))

    def to_json(self, start: JsonObject, own: JsonObject, other: JsonObject | None) -> JsonObject:
        """Return all results in iperf3's format.

        Parameters
        ----------
        start
            Addresses of the two sides.
        own
            This side's `result`.
        other
            The other side's result; None if unknown.
        """
        sender, receiver = (own, other) if self.sends else (other, own)
        streams = []
        for index in range(self.options.streams):
            both: JsonObject = {}
            if sender is not None:
                both["sender"] = self._totals(sender, index, sends=True)
            if receiver is not None:
                both["receiver"] = self._totals(receiver, index, sends=False)
            streams.append(both)
        end: JsonObject = {"streams": streams}
        for name, side, sends in (
            ("sum_sent", sender, True),
            ("sum_received", receiver, False),
        ):
            if side is not None:
                end[name] = self._totals(side, None, sends=sends)
        end["cpu_utilization_percent"] = {
            f"{where}_{kind}": side["cpu"][kind]
            for where, side in (("host", own), ("remote", other))
            if side is not None
            for kind in ("total", "user", "system")
        }
        end["sender_congestion"] = self.options.controller
        end["limited"] = None if sender is None else sender["limited"]
        end["advice"] = None if sender is None else self._advise(sender)
        return {
            "start": {**describe(self.options, self.protocol), **start},
            "intervals": self.intervals,
            "end": end,
        }

    def _totals(self, side: JsonObject, index: int | None, *, sends: bool) -> JsonObject:
        """Return the totals of one stream, or of all."""
        chosen = side["streams"] if index is None else [side["streams"][index]]
        count = sum(stream["count"] for stream in chosen)
        again = sum(stream["retransmits"] for stream in chosen)
        span = self._interval_json(0.0, side["seconds"], count, again, sends=sends)
        del span["omitted"]
        if index is None:
            return span
        span = {"socket": chosen[0]["number"], **span}
        if sends and self._samples:
            own = [samples[index] for samples in self._samples]
            span["max_snd_cwnd"] = max(sample.window for sample in own)
            rtts = [sample.rtt_us for sample in own]
            span["max_rtt"], span["min_rtt"] = max(rtts), min(rtts)
            span["mean_rtt"] = round(sum(rtts) / len(rtts))
        return span

    def _interval_json(
        self,
        start: float,
        end: float,
        count: int,
        again: int,
        sample: Sample | None = None,
        *,
        sends: bool | None = None,
    ) -> JsonObject:
        """Return the counters of an interval in iperf3's format."""
        seconds = end - start
        span: JsonObject = {} if sample is None else {"socket": sample.number}
        span |= {
            "start": start,
            "end": end,
            "seconds": seconds,
            "bytes": count,
            "bits_per_second": 8 * count / max(seconds, 1e-9),
        }
        sender = self.sends if sends is None else sends
        if sender:
            span["retransmits"] = again
            if sample is not None:
                span |= {"snd_cwnd": sample.window, "rtt": sample.rtt_us}
        return span | {"omitted": self._omitted, "sender": sender}


def describe(options: PerfOptions, protocol: str) -> JsonObject:
    """Return the parameters of the test, the system and the time."""
    from cwnd._base.version import __version__

    now = datetime.now(timezone.utc)
    return {
        "version": f"cwnd {__version__}",
        "system_info": " ".join(platform.uname()[:5]),
        "timestamp": {
            "time": now.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            "timesecs": int(now.timestamp()),
        },
        "test_start": {
            "protocol": protocol,
            "num_streams": options.streams,
            "blksize": options.block,
            "omit": options.omit,
            "duration": 0 if options.bytes else options.seconds,
            "bytes": options.bytes,
            "reverse": int(options.reverse),
            "target_bitrate": options.bitrate,
            "congestion": options.controller,
        },
    }


def _cpu() -> tuple[float, float]:
    """Return the CPU time of this process in seconds: user and system."""
    times: Any = os.times()
    return float(times.user), float(times.system)
