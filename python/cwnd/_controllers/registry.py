"""The registry of controllers, as the laws describe themselves."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cwnd import _native, _show
from cwnd._base.law_files import known_laws, path_of_law, use_law
from cwnd.controller import (
    controller_kind,
    installed_controllers,
    read_controller,
    written_class,
)
from cwnd.errors import ControllerWarning

if TYPE_CHECKING:
    from cwnd._base.records import AlgorithmRecord, JsonObject
    from cwnd.controller import Spec


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an algorithm."""

    name: str
    symbol: str
    """Its symbol in the paper."""
    meaning: str
    unit: str
    default: str
    range: str
    """``default`` and ``range`` are as in a specification."""
    choices: list[str]
    """The words it may be; empty when it is a number."""

    @property
    def full_meaning(self) -> str:
        """The meaning with the unit; times and rates have theirs in their values."""
        written = self.unit in ("", "s", "/s", "bit/s")
        return self.meaning if written else f"{self.meaning}, in {self.unit}"


@dataclass(frozen=True, slots=True)
class State:
    """A variable that a law in a file keeps on a connection."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Equation:
    """A hook or a named expression of a law that is a text."""

    hook: str | None
    """None for a named expression."""
    mathml: str
    """An element ``math`` of MathML Core."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A congestion controller of the registry, or in a file.

    Attributes
    ----------
    name, title
        Its name in a specification and its full name.
    kind
        ``window`` or ``rate`` for a law for the window or the sending rate, ``whole`` for a
        controller that owns all of its state.
    summary, source
        What it does in a sentence, and the paper or RFC it is from.
    equations
        The law, as its source prints it.
    deviations
        Where it is known to differ from its source.
    parameters
        What a specification may set.
    states
        What a law in a file keeps on a connection.
    hash
        The identity of a law in a file, which comments and texts do not change; else None.
    mathml
        The equations of a law that is a text as MathML.
    """

    name: str
    title: str
    kind: str
    summary: str
    source: str
    equations: list[str]
    deviations: list[str]
    parameters: list[Parameter]
    states: list[State]
    hash: str | None
    mathml: list[Equation]

    def __repr__(self) -> str:
        settings = ", ".join(f"{p.name}={p.default}" for p in self.parameters if p.default)
        return f"<Algorithm {self.name}({settings}): {self.title}>"

    def _repr_html_(self) -> str | None:
        return _show.notebook.algorithm_html(self)

    def to_json(self) -> JsonObject:
        """Give the algorithm as plain data."""
        return asdict(self)


class Algorithms(list[Algorithm]):
    """A list of algorithms that a notebook shows as a table."""

    def _repr_html_(self) -> str | None:
        return _show.notebook.algorithms_html(self)


def algorithms() -> list[Algorithm]:
    """List every controller of the registry, and those that installed packages add.

    A package adds controllers as entry points of the group ``cwnd.controllers``. One that cannot be
    loaded is a ControllerWarning.

    Returns
    -------
    list of Algorithm
        In the order of the registry.

    Examples
    --------
    >>> import cwnd
    >>> [a.name for a in cwnd.algorithms()][:3]
    ['aimd', 'reno', 'gaimd']
    """
    found = Algorithms(_algorithm(record) for record in _native.algorithms())
    for name in installed_controllers():
        try:
            found.append(describe(name))
        except _native.SpecError as problem:
            warnings.warn(str(problem), ControllerWarning, stacklevel=2)
    return found


def describe(spec: Spec) -> Algorithm:
    """Describe a controller, whatever the parameters in its specification.

    One written in Python is described by its docstring and its signature.

    Examples
    --------
    >>> describe("simd(beta=1/16)").name
    'simd'
    """
    name, factory = read_controller(spec)
    if factory is None:
        base = name.partition("(")[0]
        if ":" in base:
            raise _native.SpecError(f"{base} is the Linux kernel's own: its source describes it")
        if (path := path_of_law(name)) is not None:
            return describe_law(path, use_law(path))
        return _algorithm(_native.algorithm(base))
    made = written_class(factory)
    title, _, text = (inspect.getdoc(made) or "").partition("\n")
    return Algorithm(
        name=name.partition("(")[0],
        title=title or getattr(made, "__name__", name),
        kind=controller_kind(factory()),
        summary=" ".join(text.split()),
        source=inspect.getsourcefile(made) or "",
        equations=[],
        deviations=[],
        parameters=[
            Parameter(
                name=key,
                symbol=key,
                meaning="",
                unit="",
                default="" if found.default is found.empty else repr(found.default),
                range="",
                choices=[],
            )
            for key, found in inspect.signature(made).parameters.items()
        ],
        states=[],
        hash=None,
        mathml=[],
    )


def describe_law(name: str, text: str) -> Algorithm:
    """Describe the law of a text that is called ``name``."""
    with known_laws({name: text}):
        return _algorithm(_native.algorithm(name))


def canonical(spec: str) -> str:
    """Write a specification of a controller in full.

    Parameters
    ----------
    spec
        A name, with parameters where they are not the defaults: ``simd(beta=1/16)``.

    Returns
    -------
    str
        The same law, always written in the same way.

    Raises
    ------
    SpecError
        An unknown name or parameter, or a value out of range; the message says what is allowed.
    """
    return _native.canonical(spec)


def _algorithm(record: AlgorithmRecord) -> Algorithm:
    """Turn a record of the bridge into an Algorithm."""
    return Algorithm(
        name=record["name"],
        title=record["title"],
        kind=record["kind"],
        summary=record["summary"],
        source=record["source"],
        equations=record["equations"],
        deviations=record["deviations"],
        parameters=[Parameter(**parameter) for parameter in record["parameters"]],
        states=[State(**state) for state in record["states"]],
        hash=record["hash"],
        mathml=[Equation(*equation) for equation in record["mathml"]],
    )
