"""The measured networks, as scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Scenario = dict[str, Any]


@dataclass(frozen=True)
class Dumbbell:
    """SACK flows through one RED queue, each with its own access links, as in ``dumbbell.tcl``."""

    megabits: int
    flows: int
    seconds: int

    def __str__(self) -> str:
        size = f"{self.megabits // 1000} Gb/s" if self.megabits >= 1000 else f"{self.megabits} Mb/s"
        return f"{size}, {self.flows} flows, {self.seconds} s"

    def scenario(self) -> Scenario:
        """Return the network of ``dumbbell.tcl``, with ns-2's conventions."""
        access = 10 * self.megabits if self.megabits > 900 else 1000
        spacing = 0.01 if self.flows > 20 else 0.1
        limit = int(2.5 * int(self.megabits * 1e6 * 0.1 / 8000))
        flows = [
            {
                "name": f"flow-{i}",
                "controller": "reno",
                "start": spacing * i,
                "access": {"rate": f"{access}mbit", "delay": (1 + 0.1 * i) / 1000},
            }
            for i in range(self.flows)
        ]
        return {
            "name": "speed",
            "duration": float(self.seconds),
            "dumbbell": {
                "rate": f"{self.megabits}mbit",
                "delay": "40ms",
                "queue": {"kind": "red", "limit": f"{limit}p", "mean_packet": 1000},
            },
            "access": {"queue": "1000000p"},
            "tcp": {"conventions": "ns2", "window": 100_000},
            "flow": flows,
        }


def bare(seconds: float, rate: str, delay: str, flows: Mapping[str, object]) -> Scenario:
    """Return a network with one link in each direction and one sample, to measure flows alone."""
    return {
        "name": "bare",
        "duration": seconds,
        "sample": seconds,
        "dumbbell": {"rate": rate, "delay": delay},
        "flow": [dict(flows)],
    }


def short_flows(count: int) -> Scenario:
    """Return transfers of ten packets each, during ten seconds on one link of 100 Gb/s."""
    transfer = {"controller": "cubic", "count": count, "bytes": 14_600, "start": "0s..9.5s"}
    return bare(10, "100gbit", "10ms", transfer)


def long_flows(count: int, seconds: int) -> Scenario:
    """Return endless flows over one link of 10 Gb/s, with their own hosts."""
    endless = {"controller": "cubic", "count": count, "start": "0s..1s", "rtt": "80ms..120ms"}
    return bare(seconds, "10gbit", "20ms", endless)


def controlled(spec: str, conventions: str) -> Scenario:
    """Return four flows of a controller on 1 Gb/s, 20 ms and a buffer of one product."""
    flows = {"controller": spec, "count": 4, "start": "0s..500ms"}
    network = bare(10, "1gbit", "10ms", flows)
    network["dumbbell"]["queue"] = "1bdp"
    network["tcp"] = {"conventions": conventions}
    return network


def idle_flows(count: int, *, hosts: bool) -> Scenario:
    """Return flows that start after the end of the run."""
    waiting: Scenario = {"controller": "cubic", "count": count, "start": "2s"}
    if hosts:
        waiting["rtt"] = "80ms..120ms"
    return bare(1, "10gbit", "20ms", waiting)


def full_pipe(flows: int, window: int) -> Scenario:
    """Return flows that each keep a window in flight, on a path without a bottleneck."""
    endless = {"controller": "reno", "count": flows, "start": "0s..1s", "tcp": {"window": window}}
    network = bare(8, "1tbit", "200ms", endless)
    network["dumbbell"]["queue"] = "infinite"
    return network


def sampled(scenario: Scenario, sample: str | float) -> Scenario:
    """Return the same network with another sampling interval."""
    return {**scenario, "sample": sample}
