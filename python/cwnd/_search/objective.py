"""Objectives of a search: a metric, and the test of the report card whose thresholds judge it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from cwnd._experiments.bound import Measured, judge
from cwnd._experiments.experiment import experiments
from cwnd._search.networks import CANDIDATE, DURATION_S, OTHERS, RECOVERED_S, SHORT
from cwnd.errors import ArgumentError, read_list
from cwnd.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd._experiments.bound import Grade
    from cwnd._experiments.experiment import Test

CAPACITY = "capacity"
"""The reference that uses all of the capacity."""

FAILED_SIZE = 10.0
"""Largest size of a weakness, which a failed run has."""


@dataclass(frozen=True)
class Objective:
    """What is worse under a controller than under the reference on the same network."""

    name: str
    meaning: str
    metric: str
    """Name of the metric, as in ``[expect]``."""
    test_id: str
    """Test of the report card whose thresholds decide whether a network is a weakness."""
    floor: float
    """Added to both values, so that differences of small values have little weight."""
    needs: tuple[str, ...] = ()
    """Parameters that the networks must have."""

    @cached_property
    def test(self) -> Test:
        """The test of the report card."""
        return experiments("all", [self.test_id])[0].tests[0]

    @cached_property
    def more_is_better(self) -> bool:
        """Whether larger values of the metric are better."""
        return self.test.meets[0].operator in (">=", ">")

    def size(self, value: float, base: float) -> float:
        """Return the size of the weakness in one run: the base-2 logarithm of the ratio.

        It is 0 if the controller is as good as the reference, or if the reference has no value.

        Examples
        --------
        >>> round(OBJECTIVES["goodput"].size(1e6, 4e6), 1)
        2.0
        >>> OBJECTIVES["loss"].size(float("nan"), 0.01)
        10.0
        """
        if not math.isfinite(base):
            return 0.0
        if not math.isfinite(value):
            return FAILED_SIZE
        ratio = math.log2((value + self.floor) / (base + self.floor))
        return min(max(-ratio if self.more_is_better else ratio, -FAILED_SIZE), FAILED_SIZE)

    def misses(self, value: float, base: float) -> bool:
        """Test whether a single run misses the thresholds, or failed where the reference did not.

        Examples
        --------
        >>> OBJECTIVES["goodput"].misses(1e6, 4e6), OBJECTIVES["loss"].misses(0.04, 0.001)
        (True, False)
        """
        if not math.isfinite(base) or not math.isfinite(value):
            return math.isfinite(base)
        exact = [Estimate(one, one, one, 1) for one in (value, base, _ratio(value, base))]
        return all(bound.holds(Measured(*exact)) for bound in self.test.fails)

    def judge(self, values: Sequence[float], base: Sequence[float]) -> tuple[Grade, Measured]:
        """Grade runs paired by seed; undecided if the reference has no value."""
        dimension = self.test.metric.measure.dimension
        grade, measured = judge(self.test.meets, self.test.fails, values, base, dimension)
        if not any(map(math.isfinite, base)):
            return "undecided", measured
        return grade, measured


def _ratio(value: float, base: float) -> float:
    """Divide; the ratio of two zeros is 1."""
    if base == 0:
        return 1.0 if value == 0 else math.inf
    return value / base


_ALL = (
    Objective(
        "goodput",
        "goodput of the controller",
        f"goodput.{CANDIDATE}",
        "random-loss-goodput",
        10e3,
    ),
    Objective(
        "delay",
        "95th percentile of the queueing delay",
        "queue_delay.p95",
        "harm-delay-cubic",
        0.01,
    ),
    Objective("loss", "loss at the bottleneck", "loss_rate", "high-loss", 0.01),
    Objective(
        "recovery",
        "goodput after a fall of the rate, a change of the round-trip time or an outage",
        f"goodput.{CANDIDATE}@{RECOVERED_S}s..{DURATION_S}s",
        "random-loss-goodput",
        10e3,
    ),
    Objective(
        "share",
        "goodput beside other flows",
        f"goodput.{CANDIDATE}",
        "random-loss-goodput",
        10e3,
        ("others",),
    ),
    Objective(
        "harm", "goodput of the other flows", f"goodput.{OTHERS}", "harm-cubic", 10e3, ("others",)
    ),
    Objective(
        "starvation",
        "largest goodput of the controller's flows over the smallest",
        f"rate_ratio.{CANDIDATE}",
        "jitter",
        0.0,
        ("flows",),
    ),
    Objective(
        "completion",
        "95th percentile of the completion time of short transfers",
        f"fct.p95.{SHORT}",
        "short-tail",
        0.05,
        ("short",),
    ),
)

OBJECTIVES = {one.name: one for one in _ALL}
"""Objectives beside a reference, by name."""

UTILIZATION = Objective(
    "utilization", "utilisation of the bottleneck", "utilization", "tail-drop", 0.01
)
"""The objective of a search against the capacity."""


def read_objectives(names: str | Iterable[str], against: str) -> tuple[Objective, ...]:
    """Return objectives by name; against the capacity there is one.

    Examples
    --------
    >>> [one.name for one in read_objectives("goodput", "capacity")]
    ['utilization']
    """
    wanted = tuple(
        dict.fromkeys([names] if isinstance(names, str) else read_list("objective", names))
    )
    for name in wanted:
        if name not in OBJECTIVES:
            raise ArgumentError("objective", f"{name!r} is not one of {', '.join(OBJECTIVES)}")
    if not wanted:
        raise ArgumentError("objective", "name at least one objective")
    if against == CAPACITY:
        if wanted != ("goodput",):
            raise ArgumentError("objective", "against the capacity the objective is goodput")
        return (UTILIZATION,)
    return tuple(OBJECTIVES[name] for name in wanted)
