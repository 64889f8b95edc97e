"""Networks of the SIMD paper.

Packets have 1000 bytes without headers (500 in the convergence tests), as in ns-2 of spring 2001.
``beta`` is the fraction of the window given up. Rates are in Mb/s, times in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._papers.networks import EARLY, dumbbell, flow, network

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._runs.scenario import Scenario

SIMD = "simd(beta=1/16)"
LAWS = {"TCP": "reno", "AIMD": "aimd(0.1, 1/16)", "IIAD": "iiad", "SIMD": SIMD}
"""Laws of section 5.3, by the paper's names."""

QUEUES: dict[str, JsonObject | str] = {
    "RED with ECN": {"kind": "red", "ecn": True},
    "RED": "red",
    "DropTail": "1.5bdp",
}
"""Bottleneck queues of section 5.2; other parameters of Table 2 are the defaults."""

_NS2 = {"conventions": "ns2-2001"}
_LATE = "0s..5s"


def _one_flow(
    name: str,
    controller: str,
    duration: float,
    link: JsonObject,
    tcp: JsonObject,
    *,
    start: object = EARLY,
    sample: str = "10s",
    **keys: object,
) -> Scenario:
    """Return one flow on a link of 0.1 s."""
    ends = {"from": "source", "to": "sink"}
    keys |= {"link": [{**ends, "delay": "50ms", **link}], "sample": sample}
    return network(name, duration, [flow(controller, **ends, start=start)], tcp=tcp, **keys)


def growth(controller: str, background: str = "7mbit") -> Scenario:
    """Return one flow whose available rate quadruples at 30 s, when other traffic ends.

    Before that about 60 packets are in flight; afterwards there is no queue below 120.
    """
    cbr = {"rate": background, "from": "source", "to": "sink", "stop": "30s", "jitter": 0.5}
    link = {"rate": "10mbit", "queue": "30p"}
    tcp = {
        "conventions": "rfc5681",
        "delayed_acks": False,
        "byte_counting": False,
        "overhead": "0s",
    }
    return _one_flow("simd-growth", controller, 60, link, tcp, sample="20ms", cbr=[cbr])


def random_loss(
    controller: str, loss: float, rtts: int = 3000, *, recovery: str = "sack"
) -> Scenario:
    """Return one flow on a link of infinite rate and 0.1 s with random loss (section 5.1)."""
    tcp = {**_NS2, "window": 128, "recovery": recovery}
    return _one_flow("simd-random-loss", controller, 0.1 * rtts, {"loss": loss}, tcp, start=0)


def periodic_loss(controller: str, packets: int) -> Scenario:
    """Return one flow on a link of 0.1 s with room for ``packets``: one loss per epoch."""
    queue = packets // 10
    link = {"rate": f"{80 * (packets - queue)}kbit", "queue": f"{queue}p"}
    return _one_flow("simd-periodic-loss", controller, 400, link, _NS2, warmup=100)


def compatibility(
    rate: int,
    queue: str,
    n: int,
    *,
    controller: str = SIMD,
    warmup: int = 30,
    measured: int = 60,
    sample: str = "1s",
    recovery: str = "sack",
) -> Scenario:
    """Return n flows of a law and n TCP flows on one bottleneck (section 5.2).

    ``queue`` is a key of `QUEUES`.
    """
    flows = [
        flow(controller, name="law", count=n, start=_LATE),
        flow("reno", name="tcp", count=n, start=_LATE),
        flow("reno", name="back", count=4, start=_LATE, reverse=True, measured=False),
    ]
    ecn, keys = queue.endswith("ECN"), {"warmup": warmup, "sample": sample}
    duration = warmup + measured
    tcp = {"ecn": ecn, "recovery": recovery}
    return _section_5_2("compatibility", duration, flows, rate, QUEUES[queue], tcp, **keys)


def sudden(controller: str, other: int, begin: int, duration: int) -> Scenario:
    """Return two flows of a law, and CBR traffic of ``other`` from ``begin`` to 2 ``begin``."""
    flows = [flow(controller, count=2, start=_LATE)]
    cbr = [{"rate": f"{other}mbit", "start": begin, "stop": 2 * begin}]
    keys: JsonObject = {"warmup": begin, "sample": "50ms", "cbr": cbr}
    return _section_5_2("sudden", duration, flows, 15, "red", **keys)


def _section_5_2(
    name: str,
    duration: int,
    flows: list[JsonObject],
    rate: int,
    queue: JsonObject | str,
    tcp: JsonObject | None = None,
    **keys: object,
) -> Scenario:
    """Return the dumbbell of section 5.2."""
    return dumbbell(
        f"simd-{name}",
        duration,
        flows,
        bottleneck={"rate": f"{rate}mbit", "delay": "20ms", "bdp_rtt": "60ms", "queue": queue},
        access={"rate": f"{10 * rate}mbit", "delay": "0ms..10ms"},
        tcp={**_NS2, "window": 1000, **(tcp or {})},
        **keys,
    )


def convergence(
    controller: str, experiment: int, switch: int, after: int, *, queue: str = "red"
) -> Scenario:
    """Return two flows that are alone from ``switch`` on the middle link of Figure 9's chain.

    Experiment 1: before that, flow 1 shared its first link with 15 flows, and flow 2 had its link
    alone (section 5.3.1). Experiment 2: both shared theirs, with 11 and with 3 flows (5.3.2).
    ``queue`` is that of the middle link.
    """
    c1, c2, y = {1: (15, 0, 6), 2: (11, 3, 10)}[experiment]
    trunk = {"delay": "12ms", "bdp_rtt": "50ms", "queue": "red", "back": {"queue": "2.5bdp"}}
    ends: JsonObject = {"stop": switch, "measured": False}
    return network(
        f"simd-convergence-{experiment}",
        switch + after,
        [
            flow(controller, name=name, start="0s..2s", **{"from": a, "to": b}, **keys)
            for name, a, b, keys in (
                ("s1", "b1", "b3", {}),
                ("s2", "b2", "b4", {}),
                ("c1", "b1", "b2", {"count": c1, **ends}),
                ("c2", "b3", "b4", {"count": c2, **ends}),
            )
        ],
        tcp={**_NS2, "packet": 500, "window": 128},
        access={"rate": "100mbit", "delay": "0.25ms..0.75ms"},
        link=[
            {"from": a, "to": b, "rate": f"{rate}mbit", **trunk, **keys}
            for a, b, rate, keys in (
                ("b1", "b2", 6, {}),
                ("b2", "b3", 6, {"queue": queue}),
                ("b3", "b4", y, {}),
            )
        ],
        sample="50ms",
    )
