"""Metrics by name, for ``[expect]``, sweeps and evaluations: docs/scenario.md lists them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from cwnd import metrics
from cwnd._runs.flow_groups import group_name
from cwnd._runs.result import (
    link_loss_rate,
    link_mark_rate,
    loss_rate_of,
    mark_rate_of,
    retransmission_rate_of,
)
from cwnd.metrics.catalog import DIMENSIONS
from cwnd.units import format_rate, format_time, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd._base.records import FlowRecord, LinkRecord, RunRecord
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario
    from cwnd.metrics.catalog import Dimension

OfFlows: TypeAlias = "Callable[[Result, list[FlowRecord], str], float]"
"""Returns a metric of some flows; the text is a statistic, or empty for the default one."""

OfLink: TypeAlias = "Callable[[LinkRecord, str], float]"
"""Returns a metric of a link."""

OfSpan: TypeAlias = "Callable[[Result, list[FlowRecord], float, Span], float]"
"""Returns a metric of some flows between two times; the number is the rate in the name, or NaN."""

_NUMBERED = re.compile(r"(.+)-[1-9][0-9]*")


class Span(NamedTuple):
    """A part of a run: its begin and end in seconds."""

    begin: float
    end: float


class Places(NamedTuple):
    """Names of the groups of flows and of the links of a scenario or a run."""

    groups: frozenset[str]
    links: frozenset[str]


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric with a name."""

    name: str
    statistics: tuple[str, ...] = ()
    of_flows: OfFlows | None = None
    """Returns the metric of the run's measured flows, or of a group."""
    of_link: OfLink | None = None
    """Returns the metric of a link; that of the run, without ``of_flows``, is the bottleneck's."""
    of_bottleneck: bool = False
    """Whether the metric of the run is that of the bottleneck although groups have it too."""
    of_run: Callable[[Result], float] | None = None
    """Returns a metric that only the whole run has."""
    of_span: OfSpan | None = None
    """Returns the metric of flows between two times."""
    of_rate: bool = False
    """Whether the name contains a rate."""

    @property
    def dimension(self) -> Dimension:
        """The dimension, which the unit of a bound must have."""
        return DIMENSIONS[self.name]

    def shown(self, value: float) -> str:
        """Format a value for people: a fraction of packets or of a rate in percent.

        Examples
        --------
        >>> MEASURES["loss_rate"].shown(0.0684), MEASURES["jain"].shown(0.98)
        ('6.84 %', '0.98')
        """
        if self.dimension == "fraction" and self.name != "jain" and math.isfinite(value):
            return f"{100 * value:.3g} %"
        return format_value(self.dimension, value)

    def value(self, result: Result, statistic: str, place: str) -> float:
        """Return the metric in a run, by the default statistic if that is empty.

        ``place`` is a group of flows, a flow or a link; empty for the whole run.
        """
        if self.of_run is not None:
            return self.of_run(result)
        link = next((each for each in result.record["links"] if each["name"] == place), None)
        if not place and (self.of_flows is None or self.of_bottleneck):
            link = result.bottleneck
        if self.of_link is not None and link is not None:
            return self.of_link(link, statistic)
        if self.of_flows is None:
            return math.nan
        flows = flows_of(result, place) if place else result.measured_flows
        return self.of_flows(result, flows, statistic) if flows else math.nan


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of certain flows or of a link, by its full name."""

    name: str
    """Such as ``goodput.min.reno`` or ``goodput.reno@10s..20s``."""
    measure: Measure
    statistic: str = ""
    """Empty for the default one."""
    place: str = ""
    """A group of flows, a flow or a link; empty for the whole run."""
    rate_bps: float = math.nan
    """Rate in the name; NaN without one."""
    span: Span | None = None
    """Part of the run; None for all of it after the warm-up."""

    def value(self, result: Result) -> float:
        """Return the metric in bits per second, seconds, or without unit; NaN if unknown."""
        if self.span is None or self.measure.of_span is None:
            return self.measure.value(result, self.statistic, self.place)
        flows = flows_of(result, self.place) if self.place else result.measured_flows
        return self.measure.of_span(result, flows, self.rate_bps, self.span)


def read_metric(name: str, places: Places) -> Metric:
    """Read a metric's name ``METRIC[.STATISTIC][.PLACE]``, for some metrics with ``@FROM..TO``.

    A ValueError says what is allowed.

    Examples
    --------
    >>> places = Places(frozenset({"reno"}), frozenset())
    >>> metric = read_metric("goodput.reno@10s..20s", places)
    >>> metric.place, metric.span
    ('reno', Span(begin=10.0, end=20.0))
    """
    before, at, times = name.partition("@")
    word, *rest = before.split(".")
    measure = MEASURES.get(word)
    if measure is None:
        raise ValueError(f'unknown metric "{word}"; allowed: {", ".join(MEASURES)}')
    rate = parse_rate(rest.pop(0) if rest else "") if measure.of_rate else math.nan
    statistic = rest.pop(0) if rest and rest[0] in measure.statistics else ""
    place = rest.pop(0) if rest else ""
    if rest:
        raise ValueError(
            "a name is METRIC, METRIC.STATISTIC, METRIC.PLACE or METRIC.STATISTIC.PLACE"
        )
    if place:
        _check_place(measure, place, places, statistics=not statistic)
    span = _read_span(measure, times) if at else None
    if span is None and measure.of_rate:
        raise ValueError(f"{word} needs a part of the run: {before}@10s..20s")
    if span is not None and statistic:
        raise ValueError(f"{word} has no statistics of a part of the run")
    return Metric(name, measure, statistic, place, rate, span)


def places_of_scenario(scenario: Scenario, links: Sequence[str]) -> Places:
    """Return the groups and links of a valid scenario before its run."""
    document = scenario.to_dict()
    groups = set()
    for table in ("flow", "cbr", "pareto"):
        for group in document.get(table, []):
            count = group.get("count", 1)
            if count > 0:
                groups.add(group_name(group, table))
    return Places(frozenset(groups), frozenset(links))


def places_of_run(record: RunRecord) -> Places:
    """Return the groups and links of a run."""
    names = {flow["name"] for flow in record["flows"]}
    groups = names | {match[1] for name in names if (match := _NUMBERED.fullmatch(name))}
    return Places(frozenset(groups), frozenset(link["name"] for link in record["links"]))


def _read_span(measure: Measure, text: str) -> Span:
    """Read a part of a run, ``FROM..TO``."""
    if measure.of_span is None:
        allowed = ", ".join(name for name, each in MEASURES.items() if each.of_span is not None)
        raise ValueError(f"{measure.name} has no value for a part of the run; allowed: {allowed}")
    begin, dots, end = text.partition("..")
    span = Span(*(parse_time(each, zero=True) for each in (begin, end))) if dots else None
    if span is None or span.begin >= span.end:
        raise ValueError(f"{text!r} is not a part of the run such as 10s..20s")
    return span


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


def flows_of(result: Result, group: str) -> list[FlowRecord]:
    """Return the flows whose name is that of the group, or that and a number."""
    alone = [flow for flow in result.record["flows"] if flow["name"] == group]
    if alone:
        return alone
    found = []
    for flow in result.record["flows"]:
        base, dash, number = flow["name"].rpartition("-")
        if dash and base == group and number.isdecimal():
            found.append(flow)
    return found


_AMONG_FLOWS: Mapping[str, Callable[[list[float]], np.floating]] = {
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
}
"""Statistics of the rates of flows that were active after the warm-up."""


def _goodput(result: Result, flows: list[FlowRecord], statistic: str) -> float:
    if statistic in {"", "total"}:
        return result.total_goodput_bps(flows)
    return _among(statistic, result.goodputs_bps(flows))


def _throughput(result: Result, flows: list[FlowRecord], statistic: str) -> float:
    if statistic in {"", "total"}:
        return metrics.throughput(_sum(flows, "bytes_sent"), result.measured_s)
    rates = [
        metrics.throughput(flow["bytes_sent"], result.seconds(flow))
        for flow in result.active(flows)
    ]
    return _among(statistic, rates)


def _among(statistic: str, rates: list[float]) -> float:
    return float(_AMONG_FLOWS[statistic](rates)) if rates else math.nan


def _jain(result: Result, flows: list[FlowRecord], statistic: str) -> float:
    if not statistic:
        return metrics.jain(result.goodputs_bps(flows))
    found = result.jain_over_time(flows=flows)
    return found.worst if statistic == "worst" else found.mean


def _fct(result: Result, flows: list[FlowRecord], statistic: str) -> float:
    return _of_spread(metrics.spread(result.transfers(flows).fct), statistic)


def _slowdown(result: Result, flows: list[FlowRecord], statistic: str) -> float:
    return _of_spread(metrics.spread(result.transfers(flows).slowdown), statistic)


def _of_spread(spread: metrics.Spread, statistic: str) -> float:
    value: float = getattr(spread, statistic or "mean")
    return value


def _completed(result: Result, flows: list[FlowRecord], _: str) -> float:
    times = result.transfers(flows).fct
    return float(np.mean(~np.isnan(times))) if times.size else math.nan


def _rtt(_: Result, flows: list[FlowRecord], statistic: str) -> float:
    name: Literal["min_rtt_s", "mean_rtt_s"] = "min_rtt_s" if statistic == "min" else "mean_rtt_s"
    # A flow that ended in the warm-up has no round-trip time.
    known = [flow[name] for flow in flows if not math.isnan(flow[name])]
    if not known:
        return math.nan
    return min(known) if statistic == "min" else math.fsum(known) / len(known)


def _smoothness(result: Result, flows: list[FlowRecord], _: str) -> float:
    scale = result.scales[1]
    known = [v for flow in flows if not math.isnan(v := result.smoothness(flow, [scale])[scale])]
    return float(np.mean(known)) if known else math.nan


def _sum(flows: list[FlowRecord], name: str) -> float:
    return math.fsum(flow[name] for flow in flows)  # type: ignore[literal-required]


def _goodput_in(result: Result, flows: list[FlowRecord], _: float, span: Span) -> float:
    return _rate_in(result, flows, "delivered_bytes", span)


def _throughput_in(result: Result, flows: list[FlowRecord], _: float, span: Span) -> float:
    return _rate_in(result, flows, "sent_bytes", span)


def _rate_in(
    result: Result,
    flows: list[FlowRecord],
    series: Literal["sent_bytes", "delivered_bytes"],
    span: Span,
) -> float:
    """Return the mean rate of the payload that flows sent or delivered between two times."""
    if not flows or span.begin >= result.duration_s:
        return math.nan
    end = min(span.end, result.duration_s)
    counts = [np.diff(np.interp([span.begin, end], result.time, f[series])) for f in flows]
    return metrics.goodput(math.fsum(float(n[0]) for n in counts), end - span.begin)


def _time_to(result: Result, flows: list[FlowRecord], rate_bps: float, span: Span) -> float:
    """Return the time until the first second in which flows have a goodput, or the whole span."""
    if not flows or span.begin >= result.duration_s:
        return math.nan
    end = min(span.end, result.duration_s)
    begins = result.time[(result.time >= span.begin) & (result.time <= end - 1)]
    delivered = np.zeros(begins.size)
    for flow in flows:
        delivered += 8.0 * np.interp(begins + 1, result.time, flow["delivered_bytes"])
        delivered -= 8.0 * np.interp(begins, result.time, flow["delivered_bytes"])
    reached = np.flatnonzero(delivered >= rate_bps)
    return float(begins[reached[0]]) - span.begin if reached.size else end - span.begin


def _unknown(_: Result, __: list[FlowRecord], ___: str) -> float:
    return math.nan


def _rate_ratio(result: Result, flows: list[FlowRecord], _: str) -> float:
    rates = result.goodputs_bps(flows)
    if len(rates) < 2:
        return math.nan
    return max(rates) / min(rates) if min(rates) > 0 else math.inf


def _useful(result: Result) -> float:
    """Return the fraction of the packets at the receivers that arrived for the first time."""
    flows = result.record["flows"]
    received = sum(flow["packets_received"] for flow in flows)
    return sum(flow["packets_delivered"] for flow in flows) / received if received else math.nan


_SPREAD = ("mean", "p50", "p95", "p99", "max")

_MEASURES = (
    Measure("goodput", ("total", *_AMONG_FLOWS), _goodput, of_span=_goodput_in),
    Measure("throughput", ("total", *_AMONG_FLOWS), _throughput, of_span=_throughput_in),
    Measure("time_to", of_flows=_unknown, of_span=_time_to, of_rate=True),
    Measure("rate_ratio", of_flows=_rate_ratio),
    Measure("useful", of_run=_useful),
    Measure("jain", ("worst", "mean"), _jain),
    Measure("fct", _SPREAD, _fct),
    Measure("slowdown", _SPREAD, _slowdown),
    Measure("completed", of_flows=_completed),
    Measure("convergence_time", of_run=lambda run: run.metrics["convergence_time_s"]),
    Measure("rtt", ("mean", "min"), _rtt),
    Measure("smoothness", of_flows=_smoothness),
    Measure(
        "retransmission_rate",
        of_flows=lambda _, flows, __: retransmission_rate_of(flows),
    ),
    Measure("timeouts", of_flows=lambda _, flows, __: _sum(flows, "timeouts")),
    Measure(
        "loss_rate",
        of_flows=lambda _, flows, __: loss_rate_of(flows),
        of_link=lambda link, _: link_loss_rate(link),
        of_bottleneck=True,
    ),
    Measure(
        "mark_rate",
        of_flows=lambda _, flows, __: mark_rate_of(flows),
        of_link=lambda link, _: link_mark_rate(link),
        of_bottleneck=True,
    ),
    Measure("utilization", of_link=lambda link, _: link["utilization"]),
    Measure(
        "queue_delay",
        ("mean", "p50", "p95", "p99"),
        of_link=lambda link, statistic: link["delay"][statistic or "mean"],  # type: ignore[literal-required]
    ),
)

MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in _MEASURES}
"""The metrics by name."""


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
