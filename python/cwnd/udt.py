"""UDT sockets: reliable streams and messages over UDP, with any controller.

The protocol is UDT version 4, wire-compatible with the reference library 4.11 (draft-gg-udt-03). It
has no encryption and does not know who its peer is: use it where the network is trusted, or with
credentials. Then all that travels is sealed, between two ends of this package. Credentials are one
of

* ``key``: a secret that both ends share (:func:`generate_key` writes one to a file);
* ``pair`` and ``peers``: a key pair of each end (:func:`generate_pair`) and the public keys of its
  peers. A ``key`` beside them is a secret that both ends share as well;
* ``code``: a one-time code (:func:`generate_code`) that the listener's user tells the client's.

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
from typing import TYPE_CHECKING, TypedDict

from cwnd import _native
from cwnd.controller import read_controller
from cwnd.credentials import (
    generate_code,
    generate_key,
    generate_pair,
    read_peers,
    read_secret,
)
from cwnd.errors import ArgumentError, read_argument
from cwnd.units import Quantity, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

    from cwnd.controller import Factory, Spec

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
"""What Rust adds to the text of an error of the system."""


class SocketOptions(TypedDict):
    """How a connection is made, as the native module reads it."""

    controller: str | Factory
    messages: bool
    packet_size: int
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
    """One end of a connection. Use it in a ``with`` statement, or call :meth:`close`.

    :func:`connect` and :meth:`Listener.accept` make them. Calls that wait release the interpreter's
    lock: one thread may receive while another sends. They raise subclasses of :class:`OSError`:
    :class:`BrokenPipeError` once the connection is closed, :class:`ConnectionAbortedError` when the
    peer does not answer any more, :class:`ConnectionResetError` when the peer answers that it does
    not know the connection (it was restarted), :class:`TimeoutError` when ``timeout`` is over.

    Attributes
    ----------
    messages : bool
        Whether it carries messages, and not a stream of bytes.
    peer, address : tuple of str and int
        The addresses and UDP ports of the other end and of this one.
    identity : str or None
        The public key that the other end has proved, in base64; None without key pairs.
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
        """Send all of the data, or one message.

        Returns once the send buffer has it all, which waits until the network has taken enough of
        what was sent before.

        Parameters
        ----------
        data
            What to send.
        timeout
            How long to wait for room at most, in seconds or as ``500ms``; for ever by default.

        Raises
        ------
        OSError
            See the class. A stream may have taken a part of the data. Also for a message that is
            larger than the send buffer.
        """
        limit = _timeout(timeout)
        if self.messages:
            self._stream.send_message(bytes(data), None, in_order=True, timeout=limit)
        else:
            self._stream.write(bytes(data), limit)

    def recv(self, size: int = 65_536, *, timeout: Quantity | None = None) -> bytes:
        """Receive what is there, and wait for something to be there.

        Parameters
        ----------
        size
            Bytes of a stream to receive at most. A message comes as a whole.
        timeout
            How long to wait at most, in seconds or as ``500ms``; for ever by default.

        Returns
        -------
        bytes
            Up to 65,536 bytes of the stream, or the next message. Empty when the peer has closed.

        Raises
        ------
        OSError
            See the class.
        """
        if size < 1:
            raise ArgumentError("size", f"{size} bytes cannot be received: 1 or more")
        limit = _timeout(timeout)
        if self.messages:
            return self._stream.recv_message(limit) or b""
        return self._stream.read(size, limit)

    def stats(self, *, clear: bool = False) -> dict[str, float]:
        """Say how the connection is doing, as the reference library's ``perfmon`` does.

        Parameters
        ----------
        clear
            Begin the counters of the interval anew.

        Returns
        -------
        dict
            Its fields in snake case: counters since the connection was made (``pkt_sent_total``)
            and since the last call that cleared (``pkt_sent``), rates in Mb/s (``mbps_send_rate``),
            ``ms_rtt``, windows and packets in flight, the time between packets in microseconds
            (``us_pkt_snd_period``), the path's capacity (``mbps_bandwidth``) and bytes free in the
            buffers.

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
        """End the connection, and wait until all that was sent is delivered.

        Parameters
        ----------
        timeout
            How long to wait at most, in seconds or as ``500ms``. By default the protocol's own
            limit applies: 180 s.

        Raises
        ------
        OSError
            Not everything was delivered: the peer is gone or has closed before, or the time is
            over.
        """
        self._stream.close(_timeout(timeout))

    def abort(self) -> None:
        """End the connection at once, and tell the peer; what is not delivered is lost.

        Calls that wait in other threads end. A connection that has ended already is left alone.
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
            # What went wrong is told at once, not after what was sent is delivered.
            self._stream.finish()

    def __repr__(self) -> str:
        host, port = self.peer
        return f"<cwnd.udt.Connection to {host}:{port}>"


class Listener:
    """A socket that accepts connections. :func:`listen` makes it.

    Attributes
    ----------
    messages : bool
        Whether its connections carry messages, and not streams of bytes.
    address : tuple of str and int
        The address and UDP port that it listens at.
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
            How long to wait at most, in seconds or as ``500ms``; for ever by default.

        Returns
        -------
        Connection
            This end of it.

        Raises
        ------
        OSError
            None came in time (:class:`TimeoutError`), the listener is closed, or too many wrong
            guesses have made its one-time code void (:class:`PermissionError`).
        """
        return Connection(self._listener.accept(_timeout(timeout)), messages=self.messages)

    def spend_code(self) -> None:
        """Use up the one-time code: no more clients are let in. Open connections go on."""
        self._listener.spend_code()

    def close(self) -> None:
        """Accept no more connections. Those that were accepted go on."""
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        host, port = self.address
        return f"<cwnd.udt.Listener at {host}:{port}>"


def connect(  # noqa: PLR0913
    host: str,
    port: int,
    controller: Spec = "udt",
    *,
    messages: bool = False,
    packet_size: int = 1500,
    buffer: int = _BUFFER,
    rate_limit: Quantity | None = None,
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
        Where it listens: a name or address, and a UDP port.
    controller
        What controls the rate that this end sends at: any of :func:`cwnd.algorithms`, such as
        ``udt``, ``cubic`` or ``simd(beta=1/16)``, or one written in Python, as for
        :func:`cwnd.compare`. An exception in it is raised by the methods of the connection.
    messages
        Whether to exchange messages instead of a stream of bytes. The listener has to do the same.
    packet_size
        Bytes of a packet, IP's and UDP's headers included, 100 to 65,535; the smaller of both ends'
        counts.
    buffer
        Packets that the send buffer and the receive buffer hold at most, each. A connection carries
        no more than that in a round-trip time.
    rate_limit
        What this end sends at most: bits a second, or as ``100mbit``.
    timeout
        How long to try, in seconds or as ``500ms``.
    key
        A secret that the listener has as well: at least 32 random bytes, or twice as many
        hexadecimal digits. Without credentials everything is sent in clear.
    pair, peers
        The contents of the file of this end's private key, and the public key of the listener.
    code
        The listener's one-time code.
    bind
        The address of this host to connect from; any by default.

    Returns
    -------
    Connection
        This end of the connection.

    Raises
    ------
    OSError
        The name has no address, nobody answers (:class:`TimeoutError`), or the answer is no
        (:class:`ConnectionRefusedError`). The message names the host and port. A listener does not
        answer those who have other credentials, and refuses those who have none.
    SpecError
        There is no such controller.
    ArgumentError
        The credentials or a number are none.

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
        packet_size=packet_size,
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
        raise _at(host, port, error) from None


def client_options(  # noqa: PLR0913
    port: int,
    controller: Spec = "udt",
    *,
    messages: bool = False,
    packet_size: int = 1500,
    buffer: int = _BUFFER,
    rate_limit: Quantity | None = None,
    timeout: Quantity = _CONNECT_TIMEOUT,
    key: bytes | None = None,
    pair: bytes | None = None,
    peers: Iterable[str] = (),
    code: str | None = None,
) -> SocketOptions:
    """Check the arguments of :func:`connect`, and return them as the native module reads them."""
    options = _socket_options(
        controller,
        messages=messages,
        packet_size=packet_size,
        buffer=buffer,
        rate_limit=rate_limit,
        timeout=read_argument("timeout", parse_time, timeout),
    )
    _add_credentials(options, key=key, pair=pair, peers=peers, code=code)
    if pair is not None and len(options["peers"]) != 1:
        count = len(options["peers"])
        text = f"to connect, name one public key, that of the listener: {count} given"
        raise ArgumentError("peers", text)
    _check_port(port, least=1)
    return options


def listen(  # noqa: PLR0913
    port: int,
    host: str = "0.0.0.0",  # noqa: S104
    controller: Spec = "udt",
    *,
    messages: bool = False,
    packet_size: int = 1500,
    buffer: int = _BUFFER,
    rate_limit: Quantity | None = None,
    key: bytes | None = None,
    pair: bytes | None = None,
    peers: Iterable[str] = (),
    code: str | None = None,
    allow: Iterable[str] = (),
    per_address: int | None = None,
) -> Listener:
    """Accept connections at a UDP port.

    Parameters
    ----------
    port
        The port; 0 is any free one, which :attr:`Listener.address` tells.
    host
        The address of this machine to listen at; all of IPv4 by default, ``::`` for IPv6 and IPv4.
    controller, messages, packet_size, buffer, rate_limit
        As for :func:`connect`, for each connection.
    key
        A secret: only those who have it are accepted. Without credentials, only those who have
        none.
    pair, peers
        The contents of the file of this end's private key, and the public keys of those who are
        accepted.
    code
        A one-time code: one client at a time that has it is accepted. Another one with the code
        takes the place of the one before. After five wrong guesses the code is void, and
        :meth:`Listener.accept` raises :class:`PermissionError`; :meth:`Listener.spend_code` uses
        it up.
    allow
        Networks and addresses that are answered, such as ``10.0.0.0/8``; all by default.
    per_address
        Open connections of one address at most; no limit by default. Further clients are not
        answered until one of them has ended.

    Returns
    -------
    Listener
        To accept connections from.

    Raises
    ------
    OSError
        The port is in use or not allowed. The message names the host and port.
    SpecError
        There is no such controller.
    ArgumentError
        The credentials, a network or a number are none.
    """
    options = _socket_options(
        controller,
        messages=messages,
        packet_size=packet_size,
        buffer=buffer,
        rate_limit=rate_limit,
        timeout=_CONNECT_TIMEOUT,
    )
    _add_credentials(options, key=key, pair=pair, peers=peers, code=code)
    options["allow"] = list(allow)
    for network in options["allow"]:
        read_argument("allow", _native.udt_check_network, network)
    if per_address is not None and per_address < 1:
        raise ArgumentError("per_address", f"{per_address} connections: 1 or more")
    options["per_address"] = per_address
    _check_port(port, least=0)
    try:
        return Listener(_native.udt_listen(host, port, options), messages=messages)
    except OSError as error:
        raise _at(host, port, error) from None


def _socket_options(
    controller: Spec,
    *,
    messages: bool,
    packet_size: int,
    buffer: int,
    rate_limit: Quantity | None,
    timeout: float,
) -> SocketOptions:
    if not 100 <= packet_size <= 65_535:
        raise ArgumentError("packet_size", f"{packet_size} bytes: 100 to 65535 are possible")
    if not 32 <= buffer <= 1 << 20:
        raise ArgumentError("buffer", f"{buffer} packets: 32 to {1 << 20} are possible")
    limit = None if rate_limit is None else read_argument("rate_limit", parse_rate, rate_limit)
    name, factory = read_controller(controller)
    return {
        "controller": name if factory is None else factory,
        "messages": messages,
        "packet_size": packet_size,
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
    if isinstance(peers, str):
        raise ArgumentError("peers", "a list of public keys is needed, not one text")
    options["peers"] = list(peers)
    if code is not None and (key is not None or pair is not None):
        raise ArgumentError("code", "give a code, or a key or pair, not both")
    if key is not None:
        read_argument("key", _native.udt_check_key, key)
    if pair is not None:
        read_argument("pair", _native.udt_check_pair, pair)
        if not options["peers"]:
            raise ArgumentError("peers", "a pair needs the public keys of its peers")
    elif options["peers"]:
        raise ArgumentError("peers", "public keys of peers need this end's pair as well")
    for peer in options["peers"]:
        read_argument("peers", _native.udt_check_peer, peer)
    options["key"] = key
    options["pair"] = pair
    if code is not None:
        options["code"] = read_argument("code", _native.udt_check_code, code)


def _check_port(port: int, *, least: int) -> None:
    if not least <= port <= 65_535:
        raise ArgumentError("port", f"{port}: {least} to 65535 are possible")


def _timeout(value: Quantity | None) -> float | None:
    # Zero only looks whether something is there.
    if value is None or value == 0:
        return value
    return read_argument("timeout", parse_time, value)


def _at(host: str, port: int, error: OSError) -> OSError:
    """Put the place before the text of an error."""
    text = error.strerror or str(error)
    number = _OS_ERROR.search(text)
    named = type(error)(f"{host}:{port}: {_OS_ERROR.sub('', text)}")
    named.errno = int(number[1]) if number else error.errno
    return named
