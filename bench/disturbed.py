"""A sweep on two Dask workers under disturbances, compared with an undisturbed one.

    python bench/disturbed.py [--runs 100000] [--seed 1]

Every ten seconds a worker or the command is killed. One worker is stopped and never continues, the
disk fills up once, and one bit of a part is flipped after each of two kills of the command. Killed
workers are replaced, and the same command is repeated until it succeeds. The status is 1 if a row
of the two data sets differs. Only root can mount the small disk.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

import tomli_w

import cwnd

if TYPE_CHECKING:
    import pandas as pd

PERIOD = 10.0
"""Seconds between two kills."""

FLIPS = 2
"""Number of flipped bits."""

DISK = 256
"""Size in megabytes of the disk."""

PLAN = {
    "base": {"rate": "10mbit", "rtt": "40ms", "flows": 2, "time": "5s"},
    "axes": {"queue": ["red", "droptail"], "tcp.window": {"from": 100, "to": 500, "step": 100}},
    "controllers": ["reno", "simd"],
    "keep": ["flows"],
}
"""Runs of a millisecond: 20 for each seed."""


class Disturbed:
    """A scheduler, two workers, and a command that is repeated."""

    def __init__(self, plan: Path, out: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._out, self._log = out, (out.parents[1] / "log").open("w")
        os.environ["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "5s"
        self._scheduler, address = self._dask("scheduler", "--host", "127.0.0.1", "--port", "0")
        self._worker = ("worker", address, "--nthreads", "1", "--no-nanny")
        self._workers = [self._dask(*self._worker)[0] for _ in range(2)]
        self._stopped: list[subprocess.Popen[str]] = []
        self._command = [sys.executable, "-m", "cwnd", "sweep", str(plan), "--out", str(out)]
        self._command += ["--dask", address, "--wait-workers", "1", "--json"]
        self.done: dict[str, int] = {}

    def _dask(self, *words: str) -> tuple[subprocess.Popen[str], str]:
        """Start a process of Dask; return it with its address."""
        process = subprocess.Popen(
            [sys.executable, "-m", "dask.__main__", *words, "--no-dashboard"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        said = re.compile(r"(?:Scheduler at|Start worker at): +(tcp://\S+)")
        stream: IO[str] | None = process.stderr
        assert stream is not None
        address = next(found for found in map(said.search, stream) if found)[1]
        # The process ends if nobody reads what it writes.
        subprocess.Popen(["cat"], stdin=stream, stdout=self._log)
        return process, address

    def run(self) -> None:
        """Repeat the command until it succeeds."""
        events = itertools.chain(
            ["worker", "stop", "worker", "command", "worker", "disk"],
            itertools.cycle(["worker", "worker", "worker", "command"]),
        )
        running = self._start()
        while True:
            try:
                running.wait(PERIOD)
            except subprocess.TimeoutExpired:
                self._disturb(next(events), running)
            else:
                if running.returncode == 0:
                    return
                running = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._count("commands")
        return subprocess.Popen(self._command, stdout=self._log, stderr=self._log)

    def _count(self, event: str) -> None:
        self.done[event] = self.done.get(event, 0) + 1

    def _disturb(self, event: str, running: subprocess.Popen[bytes]) -> None:
        self._count(event)
        if event == "command":
            running.kill()
            running.wait()
            parts = sorted(self._out.glob("*/*.parquet"))
            if parts and self.done.get("flip", 0) < FLIPS:
                self._flip(self._random.choice(parts))
        elif event == "disk":
            self._fill(running)
        else:
            worker = self._workers.pop(0)
            if event == "stop":
                worker.send_signal(signal.SIGSTOP)
                self._stopped.append(worker)
            else:
                worker.kill()
            self._workers.append(self._dask(*self._worker)[0])

    def _flip(self, part: Path) -> None:
        """Flip one bit of a part."""
        data = bytearray(part.read_bytes())
        bit = self._random.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        part.write_bytes(data)
        self._count("flip")

    def _fill(self, running: subprocess.Popen[bytes]) -> None:
        """Fill the disk until the command ends; then make room."""
        ballast = self._out.parent / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                running.wait()
        assert running.returncode == 2, running.returncode
        ballast.unlink()

    def end(self) -> None:
        """Stop all processes."""
        for process in (*self._workers, *self._stopped, self._scheduler):
            process.kill()


def rows(out: Path) -> list[pd.DataFrame]:
    """Return all tables of a data set but for the time of the simulator, sorted."""
    made = cwnd.Sweep(out)
    return [
        table.drop(columns="wall_s", errors="ignore").sort_values(keys, ignore_index=True)
        for table, keys in ((made.runs, ["key"]), (made.flows, ["key", "name"]))
    ]


def main() -> None:
    """Compare the data sets; print what happened."""
    parser = argparse.ArgumentParser(description="A sweep under disturbances.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if "CWND_MOUNTED" not in os.environ:
        os.environ["CWND_MOUNTED"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory() as folder:
        disk = Path(folder) / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "none", str(disk)]
        subprocess.run(mount, check=True)
        try:
            same = compare(Path(folder), disk, options)
        finally:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)
    print("all rows are equal" if same else "rows differ")
    sys.exit(not same)


def compare(home: Path, disk: Path, options: argparse.Namespace) -> bool:
    """Make the sweep twice; return whether all rows are equal."""
    plan = home / "plan.toml"
    plan.write_text(tomli_w.dumps({**PLAN, "repeat": options.runs // 20}))
    begin = time.monotonic()
    cwnd.sweep(plan, out=home / "whole")
    print(f"{options.runs:,} runs undisturbed: {time.monotonic() - begin:.0f} s", flush=True)
    disturbed = Disturbed(plan, disk / "out", options.seed)
    begin = time.monotonic()
    try:
        disturbed.run()
    finally:
        disturbed.end()
    print(f"on two workers, disturbed: {time.monotonic() - begin:.0f} s; {disturbed.done}")
    pairs = zip(rows(home / "whole"), rows(disk / "out"), strict=True)
    return all(one.equals(other) for one, other in pairs)


if __name__ == "__main__":
    main()
