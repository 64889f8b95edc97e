"""Names of files: which ones a receiver takes, and how a terminal may see them."""

from __future__ import annotations

import hashlib
import os

PART = b".cwnd-part"
"""How the names of half-received files end."""

LONGEST = 4096
"""Bytes of a path within the folder."""

LONGEST_NAME = 255
"""Bytes of a name: what the file systems of Linux take."""


def split_path(path: bytes) -> tuple[bytes, ...]:
    r"""Take a path apart that somebody else has sent.

    What means something on Windows, such as ``C:`` or ``aux``, is a name like others here.

    Parameters
    ----------
    path
        Names with ``/`` between them.

    Returns
    -------
    tuple of bytes
        The names; each is one that a directory can have.

    Raises
    ------
    ValueError
        The path could lead out of the folder, or nothing can have that name.

    Examples
    --------
    >>> split_path(b"a/b c/d\n")
    (b'a', b'b c', b'd\n')
    >>> split_path(b"a/../../b")
    Traceback (most recent call last):
    ValueError: '..' in a name leads out of the folder
    """
    if not path:
        raise ValueError("an empty name")
    if len(path) > LONGEST:
        raise ValueError(f"a path of {len(path)} bytes; {LONGEST} are allowed")
    if b"\0" in path:
        raise ValueError("a NUL in a name")
    if path.startswith(b"/"):
        raise ValueError("an absolute path leads out of the folder")
    names = tuple(path.split(b"/"))
    for name in names:
        if name == b"..":
            raise ValueError("'..' in a name leads out of the folder")
        if name in {b"", b"."}:
            raise ValueError("a path with an empty name or '.' in it")
        if len(name) > LONGEST_NAME:
            raise ValueError(f"a name of {len(name)} bytes; {LONGEST_NAME} are allowed")
        if name.endswith(PART):
            raise ValueError(f"names that end in {PART.decode()} are for half-received files")
    return names


def part_name(name: bytes) -> bytes:
    """Name the file that holds what has arrived of another.

    Parameters
    ----------
    name
        The file's final name.

    Examples
    --------
    >>> part_name(b"film.mkv")
    b'film.mkv.cwnd-part'
    """
    if len(name) + len(PART) <= LONGEST_NAME:
        return name + PART
    # Two long names that begin alike must not share a part.
    mark = b"." + hashlib.sha256(name).hexdigest()[:16].encode()
    return name[: LONGEST_NAME - len(PART) - len(mark)] + mark + PART


def printable(name: bytes | str) -> str:
    r"""Write a name or a peer's sentence so that a terminal does nothing but show it.

    Parameters
    ----------
    name
        What a file system or a peer gave.

    Examples
    --------
    >>> printable("na\u00efve\x1b[2J".encode()), printable(b"\xff\n")
    ('naïve\\x1b[2J', '\\xff\\n')
    """
    text = os.fsdecode(name) if isinstance(name, bytes) else name
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    """Write a character that cannot be shown."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
