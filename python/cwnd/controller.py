"""A congestion controller written in Python: a class with ``grow`` and ``cut``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

Cause: TypeAlias = Literal["loss", "mark", "timeout"]
"""Why a window is cut."""


class Context(Protocol):
    """What a controller may look at besides its window; times in seconds."""

    @property
    def now(self) -> float:
        """The time of the event."""

    @property
    def rtt(self) -> float | None:
        """The smoothed round-trip time (RFC 6298); None before the first sample."""

    @property
    def min_rtt(self) -> float | None:
        """The smallest round-trip time so far; None before the first sample."""

    @property
    def last_cut(self) -> float:
        """When the last cut was, or when the connection began."""

    @property
    def packet(self) -> int:
        """Bytes in a packet."""


class Controller(Protocol):
    """A law for the congestion window, in packets.

    Slow start, loss recovery, timers and clamps are around it: ``grow`` and ``cut`` are called only
    where the law applies. The optional ``enter``, ``round`` and ``observe`` of the Rust trait
    ``WindowLaw`` may be there too, and ``own_threshold() -> bool``, called once for each flow. If
    True, the answer of ``cut`` is the slow-start threshold after every cause, also above the
    window. If not, the threshold is at most half of the window in slow start and after a timeout
    (RFC 5681).
    """

    def grow(self, w: float, acked: float, cx: Context, /) -> float:
        """Give the window after ``acked`` packets were acknowledged at window ``w``."""

    def cut(self, w: float, why: Cause, cx: Context, /) -> float:
        """Give the window after a congestion signal at window ``w``, at most once a window."""


Factory: TypeAlias = Callable[[], Controller]
"""Makes the controller of one flow: a class, or any function without arguments."""
