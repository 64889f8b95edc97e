"""The networks that are measured, as scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Scenario = dict[str, Any]


@dataclass(frozen=True)
class Dumbbell:
    """SACK flows through one RED queue, each on access links of its own: ``dumbbell.tcl``."""

    megabits: int
    flows: int
    seconds: int

    def __str__(self) -> str:
        size = f"{self.megabits // 1000} Gb/s" if self.megabits >= 1000 else f"{self.megabits} Mb/s"
        return f"{size}, {self.flows} flows, {self.seconds} s"

    def scenario(self) -> Scenario:
        """Give the network as ``dumbbell.tcl`` has it, in ns-2's conventions."""
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
    """Give a network of one link there and one back that samples once: what flows alone cost."""
    return {
        "name": "bare",
        "duration": seconds,
        "sample": seconds,
        "dumbbell": {"rate": rate, "delay": delay},
        "flow": [dict(flows)],
    }


def short_flows(count: int) -> Scenario:
    """Give transfers of ten packets each, over ten seconds of one link of 100 Gb/s."""
    transfer = {"controller": "cubic", "count": count, "bytes": 14_600, "start": "0s..9.5s"}
    return bare(10, "100gbit", "10ms", transfer)


def long_flows(count: int, seconds: int) -> Scenario:
    """Give endless flows over one link of 10 Gb/s, on hosts of their own."""
    endless = {"controller": "cubic", "count": count, "start": "0s..1s", "rtt": "80ms..120ms"}
    return bare(seconds, "10gbit", "20ms", endless)


def idle_flows(count: int, *, hosts: bool) -> Scenario:
    """Give flows that do not begin before the run ends."""
    waiting: Scenario = {"controller": "cubic", "count": count, "start": "2s"}
    if hosts:
        waiting["rtt"] = "80ms..120ms"
    return bare(1, "10gbit", "20ms", waiting)


def full_pipe(flows: int, window: int) -> Scenario:
    """Give flows that keep a window each in flight, on a path that never queues for long."""
    endless = {"controller": "reno", "count": flows, "start": "0s..1s", "tcp": {"window": window}}
    network = bare(8, "1tbit", "200ms", endless)
    network["dumbbell"]["queue"] = "infinite"
    return network


def sampled(scenario: Scenario, sample: str | float) -> Scenario:
    """Give the same network with another step of the series."""
    return {**scenario, "sample": sample}
