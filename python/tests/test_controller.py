"""Controllers written in Python: how they are named, and where they run."""

import functools
import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path, PureWindowsPath

import numpy as np
import pytest

import cwnd
from cwnd import SpecError
from cwnd._cli import run
from cwnd._controllers.registry import describe
from cwnd.controller import (
    command_specification,
    explain_failure,
    move_specification,
    read_controller,
)
from cwnd.errors import ArgumentError, PlanError
from cwnd.model import law, stationary, synchronous

LAW = '''
class Law:
    """AIMD with any decrease.

    It grows by one packet a round.
    """

    def __init__(self, beta=1 / 2):
        self.beta = beta

    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w * (1 - self.beta)


class Wrong(Law):
    def grow(self, w, acked, cx):
        return w / 0


class Half:
    def grow(self, w, acked, cx):
        return w


class Leaving(Law):
    def __init__(self):
        raise SystemExit(3)


class Nothing(Law):
    def grow(self, w, acked, cx):
        pass


class Unbound(Law):
    def grow(self, w, acked, cx):
        return float("nan")


class Two(Law):
    def grow(self, w, acked):
        return w
'''


class Gentle:
    """A law with a setting."""

    def __init__(self, beta=1 / 8):
        self.beta = beta

    def grow(self, w, acked, cx):
        return w + 0.2 * acked / w

    def cut(self, w, why, cx):
        return w * (1 - self.beta)


class Failing(Gentle):
    def grow(self, w, acked, cx):
        raise RuntimeError("no growth")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "laws" / "mine.py"
    file.parent.mkdir()
    file.write_text(LAW)
    return "laws/mine.py"


def dumbbell():
    # Linux counts Reno's window in whole packets, and no other law's.
    return cwnd.Scenario.dumbbell(rate="5mbit", rtt="40ms", time="6s", conventions="rfc")


def test_a_file_is_a_controller(mine):
    result = cwnd.run(dumbbell().add_flow(f"{mine}:Law(beta=1/8)").add_flow(f"{mine}:Law"))
    assert list(result.flows["controller"]) == [f"{mine}:Law(beta=1/8)", f"{mine}:Law"]
    assert [flow["name"] for flow in result.record["flows"]] == ["Law-1", "Law-2"]
    native = cwnd.run(dumbbell().add_flow("aimd(1, 1/8)").add_flow("reno"))
    for ours, theirs in zip(result.record["flows"], native.record["flows"], strict=True):
        assert np.array_equal(ours["window"], theirs["window"], equal_nan=True)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{}:Lw", "laws/mine.py has no class Lw; it has Law, Wrong, Half, "),
        ("{}", "laws/mine.py: name a class of the file"),
        ("{}:Leaving", "in __init__: SystemExit: 3"),
        ("{}:Law(gamma=1)", "unexpected keyword argument 'gamma'"),
        ("{}:Law(beta=1/0)", "mine.py:Law(beta=1/8)"),
        ("{}:Law(beta=5ms)", "`Law(beta=5ms)` is not a class with literal arguments"),
        ("{}:Law(", "`Law(` is not a class with literal arguments"),
        ("{}:Law(beta=open('x'))", "mine.py:Law(beta=1/8)"),
        ("{}:", "mine.py:Law(beta=1/8)"),
        ("{}:Half", "Half has no method cut"),
        ("laws/none.py:Law", "laws/none.py: No such file or directory"),
        ("laws/syntax.py:Law", "laws/syntax.py:2: "),
        ("laws/raises.py:Law", "laws/raises.py:1: in <module>: ZeroDivisionError"),
        ("laws/leaves.py:Law", "laws/leaves.py:1: in <module>: SystemExit: 3"),
        ("laws/zero.py:Law", "laws/zero.py:1: "),
        ("python:Law", "write the file that defines it"),
        (
            "mine:Law",
            "mine:Law: unknown controller: no installed package has it; a file's is mine.py:Law",
        ),
    ],
)
def test_a_wrong_file_or_class_is_one_line(mine, spec, message):
    Path("laws/syntax.py").write_text("x = 1\nclass Law(:\n")
    Path("laws/raises.py").write_text("1 / 0\n")
    Path("laws/leaves.py").write_text("raise SystemExit(3)\n")
    Path("laws/zero.py").write_bytes(b"x = \0")
    with pytest.raises(SpecError) as caught:
        read_controller(spec.format(mine))
    with pytest.raises(SpecError) as added:
        dumbbell().add_flow(spec.format(mine))
    assert str(added.value) == str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_edited_file_is_read_again(mine):
    def window() -> float:
        return read_controller(f"{mine}:Law")[1]().cut(16.0, "loss", None)

    before = window()
    Path(mine).write_text(LAW.replace("self.beta = beta", "self.beta = beta / 2", 1))
    assert (before, window()) == (8.0, 12.0)


def test_a_scenario_names_a_file_relative_to_itself(mine):
    Path("laws/net.toml").write_text(
        'duration = "3s"\n[dumbbell]\nrate = "5mbit"\ndelay = "10ms"\n'
        '[[flow]]\ncontroller = "mine.py:Law(beta=1/4)"\ncount = 2\n'
    )
    result = cwnd.run("laws/net.toml")
    assert set(result.flows["controller"]) == {"laws/mine.py:Law(beta=1/4)"}


def test_partials_and_instances_are_named_with_their_settings():
    partial = functools.partial(Gentle, beta=0.25)
    scenario = dumbbell().add_flow(partial).add_flow(Gentle(0.5), count=2)
    names = list(cwnd.run(scenario).flows["controller"])
    assert names == ["python:Gentle(beta=0.25)"] + 2 * ["python:Gentle(beta=0.5)"]
    with pytest.raises(ArgumentError, match="two different classes"):
        scenario.add_flow(Gentle(0.5))
    with pytest.raises(TypeError, match="neither a specification nor a class"):
        scenario.add_flow(3)


def test_an_instance_is_copied_for_each_flow():
    class Counting(Gentle):
        def __init__(self):
            super().__init__()
            self.seen = []

        def grow(self, w, acked, cx):
            self.seen.append(1)
            return super().grow(w, acked, cx)

    instance = Counting()
    cwnd.run(dumbbell().add_flow(instance, count=2))
    assert instance.seen == []


def test_a_document_may_contain_controllers_and_no_other_objects(tmp_path):
    network = {"duration": "2s", "dumbbell": {"rate": "5mbit", "delay": "10ms"}}
    added = cwnd.run(cwnd.Scenario(network).add_flow(Gentle)).record["flows"][0]["window"]
    for controller in (Gentle, Gentle(), functools.partial(Gentle, beta=1 / 8)):
        flows = [{"controller": controller}]
        written = cwnd.run(cwnd.Scenario({**network, "flow": flows}))
        replaced = cwnd.Scenario(network).add_flow("reno")
        replaced = cwnd.run(replaced.with_values({"flow[0].controller": controller}))
        for result in (written, replaced):
            assert np.array_equal(result.record["flows"][0]["window"], added)
    with pytest.raises(TypeError, match="neither a specification nor a class of a controller"):
        cwnd.Scenario({**network, "flow": [{"controller": object()}]})
    with pytest.raises(TypeError, match="neither a specification nor a class of a controller"):
        cwnd.Scenario({**network, "flow": [{"controller": lambda: Gentle(beta=0.5)}]})
    with pytest.raises(cwnd.ScenarioError, match="cannot contain infinity or NaN"):
        cwnd.Scenario({**network, "flow": [{"controller": "reno", "start": np.nan}]}).validate()
    wrong = {**network, "dumbbell": {"rate": Gentle}, "flow": [{"controller": "reno"}]}
    with pytest.raises(cwnd.ScenarioError, match="Gentle'> is neither text, a number"):
        cwnd.Scenario(wrong).validate()
    plan = {"base": {"rate": Gentle}, "controllers": ["reno"], "repeat": 1}
    with pytest.raises(PlanError, match="controllers written in Python are for `controllers`"):
        cwnd.sweep(plan, out=tmp_path / "out")


def test_the_command_line_names_the_file_of_a_class():
    here = command_specification(*read_controller(functools.partial(Gentle, 0.25)))
    assert here is not None
    assert here.endswith("test_controller.py:Gentle(0.25)")

    class Local(Gentle):
        pass

    assert command_specification(*read_controller(Local)) is None
    instance = Gentle(0.25)
    made = command_specification(*read_controller(instance))
    assert made is not None
    assert made.endswith("test_controller.py:Gentle(beta=0.25)")
    instance.cuts = 3
    assert command_specification(*read_controller(instance)) is None
    assert command_specification("reno", None) == "reno"


def test_an_exception_is_found_in_its_file(mine):
    with pytest.raises(ZeroDivisionError) as caught:
        cwnd.run(dumbbell().add_flow(f"{mine}:Wrong"))
    line = LAW.splitlines().index("        return w / 0") + 1
    assert explain_failure(caught.value) == (
        f"laws/mine.py:{line}: in grow: ZeroDivisionError: float division by zero"
    )
    assert caught.value.__notes__ == [f"in dumbbell with {mine}:Wrong, seed 1"]
    with pytest.raises(RuntimeError) as elsewhere:
        cwnd.run(dumbbell().add_flow(Failing))
    assert explain_failure(elsewhere.value) is None


def test_the_line_of_an_error_names_the_run(mine, capsys):
    line = LAW.splitlines().index("        return w / 0") + 1
    for name, said in [
        ("Wrong", f"{mine}:{line}: in grow: ZeroDivisionError: float division by zero"),
        ("Nothing", f"{mine}:Nothing: grow answered None: a window is a finite number"),
    ]:
        assert run(["compare", "reno", f"{mine}:{name}", "--time", "2s"]) == 2
        begin = re.escape(f"cwnd: {said} (in dumbbell with {mine}:{name}")
        assert re.match(begin + r"( and reno)?, seed \d+\)$", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Nothing", "grow answered None: a window is a finite number"),
        ("Unbound", "grow answered nan: a window is a finite number"),
        ("Two", "takes 3 positional arguments but 4 were given"),
    ],
)
def test_an_answer_that_is_no_window_names_the_controller(mine, name, said):
    with pytest.raises(SpecError, match=f"^{mine}:{name}: .*{said}"):
        cwnd.run(dumbbell().add_flow(f"{mine}:{name}"))
    with pytest.raises(SpecError, match=f"^{mine}:{name}: .*{said}"):
        law.rounds(f"{mine}:{name}", 10, 3)


@pytest.mark.slow
def test_a_model_steps_a_law_written_in_python(mine):
    spec = f"{mine}:Law(beta=1/8)"
    assert law.rounds(spec, 20, 30).tolist() == law.rounds("aimd(1, 1/8)", 20, 30).tolist()
    assert law.sawtooth(Gentle, 40.0) == law.sawtooth("aimd(0.2, 1/8)", 40.0)
    means = [stationary.stationary(s, 1e-2, rtt=0.1).mean for s in (spec, "aimd(1, 1/8)")]
    assert means[0] == means[1]
    ours = synchronous.trajectory([Gentle, "reno"], [10.0, 20.0], 60.0, 50)
    theirs = synchronous.trajectory(["aimd(0.2, 1/8)", "reno"], [10.0, 20.0], 60.0, 50)
    assert np.array_equal(ours.windows, theirs.windows)
    with pytest.raises(RuntimeError, match="no growth"):
        law.rounds(Failing, 10, 3)


def test_udt_in_the_simulator_is_driven_by_a_law_written_in_python():
    ours = cwnd.run(dumbbell().add_flow(Gentle, count=2, protocol="udt"))
    theirs = cwnd.run(dumbbell().add_flow("aimd(0.2, 1/8)", count=2, protocol="udt"))
    assert list(ours.flows["packets_sent"]) == list(theirs.flows["packets_sent"])
    with pytest.raises(RuntimeError, match="no growth"):
        cwnd.run(dumbbell().add_flow(Failing, protocol="udt"))


def test_udt_sockets_are_driven_by_a_law_written_in_python(transfer):
    assert transfer(Gentle, 3_000_000) == 3_000_000


def test_an_exception_in_a_law_is_raised_by_its_connection(transfer):
    class Raising(Gentle):
        def observe(self, acked, cx):
            raise RuntimeError("no law")

    with pytest.raises(RuntimeError, match="no law"):
        transfer(Raising, 3_000_000)


def test_an_interrupted_run_does_not_wait_for_a_slow_law(tmp_path, spawn):
    (tmp_path / "slow.py").write_text(
        "import sys, time\n"
        "class Slow:\n"
        "    def grow(self, w, acked, cx):\n"
        "        print('growing', file=sys.stderr, flush=True)\n"
        "        time.sleep(0.5)\n"
        "        return w\n"
        "    def cut(self, w, why, cx):\n"
        "        return w / 2\n"
    )
    (tmp_path / "net.toml").write_text(dumbbell().add_flow("reno", count=2).to_toml())
    words = ["-m", "cwnd", "compare", "slow.py:Slow", "net.toml", "--repeat", "2"]
    done = spawn(sys.executable, *words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert done.stderr is not None
    # The law has been asked: its run is under way.
    assert "growing\n" in iter(done.stderr.readline, "")
    done.send_signal(signal.SIGINT)
    assert done.wait(timeout=60) == 130


PRINTS = """
import logging, sys
print("read")
sys.stdout.write("loaded\\n")
log = logging.Logger("law")
log.addHandler(logging.StreamHandler(sys.stdout))


class Prints:
    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        print("printed")
        sys.stdout.write("written\\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(b"bytes\\n")
        log.error("logged")
        return w / 2
"""


def test_what_a_law_prints_is_no_part_of_the_output(mine, command):
    file = Path(mine)
    file.write_text(PRINTS)
    words = ["--rate", "5mbit", "--time", "2s", "--repeat", "1", "--json"]
    done = command("compare", f"{mine}:Prints", *words)
    assert json.loads(done.stdout)["alone"]
    lines = done.stderr.splitlines()
    assert lines[:2] == ["read", "loaded"]
    assert {"printed", "written", "bytes", "logged"} < set(lines)


def test_what_a_law_prints_in_a_sweep_is_no_part_of_the_output(mine, complete, tmp_path):
    Path(mine).write_text(PRINTS)
    plan = tmp_path / "plan.toml"
    plan.write_text(f'controllers = ["{mine}:Prints"]\n[base]\nrate = "5mbit"\ntime = "2s"\n')
    words = [sys.executable, "-m", "cwnd", "sweep", plan, "--out", tmp_path / "out", "--json"]
    done = complete(*words, cwd=tmp_path)
    assert json.loads(done.stdout)["failed"] == 0
    assert "written" in done.stderr.splitlines()


WATCHED = """
import time
import cwnd.controller
cwnd.controller.PATIENCE = 0.1
sleep = time.sleep
time.sleep = lambda seconds: sleep(seconds / 10)
from cwnd.__main__ import main
main()
"""


@pytest.mark.parametrize("work", ["run", "model"])
def test_the_calls_of_a_thread_share_its_state(work):
    # A state for each call would map memory: evaluations took five times as long.
    own, counts = threading.local(), []

    class Counting(Gentle):
        def grow(self, w, acked, cx):
            own.calls = getattr(own, "calls", 0) + 1
            counts.append(own.calls)
            return super().grow(w, acked, cx)

    if work == "run":
        cwnd.run(dumbbell().add_flow(Counting))
    else:
        stationary.stationary(Counting, 0.01)
    assert max(counts) > len(counts) / 100


def test_a_call_that_does_not_return_is_said_with_its_line(mine, spawn):
    Path(mine).write_text(
        LAW.replace("        return w + acked / w", "        while True:\n            w = w")
    )
    words = ["-c", WATCHED, "compare", f"{mine}:Law", "--time", "5s"]
    process = spawn(sys.executable, *words, stderr=subprocess.PIPE, text=True)
    first = process.stderr.readline()
    lines = Path(mine).read_text().splitlines()
    loop = {
        number for number, line in enumerate(lines, 1) if "while True" in line or "w = w" in line
    }
    assert first in {
        f"cwnd: {mine}:{line}: this call has not returned for 0.1 s\n" for line in loop
    }
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130


def test_a_controller_written_in_python_is_described(mine):
    found = describe(f"{mine}:Law(beta=1/8)")
    assert found.title == "AIMD with any decrease."
    assert [(p.name, p.default) for p in found.parameters] == [("beta", "0.5")]
    json.dumps(found.to_json())
    instance = describe(Gentle(0.5))
    assert instance.title == "A law with a setting."
    assert [(p.name, p.default) for p in instance.parameters] == [("beta", "0.125")]


def test_a_rate_law_may_change_its_interval_and_start_itself():
    class Slowing:
        clock = "timer"
        starts_itself = True

        def __init__(self):
            self.seconds, self.times = 0.1, []

        def interval(self):
            return self.seconds

        def tick(self, rate, cx):
            self.times.append(cx.now)
            self.seconds = 0.5
            times[:] = self.times
            return rate

        def cut(self, rate, fresh, why, cx):
            return rate

        def start(self, w, cx):
            return 50.0

    times = []
    result = cwnd.run(dumbbell().add_flow(Slowing))
    assert times[0] == pytest.approx(0.1)
    assert np.diff(times) == pytest.approx(0.5)
    assert set(result.record["flows"][0]["gauges"]["rate"]) == {50.0}


def test_a_moved_specification_is_the_same_on_windows():
    moved = move_specification("mine.py:Law(beta=1/8)", PureWindowsPath("runs\\one"))
    assert moved == "runs/one/mine.py:Law(beta=1/8)"
