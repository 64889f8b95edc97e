"""Sections 6.3 to 7: the reset condition, and AIRA sharing a link with SACK."""

from __future__ import annotations

import numpy as np

from cwnd.model.aira import extra_time, mail, total_time
from cwnd.papers.aira import measures
from cwnd.papers.aira import networks as net
from cwnd.papers.aira.claims import column, increase_figure
from cwnd.papers.aira.measures import LEAVE, growth, per_flow
from cwnd.papers.aira.networks import AIMD, FULL
from cwnd.papers.exhibit import Lab, exhibit
from cwnd.papers.figure import Curve, Figure, Panel
from cwnd.papers.grades import alike, at_least, at_most, fact, less
from cwnd.stats import UNIT


@exhibit("fig-18", cost=0.5, seeds=(10, 40), quick=(5, 10))
def fig_18(lab: Lab) -> None:
    """Durations of 0.3 and 1.3 rounds of a flow with its own a, checked in the simulator."""
    factors = (1.0, 0.5, 0.2)
    cases = {a: net.contention(f"aimd(alpha={a:g}, beta=1/2)", leave=True) for a in factors}
    runs = {a: np.array(found) for a, found in lab.run(cases, growth).items()}
    at_10 = float(total_time(mail(10)))
    lab.claim("two-rounds", fact(f"{at_10:.3g} rounds after 10 rounds", holds=at_10 < 2))
    for a, found in runs.items():
        extra_rounds = found[:, 0] / found[:, 1]
        lab.number("extra", extra_rounds, a=f"{a:g}")
        lab.claim("total", at_most(2, 1 + extra_rounds), a=f"{a:g}")
    first = runs[1.0][:, 1].mean()
    by_a, done = np.linspace(0.1, 1, 91), np.arange(101)
    measured = [runs[factor][:, 0] / first for factor in factors]
    extra = [
        Curve("T, Eq. 24", by_a, extra_time(by_a)),
        Curve.of_means("measured", factors, measured, "points"),
    ]
    total = [Curve("TotalT, Eq. 25", by_a, total_time(by_a))]
    by_round = [Curve("1.3/MAIL", done, total_time(mail(done)))]
    increase, rounds = "additive increase a, packets", "rounds of a flow with a = 1"
    panels = [
        Panel(increase, rounds, extra, "(a) extra time"),
        Panel(increase, rounds, total, "(b) total time"),
        Panel("rounds completed, with a = MAIL", rounds, by_round, "(c) total time by round"),
    ]
    lab.show(Figure("Time to use freed bandwidth", panels, columns=3))


@exhibit("fig-19", cost=0.4, seeds=(40, 40), quick=(20, 20))
def fig_19(lab: Lab) -> None:
    """Remaining flows reset a to 1."""
    runs = lab.run({FULL: net.contention(FULL, leave=True)}, measures.reset)[FULL]
    rows = [run.traced.row for run in runs]
    lab.claim("wait", at_most(2, [max(run.waits) for run in runs]))
    lab.claim("level", at_least(0.9, [min(run.levels) for run in runs], UNIT))
    # Printed row of AIRA in Table 3.
    for name, printed in (("goodput", 227.1), ("retransmissions", 748.0), ("fairness", 0.85)):
        lab.claim("as-table-3", alike(column(rows, name), printed), quantity=name)
    labels = [f"flow {k + 1}" for k in range(4)]
    spans = [(50.0 * k + 1, 300.0 if k < 2 else LEAVE) for k in range(4)]
    lab.show(increase_figure("Two of four flows leave", runs[0].traced, labels, spans))


@exhibit("fig-20", cost=1, seeds=(5, 10))
def fig_20(lab: Lab) -> None:
    """AIRA does not reduce the goodput of SACK."""
    groups = {"10 SACK": {AIMD: 10}, "10 AIRA": {FULL: 10}, "5 SACK and 5 AIRA": {AIMD: 5, FULL: 5}}
    found = lab.run({name: net.deployment(group) for name, group in groups.items()}, per_flow)
    # By mix: one row per run, one column per flow.
    goodput, again = (
        {name: np.array([run[k] for run in runs]) for name, runs in found.items()} for k in (0, 1)
    )
    heads = ("goodput, KB/s", "retransmissions, packets")
    cells = {
        name: dict(zip(heads, (goodput[name].mean(axis=1), again[name].mean(axis=1)), strict=True))
        for name in groups
    }
    lab.cells("rows", cells)
    lab.cells("ns-2", {"10 SACK in ns-2": cells["10 SACK"]}, kind="ns-2")
    rate, sent = ([cells[name][head] for name in groups] for head in heads)
    mixed = goodput["5 SACK and 5 AIRA"]
    lab.claim("delivers-more", less(rate[0], rate[1]))
    lab.claim("retransmits-less", less(sent[1], sent[0]))
    lab.claim("sack-keeps", alike(mixed[:, :5].mean(axis=1), rate[0]))
    lab.claim("aira-beside", less(rate[0], mixed[:, 5:].mean(axis=1)))
    panels = []
    for head, measured in zip(heads, (goodput, again), strict=True):
        top = 1.25 * max(float(values.max()) for values in measured.values())
        for name, group in groups.items():
            sack = group.get(AIMD, 0)
            flows = (("SACK", range(sack)), ("AIRA", range(sack, 10)))
            points = [
                Curve.of_means(
                    law, [k + 1 for k in part], measured[name][:, part].T, "points", color=color
                )
                for color, (law, part) in enumerate(flows)
                if part
            ]
            panels.append(Panel("flow", head, points, name, y_limits=(0, top)))
    lab.show(Figure("Goodput and retransmissions of each flow", panels, columns=3))
