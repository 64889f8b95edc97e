"""The largest goodput that a network allows, which bounds the intervals of goodputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from cwnd import metrics
from cwnd._runs.flow_completion import capacity_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import FlowRecord
    from cwnd._runs.result import Result
    from cwnd.stats import Range

_GOODPUTS = ("goodput_bps", "reference_goodput_bps", "worst_goodput_bps")


def goodput_limit(run: Result, flows: Sequence[FlowRecord]) -> float:
    """Return the rate that the goodput of some flows of a run does not exceed, in bit/s.

    It is the lowest constant rate of the links that all of them cross, or infinite.
    """
    crossed = [set(flow["path"]) for flow in flows]
    links = [run.record["links"][at] for at in set.intersection(*crossed)] if crossed else []
    return min((link["rate_bps"] for link in links if capacity_of(link) is None), default=math.inf)


def range_within(name: str, limit: float) -> Range:
    """Return the range of a figure of a run; goodputs are at most ``limit``.

    Examples
    --------
    >>> range_within("goodput_bps", 1e7).high, range_within("jain", 1e7).high
    (10000000.0, 1.0)
    """
    within = metrics.range_of(name)
    return replace(within, high=limit) if name in _GOODPUTS else within
