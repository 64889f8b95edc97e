from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwnd.errors import ArgumentError, read_argument
from cwnd.units import (
    check_unit,
    format_rate,
    format_time,
    parse_rate,
    parse_size,
    parse_time,
    tc_rate,
    tc_time,
)


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("15mbit", 15e6),
        ("1.5Gbit", 1.5e9),
        ("64 kbit", 64e3),
        ("100bit", 100.0),
        ("1kibit", 1024.0),
    ],
)
def test_rates(text, bps):
    assert parse_rate(text) == bps


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("100ms", 0.1), ("10us", 10e-6), ("2min", 120.0), (0.5, 0.5), ("5s", 5.0), ("1e-3s", 1e-3)],
)
def test_times(text, seconds):
    assert parse_time(text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize(
    "text", ["", "mbit", "-5mbit", "0", "nan", "inf", "15 furlong", "1e999bit", "1..2s"]
)
def test_no_rates(text):
    with pytest.raises(ValueError, match="a rate such as 15mbit"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("parse", "text", "told"),
    [
        (parse_rate, "15", "a rate needs a unit, such as 15mbit"),
        (parse_time, " 1e-3 ", "a time needs a unit, such as 100ms"),
        (parse_size, "1000", "a size needs a unit, such as 10GB"),
    ],
)
def test_text_needs_a_unit(parse, text, told):
    with pytest.raises(ValueError, match=f"^{told}$"):
        parse(text)


@pytest.mark.parametrize(("kind", "example"), [("rate", "15mbit"), ("time", "100ms")])
def test_numbers_need_a_unit_in_arguments(kind, example):
    for number in (40, 0.04, float("inf"), float("nan"), np.float64(3)):
        with pytest.raises(ValueError, match=f'^a {kind} needs a unit: .* "{example}", not'):
            check_unit(kind, number)


@pytest.mark.parametrize(
    "number", [40, 0.04, True, np.int64(40), np.float32(0.04), np.array(0.04), Fraction(1, 2)]
)
def test_numbers_of_other_libraries_need_a_unit(number):
    with pytest.raises(ValueError, match=r"^a time needs a unit.*not [0-9T]"):
        check_unit("time", number)
    check_unit("time", number * 0)


@pytest.mark.parametrize("digits", [0, 1, 17, 70_000])
def test_any_number_of_digits(digits):
    assert format_rate(2e7, digits) == "20 Mbit/s"
    assert format_time(0.002, digits) in {"2 ms", "2.0000000000000004 ms"}


@pytest.mark.parametrize("text", ["\ud800ms", "5 \x00", b"5ms"])
def test_what_is_no_text_is_one_line(text):
    with pytest.raises((ValueError, TypeError)):
        parse_time(text)
    with pytest.raises(ArgumentError, match=r"^rtt: "):
        read_argument("rtt", parse_time, text)


def test_zero_needs_none():
    assert parse_time("0", zero=True) == parse_time("0ms", zero=True) == 0.0
    for text in ("0", "0s"):
        with pytest.raises(ValueError, match="above 0"):
            parse_time(text)
    with pytest.raises(ValueError, match="needs a unit"):
        check_unit("time", "0..5")
    check_unit("time", 0)
    check_unit("time", None)


@pytest.mark.parametrize("number", [0, -1, float("nan"), float("inf")])
def test_no_times(number):
    with pytest.raises(ValueError, match="above 0 and finite"):
        parse_time(number)


@pytest.mark.parametrize("text", ["15mbps", "1kbps", "3bps"])
def test_ambiguous_rates_say_what_to_write(text):
    with pytest.raises(ValueError, match=r"ambiguous.*write .*bit"):
        parse_rate(text)


@given(st.integers(min_value=1, max_value=10**13))
def test_rates_read_back(bps):
    assert parse_rate(tc_rate(float(bps))) == pytest.approx(bps, rel=1e-11)


@given(st.integers(min_value=1, max_value=7_200 * 10**9))
def test_times_read_back(nanoseconds):
    seconds = nanoseconds * 1e-9
    assert parse_time(tc_time(seconds)) == pytest.approx(seconds, rel=1e-11)


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_what_people_read_is_short(value):
    assert len(format_rate(value)) < 20
    assert len(format_time(value)) < 20
