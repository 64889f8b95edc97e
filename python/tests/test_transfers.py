from __future__ import annotations

import math
import time

import numpy as np
import pytest

import cwnd
from cwnd import metrics
from cwnd.completion import transfers_of
from cwnd.result import Result

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


@pytest.mark.parametrize(("handshake", "longest"), [("false", 1.01), ("true", 1.01 + 0.02 / 0.026)])
def test_a_transfer_of_one_window_on_the_empty_path_is_ideal(handshake, longest):
    # Ten packets are the initial window. A handshake costs another round trip of 20 ms.
    text = WEB[: WEB.index("[[flow]]")] + (
        "[[flow]]\ncontroller = 'reno'\nbytes = 14600\nstart = '2s'\n"
        f"tcp = {{delayed_acks = false, syn = {handshake}}}\n"
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
    times = [flow["completed_s"] - flow["start_s"] for flow in flows]
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
    from cwnd.paths import paths

    for path in paths(result.document, result.record).values():
        assert path.rate_bps == rate
        assert path.rtt_s == pytest.approx(rtt / 1000)
        assert path.header == 40


def test_paths_of_cross_traffic_and_of_groups_without_a_name():
    text = (
        "duration = '3s'\n[chain]\nrouters = 3\nrate = '8mbit'\ndelay = '5ms'\n"
        "[[flow]]\ncontroller = 'reno'\nbytes = 30000\n"
        "[[flow]]\ncontroller = 'reno'\nbytes = 30000\ncross = true\n"
    )
    from cwnd.paths import paths

    result = cwnd.run(cwnd.Scenario.from_toml(text))
    found = paths(result.document, result.record)
    assert {name: round(path.rtt_s * 1e3) for name, path in found.items()} == {
        "reno-1": 20,
        "reno-2": 10,
        "reno-3": 10,
    }


def test_transfers_of_an_application_are_used():
    flow = {
        "name": "a",
        "packet_bytes": 1000,
        "start_s": 0.0,
        "completed_s": math.nan,
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


def test_a_million_transfers_take_seconds():
    count = 1_000_000
    rng = np.random.default_rng(1)
    sizes = rng.pareto(1.2, count) * 1e3 + 100
    times = rng.exponential(0.1, count)
    begun = time.perf_counter()
    found = metrics.by_size(sizes, times)
    assert time.perf_counter() - begun < 5
    assert sum(each.spread.number for each in found) == count
    chosen = times[(sizes >= 1e3) & (sizes < 1e4)]
    (spread,) = [each.spread for each in found if each.low == 1e3]
    assert spread.p95 == np.quantile(chosen, 0.95, method="inverted_cdf")


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
