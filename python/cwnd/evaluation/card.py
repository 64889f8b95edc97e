"""Report card of a controller: grades of tests and sections, and its forms as text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cwnd.evaluation.bound import GRADES, worst
from cwnd.evaluation.experiment import SUITES, order
from cwnd.result import jsonable, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cwnd.evaluation.bound import Grade
    from cwnd.evaluation.experiment import Test
    from cwnd.records import JsonObject
    from cwnd.stats import Estimate

SECTIONS = {
    "5.1.1": "Protection against congestion collapse",
    "5.1.2": "Protection against bufferbloat",
    "5.1.3": "Protection against high packet loss",
    "5.1.4": "Fairness within the algorithm",
    "5.1.5": "Short flows",
    "5.2": "Starvation",
    "5.2.1": "Existing general-purpose congestion control",
    "5.2.2": "Real-time congestion control",
    "5.2.3": "Short and long flows of other algorithms",
    "6.1": "Paths with tail-drop queues",
    "6.3": "Wired paths",
    "6.4": "Wireless paths",
    "7.1": "Active queue management",
    "7.2": "Envelope of circuit breakers",
    "7.3": "Paths with varying delay",
    "7.4": "Internet of Things and constrained nodes",
    "7.5": "Paths with high delay",
    "7.7": "Extreme packet reordering",
    "7.8": "Transient events",
    "7.9": "Sudden changes in the path",
    "7.11": "Data centers",
}
"""Titles of the sections of RFC 9743 that have tests."""

NOT_JUDGED = {
    "5.3.1": "Differences with congestion control principles: the controller's card lists them",
    "5.3.2": "Incremental deployment",
    "6.2": "Tunnel behavior",
    "7.6": "Misbehaving nodes: receivers here follow the specifications",
    "7.10": "Multipath transport",
}
"""Sections of RFC 9743 without tests."""


_SMALL = 1e-9
"""Smallest value in a ratio."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Grade of a test on one network.

    Attributes
    ----------
    label
        Values of the axes.
    grade
        The grade.
    value, baseline
        The metric of the controller and of the baseline, means over the seeds.
    meets, fails
        The thresholds for this mean of the baseline.
    more_is_better
        Whether larger values of the metric are better.
    """

    label: str
    grade: Grade
    value: Estimate
    baseline: Estimate
    meets: float
    fails: float
    more_is_better: bool

    @property
    def distance(self) -> float:
        """Logarithm of the ratio of the mean to ``meets``; positive on the wrong side."""
        if not (math.isfinite(self.value.mean) and math.isfinite(self.meets)):
            return math.inf
        gap = math.log(max(self.value.mean, _SMALL) / max(self.meets, _SMALL))
        return -gap if self.more_is_better else gap

    @property
    def ratio(self) -> float:
        """Ratio of the means; NaN if the baseline's is 0."""
        return self.value.mean / self.baseline.mean if self.baseline.mean > 0 else math.nan


@dataclass(frozen=True, slots=True)
class TestResult:
    """Grade of a test.

    Attributes
    ----------
    test
        The test.
    baseline
        Controller of the baseline's runs.
    cells
        Its cells; empty if the test does not apply.
    problem
        Why there are no figures for some cells; empty otherwise.
    """

    __test__ = False

    test: Test
    baseline: str
    cells: tuple[Cell, ...]
    problem: str = ""

    @property
    def grade(self) -> Grade:
        """The grade of the worst cell."""
        return worst(cell.grade for cell in self.cells)

    @property
    def worst(self) -> Cell | None:
        """The cell with the worst grade that is farthest on the wrong side of the threshold."""
        found = [cell for cell in self.cells if cell.grade == self.grade]
        return max(found, key=lambda cell: cell.distance, default=None)

    @property
    def counts(self) -> dict[Grade, int]:
        """Number of cells with each grade."""
        grades = [cell.grade for cell in self.cells]
        return {grade: grades.count(grade) for grade in GRADES if grade in grades}

    @property
    def finding(self) -> str:
        """The result in a sentence, for the worst cell."""
        cell = self.worst
        if cell is None:
            return "Does not apply."
        shown = self.test.metric.measure.shown
        return self.test.finding.format(
            value=shown(cell.value.mean),
            baseline=shown(cell.baseline.mean),
            ratio=f"{cell.ratio:.2f}" if math.isfinite(cell.ratio) else "many",
            cell=cell.label or "the network of the test",
        )

    def to_json(self) -> JsonObject:
        """Return the result as plain data."""
        test = self.test
        return {
            "id": test.id,
            "section": test.section,
            "title": test.title,
            "suites": list(test.suites),
            "grade": self.grade,
            "finding": self.finding,
            "metric": test.metric.name,
            "dimension": test.metric.measure.dimension,
            "meets": [bound.text for bound in test.meets],
            "fails": [bound.text for bound in test.fails],
            "baseline": self.baseline,
            "reason": test.reason,
            "source": test.source,
            "problem": self.problem,
            "cells": [
                {
                    "cell": cell.label,
                    "grade": cell.grade,
                    "value": cell.value.to_json(),
                    "baseline": cell.baseline.to_json(),
                    "meets": cell.meets,
                    "fails": cell.fails,
                }
                for cell in self.cells
            ],
        }


@dataclass(frozen=True, slots=True)
class Card:
    """Report card of a controller.

    Attributes
    ----------
    controller
        Its specification.
    suite
        The suite of tests.
    quick
        Whether it is of a quick evaluation.
    results
        The tests, ordered by section.
    commands
        The command that runs each test alone, by the test's name.
    on
        Backend of the runs: ``sim`` or ``linux``.
    """

    controller: str
    suite: str
    quick: bool
    results: tuple[TestResult, ...]
    commands: dict[str, str] = field(default_factory=dict)
    on: str = "sim"

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {grade}" for grade, count in self.counts.items())
        return f"<Card of {self.controller!r}: {counts}>"

    @property
    def title(self) -> str:
        """The controller, the suite and the backend."""
        where = "" if self.on == "sim" else ", in the kernel's TCP"
        return f"{self.controller}: {SUITES.get(self.suite, 'all suites')}{where}"

    @property
    def counts(self) -> dict[Grade, int]:
        """Number of tests with each grade."""
        grades = [result.grade for result in self.results]
        return {grade: grades.count(grade) for grade in GRADES if grade in grades}

    @property
    def sections(self) -> dict[str, Grade]:
        """The worst grade of each section."""
        found: dict[str, list[Grade]] = {}
        for result in sorted(self.results, key=lambda result: order(result.test.section)):
            found.setdefault(result.test.section, []).append(result.grade)
        return {
            section: worst(grade for grade in grades if grade != "does not apply")
            for section, grades in found.items()
        }

    def failed(self, suite: str) -> list[str]:
        """Return the names of the tests of a suite that fail."""
        return [
            result.test.id
            for result in self.results
            if result.grade == "fails" and suite in (*result.test.suites, "all")
        ]

    def by_severity(self) -> list[TestResult]:
        """Return the results, the worst one first."""
        return sorted(self.results, key=_severity)

    def worst_findings(self, most: int = 3) -> list[TestResult]:
        """Return the worst results that fail or are a concern, at most one of a section."""
        found: dict[str, TestResult] = {}
        for result in self.by_severity():
            if result.grade in ("fails", "concern"):
                found.setdefault(result.test.section, result)
        return list(found.values())[:most]

    def to_json(self) -> JsonObject:
        """Return the card as plain data; docs/json.md describes it."""
        return jsonable(
            {
                "schema": 1,
                "controller": self.controller,
                "suite": self.suite,
                "quick": self.quick,
                "on": self.on,
                "sections": [
                    {"section": section, "title": SECTIONS[section], "grade": grade}
                    for section, grade in self.sections.items()
                ],
                "counts": dict(self.counts),
                "tests": [
                    {**result.to_json(), "command": self.commands.get(result.test.id, "")}
                    for result in self.results
                ],
            }
        )

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page.

        Parameters
        ----------
        path
            The file to write.
        """
        from cwnd.report.evaluate import card_page

        write_text(path, card_page(self))

    def to_markdown(self, changes: Sequence[str] = ()) -> str:
        """Return a summary for a pull request.

        Parameters
        ----------
        changes
            Lines of `changes_since`.
        """
        counts = ", ".join(f"{count} {grade}" for grade, count in self.counts.items())
        lines = [f"### {self.title}", ""]
        lines += [f"{len(self.results)} tests: {counts}.", ""]
        lines += ["| section of RFC 9743 | grade | worst finding |", "|---|---|---|"]
        for section, grade in self.sections.items():
            of = next(one for one in self.by_severity() if one.test.section == section)
            text = of.finding if grade in ("fails", "concern") else ""
            lines.append(f"| {section} {SECTIONS[section]} | **{grade}** | {text} |")
        if changes:
            lines += ["", "Changes:", "", *(f"* {change}" for change in changes)]
        return "\n".join(lines) + "\n"

    def to_svg(self) -> str:
        """Return a badge with the worst grade and the number of tests that have it."""
        grade = worst(r.grade for r in self.results if r.grade != "does not apply")
        count, color = self.counts.get(grade, 0), _COLORS[grade]
        label, text = "RFC 9743", f"{count} {grade}" if grade != "meets" else "meets"
        left, right = 7 * len(label) + 12, 7 * len(text) + 12
        middle = left + right / 2
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" '
            f'role="img" aria-label="{label}: {text}"><title>{label}: {text}</title>'
            f'<rect width="{left}" height="20" fill="#444"/>'
            f'<rect x="{left}" width="{right}" height="20" fill="{color}"/>'
            '<g fill="#fff" text-anchor="middle" font-size="12" '
            'font-family="Verdana,DejaVu Sans,sans-serif">'
            f'<text x="{left / 2}" y="14">{label}</text><text x="{middle}" y="14">{text}</text>'
            "</g></svg>\n"
        )


_COLORS = {
    "fails": "#b3261e",
    "concern": "#a15c00",
    "undecided": "#5f6368",
    "meets": "#1b7f3b",
    "does not apply": "#5f6368",
}


def _severity(result: TestResult) -> tuple[int, float]:
    """Return a key that sorts the worst result first."""
    cell = result.worst
    return GRADES.index(result.grade), -cell.distance if cell else 0.0


def changes_since(before: JsonObject, card: Card) -> list[str]:
    """List the tests whose grade differs from that of an older card, one line each.

    Parameters
    ----------
    before
        ``Card.to_json()`` of the older card.
    card
        The newer card.
    """
    old = {test["id"]: test["grade"] for test in before["tests"]}
    new = {result.test.id: result for result in card.results}
    lines = [
        f"{name}: {old[name]} before, {result.grade} now. {result.finding}"
        for name, result in new.items()
        if name in old and old[name] != result.grade
    ]
    lines += [f"{name}: new, {result.grade}" for name, result in new.items() if name not in old]
    return lines + [f"{name}: no longer tested" for name in old if name not in new]
