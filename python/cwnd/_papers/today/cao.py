"""Cao et al. 2019: when to use and when not to use BBR."""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel, Regions
from cwnd._papers.grades import at_least, at_most, between, fact, less
from cwnd._papers.today.measures import each
from cwnd._papers.today.networks import PAYLOAD, cliff, filled, pair
from cwnd.stats import UNIT

Array: TypeAlias = npt.NDArray[np.float64]

LAWS = ("bbr", "cubic")
SHALLOW, DEEP = 100, 10_000
"""Buffers in KB."""
BUFFERS = {SHALLOW: "100KB", DEEP: "10MB"}
"""Names of the buffers."""
RATES, RTTS = (100, 250, 500), (25, 100, 200)
"""Part of the paper's grid of 10 to 1000 Mb/s and 5 to 200 ms."""
GRID = [
    *product((10, 20, 50, 100, 250, 500, 750, 1000), (5, 10, 25, 50, 75, 100, 150, 200)),
]
"""All rates and round-trip times of the paper's grid."""


@exhibit("cao-fig-5", cost=120, seeds=(5, 5))
def cao_fig_5(lab: Lab) -> None:
    """Run one flow of BBR and one of CUBIC for each rate, round-trip time and buffer."""
    speeds, rtts = lab.pick((RATES, RTTS), ((100,), (200,)))
    duration = 60.0
    places = list(product(speeds, rtts))
    cells = [(size, *place) for size, place in product((SHALLOW, DEEP), places)]
    shallow = {SHALLOW: float(lab.option("shallow", str(SHALLOW)))}
    cases = {
        (law, *cell): filled(law, cell[1], cell[2], shallow.get(cell[0], cell[0]), duration)
        for law, cell in product(LAWS, cells)
    }
    found = lab.run(cases, each)
    goodput = {case: np.array([f.goodput for (f,) in runs]) for case, runs in found.items()}
    gains = {cell: goodput[("bbr", *cell)] / goodput[("cubic", *cell)] for cell in cells}
    for size in (SHALLOW, DEEP):
        table = {
            f"{rate} Mb/s": {f"{rtt} ms": gains[size, rate, rtt] for rtt in rtts} for rate in speeds
        }
        lab.cells(f"gain-{size}", table, law=BUFFERS[size])
        for rate, rtt in places:
            bbr, cubic = (goodput[law, size, rate, rtt] for law in LAWS)
            where = {"rate": rate, "rtt": rtt}
            printed = float(lab.text.printed[f"gain-{size}"].column(f"{rtt} ms")[f"{rate} Mb/s"])
            if size == SHALLOW and printed >= 1.05:
                lab.claim("shallow", less(cubic, bbr), **where)
            elif size == DEEP and printed <= 0.95:
                lab.claim("deep", less(bbr, cubic), **where)
    if not lab.quick:
        for size, law in product((SHALLOW, DEEP), LAWS):
            of = {place: found[(law, size, *place)] for place in places}
            if lab.option("grid", "") == f"{law}-{size}":
                every = {place: filled(law, *place, size, duration) for place in GRID}
                of = lab.run(every, each)
            lost = [[100 * flow.lost for (flow,) in runs] for runs in of.values()]
            lab.number(f"lost-{law}-{size}", np.mean(lost, axis=0))
            repeated = [f.repeated for (f,) in found[law, size, 500, 25]]
            lab.number(f"repeated-{law}-{size}", repeated)
    lab.show(_maps(lab, gains, speeds, rtts))


def _maps(
    lab: Lab,
    gains: dict[tuple[int, int, int], Array],
    speeds: tuple[int, ...],
    rtts: tuple[int, ...],
) -> Figure:
    """Draw the printed and the measured ratios of the goodputs."""
    columns, rows = [f"{rtt} ms" for rtt in rtts], [f"{rate} Mb/s" for rate in speeds]
    panels = []
    for size, name in BUFFERS.items():
        table = lab.text.printed[f"gain-{size}"]
        said = np.array([[float(table.column(c)[row]) for c in columns] for row in rows])
        mine = np.array([[gains[size, rate, rtt].mean() for rtt in rtts] for rate in speeds])
        for title, values in ((f"{name}, published", said), (f"{name}, measured", mine)):
            ends = (float(min(said.min(), mine.min())), float(max(said.max(), mine.max())))
            axes = (range(len(rtts)), range(len(speeds)))
            regions = Regions(*axes, values, numbers=True, limits=ends)
            panels.append(Panel("", "", title=title, regions=regions, ticks=columns, y_ticks=rows))
    return Figure("Goodput of BBR over that of CUBIC", panels)


LOSSES = (0.0, 0.01, 0.02, 0.05, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22, 0.25, 0.3)
FEW = (0.0, 0.01, 0.1, 0.14, 0.18)


@exhibit("cao-fig-7", cost=12, seeds=(5, 5))
def cao_fig_7(lab: Lab) -> None:
    """Run one flow on a link with random loss and a deep buffer."""
    losses = lab.pick(LOSSES, FEW)
    laws = {"bbr": "BBR", "cubic": "CUBIC", "reno": "Reno"}
    before = lab.option("losses", "behind") == "before"
    cases = {
        (law, loss): cliff(law, loss, 60.0, before=before) for law, loss in product(laws, losses)
    }
    found = lab.run(cases, each)
    goodput = {case: np.array([f.goodput for (f,) in runs]) for case, runs in found.items()}
    for loss in losses:
        percent = f"{100 * loss:g}"
        if 0 < loss <= 0.18:
            lab.claim("holds", between(93, 95, goodput["bbr", loss]), loss=percent)
            if loss >= 0.05:
                most = 100 * PAYLOAD * (1 - loss)
                lab.claim("limit", fact(f"{most:.1f} Mb/s", holds=most < 93), loss=percent)
        if loss >= 0.01:
            for law in ("cubic", "reno"):
                lab.claim("falls", at_most(20.0, goodput[law, loss]), law=laws[law], loss=percent)
    top = np.array([goodput["bbr", loss] for loss in losses])
    lab.number("cliff", 100 * np.array([_half(losses, run) for run in top.T]))
    if 0.25 in losses:
        lab.claim("collapsed", at_most(20.0, goodput["bbr", 0.25]))
    repeated = {case: np.array([f.repeated for (f,) in runs]) for case, runs in found.items()}
    x = [100 * loss for loss in losses]
    panels = []
    for label, values in (("goodput, Mb/s", goodput), ("retransmissions", repeated)):
        curves = [
            Curve.of_means(name, x, [values[law, loss] for loss in losses])
            for law, name in laws.items()
        ]
        if label.startswith("goodput"):
            curves.append(Curve("1 - 1/1.25", [20.0, 20.0], [0.0, 95.0], dashed=True))
        largest = 1.1 * max(float(run.mean()) for run in values.values())
        panels.append(Panel("random loss, %", label, curves, y_limits=(0.0, largest)))
    lab.show(Figure("One flow on 100 Mb/s, 25 ms and a buffer of 10 MB", panels))


def _half(losses: tuple[float, ...], goodput: Array) -> float:
    """Return the loss at which the goodput falls below half of that without loss.

    It is interpolated between the measured ones.
    """
    level = goodput[0] / 2
    first = int(np.argmax(goodput < level))
    if goodput[first] >= level:
        return losses[-1]
    above, below = goodput[first - 1], goodput[first]
    low, high = losses[first - 1], losses[first]
    return float(low + (high - low) * (above - level) / (above - below))


SIZES = (10, 100, 1000, 5000, 10_000)
"""Buffers of Fig. 8 in KB, which has 10 KB to 10 MB."""


@exhibit("cao-fig-8", cost=70, seeds=(5, 5))
def cao_fig_8(lab: Lab) -> None:
    """Run a flow of BBR beside one of CUBIC on 1 Gb/s for each buffer."""
    sizes = lab.pick(SIZES, (10, 10_000))
    cases = {size: pair(size, lab.pick(60.0, 10.0)) for size in sizes}
    found = lab.run(cases, each)
    share = {
        size: np.array([b.goodput / (b.goodput + c.goodput) for b, c in runs])
        for size, runs in found.items()
    }
    lab.number("smallest", 100 * share[10])
    lab.claim("more", at_most(0.5, share[10_000], UNIT))
    lab.claim("less", at_least(0.5, share[10], UNIT))
    if not lab.quick:
        lab.number("largest", [c.goodput / b.goodput for b, c in found[10_000]])
        lab.number("even", 100 * share[5000])
        lab.number("bbr-repeats", [b.repeated for b, _ in found[100]])
        lab.number("cubic-repeats", [c.repeated for _, c in found[100]])
    x, ticks = range(len(sizes)), [str(size) for size in sizes]
    panels = []
    for label, key in (("goodput, Mb/s", "goodput"), ("retransmissions", "repeated")):
        curves = [
            Curve.of_means(name, x, [[getattr(run[i], key) for run in found[s]] for s in sizes])
            for i, name in enumerate(("BBR", "CUBIC"))
        ]
        log = key == "repeated"
        panels.append(Panel("buffer, KB", label, curves, ticks=ticks, y_log=log))
    lab.show(Figure("A flow of BBR beside one of CUBIC on 1 Gb/s and 20 ms", panels))
