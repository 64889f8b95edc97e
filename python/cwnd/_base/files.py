"""Files of users: texts that are read, and files that are written whole or not at all."""

from __future__ import annotations

import errno
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 128 << 20
"""Largest number of characters: a device or a pipe may have no end."""


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, without a byte order mark.

    A file that cannot be read or is larger than `LARGEST` is an OSError, other bytes are a
    UnicodeDecodeError.
    """
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise OSError(errno.EFBIG, f"larger than {LARGEST >> 20} MiB", str(path))
    return text


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield the path of a file to write, which then gets the name ``path``.

    An error, such as that of a full disk, leaves an earlier file as it was. A device or a pipe is
    written directly.
    """
    path = Path(path)
    with naming(path):
        if path.exists() and not path.is_file():
            yield path
            return
        # A symbolic link stays.
        place = path.resolve()
        unfinished = place.with_name(f".{secrets.token_hex(8)}.new")
        try:
            if place.exists():
                # Raises an error if the file may not be written.
                place.open("ab").close()
            yield unfinished
            if place.exists():
                shutil.copymode(place, unfinished)
            unfinished.replace(place)
        except BaseException as problem:
            unfinished.unlink(missing_ok=True)
            if isinstance(problem, OSError) and problem.filename == str(unfinished):
                problem.filename = str(path)
            raise


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, with the same bytes on every system."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
