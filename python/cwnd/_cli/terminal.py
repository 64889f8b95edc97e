"""Output of text on standard output and standard error.

All text of the commands goes through `echo`, `echo_json` and `say`, and all tables through the
console of `cwnd._cli.tables`: names in files, messages of peers and arguments may contain control
characters, which a terminal obeys.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from cwnd._base.printable import printable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def echo(*lines: str, err: bool = False) -> None:
    """Print each line as one line: a line break in it is escaped."""
    click.echo("\n".join(map(printable, lines)), err=err)  # noqa: TID251


def echo_json(text: str) -> None:
    """Print JSON; characters that are not printable are escaped as in JSON."""
    click.echo("\n".join(printable(line, json.dumps) for line in text.split("\n")))  # noqa: TID251


def say(message: str) -> None:
    """Print a message on one line of standard error; runs of white space become a space."""
    echo(f"cwnd: {' '.join(message.split())}", err=True)


class _Output:
    """Standard output, which for the code of controllers is standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        # Commands without a controller in Python do not import the module.
        controller = sys.modules.get("cwnd.controller")
        own = controller is not None and controller.in_controller()
        return getattr(sys.stderr if own else self._stream, name)


def results_only() -> AbstractContextManager[object]:
    """Keep what controllers in Python write out of standard output, which has the results."""
    return redirect_stdout(cast("TextIO", _Output(sys.stdout)))
