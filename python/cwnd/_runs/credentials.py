"""Keys, key pairs and one-time codes of `cwnd.udt`, and their files."""

from __future__ import annotations

import os
from pathlib import Path

from cwnd import _native
from cwnd._base.files import read_text
from cwnd.errors import ArgumentError


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """Read the file of a shared key or of a private key.

    Parameters
    ----------
    path
        The file. A regular file must belong to this user or root and be inaccessible to its group
        and others (mode 0600 or 0400).

    Returns
    -------
    bytes
        Its contents, for ``key`` or ``pair`` of `cwnd.udt.connect` and `cwnd.udt.listen`.

    Raises
    ------
    OSError
        It cannot be read, or others can access it (:class:`PermissionError`). The message names
        the file and the remedy.
    """
    return _native.udt_read_secret(os.fspath(path))


def read_peers(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a list of public keys: one per line, each with an optional name.

    Parameters
    ----------
    path
        The file. ``#`` begins a comment, and blank lines are skipped.

    Returns
    -------
    dict of str
        The name of each key, empty if it has none; for ``peers`` of `cwnd.udt.connect` and
        `cwnd.udt.listen`.

    Raises
    ------
    OSError
        It cannot be read.
    ArgumentError
        A line is not a public key; the message names the file and the line.
    """
    try:
        text = read_text(Path(path))
        peers = _native.udt_parse_peers(text)
    except ValueError as mistake:
        raise ArgumentError("peers", f"{os.fspath(path)}: {mistake}") from None
    return {key: name or "" for key, name in peers}


def generate_key(path: str | os.PathLike[str]) -> None:
    """Write a new key of 256 random bits to a new file with mode 0600.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    OSError
        The file exists already (:class:`FileExistsError`), or it cannot be written.

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
        The file of the private key; it gets mode 0600.

    Returns
    -------
    str
        The public key, which the peers need.

    Raises
    ------
    OSError
        One of the files exists already (:class:`FileExistsError`), or cannot be written.

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
    """Generate a one-time code such as ``4821-kavo-miro``, one of 2^38.6 possible codes.

    Returns
    -------
    str
        The code, for ``code`` of `cwnd.udt.connect` and `cwnd.udt.listen`.
    """
    return _native.udt_generate_code()
