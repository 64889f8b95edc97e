"""What the pages have in common: frame, tables, series fit for a plot."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from html import escape
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cwnd import metrics
from cwnd.colors import shades
from cwnd.result import jsonable
from cwnd.units import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd.records import FlowRecord, JsonObject, Series
    from cwnd.result import Result

MOST_POINTS = 600
"""Points of a line: more than a screen can show."""

MOST_FLOWS = 16
"""Flows in one plot: more cannot be told apart."""


_TEXT = ' class="text"'


def page(title: str, brand: str, body: str, data: JsonObject) -> str:
    """Put a page together.

    Parameters
    ----------
    title
        Title of the page and its heading.
    brand
        The line above the heading.
    body
        HTML of the page's sections.
    data
        What the page's plots show.

    Returns
    -------
    str
        A whole HTML document that loads nothing.
    """
    # Inside a script element only "</" and "<!--" would end the data.
    packed = json.dumps(jsonable(data), separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )
    scripts = f"""
<script type="application/json" id="data">{packed}</script>
<script type="text/plain" id="plotly">{_plotly()}</script>
<script>
{_resource("page.js")}</script>"""
    return frame(title, brand, body, scripts=scripts)


def frame(title: str, brand: str, body: str, *, style: str = "", scripts: str = "") -> str:
    """Put HTML into the frame of all pages.

    Parameters
    ----------
    title
        Title of the page and its heading.
    brand
        The line above the heading.
    body
        HTML of the page's sections.
    style
        What the page adds to the style sheet.
    scripts
        HTML at the page's end.

    Returns
    -------
    str
        A whole HTML document.
    """
    from cwnd import __version__

    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · cwnd</title>
<style>
{_resource("style.css")}{style}</style>
</head>
<body>
<main>
<p class="brand">{escape(brand)}</p>
<h1>{escape(title)}</h1>
{body}
<footer>Made by cwnd {escape(__version__)}. This page needs no network.</footer>
</main>{scripts}
</body>
</html>
"""


def facts(items: Iterable[tuple[str, str, str]]) -> str:
    """List facts: a term, what it is, and a remark that may be empty."""
    return (
        '<dl class="facts">'
        + "".join(
            f"<div><dt>{escape(term)}</dt><dd>{escape(value)}"
            + (f"<small>{escape(remark)}</small>" if remark else "")
            + "</dd></div>"
            for term, value, remark in items
        )
        + "</dl>"
    )


def table(
    caption: str,
    heads: Sequence[tuple[str, str, str]],
    rows: Iterable[str],
    text: frozenset[int] = frozenset(),
) -> str:
    """Make a table: heads of a title, a unit and an explanation; rows as HTML.

    Columns of ``text`` begin at the left.
    """
    head = "".join(
        f'<th scope="col"{_TEXT if i in text else ""} title="{escape(meaning)}">{escape(title)}'
        f"<small>{escape(unit)}</small></th>"
        for i, (title, unit, meaning) in enumerate(heads)
    )
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def named(name: str, color: str | None) -> str:
    """Give the first cell of a row: a name with its color, if it has one."""
    swatch = f'<span class="swatch" style="--shade:{color}"></span>' if color else ""
    breakable = escape(name).replace("(", "(<wbr>").replace(", ", ",<wbr> ")
    return f'<th scope="row">{swatch}{breakable}</th>'


def legend(colors: dict[str, str]) -> str:
    """Say which color is which."""
    return (
        '<p class="legend">'
        + "".join(
            f'<span><span class="swatch" style="--shade:{color}"></span>{escape(name)}</span>'
            for name, color in colors.items()
        )
        + "</p>"
    )


def terms(items: Iterable[tuple[str, str]]) -> str:
    """Explain words."""
    return (
        '<dl class="terms">'
        + "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in items)
        + "</dl>"
    )


def notes(lines: Iterable[str]) -> str:
    """Say what is to be known, a paragraph each."""
    return "".join(f'<p class="note">{escape(line)}</p>' for line in lines)


def command(text: str) -> str:
    """Show a command that can be copied."""
    return (
        f'<div class="command"><pre><code id="rerun">{escape(text)}</code></pre>'
        '<button type="button" data-copy="rerun">Copy</button></div>'
    )


def run_data(result: Result, colors: dict[str, str], **labels: str) -> JsonObject:
    """Give what the plots of one run show.

    Parameters
    ----------
    result
        The run.
    colors
        A color for each controller.
    **labels
        What else the page wants to know of the run.
    """
    flows = result.measured_flows
    shown = _spread(flows)
    shade = {
        name: iter(shades(color, sum(flow["controller"] == name for flow in shown)))
        for name, color in colors.items()
    }
    scale = max(result.scales[1], result.duration_s / MOST_POINTS)
    link = result.bottleneck
    return {
        **labels,
        "duration": result.duration_s,
        "warmup": result.warmup_s,
        "scale": format_time(scale),
        "link": link["name"],
        "note": f"{len(shown)} of {len(flows)} flows" if len(shown) < len(flows) else "",
        "queue": thin(result.time, link["queue"]),
        "flows": [
            {
                "name": flow["name"],
                "color": next(shade[flow["controller"]]),
                "window": thin(result.time, flow["window"]),
                "throughput": _rounded(
                    *metrics.binned_rate(result.time, flow["sent"], flow["packet_bytes"], scale)
                ),
            }
            for flow in shown
        ],
    }


def thin(time: Series, values: Series, most: int = MOST_POINTS) -> list[list[float | None]]:
    """Keep the extremes of a series, and few of its points.

    Parameters
    ----------
    time, values
        The series.
    most
        Points to keep at most.

    Returns
    -------
    list
        The times and the values that are left, rounded.

    Examples
    --------
    >>> thin(np.arange(6.0), np.array([0.0, 9.0, 1.0, 2.0, 8.0, 3.0]), most=4)
    [[0.0, 1.0, 3.0, 4.0], [0.0, 9.0, 2.0, 8.0]]
    """
    if time.size <= most:
        return _rounded(time, values)
    edges = np.linspace(0, time.size, most // 2 + 1).astype(int)
    known = np.nan_to_num(values, nan=0.0)
    keep = sorted(
        {
            int(low + extreme(known[low:high]))
            for low, high in pairwise(edges)
            for extreme in (np.argmin, np.argmax)
        }
    )
    return _rounded(time[keep], values[keep])


def _rounded(time: Series, values: Series) -> list[list[float | None]]:
    """Round a series to what a screen can show."""
    return [
        [float(f"{t:.6g}") for t in time],
        [float(f"{v:.4g}") if np.isfinite(v) else None for v in values],
    ]


def _spread(flows: list[FlowRecord]) -> list[FlowRecord]:
    """Choose the flows to draw: as many of each controller."""
    groups: dict[str, list[FlowRecord]] = {}
    for flow in flows:
        groups.setdefault(flow["controller"], []).append(flow)
    each = max(MOST_FLOWS // max(len(groups), 1), 1)
    return [flow for group in groups.values() for flow in group[:each]]


@cache
def _plotly() -> str:
    """Compress Plotly's script from the installed package."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def _resource(name: str) -> str:
    """Read a file of this package."""
    return files("cwnd.report").joinpath(name).read_text(encoding="utf-8")
