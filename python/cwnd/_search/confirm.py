"""Runs of a finding in real time, over the kernel's TCP on an emulated network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd._runs.measures import places_of_scenario, read_metric
from cwnd._runs.real_time import check_backend, run_real
from cwnd._search.objective import CAPACITY
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import JsonObject
    from cwnd._experiments.bound import Grade, Measured
    from cwnd._runs.scenario import Scenario
    from cwnd._search.archive import SearchPlan
    from cwnd._search.finding import Finding
    from cwnd._search.objective import Objective

BACKEND = "linux"

SEEDS = 3
"""Runs in real time of each side."""

KernelVerdict: TypeAlias = Literal["real", "not real", "undecided", "not run"]
"""Whether the weakness is in the runs in real time too."""

_VERDICTS: dict[Grade, KernelVerdict] = {"fails": "real", "undecided": "undecided"}


@dataclass(frozen=True)
class Confirmation:
    """What the runs of a finding in real time have shown."""

    verdict: KernelVerdict
    measured: Measured | None
    """The metric under the controller and the reference; None without runs."""
    note: str
    """Why there were no runs, or why the emulator limited them; empty for neither."""

    def to_json(self) -> JsonObject:
        """Return the confirmation as plain data."""
        measured = self.measured
        return {
            "verdict": self.verdict,
            "value": None if measured is None else measured.value.to_json(),
            "reference": None if measured is None else measured.baseline.to_json(),
            "note": self.note,
        }


def check_confirmation(on: str) -> None:
    """Raise an error unless findings can be confirmed on a backend on this machine."""
    if on != BACKEND:
        raise ArgumentError("confirm", f"{on!r} is not {BACKEND}")
    check_backend(on)


def run_finding(plan: SearchPlan, finding: Finding) -> Confirmation:
    """Run a finding in real time under both controllers, one run after the other."""
    names = [name for name in (finding.controller, finding.against) if name != CAPACITY]
    scenarios = [plan.scenario_of(finding.network, name) for name in names]
    return judge_real(finding.objective, scenarios, finding.seeds[:SEEDS])


def judge_real(
    objective: Objective, scenarios: Sequence[Scenario], seeds: Sequence[int]
) -> Confirmation:
    """Run the scenarios of the controller and of the reference, if any, and compare a metric."""
    sides: list[list[float]] = []
    limits: dict[str, None] = {}
    try:
        check_backend(BACKEND, scenarios)
        for scenario in scenarios:
            places = places_of_scenario(scenario, scenario.validate()["links"])
            metric = read_metric(objective.metric, places)
            results = [run_real(scenario, seed, BACKEND) for seed in seeds]
            sides.append([metric.value(result) for result in results])
            limits |= dict.fromkeys(result.limit for result in results if result.limit)
    except ValueError as problem:
        return Confirmation("not run", None, str(problem))
    own, base = sides if len(sides) > 1 else (sides[0], [1.0] * len(seeds))
    grade, measured = objective.judge(own, base)
    verdict = "undecided" if limits else _VERDICTS.get(grade, "not real")
    return Confirmation(verdict, measured, "; ".join(limits))
