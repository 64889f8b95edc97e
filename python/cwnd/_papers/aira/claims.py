"""Claims and figures of several exhibits of the AIRA paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.figure import Curve, Figure, Panel, sweep
from cwnd._papers.grades import less
from cwnd.stats import POSITIVE, UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd._papers.aira.measures import Row, Traced
    from cwnd._papers.exhibit import Lab

COLUMNS = {
    "goodput": ("goodput, KB/s", POSITIVE),
    "retransmissions": ("retransmissions, packets", POSITIVE),
    "fairness": ("fairness", UNIT),
    "alpha": ("α-fairness", UNIT),
}
"""Columns of Tables 3 and 4, with the ranges of their values."""


def column(rows: Iterable[Row], name: str) -> list[float]:
    """Return one quantity of each row."""
    return [row[name] for row in rows]


def by_option(lab: Lab, rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the fairness that the trial's option chooses."""
    return [{**row, "fairness": row[lab.option("fairness", "fairness")]} for row in rows]


def orders(
    lab: Lab, aimd: Sequence[Row], aira: Sequence[Row], *, fairer: bool = True, **of: object
) -> None:
    """Claim that AIRA has less congestion and more goodput than AIMD, and is fairer."""
    for key, smaller, larger, name in (
        ("retransmits-less", aira, aimd, "retransmissions"),
        ("fewer-events", aira, aimd, "events"),
        ("delivers-more", aimd, aira, "goodput"),
        ("fairer", aimd, aira, "fairness"),
    ):
        if fairer or key != "fairer":
            lab.claim(key, less(column(smaller, name), column(larger, name)), **of)


def table_cells(lab: Lab, rows: Mapping[str, Sequence[Row]]) -> None:
    """Add claims for the cells of Table 3 or 4, and for ns-2's values."""
    found = {
        law: {head: column(by, key) for key, (head, _) in COLUMNS.items()}
        for law, by in rows.items()
    }
    # The α-fairness of AIMD is 1 by definition.
    del found["AIMD"]["α-fairness"]
    within = dict(COLUMNS.values())
    lab.cells("rows", found, within)
    lab.cells("ns-2", {"AIMD in ns-2": found["AIMD"]}, within, kind="ns-2")


def mean_rows(rows: Mapping[tuple[str, int], Sequence[Row]], law: str) -> list[Row]:
    """Return the mean over the numbers of flows, for each run."""
    runs = zip(*(found for (name, _), found in rows.items() if name == law), strict=True)
    return [{key: float(np.mean(column(run, key))) for key in run[0]} for run in runs]


def sweep_figure(title: str, rows: Mapping[tuple[str, int], Sequence[Row]]) -> Figure:
    """Draw the columns of Table 3 over the number of flows, by law."""
    panels = []
    for letter, (key, (head, within)) in zip("abcd", COLUMNS.items(), strict=True):
        curves = sweep({case: column(found, key) for case, found in rows.items()}, within)
        limits = (0.0, 1.05) if within == UNIT else None
        if key == "goodput":
            every = [row[key] for found in rows.values() for row in found]
            limits = (0.97 * min(every), 1.01 * max(every))
        title_ = f"({letter}) {head.partition(',')[0]}"
        panels.append(Panel("flows", head, curves, title_, y_limits=limits))
    return Figure(title, panels)


def increase_figure(
    title: str, run: Traced, labels: Sequence[str], spans: Iterable[tuple[float, float]]
) -> Figure:
    """Draw the additive increase of each flow while it is active, over time in seconds."""
    curves = []
    for label, a, (begin, end) in zip(labels, run.increases, spans, strict=True):
        there = (run.time >= begin) & (run.time <= end)
        curves.append(Curve(label, run.time[there], a[there], "steps"))
    panel = Panel("time, s", "additive increase a, packets", curves, y_limits=(0, 1.05))
    return Figure(title, [panel])
