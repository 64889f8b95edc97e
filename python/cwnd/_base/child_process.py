"""A Python process with a connection to this one."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing.connection import Pipe
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection


def start_process(
    module: str, *, output: int | None = None, environment: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a process that calls ``serve`` of a module with the descriptor of a connection.

    Returns the process and the other end of the connection. ``output`` is where the process prints.
    """
    own, theirs = Pipe()
    # The imports are those of this process; in a session of its own it gets no Ctrl-C.
    code = f"import sys; sys.path[:] = {sys.path}; from {module} import serve; "
    child = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", f"{code}serve({theirs.fileno()})"],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        start_new_session=True,
    )
    theirs.close()
    return child, own
