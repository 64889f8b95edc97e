"""What a test of speed has measured: in iperf3's lines and in its JSON."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cwnd.perf.protocol import Settings
    from cwnd.records import JsonObject

RULE = "- " * 25


@dataclass(frozen=True)
class Sample:
    """What a stream has done since its beginning.

    Attributes
    ----------
    number
        Which stream.
    count
        Bytes that have arrived: at this side, or as the other one has acknowledged.
    retransmits
        Packets sent again.
    window
        The congestion window in bytes.
    rtt_us
        The round-trip time in microseconds.
    """

    number: int
    count: int
    retransmits: int = 0
    window: int = 0
    rtt_us: int = 0


def format_bytes(count: float) -> str:
    """Write a number of bytes as iperf3 does, in powers of 1024.

    Examples
    --------
    >>> format_bytes(0), format_bytes(131072), format_bytes(2621440), format_bytes(1.3e12)
    ('0.00 Bytes', ' 128 KBytes', '2.50 MBytes', '1.18 TBytes')
    """
    return _scale(count, 1024.0, "Bytes")


def format_bits(rate: float) -> str:
    """Write a rate in bit/s as iperf3 does, in powers of 1000.

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


def line(
    label: int | str, start: float, end: float, count: int, tail: str = "", *, seconds: float = 0.0
) -> str:
    """Write a line about one stream, or about all of them.

    Parameters
    ----------
    label
        The stream's number, or SUM.
    start, end
        The time it is about, in seconds.
    count
        Bytes.
    tail
        What follows the rate.
    seconds
        The time that the rate is over, where it is not that between the other two.

    Examples
    --------
    >>> line(5, 0.0, 1.0, 2621440, "    0   1.12 MBytes")
    '[  5]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0   1.12 MBytes'
    """
    rate = format_bits(8 * count / max(seconds or end - start, 1e-9))
    time_ = f"{start:6.2f}-{end:<6.2f} sec"
    return f"[{label:>3}] {time_}  {format_bytes(count)}  {rate}{tail}".rstrip()


@dataclass
class Report:
    """What one side measures, told line by line.

    Parameters
    ----------
    settings
        What is tested.
    sends
        Whether this side sends.
    tell
        Takes each line.
    """

    settings: Settings
    sends: bool
    tell: Callable[[str], None] = lambda _: None
    intervals: list[JsonObject] = field(default_factory=list)
    _last: list[Sample] = field(default_factory=list)
    _samples: list[list[Sample]] = field(default_factory=list)
    _start: float = 0.0
    _elapsed: float = 0.0
    _cpu: tuple[float, float] = (0.0, 0.0)

    def begin(self, samples: Sequence[Sample]) -> None:
        """Note when the data begin to flow."""
        self._start = time.perf_counter()
        self._cpu = _cpu()
        self._last = list(samples)
        window = "         Retr  Cwnd" if self.sends else ""
        self.tell(f"[ ID] Interval           Transfer     Bitrate{window}")

    def interval(self, samples: Sequence[Sample]) -> None:
        """Tell what has happened since the last time."""
        start, self._elapsed = self._elapsed, time.perf_counter() - self._start
        rows = [
            (sample, sample.count - before.count, sample.retransmits - before.retransmits)
            for sample, before in zip(samples, self._last, strict=True)
        ]
        if self.intervals:
            self.tell(RULE)
        for sample, count, again in rows:
            tail = f"  {again:3d}   {format_bytes(sample.window)}" if self.sends else ""
            self.tell(line(sample.number, start, self._elapsed, count, tail))
        total, again = sum(row[1] for row in rows), sum(row[2] for row in rows)
        if len(rows) > 1:
            tail = f"  {again:3d}" if self.sends else ""
            self.tell(line("SUM", start, self._elapsed, total, tail))
        self.intervals.append(
            {
                "streams": [
                    self._span(start, self._elapsed, count, again, sample)
                    for sample, count, again in rows
                ],
                "sum": self._span(start, self._elapsed, total, again),
            }
        )
        self._last = list(samples)
        if self.sends:
            self._samples.append(self._last)

    def result(self, samples: Sequence[Sample]) -> JsonObject:
        """Say what this side has measured from the beginning to now, for the other side."""
        elapsed = time.perf_counter() - self._start
        user, system = (
            100.0 * (now - then) / max(elapsed, 1e-9)
            for now, then in zip(_cpu(), self._cpu, strict=True)
        )
        return {
            "seconds": elapsed,
            "streams": [asdict(sample) for sample in samples],
            "cpu": {"total": user + system, "user": user, "system": system},
        }

    def tell_own(self, own: JsonObject) -> None:
        """Tell this side's result, as a server does."""
        self.tell(RULE)
        self.tell("[ ID] Interval           Transfer     Bitrate" + self._retr())
        self._tell_side(own, sends=self.sends)

    def tell_both(self, own: JsonObject, other: JsonObject) -> None:
        """Tell both sides' results, as a client does."""
        sender, receiver = (own, other) if self.sends else (other, own)
        self.tell(RULE)
        self.tell("[ ID] Interval           Transfer     Bitrate         Retr")
        pairs = zip(sender["streams"], receiver["streams"], strict=True)
        for left, right in pairs:
            self._tell_stream(sender, [left], left["number"], sends=True)
            self._tell_stream(receiver, [right], left["number"], sends=False)
        if self.settings.streams > 1:
            self._tell_stream(sender, sender["streams"], "SUM", sends=True)
            self._tell_stream(receiver, receiver["streams"], "SUM", sends=False)
        self.tell("")
        self.tell("cwnd perf done.")

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
        """Give everything in iperf3's shape.

        Parameters
        ----------
        start
            What is known of the two sides.
        own
            This side's `result`.
        other
            The other side's, where it is known.
        """
        sender, receiver = (own, other) if self.sends else (other, own)
        streams = []
        for index in range(self.settings.streams):
            both: JsonObject = {}
            if sender is not None:
                both["sender"] = self._final(sender, index, sends=True)
            if receiver is not None:
                both["receiver"] = self._final(receiver, index, sends=False)
            streams.append(both)
        end: JsonObject = {"streams": streams}
        for name, side, sends in (
            ("sum_sent", sender, True),
            ("sum_received", receiver, False),
        ):
            if side is not None:
                end[name] = self._final(side, None, sends=sends)
        end["cpu_utilization_percent"] = {
            f"{where}_{kind}": side["cpu"][kind]
            for where, side in (("host", own), ("remote", other))
            if side is not None
            for kind in ("total", "user", "system")
        }
        end["sender_congestion"] = self.settings.controller
        return {
            "start": {**describe(self.settings), **start},
            "intervals": self.intervals,
            "end": end,
        }

    def _final(self, side: JsonObject, index: int | None, *, sends: bool) -> JsonObject:
        """Sum up one stream, or all."""
        chosen = side["streams"] if index is None else [side["streams"][index]]
        count = sum(stream["count"] for stream in chosen)
        again = sum(stream["retransmits"] for stream in chosen)
        span = self._span(0.0, side["seconds"], count, again, sends=sends)
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

    def _span(
        self,
        start: float,
        end: float,
        count: int,
        again: int,
        sample: Sample | None = None,
        *,
        sends: bool | None = None,
    ) -> JsonObject:
        """Write what happened in some time."""
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
        return span | {"omitted": False, "sender": sender}


def describe(settings: Settings) -> JsonObject:
    """Say what is tested, where and when."""
    from cwnd import __version__

    now = datetime.now(timezone.utc)
    return {
        "version": f"cwnd {__version__}",
        "system_info": " ".join(platform.uname()[:5]),
        "timestamp": {
            "time": now.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            "timesecs": int(now.timestamp()),
        },
        "test_start": {
            "protocol": "UDT",
            "num_streams": settings.streams,
            "duration": settings.seconds,
            "reverse": int(settings.reverse),
            "congestion": settings.controller,
        },
    }


def _cpu() -> tuple[float, float]:
    """Give the processor's time of this process, in seconds: its own and the system's."""
    times: Any = os.times()
    return float(times.user), float(times.system)
