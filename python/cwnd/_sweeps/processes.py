"""Processes for runs with controllers written in Python, which may never return."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import time
import warnings
from collections import ChainMap
from contextlib import suppress
from functools import lru_cache
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from threading import Thread
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from cwnd._base.child_process import start_process
from cwnd._sweeps.work import Stopped, begun, failed_batch, overtime, run_batch
from cwnd.controller import installed_controllers, written_class
from cwnd.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cwnd._sweeps.plan import Plan, Run

START_SECONDS = 60.0
"""Seconds in which a process has to start."""

IDLE_SECONDS = 60.0
"""Seconds without a request after which a process ends."""

_TICK = 0.05
"""Interval in seconds of checks whether the runs are still wanted."""

_idle: list[_Process] = []
"""Started processes that execute nothing, for the next batch or sweep."""


@atexit.register
def _close_idle() -> None:
    """End the idle processes."""
    for process in _idle:
        process.close()


class Lost(Exception):  # noqa: N818
    """The process of a run died; the message says how."""


def run_apart(
    packed: bytes, runs: Sequence[Run], stopped: Callable[[], bool], *, seconds: float
) -> dict[str, pa.Table]:
    """Execute runs in another process, which is killed if a run takes too long; `Lost` if it died.

    ``stopped`` is called several times a second; the process is killed once it has returned true.
    No run begins after ``seconds`` of wall time. ``runs`` has a row for each of the first runs that
    were begun and not stopped, that of a failed run with its ``error``.
    """
    plan: Plan = unpack(packed)
    found = [failed_batch(plan, [], "")]
    for run in begun(runs, seconds):
        try:
            process = _take() or _Process(stopped)
            found.append(process.ask((packed, run), plan.time_limit, stopped))
        except Stopped:
            break
        except TimeoutError:
            found.append(failed_batch(plan, [run], overtime(plan)))
        else:
            _idle.append(process)
    return {name: pa.concat_tables([tables[name] for tables in found]) for name in found[0]}


def _take() -> _Process | None:
    """Return an idle process that has not ended, if there is one."""
    with suppress(IndexError):
        while True:
            process = _idle.pop()
            if process.alive:
                return process
    return None


class _Process:
    """A process that executes one run at a time."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._child, self._connection = start_process(__name__)
        try:
            self._receive(START_SECONDS, stopped)
        except TimeoutError:
            raise Lost(f"its process did not start within {START_SECONDS:g} s") from None

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._child.poll() is None

    def close(self) -> int:
        """Kill the process; return its exit status, which is negative for a signal."""
        self._connection.close()
        self._child.kill()
        return self._child.wait()

    def ask(
        self, request: tuple[bytes, Run], seconds: float, stopped: Callable[[], bool]
    ) -> dict[str, pa.Table]:
        """Execute a run, or kill the process after some time."""
        with suppress(OSError):
            self._connection.send(request)
        tables: dict[str, pa.Table] = self._receive(seconds, stopped)
        return tables

    def _receive(self, seconds: float, stopped: Callable[[], bool]) -> Any:  # noqa: ANN401
        """Wait for an answer; kill the process if there is none."""
        end = time.monotonic() + seconds
        while not self._connection.poll(_TICK):
            if stopped():
                self.close()
                raise Stopped
            if time.monotonic() > end:
                self.close()
                raise TimeoutError
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            status = self.close()
            how = f"status {status}" if status >= 0 else signal.Signals(-status).name
            raise Lost(f"its process died ({how})") from None


def serve(descriptor: int) -> None:
    """Execute the runs that are requested on a connection, a file descriptor, until it closes."""
    connection = Connection(descriptor)
    # Standard output has the results of a command.
    with suppress(OSError):
        os.dup2(2, 1)
    warnings.formatwarning = _format_warning
    requests: SimpleQueue[tuple[bytes, Run]] = SimpleQueue()
    Thread(target=_listen, args=[connection, requests], daemon=True).start()
    connection.send(None)
    with suppress(Empty):
        while True:
            packed, run = requests.get(timeout=IDLE_SECONDS)
            connection.send(run_batch(unpack(packed), [run]))


def _format_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001
    filename: str,
    lineno: int,
    line: str | None = None,  # noqa: ARG001
) -> str:
    """Format a warning as one line, as the command does."""
    return f"cwnd: {filename}:{lineno}: {message}\n"


def _listen(connection: Connection, requests: SimpleQueue[tuple[bytes, Run]]) -> None:
    """Queue requests; end the process with the one that started it, even during a run."""
    with suppress(EOFError, OSError):
        while True:
            requests.put(connection.recv())
    os._exit(1)


def pack(plan: Plan) -> bytes:
    """Pickle a plan with its controllers' classes, as other processes may not have their files."""
    import cloudpickle  # type: ignore[import-untyped]

    modules = {
        sys.modules[made.__module__]
        for made in map(written_class, plan.factories.values())
        if getattr(made, "__module__", None) in sys.modules
    }
    installed = {each.module for each in installed_controllers().values()}
    modules = {each for each in modules if each.__name__ not in {"__main__", *installed}}

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
    except Exception as problem:  # noqa: BLE001 (of the class's own code too)
        names = ", ".join(plan.factories)
        raise PlanError(
            f"{plan.origin}: controllers: {names} cannot be sent to another process: {problem}"
        ) from None
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
def unpack(packed: bytes) -> Any:  # noqa: ANN401
    """Unpickle a plan of `pack`; cached for all batches of a sweep."""
    import cloudpickle

    return cloudpickle.loads(packed)
