"""The commands `scenarios` and `new-scenario`: packaged files, and the start of a new one."""

from __future__ import annotations

import os

import click

from cwnd._cli import shared
from cwnd._cli.outputs import print_json
from cwnd._cli.terminal import echo
from cwnd._runs.packaged import Packaged, packaged


def _packaged_files() -> dict[str, tuple[str, Packaged]]:
    """Return the kind and the file by name."""
    scenarios = {each.name: ("scenario", each) for each in packaged("scenarios")}
    return scenarios | {each.name: ("plan", each) for each in packaged("plans")}


def _complete(_: click.Context, __: click.Parameter, begin: str) -> list[str]:
    """Complete the name of a packaged file."""
    return [name for name in _packaged_files() if name.startswith(begin)]


def _print_text(text: str) -> None:
    """Print the text of a file."""
    echo(*text.removesuffix("\n").split("\n"))


@click.command()
@click.argument("name", required=False, shell_complete=_complete)
@shared.json()
def scenarios(name: str | None, *, as_json: bool) -> None:
    """List the packaged scenario files and plans of sweeps, or print the file NAME.

    `cwnd run NAME` runs a scenario, `cwnd compare NAME.toml` compares controllers on it, and
    `cwnd sweep NAME` runs a plan. Print a file into another one to change it.
    """
    files = _packaged_files()
    if name is not None and name not in files:
        import difflib

        (near,) = difflib.get_close_matches(name, files, 1) or [""]
        hint = f", did you mean {near}?" if near else "; `cwnd scenarios` lists them"
        raise click.UsageError(f"no packaged scenario or plan is named {name}{hint}")
    chosen = files if name is None else {name: files[name]}
    rows = [
        {"name": each.name, "kind": kind, "title": each.title, "path": str(each.path)}
        for kind, each in chosen.values()
    ]
    if as_json:
        print_json({"scenarios": rows})
    elif name is not None:
        _print_text(chosen[name][1].text)
    else:
        from cwnd._cli.tables import print_packaged

        print_packaged(rows)


@click.command("new-scenario")
@click.argument("file", type=click.Path(dir_okay=False), default="scenario.toml")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def new_scenario(file: str, *, force: bool) -> None:
    """Write a scenario FILE to edit: it runs, and its comments list the keys of its tables.

    A FILE of `-` is standard output.
    """
    from cwnd._base.files import write_text
    from cwnd._runs.scenario_template import scenario_template

    if not file:
        raise click.UsageError("the name of FILE is empty")
    if file == "-":
        _print_text(scenario_template())
        return
    if not force and os.path.lexists(file):
        raise click.UsageError(f"{file} exists already: --force replaces it")
    write_text(file, scenario_template())
    echo(f"written: {file}", f"next: cwnd run {file}")
