"""Evaluate controllers: run the experiments of a suite and grade them."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cwnd.controller import read_controller
from cwnd.errors import ArgumentError
from cwnd.evaluation.bound import grade
from cwnd.evaluation.card import Card, Cell, TestResult
from cwnd.evaluation.experiment import experiments, order
from cwnd.notebook import with_notebook_bar
from cwnd.running import part_of
from cwnd.stats import COUNT, POSITIVE, UNIT, estimate
from cwnd.sweeps.reading import read_plan
from cwnd.sweeps.sweep import sweep
from cwnd.units import format_rate, format_time, parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from cwnd.controller import Spec
    from cwnd.evaluation.experiment import Experiment, Test
    from cwnd.records import Series
    from cwnd.sweeps.plan import Plan
    from cwnd.sweeps.sweep import Sweep

SEEDS = (5, 10, 20)
"""Numbers of seeds: the next one while a grade of an experiment is undecided."""

QUICK_SEEDS = (3,)
"""Numbers of seeds of a quick evaluation, and of one in real time."""

_FLOW = re.compile(r"flow\[([0-9]+)\]\..*")
_RANGES = {"fraction": UNIT, "count": COUNT}


@with_notebook_bar
def evaluate(
    controllers: Sequence[Spec],
    *,
    suite: str = "rfc9743",
    test: str | None = None,
    quick: bool = False,
    on: str = "sim",
    out: str | Path,
    dask: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Card]:
    """Grade controllers by the tests of a suite.

    Parameters
    ----------
    controllers
        Specifications such as ``bbr3`` or ``mine.py:Law``, and Python classes.
    suite
        One of `cwnd.evaluation.experiment.SUITES`, or ``all``.
    test
        Only the test of this name.
    quick
        Fewer networks and seeds of the same tests.
    on
        ``linux`` for the tests that run in real time in the kernel's TCP on emulated networks, of
        controllers such as ``kernel:bbr`` and ``simd``.
    out
        Directory of the runs: a data set of `cwnd.sweep` for each experiment in ``out/runs``. The
        same call resumes an interrupted evaluation, and other controllers share the baseline.
    dask
        Address of a Dask scheduler whose workers execute the runs.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    list of Card
        One for each controller.

    Raises
    ------
    ArgumentError
        A controller, ``suite``, ``test``, ``on``, ``out`` or ``dask`` is invalid.
    KernelError
        This machine or user cannot make runs in real time.
    """
    specs = {read_controller(spec)[0]: spec for spec in controllers}
    if not specs:
        raise ArgumentError("controllers", "name at least one controller")
    chosen = experiments(suite, test, on)
    results: dict[str, list[TestResult]] = {name: [] for name in specs}
    for number, experiment in enumerate(chosen):
        part = None
        if progress is not None:
            part = part_of(progress, number, 1, len(chosen))
        applied = {name: spec for name, spec in specs.items() if _applies(experiment, name)}
        found = _run(experiment, applied, quick=quick, out=Path(out), dask=dask, progress=part)
        for name in specs:
            results[name] += found.get(name) or [
                TestResult(one, experiment.baseline, ()) for one in experiment.tests
            ]
    if progress is not None:
        progress(1.0)
    return [
        Card(
            name,
            suite,
            quick,
            tuple(sorted(of, key=lambda result: order(result.test.section))),
            {result.test.id: _command(name, result.test, quick=quick, on=on) for result in of},
            on,
        )
        for name, of in results.items()
    ]


def _applies(experiment: Experiment, name: str) -> bool:
    """Test whether an experiment applies to a controller."""
    return not experiment.only or name.partition("(")[0] in experiment.only


def _command(controller: str, test: Test, *, quick: bool, on: str) -> str:
    """Return the command that runs a test alone."""
    words = ["cwnd", "evaluate", controller, "--suite", "all", "--test", test.id]
    words += ["--quick"] if quick else []
    return shlex.join(words + (["--on", on] if on != "sim" else []))


def _run(
    experiment: Experiment,
    specs: dict[str, Spec],
    *,
    quick: bool,
    out: Path,
    dask: str | None,
    progress: Callable[[float], None] | None,
) -> dict[str, list[TestResult]]:
    """Run an experiment, with more seeds while a grade is undecided."""
    if not specs:
        return {}
    real = experiment.on != "sim"
    variant = f"-{experiment.on}" if real else "-quick" if quick else ""
    home = out / "runs" / (experiment.name + variant)
    results: dict[str, list[TestResult]] = {}
    left = dict(specs)
    for seeds in QUICK_SEEDS if quick or real else SEEDS:
        plan = read_plan(experiment.plan(list(left.values()), seeds, quick=quick))
        made = sweep(plan, out=home, dask=dask, progress=progress)
        frame = _frame(made, seeds)
        for name in left:
            results[name] = [_grade(one, name, experiment, plan, frame) for one in experiment.tests]
        left = {
            name: spec
            for name, spec in left.items()
            if any(result.grade == "undecided" for result in results[name])
        }
        if not left:
            break
    return results


def _frame(made: Sweep, seeds: int) -> pd.DataFrame:
    """Return the runs with the first seeds, in the order of the seeds."""
    frame = made.runs
    return frame[frame["seed"] <= seeds].sort_values("seed")


def _grade(
    test: Test, name: str, experiment: Experiment, plan: Plan, frame: pd.DataFrame
) -> TestResult:
    """Grade a test on every network."""
    own = frame[frame["controller"] == name]
    base = frame[frame["controller"] == read_controller(experiment.baseline)[0]]
    within = _RANGES.get(test.metric.measure.dimension, POSITIVE)
    column = test.metric.name
    cells = []
    for point in range(plan.points):
        x = _values(own, point, column)
        y = _values(base, point, column)
        n = min(x.size, y.size)
        x, y = x[:n], y[:n]
        cells.append(
            Cell(
                _label(experiment, plan, point),
                grade(test.meets, test.fails, x, y),
                estimate(x, within),
                estimate(y, within),
                *_limits(test, y),
            )
        )
    failed = own["error"].dropna()
    problem = "" if failed.empty else f"{len(failed)} runs failed: {failed.iloc[0]}"
    return TestResult(test, experiment.baseline, tuple(cells), problem)


def _limits(test: Test, baseline: Series) -> tuple[float, float, bool]:
    """Return the thresholds for a baseline, and whether larger values are better."""
    mean = float(np.mean(baseline)) if baseline.size else math.nan
    good, poor = (
        [bound.limit * mean if bound.relative else bound.limit for bound in bounds]
        for bounds in (test.meets, test.fails)
    )
    # One of the bounds of `meets` has to hold, and all of `fails`.
    if test.meets[0].operator in (">=", ">"):
        return min(good), min(poor), True
    return max(good), max(poor), False


def _values(frame: pd.DataFrame, point: int, column: str) -> Series:
    """Return the values of a metric at a point, one for each seed."""
    return frame.loc[frame["point"] == point, column].to_numpy(dtype=np.float64)


def _label(experiment: Experiment, plan: Plan, point: int) -> str:
    """Describe a point by the values of its axes."""
    groups = [flow["name"] for flow in experiment.scenario.to_dict()["flow"]]
    values = zip(plan.axes, plan.values(point), strict=True)
    return ", ".join(_describe(groups, axis.name, value) for axis, value in values)


def _describe(groups: Sequence[str], key: str, value: Any) -> str:  # noqa: ANN401
    """Describe the value of an axis, for groups of flows with these names.

    Examples
    --------
    >>> _describe([], "dumbbell.delay", "20ms"), _describe([], "dumbbell.queue", "0.5bdp")
    ('RTT 40 ms', 'buffer 0.5 BDP')
    >>> _describe([], "dumbbell.queue", {"kind": "codel", "ecn": True})
    'codel with ECN'
    >>> _describe(["candidate", "others"], "flow[1].count", 4)
    '4 others'
    >>> _describe(["candidate"], "flow[0].count", 1)
    '1 flow'
    """
    name = key.rpartition(".")[2]
    if isinstance(value, dict):
        # A queue discipline, or a model of loss.
        ecn = value.get("ecn", value["kind"] == "fq_codel")
        return f"{value['kind']}{' with ECN' if ecn else ''}".replace("_", " ")
    if key == "dumbbell.delay":
        return f"RTT {format_time(2 * parse_time(value))}"
    match = _FLOW.fullmatch(key)
    group = groups[int(match[1])] if match else ""
    formats: dict[str, Callable[[Any], str]] = {
        "rate": lambda rate: format_rate(parse_rate(rate)),
        "rtt": lambda rtt: f"RTT {format_time(parse_time(rtt))} of {group}",
        "count": lambda count: f"{count} {_kind(group, count)}",
        "load": lambda load: f"load {load:.0%}",
        "queue": lambda size: "buffer " + size.replace("bdp", " BDP").replace("p", " packets"),
    }
    return formats.get(name, lambda other: f"{name} {other}")(value)


def _kind(group: str, count: int) -> str:
    """Return a word for the flows of a group."""
    word = "flows" if group == "candidate" else group
    return word.removesuffix("s") if count == 1 else word
