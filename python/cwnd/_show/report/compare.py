"""Page of a comparison."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cwnd._runs.conventions import conventions_facts
from cwnd._runs.text import caveats
from cwnd._show.chart_lines import trade_off_ranges, trade_offs
from cwnd._show.colors import colors
from cwnd._show.report.page import laws_of, points_of, render, run_data
from cwnd._show.sheets import (
    against_columns,
    alone_columns,
    changes_text,
    limit_text,
    queue_text,
    rtt_text,
    warmup_text,
)
from cwnd._tasks.comparison.verdict import RULE
from cwnd.metrics.catalog import number, short
from cwnd.units import format_rate, format_time

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._runs.networks import NetworkSummary
    from cwnd._tasks.comparison.outcome import Comparison, Row
    from cwnd.metrics.catalog import Figure


def compare_page(comparison: Comparison) -> str:
    """Create the HTML page of a comparison."""
    reference = comparison.reference
    names = [row.controller for row in comparison.rows_alone]
    shades = colors(names, reference)
    others = [name for name in names if name != reference]
    alone, against = alone_columns(comparison), against_columns(comparison)
    network, changes = comparison.network, changes_text(comparison.network)
    place = "" if network["queue"] else f" on {network['scenario']}"
    return render(
        "compare.html",
        title=f"{_join_names(others or names)} against {reference}{place}",
        network=_network(network),
        caveats=[
            *([f"Replaced values of the scenario: {changes}."] if changes else []),
            *caveats(comparison.results),
        ],
        verdicts=comparison.verdicts,
        shades=shades,
        repeat=network["repeat"],
        tables=[
            ("Each controller alone", heads(alone), cells(alone, comparison.rows_alone)),
            (
                f"Half and half against {reference}",
                heads(against),
                cells(against, comparison.rows_against),
            ),
            *share_tables(comparison),
        ],
        glossary={column.title: column.meaning for column in [*alone, *against]},
        reference=reference,
        names=sorted(
            (row.controller for row in comparison.rows_against), key=lambda name: name == reference
        ),
        files=laws_of(comparison.results),
        rerun=comparison.rerun,
        no_rerun=comparison.no_rerun,
        rule=RULE,
        data=_data(comparison, shades),
    )


def _data(comparison: Comparison, shades: dict[str, str]) -> JsonObject:
    """Collect the data of the plots."""
    against = {row.controller: row for row in comparison.rows_against}
    scale = format_time(comparison.rows_alone[0].results[0].scales[1])
    rows = [
        {
            "name": row.controller,
            "color": shades[row.controller],
            "figures": {
                name: row.figures[name].to_json() for name in ("cov_10rtt", "queue_delay_s")
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
        {"figure": "cov_10rtt", "title": f"smoothness (CoV) over {scale}", "factor": 1},
        {"figure": "queue_delay_s", "title": "queueing delay, ms", "factor": 1000},
    ]
    points = trade_offs(comparison)
    drawn = [row for row in comparison.rows_alone if row.controller in against]
    groups = (("against", comparison.rows_against), ("alone", drawn))
    most = points_of(run for _, rows in groups for row in rows for run in row.results)
    runs = [
        run_data(run, shades, most, name=row.controller, mode=mode)
        for mode, group in groups
        for row in group
        for run in row.results
    ]
    return {
        "figures": {"panels": panels, "rows": rows},
        "trade_offs": {
            "ranges": trade_off_ranges(points),
            "points": [
                {
                    "name": each.controller,
                    "color": shades[each.controller],
                    "delay": each.delay_ms,
                    "goodput": each.goodput_mbps,
                    "outline": [axis.tolist() for axis in each.outline],
                }
                for each in points
            ],
        },
        "runs": runs,
    }


def _network(network: NetworkSummary) -> list[tuple[str, str, str]]:
    """Describe the network: terms, values and remarks."""
    queue, bdp = queue_text(network), network["bdp_packets"]
    limit = "infinite"
    if math.isfinite(network["queue_limit"]):
        limit = limit_text(network)
    return [
        *([] if queue else [("Scenario", network["scenario"], network["file"] or "")]),
        (
            "Bottleneck",
            format_rate(network["rate_bps"]),
            f"{number(bdp, 0)} packets of BDP" if math.isfinite(bdp) else "",
        ),
        ("Round-trip time", rtt_text(network), "without queueing"),
        ("Queue", queue, limit) if queue else ("Queue", limit, f"at {network['bottleneck']}"),
        *(
            [("Random loss", f"{100 * network['loss']:g} %", "at the bottleneck")]
            if network["loss"]
            else []
        ),
        ("Flows", str(network["flows"]), f"of {network['packet_bytes']} bytes a packet"),
        *conventions_facts(network["conventions"]),
        (
            "Runs",
            f"{network['repeat']} × {format_time(network['duration_s'])}",
            warmup_text(network["warmup_s"]),
        ),
    ]


def heads(columns: list[Figure]) -> list[tuple[str, str, str]]:
    """Return the column headers of a table of controllers: titles, units and meanings."""
    return [("controller", "", ""), *(column.head for column in columns)]


def cells(columns: list[Figure], rows: list[Row]) -> list[list[str | tuple[str, str]]]:
    """Format means and intervals, one row for each controller."""
    return [
        [
            row.controller,
            *((c.mean(row.figures[c.name]), c.interval(row.figures[c.name])) for c in columns),
        ]
        for row in rows
    ]


def share_tables(
    comparison: Comparison,
) -> list[tuple[str, list[tuple[str, str, str]], list[list[str | tuple[str, str, float]]]]]:
    """Return the matrix of shares as a table if all pairs competed.

    A cell has the mean, the interval and the difference of the mean from 0.5.
    """
    if not comparison.rows_pairs:
        return []
    names = [row.controller for row in comparison.rows_alone]
    share = short("share")

    def cell(name: str, other: str) -> str | tuple[str, str, float]:
        found = comparison.share_of.get((name, other))
        if found is None or not math.isfinite(found.mean):
            return ""
        return share.mean(found), share.interval(found), found.mean - 0.5

    heads = [("controller", "", ""), *((name, "", f"share against {name}") for name in names)]
    rows = [[name, *(cell(name, other) for other in names)] for name in names]
    return [("Share of the row against the column", heads, rows)]


def _join_names(names: list[str]) -> str:
    """Join names as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
