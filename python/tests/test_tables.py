from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import cwnd
from cwnd import tables
from cwnd.errors import ArgumentError
from cwnd.tables import write_comparison, write_trace

FRAMES = ["samples", "queues", "cuts", "flows", "links"]

SHORT = """
name = "short"
duration = "8s"
warmup = "2s"

[dumbbell]
rate = "10mbit"
delay = "20ms"
queue = "1bdp"

[[flow]]
controller = "bbr"
name = "late"
start = "1s"
stop = "5s"

[[flow]]
controller = "reno"
name = "file"
start = "500ms"
bytes = "300kb"

[[flow]]
controller = "daimd"
name = "rate"

[[flow]]
controller = "cubic"
name = "app"
source = { kind = "request", sizes = "20kb", think = "200ms" }
"""


@pytest.fixture(scope="module")
def trace(result, tmp_path_factory):
    home = tmp_path_factory.mktemp("trace") / "deep"
    return home, write_trace(result, home)


@pytest.fixture(scope="module")
def as_csv(result, tmp_path_factory):
    home = tmp_path_factory.mktemp("trace") / "deep.csv"
    return home, write_trace(result, home)


@pytest.fixture(scope="module")
def short():
    return cwnd.run(cwnd.Scenario.from_toml(SHORT), acks=True)


@pytest.fixture(scope="module")
def web():
    return cwnd.run("web-load")


def same(one, other):
    pd.testing.assert_frame_equal(
        one.convert_dtypes(), other.convert_dtypes(), check_exact=True, check_dtype=False
    )


def frame_of(result, name):
    if name == "transfers":
        return tables.transfers(result).to_pandas()
    frame = pd.DataFrame(getattr(result, name))
    return frame.reset_index() if name in {"flows", "links"} else frame


@pytest.mark.parametrize(
    ("fixture", "names", "suffix"),
    [
        ("trace", ["samples", "queues", "cuts", "transfers", "flows", "links"], "parquet"),
        ("as_csv", ["samples", "queues", "cuts", "transfers", "flows", "links"], "csv"),
    ],
)
def test_everything_said_to_be_written_is_there(fixture, names, suffix, request):
    home, written = request.getfixturevalue(fixture)
    assert sorted(written) == sorted(home.iterdir())
    assert {path.name for path in written} == {f"{name}.{suffix}" for name in names} | {"run.json"}


@pytest.mark.parametrize("name", FRAMES)
def test_tables_read_back_are_the_frames_of_the_result(trace, as_csv, result, name):
    expected = frame_of(result, name)
    assert len(expected) > 0
    same(pd.read_parquet(trace[0] / f"{name}.parquet"), expected)
    same(pd.read_csv(as_csv[0] / f"{name}.csv"), expected)


def test_tables_of_short_flows_read_back(short, tmp_path):
    write_trace(short, tmp_path / "a")
    write_trace(short, tmp_path / "a.csv")
    for name in (*FRAMES, "transfers", "acks"):
        expected = frame_of(short, name)
        assert len(expected) > 0
        same(pd.read_parquet(tmp_path / "a" / f"{name}.parquet"), expected)
        same(pd.read_csv(tmp_path / "a.csv" / f"{name}.csv"), expected)


def test_samples_are_long(trace, result):
    frame = pd.read_parquet(trace[0] / "samples.parquet")
    flow = result.record["flows"][0]
    one = frame[frame["flow"] == flow["name"]]
    assert list(one["window"]) == list(flow["window"][result.time >= flow["start_s"]])


def test_samples_are_of_active_flows_only(short):
    for flow in short.record["flows"]:
        end = np.nanmin([flow["stop_s"], flow["completed_s"]])
        active = (short.time >= flow["start_s"]) & (short.time <= end)
        rows = short.samples[short.samples["flow"] == flow["name"]]
        assert list(rows["time_s"]) == list(short.time[active])
        assert list(rows["sent"]) == list(flow["sent"][active])
    assert short.samples["flow"].value_counts()["late"] < short.time.size / 2 + 2


def test_queues_are_of_links_where_one_can_form(web):
    assert set(web.queues["link"]) == {"left-right", "right-left"}
    for name, rows in web.queues.groupby("link"):
        (link,) = (link for link in web.record["links"] if link["name"] == name)
        assert list(rows["queue"]) == list(link["queue"])


def test_losses_of_a_link_without_a_rate_stay_in_the_table():
    lossy = cwnd.run("random-loss", values={"duration": "20s"})
    (link,) = (link for link in lossy.record["links"] if link["losses"])
    assert link["rate_bps"] == float("inf")
    assert set(lossy.queues["link"]) == {link["name"]}
    assert list(lossy.queues["drops"]) == list(link["drops_series"])


def test_one_row_for_each_transfer(short):
    found = frame_of(short, "transfers").set_index("flow")
    file = next(flow for flow in short.record["flows"] if flow["name"] == "file")
    # The figures exclude it: it begins during the warm-up.
    assert found.loc["file", "begin_s"] == 0.5
    assert found.loc["file", "bytes"] == file["bytes"]
    assert found.loc["file", "end_s"] == pytest.approx(file["acknowledged_s"], rel=1e-12)
    (of,) = (flow["transfers"] for flow in short.record["flows"] if flow["transfers"])
    responses = found.loc["app"]
    assert list(responses["begin_s"]) == list(of["begin"])
    assert list(responses["bytes"]) == list(of["bytes"])
    np.testing.assert_allclose(responses["end_s"], of["end"], rtol=1e-12)
    assert set(found.index) == {"file", "app"}
    measured = found[found["begin_s"] >= short.warmup_s]
    assert list(measured["slowdown"].dropna()) == list(short.transfers().slowdown[: len(measured)])


def test_transfers_of_arrivals(web, tmp_path):
    found = frame_of(web, "transfers")
    finite = [flow for flow in web.record["flows"] if flow["bytes"] is not None]
    assert list(found["flow"]) == [flow["name"] for flow in finite]
    assert list(found["bytes"]) == [flow["bytes"] for flow in finite]
    done = web.metrics["transfers"]
    late = found[found["begin_s"] >= web.warmup_s]
    assert len(late) == done["number"]
    assert late["fct_s"].mean() == pytest.approx(done["fct_s"]["mean"])
    assert late["slowdown"].mean() == pytest.approx(done["slowdown"]["mean"])
    # Thousands of flows, most of them short.
    assert sum(path.stat().st_size for path in write_trace(web, tmp_path)) < 2e6


def test_acknowledgements_give_the_figures_of_the_flows(short):
    acks = short.acks
    assert set(acks["flow"]) == {"late", "file", "rate", "app"}
    for flow in short.record["flows"]:
        own = acks[acks["flow"] == flow["name"]]
        assert own["time_s"].is_monotonic_increasing
        measured = own.loc[own["time_s"] >= short.warmup_s, "rtt_s"].dropna()
        if flow["name"] != "file":
            assert measured.mean() == pytest.approx(flow["mean_rtt_s"], rel=0.01)
        assert own["pacing_rate"].notna().any() == (flow["name"] in {"late", "rate"})
        assert own["delivery_rate"].notna().any() == (flow["name"] in {"late", "rate"})
    # Slow start, of which each acknowledgement covers two packets.
    file = acks[acks["flow"] == "file"][:10]
    assert {after - before for before, after in pairwise(file["window"])} == {2.0}
    assert list(file["in_flight"]) == list(file["window"] - 4)


def test_recording_acknowledgements_changes_nothing(short):
    plain = cwnd.run(cwnd.Scenario.from_toml(SHORT))
    pd.testing.assert_frame_equal(plain.samples, short.samples, check_exact=True)
    with pytest.raises(ArgumentError, match="acks=True"):
        _ = plain.acks
    assert all(flow["acks"] is None for flow in plain.record["flows"])


def test_acknowledgements_need_the_simulator(scenario_file):
    with pytest.raises(ArgumentError, match="sim"):
        cwnd.run(scenario_file, on="udt", acks=True)


def test_figures_are_the_json_document(trace, result, web, tmp_path):
    written = json.loads((trace[0] / "run.json").read_text())
    expected = result.to_json()
    names = set(result.queues["link"])
    expected["links"] = [link for link in expected["links"] if link["name"] in names]
    assert written == expected
    write_trace(web, tmp_path)
    assert [flow["name"] for flow in json.loads((tmp_path / "run.json").read_text())["flows"]] == [
        "long"
    ]


def test_runs_of_pairs_are_rows(tmp_path):
    pairs = cwnd.compare(["reno", "simd", "cubic"], time="2s", flows=2, repeat=2, pairs=True)
    write_comparison(pairs, tmp_path)
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    met = runs[runs["mode"] == "against"]
    assert set(zip(met["controller"], met["against"], strict=True)) == {
        (row.controller, row.against) for row in [*pairs.rows_against, *pairs.rows_pairs]
    }
    (row,) = pairs.rows_pairs
    mine = met[(met["controller"] == row.controller) & (met["against"] == row.against)]
    assert list(mine["share"]) == pytest.approx(row.values("share"))
    assert set(runs[runs["mode"] == "alone"]["against"]) == {""}
    assert len(runs) == len(pairs.results)


@pytest.mark.parametrize("folder", ["deep", "deep.csv"])
def test_runs_of_a_comparison(comparison, tmp_path, folder):
    written = write_comparison(comparison, tmp_path / folder)
    assert sorted(written) == sorted((tmp_path / folder).iterdir())
    read = pd.read_csv if folder == "deep.csv" else pd.read_parquet
    suffix = "csv" if folder == "deep.csv" else "parquet"
    names = ("runs", "flows", "links")
    assert {path.name for path in written} == {f"{name}.{suffix}" for name in names} | {
        "compare.json"
    }
    frames = {name: read(tmp_path / folder / f"{name}.{suffix}") for name in names}
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
    same(last.drop(columns="run").reset_index(drop=True), frame_of(comparison.results[-1], "flows"))
    assert list(frames["links"]["run"].unique()) == list(range(len(runs)))
    document = json.loads((tmp_path / folder / "compare.json").read_text())
    assert document == comparison.to_json()
