"""Client of a throughput test."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from cwnd._runs.defaults import INTERVAL_S
from cwnd._runs.transport_limits import LIMITS, check_state
from cwnd.perf.protocol import (
    COOKIE,
    PATIENCE,
    PerfError,
    PerfOptions,
    Role,
    greet,
    read_message,
    write_message,
)
from cwnd.perf.report import Report, Sample
from cwnd.perf.streams import Load, Stream, watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd._base.records import JsonObject
    from cwnd.perf.protocol import Connection

Dial: TypeAlias = "Callable[[int | None], Connection]"
"""Function that connects to a port of the server; None for its listening port."""


def measure(
    dial: Dial,
    options: PerfOptions,
    *,
    every: float = INTERVAL_S,
    protocol: str = "UDT",
    tell: Callable[[str], None] | None = None,
) -> JsonObject:
    """Measure the throughput between this host and a server.

    Parameters
    ----------
    dial
        Connects to the server.
    options
        The test's parameters.
    every
        Seconds between two reports; 0 for none before the end.
    protocol
        Transport protocol by name, for the report.
    tell
        Called with each line of the report.

    Returns
    -------
    dict
        The results in iperf3's format; see docs/json.md.

    Raises
    ------
    PerfError
        The server is busy, or the test failed.
    OSError
        A connection failed.
    """
    report = Report(options, not options.reverse, tell or (lambda _: None), protocol)
    control = dial(None)
    try:
        return _Client(dial, control, report).run(every)
    except BaseException:
        control.abort()
        raise


class _Client:
    def __init__(self, dial: Dial, control: Connection, report: Report) -> None:
        self._dial = dial
        self._control = control
        self._report = report
        self._options = report.options
        self._over = threading.Event()
        self._heard: list[JsonObject | PerfError | OSError] = []
        self._streams: list[Stream] = []
        self._load = None if self._options.reverse else Load(self._options)
        self._base = 0

    def run(self, every: float) -> JsonObject:
        try:
            self._open()
            own = self._measure(every)
            other = self._results()
        finally:
            for stream in self._streams:
                stream.end()
        with suppress(OSError):
            self._control.close()
        self._report.tell_both(own, other)
        host, port = self._control.peer[:2]
        connected = [stream.addresses() for stream in self._streams]
        start = {"connected": connected, "connecting_to": {"host": host, "port": port}}
        return self._report.to_json(start, own, other)

    def _open(self) -> None:
        """Send the options to the server, and open the streams."""
        cookie = os.urandom(COOKIE)
        greet(self._control, Role.CONTROL, cookie)
        write_message(self._control, self._options.to_json())
        port = read_message(self._control).get("port")
        if not (port is None or (isinstance(port, int) and 0 < port < 65536)):
            raise PerfError("the server names a port that does not exist")
        if self._options.reverse:
            self._report.tell(f"Reverse mode, remote host {self._control.peer[0]} is sending")
        for number in range(1, self._options.streams + 1):
            connection = self._dial(port)
            stream = Stream(number, connection, self._load, self._over)
            self._streams.append(stream)
            greet(connection, Role.DATA, cookie)
            self._report.tell(stream.describe())
        read_message(self._control)
        threading.Thread(target=self._listen, name="results", daemon=True).start()

    def _listen(self) -> None:
        """Receive the server's results or error."""
        try:
            self._heard.append(read_message(self._control))
        except (PerfError, OSError) as problem:
            self._heard.append(problem)
        self._over.set()

    def _measure(self, every: float) -> JsonObject:
        """Transfer data for the duration of the test."""
        options = self._options
        if not options.omit:
            self._begin()
        for stream in self._streams:
            stream.start()
        if options.omit:
            self._report.begin(self._samples(), omitted=True)
            watch(self._report, self._samples, self._over, every=every, seconds=options.omit)
            self._begin()
        limit = options.longest - options.omit
        enough = self._has_all if options.bytes else None
        if not self._over.is_set():
            watch(
                self._report, self._samples, self._over, every=every, seconds=limit, enough=enough
            )
        self._check()
        own = self._report.result(self._samples())
        for stream in self._streams:
            stream.stop()
        return own

    def _begin(self) -> None:
        """Start the measured part of the test."""
        samples = self._samples()
        self._base = sum(sample.count for sample in samples)
        if self._load is not None and self._options.bytes:
            self._load.limit(self._options.bytes)
        self._report.begin(samples)

    def _has_all(self) -> bool:
        """Test whether all bytes of the test have arrived."""
        if self._load is not None and not self._load.exhausted:
            return False
        count = sum(stream.sample().count for stream in self._streams)
        return count - self._base >= self._options.bytes

    def _samples(self) -> list[Sample]:
        return [stream.sample() for stream in self._streams]

    def _check(self) -> None:
        """Raise the error that ended the test, if any."""
        for reply in self._heard:
            if isinstance(reply, Exception):
                raise reply
            raise PerfError("the server ended the test")
        for stream in self._streams:
            if stream.problem is not None:
                raise stream.problem

    def _results(self) -> JsonObject:
        """End the test at the server, and receive its results."""
        write_message(self._control, {"end": True})
        self._over.clear()
        deadline = time.perf_counter() + PATIENCE
        while not self._heard and time.perf_counter() < deadline:
            self._over.wait(0.1)
            self._over.clear()
        if not self._heard:
            raise PerfError("the server did not send its results")
        reply = self._heard[0]
        if isinstance(reply, Exception):
            raise reply
        return check_result(reply, self._options.streams)


def check_result(document: JsonObject, streams: int) -> JsonObject:
    """Validate the other side's result, and return its known keys; PerfError if it is malformed."""
    try:
        rows = document["streams"]
        if len(rows) != streams:
            raise PerfError("the server measured other streams")
        limited = document["limited"]
        return {
            "seconds": _number(document["seconds"]),
            "streams": [
                {
                    "number": index + 1,
                    "count": int(_number(row["count"])),
                    "retransmits": int(_number(row["retransmits"])),
                }
                for index, row in enumerate(rows)
            ],
            "cpu": {kind: _number(document["cpu"][kind]) for kind in ("total", "user", "system")},
            "limited": None
            if limited is None
            else {name: min(1.0, _number(limited[name])) for name in LIMITS},
            "path": check_state(document["path"]),
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        raise PerfError("the server's results are malformed") from None


def _number(value: object) -> float:
    """Check that a value is a number from 0 to 2**63, not NaN or a boolean."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(value)
    return float(value)
