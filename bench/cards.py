"""The report cards of docs/cards: every controller of the registry, and a table across them.

    python bench/cards.py [--out out/cards]
    python bench/cards.py --quick        only the networks of --quick, from the cards in --out
    python bench/cards.py --sources      only the source and the deviations on each card

A full evaluation of the suite rfc9743 for each controller with its default parameters: two to four
minutes each on two cores, an hour in all. `--out` has the runs and the cards in JSON; the same
command resumes. Then it chooses the networks of `cwnd evaluate --quick` (`quick.py`), writes them
into the experiments, and the grades that they depend on to docs/cards/quick.json. It exits with 1
if no choice predicts the full cards.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import quick

import cwnd
from cwnd._controllers.registry import algorithms
from cwnd._runs.result import dumps
from cwnd._tasks.evaluation.card import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd._controllers.registry import Algorithm
    from cwnd._experiments.bound import Grade
    from cwnd._tasks.evaluation.card import Card

CARDS = Path(__file__).parent.parent / "docs" / "cards"
SOURCE = "## Source and deviations"
SYMBOLS = {
    "fails": "**F**",
    "concern": "c",
    "undecided": "?",
    "meets": "✓",
    "does not apply": "",
}


def markdown(card: Card) -> str:
    """Return the page of a controller: its summary, and each test that it does not meet."""
    lines = [card.to_markdown().replace("### ", "# ", 1)]
    found = [result for result in card.by_severity() if result.grade in ("fails", "concern")]
    if found:
        lines += ["## Tests that fail or are a concern", ""]
    lines += [
        f"* **{result.grade}**, {result.test.section} `{result.test.id}`"
        f" ({_networks(result.counts)}): {result.finding} 95 % intervals: {result.evidence}."
        for result in found
    ]
    return "\n".join([*lines, ""])


def source(algorithm: Algorithm) -> str:
    """Return the end of a controller's page: its source and its known deviations from it."""
    lines = [SOURCE, "", f"{algorithm.title}: {algorithm.source}.", ""]
    lines += [f"* {deviation}" for deviation in algorithm.deviations or ["None is known."]]
    lines += ["", "[All cards](README.md), [what the tests are](../evaluate.md)"]
    return "\n".join(lines) + "\n"


def _networks(counts: Mapping[Grade, int]) -> str:
    """Count the networks of a test by grade."""
    parts = [f"{count} {grade}" for grade, count in counts.items()]
    return ", ".join(parts) + f" of {sum(counts.values())} networks"


def across(cards: Sequence[Card]) -> str:
    """Return the table of all cards: a row for each controller, a column for each section."""
    sections = [section for section in SECTIONS if section in cards[0].sections]
    lines = [
        "# Report cards",
        "",
        "`make cards` evaluates every controller of the registry, with its default parameters, by",
        "the tests of RFC 9743 ([evaluate.md](../evaluate.md)), and writes these files. A section",
        "has the grade of its worst test on its worst network. Each card ends with the source of",
        "the controller and its known deviations from it. [quick.json](quick.json) has the grades",
        "by which the networks of `--quick` are chosen.",
        "",
        "**F** fails, c concern, ? undecided after 20 seeds, ✓ meets; empty: does not apply.",
        "",
        f"| | {' | '.join(sections)} |",
        f"|---|{':-:|' * len(sections)}",
    ]
    for card in cards:
        name = card.controller.partition("(")[0]
        symbols = (SYMBOLS[card.sections[section]] for section in sections)
        lines.append(f"| [{name}]({name}.md) | {' | '.join(symbols)} |")
    lines += ["", "| section | |", "|---|---|"]
    lines += [f"| {section} | {SECTIONS[section]} |" for section in sections]
    return "\n".join(lines) + "\n"


def evaluate(out: Path) -> None:
    """Evaluate the controllers and write their cards."""
    CARDS.mkdir(exist_ok=True)
    cards = []
    for algorithm in algorithms():
        cards += cwnd.evaluate([algorithm.name], out=out)
        text = dumps(cards[-1].to_json()) + "\n"
        (out / f"{algorithm.name}.json").write_text(text, encoding="utf-8")
        write(algorithm, markdown(cards[-1]))
        print(cards[-1], flush=True)
    (CARDS / "README.md").write_text(across(cards), encoding="utf-8")


def write_sources() -> None:
    """Write the source and the deviations on each card, and keep its tests."""
    for algorithm in algorithms():
        text = _path(algorithm).read_text(encoding="utf-8")
        write(algorithm, text.partition(SOURCE)[0].removesuffix("\n"))


def write(algorithm: Algorithm, tests: str) -> None:
    """Write the card of a controller: its tests, and its source."""
    _path(algorithm).write_text(f"{tests}\n{source(algorithm)}", encoding="utf-8")


def _path(algorithm: Algorithm) -> Path:
    return CARDS / f"{algorithm.name}.md"


def main() -> int:
    """Write all cards and the networks of quick ones, or a part; return the exit status."""
    parser = argparse.ArgumentParser(description="The report cards of docs/cards.")
    parser.add_argument("--out", type=Path, default=Path("out/cards"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sources", action="store_true")
    options = parser.parse_args()
    if options.sources:
        write_sources()
        return 0
    if not options.quick:
        evaluate(options.out)
    return quick.select(options.out)


if __name__ == "__main__":
    sys.exit(main())
