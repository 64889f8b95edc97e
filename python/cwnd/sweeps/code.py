"""Hashes of the code that a run depends on."""

from __future__ import annotations

import hashlib
import inspect
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd.controller import written_class

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.controller import Factory


def digest(text: str) -> str:
    """Return a hash of a text as 32 hexadecimal digits.

    Parameters
    ----------
    text
        The text.

    Examples
    --------
    >>> digest("cwnd")[:8]
    '57db16f9'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def code_hash(factories: Iterable[Factory], on: str) -> str:
    """Return cwnd's version, and a hash of its code and of the files of some controllers.

    Parameters
    ----------
    factories
        The controllers written in Python.
    on
        Backend of the runs. Those in real time also depend on the kernel.
    """
    hashed = hashlib.sha256(own_code().encode())
    if on != "sim":
        hashed.update(platform.release().encode())
    for text in sorted(_source(factory) for factory in factories):
        hashed.update(text.encode())
    return f"{_native.version()}+{hashed.hexdigest()[:16]}"


@cache
def own_code() -> str:
    """Return a hash of the native module and of the Python modules that runs depend on."""
    from cwnd import conventions, metrics, networks, result, scenario, tables, units
    from cwnd.sweeps import axes, plan, work

    hashed = hashlib.sha256()
    scenarios = (axes, conventions, networks, plan, scenario, units)
    figures = (metrics, result, tables, work)
    for module in (_native, *scenarios, *figures):
        file = Path(str(module.__file__))
        # A package is hashed with its modules.
        parts = sorted(file.parent.glob("*.py")) if file.name == "__init__.py" else [file]
        for part in parts:
            hashed.update(part.read_bytes())
    return hashed.hexdigest()[:16]


def _source(factory: Factory) -> str:
    """Return the text of the file that defines a controller, or a substitute for it."""
    made = written_class(factory)
    try:
        file = inspect.getsourcefile(made)
        if file is not None and Path(file).is_file():
            return Path(file).read_text(encoding="utf-8")
        return inspect.getsource(made)
    except (OSError, TypeError):
        return repr(made)
