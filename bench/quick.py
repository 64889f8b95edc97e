"""The networks of `cwnd evaluate --quick`: chosen, and checked, from full report cards.

A full card has the metric with each seed on each network, and so the grade that a quick evaluation
gives to each network. The networks are chosen on one half of the controllers and checked on the
other half, by the rule that no section that fails in full meets in a quick evaluation, and that at
least nine of ten of them fail or are a concern there. A quick evaluation of `cubic` may not take
longer than one on the networks of `quick-budget.json`, which no choice changes.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import cwnd
from cwnd.evaluation.bound import judge, read_bounds, worst
from cwnd.evaluation.evaluate import QUICK_SEEDS
from cwnd.evaluation.experiment import experiments
from cwnd.result import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd.evaluation.bound import Grade
    from cwnd.records import JsonObject

Network: TypeAlias = tuple[str, str]
"""An experiment and the name of one of its networks."""

ROOT = Path(__file__).parent.parent
EXPERIMENTS = ROOT / "python/cwnd/evaluation/experiments"

RECORD = ROOT / "docs/cards/quick.json"
"""The grades that the choice depends on."""

SUITE = "rfc9743"
TIMED = "cubic"
"""Controller whose quick evaluation is timed."""

BUDGET = Path(__file__).with_name("quick-budget.json")
"""Networks, by experiment, that cost as much as a quick evaluation may."""

RECOGNISED = 0.9
"""Smallest fraction of the sections that fail in full that fail or are a concern in quick."""

LETTERS: dict[str, Grade] = {"f": "fails", "c": "concern", "u": "undecided", "m": "meets"}
"""Grades in the record."""

GAINS: Mapping[Grade, float] = {"fails": 1.0, "concern": 1.0, "undecided": 0.2}
"""What a network with this grade contributes to the recognition of a section that fails."""

_DECLARED = re.compile(r"^quick = \[\n(?:    .*\n)*\]\n\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A section of a controller's full card that fails.

    Attributes
    ----------
    controller, section
        The controller and the section.
    grades
        The worst quick grade of the section's tests on each network.
    """

    controller: str
    section: str
    grades: dict[Network, Grade]

    def predicted(self, chosen: Iterable[Network]) -> Grade:
        """Return the grade of the section in a quick evaluation on some networks."""
        return worst(self.grades[network] for network in chosen if network in self.grades)


def quick_grade(test: JsonObject, cell: JsonObject) -> Grade:
    """Return the grade that a quick evaluation gives to a cell of a full card."""
    seeds = QUICK_SEEDS[-1]
    values, base = (
        [math.nan if value is None else value for value in cell[name]["values"][:seeds]]
        for name in ("value", "baseline")
    )
    meets, fails = (read_bounds(test["dimension"], test[name]) for name in ("meets", "fails"))
    return judge(meets, fails, values, base, test["dimension"])[0]


def record(cards: Sequence[JsonObject]) -> JsonObject:
    """Return the grades of full cards: of sections in full, of networks in a quick evaluation."""
    letters = {grade: letter for letter, grade in LETTERS.items()}
    tests: dict[str, JsonObject] = {}
    controllers: dict[str, JsonObject] = {}
    for card in cards:
        if card["quick"]:
            raise ValueError(f"the card of {card['controller']} is of a quick evaluation")
        grades = {}
        for test in card["tests"]:
            cells = test["cells"]
            if not cells:
                continue
            tests[test["id"]] = {
                "section": test["section"],
                "experiment": test["experiment"],
                "networks": [cell["cell"] for cell in cells],
            }
            grades[test["id"]] = "".join(letters[quick_grade(test, cell)] for cell in cells)
        sections = {each["section"]: each["grade"] for each in card["sections"]}
        controllers[card["controller"].partition("(")[0]] = {"sections": sections, "grades": grades}
    return {"seeds": QUICK_SEEDS[-1], "tests": tests, "controllers": controllers}


def failing(recorded: JsonObject, controllers: Iterable[str]) -> list[Case]:
    """Return the sections of some controllers that fail in full."""
    cases = []
    for name in controllers:
        of = recorded["controllers"][name]
        for section, grade in of["sections"].items():
            if grade != "fails":
                continue
            grades: dict[Network, list[Grade]] = {}
            for test, letters in of["grades"].items():
                where = recorded["tests"][test]
                if where["section"] != section:
                    continue
                for network, letter in zip(where["networks"], letters, strict=True):
                    grades.setdefault((where["experiment"], network), []).append(LETTERS[letter])
            cases.append(Case(name, section, {each: worst(of) for each, of in grades.items()}))
    return cases


def halves(recorded: JsonObject) -> tuple[list[str], list[str]]:
    """Divide the controllers: those to choose on, and those to check on."""
    names = sorted(recorded["controllers"])
    return names[::2], names[1::2]


def declared() -> set[Network]:
    """Return the networks of a quick evaluation."""
    return {
        (each.name, each.networks[point])
        for each in experiments(SUITE)
        for point in each.points(quick=True)
    }


def reference() -> set[Network]:
    """Return the networks whose cost is the budget."""
    found = json.loads(BUDGET.read_text(encoding="utf-8"))
    return {(name, network) for name, networks in found.items() for network in networks}


def check(cases: Sequence[Case], chosen: Iterable[Network]) -> list[str]:
    """Return the violations of the rule, one line each."""
    chosen = set(chosen)
    grades = [(case, case.predicted(chosen)) for case in cases]
    wrong = [
        f"{case.section} of {case.controller} fails in full and is {grade!r} in quick"
        for case, grade in grades
        if grade in ("meets", "does not apply")
    ]
    recognised = sum(grade in ("fails", "concern") for _, grade in grades)
    if recognised < RECOGNISED * len(cases):
        wrong.append(f"{recognised} of {len(cases)} sections that fail are fails or concerns")
    return wrong


def choose(cases: Sequence[Case], costs: Mapping[Network, float], budget: float) -> set[Network]:
    """Choose the networks on which the most failing sections are recognised.

    Each step takes the network with the largest gain for its cost. A section counts half as much
    with each network that recognises it. Each experiment keeps a network.

    Parameters
    ----------
    cases
        Sections that fail in full.
    costs
        Seconds of a quick evaluation on each network.
    budget
        Largest sum of the costs.
    """
    chosen: set[Network] = set()
    seen = dict.fromkeys(range(len(cases)), 0.0)
    spent = 0.0
    while True:
        # The cheapest networks of the experiments without one.
        present = {experiment for experiment, _ in chosen}
        cheapest: dict[str, float] = {}
        for (experiment, _), cost in costs.items():
            if experiment not in present:
                cheapest[experiment] = min(cost, cheapest.get(experiment, math.inf))
        reserve = sum(cheapest.values())
        best, most = None, -1.0
        for network, cost in costs.items():
            if network in chosen:
                continue
            left = reserve - cheapest.get(network[0], 0.0)
            if spent + cost + left > budget * (1 + 1e-9):
                continue
            gain = sum(
                _gain(case, network) * 2.0 ** -seen[number] for number, case in enumerate(cases)
            )
            if (gain > 0 or network[0] in cheapest) and gain / cost > most:
                best, most = network, gain / cost
        if best is None:
            return chosen
        chosen.add(best)
        spent += costs[best]
        for number, case in enumerate(cases):
            seen[number] += _gain(case, best)


def _gain(case: Case, network: Network) -> float:
    """Return what a network contributes to the recognition of a failing section."""
    return GAINS.get(case.grades.get(network, "meets"), 0.0)


def costs(out: Path) -> dict[Network, float]:
    """Return the seconds of a quick evaluation on each network, from the runs of full ones."""
    found: dict[Network, float] = {}
    for each in experiments(SUITE):
        runs = cwnd.Sweep(out / "runs" / each.name).runs
        wanted = {each.only[0] if each.only else TIMED, each.baseline}
        seconds = runs[runs["controller"].isin(wanted)].groupby(["controller", "point"])["wall_s"]
        means = seconds.mean().groupby("point").sum()
        found |= {
            (each.name, network): QUICK_SEEDS[-1] * float(means[point])
            for point, network in enumerate(each.networks)
        }
    return found


def declare(chosen: Iterable[Network], home: Path = EXPERIMENTS) -> None:
    """Write the networks into the files of the experiments."""
    chosen = set(chosen)
    for each in experiments(SUITE):
        names = [name for name in each.networks if (each.name, name) in chosen]
        path = home / f"{each.name}.toml"
        text = _DECLARED.sub("", path.read_text(encoding="utf-8"))
        if len(names) < len(each.networks):
            lines = "".join(f"    {json.dumps(name)},\n" for name in names)
            text = text.replace("[scenario]\n", f"quick = [\n{lines}]\n\n[scenario]\n", 1)
        path.write_text(text, encoding="utf-8")


def select(out: Path) -> int:
    """Choose the networks from the full cards in a directory; return the exit status.

    Parameters
    ----------
    out
        Directory of `bench/cards.py`, with the cards in JSON and their runs.
    """
    cards = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.json"))]
    recorded = record(cards)
    missing = {each.name for each in cwnd.algorithms()} - set(recorded["controllers"])
    if missing:
        raise ValueError(f"{out} has no cards of {', '.join(sorted(missing))}")
    seconds = costs(out)
    budget = sum(seconds[network] for network in reference())
    here, there = (failing(recorded, names) for names in halves(recorded))
    chosen = choose(here, seconds, budget)
    spent = sum(seconds[network] for network in chosen)
    print(f"{len(chosen)} of {len(seconds)} networks, {spent:.1f} of {budget:.1f} s of {TIMED}")
    wrong = []
    for word, cases in (("chosen on", here), ("checked on", there)):
        grades = [case.predicted(chosen) for case in cases]
        counts = ", ".join(f"{grades.count(g)} {g}" for g in LETTERS.values() if g in grades)
        print(f"{word} {len(cases)} sections that fail; in quick: {counts}")
        wrong += check(cases, chosen)
    if wrong:
        print("\n".join(wrong))
        return 1
    RECORD.write_text(dumps(recorded) + "\n", encoding="utf-8")
    declare(chosen)
    return 0
