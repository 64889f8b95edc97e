"""Plan of a sweep: a base, axes, controllers and seeds, and its runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cwnd import _native
from cwnd._base.law_files import held_laws, known_laws
from cwnd._runs.defaults import DUMBBELL
from cwnd._runs.measures import places_of_scenario, read_metric
from cwnd._runs.networks import dumbbell, overridden
from cwnd._runs.scenario import Scenario
from cwnd._sweeps.axes import LATIN_POINT, find_points, latin_points
from cwnd._sweeps.code import digest
from cwnd.errors import ArgumentError, PlanError
from cwnd.units import counted, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from cwnd._base.records import JsonObject
    from cwnd._sweeps.axes import Axis
    from cwnd.controller import Factory

_OTHERS = ("reno", "cubic")
"""Controllers of which at least one is another than that of an axis."""

MAX_CHECKED = 10_000
"""Largest number of points that are checked before the first run."""


class Run(NamedTuple):
    """One run of a sweep."""

    point: int
    """Number of the point."""
    values: tuple[Any, ...]
    """Value of each axis."""
    controller: str | None
    """Controller of the measured flows; None for those of the base."""
    seed: int


@dataclass(frozen=True)
class Plan:
    """Plan of a sweep, created by `cwnd._sweeps.reading.read_plan`."""

    origin: str
    """Name of the plan in messages."""
    text: str
    """The plan as TOML."""
    base: Scenario | Mapping[str, Any]
    """Base scenario, or arguments of the dumbbell."""
    axes: tuple[Axis, ...]
    latin: tuple[int, int]
    """Number of points of the sampled axes, and seed of the sample."""
    controllers: tuple[str | None, ...]
    """Controllers of the measured flows; a single None for those of the base."""
    reference: str | None
    """Controller of every second measured flow."""
    seeds: Sequence[int]
    """Seeds of the runs at each point."""
    keep: tuple[str, ...]
    """Tables to write besides ``runs``."""
    measures: tuple[str, ...]
    """Names of further metrics in ``runs``, as in ``[expect]``."""
    on: str
    """One of `cwnd._runs.real_time.BACKENDS`."""
    time_limit: float
    """Wall time in seconds after which a simulated run fails."""
    factories: dict[str, Factory]
    """Factories of the controllers written in Python, by name."""
    laws: Mapping[str, str]
    """Texts of the laws in files."""
    codes: dict[str | None, str]
    """Hash of the code that each controller's runs depend on, by controller."""
    chosen: tuple[int, ...] | None = None
    """Numbers of the points to run; None for all."""

    @property
    def real(self) -> bool:
        """Whether the runs take real time, with real sockets on this machine."""
        return self.on != "sim"

    @property
    def points(self) -> int:
        """Number of points: all combinations of listed values, times the sampled points."""
        count = self.latin[0] if self._sampled else 1
        for axis in self._listed:
            count *= len(axis.values)
        return count

    def __len__(self) -> int:
        return len(self.chosen_points) * len(self.controllers) * len(self.seeds)

    def __str__(self) -> str:
        """Describe the size of the plan."""
        parts = [counted(len(self.chosen_points), "point")]
        if self.controllers != (None,):
            parts.append(counted(len(self.controllers), "controller"))
        parts.append(counted(len(self.seeds), "seed"))
        return f"{counted(len(self), 'run')}: {' × '.join(parts)}"

    def runs(self) -> Iterator[Run]:
        """Return all runs, with the controller varying fastest, then the point, then the seed."""
        return map(self.run, range(len(self)))

    def run(self, number: int) -> Run:
        """Return a run by its number in the order of `runs`."""
        number, controller = divmod(number, len(self.controllers))
        seed, at = divmod(number, len(self.chosen_points))
        point = self.chosen_points[at]
        return Run(point, self.values(point), self.controllers[controller], self.seeds[seed])

    def values(self, point: int) -> tuple[Any, ...]:
        """Return the value of each axis at a point; the last listed axis varies fastest."""
        values: dict[str, Any] = {}
        if self._sampled:
            point, drawn = divmod(point, self.latin[0])
            fractions = _latin(self.latin[0], len(self._sampled), self.latin[1])[drawn]
            for axis, fraction in zip(self._sampled, fractions, strict=True):
                assert axis.sampled is not None  # noqa: S101
                values[axis.name] = axis.sampled.at(float(fraction))
        for axis in reversed(self._listed):
            point, at = divmod(point, len(axis.values))
            values[axis.name] = axis.values[at]
        return tuple(values[axis.name] for axis in self.axes)

    def place(self, run: Run) -> JsonObject:
        """Return the columns of ``runs`` that identify the point of a run."""
        drawn = {LATIN_POINT: run.point % self.latin[0]} if self._sampled else {}
        axes = zip(self.axes, run.values, strict=True)
        return drawn | {axis.name: axis.column(value) for axis, value in axes}

    @property
    def optional(self) -> bool:
        """Whether the columns of `place` may be null."""
        return False

    @property
    def places(self) -> list[str]:
        """Names of the columns of `place`."""
        return [*([LATIN_POINT] if self._sampled else []), *(axis.name for axis in self.axes)]

    def find_points(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Return the number of the point of each row, which has the columns of `place`, or -1."""
        return find_points(self.axes, self.latin[0], rows)

    def scenario(self, run: Run) -> Scenario:
        """Build the scenario of a run; ValueError if the values are invalid."""
        with held_laws(self.laws):
            return self._scenario(run)

    def _scenario(self, run: Run) -> Scenario:
        places = zip(self.axes, run.values, strict=True)
        values = {axis.name: axis.content(value) for axis, value in places}
        if isinstance(self.base, Scenario):
            scenario = self.base
        else:
            own = {name: values.pop(name) for name in DUMBBELL if name in values}
            given = {**self.base, **own}
            document = _dumbbell(given).to_dict()
            if "rate" in overridden(values) - given.keys():
                del document["dumbbell"]["rate"]
            scenario = Scenario(document, self.factories)
        if values:
            scenario = scenario.with_values(values)
        if run.controller is None:
            return scenario
        return scenario.with_controllers(run.controller, self.reference, turn=run.seed % 2)

    def check(self) -> None:
        """Validate the scenarios of every controller and of up to `MAX_CHECKED` points."""
        seed, first = self.seeds[0], self.values(0)
        for controller in self.controllers[1:]:
            self._check(Run(0, first, controller, seed))
        for point in range(0, self.points, -(-self.points // MAX_CHECKED)):
            self._check(Run(point, self.values(point), self.controllers[0], seed))
        for number in range(len(self.axes)):
            self._check_effect(number)
        self._check_measures()

    def _check(self, run: Run) -> None:
        """Validate the scenario of one run."""
        try:
            scenario = self.scenario(run)
            if self.real:
                with known_laws(scenario.laws):
                    _native.check_real(scenario.to_json(), self.on)
            else:
                scenario.validate()
        except (ValueError, TypeError) as mistake:
            problem = mistake.problem if isinstance(mistake, ArgumentError) else str(mistake)
            if isinstance(mistake, ArgumentError) and mistake.argument in DUMBBELL:
                problem = f"{mistake.argument}: {problem}"
            place = ", ".join(
                f"{axis.name} = {axis.column(value)}"
                for axis, value in zip(self.axes, run.values, strict=True)
            )
            where = f"point {run.point} ({place})" if place else "base"
            raise PlanError(f"{self.origin}: {where}: {problem}") from None

    def _check_effect(self, number: int) -> None:
        """Raise an error for an axis with two values that result in the same scenario."""
        axis, values = self.axes[number], self.values(0)
        examples = axis.examples
        if len(axis.values) == 1 and axis.name.endswith(".controller"):
            # A single value says nothing of whether `controllers` replaces it.
            examples = (axis.values[0], next(name for name in _OTHERS if name != axis.values[0]))
        one, other = (
            Run(0, (*values[:number], value, *values[number + 1 :]), self.controllers[0], 1)
            for value in examples
        )
        if one != other and self.scenario(one).to_dict() == self.scenario(other).to_dict():
            if examples != axis.examples:
                raise PlanError(
                    f"{self.origin}: axes.{axis.name}: `controllers` replaces the value"
                )
            ends = " and ".join(str(axis.column(value)) for value in examples)
            raise PlanError(
                f"{self.origin}: axes.{axis.name}: {ends} result in the same scenario: they are "
                "equal, or `controllers` or another axis replaces the value"
            )

    def _check_measures(self) -> None:
        """Check the names of the metrics; a wrong name is a PlanError."""
        if not self.measures:
            return
        scenario = self.scenario(Run(0, self.values(0), self.controllers[0], self.seeds[0]))
        places = places_of_scenario(scenario, scenario.validate()["links"])
        try:
            for name in self.measures:
                read_metric(name, places)
        except ValueError as mistake:
            raise PlanError(f"{self.origin}: measures: {mistake}") from None

    @property
    def identity(self) -> dict[str, str]:
        """Hashes of what all runs of a data set share."""
        return _digests(self.shared)

    @property
    def shared(self) -> JsonObject:
        """What all runs of a data set share."""
        base = self.base.to_dict() if isinstance(self.base, Scenario) else self.base
        return {
            "base": base,
            "axes": [(axis.name, axis.kind, str(axis.sampled)) for axis in self.axes],
            "latin": self.latin,
            "reference": self.reference is not None,
            "keep": sorted(self.keep),
            "measures": self.measures,
            "on": self.on,
        }

    @property
    def files(self) -> dict[str, str]:
        """Hashes of the contents of the files that values of axes name."""
        return _digests(
            {
                f"{axis.name}: {name}": content
                for axis in self.axes
                for name, content in axis.contents.items()
            }
        )

    @property
    def chosen_points(self) -> Sequence[int]:
        """Numbers of the points to run."""
        return range(self.points) if self.chosen is None else self.chosen

    @cached_property
    def _listed(self) -> list[Axis]:
        return [axis for axis in self.axes if axis.sampled is None]

    @cached_property
    def _sampled(self) -> list[Axis]:
        return [axis for axis in self.axes if axis.sampled is not None]


def _digests(parts: JsonObject) -> dict[str, str]:
    """Hash each value."""
    return {
        name: digest(json.dumps(part, sort_keys=True, default=str)) for name, part in parts.items()
    }


def _dumbbell(arguments: Mapping[str, Any]) -> Scenario:
    """Create the dumbbell of a ``[base]`` table; the defaults are those of `cwnd.compare`."""
    given = {**DUMBBELL, **arguments}
    return dumbbell(given, {}).sampled(1, given["flows"], parse_time(given["time"])).scenario


@cache
def _latin(points: int, ranges: int, seed: int) -> npt.NDArray[Any]:
    """Draw the points of a Latin hypercube; cached."""
    return latin_points(points, ranges, seed)
