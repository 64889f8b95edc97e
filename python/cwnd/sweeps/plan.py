"""The plan of a sweep: a base, axes, controllers and seeds, and the runs that follow from them."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cwnd import _native
from cwnd.controller import move_specification, read_controller, written_class
from cwnd.errors import ArgumentError, PlanError
from cwnd.networks import DUMBBELL, dumbbell
from cwnd.running import LARGEST_SEED
from cwnd.scenario import Scenario
from cwnd.sweeps.axes import MOST_RUNS, Axis, latin_points, read_axis

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from cwnd.controller import Factory, Spec
    from cwnd.records import JsonObject

PlanLike: TypeAlias = "str | Path | Mapping[str, Any] | Plan"
"""The path of a plan, or its keys as plain data."""

MOST_CHECKED = 10_000
"""Points that are checked before the first run, at most."""

TABLES = ("flows", "links", "series")
"""Tables that a sweep writes on request, besides ``runs``."""

_KEYS = ("base", "axes", "latin", "controllers", "reference", "seeds", "keep")


class Run(NamedTuple):
    """One run of a sweep.

    Attributes
    ----------
    point
        Number of the point.
    values
        Value of each axis.
    controller
        The controller of the measured flows; None for those of the base.
    seed
        Its seed.
    """

    point: int
    values: tuple[Any, ...]
    controller: str | None
    seed: int


@dataclass(frozen=True)
class Plan:
    """What a sweep runs; `read_plan` makes it.

    Attributes
    ----------
    origin
        What messages call the plan.
    text
        The plan as a file.
    base
        The base scenario, or the arguments of the dumbbell.
    axes
        What varies.
    latin
        Number and seed of the points that the sampled axes have in common.
    controllers
        The controllers of the measured flows; one None for those of the base.
    reference
        The controller of every second measured flow.
    seeds
        Seeds of the runs at each point.
    keep
        Tables to write besides ``runs``.
    factories
        What makes the controllers written in Python, by their names.
    codes
        Hash of the code that each controller's runs depend on.
    """

    origin: str
    text: str
    base: Scenario | JsonObject
    axes: tuple[Axis, ...]
    latin: tuple[int, int]
    controllers: tuple[str | None, ...]
    reference: str | None
    seeds: Sequence[int]
    keep: tuple[str, ...]
    factories: dict[str, Factory]
    codes: dict[str | None, str]

    @property
    def points(self) -> int:
        """The number of points: every combination of the lists, and the sample of each."""
        count = self.latin[0] if self._sampled else 1
        for axis in self._listed:
            count *= len(axis.values)
        return count

    def __len__(self) -> int:
        return self.points * len(self.controllers) * len(self.seeds)

    def __str__(self) -> str:
        """Describe the size of the plan."""
        parts = [_count(self.points, "point")]
        if self.controllers != (None,):
            parts.append(_count(len(self.controllers), "controller"))
        parts.append(_count(len(self.seeds), "seed"))
        return f"{_count(len(self), 'run')}: {' × '.join(parts)}"

    def runs(self) -> Iterator[Run]:
        """Give the runs one by one: all points with the first seed come first."""
        for seed in self.seeds:
            for point in range(self.points):
                values = self.values(point)
                for controller in self.controllers:
                    yield Run(point, values, controller, seed)

    def values(self, point: int) -> tuple[Any, ...]:
        """Return the value of each axis at a point; the last list varies fastest."""
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

    def scenario(self, run: Run) -> Scenario:
        """Build the scenario of a run.

        Raises
        ------
        ValueError
            The values make no sense; ``ScenarioError`` and ``ArgumentError`` are ValueErrors.
        """
        values = {axis.name: value for axis, value in zip(self.axes, run.values, strict=True)}
        if isinstance(self.base, Scenario):
            scenario = self.base
        else:
            own = {name: values.pop(name) for name in DUMBBELL if name in values}
            scenario = Scenario(_dumbbell({**self.base, **own}).to_dict(), self.factories)
        if values:
            scenario = scenario.with_values(values)
        if run.controller is None:
            return scenario
        return scenario.with_controllers(run.controller, self.reference, turn=run.seed % 2)

    def check(self) -> None:
        """Build the scenarios of every controller and of every point, if they are not too many.

        Raises
        ------
        PlanError
            One of them makes no sense.
        """
        seed, first = self.seeds[0], self.values(0)
        for controller in self.controllers[1:]:
            self._check(Run(0, first, controller, seed))
        for point in range(0, self.points, -(-self.points // MOST_CHECKED)):
            self._check(Run(point, self.values(point), self.controllers[0], seed))
        for number in range(len(self.axes)):
            self._check_effect(number)

    def _check(self, run: Run) -> None:
        """Check the scenario of one run."""
        try:
            self.scenario(run).validate()
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
        """Refuse an axis of which two values make the same scenario."""
        axis, values = self.axes[number], self.values(0)
        one, other = (
            Run(0, (*values[:number], value, *values[number + 1 :]), self.controllers[0], 1)
            for value in axis.examples
        )
        if one != other and self.scenario(one).to_dict() == self.scenario(other).to_dict():
            ends = " and ".join(str(axis.column(value)) for value in axis.examples)
            raise PlanError(
                f"{self.origin}: axes.{axis.name}: {ends} make the same scenario: they are equal, "
                "or `controllers` or another axis replaces the value"
            )

    @property
    def identity(self) -> dict[str, str]:
        """Hashes of the keys in which all runs of a data set agree."""
        base = self.base.to_dict() if isinstance(self.base, Scenario) else self.base
        axes = [(axis.name, axis.values, str(axis.sampled)) for axis in self.axes]
        parts = {
            "base": base,
            "axes": [axes, self.latin],
            "reference": self.reference is not None,
            "keep": sorted(self.keep),
        }
        return {
            name: digest(json.dumps(part, sort_keys=True, default=str))
            for name, part in parts.items()
        }

    @cached_property
    def _listed(self) -> list[Axis]:
        return [axis for axis in self.axes if axis.sampled is None]

    @cached_property
    def _sampled(self) -> list[Axis]:
        return [axis for axis in self.axes if axis.sampled is not None]


def read_plan(source: PlanLike) -> Plan:
    """Read and check the plan of a sweep.

    Parameters
    ----------
    source
        The path of a TOML file, or its keys as plain data, in which controllers may be Python
        objects. docs/sweep.md describes the keys.

    Raises
    ------
    PlanError
        The plan makes no sense; the message names the file and the key.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> plan = read_plan({
    ...     "base": {"time": "10s"}, "axes": {"rate": ["1mbit", "10mbit"]},
    ...     "controllers": ["reno", "simd"], "seeds": 5,
    ... })
    >>> print(plan)
    20 runs: 2 points × 2 controllers × 5 seeds
    """
    if isinstance(source, Plan):
        return source
    if isinstance(source, Mapping):
        text, home, origin = None, Path(), "plan"
        document = _plain(source)
    else:
        home, origin = Path(source).parent, str(source)
        text, document = _load(Path(source))
    try:
        plan = _Reader(document, home).read(origin, text)
    except ValueError as mistake:
        if isinstance(mistake, _native.ScenarioError):
            raise
        raise PlanError(f"{origin}: {mistake}") from None
    plan.check()
    return plan


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return nested Python data as TOML has it: without None, tuples, paths and NumPy's types."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def _load(path: Path) -> tuple[str, dict[str, Any]]:
    """Read a TOML file: its text, and what it says."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except UnicodeDecodeError:
        raise PlanError(f"{path}: not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as mistake:
        raise PlanError(f"{path}: {mistake}") from None


class _Reader:
    """The keys of a plan; mistakes are PlanErrors that begin with the key."""

    def __init__(self, document: dict[str, Any], home: Path) -> None:
        self._document, self._home = document, home
        self._factories: dict[str, Factory] = {}

    def read(self, origin: str, text: str | None) -> Plan:
        """Read all keys."""
        for key in self._document:
            if key not in _KEYS:
                raise PlanError(f"{key}: unknown key; a plan has {', '.join(_KEYS)}")
        base = self._base()
        of_base = [*self._factories]
        axes = self._axes(isinstance(base, Scenario))
        controllers = self._controllers(isinstance(base, Scenario))
        reference = self._reference(controllers)
        always = {*of_base, reference or ""}
        plan = Plan(
            origin=origin,
            text=self._text(controllers, reference) if text is None else text,
            base=Scenario(base.to_dict(), self._factories) if isinstance(base, Scenario) else base,
            axes=axes,
            latin=self._latin(axes),
            controllers=controllers,
            reference=reference,
            seeds=self._seeds(),
            keep=self._keep(),
            factories=self._factories,
            codes={
                name: _code([self._factories[one] for one in shared if one in self._factories])
                for name, shared in ((name, {*always, name or ""}) for name in controllers)
            },
        )
        if len(plan) > MOST_RUNS:
            raise PlanError(f"{plan}: a sweep has at most {MOST_RUNS:,} runs")
        return plan

    def _base(self) -> Scenario | JsonObject:
        """Read the base."""
        base = self._document.get("base", {})
        if isinstance(base, str):
            return self._scenario(self._home / base)
        if not isinstance(base, dict):
            raise PlanError("base: is the path of a scenario file, or a table")
        for key in base:
            if key not in DUMBBELL:
                raise PlanError(f"base.{key}: unknown key; it has {', '.join(DUMBBELL)}")
        return base

    def _scenario(self, path: Path) -> Scenario:
        """Read a scenario file; its Python controllers are called as seen from the plan."""
        try:
            scenario = Scenario.from_toml(path)
        except OSError as problem:
            raise PlanError(f"base: cannot read {path}: {problem.strerror}") from None
        document = scenario.to_dict()
        for name, factory in scenario.controllers.items():
            file, _, law = name.partition(".py:")
            seen = f"{os.path.relpath(file + '.py', self._home)}:{law}"
            self._factories[seen] = factory
            for flow in document["flow"]:
                if flow["controller"] == name:
                    flow["controller"] = seen
        return Scenario(document, self._factories)

    def _axes(self, of_file: bool) -> tuple[Axis, ...]:  # noqa: FBT001
        """Read the axes."""
        from cwnd.sweeps.dataset import FIXED

        axes = []
        keys = json.loads(_native.schema())["properties"]
        for name, given in self._table("axes").items():
            if name in FIXED:
                instead = ": use `seeds`" if name == "seed" else ""
                raise PlanError(f"axes.{name}: a column of the data set has this name{instead}")
            if not of_file and "." not in name and name not in {*DUMBBELL, *keys}:
                raise PlanError(
                    f"axes.{name}: not a key of [base] ({', '.join(DUMBBELL)}) "
                    'nor a path such as "tcp.ecn"'
                )
            try:
                axis = read_axis(name, given)
            except ValueError as mistake:
                raise PlanError(f"axes.{name}: {mistake}") from None
            if any(isinstance(value, str) and ".py:" in value for value in axis.values):
                raise PlanError(f"axes.{name}: Python files belong into `controllers`")
            axes.append(axis)
        return tuple(axes)

    def _latin(self, axes: tuple[Axis, ...]) -> tuple[int, int]:
        """Read the number and the seed of the sampled points."""
        sampled = [axis.name for axis in axes if axis.sampled is not None]
        table = self._table("latin")
        for key in table:
            if key not in ("points", "seed"):
                raise PlanError(f"latin.{key}: unknown key; it has points, seed")
        if sampled and not table:
            raise PlanError(
                f"axes.{sampled[0]}: a range needs 'step' or 'count', or [latin] to be sampled"
            )
        if not table:
            return 1, 1
        if not sampled:
            raise PlanError("latin: no axis is a range without 'step' and 'count'")
        points = _whole("latin.points", table.get("points"), 1, MOST_RUNS)
        return points, _whole("latin.seed", table.get("seed", 1), 0, LARGEST_SEED)

    def _controllers(self, of_file: bool) -> tuple[str | None, ...]:  # noqa: FBT001
        """Read the controllers."""
        given = self._document.get("controllers")
        if given is None and of_file:
            return (None,)
        if not isinstance(given, list) or not given:
            needed = "" if of_file else "; a [base] table needs one"
            raise PlanError(f"controllers: is a list of at least one controller{needed}")
        names = [self._controller("controllers", spec) for spec in given]
        for name in names:
            if names.count(name) > 1:
                raise PlanError(f"controllers: {name} is listed twice")
        return tuple(names)

    def _reference(self, controllers: tuple[str | None, ...]) -> str | None:
        """Read the reference."""
        given = self._document.get("reference")
        if given is None:
            return None
        if controllers == (None,):
            raise PlanError("reference: needs `controllers`")
        return self._controller("reference", given)

    def _controller(self, key: str, spec: Spec) -> str:
        """Read a controller; one of a file is called as in the plan."""
        try:
            if not isinstance(spec, str):
                name, factory = read_controller(spec)
            elif ".py:" in spec:
                name = spec.strip()
                factory = read_controller(move_specification(spec, self._home))[1]
            else:
                name, factory = read_controller(spec)
        except (ValueError, TypeError) as mistake:
            raise PlanError(f"{key}: {mistake}") from None
        if factory is not None and self._factories.setdefault(name, factory) != factory:
            raise PlanError(f"{key}: two different classes are called {name}")
        return name

    def _seeds(self) -> Sequence[int]:
        """Read the seeds."""
        given = self._document.get("seeds", 1)
        if isinstance(given, list):
            if not given:
                raise PlanError("seeds: the list is empty")
            seeds = [_whole("seeds", seed, 0, LARGEST_SEED) for seed in given]
            if len(set(seeds)) < len(seeds):
                raise PlanError("seeds: a seed is listed twice")
            return seeds
        return range(1, _whole("seeds", given, 1, MOST_RUNS) + 1)

    def _keep(self) -> tuple[str, ...]:
        """Read the tables to write."""
        given = self._document.get("keep", [])
        if not isinstance(given, list) or not all(table in TABLES for table in given):
            raise PlanError(f"keep: is a list of {', '.join(TABLES)}")
        return tuple(table for table in TABLES if table in given)

    def _table(self, key: str) -> dict[str, Any]:
        """Return a table of the plan, which may be missing."""
        table = self._document.get(key, {})
        if not isinstance(table, dict):
            raise PlanError(f"{key}: is a table: [{key}]")
        return table

    def _text(self, controllers: tuple[str | None, ...], reference: str | None) -> str:
        """Write the plan as TOML."""
        import tomli_w

        document = dict(self._document)
        if controllers != (None,):
            document["controllers"] = list(controllers)
        if reference is not None:
            document["reference"] = reference
        return tomli_w.dumps(document)


def digest(text: str) -> str:
    """Return a hash of a text, in 32 hexadecimal digits.

    Examples
    --------
    >>> digest("cwnd")[:8]
    '57db16f9'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _dumbbell(arguments: JsonObject) -> Scenario:
    """Make the dumbbell of a ``[base]`` table: by default, the one of `cwnd.compare`."""
    network = dumbbell({**DUMBBELL, **arguments}, {})
    flows, seconds = network.check(network.scenario)
    return network.sampled(1, flows, seconds).scenario


def _whole(key: str, value: object, least: int, most: int) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise PlanError(f"{key}: {value!r} is not a whole number from {least} to {most}")
    return value


def _count(number: int, name: str) -> str:
    """Write a number of things."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


@cache
def _latin(points: int, ranges: int, seed: int) -> npt.NDArray[Any]:
    """Draw the points of a Latin hypercube, once."""
    return latin_points(points, ranges, seed)


def _code(factories: list[Factory]) -> str:
    """Return the version and a hash of the code that makes a run and its figures."""
    hashed = hashlib.sha256(own_code().encode())
    for text in sorted(_source(factory) for factory in factories):
        hashed.update(text.encode())
    return f"{_native.version()}+{hashed.hexdigest()[:16]}"


@cache
def own_code() -> str:
    """Return a hash of the native module and of the modules that make scenarios and figures."""
    from cwnd import metrics, networks, result, scenario, tables, units
    from cwnd.sweeps import axes, work

    hashed = hashlib.sha256()
    figures = (metrics, result, tables, work)
    for module in (_native, *figures, axes, networks, scenario, units, sys.modules[__name__]):
        hashed.update(Path(str(module.__file__)).read_bytes())
    return hashed.hexdigest()[:16]


def _source(factory: Factory) -> str:
    """Return the text of the file that defines a controller, or what is known of it."""
    made = written_class(factory)
    try:
        file = inspect.getsourcefile(made)
        if file is not None and Path(file).is_file():
            return Path(file).read_text(encoding="utf-8")
        return inspect.getsource(made)
    except (OSError, TypeError):
        return repr(made)
