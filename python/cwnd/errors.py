"""Errors caused by invalid arguments or missing capabilities."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")
V = TypeVar("V")


class ArgumentError(ValueError):
    """An invalid argument.

    Parameters
    ----------
    argument
        Its name.
    problem
        What is wrong, and what is allowed.
    """

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem


class PlanError(ValueError):
    """An invalid plan of a sweep; the message names the file and the key."""


class DataSetWarning(UserWarning):
    """A fault of a sweep's data set that the sweep mends, or a missing lock."""


class ControllerWarning(UserWarning):
    """A doubtful part of a controller written in Python, with its file and line."""


class KernelError(ValueError):
    """The operating system lacks a capability or denies it to this user; the message names it."""


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Name a file in the errors of its writing, such as that of a full disk."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None:
            problem.filename = str(path)
        raise


def read_argument(name: str, parse: Callable[[V], T], value: V) -> T:
    """Parse an argument; invalid values raise an ArgumentError that names it."""
    try:
        return parse(value)
    except ValueError as mistake:
        raise ArgumentError(name, str(mistake)) from None
    except TypeError:
        raise ArgumentError(name, f"{value!r} is neither text nor a number") from None


def read_list(name: str, values: Iterable[V]) -> list[V]:
    """Return a list of values; a single text, a path, or what has no values is an ArgumentError."""
    if isinstance(values, str | PurePath) or not isinstance(values, Iterable):
        raise ArgumentError(name, f"a list is needed, not {values!r}")
    return list(values)
