"""Assignments to values of a scenario, as in ``--set PATH=VALUE``."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cwnd import _native
from cwnd._base import toml as tomllib
from cwnd.errors import ArgumentError
from cwnd.units import Kind, check_unit, tc_rate, tc_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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

_NAMES = {
    "Probability": "fraction",
    "RateRange": "rate",
    "ChangedRate": "rate",
    "Timestamps": "true | time",
    "string": "text",
    "boolean": "true | false",
    "array": "list",
}
"""What other definitions and types of the JSON Schema are called in lists of keys."""

_EXPECT = (
    'Bounds of metrics, such as goodput.min.reno = ">= 4mbit": an operator (>=, <=, > or <) and a '
    "value. docs/scenario.md describes them."
)

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
    # A number is text here too.
    _convert_all(values, lambda kind, value: check_unit(kind, str(value)), option, table)
    return values


def check_values(values: Mapping[str, object], option: str = "set") -> None:
    """Reject a rate, a time, a size, a limit or a threshold without its unit."""
    _convert_all(values, check_unit, option)


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
            converted[path] = _convert(_find_schema(table + path), path, value, convert)
        except ValueError as mistake:
            raise ArgumentError(option, str(mistake)) from None
    return converted


def _convert(
    node: JsonObject,
    path: str,
    value: Any,  # noqa: ANN401
    convert: Callable[[Kind, object], object],
) -> Any:  # noqa: ANN401
    """Convert the rates, times and sizes in the value at ``path`` that ``node`` describes."""
    if isinstance(value, dict):
        return {
            key: _convert(_child_schema(node, key), f"{path}.{key}", item, convert)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _convert(_child_schema(node, 0), f"{path}[{number}]", item, convert)
            for number, item in enumerate(value)
        ]
    kinds = [_KINDS[name] for name, _ in _definitions(node) if name in _KINDS]
    try:
        return convert(kinds[0], value) if kinds and not isinstance(value, bool) else value
    except ValueError as mistake:
        raise ValueError(f"{path}: {mistake}") from None


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


class Key(NamedTuple):
    """A key of a table of scenario files."""

    name: str
    type: str
    """The kind of its values, or the words that it takes, or ``table NAME``."""
    default: str
    """As in a file; empty without a constant one. What it depends on is in the meaning."""
    required: bool
    meaning: str


class KeyTable(NamedTuple):
    """A table of scenario files, or one kind of it."""

    name: str
    """Of the key that has it; that of the whole file is ``scenario``."""
    kind: str
    """The value of its key ``kind``; empty if all kinds have the same keys."""
    meaning: str
    keys: list[Key]


def key_tables() -> list[KeyTable]:
    """Return the tables of scenario files, in the order of their first mention."""
    found: dict[tuple[str, str], KeyTable] = {}
    waiting = [("scenario", schema())]
    for name, node in waiting:
        for definition in _tables(node):
            table = _key_table(name, definition)
            if (name, table.kind) in found:
                continue
            found[name, table.kind] = table
            waiting += [(key, each) for key, each in definition["properties"].items()]
    return list(found.values())


def expect_table() -> KeyTable:
    """Describe the table ``[expect]``, whose keys are the names of metrics."""
    catalogue = {metric["name"]: metric for metric in _native.catalogue()}
    keys = []
    for name in _native.named_metrics():
        metric = catalogue[name]
        places = {"of_flows": "a group of flows", "of_link": "a link"}
        after = [metric["statistics"], [place for key, place in places.items() if metric[key]]]
        parts = ", then by ".join(_either(words) for words in after if words)
        meaning = f"May be followed by {parts}." if parts else ""
        shown = f"{name}.RATE" if metric["of_rate"] else name
        keys.append(Key(shown, metric["dimension"], "", required=False, meaning=meaning))
    return KeyTable("expect", "", _EXPECT, keys)


def _either(words: Sequence[str]) -> str:
    """Join alternatives."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _tables(node: JsonObject) -> Iterator[JsonObject]:
    """Yield the definitions of tables that a value, or an item of a list, may be."""
    for _, definition in _definitions(node):
        for each in (definition, *definition.get("oneOf", ())):
            if "properties" in each:
                yield each
        if "items" in definition:
            yield from _tables(definition["items"])


def _key_table(name: str, definition: JsonObject) -> KeyTable:
    """Describe a table."""
    properties: JsonObject = definition["properties"]
    kind = properties.get("kind", {}).get("const", "")
    required = definition.get("required", ())
    keys = []
    for key, node in properties.items():
        default = node.get("default")
        shown = "" if default is None else default if isinstance(default, str) else _write(default)
        of = " | ".join(dict.fromkeys(_types(key, node))) or "table"
        keys.append(Key(key, of, shown, key in required, node.get("description", "")))
    return KeyTable(name, kind, definition.get("description", ""), keys)


def _types(key: str, node: JsonObject) -> Iterator[str]:
    """Yield the kinds of values that a key takes, and words."""
    tables = list(_tables(node))
    if tables:
        yield f"table {key}"
    for name, each in _definitions(node):
        if name in _NAMES or name in _KINDS:
            yield _NAMES.get(name) or _KINDS[name]
            return
        yield from each.get("enum", ())
        yield from (str(one["const"]) for one in (each, *each.get("oneOf", ())) if "const" in one)
        if "enum" in each or "const" in each:
            continue
        types = each.get("type", ())
        for one in [types] if isinstance(types, str) else types:
            if one not in {"null", "object"} and not (one == "array" and tables):
                yield _NAMES.get(one, one)


def scenario_paths() -> list[str]:
    """Return the paths of the keys of a scenario and of its tables, as for `Scenario.with_values`.

    A path into a list is that of its first item.

    Examples
    --------
    >>> [path for path in scenario_paths() if path.endswith(("seed", "count", ".ecn"))]
    ['cbr[0].count', 'flow[0].count', 'pareto[0].count', 'seed', 'tcp.ecn']
    """
    tables = {table.name: table.keys for table in key_tables()}
    paths = []
    for name, node in schema()["properties"].items():
        if name not in tables:
            paths.append(name)
            continue
        item = "[0]" if node.get("type") == "array" else ""
        paths += [f"{name}{item}.{key.name}" for key in tables[name]]
    return paths


def queue_kinds() -> list[str]:
    """Return the kinds of queues."""
    return [kind["const"] for kind in schema()["$defs"]["QueueKind"]["oneOf"]]


def link_keys() -> list[str]:
    """Return the keys of the table ``[[link]]`` of a scenario."""
    return list(schema()["$defs"]["Link"]["properties"])


@cache
def schema() -> JsonObject:
    """Return the JSON Schema of scenario files."""
    document: JsonObject = json.loads(_native.schema())
    return document
