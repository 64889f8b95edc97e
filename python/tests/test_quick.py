"""The networks of quick evaluations: grades from full cards, the choice, and its rule."""

import importlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import cwnd
from cwnd._experiments import experiment as module
from cwnd._experiments.experiment import experiments, read_experiment
from cwnd._tasks.evaluation.card import SECTIONS
from cwnd._tasks.evaluation.evaluate import QUICK_SEEDS

ROOT = Path(__file__).parents[2]
CARDS = ROOT / "docs/cards"

EXPERIMENT = """
[scenario]
duration = "6s"
warmup = "1s"

[scenario.dumbbell]
rate = "2mbit"
delay = "10ms"
loss = "1%"

[[scenario.flow]]
name = "candidate"
controller = "cubic"
count = 2
start = "0s..500ms"

[axes]
"dumbbell.queue" = ["2p", "5p", "40p"]

[[test]]
id = "share"
section = "5.1.4"
suites = ["rfc9743"]
title = "Fairness"
metric = "jain"
meets = [">= 0.95"]
fails = ["< 0.9"]
reason = "A reason."
source = "A source."
finding = "Has {value}."

[[test]]
id = "delay"
section = "5.1.2"
suites = ["rfc9743"]
title = "Delay"
metric = "queue_delay.p95"
meets = ["<= 1 baseline"]
fails = ["> 0.95 baseline"]
reason = "A reason."
source = "A source."
finding = "Has {value}."
"""


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("quick")


@pytest.fixture
def small(monkeypatch):
    one = read_experiment("one", EXPERIMENT)
    monkeypatch.setattr(module, "_all", lambda: (one,))
    return one


def test_a_full_card_has_the_grades_of_a_quick_evaluation(quick, small, tmp_path):
    """The record of full cards predicts each cell of quick evaluations on all networks."""
    names = ["cubic", "vegas", "scalable"]
    full = [card.to_json() for card in cwnd.evaluate(names, out=tmp_path)]
    recorded = quick.record([json.loads(json.dumps(card)) for card in full])
    short = cwnd.evaluate(names, quick=True, out=tmp_path)
    grades = {
        card.controller: {
            result.test.id: [cell.grade for cell in result.cells] for result in card.results
        }
        for card in short
    }
    assert {grade for of in grades.values() for each in of.values() for grade in each} >= {
        *("meets", "undecided", "fails"),
    }
    known = quick.controllers(recorded)
    networks = [("one", network) for network in small.networks]
    for card in short:
        seeds = {len(cell.values) for result in card.results for cell in result.cells}
        predicted, reached = known[card.controller].quick(networks)
        assert predicted == {
            section: grade for section, grade in card.sections.items() if section in predicted
        }
        assert {reached["one"]} == seeds
        level = QUICK_SEEDS.index(reached["one"])
        for test, expected in grades[card.controller].items():
            letters = recorded["controllers"][card.controller]["grades"][test][level]
            assert [quick.LETTERS[letter] for letter in letters] == expected
    with pytest.raises(ValueError, match="the card of cubic is of a quick evaluation"):
        quick.record([short[0].to_json()])
    assert quick.declared() == {("one", name) for name in small.networks}


def record_of(sections, grades):
    """Return a record of one experiment with three networks and a section.

    A grade is one letter for all numbers of seeds, or one for each.
    """
    levels = range(len(QUICK_SEEDS))
    return {
        "seeds": list(QUICK_SEEDS),
        "tests": {
            "t": {"section": "5.2", "experiment": "a", "networks": ["1", "2", "3"]},
            "u": {"section": "5.2", "experiment": "b", "networks": ["4", "5"]},
        },
        "controllers": {
            name: {
                "sections": {"5.2": grade},
                "grades": {
                    test: [letters if isinstance(letters, str) else letters[n] for n in levels]
                    for test, letters in zip("tu", of, strict=True)
                },
            }
            for name, grade, of in zip("wxyz", sections, grades, strict=True)
        },
    }


def test_the_choice_recognises_what_fails(quick):
    recorded = record_of(
        ("fails", "fails", "meets", "fails"),
        (("mfm", "mm"), ("mcm", "mm"), ("ccc", "cc"), ("mmu", "mf")),
    )
    cases = quick.failing(quick.controllers(recorded), "wxyz")
    assert [case.name for case in cases] == ["w", "x", "z"]
    costs = {("a", "1"): 1.0, ("a", "2"): 3.0, ("a", "3"): 1.0, ("b", "4"): 1.0, ("b", "5"): 2.0}
    chosen = quick.choose(cases, costs, 5.0)
    assert chosen == {("a", "2"), ("b", "5")}
    assert quick.check(cases, chosen) == []
    # Each experiment keeps a network, also if the budget is small.
    small = quick.choose(cases, costs, 2.0)
    assert {experiment for experiment, _ in small} == {"a", "b"}
    assert sum(costs[network] for network in small) <= 2.0


def test_a_quick_evaluation_has_more_seeds_while_a_test_is_undecided(quick):
    recorded = record_of(
        ("fails",) * 4,
        ((("uum", "fmm"), "mm"), (("ufm", "umm"), "mm"), ("uum", ("mu", "mf")), ("mmm", "mm")),
    )
    known = quick.controllers(recorded)
    few, more = QUICK_SEEDS
    assert known["w"].quick([("a", "1")]) == ({"5.2": "fails"}, {"a": more})
    assert known["w"].quick([("a", "3"), ("b", "4")]) == ({"5.2": "meets"}, {"a": few, "b": few})
    # A network that fails decides the test, and the others get no more seeds.
    assert known["x"].quick([("a", "1"), ("a", "2")]) == ({"5.2": "fails"}, {"a": few})
    assert known["y"].quick([("a", "2"), ("b", "5")]) == ({"5.2": "fails"}, {"a": more, "b": more})
    assert known["z"].quick([]) == ({}, {})


def test_the_choice_covers_every_section_that_fails_first(quick):
    """A costly network without which a section meets comes before others for known sections."""
    recorded = record_of(("fails",) * 4, (("ffm", "mm"),) * 3 + (("mmm", "mf"),))
    cases = quick.failing(quick.controllers(recorded), "wxyz")
    costs = {("a", "1"): 1.0, ("a", "2"): 1.0, ("a", "3"): 1.0, ("b", "4"): 0.1, ("b", "5"): 3.0}
    assert quick.choose(cases, costs, 4.0) == {("a", "1"), ("b", "5")}


def test_the_check_names_what_is_not_recognised(quick):
    recorded = record_of(
        ("fails",) * 4, (("mfm", "mm"), ("mum", "mm"), ("mfm", "mm"), ("mfm", "mm"))
    )
    cases = quick.failing(quick.controllers(recorded), "wxyz")
    assert quick.check(cases, {("a", "1"), ("b", "4")}) == [
        *(f"5.2 of {name} fails in full and is 'meets' in quick" for name in "wxyz"),
        "0 of 4 sections that fail are fails or concerns",
    ]
    assert quick.check(cases, {("a", "2")}) == ["3 of 4 sections that fail are fails or concerns"]
    assert quick.check([], set()) == []


def test_a_choice_needs_the_cards_of_all_controllers(quick, small, tmp_path):
    (card,) = cwnd.evaluate(["cubic"], out=tmp_path)
    (tmp_path / "cubic.json").write_text(json.dumps(card.to_json()), encoding="utf-8")
    with pytest.raises(ValueError, match=r"has no cards of .*bbr3, .*vegas"):
        quick.select(tmp_path)


def test_the_budget_does_not_depend_on_the_last_choice(quick, small, monkeypatch, tmp_path):
    """The networks of the last choice are in the experiments, those of the budget are not."""
    names, out = ["cubic", "scalable"], tmp_path / "out"
    monkeypatch.setattr(cwnd, "algorithms", lambda: [SimpleNamespace(name=each) for each in names])
    for card in cwnd.evaluate(names, out=out):
        (out / f"{card.controller}.json").write_text(json.dumps(card.to_json()))
    budgets = []
    monkeypatch.setattr(quick, "BUDGET", tmp_path / "budget.json")
    quick.BUDGET.write_text(json.dumps({"one": small.networks[1:]}), encoding="utf-8")
    monkeypatch.setattr(quick, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(quick, "declare", lambda _: None)
    monkeypatch.setattr(quick, "choose", lambda _, __, budget: budgets.append(budget) or set())
    for networks in ((), small.networks[:1]):
        one = replace(small, quick=networks)
        monkeypatch.setattr(module, "_all", lambda one=one: (one,))
        quick.select(out)
    cards = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("*.json")]
    costs = quick.costs(out, quick.controllers(quick.record(cards))["cubic"])
    assert budgets == [sum(costs["one", name][1] for name in small.networks[1:])] * 2
    for cost, few in costs.values():
        assert cost in (few, pytest.approx(few * QUICK_SEEDS[1] / QUICK_SEEDS[0]))


def test_the_networks_of_the_budget_exist(quick):
    known = {(each.name, name) for each in experiments(quick.SUITE) for name in each.networks}
    assert quick.reference() <= known
    assert {name for name, _ in quick.reference()} == {name for name, _ in known}


def test_the_choice_is_written_into_the_experiments(quick, tmp_path):
    home = tmp_path / "experiments"
    shutil.copytree(quick.EXPERIMENTS, home, ignore=shutil.ignore_patterns("__pycache__"))
    texts = {path: path.read_text(encoding="utf-8") for path in home.iterdir()}
    quick.declare(quick.declared(), home)
    assert {path: path.read_text(encoding="utf-8") for path in home.iterdir()} == texts
    wanted = {(each.name, each.networks[-1]) for each in experiments("rfc9743")}
    quick.declare(wanted, home)
    for each in experiments("rfc9743"):
        text = (home / f"{each.name}.toml").read_text(encoding="utf-8")
        found = read_experiment(each.name, text)
        assert [found.networks[point] for point in found.points(quick=True)] == [each.networks[-1]]
        assert replace(found, scenario=each.scenario, tests=each.tests, quick=each.quick) == each


def test_quick_evaluations_predict_the_cards(quick):
    """No section that fails on a card meets in quick; nine of ten are fails or concerns there."""
    recorded = json.loads((CARDS / "quick.json").read_text(encoding="utf-8"))
    assert set(recorded["controllers"]) == {each.name for each in cwnd.algorithms()}
    assert recorded["seeds"] == list(QUICK_SEEDS)
    known = {
        test.id: {
            "section": test.section,
            "experiment": each.name,
            "networks": list(each.networks),
        }
        for each in experiments("rfc9743")
        for test in each.tests
    }
    assert recorded["tests"] == known
    for name, of in recorded["controllers"].items():
        card = (CARDS / f"{name}.md").read_text(encoding="utf-8")
        for section, grade in of["sections"].items():
            assert f"\n| {section} {SECTIONS[section]} | **{grade}** |" in card
    controllers = quick.controllers(recorded)
    for names in quick.halves(controllers):
        assert quick.check(quick.failing(controllers, names), quick.declared()) == []
