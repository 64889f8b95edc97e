"""Networks with their traffic: read from TOML or built in code."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd.errors import ArgumentError, read_argument
from cwnd.units import parse_time

if TYPE_CHECKING:
    from typing_extensions import Self

    from cwnd.controller import Factory
    from cwnd.records import Compiled, JsonObject
    from cwnd.units import Quantity

_PYTHON = "python:"
"""What a scenario writes before the name of a controller written in Python."""


class Scenario:
    """A network with its traffic.

    The keys are those of a scenario file: docs/scenario.md describes them, and ``cwnd schema``
    prints them as JSON Schema.

    Parameters
    ----------
    document
        The scenario as plain data.

    Examples
    --------
    >>> import cwnd
    >>> scenario = cwnd.Scenario.dumbbell(rate="15mbit", rtt="100ms", time="30s")
    >>> scenario = scenario.add_flow("reno", count=4).add_flow("simd", count=4, start="0s..5s")
    >>> scenario.validate()["flows"]
    8
    """

    def __init__(self, document: JsonObject) -> None:
        self._document = copy.deepcopy(document)
        self._controllers: dict[str, Factory] = {}

    def __repr__(self) -> str:
        return f"<Scenario {self._document.get('name', 'without a name')!r}>"

    @classmethod
    def from_toml(cls, source: str | Path) -> Self:
        """Read a scenario.

        Parameters
        ----------
        source
            A path, or TOML text (which has at least one line break).

        Raises
        ------
        ScenarioError
            The scenario makes no sense; the message names the file, the line and the key.
        OSError
            The file cannot be read.
        """
        if isinstance(source, str) and "\n" in source:
            text, origin = source, "<text>"
        else:
            origin = str(source)
            try:
                text = Path(source).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise _native.ScenarioError(f"{origin}: not a text file in UTF-8") from None
        return cls(json.loads(_native.load(text, origin)))

    @classmethod
    def dumbbell(
        cls,
        *,
        rate: Quantity = "15mbit",
        rtt: Quantity = "100ms",
        queue: str | JsonObject = "red",
        time: Quantity = "120s",
        warmup: Quantity = 0.0,
        access: Quantity = 0.0,
        sample: Quantity = 0.1,
        name: str = "dumbbell",
    ) -> Self:
        """Make a dumbbell: one bottleneck that all flows share, in both directions.

        TCP is as the RFCs have it, with timestamps (RFC 7323).

        Parameters
        ----------
        rate, rtt
            Rate of the bottleneck and round-trip time without queues and access links.
        queue
            ``red`` (SIMD, Table 2), ``red-ecn`` (the same, marking), ``droptail`` (one
            bandwidth-delay product), the size of a DropTail queue (``20p``, ``64kb``,
            ``1.5bdp``), or a table as in a scenario file.
        time, warmup
            Length of the run, and of its beginning that no counter includes.
        access
            One-way delay between a host and the bottleneck; from a range such as ``0ms..2ms``
            each host draws its own.
        sample
            Time between two samples of the series.
        name
            The scenario's name.
        """
        ecn = queue == "red-ecn"
        trip = read_argument("rtt", parse_time, rtt)
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
            "tcp": {"timestamps": True},
        }
        if ecn:
            document["tcp"]["ecn"] = True
        return cls(document)

    def add_flow(self, controller: str | Factory, **keys: object) -> Self:
        """Add flows.

        Parameters
        ----------
        controller
            A specification such as ``simd(beta=1/16)``, or a Python class with ``grow`` and
            ``cut``.
        **keys
            What else a ``[[flow]]`` of a scenario file takes: ``count``, ``start``, ``stop``,
            ``bytes`` and so on.

        Returns
        -------
        Scenario
            The same scenario, so that calls can follow each other.
        """
        name = controller_name(controller)
        if not isinstance(controller, str):
            add_controller(self._controllers, name.removeprefix(_PYTHON), controller)
        self._document.setdefault("flow", []).append({"controller": name, **keys})
        return self

    @property
    def controllers(self) -> dict[str, Factory]:
        """The controllers written in Python, by the name the scenario calls them."""
        return dict(self._controllers)

    @property
    def title(self) -> str:
        """What the scenario is called: its title, or else its name."""
        return str(self._document.get("title") or self._document.get("name", ""))

    @property
    def seed(self) -> int:
        """The seed of a run that is given none."""
        return int(self._document.get("seed", 1))

    def to_dict(self) -> JsonObject:
        """Give the scenario as plain data."""
        return copy.deepcopy(self._document)

    def to_json(self) -> str:
        """Write the scenario as JSON."""
        return json.dumps(self._document)

    def to_toml(self) -> str:
        """Write the scenario as a scenario file."""
        import tomli_w

        return tomli_w.dumps(self._document)

    def validate(self) -> Compiled:
        """Check that the scenario can run.

        Returns
        -------
        dict
            The number of ``flows``, the names of the ``links`` and ``duration_s``.

        Raises
        ------
        ScenarioError
            It cannot; the message names the key.
        """
        return _native.validate(self.to_json(), self.seed)


def controller_name(controller: str | Factory) -> str:
    """Give the name under which a scenario knows a controller.

    Parameters
    ----------
    controller
        A specification, or what makes a controller in Python.

    Returns
    -------
    str
        The canonical specification, or ``python:`` and the name of the class.
    """
    if isinstance(controller, str):
        return _native.canonical(controller)
    name = getattr(controller, "__name__", "")
    if not callable(controller) or not name.isidentifier():
        raise TypeError(f"{controller!r} is neither a specification nor a class with grow and cut")
    return _PYTHON + name


def add_controller(known: dict[str, Factory], name: str, factory: Factory) -> None:
    """Note a controller written in Python under its name.

    Parameters
    ----------
    known
        Where to note it.
    name
        The name that scenarios use.
    factory
        What makes it.

    Raises
    ------
    ArgumentError
        Another one has that name.
    """
    if known.setdefault(name, factory) is not factory:
        raise ArgumentError("controllers", f"two different classes are called {name}")
