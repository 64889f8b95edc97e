"""Evaluate controllers: run the experiments of a suite and grade them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import warn

import pyarrow as pa

from cwnd._base.law_files import held_laws, listed_twice, path_of_law, use_law
from cwnd._base.progress import with_notebook_bar
from cwnd._controllers.registry import describe, describe_law
from cwnd._experiments.bound import judge
from cwnd._experiments.experiment import experiments, order
from cwnd._runs.conventions import CONVENTIONS
from cwnd._runs.defaults import BACKEND, CARD_BUDGET, SEARCH_FINDINGS, SEED, STACKS, SUITE
from cwnd._runs.run import part_of
from cwnd._search.budget import Budget
from cwnd._search.search import find, plan_search
from cwnd._sweeps.forget import forget
from cwnd._sweeps.manifest import LOST, list_parts
from cwnd._sweeps.query import read
from cwnd._sweeps.reading import read_plan
from cwnd._sweeps.sweep import sweep
from cwnd._tasks.evaluation.card import Card, Cell, TestResult, file_name
from cwnd.controller import command_specification, read_controller
from cwnd.errors import ArgumentError, DataSetWarning, read_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd
    from distributed import Client

    from cwnd._experiments.bound import Measured
    from cwnd._experiments.experiment import Experiment, Test
    from cwnd._search.search import Search
    from cwnd._sweeps.plan import Plan
    from cwnd.controller import Spec

SEEDS = (5, 10, 20)
"""Numbers of seeds: the next one while a grade of an experiment is undecided."""

QUICK_SEEDS = (3, 5)
"""Numbers of seeds of a quick evaluation."""

SEARCHED = ("goodput", "delay", "loss")
"""Objectives of the search."""

REAL_SEEDS = (3,)
"""Numbers of seeds of an evaluation in real time."""


@with_notebook_bar
def evaluate(  # noqa: PLR0913
    controllers: Sequence[Spec],
    *,
    suite: str = SUITE,
    test: str | Sequence[str] = (),
    quick: bool = False,
    on: str = BACKEND,
    conventions: str = CONVENTIONS,
    stack: str | None = None,
    search: bool = False,
    budget: str = CARD_BUDGET,
    out: str | Path,
    dask: str | Client | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Card]:
    """Grade controllers by the tests of a suite.

    Parameters
    ----------
    controllers
        Specifications such as ``bbr3`` or ``mine.py:Law``, and Python classes.
    suite
        One of `cwnd._experiments.experiment.SUITES`, or ``all``.
    test
        Only the test of this name, or the tests of these names.
    quick
        Fewer networks and seeds of the same tests.
    on
        ``linux`` for the tests that run in real time in the kernel's TCP on emulated networks, of
        controllers such as ``kernel:bbr`` and ``simd``.
    conventions
        Conventions of TCP in the simulator: ``linux``, ``rfc``, ``rfc5681``, ``ns2`` or
        ``ns2-2001``.
    stack
        ``noq`` or ``quinn``: the measured flows are connections of this QUIC stack in simulated
        time, and the baseline is its own CUBIC or Reno. Other flows are those of TCP.
    search
        Search also for networks on which a controller is worse than a reference, as `cwnd.search`.
    budget
        Budget of the search of each controller.
    out
        Directory of the runs: a data set of `cwnd.sweep` for each experiment in ``out/runs``. The
        same call resumes an interrupted evaluation, and other controllers share the baseline.
        What the search has found is in ``out/search``.
    dask
        Address of a Dask scheduler whose workers execute the runs, or a ``distributed.Client``.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    list of Card
        One for each controller.

    Raises
    ------
    ArgumentError
        A controller, ``suite``, ``test``, ``quick``, ``on``, ``conventions``, ``stack``,
        ``search``, ``budget``, ``out`` or ``dask`` is invalid.
    KernelError
        This machine or user cannot make runs in real time.

    Warns
    -----
    DataSetWarning
        ``out`` has damaged parts, or runs of a controller whose file has changed: these runs are
        made again.
    """
    read = [(read_controller(spec)[0], spec) for spec in read_list("controllers", controllers)]
    specs = dict(read)
    if (twice := listed_twice([name for name, _ in read])) is not None:
        raise ArgumentError("controllers", f"{twice} is listed twice")
    # The files may change while the runs are made.
    laws = {law: use_law(law) for law in map(path_of_law, specs) if law is not None}
    if not specs:
        raise ArgumentError("controllers", "name at least one controller")
    tests = tuple(sorted({test} if isinstance(test, str) else {*read_list("test", test)}))
    chosen = experiments(suite, tests, on, conventions, stack)
    followed = chosen[0].conventions
    _check(specs, on, followed, stack, quick=quick, search=search)
    Budget(budget)
    parts = len(chosen) + (len(specs) if search else 0)
    results: dict[str, list[TestResult]] = {name: [] for name in specs}
    forgotten: set[str] = set()
    for number, experiment in enumerate(chosen):
        part = None
        if progress is not None:
            part = part_of(progress, number, 1, parts)
        applied = {name: spec for name, spec in specs.items() if _applies(experiment, name)}
        with held_laws(laws):
            found = _run(
                experiment,
                applied,
                quick=quick,
                out=Path(out),
                dask=dask,
                progress=part,
                forgotten=forgotten,
            )
        for name in specs:
            results[name] += found.get(name) or [
                _result(one, experiment, ()) for one in experiment.tests
            ]
    found_by_search = {}
    for number, (name, spec) in enumerate(specs.items() if search else (), len(chosen)):
        part = None if progress is None else part_of(progress, number, 1, parts)
        home = Path(out) / "search" / file_name(name)
        with held_laws(laws):
            found_by_search[name] = _search(
                spec, budget=budget, home=home, dask=dask, progress=part, forgotten=forgotten
            )
    if progress is not None:
        progress(1.0)
    described = {
        name: describe(spec)
        if (path := path_of_law(name)) is None
        else describe_law(path, laws[path])
        for name, spec in specs.items()
        if not name.startswith(("kernel:", "own:"))
    }
    return [
        Card(
            name,
            suite,
            quick,
            tuple(sorted(of, key=lambda result: order(result.test.section))),
            on,
            command_specification(*read_controller(specs[name])),
            tests,
            followed,
            law if (law := described.get(name)) and law.mathml else None,
            stack,
            found_by_search.get(name),
        )
        for name, of in results.items()
    ]


def _check(
    names: Iterable[str],
    on: str,
    conventions: str,
    stack: str | None,
    *,
    quick: bool,
    search: bool,
) -> None:
    """Refuse what the backend, the conventions or the stack do not permit."""
    if quick and on != "sim":
        raise ArgumentError("quick", f"the tests on {on} have no quick evaluation")
    if search and (on != "sim" or conventions != CONVENTIONS or stack is not None):
        raise ArgumentError("search", f"only on sim over TCP with the conventions {CONVENTIONS}")
    for name in names:
        if name.startswith("own:") and stack is None:
            raise ArgumentError("stack", f"{name} is of a QUIC stack: {' or '.join(STACKS)}")
        if name.startswith("kernel:") and conventions != CONVENTIONS:
            raise ArgumentError("conventions", f"{name} has those of Linux")


def _applies(experiment: Experiment, name: str) -> bool:
    """Test whether an experiment applies to a controller."""
    return not experiment.only or name.partition("(")[0] in experiment.only


def _result(test: Test, experiment: Experiment, cells: tuple[Cell, ...]) -> TestResult:
    """Return the result of a test; without cells it does not apply."""
    networks = len(experiment.networks)
    return TestResult(test, experiment.name, networks, experiment.baseline, cells)


def _run(
    experiment: Experiment,
    specs: dict[str, Spec],
    *,
    quick: bool,
    out: Path,
    dask: str | Client | None,
    progress: Callable[[float], None] | None,
    forgotten: set[str],
) -> dict[str, list[TestResult]]:
    """Run an experiment, with more seeds while a grade is undecided."""
    if not specs:
        return {}
    real = experiment.on != "sim"
    variant = f"-{experiment.on}" if real else ""
    variant += f"-{experiment.stack}" if experiment.stack is not None else ""
    variant += f"-{experiment.conventions}" if experiment.conventions != CONVENTIONS else ""
    home = out / "runs" / (experiment.name + variant)
    points = experiment.points(quick=quick)
    results: dict[str, list[TestResult]] = {}
    left = dict(specs)
    for seeds in REAL_SEEDS if real else QUICK_SEEDS if quick else SEEDS:
        plan = replace(read_plan(experiment.plan(list(left.values()), seeds)), chosen=points)
        _forget_old(home, plan, experiment.baseline, forgotten)
        frame = sweep(plan, out=home, dask=dask, progress=progress).runs
        frame["point"] = plan.find_points(pa.Table.from_pandas(frame[[*plan.places, "seed"]]))
        for name in left:
            results[name] = [
                _grade(one, name, experiment, points, seeds, frame) for one in experiment.tests
            ]
        left = {
            name: spec
            for name, spec in left.items()
            if any(result.grade == "undecided" for result in results[name])
        }
        if not left:
            break
    return results


def _search(
    spec: Spec,
    *,
    budget: str,
    home: Path,
    dask: str | Client | None,
    progress: Callable[[float], None] | None,
    forgotten: set[str],
) -> Search:
    """Search for the networks on which a controller is worst."""
    *_, plan = plan_search(spec, None, None, SEARCHED)
    _forget_old(home, plan, str(plan.controllers[-1]), forgotten)
    return find(
        spec,
        against=None,
        bounds=None,
        objective=SEARCHED,
        budget=budget,
        findings=SEARCH_FINDINGS,
        seed=SEED,
        out=home,
        dask=dask,
        progress=progress,
    )


def _forget_old(home: Path, plan: Plan, baseline: str, forgotten: set[str]) -> None:
    """Remove the runs of controllers in files that have changed since.

    After a change of cwnd, which those of the baseline show, all stay, and the sweep refuses.
    ``forgotten`` has the controllers of which the user knows.
    """
    parts = list_parts(home)
    # The sweep mends damaged parts.
    if not parts or any(part.damage(contents=False) for part in parts):
        return
    made = read(home, "select distinct controller, code from runs").to_pylist()
    now = plan.codes
    old = {
        row["controller"] for row in made if now.get(row["controller"]) not in {row["code"], None}
    }
    if read_controller(baseline)[0] in old:
        return
    for name in old & {*plan.factories, *(name for name in now if name and path_of_law(name))}:
        if name not in forgotten:
            forgotten.add(name)
            warn(f"{name} has changed: its runs are made again", DataSetWarning, stacklevel=2)
        quoted = name.replace("'", "''")
        forget(home, f"controller = '{quoted}' and code <> '{now[name]}'")


def _grade(
    test: Test,
    name: str,
    experiment: Experiment,
    points: Sequence[int],
    seeds: int,
    frame: pd.DataFrame,
) -> TestResult:
    """Grade a test on some networks."""
    own = frame[frame["controller"] == name]
    base = frame[frame["controller"] == read_controller(experiment.baseline)[0]]
    networks = experiment.networks
    cells = []
    for point in points:
        values, failed = _values(own, point, seeds, test.metric.name)
        known, lost = _values(base, point, seeds, test.metric.name)
        found, measured = judge(
            test.meets, test.fails, values, known, test.metric.measure.dimension
        )
        if failed and all(line.partition(": ")[2].startswith(LOST) for line in failed):
            # The machine failed, and not the controller: the same command repeats these runs.
            found = "undecided"
        if experiment.baseline == name:
            lost = []
        failures = (*failed, *(f"baseline {experiment.baseline}, {line}" for line in lost))
        limits = _limits(test, measured)
        cells.append(Cell(networks[point], found, measured, values, known, *limits, failures))
    return _result(test, experiment, tuple(cells))


def _limits(test: Test, measured: Measured) -> tuple[float, float, bool]:
    """Return the thresholds for a baseline, and whether larger values are better."""
    mean = measured.baseline.mean
    good, poor = (
        [bound.limit * mean if bound.relative else bound.limit for bound in bounds]
        for bounds in (test.meets, test.fails)
    )
    # One of the bounds of `meets` has to hold, and all of `fails`.
    if test.meets[0].operator in (">=", ">"):
        return min(good), min(poor), True
    return max(good), max(poor), False


def _values(
    frame: pd.DataFrame, point: int, seeds: int, column: str
) -> tuple[tuple[float, ...], list[str]]:
    """Return the values of a metric at a point with each seed, and a line for each missing one."""
    rows = {
        row["seed"]: row
        for row in frame.loc[frame["point"] == point, ["seed", "error", column]].to_dict("records")
    }
    values, missing = [], []
    for seed in range(1, seeds + 1):
        row = rows[seed]
        value = float(row[column])
        if isinstance(row["error"], str):
            value = math.nan
            missing.append(f"seed {seed}: {row['error']}")
        elif not math.isfinite(value):
            word = "infinite" if math.isinf(value) else "unknown"
            missing.append(f"seed {seed}: {column} is {word}")
        values.append(value)
    return tuple(values), missing
