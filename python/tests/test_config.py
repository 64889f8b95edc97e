"""Defaults of options from environment variables and from a configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from cwnd._cli import run
from cwnd._cli.config import read_config
from cwnd._cli.verbs import cwnd


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Write the configuration file that is found without --config."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "cwnd" / "config.toml"
    path.parent.mkdir()

    def write(text: str):
        path.write_text(text)
        return path

    return write


def described(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_a_file_gives_defaults(config, capsys):
    config("[algorithms]\njson = true\n")
    assert run(["algorithms", "reno"]) == 0
    assert described(capsys)["algorithms"][0]["name"] == "reno"


def test_a_variable_gives_defaults(monkeypatch, capsys):
    monkeypatch.setenv("CWND_ALGORITHMS_JSON", "1")
    assert run(["algorithms", "reno"]) == 0
    assert described(capsys)["algorithms"][0]["name"] == "reno"


def test_commands_of_groups_have_defaults(config, monkeypatch, capsys):
    config("[model.square-root]\njson = true\n")
    monkeypatch.setenv("CWND_MODEL_SQUARE_ROOT_RTT", "50ms")
    assert run(["model", "square-root", "--p", "0.01"]) == 0
    assert "0.05" in json.dumps(described(capsys))
    config("[model.renoo]\njson = true\n")
    assert run(["model", "square-root", "--p", "0.01"]) == 2
    assert "model.renoo: no such command" in capsys.readouterr().err


def test_a_tilde_is_the_home_folder(config, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    config('[recv]\nout = "~/none/inbox"\nport = 0\nkey = "~/key"\n')
    assert run(["recv"]) == 2
    assert f"cannot read {tmp_path}/key: No such file" in capsys.readouterr().err
    root = Path("~root").expanduser()
    for path, expected in (
        ("~", tmp_path),
        ("~/a", tmp_path / "a"),
        ("~root/a", root / "a"),
        ("./~", "./~"),
        ("a/~", "a/~"),
    ):
        config(f'[recv]\nout = "{path}"\n[send]\ninclude = ["~"]\n')
        found = read_config(cwnd, None)
        assert found == {"recv": {"out": str(expected)}, "send": {"include": ["~"]}}


def test_a_controller_in_a_file_is_beside_the_configuration(config, monkeypatch, tmp_path, capsys):
    path = config('[send]\ncc = "mine.law(most=5ms)"\n[compare]\nreference = "~/other.py:Law"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    mine = path.parent / "mine.law"
    assert read_config(cwnd, None) == {
        "send": {"cc": f"{mine}(most=5ms)"},
        "compare": {"reference": f"{tmp_path}/other.py:Law"},
    }
    # The command that uses the file reads it, others do not.
    assert run(["algorithms", "reno"]) == 0
    (tmp_path / "data").write_text("data")
    capsys.readouterr()
    assert run(["send", str(tmp_path / "data"), "127.0.0.1:1", "--insecure"]) == 2
    assert f"{mine}: No such file" in capsys.readouterr().err
    config('[send]\ncc = "reeno"\n')
    assert run(["algorithms", "reno"]) == 2
    assert "did you mean reno" in capsys.readouterr().err


def test_the_command_line_overrides_the_variable_and_that_the_file(config, monkeypatch, capsys):
    config('[compare]\nrate = "1mbit"\nrtt = "1ms"\nqueue = "20p"\n')
    monkeypatch.setenv("CWND_COMPARE_RATE", "2mbit")
    monkeypatch.setenv("CWND_COMPARE_RTT", "20ms")
    small = ["--time", "3s", "--repeat", "1", "--flows", "2", "--json"]
    assert run(["compare", "reno", "--rate", "3mbit", *small]) == 0
    network = described(capsys)["network"]
    assert network["rate_bps"] == 3e6
    assert network["rtt_s"] == 0.02
    assert network["queue_limit"] == 20


def test_repeats_are_a_number_or_auto(config, capsys):
    config('[compare]\nrepeat = 2\nset = ["warmup=0"]\ntime = "3s"\n')
    small = ["compare", "reno", "--flows", "2", "--json"]
    assert run(small) == 0
    network = described(capsys)["network"]
    assert (network["repeat"], network["duration_s"], network["warmup_s"]) == (2, 3.0, 0.0)
    config('[compare]\nrepeat = "auto"\n')
    assert run([*small, "--time", "2s"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["network"]["repeat"] in (10, 20, 40, 80)
    assert "repeats" in said.err
    config("[compare]\nrepeat = 1.5\n")
    assert run(small) == 2
    assert "needs a whole number" in capsys.readouterr().err


def test_defaults_of_the_dumbbell_leave_a_scenario_file_alone(config, tmp_path, two, capsys):
    (tmp_path / "two.toml").write_text(two)
    config('[compare]\nrate = "1mbit"\nrepeat = 2\n')
    assert run(["compare", str(tmp_path / "two.toml"), "--set", "duration=6s", "--json"]) == 0
    assert described(capsys)["network"]["rate_bps"] == 10e6


def test_a_default_is_no_mistake_on_the_other_side(config, tcp, capsys):
    config("[perf]\ntime = 3.0\nreverse = true\n")
    # The port is in use by nobody: the server would listen. Another mistake ends it here.
    assert run(["perf", "-s", "-B", "203.0.113.7"]) == 2
    assert "203.0.113.7" in capsys.readouterr().err


def test_a_file_that_is_named_must_exist(tmp_path, monkeypatch, capsys):
    missing = tmp_path / "missing.toml"
    for name, arguments in (("CWND_X", ["--config", str(missing)]), ("CWND_CONFIG", [])):
        monkeypatch.setenv(name, str(missing))
        assert run([*arguments, "doctor"]) == 2
        said = capsys.readouterr()
        assert (said.out, said.err) == ("", f"cwnd: --config: there is no file {missing}\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cc = 1", "cc: no such command"),
        ('[snd]\ncc = "udt"', "snd: no such command; did you mean send?"),
        (
            '[send]\nrate_limit = "1mbit"',
            "send.rate_limit: no such option; did you mean rate-limit?",
        ),
        ('[send]\nx = "y"', "send.x: no such option; valid are "),
        ("[send]\ncc = 3", "send.cc needs a text in quotes, not 3"),
        ('[send]\ncc = "renoo"', 'send.cc: unknown controller "renoo"'),
        ('[send]\nrate-limit = "15mbps"', "send.rate-limit: '15mbps' is ambiguous"),
        ("[send]\nretry = true", "send.retry needs a whole number, not True"),
        ("[send]\nretry = -1", "send.retry: -1"),
        ('[send]\ninclude = "*.c"', "send.include needs a list"),
        ("[send]\ninclude = [1]", "send.include needs a text in quotes, not 1"),
        ('[send]\ncc = ["udt"]', "send.cc needs one value"),
        ("[send]\njson = 1", "send.json needs true or false, not 1"),
        ('[recv]\nmax-bytes = "10G"', "recv.max-bytes: '10G' is ambiguous"),
        ('[recv]\nallow = ["10.0.0.1/8"]', "recv.allow: '10.0.0.1/8' has bits set"),
        ('[recv]\nout = "~nobody-here/x"', "recv.out: ~nobody-here/x is in the home folder of an"),
        ("[perf]\nudp = true", "perf.udp: no such option"),
        ("[send]\nhelp = true", "send.help: no such option"),
        ("send = 3", "send is a command and needs a table: [send]"),
        ("[kernel.lod]", "kernel.lod: no such command; did you mean load?"),
        ("[send", "Expected"),
    ],
)
def test_mistakes_in_the_file_name_it_and_the_key(config, capsys, text, words):
    path = config(text)
    assert run(["doctor"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"cwnd: {path}: ")
    assert said.err.count("\n") == 1
    assert words in said.err


def test_what_is_no_text_is_refused(config, capsys):
    path = config("")
    path.write_bytes(b"\xff")
    assert run(["doctor"]) == 2
    assert capsys.readouterr().err == f"cwnd: cannot read {path}: it is not UTF-8\n"


def test_a_mistake_in_a_variable_names_it(monkeypatch, capsys, tmp_path):
    (tmp_path / "f").write_text("x")
    monkeypatch.setenv("CWND_SEND_RATE_LIMIT", "fast")
    assert run(["send", str(tmp_path / "f"), "127.0.0.1"]) == 2
    assert capsys.readouterr().err.endswith("(from CWND_SEND_RATE_LIMIT)\n")


def commands(command: click.Command, name: str):
    yield name, command
    for inner in getattr(command, "commands", {}):
        yield from commands(command.commands[inner], f"{name}_{inner}")


def test_every_option_has_a_variable_of_its_name():
    seen = set()
    for name, command in commands(cwnd, "cwnd"):
        for option in command.params:
            if isinstance(option, click.Option) and option.expose_value and not option.hidden:
                long = max(option.opts, key=len).lstrip("-")
                assert option.envvar == f"{name}_{long}".upper().replace("-", "_")
                seen.add(option.envvar)
    assert {
        "CWND_SEND_CC",
        "CWND_PERF_JSON",
        "CWND_RECV_MAX_BYTES",
        "CWND_KERNEL_LOAD_NAME",
    } <= seen


def test_a_missing_default_file_is_no_mistake(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_config(cwnd, None) == {}


def test_a_file_without_an_end_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("CWND_CONFIG", "/dev/zero")
    assert run(["recv", "--port", "0", "--out", "/dev/null"]) == 2
    assert "/dev/zero has more than 1048576 bytes" in capsys.readouterr().err
