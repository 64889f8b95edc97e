"""Parser of a sweep's plan."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cwnd import _native
from cwnd._base.files import read_text
from cwnd._base.law_files import known_laws, listed_twice, path_of_law, use_law
from cwnd._runs.defaults import DUMBBELL
from cwnd._runs.packaged import locate
from cwnd._runs.real_time import BACKENDS
from cwnd._runs.run import MAX_SEED
from cwnd._runs.scenario import Scenario, check_units, value_at
from cwnd._runs.scenario_keys import check_values, schema
from cwnd._sweeps.axes import QUANTITY, Axis, read_axis
from cwnd._sweeps.code import code_hash
from cwnd._sweeps.dataset import FIXED
from cwnd._sweeps.manifest import TABLES
from cwnd._sweeps.plan import Plan, Run
from cwnd.controller import from_path, move_specification, names_python, read_controller
from cwnd.errors import ArgumentError, PlanError
from cwnd.units import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd._base.records import JsonObject
    from cwnd.controller import Factory, Spec

PlanLike: TypeAlias = "str | Path | Mapping[str, Any] | Plan"
"""The path of a plan, the name of a packaged one, or its keys as plain data."""

MAX_RUNS = 10_000_000
"""Largest number of runs of one sweep."""

TIME_LIMIT = "1h"
"""Default wall time of a simulated run."""

_KEYS = (
    *("base", "axes", "latin", "controllers", "reference", "repeat", "seeds", "keep"),
    *("measures", "on", "time_limit"),
)


def read_plan(source: PlanLike) -> Plan:
    """Read and validate the plan of a sweep; a PlanError names the file and the key.

    ``source`` is the path of a TOML file, the name of a packaged plan, or the contents as plain
    data; there, controllers may be Python objects. docs/sweep.md describes the keys.

    Examples
    --------
    >>> plan = read_plan({
    ...     "base": {"time": "10s"}, "axes": {"rate": ["1mbit", "10mbit"]},
    ...     "controllers": ["reno", "simd"], "repeat": 5,
    ... })
    >>> print(plan)
    20 runs: 2 points × 2 controllers × 5 seeds
    """
    if isinstance(source, Plan):
        return source
    if isinstance(source, Mapping):
        text, home, origin = None, Path(), "plan"
        document = _plain(source)
        _check_units(document)
    else:
        path = locate(Path(source), "plans")
        home, origin = path.parent, str(path)
        text, document = _load(path)
    try:
        plan = _Reader(document, home).read(origin, text)
    except ValueError as mistake:
        if isinstance(mistake, _native.ScenarioError):
            raise
        raise PlanError(f"{origin}: {mistake}") from None
    plan.check()
    return plan


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value that are not quantities."""
    if isinstance(value, str):
        if QUANTITY.fullmatch(value) is None:
            yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Convert nested Python data to TOML types: no None, tuples, paths or NumPy types."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def _check_units(document: dict[str, Any]) -> None:
    """Reject numbers without a unit in a plan in Python, as `cwnd.compare` does.

    A plan in a file, and the keys of a scenario, may have them.
    """
    base, axes = document.get("base"), document.get("axes")
    try:
        if isinstance(base, dict) and "duration" not in base:
            check_units(base)
        for name, given in axes.items() if isinstance(axes, dict) else ():
            if not isinstance(given, dict | list):
                continue
            values = [given.get("from")] if isinstance(given, dict) else given
            numbers = (value for value in values if isinstance(value, int | float) and value)
            for value in islice(numbers, 1):
                check_units({name: value})
                check_values({name: value}, "axes")
    except ArgumentError as mistake:
        raise PlanError(f"plan: {mistake}") from None


def _load(path: Path) -> tuple[str, dict[str, Any]]:
    """Read a TOML file; return its text and its contents."""
    from cwnd._base import toml as tomllib

    try:
        text = read_text(path)
        return text, tomllib.loads(text)
    except UnicodeDecodeError:
        raise PlanError(f"{path}: not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as mistake:
        raise PlanError(f"{path}: {mistake}") from None


class _Reader:
    """Parser of a plan's keys; errors are PlanErrors that begin with the key."""

    def __init__(self, document: dict[str, Any], home: Path) -> None:
        self._document, self._home = document, home
        self._factories: dict[str, Factory] = {}
        self._laws: dict[str, str] = {}

    def read(self, origin: str, text: str | None) -> Plan:
        """Parse all keys."""
        for key in self._document:
            if key not in _KEYS:
                raise PlanError(f"{key}: unknown key; the keys of a plan are {', '.join(_KEYS)}")
        base = self._base()
        of_base = [*self._factories]
        axes = self._axes(isinstance(base, Scenario))
        controllers = self._controllers(isinstance(base, Scenario))
        reference = self._reference(controllers)
        always = {*of_base, reference or ""}
        in_base = set(base.laws) if isinstance(base, Scenario) else set()
        plan = Plan(
            origin=origin,
            text=self._text(controllers, reference) if text is None else text,
            base=(
                Scenario(base.to_dict(), self._factories, self._laws)
                if isinstance(base, Scenario)
                else base
            ),
            axes=axes,
            latin=self._latin(axes),
            controllers=controllers,
            reference=reference,
            seeds=self._seeds(),
            keep=self._keep(),
            measures=self._measures({axis.name for axis in axes}),
            on=self._on(),
            time_limit=self._time_limit(),
            factories=self._factories,
            laws=self._laws,
            codes={
                name: code_hash(
                    [self._factories[one] for one in shared if one in self._factories],
                    {
                        law: text
                        for law, text in self._laws.items()
                        if law in in_base or law in map(path_of_law, shared)
                    },
                    self._on(),
                )
                for name, shared in ((name, {*always, name or ""}) for name in controllers)
            },
        )
        if len(plan) > MAX_RUNS:
            raise PlanError(f"{plan}: a sweep can have at most {MAX_RUNS:,} runs")
        axes = tuple(self._with_contents(plan, number) for number in range(len(axes)))
        return replace(plan, axes=axes)

    def _with_contents(self, plan: Plan, number: int) -> Axis:
        """Return an axis with the contents of the files that its values name."""
        axis, first, contents = plan.axes[number], plan.values(0), {}
        for value in axis.values:
            texts = set(_texts(value))
            if not texts:
                continue
            values = (*first[:number], value, *first[number + 1 :])
            run = Run(0, values, plan.controllers[0], plan.seeds[0])
            try:
                text, names = _native.resolve(plan.scenario(run).to_json(), str(self._home))
            except FileNotFoundError as problem:
                raise PlanError(f"axes: {problem}") from None
            except (ValueError, TypeError):
                # The check of the plan or a run reports it.
                continue
            if texts.intersection(names):
                contents[axis.column(value)] = value_at(json.loads(text), axis.name)
        return replace(axis, contents=contents)

    def _base(self) -> Scenario | JsonObject:
        """Parse the base."""
        base = self._document.get("base", {})
        if isinstance(base, str):
            return self._scenario(Path(base))
        if not isinstance(base, dict):
            raise PlanError("base: must be the path of a scenario file, or a table")
        if "duration" in base:
            flows = base.get("flow")
            for flow in flows if isinstance(flows, list) else ():
                self._read_law(flow.get("controller") if isinstance(flow, dict) else None)
            return self._with_files(Scenario(base, laws=self._laws))
        for key in base:
            if key not in DUMBBELL:
                raise PlanError(f"base.{key}: unknown key; the keys are {', '.join(DUMBBELL)}")
        return base

    def _with_files(self, scenario: Scenario) -> Scenario:
        """Return a scenario with the contents of the files that it names."""
        try:
            text, names = _native.resolve(scenario.to_json(), str(self._home))
        except FileNotFoundError as problem:
            raise PlanError(f"base: {problem}") from None
        return (
            Scenario(json.loads(text), scenario.controllers, scenario.laws) if names else scenario
        )

    def _scenario(self, path: Path) -> Scenario:
        """Read a scenario file; paths of Python controllers become relative to the plan."""
        try:
            scenario = Scenario.from_toml(locate(path, "scenarios", self._home))
        except OSError as problem:
            raise PlanError(f"base: cannot read {path}: {problem.strerror}") from None
        document = scenario.to_dict()
        for flow in document["flow"]:
            if (law := path_of_law(flow["controller"])) is not None:
                seen = Path(os.path.relpath(law, self._home)).as_posix()
                self._laws[seen] = scenario.laws[law]
                flow["controller"] = seen + flow["controller"].strip().removeprefix(law)
        for name, factory in scenario.controllers.items():
            file, in_file, law = name.partition(".py:")
            here = Path(os.path.relpath(f"{file}.py", self._home)).as_posix()
            seen = f"{here}:{law}" if in_file else name
            self._factories[seen] = factory
            for flow in document["flow"]:
                if flow["controller"] == name:
                    flow["controller"] = seen
        return Scenario(document, self._factories, self._laws)

    def _read_law(self, spec: object) -> bool:
        """Read the law that a specification names, if it names one, beside the plan."""
        law = path_of_law(spec) if isinstance(spec, str) else None
        if law is not None:
            self._laws[law] = use_law(law, self._home / law)
        return law is not None

    def _axes(self, of_file: bool) -> tuple[Axis, ...]:  # noqa: FBT001
        """Parse the axes."""
        axes = []
        keys = schema()["properties"]
        for name, given in self._table("axes").items():
            if name in FIXED:
                instead = ": use `repeat` or `seeds`" if name == "seed" else ""
                raise PlanError(f"axes.{name}: the data set has a column of this name{instead}")
            if not of_file and "." not in name and name not in {*DUMBBELL, *keys}:
                raise PlanError(
                    f"axes.{name}: not a key of [base] ({', '.join(DUMBBELL)}) "
                    'nor a path such as "tcp.ecn"'
                )
            try:
                axis = read_axis(name, given)
            except ValueError as mistake:
                raise PlanError(f"axes.{name}: {mistake}") from None
            texts = [text for value in axis.values for text in _texts(value)]
            if any(names_python(text) or path_of_law(text) for text in texts):
                raise PlanError(f"axes.{name}: a controller in a file must be in `controllers`")
            axes.append(axis)
        return tuple(axes)

    def _latin(self, axes: tuple[Axis, ...]) -> tuple[int, int]:
        """Parse the number and the seed of the sampled points."""
        sampled = [axis.name for axis in axes if axis.sampled is not None]
        table = self._table("latin")
        for key in table:
            if key not in ("points", "seed"):
                raise PlanError(f"latin.{key}: unknown key; the keys are points, seed")
        if sampled and not table:
            raise PlanError(
                f"axes.{sampled[0]}: a range needs 'step' or 'count', or [latin] to be sampled"
            )
        if not table:
            return 1, 1
        if not sampled:
            raise PlanError("latin: no axis is a range without 'step' and 'count'")
        points = _whole("latin.points", table.get("points"), 1, MAX_RUNS)
        return points, _whole("latin.seed", table.get("seed", 1), 0, MAX_SEED)

    def _controllers(self, of_file: bool) -> tuple[str | None, ...]:  # noqa: FBT001
        """Parse the controllers."""
        given = self._document.get("controllers")
        if given is None and of_file:
            return (None,)
        if not isinstance(given, list) or not given:
            needed = "" if of_file else "; a [base] table needs one"
            raise PlanError(f"controllers: must be a list of at least one controller{needed}")
        names = [self._controller("controllers", spec) for spec in given]
        if (name := listed_twice(names, self._home)) is not None:
            raise PlanError(f"controllers: {name} is listed twice")
        return tuple(names)

    def _reference(self, controllers: tuple[str | None, ...]) -> str | None:
        """Parse the reference."""
        given = self._document.get("reference")
        if given is None:
            return None
        if controllers == (None,):
            raise PlanError("reference: needs `controllers`")
        return self._controller("reference", given)

    def _controller(self, key: str, spec: Spec) -> str:
        """Parse a controller; one in a file keeps its name from the plan."""
        try:
            spec = from_path(spec)
            if not isinstance(spec, str):
                name, factory = read_controller(spec)
            elif ".py:" in spec:
                name = spec.strip()
                factory = read_controller(move_specification(spec, self._home))[1]
            elif self._read_law(spec):
                with known_laws(self._laws):
                    name, factory = _native.canonical(spec), None
            else:
                name, factory = read_controller(spec)
        except (ValueError, TypeError) as mistake:
            raise PlanError(f"{key}: {mistake}") from None
        if factory is not None and self._factories.setdefault(name, factory) != factory:
            raise PlanError(f"{key}: two different classes are named {name}")
        return name

    def _seeds(self) -> Sequence[int]:
        """Parse the seeds: those listed, or 1 to their number."""
        repeat, given = self._document.get("repeat", 1), self._document.get("seeds")
        if given is None:
            return range(1, _whole("repeat", repeat, 1, MAX_RUNS) + 1)
        if not isinstance(given, list):
            number = given if isinstance(given, int) and not isinstance(given, bool) else "N"
            raise PlanError(
                f"seeds: is a list; the number of seeds is now `repeat`: write repeat = {number}"
            )
        if "repeat" in self._document:
            raise PlanError("repeat: the plan has a list of `seeds`: remove one of them")
        if not given:
            raise PlanError("seeds: the list is empty")
        seeds = [_whole("seeds", seed, 0, MAX_SEED) for seed in given]
        if len(set(seeds)) < len(seeds):
            raise PlanError("seeds: a seed is listed twice")
        return seeds

    def _keep(self) -> tuple[str, ...]:
        """Parse the names of the optional tables."""
        given = self._document.get("keep", [])
        if not isinstance(given, list) or not all(table in TABLES for table in given):
            raise PlanError(f"keep: must be a list of {', '.join(TABLES)}")
        return tuple(table for table in TABLES if table in given)

    def _measures(self, axes: set[str]) -> tuple[str, ...]:
        """Parse the names of the further metrics; `Plan.check` reads them."""
        given = self._document.get("measures", [])
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise PlanError('measures: must be a list of metrics such as "goodput.min"')
        for name in given:
            if given.count(name) > 1:
                raise PlanError(f"measures: {name} is listed twice")
            if name in FIXED | axes:
                raise PlanError(f"measures: {name}: the data set has a column of this name")
        return tuple(given)

    def _on(self) -> str:
        """Parse the backend."""
        given = self._document.get("on", "sim")
        if given not in BACKENDS:
            raise PlanError(f"on: {given!r} is not one of {', '.join(BACKENDS)}")
        if given != "sim" and self._factories:
            raise PlanError(f"on: controllers written in Python run on sim only, not on {given}")
        return str(given)

    def _time_limit(self) -> float:
        """Parse the wall time after which a run fails."""
        given = self._document.get("time_limit", TIME_LIMIT)
        try:
            return parse_time(given)
        except TypeError:
            raise PlanError(f"time_limit: {given!r} is neither text nor a number") from None
        except ValueError as mistake:
            raise PlanError(f"time_limit: {mistake}") from None

    def _table(self, key: str) -> dict[str, Any]:
        """Return a table of the plan; empty if missing."""
        table = self._document.get(key, {})
        if not isinstance(table, dict):
            raise PlanError(f"{key}: must be a table: [{key}]")
        return table

    def _text(self, controllers: tuple[str | None, ...], reference: str | None) -> str:
        """Format the plan as TOML."""
        import tomli_w

        document = dict(self._document)
        if controllers != (None,):
            document["controllers"] = list(controllers)
        if reference is not None:
            document["reference"] = reference
        try:
            return tomli_w.dumps(document)
        except TypeError as mistake:
            raise PlanError(
                f"{mistake}; controllers written in Python are for `controllers`"
            ) from None


def _whole(key: str, value: object, least: int, most: int) -> int:
    """Check that a value is a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise PlanError(f"{key}: {value!r} is not a whole number from {least} to {most}")
    return value
