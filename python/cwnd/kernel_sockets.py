"""The TCP connections of this network namespace, as the kernel's socket diagnosis tells them."""

from __future__ import annotations

import socket
import struct
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.records import JsonObject

_SOCK_DIAG = 4
_DIAG_BY_FAMILY = 20
_DUMP = 0x301
_DONE = 3
_ERROR = 2
_INFO = 2
_CONGESTION = 4
_NOT_LISTENING = 0xFFF & ~(1 << 10)
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI48x")
_ATTRIBUTE = struct.Struct("=HH")
_WORD = struct.Struct("=I")
# Where things stand in struct inet_diag_msg and struct tcp_info.
_MESSAGE_SIZE = 72
_INODE = 68
_RTT, _SSTHRESH, _WINDOW, _RETRANSMISSIONS = 68, 76, 80, 100


@dataclass(frozen=True, slots=True)
class Connection:
    """A TCP connection.

    Attributes
    ----------
    controller
        The kernel's name of its controller.
    local, peer
        Its ends: address and port.
    inode
        The number of its socket.
    window
        Congestion window in packets.
    ssthresh
        Threshold of slow start in packets.
    rtt_s
        Smoothed round-trip time in seconds.
    retransmissions
        Packets sent again since it began.
    """

    controller: str
    local: tuple[str, int]
    peer: tuple[str, int]
    inode: int
    window: int
    ssthresh: int
    rtt_s: float
    retransmissions: int

    def to_json(self) -> JsonObject:
        """Give it as plain data."""
        return asdict(self)


def connections() -> list[Connection]:
    """List the TCP connections of this network namespace.

    Returns
    -------
    list of Connection
        Those of IPv4, then those of IPv6.

    Raises
    ------
    KernelError
        This is not Linux.
    """
    if not sys.platform.startswith("linux"):
        raise KernelError("this is not Linux")
    found = []
    for family in (socket.AF_INET, socket.AF_INET6):
        found += [_connection(family, message) for message in _dump(family)]
    return found


def sockets_of(pid: int) -> set[int]:
    """Find the sockets of a process.

    Parameters
    ----------
    pid
        The process.

    Returns
    -------
    set of int
        The numbers (inodes) of its sockets.

    Raises
    ------
    KernelError
        There is no such process, or this user may not look at it.
    """
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        raise KernelError(f"there is no process {pid}") from None
    except PermissionError:
        raise KernelError(f"this user may not look at process {pid}") from None
    found = set()
    for link in links:
        # What was closed meanwhile is none of its sockets.
        with suppress(FileNotFoundError):
            name = str(link.readlink())
            if name.startswith("socket:["):
                found.add(int(name[8:-1]))
    return found


def _dump(family: int) -> Iterator[bytes]:
    """Ask for all connections of an address family; one message each."""
    extensions = 1 << (_INFO - 1) | 1 << (_CONGESTION - 1)
    request = _REQUEST.pack(family, socket.IPPROTO_TCP, extensions, 0, _NOT_LISTENING)
    header = _HEADER.pack(_HEADER.size + len(request), _DIAG_BY_FAMILY, _DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
        netlink.send(header + request)
        while True:
            data = netlink.recv(1 << 17)
            while data:
                length, kind, *_ = _HEADER.unpack_from(data)
                if kind in {_DONE, _ERROR}:
                    return
                yield data[_HEADER.size : length]
                data = data[_aligned(length) :]


def _aligned(length: int) -> int:
    """Round up to where netlink lets the next thing begin."""
    return (length + 3) & ~3


def _connection(family: int, message: bytes) -> Connection:
    """Read one message: its fixed part, then attributes."""
    ports = struct.unpack_from("!HH", message, 4)
    size = 4 if family == socket.AF_INET else 16
    ends = [
        (socket.inet_ntop(family, message[at : at + size]), port)
        for at, port in zip((8, 24), ports, strict=True)
    ]
    controller, info = "", b""
    rest = message[_MESSAGE_SIZE:]
    while len(rest) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        value = rest[_ATTRIBUTE.size : length]
        if kind == _CONGESTION:
            controller = value.split(b"\0")[0].decode()
        elif kind == _INFO:
            info = value
        rest = rest[max(_aligned(length), _ATTRIBUTE.size) :]

    def told(at: int) -> int:
        # A connection that is closing has no information left.
        return int(_WORD.unpack_from(info, at)[0]) if len(info) >= at + _WORD.size else 0

    return Connection(
        controller,
        ends[0],
        ends[1],
        int(_WORD.unpack_from(message, _INODE)[0]),
        told(_WINDOW),
        told(_SSTHRESH),
        told(_RTT) / 1e6,
        told(_RETRANSMISSIONS),
    )
