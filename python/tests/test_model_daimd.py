from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwnd.errors import ArgumentError
from cwnd.model import daimd, daimd_sharing
from cwnd.model.throughput import square_root, udt_response

capacities = st.floats(min_value=1e5, max_value=1e11)
losses = st.floats(min_value=1e-9, max_value=0.1)
stages = st.integers(min_value=0, max_value=5)

FRACTIONS = (0.9, 0.99, 0.999)


@given(capacities)
def test_exponent(capacity):
    e = float(daimd.exponent(capacity))
    assert 10 ** (e - 1) < capacity <= 10**e


def test_exponent_at_powers_of_ten():
    powers = np.arange(1, 16)
    assert daimd.exponent(10.0**powers).tolist() == powers.tolist()


@given(st.floats(min_value=0, max_value=1.2), capacities)
def test_the_two_units_of_the_increase(part, capacity):
    """Eq. 8 in packets/s is Eq. 9 in packets/SYN, over SYN."""
    rate = part * capacity / (8 * 1500)
    per_syn = daimd.increase_per_syn(rate * daimd.SYN, capacity)
    assert daimd.increase_per_second(rate, capacity) == pytest.approx(per_syn / daimd.SYN, rel=1e-9)


def test_the_packet_size_weighs_in():
    assert daimd.increase_per_second(0, 1e9, 1000) == pytest.approx(150)


def test_one_packet_per_syn_from_100_mbit_on():
    """Section V: α₀ ≥ 1 only above 100 Mb/s."""
    assert daimd.stage_increase(0, [1e8, 1.01e8]).tolist() == pytest.approx([0.1, 1])


@given(capacities, stages)
def test_stages_are_where_the_increase_changes(capacity, stage):
    end = daimd.stage_end(stage, capacity)
    spare = capacity / daimd.BITS_PER_SYN - end
    after = daimd.increase_per_syn(end + 1e-3 * spare, capacity)
    assert after == pytest.approx(daimd.stage_increase(stage + 1, capacity))
    if end > 1e-3 * spare:
        before = daimd.increase_per_syn(end - 1e-3 * spare, capacity)
        assert before == pytest.approx(daimd.stage_increase(stage, capacity))


@given(losses, capacities, stages)
def test_equilibrium_solves_its_equation(p, capacity, stage):
    """Eq. 10: (1 - xp)α = βx²p with the stage's own α."""
    x, alpha = daimd.equilibrium(p, capacity, stage), daimd.stage_increase(stage, capacity)
    assert (1 - x * p) * alpha == pytest.approx(x**2 * p / 9, rel=1e-9)


def test_eq_12_is_the_limit_of_eq_10():
    p = np.array([1e-2, 1e-4, 1e-6, 1e-8])
    gap = np.abs(udt_response(p, 1e9) / daimd.equilibrium(p, 1e9) - 1)
    assert np.all(np.diff(gap) < 0)
    assert gap[-1] < 1e-3


@given(losses, capacities, stages)
def test_eq_13_is_eq_12_in_bits_and_its_print_is_tenfold(p, capacity, stage):
    bps = daimd.equilibrium_bps(p, capacity, stage)
    assert bps == pytest.approx(udt_response(p, capacity, stage) * 12000 / daimd.SYN)
    printed = daimd.equilibrium_bps(p, capacity, stage, printed=True)
    assert printed == pytest.approx(10 * bps)


@given(losses, capacities, st.booleans())
def test_the_stable_stage_is_the_first_that_holds_its_rate(p, capacity, printed):
    """What Eq. 14 solves: the smallest k with X_k* ≤ L - 10^(e-k-1)."""
    k = daimd.stable_stage(p, capacity, printed=printed)
    ks = np.arange(30)
    holds = daimd.equilibrium_bps(p, capacity, ks, printed=printed) <= (
        daimd.stage_end(ks, capacity) * daimd.BITS_PER_SYN * (1 + 1e-12)
    )
    if k < 30:
        assert k == int(np.argmax(holds)) or not holds.any()


@pytest.mark.parametrize("capacity", [1e7, 2.5e8, 3.337e8, 1e9, 7e9])
def test_seven_and_a_half_seconds(capacity):
    """Section III: 0 to 90 % in 7.5 s, whatever the link; and again for every digit more."""
    times = daimd.time_to_fraction(FRACTIONS, capacity)
    assert times == pytest.approx([7.5, 15, 22.5])
    rates = daimd.trajectory(2300, capacity) * daimd.BITS_PER_SYN
    stepped = [np.argmax(rates >= f * capacity * (1 - 1e-9)) * daimd.SYN for f in FRACTIONS]
    if capacity == 3.337e8:
        # No whole number of steps leads to the end of its first stage.
        assert np.all(stepped <= times)
        assert np.all(stepped > times - 0.1 * np.array([1, 2, 3]))
    else:
        assert stepped == pytest.approx(times, abs=0.011)


def test_time_to_fraction_rises():
    times = daimd.time_to_fraction(np.linspace(0, 0.9999, 500), 3e8)
    assert times[0] == 0
    assert np.all(np.diff(times) > 0)
    with pytest.raises(ArgumentError, match="never reached"):
        daimd.time_to_fraction(1.0, 1e9)


def test_tcp_takes_minutes_and_hours():
    """Section III prints 28 min and 4 h 43 min; 1500 bytes would give 4 h 38 min."""
    minutes = np.round(daimd.tcp_recovery_time([1e9, 1e10], 0.2) / 60)
    assert minutes.tolist() == [28, 4 * 60 + 43]
    assert round(daimd.tcp_recovery_time(1e10, 0.2, 1500) / 60) == 4 * 60 + 38


@pytest.mark.slow
@given(st.floats(min_value=0.01, max_value=0.9999), capacities)
def test_utility_has_the_marginal_utility_for_its_slope(part, capacity):
    x = part * capacity / daimd.BITS_PER_SYN
    step = x * 1e-4 * (1 - part)
    alphas = daimd.increase_per_syn([x - step, x + step], capacity)
    rise = daimd.utility(x + step, capacity) - daimd.utility(x - step, capacity)
    assert rise > 0
    if alphas[0] == alphas[1]:
        expected = daimd.marginal_utility(x, capacity)
        assert rise / (2 * step) == pytest.approx(expected, rel=1e-4, abs=1e-9 / step)


def test_utility_is_concave():
    x = np.linspace(1, 833, 4000)
    assert np.all(np.diff(daimd.utility(x, 1e9), 2) < 1e-12)
    assert np.all(np.diff(daimd.marginal_utility(x, 1e9)) <= 0)


@given(losses, capacities)
def test_rate_of_change_is_k_times_the_gap(p, capacity):
    """Eq. 5: ẋ = (xα + βx²)(U'(x) - p)."""
    x = 0.3 * capacity / daimd.BITS_PER_SYN
    if x * p <= 1:
        k = x * daimd.increase_per_syn(x, capacity) + x**2 / 9
        expected = k * (daimd.marginal_utility(x, capacity) - p)
        scale = k * (daimd.marginal_utility(x, capacity) + p)
        assert daimd.rate_of_change(x, p, capacity) == pytest.approx(expected, abs=1e-12 * scale)


@given(losses, capacities, stages)
def test_eq_19_is_the_ratio_of_the_two_formulas(p, capacity, stage):
    expected = udt_response(p, capacity, stage) / daimd.SYN / square_root(p, 0.05)
    assert daimd_sharing.friendliness_ratio(0.05, capacity, stage) == pytest.approx(expected)


@given(st.floats(min_value=1e-5, max_value=1), capacities)
def test_eq_20_is_sufficient(rtt, capacity):
    if daimd_sharing.friendly_margin(rtt, capacity) >= 1:
        assert daimd_sharing.friendliness_ratio(rtt, capacity) <= 1 + 1e-9


def test_bounds_of_section_vii():
    """The four cases meet where one ends and the next begins."""
    ratio = daimd_sharing.estimate_error_ratio
    assert ratio([0.0, -0.2, -0.5]) == pytest.approx([1, 1, 1])
    assert ratio(1 - 1e-9) == pytest.approx(ratio(1.0), rel=1e-6)
    assert ratio(5.0) == pytest.approx(10**0.5)
    assert ratio(-0.8) == pytest.approx(4)
    assert ratio(-0.5 - 1e-9) == pytest.approx(1)
    for error in (-0.9, 9.0, 12.0):
        with pytest.raises(ArgumentError, match=r"^error: "):
            ratio(error)


def test_half_of_the_narrow_link():
    """Table 2: what the flow to C got is at least section IV's bound."""
    y = np.array([0.1, 1, 10, 20, 40, 60, 80, 100, 120, 140, 160, 180])
    got = [0.098, 0.979, 9.955, 19.88, 39.46, 57.70, 73.49, 92.42, 98.47, 98.04, 98.65, 99.00]
    assert np.all(np.array(got) * 1e6 >= daimd_sharing.least_rate(y * 1e6, 200e6))
    with pytest.raises(ArgumentError, match="wider_bps"):
        daimd_sharing.least_rate(2e8, 1e8)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: daimd.increase_per_syn(-1, 1e9), "rate"),
        (lambda: daimd.increase_per_second(1, 0), "capacity_bps"),
        (lambda: daimd.stage_end(0.5, 1e9), "stage"),
        (lambda: daimd.equilibrium(0, 1e9), "p"),
        (lambda: daimd.trajectory(-1, 1e9), "intervals"),
        (lambda: daimd.rate_of_change(800, 0.01, 1e9), "p"),
        (lambda: daimd.utility(834, 1e9), "rate"),
    ],
)
def test_arguments_outside_their_domain(call, name):
    with pytest.raises(ArgumentError, match=f"^{name}: "):
        call()
