"""The folder that a receiver writes into, and nowhere else.

Every name is opened below the directory that holds it, and no symbolic link is followed: what the
sender calls its files, and what lies about in the folder, cannot lead out of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from cwnd.transfer.names import part_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PART = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

PERMISSIONS = 0o777
"""What is kept of a mode: no setuid, setgid or sticky bit arrives."""

Names = tuple[bytes, ...]
"""A path within the folder, as `cwnd.transfer.names.split_path` gives it."""


class Refusal(Exception):  # noqa: N818
    """A file or directory that cannot be taken; others may be."""


class Part:
    """A file that is being received: it has its final name when it is complete, and not before.

    Attributes
    ----------
    fd
        Its descriptor, locked against other receivers.
    """

    def __init__(self, parent: int, name: bytes) -> None:
        self._parent = parent
        self._name = name
        self._part = part_name(name)
        self.fd = os.open(self._part, _PART, 0o600, dir_fd=parent)
        try:
            self._check()
        except BaseException:
            os.close(self.fd)
            raise

    def _check(self) -> None:
        found = os.fstat(self.fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise Refusal("what has the name of its half-received file is something else")
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("it is being received from another sender") from None
        # Between open and lock another receiver may have completed it, or removed it.
        with suppress(FileNotFoundError):
            named = os.stat(self._part, dir_fd=self._parent, follow_symlinks=False)
            if (named.st_dev, named.st_ino) == (found.st_dev, found.st_ino):
                return
        raise Refusal("it was received from another sender just now")

    def keep(self, length: int) -> None:
        """Go on behind its first bytes; the others are no more.

        Raises
        ------
        Refusal
            There are not so many.
        """
        if os.fstat(self.fd).st_size < length:
            raise Refusal("what was there of it is gone")
        os.ftruncate(self.fd, length)
        os.lseek(self.fd, length, os.SEEK_SET)

    def check(self, arrived: bytes, sent: bytes) -> None:
        """Compare hashes.

        Raises
        ------
        Refusal
            They differ: the part is removed, as nobody knows where.
        """
        if arrived != sent:
            self.remove()
            raise Refusal("its hash differs from the sender's")

    def complete(self, mode: int, mtime_ns: int) -> None:
        """Give it its mode, its time and its final name."""
        os.fchmod(self.fd, mode & PERMISSIONS)
        os.utime(self.fd, ns=(mtime_ns, mtime_ns))
        os.rename(self._part, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)

    def remove(self) -> None:
        """Remove it."""
        with suppress(FileNotFoundError):
            os.unlink(self._part, dir_fd=self._parent)

    def close(self) -> None:
        """Leave it as it is; without a byte in it, remove it."""
        if os.fstat(self.fd).st_size == 0:
            with suppress(FileNotFoundError):
                named = os.stat(self._part, dir_fd=self._parent, follow_symlinks=False)
                if named.st_ino == os.fstat(self.fd).st_ino:
                    self.remove()
        os.close(self.fd)
        os.close(self._parent)


class Folder:
    """A directory to receive into.

    Parameters
    ----------
    root
        The directory; it exists.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self._root)

    def make(self, names: Names, mode: int) -> None:
        """Make a directory, or take the one that is there; its owner can write in it.

        Parameters
        ----------
        names
            Where.
        mode
            The permissions that it will have once it is sealed.
        """
        with self._parent(names) as parent:
            with suppress(FileExistsError):
                os.mkdir(names[-1], mode & PERMISSIONS | 0o700, dir_fd=parent)
            with _refusing():
                fd = os.open(names[-1], _DIRECTORY, dir_fd=parent)
            try:
                now = os.fstat(fd).st_mode
                if now & 0o700 != 0o700:
                    os.fchmod(fd, stat.S_IMODE(now) | 0o700)
            finally:
                os.close(fd)

    def seal(self, names: Names, mode: int, mtime_ns: int) -> None:
        """Give a directory its mode and its time."""
        with self._parent(names) as parent:
            with _refusing():
                fd = os.open(names[-1], _DIRECTORY, dir_fd=parent)
            try:
                os.fchmod(fd, mode & PERMISSIONS)
                os.utime(fd, ns=(mtime_ns, mtime_ns))
            finally:
                os.close(fd)

    def present(self, names: Names, size: int) -> tuple[int, bool]:
        """Say how much of a file is there: all of it, a part, or nothing.

        Parameters
        ----------
        names
            Which file.
        size
            Its bytes.

        Returns
        -------
        tuple
            Bytes that may be the first of the file (whether they are is to be found out), and
            whether they have the final name.

        Raises
        ------
        Refusal
            Its name is something else's.
        """
        with self._parent(names) as parent:
            final = _status(parent, names[-1])
            part = _status(parent, part_name(names[-1]))
        if final is not None and stat.S_ISDIR(final.st_mode):
            raise Refusal("a directory has its name")
        if final is not None and not stat.S_ISREG(final.st_mode):
            raise Refusal("its name is that of a link or a device here")
        # A part is younger than the file that it is to replace.
        if part is not None and stat.S_ISREG(part.st_mode) and 0 < part.st_size <= size:
            return part.st_size, False
        if final is not None and final.st_size == size:
            return size, True
        return 0, False

    @contextmanager
    def reading(self, names: Names, *, whole: bool) -> Iterator[int]:
        """Open what `present` has found.

        Yields
        ------
        int
            A descriptor to read.
        """
        with self._parent(names) as parent:
            name = names[-1] if whole else part_name(names[-1])
            with _refusing():
                fd = os.open(name, _READ, dir_fd=parent)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise Refusal("what has its name is no file any more")
                yield fd
            finally:
                os.close(fd)

    def touch(self, names: Names, mode: int, mtime_ns: int) -> None:
        """Give a complete file its mode and its time."""
        with self._parent(names) as parent, _refusing():
            fd = os.open(names[-1], _READ, dir_fd=parent)
            try:
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    os.fchmod(fd, mode & PERMISSIONS)
                    os.utime(fd, ns=(mtime_ns, mtime_ns))
            finally:
                os.close(fd)

    def part(self, names: Names) -> Part:
        """Open what receives a file.

        Raises
        ------
        Refusal
            Somebody else receives it.
        """
        with self._parent(names) as parent, _refusing():
            kept = os.dup(parent)
            try:
                return Part(kept, names[-1])
            except BaseException:
                os.close(kept)
                raise

    @contextmanager
    def _parent(self, names: Names) -> Iterator[int]:
        """Open the directory that holds a name; those that are missing are made."""
        fd = os.dup(self._root)
        try:
            for name in names[:-1]:
                with _refusing():
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=fd)
                    below = os.open(name, _DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)


def _status(parent: int, name: bytes) -> os.stat_result | None:
    """Look at a name, not through it."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse what something else stands in the way of."""
    try:
        yield
    except OSError as problem:
        if problem.errno in {errno.ENOTDIR, errno.ELOOP}:
            raise Refusal("a file or a link stands where a directory is needed") from None
        raise
