"""SQL queries over the data set of a sweep, with DuckDB."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa
from pyarrow import dataset

from cwnd._sweeps.manifest import TABLES, Tables
from cwnd.errors import ArgumentError
from cwnd.units import parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from cwnd._sweeps.manifest import Outs

T = TypeVar("T")

BATCH_ROWS = 1 << 14
"""Rows of a batch that is decoded, and of a table of a streamed result."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a data set."""

    name: str
    rows: int
    columns: list[tuple[str, str]]
    """Name and SQL type of each column."""


def query(out: Outs, sql: str) -> pd.DataFrame:
    """Query the data set of a sweep, or several data sets of one plan as one, in DuckDB's SQL.

    The statement can use the table ``runs``, the tables ``flows``, ``links`` and ``series`` if the
    plan keeps them, and the functions ``bps`` and ``seconds``, which parse a rate or a time with
    its unit. It cannot access other files or change the data set.

    Examples
    --------
    >>> query("out", 'select controller, avg(jain) from runs group by 1')  # doctest: +SKIP
      controller  avg(jain)
    0       reno   0.961241
    1       simd   0.908340
    """
    frame: pd.DataFrame = read(out, sql).to_pandas()
    return frame


def read(out: Outs, sql: str) -> pa.Table:
    """Query the data set of a sweep, like `query`, into an Arrow table.

    Decimals are doubles, and sums of integers are integers if they fit.
    """
    with stream(out, sql) as result:
        return without_decimals(pa.concat_tables([result.schema.empty_table(), *result]))


class _Streamed(dataset.UnionDataset):  # type: ignore[misc]
    """A data set that DuckDB reads row group by row group.

    Arrow's own scanner reads ahead until it holds a gigabyte that was not consumed.
    """

    def scanner(self, **options: Any) -> _RowGroups:  # noqa: ANN401
        """Return what DuckDB reads; it calls this method for each use of the table."""
        return _RowGroups(self.schema, self.children, options)


class _RowGroups:
    """A scan of a table, as DuckDB uses one."""

    def __init__(
        self, schema: pa.Schema, tables: Sequence[dataset.Dataset], options: dict[str, Any]
    ) -> None:
        self._schema, self._tables, self._options = schema, tables, options

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the batches."""
        empty = dataset.dataset(self._schema.empty_table())
        schema = empty.scanner(**self._options).projected_schema
        return pa.RecordBatchReader.from_batches(schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Decode the row groups one after the other."""
        for table in self._tables:
            for fragment in table.get_fragments():
                for group in _split(fragment):
                    yield from group.to_batches(
                        schema=self._schema, batch_size=BATCH_ROWS, **self._options
                    )


def _split(fragment: dataset.Fragment) -> Sequence[dataset.Fragment]:
    """Return the row groups of a file; rows in memory are one."""
    is_file = isinstance(fragment, dataset.ParquetFileFragment)
    return fragment.split_by_row_group() if is_file else [fragment]


class Result:
    """Rows of a query, in tables of some thousand rows; ``schema`` has DuckDB's decimals."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader) -> None:
        self._connection, self._reader, self.schema = connection, reader, reader.schema

    def __iter__(self) -> Iterator[pa.Table]:
        while True:
            try:
                batch = _apart(self._connection, self._reader.read_next_batch)
            except StopIteration:
                return
            except (OSError, pa.ArrowException) as problem:
                # A damaged page, or a value that a function refuses.
                raise ArgumentError("sql", _first_line(problem)) from None
            yield pa.Table.from_batches([batch])


@contextmanager
def stream(out: Outs, sql: str) -> Iterator[Result]:
    """Query the data set of a sweep, like `query`, without holding the result in memory."""
    with connect(out) as connection:

        def start() -> pa.RecordBatchReader | None:
            relation = connection.sql(sql)
            return None if relation is None else relation.to_arrow_reader(BATCH_ROWS)

        try:
            reader = _apart(connection, start)
        except duckdb.Error as problem:
            raise ArgumentError("sql", _message(problem, sql, connection)) from None
        if reader is None:
            raise ArgumentError("sql", "the statement returns no rows; use select")
        yield Result(connection, reader)


def _apart(connection: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """Call a function in a thread: DuckDB returns to Python, and to Ctrl-C, at its end."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        finally:
            # An interrupt has no effect before the statement begins.
            while not future.done():
                connection.interrupt()
                wait([future], 0.05)


def connect(out: Outs) -> duckdb.DuckDBPyConnection:
    """Open the data set of a sweep in DuckDB; the caller has to close the connection.

    The connection is in memory, without access to files: the tables are scans of Arrow data sets.
    Its configuration is locked.
    """
    found = Tables(out)
    connection = duckdb.connect(":memory:", config={"enable_external_access": "false"})
    # DuckDB prints its progress on standard output.
    connection.execute("set enable_progress_bar = false; set lock_configuration = true")
    connection.create_function("bps", _bps, ["VARCHAR"], "DOUBLE")
    connection.create_function("seconds", _seconds, ["VARCHAR"], "DOUBLE")
    for name in found.names:
        table = found.open(name)
        connection.register(name, _Streamed(table.schema, [table]))
    return connection


def tables(out: Outs) -> list[Table]:
    """List the tables of a data set, ``runs`` first."""
    found = []
    with connect(out) as connection:
        try:
            listed = {name for (name,) in connection.sql("show tables").fetchall()}
            for name in ("runs", *TABLES):
                if name not in listed:
                    continue
                columns = [row[:2] for row in connection.sql(f"describe {name}").fetchall()]
                rows = connection.table(name).count("*").fetchall()[0][0]
                found.append(Table(name, rows, columns))
        except duckdb.Error as problem:
            raise ArgumentError("out", f"cannot read {out}: {problem}") from None
    return found


def _bps(text: str) -> float:
    """Parse a rate. The signature tells DuckDB the number of parameters."""
    return parse_rate(text)


def _seconds(text: str) -> float:
    """Parse a time."""
    return parse_time(text)


def _first_line(text: object) -> str:
    """Return the message of an error, without DuckDB's excerpt of the statement."""
    return " ".join(str(text).partition("\n\n")[0].split())


def _message(problem: duckdb.Error, sql: str, connection: duckdb.DuckDBPyConnection) -> str:
    """Return DuckDB's message on one line, with the tables, or the column that needs quotes."""
    text = _first_line(problem)
    if match := re.match(r".*Table with name \S+ does not exist", text):
        names = [name for (name,) in connection.sql("show tables").fetchall()]
        return f"{match[0]}; the tables are {', '.join(names)}"
    for name in connection.table("runs").columns:
        if not name.isidentifier() and name in sql and f'"{name}"' not in sql:
            return f'{text}; write the column {name} in double quotes: "{name}"'
    return text


def without_decimals(table: pa.Table) -> pa.Table:
    """Convert decimal columns: DuckDB's sum of integers has 128 bits.

    Decimals without fraction are integers if all of them fit, and others doubles.
    """
    for at, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            column = table.column(at)
            try:
                column = column.cast(pa.int64() if field.type.scale == 0 else pa.float64())
            except pa.ArrowInvalid:
                column = column.cast(pa.float64())
            table = table.set_column(at, field.name, column)
    return table
