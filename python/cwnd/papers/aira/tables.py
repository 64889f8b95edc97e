"""Claims and tables that several exhibits of the AIRA paper share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd.papers.aira_measures import column
from cwnd.papers.aira_networks import AIMD, CHOICES, FULL
from cwnd.papers.claims import Claim, alike, at_least, less, number
from cwnd.papers.figure import Table
from cwnd.stats import estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd.papers.aira_measures import Row

HEADS = {
    "goodput": "goodput, KB/s",
    "retransmissions": "retransmissions, packets",
    "fairness": "fairness",
    "alpha": "α-fairness",
}
"""What Tables 3 and 4 print."""


def printed_claims(
    printed: Mapping[str, Mapping[str, str]],
    rows: Mapping[str, Sequence[Row]],
    why: Mapping[str, str],
    exhibit: str,
) -> list[Claim]:
    """Hold a table's numbers against runs.

    Parameters
    ----------
    printed
        The figures of each law, as printed.
    rows
        What was measured of each law, one a seed.
    why
        Reasons, by exhibit, law and figure.
    exhibit
        The exhibit's name.

    Returns
    -------
    list of Claim
        One a number; AIMD's α-fairness is 1 by its definition and left out.
    """
    return [
        number(
            f"{law_title(law)}: {HEADS[figure]}",
            expected,
            column(rows[law], figure),
            why=why.get(f"{exhibit} {law_title(law)} {figure}", ""),
        )
        for law, figures in printed.items()
        for figure, expected in figures.items()
        if (law, figure) != (AIMD, "alpha")
    ]


def increase_claims(rows: Mapping[tuple[str, int], Sequence[Row]]) -> list[Claim]:
    """Claim what section 3 says of Table 1: a costs retransmissions and gains no goodput.

    Parameters
    ----------
    rows
        One for each seed, by the name of the row and the number of flows.
    """
    claims = []
    names = list(dict.fromkeys(name for name, _ in rows if name.startswith("a = ")))
    for flows in (2, 4):
        by_a = np.array([column(rows[name, flows], "retransmissions") for name in names])
        claims.append(
            at_least(
                f"{flows} flows: the higher a, the more is retransmitted; the smallest step from "
                "one a to the next, packets",
                0.0,
                (by_a[:-1] - by_a[1:]).min(axis=0),
                published="the higher the Additive Increase factor, the more the retransmission "
                "effort",
            )
        )
        fast, slow = (column(rows[name, flows], "goodput") for name in ("a = 2", "a = 0.2"))
        claims.append(
            alike(
                f"{flows} flows: goodput at a = 2 over that at a = 0.2",
                np.divide(fast, slow),
                published="no goodput performance gain",
            )
        )
    two, four = (
        np.array([column(found, "retransmissions") for (_, n), found in rows.items() if n == flows])
        for flows in (2, 4)
    )
    growth = 100 * ((four / two).mean(axis=0) - 1)
    text = "more retransmissions with 4 flows than with 2, mean of the rows, %"
    return [*claims, number(text, "≈160", growth)]


def order_claims(
    aimd: Mapping[str, Sequence[float]],
    aira: Mapping[str, Sequence[float]],
    why: Mapping[str, str],
    exhibit: str,
    of: str = "",
) -> list[Claim]:
    """Claim what the paper says of both of its comparisons: AIRA improves all three figures.

    Parameters
    ----------
    aimd, aira
        Figures of each law, one a seed.
    why
        Reasons, by exhibit and figure.
    exhibit
        The exhibit's name.
    of
        What the figures are of.
    """
    return [
        less(
            f"goodput, KB/s{of}: AIMD against AIRA",
            aimd["goodput"],
            aira["goodput"],
            published="AIRA increases the goodput",
            why=why.get(f"{exhibit} goodput", ""),
        ),
        less(
            f"retransmissions{of}: AIRA against AIMD",
            aira["retransmissions"],
            aimd["retransmissions"],
            published="AIRA retransmits less",
            why=why.get(f"{exhibit} retransmissions", ""),
        ),
        less(
            f"fairness{of}: AIMD against AIRA",
            aimd["fairness"],
            aira["fairness"],
            published="AIRA increases the fairness",
            why=why.get(f"{exhibit} fairness", ""),
        ),
    ]


def columns(rows: Iterable[Row]) -> dict[str, list[float]]:
    """Turn rows into columns.

    Parameters
    ----------
    rows
        One for each seed.
    """
    kept = list(rows)
    return {figure: column(kept, figure) for figure in HEADS}


def means(
    rows: Mapping[tuple[str, int], Sequence[Row]], law: str, sizes: Iterable[int]
) -> dict[str, list[float]]:
    """Average each figure over the numbers of flows, seed by seed.

    Parameters
    ----------
    rows
        One for each seed, by law and number of flows.
    law
        The law.
    sizes
        The numbers of flows.
    """
    every = [columns(rows[law, n]) for n in sizes]
    return {
        figure: [float(x) for x in np.mean([by[figure] for by in every], axis=0)]
        for figure in HEADS
    }


def rows_table(
    name: str,
    title: str,
    printed: Mapping[str, Mapping[str, str]],
    rows: Mapping[str, Sequence[Row]],
) -> Table:
    """Put what is printed above what was measured.

    Parameters
    ----------
    name, title
        Of the table.
    printed
        The figures of each law, as printed; some laws may have none.
    rows
        What was measured of each law, one a seed.
    """
    cells: list[list[str | float]] = []
    for law, found in rows.items():
        if law in printed:
            cells.append(
                [f"{law_title(law)}, printed", *(printed[law][figure] for figure in HEADS)]
            )
        measured = (estimate(column(found, figure)) for figure in HEADS)
        cells.append(
            [f"{law_title(law)}, {law}", *(f"{e.mean:.4g} ± {e.half_width:.2g}" for e in measured)]
        )
    return Table(name, title, ["", *HEADS.values()], cells)


def sensitivity_claims(
    rows: Mapping[str, Mapping[str, Sequence[Row]]], why: Mapping[str, str]
) -> list[Claim]:
    """Claim that no free choice matters, each by the value that is farthest from the paper's.

    Parameters
    ----------
    rows
        One for each seed, by scenario and specification.
    why
        Reasons, by ``sensitivity`` and what is chosen.
    """
    claims = []
    for name, by_law in rows.items():
        for what, (paper, laws) in CHOICES.items():
            for figure in ("fairness", "retransmissions"):
                base = np.array(column(by_law[paper], figure))
                ratios = {v: column(by_law[law], figure) / base for v, law in laws.items()}
                far = {abs(float(np.log(r.mean()))): value for value, r in ratios.items()}
                worst = far[max(far)]
                why.get(f"sensitivity {what}", "")
                text = f"{name}, {what}: {figure} at {worst}, the farthest, over the paper's choice"
                claims.append(
                    alike(
                        text,
                        ratios[worst],
                        published="left open",
                        why=why.get(f"sensitivity {what}", ""),
                    )
                )
    return claims


def law_title(law: str) -> str:
    """Say which of the two a law is."""
    return "AIMD" if law == AIMD else "AIRA, all rules" if law == FULL else "AIRA"
