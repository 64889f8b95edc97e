from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwnd import metrics

rates = st.lists(st.floats(min_value=1e-3, max_value=1e12), min_size=1, max_size=50)


@given(rates)
def test_jain_is_between_one_nth_and_one(x):
    assert 1 / len(x) - 1e-9 <= metrics.jain(x) <= 1 + 1e-9


@given(rates, st.floats(min_value=1e-6, max_value=1e6))
def test_jain_has_no_unit(x, factor):
    assert metrics.jain(np.array(x) * factor) == pytest.approx(metrics.jain(x))


@pytest.mark.parametrize("x", [[], [0.0, 0.0], [math.nan, 1.0]])
def test_jain_of_nothing_is_unknown(x):
    assert math.isnan(metrics.jain(x))


def test_published_daimd_figures():
    """Gu et al., figure 10: five flows of different round-trip times."""
    flows = [25.37, 19.93, 20.17, 19.70, 13.72]
    assert metrics.efficiency_index(flows) == pytest.approx(98.89)
    assert metrics.fairness_index(flows) == pytest.approx(0.966, abs=5e-4)


def test_stability_index_is_the_mean_relative_deviation():
    x = np.array([[1.0, 2.0, 3.0], [10.0, 10.0, 10.0]])
    assert metrics.stability_index(x) == pytest.approx((1.0 / 2.0 + 0.0) / 2)


@given(rates, rates)
def test_friendliness_is_a_share(x, y):
    share = metrics.friendliness(x, y)
    assert 0 <= share <= 1
    assert share + metrics.friendliness(y, x) == pytest.approx(1)


def test_friendliness_compares_flows_not_groups():
    assert metrics.friendliness([2.0, 2.0, 2.0], [2.0]) == 0.5


def test_binned_rate_counts_every_packet():
    time = np.linspace(0, 10, 101)
    packets = np.cumsum(np.random.default_rng(1).poisson(5, 101)).astype(float)
    _, bins = metrics.binned_rate(time, packets, 1000, 0.5)
    assert bins.size == 20
    assert bins.sum() * 0.5 / 8000 == pytest.approx(packets[-1] - packets[0])


def test_constant_rate_is_smooth_at_every_scale():
    time = np.linspace(0, 100, 1001)
    assert all(
        cov == pytest.approx(0, abs=1e-9)
        for cov in metrics.smoothness(time, 10 * time, [0.2, 1.0, 5.0]).values()
    )


def test_longer_scales_hide_a_sawtooth():
    time = np.linspace(0, 100, 10_001)
    window = 10 + 10 * (time % 2.0) / 2.0
    cov = metrics.smoothness(time, np.cumsum(window), [0.1, 2.0, 10.0])
    # Uniform between 10 and 20: deviation 10 / sqrt(12) over a mean of 15, a little less for the
    # intervals that a drop falls into.
    assert cov[0.1] == pytest.approx(10 / math.sqrt(12) / 15, rel=0.05)
    assert cov[2.0] < 0.01
    assert cov[10.0] < 0.01


def test_scales_longer_than_the_run_are_unknown():
    assert math.isnan(metrics.smoothness([0.0, 1.0], [0.0, 1.0], [5.0])[5.0])


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 100)), min_size=1, max_size=40))
def test_queue_delay_percentiles_are_ordered(pairs):
    delays, weights = zip(*pairs, strict=True)
    delay = metrics.queue_delay(delays, weights)
    assert delay.p50 <= delay.p95 <= delay.p99 <= max(delays)
    assert min(delays) - 1e-9 <= delay.mean <= max(delays) + 1e-9


def test_convergence_time():
    time = np.arange(6.0)
    rates = np.array([[9, 5, 9, 5, 5, 5], [1, 5, 1, 5, 5, 5]], dtype=float)
    assert metrics.convergence_time(time, rates) == 1.0
    assert metrics.convergence_time(time, rates, hold=1.0) == 3.0
    assert math.isnan(metrics.convergence_time(time, rates, hold=5.0))
    assert metrics.convergence_time(time, rates, epsilon=1.0) == 0.0


def test_flows_that_stand_still_have_not_converged():
    assert math.isnan(metrics.convergence_time([0.0, 1.0], [[0, 0], [0, 0]]))


def test_responsiveness_of_halving_every_second_round():
    time = np.arange(0, 1.01, 0.1)
    rate = np.where(time < 0.55, 8.0, 4.0)
    assert metrics.responsiveness(time, rate, congestion=0.2, rtt=0.1) == pytest.approx(4.0)
    assert math.isnan(metrics.responsiveness(time, rate, congestion=0.2, rtt=0.1, factor=0.1))


@pytest.mark.parametrize(
    "value",
    [
        metrics.throughput(10_000, 0.0),
        metrics.goodput(10_000, 0.0),
        metrics.utilization(10, 0.0, 1.0),
        metrics.loss_rate(0, 0),
        metrics.mark_rate(0, 0),
        metrics.retransmission_rate(0, 0),
        metrics.coefficient_of_variation([]),
        metrics.queue_delay([]).mean,
        metrics.stability_index([]),
        metrics.friendliness([], [1.0]),
    ],
)
def test_what_the_data_cannot_give_is_nan(value):
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: metrics.binned_rate([0, 1e9], [0, 1], 1000, 1e-9), "at most 1e8 in a series"),
        (lambda: metrics.binned_rate([0, np.inf], [0, 1], 1000, 1.0), "at most 1e8 in a series"),
        (lambda: metrics.binned_rate([0, 1], [0, 1], 1000, 1.0, -np.inf), "at most 1e8 in a"),
        (lambda: metrics.smoothness([0, 1, 2], [0, 1, 2], [0.0]), "intervals of 0 s"),
        (lambda: metrics.jain_over_time([0, 1], [[0, 1]], 1e-300), "at most 1e8 in a series"),
        (lambda: metrics.binned_rate([0, 1, 2], [0, 1], 1000, 1.0), "time and packets have diff"),
        (lambda: metrics.by_size([500, 700], [1.0]), "sizes and values have different lengths"),
        (lambda: metrics.responsiveness([0, 1, 2], [8, 2], 0, 0.1), "time and rate have different"),
        (lambda: metrics.responsiveness([0, 1], [8, 2], 0, 0), "a round-trip time is above 0"),
        (lambda: metrics.queue_delay([0.1, 0.2], [1.0]), "delays and weights have different"),
        (lambda: metrics.queue_delay([0.1, 0.2], [1.0, -1.0]), "weights are at least 0"),
        (lambda: metrics.jain_over_time([0, 1], [[0]], 1.0), "time and delivered have different"),
        (
            lambda: metrics.jain_over_time([0, 1], [[0, 1]] * 2, 1.0, 0.0, [(0, 1)]),
            "active has 1 times, and delivered has 2 flows",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_arrays_have_any_shape():
    assert metrics.jain([[1, 2], [3, 4]]) == metrics.jain([1, 2, 3, 4])
    assert metrics.jain(3.0) == 1
    assert metrics.efficiency_index(np.array([[1.0], [2.0]])) == 3
    spans = np.array([[0.0, 2.0], [0.0, 2.0]])
    found = metrics.jain_over_time([0, 1, 2], [[0, 4, 6], [0, 0, 2]], 1.0, 0.0, spans)
    assert found.jain.tolist() == [0.5, 1.0]
    offered = metrics.offered_rate([0, 1, 3], [8e3, 8e3, 8e3], [0.0, 1.0], [100])
    assert offered == pytest.approx([8e3, 8e3])
