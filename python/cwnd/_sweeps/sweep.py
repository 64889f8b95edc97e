"""Run a sweep, and read its data set."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow.compute as pc

from cwnd import _show
from cwnd._base.progress import with_notebook_bar
from cwnd._runs.conventions import all_conventions
from cwnd._runs.defaults import SHARD
from cwnd._runs.real_time import check_backend
from cwnd._sweeps.dataset import TCP_CONVENTIONS, DataSet
from cwnd._sweeps.manifest import LOST, Tables
from cwnd._sweeps.processes import Lost, pack
from cwnd._sweeps.reading import PlanLike, read_plan
from cwnd._sweeps.work import failed_batch
from cwnd._sweeps.workers import Cluster, Cores, run_packed
from cwnd.errors import ArgumentError
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    import pandas as pd
    import pyarrow as pa
    from distributed import Client

    from cwnd._base.records import JsonObject
    from cwnd._sweeps.manifest import Outs
    from cwnd._sweeps.plan import Plan, Run
    from cwnd._sweeps.workers import Workers

MAX_BATCH = 256
"""Largest number of runs in a batch."""

IN_FLIGHT = 3
"""Number of batches in flight for each core or worker thread."""

MAX_ERRORS = 10
"""Largest number of distinct errors in a summary."""


class Sweep:
    """The data set of a sweep, or several data sets of one plan as one.

    Parameters
    ----------
    out
        Its directory, or the directories; a run in several of them counts once.
    made
        Number of runs added by the last call of `sweep`.

    Attributes
    ----------
    out
        The directory; the first one of several.
    made
        As given.

    Raises
    ------
    ArgumentError
        A directory has no runs, or the directories are of different plans.

    Examples
    --------
    >>> import cwnd, tempfile
    >>> plan = {"base": {"time": "4s", "flows": 2}, "axes": {"rate": ["2mbit", "4mbit"]},
    ...         "controllers": ["reno"], "keep": ["flows"]}
    >>> sweep = cwnd.sweep(plan, out=tempfile.mkdtemp())
    >>> sorted(sweep.runs["rate"])
    ['2mbit', '4mbit']
    >>> len(sweep.flows)
    4
    """

    def __init__(self, out: Outs, *, made: int = 0) -> None:
        self._tables = Tables(out)
        self.out, self.made = self._tables.outs[0], made

    def __repr__(self) -> str:
        outs = ", ".join(repr(str(out)) for out in self._tables.outs)
        return f"<Sweep {outs}: {counted(len(self), 'run')}, {self.failed:,} failed>"

    def __len__(self) -> int:
        """Return the number of runs."""
        return int(self._tables.open("runs").count_rows())

    @property
    def runs(self) -> pd.DataFrame:
        """One row for each run: axes, controller, seed, error, metrics; see docs/sweep.md."""
        return self._frame("runs")

    @property
    def flows(self) -> pd.DataFrame:
        """One row for each flow of each run, if the plan keeps ``flows``."""
        return self._frame("flows")

    @property
    def links(self) -> pd.DataFrame:
        """One row for each link of each run, if the plan keeps ``links``."""
        return self._frame("links")

    @property
    def series(self) -> pd.DataFrame:
        """One row for each sample of each flow of each run, if the plan keeps ``series``."""
        return self._frame("series")

    @property
    def errors(self) -> dict[str, int]:
        """Errors of failed runs with their counts, most frequent first."""
        column = self._tables.read("runs", ["error"])["error"].drop_null()
        counts = [(one["values"], one["counts"]) for one in pc.value_counts(column).to_pylist()]
        return dict(sorted(counts, key=lambda one: (-one[1], one[0])))

    @property
    def conventions(self) -> list[str]:
        """Conventions of the TCP flows of all runs."""
        texts = self._tables.read("runs", [TCP_CONVENTIONS])[0].drop_null().unique()
        found = all_conventions(text.split(",") for text in texts.to_pylist())
        # Runs are in the order of their completion.
        return sorted(filter(None, found))

    @property
    def failed(self) -> int:
        """Number of failed runs."""
        return sum(self.errors.values())

    def query(self, sql: str) -> pd.DataFrame:
        """Query the data set with SQL.

        Parameters
        ----------
        sql
            A query of the tables ``runs``, ``flows``, ``links`` and ``series``.
        """
        from cwnd._sweeps.query import query

        return query(self._tables.outs, sql)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page: maps, slices, table of the points, failed runs.

        Parameters
        ----------
        path
            The file to write.
        """
        from cwnd._base.files import write_text

        write_text(path, _show.report.sweep.sweep_page(self._tables.outs))

    def to_json(self) -> JsonObject:
        """Return the size of the data set and the errors as plain data."""
        errors = self.errors
        return {
            "out": str(self.out),
            "conventions": self.conventions,
            "runs": len(self),
            "made": self.made,
            "failed": sum(errors.values()),
            "errors": [
                {"error": error, "runs": count}
                for error, count in islice(errors.items(), MAX_ERRORS)
            ],
        }

    def _frame(self, name: str) -> pd.DataFrame:
        """Read a table of the data set."""
        if name not in self._tables.names:
            raise ArgumentError(
                "out", f"{self.out} has no table {name}: name it in `keep` of the plan"
            )
        frame: pd.DataFrame = self._tables.read(name).to_pandas()
        return frame


@with_notebook_bar
def sweep(
    plan: PlanLike,
    *,
    out: str | Path,
    dask: str | Client | None = None,
    shard: tuple[int, int] = SHARD,
    progress: Callable[[float], None] | None = None,
) -> Sweep:
    """Run every point of a plan, and write the figures to a Parquet data set.

    Runs that are already in the data set are skipped, so that the same call resumes an interrupted
    sweep. A failed run is a row with its ``error``.

    Parameters
    ----------
    plan
        The path of a plan, the name of a packaged one, or its contents as plain data; see
        docs/sweep.md. Controllers may be Python classes, ``functools.partial`` and instances.
    out
        The directory of the data set.
    dask
        The address of a Dask scheduler, such as ``tcp://10.0.0.1:8786``, or a
        ``distributed.Client``, which remains open. Its workers execute the runs; by default the
        cores of this machine do.
    shard
        ``(i, n)`` makes the i-th of n equal shares of the runs, from 1 on. The calls for all
        shares may run at the same time, into one directory or into several.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    Sweep
        The data set.

    Raises
    ------
    PlanError
        The plan is invalid; the message names the file and the key.
    ArgumentError
        ``out``, ``dask`` or ``shard`` is invalid.
    KernelError
        This machine or user cannot make runs in real time.

    Warns
    -----
    DataSetWarning
        ``out`` has damaged parts, whose runs are made again, or cannot be locked.
    """
    if not 1 <= shard[0] <= shard[1]:
        raise ArgumentError("shard", f"{shard[0]}/{shard[1]} is not a share such as 1/8 or 8/8")
    plan = read_plan(plan)
    if plan.real:
        if dask is not None:
            raise ArgumentError("dask", f"a sweep on {plan.on} runs on this machine only")
        check_backend(plan.on)
    workers = Cores(plan) if dask is None else Cluster(dask, run_packed, pack(plan))
    with workers, DataSet(Path(out), plan, shard) as data:
        runs = map(plan.run, data.missing())
        made = Batches(plan, data, workers, runs, data.lacking).make(progress)
    return Sweep(out, made=made)


class Rows(Protocol):
    """Keeps the rows of runs."""

    def add(self, tables: dict[str, pa.Table]) -> None:
        """Add the rows of each table of some runs."""

    def flush_old(self) -> None:
        """Write the rows if the last ones were written long ago."""


class Batches:
    """Executes runs in batches; ``count`` is their number."""

    def __init__(
        self, plan: Plan, data: Rows, workers: Workers, runs: Iterable[Run], count: int
    ) -> None:
        self._plan, self._data, self._workers = plan, data, workers
        self._pending = iter(runs)
        self._returned: list[Run] = []
        self._left = self._todo = max(count, 1)
        self._batches: dict[Future[Any], list[Run]] = {}
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self._suspects: list[Run] = []
        self._alone = False
        self._made = 0

    def make(self, progress: Callable[[float], None] | None) -> int:
        """Execute the runs; return their number."""
        try:
            while self._submit_batches():
                for future in self._wait_for_batches():
                    self._end(future, self._batches.pop(future))
                self._data.flush_old()
                if progress is not None:
                    progress(min(self._made / self._todo, 1.0))
        except BaseException:
            self._workers.stop()
            self._keep()
            raise
        return self._made

    def _keep(self) -> None:
        """Add the rows of batches that have ended meanwhile."""
        for future in self._batches:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._data.add(future.result())

    def _submit_batches(self) -> bool:
        """Submit batches until enough are in flight; return whether any are."""
        most = IN_FLIGHT * self._workers.slots()
        # Large batches have less overhead; small ones at the end keep all workers busy.
        size = max(min(MAX_BATCH, self._left // (2 * most)), 1)
        while len(self._batches) < most and (batch := self._take(size)):
            self._watch(self._workers.submit(batch), batch)
        if not self._batches and self._suspects:
            self._alone, batch = True, [self._suspects.pop()]
            self._watch(self._workers.submit(batch), batch)
        return bool(self._batches)

    def _take(self, size: int) -> list[Run]:
        """Take up to ``size`` runs; those that other batches had no time for are the first."""
        batch, self._returned = self._returned[:size], self._returned[size:]
        batch += islice(self._pending, size - len(batch))
        self._left -= len(batch)
        return batch

    def _watch(self, future: Future[Any], batch: list[Run]) -> None:
        """Queue a batch when it completes."""
        self._batches[future] = batch
        future.add_done_callback(self._ended.put)

    def _wait_for_batches(self) -> list[Future[Any]]:
        """Wait up to a second for a batch to complete; return all completed ones."""
        try:
            first = [self._ended.get(timeout=1.0)]
        except Empty:
            return []
        return first + [self._ended.get() for _ in range(self._ended.qsize())]

    def _end(self, future: Future[Any], batch: list[Run]) -> None:
        """Add the rows of a completed batch to the data set."""
        try:
            tables = future.result()
        except Lost as problem:
            if not self._alone:
                # Another batch may have killed the workers: repeat each run alone.
                self._suspects += batch
                return
            tables = failed_batch(self._plan, batch, f"{LOST}{problem}")
        self._data.add(tables)
        made = tables["runs"].num_rows
        self._made += made
        self._left += len(batch) - made
        self._returned += batch[made:]
