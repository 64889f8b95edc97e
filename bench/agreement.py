"""Scenarios and laws on the simulator and on real backends, into validation/agreement.csv.

    python bench/agreement.py [--repeat 5] [NAME ...]

Each cell is one `cwnd agree` in real time, 12 minutes in all. Needs Linux, root, an idle machine.
NAME selects cells by a part of their name (`scenario law backend`); their rows are only printed.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cwnd
from cwnd._tasks.agreement.outcome import NETWORK
from cwnd.metrics.catalog import number

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SCENARIOS, TABLE = ROOT / "python/cwnd/scenarios", ROOT / "validation/agreement.csv"
HEAD = ("scenario", "on", "law", "quantity", "simulated", "real", "verdict", "limited")
GROUP = "law"
COLUMNS = (
    (NETWORK, "utilization"),
    (NETWORK, "loss_rate"),
    (NETWORK, "queue_delay_s"),
    (NETWORK, "queue_delay_p95_s"),
    (GROUP, "goodput_bps"),
    (GROUP, "share"),
    (GROUP, "retransmission_rate"),
    (GROUP, "window_p10"),
    (GROUP, "window_p50"),
    (GROUP, "window_p90"),
    (GROUP, "mean_rtt_s"),
)


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


def measure(part: Part, laws: list[str], repeat: int) -> Iterator[tuple[str, ...]]:
    """Run the selected cells of a part, and yield a row for each figure."""
    for law in laws:
        agreement = cwnd.agree(part.build(law), on=("sim", part.on), repeat=repeat)
        rows = {(row.of, row.kind.name): row for row in agreement.rows}
        limits = sum(run.limit is not None for run in agreement.results[part.on])
        for key in COLUMNS:
            # The share of a single group is always 1.
            if key[1] == "share" and len(agreement.groups) == 1:
                continue
            row = rows[key]
            means = (
                number(value.mean, row.kind.digits, row.kind.factor)
                for value in row.estimates.values()
            )
            verdict = row.verdicts[0].word
            yield part.scenario, part.on, law, row.title, *means, verdict, str(limits)
        for note in dict.fromkeys(note for run in agreement.results[part.on] for note in run.notes):
            print(f"* {note}", file=sys.stderr)


def main() -> None:
    """Run the matrix, and print and write its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only cells with this in the name")
    parser.add_argument("--repeat", type=int, default=5, help="seeds of each cell")
    options = parser.parse_args()
    chosen = [(part, part.cells(options.names)) for part in PARTS]
    seconds = options.repeat * sum(part.seconds * len(laws) for part, laws in chosen)
    load = os.getloadavg()[0]
    system = f"Linux {platform.release()}, {os.cpu_count()} processors, load {load:.1f}"
    print(f"{system}; {seconds} s of real time at least", file=sys.stderr)
    start = time.monotonic()
    rows: list[tuple[str, ...]] = [HEAD]
    for part, laws in chosen:
        for row in measure(part, laws, options.repeat):
            rows.append(row)
            csv.writer(sys.stdout).writerow(row)
            sys.stdout.flush()
    if not options.names:
        with TABLE.open("w", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
