"""Global and then local search of the unit cube for the largest weakness."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable

Array: TypeAlias = "npt.NDArray[np.float64]"

CHUNK = 32
"""Points of Sobol's sequence that are evaluated together."""

POPULATION = 32
"""Members of the population of differential evolution."""


SAMPLED, EXPLORED = 0.45, 0.6
"""Fractions of the budget of an objective after which sampling and exploration end."""


class Spent(Exception):  # noqa: N818
    """The budget of a phase is used up, or no network is new."""


class Explorer(Protocol):
    """Chooses the networks of a search in its share of the budget."""

    def __call__(
        self,
        evaluate: Callable[[Array], Array],
        dimensions: int,
        room: Callable[[float, int], int],
        seed: int,
    ) -> None:
        """Evaluate points of the unit cube.

        ``evaluate`` returns the sizes of the weaknesses of points, or raises `Spent` if no network
        is new. ``room`` returns how many points fit into a fraction of the budget, at most a given
        number.
        """


def explore(
    evaluate: Callable[[Array], Array],
    dimensions: int,
    room: Callable[[float, int], int],
    seed: int,
) -> None:
    """Evaluate points of Sobol's sequence, and then improve the best ones."""
    try:
        points, sizes = sample(evaluate, dimensions, partial(room, SAMPLED), seed)
        best = np.argsort(-sizes, kind="stable")[:POPULATION]
        refine(evaluate, points[best], partial(room, EXPLORED), seed)
    except Spent:
        return


def sample(
    evaluate: Callable[[Array], Array], dimensions: int, room: Callable[[int], int], seed: int
) -> tuple[Array, Array]:
    """Evaluate points of Sobol's sequence while there is room; return them and their sizes."""
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimensions, scramble=True, seed=np.random.default_rng(seed))
    points, sizes = [np.empty((0, dimensions))], [np.empty(0)]
    drawn = points[0]
    while size := room(CHUNK):
        # Whole chunks are drawn, so that the sequence keeps its balance.
        drawn = drawn if len(drawn) else np.asarray(sequence.random(CHUNK))
        points.append(drawn[:size])
        drawn = drawn[size:]
        sizes.append(evaluate(points[-1]))
    return np.concatenate(points), np.concatenate(sizes)


def refine(
    evaluate: Callable[[Array], Array],
    start: Array,
    room: Callable[[int], int],
    seed: int,
) -> None:
    """Improve points by differential evolution until the budget of the phase is used up.

    ``start`` has the best points so far; ``evaluate`` returns sizes, which are maximised.
    """
    from scipy.optimize import Bounds, differential_evolution

    def negative(columns: Any, /) -> Any:  # noqa: ANN401
        points = np.atleast_2d(columns.T)
        size = room(len(points))
        if size < len(points):
            raise Spent
        return -evaluate(points)

    if len(start) < 5:
        return
    differential_evolution(
        negative,
        Bounds(np.zeros(start.shape[1]), np.ones(start.shape[1])),
        strategy="rand1bin",
        init=start,
        mutation=(0.4, 0.9),
        recombination=0.7,
        maxiter=10**6,
        tol=0.0,
        atol=0.0,
        polish=False,
        updating="deferred",
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
