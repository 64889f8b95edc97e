"""The SIMD paper: its networks, what is read off their runs, and the columns computed by hand."""

import math
from functools import partial

import numpy as np
import pytest

import cwnd
from cwnd._papers.exhibit import Lab, exhibits
from cwnd._papers.simd import networks
from cwnd._papers.simd.loss import periodic_epoch
from cwnd._papers.simd.measures import (
    Epochs,
    Growth,
    Shares,
    larger_cuts,
    read_convergence,
    read_epochs,
    read_growth,
    read_shares,
    read_sudden,
)

RTT = 0.05 + 8 * 500 / 6e6
"""Of the convergence test while the queue is empty, in seconds."""

SCENARIOS = {
    "growth": partial(networks.growth, "simd"),
    "random loss": partial(networks.random_loss, "simd", 0.01),
    "periodic loss": partial(networks.periodic_loss, "simd", 50),
    **{q: partial(networks.compatibility, 15, q, 2) for q in networks.QUEUES},
    **{f"test {e}": partial(networks.convergence, "iiad", e, 400, 60) for e in (1, 2)},
    "short queue": partial(networks.convergence, "simd", 1, 400, 60, queue="35p"),
    "NewReno": partial(networks.compatibility, 15, "RED", 2, recovery="newreno"),
    "Reno": partial(networks.random_loss, "simd", 0.01, recovery="reno"),
    "sudden": partial(networks.sudden, "tfrc", 10, 60, 200),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_are_sound(name):
    assert SCENARIOS[name]().validate()["flows"] > 0


def test_convergence_networks_have_the_papers_flows():
    assert SCENARIOS["test 1"]().validate()["flows"] == 2 + 15
    assert SCENARIOS["test 2"]().validate()["flows"] == 2 + 11 + 3


def test_only_the_marking_queue_marks():
    for name, queue in networks.QUEUES.items():
        assert SCENARIOS[name]().to_dict()["tcp"]["ecn"] is ("ecn" in queue)


def test_queue_and_recovery_are_those_asked_for():
    first, shared, last = SCENARIOS["short queue"]().to_dict()["link"]
    assert (first["queue"], shared["queue"], last["queue"]) == ("red", "35p", "red")
    assert SCENARIOS["NewReno"]().to_dict()["tcp"]["recovery"] == "newreno"
    assert SCENARIOS["Reno"]().to_dict()["tcp"]["recovery"] == "reno"


def test_eq4_by_hand():
    # β = 3/8 and w_max = 32: α = √(3/8)/2, α²/4 = 3/128.
    g = Growth(np.array([0.0, 16.0]), np.array([20.0, 26.0]), 32.0, 20.0, math.nan)
    assert g.eq4(3 / 8) == pytest.approx([20.0, 26.0])


def test_growth_is_followed_from_the_last_loss_only():
    time = np.arange(0, 60, 0.1)
    window = np.where(time < 20, 50.0, 40.0 + 0.002 * ((time - 20) / 0.1) ** 2)
    cuts = {"time": [5.0, 20.0], "before": [60.0, 50.0], "after": [30.0, 40.0]}
    flow = {
        "window": window,
        "rtt": np.full(time.size, 0.1),
        "cuts": {key: np.array(values) for key, values in cuts.items()},
        "gauges": {"alpha": np.full(time.size, 0.09)},
    }
    g = read_growth(record(time, [flow]))
    assert (g.largest, g.smallest, g.alpha) == (50.0, 40.0, 0.09)
    assert g.window[-1] <= 115
    assert g.exponent() == pytest.approx(2.0)
    assert g.window == pytest.approx(40 + 0.002 * g.rtts**2)


def test_epochs_leave_out_the_cut_of_slow_start():
    cuts = {"time": [1.0, 5.0, 9.0], "before": [64.0, 32.0, 34.0], "after": [32.0, 30.0, 31.9]}
    flow = {
        "packets_sent": 3000,
        "packets_received": 2997,
        "packets_lost": 3,
        "mean_rtt_s": 0.1,
        "cuts": {key: np.array(values) for key, values in cuts.items()},
    }
    found = read_epochs(record(np.arange(0, 10.05, 0.1), [flow]))
    # 9/16 over (1 - 1/24)² · 64.
    assert found.alpha2 == pytest.approx(9 / 16 / (23 / 24) ** 2 / 64)
    assert (found.increase, found.loss) == (pytest.approx(4.0), 0.001)
    assert found.window == pytest.approx(30.0)


def test_the_tcp_friendly_relation_of_epochs():
    assert Epochs(1.0, 0.01, math.sqrt(1.5 / 0.0025), 0.0025).relation() == pytest.approx(1.0)


def record(time, flows, links=(), warmup=0.0):
    """Return a result with as much of a record as the measures look at."""
    return cwnd.Result(
        {
            "scenario": "made up",
            "time": time,
            "duration_s": float(time[-1]),
            "warmup_s": warmup,
            "flows": [{"measured": True, "min_rtt_s": 0.1} | flow for flow in flows],
            "links": list(links),
        }
    )


def cuts_of(time, before):
    return {"time": np.array([time]), "before": np.array([before])}


def two_flows(*, drops_at: float):
    """Two windows: 10 and 60 at 10 s, one packet a second nearer, and a cut at 25 s."""
    time = np.arange(0, 100, 0.05)
    flows = [
        {"window": np.where(time < 10, 5.0, time), "cuts": cuts_of(10.1, 10.0)},
        {"window": np.full(time.size, 60.0), "cuts": cuts_of(25.02, 60.0)},
        {"measured": False, "stop_s": 10.0},
    ]
    link = {
        "name": "b2-b3",
        "rate_bps": 6e6,
        "queue": np.zeros(time.size),
        "drops_series": np.where(time < drops_at, 3.0, 4.0),
    }
    return record(time, flows, [link])


def test_convergence_by_hand():
    c = read_convergence(two_flows(drops_at=24.9))
    assert (c.w1, c.w2) == (pytest.approx(10.0), 60.0)
    assert c.t1 == pytest.approx(15.0 / RTT)  # not the cut at 10.1 s, which answers an older drop
    assert c.delta == pytest.approx(35.0)
    assert c.total == pytest.approx(85.0)
    assert c.t2 == pytest.approx(40.05 / RTT)  # 50.05 against 60: the first below 10
    assert c.end == pytest.approx(89.95 / RTT)
    assert c.larger == 0.5
    assert c.time[0] == pytest.approx(-10.0)


def test_what_does_not_happen_is_unknown():
    c = read_convergence(two_flows(drops_at=99.0))
    assert math.isnan(c.t1)
    assert math.isnan(c.delta)


def test_shares_add_up_to_the_link():
    scenario = networks.compatibility(15, "RED", 2, warmup=5, measured=10)
    result = cwnd.run(scenario, 1)
    shares = read_shares(result)
    assert shares.law.size == shares.tcp.size == 2
    total = shares.law.sum() + shares.tcp.sum()
    # Acknowledgements of the reverse flows and what was dropped are the difference.
    assert total / 4 == pytest.approx(result.bottleneck["utilization"], abs=0.06)
    assert shares.marks == 0
    assert 0 < shares.loss < 0.05
    assert 0.06 < shares.rtt < 0.2
    flows = result.measured_flows
    cuts = sum(np.count_nonzero(flow["cuts"]["time"] >= 5) for flow in flows)
    assert shares.burst == pytest.approx(sum(flow["packets_lost"] for flow in flows) / cuts)
    assert 0.5 < shares.burst < 5


def test_sudden_change_by_hand():
    time = np.arange(0, 30.05, 0.1)
    # 15 Mb/s, of which others take 10 from 10 s to 20 s: down at 6.25 Mb/s, up at 12 Mb/s.
    rate = np.select([time < 10, time < 12, time < 20, time < 23], [1500, 1200, 500, 1000], 1600)
    sent = np.concatenate([[0.0], np.cumsum(rate[:-1] * 0.1)])
    link = {
        "name": "left-right",
        "rate_bps": 15e6,
        "utilization": 1.0,
        "drops_series": np.clip(time - 10, 0, 10),
    }
    result = record(time, [{"sent": sent, "packet_bytes": 1000}], [link], warmup=10.0)
    s = read_sudden(result, 10.0)
    assert s.down_s == pytest.approx(2.0)
    assert s.up_s == pytest.approx(3.0)
    assert s.lost == pytest.approx(100 * 5 / (2 * 1200 + 3 * 500))


def test_cuts_are_of_the_larger_or_the_smaller_window():
    time = np.arange(0, 10, 0.5)
    first = {"time": np.array([1.2, 4.0, 9.0]), "before": np.array([30.0, 10.0, 30.0])}
    second = {"time": np.array([5.1]), "before": np.array([21.0])}
    flows = [
        {"window": np.full(time.size, 12.0), "cuts": first},
        {"window": np.full(time.size, 20.0), "cuts": second},
    ]
    # At 1.2 s 30 against 20, at 4 s 10 against 20, at 5.1 s 21 against 12.
    assert larger_cuts(record(time, flows), 1.0, 8.0) == pytest.approx(2 / 3)
    assert math.isnan(larger_cuts(record(time, flows), 6.0, 8.0))


def test_distances_are_from_the_fair_share():
    shares = Shares(np.array([1.5, 0.5]), np.array([1.0, 1.0]), 0, 0, 0, 0, np.zeros(5), 0)
    assert shares.distance == pytest.approx(math.sqrt(0.125))
    assert shares.spread == pytest.approx(0.5 * math.sqrt(0.5))


def verdicts_of(name):
    """Return the verdicts of an exhibit's claims in the quick run."""
    (exhibit,) = [e for e in exhibits("simd") if e.id == name]
    return {claim.name: claim.grade.verdict for claim in exhibit.run(Lab(quick=True)).claims}


def test_a_periodic_epoch_by_hand():
    # From 20 to 32 packets: α/20 × α/4 by the first ACK, then α √(w - 20)/w.
    alpha = 4 * math.sqrt(20 * 5)
    assert periodic_epoch(3 / 8, 32, alpha) == (pytest.approx(1 / 40), 1)
    rounds, packets = periodic_epoch(1 / 16, 100, 0.05)
    # Eq. 2: 6.25 = 0.05² t²/4, with 95.8 packets in each round.
    assert rounds == pytest.approx(100, rel=0.02)
    assert packets == pytest.approx(9583, rel=0.02)


def test_section_4_and_the_appendix_are_what_the_laws_do():
    forms, phases, plane = (verdicts_of(name) for name in ("table-1", "fig-3", "fig-4c"))
    laws = ("TCP", "AIMD", "IIAD", "SIMD")
    assert {forms[f"{key} {law}"] for key in ("contraction", "length") for law in laws} == {
        "agrees"
    }
    assert {*phases.values()} == {"agrees"}
    epochs = [v for name, v in forms.items() if "epochs" in name.split()[0]]
    assert epochs == ["agrees"] * 4
    # With IIAD's β SQRT reduces windows of 50 packets further than AIMD(1/16).
    assert forms["sqrt"] == "differs"
    assert plane["apart laws iterated"] == "agrees"
    assert plane["slowest laws iterated"] == "differs"


def test_equations_5_to_7_are_what_the_law_does():
    verdicts = verdicts_of("eq-6")
    for key, number in (
        ("sum", 4),
        ("random-law", 2),
        ("periodic-law", 3),
        ("periodic", 3),
        ("duration", 3),
        ("packets", 3),
        ("eq-5", 3),
    ):
        mine = [v for name, v in verdicts.items() if name.split()[0] == key]
        assert mine == ["agrees"] * number
    # α_R = α_P/√2: friendly under random losses, 2^(-1/4) of that under periodic ones.
    assert verdicts["friendly 0.001"] == verdicts["unfriendly 100"] == "agrees"
