"""What the verbs that talk to another machine share: addresses, keys, and how they fail."""

from __future__ import annotations

import errno
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.transfer.connection import Connection, Listener

FAILED = 1
"""Exit status of what began and did not come to its end."""

CONNECT_TIMEOUT = 10.0
"""Seconds to wait for a peer's first answer."""

PLAIN = (
    "Plain UDT has no encryption: whoever is on the path can read and change what is sent. "
    "--key FILE adds it between two cwnd peers that have the same FILE: 32 random bytes that are "
    "kept secret, such as those of `head -c 32 /dev/urandom`."
)
"""What the help of every verb on the network says."""

key_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--key",
    metavar="FILE",
    help="Encrypt with this secret, which the other side needs too; without it nothing is.",
)


class NoConnection(ConnectionError):  # noqa: N818
    """Nobody has answered; one sentence says who was asked."""


def split_address(text: str, port: int) -> tuple[str, int]:
    """Take HOST:PORT apart.

    Parameters
    ----------
    text
        A name or an address, with or without a port; an IPv6 address in brackets if it has one.
    port
        The port where none is given.

    Returns
    -------
    tuple
        Host and port.

    Raises
    ------
    click.UsageError
        That is no address.

    Examples
    --------
    >>> split_address("example.org:9001", 9000), split_address("[::1]", 9000)
    (('example.org', 9001), ('::1', 9000))
    >>> split_address("::1", 9000)
    ('::1', 9000)
    """
    host, colon, number = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.endswith("]")):
        host, number = text, f"{port}"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not number.isascii() or not number.isdecimal() or not 0 < int(number) < 65536:
        raise click.UsageError(f"{text!r} is not HOST:PORT, such as example.org:{port}")
    return host, int(number)


def read_key(path: str | None) -> dict[str, Any]:
    """Read the secret that two peers share.

    Parameters
    ----------
    path
        Its file, or None.

    Returns
    -------
    dict
        The option ``key`` of `cwnd.udt.connect` and `cwnd.udt.listen`; empty without a file.

    Raises
    ------
    click.UsageError
        It cannot be read, others can use it, or it is no key.
    """
    if path is None:
        return {}
    from cwnd import _native, udt

    try:
        key = udt.read_secret(path)
        _native.udt_check_key(key)
    except OSError as problem:
        raise click.UsageError(f"--key: {problem}") from None
    except ValueError as problem:
        raise click.UsageError(f"--key: {path}: {problem}") from None
    return {"key": key}


def resolve(host: str, port: int) -> list[str]:
    """Find the addresses of a host.

    Raises
    ------
    click.UsageError
        There is none.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise click.UsageError(f"no such host: {host}") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def open_connection(host: str, port: int, **options: Any) -> Connection:  # noqa: ANN401
    """Connect to the first address of a host that answers.

    Parameters
    ----------
    host, port
        The other side.
    **options
        As `cwnd.udt.connect` takes them.

    Raises
    ------
    NoConnection
        None of them does.
    click.UsageError
        None of them does, and there is a key, which may be another one than theirs.
    """
    from cwnd.udt import connect

    *others, last = resolve(host, port)
    for address in others:
        with suppress(OSError):
            return connect(address, port, timeout=CONNECT_TIMEOUT, **options)
    try:
        return connect(last, port, timeout=CONNECT_TIMEOUT, **options)
    except OSError as problem:
        why = f"no connection to {host}: {explain(problem)}"
        if "key" in options and isinstance(problem, TimeoutError):
            raise click.UsageError(why) from None
        raise NoConnection(why) from None


def open_listener(port: int, **options: Any) -> Listener:  # noqa: ANN401
    """Listen at a port, with IPv6 and IPv4, or with IPv4 where there is no IPv6.

    Parameters
    ----------
    port
        The port; 0 is any.
    **options
        As `cwnd.udt.listen` takes them.

    Raises
    ------
    click.UsageError
        It cannot be had.
    """
    from cwnd.udt import listen

    host = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104
    try:
        return listen(port, host, **options)
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise click.UsageError(f"port {port} is in use: --port takes another") from None
        raise click.UsageError(f"cannot listen at port {port}: {explain(problem)}") from None


def name_peer(connection: Connection) -> tuple[str, int]:
    """Give the other side's address, as it is written where IPv6 carries IPv4, and its port."""
    host, port = connection.peer[:2]
    return host.removeprefix("::ffff:"), port


def explain(problem: Exception) -> str:
    """Put what the network or a peer did into words."""
    strerror = problem.strerror if isinstance(problem, OSError) else None
    return strerror or str(problem) or "no answer"


def fail(message: str) -> NoReturn:
    """Say in one line why it failed, and leave with status 1."""
    say(message)
    click.get_current_context().exit(FAILED)


def say(message: str) -> None:
    """Say something in one line beside the results."""
    click.echo(f"cwnd: {' '.join(message.split())}", err=True)
