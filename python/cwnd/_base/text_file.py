"""Text files of users."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
