"""Rates, times and sizes: parsed as ``tc`` does, and formatted for people."""

from __future__ import annotations

from typing import Literal, SupportsFloat, TypeAlias

Quantity: TypeAlias = str | float
"""A number in SI base units, or text with a unit such as ``15mbit`` or ``100ms``."""

Kind: TypeAlias = Literal["rate", "time", "size", "limit", "threshold"]
"""Kind of a quantity; limits and thresholds are those of queues."""

_EXAMPLES: dict[Kind, str] = {
    "rate": "15mbit",
    "time": "100ms",
    "size": "1460b",
    "limit": "20p",
    "threshold": "5p",
}


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
    return _parse("rate", value)


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
    return _parse("time", value, zero=zero)


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
    size = _parse("size", value)
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
    # NumPy's numbers and arrays of one number too.
    if isinstance(value, SupportsFloat) and float(value) != 0:
        example = _EXAMPLES[kind]
        raise ValueError(f'a {kind} needs a unit: write text such as "{example}", not {value}')
    for end in value.split("..") if isinstance(value, str) else ():
        try:
            bare = float(end) != 0
        except ValueError:
            continue
        if bare:
            raise ValueError(f"a {kind} needs a unit, such as {_EXAMPLES[kind]}")


def _parse(kind: Literal["rate", "time", "size"], value: Quantity, *, zero: bool = False) -> float:
    """Parse a positive quantity; ``zero`` allows 0 without a unit."""
    # The manual pages are written before the native module is compiled.
    from cwnd import _native

    return _native.parse_quantity(kind, value, zero=zero)


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
    from cwnd import _native

    return _native.format_rate(bps, digits)


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
    from cwnd import _native

    return _native.format_time(seconds, digits)


def counted(number: int, word: str) -> str:
    """Format a number of things.

    Examples
    --------
    >>> counted(1, "run"), counted(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


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
