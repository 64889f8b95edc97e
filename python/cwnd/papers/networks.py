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


def dumbbell(
    name: str,
    duration: float,
    flows: list[JsonObject],
    *,
    bottleneck: JsonObject,
    access: JsonObject | None = None,
    tcp: JsonObject | None = None,
    **keys: object,
) -> Scenario:
    """Return a dumbbell: one bottleneck that all flows share.

    Parameters
    ----------
    name
        Name of the scenario.
    duration
        Length of the run in seconds.
    flows
        Each from `flow`.
    bottleneck
        ``rate``, one-way ``delay`` and ``queue`` (and ``loss``), as in a scenario file.
    access
        The access links.
    tcp
        Over ns-2's conventions and packets of 1000 bytes, which the papers' runs have by default.
    **keys
        Further keys of a scenario file: ``warmup``, ``sample``, ``cbr``, ``on_off``.
    """
    document: JsonObject = {
        "name": name,
        "duration": duration,
        "dumbbell": bottleneck,
        "tcp": {"conventions": "ns2", "packet": 1000, **(tcp or {})},
        "flow": flows,
        **keys,
    }
    if access is not None:
        document["access"] = access
    return Scenario(document)
