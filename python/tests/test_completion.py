"""Shell completion: every option and argument whose values come from a list."""

from __future__ import annotations

import click
import pytest
from click.shell_completion import ShellComplete

from cwnd._cli.verbs import cwnd as root
from cwnd.model.catalog import find_model

NO_LIST = {
    *("rate", "rtt", "time", "warmup", "loss", "delay", "bytes", "bitrate", "rate_limit"),
    *("max_bytes", "reserve", "shard", "dask", "bind", "allow", "client", "address", "code"),
    *("include", "exclude", "command", "sources", "forget", "cell"),
    *(
        "kernel load name",
        "new-controller name",
        "run link",
        "run fork_at",
        "search budget",
        "evaluate budget",
    ),
    *("trace convert interval", "trace info interval"),
}
"""Parameters whose values are numbers with units, addresses, patterns, new names or free text.

Networks of a test (``--cell``) contain spaces, which completion in bash cannot insert. The links of
a run are those of its scenario, whose name Click does not pass to the completion of an option.
"""


def parameters(group=root, path=()):
    """Yield every parameter that takes a value, with the words of its command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        words = (*path, name)
        if isinstance(command, click.Group):
            yield from parameters(command, words)
        else:
            for parameter in command.params:
                if not getattr(parameter, "is_flag", False):
                    yield words, parameter


def completed(*words: str) -> list[str]:
    """Return the values that complete the last word of a command line."""
    *before, begin = words
    items = ShellComplete(root, {}, "cwnd", "_CWND_COMPLETE").get_completions(before, begin)
    return [item.value for item in items if item.type == "plain"]


OF_COMMANDS = [
    pytest.param(" ".join(words), parameter, id=f"{' '.join(words)} {parameter.name}")
    for words, parameter in parameters()
    if words[0] != "model"
]
UNITLESS = click.Path | click.types.IntParamType | click.types.FloatParamType


@pytest.mark.parametrize(("command", "parameter"), OF_COMMANDS)
def test_a_parameter_with_a_list_of_values_completes(command, parameter):
    if isinstance(parameter.type, UNITLESS):
        return
    context = click.Context(root, resilient_parsing=True)
    values = {item.value for item in parameter.shell_complete(context, "")}
    free = not NO_LIST.isdisjoint({parameter.name, f"{command} {parameter.name}"})
    assert bool(values) != free
    # The words of a metavar such as N|auto are among the values.
    shown = (parameter.metavar or "").split("|")
    assert {word for word in shown if word.islower() and word.isalnum()} <= values


def test_a_text_of_a_model_completes():
    context = click.Context(root, resilient_parsing=True)
    texts = 0
    for words, parameter in parameters():
        if words[0] == "model" and not isinstance(parameter.type, click.Path):
            items = parameter.shell_complete(context, "")
            text = find_model(words[1]).parameters[parameter.name].kind == "text"
            assert bool(items) == text, (words, parameter)
            texts += text
    assert texts > 10


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("compare --on u", ["udt"]),
        ("compare --queue re", ["red", "red-ecn"]),
        ("compare --queue fq", ["fq_codel", "fq"]),
        ("compare --reference aia", ["aiad"]),
        ("compare --set dumbbell.ra", ["dumbbell.rate="]),
        ("run --set flow[0].cou", ["flow[0].count="]),
        ("agree --on sim,l", ["sim,linux"]),
        ("evaluate --suite tcp", ["tcpeval"]),
        ("score --suite d", ["default"]),
        ("evaluate --require sta", ["starvation"]),
        ("evaluate --test high-l", ["high-loss"]),
        ("evaluate aim", ["aimd"]),
        ("reproduce --exhibit table-1", ["table-1"]),
        ("emulate --set jit", ["jitter="]),
        ("emulate --queue dual", ["dualpi2"]),
        ("kernel load west", ["westwood"]),
        ("send --cc cub", ["cubic"]),
        ("recv --mtu a", ["auto"]),
        ("model aiad-gains --moving a", ["all"]),
        ("model law-cut --spec vega", ["vegas"]),
        ("model loss-for-rate --formula pf", ["pftk"]),
        ("schema ca", ["card"]),
    ],
)
def test_values_complete(words, found):
    assert completed(*words.split()) == found


@pytest.mark.parametrize(
    "command",
    ["send --cc", "perf -C", "evaluate", "algorithms", "compare", "compare --reference"],
)
def test_a_controller_in_a_file_completes(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.law", "mine.py", "mine.txt", "mine.toml"):
        (tmp_path / name).touch()
    toml = ["mine.toml"] if command == "compare" else []
    assert sorted(completed(*command.split(), "min")) == ["mine.law", "mine.py", *toml]
    items = ShellComplete(root, {}, "cwnd", "_CWND_COMPLETE").get_completions(
        command.split(), "folder/m"
    )
    assert [item.type for item in items] == ["file"]
