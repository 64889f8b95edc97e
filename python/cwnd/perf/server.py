"""Server of throughput tests."""

from __future__ import annotations

import hmac
import queue
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from cwnd._runs.transport_limits import DEFAULT_CONTROLLER
from cwnd.perf.protocol import (
    PATIENCE,
    PerfError,
    PerfOptions,
    Role,
    VersionError,
    read_greeting,
    read_message,
    write_message,
)
from cwnd.perf.report import Report, Sample
from cwnd.perf.streams import Load, Stream, watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd._base.records import JsonObject
    from cwnd.perf.protocol import Connection, Listener

T = TypeVar("T")

_TICK = 0.1
"""Interval in seconds of checks for signals and deadlines."""

_GUESTS = 256
"""Largest number of connections whose role is not yet known."""

_EVERY = 1.0
_SILENCE = 15.0
"""Seconds without data after which a test fails."""

_DEAD = 3.0
"""Seconds without data or new streams after which another client replaces a test's client."""

_GRACE = 30.0
"""Seconds after its planned end at which a test is aborted."""


class Server:
    """Serves one test at a time.

    Parameters
    ----------
    listener
        Accepts connections of clients.
    relisten
        Creates a listener on any free port, with a controller chosen by the client.
    tell
        Called with each line of the report.
    publish
        Called with the JSON document of each test.
    protocol
        Transport protocol by name, for the report.
    """

    def __init__(
        self,
        listener: Listener,
        relisten: Callable[[str], Listener],
        *,
        tell: Callable[[str], None] = lambda _: None,
        publish: Callable[[JsonObject], None] = lambda _: None,
        protocol: str = "UDT",
    ) -> None:
        self._listener = listener
        self._protocol = protocol
        self._relisten = relisten
        self._tell = self._guarded(tell)
        self._publish = self._guarded(publish)
        self._broken: BrokenPipeError | None = None
        self._guests: dict[Connection, float] = {}
        self._lock = threading.Lock()
        self._test: _Test | None = None
        self._count = 0
        self._one_off = False
        self._results: list[bool] = []

    def _guarded(self, write: Callable[[T], None]) -> Callable[[T], None]:
        """Catch errors of an output whose reader is gone, and raise them in the serving thread."""

        def attempt(what: T) -> None:
            try:
                write(what)
            except BrokenPipeError as problem:
                self._broken = problem

        return attempt

    def serve(self, *, one_off: bool = False) -> bool:
        """Serve until interrupted, or until the first test ends.

        Parameters
        ----------
        one_off
            Whether to stop after the first test whose streams were all opened.

        Returns
        -------
        bool
            Whether the last test succeeded.
        """
        self._one_off = one_off
        self._announce()
        try:
            while not (one_off and self._results):
                self.step()
        finally:
            self._end()
        return self._results[-1]

    def _end(self) -> None:
        """Abort all connections, so that no client waits for this server."""
        with self._lock:
            connections = list(self._guests)
            if self._test is not None:
                connections += self._test.connections()
        for connection in connections:
            connection.abort()

    def step(self) -> None:
        """Accept a connection, and close connections whose role does not arrive in time."""
        with suppress(TimeoutError):
            self._admit(self._listener.accept(timeout=_TICK))
        if self._broken is not None:
            raise self._broken
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
        """Wait for the role of a connection."""
        with self._lock:
            if len(self._guests) >= _GUESTS:
                connection.abort()
                return
            self._guests[connection] = time.monotonic() + PATIENCE
        threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, connection: Connection) -> None:
        """Receive the role of a connection, and serve the connection."""
        try:
            role, cookie = read_greeting(connection)
            if role is Role.DATA:
                self._join(connection, cookie)
                return
            document = read_message(connection)
        except VersionError as problem:
            _refuse(connection, problem)
            return
        except (PerfError, OSError):
            connection.abort()
            return
        finally:
            with self._lock:
                self._guests.pop(connection, None)
        try:
            options = PerfOptions.from_json(document)
        except PerfError as problem:
            _refuse(connection, problem)
        else:
            self._host(connection, cookie, options)

    def _join(self, connection: Connection, cookie: bytes) -> None:
        """Hand a stream to its test."""
        with self._lock:
            test = self._test
            known = test is not None and hmac.compare_digest(test.cookie, cookie)
            if test is None or not known or test.streams.full():
                raise PerfError("the stream belongs to no test")
            test.streams.put_nowait(connection)

    def _host(self, control: Connection, cookie: bytes, options: PerfOptions) -> None:
        """Run a test, unless another is running whose client is alive."""
        test = _Test(control, cookie, options, queue.Queue(options.streams))
        while (other := self._claim(test)) is not None:
            if other.is_alive():
                _refuse(control, PerfError("the server is busy running a test"))
                return
            other.abandon()
            other.done.wait()
        try:
            self._finish(test)
        finally:
            test.done.set()

    def _finish(self, test: _Test) -> None:
        """Run a test, and report its failure."""
        try:
            self._run(test)
        except (PerfError, OSError, queue.Empty) as problem:
            self._tell(f"cwnd perf: the test failed: {_explain(problem)}")
            _refuse(test.control, problem)
        else:
            with suppress(OSError):
                test.control.close()
        if test.began:
            self._results.append(test.ended)
        if not (self._one_off and self._results):
            self._announce()

    def _claim(self, test: _Test) -> _Test | None:
        """Make a test the running one; return another one that is running instead."""
        with self._lock:
            if self._test is None:
                self._test = test
                return None
            return self._test

    def _run(self, test: _Test) -> None:
        """Run a test."""
        host, port = test.control.peer[:2]
        self._tell(f"Accepted connection from {host}, port {port}")
        options = test.options
        report = Report(options, options.reverse, self._tell, self._protocol)
        load = Load(options) if options.reverse else None
        if load is not None and options.bytes and not options.omit:
            load.limit(options.bytes)
        streams = test.opened
        second: Listener | None = None
        try:
            second = self._second_listener(options)
            write_message(test.control, {"port": second and second.address[1]})
            deadline = time.monotonic() + PATIENCE
            if second is not None:
                self._admit_from(second, test, deadline)
            threading.Thread(target=test.listen, daemon=True).start()
            for number in range(1, options.streams + 1):
                streams.append(Stream(number, test.next_stream(deadline), load, test.over))
                self._tell(streams[-1].describe())
            write_message(test.control, {"go": True})
            test.began = True
            own = self._measure(test, report, streams)
        finally:
            for stream in streams:
                stream.end()
            with self._lock:
                if self._test is test:
                    self._test = None
            while not test.streams.empty():
                test.streams.get_nowait().abort()
            if second is not None:
                second.close()
        # After this message the client may start its next test.
        write_message(test.control, own)
        self._publish_test(report, streams, own)

    def _second_listener(self, options: PerfOptions) -> Listener | None:
        """Listen on another port if this side sends with a controller other than the default."""
        from cwnd._controllers.registry import canonical
        from cwnd._native import SpecError

        if not options.reverse:
            return None
        try:
            # Registered controllers only: a peer must not choose a file to execute.
            controller = canonical(options.controller)
            if controller == canonical(DEFAULT_CONTROLLER):
                return None
            return self._relisten(controller)
        except SpecError as problem:
            raise PerfError(str(problem)) from None

    def _admit_from(self, listener: Listener, test: _Test, deadline: float) -> None:
        """Accept a test's streams from its own listener."""
        taken = 0
        wanted = test.options.streams
        while taken < wanted and time.monotonic() < deadline and not test.over.is_set():
            with suppress(TimeoutError):
                self._admit(listener.accept(timeout=_TICK))
                taken += 1

    def _measure(self, test: _Test, report: Report, streams: list[Stream]) -> JsonObject:
        """Transfer data until the client ends the test."""

        def sample() -> list[Sample]:
            return [stream.sample() for stream in streams]

        options, over = test.options, test.over
        silence = _SILENCE + test.gap
        report.begin(sample(), omitted=bool(options.omit))
        for stream in streams:
            stream.start()
        if options.omit and not watch(
            report, sample, over, every=_EVERY, seconds=options.omit, silence=silence
        ):
            report.begin(sample())
        limit = options.longest - options.omit + _GRACE
        if not watch(report, sample, over, every=_EVERY, seconds=limit, silence=silence):
            raise PerfError("the client did not end the test")
        for stream in streams:
            stream.settle()
        own = report.result(sample())
        for stream in streams:
            stream.stop()
        if test.problem is not None:
            raise test.problem
        if not test.ended:
            broken = [stream.problem for stream in streams if stream.problem is not None]
            raise PerfError(_explain(broken[0]) if broken else "a stream ended")
        report.tell_own(own)
        return own

    def _publish_test(self, report: Report, streams: list[Stream], own: JsonObject) -> None:
        connected = [stream.addresses() for stream in streams]
        self._publish(report.to_json({"connected": connected}, own, None))


@dataclass
class _Test:
    """State of the current test."""

    control: Connection
    cookie: bytes
    options: PerfOptions
    streams: queue.Queue[Connection]
    opened: list[Stream] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    began: bool = False
    ended: bool = False
    problem: PerfError | OSError | None = None
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def gap(self) -> float:
        """Seconds without data that a low rate explains: bursts of a stream are far apart."""
        options = self.options
        return 16 * options.block * options.burst / options.bitrate if options.bitrate else 0.0

    def listen(self) -> None:
        """Wait until the client ends the test or its connection ends."""
        try:
            read_message(self.control)
            self.ended = True
        except (PerfError, OSError) as problem:
            self.problem = self.problem or problem
        self.over.set()

    def next_stream(self, deadline: float) -> Connection:
        """Wait for a stream; PerfError if the client ends the test, `queue.Empty` if late."""
        while True:
            try:
                return self.streams.get(timeout=_TICK)
            except queue.Empty:
                if self.over.is_set():
                    raise self.problem or PerfError("the client ended the test") from None
                if time.monotonic() >= deadline:
                    raise

    def is_alive(self) -> bool:
        """Wait for data, acknowledgements, a new stream or the end of the test.

        Return False if the test ends, or nothing else happens for `_DEAD` seconds.
        """
        limit = _DEAD + self.gap
        deadline, before = time.monotonic() + limit, self._progress()
        while not self.done.wait(_TICK):
            if limit > PATIENCE or self._progress() != before:
                return True
            if time.monotonic() > deadline:
                return False
        return False

    def _progress(self) -> list[int]:
        return [stream.sample().count for stream in list(self.opened)]

    def connections(self) -> list[Connection]:
        """Return the control connection and those of the streams."""
        return [self.control, *(stream.connection for stream in list(self.opened))]

    def abandon(self) -> None:
        """End the test, because its client does not respond."""
        self.problem = self.problem or PerfError("the client does not respond, and another waits")
        self.over.set()
        for connection in self.connections():
            connection.abort()


def _refuse(control: Connection, problem: Exception) -> None:
    """Send the client the reason for refusing the test, and close its connection."""
    with suppress(OSError):
        write_message(control, {"error": _explain(problem)})
        control.close()


def _explain(problem: Exception) -> str:
    if isinstance(problem, queue.Empty):
        return "the client did not open its streams"
    strerror = problem.strerror if isinstance(problem, OSError) else None
    return strerror or str(problem)
