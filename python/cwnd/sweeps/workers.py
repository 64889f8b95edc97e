"""Execution of a sweep's batches on the cores of this machine or on a Dask cluster."""

from __future__ import annotations

import io
import os
import platform
import socket
import sys
import time
from collections import ChainMap
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import lru_cache
from threading import Event
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

# pyarrow imports pandas at the first conversion, which is in a thread of a worker. Imports in
# several threads can fail with a deadlock (https://github.com/python/cpython/issues/83065).
import pandas as pd  # noqa: F401

from cwnd.controller import written_class
from cwnd.errors import ArgumentError
from cwnd.extras import require
from cwnd.sweeps.code import own_code
from cwnd.sweeps.work import Stopped, run_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from types import TracebackType

    import pyarrow as pa
    from distributed import Client
    from typing_extensions import Self

    from cwnd.sweeps.plan import Plan, Run


CONNECT_SECONDS = 10.0
"""Timeout of the connection to the scheduler in seconds."""

BATCH_SECONDS = 5.0
"""Seconds after which a batch ends, and its other runs are in another batch."""

WORKERLESS_SECONDS = 60.0
"""Seconds without workers after which a sweep fails."""


class Lost(Exception):  # noqa: N818
    """The workers of a batch died more often than Dask allows."""


class Pending(Exception):  # noqa: N818
    """The result of a batch was lost with its worker; Dask runs the batch again."""


class Workers(Protocol):
    """Executes batches of runs, several in parallel."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None: ...

    def slots(self) -> int:
        """Return the number of batches executed in parallel."""

    def submit(self, runs: Sequence[Run]) -> Future[dict[str, pa.Table]]:
        """Start a batch."""

    def result(self, future: Future[dict[str, pa.Table]]) -> dict[str, pa.Table]:
        """Return the tables of a batch's first runs, or raise `Lost` or `Pending`."""


class Cores:
    """The cores of this machine, with one thread each; runs release the interpreter's lock.

    Runs with controllers written in Python hold the lock most of the time. Two threads would wait
    for each other at every event: there is one. There is also one for runs in real time.

    Parameters
    ----------
    plan
        The plan of the runs.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        alone = plan.factories or plan.real
        self._cores = 1 if alone else len(os.sched_getaffinity(0))
        self._stop = Event()

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self._cores)
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Cancel the queued batches and stop the running ones."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def slots(self) -> int:
        """Return the number of cores."""
        return self._cores

    def submit(self, runs: Sequence[Run]) -> Future[dict[str, pa.Table]]:
        """Start a batch."""
        return self._pool.submit(run_batch, self._plan, runs, self._progress, seconds=BATCH_SECONDS)

    def result(self, future: Future[dict[str, pa.Table]]) -> dict[str, pa.Table]:
        """Return the tables of a completed batch."""
        return future.result()

    def _progress(self, _: float) -> None:
        if self._stop.is_set():
            raise Stopped


class Cluster:
    """The workers of a Dask cluster. They need the same versions as this process, but no files.

    Parameters
    ----------
    dask
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``, or a client, which remains open.
    task
        Function of a module of cwnd that the workers call, with ``shared`` and what `submit` is
        given.
    shared
        First arguments of the function.

    Raises
    ------
    ArgumentError
        No scheduler answers, it has no workers, or a worker has different code.
    MissingExtraError
        Dask is not installed.
    """

    def __init__(self, dask: str | Client, task: Callable[..., Any], *shared: object) -> None:
        require("--dask", "distributed")
        self._dask, self._task, self._shared = dask, task, shared
        self._running: set[Any] = set()

    def __enter__(self) -> Self:
        if isinstance(self._dask, str):
            self._client, self._address = connect(self._dask), self._dask
        else:
            self._client = _open_client(self._dask)
            self._address = self._client.scheduler.address
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
            self._client.close()
        elif self._running and self._client.status == "running":
            self._client.cancel(list(self._running))

    def slots(self) -> int:
        """Return the current number of threads of all workers."""
        try:
            threads: dict[str, int] = self._client.nthreads()
        except OSError:
            raise self._gone("the scheduler") from None
        if threads:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > WORKERLESS_SECONDS:
            raise self._gone("every worker")
        return max(sum(threads.values()), 1)

    def submit(self, work: object) -> Future[Any]:
        """Start a call of the function."""
        # Futures of `Client.get_executor` never finish if a result is lost with its worker.
        future: Future[Any] = self._client.submit(
            _checked, own_code(), self._task, *self._shared, work, pure=False
        )
        self._running.add(future)
        return future

    def result(self, future: Future[Any]) -> Any:  # noqa: ANN401
        """Return the result of a completed call, or raise `Lost` or `Pending`."""
        from distributed import KilledWorker
        from distributed import TimeoutError as ClusterTimeoutError

        self._running.discard(future)
        try:
            return future.result(timeout=CONNECT_SECONDS)
        except KilledWorker:
            raise Lost from None
        except ClusterTimeoutError:
            self._running.add(future)
            raise Pending from None
        except CancelledError:
            raise self._gone("the scheduler") from None
        except Exception as problem:
            raise ArgumentError(
                "dask", f"a worker cannot execute runs: {type(problem).__name__}: {problem}"
            ) from problem

    def _check(self) -> None:
        """Raise an error for a cluster without workers, or with workers of different code."""

        # A nested function is pickled by value: a worker may lack this module.
        def probe() -> str:
            try:
                from cwnd.sweeps.code import own_code
            except ImportError:
                return ""
            return own_code()

        versions = self._client.get_versions()["workers"]
        if not versions:
            raise ArgumentError(
                "dask",
                f"the scheduler at {self._address} has no workers: "
                f"start some with `dask worker {self._address}`",
            )
        own = ".".join(platform.python_version_tuple()[:2])
        for worker, version in versions.items():
            python = ".".join(version["host"]["python"].split(".")[:2])
            if python != own:
                # Python of another version cannot read pickled functions, such as the probe.
                raise ArgumentError(
                    "dask", f"the worker at {worker} has Python {python}: it needs {own}"
                )
        found: dict[str, str] = self._client.run(probe)
        for worker, code in found.items():
            if code != own_code():
                problem = (
                    "another version of cwnd, NumPy or SciPy" if code else "no cwnd with sweeps"
                )
                raise ArgumentError("dask", f"the worker at {worker} has {problem}")

    def _gone(self, who: str) -> ArgumentError:
        return ArgumentError(
            "dask", f"{who} at {self._address} is gone; the same command resumes the sweep"
        )


def connect(address: str) -> Any:  # noqa: ANN401
    """Connect to a Dask scheduler.

    Parameters
    ----------
    address
        Its address, such as ``tcp://10.0.0.1:8786``.

    Returns
    -------
    distributed.Client
        The caller has to close it.

    Raises
    ------
    ArgumentError
        No scheduler answers.
    """
    from distributed import Client, Security
    from distributed.comm.addressing import get_address_host_port

    make: Any = Client
    place: Any = get_address_host_port
    security: Any = Security()  # type: ignore[no-untyped-call]
    try:
        # A client that fails to connect leaves a thread behind that disturbs the next client.
        if address.startswith("tls:") and not security.get_connection_args("client")["ssl_context"]:
            raise ValueError("TLS needs certificates: distributed.comm.tls of Dask's configuration")  # noqa: TRY301
        socket.create_connection(place(address), CONNECT_SECONDS).close()
        client = make(address, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as problem:
        raise ArgumentError(
            "dask", f"no Dask scheduler answers at {address}: {' '.join(str(problem).split())}"
        ) from None
    return client


def _open_client(client: object) -> Any:  # noqa: ANN401
    """Check a client of the caller."""
    from distributed import Client

    if not isinstance(client, Client):
        raise ArgumentError("dask", f"{client!r} is neither an address nor a distributed.Client")
    if client.asynchronous or client.status != "running":
        problem = "asynchronous" if client.asynchronous else client.status
        raise ArgumentError("dask", f"the client is {problem}: a sweep needs an open one")
    return client


def pack(plan: Plan) -> bytes:
    """Pickle a plan with its controllers' classes, as workers do not have their files.

    Parameters
    ----------
    plan
        The plan.
    """
    import cloudpickle  # type: ignore[import-untyped]

    modules = {
        sys.modules[made.__module__]
        for made in map(written_class, plan.factories.values())
        if getattr(made, "__module__", None) in sys.modules
    }
    modules = {module for module in modules if module.__name__ != "__main__"}

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        """Retain the file names of functions, which cloudpickle 3.1.3 replaces."""

        dispatch_table: ClassVar = ChainMap(
            {CodeType: _reduce_code}, cloudpickle.CloudPickler.dispatch_table
        )

    packed = io.BytesIO()
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        Pickler(packed).dump(plan)
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
    return packed.getvalue()


def _reduce_code(code: CodeType) -> tuple[Any, ...]:
    """Reduce a function's code as cloudpickle does, with the name of its file."""
    import cloudpickle

    make, arguments = cloudpickle.CloudPickler.dispatch_table[CodeType](code)
    return _make_code, (make, arguments, code.co_filename)


def _make_code(make: Callable[..., CodeType], arguments: Sequence[Any], file: str) -> CodeType:
    """Build the code of a function of ``file``, whose name errors of a run contain."""
    return make(*arguments).replace(co_filename=file)


@lru_cache(maxsize=4)
def _unpack(packed: bytes) -> Any:  # noqa: ANN401
    """Unpickle a plan; cached for all batches of a sweep."""
    import cloudpickle

    return cloudpickle.loads(packed)


def _checked(code: str, task: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401
    """Call a function on a worker, unless the worker has different code."""
    if own_code() != code:
        raise RuntimeError("a worker has another version of cwnd, NumPy or SciPy")
    return task(*arguments)


def run_packed(packed: bytes, runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Execute runs on a worker.

    Parameters
    ----------
    packed
        The plan, as of `pack`.
    runs
        Runs of the plan.
    """
    return run_batch(_unpack(packed), runs, seconds=BATCH_SECONDS)
