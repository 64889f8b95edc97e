"""Networks in few words, for the packages of the papers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from cwnd.records import JsonObject

EARLY = "0s..1s"
"""Flows that start together draw their starts from the first second."""


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

    TCP follows ns-2's conventions, with packets of 1000 bytes, but for ``tcp``.
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
    """Return a `network` of one bottleneck that all flows share.

    ``bottleneck`` has ``rate``, one-way ``delay`` and ``queue`` (and ``loss``).
    """
    return network(name, duration, flows, tcp=tcp, dumbbell=bottleneck, **keys)
