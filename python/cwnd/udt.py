"""UDT sockets: reliable streams and messages over UDP, with any controller.

The protocol is UDT version 4, wire-compatible with the reference library 4.11 (draft-gg-udt-03). It
has neither encryption nor authentication: use it on a trusted network, or with credentials, which
add both between two endpoints of this package. Credentials are one of

* ``key``: a secret shared by both endpoints (:func:`generate_key` writes one to a file);
* ``pair`` and ``peers``: a key pair of each endpoint (:func:`generate_pair`) and the public keys of
  its peers, optionally with a shared ``key`` as well;
* ``code``: a one-time code (:func:`generate_code`), passed from the listener's user to the client's
  user.

A listener and a client, in two threads of one process:

>>> from threading import Thread
>>> from cwnd import udt
>>> def serve(listener: udt.Listener) -> None:
...     with listener.accept() as connection:
...         connection.send(connection.recv().upper())
>>> with udt.listen(0, "127.0.0.1") as listener:
...     thread = Thread(target=serve, args=[listener])
...     thread.start()
...     with udt.connect(*listener.address) as connection:
...         connection.send(b"hello")
...         connection.recv()
...     thread.join()
b'HELLO'
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from cwnd import _native
from cwnd._base.machine import require
from cwnd._base.renamed import renamed
from cwnd._runs.credentials import (
    generate_code,
    generate_key,
    generate_pair,
    read_peers,
    read_secret,
)
from cwnd._runs.defaults import MTU
from cwnd.controller import read_controller
from cwnd.errors import ArgumentError, read_argument, read_list
from cwnd.units import Quantity, check_unit, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

    from cwnd.controller import Factory, Spec

require("cwnd.udt", "Unix")

__all__ = [
    "Connection",
    "Listener",
    "connect",
    "generate_code",
    "generate_key",
    "generate_pair",
    "listen",
    "read_peers",
    "read_secret",
]

_BUFFER = 16_384
_CONNECT_TIMEOUT = 3.0
_OS_ERROR = re.compile(r" \(os error (\d+)\)$")
"""Suffix of the text of an operating system error from Rust."""


class SocketOptions(TypedDict):
    """Options of a connection or listener, as the native module reads them."""

    controller: str | Factory
    messages: bool
    mtu: int
    buffer: int
    rate_limit: float | None
    timeout: float
    key: bytes | None
    pair: bytes | None
    peers: list[str]
    code: str | None
    allow: list[str]
    per_address: int | None
    bind: str | None


class Connection:
    """A UDT connection. Use it in a ``with`` statement, or call :meth:`close`.

    Create one with :func:`connect` or :meth:`Listener.accept`. Blocking calls release the
    GIL: one thread may receive while another sends. They raise subclasses of
    :class:`OSError`: :class:`BrokenPipeError` after the connection was closed,
    :class:`ConnectionAbortedError` if the peer no longer answers, :class:`ConnectionResetError` if
    the peer does not know the connection (it was restarted), :class:`TimeoutError` after
    ``timeout``.

    Attributes
    ----------
    messages : bool
        Whether the connection carries messages instead of a byte stream.
    peer, address : tuple of str and int
        Addresses and UDP ports of the peer and of this endpoint.
    identity : str or None
        The peer's authenticated public key in base64; None without key pairs.
    """

    def __init__(self, stream: _native.UdtStream, *, messages: bool) -> None:
        self._stream = stream
        self.messages = messages
        self.peer = stream.peer()
        self.address = stream.local()
        self.identity = stream.identity()

    def send(
        self, data: bytes | bytearray | memoryview, *, timeout: Quantity | None = None
    ) -> None:
        """Send all data of a stream, or one message.

        Returns when all data are in the send buffer, after waiting for room if it is full.

        Parameters
        ----------
        data
            The data.
        timeout
            Maximum wait for room in seconds or as ``500ms``; unlimited by default.

        Raises
        ------
        OSError
            See the class. A part of a stream's data may have been accepted. Also raised for a
            message larger than the send buffer.
        """
        limit = _timeout(timeout)
        if self.messages:
            self._stream.send_message(bytes(data), None, in_order=True, timeout=limit)
        else:
            self._stream.write(bytes(data), limit)

    def recv(self, size: int = 65_536, *, timeout: Quantity | None = None) -> bytes:
        """Receive available data; wait if there are none.

        Parameters
        ----------
        size
            Largest number of bytes from a stream. A message is returned whole.
        timeout
            Maximum wait in seconds or as ``500ms``; unlimited by default.

        Returns
        -------
        bytes
            Up to 65,536 bytes of the stream, or the next message; empty if the peer has closed.

        Raises
        ------
        OSError
            See the class.
        """
        if size < 1:
            raise ArgumentError("size", f"{size} is not a number of bytes of at least 1")
        limit = _timeout(timeout)
        if self.messages:
            return self._stream.recv_message(limit) or b""
        return self._stream.read(size, limit)

    def stats(self, *, clear: bool = False) -> dict[str, float]:
        """Return statistics of the connection, like the reference library's ``perfmon``.

        Parameters
        ----------
        clear
            Whether to reset the counters of the interval.

        Returns
        -------
        dict
            The fields in snake case: counters since the start of the connection
            (``pkt_sent_total``) and since the last reset (``pkt_sent``), rates in Mb/s
            (``mbps_send_rate``), ``ms_rtt``, windows and packets in flight, the interval between
            packets in microseconds (``us_pkt_snd_period``), the path's capacity
            (``mbps_bandwidth``) and bytes free in the buffers.

        Examples
        --------
        >>> from cwnd import udt
        >>> with udt.listen(0, "127.0.0.1") as listener:
        ...     with udt.connect(*listener.address) as connection:
        ...         connection.stats()["pkt_retrans_total"]
        0
        """
        return self._stream.stats(clear)

    def close(self, *, timeout: Quantity | None = None) -> None:
        """Close the connection after all sent data are delivered.

        Parameters
        ----------
        timeout
            Maximum wait in seconds or as ``500ms``; by default the protocol's limit of 180 s.

        Raises
        ------
        OSError
            Not all data were delivered: the peer is gone or closed the connection first, or the
            timeout expired.
        """
        self._stream.close(_timeout(timeout))

    def abort(self) -> None:
        """Abort the connection and notify the peer; undelivered data are lost.

        Blocking calls in other threads return. Has no effect on a closed connection.
        """
        self._stream.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            # Raise the error at once: closing would first wait for delivery.
            self._stream.finish()

    def __repr__(self) -> str:
        host, port = self.peer
        return f"<cwnd.udt.Connection to {host}:{port}>"


class Listener:
    """A socket that accepts connections, created by :func:`listen`.

    Attributes
    ----------
    messages : bool
        Whether its connections carry messages instead of byte streams.
    address : tuple of str and int
        The local address and UDP port.
    """

    def __init__(self, listener: _native.UdtListener, *, messages: bool) -> None:
        self._listener = listener
        self.messages = messages
        self.address = listener.local()

    def accept(self, *, timeout: Quantity | None = None) -> Connection:
        """Wait for the next connection.

        Parameters
        ----------
        timeout
            Maximum wait in seconds or as ``500ms``; unlimited by default.

        Returns
        -------
        Connection
            The new connection.

        Raises
        ------
        OSError
            No connection in time (:class:`TimeoutError`), the listener is closed, or its one-time
            code was revoked after too many wrong guesses (:class:`PermissionError`).
        """
        return Connection(self._listener.accept(_timeout(timeout)), messages=self.messages)

    def spend_code(self) -> None:
        """Invalidate the one-time code: no further clients are accepted."""
        self._listener.spend_code()

    def close(self) -> None:
        """Accept no further connections; accepted ones stay open."""
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        host, port = self.address
        return f"<cwnd.udt.Listener at {host}:{port}>"


@renamed(packet_size="mtu")
def connect(  # noqa: PLR0913
    host: str,
    port: int,
    controller: Spec = "udt",
    *,
    messages: bool = False,
    mtu: int = MTU,
    buffer: int = _BUFFER,
    rate_limit: str | None = None,
    timeout: Quantity = _CONNECT_TIMEOUT,
    key: bytes | None = None,
    pair: bytes | None = None,
    peers: Iterable[str] = (),
    code: str | None = None,
    bind: str | None = None,
) -> Connection:
    """Connect to a listener.

    Parameters
    ----------
    host, port
        Address of the listener: a name or IP address, and a UDP port.
    controller
        Congestion controller of this endpoint: one of :func:`cwnd.algorithms`, such as ``udt``,
        ``cubic`` or ``simd(beta=1/16)``, or one written in Python, as for :func:`cwnd.compare`.
        The connection's methods raise exceptions of a Python controller.
    messages
        Whether to exchange messages instead of a byte stream; must match the listener.
    mtu
        Largest packet in bytes with IP and UDP headers, 100 to 65,535; the smaller value of both
        endpoints is used.
    buffer
        Size of the send buffer and of the receive buffer in packets: the largest amount of data in
        flight during a round-trip time.
    rate_limit
        Upper limit of the sending rate, such as ``100mbit``.
    timeout
        Maximum duration of the attempt in seconds or as ``500ms``.
    key
        A secret shared with the listener: at least 32 random bytes, or twice as many hexadecimal
        digits. Without credentials nothing is encrypted.
    pair, peers
        Contents of this endpoint's private key file, and the public key of the listener.
    code
        The listener's one-time code.
    bind
        The local address to connect from; any by default.

    Returns
    -------
    Connection
        The new connection.

    Raises
    ------
    OSError
        The name cannot be resolved, nobody answers (:class:`TimeoutError`), or the listener refuses
        the connection (:class:`ConnectionRefusedError`). The message names the host and port. A
        listener with credentials does not answer clients with other credentials, and refuses
        clients without.
    SpecError
        There is no such controller.
    ArgumentError
        The credentials or a number are invalid.

    Examples
    --------
    >>> import secrets
    >>> from cwnd import udt
    >>> key = secrets.token_bytes(32)
    >>> with udt.listen(0, "127.0.0.1", key=key) as listener:
    ...     with udt.connect(*listener.address, key=key) as connection:
    ...         connection.send(b"between us")
    ...         with listener.accept() as other:
    ...             other.recv()
    b'between us'
    """
    options = client_options(
        port,
        controller,
        messages=messages,
        mtu=mtu,
        buffer=buffer,
        rate_limit=rate_limit,
        timeout=timeout,
        key=key,
        pair=pair,
        peers=peers,
        code=code,
    )
    options["bind"] = bind
    try:
        return Connection(_native.udt_connect(host, port, options), messages=messages)
    except OSError as error:
        raise with_address(host, port, error) from None


@renamed(packet_size="mtu")
def client_options(  # noqa: PLR0913
    port: int,
    controller: Spec = "udt",
    *,
    messages: bool = False,
    mtu: int = MTU,
    buffer: int = _BUFFER,
    rate_limit: str | None = None,
    timeout: Quantity = _CONNECT_TIMEOUT,
    key: bytes | None = None,
    pair: bytes | None = None,
    peers: Iterable[str] = (),
    code: str | None = None,
) -> SocketOptions:
    """Validate the arguments of :func:`connect`, and convert them for the native module."""
    options = _socket_options(
        controller,
        messages=messages,
        mtu=mtu,
        buffer=buffer,
        rate_limit=rate_limit,
        timeout=read_argument("timeout", parse_time, timeout),
    )
    _add_credentials(options, key=key, pair=pair, peers=peers, code=code)
    if pair is not None and len(options["peers"]) != 1:
        count = len(options["peers"])
        text = f"a client needs exactly one public key, the listener's: {count} given"
        raise ArgumentError("peers", text)
    _check_port(port, least=1)
    return options


@renamed(packet_size="mtu")
def listen(  # noqa: PLR0913
    port: int,
    host: str = "0.0.0.0",  # noqa: S104
    controller: Spec = "udt",
    *,
    messages: bool = False,
    mtu: int = MTU,
    buffer: int = _BUFFER,
    rate_limit: str | None = None,
    key: bytes | None = None,
    pair: bytes | None = None,
    peers: Iterable[str] = (),
    code: str | None = None,
    allow: Iterable[str] = (),
    per_address: int | None = None,
) -> Listener:
    """Accept connections on a UDP port.

    Parameters
    ----------
    port
        The port; 0 for any free port, see :attr:`Listener.address`.
    host
        The local address; all IPv4 addresses by default, ``::`` for IPv6 and IPv4.
    controller, messages, mtu, buffer, rate_limit
        Options of each connection, as for :func:`connect`.
    key
        A secret: only clients that share it are accepted. Without credentials, only clients
        without credentials are accepted.
    pair, peers
        Contents of this endpoint's private key file, and the public keys of accepted clients.
    code
        A one-time code, for one client at a time; a second client with the code replaces the
        first. After five wrong guesses the code is revoked, and :meth:`Listener.accept` raises
        :class:`PermissionError`; :meth:`Listener.spend_code` invalidates it.
    allow
        Networks and addresses of accepted clients, such as ``10.0.0.0/8``; all by default.
    per_address
        Largest number of open connections per address; unlimited by default. Further clients are
        not answered until one of them ends.

    Returns
    -------
    Listener
        The listener.

    Raises
    ------
    OSError
        The port is in use or not allowed. The message names the host and port.
    SpecError
        There is no such controller.
    ArgumentError
        The credentials, a network or a number are invalid.
    """
    options = listener_options(
        port,
        controller,
        messages=messages,
        mtu=mtu,
        buffer=buffer,
        rate_limit=rate_limit,
        key=key,
        pair=pair,
        peers=peers,
        code=code,
        allow=allow,
        per_address=per_address,
    )
    try:
        return Listener(_native.udt_listen(host, port, options), messages=messages)
    except OSError as error:
        raise with_address(host, port, error) from None


def listener_options(  # noqa: PLR0913
    port: int,
    controller: Spec = "udt",
    *,
    messages: bool = False,
    mtu: int = MTU,
    buffer: int = _BUFFER,
    rate_limit: str | None = None,
    key: bytes | None = None,
    pair: bytes | None = None,
    peers: Iterable[str] = (),
    code: str | None = None,
    allow: Iterable[str] = (),
    per_address: int | None = None,
) -> SocketOptions:
    """Validate the arguments of :func:`listen`, and convert them for the native module."""
    options = _socket_options(
        controller,
        messages=messages,
        mtu=mtu,
        buffer=buffer,
        rate_limit=rate_limit,
        timeout=_CONNECT_TIMEOUT,
    )
    _add_credentials(options, key=key, pair=pair, peers=peers, code=code)
    options["allow"] = read_list("allow", allow)
    for network in options["allow"]:
        read_argument("allow", _native.udt_check_network, network)
    if per_address is not None and per_address < 1:
        raise ArgumentError("per_address", f"{per_address} is not at least 1")
    options["per_address"] = per_address
    _check_port(port, least=0)
    return options


def _socket_options(
    controller: Spec,
    *,
    messages: bool,
    mtu: int,
    buffer: int,
    rate_limit: str | None,
    timeout: float,
) -> SocketOptions:
    if not 100 <= mtu <= 65_535:
        raise ArgumentError("mtu", f"{mtu} is not from 100 to 65535 bytes")
    if not 32 <= buffer <= 1 << 20:
        raise ArgumentError("buffer", f"{buffer} is not from 32 to {1 << 20} packets")
    if rate_limit is not None:
        read_argument("rate_limit", partial(check_unit, "rate"), rate_limit)
    limit = None if rate_limit is None else read_argument("rate_limit", parse_rate, rate_limit)
    name, factory = read_controller(controller)
    return {
        "controller": name if factory is None else factory,
        "messages": messages,
        "mtu": mtu,
        "buffer": buffer,
        "rate_limit": limit,
        "timeout": timeout,
        "key": None,
        "pair": None,
        "peers": [],
        "code": None,
        "allow": [],
        "per_address": None,
        "bind": None,
    }


def _add_credentials(
    options: SocketOptions,
    *,
    key: bytes | None,
    pair: bytes | None,
    peers: Iterable[str],
    code: str | None,
) -> None:
    options["peers"] = read_list("peers", peers)
    if code is not None and (key is not None or pair is not None):
        raise ArgumentError("code", "a code excludes a key and a pair")
    if key is not None:
        read_argument("key", _native.udt_check_key, key)
    if pair is not None:
        read_argument("pair", _native.udt_check_pair, pair)
        if not options["peers"]:
            raise ArgumentError("peers", "a pair needs the public keys of its peers")
    elif options["peers"]:
        raise ArgumentError("peers", "the peers' public keys need this endpoint's pair too")
    for peer in options["peers"]:
        read_argument("peers", _native.udt_check_peer, peer)
    options["key"] = key
    options["pair"] = pair
    if code is not None:
        options["code"] = read_argument("code", _native.udt_check_code, code)


def _check_port(port: int, *, least: int) -> None:
    if not least <= port <= 65_535:
        raise ArgumentError("port", f"{port} is not from {least} to 65535")


def _timeout(value: Quantity | None) -> float | None:
    # 0 polls without waiting.
    if value is None or value == 0:
        return value
    return read_argument("timeout", parse_time, value)


def with_address(host: str, port: int, error: OSError) -> OSError:
    """Prefix the text of an error with the address."""
    text = error.strerror or str(error)
    number = _OS_ERROR.search(text)
    named = type(error)(f"{host}:{port}: {_OS_ERROR.sub('', text)}")
    named.errno = int(number[1]) if number else error.errno
    return named
