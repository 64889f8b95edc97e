"""Defaults of arguments that are also options of the command line.

The command line reads them at its start: this module imports only what is light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, get_args

from cwnd._runs.conventions import CONVENTIONS

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd.units import Quantity


class DumbbellArguments(TypedDict):
    """Arguments of a dumbbell, as for `cwnd.compare`."""

    rate: str
    rtt: str
    queue: str | JsonObject
    flows: int
    time: str
    warmup: str | None
    loss: Quantity
    conventions: str


DUMBBELL: DumbbellArguments = {
    "rate": "15mbit",
    "rtt": "100ms",
    "queue": "red",
    "flows": 8,
    "time": "120s",
    "warmup": None,
    "loss": 0,
    "conventions": CONVENTIONS,
}
"""Arguments of a dumbbell with their defaults."""

REFERENCE = "reno"
"""Controller that the others are compared with."""

BACKEND = "sim"

AGREE_BACKENDS = ("sim", "linux")
"""Backends that `cwnd.agree` compares."""

STACKS = ("noq", "quinn")
"""QUIC stacks, in the simulator and over sockets."""

CHECKED_LAWS = ("reno", "cubic", "other")
CHECKED_PROTOCOLS = ("tcp", "quic")
"""What `cwnd conform` has rules of."""

TRACE_FORMATS = ("mahimahi", "pensieve", "netem-trace", "csv")
"""Formats of recorded links."""

PANELS = ("verdicts", "delay", "shares", "windows")
"""Panels of the plot of a comparison."""

COMPARE_REPEATS = 10
AGREE_REPEATS = 5
"""Numbers of repeats, with which ``auto`` starts."""

SUITE = "rfc9743"
"""Suite of an evaluation."""

SCORE_SUITE = "default"
SCORE_STAGE = "full"
"""Suite and last stage of a score."""

Stage: TypeAlias = Literal["parse", "quick", "full", "search", "held-out", "kernel"]

SCORE_STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages of a score in their order."""

SEED = 1
"""Seed where no scenario has one."""

SHARD = (1, 1)
"""Share of a sweep: all runs."""

SEARCH_AGAINST = "cubic"
"""Reference of a search; that of `cubic` itself is `reno`."""

SEARCH_OBJECTIVE = "goodput"
SEARCH_BUDGET = "60s"
SEARCH_FINDINGS = 10
"""Objective, budget, and largest number of findings of a search."""

CARD_BUDGET = "1800runs"
"""Budget of the search of an evaluation."""

MTU = 1500
"""Largest packet in bytes, headers included."""

RETRY = 5
"""Number of further attempts to send."""

RESERVE = "5%"
"""Part of the disk that a receiver keeps free."""

INTERVAL_S = 1.0
"""Seconds between two reports of a throughput test."""
