"""Data sets that change: more and other values of axes, and runs that are removed."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import cwnd
from cwnd._cli import run
from cwnd._sweeps import forget as forgetting
from cwnd._sweeps.dataset import DataSet
from cwnd._sweeps.estimate import estimate
from cwnd._sweeps.forget import forget
from cwnd._sweeps.manifest import list_parts, verify
from cwnd._sweeps.reading import read_plan
from cwnd._sweeps.work import run_batch
from cwnd.errors import ArgumentError, PlanError

pytestmark = pytest.mark.slow

PLAN = {
    "base": {"time": "1s", "flows": 1},
    "axes": {"rate": ["1mbit", "4mbit"], "queue": ["red", "droptail"]},
    "controllers": ["reno", "simd"],
    "repeat": 2,
    "keep": ["flows"],
}
"""16 runs."""

GROWN = {**PLAN, "axes": {"rate": ["1mbit", "2mbit", "4mbit"], "queue": ["20p", "red", "droptail"]}}
"""36 runs, with those of `PLAN`."""

LATIN = {
    **PLAN,
    "axes": {"tcp.window": {"from": 8, "to": 9}, "rate": ["1mbit"]},
    "latin": {"points": 5},
    "controllers": ["reno"],
    "repeat": 1,
}
"""Five points, some with equal values."""


def same(one: cwnd.Sweep, two: cwnd.Sweep) -> None:
    for name, keys in (("runs", ["key"]), ("flows", ["key", "name"])):
        ours, theirs = (
            getattr(sweep, name)
            .drop(columns="wall_s", errors="ignore")
            .sort_values(keys, ignore_index=True)
            for sweep in (one, two)
        )
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> cwnd.Sweep:
    return cwnd.sweep(GROWN, out=tmp_path_factory.mktemp("grown"))


def test_more_values_make_their_combinations_only(grown, tmp_path):
    assert cwnd.sweep(PLAN, out=tmp_path).made == 16
    assert cwnd.sweep(GROWN, out=tmp_path).made == 20
    same(grown, cwnd.Sweep(tmp_path))
    assert cwnd.sweep(GROWN, out=tmp_path).made == 0
    turned = {name: values[::-1] for name, values in GROWN["axes"].items()}
    assert cwnd.sweep({**GROWN, "axes": turned}, out=tmp_path).made == 0


def test_a_finer_range_makes_its_new_values_only(tmp_path):
    for count, made in ((3, 3), (5, 2), (2, 0)):
        axes = {"tcp.window": {"from": 10, "to": 50, "count": count}}
        plan = {**PLAN, "axes": axes, "controllers": ["reno"], "repeat": 1}
        assert cwnd.sweep(plan, out=tmp_path).made == made
    windows = sorted(cwnd.Sweep(tmp_path).runs["tcp.window"])
    assert windows == [10, 20, 30, 40, 50]


def test_rows_of_removed_values_are_kept_and_do_not_count(grown, tmp_path):
    assert cwnd.sweep(PLAN, out=grown.out).made == 0
    same(grown, cwnd.Sweep(grown.out))
    with DataSet(grown.out, read_plan(PLAN)) as data:
        assert (len(data), data.lacking) == (16, 0)
    # The plan's values come first on the page, in its order.
    page = tmp_path / "page.html"
    cwnd.Sweep(grown.out).report(page)
    packed = re.search(r'id="data">([^<]*)<', page.read_text())[1]
    axes = json.loads(gzip.decompress(base64.b64decode(packed)))["axes"]
    assert [axis["labels"] for axis in axes] == [
        ["1mbit", "2mbit", "4mbit"],
        ["red", "droptail", "20p"],
    ]


def test_points_of_a_hypercube_are_numbered(tmp_path):
    sweep = cwnd.sweep(LATIN, out=tmp_path)
    assert sweep.made == 5
    assert sorted(sweep.runs["latin_point"]) == [0, 1, 2, 3, 4]
    assert cwnd.sweep(LATIN, out=tmp_path).made == 0
    more = {**LATIN["axes"], "rate": ["2mbit", "1mbit"]}
    assert cwnd.sweep({**LATIN, "axes": more}, out=tmp_path).made == 5
    with pytest.raises(ArgumentError, match="a different `latin`: choose another directory"):
        cwnd.sweep({**LATIN, "latin": {"points": 6}}, out=tmp_path)
    wider = {**LATIN["axes"], "tcp.window": {"from": 8, "to": 10}}
    with pytest.raises(ArgumentError, match="a different `axes`: choose another directory"):
        cwnd.sweep({**LATIN, "axes": wider}, out=tmp_path)


def test_values_of_another_type_are_refused(tmp_path):
    plan = {**PLAN, "axes": {"loss": [0.0, 0.01]}, "controllers": ["reno"], "repeat": 1}
    assert cwnd.sweep(plan, out=tmp_path).made == 2
    with pytest.raises(ArgumentError, match="a different `axes`: choose another directory"):
        cwnd.sweep({**plan, "axes": {"loss": ["0%", "1%"]}}, out=tmp_path)


def test_values_that_are_written_alike_are_refused():
    with pytest.raises(PlanError, match="a text and another value are written alike"):
        read_plan({**PLAN, "axes": {"queue": ["[1, 2]", [1, 2]]}})


@pytest.fixture
def out(tmp_path):
    """A data set of `PLAN` in parts of ten runs and of six."""
    plan = read_plan(PLAN)
    runs = list(plan.runs())
    with DataSet(tmp_path / "out", plan) as data:
        data.add(run_batch(plan, runs[:10]))
        data.flush()
        data.add(run_batch(plan, runs[10:]))
    return tmp_path / "out"


def test_forgotten_runs_are_made_again(out, tmp_path):
    before = cwnd.Sweep(out).runs
    assert forget(out, "controller = 'simd' -- and nothing else") == 8
    sweep = cwnd.Sweep(out)
    assert set(sweep.runs["controller"]) == {"reno"}
    assert set(sweep.flows["key"]) == set(sweep.runs["key"])
    found = verify(out)
    assert found == found | {"parts": 2, "runs": 8, "damaged": [], "unlisted": []}
    kept = before[before["controller"] == "reno"].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, sweep.runs)
    assert forget(out, "false") == 0
    # A part without any other run goes, and one without such runs stays.
    names = [part.name for part in list_parts(out)]
    assert forget(out, f"key in {tuple(kept['key'][:5])}") == 5
    assert [part.name for part in list_parts(out)] == names[1:]
    assert cwnd.sweep(PLAN, out=out).made == 13
    same(cwnd.sweep(PLAN, out=tmp_path / "again"), cwnd.Sweep(out))
    assert forget(out, "true") == 16
    with pytest.raises(ArgumentError, match="has no runs of a sweep"):
        cwnd.Sweep(out)


def test_a_killed_command_loses_no_other_run(out, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr(forgetting, "remove_part", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            forget(out, "seed = 1")
    # The first part and the one that replaces it are both there.
    assert sum(part.runs for part in list_parts(out)) == 18
    assert len(cwnd.Sweep(out)) == 16
    assert forget(out, "seed = 1") == 8
    assert cwnd.Sweep(out).runs["seed"].tolist() == [2] * 8


def test_a_damaged_part_is_not_rewritten(out):
    file = list_parts(out)[0].file("flows")
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    with pytest.raises(ArgumentError, match=r"is damaged .*flows: wrong checksum"):
        forget(out, "seed = 1")


def test_nothing_is_forgotten_during_a_sweep(out):
    sharing = DataSet(out, read_plan(PLAN), (1, 2))
    with sharing, pytest.raises(ArgumentError, match="another sweep is writing"):
        forget(out, "true")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--forget", "nope = 1", "--out", "{out}"), 'Binder Error: Referenced column "nope"'),
        (("--forget", "true) x; select ('", "--out", "{out}"), "Parser Error"),
        (("--forget", "true"), "--forget needs --out OUT"),
        (("--forget", "true", "--out", "/nowhere"), "/nowhere has no runs of a sweep"),
        (("--forget", "true", "--out", "{out}", "--dry-run"), "--dry-run: not with --forget"),
        (("plan.toml", "--forget", "true", "--out", "{out}"), "PLAN: not with --forget"),
        (
            ("{out}/plan.toml", "--out", "{out}", "--dry-run", "--dask", "x"),
            "--dask: not with --dry-run",
        ),
        (("--dry-run", "--out", "{out}"), "needs PLAN and --out OUT"),
    ],
)
def test_commands_are_refused_in_a_line(out, capsys, arguments, text):
    before = cwnd.Sweep(out).runs
    assert run(["sweep", *(argument.format(out=out) for argument in arguments)]) == 2
    said = capsys.readouterr()
    assert text in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    pd.testing.assert_frame_equal(before, cwnd.Sweep(out).runs)


def test_an_estimate_survives_a_law_that_ends_its_process(tmp_path, command):
    (tmp_path / "mine.py").write_text(
        "import os\nclass Dies:\n"
        "    def grow(self, w, acked, cx): os._exit(3)\n"
        "    def cut(self, w, why, cx): return w / 2\n"
    )
    plan = tmp_path / "plan.toml"
    plan.write_text('controllers = ["mine.py:Dies"]\n[base]\ntime = "20s"\nflows = 1\n')
    done = command("sweep", plan, "--out", tmp_path / "out", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "1 run to make" in done.stdout


def test_an_estimate_makes_nothing(out, tmp_path, capsys):
    plan = read_plan({**PLAN, "repeat": 20})
    none = tmp_path / "none"
    found = estimate(plan, out=none)
    assert not none.exists()
    counts = {"runs": 160, "present": 0, "missing": 160, "sampled": 64}
    assert found == found | counts | {"out": str(none)}
    files = {file: file.stat().st_mtime_ns for file in out.rglob("*")}
    found = estimate(plan, out=out)
    assert files == {file: file.stat().st_mtime_ns for file in out.rglob("*")}
    assert found == found | {"runs": 160, "present": 16, "missing": 144}
    assert estimate(plan, out=out, shard=(1, 4))["missing"] == 36
    sweep = cwnd.sweep(plan, out=none)
    size = sum(file.stat().st_size for file in none.glob("*/*.parquet"))
    assert size / 3 < found["bytes"] * 160 / 144 < 3 * size
    assert found["core_s"] > 144 * sweep.runs["wall_s"].min()
    assert found["time_s"] <= found["core_s"]


def test_the_commands(out, tmp_path, capsys, check_json):
    (tmp_path / "plan.toml").write_text((out / "plan.toml").read_text().replace("= 2", "= 3", 1))
    arguments = ["sweep", str(tmp_path / "plan.toml"), "--out", str(out), "--dry-run"]
    assert run(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"16 of 24 runs are in {out}"
    assert re.fullmatch(
        r"8 runs to make: about [\d.]+ m?s on \d+ cores? (\([\d.]+ m?s on one\))?, "
        r"[\d.]+ kB on the disk \(from 8 runs\)",
        lines[1],
    )
    assert run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    check_json(document, "`cwnd sweep PLAN --out OUT --dry-run --json`")
    assert document == document | {"present": 16, "missing": 8, "sampled": 8}
    assert run([*arguments[:-1], "--shard", "2/2", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("4 runs to make")
    arguments = ["sweep", str(out / "plan.toml"), "--out", str(out), "--dry-run"]
    assert run(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"16 of 16 runs are in {out}", "no run is missing"]
    arguments = ["sweep", "--forget", "controller = 'simd'", "--out", str(out)]
    assert run(arguments) == 0
    assert capsys.readouterr().out == f"8 runs removed from {out}\n"
    assert run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {"out": str(out), "forgotten": 0}
    check_json(document, "`cwnd sweep --forget WHERE --out OUT --json`")


TRACES = """
base = "net/net.toml"
controllers = ["reno"]
[axes]
"dumbbell.trace" = ["one.txt", "two.txt"]
"""
NET = """
duration = "2s"
[dumbbell]
delay = "10ms"
queue = { kind = "droptail", limit = 50 }
trace = "../one.txt"
back = { rate = "10mbit" }
[[flow]]
controller = "reno"
"""


@pytest.fixture
def traces(tmp_path, monkeypatch) -> Path:
    """Write a plan with an axis of files, which are beside the plan and not where the test runs."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net/net.toml").write_text(NET)
    (tmp_path / "one.txt").write_text("1\n2\n3\n")
    (tmp_path / "two.txt").write_text("5\n10\n")
    (tmp_path / "plan.toml").write_text(TRACES)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "two.txt").write_text("1\n")
    monkeypatch.chdir(elsewhere)
    return tmp_path


def test_the_files_of_an_axis_are_beside_the_plan(traces):
    plan = read_plan(traces / "plan.toml")
    rates = [plan.scenario(plan.run(n)).to_dict()["dumbbell"]["trace"]["rate"] for n in (0, 1)]
    assert rates == [[1, 2, 3], [5, 10]]
    made = cwnd.sweep(plan, out=traces / "out").runs
    assert set(made["dumbbell.trace"]) == {"one.txt", "two.txt"}
    (traces / "two.txt").unlink()
    with pytest.raises(PlanError, match=r"axes: dumbbell\.trace: .*/two\.txt: No such file"):
        read_plan(traces / "plan.toml")


def test_an_axis_of_files_grows_and_a_changed_file_is_refused(traces):
    out, plan = traces / "out", traces / "plan.toml"
    cwnd.sweep(plan, out=out)
    (traces / "three.txt").write_text("7\n")
    plan.write_text(TRACES.replace('"two.txt"', '"two.txt", "three.txt"'))
    assert cwnd.sweep(plan, out=out).made == 1
    cwnd.sweep(plan, out=traces / "other")
    assert len(cwnd.Sweep([traces / "other", out])) == 3
    for name in ("two.txt", "three.txt"):
        before = (traces / name).read_text()
        (traces / name).write_text("3\n")
        with pytest.raises(ArgumentError, match=rf"different `dumbbell\.trace: {name}`"):
            cwnd.sweep(plan, out=out)
        (traces / name).write_text(before)
    assert cwnd.sweep(plan, out=out).made == 0


def test_a_base_in_python_keeps_the_contents_of_its_files(traces, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = cwnd.Scenario.from_toml(traces / "net/net.toml").to_dict()
    base["dumbbell"]["trace"] = "two.txt"
    plan = {"base": base, "controllers": ["reno"], "repeat": 2}
    cwnd.sweep(plan, out=tmp_path / "out")
    (tmp_path / "two.txt").write_text("1\n")
    with pytest.raises(ArgumentError, match="different `base`"):
        cwnd.sweep(plan, out=tmp_path / "out")
