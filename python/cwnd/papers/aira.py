"""Psaras and Tsaoussidis: On the properties of an additive increase rate accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd.model.aira import extra_time, mail, total_time
from cwnd.papers import aira_figures as figures
from cwnd.papers import aira_networks as net
from cwnd.papers import aira_tables as tables
from cwnd.papers.aira_measures import (
    KILO,
    LEAVE,
    Row,
    column,
    entry,
    growth,
    increase_at,
    reset,
    row,
)
from cwnd.papers.aira_networks import AIMD, BOUNDED, FULL, RULES
from cwnd.papers.aira_notes import INFERRED, TABLE_1, TABLE_3, TABLE_4, WHY
from cwnd.papers.claims import alike, at_least, at_most, fact, formula, less, number
from cwnd.papers.exhibit import Findings, Lab, exhibit
from cwnd.papers.figure import Curve, Figure, Panel, Table
from cwnd.stats import estimate

if TYPE_CHECKING:
    from cwnd.records import Series
    from cwnd.result import Result
    from cwnd.scenario import Scenario


@exhibit("table-1", "Table 1: what the additive increase costs", cost=2)
def table_1(lab: Lab) -> Findings:
    """Retransmissions follow the increase a, goodput does not."""
    printed = TABLE_1
    cases: dict[tuple[str, int], Scenario] = {}
    for name in printed:
        delayed = name == "delayed ACKs"
        law = AIMD if delayed or name == "a = 1" else f"aimd(alpha={name[4:]}, beta=1/2)"
        for flows in (2, 4):
            cases[name, flows] = net.table_1(law, flows, delayed_acks=delayed)
    rows = lab.run(cases, row, lab.seeds(20, 8))
    claims, cells = [], []
    for name, (goodput, *retransmissions) in printed.items():
        cell: list[str | float] = [name, goodput]
        for flows, expected in zip((2, 4), retransmissions, strict=True):
            found = rows[name, flows]
            sent_again = column(found, "retransmissions")
            claims += [
                number(
                    f"{name}, {flows} flows: goodput, KB/s",
                    goodput,
                    column(found, "goodput"),
                    why=WHY["table-1 goodput"],
                ),
                number(
                    f"{name}, {flows} flows: retransmissions, packets",
                    expected,
                    sent_again,
                    why=WHY["table-1 retransmissions"],
                ),
            ]
            cell += [estimate(column(found, "goodput")).mean, expected, estimate(sent_again).mean]
        cells.append(cell)
    claims += tables.increase_claims(rows)
    heads = ["", "goodput, KB/s: printed", "2 flows", "retransmissions, 2 flows: printed"]
    heads += ["measured", "goodput, 4 flows", "retransmissions, 4 flows: printed", "measured"]
    return Findings(
        claims,
        [figures.table_1_figure(printed, rows)],
        [Table("table-1-rows", "Table 1, printed and measured", heads, cells)],
        varied="The increase a (the controller), the number of flows, delayed ACKs.",
        inferred=INFERRED["table-1"],
    )


@exhibit("fig-9", "Figure 9: the additive increase as flows enter", cost=0.5)
def fig_9(lab: Lab) -> Findings:
    """Each newcomer starts at a = 1 and comes down further than those already there."""
    ends = (49.0, 99.0, 149.0, 199.0)

    def measure(result: Result) -> tuple[Series, list[Series], list[list[float]]]:
        flows = result.measured_flows
        at = [[increase_at(result, flow, end) for flow in flows] for end in ends]
        return result.time, [flow["gauges"]["a"] for flow in flows], at

    runs = lab.run({RULES: net.contention(RULES)}, measure, lab.seeds(10, 4))[RULES]
    newcomers, others = [], []
    for _, _, at in runs:
        # A newcomer starts at 1; what is compared is the fall within its first 50 s.
        falls = [
            (1 - at[k][k], float(np.mean([at[k - 1][i] - at[k][i] for i in range(k)])))
            for k in (1, 2, 3)
        ]
        newcomers.append(float(np.mean([new for new, _ in falls])))
        others.append(float(np.mean([old for _, old in falls])))
    claims = [
        at_least(
            "a of the first flow after 49 s alone",
            0.95,
            [at[0][0] for *_, at in runs],
            published="stabilizes to a value very close to 1",
        ),
        less(
            "a of the first flow at 199 s, with four flows, against 49 s",
            [at[3][0] for *_, at in runs],
            [at[0][0] for *_, at in runs],
            published="as contention increases … gradual reduction of the Additive Increase factor",
        ),
        less(
            "fall of a in the 50 s after a flow enters: the flows already there against the "
            "newcomer",
            others,
            newcomers,
            published="new flows … experience greater rate reduction",
        ),
    ]
    time, increases, _ = runs[0]
    flows = {f"flow {k + 1}": a for k, a in enumerate(increases)}
    spans = [(50.0 * k + 1, 300.0) for k in range(4)]
    title = "Figure 9: additive increase factor"
    return Findings(
        claims,
        [figures.increase_figure("fig-9", title, time, flows, spans)],
        inferred=INFERRED["fig-9"],
    )


@exhibit("fig-10-11", "Figures 10 and 11: windows of AIRA and of AIMD as flows enter", cost=0.5)
def fig_10_11(lab: Lab) -> Findings:
    """Newcomers are as fast as AIMD's; fairness comes back; cuts are less synchronous."""
    cases = {law: net.contention(law) for law in (RULES, AIMD)}
    runs = lab.run(cases, entry, lab.seeds(10, 4))
    claims = []
    for k, flow in enumerate(("second", "third")):
        pairs = zip(runs[RULES], runs[AIMD], strict=True)
        claims.append(
            alike(
                f"packets that the {flow} flow gets through in its first 10 s, AIRA over AIMD",
                [aira.delivered[k] / aimd.delivered[k] for aira, aimd in pairs],
                published="exploit transmission opportunities as fast as regular AIMD flows do",
                why=WHY["fig-10-11 newcomer"],
            )
        )
        claims.append(
            at_least(
                f"fairness from 10 s after the {flow} flow's start until the next one's",
                0.9,
                [run.jains[k] for run in runs[RULES]],
                published="may only temporarily experience un-fairness",
            )
        )
    claims.append(
        less(
            "fraction of the cuts from 50 to 150 s with one of another flow within 0.12 s",
            [run.together for run in runs[RULES]],
            [run.together for run in runs[AIMD]],
            published="AIRA breaks flow synchronization",
            why=WHY["fig-10-11 together"],
        )
    )
    shown = {"AIRA": runs[RULES][0], "AIMD": runs[AIMD][0]}
    return Findings(
        claims,
        [figures.entry_figure(shown)],
        varied="The law.",
        inferred=INFERRED["fig-10-11"],
    )


@exhibit("table-3", "Table 3: four flows, one more every 50 s", cost=2)
def table_3(lab: Lab) -> Findings:
    """AIRA gets more through with fewer retransmissions, and more fairly."""
    printed = TABLE_3
    laws = (AIMD, RULES, FULL)
    rows = lab.run({law: net.contention(law) for law in laws}, row, lab.seeds(20, 5))
    _aimd, _aira = tables.columns(rows[AIMD]), tables.columns(rows[RULES])
    return Findings(
        tables.printed_claims(printed, rows, WHY, "table-3")
        + tables.order_claims(
            tables.columns(rows[AIMD]), tables.columns(rows[RULES]), WHY, "table-3"
        ),
        [figures.rows_figure("table-3", "Table 3", printed, rows)],
        [tables.rows_table("table-3-rows", "Table 3, printed and measured", printed, rows)],
        varied="The law.",
        inferred=INFERRED["table-3"],
    )


@exhibit("fig-12", "Figure 12: many flows enter in four teams", cost=10)
def fig_12(lab: Lab) -> Findings:
    """Do the same with 20 Mb/s, 100 packets and more flows."""
    sizes = lab.pick((8, 20, 40, 60, 100), (20, 60))
    step = lab.pick(50.0, 15.0)
    cases = {(law, n): net.teams(law, n, step) for n in sizes for law in (AIMD, RULES)}
    rows = lab.run(cases, row, lab.seeds(4, 3))
    aimd, aira = tables.means(rows, AIMD, sizes), tables.means(rows, RULES, sizes)
    fairer = [
        n
        for n in sizes
        if less("", column(rows[AIMD, n], "fairness"), column(rows[RULES, n], "fairness")).verdict
        == "holds"
    ]
    claims = [
        less(
            "goodput, mean of the sizes, KB/s: AIMD against AIRA",
            aimd["goodput"],
            aira["goodput"],
            published="AIRA increases system Goodput",
            why=WHY["fig-12 goodput"],
        ),
        less(
            "retransmissions, mean of the sizes: AIRA against AIMD",
            aira["retransmissions"],
            aimd["retransmissions"],
            published="Stability",
        ),
        fact(
            "AIRA is fairer than AIMD for some of the sizes",
            f"for {', '.join(map(str, fairer)) or 'none'} of {', '.join(map(str, sizes))} flows",
            "holds if the 95 % interval of the difference, seed by seed, is above 0 for some size",
            holds=bool(fairer),
            published="and occasionally system Fairness",
            why=WHY["fig-12 fairness"],
        ),
        at_least(
            "α-fairness, the least of the sizes",
            0.95,
            np.min([column(rows[RULES, n], "alpha") for n in sizes], axis=0),
            published="in all cases … converges to (approximately) the same value",
            why=WHY["fig-12 alpha"],
        ),
    ]
    return Findings(
        claims,
        [figures.sweep_figure("fig-12", "Figure 12: contention increase", sizes, rows)],
        varied="The law and the number of flows, a quarter of them in each team.",
        inferred=[
            *INFERRED["fig-12"],
            *([f"A team every {step:g} s instead of 50, to be quick."] if lab.quick else []),
        ],
    )


@exhibit("fig-13", "Figure 13 and Eq. 23: the minimum additive increase limit", cost=0.5)
def fig_13(lab: Lab) -> Findings:
    """MAIL comes down from 1 to 0.1 in 100 rounds, and holds a up meanwhile."""

    def measure(result: Result) -> tuple[Series, Series]:
        (flow,) = result.measured_flows
        cuts = flow["cuts"]["time"]
        increases = [increase_at(result, flow, float(cut)) for cut in cuts]
        return np.arange(cuts.size, dtype=float), np.array(increases)

    laws = {BOUNDED: "a with MAIL, 5 % loss", RULES: "a without bounds, 5 % loss"}
    cases = {law: net.lossy(law, 0.05) for law in laws}
    runs = lab.run(cases, measure, lab.seeds(5, 3))
    rounds = np.arange(0, 151)
    least = min(float(np.min(a - mail(np.arange(a.size)))) for _, a in runs[BOUNDED])
    claims = [
        formula("MAIL after 100 rounds, packets", "0.1", float(mail(100))),
        formula("greatest reduction of a", "0.9", 1 - float(mail(10**6))),
        fact(
            "a in the simulator is never below MAIL",
            f"a - MAIL is at least {least:.3g} over all rounds of all seeds",
            "holds if a - MAIL is never below 0",
            holds=least >= -1e-9,
        ),
    ]
    curves = [Curve("MAIL, Eq. 23", rounds, mail(rounds))]
    for law, label in laws.items():
        done, a = runs[law][0]
        curves.append(Curve(label, done[done <= 150], a[done <= 150], "steps"))
    panel = Panel("rounds completed", "additive increase, packets", curves, y_limits=(0, 1.05))
    return Findings(
        claims,
        [Figure("fig-13", "Figure 13: MAIL", [panel])],
        varied="The law: with and without the bounds.",
        inferred=INFERRED["fig-13"],
    )


@exhibit("fig-14", "Figure 14: data and time against rounds", cost=1)
def fig_14(lab: Lab) -> Findings:
    """Follow one flow until it has sent 5 MB."""
    size = 5 * KILO**2

    def measure(result: Result) -> tuple[Series, Series]:
        (flow,) = result.measured_flows
        cuts = np.append(flow["cuts"]["time"], result.duration_s)
        data = np.interp(cuts, result.time, flow["delivered"]) * flow["packet_bytes"]
        return cuts - flow["start_s"], data

    rates, delays = lab.pick((1, 2, 5, 10), (1, 10)), (10, 50)
    cases = {(r, d): net.alone(BOUNDED, r, d) for r in rates for d in delays}
    runs = lab.run(cases, measure, lab.seeds(3, 3))
    rounds, seconds, at_100 = (
        np.array([[value(*run) for run in found] for found in runs.values()])
        for value in (
            # The round in which the file ends counts as one.
            lambda _, data: 1 + np.searchsorted(data[:-1], size),
            lambda time, data: np.interp(size, data, time),
            # The longest paths have not done 100 rounds at the end.
            lambda _, data: data[99] / KILO**2 if data.size > 100 else np.inf,
        )
    )
    claims = [
        at_most(
            "rounds that 5 MB take, the most of all links",
            50,
            rounds.max(axis=0),
            published="in all cases 5 MBytes are transferred within the first 50 Rounds",
        ),
        at_most(
            "seconds that 5 MB take, the most of all links",
            50,
            seconds.max(axis=0),
            published="less than 50 s",
        ),
        at_least(
            "MB done when MAIL lets a be 0.1, after 100 rounds, the least of all links",
            10,
            at_100.min(axis=0),
            published="only after completion of 10 MB transfers",
        ),
    ]
    return Findings(
        claims,
        [figures.rounds_figure({case: found[0] for case, found in runs.items()})],
        varied="Rate and delay of the link.",
        inferred=INFERRED["fig-14"],
    )


@exhibit("table-4", "Table 4, Figures 15 and 16: flows near and far", cost=1.5)
def table_4(lab: Lab) -> Findings:
    """MAIL leaves flows of long round-trip times more increase."""
    printed = TABLE_4

    def measure(result: Result) -> tuple[Row, Series, list[Series]]:
        # AIMD has no gauges: its a is 1.
        increases = [flow["gauges"].get("a", np.ones(1)) for flow in result.measured_flows]
        return row(result), result.time, increases

    cases = {law: net.diverse(law) for law in (AIMD, BOUNDED, FULL)}
    runs = lab.run(cases, measure, lab.seeds(20, 5))
    rows = {law: [measured for measured, *_ in found] for law, found in runs.items()}
    means = np.array([[float(np.nanmean(a)) for a in flows] for *_, flows in runs[BOUNDED]])
    _aimd, _aira = tables.columns(rows[AIMD]), tables.columns(rows[BOUNDED])
    claims = [
        *tables.printed_claims(printed, rows, WHY, "table-4"),
        *tables.order_claims(
            tables.columns(rows[AIMD]), tables.columns(rows[BOUNDED]), WHY, "table-4"
        ),
        less(
            "a, mean over the run: flows at 60 ms against flows at 220 ms",
            means[:, :2].mean(axis=1),
            means[:, 2:].mean(axis=1),
            published="MAIL provides more transmission opportunities to long-RTT flows",
        ),
    ]
    _, time, traces = runs[BOUNDED][0]
    flows = {f"flow {k + 1}, {60 if k < 2 else 220} ms": a for k, a in enumerate(traces)}
    title = "Figure 16: additive increase factor"
    return Findings(
        claims,
        [
            figures.increase_figure("fig-16", title, time, flows, [(1.0, 300.0)] * 4),
            figures.rows_figure("table-4", "Table 4", printed, rows),
        ],
        [tables.rows_table("table-4-rows", "Table 4, printed and measured", printed, rows)],
        varied="The law.",
        inferred=INFERRED["table-4"],
    )


@exhibit("fig-17", "Figure 17: many flows near and far", cost=11)
def fig_17(lab: Lab) -> Findings:
    """Do the same with more flows."""
    sizes = lab.pick((8, 20, 40, 60, 100), (20, 60))
    duration = lab.pick(300.0, 90.0)
    cases = {
        (law, n): net.diverse(
            law, n, rate="20mbit", queue="49p", access="100mbit", duration=duration
        )
        for n in sizes
        for law in (AIMD, BOUNDED)
    }
    rows = lab.run(cases, row, lab.seeds(4, 3))
    aimd, aira = tables.means(rows, AIMD, sizes), tables.means(rows, BOUNDED, sizes)
    claims = [
        *tables.order_claims(aimd, aira, WHY, "fig-17", of=", mean of the sizes"),
        less(
            f"α-fairness of AIRA: {sizes[-1]} flows against {sizes[0]}",
            column(rows[BOUNDED, sizes[-1]], "alpha"),
            column(rows[BOUNDED, sizes[0]], "alpha"),
            published="as contention increases … considerable decrease of the ALPHA Fairness Index",
        ),
    ]
    return Findings(
        claims,
        [figures.sweep_figure("fig-17", "Figure 17: RTT unfairness", sizes, rows)],
        varied="The law and the number of flows.",
        inferred=[
            *INFERRED["fig-17"],
            *([f"{duration:g} s instead of 300, to be quick."] if lab.quick else []),
        ],
    )


@exhibit("fig-18", "Figure 18, Eq. 24 and 25: time to notice that others left", cost=0.5)
def fig_18(lab: Lab) -> Findings:
    """0.3 and 1.3 rounds of a flow with its own a; checked against a flow that grows."""
    factors = (1.0, 0.5, 0.2)

    def measure(result: Result) -> tuple[float, float]:
        """Give what a flow needs from W to 3W/2, and a round, in seconds, of flows 1 and 2."""
        times = [growth(result, k) for k in (0, 1)]
        return float(np.mean([t for t, _ in times])), float(np.mean([r for _, r in times]))

    cases = {a: net.contention(f"aimd(alpha={a:g}, beta=1/2)", leave=True) for a in factors}
    runs = lab.run(cases, measure, lab.seeds(10, 4))
    pooled = [
        np.mean([runs[a][i][0] / runs[a][i][1] for a in factors]) for i in range(len(runs[1]))
    ]
    at_10 = float(total_time(mail(10)))
    claims = [
        fact(
            "a flow within its first 10 rounds becomes aware of the extra bandwidth after less "
            "than 2 rounds (Eq. 23, 25)",
            f"{at_10:.3g} rounds after 10",
            "holds if 1.3/MAIL(10) is below 2",
            holds=at_10 < 2,
            published="after less than 2 Rounds",
        ),
        number(
            "rounds that a flow needs from W to 3W/2 after half of the flows left, mean of a = 1, "
            "0.5 and 0.2",
            "0.3",
            [float(x) for x in pooled],
            why=WHY["fig-18"],
        ),
    ]
    a, done = np.linspace(0.1, 1, 91), np.arange(0, 101)
    first = float(np.mean([round_s for _, round_s in runs[1.0]]))
    rounds_of_one = [[t / first for t, _ in runs[a]] for a in factors]
    measured = Curve.of_means("measured", factors, rounds_of_one, "points")
    label, rounds = "additive increase a, packets", "rounds of a flow with a = 1"
    panels = [
        Panel(label, rounds, [Curve("T, Eq. 24", a, extra_time(a)), measured], "(a) extra time"),
        Panel(label, rounds, [Curve("TotalT, Eq. 25", a, total_time(a))], "(b) total time"),
        Panel(
            "rounds completed, with a = MAIL",
            rounds,
            [Curve("1.3/MAIL", done, total_time(mail(done)))],
            "(c) total time against rounds",
        ),
    ]
    return Findings(
        claims,
        [Figure("fig-18", "Figure 18: time to exploit bandwidth", panels, columns=3)],
        varied="The increase a, as AIMD with a fixed one.",
        inferred=INFERRED["fig-18"],
    )


@exhibit("fig-19", "Figure 19: two of four flows leave", cost=0.5)
def fig_19(lab: Lab) -> Findings:
    """Watch the flows that stay set a to 1 again."""
    runs = lab.run({FULL: net.contention(FULL, leave=True)}, reset, lab.seeds(20, 5))[FULL]
    claims = [
        at_most(
            "rounds until a is 1 again, the slower of flows 1 and 2",
            2,
            [max(run.waits) for run in runs],
            published="become aware of the extra available bandwidth and reset a",
            why=WHY["fig-19 wait"],
        ),
        at_least(
            "a from 210 s on, the lower of flows 1 and 2",
            0.9,
            [min(run.levels) for run in runs],
            published="adjust their Additive Increase factor to a value close to 1",
            why=WHY["fig-19 level"],
        ),
        alike(
            "goodput over that of Table 3, 227.1 KB/s",
            [run.row["goodput"] / 227.1 for run in runs],
            published="similar with the ones presented in Table 3",
        ),
        alike(
            "retransmissions over those of Table 3, 748",
            [run.row["retransmissions"] / 748 for run in runs],
            published="similar with the ones presented in Table 3",
        ),
    ]
    flows = {f"flow {k + 1}": a for k, a in enumerate(runs[0].increases)}
    spans = [(50.0 * k + 1, 300.0 if k < 2 else LEAVE) for k in range(4)]
    title = "Figure 19: reset condition"
    return Findings(
        claims,
        [figures.increase_figure("fig-19", title, runs[0].time, flows, spans)],
        inferred=INFERRED["fig-19"],
    )


@exhibit("fig-20", "Figure 20, section 7: SACK and AIRA together", cost=2)
def fig_20(lab: Lab) -> Findings:
    """AIRA takes nothing from TCP."""
    mix = "5 SACK and 5 AIRA"
    groups = {"10 SACK": {AIMD: 10}, "10 AIRA": {FULL: 10}, mix: {AIMD: 5, FULL: 5}}

    def measure(result: Result) -> tuple[Series, Series]:
        flows = result.measured_flows
        goodput = [result.goodput_bps(flow) / 8 / KILO for flow in flows]
        return np.array(goodput), np.array([float(flow["retransmissions"]) for flow in flows])

    cases = {name: net.deployment(group) for name, group in groups.items()}
    runs = lab.run(cases, measure, lab.seeds(6, 3))
    goodput = {name: np.array([rate for rate, _ in found]) for name, found in runs.items()}
    again = {name: np.array([sent for _, sent in found]) for name, found in runs.items()}
    sack, aira, mixed = goodput.values()
    claims = []
    for name, rate, sent in (("10 SACK", "≈100", "≈600"), ("10 AIRA", "≈120", "≈250")):
        mean_rate, mean_sent = goodput[name].mean(axis=1), again[name].mean(axis=1)
        of, why = f"{name}: a flow's", WHY["fig-20"]
        claims.append(number(f"{of} goodput, KB/s", rate, mean_rate, why=why))
        claims.append(number(f"{of} retransmissions, packets", sent, mean_sent, why=why))
    claims += [
        less(
            "goodput of a flow, KB/s: 10 SACK against 10 AIRA",
            sack.mean(axis=1),
            aira.mean(axis=1),
            published="AIRA flows achieve higher goodput performance than regular TCP-SACK flows",
        ),
        less(
            "retransmissions of a flow: 10 AIRA against 10 SACK",
            again["10 AIRA"].mean(axis=1),
            again["10 SACK"].mean(axis=1),
            published="250 packets against 600",
        ),
        alike(
            "goodput of a SACK flow beside 5 AIRA flows over that beside SACK alone",
            mixed[:, :5].mean(axis=1) / sack.mean(axis=1),
            published="TCP-SACK flows … achieve the same goodput performance as in the first "
            "experiment",
        ),
    ]
    measures = {"goodput, KB/s": goodput, "retransmissions, packets": again}
    return Findings(
        claims,
        [
            figures.deployment_figure(
                measures, {name: group.get(AIMD, 0) for name, group in groups.items()}
            )
        ],
        varied="The laws of the ten flows.",
        inferred=INFERRED["fig-20"],
    )


@exhibit("sensitivity", "AIRA's free choices", cost=9, new=True)
def sensitivity(lab: Lab) -> Findings:
    """Vary the bound, the reset and MAIL's slope one at a time."""
    laws = list(dict.fromkeys(law for _, values in net.CHOICES.values() for law in values.values()))
    networks = {
        "Table 4": {law: net.diverse(law) for law in laws},
        "Table 3": {law: net.contention(law, sample="1s") for law in laws},
        "Figure 19": {law: net.contention(law, leave=True, sample="1s") for law in laws},
    }
    if lab.quick:
        networks = {"Table 4": networks["Table 4"]}
    cases = {(name, law): made for name, by in networks.items() for law, made in by.items()}
    found = lab.run(cases, row, lab.seeds(5, 3))
    rows = {name: {law: found[name, law] for law in laws} for name in networks}
    cells: list[list[str | float]] = []
    for (name, law), measured in found.items():
        values = tables.columns(measured)
        cells.append([name, law, *(estimate(values[figure]).mean for figure in tables.HEADS)])
    heads, what = ["scenario", "law", *tables.HEADS.values()], list(net.CHOICES)
    return Findings(
        tables.sensitivity_claims(rows, WHY),
        [
            figures.sensitivity_figure("sensitivity", "AIRA's free choices", rows, what[:3]),
            figures.sensitivity_figure(
                "sensitivity-no-reset", "The same without reset", rows, what[3:]
            ),
        ],
        [Table("sensitivity-rows", "What each choice gives, means", heads, cells)],
        varied="The bound, the reset ratio and MAIL's slope, one at a time, on three networks.",
        inferred=[
            *INFERRED["sensitivity"],
            *(["Only on Table 4's network, to be quick."] if lab.quick else []),
        ],
    )
