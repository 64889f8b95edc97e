"""Assertions of scenario files: the table ``[expect]`` and the command ``cwnd run --check``."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd._base import toml as tomllib
from cwnd._native import ScenarioError
from cwnd._runs.measures import format_value, read_metric
from cwnd.units import format_time, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cwnd._base.records import JsonObject
    from cwnd._runs.measures import Metric, Places
    from cwnd._runs.result import Result
    from cwnd.metrics.catalog import Dimension

Operator: TypeAlias = Literal[">=", "<=", ">", "<"]

OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_BOUND = re.compile(r"\s*(>=|<=|>|<)(?!=)\s*(.*\S)\s*")
_PERCENT = re.compile(r"([0-9.eE+-]+)\s*%")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A bound on a metric."""

    metric: Metric
    bound: str
    """As in the file, such as ``>= 4mbit``."""
    operator: Operator
    limit: float
    """In bits per second, seconds, or without unit."""

    def check(self, result: Result) -> Outcome:
        """Measure the metric in a run, and compare it with the limit."""
        value = self.metric.value(result)
        # A comparison with NaN is false: an unknown value does not hold.
        return Outcome(self, value, bool(OPERATORS[self.operator](value, self.limit)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """An expectation with the measured value."""

    expectation: Expectation
    value: float
    """In bits per second, seconds, or without unit; NaN if the run does not determine it."""
    holds: bool
    """False for NaN."""

    @property
    def text(self) -> str:
        """One line: the verdict, the expectation and the measured value."""
        verdict = "holds" if self.holds else "fails"
        shown = format_value(self.expectation.metric.measure.dimension, self.value)
        return f"{verdict}  {self.expectation.metric.name} {self.expectation.bound}: {shown}"

    def to_json(self) -> JsonObject:
        """Return the outcome as plain data; see docs/json.md."""
        return {
            "metric": self.expectation.metric.name,
            "bound": self.expectation.bound,
            "operator": self.expectation.operator,
            "limit": self.expectation.limit,
            "value": self.value if math.isfinite(self.value) else None,
            "holds": self.holds,
        }


def read_expectations(
    table: Mapping[str, object],
    places: Places,
    file: Path | None = None,
    duration_s: float = math.inf,
) -> list[Expectation]:
    """Read the table ``[expect]`` of a scenario, in the order of the names.

    A ScenarioError names ``file``, the line and the key; no part of the run may exceed
    ``duration_s``.

    Examples
    --------
    >>> from cwnd._runs.measures import Places
    >>> places = Places(frozenset({"reno"}), frozenset())
    >>> [found] = read_expectations({"goodput": {"reno": ">= 4mbit"}}, places)
    >>> found.metric.name, found.limit
    ('goodput.reno', 4000000.0)
    >>> read_expectations({"goodput": ">= 4"}, places)
    Traceback (most recent call last):
    cwnd._native.ScenarioError: expect.goodput: a rate needs a unit, such as 15mbit
    """
    found = []
    for keys, bound in _bounds(table):
        try:
            found.append(_read(".".join(keys), bound, places, duration_s))
        except ValueError as problem:
            at = "" if file is None else _position(file, ("expect", *keys), bound)
            raise ScenarioError(f"{at}{'.'.join(('expect', *keys))}: {problem}") from None
    if not found:
        at = "" if file is None else f"{file}: "
        raise ScenarioError(f"{at}expect: no expectations: [expect] has bounds of metrics")
    return found


def _bounds(
    table: Mapping[str, object], before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the keys of each bound, and the bound."""
    for key, value in table.items():
        keys = (*before, key)
        if isinstance(value, dict):
            yield from _bounds(value, keys)
        elif isinstance(value, str):
            yield keys, value
        elif isinstance(value, list | tuple):
            yield from ((keys, str(bound)) for bound in value)
        else:
            yield keys, str(value)


def _read(name: str, bound: str, places: Places, duration_s: float) -> Expectation:
    """Read one bound."""
    metric = read_metric(name, places)
    if metric.span is not None and metric.span.end > duration_s:
        times = name.partition("@")[2]
        raise ValueError(f"{times} is not within the run of {format_time(duration_s)}")
    relation, value = read_bound(bound)
    return Expectation(metric, bound, relation, read_limit(metric.measure.dimension, value))


def read_bound(bound: str) -> tuple[Operator, str]:
    """Split a bound into its operator and its value; ValueError if the text is not a bound.

    Examples
    --------
    >>> read_bound(">= 4mbit")
    ('>=', '4mbit')
    """
    match = _BOUND.fullmatch(bound)
    if match is None:
        raise ValueError(f'"{bound}" is not a bound: an operator (>=, <=, > or <) and a value')
    relation: Operator = match[1]  # type: ignore[assignment]
    return relation, match[2]


def read_limit(dimension: Dimension, text: str) -> float:
    """Read the value of a bound in the unit of a metric; ValueError if it is invalid.

    Examples
    --------
    >>> read_limit("fraction", "5%"), read_limit("rate", "4mbit")
    (0.05, 4000000.0)
    """
    if text == "0":
        return 0.0
    if dimension == "rate":
        return parse_rate(text)
    if dimension == "time":
        return parse_time(text, zero=True)
    percent = _PERCENT.fullmatch(text) if dimension == "fraction" else None
    try:
        value = float(percent[1]) / 100 if percent else float(text)
    except ValueError:
        value = math.nan
    if dimension == "fraction" and not 0 <= value <= 1:
        raise ValueError(f"{text!r} is not a fraction such as 0.01 or 1%")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{text!r} is not a number, at least 0 and without a unit")
    return value


def _position(file: Path, keys: tuple[str, ...], bound: str) -> str:
    """Return ``file:line: `` for a key; without the line if the file has another value or none."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    begin = 0
    for end in range(1, len(lines) + 1):
        try:
            value: object = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            # The value begins after the last line before which the file was complete.
            bounds = value if isinstance(value, list) else [value]
            return f"{file}:{begin + 1}: " if bound in bounds else f"{file}: "
        begin = end
    return f"{file}: "
