"""One scenario on several backends: the verdicts, the verbs, and one real run."""

from __future__ import annotations

import copy
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import cwnd
import cwnd._runs.real_time
from cwnd import _native
from cwnd._cli import run as command_line
from cwnd._tasks.agreement.outcome import OF_FLOWS, OF_NETWORK, Row, judge
from cwnd.errors import ArgumentError, KernelError

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).parents[2]
KINDS = {kind.name: kind for kind in (*OF_NETWORK, *OF_FLOWS)}

LINUX = """
name = "small"
duration = "4s"
warmup = "1s"

[dumbbell]
rate = "10mbit"
delay = "10ms"
queue = "20p"

[[flow]]
controller = "reno"
count = 2
"""


def about(mean: float, part: float = 0.001) -> list[float]:
    """Five seeds around a mean, spread by a part of it."""
    return [mean * (1 + part * step) for step in (-2, -1, 0, 1, 2)]


@pytest.fixture
def real(monkeypatch):
    """Run what is to run in real time on the simulator; gives what was asked, and can change it."""

    class Fake:
        def __init__(self) -> None:
            self.asked = []
            self.limit = None
            self.notes = ["delays are rounded"]

        def change(self, record) -> None:
            pass

        def __call__(self, scenario, seed, on, progress):
            self.asked.append((seed, on))
            (record,) = _native.simulate([(scenario, seed)])
            self.change(record)
            if progress is not None:
                progress(1.0)
            return {"record": record | {"notes": self.notes}, "limit": self.limit}

    fake = Fake()
    monkeypatch.setattr(_native, "run_real", fake, raising=False)
    if not hasattr(_native, "check_real"):
        monkeypatch.setattr(_native, "check_real", lambda *_: None, raising=False)
    monkeypatch.setattr(cwnd._runs.real_time, "emulates", lambda: None)
    monkeypatch.setattr(sys, "platform", "linux")
    return fake


@pytest.mark.parametrize(
    ("figure", "first", "other", "slack", "text"),
    [
        ("goodput_bps", about(10e6), about(10.4e6), 0, "agrees"),
        ("goodput_bps", about(10e6), about(9e6), 0, "differs (-10 %)"),
        ("goodput_bps", about(10e6), about(10.5e6)[::-1], 0, "undecided (+5 %, +5 to +5 %)"),
        ("goodput_bps", about(10e6, 0.1), about(10e6), 0, "undecided (+0 %, -20 to +25 %)"),
        ("goodput_bps", about(10e6, 0.1), about(10e6, 0.1), 0, "agrees"),
        ("window_p50", about(40), about(43.9), 1, "agrees"),
        ("window_p50", about(4), about(4.9), 1, "agrees"),
        ("window_p50", about(4), about(5.2), 1, "differs (+30 %)"),
        ("queue_delay_s", about(0.0), about(1e-3), 1.2e-3, "agrees"),
        ("queue_delay_s", about(0.0), about(5e-3), 1.2e-3, "differs (5.00 ms instead of 0)"),
        ("queue_delay_s", about(1e-4), about(1.2e-3), 1.2e-3, "agrees"),
        ("loss_rate", about(0.01), about(0.0149), 0, "agrees"),
        ("loss_rate", about(0.0149), about(0.01), 0, "agrees"),
        ("loss_rate", about(0.01), about(0.02), 0, "differs (2 times)"),
        ("loss_rate", about(0.01), about(0.005), 0, "differs (0.5 times)"),
        ("loss_rate", about(0.0), about(9e-5), 0, "agrees"),
        ("loss_rate", about(0.0), about(0.0), 0, "agrees"),
        ("loss_rate", about(0.0), about(0.01), 0, "differs (1.000 % instead of 0)"),
        ("loss_rate", about(1e-5), about(8e-5), 0, "agrees"),
        ("loss_rate", [0, 0, 0], [0, 0, 2e-4], 0, "undecided (0.007 % instead of 0)"),
        ("mean_rtt_s", [math.nan] * 5, about(0.04), 0, "unknown"),
        ("mean_rtt_s", [0.04], [0.04], 0, "undecided (one seed)"),
    ],
)
def test_verdicts_follow_the_rule(figure, first, other, slack, text):
    assert judge("linux", KINDS[figure], first, other, slack).text == text


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ([0.065, 0.080, 0.071, 0.085, 0.059], "differs"),
        ([0.060, 0.090, 0.066], "differs"),
        ([0.0, 0.0, 0.216], "undecided"),
        ([0.004, 0.145], "undecided"),
    ],
)
def test_a_loss_24_times_as_high_is_no_agreement(other, word):
    first = [0.003, 0.0031, 0.0029, 0.0031, 0.0029][: len(other)]
    verdict = judge("linux", KINDS["loss_rate"], first, other, 0)
    assert verdict.ratio.mean == pytest.approx(24, rel=0.02)
    assert verdict.word == word


def test_auto_stops_when_every_figure_is_decided(real, scenario_file, capsys):
    done = []
    agreement = cwnd.agree(scenario_file, repeat="auto", progress=done.append)
    assert [seed for seed, _ in real.asked] == [1, 2, 3, 4, 5]
    assert agreement.undecided == []
    assert agreement.rerun.endswith("--repeat 5 --seed 1")
    assert done == sorted(done)
    assert done[-1] == 1.0
    assert command_line(["agree", str(scenario_file), "--repeat", "auto"]) == 0
    said = capsys.readouterr().err
    assert "at most 20 runs" in said
    assert "5 repeats: every verdict is decided" in said


def test_auto_adds_seeds_up_to_its_limit(real, scenario_file, capsys):
    def change(record):
        # In half of the runs Reno gets 10 % less: 5 % on average, which is the bound.
        for flow in record["flows"][:2] if len(real.asked) % 2 else ():
            flow["bytes_delivered"] = int(flow["bytes_delivered"] * 0.9)

    real.change = change
    assert command_line(["agree", str(scenario_file), "--repeat", "auto", "--json"]) == 0
    said = capsys.readouterr()
    assert [seed for seed, _ in real.asked] == list(range(1, 21))
    assert json.loads(said.out)["seeds"] == list(range(1, 21))
    assert "20 repeats, the limit; undecided:" in said.err
    assert "goodput_bps of reno on linux" in said.err


def test_equal_runs_agree_in_everything(real, two):
    agreement = cwnd.agree(cwnd.Scenario.from_toml(two), repeat=2, seed=5)
    assert real.asked == [(5, "linux"), (6, "linux")]
    assert {verdict.word for row in agreement.rows for verdict in row.verdicts} == {"agrees"}
    assert agreement.groups == {"reno": ["reno-1", "reno-2"], "simd": ["simd-1", "simd-2"]}
    shares = [row.estimates["linux"].mean for row in agreement.rows if row.kind.name == "share"]
    assert sum(shares) == pytest.approx(1)
    assert agreement.frame.loc[("reno", "share"), ("sim", "mean")] == pytest.approx(shares[0])
    assert len(agreement.flows) == 2 * 2 * 4


def test_a_difference_is_found_where_it_is(real, two):
    def change(record) -> None:
        for flow in record["flows"]:
            if flow["controller"] == "reno":
                flow["window"] = flow["window"] * 2 + 2
        for link in record["links"]:
            link["delay"]["p95"] *= 2

    real.change = change
    agreement = cwnd.agree(cwnd.Scenario.from_toml(two), repeat=5)
    found = {
        (row.of, row.kind.name)
        for row in agreement.rows
        for verdict in row.verdicts
        if verdict.word == "differs"
    }
    windows = {("reno", f"window_p{part}") for part in (10, 50, 90)}
    assert found == windows | {("network", "queue_delay_p95_s")}
    assert agreement.counts["linux"]["differs"] == 4


def test_an_interval_of_a_goodput_ends_at_the_rate_of_the_link(real, two):
    agreement = cwnd.agree(cwnd.Scenario.from_toml(two), repeat=2)
    assert {row.goodput_limit for row in agreement.rows} == {1e7}
    row = Row("reno", KINDS["goodput_bps"], {"sim": [1e7, 4e7, 4.9e7]}, 0.0, 5e7)
    assert 4.9e7 < row.estimates["sim"].high <= 5e7
    assert replace(row, goodput_limit=math.inf).estimates["sim"].high > 5e7


def test_the_backends_take_turns(real, two):
    agreement = cwnd.agree(cwnd.Scenario.from_toml(two), on=["udt", "sim", "linux"], repeat=2)
    assert real.asked == [(1, "udt"), (1, "linux"), (2, "udt"), (2, "linux")]
    assert list(agreement.results) == ["udt", "sim", "linux"]
    assert [verdict.on for verdict in agreement.rows[0].verdicts] == ["sim", "linux"]


def test_the_warm_up_is_in_no_figure(real, two):
    def change(record) -> None:
        for flow in record["flows"]:
            flow["window"][record["time"] < record["warmup_s"]] = 1e6

    real.change = change
    agreement = cwnd.agree(cwnd.Scenario.from_toml(two), repeat=1)
    assert agreement.counts["linux"]["differs"] == 0


def test_what_is_missing_is_unknown(real, two):
    def change(record) -> None:
        record["links"] = [copy.deepcopy(record["links"][0]) | {"name": "another"}]
        record["flows"] = [flow for flow in record["flows"] if flow["controller"] == "reno"]

    real.change = change
    agreement = cwnd.agree(cwnd.Scenario.from_toml(two), repeat=1)
    unknown = {row.of for row in agreement.rows if row.verdicts[0].word == "unknown"}
    assert {"network", "simd"} <= unknown
    json.dumps(agreement.to_json(), allow_nan=False)
    agreement.plot()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on": ["sim"]}, "two different"),
        ({"on": ["linux", "linux"]}, "two different"),
        ({"on": ["sim", "moon"]}, "moon"),
        ({"repeat": 0}, "0 is neither auto nor"),
    ],
)
def test_arguments_are_checked(real, two, options, words):
    with pytest.raises(ArgumentError, match=words):
        cwnd.agree(cwnd.Scenario.from_toml(two), **options)
    assert real.asked == []


def test_controllers_of_python_stay_in_the_simulator(real):
    class Gentle:
        def grow(self, w, acked, cx):
            return w + 1

        def cut(self, w, why, cx):
            return w / 2

    scenario = cwnd.Scenario.dumbbell(time="2s").add_flow(Gentle)
    with pytest.raises(ArgumentError, match="Python"):
        cwnd.run(scenario, on="linux")


def test_run_says_where_it_ran(real, scenario_file, capsys):
    real.limit = "packets came late"
    assert command_line(["run", str(scenario_file), "--on", "linux"]) == 0
    told = capsys.readouterr()
    assert told.err == "cwnd: on linux in real time: one run: 20 s\n"
    assert "the kernel's TCP" in told.out
    assert "linux: delays are rounded" in told.out
    assert "limited by the emulator, not by the network: packets came late" in told.out


def test_run_in_json_and_as_a_page(real, scenario_file, tmp_path, capsys):
    page = tmp_path / "r.html"
    words = ["run", str(scenario_file), "--on", "udt", "--json", "--report", str(page)]
    assert command_line(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["on"], document["limit"]) == ("udt", None)
    assert document["notes"] == ["delays are rounded"]
    assert "udt: delays are rounded" in page.read_text()
    assert "--on udt" in page.read_text()


def test_a_simulated_run_says_so(result):
    document = result.to_json()
    assert (document["on"], document["limit"], document["notes"]) == ("sim", None, [])


def test_compare_in_real_time(real, capsys):
    small = ["--rate", "10mbit", "--rtt", "40ms", "--time", "2s", "--repeat", "1", "--flows", "2"]
    assert command_line(["compare", "simd", *small, "--on", "linux", "--json"]) == 0
    told = capsys.readouterr()
    assert told.err == "cwnd: on linux in real time: 3 runs of 2 s, one after the other: 6 s\n"
    document = json.loads(told.out)
    assert document["network"]["on"] == "linux"
    assert document["rerun"].endswith("--on linux")
    assert len(real.asked) == 3


def test_agree_prints_saves_and_can_be_repeated(real, scenario_file, tmp_path, capsys):
    page, plot = tmp_path / "a.html", tmp_path / "a.svg"
    words = ["agree", str(scenario_file), "--repeat", "2", "--report", str(page)]
    assert command_line([*words, "--plot", str(plot), "--on", "sim, udt"]) == 0
    told = capsys.readouterr()
    assert "cwnd: on udt in real time: 2 runs of 20 s, one after the other: 40 s\n" in told.err
    for word in ("network", "reno", "simd", "window, p50", "agrees", "udt: delays are rounded"):
        assert word in told.out
    assert "udt: of 20 figures 20 agree, 0 differ, 0 are undecided" in told.out
    assert f"cwnd agree {scenario_file} --on sim,udt --repeat 2 --seed 1" in page.read_text()
    assert plot.read_text().startswith("<?xml")


def test_agree_prints_one_json_document(real, scenario_file, capsys, check_json):
    assert command_line(["agree", str(scenario_file), "--repeat", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["on"] == ["sim", "linux"]
    assert document["limited"] == {"sim": 0, "linux": 0}
    (share,) = (f for f in document["figures"] if (f["of"], f["figure"]) == ("simd", "share"))
    verdict = share["verdicts"]["linux"]
    assert verdict == {"verdict": "agrees", "ratio": 1.0, "interval": [1.0, 1.0]}
    low, high = share["values"]["sim"]["interval"]
    assert 0 <= low <= share["values"]["sim"]["mean"] <= high <= 1
    figures = {figure["figure"]: None for figure in document["figures"]}
    data = {"reno", "simd", "sim", "linux"}
    check_json([document, figures], "## `cwnd agree --json`", data=data)


def test_one_seed_decides_nothing(real, scenario_file, capsys):
    assert command_line(["agree", str(scenario_file), "--repeat", "1"]) == 0
    told = capsys.readouterr().out
    assert "linux: of 20 figures 0 agree, 0 differ, 20 are undecided" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "FILE", "--on", "moon"], "--on: 'moon' is not one of sim, udt, linux, quic"),
        (["run", "FILE", "--on", "udt", "--pcap", "x", "--link", "left-right"], "--pcap"),
        (["run", "FILE", "--on", "udt", "--no-lookahead"], "--no-lookahead"),
        (["run", "FILE", "--on", "udt", "--acks", "--trace", "x"], "--acks"),
        (["compare", "reno", "--on", "moon"], "--on"),
        (["agree", "FILE", "--on", "sim"], "--on: at least two"),
        (["agree", "FILE", "--on", "sim,moon"], "--on: 'moon'"),
        (["agree", "FILE", "--repeat", "0"], "--repeat"),
        (["agree", "FILE", "--seed", "-1"], "--seed"),
        (["agree", "/nowhere/x.toml"], "/nowhere/x.toml"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_mistakes_are_one_line(real, scenario_file, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    words = [str(scenario_file) if word == "FILE" else word for word in words]
    assert command_line(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err.splitlines()[-1]
    assert real.asked == []


def test_elsewhere_than_on_linux(real, scenario_file, monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert command_line(["agree", str(scenario_file)]) == 2
    assert capsys.readouterr().err == (
        "cwnd: --on linux, which emulates the network, needs Linux\n"
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is not Linux")
@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (PermissionError(1, "Operation not permitted"), "--on linux needs root"),
        (OSError(28, "No space left on device"), "--on linux failed: No space left on device"),
        ("no BTF", "--on linux: no BTF"),
    ],
    ids=str,
)
def test_what_the_kernel_refuses(monkeypatch, scenario_file, capsys, problem, said):
    def refuse(*_):
        raise _native.KernelError(problem) if isinstance(problem, str) else problem

    monkeypatch.setattr(cwnd._runs.real_time, "emulates", lambda: None)
    monkeypatch.setattr(_native, "run_real", refuse, raising=False)
    assert command_line(["run", str(scenario_file), "--on", "linux"]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    with pytest.raises(KernelError):
        cwnd.run(scenario_file, on="linux")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is not Linux")
def test_controllers_without_kernel_implementation_are_refused_before_anything_runs(
    real, two, tmp_path, capsys
):
    asked = tmp_path / "asked.toml"
    asked.write_text(two.replace('"simd"', '"copa"'))
    for words in (["compare", "simd", "copa"], ["run", asked], ["agree", asked]):
        on = "sim,linux" if words[0] == "agree" else "linux"
        assert command_line([*map(str, words), "--on", on]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert "copa: has no kernel implementation; these have one: aimd" in said.err
        assert said.err.count("\n") == 1
    with pytest.raises(_native.ScenarioError, match="copa: has no kernel implementation"):
        cwnd.compare(["copa"], on="linux")
    assert real.asked == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is not Linux")
def test_controllers_of_the_kernel(real, two, tmp_path, capsys):
    asked = tmp_path / "asked.toml"
    asked.write_text(two.replace('"simd"', '"kernel:cubic"'))
    agreement = cwnd.agree(asked, repeat=2)
    controllers = {flow["controller"] for flow in agreement.runs[0].measured_flows}
    assert controllers == {"reno", "kernel:cubic"}
    assert real.asked == [(1, "linux"), (2, "linux")]
    # In the simulator it is the law of that name.
    asked.write_text(two.replace('"simd"', '"kernel:htcp"'))
    assert command_line(["run", str(asked)]) == 2
    assert (
        capsys.readouterr().err
        == "cwnd: flow htcp-1: kernel:htcp: the simulator has no controller htcp\n"
    )
    asked.write_text(two.replace('"simd"', '"kernel:vegaz"'))
    assert command_line(["run", str(asked), "--on", "linux"]) == 2
    assert "kernel:vegaz: this kernel has" in capsys.readouterr().err
    asked.write_text(two.replace('"simd"', '"kernel:cubic"'))
    assert command_line(["run", str(asked), "--on", "udt"]) == 2
    assert "controllers of the kernel run on sim and linux only" in capsys.readouterr().err
    assert len(real.asked) == 2


def test_without_rights_nothing_is_announced(real, scenario_file, monkeypatch, capsys):
    def refuse() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(cwnd._runs.real_time, "emulates", refuse)
    for verb in (["run", "--on", "udt"], ["agree", "--on", "sim,udt"]):
        assert command_line([*verb, str(scenario_file)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("cwnd: --on udt needs root")
        assert said.err.count("\n") == 1
    assert real.asked == []


def reason() -> str | None:
    """Say why nothing can run in real time here, if so."""
    if not sys.platform.startswith("linux"):
        return "this is not Linux"
    try:
        cwnd._runs.real_time.emulates()
    except OSError as problem:
        return f"no link can be emulated here: {problem}"
    missing = [name for name, present, _ in _native.kernel_check() if not present]
    return (
        f"the kernel's controllers cannot be loaded: no {', '.join(missing)}" if missing else None
    )


@pytest.mark.slow
def test_the_kernels_tcp_fills_the_link():
    why = reason()
    if why is not None:
        pytest.skip(why)
    result = cwnd.run(cwnd.Scenario.from_toml(LINUX), on="linux")
    assert result.on == "linux"
    assert [flow["name"] for flow in result.measured_flows] == ["reno-1", "reno-2"]
    assert result.bottleneck["rate_bps"] == 10e6
    # All that 10 Mbit/s carry is 9.65 of payload; a busy machine may keep some of it.
    assert 5e6 < result.metrics["goodput_bps"] < 10e6
    for flow in result.measured_flows:
        assert flow["min_rtt_s"] >= 0.02
        assert 1 <= flow["mean_window"] < 60
