"""The pages' templates, and the data of their plots."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cwnd import metrics
from cwnd.colors import shades
from cwnd.result import jsonable
from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd.records import FlowRecord, JsonObject, Series
    from cwnd.result import Result

MOST_POINTS = 600
"""Points of a line: more than a screen can show."""

MOST_FLOWS = 16
"""Flows in one plot: more cannot be told apart."""


def render(template: str, **context: object) -> str:
    """Make a page from a template of ``cwnd/report/templates``.

    Text is escaped, and a name that is missing from the context is an error.

    Parameters
    ----------
    template
        Name of the template, such as ``run.html``.
    **context
        What the template shows. Pages with plots need ``data``, written as JSON: numbers that are
        not finite become null.

    Returns
    -------
    str
        A whole HTML document that loads nothing.

    Raises
    ------
    jinja2.UndefinedError
        The template uses a name that is not in the context.

    Examples
    --------
    >>> page = render("run.html", title="<A run>", summary=[], caveats=[], shades={}, sheets=[],
    ...     rerun="", seed=1, data={"runs": []})
    >>> "<h1>&lt;A run&gt;</h1>" in page
    True
    """
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    """Load the templates of this package."""
    from cwnd import __version__

    environment = Environment(
        loader=PackageLoader("cwnd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_function"] = _dumps
    environment.filters["breakable"] = _breakable
    environment.globals |= {"version": __version__, "plotly": _plotly, "resource": _resource}
    return environment


def _dumps(document: JsonObject, **_: object) -> str:
    """Write JSON in little space."""
    return json.dumps(jsonable(document), separators=(",", ":"), allow_nan=False)


def _breakable(name: str) -> Markup:
    """Let the lines of a specification break before its settings."""
    return escape(name).replace("(", Markup("(<wbr>")).replace(", ", Markup(",<wbr> "))


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


def _resource(name: str) -> Markup:
    """Read a style sheet or a script of the templates."""
    text = files("cwnd.report").joinpath("templates", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704
