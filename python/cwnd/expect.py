"""Assertions of scenario files: the table ``[expect]`` and the command ``cwnd run --check``."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from cwnd._native import ScenarioError
from cwnd.application import group_name
from cwnd.measures import MEASURES, Dimension
from cwnd.toml import tomllib
from cwnd.units import format_rate, format_time, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from cwnd.measures import Measure
    from cwnd.records import JsonObject, RunRecord
    from cwnd.result import Result
    from cwnd.scenario import Scenario

Operator: TypeAlias = Literal[">=", "<=", ">", "<"]

_OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_BOUND = re.compile(r"\s*(>=|<=|>|<)\s*(.*\S)\s*")
_NUMBERED = re.compile(r"(.+)-[1-9][0-9]*")
_PERCENT = re.compile(r"([0-9.eE+-]+)\s*%")


class Places(NamedTuple):
    """Names of the groups of flows and of the links of a scenario or a run."""

    groups: frozenset[str]
    links: frozenset[str]


@dataclass(frozen=True, slots=True)
class Expectation:
    """A bound on a metric.

    Attributes
    ----------
    name
        As in the file, such as ``goodput.reno``.
    bound
        As in the file, such as ``>= 4mbit``.
    measure
        The metric.
    statistic
        The statistic of the metric; empty for its default one.
    place
        A group of flows, a flow or a link; empty for the whole run.
    operator
        The relation of the metric to the limit.
    limit
        In bits per second, seconds, or without unit.
    """

    name: str
    bound: str
    measure: Measure
    statistic: str
    place: str
    operator: Operator
    limit: float

    def check(self, result: Result) -> Outcome:
        """Measure the metric in a run, and compare it with the limit."""
        value = self.measure.value(result, self.statistic, self.place)
        # A comparison with NaN is false: an unknown value does not hold.
        return Outcome(self, value, bool(_OPERATORS[self.operator](value, self.limit)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """An expectation with the measured value.

    Attributes
    ----------
    expectation
        The expectation.
    value
        The metric in bits per second, seconds, or without unit; NaN if the run does not determine
        it.
    holds
        Whether the value is within the bound; false for NaN.
    """

    expectation: Expectation
    value: float
    holds: bool

    @property
    def text(self) -> str:
        """One line: the verdict, the expectation and the measured value."""
        verdict = "holds" if self.holds else "fails"
        shown = format_value(self.expectation.measure.dimension, self.value)
        return f"{verdict}  {self.expectation.name} {self.expectation.bound}: {shown}"

    def to_json(self) -> JsonObject:
        """Return the outcome as plain data; see docs/json.md."""
        return {
            "metric": self.expectation.name,
            "bound": self.expectation.bound,
            "operator": self.expectation.operator,
            "limit": self.expectation.limit,
            "value": self.value if math.isfinite(self.value) else None,
            "holds": self.holds,
        }


def format_value(dimension: Dimension, value: float) -> str:
    """Format a value of a metric for people.

    Examples
    --------
    >>> format_value("rate", 4.2e6), format_value("fraction", 0.9), format_value("time", math.nan)
    ('4.2 Mbit/s', '0.9', 'unknown')
    """
    if math.isnan(value):
        return "unknown"
    if dimension == "rate":
        return format_rate(value)
    if dimension == "time":
        return format_time(value)
    return f"{value:.4g}" if dimension != "count" else f"{value:.0f}"


def read_expectations(
    table: Mapping[str, object], places: Places, file: Path | None = None
) -> list[Expectation]:
    """Read the table ``[expect]`` of a scenario.

    Parameters
    ----------
    table
        The table: bounds by metric, nested as in the file.
    places
        The groups of flows and the links that names may refer to.
    file
        The scenario file, for error messages.

    Returns
    -------
    list of Expectation
        In the order of the names.

    Raises
    ------
    ScenarioError
        A metric, group, link, unit or operator is wrong. The message names the file, the line and
        the key.

    Examples
    --------
    >>> places = Places(frozenset({"reno"}), frozenset())
    >>> [found] = read_expectations({"goodput": {"reno": ">= 4mbit"}}, places)
    >>> found.name, found.limit
    ('goodput.reno', 4000000.0)
    >>> read_expectations({"goodput": ">= 4"}, places)
    Traceback (most recent call last):
    cwnd._native.ScenarioError: expect.goodput: a rate needs a unit, such as 15mbit
    """
    found = []
    for keys, bound in _bounds(table):
        try:
            found.append(_read(".".join(keys), bound, places))
        except ValueError as problem:
            at = "" if file is None else _position(file, ("expect", *keys), bound)
            raise ScenarioError(f"{at}{'.'.join(('expect', *keys))}: {problem}") from None
    if not found:
        at = "" if file is None else f"{file}: "
        raise ScenarioError(f"{at}expect: no expectations: [expect] has bounds of metrics")
    return found


def places_of_scenario(scenario: Scenario, links: Sequence[str]) -> Places:
    """Return the groups and links of a valid scenario before its run.

    Parameters
    ----------
    scenario
        The scenario.
    links
        Names of its links, from ``Scenario.validate()``.
    """
    document = scenario.to_dict()
    groups = set()
    for table in ("flow", "cbr", "pareto"):
        for group in document.get(table, []):
            count = group.get("count", 1)
            if count > 0:
                groups.add(group_name(group, table))
    return Places(frozenset(groups), frozenset(links))


def places_of_run(record: RunRecord) -> Places:
    """Return the groups and links of a run.

    Parameters
    ----------
    record
        The record of the run.
    """
    names = {flow["name"] for flow in record["flows"]}
    groups = names | {match[1] for name in names if (match := _NUMBERED.fullmatch(name))}
    return Places(frozenset(groups), frozenset(link["name"] for link in record["links"]))


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


def _read(name: str, bound: str, places: Places) -> Expectation:
    """Read one bound."""
    metric, *rest = name.split(".")
    measure = MEASURES.get(metric)
    if measure is None:
        raise ValueError(f'unknown metric "{metric}"; allowed: {", ".join(MEASURES)}')
    statistic = rest.pop(0) if rest and rest[0] in measure.statistics else ""
    place = rest.pop(0) if rest else ""
    if rest:
        raise ValueError(
            "a name is METRIC, METRIC.STATISTIC, METRIC.PLACE or METRIC.STATISTIC.PLACE"
        )
    if place:
        _check_place(measure, place, places, statistics=not statistic)
    match = _BOUND.fullmatch(bound)
    if match is None:
        raise ValueError(f'"{bound}" is not a bound: an operator (>=, <=, > or <) and a value')
    relation: Operator = match[1]  # type: ignore[assignment]
    return Expectation(
        name, bound, measure, statistic, place, relation, _limit(measure.dimension, match[2])
    )


def _check_place(measure: Measure, place: str, places: Places, *, statistics: bool) -> None:
    """Raise an error for a name that the metric cannot have at its end."""
    groups = sorted(places.groups) if measure.of_flows else []
    links = sorted(places.links) if measure.of_link else []
    base = match[1] if (match := _NUMBERED.fullmatch(place)) else place
    if place in links or place in groups or base in groups:
        return
    allowed = []
    if statistics and measure.statistics:
        allowed.append(f"statistics: {', '.join(measure.statistics)}")
    if groups:
        allowed.append(f"groups of flows: {_few(groups)}")
    if links:
        allowed.append(f"links: {_few(links)}")
    shown = "; ".join(allowed) or "nothing: it is a metric of the run"
    raise ValueError(f'"{place}" is not allowed after {measure.name}; allowed: {shown}')


def _few(names: list[str], most: int = 12) -> str:
    """Join names, at most ``most``."""
    more = f" and {len(names) - most} others" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _limit(dimension: Dimension, text: str) -> float:
    """Read the value of a bound."""
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
