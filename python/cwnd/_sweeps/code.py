"""Hashes of the code that a run depends on."""

from __future__ import annotations

import ast
import hashlib
import inspect
import platform
import sys
import sysconfig
from functools import cache
from importlib import metadata
from importlib.util import resolve_name
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd.controller import written_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

    from cwnd.controller import Factory

LIBRARIES = ("numpy", "scipy")
"""Python packages that compute scenarios and figures."""

_INSTALLED = [sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib")]
"""Folders of the standard library and of installed packages."""


def digest(text: str) -> str:
    """Return a hash of a text as 32 hexadecimal digits.

    Examples
    --------
    >>> digest("cwnd")[:8]
    '57db16f9'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def code_hash(factories: Iterable[Factory], laws: Mapping[str, str], on: str) -> str:
    """Return cwnd's version, and a hash of its code, of the files of some controllers and of laws.

    Runs in real time also depend on the kernel.
    """
    hashed = hashlib.sha256(own_code().encode())
    if on != "sim":
        hashed.update(platform.release().encode())
    for text in sorted({text for factory in factories for text in _sources(factory)}):
        hashed.update(text.encode())
    for path, text in sorted(laws.items()):
        hashed.update(_native.hash_law(path, text).encode())
    return f"{_native.version()}+{hashed.hexdigest()[:16]}"


@cache
def own_code() -> str:
    """Return a hash of all that runs depend on, apart from their controllers.

    These are the sources of the native module and of the Python modules, not compiled files, and
    the versions of Python and of `LIBRARIES`.
    """
    versions = [platform.python_version_tuple()[:2], *map(metadata.version, LIBRARIES)]
    hashed = hashlib.sha256(f"{_native.sources()} {versions}".encode())
    for module in sorted(own_modules(), key=lambda module: module.__name__):
        hashed.update(Path(str(module.__file__)).read_bytes())
    return hashed.hexdigest()[:16]


def own_modules() -> set[ModuleType]:
    """Return the Python modules of cwnd that runs depend on."""
    from cwnd import tables
    from cwnd._sweeps import plan, work

    return _closure([plan, tables, work])


def _closure(modules: Iterable[ModuleType]) -> set[ModuleType]:
    """Return modules and those that they import when they are loaded, without other packages."""
    left = list(modules)
    found: set[ModuleType] = set()
    while left:
        module = left.pop()
        if module not in found and _is_source(module):
            found.add(module)
            names = _imports(ast.parse(Path(str(module.__file__)).read_bytes()), module)
            left += [sys.modules[name] for name in names if name in sys.modules]
    return found


def _is_source(module: ModuleType) -> bool:
    """Test whether a module is a Python file of cwnd, or of no installed package."""
    file = Path(getattr(module, "__file__", None) or "")
    if file.suffix != ".py":
        return False
    return module.__name__.partition(".")[0] == "cwnd" or not any(
        file.is_relative_to(folder) for folder in _INSTALLED
    )


def _imports(node: ast.AST, module: ModuleType) -> Iterator[str]:
    """Yield the names that a module imports outside functions, and those of their packages."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Import):
            names = [alias.name for alias in inner.names]
        elif isinstance(inner, ast.ImportFrom):
            relative = "." * inner.level + (inner.module or "")
            base = resolve_name(relative, module.__package__) if inner.level else relative
            names = [base, *(f"{base}.{alias.name}" for alias in inner.names)]
        else:
            if not _is_skipped(inner):
                yield from _imports(inner, module)
            continue
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _is_skipped(node: ast.AST) -> bool:
    """Test whether a statement does not run when its module is loaded."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _sources(factory: Factory) -> set[str]:
    """Return the text of the file that defines a controller and of the files that it imports."""
    made = written_class(factory)
    module = sys.modules.get(getattr(made, "__module__", ""))
    texts = {
        Path(str(imported.__file__)).read_text(encoding="utf-8")
        for imported in (_closure([module]) if module is not None else ())
        if imported.__name__.partition(".")[0] != "cwnd"
    }
    try:
        file = inspect.getsourcefile(made)
        if file is not None and Path(file).is_file():
            return texts | {Path(file).read_text(encoding="utf-8")}
        return texts | {inspect.getsource(made)}
    except (OSError, TypeError):
        return texts | {repr(made)}
