"""Constructors of the papers' networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._runs.scenario import Scenario

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject

EARLY = "0s..1s"
"""Range of the start times of flows that start together."""


def flow(controller: str, **keys: object) -> JsonObject:
    """Return a ``[[flow]]`` of a scenario; it starts `EARLY` by default."""
    return {"controller": controller, "start": EARLY, **keys}


def network(
    name: str,
    duration: float,
    flows: list[JsonObject],
    *,
    tcp: JsonObject | None = None,
    **keys: object,
) -> Scenario:
    """Return a scenario of ``duration`` seconds; ``keys`` are further keys of a scenario file.

    TCP follows ns-2's conventions, with packets of 1000 bytes, except for the keys of ``tcp``.
    """
    tcp = {"conventions": "ns2", "packet": 1000, **(tcp or {})}
    return Scenario({"name": name, "duration": duration, **keys, "tcp": tcp, "flow": flows})


def dumbbell(
    name: str,
    duration: float,
    flows: list[JsonObject],
    *,
    bottleneck: JsonObject,
    tcp: JsonObject | None = None,
    **keys: object,
) -> Scenario:
    """Return a `network` with a single bottleneck that all flows share.

    ``bottleneck`` has ``rate``, one-way ``delay`` and ``queue``, and optionally ``loss``.
    """
    return network(name, duration, flows, tcp=tcp, dumbbell=bottleneck, **keys)
