"""The GAIMD paper's networks, and what is measured on them."""

import numpy as np
import pytest

from cwnd._papers.draw import draw, write_table
from cwnd._papers.exhibit import Lab, exhibits
from cwnd._papers.figure import Curve, Figure, Panel, Table
from cwnd._papers.gaimd import measures, rounds
from cwnd._papers.gaimd import networks as net
from cwnd._papers.gaimd.formula import LAWS
from cwnd._runs.run import run
from cwnd.model.throughput import gaimd, gaimd_td, gaimd_timeout_probability

CLOCK = (0.01, 0.2)


def test_the_exhibits_are_in_order():
    names = ["eq-1", "eq-2", "alpha-beta", "delayed-acks", "section-2.2", "section-2.4"]
    assert [e.id for e in exhibits("gaimd")] == [*names, "friendliness"]


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
    claims = [c for e in exhibits("gaimd") if "eq-" in e.id for c in e.run(Lab(quick=True)).claims]
    assert len(claims) == 12
    assert {claim.grade.verdict for claim in claims} == {"agrees"}


def test_red_has_another_room_and_droptail_the_same():
    longer = {of: net.validation(net.SMOOTH, 10, of, "400p").to_dict() for of in net.QUEUES}
    assert longer["RED"]["dumbbell"]["queue"]["limit"] == "400p"
    assert longer["DropTail"] == net.validation(net.SMOOTH, 10, "DropTail").to_dict()


def test_eq_2_takes_the_options_of_the_trials():
    seen = measures.see(run(net.validation(net.SMOOTH, 70, "RED, 0.1 s clock"), seed=1), "gaimd")
    (plain,) = measures.group([seen], net.SMOOTH, (0.1, 0.2))
    (lost,) = measures.group([seen], net.SMOOTH, (0.1, 0.2), by_lost=True)
    assert lost.formula == pytest.approx(plain.by_lost)
    assert (lost.likely > plain.likely).mean() > 0.9
    (mean,) = measures.group([seen], net.SMOOTH, (0.1, 0.2), mean_rtt=True)
    # The timer of 0.1 s takes the round-trip time for longer.
    assert np.all(mean.formula > plain.formula)
    (delayed,) = measures.group([seen], net.SMOOTH, (0.1, 0.2), b=2)
    assert np.all(delayed.formula < plain.formula)


@pytest.mark.slow
@pytest.mark.parametrize(("delayed", "expected"), [(False, 1.0), (True, 0.5)])
@pytest.mark.parametrize("pair", [net.TCP, net.SMOOTH])
def test_delayed_acknowledgements_halve_the_growth(pair, delayed, expected):
    grown = measures.growth(run(net.lossy(pair, 0.001, delayed=delayed), seed=2))
    assert grown == pytest.approx(expected * pair[0], rel=0.06)


@pytest.mark.slow
def test_lost_packets_make_the_receiver_acknowledge_at_once():
    per_ack = [
        measures.see_acks(run(net.lossy(net.TCP, loss, delayed=delayed), seed=1))[1]
        for delayed, loss in ((False, 0.1), (True, 0.001), (True, 0.1))
    ]
    assert per_ack[0] == pytest.approx(1, abs=0.01)
    assert per_ack[1] > 1.9
    assert per_ack[2] < 1.5


def test_the_monte_carlo_has_the_square_root_law_at_little_loss():
    pairs = (net.TCP, net.SMOOTH, (2.0, 0.75))
    seen = rounds.play(tuple((pair, 0.0005) for pair in pairs))
    for pair, sent, took in zip(pairs, seen.sent, seen.rounds, strict=True):
        law = 1 / gaimd_td(0.0005, 1, alpha=pair[0], beta=1 - pair[1])
        assert sent.sum() / took.sum() == pytest.approx(law, rel=0.05)


def test_the_monte_carlo_counts_packets_losses_and_waits():
    seen = rounds.play(((net.TCP, 0.5), (net.TCP, 0.02)))
    assert np.all(seen.cuts[0] / seen.sent[0] > 0.4)
    assert np.all(seen.waits[0] > 2 * seen.cuts[0])
    assert np.all(seen.cuts < seen.sent)
    assert np.all(seen.cuts[1] / seen.sent[1] < 0.02)
    assert np.all(seen.lost[1] / seen.sent[1] > 0.02)
    assert seen.rate(0.2, 0.5) == pytest.approx(seen.sent / (0.2 * seen.rounds + 0.5 * seen.waits))


def test_slow_start_in_the_monte_carlo_costs_rate_where_flows_time_out():
    cases = ((net.SMOOTH, 0.0005), (net.SMOOTH, 0.05))
    plain, slow = (
        rounds.play(cases, slow_start=on).rate(0.2, 0.5).mean(axis=1) for on in (False, True)
    )
    assert slow[0] / plain[0] > 0.85
    assert 0.4 < slow[1] / plain[1] < 0.7


def test_the_monte_carlo_without_timeouts_has_no_waits():
    cases = ((net.TCP, 0.0005), (net.TCP, 0.1))
    with_, without = (rounds.play(cases, timeouts=on) for on in (True, False))
    assert not without.waits.any()
    assert np.all(without.rounds - without.cuts == 40 * 1125)
    assert np.all(without.rate(0.2, 0.5)[1] > 1.3 * with_.rate(0.2, 0.5)[1])
    assert without.rate(0.2, 0.5)[0] == pytest.approx(with_.rate(0.2, 0.5)[0], rel=0.05)


def test_back_offs_are_their_sum():
    p, waits = 0.2, [min(2.0**n, 64) for n in range(60)]
    # A timeout is followed by another with probability p.
    assert rounds.back_offs(np.array(p)) == pytest.approx(
        sum(wait * p**n for n, wait in enumerate(waits))
    )


@pytest.mark.slow
def test_a_cause_of_the_model_has_its_proof():
    (model,) = [e for e in exhibits("gaimd") if e.id == "section-2.2"]
    claims = {claim.name: claim for claim in model.run(Lab()).claims}
    for name in ("true Reno 20%", "true GAIMD 20%", "counted Reno 10%", "counted GAIMD 5%"):
        assert (claims[name].verdict, claims[name].reason.cause) == ("differs", "paper")
    assert claims["true Reno 20%"].trials["exact"].verdict == "agrees"
    assert {claims[f"{key} {law}"].verdict for key in ("lower", "upper") for law in LAWS} == {
        "agrees"
    }
