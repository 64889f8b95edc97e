"""Metrics by name, for the bounds of ``[expect]``: docs/scenario.md lists them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from cwnd import metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cwnd.records import FlowRecord, LinkRecord
    from cwnd.result import Result

Dimension: TypeAlias = Literal["rate", "time", "fraction", "count", "number"]
"""Dimension of a metric: bits per second, seconds, or a number without unit."""

OfFlows: TypeAlias = "Callable[[Result, list[FlowRecord], str], float]"
"""Returns a metric of some flows; the text is a statistic, or empty for the default one."""

OfLink: TypeAlias = "Callable[[LinkRecord, str], float]"
"""Returns a metric of a link."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric that ``[expect]`` can bound.

    Attributes
    ----------
    name
        Its name.
    dimension
        Its dimension, which the unit of a bound must have.
    statistics
        Names of its statistics.
    of_flows
        Returns the metric of the run's measured flows, or of a group. None if it has no such form.
    of_link
        Returns the metric of a link. Without ``of_flows`` the metric of the run is that of the
        bottleneck.
    of_bottleneck
        Whether the metric of the run is that of the bottleneck although groups have it too.
    of_run
        Returns a metric that only the whole run has.
    """

    name: str
    dimension: Dimension
    statistics: tuple[str, ...] = ()
    of_flows: OfFlows | None = None
    of_link: OfLink | None = None
    of_bottleneck: bool = False
    of_run: Callable[[Result], float] | None = None

    def value(self, result: Result, statistic: str, place: str) -> float:
        """Return the metric in a run.

        Parameters
        ----------
        result
            The run.
        statistic
            One of ``statistics``, or empty for the default one.
        place
            A group of flows, a flow or a link; empty for the whole run.
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


def flows_of(result: Result, group: str) -> list[FlowRecord]:
    """Return the flows of a group, or the flow of that name.

    Parameters
    ----------
    result
        The run.
    group
        Name of the group: its flows have this name, or this name and a number.
    """
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
        sent = math.fsum(flow["packets_sent"] * flow["packet_bytes"] for flow in flows)
        return metrics.throughput(sent, 1, result.measured_s)
    rates = [
        metrics.throughput(flow["packets_sent"], flow["packet_bytes"], result.seconds(flow))
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


def _link_loss_rate(link: LinkRecord, _: str) -> float:
    return metrics.loss_rate(link["drops"] + link["losses"], link["arrivals"])


_SPREAD = ("mean", "p50", "p95", "p99", "max")

_MEASURES = (
    Measure("goodput", "rate", ("total", *_AMONG_FLOWS), _goodput),
    Measure("throughput", "rate", ("total", *_AMONG_FLOWS), _throughput),
    Measure("jain", "fraction", ("worst", "mean"), _jain),
    Measure("fct", "time", _SPREAD, _fct),
    Measure("slowdown", "number", _SPREAD, _slowdown),
    Measure("completed", "fraction", of_flows=_completed),
    Measure("convergence_time", "time", of_run=lambda run: run.metrics["convergence_time_s"]),
    Measure("rtt", "time", ("mean", "min"), _rtt),
    Measure("smoothness", "number", of_flows=_smoothness),
    Measure(
        "retransmission_rate",
        "fraction",
        of_flows=lambda _, flows, __: metrics.retransmission_rate(
            _sum(flows, "retransmissions"), _sum(flows, "packets_sent")
        ),
    ),
    Measure("timeouts", "count", of_flows=lambda _, flows, __: _sum(flows, "timeouts")),
    Measure(
        "loss_rate",
        "fraction",
        of_flows=lambda _, flows, __: metrics.loss_rate(
            _sum(flows, "packets_lost"), _sum(flows, "packets_sent")
        ),
        of_link=_link_loss_rate,
        of_bottleneck=True,
    ),
    Measure(
        "mark_rate",
        "fraction",
        of_flows=lambda _, flows, __: metrics.mark_rate(
            _sum(flows, "packets_marked"), _sum(flows, "packets_sent")
        ),
        of_link=lambda link, _: metrics.mark_rate(link["marks"], link["arrivals"]),
        of_bottleneck=True,
    ),
    Measure("utilization", "fraction", of_link=lambda link, _: link["utilization"]),
    Measure(
        "queue_delay",
        "time",
        ("mean", "p50", "p95", "p99"),
        of_link=lambda link, statistic: link["delay"][statistic or "mean"],  # type: ignore[literal-required]
    ),
)

MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in _MEASURES}
"""The metrics that ``[expect]`` can bound, by name."""
