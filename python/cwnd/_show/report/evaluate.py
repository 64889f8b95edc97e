"""Page of a report card, and of several cards together."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

from cwnd._experiments.bound import GRADES, RULE
from cwnd._experiments.experiment import SUITES
from cwnd._runs.conventions import conventions_facts, conventions_text
from cwnd._show.report.page import render
from cwnd._tasks.evaluation.card import NOT_JUDGED, SECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import JsonObject
    from cwnd._tasks.evaluation.card import Card, Cell, TestResult

FEW = 6
"""Cells in the plot of a finding."""


class _Layout(NamedTuple):
    """Sizes of a plot in pixels."""

    width: int
    left: int
    """Begin of the axis."""
    row: int
    """Height of a row."""
    line: int
    """Height of the means and thresholds, at the bottom of a row."""


_WIDE = _Layout(640, 270, 18, 18)
"""Labels are beside the axis."""

_NARROW = _Layout(340, 16, 34, 16)
"""Labels are above the means."""

_TOP, _BOTTOM, _RIGHT = 6, 26, 40
"""Margins in pixels."""

_BELOW = 5
"""Distance of the interval of the ratio below that of the metric, in pixels."""

_DECADE = 10.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


def card_page(card: Card) -> str:
    """Create the HTML page of a card."""
    return render(
        "evaluate.html",
        title=card.title,
        counts=_counts(card),
        problem=card.problem,
        relative=any(result.test.relative for result in card.results),
        sections=[
            (section, SECTIONS[section], grade, card.coverage(section))
            for section, grade in card.sections.items()
        ],
        findings=[
            (result, plot(result, _worst_cells(result), _NARROW))
            for result in card.worst_findings()
        ],
        parts=[
            (
                section,
                SECTIONS[section],
                card.coverage(section),
                [_test(card, r) for r in card.results if r.test.section == section],
            )
            for section in card.sections
        ],
        search=card.found,
        found=[
            (one, shlex.join(["cwnd", "run", str(file), "--check"]))
            for one, file in card.found.pairs
        ]
        if card.found
        else [],
        law=card.law,
        not_judged=list(NOT_JUDGED.items()),
        rule=RULE,
    )


def cards_page(cards: Sequence[Card], files: Sequence[str]) -> str:
    """Create a table of several cards of one suite: a row for each section, a column for each card.

    ``files`` are the pages of the cards, relative to this page.
    """
    sections = list(dict.fromkeys(section for card in cards for section in card.sections))
    return render(
        "evaluations.html",
        title=f"Report cards of {len(cards)} controllers",
        suite=SUITES.get(cards[0].suite, "all suites"),
        scope=cards[0].scope,
        conventions=conventions_text(cards[0].named_conventions),
        cards=list(zip((card.controller for card in cards), files, strict=True)),
        rows=[
            (section, SECTIONS[section], [card.sections.get(section) for card in cards])
            for section in sections
        ],
        rule=RULE,
    )


def _counts(card: Card) -> list[tuple[str, str, str]]:
    """Count the tests by grade."""
    return [
        ("Tests", str(len(card.results)), card.scope or "all of the suite"),
        *((grade.capitalize(), str(card.counts.get(grade, 0)), "") for grade in GRADES),
        *conventions_facts(card.named_conventions),
    ]


def _test(card: Card, result: TestResult) -> JsonObject:
    """Return what the page shows of a test."""
    shown = result.test.metric.measure.shown
    return {
        "result": result,
        "plot": plot(result, result.cells, _WIDE) if result.cells else "",
        "meets": " or ".join(bound.text for bound in result.test.meets),
        "fails": " and ".join(bound.text for bound in result.test.fails),
        "rows": [
            {
                "cell": cell,
                "numbers": (
                    *result.intervals(cell)[: 2 if result.test.relative else 1],
                    shown(cell.measured.baseline.mean),
                    shown(cell.meets),
                    shown(cell.fails),
                ),
                "values": [(seed, shown(value)) for seed, value in enumerate(cell.values, 1)],
                "command": card.command(result, cell),
            }
            for cell in result.cells
        ],
        "command": card.command(result),
    }


def _worst_cells(result: TestResult) -> list[Cell]:
    """Return the cells with the worst grades."""
    order = sorted(result.cells, key=lambda cell: (GRADES.index(cell.grade), -cell.distance))
    return order[:FEW]


def plot(result: TestResult, cells: Sequence[Cell], layout: _Layout) -> Markup:
    """Draw a metric on some networks as SVG, a row each.

    A filled circle with a bar is the controller's mean and interval, a hollow one the baseline's. A
    thin bar below is the interval of the ratio to the baseline, times the baseline's mean, if a
    threshold is a multiple of the baseline. A vertical line is the threshold of ``meets``, a dashed
    one that of ``fails``.
    """
    test = result.test
    scale = _Scale(cells, layout)
    bottom = _TOP + layout.row * len(cells)
    size = f"{layout.width} {bottom + _BOTTOM}"
    lines = [
        f'<svg class="strip" viewBox="0 0 {size}" role="img" aria-label="{escape(test.title)}">'
    ]
    for tick in scale.ticks():
        x, label = scale.at(tick), escape(test.metric.measure.shown(tick))
        lines.append(f'<line class="grid" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}"/>')
        lines.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
    for number, cell in enumerate(cells):
        y = _TOP + layout.row * (number + 1) - layout.line / 2
        place = f'x="{layout.left - 10}" y="{y + 4}" text-anchor="end"'
        if layout is _NARROW:
            place = f'x="0" y="{y - layout.line / 2 - 2}"'
        lines.append(f"<text {place}>{escape(cell.name)}</text>")
        lines += _row(scale, cell, y, layout.line / 2 - 2, relative=test.relative)
    return Markup("\n".join([*lines, "</svg>"]))  # noqa: S704


def _row(scale: _Scale, cell: Cell, y: float, half: float, *, relative: bool) -> list[str]:
    """Draw the thresholds, the means and the intervals of a cell."""
    lines = []
    for kind, limit in (("meets", cell.meets), ("fails", cell.fails)):
        if math.isfinite(limit):
            ends = f'y1="{y - half}" y2="{y + half}"'
            lines.append(
                f'<line class="{kind}" x1="{scale.at(limit)}" x2="{scale.at(limit)}" {ends}/>'
            )
    if math.isfinite(cell.measured.baseline.mean):
        x = scale.at(cell.measured.baseline.mean)
        lines.append(f'<circle class="baseline" cx="{x}" cy="{y}" r="3.5"/>')
    kind = _word(cell.grade)
    value, ratio, base = cell.measured.value, cell.measured.ratio, cell.measured.baseline.mean
    bars = [(value.low, value.high, y, "bar")]
    if relative:
        bars.append((ratio.low * base, ratio.high * base, y + _BELOW, "bar ratio"))
    for low, high, height, word in bars:
        if math.isfinite(low) and math.isfinite(high):
            ends = f'x1="{scale.at(low)}" y1="{height}" x2="{scale.at(high)}" y2="{height}"'
            lines.append(f'<line class="{word} {kind}" {ends}/>')
    if math.isfinite(cell.measured.value.mean):
        x = scale.at(cell.measured.value.mean)
        lines.append(f'<circle class="dot {kind}" cx="{x}" cy="{y}" r="4"/>')
    return lines


def _word(grade: str) -> str:
    """Return the class of a grade in style sheets."""
    return grade.replace(" ", "-")


class _Scale:
    """Horizontal axis of a plot: linear from 0, or logarithmic."""

    def __init__(self, cells: Sequence[Cell], layout: _Layout) -> None:
        self._layout = layout
        shown = [
            value
            for cell in cells
            for value in (
                cell.measured.value.mean,
                cell.measured.baseline.mean,
                cell.meets,
                cell.fails,
            )
            if math.isfinite(value)
        ]
        positive = [value for value in shown if value > 0]
        self._high = max(positive, default=1.0)
        self._low = min(positive, default=self._high)
        self._log = self._high > _DECADE * self._low
        if self._log:
            self._low, self._high = self._low / 1.2, self._high * 1.2
        else:
            self._low, self._high = 0.0, self._high * 1.08

    def at(self, value: float) -> float:
        """Return the horizontal position of a value."""
        value = min(max(value, self._low), self._high)
        if self._log:
            part = math.log(value / self._low) / math.log(self._high / self._low)
        else:
            part = (value - self._low) / (self._high - self._low)
        begin, end = self._layout.left, self._layout.width - _RIGHT
        return round(begin + (end - begin) * part, 1)

    def ticks(self) -> list[float]:
        """Return three to five round values."""
        if not self._log:
            step = 10.0 ** math.floor(math.log10(self._high / 3))
            step *= next(k for k in (1, 2, 5, 10) if self._high / (k * step) <= 5)
            return [step * n for n in range(int(self._high / step) + 1)]
        low, high = math.ceil(math.log10(self._low)), math.floor(math.log10(self._high))
        every = max(1, (high - low + 1) // 4)
        return [10.0**n for n in range(low, high + 1, every)]
