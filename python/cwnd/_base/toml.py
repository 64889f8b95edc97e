"""The standard library's TOML parser, or ``tomli`` before Python 3.11, for text of any origin."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError

DEEPEST = 64
"""Largest depth of nested tables and lists."""


def loads(text: str) -> dict[str, Any]:
    """Parse TOML; deeper nesting than `DEEPEST` and overlong numbers are a TOMLDecodeError too."""
    try:
        document = tomllib.loads(text)
    except RecursionError:
        document = None
    except ValueError as problem:
        if isinstance(problem, TOMLDecodeError):
            raise
        raise TOMLDecodeError(str(problem)) from None
    if document is None or not _is_flat(document, DEEPEST):
        raise TOMLDecodeError("tables and lists are nested too deeply")
    return document


def _is_flat(value: object, depth: int) -> bool:
    """Test whether a value is nested at most ``depth`` times."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_flat(each, depth - 1) for each in inner)
