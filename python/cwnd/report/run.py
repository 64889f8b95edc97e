"""Page of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.colors import colors
from cwnd.curves import lines
from cwnd.figures import (
    PLACES,
    caveats,
    flow_sheet,
    link_sheet,
    metric_items,
    warmup_text,
)
from cwnd.report.page import render, run_data
from cwnd.report.workload import fairness_data, transfers_data
from cwnd.transfer_sheet import transfer_sheet
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd.figures import Sheet
    from cwnd.result import Result


def run_page(result: Result) -> str:
    """Create the page of a run.

    Parameters
    ----------
    result
        The run.

    Returns
    -------
    str
        The page as HTML.
    """
    document = result.to_json()
    shades = colors(flow["controller"] for flow in result.measured_flows)
    drawn = {line.flow["name"]: line.color for line in lines(result.measured_flows, shades)}
    found = transfer_sheet(document)
    transfers: list[tuple[str, Sheet, set[int], dict[str, str]]] = (
        [] if found is None else [("Transfers by size", found, set(), {})]
    )
    return render(
        "run.html",
        title=result.title or "A run",
        summary=[
            ("Where", result.on, PLACES[result.on]),
            ("Length", format_time(result.duration_s), warmup_text(result.warmup_s)),
            *metric_items(document["metrics"]),
        ],
        caveats=caveats([result]),
        sheets=[
            ("Flows", flow_sheet(document), {1, 9}, drawn),
            ("Links", link_sheet(document), {1}, {}),
            *transfers,
        ],
        rerun=result.rerun,
        seed=result.seed,
        data={
            "runs": [run_data(result, shades)],
            "fairness": fairness_data(result),
            "transfers": transfers_data(result),
        },
    )
