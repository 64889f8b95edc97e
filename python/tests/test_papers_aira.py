"""The AIRA paper's networks, and what is measured on them."""

from types import SimpleNamespace

import numpy as np
import pytest

from cwnd.papers import aira_networks as net
from cwnd.papers import aira_tables as tables
from cwnd.papers.aira_measures import LEAVE, entry, growth, increase_at, reset, row, together
from cwnd.papers.aira_notes import INFERRED, TABLE_1, TABLE_3, TABLE_4
from cwnd.papers.claims import read_printed
from cwnd.papers.exhibit import Lab, exhibits
from cwnd.running import run

IDS = (
    *("table-1", "fig-9", "fig-10-11", "table-3", "fig-12", "fig-13", "fig-14"),
    *("table-4", "fig-17", "fig-18", "fig-19", "fig-20", "sensitivity"),
)


def test_no_exhibit_of_the_list_is_left_out():
    found = exhibits("aira")
    assert tuple(e.id for e in found) == IDS
    assert [e.id for e in found if e.new] == ["sensitivity"]


def test_every_exhibit_says_what_it_inferred():
    assert set(INFERRED) == set(IDS)


@pytest.mark.parametrize(
    ("scenario", "flows"),
    [
        (net.table_1(net.AIMD, 4, delayed_acks=True), 4),
        (net.contention(net.RULES), 4),
        (net.contention(net.FULL, leave=True), 4),
        (net.teams(net.RULES, 20, 50.0), 20),
        (net.diverse(net.BOUNDED), 4),
        (net.many(net.BOUNDED, 100, 300.0), 100),
        (net.deployment({net.AIMD: 5, net.FULL: 5}), 10),
        (net.alone(net.BOUNDED, 1, 50), 1),
        (net.lossy(net.RULES, 0.05), 1),
    ],
)
def test_networks_are_valid(scenario, flows):
    assert scenario.validate()["flows"] == flows


def test_every_choice_is_a_law_and_the_papers_is_among_them():
    for paper, laws in net.CHOICES.values():
        assert paper in laws.values()
        for law in laws.values():
            assert net.diverse(law).validate()["flows"] == 4


def test_printed_numbers_can_be_read():
    for printed in TABLE_1.values():
        assert all(read_printed(number)[0] > 0 for number in printed)
    for table in (TABLE_3, TABLE_4):
        for printed in table.values():
            assert set(printed) == set(tables.HEADS)


def test_a_row_is_what_the_record_says():
    result = run(net.contention(net.AIMD, sample="1s"), seed=1)
    measured = row(result)
    flows = result.record["flows"]
    delivered = sum(flow["packets_delivered"] for flow in flows)
    assert measured["goodput"] == pytest.approx(delivered * 1000 / 300 / 1024)
    assert measured["retransmissions"] == sum(flow["retransmissions"] for flow in flows)
    sent = np.array([flow["packets_sent"] for flow in flows], dtype=float)
    assert measured["fairness"] == pytest.approx(sent.sum() ** 2 / (4 * (sent**2).sum()))
    assert measured["alpha"] == 1.0


def test_alpha_fairness_is_that_of_the_increases_at_the_end():
    result = run(net.diverse(net.BOUNDED), seed=1)
    a = np.array([flow["gauges"]["a"][-1] for flow in result.record["flows"]])
    assert row(result)["alpha"] == pytest.approx(a.sum() ** 2 / (4 * (a**2).sum()))


def test_the_increase_at_a_time_is_the_last_one_sampled():
    result = SimpleNamespace(time=np.array([0.0, 1.0, 2.0]))
    flow = {"gauges": {"a": np.array([1.0, 0.8, 0.6])}}
    assert increase_at(result, flow, 0.9) == 1.0
    assert increase_at(result, flow, 1.0) == 0.8
    assert increase_at(result, flow, 9.0) == 0.6


def test_cuts_are_together_only_with_another_flows():
    # Both of the first flow are near each other, but only one is near one of the second.
    cuts = [np.array([1.0, 1.05]), np.array([1.14]), np.array([7.0])]
    assert together(cuts, 0.1, (0.0, 5.0)) == pytest.approx(2 / 3)
    assert np.isnan(together(cuts, 0.1, (2.0, 5.0)))


def _left(window, times, before):
    """Make a run of which one flow's window after `LEAVE` is known."""
    cuts = {"time": np.array(times), "before": np.array(before)}
    time = LEAVE + np.arange(-2.0, len(window) - 2)
    flow = {"window": np.array(window), "cuts": cuts}
    return SimpleNamespace(time=time, measured_flows=[flow])


def test_growth_is_timed_from_the_last_crossing_of_w():
    # W is 10: the window falls below it again at 205 s and is at 15 five seconds after that.
    window = [8.0, 11.0, 9.0, 10.0, 11.0, 13.0, 14.0, 15.0, 16.0]
    run_ = _left(window, [170.0, 174.0, 178.0], [9.0, 10.0, 11.0])
    assert growth(run_, 0) == (5.0, 4.0)


def test_growth_that_never_gets_there_is_not_known():
    run_ = _left([8.0, 9.0, 10.0, 11.0], [170.0, 174.0], [10.0, 10.0])
    assert np.isnan(growth(run_, 0)).all()


def test_a_flow_that_resets_has_waited_for_less_than_the_rest_of_the_run():
    measured = reset(run(net.contention(net.FULL, leave=True), seed=1))
    assert len(measured.increases) == 4
    assert all(0 < wait < 130 for wait in measured.waits)
    assert all(0.1 < level <= 1 for level in measured.levels)


def test_an_entry_counts_what_the_newcomers_got_through():
    result = run(net.contention(net.AIMD), seed=1)
    measured = entry(result)
    second = result.record["flows"][1]
    assert 50 < measured.starts[1] < 51
    delivered = np.interp(measured.starts[1] + 10, result.time, second["delivered"])
    assert measured.delivered[0] == pytest.approx(delivered, abs=1)
    assert all(0.5 < jain <= 1 for jain in measured.jains)


def test_orders_are_claimed_in_the_right_direction():
    aimd = {"goodput": [1.0] * 4, "retransmissions": [9.0] * 4, "fairness": [0.5] * 4}
    aira = {"goodput": [2.0] * 4, "retransmissions": [3.0] * 4, "fairness": [0.9] * 4}
    better = tables.order_claims(aimd, aira, {}, "x")
    worse = tables.order_claims(aira, aimd, {"x goodput": "because"}, "x")
    assert [claim.verdict for claim in better] == ["holds"] * 3
    assert [claim.verdict for claim in worse] == ["differs"] * 3
    assert [claim.why for claim in worse] == ["because", "Not known.", "Not known."]


def test_the_choice_farthest_from_the_papers_is_judged():
    def rows(fairness):
        return [{"fairness": fairness, "retransmissions": 1.0}] * 3

    laws = {law for _, values in net.CHOICES.values() for law in values.values()}
    found = {law: rows(1.0) for law in laws} | {"aira(bound=0)": rows(0.5)}
    claims = tables.sensitivity_claims({"here": found}, {})
    assert len(claims) == 2 * len(net.CHOICES)
    assert [claim.verdict for claim in claims].count("differs") == 1
    (differs,) = (claim for claim in claims if claim.verdict == "differs")
    assert "lower bound of a: fairness at 0, the farthest" in differs.text
    assert differs.measured == pytest.approx(0.5)


def test_mail_holds_the_increase_up():
    (fig_13,) = [e for e in exhibits("aira") if e.id == "fig-13"]
    findings = fig_13.run(Lab(quick=True))
    assert {claim.verdict for claim in findings.claims} == {"holds"}
