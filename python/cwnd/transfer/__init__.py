"""Files and folders over UDT: `send` and `receive`.

The protocol is described in docs/transfer.md; the engine is the crate ``cwnd-transfer``.

>>> import tempfile, threading
>>> from pathlib import Path
>>> from cwnd import udt
>>> from cwnd.transfer import ReceiveOptions, receive, send
>>> with tempfile.TemporaryDirectory() as folder, udt.listen(0, "127.0.0.1") as listener:
...     source, out = Path(folder) / "hello.txt", Path(folder) / "inbox"
...     _ = source.write_text("hello")
...     out.mkdir()
...     options = {"options": ReceiveOptions(once=True)}
...     thread = threading.Thread(target=receive, args=[listener, out], kwargs=options)
...     thread.start()
...     outcome = send([source], *listener.address)
...     thread.join()
...     outcome.outcome, outcome.files, (out / "hello.txt").read_text()
('complete', 1, 'hello')
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from cwnd import _native
from cwnd._runs.defaults import RESERVE, RETRY
from cwnd._runs.transport_limits import DEFAULT_CONTROLLER, Path, advise
from cwnd.errors import ArgumentError
from cwnd.udt import Listener, client_options

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from cwnd.controller import Spec

__all__ = [
    "Event",
    "Outcome",
    "ReceiveOptions",
    "SendOptions",
    "SourceError",
    "TransferError",
    "receive",
    "send",
]

Event: TypeAlias = dict[str, Any]
"""An event of a transfer, as plain JSON values; ``event`` is its kind.

Paths and reasons contain no control characters. docs/json.md lists the kinds.
"""

_TICK = 0.05
"""Interval in seconds of checks for events and Ctrl-C."""


class TransferError(OSError):
    """A transfer that failed; the message is one sentence."""


class SourceError(TransferError):
    """A source that cannot be sent: nothing was sent."""


@dataclass(frozen=True)
class SendOptions:
    """Options of a sender.

    Attributes
    ----------
    include, exclude
        Patterns such as ``*.o`` or ``build/*.o``. A pattern without a slash matches names, one with
        a slash the path below a source. Names that match an exclude pattern are skipped. With
        include patterns, only files that match one of them are sent.
    checksum
        Compare hashes instead of sizes and times, and send only blocks that differ.
    dry_run
        Query the receiver's decisions, and send nothing.
    retry
        Number of further attempts if there is no connection, or it breaks. With a one-time code
        only a connection that was open is retried.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    checksum: bool = False
    dry_run: bool = False
    retry: int = RETRY


@dataclass(frozen=True)
class ReceiveOptions:
    """Options of a receiver.

    Attributes
    ----------
    max_bytes, max_files
        Limits of the bytes, and of the files, folders and links, of all transfers together.
    reserve
        Disk space to keep free: a share such as ``5%``, or a size such as ``10GB``.
    overwrite
        Replace existing files that differ.
    allow_dotfiles
        Accept names that begin with a dot at the top of the folder.
    once
        Return after one complete transfer.
    """

    max_bytes: int | None = None
    max_files: int | None = None
    reserve: str = RESERVE
    overwrite: bool = False
    allow_dotfiles: bool = False
    once: bool = False


@dataclass(frozen=True)
class Outcome:
    """Result of a transfer.

    Attributes
    ----------
    transfer
        Number of the transfer.
    peer
        Address of the receiver.
    outcome
        ``complete``, ``incomplete`` if something was not sent, or ``failed``.
    files, bytes
        Files that are complete at the receiver, and their bytes.
    present_bytes
        Bytes of these that the receiver already had.
    moved_bytes
        Bytes of file contents sent over the network.
    seconds, rate_bps
        Duration, and bits per second sent over the network.
    not_sent
        Files, folders and links that could not be sent or were refused.
    retransmissions
        Retransmitted packets.
    rtt_s
        The smoothed round-trip time in seconds.
    limited
        Shares of time for which each cause limited the rate; their sum is 1.
    advice
        A sentence about the largest share, if it is more than a third.
    reason
        Reason of a failure.
    """

    transfer: int
    peer: str
    outcome: str
    files: int
    bytes: int
    present_bytes: int
    moved_bytes: int
    seconds: float
    rate_bps: float
    not_sent: int
    retransmissions: int
    rtt_s: float
    limited: dict[str, float] = field(default_factory=dict)
    advice: str | None = None
    reason: str | None = None


def send(
    sources: Sequence[str | os.PathLike[str] | bytes],
    host: str,
    port: int,
    *,
    options: SendOptions = SendOptions(),
    observe: Callable[[Event], None] | None = None,
    controller: Spec = DEFAULT_CONTROLLER,
    **connection: Any,  # noqa: ANN401
) -> Outcome:
    """Send files, folders and standard input.

    If the connection breaks, the next attempt continues where the last one stopped.

    Parameters
    ----------
    sources
        Paths; ``-`` is standard input. A symbolic link among them is followed.
    host, port
        Address of the receiver.
    options
        Selection of files, and how to send them.
    observe
        Called with each event.
    controller
        Congestion controller, as for :func:`cwnd.udt.connect`.
    **connection
        Further keyword arguments of :func:`cwnd.udt.connect`: rate limit, credentials.

    Returns
    -------
    Outcome
        The result; some files may not have been sent.

    Raises
    ------
    TransferError
        The transfer failed. The same call continues where it stopped.
    SourceError
        A source cannot be sent, such as a missing one or two of one name.
    ArgumentError
        An argument is invalid, such as a pattern.
    """
    socket = client_options(port, controller, **connection)
    paths = [os.fsdecode(source) for source in sources]
    chosen = asdict(options) | {
        "include": list(options.include),
        "exclude": list(options.exclude),
    }
    try:
        transfer = _native.transfer_send(paths, host, port, socket, chosen)
    except ValueError as mistake:
        raise ArgumentError("include" if options.include else "exclude", str(mistake)) from None
    # A rate limit is intended: no other controller is advised.
    law = str(controller) if connection.get("rate_limit") is None else None
    try:
        ends = _run(transfer, observe, None, law)
    except TransferError as problem:
        # Other failures are events.
        raise SourceError(str(problem)) from None
    outcome = Outcome(**{name: value for name, value in ends[-1].items() if name != "event"})
    if outcome.reason is not None:
        raise TransferError(outcome.reason)
    return outcome


def receive(
    listener: Listener | Sequence[Listener],
    out: str | os.PathLike[str],
    *,
    options: ReceiveOptions = ReceiveOptions(),
    observe: Callable[[Event], None] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Receive files into one folder.

    Parameters
    ----------
    listener
        Accepts the senders' connections; limits hold for several listeners together.
    out
        An existing folder; nothing is written outside it.
    options
        Limits and rules for received files.
    observe
        Called with each event of all transfers.
    stop
        Event that stops receiving.

    Raises
    ------
    TransferError
        The folder cannot be opened, or a listener failed.
    ArgumentError
        An argument is invalid.
    """
    listeners = [listener] if isinstance(listener, Listener) else listener
    native = [each._listener for each in listeners]  # noqa: SLF001
    try:
        transfer = _native.transfer_receive(native, os.fsdecode(out), asdict(options))
    except ValueError as mistake:
        raise ArgumentError("reserve", str(mistake)) from None
    _run(transfer, observe, stop)


class _Watcher:
    """Adds advice to the final events of transfers, keeps these, and passes all events on.

    With the sender's `controller`, the advice may name another one.
    """

    def __init__(self, observe: Callable[[Event], None] | None, controller: str | None) -> None:
        self.ends: list[Event] = []
        self._observe = observe
        self._controller = controller
        self._path = Path()

    def watch(self, event: Event) -> None:
        if event["event"] == "progress" and self._controller is not None:
            self._path.add(event["rtt_s"], event["retransmissions"])
        if event["event"] == "end":
            event["advice"] = advise(event["limited"], self._path.state, self._controller)
            self.ends = [event]
        if self._observe is not None:
            self._observe(event)


def _run(
    transfer: _native.Transfer,
    observe: Callable[[Event], None] | None,
    stop: threading.Event | None,
    controller: str | None = None,
) -> list[Event]:
    """Pass events to `observe` until the end, and return the final events of transfers."""
    watcher = _Watcher(observe, controller)
    try:
        while (events := transfer.poll(_TICK)) is not None:
            if len(events) > 2:
                for event in json.loads(events):
                    watcher.watch(event)
            if stop is not None and stop.is_set():
                transfer.stop()
    except BaseException:
        transfer.stop()
        # Give the native code time to notify the peer before the process exits.
        transfer.poll(1.0)
        raise
    try:
        transfer.join()
    except OSError as problem:
        raise TransferError(str(problem)) from None
    return watcher.ends
