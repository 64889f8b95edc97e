"""Report cards: thresholds, grades, the experiments of the package, and what they find."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster
from jsonschema import Draft202012Validator

import cwnd
from cwnd._experiments.bound import grade, measure, read_bounds, worst
from cwnd._experiments.experiment import SUITES, experiments, order, read_experiment
from cwnd._runs.scenario import Scenario
from cwnd._show.report.evaluate import cards_page
from cwnd._tasks.evaluation.card import NOT_JUDGED, SECTIONS, changes_since
from cwnd._tasks.evaluation.schema import card_schema, evaluation_schema
from cwnd.errors import ArgumentError, DataSetWarning, PlanError
from cwnd.stats import COUNT, UNIT

LAWS = Path(__file__).with_name("broken_laws.py")

EXPERIMENT = """
[scenario]
duration = "10s"

[scenario.dumbbell]
rate = "10mbit"
delay = "20ms"

[[scenario.flow]]
name = "candidate"
controller = "cubic"

[[test]]
id = "used"
section = "6.1"
suites = ["rfc9743"]
title = "Utilisation"
metric = "utilization"
meets = ">= 90%"
fails = "< 50%"
reason = "A reason."
source = "A source."
finding = "Uses {value}."
"""


def card(controller, test, out, **options):
    """Return the only result of one test."""
    (made,) = cwnd.evaluate([controller], suite="all", test=test, out=out, **options)
    (result,) = made.results
    return result


def shorten(test, end, monkeypatch):
    """End the runs of a test's experiment earlier, without the metrics of its other tests."""
    (long,) = experiments("all", [test])
    scenario = Scenario({**long.scenario.to_dict(), "duration": end})
    metrics = tuple(one.metric.name for one in long.tests)
    short = replace(long, name=f"{long.name}-short", scenario=scenario, metrics=metrics)
    monkeypatch.setattr("cwnd._tasks.evaluation.evaluate.experiments", lambda *_: [short])


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("evaluation")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.002, 0.003, 0.004], "meets"),
        ([0.020, 0.021, 0.022], "concern"),
        ([0.200, 0.210, 0.220], "fails"),
        ([0.005, 0.015, 0.025], "undecided"),
        ([math.nan, math.nan, math.nan], "undecided"),
    ],
)
def test_an_interval_decides(values, expected):
    meets = read_bounds("fraction", ["<= 1.5 baseline", "<= 1%"])
    fails = read_bounds("fraction", ["> 3 baseline", "> 5%"])
    assert grade(meets, fails, measure(values, [0.0050, 0.0051, 0.0052], UNIT)) == expected


def test_the_ratio_to_the_baseline_is_paired():
    """Values that vary from seed to seed like the baseline's decide all the same."""
    base = np.array([1.0, 5.0, 20.0])
    meets, fails = read_bounds("time", "<= 1.1 baseline"), read_bounds("time", "> 2 baseline")
    assert grade(meets, fails, measure(base, base)) == "meets"
    assert grade(meets, fails, measure(3 * base, base)) == "fails"


def test_a_baseline_of_zero():
    meets, fails = read_bounds("count", "<= 2 baseline"), read_bounds("count", "> 4 baseline")
    assert grade(meets, fails, measure([0.0] * 5, [0.0] * 5, COUNT)) == "meets"
    assert grade(meets, fails, measure([7.0] * 5, [0.0] * 5, COUNT)) == "fails"


def test_the_worst_cell_gives_the_grade():
    assert worst(["meets", "does not apply", "undecided"]) == "undecided"
    assert worst([]) == "does not apply"


def test_every_section_has_tests_or_a_reason():
    """Every criterion of sections 5 to 7 of RFC 9743 is tested, or listed as not judged."""
    tested = {test.section for each in experiments() for test in each.tests}
    assert tested == set(SECTIONS)
    assert sorted(tested | set(NOT_JUDGED), key=order) == [
        *("5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5"),
        *("5.2", "5.2.1", "5.2.2", "5.2.3", "5.3.1", "5.3.2"),
        *("6.1", "6.2", "6.3", "6.4"),
        *("7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "7.9", "7.10", "7.11"),
    ]


def test_every_suite_has_tests():
    for suite in SUITES:
        assert experiments(suite)


def test_the_experiments_of_a_stack():
    """Cross traffic stays TCP; tests of TCP's own options and of L4S are left out."""
    tcp = {each.name: each for each in experiments()}
    quic = {each.name: each for each in experiments(stack="noq")}
    assert tcp.keys() - quic.keys() == {
        *("incast", "l4s", "media-beside-tcp", "media-capacity", "media-multiple", "media-three")
    }
    for name, each in quic.items():
        each.scenario.validate()
        assert each.baseline == f"own:{tcp[name].baseline}"
        for flow in each.scenario.to_dict()["flow"]:
            assert ("protocol" in flow) == flow.get("measured", True)


def test_thresholds_leave_room_for_a_concern():
    """A value that meets a test does not fail it: the thresholds are in order."""
    for each in experiments():
        for test in each.tests:
            more = {bound.operator[0] for bound in test.meets} == {">"}
            assert {bound.operator[0] for bound in test.fails} == ({"<"} if more else {">"}), (
                test.id
            )
            for meets, fails in zip(test.meets, test.fails, strict=False):
                if meets.relative == fails.relative:
                    assert (meets.limit >= fails.limit) if more else (meets.limit <= fails.limit)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('section = "6.1"\n', "", "missing key 'section'"),
        ("[scenario]", "colour = 1\n[scenario]", "colour: unknown key"),
        ('">= 90%"', '"90%"', '"90%" is not a bound'),
        ('">= 90%"', '">= 90ms"', "'90ms' is not a fraction"),
        ('"utilization"', '"utilisation"', 'unknown metric "utilisation"'),
        ('"rfc9743"', '"rfc"', "unknown suite 'rfc'"),
        ('"10mbit"', '"10mbps"', "dumbbell.rate"),
        ("[[scenario", '[scenario.tcp]\nconventions = "rfc"\n[[scenario', "are those of --conv"),
    ],
)
def test_a_wrong_experiment_names_the_key(old, new, message):
    assert read_experiment("mine", EXPERIMENT).tests[0].id == "used"
    with pytest.raises(PlanError, match=r"^mine\.toml: ") as caught:
        read_experiment("mine", EXPERIMENT.replace(old, new, 1))
    assert message in str(caught.value)


@pytest.mark.slow
def test_a_controller_equal_to_the_baseline_has_no_concern(out):
    for test in ("high-loss", "blackout", "newcomer"):
        controller = "reno" if test == "newcomer" else "cubic"
        assert card(controller, test, out, quick=True).grade == "meets"


@pytest.mark.slow
def test_bbr_loses_in_short_buffers(out):
    """The failure of BBR version 1 that RFC 9743 section 5.1.3 names."""
    result = card("bbr", "high-loss", out, quick=True)
    assert result.grade == "fails"
    assert result.worst.measured.value.mean > 0.05 > 3 * result.worst.measured.baseline.mean


@pytest.mark.slow
def test_known_faults_are_found(out, monkeypatch):
    """Vegas yields, UDT harms CUBIC, and Scalable TCP is unfair between round-trip times."""
    result = card("vegas", "starves", out, quick=True)
    assert result.grade != "meets"
    assert result.worst.measured.ratio.mean < 0.5
    assert card("udt", "harm-cubic", out, quick=True).grade == "fails"
    shorten("rtt-fairness", "60s", monkeypatch)
    assert card("scalable", "rtt-fairness", out).grade == "fails"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "test"),
    [
        ("IgnoresMarks", "ce-response"),
        ("NeverBacksOff", "backs-off"),
        ("StopsAtTimeout", "blackout"),
        ("Bursts", "bursts"),
    ],
)
def test_a_broken_law_is_recognised(law, test, out, monkeypatch):
    if test == "backs-off":
        shorten(test, "31s", monkeypatch)
    # A few seeds do not decide a fraction of marks near 1.
    quick = test != "ce-response"
    assert card(f"{LAWS}:{law}", test, out, quick=quick).grade == "fails"
    assert card(f"{LAWS}:Sound", test, out, quick=quick).grade in {"meets", "concern"}


@pytest.mark.parametrize("law", ["IgnoresMarks", "NeverBacksOff", "StopsAtTimeout"])
def test_other_broken_laws_do_not_burst(law, out):
    assert card(f"{LAWS}:{law}", "bursts", out, quick=True).grade == "meets"


def test_bursts_have_the_length_of_the_window(out):
    """Of a window of 84 packets more than half arrives at once; the sound law sends pairs."""
    packet = 1500 * 8 / 50e6
    bursts = card(f"{LAWS}:Bursts", "bursts", out, quick=True).worst.measured.value.mean
    assert 42 * packet < bursts < 84 * packet
    assert card(f"{LAWS}:Sound", "bursts", out, quick=True).worst.measured.value.mean < 4 * packet


@pytest.mark.slow
def test_a_card_has_all_forms(out, tmp_path):
    (made,) = cwnd.evaluate(["bbr"], test="high-loss", quick=True, out=out)
    assert made.failed("rfc9743") == ["high-loss"]
    assert made.failed("aqm") == []
    document = json.loads(json.dumps(made.to_json()))
    (section,) = document["sections"]
    assert (section["title"], section["grade"]) == (SECTIONS["5.1.3"], "fails")
    assert "| 5.1.3 Protection against high packet loss | **fails** |" in made.to_markdown()
    assert made.to_svg().startswith("<svg ")
    assert "1 fails" in made.to_svg()
    assert repr(made) == "<Card of 'bbr': 1 fails>"
    made.report(tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert made.results[0].finding in page
    assert made.command(made.results[0]) in page
    (other,) = cwnd.evaluate(["reno"], test="high-loss", quick=True, out=out)
    assert changes_since(document, other) == [
        "controller: bbr before, reno now",
        f"high-loss: fails before, meets now. {other.results[0].finding}",
    ]
    assert changes_since(document, made) == []
    other = replace(made, suite="bbr", quick=False, on="linux")
    assert changes_since({**document, "conventions": []}, other) == [
        *(
            "suite: rfc9743 before, bbr now",
            "quick: yes before, no now",
            "on: sim before, linux now",
        ),
    ]
    assert "bbr.html" in cards_page([made, other], ["bbr.html", "reno.html"])


def undescribed(value, schema, definitions):
    """List the keys of a document that its schema does not describe."""
    schema = definitions.get(schema.get("$ref", "").rpartition("/")[2], schema)
    if isinstance(value, list):
        return [
            key for one in value for key in undescribed(one, schema.get("items", {}), definitions)
        ]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    found = [key for key in value if key not in known]
    return found + [
        key
        for name in value.keys() & known
        for key in undescribed(value[name], known[name], definitions)
    ]


def test_a_card_has_its_schema(out, command):
    """A card with figures, and one with a test that does not apply, are as the schema says."""
    cards = cwnd.evaluate(["reno", "bbr"], test="high-loss", quick=True, out=out)
    cards += cwnd.evaluate(["reno"], test="incast", quick=True, out=out)
    documents = [json.loads(json.dumps(made.to_json())) for made in cards]
    assert documents[2]["tests"][0]["cells"] == []
    schema = json.loads(command("schema", "card").stdout)
    assert schema == card_schema()
    Draft202012Validator.check_schema(schema)
    for document in documents:
        Draft202012Validator(schema).validate(document)
        assert undescribed(document, schema, schema["$defs"]) == []
    documents[0]["tests"][0]["grade"] = "passes"
    del documents[0]["tests"][0]["cells"][0]["value"]["mean"]
    wrong = [error.message for error in Draft202012Validator(schema).iter_errors(documents[0])]
    assert len(wrong) == 2
    assert "'mean' is a required property" in wrong


def test_the_document_of_the_command_has_its_schema(command, out, check_json):
    options = ["--test", "high-loss", "--quick", "--out", str(out), "--json"]
    document = json.loads(command("evaluate", "bbr", "reno", *options).stdout)
    check_json(document, "## `cwnd evaluate --json`")
    schema = json.loads(command("schema", "evaluate").stdout)
    assert schema == evaluation_schema()
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    assert undescribed(document, schema, schema["$defs"]) == []


def test_runs_are_resumed(out, monkeypatch):
    (first,) = cwnd.evaluate(["cubic"], test="blackout", quick=True, out=out)
    runs = len(cwnd.Sweep(out / "runs/blackout").runs)
    monkeypatch.setattr("cwnd._native.simulate", None)
    (second,) = cwnd.evaluate(["cubic"], test="blackout", quick=True, out=out)
    assert len(cwnd.Sweep(out / "runs/blackout").runs) == runs
    assert first.problem == ""
    assert second.to_json() == first.to_json()


@pytest.mark.slow
def test_a_cluster_gives_the_same_cards(tmp_path, monkeypatch):
    """All runs are those of the workers: this process cannot simulate."""
    law = tmp_path / "law.py"
    law.write_text(LAWS.read_text(encoding="utf-8"), encoding="utf-8")
    controllers = ["reno", f"{law}:Sound"]
    here = cwnd.evaluate(controllers, test="bursts", quick=True, out=tmp_path / "here")
    monkeypatch.setattr("cwnd._native.simulate", None)
    with LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", silence_logs=50
    ) as cluster:
        there = cwnd.evaluate(
            controllers,
            test="bursts",
            quick=True,
            out=tmp_path / "there",
            dask=cluster.scheduler_address,
        )
    assert [made.to_json() for made in there] == [made.to_json() for made in here]
    assert [result.problem for made in there for result in made.results] == ["", ""]
    assert [len(result.cells) for made in there for result in made.results] == [1, 1]


def test_runs_of_a_damaged_file_are_made_again(tmp_path):
    (before,) = cwnd.evaluate(["cubic"], test="blackout", quick=True, out=tmp_path)
    (part,) = (tmp_path / "runs" / "blackout" / "runs").iterdir()
    part.write_bytes(b"damaged")
    with pytest.warns(DataSetWarning, match=f"{part.stem}: runs: 7 bytes instead of"):
        (after,) = cwnd.evaluate(["cubic"], test="blackout", quick=True, out=tmp_path)
    assert after.to_json() == before.to_json()


def test_wrong_arguments(out):
    with pytest.raises(ArgumentError, match="not one of rfc9743"):
        cwnd.evaluate(["reno"], suite="rfc", out=out)
    with pytest.raises(ArgumentError, match="'none' is not a test"):
        cwnd.evaluate(["reno"], test="none", out=out)
    with pytest.raises(ArgumentError, match="quick: the tests on linux have no quick evaluation"):
        cwnd.evaluate(["kernel:reno"], quick=True, on="linux", out=out)
    with pytest.raises(ArgumentError, match="at least one"):
        cwnd.evaluate([], out=out)


def test_the_command_requires(command, out):
    """--require exits with 1 and names the tests; --against lists the changes."""
    options = ["--test", "high-loss", "--quick", "--out", str(out)]
    (out / "reno-high-loss-quick.svg").unlink(missing_ok=True)
    good = command("evaluate", "reno", *options, "--require", "rfc9743")
    assert good.returncode == 0, good.stderr
    assert (out / "reno-high-loss-quick.svg").is_file()
    bad = command(
        *("evaluate", "bbr", *options, "--require", "rfc9743"),
        *("--against", str(out / "reno-high-loss-quick.json")),
    )
    assert bad.returncode == 1
    assert "cwnd: bbr fails high-loss\n" in bad.stderr
    assert "high-loss: meets before, fails now." in bad.stdout
    wrong = command("evaluate", "reno", *options, "--against", str(out / "reno-high-loss-quick.md"))
    assert wrong.returncode == 2
    assert (
        wrong.stderr
        == f"cwnd: --against: {out}/reno-high-loss-quick.md is not a card of `cwnd evaluate`\n"
    )
