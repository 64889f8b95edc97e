"""Sweeps: overhead of a run, memory, and two Dask workers compared with one.

    python bench/sweep.py [--runs 10000]

About five minutes on two idle cores. The overhead is the time outside the simulator, measured on
one core. On an idle machine wall time and processor time agree.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import table

import cwnd

ROUNDS = 3

SHORT = {
    "base": {"rate": "10mbit", "rtt": "40ms", "flows": 4, "time": "20s"},
    "axes": {"queue": ["red", "droptail"], "tcp.window": {"from": 100, "to": 500, "step": 100}},
    "controllers": ["reno", "simd"],
}
"""Runs of a few milliseconds: 20 for each seed."""

LONG = {**SHORT, "base": {**SHORT["base"], "rate": "100mbit", "time": "60s"}}
"""Runs of about a tenth of a second."""

SWEEP = """
import json, resource, sys, tempfile, time
import cwnd
plan = json.loads(sys.argv[1])
make = cwnd.sweep
with tempfile.TemporaryDirectory() as out:
    begin, busy = time.perf_counter(), time.process_time()
    sweep = make(plan, out=out)
    wall, busy = time.perf_counter() - begin, time.process_time() - busy
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    make(plan, out=out)
    again = time.perf_counter() - begin
    print(json.dumps({
        "runs": len(sweep),
        "wall": wall,
        "busy": busy,
        "engine": float(sweep.runs["wall_s"].sum()),
        "again": again,
        "bytes": sum(part.stat().st_size for part in sweep.out.glob("*/*.parquet")),
        "peak": peak,
    }))
"""


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="Sweeps.")
    parser.add_argument("--runs", type=int, default=10_000, help="runs of the largest sweep")
    runs = parser.parse_args().runs
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    _overhead()
    _size(runs)
    _cluster()


def _sweep(plan: dict[str, object], *, cores: int) -> dict[str, float]:
    """Make a sweep in a separate process, on the first cores; return its times and sizes."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, json.dumps(plan)],
        check=True,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _overhead() -> None:
    """Print the overhead of a run on one core."""
    rows = []
    for tables, keep in (
        ("runs", []),
        ("runs, flows, links", ["flows", "links"]),
        ("all", ["series"]),
    ):
        done = [_sweep({**SHORT, "repeat": 50, "keep": keep}, cores=1) for _ in range(ROUNDS)]
        costs = [
            statistics.median(
                1e3 * (one[name] - less * one["engine"]) / one["runs"] for one in done
            )
            for name, less in (("engine", 0), ("wall", 1), ("busy", 1))
        ]
        rows.append([tables, *(f"{cost:.2f}" for cost in costs)])
    heads = ("tables", "simulator", "sweep, wall time", "sweep, processor time")
    table("Overhead, one core, ms a run", heads, rows)


def _size(most: int) -> None:
    """Print time and memory of sweeps of several sizes, on all cores."""
    rows = []
    for runs in (most // 10, most):
        done = _sweep(
            {**SHORT, "repeat": runs // 20, "keep": ["flows"]}, cores=len(os.sched_getaffinity(0))
        )
        rows.append(
            [
                f"{done['runs']:,.0f}",
                f"{done['wall']:.1f}",
                f"{done['runs'] / done['wall']:.0f}",
                f"{done['again']:.1f}",
                f"{done['bytes'] / done['runs']:.0f}",
                f"{done['peak'] / 1e6:.0f}",
            ]
        )
    heads = ("runs", "s", "runs/s", "s to resume without work", "bytes a run on disk", "peak MB")
    table("Size, tables runs and flows, all cores", heads, rows)


def _cluster() -> None:
    """Print the times of one and of two Dask workers, medians over alternating rounds."""
    from distributed import LocalCluster

    rows = []
    for name, plan in (
        ("short runs", {**SHORT, "repeat": 100}),
        ("long runs", {**LONG, "repeat": 5}),
    ):
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(ROUNDS):
            for workers, found in times.items():
                with LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
                ) as cluster:
                    found.append(_timed(plan, cluster.scheduler_address))
        one, two = (statistics.median(found) for found in times.values())
        rows.append([name, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}"])
    table("Dask", ("", "one worker, s", "two workers, s", "ratio"), rows)


def _timed(plan: dict[str, object], address: str) -> float:
    """Make a sweep on a warmed-up cluster; return the wall time in seconds."""
    with tempfile.TemporaryDirectory() as out:
        cwnd.sweep({**plan, "repeat": 1}, out=Path(out) / "first", dask=address)
        begin = time.perf_counter()
        cwnd.sweep(plan, out=Path(out) / "second", dask=address)
        return time.perf_counter() - begin


if __name__ == "__main__":
    main()
