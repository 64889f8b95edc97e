"""The data set of a sweep: a directory with one folder of Parquet files for each table."""

from __future__ import annotations

import fcntl
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from cwnd.errors import ArgumentError
from cwnd.result import SCALES

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt
    from typing_extensions import Self

    from cwnd.sweeps.plan import Plan

PLAN = "plan.toml"
TABLES = ("flows", "links", "series")
"""Optional tables of a sweep, besides ``runs``."""

LOST = "lost: "
"""Prefix of the error of a run whose worker died; a resumed sweep repeats the run."""

PART_RUNS = 4096
"""Runs after which a part is written; a part may exceed this by one batch."""

PART_BYTES = 64_000_000
"""Uncompressed bytes of all tables after which a part is written."""

PART_SECONDS = 30.0
"""Seconds after which a part is written even if it is small."""

METRICS = (
    *("jain", "goodput_bps", "efficiency_index", "fairness_index", "stability_index"),
    *("alpha_fairness", "utilization", "loss_rate", "mark_rate", "retransmission_rate"),
    *("queueing_delay_s", "queueing_delay_p50_s", "queueing_delay_p95_s", "queueing_delay_p99_s"),
    *(f"cov_{scale}rtt" for scale in SCALES),
    "convergence_time_s",
)
"""Columns of ``runs`` with metrics, all of type double."""

TCP_CONVENTIONS = "tcp_conventions"
"""Column of ``runs`` with the conventions of the TCP flows, separated by commas."""

_KEY = pa.field("key", pa.string(), nullable=False)
_BEFORE = (_KEY, pa.field("point", pa.int64(), nullable=False))
_AFTER = (
    pa.field("controller", pa.string()),
    pa.field("reference", pa.string()),
    pa.field("seed", pa.uint64(), nullable=False),
    pa.field("error", pa.string()),
    pa.field("wall_s", pa.float64()),
    pa.field("code", pa.string(), nullable=False),
    *(pa.field(name, pa.float64()) for name in METRICS),
    pa.field("bottleneck", pa.string()),
    pa.field(TCP_CONVENTIONS, pa.string()),
)
_SHARE = pa.field("share", pa.float64())

FIXED = frozenset(field.name for field in (*_BEFORE, *_AFTER, _SHARE))
"""Columns of ``runs`` in every plan; axes cannot have these names."""


_TYPES = {
    pa.string(): "name controller kind flow queue_limit_unit",
    pa.bool_(): "measured",
    pa.int64(): "packets_sent bytes_sent packets_delivered bytes_delivered packets_received "
    "packets_lost packets_marked retransmissions offered "
    "timeouts cuts arrivals departures drops marks losses",
}
"""Types of columns other than double."""


def _columns(names: str) -> pa.Schema:
    """Create a schema of the key and of named columns."""
    types = {name: kind for kind, of in _TYPES.items() for name in of.split()}
    fields = [pa.field(name, types.get(name, pa.float64())) for name in names.split()]
    return pa.schema([_KEY, *fields])


FLOWS = _columns(
    "name controller kind measured start_s stop_s completed_s acknowledged_s "
    "throughput_bps goodput_bps "
    "packets_sent bytes_sent packets_delivered bytes_delivered packets_received packets_lost "
    "packets_marked retransmissions timeouts cuts loss_rate mean_rtt_s min_rtt_s mean_window "
    "limited_window_s limited_pacing_s limited_receiver_s limited_application_s"
)
"""Schema of ``flows``: the columns of `Result.flows`."""

LINKS = _columns(
    "name rate_bps token_rate_bps delay_s utilization "
    "arrivals offered departures drops marks losses loss_rate mark_rate "
    "mean_queue queue_limit queue_limit_unit "
    "queueing_delay_mean_s queueing_delay_p50_s queueing_delay_p95_s queueing_delay_p99_s"
)
"""Schema of ``links``: the columns of `Result.links`."""

SERIES = _columns("time_s flow controller window ssthresh rtt_s sent delivered")
"""Schema of ``series``: the columns of `cwnd.tables.samples` that every flow has."""


def schemas(plan: Plan) -> dict[str, pa.Schema]:
    """Return the schema of each table of a plan.

    Parameters
    ----------
    plan
        The plan.
    """
    types = {"bool": pa.bool_(), "int64": pa.int64(), "double": pa.float64(), "string": pa.string()}
    axes = [pa.field(axis.name, types[axis.kind], nullable=False) for axis in plan.axes]
    share = [] if plan.reference is None else [_SHARE]
    measures = [pa.field(name, pa.float64()) for name in plan.measures]
    runs = pa.schema([*_BEFORE, *axes, *_AFTER, *share, *measures])
    kept = {"flows": FLOWS, "links": LINKS, "series": SERIES}
    return {"runs": runs, **{table: kept[table] for table in plan.keep}}


class DataSet:
    """A data set with one writing process at a time.

    A part is one file in each table, with a common name. The file in ``runs`` is written last: rows
    of a part without it are ignored, and removed when the data set is opened again.

    Parameters
    ----------
    path
        The directory; created if missing.
    plan
        The plan of the runs.

    Raises
    ------
    ArgumentError
        The directory contains something else, or runs that do not match the plan, or another
        process writes to it.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self._path, self._plan = path, plan
        self._schemas = schemas(plan)
        identity = {f"cwnd.{name}": value for name, value in plan.identity.items()}
        self._schemas["runs"] = self._schemas["runs"].with_metadata(identity)
        _check_directory(path)
        path.mkdir(parents=True, exist_ok=True)
        self._lock = (path / ".lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise ArgumentError("out", f"another sweep is writing to {path}") from None
        try:
            self._present = self._open()
        except BaseException:
            self._lock.close()
            raise
        self._buffer: list[dict[str, pa.Table]] = []
        self._runs = self._bytes = 0
        self._since = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Write the buffered rows and release the lock."""
        try:
            self.flush()
        finally:
            self._lock.close()

    def __len__(self) -> int:
        """Return the number of runs of the plan's controllers present when opened."""
        return self._present.size

    def has(self, key: str) -> bool:
        """Test whether a run was present when the data set was opened."""
        number = np.uint64(int(key[:16], 16))
        at = int(np.searchsorted(self._present, number))
        return at < self._present.size and bool(self._present[at] == number)

    def add(self, tables: dict[str, pa.Table]) -> None:
        """Buffer the tables of some runs; write a part if enough are buffered.

        Parameters
        ----------
        tables
            Rows of each table.
        """
        self._buffer.append(tables)
        self._bytes += sum(table.nbytes for table in tables.values())
        self._runs += tables["runs"].num_rows
        if self._runs >= PART_RUNS or self._bytes >= PART_BYTES:
            self.flush()

    def flush_old(self) -> None:
        """Write a part if the last one was written more than `PART_SECONDS` ago."""
        if time.monotonic() - self._since >= PART_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows as a part."""
        self._since = time.monotonic()
        if not self._buffer:
            return
        # `runs` is written last: its file marks the part as complete.
        for name in reversed(self._schemas):
            table = pa.concat_tables([tables[name] for tables in self._buffer])
            self._write(name, f"part-{self._next:06}.parquet", table)
        self._buffer = []
        self._runs = self._bytes = 0
        self._next += 1

    def _write(self, name: str, part: str, table: pa.Table) -> None:
        """Write a file atomically."""
        home = self._path / name
        home.mkdir(exist_ok=True)
        schema = self._schemas[name]
        written = home / f".{part}.tmp"
        parquet.write_table(table.cast(schema), written, compression="zstd")
        written.replace(home / part)

    def _open(self) -> npt.NDArray[np.uint64]:
        """Check the parts and remove incomplete ones; return sorted key prefixes of 64 bits."""
        found = sorted((self._path / "runs").glob("part-*.parquet"))
        for part in found:
            _check_part(part)
        self._next = 1 + max((int(part.stem.removeprefix("part-")) for part in found), default=0)
        if found:
            self._compare(parquet.read_schema(found[0]))
        complete = {part.name for part in found}
        for name in self._schemas:
            home = self._path / name
            for file in [*home.glob("part-*.parquet"), *home.glob(".part-*.tmp")]:
                if file.name not in complete:
                    file.unlink()
        keys = [self._keys(part) for part in found]
        written = self._path / f".{PLAN}.tmp"
        written.write_text(self._plan.text, encoding="utf-8")
        written.replace(self._path / PLAN)
        return np.sort(np.concatenate(keys)) if keys else np.empty(0, dtype=np.uint64)

    def _compare(self, found: pa.Schema) -> None:
        """Raise an error if the plan differs in keys other than controllers and seeds."""
        metadata = found.metadata or {}
        for name, value in self._plan.identity.items():
            if metadata.get(f"cwnd.{name}".encode()) != value.encode():
                raise ArgumentError(
                    "out",
                    f"{self._path} has runs of a plan with a different `{name}`: "
                    "choose another directory",
                )

    def _keys(self, part: Path) -> npt.NDArray[np.uint64]:
        """Remove lost runs from a part; return the first 64 bits of the remaining keys."""
        columns = ["key", "controller", "reference", "code", "error"]
        table = parquet.read_table(part, columns=columns)
        for row in table.group_by(["controller", "code"]).aggregate([]).to_pylist():
            now = self._plan.codes.get(row["controller"], row["code"])
            if row["code"] != now:
                of = "" if row["controller"] is None else f" of {row['controller']}"
                raise ArgumentError(
                    "out",
                    f"{self._path} has runs{of} with different code ({row['code']}, now {now}): "
                    "choose another directory",
                )
        lost = pc.fill_null(pc.starts_with(table["error"], LOST), fill_value=False)
        if pc.any(lost).as_py():
            whole = parquet.read_table(part)
            self._write("runs", part.name, whole.filter(pc.invert(lost)))
            table = table.filter(pc.invert(lost))
        plan = self._plan
        for column, wanted in (("controller", plan.controllers), ("reference", [plan.reference])):
            table = table.filter(pc.is_in(table[column], pa.array(wanted, pa.string())))
        return np.array([int(key[:16], 16) for key in table["key"].to_pylist()], dtype=np.uint64)


def _check_directory(path: Path) -> None:
    """Raise an error for a path that is not a directory, or has files of something else."""
    if path.is_dir():
        # A sweep killed at its start leaves only the hidden lock file.
        shown = any(not file.name.startswith(".") for file in path.iterdir())
        if shown and not (path / PLAN).is_file():
            raise ArgumentError("out", f"{path} is not empty and has no sweep")
    elif path.exists():
        raise ArgumentError("out", f"{path} is not a directory")


def _check_part(part: Path) -> None:
    """Raise an error for a damaged file."""
    try:
        parquet.read_metadata(part)
    except pa.ArrowInvalid:
        raise ArgumentError(
            "out", f"{part} is damaged: remove it, and its runs are made again"
        ) from None


def find_parts(path: Path) -> dict[str, list[Path]]:
    """Return the files of each table of a data set, with ``runs`` first.

    Parameters
    ----------
    path
        The directory of the data set.

    Raises
    ------
    ArgumentError
        The data set has no complete part.
    """
    names = sorted(file.name for file in (path / "runs").glob("part-*.parquet"))
    if not names:
        raise ArgumentError("out", f"{path} has no runs of a sweep")
    return {
        table: [path / table / name for name in names]
        for table in ("runs", *TABLES)
        if (path / table / names[0]).is_file()
    }
