"""Defaults of options from environment variables and from a configuration file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwnd._cli.values import CONTROLLER, REPEAT, SPEC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PREFIX = "CWND"
VARIABLE = f"{PREFIX}_CONFIG"

_MAX_SIZE = 1 << 20
"""Largest size of a configuration file in bytes; a device file has no end."""


def default_path() -> Path:
    """Return the configuration file that is used without --config."""
    # A user without a home folder has no such file.
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    return Path(home) / "cwnd" / "config.toml"


def name_variables(command: click.Command, prefix: str = PREFIX) -> None:
    """Assign an environment variable to each option of a command and of its subcommands.

    ``prefix`` has the names of the commands down to this one.
    """
    for key, option in _options(command):
        option.envvar = f"{prefix}_{key}".upper().replace("-", "_")
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            name_variables(inner, f"{prefix}_{name}")


def read_config(root: click.Command, path: str | None) -> dict[str, Any]:
    """Read the ``default_map`` of a Click context from a configuration file.

    Without ``path`` the default file is read, which need not exist.
    """
    chosen = default_path() if path is None else Path(path)
    try:
        with chosen.open("rb") as file:
            data = file.read(_MAX_SIZE + 1)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        if path is None:
            return {}
        raise click.UsageError(f"--config: there is no file {chosen}") from None
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise click.UsageError(f"cannot read {chosen}: {reason}") from None
    if len(data) > _MAX_SIZE:
        raise click.UsageError(
            f"{chosen} has more than {_MAX_SIZE} bytes and does not seem to be a configuration file"
        )
    return _read_table(root, _parse(text, chosen), chosen, ())


def _parse(text: str, path: Path) -> dict[str, Any]:
    """Parse TOML."""
    from cwnd._base import toml as tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise click.UsageError(f"{path}: {problem}") from None


def _read_table(
    command: click.Command, table: Mapping[str, Any], path: Path, above: tuple[str, ...]
) -> dict[str, Any]:
    """Convert the table of a command to defaults of its options."""
    options = dict(_options(command))
    commands = dict(_commands(command)) if table else {}
    found: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{path}: {'.'.join((*above, key))}"
        if key in commands:
            if not isinstance(value, dict):
                raise click.UsageError(f"{where} is a command and needs a table: [{key}]")
            found[key] = _read_table(commands[key], value, path, (*above, key))
        elif key in options and above:
            option = options[key]
            found[str(option.name)] = _read_value(option, value, where, path.parent)
        else:
            raise click.UsageError(f"{where}: {_suggest_key(key, options, commands, above)}")
    return found


def _suggest_key(
    key: str,
    options: Mapping[str, click.Option],
    commands: Mapping[str, click.Command],
    above: tuple[str, ...],
) -> str:
    """Suggest valid keys instead of an unknown one."""
    import difflib

    known = [*commands, *(options if above else ())]
    close = difflib.get_close_matches(key.replace("_", "-"), known, 1)
    kind = "option" if above and not commands else "command"
    hint = f"did you mean {close[0]}?" if close else f"valid are {', '.join(sorted(known))}"
    return f"no such {kind}; {hint}"


def _read_value(option: click.Option, value: object, where: str, home: Path) -> object:
    """Validate a value as on the command line.

    The file of a controller is relative to ``home``. A command reads it that uses the value.
    """
    from cwnd.controller import move_specification, names_file

    values = value if option.multiple and isinstance(value, list) else [value]
    if option.multiple is not isinstance(value, list):
        raise click.UsageError(f"{where} needs {'a list' if option.multiple else 'one value'}")
    wanted, name = _accepted_types(option)
    for one in values:
        if not isinstance(one, wanted) or (isinstance(one, bool) and bool not in wanted):
            raise click.UsageError(f"{where} needs {name}, not {one!r}")
        if option.type in (CONTROLLER, SPEC) and names_file(str(one)):
            return move_specification(_expand_home(str(one), where), home)
        if not option.is_flag:
            try:
                option.type.convert(one, option, None)
            except click.BadParameter as problem:
                raise click.UsageError(f"{where}: {problem.message}") from None
    if not isinstance(option.type, click.Path):
        return value
    paths = [_expand_home(str(one), where) for one in values]
    return paths if option.multiple else paths[0]


def _expand_home(path: str, where: str) -> str:
    """Replace `~` at the beginning of a path, as a shell does on the command line."""
    expanded = os.path.expanduser(path)  # noqa: PTH111
    if expanded.startswith("~"):
        raise click.UsageError(f"{where}: {path} is in the home folder of an unknown user")
    return expanded


def _accepted_types(option: click.Option) -> tuple[tuple[type, ...], str]:
    """Return the TOML types that an option accepts, and their description."""
    if option.is_flag:
        return (bool,), "true or false"
    if option.type is REPEAT:
        return (int, str), 'a whole number or "auto"'
    if isinstance(option.type, click.types.IntParamType):
        return (int,), "a whole number"
    if isinstance(option.type, click.types.FloatParamType):
        return (int, float), "a number"
    return (str,), "a text in quotes"


def _options(command: click.Command) -> Iterator[tuple[str, click.Option]]:
    """Return the options of a command by their long names."""
    for option in command.params:
        if isinstance(option, click.Option) and option.expose_value and not option.hidden:
            yield max(option.opts, key=len).lstrip("-"), option


def _commands(command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Return the subcommands of a group, including those created on demand."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield name, inner
