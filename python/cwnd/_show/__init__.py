"""Plots, pages, notebook output and text of results.

Results are data: they reach the modules of this package only as its attributes, which are imported
on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._base.lazy import attach

if TYPE_CHECKING:
    from cwnd._show import notebook, plots, report

__all__ = ["notebook", "plots", "report"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, dict.fromkeys(__all__, ""))
