"""Runs of a law or of a controller of the registry, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cwnd._native import ScenarioError
from cwnd._tasks.score.measure import SECONDS, Overtime, run_metrics, run_networks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from cwnd._base.records import JsonObject
    from cwnd._tasks.score.measure import Facts
    from cwnd._tasks.score.suite import Network

    Jobs: TypeAlias = Sequence[tuple[JsonObject, int]]
    """Scenarios with a seed each."""


class Runner(Protocol):
    """Makes the runs of a candidate, within its limits."""

    def run(self, networks: Sequence[Network]) -> Sequence[Facts | str]:
        """Return the facts of each network, or why it has none."""

    def run_metrics(self, jobs: Jobs, metrics: Sequence[str]) -> Sequence[list[float] | str]:
        """Return some metrics of each scenario with its seed, or why there are none."""


class Here:
    """Makes the runs in this process."""

    def __init__(self, controller: str, seed: int) -> None:
        self._controller, self._seed = controller, seed

    def run(self, networks: Sequence[Network]) -> list[Facts | str]:
        """Return the facts of each network, or why it has none."""
        seconds = SECONDS * len(networks)
        found: list[Facts | str] = [f"the runs took longer than {seconds:g} s"] * len(networks)
        try:
            run_networks(
                self._controller, networks, self._seed, seconds=seconds, made=found.__setitem__
            )
        except Overtime:
            pass
        except ScenarioError as problem:
            found = [str(problem)] * len(networks)
        return found

    def run_metrics(self, jobs: Jobs, metrics: Sequence[str]) -> list[list[float] | str]:
        """Return some metrics of each scenario with its seed, or why there are none."""
        try:
            return [*run_metrics(jobs, metrics, seconds=SECONDS * len(jobs))]
        except (Overtime, ScenarioError) as problem:
            if len(jobs) != 1:
                return [found for job in jobs for found in self.run_metrics([job], metrics)]
            late = f"the run took longer than {SECONDS:g} s"
            return [late if isinstance(problem, Overtime) else str(problem)]
