"""Runs of one scenario with several seeds: means with 95 % intervals of all figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cwnd import _show
from cwnd._base.files import write_text
from cwnd._base.progress import with_notebook_bar
from cwnd._runs.defaults import BACKEND
from cwnd._runs.flow_groups import group_flows
from cwnd._runs.goodput_limit import goodput_limit, range_within
from cwnd._runs.result import jsonable
from cwnd._runs.run import check_seed, measure, read_run, run_command
from cwnd.errors import ArgumentError
from cwnd.stats import UNIT, Estimate, estimate
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cwnd._base.records import JsonObject
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario

Leaf: TypeAlias = Callable[[str, list[float], float], object]

_CONSTANT = {
    *("delay_s", "duration_s", "high_bytes", "low_bytes", "queue_limit", "rate_bps", "scale_s"),
    *("token_rate_bps", "warmup_s", "window_s"),
}
"""Numbers of the scenario, which no seed changes."""


@dataclass(frozen=True, repr=False)
class Repeated:
    """Runs of one scenario, with one seed each.

    Attributes
    ----------
    results
        The runs, in the order of their seeds.
    rerun
        The command that repeats the runs; empty for a scenario without a file.
    """

    results: list[Result]
    rerun: str

    def __repr__(self) -> str:
        first = self.results[0]
        return f"<{counted(len(self.results), 'run')} of {first.scenario!r} on {first.on}>"

    def estimates(self) -> JsonObject:
        """Return ``Result.to_json`` with an estimate for each figure, and ``groups``.

        Flows and links are those of any seed, by name; a figure is estimated over the seeds that
        have it. The flows of groups are left out.

        Returns
        -------
        dict
            The figures, each a `cwnd.stats.Estimate`.
        """
        return self._merged(_estimate)

    def to_json(self) -> JsonObject:
        """Return the same as plain data: mean, interval and the value of each seed."""
        merged = self._merged(_plain)
        seeds = [run.seed for run in self.results]
        return {**merged, "seeds": seeds, "rerun": self.rerun}

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page with tables of means, and a plot of each run.

        Parameters
        ----------
        path
            The file to write.
        """
        write_text(path, _show.report.run.repeated_page(self))

    def _merged(self, leaf: Leaf) -> JsonObject:
        documents: list[JsonObject] = []
        limits: dict[object, float] = {}
        for run in self.results:
            document = run.to_json_without_groups()
            # The cost of a run is no figure of the network.
            del document["seed"], document["engine"]
            documents.append(document | {"groups": run.group_rows()})
            flows = {flow["name"]: [flow] for flow in run.record["flows"]}
            for name, found in (flows | group_flows(run.record["flows"]).groups).items():
                limits[name] = goodput_limit(run, found)
        limit = goodput_limit(self.results[0], self.results[0].measured_flows)
        merged: JsonObject = _merge(documents, leaf, limits, limit)
        return merged


@with_notebook_bar
def run_repeated(
    scenario: Scenario | str | Path,
    repeat: int,
    seed: int | None = None,
    *,
    on: str = BACKEND,
    values: Mapping[str, object] | None = None,
    lookahead: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Repeated:
    """Run one scenario with several seeds.

    Parameters
    ----------
    scenario
        A scenario, the path of a scenario file, or the name of a packaged one (`cwnd scenarios`).
    repeat
        Number of runs, with the seeds ``seed``, ``seed + 1`` and so on.
    seed
        The first seed; the scenario's by default.
    on, values, lookahead
        As for `cwnd.run`.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    Repeated
        The runs, and the means of their figures with 95 % intervals.

    Raises
    ------
    ScenarioError
        The scenario is invalid; the message names the file, the line and the key.
    ArgumentError
        An argument is invalid.
    KernelError
        This machine or user cannot run scenarios in real time.

    Examples
    --------
    >>> import cwnd
    >>> scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="5s")
    >>> runs = cwnd.run_repeated(scenario.add_flow("reno", count=2), repeat=3)
    >>> jain = runs.estimates()["metrics"]["jain"]
    >>> jain.n, jain.low <= jain.mean <= jain.high
    (3, True)
    """
    if repeat < 1:
        raise ArgumentError("repeat", f"{repeat} is not a whole number above 0")
    if not lookahead and on != "sim":
        raise ArgumentError("lookahead", "only the backend sim has lookahead")
    values = values or {}
    path, scenario = read_run(scenario, values)
    seed = scenario.seed if seed is None else seed
    check_seed(seed, repeat)
    jobs = [(scenario, seed + i) for i in range(repeat)]
    results = measure(jobs, lambda _, run: run, on=on, lookahead=lookahead, progress=progress)
    return Repeated(results, "" if path is None else run_command(path, values, seed, on, repeat))


def _merge(
    documents: Sequence[Any],
    leaf: Leaf,
    limits: Mapping[object, float],
    limit: float,
    name: str = "",
) -> Any:  # noqa: ANN401
    """Merge documents of one structure.

    ``leaf`` gets the name of a figure, its values and the largest goodput: that of a flow or a
    group in ``limits``, and otherwise ``limit``.
    """
    known = [document for document in documents if document is not None]
    if not known:
        return None
    first = known[0]
    if isinstance(first, dict):
        keys = dict.fromkeys(key for document in known for key in document)
        below = _mean if name == "limited" else leaf
        return {
            key: _merge([each.get(key) for each in known], below, limits, limit, key)
            for key in keys
        }
    if isinstance(first, list):
        members: dict[object, list[Any]] = {}
        for document in known:
            for i, each in enumerate(document):
                label = each.get("name", each.get("low_bytes", i)) if isinstance(each, dict) else i
                members.setdefault(label, []).append(each)
        return [
            _merge(each, leaf, limits, limits.get(label, limit), name)
            for label, each in members.items()
        ]
    if name in _CONSTANT or isinstance(first, str | bool):
        return first
    return leaf(name, [math.nan if each is None else float(each) for each in documents], limit)


def _estimate(name: str, values: list[float], limit: float) -> Estimate:
    """Estimate the mean of a figure."""
    # Jain's index in the worst window.
    return estimate(values, UNIT if name == "worst" else range_within(name, limit))


def _plain(name: str, values: list[float], limit: float) -> JsonObject:
    """Return the estimate of a figure, and its values, as plain data."""
    return jsonable(_estimate(name, values, limit).to_json() | {"values": values})


def _mean(_: str, values: list[float], __: float) -> object:
    """Return the mean: of the times that are shown in proportion to each other."""
    return float(np.mean(values))
