"""What is sent: files and directories as they are found, and standard input."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.transfer.frames import Offer, What
from cwnd.transfer.names import PART, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STREAM_NAME = b"stdin"
"""What a receiver calls standard input."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Entry:
    """Something to be sent.

    Attributes
    ----------
    path
        Where it is; for standard input, its name.
    offer
        What the receiver is told of it.
    """

    path: bytes
    offer: Offer

    @property
    def label(self) -> str:
        """Its path, fit to be printed."""
        return printable(self.path)


class Changed(Exception):  # noqa: N818
    """A file is not what it was when it was offered."""


def top_name(path: bytes) -> bytes:
    """Say what a file or directory is called at the receiver.

    Parameters
    ----------
    path
        Where it is; ``.`` and ``..`` have the names of the directories that they are.

    Raises
    ------
    ValueError
        It has no name: it is the root.

    Examples
    --------
    >>> top_name(b"data/run-1/"), top_name(b"/usr/lib/..")
    (b'run-1', b'usr')
    """
    name = os.path.split(os.path.normpath(path))[1]
    if name in {b"", b".", b".."}:
        name = os.path.split(os.path.realpath(path))[1]
    if not name:
        raise ValueError("the root directory has no name to be received under")
    return name


def stream_entry(path: bytes = STREAM_NAME) -> Entry:
    """Describe standard input."""
    return Entry(path, Offer(What.STREAM, 0o644, 0, 0, path))


def walk(
    path: bytes, skipped: Callable[[str], None], failed: Callable[[str], None]
) -> Iterator[Entry]:
    """Find what is to be sent: a directory before what is in it.

    Parameters
    ----------
    path
        A file or directory; here, and only here, a symbolic link is followed.
    skipped
        Takes a line about what is neither a file nor a directory.
    failed
        Takes a line about a directory that cannot be read.

    Yields
    ------
    Entry
        In the order of their names.
    """
    found = Path(os.fsdecode(path)).stat()
    waiting = [(path, top_name(path), found)]
    while waiting:
        here, name, status = waiting.pop()
        if stat.S_ISDIR(status.st_mode):
            yield _entry(What.DIRECTORY, here, name, status)
            try:
                below = _list(here, name)
            except OSError as problem:
                failed(f"{printable(here)}: {problem.strerror}")
                continue
            waiting += below
        elif not stat.S_ISREG(status.st_mode):
            skipped(f"{printable(here)}: {_kind(status.st_mode)}")
        elif name.endswith(PART):
            skipped(f"{printable(here)}: a half-received file")
        else:
            yield _entry(What.FILE, here, name, status)


def open_entry(entry: Entry) -> int:
    """Open a file that was found.

    Raises
    ------
    Changed
        It is another one by now.
    OSError
        It cannot be opened.
    """
    # What the user named may be a link; what was found in a directory was none.
    flags = _READ if b"/" in entry.offer.path else _READ & ~os.O_NOFOLLOW
    fd = os.open(entry.path, flags)
    try:
        check_unchanged(entry, fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_unchanged(entry: Entry, fd: int) -> None:
    """Find out whether a file is still what was offered.

    Raises
    ------
    Changed
        It is not.
    """
    now = os.fstat(fd)
    offer = entry.offer
    same = (now.st_size, now.st_mtime_ns) == (offer.size, offer.mtime_ns)
    if not (same and stat.S_ISREG(now.st_mode)):
        raise Changed("it changed while it was sent")


def _list(path: bytes, name: bytes) -> list[tuple[bytes, bytes, os.stat_result]]:
    """List a directory, the last name first."""
    with os.scandir(path) as entries:
        found = sorted(entries, key=lambda entry: entry.name, reverse=True)
    return [
        (entry.path, name + b"/" + entry.name, entry.stat(follow_symlinks=False)) for entry in found
    ]


def _entry(what: What, path: bytes, name: bytes, status: os.stat_result) -> Entry:
    size = status.st_size if what is What.FILE else 0
    mode = stat.S_IMODE(status.st_mode)
    return Entry(path, Offer(what, mode, size, status.st_mtime_ns, name))


def _kind(mode: int) -> str:
    """Say what is neither a file nor a directory."""
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a socket" if stat.S_ISSOCK(mode) else "a device or a pipe"
