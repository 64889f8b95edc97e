"""Report cards: failed runs, what a card covers, its files, and the runs of its numbers."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import cwnd
from cwnd import _cli as cli
from cwnd._cli import tables
from cwnd._experiments import experiment as module
from cwnd._experiments.bound import grade, measure, read_bounds
from cwnd._experiments.experiment import BADGES, SUITES, experiments, order, read_experiment
from cwnd._experiments.label import ONLY
from cwnd._search.objective import OBJECTIVES
from cwnd._search.space import read_space
from cwnd._sweeps import code, work
from cwnd._tasks.evaluation.card import Card, changes_since
from cwnd._tasks.evaluation.single import single_run
from cwnd.errors import ArgumentError, PlanError
from cwnd.stats import UNIT

LAWS = """
class Sound:
    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w / 2


class Raises(Sound):
    def grow(self, w, acked, cx):
        raise ValueError("no such thing")


class Nan(Sound):
    def grow(self, w, acked, cx):
        return float("nan")


class Signature(Sound):
    def grow(self, w):
        return w


class AtTimeout(Sound):
    def cut(self, w, why, cx):
        if why == "timeout":
            raise KeyError("timeout")
        return w / 2
"""

NETWORKS = """
quick = ["RTT 20 ms, buffer 10 packets"]

[scenario]
duration = "3s"

[scenario.dumbbell]
rate = "2mbit"
delay = "10ms"

[[scenario.flow]]
name = "candidate"
controller = "cubic"
start = "0s..200ms"

[axes]
"dumbbell.delay" = ["10ms", "40ms"]
"dumbbell.queue" = ["10p", "20p"]

[[test]]
id = "used"
section = "6.1"
suites = ["rfc9743"]
title = "Utilisation"
metric = "utilization"
meets = [">= 1%", ">= 0.1 baseline"]
fails = ["< 0.5%", "< 0.05 baseline"]
reason = "A reason."
source = "A source."
finding = "Uses {value} ({cell})."

[[test]]
id = "late"
section = "5.1.2"
suites = ["rfc9743", "aqm"]
title = "Delay"
metric = "queue_delay.p95"
meets = "<= 100 baseline"
fails = "> 200 baseline"
reason = "A reason."
source = "A source."
finding = "Waits {value}, {ratio} times."
"""

BLACKOUT = """
[scenario]
duration = "4s"

[scenario.dumbbell]
rate = "2mbit"
delay = "10ms"
queue = "20p"
blackout = [{ at = "1500ms", for = "1500ms" }]

[[scenario.flow]]
name = "candidate"
controller = "cubic"

[[test]]
id = "back"
section = "7.8"
suites = ["rfc9743"]
title = "After a blackout"
metric = "goodput"
meets = ">= 1bit"
fails = "< 1bit"
reason = "A reason."
source = "A source."
finding = "Gets {value}."
"""

UNFINISHED = """
[scenario]
duration = "2s"

[scenario.dumbbell]
rate = "2mbit"
delay = "10ms"

[[scenario.flow]]
name = "candidate"
controller = "cubic"
bytes = 100_000_000

[[test]]
id = "time"
section = "7.5"
suites = ["c4"]
title = "Completion time"
metric = "fct"
meets = "<= 10s"
fails = "> 20s"
reason = "A reason."
source = "A source."
finding = "Needs {value}."
"""

TESTS = ("late", "used", "time", "back")
"""The tests of the small suite, by section."""


@pytest.fixture
def small(monkeypatch):
    """Replace the experiments of the package by small ones."""
    texts = {"networks": NETWORKS, "blackout": BLACKOUT, "unfinished": UNFINISHED}
    made = tuple(read_experiment(name, text) for name, text in texts.items())
    monkeypatch.setattr(module, "_all", lambda: made)


@pytest.fixture
def laws(tmp_path, monkeypatch):
    (tmp_path / "laws.py").write_text(LAWS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def search(monkeypatch):
    """Search a small space for one finding under one objective."""
    assert OBJECTIVES["goodput"].test.id == "random-loss-goodput"
    space = read_space({"axes": {"rate": ["4mbit", "5mbit"], "rtt": ["30ms", "60ms"]}})
    monkeypatch.setattr("cwnd._search.search.read_space", lambda _: space)
    monkeypatch.setattr("cwnd._tasks.evaluation.evaluate.SEARCHED", ("goodput",))
    monkeypatch.setattr("cwnd._tasks.evaluation.evaluate.SEARCH_FINDINGS", 1)


def crash(monkeypatch, controller, seed, problem=None):
    """Let one seed of a controller's runs fail."""
    honest = work._result

    def result(plan, run, *rest):
        if (run.controller, run.seed) == (controller, seed):
            raise problem or cwnd.ScenarioError("out of luck")
        return honest(plan, run, *rest)

    monkeypatch.setattr(work, "_result", result)


def check_failure(capfd, test, message, words):
    """Evaluate; the test fails, and its message is in every form of the card."""
    assert cli.run(["evaluate", *words, "--test", test, "--out", "out"]) == 1
    printed = capfd.readouterr()
    (file,) = Path("out").glob("*.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    (result,) = document["tests"]
    assert result["grade"] == "fails"
    assert message in result["problem"]
    assert any(message in line for cell in result["cells"] for line in cell["failures"])
    assert message in " ".join(printed.out.split())
    assert message in printed.err
    assert "1 fails" in file.with_suffix(".svg").read_text(encoding="utf-8")
    assert message in file.with_suffix(".md").read_text(encoding="utf-8")
    page = file.with_suffix(".html").read_text(encoding="utf-8").replace("&#39;", "'")
    # Once as the finding; the numbers below have each run.
    finding = page.partition(f'<section class="test" id="{test}">')[2].partition("<dl")[0]
    assert finding.count(message) == 1
    return result


@pytest.mark.parametrize(
    ("law", "test", "message"),
    [
        ("Raises", "used", "ValueError: no such thing"),
        ("Nan", "used", "grow answered nan"),
        ("Signature", "used", "takes 2 positional arguments but 4 were given"),
        ("AtTimeout", "back", "KeyError: 'timeout'"),
    ],
)
@pytest.mark.parametrize("require", [[], ["--require", "rfc9743"]])
@pytest.mark.usefixtures("small", "laws")
def test_a_law_that_fails_fails_its_test(law, test, message, require, capfd):
    check_failure(capfd, test, message, [f"laws.py:{law}", "--quick", *require])


@pytest.mark.usefixtures("small", "laws")
def test_one_failed_seed_fails_the_test(monkeypatch, capfd):
    crash(monkeypatch, "reno", 2)
    result = check_failure(capfd, "used", "seed 2: out of luck", ["reno", "--quick"])
    assert result["problem"].startswith("1 of 3 runs of the controller has no value; ")
    (cell,) = result["cells"]
    assert cell["value"]["values"][1] is None
    assert None not in cell["baseline"]["values"]


@pytest.mark.usefixtures("small", "laws")
def test_an_unknown_metric_fails_the_test(capfd):
    words = ["reno", "--quick", "--suite", "c4"]
    check_failure(capfd, "time", "seed 1: fct is unknown", words)


@pytest.mark.usefixtures("small", "laws")
def test_an_infinite_metric_fails_the_test(monkeypatch, capfd):
    """The mean of a metric that is infinite in one run is not that of the others."""
    monkeypatch.setattr(
        work, "_figures", lambda _, run, __: {"utilization": np.inf if run.seed == 3 else 0.5}
    )
    check_failure(capfd, "used", "seed 3: utilization is infinite", ["reno", "--quick"])


@pytest.mark.usefixtures("small", "laws")
def test_a_baseline_of_zero_is_named(monkeypatch):
    monkeypatch.setattr(
        work, "_figures", lambda _, run, __: {"queue_delay.p95": float(run.controller == "reno")}
    )
    (card,) = cwnd.evaluate(["reno"], test="late", quick=True, out="out")
    assert card.results[0].evidence == "1 s; the baseline is 0"


@pytest.mark.usefixtures("small", "laws")
def test_a_failed_baseline_decides_nothing(monkeypatch, capfd):
    """A test relative to a baseline without figures is undecided, and the command fails."""
    crash(monkeypatch, "cubic", 1)
    assert cli.run(["evaluate", "reno", "--quick", "--test", "late", "--out", "out"]) == 1
    printed = capfd.readouterr()
    assert "undecided" in printed.out
    assert "baseline cubic, seed 1: out of luck" in printed.err
    assert "baseline cubic, seed 1: out of luck" in " ".join(printed.out.split())


@pytest.mark.usefixtures("small", "laws")
def test_a_failed_baseline_leaves_absolute_bounds(monkeypatch, capfd):
    """An absolute alternative decides without a value of the baseline; the command fails."""
    crash(monkeypatch, "cubic", 1)
    words = ["evaluate", "reno", "--quick", "--test", "used", "--json", "--out", "out"]
    assert cli.run(words) == 1
    (card,) = json.loads(capfd.readouterr().out)["cards"]
    (result,) = card["tests"]
    assert result["grade"] == "meets"
    (cell,) = result["cells"]
    assert cell["failures"] == ["baseline cubic, seed 1: out of luck"]
    assert cell["ratio"]["interval"] is None


@pytest.mark.usefixtures("small", "laws")
def test_unknown_figures_are_named(monkeypatch):
    """Neither Markdown nor the page has a number that is not one."""
    crash(monkeypatch, "cubic", 1)
    # Runs beside a Python law are in other processes: the baseline's are made first.
    cwnd.evaluate(["cubic"], test=["late", "back"], quick=True, out="out")
    (card,) = cwnd.evaluate(["laws.py:Raises"], test=["late", "back"], quick=True, out="out")
    late, _ = card.results
    assert late.evidence == "unknown"
    counts = "3 of 3 runs of the controller and 1 of 3 runs of the baseline have no value; RTT 20"
    assert late.problem.startswith(counts)
    assert card.problem.startswith(f"2 of 2 tests have runs without a value; late: {counts}")
    card.report("page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    for text in (card.to_markdown(), page.partition("</style>")[2]):
        assert "unknown" in text
        assert not re.search(r"\bnan\b", text)
    assert "* a &lt; b &amp; c \\| d\n" in card.to_markdown(["a < b & c | d"])


@pytest.mark.usefixtures("small", "laws")
def test_a_run_that_the_machine_lost_is_undecided(monkeypatch, capfd):
    """A late emulator is not a fault of the controller; the command fails, and can be repeated."""
    crash(monkeypatch, "reno", 2, work._Late("the emulator was late"))
    assert cli.run(["evaluate", "reno", "--quick", "--test", "used", "--out", "out"]) == 1
    printed = capfd.readouterr()
    assert "undecided" in printed.out
    assert "seed 2: lost: the emulator was late" in printed.err


@pytest.mark.usefixtures("small", "laws")
def test_runs_of_a_changed_law_are_made_again(monkeypatch, recwarn):
    def card(kept: float) -> Card:
        Path("mine.py").write_text(LAWS.replace("return w / 2", f"return {kept} * w"))
        (made,) = cwnd.evaluate(["mine.py:Sound"], quick=True, out="out")
        return made

    first = card(0.5)
    runs = len(cwnd.Sweep("out/runs/networks"))
    assert not recwarn
    second = card(0.75)
    (warning,) = recwarn
    assert str(warning.message) == "mine.py:Sound has changed: its runs are made again"
    assert len(cwnd.Sweep("out/runs/networks")) == runs
    assert second.to_json() != first.to_json()
    assert card(0.5).to_json() == first.to_json()
    monkeypatch.setattr(code, "own_code", lambda: "of another cwnd")
    with pytest.raises(ArgumentError, match="with different code"):
        card(0.75)


@pytest.mark.usefixtures("search", "small", "laws")
def test_what_a_search_finds_is_a_section(capfd, documents):
    text = 'law mine "Mine"\n\non grow:\n    return 2\n\non cut:\n    return 2\n'
    law = Path("mine.law")
    words = [
        *("evaluate", "mine.law", "--quick", "--test", "used", "--search", "--budget", "80runs"),
        *("--out", "out", "--json"),
    ]

    def finding():
        assert cli.run(words) == 0
        printed = capfd.readouterr()
        document = json.loads(printed.out)
        documents.check("evaluate", document)
        (one,) = document["cards"][0]["search"]["findings"] or [None]
        return one, printed.err

    law.write_text(text, "utf-8")
    one, _ = finding()
    assert one["sentence"] == "a rate of 5 Mbit/s and a round-trip time of 60 ms"
    assert (one["test"], one["fails"]) == ("random-loss-goodput", ["< 0.5 baseline"])
    assert one["file"] == "out/search/mine-law/worst-1.toml"
    assert cli.run(["run", one["file"], "--check"]) == 1
    for form in ("html", "md"):
        written = Path(f"out/mine-law-used-quick.{form}").read_text("utf-8")
        assert f"It needs {one['sentence']}." in written
        assert "random-loss-goodput: &lt; 0.5 baseline" in written
        assert one["file"] in written
    assert Path("out/search/mine-law/index.html").exists()
    capfd.readouterr()
    runs = len(cwnd.Sweep("out/search/mine-law"))
    assert finding()[0] == one
    assert len(cwnd.Sweep("out/search/mine-law")) == runs
    law.write_text(text.replace("2", "w + acked / w", 1).replace("2", "w / 2"), "utf-8")
    one, said = finding()
    assert one is None
    assert said.count("mine.law has changed: its runs are made again") == 1
    assert not Path("out/search/mine-law/worst-1.toml").exists()


@pytest.mark.usefixtures("laws")
def test_a_failed_run_fails_the_other_commands(capfd):
    """A comparison, a run with expectations and a sweep do not succeed with a law that fails."""
    words = ["--time", "3s", "--repeat", "1", "--flows", "2"]
    assert cli.run(["compare", "laws.py:Raises", *words]) == 2
    assert "ValueError: no such thing" in capfd.readouterr().err
    flow = '[[flow]]\ncontroller = "laws.py:Raises"\n'
    link = 'duration = "3s"\n[dumbbell]\nrate = "2mbit"\ndelay = "10ms"\n'
    expect = '[expect]\nutilization = ">= 0"\n'
    Path("law.toml").write_text(f"{link}{flow}{expect}", encoding="utf-8")
    assert cli.run(["run", "law.toml", "--check"]) == 2
    assert "ValueError: no such thing" in capfd.readouterr().err
    plan = 'controllers = ["laws.py:Raises"]\n[base]\ntime = "3s"\n[axes]\nrate = ["2mbit"]\n'
    Path("plan.toml").write_text(plan, encoding="utf-8")
    assert cli.run(["sweep", "plan.toml", "--out", "swept"]) == 1
    assert "1 run failed" in capfd.readouterr().out


def test_an_expectation_of_an_unknown_metric_fails(tmp_path, capfd):
    text = 'duration = "1s"\n[dumbbell]\nrate = "2mbit"\ndelay = "10ms"\n'
    text += '[[flow]]\ncontroller = "reno"\nbytes = 10_000_000\n[expect]\nfct = "<= 1000s"\n'
    (tmp_path / "one.toml").write_text(text, encoding="utf-8")
    assert cli.run(["run", str(tmp_path / "one.toml"), "--check"]) == 1
    assert "fails  fct <= 1000s: unknown" in capfd.readouterr().out


VALUES = st.lists(st.floats(0, 1), min_size=3, max_size=10)


@given(VALUES, st.floats(0.01, 0.99))
def test_the_interval_that_is_shown_is_graded(values, limit):
    """An absolute threshold is decided by the interval within the metric's range."""
    measured = measure(values, [1.0] * len(values), UNIT)
    meets, fails = (read_bounds("fraction", f"{sign} {limit}") for sign in ("<=", ">"))
    found = grade(meets, fails, measured)
    assert 0 <= measured.value.low <= measured.value.high <= 1
    assert (found == "meets") == (measured.value.high <= limit)
    assert (found == "fails") == (measured.value.low > limit)


@given(st.lists(st.tuples(st.floats(0.01, 9), st.floats(0.01, 9)), min_size=3, max_size=10))
def test_the_ratio_that_is_shown_is_graded(pairs):
    values, base = zip(*pairs, strict=True)
    measured = measure(values, base)
    meets, fails = (read_bounds("time", f"{sign} 1.5 baseline") for sign in ("<=", ">"))
    found = grade(meets, fails, measured)
    assert (found == "meets") == (measured.ratio.high <= 1.5)
    assert (found == "fails") == (measured.ratio.low > 1.5)


@pytest.mark.usefixtures("small")
def test_every_form_of_a_card_has_the_graded_intervals(tmp_path):
    (card,) = cwnd.evaluate(["reno"], test="late", out=tmp_path)
    (result,) = card.results
    document = card.to_json()["tests"][0]
    card.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for cell, plain in zip(result.cells, document["cells"], strict=True):
        again = measure(plain["value"]["values"], plain["baseline"]["values"], within=UNIT)
        assert plain["ratio"] == again.ratio.to_json()
        assert plain["grade"] == grade(result.test.meets, result.test.fails, cell.measured)
        for text in result.intervals(cell):
            assert text in page
    made = replace(result.worst, grade="fails")
    failing = replace(card, results=(replace(result, cells=(made,)),))
    assert failing.results[0].evidence in failing.to_markdown()
    assert failing.results[0].evidence.endswith(" times the baseline")


def texts(svg):
    """Return all texts of a badge that a reader sees or hears."""
    assert re.fullmatch(r"<svg .*</svg>\n", svg)
    return {*re.findall(r">([^<]+)</t", svg), *re.findall(r'aria-label="([^"]+)"', svg)}


def badge_of(card):
    label, text = card.badge
    rules = "; TCP conventions: linux" if card.on == "sim" else ""
    assert texts(card.to_svg()) == {label, text, f"{label}: {text}{rules}"}
    return f"{label}: {text}"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "RFC 9743: meets"),
        ({"quick": True}, "RFC 9743: quick"),
        ({"test": "used"}, "RFC 9743: 1 of 3 tests"),
        ({"test": ["used", "late"], "quick": True}, "RFC 9743: 2 of 3 tests, quick"),
        ({"suite": "aqm"}, "RFC 7928: meets"),
        ({"suite": "c4"}, "tests of C4: 1 fails"),
        ({"suite": "all", "test": ["time", "used"]}, "all suites: 2 of 4 tests: 1 fails"),
    ],
)
def test_a_badge_says_what_was_tested(options, expected, tmp_path):
    """Only the card of a whole suite says that it meets."""
    (card,) = cwnd.evaluate(["cubic"], out=tmp_path, **options)
    assert badge_of(card) == expected
    assert card.to_json()["badge"] == expected
    assert ("#1b7f3b" in card.to_svg()) == expected.endswith(": meets")
    if card.scope:
        assert card.scope in card.title
        assert card.scope in card.to_markdown()


@pytest.mark.usefixtures("small")
def test_a_badge_of_runs_in_real_time_says_so():
    assert badge_of(Card("reno", "rfc9743", quick=False, results=(), on="linux")) == (
        "RFC 9743: 0 of 3 tests, in the kernel's TCP: does not apply"
    )


@pytest.mark.usefixtures("small", "laws")
def test_the_measured_flows_are_those_of_a_stack(capfd):
    """The baseline is the stack's own CUBIC, and the commands of a card give its numbers."""
    words = ["evaluate", "reno", "own:reno", "--stack", "quinn", "--test", "back", "--quick"]
    assert cli.run([*words, "--out", "out"]) == 0
    assert {file.name for file in Path("out").glob("*.json")} == {
        "reno-quinn-back-quick.json",
        "own-reno-quinn-back-quick.json",
    }
    (card, own) = cwnd.evaluate(
        ["reno", "own:reno"], stack="quinn", test="back", quick=True, out="out"
    )
    for made in (card, own):
        assert badge_of(made) == "RFC 9743: 1 of 3 tests, quick, in quinn"
        assert made.to_json()["stack"] == "quinn"
        assert made.results[0].baseline == "own:cubic"
        (cell,) = made.results[0].cells
        capfd.readouterr()
        command = shlex.split(made.command(made.results[0], cell))
        assert cli.run([*command[1:], "--json"]) == 0
        document = json.loads(capfd.readouterr().out)
        assert document["value"] == cell.values[cell.worst_seed - 1]
        assert [flow["kind"] for flow in document["flows"]] == ["quic"]
    assert card.results[0].cells[0].base == own.results[0].cells[0].base
    assert "stack: no before, quinn now" in changes_since({**card.to_json(), "stack": None}, card)


@pytest.mark.usefixtures("small")
def test_a_badge_of_undecided_tests_does_not_say_that_it_meets(tmp_path):
    (card,) = cwnd.evaluate(["cubic"], suite="aqm", out=tmp_path)
    (result,) = card.results
    cells = (*result.cells[1:], replace(result.cells[0], grade="undecided"))
    assert badge_of(replace(card, results=(replace(result, cells=cells),))) == (
        "RFC 7928: 1 undecided"
    )


def test_every_suite_has_the_name_of_its_source_on_the_badge():
    assert BADGES.keys() == {*SUITES, "all"}
    assert BADGES["rmcat"] == "RFC 8867"


@pytest.mark.usefixtures("small", "laws")
def test_running_a_number_again_keeps_the_card(capfd):
    """The command on a card, a quick evaluation and another suite have files of their own."""
    assert cli.run(["evaluate", "cubic", "reno", "--out", "out"]) == 0
    before = {path: path.read_bytes() for path in Path("out").glob("*.*")}
    assert len(before) == 9
    document = json.loads(Path("out/cubic.json").read_text(encoding="utf-8"))
    commands = [test["command"].split() for test in document["tests"]]
    commands.append(["cwnd", "evaluate", "cubic", "reno", "--quick"])
    for words in commands:
        assert cli.run([*words[1:], "--out", "out"]) == 0
    assert cli.run(["evaluate", "cubic", "--suite", "aqm", "--out", "out"]) == 0
    assert {path: path.read_bytes() for path in before} == before
    made = {path.stem for path in Path("out").glob("cubic*.svg")}
    assert made == {
        "cubic",
        *(f"cubic-{name}" for name in ("late", "used", "back", "quick", "aqm")),
    }
    capfd.readouterr()


@pytest.mark.usefixtures("small", "laws")
def test_several_tests_run(capfd):
    words = ["evaluate", "cubic", "--test", "used", "--test", "late", "--json", "--out", "out"]
    assert cli.run(words) == 0
    (card,) = json.loads(capfd.readouterr().out)["cards"]
    assert [test["id"] for test in card["tests"]] == ["late", "used"]
    with pytest.raises(ArgumentError, match="'none' is not a test of the suite rfc9743: "):
        cwnd.evaluate(["cubic"], test=["used", "none"], out="out")


@pytest.mark.usefixtures("small")
def test_the_coverage_stands_beside_each_section(tmp_path):
    (full,) = cwnd.evaluate(["reno"], suite="rfc9743", out=tmp_path)
    (quick,) = cwnd.evaluate(["reno"], suite="rfc9743", quick=True, out=tmp_path)
    assert str(full.coverage("6.1")) == "4 of 4 networks, 5 seeds"
    assert str(quick.coverage("6.1")) == "1 of 4 networks, 3 seeds"
    assert "| **meets** | 1 of 4 networks, 3 seeds |" in quick.to_markdown()
    section = quick.to_json()["sections"][1]
    assert (section["networks"], section["of"], section["seeds"]) == (1, 4, [3, 3])
    quick.report(tmp_path / "page.html")
    assert "1 of 4 networks, 3 seeds" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("small", "laws")
def test_a_quick_evaluation_has_runs_of_the_full_one():
    """The networks and seeds of a quick evaluation are a part of those of a full one."""
    (full,) = cwnd.evaluate(["reno"], test="used", out="out")
    runs = len(cwnd.Sweep("out/runs/networks").runs)
    (quick,) = cwnd.evaluate(["reno"], test="used", quick=True, out="out")
    assert len(cwnd.Sweep("out/runs/networks").runs) == runs
    assert (full.problem, quick.problem) == ("", "")
    cells = {cell.label: cell for cell in full.results[0].cells}
    (cell,) = quick.results[0].cells
    assert cell.values == cells[cell.label].values[:3]
    assert cell.base == cells[cell.label].base[:3]


@pytest.mark.usefixtures("small", "laws")
def test_the_tests_and_their_networks_are_listed(capfd, check_json):
    assert cli.run(["evaluate", "--list", "--suite", "all", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    check_json(document, "`cwnd evaluate --list --json`")
    listed = document["tests"]
    assert {test["id"] for test in listed} == {*TESTS}
    (used,) = (test for test in listed if test["id"] == "used")
    assert used["section"] == "6.1"
    assert len(used["networks"]) == 4
    assert used["quick"] == ["RTT 20 ms, buffer 10 packets"]
    assert cli.run(["evaluate", "--list", "--suite", "all"]) == 0
    printed = capfd.readouterr().out
    assert all(test in printed for test in TESTS)
    assert cli.run(["evaluate", "--list", "--test", "used"]) == 0
    assert "RTT 80 ms, buffer 20 packets" in capfd.readouterr().out
    assert cli.run(["evaluate", "--list", "--test", "back"]) == 0
    assert ONLY in capfd.readouterr().out


def test_the_list_of_tests_is_complete_on_a_narrow_terminal(monkeypatch, capfd):
    monkeypatch.setattr(tables, "_console", lambda: Console(width=80))
    assert cli.run(["evaluate", "--list", "--suite", "all"]) == 0
    head, *lines = capfd.readouterr().out.splitlines()
    assert head.split() == ["section", "test", "networks", "quick", "title"]
    rows = [line.split() for line in lines if not line.startswith(" ")]
    tests = [test for each in experiments() for test in each.tests]
    assert {(section, test) for section, test, *_ in rows} == {(t.section, t.id) for t in tests}
    assert [order(row[0]) for row in rows] == sorted(order(test.section) for test in tests)


def scenario_of(capfd, *words):
    """Return the scenario that a command prints, written to a file of another directory."""
    assert cli.run(["evaluate", *words, "--scenario"]) == 0
    Path("elsewhere").mkdir(exist_ok=True)
    file = Path("elsewhere") / "one.toml"
    file.write_text(capfd.readouterr().out, encoding="utf-8")
    return file


@pytest.mark.parametrize("controller", ["reno", "laws.py:Sound", "cubic"])
@pytest.mark.usefixtures("small", "laws")
def test_the_printed_scenario_has_the_value_of_the_cell(controller, capfd):
    """The run of a printed scenario gives the value of its network and seed on the card."""
    (card,) = cwnd.evaluate([controller], test=["used", "late"], out="out")
    for result in card.results:
        for cell in result.cells:
            for seed, value in ((1, cell.values[0]), (3, cell.values[2])):
                words = (controller, "--test", result.test.id, "--cell", cell.label)
                file = scenario_of(capfd, *words, "--seed", str(seed))
                assert result.test.metric.value(cwnd.run(file)) == value


@pytest.mark.usefixtures("small", "laws")
def test_the_commands_of_a_page_give_its_numbers(capfd, check_json, documents):
    """Each command of a page runs: the worst run of a network, and its scenario."""
    (card,) = cwnd.evaluate(["reno"], test="used", out="out")
    card.report("page.html")
    page = Path("page.html").read_text(encoding="utf-8").replace("&#39;", "'")
    (result,) = card.results
    for cell in result.cells:
        command = card.command(result, cell)
        assert f"{command} --scenario" in page
        assert f"{command} --report run.html --trace run" in page
    assert "× the baseline's mean" in page
    head = re.search(r"<summary>Numbers</summary>.*?</thead>", page, re.DOTALL)[0]
    assert page.count(f'<tr class="runs"><td class="text" colspan="{head.count("<th ")}">') == 4
    words = shlex.split(card.command(result, result.cells[0]))
    assert words[1:4] == ["evaluate", "reno", "--test"]
    assert cli.run([*words[1:], "--report", "run.html", "--trace", "run", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    documents.check("evaluate-run", document)
    own = dict(list(document.items())[-4:])
    check_json(own, "`cwnd evaluate … --json` with `--cell` or `--seed`")
    assert document["value"] == result.cells[0].values[result.cells[0].worst_seed - 1]
    assert Path("run.html").is_file()
    assert Path("run/samples.parquet").is_file()
    assert cli.run(words[1:]) == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("utilization: ")


@pytest.mark.usefixtures("small", "laws")
def test_a_network_is_found_by_parts_of_its_name():
    assert single_run("reno", "used", cell="buffer 20 packets, rtt 80 ms").network == (
        "RTT 80 ms, buffer 20 packets"
    )
    assert single_run("reno", "back").network == ""
    assert single_run("reno", "back", cell=ONLY).network == ""
    for cell, problem in (
        ("RTT 80 ms", "'RTT 80 ms' names 2 networks: RTT 80 ms, buffer 10 packets; "),
        ("RTT 8 ms", "'RTT 8 ms' names no network: RTT 20 ms, buffer 10 packets; "),
        (None, "name one of the 4 networks: "),
    ):
        with pytest.raises(ArgumentError, match=problem):
            single_run("reno", "used", cell=cell)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["laws.py:Raises", "--test", "back"], "ValueError: no such thing"),
        (["laws.py:Nan", "--test", "back"], "grow answered nan"),
        (["reno", "--test", "time"], ""),
    ],
)
@pytest.mark.usefixtures("small", "laws")
def test_a_single_run_without_a_value_fails(words, message, capfd):
    assert cli.run(["evaluate", *words, "--seed", "1"]) == 1
    printed = capfd.readouterr()
    assert message in printed.err
    assert (not message) == ("fct: unknown" in printed.out)
    assert printed.err.count("\n") == bool(message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name at least one controller"),
        (["reno", "--require", "rmcat"], "--require: no test of rmcat is in this evaluation"),
        (["reno", "--test", "time"], "--test: 'time' is a test of c4: add --suite c4"),
        (["own:reno"], "--stack: own:reno is of a QUIC stack: noq or quinn"),
        (["reno", "--stack", "noq", "--on", "linux"], "--stack: on linux the flows are the kernel"),
        (
            ["reno", "--stack", "noq", "--test", "usd"],
            "--test: 'usd' is not a test of the suite rfc9743 with --stack noq: did you mean used?",
        ),
        (
            ["reno", "--test", "usd"],
            "--test: 'usd' is not a test of the suite rfc9743: did you mean used? `cwnd eval",
        ),
        (["reno", "--test", "used", "--seed", "2", "--suite", "rfc"], "--suite: 'rfc' is not one"),
        (["reno", "--test", "back", "--seed", "2", "--out", "x"], "--out: not for a single run"),
        *(
            (["reno", "--test", "back", "--scenario", *option], f"{option[0]}: not with --scenario")
            for option in (["--report", "a.html"], ["--trace", "a"], ["--json"])
        ),
        *(
            (["--list", *option], f"{option[0]}: not for a list")
            for option in (["--cell", "a"], ["--seed", "1"], ["--scenario"], ["--quick"])
        ),
        (["--list", "--conventions", "rfc"], "--conventions: not for a list"),
        (["reno", "--budget", "9runs"], "--budget: not without --search"),
        (["reno", "--search", "--budget", "9"], "--budget: '9' is neither a time"),
        *(
            (["reno", "--search", *option], "--search: only on sim over TCP with the conventions")
            for option in (["--conventions", "rfc"], ["--stack", "noq"])
        ),
        (["--list", "--search"], "--search: not for a list"),
        (["reno", "--list"], "--list: lists tests, not controllers such as reno"),
        (["reno", "--seed", "2"], "--test: a single run needs one controller and one --test NAME"),
        (["reno", "cubic", "--test", "used", "--seed", "2"], "--test: a single run needs one"),
        (["reno", "--test", "used", "--seed", "2", "--quick"], "--quick: not for a single run"),
        (["laws.py:Nope", "--test", "back", "--seed", "1"], "laws.py:Nope: "),
        (["reno", "--test", "used", "--seed", "-1", "--cell", "RTT 20 ms"], "--seed: -1 is not"),
    ],
)
@pytest.mark.usefixtures("small", "laws")
def test_mistakes_are_named(words, message, capfd):
    assert cli.run(["evaluate", *words]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"cwnd: {message}")
    assert printed.err.count("\n") == 1


def test_the_networks_of_each_experiment_have_different_names():
    for on in ("sim", "linux"):
        for each in experiments(on=on):
            names = each.networks
            assert len(set(names)) == len(names)
            for number, name in enumerate(names):
                assert each.point(name) == number


def test_a_wrong_quick_network_is_named():
    wrong = NETWORKS.replace("RTT 20 ms, buffer 10", "RTT 20 ms, buffer 11")
    with pytest.raises(PlanError, match=r"^networks\.toml: quick: 'RTT 20 ms, buffer 11 "):
        read_experiment("networks", wrong)
