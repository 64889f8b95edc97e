"""The connections that carry a test's data, each with its thread."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from cwnd.perf.report import Sample

if TYPE_CHECKING:
    from cwnd.transfer.connection import Connection

BLOCK = 1 << 17
"""Bytes that are sent or received at once: iperf3's."""


class Stream:
    """One connection and the thread that sends or receives over it.

    Parameters
    ----------
    number
        Which of the streams it is, from 1.
    connection
        What carries the data.
    sends
        Whether this side sends them.
    over
        Set when the stream breaks.
    """

    def __init__(
        self, number: int, connection: Connection, *, sends: bool, over: threading.Event
    ) -> None:
        self.number = number
        self.connection = connection
        self.problem: OSError | None = None
        self._sends = sends
        self._over = over
        self._stopped = False
        self._count = 0
        self._most = 0
        self._room = float(self._stats().get("byte_avail_snd_buf", 0.0))
        self._thread = threading.Thread(target=self._run, name=f"stream {number}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more; what is under way may be lost."""
        self._stopped = True

    def end(self) -> None:
        """End the connection at once."""
        self._stopped = True
        self.connection.abort()
        self._thread.join()

    def sample(self) -> Sample:
        """Say what it has done until now."""
        count, stats = self._count, self._stats()
        if self._sends:
            # What waits to be sent, or to be acknowledged, has not crossed the network.
            waiting = self._room - float(stats.get("byte_avail_snd_buf", self._room))
            count -= max(0, int(waiting))
        self._most = max(self._most, count)
        again = int(stats.get("pkt_retrans_total", 0))
        sent = stats.get("pkt_sent_total", 0) - again
        packet = stats.get("byte_sent_total", 0) / sent if sent else 0.0
        return Sample(
            number=self.number,
            count=self._most,
            retransmits=again,
            window=int(stats.get("pkt_congestion_window", 0) * packet),
            rtt_us=round(1e3 * stats.get("ms_rtt", 0.0)),
        )

    def _stats(self) -> dict[str, Any]:
        try:
            return dict(self.connection.stats())
        except OSError:
            return {}

    def _run(self) -> None:
        try:
            if self._sends:
                self._send()
            else:
                self._receive()
        except OSError as problem:
            if not self._stopped:
                self.problem = problem
                self._over.set()

    def _send(self) -> None:
        # Bytes that no path could make fewer.
        block = os.urandom(BLOCK)
        while not self._stopped:
            self.connection.send(block)
            self._count += BLOCK

    def _receive(self) -> None:
        while data := self.connection.recv(BLOCK):
            self._count += len(data)
        if not self._stopped:
            self.problem = ConnectionResetError("the other side has ended a stream")
            self._over.set()
