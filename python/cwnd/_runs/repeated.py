"""Runs of one scenario with several seeds: means with 95 % intervals of all figures."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cwnd import metrics
from cwnd._runs.result import jsonable
from cwnd._runs.run import check_seed, measure
from cwnd._runs.scenario_keys import write_values
from cwnd.errors import ArgumentError
from cwnd.stats import UNIT, Estimate, estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from cwnd._base.records import JsonObject
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario

_CONSTANT = {
    *("delay_s", "duration_s", "high_bytes", "low_bytes", "queue_limit", "rate_bps", "scale_s"),
    *("token_rate_bps", "warmup_s", "window_s"),
}
"""Numbers of the scenario, which no seed changes."""


@dataclass(frozen=True)
class Repeated:
    """Runs of one scenario, with one seed each."""

    results: list[Result]
    rerun: str
    """The command that repeats the runs."""

    def estimates(self) -> JsonObject:
        """Return ``Result.to_json`` with an estimate for each figure, and ``groups``.

        Flows and links are those of any seed, by name; a figure is estimated over the seeds that
        have it. The flows of groups are left out.
        """
        merged: JsonObject = _merge(self._documents(), _estimate)
        return merged

    def to_json(self) -> JsonObject:
        """Return the same as plain data: mean, interval and the value of each seed."""
        merged = _merge(self._documents(), _plain)
        return {**merged, "seeds": [run.seed for run in self.results], "rerun": self.rerun}

    def _documents(self) -> list[JsonObject]:
        documents = []
        for run in self.results:
            document = run.to_json_without_groups()
            # The cost of a run is no figure of the network.
            del document["seed"], document["engine"]
            documents.append(document | {"groups": run.group_rows()})
        return documents


def run_repeated(
    scenario: Scenario,
    file: Path,
    repeat: int,
    seed: int | None = None,
    *,
    on: str,
    values: Mapping[str, object],
    lookahead: bool,
    progress: Callable[[float], None] | None,
) -> Repeated:
    """Run a scenario with the seeds ``seed``, ``seed + 1`` and so on.

    ``scenario`` has the ``values`` already; ``file`` and ``values`` are for the command.
    """
    if repeat < 1:
        raise ArgumentError("repeat", f"{repeat} is not a whole number above 0")
    seed = scenario.seed if seed is None else seed
    check_seed(seed)
    check_seed(seed + repeat - 1)
    jobs = [(scenario, seed + i) for i in range(repeat)]
    results = measure(jobs, lambda _, run: run, on=on, lookahead=lookahead, progress=progress)
    words = ["cwnd", "run", str(file), *write_values(values), "--repeat", str(repeat)]
    words += ["--seed", str(seed), *([] if on == "sim" else ["--on", on])]
    return Repeated(results, shlex.join(words))


def _merge(
    documents: Sequence[Any], leaf: Callable[[str, list[float]], object], name: str = ""
) -> Any:  # noqa: ANN401
    """Merge documents of one structure; ``leaf`` gets the name of a figure and its values."""
    known = [document for document in documents if document is not None]
    if not known:
        return None
    first = known[0]
    if isinstance(first, dict):
        keys = dict.fromkeys(key for document in known for key in document)
        below = _mean if name == "limited" else leaf
        return {key: _merge([each.get(key) for each in known], below, key) for key in keys}
    if isinstance(first, list):
        members: dict[object, list[Any]] = {}
        for document in known:
            for i, each in enumerate(document):
                label = each.get("name", each.get("low_bytes", i)) if isinstance(each, dict) else i
                members.setdefault(label, []).append(each)
        return [_merge(each, leaf, name) for each in members.values()]
    if name in _CONSTANT or isinstance(first, str | bool):
        return first
    return leaf(name, [math.nan if each is None else float(each) for each in documents])


def _estimate(name: str, values: list[float]) -> Estimate:
    """Estimate the mean of a figure."""
    # Jain's index in the worst window.
    return estimate(values, UNIT if name == "worst" else metrics.range_of(name))


def _plain(name: str, values: list[float]) -> JsonObject:
    """Return the estimate of a figure, and its values, as plain data."""
    return jsonable(_estimate(name, values).to_json() | {"values": values})


def _mean(_: str, values: list[float]) -> object:
    """Return the mean: of the times that are shown in proportion to each other."""
    return float(np.mean(values))
