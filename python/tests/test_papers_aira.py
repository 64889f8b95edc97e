"""Networks and measures of the AIRA paper's exhibits."""

from types import SimpleNamespace

import numpy as np
import pytest

from cwnd.papers.aira import claims, sensitivity
from cwnd.papers.aira import networks as net
from cwnd.papers.aira.measures import LEAVE, Traced, entry, growth, reset, row, together, traced
from cwnd.papers.exhibit import Lab, exhibits
from cwnd.running import run

IDS = (
    *("table-1", "fig-9", "fig-10-11", "table-3", "fig-12", "fig-13", "fig-14"),
    *("table-4", "fig-17", "red", "fig-18", "fig-19", "fig-20", "sensitivity"),
)


def test_exhibits_are_complete():
    found = exhibits("aira")
    assert tuple(e.id for e in found) == IDS
    assert [e.id for e in found if e.new] == ["sensitivity"]


@pytest.mark.parametrize(
    ("scenario", "flows"),
    [
        (net.table_1(net.AIMD, 4, delayed_acks=True), 4),
        (net.contention(net.FULL, leave=True), 4),
        (net.teams(net.RULES, 20, 50.0), 20),
        (net.diverse(net.BOUNDED, queue={"kind": "red", "limit": "5p"}), 4),
        (net.many(net.BOUNDED, 100), 100),
        (net.deployment({net.AIMD: 5, net.FULL: 5}), 10),
        (net.alone(net.BOUNDED, 1, 50), 1),
        (net.lossy(net.RULES, 0.05), 1),
    ],
)
def test_networks_are_valid(scenario, flows):
    assert scenario.validate()["flows"] == flows


def test_flows_that_leave_stop_sending():
    result = run(net.contention(net.AIMD, leave=True), seed=1)
    stays, leaves = result.measured_flows[0], result.measured_flows[2]
    assert stays["cuts"]["time"][-1] > LEAVE + 10
    assert leaves["cuts"]["time"][-1] < LEAVE + 1


def test_every_choice_contains_the_papers_value():
    for what in sensitivity.CHOICES:
        laws = list(sensitivity.variants(what, "with reset").values())
        assert net.FULL in laws
        if "reset" not in what:
            without = list(sensitivity.variants(what, "without reset").values())
            assert net.BOUNDED in without
            laws += without
        for law in laws:
            assert net.diverse(law).validate()["flows"] == 4


def test_a_row_is_computed_from_the_record():
    result = run(net.contention(net.AIMD), seed=1)
    measured = row(result)
    flows = result.record["flows"]
    delivered = sum(flow["packets_delivered"] for flow in flows)
    assert measured["goodput"] == pytest.approx(delivered * 1000 / 300 / 1024)
    assert measured["retransmissions"] == sum(flow["retransmissions"] for flow in flows)
    sent = np.array([flow["packets_sent"] for flow in flows], dtype=float)
    assert measured["fairness"] == pytest.approx(sent.sum() ** 2 / (4 * (sent**2).sum()))
    assert measured["alpha"] == 1.0


def test_alpha_fairness_is_that_of_the_increases_at_the_end():
    run_ = traced(run(net.diverse(net.BOUNDED), seed=1))
    a = np.array([increase[-1] for increase in run_.increases])
    assert run_.row["alpha"] == pytest.approx(a.sum() ** 2 / (4 * (a**2).sum()))


def test_the_increase_at_a_time_is_the_last_one_sampled():
    run_ = Traced({}, np.array([0.0, 1.0, 2.0]), [np.array([1.0, 0.8, 0.6])])
    assert [run_.at(0, when) for when in (0.9, 1.0, 9.0)] == [1.0, 0.8, 0.6]


def test_cuts_of_one_flow_are_not_synchronous():
    # The cuts of the first flow are 0.05 s apart, but only one is near a cut of the second.
    cuts = [np.array([1.0, 1.05]), np.array([1.16]), np.array([7.0])]
    assert together(cuts, 0.0, 5.0) == pytest.approx(2 / 3)
    assert np.isnan(together(cuts, 2.0, 5.0))


def _left(window, times, before):
    """Make a run in which both flows have a given window around `LEAVE`."""
    cuts = {"time": np.array(times), "before": np.array(before)}
    flow = {"window": np.array(window), "cuts": cuts}
    time = LEAVE + np.arange(-2.0, len(window) - 2)
    return SimpleNamespace(time=time, measured_flows=[flow, flow])


def test_growth_is_timed_from_the_last_crossing_of_w():
    # W is 10: the window falls below it again at 205 s and is at 15 five seconds after that.
    window = [8.0, 11.0, 9.0, 10.0, 11.0, 13.0, 14.0, 15.0, 16.0]
    assert growth(_left(window, [170.0, 174.0, 178.0], [9.0, 10.0, 11.0])) == (5.0, 4.0)


def test_growth_that_never_gets_there_is_unknown():
    assert np.isnan(growth(_left([8.0, 9.0, 10.0, 11.0], [170.0, 174.0], [10.0, 10.0]))).all()


def test_a_flow_that_resets_waits_less_than_the_rest_of_the_run():
    measured = reset(run(net.contention(net.FULL, leave=True), seed=1))
    assert len(measured.traced.increases) == 4
    assert all(0 < wait < 130 for wait in measured.waits)
    assert all(0.1 < level <= 1 for level in measured.levels)


def test_an_entry_counts_the_newcomers_packets():
    result = run(net.contention(net.AIMD), seed=1)
    second = result.record["flows"][1]
    delivered = np.interp(second["start_s"] + 10, result.time, second["delivered"])
    measured = entry(result)
    assert measured.delivered[0] == pytest.approx(delivered, abs=1)
    assert all(0.5 < jain <= 1 for jain in measured.jains)


def test_orders_have_the_right_direction():
    aimd = [{"goodput": 1.0, "retransmissions": 9.0, "fairness": 0.5}] * 5
    aira = [{"goodput": 2.0, "retransmissions": 3.0, "fairness": 0.9}] * 5
    (table_3,) = [e for e in exhibits("aira") if e.id == "table-3"]
    for pair, verdict in (((aimd, aira), "agrees"), ((aira, aimd), "differs")):
        lab = Lab()
        lab.begin(table_3.text, 5)
        claims.orders(lab, *pair)
        assert [claim.grade.verdict for claim in lab.findings.claims] == [verdict] * 3


def test_mail_holds_the_increase_up():
    (fig_13,) = [e for e in exhibits("aira") if e.id == "fig-13"]
    assert {claim.grade.verdict for claim in fig_13.run(Lab(quick=True)).claims} == {"agrees"}
