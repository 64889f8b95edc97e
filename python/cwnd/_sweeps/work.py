"""Execution of a batch of runs, and its rows in each table."""

from __future__ import annotations

import json
import math
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cwnd import _native, metrics
from cwnd._base.law_files import known_laws
from cwnd._runs.goodput_limit import goodput_limit
from cwnd._runs.measures import values
from cwnd._runs.real_time import run_real
from cwnd._runs.result import Result
from cwnd._sweeps.code import digest
from cwnd._sweeps.dataset import GOODPUT_LIMIT, SERIES, TCP_CONVENTIONS, schemas
from cwnd._sweeps.manifest import LOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cwnd._base.records import JsonObject
    from cwnd._runs.scenario import Scenario
    from cwnd._sweeps.plan import Plan, Run


ATTEMPTS = 3
"""Attempts of a run in real time, while the emulator and not the network limits it."""


class Stopped(Exception):  # noqa: N818
    """The sweep was stopped during a run."""


class _Late(Exception):  # noqa: N818
    """The emulator limited every attempt of a run in real time."""


class _Overtime(Exception):  # noqa: N818
    """A run took longer than the plan allows."""


def run_key(plan: Plan, run: Run) -> str:
    """Return the key of a run: a hash of its scenario, point, seed and code.

    The key includes the values of the axes because two points may have equal scenarios: ``1mbit``
    and ``1000kbit``, or integers that a Latin hypercube drew twice.
    """
    try:
        scenario = plan.scenario(run).to_json()
    except (ValueError, TypeError):
        # A run whose scenario is invalid is a row too, and needs a key.
        scenario = json.dumps([run.values, run.controller], default=str)
    return _key(plan, run, scenario)


def _key(plan: Plan, run: Run, scenario: str) -> str:
    """Hash all values that determine a run."""
    place = json.dumps(plan.place(run))
    return digest(f"{scenario}\n{place}\n{run.seed}\n{plan.codes[run.controller]}")


def run_batch(
    plan: Plan,
    runs: Iterable[Run],
    stopped: Callable[[], bool] = lambda: False,
    *,
    seconds: float = math.inf,
) -> dict[str, pa.Table]:
    """Execute runs one after the other on this thread.

    ``stopped`` is called several times a second; no more runs are made once it has returned true,
    and none begins after ``seconds`` of wall time. ``runs`` has a row for each of the first runs
    that were begun and not stopped, that of a failed run with its ``error``.
    """
    of_schema = schemas(plan)
    rows: dict[str, list[JsonObject]] = {name: [] for name in of_schema if name != "series"}
    series = []
    for run in begun(runs, seconds):
        row = _row(plan, run)
        rows["runs"].append(row)
        try:
            scenario = plan.scenario(run)
            text = scenario.to_json()
            row["key"] = _key(plan, run, text)
            result = _result(plan, run, scenario, stopped)
            row |= _figures(plan, run, result)
            if "flows" in rows:
                rows["flows"] += [{"key": row["key"], **flow} for flow in result.flow_rows()]
            if "links" in rows:
                rows["links"] += [{"key": row["key"], **link} for link in result.link_rows()]
            if "series" in of_schema:
                series.append(_series(row["key"], result))
        except Stopped:
            rows["runs"].pop()
            break
        except _Late as problem:
            row["error"] = f"{LOST}{problem}"
        except _Overtime:
            row["error"] = overtime(plan)
        except Exception as problem:  # noqa: BLE001
            row["error"] = _explain(problem)
            row.setdefault("key", run_key(plan, run))
    tables = {name: _table(of, of_schema[name]) for name, of in rows.items()}
    if "series" in of_schema:
        tables["series"] = pa.concat_tables(series) if series else SERIES.empty_table()
    return tables


def begun(runs: Iterable[Run], seconds: float) -> Iterator[Run]:
    """Yield runs, the first one at least, until some wall time has passed."""
    end = time.monotonic() + seconds
    for run in runs:
        yield run
        if time.monotonic() >= end:
            return


def _result(plan: Plan, run: Run, scenario: Scenario, stopped: Callable[[], bool]) -> Result:
    """Simulate a run, or execute it in real time."""
    # A run in real time takes the scenario's duration.
    end = math.inf if plan.real else time.monotonic() + plan.time_limit

    def progress(_: float) -> None:
        if stopped():
            raise Stopped
        if time.monotonic() > end:
            raise _Overtime

    if not plan.real:
        with known_laws(scenario.laws):
            (record,) = _native.simulate(
                [(scenario.to_json(), run.seed)],
                threads=1,
                controllers=scenario.controllers or None,
                progress=progress,
            )
        return Result(record)
    for _ in range(ATTEMPTS):
        result = run_real(scenario, run.seed, plan.on, progress=progress)
        if result.limit is None:
            return result
    raise _Late(f"in each of {ATTEMPTS} runs {result.limit}")


def overtime(plan: Plan) -> str:
    """Return the error of a run that took longer than the plan allows."""
    return f"the run took more than {plan.time_limit:g} s"


def failed_batch(plan: Plan, runs: Sequence[Run], error: str) -> dict[str, pa.Table]:
    """Return the rows of failed runs."""
    rows = [{**_row(plan, run), "key": run_key(plan, run), "error": error} for run in runs]
    of_schema = schemas(plan)
    return {name: _table(rows if name == "runs" else [], of) for name, of in of_schema.items()}


def _row(plan: Plan, run: Run) -> JsonObject:
    """Return the columns of a run that are known before it starts."""
    return {
        **plan.place(run),
        "controller": run.controller,
        "reference": plan.reference,
        "seed": run.seed,
        "code": plan.codes[run.controller],
    }


def _figures(plan: Plan, run: Run, result: Result) -> JsonObject:
    """Return the metrics of a run as columns."""
    figures = dict(result.metrics)
    delay = figures.pop("queue_delay_s")
    smooth = figures.pop("smoothness")
    figures["queue_delay_s"] = delay["mean"]
    figures |= {f"queue_delay_{name}_s": delay[name] for name in ("p50", "p95", "p99")}
    figures |= {
        f"cov_{scale}rtt": one["cov"] for scale, one in zip(_native.SCALES, smooth, strict=True)
    }
    figures |= zip(plan.measures, values(result, plan.measures), strict=True)
    figures[GOODPUT_LIMIT] = goodput_limit(result, result.measured_flows)
    figures[TCP_CONVENTIONS] = ",".join(result.record["conventions"])
    figures["wall_s"] = result.record["engine"]["wall_s"]
    if plan.reference is not None:
        flows = [flow for flow in result.measured_flows if flow["kind"] in ("tcp", "udt", "quic")]
        own = [flow for flow in flows if flow["controller"] == run.controller]
        others = [flow for flow in flows if flow["controller"] != run.controller]
        if run.controller == plan.reference:
            # `Scenario.with_controllers` puts the flows of the controller first.
            half = (len(flows) + 1 - run.seed % 2) // 2
            own, others = flows[:half], flows[half:]
        figures["share"] = metrics.friendliness(
            result.goodputs_bps(own), result.goodputs_bps(others)
        )
    return figures


def _series(key: str, result: Result) -> pa.Table:
    """Return the table of the series of a run's flows."""
    from cwnd.tables import samples

    table = samples(result)
    columns = [
        pa.repeat(key, table.num_rows) if name == "key" else table[name] for name in SERIES.names
    ]
    return pa.table(columns, schema=SERIES)


def _table(rows: list[JsonObject], schema: pa.Schema) -> pa.Table:
    """Convert rows to a table; missing values and NaN become null."""
    columns = []
    for field in schema:
        values: list[Any] = [row.get(field.name) for row in rows]
        if pa.types.is_floating(field.type):
            numbers = np.array([math.nan if v is None else v for v in values], dtype=float)
            columns.append(pa.array(numbers, mask=np.isnan(numbers)))
        else:
            columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=schema)


def _explain(problem: Exception) -> str:
    """Format an error on one line, with the location if a controller's file raised it."""
    if isinstance(problem, _native.ScenarioError):
        return str(problem)
    text = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
    home = str(Path(__file__).parents[1])
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if not frame.filename.startswith(home):
            return f"{Path(frame.filename).name}:{frame.lineno}: in {frame.name}: {text}"
    return text
