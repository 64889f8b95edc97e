"""Estimate of the time and size of a sweep."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cwnd._sweeps.dataset import inspect, missing, schemas
from cwnd._sweeps.manifest import encode
from cwnd._sweeps.processes import Lost
from cwnd._sweeps.reading import PlanLike, read_plan
from cwnd._sweeps.work import failed_batch
from cwnd._sweeps.workers import Cores

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cwnd._sweeps.plan import Plan, Run

SAMPLE_RUNS = 64
"""Largest number of runs that are made to measure their time."""

SAMPLE_SECONDS = 5.0
"""Seconds after which no other run is begun."""


class Cost(TypedDict):
    """Estimated cost of the missing runs of a sweep; None if nothing could be measured."""

    sampled: int
    """Number of runs that were made to measure their time."""
    core_s: float | None
    """Time in seconds on one core."""
    time_s: float | None
    """Time in seconds on all cores."""
    bytes: int | None
    """Size on the disk."""


class SweepEstimate(Cost):
    """Estimate of the time and size of a sweep."""

    out: str
    runs: int
    """Number of runs of the plan."""
    present: int
    missing: int
    """Number of missing runs of the share."""
    cores: int


def estimate(plan: PlanLike, *, out: str | Path, shard: tuple[int, int] = (1, 1)) -> SweepEstimate:
    """Estimate the time and the size of a sweep, from a sample of the missing runs.

    Nothing is written, and runs in real time are not made: they take the scenario's duration.
    """
    plan, out = read_plan(plan), Path(out)
    present = inspect(out, plan)[2]
    lacking = np.flatnonzero(missing(present, shard))
    cores = Cores(plan)
    runs = [plan.run(int(number)) for number in _choose(lacking)]
    cost: Cost = {"sampled": 0, "core_s": None, "time_s": None, "bytes": None}
    if plan.real:
        lengths = [plan.scenario(run).validate()["duration_s"] for run in runs]
        seconds = lacking.size * float(np.mean(lengths)) if lengths else 0.0
        cost = {"sampled": 0, "core_s": seconds, "time_s": seconds, "bytes": None}
    elif runs:
        cost = _measure(plan, runs, lacking.size, cores)
    return {
        "out": str(out),
        "runs": len(plan),
        "present": int(np.count_nonzero(present)),
        "missing": lacking.size,
        "cores": cores.slots(),
        **cost,
    }


def _choose(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Draw one number from each of `SAMPLE_RUNS` equal parts, or return all of fewer."""
    if numbers.size <= SAMPLE_RUNS:
        return numbers
    ends = np.linspace(0, numbers.size, SAMPLE_RUNS + 1).astype(int)
    return numbers[np.random.default_rng(1).integers(ends[:-1], ends[1:])]


def _measure(plan: Plan, runs: Sequence[Run], count: int, cores: Cores) -> Cost:
    """Make some runs; return the estimate for ``count`` such runs."""
    # A sample that is cut short must not have the first points only.
    left = random.Random(1).sample(runs, len(runs))  # noqa: S311
    made: list[dict[str, pa.Table]] = []
    times = [time.monotonic()]
    with cores:
        while left and times[-1] - times[0] < SAMPLE_SECONDS:
            batch = [left.pop()]
            try:
                made.append(cores.submit(batch).result())
            except Lost as problem:
                made.append(failed_batch(plan, batch, str(problem)))
            times.append(time.monotonic())
    # The first run imports modules.
    first = min(1, len(made) - 1)
    each = (times[-1] - times[first]) / (len(made) - first)
    tables = {name: pa.concat_tables([one[name] for one in made]) for name in schemas(plan)}
    # The time outside the simulator holds the GIL.
    simulator = pc.sum(tables["runs"]["wall_s"].slice(first)).as_py() or 0.0
    held = each - simulator / (len(made) - first)
    size = sum(encode(table).size - encode(table.slice(0, 0)).size for table in tables.values())
    return {
        "sampled": len(made),
        "core_s": count * each,
        "time_s": count * max(each / cores.slots(), held),
        "bytes": round(count * size / len(made)),
    }
