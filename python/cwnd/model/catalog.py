"""Models by name, with descriptions from their docstrings and signatures, for the command line.

The name of a model is the function's name with hyphens, prefixed with the module's short name
unless the module has formulas of several papers. Parameters documented in seconds or in bits per
second may be given with units.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cwnd.errors import ArgumentError, read_argument
from cwnd.model.throughput import FORMULAS
from cwnd.units import format_rate, format_time, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cwnd.model.checks import Array

_COMMON = ("throughput", "friendliness")
"""Modules whose models have no prefix."""


_TIMES = ("rtt", "rto")
"""Parameters that are times although a docstring may not state their unit."""

_UNITS = {"time": "s", "rate": "bit/s"}
"""Units of parameters by kind."""

_LONGEST_LABEL = 72
"""Longest description of a parameter in a plot, in characters."""

_PPS = "packets/s"
_FILL_AND_SHARE = (("t1", "RTT"), ("delta", "packets"), ("t2", "RTT"))
_BALANCE = (
    ("window", "packets"),
    ("rtt", "s"),
    ("rate", _PPS),
    ("queue", "packets"),
    ("loss", ""),
)


class Entry(NamedTuple):
    """A model's module and function, and the units of its result, or of the result's fields."""

    module: str
    function: str
    unit: str = ""
    fields: tuple[tuple[str, str], ...] = ()


ENTRIES = (
    Entry("throughput", "square_root", _PPS),
    Entry("throughput", "pftk", _PPS),
    Entry("throughput", "gaimd", _PPS),
    Entry("throughput", "gaimd_td", "s/packet"),
    Entry("throughput", "gaimd_to", "s/packet"),
    Entry("throughput", "gaimd_timeout_probability"),
    Entry("throughput", "simd_eq8", _PPS),
    Entry("throughput", "reno_response", "packets"),
    Entry("throughput", "scalable_response", "packets"),
    Entry("throughput", "highspeed_response", "packets"),
    Entry("throughput", "bic_response", "packets"),
    Entry("throughput", "udt_response", "packets/SYN"),
    Entry("throughput", "loss_for_rate"),
    Entry("friendliness", "aimd_alpha", "packets/RTT"),
    Entry("friendliness", "aimd_alpha_timeouts", "packets/RTT"),
    Entry("friendliness", "simd_alpha", "√packets/RTT"),
    Entry("friendliness", "simd_alpha_periodic", "√packets/RTT"),
    Entry("friendliness", "binomial_is_friendly"),
    Entry("friendliness", "binomial_alpha"),
    Entry("friendliness", "friendliness_ratio"),
    Entry("synchronous", "convergence", fields=_FILL_AND_SHARE),
    Entry("synchronous", "table1", fields=_FILL_AND_SHARE),
    Entry("synchronous", "epoch_length", "RTT"),
    Entry("synchronous", "contraction"),
    Entry("synchronous", "fairness_epochs", "epochs"),
    Entry("synchronous", "epoch_sum", "RTT"),
    Entry("synchronous", "simd_fairer"),
    Entry("law", "cut", "packets"),
    Entry(
        "stationary",
        "figures",
        fields=(
            ("mean", "packets"),
            ("cv", ""),
            ("low", "packets"),
            ("median", "packets"),
            ("high", "packets"),
            ("rate", _PPS),
            ("loss_events", ""),
            ("epoch", "s"),
        ),
    ),
    Entry("stationary", "aimd_moments", fields=(("mean", "packets"), ("variance", "packets²"))),
    Entry("fluid", "red_equilibrium", fields=_BALANCE),
    Entry("fluid", "droptail_equilibrium", fields=_BALANCE),
    Entry("daimd", "increase_per_syn", "packets/SYN"),
    Entry("daimd", "increase_per_second", _PPS),
    Entry("daimd", "stage_increase", "packets/SYN"),
    Entry("daimd", "stage_end", "packets/SYN"),
    Entry("daimd", "equilibrium", "packets/SYN"),
    Entry("daimd", "equilibrium_bps", "bit/s"),
    Entry("daimd", "stable_stage"),
    Entry("daimd", "trajectory", "packets/SYN"),
    Entry("daimd", "time_to_fraction", "s"),
    Entry("daimd", "tcp_recovery_time", "s"),
    Entry("daimd", "expected_change", "packets/SYN²"),
    Entry("daimd", "rate_of_change", "packets/SYN²"),
    Entry("daimd", "marginal_utility", "SYN/packet"),
    Entry("daimd", "utility"),
    Entry("daimd_sharing", "friendliness_ratio"),
    Entry("daimd_sharing", "friendly_margin"),
    Entry("daimd_sharing", "estimate_error_ratio"),
    Entry("daimd_sharing", "least_rate", "bit/s"),
    Entry("aiad", "phi", _PPS),
    Entry("aiad", "kappa", _PPS),
    Entry(
        "aiad",
        "equilibrium",
        fields=(("rate", _PPS), ("estimate", _PPS), ("rtt", "s"), ("queue_delay", "s")),
    ),
    Entry("aiad", "gains", "1/s"),
    Entry("aiad", "mode_gains", "1/s"),
    Entry("aiad", "lemma1"),
    Entry("aiad", "rightmost_root"),
    Entry("aiad", "queue_delay_bound", "s"),
    Entry("aiad", "estimate_bound"),
    Entry("aiad", "buffer_bound", "packets"),
    Entry("aiad_system", "motion", fields=(("time", "s"), ("total", _PPS), ("queue", "packets"))),
    Entry("aira", "desired_slope_decrease", "packets/ACK"),
    Entry("aira", "desired_slope_increase", "packets/ACK"),
    Entry("aira", "next_increase", "packets/RTT"),
    Entry("aira", "mail", "packets/RTT"),
    Entry("aira", "reset_threshold", "packets"),
    Entry("aira", "extra_time"),
    Entry("aira", "total_time"),
    Entry(
        "aira",
        "one_flow",
        fields=(("increase", "packets/RTT"), ("packets", "packets"), ("seconds", "s")),
    ),
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
    text
        Description from the docstring.
    """

    name: str
    kind: str
    required: bool
    default: Any
    text: str

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
        >>> rtt = Parameter("rtt", "time", True, None, "")
        >>> rtt.read("10ms..1s"), rtt.read("10ms, 1s")
        (Range(low=0.01, high=1.0), [0.01, 1.0])
        >>> Parameter("spec", "text", True, None, "").read("reno,aimd(0.31, 1/8)")
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
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
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
        >>> Parameter("rtt", "time", True, None, "").write(0.1)
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
        """The name and the first words of the description, as the label of a plot's axis.

        Examples
        --------
        >>> find_model("pftk").parameters["p"].axis
        'p: probability of a loss event'
        >>> find_model("pftk").parameters["rtt"].axis
        'rtt: round-trip time (s)'
        """
        words = re.split(r"[.,:;(]| in (?:seconds|bits per second)", self.text)[0].strip()
        if words.startswith("As for") or not 0 < len(words) < _LONGEST_LABEL:
            name = self.name
        else:
            name = f"{self.name}: {words[0].lower()}{words[1:]}"
        return _with_unit(name, _UNITS.get(self.kind, ""))

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

    @cached_property
    def _sections(self) -> dict[str, Any]:
        """Sections of the docstring by kind; ``text`` precedes them."""
        from griffe import Docstring, parse_numpy

        text = (self.function.__doc__ or "").replace("``", "")
        return {
            part.kind.value: part.value for part in parse_numpy(Docstring(text), warnings=False)
        }

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
            return _with_unit(column, _UNITS.get(self.parameters[column].kind, ""))
        return _with_unit(column, self.unit(column))

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
        return dict(self.entry.fields).get(column.removesuffix("_result"), self.entry.unit)

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return str(self._sections["text"].partition("\n")[0])

    @property
    def facts(self) -> str:
        """Docstring between the first line and the sections."""
        return str(self._sections["text"].partition("\n")[2].strip())

    @property
    def returns(self) -> str:
        """Description of the result, from the docstring or its class; empty if neither has one."""
        described = " ".join(part.description for part in self._sections.get("returns", []))
        if described:
            return " ".join(described.split())
        kind = str(inspect.signature(self.function).return_annotation)
        found = getattr(import_module(self.function.__module__), kind, None)
        text = inspect.getdoc(found) if inspect.isclass(found) else None
        return text.splitlines()[0].replace("``", "") if text else ""

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters by name, in the order of the signature."""
        return dict(self._find_parameters())

    def _find_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Extract the parameters from the signature and the docstring."""
        sections = self._sections.get("parameters", [])
        texts = {part.name: " ".join(part.description.split()) for part in sections}
        open_ended = False
        for name, found in inspect.signature(self.function).parameters.items():
            if found.kind is inspect.Parameter.VAR_KEYWORD:
                open_ended = True
                continue
            required = found.default is inspect.Parameter.empty
            text = texts.get(name, "")
            kind = "time" if name in _TIMES else _kind(str(found.annotation), text)
            default = None if required else found.default
            yield name, Parameter(name, kind, required, default, text)
        if open_ended:
            known = set(inspect.signature(self.function).parameters) | {"p"}
            for formula in FORMULAS.values():
                for name, parameter in Model("", self.entry, formula).parameters.items():
                    if name not in known:
                        known.add(name)
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

        Raises
        ------
        ArgumentError
            An argument outside its domain.

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
        return _columns(self.function(**ready))

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


def _with_unit(name: str, unit: str) -> str:
    """Add a unit to a name, if it has one."""
    return f"{name} ({unit})" if unit else name


def _name(entry: Entry) -> str:
    """Return the name of a model."""
    name = entry.function.replace("_", "-")
    return name if entry.module in _COMMON else f"{entry.module.split('_')[0]}-{name}"


def _kind(annotation: str, text: str) -> str:
    """Return the kind of a parameter."""
    if annotation == "bool":
        return "flag"
    if "ArrayLike" not in annotation and annotation.partition(" ")[0] not in ("int", "float"):
        return "text"
    if re.search(r"\bseconds\b(?! per)", text) and "per second" not in text:
        return "time"
    if "bits per second" in text:
        return "rate"
    if annotation == "int" or re.search(r"^Number of |^Stage k|\bwhole number", text):
        return "whole"
    return "number"


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
