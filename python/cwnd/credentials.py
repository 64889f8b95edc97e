"""Keys, key pairs and one-time codes of `cwnd.udt`, and the files that they are kept in."""

from __future__ import annotations

import os
from pathlib import Path

from cwnd import _native
from cwnd.errors import ArgumentError


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """Read the file of a key or of a private key.

    Parameters
    ----------
    path
        The file. A regular file has to belong to this user or root, and neither its group nor
        others may use it (mode 0600 or 0400).

    Returns
    -------
    bytes
        What it holds, for ``key`` or ``pair`` of `cwnd.udt.connect` and `cwnd.udt.listen`.

    Raises
    ------
    OSError
        It cannot be read, or others can use it (:class:`PermissionError`). The message names the
        file and what to do.
    """
    return _native.udt_read_secret(os.fspath(path))


def read_peers(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a list of public keys: one a line, with an optional name behind it.

    Parameters
    ----------
    path
        The file. ``#`` begins a comment, and blank lines are skipped.

    Returns
    -------
    dict of str
        The name of each key, empty without one; for ``peers`` of `cwnd.udt.connect` and
        `cwnd.udt.listen`.

    Raises
    ------
    OSError
        It cannot be read.
    ArgumentError
        A line holds no public key; the message names the file and the line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        peers = _native.udt_parse_peers(text)
    except ValueError as mistake:
        raise ArgumentError("peers", f"{os.fspath(path)}: {mistake}") from None
    return {key: name or "" for key, name in peers}


def generate_key(path: str | os.PathLike[str]) -> None:
    """Write a new key of 256 random bits to a new file that only its owner can use.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    OSError
        There is such a file already (:class:`FileExistsError`), or it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from cwnd import udt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     udt.generate_key(f"{folder}/key")
    ...     len(udt.read_secret(f"{folder}/key"))
    65
    """
    _native.udt_generate_key(os.fspath(path))


def generate_pair(path: str | os.PathLike[str]) -> str:
    """Write a new key pair: the private key to ``path``, the public key to ``path`` with ``.pub``.

    Parameters
    ----------
    path
        The file of the private key, which only its owner can use.

    Returns
    -------
    str
        The public key, for the peers.

    Raises
    ------
    OSError
        One of the files is there already (:class:`FileExistsError`), or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from cwnd import udt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     public = udt.generate_pair(f"{folder}/pair")
    ...     list(udt.read_peers(f"{folder}/pair.pub")) == [public]
    True
    """
    return _native.udt_generate_pair(os.fspath(path))


def generate_code() -> str:
    """Generate a one-time code such as ``4821-kavo-miro``: one of 2^38.6.

    Returns
    -------
    str
        The code, for ``code`` of `cwnd.udt.connect` and `cwnd.udt.listen`.
    """
    return _native.udt_generate_code()
