"""Conventions of TCP: the stack whose rules the simulator follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CONVENTIONS = "linux"
"""Conventions of a network that is built without a scenario file."""

NAMES = ("rfc", "rfc5681", "linux", "ns2", "ns2-2001")
"""Names of all conventions in the order of the schema of scenario files. The help and the manual
pages, which are made without the compiled module, list them."""


def read_conventions(name: str) -> str:
    """Check the name of conventions; the message of the ValueError lists them.

    Examples
    --------
    >>> read_conventions("linux")
    'linux'
    >>> read_conventions("NS2")
    Traceback (most recent call last):
    ValueError: 'NS2' is not one of rfc, rfc5681, linux, ns2, ns2-2001: did you mean ns2?
    """
    if name not in NAMES:
        import difflib

        close = difflib.get_close_matches(str(name).lower(), NAMES, 1)
        hint = f": did you mean {close[0]}?" if close else ""
        raise ValueError(f"{name!r} is not one of {', '.join(NAMES)}{hint}")
    return name


def all_conventions(found: Iterable[Iterable[str]]) -> list[str]:
    """Merge the conventions of several runs; each is listed once.

    Examples
    --------
    >>> all_conventions([["rfc"], ["rfc", "linux"]])
    ['rfc', 'linux']
    """
    return list(dict.fromkeys(name for names in found for name in names))


def conventions_text(names: Iterable[str]) -> str:
    """Name the conventions of the TCP flows; empty without any.

    Examples
    --------
    >>> conventions_text(["linux"]), conventions_text(["rfc", "linux"])
    ('TCP conventions: linux', 'TCP conventions: rfc, linux')
    """
    text = ", ".join(names)
    return f"TCP conventions: {text}" if text else ""


def conventions_facts(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return `conventions_text` as a fact of a page: term, value and an empty remark.

    Examples
    --------
    >>> conventions_facts(["linux"]), conventions_facts([])
    ([('TCP conventions', 'linux', '')], [])
    """
    term, colon, value = conventions_text(names).partition(": ")
    return [(term, value, "")] if colon else []
