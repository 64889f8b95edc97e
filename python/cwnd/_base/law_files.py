"""Laws in files: their texts, which the native module knows by the names of the files."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd._base.text_file import read_text
from cwnd.errors import ControllerWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LAW = re.compile(r"(?P<path>.*?\.law)(?P<arguments>\(.*\))?", re.DOTALL)
"""A specification that names a file with a law, with or without the values of its parameters."""

_texts: dict[str, str] = {}
"""Texts of the laws that the native module knows."""

_held: ContextVar[Mapping[str, str]] = ContextVar("held", default=MappingProxyType({}))
"""Texts of the laws of the sweep that this thread works on."""


class Laws(dict[str, str]):
    """Texts of laws by the names of their files, which a process that unpickles them knows too."""

    def __reduce__(self) -> tuple[object, ...]:
        return declare_all, (dict(self),)


def path_of_law(spec: str) -> str | None:
    """Return the file that a specification names; None if it names no law in a file.

    Examples
    --------
    >>> path_of_law("mine.law(beta=1/8)"), path_of_law("reno")
    ('mine.law', None)
    """
    match = LAW.fullmatch(spec.strip())
    return None if match is None else match["path"]


def read_law_text(path: str | Path) -> str:
    """Return the text of a law; a SpecError if there is none."""
    try:
        return read_text(Path(path))
    except OSError as problem:
        raise _native.SpecError(f"{path}: {problem.strerror or problem}") from None
    except UnicodeDecodeError:
        raise _native.SpecError(f"{path}: not a text file in UTF-8") from None


def declare_law(name: str, path: str | Path | None = None) -> None:
    """Read the law in a file again, and warn of what its author probably did not mean.

    The file is `name` unless another path is given. A law that is held is not read again.
    """
    if name in _held.get():
        return
    if "(" in name:
        raise _native.SpecError(f"{name}: the name of a file with a law has no bracket")
    text = read_law_text(name if path is None else path)
    found = _native.declare_law(name, text)
    if _texts.get(name) != text:
        for warning in found:
            warnings.warn(warning, ControllerWarning, stacklevel=2)
    _texts[name] = text


@contextmanager
def held_laws(laws: Laws) -> Iterator[None]:
    """Let laws have these texts, whatever their files have."""
    declare_all(laws)
    before = _held.set(laws)
    try:
        yield
    finally:
        _held.reset(before)


def laws_of(specs: Iterable[str]) -> Laws:
    """Return the laws that specifications name."""
    paths = {path for path in map(path_of_law, specs) if path is not None}
    return Laws({path: _texts[path] for path in sorted(paths)})


def declare_all(texts: Mapping[str, str]) -> Laws:
    """Make the laws of these texts known, in place of others of the same names."""
    for name, text in texts.items():
        _native.declare_law(name, text)
        _texts[name] = text
    return Laws(texts)
