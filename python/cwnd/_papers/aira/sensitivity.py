"""Sensitivity to choices that the paper does not state."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.aira import networks as net
from cwnd._papers.aira.claims import COLUMNS, column
from cwnd._papers.aira.measures import row
from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import less

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd._runs.scenario import Scenario

PEAK = "W of the reset condition"

CHOICES = {
    "lower bound of a": ("bound", ("0", "0.05", "0.1", "0.2", "0.5"), "0.1"),
    "rounds until MAIL is at the bound": ("rounds", ("25", "50", "100", "200", "400"), "100"),
    "MAIL": ("mail", ("on", "off"), "on"),
    "timeout": ("timeout", ("continues", "ends"), "continues"),
    "reset condition": ("reset", ("on", "off"), "on"),
    "window over W that resets a": ("ratio", ("1.1", "1.25", "1.5", "2", "3"), "1.5"),
    PEAK: ("peak", ("last", "mean", "largest"), "last"),
}
"""Parameter of the law, its values and the value used elsewhere, by choice."""

RULES = ("with reset", "without reset")

NETWORKS: dict[str, Callable[[str], Scenario]] = {
    "Table 4": net.diverse,
    "Table 3": net.contention,
    "Figure 19": partial(net.contention, leave=2),
}


def variants(what: str, rules: str) -> dict[str, str]:
    """Return the law for each value of a choice, under the rules ``with`` or ``without reset``."""
    key, values, paper = CHOICES[what]
    default, off = (net.FULL, "") if rules == "with reset" else (net.BOUNDED, ", reset=off")
    return {v: default if v == paper else f"aira({key}={v}{off})" for v in values}


@exhibit("sensitivity", cost=8, seeds=(10, 10), new=True)
def sensitivity(lab: Lab) -> None:
    """Vary one choice at a time."""
    choices = lab.pick([*CHOICES], [what for what in CHOICES if what != PEAK])
    series = {
        (rules, what): variants(what, rules)
        for rules in RULES
        for what in choices
        if rules == "with reset" or "reset" not in what
    }
    laws = sorted({net.AIMD, *(law for by_value in series.values() for law in by_value.values())})
    names = lab.pick(tuple(NETWORKS), ("Table 4",))
    runs = lab.run({(name, law): NETWORKS[name](law) for name in names for law in laws}, row)
    panels: dict[str, list[Panel]] = {rules: [] for rules in RULES}
    for key in ("fairness", "retransmissions"):
        for (rules, what), by_value in series.items():
            curves = []
            for name in names:
                found = {v: np.array(column(runs[name, law], key)) for v, law in by_value.items()}
                base, aimd = found[CHOICES[what][2]], column(runs[name, net.AIMD], key)
                least, *_, most = sorted(found.values(), key=lambda values: float(values.mean()))
                order = less(aimd, least) if key == "fairness" else less(most, aimd)
                lab.claim(f"worst-{key}", order, rules=rules, what=what, network=name)
                ratios = [values / base for values in found.values()]
                curves.append(Curve.of_means(name, range(len(ratios)), ratios))
            panel = Panel(what, f"{key} over the default's", curves, y_limits=(0, 2.2))
            panel.ticks = list(by_value)
            panels[rules].append(panel)
    means = {case: [[run[k] for k in COLUMNS] for run in found] for case, found in runs.items()}
    lab.means(["network", "law", *(head for head, _ in COLUMNS.values())], means)
    for rules, shown in panels.items():
        title = f"AIRA's free choices, {rules} condition"
        lab.show(Figure(title, shown, 3, rules.replace(" ", "-")))
