"""Ctrl-C and SIGTERM, which end a command: with an exception, or else after a time limit."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

END_SECONDS = 1.5
"""Seconds after a signal until the process ends, even in code that does not return."""

writing = threading.RLock()
"""Held while finished results are written: the process does not end meanwhile."""

_received: list[int] = []
_reported = threading.Event()


def install() -> None:
    """Raise KeyboardInterrupt on the first signal, and end the process if that takes too long.

    An ignored signal stays ignored: a shell ignores SIGINT in background jobs.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    # Python runs handlers in the main thread only, which may be in native code.
    read, write = os.pipe()
    # Windows lacks this function before Python 3.12, and does not require it.
    if hasattr(os, "set_blocking"):
        os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=[read], daemon=True).start()


def received() -> bool:
    """Whether a signal interrupted the command: any exception may be a consequence of it."""
    return bool(_received)


def report() -> int:
    """Print that the command was interrupted; return 128 and the number of the signal."""
    _reported.set()
    sys.stderr.write("cwnd: interrupted\n")
    sys.stderr.flush()
    return 128 + (_received or [signal.SIGINT])[0]


def _interrupt(number: int, _: FrameType | None) -> None:
    """Interrupt the main thread; later signals do not interrupt its cleanup."""
    _received.append(number)
    if len(_received) == 1:
        raise KeyboardInterrupt


def _writable() -> bool:
    """Whether a write to standard error does not block; unknown on Windows, and assumed there."""
    return sys.platform == "win32" or bool(select.select([], [sys.stderr], [], 0)[1])


def _watch(read: int) -> None:
    """Wait for a signal, and end the process if it still runs after `END_SECONDS`."""
    # `cwnd emulate` forwards signals to its command.
    while signal.getsignal(number := os.read(read, 1)[0]) is not _interrupt:
        pass
    time.sleep(END_SECONDS)
    with writing:
        from multiprocessing import active_children

        for child in active_children():
            child.kill()
        if not _reported.is_set() and _writable():
            report()
        os._exit(128 + number)
