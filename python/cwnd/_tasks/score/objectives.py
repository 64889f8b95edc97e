"""The score: objectives of a run, the score of a network, and that of several networks.

Each objective is in [0, 1] and grows with what it is about; the score of a network is their
weighted geometric mean, and the combined score the mean over the networks. It is therefore in
[0, 1] and does not fall when an objective rises. docs/score.md describes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd._tasks.score.measure import Facts

HALF_LOSS = 0.01
"""Part of dropped packets at which the objective ``loss`` is a half."""


def objectives(found: Facts) -> dict[str, float]:
    """Return the objectives of a run by name; ``fairness`` only if flows share the link.

    Beside the flow of another controller each of the two has a right to half of the capacity.
    """
    fair = found.capacity_bps if found.other_bps is None else found.capacity_bps / 2
    each = {
        "goodput": min(1.0, found.goodput_bps / fair),
        "delay": found.base_rtt_s / (found.base_rtt_s + found.queue_delay_s),
        "loss": HALF_LOSS / (HALF_LOSS + found.dropped),
    }
    if found.other_bps is not None:
        each["fairness"] = min(1.0, found.other_bps / fair)
    elif found.flows > 1:
        each["fairness"] = found.jain
    return each


def score_network(each: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the weighted geometric mean of objectives.

    Examples
    --------
    >>> score_network({"goodput": 0.25, "delay": 1.0}, {"goodput": 1, "delay": 1, "loss": 5})
    0.5
    """
    total = sum(weights[name] for name in each)
    product = 1.0
    for name, value in each.items():
        product *= value ** (weights[name] / total)
    return product


def combined(scores: Sequence[float]) -> float:
    """Return the mean of the scores of networks; one without a result counts 0."""
    return sum(scores) / len(scores)
