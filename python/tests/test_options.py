"""The options of the commands: their defaults are the library's, and the documents have both."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import click
import pytest

import cwnd
from cwnd import emulation, transfer, udt
from cwnd._cli.verbs import cwnd as command
from cwnd._runs.defaults import DUMBBELL
from cwnd._tasks.evaluation.single import single_run
from cwnd.perf import PerfOptions, measure, quic

DOCS = Path(__file__).parents[2] / "docs"

LIBRARY: dict[str, list[Any]] = {
    "compare": [DUMBBELL, cwnd.compare],
    "run": [cwnd.run],
    "reproduce": [cwnd.reproduce],
    "evaluate": [cwnd.evaluate, single_run],
    "score": [cwnd.score],
    "sweep": [cwnd.sweep],
    "agree": [cwnd.agree],
    "search": [cwnd.search],
    "send": [transfer.send, transfer.SendOptions, udt.connect],
    "recv": [transfer.ReceiveOptions, udt.listen],
    "perf": [PerfOptions, measure, udt.connect, quic.connect],
    "emulate": [emulation.read_links],
}
"""What a command calls; of two defaults of one name the first is the command's."""

NAMES = {
    "cc": "controller",
    "congestion": "controller",
    "interval": "every",
    "parallel": "streams",
    "time": "seconds",
}
"""Arguments of the library whose options have other names, where the option's is not one."""

ONLY_HERE = {
    *("reproduce out", "evaluate out", "recv out", "recv port", "perf port"),
    *("emulate seed", "new-controller kind", "search out"),
}
"""Options with defaults that the library requires as arguments."""


def defaults(sources: list[Any]) -> dict[str, Any]:
    """Return the defaults of functions, dataclasses and tables."""
    found: dict[str, Any] = {}
    for source in reversed(sources):
        if isinstance(source, dict):
            found |= source
        elif is_dataclass(source):
            found |= {each.name: each.default for each in fields(source)}
        else:
            parameters = inspect.signature(source).parameters.values()
            found |= {each.name: each.default for each in parameters}
    return {name: value for name, value in found.items() if value is not inspect.Parameter.empty}


def long_name(option: click.Parameter) -> str:
    return max(option.opts, key=len)


def with_defaults() -> list[tuple[str, click.Option]]:
    """Return the options that have a default."""
    return [
        (name, option)
        for name, verb in command.commands.items()
        for option in verb.params
        if isinstance(option, click.Option)
        and not option.is_flag
        and not option.multiple
        and option.to_info_dict()["default"] is not None
        and f"{name} {option.name}" not in ONLY_HERE
    ]


@pytest.mark.parametrize(
    ("verb", "option"), with_defaults(), ids=lambda each: getattr(each, "name", each)
)
def test_a_default_is_the_librarys(verb, option):
    known = defaults(LIBRARY[verb])
    name = option.name if option.name in known else NAMES[option.name]
    given = option.type_cast_value(click.Context(command.commands[verb]), option.default)
    if verb == "agree" and name == "on":
        given = tuple(given.split(","))
    assert given == known[name]


def test_a_flag_is_off_in_the_library():
    for verb, sources in LIBRARY.items():
        known = defaults(sources)
        for option in command.commands[verb].params:
            if getattr(option, "is_flag", False) and option.name in known:
                assert not known[option.name], (verb, option.name)


def test_help_shows_every_default():
    for verb, option in with_defaults():
        above = click.Context(command, **command.context_settings)
        context = click.Context(command.commands[verb], parent=above)
        text = option.get_help_record(context)[1]
        assert option.show_default is False or f"[default: {option.default}" in text


def test_the_table_of_emulate_has_every_option_and_default():
    text = (DOCS / "emulate.md").read_text("utf-8")
    rows = re.findall(r"^\| (`--.*?) \|([^|]*)\|", text, re.MULTILINE)
    listed = {}
    for names, values in rows:
        options = re.findall(r"--[a-z-]+", names)
        each = values.strip().split(", ")
        each = each if each[1:] else each * len(options)
        listed |= dict(zip(options, each, strict=True))
    declared = {long_name(each): each for each in command.commands["emulate"].params[1:]}
    assert listed.keys() == declared.keys()
    for name, option in declared.items():
        shown = option.to_info_dict()["default"]
        if shown is not None and not option.multiple:
            assert listed[name] == f"{shown}"
        elif isinstance(option.show_default, str):
            assert option.show_default.removesuffix("ms") == listed[name]


@pytest.mark.parametrize(
    ("path", "phrase", "verb", "name"),
    [
        ("transfer.md", "`--retry N` times ({} by default)", "send", "retry"),
        ("transfer.md", "up to `--mtu` of both sides: {} bytes", "send", "mtu"),
        ("transfer.md", "`--reserve {}` keeps", "recv", "reserve"),
        ("evaluate.md", "(`--out`, by default `{}`)", "evaluate", "out"),
        ("evaluate.md", "The `--budget` is `{}` by default", "evaluate", "budget"),
        ("agreement.md", "of `--on` (`{}`)", "agree", "on"),
        ("agreement.md", "with `--repeat` seeds ({})", "agree", "repeat"),
    ],
)
def test_a_default_in_a_document_is_true(path, phrase, verb, name):
    (option,) = (each for each in command.commands[verb].params if each.name == name)
    text = " ".join((DOCS / path).read_text("utf-8").split())
    assert phrase.format(option.default) in text


def test_the_documents_have_no_other_options():
    def below(verb: click.Command) -> set[str]:
        found = {name for each in verb.params for name in (*each.opts, *each.secondary_opts)}
        return found.union(*map(below, getattr(verb, "commands", {}).values()))

    # The last one is of docker.
    known = below(command) | {"--help", "--cap-add"}
    for path in (DOCS.parent / "README.md", *DOCS.glob("**/*.md")):
        used = set(re.findall(r"`(--[a-z][a-z-]*)", path.read_text("utf-8")))
        assert used <= known, path
