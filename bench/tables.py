"""Markdown tables, as in docs/performance.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, with the first column left-aligned and the others right-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    print(f"\n### {title}\n")
    for cells in (heads, rule, *rows):
        first, *rest = zip(cells, widths, strict=True)
        line = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
        print(f"| {' | '.join(line)} |")
    print(flush=True)


def amount(size: float) -> str:
    """Format a number of bytes with its unit."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} B"
