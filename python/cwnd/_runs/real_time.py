"""Runs in real time: real sockets on an emulation of the scenario's network.

Linux only. The runs are implemented in `cwnd_linux::run`; see `docs/agreement.md`.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd._base.law_files import known_laws
from cwnd._base.machine import require
from cwnd._runs.result import Result
from cwnd.emulation import read_links
from cwnd.errors import ArgumentError, KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cwnd._runs.scenario import Scenario

BACKENDS = ("sim", "udt", "linux", "quic")
"""Backends of a scenario: the simulator, UDT sockets, the kernel's TCP, the QUIC stacks."""


def check_backend(on: str, scenarios: Iterable[Scenario] = ()) -> None:
    """Raise an error unless a backend exists and can run scenarios on this machine."""
    if on not in BACKENDS:
        raise ArgumentError("on", f"{on!r} is not one of {', '.join(BACKENDS)}")
    if on == "sim":
        return
    require(f"--on {on}, which emulates the network,", "Linux")
    if any(scenario.controllers for scenario in scenarios):
        raise ArgumentError("on", f"controllers written in Python run on sim only, not on {on}")
    for scenario in scenarios:
        with known_laws(scenario.laws):
            _native.check_real(scenario.to_json(), on)
    try:
        emulates()
    except OSError as problem:
        raise KernelError(f"--on {on} {_reason(problem)}") from None


def emulates() -> None:
    """Create and remove an emulated link in milliseconds; OSError if that is impossible."""
    _native.Emulation(read_links({}), 1, None)


def run_real(
    scenario: Scenario,
    seed: int,
    on: str,
    *,
    progress: Callable[[float], None] | None = None,
    scales: list[float] | None = None,
) -> Result:
    """Run one scenario in real time on ``udt``, ``linux`` or ``quic``; call `check_backend` first.

    ``seed`` determines all random values: starts, delays, random loss, RED. Runs still differ in
    their timing. The result has notes, and the reason why the emulator was the bottleneck, if so.
    """
    try:
        with known_laws(scenario.laws):
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
        document=scenario.document,
        laws=scenario.laws,
    )


def _reason(problem: OSError) -> str:
    """Describe the missing capability."""
    if problem.errno in {errno.EPERM, errno.EACCES}:
        return "needs root for namespaces and the emulated network"
    if problem.errno in {errno.ENOENT, errno.ENODEV} and not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    return f"failed: {problem.strerror or problem}"
