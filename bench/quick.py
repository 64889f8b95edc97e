"""The networks of `cwnd evaluate --quick`: chosen, and checked, from full report cards.

A full card has the metric with each seed on each network, and so the grade that a quick evaluation
gives to each network. The networks are chosen on one half of the controllers and checked on the
other half, by the rule that no section that fails in full meets in a quick evaluation, and that at
least nine of ten of them fail or are a concern there. A quick evaluation of `cubic` may not take
longer than one with the first number of seeds on the networks of `quick-budget.json`, which no
choice changes.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

import cwnd
from cwnd._experiments.bound import judge, read_bounds, worst
from cwnd._experiments.experiment import experiments
from cwnd._runs.result import dumps
from cwnd._sweeps.reading import read_plan
from cwnd._tasks.evaluation.evaluate import QUICK_SEEDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd._base.records import JsonObject
    from cwnd._experiments.bound import Grade

Network: TypeAlias = tuple[str, str]
"""An experiment and the name of one of its networks."""

ROOT = Path(__file__).parent.parent
EXPERIMENTS = ROOT / "python/cwnd/_experiments"

RECORD = ROOT / "docs/cards/quick.json"
"""The grades that the choice depends on."""

SUITE = "rfc9743"
TIMED = "cubic"
"""Controller whose quick evaluation is timed."""

BUDGET = Path(__file__).with_name("quick-budget.json")
"""Networks, by experiment. With the first number of seeds they cost as much as a quick one may."""

RECOGNISED = 0.9
"""Smallest fraction of the sections that fail in full that fail or are a concern in quick."""

LETTERS: dict[str, Grade] = {"f": "fails", "c": "concern", "u": "undecided", "m": "meets"}
"""Grades in the record."""

UNSEEN = 10.0
"""Weight of a failing section that meets on all chosen networks."""

GAINS: Mapping[Grade, float] = {"fails": 1.0, "concern": 1.0, "undecided": 0.2}
"""What a network with this grade contributes to the recognition of a section that fails."""

_DECLARED = re.compile(r"^quick = \[\n(?:    .*\n)*\]\n\n", re.MULTILINE)


@dataclass(frozen=True)
class Controller:
    """The grades of a controller: of sections in full, and of networks in quick evaluations.

    Attributes
    ----------
    sections
        The grade of each section of its full card.
    tests
        The section of each test.
    grades
        By experiment, network and test: the grade after each number of `QUICK_SEEDS`.
    """

    sections: Mapping[str, Grade]
    tests: Mapping[str, str]
    grades: Mapping[str, Mapping[str, Mapping[str, Sequence[Grade]]]]

    def quick(self, chosen: Iterable[Network]) -> tuple[dict[str, Grade], dict[str, int]]:
        """Return what a quick evaluation on some networks gives.

        Returns
        -------
        sections
            The grades of the sections with a chosen network.
        seeds
            The number of seeds of each experiment with one: the next one while a test is undecided.
        """
        networks: dict[str, list[str]] = {}
        for experiment, network in chosen:
            if network in self.grades.get(experiment, {}):
                networks.setdefault(experiment, []).append(network)
        sections: dict[str, list[Grade]] = {}
        reached = {}
        for experiment, names in networks.items():
            cells = [self.grades[experiment][name] for name in names]
            for level, seeds in enumerate(QUICK_SEEDS):
                found = {test: worst(cell[test][level] for cell in cells) for test in cells[0]}
                reached[experiment] = seeds
                if "undecided" not in found.values():
                    break
            for test, grade in found.items():
                sections.setdefault(self.tests[test], []).append(grade)
        return {name: worst(grades) for name, grades in sections.items()}, reached


@dataclass(frozen=True)
class Case:
    """A section of a controller's full card that fails."""

    name: str
    controller: Controller
    section: str

    def predicted(self, chosen: Iterable[Network]) -> Grade:
        """Return the grade of the section in a quick evaluation on some networks."""
        return self.controller.quick(chosen)[0].get(self.section, "does not apply")


def quick_grades(test: JsonObject, cell: JsonObject) -> list[Grade]:
    """Return the grades of a cell of a full card after each number of `QUICK_SEEDS`."""
    values, base = (
        [math.nan if value is None else value for value in cell[name]["values"]]
        for name in ("value", "baseline")
    )
    meets, fails = (read_bounds(test["dimension"], test[name]) for name in ("meets", "fails"))
    return [
        judge(meets, fails, values[:seeds], base[:seeds], test["dimension"])[0]
        for seeds in QUICK_SEEDS
    ]


def record(cards: Sequence[JsonObject]) -> JsonObject:
    """Return the grades of full cards: of sections in full, of networks in quick evaluations."""
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
            found = zip(*(quick_grades(test, cell) for cell in cells), strict=True)
            grades[test["id"]] = ["".join(letters[grade] for grade in level) for level in found]
        sections = {each["section"]: each["grade"] for each in card["sections"]}
        controllers[card["controller"].partition("(")[0]] = {"sections": sections, "grades": grades}
    return {"seeds": list(QUICK_SEEDS), "tests": tests, "controllers": controllers}


def controllers(recorded: JsonObject) -> dict[str, Controller]:
    """Return the controllers of a record."""
    found = {}
    for name, of in recorded["controllers"].items():
        grades: dict[str, dict[str, dict[str, list[Grade]]]] = {}
        for test, levels in of["grades"].items():
            where = recorded["tests"][test]
            networks = grades.setdefault(where["experiment"], {})
            for network, letters in zip(where["networks"], zip(*levels, strict=True), strict=True):
                networks.setdefault(network, {})[test] = [LETTERS[letter] for letter in letters]
        tests = {test: where["section"] for test, where in recorded["tests"].items()}
        found[name] = Controller(of["sections"], tests, grades)
    return found


def failing(known: Mapping[str, Controller], names: Iterable[str]) -> list[Case]:
    """Return the sections of some controllers that fail in full."""
    return [
        Case(name, known[name], section)
        for name in names
        for section, grade in known[name].sections.items()
        if grade == "fails"
    ]


def halves(known: Iterable[str]) -> tuple[list[str], list[str]]:
    """Divide the controllers: those to choose on, and those to check on."""
    names = sorted(known)
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
        f"{case.section} of {case.name} fails in full and is {grade!r} in quick"
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
    with each network that recognises it, and `UNSEEN` times until a network does not meet. Each
    experiment keeps a network.

    Parameters
    ----------
    cases
        Sections that fail in full.
    costs
        Seconds of a quick evaluation on each network.
    budget
        Largest sum of the costs.
    """
    gains = {network: _gains(cases, network) for network in costs}
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
        left = budget * (1 + 1e-9) - spent - sum(cheapest.values())
        found = {
            network: _worth(gains[network], seen) / cost
            for network, cost in costs.items()
            if network not in chosen and cost <= left + cheapest.get(network[0], 0.0)
        }
        useful = [each for each, worth in found.items() if worth > 0 or each[0] in cheapest]
        if not useful:
            return chosen
        best = max(useful, key=found.__getitem__)
        chosen.add(best)
        spent += costs[best]
        for number, gain in gains[best].items():
            seen[number] += gain


def _gains(cases: Sequence[Case], network: Network) -> dict[int, float]:
    """Return what a network contributes to the recognition of failing sections, by number."""
    found = ((number, case.predicted([network])) for number, case in enumerate(cases))
    return {number: GAINS[grade] for number, grade in found if grade in GAINS}


def _worth(gains: Mapping[int, float], seen: Mapping[int, float]) -> float:
    """Return the sum of the gains: less for sections that other networks recognise."""
    return sum(
        gain * (2.0 ** -seen[number] if seen[number] else UNSEEN) for number, gain in gains.items()
    )


def costs(out: Path, timed: Controller) -> dict[Network, tuple[float, float]]:
    """Return the seconds on each network, from the runs of full evaluations.

    The first are those of a quick evaluation of `timed` on this network alone, with as many seeds
    as it needs there, and the second those with the first of `QUICK_SEEDS`.
    """
    found: dict[Network, tuple[float, float]] = {}
    for each in experiments(SUITE):
        runs = cwnd.Sweep(out / "runs" / each.name).runs
        plan = read_plan(each.plan([each.baseline], 1))
        runs["point"] = plan.find_points(pa.Table.from_pandas(runs[[*plan.places, "seed"]]))
        wanted = {each.only[0] if each.only else TIMED, each.baseline}
        seconds = runs[runs["controller"].isin(wanted)].groupby(["controller", "point"])["wall_s"]
        means = seconds.mean().groupby("point").sum()
        for point, name in enumerate(each.networks):
            network = (each.name, name)
            seeds = timed.quick([network])[1].get(each.name, QUICK_SEEDS[0])
            found[network] = (seeds * float(means[point]), QUICK_SEEDS[0] * float(means[point]))
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
    known = controllers(recorded)
    seconds = costs(out, known[TIMED])
    budget = sum(seconds[network][1] for network in reference())
    here, there = (failing(known, names) for names in halves(known))
    chosen = choose(here, {network: each[0] for network, each in seconds.items()}, budget)
    spent = sum(seconds[network][0] for network in chosen)
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
