"""Emulated links for real traffic: options and measurements.

Linux only. The links are implemented in `cwnd_linux::emulate`; see `docs/emulate.md`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from cwnd.errors import ArgumentError, read_argument
from cwnd.toml import tomllib
from cwnd.units import Kind, check_unit, format_rate, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.records import JsonObject, LinkRecord, Series

KEYS = ("rate", "delay", "queue", "loss")
"""Keys of a link, as in scenario files."""

_UNITS: dict[str, Kind] = {"rate": "rate", "delay": "time"}
_WAYS = (("up", "inside", "outside"), ("down", "outside", "inside"))
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


class EmulationRecord(TypedDict):
    """Measurements of an emulation; the links are up and down."""

    time: Series
    links: list[LinkRecord]
    tool: ToolRecord


def read_links(shared: Mapping[str, str], *, up: str | None = None, down: str | None = None) -> str:
    """Build the scenario of a link from its options.

    Parameters
    ----------
    shared
        Values of `KEYS` for both directions, as in scenario files; ``red-ecn`` is RED that marks.
    up, down
        Values that differ in one direction: ``KEY=VALUE,...``.

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

    from cwnd import ScenarioError
    from cwnd._native import load

    differing = {"up": _split_pairs("up", up), "down": _split_pairs("down", down)}
    links: list[JsonObject] = []
    for name, start, end in _WAYS:
        keys = {**shared, **differing[name]}
        for key, kind in _UNITS.items():
            option = f"{name}: {key}" if key in differing[name] else key
            read_argument(option, partial(check_unit, kind), keys.get(key))
        ends = {"name": name, "from": start, "to": end, "duplex": False, "loss_of_acks": True}
        links.append({**ends, **{key: _value(key, text) for key, text in keys.items()}})
    # The controller defines the packet size and the round-trip time of a queue in `bdp`.
    flow = {"controller": "reno", "from": "inside", "to": "outside"}
    document = {"duration": 1, "link": links, "flow": [flow]}
    try:
        return load(tomli_w.dumps(document), "link")
    except ScenarioError as mistake:
        raise _option_error(str(mistake), differing) from None


def _split_pairs(option: str, text: str | None) -> dict[str, str]:
    """Split KEY=VALUE,...; commas within braces belong to the value."""
    pairs: dict[str, str] = {}
    for pair in re.split(r",(?![^{]*\})", text) if text is not None else []:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or key not in KEYS:
            known = ", ".join(KEYS)
            raise ArgumentError(option, f"{pair!r} is not KEY=VALUE with a KEY of {known}")
        pairs[key] = value
    return pairs


def _value(key: str, text: str) -> str | JsonObject:
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


def _option_error(message: str, differing: Mapping[str, Mapping[str, str]]) -> ArgumentError:
    """Convert a scenario error to an error of the option that caused it."""
    match = _MISTAKE.fullmatch(message)
    if match is None or match["key"] is None:
        return ArgumentError("queue", message if match is None else match["text"])
    way = _WAYS[int(match["link"])][0]
    if match["key"] in differing[way]:
        return ArgumentError(way, f"{match['key']}: {match['text']}")
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
            counted.append(f"{format_rate(rate)} of {format_rate(link['rate_bps'])}")
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
    return lines


def to_json(record: EmulationRecord, seed: int) -> JsonObject:
    """Return the JSON document of an emulation; see ``docs/emulate.md``.

    Parameters
    ----------
    record
        The measurements.
    seed
        The seed of random loss and RED.
    """
    from cwnd.result import jsonable, link_json

    links = [
        link_json(link) | {"queue": link["queue"].tolist(), "lost": link["drops_series"].tolist()}
        for link in record["links"]
    ]
    time, tool = record["time"].tolist(), dict(record["tool"])
    return jsonable({"seed": seed, "time": time, "links": links, "tool": tool})
