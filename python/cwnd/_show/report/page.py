"""Templates of the pages, and the data of their plots."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cwnd._base.law_files import path_of_law
from cwnd._controllers.registry import describe_law
from cwnd._runs.flow_groups import group_flows
from cwnd._runs.result import jsonable
from cwnd._show.chart_lines import (
    MAX_LINES,
    delivered_bytes,
    group_lines,
    limit_of,
    lines,
    sent_bytes,
    step_rates,
    thin,
    while_active,
)
from cwnd.units import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cwnd._base.records import FlowRecord, JsonObject, Series
    from cwnd._controllers.registry import Algorithm
    from cwnd._runs.result import Result

_UNIT = re.compile(r"(?<=\d) (?=(?:ns|µs|ms|s|min|h|%|[kMG]?bit/s)(?!\w))")

_UNSAFE = "'unsafe-inline'"

MAX_POINTS = 600
"""Points per line; a screen cannot show more."""

MIN_POINTS = 60
"""Points per line on a page with very many runs."""

PAGE_POINTS = 1_200_000
"""Points of all lines on a page."""


def laws_of(results: Iterable[Result]) -> list[Algorithm]:
    """Describe the laws in files that control flows of some runs."""
    texts: dict[str, str] = {}
    for result in results:
        for flow in result.record["flows"]:
            path = path_of_law(flow["controller"])
            if path in result.laws:
                texts[path] = result.laws[path]
    return [describe_law(name, text) for name, text in texts.items()]


def render(template: str, **context: object) -> str:
    """Render a template of ``cwnd/report/templates`` as HTML without external resources.

    Text is escaped, and a missing name is an error. Pages with plots need ``data``, embedded as
    JSON with null for numbers that are not finite.

    Examples
    --------
    >>> page = render("run.html", title="<A run>", summary=[], caveats=[], sheets=[],
    ...     files=[], rerun="", seeds="seed 1",
    ...     data={"runs": [{"warmup": 0}], "fairness": None, "transfers": None})
    >>> "<h1>&lt;A run&gt;</h1>" in page
    True
    """
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    """Load the templates of this package."""
    from cwnd._base.version import __version__

    environment = Environment(
        loader=PackageLoader("cwnd._show.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"breakable": _breakable, "packed": _packed, "unbroken": _unbroken}
    environment.globals |= {
        "version": __version__,
        "plotly": _plotly,
        "policy": _policy,
        "resource": _resource,
    }
    return environment


def _breakable(name: str) -> Markup:
    """Allow line breaks before the parameters of a specification."""
    return escape(name).replace("(", Markup("(<wbr>")).replace(", ", Markup(",<wbr> "))


def _unbroken(text: str) -> str:
    """Forbid line breaks between numbers and their units.

    Examples
    --------
    >>> len(_unbroken("p95 8.6, p99 21.7 ms").split(" "))
    4
    """
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


def run_data(
    result: Result,
    colors: Mapping[str, str],
    points: int = MAX_POINTS,
    *,
    rtt: bool = False,
    **labels: str,
) -> JsonObject:
    """Return the data of one run's plot, with at most ``points`` points per line.

    By the seed and ``labels`` the page selects the run.
    """
    flows = result.measured_flows
    single, groups = group_flows(flows)
    drawn = lines(single or flows, colors)
    scale = max(result.scales[1], result.duration_s / points)
    link = result.bottleneck
    capacity = limit_of(link)

    def sent(flows: list[FlowRecord]) -> list[list[float | None]] | None:
        counted = sent_bytes(flows)
        return None if counted is None else rounded(*step_rates(result.time, counted, scale))

    return {
        **labels,
        "seed": str(result.seed),
        "duration": result.duration_s,
        "warmup": result.warmup_s,
        "scale": format_time(scale),
        "link": link["name"],
        "note": f"{len(drawn)} of {len(single or flows)} flows"
        if len(drawn) < len(single or flows)
        else "",
        "capacity": None if capacity is None else rounded(*thin(result.time, capacity, points)),
        "queue": rounded(*thin(result.time, link["queue"], points)),
        "flows": [
            {
                "name": name,
                "color": color,
                "dash": dash,
                "window": rounded(*thin(*while_active(flow, result.time, flow["window"]), points)),
                "rtt": rounded(*thin(*while_active(flow, result.time, 1e3 * flow["rtt"]), points))
                if rtt
                else None,
                "goodput": rounded(*step_rates(result.time, flow["delivered_bytes"], scale)),
                "sent": sent([flow]),
            }
            for flow, name, color, dash in drawn
        ],
        "groups": [
            {
                "name": name,
                "color": color,
                "goodput": rounded(*step_rates(result.time, delivered_bytes(members), scale)),
                "sent": sent(members),
            }
            for name, color, members in group_lines(groups, colors)
        ],
    }


def points_of(results: Iterable[Result]) -> int:
    """Return the number of points per line for a page with these runs.

    It is `MAX_POINTS`, or fewer if all lines together would exceed `PAGE_POINTS`.
    """
    count = sum(2 * min(len(run.measured_flows), MAX_LINES) + 1 for run in results)
    return min(max(PAGE_POINTS // max(count, 1), MIN_POINTS), MAX_POINTS)


def rounded(time: Series, values: Series) -> list[list[float | None]]:
    """Round a series to the precision of a screen."""
    return [
        [float(f"{t:.6g}") for t in time],
        [float(f"{v:.4g}") if np.isfinite(v) else None for v in values],
    ]


def _packed(document: JsonObject) -> str:
    """Convert data to compressed JSON in base64."""
    text = json.dumps(jsonable(document), separators=(",", ":"), allow_nan=False)
    return _compressed(text)


def _compressed(text: str) -> str:
    """Compress a text deterministically, and encode it in base64."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _policy(style: str, script: str, *, plots: bool, webgl: bool, pictures: bool) -> str:
    """Return the content security policy of a page with one style sheet and one script.

    Nothing else is executed, and nothing is loaded but the pictures.
    """
    scripts, images = [_hash(script)], "'self'" if pictures else "'none'"
    if plots:
        # Plotly draws heat maps and saves plots through images of its own.
        scripts, images = [*scripts, _plotly_hash()], "data: blob:"
    if webgl:
        # Plotly compiles its WebGL code.
        scripts.append("'unsafe-eval'")
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(scripts)}",
            # Plotly creates style sheets. They can load nothing.
            f"style-src {_UNSAFE if plots else _hash(style)}",
            f"style-src-attr {_UNSAFE}",
            f"img-src {images}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    """Return the source expression of an inline script or style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _plotly_hash() -> str:
    """Return the source expression of Plotly's script."""
    from plotly.offline import get_plotlyjs

    return _hash(get_plotlyjs())


@cache
def _plotly() -> str:
    """Compress Plotly's script from the installed package."""
    from plotly.offline import get_plotlyjs

    return _compressed(get_plotlyjs())


def _resource(name: str) -> Markup:
    """Read a style sheet or a script of the templates."""
    text = files("cwnd._show.report").joinpath("templates", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704
