"""Sections 6.3 to 7: the reset condition, and AIRA sharing a link with SACK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.aira import measures
from cwnd._papers.aira import networks as net
from cwnd._papers.aira.claims import by_option, column, increase_figure
from cwnd._papers.aira.measures import LEAVE, growth, per_flow
from cwnd._papers.aira.networks import AIMD, BOUNDED, FULL
from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import alike, at_least, at_most, fact, less
from cwnd.model.aira import extra_time, mail, total_time
from cwnd.stats import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cwnd._papers.aira.measures import Reset
    from cwnd._papers.grades import Grade


@exhibit("fig-18", cost=1, seeds=(10, 40), quick=(5, 10))
def fig_18(lab: Lab) -> None:
    """Durations of 0.3 and 1.3 rounds of a flow with its own a, checked in the simulator."""
    factors = (1.0, 0.5, 0.2)
    cases = {a: net.contention(net.fixed(a), leave=2) for a in factors}
    runs = {a: np.array(found) for a, found in lab.run(cases, growth).items()}
    at_10 = float(total_time(mail(10)))
    lab.claim("two-rounds", fact(f"{at_10:.3g} rounds after 10 rounds", holds=at_10 < 2))
    for a, found in runs.items():
        extra_rounds = found[:, 0] / found[:, 1]
        lab.number("extra", extra_rounds, a=f"{a:g}")
        lab.claim("total", at_most(2, 1 + extra_rounds), a=f"{a:g}")
        if a < 1:
            lab.claim("later", less(runs[1.0][:, 1], found[:, 1]), a=f"{a:g}")
            lab.claim("longer", alike(found[:, 1], runs[1.0][:, 1] / a), a=f"{a:g}")
    rounds_needed = np.asarray(total_time(mail(np.arange(101))))
    words = f"from {rounds_needed[0]:.3g} to {rounds_needed[-1]:.3g} rounds"
    lab.claim("extra-rise", fact(words, holds=bool(np.all(np.diff(rounds_needed) > 0))))
    ratios = [steps(a, w, 1.5 * w) / steps(a, w / 2, w) for a in factors for w in (10.0, 100.0)]
    words = f"{min(ratios):.3g} to {max(ratios):.3g} rounds"
    lab.claim("linear", fact(words, holds=min(ratios) >= 0.95 and max(ratios) <= 1.05))
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


@exhibit("fig-19", cost=5, seeds=(40, 40), quick=(20, 20))
def fig_19(lab: Lab) -> None:
    """Remaining flows reset a to 1."""
    # One trial has no reset condition anyway.
    without = FULL if BOUNDED in lab.trial.laws.values() else BOUNDED
    both = lab.run({law: net.contention(law, leave=2) for law in (FULL, without)}, measures.reset)
    runs = both[FULL]
    rows = by_option(lab, [run.traced.row for run in runs])
    lab.claim("wait", two_rounds(lab, runs))
    lab.claim("level", at_least(0.9, [min(run.levels) for run in runs], UNIT))
    lab.claim("fails", at_least(2, [min(run.waits) for run in both[without]]))
    lab.claim("stable-loss", alike(*zip(*(run.losses[::-1] for run in runs), strict=True)))
    lab.claim("stabilised", at_most(0.1, [max(run.spreads) for run in runs]))
    # Printed row of AIRA in Table 3.
    for name, printed in (("goodput", 227.1), ("retransmissions", 748.0), ("fairness", 0.85)):
        lab.claim("as-table-3", alike(column(rows, name), printed), quantity=name)
    labels = [f"flow {k + 1}" for k in range(4)]
    spans = [(50.0 * k + 1, 300.0 if k < 2 else LEAVE) for k in range(4)]
    lab.show(increase_figure("Two of four flows leave", runs[0].traced, labels, spans))


@exhibit("footnote-5", cost=3, seeds=(40, 40), quick=(10, 10))
def footnote_5(lab: Lab) -> None:
    """Flows reset a when a third of all flows leaves, and not when fewer leave."""
    cases = {n: net.contention(FULL, flows=n, leave=1) for n in (3, 4)}
    runs = lab.run(cases, measures.reset)
    lab.number("reaches", [float(np.mean(run.peaks)) for run in runs[3]])
    lab.claim("wait", two_rounds(lab, runs[3]))
    lost = [float(np.mean(np.array(run.first) < 1.5)) for run in runs[3]]
    lab.claim("loses-first", at_least(0.5, lost, UNIT))
    fewer, third = ([sum(wait <= 2 for wait in run.waits) / 2 for run in runs[n]] for n in (4, 3))
    lab.claim("only-then", less(fewer, third))
    heads = [
        "one leaves, of",
        "rounds until a is 1",
        "mean a from 210 s on",
        "window at cuts over W",
    ]
    means = {
        (n,): [np.mean([run.waits, run.levels, run.peaks], axis=1).tolist() for run in found]
        for n, found in runs.items()
    }
    lab.means(heads, means)


@exhibit("fig-20", cost=8, seeds=(5, 10))
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
    if not lab.trial.text:
        _similar(lab, groups)
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


def _similar(lab: Lab, groups: Mapping[str, dict[str, int]]) -> None:
    """Repeat the claims of section 7 on another network of the paper."""
    cases = {name: net.deployment(group, large=True) for name, group in groups.items()}
    found = lab.run(cases, per_flow)
    goodput, again = (
        {name: np.array([run[k] for run in found[name]]) for name in found} for k in (0, 1)
    )
    sack, aira, mixed = (goodput[name] for name in groups)
    alone = sack.mean(axis=1)
    for what, grade in (
        ("AIRA alone has more goodput than SACK alone", less(alone, aira.mean(axis=1))),
        (
            "AIRA alone retransmits less than SACK alone",
            less(*(again[name].mean(axis=1) for name in ("10 AIRA", "10 SACK"))),
        ),
        ("SACK keeps its goodput beside AIRA", alike(mixed[:, :5].mean(axis=1), alone)),
        (
            "AIRA beside SACK has more goodput than SACK alone",
            less(alone, mixed[:, 5:].mean(axis=1)),
        ),
    ):
        lab.claim("similar", grade, what=what)


def steps(increase: float, low: float, high: float) -> float:
    """Return the steps (windows of ACKs) in which Eq. 1 takes the window from low to high."""
    window, count = low, 0.0
    while window < high:
        count += 1 / window
        window += increase / window
    return count


def two_rounds(lab: Lab, runs: Iterable[Reset]) -> Grade:
    """Grade the claim that flows 1 and 2 reset a within two rounds: in the mean, or the median."""
    waits = [max(run.waits) for run in runs]
    if lab.option("wait", "mean") == "median":
        return at_least(0.5, [float(wait <= 2) for wait in waits], UNIT)
    return at_most(2, waits)
