"""The frames of a transfer, read and written: see docs/transfer.md."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from cwnd.transfer.connection import TransferError
from cwnd.transfer.names import LONGEST, printable

if TYPE_CHECKING:
    from cwnd.transfer.connection import Connection, Data

MAGIC = b"cwndxfr"
VERSION = 1

CHUNK = 1 << 20
"""Most bytes of a frame of data."""

SENTENCE = 512
"""Most bytes of a sentence for the other side."""

WINDOW = 1024
"""Most offers that are not settled."""

PATIENCE = 10.0
"""Seconds for the other side to say what it speaks: strangers who say nothing take no place."""

_BUFFER = 1 << 16
_HEADER = struct.Struct("!BI")
_OFFER = struct.Struct("!BHQq")
_CLAIM = struct.Struct("!QQ32s")
_BEGIN = struct.Struct("!QQ")
_ID = struct.Struct("!Q")
_ANSWER = struct.Struct("!QBQ")
_PLAN = struct.Struct("!QQ")


class Kind(IntEnum):
    """What a frame is."""

    PLAN = 1
    OFFER = 2
    CLAIM = 3
    BEGIN = 4
    DATA = 5
    END = 6
    ABORT = 7
    ANSWER = 16
    STOP = 32
    DONE = 33


class What(IntEnum):
    """What is offered."""

    FILE = 1
    STREAM = 2
    """A file whose size nobody knows."""
    DIRECTORY = 3
    SEAL = 4
    """A directory that is complete: it gets its mode and time."""


class Verdict(IntEnum):
    """What a receiver makes of an offer."""

    SETTLED = 1
    """It is there, complete."""
    SEND = 2
    """To be sent, from an offset."""
    HAVE = 3
    """So many of its first bytes are there, if they are the same."""
    REFUSED = 4


_LONGEST = {
    Kind.PLAN: _PLAN.size,
    Kind.OFFER: _OFFER.size + LONGEST,
    Kind.CLAIM: _CLAIM.size,
    Kind.BEGIN: _BEGIN.size,
    Kind.DATA: CHUNK,
    Kind.END: 32,
    Kind.ABORT: _ID.size + SENTENCE,
    Kind.ANSWER: _ANSWER.size + SENTENCE,
    Kind.STOP: SENTENCE,
    Kind.DONE: 0,
}


class ProtocolError(TransferError):
    """The other side does not keep to the protocol."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the other side does not keep to the protocol: {problem}")


@dataclass(frozen=True)
class Offer:
    """A file or directory that could be sent.

    Attributes
    ----------
    what
        What it is.
    mode
        Its permissions.
    size
        Bytes; 0 where that is not known.
    mtime_ns
        When it was changed, in nanoseconds since 1970.
    path
        Its name within the receiver's folder.
    """

    what: What
    mode: int
    size: int
    mtime_ns: int
    path: bytes

    def pack(self) -> bytes:
        """Write it."""
        head = _OFFER.pack(self.what, self.mode & 0o7777, self.size, self.mtime_ns)
        return head + self.path

    @classmethod
    def unpack(cls, payload: bytes) -> Offer:
        """Read it.

        Raises
        ------
        ProtocolError
            That is no offer.
        """
        try:
            what, mode, size, mtime_ns = _OFFER.unpack_from(payload)
            return cls(What(what), mode, size, mtime_ns, payload[_OFFER.size :])
        except (struct.error, ValueError) as problem:
            raise ProtocolError(f"an offer: {problem}") from None


@dataclass(frozen=True)
class Answer:
    """What a receiver makes of an offer.

    Attributes
    ----------
    number
        The offer's: the first is 0.
    verdict
        What it makes of it.
    offset
        Bytes: see `Verdict`.
    why
        A sentence, or nothing.
    """

    number: int
    verdict: Verdict
    offset: int = 0
    why: str = ""

    def pack(self) -> bytes:
        """Write it."""
        return _ANSWER.pack(self.number, self.verdict, self.offset) + pack_text(self.why)

    @classmethod
    def unpack(cls, payload: bytes) -> Answer:
        """Read it.

        Raises
        ------
        ProtocolError
            That is no answer.
        """
        try:
            number, verdict, offset = _ANSWER.unpack_from(payload)
            return cls(number, Verdict(verdict), offset, unpack_text(payload[_ANSWER.size :]))
        except (struct.error, ValueError) as problem:
            raise ProtocolError(f"an answer: {problem}") from None


def pack_text(text: str) -> bytes:
    """Write a sentence for the other side, cut to what a frame takes."""
    return text.encode("utf-8", "backslashreplace")[:SENTENCE]


def unpack_text(payload: bytes) -> str:
    """Read a sentence of the other side, fit to be printed."""
    return printable(payload.decode("utf-8", "replace"))


def pack_claim(number: int, length: int, digest: bytes) -> bytes:
    """Write a claim: the hash of an offer's first bytes."""
    return _CLAIM.pack(number, length, digest)


def unpack_claim(payload: bytes) -> tuple[int, int, bytes]:
    """Read a claim."""
    return _unpack(_CLAIM, payload, "a claim")


def pack_begin(number: int, offset: int) -> bytes:
    """Write which offer's data follow, and from where."""
    return _BEGIN.pack(number, offset)


def unpack_begin(payload: bytes) -> tuple[int, int]:
    """Read which offer's data follow, and from where."""
    return _unpack(_BEGIN, payload, "a beginning")


def pack_plan(files: int, size: int) -> bytes:
    """Write how many files and bytes there are."""
    return _PLAN.pack(files, size)


def unpack_plan(payload: bytes) -> tuple[int, int]:
    """Read how many files and bytes there are."""
    return _unpack(_PLAN, payload, "a plan")


def pack_abort(number: int, why: str) -> bytes:
    """Write which offer is withdrawn, and why."""
    return _ID.pack(number) + pack_text(why)


def unpack_abort(payload: bytes) -> tuple[int, str]:
    """Read which offer is withdrawn, and why."""
    (number,) = _unpack(_ID, payload[: _ID.size], "a withdrawal")
    return number, unpack_text(payload[_ID.size :])


def _unpack(shape: struct.Struct, payload: bytes, what: str) -> tuple:  # type: ignore[type-arg]
    """Read a frame of one shape."""
    if len(payload) != shape.size:
        raise ProtocolError(f"{what} of {len(payload)} bytes")
    return shape.unpack(payload)


class Channel:
    """Frames over a connection.

    Small frames are gathered until `flush`. It holds two buffers of 64 KiB, whatever arrives.
    One thread may read while another writes.

    Parameters
    ----------
    connection
        What carries the frames.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._out = bytearray()
        self._in = memoryview(bytearray(_BUFFER))
        self._start = self._end = 0

    @property
    def buffered(self) -> bool:
        """Whether something has arrived that was not read."""
        return self._start < self._end

    def greet(self) -> None:
        """Say which protocol this is."""
        self._out += MAGIC + bytes([VERSION])
        self.flush()

    def expect_greeting(self) -> None:
        """Read which protocol the other side speaks.

        Raises
        ------
        TransferError
            Another one, or another version, or nothing.
        """
        try:
            greeting = self._exactly(len(MAGIC) + 1, PATIENCE)
        except TimeoutError:
            raise TransferError("the other side says nothing") from None
        if greeting[:-1] != MAGIC:
            raise TransferError("the other side is neither cwnd send nor cwnd recv")
        if greeting[-1] != VERSION:
            raise TransferError(
                f"the other side speaks version {greeting[-1]} of the protocol, this one {VERSION}"
            )

    def write(self, kind: Kind, payload: Data = b"") -> None:
        """Write a frame; it leaves with the next `flush`, or when it is large."""
        self._out += _HEADER.pack(kind, len(payload))
        if len(payload) < _BUFFER:
            self._out += payload
            if len(self._out) >= _BUFFER:
                self.flush()
        else:
            self.flush()
            self._connection.send(payload)

    def flush(self) -> None:
        """Send what was written."""
        if self._out:
            out, self._out = self._out, bytearray()
            self._connection.send(out)

    def read(self) -> tuple[Kind, int]:
        """Wait for the next frame.

        Returns
        -------
        tuple
            Its kind, and the length of its payload: to be read next.

        Raises
        ------
        ProtocolError
            There is no such frame, or none of that length.
        TransferError
            The connection has ended.
        """
        number, length = _HEADER.unpack(self._exactly(_HEADER.size))
        try:
            kind = Kind(number)
        except ValueError:
            raise ProtocolError(f"a frame of kind {number}") from None
        if length > _LONGEST[kind]:
            raise ProtocolError(f"a frame {kind.name} of {length} bytes")
        return kind, length

    def payload(self, length: int) -> bytes:
        """Read a payload."""
        return bytes(self._exactly(length))

    def payload_into(self, buffer: memoryview) -> None:
        """Read a payload into a buffer of its length."""
        count = min(len(buffer), self._end - self._start)
        buffer[:count] = self._in[self._start : self._start + count]
        self._start += count
        while count < len(buffer):
            count += self._receive(buffer[count:])

    def _exactly(self, count: int, timeout: float | None = None) -> memoryview:
        """Read so many bytes, at most a buffer's; valid until the next call."""
        have = self._end - self._start
        if have < count and self._start:
            self._in[:have] = bytes(self._in[self._start : self._end])
            self._start, self._end = 0, have
        while self._end - self._start < count:
            self._end += self._receive(self._in[self._end :], timeout)
        self._start += count
        return self._in[self._start - count : self._start]

    def _receive(self, buffer: memoryview, timeout: float | None = None) -> int:
        data = self._connection.recv(len(buffer), timeout=timeout)
        if not data:
            raise TransferError("the other side has ended the connection")
        buffer[: len(data)] = data
        return len(data)
