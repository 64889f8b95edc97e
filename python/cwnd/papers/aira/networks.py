"""The laws and networks of the AIRA paper.

Settings that the paper does not print are those for which ns-2's TCP comes nearest to the printed rows of
AIMD: access links of 10 ms, packets of 1000 bytes, 300 s. A DropTail queue of L packets in ns-2 holds L - 1
waiting packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.papers.networks import dumbbell, flow

if TYPE_CHECKING:
    from cwnd.records import JsonObject
    from cwnd.scenario import Scenario

AIMD = "reno"
RULES = "aira(bound=0, mail=off, reset=off)"
"""Section 5: the decrease and the increase rule alone."""

BOUNDED = "aira(reset=off)"
"""Sections 6.1 and 6.2: with the lower bounds."""

FULL = "aira"
"""Section 6.3 on: with the reset condition."""

BDP = 4
"""Packets that wait in the buffer of section 6.2: 2 Mb/s for 20 ms, 5 packets, one of them in transmission."""


def table_1(law: str, flows: int, *, delayed_acks: bool = False) -> Scenario:
    """Return section 3's network: 1 Mb/s, 20 ms, 15 packets (Table 1)."""
    return dumbbell(
        "aira-table-1",
        200,
        [flow(law, count=flows)],
        bottleneck={"rate": "1mbit", "delay": "20ms", "queue": "14p"},
        access={"rate": "10mbit", "delay": "10ms"},
        tcp={"packet": 1460, "delayed_acks": delayed_acks},
        sample="1s",
    )


def contention(law: str, *, leave: bool = False) -> Scenario:
    """Return section 5.4's network: four flows, one more every 50 s (Table 3).

    With ``leave`` the last two leave at 205 s (section 6.4).
    """
    stop = {"stop": "205s"} if leave else {}
    late = flow(law, name="late", count=2, stagger="50s", start="100s..101s", **stop)
    return dumbbell(
        "aira-contention",
        300,
        [flow(law, name="early", count=2, stagger="50s"), late],
        bottleneck={"rate": "2mbit", "delay": "20ms", "queue": "9p"},
        access={"rate": "10mbit", "delay": "10ms"},
        sample="100ms",
    )


def teams(law: str, flows: int, step: float) -> Scenario:
    """Return the extended network of section 5.4: four teams, one more every ``step`` seconds (Fig. 12)."""
    starts = [f"{k * step}s..{k * step + 1}s" for k in range(4)]
    return dumbbell(
        "aira-teams",
        6 * step,
        [
            flow(law, name=f"team-{k}", count=flows // 4, start=start)
            for k, start in enumerate(starts, 1)
        ],
        bottleneck={"rate": "20mbit", "delay": "20ms", "queue": "99p"},
        access={"rate": "100mbit", "delay": "10ms"},
        sample="1s",
    )


def diverse(law: str, *, queue: str | JsonObject = f"{BDP}p") -> Scenario:
    """Return section 6.2's network: two flows with an RTT of 60 ms and two with 220 ms (Table 4)."""
    return _near_and_far(law, 4, "2mbit", queue, "10mbit", 300)


def many(law: str, flows: int, duration: float, *, queue: str | JsonObject = "49p") -> Scenario:
    """Return section 6.2's network with ten times the rate, for more flows (Fig. 17)."""
    return _near_and_far(law, flows, "20mbit", queue, "100mbit", duration)


def _near_and_far(
    law: str, flows: int, rate: str, queue: str | JsonObject, access: str, duration: float
) -> Scenario:
    return dumbbell(
        "aira-diverse-rtt",
        duration,
        [
            flow(law, name=name, count=flows // 2, rtt=rtt)
            for name, rtt in (("near", "60ms"), ("far", "220ms"))
        ],
        bottleneck={"rate": rate, "delay": "20ms", "queue": queue},
        access={"rate": access},
        sample="1s",
    )


def deployment(groups: dict[str, int]) -> Scenario:
    """Return section 7's network: 10 Mb/s, 10 ms, 15 packets; the number of flows by law (Fig. 20)."""
    return dumbbell(
        "aira-deployment",
        300,
        [flow(law, count=count) for law, count in groups.items()],
        bottleneck={"rate": "10mbit", "delay": "10ms", "queue": "14p"},
        access={"rate": "100mbit", "delay": "10ms"},
        sample="10s",
    )


def alone(law: str, rate: float, delay: float) -> Scenario:
    """Return a link of ``rate`` Mb/s and ``delay`` ms, with 15 packets, for one flow (Fig. 14)."""
    return dumbbell(
        "aira-alone",
        200,
        [flow(law)],
        bottleneck={"rate": f"{rate}mbit", "delay": f"{delay}ms", "queue": "14p"},
        access={"rate": "100mbit", "delay": "10ms"},
        sample="100ms",
    )


def lossy(law: str, loss: float) -> Scenario:
    """Return a link that loses a fraction ``loss`` of one flow's packets at random (Fig. 13)."""
    return dumbbell(
        "aira-lossy",
        300,
        [flow(law)],
        bottleneck={"rate": "100mbit", "delay": "20ms", "loss": loss},
        access={"delay": "10ms"},
        sample="20ms",
    )
