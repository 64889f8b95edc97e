"""Published results of BBR, CUBIC, Copa and C4: networks, models and measures."""

import numpy as np
import pytest

import cwnd
from cwnd._papers.exhibit import exhibits
from cwnd._papers.networks import flow
from cwnd._papers.today import measures
from cwnd._papers.today.bbr import response
from cwnd._papers.today.cao import GRID, RATES, RTTS, _half
from cwnd._papers.today.networks import (
    C4_ALONE,
    C4_CUBIC,
    C4_ITSELF,
    EACH,
    PAYLOAD,
    Place,
    alone,
    bdp,
    beside_cubic,
    cliff,
    copa,
    filled,
    framework,
    joining,
    lossy,
    pair,
    path,
    several,
    start,
    steps,
    versus,
)
from cwnd._papers.today.ware import fraction

SLOW = Place(10, 40)


def test_every_source_has_its_exhibits():
    sources = [e.id.split("-")[0] for e in exhibits("today")]
    assert [*dict.fromkeys(sources)] == ["bbr", "hock", "jaeger", "ware", "cao", "copa", "c4"]
    assert not any(e.new for e in exhibits("today"))


@pytest.mark.parametrize(
    ("scenario", "flows"),
    [
        (lossy("bbr", 0.01, 10.0), 1),
        (start("cubic", 8.0, 2), 1),
        (steps("bbr"), 1),
        (joining(4, 2.0, 60.0), 4),
        (several("bbr", 3, 0.5, 30.0, (20.0, 80.0)), 6),
        (framework(("bbr", "cubic"), 50, 60.0), 2),
        (versus(SLOW, 32, 1, 16, 200.0), 17),
        (filled("bbr", 500, 200, 10_000, 60.0), 1),
        (cliff("reno", 0.2, 60.0), 1),
        (cliff("bbr", 0.2, 60.0, before=True), 1),
        (pair(10, 60.0), 2),
        (copa(4, 100, 40, 4, 60.0), 4),
        (alone("copa", 60.0, rtts=(20.0, 40.0, 40.0)), 3),
        (beside_cubic("bbr", 2.0, 60.0), 4),
        *((test.scenario(), 1) for test in C4_ALONE.values()),
        *((test.scenario(), 2) for test in (C4_ITSELF | C4_CUBIC).values()),
    ],
)
def test_networks_can_run(scenario, flows):
    assert scenario.validate()["flows"] == flows


def test_buffers_are_products_or_bytes():
    # 10 Mb/s, 40 ms: 33 packets of 1500 bytes.
    assert bdp(10, 40) == pytest.approx(100 / 3)
    assert versus(SLOW, 32, 1, 1, 100.0).to_dict()["dumbbell"]["queue"] == "1067p"
    assert pair(10, 60.0).to_dict()["dumbbell"]["queue"] == "7p"
    assert framework(("bbr",), 100, 60.0).to_dict()["dumbbell"]["queue"] == "83p"
    # The longest of the round-trip times.
    assert alone("bbr", 60.0, rtts=(20.0, 160.0)).to_dict()["dumbbell"]["queue"] == "640p"


def test_copa_gets_an_acknowledgement_for_each_packet():
    first, second = beside_cubic("copa", 1.0, 60.0).to_dict()["flow"]
    assert first["tcp"] == EACH
    assert "tcp" not in second
    assert beside_cubic("bbr", 1.0, 60.0).to_dict()["flow"][0]["tcp"]["conventions"] == "linux"


def test_the_tests_of_c4_detect_losses_as_quic():
    main, beside = C4_CUBIC["c4_vs_cubic"].scenario().to_dict()["flow"]
    tcp = C4_CUBIC["c4_vs_cubic"].scenario().to_dict()["tcp"]
    assert (tcp["rack"], tcp["tlp"], tcp["delayed_acks"]) == (True, True, False)
    assert main["controller"] == "c4"
    # picoquic's CUBIC leaves slow start at a delay.
    assert beside["controller"] == "cubic(start=hystart-linux)"


def test_no_run_of_c4_before_c4_waits_for_two_timeouts():
    # With the loss detection of RFC 6675 this run had two timeouts and took 4.59 s.
    result = cwnd.run(C4_ITSELF["c4_before_c4"].scenario(), 32)
    assert result.measured_flows[0]["timeouts"] == 0
    assert measures.completed(result) < 2.5


def test_the_model_of_ware():
    # Without room beyond one product the loss-based flow has nothing; ProbeRTT takes 0.28 s of 10.
    assert fraction(SLOW, 1, 1) == pytest.approx(1 - (0.04 + 0.2 + 0.04) / 10)
    # 1/2 - 1/64 - 4/1067 for the loss-based flow; the queue of 1.28 s lengthens ProbeRTT.
    loss_based = 1 / 2 - 1 / 64 - 4 * 3 / 3200
    assert fraction(SLOW, 32, 1) == pytest.approx((1 - loss_based) * (1 - 0.152))


def test_the_cliff_is_interpolated():
    losses = (0.0, 0.1, 0.2, 0.3)
    assert _half(losses, np.array([100.0, 90.0, 40.0, 0.0])) == pytest.approx(0.18)
    assert _half(losses, np.array([100.0, 90.0, 80.0, 70.0])) == 0.3


def test_losses_before_the_bottleneck_take_nothing_from_it():
    before, behind = (
        measures.each(cwnd.run(cliff("bbr", 0.1, 20.0, before=side), 1))[0]
        for side in (True, False)
    )
    assert before.lost == pytest.approx(0.1, abs=0.01)
    assert behind.goodput < 90 * PAYLOAD
    assert before.goodput > 1.05 * behind.goodput


def test_wifi_may_leave_acknowledgements_alone():
    test = C4_ALONE["c4_wifi_bad"]
    link = test.scenario(steady=True).to_dict()["dumbbell"]
    assert link["model"]["kind"] == "wifi"
    assert link["back"] == {"rate": 10e6}
    assert "back" not in test.scenario().to_dict()["dumbbell"]
    alone = C4_ALONE["c4_alone"]
    assert alone.scenario(steady=True).to_json() == alone.scenario().to_json()


def test_the_response_function_of_cubic():
    # Where losses are frequent the window is that of Reno, and the cubic one where they are rare.
    assert response(1e-2, 0.1) == pytest.approx(150**0.5)
    assert response(1e-6, 0.1) == pytest.approx(1.054 * 1e5**0.75)


def test_the_grid_of_cao_includes_the_table():
    assert len(set(GRID)) == 64
    assert {(rate, rtt) for rate in RATES for rtt in RTTS} < set(GRID)


def one(controller="bbr", *, rate=10.0, rtt=40.0, duration=30.0, **keys):
    law = flow(controller, start="0s..40ms")
    return cwnd.run(
        path("one", duration, [law], rate=rate, rtt=rtt, queue=4 * bdp(rate, rtt), **keys), 1
    )


def test_a_flow_is_measured():
    result = one("cubic", link={"loss": 0.01})
    [(goodput, repeated, lost)] = measures.each(result)
    (record,) = result.measured_flows
    assert goodput == pytest.approx(result.goodput_bps(record) / 1e6)
    assert repeated == record["retransmissions"] > 0
    assert lost == pytest.approx(0.01, abs=0.005)
    [(full, _, none)] = measures.each(one("cubic"))
    assert goodput < full <= 10 * PAYLOAD
    assert none < 0.005


def test_a_shared_bottleneck_is_measured():
    result = cwnd.run(several("cubic", 2, 1.0, 30.0), 1)
    found = measures.shared(result)
    first, second = (result.goodput_bps(record) for record in result.measured_flows)
    assert found.last == pytest.approx(second / (first + second))
    assert found.jain == pytest.approx((first + second) ** 2 / (2 * (first**2 + second**2)))
    assert 0.0 < found.loss < 0.02
    assert 0.9 < found.used <= 1.0
    assert found.delay == pytest.approx(found.queue * 12e3 / 50e6, rel=0.05)


def test_shares_are_of_the_first_group():
    result = cwnd.run(versus(SLOW, 2, 2, 1, 40.0), 1)
    rates = [result.goodput_bps(record) for record in result.measured_flows]
    assert measures.share(result) == pytest.approx(sum(rates[:2]) / sum(rates))


def test_the_first_seconds_of_a_flow():
    result = cwnd.run(start("cubic", 8.0, 2), 1)
    found = measures.beginning(result)
    limit = result.bottleneck["queue_limit"]
    assert limit == 67
    assert found.most <= limit
    assert found.high == pytest.approx(1.0, abs=1 / limit)
    # CUBIC cuts three products to 2.1: a queue of 1.1.
    assert found.low == pytest.approx(1.1 / 2, abs=0.05)
    assert np.isnan(measures.beginning(cwnd.run(start("bbr", 8.0, 8), 1)).low)


def test_the_estimate_follows_the_rate():
    found = measures.responses(cwnd.run(steps("bbr"), 1))
    assert 0.0 < found.up < 2.0
    assert 0.2 < found.down < 10 * found.slowest < 4.0


def test_flows_probe_together():
    found = measures.probes(cwnd.run(framework(("bbr",) * 2, 100, 60.0), 1))
    assert 0.5 <= found.jain <= 1.0
    assert 0.0 <= found.together < 10.0
    assert 0.0 <= found.overlap <= 1.0
    single = measures.probes(one(sample="40ms"))
    assert (single.jain, single.together, single.overlap) == (pytest.approx(1.0), 0.0, 1.0)


def test_the_window_limits_a_flow_beside_cubic():
    found = measures.limits(cwnd.run(versus(SLOW, 8, 1, 1, 60.0), 1))
    free = measures.limits(cwnd.run(versus(SLOW, 8, 1, 0, 60.0), 1))
    assert free.window < found.window <= 1.0
    assert free.estimate == pytest.approx(1.0, abs=0.05)
    assert found.estimate > 1.05


def test_the_queue_of_copa_is_measured():
    found = measures.wave(cwnd.run(copa(1, 50, 50, 4, 40.0), 1))
    assert (found.least, found.low, found.high) == (0.0, 0.0, 5.0)
    assert found.period == pytest.approx(0.25, rel=0.1)
    assert found.used > 0.95


def test_completion_is_that_of_the_first_transfer():
    result = cwnd.run(C4_ALONE["c4_alone"].scenario(), 1)
    done = measures.completed(result)
    # 10 MB at 20 Mb/s take 4 s without headers.
    assert 4.0 < done < 60.0
    assert done == result.measured_flows[0]["completed_s"]
    unfinished = one("reno", duration=5.0)
    assert measures.completed(unfinished) == 5.0
