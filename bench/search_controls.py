"""Known faults that a search has to find, and controllers in which it must not find any.

`make controls` runs all of them with five seeds; words on the command line select some by name.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cwnd._runs.defaults import SEARCH_FINDINGS
from cwnd._search.explore import explore
from cwnd._search.networks import packets, value_of
from cwnd._search.objective import OBJECTIVES
from cwnd._search.search import find
from cwnd.units import parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cwnd._search.explore import Explorer
    from cwnd._search.search import Search

LAWS = Path(__file__).parents[1] / "validation" / "search"
SEEDS = range(1, 6)

RATE = {"from": "1mbit", "to": "100mbit", "log": True}
RTT = {"from": "5ms", "to": "300ms", "log": True}
BUFFER = {"from": "0.1bdp", "to": "4bdp", "log": True}
JITTER = {"from": "0.5ms", "to": "30ms", "log": True, "off": 0.6}
AGGREGATION = {"from": "0.5ms", "to": "30ms", "log": True, "off": 0.6}
FALL = {"from": 0.1, "to": 0.8, "log": True, "off": 0.6}
CHANGE = {"from": 0.4, "to": 3.0, "log": True, "off": 0.7}
OUTAGE = {"from": "100ms", "to": "3s", "log": True, "off": 0.8}
LOSS = {"from": 0.0001, "to": 0.03, "log": True, "off": 0.6}

PATH = {
    "rate": RATE, "rtt": RTT, "buffer": BUFFER, "loss": LOSS, "jitter": JITTER,
    "ack_aggregation": AGGREGATION, "fall": FALL, "rtt_change": CHANGE, "outage": OUTAGE,
}  # fmt: skip
"""One flow on a path with everything that varies."""

NEEDLE = {
    "rate": RATE,
    "rtt": {"from": "5ms", "to": "40ms", "log": True},
    "buffer": BUFFER,
    "jitter": {"from": "0.4ms", "to": "40ms", "log": True},
}


@dataclass(frozen=True)
class Control:
    """A search whose outcome is known."""

    name: str
    controller: str
    budget: str
    objective: str = "goodput"
    against: str = "cubic"
    bounds: dict[str, Any] | None = None
    """Axes of the bounds; None for the packaged ones."""
    sound: bool = False
    """Whether nothing may be found."""
    needs: tuple[str, ...] = ()
    """Parameters of which the known fault needs one."""
    inside: Callable[[Mapping[str, Any]], bool] = lambda _: True
    """Whether a network may have the known fault."""
    own_seeds: bool = field(default=False)

    def run(self, seed: int, out: str, *, explorer: Explorer = explore) -> Search:
        """Search with a seed."""
        bounds = None if self.bounds is None else {"axes": self.bounds}
        return find(
            self.controller, against=self.against, bounds=bounds, objective=self.objective,
            budget=self.budget, findings=SEARCH_FINDINGS, seed=seed, out=out,
            own_seeds=self.own_seeds, explorer=explorer,
        )  # fmt: skip

    def holds(self, found: Search) -> bool:
        """Test whether the outcome is the known one."""
        if self.sound:
            return not found.findings
        return any(
            self.inside(one.network) and (not self.needs or {*self.needs} & {*one.special})
            for one in found.findings
        )


def _shallow(network: Mapping[str, Any]) -> bool:
    """Test whether a buffer is below 1.5 bandwidth-delay products (Hock and others, 2017)."""
    product = parse_rate(value_of(network, "rate")) * parse_time(value_of(network, "rtt")) / 12000
    return packets(network) < 1.5 * product


def _in_needle(network: Mapping[str, Any]) -> bool:
    return parse_rate(network["rate"]) >= 80e6 and parse_time(network["jitter"]) <= 1e-3


FOUND = (
    Control("BBRv1's loss in shallow buffers", "bbr", "800runs", "loss", inside=_shallow),
    Control("Copa under ACK aggregation", "copa", "1200runs", bounds=PATH,
            needs=("ack_aggregation",)),
    Control("BBR after a fall of the rate", "bbr", "1200runs", "loss", bounds=PATH,
            needs=("fall",)),
    Control("Vegas with a wrong base RTT", f"{LAWS / 'vegas.law'}", "3000runs", bounds=PATH,
            needs=("rtt_change",)),
    Control("A law that stops after a timeout", f"{LAWS / 'stops.law'}", "800runs", bounds=PATH,
            needs=("outage", "loss", "fall")),
    Control("A needle", f"{LAWS / 'needle.law'}", "2000runs", bounds=NEEDLE, inside=_in_needle),
)  # fmt: skip

SOUND = tuple(
    Control(
        f"{name} beside itself, {objective}",
        name,
        "300runs",
        objective,
        name,
        sound=True,
        own_seeds=True,
    )
    for name in ("reno", "cubic")
    for objective in OBJECTIVES
)

EXCLUDED = (
    Control(
        "BBRv1's loss, bounds without shallow buffers and other flows", "bbr", "600runs", "loss",
        bounds={"rate": RATE, "rtt": RTT, "buffer": {"from": "2bdp", "to": "4bdp"}}, sound=True,
    ),
)  # fmt: skip

CONTROLS = (*FOUND, *EXCLUDED, *SOUND)


def needle_volume() -> float:
    """Return the part of the space of the needle's control in which its law is to fail."""
    import numpy as np

    from cwnd._search.space import read_space

    space = read_space({"axes": NEEDLE})
    points = np.random.default_rng(1).random((100_000, len(space.parameters)))
    networks = (space.named(space.values(point)) for point in points)
    return sum(map(_in_needle, networks)) / len(points)


def main(words: list[str]) -> int:
    """Run the controls whose names have one of some words, or all; print a table."""
    print(f"volume of the needle: {100 * needle_volume():.2f} % of its space")
    wrong = 0
    for control in CONTROLS:
        if words and not any(word in control.name for word in words):
            continue
        held, begin, said = 0, time.monotonic(), []
        for seed in SEEDS:
            with TemporaryDirectory() as out:
                found = control.run(seed, out)
            held += control.holds(found)
            said.append("; ".join(one.sentence for one in found.findings[:1]) or "nothing")
        wrong += held < len(SEEDS)
        each = (time.monotonic() - begin) / len(SEEDS)
        print(f"{control.name}: {held} of {len(SEEDS)}, {control.budget}, {each:.0f} s: {said}",
              flush=True)  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
