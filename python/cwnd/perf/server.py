"""The side of a test of speed that waits for somebody to ask for it."""

from __future__ import annotations

import hmac
import queue
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.perf.protocol import (
    PATIENCE,
    PerfError,
    Role,
    Settings,
    read_greeting,
    read_message,
    write_message,
)
from cwnd.perf.report import Report
from cwnd.perf.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.records import JsonObject
    from cwnd.transfer.connection import Connection, Listener

_TICK = 0.1
"""Seconds that Ctrl-C may wait."""

_GUESTS = 256
"""Connections that have not said yet what they are for."""

_EVERY = 1.0
_GRACE = 30.0
"""Seconds after its time in which a test has to end."""


class Server:
    """Serves one test after the other.

    Parameters
    ----------
    listener
        Where clients come.
    relisten
        Listens at any port, for connections with a controller that the client has chosen.
    tell
        Takes each line of the report.
    publish
        Takes each test's JSON document.
    """

    def __init__(
        self,
        listener: Listener,
        relisten: Callable[[str], Listener],
        *,
        tell: Callable[[str], None] = lambda _: None,
        publish: Callable[[JsonObject], None] = lambda _: None,
    ) -> None:
        self._listener = listener
        self._relisten = relisten
        self._tell = tell
        self._publish = publish
        self._guests: dict[Connection, float] = {}
        self._lock = threading.Lock()
        self._test: _Test | None = None
        self._count = 0

    def serve(self) -> None:
        """Serve until somebody interrupts it."""
        self._announce()
        while True:
            self.step()

    def step(self) -> None:
        """Take a connection, or send away those that say nothing."""
        with suppress(TimeoutError):
            self._admit(self._listener.accept(timeout=_TICK))
        now = time.monotonic()
        with self._lock:
            late = [guest for guest, deadline in self._guests.items() if deadline < now]
        for guest in late:
            guest.abort()

    def _announce(self) -> None:
        self._count += 1
        rule = "-" * 59
        port = self._listener.address[1]
        self._tell(rule)
        self._tell(f"Server listening on {port} (test #{self._count})")
        self._tell(rule)

    def _admit(self, connection: Connection) -> None:
        """Let a connection say what it is for."""
        with self._lock:
            if len(self._guests) >= _GUESTS:
                connection.abort()
                return
            self._guests[connection] = time.monotonic() + PATIENCE
        threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, connection: Connection) -> None:
        """Hear what a connection is for, and see to it."""
        try:
            role, cookie = read_greeting(connection)
            if role is Role.DATA:
                self._join(connection, cookie)
                return
            settings = Settings.from_json(read_message(connection))
        except (PerfError, OSError):
            connection.abort()
            return
        finally:
            with self._lock:
                self._guests.pop(connection, None)
        self._host(connection, cookie, settings)

    def _join(self, connection: Connection, cookie: bytes) -> None:
        """Hand a stream to its test."""
        with self._lock:
            test = self._test
            known = test is not None and hmac.compare_digest(test.cookie, cookie)
            if test is None or not known or test.streams.full():
                raise PerfError("a stream of no test")
            test.streams.put_nowait(connection)

    def _host(self, control: Connection, cookie: bytes, settings: Settings) -> None:
        """Do a test, unless another one is being done."""
        test = _Test(control, cookie, settings, queue.Queue(settings.streams))
        with self._lock:
            busy = self._test is not None
            if not busy:
                self._test = test
        try:
            if busy:
                write_message(control, {"error": "the server is busy running a test"})
            else:
                self._run(test)
        except (PerfError, OSError, queue.Empty) as problem:
            if not busy:
                self._tell(f"cwnd perf: the test was ended: {_explain(problem)}")
            with suppress(OSError):
                write_message(control, {"error": _explain(problem)})
        finally:
            with suppress(OSError):
                control.close()
            if not busy:
                self._announce()

    def _run(self, test: _Test) -> None:
        """Do a test."""
        host, port = test.control.peer[:2]
        self._tell(f"Accepted connection from {host}, port {port}")
        settings = test.settings
        report = Report(settings, settings.reverse, self._tell)
        over = threading.Event()
        streams: list[Stream] = []
        second: Listener | None = None
        try:
            second = self._second(settings)
            write_message(test.control, {"port": second and second.address[1]})
            deadline = time.monotonic() + PATIENCE
            if second is not None:
                self._admit_from(second, test, deadline)
            for number in range(1, settings.streams + 1):
                connection = test.streams.get(timeout=max(0.0, deadline - time.monotonic()))
                streams.append(Stream(number, connection, sends=settings.reverse, over=over))
                host, port = connection.peer[:2]
                self._tell(f"[{number:3d}] connected to {host} port {port}")
            write_message(test.control, {"go": True})
            own = self._measure(test, report, streams, over)
        finally:
            for stream in streams:
                stream.end()
            with self._lock:
                self._test = None
            while not test.streams.empty():
                test.streams.get_nowait().abort()
            if second is not None:
                second.close()
        # The client may come again as soon as it has this.
        write_message(test.control, own)
        self._publish_test(report, streams, own)

    def _second(self, settings: Settings) -> Listener | None:
        """Listen for streams that need a controller of their own on this side."""
        from cwnd import SpecError, canonical

        try:
            controller = canonical(settings.controller)
        except SpecError as problem:
            raise PerfError(str(problem)) from None
        if not settings.reverse or controller == canonical("udt"):
            return None
        return self._relisten(controller)

    def _admit_from(self, listener: Listener, test: _Test, deadline: float) -> None:
        """Take a test's streams from a listener of its own."""
        taken = 0
        while taken < test.settings.streams and time.monotonic() < deadline:
            with suppress(TimeoutError):
                self._admit(listener.accept(timeout=_TICK))
                taken += 1

    def _measure(
        self, test: _Test, report: Report, streams: list[Stream], over: threading.Event
    ) -> JsonObject:
        """Let data flow until the client ends it."""
        threading.Thread(target=test.listen, args=(over,), daemon=True).start()
        report.begin([stream.sample() for stream in streams])
        start = time.perf_counter()
        for stream in streams:
            stream.start()
        end = start + test.settings.seconds + _GRACE
        due = start + _EVERY
        while not over.wait(max(0.0, due - time.perf_counter())):
            report.interval([stream.sample() for stream in streams])
            due += _EVERY
            if time.perf_counter() > end:
                raise PerfError("the client does not end it")
        for stream in streams:
            stream.stop()
        own = report.result([stream.sample() for stream in streams])
        if test.problem is not None:
            raise test.problem
        if not test.ended:
            broken = [stream.problem for stream in streams if stream.problem is not None]
            raise PerfError(_explain(broken[0]) if broken else "a stream has ended")
        report.tell_own(own)
        return own

    def _publish_test(self, report: Report, streams: list[Stream], own: JsonObject) -> None:
        connected = [
            {
                "socket": stream.number,
                "remote_host": stream.connection.peer[0],
                "remote_port": stream.connection.peer[1],
            }
            for stream in streams
        ]
        self._publish(report.to_json({"connected": connected}, own, None))


@dataclass
class _Test:
    """The test that is being done."""

    control: Connection
    cookie: bytes
    settings: Settings
    streams: queue.Queue[Connection]
    ended: bool = False
    problem: PerfError | OSError | None = None

    def listen(self, over: threading.Event) -> None:
        """Hear the client say that it is over, or find out that it has gone."""
        try:
            read_message(self.control)
            self.ended = True
        except (PerfError, OSError) as problem:
            self.problem = problem
        over.set()


def _explain(problem: Exception) -> str:
    if isinstance(problem, queue.Empty):
        return "the client did not open its streams"
    strerror = problem.strerror if isinstance(problem, OSError) else None
    return strerror or str(problem)
