"""TCP sockets of this network namespace, from the kernel's socket diagnosis (sock_diag)."""

from __future__ import annotations

import math
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd._base.machine import require
from cwnd.errors import KernelError

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject

# Bits of INET_DIAG_INFO and INET_DIAG_CONG in a request; pyroute2 defines only the names.
_EXTENSIONS = 1 << (2 - 1) | 1 << (4 - 1)


@dataclass(frozen=True, slots=True)
class KernelSocket:
    """A TCP socket of the kernel."""

    controller: str
    """The kernel's name of the congestion controller."""
    local: tuple[str, int]
    peer: tuple[str, int]
    inode: int
    window: int
    """Congestion window in packets."""
    ssthresh: int
    """Slow-start threshold in packets."""
    rtt_s: float
    """Smoothed round-trip time; NaN before the first sample."""
    retransmissions: int
    """Retransmitted packets."""

    def to_json(self) -> JsonObject:
        """Return the socket as plain data."""
        from cwnd._runs.result import jsonable

        return jsonable(asdict(self))


def kernel_sockets() -> list[KernelSocket]:
    """List the TCP sockets of this network namespace, except listening ones: IPv4, then IPv6."""
    require("a list of the kernel's sockets", "Linux")
    # pyroute2 runs an event loop, and a thread can run only one: a notebook's thread runs one.
    with ThreadPoolExecutor(1) as thread:
        return [_socket(message) for message in thread.submit(_dump).result()]


def sockets_of(pid: int) -> set[int]:
    """Return the inodes of a process's sockets; KernelError if it cannot be inspected."""
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        raise KernelError(f"there is no process {pid}") from None
    except PermissionError:
        raise KernelError(f"this user may not inspect process {pid}") from None
    found = set()
    for link in links:
        # Skip descriptors that were closed since they were listed.
        with suppress(FileNotFoundError):
            name = str(link.readlink())
            if name.startswith("socket:["):
                found.add(int(name[8:-1]))
    return found


def _dump() -> list[Any]:
    """Return pyroute2's ``inet_diag_msg`` of each socket."""
    from pyroute2.netlink.diag import SS_ALL, SS_LISTEN, DiagSocket

    states = SS_ALL & ~(1 << SS_LISTEN)
    with DiagSocket() as netlink:
        netlink.bind()
        return [
            message
            for family in (socket.AF_INET, socket.AF_INET6)
            for message in netlink.get_sock_stats(family, states, extensions=_EXTENSIONS)
        ]


def _socket(message: Any) -> KernelSocket:  # noqa: ANN401
    """Convert an ``inet_diag_msg``."""
    # A closing socket has neither a controller nor TCP information.
    info = message.get_attr("INET_DIAG_INFO") or {}
    return KernelSocket(
        message.get_attr("INET_DIAG_CONG") or "",
        (message["idiag_src"], message["idiag_sport"]),
        (message["idiag_dst"], message["idiag_dport"]),
        message["idiag_inode"],
        info.get("tcpi_snd_cwnd", 0),
        info.get("tcpi_snd_ssthresh", 0),
        (info.get("tcpi_rtt", 0) or math.nan) / 1e6,
        info.get("tcpi_total_retrans", 0),
    )
