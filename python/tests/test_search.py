"""Search for the networks on which a controller is worst."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import cwnd
from cwnd._base import machine
from cwnd._cli.tables import print_search
from cwnd._search.archive import Samples
from cwnd._search.budget import Budget
from cwnd._search.confirm import judge_real
from cwnd._search.explore import sample
from cwnd._search.finding import verdict_of
from cwnd._search.networks import network
from cwnd._search.objective import OBJECTIVES
from cwnd._search.reduction import Reducer
from cwnd._search.search import Search, search
from cwnd._search.space import read_space
from cwnd.errors import ArgumentError, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def load_controls() -> ModuleType:
    """Import the controls, which are a program of `make controls` too."""
    path = Path(__file__).parents[2] / "bench" / "search_controls.py"
    spec = importlib.util.spec_from_file_location("search_controls", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


CONTROLS = load_controls()

REGRESSIONS = Path(__file__).parents[2] / "regressions"

FAULTY = {"bbr-shallow-buffer": "bbr", "vegas-large-bdp": str(CONTROLS.LAWS / "vegas.law")}
"""Controllers in which the regressions were found."""

BOUNDS = {
    "axes": {
        "rate": {"from": "1mbit", "to": "10mbit", "log": True},
        "rtt": {"from": "20ms", "to": "60ms"},
        "outage": {"from": "100ms", "to": "3s", "log": True, "off": 0.5},
        "jitter": {"from": "1ms", "to": "5ms", "off": 0.5},
    }
}
"""A small space in which the law that stops after a timeout fails."""


def stops(out: Path, budget: str = "260runs") -> Search:
    """Search for the fault of the law that stops after a timeout."""
    law = str(CONTROLS.LAWS / "stops.law")
    return search(law, bounds=BOUNDS, budget=budget, findings=1, out=out)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Search:
    return stops(tmp_path_factory.mktemp("search") / "out")


@pytest.mark.slow
def test_finding_is_reduced_to_the_outage(found: Search) -> None:
    [one] = found.findings
    assert one.reduced
    assert one.special[-1] == "outage"
    assert "an outage of " in one.sentence
    assert "jitter" not in one.network
    assert one.measured.value.high < 0.5 * one.measured.baseline.low


@pytest.mark.slow
def test_scenario_fails_its_check_and_the_reference_meets_it(found: Search) -> None:
    scenario = cwnd.Scenario.from_toml(found.files[0])
    assert not all(outcome.holds for outcome in cwnd.run(scenario).check())
    document = scenario.to_dict()
    document["flow"][0]["controller"] = "cubic"
    assert all(outcome.holds for outcome in cwnd.run(cwnd.Scenario(document)).check())


def test_values_that_neither_side_determines_confirm_nothing() -> None:
    """Some transfers of both sides do not end: a test fails by them, and so would the reference."""
    nan = math.nan
    both = {
        "completion": ((1.1, nan, nan, 5.3, 8.9, 1.0, nan, 8.0), (0.8, 9, 0.8, nan, 1, 8, 9, 1))
    }
    completion = OBJECTIVES["completion"]
    assert completion.judge(*both["completion"])[0] == "fails"
    assert Samples(both, ()).judge(completion)[0] == "undecided"
    assert Samples(both, ("mine.py:3: in grow: ValueError",)).judge(completion)[0] == "fails"


def test_budget_in_time_measures_how_long_a_run_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now, runs = 100.0, 0
    monkeypatch.setattr("time.monotonic", lambda: now)
    budget = Budget("60s")
    budget.start(lambda: runs)
    assert budget.room(0.5, 2, 32) == 2
    now, runs = 110.0, 4
    # Eight more runs until 30 s.
    assert budget.room(0.5, 2, 32) == 4
    now = 129.0
    assert budget.room(0.5, 2, 32) == 1
    now = 130.0
    assert budget.room(0.5, 2, 32) == 0


def test_differential_evolution_follows_the_sequence(tmp_path: Path) -> None:
    bounds = {"axes": {"rate": {"from": "1mbit", "to": "2mbit"}}}
    found = search("reno", against="capacity", bounds=bounds, budget="220runs", out=tmp_path)
    # 45 % of the runs, and a generation of 32 until 60 %.
    assert len(found.explored) == 99 + 32


def test_space_without_new_networks_ends_the_search(tmp_path: Path) -> None:
    bounds = {"axes": {"rate": ["1mbit", "2mbit"]}}
    found = search("reno", against="capacity", bounds=bounds, budget="60runs", out=tmp_path)
    assert found.runs == len(found.explored) == 2


@pytest.mark.parametrize("name", ["worst-7.toml", "index.html", "plan.toml"])
def test_files_of_others_are_kept(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine = 1")
    with pytest.raises(ArgumentError, match=f"out: no search wrote .*{name}: choose another"):
        search("reno", bounds=BOUNDS, out=tmp_path)
    assert [*tmp_path.iterdir()] == [tmp_path / name]


def test_cluster_that_is_absent_leaves_the_directory_free(tmp_path: Path) -> None:
    bounds = {"axes": {"rate": ["1mbit"]}}
    given = {"against": "capacity", "bounds": bounds, "budget": "60runs", "out": tmp_path}
    with pytest.raises(ArgumentError, match="no Dask scheduler answers"):
        search("reno", dask="tcp://127.0.0.1:9", **given)  # type: ignore[arg-type]
    assert search("reno", **given).runs == 1  # type: ignore[arg-type]


def test_sensitivity_has_only_what_was_measured() -> None:
    space = read_space(BOUNDS)
    objective = OBJECTIVES["goodput"]
    judge = SimpleNamespace(
        measure=lambda networks, *_: [Samples({"goodput": ((1e6,), (4e6,))}, ())]
    )
    reducer = Reducer(judge, space, objective, [1], lambda _: 1)  # type: ignore[arg-type]
    assert [*reducer.sensitivity(("4mbit", "40ms", None, None))] == ["rate"]


def test_runs_without_a_value_do_not_confirm_alone(found: Search) -> None:
    """In some runs a flow gets nothing, and the reference is worse in the others."""
    objective = OBJECTIVES["starvation"]
    own, base = (math.inf, *[3.0] * 7), (30.0, *[20.0] * 7)
    grade, measured = objective.judge(own, base)
    assert grade == "fails"
    for errors, verdict in (((), "undecided"), (("error",), "confirmed")):
        judged, _ = Samples({"starvation": (own, base)}, errors).judge(objective)
        assert verdict_of(judged) == verdict
    (finding,) = found.findings
    one = replace(finding, objective=objective, measured=measured, values=(own, base))
    assert "(without 1 of 8 runs, which have none)" in one.comparison


def test_errors_and_numbers_of_flows_are_shown(
    found: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    (finding,) = found.findings
    network = {**finding.network, "others": "reno", "others_count": 1, "flows": 2}
    special = ("flows", "others", "others_count")
    one = replace(finding, network=network, special=special, errors=("NameError: x",))
    assert one.sentence == "2 flows and beside reno in 1 flow"
    print_search(replace(found, findings=(one,)))
    assert "error: NameError: x" in capsys.readouterr().out


@pytest.mark.slow
def test_other_searches_need_another_directory(found: Search) -> None:
    law = found.controller
    with pytest.raises(ArgumentError, match="a different `objective`"):
        search(law, bounds=BOUNDS, objective="loss", budget="2runs", out=found.out)
    with pytest.raises(ArgumentError, match="a different `bounds`"):
        search(law, bounds={"axes": {"rtt": ["40ms"]}}, budget="2runs", out=found.out)
    before = {file: file.read_bytes() for file in found.files}
    for other in ({"controller": "reno"}, {"controller": law, "against": "reno"}):
        with pytest.raises(ArgumentError, match="a different `controllers`"):
            search(**other, bounds=BOUNDS, budget="2runs", out=found.out)
    assert before == {file: file.read_bytes() for file in found.files}


def test_what_is_not_reduced_is_not_said_to_be_needed(found: Search) -> None:
    (finding,) = found.findings
    assert finding.network_sentence == f"It needs {finding.sentence}."
    whole = replace(finding, reduced=False)
    assert whole.network_sentence.endswith("; the reduction is not complete.")


@pytest.mark.slow
def test_page_has_the_findings_and_their_runs(found: Search, tmp_path: Path) -> None:
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert found.findings[0].sentence[1:] in page
    packed = re.search('id="data">([^<]*)<', page)
    assert packed is not None
    data = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    assert len(data["networks"]) == len(found.explored)
    [run] = data["runs"]
    own, base = (side["goodputs"][0][2][1] for side in run["sides"])
    assert np.mean(own) < 0.5 * np.mean(base)
    for one in (*data["networks"], *data["findings"]):
        assert all(0 <= place <= 1 for place in one["places"].values())


@pytest.mark.slow
def test_one_core_finds_the_same(
    found: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "count_cores", lambda: 1)
    assert plain(stops(tmp_path / "out")) == plain(found)


@pytest.mark.slow
def test_archive_is_resumed_and_queried(found: Search) -> None:
    rows = "select count(*) n from runs"
    before = cwnd.Sweep(found.out).query(rows)["n"][0]
    assert plain(stops(found.out)) == plain(found)
    assert cwnd.Sweep(found.out).query(rows)["n"][0] == before == found.runs


def plain(found: Search) -> object:
    """Return a result without its directory."""
    document = found.to_json()
    for one in document["findings"]:
        one.pop("file")
    return {**document, "out": ""}


def test_search_ends_when_no_network_is_left(tmp_path: Path) -> None:
    bounds = {"axes": {"rate": ["1mbit", "2mbit"]}}
    assert search("reno", bounds=bounds, budget="300runs", out=tmp_path / "out").runs == 4


@pytest.mark.slow
def test_command(command: Callable[..., object], tmp_path: Path) -> None:
    bounds = tmp_path / "bounds.toml"
    bounds.write_text('[axes]\nrate = { from = "1mbit", to = "2mbit" }\n')
    made = command(
        "search", "reno", "--against", "capacity", "--bounds", bounds, "--budget", "6runs",
        "--out", tmp_path / "out", "--json",
    )  # fmt: skip
    document = json.loads(made.stdout)  # type: ignore[attr-defined]
    assert document["runs"] <= 6
    assert document["findings"] == []
    shown = command(
        "search", "reno", "--against", "capacity", "--bounds", bounds, "--budget", "6runs",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert "networks tried: a larger --budget tries more" in shown.stdout  # type: ignore[attr-defined]
    assert "No weakness was confirmed" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.parametrize("file", sorted(REGRESSIONS.iterdir()), ids=lambda file: file.stem)
def test_regression(file: Path) -> None:
    """The repaired controller passes the check of a finding, and the faulty one does not."""
    scenario = cwnd.Scenario.from_toml(file)
    assert all(outcome.holds for outcome in cwnd.run(scenario).check())
    document = scenario.to_dict()
    document["flow"][0]["controller"] = FAULTY[file.stem]
    assert not all(outcome.holds for outcome in cwnd.run(cwnd.Scenario(document)).check())


def test_what_the_kernel_cannot_run_is_noted() -> None:
    scenario = cwnd.Scenario(network({}, "mine"), {"mine": cwnd.WindowLaw})
    found = judge_real(OBJECTIVES["goodput"], [scenario], [1])
    assert (found.verdict, found.measured) == ("not run", None)
    assert "controllers written in Python run on sim only" in found.note


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A law that stops after a timeout", "reno beside itself, loss"])
def test_control(name: str, tmp_path: Path) -> None:
    [control] = [one for one in CONTROLS.CONTROLS if one.name == name]
    assert control.holds(control.run(1, str(tmp_path / "out")))


def test_networks_stay_within_the_bounds() -> None:
    space = read_space(BOUNDS)
    with pytest.raises(ArgumentError, match="outside of the bounds"):
        space.values([1.2, 0.5, 0.5, 0.5])
    assert space["rate"].bounded(23.0, 1) == "10mbit"
    seen: list[np.ndarray] = []

    def keep(points: np.ndarray) -> np.ndarray:
        seen.extend(points)
        return points[:, 0]

    sample(keep, 4, lambda _: 32 - len(seen), 1)
    for values in map(space.values, seen):
        for one, value in zip(space.parameters, values, strict=True):
            assert value is None or one.allows(value)


@pytest.mark.parametrize(
    ("axes", "problem"),
    [
        ({"speed": [1]}, "axes.speed: unknown parameter; there are rate, rtt"),
        ({"loss": [1.0], "loss_burst": [2.0]}, "axes.loss: at most 0.667 beside bursts of 2"),
        ({"loss": ["much"], "loss_burst": [2.0]}, "bounds: axes.loss: a value is not a number"),
        ({"loss": {"from": 0.1, "to": 2.0}}, "axes.loss: .*a probability is from 0 to 1"),
        ({"rate": {"from": 1, "to": 100}}, "axes.rate: .*a rate is at least 8bit"),
        ({"buffer": {"from": 1, "to": 9}}, 'axes.buffer: a buffer is such as "1bdp" or'),
        ({"fall": ["half"]}, "axes.fall: 'half' is not a number"),
        ({"others": ["cubic", "nope"]}, 'axes.others: .*unknown controller "nope"'),
        ({"others": ["cubic"], "others_count": [1, "x"]}, "axes.others_count: .*whole number"),
        ({"rate": {"from": "2mbit", "to": "1mbit"}}, "axes.rate: 'from' must be below 'to'"),
        ({"rate": {"from": "1mbit", "to": "2mbit", "off": 0.5}}, "axes.rate: 'off' is for"),
        ({"jitter": {"from": "1ms", "to": "2ms", "off": 1}}, "axes.jitter: 'off' is the share"),
        ({"fall_time": {"from": "1s", "to": "2s", "when": "fall"}}, "axes.fall_time: 'when' must"),
    ],
)
def test_wrong_bounds(axes: dict[str, object], problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        read_space({"axes": axes})


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"objective": "speed"}, "objective: 'speed' is not one of goodput, delay"),
        ({"objective": "harm"}, "bounds: the objective harm needs the parameter `others`"),
        ({"objective": "loss", "against": "capacity"}, "objective: against the capacity"),
        ({"budget": "many"}, "budget: 'many' is neither a time"),
        ({"budget": "0runs"}, "budget: 0runs is no run"),
        ({"budget": "-5runs"}, "budget: '-5runs' is neither a time"),
        ({"budget": "1runs"}, "budget: 1runs is too little for one network"),
        ({"findings": 0}, "findings: 0 is not a whole number above 0"),
        ({"findings": "3"}, "findings: '3' is not a whole number above 0"),
        ({"seed": 1.5}, "seed: 1.5 is not a whole number from 0 to"),
    ],
)
def test_wrong_arguments(changed: dict[str, object], problem: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=problem):
        search("reno", bounds=BOUNDS, out=tmp_path / "out", **changed)  # type: ignore[arg-type]
