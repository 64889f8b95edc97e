"""Connections of the QUIC stacks noq and quinn, for throughput tests; see docs/quic.md."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cwnd import _native
from cwnd._runs.defaults import STACKS
from cwnd._runs.transport_limits import DEFAULT_CONTROLLER
from cwnd.errors import ArgumentError
from cwnd.udt import client_options, listener_options, with_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.controller import Spec
    from cwnd.perf.protocol import Connection, Listener


def connect(
    host: str,
    port: int,
    controller: Spec = DEFAULT_CONTROLLER,
    *,
    stack: str = STACKS[0],
    bind: str | None = None,
    **options: Any,  # noqa: ANN401
) -> Connection:
    """Connect to a listener of either stack; ``stack`` is that of this end: ``noq`` or ``quinn``.

    ``controller`` is as for `cwnd.udt.connect`, or one of the stack's own, such as ``own:cubic``.
    The options are ``mtu``, ``timeout``, ``key``, ``pair`` and ``peers`` of `cwnd.udt.connect`. So
    are the errors, but for a PermissionError from a listener with other credentials, and an
    ArgumentError of a build without the stacks.
    """
    given = client_options(port, controller, **options)
    given["bind"] = bind
    with _explained(host, port):
        return _native.quic_connect(host, port, given, stack)


def listen(
    port: int,
    host: str,
    controller: Spec = DEFAULT_CONTROLLER,
    *,
    stack: str = STACKS[0],
    **options: Any,  # noqa: ANN401
) -> Listener:
    """Accept connections of either stack.

    The options are ``mtu``, ``key``, ``pair``, ``peers``, ``allow`` and ``per_address`` of
    `cwnd.udt.listen`; the others and the errors are those of `connect`.
    """
    given = listener_options(port, controller, **options)
    with _explained(host, port):
        return _native.quic_listen(host, port, given, stack)


@contextmanager
def _explained(host: str, port: int) -> Iterator[None]:
    """Name the address in errors of the operating system, and the option in others."""
    try:
        yield
    except OSError as error:
        raise with_address(host, port, error) from None
    except _native.SpecError:
        raise
    except ValueError as error:
        raise ArgumentError("quic", str(error)) from None
