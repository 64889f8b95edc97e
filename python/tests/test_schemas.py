"""The JSON Schemas of `cwnd schema`; `command` and `check_json` hold outputs against them."""

from __future__ import annotations

import json

import click
import pytest
from jsonschema import Draft202012Validator

from cwnd._cli.documents import schema_names
from cwnd._cli.verbs import cwnd as root


@pytest.mark.parametrize("name", schema_names())
def test_schema_prints_a_valid_schema(command, name):
    printed = json.loads(command("schema", name).stdout)
    Draft202012Validator.check_schema(printed)
    assert printed["title"]


def test_an_unknown_document_is_refused(command):
    refused = command("schema", "nothing")
    assert refused.returncode == 2
    assert (
        "'nothing' is not one of scenario, card, evaluate, run, run-repeat, run-fork, compare"
        in refused.stderr
    )


def test_every_command_with_json_has_a_schema(documents):
    def commands(group, path=()):
        for name in group.list_commands(click.Context(group)):
            found = group.get_command(click.Context(group), name)
            if isinstance(found, click.Group) and name != "model":
                yield from commands(found, (*path, name))
            elif any("--json" in each.opts for each in found.params):
                yield (*path, name)

    found = [*commands(root)]
    assert len(found) > 20
    for words in found:
        assert documents.name([*words, "--json"]) in schema_names(), words


@pytest.mark.parametrize(
    ("name", "document", "said"),
    [
        ("sweep-forget", {"out": "x"}, "'forgotten' is a required property"),
        ("sweep-forget", {"out": 1, "forgotten": 2}, "1 is not of type 'string'"),
        ("sweep-forget", {"out": "x", "forgotten": 2, "b": 1}, "Additional properties"),
        ("kernel-list", {"controllers": [{"name": "x"}]}, "is a required property"),
        ("send", {"event": "total"}, "is not valid under any of the given schemas"),
    ],
)
def test_a_wrong_document_does_not_fit(documents, name, document, said):
    with pytest.raises(AssertionError, match=said):
        documents.check(name, document)


def test_runs_with_transfers_and_bounds_fit(command):
    short = ("--set", "duration=6s", "--set", "warmup=1s")
    run = json.loads(command("run", "web-load", *short, "--json").stdout)
    assert run["metrics"]["transfers"]["number"] > 0
    checked = command("run", "wireless", *short, "--check", "--json")
    assert json.loads(checked.stdout)["expectations"]
    compared = command("compare", "web-load.toml", "reno", *short, "--repeat", 2, "--json")
    assert "reference_fct_s" in json.loads(compared.stdout)["against"][0]
    video = json.loads(command("run", "video", *short, "--json").stdout)
    assert any(flow["application"] for flow in video["flows"])
