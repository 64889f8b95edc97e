"""The page of one run."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cwnd.colors import colors
from cwnd.figures import PLACES, caveats, flow_sheet, link_sheet, metric_items
from cwnd.report.page import command, facts, legend, named, notes, page, run_data, table
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd.figures import Sheet
    from cwnd.result import Result

_GREY = "#828b98"


def run_page(result: Result) -> str:
    """Make the page of a run.

    Parameters
    ----------
    result
        The run.

    Returns
    -------
    str
        HTML.
    """
    document = result.to_json()
    shade = colors(flow["controller"] for flow in result.measured_flows)
    by_flow = {flow["name"]: shade.get(flow["controller"], _GREY) for flow in document["flows"]}
    warmup = f"{format_time(result.warmup_s)} of warm-up" if result.warmup_s else "no warm-up"
    summary = [
        ("Where", result.on, PLACES[result.on]),
        ("Length", format_time(result.duration_s), warmup),
        *metric_items(document["metrics"]),
    ]
    again = (
        f"<h2>Run it again</h2>{command(result.rerun)}"
        if result.rerun
        else f'<p class="note">Seed {result.seed}.</p>'
    )
    body = f"""
{facts(summary)}
{notes(caveats([result]))}
<h2>Over time</h2>
<p class="note">What is shaded is warm-up and counts in no figure; the axes fit the rest.</p>
{legend(shade)}
<div class="plot loading" id="run"></div>
<h2>Figures</h2>
{_sheet("Flows", flow_sheet(document), by_flow, text=frozenset({1, 9}))}
{_sheet("Links", link_sheet(document), {}, text=frozenset({1}))}
{again}
"""
    return page(result.title or "A run", "cwnd run", body, {"runs": [run_data(result, shade)]})


def _sheet(caption: str, sheet: Sheet, color: dict[str, str], text: frozenset[int]) -> str:
    """Make a table; columns of ``text`` begin at the left."""
    return table(
        caption,
        sheet.heads,
        (
            f"<tr>{named(row[0], color.get(row[0]))}"
            + "".join(
                f'<td class="text">{escape(cell)}</td>' if i in text else f"<td>{escape(cell)}</td>"
                for i, cell in enumerate(row[1:], 1)
            )
            + "</tr>"
            for row in sheet.rows
        ),
        text,
    ) + (f'<p class="note">And {sheet.more} more.</p>' if sheet.more else "")
