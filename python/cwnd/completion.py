"""Transfers of a run: their completion times and slowdowns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from cwnd import metrics
from cwnd.paths import Path, paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.records import FlowRecord, JsonObject, Series
    from cwnd.result import Result

_NO_PATH = Path(math.nan, math.nan, 0)


class RunTransfers(NamedTuple):
    """Transfers of some flows of a run, one value each.

    Attributes
    ----------
    begin
        Beginning in seconds.
    bytes
        Size in bytes of payload.
    fct
        Completion time in seconds; NaN if it is incomplete.
    slowdown
        Completion time over that on the empty path; NaN if one of them is unknown.
    """

    begin: Series
    bytes: Series
    fct: Series
    slowdown: Series


def transfers_of(result: Result, flows: Sequence[FlowRecord]) -> RunTransfers:
    """Return the transfers of some flows that begin after the warm-up.

    Parameters
    ----------
    result
        The run.
    flows
        Flows of the run.
    """
    made = [(i, f) for i, f in enumerate(flows) if cast("JsonObject", f).get("transfers")]
    several = {i for i, _ in made}
    single = [(i, flow) for i, flow in enumerate(flows) if i not in several]
    each = [(i, metrics.transfers(flow)) for i, flow in made]
    owner = np.array([i for i, _ in single] + [i for i, t in each for _ in t.begin], dtype=np.intp)
    begin, size, end = (
        np.concatenate([np.array(column, dtype=float), *rest])
        for column, rest in (
            ([flow["start_s"] for _, flow in single], [t.begin for _, t in each]),
            ([metrics.size_of(flow) for _, flow in single], [t.bytes for _, t in each]),
            ([flow["completed_s"] for _, flow in single], [t.end for _, t in each]),
        )
    )
    kept = ~np.isnan(size) & (begin >= result.warmup_s)
    owner, begin, size, end = owner[kept], begin[kept], size[kept], end[kept]
    fct = metrics.completion_time(begin, end)
    known = paths(result.document, result.record) if owner.size else {}
    found = [known.get(flow["name"], _NO_PATH) for flow in flows]
    rate, rtt, header = np.array(found, dtype=float).reshape(-1, 3).T[:, owner]
    packet = np.array([flow["packet_bytes"] for flow in flows], dtype=float)[owner]
    wire = size + header * np.ceil(size / packet)
    ideal = metrics.ideal_completion_time(wire, rate, rtt)
    return RunTransfers(begin, size, fct, metrics.slowdown(fct, ideal))


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
