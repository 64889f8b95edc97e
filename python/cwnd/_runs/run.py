"""Run scenarios on the simulator or in real time."""

from __future__ import annotations

import shlex
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex, TypeVar

from cwnd import _native
from cwnd._base.law_files import known_laws
from cwnd._base.progress import with_notebook_bar
from cwnd._runs.defaults import BACKEND
from cwnd._runs.real_time import check_backend, run_real
from cwnd._runs.result import Result
from cwnd._runs.scenario import Scenario
from cwnd._runs.scenario_keys import check_values, write_values
from cwnd.controller import add_controller
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd._base.records import RunRecord
    from cwnd.controller import Factory

T = TypeVar("T")

MAX_SEED = 2**64 - 1


@with_notebook_bar
def run(  # noqa: PLR0913
    scenario: Scenario | str | Path,
    seed: int | None = None,
    *,
    on: str = BACKEND,
    values: Mapping[str, object] | None = None,
    pcap: tuple[str, str | Path] | None = None,
    qlog: str | Path | None = None,
    lookahead: bool = True,
    acks: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Run one scenario.

    Parameters
    ----------
    scenario
        A scenario, the path of a scenario file, or the name of a packaged one (`cwnd scenarios`).
    seed
        Seed of the run; the scenario's seed by default. Simulations with the same scenario and seed
        always have the same result.
    on
        Backend: ``sim``, or in real time on an emulated network (Linux, root) ``udt`` for UDT
        sockets, ``linux`` for the kernel's TCP or ``quic`` for the QUIC stacks. See
        ``docs/agreement.md``.
    values
        Values of the scenario to replace, by path; see `Scenario.with_values`.
    pcap
        Name of a link, and the capture file for its packets; on ``sim`` only.
    qlog
        An existing directory for a qlog of each flow with a controller, named by the number of the
        flow: ``0.sqlog``. The events are in memory until the end of the run; on ``sim`` only.
    lookahead
        Whether packets may be processed ahead of the simulated clock. Without lookahead a
        simulation is slower and has the same result; on ``sim`` only.
    acks
        Whether to record each acknowledgement, for `Result.acks` and ``cwnd.tables``; it takes 0.2
        GB of memory for a million of them; on ``sim`` only.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    Result
        Figures, tables and series.

    Raises
    ------
    ScenarioError
        The scenario is invalid; the message names the file, the line and the key.
    ArgumentError
        An argument is invalid.
    KernelError
        This machine or user cannot run scenarios in real time.

    Examples
    --------
    >>> import cwnd
    >>> scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="5s")
    >>> result = cwnd.run(scenario.add_flow("reno", count=2))
    >>> list(result.flows["controller"])
    ['reno', 'reno']
    """
    values = values or {}
    path, scenario = read_run(scenario, values)
    seed = scenario.seed if seed is None else seed
    if pcap is not None and on != "sim":
        raise ArgumentError("pcap", "packet capture needs the backend sim")
    if qlog is not None and on != "sim":
        raise ArgumentError("qlog", "only the backend sim writes qlogs")
    if not lookahead and on != "sim":
        raise ArgumentError("lookahead", "only the backend sim has lookahead")
    if acks and on != "sim":
        raise ArgumentError("acks", "only the backend sim records acknowledgements")
    capture = None if pcap is None else (pcap[0], str(pcap[1]))
    jobs = [(scenario, seed)]
    (result,) = measure(
        jobs,
        lambda _, run: run,
        pcap=capture,
        qlog=None if qlog is None else str(qlog),
        lookahead=lookahead,
        acks=acks,
        progress=progress,
        on=on,
    )
    if path is not None:
        result.rerun = run_command(path, values, seed, on)
    return result


def read_run(
    scenario: Scenario | str | Path, values: Mapping[str, object]
) -> tuple[Path | None, Scenario]:
    """Return the file of a scenario, if it is of a file, and the scenario with some values."""
    path = None if isinstance(scenario, Scenario) else Path(scenario)
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_toml(Path(scenario))
    check_values(values)
    return path, scenario.with_values(values)


def run_command(
    file: Path,
    values: Mapping[str, object],
    seed: int,
    on: str,
    repeat: int | None = None,
    fork_at: str | None = None,
) -> str:
    """Return the command that repeats a run, several runs, or both futures of a run."""
    times = [] if repeat is None else ["--repeat", str(repeat)]
    times += [] if fork_at is None else ["--fork-at", fork_at]
    where = [] if on == "sim" else ["--on", on]
    words = ["cwnd", "run", str(file), *write_values(values), *times, "--seed", str(seed)]
    return shlex.join([*words, *where])


def simulate(
    jobs: Sequence[tuple[Scenario, int]],
    *,
    pcap: tuple[str, str] | None = None,
    lookahead: bool = True,
    progress: Callable[[float], None] | None = None,
    threads: int = 0,
) -> list[Result]:
    """Simulate many scenarios, with a seed each, in parallel.

    ``pcap`` is the name of a link and the capture file for its packets, only with one job; 0
    ``threads`` means one per core.
    """
    return measure(
        jobs, lambda _, run: run, pcap=pcap, lookahead=lookahead, progress=progress, threads=threads
    )


def measure(  # noqa: PLR0913
    jobs: Sequence[tuple[Scenario, int]],
    keep: Callable[[int, Result], T],
    *,
    pcap: tuple[str, str] | None = None,
    qlog: str | None = None,
    lookahead: bool = True,
    acks: bool = False,
    progress: Callable[[float], None] | None = None,
    scales: list[float] | None = None,
    threads: int = 0,
    on: str = "sim",
) -> list[T]:
    """Run many scenarios as `simulate` does, and return what ``keep`` returns for each, in order.

    ``keep`` is called with the number of a job and its result as soon as the job is complete, while
    others run. ``scales`` are time scales of smoothness in seconds. Runs in real time are
    sequential, as they would disturb each other.
    """
    laws: dict[str, str] = {}
    controllers: dict[str, Factory] = {}
    for scenario, seed in jobs:
        check_seed(seed)
        for name, factory in scenario.controllers.items():
            add_controller(controllers, name, factory)
        for name, text in scenario.laws.items():
            if laws.setdefault(name, text) != text:
                raise ArgumentError("controllers", f"{name} has different texts in these runs")

    check_backend(on, [scenario for scenario, _ in jobs])
    if on != "sim":
        kept = []
        for job, (scenario, seed) in enumerate(jobs):
            part = None if progress is None else part_of(progress, job, 1, len(jobs))
            kept.append(keep(job, run_real(scenario, seed, on, progress=part, scales=scales)))
        return kept

    def finished(job: int, record: RunRecord) -> T:
        scenario = jobs[job][0]
        result = Result(
            record,
            title=scenario.title,
            scales=scales,
            document=scenario.document,
            laws=scenario.laws,
        )
        return keep(job, result)

    with known_laws(laws):
        return _native.simulate(
            [(scenario.to_json(), seed) for scenario, seed in jobs],
            threads=threads,
            controllers=controllers or None,
            progress=progress,
            keep=finished,
            pcap=pcap,
            lookahead=lookahead,
            acks=acks,
            qlog=qlog,
        )


def check_seed(seed: object, repeat: int = 1) -> None:
    """Raise an ArgumentError for a seed that is not, or whose repeats are not, within 64 bits."""
    most = MAX_SEED + 1 - repeat
    if not isinstance(seed, SupportsIndex) or not 0 <= index(seed) <= most:
        of = f" for {repeat} repeats" if repeat > 1 else ""
        raise ArgumentError("seed", f"{seed!r} is not a whole number from 0 to {most}{of}")


def part_of(
    progress: Callable[[float], None], done: int, part: int, jobs: int
) -> Callable[[float], None]:
    """Map the completed fraction of ``part`` jobs, after ``done`` ones, to that of all jobs."""
    return lambda fraction: progress((done + fraction * part) / jobs)
