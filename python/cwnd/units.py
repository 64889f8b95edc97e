"""Rates, times and sizes: parsed as ``tc`` does, and formatted for people."""

from __future__ import annotations

import math
import re
from typing import Literal, TypeAlias

Quantity: TypeAlias = str | float
"""A number in SI base units, or text with a unit such as ``15mbit`` or ``100ms``."""

Kind: TypeAlias = Literal["rate", "time", "size", "limit", "threshold"]
"""Kind of a quantity; limits and thresholds are those of queues."""

_EXAMPLES: dict[Kind, str] = {
    "rate": "15mbit",
    "time": "100ms",
    "size": "10GB",
    "limit": "20p",
    "threshold": "5p",
}

_RATES = {
    f"{prefix}bit": factor
    for prefix, factor in {
        "": 1.0,
        "k": 1e3,
        "m": 1e6,
        "g": 1e9,
        "t": 1e12,
        "ki": 2.0**10,
        "mi": 2.0**20,
        "gi": 2.0**30,
        "ti": 2.0**40,
    }.items()
}
_TIMES = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
    "min": 60.0,
    "h": 3600.0,
}
_PREFIXES = "kmgtp"
_SIZES = {"b": 1.0}
_SIZES |= {f"{prefix}b": 10.0 ** (3 * n) for n, prefix in enumerate(_PREFIXES, 1)}
_SIZES |= {f"{prefix}ib": 2.0 ** (10 * n) for n, prefix in enumerate(_PREFIXES, 1)}
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-zµ]*)\s*", re.IGNORECASE)


def parse_rate(value: Quantity) -> float:
    """Parse a rate.

    Parameters
    ----------
    value
        Bits per second, or text with a unit of ``tc``: ``15mbit``, ``1.5gbit``.

    Returns
    -------
    float
        Bits per second, above zero.

    Raises
    ------
    ValueError
        Not a rate, or text without a unit; also for ``mbps``, which is ambiguous: tc reads
        megabytes per second, most others megabits per second.

    Examples
    --------
    >>> parse_rate("15mbit")
    15000000.0
    """
    return _parse(value, "rate", _RATES)


def parse_time(value: Quantity, *, zero: bool = False) -> float:
    """Parse a time.

    Parameters
    ----------
    value
        Seconds, or text with a unit: ``100ms``, ``2min``.
    zero
        Whether 0 is allowed; it needs no unit.

    Returns
    -------
    float
        Seconds: positive, or zero if allowed.

    Raises
    ------
    ValueError
        Not a time, or text without a unit.

    Examples
    --------
    >>> parse_time("100ms")
    0.1
    """
    return _parse(value, "time", _TIMES, zero=zero)


def scenario_time(value: Quantity) -> float:
    """Parse a time of a scenario file as seconds, which a number without unit is too; 0 is allowed.

    Examples
    --------
    >>> scenario_time("0.5"), scenario_time("20ms"), scenario_time(0)
    (0.5, 0.02, 0.0)
    """
    try:
        return parse_time(float(value), zero=True)
    except ValueError:
        return parse_time(value, zero=True)


def parse_size(value: Quantity) -> int:
    """Parse a number of bytes.

    Parameters
    ----------
    value
        Bytes, or text with a unit: ``10GB`` is 10**10, ``1.5GiB`` is 1.5 * 2**30.

    Returns
    -------
    int
        Bytes, at least 1.

    Raises
    ------
    ValueError
        Not a size, or text without a unit.

    Examples
    --------
    >>> parse_size("10GB"), parse_size("1.5GiB"), parse_size(4096)
    (10000000000, 1610612736, 4096)
    >>> parse_size("10G")
    Traceback (most recent call last):
    ValueError: '10G' is ambiguous: write 10GB (powers of 1000) or 10GiB (powers of 1024)
    """
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is not None and match[2].lower() in set(_PREFIXES):
        number, prefix = match[1], match[2].upper()
        raise ValueError(
            f"{value!r} is ambiguous: write {number}{prefix}B (powers of 1000) or "
            f"{number}{prefix}iB (powers of 1024)"
        )
    size = _parse(value, "size", _SIZES)
    if size < 1:
        raise ValueError(f"{value!r} is less than a byte")
    return round(size)


def check_unit(kind: Kind, value: object) -> None:
    """Raise a ValueError for a number, or for text or a range ``A..B`` of text, without a unit.

    0 needs none. This is the rule of the command line and of arguments in Python; files and the
    keys of a `Scenario` may have bare numbers.

    Examples
    --------
    >>> check_unit("time", "0..100ms")
    >>> check_unit("rate", "15")
    Traceback (most recent call last):
    ValueError: a rate needs a unit, such as 15mbit
    >>> check_unit("time", 40)
    Traceback (most recent call last):
    ValueError: a time needs a unit: write text such as "100ms", not 40
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and value != 0:
        example = _EXAMPLES[kind]
        raise ValueError(f'a {kind} needs a unit: write text such as "{example}", not {value}')
    for end in value.split("..") if isinstance(value, str) else ():
        match = _NUMBER.fullmatch(end)
        if match is not None and not match[2] and float(match[1]):
            raise ValueError(f"a {kind} needs a unit, such as {_EXAMPLES[kind]}")


def _parse(value: Quantity, kind: Kind, units: dict[str, float], *, zero: bool = False) -> float:
    """Parse a positive number with one of ``units``; ``zero`` allows 0 without a unit."""
    expected = f"a {kind} such as {_EXAMPLES[kind]}"
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        if match is None:
            raise ValueError(f"{value!r} is not {expected}")
        check_unit(kind, value)
        unit = match[2].lower()
        if unit.endswith("bps"):
            bits = f"{match[1]}{unit[:-3]}bit"
            raise ValueError(
                f"{value!r} is ambiguous, tc reads {unit} as bytes per second: write {bits}"
            )
        if unit and unit not in units:
            known = ", ".join(units)
            raise ValueError(f"{value!r} is not {expected}; the units are {known}")
        number = float(match[1]) * units.get(unit, 1.0)
    else:
        number = float(value)
    if not (math.isfinite(number) and (number > 0 or (zero and number == 0))):
        least = "at least 0" if zero else "above 0"
        raise ValueError(f"{value!r} is not {expected}: it must be {least} and finite")
    return number


def format_rate(bps: float, digits: int = 4) -> str:
    """Format a rate for people.

    Parameters
    ----------
    bps
        Bits per second.
    digits
        Significant digits.

    Examples
    --------
    >>> format_rate(1.5e7), format_rate(980.0), format_rate(float("inf"))
    ('15 Mbit/s', '980 bit/s', 'infinite')
    """
    if math.isinf(bps):
        return "infinite"
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(bps) >= (1 - 0.5 * 10**-digits) * factor:
            return f"{bps / factor:.{digits}g} {prefix}bit/s"
    return f"{bps:.{digits}g} bit/s"


def format_size(count: float) -> str:
    """Format a number of bytes for people, in powers of 1000.

    Parameters
    ----------
    count
        Number of bytes.

    Examples
    --------
    >>> format_size(999), format_size(1_234_567), format_size(2 * 10**13)
    ('999 B', '1.235 MB', '20 TB')
    """
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= 0.99995 * factor:
            return f"{count / factor:.4g} {prefix}B"
    return f"{count:.0f} B"


def format_time(seconds: float, digits: int = 4) -> str:
    """Format a time for people.

    Parameters
    ----------
    seconds
        Seconds.
    digits
        Significant digits.

    Examples
    --------
    >>> format_time(0.1), format_time(120.0), format_time(0.0), format_time(0.000118, 2)
    ('100 ms', '120 s', '0 s', '120 µs')
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= (1 - 0.5 * 10**-digits) * factor:
            return f"{_significant(seconds / factor, digits)} {unit}"
    return f"{_significant(seconds * 1e9, digits)} ns" if seconds else "0 s"


def counted(number: int, word: str) -> str:
    """Format a number of things.

    Examples
    --------
    >>> counted(1, "run"), counted(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _significant(value: float, digits: int) -> str:
    """Format a number with some significant digits, without an exponent if it is large."""
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text else text


def tc_rate(bps: float) -> str:
    """Format a rate as ``tc`` does.

    Parameters
    ----------
    bps
        Bits per second.

    Examples
    --------
    >>> tc_rate(1.5e7), tc_rate(1234.5)
    ('15mbit', '1234.5bit')
    """
    return _exact(bps, ((1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit")), "bit")


def tc_time(seconds: float) -> str:
    """Format a time as ``tc`` does.

    Parameters
    ----------
    seconds
        Seconds.

    Examples
    --------
    >>> tc_time(120.0), tc_time(0.1)
    ('120s', '100ms')
    """
    return _exact(seconds * 1e9, ((1e9, "s"), (1e6, "ms"), (1e3, "us")), "ns")


def _exact(number: float, units: tuple[tuple[float, str], ...], base: str) -> str:
    """Format a number in the largest unit in which it is an integer."""
    for factor, unit in units:
        if number >= factor and (number / factor).is_integer():
            return f"{number / factor:.0f}{unit}"
    return f"{number:.12g}{base}"
