"""Tables 1 to 5 and Fig. 10, and section VI."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cwnd._papers.daimd import measures as read
from cwnd._papers.daimd import networks as net
from cwnd._papers.daimd.networks import LAW, RTTS
from cwnd._papers.exhibit import exhibit
from cwnd._papers.figure import Curve, Figure, Panel, sweep
from cwnd._papers.grades import MIN_RUNS, alike, at_least, at_most, fact, less
from cwnd.model import daimd
from cwnd.stats import ANY, POSITIVE, UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cwnd._papers.exhibit import Lab

INDICES = ("EI", "FI", "SI")
WITHIN = {"FI": UNIT, "loss": UNIT}
WIDER = 200.0
"""Capacity L₁ of Table 2 in Mb/s."""
WIDE = (120.0, 150.0, 200.0, 300.0, 500.0, 900.0)
"""Capacities L₁ of section IV in Mb/s: the stages of Eq. 9 repeat with each power of ten."""
FAR = ("100 ms", "1 s")
"""RTTs at which the paper reports an advantage of UDT over TCP."""


def columns(runs: Iterable[read.Quantities]) -> dict[str, list[float]]:
    """Collect each quantity over the runs."""
    found = list(runs)
    return {name: [run[name] for run in found] for name in found[0]}


def flow_rates(names: Iterable[str], runs: Sequence[read.Shares]) -> dict[str, list[float]]:
    """Collect the rate of each flow in Mb/s over the runs."""
    return {name: [float(run.rates[n]) for run in runs] for n, name in enumerate(names)}


def compare(
    lab: Lab, rows: Mapping[str, Mapping[str, list[float]]], *, at_most: tuple[str, ...] = ("SI",)
) -> None:
    """Compare rows with the printed table; UDT is claimed to vary no more than the printed SI."""
    lab.cells("rows", rows, WITHIN, at_most=at_most)


Runs: TypeAlias = "dict[tuple[str, str], list[read.Shares]]"
"""Runs of ten flows by law and RTT."""


def ten(
    lab: Lab, laws: Mapping[str, str], rtts: Iterable[str] = RTTS, seeds: int | None = None
) -> Runs:
    """Run ten flows of each law at each RTT; ``seeds`` is as for `Lab.run`."""
    near, far, farthest = lab.pick(
        ((14.0, 4.0), (80.0, 30.0), (120.0, 40.0)), ((8.0, 3.0), (20.0, 8.0), (40.0, 16.0))
    )
    skipped = lab.pick((), ("100 µs", "1 ms", "10 ms"))
    cases = {}
    for law, name in product(laws, (name for name in rtts if name not in skipped)):
        rtt = RTTS[name]
        spans = near if rtt < 0.1 else far if rtt < 1 else farthest
        cases[law, name] = net.ten_flows(laws[law], rtt, *spans)
    return lab.run(cases, read.read_shares, seeds=seeds)


@exhibit("table-1", cost=38, seeds=(5, 5), quick=(5, 5))
def table_1(lab: Lab) -> None:
    """Run four flows that start and stop in turn on 1 Gb/s, 104 ms."""
    stage = lab.pick(100.0, 15.0)
    runs = lab.run({"": net.staircase(LAW, stage)}, read.read_stages)[""]
    # The efficiency of a single flow is its rate, its fairness 1.
    found = {
        name: {
            key: values
            for key, values in columns(run.stages[n] for run in runs).items()
            if 0 < n < 6 or key not in {"EI", "FI"}
        }
        for n, name in enumerate(lab.text.printed["rows"].rows)
    }
    compare(lab, found)
    rates = runs[0].rates
    t = np.arange(rates.shape[1]) + 0.5
    curves = [Curve("aggregate", t, rates.sum(axis=0), color=0)]
    curves += [
        Curve(f"flow {n}", t, np.where(row > 0, row, np.nan), color=n)
        for n, row in enumerate(rates, 1)
    ]
    aggregate = [float(text) for text in lab.text.printed["rows"].column("EI").values()]
    curves.append(
        Curve("published aggregate", (np.arange(7) + 0.5) * stage, aggregate, "published")
    )
    panel = Panel("time, s", "throughput, Mb/s", curves, y_limits=(0, 1500))
    lab.show(Figure("Throughput of four flows on 1 Gb/s, 104 ms (Fig. 7)", [panel], 1))


@exhibit("table-2", cost=8, seeds=(5, 5), quick=(5, 5))
def table_2(lab: Lab) -> None:
    """Run two flows, one of which has a second bottleneck of varying capacity."""
    printed = lab.text.printed["rows"].rows
    ys = {row: float(row.removeprefix("y = ")) for row in printed}
    spans = lab.pick((80.0, 20.0), (9.0, 3.0))
    cases = {row: net.two_bottlenecks(LAW, ys[row], *spans) for row in printed}
    runs = lab.run(cases, read.read_shares)
    found = {row: flow_rates(("AB", "AC"), runs[row]) for row in printed}
    compare(lab, found)
    over = {row: np.array(by["AC"]) / min(ys[row], 100.0) for row, by in found.items()}
    part = {row: np.array(by["AC"]) / ys[row] for row, by in found.items()}
    lab.claim("fair-share", at_least(0.9, np.min([*over.values()], axis=0)))
    lab.claim("half", at_least(0.5, np.min([*part.values()], axis=0), UNIT))
    total = [np.add(by["AB"], by["AC"]) for by in found.values()]
    spare = [
        (WIDER - np.array(by["AB"])) - (ys[row] - np.array(by["AC"])) for row, by in found.items()
    ]
    lab.claim("eq-16", at_least(0.0, np.min(spare, axis=0), ANY))
    lab.claim("eq-17", alike(np.min(total, axis=0), WIDER))
    _different_capacities(lab)


def _different_capacities(lab: Lab) -> None:
    """Check the cases of Fig. 4 at the equilibria of Eq. 4."""
    cases = [(wide, wide * part) for wide in WIDE for part in np.geomspace(0.01, 0.995, 60)]
    wide, narrow = np.array(cases).T
    ratio = np.array([read.sharing(*case) for case in cases])
    second = wide * ratio / (1 + ratio)
    first = wide - second
    part = second / narrow
    lab.claim("half-eq-4", fact(f"at least {part.min():.3f} of L₂", holds=bool(part.min() >= 0.5)))
    ends = np.asarray(daimd.stage_end(1, 1e6 * narrow)) * daimd.BITS_PER_SYN / (1e6 * narrow)
    lab.claim("stage-2", fact(f"from {ends.min():.3f} of L₂ on", holds=bool(ends.min() >= 0.9)))

    def increases(mbps: read.Array, capacity: read.Array) -> read.Array:
        """Return the increases just below and just above a rate: two at the end of a stage."""
        near = np.array([0.998 * mbps, 1.002 * mbps]) * 1e6 / daimd.BITS_PER_SYN
        return np.asarray(daimd.increase_per_syn(near, 1e6 * capacity))

    def within(found: read.Array, stage: read.Array) -> npt.NDArray[np.bool_]:
        """Test whether rates are in the stage with an increase, or at one of its ends."""
        return np.asarray((found[1] <= 1.001 * stage) & (found[0] >= 0.999 * stage))

    ours, theirs = increases(first, wide), increases(second, narrow)
    same = np.isclose(ours, theirs).all(axis=0) & np.isclose(*ours)
    apart = float(np.abs(ratio[same] - 1).max())
    words = f"within {100 * apart:.1f} % in {same.sum()} of {same.size} cases"
    lab.claim("same-increase", fact(words, holds=apart < 0.01))
    second_stage = within(theirs, np.asarray(daimd.stage_increase(1, 1e6 * narrow)))
    first_above = within(ours, increases(wide - narrow, wide)[1]) & (first > wide - narrow)
    found = (second_stage & first_above)[(np.abs(ratio - 1) > 0.01) & (part < 0.9)]
    words = f"in {found.sum()} of {found.size} cases"
    lab.claim("unfair", fact(words, holds=bool(found.all())))


@exhibit("fig-10", cost=1, seeds=(5, 10), quick=(5, 5))
def fig_10(lab: Lab) -> None:
    """Run five flows with different round-trip times on 100 Mb/s."""
    spans = lab.pick((121.0, 20.0), (36.0, 5.0))
    shares = lab.run({"": net.near_and_far(LAW, *spans)}, read.read_shares)[""]
    names = list(RTTS)[:5]
    rates = flow_rates(names, shares)
    lab.claim("far", less(rates["100 ms"], rates["10 µs"]))
    mean = np.mean([*rates.values()], axis=0).tolist()
    for rtt, values in rates.items():
        lab.claim("independent", alike(values, mean), rtt=rtt)
    compare(lab, {"flows": {**rates, **columns(run.indices for run in shares)}})
    series = shares[0].series
    t = spans[1] + np.arange(series.shape[1]) + 0.5
    curves = [Curve(name, t, row) for name, row in zip(names, series, strict=True)]
    panel = Panel("time, s", "throughput, Mb/s", curves)
    lab.show(Figure("Throughputs of five flows with different RTTs", [panel]))


@exhibit("table-3", cost=2, seeds=(5, 5), quick=(5, 5))
def table_3(lab: Lab) -> None:
    """Run six flows on five links of different capacities."""
    spans = lab.pick((100.0, 20.0), (26.0, 5.0))
    runs = lab.run({"": net.parking_lot(LAW, *spans)}, read.read_shares)[""]
    worst = [float(np.min(run.rates / read.max_min())) for run in runs]
    lab.claim("max-min", alike(worst, 1))
    compare(lab, {"rate": flow_rates(lab.text.printed["rows"].columns, runs)})


@exhibit("table-4", cost=16, seeds=(5, 5), quick=(5, 5))
def table_4(lab: Lab) -> None:
    """Run ten UDT flows at RTTs of 10 µs to 1 s."""
    _indices(lab, LAW, ("SI",))


@exhibit("table-5", cost=6, seeds=(5, 5), quick=(5, 5), beside="table-4")
def table_5(lab: Lab) -> None:
    """Run ten TCP flows at RTTs of 10 µs to 1 s."""
    _indices(lab, "reno", ())


def _indices(lab: Lab, law: str, bounds: tuple[str, ...]) -> None:
    """Compare the indices of ten flows with the printed table, and draw them over the RTT."""
    runs = ten(lab, {law: law})
    found = {rtt: columns(run.indices for run in shares) for (_, rtt), shares in runs.items()}
    compare(lab, found, at_most=bounds)
    printed = lab.text.printed["rows"]
    panels = []
    for index in INDICES:
        values = {(law, RTTS[rtt]): by[index] for rtt, by in found.items()}
        curves = sweep(values, WITHIN.get(index, POSITIVE))
        cells = [float(cell) for cell in printed.column(index).values()]
        curves.append(Curve("published", [*RTTS.values()], cells, "published"))
        panels.append(Panel("RTT, s", index, curves, x_log=True))
    lab.show(Figure("Indices of ten flows against the RTT", panels, 3))


@exhibit("section-6", cost=30, seeds=(5, 8), quick=(5, 5), beside="table-4")
def section_6(lab: Lab) -> None:
    """Compare UDT with TCP on long paths, and check the bound of the flow window."""
    runs = ten(lab, {"DAIMD": LAW, "TCP": "reno"}, FAR)
    for rtt, index in product(FAR, ("EI", "FI")):
        udt, tcp = ([run.indices[index] for run in runs[law, rtt]] for law in ("DAIMD", "TCP"))
        lab.claim("order", less(tcp, udt), index=index, rtt=rtt)
    means = {case: [[*run.indices.values()] for run in found] for case, found in runs.items()}
    lab.means(["", "RTT", *INDICES], means)
    if not lab.trial.text:
        _without_window(lab, runs)
    spans = lab.pick({"10 ms": (15.0, 5.0), "100 ms": (30.0, 15.0)}, {"10 ms": (10.0, 5.0)})
    windows = {rtt: net.ten_flows(LAW, RTTS[rtt], *spans[rtt], 0.01) for rtt in spans}
    bound = {"then": read.window_bound, "largest": read.largest_window_bound}
    for rtt, values in lab.run(windows, bound[lab.option("arrivals", "then")]).items():
        lab.claim("window", at_most(1.0, values), rtt=rtt)


def _without_window(lab: Lab, runs: Runs) -> None:
    """Compare the stability of UDT on long paths with that without the flow window."""
    seeds = min(lab.seeds, MIN_RUNS)
    free = ten(lab, {"DAIMD": net.variant(LAW, **{"lambda": 1})}, FAR, seeds)
    for rtt in FAR:
        with_, without = (
            [run.indices["SI"] for run in of["DAIMD", rtt][:seeds]] for of in (runs, free)
        )
        lab.claim("stable", less(with_, without), rtt=rtt)
