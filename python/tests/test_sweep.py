from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import cwnd
from cwnd._sweeps import dataset, work
from cwnd._sweeps import sweep as sweeping
from cwnd._sweeps.dataset import DataSet, schemas
from cwnd._sweeps.reading import read_plan
from cwnd._sweeps.work import failed_batch, run_batch
from cwnd._sweeps.workers import Cores
from cwnd.errors import ArgumentError, PlanError

pytestmark = pytest.mark.slow

PLAN = {
    "base": {"time": "4s", "flows": 2},
    "axes": {"rate": ["1mbit", "4mbit"], "tcp.window": [10, 1000]},
    "controllers": ["reno", "simd"],
    "reference": "cubic",
    "repeat": 3,
    "keep": ["flows", "links", "series"],
}

KEYS = {"runs": ["key"], "flows": ["key", "name"], "links": ["key", "name"]}
KEYS["series"] = ["key", "flow", "time_s"]


def tables(sweep: cwnd.Sweep) -> dict[str, pd.DataFrame]:
    """All tables in one order, without what the clock says."""
    made = {}
    for name, keys in KEYS.items():
        frame = getattr(sweep, name).sort_values(keys, ignore_index=True)
        made[name] = frame.drop(columns="wall_s", errors="ignore")
    return made


def same(one: cwnd.Sweep, two: cwnd.Sweep) -> None:
    ours, theirs = tables(one), tables(two)
    for name, frame in ours.items():
        pd.testing.assert_frame_equal(frame, theirs[name], check_exact=True)


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> cwnd.Sweep:
    return cwnd.sweep(PLAN, out=tmp_path_factory.mktemp("sweep"))


def test_the_tables_have_their_documented_columns(swept):
    for name, schema in schemas(read_plan(PLAN)).items():
        for part in (swept.out / name).iterdir():
            assert parquet.read_schema(part).equals(schema)
    assert swept.runs.shape[0] == len(swept) == 24
    assert swept.made == 24
    assert swept.errors == {}
    assert not swept.runs["key"].duplicated().any()
    assert repr(swept) == f"<Sweep '{swept.out}': 24 runs, 0 failed>"


def test_a_row_is_a_run(swept):
    row = swept.runs.query(
        "rate == '4mbit' and `tcp.window` == 10 and controller == 'simd' and seed == 3"
    ).iloc[0]
    assert row["reference"] == "cubic"
    (run,) = (
        run
        for run in read_plan(PLAN).runs()
        if (run.point, run.controller, run.seed) == (2, "simd", 3)
    )
    scenario = read_plan(PLAN).scenario(run)
    result = cwnd.run(scenario, 3)
    for name in ("jain", "goodput_bps", "utilization", "loss_rate", "stability_index"):
        assert row[name] == result.metrics[name]
    assert row["queue_delay_p95_s"] == result.metrics["queue_delay_s"]["p95"]
    assert row["cov_10rtt"] == result.metrics["smoothness"][1]["cov"]
    ours, theirs = (result.goodput_bps(flow) for flow in result.measured_flows)
    # The seed is odd: the first flow is the reference's.
    assert [flow["controller"] for flow in result.measured_flows] == ["simd", "cubic"]
    assert row["share"] == ours / (ours + theirs)
    for name in ("flows", "links"):
        frame = getattr(swept, name)
        kept = frame[frame["key"] == row["key"]].drop(columns="key").set_index("name")
        expected = getattr(result, name)
        pd.testing.assert_frame_equal(
            kept[expected.columns].convert_dtypes(), expected.convert_dtypes(), check_exact=True
        )
    series = swept.series[swept.series["key"] == row["key"]]
    assert series["window"].tolist() == pytest.approx(result.samples["window"], nan_ok=True)


def test_two_sweeps_are_equal(swept, tmp_path):
    same(swept, cwnd.sweep(PLAN, out=tmp_path))


def test_what_is_there_is_not_made_again(swept):
    before = {path: path.stat().st_mtime_ns for path in swept.out.glob("*/*")}
    again = cwnd.sweep(PLAN, out=swept.out)
    assert again.made == 0
    assert before == {path: path.stat().st_mtime_ns for path in swept.out.glob("*/*")}


def test_more_seeds_and_controllers_are_added(swept, tmp_path):
    small = {**PLAN, "repeat": 1, "controllers": ["reno"]}
    assert cwnd.sweep(small, out=tmp_path).made == 4
    assert cwnd.sweep({**PLAN, "controllers": ["reno"]}, out=tmp_path).made == 8
    grown = cwnd.sweep(PLAN, out=tmp_path)
    assert grown.made == 12
    same(swept, grown)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"base": {"time": "5s", "flows": 2}}, "base"),
        ({"axes": {"rate": ["1mbit", "5mbit"]}}, "axes"),
        ({"reference": None}, "reference"),
        ({"keep": ["flows"]}, "keep"),
    ],
)
def test_runs_of_another_plan_are_refused(change, key, swept):
    before = (swept.out / "plan.toml").read_text()
    with pytest.raises(ArgumentError, match=f"a different `{key}`: choose another directory"):
        cwnd.sweep({**PLAN, **change}, out=swept.out)
    assert (swept.out / "plan.toml").read_text() == before


def test_runs_by_other_code_are_refused(command, tmp_path):
    law = tmp_path / "mine.py"
    law.write_text(
        "class Law:\n"
        "    def grow(self, w, acked, cx):\n        return w + acked / w\n"
        "    def cut(self, w, why, cx):\n        return w / 2\n"
    )
    path = tmp_path / "plan.toml"
    path.write_text('controllers = ["mine.py:Law"]\n[base]\ntime = "4s"\nflows = 1\n')
    assert cwnd.sweep(path, out=tmp_path / "out").made == 1
    law.write_text(law.read_text() + "# Changed.\n")
    with pytest.raises(ArgumentError, match=r"runs of mine\.py:Law with different code") as error:
        cwnd.sweep(path, out=tmp_path / "out")
    _, _, removal = str(error.value).partition(", or remove them: cwnd ")
    assert command(*shlex.split(removal)).stdout.startswith("1 run removed")
    assert cwnd.sweep(path, out=tmp_path / "out").made == 1


def test_points_with_equal_scenarios_are_different_runs(tmp_path):
    plan = {
        **PLAN,
        "axes": {"rate": ["1mbit", "1000kbit", "2mbit"], "tcp.window": {"from": 8, "to": 9}},
        "latin": {"points": 5},
        "repeat": 1,
    }
    read = read_plan(plan)
    with DataSet(tmp_path, read) as data:
        data.add(run_batch(read, list(read.runs())[:2]))
    sweep = cwnd.sweep(plan, out=tmp_path)
    assert sweep.made == 28
    assert not sweep.runs["key"].duplicated().any()
    joined = sweep.query("select * from runs join flows using (key)")
    assert len(joined) == len(sweep.flows) == 60


def test_a_data_set_counts_the_runs_of_the_plan(swept):
    for change, runs in (({"controllers": ["cubic"]}, 0), ({"controllers": ["simd"]}, 12)):
        with DataSet(swept.out, read_plan({**PLAN, **change})) as data:
            assert len(data) == runs
    with DataSet(swept.out, read_plan({**PLAN, "reference": "aiad"})) as data:
        assert len(data) == 0
    with DataSet(swept.out, read_plan(PLAN)) as data:
        assert len(data) == 24


def test_a_sweep_that_was_killed_at_once_goes_on(tmp_path):
    (tmp_path / ".lock").touch()
    remains = [tmp_path / f".{digit * 32}.tmp" for digit in "01"]
    for file in remains:
        file.write_text("controllers = [")
    os.utime(remains[0], (0, 0))
    assert cwnd.sweep({**PLAN, "repeat": 1}, out=tmp_path).made == 8
    # The younger file may be that of a sweep on another machine.
    assert [file.exists() for file in remains] == [False, True]


class Wordy:
    """Fails with an error of several lines."""

    def grow(self, w, acked, cx):
        raise ValueError("one\n  two")

    def cut(self, w, why, cx):
        return w


def test_an_error_is_one_line(tmp_path):
    sweep = cwnd.sweep({"base": {"time": "4s"}, "controllers": [Wordy]}, out=tmp_path)
    (error,) = sweep.errors
    assert error.endswith(": in grow: ValueError: one two")


def test_directories_that_hold_something_else_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ArgumentError, match="is not empty and has no sweep"):
        cwnd.sweep(PLAN, out=tmp_path)
    with pytest.raises(ArgumentError, match="is not a directory"):
        cwnd.sweep(PLAN, out=tmp_path / "thesis.tex")
    with pytest.raises(ArgumentError, match="out: cannot create /proc/none: No such file"):
        cwnd.sweep(PLAN, out="/proc/none")
    with pytest.raises(ArgumentError, match="has no runs of a sweep"):
        cwnd.Sweep(tmp_path)


def test_tables_that_are_not_kept(tmp_path):
    plan = {**PLAN, "keep": [], "repeat": 1}
    sweep = cwnd.sweep(plan, out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".lock",
        "manifest",
        "plan.toml",
        "runs",
    ]
    with pytest.raises(ArgumentError, match="has no table flows: name it in `keep`"):
        _ = sweep.flows


def test_one_sweep_at_a_time(tmp_path):
    cwnd.sweep({**PLAN, "repeat": 1}, out=tmp_path)
    with (tmp_path / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArgumentError, match="another sweep is writing to"):
            cwnd.sweep(PLAN, out=tmp_path)
    assert cwnd.sweep(PLAN, out=tmp_path).made == 16


class Weary:
    """Gives up when its window is large: at a point of the grid, and not at another."""

    def grow(self, w, acked, cx):
        if w > 20:
            raise RuntimeError("no more than 20")
        return w + acked / w

    def cut(self, w, why, cx):
        return w - 0.5 * w


def test_a_run_that_fails_is_a_row(swept, tmp_path):
    sweep = cwnd.sweep({**PLAN, "controllers": ["reno", Weary, "simd"]}, out=tmp_path)
    runs = sweep.runs
    assert len(runs) == 36
    failed = runs[runs["error"].notna()]
    assert set(failed["controller"]) == {"python:Weary"}
    assert 0 < len(failed) < 12
    (error,) = sweep.errors
    assert error.startswith("test_sweep.py:")
    assert error.endswith(": in grow: RuntimeError: no more than 20")
    assert failed[["jain", "wall_s", "share", "bottleneck"]].isna().all(axis=None)
    assert not set(failed["key"]) & set(sweep.flows["key"])
    # The other runs of the same batches are what they are without it.
    others = runs[runs["controller"] != "python:Weary"].sort_values("key", ignore_index=True)
    expected = swept.runs.sort_values("key", ignore_index=True)
    pd.testing.assert_frame_equal(others.drop(columns="wall_s"), expected.drop(columns="wall_s"))
    # The error is the answer: it is not asked for again.
    assert cwnd.sweep({**PLAN, "controllers": ["reno", Weary, "simd"]}, out=tmp_path).made == 0


class Endless(Weary):
    def grow(self, w, acked, cx):
        # It holds the GIL.
        return sum(range(10**12))


class Deadly(Weary):
    def grow(self, w, acked, cx):
        os._exit(3)


class Attached(Weary):
    def __init__(self):
        self.lock = threading.Lock()


def test_laws_that_do_not_return_are_rows(tmp_path):
    plan = {"base": {"time": "20s", "flows": 1}, "controllers": ["reno", Endless, Deadly]}
    sweep = cwnd.sweep({**plan, "time_limit": "1s"}, out=tmp_path)
    assert sweep.runs.set_index("controller")["error"].dropna().to_dict() == {
        "python:Endless": "the run took more than 1 s",
        "python:Deadly": "lost: its process died (status 3)",
    }
    # A lost run is repeated, one that took too long is not; the limit may change.
    assert cwnd.sweep({**plan, "time_limit": "1min"}, out=tmp_path).made == 1


def test_a_simulation_has_a_time_limit(tmp_path, check_json):
    base = {"time": "2h", "flows": 2, "rate": "10gbit"}
    plan = {"base": base, "controllers": ["reno"], "time_limit": "100ms"}
    swept = cwnd.sweep(plan, out=tmp_path)
    assert swept.errors == {"the run took more than 0.1 s": 1}
    check_json(swept.to_json(), "`cwnd sweep PLAN --out OUT --json`")


def test_a_law_that_cannot_be_sent_to_a_process_is_refused(tmp_path):
    with pytest.raises(PlanError, match=r"python:Attached.* cannot be sent to another process"):
        cwnd.sweep({**PLAN, "controllers": [Attached()]}, out=tmp_path)


def test_a_point_that_only_the_run_refuses_is_a_row(tmp_path, monkeypatch):
    plan = read_plan(PLAN)
    monkeypatch.setattr(type(plan), "check", lambda _: None)
    bad = read_plan({**PLAN, "axes": {"rate": ["1mbit", "0bit"], "flow[9].count": [1]}})
    table = run_batch(bad, list(bad.runs()))["runs"]
    assert table.num_rows == 12
    errors = set(table["error"].to_pylist())
    assert errors == {
        "ArgumentError: set: flow[9].count: flow has 1 items, numbered from 0",
        "ArgumentError: rate: '0bit' is not a rate such as 15mbit: it must be above 0 and finite",
    }
    assert len(set(table["key"].to_pylist())) == 12
    bad = read_plan({**PLAN, "axes": {"rate": ["1mbit", "0bit"]}})
    errors = run_batch(bad, list(bad.runs()))["runs"]["error"].to_pylist()
    assert errors.count(None) == 6
    assert len(set(errors)) == 2


def test_lost_runs_are_made_again(swept, tmp_path):
    plan = read_plan(PLAN)
    runs = list(plan.runs())
    with DataSet(tmp_path, plan) as data:
        data.add(run_batch(plan, runs[:10]))
        data.add(failed_batch(plan, runs[10:14], "lost: its worker died"))
    assert cwnd.Sweep(tmp_path).errors == {"lost: its worker died": 4}
    again = cwnd.sweep(PLAN, out=tmp_path)
    assert again.made == 14
    assert len(list((tmp_path / "runs").iterdir())) == 2
    same(swept, again)


def test_a_part_that_is_not_complete_does_not_count(swept, tmp_path):
    plan = read_plan(PLAN)
    runs = list(plan.runs())
    with DataSet(tmp_path, plan) as data:
        data.add(run_batch(plan, runs[:5]))
        data.flush()
        data.add(run_batch(plan, runs[5:9]))
    # As a crash leaves it that comes before the last file.
    _, last = sorted((tmp_path / "manifest").iterdir())
    last.unlink()
    assert len(cwnd.Sweep(tmp_path)) == 5
    assert cwnd.sweep(PLAN, out=tmp_path).made == 19
    same(swept, cwnd.Sweep(tmp_path))


def test_parts_are_written_now_and_then(swept, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "PART_RUNS", 5)
    monkeypatch.setattr(sweeping, "MAX_BATCH", 2)
    sweep = cwnd.sweep(PLAN, out=tmp_path)
    sizes = [parquet.read_metadata(part).num_rows for part in (tmp_path / "runs").iterdir()]
    assert sum(sizes) == 24
    assert max(sizes) <= 6
    same(swept, sweep)


def test_a_batch_ends_by_its_time(swept, tmp_path, monkeypatch):
    sizes = []

    class Noted(Cores):
        def slots(self):
            return 1

        def submit(self, runs):
            future = super().submit(runs)
            future.add_done_callback(lambda done: sizes.append(done.result()["runs"].num_rows))
            return future

    # A clock that only the runs of one point move, by four seconds each.
    clock = [0.0]

    def figures(plan, run, result):
        clock[0] += 4.0 * (run.point == 3)
        return real(plan, run, result)

    real = work._figures
    monkeypatch.setattr(work, "_figures", figures)
    monkeypatch.setattr(work, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(sweeping, "Cores", Noted)
    monkeypatch.setattr(sweeping, "IN_FLIGHT", 1)
    sweep = cwnd.sweep(PLAN, out=tmp_path)
    # The first batch has twelve runs, and ends after the second slow one.
    assert sizes == [8, 8, 4, 2, 1, 1]
    assert sweep.made == 24
    same(swept, sweep)


def test_progress_goes_up(tmp_path):
    seen: list[float] = []
    cwnd.sweep(PLAN, out=tmp_path, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


LONG = """
controllers = ["reno"]
repeat = 1000
[base]
rate = "100mbit"
time = "20s"
flows = 2
"""


class Add:
    """Adds a packet in each round trip, and halves the window."""

    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w / 2


@pytest.mark.parametrize("law", ["reno", Add])
def test_an_interrupt_keeps_the_finished_runs_of_a_batch(tmp_path, monkeypatch, law):
    finished = 0

    def count(runs, seconds):
        nonlocal finished
        for run in runs:
            yield run
            finished += 1

    def interrupt(done: float) -> None:
        assert done == 0.0
        if finished > 0:
            raise KeyboardInterrupt

    # A batch takes longer than any test.
    for module in ("work", "processes"):
        monkeypatch.setattr(f"cwnd._sweeps.{module}.begun", count)
    plan = {
        "base": {"rate": "20mbit", "time": "20s", "flows": 2},
        "controllers": [law],
        "repeat": 100_000,
        "time_limit": "1h",
    }
    with pytest.raises(KeyboardInterrupt):
        cwnd.sweep(plan, out=tmp_path, progress=interrupt)
    made = cwnd.Sweep(tmp_path)
    assert len(made) >= finished > 0
    assert made.failed == 0


def test_an_interrupted_sweep_goes_on(tmp_path, spawn, command):
    path, out = tmp_path / "plan.toml", tmp_path / "out"
    path.write_text(LONG)
    arguments = [sys.executable, "-m", "cwnd", "sweep", path, "--out", out]
    # Runs are written at the interrupt. A loaded machine may have made none by then.
    for seconds in (0.5, 5, 30):
        process = spawn(*arguments, stderr=subprocess.PIPE, text=True)
        assert "1,000 runs: 1 point × 1 controller × 1,000 seeds" in process.stderr.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        if (out / "runs").exists():
            break
    done = len(cwnd.Sweep(out))
    assert 0 < done < 1000
    assert said == (
        f"cwnd: {done} of 1,000 runs are in {out}; the same command resumes the sweep\n"
        "cwnd: interrupted\n"
    )
    before, wanted = set(cwnd.Sweep(out).runs["seed"]), set(range(1, done + 4))
    path.write_text(LONG.replace("1000", str(done + 3)))
    finished = command("sweep", path, "--out", out, "--json")
    assert finished.returncode == 0, finished.stderr
    document = json.loads(finished.stdout)
    made = document.pop("made")
    assert document.pop("conventions") == ["linux"]
    assert document == {"out": str(out), "runs": len(cwnd.Sweep(out)), "failed": 0, "errors": []}
    seeds = cwnd.Sweep(out).runs["seed"]
    assert made == len(wanted - before) > 0
    assert set(seeds) == wanted | before
    assert not seeds.duplicated().any()


def test_the_command(tmp_path, command):
    path = tmp_path / "plan.toml"
    path.write_text(LONG.replace("1000", "3").replace("100mbit", "1mbit"))
    done = command("sweep", path, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "cwnd: 3 runs: 1 point × 1 controller × 3 seeds\n"
    assert done.stdout == f"3 runs in {tmp_path / 'out'}; TCP conventions: linux\n"
    done = command("sweep", path, "--out", tmp_path / "out")
    there = f"3 runs in {tmp_path / 'out'}, 3 of them before"
    assert done.stdout == f"{there}; TCP conventions: linux\n"
    path.write_text("seed = 5\n")
    done = command("sweep", path, "--out", tmp_path / "other")
    assert done.returncode == 2
    assert done.stderr == (
        f"cwnd: {path}: seed: unknown key; the keys of a plan are base, axes, latin, controllers, "
        "reference, repeat, seeds, keep, measures, on, time_limit\n"
    )
    assert not (tmp_path / "other").exists()
    done = command("sweep", tmp_path / "none.toml", "--out", tmp_path / "other")
    assert done.stderr == f"cwnd: {tmp_path / 'none.toml'}: No such file or directory\n"
    (tmp_path / "file").write_text("")
    path.write_text(LONG.replace("1000", "3"))
    done = command("sweep", path, "--out", tmp_path / "file")
    assert done.stderr.endswith(f"cwnd: --out: {tmp_path / 'file'} is not a directory\n")


def test_memory_does_not_grow_with_the_runs():
    code = """
import resource, tempfile
import cwnd
from cwnd._sweeps import dataset
dataset.PART_RUNS = 50
plan = {"base": {"time": "1s", "flows": 1, "rate": "1mbit"}, "axes": {"sample": ["10ms"]},
        "controllers": ["reno"], "keep": ["series"]}
for count in (100, 800):
    cwnd.sweep(plan | {"repeat": count}, out=tempfile.mkdtemp())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    few, many = map(int, subprocess.check_output([sys.executable, "-c", code]).split())
    assert many - few < 12_000


def test_fields_are_not_null_where_they_are_known(swept):
    for name in KEYS:
        schema = parquet.read_schema(next((swept.out / name).iterdir()))
        assert not schema.field("key").nullable
    assert schemas(read_plan(PLAN))["runs"].field("tcp.window").type == pa.int64()
