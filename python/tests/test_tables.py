from __future__ import annotations

import json

import pandas as pd
import pytest

from cwnd.tables import write_comparison, write_trace


@pytest.fixture(scope="module")
def trace(result, tmp_path_factory):
    home = tmp_path_factory.mktemp("trace") / "deep"
    return home, write_trace(result, home)


def test_everything_said_to_be_written_is_there(trace):
    home, written = trace
    assert sorted(written) == sorted(home.iterdir())


@pytest.mark.parametrize("name", ["samples", "queues", "cuts", "flows", "links"])
def test_both_formats_say_the_same(trace, name):
    home, _ = trace
    parquet = pd.read_parquet(home / f"{name}.parquet")
    csv = pd.read_csv(home / f"{name}.csv")
    assert list(parquet.columns) == list(csv.columns)
    assert len(parquet) == len(csv) > 0
    for column in parquet.select_dtypes("number"):
        pd.testing.assert_series_equal(parquet[column], csv[column], check_dtype=False)


def test_samples_are_long(trace, result):
    frame = pd.read_parquet(trace[0] / "samples.parquet")
    one = frame[frame["flow"] == result.record["flows"][0]["name"]]
    assert list(one["window"]) == list(result.record["flows"][0]["window"])
    assert frame.shape[0] == len(result.record["flows"]) * result.time.size


def test_figures_are_the_json_document(trace, result):
    assert json.loads((trace[0] / "run.json").read_text()) == result.to_json()


def test_runs_of_a_comparison(comparison, tmp_path):
    written = write_comparison(comparison, tmp_path / "deep")
    assert sorted(written) == sorted((tmp_path / "deep").iterdir())
    frames = {}
    for name in ("runs", "flows", "links"):
        frames[name] = pd.read_parquet(tmp_path / "deep" / f"{name}.parquet")
        csv = pd.read_csv(tmp_path / "deep" / f"{name}.csv")
        assert list(csv.columns) == list(frames[name].columns)
        assert len(csv) == len(frames[name])
    runs = frames["runs"]
    rows = {"alone": comparison.rows_alone, "against": comparison.rows_against}
    assert len(runs) == 3 * (3 + 2)
    for mode, group in rows.items():
        for row in group:
            mine = runs[(runs["controller"] == row.controller) & (runs["mode"] == mode)]
            assert list(mine["repeat"]) == [0, 1, 2]
            assert list(mine["seed"]) == [1, 2, 3]
            for name in row.figures:
                assert list(mine[name]) == pytest.approx(row.values(name), nan_ok=True)
    assert runs.loc[runs["mode"] == "alone", "share"].isna().all()
    last = frames["flows"][frames["flows"]["run"] == len(runs) - 1]
    assert list(last["name"]) == [f["name"] for f in comparison.results[-1].record["flows"]]
    assert list(frames["links"]["run"].unique()) == list(range(len(runs)))
    document = json.loads((tmp_path / "deep" / "compare.json").read_text())
    assert document == comparison.to_json()
