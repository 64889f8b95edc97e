"""Estimate of the time and size of a sweep."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

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

    from cwnd._base.records import JsonObject
    from cwnd._sweeps.plan import Plan, Run

SAMPLE_RUNS = 64
"""Largest number of runs that are made to measure their time."""

SAMPLE_SECONDS = 5.0
"""Seconds after which no other run is begun."""


def estimate(plan: PlanLike, *, out: str | Path, shard: tuple[int, int] = (1, 1)) -> JsonObject:
    """Estimate the time and the size of a sweep, from a sample of the missing runs.

    Nothing is written, and runs in real time are not made: they take the scenario's duration. The
    result has numbers of ``runs`` of the plan, ``present`` and ``missing`` ones (of the share),
    ``sampled`` ones and ``cores``; the time of the missing runs on one core, ``core_s``, and on
    all, ``time_s``; and ``bytes`` on the disk. The last three are None if nothing could be
    measured.
    """
    plan, out = read_plan(plan), Path(out)
    present = inspect(out, plan)[2]
    lacking = np.flatnonzero(missing(present, shard))
    cores = Cores(plan)
    found: JsonObject = {
        "out": str(out),
        "runs": len(plan),
        "present": int(np.count_nonzero(present)),
        "missing": lacking.size,
        "sampled": 0,
        "cores": cores.slots(),
        "core_s": None,
        "time_s": None,
        "bytes": None,
    }
    runs = [plan.run(int(number)) for number in _choose(lacking)]
    if plan.real:
        lengths = [plan.scenario(run).validate()["duration_s"] for run in runs]
        seconds = lacking.size * float(np.mean(lengths)) if lengths else 0.0
        return found | {"core_s": seconds, "time_s": seconds}
    if runs:
        found |= _measure(plan, runs, lacking.size, cores)
    return found


def _choose(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Draw one number from each of `SAMPLE_RUNS` equal parts, or return all of fewer."""
    if numbers.size <= SAMPLE_RUNS:
        return numbers
    ends = np.linspace(0, numbers.size, SAMPLE_RUNS + 1).astype(int)
    return numbers[np.random.default_rng(1).integers(ends[:-1], ends[1:])]


def _measure(plan: Plan, runs: Sequence[Run], count: int, cores: Cores) -> JsonObject:
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
