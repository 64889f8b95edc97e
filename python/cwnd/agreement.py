"""One scenario in several realities: where they agree, and where they do not."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cwnd import metrics
from cwnd.errors import ArgumentError
from cwnd.figures import number
from cwnd.real import REALITIES, check_reality
from cwnd.result import jsonable, link_loss_rate, write_text
from cwnd.running import measure
from cwnd.scenario import Scenario
from cwnd.stats import Estimate, estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd
    from matplotlib.figure import Figure

    from cwnd.records import FlowRecord, JsonObject
    from cwnd.result import Result

NETWORK = "network"
"""What the figures of the network are called, beside those of the flows."""

RULE = (
    "Two realities agree in a figure when their means are alike: goodput, share, Jain's index, "
    "utilization and round-trip time within 5 %; windows within 10 % or one packet, whichever is "
    "more; queueing delays within 10 % or the time that the link takes for one packet; loss and "
    "retransmissions within a factor of 3/2, or when both are below 1 in 10000. If they are not, "
    "but their 95 % intervals over the seeds overlap, they differ by no more than seeds do. "
    "Otherwise they differ."
)

QUANTILES = {"window_p10": 0.1, "window_p50": 0.5, "window_p90": 0.9}
"""Quantiles of the windows over the samples of all flows of a group."""

RARE = 1e-4
"""Of two smaller rates of loss none is the larger: a run of 20 s at 10 Mbit/s has 17000 packets."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A figure, and when two of it are alike.

    Attributes
    ----------
    name
        Its name, in JSON as well.
    title, unit
        How tables call it.
    factor
        From the figure to the unit shown.
    digits
        Decimals shown.
    tolerance
        By which part of the first the second may differ.
    ratio
        Or which factor may be between them, for figures that are told in orders of magnitude;
        0 if they are not.
    """

    name: str
    title: str
    unit: str
    factor: float
    digits: int
    tolerance: float = 0.05
    ratio: float = 0.0

    def text(self, value: Estimate) -> str:
        """Write a mean with half its interval."""
        mean = number(value.mean, self.digits, self.factor)
        if not value.known:
            return mean
        return f"{mean} ±{number(value.half_width, self.digits, self.factor)}"


OF_NETWORK = (
    Kind("utilization", "used", "%", 100, 1),
    Kind("goodput_bps", "goodput", "Mbit/s", 1e-6, 2),
    Kind("jain", "Jain's index", "", 1, 3),
    Kind("loss_rate", "loss", "%", 100, 3, ratio=1.5),
    Kind("mark_rate", "marks", "%", 100, 3, ratio=1.5),
    Kind("queueing_delay_s", "queue, mean", "ms", 1e3, 2, tolerance=0.1),
    Kind("queueing_delay_p95_s", "queue, p95", "ms", 1e3, 2, tolerance=0.1),
)
"""Figures of the whole: all measured flows, and the bottleneck."""

OF_FLOWS = (
    Kind("goodput_bps", "goodput", "Mbit/s", 1e-6, 2),
    Kind("share", "share", "%", 100, 1),
    Kind("retransmission_rate", "sent again", "%", 100, 3, ratio=1.5),
    Kind("window_p10", "window, p10", "packets", 1, 1, tolerance=0.1),
    Kind("window_p50", "window, p50", "packets", 1, 1, tolerance=0.1),
    Kind("window_p90", "window, p90", "packets", 1, 1, tolerance=0.1),
    Kind("mean_rtt_s", "RTT", "ms", 1e3, 2),
)
"""Figures of the flows of one group."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a reality agrees with the first one in a figure.

    Attributes
    ----------
    on
        The reality.
    word
        ``agrees``, ``as seeds do``, ``differs`` or ``unknown``; `RULE` says when.
    ratio
        Its mean over that of the first; NaN where that is 0.
    text
        The word, and how much it differs.
    """

    on: str
    word: str
    ratio: float
    text: str


@dataclass(frozen=True)
class Row:
    """One figure in all realities.

    Attributes
    ----------
    of
        `NETWORK`, or the group of flows.
    kind
        Which figure.
    estimates
        A mean with its interval for each reality.
    slack
        How far two means may be apart in any case, in the figure's unit.
    """

    of: str
    kind: Kind
    estimates: dict[str, Estimate]
    slack: float

    @property
    def title(self) -> str:
        """The figure with its unit."""
        return f"{self.kind.title}, {self.kind.unit}" if self.kind.unit else self.kind.title

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Of each reality but the first."""
        (_, first), *others = self.estimates.items()
        return [judge(on, self.kind, first, other, self.slack) for on, other in others]

    def to_json(self) -> JsonObject:
        """Give the row as plain data."""
        return {
            "of": self.of,
            "figure": self.kind.name,
            "values": {on: value.to_json() for on, value in self.estimates.items()},
            "verdicts": {
                verdict.on: {"verdict": verdict.word, "ratio": verdict.ratio}
                for verdict in self.verdicts
            },
        }


def judge(on: str, kind: Kind, first: Estimate, other: Estimate, slack: float) -> Verdict:
    """Say whether two realities agree in a figure, by `RULE`.

    Parameters
    ----------
    on
        The other reality.
    kind
        Which figure.
    first, other
        It in the first and in the other reality.
    slack
        How far the means may be apart in any case.

    Returns
    -------
    Verdict
        And by how much they differ.

    Examples
    --------
    >>> goodput = OF_NETWORK[1]
    >>> narrow, wide = Estimate(9e6, 8.9e6, 9.1e6), Estimate(8e6, 7e6, 9e6)
    >>> judge("linux", goodput, narrow, Estimate(9.3e6, 9.2e6, 9.4e6), 0.0).text
    'agrees'
    >>> judge("linux", goodput, narrow, wide, 0.0).text
    'as seeds do (-11 %)'
    """
    if not (math.isfinite(first.mean) and math.isfinite(other.mean)):
        return Verdict(on, "unknown", math.nan, "unknown")
    ratio = other.mean / first.mean if first.mean else math.nan
    if _alike(kind, first.mean, other.mean, slack):
        return Verdict(on, "agrees", ratio, "agrees")
    overlap = first.known and other.known and first.low <= other.high and other.low <= first.high
    word = "as seeds do" if overlap else "differs"
    if not math.isfinite(ratio):
        by = f"{number(other.mean, kind.digits, kind.factor)} {kind.unit} instead of 0".strip()
    elif kind.ratio:
        by = f"{ratio:.2g} times"
    else:
        by = f"{100 * (ratio - 1):+.0f} %"
    return Verdict(on, word, ratio, f"{word} ({by})")


def _alike(kind: Kind, first: float, other: float, slack: float) -> bool:
    """Tell whether two means are alike."""
    if kind.ratio:
        low, high = sorted((first, other))
        return high < RARE or high <= kind.ratio * low
    return abs(other - first) <= max(kind.tolerance * abs(first), slack)


@dataclass(frozen=True)
class Agreement:
    """What ``agree`` found.

    Attributes
    ----------
    title
        What the scenario is called.
    results
        The runs of each reality, a seed each; the first reality is the one the others are held
        against.
    rerun
        The command that repeats it; empty for a scenario that is no file.
    """

    title: str
    results: dict[str, list[Result]]
    rerun: str = ""

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The names of the measured flows of each group: those of one ``[[flow]]``."""
        return _groups(next(iter(self.results.values()))[0].measured_flows)

    @cached_property
    def rows(self) -> list[Row]:
        """One row a figure; those of the network, then those of each group of flows."""
        first = next(iter(self.results.values()))[0]
        link = first.bottleneck
        packet = max((flow["packet_bytes"] for flow in first.measured_flows), default=0)
        slack = dict.fromkeys(QUANTILES, 1.0)
        slack |= dict.fromkeys(
            ("queueing_delay_s", "queueing_delay_p95_s"), 8 * packet / link["rate_bps"]
        )
        measured = {
            on: [_figures(run, link["name"], self.groups) for run in runs]
            for on, runs in self.results.items()
        }
        rows = []
        for of, kinds in ((NETWORK, OF_NETWORK), *((group, OF_FLOWS) for group in self.groups)):
            for kind in kinds:
                values = {
                    on: estimate(run[of].get(kind.name, math.nan) for run in runs)
                    for on, runs in measured.items()
                }
                # A network that marks nothing has no marks to tell of.
                if kind.name != "mark_rate" or any(value.mean > 0 for value in values.values()):
                    rows.append(Row(of, kind, values, slack.get(kind.name, 0.0)))
        return rows

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row a figure: mean, low and high in each reality, and each verdict."""
        import pandas as pd

        index = pd.MultiIndex.from_tuples(
            [(row.of, row.kind.name) for row in self.rows], names=["of", "figure"]
        )
        columns: dict[tuple[str, str], list[float | str]] = {
            (on, part): [getattr(row.estimates[on], part) for row in self.rows]
            for on in self.results
            for part in ("mean", "low", "high")
        }
        for i, on in enumerate(list(self.results)[1:]):
            columns[on, "verdict"] = [row.verdicts[i].word for row in self.rows]
        return pd.DataFrame(columns, index=index)

    @cached_property
    def flows(self) -> pd.DataFrame:
        """One row for each measured flow, reality and seed, with its own figures."""
        import pandas as pd

        rows = []
        for on, runs in self.results.items():
            for run in runs:
                total = sum(run.goodput_bps(flow) for flow in run.measured_flows)
                rows += [
                    {"on": on, "seed": run.seed, "flow": flow["name"]}
                    | _group_figures(run, [flow], total)
                    for flow in run.measured_flows
                ]
        return pd.DataFrame(rows).set_index(["on", "seed", "flow"])

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many figures of each reality got each verdict."""
        words = ("agrees", "as seeds do", "differs", "unknown")
        return {
            on: {word: sum(row.verdicts[i].word == word for row in self.rows) for word in words}
            for i, on in enumerate(list(self.results)[1:])
        }

    @property
    def runs(self) -> list[Result]:
        """All runs."""
        return [run for runs in self.results.values() for run in runs]

    def plot(self) -> Figure:
        """Draw windows and queue of each reality side by side, of the first seed.

        Returns
        -------
        matplotlib.figure.Figure
            Show it in a notebook, or save it with ``savefig``.
        """
        from cwnd.plots import plot_agreement

        return plot_agreement(self)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page with the table and interactive plots.

        Parameters
        ----------
        path
            The file to write.
        """
        from cwnd.report.agree import agree_page

        write_text(path, agree_page(self))

    def to_json(self) -> JsonObject:
        """Give the figures as plain data; docs/json.md describes them. Unknown figures are None."""
        from cwnd.figures import caveats

        first = self.runs[0]
        flows = self.flows.reset_index().to_dict(orient="records")
        return jsonable(
            {
                "scenario": first.scenario,
                "title": self.title,
                "duration_s": first.duration_s,
                "warmup_s": first.warmup_s,
                "on": list(self.results),
                "seeds": [run.seed for run in next(iter(self.results.values()))],
                "bottleneck": first.bottleneck["name"],
                "groups": self.groups,
                "figures": [row.to_json() for row in self.rows],
                "counts": self.counts,
                "flows": flows,
                "limited": {
                    on: sum(run.limit is not None for run in runs)
                    for on, runs in self.results.items()
                },
                "notes": caveats(self.runs),
                "rule": RULE,
                "rerun": self.rerun,
            }
        )


def agree(
    scenario: Scenario | str | Path,
    *,
    on: Sequence[str] = ("sim", "linux"),
    repeat: int = 3,
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Agreement:
    """Run one scenario in several realities and say in which figures they agree.

    Real time passes for each run but the simulator's; they come one after the other, seed by
    seed, so that what changes on the machine meanwhile meets all realities alike.

    Parameters
    ----------
    scenario
        A scenario, or the path of a scenario file.
    on
        Two or three of ``sim``, ``udt`` and ``linux``; the others are held against the first.
    repeat
        Seeds in each reality.
    seed
        The first of them; the scenario's own by default.
    progress
        Called now and then with the fraction that is done.

    Returns
    -------
    Agreement
        Figures with their intervals, verdicts, plots.

    Raises
    ------
    ArgumentError
        An argument makes no sense.
    KernelError
        This machine or its user cannot run it in real time.
    ScenarioError
        The scenario makes no sense, or no sense in one of the realities.
    """
    path = None if isinstance(scenario, Scenario) else Path(scenario)
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_toml(Path(scenario))
    check_realities(on, scenario)
    if repeat < 1:
        raise ArgumentError("repeat", f"{repeat} is not at least 1")
    seed = scenario.seed if seed is None else seed
    seeds = range(seed, seed + repeat)
    real = [(each, place) for each in seeds for place in on if place != "sim"]
    results: dict[str, list[Result]] = {place: [] for place in on}

    # What this machine cannot do shows at once, before the simulator has worked for nothing.
    for done, (each, place) in enumerate(real):

        def told(fraction: float, done: int = done) -> None:
            if progress is not None:
                progress((done + fraction) / len(real))

        results[place] += measure([(scenario, each)], lambda _, run: run, on=place, progress=told)
    if "sim" in results:
        results["sim"] = measure([(scenario, each) for each in seeds], lambda _, run: run)
    rerun = ""
    if path is not None:
        words = ["cwnd", "agree", str(path), "--on", ",".join(on)]
        rerun = shlex.join([*words, "--repeat", str(repeat), "--seed", str(seed)])
    return Agreement(scenario.title, results, rerun)


def check_realities(on: Sequence[str], scenario: Scenario) -> None:
    """Refuse what cannot be compared.

    Parameters
    ----------
    on
        Names of realities.
    scenario
        What is to run in them.

    Raises
    ------
    ArgumentError
        They are not two or three different ones, or not for this scenario.
    KernelError
        One of them needs Linux.
    """
    for place in on:
        check_reality(place, [scenario])
    if len(on) < 2 or len(set(on)) < len(on):
        raise ArgumentError(
            "on", f"at least two different ones of {', '.join(REALITIES)} are needed"
        )


def _groups(flows: Iterable[FlowRecord]) -> dict[str, list[str]]:
    """Group flows by their names without numbers; by controllers as well where that is needed."""
    stems: dict[tuple[str, str], list[str]] = {}
    for flow in flows:
        stem = re.sub(r"-\d+$", "", flow["name"])
        stems.setdefault((stem, flow["controller"]), []).append(flow["name"])
    names = [stem for stem, _ in stems]
    return {
        stem if names.count(stem) == 1 else f"{stem}, {controller}": members
        for (stem, controller), members in stems.items()
    }


def _figures(run: Result, link: str, groups: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """Give the figures of a run: of the network and of each group of flows."""
    flows = {flow["name"]: flow for flow in run.measured_flows}
    goodputs = [run.goodput_bps(flow) for flow in flows.values()]
    total = float(np.sum(goodputs))
    figures = {NETWORK: {"goodput_bps": total, "jain": metrics.jain(goodputs)}}
    for found in (each for each in run.record["links"] if each["name"] == link):
        figures[NETWORK] |= {
            "utilization": found["utilization"],
            "loss_rate": link_loss_rate(found),
            "mark_rate": metrics.mark_rate(found["marks"], found["arrivals"]),
            "queueing_delay_s": found["delay"]["mean"],
            "queueing_delay_p95_s": found["delay"]["p95"],
        }
    for group, names in groups.items():
        members = [flows[name] for name in names if name in flows]
        figures[group] = _group_figures(run, members, total) if members else {}
    return figures


def _group_figures(run: Result, flows: list[FlowRecord], total: float) -> dict[str, float]:
    """Give the figures of some flows together; ``total`` is the goodput of all."""
    goodput = float(np.sum([run.goodput_bps(flow) for flow in flows]))
    windows = np.concatenate([_windows(run, flow) for flow in flows])
    rtts = np.array([flow["mean_rtt_s"] for flow in flows])
    rtts = rtts[np.isfinite(rtts)]
    return {
        "goodput_bps": goodput,
        "share": goodput / total if total > 0 else math.nan,
        "retransmission_rate": metrics.retransmission_rate(
            sum(flow["retransmissions"] for flow in flows),
            sum(flow["packets_sent"] for flow in flows),
        ),
        **{
            name: float(np.quantile(windows, part)) if windows.size else math.nan
            for name, part in QUANTILES.items()
        },
        "mean_rtt_s": float(rtts.mean()) if rtts.size else math.nan,
    }


def _windows(run: Result, flow: FlowRecord) -> np.ndarray:
    """Give the samples of a flow's window while it is there, without the warm-up."""
    start = max(run.warmup_s, flow["start_s"])
    here = (run.time >= start) & (run.time <= start + run.seconds(flow))
    window = flow["window"][here]
    return window[np.isfinite(window)]
