"""The command `query`: SQL over the data set of a sweep."""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import click

from cwnd._cli import shared
from cwnd._cli.outputs import check_outputs, print_json
from cwnd._cli.terminal import echo, echo_json
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from cwnd._sweeps.manifest import Outs
    from cwnd._sweeps.query import Result


@click.command()
@click.argument("words", metavar="OUT [OUT]... [SQL]", nargs=-1, required=True, type=click.Path())
@shared.json()
@click.option("--csv", "as_csv", is_flag=True, help="Print all rows as CSV.")
@shared.report()
def query(
    words: tuple[str, ...],
    as_json: bool,  # noqa: FBT001
    as_csv: bool,  # noqa: FBT001
    report: str | None,
) -> None:
    """Query the sweep in OUT with the statement SQL, in DuckDB's dialect.

    Several data sets of one plan are queried as one, such as those of shards. SQL is the last
    argument if it contains a space and is no directory.

    Without SQL, list the tables and their columns. A column name with a dot needs double quotes.
    The functions bps and seconds parse a rate or a time with its unit.

    \b
    cwnd query out 'select controller, avg(jain) from runs group by 1'
    cwnd query out 'select * from runs order by bps("dumbbell.rate")' --csv
    cwnd query out/shard-* 'select count(*) from runs'
    """  # noqa: D301
    outs, sql = list(words), None
    if outs[1:] and len(outs[-1].split()) > 1 and not Path(outs[-1]).is_dir():
        sql = outs.pop()
    if as_json and as_csv:
        raise click.UsageError("--json and --csv are mutually exclusive")
    if as_csv and sql is None:
        raise click.UsageError("--csv needs a statement, such as 'select * from runs'")
    check_outputs(report=report)
    with shared.positional():
        if sql is not None:
            _print_result(outs, sql, as_json=as_json, as_csv=as_csv)
        elif report is None or as_json:
            _print_tables(outs, as_json=as_json)
        if report is not None:
            save_sweep_report(outs, report)


def save_sweep_report(out: Outs, path: str) -> None:
    """Write the HTML page of a sweep, and print its path."""
    from cwnd._sweeps.sweep import Sweep

    _return_memory()
    Sweep(out).report(path)
    echo(f"report: {path}", err=True)


def _print_result(out: Outs, sql: str, *, as_json: bool, as_csv: bool) -> None:
    """Run a statement and print its result, some thousand rows at a time."""
    from cwnd._sweeps.query import stream

    _return_memory()
    with stream(out, sql) as result:
        if as_csv:
            _print_csv(result)
        elif as_json:
            _print_json(result)
        else:
            from cwnd._cli.tables import print_rows

            print_rows(result)


def _return_memory() -> None:
    """Return freed memory to the system, of which Arrow's default allocator keeps a part."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def _print_csv(result: Result) -> None:
    """Print the rows as CSV."""
    import pandas as pd

    from cwnd._sweeps.query import without_decimals

    for number, rows in enumerate(chain([result.schema.empty_table()], result)):
        # Arrow types keep integer columns with missing values as integers.
        frame = without_decimals(rows).to_pandas(types_mapper=pd.ArrowDtype)
        text = frame.to_csv(index=False, header=number == 0)
        if sys.stdout.isatty():
            echo(*text.rstrip("\n").split("\n"))
        else:
            # A file gets the values as they are.
            sys.stdout.write(text)


def _print_json(result: Result) -> None:
    """Print the rows as one document."""
    from cwnd._runs.result import jsonable
    from cwnd._sweeps.query import without_decimals

    names = result.schema.names
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError("sql", f"two columns are named {name}: rename one with AS")
    previous: str | None = None
    for rows in result:
        # JSON has no dates and intervals: they are written as text.
        texts = [
            indent(json.dumps(jsonable(row), indent=2, ensure_ascii=False, default=str), "    ")
            for row in without_decimals(rows).to_pylist()
        ]
        if texts:
            echo_json('{\n  "rows": [' if previous is None else f"{previous},")
            previous = ",\n".join(texts)
    echo_json('{\n  "rows": []\n}' if previous is None else previous + "\n  ]\n}")


def _print_tables(out: Outs, *, as_json: bool) -> None:
    """List the tables, their columns and the number of failed runs."""
    from cwnd._sweeps.query import read, tables

    found = tables(out)
    failed = read(out, "select count(error) from runs").column(0)[0].as_py()
    if as_json:
        listed = [
            {
                "name": table.name,
                "rows": table.rows,
                "columns": [{"name": name, "type": kind} for name, kind in table.columns],
            }
            for table in found
        ]
        print_json({"failed": failed, "tables": listed})
    else:
        from cwnd._cli.tables import print_sweep_tables

        print_sweep_tables(found, failed)
