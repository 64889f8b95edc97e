"""Claims and figures that several exhibits of the AIRA paper share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd.papers.figure import Curve, Figure, Panel
from cwnd.papers.grades import less
from cwnd.stats import POSITIVE, UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd.papers.aira.measures import Row, Traced
    from cwnd.papers.exhibit import Lab
    from cwnd.records import Series

HEADS = {
    "goodput": "goodput, KB/s",
    "retransmissions": "retransmissions, packets",
    "fairness": "fairness",
    "alpha": "α-fairness",
}
"""Columns of Tables 3 and 4."""

LIMITS = {"goodput": POSITIVE, "retransmissions": POSITIVE, "fairness": UNIT, "alpha": UNIT}
"""Values that they can take."""


def column(rows: Iterable[Row], name: str) -> list[float]:
    """Return one quantity of each row."""
    return [row[name] for row in rows]


def orders(lab: Lab, aimd: Sequence[Row], aira: Sequence[Row], **of: object) -> None:
    """Claim that AIRA retransmits less than AIMD, delivers more and is fairer."""
    lab.claim(
        "retransmits-less",
        less(column(aira, "retransmissions"), column(aimd, "retransmissions")),
        **of,
    )
    lab.claim("delivers-more", less(column(aimd, "goodput"), column(aira, "goodput")), **of)
    lab.claim("fairer", less(column(aimd, "fairness"), column(aira, "fairness")), **of)


def table_cells(lab: Lab, rows: Mapping[str, Sequence[Row]]) -> None:
    """Claim the cells of Table 3 or 4, and those of ns-2; AIMD's α-fairness is 1 by definition."""
    found = {
        name: {
            head: column(by, key)
            for key, head in HEADS.items()
            if (name, key) != ("AIMD", "alpha")
        }
        for name, by in rows.items()
    }
    within = {head: LIMITS[key] for key, head in HEADS.items()}
    lab.cells("rows", found, within)
    lab.cells("ns-2", {"AIMD in ns-2": found["AIMD"]}, within, kind="ns-2")


def mean_rows(rows: Mapping[tuple[str, int], Sequence[Row]], law: str) -> list[Row]:
    """Return the mean over the numbers of flows, run by run."""
    runs = zip(*(found for (name, _), found in rows.items() if name == law), strict=True)
    return [{key: float(np.mean(column(run, key))) for key in HEADS} for run in runs]


def sweep_figure(title: str, rows: Mapping[tuple[str, int], Sequence[Row]]) -> Figure:
    """Draw the columns of Table 3 against the number of flows, by law and number."""
    laws, sizes = (list(dict.fromkeys(case[k] for case in rows)) for k in (0, 1))
    panels = [
        Panel(
            "flows",
            head,
            [
                Curve.of_means(
                    str(law),
                    sizes,
                    [column(rows[str(law), int(n)], key) for n in sizes],
                    within=LIMITS[key],
                )
                for law in laws
            ],
            f"({letter}) {head.partition(',')[0]}",
            y_limits=(0.0, 1.05) if LIMITS[key] == UNIT else None,
        )
        for letter, (key, head) in zip("abcd", HEADS.items(), strict=True)
    ]
    return Figure(title, panels)


def increase_figure(
    title: str, run: Traced, labels: Sequence[str], spans: Iterable[tuple[float, float]], name: str = ""
) -> Figure:
    """Draw the additive increase of each flow over its time in the run."""
    curves = []
    for label, a, (begin, end) in zip(labels, run.increases, spans, strict=True):
        there: Series = (run.time >= begin) & (run.time <= end)
        curves.append(Curve(label, run.time[there], a[there], "steps"))
    panel = Panel("time, s", "additive increase a, packets", curves, y_limits=(0, 1.05))
    return Figure(title, [panel], name=name)
