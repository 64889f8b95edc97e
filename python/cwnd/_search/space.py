"""Bounds of a search: a TOML file with the axes of a sweep and conditions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cwnd._base import toml as tomllib
from cwnd._base.files import read_text
from cwnd._runs.defaults import SEARCH_AGAINST
from cwnd._runs.scenario import Scenario
from cwnd._search.networks import PARAMETERS, network
from cwnd._sweeps.axes import Axis, read_axis
from cwnd.errors import ArgumentError, PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from cwnd._base.records import JsonObject

Values: TypeAlias = "tuple[Any, ...]"
"""Value of each parameter, in the order of the space; None for one that is off."""

BoundsLike: TypeAlias = "str | Path | Mapping[str, Any] | None"
"""The path of a file with bounds, or its keys as plain data; None for the packaged bounds."""


@dataclass(frozen=True)
class Parameter:
    """A parameter with its bounds."""

    axis: Axis
    off: float
    """Share of the space in which it is off; 0 if it is always on."""
    when: str | None
    """Name of the parameter without which this one is off."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.axis.name

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest value of a parameter whose values are numbers."""
        span = self.axis.sampled
        if span is not None:
            return span.low, span.high
        try:
            values = [float(value) for value in self.axis.values]
        except (TypeError, ValueError):
            raise PlanError(f"axes.{self.name}: a value is not a number") from None
        return min(values), max(values)

    @property
    def edges(self) -> Sequence[Any]:
        """The ends of a range, or all values of a list."""
        span = self.axis.sampled
        return self.axis.values if span is None else (span.at(0.0), span.at(1.0))

    def at(self, fraction: float) -> Any:  # noqa: ANN401
        """Return the value at a fraction of the bounds: None in the part where it is off.

        Examples
        --------
        >>> jitter = Parameter(read_axis("jitter", {"from": "1ms", "to": "3ms"}), 0.5, None)
        >>> jitter.at(0.2), jitter.at(0.75)
        (None, '2ms')
        """
        if fraction < self.off:
            return None
        inside = (fraction - self.off) / (1 - self.off)
        if self.axis.sampled is not None:
            return self.axis.sampled.at(inside)
        values = self.axis.values
        return values[min(int(inside * len(values)), len(values) - 1)]

    def place(self, value: object) -> float:
        """Return the fraction of the bounds of a value that is on, from 0 to 1."""
        span = self.axis.sampled
        if span is None:
            return self.axis.values.index(value) / max(len(self.axis.values) - 1, 1)
        number = self.number(value)
        if span.log:
            return math.log(number / span.low) / math.log(span.high / span.low)
        return (number - span.low) / (span.high - span.low)

    def number(self, value: object) -> float:
        """Return a value of a range as a number of its unit."""
        assert self.axis.sampled is not None  # noqa: S101
        return float(str(value).removesuffix(self.axis.sampled.unit))

    def bounded(self, number: float, digits: int) -> Any:  # noqa: ANN401
        """Return a number as a value of the range with some digits; the nearer end if outside."""
        span = self.axis.sampled
        assert span is not None  # noqa: S101
        rounded = float(f"{number:.{digits}g}")
        return span.value(min(max(rounded, span.low), span.high), digits)

    def allows(self, value: object) -> bool:
        """Test whether a value of the unit of the bounds is within them."""
        span = self.axis.sampled
        if span is None:
            return value in self.axis.values
        try:
            return span.low <= self.number(value) <= span.high
        except ValueError:
            return False


@dataclass(frozen=True)
class Space:
    """The networks of a search."""

    parameters: tuple[Parameter, ...]
    document: JsonObject
    """The bounds as plain data."""

    @cached_property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return [one.name for one in self.parameters]

    def __getitem__(self, name: str) -> Parameter:
        return self.parameters[self.names.index(name)]

    def values(self, place: npt.ArrayLike) -> Values:
        """Return the values of a point of the unit cube.

        A point outside of the cube is an error: no network outside of the bounds is made.
        """
        import numpy as np

        fractions = np.asarray(place, dtype=float)
        if not ((fractions >= 0) & (fractions <= 1)).all():
            raise ArgumentError("bounds", "a network outside of the bounds")
        found: dict[str, Any] = {}
        for one, fraction in zip(self.parameters, fractions.tolist(), strict=True):
            off = one.when is not None and found[one.when] is None
            found[one.name] = None if off else one.at(fraction)
        return tuple(found.values())

    def named(self, values: Values) -> dict[str, Any]:
        """Return the parameters that are on, by name."""
        pairs = zip(self.names, values, strict=True)
        return {name: value for name, value in pairs if value is not None}

    def with_value(self, values: Values, name: str, value: object) -> Values:
        """Return values with another one; what depends on a parameter that is off is off too."""
        found = dict(zip(self.names, values, strict=True)) | {name: value}
        if value is None:
            for one in self.parameters:
                if one.when == name:
                    found[one.name] = None
        return tuple(found.values())

    def requiring(self, names: Iterable[str], reason: str) -> Space:
        """Return the part of the space in which some parameters are on."""
        for name in names:
            if name not in self.names:
                raise ArgumentError("bounds", f"{reason} needs the parameter `{name}`")
        return replace(
            self,
            parameters=tuple(
                replace(one, off=0.0) if one.name in {*names} else one for one in self.parameters
            ),
        )

    def distance(self, one: Values, other: Values) -> float:
        """Return the largest difference of two networks in a parameter, as part of its bounds.

        It is 1 if a parameter is off in one of them only.
        """
        found = 0.0
        for parameter, a, b in zip(self.parameters, one, other, strict=True):
            if (a is None) != (b is None):
                return 1.0
            if a is not None:
                found = max(found, abs(parameter.place(a) - parameter.place(b)))
        return found


def read_space(source: BoundsLike = None) -> Space:
    """Read bounds; a PlanError names the file and the key.

    Examples
    --------
    >>> space = read_space({"axes": {"rate": {"from": "1mbit", "to": "9mbit"}, "flows": [2, 3]}})
    >>> space.values([0.5, 0.0])
    ('5mbit', 2)
    """
    if isinstance(source, Mapping):
        return _read("bounds", dict(source))
    if source is None:
        text = (files("cwnd._search") / "bounds.toml").read_text(encoding="utf-8")
        return _read("bounds", tomllib.loads(text))
    try:
        document = tomllib.loads(read_text(Path(source)))
    except OSError as problem:
        raise ArgumentError("bounds", f"cannot read {source}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise PlanError(f"{source}: not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as mistake:
        raise PlanError(f"{source}: {mistake}") from None
    return _read(str(source), document)


def _read(origin: str, document: JsonObject) -> Space:
    """Parse the axes in the order of the catalogue."""
    for key in document:
        if key != "axes":
            raise PlanError(f"{origin}: {key}: unknown key; the bounds have one table, [axes]")
    axes = document.get("axes")
    if not isinstance(axes, dict) or not axes:
        raise PlanError(f"{origin}: needs a table [axes]")
    for name in axes:
        if name not in PARAMETERS:
            known = ", ".join(PARAMETERS)
            raise PlanError(f"{origin}: axes.{name}: unknown parameter; there are {known}")
    found: list[Parameter] = []
    for name in PARAMETERS:
        if name in axes:
            try:
                found.append(_read_parameter(name, axes[name], [one.name for one in found]))
            except ValueError as mistake:
                raise PlanError(f"{origin}: axes.{name}: {mistake}") from None
    space = Space(tuple(found), document)
    if {"loss", "loss_burst"} <= axes.keys():
        _check_bursts(origin, space)
    _check_values(origin, space)
    return space


def _check_values(origin: str, space: Space) -> None:
    """Refuse a value that no scenario can have: an end of a range, or one of a list."""
    before: dict[str, Any] = {}
    for one in space.parameters:
        for value in one.edges:
            try:
                Scenario(network(before | {one.name: value}, SEARCH_AGAINST)).validate()
            except TypeError:
                raise PlanError(f"{origin}: axes.{one.name}: {value!r} is not a number") from None
            except ValueError as mistake:
                raise PlanError(f"{origin}: axes.{one.name}: {mistake}") from None
        before[one.name] = one.edges[0]


def _check_bursts(origin: str, space: Space) -> None:
    """Gilbert's model begins a burst with the probability loss / (1 - loss) / burst."""
    try:
        (_, loss), (burst, _) = space["loss"].ends, space["loss_burst"].ends
    except PlanError as mistake:
        raise PlanError(f"{origin}: {mistake}") from None
    if not (burst > 0 and loss <= burst / (1 + burst)):
        most = f"{burst / (1 + burst):.3g}" if burst > 0 else "0"
        raise PlanError(f"{origin}: axes.loss: at most {most} beside bursts of {burst:g}")


def _read_parameter(name: str, given: object, before: Sequence[str]) -> Parameter:
    """Parse a parameter: an axis of a sweep, with ``off`` and ``when`` if it is a table.

    A list of values is in ``values`` of such a table.
    """
    off, when = 0.0, None
    if isinstance(given, dict):
        given = dict(given)
        off, when = given.pop("off", 0.0), given.pop("when", None)
        if isinstance(off, bool) or not isinstance(off, int | float) or not 0 <= off < 1:
            raise PlanError(f"'off' is the share of networks without it, below 1, not {off}")
        if off and PARAMETERS[name].default is not None and when is None and name != "flows":
            raise PlanError("'off' is for parameters that a network may lack")
        if when is not None and when not in before:
            raise PlanError(f"'when' must be one of the parameters before: {json.dumps(when)}")
        if "values" in given:
            others = sorted(given.keys() - {"values"})
            if others:
                raise PlanError(f"'values' excludes {', '.join(map(repr, others))}")
            given = given["values"]
    return Parameter(read_axis(name, given), float(off), when)
