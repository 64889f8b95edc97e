"""Sweeps and evaluations in real time, with the simulator in place of the emulated network."""

from __future__ import annotations

import json

import pytest

import cwnd
import cwnd._runs.real_time
from cwnd import _native
from cwnd._experiments.experiment import experiments, read_experiment
from cwnd.errors import ArgumentError, KernelError, PlanError

PLAN = {
    "base": {"duration": "3s", "dumbbell": {"rate": "4mbit", "delay": "5ms"}, "flow": []},
    "axes": {"dumbbell.queue": ["10p", "20p"]},
    "controllers": ["kernel:cubic"],
    "repeat": 2,
    "on": "linux",
}
PLAN["base"]["flow"].append({"controller": "kernel:reno"})

EXPERIMENT = """
[scenario]
duration = "4s"
dumbbell = { rate = "10mbit", delay = "20ms" }

[[scenario.flow]]
name = "candidate"
controller = "cubic"

[axes]
"dumbbell.queue" = ["20p", "40p", "80p"]

[linux]
"dumbbell.queue" = ["40p"]

[[test]]
id = "used"
section = "6.1"
suites = ["rfc9743"]
title = "Utilisation"
metric = "utilization"
meets = [">= 1 baseline", ">= 10%"]
fails = "< 5%"
reason = "A reason."
source = "A source."
finding = "Uses {value}."
"""


class Fake:
    """Replacement of `_native.run_real`."""

    def __init__(self):
        self.runs = []
        self.limits = []

    def __call__(self, scenario, seed, on, progress):
        self.runs.append((json.loads(scenario)["flow"][0]["controller"], seed, on))
        (record,) = _native.simulate([(scenario, seed)])
        progress(1.0)
        limit = self.limits.pop(0) if self.limits else None
        return {"record": record, "limit": limit}


@pytest.fixture
def real(monkeypatch):
    fake = Fake()
    monkeypatch.setattr(_native, "run_real", fake, raising=False)
    if not hasattr(_native, "check_real"):
        monkeypatch.setattr(_native, "check_real", lambda *_: None, raising=False)
    monkeypatch.setattr(cwnd._runs.real_time, "emulates", lambda: None)
    monkeypatch.setattr("sys.platform", "linux")
    return fake


def test_each_run_is_made_on_the_backend(real, tmp_path):
    made = cwnd.sweep(PLAN, out=tmp_path)
    assert made.made == 4
    assert not made.failed
    assert real.runs == [("kernel:cubic", seed, "linux") for seed in (1, 1, 2, 2)]
    assert (made.runs["goodput_bps"] > 1e6).all()
    assert cwnd.sweep(PLAN, out=tmp_path).made == 0


def test_a_late_emulator_is_tried_again(real, tmp_path):
    real.limits = ["late", "late", None]
    made = cwnd.sweep({**PLAN, "axes": {}, "repeat": 1}, out=tmp_path)
    assert (len(real.runs), made.failed) == (3, 0)


def test_runs_that_were_always_late_are_repeated_by_the_next_sweep(real, tmp_path):
    plan = {**PLAN, "axes": {}, "repeat": 1}
    real.limits = ["2 % late"] * 3
    assert cwnd.sweep(plan, out=tmp_path).errors == {"lost: in each of 3 runs 2 % late": 1}
    again = cwnd.sweep(plan, out=tmp_path)
    assert (again.made, again.failed, len(again)) == (1, 0, 1)


def test_another_backend_is_another_data_set(real, tmp_path):
    cwnd.sweep(PLAN, out=tmp_path)
    with pytest.raises(ArgumentError, match="a plan with a different `on`"):
        cwnd.sweep({**PLAN, "on": "sim"}, out=tmp_path)
    assert real.runs


def test_a_plan_that_the_backend_cannot_run(real, tmp_path):
    with pytest.raises(PlanError, match="on: 'moon' is not one of sim, udt, linux, quic"):
        cwnd.sweep({**PLAN, "on": "moon"}, out=tmp_path)
    with pytest.raises(PlanError, match="on: controllers written in Python run on sim only"):
        cwnd.sweep({**PLAN, "controllers": [Law]}, out=tmp_path)
    with pytest.raises(ArgumentError, match="a sweep on linux runs on this machine only"):
        cwnd.sweep(PLAN, out=tmp_path, dask="tcp://127.0.0.1:1")
    assert not real.runs


@pytest.mark.skipif(not hasattr(_native, "check_real"), reason="needs Linux")
def test_an_unsupported_point_is_named(real, tmp_path):
    with pytest.raises(PlanError, match=r"plan: point 0 \(dumbbell.queue = 10p\): "):
        cwnd.sweep({**PLAN, "controllers": ["copa"]}, out=tmp_path)
    assert not real.runs


def test_missing_privileges_are_one_line(monkeypatch, tmp_path, real):
    def fails():
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(cwnd._runs.real_time, "emulates", fails)
    with pytest.raises(KernelError, match="--on linux needs root"):
        cwnd.sweep(PLAN, out=tmp_path)
    assert not real.runs


def test_the_card_of_a_kernels_controller(real, monkeypatch, tmp_path):
    one = read_experiment("one", EXPERIMENT)
    monkeypatch.setattr("cwnd._experiments.experiment._all", lambda: (one,))
    (card,) = cwnd.evaluate(["kernel:reno"], on="linux", out=tmp_path)
    assert {controller for controller, *_ in real.runs} == {"kernel:reno", "kernel:cubic"}
    assert len(real.runs) == 2 * 3
    assert (card.on, card.to_json()["on"]) == ("linux", "linux")
    (result,) = card.results
    assert (result.grade, result.baseline) == ("meets", "kernel:cubic")
    assert [cell.label for cell in result.cells] == ["buffer 40 packets"]
    assert card.command(result).endswith("--test used --on linux")
    assert card.title.endswith(", in the kernel's TCP")


def test_a_suite_without_tests_in_real_time():
    with pytest.raises(ArgumentError, match="suite: rmcat has no tests with --on linux"):
        experiments("rmcat", on="linux")
    with pytest.raises(ArgumentError, match="'udt' is not one of sim, linux"):
        experiments(on="udt")
    with pytest.raises(ArgumentError, match="'leo' is not a test of any suite with --on linux: "):
        experiments(names=["leo"], on="linux")


def test_every_experiment_in_real_time_is_supported(real):
    for each in experiments(on="linux"):
        plan = cwnd._sweeps.reading.read_plan(each.plan(["kernel:bbr", "simd"], 3))
        assert plan.points == 1
    assert not real.runs


class Law:
    """A law written in Python."""

    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w / 2
