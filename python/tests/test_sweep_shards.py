"""Shares of a sweep, and several data sets as one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import cwnd
from cwnd._base import machine
from cwnd._cli import run
from cwnd._sweeps.dataset import DataSet
from cwnd._sweeps.reading import read_plan
from cwnd._sweeps.work import run_batch
from cwnd.errors import ArgumentError, DataSetWarning

pytestmark = pytest.mark.slow

PLAN = {
    "base": {"time": "1s", "flows": 1},
    "axes": {"rate": ["1mbit", "4mbit"]},
    "controllers": ["reno", "simd"],
    "repeat": 6,
    "keep": ["flows"],
}
"""24 runs."""


def tables(sweep: cwnd.Sweep) -> list[pd.DataFrame]:
    """Runs and flows in one order, without what the clock says."""
    runs = sweep.runs.drop(columns="wall_s").sort_values("key", ignore_index=True)
    return [runs, sweep.flows.sort_values(["key", "name"], ignore_index=True)]


def same(one: cwnd.Sweep, two: cwnd.Sweep) -> None:
    for ours, theirs in zip(tables(one), tables(two), strict=True):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> cwnd.Sweep:
    return cwnd.sweep(PLAN, out=tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> list[Path]:
    """Three data sets of eight runs."""
    home = tmp_path_factory.mktemp("shards")
    for i in (1, 2, 3):
        assert cwnd.sweep(PLAN, out=home / str(i), shard=(i, 3)).made == 8
    return sorted(home.iterdir())


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 24, 30])
def test_shares_are_equal_and_cover_the_plan(tmp_path, count):
    plan, found = read_plan(PLAN), []
    for i in range(1, count + 1):
        with DataSet(tmp_path, plan, (i, count)) as data:
            own = list(data.missing())
            assert len(own) == data.lacking
            assert 24 // count <= len(own) <= -(-24 // count)
            if len(own) >= 6:
                assert {plan.run(number).controller for number in own} == {"reno", "simd"}
                assert {plan.run(number).point for number in own} == {0, 1}
            found += own
    assert sorted(found) == list(range(24))


def test_shares_in_one_directory_are_written_at_the_same_time(whole, tmp_path, monkeypatch):
    plan = read_plan(PLAN)
    with DataSet(tmp_path, plan, (1, 2)) as one, DataSet(tmp_path, plan, (2, 2)) as two:
        for data in (one, two):
            data.add(run_batch(plan, [plan.run(number) for number in data.missing()][:9]))
            data.flush()
        with pytest.raises(ArgumentError, match="another sweep is writing to"):
            DataSet(tmp_path, plan)
    with DataSet(tmp_path, plan), pytest.raises(ArgumentError, match="another sweep is writing"):
        DataSet(tmp_path, plan, (1, 2))
    assert len(cwnd.Sweep(tmp_path)) == 18
    assert cwnd.sweep(PLAN, out=tmp_path, shard=(2, 2)).made == 3
    assert cwnd.sweep(PLAN, out=tmp_path).made == 3
    same(whole, cwnd.Sweep(tmp_path))


def test_shares_need_no_locks(tmp_path, monkeypatch):
    def lock(*_, **__):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(machine, "lock", lock)
    plan = read_plan(PLAN)
    with DataSet(tmp_path, plan, (1, 2)):
        pass
    with pytest.warns(DataSetWarning, match="cannot be locked"), DataSet(tmp_path, plan):
        pass


def test_several_data_sets_are_read_as_one(whole, shards, tmp_path):
    sweep = cwnd.Sweep(shards)
    same(whole, sweep)
    assert repr(sweep).endswith("/3': 24 runs, 0 failed>")
    sql = "select r.controller, count(*) n from runs r join flows using (key) group by 1"
    assert sweep.query(sql).set_index("controller")["n"].to_dict() == {"reno": 12, "simd": 12}
    # A run counts once.
    for outs in ([*shards, whole.out], [whole.out, shards[0]], [whole.out, whole.out]):
        same(whole, cwnd.Sweep(outs))
    sweep.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "24" in page
    assert "Continue" not in page


def test_data_sets_of_different_plans_or_code_are_no_sweep(shards, tmp_path):
    other = {**PLAN, "base": {"time": "2s", "flows": 1}, "repeat": 1}
    cwnd.sweep(other, out=tmp_path / "plan")
    with pytest.raises(ArgumentError, match="are of plans with a different `base`"):
        cwnd.Sweep([shards[0], tmp_path / "plan"])
    plan = read_plan(PLAN)
    plan = replace(plan, codes=dict.fromkeys(plan.codes, "0.1+0"))
    with DataSet(tmp_path / "code", plan) as data:
        data.add(run_batch(plan, [plan.run(0)]))
    with pytest.raises(ArgumentError, match=r"have runs of reno with different code \(0\.1\+0 and"):
        cwnd.Sweep([tmp_path / "code", *shards])
    with pytest.raises(ArgumentError, match="nowhere has no runs of a sweep"):
        cwnd.Sweep([*shards, tmp_path / "nowhere"])
    with pytest.raises(ArgumentError, match="name at least one directory"):
        cwnd.Sweep([])


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/0", "-1/2", "a/b"])
def test_what_is_no_share_is_refused_in_a_line(shard, tmp_path, capsys):
    assert run(["sweep", "plan.toml", "--out", str(tmp_path / "out"), "--shard", shard]) == 2
    error = capsys.readouterr().err
    assert f"{shard!r} is not a share such as 1/8 or 8/8" in error
    assert error.count("\n") == 1


def test_the_python_function_refuses_what_is_no_share(tmp_path):
    with pytest.raises(ArgumentError, match="3/2 is not a share such as 1/8 or 8/8"):
        cwnd.sweep(PLAN, out=tmp_path / "out", shard=(3, 2))


def test_the_commands(whole, shards, tmp_path, capsys):
    plan = str(whole.out / "plan.toml")
    assert run(["sweep", plan, "--out", str(tmp_path / "1"), "--shard", "1/3"]) == 0
    assert capsys.readouterr().out.startswith("8 runs in ")
    others = [str(out) for out in shards[1:]]
    assert (
        run(["query", str(tmp_path / "1"), *others, "select count(*) n from runs", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out) == {"rows": [{"n": 24}]}
    assert run(["query", str(tmp_path / "1"), *others]) == 0
    assert "runs: 24 rows, 0 failed" in capsys.readouterr().out
    assert run(["query", str(tmp_path / "1"), "nowhere", "select 1 n"]) == 2
    assert capsys.readouterr().err == "cwnd: nowhere has no runs of a sweep\n"
