"""Runs in real time: the scenario's network emulated, real sockets on it.

Linux only. What runs there is `cwnd_linux::run`: see `docs/agreement.md`.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd.emulation import read_links
from cwnd.errors import ArgumentError, KernelError
from cwnd.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cwnd.scenario import Scenario

BACKENDS = ("sim", "udt", "linux")
"""Where a scenario can run: the simulator, UDT sockets, the kernel's TCP."""


def check_backend(on: str, scenarios: Iterable[Scenario] = ()) -> None:
    """Refuse a reality that is none, or is none for these scenarios or on this machine.

    Parameters
    ----------
    on
        One of `BACKENDS`.
    scenarios
        What is to run there.

    Raises
    ------
    ArgumentError
        There is no such reality, or a controller is written in Python.
    KernelError
        It needs Linux, or rights that this user does not have.
    ScenarioError
        A scenario asks for what is not to be had there, as a controller without a kernel form.
    """
    if on not in BACKENDS:
        raise ArgumentError("on", f"{on!r} is none of {', '.join(BACKENDS)}")
    if on == "sim":
        return
    if sys.platform != "linux":
        raise KernelError(f"--on {on} needs Linux, for the emulated network; --on sim does not")
    if any(scenario.controllers for scenario in scenarios):
        raise ArgumentError("on", f"controllers written in Python run on sim only, not on {on}")
    for scenario in scenarios:
        _native.check_real(scenario.to_json(), on)
    try:
        emulates()
    except OSError as problem:
        raise KernelError(f"--on {on} {_reason(problem)}") from None


def emulates() -> None:
    """Make an emulated link and take it away again: a matter of milliseconds.

    Raises
    ------
    OSError
        This machine or its user cannot.
    """
    _native.Emulation(read_links({}), 1, None)


def run_real(
    scenario: Scenario,
    seed: int,
    on: str,
    *,
    progress: Callable[[float], None] | None = None,
    scales: list[float] | None = None,
) -> Result:
    """Run one scenario in real time, where `check_backend` has found nothing against it.

    Parameters
    ----------
    scenario
        The scenario.
    seed
        Of all that is drawn: starts, delays, random loss, RED. Real time is not drawn: no two runs
        are equal.
    on
        ``udt`` or ``linux``.
    progress
        Called now and then with the fraction that is done.
    scales
        As for `cwnd.result.Result`.

    Returns
    -------
    Result
        As the simulator's, with notes, and why the tool was the limit if it was.

    Raises
    ------
    KernelError
        This machine or its user cannot.
    ScenarioError
        The scenario makes no sense, or no sense there.
    """
    try:
        real = _native.run_real(scenario.to_json(), seed, on, progress)
    except _native.KernelError as problem:
        raise KernelError(f"--on {on}: {problem}") from None
    except OSError as problem:
        raise KernelError(f"--on {on} {_reason(problem)}") from None
    return Result(
        real["record"],
        title=scenario.title,
        scales=scales,
        on=on,
        limit=real["limit"],
        notes=real["notes"],
    )


def _reason(problem: OSError) -> str:
    """Say what is missing."""
    if problem.errno in {errno.EPERM, errno.EACCES}:
        return "needs root, for namespaces and the emulated network"
    if problem.errno in {errno.ENOENT, errno.ENODEV} and not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    return f"failed: {problem.strerror or problem}"
