"""QUIC flows in runs, comparisons and sweeps."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import cwnd
from cwnd import ScenarioError, SpecError, _native
from cwnd._cli import run as command_line
from cwnd._runs.text import caveats

NETWORK = """
duration = "4s"
warmup = "1s"
dumbbell = { rate = "8mbit", delay = "10ms", queue = "1bdp" }
"""


class Halves:
    """AIMD(1, 1/2)."""

    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w / 2


@pytest.fixture
def network(tmp_path):
    """Return what makes a scenario with QUIC flows of these keys."""

    def write(*flows: str) -> cwnd.Scenario:
        path = tmp_path / "quic.toml"
        tables = (f'[[flow]]\nprotocol = "quic"\n{flow}\n' for flow in flows)
        path.write_text(NETWORK + "".join(tables))
        return cwnd.Scenario.from_toml(path)

    return write


def test_flows_of_both_stacks_share_a_link(network):
    result = cwnd.run(network('controller = "own:cubic"', 'stack = "quinn"\ncontroller = "cubic"'))
    own, ours = result.record["flows"]
    assert [own["kind"], own["controller"], own["name"]] == ["quic", "own:cubic", "own-cubic"]
    assert [ours["kind"], ours["controller"], ours["name"]] == ["quic", "cubic", "cubic"]
    assert own["closed"] is ours["closed"] is None
    assert result.total_goodput_bps(result.measured_flows) > 7e6
    assert min(result.goodputs_bps(result.measured_flows)) > 2e6


def test_laws_in_files_and_of_python_control_a_stack(network, tmp_path):
    law = tmp_path / "halves.law"
    law.write_text(
        'law halves "AIMD(1, 1/2)"\non grow:\n    return w + acked / w\non cut:\n    return w / 2\n'
    )
    scenario = network('controller = "own:reno"')
    bytes_delivered = [
        cwnd.run(scenario.with_controllers(each)).record["flows"][0]["bytes_delivered"]
        for each in ("own:reno", law, Halves, "reno")
    ]
    assert bytes_delivered[1] == bytes_delivered[2]
    assert min(bytes_delivered) > 0.97 * max(bytes_delivered)


def test_a_closed_connection_is_told(network):
    scenario = network('controller = "own:cubic"\nname = "a"\nquic = { idle_timeout = "500ms" }')
    outage = {"dumbbell.blackout": [{"at": "2s", "for": "1s"}]}
    result = cwnd.run(scenario, values=outage)
    closed = result.record["flows"][0]["closed"]
    assert closed is not None
    assert 2.5 < closed["at_s"] < 3.1
    assert closed["reason"].endswith(": timed out")
    assert result.to_json()["flows"][0]["closed"] == closed
    told = [line for line in caveats([result]) if "closed" in line]
    assert len(told) == 1
    assert told[0].startswith("a: the connection was closed at ")
    assert told[0].endswith(closed["reason"])
    two = cwnd.run_repeated(scenario, 2, values=outage)
    assert any("in 2 of 2 runs" in line for line in caveats(two.results))
    assert two.to_json()["flows"][0]["closed"]["reason"] == closed["reason"]


def test_a_comparison_and_a_sweep_keep_the_protocol(network, tmp_path):
    scenario = network('controller = "own:cubic"\ncount = 2')
    comparison = cwnd.compare(["own:cubic"], reference="own:reno", network=scenario, repeat=2)
    assert "own:reno" in str(comparison)
    plan = {"base": str(tmp_path / "quic.toml"), "controllers": ["own:cubic", "cubic"], "repeat": 2}
    swept = cwnd.sweep(plan, out=tmp_path / "out")
    assert set(swept.runs["controller"]) == {"own:cubic", "cubic"}
    assert (swept.runs["goodput_bps"] > 7e6).all()


def test_another_process_and_several_threads_have_the_same_records(network, tmp_path):
    scenario = network(
        'controller = "own:cubic"', 'stack = "quinn"\ncontroller = "bbr3"\ncount = 2'
    )
    here = [run.to_json()["flows"] for run in cwnd.run_repeated(scenario, 3).results]
    program = (
        "import json, sys, cwnd\n"
        "runs = [cwnd.run(sys.argv[1], seed=seed) for seed in (1, 2, 3)]\n"
        "print(json.dumps([run.to_json()['flows'] for run in runs]))\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "quic.toml")]
    there = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert json.loads(there) == json.loads(json.dumps(here))


@pytest.mark.parametrize("backend", ["udt", "linux"])
def test_real_time_refuses_quic(network, backend):
    with pytest.raises(ScenarioError, match="QUIC runs on sim and quic only"):
        cwnd.run(network('controller = "cubic"'), on=backend)


def test_real_quic_refuses_a_scenario_without_quic(capsys):
    assert command_line(["run", "dumbbell", "--on", "quic"]) == 2
    assert 'needs a flow with `protocol = "quic"`' in capsys.readouterr().err


def test_a_build_without_the_stacks_says_so(network):
    scenario = network('controller = "cubic"').to_json()
    problem = ""
    try:
        _native.check_real(scenario, "quic")
    except ScenarioError as refusal:
        problem = str(refusal)
    if not problem:
        pytest.skip("this build has the stacks")
    assert problem == "flow cubic: this build has no QUIC stacks: `make build` includes them"


def test_a_controller_that_no_stack_has_is_refused(network):
    with pytest.raises(SpecError, match="the stacks have own:bbr, own:bbr3, own:cubic, own:reno"):
        network('controller = "own:cubic"').with_controllers("own:vegas")
    with pytest.raises(ScenarioError, match="own:cubic, own:reno, own:bbr3"):
        network('controller = "own:bbr"')
