"""Tables 1 to 5 and Fig. 10, section VI, and interpretations of the decrease."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cwnd.papers.daimd import measures as read
from cwnd.papers.daimd import networks as net
from cwnd.papers.daimd.networks import LAWS, READINGS, RTTS
from cwnd.papers.exhibit import exhibit
from cwnd.papers.figure import Curve, Figure, Panel, sweep
from cwnd.papers.grades import alike, at_least, at_most, less, number
from cwnd.papers.text import read_text
from cwnd.stats import POSITIVE, UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd.papers.exhibit import Lab

INDICES = ("EI", "FI", "SI")
WITHIN = {"FI": UNIT, "loss": UNIT}
FAR = ("100 ms", "1 s")
"""RTTs at which the paper reports an advantage of UDT over TCP."""


def columns(runs: Iterable[read.Quantities]) -> dict[str, list[float]]:
    """Collect each quantity over the runs."""
    found = list(runs)
    return {name: [run[name] for run in found] for name in found[0]}


def flow_rates(names: Iterable[str], runs: Sequence[read.Shares]) -> dict[str, list[float]]:
    """Collect the rate of each flow in Mb/s over the runs."""
    return {name: [float(run.rates[n]) for run in runs] for n, name in enumerate(names)}


def compare(lab: Lab, found: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> None:
    """Compare each law's rows with the printed table, whose cells are those of UDT and TCP.

    UDT is claimed to be stable: its rates vary no more than the printed SI.
    """
    for law, rows in found.items():
        bounds = () if law == "TCP" else ("SI",)
        lab.cells("rows", rows, WITHIN, kind=net.kind(law), law=law, at_most=bounds)


Runs: TypeAlias = "dict[tuple[str, str], list[read.Shares]]"
"""Runs of ten flows by law and RTT."""


def indices_against_rtt(lab: Lab, runs: Runs, printed: Mapping[str, list[str]]) -> None:
    """Draw EI, FI and SI of ten flows over the RTT."""
    panels = []
    for n, index in enumerate(INDICES):
        values = {(x, RTTS[rtt]): [r.indices[index] for r in runs[x, rtt]] for x, rtt in runs}
        curves = sweep(values, WITHIN.get(index, POSITIVE))
        cells = [float(row[n]) for row in printed.values()]
        curves.append(Curve("published", [*RTTS.values()], cells, "published"))
        panels.append(Panel("RTT, s", index, curves, x_log=True))
    lab.show(Figure("Indices of ten flows against the RTT", panels, 3))


def ten(lab: Lab, laws: Mapping[str, str], rtts: Iterable[str] = RTTS) -> Runs:
    """Run ten flows of each law at each RTT."""
    near, far, farthest = lab.pick(
        ((14.0, 4.0), (80.0, 30.0), (120.0, 40.0)), ((8.0, 3.0), (20.0, 8.0), (40.0, 16.0))
    )
    skipped = lab.pick((), ("100 µs", "1 ms", "10 ms"))
    cases = {}
    for law, name in product(laws, (name for name in rtts if name not in skipped)):
        rtt = RTTS[name]
        spans = near if rtt < 0.1 else far if rtt < 1 else farthest
        cases[law, name] = net.ten_flows(laws[law], rtt, *spans)
    return lab.run(cases, read.read_shares)


@exhibit("table-1", cost=38, seeds=(5, 5), quick=(5, 5))
def table_1(lab: Lab) -> None:
    """Run four flows that start and stop in turn on 1 Gb/s, 104 ms."""
    laws = lab.pick(LAWS, {"UDT": LAWS["UDT"]})
    stage = lab.pick({"UDT": 100.0, "event": 60.0}, {"UDT": 15.0})
    runs = lab.run({law: net.staircase(laws[law], stage[law]) for law in laws}, read.read_stages)
    stages = list(lab.text.printed["rows"].rows)
    found = {
        law: {
            # The efficiency of a single flow is its rate, its fairness 1.
            name: {
                key: values
                for key, values in columns(run.stages[n] for run in runs[law]).items()
                if 0 < n < 6 or key not in {"EI", "FI"}
            }
            for n, name in enumerate(stages)
        }
        for law in laws
    }
    compare(lab, found)
    panels = []
    aggregate = [float(text) for text in lab.text.printed["rows"].column("EI").values()]
    for law in laws:
        rates = runs[law][0].rates
        t = np.arange(rates.shape[1]) + 0.5
        curves = [Curve("aggregate", t, rates.sum(axis=0), color=0)]
        curves += [
            Curve(f"flow {n}", t, np.where(row > 0, row, np.nan), color=n)
            for n, row in enumerate(rates, 1)
        ]
        middle = (np.arange(7) + 0.5) * stage[law]
        curves.append(Curve("published aggregate", middle, aggregate, "published"))
        panels.append(Panel("time, s", "throughput, Mb/s", curves, law, y_limits=(0, 1500)))
    lab.show(Figure("Throughput of four flows on 1 Gb/s, 104 ms (Fig. 7)", panels, 1))


@exhibit("table-2", cost=8, seeds=(5, 5), quick=(5, 5))
def table_2(lab: Lab) -> None:
    """Run two flows, one of which has a second bottleneck of varying capacity."""
    printed = lab.text.printed["rows"].rows
    ys = {row: float(row.removeprefix("y = ")) for row in printed}
    spans = lab.pick((80.0, 20.0), (9.0, 3.0))
    cases = {
        (law, row): net.two_bottlenecks(LAWS[law], ys[row], *spans)
        for law, row in product(LAWS, printed)
    }
    runs = lab.run(cases, read.read_shares)
    found = {
        law: {row: flow_rates(("AB", "AC"), runs[law, row]) for row in printed} for law in LAWS
    }
    compare(lab, found)
    for law, rows in found.items():
        over = {row: np.array(by["AC"]) / min(ys[row], 100.0) for row, by in rows.items()}
        part = {row: np.array(by["AC"]) / ys[row] for row, by in rows.items()}
        least, half = (np.min([*each.values()], axis=0) for each in (over, part))
        lab.claim("fair-share", at_least(0.9, least), net.kind(law), law=law)
        lab.claim("half", at_least(0.5, half, UNIT), net.kind(law), law=law)


@exhibit("fig-10", cost=1, seeds=(5, 10), quick=(5, 5))
def fig_10(lab: Lab) -> None:
    """Run five flows with different round-trip times on 100 Mb/s."""
    spans = lab.pick((121.0, 20.0), (36.0, 5.0))
    runs = lab.run(
        {law: net.near_and_far(spec, *spans) for law, spec in LAWS.items()}, read.read_shares
    )
    names = list(RTTS)[:5]
    panels = []
    found = {}
    for law in LAWS:
        shares = runs[law]
        rates = flow_rates(names, shares)
        found[law] = {"flows": {**rates, **columns(run.indices for run in shares)}}
        lab.claim("far", less(rates["100 ms"], rates["10 µs"]), net.kind(law), law=law)
        series = shares[0].series
        t = spans[1] + np.arange(series.shape[1]) + 0.5
        curves = [Curve(name, t, row) for name, row in zip(names, series, strict=True)]
        panels.append(Panel("time, s", "throughput, Mb/s", curves, law))
    compare(lab, found)
    lab.show(Figure("Throughputs of five flows with different RTTs", panels))


@exhibit("table-3", cost=2, seeds=(5, 5), quick=(5, 5))
def table_3(lab: Lab) -> None:
    """Run six flows on five links of different capacities."""
    spans = lab.pick((100.0, 20.0), (26.0, 5.0))
    runs = lab.run(
        {law: net.parking_lot(spec, *spans) for law, spec in LAWS.items()}, read.read_shares
    )
    names = lab.text.printed["rows"].columns
    fair = read.max_min()
    found = {}
    for law in LAWS:
        rates = flow_rates(names, runs[law])
        found[law] = {"rate": rates}
        worst = [float(np.min(run.rates / fair)) for run in runs[law]]
        lab.claim("max-min", alike(worst, 1), net.kind(law), law=law)
    compare(lab, found)


@exhibit("table-4", cost=16, seeds=(5, 5), quick=(5, 5))
def table_4(lab: Lab) -> None:
    """Run ten UDT flows at RTTs of 10 µs to 1 s."""
    _indices(lab, LAWS)


@exhibit("table-5", cost=6, seeds=(5, 5), quick=(5, 5), beside="table-4")
def table_5(lab: Lab) -> None:
    """Run ten TCP flows at RTTs of 10 µs to 1 s."""
    _indices(lab, {"TCP": "reno"})


def _indices(lab: Lab, laws: Mapping[str, str]) -> None:
    """Compare the indices of ten flows with the printed table."""
    runs = ten(lab, laws)
    found = {case: columns(run.indices for run in shares) for case, shares in runs.items()}
    compare(lab, {law: {rtt: found[x, rtt] for x, rtt in runs if x == law} for law in laws})
    indices_against_rtt(lab, runs, lab.text.printed["rows"].rows)


@exhibit("section-6", cost=8, seeds=(5, 8), quick=(5, 5), beside="table-4")
def section_6(lab: Lab) -> None:
    """Compare UDT with TCP on long paths, and check the bound of the flow window."""
    runs = ten(lab, {"UDT": LAWS["UDT"], "TCP": "reno"}, FAR)
    for rtt, index in product(FAR, ("EI", "FI")):
        udt, tcp = ([run.indices[index] for run in runs[law, rtt]] for law in ("UDT", "TCP"))
        lab.claim("order", less(tcp, udt), index=index, rtt=rtt)
    means = {case: [[*run.indices.values()] for run in found] for case, found in runs.items()}
    lab.means(["", "RTT", *INDICES], means)
    spans = lab.pick({"10 ms": (15.0, 5.0), "100 ms": (30.0, 15.0)}, {"10 ms": (10.0, 5.0)})
    windows = {
        (law, rtt): net.ten_flows(spec, RTTS[rtt], *spans[rtt], 0.01)
        for (law, spec), rtt in product(LAWS.items(), spans)
    }
    for (law, rtt), values in lab.run(windows, read.window_bound).items():
        lab.claim("window", at_most(1.0, values), net.kind(law), law=law, rtt=rtt)


@exhibit("sensitivity", cost=7, seeds=(5, 5), quick=(5, 5), new=True, beside="table-4")
def sensitivity(lab: Lab) -> None:
    """Run Table 4 under each interpretation of the decrease."""
    runs = ten(lab, LAWS)
    for (law, rtt), shares in runs.items():
        if law == "event":
            for index in INDICES:
                found = (
                    [run.indices[index] for run in each] for each in (shares, runs["UDT", rtt])
                )
                lab.claim("like-udt", alike(*found), index=index, rtt=rtt)
    printed = read_text("daimd").exhibits["table-4"].printed["rows"]
    others = ten(lab, READINGS, lab.pick(("10 ms", "100 ms"), ("100 ms",)))
    for (law, rtt), shares in others.items():
        efficiency = number(printed.column("EI")[rtt], [run.indices["EI"] for run in shares])
        lab.claim("efficiency", efficiency, law=law, rtt=rtt)
    indices_against_rtt(lab, {**runs, **others}, printed.rows)
