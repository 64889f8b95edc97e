"""The matrix of docs/agreement.md: scenarios and laws on the simulator and on real backends.

    python bench/agreement.py [--repeat 5] [NAME ...]

Each cell is one `cwnd agree` in real time, 12 minutes in all. Needs Linux, root, an idle machine.
NAME selects cells by a part of their name (`scenario law backend`). A cell is `simulated / real`:
plain if the backends agree, in italics if they are undecided, in bold if they differ.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tables import table

import cwnd
from cwnd._tasks.agreement.outcome import NETWORK
from cwnd.metrics.catalog import number

if TYPE_CHECKING:
    from cwnd._tasks.agreement.outcome import Row

SCENARIOS = Path(__file__).parent.parent / "scenarios"
GROUP = "law"
COLUMNS = (
    (NETWORK, "utilization"),
    (NETWORK, "loss_rate"),
    (NETWORK, "queueing_delay_s"),
    (NETWORK, "queueing_delay_p95_s"),
    (GROUP, "goodput_bps"),
    (GROUP, "share"),
    (GROUP, "retransmission_rate"),
    (GROUP, "window_p10"),
    (GROUP, "window_p50"),
    (GROUP, "window_p90"),
    (GROUP, "mean_rtt_s"),
)
MARKS = {"agrees": "", "undecided": "*", "differs": "**", "unknown": ""}


@dataclass(frozen=True)
class Part:
    """Laws on one scenario and one backend; seconds of a run and of its warm-up."""

    scenario: str
    on: str
    seconds: int
    warmup: int
    laws: tuple[str, ...]

    def cells(self, names: list[str]) -> list[str]:
        """Return the laws whose cells are selected."""
        cells = {law: f"{self.scenario} {law} {self.on}" for law in self.laws}
        return [law for law, cell in cells.items() if not names or any(n in cell for n in names)]

    def build(self, law: str) -> cwnd.Scenario:
        """Return the scenario with a law."""
        document = cwnd.Scenario.from_toml(SCENARIOS / f"{self.scenario}.toml").to_dict()
        document |= {"duration": self.seconds, "warmup": self.warmup}
        document["flow"][0]["controller"] = law
        if "receiver" in law:
            # Its clock needs timestamps, which take 12 bytes of each packet.
            stamped = {"timestamps": True, "packet": 1448, "header": 52, "ack": 52}
            document["tcp"] = document["tcp"] | stamped
        if self.on == "udt":
            # The simulated flows use UDT too.
            document["flow"] = [flow | {"protocol": "udt"} for flow in document["flow"]]
        return cwnd.Scenario(document)


_KERNEL = ("reno", "aimd(0.31, 1/8)", "iiad", "sqrt", "simd", "aira", "aiad")
_MORE = ("aiad(rate=receiver)", "daimd(capacity=20mbit, delay=off)")
PARTS = (
    Part("agree-droptail", "linux", 6, 1, (*_KERNEL, *_MORE)),
    Part("agree-droptail", "udt", 6, 1, ("reno", "simd", "udt")),
    Part("agree-simd", "linux", 14, 5, ("simd", "aimd(0.31, 1/8)", "aira")),
    Part("agree-aira", "linux", 10, 2, ("reno", "aimd(2, 1/2)", "aimd(0.2, 1/2)")),
)


def cell(row: Row) -> str:
    """Format a figure of the simulator and of the other backend."""
    both = (
        number(value.mean, row.kind.digits, row.kind.factor) for value in row.estimates.values()
    )
    (verdict,) = row.verdicts
    mark = MARKS[verdict.word]
    return f"{mark}{' / '.join(both)}{mark}"


def measure(part: Part, laws: list[str], repeat: int) -> None:
    """Run the selected cells of a part and print their table."""
    lines, heads = [], []
    notes: dict[str, None] = {}
    for law in laws:
        agreement = cwnd.agree(part.build(law), on=("sim", part.on), repeat=repeat)
        rows = {(row.of, row.kind.name): row for row in agreement.rows}
        # The share of a single group is always 1.
        shown = [key for key in COLUMNS if key[1] != "share" or len(agreement.groups) > 1]
        heads = [rows[key].title for key in shown]
        limits = sum(run.limit is not None for run in agreement.results[part.on])
        lines.append([law, *(cell(rows[key]) for key in shown), f"{limits} of {repeat}"])
        notes |= dict.fromkeys(note for run in agreement.results[part.on] for note in run.notes)
    title = f"{part.scenario}, sim / {part.on}, {repeat} × {part.seconds} s"
    table(title, ("law", *heads, "limited by emulator"), lines)
    for note in notes:
        print(f"* {note}")
    print(flush=True)


def main() -> None:
    """Run the matrix and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only cells with this in the name")
    parser.add_argument("--repeat", type=int, default=5, help="seeds of each cell")
    options = parser.parse_args()
    chosen = [(part, part.cells(options.names)) for part in PARTS]
    seconds = options.repeat * sum(part.seconds * len(laws) for part, laws in chosen)
    load = os.getloadavg()[0]
    print(f"Linux {platform.release()}, {os.cpu_count()} processors, load {load:.1f}")
    print(f"{seconds} s of real time at least", flush=True)
    start = time.monotonic()
    for part, laws in chosen:
        if laws:
            measure(part, laws, options.repeat)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
