"""The networks of the DAIMD paper, and the laws that stand for UDT.

Packets are of 1500 bytes on the wire, the paper's standard packet, except on the real network of
Table 1. TCP has SACK and follows ns-2's conventions, without delayed ACKs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cwnd.papers.networks import dumbbell, flow
from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from cwnd.papers.text import Kind
    from cwnd.records import JsonObject

LAWS = {"UDT": "udt", "event": "daimd(feedback=event)"}
"""UDT version 4's rate control, and the paper's rule with one decrease per congestion event."""

READINGS = {name: f"daimd(feedback={name})" for name in ("packet", "syn", "report")}
"""The other readings of "any negative feedback": per lost packet, per SYN, per loss report."""

PACKET_BITS = 12_000
"""Bits in a standard packet."""

TCP: JsonObject = {"packet": 1500, "header": 0}

QUEUE = "49p"
"""Queue of section IV's simulations: ns-2's default limit of 50 packets, one of them in service."""

START = "0s..0.1s"
"""Starts of flows that start together."""

RTTS = {"10 µs": 1e-5, "100 µs": 1e-4, "1 ms": 1e-3, "10 ms": 1e-2, "100 ms": 1e-1, "1 s": 1.0}
"""RTTs of Tables 4 and 5 in seconds, by row; the first five are those of Fig. 10."""

PARKING_LOT = (
    ("n1", "n2", 100),
    ("n2", "n3", 10),
    ("n3", "n4", 100),
    ("n4", "n5", 100),
    ("n5", "n6", 100),
)
"""Links and their capacities in Mb/s, inferred from Table 3."""

PATHS = (("n1", "n2"), ("n3", "n4"), ("n1", "n5"), ("n4", "n6"), ("n4", "n5"), ("n1", "n4"))
"""Ends of flows 1 to 6, inferred from Table 3."""

UDT_PAYLOAD = 1456
"""Bytes of payload in a UDT packet of 1500 bytes."""


def kind(law: str) -> Kind:
    """Return the kind of claims on a law: the paper's numbers are those of UDT and TCP."""
    return "cell" if law in {"UDT", "TCP"} else "check"


def variant(law: str, **settings: object) -> str:
    """Return the controller of a law with further settings."""
    name, _, given = law.removesuffix(")").partition("(")
    parts = [*filter(None, [given]), *(f"{key}={value}" for key, value in settings.items())]
    return f"{name}({', '.join(parts)})" if parts else name


def without_window(law: str, capacity_mbps: float) -> str:
    """Return a law that knows the capacity and has no flow window: rate control alone."""
    return variant(law, capacity=f"{capacity_mbps * 1e6:.0f}", **{"lambda": 1})


def over_udt(scenario: Scenario) -> Scenario:
    """Replace the stand-ins of UDT by the protocol, with packets of the same size on the wire."""
    document = json.loads(scenario.to_json())
    tcp = document["tcp"]
    header = tcp["packet"] + tcp["header"] - UDT_PAYLOAD
    for each in document["flow"]:
        if each["controller"] == LAWS["UDT"]:
            each["protocol"] = "udt"
            each["tcp"] = {"packet": UDT_PAYLOAD, "header": header}
    return Scenario(document)


def climb(law: str, rate_mbps: float, rtt_s: float, begin_s: float, time_s: float) -> Scenario:
    """Return a flow that climbs an idle link from a low rate (Fig. 3).

    Until ``begin_s`` a source as fast as the link, which does not respond, holds the flow down: by
    itself it would leave slow start at the full rate.
    """
    return dumbbell(
        "daimd-climb",
        begin_s + time_s,
        [flow(law, start=START)],
        bottleneck={"rate": rate_mbps * 1e6, "delay": rtt_s / 2, "queue": "1bdp"},
        tcp=TCP,
        sample=0.1,
        cbr=[{"rate": 1e6 * rate_mbps, "packet": 1500, "stop": begin_s}],
    )


def recovery(rate_mbps: float, rtt_s: float, time_s: float) -> Scenario:
    """Return a TCP flow on a link whose queue is short beside the pipe (section III)."""
    return dumbbell(
        "daimd-recovery",
        time_s,
        [flow("reno", start=START)],
        bottleneck={"rate": rate_mbps * 1e6, "delay": rtt_s / 2, "queue": "10p"},
        tcp=TCP,
        sample=1.0,
    )


def staircase(law: str, stage_s: float) -> Scenario:
    """Return four flows that start one by one and stop in the reverse order (Fig. 5, 6)."""
    flows = [
        flow(
            law,
            name=f"flow-{n + 1}",
            start=f"{n * stage_s}s..{n * stage_s + 0.1}s",
            stop=(7 - n) * stage_s,
        )
        for n in range(4)
    ]
    return dumbbell(
        "daimd-staircase",
        # The series end a sample before the run.
        7 * stage_s + 1,
        flows,
        bottleneck={"rate": "1gbit", "delay": "52ms", "queue": "2000p"},
        # Ethernet: 1456 bytes of payload in 1538 on the wire, at most 947 Mb/s.
        tcp={"packet": UDT_PAYLOAD, "header": 82},
        sample=1.0,
    )


def _graph(
    name: str, links: list[JsonObject], flows: list[JsonObject], time_s: float, warmup_s: float
) -> Scenario:
    """Return a network of named links."""
    tcp: JsonObject = {"conventions": "ns2", **TCP}
    keys = {"name": name, "duration": time_s, "warmup": warmup_s, "sample": 1.0}
    return Scenario({**keys, "tcp": tcp, "link": links, "flow": flows})


def two_bottlenecks(law: str, y_mbps: float, time_s: float, warmup_s: float) -> Scenario:
    """Return two flows, one of which crosses a second link of ``y_mbps`` (Fig. 8)."""
    rates = {("A", "hub"): 200.0, ("hub", "B"): 200.0, ("hub", "C"): y_mbps}
    links: list[JsonObject] = [
        {"from": a, "to": b, "rate": mbps * 1e6, "delay": "0.5ms", "queue": QUEUE}
        for (a, b), mbps in rates.items()
    ]
    flows = [flow(law, name=f"A{to}", start=START, **{"from": "A", "to": to}) for to in "BC"]
    return _graph("daimd-two-bottlenecks", links, flows, time_s, warmup_s)


def parking_lot(law: str, time_s: float, warmup_s: float) -> Scenario:
    """Return six flows across five links (Fig. 11)."""
    links: list[JsonObject] = [
        {"from": a, "to": b, "rate": mbps * 1e6, "delay": "5ms", "queue": QUEUE}
        for a, b, mbps in PARKING_LOT
    ]
    flows = [
        flow(law, name=f"flow-{n}", start=START, **{"from": a, "to": b})
        for n, (a, b) in enumerate(PATHS, 1)
    ]
    return _graph("daimd-parking-lot", links, flows, time_s, warmup_s)


def near_and_far(law: str, time_s: float, warmup_s: float) -> Scenario:
    """Return five flows of different round-trip times on 100 Mb/s (Fig. 9)."""
    return dumbbell(
        "daimd-rtt",
        time_s,
        [flow(law, rtt=rtt, start=START) for rtt in [*RTTS.values()][:5]],
        bottleneck={"rate": "100mbit", "delay": "1us", "queue": QUEUE},
        tcp=TCP,
        warmup=warmup_s,
        sample=1.0,
    )


def beside_tcp(law: str, rate_mbps: float, rtt_s: float, time_s: float) -> Scenario:
    """Return one flow beside one of TCP; the first quarter is the warm-up (Fig. 14)."""
    queue = max(100, round(rate_mbps * 1e6 * rtt_s / PACKET_BITS))
    return dumbbell(
        "daimd-beside-tcp",
        time_s,
        [flow(law, name="udt", start=START), flow("reno", name="tcp", start=START)],
        bottleneck={"rate": rate_mbps * 1e6, "delay": rtt_s / 2, "queue": f"{queue}p"},
        tcp=TCP,
        warmup=time_s / 4,
        sample=time_s / 100,
    )


def ten_flows(
    law: str, rtt_s: float, time_s: float, warmup_s: float, sample_s: float = 1.0
) -> Scenario:
    """Return ten flows on 1 Gb/s with a queue of 2000 packets (section VI)."""
    return dumbbell(
        "daimd-ten-flows",
        time_s,
        [flow(law, count=10, start=START)],
        bottleneck={"rate": "1gbit", "delay": rtt_s / 2, "queue": "2000p"},
        # Access links as slow as the bottleneck would hold the queue.
        access={"rate": "10gbit"},
        tcp=TCP,
        warmup=warmup_s,
        sample=sample_s,
    )


def lossy(
    law: str, p: float, time_s: float, sample_s: float, rate_mbps: float | None = None
) -> Scenario:
    """Return one flow on a link that loses each packet with probability ``p`` (Table 6).

    Without a rate the link is infinitely fast, with an RTT of 100 ms; else the RTT is 10 ms.
    """
    rtt_s = 0.1 if rate_mbps is None else 0.01
    rate = "infinite" if rate_mbps is None else rate_mbps * 1e6
    return Scenario(
        {
            "name": "daimd-lossy",
            "duration": time_s,
            "warmup": time_s / 4,
            "sample": sample_s,
            "link": [{"from": "a", "to": "b", "rate": rate, "delay": rtt_s / 2, "loss": p}],
            "tcp": {"conventions": "ns2", **TCP},
            "flow": [flow(law, start=START, **{"from": "a", "to": "b"})],
        }
    )


def misjudged(capacities_mbps: tuple[float, float], time_s: float, warmup_s: float) -> Scenario:
    """Return two flows on 100 Mb/s that are given these capacities (section VII)."""
    flows = [
        flow(variant(LAWS["event"], capacity=f"{mbps * 1e6:.0f}"), name=f"flow-{n}", start=START)
        for n, mbps in enumerate(capacities_mbps, 1)
    ]
    return dumbbell(
        "daimd-misjudged",
        time_s,
        flows,
        bottleneck={"rate": "100mbit", "delay": "10ms", "queue": "1bdp"},
        tcp=TCP,
        warmup=warmup_s,
        sample=1.0,
    )
