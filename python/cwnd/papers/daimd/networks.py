"""The networks of the DAIMD paper, and what it prints of them.

Packets are of 1500 bytes, the paper's standard packet, without headers on top, but on the real
network of Table 1. TCP is ns-2's, with SACK and without delayed ACKs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from cwnd.records import JsonObject

LAWS = ("daimd", "udt")
"""The rule as the paper prints it, and as UDT version 4 has it."""

PACKET_BITS = 12_000
"""Bits in a standard packet."""

TCP: JsonObject = {"conventions": "ns2", "packet": 1500, "header": 0}

QUEUE = "49p"
"""Of section IV's simulations: waiting packets of ns-2's default limit, 50."""

START_S = 0.1
"""Flows that start together do so within this time, as in the ns-2 runs on Table 5."""

STAGES = ("1-100", "101-200", "201-300", "301-400", "401-500", "501-600", "601-700")
"""Seconds of the stages of Table 1."""

TABLE_1 = {
    "flow 1, Mb/s": ("902", "466", "313", "215", "301", "452", "885"),
    "flow 2, Mb/s": ("", "446", "308", "216", "310", "452", ""),
    "flow 3, Mb/s": ("", "", "302", "202", "307", "", ""),
    "flow 4, Mb/s": ("", "", "", "197", "", "", ""),
    "RTT, ms": ("106", "106", "106", "106", "107", "105", "105"),
    "loss": ("0", "1e-6", "1e-4", "1e-3", "1e-3", "0", "1e-6"),
    "EI, Mb/s": ("902", "912", "923", "830", "918", "904", "885"),
    "FI": ("1", ".999", ".999", ".998", ".999", "1", "1"),
    "SI": ("0.11", "0.11", "0.08", "0.16", "0.04", "0.02", "0.04"),
}

TABLE_2 = {
    0.1: ("198.8", "0.098"),
    1.0: ("189.2", "0.979"),
    10.0: ("180.1", "9.955"),
    20.0: ("170.9", "19.88"),
    40.0: ("152.5", "39.46"),
    60.0: ("137.6", "57.70"),
    80.0: ("108.4", "73.49"),
    100.0: ("104.6", "92.42"),
    120.0: ("100.8", "98.47"),
    140.0: ("101.3", "98.04"),
    160.0: ("100.7", "98.65"),
    180.0: ("100.3", "99.00"),
}
"""y in Mb/s, and the rates of AB and AC in Mb/s."""

FIG_10 = {"10us": "25.37", "100us": "19.93", "1ms": "20.17", "10ms": "19.70", "100ms": "13.72"}
"""RTT and rate in Mb/s."""

TABLE_3 = ("89.3", "90.0", "5.18", "41.7", "50.8", "4.78")
"""Rates in Mb/s."""

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

RTTS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""RTTs of Tables 4 and 5 in seconds."""

TABLE_4 = {
    "EI": ("998", "997", "997", "989", "929", "719"),
    "FI": (".999", ".999", ".999", ".999", ".997", ".993"),
    "SI": ("0.06", "0.07", "0.09", "0.11", "0.23", "0.64"),
}
TABLE_5 = {
    "EI": ("996", "994", "998", "997", "839", "145"),
    "FI": (".999", ".999", ".999", ".997", ".681", ".537"),
    "SI": ("0.08", "0.09", "0.07", "0.07", "0.30", "0.28"),
}


UDT_PAYLOAD = 1456
"""Bytes of payload in a UDT packet of 1500 with its headers."""


def over_udt(scenario: Scenario) -> Scenario:
    """Carry a network's flows that have a rule of `LAWS` over UDT itself.

    Their packets have the same size on the wire, of which `UDT_PAYLOAD` bytes are payload.

    Parameters
    ----------
    scenario
        A network of this paper.
    """
    document = json.loads(scenario.to_json())
    tcp = document["tcp"]
    header = tcp["packet"] + tcp["header"] - UDT_PAYLOAD
    for flow in document["flow"]:
        if flow["controller"] in LAWS:
            flow["protocol"] = "udt"
            flow["tcp"] = {"packet": UDT_PAYLOAD, "header": header}
    return Scenario(document)


def climb(law: str, rate_mbps: float, rtt_s: float, begin_s: float, time_s: float) -> Scenario:
    """Let a flow climb an empty link from next to nothing (Fig. 3).

    A source as fast as the link, which does not respond, holds it down until then: by itself the
    flow would leave slow start at the full rate.

    Parameters
    ----------
    law
        The controller.
    rate_mbps, rtt_s
        Capacity in Mb/s and round-trip time in seconds.
    begin_s, time_s
        When the link is left to the flow, and for how long, in seconds.
    """
    return Scenario(
        {
            "name": "daimd-climb",
            "duration": begin_s + time_s,
            "sample": 0.1,
            "dumbbell": {"rate": rate_mbps * 1e6, "delay": rtt_s / 2, "queue": "1bdp"},
            "tcp": TCP,
            "flow": [{"controller": law, "start": f"0s..{START_S}s"}],
            "cbr": [{"rate": 1e6 * rate_mbps, "packet": 1500, "stop": begin_s}],
        }
    )


def recovery(rate_mbps: float, rtt_s: float, time_s: float) -> Scenario:
    """Let TCP fill a link whose queue is short beside the pipe (section III).

    Parameters
    ----------
    rate_mbps, rtt_s
        Capacity in Mb/s and round-trip time in seconds.
    time_s
        Length of the run in seconds.
    """
    return Scenario(
        {
            "name": "daimd-recovery",
            "duration": time_s,
            "sample": 1.0,
            "dumbbell": {"rate": rate_mbps * 1e6, "delay": rtt_s / 2, "queue": "10p"},
            "tcp": TCP,
            "flow": [{"controller": "reno", "start": f"0s..{START_S}s"}],
        }
    )


def staircase(law: str, stage_s: float) -> Scenario:
    """Let four flows come one by one and leave in the reverse order (Fig. 5, 6).

    Parameters
    ----------
    law
        The controller.
    stage_s
        Seconds between two changes.
    """
    flows = [
        {
            "controller": law,
            "name": f"flow-{n + 1}",
            "start": f"{n * stage_s}s..{n * stage_s + START_S}s",
            "stop": (7 - n) * stage_s,
        }
        for n in range(4)
    ]
    return Scenario(
        {
            "name": "daimd-staircase",
            # The series end a sample before the run.
            "duration": 7.01 * stage_s,
            "sample": stage_s / 100,
            "dumbbell": {"rate": "1gbit", "delay": "52ms", "queue": "2000p"},
            # Ethernet: 1456 bytes of payload in 1538 on the wire, at most 947 Mb/s.
            "tcp": {"conventions": "ns2", "packet": 1456, "header": 82},
            "flow": flows,
        }
    )


def two_bottlenecks(law: str, y_mbps: float, time_s: float, warmup_s: float) -> Scenario:
    """Give one of two flows a narrower second link (Fig. 8).

    Parameters
    ----------
    law
        The controller.
    y_mbps
        Capacity of the second link to C in Mb/s.
    time_s, warmup_s
        Length of the run and of its warm-up in seconds.
    """
    link = {"delay": "0.5ms", "queue": QUEUE}
    start = f"0s..{START_S}s"
    return Scenario(
        {
            "name": "daimd-two-bottlenecks",
            "duration": time_s,
            "warmup": warmup_s,
            "sample": 1.0,
            "tcp": TCP,
            "link": [
                {"from": "A", "to": "hub", "rate": "200mbit", **link},
                {"from": "hub", "to": "B", "rate": "200mbit", **link},
                {"from": "hub", "to": "C", "rate": y_mbps * 1e6, **link},
            ],
            "flow": [
                {"controller": law, "name": "AB", "from": "A", "to": "B", "start": start},
                {"controller": law, "name": "AC", "from": "A", "to": "C", "start": start},
            ],
        }
    )


def near_and_far(law: str, time_s: float, warmup_s: float) -> Scenario:
    """Let five flows of different round-trip times share 100 Mb/s (Fig. 9).

    Parameters
    ----------
    law
        The controller.
    time_s, warmup_s
        Length of the run and of its warm-up in seconds.
    """
    start = f"0s..{START_S}s"
    return Scenario(
        {
            "name": "daimd-rtt",
            "duration": time_s,
            "warmup": warmup_s,
            "sample": 1.0,
            "dumbbell": {"rate": "100mbit", "delay": "1us", "queue": QUEUE},
            "tcp": TCP,
            "flow": [
                {"controller": law, "name": f"rtt-{rtt}", "rtt": rtt, "start": start}
                for rtt in FIG_10
            ],
        }
    )


def parking_lot(law: str, time_s: float, warmup_s: float) -> Scenario:
    """Let six flows cross five links (Fig. 11).

    Parameters
    ----------
    law
        The controller.
    time_s, warmup_s
        Length of the run and of its warm-up in seconds.
    """
    start = f"0s..{START_S}s"
    return Scenario(
        {
            "name": "daimd-parking-lot",
            "duration": time_s,
            "warmup": warmup_s,
            "sample": 1.0,
            "tcp": TCP,
            "link": [
                {"from": a, "to": b, "rate": rate * 1e6, "delay": "5ms", "queue": QUEUE}
                for a, b, rate in PARKING_LOT
            ],
            "flow": [
                {"controller": law, "name": f"flow-{n}", "from": a, "to": b, "start": start}
                for n, (a, b) in enumerate(PATHS, 1)
            ],
        }
    )


def beside_tcp(law: str, rate_mbps: float, rtt_s: float, time_s: float) -> Scenario:
    """Let one flow and one of TCP share a link; the first quarter is the warm-up (Fig. 14).

    Parameters
    ----------
    law
        The controller.
    rate_mbps, rtt_s
        Capacity in Mb/s and round-trip time in seconds.
    time_s
        Length of the run in seconds.
    """
    queue = max(100, round(rate_mbps * 1e6 * rtt_s / PACKET_BITS))
    start = f"0s..{START_S}s"
    return Scenario(
        {
            "name": "daimd-beside-tcp",
            "duration": time_s,
            "warmup": time_s / 4,
            "sample": time_s / 100,
            "dumbbell": {"rate": rate_mbps * 1e6, "delay": rtt_s / 2, "queue": f"{queue}p"},
            "tcp": TCP,
            "flow": [
                {"controller": law, "name": "udt", "start": start},
                {"controller": "reno", "name": "tcp", "start": start},
            ],
        }
    )


def ten_flows(controller: str, rtt_s: float, time_s: float, warmup_s: float) -> Scenario:
    """Let ten flows share 1 Gb/s and 2000 packets of queue (section VI).

    Parameters
    ----------
    controller
        That of all ten.
    rtt_s
        Round-trip time in seconds.
    time_s, warmup_s
        Length of the run and of its warm-up in seconds.
    """
    return Scenario(
        {
            "name": "daimd-ten-flows",
            "duration": time_s,
            "warmup": warmup_s,
            "sample": 1.0,
            "dumbbell": {"rate": "1gbit", "delay": rtt_s / 2, "queue": "2000p"},
            # As slow as the bottleneck they would queue in its stead.
            "access": {"rate": "10gbit"},
            "tcp": TCP,
            "flow": [{"controller": controller, "count": 10, "start": f"0s..{START_S}s"}],
        }
    )


def lossy(
    controller: str, p: float, time_s: float, sample_s: float, rate_mbps: float | None = None
) -> Scenario:
    """Put one flow on a link that loses each packet with one probability (Table 6).

    Parameters
    ----------
    controller
        The flow's.
    p
        Probability that a data packet is lost.
    time_s, sample_s
        Length of the run, whose first quarter is the warm-up, and step of its series in seconds.
    rate_mbps
        Capacity in Mb/s; without one no queue ever forms.
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
            "tcp": TCP,
            "flow": [{"controller": controller, "from": "a", "to": "b", "start": "0s..0.1s"}],
        }
    )


def misjudged(capacities_mbps: tuple[float, float], time_s: float, warmup_s: float) -> Scenario:
    """Let two flows share 100 Mb/s that believe in different capacities (section VII).

    Parameters
    ----------
    capacities_mbps
        What each believes, in Mb/s.
    time_s, warmup_s
        Length of the run and of its warm-up in seconds.
    """
    flows = [
        {
            "controller": f"daimd(capacity={mbps * 1e6:.0f})",
            "name": f"flow-{n}",
            "start": f"0s..{START_S}s",
        }
        for n, mbps in enumerate(capacities_mbps, 1)
    ]
    return Scenario(
        {
            "name": "daimd-misjudged",
            "duration": time_s,
            "warmup": warmup_s,
            "sample": 1.0,
            "dumbbell": {"rate": "100mbit", "delay": "10ms", "queue": "1bdp"},
            "tcp": TCP,
            "flow": flows,
        }
    )
