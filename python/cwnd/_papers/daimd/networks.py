"""Networks of the DAIMD paper.

Packets have 1500 bytes on the wire, the paper's standard packet, except on the real network of
Table 1. TCP has SACK and follows ns-2's conventions, without delayed ACKs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cwnd._papers.networks import dumbbell, flow, network
from cwnd._runs.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd._base.records import JsonObject

LAW, UDT = "daimd", "udt"
"""The paper's law (section II with Eq. 8), and the rate control of UDT version 4."""

PACKET_BITS = 12_000
"""Bits in a standard packet."""

TCP: JsonObject = {"packet": 1500, "header": 0}

QUEUE = "49p"
"""Queue of section IV's simulations: ns-2's default limit of 50 packets, one of them in service."""

START = "0s..0.1s"
"""Range of the start times of flows that start together."""

RTTS = {"10 µs": 1e-5, "100 µs": 1e-4, "1 ms": 1e-3, "10 ms": 1e-2, "100 ms": 1e-1, "1 s": 1.0}
"""RTTs of Tables 4 and 5 in seconds, by row; the first five are also Fig. 10's."""

PARKING_LOT = (
    ("n1", "n2", 100),
    ("n2", "n3", 10),
    ("n3", "n4", 100),
    ("n4", "n5", 100),
    ("n5", "n6", 100),
)
"""Links with their capacities in Mb/s, inferred from Table 3."""

PATHS = (("n1", "n2"), ("n3", "n4"), ("n1", "n5"), ("n4", "n6"), ("n4", "n5"), ("n1", "n4"))
"""Endpoints of flows 1 to 6, inferred from Table 3."""

UDT_PAYLOAD = 1456
"""Payload in bytes of a UDT packet of 1500 bytes."""


def variant(law: str, **parameters: object) -> str:
    """Return the specification of a law with further parameters."""
    name, _, given = law.removesuffix(")").partition("(")
    parts = [*filter(None, [given]), *(f"{key}={value}" for key, value in parameters.items())]
    return f"{name}({', '.join(parts)})" if parts else name


def without_window(law: str, capacity_mbps: float) -> str:
    """Return a law with a known capacity and no flow window: rate control alone."""
    return variant(law, capacity=f"{capacity_mbps * 1e6:.0f}bit", **{"lambda": 1})


def over_udt(scenario: Scenario) -> Scenario:
    """Replace UDT's rate control by the UDT protocol, with equal packet sizes on the wire."""
    document = json.loads(scenario.to_json())
    tcp = document["tcp"]
    header = tcp["packet"] + tcp["header"] - UDT_PAYLOAD
    for each in document["flow"]:
        if each["controller"] == UDT:
            each["protocol"] = "udt"
            each["tcp"] = {"packet": UDT_PAYLOAD, "header": header}
    return Scenario(document)


def _one_link(
    name: str,
    time_s: float,
    flows: list[JsonObject],
    rate_mbps: float,
    rtt_s: float,
    queue: str,
    sample: float = 1.0,
    tcp: JsonObject = TCP,
    **keys: object,
) -> Scenario:
    """Return a dumbbell with a capacity and a round-trip time."""
    link = {"rate": f"{rate_mbps:g}mbit", "delay": f"{500 * rtt_s:g}ms", "queue": queue}
    keys = {"sample": sample, **keys}
    return dumbbell(f"daimd-{name}", time_s, flows, bottleneck=link, tcp=tcp, **keys)


def climb(law: str, rate_mbps: float, rtt_s: float, begin_s: float, time_s: float) -> Scenario:
    """Return a flow whose rate grows on an idle link from a low rate (Fig. 3).

    Until ``begin_s`` an unresponsive source at the link's rate limits the flow, which would
    otherwise leave slow start at the full rate.
    """
    flows = [flow(law, start=START)]
    cbr = [{"rate": 1e6 * rate_mbps, "packet": 1500, "stop": begin_s}]
    return _one_link("climb", begin_s + time_s, flows, rate_mbps, rtt_s, "1bdp", 0.1, cbr=cbr)


def recovery(rate_mbps: float, rtt_s: float, time_s: float) -> Scenario:
    """Return a TCP flow on a link whose queue is short compared with its BDP (section III)."""
    return _one_link("recovery", time_s, [flow("reno", start=START)], rate_mbps, rtt_s, "10p")


def staircase(law: str, stage_s: float) -> Scenario:
    """Return four flows that start one by one and stop in the reverse order (Fig. 5, 6)."""
    starts = [n * stage_s for n in range(4)]
    flows = [
        flow(law, name=f"flow-{n}", start=f"{at}s..{at + 0.1}s", stop=7 * stage_s - at)
        for n, at in enumerate(starts, 1)
    ]
    # The series end one sample before the run.
    time_s = 7 * stage_s + 1
    # Ethernet: 1456 bytes of payload in 1538 on the wire, at most 947 Mb/s.
    tcp = {"packet": UDT_PAYLOAD, "header": 82}
    cards = {"rate": "1gbit", "queue": "1000p"}
    return _one_link("staircase", time_s, flows, 1000, 0.104, "2000p", tcp=tcp, access=cards)


def _graph(
    name: str,
    links: Iterable[tuple[str, str, float]],
    delay: str,
    law: str,
    paths: Iterable[tuple[str, str]],
    time_s: float,
    warmup_s: float,
) -> Scenario:
    """Return a network of links with capacities in Mb/s, with one flow on each path."""
    flows = [
        flow(law, name=f"flow-{n}", start=START, **{"from": a, "to": b})
        for n, (a, b) in enumerate(paths, 1)
    ]
    link = [
        {"from": a, "to": b, "rate": mbps * 1e6, "delay": delay, "queue": QUEUE}
        for a, b, mbps in links
    ]
    return network(f"daimd-{name}", time_s, flows, tcp=TCP, link=link, warmup=warmup_s, sample=1.0)


def two_bottlenecks(law: str, y_mbps: float, time_s: float, warmup_s: float) -> Scenario:
    """Return two flows, one of which also crosses a second link of ``y_mbps`` (Fig. 8)."""
    links = (("A", "hub", 200.0), ("hub", "B", 200.0), ("hub", "C", y_mbps))
    paths = (("A", "B"), ("A", "C"))
    return _graph("two-bottlenecks", links, "0.5ms", law, paths, time_s, warmup_s)


def parking_lot(law: str, time_s: float, warmup_s: float) -> Scenario:
    """Return six flows across five links (Fig. 11)."""
    return _graph("parking-lot", PARKING_LOT, "5ms", law, PATHS, time_s, warmup_s)


def near_and_far(law: str, time_s: float, warmup_s: float) -> Scenario:
    """Return five flows with different round-trip times on 100 Mb/s (Fig. 9)."""
    flows = [flow(law, rtt=rtt, start=START) for rtt in [*RTTS.values()][:5]]
    return _one_link("rtt", time_s, flows, 100, 2e-6, QUEUE, warmup=warmup_s)


def beside_tcp(
    law: str, rate_mbps: float, rtt_s: float, time_s: float, queue: str = QUEUE
) -> Scenario:
    """Return one flow and one TCP flow; the first quarter is the warm-up (Fig. 14)."""
    flows = [flow(law, name="udt", start=START), flow("reno", name="tcp", start=START)]
    sample = time_s / 100
    return _one_link(
        "beside-tcp", time_s, flows, rate_mbps, rtt_s, queue, sample, warmup=time_s / 4
    )


def ten_flows(
    law: str, rtt_s: float, time_s: float, warmup_s: float, sample_s: float = 1.0
) -> Scenario:
    """Return ten flows on 1 Gb/s with a queue of 2000 packets (section VI)."""
    flows = [flow(law, count=10, start=START)]
    # The default access links, as slow as the bottleneck, would hold the queue.
    keys: JsonObject = {"access": {"rate": "10gbit"}, "warmup": warmup_s}
    return _one_link("ten-flows", time_s, flows, 1000, rtt_s, "2000p", sample_s, **keys)


def lossy(
    law: str, p: float, time_s: float, sample_s: float, rate_mbps: float | None = None
) -> Scenario:
    """Return one flow on a link with random loss of probability ``p`` (Table 6).

    Without a rate the link has infinite rate and an RTT of 100 ms; otherwise the RTT is 10 ms.
    """
    rate, delay = ("infinite", 0.05) if rate_mbps is None else (rate_mbps * 1e6, 0.005)
    ends = {"from": "a", "to": "b"}
    link = [{**ends, "rate": rate, "delay": delay, "loss": p}]
    keys = {"warmup": time_s / 4, "sample": sample_s}
    return network(
        "daimd-lossy", time_s, [flow(law, start=START, **ends)], tcp=TCP, link=link, **keys
    )


def misjudged(capacities_mbps: tuple[float, ...], time_s: float, warmup_s: float) -> Scenario:
    """Return flows on 100 Mb/s with these capacities as their estimates (section VII)."""
    flows = [
        flow(variant(LAW, capacity=f"{mbps * 1e6:.0f}bit"), name=f"flow-{n}", start=START)
        for n, mbps in enumerate(capacities_mbps, 1)
    ]
    return _one_link("misjudged", time_s, flows, 100, 0.02, "1bdp", warmup=warmup_s)
