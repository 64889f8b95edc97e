"""A process for a candidate in Python: it may loop, crash, allocate or print without end.

The process limits its memory and its processor time, and is killed at the limit of wall time. It
does not keep a hostile candidate from files or the network.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from cwnd._base.child_process import start_process
from cwnd._native import ScenarioError, SpecError
from cwnd._tasks.score.measure import SECONDS, from_json, run_metrics, run_networks
from cwnd._tasks.score.suite import Network
from cwnd.controller import explain_failure, read_controller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import Self

    from cwnd._base.records import JsonObject
    from cwnd._tasks.score.measure import Facts

T = TypeVar("T")

START_SECONDS = 20.0
"""Wall time in which the process has to start and the file of the candidate to be read."""

MEMORY = 2 << 30
"""Bytes of address space of the process."""

KEPT = 2000
"""Characters that are kept of what a candidate prints."""

BUSY = "took longer than {:g} s and was stopped"


class Apart:
    """The process of a candidate; use as a context manager."""

    def __init__(self, controller: str, seed: int) -> None:
        self.error: str | None = None
        """The reason why no more runs are made; None if there is none."""
        self.printed = ""
        """The beginning of what the candidate has printed."""
        self.warnings: list[str] = []
        self._child, self._connection = start_process(
            __name__,
            output=subprocess.DEVNULL,
            environment={**os.environ, "PYTHONHASHSEED": "0"},
        )
        self._send({"controller": controller, "seed": seed})
        self._receive(START_SECONDS, "reading the candidate", str)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def run(self, networks: Sequence[Network]) -> list[Facts | str]:
        """Return the facts of each network, or why it has none."""
        return [self._ask({"network": asdict(network)}, from_json) for network in networks]

    def run_metrics(
        self, jobs: Sequence[tuple[JsonObject, int]], metrics: Sequence[str]
    ) -> list[list[float] | str]:
        """Return some metrics of each scenario with its seed, or why there are none."""
        return [self._ask({"job": job, "metrics": metrics}, _floats) for job in jobs]

    def _ask(self, request: JsonObject, read: Callable[[Any], T]) -> T | str:
        """Return what a run has found, or why it has found nothing."""
        if self.error is None:
            self._send(request)
            answer = self._receive(SECONDS, "a run", read)
            if answer is not None:
                return answer
        return str(self.error)

    def _send(self, request: JsonObject) -> None:
        """Send a request; the process may have ended."""
        with suppress(OSError):
            self._connection.send_bytes(json.dumps(request).encode())

    def _receive(self, seconds: float, what: str, read: Callable[[Any], T]) -> T | str | None:
        """Return an answer about a run; None without one, with the reason in `error`."""
        try:
            if not self._connection.poll(seconds):
                self._close()
                self.error = f"{what} {BUSY.format(seconds)}"
                return None
            answer: JsonObject = json.loads(self._connection.recv_bytes(1 << 20))
            self.printed, self.warnings = answer["printed"], answer["warnings"]
            self.error = answer["fatal"]
            return answer["error"] or (answer["found"] and read(answer["found"]))
        except (EOFError, OSError, ValueError, TypeError, KeyError):
            # The candidate may have written to the connection.
            status = self._close()
            how = f"exit status {status}" if status >= 0 else _signal_name(-status)
            self.error = f"the process of the candidate died in {what} ({how})"
            return None

    def _close(self) -> int:
        """Kill the process and those that it has started; return its exit status."""
        self._connection.close()
        # A process that has ended keeps its status, and the number of its group until the wait.
        if self._child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        return self._child.wait()


def _floats(found: Iterable[Any]) -> list[float]:
    """Return the metrics of an answer."""
    return list(map(float, found))


def _signal_name(number: int) -> str:
    """Return the name of a signal; those of real time have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Printed(io.TextIOBase):
    """A stream that keeps the beginning of what is written."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        if len(self.text) < KEPT:
            self.text += text[: KEPT - len(self.text)]
        return len(text)


def serve(descriptor: int) -> None:
    """Run the networks that are requested on a connection, a file descriptor, until it closes."""
    connection = Connection(descriptor)
    # macOS has no limit of the address space.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    printed = _Printed()
    sys.stdout = sys.stderr = printed
    caught: list[str] = []
    warnings.showwarning = lambda text, *_, **__: caught.append(str(text)[:KEPT])
    requests: SimpleQueue[JsonObject] = SimpleQueue()
    Thread(target=_listen, args=[connection, requests], daemon=True).start()

    def answer(**values: object) -> None:
        own: JsonObject = {"printed": printed.text, "warnings": caught[:10]}
        own |= {"fatal": None, "error": None, "found": None}
        connection.send_bytes(json.dumps(own | values).encode())

    order = requests.get()
    controller, seed = order["controller"], order["seed"]
    random.seed(seed)
    try:
        read_controller(controller)
    except BaseException as problem:  # noqa: BLE001
        answer(fatal=_explain(problem))
        return
    answer()
    while True:
        request = requests.get()
        found = error = None
        try:
            found = _found(controller, seed, request)
        except BaseException as problem:  # noqa: BLE001
            error = _explain(problem)
        answer(error=error, found=found)


def _found(controller: str, seed: int, request: JsonObject) -> object:
    """Return what is asked of a run: metrics of a scenario, or the facts of a network."""
    if "job" in request:
        [metrics] = run_metrics(
            [request["job"]], request["metrics"], seconds=2 * SECONDS, threads=1
        )
        return metrics
    facts: list[Facts] = []
    run_networks(
        controller,
        [Network(**request["network"])],
        seed,
        seconds=2 * SECONDS,
        threads=1,
        made=lambda _, found: facts.append(found),
    )
    return asdict(facts[0])


def _explain(problem: BaseException) -> str:
    """Return what an exception says, with the line of the candidate."""
    text = str(problem)
    if not isinstance(problem, SpecError | ScenarioError):
        text = explain_failure(problem) or f"{type(problem).__name__}: {problem}"
    return text.rstrip(": ")[:KEPT]


def _listen(connection: Connection, requests: SimpleQueue[JsonObject]) -> None:
    """Queue requests; end the process with the one that started it, even during a run."""
    with suppress(EOFError, OSError):
        while True:
            requests.put(json.loads(connection.recv_bytes()))
    os._exit(1)
