"""The catalogue of metrics, which is in Rust: ``crates/cwnd-sim/src/metrics/catalog.rs``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd._native import catalogue
from cwnd.stats import COUNT, POSITIVE, UNIT, Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.stats import Range

Dimension: TypeAlias = Literal["rate", "time", "fraction", "count", "number"]
"""Dimension of a metric: bits per second, seconds, or a number without unit."""

_FACTORS = {"Mbit/s": 1e-6, "ms": 1000, "%": 100}

_SHOWN: dict[Dimension, tuple[str, int]] = {
    "rate": ("Mbit/s", 2),
    "time": ("ms", 1),
    "fraction": ("%", 2),
    "count": ("", 1),
    "number": ("", 3),
}
"""Unit and decimal places of a metric that has no figure of its own, by dimension."""


def range_of_dimension(dimension: Dimension) -> Range:
    """Return the range of the values of a dimension."""
    return {"fraction": UNIT, "count": COUNT}.get(dimension, POSITIVE)


@dataclass(frozen=True)
class Figure:
    """A figure of a metric: a key in JSON, and a column of frames, data sets and tables."""

    name: str
    title: str
    short: str
    """Title in tables of several metrics of a network."""
    unit: str
    digits: int
    """Decimal places shown."""
    meaning: str
    of_run: bool
    """Whether each run has it as one number, which data sets have as a column."""
    range: Range

    @property
    def factor(self) -> float:
        """Conversion factor from the figure to the unit shown."""
        return _FACTORS.get(self.unit, 1)

    @property
    def head(self) -> tuple[str, str, str]:
        """Head of a column: title, unit and meaning."""
        return self.title, self.unit, self.meaning

    @property
    def with_unit(self) -> str:
        """Title, with the unit if there is one."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def text(self, value: float | Estimate | None) -> str:
        """Format a value; a dash if it is unknown."""
        return number(value, self.digits, self.factor)

    def mean(self, value: Estimate) -> str:
        """Format the mean."""
        return self.text(value.mean)

    def interval(self, value: Estimate) -> str:
        """Format the confidence interval; empty without one.

        Examples
        --------
        >>> from cwnd.stats import Estimate
        >>> FIGURES["utilization"].interval(Estimate(0.56, 0.31, 0.78, 5))
        '31.0–78.0'
        """
        return f"{self.text(value.low)}–{self.text(value.high)}" if value.known else ""


def number(value: float | Estimate | None, digits: int, factor: float = 1.0) -> str:
    r"""Format a number times ``factor`` with a fixed number of decimals; a dash if it is unknown.

    The interval of an estimate is a second line, and its mean has a decimal at least. A number that
    rounds to 0 has no sign.

    Examples
    --------
    >>> number(0.0314159, 2, factor=100), number(-0.004, 2), number(-0.006, 2), number(None, 2)
    ('3.14', '0.00', '-0.01', '–')
    >>> number(Estimate(3.5, 2.25, 4.75, 4), 0)
    '3.5\n2.2–4.8'
    """
    if isinstance(value, Estimate):
        digits = max(digits, 1)
        mean = number(value.mean, digits, factor)
        if not value.known:
            return mean
        return f"{mean}\n{number(value.low, digits, factor)}–{number(value.high, digits, factor)}"
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value * factor:.{digits}f}"
    return text if float(text) else text.removeprefix("-")


_CATALOGUE = catalogue()

DIMENSIONS: Mapping[str, Dimension] = {each["name"]: each["dimension"] for each in _CATALOGUE}
"""The dimensions of the metrics by name."""

FIGURES: Mapping[str, Figure] = {
    figure["name"]: Figure(**figure, range=range_of_dimension(metric["dimension"]))
    for metric in _CATALOGUE
    for figure in metric["figures"]
}
"""The figures by name."""


def metric_of(name: str) -> str:
    """Return the metric in a name of ``[expect]``: what precedes a statistic, place and time."""
    return re.split("[.@]", name, maxsplit=1)[0]


def measured(name: str) -> Figure:
    """Return the figure of a metric by its name in ``[expect]``, such as ``fct.p95.web``.

    Examples
    --------
    >>> measured("fct.p95").with_unit, measured("completed").range.high
    ('fct.p95 (ms)', 1.0)
    """
    metric = metric_of(name)
    dimension = DIMENSIONS[metric]
    unit, digits = _SHOWN[dimension]
    if metric == "jain":
        unit, digits = "", 3
    within = range_of_dimension(dimension)
    return Figure(name, name, name, unit, digits, f"Metric {name}.", of_run=False, range=within)


def short(name: str, title: str = "", meaning: str = "") -> Figure:
    """Return a figure with its short title, or other words, for a table of several metrics."""
    figure = FIGURES[name]
    return replace(figure, title=title or figure.short, meaning=meaning or figure.meaning)
