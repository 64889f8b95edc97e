"""Data of the plots of fairness over time and of transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd import metrics
from cwnd._runs.flow_groups import flow_kinds
from cwnd._show.chart_lines import thin
from cwnd._show.colors import PALETTE
from cwnd._show.transfer_sheet import size_text
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._runs.result import Result

MAX_POINTS = 400
"""Points per line."""


def fairness_data(result: Result) -> JsonObject | None:
    """Return Jain's index of the first kind of flows over time.

    It is None with fewer than two flows at a time.
    """
    kinds = flow_kinds(result.measured_flows)
    if not kinds:
        return None
    label, flows = kinds[0]
    of = f" {label}" if label else ""
    found = result.jain_over_time(flows=flows)
    if not np.isfinite(found.worst):
        return None
    # The last value is drawn to the end of its window.
    edges = np.append(found.time, found.time[-1] + result.scales[1])
    time, jain = thin(edges, np.append(found.jain, found.jain[-1]), MAX_POINTS)
    return {
        "time": [float(f"{at:.6g}") for at in time],
        "jain": [float(f"{value:.4g}") for value in jain],
        "title": f"Jain's index{of} over {format_time(result.scales[1])}: {_ends(found)}",
        "duration": result.duration_s,
    }


def _ends(found: metrics.JainSeries) -> str:
    """Describe the worst and the mean index."""
    return f"worst {found.worst:.3f}, mean {found.mean:.3f}"


def transfers_data(result: Result) -> JsonObject | None:
    """Return distributions of completion times and percentiles of slowdown by size.

    They are None without complete transfers.
    """
    found = result.transfers()
    sizes = metrics.by_size(found.bytes, found.fct)
    slow = {each.low: each.spread for each in metrics.by_size(found.bytes, found.slowdown)}
    if not sizes:
        return None
    classes = []
    for each, color in zip(sizes, [*PALETTE, *PALETTE], strict=False):
        inside = (found.bytes >= each.low) & (found.bytes < each.high) & ~np.isnan(found.fct)
        times = np.sort(found.fct[inside])
        part = np.arange(1, times.size + 1) / times.size
        kept = np.unique(np.linspace(0, times.size - 1, MAX_POINTS).astype(int))
        # The line begins at 0 when the first transfer is complete.
        first = [float(f"{times[0]:.4g}")]
        classes.append(
            {
                "name": size_text(each.low, each.high),
                "color": color,
                "fct": first + [float(f"{value:.4g}") for value in times[kept]],
                "part": [0.0] + [float(f"{value:.4g}") for value in part[kept]],
            }
        )
    lows = [each.low for each in sizes]
    return {
        "classes": classes,
        "percentiles": [
            {
                "name": name,
                "dash": dash,
                "values": [
                    float(f"{getattr(slow[low], name):.4g}") if low in slow else None
                    for low in lows
                ],
            }
            for name, dash in (("p50", "solid"), ("p95", "dash"), ("p99", "dot"))
        ],
    }
