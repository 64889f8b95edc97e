from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from cwnd.errors import ArgumentError
from cwnd.model import friendliness as model
from cwnd.model.throughput import gaimd, pftk, square_root

betas = st.floats(min_value=0.01, max_value=0.99)
windows = st.floats(min_value=4.0, max_value=1e6)


def test_tcp_is_friendly_to_itself():
    assert model.aimd_alpha(0.5) == 1
    assert model.aimd_alpha_timeouts(0.5) == 1
    assert model.binomial_alpha(0.5, 0, 1) == 1


def test_published_increases():
    assert model.aimd_alpha_timeouts(1 / 8) == pytest.approx(0.31, abs=0.005)
    assert model.aimd_alpha(1 / 16) == pytest.approx(0.1, abs=0.005)
    assert model.aimd_alpha(1 / 8) == pytest.approx(0.2)
    assert model.binomial_alpha(2 / 3, 1, 0) == pytest.approx(1)


@given(betas)
def test_aimd_alpha_gives_the_rate_of_tcp_without_timeouts(beta):
    rate = 1 / _td(model.aimd_alpha(beta), beta)
    assert rate == pytest.approx(square_root(0.01, 0.1))


@given(betas)
def test_aimd_alpha_timeouts_gives_tcps_timeouts(beta):
    """GAIMD's α makes Q, and so the time in timeouts, that of TCP."""
    from cwnd.model.throughput import gaimd_to

    alpha = model.aimd_alpha_timeouts(beta)
    assert gaimd_to(0.02, 0.4, 1, alpha, beta) == pytest.approx(gaimd_to(0.02, 0.4))


@given(betas, windows)
def test_simd_alpha_is_that_of_its_own_period(beta, window):
    """From W back to W by α²t²/4: packets over time is the square-root law at one loss in them."""
    alpha = model.simd_alpha_periodic(beta, window)
    time = 2 * np.sqrt(beta * window) / alpha
    packets = (1 - beta) * window * time + alpha**2 * time**3 / 12
    assert packets / time == pytest.approx(square_root(1 / packets, 1.0)) or packets < 1


@given(betas, windows)
def test_simd_random_and_periodic(beta, window):
    periodic, random = model.simd_alpha_periodic(beta, window), model.simd_alpha(beta, window)
    assert periodic**2 == pytest.approx(2 * random**2)


@pytest.mark.parametrize("k", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("window", [20.0, 500.0])
def test_binomial_alpha_is_that_of_a_period_stepped_through(k, window):
    beta = 0.3
    alpha = model.binomial_alpha(beta, k, 1 - k, window)
    low = window - beta * window ** (1 - k)
    w = np.linspace(low, window, 20001)
    time = trapezoid(w**k / alpha, w)
    packets = trapezoid(w ** (k + 1) / alpha, w)
    assert packets / time == pytest.approx(square_root(1 / packets, 1.0), rel=1e-7)


@given(betas)
def test_binomial_alpha_of_aimd_is_aimds(beta):
    for window in (10.0, 1e4, np.inf):
        assert model.binomial_alpha(beta, 0, 1, window) == pytest.approx(model.aimd_alpha(beta))


@pytest.mark.parametrize("k", [0.2, 0.5, 1.0])
def test_binomial_alpha_has_a_limit(k):
    far, limit = (
        model.binomial_alpha(0.5, k, 1 - k, [1e4, 1e9]),
        model.binomial_alpha(0.5, k, 1 - k),
    )
    assert limit == 0.75
    assert abs(far[1] - limit) < abs(far[0] - limit)
    assert far[1] == pytest.approx(limit, rel=0.01)


def test_which_binomial_laws_can_be_friendly():
    friendly = model.binomial_is_friendly([0, 1, 0.5, 1, 0], [1, 0, 0.5, 1, 0])
    assert friendly.tolist() == [True, True, True, False, False]
    with pytest.raises(ArgumentError, match="add up to 1"):
        model.binomial_alpha(0.5, 1, 1)
    with pytest.raises(ArgumentError, match="whole window"):
        model.binomial_alpha(5.0, 1, 0, 4)


def test_ratio_of_a_pair_over_losses():
    p = np.geomspace(1e-6, 0.3, 50)
    friendly = {"alpha": model.aimd_alpha(1 / 16), "beta": 1 / 16}
    ratio = model.friendliness_ratio("gaimd", "pftk", p, rtt=0.1, rto=0.4, **friendly)
    assert ratio == pytest.approx(gaimd(p, 0.1, 0.4, **friendly) / pftk(p, 0.1, 0.4))
    # SIMD, section 5.1: as TCP at small and at high loss, below it, but not under 75 %, in between.
    assert ratio[[0, -1]] == pytest.approx([1, 1], abs=0.01)
    assert 0.75 < ratio.min() < 0.85


def test_ratio_of_functions():
    ratio = model.friendliness_ratio(
        lambda p: 2 * square_root(p, 0.1), "square_root", 0.01, rtt=0.1
    )
    assert ratio == pytest.approx(2)


def test_ratio_mistakes():
    with pytest.raises(ArgumentError, match="first: 'x' is not one of"):
        model.friendliness_ratio("x", "pftk", 0.1)
    with pytest.raises(ArgumentError, match="rto: pftk needs it"):
        model.friendliness_ratio("pftk", "square_root", 0.1, rtt=0.1)
    with pytest.raises(ArgumentError, match="alpha: neither"):
        model.friendliness_ratio("square_root", "square_root", 0.1, rtt=0.1, alpha=1)


def _td(alpha, beta):
    from cwnd.model.throughput import gaimd_td

    return gaimd_td(0.01, 0.1, 1, alpha, beta)
