"""The matrices of docs/validation.md: the simulator beside the kernel's own controllers.

    python bench/agreement_linux.py [--record] [--windows] [NAME ...]

24 networks with Reno and CUBIC, 22 with BBR, 6 with reordering, 4 with idle periods and 6 with a
round-trip time of 14 ms, 30 s each, 3 seeds on the kernel and 24 simulated. The kernel's runs are
in validation/linux/results.json; the simulator runs again. `--record` runs the kernel too, as root:
95 minutes of real time. It continues a file that is not complete, and
repeats what NAME selects by a part of the network's name. A run whose emulator was late is
repeated.
Without NAME, all figures are written to validation/linux/results.csv.
`--windows` prints the windows of the first seed on both backends.
A cell is `simulated / kernel`, the means over the seeds: in bold outside the tolerance of
`cwnd agree`, then with an exclamation mark if the kernel's is outside the range of the simulated
seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from tables import table

import cwnd
from cwnd._runs.run import measure
from cwnd._tasks.agreement.outcome import NETWORK, OF_FLOWS, OF_NETWORK, RARE, Agreement
from cwnd.metrics.catalog import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd._base.records import JsonObject
    from cwnd._runs.result import Result

RESULTS = Path(__file__).parent.parent / "validation" / "linux" / "results.json"
TABLE = RESULTS.with_suffix(".csv")
RTTS_MS = (20, 80)
SEEDS = 3
SIMULATED_SEEDS = 24
DRAWS = 2000
"""Draws of as many simulated seeds as the kernel has."""
SECONDS, WARMUP = 30, 5
PACKET = 1500

ATTEMPTS = 5
"""Runs until the emulator is on time."""
MAX_LIMITED = 0.005
"""The largest part of a run in which something else than its window limits a flow."""

WINDOW_INTERVAL = 0.5
"""Seconds between recorded windows."""

Figures = dict[str, dict[str, float]]
"""Figures of a run: of the network, and of each group of flows."""


class Run(TypedDict):
    """What is compared of a run, and the windows of its flows every half a second."""

    figures: Figures
    windows: dict[str, list[float]]


AIM = ("goodput_bps", "share", "loss_rate", "queue_delay_s")
"""A network agrees if these do. The share of equal flows is Jain's index."""
MORE = ("utilization", "queue_delay_p95_s")
KINDS = {kind.name: kind for kind in (*OF_FLOWS, *OF_NETWORK)}


@dataclass(frozen=True)
class Cell:
    """A network of the matrix."""

    laws: tuple[str, ...]
    """The controllers of the flows."""
    rate_mbit: int
    rtt_ms: int
    queue_bdp: float
    loss_percent: int = 0
    late_ms: int = 0
    """Delay of 2 % of the packets, which others overtake."""
    pause_s: int = 0
    """Pause between responses of 2 MB; 0 for endless flows."""

    @property
    def name(self) -> str:
        """The name in tables and in the file."""
        counts = {1: "one", 2: "two", 4: "four"}
        each = [
            law if self.mixed and count == 1 else f"{counts[count]} {law}"
            for law, count in Counter(self.laws).items()
        ]
        parts = [
            " and ".join(each),
            f"{self.rate_mbit} Mb/s",
            f"{self.rtt_ms} ms",
            f"{self.queue_bdp:g} BDP",
        ]
        if self.loss_percent:
            parts.append(f"{self.loss_percent} % loss")
        if self.late_ms:
            parts.append(f"2 % late by {self.late_ms} ms")
        if self.pause_s:
            parts.append(f"pauses of {self.pause_s} s")
        return ", ".join(parts)

    @property
    def mixed(self) -> bool:
        """Whether the flows have different controllers."""
        return len(set(self.laws)) > 1

    @property
    def scenario(self) -> cwnd.Scenario:
        """The scenario, for both backends."""
        flows = [
            {
                "controller": f"kernel:{law}",
                "name": law,
                "count": count,
                "start": "0s..500ms",
            }
            for law, count in Counter(self.laws).items()
        ]
        if self.pause_s:
            for flow in flows:
                flow["source"] = {"kind": "request", "sizes": "2mb", "think": f"{self.pause_s}s"}
        link: JsonObject = {
            "rate": f"{self.rate_mbit}mbit",
            "delay": f"{self.rtt_ms / 2:g}ms",
            "queue": f"{self.queue_bdp:g}bdp",
        }
        if self.loss_percent:
            link["loss"] = f"{self.loss_percent}%"
        if self.late_ms:
            link["reorder"] = {"probability": 0.02, "delay": f"{self.late_ms}ms"}
        times = {"duration": SECONDS, "warmup": WARMUP, "sample": "20ms"}
        return cwnd.Scenario({"title": self.name, **times, "dumbbell": link, "flow": flows})

    def figure(self, found: Figures, name: str) -> float:
        """Return a figure of a run."""
        if name != "share":
            return found[NETWORK][name]
        return found["cubic"]["share"] if self.mixed else found[NETWORK]["jain"]

    def agrees(self, name: str, simulated: float, kernel: float) -> bool:
        """Return whether two means are within the tolerance of `cwnd agree`."""
        low, high = KINDS[name].bounds
        if low * simulated <= kernel <= high * simulated:
            return True
        if KINDS[name].ratio:
            return max(simulated, kernel) < RARE
        packet = 8 * PACKET / (1e6 * self.rate_mbit)
        return name.startswith("queue_delay") and abs(kernel - simulated) <= packet


PAIRS = (("reno", "reno"), ("cubic", "cubic"), ("reno", "cubic"))
BBR = (("bbr",), ("bbr",) * 4, ("bbr", "cubic"))
MATRICES = {
    "Reno and CUBIC": [Cell(*of) for of in product(PAIRS, (20, 100), RTTS_MS, (0.5, 4))],
    "BBR": [
        *(Cell(*of) for of in product(BBR, (20,), RTTS_MS, (0.5, 2, 8))),
        *(Cell(*of) for of in product((("bbr",),), (20, 100), RTTS_MS, (2,), (1,))),
    ],
    "Reordering": [
        Cell((law,), 20, 40, 3, late_ms=late) for law in ("cubic", "bbr") for late in (5, 12, 30)
    ],
    "Idle periods": [
        Cell((law,), 20, rtt, 1, pause_s=2) for law in ("reno", "cubic") for rtt in RTTS_MS
    ],
    "A round-trip time of 14 ms": [
        Cell(laws * 2, 17, 14, queue) for laws in PAIRS for queue in (0.6, 3)
    ],
}
CELLS = [cell for cells in MATRICES.values() for cell in cells]


@dataclass(frozen=True)
class Comparison:
    """A network on both backends."""

    cell: Cell
    simulated: list[Run]
    kernel: list[Run]

    def means(self, name: str) -> tuple[float, float]:
        """Return the means of a figure over the seeds: simulated, and of the kernel."""
        first, second = (
            fmean(self.cell.figure(run["figures"], name) for run in runs)
            for runs in (self.simulated, self.kernel)
        )
        return first, second

    def agrees(self, name: str) -> bool:
        """Return whether a figure agrees."""
        return self.cell.agrees(name, *self.means(name))

    def range_of(self, name: str) -> tuple[float, float]:
        """Return the least and the largest figure of the simulated seeds."""
        figures = [self.cell.figure(run["figures"], name) for run in self.simulated]
        return min(figures), max(figures)

    @property
    def figures(self) -> list[str]:
        """The names of the figures: a single flow has no share."""
        single = len(self.cell.laws) == 1
        return [name for name in (*AIM, *MORE) if not (single and name == "share")]

    def resampled(self, draws: np.random.Generator) -> tuple[float, float]:
        """Return how often the means of a few seeds agree, drawn from the simulated ones.

        The first is the fraction of draws in which those of as many simulated seeds as the kernel
        has agree with those of as many others; the second in which they agree with the kernel's.
        """
        runs, count = len(self.simulated), len(self.kernel)
        drawn = np.array([draws.permutation(runs)[: 2 * count] for _ in range(DRAWS)])
        agree = np.ones((2, DRAWS), dtype=bool)
        for name in AIM:
            figures = np.array([self.cell.figure(run["figures"], name) for run in self.simulated])
            first, second = figures[drawn[:, :count]].mean(1), figures[drawn[:, count:]].mean(1)
            kernel = self.means(name)[1]
            for at in range(DRAWS):
                agree[0, at] &= self.cell.agrees(name, first[at], second[at])
                agree[1, at] &= self.cell.agrees(name, first[at], kernel)
        with_itself, with_kernel = agree.mean(1).tolist()
        return with_itself, with_kernel

    @property
    def disagreements(self) -> list[str]:
        """The figures with an aim that do not agree."""
        return [name for name in AIM if not self.agrees(name)]

    def text(self, name: str) -> str:
        """Format a figure."""
        if name not in self.figures:
            return "–"
        kind = KINDS[name]
        text = " / ".join(number(v, kind.digits, kind.factor) for v in self.means(name))
        if self.agrees(name):
            return text
        low, high = self.range_of(name)
        return f"**{text}**" if low <= self.means(name)[1] <= high else f"**{text}** !"


def summarise(run: Result) -> Run:
    """Return what is compared of a run."""
    figures: Figures = {}
    for row in Agreement(run.title, {run.on: [run]}).rows:
        (value,) = row.values[run.on]
        figures.setdefault(row.of, {})[row.kind.name] = value
    step = round(WINDOW_INTERVAL / (run.time[1] - run.time[0]))
    windows = {
        flow["name"]: [round(float(w), 1) for w in flow["window"][::step]]
        for flow in run.measured_flows
    }
    return {"figures": figures, "windows": windows}


def compare(cells: list[Cell]) -> Iterator[Comparison]:
    """Simulate recorded networks of registered controllers, and yield the comparisons."""
    recorded = json.loads(RESULTS.read_text())["runs"]
    simulated = {algorithm.name for algorithm in cwnd.algorithms()}
    for cell in cells:
        kernel = recorded.get(cell.name, {})
        if kernel and simulated.issuperset(cell.laws):
            jobs = [(cell.scenario, seed) for seed in range(1, SIMULATED_SEEDS + 1)]
            runs = measure(jobs, lambda _, run: summarise(run))
            yield Comparison(cell, runs, list(kernel.values()))


def record(cells: list[Cell], *, again: bool) -> None:
    """Run networks on the kernel's TCP. The file is written after each run."""
    runs = json.loads(RESULTS.read_text())["runs"] if RESULTS.exists() else {}
    # Sources and sinks inherit this priority: one that waits for a processor limits its flow.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    for seed, cell in product(range(1, SEEDS + 1), cells):
        known = runs.setdefault(cell.name, {})
        if str(seed) in known and not again:
            continue
        run = on_time(cell, seed)
        if run is None:
            print(f"{cell.name}, seed {seed}: not recorded", flush=True)
            continue
        known[str(seed)] = summarise(run)
        write(runs)


def write(runs: dict[str, dict[str, Run]]) -> None:
    """Write the file, with one line for each run."""
    cells = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(seed)}: {json.dumps(run)}" for seed, run in known.items())
        + "\n}"
        for name, known in runs.items()
    ]
    head = {"kernel": platform.release(), "seconds": SECONDS, "warmup": WARMUP}
    text = f'{json.dumps(head)[:-1]}, "runs": {{\n' + ",\n".join(cells) + "\n}}\n"
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(text)


def on_time(cell: Cell, seed: int) -> Result | None:
    """Run a network on the kernel's TCP until the emulator and the hosts keep up; None if never."""
    for _ in range(ATTEMPTS):
        run = cwnd.run(cell.scenario, on="linux", seed=seed)
        problem = run.limit
        for flow in run.measured_flows:
            own = {"window", "application"} if cell.pause_s else {"window"}
            others = sum(s for by, s in flow["limited"].items() if by not in own)
            if others > MAX_LIMITED * run.measured_s:
                problem = problem or f"{flow['name']} was limited by its host for {others:.2f} s"
        print(f"{cell.name}, seed {seed}: {problem or 'on time'}", flush=True)
        if problem is None:
            return run
    return None


def print_windows(compared: Comparison) -> None:
    """Print the windows of the first seed: simulated / kernel."""
    first, second = compared.simulated[0]["windows"], compared.kernel[0]["windows"]
    rows = [
        [f"{at * WINDOW_INTERVAL:g}", *(f"{a:.0f} / {b:.0f}" for a, b in zip(*pairs, strict=True))]
        for at, pairs in enumerate(
            zip(zip(*first.values(), strict=True), zip(*second.values(), strict=True), strict=True)
        )
    ]
    table(compared.cell.name, ("s", *first), rows)


def print_matrix(title: str, compared: list[Comparison]) -> None:
    """Print a matrix, and in how many networks all figures with an aim agree."""
    if not compared:
        return
    columns = (*AIM, *MORE)
    heads = [f"{KINDS[name].title}, {KINDS[name].unit}" for name in columns]
    rows = [
        [each.cell.name, *(each.text(name) for name in columns), str(len(each.kernel))]
        for each in compared
    ]
    table(f"{title}: simulated / kernel", ("network", *heads, "seeds"), rows)
    agreed = sum(not each.disagreements for each in compared)
    print(f"{agreed} of {len(compared)} networks agree in goodput, share, loss and mean delay")
    draws = np.random.default_rng(1)
    with_itself, with_kernel = np.sum([each.resampled(draws) for each in compared], axis=0)
    print(
        f"Means of {SEEDS} simulated seeds agree with those of {SEEDS} others in {with_itself:.1f} "
        f"networks, and with the kernel's in {with_kernel:.1f}, on average over draws"
    )


def write_table(matrices: dict[str, list[Comparison]]) -> None:
    """Write the figures of all matrices, a line for each, and print how many networks agree."""
    lines = ["table,case,quantity,kernel,cwnd,least,largest,agrees"]
    rows = []
    for title, compared in matrices.items():
        for each in compared:
            for name in each.figures:
                simulated, kernel = each.means(name)
                values = [f"{value:.6g}" for value in (kernel, simulated, *each.range_of(name))]
                verdict = "yes" if each.agrees(name) else "no"
                case, quantity = f'"{each.cell.name}"', f'"{KINDS[name].title}"'
                lines.append(",".join([title, case, quantity, *values, verdict]))
        counts = [
            f"{sum(each.agrees(name) for each in of)} of {len(of)}" if of else "–"
            for name in AIM
            for of in [[each for each in compared if name in each.figures]]
        ]
        agreed = sum(not each.disagreements for each in compared)
        rows.append([title, *counts, f"{agreed} of {len(compared)}"])
    TABLE.write_text("\n".join(lines) + "\n")
    table("Networks that agree", ("", *(KINDS[name].title for name in AIM), "all"), rows)


def main() -> None:
    """Run the matrices and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only networks with this in the name"
    )
    parser.add_argument("--record", action="store_true", help="run the kernel's TCP")
    parser.add_argument("--windows", action="store_true", help="print the windows of seed 1")
    options = parser.parse_args()
    chosen = [c for c in CELLS if not options.names or any(n in c.name for n in options.names)]
    if options.record:
        record(chosen, again=bool(options.names))
    matrices = {
        title: list(compare([cell for cell in cells if cell in chosen]))
        for title, cells in MATRICES.items()
    }
    for title, compared in matrices.items():
        print_matrix(title, compared)
        for each in compared if options.windows else []:
            print_windows(each)
    if not options.names:
        write_table(matrices)


if __name__ == "__main__":
    main()
