"""A run, and what becomes of it if values change at a time."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from cwnd import _show
from cwnd._base.files import write_text
from cwnd._runs.result import jsonable
from cwnd._runs.run import part_of, read_run, run_command
from cwnd._runs.scenario_keys import write_values
from cwnd._runs.simulation import Simulation, read_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

    from cwnd._base.records import JsonObject
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario

Difference: TypeAlias = "tuple[float | None, float | None, float | None]"

COMPARED = (
    "goodput_bps",
    "jain",
    "utilization",
    "loss_rate",
    "mark_rate",
    "retransmission_rate",
    "queue_delay_s",
    "queue_delay_p95_s",
    "queue_delay_p99_s",
)
"""Figures of a run that are compared."""


class Fork:
    """Two futures of a run: unchanged, and with other values from a time on.

    Figures exclude the time before ``at_s`` seconds: it is the warm-up. ``values`` are those that
    change, by path, and ``rerun`` is the command that repeats both runs.
    """

    def __init__(
        self,
        unchanged: Result,
        changed: Result,
        *,
        at_s: float,
        values: Mapping[str, object],
        rerun: str,
    ) -> None:
        self.unchanged, self.changed = unchanged, changed
        self.at_s, self.values, self.rerun = at_s, dict(values), rerun

    @property
    def values_text(self) -> str:
        """The values that change, as on the command line."""
        return " ".join(write_values(self.values)[1::2])

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """Each figure of both futures, and its difference; None where it has no value."""
        before, after = (_figures(result) for result in (self.unchanged, self.changed))
        return {name: _difference(before[name], after[name]) for name in COMPARED}

    @cached_property
    def goodputs(self) -> dict[str, Difference]:
        """The goodput of each measured flow in both futures, and its difference, in bit/s."""
        before, after = (
            {
                flow["name"]: jsonable({"goodput": result.goodput_bps(flow)})["goodput"]
                for flow in result.measured_flows
            }
            for result in (self.unchanged, self.changed)
        )
        return {name: _difference(before[name], after[name]) for name in before}

    def plot(self, *, column: bool = False) -> Figure:
        """Draw windows, goodput and queue of both futures over time."""
        return _show.plots.plot_fork(self, column=column)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page: figures, and both futures drawn on each other."""
        write_text(path, _show.report.fork.fork_page(self))

    def to_json(self) -> JsonObject:
        """Return both results and the differences as plain data."""
        return {
            "fork_at_s": self.at_s,
            "values": self.values,
            "unchanged": self.unchanged.to_json(),
            "changed": self.changed.to_json(),
            "differences": {name: found[2] for name, found in self.differences.items()},
            "goodput_differences_bps": {name: found[2] for name, found in self.goodputs.items()},
            "rerun": self.rerun,
        }


def fork_run(
    scenario: Scenario | str | Path,
    at: str,
    values: Mapping[str, object],
    seed: int | None = None,
    *,
    lookahead: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Fork:
    """Run a scenario, and from the time ``at`` on also with other values."""
    path, read = read_run(scenario, {})
    read_time("fork_at", at, read)
    begun = Simulation(read.with_values({"warmup": at}), seed, lookahead=lookahead)
    begun.run_until(at)
    other = begun.fork()
    other.change(values)
    results = []
    for number, run in enumerate((begun, other)):
        part = None if progress is None else part_of(progress, number, 1, 2)
        results.append(run.result(part))
    rerun = "" if path is None else run_command(path, values, begun.seed, "sim", fork_at=at)
    return Fork(*results, at_s=begun.time_s, values=values, rerun=rerun)


def _difference(before: float | None, after: float | None) -> Difference:
    """Return two values, and their difference if both are known."""
    difference = None if before is None or after is None else after - before
    return before, after, difference


def _figures(result: Result) -> dict[str, float | None]:
    """Return the figures of a run that are compared."""
    metrics = result.to_json()["metrics"]
    delay = metrics["queue_delay_s"]
    parts = {f"queue_delay_{part}_s": delay[part] for part in ("p95", "p99")}
    figures = metrics | {"queue_delay_s": delay["mean"]} | parts
    return {name: figures[name] for name in COMPARED}
