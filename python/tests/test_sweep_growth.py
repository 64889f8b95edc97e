"""Data sets whose plan changes: more and other values of axes."""

from __future__ import annotations

import base64
import gzip
import json
import re

import pandas as pd
import pytest

import cwnd
from cwnd.errors import ArgumentError, PlanError
from cwnd.sweeps.dataset import DataSet
from cwnd.sweeps.reading import read_plan

pytestmark = pytest.mark.slow

PLAN = {
    "base": {"time": "1s", "flows": 1},
    "axes": {"rate": ["1mbit", "4mbit"], "queue": ["red", "droptail"]},
    "controllers": ["reno", "simd"],
    "seeds": 2,
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
    "seeds": 1,
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
        plan = {**PLAN, "axes": axes, "controllers": ["reno"], "seeds": 1}
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
    plan = {**PLAN, "axes": {"loss": [0.0, 0.01]}, "controllers": ["reno"], "seeds": 1}
    assert cwnd.sweep(plan, out=tmp_path).made == 2
    with pytest.raises(ArgumentError, match="a different `axes`: choose another directory"):
        cwnd.sweep({**plan, "axes": {"loss": ["0%", "1%"]}}, out=tmp_path)


def test_values_that_are_written_alike_are_refused():
    with pytest.raises(PlanError, match="a text and another value are written alike"):
        read_plan({**PLAN, "axes": {"queue": ["[1, 2]", [1, 2]]}})
