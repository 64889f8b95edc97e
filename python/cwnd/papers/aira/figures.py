"""Figures of the AIRA paper, redrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd.model.aira import one_flow
from cwnd.papers.aira_measures import KILO, column
from cwnd.papers.aira_networks import CHOICES
from cwnd.papers.aira_tables import HEADS, law_title
from cwnd.papers.figure import Curve, Figure, Panel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd.papers.aira_measures import Entry, Row
    from cwnd.records import Series


def table_1_figure(
    printed: Mapping[str, tuple[str, str, str]], rows: Mapping[tuple[str, int], Sequence[Row]]
) -> Figure:
    """Draw the retransmissions of Table 1 against a.

    Parameters
    ----------
    printed
        Goodput and retransmissions of 2 and of 4 flows as printed, by ``a = 2`` and so on.
    rows
        One for each seed, by the same names and the number of flows.
    """
    names = [name for name in printed if name.startswith("a")]
    x = [float(name[4:]) for name in names]
    panels = []
    for flows in (2, 4):
        measured = [column(rows[name, flows], "retransmissions") for name in names]
        published = [float(printed[name][flows // 2]) for name in names]
        curves = [
            Curve.of_means("measured", x, measured),
            Curve("published", x, published, "published"),
        ]
        axes = ("additive increase a, packets", "retransmissions, packets")
        panels.append(Panel(*axes, curves, f"{flows} flows"))
    return Figure("table-1", "Table 1: retransmissions against the increase", panels)


def increase_figure(
    name: str,
    title: str,
    time: Series,
    increases: Mapping[str, Series],
    spans: Iterable[tuple[float, float]],
) -> Figure:
    """Draw the additive increase of each flow over time.

    Parameters
    ----------
    name, title
        Of the figure.
    time
        Seconds.
    increases
        By the flow's label.
    spans
        From when to when each flow is there.
    """
    curves = []
    for (label, a), (begin, end) in zip(increases.items(), spans, strict=True):
        there = (time >= begin) & (time <= end)
        curves.append(Curve(label, time[there], a[there], "steps"))
    panel = Panel("time, s", "additive increase a, packets", curves, y_limits=(0, 1.05))
    return Figure(name, title, [panel])


def entry_figure(runs: Mapping[str, Entry]) -> Figure:
    """Draw the windows as the second and the third flow enter (Fig. 10, 11).

    Parameters
    ----------
    runs
        One run of each law, by its name.
    """
    panels = []
    for name, run in runs.items():
        for k, flow in ((1, "second"), (2, "third")):
            curves = []
            for i, window in enumerate(run.windows[: k + 1]):
                begin = max(50 * k - 5.0, run.starts[i])
                shown = (run.time >= begin) & (run.time <= 50 * k + 50)
                curves.append(Curve(f"flow {i + 1}", run.time[shown], window[shown]))
            panels.append(Panel("time, s", "window, packets", curves, f"{name}: the {flow} enters"))
    return Figure("fig-10-11", "Figures 10 and 11: windows as flows enter", panels)


def rounds_figure(runs: Mapping[tuple[int, int], tuple[Series, Series]]) -> Figure:
    """Draw data and time against rounds (Fig. 14).

    Parameters
    ----------
    runs
        By rate in Mb/s and delay in ms of the link: seconds and bytes at the end of each round.
    """
    data = Panel("rounds", "data, MB", title="(a) data", x_limits=(0, 100), y_limits=(0, 60))
    times = Panel("time, s", "rounds", title="(b) rounds", x_limits=(0, 60), y_limits=(0, 100))
    for color, ((rate, delay), (time, sent)) in enumerate(runs.items()):
        done, label = np.arange(1, time.size + 1), f"{rate} Mb/s, {delay} ms"
        data.curves.append(Curve(label, done, sent / KILO**2, color=color))
        times.curves.append(Curve(label, time, done, "steps", color=color))
        model = one_flow(100, rate * 1e6 / (8 * 1040), 2e-3 * (delay + 20), 15)
        modelled = model.packets * 1e3 / KILO**2
        data.curves.append(Curve("", np.arange(1, 101), modelled, color=color, dashed=True))
    data.curves.append(Curve("5 MB within 50 rounds", [50], [5], "published"))
    return Figure("fig-14", "Figure 14: file size, rounds and time", [data, times])


def deployment_figure(
    measures: Mapping[str, Mapping[str, Series]], sack: Mapping[str, int]
) -> Figure:
    """Draw what each of ten flows got and sent again (Fig. 20).

    Parameters
    ----------
    measures
        By what it is and by the mix of laws: a row a seed, a column a flow.
    sack
        How many of the flows, the first ones, are SACK in each mix.
    """
    panels = []
    for label, mixes in measures.items():
        top = 1.25 * max(float(found.max()) for found in mixes.values())
        for mix, found in mixes.items():
            points = []
            parts = (("SACK", slice(0, sack[mix])), ("AIRA", slice(sack[mix], 10)))
            for color, (law, part) in enumerate(parts):
                if found[:, part].size:
                    x, seeds = np.arange(1, 11)[part], found[:, part].T
                    points.append(Curve.of_means(law, x, seeds, "points", color=color))
            panels.append(Panel("flow", label, points, mix, y_limits=(0, top)))
    return Figure("fig-20", "Figure 20: deployability", panels, columns=3)


def rows_figure(
    name: str,
    title: str,
    printed: Mapping[str, Mapping[str, str]],
    rows: Mapping[str, Sequence[Row]],
) -> Figure:
    """Draw a table of two laws: each figure's seeds, and what is printed.

    Parameters
    ----------
    name, title
        Of the figure.
    printed
        The figures of each law, as printed.
    rows
        What was measured of each law, one a seed.
    """
    panels = []
    for figure, head in HEADS.items():
        measured = Curve.of_means(
            "measured", range(len(printed)), [column(rows[law], figure) for law in printed]
        )
        measured.kind = "points"
        values = [float(figures[figure]) for figures in printed.values()]
        most = max([*values, *np.asarray(measured.y, dtype=float).tolist()])
        panels.append(
            Panel(
                "",
                head,
                [measured, Curve("published", range(len(printed)), values, "published")],
                ticks=[law_title(law) for law in printed],
                x_limits=(-0.5, len(printed) - 0.5),
                y_limits=(0, 1.35 * most),
            )
        )
    return Figure(name, f"{title}: published and measured", panels)


def sweep_figure(
    name: str,
    title: str,
    sizes: Sequence[int],
    rows: Mapping[tuple[str, int], Sequence[Row]],
) -> Figure:
    """Draw the four figures against the number of flows.

    Parameters
    ----------
    name, title
        Of the figure.
    sizes
        The numbers of flows.
    rows
        One for each seed, by law and number of flows.
    """
    laws = list(dict.fromkeys(law for law, _ in rows))
    rates = [rate for found in rows.values() for rate in column(found, "goodput")]
    limits = {
        "goodput": (0.97 * min(rates), 1.01 * max(rates)),
        "fairness": (0.0, 1.05),
        "alpha": (0.0, 1.05),
    }
    return Figure(
        name,
        title,
        [
            Panel(
                "flows",
                head,
                [
                    Curve.of_means(
                        law_title(law), sizes, [column(rows[law, n], figure) for n in sizes]
                    )
                    for law in laws
                ],
                title=f"({letter}) {head.partition(',')[0]}",
                y_limits=limits.get(figure),
            )
            for letter, (figure, head) in zip("abcd", HEADS.items(), strict=True)
        ],
    )


def sensitivity_figure(
    name: str, title: str, rows: Mapping[str, Mapping[str, Sequence[Row]]], choices: Sequence[str]
) -> Figure:
    """Draw fairness and retransmissions against free choices, as ratios to the paper's.

    Parameters
    ----------
    name, title
        Of the figure.
    rows
        One for each seed, by scenario and specification.
    choices
        What is chosen: some of `CHOICES`.
    """
    panels = []
    for figure in ("fairness", "retransmissions"):
        for what in choices:
            paper, laws = CHOICES[what]
            curves = []
            for scenario, found in rows.items():
                base = np.array(column(found[paper], figure))
                ratios = [np.array(column(found[law], figure)) / base for law in laws.values()]
                curves.append(Curve.of_means(scenario, np.arange(len(laws)), ratios))
            label = f"{figure} over the paper's choice"
            panels.append(Panel(what, label, curves, ticks=list(laws), y_limits=(0, 2.2)))
    return Figure(name, title, panels, columns=len(choices))
