"""Both futures of a run: `cwnd.Simulation` and ``cwnd run --fork-at``."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

import cwnd
from cwnd import Scenario
from cwnd.errors import ArgumentError, ControllerWarning


def dumbbell():
    return Scenario.dumbbell(rate="10mbit", rtt="40ms", time="8s", warmup="4s")


def test_a_copy_and_its_origin_have_the_result_of_the_run():
    scenario = dumbbell().add_flow("cubic").add_flow("udt", start="1s")
    run = cwnd.Simulation(scenario, 3)
    run.run_until("5s")
    copy = run.fork()
    expected = cwnd.run(scenario, 3).to_json()
    for simulation in (run, copy, run):
        found = simulation.result().to_json()
        assert found | {"engine": None} == expected | {"engine": None}
    with pytest.raises(ArgumentError, match="at: 3s is not in the run, from 5 s to below 8 s"):
        run.run_until("3s")


class Constant(cwnd.WindowLaw):
    """Adds a packet in each round."""

    def grow(self, w, n, cx):
        return w + n / w

    def cut(self, w, why, cx):
        return w / 2


def test_a_run_that_cannot_be_copied_is_repeated():
    run = cwnd.Simulation(dumbbell().add_flow(Constant).add_flow("reno"))
    run.run_until("5s")
    copy = run.fork()
    copy.change({"dumbbell.rate": "5mbit"})
    before, after = run.result(), copy.result()
    assert "repeated from its beginning" in after.notes[-1]
    assert before.notes == []
    same = np.searchsorted(before.time, 5.0)
    windows = [result.record["flows"][0]["window"] for result in (before, after)]
    assert np.array_equal(windows[0][:same], windows[1][:same])
    assert not np.array_equal(windows[0][same:], windows[1][same:])


class Narrow(Constant):
    """Fails above 150 packets."""

    def grow(self, w, n, cx):
        if w > 150:
            raise ValueError("too wide")
        return w + n / w


def test_an_error_of_a_controller_ends_its_future_alone():
    run = cwnd.Simulation(dumbbell().add_flow(Narrow))
    run.run_until("1s")
    before = run.result().metrics["goodput_bps"]
    copy = run.fork()
    copy.change({"dumbbell.rate": "100mbit"})
    for _ in range(2):
        with pytest.raises(ValueError, match="too wide"):
            copy.result()
        assert run.result().metrics["goodput_bps"] == before


LAW = """rate law rising "divides by 0 after {ticks} increases"
state ticks = 0 "increases"
on clock:
    return timer
on interval:
    return 10 ms
on start:
    return w / (rtt or 1 s)
on tick:
    ticks = ticks + 1
    return rate / (1 if ticks < {ticks} else 0)
on cut:
    return rate / 2
"""


@pytest.mark.parametrize("ticks", [3, 6])
def test_an_answer_that_is_no_rate_is_one_warning(tmp_path, ticks):
    law = tmp_path / "rising.law"
    law.write_text(LAW.format(ticks=ticks))
    run = cwnd.Simulation(dumbbell().add_flow(law))
    run.run_until("5s")
    with pytest.warns(ControllerWarning, match="tick answered infinity") as found:
        run.fork().result()
    assert len(found) == 1


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(
        'duration = "8s"\ndumbbell = { rate = "10mbit", delay = "20ms", queue = "1bdp" }\n'
        'flow = [{ controller = "reno", count = 2 }]\n'
    )
    return path


def test_the_command_shows_both_futures(command, file, tmp_path):
    plot = tmp_path / "futures.svg"
    arguments = ["run", file, "--fork-at", "4s", "--set", "dumbbell.rate=5mbit"]
    report = tmp_path / "futures.html"
    done = command(*arguments, "--plot", plot, "--report", report)
    assert done.returncode == 0
    packed = re.search('id="data">([^<]*)<', report.read_text("utf-8"))[1]
    sides = json.loads(gzip.decompress(base64.b64decode(packed)))["sides"]
    assert [side["name"] for side in sides] == ["dumbbell.rate=5mbit", "unchanged"]
    changed, unchanged = (np.interp([3, 7], *side["goodputs"][0][2]) for side in sides)
    assert changed[0] == unchanged[0]
    assert changed[1] < 0.7 * unchanged[1]
    assert "dumbbell.rate=5mbit" in plot.read_text()
    goodput = next(line for line in done.stdout.splitlines() if line.startswith("goodput"))
    before, after, difference = map(float, goodput.split()[-3:])
    assert 8 < before < 10
    assert 4 < after < 5.2
    assert difference == pytest.approx(after - before, abs=0.011)
    document = json.loads(command(*arguments, "--json").stdout)
    assert document["differences"]["goodput_bps"] == pytest.approx(difference * 1e6, abs=1e4)
    assert document["rerun"].endswith("--set dumbbell.rate=5mbit --fork-at 4s --seed 1")


def test_a_law_takes_the_place_of_another_one(command, file):
    arguments = ["run", file, "--fork-at", "4s", "--set", "flow[0].controller=cubic", "--json"]
    document = json.loads(command(*arguments).stdout)
    assert [flow["controller"] for flow in document["changed"]["flows"]] == ["cubic"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["4s"], "--fork-at needs --set PATH=VALUE"),
        (["9s", "--set", "dumbbell.rate=5mbit"], "--fork-at: 9s is not in the run"),
        (["soon", "--set", "dumbbell.rate=5mbit"], "--fork-at: 'soon' is not a time"),
        (["4s", "--set", "dumbbell.queue=9p"], "dumbbell.queue: a queue cannot change"),
        (
            ["4s", "--set", 'dumbbell={rate = "5mbit", delay = "20ms", queue = "9p"}'],
            "dumbbell.queue: a queue cannot change",
        ),
        (["4s", "--set", "dumbbell.jitter=1ms"], "only its rate, delay and loss can change"),
        (["4s", "--set", "seed=3"], "seed: the seed cannot change in a run"),
        (["4s", "--set", "flow[0].count=3"], "the number of links and flows"),
        (["4s", "--set", "flow[0].controller=bbr"], "reno cannot become bbr in a run"),
        (["4s", "--set", "dumbbell.rate=5mbit", "--repeat", "2"], "--repeat: not with --fork-at"),
    ],
)
def test_what_cannot_be_done_is_one_line(command, file, arguments, message):
    done = command("run", file, "--fork-at", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
