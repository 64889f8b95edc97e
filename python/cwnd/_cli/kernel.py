"""The command `kernel`: controllers of the kernel's TCP."""

from __future__ import annotations

import math
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cwnd._cli import shared
from cwnd._cli.outputs import check_directory, print_json
from cwnd._cli.terminal import echo
from cwnd._cli.values import KERNEL_CONTROLLER
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd._base.records import JsonObject, KernelFlowRecord
    from cwnd._runs.kernel_sockets import KernelSocket
    from cwnd.kernel import Instance, Trace

_SLICE = 0.1
"""Seconds for which one read of a trace waits."""


@click.group()
def kernel() -> None:
    """Run controllers in the Linux kernel's TCP, without a kernel module or a reboot.

    Needs root, and Linux 6.4 or later with BTF type information: see `cwnd kernel check`.
    """


@kernel.command()
@click.argument("controller", metavar="SPEC", type=KERNEL_CONTROLLER)
@click.option("--name", help="Its name in the kernel: up to 15 characters; cwnd_... by default.")
@click.option("--default", is_flag=True, help="Make it the default controller until unloaded.")
@shared.json()
def load(controller: str, name: str | None, default: bool, as_json: bool) -> None:  # noqa: FBT001
    """Load the controller SPEC, such as simd or mine.law. It stays loaded until it is unloaded.

    Connections select it by name: iperf3 -C NAME, ip route ... congctl NAME, or
    setsockopt(TCP_CONGESTION).
    """
    from cwnd.kernel import load as load_controller

    instance = load_controller(controller, name=name, default=default)
    if as_json:
        print_json(instance.to_json())
    else:
        echo(f"{instance.name}: {_describe(instance)}")


@kernel.command()
@click.argument("what", metavar="NAME|SPEC", type=KERNEL_CONTROLLER)
@shared.json()
def unload(what: str, as_json: bool) -> None:  # noqa: FBT001
    """Unload a controller. Connections that use it keep it until they end."""
    from cwnd.kernel import unload as unload_controller

    instance = unload_controller(what)
    if as_json:
        print_json(instance.to_json())
    else:
        echo(f"{instance.name}: unloaded")


@kernel.command(name="list")
@shared.json()
def list_loaded(as_json: bool) -> None:  # noqa: FBT001
    """List the loaded controllers."""
    from cwnd.kernel import listing

    instances = listing()
    if as_json:
        print_json({"controllers": [instance.to_json() for instance in instances]})
        return
    for instance in instances:
        echo(f"{instance.name}: {_describe(instance)}")
    if not instances:
        echo("no controllers are loaded", err=True)


@kernel.command()
@shared.json()
def status(as_json: bool) -> None:  # noqa: FBT001
    """Show the connections of each controller in this network namespace."""
    from cwnd._runs.kernel_sockets import kernel_sockets
    from cwnd.kernel import listing

    instances, found = listing(), kernel_sockets()
    used = {one.name: [it for it in found if it.controller == one.name] for one in instances}
    if as_json:
        print_json(
            {
                "controllers": [
                    {**one.to_json(), "connections": [it.to_json() for it in used[one.name]]}
                    for one in instances
                ]
            }
        )
        return
    for instance in instances:
        users = used[instance.name]
        echo(f"{instance.name}: {_describe(instance)}, {counted(len(users), 'connection')}")
        for connection in users:
            echo(f"  {_describe_connection(connection)}")
    if not instances:
        echo("no controllers are loaded", err=True)


@kernel.command()
@click.argument("what", metavar="NAME|SPEC|PID", type=KERNEL_CONTROLLER)
@click.option("--time", help="Length of the trace, such as 10s; until interrupted by default.")
@click.option(
    "--record",
    type=click.Path(),
    metavar="DIRECTORY",
    help="Write the record of each connection to a file there, instead of printing it.",
)
@shared.json()
def trace(what: str, time: str | None, record: str | None, as_json: bool) -> None:  # noqa: FBT001
    """Print every window change live: of all connections of a controller, or of a process.

    Each line has the number of a connection and a line of its record, in the simulator's format:
    time in ns, event, and after a bar the window in packets and the pacing rate. At the end each
    connection is summarised, with the deviation of its windows from those of the simulator's law.
    """
    from cwnd._base.files import write_text
    from cwnd.errors import read_argument
    from cwnd.kernel import Trace, listing
    from cwnd.units import parse_time

    limit = math.inf if time is None else read_argument("time", parse_time, time)
    is_process = what.isdecimal() and what not in {instance.name for instance in listing()}
    what, ports = _find_process(int(what)) if is_process else (what, None)
    listener = Trace(what)
    if record is not None:
        check_directory("record", Path(record))
    lines: dict[int, list[str]] = {}
    for number, line in _read_lines(listener, clock.monotonic() + limit, ports):
        if record is not None:
            lines.setdefault(number, []).append(f"{line}\n")
        elif not as_json:
            echo(f"{number} {line}")
    for number, record_lines in lines.items():
        write_text(Path(str(record)) / f"{number}.txt", "".join(record_lines))
    flows = [it for it in listener.flows() if ports is None or it["port"] in ports]
    if as_json:
        print_json({"flows": [_plain(flow) for flow in flows], "missed": listener.missed()})
        return
    for flow in flows:
        echo(_summary(flow), err=record is None)
    if listener.missed():
        echo(f"{listener.missed()} events were lost: they came too fast", err=True)


@kernel.command()
@shared.json()
def check(as_json: bool) -> None:  # noqa: FBT001
    """Check the kernel's features, and load each law briefly."""
    from cwnd.kernel import check as look

    findings = look()
    if as_json:
        print_json({"findings": [finding.to_json() for finding in findings]})
        return
    for finding in findings:
        echo(f"{'yes' if finding.fine else 'no ':3}  {finding.name}: {finding.detail}")


def _describe(instance: Instance) -> str:
    """Describe a controller."""
    law = "" if instance.hash is None else f", hash {instance.hash}"
    return instance.controller + law + (", the default" if instance.default else "")


def _describe_connection(connection: KernelSocket) -> str:
    """Describe a connection."""
    from cwnd.metrics.catalog import number

    (here, port), (there, peer) = connection.local, connection.peer
    return (
        f"{here}:{port} -> {there}:{peer}  window {connection.window} packets, "
        f"rtt {number(connection.rtt_s, 3, 1e3)} ms, {connection.retransmissions} retransmissions"
    )


def _find_process(pid: int) -> tuple[str, set[int]]:
    """Find the controller of a process's connections, and their ports."""
    from cwnd._runs.kernel_sockets import kernel_sockets, sockets_of
    from cwnd.errors import KernelError
    from cwnd.kernel import listing

    sockets, names = sockets_of(pid), {instance.name for instance in listing()}
    own = [it for it in kernel_sockets() if it.inode in sockets and it.controller in names]
    used = sorted({it.controller for it in own})
    if not used:
        raise KernelError(f"process {pid} has no connection here with a cwnd controller")
    if len(used) > 1:
        raise KernelError(f"process {pid} uses several controllers: name one of {', '.join(used)}")
    return used[0], {it.local[1] for it in own}


def _read_lines(listener: Trace, until: float, ports: set[int] | None) -> Iterator[tuple[int, str]]:
    """Yield lines of the trace until a time, or until interrupted."""
    try:
        while clock.monotonic() < until:
            for number, port, line in listener.read(_SLICE):
                if ports is None or port in ports:
                    yield number, line
    except KeyboardInterrupt:
        return


def _plain(flow: KernelFlowRecord) -> JsonObject:
    """Return a connection as plain data."""
    from cwnd._runs.result import jsonable

    inner = {
        part: {name: _list(series) for name, series in flow[part].items()}
        for part in ("cuts", "gauges")
    }
    # The trace has no acknowledgements.
    whole = {name: _list(value) for name, value in flow.items() if name != "acks"}
    return jsonable(whole | inner)


def _list(value: object) -> object:
    """Convert an array to a list; return other values unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def _summary(flow: KernelFlowRecord) -> str:
    """Summarise a connection."""
    from cwnd.metrics.catalog import number

    text = (
        f"{flow['name']}: {flow['packets_sent']} packets, "
        f"{flow['retransmissions']} retransmissions, "
        f"{len(flow['cuts']['time'])} cuts, mean window {number(flow['mean_window'], 1)} packets, "
        f"mean rtt {number(flow['mean_rtt_s'], 3, 1e3)} ms"
    )
    if flow["agreement"] is None:
        return f"{text}; it began before the trace"
    steps, _, worst = flow["agreement"]
    deviation = f"within {worst:.1e} of the window" if worst else "equal to the bit"
    return f"{text}; {steps} steps of the law replayed, {deviation}"
