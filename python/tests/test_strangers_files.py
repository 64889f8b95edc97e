"""Files that a stranger made: what every reader of them does, and what reaches the terminal."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys

import numpy as np
import pandas as pd
import pytest
import tomli_w

import cwnd
import cwnd._runs.real_time
from cwnd import _native, udt
from cwnd._cli import run as command_line
from cwnd._cli.terminal import echo_json
from cwnd._papers import runner
from cwnd._papers.exhibit import exhibits
from cwnd._sweeps.manifest import MANIFEST, _checksum_of
from cwnd._sweeps.reading import read_plan

EVIL = "x\x1b]52;c;aGk=\x07\x9b2J\x7f\u202e\u2028\rcwnd: all is well\n\x1b[2J"
"""Text that writes to the clipboard, clears the screen and feigns a line."""

SCENARIO = """
duration = "2s"
[dumbbell]
rate = "2mbit"
delay = "10ms"
[[flow]]
controller = "reno"
count = 2
"""

PLAN = """
controllers = ["reno"]
[base]
time = "2s"
flows = 2
[axes]
rate = ["1mbit"]
"""


def toml(**document) -> str:
    return tomli_w.dumps(document)


def frame(**columns) -> pd.DataFrame:
    """Make a table of runs as a sweep writes it."""
    table = {
        "key": ["a", "b"],
        "rate": ["1mbit", "2mbit"],
        "controller": ["reno", "reno"],
        "seed": [1, 1],
        "error": pd.Series([None, None], dtype="str"),
        "jain": [0.5, 1.0],
        "wall_s": [0.1, 0.1],
        "tcp_conventions": ["linux", "linux"],
    }
    return pd.DataFrame({name: v for name, v in (table | columns).items() if v is not None})


def add_file(home, number, runs, identity=None):
    """Add a part of a table or of bytes, with its checksum in the manifest."""
    name = f"part-{number:06}-0123456789abcdef"
    content = runs if isinstance(runs, bytes) else runs.to_parquet()
    files = {"runs": (len(content), hashlib.sha256(content).hexdigest())}
    document = {"runs": 2, "plan": identity or {}, "files": files}
    document["checksum"] = _checksum_of(document)
    for folder, part in (("runs", content), (MANIFEST, json.dumps(document).encode())):
        (home / folder).mkdir(parents=True, exist_ok=True)
        suffix = "json" if folder == MANIFEST else "parquet"
        written(home / folder / f"{name}.{suffix}", part)


def make_data(home, runs=None, plan=None, identity=None):
    """Make a data set of some runs, of a table or of bytes."""
    add_file(home, 1, frame() if runs is None else runs, identity)
    text = toml(axes={"rate": ["1mbit", "2mbit"]}, controllers=["reno"]) if plan is None else plan
    (home / "plan.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return home


def evil_data(home):
    runs = frame(
        rate=[EVIL, "2mbit"],
        controller=["reno", EVIL],
        error=[EVIL, EVIL],
        **{EVIL: [1.0, 2.0], "text": [EVIL, "y"]},
    )
    return make_data(home, runs, toml(axes={"rate": [EVIL]}, controllers=["reno", EVIL], x=EVIL))


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def traced(file) -> str:
    return SCENARIO.replace('rate = "2mbit"', f"trace = {json.dumps(str(file))}")


@pytest.fixture
def real(monkeypatch):
    """Run what is to run in real time on the simulator."""

    def run_real(scenario, seed, on, progress):
        (record,) = _native.simulate([(scenario, seed)])
        return {"record": record | {"notes": [EVIL]}, "limit": EVIL}

    monkeypatch.setattr(_native, "run_real", run_real, raising=False)
    monkeypatch.setattr(_native, "check_real", lambda *_: None, raising=False)
    monkeypatch.setattr(cwnd._runs.real_time, "emulates", lambda: None)


TITLED = f"title = {json.dumps(EVIL)}\n{SCENARIO}"

EVIL_COMMANDS = {
    "unknown command": lambda at: [EVIL],
    "unknown option": lambda at: ["run", f"--{EVIL}"],
    "missing file": lambda at: ["run", at / EVIL],
    "query tables": lambda at: ["query", evil_data(at / "o")],
    "query tables, JSON": lambda at: ["query", evil_data(at / "o"), "--json"],
    "query rows": lambda at: ["query", evil_data(at / "o"), "select * from runs"],
    "query rows, JSON": lambda at: ["query", evil_data(at / "o"), "select * from runs", "--json"],
    "query rows, CSV": lambda at: ["query", evil_data(at / "o"), "select * from runs", "--csv"],
    "query error": lambda at: ["query", evil_data(at / "o"), f"select {EVIL}"],
    "query cast": lambda at: ["query", evil_data(at / "o"), "select text::int from runs"],
    "query unit": lambda at: ["query", evil_data(at / "o"), "select bps(text) from runs"],
    "query report": lambda at: ["query", evil_data(at / "o"), "--report", at / "r\x1b[2J.html"],
    "query missing": lambda at: ["query", at / EVIL],
    "sweep key": lambda at: ["sweep", written(at / "p", toml(**{EVIL: 1})), "--out", at / "o"],
    "sweep value": lambda at: [
        *("sweep", written(at / "p", PLAN + f"rtt = [{json.dumps(EVIL)}]")),
        *("--out", at / "o"),
    ],
    "sweep rows": lambda at: [
        *("sweep", written(at / "p", PLAN.replace('["1mbit"]', f"[{json.dumps(EVIL)}]"))),
        *("--out", at / "o"),
    ],
    "sweep path": lambda at: [
        *("sweep", written(at / "p", toml(base=EVIL, controllers=[EVIL]))),
        *("--out", at / "o"),
    ],
    "sweep controller": lambda at: [
        *("sweep", written(at / "p", toml(controllers=[EVIL]))),
        *("--out", at / "o"),
    ],
    "sweep other": lambda at: ["sweep", written(at / "p", PLAN), "--out", evil_data(at / "o")],
    "run title": lambda at: ["run", written(at / "s", TITLED)],
    "run title, JSON": lambda at: ["run", written(at / "s", TITLED), "--json"],
    "run key": lambda at: ["run", written(at / "s", f"{json.dumps(EVIL)} = 1\n{SCENARIO}")],
    "run name": lambda at: ["run", written(at / "s", f"{SCENARIO}name = {json.dumps(EVIL)}")],
    "run set": lambda at: ["run", written(at / "s", SCENARIO), "--set", f"{EVIL}=1"],
    "run link": lambda at: ["run", written(at / "s", SCENARIO), "--pcap", "x", "--link", EVIL],
    "run expectation": lambda at: [
        *("run", written(at / "s", f"{SCENARIO}[expect]\n{json.dumps(EVIL)} = '>= 1'")),
        "--check",
    ],
    "run trace": lambda at: ["run", written(at / "s", traced(EVIL))],
    "trace line": lambda at: ["trace", "info", written(at / "t", f"1\n{EVIL}")],
    "trace column": lambda at: ["trace", "info", written(at / "t", f"rate_{EVIL},b\n")],
    "trace model": lambda at: ["trace", "info", written(at / "t", json.dumps({EVIL: {}}))],
    "trace name": lambda at: ["trace", "info", EVIL],
    "run controller": lambda at: [
        "run",
        written(at / "s", SCENARIO.replace("reno", "r\\u001b[2J")),
    ],
    "run law": lambda at: [
        *("run", written(at / "s", SCENARIO), "--set"),
        f"flow[0].controller={written(at / 'law.py', f'raise ValueError({EVIL!r})')}:Law",
    ],
    "compare title": lambda at: ["compare", written(at / "s.toml", TITLED), "--repeat", "2"],
    "compare name": lambda at: ["compare", EVIL],
    "agree title": lambda at: ["agree", written(at / "s", TITLED), "--repeat", "2"],
    "evaluate card": lambda at: [
        *("evaluate", "reno", "--test", "bursts", "--quick", "--out", at / "o", "--against"),
        written(at / "card.json", json.dumps({"tests": [{"id": EVIL, "grade": EVIL}], "on": EVIL})),
    ],
    "evaluate test": lambda at: ["evaluate", "reno", "--test", EVIL],
    "evaluate cell": lambda at: ["evaluate", "reno", "--test", "bursts", "--cell", EVIL],
    "reproduce": lambda at: ["reproduce", EVIL],
    "reproduce exhibit": lambda at: ["reproduce", "simd", "--exhibit", EVIL, "--out", at / "o"],
    "configuration": lambda at: ["--config", written(at / "c", toml(**{EVIL: {}})), "algorithms"],
    "perf host": lambda at: ["perf", "-c", EVIL],
    "recv peers": lambda at: [
        *("recv", at, "--pair", at / "pair", "--peers", written(at / "peers", EVIL)),
    ],
    "model": lambda at: ["model", "throughput", "--p", EVIL],
    "emulate": lambda at: ["emulate", "--rate", EVIL, "--", "true"],
    "algorithms": lambda at: ["algorithms", EVIL],
    "schema": lambda at: ["schema", EVIL],
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(arguments, capsys) -> tuple[int, str, str]:
    status = command_line(list(map(str, arguments)))
    return (status, *capsys.readouterr())


@pytest.mark.parametrize("name", EVIL_COMMANDS)
def test_no_command_writes_control_characters(name, tmp_path, capsys, real, monkeypatch):
    if name.endswith("CSV"):
        monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    status, out, err = run(EVIL_COMMANDS[name](tmp_path), capsys)
    if name.endswith("CSV"):
        out = terminal.getvalue()
    for line in (out + err).split("\n"):
        assert line.isprintable(), ascii(line)
        assert not line.lstrip().startswith("cwnd: all is well")
    if status == 2:
        assert all(line.startswith("cwnd: ") for line in err.splitlines())
    if name.endswith("JSON"):
        json.loads(out)
    if name.startswith("query rows"):
        assert "52;c;aGk=" in out


def test_a_file_gets_the_values_as_they_are(tmp_path, capsys):
    sql = "select text from runs limit 1"
    _, out, _ = run(["query", evil_data(tmp_path / "o"), sql, "--csv"], capsys)
    assert out == f'text\n"{EVIL}"\n'


def test_json_is_escaped_as_json(capsys):
    text = f"{EVIL}\U000e0001"
    echo_json(json.dumps({"a": text}, indent=2, ensure_ascii=False))
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.split("\n"))
    assert json.loads(out) == {"a": text}


def sweep_of(at, text):
    return ["sweep", written(at / "plan.toml", text), "--out", at / "o"]


def base_of(at, text):
    written(at / "base.toml", text)
    return sweep_of(at, toml(base="base.toml", axes={}))


TOML_READERS = {
    "run": lambda at, text: ["run", written(at / "s.toml", text)],
    "compare": lambda at, text: ["compare", written(at / "s.toml", text), "reno"],
    "agree": lambda at, text: ["agree", written(at / "s.toml", text)],
    "sweep": sweep_of,
    "sweep, base": base_of,
    "query, report": lambda at, text: [
        *("query", make_data(at / "o", plan=text), "--report", at / "r.html")
    ],
    "configuration": lambda at, text: ["--config", written(at / "c.toml", text), "algorithms"],
    "value": lambda at, text: [
        *("run", written(at / "s.toml", SCENARIO), "--set"),
        b"dumbbell.queue=" + (text if isinstance(text, bytes) else text.encode()),
    ],
}

READ_BY_PYTHON = {"sweep", "sweep, base", "query, report", "configuration"}

TOML_GARBAGE = {
    "bytes": b"\xff\xfe\x00",
    "null": "\0",
    "tables": "[" * 100_000,
    "lists": "a = " + "[" * 100_000,
    "keys": "a" + ".a" * 10_000 + " = 1",
    "keys of a table": "[base]\nduration" + ".a" * 10_000 + " = 1",
    "digits": "seed = " + "9" * 5_000,
    "twice": "a = 1\na = 1",
    "date": "duration = 1979-05-27",
    "infinite": "duration = inf\nrepeat = inf\n[base]\ntime = inf\n[send]\nrate = inf",
    "number": "duration = nan\nrepeat = nan\naxes = nan\nbase = nan\nsend = nan",
    "list": "duration = []\nflow = [5]\nrepeat = []\naxes = [1]\nbase = [1]\nsend = [1]",
    "names": "flow = 5\ncontrollers = 5\naxes = 5\nlatin = 5\nrun = 5",
}


@pytest.mark.slow
@pytest.mark.parametrize("garbage", TOML_GARBAGE)
@pytest.mark.parametrize("reader", TOML_READERS)
def test_garbage_for_toml_is_one_line(reader, garbage, tmp_path, capsys, real):
    text = TOML_GARBAGE[garbage]
    if reader in READ_BY_PYTHON and isinstance(text, str):
        # tomllib takes a time as the square of the parts of a key; Python recurses 1,000 times.
        text = text.replace(".a" * 10_000, ".a" * 2_000)
    arguments = TOML_READERS[reader](tmp_path, text)
    words = [os.fsdecode(word) if isinstance(word, bytes) else word for word in arguments]
    if reader == "query, report" and garbage in {"date", "infinite"}:
        # A report reads other keys of the plan.
        assert run(words, capsys)[0] == 0
    else:
        check_one_line(words, capsys)


ENDLESS = {
    "run": lambda _, file: ["run", file],
    "compare": lambda _, file: ["compare", file, "reno"],
    "agree": lambda _, file: ["agree", file],
    "sweep": lambda at, file: ["sweep", file, "--out", at / "o"],
    "base": lambda at, file: sweep_of(at, toml(base=str(file), axes={})),
    "configuration": lambda _, file: ["--config", file, "algorithms"],
    "card": lambda _, file: ["evaluate", "reno", "--test", "wired", "--against", file],
    "suite": lambda _, file: ["score", "reno", "--suite", file],
    "scheduler": lambda _, file: ["evaluate", "reno", "--scheduler-file", file],
    "peers": lambda at, file: ["send", at, "localhost", "--pair", private(at), "--peers", file],
}


@pytest.mark.parametrize("reader", ENDLESS)
def test_a_file_without_an_end_is_one_line(reader, tmp_path, capsys, real, monkeypatch):
    monkeypatch.setattr("cwnd._base.files.LARGEST", 1 << 20)
    file = tmp_path / "endless.toml"
    file.symlink_to("/dev/zero")
    assert re.search(
        "larger than 1 MiB|more than", check_one_line(ENDLESS[reader](tmp_path, file), capsys)
    )


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path, capsys):
    scenario, plan, config = (tmp_path / f"{name}.toml" for name in ("scenario", "plan", "config"))
    config.write_text("[run]\nseed = 2\n", "utf-8-sig")
    scenario.write_text(SCENARIO, "utf-8-sig")
    plan.write_text(PLAN, "utf-8-sig")
    status, out, _ = run(["--config", config, "run", scenario], capsys)
    assert (status, out.partition(",")[2][:7]) == (0, " seed 2")
    assert run(["sweep", plan, "--out", tmp_path / "o"], capsys)[0] == 0


def check_one_line(arguments, capsys):
    status, out, err = run(arguments, capsys)
    assert status == 2, (out, err)
    assert err.startswith("cwnd: ")
    assert err.count("\n") == 1
    return err


CARDS = {
    "bytes": b"\xff\x00",
    "nothing": "",
    "deep": "[" * 100_000,
    "digits": '{"tests": ' + "9" * 5_000 + "}",
    "number": "NaN",
    "no tests": "{}",
    "tests": '{"tests": 5}',
    "test": '{"tests": [5]}',
    "list as a name": '{"tests": [{"id": [], "grade": "meets"}]}',
    "grade": '{"tests": [{"id": "bursts", "grade": 1e999}]}',
    "no grade": '{"tests": [{"id": "bursts"}]}',
    "controller": '{"tests": [], "controller": {}}',
    "suite": '{"tests": [], "suite": NaN}',
    "quick": '{"tests": [], "quick": 5}',
    "conventions": '{"tests": [], "conventions": 5}',
    "convention": '{"tests": [], "conventions": [5]}',
}


@pytest.mark.parametrize("garbage", CARDS)
def test_garbage_for_a_card_is_one_line(garbage, tmp_path, capsys):
    card = written(tmp_path / "card.json", CARDS[garbage])
    words = ["evaluate", "reno", "--test", "bursts", "--quick", "--out", tmp_path / "o"]
    check_one_line([*words, "--against", card], capsys)


@pytest.mark.parametrize("garbage", [b"\xff", b"", b"[" * 100_000, b"5", b"{}", b'{"key": "x"}'])
def test_garbage_is_no_stored_exhibit(garbage, tmp_path):
    exhibit = next(one for one in exhibits("simd") if one.id == "table-1")
    written(runner._part_path(tmp_path, exhibit), garbage)
    assert runner._read_part(tmp_path, exhibit, "key") is None


NESTED = pd.Series([[[1]], [[2]]])

DATA_SETS = {
    "bytes": b"PAR1" + bytes(range(256)) + b"PAR1",
    "nothing": b"",
    "no seed": frame(seed=None),
    "no controller": frame(controller=None),
    "no error": frame(error=None),
    "no time": frame(wall_s=None),
    "no axis": frame(rate=None),
    "text as a seed": frame(seed=["a", "b"]),
    "missing seeds": frame(seed=[np.nan, 1.0]),
    "number as a controller": frame(controller=[1, 2]),
    "number as an error": frame(error=[1, 2]),
    "text as a metric": frame(jain=["a", "b"]),
    "lists as a metric": frame(jain=NESTED),
    "lists as an axis": frame(rate=NESTED),
    "text as a time": frame(wall_s=["a", "b"]),
    "number as conventions": frame(tcp_conventions=[1, 2]),
    "lists as controllers": frame(controller=NESTED),
}


@pytest.mark.parametrize("garbage", DATA_SETS)
def test_the_report_of_a_crafted_data_set_is_one_line(garbage, tmp_path, capsys):
    out = make_data(tmp_path / "o", DATA_SETS[garbage])
    check_one_line(["query", out, "--report", tmp_path / "r.html"], capsys)


def test_resuming_into_a_data_set_with_another_type_of_a_column_is_one_line(tmp_path, capsys):
    plan = written(tmp_path / "plan.toml", PLAN)
    assert run(["sweep", plan, "--out", tmp_path / "made"], capsys)[0] == 0
    made = next((tmp_path / "made/runs").iterdir())
    for column in pd.read_parquet(made):
        out = tmp_path / f"forged-{column}"
        runs = pd.read_parquet(made).assign(**{column: [[0]]})
        make_data(out, runs, PLAN, read_plan(plan).identity)
        status, _, err = run(["sweep", plan, "--out", out], capsys)
        assert (status, err.count("\n")) == (2, 2), err
        assert "other columns than the plan; `cwnd sweep PLAN --out` with another" in err


@pytest.mark.parametrize("garbage", DATA_SETS)
def test_resuming_into_a_crafted_data_set_of_the_same_plan_is_one_line(garbage, tmp_path, capsys):
    plan = written(tmp_path / "plan.toml", PLAN)
    make_data(tmp_path / "o", DATA_SETS[garbage], PLAN, read_plan(plan).identity)
    status, _, err = run(["sweep", plan, "--out", tmp_path / "o"], capsys)
    # The first line is the size of the plan.
    assert (status, err.count("\n")) == (2, 2), err


@pytest.mark.parametrize("garbage", DATA_SETS)
@pytest.mark.parametrize("sql", [None, "select * from runs", "select avg(jain) from runs"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_query_of_a_crafted_data_set_is_answered_or_one_line(
    garbage, sql, form, tmp_path, capsys
):
    out = make_data(tmp_path / "o", DATA_SETS[garbage])
    status, _, err = run(["query", out, *([] if sql is None else [sql]), *form], capsys)
    assert (status, err.count("\n")) in {(0, 0), (2, 1)}


@pytest.mark.parametrize("sql", [None, "select * from runs"])
def test_a_damaged_second_part_is_one_line(sql, tmp_path, capsys):
    out = make_data(tmp_path / "o")
    add_file(out, 2, DATA_SETS["bytes"])
    check_one_line(["query", out, *([] if sql is None else [sql])], capsys)


EXTREME = {
    "infinite": frame(jain=[np.inf, -np.inf], wall_s=[np.inf, np.nan]),
    "largest": frame(jain=[1.7e308, -1.7e308], wall_s=[1.7e308, 1.7e308]),
    "numbers": frame(seed=[2**62, -(2**62)]),
    "twice": frame(rate=["1mbit", "1mbit"]),
    "axis": frame(rate=[np.inf, np.nan]),
    "missing": frame(rate=[None, None], jain=[np.nan, np.nan]),
}


@pytest.mark.parametrize("numbers", EXTREME)
def test_a_data_set_with_extreme_numbers_has_a_report(numbers, tmp_path, capsys):
    out = make_data(tmp_path / "o", EXTREME[numbers])
    status, _, err = run(["query", out, "--report", tmp_path / "r.html"], capsys)
    assert (status, err.count("\n")) in {(0, 1), (2, 1)}
    status, _, err = run(["query", out, "select * from runs"], capsys)
    assert (status, err) == (0, "")


BYTES = {
    "bytes": b"\xff\x00\x80",
    "nothing": b"",
    "digits": b"9" * 5_000,
    "letters": b"a b c\n" * 100,
    "negative": b"-5\n-4\n",
    "infinite": b"inf\n1e999\n",
    "line": b"1 " * 100_000,
}

BYTES_READERS = {
    "trace": lambda at, file: ["run", written(at / "s.toml", traced(file))],
    "trace info": lambda at, file: ["trace", "info", file],
    "trace as CSV": lambda at, file: ["trace", "info", file, "--from", "csv"],
    "trace as JSON": lambda at, file: ["trace", "info", file, "--from", "netem-trace"],
    "trace as Pensieve's": lambda at, file: ["trace", "info", file, "--from", "pensieve"],
    "key": lambda at, file: ["send", at, "localhost", "--key", file],
    "pair": lambda at, file: ["send", at, "localhost", "--pair", file, "--peers", file],
    "peers": lambda at, file: [
        *("send", at, "localhost", "--pair", private(at), "--peers", file),
    ],
    "law": lambda at, file: ["algorithms", f"{file.rename(file.with_suffix('.py'))}:Law"],
}


def private(at):
    udt.generate_pair(at / "pair")
    return at / "pair"


@pytest.mark.parametrize("garbage", BYTES)
@pytest.mark.parametrize("reader", BYTES_READERS)
def test_garbage_in_other_files_is_one_line(reader, garbage, tmp_path, capsys):
    file = written(tmp_path / "file", BYTES[garbage])
    file.chmod(0o600)
    check_one_line(BYTES_READERS[reader](tmp_path, file), capsys)


@pytest.mark.parametrize("title", [r"$\frac{a$ b", "$", "a $x$ \\$ b"])
def test_a_plot_shows_formulas_as_text(title, tmp_path, capsys):
    scenario = written(tmp_path / "s.toml", f"title = {json.dumps(title)}\n{SCENARIO}")
    for verb, more in (("run", ()), ("compare", ("--repeat", "2"))):
        status, _, err = run([verb, scenario, *more, "--plot", tmp_path / "p.png"], capsys)
        assert (status, err) == (0, f"plot: {tmp_path / 'p.png'}\n")


@pytest.mark.parametrize("verb", ["run", "compare", "sweep", "query"])
def test_a_name_that_is_not_utf8_is_one_line(verb, tmp_path, capsys):
    file = written(tmp_path / os.fsdecode(b"\xff.toml"), SCENARIO)
    more = {"sweep": ["--out", tmp_path / "o"], "compare": ["reno"]}.get(verb, [])
    check_one_line([verb, file, *more], capsys)
