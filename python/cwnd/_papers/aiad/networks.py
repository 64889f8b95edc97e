"""Network of section IV: one bottleneck, and a CBR flow on the reverse path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._papers.networks import dumbbell, flow

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._runs.scenario import Scenario

KAPPA, PHI = "aiad(rate=ack)", "aiad(rate=receiver)"
"""AIAD with the rate of the ACKs, as in TCP Westwood, and with the rate at the receiver."""

RATE, CBR = 3e6, 2e6
"""Capacity of the bottleneck in each direction, and rate of the CBR flow, in bit/s."""
PACKET, ACK = 1000, 40
"""Sizes of a data packet and of an ACK in bytes."""
RHO = ACK / PACKET
BUSY = 50.0
"""Length of the CBR flow's on and off periods, and start of the first on period, in seconds."""


def letter(
    controller: str,
    flows: int = 1,
    *,
    queue: int = 20,
    duration: float = 500.0,
    clock: str = "1us",
    scale: float = 1.0,
    sample: str = "500ms",
    cbr: JsonObject | None = None,
) -> Scenario:
    """Return the network of section IV with N flows.

    ``queue`` is the limit in packets in each direction, including the one in transmission;
    ``duration`` is in seconds; ``clock`` is the granularity of the timestamps; ``scale`` multiplies
    all rates; ``cbr`` replaces the CBR flow, which is on and off for `BUSY` seconds each.
    """
    source = {"rate": CBR * scale, "start": BUSY, "on": BUSY, "off": BUSY} if cbr is None else cbr
    return dumbbell(
        "aiad",
        duration,
        [flow(controller, count=flows)],
        bottleneck={"rate": RATE * scale, "delay": "50ms", "queue": f"{queue - 1}p"},
        access={"rate": 100e6 * scale, "delay": "1ms"},
        tcp={"packet": PACKET, "header": 0, "ack": ACK, "timestamps": clock},
        sample=sample,
        cbr=[{"packet": PACKET, "reverse": True, **source}],
    )


def steady_reverse(controller: str, rate: float, *, duration: float) -> Scenario:
    """Return the network with one flow and a permanent CBR flow of ``rate`` bit/s."""
    # Without jitter the phase, which depends on the flow's start, would persist for the whole run.
    source = {"rate": rate, "start": 0.0, "jitter": 0.1}
    return letter(controller, duration=duration, cbr=source)


def lossy_reverse(controller: str, loss: float, *, duration: float) -> Scenario:
    """Return the network with one flow; the reverse bottleneck loses packets at random."""
    back = {"loss": loss, "loss_of_acks": True}
    return letter(controller, duration=duration).with_values({"dumbbell.back": back})
