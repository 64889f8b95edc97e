"""Simulation, models, transports and measurement of congestion controllers.

>>> import cwnd
>>> comparison = cwnd.compare(["simd"], reference="reno", time="4s", repeat=2)
>>> sorted(comparison.to_json())[:2]
['against', 'alone']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._base.lazy import attach

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
    from cwnd._base.extras import MissingExtraError
    from cwnd._base.version import __version__
    from cwnd._controllers.registry import Algorithm, algorithms, canonical
    from cwnd._native import ScenarioError, SpecError
    from cwnd._papers.runner import reproduce
    from cwnd._runs.repeated import Repeated, run_repeated
    from cwnd._runs.result import Result
    from cwnd._runs.run import run
    from cwnd._runs.scenario import Scenario
    from cwnd._runs.simulation import Simulation
    from cwnd._search.search import Search, search
    from cwnd._sweeps.sweep import Sweep, sweep
    from cwnd._tasks.agreement.outcome import Agreement
    from cwnd._tasks.agreement.run import agree
    from cwnd._tasks.comparison.outcome import Comparison
    from cwnd._tasks.comparison.run import compare
    from cwnd._tasks.evaluation.card import Card
    from cwnd._tasks.evaluation.evaluate import evaluate
    from cwnd._tasks.score.score import Score, score
    from cwnd.controller import Controller, RateLaw, WindowLaw

__all__ = [
    "Agreement",
    "Algorithm",
    "Card",
    "Comparison",
    "Controller",
    "MissingExtraError",
    "RateLaw",
    "Repeated",
    "Result",
    "Scenario",
    "ScenarioError",
    "Score",
    "Search",
    "Simulation",
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
    "run_repeated",
    "score",
    "search",
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
            "Agreement": "_tasks.agreement.outcome",
            "Algorithm": "_controllers.registry",
            "Card": "_tasks.evaluation.card",
            "Comparison": "_tasks.comparison.outcome",
            "Controller": "controller",
            "MissingExtraError": "_base.extras",
            "RateLaw": "controller",
            "Repeated": "_runs.repeated",
            "Result": "_runs.result",
            "Scenario": "_runs.scenario",
            "ScenarioError": "_native",
            "Score": "_tasks.score.score",
            "Simulation": "_runs.simulation",
            "Search": "_search.search",
            "SpecError": "_native",
            "Sweep": "_sweeps.sweep",
            "WindowLaw": "controller",
            "__version__": "_base.version",
            "agree": "_tasks.agreement.run",
            "algorithms": "_controllers.registry",
            "canonical": "_controllers.registry",
            "compare": "_tasks.comparison.run",
            "evaluate": "_tasks.evaluation.evaluate",
            "reproduce": "_papers.runner",
            "run": "_runs.run",
            "run_repeated": "_runs.repeated",
            "score": "_tasks.score.score",
            "search": "_search.search",
            "sweep": "_sweeps.sweep",
        },
    )
