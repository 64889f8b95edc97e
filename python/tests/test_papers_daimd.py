"""The DAIMD paper: its networks, what is read off a run, and its small models."""

import json
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest

from cwnd import run
from cwnd._papers.daimd import measures as read
from cwnd._papers.daimd import networks as net
from cwnd._papers.daimd.analysis import at_edge, larger_ratio, same_stage, three
from cwnd._papers.daimd.sharing import stage_rate
from cwnd._papers.exhibit import Lab, exhibits
from cwnd._papers.text import read_text
from cwnd.model import daimd as model

SCENARIOS = {
    "climb": (net.climb(net.without_window(net.LAW, 10.0), 10.0, 0.2, 1.0, 2.0), 2),
    "recovery": (net.recovery(10.0, 0.2, 5.0), 1),
    "staircase": (net.staircase("udt", 2.0), 4),
    "two bottlenecks": (net.two_bottlenecks(net.LAW, 0.1, 3.0, 1.0), 2),
    "near and far": (net.near_and_far("udt", 3.0, 1.0), 5),
    "parking lot": (net.parking_lot("udt", 3.0, 1.0), 6),
    "beside TCP": (net.beside_tcp("udt", 1.0, 0.001, 4.0), 2),
    "ten flows": (net.ten_flows("reno", 1e-5, 3.0, 1.0), 10),
    "lossy": (net.lossy("bic", 1e-4, 3.0, 0.1), 1),
    "misjudged": (net.misjudged((100.0, 99.0), 3.0, 1.0), 2),
    "misjudged alone": (net.misjudged((130.0,), 3.0, 1.0), 1),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_networks_have_their_flows(name):
    scenario, flows = SCENARIOS[name]
    assert scenario.validate()["flows"] == flows


def test_laws_get_further_settings():
    assert net.variant("udt") == "udt"
    assert net.variant("daimd", tau=9) == "daimd(tau=9)"
    assert net.variant("daimd(feedback=syn)", tau=9) == "daimd(feedback=syn, tau=9)"


def test_readings_of_the_decrease_are_different_laws():
    trials = read_text("daimd").exhibits["table-4"].trials
    laws = [net.LAW, *(law for trial in trials.values() for law in trial.laws.values())]
    assert len(laws) == 6
    rates = [
        run(net.ten_flows(law, 0.1, 6.0, 2.0), seed=1).bottleneck["departures"] for law in laws
    ]
    assert len(set(rates)) == len(laws)


def test_printed_tables_agree_with_themselves():
    exhibits_ = read_text("daimd").exhibits
    table = exhibits_["table-1"].printed["rows"]
    for row in table.rows.values():
        flows, ei = [float(cell or 0) for cell in row[:4]], row[table.columns.index("EI")]
        assert sum(flows) == pytest.approx(float(ei), abs=1)
    flows = exhibits_["fig-10"].printed["rows"].rows["flows"]
    assert sum(map(float, flows[:5])) == pytest.approx(float(flows[5]))
    for name in ("table-4", "table-5"):
        assert list(exhibits_[name].printed["rows"].rows) == list(net.RTTS)


def test_the_window_is_bounded_by_the_largest_arrival_rate_near_a_time():
    def of(arrival):
        # 10 packets in each 10 ms, at an RTT of 20 ms: 20 in an RTT.
        time = np.arange(0, 1, 0.01)
        flow = {"rtt": np.full(time.size, 0.02), "gauges": {"arrival": arrival}}
        flow["sent"] = np.arange(time.size) * 10.0
        return SimpleNamespace(measured_flows=[flow], time=time, warmup_s=0.1)

    steady, late = np.full(100, 1000.0), np.full(100, 1000.0)
    late[50:52] = 500.0
    # (1 + SYN/RTT) times 20 packets are 30.
    assert read.window_bound(of(steady)) == pytest.approx(20 / 30)
    assert read.window_bound(of(late)) > 0.75 * 40 / 30
    assert read.largest_window_bound(of(late)) == pytest.approx(20 / 30)


@pytest.mark.parametrize(("name", "wire"), [("staircase", 1538), ("beside TCP", 1500)])
def test_udt_replaces_its_stand_in_on_the_same_wire(name, wire):
    scenario = net.over_udt(SCENARIOS[name][0])
    over = run(scenario, seed=1)
    kinds = [flow["kind"] for flow in over.measured_flows]
    assert kinds[0] == "udt"
    assert kinds.count("tcp") == (1 if name == "beside TCP" else 0)
    assert over.measured_flows[0]["packet_bytes"] == 1456
    flows = json.loads(scenario.to_json())["flow"]
    assert flows[0]["tcp"]["packet"] + flows[0]["tcp"]["header"] == wire


def test_stages_are_read_off_a_run():
    result = run(net.staircase("udt", 2.0), seed=1)
    stages = read.read_stages(result).stages
    flows = [[key for key in stage if key.startswith("flow")] for stage in stages]
    assert [len(names) for names in flows] == [1, 2, 3, 4, 3, 2, 1]
    for stage, names in zip(stages, flows, strict=True):
        assert stage["EI"] == pytest.approx(sum(stage[name] for name in names))
        assert stage["RTT, ms"] >= 104
        assert 0 <= stage["loss"] < 1
    delivered = np.interp([4.0, 6.0], result.time, result.measured_flows[0]["delivered"])
    # 1538 bytes on the wire carry 1456 of payload.
    assert stages[2]["flow 1"] == pytest.approx(np.diff(delivered)[0] / 2 * 1456 * 8e-6)


def test_shares_leave_the_warm_up_out():
    result = run(net.misjudged((100.0, 100.0), 6.0, 3.0), seed=1)
    shares = read.read_shares(result)
    packets = np.diff(result.measured_flows[1]["delivered"][[3, 5]])[0]
    assert shares.rates[1] == pytest.approx(packets * 12_000 / 2 / 1e6)
    assert shares.indices["EI"] == pytest.approx(shares.rates.sum())


def test_time_to_a_fraction_counts_from_zero():
    climb = read.Climb(12.0, np.array([0.05, 0.15, 0.25]), np.array([50.0, 89.0, 91.0]))
    # To 12 of 100 Mb/s Eq. 15 takes 12 / 90 of 7.5 s.
    assert read.time_to(climb, 0.9, 100.0) == pytest.approx(0.25 + 1.0)


def test_recovery_leaves_slow_start_out():
    cuts = {"time": np.array([1.0, 2.0, 10.0, 20.0, 31.0]), "before": np.array([9, 5, 99, 100, 98])}
    result = SimpleNamespace(measured_flows=[{"cuts": cuts}])
    assert read.read_recovery(result) == pytest.approx(10.5)


def test_reno_grows_by_a_packet_and_halves():
    response = read.read_response(run(net.lossy("reno", 1e-3, 60.0, 0.1), seed=1))
    assert response.increase == pytest.approx(1, abs=0.02)
    assert response.decrease == pytest.approx(1, abs=1e-6)


def test_udt_grows_as_printed():
    law = net.without_window(net.LAW, 100.0)
    response = read.read_paced(run(net.lossy(law, 1e-3, 20.0, 0.01, 100.0), seed=1))
    assert response.increase == pytest.approx(1, abs=1e-6)
    assert response.decrease == pytest.approx(1 / 9, abs=1e-6)


def test_printed_functions_of_highspeed_are_near_the_rfcs_table():
    # RFC 3649, appendix B: a(1058) = 8, b(1058) = 0.33; a(10028) = 30, b = 0.21.
    w = np.array([1058.0, 10_028.0])
    assert read.printed_decrease("highspeed", w) == pytest.approx([0.33, 0.21], abs=0.005)
    assert read.printed_increase("highspeed", w) == pytest.approx([8, 30], rel=0.05)


def test_small_models():
    assert read.max_min() == pytest.approx([90, 90, 5, 47.5, 47.5, 5])
    # On 100 Mb/s each flow at 50 Mb/s has more than 10 and at most 100 Mb/s to go.
    assert read.sharing(100.0, 125.0) == pytest.approx(1, abs=0.002)
    # Ten times the increase is √10 times the rate.
    assert larger_ratio(8.0) == pytest.approx(np.sqrt(10), rel=0.05)
    # 1 + ε = 0.5: flow 2 stops a tenth of L below its 0.5 L.
    assert at_edge(-0.5, 1) == pytest.approx(1.5)
    assert at_edge(0.75, 1) == pytest.approx(3)
    # 3 / √1e-4 = 300 packets per SYN on 1 Gb/s; on 100 Mb/s the first stage would hold 114.
    assert stage_rate(1000.0, 1e-4) == pytest.approx(300)
    assert stage_rate(100.0, 1e-4) == pytest.approx(30)


def test_flows_with_slightly_different_capacities_have_one_increase():
    lab = Lab()
    (section_7,) = (e for e in exhibits("daimd") if e.id == "section-7")
    lab.begin(section_7.text, 1)
    same_stage(lab)
    (claim,) = lab.findings.claims
    assert (claim.verdict, claim.grade.measured) == ("agrees", "0.1 to 0.1 packets per SYN")
    # Below 1 Mb/s the first flow has more than 100 Mb/s to go.
    half = 0.5e6 / model.BITS_PER_SYN
    assert [float(model.increase_per_syn(half, c)) for c in (101e6, 99e6)] == [1.0, 0.1]


def test_expected_change_sums_over_the_losses_of_a_syn():
    p, n = 0.02, 40
    chances = [comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    cut = sum(chance * (1 - (1 - model.BETA) ** i) for i, chance in enumerate(chances))
    assert model.expected_change(n, p, 1e9) == pytest.approx(chances[0] * 1.0 - cut * n)
    assert model.expected_change(three(p), p, 1e9) == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_the_analysis_finds_the_slips():
    lab = Lab(quick=True, repeat=2)
    (eq_8,) = (e for e in exhibits("daimd") if e.id == "eq-8")
    verdicts = {claim.name: claim.grade.verdict for claim in eq_8.run(lab).claims}
    assert [verdicts[name] for name in ("eq-13", "eq-14")] == ["differs"] * 2
    assert [verdicts[name] for name in ("eq-4", "eq-5", "eq-15")] == ["agrees"] * 3
