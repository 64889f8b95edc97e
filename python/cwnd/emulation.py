"""Emulated links for real traffic: options and measurements.

Linux only. The links are implemented in `cwnd_linux::emulate`; see `docs/emulate.md`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from cwnd._base import toml as tomllib
from cwnd._runs.defaults import MTU
from cwnd._runs.scenario_keys import link_keys, read_values
from cwnd.errors import ArgumentError, read_argument
from cwnd.units import Kind, check_unit, format_rate, format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd._base.records import JsonObject, LinkRecord, Series

KEYS = ("rate", "delay", "queue", "loss")
"""Keys of a link with an option of their own, as in scenario files."""

_FIXED = ("name", "from", "to", "duplex", "back", "loss_of_acks")
"""Keys of a link that an emulation sets itself."""

_UNITS: dict[str, Kind] = {"rate": "rate", "delay": "time"}
_WAYS = (("up", "inside", "outside"), ("down", "outside", "inside"))
_WORTH_TELLING = 0.1
"""Part of the time of the TCP connections from which a limit is in the summary."""

_RED_ECN: JsonObject = {"kind": "red", "ecn": True}
_MISTAKE = re.compile(r"(?:[^:]*:\d+: )?(?:link\[(?P<link>\d)\]\.(?P<key>\w+)\S*: )?(?P<text>.*)")


class LatenessRecord(TypedDict):
    """Delay between the scheduled and the actual release of packets, in seconds."""

    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class ToolRecord(TypedDict):
    """Statistics of the emulator itself.

    ``late`` counts packets released more than 0.2 ms late, ``overrun`` packets that the kernel
    dropped before the emulator read them, ``refused`` packets that the kernel did not accept back.
    ``limit`` is the reason why the emulator, not the link, was the bottleneck, if it was.
    """

    realtime: bool
    cpu_s: float
    wall_s: float
    packets: int
    late: int
    overrun: int
    refused: int
    lateness_s: LatenessRecord
    limit: str | None


class TcpRecord(TypedDict):
    """Times of the TCP connections whose data cross a link in one direction, in seconds, summed.

    ``busy_s`` is the time with data to send; in the other two parts of it the receiver's window
    or the send buffer was the limit.
    """

    busy_s: float
    receive_window_s: float
    send_buffer_s: float


class EmulationRecord(TypedDict):
    """Measurements of an emulation; the links and the connections over them are up and down.

    ``time`` and the series of the links are absent if only a summary was needed.
    """

    time: Series
    links: list[LinkRecord]
    tool: ToolRecord
    tcp: list[TcpRecord]


def read_links(
    shared: Mapping[str, str],
    *,
    more: Sequence[str] = (),
    up: str | None = None,
    down: str | None = None,
    mtu: int = MTU,
) -> str:
    """Build the scenario of a link from its options.

    Parameters
    ----------
    shared
        Values of `KEYS` for both directions, as in scenario files; ``red-ecn`` is RED that marks.
    more
        Other keys of a link in scenario files: ``KEY=VALUE`` each.
    up, down
        Values of any keys that differ in one direction: ``KEY=VALUE,...``.
    mtu
        Bytes of the largest packet, the unit of queues in ``bdp``.

    Returns
    -------
    str
        A scenario with the two links as JSON.

    Raises
    ------
    ArgumentError
        A value is invalid; the error names the option.

    Examples
    --------
    >>> import json
    >>> text = read_links({"rate": "10mbit", "delay": "20ms"}, up="rate=1mbit,queue=15p")
    >>> [link["rate"] for link in json.loads(text)["link"]]
    ['1mbit', '10mbit']
    >>> read_links({"rate": "fast"})
    Traceback (most recent call last):
    cwnd.errors.ArgumentError: rate: ...
    """
    import tomli_w

    from cwnd._native import ScenarioError, load

    for key, kind in _UNITS.items():
        read_argument(key, partial(check_unit, kind), shared.get(key))
    values: JsonObject = {key: _value(key, text) for key, text in shared.items()}
    differing = {"set": _read_pairs("set", more)}
    differing |= {
        name: _read_pairs(name, [] if text is None else _split_pairs(text))
        for name, text in (("up", up), ("down", down))
    }
    links: list[JsonObject] = []
    for name, start, end in _WAYS:
        ends = {"name": name, "from": start, "to": end, "duplex": False, "loss_of_acks": True}
        links.append({**ends, **values, **differing["set"], **differing[name]})
    _check_traces(links, differing)
    # The controller defines the packet size and the round-trip time of a queue in `bdp`.
    tcp = {"packet": mtu - 40, "header": 40}
    flow = {"controller": "reno", "from": "inside", "to": "outside", "tcp": tcp}
    document = {"duration": 1, "link": links, "flow": [flow]}
    try:
        return load(tomli_w.dumps(document), "link")
    except ScenarioError as mistake:
        raise _option_error(str(mistake), differing) from None


def _check_traces(links: Sequence[JsonObject], differing: Mapping[str, JsonObject]) -> None:
    """Check that no trace is silently that of both directions, and that each one has a rate."""
    words = "a trace is of one direction"
    if "trace" in differing["set"] and not any("trace" in differing[name] for name, *_ in _WAYS):
        both = "--up trace=FILE and --down trace=FILE, which may be the same file"
        raise ArgumentError("set", f"trace: {words}: write {both}")
    for (name, *_), link, other in zip(_WAYS, links, reversed(links), strict=True):
        if "trace" in other and link.keys().isdisjoint(("trace", "rate", "model")):
            given = _WAYS[1][0] if name == _WAYS[0][0] else _WAYS[0][0]
            problem = f"trace: {words}: write --{name} trace=FILE or --{name} rate=RATE too"
            raise ArgumentError(given, problem)


def _split_pairs(text: str) -> list[str]:
    """Split KEY=VALUE,... at the commas outside brackets, braces and quotes."""
    pairs, depth, quote = [""], 0, ""
    for letter in text:
        if letter == "," and not depth and not quote:
            pairs.append("")
            continue
        pairs[-1] += letter
        if letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        elif not quote:
            depth += (letter in "[{") - (letter in "]}")
    return pairs


def _read_pairs(option: str, pairs: Iterable[str]) -> JsonObject:
    """Parse KEY=VALUE texts; any key of a link that an emulation does not set itself."""
    given = list(pairs)
    known = [key for key in link_keys() if key not in _FIXED]
    for pair in given:
        key, equals, _ = (part.strip() for part in pair.partition("="))
        if not equals or key not in known:
            problem = f"{pair!r} is not KEY=VALUE with a KEY of {', '.join(known)}"
            raise ArgumentError(option, problem)
    values = read_values(given, option=option, table="link[0].", example="KEY=VALUE")
    if values.get("queue") == "red-ecn":
        values["queue"] = _RED_ECN
    return values


def _value(key: str, text: str) -> object:
    """Return the value of a link's key; a queue may be a TOML inline table."""
    if not text.isprintable():
        raise ArgumentError(key, f"{text!r} has more than one line")
    if key == "queue" and text == "red-ecn":
        return _RED_ECN
    if key == "queue" and text.startswith("{"):
        try:
            return dict(tomllib.loads(f"queue = {text}")["queue"])
        except tomllib.TOMLDecodeError as mistake:
            raise ArgumentError(key, f"{text!r} is not TOML: {mistake}") from None
    return text


def _option_error(message: str, differing: Mapping[str, JsonObject]) -> ArgumentError:
    """Convert a scenario error to an error of the option that caused it."""
    match = _MISTAKE.fullmatch(message)
    if match is None or match["key"] is None:
        return ArgumentError("queue", message if match is None else match["text"])
    for option in (_WAYS[int(match["link"])][0], "set"):
        if match["key"] in differing[option]:
            return ArgumentError(option, f"{match['key']}: {match['text']}")
    return ArgumentError(match["key"], match["text"])


def summarise(record: EmulationRecord) -> list[str]:
    """Summarise the measurements of an emulation in a few lines.

    Parameters
    ----------
    record
        The measurements.
    """
    lines = []
    for link in record["links"]:
        fates = ((link["drops"], "dropped"), (link["marks"], "marked"), (link["losses"], "lost"))
        counted = [f"{link['arrivals']} packets"]
        counted += [f"{count} {word}" for count, word in fates if count]
        if link["departures"]:
            rate = 8 * link["bytes_departed"] / record["tool"]["wall_s"]
            counted.append(f"{format_rate(rate)} of {format_rate(_offered(link, rate))}")
        lines.append(f"{link['name']}: {', '.join(counted)}")
    tool = record["tool"]
    if tool["packets"]:
        late = tool["lateness_s"]
        lines.append(
            f"released late by {format_time(late['p50'], 2)}, 99 % of the packets within "
            f"{format_time(late['p99'], 2)}; CPU {100 * tool['cpu_s'] / tool['wall_s']:.0f} %"
        )
    if tool["limit"] is not None:
        lines.append(f"limited by the emulator, not by the link: {tool['limit']}")
    return [*lines, *_buffer_limits(record)]


def _buffer_limits(record: EmulationRecord) -> list[str]:
    """Describe the buffers that limited TCP connections."""
    lines = []
    for (way, start, end), tcp in zip(_WAYS, record["tcp"], strict=True):
        window, buffer = tcp["receive_window_s"], tcp["send_buffer_s"]
        limits = (
            (window, "receiver's window", "reads late or sets SO_RCVBUF", f"tcp_rmem {end}"),
            (buffer, "send buffer", "sets SO_SNDBUF", f"tcp_wmem {start}"),
        )
        for limited, limit, action, setting in limits:
            if limited > _WORTH_TELLING * tcp["busy_s"]:
                lines.append(
                    f"limited by TCP's buffers, not by the link: {way} by the {limit} for "
                    f"{100 * limited / tcp['busy_s']:.0f} % of the time: the application "
                    f"{action}, or net.ipv4.{setting} the namespace is small"
                )
    return lines


def _offered(link: LinkRecord, rate: float) -> float:
    """Return the rate of a link; the mean if it varies, the token rate if the link has a shaper."""
    nominal, used = link["rate_bps"], link["utilization"]
    if not used > 0:
        return nominal
    # The utilisation has another clock: the quotient of a constant rate is not exactly this rate.
    offered = rate / used
    return nominal if abs(offered / nominal - 1) < 0.02 else offered


def to_json(record: EmulationRecord, seed: int) -> JsonObject:
    """Return the JSON document of an emulation; see ``docs/emulate.md``.

    Parameters
    ----------
    record
        The measurements, with their series.
    seed
        The seed of random loss and RED.
    """
    from cwnd._runs.result import jsonable, link_json

    links = [
        link_json(link) | {"queue": link["queue"].tolist(), "lost": link["drops_series"].tolist()}
        for link in record["links"]
    ]
    time, tool, tcp = record["time"].tolist(), dict(record["tool"]), record["tcp"]
    return jsonable({"seed": seed, "time": time, "links": links, "tool": tool, "tcp": tcp})
