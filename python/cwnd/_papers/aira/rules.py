"""Sections 3 to 5: the cost of the additive increase, and the decrease and increase rules."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cwnd._papers.aira import networks as net
from cwnd._papers.aira.claims import (
    by_option,
    column,
    increase_figure,
    mean_rows,
    orders,
    sweep_figure,
    table_cells,
)
from cwnd._papers.aira.measures import contended, entry, row
from cwnd._papers.aira.networks import AIMD, DECREASE, FULL, RULES
from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import alike, at_least, at_most, fact, less
from cwnd._papers.text import read_text
from cwnd.stats import UNIT

FLOWS = (2, 4)
CROWD = 32
"""Flows of Table 1's network beyond the printed numbers: more than packets in its buffer."""


@exhibit("table-1", cost=6, seeds=(10, 40), quick=(5, 10))
def table_1(lab: Lab) -> None:
    """Retransmissions depend on the increase a, goodput does not."""
    printed = lab.text.printed["rows"]
    cases = {}
    for name in printed.rows:
        delayed = name == "delayed ACKs"
        law = AIMD if delayed or name == "a = 1" else net.fixed(float(name[4:]))
        for flows in FLOWS:
            cases[name, flows] = net.table_1(law, flows, delayed_acks=delayed)
    cases["a = 1", CROWD] = net.table_1(AIMD, CROWD)
    runs = lab.run(cases, row)
    heads = {flows: f"{flows} flows, packets" for flows in FLOWS}
    counts = {case: column(found, "retransmissions") for case, found in runs.items()}
    again = {name: {heads[n]: counts[name, n] for n in FLOWS} for name in printed.rows}
    # One column is printed for both numbers of flows.
    both = {
        name: [column(runs[name, flows], "goodput") for flows in FLOWS] for name in printed.rows
    }
    goodput = {name: {"goodput, KB/s": np.mean(both[name], axis=0)} for name in printed.rows}
    lab.cells("rows", {name: goodput[name] | again[name] for name in printed.rows})
    lab.cells("ns-2", {f"{name} in ns-2": by for name, by in again.items()}, kind="ns-2")
    ladder = [name for name in printed.rows if name.startswith("a = ")]
    for flows in FLOWS:
        for more, fewer in pairwise(ladder):
            order = less(counts[fewer, flows], counts[more, flows])
            lab.claim("order", order, flows=flows, more=more, fewer=fewer)
        fast, slow = (column(runs[name, flows], "goodput") for name in ("a = 2", "a = 0.2"))
        lab.claim("no-gain", alike(fast, slow), flows=flows)
    ratios = [np.divide(counts[name, 4], counts[name, 2]) for name in printed.rows]
    lab.number("doubled-load", 100 * (np.mean(ratios, axis=0) - 1))
    for name in ladder:
        two, four = (column(runs[name, flows], "goodput") for flows in FLOWS)
        lab.claim("zero-gain", alike(four, two), increase=name)
    for key, quantity in (("degrades", "goodput"), ("expirations", "timeouts")):
        four, crowd = (column(runs["a = 1", flows], quantity) for flows in (4, CROWD))
        lab.claim(key, less(crowd, four) if key == "degrades" else less(four, crowd))


@exhibit("fig-1", cost=0.2, seeds=(10, 40), quick=(5, 10), beside="table-1")
def fig_1(lab: Lab) -> None:
    """With half the increase half as many congestion events, on Table 1's network."""
    laws = {1.0: AIMD, 0.5: net.fixed(0.5)}
    cases = {(a, n): net.table_1(law, n) for a, law in laws.items() for n in FLOWS}
    runs = lab.run(cases, row)
    events, again = (
        {case: np.array(column(found, name)) for case, found in runs.items()}
        for name in ("events", "retransmissions")
    )
    for n in FLOWS:
        lab.number("events", events[1.0, n] / events[0.5, n], flows=n)
        lab.number("retransmissions", again[1.0, n] / again[0.5, n], flows=n)
        lost = (again[a, n] / events[a, n] for a in (1.0, 0.5))
        lab.claim("fixed-loss", alike(*lost), flows=n)
    lab.claim("frequency", less(events[1.0, 2] / 2, events[1.0, 4] / 4))
    printed = read_text("aira").exhibits["table-1"].printed["rows"].rows
    rows = zip(printed["a = 1"][1:], printed["a = 0.5"][1:], strict=True)
    ratios = [float(one) / float(half) for one, half in rows]
    words = " and ".join(f"{ratio:.3g}" for ratio in ratios)
    lab.claim("table-1", fact(words, holds=max(ratios) < 1.7))
    means = {case: np.stack((events[case], again[case]), axis=1).tolist() for case in runs}
    lab.means(["a", "flows", "congestion events", "retransmissions"], means)


@exhibit("fig-9", cost=0.3, seeds=(10, 40), quick=(5, 10))
def fig_9(lab: Lab) -> None:
    """Measure how far a falls for each new flow, from 1, below that of earlier flows."""
    found = lab.run({RULES: net.contention(RULES)}, contended)[RULES]
    runs = [run.traced for run in found]
    ends = (49.0, 99.0, 149.0, 199.0)
    at = np.array([[[run.at(k, end) for k in range(4)] for end in ends] for run in runs])
    newcomers = np.mean([1 - at[:, k, k] for k in (1, 2, 3)], axis=0)
    others = np.mean([(at[:, k - 1, :k] - at[:, k, :k]).mean(axis=1) for k in (1, 2, 3)], axis=0)
    lab.claim("alone", at_least(0.95, at[:, 0, 0], UNIT))
    lab.claim("falls", less(at[:, 3, 0], at[:, 0, 0]))
    lab.claim("newcomers-fall-further", less(others, newcomers))
    early, late = zip(*(run.alone for run in found), strict=True)
    lab.claim("low-loss", at_most(0.05, np.mean([early, late], axis=0), UNIT))
    lab.claim("fixed-loss", alike(late, early))
    for n in (2, 3, 4):
        lab.claim(
            "losses-rise",
            less(*([run.losses[k] for run in found] for k in (n - 2, n - 1))),
            flows=n,
        )
    labels = [f"flow {k + 1}" for k in range(4)]
    spans = [(50.0 * k + 1, 300.0) for k in range(4)]
    lab.show(increase_figure("Additive increase as flows enter", runs[0], labels, spans))


@exhibit("fig-10-11", cost=4, seeds=(20, 40), quick=(5, 10))
def fig_10_11(lab: Lab) -> None:
    """Flows enter as fast as with AIMD; fairness recovers; cuts are less synchronised."""
    runs = lab.run({law: net.contention(law) for law in (RULES, AIMD, DECREASE)}, entry)
    aira, aimd = runs[RULES], runs[AIMD]
    for k, flow in enumerate(("second", "third")):
        delivered = ([run.delivered[k] for run in found] for found in (aira, aimd))
        lab.claim("as-fast", alike(*delivered), flow=flow)
        lab.claim("fair-again", at_least(0.9, [run.jains[k] for run in aira], UNIT), flow=flow)
        earlier, newcomer = zip(
            *((r.earlier[k], r.newcomer[k]) for r in runs[DECREASE]), strict=True
        )
        lab.claim("decrease-only", less(earlier, newcomer), flow=flow)
    for k, flows in enumerate(("2 or 3", "4")):
        parts = ([run.together[k] for run in found] for found in (aira, aimd))
        lab.claim("desynchronised", less(*parts), flows=flows)
    panels = []
    for name, run in (("AIRA", aira[0]), ("AIMD", aimd[0])):
        for k, flow in ((1, "second"), (2, "third")):
            curves = []
            for i, window in enumerate(run.windows[: k + 1]):
                shown = (run.time >= 50 * max(i, k - 0.1)) & (run.time <= 50 * k + 50)
                curves.append(Curve(f"flow {i + 1}", run.time[shown], window[shown]))
            panels.append(Panel("time, s", "window, packets", curves, f"{name}: the {flow} enters"))
    lab.show(Figure("Windows as flows enter", panels))


@exhibit("table-3", cost=3, seeds=(20, 40), quick=(10, 20))
def table_3(lab: Lab) -> None:
    """AIRA has more goodput with fewer retransmissions, and is fairer."""
    laws = {"AIMD": AIMD, "AIRA": RULES, "AIRA, all rules": FULL}
    runs = lab.run({name: net.contention(law) for name, law in laws.items()}, row)
    rows = {name: by_option(lab, found) for name, found in runs.items()}
    table_cells(lab, rows)
    orders(lab, rows["AIMD"], rows["AIRA"])


@exhibit("fig-12", cost=9, seeds=(5, 10))
def fig_12(lab: Lab) -> None:
    """Table 3's claims at 20 Mb/s, with 100 packets and more flows."""
    step = lab.pick(50.0, 15.0)
    sizes = lab.pick((8, 20, 40, 60, 100), (8, 40))
    laws = {"AIMD": AIMD, "AIRA": RULES}
    cases = {(name, n): net.teams(law, n, step) for n in sizes for name, law in laws.items()}
    rows = lab.run(cases, row)
    orders(lab, mean_rows(rows, "AIMD"), mean_rows(rows, "AIRA"), fairer=False)
    pairs = [[column(rows[law, n], "fairness") for law in laws] for n in sizes]
    best = max(pairs, key=lambda pair: np.mean(pair[1]) - np.mean(pair[0]))
    lab.claim("fairer", less(*best))
    for n in sizes:
        lab.claim("one-value", at_least(0.95, column(rows["AIRA", n], "alpha"), UNIT), flows=n)
    lab.show(sweep_figure("Four teams of flows enter", rows))
