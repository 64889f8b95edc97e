"""The GAIMD paper's networks, and what is measured on them."""

import numpy as np
import pytest

from cwnd.model.throughput import gaimd, gaimd_timeout_probability
from cwnd.papers.draw import draw, write_table
from cwnd.papers.exhibit import Lab, exhibits
from cwnd.papers.figure import Curve, Figure, Panel, Table
from cwnd.papers.gaimd import measures
from cwnd.papers.gaimd import networks as net
from cwnd.running import run

CLOCK = (0.01, 0.2)


def test_the_exhibits_are_in_order():
    names = ["eq-2", "alpha-beta", "section-2.4", "friendliness"]
    assert [e.id for e in exhibits("gaimd")] == names


@pytest.mark.parametrize("network", net.QUEUES)
def test_the_validation_network_has_32_flows_and_its_sources(network):
    assert net.validation(net.SMOOTH, 70, network).validate()["flows"] == 102


@pytest.mark.parametrize("queue", ["DropTail", "RED"])
@pytest.mark.parametrize("recovery", ["reno", "sack"])
def test_gaimd_and_tcp_share_with_ten_sources(queue, recovery):
    assert net.sharing(4, queue, recovery).validate()["flows"] == 18


def test_the_timer_counts_as_ns2_does():
    # Ten ticks: srtt 80/8 and rttvar 20/4 at the first sample, 15/4 at the second.
    samples = np.array([[np.nan, 0.1, 0.1]])
    rtt, rto = measures.timer(samples, CLOCK, np.full((1, 3), 0.5))
    assert rtt == pytest.approx([0.1])
    assert rto == pytest.approx([(0.30 + 0.25) / 2])


def test_a_coarse_timer_is_four_tenths_of_a_tick_too_long():
    phases = np.random.default_rng(1).random((1, 4000))
    rtt, rto = measures.timer(np.full((1, 4000), 0.15), (0.1, 0.2), phases)
    assert rtt.round(2).tolist() == [0.19]
    assert rto.round(1).tolist() == [0.5]


def test_the_timer_does_not_go_below_its_least_value():
    phases = np.random.default_rng(1).random((1, 3000))
    _, rto = measures.timer(np.full((1, 3000), 0.02), CLOCK, phases)
    assert rto == pytest.approx([0.2], rel=1e-3)


def test_the_timer_starts_anew_after_four_back_offs():
    # A timeout of 0.3 s: the fourth back-off comes 4.5 s after the sample, in the 23rd interval.
    silence = np.full(40, np.nan)
    samples = np.concatenate([[0.1], silence, [0.3]])[None, :]
    rtt, rto = measures.timer(samples, CLOCK, np.full(samples.shape, 0.5))
    assert rtt == pytest.approx([(23 * 0.1 + 0.3) / 24], rel=1e-3)
    assert rto == pytest.approx([(23 * 0.3 + 0.9) / 24], rel=1e-3)


def test_repeated_round_trip_times_are_no_samples():
    result = run(net.validation(net.SMOOTH, 115, "DropTail"), seed=1)
    seen = measures.see(result, "gaimd")
    silent = np.isnan(seen.rtt)
    assert seen.rtt.shape == (16, 600)
    assert 0.3 < silent.mean() < 0.9
    assert np.nanmin(seen.rtt) > 0.1


def test_a_group_is_what_the_record_says():
    result, other = (run(net.validation(net.SMOOTH, 10, "DropTail"), seed) for seed in (3, 4))
    seen = measures.see(result, "gaimd")
    _, group = measures.group([measures.see(other, "gaimd"), seen], net.SMOOTH, CLOCK)
    flows = [flow for flow in result.record["flows"] if flow["name"].startswith("gaimd")]
    assert len(group.loss) == 16
    flow = flows[5]
    cuts, sent = flow["cuts"]["time"].size, flow["packets_sent"]
    assert group.loss[5] == cuts / sent
    assert group.lost[5] == flow["packets_lost"] / sent
    assert group.rate[5] == pytest.approx(sent / (120.0 - flow["start_s"]))
    assert group.timeouts[5] == flow["timeouts"] / cuts
    rtt, rto = (times[5] for times in measures.timer(seen.rtt, CLOCK, seen.phases))
    # The model's beta is the fraction given up.
    given = {"alpha": 0.31, "beta": 0.125}
    assert group.formula[5] == pytest.approx(gaimd(cuts / sent, rtt, rto, **given))
    assert group.by_lost[5] == pytest.approx(gaimd(group.lost[5], rtt, rto, **given))
    assert group.likely[5] == pytest.approx(gaimd_timeout_probability(cuts / sent, **given))
    assert group.ratio == pytest.approx(group.formula.sum() / group.rate.sum())


def test_a_flow_without_a_round_trip_time_has_no_rate_by_the_formula():
    result = run(net.lossy(net.TCP, 1.0), seed=1)
    assert len(measures.see(result).sent) == 0


def test_shares_compare_the_two_halves():
    result = run(net.sharing(2, "RED", "sack"), seed=1)
    sent = [flow["packets_sent"] for flow in result.measured_flows]
    shares = measures.shares(result)
    assert shares.ratio == pytest.approx(sum(sent[:2]) / sum(sent[2:]))
    assert 0 < shares.gaimd < 2
    assert 0 < shares.tcp < 2


def test_a_name_with_a_dot_keeps_its_files_apart(tmp_path):
    for name in ("rows", "more"):
        write_table(Table(name, "", ["x"], [[name]]), tmp_path / f"section-2.4-{name}")
    draw(Figure("", [Panel("", "", [Curve("", [0, 1], [0, 1])])]), tmp_path / "section-2.4")
    names = ["section-2.4-more.csv", "section-2.4-rows.csv", "section-2.4.csv", "section-2.4.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_the_equations_hold():
    (eq_2,) = [e for e in exhibits("gaimd") if e.id == "eq-2"]
    claims = eq_2.run(Lab(quick=True)).claims
    assert len(claims) == 5
    assert {claim.grade.verdict for claim in claims} == {"agrees"}
