"""Page of the runs of a scenario: of one, or of several with a seed each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._runs.conventions import conventions_facts
from cwnd._runs.flow_groups import group_flows
from cwnd._runs.text import caveats
from cwnd._show.chart_lines import group_lines, lines
from cwnd._show.colors import colors
from cwnd._show.report.page import laws_of, points_of, render, run_data
from cwnd._show.report.workload import fairness_data, transfers_data
from cwnd._show.sheets import (
    PLACES,
    application_sheet,
    flow_sheet,
    link_sheet,
    metric_items,
    seeds_text,
    warmup_text,
)
from cwnd._show.transfer_sheet import group_sheet, transfer_sheet
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._runs.repeated import Repeated
    from cwnd._runs.result import Result
    from cwnd._show.sheets import Sheet


def run_page(result: Result) -> str:
    """Create the HTML page of a run."""
    document = result.to_json_without_groups() | {"groups": result.group_rows()}
    return _page([result], document, result.rerun)


def repeated_page(repeated: Repeated) -> str:
    """Create the HTML page of runs with several seeds: means, and a plot of each run."""
    return _page(repeated.results, repeated.estimates(), repeated.rerun)


def _page(results: list[Result], document: JsonObject, rerun: str) -> str:
    """Create the page of runs of one scenario from the figures of one or the means of several."""
    result = results[0]
    shades = colors(flow["controller"] for run in results for flow in run.measured_flows)
    single, groups = group_flows(result.measured_flows)
    drawn = lines(single or result.measured_flows, shades)
    flow_colors = {line.flow["name"]: line.color for line in drawn}
    group_colors = {
        name: color for name, (_, color, _) in zip(groups, group_lines(groups, shades), strict=True)
    }
    sheets: list[tuple[str, Sheet | None, set[int], dict[str, str]]] = [
        ("Flows", flow_sheet(document), {1, 9}, flow_colors),
        ("Groups of flows", group_sheet(document["groups"]), {1}, group_colors),
        ("Applications", application_sheet(document), set(), flow_colors),
        ("Links", link_sheet(document), {1}, {}),
        ("Transfers by size", transfer_sheet(document), set(), {}),
    ]
    alone, points = len(results) == 1, points_of(results)
    length, warmup = format_time(result.duration_s), warmup_text(result.warmup_s)
    return render(
        "run.html",
        title=result.title or "A run",
        summary=[
            ("Where", result.on, PLACES[result.on]),
            *conventions_facts(result.record["conventions"]),
            ("Length", length, warmup)
            if alone
            else ("Runs", f"{len(results)} × {length}", f"{warmup}; means and 95 % intervals"),
            *metric_items(document["metrics"]),
        ],
        caveats=caveats(results),
        sheets=[
            (title, sheet.heads, [list(map(_cell, row)) for row in sheet.rows], *more, sheet.more)
            for title, sheet, *more in sheets
            if sheet is not None and sheet.rows
        ],
        files=laws_of(results),
        rerun=rerun,
        seeds=seeds_text(results),
        data={
            "runs": [run_data(run, shades, points, rtt=True) for run in results],
            "fairness": fairness_data(result) if alone else None,
            "transfers": transfers_data(result) if alone else None,
        },
    )


def _cell(text: str) -> str | tuple[str, str]:
    """Separate a mean from the interval below it."""
    mean, _, interval = text.partition("\n")
    return (mean, interval) if interval else text
