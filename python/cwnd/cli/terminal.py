"""Output of text on standard output and standard error.

All text of the commands goes through `echo`, `echo_json` and `say`, and all tables through the
console of `cwnd.cli.tables`: names in files, messages of peers and arguments may contain control
characters, which a terminal obeys.
"""

from __future__ import annotations

import json

import click

from cwnd.printable import printable


def echo(*lines: str, err: bool = False) -> None:
    """Print lines.

    Parameters
    ----------
    *lines
        The lines; one with a line break stays one line, with the break escaped.
    err
        Whether to print on standard error.
    """
    click.echo("\n".join(map(printable, lines)), err=err)  # noqa: TID251


def echo_json(text: str) -> None:
    """Print JSON; characters that are not printable are escaped as in JSON.

    Parameters
    ----------
    text
        The document.
    """
    click.echo("\n".join(printable(line, json.dumps) for line in text.split("\n")))  # noqa: TID251


def say(message: str) -> None:
    """Print a message on one line of standard error.

    Parameters
    ----------
    message
        The message; runs of white space become a space.
    """
    echo(f"cwnd: {' '.join(message.split())}", err=True)
