"""Compare controllers on one network: each alone, and half and half against a reference."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np

from cwnd import _native, metrics
from cwnd.controller import read_controller
from cwnd.errors import ArgumentError, read_argument
from cwnd.extras import require
from cwnd.result import SCALES, Result, jsonable, link_loss_rate, write_text
from cwnd.running import measure
from cwnd.scenario import Scenario
from cwnd.stats import Estimate, estimate, estimate_ratio
from cwnd.units import Quantity, parse_rate, parse_time, tc_rate, tc_time
from cwnd.verdict import Figures, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from cwnd.controller import Spec
    from cwnd.records import FlowRecord, JsonObject

WARMUP = 0.25
"""Fraction of a run that is left out of every figure."""

STARTS = 0.05
"""Fraction of a run over which the flows start, at random."""

ACCESS = 1 / 80
"""Longest delay of an access link in round-trip times: four of them add up to 5 % at most."""

MOST_FLOWS = 10_000
"""Flows in one run, at most."""

MOST_FLOWS_ALTOGETHER = 100_000
"""Flows of all runs together, at most."""

MOST_SAMPLES = 5_000_000
"""Samples of all flows and runs together, at most: about 600 MB of series."""

FEWEST_SAMPLES = 100
"""Samples of each series, at least."""

_ARGUMENTS = {
    "duration": "time",
    "dumbbell.rate": "rate",
    "dumbbell.delay": "rtt",
    "dumbbell.bdp_rtt": "rtt",
    "dumbbell.queue": "queue",
}
"""Keys of the scenario by the argument that they come from."""


@dataclass(frozen=True)
class Row:
    """The figures of one controller, alone or against the reference.

    Attributes
    ----------
    controller
        Its specification.
    repeats
        The figures by name, for each repeat.
    results
        One run for each repeat.
    """

    controller: str
    repeats: list[dict[str, float]]
    results: list[Result]

    @cached_property
    def figures(self) -> dict[str, Estimate]:
        """Mean and interval of each figure, by name."""
        return {
            name: estimate(self.values(name), metrics.range_of(name)) for name in self.repeats[0]
        }

    def values(self, name: str) -> list[float]:
        """Return a figure of each repeat; NaN where it is not known."""
        return [repeat.get(name, math.nan) for repeat in self.repeats]

    def to_json(self) -> JsonObject:
        """Give the row as plain data."""
        return {"controller": self.controller} | {
            name: figure.to_json() for name, figure in self.figures.items()
        }


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` found.

    Attributes
    ----------
    network
        The network as it was asked for, and what follows from it.
    reference
        Specification of the reference.
    rows_alone, rows_against
        One row for each controller; the reference has a row alone in any case.
    rerun
        The command that repeats the comparison.
    """

    network: JsonObject
    reference: str
    rows_alone: list[Row]
    rows_against: list[Row]
    rerun: str

    @cached_property
    def alone(self) -> pd.DataFrame:
        """Each controller alone: one row a controller, mean, low and high of each figure."""
        return _frame(self.rows_alone)

    @cached_property
    def against(self) -> pd.DataFrame:
        """Each controller against the reference: mean, low and high of each figure."""
        return _frame(self.rows_against)

    @property
    def results(self) -> list[Result]:
        """All runs."""
        return [run for row in [*self.rows_alone, *self.rows_against] for run in row.results]

    def __repr__(self) -> str:
        names = ", ".join(row.controller for row in self.rows_against)
        return f"<Comparison of {names} with {self.reference}: {len(self.results)} runs>"

    def _repr_html_(self) -> str | None:
        from cwnd.notebook import comparison_html

        return comparison_html(self)

    def summary(self) -> pd.DataFrame:
        """Return the verdicts and the means that matter, in units for people: ten columns."""
        from cwnd.notebook import summarize_comparison

        return summarize_comparison(self)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """What the figures say, in words."""
        alone = {row.controller: row for row in self.rows_alone}
        return [
            judge(
                row.controller,
                self.reference,
                _evidence(row, alone[row.controller], alone[self.reference]),
            )
            for row in self.rows_against
        ]

    def plot(self) -> Figure:
        """Draw fairness, smoothness, queue and one flow's window of each controller.

        Returns
        -------
        matplotlib.figure.Figure
            Show it in a notebook, or save it with ``savefig``.
        """
        from cwnd.plots import plot_comparison

        return plot_comparison(self)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page with the verdict, tables and interactive plots.

        Parameters
        ----------
        path
            The file to write.
        """
        from cwnd.report.compare import compare_page

        write_text(path, compare_page(self))

    def to_json(self) -> JsonObject:
        """Give the figures as plain data; docs/json.md describes them. Unknown figures are None."""
        return jsonable(
            {
                "network": self.network,
                "reference": self.reference,
                "alone": [row.to_json() for row in self.rows_alone],
                "against": [row.to_json() for row in self.rows_against],
                "verdicts": [verdict.to_json() for verdict in self.verdicts],
                "rerun": self.rerun,
            }
        )


def compare(  # noqa: PLR0913
    controllers: Sequence[Spec],
    *,
    reference: Spec = "reno",
    rate: Quantity = "15mbit",
    rtt: Quantity = "100ms",
    queue: str = "red",
    flows: int = 8,
    time: Quantity = "120s",
    repeat: int = 10,
    seed: int = 1,
    on: str = "sim",
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Compare controllers with a reference on a dumbbell.

    Every controller runs alone (``flows`` flows of it) and half and half against the reference.
    Access delays and starts are random, drawn from the seed; the first quarter of a run is left
    out of the figures.

    Parameters
    ----------
    controllers
        Specifications such as ``simd(beta=1/16)``, and Python classes with ``grow`` and ``cut``.
    reference
        What they are compared with.
    rate, rtt
        Rate of the bottleneck (bits per second) and round-trip time without queue (seconds).
    queue
        ``red`` (the parameters of SIMD's Table 2), ``red-ecn`` (the same, marking), ``droptail``
        (one bandwidth-delay product), or the size of a DropTail queue: ``20p``, ``64kb``,
        ``1.5bdp``.
    flows
        Flows in each run, even.
    time
        Length of each run in seconds.
    repeat
        Runs of each case; their seeds are ``seed``, ``seed + 1`` and so on. Fewer than five leave
        most verdicts undecided.
    seed
        The same arguments and seed always give the same result on the simulator.
    on
        ``sim``, or in real time, one run after the other: ``udt`` or ``linux``, as for `cwnd.run`.
    progress
        Called now and then with the fraction that is done.

    Returns
    -------
    Comparison
        Tables, verdicts, plots.

    Raises
    ------
    ValueError
        An argument makes no sense; the message names it. ``SpecError`` and ``ScenarioError`` are
        ValueErrors too.

    Examples
    --------
    >>> import cwnd
    >>> comparison = cwnd.compare(["aimd(0.31, 1/8)"], time="8s", repeat=2, flows=2)
    >>> comparison.against.loc[:, "share"].columns.tolist()
    ['mean', 'low', 'high']
    """
    plan = _Plan(rate, rtt, queue, flows, time, repeat, seed, on)
    specs = {read_controller(spec)[0]: spec for spec in [reference, *controllers]}
    alone, names = cases(controllers, reference)
    home = read_controller(reference)[0]
    pairs: list[tuple[Spec, Spec | None]] = [(specs[name], None) for name in alone]
    pairs += [(specs[name], reference) for name in names]
    sample = plan.sample(len(pairs) * repeat)
    scenarios = [plan.scenario(one, other, sample) for one, other in pairs]
    _check(scenarios[0])
    # What the intervals need takes a while to import: meanwhile the runs go on.
    Thread(target=import_module, args=("scipy.special",)).start()

    def keep(job: int, run: Result) -> tuple[dict[str, float], Result]:
        return (_alone if job < len(alone) * repeat else _against)(run), run

    kept = measure(
        [(scenario, seed + i) for scenario in scenarios for i in range(repeat)],
        keep,
        progress=progress,
        scales=[float(f"{scale * max(sample, plan.rtt):.6g}") for scale in SCALES],
        on=on,
    )
    grouped = [kept[i : i + repeat] for i in range(0, len(kept), repeat)]
    rows = [
        Row(name, [figures for figures, _ in group], [run for _, run in group])
        for name, group in zip([*alone, *names], grouped, strict=True)
    ]
    return Comparison(
        network=plan.describe(rows[0].results[0]),
        reference=home,
        rows_alone=rows[: len(alone)],
        rows_against=rows[len(alone) :],
        rerun=plan.command(names, home),
    )


def cases(controllers: Sequence[Spec], reference: Spec) -> tuple[list[str], list[str]]:
    """List what is run: each controller alone, and each against the reference.

    Parameters
    ----------
    controllers, reference
        As for `compare`.

    Returns
    -------
    tuple of list of str
        Names of the controllers that run alone, and of those that run against the reference.

    Raises
    ------
    ArgumentError
        There is none, or one of them twice.

    Examples
    --------
    >>> cases(["vegas"], "reno")
    (['reno', 'vegas'], ['vegas'])
    """
    names = [read_controller(spec)[0] for spec in controllers]
    if not names:
        raise ArgumentError("controllers", "at least one is needed")
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError("controllers", f"{name} is listed twice")
    home = read_controller(reference)[0]
    return names if home in names else [home, *names], names


def _check(scenario: Scenario) -> None:
    """Check the network; a mistake is told with the argument that it comes from."""
    try:
        scenario.validate()
    except _native.ScenarioError as mistake:
        key, _, problem = str(mistake).partition(": ")
        if key not in _ARGUMENTS:
            raise
        raise ArgumentError(_ARGUMENTS[key], problem) from None


class _Plan:
    """The arguments of ``compare``, checked."""

    def __init__(
        self,
        rate: Quantity,
        rtt: Quantity,
        queue: str,
        flows: int,
        time: Quantity,
        repeat: int,
        seed: int,
        on: str,
    ) -> None:
        self.rate = read_argument("rate", parse_rate, rate)
        self.rtt = read_argument("rtt", parse_time, rtt)
        self.time = read_argument("time", parse_time, time)
        if not 2 <= flows <= MOST_FLOWS or flows % 2:
            raise ArgumentError("flows", f"{flows} is not an even number from 2 to {MOST_FLOWS}")
        if repeat < 1:
            raise ArgumentError("repeat", f"{repeat} is not at least 1")
        self.queue, self.flows, self.repeat, self.seed = queue, flows, repeat, seed
        self.on = on

    def sample(self, runs: int) -> float:
        """Choose the time between two samples: a round-trip time, or what memory allows."""
        if self.flows * runs > MOST_FLOWS_ALTOGETHER:
            raise ArgumentError(
                "repeat",
                f"{runs} runs of {self.flows} flows are too many: all together may have "
                f"{MOST_FLOWS_ALTOGETHER} flows",
            )
        most = min(MOST_SAMPLES / (self.flows * runs), 2400.0)
        return min(max(self.rtt, self.time / most), self.time / FEWEST_SAMPLES)

    def scenario(self, one: Spec, other: Spec | None, sample: float) -> Scenario:
        """Build the network with its flows; ``other`` takes half of them."""
        scenario = Scenario.dumbbell(
            rate=self.rate,
            rtt=self.rtt,
            queue=self.queue,
            time=self.time,
            warmup=WARMUP * self.time,
            sample=sample,
            access=f"0s..{self.rtt * ACCESS:.9f}s",
        )
        start = f"0s..{self.time * STARTS:.9f}s"
        if other is None:
            return scenario.add_flow(one, count=self.flows, start=start)
        scenario.add_flow(one, count=self.flows // 2, start=start)
        return scenario.add_flow(other, count=self.flows // 2, start=start)

    def describe(self, run: Result) -> JsonObject:
        """Describe the network, with what its first run tells of it."""
        link = run.bottleneck
        packet = run.measured_flows[0]["packet_bytes"]
        return {
            "rate_bps": self.rate,
            "rtt_s": self.rtt,
            "queue": self.queue,
            "queue_limit": link["queue_limit"],
            "bdp_packets": self.rate * self.rtt / (8 * packet),
            "packet_bytes": packet,
            "flows": self.flows,
            "duration_s": run.duration_s,
            "warmup_s": run.warmup_s,
            "scales_s": run.scales,
            "repeat": self.repeat,
            "seed": self.seed,
            "on": self.on,
        }

    def command(self, names: list[str], reference: str) -> str:
        """Write the command that repeats the comparison."""
        return shlex.join(
            [
                *("cwnd", "compare", *names, "--reference", reference),
                *("--rate", tc_rate(self.rate), "--rtt", tc_time(self.rtt)),
                *("--queue", self.queue, "--flows", str(self.flows)),
                *("--time", tc_time(self.time), "--repeat", str(self.repeat)),
                *("--seed", str(self.seed)),
                *(() if self.on == "sim" else ("--on", self.on)),
            ]
        )


def _alone(run: Result) -> dict[str, float]:
    """Give the figures of a run whose flows are all of one controller."""
    flows = run.measured_flows
    goodputs = [run.goodput_bps(flow) for flow in flows]
    return {
        "goodput_bps": float(np.sum(goodputs)),
        **_network_figures(run),
        "jain": metrics.jain(goodputs),
        **_group_figures(run, flows),
    }


def _against(run: Result) -> dict[str, float]:
    """Give the figures of a run whose second half of the flows is the reference's."""
    flows = run.measured_flows
    half = len(flows) // 2
    goodputs = [run.goodput_bps(flow) for flow in flows]
    return {
        "share": metrics.friendliness(goodputs[:half], goodputs[half:]),
        "jain": metrics.jain(goodputs),
        "goodput_bps": float(np.sum(goodputs[:half])),
        "reference_goodput_bps": float(np.sum(goodputs[half:])),
        **_network_figures(run),
        **_group_figures(run, flows[:half]),
    }


def _network_figures(run: Result) -> dict[str, float]:
    """Give the figures of the bottleneck."""
    link = run.bottleneck
    return {
        "utilization": link["utilization"],
        "loss_rate": link_loss_rate(link),
        "mark_rate": metrics.mark_rate(link["marks"], link["arrivals"]),
        "queueing_delay_s": link["delay"]["mean"],
        "queueing_delay_p95_s": link["delay"]["p95"],
        "queueing_delay_p99_s": link["delay"]["p99"],
        "mean_queue": link["mean_queue"],
    }


def _group_figures(run: Result, flows: list[FlowRecord]) -> dict[str, float]:
    """Give the figures of the flows of one controller."""
    sent = sum(flow["packets_sent"] for flow in flows)
    seconds = sum(run.seconds(flow) for flow in flows)
    smooth = [run.smoothness(flow) for flow in flows]
    limits = [flow["limited"] for flow in flows]
    cuts = sum(int(np.count_nonzero(f["cuts"]["time"] >= run.warmup_s)) for f in flows)
    return {
        **{
            f"cov_{unit}rtt": float(np.mean([s[scale] for s in smooth]))
            for unit, scale in zip(SCALES, run.scales, strict=True)
        },
        "retransmission_rate": metrics.retransmission_rate(
            sum(flow["retransmissions"] for flow in flows), sent
        ),
        "timeouts": float(sum(flow["timeouts"] for flow in flows)),
        "cuts": float(cuts),
        "mean_window": float(np.mean([flow["mean_window"] for flow in flows])),
        "mean_rtt_s": float(np.mean([flow["mean_rtt_s"] for flow in flows])),
        "limited_window": sum(limit["window"] for limit in limits) / seconds,
        "limited_pacing": sum(limit["pacing"] for limit in limits) / seconds,
        "limited_receiver": sum(limit["receiver"] for limit in limits) / seconds,
        "limited_application": sum(limit["application"] for limit in limits) / seconds,
    }


def _frame(rows: list[Row]) -> pd.DataFrame:
    """Turn rows into a frame: figures by mean, low and high."""
    require("A frame of a comparison", "pandas")
    import pandas as pd

    from cwnd.frames import FIGURES, show_columns

    frame = pd.DataFrame(
        {
            (name, part): [getattr(row.figures[name], part) for row in rows]
            for name in rows[0].figures
            for part in ("mean", "low", "high")
        },
        index=pd.Index([row.controller for row in rows], name="controller"),
    )
    return show_columns(frame, FIGURES)


def _evidence(against: Row, alone: Row, reference: Row) -> Figures:
    """Collect the figures of a verdict."""
    delay = alone.figures["queueing_delay_s"]
    link = alone.results[0].bottleneck
    packet = alone.results[0].measured_flows[0]["packet_bytes"]
    longest = 8 * packet * link["queue_limit"] / link["rate_bps"]
    return Figures(
        share=against.figures["share"],
        roughness=estimate_ratio(alone.values("cov_10rtt"), reference.values("cov_10rtt")),
        queue=estimate_ratio(
            alone.values("queueing_delay_s"), reference.values("queueing_delay_s")
        ),
        delay_s=delay,
        fill=delay.mean / longest,
        limits={
            cause: alone.figures[f"limited_{cause}"].mean
            for cause in ("receiver", "application")
            if alone.figures[f"limited_{cause}"].mean > 0.05
        },
    )
