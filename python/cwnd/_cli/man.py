"""Manual pages in man(7) format, generated from the help of the commands."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

_SYNTAX = re.compile(r"`([^`]+)`")


def pages(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Generate file name and contents of the manual pages of a command and its subcommands."""
    yield f"{name.replace(' ', '-')}.1", _page(command, name)
    if isinstance(command, click.Group):
        for inner in command.commands:
            yield from pages(command.commands[inner], f"{name} {inner}")


def _page(command: click.Command, name: str) -> str:
    """Generate the page of one command."""
    context = click.Context(command, info_name=name, show_default=True)
    first, *rest = _paragraphs(command.help or "")
    title = name.replace(" ", "-")
    lines = [
        f'.TH "{_escape(title.upper())}" 1 "" "cwnd" "cwnd manual"',
        ".SH NAME",
        f"{_escape(title)} \\- {_escape(first.split('. ')[0].rstrip('.:').replace('`', ''))}",
        ".SH SYNOPSIS",
        f".B {_escape(name)}",
        _escape(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        _markup(first),
    ]
    for paragraph in rest:
        lines += [".PP", _markup(paragraph)]
    lines += _options(command, context)
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for inner, below in command.commands.items():
            lines += [".TP", f".BR {_escape(title)}-{_escape(inner)} (1)"]
            lines.append(_markup(below.get_short_help_str(200)))
    if isinstance(command.epilog, str):
        lines += [".SH NOTES", _markup(_paragraphs(command.epilog)[0])]
    if " " in name:
        lines += [".SH SEE ALSO", f".BR {_escape(title.rpartition('-')[0])} (1)"]
    return "\n".join(lines) + "\n"


def _options(command: click.Command, context: click.Context) -> list[str]:
    """Generate the section of the options."""
    lines = [".SH OPTIONS"]
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is None or not isinstance(option, click.Option):
            continue
        term, text = record
        lines += [".TP", f"\\fB{_escape(term)}\\fR", _markup(text)]
        if isinstance(option.envvar, str):
            lines += [".br", f"Variable: {_escape(option.envvar)}"]
    return lines


def _paragraphs(text: str) -> list[str]:
    """Split a text at blank lines, and join the lines of each paragraph."""
    parts = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return [" ".join(part.split()) for part in parts]


def _markup(text: str) -> str:
    """Escape a text, with text between backquotes in bold."""
    return _SYNTAX.sub(r"\\fB\1\\fR", _escape(text))


def _escape(text: str) -> str:
    """Escape characters that roff interprets, and a dot or quote at the beginning of a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{text}" if text[:1] in {".", "'"} else text


@click.command()
@click.argument("directory", type=click.Path())
@click.pass_context
def man(context: click.Context, directory: str) -> None:
    """Write the manual pages to DIRECTORY.

    These are cwnd.1 and one page for each command, generated from the help of the commands.
    `man -l DIRECTORY/cwnd.1` shows a page; `man cwnd` finds pages in ~/.local/share/man/man1.
    """
    from cwnd._base.files import write_text
    from cwnd._cli.outputs import check_directory

    check_directory("directory", Path(directory))
    for name, text in pages(context.find_root().command, "cwnd"):
        write_text(Path(directory) / name, text)
