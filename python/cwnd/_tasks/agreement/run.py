"""Run one scenario on several backends: the simulator, UDT sockets and the kernel's TCP."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd._base.law_files import known_laws
from cwnd._base.progress import with_notebook_bar
from cwnd._runs.defaults import AGREE_BACKENDS, AGREE_REPEATS
from cwnd._runs.real_time import BACKENDS, check_backend
from cwnd._runs.repetition import Repeat, read_repeat, targets
from cwnd._runs.run import check_seed, measure, part_of
from cwnd._runs.scenario import Scenario
from cwnd._tasks.agreement.outcome import Agreement
from cwnd.errors import ArgumentError, read_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cwnd._runs.result import Result


@with_notebook_bar
def agree(
    scenario: Scenario | str | Path,
    *,
    on: Sequence[str] = AGREE_BACKENDS,
    repeat: Repeat = AGREE_REPEATS,
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Agreement:
    """Run one scenario on several backends and test in which figures they agree.

    Runs on all backends but the simulator take real time. They alternate, seed by seed, so that
    changes of the machine's load affect all backends alike.

    Parameters
    ----------
    scenario
        A scenario, the path of a scenario file, or the name of a packaged one (`cwnd scenarios`).
    on
        Two or more of ``sim``, ``udt``, ``linux`` and ``quic``; the first is the reference.
    repeat
        Seeds on each backend; fewer than five leave most figures undecided. ``auto`` starts with 5
        and doubles the number until every figure is decided, up to 20.
    seed
        The first seed; the scenario's seed by default.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    Agreement
        Figures with their intervals, verdicts, plots.

    Raises
    ------
    ArgumentError
        An argument is invalid.
    KernelError
        This machine or user cannot run scenarios in real time.
    ScenarioError
        The scenario is invalid, or a backend does not support it.
    """
    path = None if isinstance(scenario, Scenario) else Path(scenario)
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_toml(Path(scenario))
    on = read_list("on", on)
    check_backends(on, scenario)
    first, most = read_repeat(repeat, AGREE_REPEATS, real=True)
    seed = scenario.seed if seed is None else seed
    check_seed(seed, most)
    results: dict[str, list[Result]] = {place: [] for place in on}
    runs = most * sum(place != "sim" for place in on)
    for target in targets(first, most):
        seeds = range(seed + len(results[on[0]]), seed + target)
        done = sum(len(made) for place, made in results.items() if place != "sim")
        count = len(seeds) * sum(place != "sim" for place in on)
        part = None if progress is None else part_of(progress, done, count, runs)
        _extend(results, scenario, seeds, part)
        rerun = ""
        if path is not None:
            words = ["cwnd", "agree", str(path), "--on", ",".join(on)]
            rerun = shlex.join([*words, "--repeat", str(target), "--seed", str(seed)])
        agreement = Agreement(scenario.title, results, rerun)
        if target == most or not agreement.undecided:
            break
    if progress is not None:
        progress(1.0)
    return agreement


def _extend(
    results: dict[str, list[Result]],
    scenario: Scenario,
    seeds: Sequence[int],
    progress: Callable[[float], None] | None,
) -> None:
    """Run the scenario with further seeds on each backend."""
    real = [(seed, on) for seed in seeds for on in results if on != "sim"]
    # Real-time runs come first: errors of this machine show before time is spent on simulation.
    for made, (seed, on) in enumerate(real):
        reported = None if progress is None else part_of(progress, made, 1, len(real))
        results[on] += measure([(scenario, seed)], lambda _, run: run, on=on, progress=reported)
    if "sim" in results:
        results["sim"] += measure([(scenario, seed) for seed in seeds], lambda _, run: run)


def check_backends(on: Sequence[str], scenario: Scenario) -> None:
    """Raise an error for backends that cannot be compared, or that cannot run the scenario here."""
    for place in on:
        check_backend(place, [scenario])
    if "sim" in on and not scenario.controllers:
        with known_laws(scenario.laws):
            _native.check_simulated(scenario.to_json())
    if len(on) < 2 or len(set(on)) < len(on):
        raise ArgumentError(
            "on", f"at least two different backends of {', '.join(BACKENDS)} are needed"
        )
