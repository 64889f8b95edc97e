"""Lines and points of plots: selection of flows, line styles, thinning, ellipses."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd._runs.flow_completion import active_samples, capacity_of
from cwnd._show.colors import PALETTE, REFERENCE, shades, strokes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd._base.records import FlowRecord, LinkRecord, Series
    from cwnd._tasks.comparison.outcome import Comparison

MAX_LOST = 0.05
"""Largest fraction of the payload sent that does not arrive, of flows without a line of it."""

MAX_LINES = 16
"""Largest number of flows in one plot: more lines cannot be distinguished."""


class Line(NamedTuple):
    """Line style of a flow."""

    flow: FlowRecord
    name: str
    """With its controller."""
    color: str
    dash: str
    """``solid``, ``dash``, ``dot`` or ``dashdot``; each pair of color and dash is unique."""


def lines(flows: list[FlowRecord], colors: Mapping[str, str]) -> list[Line]:
    """Choose the flows to draw, equally many of each controller, and their line styles."""
    seen: Counter[str] = Counter()
    rank = []
    for flow in flows:
        rank.append(seen[flow["controller"]])
        seen[flow["controller"]] += 1
    chosen = sorted(range(len(flows)), key=rank.__getitem__)[:MAX_LINES]
    drawn = [flows[i] for i in sorted(chosen)]
    color_of = [colors.get(flow["controller"], REFERENCE) for flow in drawn]
    # Colors repeat after ten controllers: the flows of one color share its line styles.
    free = {color: iter(strokes(color, count)) for color, count in Counter(color_of).items()}
    return [
        Line(flow, _label(flow), *next(free[color]))
        for flow, color in zip(drawn, color_of, strict=True)
    ]


def _label(flow: FlowRecord) -> str:
    """Label a flow with its name and controller."""
    name, controller = flow["name"], flow["controller"]
    return name if name.startswith(controller) else f"{name} ({controller})"


def while_active(flow: FlowRecord, time: Series, values: Series) -> tuple[Series, Series]:
    """Restrict a series of a flow to the time from its start to its completion or stop."""
    here = active_samples(flow, time)
    return time[here], values[here]


def group_lines(
    groups: Mapping[str, list[FlowRecord]], colors: Mapping[str, str]
) -> list[tuple[str, str, list[FlowRecord]]]:
    """Return the label, the color and the flows of each group of finite flows.

    Their colors differ from those of ``colors``; the groups of the reference have a darker grey.
    """
    free = [color for color in PALETTE if color not in colors.values()] or [REFERENCE]
    found = []
    for number, (name, flows) in enumerate(groups.items()):
        controller = flows[0]["controller"]
        grey = colors.get(controller) == REFERENCE
        color = shades(REFERENCE, 2)[0] if grey else free[number % len(free)]
        label = name if controller in name else f"{name} ({controller})"
        found.append((f"{label}: {len(flows)} flows together", color, flows))
    return found


def delivered_bytes(flows: list[FlowRecord]) -> Series:
    """Return the payload bytes of some flows that have arrived together at each sample."""
    total = np.zeros_like(flows[0]["delivered_bytes"])
    for flow in flows:
        total += flow["delivered_bytes"]
    return total


def sent_bytes(flows: list[FlowRecord]) -> Series | None:
    """Return the payload bytes that some flows have sent together at each sample.

    It is None if nearly all of them arrive after the warm-up: its line would be the goodput's.
    """
    sent = sum(flow["bytes_sent"] for flow in flows)
    if sum(flow["bytes_delivered"] for flow in flows) >= (1 - MAX_LOST) * sent:
        return None
    total = np.zeros_like(flows[0]["sent_bytes"])
    for flow in flows:
        total += flow["sent_bytes"]
    return total


def limit_of(link: LinkRecord) -> Series | None:
    """Return what limits the rate of a link at the samples, in bit/s; None if it is constant.

    The token rate of a policer or a shaper is a limit.
    """
    tokens = link["token_rate_bps"]
    capacity = capacity_of(link)
    if math.isinf(tokens):
        return capacity
    return np.minimum(
        tokens, np.full(link["queue"].shape, np.inf) if capacity is None else capacity
    )


def step_rates(time: Series, counted: Series, scale: float) -> tuple[Series, Series]:
    """Return the rate of a flow in bit/s as the edges and rates of a step line.

    ``counted`` are bytes since the start. Intervals have ``scale`` seconds, the last one 0.5 to 1.5
    times as many: it ends at the last sample, and its rate appears twice.

    Examples
    --------
    >>> edges, rates = step_rates(np.arange(5.0), np.array([0, 125, 250, 625, 1000]), 2.0)
    >>> edges.tolist(), rates.tolist()
    ([0.0, 2.0, 4.0], [1000.0, 3000.0, 3000.0])
    """
    if time.size < 2:
        return np.empty(0), np.empty(0)
    count = max(round((time[-1] - time[0]) / scale), 1)
    edges = np.append(time[0] + scale * np.arange(count), time[-1])
    rates = 8.0 * np.diff(np.interp(edges, time, counted)) / np.diff(edges)
    return edges, np.append(rates, rates[-1])


def thin(time: Series, values: Series, most: int) -> tuple[Series, Series]:
    """Reduce the points of a series: keep the first, the last and the extremes of equal parts.

    Examples
    --------
    >>> time, values = thin(np.arange(7.0), np.array([0.0, 9.0, 1.0, 2.0, 8.0, 3.0, 3.0]), most=6)
    >>> time.tolist(), values.tolist()
    ([0.0, 1.0, 2.0, 3.0, 4.0, 6.0], [0.0, 9.0, 1.0, 2.0, 8.0, 3.0])
    """
    if time.size <= most:
        return time, values
    edges = np.linspace(1, time.size - 1, (most - 2) // 2 + 1).astype(int)
    known = np.nan_to_num(values, nan=0.0)
    keep = {0, time.size - 1}
    for low, high in pairwise(edges):
        part = known[low:high]
        keep |= {int(low + part.argmin()), int(low + part.argmax())}
    kept = sorted(keep)
    return time[kept], values[kept]


class TradeOff(NamedTuple):
    """Goodput against queueing delay of a controller alone, over the seeds."""

    controller: str
    delay_ms: float
    """Mean over the seeds of the 95th percentile; NaN if unknown."""
    goodput_mbps: float
    """Mean over the seeds."""
    outline: tuple[Series, Series]
    """Delays and goodputs of the ellipse of one standard deviation; empty with one seed."""


def trade_offs(comparison: Comparison) -> list[TradeOff]:
    """Return goodput and queueing delay of each controller alone, in the order of the rows."""
    found = []
    for row in comparison.rows_alone:
        delays = 1e3 * np.array(row.values("queue_delay_p95_s"))
        rates = np.array(row.values("goodput_bps")) / 1e6
        found.append(
            TradeOff(
                row.controller,
                1e3 * row.figures["queue_delay_p95_s"].mean,
                row.figures["goodput_bps"].mean / 1e6,
                deviation_ellipse(delays, rates),
            )
        )
    return found


def trade_off_ranges(points: Sequence[TradeOff]) -> tuple[list[float], list[float]]:
    """Return the ranges of delays, falling, and goodputs that show points and ellipses."""
    delays = [value for each in points for value in (each.delay_ms, *each.outline[0])]
    rates = [value for each in points for value in (each.goodput_mbps, *each.outline[1])]
    return _range(delays)[::-1], _range(rates)


def _range(values: Sequence[float]) -> list[float]:
    """Return a range for an axis that does not magnify differences below a tenth of the values.

    Examples
    --------
    >>> [round(end, 2) for end in _range([14.4, 14.6])], _range([0.0, 10.0])
    ([13.7, 15.3], [-0.5, 10.5])
    """
    known = [float(value) for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    span = max(high - low, 0.1 * high, 1e-3)
    middle, half = (low + high) / 2, 0.55 * span
    return [middle - half, middle + half]


def deviation_ellipse(x: Series, y: Series, points: int = 73) -> tuple[Series, Series]:
    """Return the ellipse of one standard deviation of the bivariate normal fitted to points.

    It is the set of points at a Mahalanobis distance of 1 from the mean; two points give a line.
    Points that are not finite are left out, and fewer than two give no ellipse.

    Examples
    --------
    >>> across, up = deviation_ellipse(np.array([1.0, 3.0]), np.array([10.0, 30.0]), points=3)
    >>> [round(float(each), 3) for each in (*across, *up)]
    [3.414, 0.586, 3.414, 34.142, 5.858, 34.142]
    """
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 2:
        return np.empty(0), np.empty(0)
    x, y = x[known], y[known]
    over, up = x.std(ddof=1), y.std(ddof=1)
    both = over * up
    correlation = np.cov(x, y)[0, 1] / both if both > 0 else 0.0
    correlation = min(max(correlation, -1.0), 1.0)
    angle = np.linspace(0.0, 2.0 * np.pi, points)
    # Cholesky factor of the covariance matrix, times the unit circle.
    rest = math.sqrt(1.0 - correlation**2)
    return (
        x.mean() + over * np.cos(angle),
        y.mean() + up * (correlation * np.cos(angle) + rest * np.sin(angle)),
    )
