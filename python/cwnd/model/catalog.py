"""Models by name, with descriptions from their annotations and docstrings, for the command line.

The name of a model is the function's name with hyphens, prefixed with the module's short name
unless the module has formulas of several papers. Parameters in seconds or in bits per second may be
given with units.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from cwnd._controllers.registry import algorithms
from cwnd.controller import Spec
from cwnd.errors import ArgumentError, read_argument
from cwnd.model.quantities import Doc, accepts, find_doc, with_unit
from cwnd.model.throughput import FORMULAS
from cwnd.units import format_rate, format_time, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cwnd.model.checks import Array

_COMMON = ("throughput", "friendliness")
"""Modules whose models have no prefix."""


_KINDS = {"s": "time", "bit/s": "rate"}
"""Kinds of the parameters that accept units, by unit."""


class Entry(NamedTuple):
    """A model's module and function."""

    module: str
    function: str


ENTRIES = (
    Entry("throughput", "square_root"),
    Entry("throughput", "pftk"),
    Entry("throughput", "gaimd"),
    Entry("throughput", "gaimd_td"),
    Entry("throughput", "gaimd_to"),
    Entry("throughput", "gaimd_timeout_probability"),
    Entry("throughput", "simd_eq8"),
    Entry("throughput", "reno_response"),
    Entry("throughput", "scalable_response"),
    Entry("throughput", "highspeed_response"),
    Entry("throughput", "bic_response"),
    Entry("throughput", "udt_response"),
    Entry("throughput", "loss_for_rate"),
    Entry("friendliness", "aimd_alpha"),
    Entry("friendliness", "aimd_alpha_timeouts"),
    Entry("friendliness", "simd_alpha"),
    Entry("friendliness", "simd_alpha_periodic"),
    Entry("friendliness", "binomial_is_friendly"),
    Entry("friendliness", "binomial_alpha"),
    Entry("friendliness", "friendliness_ratio"),
    Entry("synchronous", "phase_plane"),
    Entry("synchronous", "convergence"),
    Entry("synchronous", "table1"),
    Entry("synchronous", "epoch_length"),
    Entry("synchronous", "contraction"),
    Entry("synchronous", "fairness_epochs"),
    Entry("synchronous", "epoch_sum"),
    Entry("synchronous", "simd_fairer"),
    Entry("law", "cut"),
    Entry("stationary", "figures"),
    Entry("stationary", "aimd_moments"),
    Entry("fluid", "red_equilibrium"),
    Entry("fluid", "droptail_equilibrium"),
    Entry("daimd", "increase_per_syn"),
    Entry("daimd", "increase_per_second"),
    Entry("daimd", "stage_increase"),
    Entry("daimd", "stage_end"),
    Entry("daimd", "equilibrium"),
    Entry("daimd", "equilibrium_bps"),
    Entry("daimd", "stable_stage"),
    Entry("daimd", "trajectory"),
    Entry("daimd", "time_to_fraction"),
    Entry("daimd", "tcp_recovery_time"),
    Entry("daimd", "expected_change"),
    Entry("daimd", "rate_of_change"),
    Entry("daimd", "marginal_utility"),
    Entry("daimd", "utility"),
    Entry("daimd_sharing", "friendliness_ratio"),
    Entry("daimd_sharing", "friendly_margin"),
    Entry("daimd_sharing", "estimate_error_ratio"),
    Entry("daimd_sharing", "least_rate"),
    Entry("aiad", "phi"),
    Entry("aiad", "kappa"),
    Entry("aiad", "equilibrium"),
    Entry("aiad", "gains"),
    Entry("aiad", "mode_gains"),
    Entry("aiad", "lemma1"),
    Entry("aiad", "rightmost_root"),
    Entry("aiad", "queue_delay_bound"),
    Entry("aiad", "estimate_bound"),
    Entry("aiad", "buffer_bound"),
    Entry("aiad_system", "motion"),
    Entry("aira", "desired_slope_decrease"),
    Entry("aira", "desired_slope_increase"),
    Entry("aira", "next_increase"),
    Entry("aira", "mail"),
    Entry("aira", "reset_threshold"),
    Entry("aira", "extra_time"),
    Entry("aira", "total_time"),
    Entry("aira", "one_flow"),
)
"""All models of the command line."""


class Range(NamedTuple):
    """A range of values from ``low`` to ``high``."""

    low: float
    high: float

    @property
    def logarithmic(self) -> bool:
        """Whether the ends are positive and more than a decade apart."""
        return self.low > 0 and self.high / self.low >= 10

    def points(self, count: int, *, whole: bool = False) -> Array:
        """Return values between the ends, both included.

        Parameters
        ----------
        count
            Largest number of values.
        whole
            Whether the values must be whole numbers.

        Returns
        -------
        ndarray
            Ascending, evenly spaced, on a logarithmic scale if `logarithmic`.

        Examples
        --------
        >>> Range(1, 100).points(3).tolist(), Range(0, 3).points(9, whole=True).tolist()
        ([1.0, 10.0, 100.0], [0.0, 1.0, 2.0, 3.0])
        """
        if whole and self.high - self.low < count:
            return np.arange(np.ceil(self.low), np.floor(self.high) + 1, dtype=np.float64)
        if self.logarithmic:
            values = np.geomspace(self.low, self.high, count)
        else:
            values = np.linspace(self.low, self.high, count)
        return np.unique(np.round(values)) if whole else values


@dataclass(frozen=True)
class Parameter:
    """A parameter of a model.

    Parameters
    ----------
    name
        Name in Python.
    kind
        ``number``, ``whole``, ``time``, ``rate``, ``text`` or ``flag``.
    required
        Whether it has no default.
    default
        Default; None if the function chooses it.
    doc
        Description.
    names
        Values of a text: all of them, or for a specification the names of controllers.
    """

    name: str
    kind: str
    required: bool
    default: Any
    doc: Doc
    names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The description as a sentence, for people."""
        return self.doc.text.replace("``", "")

    def read(self, text: str) -> float | str | Range | list[float | str]:
        """Parse a value, a range ``A..B`` of values, or a list of values with commas.

        Parameters
        ----------
        text
            Numbers, fractions such as 1/8, times or rates with their units, or names.

        Returns
        -------
        float, str, Range or list
            In SI base units; a list has at least two values.

        Raises
        ------
        ArgumentError
            The text has none of these forms.

        Examples
        --------
        >>> rtt = find_model("pftk").parameters["rtt"]
        >>> rtt.read("10ms..1s"), rtt.read("10ms, 1s")
        (Range(low=0.01, high=1.0), [0.01, 1.0])
        >>> find_model("law-cut").parameters["spec"].read("reno,aimd(0.31, 1/8)")
        ['reno', 'aimd(0.31, 1/8)']
        """
        # Commas within a specification separate its parameters.
        parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
        if len(parts) > 1:
            if len(set(parts)) < len(parts):
                raise ArgumentError(self.name, f"{text!r} has a repeated value")
            return [part if self.kind == "text" else self._number(part) for part in parts]
        if self.kind == "text":
            return text
        if ".." not in text:
            return self._number(text)
        first, last = text.split("..", 1)
        low, high = self._number(first), self._number(last)
        # The ends of some finite ranges are too far apart for a number.
        if not (low < high and math.isfinite(high - low)):
            raise ArgumentError(self.name, f"{text!r} must be finite, with A less than B in A..B")
        return Range(low, high)

    def write(self, value: float | str) -> str:
        """Format the parameter with a value, for people.

        Parameters
        ----------
        value
            In SI base units.

        Examples
        --------
        >>> find_model("pftk").parameters["rtt"].write(0.1)
        'rtt = 100 ms'
        """
        if isinstance(value, str):
            shown = value
        else:
            known = {"time": format_time, "rate": format_rate}
            shown = known.get(self.kind, "{:.6g}".format)(value)
        return f"{self.name} = {shown}"

    @property
    def axis(self) -> str:
        """The name, the description and the unit, as the label of a plot's axis.

        Examples
        --------
        >>> find_model("pftk").parameters["p"].axis
        'p: probability of a loss event'
        >>> find_model("pftk").parameters["rtt"].axis
        'rtt: round-trip time (s)'
        """
        what = self.doc.what.replace("``", "")
        # A symbol or an acronym keeps its capital.
        plain = what[1:2].islower() or what.startswith("A ")
        words = what[0].lower() + what[1:] if plain else what
        return with_unit(f"{self.name}: {words}", self.doc.unit)

    def _number(self, text: str) -> float:
        if self.kind == "time":
            return read_argument(self.name, lambda time: parse_time(time, zero=True), text)
        if self.kind == "rate":
            return read_argument(self.name, parse_rate, text)
        try:
            # Fraction accepts all that float does except infinity.
            return float(Fraction(text.strip()) if "/" in text else float(text))
        except (ValueError, ZeroDivisionError):
            pass
        raise ArgumentError(
            self.name, f"{text!r} is not a number, a fraction, a range A..B or a list A,B"
        )


@dataclass(frozen=True)
class Model:
    """A model: a function of `cwnd.model` with a name.

    Parameters
    ----------
    name
        Name on the command line.
    entry
        Module and function.
    function
        The function.
    """

    name: str
    entry: Entry
    function: Callable[..., Any]

    @property
    def _prose(self) -> tuple[str, str]:
        """First line of the docstring, and the paragraphs between it and the sections."""
        text = (inspect.getdoc(self.function) or "").replace("``", "")
        first, _, rest = re.split(r"\n\n(?=\w+\n---)", text)[0].partition("\n")
        return first, rest.strip()

    @cached_property
    def _hints(self) -> dict[str, tuple[Any, Doc]]:
        """Type and description of each parameter, and of the result as ``return``."""
        hints = get_type_hints(self.function, include_extras=True)
        return {name: find_doc(hint) for name, hint in hints.items()}

    @cached_property
    def _fields(self) -> dict[str, Doc]:
        """Descriptions of the fields of the result; empty if it has none."""
        kind, _ = self._hints["return"]
        if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
            return {}
        hints = get_type_hints(kind, include_extras=True)
        return {name: find_doc(hint)[1] for name, hint in hints.items()}

    def label(self, column: str) -> str:
        """Return a parameter or a column of the result with its unit.

        Parameters
        ----------
        column
            A parameter's name, a field's name, or ``value``.

        Examples
        --------
        >>> find_model("pftk").label("rtt"), find_model("pftk").label("value")
        ('rtt (s)', 'value (packets/s)')
        """
        if column in self.parameters:
            return with_unit(column, self.parameters[column].doc.unit)
        return with_unit(column, self.unit(column))

    def unit(self, column: str) -> str:
        """Return the unit of a column of the result; empty if it has none.

        Parameters
        ----------
        column
            A field's name, or ``value``. In a table over a parameter with the name of a field, the
            field has the suffix ``_result``.

        Examples
        --------
        >>> find_model("pftk").unit("value"), find_model("aiad-equilibrium").unit("rtt")
        ('packets/s', 's')
        """
        return self.units.get(column.removesuffix("_result"), "")

    @property
    def units(self) -> dict[str, str]:
        """Units of the result by field, or of its ``value``; empty strings for none.

        Examples
        --------
        >>> find_model("pftk").units, find_model("aiad-gains").units
        ({'value': 'packets/s'}, {'k1': '1/s', 'k2': '1/s'})
        """
        docs = self._fields or {"value": self._hints["return"][1]}
        return {name: doc.unit for name, doc in docs.items()}

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self._prose[0]

    @property
    def facts(self) -> str:
        """Docstring between the first line and the sections."""
        return self._prose[1]

    @property
    def returns(self) -> str:
        """Description of the result, or of its class and fields; empty if it has none."""
        kind, doc = self._hints["return"]
        if not self._fields:
            return doc.text.replace("``", "")
        title = (inspect.getdoc(kind) or "").partition("\n")[0]
        fields = (f"{name}: {doc.text}" for name, doc in self._fields.items())
        return " ".join([title, *fields]).replace("``", "")

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters by name, in the order of the signature."""
        return dict(self._find_parameters())

    def _find_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Extract the parameters from the signature."""
        known = inspect.signature(self.function).parameters
        for name, found in known.items():
            if found.kind is not inspect.Parameter.VAR_KEYWORD:
                kind, doc = self._hints[name]
                required = found.default is inspect.Parameter.empty
                default = None if required else found.default
                role = _kind(kind, doc)
                names = _names(kind) if role == "text" else ()
                yield name, Parameter(name, role, required, default, doc, names)
        if any(found.kind is inspect.Parameter.VAR_KEYWORD for found in known.values()):
            seen = {*known, "p"}
            for formula in FORMULAS.values():
                for name, parameter in Model("", self.entry, formula).parameters.items():
                    if name not in seen:
                        seen.add(name)
                        yield name, dataclasses.replace(parameter, required=False, default=None)

    def evaluate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call the function once.

        Parameters
        ----------
        arguments
            Arguments by name; ``whole`` ones may be floats.

        Returns
        -------
        dict
            Each field of the result, or ``value``: a number, or a one-dimensional array.

        Examples
        --------
        >>> find_model("square-root").evaluate({"p": 1.5, "rtt": 1})
        Traceback (most recent call last):
        ...
        cwnd.errors.ArgumentError: p: must be above 0 and at most 1, not 1.5
        """
        ready = {}
        for name, value in arguments.items():
            scalar = isinstance(value, float) and self.parameters[name].kind == "whole"
            ready[name] = int(value) if scalar and value.is_integer() else value
        try:
            # A value that is not finite is part of the result.
            with np.errstate(all="ignore"):
                return _columns(self.function(**ready))
        except (OverflowError, ZeroDivisionError):
            name = max(ready, key=lambda name: _extremeness(ready[name]))
            raise ArgumentError(name, f"{ready[name]:g} is beyond the model's numbers") from None

    def sweep(
        self, arguments: Mapping[str, Any], over: str, values: Iterable[float | str]
    ) -> dict[str, Array]:
        """Call the function for each value of one parameter.

        Parameters
        ----------
        arguments
            The other parameters.
        over
            The parameter's name.
        values
            Its values.

        Returns
        -------
        dict
            Each field of the result, or ``value``, with one element for each value.

        Raises
        ------
        ArgumentError
            An argument is out of range, or the function returns a series by itself.

        Examples
        --------
        >>> find_model("reno-response").sweep({}, "p", np.array([0.01, 0.04]))["value"].round(2)
        array([12.2,  6.1])
        """
        points = (value if isinstance(value, str) else float(value) for value in values)
        rows = [self.evaluate({**arguments, over: value}) for value in points]
        if any(np.ndim(value) for value in rows[0].values()):
            raise ArgumentError(over, f"{self.name} returns a series: give one value, not a range")
        return {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0]}


def _extremeness(value: object) -> float:
    """Return how many decades a number is from 1."""
    return abs(math.log10(abs(value))) if isinstance(value, int | float) and value else 0.0


def find_model(name: str) -> Model:
    """Find a model.

    Parameters
    ----------
    name
        Name; underscores may replace hyphens.

    Raises
    ------
    ArgumentError
        There is no such model; the message suggests similar names.

    Examples
    --------
    >>> find_model("aira-mail").summary
    'Minimum Additive Increase Limit after a number of rounds: 1 - 0.9·R% (AIRA, Eq. 23).'
    """
    wanted = name.replace("_", "-")
    names = {_name(entry): entry for entry in ENTRIES}
    if wanted not in names:
        near = difflib.get_close_matches(wanted, names, 4, 0.5) or [
            known for known in names if wanted in known
        ]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ArgumentError("model", f"there is no {name!r}{hint}; `cwnd model` lists all models")
    entry = names[wanted]
    module = import_module(f"cwnd.model.{entry.module}")
    return Model(wanted, entry, getattr(module, entry.function))


def models() -> list[Model]:
    """Return all models, in the order of `ENTRIES`.

    Examples
    --------
    >>> models()[0].name
    'square-root'
    """
    return [find_model(_name(entry)) for entry in ENTRIES]


def _name(entry: Entry) -> str:
    """Return the name of a model."""
    name = entry.function.replace("_", "-")
    return name if entry.module in _COMMON else f"{entry.module.split('_')[0]}-{name}"


def _kind(annotation: object, doc: Doc) -> str:
    """Return the kind of a parameter."""
    if annotation is bool:
        return "flag"
    if not accepts(annotation, int, float, npt.ArrayLike):
        return "text"
    whole = "whole" if doc.whole or annotation is int else "number"
    return _KINDS.get(doc.unit, whole)


def _names(annotation: object) -> tuple[str, ...]:
    """Return the names that a text accepts: those of a list, of controllers or of formulas."""
    for part in (annotation, *get_args(annotation)):
        if get_origin(part) is Literal:
            return get_args(part)
    if accepts(annotation, Spec):
        return tuple(algorithm.name for algorithm in algorithms())
    return tuple(FORMULAS)


def _columns(result: object) -> dict[str, Any]:
    """Split a result into numbers and one-dimensional arrays."""
    fields: dict[str, Any] = {"value": result}
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        derived = [name for name, v in vars(type(result)).items() if isinstance(v, property)]
        fields = {**result._asdict(), **{name: getattr(result, name) for name in derived}}
    elif dataclasses.is_dataclass(result):
        names = [field.name for field in dataclasses.fields(result)]
        fields = {name: getattr(result, name) for name in names}
    columns: dict[str, Any] = {}
    for name, value in fields.items():
        prefix = "" if name == "value" else f"{name}_"
        if np.iscomplexobj(value):
            columns[f"{prefix}real"], columns[f"{prefix}imag"] = np.real(value), np.imag(value)
        elif np.ndim(value) > 1:
            for number, column in enumerate(np.reshape(value, (len(value), -1)).T, start=1):
                columns[f"{prefix}{number}"] = column
        else:
            columns[name] = value
    return columns
