"""The exhibits of the SIMD paper: networks, readings, and what is computed without chance."""

import math
from functools import partial

import numpy as np
import pytest

import cwnd
from cwnd.papers import simd, simd_convergence, simd_networks, simd_tfrc
from cwnd.papers.exhibit import exhibits
from cwnd.papers.simd_networks import Growth

RTT = 0.05 + 8 * 500 / 6e6
"""Of the convergence test while the queue is empty, in seconds."""

SCENARIOS = {
    "growth": partial(simd_networks.growth, "simd"),
    "random loss": partial(simd_networks.random_loss, "simd", 0.01),
    **{q: partial(simd_networks.compatibility, 15, q, 2) for q in simd_networks.QUEUES},
    **{f"test {e}": partial(simd_networks.convergence, "iiad", e, 400, 60) for e in (1, 2)},
    **{
        law: partial(simd_tfrc.sudden, spec, 10, 60, 120, 200)
        for law, spec in simd_tfrc.LAWS.items()
    },
}


def test_all_exhibits_are_there_in_order():
    ids = [e.id for e in exhibits("simd")]
    assert ids == (
        [
            "fig-1",
            "fig-4a",
            "table-1",
            "fig-4c",
            "fig-5",
            "fig-6",
            "fig-7",
            "fig-8",
            "fig-10",
            "fig-11",
            "tfrc",
        ]
    )
    assert [e.id for e in exhibits("simd") if e.new] == ["tfrc"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_are_sound(name):
    assert SCENARIOS[name]().validate()["flows"] > 0


def test_convergence_networks_have_the_papers_flows():
    assert SCENARIOS["test 1"]().validate()["flows"] == 2 + 15
    assert SCENARIOS["test 2"]().validate()["flows"] == 2 + 11 + 3


def test_only_the_marking_queue_marks():
    for name, queue in simd_networks.QUEUES.items():
        document = SCENARIOS[name]().to_dict()
        assert document["tcp"]["ecn"] is ("ecn" in queue)


def test_eq4_by_hand():
    # β = 3/8 and w_max = 32: α = √(3/8)/2, α²/4 = 3/128.
    g = Growth(np.array([0.0, 16.0]), np.array([20.0, 26.0]), 32.0, 20.0, math.nan)
    assert simd.eq4(3 / 8, g) == pytest.approx([20.0, 26.0])


def test_growth_is_followed_from_the_last_loss_only():
    time = np.arange(0, 60, 0.1)
    window = np.where(time < 20, 50.0, 40.0 + 0.002 * ((time - 20) / 0.1) ** 2)
    flow = {
        "window": window,
        "rtt": np.full(time.size, 0.1),
        "cuts": {
            "time": np.array([5.0, 20.0]),
            "before": np.array([60.0, 50.0]),
            "after": np.array([30.0, 40.0]),
        },
        "gauges": {"alpha": np.full(time.size, 0.09)},
    }
    g = simd_networks.read_growth(cwnd.Result(record(time, [flow])))
    assert (g.largest, g.smallest, g.alpha) == (50.0, 40.0, 0.09)
    assert g.window[-1] <= 115
    assert g.exponent() == pytest.approx(2.0)
    assert g.window == pytest.approx(40 + 0.002 * g.rtts**2)


def record(time, flows, links=()):
    """Make as much of a record as the readings look at."""
    return {
        "scenario": "made up",
        "time": time,
        "duration_s": float(time[-1]),
        "warmup_s": 0.0,
        "flows": [{"measured": True, "min_rtt_s": 0.1} | flow for flow in flows],
        "links": list(links),
    }


def two_flows(*, drops_at: float):
    """Two windows: 10 and 60 at 10 s, one packet a second nearer, and a cut at 25 s."""
    time = np.arange(0, 100, 0.05)
    first = np.where(time < 10, 5.0, time)
    flows = [
        {"window": first, "cuts": {"time": np.array([10.1])}},
        {"window": np.full(time.size, 60.0), "cuts": {"time": np.array([25.02])}},
    ]
    link = {
        "name": "b2-b3",
        "rate_bps": 6e6,
        "queue": np.zeros(time.size),
        "drops_series": np.where(time < drops_at, 3.0, 4.0),
    }
    return cwnd.Result(record(time, flows, [link]))


def test_convergence_by_hand():
    c = simd_networks.read_convergence(two_flows(drops_at=24.9), 10.0)
    assert (c.w1, c.w2) == (pytest.approx(10.0), 60.0)
    assert c.t1 == pytest.approx(15.0 / RTT)  # not the cut at 10.1 s, which answers an older drop
    assert c.delta == pytest.approx(35.0)
    assert c.total == pytest.approx(85.0)
    assert c.t2_s == pytest.approx(40.05)  # 50.05 against 60: the first below 10
    assert c.t2 == pytest.approx(40.05 / RTT)
    assert c.time[0] == pytest.approx(-10.0)


def test_what_does_not_happen_is_unknown():
    c = simd_networks.read_convergence(two_flows(drops_at=99.0), 10.0)
    assert math.isnan(c.t1)
    assert math.isnan(c.delta)


def test_analytic_columns_of_table_3():
    claims = [c for e in (1, 2) for c in simd_convergence.analytic_claims(e)]
    assert len(claims) == 4 + 8
    differ = [(c.text, c.published) for c in claims if c.verdict == "differs"]
    assert differ == [("IIAD: T2 by Table 1", "6684"), ("TCP: Δ by Table 1", "6.0")]
    assert all(c.why != "Not known." for c in claims)


def test_shares_add_up_to_the_link():
    scenario = simd_networks.compatibility(15, "RED", 2, warmup=5, measured=10)
    result = cwnd.run(scenario, 1)
    shares = simd_networks.read_shares(result)
    assert shares.law.size == shares.tcp.size == 2
    total = shares.law.sum() + shares.tcp.sum()
    # Acknowledgements of the reverse flows and what was dropped are the difference.
    assert total / 4 == pytest.approx(result.bottleneck["utilization"], abs=0.06)
    assert shares.marks == 0
    assert 0 < shares.loss < 0.05
    assert 0.06 < shares.rtt < 0.2


def test_sudden_change_by_hand():
    time = np.arange(0, 30.05, 0.1)
    # 15 Mb/s, of which others take 10 from 10 s to 20 s: down at 6.25 Mb/s, up at 12 Mb/s.
    rate = np.select([time < 10, time < 12, time < 20, time < 23], [1500, 1200, 500, 1000], 1600)
    sent = np.concatenate([[0.0], np.cumsum(rate[:-1] * 0.1)])
    flow = {"sent": sent, "packet_bytes": 1000}
    link = {
        "name": "left-right",
        "rate_bps": 15e6,
        "utilization": 1.0,
        "drops_series": np.clip(time - 10, 0, 10),
    }
    s = simd_tfrc.read_sudden(cwnd.Result(record(time, [flow], [link])), 10.0, 10.0, 20.0)
    assert s.down_s == pytest.approx(2.0)
    assert s.up_s == pytest.approx(3.0)
    assert s.lost == pytest.approx(100 * 5 / (2 * 1200 + 3 * 500))
