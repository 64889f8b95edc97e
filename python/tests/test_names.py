"""docs/names.md: each name that it lists exists."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click
import pytest

import cwnd
from cwnd import metrics, udt
from cwnd._cli.verbs import cwnd as root
from cwnd._native import catalogue
from cwnd._runs.defaults import DUMBBELL
from cwnd._runs.scenario_keys import key_tables
from cwnd._sweeps.reading import _KEYS
from cwnd.metrics.catalog import DIMENSIONS

DOCS = Path(__file__).parents[2] / "docs"
ROWS = [
    re.split(r" ?\| ?", line[2:-1])
    for line in (DOCS / "names.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| quantity")
]
OPTIONS = {
    option
    for command in root.commands.values()
    if not isinstance(command, click.Group)
    for parameter in command.params
    for option in parameter.opts
}
KEYS = {key.name for table in key_tables() for key in table.keys}
PARAMETERS = {
    name
    for function in (cwnd.compare, cwnd.run, cwnd.agree, udt.connect, cwnd.Scenario.dumbbell)
    for name in inspect.signature(function).parameters
}
CONTROLLERS = {p.name for algorithm in cwnd.algorithms() for p in algorithm.parameters}
EXPECT = (DOCS / "scenario.md").read_text("utf-8").partition("## `[expect]`")[2]
JSON = set(re.findall(r"\w+", (DOCS / "json.md").read_text("utf-8")))


def names(cell: str) -> list[str]:
    """Return the names in a cell without the places where they occur."""
    return re.findall(r"`([^`\[]+)`", re.sub(r"\bof `[^`]+`", "", cell))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_names_of_a_quantity_exist(row):
    _, line, toml, python, document, *_ = row
    assert {*re.findall(r"`(--[\w-]+)`", line)} <= OPTIONS
    assert {*names(python)} <= PARAMETERS | {*metrics.__all__} | {"controller"}
    assert {*names(document)} <= JSON
    for part in re.split("[;,] ", toml):
        known = KEYS | DUMBBELL.keys() | {"reference"}
        if "`[expect]`" in part:
            known = DIMENSIONS.keys()
        elif "of a plan" in part:
            known = {*_KEYS}
        elif "of a controller" in part:
            known = CONTROLLERS
        assert {*names(part)} <= known, part


def test_each_quantity_with_several_names_has_a_reason():
    text = (
        (DOCS / "names.md").read_text("utf-8").partition("These quantities have several names:")[2]
    )
    explained = re.findall(r"^\* \*(.+?)\*: ", text, re.MULTILINE)
    several = []
    for row in ROWS:
        options = (option.removeprefix("--") for option in re.findall(r"`(--[\w-]+)`", row[1]))
        others = (name for cell in row[2:5] for name in names(cell))
        if len({re.sub("_(s|bps|bytes)$", "", name) for name in (*options, *others)}) > 1:
            several.append(row[0])
    assert sorted(explained) == sorted(several)


def test_the_table_has_each_metric_that_json_calls_otherwise():
    listed = {name for row in ROWS for name in names(re.sub("of `[^`]*`", "", row[2]))}
    bounds = re.findall(r"^\| (`\w+`.*?) \|", EXPECT, re.MULTILINE)
    named = {name for cell in bounds for name in re.findall(r"`(\w+)`", cell)}
    others = {
        metric["name"]
        for metric in catalogue()
        if metric["name"] in named and metric["figures"]
        for name in {re.sub("_(s|bps)$", "", figure["name"]) for figure in metric["figures"]}
        if name != metric["name"]
    }
    assert {"queue_delay", "smoothness", "rtt"} <= others <= listed
