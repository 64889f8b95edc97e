"""The command `model`: evaluate the papers' analysis by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from cwnd._cli import shared
from cwnd._cli.config import PREFIX, name_variables
from cwnd._cli.outputs import check_outputs, print_json, save_plot
from cwnd._cli.terminal import echo
from cwnd.errors import ArgumentError
from cwnd.units import tc_rate, tc_time

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd.model.catalog import Model, Parameter, Range

_ROWS = 21
"""Number of values of a range in a table."""

_CURVE = 81
"""Number of values of a range in a curve."""

_METAVARS = {
    "number": "NUMBER",
    "whole": "WHOLE",
    "time": "TIME",
    "rate": "RATE",
    "text": "NAME",
}


class _Models(click.Group):
    """The models as commands, created on demand."""

    def list_commands(self, _: click.Context) -> list[str]:
        from cwnd.model.catalog import models

        return [model.name for model in models()]

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        from cwnd.model.catalog import find_model

        try:
            made = _command(find_model(name))
        except ArgumentError:
            return _law_command(name)
        name_variables(made, f"{PREFIX}_MODEL_{name}")
        return made

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a model, or the law of a controller; the error suggests similar names."""
        from cwnd.model.catalog import find_model

        if not arguments[0].startswith("-"):
            try:
                find_model(arguments[0])
            except ArgumentError as mistake:
                if not _names_controller(arguments[0]):
                    raise click.UsageError(f"model: {mistake.problem}") from None
        return super().resolve_command(context, arguments)


@click.group(cls=_Models, invoke_without_command=True, subcommand_metavar="[NAME [OPTIONS]...]")
@shared.json()
@click.pass_context
def model(context: click.Context, as_json: bool) -> None:  # noqa: FBT001
    """Evaluate the papers' analysis.

    Without NAME, list the models. NAME may be a controller, such as reno or mine.law: its law
    alone, in step with another flow, and from loss to loss. A parameter may be a range such as
    0.001..0.2, for a table and, with --plot, a curve. Another parameter may be a list such as
    10ms,100ms, for one curve per value.
    """
    if context.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"--json must follow {context.invoked_subcommand}")
        return
    from cwnd.model.catalog import models

    if as_json:
        print_json({"models": [_describe(known) for known in models()]})
        return
    known = models()
    width = max(len(one.name) for one in known)
    for one in known:
        echo(f"{one.name:<{width}}  {one.summary}")


def _names_controller(name: str) -> bool:
    """Whether a name is a controller's; a law that cannot be read is an error."""
    from cwnd._base.law_files import path_of_law
    from cwnd._native import SpecError
    from cwnd.controller import names_python, read_controller

    try:
        read_controller(name)
    except SpecError:
        if names_python(name) or path_of_law(name) is not None:
            raise
        return False
    return True


def _law_command(spec: str) -> click.Command:
    """Create the command that shows a law in the models that need nothing else."""

    @click.command(spec)
    @shared.json()
    def evaluate(*, as_json: bool) -> None:
        """Evaluate the law alone, in step and from loss to loss."""
        from cwnd.model.behaviour import behaviour

        found = behaviour(spec)
        if as_json:
            print_json(found)
        else:
            from cwnd._cli.tables import print_behaviour

            print_behaviour(found)

    return evaluate


def _describe(model: Model) -> JsonObject:
    """Return a model's description as plain data."""
    return {
        "name": model.name,
        "summary": model.summary,
        "units": model.units,
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
    """Create the command of a model, with an option for each parameter."""

    @shared.json()
    @shared.plot()
    @shared.column()
    def evaluate(
        *,
        as_json: bool,
        plot: str | None,
        column: bool,
        **given: Any,  # noqa: ANN401
    ) -> None:
        check_outputs(plot=plot, column=column)
        _evaluate(model, given, as_json=as_json, plot=plot, column=column)

    options: list[click.Parameter] = []
    for parameter in model.parameters.values():
        declared = [f"--{parameter.name.replace('_', '-')}", parameter.name]
        if parameter.kind == "flag":
            options.append(click.Option(declared, is_flag=True, help=parameter.text))
            continue
        # With default=None Click would not report a missing required option.
        default: dict[str, Any] = {}
        if parameter.default is not None:
            written = tc_time if parameter.kind == "time" else tc_rate
            units = parameter.kind in ("time", "rate") and parameter.default
            default["default"] = written(parameter.default) if units else f"{parameter.default}"
        options.append(
            click.Option(
                declared,
                required=parameter.required,
                metavar=_METAVARS[parameter.kind],
                shell_complete=partial(_complete, parameter),
                help=parameter.text,
                **default,
            )
        )
    facts = _keep_formulas(model.facts)
    gives = f"Result: {model.returns}" if model.returns else ""
    text = "\n\n".join(filter(None, (model.summary, facts, gives)))
    make = click.command(model.name, params=options, help=text, short_help=model.summary)
    return make(evaluate)


def _complete(parameter: Parameter, _: click.Context, __: click.Parameter, begin: str) -> list[str]:
    """Complete one of the names that a parameter accepts."""
    return [name for name in parameter.names if name.startswith(begin)]


def _keep_formulas(text: str) -> str:
    """Mark indented paragraphs, so that Click does not wrap them."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"\b\n{p}" if p.startswith(" ") else p for p in paragraphs)


def _evaluate(
    model: Model, given: dict[str, Any], *, as_json: bool, plot: str | None, column: bool
) -> None:
    """Compute and print results."""
    from cwnd.model.catalog import Range

    arguments: dict[str, Any] = {
        name: model.parameters[name].read(value) if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None
    }
    over = _single_name(
        "ranges", [name for name in arguments if isinstance(arguments[name], Range)]
    )
    by = _single_name("lists", [name for name in arguments if isinstance(arguments[name], list)])
    fixed = {name: value for name, value in arguments.items() if name not in (over, by)}
    family = _CurveFamily(model, fixed, by, [None] if by is None else arguments[by], column)
    if over is None:
        results = [model.evaluate(case) for case in family.cases]
        if by is None or any(map(_is_series, results[0].values())):
            _show_results(family, results, as_json=as_json, plot=plot)
            return
        # A list of values produces a table, as a range does.
        over, family = by, _CurveFamily(model, fixed, None, [None], column)
    _show_table(family, over, arguments[over], as_json=as_json, plot=plot)


def _single_name(kind: str, names: list[str]) -> str | None:
    """Return the name of the only parameter with many values, if any."""
    if len(names) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in names[:2])
        raise click.UsageError(f"{first} and {second} are both {kind}: only one can be")
    return names[0] if names else None


@dataclass(frozen=True)
class _CurveFamily:
    """A model with its parameters, one of which may have several values, for one curve each."""

    model: Model
    fixed: dict[str, Any]
    by: str | None
    values: list[Any]
    column: bool
    """Whether plots have the size of a journal's column."""

    @property
    def cases(self) -> list[dict[str, Any]]:
        """The parameters of each curve."""
        if self.by is None:
            return [self.fixed]
        return [{**self.fixed, self.by: value} for value in self.values]

    @property
    def labels(self) -> list[str]:
        """The label of each curve."""
        if self.by is None:
            return [""]
        return [self.model.parameters[self.by].write(value) for value in self.values]

    def save_plot(
        self, tables: list[dict[str, Any]], path: str, *, logarithmic: bool = False
    ) -> None:
        """Draw a curve for each table, and write the plot."""
        from cwnd._show.plots import plot_model

        curves = list(zip(self.labels, tables, strict=True))
        figure = plot_model(
            self.model, curves, self._fixed, logarithmic=logarithmic, column=self.column
        )
        save_plot(figure, path)

    def save_series(self, series: list[dict[str, Any]], path: str) -> None:
        """Draw series over time or, if they are two windows, in the windows' plane."""
        if set(series[0]) != {"w1", "w2"}:
            self.save_plot([_with_step_numbers(columns) for columns in series], path)
            return
        from cwnd._show.plots import plot_phase_plane

        capacities = [case["capacity"] for case in self.cases]
        curves = list(zip(self.labels, series, capacities, strict=True))
        save_plot(plot_phase_plane(self.model, curves, self._fixed, column=self.column), path)

    @property
    def _fixed(self) -> str:
        """The parameters that all curves have, for the title."""
        return ", ".join(
            self.model.parameters[name].write(value)
            for name, value in self.fixed.items()
            if not isinstance(value, bool) and value != math.inf
        )

    def print_json(self, columns: dict[str, Any], **document: Any) -> None:  # noqa: ANN401
        """Print the model, its parameters and units, and other values, as JSON."""
        taken = {name: _plain(value) for name, value in self.fixed.items()}
        units = {
            name: self.model.unit(name) for name in columns if name not in self.model.parameters
        }
        by = {} if self.by is None else {"by": self.by}
        print_json(
            {"model": self.model.name, "units": units, "parameters": taken, **by, **document}
        )


def _show_results(
    family: _CurveFamily, results: list[dict[str, Any]], *, as_json: bool, plot: str | None
) -> None:
    """Print one or several results, and draw their series."""
    model = family.model
    series = [{name: v for name, v in each.items() if _is_series(v)} for each in results]
    if plot is not None:
        if not series[0]:
            raise click.UsageError("--plot needs a range, such as --p 0.001..0.2")
        family.save_series(series, plot)
    if as_json:
        plain = [{name: _plain_each(v) for name, v in result.items()} for result in results]
        if family.by is None:
            family.print_json(results[0], result=plain[0])
        else:
            rows = zip(family.values, plain, strict=True)
            family.print_json(results[0], results=[{family.by: v, "result": r} for v, r in rows])
        return
    for label, result, columns in zip(family.labels, results, series, strict=True):
        if label:
            echo(label)
        for name, value in result.items():
            if name not in columns:
                shown = f"{_format_value(_item(value))} {model.unit(name)}".rstrip()
                echo(shown if name == "value" else f"{name}: {shown}")
        if columns:
            _print_series(model, columns)


def _show_table(
    family: _CurveFamily, over: str, chosen: Range | list[Any], *, as_json: bool, plot: str | None
) -> None:
    """Compute and print a table over one parameter, and draw its curve."""
    from cwnd.model.catalog import Range

    model, parameter = family.model, family.model.parameters[over]

    def compute(points: int) -> list[dict[str, Any]]:
        values: Any = chosen
        if isinstance(chosen, Range):
            values = chosen.points(points, whole=parameter.kind == "whole")
        if not len(values):
            raise ArgumentError(over, "the range contains no whole number")
        found = [model.sweep(case, over, values) for case in family.cases]
        # The result of an equilibrium may have a column with the name of a parameter.
        taken = (over, family.by)
        names = {name: f"{name}_result" if name in taken else name for name in found[0]}
        return [
            {over: values} | {names[name]: column for name, column in columns.items()}
            for columns in found
        ]

    if plot is not None and parameter.kind == "text":
        raise click.UsageError("--plot needs a range, such as --p 0.001..0.2")
    tables = compute(_ROWS)
    if plot is not None:
        logarithmic = isinstance(chosen, Range) and chosen.logarithmic
        family.save_plot(compute(_CURVE), plot, logarithmic=logarithmic)
    rows = [
        ({} if family.by is None else {family.by: value}) | dict(zip(table, cells, strict=True))
        for value, table in zip(family.values, tables, strict=True)
        for cells in zip(*table.values(), strict=True)
    ]
    if as_json:
        plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
        family.print_json(rows[0], over=over, rows=plain)
        return
    _print_table(model, {name: [row[name] for row in rows] for name in rows[0]})


def _print_series(model: Model, series: dict[str, Any]) -> None:
    """Print a series, thinned to the height of a terminal."""
    length = max(len(column) for column in series.values())
    kept = range(length)
    if length > 2 * _ROWS:
        kept = range(0, length, math.ceil(length / _ROWS))
        echo(f"{len(kept)} of {length} rows; --json prints all")
    _print_table(model, {name: [column[i] for i in kept] for name, column in series.items()})


def _print_table(model: Model, table: dict[str, Any]) -> None:
    """Print right-aligned columns."""
    heads = [model.label(name) for name in table]
    columns = [[_format_value(_item(value)) for value in column] for column in table.values()]
    widths = [
        max(len(head), *(len(text) for text in column))
        for head, column in zip(heads, columns, strict=True)
    ]
    for row in (heads, *zip(*columns, strict=True)):
        cells = (f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        echo("  ".join(cells))


def _with_step_numbers(columns: dict[str, Any]) -> dict[str, Any]:
    """Add a column with the number of each step to series without times."""
    if "time" in columns:
        return columns
    return {"step": range(max(map(len, columns.values()))), **columns}


def _is_series(value: object) -> bool:
    """Test whether a column has many values."""
    return getattr(value, "ndim", 0) > 0


def _plain_each(value: Any) -> Any:  # noqa: ANN401
    """Convert a number or a series to JSON values."""
    return [_plain(part) for part in value] if _is_series(value) else _plain(value)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Convert a value to a JSON value; null if it is not finite."""
    value = _item(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _item(value: Any) -> Any:  # noqa: ANN401
    """Convert a value of NumPy to one of Python."""
    return value.item() if hasattr(value, "item") else value


def _format_value(value: float | str | bool | None) -> str:  # noqa: FBT001
    """Format a value for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value != value:  # noqa: PLR0124
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.6g}".replace("inf", "infinite")
