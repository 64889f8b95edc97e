"""Networks of the GAIMD paper; its β is the fraction of the window that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from cwnd._papers.networks import dumbbell, flow

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._runs.scenario import Scenario

Pair: TypeAlias = tuple[float, float]
"""Increase α in packets per round-trip time, and fraction β of the window that is kept."""

TCP, SMOOTH = (1.0, 0.5), (0.31, 0.875)
"""Values of TCP, and the paper's choice."""

QUEUES: dict[str, tuple[str | JsonObject, str]] = {
    "DropTail": ("99p", "ns2"),
    "RED": ({"kind": "red", "limit": "250p"}, "ns2"),
    "RED, 0.1 s clock": ({"kind": "red", "limit": "250p"}, "ns2-2001"),
}
"""Queue and conventions of the flows, by name."""

INTERVAL = 0.2
"""Seconds between samples of a flow's round-trip time."""

CLOCK = {"ns2": (0.01, 0.2), "ns2-2001": (0.1, 0.2)}
"""Granularity and minimum of the retransmission timer in seconds, by conventions."""


def clock(network: str) -> tuple[float, float]:
    """Return the granularity and minimum of the timers on one of `QUEUES`, in seconds."""
    return CLOCK[QUEUES[network][1]]


def law(pair: Pair) -> str:
    """Return the specification of a controller."""
    return f"gaimd({pair[0]}, {pair[1]})"


def validation(pair: Pair, sources: int, network: str, room: str = "") -> Scenario:
    """Return section 2.4's network: 16 GAIMD flows, 16 Reno flows, and ON/OFF sources; 120 s.

    ``room`` is another limit of the RED queues.
    """
    laws = {"gaimd": law(pair), "reno": "reno"}
    made = _mixed("validation", network, "reno", laws, 16, sources, sample=INTERVAL)
    longer = room and network != "DropTail"
    return made.with_values({"dumbbell.queue.limit": room}) if longer else made


def sharing(flows: int, queue: str, recovery: str, sources: int = 10) -> Scenario:
    """Return a link that ``flows`` of GAIMD(0.31, 7/8) and as many of TCP share for 120 s.

    ``recovery`` is ``reno`` or ``sack``; the first 20 s are warm-up.
    """
    laws = {"gaimd": law(SMOOTH), "tcp": "reno"}
    return _mixed("sharing", queue, recovery, laws, flows, sources, warmup=20.0)


def _mixed(
    name: str,
    network: str,
    recovery: str,
    laws: dict[str, str],
    count: int,
    sources: int,
    **keys: object,
) -> Scenario:
    """Return the paper's dumbbell with ``count`` flows of each law and ON/OFF sources."""
    queue, conventions = QUEUES[network]
    source = {"rate": "500kbit", "packet": 1000, "on": "1s", "off": "2s", "shape": 1.5}
    return dumbbell(
        f"gaimd-{name}",
        120.0,
        [flow(law, name=of, count=count, start="0s..10s") for of, law in laws.items()],
        bottleneck={"rate": "15mbit", "delay": "50ms", "queue": queue},
        access={"rate": "100mbit", "delay": "0ms..10ms"},
        tcp={"conventions": conventions, "recovery": recovery},
        pareto=[{**source, "count": sources, "start": "0s..3s"}],
        **keys,
    )


def lossy(pair: Pair, loss: float, *, delayed: bool = False) -> Scenario:
    """Return one flow for 400 s on a path of 100 ms without a queue and with random loss.

    ``delayed`` makes the receiver delay its acknowledgements.
    """
    return dumbbell(
        "gaimd-lossy",
        400.0,
        [flow(law(pair), start=0)],
        bottleneck={"rate": "1gbit", "delay": "50ms", "queue": "infinite", "loss": loss},
        tcp={"recovery": "reno", "delayed_acks": delayed},
        sample=INTERVAL,
    )
