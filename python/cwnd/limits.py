"""What limits the rate of a connection: shares of time, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMITS = ("window", "pacing", "receiver", "application", "disk", "processor")
"""The limits of a sender's rate, in the order in which they are written."""

_WORTH_NAMING = 0.005


def read_limited(stats: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds for which each limit held a connection's sender back.

    Parameters
    ----------
    stats
        As `cwnd.udt.Connection.stats` returns them.

    Examples
    --------
    >>> read_limited({"us_limited_window_total": 2_500_000, "us_limited_pacing_total": 0})
    {'window': 2.5, 'pacing': 0.0}
    """
    found = {name: stats.get(f"us_limited_{name}_total") for name in LIMITS}
    return {name: value / 1e6 for name, value in found.items() if value is not None}


def to_shares(seconds: Mapping[str, float]) -> dict[str, float] | None:
    """Turn seconds into shares of their sum; None where nothing was measured.

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


def describe_limits(shares: Mapping[str, float] | None) -> str:
    """Name the limits in percent, the largest first.

    Examples
    --------
    >>> describe_limits({"window": 0.75, "receiver": 0.25, "disk": 0.0})
    'limited by the window 75 %, the receiver 25 %'
    """
    named = sorted(
        ((share, name) for name, share in (shares or {}).items() if share >= _WORTH_NAMING),
        key=lambda pair: -pair[0],
    )
    if not named:
        return "limits unknown"
    return "limited by " + ", ".join(f"{_NOUNS[name]} {100 * share:.0f} %" for share, name in named)


def advise(shares: Mapping[str, float] | None) -> str | None:
    """Return one sentence of advice if a limit held for more than a third of the time.

    Examples
    --------
    >>> advise({"window": 0.2, "receiver": 0.5})
    'the receiver takes the data in too slowly: see its processor and disk'
    >>> advise({"window": 0.3, "receiver": 0.3, "pacing": 0.3}) is None
    True
    """
    if not shares:
        return None
    share, name = max((share, name) for name, share in shares.items())
    return _ADVICE[name] if share > _ADVISED else None


_ADVISED = 1 / 3
_ADVICE = {
    "window": "the path limits this controller: docs/transfer.md lists which --cc suits which path",
    "pacing": "the controller's pacing is the limit: docs/transfer.md lists which --cc suits which "
    "path",
    "receiver": "the receiver takes the data in too slowly: see its processor and disk",
    "application": "the sender had nothing to send: its source is slower than the path",
    "disk": "the disk is slower than the path",
    "processor": "the sender's processor is slower than the path",
}
_NOUNS = {name: f"the {name}" for name in LIMITS} | {"pacing": "pacing"}
