"""Simulation, models, transports and measurement of congestion controllers.

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
    from cwnd.agreement.outcome import Agreement
    from cwnd.agreement.run import agree
    from cwnd.comparison.outcome import Comparison
    from cwnd.comparison.run import compare
    from cwnd.controller import Controller, RateLaw, WindowLaw
    from cwnd.evaluation.card import Card
    from cwnd.evaluation.evaluate import evaluate
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
    "Card",
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
    "evaluate",
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

# Hidden from type checkers: with `__getattr__` they would accept any attribute of the package.
if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(
        __name__,
        dict.fromkeys(__all__, "")
        | {
            "Agreement": "agreement.outcome",
            "Algorithm": "registry",
            "Card": "evaluation.card",
            "Comparison": "comparison.outcome",
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
            "agree": "agreement.run",
            "algorithms": "registry",
            "canonical": "registry",
            "compare": "comparison.run",
            "evaluate": "evaluation.evaluate",
            "reproduce": "papers.runner",
            "run": "running",
            "sweep": "sweeps.sweep",
        },
    )
