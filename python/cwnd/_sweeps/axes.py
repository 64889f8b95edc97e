"""Axes of a sweep: lists of values, ranges with steps, and ranges to sample."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cwnd.errors import PlanError
from cwnd.units import parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

MAX_VALUES = 100_000
"""Largest number of values of a range with ``step`` or ``count``; a plan keeps all in memory."""

LATIN_POINT = "latin_point"
"""Column of ``runs`` with the number of the point of a Latin hypercube."""

_RANGE = ("from", "to", "step", "count", "log")
QUANTITY = re.compile(r"\s*([+-]?[0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-zµ%]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Range:
    """Values between two ends, both included."""

    low: float
    """``low`` and ``high`` are in ``unit``."""
    high: float
    unit: str
    """The unit of all values; that of the lower end."""
    log: bool
    """Whether the values are spaced evenly on a logarithmic scale."""
    whole: bool
    """Whether the values are integers."""

    def at(self, fraction: float) -> str | int | float:
        """Return the value at a fraction of the range; integers get equal parts of the range."""
        if self.whole and not self.log:
            drawn = math.floor(self.low + fraction * (self.high - self.low + 1))
            return min(drawn, int(self.high))
        return self.value(self._place(fraction), 6)

    def spaced(self, count: int) -> list[str | int | float]:
        """Return ``count`` evenly or logarithmically spaced values, both ends included."""
        digits = 6 if self.log else 12
        return [self.value(self._place(i / (count - 1)), digits) for i in range(count)]

    def value(self, number: float, digits: int) -> str | int | float:
        """Format a number as a value of the axis, with ``digits`` significant digits."""
        if self.whole:
            return round(number)
        if not self.unit:
            return float(f"{number:.{digits}g}")
        text = np.format_float_positional(
            number, precision=digits, unique=False, fractional=False, trim="-"
        )
        return f"{text}{self.unit}"

    def _place(self, fraction: float) -> float:
        """Return the unrounded number at a fraction of the range."""
        if self.log:
            return self.low * math.exp(fraction * math.log(self.high / self.low))
        return self.low + fraction * (self.high - self.low)


@dataclass(frozen=True)
class Axis:
    """A key of the base scenario that varies."""

    name: str
    """Its path, as in the plan."""
    values: tuple[Any, ...]
    """The distinct values; empty for a range to sample."""
    sampled: Range | None = None
    """The range from which a Latin hypercube draws the values; None for a list."""
    contents: Mapping[object, Any] = field(default_factory=dict)
    """Values with the contents of files instead of their names, by the columns of the values."""

    @property
    def examples(self) -> tuple[Any, Any]:
        """First and last value; of a range to sample, the first and the middle one."""
        if self.sampled is None:
            return self.values[0], self.values[-1]
        return self.sampled.at(0.0), self.sampled.at(0.5)

    @cached_property
    def kind(self) -> str:
        """The type of the column: ``bool``, ``int64``, ``double`` or ``string``."""
        values = self.values or self.examples
        if all(isinstance(value, bool) for value in values):
            return "bool"
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
            return "string"
        return "int64" if all(isinstance(value, int) for value in values) else "double"

    def column(self, value: object) -> object:
        """Convert a value for the column; tables and lists become JSON text."""
        return value if self.kind != "string" or isinstance(value, str) else json.dumps(value)

    def content(self, value: object) -> object:
        """Return a value as the scenario has it, with the contents of files that it names."""
        return self.contents.get(self.column(value), value)


def read_axis(name: str, given: object) -> Axis:
    """Parse an axis; a PlanError says why it is invalid.

    ``given`` is a list of values, or a table with ``from`` and ``to``, and ``step`` or ``count``,
    and ``log``.

    Examples
    --------
    >>> read_axis("dumbbell.rate", {"from": "1mbit", "to": "1gbit", "count": 4, "log": True}).values
    ('1mbit', '10mbit', '100mbit', '1000mbit')
    >>> read_axis("flow[0].count", {"from": 2, "to": 8, "step": 3}).values
    (2, 5, 8)
    """
    if isinstance(given, list):
        return _read_list(name, given)
    if not isinstance(given, dict):
        raise PlanError(
            "needs a list of values, or a range such as { from = 1, to = 9, count = 5 }"
        )
    if not given.keys() & {*_RANGE}:
        inner = next(iter(given), "key")
        raise PlanError(f'a path must be one key in quotes: "{name}.{inner}" = …')
    for key in given:
        if key not in _RANGE:
            raise PlanError(f"unknown key {key!r}; the keys of a range are {', '.join(_RANGE)}")
    return _read_range(name, given)


def _read_list(name: str, given: Sequence[Any]) -> Axis:
    """Check a list of values."""
    if not given:
        raise PlanError("the list is empty")
    for at, value in enumerate(given):
        if not isinstance(value, str | int | float | list | dict):
            raise PlanError(f"{value} is not a text, number, boolean, list or table")
        if value in given[:at]:
            raise PlanError(f"{json.dumps(value)} is listed twice")
    axis = Axis(name, tuple(given))
    columns = [axis.column(value) for value in given]
    if len(set(columns)) < len(columns):
        raise PlanError("a text and another value are written alike in the data set")
    return axis


def _read_range(name: str, given: Mapping[str, Any]) -> Axis:
    """Parse a range."""
    for key in ("from", "to"):
        if key not in given:
            raise PlanError(f"a range needs {key!r}")
    log = given.get("log", False)
    if not isinstance(log, bool):
        raise PlanError("'log' must be true or false")
    if "step" in given and ("count" in given or log):
        raise PlanError("'step' excludes 'count' and 'log'")
    low, unit = _quantity("from", given["from"])
    high = _in_unit("to", given["to"], unit)
    if not low < high:
        raise PlanError(f"'from' must be below 'to': {given['from']} is not below {given['to']}")
    if log and low <= 0:
        raise PlanError("a logarithmic range must begin above 0")
    if not math.isfinite(high / low if log else high - low):
        raise PlanError(f"{given['from']} and {given['to']} are too far apart")
    ends = [given[key] for key in ("from", "to", "step") if key in given]
    span = Range(low, high, unit, log, all(isinstance(end, int) for end in ends))
    if "step" in given:
        return Axis(name, _stepped(span, _in_unit("step", given["step"], unit)))
    if "count" in given:
        return Axis(name, _spaced(span, given["count"]))
    return Axis(name, (), span)


def _stepped(span: Range, step: float) -> tuple[str | int | float, ...]:
    """Return the values of a range with a step."""
    if step <= 0:
        raise PlanError("'step' must be above 0")
    steps = (span.high - span.low) / step + 1e-9
    _check_count(steps + 1)
    return tuple(span.value(span.low + i * step, 12) for i in range(math.floor(steps) + 1))


def _spaced(span: Range, count: object) -> tuple[str | int | float, ...]:
    """Return ``count`` evenly or logarithmically spaced values of a range."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 2:
        raise PlanError("'count' must be a whole number of at least 2")
    _check_count(count)
    values = span.spaced(count)
    if len(set(values)) < count:
        raise PlanError(
            f"{count} different whole numbers do not fit: "
            f"write {span.low:.1f} and {span.high:.1f} for fractions"
            if span.whole
            else f"{count} values are too many to be distinct"
        )
    return tuple(values)


def _check_count(count: float) -> None:
    """Raise an error for an axis with too many values."""
    if count > MAX_VALUES:
        raise PlanError(f"{count:,.0f} values are too many: an axis has at most {MAX_VALUES:,}")


def _quantity(key: str, value: object) -> tuple[float, str]:
    """Split a value into its number and its unit."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value), ""
    match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or not match[2]:
        raise PlanError(f'{key!r} must be a number, optionally with a unit, such as "10mbit"')
    number = float(match[1])
    if not math.isfinite(number):
        raise PlanError(f"{key!r} is too large: {value}")
    return number, match[2]


def _in_unit(key: str, value: object, unit: str) -> float:
    """Parse a value and convert it to a unit."""
    number, own = _quantity(key, value)
    if own == unit:
        return number
    for parse in (parse_rate, parse_time):
        try:
            factor = parse(f"1{own}") / parse(f"1{unit}") if own and unit else math.nan
        except ValueError:
            continue
        if math.isfinite(factor):
            return float(f"{number * factor:.12g}")
    raise PlanError(
        f"'from' and {key!r} need units of one kind: {unit or 'none'} and {own or 'none'}"
    )


def find_points(axes: Sequence[Axis], latin: int, rows: pa.Table) -> npt.NDArray[np.int64]:
    """Find the points of rows of ``runs`` by the values of the axes; -1 if an axis lacks the value.

    ``latin`` is the number of points of the Latin hypercube; ``rows`` includes `LATIN_POINT`.
    """
    numbers = np.zeros(rows.num_rows, np.int64)
    known = np.ones(rows.num_rows, dtype=bool)
    for axis in axes:
        if axis.sampled is None:
            kind = rows.schema.field(axis.name).type
            values = pa.array([axis.column(value) for value in axis.values], kind)
            at = pc.fill_null(pc.index_in(rows[axis.name], value_set=values), -1).to_numpy()
            numbers = numbers * len(values) + at
            known &= at >= 0
    if any(axis.sampled is not None for axis in axes):
        numbers = numbers * latin + rows[LATIN_POINT].to_numpy()
    return np.where(known, numbers, -1)


def latin_points(count: int, ranges: int, seed: int) -> npt.NDArray[np.float64]:
    """Draw a Latin hypercube: one row of fractions of the ranges for each point.

    Each of ``count`` equal parts of a range has one point.

    Examples
    --------
    >>> latin_points(3, 2, seed=1).round(3).tolist()
    [[0.1, 0.942], [0.452, 0.56], [0.968, 0.062]]
    """
    # SciPy's generator gives the same points, but scipy.stats takes 0.7 s to import.
    (random,) = np.random.default_rng(seed).spawn(1)
    within = random.uniform(size=(count, ranges))
    parts = np.stack([random.permutation(count) for _ in range(ranges)], axis=1)
    return np.asarray((1 + parts - within) / count)
