"""Ware et al. 2019: BBR beside loss-based congestion control."""

from __future__ import annotations

from itertools import product

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import alike, at_least, at_most, less
from cwnd._papers.today.measures import limits, share
from cwnd._papers.today.networks import FRAME, Place, bdp, versus
from cwnd.stats import UNIT

SLOW, FAST = Place(10, 40), Place(50, 30)
PRODUCTS = {SLOW: (1, 2, 4, 8, 16, 32, 64), FAST: (1, 2, 4, 8, 16)}
"""Buffers of Fig. 8 in bandwidth-delay products."""
DURATIONS = {("cubic", SLOW): 400.0, ("cubic", FAST): 200.0, ("reno", SLOW): 200.0}
"""Durations of the runs in seconds."""
MANY, FEW = (1, 2, 4, 8, 16), (1, 16)
"""Numbers of loss-based flows."""
DEEP = {SLOW: 32, FAST: 8}
"""Buffers in which the number of loss-based flows varies: that of Fig. 1, and a smaller one."""


def fraction(place: Place, products: float, flows: int) -> float:
    """Return the share of flows of BBR beside loss-based flows, by the paper's model.

    Examples
    --------
    >>> round(fraction(Place(10, 40), 32, 1), 2)
    0.44
    """
    queue = products * bdp(place.rate, place.rtt)
    capacity = place.rate * 1e6 / 8 / FRAME
    loss_based = max(0.0, 1 / 2 - 1 / (2 * products) - 4 * flows / queue)
    probing = (queue / capacity + 0.2 + place.rtt / 1e3) / 10
    return (1 - loss_based) * (1 - probing)


@exhibit("ware-fig-8", cost=30, seeds=(5, 5))
def fig_8(lab: Lab) -> None:
    """Run flows of BBR beside one loss-based flow for each buffer, and compare with the model."""
    counts, long = lab.pick((1, 2, 4), (1,)), lab.pick(1.0, 0.5)
    others = {"cubic": lab.pick((SLOW, FAST), (SLOW,)), "reno": (SLOW,)}
    panels = []
    for other, places in others.items():
        cases = {
            (place, size, n): versus(place, size, n, 1, long * DURATIONS[other, place], other=other)
            for place in places
            for size, n in product(PRODUCTS[place], counts)
        }
        found = {case: np.array(runs) for case, runs in lab.run(cases, share).items()}
        errors = np.array([np.abs(runs - fraction(*case)) for case, runs in found.items()])
        name = {"cubic": "CUBIC", "reno": "Reno"}[other]
        lab.number(f"error-{other}", 100 * np.median(errors, axis=0))
        for size in (8, 16, 32):
            lab.claim("half", at_most(0.5, found[SLOW, size, 1], UNIT), other=name, size=size)
        for size in PRODUCTS[SLOW]:
            grade = alike(found[SLOW, size, 1], fraction(SLOW, size, 1))
            lab.claim("model", grade, "cell", other=name, size=size)
        for place in places:
            curves = []
            for color, n in enumerate(counts):
                sizes = PRODUCTS[place]
                x, mine = range(len(sizes)), [found[place, size, n] for size in sizes]
                label = f"{n} BBR"
                curves.append(Curve.of_means(label, x, mine, "points", within=UNIT, color=color))
                predicted = [fraction(place, size, n) for size in sizes]
                curves.append(Curve(f"{label}, model", x, predicted, color=color, dashed=True))
            title = f"beside one {name}, {place.label}"
            label = "share of BBR"
            ticks = [str(size) for size in PRODUCTS[place]]
            panels.append(
                Panel("buffer / BDP", label, curves, title, ticks=ticks, y_limits=(0.0, 1.0))
            )
    lab.show(Figure("Share of BBR beside one loss-based flow", panels))


@exhibit("ware-flows", cost=15, seeds=(5, 10), quick=(5, 5), beside="ware-fig-8")
def flows(lab: Lab) -> None:
    """Run one flow of BBR beside 1 to 16 flows of CUBIC."""
    many = lab.pick(MANY, FEW)
    deep = DEEP | {SLOW: int(lab.option("products", str(DEEP[SLOW])))}
    long = {place: lab.pick(1.0, 0.5) * DURATIONS["cubic", place] for place in deep}
    cases = {(p, n): versus(p, size, 1, n, long[p]) for p, size in deep.items() for n in many}
    found = lab.run(cases, share)
    single = {place: versus(place, size, 1, 0, long[place]) for place, size in deep.items()}
    free = lab.run(single, limits)
    held = lab.run({place: cases[place, 1] for place in deep}, limits)
    for place, size in DEEP.items():
        for n in many[1:]:
            grade = alike(found[place, n], found[place, 1])
            lab.claim("independent", grade, place=place.label, size=size, flows=n)
        grade = less([run.window for run in free[place]], [run.window for run in held[place]])
        lab.claim("window", grade, place=place.label, size=size)
        grade = at_least(1.05, [run.estimate for run in held[place]])
        lab.claim("estimate", grade, place=place.label, size=size)
    lab.number("forty", [100 * value for value in found[SLOW, 16]])
    curves = [
        Curve.of_means(
            f"{place.label}, {size} BDP",
            range(len(many)),
            [found[place, n] for n in many],
            within=UNIT,
        )
        for place, size in deep.items()
    ]
    curves.append(Curve("fair share", range(len(many)), [1 / (1 + n) for n in many], dashed=True))
    panel = Panel(
        "flows of CUBIC",
        "share of BBR",
        curves,
        ticks=[str(n) for n in many],
        y_limits=(0.0, 1.0),
    )
    lab.show(Figure("Share of one flow of BBR beside flows of CUBIC", [panel]))
