"""Harm of one controller to another, and the worst of several flows."""

from __future__ import annotations

import math

import numpy as np
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
    lost, whole = (alone - beside, alone) if more_is_better else (beside - alone, beside)
    if lost == 0:
        return 0.0
    return lost / whole if whole > 0 else math.nan


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
    x = np.asarray(values, dtype=float)
    if not x.size:
        return math.nan
    return float(x.min() if more_is_better else x.max())
