"""Messages between the two sides of a throughput test; see docs/transfer.md."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from cwnd._base.printable import printable
from cwnd._runs.transport_limits import DEFAULT_CONTROLLER

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject

MAGIC = b"cwndprf"
VERSION = 3
COOKIE = 16
"""Length in bytes of the cookie that identifies the connections of a test."""

MIN_SECONDS = 1e-3
MAX_STREAMS = 128
MAX_SECONDS = 86400
MAX_OMITTED = 600
MAX_BYTES = 1 << 60
MAX_BITRATE = 1e15
MAX_BURST = 1000
PATIENCE = 10.0
"""Timeout in seconds for the peer's next message during set-up, or its results."""

BLOCK = 1 << 17
"""Bytes sent or received at once, as in iperf3."""

_MIN_BLOCK = 1 << 10
_BLOCKS_PER_S = 50.0
_MAX_MESSAGE = 1 << 16
_LENGTH = struct.Struct("!I")


class Connection(Protocol):
    """A connection of a test: those of `cwnd.udt` and `cwnd.perf.quic`."""

    @property
    def peer(self) -> tuple[str, int]:
        """Address and port of the peer."""

    @property
    def address(self) -> tuple[str, int]:
        """Address and port of this end."""

    def send(self, data: bytes) -> None:
        """Send all data, and wait for room in the send buffer."""

    def recv(self, size: int) -> bytes:
        """Receive available data; empty if the peer has closed."""

    def stats(self) -> dict[str, float]:
        """Return the statistics that `cwnd.perf.streams` reads."""

    def close(self) -> None:
        """Close after all sent data are delivered."""

    def abort(self) -> None:
        """Close at once, and notify the peer."""


class Listener(Protocol):
    """What accepts the connections of a test."""

    @property
    def address(self) -> tuple[str, int]:
        """Local address and port."""

    def accept(self, *, timeout: float) -> Connection:
        """Wait for a connection; TimeoutError after `timeout` seconds."""

    def close(self) -> None:
        """Accept no further connections."""


class Role(IntEnum):
    """Purpose of a connection."""

    CONTROL = 1
    DATA = 2


class PerfError(Exception):
    """A failed test; the message is one sentence."""


class VersionError(PerfError):
    """The peer has another version of the protocol."""


@dataclass(frozen=True)
class PerfOptions:
    """Parameters of a test.

    Attributes
    ----------
    seconds
        Duration of sending, unless `bytes` ends the test.
    streams
        Number of connections that carry data.
    reverse
        Whether the server sends.
    controller
        Specification of the sender's congestion controller.
    bytes
        Bytes to send over all streams together, instead of `seconds`; 0 for no limit.
    omit
        Length of the warm-up in seconds, which all results exclude.
    bitrate
        Limit of each stream's payload in bit/s; 0 for no limit.
    burst
        Number of blocks that a stream sends back to back if `bitrate` limits it.
    """

    seconds: float = 10.0
    streams: int = 1
    reverse: bool = False
    controller: str = DEFAULT_CONTROLLER
    bytes: int = 0
    omit: float = 0.0
    bitrate: float = 0.0
    burst: int = 1

    @property
    def block(self) -> int:
        """Bytes sent at once; smaller blocks at a low `bitrate` for a smooth rate."""
        if not self.bitrate:
            return BLOCK
        return max(_MIN_BLOCK, min(BLOCK, int(self.bitrate / 8 / _BLOCKS_PER_S)))

    @property
    def longest(self) -> float:
        """Largest duration of the test in seconds."""
        return self.omit + (MAX_SECONDS if self.bytes else self.seconds)

    def to_json(self) -> JsonObject:
        """Return the options as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: JsonObject) -> PerfOptions:
        """Parse the options that a client sent.

        Raises
        ------
        PerfError
            A value is missing, has the wrong type or is out of bounds.
        """
        reverse, controller = document.get("reverse"), document.get("controller")
        if not (isinstance(reverse, bool) and isinstance(controller, str)):
            raise PerfError(_NO_TEST)
        return cls(
            seconds=_bounded(document, "seconds", MIN_SECONDS, MAX_SECONDS),
            streams=_whole(document, "streams", 1, MAX_STREAMS),
            reverse=reverse,
            controller=controller,
            bytes=_whole(document, "bytes", 0, MAX_BYTES),
            omit=_bounded(document, "omit", 0.0, MAX_OMITTED),
            bitrate=_bounded(document, "bitrate", 0.0, MAX_BITRATE),
            burst=_whole(document, "burst", 1, MAX_BURST),
        )


_NO_TEST = "the client requested an invalid test"


def _bounded(document: JsonObject, name: str, least: float, most: float) -> float:
    """Parse a number within bounds."""
    value = document.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise PerfError(f"{_NO_TEST}: {name} is not from {least:g} to {most:g}")
    return float(value)


def _whole(document: JsonObject, name: str, least: int, most: int) -> int:
    """Parse a whole number within bounds."""
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise PerfError(f"{_NO_TEST}: {name} is not from {least} to {most}")
    return value


def greet(connection: Connection, role: Role, cookie: bytes) -> None:
    """Send the protocol, its version, the role of the connection and the cookie of its test."""
    connection.send(MAGIC + bytes([VERSION, role]) + cookie)


def read_greeting(connection: Connection) -> tuple[Role, bytes]:
    """Read the message of `greet`; PerfError if it is not a greeting of this version."""
    greeting = _exactly(connection, len(MAGIC) + 2 + COOKIE)
    if not greeting.startswith(MAGIC):
        raise PerfError("the peer is not a client of cwnd perf")
    version, role = greeting[len(MAGIC) : len(MAGIC) + 2]
    if version != VERSION:
        raise VersionError(
            f"the client has version {version} of perf's protocol, the server {VERSION}"
        )
    try:
        return Role(role), greeting[-COOKIE:]
    except ValueError:
        raise PerfError(f"unknown kind of connection: {role}") from None


def write_message(connection: Connection, document: JsonObject) -> None:
    """Send a message: its length, then JSON."""
    text = json.dumps(document, allow_nan=False).encode()
    connection.send(_LENGTH.pack(len(text)) + text)


def read_message(connection: Connection) -> JsonObject:
    """Receive a message; PerfError if it is an error, not a JSON object, or too long."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length > _MAX_MESSAGE:
        raise PerfError(f"the peer's message is too long: {length} bytes")
    try:
        document = json.loads(_exactly(connection, length))
    except (ValueError, RecursionError):
        raise PerfError("the peer's message is malformed") from None
    if not isinstance(document, dict):
        raise PerfError("the peer's message is malformed")
    if "error" in document:
        raise PerfError(printable(str(document["error"])[:500]))
    return document


def _exactly(connection: Connection, count: int) -> bytes:
    """Receive exactly `count` bytes."""
    found = b""
    while len(found) < count:
        more = connection.recv(count - len(found))
        if not more:
            raise PerfError("the peer ended the connection")
        found += more
    return found
