"""The receiving side of a transfer."""

from __future__ import annotations

import errno
import os
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.transfer import frames
from cwnd.transfer.connection import Observer, Outcome, Progress, TransferError
from cwnd.transfer.digest import Chunks, Hash, new_hash
from cwnd.transfer.folder import Folder, Names, Part, Refusal
from cwnd.transfer.frames import Answer, Channel, Kind, Offer, ProtocolError, Verdict, What
from cwnd.transfer.names import printable, split_path

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.transfer.connection import Connection

_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE}
"""Mistakes that the next file would meet as well."""


def receive(connection: Connection, folder: Path, observer: Observer | None = None) -> Outcome:
    """Receive what one sender sends.

    Parameters
    ----------
    connection
        To the sender; it stays open.
    folder
        The directory to write into.
    observer
        Who is told how it goes.

    Returns
    -------
    Outcome
        What has arrived.

    Raises
    ------
    TransferError
        It was not brought to its end. What has arrived is kept: the next try goes on there.
    OSError
        The folder cannot be opened, or the connection failed.
    """
    room = Folder(folder)
    try:
        with closing(Chunks()) as chunks:
            return _Receiver(connection, room, chunks, observer or Observer()).run()
    finally:
        room.close()


@dataclass
class _Item:
    """An offer that is not settled."""

    offer: Offer
    names: Names
    have: int = 0
    """Bytes that were said to be there, until the sender has said which they are."""
    whole: bool = False
    """Whether they are those of a file that bears its final name."""
    hash: Hash | None = None
    """Of the bytes that are there, once they are known to be the sender's."""
    offset: int = 0
    """Where its data will begin."""


@dataclass
class _Arrival:
    """The file in transit."""

    number: int
    item: _Item
    hash: Hash
    count: int
    part: Part | None
    """None when it was refused on its way: the rest is thrown away."""


class _Receiver:
    def __init__(
        self, connection: Connection, folder: Folder, chunks: Chunks, observer: Observer
    ) -> None:
        self._connection = connection
        self._channel = Channel(connection)
        self._folder = folder
        self._chunks = chunks
        self._observer = observer
        self._progress = Progress()
        self._outcome = Outcome()
        self._offered = 0
        self._items: dict[int, _Item] = {}
        self._arrival: _Arrival | None = None
        self._handlers = {
            Kind.PLAN: self._plan,
            Kind.OFFER: self._offer,
            Kind.CLAIM: self._claim,
            Kind.BEGIN: self._begin,
            Kind.END: self._end,
            Kind.ABORT: self._abort,
            Kind.STOP: self._stopped,
        }

    def run(self) -> Outcome:
        self._channel.greet()
        self._channel.expect_greeting()
        try:
            self._frames()
        except TransferError as problem:
            self._stop(str(problem))
            raise
        except OSError as problem:
            if problem.errno not in _FATAL:
                raise
            why = f"{problem.strerror} at the receiver"
            self._stop(why)
            raise TransferError(why) from None
        finally:
            if self._arrival is not None and self._arrival.part is not None:
                self._chunks.settle()
                self._arrival.part.close()
        return self._outcome

    def _frames(self) -> None:
        """Do what the sender says until it has said everything."""
        while True:
            if not self._channel.buffered:
                self._channel.flush()
            kind, length = self._channel.read()
            if kind is Kind.DATA:
                self._data(length)
            elif kind is Kind.DONE:
                if self._arrival is not None or self._items:
                    raise ProtocolError("an end with files that are not settled")
                self._channel.write(Kind.DONE)
                self._channel.flush()
                return
            elif kind in self._handlers:
                self._handlers[kind](self._channel.payload(length))
            else:
                raise ProtocolError(f"a frame {kind.name} from a sender")

    def _stop(self, why: str) -> None:
        """Say why no more is taken."""
        with suppress(OSError):
            self._channel.write(Kind.STOP, frames.pack_text(why))
            self._channel.flush()

    def _stopped(self, payload: bytes) -> None:
        raise TransferError(f"the sender gave up: {frames.unpack_text(payload)}")

    def _plan(self, payload: bytes) -> None:
        _, self._progress.total = frames.unpack_plan(payload)

    def _offer(self, payload: bytes) -> None:
        offer = Offer.unpack(payload)
        number, self._offered = self._offered, self._offered + 1
        if len(self._items) >= frames.WINDOW:
            raise ProtocolError(f"more than {frames.WINDOW} offers at once")
        try:
            item = _Item(offer, split_path(offer.path))
            verdict = self._judge(item)
        except (Refusal, ValueError, OSError) as problem:
            self._refuse(number, offer, problem)
            return
        if verdict is not Verdict.SETTLED:
            self._items[number] = item
        self._answer(Answer(number, verdict, item.have))

    def _judge(self, item: _Item) -> Verdict:
        """Make directories; say of files what is wanted of them."""
        offer = item.offer
        if offer.what is What.DIRECTORY:
            self._folder.make(item.names, offer.mode)
            return Verdict.SETTLED
        if offer.what is What.SEAL:
            self._folder.seal(item.names, offer.mode, offer.mtime_ns)
            return Verdict.SETTLED
        size = 0 if offer.what is What.STREAM else offer.size
        item.have, item.whole = self._folder.present(item.names, size)
        return Verdict.HAVE if item.have else Verdict.SEND

    def _refuse(self, number: int, offer: Offer, problem: Exception) -> None:
        """Say that an offer is not taken."""
        if isinstance(problem, OSError):
            if problem.errno in _FATAL:
                raise problem
            why = problem.strerror or str(problem)
        else:
            why = str(problem)
        self._items.pop(number, None)
        self._outcome.failed += 1
        self._observer.say(f"refused: {printable(offer.path)}: {why}")
        self._answer(Answer(number, Verdict.REFUSED, 0, why))

    def _answer(self, answer: Answer) -> None:
        self._channel.write(Kind.ANSWER, answer.pack())

    def _claim(self, payload: bytes) -> None:
        """Compare what is there with what the sender has."""
        number, length, digest = frames.unpack_claim(payload)
        item = self._items.get(number)
        if item is None or not item.have or length != item.have:
            raise ProtocolError("a claim that nobody asked for")
        item.have = 0
        offer = item.offer
        found = new_hash()
        try:
            with self._folder.reading(item.names, whole=item.whole) as fd:
                same = self._chunks.add_file(found, fd, length) == length
            same = same and found.digest() == digest
            if same and item.whole:
                self._folder.touch(item.names, offer.mode, offer.mtime_ns)
        except (Refusal, OSError) as problem:
            self._refuse(number, offer, problem)
            return
        if same and item.whole:
            del self._items[number]
            self._complete(offer.size)
            self._answer(Answer(number, Verdict.SETTLED))
            return
        if same:
            item.hash, item.offset = found, length
        why = "" if same else "other bytes are here than its own"
        self._answer(Answer(number, Verdict.SEND, item.offset, why))

    def _begin(self, payload: bytes) -> None:
        number, offset = frames.unpack_begin(payload)
        item = self._items.get(number)
        if self._arrival is not None or item is None or item.have or offset != item.offset:
            raise ProtocolError("a beginning that nobody asked for")
        arrival = _Arrival(number, item, item.hash or new_hash(), offset, None)
        self._arrival = arrival
        self._progress.name = printable(item.offer.path)
        self._progress.done += offset
        try:
            arrival.part = self._folder.part(item.names)
            arrival.part.keep(offset)
        except (Refusal, OSError) as problem:
            self._drop(arrival, problem)

    def _drop(self, arrival: _Arrival, problem: Exception) -> None:
        """Refuse a file on its way; its part stays."""
        part, arrival.part = arrival.part, None
        self._chunks.settle()
        if part is not None:
            part.close()
        self._refuse(arrival.number, arrival.item.offer, problem)

    def _data(self, length: int) -> None:
        arrival = self._arrival
        if arrival is None or length == 0:
            raise ProtocolError("data that belong to nothing")
        data = self._chunks.buffer()[:length]
        self._channel.payload_into(data)
        if arrival.part is None:
            return
        offer = arrival.item.offer
        arrival.count += length
        if offer.what is What.FILE and arrival.count > offer.size:
            raise ProtocolError("more data than were offered")
        try:
            self._chunks.add(arrival.hash, data)
            left = data
            while left:
                left = left[os.write(arrival.part.fd, left) :]
        except OSError as problem:
            if problem.errno in _FATAL:
                raise
            self._drop(arrival, problem)
            return
        self._outcome.moved += length
        self._progress.done += length
        self._observer.show(self._progress)

    def _end(self, payload: bytes) -> None:
        """Give a complete file its name, if it is the sender's to the last bit."""
        arrival, self._arrival = self._arrival, None
        if arrival is None:
            raise ProtocolError("an end of nothing")
        if arrival.part is None:
            return
        offer = arrival.item.offer
        self._chunks.settle()
        try:
            arrival.part.check(arrival.hash.digest(), payload)
            arrival.part.complete(offer.mode, offer.mtime_ns)
        except (Refusal, OSError) as problem:
            self._drop(arrival, problem)
            return
        arrival.part.close()
        del self._items[arrival.number]
        self._complete(arrival.count)
        self._answer(Answer(arrival.number, Verdict.SETTLED))

    def _complete(self, size: int) -> None:
        self._outcome.files += 1
        self._outcome.bytes += size
        self._progress.files += 1
        self._observer.show(self._progress)

    def _abort(self, payload: bytes) -> None:
        """Let go of an offer that the sender cannot keep; what has arrived of it stays."""
        number, why = frames.unpack_abort(payload)
        arrival = self._arrival
        if arrival is not None and arrival.number == number:
            self._arrival = None
            if arrival.part is None:
                return
            self._chunks.settle()
            arrival.part.close()
        item = self._items.pop(number, None)
        if item is None:
            raise ProtocolError("a withdrawal of nothing")
        self._outcome.failed += 1
        self._observer.say(f"not sent: {printable(item.offer.path)}: {why}")
