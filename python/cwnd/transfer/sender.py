"""The sending side of a transfer."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cwnd.transfer import frames
from cwnd.transfer.connection import Observer, Outcome, Progress, TransferError
from cwnd.transfer.digest import Chunks, Hash, new_hash
from cwnd.transfer.frames import Answer, Channel, Kind, Offer, ProtocolError, Verdict, What
from cwnd.transfer.source import Changed, Entry, check_unchanged, open_entry, stream_entry, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.transfer.connection import Connection

_LAST_WORDS = 2.0
"""Seconds in which a receiver's reason may follow the end of its connection."""

STDIN = b"-"


def send(connection: Connection, path: bytes, observer: Observer | None = None) -> Outcome:
    """Send a file, a directory, or standard input.

    Parameters
    ----------
    connection
        To the receiver; it stays open.
    path
        What to send; ``-`` is standard input.
    observer
        Who is told how it goes.

    Returns
    -------
    Outcome
        What has arrived, verified.

    Raises
    ------
    TransferError
        It was not brought to its end; the next try goes on there.
    OSError
        The connection failed.
    """
    observer = observer or Observer()
    with closing(Chunks()) as chunks:
        return _Sender(connection, chunks, observer).run(path)


@dataclass
class _Item:
    """An offer that is not settled."""

    entry: Entry
    hash: Hash | None = None
    """Of the bytes that the receiver has, once they were hashed."""
    offset: int = 0
    """Where its data begin."""
    claimed: bool = False
    """Whether the receiver was told what they are, which is done once."""
    sent: bool = False
    """Whether everything was said of it: what comes next settles it."""


_Reply: TypeAlias = Answer | Kind | TransferError | OSError
"""An answer, the receiver's end, or why there will be no more."""


class _Sender:
    def __init__(self, connection: Connection, chunks: Chunks, observer: Observer) -> None:
        self._channel = Channel(connection)
        self._chunks = chunks
        self._observer = observer
        self._progress = Progress()
        self._outcome = Outcome()
        self._offered = 0
        self._items: dict[int, _Item] = {}
        self._ready: deque[int] = deque()
        self._directories: list[Offer] = []
        self._replies: queue.Queue[_Reply] = queue.Queue(2 * frames.WINDOW)

    def run(self, path: bytes) -> Outcome:
        self._channel.greet()
        self._channel.expect_greeting()
        threading.Thread(target=self._listen, name="answers", daemon=True).start()
        try:
            self._everything(path)
        except OSError as problem:
            raise self._last_words() or problem from None
        except ProtocolError as problem:
            with suppress(OSError):
                self._channel.write(Kind.STOP, frames.pack_text(str(problem)))
                self._channel.flush()
            raise
        return self._outcome

    def _listen(self) -> None:
        """Take the receiver's answers, so that it never waits for a sender that waits for it."""
        try:
            while True:
                kind, length = self._channel.read()
                reply = _reply(kind, self._channel.payload(length))
                self._replies.put(reply)
                if reply is Kind.DONE:
                    return
        except (TransferError, OSError) as problem:
            self._replies.put(problem)

    def _last_words(self) -> TransferError | None:
        """Find out why the receiver has ended the connection."""
        with suppress(queue.Empty):
            while True:
                reply = self._replies.get(timeout=_LAST_WORDS)
                if isinstance(reply, TransferError):
                    return reply
                if isinstance(reply, OSError):
                    break
        return None

    def _everything(self, path: bytes) -> None:
        """Offer everything, send what is wanted, and wait until all of it is settled."""
        if path == STDIN:
            entries = iter([stream_entry()])
        else:
            self._plan(path)
            entries = walk(path, self._skipped, self._failed)
        self._settle(entries)
        # What is in a directory changes its time, and its mode may forbid to write in it.
        seals = (
            Entry(o.path, Offer(What.SEAL, o.mode, 0, o.mtime_ns, o.path))
            for o in reversed(self._directories)
        )
        self._settle(seals)
        self._channel.write(Kind.DONE)
        self._channel.flush()
        while (reply := self._replies.get()) is not Kind.DONE:
            self._handle(reply)

    def _plan(self, path: bytes) -> None:
        """Tell how much it will be."""
        files = 0
        for entry in walk(path, lambda _: None, lambda _: None):
            files += entry.offer.what is What.FILE
            self._progress.total += entry.offer.size
        self._channel.write(Kind.PLAN, frames.pack_plan(files, self._progress.total))

    def _skipped(self, line: str) -> None:
        self._outcome.skipped += 1
        self._observer.say(f"skipped: {line}")

    def _failed(self, line: str) -> None:
        self._outcome.failed += 1
        self._observer.say(f"not sent: {line}")

    def _settle(self, entries: Iterator[Entry]) -> None:
        """Offer entries ahead of the data, until all are settled."""
        more = True
        while more or self._items:
            while more and len(self._items) < frames.WINDOW:
                entry = next(entries, None)
                if entry is None:
                    more = False
                else:
                    self._offer(entry)
            self._listen_now()
            if self._ready:
                number = self._ready.popleft()
                self._send(number, self._items[number])
            elif self._items:
                self._channel.flush()
                self._handle(self._replies.get())

    def _offer(self, entry: Entry) -> None:
        self._items[self._offered] = _Item(entry)
        self._offered += 1
        self._channel.write(Kind.OFFER, entry.offer.pack())

    def _listen_now(self) -> None:
        """Do what has been answered."""
        with suppress(queue.Empty):
            while True:
                self._handle(self._replies.get_nowait())

    def _handle(self, reply: _Reply) -> None:
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Kind) or reply.number not in self._items:
            raise ProtocolError("an answer to nothing")
        item = self._items[reply.number]
        offer = item.entry.offer
        if reply.verdict is Verdict.REFUSED:
            del self._items[reply.number]
            self._failed(f"{item.entry.label}: {reply.why}")
        elif reply.verdict is Verdict.SETTLED:
            self._settled(reply.number, item)
        elif item.sent or offer.what not in {What.FILE, What.STREAM}:
            raise ProtocolError("a wish for what cannot be sent")
        elif reply.verdict is Verdict.HAVE:
            if item.claimed or not 0 < reply.offset <= offer.size:
                raise ProtocolError("it has what nobody offered")
            self._claim(reply.number, item, reply.offset)
        else:
            self._wanted(reply, item)

    def _settled(self, number: int, item: _Item) -> None:
        offer = item.entry.offer
        del self._items[number]
        if offer.what is What.DIRECTORY:
            self._directories.append(offer)
        elif offer.what is not What.SEAL:
            if not (item.sent or item.hash is not None):
                raise ProtocolError("it has what was not sent")
            self._outcome.files += 1
            self._progress.files += 1
            self._outcome.bytes += item.offset if offer.what is What.STREAM else offer.size
            if not item.sent:
                self._progress.done += offer.size
            self._observer.show(self._progress)

    def _wanted(self, reply: Answer, item: _Item) -> None:
        """Note that a file is to be sent, and from where."""
        if reply.number in self._ready or reply.offset not in {0, item.offset}:
            raise ProtocolError("a wish for what was not claimed")
        if reply.offset == 0:
            item.hash, item.offset = None, 0
        if reply.why:
            self._observer.say(f"begun anew: {item.entry.label}: {reply.why}")
        self._ready.append(reply.number)

    def _claim(self, number: int, item: _Item, length: int) -> None:
        """Say what the first bytes are that the receiver has some of."""
        item.claimed = True
        found = new_hash()
        try:
            fd = open_entry(item.entry)
            try:
                self._chunks.add_file(found, fd, length)
            finally:
                os.close(fd)
        except (Changed, OSError) as problem:
            self._withdraw(number, item, problem)
            return
        item.hash, item.offset = found, length
        self._channel.write(Kind.CLAIM, frames.pack_claim(number, length, found.digest()))

    def _withdraw(self, number: int, item: _Item, problem: Exception) -> None:
        """Tell that a file cannot be sent after all."""
        strerror = problem.strerror if isinstance(problem, OSError) else None
        why = strerror or str(problem)
        del self._items[number]
        self._failed(f"{item.entry.label}: {why}")
        self._channel.write(Kind.ABORT, frames.pack_abort(number, why))

    def _send(self, number: int, item: _Item) -> None:
        """Send a file's data, from where the receiver wants them."""
        stream = item.entry.offer.what is What.STREAM
        try:
            fd = 0 if stream else open_entry(item.entry)
        except (Changed, OSError) as problem:
            self._withdraw(number, item, problem)
            return
        try:
            self._send_from(fd, number, item)
        finally:
            if not stream:
                os.close(fd)

    def _send_from(self, fd: int, number: int, item: _Item) -> None:
        """Send what a descriptor gives, and the hash of it all."""
        offer = item.entry.offer
        found = item.hash or new_hash()
        if item.offset:
            os.lseek(fd, item.offset, os.SEEK_SET)
        self._progress.name = item.entry.label
        self._progress.done += item.offset
        self._channel.write(Kind.BEGIN, frames.pack_begin(number, item.offset))
        left = offer.size - item.offset
        while offer.what is What.STREAM or left > 0:
            try:
                data = self._chunks.read(fd)
                count = len(data)
                if count > left and offer.what is What.FILE:
                    raise Changed("it grew while it was sent")  # noqa: TRY301
            except (Changed, OSError) as problem:
                self._withdraw(number, item, problem)
                return
            if count == 0:
                break
            self._chunks.add(found, data)
            self._channel.write(Kind.DATA, data)
            left -= count
            self._outcome.moved += count
            self._progress.done += count
            self._observer.show(self._progress)
            self._listen_now()
            if number not in self._items:
                self._channel.write(Kind.ABORT, frames.pack_abort(number, "it was refused"))
                return
        self._chunks.settle()
        try:
            if offer.what is What.FILE:
                check_unchanged(item.entry, fd)
        except Changed as problem:
            self._withdraw(number, item, problem)
            return
        if offer.what is What.STREAM:
            item.offset = -left
        item.sent = True
        self._channel.write(Kind.END, found.digest())


def _reply(kind: Kind, payload: bytes) -> _Reply:
    """Read what a receiver says."""
    if kind is Kind.ANSWER:
        return Answer.unpack(payload)
    if kind is Kind.DONE:
        return kind
    if kind is Kind.STOP:
        raise TransferError(f"the receiver gave up: {frames.unpack_text(payload)}")
    raise ProtocolError(f"a frame {kind.name} from a receiver")
