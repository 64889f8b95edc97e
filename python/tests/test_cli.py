from __future__ import annotations

import html
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest

from cwnd._cli import outputs

SMALL = ("--rate", "10mbit", "--rtt", "40ms", "--time", "5s", "--repeat", "2", "--flows", "2")


def one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """A user's mistake: one line, exit status 2, nothing on standard output."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("cwnd: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_compare(command):
    done = command("compare", "simd", *SMALL)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for word in ("Each alone", "Half and half against reno", "simd", "share", "fair"):
        assert word in done.stdout


LAW = """
class Law:
    '''Any AIMD.'''

    def __init__(self, beta=0.5, widest=1e9):
        self.beta, self.widest = beta, widest

    def grow(self, w, acked, cx):
        if w > self.widest:
            raise KeyError("too wide")
        return w + acked / w

    def cut(self, w, why, cx):
        return w * (1 - self.beta)
"""


@pytest.fixture
def here(tmp_path, two):
    """A directory with a scenario, and with a controller written in Python."""
    (tmp_path / "two.toml").write_text(two)
    (tmp_path / "mine.py").write_text(LAW)
    uses = two.replace('"simd"', '"mine.py:Law(beta=1/8)"')
    (tmp_path / "uses.toml").write_text(uses)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("simd", *SMALL),
        ("simd", "aimd(0.31, 1/8)", *SMALL, "--reference", "vegas", "--queue", "1.5bdp"),
        ("simd", *SMALL, "--loss", "0.1%", "--warmup", "1s", "--rtt", "20ms,60ms", "--flows", "4"),
        ("simd", *SMALL, "--rtt", "20ms..60ms", "--warmup", "0"),
        ("simd", *SMALL, "--set", "tcp={packet='1000b'}", "--set", "sample=50ms"),
        ("mine.py:Law(beta=1/8)", "mine.py:Law", *SMALL),
        ("simd", *SMALL, "--reference", "mine.py:Law"),
        ("two.toml", "--set", "duration=8s", "--repeat", "2"),
        ("vegas", "two.toml", "--set", "flow[0].count=3", "--set", "duration=8s", "--repeat", "2"),
        ("uses.toml", "--set", "duration=8s", "--repeat", "2", "--seed", "7"),
        ("vegas", *SMALL[:-4], "--flows", "4", "--time", "10s", "--repeat", "auto"),
    ],
    ids=" ".join,
)
def test_the_command_that_compare_prints_repeats_it(command, here, arguments):
    done = command("compare", *arguments, "--json", cwd=here)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["no_rerun"] is None
    program, *again = shlex.split(document["rerun"])
    assert program == "cwnd"
    repeated = command(*again, "--json", cwd=here)
    assert repeated.returncode == 0, repeated.stderr
    assert json.loads(repeated.stdout) == document


def test_compare_says_how_many_repeats_it_made(command):
    done = command(
        "compare",
        "simd(reset=avoidance)",
        *SMALL[:4],
        "--time",
        "10s",
        "--flows",
        "4",
        "--conventions",
        "ns2",
        "--repeat",
        "auto",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "20 repeats: every verdict is decided\n"
    assert json.loads(done.stdout)["network"]["repeat"] == 20


def test_compare_takes_a_scenario(command, here):
    done = command("compare", "two.toml", "--repeat", "2", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "4 flows of two on 10 Mbit/s" in done.stdout
    assert "at left-right" in done.stdout


def test_compare_writes_tables(command, tmp_path):
    trace = tmp_path / "trace"
    done = command("compare", "simd", *SMALL, "--json", "--trace", trace)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"tables: {trace}\n"
    assert (trace / "runs.parquet").exists()
    assert json.loads((trace / "compare.json").read_text()) == json.loads(done.stdout)


def test_an_exception_in_a_controller_is_one_line(command, here):
    law = "mine.py:Law(widest=20)"
    told = ("mine.py:10: in grow: KeyError: 'too wide'",)
    one_line(command("compare", law, *SMALL, cwd=here), *told)
    (here / "wide.toml").write_text((here / "two.toml").read_text().replace("simd", law))
    one_line(command("run", "wide.toml", cwd=here), *told)


def test_a_law_in_python_has_no_kernel_form(command, here):
    said = "mine.py:Law: a law in Python has no kernel implementation"
    one_line(command("kernel", "load", "mine.py:Law", cwd=here), said)


def test_compare_prints_one_json_document(command):
    done = command("compare", "simd", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["reference"] == "reno"
    assert document["network"]["rate_bps"] == 10e6


def test_compare_writes_what_it_is_asked_to(command, tmp_path):
    report, plot = tmp_path / "r.html", tmp_path / "p.svg"
    done = command("compare", "simd", *SMALL, "--json", "--report", report, "--plot", plot)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    assert report.stat().st_size > 1e6
    assert plot.read_text().startswith("<?xml")


def test_run(command, scenario_file, tmp_path):
    trace, report, plot = tmp_path / "trace", tmp_path / "r.html", tmp_path / "p.png"
    done = command(
        "run", scenario_file, "--report", report, "--plot", plot, "--trace", trace, "--seed", "3"
    )
    assert done.returncode == 0, done.stderr
    assert "reno" in done.stdout
    assert "seed 3" in done.stdout
    assert (trace / "samples.parquet").exists()
    assert report.exists()
    assert plot.exists()


def test_run_prints_one_json_document(command, scenario_file):
    done = command("run", scenario_file, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scenario"] == "two"


def test_run_replaces_values_and_repeats_itself(command, scenario_file, tmp_path):
    report = tmp_path / "r.html"
    texts = ("dumbbell.rate=5mbit", "flow[1].count=3", "dumbbell.queue={kind='red', ecn=true}")
    words = [word for text in texts for word in ("--set", text)]
    done = command("run", scenario_file, *words, "--seed", "3", "--json", "--report", report)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert len(document["flows"]) == 6
    assert document["links"][0]["rate_bps"] == 5e6
    (again,) = re.findall(r"<code[^>]*>(cwnd run .*?)</code>", report.read_text(), re.DOTALL)
    program, *arguments = shlex.split(html.unescape(again))
    assert program == "cwnd"
    assert same(json.loads(command(*arguments, "--json").stdout), document)


def same(one: dict, other: dict) -> bool:
    """Whether two documents of runs are equal, but for the wall clock."""
    return all(one[key] == other[key] for key in one if key != "engine")


def test_run_writes_packets(command, scenario_file, tmp_path):
    pcap = tmp_path / "x.pcap"
    done = command("run", scenario_file, "--pcap", pcap, "--link", "left-right")
    assert done.returncode == 0, done.stderr
    assert pcap.read_bytes()[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1", b"\x0a\x0d\x0d\x0a")


def test_a_full_disk_is_one_line_with_the_file(command, scenario_file):
    done = command("run", scenario_file, "--report", "/dev/full")
    assert (done.returncode, done.stderr) == (2, "cwnd: /dev/full: No space left on device\n")


def test_lookahead_does_not_change_the_document(command, scenario_file):
    ways = [(), ("--no-lookahead",)]
    runs = [command("run", scenario_file, "--json", *options) for options in ways]
    assert [done.returncode for done in runs] == [0, 0]
    with_lookahead, without = (json.loads(done.stdout) for done in runs)
    assert same(with_lookahead, without)
    assert with_lookahead["engine"]["events"] < without["engine"]["events"]


def test_algorithms(command, tmp_path, check_json):
    listed = command("algorithms").stdout
    for name in ("reno", "simd", "aira", "aiad", "daimd", "udt", "cubic"):
        assert name in listed
    one = command("algorithms", "simd").stdout
    assert "beta" in one
    assert "Jin" in one
    document = json.loads(command("algorithms", "simd", "--json").stdout)
    check_json(document, "`cwnd algorithms --json`")
    (described,) = document["algorithms"]
    assert described["name"] == "simd"
    assert described["equations"]
    (tmp_path / "mine.py").write_text(LAW)
    mine = command("algorithms", "mine.py:Law(beta=1/8)", cwd=tmp_path)
    assert mine.returncode == 0, mine.stderr
    for word in ("mine.py:Law", "Any AIMD.", "beta", "0.5", "widest"):
        assert word in mine.stdout


def test_schema(command):
    schema = json.loads(command("schema").stdout)
    assert "dumbbell" in schema["properties"]


def test_doctor(command, check_json):
    done = command("doctor")
    assert done.returncode == 0
    assert "numpy" in done.stdout
    check_json(json.loads(command("doctor", "--json").stdout), "`cwnd doctor --json`")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(command, shell):
    assert "_CWND_COMPLETE" in command("completion", shell).stdout


@pytest.mark.parametrize(
    ("words", "completion"),
    [
        ("cwnd compare si", "plain,simd"),
        ("cwnd compare ./tw", "file,./tw"),
        ("cwnd reproduce si", "plain,simd"),
    ],
)
def test_arguments_complete(words, completion):
    done = subprocess.run(
        [sys.executable, "-m", "cwnd"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {"_CWND_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "2"},
    )
    assert completion in done.stdout


def test_a_bar_shows_the_progress_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(outputs, "PATIENCE", 0.0)
    with outputs.show_progress("simulating") as progress:
        progress(0.5)
    shown = sys.stderr.getvalue()
    assert "simulating" in shown
    assert "50%" in shown


def test_help_and_version(command):
    import cwnd

    assert command("--version").stdout == f"cwnd {cwnd.__version__}\n"
    assert "compare" in command().stdout
    assert "--report" in command("compare", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare"], ["CONTROLLERS"]),
        (["compare", "a.toml", "b.toml"], ["one network", "a.toml and b.toml"]),
        (["compare", "/nowhere/x.toml"], ["/nowhere/x.toml"]),
        (["compare", "reno", "--loss", "2"], ["--loss"]),
        (["compare", "reno", "--warmup", "5"], ["--warmup: a time needs a unit"]),
        (["compare", "reno", "--warmup", "200s"], ["--warmup"]),
        (["compare", "reno", "--rtt", "20ms,1"], ["--rtt: a time needs a unit"]),
        (["compare", "reno", "--rtt", "20ms..10ms"], ["--rtt", "A must be less than B"]),
        (["compare", "reno", "--rtt", "1ms,2ms,3ms"], ["--flows", "multiple of 6"]),
        (["compare", "reno", "--set", "dumbbell.rate"], ["--set", "PATH=VALUE"]),
        (["compare", "reno", "--set", "dumbbell.rat=5mbit"], ["dumbbell.rat", "allowed"]),
        (["compare", "reno", "--set", "flow[0].count=3"], ["--set: flow[0].count: 3 is odd"]),
        (["compare", "reno", "--repeat", "often"], ["--repeat", "auto"]),
        (["compare", "reno", "--trace", "/proc/x"], ["--trace"]),
        (["compare", "renno"], ["renno", "reno"]),
        (["compare", "simd(gamma=2)"], ["gamma"]),
        (["compare", "simd(beta=2)"], ["beta"]),
        (["compare", "reno", "reno"], ["twice"]),
        (["compare", "reno", "--reference", "x"], ["x"]),
        (["compare", "reno", "--rate", "15"], ["--rate: a rate needs a unit, such as 15mbit"]),
        (["compare", "reno", "--rtt", "0.1"], ["--rtt: a time needs a unit, such as 100ms"]),
        (["send", "/etc/hosts", "localhost", "--rate-limit", "15"], ["a rate needs a unit"]),
        (["recv", "--max-bytes", "15"], ["a size needs a unit, such as 10GB"]),
        (["recv", "--reserve", "15"], ["a size needs a unit, such as 10GB"]),
        (["kernel", "trace", "reno", "--time", "5"], ["--time: a time needs a unit"]),
        (["compare", "reno", "--rate", "15mbps"], ["--rate", "15mbit"]),
        (["compare", "reno", "--rate", "nan"], ["--rate"]),
        (["compare", "reno", "--rate", "0"], ["--rate"]),
        (["compare", "reno", "--rtt", "fast"], ["--rtt", "100ms"]),
        (["compare", "reno", "--time", "-5s"], ["--time"]),
        (["compare", "reno", "--time", "10h"], ["--time", "2h"]),
        (["compare", "reno", "--queue", "blue"], ["--queue", "blue"]),
        (["compare", "reno", "--queue", "-3p"], ["--queue"]),
        (["compare", "reno", "--queue", "20"], ["--queue: a limit needs a unit, such as 20p"]),
        (["compare", "reno", "--time", "1ns"], ["--time"]),
        (["compare", "mine.py"], ["mine.py: name a class of the file"]),
        (["compare", "reno", "--flows", "0"], ["--flows"]),
        (["compare", "reno", "--flows", "3"], ["--flows"]),
        (["compare", "reno", "--flows", "1000000000"], ["--flows"]),
        (["compare", "reno", "--flows", "many"], ["--flows"]),
        (["compare", "reno", "--repeat", "0"], ["--repeat"]),
        (["compare", "reno", "--repeat", "1000000000"], ["--repeat"]),
        (["compare", "reno", "--seed", "-1"], ["--seed"]),
        (["compare", "reno", "--seed", "99999999999999999999"], ["--seed"]),
        (["compare", "reno", "--plot", "x.gif"], ["--plot", ".png", ".svg"]),
        (["compare", "reno", "--plot", "/nowhere/x.png"], ["--plot", "/nowhere/x.png"]),
        (["compare", "reno", "--report", "/"], ["--report"]),
        (["compare", "reno", "--frobnicate"], ["--frobnicate"]),
        (["run"], ["FILE"]),
        (["run", "/nowhere/x.toml"], ["/nowhere/x.toml"]),
        (["run", "/"], ["/"]),
        (["algorithms", "renno"], ["renno"]),
        (["completion", "tcsh"], ["tcsh"]),
        (["frobnicate"], ["frobnicate"]),
    ],
    ids=" ".join,
)
def test_mistakes_are_one_line(command, arguments, words):
    one_line(command(*arguments), *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pcap", "x.pcap"], ["--link", "left-right"]),
        (["--link", "left-right"], ["--pcap"]),
        (["--pcap", "x.pcap", "--link", "nowhere"], ["nowhere", "left-right"]),
        (["--trace", "/proc/x"], ["--trace"]),
        (["--acks"], ["--acks needs --trace"]),
        (["--seed", "-1"], ["--seed"]),
        (["--set", "dumbbell.rate"], ["--set", "PATH=VALUE"]),
        (["--set", "dumbbell.rate=15"], ["--set: dumbbell.rate: a rate needs a unit"]),
        (["--set", "flow[0].start=0..5"], ["--set: flow[0].start: a time needs a unit"]),
        (
            ["--set", "flow[0].bytes=1000"],
            ["--set: flow[0].bytes: a size needs a unit, such as 1460b"],
        ),
        (
            ["--set", "flow[0].tcp={min_rto=1}"],
            ["--set: flow[0].tcp.min_rto: a time needs a unit, such"],
        ),
        (["--set", "dumbbell.rat=5mbit"], ["dumbbell.rat", "allowed"]),
        (["--set", "flow[9].count=2"], ["--set", "flow[9].count"]),
        (["--set", "flow[0].count=many"], ["flow[0].count"]),
        (["--set", "tcp=[1"], ["--set", "tcp=[1"]),
        (["--set", "flow=5"], ["flow", "expected a list"]),
        (["--set", "seed=x"], ["seed", "whole number"]),
        (["--set", "seed=-1"], ["seed", "whole number"]),
        (["--set", "dumbbell={rate=1979-05-27}"], ["--set", "a date"]),
        (["--set", "dumbbell.queue=20"], ["--set: dumbbell.queue: a limit needs a unit"]),
        (["--set", "dumbbell.queue={min=5}"], ["dumbbell.queue.min: a threshold needs a unit"]),
    ],
    ids=" ".join,
)
def test_mistakes_of_run_are_one_line(command, scenario_file, tmp_path, arguments, words):
    one_line(command("run", scenario_file, *arguments, cwd=tmp_path), *words)


def test_options_of_the_dumbbell_are_not_for_a_file(command, scenario_file):
    done = command("compare", scenario_file, "--rate", "5mbit")
    one_line(done, "--rate: the network is a scenario", "--set dumbbell.rate=15mbit")


def test_mistakes_in_a_file_name_the_place(command, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('duration = "5s"\n[dumbbell]\nrate = "15mbps"\ndelay = "1ms"\n')
    one_line(command("run", path), f"{path}:3: dumbbell.rate")
    path.write_bytes(b"\xff\x00")
    one_line(command("run", path), str(path))


def test_outputs_are_tried_before_the_run(command, tmp_path):
    start = time.monotonic()
    done = command("compare", "reno", "--time", "2h", "--rate", "10gbit", "--report", tmp_path)
    one_line(done, "--report", str(tmp_path))
    assert time.monotonic() - start < 5
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_leaves_no_file(command, tmp_path):
    one_line(command("compare", "renno", "--report", tmp_path / "r.html"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "verb", [["algorithms"], ["schema"], ["compare", "simd", *SMALL, "--json"]]
)
def test_the_reader_may_go_away(spawn, verb):
    words = [sys.executable, "-m", "cwnd", *verb]
    process = spawn(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 141


def test_ctrl_c_stops_a_run(spawn):
    words = ["compare", "simd", "--rate", "10gbit", "--time", "2h"]
    pipe = subprocess.PIPE
    process = spawn(sys.executable, "-m", "cwnd", *words, stdout=pipe, stderr=pipe, text=True)
    time.sleep(2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    # The run itself takes minutes.
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (130, "", "cwnd: interrupted\n")


def test_a_run_of_few_round_trip_times_is_named(command, here):
    """A bare number of a file is in seconds, also that of a delay."""
    (here / "slow.toml").write_text(
        'duration = "20s"\n[dumbbell]\nrate = "5mbit"\ndelay = 20\n[[flow]]\ncontroller = "reno"\n'
    )
    said = "the measured time of 20 s is only 0.5 round-trip times of 40 s"
    assert said in command("run", "slow.toml", cwd=here).stdout
    done = command("compare", "simd", "--rtt", "3s", "--time", "20s", "--repeat", "1")
    assert "the measured time of 15 s is only 4.8 round-trip times of 3.1" in done.stdout
    assert "round-trip times of" not in command("compare", "simd", *SMALL).stdout


@pytest.mark.parametrize("kind", ["pdf", "png", "svg"])
def test_plots_keep_their_text(command, here, kind):
    plot = here / f"plot.{kind}"
    done = command("run", "two.toml", "--set", "duration=6s", "--plot", plot, cwd=here)
    assert done.returncode == 0, done.stderr
    content = plot.read_bytes()
    begins = {"pdf": b"%PDF-", "png": b"\x89PNG", "svg": b"<?xml"}
    assert content.startswith(begins[kind])
    if kind == "svg":
        assert b">window (packets)</text>" in content
    if kind == "pdf":
        assert b"/FontFile2" in content
        assert b"/Type3" not in content
    one_line(command("run", "two.toml", "--plot", "plot.jpg", cwd=here), "must end in .pdf, .png")


def test_a_plot_for_a_column(command, here):
    plot = here / "plot.svg"
    words = ("run", "two.toml", "--set", "duration=6s", "--column")
    done = command(*words, "--plot", plot, cwd=here)
    assert done.returncode == 0, done.stderr
    assert b'width="252pt"' in plot.read_bytes()
    one_line(command(*words, cwd=here), "--column needs --plot")
    words = ("compare", "simd", *SMALL)
    assert command(*words, "--panel", "delay", "--plot", plot).returncode == 0
    assert b">goodput (Mbit/s)</text>" in plot.read_bytes()
    assert b">queueing delay (ms)</text>" not in plot.read_bytes()
    one_line(command(*words, "--panel", "delay"), "--panel needs --plot")
    words = ("model", "reno-response", "--p", "0.01..0.1", "--column")
    assert command(*words, "--plot", plot).returncode == 0
    assert b'width="252pt"' in plot.read_bytes()
    one_line(command(*words), "--column needs --plot")
