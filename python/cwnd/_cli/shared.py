"""Options that several commands share, each declared once; a command may replace an attribute."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cwnd._cli.values import ASSIGNMENT, BACKEND, CONTROLLER, JUMBO, MTU, REPEAT, TCP_CONVENTIONS
from cwnd._runs.conventions import CONVENTIONS, NAMES
from cwnd._runs.defaults import BACKEND as DEFAULT_BACKEND
from cwnd._runs.defaults import MTU as DEFAULT_MTU
from cwnd._runs.repetition import targets
from cwnd._runs.transport_limits import DEFAULT_CONTROLLER
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.decorators import FC


def together(*options: Callable[[Any], Any]) -> Callable[[FC], FC]:
    """Combine decorators of options; the help lists the options in this order."""

    def add(command: FC) -> FC:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def is_given(name: str) -> bool:
    """Test whether a parameter of the current command is on the command line.

    Values of environment variables and of the configuration file apply to all uses of a command.
    """
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def refuse(where: str, *names: str) -> None:
    """Refuse arguments of the command line that have no effect there, such as "for a list"."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in names and is_given(name) and context.params[name] is not None:
            is_option = isinstance(parameter, click.Option)
            shown = max(parameter.opts, key=len) if is_option else parameter.make_metavar(context)
            raise click.UsageError(f"{shown.strip('[]')}: not {where}")


def refuse_others(where: str, *names: str) -> None:
    """Refuse all arguments of the command line but some and --json."""
    every = {str(parameter.name) for parameter in click.get_current_context().command.params}
    refuse(where, *every.difference(names, {"as_json"}))


@contextmanager
def positional() -> Iterator[None]:
    """Leave the name of a positional argument out of its error."""
    try:
        yield
    except ArgumentError as mistake:
        raise click.UsageError(mistake.problem) from None


def repeat(first: int, most: int, text: str) -> Callable[[FC], FC]:
    """Declare --repeat; the help has the numbers of repeats of ``auto`` in the place of ``{}``."""
    *some, last = targets(first, most)
    numbers = f"{', '.join(map(str, some))} or {last}"
    return click.option(
        "--repeat", default=first, type=REPEAT, metavar="N|auto", help=text.format(numbers)
    )


json = partial(click.option, "--json", "as_json", is_flag=True, help="Print one JSON document.")
budget = partial(
    click.option,
    "--budget",
    metavar="BUDGET",
    help="Wall time, or a number of runs such as 1000runs, with the same findings everywhere.",
)
json_lines = partial(json, help="Print events as JSON lines.")
report = partial(
    click.option, "--report", type=click.Path(), help="Write a self-contained HTML page."
)
plot = partial(
    click.option, "--plot", type=click.Path(), help="Write a plot: FILE.pdf, .png or .svg."
)
column = partial(
    click.option,
    "--column",
    is_flag=True,
    help="Size the plot for a column of a journal, 3.5 inches wide.",
)
outputs = together(json(), report(), plot(), column())
trace = partial(
    click.option,
    "--trace",
    type=click.Path(),
    metavar="DIR",
    help="Write tables to DIR as Parquet, or as CSV if its name ends in .csv.",
)
out = partial(click.option, "--out", type=click.Path())
dry_run = partial(click.option, "--dry-run", is_flag=True)

values = partial(
    click.option,
    "--set",
    "assignments",
    metavar="PATH=VALUE",
    type=ASSIGNMENT,
    multiple=True,
    help="Replace a value, such as dumbbell.rate=20mbit or flow[0].count=8; may be repeated.",
)
backend = partial(
    click.option,
    "--on",
    default=DEFAULT_BACKEND,
    type=BACKEND,
    help="Backend: sim, or in real time over an emulated network: udt, linux (kernel TCP) or quic.",
)
conventions = partial(
    click.option,
    "--conventions",
    default=CONVENTIONS,
    metavar="|".join(NAMES),
    type=TCP_CONVENTIONS,
    help="Conventions of TCP in the simulator, as in [tcp] of a scenario file.",
)
seed = partial(click.option, "--seed", type=int)

controller = partial(click.option, metavar="SPEC", default=DEFAULT_CONTROLLER, type=CONTROLLER)
port = partial(click.option, type=click.IntRange(0, 65535))
bind = partial(click.option, metavar="ADDRESS")
mtu = partial(
    click.option,
    "--mtu",
    metavar="SIZE|auto",
    default=f"{DEFAULT_MTU}",
    type=MTU,
    help="Largest packet in bytes, headers included; the path is probed for what it carries. auto: "
    f"up to {JUMBO}.",
)
key_file = partial(click.option, type=click.Path(), metavar="FILE")
keys = together(
    key_file("--key", help="Secret shared by both sides."),
    key_file("--pair", help="Private key of this side; see --peers."),
    key_file("--peers", help="Public keys of the authorised peers."),
)
insecure = partial(click.option, "--insecure", is_flag=True)
