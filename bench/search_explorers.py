"""What other optimisers find in the controls of a search, with the same budgets in runs.

It needs ``pip install cmaes ribs``. A word on the command line selects controls by name. Each
search continues with the runs of those before it, and counts them as its own.
"""

from __future__ import annotations

import sys
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from search_controls import FOUND, SEEDS

from cwnd._search.archive import Archive, Judge
from cwnd._search.explore import EXPLORED, SAMPLED, Spent, explore, sample
from cwnd._search.objective import OBJECTIVES
from cwnd._search.search import SEEDS_OF_SEARCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from search_controls import Control

    from cwnd._search.explore import Array, Explorer
    from cwnd._search.search import Search
    from cwnd._search.space import Values

    Evaluate = Callable[[Array], Array]


CELLS = 128
"""Cells of the map of CMA-ME, around points of Sobol's sequence."""


def evolve(
    evaluate: Evaluate, points: Array, sizes: Array, room: Callable[[int], int], seed: int
) -> None:
    """Improve the best point with CMA-ES, and the next best one when it has converged."""
    from cmaes import CMA

    unit = np.array([[0.0, 1.0]] * points.shape[1])
    for number, start in enumerate(points[np.argsort(-sizes, kind="stable")]):
        strategy = CMA(mean=start, sigma=0.2, bounds=unit, seed=seed + number)
        while not strategy.should_stop():
            asked = np.array([strategy.ask() for _ in range(strategy.population_size)])
            if room(len(asked)) < len(asked):
                return
            strategy.tell([*zip(asked, -evaluate(asked), strict=True)])


def illuminate(
    evaluate: Evaluate, points: Array, sizes: Array, room: Callable[[int], int], seed: int
) -> None:
    """Fill a map of the unit cube with CMA-ME: an improvement of any of its cells counts."""
    from ribs.archives import CVTArchive
    from ribs.emitters import EvolutionStrategyEmitter
    from ribs.schedulers import Scheduler
    from scipy.stats import qmc

    dimensions = points.shape[1]
    centers = qmc.Sobol(dimensions, seed=np.random.default_rng(seed)).random(CELLS)
    cells = CVTArchive(
        solution_dim=dimensions, centroids=centers, ranges=[(0, 1)] * dimensions, seed=seed
    )
    cells.add(points, sizes, points)
    best = points[np.argsort(-sizes, kind="stable")]
    emitters = [
        EvolutionStrategyEmitter(cells, x0=start, sigma0=0.2, ranker="2imp", seed=seed + number)
        for number, start in enumerate(best[:2])
    ]
    scheduler = Scheduler(cells, emitters)
    while True:
        # The strategy has no bounds: it would draw until all numbers of a point are inside.
        asked = np.clip(scheduler.ask(), 0, 1)
        if room(len(asked)) < len(asked):
            return
        scheduler.tell(evaluate(asked), asked)


def sobol(
    evaluate: Evaluate, dimensions: int, room: Callable[[float, int], int], seed: int
) -> None:
    """Evaluate points of Sobol's sequence only."""
    try:
        sample(evaluate, dimensions, partial(room, EXPLORED), seed)
    except Spent:
        return


def after_sampling(improve: Callable[..., None]) -> Explorer:
    """Return an explorer that samples as a search does, and then improves."""

    def explorer(
        evaluate: Evaluate, dimensions: int, room: Callable[[float, int], int], seed: int
    ) -> None:
        try:
            points, sizes = sample(evaluate, dimensions, partial(room, SAMPLED), seed)
            improve(evaluate, points, sizes, partial(room, EXPLORED), seed)
        except Spent:
            return

    return explorer


EXPLORERS: dict[str, Explorer] = {
    "sobol": sobol,
    "de": explore,
    "cmaes": after_sampling(evolve),
    "ribs": after_sampling(illuminate),
}


def look(control: Control, found: Search, seed: int) -> tuple[int | None, int]:
    """Return the explored runs until a network with the known fault, and the number of suspects.

    A suspect misses the thresholds; with the known fault it meets them without its parameters.
    """
    space = found.space
    [name] = found.explored[0][1]
    objective = OBJECTIVES[name]
    hit, suspects = None, 0
    with Archive(found.plan, found.out) as archive:
        judge = Judge(archive, found.controller, found.against)

        def misses(values: Values) -> bool:
            [one] = judge.measure([values], [SEEDS_OF_SEARCH * seed], [objective])
            return objective.misses(*(of[0] for of in one.values[name]))

        for number, (named, _) in enumerate(found.explored, 1):
            values = tuple(named.get(one) for one in space.names)
            if not misses(values):
                continue
            suspects += 1
            if hit is None and control.inside(named):
                without = values
                for one in control.needs:
                    without = space.with_value(without, one, None)
                if not control.needs or not misses(without):
                    hit = number * judge.runs_of_network
    return hit, suspects


def main(words: list[str]) -> int:
    """Print a line for each control and explorer, with a number for each seed."""
    for control in FOUND:
        if words and not any(word in control.name for word in words):
            continue
        rows: dict[str, list[tuple[int | None, int, bool, int]]] = {name: [] for name in EXPLORERS}
        for seed in SEEDS:
            with TemporaryDirectory() as out:
                for name, explorer in EXPLORERS.items():
                    found = control.run(seed, out, explorer=explorer)
                    row = (*look(control, found, seed), control.holds(found), len(found.findings))
                    rows[name].append(row)
                    print(control.name, seed, name, row, file=sys.stderr, flush=True)
        for name, row in rows.items():
            hits, suspects, held, findings = zip(*row, strict=True)
            print(
                f"{control.name}, {name}: found {sum(held)} of {len(held)}; first after {hits} "
                f"runs; {suspects} suspects; {findings} findings",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
