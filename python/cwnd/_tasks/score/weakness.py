"""The search of a score: the networks on which a candidate is worse than a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._search.archive import Judge
from cwnd._search.budget import Budget
from cwnd._search.networks import network, packets, value_of
from cwnd._search.search import hunt
from cwnd._tasks.score.here import Here
from cwnd._tasks.score.suite import PACKET_BITS, most_packets
from cwnd.units import parse_rate, parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import JsonObject
    from cwnd._search.finding import Finding
    from cwnd._sweeps.plan import Run
    from cwnd._tasks.score.here import Runner
    from cwnd._tasks.score.suite import Search


def find_weaknesses(
    search: Search, candidate: str, seed: int, runner: Runner
) -> list[Finding | None]:
    """Return the confirmed weakness of a candidate under each objective, if one was found."""
    runs = _Runs(search, candidate, runner, Here(search.against, seed))
    budget = Budget(search.budget)
    budget.start(lambda: runs.spent)
    names = (candidate, search.against)
    judge = Judge(runs, *names)
    hunts = hunt(judge, search.space, search.objectives, budget, seed=seed, most=1, names=names)
    return [next(iter(one.confirmed), None) for one in hunts]


def score_finding(found: Finding | None) -> float:
    """Return the score of a weakness: the ratio of the metrics, or 1 without one."""
    return 1.0 if found is None else min(1.0, 2.0**-found.size.mean)


def explain_finding(found: Finding) -> str:
    """Say what a weakness needs, and what it costs."""
    shown = found.objective.test.metric.measure.shown
    own, base = shown(found.measured.value.mean), shown(found.measured.baseline.mean)
    needs = found.sentence[:1].upper() + found.sentence[1:]
    text = f"{needs}, found by search: {found.objective.meaning} {own} ({found.against} {base})"
    return f"{text}; {found.errors[0]}." if found.errors else f"{text}."


class _Runs:
    """Makes each run once: those of the candidate within its limits, the others here."""

    def __init__(self, search: Search, candidate: str, runner: Runner, here: Runner) -> None:
        self._names = search.space.names
        self._metrics = list(dict.fromkeys(one.metric for one in search.objectives))
        self._candidate, self._runner, self._here = candidate, runner, here
        self._rows: dict[Run, JsonObject] = {}

    @property
    def spent(self) -> int:
        """Number of runs."""
        return len(self._rows)

    def rows(self, runs: Sequence[Run]) -> list[JsonObject]:
        """Return a row with the metrics and the ``error`` of each run."""
        missing = [run for run in dict.fromkeys(runs) if run not in self._rows]
        own = [run for run in missing if run.controller == self._candidate]
        others = [run for run in missing if run.controller != self._candidate]
        for part, runner in ((own, self._runner), (others, self._here)):
            jobs = [(self._scenario(run), run.seed) for run in part]
            for run, found in zip(part, runner.run_metrics(jobs, self._metrics), strict=True):
                row: JsonObject = {"error": None, **dict.fromkeys(self._metrics)}
                if isinstance(found, str):
                    row["error"] = found
                else:
                    row |= zip(self._metrics, found, strict=True)
                self._rows[run] = row
        return [self._rows[run] for run in runs]

    def _scenario(self, run: Run) -> JsonObject:
        """Return the scenario of a run, with a bound of the window."""
        values = dict(zip(self._names, run.values, strict=True))
        found = network(values, str(run.controller))
        rate, rtt = parse_rate(value_of(values, "rate")), parse_time(value_of(values, "rtt"))
        longest = rtt * max(1.0, values.get("rtt_change") or 1.0)
        found["tcp"]["window"] = most_packets(rate * longest / PACKET_BITS, packets(values))
        return found
