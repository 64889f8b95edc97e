"""Result of one scenario on several backends: figures, equivalence tests, tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cwnd import _show, metrics
from cwnd._base.extras import require
from cwnd._base.files import write_text
from cwnd._runs.conventions import all_conventions
from cwnd._runs.flow_groups import first_kind, groups_by_name
from cwnd._runs.goodput_limit import goodput_limit, range_within
from cwnd._runs.result import (
    jsonable,
    link_loss_rate,
    link_mark_rate,
    retransmission_rate_of,
)
from cwnd.metrics.catalog import Figure, short
from cwnd.stats import Estimate, estimate, estimate_difference, estimate_ratio
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure as Plot

    from cwnd._base.records import FlowRecord, JsonObject
    from cwnd._runs.result import Result

NETWORK = "network"
"""Name of the rows with the figures of the network; other rows name a group of flows."""

RULE = (
    "Another backend is compared with the first by the ratio of the two means over the seeds, with "
    "its 95 % interval. The backends agree in a figure when the whole interval is within the "
    "figure's tolerance, and differ when all of it is outside; otherwise they are undecided, and "
    "more seeds may decide. Tolerances: goodput, share, Jain's index, utilization and round-trip "
    "time 5 %; windows and queueing delays 10 %; loss, marks and retransmissions a factor of 3/2. "
    "Small values agree as well: windows within one packet, queueing delays within the "
    "transmission time of one packet, and loss, marks and retransmissions below 1 in 10000 on both "
    "backends, by the whole interval. One seed decides nothing."
)

QUANTILES = {"window_p10": 0.1, "window_p50": 0.5, "window_p90": 0.9}
"""Quantiles of the windows over the samples of all flows of a group."""

RARE = 1e-4
"""Loss rates below this count as equal: a run of 20 s at 10 Mbit/s has 17000 packets."""


@dataclass(frozen=True)
class Kind(Figure):
    """A figure and its tolerance."""

    tolerance: float = 0.05
    """Largest relative deviation of the ratio of two means from 1."""
    ratio: float = 0.0
    """For rates of rare events: the ratio of two means may be from 1 / ``ratio`` to ``ratio``.

    Rates below `RARE` count as equal. 0 for other figures, which have a ``tolerance``.
    """

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest ratio of two means at which backends agree."""
        if self.ratio:
            return 1 / self.ratio, self.ratio
        return 1 - self.tolerance, 1 + self.tolerance


def _kind(name: str, *, tolerance: float = 0.05, ratio: float = 0.0, **words: str | int) -> Kind:
    """Return a figure with its tolerance, and with other words or decimals than in other tables."""
    figure = vars(short(name)) | words
    return Kind(**figure, tolerance=tolerance, ratio=ratio)


OF_NETWORK = (
    _kind("utilization"),
    _kind("goodput_bps"),
    _kind("jain", title="Jain's index"),
    _kind("loss_rate", ratio=1.5, digits=3),
    _kind("mark_rate", ratio=1.5, digits=3),
    _kind("queue_delay_s", tolerance=0.1, title="queue, mean", digits=2),
    _kind("queue_delay_p95_s", tolerance=0.1, title="queue, p95", digits=2),
)
"""Figures of all measured flows together and of the bottleneck."""

OF_FLOWS = (
    _kind("goodput_bps"),
    _kind("share", unit="%", digits=1),
    _kind("retransmission_rate", ratio=1.5, digits=3),
    *(_kind(name, tolerance=0.1) for name in QUANTILES),
    _kind("mean_rtt_s", digits=2),
)
"""Figures of the flows of one group."""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Equivalence test of one figure on a backend against the first backend."""

    on: str
    """The backend that is compared with the first one."""
    word: str
    """``agrees``, ``differs``, ``undecided`` or, without data, ``unknown``; see `RULE`."""
    ratio: Estimate
    """Mean divided by the first backend's mean, with its interval; NaN if the latter is 0."""
    text: str
    """The word, with the deviation unless the backends agree."""


@dataclass(frozen=True)
class Row:
    """One figure on all backends."""

    of: str
    """`NETWORK`, or the group of flows."""
    kind: Kind
    values: dict[str, list[float]]
    """One value for each seed, by backend."""
    slack: float
    """Absolute difference of two means that is always tolerated, in the figure's unit."""
    goodput_limit: float = math.inf
    """Rate that no goodput exceeds, in bit/s."""

    @property
    def title(self) -> str:
        """The figure's title and unit."""
        return f"{self.kind.title}, {self.kind.unit}" if self.kind.unit else self.kind.title

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """The mean with its interval on each backend."""
        within = range_within(self.kind.name, self.goodput_limit)
        return {on: estimate(values, within) for on, values in self.values.items()}

    @cached_property
    def verdicts(self) -> list[Equivalence]:
        """Equivalence tests of the backends after the first one."""
        (_, first), *others = self.values.items()
        return [judge(on, self.kind, first, other, self.slack) for on, other in others]

    def to_json(self) -> JsonObject:
        """Return the row as plain data."""
        return {
            "of": self.of,
            "figure": self.kind.name,
            "values": {on: value.to_json() for on, value in self.estimates.items()},
            "verdicts": {
                verdict.on: {
                    "verdict": verdict.word,
                    "ratio": verdict.ratio.mean,
                    "interval": verdict.ratio.to_json()["interval"],
                }
                for verdict in self.verdicts
            },
        }


def judge(
    on: str, kind: Kind, first: Sequence[float], other: Sequence[float], slack: float
) -> Equivalence:
    """Test whether two backends agree in a figure, by `RULE`; values are paired by seed.

    ``slack`` is the absolute difference of the means that is always tolerated.

    Examples
    --------
    >>> goodput = OF_NETWORK[1]
    >>> judge("linux", goodput, [9.0e6, 9.1e6, 9.0e6], [9.1e6, 9.2e6, 9.2e6], 0.0).text
    'agrees'
    >>> judge("linux", goodput, [9.0e6, 9.1e6, 9.0e6], [8.9e6, 7.5e6, 8.2e6], 0.0).text
    'undecided (-9 %, -34 to +14 %)'
    """
    within = kind.range
    ratio = estimate_ratio(other, first)
    difference = estimate_difference(other, first)
    both = estimate(first, within), estimate(other, within)
    if not difference.n:
        return Equivalence(on, "unknown", ratio, "unknown")
    if not difference.known:
        return Equivalence(on, "undecided", ratio, "undecided (one seed)")
    words = {_compare_ratio(kind, both[1], ratio)}
    if kind.ratio:
        words.add(_compare_rare(both))
    elif slack:
        words.add(_compare_interval(difference, -slack, slack))
    # One satisfied tolerance is enough to agree; to differ, both must be violated.
    word = "agrees" if "agrees" in words else words.pop() if len(words) == 1 else "undecided"
    if word == "agrees":
        return Equivalence(on, word, ratio, word)
    return Equivalence(on, word, ratio, f"{word} ({_deviation_text(kind, both[1], ratio, word)})")


def _compare_interval(value: Estimate, low: float, high: float) -> str:
    """Compare an interval with the range of tolerated values."""
    if low <= value.low and value.high <= high:
        return "agrees"
    return "differs" if value.high < low or high < value.low else "undecided"


def _compare_ratio(kind: Kind, other: Estimate, ratio: Estimate) -> str:
    """Compare a ratio with its tolerance. The first mean may be 0."""
    if ratio.known:
        return _compare_interval(ratio, *kind.bounds)
    if other.mean == 0:
        return "agrees"
    return "differs" if other.low > 0 else "undecided"


def _compare_rare(both: Iterable[Estimate]) -> str:
    """Test whether two rates are so small that their ratio does not matter."""
    if all(rate.high < RARE for rate in both):
        return "agrees"
    return "differs" if any(rate.low >= RARE for rate in both) else "undecided"


def _deviation_text(kind: Kind, other: Estimate, ratio: Estimate, word: str) -> str:
    """Describe the deviation of two means, with the interval if undecided."""
    if not ratio.known:
        return f"{kind.mean(other)} {kind.unit} instead of 0"
    if kind.ratio:
        text, reach = f"{ratio.mean:.2g} times", f"{ratio.low:.2g} to {ratio.high:.2g}"
    else:
        low, mean, high = (100 * (part - 1) for part in (ratio.low, ratio.mean, ratio.high))
        text, reach = f"{mean:+.0f} %", f"{low:+.0f} to {high:+.0f} %"
    return f"{text}, {reach}" if word == "undecided" else text


@dataclass(frozen=True)
class Agreement:
    """One scenario on several backends, with the equivalence tests.

    Attributes
    ----------
    title
        Title of the scenario.
    results
        The runs by backend, one for each seed. The first backend is the reference for the others.
    rerun
        The command that repeats the runs; empty for a scenario without a file.
    """

    title: str
    results: dict[str, list[Result]]
    rerun: str = ""

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """Names of the measured flows of each group; a group is one ``[[flow]]`` table."""
        found = groups_by_name(next(iter(self.results.values()))[0].measured_flows)
        return {name: [flow["name"] for flow in flows] for name, flows in found.items()}

    @cached_property
    def rows(self) -> list[Row]:
        """One row for each figure: first those of the network, then those of each group."""
        first = next(iter(self.results.values()))[0]
        link = first.bottleneck
        limit = goodput_limit(first, first.measured_flows)
        packet = max((flow["packet_bytes"] for flow in first.measured_flows), default=0)
        slack = dict.fromkeys(QUANTILES, 1.0)
        slack |= dict.fromkeys(
            ("queue_delay_s", "queue_delay_p95_s"), 8 * packet / link["rate_bps"]
        )
        measured = {
            on: [_figures(run, link["name"], self.groups) for run in runs]
            for on, runs in self.results.items()
        }
        rows = []
        for of, kinds in ((NETWORK, OF_NETWORK), *((group, OF_FLOWS) for group in self.groups)):
            for kind in kinds:
                values = {
                    on: [run[of].get(kind.name, math.nan) for run in runs]
                    for on, runs in measured.items()
                }
                # Omit the row of marks if no packet was marked.
                if kind.name != "mark_rate" or any(
                    rate > 0 for each in values.values() for rate in each
                ):
                    rows.append(Row(of, kind, values, slack.get(kind.name, 0.0), limit))
        return rows

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row for each figure: mean, low and high on each backend, and the verdicts."""
        require("Agreement.frame", "pandas")
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
        """One row for each measured flow, backend and seed."""
        require("Agreement.flows", "pandas")
        import pandas as pd

        return pd.DataFrame(self._flow_rows()).set_index(["on", "seed", "flow"])

    def _flow_rows(self) -> list[JsonObject]:
        """Return the figures of each measured flow, backend and seed."""
        rows: list[JsonObject] = []
        for on, runs in self.results.items():
            for run in runs:
                total = run.total_goodput_bps(run.measured_flows)
                rows += [
                    {"on": on, "seed": run.seed, "flow": flow["name"]}
                    | _group_figures(run, [flow], total)
                    for flow in run.measured_flows
                ]
        return rows

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        """Number of figures with each verdict, by backend."""
        words = ("agrees", "differs", "undecided", "unknown")
        return {
            on: {word: sum(row.verdicts[i].word == word for row in self.rows) for word in words}
            for i, on in enumerate(list(self.results)[1:])
        }

    @property
    def undecided(self) -> list[str]:
        """Undecided figures, such as ``jain of network on linux``."""
        return [
            f"{row.kind.name} of {row.of} on {verdict.on}"
            for row in self.rows
            for verdict in row.verdicts
            if verdict.word == "undecided"
        ]

    @property
    def runs(self) -> list[Result]:
        """All runs."""
        return [run for runs in self.results.values() for run in runs]

    @property
    def conventions(self) -> list[str]:
        """Conventions of the TCP flows in the simulator."""
        return all_conventions(run.record["conventions"] for run in self.runs)

    def __repr__(self) -> str:
        backends, runs = ", ".join(self.results), counted(len(self.runs), "run")
        return f"<Agreement of {self.title!r} on {backends}: {runs}>"

    def _repr_html_(self) -> str | None:
        return _show.notebook.agreement_html(self)

    def summary(self) -> pd.DataFrame:
        """Return each figure's mean on each backend, in readable units, and the verdicts."""
        return _show.notebook.summarize_agreement(self)

    def plot(self, *, column: bool = False) -> Plot:
        """Draw windows and queue on each backend side by side, for the first seed.

        Parameters
        ----------
        column
            Whether the size is that of a journal's column, 3.5 inches wide.

        Returns
        -------
        matplotlib.figure.Figure
            Show it in a notebook, or save it with ``savefig``.
        """
        return _show.plots.plot_agreement(self, column=column)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page with the table and interactive plots.

        Parameters
        ----------
        path
            The file to write.
        """
        write_text(path, _show.report.agree.agree_page(self))

    def to_json(self) -> JsonObject:
        """Return the figures as plain data, unknown ones as None; see docs/json.md."""
        from cwnd._runs.text import caveats

        first = self.runs[0]
        return jsonable(
            {
                "scenario": first.scenario,
                "title": self.title,
                "duration_s": first.duration_s,
                "warmup_s": first.warmup_s,
                "on": list(self.results),
                "conventions": self.conventions,
                "seeds": [run.seed for run in next(iter(self.results.values()))],
                "bottleneck": first.bottleneck["name"],
                "groups": self.groups,
                "figures": [row.to_json() for row in self.rows],
                "counts": self.counts,
                "flows": self._flow_rows(),
                "limited": {
                    on: sum(run.limit is not None for run in runs)
                    for on, runs in self.results.items()
                },
                "notes": caveats(self.runs),
                "rule": RULE,
                "rerun": self.rerun,
            }
        )


def _figures(run: Result, link: str, groups: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """Return the figures of a run: of the network and of each group of flows."""
    flows = {flow["name"]: flow for flow in run.measured_flows}
    total = run.total_goodput_bps(run.measured_flows)
    jain = metrics.jain(run.goodputs_bps(first_kind(run.measured_flows)))
    figures = {NETWORK: {"goodput_bps": total, "jain": jain}}
    for found in (each for each in run.record["links"] if each["name"] == link):
        figures[NETWORK] |= {
            "utilization": found["utilization"],
            "loss_rate": link_loss_rate(found),
            "mark_rate": link_mark_rate(found),
            "queue_delay_s": found["delay"]["mean"],
            "queue_delay_p95_s": found["delay"]["p95"],
        }
    for group, names in groups.items():
        members = [flows[name] for name in names if name in flows]
        figures[group] = _group_figures(run, members, total) if members else {}
    return figures


def _group_figures(run: Result, flows: list[FlowRecord], total: float) -> dict[str, float]:
    """Return the figures of some flows together; ``total`` is the goodput of all flows."""
    goodput = run.total_goodput_bps(flows)
    windows = np.concatenate([_windows(run, flow) for flow in flows])
    rtts = np.array([flow["mean_rtt_s"] for flow in flows])
    rtts = rtts[np.isfinite(rtts)]
    return {
        "goodput_bps": goodput,
        "share": goodput / total if total > 0 else math.nan,
        "retransmission_rate": retransmission_rate_of(flows),
        **{
            name: float(np.quantile(windows, part)) if windows.size else math.nan
            for name, part in QUANTILES.items()
        },
        "mean_rtt_s": float(rtts.mean()) if rtts.size else math.nan,
    }


def _windows(run: Result, flow: FlowRecord) -> np.ndarray:
    """Return the window samples of a flow while it is active, without the warm-up."""
    start = max(run.warmup_s, flow["start_s"])
    here = (run.time >= start) & (run.time <= start + run.seconds(flow))
    window = flow["window"][here]
    return window[np.isfinite(window)]
