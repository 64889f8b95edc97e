"""docs/scenario.md has the keys of the JSON Schema of scenarios, with its types and defaults."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cwnd._cli import run
from cwnd._native import named_metrics
from cwnd._runs.scenario_keys import key_tables, schema

SCHEMA = schema()
ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/scenario.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^##+ (.*)\n((?:(?!##+ ).*\n)*)", TEXT, re.MULTILINE))
VARYING = SECTIONS["Links that vary"]
SCALES = {"us": 1e-6, "ms": 1e-3, "s": 1, "kbit": 1e3, "mbit": 1e6, "%": 1e-2}

Keys = dict[str, str]
"""Keys with their defaults; the default of some is not in a table."""


def table(section: str, number: int = 0) -> dict[str, list[str]]:
    """Return the rows of a table by their first cell."""
    tables = re.findall(r"(?:^\|.*\n)+", SECTIONS[section], re.MULTILINE)
    rows = [re.split(r" ?\| ?", line[2:-2]) for line in tables[number].splitlines()[2:]]
    return {first: cells for first, *cells in rows}


def keys(text: str) -> Keys:
    """Return the keys in a text, with the default in the parentheses behind each."""
    return dict(re.findall(r"`(\w+)`(?: \(([^,:;)]*))?", text))


def bare(cell: str) -> str:
    """Return a cell without the marks of code around it."""
    return re.sub(r"^`([^`]*)`$", r"\1", cell)


def column(rows: dict[str, list[str]], number: int = 0) -> Keys:
    """Return the keys in the first column of a table, with their defaults in another one."""
    return {key: bare(row[number]) for first, row in rows.items() for key in keys(first)}


def properties(name: str, kind: str = "") -> dict[str, Any]:
    """Return the keys of a table in the schema, or of one kind of it."""
    found = SCHEMA["$defs"][name]
    for each in found.get("oneOf", []):
        if each["properties"]["kind"]["const"] == kind:
            found = each
    return {key: value for key, value in found["properties"].items() if key != "kind"}


QUEUES = {first.strip("`"): row[1:] for first, row in table("The network", 2).items()}
VARIED = column(table("Links that vary"))
MODELS = column(table("Links that vary", 1))
SOURCES = {first.split('"')[1]: keys(row[0]) for first, row in table("Applications").items()}
SIZES = ("pareto", "lognormal", "cdf", "list")
TIMES = ("exponential", "pareto")
KINDS = {kind: {"limit": bare(limit)} | keys(own) for kind, (limit, own) in QUEUES.items()}

DOCUMENTED: dict[str, tuple[dict[str, Any], Keys]] = {
    **{f"source {kind}": (properties("Application", kind), of) for kind, of in SOURCES.items()},
    **{
        f"tcp, conventions {number}": (
            properties("TcpOptions"),
            {"conventions": ""} | column(table("`[tcp]`"), number) | column(table("`[tcp]`", 1)),
        )
        for number in range(4)
    },
}
"""The keys of a table in the schema, and those of its tables in the document.

`bench/keys.py` writes the other tables.
"""

NAMED = {
    "chain": (properties("Chain"), SECTIONS["The network"]),
    "link": (properties("Link"), SECTIONS["The network"]),
    "back": (properties("Back"), SECTIONS["The network"]),
    "fabric": (properties("Fabric"), SECTIONS["Data centres"]),
    "changes": (properties("ChangeTable"), VARIED["changes"]),
    "blackout": (properties("BlackoutTable"), VARIED["blackout"]),
    "loss": (properties("LossTable"), VARIED["loss"]),
    "reorder": (properties("ReorderTable"), VARIED["reorder"]),
    "policer": (properties("BucketTable"), VARIED["policer"]),
    "trace": (properties("TraceTable"), SECTIONS["Traces"]),
    "packet_changes": (properties("PacketChange"), SECTIONS["Traffic"]),
    **{f"model {kind}": (properties("ModelTable", kind), of) for kind, of in MODELS.items()},
    **{f"sizes {kind}": (properties("SizesTable", kind), SECTIONS["Arrivals"]) for kind in SIZES},
    **{
        f"time {kind}": (properties("TimesTable", kind), SECTIONS["Applications"]) for kind in TIMES
    },
}
"""The keys of a table in the schema, and the part of the document that has them in its text."""


def number(text: str) -> float | None:
    """Return a value in base units."""
    match = re.fullmatch(r"([0-9][0-9,]*(?:\.[0-9]+)?)( packets|[a-z%]*)", text)
    return float(match[1].replace(",", "")) * SCALES.get(match[2], 1) if match else None


def check(key: str, declared: dict[str, Any], default: str) -> None:
    """Compare a default of the document with the type and the text of a key of the schema."""
    union = [declared, *declared.get("anyOf", [])]
    kinds = [SCHEMA["$defs"].get(each.get("$ref", "").rpartition("/")[2], each) for each in union]
    if default in {"true", "false"}:
        assert "boolean" in json.dumps(kinds), key
    value = number(default)
    if value is None:
        return
    patterns = [kind["pattern"] for kind in kinds if "pattern" in kind]
    written = default.removesuffix(" packets").replace(",", "")
    assert not patterns or any(re.match(pattern, written) for pattern in patterns), key
    text = f"{declared.get('description', '')} {declared.get('default', '')}"
    if "default" in text or "default" in declared:
        stated = [number(word) for word in re.findall(r"[0-9][0-9.]*[a-z%]*", text)]
        assert value in [pytest.approx(each) for each in stated], key


def test_the_other_tables_are_those_of_the_schema(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    keys = importlib.import_module("keys")
    assert keys.generated() == TEXT, "run `python bench/keys.py`"
    marked = [name for _, name in keys.MARKED.findall(TEXT)]
    first = ["scenario", "dumbbell", "access", "leaf_spine"]
    assert marked == [*first, "flow", "quic", "cbr", "pareto", "arrivals"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_tables_have_the_keys_of_the_schema(name):
    declared, documented = DOCUMENTED[name]
    assert sorted(documented) == sorted(declared)
    for key, default in documented.items():
        check(key, declared[key], default)
        assert "default" not in declared[key] or default


@pytest.mark.parametrize("name", NAMED)
def test_texts_have_the_keys_of_the_schema(name):
    declared, text = NAMED[name]
    words = {word for code in re.findall(r"`(.+?)`", text) for word in re.findall(r"\w+", code)}
    assert words >= declared.keys()
    for key in declared.keys() & keys(text).keys():
        check(key, declared[key], keys(text)[key])


def test_queues_have_the_keys_of_the_schema():
    declared = properties("QueueTable")
    kinds = SCHEMA["$defs"]["QueueKind"]
    assert {key for of in KINDS.values() for key in of} - KINDS.keys() == declared.keys()
    assert sorted(KINDS) == sorted(each["const"] for each in kinds["oneOf"])
    for of in KINDS.values():
        for key in of.keys() - KINDS.keys():
            check(key, declared[key], of[key])


def declared(node: Any) -> list[dict[str, Any]]:
    """Return the properties of all tables in a part of the schema."""
    if isinstance(node, list):
        return [each for item in node for each in declared(item)]
    if not isinstance(node, dict):
        return []
    own = [node["properties"]] if "additionalProperties" in node and "properties" in node else []
    return own + [each for item in node.values() for each in declared(item)]


def test_keys_lists_all_keys_of_the_schema(capsys, check_json):
    tables = [{key.name: key for key in table.keys} for table in key_tables()]
    for properties in declared(SCHEMA):
        meanings = {name: of.get("description", "") for name, of in properties.items()}
        (keys, *_) = [
            each for each in tables if {key.name: key.meaning for key in each.values()} == meanings
        ]
        for name, of in properties.items():
            assert keys[name].type, name
            if "default" in of:
                assert keys[name].default == str(of["default"])
    assert run(["keys", "source", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    check_json(document, "`cwnd keys --json`, `cwnd keys TABLE --json`")
    printed = document["tables"]
    assert [each["kind"] for each in printed] == ["limited", "on_off", "request", "video", "media"]
    assert run(["keys", "expect", "--json"]) == 0
    (expect,) = json.loads(capsys.readouterr().out)["tables"]
    rows = {key["name"]: key for key in expect["keys"]}
    assert list(rows) == [
        name.replace("to", "to.RATE") if name == "time_to" else name for name in named_metrics()
    ]
    assert rows["utilization"]["meaning"] == "May be followed by a link."
    assert rows["jain"]["meaning"] == "May be followed by worst or mean, then by a group of flows."
    assert run(["keys", "tcp"]) == 0
    assert "Proportional rate reduction" in capsys.readouterr().out
    assert run(["keys", "nothing"]) == 2
    assert "the tables are scenario, access, cbr" in capsys.readouterr().err
