"""The verb `perf`: tests of speed over UDT, with iperf3's flags."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cwnd.cli.outputs import print_json
from cwnd.cli.peers import (
    PLAIN,
    NoConnection,
    explain,
    fail,
    key_option,
    open_connection,
    open_listener,
    read_key,
)

if TYPE_CHECKING:
    from cwnd.transfer.connection import Connection, Listener

PORT = 5201
"""iperf3's."""

_SHORTEST_INTERVAL = 0.1
_CLIENT_ONLY = ("time", "parallel", "reverse", "congestion", "interval")


@click.command(epilog=PLAIN)
@click.option("-s", "--server", is_flag=True, help="Wait for clients.")
@click.option("-c", "--client", metavar="HOST", help="Test the speed to the server HOST.")
@click.option("-p", "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "-t",
    "--time",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0, 86400, min_open=True),
    help="Seconds to send for.",
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
@key_option
def perf(as_json: bool, key: str | None, **options: Any) -> None:  # noqa: ANN401, FBT001
    """Test the speed of a path over UDT, with iperf3's flags and reports.

    One side runs `cwnd perf -s`, the other `cwnd perf -c HOST`. The protocol is its own: iperf3
    itself is no peer of it.
    """
    if options["server"] == (options["client"] is not None):
        raise click.UsageError("either -s or -c HOST says which side this is")
    secret = read_key(key)
    if options["server"]:
        for name in _CLIENT_ONLY:
            if (
                click.get_current_context().get_parameter_source(name)
                is not ParameterSource.DEFAULT
            ):
                raise click.UsageError(f"--{name} is the client's to say, not the server's")
        _serve(options["port"], secret, as_json=as_json)
    else:
        _ask(secret, as_json=as_json, **options)


def _serve(port: int, secret: dict[str, Any], *, as_json: bool) -> None:
    """Wait for clients until somebody interrupts it."""
    from cwnd.perf import Server
    from cwnd.udt import listen

    def relisten(controller: str) -> Listener:
        return listen(0, controller=controller, **secret)

    def tell(line: str) -> None:
        click.echo(line)

    with closing(open_listener(port, **secret)) as listener:
        server = (
            Server(listener, relisten, publish=print_json)
            if as_json
            else Server(listener, relisten, tell=tell)
        )
        server.serve()


def _ask(secret: dict[str, Any], *, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Test the speed to a server."""
    from cwnd import canonical
    from cwnd.perf import PerfError, Settings, measure

    host, port, every = options["client"], options["port"], options["interval"]
    if every and not every >= _SHORTEST_INTERVAL:
        raise click.UsageError(
            f"--interval: {every:g} is neither 0 nor {_SHORTEST_INTERVAL} or more"
        )
    settings = Settings(
        options["time"], options["parallel"], options["reverse"], canonical(options["congestion"])
    )
    # The controller is the sender's; who only receives needs none.
    controller = "udt" if settings.reverse else settings.controller

    def dial(other: int | None) -> Connection:
        return open_connection(host, other or port, controller=controller, **secret)

    if not as_json:
        click.echo(f"Connecting to host {host}, port {port}")
    try:
        document = measure(
            dial,
            settings,
            every=every,
            tell=None if as_json else click.echo,
        )
    except (PerfError, OSError) as problem:
        where = "" if isinstance(problem, NoConnection) else f"{host}, port {port}: "
        why = where + explain(problem)
        if as_json:
            print_json({"error": why})
        fail(why)
    if as_json:
        print_json(document)
