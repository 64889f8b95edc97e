"""Keyword arguments that had another name."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


def renamed(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function whose keyword arguments had other names, each with the new one.

    A call with a former name raises an ArgumentError with the new name.

    Examples
    --------
    >>> @renamed(packet_size="mtu")
    ... def connect(*, mtu: int = 1500) -> int:
    ...     return mtu
    >>> connect(mtu=9000)
    9000
    >>> connect(packet_size=9000)
    Traceback (most recent call last):
    cwnd.errors.ArgumentError: packet_size: the name is now `mtu`
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def checked(*args: P.args, **given: P.kwargs) -> T:
            for name in names.keys() & given:
                raise ArgumentError(name, f"the name is now `{names[name]}`")
            return function(*args, **given)

        return checked

    return decorate
