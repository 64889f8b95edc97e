"""A simulation in parts: run to a time, copied, and changed from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd import _native
from cwnd._base.law_files import known_laws
from cwnd._runs.result import Result
from cwnd._runs.run import check_seed, read_run
from cwnd._runs.scenario_keys import check_values
from cwnd.errors import ArgumentError, read_argument
from cwnd.units import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from cwnd._runs.scenario import Scenario


class Simulation:
    """One run of a scenario that can be copied in its course.

    A run and its copies continue independently, with the results of runs that were not copied.
    One thread at a time uses a run; other threads may use its copies meanwhile.
    Runs with QUIC flows or controllers written in Python cannot be copied: their copies begin
    anew, which takes longer and has the same results; a note says so.

    Parameters
    ----------
    scenario
        A scenario, the path of a scenario file, or the name of a packaged one.
    seed
        Seed of the run; the scenario's seed by default.
    values
        Values of the scenario to replace, by path; see `Scenario.with_values`.
    lookahead
        As of `cwnd.run`.

    Examples
    --------
    >>> import cwnd
    >>> scenario = cwnd.Scenario.dumbbell(rate="20mbit", rtt="40ms", time="10s", warmup="5s")
    >>> one = cwnd.Simulation(scenario.add_flow("cubic"))
    >>> one.run_until("5s")
    >>> other = one.fork()
    >>> other.change({"dumbbell.rate": "10mbit"})
    >>> [round(run.result().metrics["goodput_bps"] / 1e6) for run in (one, other)]
    [19, 10]
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        seed: int | None = None,
        *,
        values: Mapping[str, object] | None = None,
        lookahead: bool = True,
    ) -> None:
        _, self.scenario = read_run(scenario, values or {})
        self.seed = self.scenario.seed if seed is None else seed
        check_seed(self.seed)
        self.time_s = 0.0
        self._laws = self.scenario.laws
        with known_laws(self._laws):
            self._run = _native.Simulation(
                self.scenario.to_json(),
                self.seed,
                controllers=self.scenario.controllers or None,
                lookahead=lookahead,
            )

    def run_until(self, at: str | float) -> None:
        """Run to a time: to the last event before which nothing of this time is determined."""
        self.time_s = read_time("at", at, self.scenario, self.time_s)
        with known_laws(self._laws):
            self._run.run_until(self.time_s)

    def fork(self) -> Simulation:
        """Return a copy of the run at this time."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        with known_laws(self._laws):
            copy._run = self._run.fork()
        return copy

    def change(self, values: Mapping[str, object]) -> None:
        """Replace values of the scenario from the time of `run_until` on.

        Rate, delay and loss of links, controllers of TCP flows, and starts and stops of flows can
        change. A controller is a law, and continues with the window or the rate of the one before.
        A queue keeps its size, also one in bandwidth-delay products.

        Raises
        ------
        ScenarioError
            Something else would change; the message says what can.
        """
        check_values(values)
        scenario = self.scenario.with_values(values)
        before, after = (dict(_queues(each.document)) for each in (self.scenario, scenario))
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                raise ArgumentError("set", f"{path}: a queue cannot change in a run")
        if scenario.seed != self.scenario.seed:
            raise ArgumentError("set", "seed: the seed cannot change in a run")
        laws = {**self._laws, **scenario.laws}
        with known_laws(laws):
            self._run.change(scenario.to_json(), self.time_s)
        self.scenario, self._laws = scenario, laws

    def result(self, progress: Callable[[float], None] | None = None) -> Result:
        """Return the result at the end of the run. The run itself stays at its time."""
        with known_laws(self._laws):
            record = self._run.record(progress)
        document = self.scenario.document
        return Result(record, title=self.scenario.title, document=document, laws=self._laws)


def _queues(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Return the queues in a part of a scenario with their paths."""
    if isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}".lstrip(".")
            yield from [(inner, item)] if key == "queue" else _queues(item, inner)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _queues(item, f"{path}[{number}]")


def read_time(name: str, at: str | float, scenario: Scenario, from_s: float = 0.0) -> float:
    """Return a time of a run in seconds, not before ``from_s``."""
    time_s = read_argument(name, parse_time, at) if isinstance(at, str) else float(at)
    duration_s = scenario.validate()["duration_s"]
    if not from_s <= time_s < duration_s:
        first, last = format_time(from_s), format_time(duration_s)
        shown = at if isinstance(at, str) else format_time(time_s)
        raise ArgumentError(name, f"{shown} is not in the run, from {first} to below {last}")
    return time_s
