"""Page of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._runs.conventions import conventions_facts
from cwnd._runs.flow_groups import group_flows
from cwnd._runs.text import caveats
from cwnd._show.chart_lines import group_lines, lines
from cwnd._show.colors import colors
from cwnd._show.report.page import render, run_data
from cwnd._show.report.workload import fairness_data, transfers_data
from cwnd._show.sheets import (
    PLACES,
    application_sheet,
    flow_sheet,
    link_sheet,
    metric_items,
    warmup_text,
)
from cwnd._show.transfer_sheet import group_sheet, transfer_sheet
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd._runs.result import Result
    from cwnd._show.sheets import Sheet


def run_page(result: Result) -> str:
    """Create the HTML page of a run."""
    document = result.to_json_without_groups()
    shades = colors(flow["controller"] for flow in result.measured_flows)
    single, groups = group_flows(result.measured_flows)
    drawn = lines(single or result.measured_flows, shades)
    flow_colors = {line.flow["name"]: line.color for line in drawn}
    group_colors = {
        name: color for name, (_, color, _) in zip(groups, group_lines(groups, shades), strict=True)
    }
    sheets: list[tuple[str, Sheet | None, set[int], dict[str, str]]] = [
        ("Flows", flow_sheet(document), {1, 9}, flow_colors),
        ("Groups of flows", group_sheet(result.group_rows()), {1}, group_colors),
        ("Applications", application_sheet(document), set(), flow_colors),
        ("Links", link_sheet(document), {1}, {}),
        ("Transfers by size", transfer_sheet(document), set(), {}),
    ]
    return render(
        "run.html",
        title=result.title or "A run",
        summary=[
            ("Where", result.on, PLACES[result.on]),
            *conventions_facts(result.record["conventions"]),
            ("Length", format_time(result.duration_s), warmup_text(result.warmup_s)),
            *metric_items(document["metrics"]),
        ],
        caveats=caveats([result]),
        sheets=[each for each in sheets if each[1] is not None and each[1].rows],
        rerun=result.rerun,
        seed=result.seed,
        data={
            "runs": [run_data(result, shades, rtt=True)],
            "fairness": fairness_data(result),
            "transfers": transfers_data(result),
        },
    )
