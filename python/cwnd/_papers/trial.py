"""Trials: the runs of an exhibit with one thing changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd._runs.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Trial:
    """One change of an exhibit's scenarios, named before the runs."""

    text: str
    """What differs from the default, in words."""
    permits: str = ""
    """The paper's words that permit it, or that they are absent; empty to only show a cause."""
    values: Mapping[str, object] = field(default_factory=dict)
    """Values of scenario keys by path, as in `Scenario.with_values`."""
    laws: Mapping[str, str] = field(default_factory=dict)
    """Specifications by the controller that they replace. One of the same name adds parameters."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Values of `Lab.option`."""

    def change(self, scenario: Scenario) -> Scenario:
        """Return the scenario with this change; keys of tables that it does not have are left."""
        document = scenario.to_dict()
        values = {
            path: value
            for path, value in self.values.items()
            if path.partition(".")[0].partition("[")[0] in document
        }
        for number, flow in enumerate(document["flow"]):
            name = flow["controller"].partition("(")[0]
            if name in self.laws:
                values[f"flow[{number}].controller"] = _put(flow["controller"], self.laws[name])
        return scenario.with_values(values) if values else scenario


def _put(given: str, other: str) -> str:
    """Return ``other``, with the parameters of ``given`` first if it is the same controller."""
    name, _, before = given.removesuffix(")").partition("(")
    same, _, added = other.removesuffix(")").partition("(")
    parts = [part for part in (before, added) if part]
    return f"{name}({', '.join(parts)})" if name == same and parts else other
