"""Cardwell et al. 2017, Hock et al. 2017 and Jaeger et al. 2019: BBR alone."""

from __future__ import annotations

from itertools import product

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import alike, at_least, at_most, fact, less, no_more
from cwnd._papers.today.measures import (
    beginning,
    course,
    each,
    probes,
    rates,
    responses,
    share,
    shared,
)
from cwnd._papers.today.networks import (
    PAYLOAD,
    bdp,
    framework,
    joining,
    lossy,
    several,
    start,
    steps,
)
from cwnd.stats import UNIT

NAMES = {"bbr": "BBR", "cubic": "CUBIC"}

LOSSES = (1e-5, 1e-4, 1e-3, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Probabilities of random loss of Fig. 10, which has 0.001 % to 50 %."""
FEW = (1e-3, 0.02, 0.15)


def response(loss: float, rtt: float) -> float:
    """Return CUBIC's mean window in packets at a loss rate (RFC 9438, sections 4.3 and 5.1).

    Examples
    --------
    >>> round(response(1e-3, 0.1), 1)
    38.7
    """
    return float(max(1.054 * (rtt / loss) ** 0.75, np.sqrt(1.5 / loss)))


@exhibit("bbr-fig-10", cost=10, seeds=(5, 10))
def bbr_fig_10(lab: Lab) -> None:
    """Run one flow on a link with random loss."""
    losses = lab.pick(LOSSES, FEW)
    cases = {(law, loss): lossy(law, loss, 60.0) for law, loss in product(NAMES, losses)}
    found = {
        case: np.array([flow.goodput for (flow,) in runs]) / (100 * PAYLOAD)
        for case, runs in lab.run(cases, each).items()
    }
    for loss in losses:
        percent, mine = f"{100 * loss:g}", found["bbr", loss] / (1 - loss)
        if loss <= 0.05:
            lab.number("meets", mine, loss=percent)
        elif loss <= 0.15:
            lab.claim("close", at_least(0.85, mine), loss=percent)
        if 0.01 < loss <= 0.15:
            lab.claim("stalls", at_most(0.05, found["cubic", loss]), loss=percent)
    lab.number("tenth", 1 / found["cubic", 1e-3])
    part = 100 * PAYLOAD / (response(1e-3, 0.1) * 8e-6 * 1448 / 0.1)
    lab.claim("response", fact(f"{part:.1f} times", holds=part > 11.5))
    curves = [
        Curve.of_means(
            name, [100 * loss for loss in losses], [100 * found[law, loss] for loss in losses]
        )
        for law, name in NAMES.items()
    ]
    limit = np.geomspace(losses[0], losses[-1], 50)
    curves.append(Curve("limit", 100 * limit, 100 * (1 - limit), dashed=True))
    panel = Panel("random loss, %", "goodput, Mb/s", curves, x_log=True, y_limits=(0.0, 105.0))
    lab.show(Figure("Goodput of one flow on 100 Mb/s and 100 ms", [panel]))


SIZES = (2, 4, 8)
"""Buffers in bandwidth-delay products; the figure's is not in our copy of the text."""


@exhibit("bbr-fig-7", cost=2, seeds=(5, 10))
def bbr_fig_7(lab: Lab) -> None:
    """Run one flow that starts on an idle link."""
    product_ = bdp(10, 40)
    cases = {(law, size): start(law, 8.0, size) for law, size in product(NAMES, SIZES)}
    runs = lab.run(cases, beginning)
    for size in SIZES:
        mine, other = runs["bbr", size], runs["cubic", size]
        queue = [run.mean / product_ for run in mine]
        lab.claim("short", at_most(0.25, queue), size=size)
        grade = no_more(lab.text.claims["startup"].printed, [run.most / product_ for run in mine])
        lab.claim("startup", grade, size=size)
        grade = less([run.second for run in mine], [run.second for run in other])
        lab.claim("drains", grade, size=size)
        lab.number("full", [100 * run.high for run in other], size=size)
        lab.number("cycle", [100 * run.low for run in other], size=size)
    panels = []
    for size in (SIZES[0], SIZES[-1]):
        curves = []
        for law, name in NAMES.items():
            (run,) = lab.run({law: cases[law, size]}, course, seeds=1)[law]
            curves.append(Curve(name, run.time, 1e3 * run.rtt))
        title = f"buffer of {size} BDP"
        panels.append(Panel("time, s", "round-trip time, ms", curves, title))
    lab.show(Figure("First 8 s of one flow on 10 Mb/s and 40 ms", panels))


CYCLES = 4 * 8 * 0.04
"""Time in seconds in which gains of 5/4 double the rate: four cycles of eight round trips."""


@exhibit("bbr-fig-5", cost=1)
def bbr_fig_5(lab: Lab) -> None:
    """Double the rate of the link, and halve it."""
    runs = lab.run({"bbr": steps("bbr")}, responses)["bbr"]
    lab.claim("up", at_most(CYCLES, [run.up for run in runs]))
    lab.claim("down", at_most(1.0, [run.down / (10 * run.slowest) for run in runs]))
    (run,) = lab.run({"bbr": steps("bbr")}, course, seeds=1)["bbr"]
    panels = []
    for begin in (19.5, 39.5):
        here = (run.time >= begin) & (run.time < begin + 4)
        time = run.time[here]
        link = [10, 20, 20] if begin < 30 else [20, 10, 10]
        curves = [
            Curve("delivery rate", time, run.rate[here]),
            Curve("link", [begin, begin + 0.5, begin + 4], link, "steps", dashed=True),
        ]
        panels.append(Panel("time, s", "Mb/s", curves))
        panels.append(
            Panel("time, s", "round-trip time, ms", [Curve("", time, 1e3 * run.rtt[here])])
        )
    lab.show(Figure("BBR at a doubled rate, and at a halved one", panels))


@exhibit("bbr-fig-8", cost=8, seeds=(5, 10))
def bbr_fig_8(lab: Lab) -> None:
    """Start flows of BBR one after the other."""
    cases = {count: joining(count, 2.0, 60.0) for count in lab.pick((2, 4, 6), (2, 4))}
    for count, runs in lab.run(cases, probes).items():
        lab.claim("fair", alike([run.jain for run in runs], 1), flows=count)
        lab.claim("together", at_most(1.0, [run.together for run in runs]), flows=count)
        lab.claim("overlap", at_least(0.5, [run.overlap for run in runs], UNIT), flows=count)
    [(time, series)] = lab.run({4: cases[4]}, rates, seeds=1)[4]
    curves = [Curve(f"flow {n}", time, rate) for n, rate in enumerate(series, 1)]
    panel = Panel("time, s", "goodput, Mb/s", curves)
    lab.show(Figure("Four flows of BBR on 100 Mb/s and 10 ms", [panel]))


SHALLOW, ROOMY = (0.25, 0.5, 0.8, 1.0), (1.5, 2.0, 4.0, 8.0)
"""Buffers in bandwidth-delay products."""
UNEVEN = (20.0, 80.0)
"""Round-trip times in ms of two flows."""


@exhibit("hock", cost=25, seeds=(5, 5))
def hock(lab: Lab) -> None:
    """Run several flows for each buffer, and flows with different round-trip times."""
    duration, counts = 60.0, lab.pick((1, 2, 6), (1, 6))
    sizes = lab.pick(SHALLOW + ROOMY, (0.5, 8.0))
    cases = {
        (law, count, size): several(law, count, size, duration)
        for law, count, size in product(NAMES, counts, sizes)
    }
    runs = lab.run(cases, shared)
    loss = {case: [100 * run.loss for run in found] for case, found in runs.items()}
    queue = {case: [run.queue / bdp(50, 40) for run in found] for case, found in runs.items()}
    for size in sizes:
        if size <= 1:
            grade = less(loss["cubic", 6, size], loss["bbr", 6, size])
            lab.claim("loss", grade, size=f"{size:g}")
            grade = at_least(1.0, loss["bbr", 6, size])
            lab.claim("sustained", grade, size=f"{size:g}")
        elif size >= 2:
            grade = at_most(1.0, loss["bbr", 6, size])
            lab.claim("ends", grade, size=f"{size:g}")
    for count in counts[1:]:
        lab.number("queue", queue["bbr", count, 8.0], flows=count)
    lab.claim("intended", at_most(0.25, queue["bbr", 1, 8.0]))
    uneven = {
        (law, size): several(law, 1, size, lab.pick(120.0, 60.0), UNEVEN)
        for law, size in product(NAMES, sizes)
    }
    last = {case: [run.last for run in found] for case, found in lab.run(uneven, shared).items()}
    for size in sizes:
        if size >= 1:
            grade = at_least(0.5, last["bbr", size], UNIT)
            lab.claim("unfair", grade, size=f"{size:g}")
    x, ticks = range(len(sizes)), [f"{size:g}" for size in sizes]
    panels = [
        Panel(
            "buffer / BDP",
            label,
            [
                Curve.of_means(f"{count} {name}", x, [values[law, count, s] for s in sizes])
                for (law, name), count in product(NAMES.items(), (1, 6))
            ],
            ticks=ticks,
            y_limits=(0.0, top),
        )
        for label, values, top in (
            ("lost packets, %", loss, 12.0),
            ("mean queue / BDP", queue, 8.0),
        )
    ]
    curves = [
        Curve.of_means(name, x, [last[law, s] for s in sizes], within=UNIT)
        for law, name in NAMES.items()
    ]
    label = "share of the flow with 80 ms"
    panels.append(Panel("buffer / BDP of 80 ms", label, curves, ticks=ticks, y_limits=(0.0, 1.0)))
    lab.show(Figure("Flows of one law on 50 Mb/s", panels))


BUFFERS = (10, 25, 50, 100, 200, 400)
"""Buffers in ms at 10 Mb/s; the framework's default is 100 ms."""


@exhibit("jaeger", cost=5, seeds=(5, 10))
def jaeger(lab: Lab) -> None:
    """Run the framework's configurations of five flows of BBR, and of BBR beside CUBIC."""
    five = framework(("bbr",) * 5, 100, 90.0)
    runs = lab.run({"five": five}, probes)["five"]
    lab.claim("equilibrium", at_most(0.95, [run.jain for run in runs], UNIT))
    lab.claim("together", at_most(1.0, [run.together for run in runs]))
    lab.claim("overlap", at_least(0.5, [run.overlap for run in runs], UNIT))
    cases = {size: framework(("bbr", "cubic"), 50, 120.0, buffer=size) for size in BUFFERS}
    found = lab.run(cases, share)
    lab.claim("suppress", at_least(0.5, found[100], UNIT))
    [(time, series)] = lab.run({0: five}, rates, seeds=1)[0]
    curves = [Curve(f"flow {n}", time, rate) for n, rate in enumerate(series, 1)]
    x = range(len(BUFFERS))
    even = Curve("even", [0, x[-1]], [0.5, 0.5], dashed=True)
    beside = [Curve.of_means("BBR", x, [found[s] for s in BUFFERS], within=UNIT), even]
    panels = [
        Panel("time, s", "goodput, Mb/s", curves, "five flows of BBR, 100 ms"),
        Panel(
            "buffer, ms",
            "share of BBR",
            beside,
            "BBR beside CUBIC, 50 ms",
            ticks=[str(size) for size in BUFFERS],
            y_limits=(0.0, 1.0),
        ),
    ]
    lab.show(Figure("The framework's configurations on 10 Mb/s", panels))
