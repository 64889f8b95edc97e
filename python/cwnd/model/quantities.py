"""Quantities of the models: annotated types that carry the texts and units of documentation.

The annotation of a parameter, a result or a field of a result is `Annotated` with its text and its
`Unit`, if it has one. The text is a noun phrase that may be followed by a semicolon and by domain,
default or a remark. A text replaces that of the annotated type. `cwnd.model.catalog` reads the
annotations for the command line, and `document` writes them into the docstrings of a module.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from itertools import groupby
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy.typing as npt

from cwnd.model.checks import MAX_STAGE, Value


class Unit(NamedTuple):
    """Unit of a quantity: times in ``s`` and rates in ``bit/s`` have any unit in a command."""

    symbol: str


WHOLE = object()
"""Marks a quantity that is a whole number although its type allows others."""


class Doc(NamedTuple):
    """Description of a quantity: a noun phrase, a remark, its unit, and whether it is whole."""

    what: str
    note: str = ""
    unit: str = ""
    whole: bool = False

    @property
    def text(self) -> str:
        """The description as a sentence; empty if there is none.

        Examples
        --------
        >>> Doc("Largest window", "unlimited by default", "packets").text
        'Largest window (packets); unlimited by default.'
        """
        parts = filter(None, (with_unit(self.what, self.unit), self.note))
        return f"{'; '.join(parts)}." if self.what else ""


BitRate: TypeAlias = Annotated[npt.ArrayLike, Unit("bit/s")]
Bytes: TypeAlias = Annotated[npt.ArrayLike, Unit("bytes")]
PacketRate: TypeAlias = Annotated[npt.ArrayLike, Unit("packets/s")]
Packets: TypeAlias = Annotated[npt.ArrayLike, Unit("packets")]
PacketsPerRtt: TypeAlias = Annotated[npt.ArrayLike, Unit("packets/RTT")]
PacketsPerSyn: TypeAlias = Annotated[npt.ArrayLike, Unit("packets/SYN")]
Seconds: TypeAlias = Annotated[npt.ArrayLike, Unit("s")]
Whole: TypeAlias = Annotated[npt.ArrayLike, WHOLE]

Beta: TypeAlias = Annotated[npt.ArrayLike, "Fraction of the window given up on a loss"]
GaimdBeta: TypeAlias = Annotated[
    npt.ArrayLike,
    "Fraction of the window given up on a loss; the paper's β is one less this",
]
Capacity: TypeAlias = Annotated[BitRate, "Capacity L of the link"]
OneCapacity: TypeAlias = Annotated[float, "Capacity L of the link", Unit("bit/s")]
Increase: TypeAlias = Annotated[PacketsPerRtt, "Increase"]
Loss: TypeAlias = Annotated[npt.ArrayLike, "Probability of a loss event; above 0, at most 1"]
Rtt: TypeAlias = Annotated[Seconds, "Round-trip time"]
OneRtt: TypeAlias = Annotated[float, "Round-trip time", Unit("s")]
Stage: TypeAlias = Annotated[Whole, f"Stage k; 0 is the first, {MAX_STAGE} the last"]

Rate: TypeAlias = Annotated[Value, "Rate", Unit("packets/s")]


def with_unit(name: str, unit: str) -> str:
    """Add a unit, if there is one.

    Examples
    --------
    >>> with_unit("rtt", "s"), with_unit("p", "")
    ('rtt (s)', 'p')
    """
    return f"{name} ({unit})" if unit else name


def find_doc(annotation: object) -> tuple[Any, Doc]:
    """Split an evaluated annotation into its type and its description, which may be empty.

    Examples
    --------
    >>> find_doc(OneRtt)
    (<class 'float'>, Doc(what='Round-trip time', note='', unit='s', whole=False))
    """
    # Python 3.10 makes a union with None of the annotation of a parameter whose default is None.
    for part in (annotation, *get_args(annotation)):
        if marks := getattr(part, "__metadata__", ()):
            texts = [mark for mark in marks if isinstance(mark, str)]
            units = [mark.symbol for mark in marks if isinstance(mark, Unit)]
            what, _, note = (texts or [""])[-1].partition("; ")
            return part.__origin__, Doc(what, note, (units or [""])[-1], WHOLE in marks)
    return annotation, Doc("")


def accepts(kind: object, *types: object) -> bool:
    """Test whether a type is one of some types, or a union with it.

    Examples
    --------
    >>> accepts(float | None, int, float), accepts(str, int, float)
    (True, False)
    """
    return any(set(_parts(each)) <= set(_parts(kind)) for each in types)


def document(names: dict[str, Any]) -> None:
    """Write the descriptions of parameters, results and fields into the docstrings of a module.

    Parameters
    ----------
    names
        The module's `globals`: its public functions, classes and their public methods change.
    """
    for name, found in names.items():
        if name.startswith("_") or getattr(found, "__module__", "") != names["__name__"]:
            continue
        if inspect.isfunction(found):
            _document(found, "Parameters")
        elif inspect.isclass(found):
            _document(found, "Attributes")
            for method in vars(found).values():
                if inspect.isfunction(method) and not method.__name__.startswith("_"):
                    _document(method, "Parameters")


def _document(found: Any, title: str) -> None:  # noqa: ANN401
    """Insert sections before the first section of a docstring."""
    if found.__doc__ is None:  # Python's option -OO
        return
    described = {
        name: find_doc(kind) for name, kind in get_type_hints(found, include_extras=True).items()
    }
    kind, result = described.pop("return", (None, Doc("")))
    lines = [title, "-" * len(title)]
    for (each, doc), group in groupby(described, described.__getitem__):
        if doc.what:
            lines += [f"{', '.join(group)} : {_name(each)}", _indent(doc.text)]
    sections = ["\n".join(lines)] if len(lines) > 2 else []
    if result.what:
        sections.append(f"Returns\n-------\n{_name(kind)}\n{_indent(result.text)}")
    head, *rest = re.split(r"\n\n(?=\w+\n---)", inspect.cleandoc(found.__doc__), maxsplit=1)
    found.__doc__ = "\n\n".join([head, *sections, *rest])
    # `help` prints the signature, where the annotations would repeat the sections.
    signature = inspect.signature(found)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    returned = signature.empty if result.what else signature.return_annotation
    found.__signature__ = signature.replace(parameters=bare, return_annotation=returned)


def _indent(text: str) -> str:
    """Wrap a text as the body of an entry."""
    return textwrap.fill(text, 100, initial_indent="    ", subsequent_indent="    ")


def _name(kind: object) -> str:
    """Return the name of a type for people."""
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    parts = _parts(kind)
    arrays = accepts(kind, npt.ArrayLike)
    others = [part for part in parts if not (arrays and part in _parts(npt.ArrayLike))]
    known = [getattr(get_origin(part) or part, "__name__", str(part)) for part in others]
    return " or ".join(["array_like"] * arrays + known).replace("NoneType", "None")


def _parts(kind: object) -> tuple[object, ...]:
    """Return the members of a union, or a single type."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
