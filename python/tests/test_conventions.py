"""The TCP conventions of networks built without a file, and their names in every output."""

from __future__ import annotations

import json

import pytest

import cwnd
from cwnd._cli import run as command_line
from cwnd._cli.tables import print_agreement, print_reproduction
from cwnd._experiments.experiment import experiments
from cwnd._papers.exhibit import Lab
from cwnd._papers.grades import RATINGS
from cwnd._papers.report import write_report
from cwnd._papers.text import ExhibitText
from cwnd._runs.conventions import CONVENTIONS, NAMES
from cwnd._runs.defaults import DUMBBELL
from cwnd._runs.scenario_keys import schema
from cwnd._show.notebook import comparison_html, result_html
from cwnd._show.report.agree import agree_page
from cwnd._show.report.compare import compare_page
from cwnd._show.report.evaluate import card_page, cards_page
from cwnd._show.report.run import run_page
from cwnd._show.report.sweep import sweep_page
from cwnd._sweeps.reading import read_plan
from cwnd._tasks.agreement.outcome import Agreement
from cwnd._tasks.evaluation.card import changes_since
from cwnd.errors import ArgumentError

SMALL = {"rate": "5mbit", "rtt": "40ms", "time": "4s", "repeat": 2, "flows": 2}
ARGUMENTS = ["--rate", "5mbit", "--rtt", "40ms", "--time", "4s", "--repeat", "2", "--flows", "2"]

FILE = """
duration = "4s"
[dumbbell]
rate = "5mbit"
delay = "20ms"
queue = "1bdp"
[[flow]]
controller = "reno"
count = 2
"""


@pytest.fixture(name="file")
def file_without_conventions(tmp_path):
    path = tmp_path / "net.toml"
    path.write_text(FILE)
    return path


def has_fact(page, names):
    return f"<dt>TCP conventions</dt><dd>{names}</dd>" in page


def test_the_names_are_those_of_the_schema():
    assert [each["const"] for each in schema()["$defs"]["Conventions"]["oneOf"]] == [*NAMES]
    assert CONVENTIONS == DUMBBELL["conventions"] == "linux"
    for name in NAMES:
        scenario = cwnd.Scenario.dumbbell(conventions=name).add_flow("reno")
        assert scenario.validate()["conventions"] == [name]


def test_a_network_without_a_file_has_linux_conventions(file, tmp_path):
    assert cwnd.compare(["reno"], **SMALL).network["conventions"] == ["linux"]
    scenario = cwnd.Scenario.dumbbell().add_flow("reno")
    assert scenario.validate()["conventions"] == ["linux"]
    sweep = cwnd.sweep(
        {"base": {"time": "4s", "flows": 2}, "controllers": ["reno"]}, out=tmp_path / "out"
    )
    assert sweep.conventions == ["linux"]
    # A file has those of the RFCs.
    assert cwnd.Scenario.from_toml(file).validate()["conventions"] == ["rfc"]
    assert cwnd.compare(network=file, repeat=2).network["conventions"] == ["rfc"]


def test_conventions_change_the_network():
    by = {name: cwnd.compare(["reno"], **SMALL, conventions=name) for name in ("linux", "ns2")}
    packets = {name: made.network["packet_bytes"] for name, made in by.items()}
    assert packets == {"linux": 1448, "ns2": 1000}
    for name, made in by.items():
        assert f"--conventions {name} " in made.rerun
        assert made.to_json()["network"]["conventions"] == [name]


def test_wrong_conventions_are_one_line(file, capsys):
    for wrong in ("cubic", 3):
        with pytest.raises(ArgumentError, match=r"^conventions: .* is not one of rfc, "):
            cwnd.compare(["reno"], **SMALL, conventions=wrong)
    assert command_line(["compare", "reno", "--conventions", "windows"]) == 2
    assert "'windows' is not one of rfc, " in capsys.readouterr().err
    assert command_line(["evaluate", "reno", "--conventions", "Linux"]) == 2
    assert "'Linux' is not one of rfc, " in (problem := capsys.readouterr().err)
    assert problem.endswith(": did you mean linux?\n")
    twice = ["compare", "reno", *ARGUMENTS, "--set", "tcp.conventions=ns2"]
    assert command_line([*twice, "--conventions", "rfc"]) == 2
    assert "--conventions: tcp.conventions is among the values too" in capsys.readouterr().err
    assert command_line([*twice, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["network"]["conventions"] == ["ns2"]
    assert command_line(["run", "--help"]) == 0
    assert "--set tcp.conventions=linux" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(ArgumentError, match=r"--set tcp\.conventions=linux"):
        cwnd.compare(network=file, conventions="linux")


def test_help_lists_the_conventions(capsys):
    assert command_line(["compare", "--help"]) == 0
    text = capsys.readouterr().out
    assert "|".join(NAMES) in text
    assert "[default: linux]" in text


def test_compare_names_the_conventions(capsys):
    comparison = cwnd.compare(["simd"], **SMALL, conventions="ns2")
    assert has_fact(compare_page(comparison), "ns2")
    assert "TCP conventions: ns2" in str(comparison_html(comparison))
    command = ["compare", "simd", *ARGUMENTS, "--conventions", "ns2"]
    assert command_line(command) == 0
    assert "TCP conventions: ns2;" in capsys.readouterr().out
    assert command_line([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["network"]["conventions"] == ["ns2"]
    # A controller of the kernel has those of Linux.
    mixed = cwnd.compare(["kernel:cubic"], **SMALL, conventions="ns2")
    assert mixed.network["conventions"] == ["ns2", "linux"]
    assert has_fact(compare_page(mixed), "ns2, linux")


def test_run_names_the_conventions(file, capsys):
    result = cwnd.run(file)
    assert result.to_json()["conventions"] == ["rfc"]
    assert has_fact(run_page(result), "rfc")
    assert "TCP conventions: rfc" in str(result_html(result))
    own = ["run", str(file), "--set", 'flow[0].tcp={conventions="linux"}']
    assert command_line(own) == 0
    assert "TCP conventions: linux;" in capsys.readouterr().out
    # A network without TCP names none.
    udt = cwnd.run(file, values={"flow[0].protocol": "udt"})
    assert udt.to_json()["conventions"] == []
    assert "TCP conventions" not in run_page(udt)


def test_agree_names_the_conventions(file, capsys):
    runs = [cwnd.run(file, seed) for seed in (1, 2)]
    agreement = Agreement("two", {"sim": runs, "udt": runs}, "")
    print_agreement(agreement)
    assert "; TCP conventions: rfc" in capsys.readouterr().out
    assert agreement.to_json()["conventions"] == ["rfc"]
    assert has_fact(agree_page(agreement), "rfc")


def test_a_sweep_names_the_conventions(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'controllers = ["reno"]\n[base]\ntime = "4s"\nflows = 2\n'
        '[axes]\nconventions = ["rfc", "ns2"]\n'
    )
    out = tmp_path / "out"
    assert command_line(["sweep", str(plan), "--out", str(out)]) == 0
    assert "; TCP conventions: ns2, rfc\n" in capsys.readouterr().out
    sweep = cwnd.Sweep(out)
    assert sorted(sweep.runs["tcp_conventions"]) == ["ns2", "rfc"]
    assert list(sweep.runs["tcp_conventions"]) == list(sweep.runs["conventions"])
    assert sweep.to_json()["conventions"] == ["ns2", "rfc"]
    assert has_fact(sweep_page(out), "ns2, rfc")


def test_a_plan_with_wrong_conventions_is_refused():
    with pytest.raises(cwnd.errors.PlanError, match="conventions: 'vms' is not one of rfc"):
        read_plan({"base": {"conventions": "vms"}, "controllers": ["reno"]})


def goodput(result):
    return result.metrics["goodput_bps"]


def test_an_exhibit_names_the_conventions_of_its_scenarios():
    lab = Lab()
    lab.begin(ExhibitText(""), 1)
    for names in (("ns2", "linux"), ("linux",)):
        cases = {
            name: cwnd.Scenario.dumbbell(time="1s", conventions=name).add_flow("reno")
            for name in names
        }
        lab.run(cases, goodput)
    assert lab.findings.conventions == ["ns2", "linux"]


def test_a_reproduction_names_the_conventions_of_each_exhibit(tmp_path, capsys):
    scenario = {"toml": None, "varied": "", "inferred": [], "conventions": ["ns2", "rfc5681"]}
    exhibit = {"id": "fig-1", "title": "Shares", "new": False, "seconds": 1.0, "seeds": 5}
    exhibit |= {"scenario": scenario, "claims": [], "trials": [], "figures": [], "tables": []}
    paper = {"paper": "simd", "title": "SIMD", "citation": "", "headlines": [], "parts": []}
    counts = dict.fromkeys(RATINGS, 0)
    document = {"papers": [paper | {"exhibits": [exhibit]}], "summary": counts, "checks": counts}
    write_report(document, tmp_path, quick=True)
    assert "TCP conventions: ns2, rfc5681." in (tmp_path / "index.html").read_text()
    assert "| simd | Shares | ns2, rfc5681 |" in (tmp_path / "summary.md").read_text()
    print_reproduction(document)
    assert "ns2, rfc5681" in capsys.readouterr().out


EVALUATE = {"test": "ce-response", "quick": True}


def test_evaluate_has_one_default_and_others_by_name(tmp_path):
    assert {each.conventions for each in experiments()} == {CONVENTIONS}
    for each in experiments():
        assert each.scenario.validate()["conventions"] == [CONVENTIONS], each.name
    (own,) = cwnd.evaluate(["reno"], **EVALUATE, out=tmp_path)
    (other,) = cwnd.evaluate(["reno"], **EVALUATE, conventions="rfc5681", out=tmp_path)
    for card, name, folder in ((own, "linux", "marks"), (other, "rfc5681", "marks-rfc5681")):
        assert card.to_json()["conventions"] == [name]
        assert cwnd.Sweep(tmp_path / "runs" / folder).conventions == [name]
        assert has_fact(card_page(card), name)
        assert f"TCP conventions: {name}." in card.to_markdown()
        assert f"; TCP conventions: {name}</title>" in card.to_svg()
        assert f"TCP conventions: {name}." in cards_page([card, card], ["a.html", "b.html"])
        assert ("--conventions" in card.command(card.results[0])) == (name != CONVENTIONS)
    assert "conventions rfc5681" in other.title
    assert "meets" not in other.badge[1]
    (change, *_) = changes_since(own.to_json(), other)
    assert change == "TCP conventions: linux before, rfc5681 now"


def test_the_command_evaluate_names_the_conventions(tmp_path, capsys):
    words = ["evaluate", "reno", "--test", "ce-response", "--quick", "--out", str(tmp_path)]
    words += ["--conventions", "rfc"]
    assert command_line(words) == 0
    assert "TCP conventions: rfc." in capsys.readouterr().out
    assert (tmp_path / "reno-rfc-ce-response-quick.json").is_file()
    single = ["evaluate", "reno", "--test", "ce-response", "--scenario", "--conventions", "ns2"]
    assert command_line(single) == 0
    assert 'conventions = "ns2"' in capsys.readouterr().out


def test_wrong_conventions_of_an_evaluation(tmp_path):
    for controller, options, message in (
        ("reno", {"conventions": "vms"}, "^conventions: 'vms' is not one of rfc, "),
        ("kernel:cubic", {"conventions": "rfc"}, "^conventions: kernel:cubic has those of Linux"),
        ("reno", {"conventions": "rfc", "on": "linux"}, "^conventions: the kernel's TCP"),
    ):
        with pytest.raises(ArgumentError, match=message):
            cwnd.evaluate([controller], **EVALUATE, **options, out=tmp_path)
