"""Connections that carry a test's data, with one thread each."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from cwnd._runs.transport_limits import read_limited
from cwnd.perf.protocol import BLOCK, PerfError
from cwnd.perf.report import Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd._base.records import JsonObject
    from cwnd.perf.protocol import Connection, PerfOptions
    from cwnd.perf.report import Report


_POLL = 0.002
"""Interval in seconds of checks for bytes that are sent, acknowledged or received."""

_SETTLE = 1.0
"""Longest wait in seconds for the count and the acknowledgement of a last block."""


class Load:
    """Data for one side's streams to send: paced blocks, up to a total number of bytes."""

    def __init__(self, options: PerfOptions) -> None:
        self.bitrate = options.bitrate
        self.burst = options.burst
        # Random bytes cannot be compressed on the path.
        self.block = os.urandom(options.block)
        self._left: int | None = None
        self._lock = threading.Lock()

    def limit(self, count: int) -> None:
        """Limit the bytes sent from now on to `count`."""
        with self._lock:
            self._left = count

    @property
    def exhausted(self) -> bool:
        """Whether all bytes of the limit have been taken."""
        return self._left == 0

    def take(self) -> bytes:
        """Return the next block to send; empty if the limit is reached."""
        with self._lock:
            if self._left is None:
                return self.block
            count = min(len(self.block), self._left)
            self._left -= count
        return self.block[:count]


class Stream:
    """A connection with a thread that sends, or without ``load`` receives.

    ``over`` is set when the stream breaks.
    """

    def __init__(
        self, number: int, connection: Connection, load: Load | None, over: threading.Event
    ) -> None:
        self.number = number
        self.connection = connection
        self.problem: Exception | None = None
        self._load = load
        self._over = over
        self._stopped = threading.Event()
        self._exhausted = threading.Event()
        self._count = 0
        self._most = 0
        self._room = float(self._stats().get("byte_avail_snd_buf", 0.0))
        self._thread = threading.Thread(target=self._run, name=f"stream {number}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def settle(self) -> None:
        """Wait until the last block of an exhausted load is counted and acknowledged.

        The peer may have received and reported the block before.
        """
        if self._load is None or not self._load.exhausted:
            return
        deadline = time.perf_counter() + _SETTLE
        self._exhausted.wait(_SETTLE)
        while self.sample().count < self._count and time.perf_counter() < deadline:
            time.sleep(_POLL)

    def stop(self) -> None:
        """Stop sending; data in flight may be lost."""
        self._stopped.set()

    def end(self) -> None:
        """Abort the connection."""
        self._stopped.set()
        self.connection.abort()
        if self._thread.ident is not None:
            self._thread.join()

    def addresses(self) -> JsonObject:
        """Return the stream's number and addresses in iperf3's format."""
        (host, port), (remote, remote_port) = self.connection.address[:2], self.connection.peer[:2]
        return {
            "socket": self.number,
            "local_host": _local_address(host, remote),
            "local_port": port,
            "remote_host": remote,
            "remote_port": remote_port,
        }

    def describe(self) -> str:
        """Return iperf3's line about an opened stream."""
        known = self.addresses()
        return (
            f"[{self.number:3d}] local {known['local_host']} port {known['local_port']} "
            f"connected to {known['remote_host']} port {known['remote_port']}"
        )

    def sample(self) -> Sample:
        """Return the counters of the stream since its beginning."""
        count, stats = self._count, self._stats()
        if self._load is not None:
            # Data in the send buffer are not acknowledged yet.
            waiting = self._room - float(stats.get("byte_avail_snd_buf", self._room))
            count -= max(0, int(waiting))
        self._most = max(self._most, count)
        again = int(stats.get("pkt_retrans_total", 0))
        window = stats.get("byte_congestion_window")
        if window is None:
            sent = stats.get("pkt_sent_total", 0) - again
            packet = stats.get("byte_sent_total", 0) / sent if sent else 0.0
            window = stats.get("pkt_congestion_window", 0) * packet
        return Sample(
            number=self.number,
            count=self._most,
            retransmits=again,
            window=int(window),
            rtt_us=round(1e3 * stats.get("ms_rtt", 0.0)),
            limited_s=read_limited(stats),
        )

    def _stats(self) -> dict[str, Any]:
        try:
            return dict(self.connection.stats())
        except OSError:
            return {}

    def _run(self) -> None:
        try:
            if self._load is None:
                self._receive()
            else:
                self._send(self._load)
        except Exception as problem:  # noqa: BLE001 (also those of a controller in Python)
            if not self._stopped.is_set():
                self.problem = problem
                self._over.set()

    def _send(self, load: Load) -> None:
        start, count = time.perf_counter(), 0
        while not self._stopped.is_set():
            if load.bitrate and count % load.burst == 0:
                # As in iperf3, the rate is an average since the start: a delayed stream
                # catches up.
                due = start + 8 * count * len(load.block) / load.bitrate
                if self._stopped.wait(max(0.0, due - time.perf_counter())):
                    return
            block = load.take()
            if not block:
                self._exhausted.set()
                self._stopped.wait()
                return
            self.connection.send(block)
            self._count += len(block)
            count += 1

    def _receive(self) -> None:
        while data := self.connection.recv(BLOCK):
            self._count += len(data)
        if not self._stopped.is_set():
            self.problem = ConnectionResetError("the peer closed a stream")
            self._over.set()


def _local_address(host: str, remote: str) -> str:
    """Return the local address used to reach a peer, for a socket bound to all addresses."""
    if host not in {"0.0.0.0", "::"}:  # noqa: S104
        return host
    family = socket.AF_INET6 if ":" in remote else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            # No packet is sent; connect() only selects a route.
            trial.connect((remote, 9))
            return str(trial.getsockname()[0])
    except OSError:
        return host


def watch(
    report: Report,
    sample: Callable[[], list[Sample]],
    over: threading.Event,
    *,
    every: float,
    seconds: float,
    enough: Callable[[], bool] | None = None,
    silence: float = math.inf,
) -> bool:
    """Report intervals for at most ``seconds``, and return whether ``over`` was set.

    ``sample`` returns a sample of each stream, ``every`` is the interval in seconds or 0 for none,
    and ``enough`` ends the test. No data for ``silence`` seconds, checked with each report, is a
    PerfError.
    """
    start = last_data = time.perf_counter()
    count = 0
    end = start + seconds
    due = start + every if every else end
    while True:
        wait = max(0.0, min(due, end) - time.perf_counter())
        if over.wait(wait if enough is None else min(wait, _POLL)):
            return True
        now = time.perf_counter()
        finished = now >= end or (enough is not None and enough())
        # A last interval much shorter than the others is not reported.
        if every and (now >= due or finished) and now - (due - every) > every / 10:
            samples = sample()
            report.interval(samples)
            before, count = count, sum(one.count for one in samples)
            if count != before:
                last_data = now
            elif now - last_data > silence:
                raise PerfError(f"no data for {silence:.0f} s")
        if finished:
            return False
        if now >= due:
            due += every
