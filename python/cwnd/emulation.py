"""Emulated links for real traffic: what the options say, and what came of it.

Linux only. The links themselves are `cwnd_linux::emulate`: see `docs/emulate.md`.
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
"""What can be said of a link, spelled as in scenario files."""

_UNITS: dict[str, Kind] = {"rate": "rate", "delay": "time"}
_WAYS = (("up", "inside", "outside"), ("down", "outside", "inside"))
_RED_ECN: JsonObject = {"kind": "red", "ecn": True}
_MISTAKE = re.compile(r"(?:[^:]*:\d+: )?(?:link\[(?P<link>\d)\]\.(?P<key>\w+)\S*: )?(?P<text>.*)")


class LatenessRecord(TypedDict):
    """How long after their time packets were released, in seconds."""

    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class ToolRecord(TypedDict):
    """What the emulator itself did.

    ``late`` are the packets released over 0.2 ms after their time, ``overrun`` those that the
    kernel dropped before the emulator read them, ``refused`` those that it would not take back;
    ``limit`` says why the tool, not the link, was the limit.
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
    """What an emulation measured: the links are up and down."""

    time: Series
    links: list[LinkRecord]
    tool: ToolRecord


def read_links(shared: Mapping[str, str], *, up: str | None = None, down: str | None = None) -> str:
    """Read what is said of a link.

    Parameters
    ----------
    shared
        Values of `KEYS` for both directions, as in scenario files; ``red-ecn`` is RED that marks.
    up, down
        What differs in one direction: ``KEY=VALUE,...``.

    Returns
    -------
    str
        A scenario of the two links in JSON.

    Raises
    ------
    ArgumentError
        A value is wrong; its name is that of the option.

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

    differing = {"up": _pairs("up", up), "down": _pairs("down", down)}
    links: list[JsonObject] = []
    for name, start, end in _WAYS:
        keys = {**shared, **differing[name]}
        for key, kind in _UNITS.items():
            option = f"{name}: {key}" if key in differing[name] else key
            read_argument(option, partial(check_unit, kind), keys.get(key))
        ends = {"name": name, "from": start, "to": end, "duplex": False, "loss_of_acks": True}
        links.append({**ends, **{key: _value(key, text) for key, text in keys.items()}})
    # Whose packets and whose round-trip time a queue in `bdp` is of.
    flow = {"controller": "reno", "from": "inside", "to": "outside"}
    document = {"duration": 1, "link": links, "flow": [flow]}
    try:
        return load(tomli_w.dumps(document), "link")
    except ScenarioError as mistake:
        raise _blame(str(mistake), differing) from None


def _pairs(option: str, text: str | None) -> dict[str, str]:
    """Take KEY=VALUE,... apart; a comma in braces is part of a value."""
    pairs: dict[str, str] = {}
    for pair in re.split(r",(?![^{]*\})", text) if text is not None else []:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or key not in KEYS:
            known = ", ".join(KEYS)
            raise ArgumentError(option, f"{pair!r} is not KEY=VALUE with a KEY of {known}")
        pairs[key] = value
    return pairs


def _value(key: str, text: str) -> str | JsonObject:
    """Return the value of a link's key; a queue may be an inline table of TOML."""
    if not text.isprintable():
        raise ArgumentError(key, f"{text!r} is more than one line")
    if key == "queue" and text == "red-ecn":
        return _RED_ECN
    if key == "queue" and text.startswith("{"):
        try:
            return dict(tomllib.loads(f"queue = {text}")["queue"])
        except tomllib.TOMLDecodeError as mistake:
            raise ArgumentError(key, f"{text!r} is not TOML: {mistake}") from None
    return text


def _blame(message: str, differing: Mapping[str, Mapping[str, str]]) -> ArgumentError:
    """Tell a scenario's mistake as one of the option that said it."""
    match = _MISTAKE.fullmatch(message)
    if match is None or match["key"] is None:
        return ArgumentError("queue", message if match is None else match["text"])
    way = _WAYS[int(match["link"])][0]
    if match["key"] in differing[way]:
        return ArgumentError(way, f"{match['key']}: {match['text']}")
    return ArgumentError(match["key"], match["text"])


def summarise(record: EmulationRecord) -> list[str]:
    """Say in a few lines what an emulation measured.

    Parameters
    ----------
    record
        What it measured.
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
        lines.append(f"the tool, not the link, was the limit: {tool['limit']}")
    return lines


def to_json(record: EmulationRecord, seed: int) -> JsonObject:
    """Give the document of an emulation, as ``docs/emulate.md`` describes it.

    Parameters
    ----------
    record
        What it measured.
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
