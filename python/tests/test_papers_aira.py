"""Networks and measures of the AIRA paper's exhibits."""

from types import SimpleNamespace

import numpy as np
import pytest

from cwnd._papers.aira import claims, framework, rules, sensitivity
from cwnd._papers.aira import networks as net
from cwnd._papers.aira.measures import (
    LEAVE,
    Reset,
    Traced,
    contended,
    entry,
    growth,
    lost,
    reset,
    row,
    short_and_long,
    together,
    traced,
)
from cwnd._papers.aira.reset import steps, two_rounds
from cwnd._papers.exhibit import Lab, exhibits
from cwnd._papers.trial import Trial
from cwnd._runs.run import run

IDS = (
    *("table-1", "fig-1", "section-4-2", "section-4-3", "fig-9", "fig-10-11", "table-3"),
    *("fig-12", "fig-13", "fig-14", "table-4", "fig-17", "red", "fig-18", "fig-19"),
    *("footnote-5", "fig-20", "sensitivity"),
)


def test_exhibits_are_complete():
    found = exhibits("aira")
    assert tuple(e.id for e in found) == IDS
    assert [e.id for e in found if e.new] == ["sensitivity"]


@pytest.mark.parametrize(
    ("scenario", "flows"),
    [
        (net.table_1(net.AIMD, 4, delayed_acks=True), 4),
        (net.contention(net.FULL, leave=2), 4),
        (net.contention(net.FULL, flows=3, leave=1), 3),
        (net.static((1.0, 1.0, 0.2, 0.2)), 4),
        (net.teams(net.RULES, 20, 50.0), 20),
        (net.diverse(net.BOUNDED, queue={"kind": "red", "limit": "5p"}), 4),
        (net.many(net.BOUNDED, 100), 100),
        (net.deployment({net.AIMD: 5, net.FULL: 5}), 10),
        (net.deployment({net.AIMD: 5, net.FULL: 5}, large=True), 10),
        (net.short_and_long(net.BOUNDED), 4),
        (net.alone(net.BOUNDED, 1, 50), 1),
        (net.lossy(net.RULES, 0.05), 1),
    ],
)
def test_networks_are_valid(scenario, flows):
    assert scenario.validate()["flows"] == flows


def test_flows_that_leave_stop_sending():
    result = run(net.contention(net.AIMD, leave=2), seed=1)
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
    per_second = sent / [300 - flow["start_s"] for flow in result.measured_flows]
    assert measured["rate-fairness"] == pytest.approx(
        per_second.sum() ** 2 / (4 * (per_second**2).sum())
    )
    causes = [cause for flow in result.measured_flows for cause in flow["cuts"]["cause"]]
    assert measured["events"] == len(causes) - causes.count("timeout") > 100
    assert measured["timeouts"] == sum(flow["timeouts"] for flow in flows)


def test_the_time_of_a_flow_ends_when_it_leaves():
    result = run(net.contention(net.AIMD, leave=2), seed=1)
    ends = np.array([300, 300, 205, 205])
    times = ends - [flow["start_s"] for flow in result.measured_flows]
    rates = [flow["packets_sent"] for flow in result.measured_flows] / times
    assert row(result)["rate-fairness"] == pytest.approx(rates.sum() ** 2 / (4 * (rates**2).sum()))


def test_one_of_three_leaves():
    result = run(net.contention(net.AIMD, flows=3, leave=1), seed=1)
    assert [flow["stop_s"] for flow in result.measured_flows] == [np.inf, np.inf, LEAVE]
    starts = [flow["start_s"] for flow in result.measured_flows]
    assert np.floor(starts).tolist() == [0, 50, 100]


def test_distant_flows_may_have_another_law():
    flows = net.diverse(net.fixed(0.5), net.fixed(1)).to_dict()["flow"]
    assert [(flow["rtt"], flow["controller"]) for flow in flows] == [
        ("60ms", "aimd(alpha=0.5, beta=1/2)"),
        ("220ms", "aimd(alpha=1, beta=1/2)"),
    ]


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
    measured = reset(run(net.contention(net.FULL, leave=2), seed=1))
    assert len(measured.traced.increases) == 4
    assert all(0 < wait < 130 for wait in measured.waits)
    assert all(0.1 < level <= 1 for level in measured.levels)
    # Half of the flows left, so that the windows double, within the queue's share.
    assert all(1.5 < peak < 2.5 for peak in measured.peaks)


def test_the_first_loss_after_a_departure_is_compared_with_the_last_before():
    time = np.arange(0.0, 300.0)
    cuts = {"time": np.array([170.0, 200.0, 206.0, 220.0]), "before": np.array([8.0, 10, 12, 18])}
    gauges = {"a": np.where(time < 206, 0.5, 1.0)}
    flow = dict.fromkeys(("bytes_delivered", "retransmissions", "packets_sent"), 1)
    flow |= {"start_s": 0.0, "stop_s": np.inf, "gauges": gauges}
    flow |= {"cuts": cuts | {"cause": ["loss"] * 4}, "timeouts": 0, "sent": 100 * time}
    drops = np.interp(time, [0, 210, 255, 300], [0, 0, 90, 135])
    made = SimpleNamespace(time=time, duration_s=300.0, measured_flows=[flow, flow])
    made.bottleneck = {"drops_series": drops}
    measured = reset(made)
    assert measured.first == [1.2, 1.2]
    assert measured.peaks == [2.0, 2.0]
    assert measured.waits == pytest.approx([1 / 30, 1 / 30])
    assert measured.spreads == [0.0, 0.0]
    assert measured.losses == pytest.approx((0.01, 0.005), rel=0.05)


def test_losses_are_drops_over_packets_sent():
    result = run(net.contention(net.RULES), seed=1)
    link, flows = result.bottleneck, result.measured_flows
    total = link["drops"] / sum(flow["packets_sent"] for flow in flows)
    assert lost(result, 0.0, 300.0) == pytest.approx(total, rel=0.02)
    measured = contended(result)
    assert measured.losses[0] == pytest.approx(np.mean(measured.alone), rel=0.1)
    assert len(measured.losses) == 4
    assert len(measured.traced.increases) == 4


def test_a_short_flow_is_compared_with_the_long_ones_meanwhile():
    time = np.arange(0.0, 301.0)
    flow = {"packet_bytes": 1024, "start_s": 0.0, "completed_s": np.nan}
    long = [flow | {"delivered": rate * time} for rate in (10, 20)]
    short = flow | {"start_s": 100.0, "completed_s": 150.0, "delivered": 40 * (time - 100)}
    made = SimpleNamespace(time=time, duration_s=300.0, measured_flows=[*long, short])
    assert short_and_long(made) == pytest.approx((40.0, 15.0))
    made.measured_flows[-1]["completed_s"] = np.nan
    made.measured_flows[-1]["delivered"] = np.minimum(short["delivered"], 4000)
    assert short_and_long(made) == pytest.approx((20.0, 15.0))


def test_an_entry_counts_the_newcomers_packets():
    result = run(net.contention(net.AIMD), seed=1)
    second = result.record["flows"][1]
    delivered = np.interp(second["start_s"] + 10, result.time, second["delivered"])
    measured = entry(result)
    assert measured.delivered[0] == pytest.approx(delivered, abs=1)
    assert all(0.5 < jain <= 1 for jain in measured.jains)
    pair = np.array([measured.earlier[0], measured.newcomer[0]])
    assert measured.jains[0] == pytest.approx(pair.sum() ** 2 / (2 * (pair**2).sum()))


def _exhibit(name):
    (found,) = [e for e in exhibits("aira") if e.id == name]
    return found


class _Rows(Lab):
    """Lab that returns five equal rows for each case, by a function of its key."""

    def __init__(self, exhibit, made, trial=None):
        super().__init__()
        self.begin(exhibit.text, 5, trial)
        self.made, self.keys = made, []

    def run(self, cases, measure, **_):
        self.keys += cases
        return {key: [self.made(key)] * 5 for key in cases}

    def verdicts(self):
        return {claim.name: claim.grade.verdict for claim in self.findings.claims}


def test_half_the_increase_has_half_the_events():
    lab = _Rows(
        _exhibit("fig-1"), lambda key: {"events": 40 * key[0] * key[1], "retransmissions": key[0]}
    )
    rules.fig_1(lab)
    verdicts = lab.verdicts()
    assert {verdicts[f"{name} {n}"] for name in ("events", "retransmissions") for n in (2, 4)} == {
        "agrees"
    }
    # Equal frequencies are not ordered, and both increases lose as much in an event.
    assert verdicts["frequency"] == "differs"
    assert verdicts["fixed-loss 2"] == verdicts["fixed-loss 4"] == verdicts["table-1"] == "agrees"


@pytest.mark.parametrize(("aira", "verdict"), [(1.0, "agrees"), (3.0, "differs")])
def test_the_worst_value_of_a_choice_is_compared_with_aimd(aira, verdict):
    def made(key):
        # One value of each choice is worse than the others.
        rate = 2.0 if key[1] == net.AIMD else aira if "off" in key[1] or "0.5" in key[1] else 0.5
        return dict.fromkeys(claims.COLUMNS, rate) | {"fairness": 1 / (1 + rate)}

    lab = _Rows(_exhibit("sensitivity"), made)
    sensitivity.sensitivity(lab)
    verdicts = lab.verdicts()
    for key in ("worst-retransmissions", "worst-fairness"):
        assert verdicts[f"{key} with reset lower bound of a Table 4"] == verdict
        assert verdicts[f"{key} with reset W of the reset condition Figure 19"] == "agrees"


def test_a_trial_chooses_the_fairness():
    rows = [{"fairness": 0.8, "rate-fairness": 0.9}]
    lab = Lab()
    assert claims.by_option(lab, rows) == rows
    lab.begin(_exhibit("fig-19").text, 5, _exhibit("fig-19").text.trials["connection-time"])
    assert claims.by_option(lab, rows) == [{"fairness": 0.9, "rate-fairness": 0.9}]


def test_the_median_run_may_reset_although_the_mean_does_not():
    waits = [1.0] * 30 + [100.0] * 10
    traced_ = Traced(
        {"goodput": 227.1, "retransmissions": 748.0, "fairness": 0.85}, np.zeros(1), []
    )
    runs = [Reset(traced_, [wait, 0.5], [1.0], [1.5], [1.5], [0.0], (0, 0)) for wait in waits]
    found = {}
    for option in ("mean", "median"):
        lab = Lab()
        lab.begin(_exhibit("footnote-5").text, 40, Trial("", options={"wait": option}))
        found[option] = two_rounds(lab, runs).verdict
    assert found == {"mean": "differs", "median": "agrees"}


def test_the_window_grows_linearly_by_step():
    assert steps(1.0, 20.0, 30.0) == pytest.approx(10, abs=0.3)
    assert steps(0.2, 20.0, 30.0) == pytest.approx(50, abs=0.3)
    assert steps(1.0, 10.0, 20.0) == pytest.approx(10, abs=0.5)


def test_synchronous_windows_are_proportional_to_the_increases():
    assert framework.synchronous((1.0, 0.5, 0.2)) == pytest.approx(
        np.array([1.0, 0.5, 0.2]) * 100 / 1.7 / 2
    )


def test_observations_depend_on_what_is_given():
    claims_ = {c.name: c for c in _exhibit("section-4-2").run(Lab()).claims}
    assert claims_["above-wider"].verdict == "depends"
    assert claims_["below-defined"].verdict == "differs"
    assert claims_["below-defined"].reason.cause == "paper"
    for name in ("above", "below", "below-wider", "never-below", "only-p"):
        assert claims_[name].verdict == "agrees"


def test_orders_have_the_right_direction():
    aimd = [{"goodput": 1.0, "retransmissions": 9.0, "events": 5.0, "fairness": 0.5}] * 5
    aira = [{"goodput": 2.0, "retransmissions": 3.0, "events": 2.0, "fairness": 0.9}] * 5
    (table_3,) = [e for e in exhibits("aira") if e.id == "table-3"]
    for pair, verdict in (((aimd, aira), "agrees"), ((aira, aimd), "differs")):
        lab = Lab()
        lab.begin(table_3.text, 5)
        claims.orders(lab, *pair)
        assert [claim.grade.verdict for claim in lab.findings.claims] == [verdict] * 4


def test_mail_holds_the_increase_up():
    (fig_13,) = [e for e in exhibits("aira") if e.id == "fig-13"]
    assert {claim.grade.verdict for claim in fig_13.run(Lab(quick=True)).claims} == {"agrees"}
