"""Instruction counts by valgrind's callgrind.

Unlike wall time, instruction counts are equal in every run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages import ROOT, run

if TYPE_CHECKING:
    from networks import Scenario

# Counts the run only, without the scenario and the records.
COUNTED = "cwnd_bench::run*"


@dataclass(frozen=True)
class Counts:
    """Instructions of a run, in total and by source file and line."""

    packets: int
    total: int
    lines: Counter[tuple[str, int]]

    @property
    def per_packet(self) -> float:
        """Instructions for each data packet sent."""
        return self.total / self.packets


def missing() -> str:
    """Return why instructions cannot be counted here; empty if they can."""
    return "" if shutil.which("valgrind") else "valgrind is not installed"


def count(scenario: Scenario, *arguments: str, path: str) -> Counts:
    """Run a scenario by the program at ``path`` under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        valgrind = (
            "valgrind",
            "--tool=callgrind",
            f"--toggle-collect={COUNTED}",
            f"--callgrind-out-file={out}",
            "--compress-strings=no",
            "--compress-pos=no",
        )
        packets = run(scenario, *arguments, under=valgrind, path=path).packets
        return _read(out.read_text(encoding="utf-8"), packets)


def _read(text: str, packets: int) -> Counts:
    """Parse callgrind's output: costs by line, after the name of a file."""
    lines: Counter[tuple[str, int]] = Counter()
    total = 0
    file = ""
    called = False
    for row in text.splitlines():
        if row.startswith(("fl=", "fi=", "fe=")):
            file = row[3:]
        elif row.startswith("totals:"):
            total = int(row.split()[1])
        elif cost := re.fullmatch(r"(\d+) (\d+)", row):
            # The line after a call has the cost of the called function, which is counted there.
            if not called:
                lines[file, int(cost[1])] += int(cost[2])
            called = False
        called = called or row.startswith("calls=")
    return Counts(packets, total, lines)


def files(counts: Counts) -> Counter[str]:
    """Return the instructions by source file."""
    spent: Counter[str] = Counter()
    for (file, _), instructions in counts.lines.items():
        spent[_place(file)] += instructions
    return spent


def functions(counts: Counts) -> Counter[str]:
    """Return the instructions of each function as in the source, inlined or not."""
    spent: Counter[str] = Counter()
    sources: dict[str, list[str]] = {}
    for (file, line), instructions in counts.lines.items():
        if not Path(file).is_relative_to(ROOT):
            continue
        if file not in sources:
            sources[file] = Path(file).read_text(encoding="utf-8").splitlines()
        above = reversed(sources[file][:line])
        named = (found[1] for row in above if (found := re.search(r"\bfn (\w+)", row)))
        # Some code has no line.
        spent[f"{_place(file)} {next(named, '')}".rstrip()] += instructions
    return spent


def _place(file: str) -> str:
    """Return the path of a source file of this project; all others have one name."""
    path = Path(file)
    inside = path.is_relative_to(ROOT)
    return str(path.relative_to(ROOT / "crates")) if inside else "the standard library and libc"


def compiler() -> str:
    """Return the version of the compiler, which the counts depend on."""
    done = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip()
