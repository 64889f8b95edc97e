"""The DAIMD paper: its networks, what is read off a run, and its small models."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from cwnd import run
from cwnd.papers import daimd_measures as read
from cwnd.papers import daimd_networks as nets
from cwnd.papers.claims import read_printed
from cwnd.papers.daimd import given
from cwnd.papers.daimd_analysis import filling, friendly, stage_claims, stage_rate, stages
from cwnd.papers.daimd_notes import INFERRED, WHY, why
from cwnd.papers.exhibit import exhibits

SCENARIOS = {
    "climb": (nets.climb(given("rate control alone", 10.0), 10.0, 0.2, 1.0, 2.0), 2),
    "recovery": (nets.recovery(10.0, 0.2, 5.0), 1),
    "staircase": (nets.staircase("udt", 1.0), 4),
    "two bottlenecks": (nets.two_bottlenecks("daimd", 0.1, 3.0, 1.0), 2),
    "near and far": (nets.near_and_far("udt", 3.0, 1.0), 5),
    "parking lot": (nets.parking_lot("udt", 3.0, 1.0), 6),
    "beside TCP": (nets.beside_tcp("udt", 1.0, 0.001, 4.0), 2),
    "ten flows": (nets.ten_flows("reno", 1e-5, 3.0, 1.0), 10),
    "lossy": (nets.lossy("bic", 1e-4, 3.0, 0.1), 1),
    "misjudged": (nets.misjudged((100.0, 99.0), 3.0, 1.0), 2),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_networks_have_their_flows(name):
    scenario, flows = SCENARIOS[name]
    assert scenario.validate()["flows"] == flows


def test_every_exhibit_of_the_paper_is_there():
    ids = ["eq-8", "table-1", "table-2", "fig-10", "table-3", "fig-14"]
    ids += ["table-4", "table-5", "table-6", "section-7", "protocol"]
    assert [e.id for e in exhibits("daimd")] == ids


def test_printed_tables_agree_with_themselves():
    flows = [row for name, row in nets.TABLE_1.items() if name.startswith("flow")]
    sums = [sum(float(row[n] or 0) for row in flows) for n in range(7)]
    assert sums == pytest.approx([float(text) for text in nets.TABLE_1["EI, Mb/s"]], abs=1)
    assert sum(map(float, nets.FIG_10.values())) == pytest.approx(98.89)
    for table in (nets.TABLE_4, nets.TABLE_5):
        assert {len(row) for row in table.values()} == {len(nets.RTTS)}


def test_the_queue_beside_tcp_is_a_product_or_a_hundred_packets():
    wide = nets.beside_tcp("udt", 1000.0, 0.1, 4.0).to_json()
    assert '"8333p"' in wide
    assert '"100p"' in nets.beside_tcp("udt", 1.0, 0.1, 4.0).to_json()


@pytest.mark.parametrize("name", ["staircase", "ten flows", "beside TCP"])
def test_udt_takes_the_place_of_its_stand_in_on_the_same_wire(name):
    scenario = SCENARIOS[name][0] if name != "ten flows" else nets.ten_flows("udt", 1e-3, 3.0, 1.0)
    wire = {"staircase": 1538}.get(name, 1500)
    over = run(nets.over_udt(scenario), seed=1)
    kinds = [flow["kind"] for flow in over.measured_flows]
    assert kinds[0] == "udt"
    assert kinds.count("tcp") == (1 if name == "beside TCP" else 0)
    assert over.measured_flows[0]["packet_bytes"] == 1456
    flows = json.loads(nets.over_udt(scenario).to_json())["flow"]
    assert flows[0]["tcp"]["packet"] + flows[0]["tcp"]["header"] == wire


def test_stages_are_read_off_a_run():
    result = run(nets.staircase("udt", 1.0), seed=1)
    seven = read.read_stages(result)
    assert [int(np.isfinite(stage.rates).sum()) for stage in seven] == [1, 2, 3, 4, 3, 2, 1]
    for stage in seven:
        assert stage.ei == pytest.approx(np.nansum(stage.rates))
        assert stage.rtt_ms >= 104
        assert 0 <= stage.loss < 1
    flow = result.measured_flows[0]
    delivered = np.interp([2.0, 3.0], result.time, flow["delivered"])
    # 1538 bytes on the wire carry 1456 of payload.
    assert seven[2].rates[0] == pytest.approx(np.diff(delivered)[0] * 1456 * 8e-6)


def test_shares_leave_the_warm_up_out():
    result = run(nets.misjudged((100.0, 100.0), 6.0, 3.0), seed=1)
    shares = read.read_shares(result)
    flow = result.measured_flows[1]
    assert result.time[-1] == 5.0
    packets = flow["delivered"][5] - flow["delivered"][3]
    assert shares.rates[1] == pytest.approx(packets * 12_000 / 2 / 1e6)
    assert shares.ei == pytest.approx(shares.rates.sum())


def test_time_to_a_fraction_counts_from_zero():
    climb = read.Climb(12.0, np.array([0.05, 0.15, 0.25]), np.array([50.0, 89.0, 91.0]))
    # To 12 of 100 Mb/s Eq. 15 takes 12 / 90 of 7.5 s.
    assert read.time_to(climb, 0.9, 100.0) == pytest.approx(0.25 + 1.0)
    assert read.time_to(climb, 0.95, 100.0) == pytest.approx(0.25 + 1.0)


def test_recovery_leaves_slow_start_out():
    cuts = {"time": np.array([1.0, 2.0, 10.0, 20.0, 31.0]), "before": np.array([9, 5, 99, 100, 98])}
    result = SimpleNamespace(measured_flows=[{"cuts": cuts}])
    assert read.read_recovery(result) == pytest.approx(10.5)


def test_reno_grows_by_a_packet_and_halves():
    result = run(nets.lossy("reno", 1e-3, 60.0, 0.1), seed=1)
    response = read.read_response(result, "reno")
    assert response.increase == pytest.approx(1, abs=0.02)
    assert response.decrease == pytest.approx(1, abs=1e-6)


def test_udt_grows_as_printed():
    result = run(nets.lossy("daimd(capacity=100e6, lambda=1)", 1e-3, 20.0, 0.01, 100.0), seed=1)
    response = read.read_paced(result, 100.0)
    assert response.increase == pytest.approx(1, abs=1e-6)
    assert response.decrease == pytest.approx(1 / 9, abs=1e-6)


def test_printed_functions_of_highspeed_are_near_the_rfcs_table():
    # RFC 3649, appendix B: a(1058) = 8, b(1058) = 0.33; a(10028) = 30, b = 0.21.
    w = np.array([1058.0, 10_028.0])
    assert read.printed_decrease("highspeed", w) == pytest.approx([0.33, 0.21], abs=0.005)
    assert read.printed_increase("highspeed", w) == pytest.approx([8, 30], rel=0.05)


def test_max_min_rates_of_the_parking_lot():
    assert read.max_min() == pytest.approx([90, 90, 5, 47.5, 47.5, 5])


@pytest.mark.parametrize("error", [0.25, 0.5])
def test_equal_shares_while_the_increase_is_the_same(error):
    # On 100 Mb/s each flow at 50 Mb/s has more than 10 and at most 100 Mb/s to go.
    assert read.sharing(100.0, 100.0 * (1 + error)) == pytest.approx(1, abs=0.002)


def test_ten_times_the_increase_is_root_ten_times_the_rate():
    assert read.sharing(100.0, 900.0) == pytest.approx(np.sqrt(10), rel=0.05)
    assert read.sharing(100.0, 20.0) < 0.25


def test_the_stage_of_a_response_is_the_mended_one():
    # 3 / sqrt(1e-4) = 300 packets per SYN on 1 Gb/s; on 100 Mb/s the first stage would hold 114.
    assert stage_rate(1000.0, 1e-4) == pytest.approx(300)
    assert stage_rate(100.0, 1e-4) == pytest.approx(30)


def test_the_analysis_finds_the_slips():
    verdicts = {claim.text.partition(":")[0]: claim.verdict for claim in stages()}
    assert verdicts["Eq. 13 is Eq. 12 in bit/s"] == "differs"
    assert verdicts["Eq. 14 is the first stage that holds the rate of Eq. 12"] == "differs"
    assert verdicts["Eq. 5"] == "holds"
    assert {claim.verdict for claim in [*filling(), *friendly()]} == {"holds"}


def test_a_loss_of_0_is_a_bound():
    texts = nets.TABLE_1["loss"]
    claims = stage_claims("udt", "loss", texts, [[0.01, 0.011, 0.012]] * 7)
    assert len(claims) == 7
    assert claims[0].verdict == "differs"
    assert read_printed(texts[3]) == pytest.approx((1e-3, 5e-4))


def test_reasons_belong_to_exhibits():
    ids = {e.id for e in exhibits("daimd")}
    assert {exhibit for exhibit, _, _ in WHY} <= ids
    assert set(INFERRED) | {"table-5"} == ids
    assert why("eq-8", "udt", "far") == WHY["eq-8", "", "far"]
    assert why("table-1", "udt", "SI") == WHY["table-1", "udt", ""]
