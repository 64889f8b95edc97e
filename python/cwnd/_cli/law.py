"""The command `law`: laws in files."""

from __future__ import annotations

from pathlib import Path

import click

from cwnd._cli import shared
from cwnd._cli.outputs import FAILED, print_json
from cwnd._cli.terminal import echo, say


@click.group(name="law")
def law() -> None:
    """Check and format laws in files, which docs/laws.md describes.

    A file such as mine.law is a controller: cwnd compare mine.law reno.
    """


@law.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@shared.json()
def check(files: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001
    """Check the law in each FILE: the exit status is 1 if one has an error."""
    from cwnd import _native
    from cwnd._base.law_files import read_law_text

    with shared.positional():
        checked = {file: _native.check_law(file, read_law_text(file)) for file in files}
    if as_json:
        print_json({"files": [{"file": file, **found} for file, (found, _) in checked.items()]})
    else:
        for file, (found, shown) in checked.items():
            for line in "\n".join(shown).splitlines():
                echo(line, err=True)
            if (described := found["law"]) is not None:
                hooks = ", ".join(
                    f"{each['name']} {each['cost_ns']} ns" for each in described["hooks"]
                )
                echo(f"{file}: {described['title']}, a law for the {described['kind']}")
                echo(f"at most, as its operations are counted: {hooks}")
    if any(found["law"] is None for found, _ in checked.values()):
        click.get_current_context().exit(FAILED)


@law.command()
@click.argument("file", type=click.Path())
@click.option("--check", "only", is_flag=True, help="Do not write; status 1 if FILE would change.")
def fmt(file: str, only: bool) -> None:  # noqa: FBT001
    """Write the law in FILE in the canonical form: the same words, with other blanks."""
    from cwnd import _native
    from cwnd._base.files import write_text
    from cwnd._base.law_files import read_law_text

    with shared.positional():
        text = read_law_text(file)
        formatted = _native.format_law(file, text)
        # The text has no byte order mark, and line feeds for other ends of lines.
        if Path(file).read_bytes() == formatted.encode():
            return
    if only:
        say(f"{file} is not in the canonical form")
        click.get_current_context().exit(FAILED)
    write_text(Path(file), formatted)
