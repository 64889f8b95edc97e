from __future__ import annotations

import math
import time

import numpy as np
import pytest

import cwnd
from cwnd import metrics
from cwnd._runs.flow_completion import transfers_of
from cwnd._runs.result import Result

WEB = """duration = "20s"
warmup = "1s"
[dumbbell]
rate = "20mbit"
delay = "10ms"
[[flow]]
controller = "reno"
name = "web"
count = 40
bytes = 20000
start = "0s..15s"
[[flow]]
controller = "reno"
name = "big"
bytes = 800000
start = "2s"
"""

LINKS = """
[[link]]
from = "left"
to = "m"
rate = "3mbit"
delay = "2ms"
name = "x"
[[link]]
from = "m"
to = "right"
rate = "2mbit"
delay = "1ms"
[[link]]
from = "left"
to = "far"
[[link]]
from = "far"
to = "m"
"""


def test_a_seed_without_arrivals_has_a_result_and_a_report(tmp_path):
    text = WEB[: WEB.index("[[flow]]")] + (
        "[[flow]]\ncontroller = 'reno'\narrivals = {rate = 1e-9, sizes = 10000}\n"
    )
    result = cwnd.run(cwnd.Scenario.from_toml(text))
    assert len(result.flows) == 0
    result.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000


@pytest.mark.parametrize(("handshake", "longest"), [("false", 1.01), ("true", 1.01 + 0.02 / 0.026)])
def test_a_transfer_of_one_window_on_the_empty_path_is_ideal(handshake, longest):
    # Ten packets are the initial window. A handshake costs another round trip of 20 ms.
    text = WEB[: WEB.index("[[flow]]")] + (
        "[[flow]]\ncontroller = 'reno'\nbytes = 14600\nstart = '2s'\n"
        f"tcp = {{delayed_acks = false, overhead = 0, syn = {handshake}}}\n"
    )
    found = cwnd.run(cwnd.Scenario.from_toml(text)).transfers()
    assert found.bytes.tolist() == [14600.0]
    assert longest - 0.01 <= found.slowdown[0] < longest


def test_the_json_document_counts_the_transfers():
    result = cwnd.run(cwnd.Scenario.from_toml(WEB))
    flows = [f for f in result.record["flows"] if f["start_s"] >= 1]
    found = result.to_json()["metrics"]["transfers"]
    assert found["number"] == len(flows)
    assert found["completed"] == 1.0
    times = [flow["acknowledged_s"] - flow["start_s"] for flow in flows]
    assert found["fct_s"]["mean"] == pytest.approx(np.mean(times))
    assert found["fct_s"]["max"] == pytest.approx(max(times))
    assert [(each["low_bytes"], each["number"]) for each in found["by_size"]] == [
        (1e4, len(flows) - 1),
        (1e5, 1),
    ]
    (outcome,) = result.check({"fct": {"p99": {"big": ">= 0"}}})
    assert outcome.value == pytest.approx(times[-1])


@pytest.mark.parametrize(
    ("network", "rate", "rtt"),
    [
        (
            "[dumbbell]\nrate = '8mbit'\ndelay = '5ms'\n[access]\ndelay = '1ms'\nrate='4mbit'",
            4e6,
            14,
        ),
        ("[dumbbell]\nrate = '8mbit'\ndelay = '5ms'\nback = {delay = '7ms'}", 8e6, 12),
        ("[chain]\nrouters = 4\nrate = '8mbit'\ndelay = '5ms'", 8e6, 30),
        (
            LINKS,
            2e6,
            6,
        ),
    ],
)
def test_the_empty_path_has_the_rate_and_delay_of_the_route(network, rate, rtt):
    ends = "from = 'left'\nto = 'right'\n" if "link" in network else ""
    flow = f"[[flow]]\ncontroller = 'reno'\nbytes = 30000\ncount = 2\n{ends}"
    result = cwnd.run(cwnd.Scenario.from_toml(f"duration = '5s'\n{network}\n{flow}"))
    found = result.transfers()
    wire = 30000 + 40 * math.ceil(30000 / 1460)
    assert found.fct / found.slowdown == pytest.approx([8 * wire / rate + rtt / 1000] * 2)


def test_paths_of_cross_traffic_and_of_groups_without_a_name():
    text = (
        "duration = '3s'\n[chain]\nrouters = 3\nrate = '8mbit'\ndelay = '5ms'\n"
        "[[flow]]\ncontroller = 'reno'\nbytes = 30000\n"
        "[[flow]]\ncontroller = 'reno'\nbytes = 30000\ncross = true\n"
    )
    result = cwnd.run(cwnd.Scenario.from_toml(text))
    found = {flow["name"]: round(flow["base_rtt_s"] * 1e3) for flow in result.record["flows"]}
    assert found == {"reno-1": 20, "reno-2": 10, "reno-3": 10}


VARYING = """duration = "12s"
sample = "20ms"
[dumbbell]
rate = "1mbit"
delay = "10ms"
queue = "1000p"
changes = [{ at = "5s", rate = "0bit" }, { at = "6s", rate = "4mbit", delay = "5ms" }]
"""


def test_the_slowdown_refers_to_the_capacity_that_the_link_offered():
    # A megabyte takes a second at 1 Mbit/s, a second at no rate, and the rest at 4 Mbit/s.
    text = f"{VARYING}[[flow]]\ncontroller = 'reno'\nbytes = 1000000\nstart = '4s'\n"
    found = cwnd.run(cwnd.Scenario.from_toml(text)).transfers()
    wire = 8 * (1_000_000 + 40 * math.ceil(1_000_000 / 1460))
    # The least delay of the run is 5 ms in either direction.
    ideal = 2 + (wire - 1e6) / 4e6 + 0.01
    assert found.fct / found.slowdown == pytest.approx([ideal], rel=1e-6)
    assert 1 < found.slowdown[0] < 1.2


def test_no_transfer_on_a_varying_link_is_faster_than_its_ideal():
    text = (
        "duration = '30s'\nseed = 3\n[dumbbell]\nmodel = {kind = 'leo', rate = '50mbit..250mbit'}\n"
        "queue = 'codel'\n"
        "[[flow]]\ncontroller = 'cubic'\n"
        "arrivals = {rate = 20, sizes = {kind = 'lognormal', mean = '100kb', sigma = 2}}\n"
    )
    found = cwnd.run(cwnd.Scenario.from_toml(text)).transfers()
    known = found.slowdown[np.isfinite(found.slowdown)]
    assert known.size > 400
    assert known.min() > 0.999


def test_a_file_of_sizes_is_read_wherever_a_scenario_comes_from(tmp_path, monkeypatch):
    (tmp_path / "web.txt").write_text("# bytes\n1000\n20000\n")
    head = "duration = '3s'\n[dumbbell]\nrate = '8mbit'\ndelay = '5ms'\n"
    head += "[[flow]]\ncontroller = 'reno'\n"
    (tmp_path / "web.toml").write_text(f"{head}arrivals = {{ rate = 20, sizes = 'web.txt' }}\n")
    listed = {"kind": "list", "bytes": [1000, 20000]}
    scenario = cwnd.Scenario.from_toml(tmp_path / "web.toml")
    # The contents are part of the scenario: of its text, and of the runs of a sweep.
    assert scenario.to_dict()["flow"][0]["arrivals"]["sizes"] == listed
    again = cwnd.Scenario.from_toml(scenario.to_toml())
    expected = cwnd.run(scenario).transfers().bytes.tolist()
    assert set(expected) == {1000.0, 20000.0}
    assert cwnd.run(again).transfers().bytes.tolist() == expected
    # From Python and with --set, names are relative to the working directory.
    monkeypatch.chdir(tmp_path)
    found = cwnd.run(scenario, values={"flow[0].arrivals.sizes": "web.txt"}).transfers()
    assert found.bytes.tolist() == expected
    with pytest.raises(cwnd.ScenarioError, match="is not an amount of data such as 100kb"):
        cwnd.run(scenario, values={"flow[0].arrivals.sizes": "100kbb"})


def test_transfers_of_an_application_are_used():
    flow = {
        "name": "a",
        "packet_bytes": 1000,
        "header_bytes": 40,
        "path": (),
        "base_rtt_s": 0.02,
        "start_s": 0.0,
        "completed_s": math.nan,
        "acknowledged_s": math.nan,
        "delivered": np.zeros(2),
        "bytes": None,
        "transfers": {
            "begin": np.array([1.0, 2.0]),
            "bytes": np.array([1e3, 5e4]),
            "end": np.array([1.5, math.nan]),
        },
    }
    record = {"scenario": "", "warmup_s": 0.0, "duration_s": 4.0, "time": np.arange(2.0)}
    result = Result(record | {"flows": [], "links": []}, scales=[1.0, 1.0, 1.0])
    found = transfers_of(result, [flow])
    assert found.bytes.tolist() == [1e3, 5e4]
    assert found.fct[0] == 0.5
    assert math.isnan(found.fct[1])


@pytest.mark.slow
def test_many_short_flows_take_seconds():
    count = 200_000
    rng = np.random.default_rng(1)
    sizes = np.ceil(rng.pareto(1.2, count) * 1e3 + 100)
    times = rng.exponential(0.1, count)
    flows = [
        {
            "name": f"web-{number}",
            "packet_bytes": 1460,
            "header_bytes": 40,
            "path": (0,),
            "base_rtt_s": 0.02,
            "start_s": 1.0,
            "acknowledged_s": 1.0 + time,
            "bytes": size,
            "transfers": None,
        }
        for number, (size, time) in enumerate(zip(sizes.tolist(), times.tolist(), strict=True), 1)
    ]
    links = [{"name": "left-right", "rate_bps": 1e7, "capacity_bps": np.empty(0)}]
    record = {"scenario": "", "warmup_s": 0.0, "flows": flows, "links": links}
    result = Result(record, scales=[1.0, 1.0, 1.0])
    begun = time.process_time()
    found = transfers_of(result, flows)
    classes = metrics.by_size(found.bytes, found.fct)
    assert time.process_time() - begun < 5
    assert sum(each.spread.number for each in classes) == count
    chosen = found.fct[(sizes >= 1e3) & (sizes < 1e4)]
    (spread,) = [each.spread for each in classes if each.low == 1e3]
    assert spread.p95 == np.quantile(chosen, 0.95, method="inverted_cdf")
    wire = sizes + 40 * np.ceil(sizes / 1460)
    assert found.slowdown == pytest.approx(found.fct / (wire * 8 / 1e7 + 0.02))


def test_harm_in_a_comparison():
    found = cwnd.compare(
        ["gaimd(2, 9/10)"], rate="10mbit", rtt="40ms", time="20s", flows=4, repeat=2, queue="1bdp"
    )
    (row,) = [r for r in found.rows_against if r.controller.startswith("gaimd")]
    (own,) = [r for r in found.rows_alone if r.controller == "reno"]
    alone = np.array(own.values("goodput_bps")) / 4
    beside = np.array(row.values("reference_goodput_bps")) / 2
    assert row.values("harm_goodput") == pytest.approx(list((alone - beside) / alone))
    assert row.figures["harm_goodput"].mean > 0.2


def test_the_report_has_the_plots_of_transfers(tmp_path):
    result = cwnd.run(cwnd.Scenario.from_toml(WEB))
    result.report(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    for part in ('id="transfers"', "Transfers by size", "10 kB–100 kB"):
        assert part in page
    panels = result.plot_transfers().get_axes()
    assert len(panels[0].get_lines()) == 2
    assert len(panels[1].get_lines()) == 3


def test_jain_over_time_counts_active_flows():
    time_s = np.arange(5.0)
    delivered = [time_s, 3 * np.maximum(time_s - 2, 0)]
    found = metrics.jain_over_time(time_s, delivered, 1.0, active=[(0, 4), (2, 4)])
    assert np.isnan(found.jain[:2]).all()
    assert found.jain[2:].tolist() == [0.8, 0.8]
    assert (found.worst, found.mean) == (0.8, 0.8)


def test_harm_of_nothing_is_nothing():
    assert metrics.harm(0.0, 0.0, more_is_better=False) == 0.0
    assert metrics.harm(0.0, 0.01, more_is_better=False) == 1.0
    assert math.isnan(metrics.harm(0.01, 0.0, more_is_better=False))
    assert metrics.harm(5.0, 6.0, more_is_better=True) == pytest.approx(-0.2)


WEB_AND_LONG = """duration = "20s"
warmup = "5s"
[dumbbell]
rate = "20mbit"
delay = "10ms"
[[flow]]
controller = "cubic"
name = "long"
[[flow]]
controller = "cubic"
name = "web"
arrivals = { load = 0.4, sizes = "30kb" }
"""


def test_totals_are_over_the_measured_time_and_indices_over_the_active_flows():
    result = cwnd.run(cwnd.Scenario.from_toml(WEB_AND_LONG))
    flows = result.measured_flows
    ended = [flow for flow in flows if flow["completed_s"] < 5]
    assert ended
    delivered = sum(flow["bytes_delivered"] for flow in flows)
    assert result.metrics["goodput_bps"] == pytest.approx(8 * delivered / 15)
    assert 15e6 < result.metrics["goodput_bps"] < 20e6
    rates = [result.goodput_bps(flow) for flow in flows if result.seconds(flow) > 0]
    assert len(rates) <= len(flows) - len(ended)
    assert result.metrics["fairness_index"] == metrics.jain(rates)
    web = [flow for flow in flows if flow["bytes"] is not None]
    assert result.metrics["jain"] == metrics.jain(result.goodputs_bps(web))
    expected = {"goodput": "<= 20mbit", "goodput.mean": "> 0", "jain": "> 0", "rtt": "> 20ms"}
    assert all(outcome.holds for outcome in result.check(expected))
    assert result.check({"throughput": {"web": "> 0"}})[0].value < 20e6


MIXED = (
    WEB_AND_LONG
    + """
[[flow]]
controller = "reno"
name = "other"
"""
)


def test_fairness_is_that_of_flows_of_one_kind():
    from cwnd._show.report.workload import fairness_data
    from cwnd._show.sheets import metric_items

    result = cwnd.run(cwnd.Scenario.from_toml(MIXED))
    endless = [flow for flow in result.measured_flows if flow["bytes"] is None]
    web = [flow for flow in result.measured_flows if flow["bytes"] is not None]
    assert [flow["name"] for flow in endless] == ["long", "other"]
    found = [
        (value, remark)
        for name, value, remark in metric_items(result.to_json()["metrics"])
        if "Jain" in name
    ]
    of_endless, of_web = (metrics.jain(result.goodputs_bps(flows)) for flows in (endless, web))
    assert found == [
        (f"{of_endless:.3f}", "of the 2 flows that always have data; 1 is equal"),
        (f"{of_web:.3f}", f"of the {len(web)} flows of web; 1 is equal"),
    ]
    assert abs(of_endless - result.metrics["fairness_index"]) > 0.05
    assert f"Jain {of_endless:.3f}" in repr(result)
    assert result.metrics["jain"] == of_endless
    assert result.to_json()["metrics"]["jain_by_kind"] == [
        {"name": None, "number": 2, "jain": of_endless},
        {"name": "web", "number": len(web), "jain": of_web},
    ]
    bounds = {"jain": "> 0", "jain.web": "> 0", "jain.worst": "> 0"}
    first, of_name, lowest = result.check(bounds)
    assert (first.value, of_name.value) == (of_endless, of_web)
    assert first.text.endswith(", of the 2 flows that always have data")
    assert of_name.text.startswith("holds  jain.web > 0: ")
    assert "," not in of_name.text
    assert lowest.value == result.jain_over_time().worst == result.metrics["jain_windows"]["worst"]
    windows = result.jain_over_time(flows=endless)
    (worst,) = (
        value
        for name, value, _ in metric_items(result.to_json()["metrics"])
        if name == "Worst window"
    )
    assert worst == f"{windows.worst:.3f}"
    drawn = fairness_data(result)
    assert drawn["title"].startswith("Jain's index of the 2 flows that always have data over ")
    assert min(drawn["jain"]) == pytest.approx(windows.worst, rel=1e-3)
    figure = result.plot_transfers()
    assert figure.axes[2].get_title() == "of the 2 flows that always have data"
    assert min(figure.axes[2].lines[0].get_ydata()) == pytest.approx(windows.worst)


def test_a_comparison_has_the_fairness_of_one_kind():
    scenario = cwnd.Scenario.from_toml(MIXED)
    comparison = cwnd.compare(["cubic"], network=scenario, repeat=2)
    for row in [*comparison.rows_alone, *comparison.rows_against]:
        for run, found in zip(row.results, row.values("jain"), strict=True):
            flows = [flow for flow in run.measured_flows if flow["bytes"] is None]
            assert len(flows) == 2
            assert found == metrics.jain(run.goodputs_bps(flows))


def test_tables_have_groups_of_finite_flows_in_one_row(tmp_path):
    from cwnd._runs.flow_groups import group_flows
    from cwnd._show.sheets import flow_sheet
    from cwnd._show.transfer_sheet import group_sheet

    result = cwnd.run(cwnd.Scenario.from_toml(WEB_AND_LONG))
    web = group_flows(result.record["flows"]).groups["web"]
    assert len(web) == len(result.record["flows"]) - 1 > 100
    assert [row[0] for row in flow_sheet(result.to_json_without_groups()).rows] == ["long"]
    (row,) = group_sheet(result.group_rows()).rows
    found = metrics.spread(result.transfers(web).fct)
    heads = [title for title, _, _ in group_sheet(result.group_rows()).heads]
    assert row[:3] == ["web", "cubic", str(len(web))]
    assert row[heads.index("p99")] == f"{1e3 * found.p99:.1f}"
    # Their throughput is one line of the plots.
    legend = [text.get_text() for text in result.plot().legends[0].get_texts()]
    assert legend == ["long (cubic)", f"web (cubic): {len(web)} flows together"]


def test_the_line_of_a_window_ends_at_the_completion():
    text = WEB.replace("count = 40", "count = 2").replace("0s..15s", "1s")
    result = cwnd.run(cwnd.Scenario.from_toml(text))
    ends = {flow["name"]: flow["completed_s"] for flow in result.record["flows"]}
    for line in result.plot().get_axes()[0].get_lines():
        name = line.get_label().removesuffix(" (reno)")
        assert 0 <= ends[name] - line.get_xdata()[-1] < 0.1


def test_transfers_that_arrive_have_either_controller_in_a_comparison():
    from cwnd._show.sheets import against_columns

    scenario = cwnd.Scenario.from_toml(WEB_AND_LONG)
    mixed = scenario.with_controllers("reno", "cubic", turn=1)
    result = cwnd.run(mixed)
    names = [flow["controller"] for flow in result.record["flows"] if "web" in flow["name"]]
    arrived = sum("web" in flow["name"] for flow in cwnd.run(scenario).record["flows"])
    # Each half is Poisson: five standard deviations.
    for name in ("reno", "cubic"):
        assert abs(names.count(name) - arrived / 2) < 5 * math.sqrt(arrived)
    found = cwnd.compare(["reno"], reference="cubic", network=scenario, repeat=2)
    (row,) = found.rows_against
    assert all(math.isfinite(value) for value in row.values("harm_fct"))
    assert 0 < row.figures["share"].mean < 1
    assert "FCT" in [column.title for column in against_columns(found)]
