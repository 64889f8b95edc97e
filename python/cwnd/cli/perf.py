"""The command `perf`: speed tests over UDT, with iperf3's flags."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cwnd.cli.credentials import read_credentials, with_keys
from cwnd.cli.outputs import print_json
from cwnd.cli.peers import (
    FAILED,
    NoConnection,
    explain,
    fail,
    open_connection,
    open_listener,
    resolve,
)
from cwnd.cli.values import BITRATE, CONTROLLER, COUNT

if TYPE_CHECKING:
    from cwnd.udt import Connection, Listener

PORT = 5201
"""iperf3's."""

_PER_ADDRESS = 160
"""Connections of one address at once: the largest test, and clients that are told it is busy."""

_SHORTEST_INTERVAL = 0.1
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


@click.command()
@click.option("-s", "--server", is_flag=True, help="Wait for clients.")
@click.option("-c", "--client", metavar="HOST", help="Test the speed to the server HOST.")
@click.option("-p", "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535))
@click.option("-B", "--bind", metavar="ADDRESS", help="Use this address of this host.")
@click.option("-4", "--version4", is_flag=True, help="Use IPv4 only.")
@click.option("-6", "--version6", is_flag=True, help="Use IPv6 only.")
@click.option("-1", "--one-off", is_flag=True, help="Server: leave after one test.")
@click.option(
    "-t",
    "--time",
    default=10.0,
    show_default=True,
    type=click.FloatRange(1e-3, 86400),
    help="Seconds to send for.",
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
    help="Payload of each connection in bit/s at most; K is 1000. 0 is no limit. BURST blocks are "
    "sent without a pause between them.",
)
@click.option(
    "-O",
    "--omit",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 600),
    help="Seconds to send before --time that count in no result.",
)
@click.option(
    "-P",
    "--parallel",
    default=1,
    show_default=True,
    type=click.IntRange(1, 128),
    help="Connections at once.",
)
@click.option("-R", "--reverse", is_flag=True, help="The server sends.")
@click.option(
    "-C",
    "--congestion",
    metavar="SPEC",
    default="udt",
    show_default=True,
    type=CONTROLLER,
    help="The sender's controller: see `cwnd algorithms`.",
)
@click.option(
    "-i",
    "--interval",
    default=1.0,
    show_default=True,
    type=float,
    help="Seconds between two reports; 0 is none before the end.",
)
@click.option("-J", "--json", "as_json", is_flag=True, help="Print one JSON document, as iperf3's.")
@click.option("-u", "--udp", is_flag=True, hidden=True)
@with_keys
def perf(as_json: bool, **options: Any) -> None:  # noqa: ANN401, FBT001
    """Measure a path's throughput with iperf3's options.

    One side runs `cwnd perf -s`, the other `cwnd perf -c HOST`. The transport is UDT, and iperf3
    itself is no peer of it. A server writes no files and serves one test at a time.

    Exit status: 0 for success, 1 when the test failed, 2 for a mistake on the command line, 130
    when interrupted.
    """
    if options["udp"]:
        raise click.UsageError(_NO_UDP)
    if options["server"] == (options["client"] is not None):
        raise click.UsageError("either -s or -c HOST says which side this is")
    if options["version4"] and options["version6"]:
        raise click.UsageError("-4 and -6 exclude each other")
    secret = read_credentials(options["client"])
    if options["server"]:
        for name in _CLIENT_ONLY:
            if _is_given(name):
                raise click.UsageError(f"--{name} is an option of the client")
        _serve(secret, as_json=as_json, **options)
    else:
        if _is_given("one_off"):
            raise click.UsageError("--one-off is an option of the server")
        _ask(secret, as_json=as_json, **options)


def _is_given(name: str) -> bool:
    """Whether an option stands on the command line; defaults from elsewhere are for both sides."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _family(options: dict[str, Any]) -> int:
    """Return the address family that -4 or -6 asks for; 0 is any."""
    if options["version4"]:
        return int(socket.AF_INET)
    return int(socket.AF_INET6) if options["version6"] else 0


def _serve(secret: dict[str, Any], *, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Serve tests until interrupted."""
    from cwnd.perf import Server
    from cwnd.udt import listen

    host, socket = options["bind"], {"per_address": _PER_ADDRESS, **secret}
    if host is not None:
        host = resolve(host, options["port"], _family(options))[0]
    elif options["version4"]:
        host = "0.0.0.0"  # noqa: S104
    elif options["version6"]:
        host, socket["allow"] = "::", ["::/0"]

    with closing(open_listener(options["port"], host, **socket)) as listener:

        def relisten(controller: str) -> Listener:
            return listen(0, listener.address[0], controller=controller, **socket)

        server = (
            Server(listener, relisten, publish=print_json)
            if as_json
            else Server(listener, relisten, tell=click.echo)
        )
        if not server.serve(one_off=options["one_off"]):
            click.get_current_context().exit(FAILED)


def _check(options: dict[str, Any]) -> None:
    """Refuse options that contradict each other."""
    if options["reverse"] and ".py:" in options["congestion"]:
        raise click.UsageError("-C: with -R the server sends: name a controller of the registry")
    if _is_given("time") and _is_given("bytes"):
        raise click.UsageError("either --time or --bytes ends the test")


def _ask(secret: dict[str, Any], *, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Measure the throughput to a server."""
    from cwnd.perf import PerfError, PerfOptions, measure

    host, port, every = options["client"], options["port"], options["interval"]
    if not port:
        raise click.UsageError("--port: 1 to 65535 are possible for a client")
    if every and not every >= _SHORTEST_INTERVAL:
        raise click.UsageError(
            f"--interval: {every:g} is neither 0 nor {_SHORTEST_INTERVAL} or more"
        )
    _check(options)
    bitrate, burst = options["bitrate"] or (0.0, 1)
    test = PerfOptions(
        seconds=options["time"],
        streams=options["parallel"],
        reverse=options["reverse"],
        controller=options["congestion"],
        bytes=0 if _is_given("time") else options["bytes"] or 0,
        omit=options["omit"],
        bitrate=bitrate,
        burst=burst,
    )
    # A side that only receives needs no controller of its own.
    connection = {"controller": "udt" if test.reverse else test.controller, **secret}
    family = _family(options)
    if options["bind"] is not None:
        connection["bind"] = resolve(options["bind"], 0, family)[0]
        family = socket.AF_INET6 if ":" in connection["bind"] else socket.AF_INET

    def dial(other: int | None) -> Connection:
        return open_connection(host, other or port, family=family, **connection)

    if not as_json:
        click.echo(f"Connecting to host {host}, port {port}")
    try:
        document = measure(dial, test, every=every, tell=None if as_json else click.echo)
    except (PerfError, OSError) as problem:
        where = "" if isinstance(problem, NoConnection) else f"{host}, port {port}: "
        why = where + explain(problem)
        if as_json:
            print_json({"error": why})
        fail(why)
    if as_json:
        print_json(document)
