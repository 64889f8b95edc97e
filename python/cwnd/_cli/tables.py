"""Tables for the terminal."""

from __future__ import annotations

import math
import sys
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from cwnd._base.printable import printable
from cwnd._runs.conventions import conventions_text
from cwnd._runs.text import caveats, join_parts
from cwnd._show.sheets import (
    MAX_ROWS,
    against_columns,
    agreement_text,
    alone_columns,
    application_sheet,
    counts_text,
    flow_sheet,
    fork_sheet,
    length_text,
    link_sheet,
    metric_items,
    network_text,
    repeated_text,
    run_text,
)
from cwnd.metrics.catalog import short
from cwnd.units import counted, format_size, format_time

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from rich.console import ConsoleOptions, JustifyMethod, RenderableType

    from cwnd._base.records import JsonObject
    from cwnd._cli.doctor import Finding
    from cwnd._controllers.registry import Algorithm
    from cwnd._runs.fork import Fork
    from cwnd._runs.repeated import Repeated
    from cwnd._runs.result import Result
    from cwnd._runs.scenario_keys import KeyTable
    from cwnd._search.search import Search
    from cwnd._show.sheets import Sheet
    from cwnd._sweeps.estimate import SweepEstimate
    from cwnd._sweeps.manifest import Verification
    from cwnd._sweeps.query import Result as QueryResult
    from cwnd._sweeps.query import Table as SweepTable
    from cwnd._sweeps.sweep import Sweep
    from cwnd._tasks.agreement.outcome import Agreement
    from cwnd._tasks.comparison.outcome import Comparison, Row
    from cwnd._tasks.evaluation.card import Card
    from cwnd.metrics.catalog import Figure
    from cwnd.model.behaviour import Behaviour

MAX_COUNTED = 1_000_000
"""Rows of a query's result after which the terminal does not show their number."""

_VERDICT_STYLES = {
    "agrees": "green",
    "close": "green",
    "depends": "yellow",
    "differs": "red",
    "undecided": "yellow",
}
"""Colours of the verdicts on a claim."""

_GRADE_STYLES = {
    "meets": "green",
    "concern": "yellow",
    "undecided": "dim",
    "fails": "red",
    "does not apply": "dim",
}
"""Colours of the grades of a report card."""

_AGREEMENT_STYLES = {"agrees": "green", "undecided": "yellow", "differs": "red", "unknown": "dim"}
"""Colours of the verdicts on agreement."""

_KINDS = {
    "window": "A law for the window.",
    "rate": "A law for the sending rate.",
    "whole": "A whole controller.",
}
"""Kinds of controllers, as sentences."""

_WIDTH = 120
"""Width of the output in columns if it is not a terminal."""

_TEXT_WIDTH = 40
"""Width from which text may be wrapped to make room for another column."""


def print_comparison(comparison: Comparison) -> None:
    """Print the verdicts and their figures."""
    console = _console()
    console.print(Text(network_text(comparison.network), style="dim"))
    _print_caveats(console, comparison.results)
    _print_estimates(console, "Each alone", comparison.rows_alone, alone_columns(comparison))
    title = f"Half and half against {comparison.reference}"
    _print_estimates(console, title, comparison.rows_against, against_columns(comparison))
    if comparison.rows_pairs:
        _print_shares(console, comparison)
    console.print()
    for verdict in comparison.verdicts:
        console.print(Text(verdict.controller, style="bold"))
        console.print(Padding(Text(verdict.sentence), (0, 0, 0, 2)))


def print_result(result: Result) -> None:
    """Print the figures of a run."""
    console = _console()
    console.print(Text(run_text(result), style="dim"))
    _print_caveats(console, [result])
    document = result.to_json_without_groups() | {"groups": result.group_rows()}
    _print_figures(console, document)


def print_fork(fork: Fork) -> None:
    """Print the figures of both futures of a run, and their differences."""
    console = _console()
    console.print(Text(run_text(fork.unchanged), style="dim"))
    _print_caveats(console, [fork.unchanged, fork.changed])
    heads, rows = fork_sheet(fork)
    table = _table(f"From {format_time(fork.at_s)} on", heads)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_repeated(repeated: Repeated) -> None:
    """Print the means and intervals of the figures of several runs."""
    console = _console()
    results = repeated.results
    console.print(Text(repeated_text(results), style="dim"))
    _print_caveats(console, results)
    _print_figures(console, repeated.estimates())


def _print_figures(console: Console, document: JsonObject) -> None:
    """Print the tables of a run's document with its ``groups``, and the metrics of the run."""
    from cwnd._show.transfer_sheet import group_sheet, transfer_sheet

    sheets = [
        ("Flows", flow_sheet(document), {0, 8}),
        ("Groups of flows", group_sheet(document["groups"]), {0}),
        ("Applications", application_sheet(document), ()),
        ("Links", link_sheet(document), {0}),
        ("Transfers by size", transfer_sheet(document), ()),
    ]
    for title, sheet, left in sheets:
        if sheet is not None and sheet.rows:
            _print_sheet(console, title, sheet, left)
    console.print()
    for name, value, remark in metric_items(document["metrics"]):
        console.print(Text(f"{name}: {value} ({remark})"))


def print_agreement(agreement: Agreement) -> None:
    """Print the figures of each backend side by side, with the verdicts."""
    console = _console()
    backends, first = list(agreement.results), agreement.runs[0]
    repeat = len(agreement.results[backends[0]])
    console.print(
        Text(
            join_parts(
                f"{agreement.title}: {agreement_text(backends)}",
                f"{repeat} × {length_text(first.duration_s, first.warmup_s)}",
                conventions_text(agreement.conventions),
            ),
            style="dim",
        )
    )
    _print_caveats(console, agreement.runs)
    table = _table("", ("", *backends, *(f"{on} and {backends[0]}" for on in backends[1:])))
    for column in table.columns[1 : 1 + len(backends)]:
        column.justify = "right"
    of = ""
    for row in agreement.rows:
        if row.of != of:
            of = row.of
            table.add_row("")
            table.add_row(Text(of, style="bold"))
        table.add_row(
            f"  {row.title}",
            *(
                _stacked(row.kind.mean(row.estimates[on]), row.kind.interval(row.estimates[on]))
                for on in backends
            ),
            *(
                Text(verdict.text, style=_AGREEMENT_STYLES[verdict.word])
                for verdict in row.verdicts
            ),
        )
    console.print(table)
    console.print()
    for line in counts_text(agreement.counts):
        console.print(Text(line, style="bold"))


def print_sweep(sweep: Sweep) -> None:
    """Print the number of runs in a data set, and the errors of failed ones."""
    console = _console()
    document = sweep.to_json()
    before = document["runs"] - document["made"]
    there = f", {before:,} of them before" if before else ""
    made = f"{counted(document['runs'], 'run')} in {document['out']}{there}"
    console.print(Text(join_parts(made, conventions_text(document["conventions"]))))
    if document["failed"]:
        console.print(Text(f"{counted(document['failed'], 'run')} failed:", style="red"))
    for error in document["errors"]:
        console.print(Text(f"  {error['runs']:,} × {printable(error['error'])}"))


def print_search(found: Search) -> None:
    """Print the weaknesses that a search found, with their files."""
    console = _console()
    console.print(Text(found.summary))
    for one, file in found.pairs:
        console.print(Text(f"{file.name}: {one.objective.meaning}", style="bold"))
        console.print(Text(f"  {one.network_sentence}"))
        console.print(Text(f"  {one.objective.metric}: {one.evidence}"))
        console.print(Text(f"  fails {one.threshold}"))
        for error in one.errors:
            console.print(Text(f"  error: {error}"))
        if one.confirmation is not None:
            console.print(Text(f"  {one.confirmation_text}"))
    if not found.findings:
        tried = f"{counted(len(found.explored), 'network')} tried"
        console.print(Text(f"{tried}: a larger --budget tries more, another --objective others"))


def print_estimate(found: SweepEstimate) -> None:
    """Print the missing runs, the time and the size that `cwnd._sweeps.estimate.estimate` found."""
    console = _console()
    missing = counted(found["missing"], "run")
    console.print(Text(f"{found['present']:,} of {found['runs']:,} runs are in {found['out']}"))
    core_s, time_s = found["core_s"], found["time_s"]
    if not found["missing"] or core_s is None or time_s is None:
        console.print(Text("no run is missing"))
        return
    cores = counted(found["cores"], "core")
    time = f"about {_long_time(time_s)} on {cores}"
    if found["cores"] > 1:
        time += f" ({_long_time(core_s)} on one)"
    size = "" if found["bytes"] is None else f", {format_size(found['bytes'])} on the disk"
    sampled = f" (from {counted(found['sampled'], 'run')})" if found["sampled"] else ""
    console.print(Text(f"{missing} to make: {time}{size}{sampled}"))


def _long_time(seconds: float) -> str:
    """Format a time with two digits, in minutes or hours if it is long."""
    for factor, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * factor:
            return f"{float(f'{seconds / factor:.2g}'):,g} {unit}"
    return format_time(seconds, 2)


def print_verification(found: Verification) -> None:
    """Print the damaged parts that `cwnd._sweeps.manifest.verify` found."""
    console = _console()
    whole = f"{counted(found['runs'], 'run')} in {counted(found['parts'], 'part')}"
    console.print(Text(f"{whole} in {found['out']} match their checksums"))
    damaged = found["damaged"]
    if damaged:
        again = counted(sum(part["runs"] for part in damaged), "run")
        many = counted(len(damaged), "damaged part")
        console.print(Text(f"{many}: the sweep's command makes {again} again", style="red"))
    for part in damaged:
        console.print(Text(f"  {part['part']}: {part['problem']}"))
    if found["unlisted"]:
        console.print(Text(f"{counted(len(found['unlisted']), 'file')} of no part:"))
    for name in found["unlisted"]:
        console.print(Text(f"  {name}"))


def print_cards(cards: Sequence[Card], changes: Sequence[str]) -> None:
    """Print the grades by section, the worst findings, and changes since an older card."""
    from cwnd._tasks.evaluation.card import SECTIONS

    console = _console()
    for card in cards:
        columns = ("section of RFC 9743", "grade", "coverage", "worst finding")
        table = _table(card.title, columns)
        worst = {result.test.section: result for result in reversed(card.by_severity())}
        for section, grade in card.sections.items():
            of = worst[section]
            shown = of.finding if grade in ("fails", "concern") or of.problem else ""
            shade = Text(grade, style=_GRADE_STYLES[grade])
            coverage = str(card.coverage(section))
            name = f"{section} {SECTIONS[section]}"
            table.add_row(name, shade, coverage, shown)
        console.print(table)
        console.print(Text(f"{card.summary}\n"))
        if card.found is not None:
            console.print(Text("Found by search", style="bold"))
            print_search(card.found)
            console.print(Text(f"in {printable(str(card.found.out))}\n"))
    for change in changes:
        console.print(Text(printable(change)))


def print_tests(tests: Sequence[JsonObject]) -> None:
    """Print the tests of an evaluation, of ``cwnd evaluate --list --json``, one row each."""
    table = _table("", ("section", "test", "networks", "quick", "title"))
    for column in table.columns[:-1]:
        column.no_wrap = True
    for test in tests:
        counts = str(len(test["networks"])), str(len(test["quick"]))
        table.add_row(test["section"], test["id"], *counts, test["title"])
    _console().print(table)


def print_networks(tests: Sequence[JsonObject]) -> None:
    """Print the networks of some tests, one row each, as ``--cell`` accepts them."""
    from cwnd._experiments.label import ONLY

    table = _table("", ("test", "network", "quick"))
    table.columns[0].no_wrap = True
    for test in tests:
        for network in test["networks"]:
            quick = "quick" if network in test["quick"] else ""
            table.add_row(test["id"], network or ONLY, quick)
    _console().print(table)


def print_reproduction(document: JsonObject) -> None:
    """Print the papers' main claims and the verdicts on each exhibit."""
    console = _console()
    for paper in document["papers"]:
        if paper["headlines"]:
            console.print(Text(paper["title"], style="bold"))
            for headline in paper["headlines"]:
                verdict = headline["verdict"]
                line = Text(f"  {verdict:<10}", style=_VERDICT_STYLES[verdict])
                console.print(line.append(headline["claim"], style="default"))
                console.print(Padding(Text(headline["reason"], style="dim"), (0, 0, 0, 12)))
            console.print()
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("exhibit", no_wrap=True)
    table.add_column("")
    table.add_column("TCP conventions")
    for head in (*_VERDICT_STYLES, "seconds"):
        table.add_column(head, justify="right")
    for paper in document["papers"]:
        for exhibit in paper["exhibits"]:
            verdicts = [claim["verdict"] for claim in exhibit["claims"]]
            table.add_row(
                f"{paper['paper']} {exhibit['id']}",
                exhibit["title"],
                ", ".join(exhibit["scenario"]["conventions"]),
                *(str(verdicts.count(verdict) or "") for verdict in _VERDICT_STYLES),
                f"{exhibit['seconds']:.1f}",
            )
    console.print(table)
    console.print()
    for title, counts in (("Claims of the papers", "summary"), ("Our checks", "checks")):
        found = document[counts]
        words = ", ".join(f"{found[verdict]} {verdict}" for verdict in _VERDICT_STYLES)
        console.print(Text(f"{title}: {words}", style="bold"))


def print_algorithms(algorithms: Sequence[Algorithm]) -> None:
    """Print a list of controllers."""
    table = _table("", ("name", "parameters", "source"))
    for algorithm in algorithms:
        parameters = ", ".join(f"{p.name}={p.default}" for p in algorithm.parameters if p.default)
        table.add_row(algorithm.name, parameters, algorithm.source)
    _console().print(table)


def print_algorithm(algorithm: Algorithm) -> None:
    """Print the description of a controller."""
    console = _console()
    console.print(Text(f"{algorithm.name}: {algorithm.title}", style="bold"))
    if algorithm.summary:
        console.print(Text(algorithm.summary))
    console.print()
    for equation in algorithm.equations:
        console.print(Padding(Text(equation), (0, 0, 0, 4)))
    if algorithm.equations:
        console.print()
    console.print(Text(f"{_KINDS[algorithm.kind]} {algorithm.source}".rstrip()))
    for deviation in algorithm.deviations:
        console.print(Text(f"Deviation: {deviation}"))
    if algorithm.parameters:
        console.print()
        table = _table("", ("parameter", "default", "range", "meaning"))
        for parameter in algorithm.parameters:
            name = parameter.name
            if parameter.symbol and parameter.symbol != name:
                name += f" ({parameter.symbol})"
            allowed = " | ".join(parameter.choices) or parameter.range
            table.add_row(name, parameter.default, allowed, parameter.full_meaning)
        console.print(table)
    _print_states(algorithm)


def _print_states(algorithm: Algorithm) -> None:
    """Print the states and the hash of a law in a file."""
    console = _console()
    if algorithm.states:
        console.print()
        table = _table("", ("state", "meaning"))
        for state in algorithm.states:
            table.add_row(state.name, state.meaning)
        console.print(table)
    if algorithm.hash is not None:
        console.print()
        console.print(Text(f"hash {algorithm.hash}"))


def print_key_tables(tables: Sequence[KeyTable]) -> None:
    """Print the names of the tables of scenario files."""
    table = _table("", ("table", "kind", "meaning"))
    for each in tables:
        table.add_row(each.name, each.kind, each.meaning)
    _console().print(table)


def print_keys(tables: Sequence[KeyTable]) -> None:
    """Print the keys of a table of scenario files, or of each kind of it."""
    console = _console()
    for number, each in enumerate(tables):
        if number:
            console.print()
        title = f"{each.name}, kind {each.kind}" if each.kind else each.name
        console.print(Text(title, style="bold"))
        console.print(Text(each.meaning))
        table = _table("", ("key", "value", "default", "meaning"))
        for key in each.keys:
            if not (each.kind and key.name == "kind"):
                default = "required" if key.required else key.default
                table.add_row(key.name, key.type, default, key.meaning)
        console.print(table)


def print_behaviour(found: Behaviour) -> None:
    """Print a law in the models that need nothing else."""
    console = _console()
    if found["alone"] is not None:
        table = _table(
            "Alone, with random losses", ("loss", "mean window", "CoV", "rate, packets/s")
        )
        for row in found["alone"]:
            numbers = (row["p"], row["mean_window"], row["cv"], row["rate_pps"])
            table.add_row(*(f"{number:.4g}" for number in numbers))
        console.print(table)
    if found["loss_to_loss"] is not None:
        columns = ("window at the loss", "after it", "rounds to the next", "packets")
        table = _table("From loss to loss", columns)
        for tooth in found["loss_to_loss"]:
            table.add_row(
                f"{tooth['at_loss']:.4g}",
                f"{tooth['after']:.4g}",
                f"{tooth['rounds']:.1f}",
                f"{tooth['packets']:.0f}",
            )
        console.print(table)
    step = found["in_step"]
    used, shared = step["rounds_to_use_the_link"], step["rounds_to_share_it"]
    if math.isinf(used):
        words = "they do not use it within the model's limit"
    elif math.isinf(shared):
        words = f"{used:.0f} rounds to use it; they do not share it within the model's limit"
    else:
        words = f"{used:.0f} rounds to use it, {shared:.0f} more to share it"
        words += f" ({step['epochs']:.0f} losses)"
    console.print(f"In step, two flows from 10 and 30 packets on a link of 100: {words}")
    for reason in found["reasons"]:
        console.print(Text(f"not shown: {reason}"))
    console.print(f"The round-trip time is {format_time(found['rtt_s'])}.")


def print_packaged(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the names, kinds and titles of packaged scenarios and plans."""
    table = _table("", ("name", "kind", "title"))
    for row in rows:
        table.add_row(row["name"], row["kind"], row["title"])
    _console().print(table)


def print_findings(findings: Sequence[Finding]) -> None:
    """Print the results of checking dependencies."""
    table = _table("", ("", "name", "detail", "purpose"))
    for finding in findings:
        mark = Text("yes", style="green") if finding.present else Text("no", style="yellow")
        table.add_row(mark, finding.name, finding.detail, finding.purpose)
    _console().print(table)


def print_rows(result: QueryResult) -> None:
    """Print the result of a query: the first rows, and the columns that fit on the terminal."""
    import pyarrow as pa

    from cwnd._sweeps.query import without_decimals

    read, parts = 0, [result.schema.empty_table()]
    for part in result:
        if read < MAX_ROWS:
            parts.append(part.slice(0, MAX_ROWS - read))
        read += part.num_rows
        if read > MAX_COUNTED:
            break
    shown = without_decimals(pa.concat_tables(parts))
    names = list(map(printable, shown.column_names))
    columns = [_column(column.to_pylist()) for column in shown.columns]
    widths = [
        max(len(name), *(min(len(cell), _TEXT_WIDTH) for cell in cells)) if cells else len(name)
        for name, (cells, _) in zip(names, columns, strict=True)
    ]
    console = (
        _console() if sys.stdout.isatty() else _console(max(_WIDTH, sum(widths) + 2 * len(widths)))
    )
    fitting = max(sum(end <= console.width + 2 for end in accumulate(w + 2 for w in widths)), 1)
    table = _table("", ())
    for name, (_, numeric) in zip(names[:fitting], columns, strict=False):
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
    for cells in zip(*(cells for cells, _ in columns[:fitting]), strict=True):
        table.add_row(*cells)
    console.print(table)
    more = read - shown.num_rows
    if not read:
        console.print(Text("no rows", style="dim"))
    if more:
        many = "more rows" if read > MAX_COUNTED else counted(more, "more row")
        console.print(Text(f"… {many}: --csv prints all", style="dim"))
    if fitting < len(widths):
        left_out = ", ".join(names[fitting:])
        console.print(Text(f"… without the columns {left_out}", style="dim"))


def print_sweep_tables(tables: Sequence[SweepTable], failed: int) -> None:
    """Print the tables of a sweep's data set."""
    console = _console()
    for listed in tables:
        note = f", {failed:,} failed" if listed.name == "runs" else ""
        console.print(Text(f"{listed.name}: {listed.rows:,} rows{note}", style="bold"))
        table = _table("", ("column", "type"))
        for name, kind in listed.columns:
            table.add_row(f"  {printable(name)}", printable(kind))
        console.print(table)
        console.print()


def _column(values: Sequence[object]) -> tuple[list[str], bool]:
    """Format the cells of a column, with six significant digits; return whether it is numeric."""
    known = [value for value in values if value is not None]
    numeric = bool(known) and all(type(value) in {int, float} for value in known)
    sizes = [abs(value) for value in known if isinstance(value, float) and value]
    style = ".6g"
    # Equal decimals throughout the column, unless small values would lose their digits.
    if sizes and math.isfinite(sum(sizes)) and max(sizes) < min(1e9, 1e4 * min(sizes)):
        style = f".{max(5 - math.floor(math.log10(max(sizes))), 0)}f"
    return [_cell(value, style) for value in values], numeric


def _cell(value: object, style: str) -> str:
    """Format a value of a query's result."""
    if value is None:
        return "–"
    return f"{value:{style}}" if isinstance(value, float) else printable(str(value))


def _print_estimates(
    console: Console, title: str, rows: Sequence[Row], columns: Sequence[Figure]
) -> None:
    """Print means, each above its interval."""
    cells = [
        (
            f"{column.title}\n{column.unit}",
            [
                _stacked(column.mean(figure), column.interval(figure))
                for figure in (row.figures[column.name] for row in rows)
            ],
        )
        for column in columns
    ]
    _print_wide(console, title, ("controller", [row.controller for row in rows]), cells)


def _print_shares(console: Console, comparison: Comparison) -> None:
    """Print the share of each controller against each other one."""
    names = [row.controller for row in comparison.rows_alone]
    share = short("share")
    cells = [
        (
            f"{number}\n",
            [
                _stacked(share.mean(found), share.interval(found)) if found else Text("")
                for found in (comparison.share_of.get((name, other)) for name in names)
            ],
        )
        for number, other in enumerate(names, 1)
    ]
    numbered = [f"{number} {name}" for number, name in enumerate(names, 1)]
    title = "Share of the row against the column"
    _print_wide(console, title, ("controller", numbered), cells)


def _print_wide(
    console: Console,
    title: str,
    first: tuple[str, Sequence[str]],
    columns: Sequence[tuple[str, Sequence[Text]]],
    left: Container[int] = (),
) -> None:
    """Print a table in parts whose columns fit the console, each with the first column.

    A part begins with an empty line. ``left`` are the indices of left-aligned columns.
    """
    label, names = first
    own = min(max(map(len, (*names, label))), console.width // 3)
    parts: list[list[int]] = []
    widths = []
    room = 0
    for i, (head, cells) in enumerate(columns):
        lines = [line for text in (head, *map(str, cells)) for line in text.split("\n")]
        widths.append(min(max(map(len, lines)), console.width - own - 2))
        if not parts or room < 2 + widths[i]:
            parts.append([])
            room = console.width - own
        parts[-1].append(i)
        room -= 2 + widths[i]
    for part in parts:
        table = _table(title if part is parts[0] else "", ())
        table.add_column(label, width=own)
        for i in part:
            justify: JustifyMethod = "left" if i in left else "right"
            table.add_column(columns[i][0], justify=justify, width=widths[i])
        for row, name in enumerate(names):
            table.add_row(name, *(columns[i][1][row] for i in part))
        console.print()
        console.print(table)


def _stacked(mean: str, interval: str | None = None) -> Text:
    """Return a mean above its interval; a single line without one."""
    return Text(mean) if interval is None else Text.assemble(f"{mean}\n", (interval, "dim"))


def _print_sheet(console: Console, title: str, sheet: Sheet, left: Container[int]) -> None:
    """Print a table of text; columns of ``left``, the first one aside, are left-aligned."""
    label, *heads = [f"{name}\n{unit}".rstrip() for name, unit, _ in sheet.heads]
    columns = [
        (head, [_stacked(*row[i].split("\n")) for row in sheet.rows])
        for i, head in enumerate(heads, 1)
    ]
    _print_wide(console, title, (label, [row[0] for row in sheet.rows]), columns, left)
    if sheet.more:
        console.print(Text(f"and {sheet.more} more", style="dim"))


def _table(title: str, columns: Sequence[str]) -> Table:
    """Create a table without borders."""
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="dim",
    )
    for column in columns:
        table.add_column(column)
    return table


def _print_caveats(console: Console, results: Sequence[Result]) -> None:
    """Print notes on runs."""
    for line in caveats(results):
        console.print(Text(line, style="yellow"))


class _Console(Console):
    """A console for text of any origin.

    It escapes what a terminal would obey, and raises BrokenPipeError where rich would exit with
    status 1.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for text, style, control in super().render(renderable, options):
            lines = text if control else "\n".join(map(printable, text.split("\n")))
            yield Segment(lines, style, control)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _console(width: int = _WIDTH) -> Console:
    """Return a console on standard output, `width` columns wide if it is not a terminal."""
    fixed = None if sys.stdout.isatty() else width
    return _Console(highlight=False, markup=False, emoji=False, width=fixed)
