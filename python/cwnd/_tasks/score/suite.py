"""Suites of networks: ranges in a file, and the networks that a seed draws from them."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from cwnd._base import toml
from cwnd._base.files import read_text
from cwnd._base.law_files import listed_twice
from cwnd.controller import names_python, read_controller
from cwnd.errors import ArgumentError
from cwnd.units import parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd._base.records import JsonObject
    from cwnd._search.objective import Objective
    from cwnd._search.space import Space

Kind: TypeAlias = Literal["alone", "lossy", "step", "several", "short buffer", "beside"]
"""What a network tests."""

KINDS: tuple[Kind, ...] = ("alone", "lossy", "step", "several", "short buffer", "beside")
"""All kinds, which the networks of a suite have in turn."""

OBJECTIVES = ("goodput", "delay", "loss", "fairness")
"""Objectives by name; each has a weight in a suite."""

RANGES = ("rate", "rtt", "buffer", "loss", "flows", "step")
"""What a suite has a range of."""

RIVAL = "cubic"
"""Controller of the other flow of a network of the kind ``beside``."""

PACKET_BITS = 8 * 1500
"""Bits of a packet on the link."""

LEAST_BUFFER = 4
"""Packets of the shortest buffer."""

MOST_FLOWS = 1000
"""Flows of the largest network."""

_LARGEST = 1e300
"""Largest number of a suite that has no other bound."""

SUITES = Path(__file__).parent / "suites"


@dataclass(frozen=True, slots=True)
class Network:
    """A network of a suite."""

    kind: Kind
    label: str
    """Such as ``20 Mbit/s, RTT 40 ms, buffer 35 packets``."""
    document: JsonObject
    """The scenario, without the flows of the candidate."""
    flows: int
    """Number of flows of the candidate."""
    capacity_bps: float
    """Mean rate after the warm-up."""
    path_packets: float
    """Least bandwidth-delay product, per flow."""

    def scenario(self, controller: str) -> JsonObject:
        """Return the scenario with a controller in the place of the candidate."""
        own = {"name": "candidate", "controller": controller, "count": self.flows}
        start = {"start": "0s..1s"} if self.flows > 1 else {}
        return {**self.document, "flow": [own | start, *self.document["flow"]]}


@dataclass(frozen=True, slots=True)
class Search:
    """The search of a suite for networks on which a candidate is worst."""

    against: str
    """Controller that the candidate is compared with."""
    objectives: tuple[Objective, ...]
    budget: str
    """Of one candidate, in runs."""
    weight: float
    """Exponent of the search's score, by which the combined one is multiplied."""
    space: Space
    """Bounds of the networks."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite."""

    name: str
    title: str
    references: tuple[str, ...]
    duration: str
    warmup: str
    quick: int
    training: int
    held_out: int
    enough: float
    weights: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    search: Search | None

    def networks(self, part: Literal["training", "held-out"], seed: int) -> list[Network]:
        """Draw the networks of a part; the two parts have draws of their own."""
        draw = random.Random(f"{part} {seed}")  # noqa: S311
        number = self.training if part == "training" else self.held_out
        return [self._network(KINDS[place % len(KINDS)], draw) for place in range(number)]

    def _network(self, kind: Kind, draw: random.Random) -> Network:
        """Draw a network; each draws the same number of values, whatever its kind."""

        def between(name: str) -> float:
            low, high = self.ranges[name]
            return math.exp(math.log(low) + draw.random() * math.log(high / low))

        rate, rtt, buffer = between("rate"), between("rtt"), between("buffer")
        loss, flows, step = between("loss"), round(between("flows")), between("step")
        if kind == "short buffer":
            buffer = self.ranges["buffer"][0]
        rate_kbit, rtt_us, factor = round(rate / 1e3), round(1e6 * rtt), round(step, 3)
        bdp = rate_kbit * 1e3 * rtt_us / 1e6 / PACKET_BITS
        packets = max(LEAST_BUFFER, round(buffer * bdp))
        link: JsonObject = {
            "rate": f"{rate_kbit}kbit",
            "delay": f"{rtt_us / 2:g}us",
            "queue": f"{packets}p",
        }
        label = f"{rate_kbit / 1e3:.3g} Mbit/s, RTT {rtt_us / 1e3:.3g} ms, buffer {packets} packets"
        capacity, others = rate_kbit * 1e3, []
        number = flows if kind == "several" else 1
        if kind == "lossy":
            link["loss"] = round(loss, 6)
            label += f", random loss {100 * loss:.2g} %"
        elif kind == "step":
            begin, end = parse_time(self.warmup), parse_time(self.duration)
            middle = end / 2
            after = round(rate_kbit * factor)
            link["changes"] = [{"at": f"{middle:g}s", "rate": f"{after}kbit"}]
            label += f", {after / 1e3:.3g} Mbit/s from {middle:g} s on"
            capacity = 1e3 * (rate_kbit * (middle - begin) + after * (end - middle)) / (end - begin)
        elif kind == "several":
            label += f", {number} flows"
        elif kind == "beside":
            others = [{"name": "other", "controller": RIVAL}]
            label += f", beside {RIVAL}"
        most = most_packets(bdp * max(1, factor), packets)
        document = {
            "name": "score",
            "duration": self.duration,
            "warmup": self.warmup,
            "tcp": {"conventions": "linux", "window": most},
            "dumbbell": link,
            "flow": others,
        }
        path = bdp * (min(1, factor) if kind == "step" else 1) / (number + len(others))
        return Network(kind, label, document, number, capacity, path)


def most_packets(bdp: float, buffer: int) -> int:
    """Return the largest window: a larger one would only cost time."""
    return round(8 * (bdp + buffer)) + 64


def suite_names() -> list[str]:
    """Return the names of the packaged suites."""
    return sorted(path.stem for path in SUITES.glob("*.toml"))


def read_suite(name: str) -> Suite:
    """Read a suite, by the name of a packaged one or by the path of a file ``NAME.toml``."""
    path = Path(name) if name.endswith(".toml") else SUITES / f"{name}.toml"
    if not name.endswith(".toml") and name not in suite_names():
        known = ", ".join(suite_names())
        raise ArgumentError("suite", f"{name!r} is not one of {known}, and no file NAME.toml")
    try:
        return _suite(path, toml.loads(read_text(path)))
    except OSError as problem:
        raise ArgumentError("suite", f"{path}: {problem.strerror or problem}") from None
    except (TypeError, ValueError) as problem:
        raise ArgumentError("suite", f"{path}: {problem}") from None


def _suite(path: Path, document: JsonObject) -> Suite:
    """Check a document; a ValueError names the key."""
    search = document.pop("search", None)
    keys = set(Suite.__dataclass_fields__) - {"name", "search"}
    if wrong := sorted(keys.symmetric_difference(document)):
        missing = "missing" if wrong[0] in keys else f"not one of {', '.join(sorted(keys))}"
        raise ValueError(f"{wrong[0]}: {missing}")
    begin, end = (parse_time(str(document[key])) for key in ("warmup", "duration"))
    if begin >= end / 2:
        raise ValueError("warmup: less than half of the duration is needed")
    references = document["references"]
    if not isinstance(references, list) or not references:
        raise ValueError("references: a list of controllers is needed")
    if (twice := listed_twice([str(name) for name in references])) is not None:
        raise ValueError(f"references: {twice} is listed twice")
    if any(names_python(str(name)) for name in references):
        # They would run in this process.
        raise ValueError("references: no classes in Python")
    quick, training, held_out = (_count(document, key) for key in ("quick", "training", "held_out"))
    if quick > training:
        raise ValueError(f"quick: at most training, {training}")
    weights = {
        key: _number(f"weights.{key}", value)
        for key, value in _table(document, "weights", OBJECTIVES).items()
    }
    if weights["goodput"] == 0:
        raise ValueError("weights.goodput: a number above 0 is needed")
    return Suite(
        path.stem,
        str(document["title"]),
        tuple(map(str, references)),
        str(document["duration"]),
        str(document["warmup"]),
        quick,
        training,
        held_out,
        _number("enough", document["enough"], 1),
        weights,
        {key: _range(key, value) for key, value in _table(document, "ranges", RANGES).items()},
        None if search is None else _search(path.parent, search),
    )


def _search(home: Path, table: object) -> Search:
    """Check the table of the search of a suite in a directory."""
    # A search needs an extra.
    from cwnd._search.budget import Budget
    from cwnd._search.objective import CAPACITY, read_objectives
    from cwnd._search.space import read_space

    keys = {"against", "objectives", "budget", "weight"}
    if not isinstance(table, dict) or not keys <= table.keys() <= {*keys, "bounds"}:
        raise ValueError(f"search: a table of {', '.join(sorted(keys))} is needed, and bounds")
    against = str(table["against"])
    if names_python(against):
        raise ValueError("search.against: no class in Python")
    if against != CAPACITY:
        read_controller(against)
    if not Budget(table["budget"]).runs:
        raise ValueError("search.budget: a number of runs such as 200runs is needed")
    if not isinstance(table["objectives"], list) or not table["objectives"]:
        raise ValueError("search.objectives: a list of names is needed")
    bounds = table.get("bounds")
    space = read_space(None if bounds is None else home / str(bounds))
    objectives = read_objectives(table["objectives"], against)
    for one in objectives:
        space.requiring(one.needs, f"search: the objective {one.name}")
    weight = _number("search.weight", table["weight"])
    return Search(against, objectives, table["budget"], weight, space)


def _range(key: str, value: object) -> tuple[float, float]:
    """Return the two ends of a range, in bit/s, seconds or numbers."""
    read: Callable[[Any], float] = {"rate": parse_rate, "rtt": parse_time}.get(
        key, lambda number: _number(f"ranges.{key}", number)
    )
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"ranges.{key}: two values are needed")
    low, high = map(read, value)
    if not 0 < low <= high < math.inf:
        raise ValueError(f"ranges.{key}: the first value is above 0 and at most the second")
    if key == "loss" and high >= 1:
        raise ValueError("ranges.loss: numbers below 1 are needed")
    if key == "flows" and not (low >= 2 and high <= MOST_FLOWS):
        raise ValueError(f"ranges.flows: numbers from 2 to {MOST_FLOWS} are needed")
    return low, high


def _count(document: JsonObject, key: str) -> int:
    """Return a number of networks."""
    value = document[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1000:
        raise ValueError(f"{key}: a whole number from 1 to 1000 is needed")
    return value


def _number(key: str, value: object, most: float = _LARGEST) -> float:
    """Return a number from 0 to ``most``."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
        return float(value)
    to = f" to {most:g}" if most < _LARGEST else ""
    raise ValueError(f"{key}: a number from 0{to} is needed")


def _table(document: JsonObject, key: str, names: tuple[str, ...]) -> JsonObject:
    """Return a table that has exactly these names."""
    table = document[key]
    if not isinstance(table, dict) or set(table) != set(names):
        raise ValueError(f"{key}: a table of {', '.join(names)} is needed")
    return cast("JsonObject", table)
