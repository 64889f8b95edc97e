"""Networks with their traffic: read from TOML or built in code."""

from __future__ import annotations

import json
import pickle
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import _native, _show
from cwnd._base.files import read_text
from cwnd._base.law_files import known_laws, path_of_law, use_law
from cwnd._runs.conventions import read_conventions
from cwnd._runs.defaults import DUMBBELL
from cwnd._runs.packaged import locate
from cwnd.controller import (
    add_controller,
    from_path,
    move_specification,
    read_controller,
)
from cwnd.errors import ArgumentError, read_argument
from cwnd.units import check_unit, parse_time, scenario_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from typing_extensions import Self

    from cwnd._base.records import Compiled, JsonObject
    from cwnd.controller import Factory, Spec
    from cwnd.units import Kind, Quantity


_UNITS: dict[str, Kind] = {
    "rate": "rate",
    "rtt": "time",
    "queue": "limit",
    "time": "time",
    "warmup": "time",
    "access": "time",
    "sample": "time",
}
"""Arguments of a dumbbell that have a unit."""


class Scenario:
    """A network with its traffic.

    The keys are those of a scenario file: docs/scenario.md describes them, and ``cwnd schema``
    prints them as JSON Schema.

    Parameters
    ----------
    document
        The scenario as plain data.
    controllers
        Factories of controllers written in Python, by their names in the document, ``python:NAME``.
    laws
        Texts of laws in files, by their names in the document; others are read from their files.

    Examples
    --------
    >>> import cwnd
    >>> scenario = cwnd.Scenario.dumbbell(rate="15mbit", rtt="100ms", time="30s")
    >>> scenario = scenario.add_flow("reno", count=4).add_flow("simd", count=4, start="0s..5s")
    >>> scenario.validate()["flows"]
    8
    """

    def __init__(
        self,
        document: JsonObject,
        controllers: Mapping[str, Factory] | None = None,
        laws: Mapping[str, str] | None = None,
    ) -> None:
        self._controllers: dict[str, Factory] = dict(controllers or {})
        self._laws: dict[str, str] = dict(laws or {})
        flows = document.get("flow")
        if isinstance(flows, list):
            document = {**document, "flow": [self._named(flow) for flow in flows]}
        self._document = _copy(document)

    def __repr__(self) -> str:
        flows = ", ".join(
            f"{flow.get('count', 1)} {flow.get('controller', '?')}" for flow in self._flows
        )
        return f"<Scenario {self._document.get('name', 'without a name')!r}: {flows or 'no flows'}>"

    def _repr_html_(self) -> str | None:
        return _show.notebook.scenario_html(self)

    def summary(self) -> pd.DataFrame:
        """Return the groups of flows, one row each, with the keys that are set."""
        return _show.notebook.summarize_scenario(self)

    @classmethod
    def from_toml(cls, source: str | Path) -> Self:
        """Read a scenario.

        Parameters
        ----------
        source
            A path, the name of a packaged scenario such as ``wireless`` where no file has this name
            (``cwnd scenarios`` lists them), or TOML text, which must contain a line break.

        Raises
        ------
        ScenarioError
            The scenario is invalid, or a file that it names cannot be read; the message names the
            file, the line and the key.
        OSError
            The file cannot be read.
        """
        if isinstance(source, str) and "\n" in source:
            return cls(_parse(source, "<text>", Path()))
        path = locate(Path(source), "scenarios")
        return cls(_parse(read_file(path), str(path), path.parent))

    @classmethod
    def dumbbell(  # noqa: PLR0913
        cls,
        *,
        rate: str = DUMBBELL["rate"],
        rtt: str = DUMBBELL["rtt"],
        queue: str | JsonObject = DUMBBELL["queue"],
        time: str = DUMBBELL["time"],
        warmup: str = "0s",
        access: str = "0s",
        sample: str = "100ms",
        conventions: str = DUMBBELL["conventions"],
        name: str = "dumbbell",
    ) -> Self:
        """Create a dumbbell: one bottleneck shared by all flows, in both directions.

        TCP has timestamps (RFC 7323).

        Parameters
        ----------
        rate, rtt
            Rate of the bottleneck and round-trip time without queues and access links.
        queue
            ``red`` (SIMD, Table 2), ``red-ecn`` (the same, marking), ``droptail`` (one
            bandwidth-delay product), the size of a DropTail queue (``20p``, ``64kb``,
            ``1.5bdp``), or a table as in a scenario file.
        time, warmup
            Length of the run and of its warm-up, which counters exclude.
        access
            One-way delay between a host and the bottleneck; with a range such as ``0ms..2ms``
            each host draws its own.
        sample
            Sampling period of the series.
        conventions
            Conventions of TCP: ``linux``, ``rfc``, ``rfc5681``, ``ns2`` or ``ns2-2001``.
        name
            The scenario's name.
        """
        given = {"rate": rate, "rtt": rtt, "queue": queue, "time": time, "warmup": warmup}
        check_units({**given, "access": access, "sample": sample})
        return cls(
            dumbbell_document(
                rate=rate,
                trip=read_argument("rtt", parse_time, rtt),
                queue=queue,
                time=time,
                warmup=warmup,
                access=access,
                sample=sample,
                conventions=read_argument("conventions", read_conventions, conventions),
                name=name,
            )
        )

    def add_flow(self, controller: Spec, **keys: object) -> Self:
        """Add flows.

        Parameters
        ----------
        controller
            A specification such as ``simd(beta=1/16)``, ``mine.law`` or ``mine.py:Law(beta=1/8)``,
            the path of such a file, a Python class with ``grow`` and ``cut``, a
            ``functools.partial`` of one, or an instance, which is copied for each flow.
        **keys
            Other keys of a ``[[flow]]`` table: ``count``, ``start``, ``stop``, ``bytes`` and so on.

        Returns
        -------
        Scenario
            This scenario, so that calls can be chained.
        """
        name = self._name(controller)
        self._document.setdefault("flow", []).append({"controller": name, **keys})
        return self

    def with_values(self, values: Mapping[str, object]) -> Self:
        """Return a copy of the scenario with some values replaced.

        Parameters
        ----------
        values
            Values by path, such as ``dumbbell.rate``, ``flow[0].count`` or
            ``link[2].queue.limit``. Missing tables are added; missing list items are not.

        Returns
        -------
        Scenario
            A copy.

        Raises
        ------
        ArgumentError
            A path does not fit the scenario.

        Examples
        --------
        >>> import cwnd
        >>> scenario = cwnd.Scenario.dumbbell().with_values({"dumbbell.rate": "20mbit"})
        >>> scenario.to_dict()["dumbbell"]["rate"]
        '20mbit'
        """
        document = self.to_dict()
        for path, value in values.items():
            _replace(document, path, value)
        return type(self)(document, self._controllers, self._laws)

    def with_controllers(
        self, controller: Spec, other: Spec | None = None, *, turn: int = 0
    ) -> Self:
        """Return a copy of the scenario with other controllers for its measured TCP and UDT flows.

        Parameters
        ----------
        controller
            The controller of these flows.
        other
            The controller of every second one of these flows. Of transfers that arrive
            (``arrivals``), each has either controller with the same probability.
        turn
            Controller of the first flow: 0 for ``controller``, 1 for ``other``. A run with each
            value balances paths that differ.

        Returns
        -------
        Scenario
            A copy. Flows of ``controller`` precede those of ``other``.

        Raises
        ------
        ArgumentError
            The scenario has no such flow, or only one for two controllers.
        """
        document = self.to_dict()
        groups = document.get("flow", [])
        measured = [flow for flow in groups if flow.get("measured", True)]
        # Transfers that arrive are several flows.
        count = sum(2 if "arrivals" in flow else flow.get("count", 1) for flow in measured)
        if count < (1 if other is None else 2):
            least = "a measured flow" if other is None else "two measured flows"
            raise ArgumentError("controllers", f"{self.title} does not have {least}")
        made = type(self)(
            {**document, "flow": [flow for flow in groups if flow not in measured]},
            self._controllers,
            self._laws,
        )
        specs = [controller] if other is None else [controller, other]
        halves: list[list[JsonObject]] = [[] for _ in specs]
        for flow in measured:
            for half, keys in zip(halves, _share(flow, len(specs), turn), strict=True):
                half.append(keys)
            turn += 0 if "arrivals" in flow else flow.get("count", 1)
        for spec, half in zip(specs, halves, strict=True):
            for keys in half:
                if keys["count"] > 0:
                    made.add_flow(spec, **{key: keys[key] for key in keys if key != "controller"})
        return made

    def _named(self, flow: Any) -> Any:  # noqa: ANN401
        """Return a group of flows whose controller, if it is written in Python, has a name."""
        controller: Any = flow.get("controller") if isinstance(flow, dict) else None
        law = path_of_law(controller) if isinstance(controller, str) else None
        if law is not None and law not in self._laws:
            self._laws[law] = use_law(law)
        plain = controller is None or isinstance(controller, int | float | list | dict)
        known = isinstance(controller, str) and (
            ":" not in controller or controller.startswith(("kernel:", "python:"))
        )
        if plain or known or law is not None:
            return flow
        return {**flow, "controller": self._name(controller)}

    def _name(self, controller: Spec) -> str:
        """Return the name of a controller; a controller written in Python is registered."""
        controller = from_path(controller)
        if isinstance(controller, str) and controller in self._controllers:
            return controller
        law = path_of_law(controller) if isinstance(controller, str) else None
        if law is not None:
            self._laws[law] = use_law(law)
        name, factory = read_controller(controller)
        if factory is not None:
            add_controller(self._controllers, name, factory)
        return name

    @property
    def _flows(self) -> list[JsonObject]:
        """Groups of flows that are tables; `validate` rejects others."""
        groups = self._document.get("flow")
        return (
            [flow for flow in groups if isinstance(flow, dict)] if isinstance(groups, list) else []
        )

    @property
    def controllers(self) -> dict[str, Factory]:
        """Factories of controllers written in Python, by their names in the scenario."""
        return dict(self._controllers)

    @property
    def laws(self) -> dict[str, str]:
        """Texts of the laws in files, by their names in the scenario."""
        return dict(self._laws)

    @property
    def title(self) -> str:
        """Title of the scenario, or else its name."""
        return str(self._document.get("title") or self._document.get("name", ""))

    @property
    def seed(self) -> int:
        """Default seed of a run."""
        seed = self._document.get("seed")
        # `validate` rejects an invalid seed.
        return seed if isinstance(seed, int) and 0 <= seed < 2**64 else 1

    @property
    def document(self) -> Mapping[str, object]:
        """The scenario as plain data, to read only: `to_dict` returns a copy."""
        return self._document

    def to_dict(self) -> JsonObject:
        """Return the scenario as plain data."""
        return _copy(self._document)

    def to_json(self) -> str:
        """Return the scenario as JSON text."""
        try:
            return json.dumps(self._document, default=_refuse, allow_nan=False)
        except _native.ScenarioError:
            raise
        except ValueError:
            raise _native.ScenarioError("a scenario cannot contain infinity or NaN") from None

    def to_toml(self) -> str:
        """Return the scenario as the text of a scenario file."""
        import tomli_w

        return tomli_w.dumps(self._document)

    def validate(self) -> Compiled:
        """Check that the scenario can run.

        Returns
        -------
        dict
            The number of ``flows``, the names of the ``links``, ``duration_s``, and the
            ``conventions`` of the TCP flows.

        Raises
        ------
        ScenarioError
            The scenario is invalid; the message names the key.
        """
        with known_laws(self._laws):
            return _native.validate(self.to_json(), self.seed)


def check_units(arguments: Mapping[str, object]) -> None:
    """Raise an ArgumentError for an argument of a dumbbell without its unit; see `check_unit`."""
    for name, value in arguments.items():
        if name in _UNITS:
            read_argument(name, partial(check_unit, _UNITS[name]), value)


def dumbbell_document(  # noqa: PLR0913
    *,
    rate: Quantity,
    trip: float,
    queue: str | JsonObject,
    time: Quantity,
    warmup: Quantity,
    access: Quantity,
    sample: Quantity,
    conventions: str,
    name: str = "dumbbell",
) -> JsonObject:
    """Return the document of a dumbbell, as `Scenario.dumbbell`; ``trip`` is in seconds."""
    ecn = queue == "red-ecn"
    document: JsonObject = {
        "name": name,
        "duration": time,
        "warmup": warmup,
        "sample": sample,
        "dumbbell": {
            "rate": rate,
            "delay": trip / 2,
            "queue": {"kind": "red", "ecn": True} if ecn else queue,
            "bdp_rtt": trip,
        },
        "access": {"delay": access},
        "tcp": {"conventions": conventions, "timestamps": True},
    }
    if ecn:
        document["tcp"]["ecn"] = True
    return document


def load(file: Path) -> tuple[Scenario, str, str]:
    """Read a scenario file once: it may be a pipe. Return its path and its text too."""
    path = locate(file, "scenarios")
    text = read_file(path)
    return Scenario(_parse(text, str(path), path.parent)), str(path), text


def _parse(text: str, origin: str, home: Path) -> JsonObject:
    """Read TOML text; controllers are relative to ``home``."""
    document: JsonObject = json.loads(_native.load(text, origin))
    for flow in document.get("flow", []):
        flow["controller"] = move_specification(flow["controller"], home)
    return document


def read_file(path: Path) -> str:
    """Return the text of a scenario file."""
    try:
        return read_text(path)
    except UnicodeDecodeError:
        raise _native.ScenarioError(f"{path}: not a text file in UTF-8") from None


def _copy(document: JsonObject) -> JsonObject:
    """Copy plain data. Pickle is ten times faster than deepcopy, a tenth of a sweep's overhead."""
    copied: JsonObject = pickle.loads(pickle.dumps(document))  # noqa: S301
    return copied


def _refuse(value: object) -> object:
    """Raise an error for a value that no scenario file can have."""
    raise _native.ScenarioError(
        f"{value!r} is neither text, a number, true, false, a list nor a table"
    )


_KEY = re.compile(r"([A-Za-z_]+)((?:\[[0-9]+\])*)")
"""A key of a path, with indices of list items."""


def value_at(document: JsonObject, path: str) -> object:
    """Return the value at a path of a scenario, which exists."""
    place: Any = document
    for key in _keys(path):
        place = place[key]
    return place


def _keys(path: str) -> list[str | int]:
    """Parse a path."""
    keys: list[str | int] = []
    for part in path.split("."):
        match = _KEY.fullmatch(part)
        if match is None:
            raise ArgumentError(
                "set", f"{path!r} is not a path such as dumbbell.rate or flow[0].count"
            )
        keys += [match[1], *(int(number) for number in re.findall("[0-9]+", match[2]))]
    return keys


def _replace(document: JsonObject, path: str, value: object) -> None:
    """Set the value at a path of a scenario."""
    keys = _keys(path)
    place: Any = document
    for at, key in enumerate(keys):
        so_far = _path(keys[:at]) or "the scenario"
        if isinstance(key, str) and not isinstance(place, dict):
            raise ArgumentError("set", f"{path}: {so_far} is not a table")
        if isinstance(key, int) and not (isinstance(place, list) and key < len(place)):
            count = len(place) if isinstance(place, list) else 0
            raise ArgumentError("set", f"{path}: {so_far} has {count} items, numbered from 0")
        if at == len(keys) - 1:
            place[key] = value
        elif isinstance(key, str):
            empty: object = [] if isinstance(keys[at + 1], int) else {}
            place = place.setdefault(key, empty)
        else:
            place = place[key]


def _path(keys: Sequence[str | int]) -> str:
    """Format a list of keys as a path."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")


def _share(flow: JsonObject, parts: int, turn: int) -> list[JsonObject]:
    """Divide a group's flows among ``parts`` controllers, which alternate, starting at ``turn``."""
    if parts > 1 and "arrivals" in flow:
        return [_thinned(flow, parts, part) for part in range(parts)]
    count, shared = flow.get("count", 1), []
    for part in range(parts):
        first = (part - turn) % parts
        keys = {**flow, "count": -((first - count) // parts)}
        if parts > 1 and "stagger" in flow:
            step = scenario_time(flow["stagger"])
            keys["stagger"] = parts * step
            keys["start"] = _later(flow.get("start", 0), first * step)
        if "name" in flow and count > 1 and parts > 1:
            keys["name"] = f"{flow['name']}-{'ab'[part]}"
        shared.append(keys)
    return shared


def _thinned(flow: JsonObject, parts: int, part: int) -> JsonObject:
    """Return one of ``parts`` equal parts of a group of arrivals.

    The parts of a Poisson process of which each arrival is drawn independently are Poisson
    processes.
    """
    arrivals = dict(flow["arrivals"])
    for key in ("rate", "load"):
        if isinstance(arrivals.get(key), int | float):
            arrivals[key] /= parts
    keys = {"count": 1, **flow, "arrivals": arrivals}
    if "name" in flow:
        keys["name"] = f"{flow['name']}-{'ab'[part]}"
    return keys


def _later(start: Quantity, delay: float) -> str:
    """Add a delay to a time or to both ends of a range of times."""
    ends = [start] if isinstance(start, int | float) else start.split("..")
    return "..".join(f"{scenario_time(end) + delay:.9f}s" for end in ends)
