"""Runs of one network that a page draws on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cwnd._show.chart_lines import (
    MAX_LINES,
    delivered_bytes,
    limit_of,
    step_rates,
    thin,
    while_active,
)
from cwnd._show.colors import shades
from cwnd._show.report.page import MAX_POINTS, rounded
from cwnd.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import FlowRecord, JsonObject
    from cwnd._runs.result import Result


class Side(NamedTuple):
    """A run with the name and the color of its lines."""

    name: str
    color: str
    result: Result
    groups: Sequence[tuple[str, str, list[FlowRecord]]]
    """Name, dash and flows of each line of goodput; the windows are those of the first one."""


def sides_data(sides: Sequence[Side]) -> JsonObject:
    """Return the data of the plot; capacity and warm-up are those of the first side."""
    first = sides[0].result
    link = first.bottleneck
    capacity = limit_of(link)
    scale = max(first.scales[0], first.duration_s / MAX_POINTS)
    return {
        "duration": first.duration_s,
        "warmup": first.warmup_s,
        "scale": format_time(scale),
        "capacity": [[0, first.duration_s], [link["rate_bps"]] * 2]
        if capacity is None
        else rounded(*thin(first.time, capacity, MAX_POINTS)),
        "sides": [_lines(side, link["name"], scale) for side in sides],
    }


def _lines(side: Side, queue: str, scale: float) -> JsonObject:
    """Return the lines of a run: windows, goodput of each group of flows, and a queue."""
    time = side.result.time
    drawn = side.groups[0][2][:MAX_LINES]
    (link,) = (one for one in side.result.record["links"] if one["name"] == queue)
    return {
        "name": side.name,
        "color": side.color,
        "windows": [
            (shade, rounded(*thin(*while_active(one, time, one["window"]), MAX_POINTS)))
            for one, shade in zip(drawn, shades(side.color, len(drawn)), strict=True)
        ],
        "goodputs": [
            (name, dash, rounded(*step_rates(time, delivered_bytes(of), scale)))
            for name, dash, of in side.groups
            if of
        ],
        "queue": rounded(*thin(time, link["queue"], MAX_POINTS)),
    }
