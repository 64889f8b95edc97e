"""Options for the Dask cluster that executes runs."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cwnd._base.extras import require
from cwnd._base.files import read_text
from cwnd._cli.shared import together
from cwnd._cli.terminal import say
from cwnd.errors import ArgumentError
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client

WAIT_MINUTES = 30
"""Largest time to wait for the workers of ``--wait-workers`` in minutes."""

CALL_SECONDS = 0.5
"""Length in seconds of the tasks that make an adaptive cluster start workers."""

CALLS = 20
"""Number of such tasks for each thread: two times what an adaptive cluster wants for a worker."""


with_cluster = together(
    click.option(
        "--dask",
        metavar="ADDRESS",
        help="Run on the workers of a Dask scheduler, such as tcp://10.0.0.1:8786.",
    ),
    click.option(
        "--scheduler-file",
        metavar="FILE",
        type=click.Path(),
        help="Read the address of the Dask scheduler from FILE, which the scheduler wrote.",
    ),
    click.option(
        "--wait-workers",
        metavar="N",
        type=click.IntRange(1),
        help=f"Wait for N workers of the scheduler, at most {WAIT_MINUTES} minutes.",
    ),
)
"""The options of `ClusterOptions`."""


class ClusterOptions(NamedTuple):
    """The values of the options."""

    dask: str | None
    scheduler_file: str | None
    wait_workers: int | None


@contextmanager
def open_cluster(options: ClusterOptions) -> Iterator[Client | None]:
    """Connect to the scheduler of the options, if any, and wait for its workers."""
    dask, scheduler_file, wait_workers = options
    if dask is not None and scheduler_file is not None:
        raise click.UsageError("--dask and --scheduler-file are mutually exclusive")
    if scheduler_file is not None:
        dask = _read_address(Path(scheduler_file))
    if dask is None:
        if wait_workers is not None:
            raise click.UsageError("--wait-workers needs --dask or --scheduler-file")
        yield None
        return
    require("--dask", "distributed")
    from cwnd._sweeps.workers import close, connect

    client = connect(dask)
    try:
        if wait_workers is not None:
            _wait_for_workers(client, dask, wait_workers)
        yield client
    finally:
        close(client)


def _read_address(path: Path) -> str:
    """Read the address from a scheduler's file."""
    try:
        return str(json.loads(read_text(path))["address"])
    except OSError as problem:
        text = f"cannot read {path}: {problem.strerror}"
        raise ArgumentError("scheduler-file", text) from None
    except (ValueError, KeyError, TypeError):
        text = f"{path} is not a file of `dask scheduler --scheduler-file`"
        raise ArgumentError("scheduler-file", text) from None


def _wait_for_workers(client: Any, address: str, count: int) -> None:  # noqa: ANN401
    """Wait until a cluster has enough workers, with tasks that make an adaptive one start them."""
    from cwnd._sweeps.workers import SILENT_SECONDS, ask

    end = time.monotonic() + 60 * WAIT_MINUTES
    workers = f"{counted(count, 'worker')} at {address}"
    calls: list[Any] = []
    said = False
    try:
        while len(threads := ask(client, client.scheduler.ncores, SILENT_SECONDS)) < count:
            if time.monotonic() > end:
                found = f"{len(threads)} of {workers} after {WAIT_MINUTES} minutes"
                raise ArgumentError("wait-workers", found)
            if not said:
                said = True
                say(f"waiting for {workers}, at most {WAIT_MINUTES} minutes")
            each = sum(threads.values()) / len(threads) if threads else 1
            calls = [call for call in calls if not call.done()]
            lacking = round(CALLS * count * each) - len(calls)
            calls += client.map(time.sleep, [CALL_SECONDS] * max(lacking, 0), pure=False)
            time.sleep(0.1)
    finally:
        client.cancel(calls)
