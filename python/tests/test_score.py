"""`cwnd.score`: its stages, limits, score and explanation."""

from __future__ import annotations

import json
import random
import re
import runpy
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import cwnd
from cwnd._tasks.score import apart
from cwnd._tasks.score import score as scoring
from cwnd._tasks.score.explain import MOST, explain
from cwnd._tasks.score.measure import Facts, Recovery, from_json
from cwnd._tasks.score.objectives import score_network
from cwnd._tasks.score.suite import KINDS, OBJECTIVES, read_suite
from cwnd.errors import ArgumentError

HEAD = "class Law:\n    def cut(self, w, why, cx):\n        return w / 2\n"
FACTS = Facts(
    flows=1,
    goodput_bps=6e6,
    capacity_bps=10e6,
    other_bps=None,
    slowest_bps=6e6,
    fastest_bps=6e6,
    jain=1.0,
    base_rtt_s=0.2,
    queue_delay_s=0.001,
    dropped=0.041,
    timeouts=0,
    mean_window=150.0,
    recovery=Recovery("loss", 12.3, 41.0, returned=True, window=250.0),
)


@pytest.fixture
def suite(tmp_path):
    """Return a suite of short runs."""
    text = (Path(scoring.__file__).parent / "suites/default.toml").read_text("utf-8")
    for key, value in {
        "references": '["cubic", "vegas"]',
        "duration": '"5s"',
        "quick": "6",
        "training": "8",
        "held_out": "6",
        "rate": '["2mbit", "8mbit"]',
    }.items():
        text = re.sub(f"^{key} = [^#\n]*", f"{key} = {value}  ", text, flags=re.MULTILINE)
    path = tmp_path / "short.toml"
    path.write_text(text, "utf-8")
    return str(path)


@pytest.fixture
def law(tmp_path):
    """Return a function that writes a law and returns its path."""

    def write(grow: str, cut: str = "w / 2") -> str:
        path = tmp_path / "mine.law"
        text = f'law mine "Mine"\n\non grow:\n    return {grow}\n\non cut:\n    return {cut}\n'
        path.write_text(text, "utf-8")
        return str(path)

    return write


@pytest.fixture
def python_class(tmp_path):
    """Return a function that writes a class with a method `grow`, and returns its name."""

    def write(*lines: str, before: str = "") -> str:
        body = "".join(f"        {line}\n" for line in lines)
        grow = f"    def grow(self, w, acked, cx):\n{body}"
        (tmp_path / "mine.py").write_text(before + HEAD + grow, "utf-8")
        return f"{tmp_path / 'mine.py'}:Law"

    return write


def test_a_score_is_the_same_each_time_and_a_law_equals_the_class(suite, law, python_class):
    found = [cwnd.score(law("w + acked / w"), suite, stage="held-out") for _ in range(2)]
    assert found[0] == found[1]
    assert 0.5 < found[0].combined_score < 1
    assert found[0].combined_score == found[0].metrics["full_score"]
    assert found[0].stage == "held-out"
    assert set(OBJECTIVES) < set(found[0].metrics)
    same = cwnd.score(python_class("return w + acked / w"), suite, stage="held-out")
    assert same.metrics == pytest.approx(found[0].metrics)
    assert same.artifacts == found[0].artifacts
    assert cwnd.score(law("w + acked / w"), suite, seed=2).metrics != found[0].metrics


def test_each_network_has_a_row_with_the_best_reference(suite, law):
    rows = cwnd.score(law("w + acked / w"), suite, stage="held-out").networks
    assert [row["part"] for row in rows] == ["training"] * 8 + ["held-out"] * 6
    assert len({row["label"] for row in rows}) == len(rows)
    for row in rows:
        weights = read_suite(suite).weights
        each = {name: row[name] for name in OBJECTIVES if name in row}
        assert row["score"] == pytest.approx(score_network(each, weights))
        assert row["best"] in {"cubic", "vegas"}
        assert 0 <= row["best_score"] <= 1


def test_an_objective_that_no_network_has_is_absent(suite, law):
    path = Path(suite)
    text = path.read_text("utf-8").replace("quick = 6", "quick = 2")
    path.write_text(text.replace("training = 8", "training = 2"), "utf-8")
    found = cwnd.score(law("w + acked / w"), suite)
    assert set(OBJECTIVES) - set(found.metrics) == {"fairness"}


AXES = '[axes]\nrate = ["4mbit", "5mbit"]\nrtt = ["30ms", "60ms"]\n'

SEARCH = """
[search]
against = "cubic"
objectives = ["goodput", "loss"]
budget = "100runs"
weight = 0.25
bounds = "bounds.toml"
"""


@pytest.fixture
def searching(suite):
    """Return a suite with a search of a small space."""
    path = Path(suite)
    text = re.sub("(?m)^enough = [0-9.]*", "enough = 0.0", path.read_text("utf-8"))
    path.write_text(text + SEARCH, "utf-8")
    (path.parent / "bounds.toml").write_text(AXES, "utf-8")
    return suite


def test_a_search_lowers_the_score_and_says_where(searching, law, python_class, tmp_path):
    path = law("2")
    found = cwnd.score(path, searching, stage="search")
    (finding,) = cwnd.search(
        path, bounds=tmp_path / "bounds.toml", budget="50runs", findings=1, out=tmp_path / "out"
    ).findings
    (row,) = (row for row in found.networks if row["part"] == "search")
    assert row["label"] == finding.sentence
    assert row["score"] == pytest.approx(2**-finding.size.mean)
    metrics = found.metrics
    assert metrics["search_score"] == (row["score"] + 1) / 2
    assert metrics["combined_score"] == pytest.approx(
        metrics["full_score"] * metrics["search_score"] ** 0.25
    )
    first = found.artifacts["explanation"].split("\n")[0]
    assert first.startswith("A rate of 5 Mbit/s and a round-trip time of 60 ms, found by search")
    same = cwnd.score(python_class("return 2"), searching, stage="search")
    assert same.metrics == pytest.approx(metrics)
    sound = cwnd.score(law("w + acked / w"), searching, stage="held-out")
    assert sound.metrics["search_score"] == 1
    assert sound.stage == "held-out"


def test_a_class_that_stops_in_a_search_is_stopped(searching, python_class, monkeypatch):
    """The runs of the suite end before 6 s."""
    monkeypatch.setattr(apart, "SECONDS", 0.5)
    grow = ("while cx.now > 6:", "    pass", "return w + acked / w")
    found = cwnd.score(python_class(*grow), searching, stage="search")
    assert found.metrics["full_score"] > 0.5
    assert found.metrics["search_score"] == pytest.approx(2**-10)
    assert "a run took longer than 0.5 s and was stopped" in found.artifacts["explanation"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('budget = "100runs"', 'budget = "10s"', "search.budget: a number of runs"),
        ("weight = 0.25", "weight = -1", "search.weight: a number from 0 is needed"),
        ("weight = 0.25", 'weight = "a"', "search.weight: a number from 0"),
        ('["goodput", "loss"]', "3", "search.objectives: a list of names"),
        ("weight = 0.25", "", "search: a table of against, budget, objectives, weight is needed"),
        ('"cubic"', '"mine.py:Law"', "search.against: no class in Python"),
        ('"cubic"', '"cubik"', 'unknown controller "cubik"'),
        ('"loss"]', '"los"]', "'los' is not one of goodput"),
        ('"loss"]', '"harm"]', "search: the objective harm needs the parameter `others`"),
        ("bounds.toml", "nope.toml", "nope.toml: No such file"),
    ],
)
def test_a_wrong_search_is_named(searching, old, new, message):
    path = Path(searching)
    path.write_text(path.read_text("utf-8").replace(SEARCH, SEARCH.replace(old, new)), "utf-8")
    with pytest.raises(ArgumentError, match=re.escape(message)):
        cwnd.score("reno", searching)


def test_the_networks_depend_on_the_seed_alone_and_lie_in_the_ranges():
    suite = read_suite("default")
    training = suite.networks("training", 1)
    assert training == suite.networks("training", 1) != suite.networks("training", 2)
    labels = {network.label for network in training}
    assert not labels & {network.label for network in suite.networks("held-out", 1)}
    assert {network.kind for network in training[: suite.quick]} == set(KINDS)
    for network in training:
        assert 2e3 <= int(network.document["dumbbell"]["rate"].removesuffix("kbit")) <= 50e3
        assert 5e3 <= float(network.document["dumbbell"]["delay"].removesuffix("us")) <= 100e3


def test_no_objective_lowers_the_score_when_it_rises():
    draw = random.Random(1)
    for _ in range(100):
        each = {name: draw.random() for name in OBJECTIVES}
        weights = {name: draw.random() + 0.01 for name in OBJECTIVES}
        before = score_network(each, weights)
        assert 0 <= before <= 1
        for name in OBJECTIVES:
            assert score_network(each | {name: min(1, each[name] * 1.1)}, weights) > before


def test_a_law_with_an_error_has_the_score_0_and_the_line(suite, law):
    found = cwnd.score(law("ww"), suite)
    assert (found.combined_score, found.stage) == (0.0, "parse")
    assert "did you mean w?" in found.artifacts["explanation"]
    assert "mine.law:4:12" in found.artifacts["error"]
    found = cwnd.score(law("w / 0"), suite, stage="parse")
    assert found.artifacts["explanation"] == "The candidate can be read."
    assert "a division by 0" in found.artifacts["warnings"]


def test_a_law_below_the_threshold_is_not_run_on_more_networks(suite, law):
    path = Path(suite)
    path.write_text(path.read_text("utf-8").replace("enough = 0.2", "enough = 0.5"), "utf-8")
    found = cwnd.score(law("sqrt(-w)"), suite)
    assert found.stage == "quick"
    assert 0 < found.combined_score < 0.5
    assert "no further stage" in found.artifacts["warnings"]
    assert "answered NaN" in found.artifacts["warnings"]


def test_a_law_that_sends_as_much_as_it_can_ends(suite, law):
    found = cwnd.score(law("w * 1e9", "w * 1e9"), suite, stage="quick")
    assert found.metrics["loss"] < 0.1
    assert "of the packets were dropped by the queue" in found.artifacts["explanation"]


@pytest.mark.parametrize(
    ("lines", "explanation"),
    [
        (["return w + 1 / 0"], "mine.py:5: in grow: ZeroDivisionError: division by zero"),
        (["import os, signal", "os.kill(os.getpid(), signal.SIGSEGV)"], "in a run (SIGSEGV)"),
        (["import os", "os._exit(3)"], "died in a run (exit status 3)"),
        (["raise SystemExit"], "SystemExit"),
        (["bytearray(1 << 40)"], "MemoryError"),
        (["while True:", "    pass"], "a run took longer than 0.5 s and was stopped"),
    ],
)
def test_a_class_that_fails_scores_0_and_says_why(
    suite, python_class, monkeypatch, lines, explanation
):
    if "while" in lines[0]:
        monkeypatch.setattr(apart, "SECONDS", 0.5)
    found = cwnd.score(python_class(*lines), suite, stage="quick")
    assert found.combined_score == 0
    assert explanation in found.artifacts["explanation"]
    assert found.artifacts["explanation"].startswith("6 of 6 networks, first ")


def test_a_class_may_print_without_end(suite, python_class):
    found = cwnd.score(python_class("print('x' * 100_000)", "return w + acked / w"), suite)
    assert found.combined_score > 0.5
    assert found.artifacts["printed"] == "x" * apart.KEPT


@pytest.mark.parametrize(
    ("before", "explanation"),
    [
        ("1 +\n", "mine.py:1: invalid syntax"),
        ("while True:\n    pass\n", "reading the candidate took longer than 0.7 s"),
    ],
)
def test_a_file_that_cannot_be_read_scores_0(suite, python_class, monkeypatch, before, explanation):
    monkeypatch.setattr(apart, "START_SECONDS", 0.7 if "while" in before else 20)
    found = cwnd.score(python_class("return w", before=before), suite)
    assert (found.combined_score, found.stage) == (0.0, "parse")
    assert explanation in found.artifacts["error"]


def test_a_class_is_refused_where_it_cannot_be_limited(suite, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ArgumentError, match="Windows has no limits for a class in Python"):
        cwnd.score("mine.py:Law", suite)


def is_running(pid):
    """Test whether a process of Linux runs; one that its parent has not waited for does not."""
    try:
        return not re.search("State:.[ZX]", Path("/proc", pid, "status").read_text())
    except OSError:
        return False


def test_what_a_candidate_does_to_its_process_ends_the_scoring_only(suite, python_class, tmp_path):
    other = tmp_path / "other"
    before = (
        "import os, subprocess\n"
        "from pathlib import Path\n"
        "other = subprocess.Popen(['sleep', '60'])\n"
        f"Path({str(other)!r}).write_text(str(other.pid))\n"
        "os.kill(os.getpid(), 40)\n"
    )
    found = cwnd.score(python_class("return w", before=before), suite)
    assert "died in reading the candidate (signal 40)" in found.artifacts["error"]
    # The process that it started is killed too, and ends soon.
    end = time.monotonic() + 5
    while is_running(other.read_text()):
        assert time.monotonic() < end
        time.sleep(0.01)
    before = (
        "import gc\nfrom multiprocessing.connection import Connection\n"
        "for each in gc.get_objects():\n"
        "    if isinstance(each, Connection):\n        each.send_bytes(b'[1]')\n"
    )
    found = cwnd.score(python_class("return w", before=before), suite)
    assert "died in reading the candidate" in found.artifacts["error"]


def test_the_explanation_says_when_the_window_was_too_small():
    network = read_suite("default").networks("training", 1)[0]
    best = replace(FACTS, goodput_bps=9.5e6, dropped=0.006)
    weights = read_suite("default").weights
    sentences = explain([network], [FACTS], {"reno": [best]}, weights)
    drops = f"{network.label}: 4.1 % of the packets were dropped by the queue (reno 0.6 %)."
    goodput = (
        f"{network.label}: the goodput was 60 % of the capacity (reno 95 %); after the loss at "
        "12.3 s the window needed 41 s to return to 250 packets."
    )
    # (0.95 / 0.6)^4 is 6.3, and (5.1 / 1.6)^1 is 3.2.
    assert sentences == [goodput, drops]
    same = explain([network], [best], {"reno": [best]}, weights)
    assert same == []
    many = explain([network] * 20, [FACTS] * 20, {"reno": [best] * 20}, weights)
    assert len(many) == 6
    assert len(explain([network] * 20, [str(n) for n in range(20)], {}, weights)) < MOST


def test_facts_survive_the_way_to_another_process():
    for facts in (FACTS, replace(FACTS, recovery=None, other_bps=1e6)):
        assert from_json(json.loads(json.dumps(asdict(facts)))) == facts


def test_the_kernels_stage_has_a_score_of_its_own(suite, law, monkeypatch):
    monkeypatch.setattr(scoring, "check_backend", lambda on: None)
    monkeypatch.setattr(scoring, "run", lambda scenario, seed, on: cwnd.run(scenario, seed))
    found = cwnd.score(law("w + acked / w"), suite, stage="kernel")
    (row,) = (row for row in found.networks if row["part"] == "kernel")
    simulated = found.networks[0]
    assert (row["label"], row["score"]) == (simulated["label"], simulated["score"])
    assert found.metrics["kernel_score"] == row["score"]

    def refuse(*_: object, **__: object) -> None:
        raise ArgumentError("on", "mine.law has no kernel implementation")

    monkeypatch.setattr(scoring, "run", refuse)
    found = cwnd.score(law("w + acked / w"), suite, stage="kernel")
    assert found.metrics["kernel_score"] == 0
    assert "no kernel implementation" in found.artifacts["warnings"]


def test_the_command_prints_the_score(command, suite, law, check_json):
    path = law("w + acked / w")
    done = command("score", path, "--suite", suite, "--stage", "quick")
    assert re.search(r"^combined_score +0\.\d{4}$", done.stdout, re.MULTILINE)
    done = command("score", path, "--suite", suite, "--stage", "held-out", "--json")
    document = json.loads(done.stdout)
    assert document == cwnd.score(path, suite, stage="held-out").to_json()
    check_json(
        document,
        "## `cwnd score CANDIDATE --json`",
        absent=["error", "kernel_score", "printed", "search_score", "warnings"],
    )
    done = command("score", law("ww"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["metrics"] == {"combined_score": 0.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], 'unknown controller "nope"'),
        (["own:cubic"], "own:cubic is of a QUIC stack: no score"),
        (["nope.law"], "nope.law: no such file"),
        (["nope.py:Law"], "nope.py: no such file"),
        (["reno", "--suite", "nope"], "--suite: 'nope' is not one of default"),
        (["reno", "--suite", "nope.toml"], "--suite: nope.toml: No such file"),
        (["reno", "--stage", "search"], "--stage: the suite default has no table [search]"),
        (["reno", "--seed", "-1"], "--seed: -1 is not a whole number"),
        (["x.py:Law", "--stage", "kernel"], "--stage: a class in Python has no kernel"),
    ],
)
def test_a_wrong_use_has_the_status_2(command, arguments, message):
    done = command("score", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("quick = 6", "quick = 9", "quick: at most training, 8"),
        ('["cubic", "vegas"]', '["mine.py:Law"]', "references: no classes in Python"),
        ("quick = 6", "quicker = 6", "quick: missing"),
        ("fairness = 3", "fairness = -3", "weights.fairness: a number from 0"),
        ("fairness = 3", "fairness = nan", "weights.fairness: a number from 0"),
        ("fairness = 3", f"fairness = {10**400}", "weights.fairness: a number from 0"),
        ("fairness = 3", "fairness = true", "weights.fairness: a number from 0"),
        ("enough = 0.2", "enough = nan", "enough: a number from 0 to 1 is needed"),
        ("enough = 0.2", "enough = 5", "enough: a number from 0 to 1"),
        ("enough = 0.2", "enough = -1", "enough: a number from 0 to 1"),
        ("quick = 6", "quick = true", "quick: a whole number from 1 to 1000"),
        ("loss = [0.0001, 0.01]", "loss = [0.0001, 5]", "ranges.loss: numbers below 1"),
        ('["cubic", "vegas"]', '["cubic", "cubic"]', "references: cubic is listed twice"),
        ("fairness = 3", "fair = 3", "weights: a table of goodput, delay, loss, fairness"),
        ('rtt = ["10ms", "200ms"]', 'rtt = ["200ms", "10ms"]', "ranges.rtt: the first value"),
        ('rtt = ["10ms", "200ms"]', "rtt = 3", "ranges.rtt: two values are needed"),
        ("loss = [0.0001, 0.01]", "loss = [0.0001, inf]", "ranges.loss: a number from 0"),
        ("flows = [2, 6]", "flows = [0.1, 6]", "ranges.flows: numbers from 2 to 1000"),
        ("flows = [2, 6]", "flows = [2, 1e9]", "ranges.flows: numbers from 2 to 1000"),
        ('warmup = "1s"', "warmup = 1", "a time needs a unit"),
        ('warmup = "1s"', 'warmup = "4s"', "warmup: less than half of the duration"),
        ("title =", "title", "Expected '='"),
    ],
)
def test_a_wrong_suite_is_named(suite, old, new, message):
    path = Path(suite)
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(ArgumentError, match=re.escape(message)):
        cwnd.score("reno", suite)


def test_the_example_keeps_only_what_scores_more(suite, tmp_path, monkeypatch, capsys):
    root = Path(__file__).parents[2]
    example = runpy.run_path(str(root / "examples/score/mutate.py"))
    law = root / "crates/cwnd/src/laws/simd.law"
    text = law.read_text("utf-8")
    found = [text[start:end] for start, end in example["constants"](text)]
    assert found[:3] == ["1/16", "2", "4"]
    assert "0" not in found
    draw = random.Random(1)
    assert example["mutate"](text, draw) != text == law.read_text("utf-8")
    one = "on cut:\n    return w / 3\n"
    assert all(example["mutate"](one, draw) != one for _ in range(9))
    best = tmp_path / "best.law"
    arguments = [str(law), str(best), "--suite", suite, "--seconds", "0.3"]
    monkeypatch.setattr(sys, "argv", ["mutate.py", *arguments])
    example["main"]()
    scores = re.findall(r"combined_score (\S+),", capsys.readouterr().out)
    assert float(scores[0]) <= float(scores[1])
    assert cwnd.score(best, suite).combined_score == pytest.approx(float(scores[1]), abs=1e-4)


@pytest.mark.parametrize(
    ("text", "best", "message"),
    [
        (None, "best.law", "No such file"),
        ("", "best.law", "no constants to change"),
        ("", "best.txt", "the name of a law ends in .law"),
    ],
)
def test_the_example_refuses_other_files(tmp_path, monkeypatch, capsys, text, best, message):
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/score/mutate.py"))
    law = tmp_path / "mine.law"
    if text is not None:
        law.write_text(text, "utf-8")
    monkeypatch.setattr(sys, "argv", ["mutate.py", str(law), str(tmp_path / best)])
    with pytest.raises(SystemExit) as ended:
        example["main"]()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
