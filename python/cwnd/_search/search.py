"""Search for the networks on which a controller is worst beside a reference."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np

from cwnd import _show
from cwnd._base.files import write_text
from cwnd._base.progress import with_notebook_bar
from cwnd._runs.defaults import (
    SEARCH_AGAINST,
    SEARCH_BUDGET,
    SEARCH_FINDINGS,
    SEARCH_OBJECTIVE,
    SEED,
)
from cwnd._search.archive import Archive, Judge, make_plan
from cwnd._search.budget import Budget
from cwnd._search.confirm import check_confirmation, run_finding
from cwnd._search.explore import Spent, explore
from cwnd._search.finding import Finding, verdict_of
from cwnd._search.networks import PARAMETERS
from cwnd._search.objective import CAPACITY, read_objectives
from cwnd._search.reduction import KEPT, Reducer
from cwnd._search.space import read_space
from cwnd._sweeps.dataset import PLAN
from cwnd._sweeps.manifest import list_parts
from cwnd.controller import read_controller
from cwnd.errors import ArgumentError
from cwnd.stats import estimate
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt
    from distributed import Client

    from cwnd._base.records import JsonObject
    from cwnd._search.archive import Samples, SearchPlan
    from cwnd._search.explore import Explorer
    from cwnd._search.objective import Objective
    from cwnd._search.space import BoundsLike, Space, Values
    from cwnd.controller import Factory, Spec

SEEDS_OF_SEARCH = 1000
"""Distance between the seeds of two searches."""

REDUCE_SEEDS = (range(101, 105), range(101, 109))
"""Seeds of a reduction, after the first one of the search: more if the first are undecided."""

CONFIRM_SEEDS = range(201, 209)
"""Seeds of the confirmation."""

NEAR = 0.3
"""Largest distance of a network from a finding that explains it, as a part of the bounds."""


@dataclass(frozen=True)
class Search:
    """The result of a search.

    Attributes
    ----------
    controller, against
        Names of the controller and of the reference.
    findings
        The confirmed weaknesses, the largest first.
    rejected
        Networks that fresh seeds did not confirm, or that are undecided.
    front
        Networks of the search with one seed, of which none is worse than another under all
        objectives: the size of the weakness by objective. Empty with one objective.
    runs
        Number of runs.
    out
        The directory: a data set of all runs, and a scenario of each finding.
    files
        The scenario of each finding.
    space, plan
        The bounds and the plan of the runs.
    explored
        The networks that were sampled and refined: the parameters that are on, and the size of the
        weakness with one seed by objective.
    """

    controller: str
    against: str
    findings: tuple[Finding, ...]
    rejected: tuple[Finding, ...]
    front: tuple[Mapping[str, float], ...]
    runs: int
    out: Path
    files: tuple[Path, ...]
    space: Space = field(repr=False)
    plan: SearchPlan = field(repr=False)
    explored: tuple[tuple[Mapping[str, Any], Mapping[str, float]], ...] = field(repr=False)

    @property
    def summary(self) -> str:
        """The numbers of runs, findings and other suspects."""
        suspects = f"{counted(len(self.rejected), 'other suspect')} not confirmed"
        confirmed = f"{counted(len(self.findings), 'finding')} of {self.controller}"
        return f"{counted(self.runs, 'run')}: {confirmed} beside {self.against}, {suspects}"

    @property
    def pairs(self) -> list[tuple[Finding, Path]]:
        """The findings with their scenarios."""
        return list(zip(self.findings, self.files, strict=True))

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page: the map of the networks, and the findings over time.

        Parameters
        ----------
        path
            The file to write.
        """
        write_text(path, _show.report.search.search_page(self))

    def to_json(self) -> JsonObject:
        """Return the result as plain data; docs/json.md describes it."""
        found = [{**one.to_json(), "file": str(file)} for one, file in self.pairs]
        return {
            "controller": self.controller,
            "against": self.against,
            "runs": self.runs,
            "out": str(self.out),
            "findings": found,
            "rejected": [one.to_json() for one in self.rejected],
            "front": [dict(one) for one in self.front],
        }


@with_notebook_bar
def search(  # noqa: PLR0913
    controller: Spec,
    *,
    against: Spec | None = None,
    bounds: BoundsLike = None,
    objective: str | Sequence[str] = SEARCH_OBJECTIVE,
    budget: str = SEARCH_BUDGET,
    findings: int = SEARCH_FINDINGS,
    seed: int = SEED,
    out: str | Path | None = None,
    dask: str | Client | None = None,
    confirm: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Search:
    """Find the networks on which a controller is worst beside a reference.

    Parameters
    ----------
    controller
        A specification such as ``bbr3`` or ``mine.law``, or a Python class.
    against
        The reference, ``cubic`` by default (``reno`` for ``cubic``), or ``capacity`` for a sender
        that uses all of the bottleneck.
    bounds
        The path of a file with the bounds of the networks, or its contents as plain data; by
        default the packaged ones. docs/search.md describes them.
    objective
        One or several of `cwnd._search.objective.OBJECTIVES`.
    budget
        A wall time such as ``60s``, or a number of runs such as ``1000runs``, with which the
        findings are the same on every machine.
    findings
        The largest number of findings for each objective.
    seed
        Seed of the search and of its runs.
    out
        The directory of the results; a temporary one by default. The same call resumes a search.
    dask
        The address of a Dask scheduler whose workers execute the runs, or a
        ``distributed.Client``.
    confirm
        ``linux`` runs each finding in real time over the kernel's TCP too, three times under each
        controller; it needs root.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    Search
        The findings, with a scenario file each.

    Raises
    ------
    PlanError
        The bounds are invalid.
    ArgumentError
        Another argument is invalid.
    KernelError
        ``confirm`` is not possible on this machine or for this user.
    """
    return find(
        controller,
        against=against,
        bounds=bounds,
        objective=objective,
        budget=budget,
        findings=findings,
        seed=seed,
        out=out,
        dask=dask,
        confirm=confirm,
        progress=progress,
    )


def plan_search(
    controller: Spec, against: Spec | None, bounds: BoundsLike, objective: str | Sequence[str]
) -> tuple[Space, tuple[Objective, ...], SearchPlan]:
    """Return the bounds, the objectives, and the plan of the runs of a search."""
    if against is None:
        cubic = read_controller(controller)[0] == SEARCH_AGAINST
        against = "reno" if cubic else SEARCH_AGAINST
    space = read_space(bounds)
    chosen = read_objectives(objective, against if isinstance(against, str) else "")
    for one in chosen:
        space.requiring(one.needs, f"the objective {one.name}")
    return space, chosen, make_plan(controller, against, space, chosen)


def find(  # noqa: PLR0913
    controller: Spec,
    *,
    against: Spec | None,
    bounds: BoundsLike,
    objective: str | Sequence[str],
    budget: str,
    findings: int,
    seed: int,
    out: str | Path | None,
    dask: str | Client | None = None,
    progress: Callable[[float], None] | None = None,
    confirm: str | None = None,
    own_seeds: bool = False,
    explorer: Explorer = explore,
) -> Search:
    """Search; controls have another explorer, or other seeds of the reference (``own_seeds``)."""
    if confirm is not None:
        check_confirmation(confirm)
    given = Budget(budget)
    if not isinstance(findings, int) or findings < 1:
        raise ArgumentError("findings", f"{findings!r} is not a whole number above 0")
    check_search_seed(seed)
    space, chosen, plan = plan_search(controller, against, bounds, objective)
    name = str(plan.controllers[0])
    other = CAPACITY if against == CAPACITY else str(plan.controllers[-1])
    home = Path(mkdtemp(prefix="cwnd-search-")) if out is None else Path(out)
    _check_home(home, plan)
    with Archive(plan, home, dask) as archive:
        judge = Judge(archive, name, other, own_seeds=own_seeds)
        given.start(lambda: archive.spent)
        found = hunt(
            judge,
            space,
            chosen,
            given,
            seed=seed,
            most=findings,
            names=(name, other),
            explorer=explorer,
            progress=progress,
        )
        runs = archive.spent
    if not found[0].networks:
        raise ArgumentError("budget", f"{budget} is too little for one network")
    explored = [
        (space.named(values), {one.name: samples.size(one) for one in chosen})
        for values, samples in {k: v for of in found for k, v in of.networks.items()}.items()
    ]
    every = [finding for of in found for finding in of.findings]
    every.sort(key=lambda one: (-one.size.mean, one.sentence))
    confirmed = tuple(one for one in every if one.verdict == "confirmed")
    if confirm is not None:
        confirmed = tuple(replace(one, confirmation=run_finding(plan, one)) for one in confirmed)
    result = Search(
        controller=name,
        against=other,
        findings=confirmed,
        rejected=tuple(one for one in every if one.verdict != "confirmed"),
        front=_front([sizes for _, sizes in explored]) if len(chosen) > 1 else (),
        runs=runs,
        out=home,
        files=_write(confirmed, home, plan.factories),
        space=space,
        plan=plan,
        explored=tuple(explored),
    )
    if progress is not None:
        progress(1.0)
    return result


def check_search_seed(seed: int) -> None:
    """Raise an ArgumentError for a seed that a search cannot have."""
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ArgumentError("seed", f"{seed!r} is not a whole number from 0 to 2^32 - 1")


def hunt(  # noqa: PLR0913
    judge: Judge,
    space: Space,
    objectives: Sequence[Objective],
    budget: Budget,
    *,
    seed: int,
    most: int,
    names: tuple[str, str],
    explorer: Explorer = explore,
    progress: Callable[[float], None] | None = None,
) -> list[Hunt]:
    """Search for at most ``most`` weaknesses under each objective; the budget has been started.

    ``names`` are those of the controller and of the reference.
    """
    return [
        Hunt(
            judge,
            space,
            objectives,
            number,
            budget,
            seed=seed,
            most=most,
            names=names,
            explorer=explorer,
            progress=progress,
        ).run()
        for number in range(len(objectives))
    ]


def _check_home(home: Path, plan: SearchPlan) -> None:
    """Raise an error for files in a directory that a search would replace and that none wrote."""
    if list_parts(home):
        return
    others = [*home.glob("worst-*.toml"), *home.glob("index.html")]
    others += [file for file in home.glob(PLAN) if file.read_bytes() != plan.text.encode()]
    if others:
        raise ArgumentError("out", f"no search wrote {others[0]}: choose another directory")


def _write(
    findings: Sequence[Finding], home: Path, factories: Mapping[str, Factory]
) -> tuple[Path, ...]:
    """Write a scenario file for each finding, in place of those of an earlier call."""
    for old in home.glob("worst-*.toml"):
        old.unlink()
    files = []
    for number, one in enumerate(findings, 1):
        title = f"{one.controller} beside {one.against}: {one.objective.meaning}"
        file = home / f"worst-{number}.toml"
        write_text(file, one.to_toml(title, home, factories))
        files.append(file)
    return tuple(files)


class Hunt:
    """The search for weaknesses under one of the objectives, in its share of the budget."""

    def __init__(  # noqa: PLR0913
        self,
        judge: Judge,
        space: Space,
        objectives: Sequence[Objective],
        number: int,
        budget: Budget,
        *,
        seed: int,
        most: int,
        names: tuple[str, str],
        explorer: Explorer,
        progress: Callable[[float], None] | None,
    ) -> None:
        self._judge, self._objectives = judge, objectives
        self._objective = objectives[number]
        self._space = space.requiring(self._objective.needs, self._objective.name)
        self._budget, self._seed, self._most = budget, seed, most
        self._start, self._end = number / len(objectives), (number + 1) / len(objectives)
        self._names, self._explorer = names, explorer
        self._progress = progress
        self._first = SEEDS_OF_SEARCH * seed
        self._repeats = 0
        """Number of evaluations in a row without a new network."""
        self.networks: dict[Values, Samples] = {}
        self.findings: list[Finding] = []

    def run(self) -> Hunt:
        """Explore, and then reduce and confirm the worst networks."""
        self._explorer(
            self._evaluate,
            len(self._space.parameters),
            lambda until, most: self._room(until, 1, most),
            self._seed,
        )
        rejected: list[Values] = []
        for values in self._suspects():
            if len(self.confirmed) >= self._most or not self._room(1.0, 4, 1):
                break
            if any(self._explains(one, values) for one in self.confirmed):
                continue
            if any(self._space.distance(values, other) < NEAR for other in rejected):
                continue
            finding = self._follow(values)
            if any(self._same(one, finding) for one in self.findings):
                rejected.append(values)
                continue
            self.findings.append(finding)
            if finding.verdict != "confirmed":
                rejected.append(values)
        return self

    def _room(self, until: float, seeds: int, most: int) -> int:
        """Return how many networks fit into the part of the budget until a fraction of it."""
        if self._progress is not None:
            self._progress(min(self._budget.used, 1.0))
        until = self._start + (self._end - self._start) * until
        return self._budget.room(until, seeds * self._judge.runs_of_network, most)

    def _evaluate(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sizes of the weaknesses of points, each measured with the first seed."""
        networks = [self._space.values(np.clip(point, 0, 1)) for point in points]
        found = self._judge.measure(networks, [self._first], self._objectives)
        known = len(self.networks)
        for values, samples in zip(networks, found, strict=True):
            self.networks.setdefault(values, samples)
        # The first points of differential evolution are the best ones of the sequence.
        self._repeats = self._repeats + 1 if len(self.networks) == known else 0
        if self._repeats > 1:
            raise Spent
        return np.array([samples.size(self._objective) for samples in found])

    def _suspects(self) -> list[Values]:
        """Return the networks that miss the thresholds in their single run, worst first."""
        found = [
            values
            for values, samples in self.networks.items()
            if self._objective.misses(*(of[0] for of in samples.values[self._objective.name]))
        ]
        return sorted(found, key=lambda values: -self.networks[values].size(self._objective))

    def _follow(self, values: Values) -> Finding:
        """Confirm a network with fresh seeds, after a reduction if other seeds fail the test."""
        for numbers in REDUCE_SEEDS:
            seeds = [self._first + number for number in numbers]
            [samples] = self._judge.measure([values], seeds, [self._objective])
            grade = samples.judge(self._objective)[0]
            if grade != "undecided":
                break
        if grade != "fails":
            # Seeds that meet the test decide.
            numbers = numbers if grade == "meets" else CONFIRM_SEEDS
            return self._finding(values, {}, numbers, reduced=False)
        size = samples.size(self._objective)
        # Runs are left for the confirmation.
        confirming = len(CONFIRM_SEEDS) * self._judge.runs_of_network
        end = 1.0
        if self._budget.runs:
            end -= confirming / (self._budget.runs * (self._end - self._start))
        reducer = Reducer(
            self._judge,
            self._space,
            self._objective,
            seeds,
            lambda most: self._room(end, len(seeds), most),
        )
        reduced = reducer.reduce(values, size)
        complete = reducer.complete
        return self._finding(reduced, reducer.sensitivity(reduced), CONFIRM_SEEDS, reduced=complete)

    def _finding(
        self,
        values: Values,
        sensitivity: Mapping[str, tuple[float | None, float | None]],
        numbers: Iterable[int],
        *,
        reduced: bool,
    ) -> Finding:
        """Judge a network with some seeds."""
        seeds = tuple(self._first + number for number in numbers)
        [samples] = self._judge.measure([values], seeds, [self._objective])
        grade, measured = samples.judge(self._objective)
        size = estimate(samples.sizes(self._objective))
        special = tuple(
            name
            for name, value in self._space.named(values).items()
            if value != PARAMETERS[name].default
            or any(
                side is not None and side < KEPT * size.mean for side in sensitivity.get(name, ())
            )
        )
        return Finding(
            objective=self._objective,
            verdict=verdict_of(grade),
            controller=self._names[0],
            against=self._names[1],
            network=self._space.named(values),
            reduced=reduced,
            size=size,
            measured=measured,
            seeds=seeds,
            values=samples.values[self._objective.name],
            sensitivity=sensitivity,
            errors=samples.errors,
            special=special,
        )

    @property
    def confirmed(self) -> list[Finding]:
        """The confirmed weaknesses."""
        return [one for one in self.findings if one.verdict == "confirmed"]

    def _explains(self, finding: Finding, values: Values) -> bool:
        """Test whether a network has all that a finding needs, near to its values."""
        for name in finding.special:
            parameter = self._space[name]
            value = values[self._space.names.index(name)]
            if value is None:
                return False
            if abs(parameter.place(value) - parameter.place(finding.network[name])) > NEAR:
                return False
        return True

    def _same(self, one: Finding, other: Finding) -> bool:
        """Test whether two findings need the same, with near values."""
        values = tuple(other.network.get(name) for name in self._space.names)
        return {*one.special} == {*other.special} and self._explains(one, values)


def _front(explored: Sequence[Mapping[str, float]]) -> tuple[Mapping[str, float], ...]:
    """Return the sizes of the networks that no other network exceeds under all objectives."""
    sizes = np.array([[*one.values()] for one in explored])
    found = [
        row for row in sizes if not ((sizes >= row).all(axis=1) & (sizes > row).any(axis=1)).any()
    ]
    unique = {tuple(row.tolist()) for row in found if math.isfinite(row.sum())}
    return tuple(dict(zip(explored[0], row, strict=True)) for row in sorted(unique))
