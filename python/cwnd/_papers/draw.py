"""Output of figures and tables: SVG and CSV."""

from __future__ import annotations

import csv
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from cwnd._show.colors import PALETTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.axes import Axes

    from cwnd._papers.figure import Curve, Figure, Panel, Regions, Table

PUBLISHED = "#c0212f"
"""Red, used only for published values."""

WIDTH, HEIGHT = 4.8, 3.3
"""Width and height of a panel in inches."""

LEFT, RIGHT, BOTTOM, TOP = 0.9, 0.15, 0.5, 0.3
"""Margins in inches: Matplotlib's automatic layout would double the time of a figure."""

LETTER = 0.085
"""Width of a character of an axis label in inches."""

MAX_LEGEND = 12
"""Largest number of legend entries: a longer legend hides the curves."""


def draw(figure: Figure, base: Path) -> None:
    """Write a figure as SVG and CSV; ``base`` is the path without suffix."""
    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width = WIDTH if columns > 1 else 1.4 * WIDTH
    canvas = Canvas(figsize=(width * columns, HEIGHT * rows))
    left, bottom = _margins(figure.panels)
    for number, panel in enumerate(figure.panels):
        row, column = divmod(number, columns)
        corner = ((column + left / width) / columns, 1 - (row + 1 - bottom / HEIGHT) / rows)
        size = (width - left - RIGHT) / width / columns, (HEIGHT - bottom - TOP) / HEIGHT / rows
        _panel(canvas, canvas.add_axes((*corner, *size)), panel)
    # With a fixed salt and without a date equal figures give equal files.
    with mpl.rc_context({"svg.hashsalt": "cwnd"}):
        canvas.savefig(f"{base}.svg", transparent=True, metadata={"Date": None})
    with Path(f"{base}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(_figure_rows(figure))


def _margins(panels: list[Panel]) -> tuple[float, float]:
    """Return the margins in inches for labels at the left and at the bottom of each panel."""
    rows = max((len(name) for panel in panels for name in panel.y_ticks), default=0)
    tilted = [panel.ticks for panel in panels if _is_tilted(panel)]
    names = max((len(name) for ticks in tilted for name in ticks), default=0)
    # A tilted label takes half of its length vertically.
    return max(LEFT, 0.45 + LETTER * rows), BOTTOM + LETTER * names / 2


def _is_tilted(panel: Panel) -> bool:
    """Test whether the labels along an axis have to be tilted."""
    return sum(map(len, panel.ticks)) > 30


def write_table(table: Table, base: Path) -> None:
    """Write a table as CSV; ``base`` is the path without suffix."""
    with Path(f"{base}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(table.rows)


def _panel(canvas: Canvas, axes: Axes, panel: Panel) -> None:
    """Draw one set of axes."""
    areas = [] if panel.regions is None else _regions(canvas, axes, panel.regions)
    following = count(len(areas))
    for curve in panel.curves:
        _curve(axes, curve, following)
    _frame(axes, panel)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    if areas or 0 < len(unique) <= MAX_LEGEND:
        axes.legend(handles=[*areas, *unique.values()], fontsize=8, framealpha=0.8)


def _frame(axes: Axes, panel: Panel) -> None:
    """Set up the axes: labels, scales, limits, and categories."""
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.title:
        # A fixed position: Matplotlib's search for a free one is slow.
        axes.set_title(panel.title, fontsize=10, y=1.0)
    if panel.x_log:
        axes.set_xscale("log")
    if panel.y_log:
        axes.set_yscale("log")
    if panel.x_limits is not None:
        axes.set_xlim(*panel.x_limits)
    if panel.y_limits is not None:
        axes.set_ylim(*panel.y_limits)
    elif not panel.y_log and panel.regions is None and axes.get_ylim()[0] > 0:
        axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    if panel.regions is None:
        axes.grid(alpha=0.2)
    if panel.ticks:
        tilt = 30 if _is_tilted(panel) else 0
        axes.set_xticks(
            range(len(panel.ticks)), panel.ticks, rotation=tilt, ha="right" if tilt else "center"
        )
    if panel.y_ticks:
        axes.set_yticks(range(len(panel.y_ticks)), panel.y_ticks)
        # The first row is at the top.
        axes.invert_yaxis()


def _curve(axes: Axes, curve: Curve, following: Iterator[int]) -> None:
    """Draw one series, in the next color by default."""
    x, y, label = curve.x, curve.y, curve.label or None
    if curve.kind == "published":
        open_: dict[str, Any] = {"markerfacecolor": "none", "markersize": 7, "zorder": 5}
        axes.plot(x, y, "D", color=PUBLISHED, label=label, **open_)
        return
    number = next(following) if curve.color is None else curve.color
    color, style = PALETTE[number % len(PALETTE)], "--" if curve.dashed else "-"
    if curve.kind == "points":
        axes.plot(x, y, "o", color=color, markersize=4, label=label)
    elif curve.kind == "steps":
        axes.step(x, y, style, where="post", color=color, linewidth=1.1, label=label)
    else:
        axes.plot(x, y, style, color=color, linewidth=1.3, label=label)
    if curve.low is None or curve.high is None:
        return
    if curve.kind == "points":
        axes.vlines(x, curve.low, curve.high, color=color, linewidth=1.5, alpha=0.7)
    else:
        axes.fill_between(x, curve.low, curve.high, color=color, alpha=0.2, linewidth=0)


def _regions(canvas: Canvas, axes: Axes, regions: Regions) -> list[Patch]:
    """Draw a map, and return its legend entries."""
    x, y = np.asarray(regions.x, dtype=float), np.asarray(regions.y, dtype=float)
    z = np.asarray(regions.z, dtype=float)
    if regions.names:
        shades = [*PALETTE[: len(regions.names)]]
        limits: dict[str, Any] = {"vmin": -0.5, "vmax": len(shades) - 0.5, "shading": "nearest"}
        colors = ListedColormap(shades)
        axes.pcolormesh(x, y, z, cmap=colors, alpha=0.55, rasterized=True, **limits)
        return [
            Patch(color=shade, alpha=0.55, label=name)
            for name, shade in zip(regions.names, shades, strict=True)
        ]
    low, high = regions.limits or (np.nanmin(z), np.nanmax(z))
    scale: dict[str, Any] = {"cmap": "viridis", "vmin": low, "vmax": high}
    mesh = axes.pcolormesh(x, y, z, shading="nearest", rasterized=True, **scale)
    canvas.colorbar(mesh, ax=axes, shrink=0.9)
    if regions.numbers:
        middle = (low + high) / 2
        center: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7}
        for (i, j), value in np.ndenumerate(z):
            ink = "white" if value < middle else "black"
            axes.text(float(x[j]), float(y[i]), f"{value:.2f}", color=ink, **center)
    return []


def _figure_rows(figure: Figure) -> Iterable[list[object]]:
    """Yield a figure's data as rows, one for each point."""
    yield ["panel", "series", "kind", "x", "y", "low", "high"]
    for number, panel in enumerate(figure.panels, 1):
        name = panel.title or str(number)
        for curve in panel.curves:
            empty = [""] * np.size(curve.x)
            sides = (curve.x, curve.y, curve.low, curve.high)
            columns = (empty if s is None else np.asarray(s, float).tolist() for s in sides)
            for point in zip(*columns, strict=True):
                yield [name, curve.label, curve.kind, *point]
        if panel.regions is not None:
            areas = panel.regions
            for y_value, row in zip(np.asarray(areas.y), np.asarray(areas.z), strict=True):
                for x_value, value in zip(np.asarray(areas.x), row, strict=True):
                    named = areas.names[int(value)] if areas.names and value == value else ""  # noqa: PLR0124
                    yield [name, named, "map", x_value, y_value, value, ""]
