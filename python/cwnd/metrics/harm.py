"""Harm of one controller to another, and the worst of several flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd import _native

if TYPE_CHECKING:
    import numpy.typing as npt


def harm(alone: float, beside: float, *, more_is_better: bool) -> float:
    """Harm to a flow by its competitors (Ware et al., HotNets 2019, doi 10.1145/3365609.3365855).

    With x for the performance without them and y for that beside them, harm is (x - y) / x for a
    metric of which more is better, such as goodput, and (y - x) / y for one of which less is
    better, such as delay, loss and completion time.

    Parameters
    ----------
    alone
        The metric without the competitors, or beside flows of the same controller.
    beside
        The metric beside the competitors.
    more_is_better
        Whether a higher value is better.

    Returns
    -------
    float
        0 for no harm, 1 for the greatest; below 0 if the competitors improve the metric. NaN if
        only the better of both values is 0.

    Examples
    --------
    >>> harm(10e6, 4e6, more_is_better=True), harm(0.02, 0.08, more_is_better=False)
    (0.6, 0.75)
    """
    return _native.harm(alone, beside, more_is_better)


def worst(values: npt.ArrayLike, *, more_is_better: bool) -> float:
    """Worst value among flows: the lowest goodput, or the highest completion time.

    Parameters
    ----------
    values
        The metric of each flow.
    more_is_better
        Whether a higher value is better.

    Returns
    -------
    float
        NaN without flows, or if a value is unknown.

    Examples
    --------
    >>> worst([3e6, 1e6, 2e6], more_is_better=True), worst([0.2, 1.5], more_is_better=False)
    (1000000.0, 1.5)
    """
    return _native.extreme(values, not more_is_better)
