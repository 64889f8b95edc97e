"""Execution of a sweep's batches on the cores of this machine or on a Dask cluster."""

from __future__ import annotations

import asyncio
import platform
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

# pyarrow imports pandas at the first conversion, which is in a thread of a worker. Imports in
# several threads can fail with a deadlock (https://github.com/python/cpython/issues/83065).
import pandas as pd  # noqa: F401

from cwnd._base import machine
from cwnd._base.extras import require
from cwnd._sweeps.code import own_code
from cwnd._sweeps.processes import Lost, pack, run_apart, unpack
from cwnd._sweeps.work import run_batch
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from concurrent.futures import Future
    from types import TracebackType

    import pyarrow as pa
    from distributed import Client
    from typing_extensions import Self

    from cwnd._sweeps.plan import Plan, Run


CONNECT_SECONDS = 10.0
"""Seconds in which the scheduler has to answer at the start of a sweep."""

BATCH_SECONDS = 5.0
"""Seconds after which a batch ends, and its other runs are in another batch."""

CLOSE_SECONDS = 1.0
"""Seconds in which the scheduler has to confirm the end of a sweep."""

SILENT_SECONDS = 60.0
"""Seconds without workers, or without an answer of one or of the scheduler, until a sweep fails."""


class Workers(Protocol):
    """Executes batches of runs, several in parallel."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None: ...

    def slots(self) -> int:
        """Return the number of batches executed in parallel."""

    def submit(self, runs: Sequence[Run]) -> Future[dict[str, pa.Table]]:
        """Start a batch, whose result is the tables of its first runs, or the error `Lost`."""

    def stop(self) -> None:
        """Stop the batches that may keep their first runs."""


class Cores:
    """The cores of this machine, with one thread each; runs release the GIL.

    Runs with controllers written in Python are in a process for each thread. There is one thread
    for runs in real time.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._cores = 1 if plan.real else machine.count_cores()
        self._packed = b""
        if plan.factories:
            # The worker processes inherit a file descriptor, which Windows does not support.
            machine.require("a sweep of Python controllers", "Unix")
            require("a sweep of Python controllers", "cloudpickle")
            self._packed = pack(plan)
        self._stop = Event()

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self._cores)
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Stop the batches."""
        self.stop()

    def slots(self) -> int:
        """Return the number of cores."""
        return self._cores

    def submit(self, runs: Sequence[Run]) -> Future[dict[str, pa.Table]]:
        """Start a batch."""
        return self._pool.submit(_execute, self._plan, self._packed, runs, self._stop.is_set)

    def stop(self) -> None:
        """Cancel the queued batches, and end the running ones with the runs that they have made."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)


class Cluster:
    """The workers of a Dask cluster. They need the same versions as this process, but no files.

    ``dask`` is the address of the scheduler, such as ``tcp://10.0.0.1:8786``, or a client, which
    remains open. The workers call ``task``, a function of a module of cwnd, with ``shared`` and
    what `submit` is given.
    """

    def __init__(self, dask: str | Client, task: Callable[..., Any], *shared: object) -> None:
        require("--dask", "distributed")
        self._dask, self._task, self._shared = dask, task, shared
        self._running: set[Any] = set()

    def __enter__(self) -> Self:
        if isinstance(self._dask, str):
            self._client, self._address = connect(self._dask), self._dask
        else:
            self._client, self._address = _check_client(self._dask)
        try:
            self._check()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self._seen = time.monotonic()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Cancel the batches, and close the client unless it is the caller's."""
        if isinstance(self._dask, str):
            close(self._client)
        elif self._running and self._client.status == "running":
            with suppress(asyncio.TimeoutError, OSError):
                self._client.cancel(list(self._running))

    def slots(self) -> int:
        """Return the current number of threads of all workers."""
        threads: dict[str, int] = ask(self._client, self._client.scheduler.ncores, SILENT_SECONDS)
        if threads:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > SILENT_SECONDS:
            raise _gone("every worker", self._address)
        return max(sum(threads.values()), 1)

    def stop(self) -> None:
        """Do nothing: a batch that is cancelled at the end has no result."""

    def submit(self, work: object) -> Future[Any]:
        """Start a call of the function, whose result may be the error `Lost`."""
        return asyncio.run_coroutine_threadsafe(self._run(work), self._client.loop.asyncio_loop)

    async def _run(self, work: object) -> Any:  # noqa: ANN401
        """Call the function and fetch its result, in the client's thread."""
        from distributed import KilledWorker

        task: Any = self._client.submit(
            _checked, own_code(), self._task, *self._shared, work, pure=False
        )
        self._running.add(task)
        try:
            while True:
                # The result may be on a worker that does not answer; Dask then runs it again.
                with suppress(asyncio.TimeoutError):
                    return await task.result(timeout=CONNECT_SECONDS)
        except Lost:
            raise
        except KilledWorker:
            raise Lost("its worker died repeatedly") from None
        except asyncio.CancelledError:
            raise _gone("the scheduler", self._address) from None
        except Exception as problem:
            raise ArgumentError(
                "dask", f"a worker failed: {type(problem).__name__}: {problem}"
            ) from problem
        finally:
            self._running.discard(task)

    def _check(self) -> None:
        """Raise an error for a cluster without workers, or with workers of different code."""

        # A nested function is pickled by value: a worker may lack this module.
        def probe() -> str:
            try:
                from cwnd._sweeps.code import own_code
            except ImportError:
                return ""
            return own_code()

        workers = list(ask(self._client, self._client.scheduler.ncores, CONNECT_SECONDS))
        if not workers:
            raise ArgumentError(
                "dask",
                f"the scheduler at {self._address} has no workers: "
                f"start some with `dask worker {self._address}`",
            )
        broadcast = self._client.scheduler.broadcast
        versions = self._ask_each(
            workers, lambda one: broadcast(msg={"op": "versions"}, workers=one, on_error="ignore")
        )
        own = ".".join(platform.python_version_tuple()[:2])
        for worker, version in versions.items():
            python = ".".join(version["host"]["python"].split(".")[:2])
            if python != own:
                # Python of another version cannot read pickled functions, such as the probe.
                raise ArgumentError(
                    "dask", f"the worker at {worker} has Python {python}: it needs {own}"
                )
        found = self._ask_each(
            workers, lambda one: self._client.run(probe, workers=one, on_error="ignore")
        )
        for worker, code in found.items():
            if code != own_code():
                problem = (
                    "another version of cwnd, NumPy or SciPy" if code else "no cwnd with sweeps"
                )
                raise ArgumentError("dask", f"the worker at {worker} has {problem}")

    def _ask_each(
        self, workers: Sequence[str], call: Callable[[list[str]], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Ask each worker, all at once; the answers of those that have not left meanwhile."""

        async def one(worker: str) -> dict[str, Any]:
            try:
                # The worker imports cwnd, perhaps from a slow file system.
                return await asyncio.wait_for(call([worker]), SILENT_SECONDS)
            except asyncio.TimeoutError:
                raise _silent("worker", worker, SILENT_SECONDS) from None

        async def every() -> dict[str, Any]:
            answers = await asyncio.gather(*map(one, workers))
            return {worker: of for answer in answers for worker, of in answer.items()}

        answers: dict[str, Any] = ask(self._client, every, 2 * SILENT_SECONDS)
        return answers


def ask(client: Any, call: Callable[..., Any], seconds: float) -> Any:  # noqa: ANN401
    """Call a coroutine function of a client; ArgumentError if there is no answer in ``seconds``."""
    try:
        return client.sync(call, callback_timeout=seconds)
    except asyncio.TimeoutError:
        raise _silent("scheduler", client.scheduler.address, seconds) from None
    except OSError:
        raise _gone("the scheduler", client.scheduler.address) from None


def _silent(who: str, address: str, seconds: float) -> ArgumentError:
    return ArgumentError(
        "dask", f"the {who} at {address} has not answered for {seconds:g} s: is it stopped?"
    )


def _gone(who: str, address: str) -> ArgumentError:
    return ArgumentError("dask", f"{who} at {address} is gone; the same command resumes")


def connect(address: str) -> Any:  # noqa: ANN401
    """Connect to the Dask scheduler at an address; the caller has to `close` the client."""
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port

    make: Any = Client
    place: Any = get_address_host_port
    try:
        # A client that fails to connect leaves a thread behind that disturbs the next client.
        socket.create_connection(place(address), CONNECT_SECONDS).close()
        # In a thread, as a notebook has an event loop in this one.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, _knock(address)).result()
        return make(address, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TypeError) as problem:
        # Dask raises a TypeError for an address with TLS without certificates.
        raise ArgumentError(
            "dask", f"no Dask scheduler answers at {address}: {' '.join(str(problem).split())}"
        ) from None


def close(client: Any) -> None:  # noqa: ANN401
    """Close a client, also if the scheduler does not answer; the scheduler cancels its batches."""
    with suppress(asyncio.TimeoutError):
        client.close(CLOSE_SECONDS)


async def _knock(address: str) -> None:
    """Connect to the scheduler once: a client waits for its handshake without a limit."""
    from distributed.comm.core import connect
    from distributed.security import Security

    open_comm: Any = connect
    security: Any = Security
    arguments = security().get_connection_args("client")
    try:
        comm = await asyncio.wait_for(open_comm(address, **arguments), CONNECT_SECONDS)
    except asyncio.TimeoutError:
        raise OSError(f"no handshake within {CONNECT_SECONDS:g} s") from None
    comm.abort()


def _check_client(client: Any) -> tuple[Any, str]:  # noqa: ANN401
    """Check a client of the caller; return it and the scheduler's address."""
    from distributed import Client

    if not isinstance(client, Client):
        raise ArgumentError("dask", f"{client!r} is neither an address nor a distributed.Client")
    if client.asynchronous or client.status != "running":
        problem = "asynchronous" if client.asynchronous else client.status
        raise ArgumentError("dask", f"the client is {problem}: a sweep needs an open one")
    scheduler: Any = client.scheduler
    return client, scheduler.address


def _checked(code: str, task: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401
    """Call a function on a worker, unless the worker has different code."""
    if own_code() != code:
        raise RuntimeError("it has another version of cwnd, NumPy or SciPy")
    return task(*arguments)


def run_packed(packed: bytes, runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Execute runs of a plan of `pack` on a worker until the task is cancelled."""
    from distributed import get_worker

    worker: Any = get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    # Dask forgets a cancelled task, but does not stop its thread.
    return _execute(unpack(packed), packed, runs, lambda: task.state == "cancelled")


def _execute(
    plan: Plan, packed: bytes, runs: Sequence[Run], stopped: Callable[[], bool]
) -> dict[str, pa.Table]:
    """Execute runs on this thread, or in another process if a controller is written in Python."""
    if plan.factories:
        return run_apart(packed, runs, stopped, seconds=BATCH_SECONDS)
    return run_batch(plan, runs, stopped, seconds=BATCH_SECONDS)
