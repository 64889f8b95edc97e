"""The text of a new scenario file: a valid scenario whose comments list the keys of its tables."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from cwnd._runs.scenario_keys import key_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd._runs.scenario_keys import Key, KeyTable

_TABLES = {
    "scenario": {"duration": '"60s"', "warmup": '"15s"'},
    "dumbbell": {"rate": '"20mbit"', "delay": '"20ms"', "queue": '"1bdp"'},
    "tcp": {"conventions": '"linux"'},
    "flow": {"controller": '"cubic"', "count": "2", "start": '"0s..2s"'},
}
"""Tables of the new file, with the values of their keys in TOML."""

_SECOND_FLOW = {"controller": '"reno"', "count": "2", "start": '"0s..2s"'}


def scenario_template() -> str:
    """Return the text of a new scenario file."""
    tables = {table.name: table for table in key_tables()}
    lines = [
        *_comment("A scenario: one network and its traffic. Keys in comments are optional."),
        *_comment("`cwnd keys TABLE` lists the keys of a table, docs/scenario.md describes them."),
    ]
    for name, values in _TABLES.items():
        lines += ["", *_table(tables[name], values)]
    lines += ["", "[[flow]]", *(f"{key} = {value}" for key, value in _SECOND_FLOW.items())]
    others = [key for key in tables["scenario"].keys if key.type.startswith("table")]
    lines += ["", *_comment("Other tables:")]
    for key in others:
        if key.name not in _TABLES:
            lines += _comment(f"{key.name}: {key.meaning}", further="    ")
    return "\n".join(lines) + "\n"


def _table(table: KeyTable, values: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a table: keys with values, then the others as comments."""
    whole = table.name == "scenario"
    if not whole:
        yield from _comment(table.meaning)
        yield f"[[{table.name}]]" if table.name == "flow" else f"[{table.name}]"
    keys = {key.name: key for key in table.keys}
    for name, value in values.items():
        yield from _comment(keys[name].meaning)
        yield f"{name} = {value}"
    for name, key in keys.items():
        if name not in values and not (whole and key.type.startswith("table")):
            yield from _comment(f"{name} ({_kind(key)}): {key.meaning}", further="    ")


def _kind(key: Key) -> str:
    """Return the values of a key, and its default if it is a constant."""
    return f"{key.type}, {key.default} by default" if key.default else key.type


def _comment(text: str, further: str = "") -> list[str]:
    """Return the lines of a comment; lines after the first one begin with ``further``."""
    return textwrap.wrap(
        text, 100, initial_indent="# ", subsequent_indent=f"# {further}", break_on_hyphens=False
    )
