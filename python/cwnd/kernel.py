"""Controllers of the kernel's TCP on Linux: load, list, trace and unload them.

An eBPF program (``struct_ops``) interprets the laws that are texts, of the registry and of files;
others are programs in fixed point: see ``docs/kernel.md``. Loading needs root and Linux 6.4 or
later with BTF type information.

Examples
--------
>>> from cwnd import kernel
>>> [name for name in kernel.implemented() if name.startswith("s")]
['sqrt', 'simd', 'scalable']
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd._base.law_files import known_laws, path_of_law, read_law
from cwnd._base.machine import require
from cwnd.controller import read_controller
from cwnd.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd._base.records import JsonObject, KernelFlowRecord

__all__ = [
    "Instance",
    "Trace",
    "check",
    "find",
    "implemented",
    "listing",
    "load",
    "trace",
    "unload",
]


@dataclass(frozen=True, slots=True)
class Instance:
    """A controller loaded into the kernel.

    Attributes
    ----------
    name
        Its name in the kernel, as in ``setsockopt(TCP_CONGESTION)``.
    controller
        Its specification.
    hash
        Identity of the text that was loaded, if the controller is a law in a file; else None.
    default
        Whether it is the default controller of this network namespace.
    """

    name: str
    controller: str
    hash: str | None
    default: bool

    def to_json(self) -> JsonObject:
        """Return the instance as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of checking one requirement of the kernel controllers."""

    name: str
    fine: bool
    detail: str
    """What was found, or what is missing and how to fix it."""

    def to_json(self) -> JsonObject:
        """Return the finding as plain data."""
        return asdict(self)


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert errors of the native module to `KernelError`."""
    require("cwnd.kernel", "Linux")
    try:
        yield
    except _native.KernelError as problem:
        raise KernelError(str(problem)) from None


def _law_in_file(spec: str) -> dict[str, str]:
    """Return the text of the law in a file that a specification names, by its name."""
    path = path_of_law(spec)
    return {} if path is None else {path: read_law(path)}


def _law_of_values(what: str) -> dict[str, str]:
    """Return the text of the law in a file whose parameters `what` has values for."""
    return _law_in_file(what) if "(" in what else {}


def implemented() -> list[str]:
    """List the controllers that have a kernel implementation.

    Returns
    -------
    list of str
        Their names, with the parameters that they need.
    """
    require("cwnd.kernel", "Linux")
    return _native.kernel_implemented()


def load(controller: str, *, name: str | None = None, default: bool = False) -> Instance:
    """Load a controller. It stays loaded until it is unloaded or the machine restarts.

    Parameters
    ----------
    controller
        A specification such as ``simd(beta=1/16)`` or ``mine.law``.
    name
        Its name in the kernel, up to 15 characters; ``cwnd_`` and the controller's by default.
    default
        Make it the default of this network namespace until it is unloaded.

    Returns
    -------
    Instance
        The loaded controller.

    Raises
    ------
    SpecError
        The specification is invalid.
    KernelError
        It has no kernel implementation, the name is taken, or the system lacks a requirement.
    """
    if read_controller(controller)[1] is not None:
        raise KernelError(f"{controller}: a law in Python has no kernel implementation")
    with _convert_errors(), known_laws(_law_in_file(controller)):
        return Instance(**_native.kernel_load(controller, name, default))


def listing() -> list[Instance]:
    """List the loaded controllers, sorted by name.

    Returns
    -------
    list of Instance
        Controllers loaded by :func:`load`.

    Raises
    ------
    KernelError
        This user may not list them.
    """
    with _convert_errors():
        return [Instance(**entry) for entry in _native.kernel_list()]


def find(what: str) -> Instance:
    """Find a loaded controller.

    Parameters
    ----------
    what
        Its name, its specification, or the name of the specification alone.

    Returns
    -------
    Instance
        The controller.

    Raises
    ------
    KernelError
        It is not loaded, or several controllers match.
    """
    with _convert_errors(), known_laws(_law_of_values(what)):
        return Instance(**_native.kernel_find(what))


def unload(what: str) -> Instance:
    """Unload a controller, and restore the previous default where it is the default.

    Open connections keep using it until they end. Network namespaces are found by their processes
    and names.

    Parameters
    ----------
    what
        Its name, its specification, or the name of the specification alone.

    Returns
    -------
    Instance
        The unloaded controller.

    Raises
    ------
    KernelError
        It is not loaded, several controllers match, or the system refuses to unload it.
    """
    with _convert_errors(), known_laws(_law_of_values(what)):
        return Instance(**_native.kernel_unload(what))


def check() -> list[Finding]:
    """Check the kernel's features, and load each law briefly if this user may.

    Returns
    -------
    list of Finding
        One for each requirement.
    """
    with _convert_errors():
        return [Finding(*found) for found in _native.kernel_check()]


class Trace:
    """Live trace of every window change under one controller of the kernel.

    Use one trace of a controller at a time: concurrent traces split the events. Calls from several
    threads are serialised. If this process is killed, the kernel stops sending events within three
    seconds.
    """

    def __init__(self, what: str) -> None:
        """Start the trace.

        Parameters
        ----------
        what
            The controller's name, its specification, or the name of the specification alone.

        Raises
        ------
        KernelError
            It is not loaded, or this user may not trace it.
        """
        # The law is that which is loaded, whatever its file has now.
        loaded = find(what).name
        with _convert_errors(), known_laws(dict(filter(None, [_native.kernel_law(loaded)]))):
            self._trace = _native.KernelTrace(loaded)

    def read(self, seconds: float) -> list[tuple[int, int, str]]:
        """Wait for events.

        Parameters
        ----------
        seconds
            Maximum wait in seconds, up to 1.

        Returns
        -------
        list of (int, int, str)
            For each event the number of the connection, its local port, and a line of its record:
            time in ns, event, answer.
        """
        with _convert_errors():
            return self._trace.read(seconds)

    def missed(self) -> int:
        """Return the number of events that were lost because they were not read in time.

        Returns
        -------
        int
            Number of lost events.
        """
        with _convert_errors():
            return self._trace.missed()

    def flows(self) -> list[KernelFlowRecord]:
        """Return a record of each traced connection.

        Returns
        -------
        list of KernelFlowRecord
            Like the simulator's records, with the replay through the law.
        """
        return self._trace.flows()


def trace(what: str) -> Trace:
    """Trace a controller of the kernel.

    Parameters
    ----------
    what
        Its name, its specification, or the name of the specification alone.

    Returns
    -------
    Trace
        The trace.
    """
    return Trace(what)
