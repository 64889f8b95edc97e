"""Notebook output: HTML of objects, and summaries as frames."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from cwnd._base.extras import MissingExtraError, require

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from typing_extensions import ParamSpec

    from cwnd._controllers.registry import Algorithm
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario
    from cwnd._tasks.agreement.outcome import Agreement
    from cwnd._tasks.comparison.outcome import Comparison

    P = ParamSpec("P")

MAX_ROWS = 12
"""Rows of a table in a notebook."""


def _or_text(function: Callable[P, str]) -> Callable[P, str | None]:
    """Return None if a library of reports is missing; notebooks then show the plain text."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> str | None:
        try:
            return function(*args, **kwargs)
        except MissingExtraError:
            return None

    return call


def _html(**content: object) -> str:
    """Render the template."""
    from cwnd._show.report.page import render

    empty: dict[str, object] = {
        **dict.fromkeys(("lines", "items", "tables", "details", "mathml"), ()),
        "colors": {},
        "most": MAX_ROWS,
    }
    return render("notebook.html", **{**empty, **content})


@_or_text
def result_html(result: Result) -> str:
    """Return a run as HTML: its metrics and its flows."""
    from cwnd._runs.text import caveats
    from cwnd._show.sheets import flow_sheet, metric_items, run_text
    from cwnd._show.transfer_sheet import group_sheet

    document = result.to_json_without_groups()
    facts = [f"{term} {value}" for term, value, _ in metric_items(document["metrics"])]
    sheets = [
        ("Flows", flow_sheet(document), {1, 9}),
        ("Groups of flows", group_sheet(result.group_rows()), {1}),
    ]
    return _html(
        title=result.title,
        lines=[run_text(result), " · ".join(facts), *caveats([result])],
        tables=[
            (title, sheet.heads, sheet.rows, left)
            for title, sheet, left in sheets
            if sheet is not None and sheet.rows
        ],
    )


@_or_text
def comparison_html(comparison: Comparison) -> str:
    """Return a comparison as HTML: its verdicts and its tables."""
    from cwnd._runs.text import caveats
    from cwnd._show.colors import colors
    from cwnd._show.report.compare import cells, heads, share_tables
    from cwnd._show.sheets import against_columns, alone_columns, network_text

    reference = comparison.reference
    shades = colors([row.controller for row in comparison.rows_alone], reference)
    alone, against = alone_columns(comparison), against_columns(comparison)
    return _html(
        title=f"Comparison with {reference}",
        lines=[network_text(comparison.network), *caveats(comparison.results)],
        items=[(v.controller, shades[v.controller], v.sentence) for v in comparison.verdicts],
        tables=[
            ("Each controller alone", heads(alone), cells(alone, comparison.rows_alone), ()),
            (
                f"Half and half against {reference}",
                heads(against),
                cells(against, comparison.rows_against),
                (),
            ),
            *((*table, ()) for table in share_tables(comparison)),
        ],
        colors=shades,
    )


@_or_text
def agreement_html(agreement: Agreement) -> str:
    """Return an agreement as HTML: counts of the verdicts, and tables."""
    from cwnd._runs.text import caveats
    from cwnd._show.report.agree import cells, heads
    from cwnd._show.sheets import agreement_text, counts_text
    from cwnd._tasks.agreement.outcome import NETWORK

    backends = list(agreement.results)
    return _html(
        title=f"{agreement.title}: {agreement_text(backends)}",
        lines=[*counts_text(agreement.counts), *caveats(agreement.runs)],
        tables=[
            (
                of,
                heads(backends),
                [cells(row, backends) for row in agreement.rows if row.of == of],
                range(1 + len(backends), 2 * len(backends)),
            )
            for of in (NETWORK, *agreement.groups)
        ],
    )


@_or_text
def scenario_html(scenario: Scenario) -> str:
    """Return a scenario as HTML: its flows, and the scenario file."""
    groups = scenario.to_dict().get("flow", [])
    keys = list(dict.fromkeys(key for group in groups for key in group))
    rows = [
        [str(number), *(str(group.get(key, "")) for key in keys)]
        for number, group in enumerate(groups)
    ]
    return _html(
        title=scenario.title or "A scenario",
        tables=[
            ("Flows", [(key, "", "") for key in ["[[flow]]", *keys]], rows, range(1, len(keys) + 1))
        ],
        details=[("Scenario file", scenario.to_toml())],
    )


@_or_text
def algorithm_html(algorithm: Algorithm) -> str:
    """Return an algorithm as HTML: its law and its parameters."""
    parameters = [
        [p.name, p.symbol, p.default, p.range, p.full_meaning] for p in algorithm.parameters
    ]
    titles = ("parameter", "symbol", "default", "range", "meaning")
    return _html(
        title=f"{algorithm.name}: {algorithm.title}",
        lines=[
            *filter(None, (algorithm.summary, algorithm.source)),
            *([] if algorithm.mathml else algorithm.equations),
        ],
        mathml=algorithm.mathml,
        tables=[("", [(title, "", "") for title in titles], parameters, range(1, 5))]
        if parameters
        else [],
        details=[("Deviations", "\n".join(algorithm.deviations))] if algorithm.deviations else [],
    )


@_or_text
def algorithms_html(algorithms: list[Algorithm]) -> str:
    """Return a list of algorithms as HTML."""
    rows = [[a.name, a.kind, a.title, a.summary] for a in algorithms]
    titles = ("name", "kind", "title", "summary")
    return _html(
        title=f"{len(rows)} controllers",
        most=len(rows),
        tables=[("", [(title, "", "") for title in titles], rows, range(1, 4))],
    )


def summarize_scenario(scenario: Scenario) -> pd.DataFrame:
    """Return one row for each group of flows, with the keys that are set."""
    require("Scenario.summary", "pandas")
    groups = scenario.to_dict().get("flow", [])
    keys = list(dict.fromkeys(key for group in groups for key in group))
    columns = {key: [group.get(key, "") for group in groups] for key in keys}
    return _frame(columns, range(len(groups)), "flow")


def summarize_result(result: Result) -> pd.DataFrame:
    """Return ten figures of each flow, in readable units."""
    from cwnd._show.sheets import limits_text

    flows = result.flows
    columns = {
        "controller": flows["controller"],
        "goodput (Mbit/s)": flows["goodput_bps"] / 1e6,
        "sent (packets)": flows["packets_sent"],
        "retransmitted (packets)": flows["retransmissions"],
        "lost (%)": 100 * flows["loss_rate"],
        "cuts": flows["cuts"],
        "timeouts": flows["timeouts"],
        "RTT (ms)": 1e3 * flows["mean_rtt_s"],
        "window (packets)": flows["mean_window"],
        "limited by": [limits_text(flow["limited"]) for flow in result.record["flows"]],
    }
    return _frame(columns, list(flows.index), "flow")


def summarize_comparison(comparison: Comparison) -> pd.DataFrame:
    """Return the verdicts on each controller and the means of seven figures."""
    require("Comparison.summary", "pandas")
    from cwnd.metrics.catalog import FIGURES, short

    rows = comparison.rows_alone
    verdicts = {verdict.controller: verdict for verdict in comparison.verdicts}
    against = {row.controller: row for row in comparison.rows_against}
    words = ("fairness", "smoothness", "queue")
    columns: dict[str, list[Any]] = {
        word: [getattr(verdicts.get(row.controller), word, "reference") for row in rows]
        for word in words
    }
    columns["share"] = [
        against[row.controller].figures["share"].mean if row.controller in against else None
        for row in rows
    ]
    for figure in (
        *map(short, ("goodput_bps", "utilization")),
        short("loss_rate", "lost"),
        *(FIGURES["queue_delay_s"], short("cov_10rtt"), FIGURES["jain"]),
    ):
        means = [row.figures[figure.name].mean * figure.factor for row in rows]
        columns[figure.with_unit] = means
    return _frame(columns, [row.controller for row in rows], "controller")


def summarize_agreement(agreement: Agreement) -> pd.DataFrame:
    """Return the mean of each figure on each backend, and the verdicts."""
    require("Agreement.summary", "pandas")
    first, *others = agreement.results
    rows = agreement.rows
    columns: dict[str, list[Any]] = {"of": [row.of for row in rows]}
    for on in agreement.results:
        columns[on] = [row.estimates[on].mean * row.kind.factor for row in rows]
    for i, on in enumerate(others):
        columns[f"{on} and {first}"] = [row.verdicts[i].text for row in rows]
    return _frame(columns, [row.title for row in rows], "figure")


def _frame(columns: dict[str, Any], index: Sequence[str | int], name: str) -> pd.DataFrame:
    """Create a frame with four decimals."""
    import pandas as pd

    return pd.DataFrame(columns, index=pd.Index(list(index), name=name)).round(4)
