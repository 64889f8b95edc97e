from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwnd.papers import claims


@pytest.mark.parametrize(
    ("printed", "value", "precision"),
    [
        ("118.9", 118.9, 0.05),
        (".85", 0.85, 0.005),
        ("1065", 1065.0, 0.5),
        ("600", 600.0, 0.5),
        ("≈600", 600.0, 50.0),
        ("≈120", 120.0, 5.0),
        ("≈0.5", 0.5, 0.05),
        ("1e-4", 1e-4, 0.5e-4),
        ("2.5e-3", 2.5e-3, 0.05e-3),
    ],
)
def test_the_last_digit_printed_is_the_precision(printed, value, precision):
    got = claims.read_printed(printed)
    assert got == pytest.approx((value, precision))


def test_a_number_holds_within_its_last_digit_whatever_the_seeds():
    assert claims.number("", "10", [10.4]).verdict == "holds"
    assert claims.number("", "10", [10.6]).verdict == "unclear"
    assert claims.number("", "10", [10.6] * 3).verdict == "differs"


def test_a_number_holds_within_the_spread_of_single_runs():
    # Mean 10, s = 1, t = 4.303 with 3 seeds: single runs within 10 ± 4.303·√(1 + 1/3) = 4.968.
    values = [9.0, 10.0, 11.0]
    assert claims.number("", "14.9", values).verdict == "holds"
    assert claims.number("", "15.1", values).verdict == "differs"
    assert claims.number("", "14.9", values).interval == pytest.approx((5.032, 14.968), abs=1e-3)


def test_figures_that_are_not_known_are_left_out():
    claim = claims.number("", "10", [math.nan, 10.1, 9.9, 10.0])
    assert claim.measured == pytest.approx(10.0)
    assert claims.number("", "10", []).verdict == "unclear"
    assert claims.number("", "10", []).to_json()["measured"] is None


def test_a_bound_is_decided_by_the_interval():
    assert claims.at_least("", 0.9, [0.95, 0.96, 0.97]).verdict == "holds"
    assert claims.at_least("", 0.99, [0.95, 0.96, 0.97]).verdict == "differs"
    assert claims.at_least("", 0.95, [0.95, 0.96, 0.97]).verdict == "unclear"
    assert claims.at_most("", 0.9, [0.95, 0.96, 0.97]).verdict == "differs"
    assert claims.between("", 0.9, 1.0, [0.95, 0.96, 0.97]).verdict == "holds"
    assert claims.alike("", [1.3, 1.31, 1.32]).verdict == "differs"
    assert claims.at_least("", 0.9, [0.95]).verdict == "unclear"


def test_an_ordering_is_paired_by_seed():
    # Each seed moves both figures alike: only the pairs show the difference.
    first, second = [10.0, 20.0, 30.0], [11.0, 21.1, 31.2]
    assert claims.less("", first, second).verdict == "holds"
    assert claims.less("", second, first).verdict == "differs"
    assert claims.less("", first, [*second, 25.0]).verdict == "unclear"
    assert claims.less("", first, first).verdict == "differs"
    assert "Welch" in claims.less("", first, [*second, 25.0]).rule


def test_welch_is_the_textbooks():
    # Checked against scipy.stats.ttest_ind(equal_var=False).confidence_interval().
    from scipy.stats import ttest_ind

    a, b = np.array([3.1, 2.9, 3.4, 3.0]), np.array([1.2, 2.0, 1.6])
    low, high = ttest_ind(a, b, equal_var=False).confidence_interval()
    assert claims.less("", b, a).interval == pytest.approx((low, high))


def test_a_reason_stands_only_where_it_is_needed():
    assert claims.formula("", "0.31", 0.3125, why="because").why == ""
    assert claims.formula("", "0.31", 0.3251, why="because").why == "because"
    assert claims.formula("", "0.31", 0.3251).why == "Not known."
    assert claims.fact("", "no", "if so", holds=False, why="because").why == "because"


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=10), st.floats(-1e6, 1e6))
def test_a_bound_and_its_opposite_never_both_hold(values, bound):
    least = claims.at_least("", bound, values).verdict
    most = claims.at_most("", bound, values).verdict
    assert {least, most} <= {"holds", "differs", "unclear"}
    assert (least, most) != ("differs", "differs")
    if least == "differs":
        assert most == "holds"
