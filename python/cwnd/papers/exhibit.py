"""What an exhibit is: a table, a figure or a claim of a paper that can be run again."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from cwnd import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cwnd.papers.claims import Claim
    from cwnd.papers.figure import Figure, Table
    from cwnd.result import Result
    from cwnd.scenario import Scenario

Known: TypeAlias = "dict[tuple[str, Callable[[Result], Any], int], Any]"
"""What was measured, by scenario (JSON), measure and seed."""

K = TypeVar("K")
M = TypeVar("M")
T = TypeVar("T")

PAPERS = {
    "simd": "TCP-friendly SIMD congestion control and its convergence behavior",
    "gaimd": "General AIMD congestion control",
    "aira": "On the properties of an additive increase rate accelerator",
    "daimd": "An analysis of AIMD algorithm with decreasing increases",
    "aiad": "Stability and fairness of rate estimation-based AIAD congestion control in TCP",
    "beyond": "Beyond the papers: all laws on one grid",
}
"""The papers by their short names; each is a module of this package."""


@dataclass(slots=True)
class Findings:
    """What an exhibit found.

    Attributes
    ----------
    claims
        What the paper says, held against what was measured.
    figures, tables
        What to show.
    varied
        What is varied over the scenario shown, in a sentence.
    inferred
        What the paper's text leaves out or lost, what was chosen instead, and how.
    """

    claims: list[Claim]
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    varied: str = ""
    inferred: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Exhibit:
    """An exhibit of a paper.

    Attributes
    ----------
    paper
        Short name of the paper.
    id
        Short name within the paper: ``table-1``, ``fig-5``.
    title
        What it shows.
    new
        Whether it goes beyond the paper.
    cost
        About how many seconds of one core the full run takes: the longest are started first.
    beside
        Another exhibit of the paper that needs some of the same runs, or this one itself.
    run
        Runs it.
    """

    paper: str
    id: str
    title: str
    new: bool
    cost: float
    beside: str
    run: Callable[[Lab], Findings]


_EXHIBITS: dict[str, list[Exhibit]] = {paper: [] for paper in PAPERS}


def exhibit(
    name: str, title: str, *, cost: float, new: bool = False, beside: str = ""
) -> Callable[[Callable[[Lab], Findings]], Callable[[Lab], Findings]]:
    """Make a function an exhibit of the paper whose module it is in.

    Parameters
    ----------
    name
        Short name within the paper.
    title
        What it shows.
    cost
        About how many seconds of one core the full run takes.
    new
        Whether it goes beyond the paper.
    beside
        An earlier exhibit of the paper that needs some of the same runs, measured by the same
        function: they are done once when both are asked for.
    """

    def register(function: Callable[[Lab], Findings]) -> Callable[[Lab], Findings]:
        paper = function.__module__.rpartition(".")[2]
        _EXHIBITS[paper].append(Exhibit(paper, name, title, new, cost, beside or name, function))
        return function

    return register


def exhibits(paper: str) -> list[Exhibit]:
    """List the exhibits of a paper, in its order.

    Parameters
    ----------
    paper
        One of `PAPERS`.

    Examples
    --------
    >>> [e.id for e in exhibits("simd")][:2]
    ['fig-1', 'fig-4a']
    """
    import_module(f"cwnd.papers.{paper}")
    return list(_EXHIBITS[paper])


class Lab:
    """Where an exhibit runs its simulations.

    Parameters
    ----------
    quick
        Fewer seeds and shorter runs.
    repeat
        Seeds of each case, whatever the exhibit would choose; None lets it choose.
    threads
        Cores that this exhibit may use.
    known
        What was measured for other exhibits, by scenario, measure and seed, and where to note what
        is measured for this one; None notes nothing.
    """

    def __init__(
        self,
        *,
        quick: bool = False,
        repeat: int | None = None,
        threads: int = 1,
        known: Known | None = None,
    ) -> None:
        self.quick = quick
        self.repeat = repeat
        self.threads = threads
        self._known = known
        self.scenario: Scenario | None = None

    def pick(self, full: T, quick: T) -> T:
        """Choose between what the full run does and what the quick one does."""
        return quick if self.quick else full

    def seeds(self, full: int, quick: int = 3) -> range:
        """Give the seeds of each case.

        Parameters
        ----------
        full, quick
            How many in the full run and in the quick one.
        """
        return range(1, 1 + (self.repeat or self.pick(full, quick)))

    def run(
        self, cases: Mapping[K, Scenario], measure: Callable[[Result], M], seeds: Iterable[int]
    ) -> dict[K, list[M]]:
        """Run scenarios and keep of each run only what is measured.

        The first scenario of the exhibit is the one its report shows.

        Parameters
        ----------
        cases
            Scenarios by whatever names them.
        measure
            What is kept of a run.
        seeds
            Seeds of each.

        Returns
        -------
        dict
            For each case what was measured, one a seed.
        """
        seeds = list(seeds)
        if self.scenario is None:
            self.scenario = next(iter(cases.values()), None)
        known = {} if self._known is None else self._known
        keys = {
            case: [(scenario.to_json(), measure, seed) for seed in seeds]
            for case, scenario in cases.items()
        }
        jobs = {
            key: (cases[case], key[-1]) for case in cases for key in keys[case] if key not in known
        }
        measured = running.measure(
            list(jobs.values()), lambda _, run: measure(run), threads=self.threads
        )
        known.update(zip(jobs, measured, strict=True))
        return {case: [known[key] for key in keys[case]] for case in cases}
