"""Names of the networks of an experiment, by the values of its axes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cwnd.units import format_rate, format_time, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_FLOW = re.compile(r"flow\[([0-9]+)\]\..*")

ONLY = "the network of the test"
"""Description of the network of an experiment without axes, whose name is empty."""


def label(groups: Sequence[str], values: Mapping[str, Any]) -> str:
    """Name a network by the values of its axes; empty without axes.

    Examples
    --------
    >>> label(["candidate"], {"dumbbell.delay": "20ms", "flow[0].count": 8})
    'RTT 40 ms, 8 flows'
    """
    return ", ".join(_describe(groups, key, value) for key, value in values.items())


def _describe(groups: Sequence[str], key: str, value: Any) -> str:  # noqa: ANN401
    """Describe the value of an axis, for groups of flows with these names.

    Examples
    --------
    >>> _describe([], "dumbbell.delay", "20ms"), _describe([], "dumbbell.queue", "0.5bdp")
    ('RTT 40 ms', 'buffer 0.5 BDP')
    >>> _describe([], "dumbbell.queue", {"kind": "codel", "ecn": True})
    'codel with ECN'
    >>> _describe(["candidate", "others"], "flow[1].count", 4)
    '4 others'
    >>> _describe(["candidate"], "flow[0].count", 1)
    '1 flow'
    """
    name = key.rpartition(".")[2]
    if isinstance(value, dict):
        # A queue discipline, or a model of loss.
        ecn = value.get("ecn", value["kind"] == "fq_codel")
        return f"{value['kind']}{' with ECN' if ecn else ''}".replace("_", " ")
    if key == "dumbbell.delay":
        return f"RTT {format_time(2 * parse_time(value))}"
    match = _FLOW.fullmatch(key)
    group = groups[int(match[1])] if match else ""
    formats: dict[str, Callable[[Any], str]] = {
        "rate": lambda rate: format_rate(parse_rate(rate)),
        "rtt": lambda rtt: f"RTT {format_time(parse_time(rtt))} of {group}",
        "count": lambda count: f"{count} {_kind(group, count)}",
        "load": lambda load: f"load {load:.0%}",
        "queue": lambda size: "buffer " + size.replace("bdp", " BDP").replace("p", " packets"),
    }
    return formats.get(name, lambda other: f"{name} {other}")(value)


def _kind(group: str, count: int) -> str:
    """Return a word for the flows of a group."""
    word = "flows" if group == "candidate" else group
    return word.removesuffix("s") if count == 1 else word
