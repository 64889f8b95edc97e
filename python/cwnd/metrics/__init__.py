"""Metrics of RFC 5166 and of the papers, one function on plain arrays each.

Rates are in bits per second, times in seconds, windows in packets. A metric without data (no
packets, no time) is NaN.
"""

from cwnd.metrics.harm import harm, worst
from cwnd.metrics.network import (
    Array,
    Delay,
    alpha_fairness,
    binned_rate,
    coefficient_of_variation,
    convergence_time,
    efficiency_index,
    fairness_index,
    friendliness,
    goodput,
    jain,
    loss_rate,
    mark_rate,
    queue_delay,
    range_of,
    responsiveness,
    retransmission_rate,
    smoothness,
    stability_index,
    throughput,
    utilization,
)
from cwnd.metrics.transfers import (
    SizeClass,
    Spread,
    by_size,
    completion_time,
    ideal_completion_time,
    offered_rate,
    slowdown,
    spread,
)
from cwnd.metrics.windows import JainSeries, jain_over_time

__all__ = [
    "Array",
    "Delay",
    "JainSeries",
    "SizeClass",
    "Spread",
    "alpha_fairness",
    "binned_rate",
    "by_size",
    "coefficient_of_variation",
    "completion_time",
    "convergence_time",
    "efficiency_index",
    "fairness_index",
    "friendliness",
    "goodput",
    "harm",
    "ideal_completion_time",
    "jain",
    "jain_over_time",
    "loss_rate",
    "mark_rate",
    "offered_rate",
    "queue_delay",
    "range_of",
    "responsiveness",
    "retransmission_rate",
    "slowdown",
    "smoothness",
    "spread",
    "stability_index",
    "throughput",
    "utilization",
    "worst",
]
