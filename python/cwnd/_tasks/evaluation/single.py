"""One run of a test: the scenario of a network and a seed, and its value of the metric."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd._experiments.experiment import experiments
from cwnd._runs.conventions import CONVENTIONS
from cwnd._runs.defaults import BACKEND, SEED
from cwnd._runs.run import check_seed, run
from cwnd._sweeps.plan import Run
from cwnd._sweeps.reading import read_plan
from cwnd.controller import command_specification, names_python, read_controller
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd._experiments.experiment import Test
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario
    from cwnd.controller import Factory, Spec


@dataclass(frozen=True, slots=True)
class SingleRun:
    """One run of a test."""

    test: Test
    network: str
    """Empty if the test has only one."""
    scenario: Scenario
    """With the seed of the run."""
    on: str
    """``sim`` or ``linux``."""

    def run(self, progress: Callable[[float], None] | None = None) -> Result:
        """Make the run; ``progress`` receives the completed fraction."""
        return run(self.scenario, on=self.on, progress=progress)

    def to_toml(self) -> str:
        """Return the scenario as the text of a scenario file that ``cwnd run`` accepts."""
        document = self.scenario.to_dict()
        for flow in document["flow"]:
            factory = self.scenario.controllers.get(flow["controller"])
            if factory is not None:
                flow["controller"] = _whole_path(flow["controller"], factory)
        described = [f"test {self.test.id}", self.network, f"metric {self.test.metric.name}"]
        text = type(self.scenario)(document).to_toml()
        return f"# {', '.join(filter(None, described))}\n\n{text}"


def single_run(
    controller: Spec,
    test: str,
    *,
    cell: str | None = None,
    seed: int = SEED,
    on: str = BACKEND,
    conventions: str = CONVENTIONS,
    stack: str | None = None,
) -> SingleRun:
    """Return one run of a test, or of its baseline if ``controller`` is the baseline's.

    ``cell`` is the name of the network or comma-separated parts of it; None if the test has only
    one.

    Examples
    --------
    >>> single_run("bbr3", "high-loss", cell="2 flows, buffer 1 BDP", seed=3).network
    '2 flows, buffer 1 BDP'
    """
    check_seed(seed)
    name = read_controller(controller)[0]
    (experiment,) = experiments(names=[test], on=on, conventions=conventions, stack=stack)
    point = experiment.point(cell)
    plan = read_plan(experiment.plan([controller], 1))
    scenario = plan.scenario(Run(point, plan.values(point), name, seed))
    return SingleRun(
        experiment.tests[0],
        experiment.networks[point],
        scenario.with_values({"seed": seed}),
        on,
    )


def _whole_path(name: str, factory: Factory) -> str:
    """Return the specification of a controller in Python, with the whole path of its file."""
    if names_python(name) and ".py:" not in name:
        return name
    found = command_specification(name, factory)
    if found is None:
        raise ArgumentError("scenario", f"{name} is not a class at the top of a Python file")
    path, _, law = found.partition(".py:")
    return f"{Path(path).resolve()}.py:{law}"
