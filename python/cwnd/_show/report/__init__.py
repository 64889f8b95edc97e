"""Self-contained HTML pages, usable offline, on small screens and in dark mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._base.extras import require
from cwnd._base.lazy import attach

require("a report", "jinja2", "plotly")

if TYPE_CHECKING:
    from cwnd._show.report import agree, compare, evaluate, fork, run, search, sweep

__all__ = ["agree", "compare", "evaluate", "fork", "run", "search", "sweep"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, dict.fromkeys(__all__, ""))
