"""The version of the package, as compiled into the native module."""

from __future__ import annotations

from cwnd import _native

__version__ = _native.version()
