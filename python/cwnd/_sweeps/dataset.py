"""The data set of a sweep: a directory with one folder of Parquet files for each table."""

from __future__ import annotations

import errno
import os
import secrets
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from cwnd._base import interrupts, machine
from cwnd._base.records import FLOW_COUNTERS, LINK_COUNTERS
from cwnd._sweeps.axes import LATIN_POINT
from cwnd._sweeps.manifest import (
    AGAIN,
    LOST,
    add_part,
    check_folders,
    list_parts,
    remove_part,
    remove_remains,
    write_file,
)
from cwnd.errors import ArgumentError, DataSetWarning
from cwnd.metrics.catalog import FIGURES
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt
    from typing_extensions import Self

    from cwnd._sweeps.manifest import Part
    from cwnd._sweeps.plan import Plan

PLAN = "plan.toml"
PART_RUNS = 4096
"""Runs after which a part is written; a part may exceed this by one batch."""

PART_BYTES = 64_000_000
"""Uncompressed bytes of all tables after which a part is written."""

PART_SECONDS = 30.0
"""Seconds after which a part is written even if it is small."""

METRICS = tuple(name for name, figure in FIGURES.items() if figure.of_run)
"""Columns of ``runs`` with metrics, all of type double."""

GOODPUT_LIMIT = "goodput_limit_bps"
"""Column of ``runs`` with the rate that no goodput exceeds; infinite if none is known."""

TCP_CONVENTIONS = "tcp_conventions"
"""Column of ``runs`` with the conventions of the TCP flows, separated by commas."""

_KEY = pa.field("key", pa.string(), nullable=False)
_LATIN = pa.field(LATIN_POINT, pa.int64(), nullable=False)
_AFTER = (
    pa.field("controller", pa.string()),
    pa.field("reference", pa.string()),
    pa.field("seed", pa.uint64(), nullable=False),
    pa.field("error", pa.string()),
    pa.field("wall_s", pa.float64()),
    pa.field("code", pa.string(), nullable=False),
    *(pa.field(name, pa.float64()) for name in METRICS),
    pa.field("bottleneck", pa.string()),
    pa.field(GOODPUT_LIMIT, pa.float64()),
    pa.field(TCP_CONVENTIONS, pa.string()),
)
_SHARE = pa.field("share", pa.float64())

FIXED = frozenset(field.name for field in (_KEY, _LATIN, *_AFTER, _SHARE))
"""Columns of ``runs`` in every plan; axes cannot have these names."""


_TYPES = {
    pa.string(): "name controller kind flow queue_limit_unit",
    pa.bool_(): "measured",
    pa.int64(): " ".join(("cuts", *FLOW_COUNTERS, *LINK_COUNTERS)),
}
"""Types of columns other than double."""


def _columns(names: str) -> pa.Schema:
    """Create a schema of the key and of named columns."""
    types = {name: kind for kind, of in _TYPES.items() for name in of.split()}
    fields = [pa.field(name, types.get(name, pa.float64())) for name in names.split()]
    return pa.schema([_KEY, *fields])


FLOWS = _columns(
    "name controller kind measured start_s stop_s completed_s acknowledged_s "
    f"throughput_bps goodput_bps {' '.join(FLOW_COUNTERS)} "
    "cuts loss_rate mean_rtt_s min_rtt_s mean_window "
    "limited_window_s limited_pacing_s limited_receiver_s limited_application_s"
)
"""Schema of ``flows``: the columns of `Result.flows`."""

LINKS = _columns(
    "name rate_bps token_rate_bps delay_s utilization "
    f"{' '.join(LINK_COUNTERS)} loss_rate mark_rate "
    "mean_queue queue_limit queue_limit_unit "
    "queue_delay_mean_s queue_delay_p50_s queue_delay_p95_s queue_delay_p99_s"
)
"""Schema of ``links``: the columns of `Result.links`."""

SERIES = _columns("time_s flow controller window ssthresh rtt_s sent delivered")
"""Schema of ``series``: the columns of `cwnd.tables.samples` that every flow has."""


def schemas(plan: Plan) -> dict[str, pa.Schema]:
    """Return the schema of each table of a plan."""
    types = {"bool": pa.bool_(), "int64": pa.int64(), "double": pa.float64(), "string": pa.string()}
    kinds = {axis.name: types[axis.kind] for axis in plan.axes} | {LATIN_POINT: pa.int64()}
    places = [pa.field(name, kinds[name], nullable=plan.optional) for name in plan.places]
    share = [] if plan.reference is None else [_SHARE]
    measures = [pa.field(name, pa.float64()) for name in plan.measures]
    runs = pa.schema([_KEY, *places, *_AFTER, *share, *measures])
    kept = {"flows": FLOWS, "links": LINKS, "series": SERIES}
    return {"runs": runs, **{table: kept[table] for table in plan.keep}}


class DataSet:
    """A data set, opened to add runs; the files of its parts are checked first.

    One process at a time writes all runs where the file system has locks. Elsewhere several may:
    each writes its own parts, and a run that was made twice counts once. Several processes may
    write shares to one directory: ``shard`` is ``(i, n)`` for the i-th of n equal ones, from 1 on.
    """

    def __init__(self, path: Path, plan: Plan, shard: tuple[int, int] = (1, 1)) -> None:
        self._path, self._plan = path, plan
        self._schemas, self._identity = schemas(plan), plan.identity | plan.files
        check_directory(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ArgumentError("out", f"cannot create {path}: {problem.strerror}") from None
        self._lock = lock(path, shared=shard[1] > 1)
        try:
            self._present = self._open()
        except BaseException:
            os.close(self._lock)
            raise
        self._missing = missing(self._present, shard)
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
            os.close(self._lock)

    def __len__(self) -> int:
        """Return the number of runs of the plan present when opened."""
        return int(np.count_nonzero(self._present))

    @property
    def lacking(self) -> int:
        """Number of the runs of `missing`."""
        return int(np.count_nonzero(self._missing))

    def missing(self) -> Iterator[int]:
        """Yield the numbers of the share's runs that were missing when opened."""
        for start in range(0, self._missing.size, 1 << 16):
            absent = np.flatnonzero(self._missing[start : start + (1 << 16)])
            yield from (start + absent).tolist()

    def add(self, tables: dict[str, pa.Table]) -> None:
        """Buffer the rows of each table of some runs; write a part if enough are buffered."""
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
        with interrupts.writing:
            tables = {
                name: pa.concat_tables([one[name] for one in self._buffer]).cast(schema)
                for name, schema in self._schemas.items()
            }
            # The call after an interrupt writes a part of the same name.
            add_part(self._path, self._next, self._writer, tables, self._identity)
            self._buffer = []
            self._runs = self._bytes = 0
            self._next += 1

    def _open(self) -> npt.NDArray[np.bool_]:
        """Check the parts and remove damaged ones; return which of the plan's runs are present."""
        parts, damages, present = inspect(self._path, self._plan)
        for part in parts:
            if part.name in damages:
                remove_part(part)
        remove_remains(self._path, [part for part in parts if part.name not in damages])
        write_file(self._path / PLAN, self._plan.text.encode())
        if damages:
            runs = sum(part.runs for part in parts if part.name in damages)
            found = "; ".join(f"{name}: {damage}" for name, damage in damages.items())
            warnings.warn(
                f"{self._path}: {counted(len(damages), 'damaged part')} removed ({found}): "
                f"{counted(runs, 'run')} to make again",
                DataSetWarning,
                stacklevel=2,
            )
        # The token makes the names of concurrent writers differ.
        self._writer = secrets.token_hex(8)
        self._next = 1 + max((part.number for part in parts), default=0)
        return present


def inspect(path: Path, plan: Plan) -> tuple[list[Part], dict[str, str], npt.NDArray[np.bool_]]:
    """Check the parts of a data set, whose directory may be missing, without changing it.

    Return all parts, the faults of damaged ones by name, and which of the plan's runs the others
    have.
    """
    check_directory(path)
    check_folders(path)
    parts = list_parts(path)
    damages = {
        part.name: damage for part in parts if (damage := part.damage(contents=True)) is not None
    }
    present = np.zeros(len(plan), dtype=bool)
    identity, files, columns = plan.identity, plan.files, schemas(plan)["runs"]
    for part in parts:
        if part.name not in damages:
            # A value of an axis that names a file may be new.
            _compare(part, identity | {name: files[name] for name in files.keys() & part.plan})
            file = part.file("runs")
            try:
                same = parquet.read_schema(file).equals(columns)
            except pa.ArrowInvalid as problem:
                raise ArgumentError("out", f"{file}: {problem}") from None
            if not same:
                raise ArgumentError("out", f"{file} has other columns than the plan; {AGAIN}")
            present[_find_runs(part, plan)] = True
    return parts, damages, present


def missing(present: npt.NDArray[np.bool_], shard: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return which of the plan's runs belong to a share and are missing."""
    numbers = np.arange(present.size, dtype=np.uint32)
    # The offset prevents that a share has only some of the controllers.
    own = (numbers + numbers // shard[1]) % shard[1] == shard[0] - 1
    found: npt.NDArray[np.bool_] = own & ~present
    return found


def _compare(part: Part, identity: dict[str, str]) -> None:
    """Raise an error if the plan differs in more than controllers, seeds and values of axes."""
    for name, value in identity.items():
        if part.plan.get(name) != value:
            raise ArgumentError(
                "out",
                f"{part.out} has runs of a plan with a different `{name}`: "
                "choose another directory",
            )


def _find_runs(part: Part, plan: Plan) -> npt.NDArray[np.int64]:
    """Return the numbers of the plan's runs that a part has, without lost ones."""
    columns = [*plan.places, "controller", "reference", "seed", "code", "error"]
    table = parquet.read_table(part.file("runs"), columns=columns)
    for row in table.group_by(["controller", "code"]).aggregate([]).to_pylist():
        now = plan.codes.get(row["controller"], row["code"])
        if row["code"] != now:
            of = "" if row["controller"] is None else f" of {row['controller']}"
            raise ArgumentError(
                "out",
                f"{part.out} has runs{of} with different code ({row['code']}, now {now}): "
                f"choose another directory{_removal(part.out, row['controller'])}",
            )
    lost = pc.fill_null(pc.starts_with(table["error"], LOST), fill_value=False)
    same = pc.is_in(table["reference"], value_set=pa.array([plan.reference], pa.string()))
    table = table.filter(pc.and_not(same, lost))
    known = pa.array(plan.controllers, pa.string())
    controllers = pc.fill_null(pc.index_in(table["controller"], value_set=known), -1).to_numpy()
    points = _positions(plan.find_points(table), plan.chosen_points)
    seeds = _positions(table["seed"].to_numpy(), plan.seeds)
    numbers: npt.NDArray[np.int64] = (seeds * len(plan.chosen_points) + points) * len(
        known
    ) + controllers
    known_runs: npt.NDArray[np.bool_] = (seeds >= 0) & (points >= 0) & (controllers >= 0)
    return numbers[known_runs]


def _removal(out: Path, controller: str | None) -> str:
    """Return the command that removes the runs of a controller, as the end of a message."""
    if controller is None:
        return ""
    quoted = controller.replace("'", "''")
    return f""", or remove them: cwnd sweep --forget "controller = '{quoted}'" --out {out}"""


def _positions(values: npt.NDArray[Any], among: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the position of each value in a sequence of distinct integers; -1 if not in it."""
    known = np.asarray(among, dtype=values.dtype)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, values, sorter=order), known.size - 1)
    found = order[at]
    return np.where(known[found] == values, found, -1)


def lock(path: Path, *, shared: bool = False) -> int:
    """Lock a data set for one writer, and return the descriptor of the lock, to close.

    ``shared`` admits other writers of shares; without locks in the file system there is a
    DataSetWarning.
    """
    try:
        opened = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | machine.O_NOFOLLOW, 0o666)
    except OSError as problem:
        if problem.errno != errno.ELOOP:
            raise
        raise ArgumentError("out", f"{path / '.lock'} is a symbolic link") from None
    try:
        machine.lock(opened, shared=shared)
    except BlockingIOError:
        os.close(opened)
        raise ArgumentError("out", f"another sweep is writing to {path}") from None
    except OSError as problem:
        if shared:
            return opened
        warnings.warn(
            f"{path} cannot be locked ({problem.strerror}): do not start a second sweep there; "
            "it would make the same runs again",
            DataSetWarning,
            stacklevel=2,
        )
    return opened


def check_directory(path: Path) -> None:
    """Raise an error for a path that is not a directory, or has files of something else."""
    if path.is_dir():
        # A sweep killed at its start leaves only hidden files.
        shown = any(not file.name.startswith(".") for file in path.iterdir())
        if shown and not (path / PLAN).is_file():
            raise ArgumentError("out", f"{path} is not empty and has no sweep")
    elif path.exists():
        raise ArgumentError("out", f"{path} is not a directory")
