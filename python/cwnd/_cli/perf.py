"""The command `perf`: throughput tests over UDT or QUIC, with iperf3's options."""

from __future__ import annotations

import socket
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cwnd._cli import shared
from cwnd._cli.credentials import read_credentials
from cwnd._cli.outputs import FAILED, print_json
from cwnd._cli.peers import (
    NoConnection,
    explain,
    fail,
    open_connection,
    open_listener,
    resolve,
)
from cwnd._cli.terminal import echo
from cwnd._cli.values import BITRATE, COUNT
from cwnd._runs.defaults import INTERVAL_S, STACKS
from cwnd._runs.transport_limits import DEFAULT_CONTROLLER
from cwnd.perf.protocol import (
    MAX_OMITTED,
    MAX_SECONDS,
    MAX_STREAMS,
    MIN_SECONDS,
    PerfOptions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.perf.protocol import Connection, Listener

PORT = 5201
"""Default port, as in iperf3."""

_PER_ADDRESS = 160
"""Connections per address: those of the largest test, and of clients that are refused."""

_MIN_INTERVAL = 0.1
_CLIENT_ONLY = (
    "time",
    "bytes",
    "bitrate",
    "omit",
    "parallel",
    "reverse",
    "congestion",
    "interval",
)
_NO_UDP = (
    "-u: UDT always runs over UDP, and has no test of unreliable datagrams: iperf3 -u measures them"
)


class _Transport(NamedTuple):
    """A transport protocol: its name, and functions with the arguments of those of `cwnd.udt`."""

    name: str
    connect: Callable[..., Connection]
    listen: Callable[..., Listener]


@click.command()
@click.option("-s", "--server", is_flag=True, help="Run as a server.")
@click.option("-c", "--client", metavar="HOST", help="Run as a client of the server HOST.")
@shared.port("-p", "--port", default=PORT)
@shared.bind("-B", "--bind", help="Local address to use.")
@click.option("-4", "--version4", is_flag=True, help="Use IPv4 only.")
@click.option("-6", "--version6", is_flag=True, help="Use IPv6 only.")
@click.option("-1", "--one-off", is_flag=True, help="Server: exit after one test.")
@click.option(
    "-t",
    "--time",
    default=PerfOptions.seconds,
    type=click.FloatRange(MIN_SECONDS, MAX_SECONDS),
    help="Length of the test in seconds.",
)
@click.option(
    "-n",
    "--bytes",
    metavar="N[KMGT]",
    type=COUNT,
    help="Bytes to send, instead of --time; K is 1024.",
)
@click.option(
    "-b",
    "--bitrate",
    metavar="RATE[KMGT][/BURST]",
    type=BITRATE,
    help="Limit of each connection's payload in bit/s; K is 1000, 0 is unlimited. BURST blocks are "
    "sent back to back.",
)
@click.option(
    "-O",
    "--omit",
    default=PerfOptions.omit,
    type=click.FloatRange(0, MAX_OMITTED),
    help="Length of a warm-up before --time, in seconds; no result includes it.",
)
@click.option(
    "-P",
    "--parallel",
    default=PerfOptions.streams,
    type=click.IntRange(1, MAX_STREAMS),
    help="Number of parallel connections.",
)
@click.option("-R", "--reverse", is_flag=True, help="The server sends.")
@shared.controller(
    "-C",
    "--congestion",
    help="Congestion controller of the sender: see `cwnd algorithms`.",
)
@click.option(
    "-i",
    "--interval",
    default=INTERVAL_S,
    type=float,
    help="Seconds between two reports; 0 for no reports before the end.",
)
@click.option("--quic", is_flag=True, help="Test QUIC instead of UDT; both sides need the option.")
@click.option(
    "--stack",
    default=STACKS[0],
    type=click.Choice(STACKS),
    help="QUIC stack of this side.",
)
@shared.json("-J", help="Print JSON in iperf3's format.")
@click.option("-u", "--udp", is_flag=True, hidden=True)
@shared.mtu()
@shared.keys
def perf(as_json: bool, **options: Any) -> None:  # noqa: ANN401, FBT001
    """Measure the throughput of a path, with iperf3's options.

    One side runs `cwnd perf -s`, the other `cwnd perf -c HOST`. The transport is UDT, or with
    --quic on both sides QUIC; iperf3 itself cannot be the peer. A server writes no files and serves
    one test at a time.

    Exit status: 0 for success, 1 if the test failed, 2 for an error on the command line, 130 if
    interrupted.
    """
    if options["udp"]:
        raise click.UsageError(_NO_UDP)
    if options["server"] == (options["client"] is not None):
        raise click.UsageError("one of -s and -c HOST is needed")
    if options["version4"] and options["version6"]:
        raise click.UsageError("-4 and -6 are mutually exclusive")
    if shared.is_given("stack") and not options["quic"]:
        raise click.UsageError("--stack needs --quic")
    secret = read_credentials(options["client"])
    if options["server"]:
        shared.refuse("for a server", *_CLIENT_ONLY)
        _run_server(secret, as_json=as_json, **options)
    else:
        if shared.is_given("one_off"):
            raise click.UsageError("--one-off is a server option")
        _run_client(secret, as_json=as_json, **options)


def _family(options: dict[str, Any]) -> int:
    """Return the address family for -4 or -6; 0 for any."""
    if options["version4"]:
        return int(socket.AF_INET)
    return int(socket.AF_INET6) if options["version6"] else 0


def _transport(options: dict[str, Any]) -> _Transport:
    """Return the transport protocol of the test."""
    if options["quic"]:
        from cwnd.perf import quic

        stack = options["stack"]
        return _Transport(
            "QUIC", partial(quic.connect, stack=stack), partial(quic.listen, stack=stack)
        )
    from cwnd.udt import connect, listen

    return _Transport("UDT", connect, listen)


def _run_server(secret: dict[str, Any], *, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Serve tests until interrupted."""
    from cwnd.perf import Server

    transport, host = _transport(options), options["bind"]
    socket = {"per_address": _PER_ADDRESS, "mtu": options["mtu"], **secret}
    if host is not None:
        host = resolve(host, options["port"], _family(options))[0]
    elif options["version4"]:
        host = "0.0.0.0"  # noqa: S104
    elif options["version6"]:
        host, socket["allow"] = "::", ["::/0"]

    opened = open_listener(
        transport.listen, options["port"], host, controller=DEFAULT_CONTROLLER, **socket
    )
    with closing(opened) as listener:

        def relisten(controller: str) -> Listener:
            return transport.listen(0, listener.address[0], controller=controller, **socket)

        server = (
            Server(listener, relisten, publish=print_json, protocol=transport.name)
            if as_json
            else Server(listener, relisten, tell=echo, protocol=transport.name)
        )
        if not server.serve(one_off=options["one_off"]):
            click.get_current_context().exit(FAILED)


def _check(options: dict[str, Any]) -> None:
    """Raise an error for options that contradict each other."""
    from cwnd.controller import names_python

    if options["reverse"] and names_python(options["congestion"]):
        raise click.UsageError("-C: with -R the server sends: only registered controllers work")
    if options["congestion"].startswith("own:") and not options["quic"]:
        raise click.UsageError(f"-C {options['congestion']}: a QUIC stack's own needs --quic")
    if shared.is_given("time") and shared.is_given("bytes"):
        raise click.UsageError("--time and --bytes are mutually exclusive")


def _run_client(secret: dict[str, Any], *, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Measure the throughput to a server."""
    from cwnd.perf import PerfError, PerfOptions, measure

    host, port, every = options["client"], options["port"], options["interval"]
    if not port:
        raise click.UsageError("--port: a client needs a port from 1 to 65535")
    if every and not every >= _MIN_INTERVAL:
        raise click.UsageError(f"--interval: {every:g} must be 0 or at least {_MIN_INTERVAL}")
    _check(options)
    bitrate, burst = options["bitrate"] or (0.0, 1)
    test = PerfOptions(
        seconds=options["time"],
        streams=options["parallel"],
        reverse=options["reverse"],
        controller=options["congestion"],
        bytes=0 if shared.is_given("time") else options["bytes"] or 0,
        omit=options["omit"],
        bitrate=bitrate,
        burst=burst,
    )
    # A receiver needs no controller.
    connection = {"controller": DEFAULT_CONTROLLER if test.reverse else test.controller, **secret}
    connection["mtu"] = options["mtu"]
    transport, family = _transport(options), _family(options)
    if options["bind"] is not None:
        connection["bind"] = resolve(options["bind"], 0, family)[0]
        family = socket.AF_INET6 if ":" in connection["bind"] else socket.AF_INET

    def dial(other: int | None) -> Connection:
        return open_connection(transport.connect, host, other or port, family=family, **connection)

    if not as_json:
        echo(f"Connecting to host {host}, port {port}")
    try:
        document = measure(
            dial, test, every=every, protocol=transport.name, tell=None if as_json else echo
        )
    except (PerfError, OSError) as problem:
        where = "" if isinstance(problem, NoConnection) else f"{host}, port {port}: "
        why = where + explain(problem)
        if as_json:
            print_json({"error": why})
        fail(why)
    if as_json:
        print_json(document)
