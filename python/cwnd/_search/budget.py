"""Budget of a search, in runs or in wall time."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from cwnd.errors import ArgumentError
from cwnd.units import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = 2
"""Networks of the first step of a budget in time, which measures how long a run takes."""

_RUNS = re.compile(r"\s*([0-9]+)\s*runs?\s*")


class Budget:
    """A number of runs or of seconds; the same runs are made for the same number of runs.

    Examples
    --------
    >>> budget = Budget("1000runs")
    >>> budget.start(lambda: 250)
    >>> budget.used
    0.25
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._seconds = 0.0
        match = _RUNS.fullmatch(text) if isinstance(text, str) else None
        self.runs = int(match[1]) if match else 0
        if match is None:
            try:
                self._seconds = parse_time(text)
            except (ValueError, TypeError):
                raise ArgumentError(
                    "budget", f'{text!r} is neither a time such as "60s" nor "1000runs"'
                ) from None
        if match and not self.runs:
            raise ArgumentError("budget", f"{text} is no run")

    def start(self, spent: Callable[[], int]) -> None:
        """Begin now; ``spent`` returns the number of runs so far."""
        self._begin, self._spent = time.monotonic(), spent

    @property
    def used(self) -> float:
        """The used fraction."""
        if self.runs:
            return self._spent() / self.runs
        return (time.monotonic() - self._begin) / self._seconds

    def room(self, until: float, runs_of_network: int, most: int) -> int:
        """Return how many networks fit into a fraction of the budget, at most ``most``.

        In a budget in time at least one does, until the fraction is used.
        """
        used, spent = self.used, self._spent()
        if used >= until:
            return 0
        if self.runs:
            return min(int((until * self.runs - spent) / runs_of_network), most)
        if not spent:
            return min(FIRST, most)
        return min(max(int((until / used - 1) * spent / runs_of_network), 1), most)
