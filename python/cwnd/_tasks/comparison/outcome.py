"""Result of a comparison of controllers: figures, verdicts, tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cwnd import _show
from cwnd._base.extras import require
from cwnd._base.files import write_text
from cwnd._runs.goodput_limit import range_within
from cwnd._runs.result import jsonable
from cwnd._tasks.comparison.verdict import Figures, Verdict, judge
from cwnd.stats import Estimate, estimate, estimate_ratio
from cwnd.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from cwnd._base.records import JsonObject
    from cwnd._runs.networks import NetworkSummary
    from cwnd._runs.result import Result


@dataclass(frozen=True)
class Row:
    """The figures of one controller, alone or against another one."""

    controller: str
    repeats: list[dict[str, float]]
    """The figures by name, one dictionary for each repeat."""
    results: list[Result]
    turns: int = 1
    """Number of repeats that balance the paths: 2 if controllers alternate between the paths."""
    goodput_limit: float = math.inf
    """Rate that no goodput exceeds, in bit/s."""
    against: str = ""
    """The other controller, which has the reference's figures in ``repeats``; empty alone."""

    @cached_property
    def figures(self) -> dict[str, Estimate]:
        """Mean and interval of each figure, by name."""
        return {
            name: estimate(self._independent(name), range_within(name, self.goodput_limit))
            for name in self.repeats[0]
        }

    def _independent(self, name: str) -> list[float]:
        """Return the mean of a figure over each group of repeats that balances the paths."""
        values = np.array(self.values(name)).reshape(-1, self.turns)
        return [float(mean) for mean in values.mean(axis=1)]

    def values(self, name: str) -> list[float]:
        """Return a figure of each repeat; NaN if unknown."""
        return [repeat.get(name, math.nan) for repeat in self.repeats]

    def to_json(self) -> JsonObject:
        """Return the row as plain data."""
        return {"controller": self.controller} | {
            name: figure.to_json() | {"values": self.values(name)}
            for name, figure in self.figures.items()
        }


@dataclass(frozen=True)
class Comparison:
    """Result of ``compare``.

    Attributes
    ----------
    network
        The requested network, and quantities derived from it.
    reference
        Specification of the reference.
    rows_alone, rows_against
        One row for each controller. The reference always has a row in ``rows_alone``.
    rows_pairs
        One row for each pair of controllers without the reference; empty unless asked for.
    measures
        Names of the further metrics, which the rows have as figures.
    rerun
        The command that repeats the comparison; empty if there is none.
    no_rerun
        Reason why ``rerun`` is empty.
    """

    network: NetworkSummary
    reference: str
    rows_alone: list[Row]
    rows_against: list[Row]
    rows_pairs: list[Row]
    measures: list[str]
    rerun: str = ""
    no_rerun: str = ""

    @cached_property
    def alone(self) -> pd.DataFrame:
        """Each controller alone: mean, low and high of each figure, one row per controller."""
        return _frame(self.rows_alone)

    @cached_property
    def against(self) -> pd.DataFrame:
        """Each controller against the reference: mean, low and high of each figure."""
        return _frame(self.rows_against)

    @cached_property
    def share_of(self) -> dict[tuple[str, str], Estimate]:
        """Share of a flow of the first controller, against a flow of the second, by pair."""
        found = {}
        for row in [*self.rows_against, *self.rows_pairs]:
            share = row.figures["share"]
            found[row.against, row.controller] = Estimate(
                1 - share.mean, 1 - share.high, 1 - share.low, share.n
            )
            found[row.controller, row.against] = share
        return found

    @cached_property
    def shares(self) -> pd.DataFrame:
        """Share of the row's controller against the column's: mean, low and high."""
        require("A frame of a comparison", "pandas")
        import pandas as pd

        names = [row.controller for row in self.rows_alone]
        unknown = estimate([])
        return pd.DataFrame(
            {
                (other, part): [
                    getattr(self.share_of.get((name, other), unknown), part) for name in names
                ]
                for other in names
                for part in ("mean", "low", "high")
            },
            index=pd.Index(names, name="controller"),
        )

    @property
    def results(self) -> list[Result]:
        """All runs."""
        rows = [*self.rows_alone, *self.rows_against, *self.rows_pairs]
        return [run for row in rows for run in row.results]

    def __repr__(self) -> str:
        names = ", ".join(row.controller for row in self.rows_against)
        return f"<Comparison of {names} with {self.reference}: {counted(len(self.results), 'run')}>"

    def _repr_html_(self) -> str | None:
        return _show.notebook.comparison_html(self)

    def summary(self) -> pd.DataFrame:
        """Return the verdicts and the main means, in readable units: ten columns."""
        return _show.notebook.summarize_comparison(self)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """One verdict for each controller, in the order of ``rows_against``."""
        alone = {row.controller: row for row in self.rows_alone}
        return [
            judge(
                row.controller,
                self.reference,
                self._evidence(row, alone[row.controller], alone[self.reference]),
            )
            for row in self.rows_against
        ]

    @property
    def undecided(self) -> list[str]:
        """Undecided parts of the verdicts, such as ``fairness of simd``."""
        return [
            f"{subject} of {verdict.controller}"
            for verdict in self.verdicts
            for subject in ("fairness", "smoothness", "queue")
            if getattr(verdict, subject) == "undecided"
        ]

    def _evidence(self, against: Row, alone: Row, reference: Row) -> Figures:
        """Collect the figures that a verdict depends on."""
        delay, rate = alone.figures["queue_delay_s"], self.network["rate_bps"]
        in_bytes = self.network["queue_limit_unit"] == "bytes"
        limit = self.network["queue_limit"]
        longest = (
            8 * limit / (rate or math.inf)
            if in_bytes
            else self.network["rtt_s"] * limit / self.network["bdp_packets"]
        )
        return Figures(
            share=against.figures["share"],
            roughness=estimate_ratio(alone.values("cov_10rtt"), reference.values("cov_10rtt")),
            queue=estimate_ratio(alone.values("queue_delay_s"), reference.values("queue_delay_s")),
            delay_s=delay,
            fill=delay.mean / longest if 0 < longest < math.inf else math.nan,
            limits={
                cause: alone.figures[f"limited_{cause}"].mean
                for cause in ("receiver", "application")
                if alone.figures[f"limited_{cause}"].mean > 0.05
            },
        )

    def plot(self, *, column: bool = False, panel: str | None = None) -> Figure:
        """Draw the comparison in panels.

        Parameters
        ----------
        column
            Whether the size is that of a journal's column, 3.5 inches wide.
        panel
            Only this panel: ``verdicts`` (fairness, smoothness and queue), ``delay`` (goodput
            against delay), ``shares`` (the matrix of all pairs) or ``windows`` (one flow of each
            controller over time). By default all, ``shares`` only after ``pairs=True``.

        Returns
        -------
        matplotlib.figure.Figure
            Show it in a notebook, or save it with ``savefig``.

        Raises
        ------
        ArgumentError
            ``panel`` is none of these.
        """
        return _show.plots.plot_comparison(self, column=column, panel=panel)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page with the verdict, tables and interactive plots.

        Parameters
        ----------
        path
            The file to write.
        """
        write_text(path, _show.report.compare.compare_page(self))

    def trace(self, directory: str | Path) -> list[Path]:
        """Write the figures of every repeat, its flows and its links as Parquet or CSV.

        Parameters
        ----------
        directory
            Output directory; created if missing. The tables are CSV files if its name ends in
            ``.csv``.

        Returns
        -------
        list of Path
            The files; see `cwnd.tables.write_comparison`.
        """
        from cwnd.tables import write_comparison

        return write_comparison(self, directory)

    def to_json(self) -> JsonObject:
        """Return the figures as plain data, unknown ones as None; see docs/json.md."""
        return jsonable(
            {
                "network": self.network,
                "reference": self.reference,
                "alone": [row.to_json() for row in self.rows_alone],
                "against": [row.to_json() for row in self.rows_against],
                "pairs": [row.to_json() | {"against": row.against} for row in self.rows_pairs],
                "verdicts": [verdict.to_json() for verdict in self.verdicts],
                "rerun": self.rerun or None,
                "no_rerun": self.no_rerun or None,
            }
        )


def _frame(rows: list[Row]) -> pd.DataFrame:
    """Convert rows to a frame: mean, low and high of each figure."""
    require("A frame of a comparison", "pandas")
    import pandas as pd

    from cwnd._runs.data_frames import FIGURES, show_columns

    frame = pd.DataFrame(
        {
            (name, part): [getattr(row.figures[name], part) for row in rows]
            for name in rows[0].figures
            for part in ("mean", "low", "high")
        },
        index=pd.Index([row.controller for row in rows], name="controller"),
    )
    return show_columns(frame, FIGURES)
