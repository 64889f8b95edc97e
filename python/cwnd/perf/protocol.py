"""What the two sides of a test of speed say to each other: see docs/transfer.md."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from cwnd.transfer.names import printable

if TYPE_CHECKING:
    from cwnd.records import JsonObject
    from cwnd.transfer.connection import Connection

MAGIC = b"cwndprf"
VERSION = 1
COOKIE = 16
"""Bytes that tell which connections belong to one test."""

MOST_STREAMS = 128
MOST_SECONDS = 86400.0
PATIENCE = 10.0
"""Seconds for a peer to say the next word of the set-up, or its results."""

_LONGEST = 1 << 16
_LENGTH = struct.Struct("!I")


class Role(IntEnum):
    """What a connection is for."""

    CONTROL = 1
    DATA = 2


class PerfError(Exception):
    """A test that could not be brought to its end; one sentence says why."""


@dataclass(frozen=True)
class Settings:
    """What is tested.

    Attributes
    ----------
    seconds
        How long data are sent.
    streams
        How many connections carry them.
    reverse
        Whether the server sends them.
    controller
        The sender's, as a specification.
    """

    seconds: float = 10.0
    streams: int = 1
    reverse: bool = False
    controller: str = "udt"

    def to_json(self) -> JsonObject:
        """Write it."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: JsonObject) -> Settings:
        """Read what a client asks for.

        Raises
        ------
        PerfError
            It makes no sense, or is more than a server gives.
        """
        seconds, streams = document.get("seconds"), document.get("streams")
        reverse, controller = document.get("reverse"), document.get("controller")
        if not (
            isinstance(seconds, int | float)
            and isinstance(streams, int)
            and isinstance(reverse, bool)
            and isinstance(controller, str)
            and 0 < seconds <= MOST_SECONDS
            and 1 <= streams <= MOST_STREAMS
        ):
            raise PerfError("the client asks for a test that makes no sense")
        return cls(float(seconds), streams, reverse, controller)


def greet(connection: Connection, role: Role, cookie: bytes) -> None:
    """Say which protocol this is, what the connection is for, and to which test it belongs."""
    connection.send(MAGIC + bytes([VERSION, role]) + cookie)


def read_greeting(connection: Connection) -> tuple[Role, bytes]:
    """Read what `greet` said.

    Raises
    ------
    PerfError
        It is something else.
    """
    greeting = _exactly(connection, len(MAGIC) + 2 + COOKIE)
    if not greeting.startswith(MAGIC):
        raise PerfError("that is no client of cwnd perf")
    version, role = greeting[len(MAGIC) : len(MAGIC) + 2]
    if version != VERSION:
        raise PerfError(f"the client speaks version {version} of the protocol, this one {VERSION}")
    try:
        return Role(role), greeting[-COOKIE:]
    except ValueError:
        raise PerfError(f"a connection of kind {role}") from None


def write_message(connection: Connection, document: JsonObject) -> None:
    """Say something."""
    text = json.dumps(document, allow_nan=False).encode()
    connection.send(_LENGTH.pack(len(text)) + text)


def read_message(connection: Connection) -> JsonObject:
    """Wait for what the other side says.

    Raises
    ------
    PerfError
        It gave up, or says nothing that makes sense.
    """
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length > _LONGEST:
        raise PerfError(f"a message of {length} bytes")
    try:
        document = json.loads(_exactly(connection, length))
    except (ValueError, RecursionError):
        raise PerfError("a message that makes no sense") from None
    if not isinstance(document, dict):
        raise PerfError("a message that makes no sense")
    if "error" in document:
        raise PerfError(printable(str(document["error"])[:500]))
    return document


def _exactly(connection: Connection, count: int) -> bytes:
    """Read so many bytes."""
    found = b""
    while len(found) < count:
        more = connection.recv(count - len(found))
        if not more:
            raise PerfError("the other side has ended the connection")
        found += more
    return found
