from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tomli_w

import cwnd
from cwnd._show.report.cube import MAX_NUMBERS, Cube
from cwnd._show.report.sweep import MAX_FAILURES, sweep_page
from cwnd._show.sheets import SWEEP_COLUMNS
from cwnd._sweeps.dataset import METRICS
from cwnd._sweeps.manifest import add_part
from cwnd.errors import ArgumentError
from cwnd.metrics import range_of
from cwnd.stats import POSITIVE, UNIT, Range, estimate

pytestmark = pytest.mark.slow

RATES, DELAYS, CONTROLLERS = ["10mbit", "2mbit"], ["80ms", "5ms", "20ms"], ["simd", "reno"]


def runs_of(axes, points, controllers=("reno",), seeds=(1, 2, 3)):
    """Make a table of runs with random metrics."""
    random = np.random.default_rng(7)
    rows = [
        [number, *values, controller, seed]
        for number, values in enumerate(points)
        for controller in controllers
        for seed in seeds
    ]
    frame = pd.DataFrame(rows, columns=["point", *axes, "controller", "seed"])
    frame["latin_point"] = frame["point"]
    frame["error"] = pd.Series([None] * len(frame), dtype=object)
    for name in ("jain", "goodput_bps", "utilization"):
        frame[name] = random.random(len(frame)) * (1 if range_of(name) is UNIT else 1e7)
    frame["alpha_fairness"] = np.nan
    frame["wall_s"] = 0.5
    frame["tcp_conventions"] = pd.Series([None] * len(frame), dtype="string")
    return frame


@pytest.fixture
def runs():
    points = itertools.product(RATES, DELAYS)
    return runs_of(["rate", "rtt"], points, CONTROLLERS)


def cube_of(runs, axes, sampled, controllers):
    """Make a cube of a table with all metrics."""

    def values(name):
        return runs[name].to_numpy(float) if name in runs else None

    return Cube(runs, axes, sampled, controllers, values)


def write(home, runs, plan):
    home.mkdir()
    add_part(home, 1, "a" * 16, {"runs": pa.Table.from_pandas(runs)}, {})
    (home / "plan.toml").write_text(tomli_w.dumps(plan))
    return home


def plan_of(axes, **more):
    return {"base": {"time": "10s"}, "axes": axes, **more}


def unpack(page):
    """Read the data of a page's plots."""
    packed = re.search(r'id="data">([^<]*)<', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def find(level, metric, controller, bound="mean", **at):
    """Read the one cell of a level at some places."""
    cells = range(len(level[bound][metric][controller]))
    (cell,) = (i for i in cells if all(level["at"][d[1:]][i] == p for d, p in at.items()))
    return level[bound][metric][controller][cell]


def test_axes_are_ordered_by_their_quantities(runs):
    cube = cube_of(runs, ["rate", "rtt"], [], CONTROLLERS)
    assert [axis.labels for axis in cube.axes] == [["2mbit", "10mbit"], ["5ms", "20ms", "80ms"]]
    assert cube.axes[1].places == [0.005, 0.02, 0.08]
    assert [axis.unit for axis in cube.axes] == ["bit/s", "s"]
    assert cube.shape == (2, 3)
    assert [column.name for column in cube.columns] == ["utilization", "goodput_bps", "jain"]


def test_values_that_are_no_quantities_keep_the_order_of_the_plan():
    axes = ["queue", "tcp.ecn", "limit"]
    points = itertools.product(["red", "droptail"], [True, False], ["20p", "1.5bdp"])
    cube = cube_of(runs_of(axes, points), axes, [], ["reno"])
    assert [axis.labels for axis in cube.axes] == [
        ["red", "droptail"],
        ["true", "false"],
        ["20p", "1.5bdp"],
    ]
    assert all(axis.places is None for axis in cube.axes)


@pytest.mark.parametrize(("metric", "factor"), [("jain", 1), ("goodput_bps", 1e-6)])
def test_levels_are_means_over_seeds_and_axes(runs, metric, factor):
    levels, points = cube_of(runs, ["rate", "rtt"], [], CONTROLLERS).levels()
    assert sorted(levels) == ["", "0", "0,1", "1"]
    assert points.tolist() == list(range(6))
    of = runs[runs["controller"] == "reno"]
    cases = {
        "0,1": (of[(of["rate"] == "10mbit") & (of["rtt"] == "5ms")], {"d0": 1, "d1": 0}),
        "0": (of[of["rate"] == "10mbit"], {"d0": 1}),
        "1": (of[of["rtt"] == "80ms"], {"d1": 2}),
        "": (of, {}),
    }
    for level, (part, at) in cases.items():
        expected = estimate(part.groupby("seed")[metric].mean(), range_of(metric))
        for bound in ("mean", "low", "high"):
            found = find(levels[level], metric, 1, bound, **at)
            assert found == pytest.approx(getattr(expected, bound) * factor, rel=1e-3)


def test_an_interval_of_a_goodput_ends_at_the_rate_of_the_link(runs):
    runs["goodput_limit_bps"] = np.where(runs["rate"] == "2mbit", 5e6, 5.2e6)
    levels, _ = cube_of(runs, ["rate", "rtt"], [], CONTROLLERS).levels()
    of = runs[runs["controller"] == "reno"]
    for level, part, at in (
        ("0", of[of["rate"] == "2mbit"], {"d0": 0}),
        ("", of, {}),
    ):
        means = part.groupby("seed")["goodput_bps"].mean()
        expected = estimate(means, Range(0.0, part["goodput_limit_bps"].mean()))
        assert expected.high < estimate(means, POSITIVE).high
        for bound in ("mean", "low", "high"):
            found = find(levels[level], "goodput_bps", 1, bound, **at)
            assert found == pytest.approx(getattr(expected, bound) / 1e6, rel=1e-3)


def test_missing_values_move_no_mean(runs):
    """A failed run makes its seed incomplete; a point without any run is left out."""
    runs["jain"] = runs["seed"] / 10 + (runs["rate"] == "10mbit") * 0.4
    failed = (runs["controller"] == "simd") & (runs["rate"] == "10mbit")
    runs.loc[failed & (runs["rtt"] == "5ms") & (runs["seed"] == 3), "jain"] = np.nan
    runs.loc[failed & (runs["rtt"] == "80ms"), "jain"] = np.nan
    levels, _ = cube_of(runs, ["rate", "rtt"], [], CONTROLLERS).levels()
    assert find(levels["0,1"], "jain", 0, d0=1, d1=0) == 0.55
    assert find(levels["0,1"], "jain", 0, d0=1, d1=1) == 0.6
    assert find(levels["0,1"], "jain", 0, d0=1, d1=2) is None
    assert find(levels["0"], "jain", 0, d0=1) == 0.55
    assert find(levels["0"], "jain", 0, "low", d0=1) is not None
    assert find(levels["0"], "jain", 1, d0=1) == 0.6
    # Without a complete seed there is a mean, but no interval.
    for seed, rtt in ((1, "20ms"), (2, "20ms")):
        runs.loc[failed & (runs["rtt"] == rtt) & (runs["seed"] == seed), "jain"] = np.nan
    levels, _ = cube_of(runs, ["rate", "rtt"], [], CONTROLLERS).levels()
    assert find(levels["0"], "jain", 0, d0=1) == pytest.approx((0.55 + 0.7) / 2)
    assert find(levels["0"], "jain", 0, "low", d0=1) is None


def test_one_seed_has_no_intervals(runs):
    levels, _ = cube_of(runs[runs["seed"] == 1], ["rate", "rtt"], [], CONTROLLERS).levels()
    assert levels["0"]["low"] is None
    assert find(levels["0,1"], "jain", 0, d0=0, d1=0) is not None


def test_the_axes_of_a_hypercube_share_a_dimension():
    draws = [("3mbit", "9ms"), ("1mbit", "7ms"), ("2mbit", "8ms"), ("4mbit", "6ms")]
    points = [(flows, *draw) for flows in (2, 8) for draw in draws]
    runs = runs_of(["flows", "rate", "rtt"], points)
    cube = cube_of(runs, ["flows", "rate", "rtt"], ["rate", "rtt"], ["reno"])
    assert cube.shape == (2, 4)
    assert [axis.dimension for axis in cube.axes] == [0, 1, 1]
    assert list(zip(cube.axes[1].labels, cube.axes[2].labels, strict=True)) == draws
    levels, _ = cube.levels()
    part = runs[(runs["rate"] == "2mbit") & (runs["rtt"] == "8ms")]
    assert find(levels["1"], "jain", 0, d1=2) == pytest.approx(part["jain"].mean(), rel=1e-3)


@pytest.mark.parametrize(
    ("axes", "sampled", "points"),
    [
        (["rate", "rtt", "flows"], [], itertools.product(range(60), range(50), range(4))),
        (["rate", "rtt"], ["rate", "rtt"], np.random.default_rng(1).random((12_000, 2)).tolist()),
    ],
)
def test_a_page_has_room_for_so_many_numbers(axes, sampled, points):
    runs = runs_of(axes, points, ["reno", "simd"], seeds=[1, 2])
    for metric in ("loss_rate", "mark_rate", "cov_2rtt", "cov_10rtt", "cov_50rtt", "share"):
        runs[metric] = runs["jain"]
    cube = cube_of(runs, axes, sampled, ["reno", "simd"])
    levels, kept = cube.levels()
    count = sum(
        len(numbers)
        for level in levels.values()
        for bound in ("mean", "low", "high")
        for of in (level[bound] or {}).values()
        for numbers in of
    )
    assert MAX_NUMBERS / 4 < count <= MAX_NUMBERS
    assert len(kept) < np.prod(cube.shape)
    assert len(set(kept.tolist())) == len(kept)
    # Every map is there.
    for pair in itertools.combinations(range(len(cube.shape)), 2):
        assert ",".join(map(str, pair)) in levels


def test_a_page_shows_the_sweep(runs, tmp_path):
    runs.loc[runs["seed"] == 3, ["error", "jain"]] = ["<script>alert</script> & more", np.nan]
    axes = {"rate": RATES, "rtt": DELAYS}
    plan = plan_of(axes, controllers=CONTROLLERS, reference="reno", repeat=3)
    page = sweep_page(write(tmp_path / "a sweep", runs, plan))
    assert page.startswith("<!doctype html>")
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert&lt;/script&gt; &amp; more") == 1 + 12
    assert not re.search(r"<[^>]*\s(src|href)=", page)
    assert "36" in page
    assert "12 failed" in page
    assert f"cwnd sweep &#39;{tmp_path}/a sweep/plan.toml&#39; --out" in page
    assert "&#34;10mbit&#34;" in page[page.index("<h2>Plan</h2>") :]
    data = unpack(page)
    assert [controller["name"] for controller in data["controllers"]] == CONTROLLERS
    assert data["failed"] == [[1] * 6] * 2
    assert data["runs"] == [[3] * 6] * 2
    assert data["whole"]
    assert [metric["name"] for metric in data["metrics"]] == ["utilization", "goodput_bps", "jain"]


def test_a_page_lists_so_many_failures(tmp_path):
    runs = runs_of(["flows"], [(flows,) for flows in range(80)], [None], seeds=[1, 2])
    runs["error"] = "ValueError: no"
    runs[["jain", "goodput_bps", "utilization"]] = np.nan
    page = sweep_page(write(tmp_path / "out", runs, plan_of({"flows": [*range(80)]})))
    assert "No run succeeded" in page
    assert page.count('<td class="text">ValueError: no</td>') == MAX_FAILURES
    assert "And 60 more." in page


@pytest.mark.parametrize(
    ("axes", "points", "dimensions"),
    [
        ({}, [()], 0),
        ({"rate": ["1mbit", "2mbit"]}, [("1mbit",), ("2mbit",)], 1),
        ({"rate": {"from": "1mbit", "to": "9mbit"}}, [("3.5mbit",), ("1.25mbit",)], 1),
        (
            {name: [1, 2] for name in "abcde"},
            list(itertools.product([1, 2], repeat=5)),
            5,
        ),
    ],
)
def test_every_kind_of_sweep_has_a_page(tmp_path, axes, points, dimensions):
    runs = runs_of(list(axes), points)
    plan = plan_of(axes, controllers=["reno"], latin={"points": 2})
    data = unpack(sweep_page(write(tmp_path / "out", runs, plan)))
    assert len(data["shape"]) == dimensions
    assert len(data["levels"]) == 2**dimensions
    for level in data["levels"].values():
        for places in level["at"].values():
            assert len(places) == len(level["mean"]["jain"][0])


def test_a_plan_that_names_files_is_continued_from_its_place(runs, tmp_path):
    axes = {"rate": RATES, "rtt": DELAYS}
    home = write(tmp_path / "out", runs, plan_of(axes) | {"base": "net.toml"})
    assert f"cwnd sweep PLAN.toml --out {home}" in sweep_page(home)
    (home / "plan.toml").write_text(tomli_w.dumps(plan_of(axes, controllers=["mine.py:Law"])))
    assert f"cwnd sweep PLAN.toml --out {home}" in sweep_page(home)


def test_a_directory_without_a_plan_is_refused(runs, tmp_path):
    home = write(tmp_path / "out", runs, plan_of({}))
    (home / "plan.toml").unlink()
    with pytest.raises(ArgumentError, match=r"cannot read .*plan\.toml"):
        sweep_page(home)


def test_a_real_sweep_has_every_metric_but_those_of_other_laws(command, tmp_path):
    plan = plan_of(
        {"rate": ["2mbit", "4mbit"], "rtt": {"from": "10ms", "to": "90ms"}},
        controllers=["reno", "simd"],
        reference="reno",
        latin={"points": 3},
        repeat=2,
    )
    plan["base"] = {"time": "10s", "flows": 2, "queue": "red-ecn"}
    (tmp_path / "plan.toml").write_text(tomli_w.dumps(plan))
    out, report = tmp_path / "out", tmp_path / "page.html"
    done = command("sweep", tmp_path / "plan.toml", "--out", out, "--report", report, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failed"] == 0
    data = unpack(report.read_text(encoding="utf-8"))
    assert data["shape"] == [2, 3]
    assert data["runs"] == [[2] * 6] * 2
    figures = {column.name for column in SWEEP_COLUMNS}
    assert figures <= {*METRICS, "share"}
    shown = {metric["name"] for metric in data["metrics"]}
    assert figures - {"alpha_fairness", "convergence_time_s"} <= shown
    frame = cwnd.Sweep(out).query("select avg(share) from runs where controller = 'simd'")
    assert find(data["levels"][""], "share", 1) == pytest.approx(frame.iloc[0, 0], rel=1e-3)


def test_controllers_stand_in_the_order_of_the_plan(runs, tmp_path):
    specs = ["simd(beta=1/16)", "reno", "mine.py:Law"]
    plan = plan_of({"rate": RATES, "rtt": DELAYS}, controllers=specs)
    page = sweep_page(write(tmp_path / "a sweep", runs, plan))
    assert [it["name"] for it in unpack(page)["controllers"]] == ["simd", "reno"]


def test_the_command_writes_the_page(command, runs, tmp_path):
    home = write(tmp_path / "a sweep", runs, plan_of({"rate": RATES, "rtt": DELAYS}))
    report = tmp_path / "page.html"
    done = command("query", home, "--report", report)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == f"report: {report}\n"
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")


PEAK = """
import resource, sys
from cwnd._cli import run
print(run(sys.argv[1:]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
"""A command that prints its status and its peak of memory in megabytes."""


def test_the_memory_of_a_page_is_small(complete, tmp_path):
    """A page of 200,000 runs needs some 60 MB; all runs at once would need 240 MB."""
    number = np.arange(200_000)
    metrics = {name: np.random.default_rng(1).random(len(number)) for name in METRICS}
    runs = pd.DataFrame(
        {
            "key": [f"{one:032x}" for one in number],
            "rate": np.array([f"{rate}mbit" for rate in range(1, 101)])[number % 100],
            "controller": np.array(["reno", "simd"])[number // 100 % 2],
            "seed": number // 200,
            "error": pd.Series([None] * len(number), dtype="string"),
            "wall_s": 0.1,
            "tcp_conventions": "linux",
            **metrics,
        }
    )
    rates = {"rate": {"from": "1mbit", "to": "100mbit", "count": 100}}
    home = write(tmp_path / "out", runs, plan_of(rates, controllers=["reno", "simd"]))
    peaks = []
    for arguments in (["select 1 a"], ["--report", tmp_path / "page.html"]):
        done = complete(sys.executable, "-c", PEAK, "query", home, *arguments)
        status, peak = done.stdout.split()[-2:]
        assert status == "0", done.stderr
        peaks.append(int(peak))
    assert peaks[1] - peaks[0] < 120
