"""Recorded links: formats of traces, and the command that converts them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cwnd
from cwnd._runs import link_traces
from cwnd._runs.defaults import TRACE_FORMATS
from cwnd._runs.link_traces import LinkTrace, read_link_trace, write_link_trace
from cwnd.errors import ArgumentError

RATES = [8e6, 0.0, 2.5e6, 0.0]
"""Rates of four seconds, which the file of each format has; the last one is 0."""
FILES = {
    "pensieve": "0 77\n1 8\n2.0 0\n3\t2.5\n4 0.0\n",
    "csv": "time_s,rate_mbps\r\n0,8\r\n1,0.0\r\n2,2.5\r\n3,0.0\r\n\r\n",
    "netem-trace": json.dumps(
        [
            {"start_time": at, "value": {"gbps": 0, "bps": int(rate)}, "duration": 1.0}
            for at, rate in enumerate(RATES)
        ]
    ),
}
OTHER_FILES = {
    "duration.csv": "rate_kbps,duration_ms,note\n8000,1000,a\n0,1000,b\n2500,1000,c\n0,1000,d\n",
    "series.csv": (
        "start_time_secs,bandwidth_bps,duration_secs\n0,8000000,1\n1,0,1\n2,2500000,1\n3,0,1\n"
    ),
    "static.json": json.dumps(
        {
            "RepeatedBwPatternConfig": {
                "pattern": [
                    {"StaticBwConfig": {"bw": "8Mbps", "duration": "1s"}},
                    {"StaticBwConfig": {"bw": "0bps"}},
                    {"StaticBwConfig": {"bw": {"gbps": 0, "bps": 2500000}, "duration": None}},
                    {"StaticBwConfig": {"bw": "0bps", "duration": {"secs": 1, "nanos": 0}}},
                ],
                "count": 0,
            }
        }
    ),
    "replayed.json": json.dumps(
        {
            "TraceBwConfig": {
                "pattern": [["500ms 500ms", ["8Mbps", "0Mbps"]], ["1s", ["2Mbps 500kbps", "0bps"]]]
            }
        }
    ),
}


def _points(*starts: object) -> str:
    """Return a series of points of 50 s with these starts."""
    value = {"gbps": 0, "bps": 1}
    return json.dumps([{"start_time": at, "value": value, "duration": 50} for at in starts])


def _static(bits: str) -> str:
    """Return a model of a rate of this JSON value."""
    return f'{{"StaticBwConfig": {{"bw": {{"bps": {bits}}}}}}}'


def _repeated(count: int, *patterns: str) -> str:
    """Return a model that repeats others."""
    pattern = ", ".join(patterns)
    return f'{{"RepeatedBwPatternConfig": {{"count": {count}, "pattern": [{pattern}]}}}}'


@pytest.fixture
def trace(command, tmp_path):
    """Run a command of `cwnd trace` on a file with this text."""

    def run(verb: str, text: str, *arguments: object, name: str = "file"):
        file = tmp_path / name
        file.write_text(text)
        return command("trace", verb, file, *arguments)

    return run


@pytest.mark.parametrize("text", [*FILES.values(), *OTHER_FILES.values()])
def test_formats_have_the_same_trace(trace, tmp_path, text):
    """The opportunities are those of the rates: n are complete after n * 12032 bits."""
    out = tmp_path / "out"
    assert trace("convert", text, out).returncode == 0
    times = [int(line) for line in out.read_text().splitlines()]
    bits = 8 * 1504
    # ceil(1 s * 8 Mbit/s * k / n) for each k, and those of the third second behind the rest.
    first, rest = divmod(8_000_000, bits)
    expected = [-(-1000 * bits * k // 8_000_000) for k in range(1, first + 1)]
    third = [bits * (k + 1) - rest for k in range((2_500_000 + rest) // bits)]
    expected += [2000 - (-1000 * need // 2_500_000) for need in third]
    # The last second has rate 0: mahimahi's format ends with an opportunity.
    assert times == [*expected, 4000]


@pytest.mark.parametrize("form", ["mahimahi", *FILES])
@pytest.mark.parametrize("source", FILES)
def test_a_trace_survives_a_conversion_to_each_format(trace, command, tmp_path, source, form):
    there, back, direct = (tmp_path / name for name in ("there", "back", "direct"))
    assert trace("convert", FILES[source], there, "--to", form).returncode == 0
    assert command("trace", "convert", there, back).returncode == 0
    assert trace("convert", FILES[source], direct).returncode == 0
    assert back.read_text() == direct.read_text()
    found = json.loads(command("trace", "info", there, "--json").stdout)
    assert found["format"] == form
    assert found["duration_s"] == pytest.approx(4)


TINY_SEGMENTS = st.lists(
    st.tuples(
        st.floats(1e-12, 1e-8) | st.floats(1e-8, 3),
        st.just(0.0) | st.floats(1e-12, 1) | st.floats(1, 1e7),
    ),
    min_size=1,
    max_size=20,
).filter(lambda segments: any(rate for _, rate in segments))


@example("mahimahi", [(1e6, 1.0)])
@example("csv", [(1e6 / 7, 1.0)] * 7)
@example("csv", [(1e-10, 1e-10), (1.0, 0.0)])
@example("pensieve", [(1e-10, 1.0)])
@example("pensieve", [(0.1, 1.0), (1e-10, 1.0)])
@example("netem-trace", [(1e-10, 1e3), (1.0, 0.4)])
@given(st.sampled_from(TRACE_FORMATS), TINY_SEGMENTS)
def test_each_file_that_is_written_can_be_read(form, segments):
    durations, rates = map(np.array, zip(*segments, strict=True))
    try:
        text = write_link_trace(LinkTrace(durations, rates, None), form)
    except ArgumentError:
        times = form == "pensieve" and durations.min() < 2e-9
        assert times or (form == "netem-trace" and rates[rates > 0].min() <= 0.5)
        return
    with TemporaryDirectory() as home:
        file = Path(home) / "file"
        file.write_text(text)
        found, recognised = read_link_trace(str(file))
    assert recognised == form
    assert found.durations_s.sum() == pytest.approx(durations.sum(), rel=1e-8, abs=1e-3)
    if form != "mahimahi":
        assert found.durations_s == pytest.approx(durations, rel=1e-8, abs=1.1e-9)
        assert found.rates_bps == pytest.approx(rates, rel=1e-8, abs=0.5)
        assert (found.rates_bps == 0).tolist() == (rates == 0).tolist()


def test_mahimahi_is_kept_bit_by_bit(trace, tmp_path):
    text = "0\n0\n3\n4\n4\n4\n9\n"
    out, again = tmp_path / "x.csv", tmp_path / "again"
    assert trace("convert", text, out, "--to", "csv").returncode == 0
    assert out.read_text().splitlines()[:4] == [
        "time_s,duration_s,rate_bps",
        "0,0.001,24064000",
        "0.001,0.001,0",
        "0.002,0.001,12032000",
    ]
    assert trace("convert", out.read_text(), again).returncode == 0
    # Opportunities at 0 are of the first millisecond.
    assert again.read_text() == text.replace("0\n0\n", "1\n1\n")


def test_a_time_may_differ_from_the_end_before_by_its_rounding(trace):
    thirds = [(at / 3, 1 / 3) for at in range(4)]
    rows = [f"{1.7e9 + at:.6f},{length:.6f},1" for at, length in thirds]
    done = trace("info", "\n".join(["time_s,duration_s,rate_bps", *rows]), "--json")
    assert json.loads(done.stdout)["duration_s"] == pytest.approx(4 / 3, abs=4e-6)
    assert trace("info", _points(1.7e9 + 1 / 3, 1.7e9 + 50 + 1 / 3)).returncode == 0


def test_info(trace, check_json):
    done = trace("info", FILES["csv"])
    assert done.stdout.splitlines()[1:] == [
        "rate: 2.625 Mbit/s on average, 0 bit/s to 8 Mbit/s in windows of about 1 s",
        "longest time without capacity: 1 s",
    ]
    document = json.loads(trace("info", FILES["csv"], "--json").stdout)
    check_json(document, "`cwnd trace info FILE --json`")
    assert document == {
        "format": "csv",
        "duration_s": 4.0,
        "mean_rate_bps": 2.625e6,
        "min_rate_bps": 0.0,
        "max_rate_bps": 8e6,
        "longest_outage_s": 1.0,
        "min_delay_s": None,
        "mean_delay_s": None,
        "max_delay_s": None,
    }


SEGMENTS = st.lists(
    st.tuples(st.floats(1e-9, 3), st.floats(0, 1e10), st.floats(0, 10)), min_size=1, max_size=20
).filter(lambda segments: any(rate for _, rate, _ in segments))
"""Durations, rates and delays."""


@example([(1.0, 1e6, 0.0), (0.9, 100e6, 0.0)])
@example([(0.1, 1e6 / 3, 0.1)] * 7)
@given(SEGMENTS)
def test_the_mean_lies_between_the_least_and_the_largest(segments):
    summary = LinkTrace(*map(np.array, zip(*segments, strict=True))).summary()
    for what in ("rate_bps", "delay_s"):
        least, mean, most = (summary[f"{which}_{what}"] for which in ("min", "mean", "max"))
        assert least <= mean <= most
    rates = [rate for _, rate, _ in segments]
    assert min(rates) <= summary["min_rate_bps"]
    assert summary["max_rate_bps"] <= max(rates)


@pytest.mark.parametrize(
    ("rates", "outage"),
    [([0, 0, 1, 0, 0, 0, 1, 1, 0], 3), ([0, 0, 1], 2), ([1, 0], 1), ([1, 1], 0)],
)
def test_the_longest_outage(rates, outage):
    trace = LinkTrace(np.ones(len(rates)), np.array(rates, dtype=float), None)
    assert trace.summary()["longest_outage_s"] == outage


def test_windows_have_equal_lengths_of_about_one_second():
    """Those of 1.9 s are two of 0.95 s."""
    trace = LinkTrace(np.array([1.0, 0.9]), np.array([1e6, 100e6]), None)
    summary = trace.summary()
    assert summary["mean_rate_bps"] == pytest.approx(91e6 / 1.9)
    assert summary["min_rate_bps"] == pytest.approx(1e6)
    assert summary["max_rate_bps"] == pytest.approx((0.05 * 1e6 + 0.9 * 100e6) / 0.95)


def test_delays_and_lines_of_equal_duration(trace, tmp_path):
    text = "rate_bps,delay_ms\n1504000,20\n0,30.4\n1504000,10\n"
    out, delays = tmp_path / "out", tmp_path / "delays"
    interval = ("--interval", "20ms")
    done = trace("convert", text, out, *interval)
    assert done.stderr == "cwnd: the delays are not written: --delays FILE writes them\n"
    done = trace("convert", text, out, *interval, "--delays", delays)
    assert (done.returncode, done.stderr) == (0, "")
    assert out.read_text() == "8\n16\n44\n52\n60\n"
    assert delays.read_text() == "20\n20\n30\n30\n10\n10\n"
    document = json.loads(trace("info", text, *interval, "--json").stdout)
    assert document["mean_delay_s"] == pytest.approx(0.06 / 3 + 0.0004 / 3)
    assert (document["min_delay_s"], document["max_delay_s"]) == (0.01, 0.0304)
    assert "delay: 20.13 ms on average" in trace("info", text, *interval).stdout
    again = tmp_path / "again.csv"
    assert trace("convert", text, again, *interval, "--to", "csv").stderr == ""
    assert json.loads(trace("info", again.read_text(), "--json").stdout) == document


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1\n2.5\n", ":2: `2.5` is not a whole number of milliseconds; a file of rates has a "),
        ("3\n1\n", ":2: times do not decrease"),
        ("", ": a trace has at least one time, and its last one is above 0"),
        ("0 1\n1 2\n1 3\n", ":3: times increase"),
        ("0 1\n1 -2\n", ":2: `-2` is not a rate in Mbit/s: a number of at least 0"),
        ("0 1\n1 nan\n", ":2: `nan` is not a rate in Mbit/s"),
        ("0 1\n1\n", ":2: `1` is not a time in seconds and a rate in Mbit/s"),
        ("0 1\n", ": a trace has at least two lines"),
        ("0 0\n1 0\n", ": a trace has at least one rate above 0"),
        ("time_s,rate_bps\n0,1\n0,2\n", ":3: times increase"),
        ("time_s,rate_bps\n0,1\n1,x\n", ":3: `x` is not a rate: a number of at least 0"),
        ("time_s,rate_bps\n0,1\n1\n", ":3: the first line has 2 columns, this one 1"),
        ("time_s,rate_bps\n0,1\n", ": one line with a time has no duration"),
        ("time_s,rate_bps\n", ": no rates"),
        ("time,rate_bps\n0,1\n", ":1: the column `time` has no unit of s, secs, ms, us"),
        ("time_s,rate_foo\n0,1\n", ":1: the column `rate_foo` has no unit of bps, bit, "),
        ("time_s,rate_bps,bandwidth_bps\n0,1,1\n", ":1: two columns are a rate"),
        ('note,"rate_b\nps"\n0,1\n', r":1: the column `rate_b\nps` has no unit of bps, bit, "),
        ('{"a\\n\\u001b": {}}', r": a\n\x1b: of the models, StaticBwConfig, "),
        ("time_s,loss\n0,1\n", ":1: no column is a rate: the first line has names such as "),
        ("duration_s,rate_bps\n0,1\n", ":2: a duration is above 0"),
        (
            "time_s,duration_s,rate_bps\n0,1,1\n100,1,3\n",
            ":3: this line begins at 100 s and the one before ends at 1 s: leave no gap and no ",
        ),
        (
            "time_ms,duration_ms,rate_bps\n5,10,1\n15,10,1\n15.0,10,3\n",
            ":4: this line begins at 0.015 s and the one before ends at 0.025 s: ",
        ),
        (_points(0, 100, 50), ": [1] begins at 100 s and the one before ends at 50 s: leave no "),
        (_points(0, 50 + 3e-6), ": [1] begins at 50.000003 s and the one before ends at 50 s: "),
        (_points(0, 50, 50), ": [2] begins at 50 s and the one before ends at 100 s: "),
        (_points("x"), ": `x` is not the start of [0], in seconds: a number of at least 0"),
        (_points(0, True), ": `true` is not the start of [1], in seconds"),  # noqa: FBT003
        ("rate_bps\n1\n", ":1: no column is a time: add --interval, the duration of a line"),
        ("[\n{]", ":2: not JSON: "),
        ("[]", ": no rates"),
        ("{}", ": the document: not a series of points or a model"),
        ('[{"start_time": 0}]', ": [0]: not an object with start_time, value, duration"),
        ('[{"start_time": 0, "value": {}, "duration": 0}]', ": [0].duration: a duration is above"),
        ("0 1\n1e300 2\n", ": a trace lasts at most 10^6 s"),
        ("0 1\n1 1e300\n", ": a rate is at most 10 Tbit/s"),
        ("time_s,rate_bps,delay_s\n0,1,0\n1,1,1e9\n", ": a delay is at most 2 h"),
        ("[" * 90000, ": nested too deeply"),
        (
            '{"RepeatedBwPatternConfig": {"count": 1, "pattern": [' * 20000 + "]}}" * 20000,
            ": nested too deeply",
        ),
        (
            '{"NormalizedBwConfig": {}}',
            ": NormalizedBwConfig: of the models, StaticBwConfig, TraceBwConfig, ",
        ),
        (_static("9" * 400), ": `" + "9" * 40 + "…` is not a rate at StaticBwConfig.bw: a number "),
        (_static("true"), ": `true` is not a rate at StaticBwConfig.bw: a number of at least 0"),
        (_static('"8"'), ": `8` is not a rate at StaticBwConfig.bw: a number of at least 0"),
        (_static("1e400"), ": `Infinity` is not a rate at StaticBwConfig.bw"),
        (
            '{"RepeatedBwPatternConfig": {"count": true, "pattern": [{"StaticBwConfig": {}}]}}',
            ": RepeatedBwPatternConfig.count: `true` is not a whole number",
        ),
        ("rate_bps,duration_s\n1,1e308\n1,1e308\n", ": a trace lasts at most 10^6 s"),
        ('{"StaticBwConfig": {"bw": "8MBps"}}', ": StaticBwConfig.bw: `8MBps` is not like 12Mbps"),
        (
            '{"TraceBwConfig": {"pattern": [["1s"]]}}',
            ": TraceBwConfig.pattern[0]: not a duration and a list of rates",
        ),
        (
            json.dumps(
                {"RepeatedBwPatternConfig": {"pattern": [json.loads(OTHER_FILES["static.json"])]}}
            ),
            ": RepeatedBwPatternConfig.pattern[0].RepeatedBwPatternConfig: a pattern in another ",
        ),
    ],
)
def test_errors_name_the_file_and_the_line(trace, tmp_path, text, problem):
    done = trace("info", text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"{tmp_path / 'file'}{problem}" in done.stderr


def test_other_errors_are_one_line(trace, command, tmp_path):
    out = tmp_path / "out"
    for text, arguments, problem in (
        ("1\n2\n", ["--interval", "1s"], "the format mahimahi has times: leave out --interval"),
        (FILES["csv"], ["--interval", "1s"], ":1: a column is a time: leave out --interval"),
        ("rate_bps\n1\n", ["--interval", "1"], "--interval: a time needs a unit"),
        (FILES["csv"], ["--delays", tmp_path / "d"], "the trace has no delays for --delays"),
        (
            "0 1\n1 1\n1.0000000001 1\n",
            ["--to", "pensieve"],
            "pensieve have nine decimals: a duration of this ",
        ),
        ("0 1\n1 1e-8\n", ["--to", "netem-trace"], "the rate 0.01 bit/s is 0 in the format netem-"),
        (
            "time_s,rate_bps,delay_s\n0,1,1\n1e5,1,1\n",
            ["--delays", tmp_path / "d"],
            "at most 10000000 delays, one for each 10 ms; this one has 20000000",
        ),
        ("0 1\n1e3 2e5\n", [], "a trace has at most 10000000 opportunities, this one has 166223"),
    ):
        done = trace("convert", text, out, *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert problem in done.stderr
        assert not out.exists()
    assert "No such file" in command("trace", "info", tmp_path / "none").stderr


def test_convert_needs_three_files(command, tmp_path):
    """A file under two names is written once only, and FILE is not written."""
    text = "time_s,rate_bps,delay_ms\n0,8000000,20\n1,0,30\n"
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "hard").hardlink_to(tmp_path / "a.csv")
    (tmp_path / "soft").symlink_to("a.csv")
    (tmp_path / "later").symlink_to("out")
    for arguments, problem in (
        (["a.csv"], "FILE and OUT are the same file, a.csv"),
        (["hard"], "FILE and OUT are the same file, hard"),
        (["soft"], "FILE and OUT are the same file, soft"),
        (["out", "--delays", "a.csv"], "FILE and --delays are the same file, a.csv"),
        (["out", "--delays", "out"], "OUT and --delays are the same file, out"),
        (["out", "--delays", f"../{tmp_path.name}/out"], "OUT and --delays are the same file, "),
        (["out", "--delays", "later"], "OUT and --delays are the same file, later"),
    ):
        done = command("trace", "convert", "a.csv", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert problem in done.stderr
        assert (tmp_path / "a.csv").read_text() == text
        assert not (tmp_path / "out").exists()


LINK = (
    'duration = "1s"\n[dumbbell]\ndelay = "1ms"\ntrace = "TRACE"\n'
    'back = { rate = "1gbit" }\n[[flow]]\ncontroller = "reno"\n'
)
"""A scenario with a trace."""


def test_a_trace_is_a_regular_file_of_limited_size(command, complete, tmp_path):
    """Each reader refuses another file without waiting for its end."""
    (tmp_path / "s.toml").write_text(LINK.replace("TRACE", "file"))
    file = tmp_path / "file"
    for make, problem in (
        (file.mkdir, "not a regular file"),
        (lambda: file.symlink_to("/dev/zero"), "not a regular file"),
        (lambda: os.truncate(file, (128 << 20) + 1), "larger than 128 MiB"),
        (lambda: file.write_bytes(b"\xff\xfe1\n"), "not a text file in UTF-8"),
    ):
        if file.is_dir():
            file.rmdir()
        file.unlink(missing_ok=True)
        if problem.startswith("larger"):
            file.touch()
        make()
        for words in (("trace", "info", file), ("run", tmp_path / "s.toml")):
            done = command(*words)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
            assert f"{file}: {problem}" in done.stderr
    file.unlink()
    os.mkfifo(file)
    for words in (("trace", "info", file), ("run", tmp_path / "s.toml")):
        done = complete(sys.executable, "-m", "cwnd", *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"{file}: not a regular file" in done.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1\n2\n3\n4\n", "more than 3 lines"),
        ("1\r2\r3\r4\r", "more than 3 lines"),
        ("0 1\n1 1\n2 1\n3 1\n", "more than 3 lines"),
        ("time_s,rate_bps\n0,1\n1,1\n2,1\n", "more than 3 lines"),
        ('{"TraceBwConfig": {"pattern": [["1s", ["1bps", "1bps", "1bps", "1bps"]]]}}', "3 rates"),
        (_repeated(2, _repeated(2, _static("1"))), "3 rates"),
        (_repeated(1, *[_repeated(2, _static("1"))] * 2), "3 rates"),
        (_repeated(10**9, _static("1")), "3 rates"),
    ],
)
def test_the_number_of_lines_is_limited(tmp_path, monkeypatch, text, problem):
    monkeypatch.setattr(link_traces, "MAX_LINES", 3)
    (tmp_path / "file").write_text(text)
    with pytest.raises(ArgumentError, match=problem):
        read_link_trace(str(tmp_path / "file"))


def test_as_many_lines_as_allowed_are_read_and_written(tmp_path, monkeypatch):
    """CSV has a line for the header, so that no file has the three rates of the model."""
    monkeypatch.setattr(link_traces, "MAX_LINES", 3)
    for text in ("1\n2\n3\n\n", _repeated(3, _static("1"))):
        (tmp_path / "file").write_text(text)
        trace, form = read_link_trace(str(tmp_path / "file"))
        assert write_link_trace(trace, form)
        with pytest.raises(ArgumentError, match="at most 3 lines and 128 MiB, this one would"):
            write_link_trace(trace, "csv")


def test_a_byte_order_mark_is_no_part_of_a_trace(command, tmp_path):
    (tmp_path / "s.toml").write_text(LINK.replace("TRACE", "up"))
    for mark in ("", "\ufeff"):
        (tmp_path / "up").write_text(f"{mark}1\n2\n", encoding="utf-8")
        assert command("trace", "info", tmp_path / "up").stdout.count("12.03 Mbit/s") == 3
        assert command("run", tmp_path / "s.toml").returncode == 0


def test_a_converted_trace_is_the_link_of_a_scenario(trace, tmp_path):
    """The link offers the mean rate of the CSV, and nothing in its seconds of rate 0."""
    assert trace("convert", FILES["csv"], tmp_path / "up").returncode == 0
    file = tmp_path / "s.toml"
    file.write_text(
        'duration = "8s"\nsample = "1s"\n[dumbbell]\ndelay = "1ms"\ntrace = "up"\n'
        'back = { rate = "1gbit" }\n[[cbr]]\nrate = "20mbit"\nmeasured = true\n'
    )
    link = cwnd.run(file).record["links"][0]
    assert link["rate_bps"] == pytest.approx(2.625e6, rel=1e-3)
    offered = link["capacity_bps"].tolist()
    assert offered == pytest.approx([*RATES, *RATES], abs=3 * 8 * 1504)


def test_each_direction_has_a_trace_on_the_command_line(command, tmp_path):
    (tmp_path / "up").write_text("8\n")
    (tmp_path / "down").write_text("1\n")
    file = tmp_path / "s.toml"
    file.write_text(
        'duration = "1s"\n[dumbbell]\ndelay = "1ms"\nrate = "1mbit"\n'
        '[[flow]]\ncontroller = "reno"\n'
    )
    one = ("--set", "dumbbell={delay='1ms',trace='up'}")
    both = ("--set", "dumbbell={delay='1ms',trace='up',back={trace='down'}}")
    done = command("run", file, *one, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "set `dumbbell.back.trace` too, which may be the same file" in done.stderr
    links = json.loads(command("run", file, *both, "--json", cwd=tmp_path).stdout)["links"]
    rates = [link["rate_bps"] for link in links]
    assert rates == [pytest.approx(1504 * 1e3), pytest.approx(8 * 1504 * 1e3)]
