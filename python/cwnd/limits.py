"""Limits of a connection's rate: shares of time, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMITS = ("window", "pacing", "receiver", "application", "disk", "processor")
"""Limits of a sender's rate, in the order of output."""

_WORTH_NAMING = 0.005
"""Smallest share that is shown: 0.5 % rounds to 1 %."""


def read_limited(stats: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds for which each limit held back a connection's sender.

    Parameters
    ----------
    stats
        Result of `cwnd.udt.Connection.stats`.

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


def advise(shares: Mapping[str, float] | None) -> str | None:
    """Return one sentence of advice if a limit applied for more than a third of the time.

    Examples
    --------
    >>> advise({"window": 0.2, "receiver": 0.5}).partition(":")[0]
    'the receiver limited the rate'
    >>> advise({"window": 0.3, "receiver": 0.3, "pacing": 0.3}) is None
    True
    """
    from cwnd import _native

    return _native.transfer_advice(shares) if shares else None
