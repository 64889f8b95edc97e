"""The command `emulate`: a command behind an emulated link."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from cwnd._cli.outputs import check_file
from cwnd._cli.terminal import say
from cwnd._cli.values import LINK_ASSIGNMENT, MAX_MTU, MIN_MTU, QUEUE
from cwnd._runs.defaults import MTU, SEED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from cwnd._native import Emulation

_RIGHTS = (
    "an emulated link needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN) or a user namespace: "
    "unshare --user --map-root-user --net cwnd emulate ..."
)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--rate", show_default="infinite", help="Rate in each direction.")
@click.option("--delay", show_default="0ms", help="One-way propagation delay.")
@click.option(
    "--queue",
    show_default="droptail",
    metavar="SIZE|KIND|red-ecn|{...}",
    type=QUEUE,
    help="Queue at each end, as in a scenario file: 15p, 64kb, 1.5bdp, red, fq_codel, or a table.",
)
@click.option("--loss", show_default="0", help="Probability of random loss.")
@click.option(
    "--set",
    "more",
    metavar="KEY=VALUE",
    type=LINK_ASSIGNMENT,
    multiple=True,
    help="Another key of a scenario's [[link]], such as jitter=5ms; may be repeated.",
)
@click.option(
    "--mtu",
    default=MTU,
    type=click.IntRange(MIN_MTU, MAX_MTU),
    help="Largest packet in bytes.",
)
@click.option(
    "--up",
    metavar="KEY=VALUE,...",
    type=LINK_ASSIGNMENT,
    help="Values for the direction from COMMAND only, such as trace=FILE.",
)
@click.option(
    "--down",
    metavar="KEY=VALUE,...",
    type=LINK_ASSIGNMENT,
    help="Values for the direction to COMMAND only, such as trace=FILE.",
)
@click.option(
    "--seed",
    default=SEED,
    type=click.IntRange(0, 2**64 - 1),
    help="Seed of random loss and of RED.",
)
@click.option("--record", type=click.Path(), help="Write the fate of each packet as CSV.")
@click.option("--result", type=click.Path(), help="Write the measurements as JSON.")
def emulate(
    command: tuple[str, ...],
    more: tuple[str, ...],
    up: str | None,
    down: str | None,
    mtu: int,
    seed: int,
    record: str | None,
    result: str | None,
    **link: str | None,
) -> None:
    """Run COMMAND in a network namespace whose only route is an emulated link.

    The other end of the link is in the caller's network namespace; its address is in COMMAND's
    variable CWND_PEER. Links can be nested; CWND_BASE is then the outermost end. The exit status is
    COMMAND's, and all its processes end with it. The queues are the simulator's.
    """
    import shutil

    from cwnd.emulation import read_links, summarise, to_json

    shared = {key: text for key, text in link.items() if text is not None}
    scenario = read_links(shared, more=more, up=up, down=down, mtu=mtu)
    program = shutil.which(command[0])
    if program is None:
        raise click.UsageError(f"no such command: {command[0]}")
    for option, path in (("record", record), ("result", result)):
        if path is not None:
            check_file(option, Path(path))
    emulation = _open(scenario, seed, record, mtu)
    with _forward_signals(emulation):
        try:
            emulation.start(program, list(command[1:]))
        except OSError as problem:
            raise click.UsageError(f"cannot run {command[0]}: {problem.strerror}") from None
        status = emulation.wait()
        measured = emulation.stop(series=result is not None)
    for line in summarise(measured):
        say(line)
    if result is not None:
        from cwnd._base.files import write_text
        from cwnd._runs.result import dumps

        write_text(result, dumps(to_json(measured, seed)) + "\n")
    click.get_current_context().exit(status)


def _open(scenario: str, seed: int, record: str | None, mtu: int) -> Emulation:
    """Create the link, or raise an error that names the missing capability."""
    from cwnd._native import Emulation

    try:
        return Emulation(scenario, seed, record, mtu)
    except OSError as problem:
        _explain(problem)


def _explain(problem: OSError) -> NoReturn:
    if problem.errno in {errno.EPERM, errno.EACCES}:
        raise click.UsageError(_RIGHTS) from None
    if problem.errno in {errno.ENOENT, errno.ENODEV} and not Path("/dev/net/tun").exists():
        raise click.UsageError("an emulated link needs /dev/net/tun") from None
    reason = problem.strerror or str(problem)
    raise click.UsageError(f"cannot create an emulated link: {reason}") from None


@contextmanager
def _forward_signals(emulation: Emulation) -> Iterator[None]:
    """Forward signals to the command."""
    keyboard = signal.SIGINT, signal.SIGQUIT
    others = signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2

    def pass_on(number: int, _: FrameType | None) -> None:
        # Signals from the keyboard reach the command directly.
        if number not in keyboard or not _in_foreground():
            with suppress(OSError, ValueError):
                emulation.signal(number)

    before = {number: signal.signal(number, pass_on) for number in (*keyboard, *others)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Test whether this process is in the terminal's foreground process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)
