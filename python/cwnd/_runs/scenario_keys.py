"""Assignments to values of a scenario, as in ``--set PATH=VALUE``."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from cwnd import _native
from cwnd._base import toml as tomllib
from cwnd.errors import ArgumentError
from cwnd.units import Kind, check_unit, tc_rate, tc_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cwnd._base.records import JsonObject

_KINDS: dict[str, Kind] = {
    "BitRate": "rate",
    "Span": "time",
    "SpanRange": "time",
    "Timestamps": "time",
    "Bytes": "size",
    "QueueSize": "limit",
    "Threshold": "threshold",
}
"""Definitions of the JSON Schema whose values have a unit."""

_TOML = re.compile(
    r"true|false|[+-]?[0-9][0-9_]*(\.[0-9_]+)?([eE][+-]?[0-9]+)?|[\[{\"'].*", re.DOTALL
)
"""Text that is read as TOML: booleans, numbers, lists, tables and quoted strings."""


def read_values(
    texts: Iterable[str],
    *,
    option: str = "set",
    table: str = "",
    example: str = "PATH=VALUE, such as dumbbell.rate=20mbit",
) -> dict[str, object]:
    """Parse ``PATH=VALUE`` arguments of ``--set``, for `Scenario.with_values`.

    Booleans, numbers, lists, inline tables and quoted strings are read as TOML; any other value is
    a string. Errors name ``option`` and show ``example``; the paths begin at ``table``.

    Examples
    --------
    >>> read_values(["dumbbell.rate=20mbit", "flow[0].count=8", "tcp={ecn=true}"])
    {'dumbbell.rate': '20mbit', 'flow[0].count': 8, 'tcp': {'ecn': True}}
    >>> read_values(["dumbbell.rate=20"])
    Traceback (most recent call last):
    cwnd.errors.ArgumentError: set: dumbbell.rate: a rate needs a unit, such as 15mbit
    """
    values = {}
    for text in texts:
        path, equals, value = (part.strip() for part in text.partition("="))
        if not (path and equals and value):
            raise ArgumentError(option, f"{text!r} is not {example}")
        values[path] = _read(option, text, value)
    _convert_all(values, lambda kind, value: check_unit(kind, str(value)), option, table)
    return values


def check_values(values: Mapping[str, object]) -> None:
    """Reject text that lacks the unit of a rate, time or size; numbers are in SI units."""
    _convert_all(values, check_unit)


def write_values(values: Mapping[str, object]) -> list[str]:
    """Format values as words of a command line.

    Examples
    --------
    >>> write_values({"dumbbell.rate": 2e7, "dumbbell.queue": {"kind": "red", "limit": 40}})
    ['--set', 'dumbbell.rate=20mbit', '--set', 'dumbbell.queue={kind = "red", limit = "40p"}']
    """
    words = []
    for path, value in _convert_all(values, _with_unit).items():
        text = value if isinstance(value, str) and not _TOML.fullmatch(value) else _write(value)
        words += ["--set", f"{path}={text}"]
    return words


def _read(option: str, assignment: str, text: str) -> object:
    """Parse a value."""
    if not _TOML.fullmatch(text):
        return text
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError as problem:
        raise ArgumentError(option, f"{assignment!r}: {problem}") from None
    if len(document) > 1:
        raise ArgumentError(option, f"{assignment!r} has more than one value")
    value = document["value"]
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        refused = f"{assignment!r}: a scenario cannot contain a date, infinity or NaN"
        raise ArgumentError(option, refused) from None
    return value


def _write(value: Any) -> str:  # noqa: ANN401
    """Format a value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_write(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_write, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _with_unit(kind: Kind, value: Any) -> object:  # noqa: ANN401
    """Format a number with its unit; text has one already."""
    if isinstance(value, str) or not value:
        return value
    if kind in ("rate", "time"):
        return tc_rate(value) if kind == "rate" else tc_time(value)
    return f"{value}{'b' if kind == 'size' else 'p'}"


def _convert_all(
    values: Mapping[str, object],
    convert: Callable[[Kind, object], object],
    option: str = "set",
    table: str = "",
) -> dict[str, object]:
    """Convert the rates, times and sizes among the values."""
    converted = {}
    for path, value in values.items():
        try:
            converted[path] = _convert(_find_schema(table + path), value, convert)
        except ValueError as mistake:
            raise ArgumentError(option, f"{path}: {mistake}") from None
    return converted


def _convert(node: JsonObject, value: Any, convert: Callable[[Kind, object], object]) -> Any:  # noqa: ANN401
    """Convert the rates, times and sizes in a value that the schema ``node`` describes."""
    if isinstance(value, dict):
        return {
            key: _convert(_child_schema(node, key), item, convert) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_convert(_child_schema(node, 0), item, convert) for item in value]
    kinds = [_KINDS[name] for name, _ in _definitions(node) if name in _KINDS]
    return convert(kinds[0], value) if kinds and not isinstance(value, bool) else value


def _find_schema(path: str) -> JsonObject:
    """Return the schema of the value at a path; empty if there is none."""
    node = schema()
    for key, number in re.findall(r"([^.\[\]]+)|\[([0-9]+)\]", path):
        node = _child_schema(node, key or int(number))
    return node


def _child_schema(node: JsonObject, key: str | int) -> JsonObject:
    """Return the schema of a key or of a list item; empty if it has none."""
    for _, definition in _definitions(node):
        if isinstance(key, int) and "items" in definition:
            return dict(definition["items"])
        if key in definition.get("properties", {}):
            return dict(definition["properties"][key])
    return {}


def _definitions(node: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield the definitions that apply to a value, with their names."""
    yield "", node
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        definition = schema()["$defs"][name]
        yield name, definition
        yield from _definitions(definition)
    for alternative in node.get("anyOf", ()):
        yield from _definitions(alternative)


def link_keys() -> list[str]:
    """Return the keys of the table ``[[link]]`` of a scenario."""
    return list(schema()["$defs"]["Link"]["properties"])


@cache
def schema() -> JsonObject:
    """Return the JSON Schema of scenario files."""
    document: JsonObject = json.loads(_native.schema())
    return document
