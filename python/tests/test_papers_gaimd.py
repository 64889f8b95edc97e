"""The GAIMD paper's networks, and what is measured on them."""

import numpy as np
import pytest

from cwnd.model.throughput import gaimd, gaimd_timeout_probability
from cwnd.papers import gaimd_networks as net
from cwnd.papers.exhibit import Lab, exhibits
from cwnd.papers.gaimd import NS2, SMOOTH, TCP
from cwnd.running import run


def test_no_exhibit_of_the_list_is_left_out():
    assert [e.id for e in exhibits("gaimd")] == [
        "eq-2",
        "alpha-beta",
        "section-2.4",
        "friendliness",
    ]


@pytest.mark.parametrize("network", net.QUEUES)
def test_the_validation_network_has_32_flows_and_its_sources(network):
    assert net.validation(0.31, 0.875, 70, network).validate()["flows"] == 102


@pytest.mark.parametrize("queue", ["DropTail", "RED"])
@pytest.mark.parametrize("recovery", ["reno", "sack"])
def test_gaimd_and_tcp_share_with_ten_sources(queue, recovery):
    assert net.sharing(4, queue, recovery, 60.0).validate()["flows"] == 18


def test_ns2_has_a_figure_for_every_network_and_pair():
    assert set(NS2) == {(network, pair) for network in net.QUEUES for pair in (TCP, SMOOTH)}


def test_the_timer_counts_as_ns2_does():
    # Ten ticks: srtt 80/8 and rttvar 20/4 at the first sample, 15/4 at the second.
    rtt, rto = net.timer(np.array([[np.nan, 0.1, 0.1]]), (0.01, 0.2), np.full((1, 3), 0.5))
    assert rtt == pytest.approx([0.1])
    assert rto == pytest.approx([(0.30 + 0.25) / 2])


def test_the_timer_does_not_go_below_its_least_value():
    phases = np.random.default_rng(1).random((1, 3000))
    _, rto = net.timer(np.full((1, 3000), 0.02), (0.01, 0.2), phases)
    assert rto == pytest.approx([0.2], rel=1e-3)


def test_a_group_is_what_the_record_says():
    pair, clock = (0.31, 0.875), (0.01, 0.2)
    result = run(net.validation(*pair, 10, "DropTail", 20.0), seed=3)
    other = run(net.validation(*pair, 10, "DropTail", 20.0), seed=4)
    seen = [net.see_both(other), net.see_both(result)]
    _, (group, reno) = net.both(seen, pair, clock)
    flows = [flow for flow in result.record["flows"] if flow["name"].startswith("gaimd")]
    assert len(group.loss) == 16
    cuts, sent = flows[5]["cuts"]["time"].size, flows[5]["packets_sent"]
    assert group.loss[5] == cuts / sent
    assert group.rate[5] == pytest.approx(sent / (20.0 - flows[5]["start_s"]))
    assert group.expiries[5] == flows[5]["timeouts"] / cuts
    rtt, rto = net.timer(np.array([flow["rtt"] for flow in flows]), clock, _phases(flows))
    # The model's beta is what is given up.
    given = {"alpha": 0.31, "beta": 0.125}
    assert group.formula[5] == pytest.approx(gaimd(cuts / sent, rtt[5], rto[5], **given))
    assert group.likely[5] == pytest.approx(gaimd_timeout_probability(cuts / sent, **given))
    assert group.ratio == pytest.approx(group.formula.sum() / group.rate.sum())
    rtts = _rtts(result, "reno")
    tcp = reno.loss[0], *(x[0] for x in net.timer(rtts, clock, _phases(flows)))
    assert reno.formula[0] == pytest.approx(gaimd(*tcp))


def _phases(flows):
    return np.random.default_rng(3).random((len(flows), len(flows[0]["rtt"])))


def _rtts(result, name):
    return np.array([f["rtt"] for f in result.record["flows"] if f["name"].startswith(name)])


def test_a_flow_that_lost_nothing_has_no_rate_by_the_formula():
    result = run(net.validation(1.0, 0.5, 10, "DropTail", 11.0), seed=1)
    without = [
        flow
        for flow in result.record["flows"]
        if flow["name"].startswith("reno") and not flow["cuts"]["time"].size
    ]
    ((_, reno),) = net.both([net.see_both(result)], (1.0, 0.5), (0.01, 0.2))
    assert without
    assert len(reno.loss) == 16 - len(without)


def test_shares_compare_the_two_halves():
    result = run(net.sharing(2, "RED", "sack", 20.0), seed=1)
    sent = [flow["packets_sent"] for flow in result.measured_flows]
    shares = net.shares(result)
    assert shares.ratio == pytest.approx(sum(sent[:2]) / sum(sent[2:]))
    assert 0 < shares.gaimd < 2
    assert 0 < shares.tcp < 2


def test_the_equations_hold():
    (eq_2,) = [e for e in exhibits("gaimd") if e.id == "eq-2"]
    assert {claim.verdict for claim in eq_2.run(Lab(quick=True)).claims} == {"holds"}
