"""Runs of the simulator without Python, by the program of `crates/cwnd-bench`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from networks import Scenario

ROOT = Path(__file__).resolve().parent.parent
BUILD = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "cwnd-bench"]


@dataclass(frozen=True)
class Stage:
    """A stage of a run: its seconds, and the growth of the process in bytes (on Linux only)."""

    seconds: float
    bytes: float


@dataclass(frozen=True)
class Run:
    """Time and memory of one run."""

    flows: int
    packets: int
    events: int
    peak_bytes: float
    stages: dict[str, Stage]

    @property
    def ns_per_packet(self) -> float:
        """Nanoseconds for each packet, without the setup."""
        return 1e9 * self.stages["run"].seconds / self.packets


@cache
def program() -> str:
    """Build the program in the release profile; return its path."""
    done = subprocess.run(
        [*BUILD, "--message-format=json-render-diagnostics"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    paths: list[str] = [m["executable"] for m in messages if m.get("executable")]
    return paths[-1]


def run(scenario: Scenario, *arguments: str, under: tuple[str, ...] = ()) -> Run:
    """Run a scenario in a separate process, optionally under another program."""
    done = subprocess.run(
        [*under, program(), *arguments],
        input=json.dumps(scenario),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"cwnd-bench failed: {done.stderr}")
    line = json.loads(done.stdout)
    unknown = float("nan")
    stages = {
        name: Stage(stage["seconds"], unknown if stage["bytes"] is None else stage["bytes"])
        for name, stage in line["stages"].items()
    }
    peak = unknown if line["peak_bytes"] is None else line["peak_bytes"]
    return Run(line["flows"], line["packets"], line["events"], peak, stages)
