"""Assertions of scenario files: the table ``[expect]`` and the command ``cwnd run --check``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd import _native
from cwnd._runs.measures import Measure, Metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd._base.records import JsonObject
    from cwnd._runs.measures import Places
    from cwnd._runs.result import Result

Operator: TypeAlias = Literal[">=", "<=", ">", "<"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """A bound on a metric."""

    metric: Metric
    bound: str
    """As in the file, such as ``>= 4mbit``."""
    operator: Operator
    limit: float
    """In bits per second, seconds, or without unit."""

    @staticmethod
    def of(name: str, measure: str, bound: str, relation: Operator, limit: float) -> Expectation:
        """Return the expectation that Rust has read."""
        return Expectation(Metric(name, Measure(measure)), bound, relation, limit)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An expectation with the measured value."""

    expectation: Expectation
    value: float
    """In bits per second, seconds, or without unit; NaN if the run does not determine it."""
    holds: bool
    """False for NaN."""
    text: str
    """One line: the verdict, the expectation and the measured value."""

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
    source: tuple[str, str] | None = None,
    duration_s: float = math.inf,
) -> list[Expectation]:
    """Read the table ``[expect]`` of a scenario, in the order of the names.

    A ScenarioError names the file of ``source``, its path and its text, the line and the key; no
    part of the run may exceed ``duration_s``.

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
    found = _native.read_expectations(dict(table), *places, duration_s, source)
    return [Expectation.of(*each) for each in found]


def check(result: Result, table: Mapping[str, object]) -> list[Outcome]:
    """Compare the metrics of a run with a table of bounds."""
    found = _native.check_expectations(result, dict(table))
    return [
        Outcome(Expectation.of(*each), value, holds, text) for each, value, holds, text in found
    ]
