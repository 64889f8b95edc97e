"""Laws in files: read, checked, formatted, and run wherever a controller has a name."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import cwnd
from cwnd import _native
from cwnd._cli import run
from cwnd._controllers.registry import describe, describe_law
from cwnd._sweeps.reading import read_plan
from cwnd.controller import read_controller
from cwnd.errors import ArgumentError, ControllerWarning, DataSetWarning, PlanError
from cwnd.model import behaviour
from cwnd.model import law as law_models
from cwnd.model.fluid import droptail_equilibrium

ROOT = Path(__file__).parents[2]
OWN = """law own "own"

parameter kept = 1/2 in (0, 1) "the fraction that a loss leaves"

on grow:
    return w + acked / w

on cut:
    return kept * w
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with laws, which is the work directory."""
    (tmp_path / "own.law").write_text(OWN)
    for name in ("simd", "aira", "daimd", "vegas"):
        (text,) = (ROOT / "crates/cwnd").glob(f"*/*/{name}.law")
        shutil.copy(text, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def figures(controller, **options):
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="8s", **options)
    scenario.add_flow(controller)
    scenario.add_flow("reno")
    flows = cwnd.run(scenario).to_json()["flows"]
    return [
        {key: value for key, value in flow.items() if key not in {"controller", "name"}}
        for flow in flows
    ]


@pytest.mark.parametrize(
    ("of_file", "own"),
    [
        ("simd.law", "simd"),
        ("simd.law(beta=1/4, start=hystart)", "simd(beta=1/4, start=hystart)"),
        ("aira.law(mail=off)", "aira(mail=off)"),
        ("vegas.law", "vegas"),
    ],
)
def test_a_run_is_that_of_the_same_law_of_the_registry(folder, of_file, own):
    assert figures(of_file) == figures(own)


def test_a_law_for_the_rate_runs_over_udt(folder):
    (flow, _) = figures("daimd.law(syn=20ms)")
    assert flow["goodput_bps"] > 1e6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            OWN.replace("kept * w", "kpt * w"),
            "own.law:9:12: kpt is not known here: did you mean kept?",
        ),
        (OWN.replace("kept * w", "kept * rtt"), "own.law:9:19: rtt may be none here: "),
        (
            OWN.replace("law own", "lore own"),
            'own.law:1:1: expected "law" or "rate law", found lore',
        ),
        ("", 'own.law:1:1: expected "law" or "rate law", found the end of the text'),
        ("law own", "own.law:1:8: expected its title in double quotes, found the end of the line"),
        ("#" * 70_000, "own.law:1:1: a law has at most 65536 bytes, this text 70000"),
    ],
)
def test_a_fault_is_one_line_with_its_place(folder, capsys, text, message):
    (folder / "own.law").write_text(text)
    assert run(["compare", "own.law", "reno"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"cwnd: {message}")
    assert err.count("\n") == 1


def test_what_is_no_law_is_said_in_one_line(folder, capsys):
    (folder / "bytes.law").write_bytes(b"law \xff")
    (folder / "folder.law").mkdir()
    os.mkfifo(folder / "pipe.law")
    for name, message in [
        ("none.law", "none.law: No such file or directory"),
        ("bytes.law", "bytes.law: not a text file in UTF-8"),
        ("folder.law", "folder.law: Is a directory"),
        ("pipe.law", "pipe.law: not a regular file"),
        ("own.law (kept=2)", 'own.law: kept cannot be "2": it is a number with 0 < kept < 1'),
        ("own.law(kept=2)", 'own.law: kept cannot be "2": it is a number with 0 < kept < 1'),
        ("own.law(kpt=1/2)", 'own.law has no parameter "kpt", did you mean kept? '),
        ("a(1).law", "a(1).law: the name of a file with a law has no bracket"),
        ("OWN.LAW(kept=1/4)", "OWN.LAW: the name of a file with a law ends in .law"),
    ]:
        assert run(["compare", name, "reno"]) == 2
        assert capsys.readouterr().err.startswith(f"cwnd: {message}")


def test_a_warning_is_given_once(folder):
    (folder / "own.law").write_text(OWN.replace("return kept * w", "return w / 2"))
    with pytest.warns(
        ControllerWarning, match="^own.law:3:11: warning: the parameter kept is never used"
    ):
        read_controller("own.law")
    # Warnings are errors in tests.
    read_controller("own.law")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is not Linux")
def test_the_name_of_a_loaded_law_is_without_warnings(folder):
    (folder / "own.law").write_text(OWN.replace("kept * w", "w / 2"))
    with pytest.raises(cwnd.kernel.KernelError):
        cwnd.kernel.find("own.law(kept=1/4)")


def test_the_file_is_read_again(folder):
    before = figures("own.law")
    (folder / "own.law").write_text(OWN.replace("1/2", "1/4"))
    assert figures("own.law") != before


def test_a_scenario_names_a_law_beside_it(folder, monkeypatch):
    networks = folder / "networks"
    networks.mkdir()
    (folder / "own.law").rename(networks / "beside.law")
    (networks / "net.toml").write_text(
        'duration = "3s"\n[dumbbell]\nrate = "10mbit"\ndelay = "20ms"\n'
        '[[flow]]\ncontroller = "beside.law(kept=3/4)"\n'
    )
    result = cwnd.run(cwnd.Scenario.from_toml("networks/net.toml"))
    assert result.to_json()["flows"][0]["controller"] == "networks/beside.law(kept=3/4)"
    monkeypatch.chdir(networks)
    result = cwnd.run(cwnd.Scenario.from_toml("net.toml"))
    assert result.to_json()["flows"][0]["controller"] == "beside.law(kept=3/4)"


PLAN = """controllers = ["own.law", "reno"]
[base]
rate = "10mbit"
rtt = "20ms"
time = "2s"
[axes]
queue = ["20", "40"]
"""


def test_a_plan_names_a_law_beside_it_and_runs_belong_to_its_text(folder, monkeypatch, capsys):
    plans = folder / "plans"
    plans.mkdir()
    (folder / "own.law").rename(plans / "own.law")
    (plans / "plan.toml").write_text(PLAN)
    assert run(["sweep", "plans/plan.toml", "--out", "out"]) == 0
    monkeypatch.chdir(plans)
    (plans / "own.law").write_text(OWN.replace('"own"', '"another title"') + "# a comment\n")
    capsys.readouterr()
    assert run(["sweep", "plan.toml", "--out", "../out"]) == 0
    assert "4 of them before" in capsys.readouterr().out
    (plans / "own.law").write_text(OWN.replace("w / w", "w / w / 2").replace("acked", "2 * acked"))
    assert run(["sweep", "plan.toml", "--out", "../out"]) == 2
    assert "runs of own.law with different code" in capsys.readouterr().err


def test_a_sweep_holds_the_text_that_its_plan_had(folder):
    (folder / "plan.toml").write_text(PLAN)
    plan = read_plan(folder / "plan.toml")
    runs = [plan.scenario(plan.run(number)) for number in (0, 1)]
    (folder / "own.law").write_text("law broken")
    again = plan.scenario(plan.run(0))
    assert again.to_dict() == runs[0].to_dict()
    with pytest.raises(PlanError, match=r"controllers: own\.law:1:11: expected its title"):
        read_plan(folder / "plan.toml")


def test_an_evaluation_makes_the_runs_of_an_edited_law_again(folder):
    def grade():
        (card,) = cwnd.evaluate(["own.law"], quick=True, test="blackout", out="cards")
        assert card.law_hash == _native.hash_law("own.law", (folder / "own.law").read_text())
        return card.results[0].cells

    first = grade()
    assert grade() == first
    (folder / "own.law").write_text(OWN.replace("acked / w", "acked / w / 50"))
    with pytest.warns(DataSetWarning, match=r"own\.law has changed: its runs are made again"):
        assert grade() != first


def test_a_comparison_reads_the_file_before_its_runs(folder):
    def remove(_):
        (folder / "own.law").unlink(missing_ok=True)

    options = {"rate": "10mbit", "rtt": "40ms", "time": "3s", "repeat": 2, "progress": remove}
    comparison = cwnd.compare(["own.law", "reno"], **options)
    assert [verdict.controller for verdict in comparison.verdicts] == ["own.law", "reno"]


def test_a_law_is_no_value_of_an_axis(folder):
    (folder / "plan.toml").write_text(
        PLAN.replace('queue = ["20", "40"]', '"flow[0].controller" = ["own.law", "reno"]')
    )
    with pytest.raises(PlanError, match=r"a controller in a file must be in `controllers`"):
        read_plan(folder / "plan.toml")
    (folder / "plan.toml").write_text(
        '[base]\nduration = "2s"\n[base.dumbbell]\nrate = "10mbit"\ndelay = "5ms"\n'
        '[[base.flow]]\ncontroller = "reno"\n[axes]\n"flow[0]" = [{ controller = "own.law" }]\n'
    )
    with pytest.raises(PlanError, match=r"a controller in a file must be in `controllers`"):
        read_plan(folder / "plan.toml")


def test_another_process_gets_the_text_with_the_scenario(folder):
    (folder / "plan.toml").write_text(PLAN)
    plan = read_plan(folder / "plan.toml")
    assert plan.laws == {"own.law": OWN}
    scenario = plan.scenario(plan.run(0))
    expected = cwnd.run(scenario).to_json()["flows"][0]["goodput_bps"]
    packed = pickle.dumps(scenario)
    (folder / "own.law").unlink()
    program = (
        "import pickle, sys, cwnd; scenario = pickle.load(sys.stdin.buffer);"
        "print(cwnd.run(scenario).to_json()['flows'][0]['goodput_bps'])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], input=packed, capture_output=True, check=True
    )
    assert float(found.stdout) == expected


def test_a_scenario_keeps_the_text_that_it_was_made_with(folder):
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="20ms", time="5s").add_flow("own.law")
    goodput = cwnd.run(scenario).to_json()["flows"][0]["goodput_bps"]
    (folder / "own.law").write_text(OWN.replace("kept * w", "kept * w / 8"))
    assert cwnd.run(scenario).to_json()["flows"][0]["goodput_bps"] == goodput
    changed = scenario.with_values({"dumbbell.rate": "10mbit"})
    assert cwnd.run(changed).to_json()["flows"][0]["goodput_bps"] == goodput
    scenario.add_flow("own.law")
    assert cwnd.run(scenario).to_json()["flows"][0]["goodput_bps"] < goodput


def test_sweeps_side_by_side_have_their_own_laws_of_one_name(folder):
    def home(name, kept):
        made = folder / name
        made.mkdir()
        (made / "own.law").write_text(OWN.replace("1/2", kept))
        (made / "plan.toml").write_text("repeat = 3\n" + PLAN)
        return made

    def rows(sweep):
        return sweep.runs.sort_values("key")["goodput_bps"].tolist()

    homes = [home("a", "1/2"), home("b", "1/100")]
    alone = [rows(cwnd.sweep(home / "plan.toml", out=home / "alone")) for home in homes]
    assert alone[0] != alone[1]
    with ThreadPoolExecutor() as pool:
        sweeps = [
            pool.submit(cwnd.sweep, home / "plan.toml", out=home / "beside") for home in homes
        ]
        assert [rows(sweep.result()) for sweep in sweeps] == alone


def test_a_law_in_a_plans_network_is_beside_the_plan(folder, monkeypatch):
    plans = folder / "plans"
    plans.mkdir()
    (folder / "own.law").rename(plans / "own.law")
    (plans / "plan.toml").write_text(
        'repeat = 1\n[base]\nduration = "2s"\n[base.dumbbell]\nrate = "10mbit"\ndelay = "5ms"\n'
        '[[base.flow]]\ncontroller = "own.law"\n[axes]\n"dumbbell.queue" = ["20", "40"]\n'
    )
    assert cwnd.sweep("plans/plan.toml", out="one").failed == 0
    monkeypatch.chdir(plans)
    assert cwnd.sweep("plan.toml", out="../two").failed == 0


def test_models_step_a_law_of_a_file(folder):
    read_controller("simd.law")
    assert law_models.cut("simd.law", 40) == law_models.cut("simd", 40)


def test_the_command_model_shows_a_law_in_three_models(folder, capsys, monkeypatch):
    monkeypatch.setattr(behaviour, "LOSS_RATES", (1e-3, 1e-2))
    shown = []
    for name in ("simd", "simd.law"):
        assert run(["model", name, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found.pop("controller") == name
        shown.append(found)
    assert shown[0] == shown[1]
    # Between losses at 100 packets: to 93.75, and by Eq. 2 up again.
    assert shown[0]["loss_to_loss"][1]["after"] == 93.75
    assert shown[0]["reasons"] == []
    assert run(["model", "aira.law"]) == 0
    out = capsys.readouterr().out
    assert "In step, two flows" in out
    assert "not shown: alone: aira.law has more memory" in out
    assert run(["model", "none.law"]) == 2
    assert capsys.readouterr().err == "cwnd: none.law: No such file or directory\n"
    assert run(["model", "simdd"]) == 2
    assert "there is no 'simdd'; did you mean simd" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("grow", "cut", "words"),
    [
        ("sqrt(-w)", "w / 2", "they do not use it within the model's limit"),
        (
            "w + acked / w",
            "w",
            "31 rounds to use it; they do not share it within the model's limit",
        ),
        ("1 / 0", "1 / 0", "1 rounds to use it, 0 more to share it (0 losses)"),
    ],
)
def test_the_command_model_of_a_law_that_does_not_converge(
    folder, capsys, monkeypatch, grow, cut, words
):
    # The models need time as the inverse of the loss rate, and as the limit of rounds.
    monkeypatch.setattr(behaviour, "LOSS_RATES", (1e-2,))
    monkeypatch.setattr(behaviour, "convergence", partial(behaviour.convergence, limit=10_000))
    text = OWN.replace("w + acked / w", grow).replace("kept * w", f"kept * 0 + {cut}")
    (folder / "own.law").write_text(text)
    assert run(["model", "own.law"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"In step, two flows from 10 and 30 packets on a link of 100: {words}" in out


def test_the_models_have_no_delivery_rate_samples(folder, capsys):
    observe = "on observe:\n    seen = acked.delivery.rate or seen\n"
    state = 'state seen = 0 /s "the delivery rate"\n'
    (folder / "own.law").write_text(f"{OWN}{state}{observe}")
    told = "own.law uses delivery-rate samples, which the models do not have"
    assert run(["model", "own.law"]) == 2
    assert capsys.readouterr() == ("", f"cwnd: {told}\n")
    with pytest.raises(cwnd.SpecError, match=f"^{told}$"):
        law_models.cut("own.law", 40)


def test_the_model_of_a_rate_law_tells_it_of_a_loss(folder):
    (folder / "lost.law").write_text(
        """rate law lost "the rate falls by the packets that were lost"
state last = 0 "packets lost"
on clock:
    return timer
on interval:
    return 10 ms
on start:
    return w / (rtt or 1 s)
on losses:
    last = lost.packets
on tick:
    return rate
on cut:
    return rate - last * 100 /s
"""
    )
    # 100 packets in 0.1 s are 1000 packets/s.
    assert law_models.cut("lost.law", 100) == pytest.approx(90)


def test_a_description_is_that_of_the_text(folder, capsys):
    assert run(["algorithms", "own.law", "--json"]) == 0
    (described,) = json.loads(capsys.readouterr().out)["algorithms"]
    assert described["title"] == "own"
    assert described["equations"] == [
        "on grow:",
        "    return w + acked / w",
        "on cut:",
        "    return kept * w",
    ]
    assert [each["name"] for each in described["parameters"]] == ["kept", "start", "pacing"]
    assert [each["hook"] for each in described["mathml"]] == ["grow", "cut"]
    assert described["mathml"][0]["mathml"].startswith('<math display="block">')
    # The text has no source.
    assert run(["algorithms", "own.law"]) == 0
    assert "\nA law for the window.\n" in capsys.readouterr().out


TIMED = """law timed "timed"
parameter most = 20 ms in [100 us, 1 s] "largest delay"
parameter gain = 2.5 /s in (0 /s, 1e9 /s] "gain"
state peak = 0 s "largest round-trip time"

on grow:
    peak = max(peak, rtt or 0 s)
    return w + acked / w if peak < most else w + gain * most * acked / w

on cut:
    return w / 2
"""


def test_a_description_has_units_states_and_the_hash(folder, capsys):
    (folder / "timed.law").write_text(TIMED)
    assert run(["algorithms", "timed.law", "--json"]) == 0
    (described,) = json.loads(capsys.readouterr().out)["algorithms"]
    assert described["mathml"][0]["mathml"] in (describe("timed.law")._repr_html_() or "")
    values = [(each["default"], each["range"]) for each in described["parameters"][:2]]
    assert values == [("20ms", "from 100us to 1s"), ("2.5/s", "above 0 to 1000000000/s")]
    assert described["states"] == [{"name": "peak", "meaning": "largest round-trip time"}]
    assert described["hash"] == _native.hash_law("timed.law", TIMED)
    assert run(["algorithms", "timed.law"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for words in (
        ["most", "20ms", "from 100us to 1s", "largest delay"],
        ["peak", "largest round-trip time"],
        [f"hash {described['hash']}"],
    ):
        assert any(re.split(r"  +", line.rstrip()) == words for line in lines), words


def test_a_default_is_as_in_a_specification(folder):
    (folder / "timed.law").write_text(TIMED)
    for algorithm in [*cwnd.algorithms(), describe("timed.law")]:
        for parameter in algorithm.parameters:
            if parameter.default:
                given = f"{algorithm.name}({parameter.name}={parameter.default})"
                assert read_controller(given)[0] == algorithm.name


def test_a_page_has_the_text_that_its_runs_had(folder):
    result = cwnd.run(
        cwnd.Scenario.dumbbell(rate="5mbit", rtt="20ms", time="2s").add_flow("own.law")
    )
    (folder / "own.law").write_text(OWN.replace("acked / w", "2 * acked / w"))
    result.report("page.html")
    page = (folder / "page.html").read_text()
    assert _native.hash_law("own.law", OWN) in page
    assert describe_law("own.law", OWN).mathml[0].mathml in page


def test_the_check_has_faults_as_text_and_as_data(folder, capsys):
    assert run(["law", "check", "own.law"]) == 0
    out, err = capsys.readouterr()
    assert (out.splitlines()[0], err) == ("own.law: own, a law for the window", "")
    assert "grow 34 ns, cut 18 ns" in out
    (folder / "own.law").write_text(OWN.replace("kept * w", "kpt * w"))
    assert run(["law", "check", "own.law"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "error: kpt is not known here",
        " --> own.law:9:12",
        "  |",
        "9 |     return kpt * w",
        "  |            ^^^",
        "  |",
        "  = help: did you mean kept?",
    ]
    assert run(["law", "check", "own.law", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["files"] == [
        {
            "file": "own.law",
            "law": None,
            "faults": [
                {
                    "severity": "error",
                    "line": 9,
                    "column": 12,
                    "length": 3,
                    "message": "kpt is not known here",
                    "help": "did you mean kept?",
                }
            ],
        }
    ]
    assert run(["law", "check", "simd.law", "own.law", "vegas.law"]) == 1
    out, err = capsys.readouterr()
    assert [line.split(":")[0] for line in out.splitlines()[::2]] == ["simd.law", "vegas.law"]
    assert err.startswith("error: kpt is not known here")
    assert run(["law", "check", "simd.law", "vegas.law", "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [each["law"]["name"] for each in files] == ["simd", "vegas"]
    assert run(["law", "check", "own.law", "none.law"]) == 2


def test_a_fault_is_the_result_of_a_check_and_a_mistake_elsewhere(folder, capsys):
    """The rule of exit statuses that ``cwnd --help`` states."""
    (folder / "own.law").write_text("law broken")
    for arguments, status in (
        (["law", "check", "own.law"], 1),
        (["law", "fmt", "own.law"], 2),
        (["law", "fmt", "own.law", "--check"], 2),
        (["compare", "own.law"], 2),
    ):
        assert run(arguments) == status
        assert capsys.readouterr().out == ""
    assert run(["--help"]) == 0
    rule = " ".join(capsys.readouterr().out.split())
    assert "1 if a check, run, test or transfer failed, 2 for arguments or files" in rule
    assert "A fault that `cwnd law check` finds is a failed check; other commands cannot" in rule


def test_the_canonical_form_is_written(folder, capsys):
    loose = OWN.replace("kept * w", "kept*w   # all").replace("    return w", "  return w")
    loose = loose.replace("1/2", "1 / 2")
    (folder / "own.law").write_text(loose)
    assert run(["law", "fmt", "own.law", "--check"]) == 1
    assert "own.law is not in the canonical form" in capsys.readouterr().err
    assert (folder / "own.law").read_text() == loose
    assert run(["law", "fmt", "own.law"]) == 0
    expected = OWN.replace("kept * w", "kept * w    # all")
    assert (folder / "own.law").read_text() == expected
    assert run(["law", "fmt", "own.law", "--check"]) == 0
    for other in (OWN.replace("\n", "\r\n"), f"\ufeff{OWN}"):
        (folder / "own.law").write_bytes(other.encode())
        assert run(["law", "fmt", "own.law", "--check"]) == 1
        assert run(["law", "fmt", "own.law"]) == 0
        assert (folder / "own.law").read_bytes() == OWN.encode()
    (folder / "own.law").write_text("law broken")
    assert run(["law", "fmt", "own.law"]) == 2
    assert (folder / "own.law").read_text() == "law broken"


@pytest.mark.parametrize("kind", ["window", "rate"])
def test_a_new_law_is_checked_and_runs(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    assert run(["new-controller", "mine", "--law", "--kind", kind]) == 0
    assert capsys.readouterr().out.startswith("written: mine.law\n")
    assert run(["law", "check", "mine.law"]) == 0
    assert run(["law", "fmt", "mine.law", "--check"]) == 0
    assert capsys.readouterr().err == ""
    assert figures("mine.law")[0]["goodput_bps"] > 0
    assert run(["new-controller", "mine", "--law"]) == 2
    assert capsys.readouterr().err == "cwnd: mine.law exists already\n"
    assert run(["new-controller", "../mine", "--law"]) == 2
    assert run(["new-controller", "if", "--law"]) == 2
    assert "'if' is a word of the language of laws" in capsys.readouterr().err
    assert run(["new-controller", "a" * 70, "--law"]) == 2
    assert capsys.readouterr().err == "cwnd: a name of 70 letters is too long: at most 64\n"
    assert run(["new-controller", "other", "--law", "--kind", "whole"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.law"]


@pytest.mark.skipif(os.name != "posix", reason="UDT sockets need Unix")
def test_a_socket_takes_a_law(folder):
    with cwnd.udt.listen(0, "127.0.0.1") as listener:
        client = cwnd.udt.connect(*listener.address, controller="own.law(kept=3/4)")
        with client, listener.accept(timeout="5s") as server:
            client.send(b"data")
            assert server.recv(4) == b"data"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is not Linux")
def test_the_kernel_refuses_values_that_it_does_not_have(folder, capsys):
    observe = "on observe:\n    seen = acked.delivery.rate or seen\n"
    state = 'state seen = 0 /s "the delivery rate"\n'
    (folder / "own.law").write_text(f"{OWN}{state}{observe}")
    assert run(["kernel", "load", "own.law"]) == 2
    told = "own.law: the kernel has no acked.delivery.rate for a law"
    assert capsys.readouterr().err == f"cwnd: {told}\n"
    assert run(["kernel", "load", "own.law(start=hystart)"]) == 2
    assert "slow start is the kernel's" in capsys.readouterr().err
    assert run(["kernel", "load", "missing.law"]) == 2
    assert capsys.readouterr().err == "cwnd: missing.law: No such file or directory\n"


def test_the_document_s_laws_run(folder, capsys):
    document = (ROOT / "docs/laws.md").read_text("utf-8")
    texts = [part.partition("```")[0] for part in document.split("```law\n")[1:]]
    assert texts
    for text in texts:
        name = text.partition("\n")[0].removeprefix("# ")
        (folder / name).write_text(text)
        assert run(["law", "check", name]) == 0
        assert capsys.readouterr().err == ""
        assert run(["law", "fmt", name]) == 0
        short = ["--rate", "10mbit", "--rtt", "40ms", "--time", "3s", "--repeat", "2"]
        assert run(["compare", f"{name}(most=5ms)", "reno", *short]) == 0


@pytest.mark.parametrize(
    ("hook", "value", "warning"),
    [
        ("grow", "0 * (1 / (w - w))", r"grow answered NaN at 0\.\d+ s, which counts as the least"),
        ("grow", "-w", r"grow answered -\d+.* s, which counts as the least window"),
        ("grow", "1 / (w - w)", r"grow answered infinity at .* s, which counts as the largest"),
        ("cut", "-1 / w", r"cut answered -0\.\d+ at .* s, which counts as the least window"),
    ],
)
def test_an_answer_that_is_no_window_is_one_warning(folder, hook, value, warning):
    old = {"grow": "w + acked / w", "cut": "kept * w"}[hook]
    text = OWN.replace(old, f"({value} if w > 20 else {old})")
    (folder / "own.law").write_text(text)
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="8s", queue="20p")
    scenario.add_flow("own.law", count=3)
    with pytest.warns(ControllerWarning, match=f"^own.law: {warning}") as found:
        cwnd.compare(["own.law"], network=scenario, repeat=2)
    assert len(found) == 1
    # It is given once, and models are no runs: warnings are errors in tests.
    cwnd.run(scenario)
    law_models.cut("own.law", 40)


def test_a_rate_that_is_not_finite_is_one_warning(folder):
    (folder / "odd.law").write_text(
        """rate law odd "divides by 0 at the third increase"
state ticks = 0 "increases"
on clock:
    return timer
on interval:
    return 10 ms
on start:
    return w / (rtt or 1 s)
on tick:
    ticks = ticks + 1
    return rate / (1 if ticks < 3 else 0)
on cut:
    return rate / 2
"""
    )
    message = "tick answered infinity at .* s, which counts as the rate before"
    with pytest.warns(ControllerWarning, match=message) as found:
        figures("odd.law")
    assert len(found) == 1


def test_a_path_is_a_controller(folder):
    (folder / "mine.py").write_text(
        "class Law:\n"
        "    def grow(self, w, acked, cx):\n        return w + acked / w\n"
        "    def cut(self, w, why, cx):\n        return w / 2\n"
    )
    law, python = Path("own.law"), folder / "mine.py:Law"
    assert figures(law) == figures("own.law")
    assert read_controller(python)[0] == str(python)
    options = {"rate": "10mbit", "rtt": "40ms", "time": "3s", "repeat": 2}
    comparison = cwnd.compare([law, python], reference=Path("simd.law"), **options)
    assert [verdict.controller for verdict in comparison.verdicts] == ["own.law", str(python)]
    (card,) = cwnd.evaluate([law], quick=True, test="blackout", out="cards")
    assert card.controller == "own.law"
    assert law_models.cut(law, 40) == 20
    scenario = cwnd.Scenario(
        {"dumbbell": {"rate": "5mbit"}, "duration": "2s", "flow": [{"controller": law}]}
    )
    assert scenario.to_dict()["flow"][0]["controller"] == "own.law"
    with pytest.raises(cwnd.SpecError, match=r"^reno: the path of a controller is that of a law"):
        figures(Path("reno"))
    with pytest.raises(cwnd.SpecError, match=r"name a class of the file, such as mine\.py:Law"):
        figures(Path("mine.py"))
    with pytest.raises(ArgumentError, match="a list is needed"):
        cwnd.compare(law, **options)


ILLINOIS = """law illinois "TCP-Illinois"
source "Liu, Basar and Srikant: TCP-Illinois, Performance Evaluation 65, 2008"

parameter alpha_max = 10 in [1, 100] "largest increase in packets per round trip"
parameter alpha_min = 0.3 in (0, 1] "least increase"
parameter beta_min = 1/8 in (0, 1) "least reduction"
parameter beta_max = 1/2 in (0, 1) "largest reduction"
parameter w_thresh = 10 in [0, 1000] "window below which alpha is 1 and beta is beta_max"
parameter eta_1 = 0.01 in (0, 1) "part of the largest queueing delay below which alpha is alpha_max"
parameter eta_2 = 0.1 in (0, 1) "part below which beta is beta_min"
parameter eta_3 = 0.8 in (0, 1) "part above which beta is beta_max"

state max_rtt = 0 s "largest round-trip time"

let d_a = rtt - min_rtt if rtt is not none and min_rtt is not none else 0
let d_m = max_rtt - min_rtt if min_rtt is not none else 0
let d_1 = eta_1 * d_m
let kappa_1 = (d_m - d_1) * alpha_min * alpha_max / (alpha_max - alpha_min)
let kappa_2 = (d_m - d_1) * alpha_min / (alpha_max - alpha_min) - d_1
let d_2 = eta_2 * d_m
let d_3 = eta_3 * d_m

on observe:
    if acked.rtt is not none:
        max_rtt = max(max_rtt, acked.rtt)

on grow:
    let delayed = kappa_1 / (kappa_2 + d_a)
    let alpha = 1 if w < w_thresh else alpha_max if d_a <= d_1 else delayed
    return w + alpha * acked / w

on cut:
    if w < w_thresh or d_a >= d_3:
        return w - beta_max * w
    elif d_a <= d_2:
        return w - beta_min * w
    let slope = (beta_max - beta_min) / (d_3 - d_2)
    return w - (beta_min + slope * (d_a - d_2)) * w
"""
"""TCP-Illinois by the formulas of its paper, with the smoothed round-trip time as its mean."""


def test_a_law_without_a_cycle_ends_its_model(folder):
    (folder / "illinois.law").write_text(ILLINOIS)
    # Without a queue d_a and d_3 are 0: the reduction is beta_max.
    assert law_models.cut("illinois.law", 80) == 40
    found = droptail_equilibrium("illinois.law", 20, 0.1, 3750, 150)
    assert 0 < found.loss < 0.1
    # Without the case of no queue the increase is 0 / 0, and the window never grows.
    broken = ILLINOIS.replace("alpha_max if d_a <= d_1 else delayed", "delayed")
    (folder / "illinois.law").write_text(broken)
    begin = time.monotonic()
    with pytest.raises(ArgumentError, match=r"^spec: illinois\.law has no cycle between losses"):
        droptail_equilibrium("illinois.law", 20, 0.1, 3750, 150)
    assert time.monotonic() - begin < 60


def test_a_run_notes_that_a_law_which_needs_ecn_has_no_marks(folder, capsys):
    (folder / "marked.law").write_text(f"{OWN}\non needs_ecn:\n    return true\n")
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="2s")
    for controller in ("marked.law", "marked.law", "own.law", "dctcp"):
        scenario.add_flow(controller)
    notes = [
        f"{name} needs ECN, and `ecn` of its flows is false: no mark is reported."
        for name in ("marked.law", "dctcp")
    ]
    assert cwnd.run(scenario).to_json()["notes"] == notes
    assert cwnd.run(scenario, values={"tcp.ecn": True}).notes == []
    (folder / "udt.toml").write_text(
        'duration = "2s"\n[dumbbell]\nrate = "10mbit"\ndelay = "20ms"\n'
        '[[flow]]\ncontroller = "marked.law"\nprotocol = "udt"\n'
    )
    assert run(["run", "udt.toml"]) == 0
    note = "sim: marked.law needs ECN, and UDT has none: no mark is reported."
    assert " ".join(capsys.readouterr().out.split()).count(note) == 1
