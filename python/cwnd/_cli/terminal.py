"""Output of text on standard output and standard error.

All text of the commands goes through `echo`, `echo_json` and `say`, and all tables through the
console of `cwnd._cli.tables`: names in files, messages of peers and arguments may contain control
characters, which a terminal obeys.
"""

from __future__ import annotations

import json

import click

from cwnd._base.printable import printable


def echo(*lines: str, err: bool = False) -> None:
    """Print each line as one line: a line break in it is escaped."""
    click.echo("\n".join(map(printable, lines)), err=err)  # noqa: TID251


def echo_json(text: str) -> None:
    """Print JSON; characters that are not printable are escaped as in JSON."""
    click.echo("\n".join(printable(line, json.dumps) for line in text.split("\n")))  # noqa: TID251


def say(message: str) -> None:
    """Print a message on one line of standard error; runs of white space become a space."""
    echo(f"cwnd: {' '.join(message.split())}", err=True)
