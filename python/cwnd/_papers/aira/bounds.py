"""Sections 6.1 and 6.2: lower bounds of the additive increase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.aira import networks as net
from cwnd._papers.aira.claims import (
    COLUMNS,
    column,
    increase_figure,
    mean_rows,
    orders,
    sweep_figure,
    table_cells,
)
from cwnd._papers.aira.measures import KILO, by_round, progress, row, short_and_long, traced
from cwnd._papers.aira.networks import AIMD, BOUNDED, FULL, RULES
from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import at_least, at_most, fact, less
from cwnd.model.aira import mail, one_flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._papers.aira.measures import Traced

LAWS = {"AIMD": AIMD, "AIRA": BOUNDED}


@exhibit("fig-13", cost=0.2)
def fig_13(lab: Lab) -> None:
    """MAIL falls from 1 to 0.1 in 100 rounds; until then it is the lower bound of a."""
    laws = {"a with MAIL": BOUNDED, "a without bounds": RULES}
    cases = {name: net.lossy(law, 0.05) for name, law in laws.items()}
    runs = lab.run(cases, by_round, seeds=lab.pick(5, 3))
    lab.number("at-100", float(mail(100)))
    lab.number("greatest", 1 - float(mail(10**6)))
    least = min(float(np.min(a - mail(np.arange(a.size)))) for a in runs["a with MAIL"])
    lab.claim("never-below", fact(f"a - MAIL is at least {least:.3g}", holds=least >= -1e-9))
    rounds = np.arange(151)
    curves = [Curve("MAIL, Eq. 23", rounds, mail(rounds))]
    for name, (a, *_) in runs.items():
        curves.append(Curve(f"{name}, 5 % loss", rounds[: a.size], a[: rounds.size], "steps"))
    panel = Panel("rounds completed", "additive increase a, packets", curves, y_limits=(0, 1.05))
    lab.show(Figure("Minimum additive increase limit", [panel]))


@exhibit("fig-14", cost=0.5)
def fig_14(lab: Lab) -> None:
    """One flow transfers 5 MB."""
    size, rates = 5 * KILO**2, lab.pick((1, 2, 5, 10), (1, 10))
    cases = {(r, d): net.alone(BOUNDED, r, d) for r in rates for d in (10, 50)}
    runs = lab.run(cases, progress)
    # The round in which the file ends is included.
    rounds = [
        [1 + np.searchsorted(data[:-1], size) for _, data in found] for found in runs.values()
    ]
    seconds = [[np.interp(size, data, time) for time, data in found] for found in runs.values()]
    # On the longest paths the run ends before the 100th round.
    at_100 = [
        [data[99] / KILO**2 for _, data in found]
        for found in runs.values()
        if min(data.size for _, data in found) > 100
    ]
    lab.claim("rounds", at_most(50, np.max(rounds, axis=0)))
    lab.claim("seconds", at_most(50, np.max(seconds, axis=0)))
    lab.claim("ten-mb", at_least(10, np.min(at_100, axis=0)))
    mixed = lab.run({law: net.short_and_long(law) for law in (AIMD, BOUNDED)}, short_and_long)
    short, long = zip(*mixed[BOUNDED], strict=True)
    lab.claim("short-faster", less(long, short))
    aimd, aira = ([one / others for one, others in mixed[law]] for law in (AIMD, BOUNDED))
    lab.claim("favours-short", less(aimd, aira))
    data_panel = Panel("rounds", "data, MB", [], "(a) data", x_limits=(0, 100), y_limits=(0, 60))
    time_panel = Panel("time, s", "rounds", [], "(b) rounds", x_limits=(0, 60), y_limits=(0, 100))
    for color, ((rate, delay), ((time, data), *_)) in enumerate(runs.items()):
        label, done = f"{rate} Mb/s, {delay} ms", np.arange(1, time.size + 1)
        model = one_flow(100, rate * 1e6 / (8 * 1040), 2e-3 * (delay + 20), 15)
        modelled = model.packets * 1e3 / KILO**2
        data_panel.curves += [
            Curve(label, done, data / KILO**2, color=color),
            Curve("", np.arange(1, 101), modelled, color=color, dashed=True),
        ]
        time_panel.curves.append(Curve(label, time, done, "steps", color=color))
    data_panel.curves.append(Curve("5 MB within 50 rounds", [50], [5], "published"))
    lab.show(Figure("Data, rounds and time of one flow", [data_panel, time_panel]))


@exhibit("table-4", cost=4, seeds=(20, 20), quick=(10, 10))
def table_4(lab: Lab) -> None:
    """With MAIL, flows with a long RTT have a larger increase."""
    laws = {**LAWS, "AIRA without MAIL": "aira(mail=off, reset=off)", "AIRA, all rules": FULL}
    runs = lab.run({name: net.diverse(law) for name, law in laws.items()}, traced)
    rows = {name: [run.row for run in found] for name, found in runs.items()}
    table_cells(lab, rows)
    orders(lab, rows["AIMD"], rows["AIRA"])
    _far_increase(lab, runs["AIRA"])
    fairness = (column(rows[law], "fairness") for law in ("AIRA without MAIL", "AIRA"))
    lab.claim("mail", less(*fairness))
    labels = [f"flow {k}, {60 if k < 3 else 220} ms" for k in (1, 2, 3, 4)]
    title = "Additive increase with RTTs of 60 and 220 ms (Figure 16)"
    lab.show(increase_figure(title, runs["AIRA"][0], labels, [(1.0, 300.0)] * 4))


@exhibit("fig-17", cost=20, seeds=(5, 10))
def fig_17(lab: Lab) -> None:
    """Table 4's claims with more flows."""
    sizes = lab.pick((8, 20, 40, 60, 100), (8, 60))
    cases = {(name, n): net.many(law, n) for n in sizes for name, law in LAWS.items()}
    rows = lab.run(cases, row)
    orders(lab, mean_rows(rows, "AIMD"), mean_rows(rows, "AIRA"))
    few, most = (column(rows["AIRA", n], "alpha") for n in (sizes[0], sizes[-1]))
    lab.claim("alpha-falls", less(most, few))
    lab.show(sweep_figure("Flows with RTTs of 60 and 220 ms", rows))


@exhibit("red", cost=1)
def red(lab: Lab) -> None:
    """Section 6.2 with RED: Table 4's network, and Figure 17's with 20 flows."""
    cases = {}
    for name, law in LAWS.items():
        cases[name, 4] = net.diverse(law, queue={"kind": "red", "limit": "5p"})
        cases[name, 20] = net.many(law, 20, queue={"kind": "red", "limit": "50p"})
    runs = lab.run(cases, traced)
    rows = {case: [run.row for run in found] for case, found in runs.items()}
    for flows in (4, 20):
        orders(lab, rows["AIMD", flows], rows["AIRA", flows], flows=flows)
        _far_increase(lab, runs["AIRA", flows], flows=flows)
    means = {case: [[run[k] for k in COLUMNS] for run in found] for case, found in rows.items()}
    lab.means(["", "flows", *(head for head, _ in COLUMNS.values())], means)


def _far_increase(lab: Lab, runs: Sequence[Traced], **of: object) -> None:
    """Claim that the mean increase of the flows at 220 ms, the second half, is the larger one."""
    half = len(runs[0].increases) // 2
    near = [float(np.nanmean(run.increases[:half])) for run in runs]
    far = [float(np.nanmean(run.increases[half:])) for run in runs]
    lab.claim("far-increase", less(near, far), **of)
