"""Many flows: time, memory, and the cost of a packet by number of flows."""

from __future__ import annotations

import math
import statistics

from networks import Scenario, full_pipe, idle_flows, long_flows, short_flows
from stages import Run, run
from tables import amount, table

ROUNDS = 3


def main() -> None:
    """Print time and memory of many flows."""
    _sizes()
    _memory()
    _growth()


def _sizes() -> None:
    """Print time and memory of the largest runs."""
    large: list[tuple[str, Scenario]] = [
        ("10⁶ short flows, 100 Gb/s", short_flows(1_000_000)),
        ("10⁴ long flows, 10 Gb/s", long_flows(10_000, 10)),
    ]
    rows = []
    for name, scenario in large:
        done = run(scenario)
        seconds = {stage: cost.seconds for stage, cost in done.stages.items()}
        rows.append(
            [
                name,
                f"{done.packets:,}",
                f"{sum(seconds.values()):.2f}",
                f"{seconds['run']:.2f}",
                f"{done.ns_per_packet:.0f}",
                amount(done.peak_bytes),
            ]
        )
    table("Many flows", ("", "packets", "total, s", "run, s", "ns/packet", "peak memory"), rows)


def _memory() -> None:
    """Print the memory of a flow that has not started, and of a packet in flight."""
    few, many = 100_000, 200_000
    rows = []
    for name, hosts in (("idle flow", False), ("idle flow with own hosts", True)):
        one, two = (run(idle_flows(count, hosts=hosts)) for count in (few, many))
        inside = (_grown(two) - _grown(one)) / (many - few)
        whole = (two.peak_bytes - one.peak_bytes) / (many - few)
        rows.append([name, f"{inside:.0f}", f"{whole:.0f}"])
    # Windows that are not near a power of two fill the buffers to an average degree.
    flows, few, many = 100, 3_000, 6_000
    one, two = (run(full_pipe(flows, window)) for window in (few, many))
    packets = flows * (many - few)
    inside = (_grown(two) - _grown(one)) / packets
    whole = (two.peak_bytes - one.peak_bytes) / packets
    rows.append(["packet in flight", f"{inside:.0f}", f"{whole:.0f}"])
    table("Memory", ("bytes", "of the simulation", "of the process at its peak"), rows)


def _grown(done: Run) -> float:
    """Return the memory of a simulation at its end."""
    return done.stages["create"].bytes + done.stages["run"].bytes


def _growth() -> None:
    """Print the cost of a packet by number of flows on the same link."""
    counts = (10, 100, 1_000, 10_000)
    rounds = [[run(long_flows(count, 4)) for count in counts] for _ in range(ROUNDS)]
    costs = [statistics.median(r.ns_per_packet for r in runs) for runs in zip(*rounds, strict=True)]
    rows = [
        [
            f"{count:,}",
            f"{rounds[0][at].packets:,}",
            f"{cost:.0f}",
            f"{cost / costs[0]:.2f}",
            f"{math.log10(count):.0f}",
        ]
        for at, (count, cost) in enumerate(zip(counts, costs, strict=True))
    ]
    heads = (
        "flows on 10 Gb/s",
        "packets",
        "ns/packet",
        "relative to 10 flows",
        "log₁₀ of the flows",
    )
    table("Growth", heads, rows)
