"""Huitema, Nandakumar and Jennings: the tests of C4."""

from __future__ import annotations

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import fact
from cwnd._papers.today.measures import completed, course
from cwnd._papers.today.networks import C4_ALONE, C4_CUBIC, C4_ITSELF

GROUPS = {"alone": C4_ALONE, "itself": C4_ITSELF, "cubic": C4_CUBIC}


@exhibit("c4-tests", cost=15, seeds=(100, 100), quick=(8, 8))
def c4_tests(lab: Lab) -> None:
    """Run the tests that a scenario can express, and compare with their deadlines."""
    tests = {name: test for group in GROUPS.values() for name, test in group.items()}
    steady = lab.option("acks", "wifi") == "steady"
    cases = {name: test.scenario(steady=steady) for name, test in tests.items()}
    found = lab.run(cases, completed)
    for group, members in GROUPS.items():
        for name, test in members.items():
            times = np.array(found[name])
            met, slowest = int(np.sum(times <= test.deadline)), float(times.max())
            words = f"{met} of {times.size}, the slowest in {slowest:.2f} s"
            key = "wifi" if test.wifi else group
            grade = fact(words, holds=met == times.size)
            lab.claim(key, grade, test=name, deadline=test.deadline)
    lab.number("typical", found["c4_alone"])
    names = list(tests)
    x = range(len(names))
    late = [np.array(found[name]) / tests[name].deadline for name in names]
    curves = [
        Curve(
            "median, fastest, slowest",
            x,
            [np.median(t) for t in late],
            "points",
            [t.min() for t in late],
            [t.max() for t in late],
        ),
        Curve("deadline", [0, len(names) - 1], [1.0, 1.0], dashed=True),
    ]
    labels = [name.removeprefix("c4_") for name in names]
    panel = Panel("", "completion time / deadline", curves, ticks=labels, y_limits=(0.0, 1.6))
    (run,) = lab.run({0: tests["c4_alone"].scenario()}, course, seeds=1)[0]
    early = run.time < 5.0
    rtt = Panel(
        "time, s", "round-trip time, ms", [Curve("", run.time[early], 1e3 * run.rtt[early])]
    )
    lab.show(
        Figure("Completion times of the tests of C4", [panel], columns=1),
        Figure("Round-trip time of c4_alone", [rtt], name="rtt"),
    )
