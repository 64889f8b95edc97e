"""Addresses, connections and failures: shared by the commands that talk to another host."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from cwnd.udt import Connection, Listener

FAILED = 1
"""Exit status of a transfer or test that failed."""

CONNECT_TIMEOUT = 10.0
"""Seconds to wait for a peer's first answer."""


class NoConnection(ConnectionError):  # noqa: N818
    """No address of a host has answered; one sentence says which."""


def split_address(text: str, port: int) -> tuple[str, int]:
    """Split HOST:PORT.

    Parameters
    ----------
    text
        A name or an address, with or without a port; an IPv6 address with a port is in brackets.
    port
        The default port.

    Returns
    -------
    tuple
        Host and port.

    Raises
    ------
    click.UsageError
        The text is no address.

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
    """Return the addresses of a host.

    Parameters
    ----------
    host, port
        The other side.
    family
        `socket.AF_INET` or `socket.AF_INET6` for addresses of one version of IP only.

    Raises
    ------
    click.UsageError
        There is none.
    """
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        version = _VERSIONS.get(family, "")
        raise click.UsageError(f"no such host{version}: {host}") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


_VERSIONS = {int(socket.AF_INET): " with IPv4", int(socket.AF_INET6): " with IPv6"}


def has_ipv6() -> bool:
    """Whether this host has IPv6's loopback address."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as trial:
            trial.bind(("::1", 0))
    except OSError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """Whether a numeric address is one of this host's loopback addresses.

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


def open_connection(host: str, port: int, *, family: int = 0, **options: Any) -> Connection:  # noqa: ANN401
    """Connect to the first address of a host that answers.

    Parameters
    ----------
    host, port
        The other side.
    family
        As for `resolve`.
    **options
        As `cwnd.udt.connect` takes them.

    Raises
    ------
    NoConnection
        None of them answers.
    click.UsageError
        None of them answers, and there is a credential, which may not be theirs.
    """
    from cwnd.udt import connect

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
        if options.keys() & {"key", "pair", "code"} and isinstance(problem, TimeoutError):
            raise click.UsageError(why) from None
        raise NoConnection(why) from None


def open_listener(port: int, host: str | None = None, **options: Any) -> Listener:  # noqa: ANN401
    """Listen at a port.

    Parameters
    ----------
    port
        The port; 0 is any free one.
    host
        The address to listen at; by default all of IPv6 and IPv4, or of IPv4 where there is no
        IPv6.
    **options
        As `cwnd.udt.listen` takes them.

    Raises
    ------
    click.UsageError
        The port is in use, or the address is not this host's.
    """
    from cwnd.udt import listen

    everywhere = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104
    where = f"port {port}" if host is None else f"{host}, port {port}"
    try:
        return listen(port, host or everywhere, **options)
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise click.UsageError(f"{where} is in use: --port takes another") from None
        if problem.errno == errno.EADDRNOTAVAIL:
            raise click.UsageError(f"{host} is not an address of this host") from None
        raise click.UsageError(f"cannot listen at {where}: {explain(problem)}") from None


def name_peer(connection: Connection) -> tuple[str, int]:
    """Return the peer's address and port; an IPv4 address without the prefix of IPv6."""
    host, port = connection.peer[:2]
    return host.removeprefix("::ffff:"), port


def explain(problem: Exception) -> str:
    """Return the reason of a failure as text."""
    strerror = problem.strerror if isinstance(problem, OSError) else None
    return _OS_ERROR.sub("", strerror or str(problem)) or "no answer"


_OS_ERROR = re.compile(r" \(os error \d+\)$")
"""What Rust adds to the text of an error."""


def fail(message: str) -> NoReturn:
    """Print a failure in one line, and exit with status 1."""
    say(message)
    click.get_current_context().exit(FAILED)


def say(message: str) -> None:
    """Print one line on standard error."""
    click.echo(f"cwnd: {' '.join(message.split())}", err=True)
