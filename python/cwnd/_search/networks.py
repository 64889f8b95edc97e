"""Networks of a search: their parameters, and the scenario of some values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cwnd.errors import PlanError
from cwnd.units import parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd._base.records import JsonObject

DURATION_S = 20
"""Duration of a run in seconds."""

WARMUP_S = 4
"""Seconds that the metrics exclude."""

EVENT_S = 8
"""Time in seconds at which the rate falls, the round-trip time changes or an outage begins."""

RECOVERED_S = 14
"""Time in seconds from which the goodput after such an event counts; all of them end before."""

LEAST_BUFFER = 8
"""Least number of packets in a buffer, whatever its bandwidth-delay products are."""

PACKET_BITS = 8 * 1500

CANDIDATE, OTHERS, SHORT = "candidate", "others", "short"
"""Names of the groups of flows."""


class Known(NamedTuple):
    """A parameter of the networks."""

    default: Any
    """Its value where neither the bounds nor a reduced network have it; None for none."""
    phrase: str
    """How a sentence names a value of it; empty if another phrase includes it."""
    meaning: str


PARAMETERS = {
    "rate": Known("20mbit", "a rate of {}", "rate of the bottleneck"),
    "rtt": Known("40ms", "a round-trip time of {}", "round-trip time without queues"),
    "buffer": Known("1bdp", "a buffer of {}", "buffer, in rate × round-trip time or in packets"),
    "discipline": Known(None, "the queue discipline {}", "queue discipline in place of DropTail"),
    "loss": Known(None, "random loss of {}", "probability that a packet is lost"),
    "loss_burst": Known(None, "in bursts of {} packets", "mean number of packets lost at once"),
    "jitter": Known(None, "jitter of {}", "maximum of a random delay; packets stay in order"),
    "reordering": Known(None, "reordering of {}", "probability that a packet is overtaken"),
    "reordering_delay": Known("5ms", "by {}", "delay of a packet that is overtaken"),
    "ack_aggregation": Known(
        None, "ACK aggregation of {}", "acknowledgements arrive at multiples of this time"
    ),
    "fall": Known(
        None, f"a fall of the rate to {{}} at {EVENT_S} s", "fraction of the rate after a fall"
    ),
    "fall_time": Known(None, "for {}", "time until the rate returns; to the end without it"),
    "rtt_change": Known(
        None, f"a round-trip time that changes by {{}} at {EVENT_S} s", "factor of the delay"
    ),
    "outage": Known(None, f"an outage of {{}} at {EVENT_S} s", "time in which no packet arrives"),
    "flows": Known(1, "{}", "number of flows of the controller"),
    "others": Known(None, "beside {}", "controller of competing flows"),
    "others_count": Known(1, "in {}", "number of competing flows"),
    "others_start": Known("0s", "from {} on", "start of the competing flows"),
    "short": Known(
        None, "short transfers at a load of {}", "load of short transfers of the controller"
    ),
}
"""All parameters, in the order of columns and sentences."""


def packets(values: Mapping[str, Any]) -> int:
    """Return the buffer of a network in packets.

    Examples
    --------
    >>> packets({"rate": "12mbit", "rtt": "100ms", "buffer": "0.5bdp"})
    50
    """
    given = str(value_of(values, "buffer"))
    if given.endswith("p") and given[:-1].isdecimal():
        return int(given[:-1])
    if not given.endswith("bdp"):
        raise PlanError(f'a buffer is such as "1bdp" or "30p", not {given}')
    rate, rtt = parse_rate(value_of(values, "rate")), parse_time(value_of(values, "rtt"))
    return max(round(float(given.removesuffix("bdp")) * rate * rtt / PACKET_BITS), LEAST_BUFFER)


def value_of(values: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401
    """Return the value of a parameter, or its default."""
    found = values.get(name)
    return PARAMETERS[name].default if found is None else found


def network(values: Mapping[str, Any], controller: str) -> JsonObject:
    """Return the scenario of a network as plain data, for a controller and all that is beside it.

    Examples
    --------
    >>> made = network({"rate": "12mbit", "rtt": "100ms", "ack_aggregation": "2ms"}, "copa")
    >>> made["dumbbell"]["back"]
    {'ack_aggregation': '2ms'}
    """
    rate, rtt = value_of(values, "rate"), value_of(values, "rtt")
    delay_s = parse_time(rtt) / 2
    limit = f"{packets(values)}p"
    link: JsonObject = {"rate": rate, "delay": _seconds(delay_s), "queue": limit}
    if values.get("discipline") is not None:
        link["queue"] = {"kind": values["discipline"], "limit": limit}
        if values["discipline"] == "red":
            # RED's thresholds are fractions of its limit; twice the buffer begins to drop at 0.3.
            link["queue"]["limit"] = f"{2 * packets(values)}p"
    if values.get("loss") is not None:
        loss, burst = values["loss"], values.get("loss_burst")
        link["loss"] = loss if burst is None else _bursts(loss, burst)
    if values.get("jitter") is not None:
        link["jitter"] = values["jitter"]
    if values.get("reordering") is not None:
        delay = value_of(values, "reordering_delay")
        link["reorder"] = {"probability": values["reordering"], "delay": delay}
    if values.get("ack_aggregation") is not None:
        link["back"] = {"ack_aggregation": values["ack_aggregation"]}
    if changes := _changes(values, parse_rate(rate), delay_s):
        link["changes"] = changes
    if values.get("outage") is not None:
        link["blackout"] = [{"at": f"{EVENT_S}s", "for": values["outage"]}]
    return {
        "duration": f"{DURATION_S}s",
        "warmup": f"{WARMUP_S}s",
        "dumbbell": link,
        "access": {"delay": "0us..200us"},
        "tcp": {"conventions": "linux"},
        "flow": _flows(values, controller),
    }


def _flows(values: Mapping[str, Any], controller: str) -> list[JsonObject]:
    """Return the groups of flows."""
    own = {"name": CANDIDATE, "controller": controller, "start": "0s..500ms"}
    if (count := value_of(values, "flows")) != 1:
        own["count"] = count
    flows: list[JsonObject] = [own]
    if values.get("others") is not None:
        other = {"name": OTHERS, "controller": values["others"]}
        first = parse_time(value_of(values, "others_start"), zero=True)
        other["start"] = f"{first:.6g}s..{first + 0.5:.6g}s"
        flows.append({**other, "count": value_of(values, "others_count")})
    if values.get("short") is not None:
        sizes = {"kind": "pareto", "mean": "50kb", "shape": 1.2, "max": "5mb"}
        arrivals = {"load": values["short"], "sizes": sizes}
        flows.append({"name": SHORT, "controller": controller, "arrivals": arrivals})
    return flows


def _changes(values: Mapping[str, Any], rate_bps: float, delay_s: float) -> list[JsonObject]:
    """Return the changes of the link over time."""
    first: JsonObject = {}
    if values.get("fall") is not None:
        first["rate"] = _bits(values["fall"] * rate_bps)
    if values.get("rtt_change") is not None:
        first["delay"] = _seconds(values["rtt_change"] * delay_s)
    if not first:
        return []
    changes = [{"at": f"{EVENT_S}s", **first}]
    if values.get("fall") is not None and values.get("fall_time") is not None:
        end = EVENT_S + parse_time(values["fall_time"])
        changes.append({"at": f"{end:.6g}s", "rate": _bits(rate_bps)})
    return changes


def _bursts(loss: float, burst: float) -> JsonObject:
    """Return losses of a mean probability in bursts of a mean length (Gilbert's model)."""
    leave = 1 / burst
    enter = float(f"{leave * loss / (1 - loss):.6g}")
    return {"kind": "gilbert_elliott", "p": enter, "r": float(f"{leave:.6g}")}


def _bits(rate_bps: float) -> str:
    """Format a rate as a value of a scenario."""
    return f"{rate_bps / 1e6:.6g}mbit"


def _seconds(time_s: float) -> str:
    """Format a time as a value of a scenario."""
    return f"{1000 * time_s:.6g}ms"
