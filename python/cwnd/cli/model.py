"""The verb `model`: evaluate the papers' analysis by name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from cwnd.cli.config import PREFIX, name_variables
from cwnd.cli.outputs import check_outputs, print_json, save_plot
from cwnd.errors import ArgumentError
from cwnd.units import tc_rate, tc_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cwnd.model.catalog import Model, Range
    from cwnd.records import JsonObject

_ROWS = 21
"""Values of a range in a table."""

_CURVE = 81
"""Values of a range in a curve."""

_METAVARS = {
    "number": "NUMBER",
    "whole": "WHOLE",
    "time": "TIME",
    "rate": "RATE",
    "text": "NAME",
}


class _Models(click.Group):
    """The models as commands, made when they are asked for."""

    def list_commands(self, _: click.Context) -> list[str]:
        from cwnd.model.catalog import models

        return [model.name for model in models()]

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        from cwnd.model.catalog import find_model

        try:
            made = _command(find_model(name))
        except ArgumentError:
            return None
        name_variables(made, f"{PREFIX}_MODEL_{name}")
        return made

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a model; says which are like one that is not there."""
        from cwnd.model.catalog import find_model

        if not arguments[0].startswith("-"):
            try:
                find_model(arguments[0])
            except ArgumentError as mistake:
                raise click.UsageError(f"model: {mistake.problem}") from None
        return super().resolve_command(context, arguments)


@click.group(cls=_Models, invoke_without_command=True, subcommand_metavar="[NAME [OPTIONS]...]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def model(context: click.Context, as_json: bool) -> None:  # noqa: FBT001
    """Evaluate the papers' analysis.

    Without NAME, list the models. A parameter may be a range such as 0.001..0.2: that gives a
    table and, with --plot, a curve.
    """
    if context.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"--json goes behind {context.invoked_subcommand}")
        return
    from cwnd.model.catalog import models

    if as_json:
        print_json({"models": [_describe(known) for known in models()]})
        return
    known = models()
    width = max(len(one.name) for one in known)
    for one in known:
        click.echo(f"{one.name:<{width}}  {one.summary}")


def _describe(model: Model) -> JsonObject:
    """Say what a model is."""
    return {
        "name": model.name,
        "summary": model.summary,
        "units": dict(model.entry.fields) or {"value": model.entry.unit},
        "parameters": [
            {
                "name": parameter.name,
                "kind": parameter.kind,
                "required": parameter.required,
                "default": _plain(parameter.default),
                "text": parameter.text,
            }
            for parameter in model.parameters.values()
        ],
    }


def _command(model: Model) -> click.Command:
    """Make the command of a model: an option for each parameter."""

    def evaluate(as_json: bool, plot: str | None, **given: Any) -> None:  # noqa: ANN401, FBT001
        try:
            _evaluate(model, given, as_json=as_json, plot=plot)
        except ArgumentError as mistake:
            option = f"--{mistake.argument.replace('_', '-')}"
            raise click.UsageError(f"{option}: {mistake.problem}") from None

    options: list[click.Parameter] = []
    for parameter in model.parameters.values():
        declared = [f"--{parameter.name.replace('_', '-')}", parameter.name]
        if parameter.kind == "flag":
            options.append(click.Option(declared, is_flag=True, help=parameter.text))
            continue
        # A default of None would be one: Click would not miss a required option.
        default: dict[str, Any] = {}
        if parameter.default is not None:
            written = tc_time if parameter.kind == "time" else tc_rate
            units = parameter.kind in ("time", "rate") and parameter.default
            default["default"] = written(parameter.default) if units else f"{parameter.default}"
        options.append(
            click.Option(
                declared,
                required=parameter.required,
                show_default=True,
                metavar=_METAVARS[parameter.kind],
                help=parameter.text,
                **default,
            )
        )
    options.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
    plot = "Write a curve: FILE.png or FILE.svg."
    options.append(click.Option(["--plot"], metavar="FILE", help=plot))
    facts = _keep_formulas(model.facts)
    gives = f"Gives: {model.returns}" if model.returns else ""
    text = "\n\n".join(filter(None, (model.summary, facts, gives)))
    return click.Command(
        model.name, params=options, callback=evaluate, help=text, short_help=model.summary
    )


def _keep_formulas(text: str) -> str:
    """Mark the paragraphs that are not to be wrapped."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"\b\n{p}" if p.startswith(" ") else p for p in paragraphs)


def _evaluate(model: Model, given: dict[str, Any], *, as_json: bool, plot: str | None) -> None:
    """Compute and print."""
    from cwnd.model.catalog import Range

    check_outputs(report=None, plot=plot)
    arguments = {
        name: model.parameters[name].read(value) if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None
    }
    ranges = [name for name, value in arguments.items() if isinstance(value, Range)]
    if len(ranges) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in ranges[:2])
        raise click.UsageError(f"{first} and {second} are both ranges: one at a time")
    if ranges:
        _sweep(model, arguments, ranges[0], as_json=as_json, plot=plot)
        return
    result = model.evaluate(arguments)
    series = {name: column for name, column in result.items() if _is_series(column)}
    if plot is not None and not series:
        raise click.UsageError("--plot needs a range, such as --p 0.001..0.2")
    if plot is not None:
        save_plot(_draw(model, series, logarithmic=False), plot)
    fixed = {name: _plain(value) for name, value in result.items() if name not in series}
    if as_json:
        lists = {name: [_plain(v) for v in column] for name, column in series.items()}
        print_json({**_head(model, arguments, result), "result": {**fixed, **lists}})
        return
    for name, value in fixed.items():
        shown = f"{_text(value)} {model.unit(name)}".rstrip()
        click.echo(shown if name == "value" else f"{name}: {shown}")
    if series:
        _print_series(model, series)


def _sweep(
    model: Model, arguments: dict[str, Any], over: str, *, as_json: bool, plot: str | None
) -> None:
    """Compute and print a table over one parameter."""
    chosen: Range = arguments[over]
    fixed = {name: value for name, value in arguments.items() if name != over}
    whole = model.parameters[over].kind == "whole"
    values = chosen.points(_ROWS, whole=whole)
    if not values.size:
        raise ArgumentError(over, "there is no whole number in that range")
    table = {over: values, **model.sweep(fixed, over, values)}
    if plot is not None:
        fine = chosen.points(_CURVE, whole=whole)
        curve = {over: fine, **model.sweep(fixed, over, fine)}
        save_plot(_draw(model, curve, logarithmic=chosen.logarithmic), plot)
    if as_json:
        rows = [
            {name: _plain(value) for name, value in zip(table, row, strict=True)}
            for row in zip(*table.values(), strict=True)
        ]
        print_json({**_head(model, fixed, table), "over": over, "rows": rows})
        return
    _print_table(model, table)


def _head(model: Model, arguments: dict[str, Any], columns: dict[str, Any]) -> JsonObject:
    """Begin a document."""
    taken = {name: _plain(value) for name, value in arguments.items()}
    units = {name: model.unit(name) for name in columns if name not in model.parameters}
    return {"model": model.name, "units": units, "parameters": taken}


def _print_series(model: Model, series: dict[str, Any]) -> None:
    """Print a series, thinned out to what a terminal can show."""
    length = max(len(column) for column in series.values())
    kept = range(length)
    if length > 2 * _ROWS:
        kept = range(0, length, math.ceil(length / _ROWS))
        click.echo(f"{len(kept)} of {length} rows; --json gives all")
    _print_table(model, {name: [column[i] for i in kept] for name, column in series.items()})


def _print_table(model: Model, table: dict[str, Any]) -> None:
    """Print columns, aligned to the right."""
    heads = [_label(model, name) for name in table]
    columns = [[_text(_plain(value)) for value in column] for column in table.values()]
    widths = [
        max(len(head), *(len(text) for text in column))
        for head, column in zip(heads, columns, strict=True)
    ]
    for row in (heads, *zip(*columns, strict=True)):
        cells = (f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells))


def _draw(model: Model, columns: dict[str, Any], *, logarithmic: bool) -> Figure:
    """Draw every column over the first; a single one over its number."""
    import numpy as np
    from matplotlib.figure import Figure

    from cwnd.colors import PALETTE

    names = list(columns)
    if len(names) == 1:
        columns, names = (
            {"number": np.arange(len(columns[names[0]])), **columns},
            ["number", *names],
        )
    x, curves = np.asarray(columns[names[0]], dtype=float), names[1:]
    figure = Figure(figsize=(7.5, 2.2 + 2.2 * len(curves)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(curves), 1, sharex=True))
    for axes, name in zip(panels, curves, strict=True):
        y = np.asarray(columns[name], dtype=float)
        axes.plot(x, y, color=PALETTE[0], linewidth=1.2)
        known = y[np.isfinite(y)]
        if logarithmic:
            axes.set_xscale("log")
        if logarithmic and known.size and known.min() > 0 and known.max() > 30 * known.min():
            axes.set_yscale("log")
        axes.set_ylabel(_label(model, name))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel(_label(model, names[0]))
    figure.suptitle(model.name)
    return figure


def _label(model: Model, name: str) -> str:
    """Name a parameter or a column of the result, with its unit."""
    if name in model.parameters:
        unit = {"time": "s", "rate": "bit/s"}.get(model.parameters[name].kind, "")
    else:
        unit = model.unit(name)
    return f"{name} ({unit})" if unit else name


def _is_series(value: object) -> bool:
    """Say whether a column has many values."""
    return getattr(value, "ndim", 0) > 0


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Make a value fit for JSON: Python's own, and null for what is not finite."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _text(value: float | str | bool | None) -> str:  # noqa: FBT001
    """Write a value for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.6g}"
