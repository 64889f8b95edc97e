"""Verdicts: of numbers, orders and bounds, and of a paper's main claims."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwnd._papers import grades
from cwnd._papers.headlines import headlines, judge
from cwnd._papers.text import Headline
from cwnd.stats import ANY, UNIT

FINITE = st.floats(-1e6, 1e6)
RATINGS = st.lists(st.sampled_from(grades.RATINGS), min_size=1, max_size=12)


def verdict(printed, low, high, runs=20):
    """Grade runs whose interval is about from ``low`` to ``high``."""
    spread = (high - low) / 2 / (2.093 / math.sqrt(runs)) / math.sqrt(runs / (runs - 1))
    middle = (low + high) / 2
    values = [middle - spread, middle + spread] * (runs // 2)
    grade = grades.number(printed, values, ANY)
    assert grade.interval == pytest.approx((low, high), rel=0.02)
    return grade.verdict


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
    assert grades.read_printed(printed) == pytest.approx((value, precision))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (105.0, "agrees"),
        (105.1, "close"),
        (85.0, "close"),
        (115.1, "differs"),
        (math.nan, "undecided"),
        (math.inf, "differs"),
    ],
)
def test_a_computed_number_is_graded_by_its_deviation(value, expected):
    assert grades.number("100", value).verdict == expected


def test_the_precision_of_the_print_covers_a_printed_zero():
    assert grades.number("0", 0.4).verdict == "agrees"
    assert grades.number("0", 0.6).verdict == "differs"
    assert grades.number("1e-4", 1.4e-4).verdict == "agrees"


def test_a_number_is_undecided_where_its_interval_spans_grades():
    assert verdict("100", 98, 104) == "agrees"
    assert verdict("100", 99, 109) == "agrees"
    assert verdict("100", 103, 113) == "close"
    assert verdict("100", 112, 122) == "differs"
    # From "agrees" to "differs": these are not neighbours.
    assert verdict("100", 104, 116) == "undecided"
    # Wider than a quarter of the printed number.
    assert verdict("100", 107, 133) == "undecided"
    # However wide, every value in it differs.
    assert verdict("100", 120, 180) == "differs"


def test_fewer_than_five_runs_with_a_value_decide_nothing():
    assert grades.number("10", [10.0]).verdict == "undecided"
    assert grades.number("10", []).verdict == "undecided"
    assert grades.at_least(0.9, [0.95]).verdict == "undecided"
    assert grades.less([1.0], [2.0]).verdict == "undecided"
    assert grades.number("10", [math.nan, math.nan, 10.0, 10.1, 9.9]).verdict == "undecided"
    assert grades.at_least(0.9, [math.nan, 0.95, 0.95, 0.95, 0.96]).verdict == "undecided"
    known = grades.number("10", [math.nan, 10.1, 9.9, 10.0, 10.1, 9.9])
    assert known.runs == 5
    assert known.measured == pytest.approx(10.0)


def test_a_bound_is_decided_by_the_whole_interval():
    values = [0.95, 0.96, 0.97, 0.95, 0.96]
    assert grades.at_least(0.9, values, UNIT).verdict == "agrees"
    assert grades.at_least(0.99, values, UNIT).verdict == "differs"
    assert grades.at_least(0.96, values, UNIT).verdict == "undecided"
    assert grades.at_most(0.9, values, UNIT).verdict == "differs"
    assert grades.between(0.9, 1.0, values, UNIT).verdict == "agrees"
    assert grades.alike([1.3, 1.31, 1.32, 1.3, 1.31], [1.0] * 5).verdict == "differs"


def test_an_order_is_paired_by_seed():
    # Each seed moves both alike: only the pairs show the difference.
    first, second = [10.0, 20.0, 30.0, 25.0, 15.0], [11.0, 21.1, 31.2, 26.0, 16.1]
    assert grades.less(first, second).verdict == "agrees"
    assert grades.less(second, first).verdict == "differs"
    assert grades.less(first, [*second, 25.0]).verdict == "undecided"
    assert grades.less(first, first).verdict == "differs"


@given(st.lists(FINITE, min_size=5, max_size=10), FINITE)
def test_a_bound_and_its_opposite_never_both_agree(values, bound):
    least = grades.at_least(bound, values, ANY).verdict
    most = grades.at_most(bound, values, ANY).verdict
    assert (least, most) != ("differs", "differs")
    if least == "differs":
        assert most == "agrees"


@given(RATINGS)
def test_a_main_claim_is_undecided_only_where_it_could_still_agree(verdicts):
    got = judge(verdicts)
    best = judge(["agrees" if v == "undecided" else v for v in verdicts])
    worst = judge(["differs" if v == "undecided" else v for v in verdicts])
    if best == worst:
        assert got == best
    if got == "undecided":
        assert best in {"agrees", "close", "depends"}
        assert worst == "differs"


def test_a_main_claim_rests_on_the_claims_its_patterns_name():
    claims = [("a x", "agrees"), ("a y", "differs"), ("b", "close")]
    exhibit = {"id": "t", "claims": [{"name": n, "verdict": v} for n, v in claims]}
    main = [Headline("A.", ("t/a *",), "It hangs."), Headline("N.", ("u/*",), "Not run.")]
    assert headlines(main, [exhibit]) == [
        {
            "claim": "A.",
            "verdict": "differs",
            "reason": "Of 2 claims: 1 agree, 1 differ.",
            "hangs_on": "It hangs.",
            "rests_on": ["t/a x", "t/a y"],
        }
    ]
