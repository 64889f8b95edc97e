"""What a transfer needs of the transport, and what it tells of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Data: TypeAlias = bytes | bytearray | memoryview
"""Bytes in any shape."""


class Connection(Protocol):
    """A reliable stream of bytes in both directions, as `cwnd.udt.Connection` is one.

    One thread may send while another receives. Mistakes are OSErrors.
    """

    @property
    def peer(self) -> tuple[str, int]:
        """The other side's address and port."""
        ...

    def send(self, data: Data, /) -> None:
        """Send all of it; waits while the network or the peer has no room."""

    def recv(self, size: int = ..., *, timeout: float | None = None) -> bytes:
        """Wait for bytes, and give as many as there are; none is the end.

        When nothing came in so many seconds, it is a TimeoutError.
        """
        ...

    def close(self) -> None:
        """End both directions; waits until what was sent is delivered."""

    def abort(self) -> None:
        """End both directions at once, and tell the peer; what is not delivered is lost."""

    def stats(self) -> Mapping[str, Any]:
        """Say how the connection is doing, in the names of UDT's perfmon."""
        ...


class Listener(Protocol):
    """Who takes connections, as `cwnd.udt.Listener` does."""

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        ...

    def accept(self, *, timeout: float | None = None) -> Connection:
        """Wait for a connection; a TimeoutError when there was none in that time."""
        ...

    def close(self) -> None:
        """Listen no more."""


class TransferError(Exception):
    """A transfer that could not be brought to its end; one sentence says why."""


@dataclass
class Progress:
    """How far a transfer is.

    Attributes
    ----------
    name
        The file in transit, fit to be printed.
    done, total
        Bytes that need no more sending, and bytes of all files: 0 where that is not known.
    files
        Files that are complete.
    """

    name: str = ""
    done: int = 0
    total: int = 0
    files: int = 0


@dataclass
class Outcome:
    """What came of a transfer.

    Attributes
    ----------
    files, bytes
        Files that are complete at the receiver, and their bytes.
    moved
        Bytes of files that crossed the network: less than ``bytes`` where some were there already.
    failed
        Files and directories that could not be sent or were refused.
    skipped
        What is neither a file nor a directory.
    """

    files: int = 0
    bytes: int = 0
    moved: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class Observer:
    """Who is told how it goes.

    Attributes
    ----------
    say
        Takes a line about one file or directory that was refused, skipped or begun anew.
    show
        Takes the progress, often.
    """

    say: Callable[[str], None] = lambda _: None
    show: Callable[[Progress], None] = lambda _: None
