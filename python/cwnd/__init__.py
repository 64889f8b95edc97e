"""A laboratory for congestion control.

>>> import cwnd
>>> comparison = cwnd.compare(["simd"], reference="reno", time="4s", repeat=2)
>>> sorted(comparison.to_json())[:2]
['against', 'alone']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cwnd._native import ScenarioError, SpecError
    from cwnd._native import version as _version
    from cwnd.agreement import Agreement, agree
    from cwnd.comparison import Comparison, compare
    from cwnd.papers.runner import reproduce
    from cwnd.registry import Algorithm, algorithms, canonical
    from cwnd.result import Result
    from cwnd.running import run
    from cwnd.scenario import Scenario
    from cwnd.sweeps.sweep import Sweep, sweep

    __version__ = _version()

__all__ = [
    "Agreement",
    "Algorithm",
    "Comparison",
    "Result",
    "Scenario",
    "ScenarioError",
    "SpecError",
    "Sweep",
    "__version__",
    "agree",
    "algorithms",
    "canonical",
    "compare",
    "reproduce",
    "run",
    "sweep",
]

_HOME = {
    "Agreement": "agreement",
    "Algorithm": "registry",
    "Comparison": "comparison",
    "Result": "result",
    "Scenario": "scenario",
    "ScenarioError": "_native",
    "SpecError": "_native",
    "Sweep": "sweeps.sweep",
    "agree": "agreement",
    "algorithms": "registry",
    "canonical": "registry",
    "compare": "comparison",
    "reproduce": "papers.runner",
    "run": "running",
    "sweep": "sweeps.sweep",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: `import cwnd` stays fast."""
    from importlib import import_module

    if name == "__version__":
        value: object = import_module("cwnd._native").version()
    elif name in _HOME:
        value = getattr(import_module(f"cwnd.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'cwnd' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported yet or not."""
    return sorted({*globals(), *__all__})
