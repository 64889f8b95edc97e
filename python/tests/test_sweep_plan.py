from __future__ import annotations

import datetime as dt
import functools
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

import cwnd
from cwnd._controllers.new_controller import write_law
from cwnd._sweeps.axes import Range, latin_points, read_axis
from cwnd._sweeps.dataset import schemas
from cwnd._sweeps.plan import Run
from cwnd._sweeps.reading import read_plan
from cwnd.errors import ArgumentError, PlanError
from cwnd.units import parse_rate

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "sweep.md"

SMALL = {"base": {"time": "4s", "flows": 2}, "controllers": ["reno"]}

LAW = """
class Law:
    def grow(self, w, acked, cx):
        return w

    def cut(self, w, why, cx):
        return w / 2
"""


def values(**given: object) -> tuple[object, ...]:
    return read_axis("x", {key.rstrip("_"): value for key, value in given.items()}).values


def test_a_list_is_as_written():
    axis = read_axis("dumbbell.rate", ["1mbit", "2500kbit"])
    assert axis.values == ("1mbit", "2500kbit")
    assert axis.kind == "string"
    assert read_axis("x", [1, 2.5]).kind == "double"
    assert read_axis("x", [True, False]).kind == "bool"
    mixed = read_axis("queue", ["red", 5, {"kind": "red"}])
    assert [mixed.column(value) for value in mixed.values] == ["red", "5", '{"kind": "red"}']


def test_ranges_keep_the_unit_of_their_lower_end():
    assert values(from_="10ms", to="0.05s", step="20ms") == ("10ms", "30ms", "50ms")
    assert values(from_="1mbit", to="1gbit", count=4, log=True) == (
        "1mbit",
        "10mbit",
        "100mbit",
        "1000mbit",
    )
    assert values(from_="0.5bdp", to="2bdp", count=4) == ("0.5bdp", "1bdp", "1.5bdp", "2bdp")
    assert values(from_=0.1, to=0.3, step=0.1) == (0.1, 0.2, 0.3)
    assert values(from_=1, to=1000, count=4, log=True) == (1, 10, 100, 1000)
    assert values(from_=0.0, to=1, count=3) == (0.0, 0.5, 1.0)


@given(st.integers(-1000, 1000), st.integers(1, 500), st.integers(1, 40))
def test_whole_steps(low, step, count):
    found = values(from_=low, to=low + step * count, step=step)
    assert found == tuple(range(low, low + step * count + 1, step))


@given(
    st.floats(0.001, 1000), st.floats(1.1, 1e6), st.integers(2, 40), st.booleans(), st.booleans()
)
def test_evenly_spaced(low, factor, count, log, unit):
    low, high = float(f"{low:.6g}"), float(f"{low * factor:.6g}")
    ends = [f"{low:f}mbit", f"{high:f}mbit"] if unit else [low, high]
    if unit:
        low, high = (parse_rate(end) / 1e6 for end in ends)
    try:
        found = values(from_=ends[0], to=ends[1], count=count, log=log)
    except PlanError:
        # Too many to differ in six digits.
        assert factor < 1.2
        return
    numbers = [parse_rate(value) / 1e6 if unit else value for value in found]
    assert len(numbers) == count
    assert numbers == sorted(numbers)
    assert numbers[0] == pytest.approx(low, rel=1e-5)
    assert numbers[-1] == pytest.approx(high, rel=1e-5)
    for one, two, three in zip(numbers, numbers[1:], numbers[2:], strict=False):
        middle = math.sqrt(one * three) if log else (one + three) / 2
        assert two == pytest.approx(middle, rel=1e-4)


@given(st.integers(1, 64), st.integers(1, 5), st.integers(0, 2**64 - 1))
def test_each_part_of_a_sampled_range_has_one_point(count, ranges, seed):
    points = latin_points(count, ranges, seed)
    assert points.shape == (count, ranges)
    for column in points.T:
        assert sorted(int(fraction * count) for fraction in column) == list(range(count))
    assert (points == latin_points(count, ranges, seed)).all()


@given(st.integers(-20, 20), st.integers(1, 30))
def test_sampled_whole_numbers_are_equally_likely(low, more):
    span = Range(low, low + more, "", log=False, whole=True)
    fractions = [(i + 0.5) / (10 * (more + 1)) for i in range(10 * (more + 1))]
    found = [span.at(fraction) for fraction in fractions]
    assert [found.count(number) for number in range(low, low + more + 1)] == [10] * (more + 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "the list is empty"),
        ([dt.date(2026, 1, 1)], "2026-01-01 is not a text, number, boolean, list or"),
        ({"from": 1, "to": 2, "step": 1e-320}, "inf values are too many"),
        ({"from": -1e308, "to": 1e308, "count": 3}, "-1e+308 and 1e+308 are too far apart"),
        ({"from": 1e-300, "to": 1e300, "count": 3, "log": True}, "are too far apart"),
        ({"from": "1bit", "to": "1e400bit", "count": 3}, "'to' is too large: 1e400bit"),
        (["1mbit", "2mbit", "1mbit"], '"1mbit" is listed twice'),
        ("1mbit", "needs a list of values, or a range"),
        ({"rate": ["1mbit"]}, '"x.rate" = …'),
        (
            {"from": 1, "to": 2, "steps": 1},
            "unknown key 'steps'; the keys of a range are from, to, step",
        ),
        ({"from": 1}, "a range needs 'to'"),
        ({"from": 2, "to": 1, "step": 1}, "'from' must be below 'to': 2 is not below 1"),
        ({"from": 0, "to": 1, "count": 3, "log": True}, "must begin above 0"),
        ({"from": 1, "to": 2, "count": 2, "log": 1}, "'log' must be true or false"),
        ({"from": 1, "to": 2, "count": 2, "step": 1}, "'step' excludes 'count' and 'log'"),
        ({"from": 1, "to": 2, "step": -1}, "'step' must be above 0"),
        ({"from": 1, "to": 2, "count": 1}, "'count' must be a whole number of at least 2"),
        ({"from": 0, "to": 1, "count": 5}, "write 0.0 and 1.0 for fractions"),
        ({"from": 1, "to": 2e9, "step": 1}, "an axis has at most 100,000"),
        ({"from": "1mbit", "to": "2ms", "count": 2}, "units of one kind: mbit and ms"),
        ({"from": "1mbit", "to": 2, "count": 2}, "units of one kind: mbit and none"),
        ({"from": "fast", "to": 2, "count": 2}, "'from' must be a number, optionally with a unit"),
    ],
)
def test_mistakes_of_an_axis(given, words):
    with pytest.raises(PlanError) as caught:
        read_axis("x", given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"axis": {}}, "plan: axis: unknown key; the keys of a plan are base, axes, latin"),
        ({"base": {"speed": 1}}, "plan: base.speed: unknown key; the keys are rate, rtt, queue"),
        ({"base": "nowhere.toml"}, "plan: base: cannot read nowhere.toml: no such file"),
        ({"base": 5}, "plan: base: must be the path of a scenario file, or a table"),
        ({"base": {"rtt": "5 apples"}}, "plan: base: rtt: '5 apples' is not"),
        ({"base": {"rate": "0bit"}}, "plan: base: rate: '0bit' is not a rate"),
        ({"axes": {"speed": [1]}}, "plan: axes.speed: not a key of [base] (rate, rtt"),
        ({"axes": {"seed": [1]}}, "plan: axes.seed: the data set has a column of this name"),
        ({"axes": {"rate": []}}, "plan: axes.rate: the list is empty"),
        ({"axes": [1]}, "plan: axes: must be a table: [axes]"),
        ({"axes": {"rate": ["1mbit", "0bit"]}}, "point 1 (rate = 0bit): rate: '0bit' is not"),
        ({"axes": {"tcp.size": [1]}}, "plan: point 0 (tcp.size = 1): tcp.size: unknown"),
        ({"axes": {"tcp-x.y": [1]}}, "'tcp-x.y' is not a path such as"),
        ({"axes": {"flow[7].count": [1]}}, "flow has 1 items, numbered from 0"),
        (
            {"axes": {"rate": {"from": "1mbit", "to": "2mbit"}}},
            "axes.rate: a range needs 'step' or 'count'",
        ),
        ({"latin": {"points": 5}}, "plan: latin: no axis is a range without"),
        (
            {"latin": {"points": 5, "sed": 1}},
            "plan: latin.sed: unknown key; the keys are points, seed",
        ),
        (
            {"controllers": []},
            "plan: controllers: must be a list of at least one controller; a [base]",
        ),
        ({"controllers": ["reno", "reno"]}, "plan: controllers: reno is listed twice"),
        ({"controllers": ["renno"]}, "plan: controllers: unknown controller"),
        ({"controllers": ["none.py:Law"]}, "plan: controllers: none.py: No such file"),
        ({"controllers": [7]}, "plan: controllers: 7 is neither a specification nor a class"),
        ({"reference": "renno"}, "plan: reference: unknown controller"),
        ({"reference": "reno", "base": {"flows": 1}}, "does not have two measured flows"),
        ({"base": {"flows": "x"}}, "base: flows: x is not a whole number from 1 to 10000"),
        ({"base": {"rtt": {}}}, "base: rtt: {} is neither text nor a number"),
        ({"axes": {"seed": [1]}}, "plan: axes.seed: the data set has a column of this name: use"),
        (
            {"axes": {"flow[0].controller": ["reno", "cubic"]}},
            "plan: axes.flow[0].controller: reno and cubic result in the same scenario",
        ),
        (
            {"axes": {"flow[0].controller": ["bbr"]}},
            "plan: axes.flow[0].controller: `controllers` replaces the value",
        ),
        (
            {
                "axes": {"rate": {"from": "1mbit", "to": "2mbit"}, "dumbbell.rate": ["3mbit"]},
                "latin": {"points": 2},
            },
            "plan: axes.rate: 1mbit and 1.5mbit result in the same scenario",
        ),
        ({"seeds": []}, "plan: seeds: the list is empty"),
        ({"time_limit": "0s"}, "plan: time_limit: '0s' is not a time"),
        ({"time_limit": ["1h"]}, "plan: time_limit: ['1h'] is neither text nor a number"),
        (
            {"seeds": 5},
            "plan: seeds: is a list; the number of seeds is now `repeat`: write repeat = 5",
        ),
        (
            {"seeds": "5"},
            "plan: seeds: is a list; the number of seeds is now `repeat`: write repeat = N",
        ),
        ({"seeds": [1, 2], "repeat": 2}, "plan: repeat: the plan has a list of `seeds`"),
        ({"repeat": 0}, "plan: repeat: 0 is not a whole number from 1"),
        ({"seeds": [1, -1]}, "plan: seeds: -1 is not a whole number from 0"),
        ({"seeds": [1, 1]}, "plan: seeds: a seed is listed twice"),
        ({"repeat": 10_000_000, "controllers": ["reno", "simd"]}, "at most 10,000,000 runs"),
        ({"keep": ["cuts"]}, "plan: keep: must be a list of flows, links, series"),
    ],
)
def test_mistakes_of_a_plan(change, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError) as caught:
        read_plan({**SMALL, **change})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("other", ["./a.law", "b/../a.law"])
def test_a_law_by_two_paths_is_listed_twice(other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    write_law("a", "window", tmp_path)
    with pytest.raises(PlanError, match=re.escape(f"controllers: {other} is listed twice")):
        read_plan({**SMALL, "controllers": ["a.law", other]})
    with pytest.raises(ArgumentError, match=re.escape(f"{other} is listed twice")):
        cwnd.compare(["a.law", other])
    with pytest.raises(ArgumentError, match=re.escape("a.law is listed twice")):
        cwnd.compare(["a.law"], reference=other)
    with pytest.raises(ArgumentError, match=re.escape(f"{other} is listed twice")):
        cwnd.evaluate(["a.law", other], out=tmp_path / "out")


def test_a_grid_times_a_sample():
    plan = read_plan(
        {
            **SMALL,
            "axes": {
                "rate": ["1mbit", "2mbit"],
                "rtt": {"from": "10ms", "to": "100ms", "log": True},
                "tcp.window": [10, 20, 30],
                "flows": {"from": 1, "to": 4},
            },
            "latin": {"points": 4, "seed": 7},
            "controllers": ["reno", "simd"],
            "seeds": [5, 9],
        }
    )
    assert plan.points == 2 * 3 * 4
    assert len(plan) == 24 * 2 * 2
    assert str(plan) == "96 runs: 24 points × 2 controllers × 2 seeds"
    runs = list(plan.runs())
    assert len(set(runs)) == len(plan)
    assert [run.seed for run in runs] == [5] * 48 + [9] * 48
    for point in range(0, 24, 4):
        sample = [plan.values(point + i) for i in range(4)]
        assert len({(rate, window) for rate, _, window, _ in sample}) == 1
        assert sorted(flows for *_, flows in sample) == [1, 2, 3, 4]
        assert [(rtt, flows) for _, rtt, _, flows in sample] == [
            (rtt, flows) for _, rtt, _, flows in (plan.values(i) for i in range(4))
        ]
    grid = [(plan.values(point)[0], plan.values(point)[2]) for point in range(0, 24, 4)]
    assert grid == list(itertools.product(["1mbit", "2mbit"], [10, 20, 30]))


def test_points_are_not_kept():
    plan = read_plan(
        {**SMALL, "axes": {"tcp.window": {"from": 1, "to": 1000, "step": 1}}, "repeat": 10_000}
    )
    assert len(plan) == 10_000_000
    first = list(itertools.islice(plan.runs(), 3))
    assert first == [Run(i, (i + 1,), "reno", 1) for i in range(3)]


def test_the_base_is_the_dumbbell_of_compare():
    plan = read_plan(
        {"base": {"rtt": "40ms"}, "axes": {"rate": ["10mbit"]}, "controllers": ["simd"]}
    )
    (run,) = plan.runs()
    document = plan.scenario(run).to_dict()
    assert document["dumbbell"]["rate"] == 1e7
    assert document["warmup"] == 30.0
    assert document["sample"] == 0.05
    assert document["access"] == {"delay": "0s..0.000500000s"}
    assert document["flow"] == [{"controller": "simd", "count": 8, "start": "0s..6.000000000s"}]


def test_a_trace_takes_the_place_of_the_default_rate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one").write_text("1\n2\n3\n")
    axes = '"dumbbell.trace" = ["one"]\n"dumbbell.back.trace" = ["one"]\n'
    plan = f'controllers = ["simd"]\nrepeat = 1\n[base]\ntime = "2s"\n{{}}[axes]\n{axes}'
    (tmp_path / "plan.toml").write_text(plan.format(""))
    read = read_plan(tmp_path / "plan.toml")
    assert "rate" not in read.scenario(read.run(0)).to_dict()["dumbbell"]
    (tmp_path / "plan.toml").write_text(plan.format('rate = "15mbit"\n'))
    with pytest.raises(PlanError, match="`trace` sets the rate of the link"):
        read_plan(tmp_path / "plan.toml")


def test_derived_values_follow_the_axes():
    plan = read_plan({**SMALL, "axes": {"time": ["4s", "40s"], "rtt": ["80ms"]}})
    documents = [plan.scenario(run).to_dict() for run in plan.runs()]
    assert [document["warmup"] for document in documents] == [1.0, 10.0]
    assert documents[0]["access"]["delay"] == "0s..0.001000000s"


def test_half_and_half():
    plan = read_plan({**SMALL, "controllers": ["simd"], "reference": "reno", "repeat": 2})
    one, two = (plan.scenario(run).to_dict()["flow"] for run in plan.runs())
    assert [(flow["controller"], flow["count"]) for flow in one] == [("simd", 1), ("reno", 1)]
    assert one == two


def test_a_scenario_file_as_base(tmp_path, two):
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "two.toml").write_text(two)
    path = tmp_path / "plan.toml"
    path.write_text('base = "nets/two.toml"\n[axes]\n"dumbbell.rate" = ["5mbit"]\n')
    plan = read_plan(path)
    (run,) = plan.runs()
    assert run.controller is None
    scenario = plan.scenario(run)
    assert scenario.to_dict() == cwnd.Scenario.from_toml(two).with_values(
        {"dumbbell.rate": "5mbit"}
    ).to_dict() | {"name": scenario.to_dict()["name"]}
    assert plan.text == path.read_text()


def test_mistakes_of_the_file_itself(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text("seeds = [\n")
    with pytest.raises(PlanError, match=r"plan\.toml: "):
        read_plan(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError, match="UTF-8"):
        read_plan(path)
    with pytest.raises(FileNotFoundError):
        read_plan(tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_text('duration = "1s"\nspeed = 5\n')
    path.write_text('base = "bad.toml"\n')
    with pytest.raises(cwnd.ScenarioError, match=r"bad\.toml:2"):
        read_plan(path)


def test_the_documented_plan(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "plan.toml").write_text(example)
    (tmp_path / "plans" / "mine.py").write_text(
        LAW.replace("Law:", "Law:\n    def __init__(self, beta): ...\n")
    )
    plan = read_plan(tmp_path / "plans" / "plan.toml")
    assert str(plan) == "12,000 runs: 600 points × 2 controllers × 10 seeds"
    columns = {field.name for schema in schemas(plan).values() for field in schema}
    columns -= {axis.name for axis in plan.axes}
    assert columns <= set(re.findall(r"`([a-z0-9_]+)`", DOCS.read_text()))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "python/cwnd/plans").iterdir()), ids=lambda path: path.name
)
def test_ready_made_plans(path):
    assert len(read_plan(path)) > 1


class Law:
    def __init__(self, beta: float = 0.5) -> None:
        self.beta = beta

    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w - self.beta * w


def test_python_objects_as_controllers():
    plan = read_plan({**SMALL, "controllers": [Law, functools.partial(Law, beta=0.25), Law(0.75)]})
    assert plan.controllers == ("python:Law", "python:Law(beta=0.25)", "python:Law(beta=0.75)")
    assert '"python:Law(beta=0.25)"' in plan.text


def test_a_plan_does_not_depend_on_the_work_directory(tmp_path, monkeypatch, two):
    home = tmp_path / "a" / "b"
    home.mkdir(parents=True)
    (home / "mine.py").write_text(LAW)
    (home.parent / "theirs.py").write_text(LAW)
    (home.parent / "net.toml").write_text(two.replace('"simd"', '"theirs.py:Law"'))
    (home / "plan.toml").write_text(
        'base = "../net.toml"\ncontrollers = ["mine.py:Law"]\nreference = "reno"\n'
    )
    (home / "own.toml").write_text('base = "../net.toml"\n')
    seen = []
    for place in (home, tmp_path, home.parent):
        monkeypatch.chdir(place)
        for name in ("plan.toml", "own.toml"):
            plan = read_plan(home / name)
            (run,) = plan.runs()
            seen.append((plan.scenario(run).to_json(), plan.codes, plan.identity))
    assert seen[:2] == seen[2:4] == seen[4:]
    assert "mine.py:Law" in seen[0][0]
    assert '"../theirs.py:Law"' in seen[1][0]


def test_the_code_of_a_controller_is_its_file(tmp_path):
    for name, text in (("a", LAW), ("b", LAW), ("c", LAW + "# changed\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(text)
        (tmp_path / name / "plan.toml").write_text(
            'controllers = ["reno", "mine.py:Law"]\nbase = {time = "4s"}\n'
        )
    a, b, c = (read_plan(tmp_path / name / "plan.toml").codes for name in "abc")
    assert a == b
    assert a["reno"] == c["reno"]
    assert a["mine.py:Law"] != c["mine.py:Law"]


def test_plain_python_data():
    """Data of a script: NumPy's numbers and arrays, tuples, paths, None."""
    plan = read_plan(
        {
            "base": Path("dumbbell.toml"),
            "axes": {
                "tcp.window": np.arange(10, 40, 10),
                "dumbbell.loss": (np.float64(0.5), 0),
                "dumbbell.queue": [{"kind": "red", "min": None}, "droptail"],
            },
            "seeds": range(2, 5),
            "reference": None,
        }
    )
    axes = {axis.name: axis for axis in plan.axes}
    assert axes["tcp.window"].values == (10, 20, 30)
    assert axes["tcp.window"].kind == "int64"
    assert axes["dumbbell.loss"].values == (0.5, 0)
    assert axes["dumbbell.queue"].values == ({"kind": "red"}, "droptail")
    assert list(plan.seeds) == [2, 3, 4]
    assert 'base = "dumbbell.toml"' in plan.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"base": {"rtt": 40}}, 'rtt: a time needs a unit: write text such as "100ms", not 40'),
        ({"axes": {"rate": [1e6, 2e6]}}, "rate: a rate needs a unit"),
        ({"axes": {"rate": {"from": 1e6, "to": 2e6, "count": 2}}}, "rate: a rate needs a unit"),
        ({"axes": {"dumbbell.delay": [0, 5]}}, "axes: dumbbell.delay: a time needs a unit"),
    ],
)
def test_numbers_without_a_unit_are_for_files(change, said, tmp_path):
    plan = {"controllers": ["reno"], "base": {"time": "80s"}} | change
    with pytest.raises(PlanError, match=f"^plan: {re.escape(said)}"):
        read_plan(plan)
    (tmp_path / "plan.toml").write_text(tomli_w.dumps(plan))
    assert read_plan(tmp_path / "plan.toml").points in {1, 2}
