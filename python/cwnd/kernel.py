"""Controllers under the kernel's own TCP, on Linux: load, list, watch and unload them.

The laws are those of the simulator, as eBPF programs (``struct_ops``) in fixed point: see
``docs/kernel.md``. Loading needs root and a kernel of 6.4 or later that describes its types (BTF).

Examples
--------
>>> from cwnd import kernel
>>> [form for form in kernel.forms() if form.startswith("s")]
['sqrt', 'simd']
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd.controller import read_controller
from cwnd.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.records import JsonObject, KernelFlowRecord

__all__ = ["Instance", "Trace", "check", "find", "forms", "listing", "load", "trace", "unload"]


@dataclass(frozen=True, slots=True)
class Instance:
    """A controller that is loaded into the kernel.

    Attributes
    ----------
    name
        Its name for the kernel, as in ``setsockopt(TCP_CONGESTION)``.
    controller
        Its specification.
    default
        Whether it is the default of this network namespace.
    """

    name: str
    controller: str
    default: bool

    def to_json(self) -> JsonObject:
        """Give it as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the laws need of the system.

    Attributes
    ----------
    name
        What it is.
    fine
        Whether it is as it must be.
    detail
        What was found, or what is missing and what to do.
    """

    name: str
    fine: bool
    detail: str

    def to_json(self) -> JsonObject:
        """Give it as plain data."""
        return asdict(self)


def _linux() -> None:
    """Refuse other systems."""
    if not sys.platform.startswith("linux"):
        raise KernelError("this is not Linux")


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the bridge's errors into the package's."""
    _linux()
    try:
        yield
    except _native.KernelError as problem:
        raise KernelError(str(problem)) from None


def forms() -> list[str]:
    """List the controllers that have a form in the kernel.

    Returns
    -------
    list of str
        Their names.
    """
    _linux()
    return list(_native.KERNEL_FORMS)


def load(controller: str, *, name: str | None = None, default: bool = False) -> Instance:
    """Load a controller; it stays loaded until it is unloaded or the machine restarts.

    Parameters
    ----------
    controller
        A specification such as ``simd(beta=1/16)``.
    name
        Its name for the kernel, up to 15 characters; ``cwnd_`` and the controller's by default.
    default
        Make it the default of this network namespace until it is unloaded.

    Returns
    -------
    Instance
        What was loaded.

    Raises
    ------
    SpecError
        The specification is wrong.
    KernelError
        It has no form in the kernel, the name is taken, or the system lacks something.
    """
    if ".py:" in controller and read_controller(controller)[1] is not None:
        raise KernelError(f"{controller}: a law in Python has no kernel implementation")
    with _explained():
        return Instance(**_native.kernel_load(controller, name, default))


def listing() -> list[Instance]:
    """List what is loaded, by name.

    Returns
    -------
    list of Instance
        The controllers that :func:`load` has loaded.

    Raises
    ------
    KernelError
        This user may not look.
    """
    with _explained():
        return [Instance(**entry) for entry in _native.kernel_list()]


def find(what: str) -> Instance:
    """Find a controller that is loaded.

    Parameters
    ----------
    what
        Its name, or its specification.

    Returns
    -------
    Instance
        The controller.

    Raises
    ------
    KernelError
        It is not loaded.
    """
    with _explained():
        return Instance(**_native.kernel_find(what))


def unload(what: str) -> Instance:
    """Unload a controller; a default that it was made goes back to the one before.

    Connections that use it go on with it until they end.

    Parameters
    ----------
    what
        Its name, or its specification.

    Returns
    -------
    Instance
        What was unloaded.

    Raises
    ------
    KernelError
        It is not loaded, or the system refuses.
    """
    with _explained():
        return Instance(**_native.kernel_unload(what))


def check() -> list[Finding]:
    """Look at what this kernel allows, and try each law for a moment where this user may.

    Returns
    -------
    list of Finding
        What was found.
    """
    with _explained():
        return [Finding(*found) for found in _native.kernel_check()]


class Trace:
    """Every change of a window under one controller of the kernel, as it happens.

    One listener at a time hears everything; its threads may share it, and wait for each other. When
    it is killed, the kernel stops telling by itself within three seconds.
    """

    def __init__(self, what: str) -> None:
        """Listen.

        Parameters
        ----------
        what
            The controller's name, or its specification.

        Raises
        ------
        KernelError
            It is not loaded, or this user may not listen.
        """
        with _explained():
            self._trace = _native.KernelTrace(what)

    def read(self, seconds: float) -> list[tuple[int, int, str]]:
        """Wait for events.

        Parameters
        ----------
        seconds
            How long at most; up to 1 s.

        Returns
        -------
        list of (int, int, str)
            The number of a connection, its port here, and a line of its record: time in ns, event,
            answer.
        """
        with _explained():
            return self._trace.read(seconds)

    def missed(self) -> int:
        """Count the events that came faster than they were read.

        Returns
        -------
        int
            Their number.
        """
        with _explained():
            return self._trace.missed()

    def flows(self) -> list[KernelFlowRecord]:
        """Tell what was seen of each connection.

        Returns
        -------
        list of KernelFlowRecord
            As the simulator's records say it, and the replay through the law.
        """
        return self._trace.flows()


def trace(what: str) -> Trace:
    """Listen to a controller of the kernel.

    Parameters
    ----------
    what
        Its name, or its specification.

    Returns
    -------
    Trace
        The listener.
    """
    return Trace(what)
