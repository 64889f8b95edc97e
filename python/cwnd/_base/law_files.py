"""Laws in files: their texts, which the native module knows by the names of the files."""

from __future__ import annotations

import math
import re
import threading
import warnings
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd._base.files import read_text
from cwnd.errors import ControllerWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LAW = re.compile(r"(?P<path>.*?\.law)(?P<arguments>\s*\(.*\))?", re.DOTALL)
"""A specification that names a file with a law, with or without the values of its parameters."""

_LAW_IN_ANY_CASE = re.compile(LAW.pattern, LAW.flags | re.IGNORECASE)
"""The same with `.law` in any letters, such as `.LAW`."""

_known: dict[str, str] = {}
"""Texts of the laws that the native module knows."""

_warned: set[tuple[str, str]] = set()
"""Names and texts of the laws of whose answers `warn_answer` has warned."""

_users: Counter[str] = Counter()
"""How many calls use the law of a name."""

_changed = threading.Condition()
"""Guards `_known` and `_users`."""

_held: ContextVar[Mapping[str, str]] = ContextVar("held", default=MappingProxyType({}))
"""Texts of laws that are not read from their files."""


def path_of_law(spec: str) -> str | None:
    """Return the file that a specification names; None if it names no law in a file.

    A name that ends in `.LAW` is a SpecError.

    Examples
    --------
    >>> path_of_law("mine.law(beta=1/8)"), path_of_law("reno")
    ('mine.law', None)
    """
    text = spec.strip()
    if (match := LAW.fullmatch(text)) is not None:
        return match["path"]
    if (other := _LAW_IN_ANY_CASE.fullmatch(text)) is not None:
        raise _native.SpecError(f"{other['path']}: the name of a file with a law ends in .law")
    return None


def listed_twice(specs: Sequence[str], home: Path = Path()) -> str | None:
    """Return a specification that is listed before, where files may have other names; else None.

    Paths are relative to ``home``.

    Examples
    --------
    >>> listed_twice(["reno", "a.law", "./a.law"]), listed_twice(["a.law", "a.law(beta=1/8)"])
    ('./a.law', None)
    """
    seen = set()
    for spec in specs:
        path = path_of_law(spec)
        if path is None and ".py:" in spec:
            path = spec.partition(".py:")[0]
        same = spec if path is None else f"{(home / path).resolve()}{spec.removeprefix(path)}"
        if same in seen:
            return spec
        seen.add(same)
    return None


def read_law_text(path: str | Path) -> str:
    """Return the text of a file; a SpecError if it cannot be read."""
    file = Path(path)
    try:
        if file.exists() and not file.is_file() and not file.is_dir():
            # It is read several times.
            raise _native.SpecError(f"{path}: not a regular file")
        return read_text(file)
    except OSError as problem:
        raise _native.SpecError(f"{path}: {problem.strerror or problem}") from None
    except UnicodeDecodeError:
        raise _native.SpecError(f"{path}: not a text file in UTF-8") from None


def read_law(name: str, path: str | Path | None = None) -> str:
    """Return the text of the law that is called `name`; a SpecError if it has a fault.

    The file is `name` unless another path is given.
    """
    return _read_law(name, path)[0]


def use_law(name: str, path: str | Path | None = None) -> str:
    """Return the same text of a law that is to be used, with warnings.

    What the author probably did not mean is a ControllerWarning, unless this text of `name` is
    known.
    """
    text, found = _read_law(name, path)
    for warning in found:
        warnings.warn(warning, ControllerWarning, stacklevel=2)
    return text


def _read_law(name: str, path: str | Path | None) -> tuple[str, list[str]]:
    """Return the text of a law, and the warnings of a text that was not known."""
    if (held := _held.get().get(name)) is not None:
        return held, []
    if "(" in name:
        raise _native.SpecError(f"{name}: the name of a file with a law has no bracket")
    text = read_law_text(name if path is None else path)
    before = _known.get(name)
    with known_laws({name: text}):
        found = _native.declare_law(name, text)
    return text, [] if before == text else found


def warn_answer(name: str, hook: str, answer: float, at: float, counts: str) -> None:
    """Warn, once for each text, of an answer at a time in seconds that is no window or rate."""
    if (law := (name, _known.get(name, ""))) in _warned:
        return
    _warned.add(law)
    shown = "NaN" if math.isnan(answer) else "infinity" if math.isinf(answer) else f"{answer:g}"
    text = f"{name}: {hook} answered {shown} at {at:.4g} s, which counts as {counts}"
    warnings.warn(text, ControllerWarning, stacklevel=2)


@contextmanager
def held_laws(laws: Mapping[str, str]) -> Iterator[None]:
    """Let `read_law` and `use_law` return these texts, whatever their files have."""
    before = _held.set({**_held.get(), **laws})
    try:
        yield
    finally:
        _held.reset(before)


@contextmanager
def known_laws(laws: Mapping[str, str]) -> Iterator[None]:
    """Let the native module know laws by these texts; calls with other texts of a name wait."""
    if not laws:
        yield
        return

    def free() -> bool:
        return all(not _users[name] or _known[name] == text for name, text in laws.items())

    with _changed:
        _changed.wait_for(free)
        for name, text in laws.items():
            if _known.get(name) != text:
                _native.declare_law(name, text)
                _known[name] = text
        _users.update(laws.keys())
    try:
        yield
    finally:
        with _changed:
            _users.subtract(laws.keys())
            _changed.notify_all()
