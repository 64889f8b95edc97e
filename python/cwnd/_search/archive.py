"""Runs of a search: a plan whose points are chosen one after the other, and its data set."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cwnd._runs.scenario import Scenario
from cwnd._search.networks import PARAMETERS, network
from cwnd._search.objective import CAPACITY
from cwnd._sweeps.dataset import METRICS, DataSet
from cwnd._sweeps.manifest import LOST, list_parts
from cwnd._sweeps.plan import Plan, Run
from cwnd._sweeps.processes import pack
from cwnd._sweeps.query import read
from cwnd._sweeps.reading import read_plan
from cwnd._sweeps.sweep import Batches
from cwnd._sweeps.workers import Cluster, Cores, run_packed
from cwnd.controller import read_controller
from cwnd.stats import estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt
    import pyarrow as pa
    from distributed import Client
    from typing_extensions import Self

    from cwnd._base.records import JsonObject
    from cwnd._experiments.bound import Grade, Measured
    from cwnd._search.objective import Objective
    from cwnd._search.space import Space, Values
    from cwnd.controller import Spec

REFERENCE_SEEDS = 500
"""Added to the seeds of the reference where it has seeds of its own."""

TIME_LIMIT = "1min"
"""Wall time after which a run fails."""


@dataclass(frozen=True)
class SearchPlan(Plan):
    """A plan whose runs have any values of the parameters, or None for those that are off."""

    def _scenario(self, run: Run) -> Scenario:
        return Scenario(self.document(run), self.factories, self.laws)

    def scenario_of(self, named: Mapping[str, Any], controller: str) -> Scenario:
        """Return the scenario of the parameters that are on, for a controller."""
        values = tuple(named.get(axis.name) for axis in self.axes)
        return self.scenario(Run(0, values, controller, 0))

    def document(self, run: Run) -> JsonObject:
        """Return the scenario of a run as plain data."""
        values = dict(zip((axis.name for axis in self.axes), run.values, strict=True))
        assert run.controller is not None  # noqa: S101
        return network(values, run.controller)

    def place(self, run: Run) -> JsonObject:
        """Return the columns of ``runs`` with the values of a run."""
        pairs = zip(self.axes, run.values, strict=True)
        return {axis.name: None if v is None else axis.column(v) for axis, v in pairs}

    @property
    def places(self) -> list[str]:
        """Names of the columns of `place`."""
        return [axis.name for axis in self.axes]

    @property
    def shared(self) -> JsonObject:
        """What all runs of a data set share, by the names of the search: also the controllers."""
        names = {"base": "bounds", "measures": "objective"}
        shared = {names.get(name, name): value for name, value in super().shared.items()}
        return {**shared, "controllers": list(self.controllers)}

    @property
    def optional(self) -> bool:
        """Whether the columns of `place` may be null."""
        return True

    def find_points(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Return -1 for each row: no run is planned."""
        return np.full(rows.num_rows, -1, dtype=np.int64)


def make_plan(
    controller: Spec, against: Spec, space: Space, objectives: Sequence[Objective]
) -> SearchPlan:
    """Return the plan of the runs of a controller and of the reference."""
    import tomli_w

    metrics = dict.fromkeys(one.metric for one in objectives)
    # One network that has all groups of flows, so that the names of the metrics can be checked.
    names = {name: known.default for name, known in PARAMETERS.items()}
    base = network({**names, "others": "cubic", "short": 0.1}, "cubic")
    specs = {read_controller(spec)[0]: spec for spec in (controller, against) if spec != CAPACITY}
    plan = read_plan(
        {
            "base": base,
            "controllers": list(specs.values()),
            "measures": [name for name in metrics if name not in METRICS],
            "time_limit": TIME_LIMIT,
        }
    )
    given = {field.name: getattr(plan, field.name) for field in fields(plan)}
    document = {"controllers": [*plan.controllers], **space.document}
    return SearchPlan(
        **{
            **given,
            "text": tomli_w.dumps(document),
            "base": {"search": space.document},
            "axes": tuple(one.axis for one in space.parameters),
            "origin": "search",
        }
    )


class Archive:
    """The runs of a search in a data set: each is made once, also after a restart."""

    def __init__(self, plan: SearchPlan, out: Path, dask: str | Client | None = None) -> None:
        self.plan, self._out = plan, out
        self._workers = Cores(plan) if dask is None else Cluster(dask, run_packed, pack(plan))
        self._rows: dict[str, JsonObject] = {}
        self._asked: set[str] = set()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            opened.enter_context(self._workers)
            self._data = opened.enter_context(DataSet(self._out, self.plan))
            if list_parts(self._out):
                for row in read(self._out, "select * from runs").to_pylist():
                    if not (row["error"] or "").startswith(LOST):
                        self._keep(row)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the rows, and stop the workers."""
        self._opened.__exit__(kind, problem, trace)

    @property
    def spent(self) -> int:
        """Number of different runs that were asked for, whether they were made before or now."""
        return len(self._asked)

    def rows(self, runs: Sequence[Run]) -> list[JsonObject]:
        """Return the rows of runs, and make the missing ones."""
        names = [self._name(self.plan.place(run), run.controller, run.seed) for run in runs]
        self._asked.update(names)
        missing = dict(zip(names, runs, strict=True))
        missing = {name: run for name, run in missing.items() if name not in self._rows}
        if missing:
            Batches(self.plan, self, self._workers, missing.values(), len(missing)).make(None)
        return [self._rows[name] for name in names]

    def add(self, tables: dict[str, pa.Table]) -> None:
        """Keep the rows of completed runs, and add them to the data set."""
        self._data.add(tables)
        for row in tables["runs"].to_pylist():
            self._keep(row)

    def flush_old(self) -> None:
        """Write the rows if the last ones were written long ago."""
        self._data.flush_old()

    def _keep(self, row: JsonObject) -> None:
        place = {name: row[name] for name in self.plan.places}
        self._rows[self._name(place, row["controller"], row["seed"])] = row

    @staticmethod
    def _name(place: Mapping[str, Any], controller: str | None, seed: int) -> str:
        return json.dumps([place, controller, seed], sort_keys=True)


class Runs(Protocol):
    """Makes runs, each once."""

    @property
    def spent(self) -> int:
        """Number of different runs that were asked for."""

    def rows(self, runs: Sequence[Run]) -> list[JsonObject]:
        """Return a row with the metrics and the ``error`` of each run."""


class Judge:
    """Measures networks: the runs of a controller and of the reference, paired by seed."""

    def __init__(
        self, archive: Runs, controller: str, against: str, *, own_seeds: bool = False
    ) -> None:
        self._archive, self._controller, self._against = archive, controller, against
        self._shift = REFERENCE_SEEDS if own_seeds else 0

    @property
    def runs_of_network(self) -> int:
        """Number of runs of a network with one seed."""
        return 1 if self._against == CAPACITY else 2

    def measure(
        self, networks: Sequence[Values], seeds: Sequence[int], objectives: Iterable[Objective]
    ) -> list[Samples]:
        """Return the values of each network, all seeds and objectives."""
        sides = [(self._controller, 0)]
        if self._against != CAPACITY:
            sides.append((self._against, self._shift))
        runs = [
            Run(0, values, controller, seed + shift)
            for values in networks
            for controller, shift in sides
            for seed in seeds
        ]
        rows = iter(self._archive.rows(runs))
        found = []
        for _ in networks:
            own = [next(rows) for _ in seeds]
            base = None if len(sides) == 1 else [next(rows) for _ in seeds]
            errors = tuple(dict.fromkeys(row["error"] for row in own if row["error"]))
            values = {}
            for one in objectives:
                of_own = [_number(row[one.metric]) for row in own]
                of_base = (
                    [1.0] * len(own) if base is None else [_number(r[one.metric]) for r in base]
                )
                values[one.name] = (tuple(of_own), tuple(of_base))
            found.append(Samples(values, errors))
        return found


@dataclass(frozen=True)
class Samples:
    """The values of a network, one for each seed."""

    values: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]
    """Of the controller and of the reference, by objective."""
    errors: tuple[str, ...]
    """Errors of runs of the controller."""

    def sizes(self, objective: Objective) -> list[float]:
        """Return the size of a weakness with each seed."""
        pairs = zip(*self.values[objective.name], strict=True)
        return [objective.size(value, base) for value, base in pairs]

    def size(self, objective: Objective) -> float:
        """Return the mean size of a weakness."""
        return float(np.mean(self.sizes(objective)))

    def judge(self, objective: Objective) -> tuple[Grade, Measured]:
        """Grade the network; it fails only if the interval of the size is above 0.

        A value that is not determined fails a test, although the reference may have such values
        too. An error of the controller is a failure without an interval.
        """
        grade, measured = objective.judge(*self.values[objective.name])
        if grade == "fails" and not self.errors and not estimate(self.sizes(objective)).low > 0:
            grade = "undecided"
        return grade, measured


def _number(value: object) -> float:
    """Return a figure of a row; NaN if the run did not determine it."""
    return float(value) if isinstance(value, int | float) else math.nan
