"""Text that is safe on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def printable(text: str, quote: Callable[[str], str] = ascii) -> str:
    r"""Escape the characters of a text that are not printable, line breaks included.

    A terminal obeys some of them, such as escape sequences, and hides others, such as marks that
    reverse the order of a line. ``quote`` returns the escaped form of a character between quotes.

    Examples
    --------
    >>> print(printable("naïve\x1b[2J\n"))
    naïve\x1b[2J\n
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else quote(c)[1:-1] for c in text)
