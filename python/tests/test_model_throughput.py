from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwnd.errors import ArgumentError
from cwnd.model import throughput as model

losses = st.floats(min_value=1e-7, max_value=1.0)
times = st.floats(min_value=1e-3, max_value=10.0)
acks = st.sampled_from([1, 2])
alphas = st.floats(min_value=0.01, max_value=10.0)
betas = st.floats(min_value=0.01, max_value=0.99)

ARGUMENTS = {
    "square_root": {"rtt": 0.1},
    "pftk": {"rtt": 0.1, "rto": 0.4},
    "gaimd": {"rtt": 0.1, "rto": 0.4, "alpha": 0.31, "beta": 1 / 8},
    "simd_eq8": {"rtt": 0.1, "rto": 0.4, "alpha": 0.1, "beta": 1 / 16},
    "udt_response": {"capacity_bps": 1e9, "stage": 1},
}


def test_every_formula_is_tried_here():
    assert set(ARGUMENTS) <= set(model.FORMULAS)
    for name, formula in model.FORMULAS.items():
        assert formula(0.01, **ARGUMENTS.get(name, {})) > 0


@given(losses, times, acks)
def test_gaimd_at_one_half_is_the_square_root_law_and_pftk(p, rtt, b):
    """GAIMD, section 2.3: what Eq. 2 reduces to, without and with its second term."""
    assert 1 / model.gaimd_td(p, rtt, b) == pytest.approx(model.square_root(p, rtt, b))
    assert model.gaimd(p, rtt, 4 * rtt, b) == pytest.approx(model.pftk(p, rtt, 4 * rtt, b))


@given(losses, times, alphas, betas)
def test_simd_and_gaimd_give_the_same_below_the_cap(p, rtt, alpha, beta):
    free = model.gaimd(p, rtt, 0.4, 1, alpha, beta)
    assert model.simd_eq8(p, rtt, 0.4, alpha, beta) == free
    assert model.simd_eq8(p, rtt, 0.4, alpha, beta, 128) == min(free, 128 / rtt)


def test_gaimd_as_its_paper_writes_it():
    """Eq. 2 with β the fraction kept, 7/8, typed out."""
    p, rtt, t0, b, alpha, beta = 0.02, 0.1, 0.4, 2, 0.31, 7 / 8
    td = rtt * math.sqrt(2 * b * (1 - beta) / (alpha * (1 + beta)) * p)
    q = min(1, 3 * math.sqrt((1 - beta**2) * b / (2 * alpha) * p))
    expected = 1 / (td + t0 * q * p * (1 + 32 * p**2))
    assert model.gaimd(p, rtt, t0, b, alpha, 1 - beta) == pytest.approx(expected, rel=1e-13)


@given(alphas, betas)
def test_timeouts_count_for_little_at_small_loss(alpha, beta):
    """GAIMD, section 2.3: TD is of order p^0.5 and TO of p^1.5."""
    ratios = [
        model.gaimd_to(p, 0.4, 1, alpha, beta) / model.gaimd_td(p, 0.1, 1, alpha, beta)
        for p in (1e-9, 1e-8)
    ]
    assert ratios[1] / ratios[0] == pytest.approx(10, rel=1e-6)


@given(losses, times, alphas, betas, st.floats(min_value=1.01, max_value=2))
def test_what_gaimds_rate_rises_and_falls_with(p, rtt, alpha, beta, factor):
    """GAIMD, section 2.3: it falls with RTT and T₀, and rises with α and the fraction kept."""
    base = {"rtt": rtt, "rto": 0.4, "alpha": alpha, "beta": beta}
    rate = model.gaimd(p, **base)
    for name, slower in (("rtt", factor), ("rto", factor), ("alpha", 1 / factor)):
        assert model.gaimd(p, **{**base, name: base[name] * slower}) < rate
    more = beta + (1 - beta) * (factor - 1) / 2
    assert model.gaimd(p, **{**base, "beta": more}) < rate


@pytest.mark.parametrize("name", list(model.FORMULAS))
def test_rates_fall_as_loss_grows(name):
    p = np.geomspace(1e-8, 1, 400)
    rate = model.FORMULAS[name](p, **ARGUMENTS.get(name, {}))
    assert rate.shape == p.shape
    assert np.all(np.diff(rate) < 0)


@pytest.mark.parametrize("name", list(model.FORMULAS))
def test_the_inverse_comes_back(name):
    arguments = ARGUMENTS.get(name, {})
    p = np.geomspace(1e-8, 1, 25)
    rate = model.FORMULAS[name](p, **arguments)
    back = model.loss_for_rate(rate, name, **arguments)
    assert np.allclose(back, p, rtol=1e-12, atol=0)


@given(losses, times, alphas, betas)
def test_the_inverse_comes_back_whatever_the_law(p, rtt, alpha, beta):
    arguments = {"rtt": rtt, "rto": 4 * rtt, "alpha": alpha, "beta": beta}
    rate = model.gaimd(p, **arguments)
    assert model.loss_for_rate(rate, "gaimd", **arguments) == pytest.approx(p, rel=1e-11)


def test_the_inverse_broadcasts_over_parameters():
    found = model.loss_for_rate([[100.0], [200.0]], model.square_root, rtt=[0.05, 0.1, 0.2])
    assert found.shape == (2, 3)
    assert np.allclose(found, 1.5 / (np.array([[100.0], [200.0]]) * [0.05, 0.1, 0.2]) ** 2)


def test_rates_that_no_loss_gives():
    with pytest.raises(ArgumentError, match="rate: must be below 1280"):
        model.loss_for_rate(1280, "simd_eq8", rtt=0.1, rto=0.4, max_window=128)
    with pytest.raises(ArgumentError, match="rate: must be at least"):
        model.loss_for_rate(1e-3, "reno_response")
    with pytest.raises(ArgumentError, match="rtt: pftk needs it"):
        model.loss_for_rate(1.0, "pftk", rto=1.0)
    with pytest.raises(ArgumentError, match="beta: the formula has no such parameter"):
        model.loss_for_rate(1.0, "reno_response", beta=0.5)
    with pytest.raises(ArgumentError, match="formula: 'cubic' is not one of"):
        model.loss_for_rate(1.0, "cubic")


def test_the_table_of_daimd():
    """Table 6 at p = 10^-4, and UDT's first stages at 1 Gb/s: 300, 95 and 30 packets per SYN."""
    assert model.reno_response(1e-4) == pytest.approx(122)
    assert model.scalable_response(1e-4) == pytest.approx(8000)
    assert model.highspeed_response(1e-4) == pytest.approx(0.12 * 10**3.34)
    assert model.bic_response(1e-4) == pytest.approx(2465)
    assert model.udt_response(1e-4, 1e9, [0, 1, 2]) == pytest.approx([300, 300 / 10**0.5, 30])


def test_reno_is_the_square_root_law_to_the_printed_digits():
    assert model.reno_response(1.0) == pytest.approx(model.square_root(1.0, 1.0), abs=0.005)


def test_highspeed_is_that_of_rfc_3649():
    """RFC 3649, table 3: a window of 83000 at a loss rate of 10^-7."""
    assert model.highspeed_response(1e-7) == pytest.approx(83000, rel=0.02)


def test_numbers_give_numbers_and_arrays_arrays():
    assert type(model.pftk(0.01, 0.1, 0.4)) is float
    assert model.pftk([0.01, 0.02], [[0.1], [0.2]], 0.4).shape == (2, 2)
    assert model.pftk([0.01], 0.1, 0.4).shape == (1,)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"p": 0.0}, "p"),
        ({"p": 1.01}, "p"),
        ({"p": math.nan}, "p"),
        ({"p": [0.1, -0.1]}, "p"),
        ({"p": "often"}, "p"),
        ({"rtt": 0.0}, "rtt"),
        ({"rtt": math.inf}, "rtt"),
        ({"rto": -1.0}, "rto"),
        ({"b": 0}, "b"),
        ({"alpha": 0.0}, "alpha"),
        ({"beta": 1.0}, "beta"),
        ({"beta": 0.0}, "beta"),
    ],
)
def test_arguments_outside_their_domain(arguments, name):
    with pytest.raises(ArgumentError, match=f"^{name}: ") as mistake:
        model.gaimd(**{"p": 0.01, "rtt": 0.1, "rto": 0.4, **arguments})
    assert "\n" not in str(mistake.value)
