from __future__ import annotations

import json

import pandas as pd
import pytest

from cwnd.tables import write_trace


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
