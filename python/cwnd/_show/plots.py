"""Static plots with Matplotlib: for notebooks, papers and ``--plot``."""

from __future__ import annotations

import functools
import re
import textwrap
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from cwnd._base.extras import require
from cwnd._runs.defaults import PANELS
from cwnd._runs.flow_groups import flow_kinds, group_flows
from cwnd._show.chart_lines import (
    delivered_bytes,
    group_lines,
    limit_of,
    lines,
    sent_bytes,
    step_rates,
    trade_off_ranges,
    trade_offs,
    while_active,
)
from cwnd._show.colors import DASHES, PALETTE, REFERENCE, colors
from cwnd._show.sheets import path_text
from cwnd.errors import ArgumentError
from cwnd.units import format_time

require("a plot", "matplotlib")
from matplotlib import rc_context, rcParams  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure
    from typing_extensions import ParamSpec

    from cwnd._base.records import FlowRecord
    from cwnd._runs.fork import Fork
    from cwnd._runs.result import Result
    from cwnd._tasks.agreement.outcome import Agreement
    from cwnd._tasks.comparison.outcome import Comparison, Row
    from cwnd.model.catalog import Model

    P = ParamSpec("P")

_STYLE = {"linewidth": 1.0, "alpha": 0.9}
COLUMN = 3.5
"""Width of a journal's column in inches."""

_EM = 0.06
"""Width of a character in inches, in a column."""

_DASHES = dict(zip(DASHES, ("solid", "dashed", "dotted", "dashdot"), strict=True))


class Picture(Figure):
    """A figure that a notebook displays without pyplot, and that keeps text as text in files."""

    def savefig(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        """Write the figure with text as text in SVG, and with TrueType fonts in PDF.

        Equal figures are equal files: neither has a date or a random identifier.
        """
        file = str(options.get("format") or arguments[0]).lower()
        dated = "CreationDate" if file.endswith("pdf") else "Date" if file.endswith("svg") else None
        if dated is not None:
            options["metadata"] = {dated: None} | options.get("metadata", {})
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "cwnd", "pdf.fonttype": 42}):
            super().savefig(*arguments, **options)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def _sized(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Give a plot the font sizes of a journal's column if ``column`` is true."""

    @functools.wraps(draw)
    def call(*arguments: P.args, **options: P.kwargs) -> Figure:
        if not options.get("column"):
            return draw(*arguments, **options)
        with rc_context({"font.size": 7, "axes.titlesize": "medium", "figure.titlesize": "medium"}):
            return draw(*arguments, **options)

    return call


@_sized
def plot_result(result: Result, *, column: bool = False) -> Figure:
    """Draw windows, goodput and the bottleneck's queue over time."""
    flows = result.measured_flows
    single, groups = group_flows(flows)
    shades = colors(flow["controller"] for flow in flows)
    drawn = lines(single or flows, shades)
    size = (COLUMN, 4.3 + 0.15 * (len(drawn) + len(groups))) if column else (9, 7.5)
    figure = Picture(figsize=size, layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    scale = result.scales[1]
    styles: list[str] = []

    def draw_sent(flows: list[FlowRecord], color: str, dash: str = "solid") -> None:
        sent = sent_bytes(flows)
        if sent is not None:
            edges, rates = step_rates(result.time, sent, scale)
            style = {"color": color, "linestyle": _DASHES[dash], "linewidth": 0.5, "alpha": 0.7}
            middle.step(edges, rates / 1e6, where="post", **style)
            styles[:] = ["thin: sent"]

    for flow, name, color, dash in drawn:
        style = {"color": color, "linestyle": _DASHES[dash], **_STYLE}
        top.plot(*while_active(flow, result.time, flow["window"]), label=_plain(name), **style)
        edges, rates = step_rates(result.time, flow["delivered_bytes"], scale)
        middle.step(edges, rates / 1e6, where="post", **style)
        draw_sent([flow], color, dash)
    for name, color, members in group_lines(groups, shades):
        edges, rates = step_rates(result.time, delivered_bytes(members), scale)
        middle.step(
            edges, rates / 1e6, where="post", color=color, linewidth=1.4, label=_plain(name)
        )
        draw_sent(members, color)
    link = result.bottleneck
    capacity = limit_of(link)
    if capacity is not None:
        style = {"color": REFERENCE, "linestyle": "dotted", "linewidth": 1}
        middle.step(result.time, capacity / 1e6, where="post", **style)
        styles.append("dotted: capacity")
    bottom.fill_between(result.time, link["queue"], color=REFERENCE, alpha=0.5, linewidth=0)
    bottom.plot(result.time, link["queue"], color=REFERENCE, linewidth=0.5)
    top.set_ylabel("window (packets)")
    middle.set_ylabel(f"goodput (Mbit/s)\nover {format_time(scale)}")
    middle.set_title("; ".join(styles), loc="left", fontsize="small")
    bottom.set_ylabel(f"queue of {link['name']}\n(packets)")
    bottom.set_xlabel("time (s)")
    title = f"{result.title}, seed {result.seed}"
    if len(drawn) < len(single or flows):
        title += f" ({len(drawn)} of {len(single or flows)} flows)"
    figure.suptitle(_plain(title))
    _legend(figure, top, middle)
    for axes in (top, middle, bottom):
        _tidy(axes)
        axes.set_xlim(0, result.duration_s)
        axes.set_ylim(0, _largest([axes], result.warmup_s))
        _shade(axes, result.warmup_s)
    return figure


@_sized
def plot_fork(fork: Fork, *, column: bool = False) -> Figure:
    """Draw windows, goodput and the bottleneck's queue of both futures of a run over time."""
    figure = Picture(figsize=(COLUMN, 4.6) if column else (9, 7.5), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    shades = colors(flow["controller"] for flow in fork.unchanged.measured_flows)
    queue = fork.unchanged.bottleneck["name"]
    scale = fork.unchanged.scales[1]
    for result, dash, name in (
        (fork.unchanged, "dotted", "unchanged"),
        (fork.changed, "solid", fork.values_text),
    ):
        time = result.time
        single, _ = group_flows(result.measured_flows)
        drawn = {line.flow["name"] for line in lines(single or result.measured_flows, shades)}
        # Both futures of a flow have one colour, also after a change of its controller.
        first = [flow["controller"] for flow in fork.unchanged.record["flows"]]
        for flow, before in zip(result.record["flows"], first, strict=True):
            if flow["name"] in drawn:
                style = {"color": shades[before], "linestyle": dash, **_STYLE}
                top.plot(*while_active(flow, time, flow["window"]), **style)
        style = {"color": "black", "linestyle": dash, **_STYLE}
        edges, rates = step_rates(time, delivered_bytes(result.measured_flows), scale)
        middle.step(edges, rates / 1e6, where="post", label=_plain(name), **style)
        link = next(link for link in result.record["links"] if link["name"] == queue)
        bottom.plot(time, link["queue"], **style)
    top.set_ylabel("window (packets)")
    middle.set_ylabel(f"goodput (Mbit/s)\nover {format_time(scale)}")
    bottom.set_ylabel(f"queue of {queue}\n(packets)")
    bottom.set_xlabel("time (s)")
    figure.suptitle(_plain(f"{fork.unchanged.title}, seed {fork.unchanged.seed}"))
    _legend(figure, middle)
    for axes in (top, middle, bottom):
        _tidy(axes)
        axes.set_xlim(0, fork.unchanged.duration_s)
        axes.set_ylim(0, _largest([axes], fork.at_s / 2))
        axes.axvline(fork.at_s, color="0.5", linewidth=0.8)
    return figure


@_sized
def plot_transfers(result: Result, *, column: bool = False) -> Figure:
    """Draw completion times and slowdowns by size, and Jain's index over time."""
    from cwnd import metrics
    from cwnd._show.transfer_sheet import size_text

    figure = Picture(figsize=(COLUMN, 5.5) if column else (9, 6.5), layout="constrained")
    if column:
        times, slow, fair = figure.subplots(3, 1, height_ratios=[2, 2, 1])
    else:
        grid = figure.add_gridspec(2, 2, height_ratios=[2, 1])
        places = ((0, 0), (0, 1), (1, slice(2)))
        times, slow, fair = (figure.add_subplot(grid[at]) for at in places)
    found = result.transfers()
    for number, each in enumerate(metrics.by_size(found.bytes, found.fct)):
        inside = (found.bytes >= each.low) & (found.bytes < each.high) & ~np.isnan(found.fct)
        label = size_text(each.low, each.high)
        times.ecdf(found.fct[inside], label=label, color=PALETTE[number % len(PALETTE)])
    classes = metrics.by_size(found.bytes, found.slowdown)
    names = [size_text(each.low, each.high) for each in classes]
    for name, dash in (("p50", "solid"), ("p95", "dashed"), ("p99", "dotted")):
        values = [getattr(each.spread, name) for each in classes]
        slow.plot(names, values, "o", linestyle=dash, color="0.2", markersize=4, label=name)
    for axes, label in ((times, "completion time (s)"), (slow, "size")):
        axes.set_xlabel(label)
        if axes.get_lines():
            axes.legend(frameon=False, fontsize="small")
    if found.begin.size:
        times.set_xscale("log")
        slow.set_yscale("log")
    times.set_ylabel("fraction complete")
    slow.set_ylabel("slowdown")
    for label, flows in flow_kinds(result.measured_flows)[:1]:
        windows = result.jain_over_time(flows=flows)
        fair.step(windows.time, windows.jain, where="post", color=REFERENCE, linewidth=1)
        fair.set_title(label, fontsize=9)
    fair.set_ylabel(f"Jain's index\nover {format_time(result.scales[1])}")
    fair.set_xlabel("time (s)")
    fair.set_xlim(0, result.duration_s)
    fair.set_ylim(0, 1.05)
    for axes in (times, slow, fair):
        _tidy(axes)
    figure.suptitle(_plain(f"{result.title}, seed {result.seed}"))
    return figure


@_sized
def plot_comparison(
    comparison: Comparison, *, column: bool = False, panel: str | None = None
) -> Figure:
    """Draw a panel of a comparison, or all: the shares of pairs only if every pair competed."""
    if panel is not None and panel not in PANELS:
        raise ArgumentError("panel", f"{panel!r} is not one of {', '.join(PANELS)}")
    every = [each for each in PANELS if each != "shares" or comparison.rows_pairs]
    drawn = every if panel is None else [panel]
    shades = colors([row.controller for row in comparison.rows_alone], comparison.reference)
    heights = [_panel_height(each, shades, column=column) for each in drawn]
    size = (COLUMN if column else 10, sum(heights) + 0.4)
    figure = Picture(figsize=size, layout="constrained")
    figure.suptitle(
        _plain(textwrap.fill(path_text(comparison.network), 50 if column else 100)),
        fontsize="medium",
    )
    parts = figure.subfigures(len(drawn), 1, height_ratios=heights, squeeze=False)[:, 0]
    for each, part in zip(drawn, parts, strict=True):
        _PANELS[each](part, comparison, shades, column=column)
    return figure


def _panel_height(panel: str, shades: dict[str, str], *, column: bool) -> float:
    """Return the height of a panel in inches."""
    count = len(shades)
    lines_each = max(1 + name.count("\n") for name in _names(shades, column=column))
    turned = _turned(shades, column=column)
    height = {
        "verdicts": 3 * (0.5 + max(0.22, 0.13 * lines_each) * count)
        if column
        else 1.6 + 0.35 * count,
        "delay": 2.2 + 0.12 * count if column else max(3.0, 0.6 + 0.24 * count),
        "shares": 0.7
        + max(0.3, 0.16 * lines_each) * count
        + (_EM if column else 1.5 * _EM) * (max(map(len, shades)) if turned else 4),
        "windows": 0.3 + 0.6 * count if column else 0.4 + 1.15 * count,
    }
    return height[panel]


def _turned(shades: dict[str, str], *, column: bool) -> bool:
    """Whether the labels of the columns of a matrix are too wide to be upright."""
    longest = max(len(line) for name in _names(shades, column=column) for line in name.split("\n"))
    return _EM * longest * len(shades) > (0.7 * COLUMN if column else 6)


def _names(shades: dict[str, str], *, column: bool) -> list[str]:
    """Return the names of controllers as labels of an axis."""
    return [_broken(_plain(name), 14) if column else _plain(name) for name in shades]


def _verdicts(
    figure: SubFigure, comparison: Comparison, shades: dict[str, str], *, column: bool
) -> None:
    """Draw fairness, smoothness and queue."""
    alone, against = comparison.rows_alone, comparison.rows_against
    panels: Any = figure.subplots(3 if column else 1, 1 if column else 3, sharey=True)
    share, rough, queue = panels
    _dots(share, against, "share", shades)
    _dots(rough, alone, "cov_10rtt", shades)
    _dots(queue, alone, "queue_delay_s", shades, factor=1e3)
    share.set_yticks(range(len(shades)), _names(shades, column=column))
    share.set_ylim(len(shades) - 0.5, -0.5)
    share.axvline(0.5, color="0.5", linewidth=0.8, linestyle="--")
    share.set_xlim(0, 1)
    share.set_title(_plain(f"share against {comparison.reference}"), fontsize="medium")
    scale = format_time(alone[0].results[0].scales[1])
    rough.set_title(f"smoothness (CoV) over {scale}", fontsize="medium")
    queue.set_title("queueing delay (ms)", fontsize="medium")


def _shares(
    figure: SubFigure, comparison: Comparison, shades: dict[str, str], *, column: bool
) -> None:
    """Draw the matrix of the shares of all pairs."""
    axes = figure.subplots()
    found = comparison.share_of
    means = [[found[a, b].mean if (a, b) in found else np.nan for b in shades] for a in shades]
    axes.imshow(means, cmap="PuOr_r", vmin=0, vmax=1, aspect="auto")
    for (row, place), mean in np.ndenumerate(means):
        if np.isfinite(mean):
            shade = "white" if abs(mean - 0.5) > 0.35 else "black"
            axes.text(place, row, f"{mean:.2f}", ha="center", va="center", color=shade)
    names = _names(shades, column=column)
    axes.set_yticks(range(len(names)), names)
    turned = _turned(shades, column=column)
    axes.set_xticks(range(len(names)), map(_plain, shades) if turned else names)
    axes.tick_params(axis="x", rotation=90 if turned else 0)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    title = "share of a flow of the row beside one of the column; 0.5 is equal"
    axes.set_title(_wrapped(title, column), fontsize="medium")


def _windows(
    figure: SubFigure, comparison: Comparison, shades: dict[str, str], *, column: bool
) -> None:
    """Draw the window of one flow of each controller alone."""
    alone = comparison.rows_alone
    panels = np.atleast_1d(figure.subplots(len(alone), 1, sharex=True, sharey=True))
    for axes, row in zip(panels, alone, strict=True):
        run = row.results[0]
        flow = run.measured_flows[0]
        active = while_active(flow, run.time, flow["window"])
        axes.plot(*active, color=shades[row.controller], **_STYLE)
        axes.set_title(_plain(row.controller), loc="left", fontsize="small")
        _tidy(axes)
        _shade(axes, run.warmup_s)
        axes.set_xlim(0, run.duration_s)
    panels[0].set_ylim(0, _largest(list(panels), comparison.network["warmup_s"]))
    panels[-1].set_xlabel(
        _wrapped("time (s); window of the first flow in packets, each controller alone", column)
    )


@_sized
def plot_agreement(agreement: Agreement, *, column: bool = False) -> Figure:
    """Draw windows and the bottleneck's queue on each backend side by side."""
    count = len(agreement.results)
    first = agreement.runs[0]
    shades = colors(flow["controller"] for flow in first.measured_flows)
    drawn = lines(first.measured_flows, shades)
    size = (COLUMN, 3 + 0.15 * len(drawn)) if column else (1.5 + 4.5 * count, 6)
    figure = Picture(figsize=size, layout="constrained")
    panels = figure.subplots(2, count, sharex=True, sharey="row", squeeze=False)
    link = first.bottleneck["name"]
    for (on, runs), top, bottom in zip(agreement.results.items(), *panels, strict=True):
        run = runs[0]
        for flow, name, color, dash in lines(run.measured_flows, shades):
            style = {"color": color, "linestyle": _DASHES[dash], **_STYLE}
            top.plot(*while_active(flow, run.time, flow["window"]), label=_plain(name), **style)
        for queue in (each["queue"] for each in run.record["links"] if each["name"] == link):
            bottom.plot(run.time, queue, color=REFERENCE, linewidth=0.7)
        top.set_title(on if run.limit is None else f"{on} (emulator limited)", fontsize="medium")
        bottom.set_xlabel("time (s)")
        for axes in (top, bottom):
            _tidy(axes)
            _shade(axes, run.warmup_s)
    panels[0, 0].set_ylabel("window (packets)")
    panels[1, 0].set_ylabel(f"queue of {link}\n(packets)")
    panels[0, 0].set_xlim(0, first.duration_s)
    for row in panels:
        row[0].set_ylim(0, _largest(list(row), first.warmup_s))
    figure.suptitle(_plain(f"{agreement.title}, seed {first.seed}"))
    _legend(figure, panels[0, 0])
    return figure


@_sized
def plot_model(
    model: Model,
    curves: Sequence[tuple[str, Mapping[str, Sequence[float]]]],
    fixed: str = "",
    *,
    logarithmic: bool = False,
    column: bool = False,
) -> Figure:
    """Draw the results of a model over one of its parameters or over time.

    All curves have the same columns: the first is the x-axis, each other one has a panel. With
    ``logarithmic``, a y-axis is logarithmic too if its values span a wide range.
    """
    over, *names = curves[0][1]
    across = 1 if column or len(names) < 4 else 2
    down = -(-len(names) // across)
    size = (COLUMN, 1.3 + 1.3 * down) if column else (3 + 4.5 * across, 2.6 + 2.2 * down)
    figure = Picture(figsize=size, layout="constrained")
    panels = [figure.add_subplot(down, across, i + 1) for i in range(len(names))]
    for axes, name in zip(panels, names, strict=True):
        for number, (label, columns) in enumerate(curves):
            turn, place = divmod(number, len(PALETTE))
            style: dict[str, Any] = {"linestyle": _DASHES[DASHES[turn % len(DASHES)]]}
            style |= {"color": PALETTE[place], "linewidth": 1.4, "label": label}
            axes.plot(columns[over], columns[name], **style)
        values = np.concatenate([np.asarray(columns[name], float) for _, columns in curves])
        values = values[np.isfinite(values)]
        if logarithmic:
            axes.set_xscale("log")
        if logarithmic and values.size and values.min() > 0 and values.max() > 30 * values.min():
            axes.set_yscale("log")
        label = model.label(name)
        axes.set_ylabel(label.replace(name, model.name, 1) if name == "value" else label)
        axes.grid(alpha=0.25)
        _tidy(axes)
    x_label = model.label(over) if over in model.units else over
    for axes in panels[-across:]:
        axes.set_xlabel(model.parameters[over].axis if over in model.parameters else x_label)
    width = 55 if column else 40 + 40 * across
    title = textwrap.fill(model.summary.replace("`", "").removesuffix("."), width)
    figure.suptitle(f"{title}\n{textwrap.fill(fixed, width)}".strip(), fontsize="medium")
    if len(curves) > 1:
        _legend(figure, panels[0])
    return figure


@_sized
def plot_phase_plane(
    model: Model,
    paths: Sequence[tuple[str, Mapping[str, Sequence[float]], float]],
    fixed: str = "",
    *,
    column: bool = False,
) -> Figure:
    """Draw paths of two windows, each with its label and capacity, in the plane of the windows.

    The efficiency line of a capacity is solid, and the fairness line is dashed.
    """
    figure = Picture(figsize=(COLUMN, 4.1) if column else (6, 6.6), layout="constrained")
    axes = figure.subplots()
    end = 1.08 * max(
        max(*columns["w1"], *columns["w2"], capacity) for _, columns, capacity in paths
    )
    for capacity in dict.fromkeys(capacity for _, _, capacity in paths):
        axes.plot([0, capacity], [capacity, 0], color="0.3", linewidth=1)
    axes.plot([0, end], [0, end], color="0.3", linewidth=1, linestyle="dashed")
    for number, (label, columns, _) in enumerate(paths):
        color = PALETTE[number % len(PALETTE)]
        axes.plot(columns["w1"], columns["w2"], color=color, linewidth=1, label=label)
        axes.plot(columns["w1"][0], columns["w2"][0], "o", color=color, markersize=5)
        axes.plot(columns["w1"][-1], columns["w2"][-1], "s", color=color, markersize=5)
    axes.set_aspect("equal")
    axes.set_xlim(0, end)
    axes.set_ylim(0, end)
    axes.set_xlabel("window of flow 1 (packets)")
    axes.set_ylabel("window of flow 2 (packets)")
    _tidy(axes)
    title = textwrap.fill(model.summary.replace("`", "").removesuffix("."), 55)
    lines = _wrapped(
        "solid: efficiency line; dashed: fairness line; dot: start; square: end", column
    )
    figure.suptitle(_plain(f"{title}\n{textwrap.fill(fixed, 60)}\n{lines}"), fontsize="medium")
    if len(paths) > 1:
        _legend(figure, axes)
    return figure


def _plain(text: str) -> str:
    """Escape text for Matplotlib, which reads formulas between dollar signs."""
    return text.replace("$", r"\$")


def _legend(figure: Figure | SubFigure, *panels: Axes) -> None:
    """Draw the legend of some axes below the figure, in as many columns as fit its width."""
    found = [axes.get_legend_handles_labels() for axes in panels]
    handles = [handle for each, _ in found for handle in each]
    labels = [label for _, each in found for label in each]
    size = rcParams["font.size"] / 72
    # An em for a character is too much, and the handle with its space has three.
    most = size * (0.62 * max(map(len, labels), default=0) + 4)
    width = figure.bbox.width / figure.get_figure(root=True).dpi
    columns = min(max(int(width / most), 1), 4)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def _broken(name: str, most: int) -> str:
    r"""Break a controller's name after its separators into lines of ``most`` characters.

    Examples
    --------
    >>> _broken("aimd(alpha=0.31, beta=1/8)", 14).split("\n")
    ['aimd(', 'alpha=0.31, ', 'beta=1/8)']
    """
    lines = [""]
    for part in re.findall(r".+?(?:[/:(]|, |$)", name):
        if lines[-1] and len((lines[-1] + part).rstrip()) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _wrapped(text: str, column: bool) -> str:  # noqa: FBT001
    """Wrap a line to the width of a column."""
    return textwrap.fill(text, 55) if column else text


def _dots(
    axes: Axes, rows: list[Row], name: str, shades: dict[str, str], factor: float = 1.0
) -> None:
    """Draw a figure of each controller as a dot with its interval."""
    places = list(shades)
    for row in rows:
        figure = row.figures[name]
        place, shade = places.index(row.controller), shades[row.controller]
        if figure.known:
            axes.plot(
                [figure.low * factor, figure.high * factor], [place] * 2, color=shade, linewidth=2
            )
        axes.plot([figure.mean * factor], [place], "o", color=shade, markersize=7)
    # An explicit limit removes the margin, which would clip the largest dot.
    ends = [end for row in rows for end in (row.figures[name].mean, row.figures[name].high)]
    most = max((end for end in ends if np.isfinite(end)), default=0.0)
    axes.set_xlim(0, 1.05 * most * factor or 1.0)
    _tidy(axes)
    axes.grid(axis="x", alpha=0.25)


def _trade_offs(
    figure: SubFigure, comparison: Comparison, shades: dict[str, str], *, column: bool
) -> None:
    """Draw the goodput of each controller alone against its delay, which falls to the right."""
    axes = figure.subplots()
    points = trade_offs(comparison)
    for each in points:
        color = shades[each.controller]
        axes.fill(*each.outline, facecolor=color, alpha=0.2, linewidth=0)
        axes.plot(*each.outline, color=color, linewidth=1)
        label = _plain(each.controller)
        axes.plot([each.delay_ms], [each.goodput_mbps], "o", color=color, markersize=6, label=label)
    delays, rates = trade_off_ranges(points)
    axes.set_xlim(*delays)
    axes.set_ylim(*rates)
    axes.set_xlabel(_wrapped("queueing delay, 95th percentile (ms), lower to the right", column))
    axes.set_ylabel("goodput (Mbit/s)")
    axes.set_title(
        _wrapped("each alone; ellipses are one standard deviation over the seeds", column),
        fontsize="medium",
    )
    if column:
        _legend(figure, axes)
    else:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")
    axes.grid(alpha=0.25)
    _tidy(axes)


_PANELS: dict[str, Callable[..., None]] = {
    "verdicts": _verdicts,
    "delay": _trade_offs,
    "shares": _shares,
    "windows": _windows,
}


def _largest(panels: list[Axes], start: float) -> float:
    """Return the largest value after ``start``; the initial transient may exceed it."""
    most = 0.0
    for line in (line for axes in panels for line in axes.get_lines()):
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        counted = y[(x >= start) & np.isfinite(y)]
        most = max(most, float(counted.max(initial=0.0)))
    return 1.05 * most or 1.0


def _shade(axes: Axes, warmup_s: float) -> None:
    """Shade the warm-up."""
    if warmup_s > 0:
        axes.axvspan(0, warmup_s, color="0.5", alpha=0.12, linewidth=0)


def _tidy(axes: Axes) -> None:
    """Remove redundant frame lines."""
    axes.spines[["top", "right"]].set_visible(False)
