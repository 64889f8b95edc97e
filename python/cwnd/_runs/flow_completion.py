"""Transfers of a run: their completion times and slowdowns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd import metrics
from cwnd._runs.flow_groups import transfers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cwnd._base.records import FlowRecord, JsonObject, LinkRecord, Series
    from cwnd._runs.result import Result


class RunTransfers(NamedTuple):
    """Transfers of some flows of a run, one value each."""

    begin: Series
    """Seconds."""
    bytes: Series
    """Payload."""
    fct: Series
    """Completion time in seconds; NaN if it is incomplete."""
    slowdown: Series
    """Completion time over that on the empty path; NaN if one of them is unknown."""


def transfers_of(result: Result, flows: Sequence[FlowRecord]) -> RunTransfers:
    """Return the transfers of some flows that begin after the warm-up."""
    made = [(i, f) for i, f in enumerate(flows) if f["transfers"] is not None]
    several = {i for i, _ in made}
    single = [(i, flow) for i, flow in enumerate(flows) if i not in several]
    each = [(i, transfers(flow)) for i, flow in made]
    owner = np.array(
        [i for i, _ in single] + [i for i, t in each for _ in t["begin"]], dtype=np.intp
    )
    begin, size, end = (
        np.concatenate([np.array(column, dtype=float), *rest])
        for column, rest in (
            ([flow["start_s"] for _, flow in single], [t["begin"] for _, t in each]),
            ([_size(flow) for _, flow in single], [t["bytes"] for _, t in each]),
            ([flow["acknowledged_s"] for _, flow in single], [t["end"] for _, t in each]),
        )
    )
    kept = ~np.isnan(size) & (begin >= result.warmup_s)
    owner, begin, size, end = owner[kept], begin[kept], size[kept], end[kept]
    fct = metrics.completion_time(begin, end)
    packet, header, rtt = (
        np.array(
            [(flow["packet_bytes"], flow["header_bytes"], flow["base_rtt_s"]) for flow in flows],
            dtype=float,
        )
        .reshape(-1, 3)
        .T[:, owner]
    )
    wire = size + header * np.ceil(size / packet)
    rate = _rates(result, flows, owner, begin, wire)
    ideal = metrics.ideal_completion_time(wire, rate, rtt)
    return RunTransfers(begin, size, fct, metrics.slowdown(fct, ideal))


def _rates(
    result: Result,
    flows: Sequence[FlowRecord],
    owner: npt.NDArray[np.intp],
    begin: Series,
    wire: Series,
) -> Series:
    """Return the lowest rate on the path of each transfer, in bit/s."""
    links = result.record["links"]
    varies = {number for number, link in enumerate(links) if capacity_of(link) is not None}
    constant = [
        min((links[i]["rate_bps"] for i in flow["path"] if i not in varies), default=math.inf)
        for flow in flows
    ]
    rate = np.array(constant, dtype=float)[owner]
    for number in varies:
        crosses = np.array([number in flow["path"] for flow in flows], dtype=bool)[owner]
        offered = metrics.offered_rate(
            result.time, links[number]["capacity_bps"], begin[crosses], wire[crosses]
        )
        rate[crosses] = np.minimum(rate[crosses], offered)
    return rate


def _size(flow: FlowRecord) -> float:
    """Return the bytes of a finite flow; NaN for an endless one."""
    return math.nan if flow["bytes"] is None else float(flow["bytes"])


def transfers_json(found: RunTransfers) -> JsonObject | None:
    """Return the completion times and slowdowns as plain data; None without transfers."""
    if not found.begin.size:
        return None
    times = metrics.by_size(found.bytes, found.fct)
    slow = {each.low: each.spread for each in metrics.by_size(found.bytes, found.slowdown)}
    unknown = metrics.spread([])
    return {
        "number": int(found.begin.size),
        "completed": float(np.mean(~np.isnan(found.fct))),
        "fct_s": _figures(metrics.spread(found.fct)),
        "slowdown": _figures(metrics.spread(found.slowdown)),
        "by_size": [
            {
                "low_bytes": each.low,
                "high_bytes": each.high,
                "number": each.spread.number,
                "fct_s": _figures(each.spread),
                "slowdown": _figures(slow.get(each.low, unknown)),
            }
            for each in times
        ],
    }


def _figures(spread: metrics.Spread) -> JsonObject:
    """Return a spread without its number."""
    figures: JsonObject = spread._asdict()
    del figures["number"]
    return figures


def capacity_of(link: LinkRecord) -> Series | None:
    """Return the capacity of a link at the samples in bit/s; None if it does not vary."""
    return link["capacity_bps"] if link["capacity_bps"].size else None
