"""The command `new-controller`: the files of a new controller in Rust, from a template."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cwnd._cli import shared
from cwnd._cli.terminal import echo

if TYPE_CHECKING:
    from cwnd._controllers.new_controller import Kind


@click.command("new-controller")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(["window", "rate", "whole"]),
    default="window",
    help="A law for the congestion window, a law for the sending rate, or a whole controller.",
)
@click.option("--law", is_flag=True, help="Write NAME.law, a law in a file, instead of Rust.")
def new_controller(name: str, kind: Kind, law: bool) -> None:  # noqa: FBT001
    """Add a controller NAME in Rust to the checkout of cwnd around the working directory.

    The new files implement plain AIMD with tests and a registry entry; edit the code, its card and
    the entry. See CONTRIBUTING.md. With --law, write a law as docs/laws.md describes it.
    """
    from cwnd._controllers.new_controller import write_controller, write_law

    if law:
        with shared.positional():
            made = write_law(name, kind, Path.cwd())
        echo(f"written: {made.name}")
        echo(f"next: edit it, then cwnd law check {made.name}")
        return
    with shared.positional():
        written = [os.path.relpath(path) for path in write_controller(name, kind, Path.cwd())]
    echo("written:")
    for path in written:
        echo(f"  {path}")
    echo("next:")
    echo(f"  edit {written[0]}, and the entry at the end of {written[-1]}")
    echo("  cargo test -p cwnd")
    echo(f"  make build && .venv/bin/cwnd compare {name} --report {name}.html")
