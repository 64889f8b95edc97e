"""What a driver reports to a controller written in Python.

Objects are frozen. Times are in seconds, windows in packets, rates in packets per second. The
constructors take keyword arguments with defaults, for tests of a controller.
"""

from __future__ import annotations

from typing import TypeAlias

from cwnd._native import (
    Acked,
    Context,
    Conventions,
    Handshake,
    LossSample,
    Lost,
    Marked,
    Mtu,
    PersistentCongestion,
    RateSample,
    Recovered,
    Reduced,
    Report,
    Round,
    Settings,
    Tick,
    Timeout,
    Undo,
)

__all__ = [
    "Acked",
    "Context",
    "Conventions",
    "Event",
    "Handshake",
    "LossSample",
    "Lost",
    "Marked",
    "Mtu",
    "PersistentCongestion",
    "RateSample",
    "Recovered",
    "Reduced",
    "Report",
    "Round",
    "Settings",
    "Tick",
    "Timeout",
    "Undo",
]

Event: TypeAlias = (
    Acked
    | Handshake
    | Lost
    | Marked
    | Report
    | Recovered
    | Timeout
    | PersistentCongestion
    | Undo
    | Reduced
    | Mtu
    | Tick
)
"""An event of a whole controller."""
