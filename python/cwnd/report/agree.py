"""The page of one scenario on several backends."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cwnd.agreement import NETWORK, RULE
from cwnd.colors import PALETTE, REFERENCE, colors
from cwnd.figures import PLACES, agreement_text, caveats, counts_text
from cwnd.report.page import command, facts, legend, named, notes, page, run_data, table
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd.agreement import Agreement, Row
    from cwnd.records import JsonObject

_PANELS = (("utilization", 100, "used, %"), ("loss_rate", 100, "loss, %"))
_DELAY = ("queueing_delay_s", 1000, "queueing delay, ms")


def agree_page(agreement: Agreement) -> str:
    """Make the page of an agreement.

    Parameters
    ----------
    agreement
        What ``agree`` found.

    Returns
    -------
    str
        HTML.
    """
    first = agreement.runs[0]
    repeat = len(next(iter(agreement.results.values())))
    warmup = f"{format_time(first.warmup_s)} of warm-up each"
    summary = [
        *((on, PLACES[on], "") for on in agreement.results),
        ("Runs", f"{repeat} × {format_time(first.duration_s)}", warmup),
    ]
    shade = colors(flow["controller"] for flow in first.measured_flows)
    options = "".join(f"<option>{escape(on)}</option>" for on in agreement.results)
    again = f"<h2>Run it again</h2>{command(agreement.rerun)}" if agreement.rerun else ""
    tables = "".join(
        _table(of, [row for row in agreement.rows if row.of == of], list(agreement.results))
        for of in (NETWORK, *agreement.groups)
    )
    body = f"""
{facts(summary)}
{notes(caveats(agreement.runs))}
<h2>Verdict</h2>
{notes(counts_text(agreement.counts))}
<h2>Side by side</h2>
<p class="note">Means over the seeds; lines are 95 % intervals.</p>
<div class="plot loading" id="figures"></div>
{tables}
<details><summary>How the verdict is reached</summary><p class="note">{escape(RULE)}</p></details>
<h2>Over time</h2>
<p class="note">The first seed. The shaded warm-up is excluded from all figures and from the axis
ranges.</p>
<div class="choose"><label>Backend <select id="controller">{options}</select></label></div>
{legend(shade)}
<div class="plot loading" id="run"></div>
{again}
"""
    runs = [run_data(runs[0], shade, controller=on) for on, runs in agreement.results.items()]
    title = f"{agreement.title}: {agreement_text(list(agreement.results))}"
    return page(title, "cwnd agree", body, {"figures": _figures(agreement), "runs": runs})


def _figures(agreement: Agreement) -> JsonObject:
    """Collect what the plot of means shows."""
    rows = {row.kind.name: row for row in agreement.rows if row.of == NETWORK}
    panels = (*_PANELS, _DELAY)
    shades = (REFERENCE, *PALETTE)
    return {
        "panels": [
            {"figure": name, "title": title, "factor": factor} for name, factor, title in panels
        ],
        "rows": [
            {
                "controller": on,
                "color": shades[i],
                "figures": {name: rows[name].estimates[on].to_json() for name, _, _ in panels},
            }
            for i, on in enumerate(agreement.results)
        ],
    }


def _table(of: str, rows: list[Row], backends: list[str]) -> str:
    """Make the table of the network or of a group of flows."""
    heads = [("figure", "", ""), *((on, "", PLACES[on]) for on in backends)]
    heads += [(f"{on} and {backends[0]}", "", "By the rule below.") for on in backends[1:]]
    verdicts = frozenset(range(1 + len(backends), len(heads)))
    return table(
        of,
        heads,
        (
            f"<tr>{named(row.title, None)}"
            + "".join(
                f"<td>{row.kind.mean(row.estimates[on])}"
                f"<small>{row.kind.interval(row.estimates[on])}</small></td>"
                for on in backends
            )
            + "".join(f'<td class="text">{escape(verdict.text)}</td>' for verdict in row.verdicts)
            + "</tr>"
            for row in rows
        ),
        verdicts,
    )
