"""What differs between operating systems."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from cwnd.errors import KernelError

if TYPE_CHECKING:
    from pathlib import Path

O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
"""For `os.open`: a symbolic link is an error. Windows has no such flag."""


def require(feature: str, system: Literal["Linux", "Unix"]) -> None:
    """Raise KernelError if a feature needs Linux, or Linux or macOS, and this is another system.

    Examples
    --------
    >>> require("cwnd emulate", "Linux")
    """
    if not (sys.platform == "linux" or (system == "Unix" and sys.platform != "win32")):
        systems = "Linux" if system == "Linux" else "Linux or macOS"
        raise KernelError(f"{feature} needs {systems}")


def count_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lock(opened: int, *, shared: bool) -> None:
    """Lock an open file until it is closed; BlockingIOError if another process holds the lock.

    On Windows a shared lock admits every process: `msvcrt` has exclusive locks only.
    """
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(opened, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    elif not shared:
        import msvcrt

        try:
            msvcrt.locking(opened, msvcrt.LK_NBLCK, 1)
        except OSError as problem:
            raise BlockingIOError(*problem.args) from None


def sync_folder(folder: Path) -> None:
    """Write the names of a folder's files to the disk; Windows needs no request."""
    if sys.platform != "win32":
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def write_utf8() -> None:
    """Write UTF-8 to the standard streams, whatever the locale, as to files."""
    for stream in (sys.stdout, sys.stderr):
        # A program may have replaced a stream by one without this method.
        with suppress(AttributeError):
            stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
