"""The side of a test of speed that asks for it."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from cwnd.perf.protocol import (
    COOKIE,
    PATIENCE,
    PerfError,
    Role,
    Settings,
    greet,
    read_message,
    write_message,
)
from cwnd.perf.report import Report
from cwnd.perf.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.records import JsonObject
    from cwnd.transfer.connection import Connection

Dial: TypeAlias = "Callable[[int | None], Connection]"
"""Connects to the server: to a port of it, or to the one where it listens."""


def measure(
    dial: Dial, settings: Settings, *, every: float = 1.0, tell: Callable[[str], None] | None = None
) -> JsonObject:
    """Test the speed between here and a server.

    Parameters
    ----------
    dial
        Connects to the server.
    settings
        What is tested.
    every
        Seconds between two reports; 0 is none before the end.
    tell
        Takes each line of the report.

    Returns
    -------
    dict
        Everything that was measured, in iperf3's shape: see docs/json.md.

    Raises
    ------
    PerfError
        The server is busy, or something ended the test.
    OSError
        A connection failed.
    """
    report = Report(settings, not settings.reverse, tell or (lambda _: None))
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
        self._settings = report.settings
        self._over = threading.Event()
        self._heard: list[JsonObject | PerfError | OSError] = []
        self._streams: list[Stream] = []

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
        connected = [
            {
                "socket": stream.number,
                "remote_host": stream.connection.peer[0],
                "remote_port": stream.connection.peer[1],
            }
            for stream in self._streams
        ]
        start = {"connected": connected, "connecting_to": {"host": host, "port": port}}
        return self._report.to_json(start, own, other)

    def _open(self) -> None:
        """Agree with the server on the test, and open its streams."""
        cookie = os.urandom(COOKIE)
        greet(self._control, Role.CONTROL, cookie)
        write_message(self._control, self._settings.to_json())
        port = read_message(self._control).get("port")
        if not (port is None or (isinstance(port, int) and 0 < port < 65536)):
            raise PerfError("the server names a port that there is not")
        if self._settings.reverse:
            self._report.tell(f"Reverse mode, remote host {self._control.peer[0]} is sending")
        for number in range(1, self._settings.streams + 1):
            connection = self._dial(port)
            stream = Stream(number, connection, sends=not self._settings.reverse, over=self._over)
            self._streams.append(stream)
            greet(connection, Role.DATA, cookie)
            host, remote = connection.peer[:2]
            self._report.tell(f"[{number:3d}] connected to {host} port {remote}")
        read_message(self._control)
        threading.Thread(target=self._listen, name="results", daemon=True).start()

    def _listen(self) -> None:
        """Hear the server's results, or why there will be none."""
        try:
            self._heard.append(read_message(self._control))
        except (PerfError, OSError) as problem:
            self._heard.append(problem)
        self._over.set()

    def _measure(self, every: float) -> JsonObject:
        """Let data flow for the time of the test."""
        self._report.begin([stream.sample() for stream in self._streams])
        start = time.perf_counter()
        for stream in self._streams:
            stream.start()
        end = start + self._settings.seconds
        due = start + every if every else end
        while not self._over.wait(max(0.0, min(due, end) - time.perf_counter())):
            now = time.perf_counter()
            # A last interval that is hardly one is part of the end.
            if every and (now >= due or now >= end) and now - (due - every) > every / 10:
                self._report.interval([stream.sample() for stream in self._streams])
            if now >= end:
                break
            due += every
        self._check()
        for stream in self._streams:
            stream.stop()
        return self._report.result([stream.sample() for stream in self._streams])

    def _check(self) -> None:
        """Find out whether something has ended the test."""
        for reply in self._heard:
            if isinstance(reply, Exception):
                raise reply
            raise PerfError("the server has ended the test")
        for stream in self._streams:
            if stream.problem is not None:
                raise stream.problem

    def _results(self) -> JsonObject:
        """End the test at the server, and hear what it has measured."""
        write_message(self._control, {"end": True})
        self._over.clear()
        deadline = time.perf_counter() + PATIENCE
        while not self._heard and time.perf_counter() < deadline:
            self._over.wait(0.1)
            self._over.clear()
        if not self._heard:
            raise PerfError("the server does not tell its results")
        reply = self._heard[0]
        if isinstance(reply, Exception):
            raise reply
        return check_result(reply, self._settings.streams)


def check_result(document: JsonObject, streams: int) -> JsonObject:
    """Take another side's result apart, and put together what of it makes sense.

    Raises
    ------
    PerfError
        Nothing does.
    """
    try:
        rows = document["streams"]
        if len(rows) != streams:
            raise PerfError("the server has measured other streams")
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
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        raise PerfError("the server's results make no sense") from None


def _number(value: object) -> float:
    """Read a number that is none of a float's oddities."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(value)
    return float(value)
