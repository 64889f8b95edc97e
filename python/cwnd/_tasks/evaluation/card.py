"""Report card of a controller: grades of tests and sections, and its forms as text."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cwnd import _show
from cwnd._base.files import write_text
from cwnd._experiments.bound import GRADES, worst
from cwnd._experiments.experiment import BADGES, SUITES, experiments, order
from cwnd._experiments.label import ONLY
from cwnd._runs.conventions import CONVENTIONS, conventions_text
from cwnd._runs.result import jsonable
from cwnd._runs.text import join_parts
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cwnd._base.records import JsonObject
    from cwnd._controllers.registry import Algorithm
    from cwnd._experiments.bound import Grade, Measured
    from cwnd._experiments.experiment import Test
    from cwnd._search.search import Search
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


FOUND = ("found by search", "objective", "fails", "95 % intervals", "scenario")
"""Heads of the table of what a search found."""

_SMALL = 1e-9
"""Smallest value in a ratio."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Grade of a test on one network."""

    label: str
    """Name of the network; empty if the test has only one."""
    grade: Grade
    measured: Measured
    """The metric and its ratio to the baseline, over the seeds."""
    values: tuple[float, ...]
    """The metric with each seed, from 1; NaN where the run does not determine it."""
    base: tuple[float, ...]
    """The same for the baseline."""
    meets: float
    fails: float
    """``meets`` and ``fails`` are the thresholds for this mean of the baseline."""
    more_is_better: bool
    failures: tuple[str, ...] = ()
    """A line for each run without a value."""

    @property
    def name(self) -> str:
        """Name of the network for people."""
        return self.label or ONLY

    @property
    def distance(self) -> float:
        """Logarithm of the ratio of the mean to ``meets``; positive on the wrong side."""
        mean = self.measured.value.mean
        if self.failures or not (math.isfinite(mean) and math.isfinite(self.meets)):
            return math.inf
        gap = math.log(max(mean, _SMALL) / max(self.meets, _SMALL))
        return -gap if self.more_is_better else gap

    @property
    def worst_seed(self) -> int:
        """The seed whose value is worst, or missing."""
        sign = 1.0 if self.more_is_better else -1.0
        order = [sign * value if math.isfinite(value) else -math.inf for value in self.values]
        return 1 + order.index(min(order))

    def to_json(self, *, relative: bool) -> JsonObject:
        """Return the cell as plain data; the ratio is None without a ``relative`` threshold."""
        measured = self.measured
        return {
            "cell": self.label,
            "grade": self.grade,
            "value": {**measured.value.to_json(), "values": list(self.values)},
            "baseline": {**measured.baseline.to_json(), "values": list(self.base)},
            "ratio": measured.ratio.to_json() if relative else None,
            "meets": self.meets,
            "fails": self.fails,
            "failures": list(self.failures),
        }


class Coverage(NamedTuple):
    """Networks and seeds of a part of a card."""

    networks: int
    """Number of networks that were run."""
    of: int
    """Number of networks of a full evaluation."""
    seeds: tuple[int, int]
    """Smallest and largest number of seeds of a network."""

    def __str__(self) -> str:
        if not self.networks:
            return "none"
        few, most = self.seeds
        seeds = counted(most, "seed") if few == most else f"{few} to {counted(most, 'seed')}"
        return f"{self.networks} of {counted(self.of, 'network')}, {seeds}"


@dataclass(frozen=True, slots=True)
class TestResult:
    """Grade of a test."""

    __test__ = False

    test: Test
    experiment: str
    networks: int
    """Number of the experiment's networks in a full evaluation."""
    baseline: str
    """Controller of the baseline's runs."""
    cells: tuple[Cell, ...]
    """Empty if the test does not apply."""

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
    def failures(self) -> int:
        """Number of runs of the controller and of the baseline without a value."""
        return sum(len(cell.failures) for cell in self.cells)

    @property
    def problem(self) -> str:
        """The numbers of runs without a value, and the first of them; empty without."""
        cell = next((cell for cell in self.cells if cell.failures), None)
        if cell is None:
            return ""
        own = sum(not math.isfinite(value) for cell in self.cells for value in cell.values)
        counts = (
            (own, sum(len(cell.values) for cell in self.cells), "controller"),
            (self.failures - own, sum(len(cell.base) for cell in self.cells), "baseline"),
        )
        parts = [f"{n} of {counted(of, 'run')} of the {role}" for n, of, role in counts if n]
        verb = "has" if self.failures == 1 else "have"
        return f"{' and '.join(parts)} {verb} no value; {cell.name}, {cell.failures[0]}"

    @property
    def finding(self) -> str:
        """The result in a sentence, for the worst cell."""
        cell = self.worst
        if cell is None:
            return "Does not apply."
        if cell.failures:
            return f"{self.problem}."
        shown = self.test.metric.measure.shown
        measured = cell.measured
        ratio = measured.ratio.mean
        return self.test.finding.format(
            value=shown(measured.value.mean),
            baseline=shown(measured.baseline.mean),
            ratio=f"{ratio:.2f}" if math.isfinite(ratio) else "many",
            cell=cell.name,
        )

    @property
    def evidence(self) -> str:
        """The intervals that were graded, of the worst cell."""
        if self.worst is None:
            return ""
        value, ratio = self.intervals(self.worst)
        mean = self.worst.measured.ratio.mean
        if not ratio or math.isnan(mean):
            return value
        times = "the baseline is 0" if math.isinf(mean) else f"{ratio} times the baseline"
        return f"{value}; {times}"

    def intervals(self, cell: Cell) -> tuple[str, str]:
        """Format the metric of a cell and its ratio to the baseline, with their intervals.

        The second text is empty if no threshold is relative.
        """
        shown = self.test.metric.measure.shown
        ratio = _interval(_ratio, cell.measured.ratio) if self.test.relative else ""
        return _interval(shown, cell.measured.value), ratio

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
            "experiment": self.experiment,
            "networks": self.networks,
            "baseline": self.baseline,
            "reason": test.reason,
            "source": test.source,
            "problem": self.problem,
            "cells": [cell.to_json(relative=test.relative) for cell in self.cells],
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
    on
        Backend of the runs: ``sim`` or ``linux``.
    specification
        The controller as the command line accepts it; None if it does not.
    tests
        Names of the tests that were chosen; empty for all of the suite.
    conventions
        Conventions of TCP in the simulator.
    law
        The law of a controller that is a text; else None.
    stack
        QUIC stack of the measured flows; None for TCP.
    found
        What a search found; None without one.
    """

    controller: str
    suite: str
    quick: bool
    results: tuple[TestResult, ...]
    on: str = "sim"
    specification: str | None = None
    tests: tuple[str, ...] = ()
    conventions: str = CONVENTIONS
    law: Algorithm | None = None
    stack: str | None = None
    found: Search | None = None

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {grade}" for grade, count in self.counts.items())
        return f"<Card of {self.controller!r}: {counts}>"

    @property
    def scope(self) -> str:
        """The part of the suite that was evaluated; empty for all of it in simulation."""
        of = sum(len(experiment.tests) for experiment in experiments(self.suite))
        parts = [] if len(self.results) == of else [f"{len(self.results)} of {of} tests"]
        parts += ["quick"] if self.quick else []
        parts += [f"in {self.stack}"] if self.stack is not None else []
        parts += [f"conventions {self.conventions}"] if self.conventions != CONVENTIONS else []
        return ", ".join(parts + (["in the kernel's TCP"] if self.on != "sim" else []))

    @property
    def title(self) -> str:
        """The controller, the suite and the part of it that was evaluated."""
        parts = [f"{self.controller}: {SUITES.get(self.suite, 'all suites')}", self.scope]
        return ", ".join(filter(None, parts))

    @property
    def named_conventions(self) -> list[str]:
        """Conventions of TCP in the simulator; empty for the kernel's TCP."""
        return [self.conventions] if self.on == "sim" else []

    @property
    def law_hash(self) -> str | None:
        """The identity of the law of a controller in a file; else None."""
        return None if self.law is None else self.law.hash

    @property
    def summary(self) -> str:
        """The number of tests and of those with each grade, and the conventions of TCP."""
        counts = ", ".join(f"{count} {grade}" for grade, count in self.counts.items())
        tests = f"{counted(len(self.results), 'test')}: {counts}"
        return f"{join_parts(tests, conventions_text(self.named_conventions))}."

    @property
    def problem(self) -> str:
        """The number of tests with runs without a value, and the first of these; or empty."""
        found = [result for result in self.results if result.failures]
        if not found:
            return ""
        verb = "has" if len(found) == 1 else "have"
        tests = f"{len(found)} of {counted(len(self.results), 'test')}"
        return f"{tests} {verb} runs without a value; {found[0].test.id}: {found[0].problem}"

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

    def coverage(self, section: str) -> Coverage:
        """Return the networks and seeds of the tests of a section that apply."""
        of = [result for result in self.results if result.test.section == section and result.cells]
        seeds = [len(cell.values) for result in of for cell in result.cells] or [0]
        return Coverage(
            len({(result.experiment, cell.label) for result in of for cell in result.cells}),
            sum({result.experiment: result.networks for result in of}.values()),
            (min(seeds), max(seeds)),
        )

    def command(self, result: TestResult, cell: Cell | None = None) -> str:
        """Return the command that runs a test alone, or the worst run of one of its cells.

        Empty for a controller that the command line does not accept.
        """
        if self.specification is None:
            return ""
        words = ["cwnd", "evaluate", self.specification]
        if cell is None:
            words += [] if self.suite == "rfc9743" else ["--suite", self.suite]
        words += ["--test", result.test.id]
        if cell is None:
            words += ["--quick"] if self.quick else []
        else:
            words += ["--cell", cell.label] if cell.label else []
            words += ["--seed", str(cell.worst_seed)]
        words += ["--stack", self.stack] if self.stack is not None else []
        words += ["--conventions", self.conventions] if self.conventions != CONVENTIONS else []
        return shlex.join(words + (["--on", self.on] if self.on != "sim" else []))

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
                "hash": self.law_hash,
                "suite": self.suite,
                "quick": self.quick,
                "on": self.on,
                "stack": self.stack,
                "conventions": self.named_conventions,
                "badge": ": ".join(self.badge),
                "sections": [
                    {
                        "section": section,
                        "title": SECTIONS[section],
                        "grade": grade,
                        **self.coverage(section)._asdict(),
                    }
                    for section, grade in self.sections.items()
                ],
                "counts": dict(self.counts),
                "tests": [
                    {**result.to_json(), "command": self.command(result)} for result in self.results
                ],
                "search": None if self.found is None else self.found.to_json(),
            }
        )

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page.

        Parameters
        ----------
        path
            The file to write.
        """
        write_text(path, _show.report.evaluate.card_page(self))

    def to_markdown(self, changes: Sequence[str] = ()) -> str:
        """Return a summary for a pull request.

        Parameters
        ----------
        changes
            Lines of `changes_since`.
        """
        lines = [f"### {self.title}", "", self.summary, ""]
        if self.law_hash is not None:
            lines += [f"The law has the hash {self.law_hash}.", ""]
        lines += ["| section of RFC 9743 | grade | coverage | worst finding | 95 % intervals |"]
        lines += ["|---|---|---|---|---|"]
        for section, grade in self.sections.items():
            of = next(one for one in self.by_severity() if one.test.section == section)
            shown = grade in ("fails", "concern") or of.problem
            texts = (of.finding, of.evidence) if shown else ("", "")
            cells = (f"**{grade}**", str(self.coverage(section)), *texts)
            row = " | ".join(_escape(text) for text in cells)
            lines.append(f"| {section} {SECTIONS[section]} | {row} |")
        if self.found is not None:
            lines += ["", f"{self.found.summary}.", ""]
            lines += [f"| {' | '.join(FOUND)} |", "|---" * len(FOUND) + "|"]
            for one, file in self.found.pairs:
                said = (one.network_sentence, one.objective.meaning, one.threshold, one.evidence)
                lines.append(f"| {' | '.join(map(_escape, (*said, f'`{file}`')))} |")
        if changes:
            lines += ["", "Changes:", "", *(f"* {_escape(change)}" for change in changes)]
        return "\n".join(lines) + "\n"

    @property
    def badge(self) -> tuple[str, str]:
        """The suite, and the worst grade with the number of tests that have it.

        Only a card of a whole suite can say that it meets. On others the part of the suite that was
        evaluated is before the grade.
        """
        grade = self._worst
        count = self.counts.get(grade, 0)
        text = grade if grade in ("meets", "does not apply") else f"{count} {grade}"
        parts = [self.scope, "" if self.scope and grade == "meets" else text]
        return BADGES[self.suite], ": ".join(filter(None, parts))

    @property
    def _worst(self) -> Grade:
        return worst(each.grade for each in self.results if each.grade != "does not apply")

    def to_svg(self) -> str:
        """Return the badge."""
        label, text = self.badge
        color = _NEUTRAL if self.scope and self._worst == "meets" else _COLORS[self._worst]
        left, right = 7 * len(label) + 12, 7 * len(text) + 12
        middle = left + right / 2
        title = join_parts(f"{label}: {text}", conventions_text(self.named_conventions))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" '
            f'role="img" aria-label="{title}"><title>{title}</title>'
            f'<rect width="{left}" height="20" fill="#444"/>'
            f'<rect x="{left}" width="{right}" height="20" fill="{color}"/>'
            '<g fill="#fff" text-anchor="middle" font-size="12" '
            'font-family="Verdana,DejaVu Sans,sans-serif">'
            f'<text x="{left / 2}" y="14">{label}</text><text x="{middle}" y="14">{text}</text>'
            "</g></svg>\n"
        )


_NEUTRAL = "#5f6368"
_COLORS = {
    "fails": "#b3261e",
    "concern": "#a15c00",
    "undecided": _NEUTRAL,
    "meets": "#1b7f3b",
    "does not apply": _NEUTRAL,
}


def file_name(*parts: str) -> str:
    """Return the parts as the name of a file or directory, without those that are empty.

    Examples
    --------
    >>> file_name("simd(beta=1/16)", "", "quick")
    'simd-beta-1-16-quick'
    """
    return re.sub(r"[^A-Za-z0-9_]+", "-", "-".join(filter(None, parts))).strip("-")


def _interval(shown: Callable[[float], str], figure: Estimate) -> str:
    """Format a mean and its interval."""
    if math.isnan(figure.low) or figure.low == figure.high:
        return shown(figure.mean)
    return f"{shown(figure.mean)} ({shown(figure.low)} to {shown(figure.high)})"


def _ratio(value: float) -> str:
    """Format a ratio."""
    return "unknown" if math.isnan(value) else f"{value:.3g}"


def _escape(text: str) -> str:
    """Escape a text for a cell of a table in Markdown."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def _word(value: str | bool | None) -> str:  # noqa: FBT001
    """Return a name, or yes or no; no for None."""
    return value if isinstance(value, str) else "yes" if value else "no"


def _severity(result: TestResult) -> tuple[int, float]:
    """Return a key that sorts the worst result first."""
    cell = result.worst
    return GRADES.index(result.grade), -cell.distance if cell else 0.0


def changes_since(before: JsonObject, card: Card) -> list[str]:
    """List the tests whose grade differs from that of an older card (``Card.to_json()``).

    The first lines are what else differs: the controller, the hash of its law, the suite, whether
    the evaluation is quick, the backend, and the conventions of TCP.
    """
    old = {test["id"]: test["grade"] for test in before["tests"]}
    new = {result.test.id: result for result in card.results}
    # Cards of older versions do not name them.
    names = before.get("conventions", card.named_conventions)
    lines = [
        f"{key}: {_word(before[key])} before, {_word(now)} now"
        for key, now in (
            ("controller", card.controller),
            ("hash", card.law_hash),
            ("suite", card.suite),
            ("quick", card.quick),
            ("on", card.on),
            ("stack", card.stack),
        )
        if before.get(key, now) != now
    ]
    if names != card.named_conventions:
        both = (", ".join(each) or "the kernel's" for each in (names, card.named_conventions))
        lines.append("TCP conventions: {} before, {} now".format(*both))
    lines += [
        f"{name}: {old[name]} before, {result.grade} now. {result.finding}"
        for name, result in new.items()
        if name in old and old[name] != result.grade
    ]
    lines += [f"{name}: new, {result.grade}" for name, result in new.items() if name not in old]
    return lines + [f"{name}: no longer tested" for name in old if name not in new]
