"""The exhibits of the DAIMD paper: Gu, Hong and Grossman, decreasing increases (UDT).

Where the paper shows UDT, its rule as printed (`daimd`) and UDT version 4's (`udt`) are run side by
side and each is held against the same numbers. Networks are in `daimd_networks`, what is read off a
run in `daimd_measures`.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from cwnd.model import daimd as model
from cwnd.model import daimd_sharing as shared
from cwnd.model.throughput import RESPONSES, udt_response
from cwnd.papers import daimd_measures as read
from cwnd.papers import daimd_networks as nets
from cwnd.papers import daimd_protocol
from cwnd.papers.claims import alike, at_least, at_most, less, number
from cwnd.papers.daimd_analysis import (
    beside_claims,
    climbing,
    filling,
    friendly,
    increases,
    misjudgement,
    paced_claims,
    response_table,
    responses,
    stage_claims,
    stages,
    tcp_claims,
    worst_stage_claims,
)
from cwnd.papers.daimd_networks import LAWS
from cwnd.papers.daimd_notes import INFERRED, why
from cwnd.papers.exhibit import Findings, exhibit
from cwnd.papers.figure import Curve, Figure, Panel, Table
from cwnd.stats import estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd.papers.claims import Claim
    from cwnd.papers.exhibit import Lab

CAPACITIES = (10.0, 100.0, 200.0, 1000.0)
"""Capacities of the single flows in Mb/s."""

ALONE = ("rate control alone", *LAWS)
"""Single flows: the first is `daimd` with the capacity given and without the flow window."""


def over(top: Iterable[float], bottom: Iterable[float]) -> list[float]:
    """Divide seed by seed."""
    return [a / b for a, b in zip(top, bottom, strict=True)]


def mean(values: Iterable[float]) -> float:
    """Average over the seeds."""
    return estimate(values).mean


def published(texts: Sequence[str]) -> list[float]:
    """Read printed numbers."""
    return [float(text) for text in texts]


def given(law: str, capacity_mbps: float) -> str:
    """Give the controller of a single flow on a link."""
    alone = f"daimd(capacity={capacity_mbps * 1e6:.0f}, lambda=1)"
    return alone if law == ALONE[0] else law


@exhibit("eq-8", "Increase, stages, equilibrium and the time to 90 % (Eq. 8-15, Fig. 1-3)", cost=6)
def eq_8(lab: Lab) -> Findings:
    """Check the analysis of section III, and let single flows climb empty links."""
    begin = lab.pick(10.0, 5.0)
    rtts = (0.01, 0.2)
    cases = {
        (law, mbps, rtt): nets.climb(given(law, mbps), mbps, rtt, begin, 16.0)
        for law in ALONE
        for mbps in CAPACITIES
        for rtt in rtts
    }
    climbs = lab.run(cases, read.read_climb, lab.seeds(3))
    times = {case: [read.time_to(climb, 0.9, case[1]) for climb in climbs[case]] for case in cases}
    slow = lab.pick((10.0, 20.0, 50.0, 100.0), (10.0, 20.0))
    tcp = lab.run(
        {mbps: nets.recovery(mbps, 0.2, 60 + 8 * mbps) for mbps in slow},
        read.read_recovery,
        lab.seeds(3),
    )
    claims = [*stages(), *filling()]
    claims += [
        number(
            f"{law}: s from 0 to 90 % of {mbps:g} Mb/s at {rtt * 1e3:g} ms",
            "7.5",
            seconds,
            why=why("eq-8", law, "stuck" if min(seconds) > 16 else "far" if rtt > 0.1 else "near"),
        )
        for (law, mbps, rtt), seconds in times.items()
    ]
    claims += [
        alike(
            f"{law}: time to 90 % at 1 Gb/s and 200 ms over that at 10 Mb/s and 10 ms",
            over(times[law, 1000.0, 0.2], times[law, 10.0, 0.01]),
            published="independent of the bandwidth-delay product",
        )
        for law in ALONE
    ]
    claims += [
        alike(
            f"TCP at {mbps:g} Mb/s and 200 ms: simulated time from loss to loss over the formula's",
            [t / float(model.tcp_recovery_time(mbps * 1e6, 0.2, 1500)) for t in tcp[mbps]],
            published="W/2 round-trip times, as of 28 min at 1 Gb/s",
        )
        for mbps in slow
    ]
    table = Table(
        "eq-8",
        "Seconds to 90 % of the capacity",
        ["controller", "capacity, Mb/s", "RTT, ms", "start, Mb/s", "published", "simulated"],
        [
            [law, mbps, 1e3 * rtt, mean(c.start for c in climbs[law, mbps, rtt]), 7.5, mean(t)]
            for (law, mbps, rtt), t in times.items()
        ],
    )
    climb = {mbps: climbs[ALONE[0], mbps, 0.01][0] for mbps in CAPACITIES}
    return Findings(
        claims,
        [increases(), climbing(climb)],
        [table],
        "Controller, capacity and round-trip time; TCP's recovery on networks of its own.",
        list(INFERRED["eq-8"]),
    )


@exhibit("table-1", "Four flows come and go on 1 Gb/s, 104 ms (Table 1, Fig. 7)", cost=19)
def table_1(lab: Lab) -> Findings:
    """Hold every number of Table 1 against both rules."""
    stage = lab.pick(100.0, 7.0)
    cases = {law: nets.staircase(law, stage) for law in LAWS}
    runs = lab.run(
        cases, lambda r: (read.read_stages(r), read.sent_over_time(r, stage / 100)), lab.seeds(3)
    )
    claims: list[Claim] = []
    rows: list[list[str | float]] = []
    for law in LAWS:
        seen = [run[0] for run in runs[law]]
        for row, texts in nets.TABLE_1.items():
            found = [[_cell(run[n], row) for run in seen] for n in range(7)]
            rows.append([row, "published", *texts])
            rows.append([row, law, *(mean(values) for values in found)])
            claims += stage_claims(law, row, texts, found)
        claims += worst_stage_claims(law, seen)
    panels = []
    for law in LAWS:
        t, rates = runs[law][0][1]
        curves = [Curve("aggregate", t, rates.sum(axis=0), color=0)]
        curves += [
            Curve(f"flow {n}", t, np.where(row > 0, row, np.nan), color=n)
            for n, row in enumerate(rates, 1)
        ]
        middle = (np.arange(7) + 0.5) * stage
        curves.append(
            Curve("published aggregate", middle, published(nets.TABLE_1["EI, Mb/s"]), "published")
        )
        panels.append(Panel("time, s", "throughput, Mb/s", curves, law, y_limits=(0, 1500)))
    return Findings(
        claims,
        [Figure("fig-7", "Throughput of four flows on 1 Gb/s, 104 ms", panels, columns=1)],
        [Table("table-1", "Table 1", ["row", "", *nets.STAGES], rows)],
        "The rule.",
        list(INFERRED["table-1"]),
    )


def _cell(stage: read.Stage, row: str) -> float:
    """Give a number of Table 1."""
    if row.startswith("flow"):
        return float(stage.rates[int(row[5]) - 1])
    names = {"RTT, ms": stage.rtt_ms, "loss": stage.loss, "EI, Mb/s": stage.ei, "FI": stage.fi}
    return names.get(row, stage.si)


@exhibit("table-2", "Two flows, one with a narrower second bottleneck (Table 2)", cost=31)
def table_2(lab: Lab) -> Findings:
    """Vary the second bottleneck of one of two flows."""
    warmup, time = lab.pick((40.0, 121.0), (3.0, 9.0))
    cases = {
        (law, y): nets.two_bottlenecks(law, y, time, warmup) for law in LAWS for y in nets.TABLE_2
    }
    runs = lab.run(cases, read.read_shares, lab.seeds(5))
    claims: list[Claim] = []
    for law, y in cases:
        ab, ac = ([run.rates[flow] for run in runs[law, y]] for flow in (0, 1))
        texts = nets.TABLE_2[y]
        reason = why("table-2", law, "narrow" if y <= 1 else "below" if y < 90 else "above")
        claims += [
            number(f"{law}: AB at y = {y:g}, Mb/s", texts[0], ab, why=reason),
            number(f"{law}: AC at y = {y:g}, Mb/s", texts[1], ac, why=reason),
            at_least(
                f"{law}: AC over its fair share at y = {y:g}",
                0.9,
                [rate / min(y, 100.0) for rate in ac],
                published="at least 90 %",
                why=reason,
            ),
            at_least(
                f"{law}: AC over y at y = {y:g} (section IV)",
                float(shared.least_rate(y * 1e6, 200e6)) / (y * 1e6),
                [rate / y for rate in ac],
                published="F2 takes at least half of L₂",
                why=reason,
            ),
        ]
    ys = list(nets.TABLE_2)
    panels = []
    for flow, name in enumerate(("AB", "AC")):
        curves = [
            Curve(law, ys, [mean(r.rates[flow] for r in runs[law, y]) for y in ys], color=color)
            for color, law in enumerate(LAWS)
        ]
        printed = [float(nets.TABLE_2[y][flow]) for y in ys]
        curves.append(Curve("published", ys, printed, "published"))
        panels.append(Panel("y, Mb/s", f"{name}, Mb/s", curves, name))
    rows: list[list[str | float]] = []
    for y in ys:
        found = [mean(r.rates[flow] for r in runs[law, y]) for law in LAWS for flow in (0, 1)]
        rows.append([y, *published(nets.TABLE_2[y]), *found])
    heads = [
        "y, Mb/s",
        "AB, published",
        "AC, published",
        *(f"{f}, {law}" for law in LAWS for f in ("AB", "AC")),
    ]
    return Findings(
        claims,
        [Figure("table-2", "Rates of the two flows of Fig. 8", panels)],
        [Table("table-2", "Table 2, Mb/s", heads, rows)],
        "The rule and y.",
        list(INFERRED["table-2"]),
    )


INDICES = ("98.89", "0.966", "0.19")
"""EI, FI and SI of Fig. 10."""


@exhibit("fig-10", "Five flows with round-trip times of 10 µs to 100 ms (Fig. 10)", cost=3)
def fig_10(lab: Lab) -> Findings:
    """Share 100 Mb/s among flows from near and from far."""
    warmup, time = lab.pick((20.0, 121.0), (5.0, 36.0))
    cases = {law: nets.near_and_far(law, time, warmup) for law in LAWS}
    runs = lab.run(
        cases, lambda r: (read.read_shares(r), read.sent_over_time(r, 1.0)), lab.seeds(5)
    )
    claims: list[Claim] = []
    panels = []
    rows: list[list[str | float]] = [["published", *published([*nets.FIG_10.values(), *INDICES])]]
    for law in LAWS:
        shares = [run[0] for run in runs[law]]
        by_flow = [[s.rates[n] for s in shares] for n in range(5)]
        indices = [[s.ei for s in shares], [s.fi for s in shares], [s.si for s in shares]]
        names = [*(f"flow of {rtt}, Mb/s" for rtt in nets.FIG_10), "aggregate, Mb/s", "FI", "SI"]
        claims += [
            number(f"{law}: {name}", text, values, why=why("fig-10", law, name))
            for name, text, values in zip(
                names, (*nets.FIG_10.values(), *INDICES), (*by_flow, *indices), strict=True
            )
        ]
        claims += [
            less(
                f"{law}: the flow of 100 ms gets less than that of 10 µs",
                [s.rates[-1] for s in shares],
                [s.rates[0] for s in shares],
                published="flows with longer RTT have lower throughputs",
                why=why("fig-10", law),
            ),
        ]
        t, rates = runs[law][0][1]
        curves = [Curve(rtt, t, row) for rtt, row in zip(nets.FIG_10, rates, strict=True)]
        panels.append(Panel("time, s", "throughput, Mb/s", curves, law))
        rows.append([law, *(mean(values) for values in (*by_flow, *indices))])
    return Findings(
        claims,
        [Figure("fig-10", "Throughputs of five flows with different RTTs", panels)],
        [Table("fig-10", "Rates in Mb/s", ["", *nets.FIG_10, "EI", "FI", "SI"], rows)],
        "The rule.",
        list(INFERRED["fig-10"]),
    )


@exhibit("table-3", "Six flows on a parking lot (Table 3)", cost=5)
def table_3(lab: Lab) -> Findings:
    """Share five links of different capacities among six flows."""
    warmup, time = lab.pick((20.0, 121.0), (5.0, 26.0))
    cases = {law: nets.parking_lot(law, time, warmup) for law in LAWS}
    runs = lab.run(cases, read.read_shares, lab.seeds(5))
    fair = read.max_min()
    claims: list[Claim] = []
    for law in LAWS:
        for n, text in enumerate(nets.TABLE_3):
            rates = [run.rates[n] for run in runs[law]]
            claims += [
                number(
                    f"{law}: flow {n + 1}, Mb/s", text, rates, why=why("table-3", law, str(n + 1))
                ),
                alike(
                    f"{law}: flow {n + 1} over its max-min fair rate",
                    [rate / fair[n] for rate in rates],
                    published="max-min fairness is still observed",
                    why=why("table-3", law, str(n + 1)),
                ),
            ]
    flows = np.arange(6)
    curves = [
        Curve(law, flows, [mean(run.rates[n] for run in runs[law]) for n in flows], "points")
        for law in LAWS
    ]
    curves += [
        Curve("max-min fair, as inferred", flows, fair, "points"),
        Curve("published", flows, published(nets.TABLE_3), "published"),
    ]
    ticks = [f"flow {n + 1}" for n in flows]
    rows: list[list[str | float]] = [
        ["published", *published(nets.TABLE_3)],
        ["max-min fair", *fair.tolist()],
    ]
    rows += [[law, *(mean(run.rates[n] for run in runs[law]) for n in flows)] for law in LAWS]
    return Findings(
        claims,
        [
            Figure(
                "table-3",
                "Rates on the parking lot",
                [Panel("", "rate, Mb/s", curves, ticks=ticks)],
            )
        ],
        [Table("table-3", "Table 3, Mb/s", ["", *ticks], rows)],
        "The rule.",
        list(INFERRED["table-3"]),
    )


@exhibit("fig-14", "UDT over TCP against bandwidth and RTT (Fig. 14, Eq. 19, 20)", cost=30)
def fig_14(lab: Lab) -> Findings:
    """Share links of many capacities and lengths between one flow and one of TCP."""
    rates, rtts = (1.0, 10.0, 100.0, 1000.0), (0.001, 0.01, 0.1)

    def seconds(mbps: float, rtt: float) -> float:
        # TCP has to fill and halve its window a few times.
        if lab.quick:
            return 12.0 if mbps == 1000 else 40.0
        return 300.0 if mbps < 1000 or rtt == 0.1 else 80.0

    cases = {
        (law, mbps, rtt): nets.beside_tcp(law, mbps, rtt, seconds(mbps, rtt))
        for law in LAWS
        for mbps in rates
        for rtt in rtts
    }
    runs = lab.run(cases, read.read_shares, lab.seeds(3))
    ratio = {case: [run.rates[0] / run.rates[1] for run in runs[case]] for case in cases}
    claims = friendly() + [claim for law in LAWS for claim in beside_claims(law, ratio)]
    ms = [1e3 * rtt for rtt in rtts]
    panels = []
    for law in LAWS:
        curves = []
        for mbps in rates:
            means = [mean(ratio[law, mbps, rtt]) for rtt in rtts]
            curves.append(Curve(f"{mbps:g} Mb/s", ms, means))
        curves.append(Curve("published, 1 Gb/s", [100.0], [5.0], "published"))
        curves.append(Curve("TCP's rate", ms, [1.0, 1.0, 1.0], dashed=True))
        panels.append(
            Panel("RTT, ms", "UDT's rate over TCP's", curves, law, x_log=True, y_log=True)
        )
    table: list[list[str | float]] = []
    for mbps, rtt in product(rates, rtts):
        margin = float(shared.friendly_margin(rtt, mbps * 1e6))
        modelled = float(shared.friendliness_ratio(rtt, mbps * 1e6))
        simulated = [mean(ratio[law, mbps, rtt]) for law in LAWS]
        table.append([mbps, 1e3 * rtt, margin, modelled, *simulated])
    heads = ["capacity, Mb/s", "RTT, ms", "Eq. 20, friendly from 1 on", "Eq. 19, k = 0", *LAWS]
    return Findings(
        claims,
        [Figure("fig-14", "Rate of a UDT flow over that of a TCP flow", panels)],
        [Table("fig-14", "UDT's rate over TCP's", heads, table)],
        "The rule, capacity and round-trip time.",
        list(INFERRED["fig-14"]),
    )


def _against_rtt(
    lab: Lab, name: str, controllers: Sequence[str], printed: Mapping[str, Sequence[str]]
) -> Findings:
    """Run ten flows of each controller at each RTT, and hold the indices against a table."""

    def spans(rtt: float) -> tuple[float, float]:
        if lab.quick:
            return (2.0, 5.0) if rtt < 0.1 else (8.0, 20.0)
        return (15.0, 46.0) if rtt < 0.1 else (50.0, 151.0)

    cases = {
        (law, rtt): nets.ten_flows(law, rtt, *reversed(spans(rtt)))
        for law in controllers
        for rtt in nets.RTTS
    }
    runs = lab.run(cases, read.read_shares, lab.seeds(3))
    claims: list[Claim] = []
    panels = []
    rows: list[list[str | float]] = []
    for index, texts in printed.items():
        curves = []
        rows.append([index, "published", *published(texts)])
        for color, law in enumerate(controllers):
            found = [[getattr(run, index.lower()) for run in runs[law, rtt]] for rtt in nets.RTTS]
            claims += [
                number(f"{law}: {index} at {rtt:g} s", text, values, why=why(name, law, index))
                for rtt, text, values in zip(nets.RTTS, texts, found, strict=True)
            ]
            means = [mean(values) for values in found]
            curves.append(Curve(law, nets.RTTS, means, color=color))
            rows.append([index, law, *means])
        curves.append(Curve("published", nets.RTTS, published(texts), "published"))
        panels.append(Panel("RTT, s", index, curves, x_log=True))
    number_ = name.removeprefix("table-")
    return Findings(
        claims,
        [Figure(name, f"Indices of Table {number_} against the round-trip time", panels, 3)],
        [Table(name, f"Table {number_}", ["index", "", *(f"{r:g} s" for r in nets.RTTS)], rows)],
        "The controller of all ten flows and the round-trip time.",
        list(INFERRED["table-4"]),
    )


@exhibit("table-4", "Ten UDT flows, RTT of 10 µs to 1 s (Table 4)", cost=39)
def table_4(lab: Lab) -> Findings:
    """Hold the indices of ten UDT flows against Table 4."""
    return _against_rtt(lab, "table-4", LAWS, nets.TABLE_4)


@exhibit("table-5", "Ten TCP flows, RTT of 10 µs to 1 s (Table 5)", cost=25)
def table_5(lab: Lab) -> Findings:
    """Hold the indices of ten TCP flows against Table 5."""
    return _against_rtt(lab, "table-5", ("reno",), nets.TABLE_5)


TCPS = {
    "TCP Reno": ("reno", "reno"),
    "Scalable TCP, a = 0.1 as printed": ("scalable", "scalable(a=0.1)"),
    "Scalable TCP, a = 0.01 as published": ("scalable", "scalable"),
    "HighSpeed TCP": ("highspeed", "highspeed"),
    "BIC TCP": ("bic", "bic"),
}
"""What Table 6 calls them, the row, and the controller."""

LOSSES = (1e-4, 3e-4, 1e-3)
"""Loss rates at which TCPs are beyond the windows at which they are Reno."""

RARE = 1e-5
"""A loss rate for BIC alone, whose formula is for windows that are large beside its 32 packets."""

PACED = ((100.0, 3e-3), (100.0, 1e-3), (100.0, 3e-4), (1000.0, 1e-3), (1000.0, 3e-4))
"""Capacities in Mb/s and loss rates at which UDT stays in its first stage."""

BOUNDARY = (100.0, 1e-4)
"""Where Eq. 14 has the second stage: the first one would hold 114 Mb/s."""


@exhibit("table-6", "Increase, decrease and response of five TCPs and UDT (Table 6)", cost=13)
def table_6(lab: Lab) -> Findings:
    """Hold the printed formulas against single flows under random loss."""
    events = lab.pick(300.0, 36.0)

    def tcp_seconds(row: str, p: float) -> float:
        count = events / 3 if p == RARE else events
        return max(30.0, count / p * 0.1 / float(np.asarray(RESPONSES[row](p))))

    tcps = {
        name: lab.run(
            {
                p: nets.lossy(spec, p, tcp_seconds(row, p), 0.1)
                for p in ((RARE, *LOSSES) if row == "bic" else LOSSES)
            },
            partial(read.read_response, law=row),
            lab.seeds(3),
        )
        for name, (row, spec) in TCPS.items()
    }
    paced = {
        (law, mbps, p): lab.run(
            {0: nets.lossy(given(law, mbps), p, _paced_seconds(events, mbps, p), 0.01, mbps)},
            partial(read.read_paced, capacity_mbps=mbps),
            lab.seeds(3),
        )[0]
        for law in ALONE
        for mbps, p in (*PACED, BOUNDARY)
    }
    claims = [claim for name in TCPS for claim in tcp_claims(name, TCPS[name][0], tcps[name])] + [
        claim for law in ALONE for claim in paced_claims(law, paced)
    ]
    return Findings(
        claims,
        [responses(tcps, paced)],
        [response_table(tcps, paced)],
        "Controller, loss rate and, for UDT, capacity.",
        list(INFERRED["table-6"]),
    )


def _paced_seconds(events: float, mbps: float, p: float) -> float:
    """Give the length of a run with so many losses."""
    x = min(float(np.asarray(udt_response(p, mbps * 1e6))), mbps * 1e6 / model.BITS_PER_SYN)
    return max(30.0, events / p * model.SYN / x)


ERRORS = (0.25, 0.5, 0.75, 1.5, 3.0, 8.0, -0.1, -0.25, -0.45, -0.5, -0.6, -0.7, -0.8)
"""Relative errors of the second flow's capacity."""


@exhibit("section-7", "Two flows, one of which misjudges the capacity (section VII)", cost=10)
def section_7(lab: Lab) -> Findings:
    """Hold the four bounds against Eq. 4 and against two flows on 100 Mb/s."""
    warmup, time = lab.pick((20.0, 140.0), (5.0, 25.0))
    pairs: dict[str | float, tuple[float, float]] = {
        error: (100.0, 100.0 * (1 + error)) for error in ERRORS
    }
    pairs |= {"both": (150.0, 150.0), "near": (101.0, 99.0)}
    cases = {name: nets.misjudged(pair, time, warmup) for name, pair in pairs.items()}
    runs = lab.run(cases, read.read_shares, lab.seeds(5))
    ratio = {case: [run.rates[1] / run.rates[0] for run in runs[case]] for case in cases}
    estimates = lab.run(
        {law: nets.ten_flows(law, 0.01, *lab.pick((12.0, 4.0), (4.0, 2.0))) for law in LAWS},
        read.capacity_estimate,
        lab.seeds(3),
    )
    claims, figure, table = misjudgement({error: ratio[error] for error in ERRORS})
    claims += [
        alike(
            "Both take 100 Mb/s for 150 Mb/s: one rate over the other",
            ratio["both"],
            published="with the same error they can still reach fairness",
        ),
        alike(
            "101 and 99 Mb/s on 100 Mb/s: one rate over the other",
            ratio["near"],
            published="almost equally",
        ),
    ]
    claims += [
        at_most(
            f"{law}: what ten flows take 1 Gb/s for, in Mb/s",
            990.0,
            estimates[law],
            published="tends to underestimate the capacity when there are multiple flows",
        )
        for law in LAWS
    ]
    return Findings(
        claims,
        [figure],
        [table],
        "What the flows take the capacity for; the estimate is that of ten flows on 1 Gb/s, 10 ms.",
        list(INFERRED["section-7"]),
    )


@exhibit(
    "protocol", "New: UDT itself beside its stand-in on four of the networks", cost=9, new=True
)
def protocol(lab: Lab) -> Findings:
    """Run the protocol where the other exhibits run rate control in a sender of its own."""
    return daimd_protocol.compare(lab)
