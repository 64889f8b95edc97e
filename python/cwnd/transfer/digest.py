"""The hash of a file, made in a thread of its own while the file moves."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from cwnd.transfer.frames import CHUNK

_BUFFERS = 4
_SMALL = 1 << 16
"""Bytes that are hashed sooner than another thread is told of them."""


class Hash(Protocol):
    """What hashlib makes."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Hash more."""

    def digest(self) -> bytes:
        """Give the hash of everything until now."""
        ...


def new_hash() -> Hash:
    """Begin a hash: SHA-256, which processors have instructions for."""
    return hashlib.sha256()


class Chunks:
    """Buffers in a ring; each is hashed while the next ones are used.

    It holds 4 MiB.
    """

    def __init__(self) -> None:
        self._buffers = [memoryview(bytearray(CHUNK)) for _ in range(_BUFFERS)]
        self._busy: list[Future[None] | None] = [None] * _BUFFERS
        self._next = 0
        self._worker = ThreadPoolExecutor(1, "hash")

    def close(self) -> None:
        """End the thread."""
        self._worker.shutdown()

    def buffer(self) -> memoryview:
        """Give a buffer of `CHUNK` bytes that nobody uses."""
        self._next = (self._next + 1) % _BUFFERS
        self._wait(self._next)
        return self._buffers[self._next]

    def read(self, fd: int) -> bytes:
        """Read the next `CHUNK` bytes of a file, as soon as few enough wait to be hashed."""
        self.buffer()
        return os.read(fd, CHUNK)

    def add(self, sum_: Hash, data: bytes | memoryview) -> None:
        """Hash what was put into the last buffer, or was read; returns before that is done."""
        if len(data) < _SMALL:
            self.settle()
            sum_.update(data)
        else:
            self._busy[self._next] = self._worker.submit(sum_.update, data)

    def settle(self) -> None:
        """Wait until everything is hashed."""
        for index in range(_BUFFERS):
            self._wait(index)

    def add_file(self, sum_: Hash, fd: int, length: int) -> int:
        """Hash the first bytes of a file.

        Parameters
        ----------
        sum_
            What hashes them.
        fd
            The file, at its beginning.
        length
            How many bytes.

        Returns
        -------
        int
            How many there were.
        """
        left = length
        while left:
            buffer = self.buffer()
            count = os.readv(fd, [buffer[: min(left, CHUNK)]])
            if count == 0:
                break
            self.add(sum_, buffer[:count])
            left -= count
        self.settle()
        return length - left

    def _wait(self, index: int) -> None:
        future, self._busy[index] = self._busy[index], None
        if future is not None:
            future.result()
