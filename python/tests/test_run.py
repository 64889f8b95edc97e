from __future__ import annotations

import json
import math
import shlex
from threading import get_ident

import numpy as np
import pytest
import tomli_w

import cwnd
from cwnd._runs.run import measure
from cwnd._show.sheets import path_text
from cwnd.errors import ArgumentError
from cwnd.stats import POSITIVE, estimate

FLOW_NAMES = {
    "name",
    "controller",
    "throughput_bps",
    "goodput_bps",
    "packets_sent",
    "packets_delivered",
    "retransmissions",
    "timeouts",
    "cuts",
    "loss_rate",
    "mean_rtt_s",
    "mean_window",
    "limited",
}


def test_the_json_document_has_the_promised_names(result):
    document = result.to_json()
    assert {"scenario", "seed", "duration_s", "flows", "links", "metrics", "engine"} <= set(
        document
    )
    for flow in document["flows"]:
        assert set(flow) >= FLOW_NAMES
        assert set(flow["limited"]) == {"window", "pacing", "receiver", "application"}
    for link in document["links"]:
        assert {"name", "utilization", "drops", "marks", "loss_rate", "mean_queue"} <= set(link)
    assert "jain" in document["metrics"]
    assert set(document["engine"]) == {"packets", "events", "wall_s"}


def test_the_json_document_is_json(result):
    text = json.dumps(result.to_json(), allow_nan=False)
    assert json.loads(text) == result.to_json()


def test_lookahead_does_not_change_results(tmp_path):
    scenario = cwnd.Scenario.dumbbell(rate="5mbit", rtt="40ms", time="5s").add_flow("reno", count=2)
    captures = [tmp_path / "with", tmp_path / "without"]
    results = [
        cwnd.run(scenario, lookahead=lookahead, pcap=("left-right", path))
        for lookahead, path in zip([True, False], captures, strict=True)
    ]
    documents = [result.to_json() for result in results]
    engines = [document.pop("engine") for document in documents]
    assert documents[0] == documents[1]
    assert engines[0]["events"] < engines[1]["events"]
    assert captures[0].read_bytes() == captures[1].read_bytes()


def test_lookahead_needs_the_simulator(scenario_file):
    with pytest.raises(ArgumentError, match="sim"):
        cwnd.run(scenario_file, on="udt", lookahead=False)


def test_the_figures_hang_together(result):
    document = result.to_json()
    for flow in document["flows"]:
        assert flow["packets_delivered"] <= flow["packets_sent"]
        assert flow["goodput_bps"] <= flow["throughput_bps"] * 1.02
        assert 0.04 <= flow["min_rtt_s"] <= flow["mean_rtt_s"] < 1.0
        assert sum(flow["limited"].values()) <= result.measured_s * 1.001
        assert flow["mean_window"] >= 1
    rate = max(link["rate_bps"] or 0 for link in document["links"])
    # What waited for a hole to be filled may be delivered after the warm-up.
    assert 0.5 * rate < document["metrics"]["goodput_bps"] < 1.1 * rate
    for link in document["links"]:
        assert 0 <= link["utilization"] <= 1.001
        assert link["departures"] + link["drops"] <= link["arrivals"] + 500
        delay = link["queue_delay_s"]
        assert delay["p50"] <= delay["p95"] <= delay["p99"]


def test_series_cover_the_whole_run(result):
    n = result.time.size
    assert result.time[0] >= 0
    assert result.time[-1] == pytest.approx(result.duration_s, abs=0.2)
    assert (np.diff(result.time) > 0).all()
    for flow in result.record["flows"]:
        for name in ("window", "ssthresh", "rtt", "sent", "delivered"):
            assert flow[name].shape == (n,)
        assert (np.diff(flow["delivered"]) >= 0).all()
        assert (np.diff(flow["sent"]) >= 0).all()
    for link in result.record["links"]:
        assert link["queue"].shape == (n,)
        assert (np.diff(link["drops_series"]) >= 0).all()


def test_counters_begin_after_the_warm_up(result):
    for flow in result.record["flows"]:
        before = np.interp(result.warmup_s, result.time, flow["delivered"])
        counted = flow["delivered"][-1] - before
        assert flow["packets_delivered"] == pytest.approx(counted, rel=0.05, abs=20)


def test_background_traffic_is_not_measured(result):
    assert [flow["controller"] for flow in result.measured_flows] == ["reno"] * 2 + ["simd"] * 2
    goodputs = result.flows.loc[result.flows["measured"], "goodput_bps"]
    assert result.metrics["goodput_bps"] == pytest.approx(goodputs.sum())


def test_tables(result):
    assert len(result.flows) == 5
    assert {"limited_window_s", "goodput_bps"} <= set(result.flows.columns)
    assert "queue_delay_mean_s" in result.links.columns
    active = [result.time >= flow["start_s"] for flow in result.record["flows"]]
    assert len(result.samples) == sum(map(sum, active))
    assert len(result.queues) == 2 * result.time.size
    cuts = result.cuts
    assert set(cuts["cause"].unique()) <= {"loss", "mark", "timeout"}
    assert cuts["time_s"].is_monotonic_increasing
    assert (cuts["after"] < cuts["before"]).all()
    measured = (cuts["time_s"] >= result.warmup_s).sum()
    assert measured == result.flows["cuts"].sum()


def test_the_same_seed_gives_the_same_run(result, two):
    again = cwnd.run(cwnd.Scenario.from_toml(two), seed=7)
    for one, other in zip(result.record["flows"], again.record["flows"], strict=True):
        np.testing.assert_array_equal(one["window"], other["window"])
    other_seed = cwnd.run(cwnd.Scenario.from_toml(two), seed=8)
    assert not np.array_equal(
        result.record["flows"][0]["window"], other_seed.record["flows"][0]["window"]
    )


def test_the_scenario_may_name_the_seed(two):
    scenario = cwnd.Scenario.from_toml("seed = 42\n" + two)
    assert cwnd.run(scenario).seed == 42
    assert cwnd.run(scenario, seed=3).seed == 3


@pytest.mark.parametrize("seed", [-1, 2**64, "1", 1.5])
def test_impossible_seeds(seed, two):
    with pytest.raises(ArgumentError, match=r"^seed: .* is not a whole number from 0 to "):
        cwnd.run(cwnd.Scenario.from_toml(two), seed=seed)


def test_finite_flows_complete():
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="10s")
    result = cwnd.run(scenario.add_flow("reno", bytes=144_800))
    (flow,) = result.measured_flows
    assert 0.1 < flow["completed_s"] < 2.0
    assert flow["packets_delivered"] == 100
    assert flow["bytes_delivered"] == 144_800
    assert result.seconds(flow) == pytest.approx(flow["completed_s"] - flow["start_s"])
    assert result.to_json()["flows"][0]["completed_s"] == flow["completed_s"]


def test_a_transfer_of_a_packet_counts_its_data():
    scenario = cwnd.Scenario.dumbbell(rate="100mbit", rtt="20ms", time="2s")
    scenario = scenario.add_flow("cubic", bytes=1000, tcp={"delayed_acks": False})
    document = cwnd.run(scenario).to_json()
    (flow,) = document["flows"]
    assert [flow[name] for name in ("packets_sent", "packets_delivered")] == [1, 1]
    # The SYN and its answer, the data, the acknowledgement.
    assert flow["completed_s"] == pytest.approx(0.03, abs=1e-3)
    assert flow["acknowledged_s"] == pytest.approx(0.04, abs=1e-3)
    assert flow["throughput_bps"] == flow["goodput_bps"] == 8 * 1000 / flow["completed_s"]
    (mean,) = {document["metrics"]["transfers"]["fct_s"][each] for each in ("mean", "p50", "max")}
    assert mean == flow["acknowledged_s"]


@pytest.mark.parametrize(
    ("queue", "limit", "unit"), [("15kb", 15360, "bytes"), ("10p", 10, "packets")]
)
def test_a_limit_carries_its_unit(queue, limit, unit):
    compared = cwnd.compare(
        ["reno"], rate="10mbit", rtt="20ms", queue=queue, time="2s", repeat=1, reference="cubic"
    )
    document = compared.to_json()
    assert document["network"]["queue_limit"] == limit
    assert document["network"]["queue_limit_unit"] == unit
    assert f"{queue} queue of {limit} {unit}" in path_text(document["network"])


def test_the_limit_of_a_link_carries_its_unit():
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="20ms", queue="15kb", time="1s")
    link = cwnd.run(scenario.add_flow("reno")).to_json()["links"][0]
    assert (link["queue_limit"], link["queue_limit_unit"]) == (15360, "bytes")


def test_each_run_is_measured_once_and_in_its_place(two):
    threads = set()

    def keep(job, result):
        threads.add(get_ident())
        return job, result.seed, result.metrics["utilization"]

    scenario = cwnd.Scenario.from_toml(two)
    kept = measure([(scenario, seed) for seed in (5, 6, 7)], keep)
    alone = [cwnd.run(scenario, seed).metrics["utilization"] for seed in (5, 6, 7)]
    assert kept == [(0, 5, alone[0]), (1, 6, alone[1]), (2, 7, alone[2])]
    assert threads == {get_ident()}


def test_what_goes_wrong_in_a_measure_is_raised_and_ends_the_runs(two):
    def keep(job, result):
        raise KeyError(job)

    scenario = cwnd.Scenario.from_toml(two)
    with pytest.raises(KeyError):
        measure([(scenario, seed) for seed in range(1, 40)], keep)


def test_progress_reaches_the_end(two):
    seen = []
    cwnd.run(cwnd.Scenario.from_toml(two), progress=seen.append)
    assert all(0 <= fraction <= 1 for fraction in seen)
    assert seen == sorted(seen)


def test_what_limits_a_flow_is_told():
    scenario = cwnd.Scenario.dumbbell(rate="100mbit", rtt="100ms", time="10s")
    result = cwnd.run(scenario.add_flow("reno", tcp={"window": 10}))
    (flow,) = result.record["flows"]
    assert flow["limited"]["receiver"] > 0.9 * result.measured_s
    # Ten packets a round-trip time and no more.
    assert result.goodput_bps(flow) == pytest.approx(10 * 1460 * 8 / 0.1, rel=0.05)


def test_plot(result, tmp_path):
    result.plot().savefig(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").stat().st_size > 10_000


def test_runs_without_any_measured_flow():
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="5s")
    result = cwnd.run(scenario.add_flow("reno", measured=False))
    assert result.to_json()["metrics"]["jain"] is None
    assert math.isfinite(result.metrics["utilization"])
    assert "<html" in _page(result)


def _page(result):
    from cwnd._show.report.run import run_page

    return run_page(result)


def test_values_replace_those_of_a_file(scenario_file):
    run = cwnd.run(scenario_file, values={"dumbbell.rate": "5mbit", "flow[0].count": 3})
    assert run.bottleneck["rate_bps"] == 5e6
    assert len(run.measured_flows) == 5
    assert run.rerun == (
        f"cwnd run {scenario_file} --set dumbbell.rate=5mbit --set 'flow[0].count=3' --seed 1"
    )
    with pytest.raises(ValueError, match=r"^set: dumbbell\.rate: a rate needs a unit"):
        cwnd.run(scenario_file, values={"dumbbell.rate": "5"})
    with pytest.raises(ValueError, match=r'^set: tcp\.packet: .* such as "1460b", not 500$'):
        cwnd.run(scenario_file, values={"tcp": {"packet": 500}})


def test_repeated_runs_have_means_and_intervals(command, tmp_path, two):
    """The figures are those of single runs with the same seeds."""
    file = tmp_path / "two.toml"
    file.write_text(two)
    words = ["run", file, "--set", "duration=8s", "--repeat", "3", "--seed", "5"]
    document = json.loads(command(*words, "--json").stdout)
    assert document["seeds"] == [5, 6, 7]
    runs = [cwnd.run(file, seed, values={"duration": "8s"}).to_json() for seed in (5, 6, 7)]
    for name in ("goodput_bps", "jain", "utilization"):
        found = document["metrics"][name]
        assert found["values"] == [run["metrics"][name] for run in runs]
        assert found["mean"] == pytest.approx(np.mean(found["values"]))
        assert found["interval"][0] <= found["mean"] <= found["interval"][1]
    assert document["metrics"]["jain"]["interval"][1] <= 1
    for i, flow in enumerate(document["flows"]):
        assert flow["name"] == runs[0]["flows"][i]["name"]
        assert flow["cuts"]["values"] == [run["flows"][i]["cuts"] for run in runs]
    assert document["links"][0]["rate_bps"] == 10e6
    again = shlex.split(document["rerun"])
    assert json.loads(command(*again[1:], "--json").stdout) == document
    text = command(*words).stdout
    assert "seeds 5 to 7" in text
    mean, (low, high) = (document["metrics"]["jain"][part] for part in ("mean", "interval"))
    assert f"Jain's index: {mean:.3f} ({low:.3f}–{high:.3f})" in text


def test_transfers_of_repeated_runs_are_estimated_by_group(command, tmp_path):
    """Seeds have different numbers of transfers; none of them is a flow of the tables."""
    file = tmp_path / "web.toml"
    sizes = {"kind": "pareto", "mean": "30kb", "shape": 1.2, "max": "1mb"}
    flow = {"controller": "reno", "name": "web", "arrivals": {"load": 0.5, "sizes": sizes}}
    link = {"rate": "10mbit", "delay": "10ms"}
    scenario = {"name": "web", "duration": "6s", "warmup": "1s", "dumbbell": link, "flow": [flow]}
    file.write_text(tomli_w.dumps(scenario))
    document = json.loads(command("run", file, "--repeat", "2", "--json").stdout)
    assert document["flows"] == []
    runs = [cwnd.run(file, seed) for seed in (1, 2)]
    (group,) = document["groups"]
    assert group["name"] == "web"
    assert group["flows"]["values"] == [len(run.measured_flows) for run in runs]
    assert len(set(group["flows"]["values"])) == 2
    medians = [run.to_json()["metrics"]["transfers"]["fct_s"]["p50"] for run in runs]
    assert group["fct_s"]["p50"]["values"] == medians
    assert "Transfers by size" in command("run", file, "--repeat", "2").stdout


def test_goodputs_of_repeated_runs_are_at_most_the_rate_of_their_link(two):
    """A flow that waits for others has very different goodputs."""
    values = {"duration": "3s", "warmup": "0s", "flow[0].start": "0s..3s"}
    document = cwnd.run_repeated(cwnd.Scenario.from_toml(two), 3, values=values).to_json()
    found = [flow["goodput_bps"] for flow in document["flows"]]
    spread = [estimate(figure["values"], POSITIVE).high for figure in found]
    assert max(spread) > 10e6
    for figure in (document["metrics"]["goodput_bps"], *found):
        assert figure["interval"][1] <= 10e6


@pytest.mark.parametrize("option", ["--plot", "--trace"])
def test_repeated_runs_have_no_plot_and_no_trace(command, tmp_path, two, option):
    file = tmp_path / "two.toml"
    file.write_text(two)
    done = command("run", file, "--repeat", "2", option, tmp_path / "out.png")
    assert done.returncode == 2
    assert done.stderr == f"cwnd: {option}: not with --repeat\n"
    assert not (tmp_path / "out.png").exists()
