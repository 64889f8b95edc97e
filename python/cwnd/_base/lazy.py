"""Packages that import their submodules on first use (PEP 562)."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def attach(
    package: str, home: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Create ``__getattr__`` and ``__dir__`` for a package.

    ``home`` maps each public name to the submodule that defines it, relative to the package, and
    the name of a submodule to an empty string.
    """

    def get(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home[name] or name}")
        value: object = getattr(module, name) if home[name] else module
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        present = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*present, *home})

    return get, names
