"""A laboratory for congestion control.

>>> import cwnd
>>> comparison = cwnd.compare(["simd"], reference="reno", time="4s", repeat=2)
>>> sorted(comparison.to_json())[:2]
['against', 'alone']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import attach

if TYPE_CHECKING:
    from cwnd import (
        controller,
        emulation,
        errors,
        events,
        kernel,
        metrics,
        model,
        parts,
        perf,
        stats,
        tables,
        transfer,
        udt,
        units,
    )
    from cwnd._native import ScenarioError, SpecError
    from cwnd.agreeing import agree
    from cwnd.agreement import Agreement
    from cwnd.comparing import compare
    from cwnd.comparison import Comparison
    from cwnd.controller import Controller, RateLaw, WindowLaw
    from cwnd.extras import MissingExtraError
    from cwnd.papers.runner import reproduce
    from cwnd.registry import Algorithm, algorithms, canonical
    from cwnd.result import Result
    from cwnd.running import run
    from cwnd.scenario import Scenario
    from cwnd.sweeps.sweep import Sweep, sweep
    from cwnd.version import __version__

__all__ = [
    "Agreement",
    "Algorithm",
    "Comparison",
    "Controller",
    "MissingExtraError",
    "RateLaw",
    "Result",
    "Scenario",
    "ScenarioError",
    "SpecError",
    "Sweep",
    "WindowLaw",
    "__version__",
    "agree",
    "algorithms",
    "canonical",
    "compare",
    "controller",
    "emulation",
    "errors",
    "events",
    "kernel",
    "metrics",
    "model",
    "parts",
    "perf",
    "reproduce",
    "run",
    "stats",
    "sweep",
    "tables",
    "transfer",
    "udt",
    "units",
]

# Not for type checkers: they would take every attribute of the package for defined.
if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(
        __name__,
        dict.fromkeys(__all__, "")
        | {
            "Agreement": "agreement",
            "Algorithm": "registry",
            "Comparison": "comparison",
            "Controller": "controller",
            "MissingExtraError": "extras",
            "RateLaw": "controller",
            "Result": "result",
            "Scenario": "scenario",
            "ScenarioError": "_native",
            "SpecError": "_native",
            "Sweep": "sweeps.sweep",
            "WindowLaw": "controller",
            "__version__": "version",
            "agree": "agreeing",
            "algorithms": "registry",
            "canonical": "registry",
            "compare": "comparing",
            "reproduce": "papers.runner",
            "run": "running",
            "sweep": "sweeps.sweep",
        },
    )
