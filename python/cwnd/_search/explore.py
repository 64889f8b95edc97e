"""Global and then local search of the unit cube for the largest weakness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable

Array: TypeAlias = "npt.NDArray[np.float64]"

CHUNK = 32
"""Points of Sobol's sequence that are evaluated together."""

POPULATION = 32
"""Members of the population of differential evolution."""


class Spent(Exception):  # noqa: N818
    """The budget of a phase is used up."""


def sample(
    evaluate: Callable[[Array], Array], dimensions: int, room: Callable[[int], int], seed: int
) -> None:
    """Evaluate points of Sobol's sequence while there is room."""
    from scipy.stats import qmc

    points = qmc.Sobol(dimensions, scramble=True, seed=np.random.default_rng(seed))
    while size := room(CHUNK):
        # Whole chunks are drawn, so that the sequence keeps its balance.
        evaluate(np.asarray(points.random(CHUNK))[:size])


def refine(
    evaluate: Callable[[Array], Array],
    start: Array,
    room: Callable[[int], int],
    seed: int,
) -> None:
    """Improve points by differential evolution while there is room.

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
    try:
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
    except Spent:
        return
