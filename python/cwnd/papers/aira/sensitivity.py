"""The choices that the paper leaves open."""

from __future__ import annotations

import numpy as np

from cwnd.papers.aira import networks as net
from cwnd.papers.aira.claims import HEADS, column
from cwnd.papers.aira.measures import row
from cwnd.papers.aira.networks import BOUNDED, FULL
from cwnd.papers.exhibit import Lab, exhibit
from cwnd.papers.figure import Curve, Figure, Panel, Table
from cwnd.papers.grades import alike

CHOICES = {
    "lower bound of a": ("bound", ("0", "0.05", "0.1", "0.2", "0.5"), "0.1"),
    "rounds until MAIL is at the bound": ("rounds", ("25", "50", "100", "200", "400"), "100"),
    "MAIL": ("mail", ("on", "off"), "on"),
    "window over W that resets a": ("ratio", ("1.1", "1.25", "1.5", "2", "3"), "1.5"),
}
"""Parameter of the law, its values and the paper's value, by what is chosen."""


def variants(what: str, *, reset: bool) -> dict[str, str]:
    """Return the law for each value of a choice, with or without the reset condition."""
    key, values, paper = CHOICES[what]
    off = "" if reset else ", reset=off"
    papers = FULL if reset else BOUNDED
    return {v: papers if v == paper else f"aira({key}={v}{off})" for v in values}


@exhibit("sensitivity", cost=12, seeds=(10, 20), quick=(5, 10), new=True)
def sensitivity(lab: Lab) -> None:
    """Change one choice at a time."""
    networks = {"Table 4": net.diverse, "Table 3": net.contention}
    series = {
        (what, reset): variants(what, reset=reset)
        for what in CHOICES
        for reset in (True, False)
        if reset or what != "window over W that resets a"
    }
    laws = {law for by_value in series.values() for law in by_value.values()}
    cases = {(name, law): make(law) for name, make in networks.items() for law in sorted(laws)}
    runs = lab.run(cases, row)
    panels: dict[bool, list[Panel]] = {True: [], False: []}
    for key in ("fairness", "retransmissions"):
        for (what, reset), by_value in series.items():
            curves = []
            for name in networks:
                found = {v: column(runs[name, law], key) for v, law in by_value.items()}
                base = np.array(found[CHOICES[what][2]])
                far = max(found, key=lambda v: abs(np.log(np.mean(found[v]) / base.mean())))
                grade = alike(found[far], base)
                rules = "with reset" if reset else "without reset"
                lab.claim("farthest", grade, what=what, rules=rules, quantity=key, network=name)
                ratios = [np.array(values) / base for values in found.values()]
                curves.append(Curve.of_means(name, range(len(ratios)), ratios))
            axis = f"{key} over the default's"
            panels[reset].append(Panel(what, axis, curves, ticks=list(by_value), y_limits=(0, 2.2)))
    lab.show(
        Figure("AIRA's free choices", panels[True], len(CHOICES), "reset"),
        Figure("The same without the reset condition", panels[False], len(CHOICES) - 1, "no-reset"),
        Table(
            "means",
            "Means for each choice",
            ["network", "law", *HEADS.values()],
            [
                [name, law, *(float(np.mean(column(found, key))) for key in HEADS)]
                for (name, law), found in runs.items()
            ],
        ),
    )
