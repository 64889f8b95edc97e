"""Limits of a connection's rate: shares of time, and advice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMITS = ("window", "pacing", "receiver", "application", "disk", "processor")
"""Limits of a sender's rate, in the order of output."""

_WORTH_NAMING = 0.005
"""Smallest share that is shown: 0.5 % rounds to 1 %."""

DEFAULT_CONTROLLER = "cubic"
"""Controller of `send` and `perf`, by the rule in docs/transfer.md."""

PathState: TypeAlias = Literal["full", "lossy", "free"]
"""A path with a queue, one that loses packets without a queue, and one without either."""

_PATHS: dict[PathState, tuple[str, str, str]] = {
    "full": ("the network limited the rate: packets waited in its queue", "", ""),
    "lossy": ("packets were lost without a queue", "bbr3", "keeps its rate at such losses"),
    "free": (
        "the controller limited the rate: packets neither waited nor were lost",
        "cubic",
        "reaches the rate of such a path sooner",
    ),
}
"""State of the path: sentence, the controller that suits it, and why."""

_ADVICE = {
    "window": "the congestion window limited the rate",
    "pacing": "the controller's sending rate, or a rate limit, limited the rate",
    "receiver": (
        "the receiver limited the rate: its disk, its processor, or its receive buffer on a long "
        "path"
    ),
    "disk": "reading or writing files limited the rate, not the network",
    "processor": "the processor limited the rate, not the network",
    "sender": "the sender or the network limited the rate: the sender's own report says which",
    "application": (
        "the sender waited for its source or for answers: the network could have carried more"
    ),
}
"""Sentence by limit."""

_QUEUE_PART = 0.25
_MIN_QUEUE_S = 0.001
"""A path has a queue if packets wait for this part of the least round-trip time, and this time."""


def read_limited(stats: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds for which each limit held back a sender, from `cwnd.udt.Connection.stats`.

    Examples
    --------
    >>> read_limited({"us_limited_window_total": 2_500_000, "us_limited_pacing_total": 0})
    {'window': 2.5, 'pacing': 0.0}
    """
    found = {name: stats.get(f"us_limited_{name}_total") for name in LIMITS}
    return {name: value / 1e6 for name, value in found.items() if value is not None}


def to_shares(seconds: Mapping[str, float]) -> dict[str, float] | None:
    """Convert seconds to shares of their sum; None without measurements.

    Examples
    --------
    >>> shares = to_shares({"window": 3.0, "receiver": 1.0})
    >>> shares["window"], shares["receiver"], shares["disk"]
    (0.75, 0.25, 0.0)
    """
    total = sum(seconds.values())
    if not total > 0:
        return None
    return {name: seconds.get(name, 0.0) / total for name in LIMITS}


def describe_limits(shares: Mapping[str, float]) -> str:
    """Format the shares in percent, largest first.

    Examples
    --------
    >>> describe_limits({"window": 0.75, "receiver": 0.25, "disk": 0.0})
    'window 75 %, receiver 25 %'
    """
    named = sorted(shares.items(), key=lambda pair: -pair[1])
    return ", ".join(
        f"{name} {100 * share:.0f} %" for name, share in named if share >= _WORTH_NAMING
    )


def conclude_limits(shares: Mapping[str, float] | None, advice: str | None) -> str:
    """Return the line that names the limits of the rate, with advice if there is any.

    Examples
    --------
    >>> conclude_limits({"disk": 1.0}, "the disk is slow")
    'limited by: disk 100 %: the disk is slow'
    """
    text = f"limited by: {describe_limits(shares or {}) or 'unknown'}"
    return text if advice is None else f"{text}: {advice}"


def main_limit(shares: Mapping[str, float] | None) -> tuple[str, float] | None:
    """Return the limit with the largest share, and the share.

    Examples
    --------
    >>> main_limit({"window": 0.75, "receiver": 0.25})
    ('window', 0.75)
    """
    return max((shares or {}).items(), key=lambda pair: pair[1], default=None)


class Path:
    """What a sender measured of its path over time: delays, and losses with and without a queue."""

    def __init__(self) -> None:
        self._least = math.inf
        self._sum = 0.0
        self._count = 0
        self._lost = 0
        self._lost_in_queue = 0

    def add(self, rtt_s: float, lost: int) -> None:
        """Add a sample: smoothed round-trip time (0 is ignored), packets lost so far."""
        if rtt_s <= 0:
            return
        self._least = min(self._least, rtt_s)
        self._sum += rtt_s
        self._count += 1
        if self._is_queue(rtt_s):
            self._lost_in_queue += lost - self._lost
        self._lost = lost

    def _is_queue(self, rtt_s: float) -> bool:
        return rtt_s - self._least > max(_MIN_QUEUE_S, _QUEUE_PART * self._least)

    @property
    def state(self) -> PathState | None:
        """How the path limits a sender; None without samples.

        Examples
        --------
        >>> path = Path()
        >>> for rtt_s, lost in [(0.040, 0), (0.042, 3), (0.041, 6)]:
        ...     path.add(rtt_s, lost)
        >>> path.state
        'lossy'
        """
        if not self._count:
            return None
        if self._lost > 2 * self._lost_in_queue:
            return "lossy"
        return "full" if self._is_queue(self._sum / self._count) else "free"


def check_state(value: object) -> PathState | None:
    """Validate the state of a path that a peer sent, or None; otherwise ValueError."""
    if value is not None and value not in _PATHS:
        raise ValueError(value)
    return value


def advise(
    shares: Mapping[str, float] | None,
    state: PathState | None = None,
    controller: str | None = None,
) -> str | None:
    """Return one sentence of advice if a limit applied for more than a third of the time.

    The state of the path and the sender's controller serve to advise another controller.

    Examples
    --------
    >>> advise({"window": 0.2, "receiver": 0.5}).partition(":")[0]
    'the receiver limited the rate'
    >>> advise({"window": 0.3, "receiver": 0.3, "pacing": 0.3}) is None
    True
    >>> advise({"window": 0.8}, "lossy", "cubic")
    'packets were lost without a queue: bbr3 keeps its rate at such losses (80 % of the time)'
    """
    largest = main_limit(shares)
    if largest is None or not largest[1] > 1 / 3:
        return None
    name, share = largest
    by_controller = state is not None and name in {"window", "pacing"}
    sentence = _advise_controller(state, controller) if by_controller else _ADVICE[name]
    return f"{sentence} ({100 * share:.0f} % of the time)"


def _advise_controller(state: PathState | None, controller: str | None) -> str:
    """Return advice on a controller that limited the rate."""
    name = (controller or "").partition("(")[0].lower()
    sentence, better, why = _PATHS[state or "full"]
    return f"{sentence}: {better} {why}" if better and name != better else sentence
