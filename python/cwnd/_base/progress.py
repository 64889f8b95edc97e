"""A progress bar in notebooks."""

from __future__ import annotations

import functools
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds before a progress bar is shown."""

INTERVAL = 0.1
"""Seconds between two updates of a progress bar."""


def with_notebook_bar(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that reports its completed fraction to the argument ``progress``.

    Called in a notebook without ``progress``, the function shows a progress bar after `PATIENCE`
    seconds until it returns. Elsewhere the function is called unchanged.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs.get("progress") is not None or not _in_notebook():
            return function(*args, **kwargs)
        with _bar(function.__name__) as progress:
            kwargs["progress"] = progress
            return function(*args, **kwargs)

    return call


def _in_notebook() -> bool:
    """Test whether a Jupyter kernel runs this code, without importing IPython."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


@contextmanager
def _bar(task: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar in the output of a notebook cell; remove it at the end."""
    from IPython import display

    start = time.monotonic()
    due = start + PATIENCE
    handle: Any = None

    def update(fraction: float) -> None:
        nonlocal due, handle
        now = time.monotonic()
        if now < due:
            return
        due = now + INTERVAL
        left = f", {(now - start) * (1 / fraction - 1):.0f} s left" if fraction > 0 else ""
        text = f"{task}: {fraction:.0%}{left}"
        bar = f"<progress max='1' value='{fraction:.4f}'></progress> {text}"
        content = {"text/plain": text, "text/html": bar}
        if handle is None:
            handle = display.display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            handle.update(content, raw=True)

    try:
        yield update
    finally:
        if handle is not None:
            handle.update({"text/plain": "", "text/html": ""}, raw=True)
