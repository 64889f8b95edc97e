"""Page of a sweep."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import types

from cwnd._base.law_files import path_of_law
from cwnd._native import canonical
from cwnd._runs.conventions import conventions_facts
from cwnd._show.colors import colors
from cwnd._show.report.cube import Cube, label
from cwnd._show.report.page import render
from cwnd._show.sheets import SWEEP_COLUMNS
from cwnd._sweeps.axes import LATIN_POINT, find_points, read_axis
from cwnd._sweeps.dataset import GOODPUT_LIMIT, TCP_CONVENTIONS
from cwnd._sweeps.manifest import Tables
from cwnd._sweeps.sweep import Sweep
from cwnd.controller import names_python
from cwnd.errors import ArgumentError
from cwnd.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt
    import pandas as pd

    from cwnd._base.records import JsonObject
    from cwnd._sweeps.axes import Axis
    from cwnd._sweeps.manifest import Outs

MAX_ROWS = 500
"""Largest number of rows in the table of points."""

MAX_FAILURES = 100
"""Largest number of failed runs listed."""


def sweep_page(out: Outs) -> str:
    """Create the HTML page of a sweep, from its data set or from several of one plan."""
    tables = Tables(out)
    outs = tables.outs
    text, plan, read_axes = _plan(outs[0])
    axes = [axis.name for axis in read_axes]
    sampled = [axis.name for axis in read_axes if axis.sampled is not None]
    drawn = [LATIN_POINT] if sampled else []
    schema = tables.open("runs").schema
    _check_columns(outs[0], schema, axes, drawn)
    table = tables.read("runs", [*drawn, *axes, "controller", "seed", "error", "wall_s"])
    for name in ("seed", *drawn):
        if table[name].null_count:
            raise ArgumentError("out", f"{outs[0]} has no runs of a sweep: {name} has null values")
    runs: pd.DataFrame = table.to_pandas()
    if runs.empty:
        raise ArgumentError("out", f"{outs[0]} has no runs yet")
    controllers = _controllers(runs, plan)
    try:
        found = find_points(read_axes, plan.get("latin", {}).get("points", 1), table)
    except pa.ArrowInvalid as problem:
        raise ArgumentError("out", f"{outs[0]} has no runs of a sweep: {problem}") from None
    # Values that the plan does not have any more are the last ones.
    runs["point"] = np.where(found < 0, np.iinfo(np.int64).max, found)
    failed = runs[runs["error"].notna()]

    def values(name: str) -> npt.NDArray[np.float64] | None:
        return tables.read("runs", [name])[name].to_numpy() if name in schema.names else None

    # Sums of extreme values are infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        cube = Cube(runs, axes, sampled, controllers, values)
        levels, points = cube.levels()
        total = math.prod(cube.shape)
        summary = _summary(runs, cube, total, len(failed))
    shades = colors(
        controllers, *map(_canonical, [plan["reference"]] if "reference" in plan else [])
    )
    listed_columns = [
        *axes,
        *(["controller"] if controllers != [""] else []),
        "seed",
        "error",
    ]
    moved = _names_files(plan)
    source = "PLAN.toml" if moved else str(outs[0] / "plan.toml")
    return render(
        "sweep.html",
        title=_title(axes),
        summary=[*summary, *conventions_facts(Sweep(out).conventions)],
        axes=cube.axes,
        sampled=cube.sampled,
        columns=cube.columns,
        kept=len(points),
        total=total,
        most_rows=MAX_ROWS,
        errors=_errors(failed),
        failure_heads=[(name, "", "") for name in listed_columns],
        failures=_failures(failed, listed_columns),
        failure_text=set(range(len(listed_columns))),
        left_out=max(len(failed) - MAX_FAILURES, 0),
        plan=text,
        moved=moved,
        rerun=_rerun(source, outs),
        data={
            "axes": [axis.to_json() for axis in cube.axes],
            "shape": list(cube.shape),
            "sampled": cube.sampled,
            "controllers": [{"name": name, "color": shades[name]} for name in controllers],
            "metrics": [
                {"name": column.name, "title": column.title, "unit": column.unit}
                for column in cube.columns
            ],
            "levels": levels,
            "runs": [part.ravel()[points].tolist() for part in cube.runs],
            "failed": [part.ravel()[points].tolist() for part in cube.failed],
            "whole": len(points) == total,
            "rows": MAX_ROWS,
        },
    )


def _rerun(source: str, outs: Sequence[Path]) -> str:
    """Return the command that continues the sweep; empty for several data sets."""
    return shlex.join(["cwnd", "sweep", source, "--out", str(outs[0])]) if len(outs) == 1 else ""


def _plan(out: Path) -> tuple[str, JsonObject, list[Axis]]:
    """Read the plan as text and as data, and its axes."""
    from cwnd._base import toml as tomllib

    file = out / "plan.toml"
    try:
        text = file.read_text(encoding="utf-8")
        plan = tomllib.loads(text)
    except (OSError, ValueError) as problem:
        raise ArgumentError("out", f"cannot read {file}: {problem}") from None
    specs, given = plan.get("controllers", []), plan.get("axes", {})
    listed = isinstance(specs, list) and isinstance(given, dict)
    listed &= isinstance(plan.get("latin", {}), dict)
    if not listed or not all(isinstance(spec, str) for spec in (*specs, plan.get("reference", ""))):
        raise ArgumentError("out", f"{file} is not the plan of a sweep")
    try:
        axes = [read_axis(name, values) for name, values in given.items()]
    except ValueError as problem:
        raise ArgumentError("out", f"cannot read {file}: {problem}") from None
    return text, plan, axes


def _check_columns(out: Path, schema: pa.Schema, axes: Sequence[str], drawn: Sequence[str]) -> None:
    """Raise an error for runs without the columns of a sweep's."""
    needed = {
        **dict.fromkeys(("seed", *drawn), types.is_integer),
        **dict.fromkeys(("controller", "error"), _is_text),
        "wall_s": _is_number,
        **dict.fromkeys(axes, _is_value),
    }
    numbers = (*(column.name for column in SWEEP_COLUMNS), GOODPUT_LIMIT)
    others = dict.fromkeys(numbers, _is_number) | {TCP_CONVENTIONS: _is_text}
    for name, fits in (others | needed).items():
        if name in schema.names:
            kind = schema.field(name).type
            if not fits(kind):
                raise ArgumentError("out", f"{out} has no runs of a sweep: {name} is {kind}")
        elif name in needed:
            raise ArgumentError("out", f"{out} has no runs of a sweep with the column {name}")


def _is_text(kind: pa.DataType) -> bool:
    """Test whether a column has texts, or no values."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))


def _is_number(kind: pa.DataType) -> bool:
    """Test whether a column has numbers, or no values."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))


def _is_value(kind: pa.DataType) -> bool:
    """Test whether a column can be an axis."""
    return _is_text(kind) or _is_number(kind) or bool(types.is_boolean(kind))


def _names_files(plan: JsonObject) -> bool:
    """Test whether a plan contains file names, which are relative to the plan."""
    specs = [*plan.get("controllers", []), plan.get("reference", "")]
    return isinstance(plan.get("base"), str) or any(
        ".py:" in spec or path_of_law(spec) is not None for spec in specs
    )


def _controllers(runs: pd.DataFrame, plan: JsonObject) -> list[str]:
    """Return the controllers of the runs, in the order of the plan."""
    found = set(runs["controller"].fillna(""))
    specs = [_canonical(spec) for spec in plan.get("controllers", [])]
    listed = [name for name in specs if name in found]
    return listed + sorted(found.difference(listed))


def _canonical(spec: str) -> str:
    """Return a controller's name in the data set; one written in Python keeps its own."""
    in_file = names_python(spec) or path_of_law(spec) is not None
    return spec if spec.startswith("python:") or in_file else canonical(spec)


def _title(axes: Sequence[str]) -> str:
    """Return the title of the page."""
    if not axes:
        return "Sweep of controllers"
    return f"Sweep over {', '.join(axes) if len(axes) < 4 else f'{len(axes)} axes'}"


def _summary(runs: pd.DataFrame, cube: Cube, total: int, failed: int) -> list[tuple[str, str, str]]:
    """Summarise the sweep."""
    finished = f"{failed:,} failed" if failed else "all succeeded"
    return [
        ("Runs", f"{len(runs):,}", finished),
        ("Points", f"{total:,}", " × ".join(map(str, cube.shape)) if len(cube.shape) > 1 else ""),
        ("Controllers", str(len(cube.controllers)), ""),
        ("Seeds", str(runs["seed"].nunique()), "of each point and controller"),
        ("Computing time", format_time(runs["wall_s"].sum()), "of all runs together"),
    ]


def _errors(failed: pd.DataFrame) -> list[tuple[str, str]]:
    """Count the errors, most frequent first."""
    return [(str(error), f"{count:,}") for error, count in failed["error"].value_counts().items()]


def _failures(failed: pd.DataFrame, columns: Sequence[str]) -> list[list[str]]:
    """List failed runs."""
    first = failed.sort_values(["point", "seed"])[list(columns)].head(MAX_FAILURES)
    return [[label(value) for value in row] for row in first.itertuples(index=False, name=None)]
