from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cwnd.errors import ArgumentError
from cwnd.model import aiad
from cwnd.model.aiad_system import System, integrate, motion

flows = st.integers(min_value=1, max_value=500)
probabilities = st.floats(min_value=1e-5, max_value=0.3)
delays = st.floats(min_value=1e-3, max_value=0.5)
slopes = st.floats(min_value=0, max_value=1)
ratios = st.sampled_from([1.0, 25.0])
readings = st.sampled_from(["one", "all"])
CAPACITY = 375.0


@given(st.lists(st.floats(min_value=0.01, max_value=1e4), min_size=1, max_size=20))
def test_phi_never_exceeds_the_link_and_kappa_can(rates):
    """Section II: Σφ = C, and κ is gamma/rho times φ while both links are busy."""
    x = np.array(rates)
    received = aiad.phi(x, x.sum() * (1 + 1e-12), CAPACITY)
    assert received.sum() == pytest.approx(CAPACITY)
    told = aiad.kappa(received, received.sum() * (1 + 1e-12), CAPACITY, gamma=1, rho=0.04)
    assert told == pytest.approx(25 * received)


@given(flows, delays, probabilities, ratios)
def test_equilibrium_stands_still(n, delay, p0, ratio):
    """Eq. 4 with ẋ = 0, and ratio·η below 1."""
    rest = aiad.equilibrium(n, CAPACITY, delay, p0, ratio)
    fall = (rest.rate - rest.eta * rest.estimate) * rest.rate * p0
    assert fall == pytest.approx(1 / rest.rtt**2, rel=1e-6)
    assert rest.eta * ratio < 1
    assert rest.rtt == pytest.approx(delay + rest.queue_delay)


@given(flows, delays, probabilities, slopes, ratios)
def test_gains_are_the_derivatives_of_eq_4(n, delay, p0, slope, ratio):
    """K₁ and K₂ against small differences: one flow moves, the others stay."""
    rest = aiad.equilibrium(n, CAPACITY, delay, p0, ratio)
    x, eta = rest.rate, rest.eta

    def change(own, past):
        total = own + (n - 1) * x
        estimate = ratio * CAPACITY * own / total
        loss = p0 + slope * (past - x)
        return 1 / rest.rtt**2 - (own - eta * estimate) * past * loss

    h = 1e-5 * x
    k1, k2 = aiad.gains(n, CAPACITY, eta, p0, slope, ratio)
    scale = abs(k1) + abs(k2) + x * p0
    assert (change(x + h, x) - change(x - h, x)) / (2 * h) == pytest.approx(k1, abs=1e-4 * scale)
    assert (change(x, x + h) - change(x, x - h)) / (2 * h) == pytest.approx(k2, abs=1e-4 * scale)


def test_gains_as_the_paper_prints_them():
    n, c, eta, p0, slope, alpha = 7, 375.0, 0.03, 0.02, 3e-4, 25.0
    k1 = ((n - 1) / n**2 * alpha * eta - 1 / n) * c * p0
    k2 = (alpha * eta - 1) / n * c * (p0 + c / n * slope)
    assert aiad.gains(n, c, eta, p0, slope, alpha) == pytest.approx((k1, k2))


def test_with_one_flow_its_mode_is_the_papers():
    one = aiad.gains(1, CAPACITY, 0.4, 0.02, 0.001)
    together = aiad.mode_gains(1, CAPACITY, 0.4, 0.02, 0.001)[:2]
    assert together == pytest.approx(one)


@given(st.floats(min_value=-10, max_value=3), st.floats(min_value=-15, max_value=10))
def test_lemma_1_agrees_with_the_rightmost_root(b, c):
    root, margins = aiad.rightmost_root(b, c), aiad.lemma1(b, c)
    residual = abs(b + c * np.exp(-root) - root) if c else abs(root - b)
    assert residual <= 1e-9 * (1 + abs(b) + abs(c))
    assume(abs(root.real) > 1e-9)
    assert margins.stable == (root.real < 0)


def test_no_root_lies_further_right():
    """Newton's method from all over the half-plane finds nothing beyond the rightmost root."""
    rng = np.random.default_rng(7)
    for b, c in rng.uniform((-5, -8), (1, 4), (40, 2)):
        best = aiad.rightmost_root(b, c)
        z = best.real + rng.uniform(0, 4, 200) + 1j * rng.uniform(0, 12, 200)
        for _ in range(60):
            z = z - (b + c * np.exp(-z) - z) / (-c * np.exp(-z) - 1)
            z = np.where(np.isfinite(z) & (z.real > -50), z, best)
        found = np.abs(b + c * np.exp(-z) - z) < 1e-9
        assert found.any()
        assert z[found].real.max() <= best.real + 1e-6


def test_margins_where_they_are_known():
    assert aiad.lemma1(0.0, 0.0).third == pytest.approx(np.pi / 2)
    assert not aiad.lemma1(0.0, -np.pi / 2 - 1e-9).stable
    assert aiad.lemma1(0.0, -np.pi / 2 + 1e-9).stable
    assert np.isnan(aiad.lemma1(1.5, -2.0).third)
    stable = aiad.lemma1(np.array([0.0, 2.0]), np.array([[-1.0], [1.0]])).stable
    assert stable.tolist() == [[True, False], [False, False]]


def test_roots_far_to_the_left_and_right():
    for b, c in ((-2000.0, -3.0), (-600.0, -2000.0), (-501.0, 2.0), (800.0, -1.0), (-5.0, 0.0)):
        root = aiad.rightmost_root(b, c)
        assert abs(b + c * np.exp(-root) - root) < 1e-9 * (abs(b) + abs(c))


@given(flows, delays, probabilities, slopes)
def test_phi_meets_conditions_i_and_ii_and_the_bound_suffices(n, delay, p0, slope):
    """Case 1: (i) and (ii) hold whatever the delay; (iii) does below the bound of d_q."""
    rest = aiad.equilibrium(n, CAPACITY, delay, p0)
    k1, k2 = aiad.gains(n, CAPACITY, rest.eta, p0, slope)
    margins = aiad.lemma1(rest.rtt * k1, rest.rtt * k2)
    assert margins.first > 0
    assert margins.second > 0
    if rest.queue_delay < aiad.queue_delay_bound(n, CAPACITY, p0, slope):
        assert margins.third > 0
        assert margins.stable


@given(flows, probabilities, slopes, st.floats(min_value=0.01, max_value=0.99), readings)
def test_eq_7_is_condition_ii(n, p0, slope, eta, moving):
    """Case 2: (ii) turns where ratio·η is the bound of Eq. 7."""
    bound = aiad.estimate_bound(n, CAPACITY, p0, slope, moving)
    for factor, stable in ((0.999, True), (1.001, False)):
        k1, k2 = aiad.gains(n, CAPACITY, eta, p0, slope, factor * bound / eta, moving)
        assert (aiad.lemma1(k1, k2).second > 0) == stable


@given(flows, probabilities, slopes, ratios)
def test_readings_of_the_slope_differ_by_the_number_of_flows(n, p0, slope, ratio):
    for function, extra in ((aiad.gains, (0.03,)), (aiad.estimate_bound, ())):
        every = function(n, CAPACITY, *extra, p0, slope, moving="all")
        assert every == pytest.approx(function(n, CAPACITY, *extra, p0, n * slope))
    together = aiad.mode_gains(n, CAPACITY, 0.03, p0, slope, ratio).together_k2
    assert aiad.gains(n, CAPACITY, 0.03, p0, slope, ratio, "all").k2 == pytest.approx(together)


@given(flows, probabilities, slopes, delays, ratios)
def test_the_bound_by_all_rates_suffices_for_both_modes(n, p0, slope, delay, ratio):
    rest = aiad.equilibrium(n, CAPACITY, delay, p0, ratio)
    bound = aiad.queue_delay_bound(n, CAPACITY, p0, slope, delay, ratio, "all")
    # Closer to 1, rounding decides the sign of 1 - ratio·η.
    assume(rest.queue_delay < bound and ratio * rest.eta < 1 - 1e-9)
    modes = np.multiply(rest.rtt, aiad.mode_gains(n, CAPACITY, rest.eta, p0, slope, ratio))
    assert aiad.lemma1(*modes[:2]).stable
    assert aiad.lemma1(*modes[2:]).stable


@given(flows, probabilities, slopes, delays, readings)
def test_the_bound_of_case_2_suffices(n, p0, slope, delay, moving):
    rest = aiad.equilibrium(n, CAPACITY, delay, p0, 25)
    k1, k2 = aiad.gains(n, CAPACITY, rest.eta, p0, slope, 25, moving)
    bound = aiad.queue_delay_bound(n, CAPACITY, p0, slope, delay, 25, moving)
    if k1 <= 0 and rest.queue_delay < bound:
        assert aiad.lemma1(rest.rtt * k1, rest.rtt * k2).third > 0


def test_the_limit_of_many_flows():
    """Section IV: ratio·η < 1 is Q > 24Cd for gamma = 1, rho = 0.04."""
    assert aiad.estimate_bound(1e9, CAPACITY, 0.02, 0.001) == pytest.approx(1)
    room = aiad.buffer_bound(CAPACITY, 0.01)
    assert room == pytest.approx(24 * CAPACITY * 0.01)
    assert 25 * 0.01 / (0.01 + room / CAPACITY) == pytest.approx(1)


def pushed(sharpness, seconds, *, n=1, held=True, kick=1e-4):
    """The relative distance of the total rate from C, and the times."""
    system = System(100.0 * n, (0.1,) * n, 0.01, sharpness, held=held)
    rest = system.rest()
    moved = integrate(system, seconds, rest.rates * (1 + kick), rest.queue)
    assert moved.error < 1e-5
    return moved.time, moved.rates.sum(axis=1) / system.capacity - 1


def linear(sharpness, n=1, *, together=False):
    """The rightmost root of the same system, per second."""
    rest = aiad.equilibrium(n, 100.0 * n, 0.1, 0.01)
    slope = sharpness * 0.01 / (100.0 * n)
    find = aiad.mode_gains if together else aiad.gains
    k1, k2 = find(n, 100.0 * n, rest.eta, 0.01, slope)[:2]
    root = aiad.rightmost_root(k1 * rest.rtt, k2 * rest.rtt)
    assert aiad.lemma1(k1 * rest.rtt, k2 * rest.rtt).stable == (root.real < 0)
    return root / rest.rtt


@pytest.mark.parametrize("sharpness", [2.0, 24.0, 30.0])
def test_small_disturbances_follow_the_rightmost_root(sharpness):
    """With the queue held, one flow goes as Eq. 5 says: it decays or grows at the root's rate."""
    root = linear(sharpness)
    # Long enough for the other roots to be gone, before it is lost in rounding or saturates.
    time, away = pushed(sharpness, 4.0)
    half = (time >= 1.5) & (time <= 4.0)
    if root.imag == 0:
        rate = np.polyfit(time[half], np.log(np.abs(away[half])), 1)[0]
    else:
        inner = np.abs(away[1:-1])
        peaks = np.flatnonzero((inner > np.abs(away[:-2])) & (inner > np.abs(away[2:]))) + 1
        peaks = peaks[half[peaks]]
        rate = np.polyfit(time[peaks], np.log(np.abs(away[peaks])), 1)[0]
        assert np.pi / np.diff(time[peaks]).mean() == pytest.approx(root.imag, rel=0.02)
    assert rate == pytest.approx(root.real, rel=0.05, abs=0.02)


def test_lemma_1_tells_what_happens_to_one_flow():
    assert linear(16.0).real < 0
    _, away = pushed(16.0, 8.0, kick=0.05)
    assert np.abs(away[-100:]).max() < 1e-4
    assert linear(35.0).real > 0
    _, away = pushed(35.0, 12.0, kick=1e-3)
    assert np.abs(away[-100:]).max() > 0.05


@pytest.mark.parametrize("sharpness", [24.0, 35.0])
def test_five_flows_settle_by_the_bound_of_all_rates(sharpness):
    """Both are below the bound by one flow's rate; the sharper loss is above that by all rates."""
    rest = aiad.equilibrium(5, 500.0, 0.1, 0.01)
    slope = sharpness * 0.01 / 500.0
    assert rest.queue_delay < aiad.queue_delay_bound(5, 500.0, 0.01, slope)
    settles = rest.queue_delay < aiad.queue_delay_bound(5, 500.0, 0.01, slope, moving="all")
    assert settles == (sharpness == 24.0)
    assert linear(sharpness, n=5).real < -1
    assert (linear(sharpness, n=5, together=True).real < 0) == settles
    _, away = pushed(sharpness, 40.0, n=5, kick=1e-3)
    late = np.abs(away[-100:]).max()
    assert late < 1e-5 if settles else late > 0.05


def test_the_queue_slows_the_decay():
    """Eq. 5 takes the delay as constant; as the queue moves too, it decays slower than that."""
    _, held = pushed(2.0, 6.0)
    _, free = pushed(2.0, 6.0, held=False)
    assert np.abs(held[-1]) < 1e-9 < np.abs(free[-1]) < 1e-5


def test_flows_of_different_delays_come_to_rest():
    system = System(300.0, (0.05, 0.1, 0.2), 0.01, 2.0)
    rest = system.rest()
    assert rest.rates.sum() == pytest.approx(300.0)
    assert np.all(np.diff(rest.rates) < 0)
    moved = integrate(system, 8.0, rest.rates * [1.3, 1.0, 0.8], rest.queue * 0.5)
    assert moved.rates[-1] == pytest.approx(rest.rates, rel=1e-2)
    assert moved.error < 1e-5


def test_equal_delays_in_one_group_or_two():
    """The general path agrees with that of flows which all look back to one time."""
    start, queue = [110.0, 95.0], 8.0
    one = integrate(System(200.0, (0.1, 0.1), 0.01, 3.0), 2.0, start, queue)
    two = integrate(System(200.0, (0.1, 0.1 + 1e-12), 0.01, 3.0), 2.0, start, queue, step=0.1 / 16)
    assert one.rates == pytest.approx(two.rates, rel=1e-6)


def test_rest_is_the_equilibrium():
    for ratio in (1.0, 25.0):
        rest = System(500.0, (0.05,) * 5, 0.01, 2.0, ratio).rest()
        known = aiad.equilibrium(5, 500.0, 0.05, 0.01, ratio)
        assert rest.rates == pytest.approx(np.full(5, 100.0))
        assert rest.queue == pytest.approx(500 * known.queue_delay)


def test_it_does_not_leave_its_rest():
    system = System(500.0, (0.05,) * 5, 0.01, 2.0, 25.0)
    rest = system.rest()
    moved = integrate(system, 3.0, rest.rates, rest.queue)
    assert moved.rates == pytest.approx(np.broadcast_to(rest.rates, moved.rates.shape), rel=1e-6)


def test_halving_the_step_gains_four_orders():
    system = System(100.0, (0.1,), 0.01, 6.0, held=True)
    rest = system.rest()
    # Steps that divide the delay: the kink at 0 comes back at its multiples, between two steps.
    tau = 0.1 + rest.queue / 100.0
    errors = [
        integrate(system, 6 * tau * (1 - 1e-12), rest.rates * 1.2, rest.queue, step=tau / n).error
        for n in (8, 16, 32)
    ]
    assert 12 < errors[0] / errors[1] < 20
    assert 12 < errors[1] / errors[2] < 20


def test_kappa_overloads_a_link_without_room():
    """With a queue far below 24Cd there is no equilibrium at C: κ flows send more than the link."""
    small = System(100.0, (0.1,), 0.01, 2.0, ratio=25.0, buffer=20.0)
    assert small.rest().queue > small.buffer
    moved = integrate(small, 3.0, 100.0, 0.0, step=0.0015)
    assert moved.queue[-1] == 20.0
    assert moved.rates[-1, 0] > 3 * small.capacity
    fair = System(100.0, (0.1,), 0.01, 2.0, buffer=20.0)
    moved = integrate(fair, 10.0, 100.0, 0.0)
    assert moved.rates[-1, 0] == pytest.approx(100.0, rel=1e-2)


def test_motion_is_the_flows_together():
    course = motion(2, 200.0, 0.1, 0.01, 2.0, duration=5.0, kick=1.1)
    assert course.total[0] == pytest.approx(220.0)
    assert course.total[-1] == pytest.approx(200.0, rel=1e-2)
    assert course.error < 1e-6


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: aiad.phi(2, 1, 1), "rate"),
        (lambda: aiad.kappa(2, 1, 1), "received"),
        (lambda: aiad.equilibrium(0, 1, 1, 0.1), "flows"),
        (lambda: aiad.gains(1, 1, 1.5, 0.1, 0), "eta"),
        (lambda: aiad.gains(1, 1, 0.5, 0.1, 0, moving="none"), "moving"),
        (lambda: aiad.lemma1(np.nan, 0), "b"),
        (lambda: aiad.rightmost_root(0, np.inf), "c"),
        (lambda: System(1.0, (), 0.1, 1.0), "delays"),
        (lambda: System(1.0, (0.0,), 0.1, 1.0), "delays"),
        (lambda: System(1.0, (0.1,), 0.0, 1.0), "p0"),
        (lambda: System(1000.0, (1.0,), 0.5, 1.0, ratio=1e-3).rest(), "ratio"),
        (lambda: integrate(System(1.0, (0.1,), 0.1, 1.0), 1.0, 1.0, 0.0, step=0.2), "step"),
        (lambda: integrate(System(1.0, (1e-6,), 0.1, 1.0), 100.0, 1.0, 0.0), "duration"),
        (lambda: integrate(System(1.0, (0.1,), 0.1, 1.0, buffer=1.0), 1.0, 1.0, 2.0), "queue"),
    ],
)
def test_arguments_outside_their_domain(call, name):
    with pytest.raises(ArgumentError, match=f"^{name}: "):
        call()
