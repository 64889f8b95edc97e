"""The TCP conventions of networks built without a file, and their names in every output."""

from __future__ import annotations

import json

import pytest

import cwnd
from cwnd.agreement.outcome import Agreement
from cwnd.cli import run as command_line
from cwnd.cli.tables import print_agreement
from cwnd.conventions import CONVENTIONS, conventions_names
from cwnd.errors import ArgumentError
from cwnd.networks import DUMBBELL
from cwnd.notebook import comparison_html, result_html
from cwnd.papers.exhibit import Lab
from cwnd.papers.text import ExhibitText
from cwnd.report.agree import agree_page
from cwnd.report.compare import compare_page
from cwnd.report.run import run_page
from cwnd.report.sweep import sweep_page
from cwnd.sweeps.reading import read_plan

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
    assert {"linux", "rfc", "ns2", "ns2-2001"} <= set(conventions_names())
    assert CONVENTIONS == DUMBBELL["conventions"] == "linux"
    for name in conventions_names():
        scenario = cwnd.Scenario.dumbbell(conventions=name.upper()).add_flow("reno")
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
    with pytest.raises(ArgumentError, match=r"--set tcp\.conventions=linux"):
        cwnd.compare(network=file, conventions="linux")


def test_help_lists_the_conventions(capsys):
    assert command_line(["compare", "--help"]) == 0
    text = capsys.readouterr().out
    assert "|".join(conventions_names()) in text
    assert "[default: linux]" in text


def test_compare_names_the_conventions(capsys):
    comparison = cwnd.compare(["simd"], **SMALL, conventions="ns2")
    assert has_fact(compare_page(comparison), "ns2")
    assert "TCP conventions: ns2" in str(comparison_html(comparison))
    command = ["compare", "simd", *ARGUMENTS, "--conventions", "NS2"]
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
    assert "TCP conventions: rfc, ns2" in capsys.readouterr().out
    sweep = cwnd.Sweep(out)
    assert list(sweep.runs["tcp_conventions"]) == list(sweep.runs["conventions"]) == ["rfc", "ns2"]
    assert sweep.to_json()["conventions"] == ["rfc", "ns2"]
    assert has_fact(sweep_page(out), "rfc, ns2")


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
