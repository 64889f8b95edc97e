"""Page of one scenario on several backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._runs.conventions import conventions_facts
from cwnd._runs.text import caveats
from cwnd._show.colors import PALETTE, REFERENCE, colors
from cwnd._show.report.page import laws_of, points_of, render, run_data
from cwnd._show.sheets import PLACES, agreement_text, counts_text, warmup_text
from cwnd._tasks.agreement.outcome import NETWORK, RULE
from cwnd.metrics.catalog import FIGURES, short
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._tasks.agreement.outcome import Agreement, Row

_PANELS = (short("utilization"), FIGURES["loss_rate"], FIGURES["queue_delay_s"])


def agree_page(agreement: Agreement) -> str:
    """Create the HTML page of an agreement."""
    first = agreement.runs[0]
    backends = list(agreement.results)
    repeat = len(agreement.results[backends[0]])
    shades = colors(flow["controller"] for flow in first.measured_flows)
    columns = heads(backends)
    points = points_of(agreement.runs)
    runs = [
        run_data(run, shades, points, name=on)
        for on, each in agreement.results.items()
        for run in each
    ]
    return render(
        "agree.html",
        title=f"{agreement.title}: {agreement_text(backends)}",
        summary=[
            *((on, PLACES[on], "") for on in backends),
            *conventions_facts(agreement.conventions),
            (
                "Runs",
                f"{repeat} × {format_time(first.duration_s)}",
                warmup_text(first.warmup_s),
            ),
        ],
        caveats=caveats(agreement.runs),
        counts=counts_text(agreement.counts),
        heads=columns,
        text=range(1 + len(backends), len(columns)),
        tables=[
            (of, [cells(row, backends) for row in agreement.rows if row.of == of])
            for of in (NETWORK, *agreement.groups)
        ],
        rule=RULE,
        backends=backends,
        files=laws_of(agreement.runs),
        rerun=agreement.rerun,
        data={"figures": _figures(agreement), "runs": runs},
    )


def _figures(agreement: Agreement) -> JsonObject:
    """Collect the data of the plot of means."""
    rows = {row.kind.name: row for row in agreement.rows if row.of == NETWORK}
    shades = (REFERENCE, *PALETTE)
    return {
        "panels": [
            {"figure": each.name, "title": f"{each.title}, {each.unit}", "factor": each.factor}
            for each in _PANELS
        ],
        "rows": [
            {
                "name": on,
                "color": shades[i],
                "figures": {each.name: rows[each.name].estimates[on].to_json() for each in _PANELS},
            }
            for i, on in enumerate(agreement.results)
        ],
    }


def heads(backends: list[str]) -> list[tuple[str, str, str]]:
    """Return the column headers of a table of figures: titles, units and meanings."""
    first, *others = backends
    return [
        ("figure", "", ""),
        *((on, "", PLACES[on]) for on in backends),
        *((f"{on} and {first}", "", "Verdict by the rule below.") for on in others),
    ]


def cells(row: Row, backends: list[str]) -> list[str | tuple[str, str]]:
    """Format a figure: its mean and interval on each backend, and the verdicts."""
    kind = row.kind
    estimates = [row.estimates[on] for on in backends]
    return [
        row.title,
        *((kind.mean(value), kind.interval(value)) for value in estimates),
        *(verdict.text for verdict in row.verdicts),
    ]
