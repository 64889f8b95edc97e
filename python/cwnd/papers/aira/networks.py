"""The networks of the AIRA paper.

What the paper leaves out is chosen so that ns-2's AIMD comes nearest to the rows printed: access
links of 10 ms, KB of 1024 bytes, 300 s. ns-2's DropTail with room for L packets holds L - 1 that
wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

AIMD = "reno"
RULES = "aira(bound=0, mail=off, reset=off)"
"""Section 5: the decrease and the increase rule alone."""

BOUNDED = "aira(reset=off)"
"""Sections 6.1 and 6.2: with the lower bounds."""

FULL = "aira"
"""Section 6.3 on: with the reset condition."""

CHOICES: dict[str, tuple[str, dict[str, str]]] = {
    "lower bound of a": (
        FULL,
        {
            "0": "aira(bound=0)",
            "0.05": "aira(bound=0.05)",
            "0.1": FULL,
            "0.2": "aira(bound=0.2)",
            "0.5": "aira(bound=0.5)",
        },
    ),
    "reset at this many times W": (
        FULL,
        {
            "1.1": "aira(ratio=1.1)",
            "1.25": "aira(ratio=1.25)",
            "1.5": FULL,
            "2": "aira(ratio=2)",
            "3": "aira(ratio=3)",
            "off": BOUNDED,
        },
    ),
    "rounds until MAIL is at the bound": (
        FULL,
        {
            "25": "aira(rounds=25)",
            "50": "aira(rounds=50)",
            "100": FULL,
            "200": "aira(rounds=200)",
            "400": "aira(rounds=400)",
            "off": "aira(mail=off)",
        },
    ),
    "lower bound of a, without reset": (
        BOUNDED,
        {
            "0": "aira(bound=0, reset=off)",
            "0.05": "aira(bound=0.05, reset=off)",
            "0.1": BOUNDED,
            "0.2": "aira(bound=0.2, reset=off)",
            "0.5": "aira(bound=0.5, reset=off)",
        },
    ),
    "rounds until MAIL is at the bound, without reset": (
        BOUNDED,
        {
            "25": "aira(rounds=25, reset=off)",
            "50": "aira(rounds=50, reset=off)",
            "100": BOUNDED,
            "200": "aira(rounds=200, reset=off)",
            "400": "aira(rounds=400, reset=off)",
            "off": "aira(mail=off, reset=off)",
        },
    ),
}
"""AIRA's free choices: what is chosen, the paper's choice, and the specification of each value."""


def table_1(law: str, flows: int, *, delayed_acks: bool = False) -> Scenario:
    """Give section 3's network: 1 Mb/s, 20 ms, 15 packets (Table 1).

    Parameters
    ----------
    law
        Specification of the controller.
    flows
        How many.
    delayed_acks
        Whether receivers delay their acknowledgements.
    """
    return Scenario.from_toml(f"""
name = "aira-table-1"
duration = "200s"
sample = "1s"

[dumbbell]
rate = "1mbit"
delay = "20ms"
queue = "14p"

[access]
rate = "10mbit"
delay = "10ms"

[tcp]
conventions = "ns2"
packet = 1460
delayed_acks = {str(delayed_acks).lower()}

[[flow]]
controller = "{law}"
count = {flows}
start = "0s..1s"
""")


def contention(law: str, *, leave: bool = False, sample: str = "100ms") -> Scenario:
    """Give section 5.4's network: four flows, one more every 50 s (Table 3).

    Parameters
    ----------
    law
        Specification of the controller.
    leave
        Whether the last two flows leave at 205 s (section 6.4).
    sample
        Step of the series.
    """
    stop = 'stop = "205s"' if leave else ""
    return Scenario.from_toml(f"""
name = "aira-contention"
duration = "300s"
sample = "{sample}"

[dumbbell]
rate = "2mbit"
delay = "20ms"
queue = "9p"

[access]
rate = "10mbit"
delay = "10ms"

[tcp]
conventions = "ns2"
packet = 1000

[[flow]]
controller = "{law}"
name = "early"
count = 2
start = "0s..1s"
stagger = "50s"

[[flow]]
controller = "{law}"
name = "late"
count = 2
start = "100s..101s"
stagger = "50s"
{stop}
""")


def teams(law: str, flows: int, step: float) -> Scenario:
    """Give the extended network of section 5.4: four teams, one more every ``step`` (Fig. 12).

    Parameters
    ----------
    law
        Specification of the controller.
    flows
        How many in all, a multiple of 4.
    step
        Seconds from one team to the next: 50 in the paper. The run takes six of them.
    """
    team = "".join(
        f"""
[[flow]]
controller = "{law}"
name = "team-{number + 1}"
count = {flows // 4}
start = "{number * step}s..{number * step + 1}s"
"""
        for number in range(4)
    )
    return Scenario.from_toml(f"""
name = "aira-teams"
duration = "{6 * step}s"
sample = "1s"

[dumbbell]
rate = "20mbit"
delay = "20ms"
queue = "99p"

[access]
rate = "100mbit"
delay = "10ms"

[tcp]
conventions = "ns2"
packet = 1000
{team}""")


def diverse(
    law: str,
    flows: int = 4,
    *,
    rate: str = "2mbit",
    queue: str = "4p",
    access: str = "10mbit",
    duration: float = 300.0,
) -> Scenario:
    """Give section 6.2's network: half of the flows 60 ms away, half 220 ms (Table 4, Fig. 17).

    Parameters
    ----------
    law
        Specification of the controller.
    flows
        How many.
    rate, queue
        Of the bottleneck.
    access
        Rate of the access links.
    duration
        Seconds.
    """
    return Scenario.from_toml(f"""
name = "aira-diverse-rtt"
duration = "{duration}s"
sample = "1s"

[dumbbell]
rate = "{rate}"
delay = "20ms"
queue = "{queue}"

[access]
rate = "{access}"

[tcp]
conventions = "ns2"
packet = 1000

[[flow]]
controller = "{law}"
name = "near"
count = {flows // 2}
rtt = "60ms"
start = "0s..1s"

[[flow]]
controller = "{law}"
name = "far"
count = {flows - flows // 2}
rtt = "220ms"
start = "0s..1s"
""")


def many(law: str, flows: int, duration: float) -> Scenario:
    """Give the extended network of section 6.2: ten times the rate, and more flows (Fig. 17).

    Parameters
    ----------
    law
        Specification of the controller.
    flows
        How many.
    duration
        Seconds.
    """
    return diverse(law, flows, rate="20mbit", queue="49p", access="100mbit", duration=duration)


def deployment(groups: Mapping[str, int]) -> Scenario:
    """Give section 7's network: 10 Mb/s, 10 ms, 15 packets (Fig. 20).

    Parameters
    ----------
    groups
        How many flows of each controller.
    """
    flows = "".join(
        f"""
[[flow]]
controller = "{law}"
count = {count}
start = "0s..1s"
"""
        for law, count in groups.items()
    )
    return Scenario.from_toml(f"""
name = "aira-deployment"
duration = "300s"
sample = "10s"

[dumbbell]
rate = "10mbit"
delay = "10ms"
queue = "14p"

[access]
rate = "100mbit"
delay = "10ms"

[tcp]
conventions = "ns2"
packet = 1000
{flows}""")


def alone(law: str, rate: float, delay: float) -> Scenario:
    """Give one flow a link of its own, with room for 15 packets (Fig. 14).

    Parameters
    ----------
    law
        Specification of the controller.
    rate
        Of the link, in Mb/s.
    delay
        Of the link, one way, in ms.
    """
    return Scenario.from_toml(f"""
name = "aira-alone"
duration = "200s"
sample = "100ms"

[dumbbell]
rate = "{rate}mbit"
delay = "{delay}ms"
queue = "14p"

[access]
rate = "100mbit"
delay = "10ms"

[tcp]
conventions = "ns2"
packet = 1000

[[flow]]
controller = "{law}"
start = "0s..1s"
""")


def lossy(law: str, loss: float) -> Scenario:
    """Give one flow a link that loses packets at random: contention without end (Fig. 13).

    Parameters
    ----------
    law
        Specification of the controller.
    loss
        Probability that a packet is lost.
    """
    return Scenario.from_toml(f"""
name = "aira-lossy"
duration = "300s"
sample = "20ms"

[dumbbell]
rate = "100mbit"
delay = "20ms"
loss = {loss}

[access]
delay = "10ms"

[tcp]
conventions = "ns2"
packet = 1000

[[flow]]
controller = "{law}"
start = "0s..1s"
""")
