"""Metrics by name, for ``[expect]``, sweeps and evaluations: docs/scenario.md lists them."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cwnd import _native
from cwnd.metrics.catalog import DIMENSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd._base.records import FlowRecord
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario
    from cwnd.metrics.catalog import Dimension


class Places(NamedTuple):
    """Names of the groups of flows and of the links of a scenario or a run."""

    groups: frozenset[str]
    links: frozenset[str]


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric of the catalogue that can be named."""

    name: str

    @property
    def dimension(self) -> Dimension:
        """The dimension, which the unit of a bound must have."""
        return DIMENSIONS[self.name]

    def shown(self, value: float) -> str:
        """Format a value for people: a fraction of packets or of a rate in percent.

        Examples
        --------
        >>> Measure("loss_rate").shown(0.0684), Measure("jain").shown(0.98)
        ('6.84 %', '0.98')
        """
        if self.dimension == "fraction" and self.name != "jain" and math.isfinite(value):
            return f"{100 * value:.3g} %"
        return _native.format_value(self.dimension, value)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of certain flows or of a link, by its full name."""

    name: str
    """Such as ``goodput.min.reno`` or ``goodput.reno@10s..20s``."""
    measure: Measure

    def value(self, result: Result) -> float:
        """Return the metric in bits per second, seconds, or without unit; NaN if unknown."""
        return values(result, [self.name])[0]


def values(
    result: Result, names: Sequence[str], flows: Iterable[FlowRecord] | None = None
) -> list[float]:
    """Return metrics of a run by their names, which have been read before.

    With ``flows``, the run has these and the unmeasured flows.
    """
    if flows is None:
        return _native.run_metrics(result, names)
    part = copy(result)
    others = [flow for flow in result.record["flows"] if not flow["measured"]]
    part.record = {**result.record, "flows": [*flows, *others]}
    return _native.run_metrics(part, names)


def read_metric(name: str, places: Places) -> Metric:
    """Read a metric's name ``METRIC[.STATISTIC][.PLACE]``, for some metrics with ``@FROM..TO``.

    A ValueError says what is allowed.

    Examples
    --------
    >>> places = Places(frozenset({"reno"}), frozenset())
    >>> read_metric("goodput.reno@10s..20s", places).measure.dimension
    'rate'
    """
    return Metric(name, Measure(_native.read_metric(name, *places)))


def places_of_scenario(scenario: Scenario, links: Iterable[str]) -> Places:
    """Return the groups and links of a valid scenario before its run."""
    groups = _native.scenario_groups(scenario.to_json())
    return Places(frozenset(groups), frozenset(links))
