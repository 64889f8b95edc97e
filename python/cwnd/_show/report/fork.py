"""Page of both futures of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._runs.conventions import conventions_facts
from cwnd._runs.text import caveats
from cwnd._show.colors import PALETTE, REFERENCE
from cwnd._show.report.page import laws_of, render
from cwnd._show.report.sides import Side, sides_data
from cwnd._show.sheets import fork_sheet
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd._runs.fork import Fork


def fork_page(fork: Fork) -> str:
    """Create the HTML page of both futures: figures, and both drawn on each other."""
    first = fork.unchanged
    results = [fork.changed, first]
    names = (fork.values_text, "unchanged")
    heads, rows = fork_sheet(fork)
    return render(
        "fork.html",
        title=first.title or "Both futures of a run",
        summary=[
            ("From", format_time(fork.at_s), fork.values_text),
            ("Length", format_time(first.duration_s), f"seed {first.seed}"),
            *conventions_facts(first.record["conventions"]),
        ],
        caveats=caveats(results),
        heads=[(head, "", "") for head in heads],
        rows=rows,
        files=laws_of(results),
        rerun=fork.rerun,
        data=sides_data(
            [
                Side(name, color, result, [(name, "solid", result.measured_flows)])
                for name, color, result in zip(names, (PALETTE[0], REFERENCE), results, strict=True)
            ]
        ),
    )
