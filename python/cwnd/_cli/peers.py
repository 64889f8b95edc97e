"""Addresses, connections and errors, for the commands that communicate with another host."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from cwnd._cli.outputs import FAILED
from cwnd._cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.perf.protocol import Connection

C = TypeVar("C")
L = TypeVar("L")

CONNECT_TIMEOUT = 10.0
"""Seconds to wait for a peer's first answer."""


class NoConnection(ConnectionError):  # noqa: N818
    """No address of a host answered; the message names the host."""


def split_address(text: str, port: int) -> tuple[str, int]:
    """Split HOST[:PORT]; an IPv6 address with a port is in brackets.

    Examples
    --------
    >>> split_address("example.org:9001", 9000), split_address("[::1]", 9000)
    (('example.org', 9001), ('::1', 9000))
    >>> split_address("::1", 9000)
    ('::1', 9000)
    >>> split_address("::1:9000", 9000)
    Traceback (most recent call last):
    click.exceptions.UsageError: '::1:9000' is ambiguous: write [::1]:9000 for port 9000
    """
    host, colon, number = text.rpartition(":")
    if ":" in host and not host.startswith("[") and number.isdecimal() and _is_ipv6(host):
        raise click.UsageError(f"{text!r} is ambiguous: write [{host}]:{number} for port {number}")
    if not colon or text.endswith("]") or (":" in host and not host.endswith("]")):
        host, number = text, f"{port}"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not number.isascii() or not number.isdecimal() or not 0 < int(number) < 65536:
        raise click.UsageError(f"{text!r} is not HOST:PORT, such as example.org:{port}")
    return host, int(number)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def resolve(host: str, port: int, family: int = 0) -> list[str]:
    """Return the addresses of a host; 0 is any family, `socket.AF_INET6` only IPv6."""
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        version = _VERSIONS.get(family, "")
        raise click.UsageError(f"no such host{version}: {host}") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


_VERSIONS = {int(socket.AF_INET): " with IPv4", int(socket.AF_INET6): " with IPv6"}


def has_ipv6() -> bool:
    """Test whether this host has the IPv6 loopback address."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as trial:
            trial.bind(("::1", 0))
    except OSError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """Test whether a numeric address is a loopback address.

    Examples
    --------
    >>> is_loopback("127.0.0.5"), is_loopback("::1"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def open_connection(
    connect: Callable[..., C],
    host: str,
    port: int,
    *,
    family: int = 0,
    **options: Any,  # noqa: ANN401
) -> C:
    """Connect to the first address of a host that answers.

    If none does, raise `NoConnection`, or a UsageError with credentials, which the peer may not
    share.
    """
    *others, last = resolve(host, port, family)
    for address in others:
        with suppress(OSError):
            return connect(address, port, timeout=CONNECT_TIMEOUT, **options)
    try:
        return connect(last, port, timeout=CONNECT_TIMEOUT, **options)
    except OSError as problem:
        if problem.errno == errno.EADDRNOTAVAIL and "bind" in options:
            where = f"{options['bind']} is not an address of this host"
            raise click.UsageError(f"--bind: {where}") from None
        reason = explain(problem).removeprefix(f"{last}:{port}: ")
        why = f"no connection to {host}, port {port}: {reason}"
        if options.keys() & {"key", "pair", "code"} and isinstance(problem, _NOT_SHARED):
            raise click.UsageError(why) from None
        raise NoConnection(why) from None


_NOT_SHARED = (TimeoutError, PermissionError)
"""Errors of a connection to a peer with other credentials: of UDT, and of QUIC."""


def open_listener(
    listen: Callable[..., L],
    port: int,
    host: str | None = None,
    **options: Any,  # noqa: ANN401
) -> L:
    """Listen on a port, or for 0 on any free port.

    The default is all IPv6 and IPv4 addresses, or all IPv4 addresses on a host without IPv6.
    """
    everywhere = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104
    where = f"port {port}" if host is None else f"{host}, port {port}"
    try:
        return listen(port, host or everywhere, **options)
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise click.UsageError(f"{where} is in use: choose another with --port") from None
        if problem.errno == errno.EADDRNOTAVAIL:
            raise click.UsageError(f"{host} is not an address of this host") from None
        raise click.UsageError(f"cannot listen on {where}: {explain(problem)}") from None


def name_peer(connection: Connection) -> tuple[str, int]:
    """Return the peer's address and port, with a mapped IPv4 address in IPv4 notation."""
    host, port = connection.peer[:2]
    return host.removeprefix("::ffff:"), port


def explain(problem: Exception) -> str:
    """Return the reason of an error as text."""
    strerror = problem.strerror if isinstance(problem, OSError) else None
    return _OS_ERROR.sub("", strerror or str(problem)) or "no answer"


_OS_ERROR = re.compile(r" \(os error \d+\)$")
"""Suffix of error texts from Rust."""


def fail(message: str) -> NoReturn:
    """Print an error on one line, and exit with status 1."""
    say(message)
    click.get_current_context().exit(FAILED)
