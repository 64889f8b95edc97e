"""The page of a comparison."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cwnd.colors import colors
from cwnd.figures import against_columns, alone_columns, caveats, number
from cwnd.report.page import command, facts, named, notes, page, run_data, table, terms
from cwnd.units import format_rate, format_time
from cwnd.verdict import RULE

if TYPE_CHECKING:
    from cwnd.comparison import Comparison, Row
    from cwnd.figures import Column
    from cwnd.records import JsonObject
    from cwnd.verdict import Verdict

_GOOD = {"fair", "smoother", "less queue"}
_POOR = {"takes more", "yields", "less smooth", "more queue"}


def compare_page(comparison: Comparison) -> str:
    """Make the page of a comparison.

    Parameters
    ----------
    comparison
        What ``compare`` found.

    Returns
    -------
    str
        HTML.
    """
    names = [row.controller for row in comparison.rows_alone]
    shade = colors(names, comparison.reference)
    others = [name for name in names if name != comparison.reference]
    title = f"{_listed(others or names)} against {comparison.reference}"
    alone, against = alone_columns(comparison), against_columns(comparison)
    glossary = {column.title: column.meaning for column in [*alone, *against]}
    no_command = f'<p class="note">No command: {escape(comparison.no_rerun)}.</p>'
    body = f"""
{_network(comparison.network)}
{notes(caveats(comparison.results))}
<h2>Verdict</h2>
<div class="cards">{"".join(_card(v, shade[v.controller]) for v in comparison.verdicts)}</div>
<h2>Fairness, smoothness, queue</h2>
<p class="note">Means over {comparison.network["repeat"]} runs; lines are 95 % intervals.</p>
<div class="plot loading" id="figures"></div>
<h2>Figures</h2>
{_table("Each controller alone", alone, comparison.rows_alone, shade)}
{_table(f"Half and half against {comparison.reference}", against, comparison.rows_against, shade)}
<details><summary>What the columns mean</summary>{terms(glossary.items())}</details>
<h2>Over time</h2>
<p class="note">The first of the runs; {escape(comparison.reference)} in grey. The shaded warm-up
is excluded from all figures and from the axis ranges.</p>
{_chooser([row.controller for row in comparison.rows_against], comparison.reference)}
<div class="plot loading" id="run"></div>
<h2>Run it again</h2>
{command(comparison.rerun) if comparison.rerun else no_command}
<details><summary>How the verdict is reached</summary><p class="note">{escape(RULE)}</p></details>
"""
    return page(title, "cwnd compare", body, _data(comparison, shade))


def _data(comparison: Comparison, shade: dict[str, str]) -> JsonObject:
    """Collect what the plots show."""
    against = {row.controller: row for row in comparison.rows_against}
    scale = format_time(comparison.rows_alone[0].results[0].scales[1])
    rows = [
        {
            "controller": row.controller,
            "color": shade[row.controller],
            "figures": {
                name: row.figures[name].to_json() for name in ("cov_10rtt", "queueing_delay_s")
            }
            | (
                {"share": against[row.controller].figures["share"].to_json()}
                if row.controller in against
                else {}
            ),
        }
        for row in comparison.rows_alone
    ]
    panels = [
        {
            "figure": "share",
            "title": f"share against {comparison.reference}",
            "factor": 1,
            "range": [0, 1],
            "even": 0.5,
        },
        {"figure": "cov_10rtt", "title": f"variation (CoV) over {scale}", "factor": 1},
        {"figure": "queueing_delay_s", "title": "queueing delay, ms", "factor": 1000},
    ]
    runs = [
        run_data(row.results[0], shade, controller=row.controller, mode=mode)
        for mode, group in (("against", comparison.rows_against), ("alone", comparison.rows_alone))
        for row in group
        if row.controller in against
    ]
    return {"figures": {"panels": panels, "rows": rows}, "runs": runs}


def _network(network: JsonObject) -> str:
    """Describe the network."""
    limit, bdp = network["queue_limit"], network["bdp_packets"]
    return facts(
        [
            ("Bottleneck", format_rate(network["rate_bps"]), f"{number(bdp, 0)} packets of BDP"),
            ("Round-trip time", network["rtt"] or format_time(network["rtt_s"]), "without queue"),
            ("Queue", network["queue"] or network["bottleneck"], f"{number(limit, 0)} packets"),
            ("Flows", str(network["flows"]), f"of {network['packet_bytes']} bytes a packet"),
            (
                "Runs",
                f"{network['repeat']} × {format_time(network['duration_s'])}",
                f"{format_time(network['warmup_s'])} of warm-up each",
            ),
        ]
    )


def _card(verdict: Verdict, color: str) -> str:
    """Show a verdict."""
    words = {
        "fairness": verdict.fairness,
        "smoothness": verdict.smoothness,
        "queue": verdict.queue,
    }
    badges = "".join(_badge(subject, word) for subject, word in words.items() if word != "unknown")
    sentence = verdict.sentence[:1].upper() + verdict.sentence[1:]
    return (
        f'<article class="card" style="--shade:{color}"><h3>{escape(verdict.controller)}</h3>'
        f'<ul class="badges">{badges}</ul><p>{escape(sentence)}</p></article>'
    )


def _badge(subject: str, word: str) -> str:
    """Show one verdict: its colour says no more than the sentence below."""
    if word == "undecided":
        return f'<li class="undecided">{subject} undecided</li>'
    kind = "good" if word in _GOOD else "poor" if word in _POOR else "even"
    return f'<li class="{kind}">{escape(word)}</li>'


def _table(caption: str, columns: list[Column], rows: list[Row], shade: dict[str, str]) -> str:
    """Make a table of means and intervals."""
    return table(
        caption,
        [("controller", "", ""), *((c.title, c.unit, c.meaning) for c in columns)],
        (
            f"<tr>{named(row.controller, shade[row.controller])}"
            + "".join(
                f"<td>{c.mean(row.figures[c.figure])}"
                f"<small>{c.interval(row.figures[c.figure])}</small></td>"
                for c in columns
            )
            + "</tr>"
            for row in rows
        ),
    )


def _chooser(names: list[str], reference: str) -> str:
    """Let the reader choose a run."""
    ordered = sorted(names, key=lambda name: name == reference)
    options = "".join(f"<option>{escape(name)}</option>" for name in ordered)
    return f"""<div class="choose">
<label>Controller <select id="controller">{options}</select></label>
<span class="switch" role="group" aria-label="Which run">
<button type="button" value="against" aria-pressed="true">against {escape(reference)}</button>
<button type="button" value="alone" aria-pressed="false">alone</button></span>
</div>"""


def _listed(names: list[str]) -> str:
    """List names as a sentence does."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
