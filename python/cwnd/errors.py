"""Mistakes of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
V = TypeVar("V")


class ArgumentError(ValueError):
    """An argument that makes no sense.

    Parameters
    ----------
    argument
        Its name.
    problem
        What is wrong with it and what was expected.
    """

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem


class PlanError(ValueError):
    """A plan of a sweep that makes no sense; one line names the file and the key."""


class KernelError(ValueError):
    """What the kernel does not have, or does not let this user do; one line says it."""


def read_argument(name: str, parse: Callable[[V], T], value: V) -> T:
    """Read an argument; a mistake is told with its name.

    Parameters
    ----------
    name
        The argument's name.
    parse
        What reads it; raises ValueError.
    value
        What was given.

    Returns
    -------
    object
        What ``parse`` returned.

    Raises
    ------
    ArgumentError
        ``parse`` refused the value.
    """
    try:
        return parse(value)
    except ValueError as mistake:
        raise ArgumentError(name, str(mistake)) from None
    except TypeError:
        raise ArgumentError(name, f"{value!r} is neither a text nor a number") from None
