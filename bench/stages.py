"""Runs of the simulator without Python, by the program of `crates/cwnd-bench`."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from networks import Scenario

ROOT = Path(__file__).resolve().parent.parent
BUILD = ["cargo", "build", "--locked", "--quiet", "-p", "cwnd-bench"]


@dataclass(frozen=True)
class Stage:
    """A stage of a run: its seconds, and the growth of the process in bytes (on Linux only)."""

    seconds: float
    bytes: float


@dataclass(frozen=True)
class Run:
    """Time and memory of one run; its processor time if no other run is parallel."""

    processor_seconds: float
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
def program(*options: str) -> str:
    """Build the program with options of cargo, or in the release profile; return its path."""
    done = subprocess.run(
        [*BUILD, *(options or ("--release",)), "--message-format=json-render-diagnostics"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    paths: list[str] = [m["executable"] for m in messages if m.get("executable")]
    return paths[-1]


def program_of(base: str) -> str:
    """Return the program of a commit, built in its own work tree; or the program or command."""
    if Path(base).is_file() or " " in base:
        return base
    cache = ROOT / "target" / "base"
    with tempfile.TemporaryDirectory() as folder:
        tree = str(Path(folder) / "tree")
        git = ["git", "-C", str(ROOT), "worktree"]
        add = [*git, "add", "--quiet", "--detach", tree, base]
        if subprocess.run(add, capture_output=True, check=False).returncode:
            sys.exit(f"{base} is neither a commit nor a program")
        try:
            subprocess.run([*BUILD, "--release", "--target-dir", str(cache)], cwd=tree, check=True)
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)
    return shutil.copy(cache / "release" / "cwnd-bench", cache / "cwnd-bench")


def run(
    scenario: Scenario, *arguments: str, under: tuple[str, ...] = (), path: str | None = None
) -> Run:
    """Run a scenario in a separate process, optionally of a program at ``path``, or under one."""
    before = _processor_seconds()
    done = subprocess.run(
        [*under, path or program(), *arguments],
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
    spent = _processor_seconds() - before
    return Run(spent, line["flows"], line["packets"], line["events"], peak, stages)


def _processor_seconds() -> float:
    """Return the processor time of the processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
