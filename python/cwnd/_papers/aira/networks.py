"""Laws and networks of the AIRA paper.

For settings that the paper does not state, ns-2's TCP is nearest to the rows of AIMD with access
links of 10 ms, packets of 1000 bytes and 300 s. A DropTail queue of L packets in ns-2 holds
L - 1 waiting packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._papers.networks import dumbbell, flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import JsonObject
    from cwnd._runs.scenario import Scenario

AIMD = "reno"
RULES = "aira(bound=0, mail=off, reset=off)"
"""Section 5: only the decrease and the increase rule."""

BOUNDED = "aira(reset=off)"
"""Sections 6.1 and 6.2: with lower bounds."""

DECREASE = "aira(bound=0, mail=off, reset=off, increase=off)"
"""Section 5.1: only the decrease rule."""

FULL = "aira"
"""From section 6.3: with the reset condition."""

ENTRY = {"rate": "2mbit", "delay": "20ms", "queue": "9p"}
"""Link of section 5.4."""

LARGE = {"rate": "20mbit", "delay": "20ms", "queue": "99p"}
"""Link of section 5.4's extension."""


def fixed(increase: float) -> str:
    """Return the law of AIMD with a fixed increase."""
    return f"aimd(alpha={increase:g}, beta=1/2)"


def table_1(law: str, flows: int, *, delayed_acks: bool = False) -> Scenario:
    """Return section 3's network: 1 Mb/s, 20 ms, 15 packets (Table 1)."""
    tcp: JsonObject = {"packet": 1460, "delayed_acks": delayed_acks}
    link = {"rate": "1mbit", "delay": "20ms", "queue": "14p"}
    return _network([flow(law, count=flows)], link, "10mbit", duration=200, sample="1s", tcp=tcp)


def contention(law: str, *, flows: int = 4, leave: int = 0) -> Scenario:
    """Return section 5.4's network: flows that enter every 50 s (Table 3).

    The last ``leave`` flows leave at 205 s (section 6.4).
    """
    stay = flows - (leave or 2)
    begin = 50 * stay
    early = flow(law, name="early", count=stay, stagger="50s")
    late = flow(
        law, name="late", count=flows - stay, stagger="50s", start=f"{begin}s..{begin + 1}s"
    )
    if leave:
        late["stop"] = "205s"
    return _network([early, late], ENTRY, "10mbit", sample="100ms")


def static(increases: Sequence[float]) -> Scenario:
    """Return section 5.4's network with flows that start together, by their fixed increases."""
    groups = [flow(fixed(a)) for a in increases]
    return _network(groups, ENTRY, "10mbit", sample="1s")


def teams(law: str, flows: int, step: float) -> Scenario:
    """Return section 5.4's extension: four teams that enter every ``step`` seconds (Fig. 12)."""
    starts = [f"{k * step}s..{k * step + 1}s" for k in range(4)]
    groups = [
        flow(law, name=f"team-{k}", count=flows // 4, start=start)
        for k, start in enumerate(starts, 1)
    ]
    return _network(groups, LARGE, "100mbit", duration=6 * step, sample="1s")


def diverse(law: str, far: str | None = None, *, queue: str | JsonObject = "4p") -> Scenario:
    """Return section 6.2's network: two flows with an RTT of 60 ms, two with 220 ms (Table 4).

    The latter have the law ``far``, if it is given.
    """
    link = {"rate": "2mbit", "delay": "20ms", "queue": queue}
    return _network(_near_and_far(law, 4, far), link, "10mbit", delay="0ms", sample="1s")


def many(law: str, flows: int, *, queue: str | JsonObject = "49p") -> Scenario:
    """Return section 6.2's network with ten times the rate, for more flows (Fig. 17)."""
    link = {"rate": "20mbit", "delay": "20ms", "queue": queue}
    groups = _near_and_far(law, flows)
    return _network(groups, link, "100mbit", delay="0ms", sample="1s")


def deployment(groups: dict[str, int], *, large: bool = False) -> Scenario:
    """Return section 7's network of 10 Mb/s, with a number of flows by law (Fig. 20).

    ``large`` replaces its link by that of Fig. 12, with 20 Mb/s and 100 packets.
    """
    link = LARGE if large else {"rate": "10mbit", "delay": "10ms", "queue": "14p"}
    flows = [flow(law, count=count) for law, count in groups.items()]
    return _network(flows, link, "100mbit", sample="10s")


def alone(law: str, rate: float, delay: float) -> Scenario:
    """Return a link of ``rate`` Mb/s and ``delay`` ms with 15 packets, for one flow (Fig. 14)."""
    link = {"rate": f"{rate}mbit", "delay": f"{delay}ms", "queue": "14p"}
    return _network([flow(law)], link, "100mbit", duration=200, sample="100ms")


def short_and_long(law: str) -> Scenario:
    """Return section 5.4's link with three long flows, and one of 5 MB that starts at 100 s."""
    short = flow(law, name="short", start="100s..101s", bytes=5 * 1024**2)
    return _network([flow(law, name="long", count=3), short], ENTRY, "10mbit", sample="100ms")


def lossy(law: str, loss: float) -> Scenario:
    """Return one flow with random loss of a fraction ``loss`` of its packets (Fig. 13)."""
    link = {"rate": "100mbit", "delay": "20ms", "loss": loss}
    return _network([flow(law)], link, "1gbit", sample="20ms")


def _near_and_far(law: str, flows: int, far: str | None = None) -> list[JsonObject]:
    rtts = {"near": ("60ms", law), "far": ("220ms", far or law)}
    return [flow(by, name=name, count=flows // 2, rtt=rtt) for name, (rtt, by) in rtts.items()]


def _network(
    flows: list[JsonObject],
    link: JsonObject,
    access: str,
    *,
    delay: str = "10ms",
    duration: float = 300,
    sample: str,
    tcp: JsonObject | None = None,
) -> Scenario:
    links: JsonObject = {"rate": access, "delay": delay}
    return dumbbell("aira", duration, flows, bottleneck=link, access=links, tcp=tcp, sample=sample)
