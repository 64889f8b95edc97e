"""The scenario files and plans of the package."""

from __future__ import annotations

import json
import re

import pytest

import cwnd
from cwnd._runs.packaged import packaged
from cwnd._runs.scenario_keys import key_tables
from cwnd._sweeps.reading import read_plan
from cwnd.errors import PlanError


def test_scenarios_lists_and_prints_the_packaged_files(command, check_json):
    document = json.loads(command("scenarios", "--json").stdout)
    check_json(document, "`cwnd scenarios --json`, `cwnd scenarios NAME --json`")
    rows = {row["name"]: row for row in document["scenarios"]}
    files = [*packaged("scenarios"), *packaged("plans")]
    # A name stands for one file.
    assert [*rows] == [each.name for each in files]
    assert len(rows) == len(document["scenarios"]) > 50
    for name, row in rows.items():
        assert row["title"], name
    assert rows["wireless"]["title"] == "A download over a lossy radio link"
    assert rows["red-grid"]["kind"] == "plan"
    assert rows["red-grid"]["title"].startswith("Shares of three laws against TCP")
    shown = command("scenarios").stdout
    assert all(name in shown for name in rows)
    for each in files[0], files[-1]:
        assert command("scenarios", each.name).stdout == each.text
    unknown = command("scenarios", "wirles")
    assert unknown.returncode == 2
    assert "no packaged scenario or plan is named wirles, did you mean wireless?" in unknown.stderr


def test_a_name_is_that_of_a_packaged_file_unless_there_is_such_a_file(command, tmp_path, two):
    arguments = ("run", "codel", "--set", "duration=2s", "--set", "warmup=1s", "--json")
    assert json.loads(command(*arguments, cwd=tmp_path).stdout)["scenario"] == "codel"
    (tmp_path / "codel").write_text(two)
    assert json.loads(command(*arguments, cwd=tmp_path).stdout)["scenario"] == "two"
    compared = command(
        *("compare", "codel.toml", "simd", "--set", "duration=2s", "--set", "warmup=1s"),
        *("--repeat", 2, "--json"),
        cwd=tmp_path,
    )
    assert json.loads(compared.stdout)["network"]["file"] == "codel.toml"
    (tmp_path / "dctcp").mkdir()
    chosen = command("run", "dctcp", "--set", "duration=2s", "--set", "warmup=1s", cwd=tmp_path)
    assert chosen.returncode == 0, chosen.stderr
    for missing in ("nothing", "nothing.toml"):
        done = command("run", missing, cwd=tmp_path)
        assert done.returncode == 2
        assert f"{missing}: no such file, and none of the packaged scenarios" in done.stderr
    other = command("run", "none/codel.toml", cwd=tmp_path)
    assert other.stderr == "cwnd: none/codel.toml: No such file or directory\n"


def test_python_and_plans_take_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cwnd.Scenario.from_toml("wireless").to_dict()["name"] == "wireless"
    assert len(read_plan("red-grid")) == 225
    (tmp_path / "plan.toml").write_text('base = "wireless"\nrepeat = 2\n')
    assert len(read_plan(tmp_path / "plan.toml")) == 2
    (tmp_path / "plan.toml").write_text('base = "nothing"\n')
    with pytest.raises(PlanError, match="base: cannot read nothing: no such file"):
        read_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("words", "found"), [("run wirel", "wireless"), ("sweep red", "red-grid")], ids=str
)
def test_names_and_local_files_complete(words, found, tmp_path, monkeypatch):
    from cwnd._cli.verbs import cwnd as root

    monkeypatch.chdir(tmp_path)
    verb, begin = words.split()
    (tmp_path / f"{begin}x.toml").touch()
    place = root.commands[verb]
    with place.make_context(verb, [], resilient_parsing=True) as context:
        items = place.params[0].shell_complete(context, begin)
    assert [item.value for item in items] == [found, f"{begin}x.toml"]


def test_a_new_scenario_runs_and_lists_the_keys_of_its_tables(command, tmp_path):
    file = tmp_path / "new.toml"
    assert f"written: {file}" in command("new-scenario", file).stdout
    ran = command("run", file, "--set", "duration=20s", "--json")
    assert len(json.loads(ran.stdout)["flows"]) == 4
    text = file.read_text("utf-8")
    parts = re.split(r"^\[+(\w+)\]+\n", text, flags=re.MULTILINE)
    bodies = dict(zip(["scenario", *parts[1::2]][:-1], parts[0::2], strict=False))
    keys = {table.name: table.keys for table in key_tables()}
    assert [*bodies] == ["scenario", "dumbbell", "tcp", "flow"]
    for name, body in bodies.items():
        listed = re.findall(r"^(?:# )?(\w+)(?: = | \(\w)", body, re.MULTILINE)
        assert sorted(listed) == sorted(
            key.name for key in keys[name] if name != "scenario" or not key.type.startswith("table")
        )
    for key in keys["scenario"]:
        assert re.search(rf"^(# )?\[*{key.name}\b", text, re.MULTILINE), key
    assert max(map(len, text.splitlines())) <= 100


def test_a_new_scenario_replaces_no_file_unless_forced(command, tmp_path):
    file = tmp_path / "scenario.toml"
    file.write_text("mine")
    refused = command("new-scenario", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr == "cwnd: scenario.toml exists already: --force replaces it\n"
    assert file.read_text() == "mine"
    assert command("new-scenario", "--force", cwd=tmp_path).returncode == 0
    assert file.read_text() != "mine"
    nowhere = command("new-scenario", "none/x.toml", cwd=tmp_path)
    assert (nowhere.returncode, nowhere.stderr) == (
        2,
        "cwnd: none/x.toml: No such file or directory\n",
    )
    for name, problem in ("", "the name of FILE is empty"), (".", "is a directory"):
        for option in [], ["--force"]:
            refused = command("new-scenario", name, *option, cwd=tmp_path)
            assert refused.returncode == 2
            assert problem in refused.stderr


def test_a_new_scenario_named_dash_is_printed(command, tmp_path):
    printed = command("new-scenario", "-", cwd=tmp_path)
    assert [*tmp_path.iterdir()] == []
    assert command("new-scenario", cwd=tmp_path).returncode == 0
    assert printed.stdout == (tmp_path / "scenario.toml").read_text("utf-8")
