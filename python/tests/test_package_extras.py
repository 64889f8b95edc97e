from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cwnd
from cwnd._base import toml as tomllib
from cwnd._base.extras import EXTRAS, require
from cwnd._cli.doctor import examine

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LIBRARIES = [library for libraries in EXTRAS.values() for library in libraries]
BASE = f"import sys\nsys.modules.update(dict.fromkeys({LIBRARIES}))\n"
"""Hides the libraries of the extras, as in an installation without them."""


def base(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BASE + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def base_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return base("from cwnd.__main__ import main; main()", *arguments)


def test_extras_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["optional-dependencies"]
    included = []
    for extra, libraries in EXTRAS.items():
        names = [requirement.split(">=")[0] for requirement in declared[extra]]
        assert names == [*included, *libraries]
        included = [f"cwnd[{extra}]"]
    assert declared["all"] == included
    assert not {name.split(">=")[0] for name in project["dependencies"]} & set(LIBRARIES)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "simd", "--report", "x.html"], "--report needs jinja2 and plotly"),
        (["compare", "simd", "--plot", "x.png"], "--plot needs matplotlib"),
        (["run", "FILE", "--trace", "x"], "--trace DIR (not DIR.csv) needs pyarrow"),
        (["agree", "FILE", "--report", "x.html"], "--report needs jinja2 and plotly"),
        (["reproduce", "simd"], "reproduce needs jinja2 and matplotlib"),
        (["sweep", "FILE", "--out", "x"], "a sweep needs duckdb, pandas and pyarrow"),
        (["query", "x"], "a sweep needs duckdb, pandas and pyarrow"),
    ],
)
def test_a_missing_library_is_one_line(arguments, said, scenario_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = base_command(*(scenario_file if part == "FILE" else part for part in arguments))
    extra = "sweep" if "duckdb" in said else "plots"
    assert done.stderr == f"cwnd: {said}: pip install 'cwnd[{extra}]'\n"
    assert done.returncode == 2
    assert not list(tmp_path.glob("x*"))


def test_commands_without_extras(scenario_file, tmp_path):
    commands = (
        ["compare", "simd", "--time", "8s", "--repeat", "2"],
        ["run", scenario_file, "--json"],
        ["run", scenario_file, "--acks", "--trace", tmp_path / "run.csv"],
        ["compare", "simd", "--time", "2s", "--repeat", "1", "--trace", tmp_path / "compare.csv"],
        ["model", "pftk", "--p", "0.01", "--rtt", "100ms", "--rto", "400ms"],
        ["algorithms"],
        ["doctor"],
        ["scenarios"],
        ["schema"],
        ["schema", "run"],
        ["kernel", "--help"],
    )
    done = base(
        "import json\n"
        "from cwnd._cli import run\n"
        "for words in json.loads(sys.argv[1]):\n    print(f'status {run(words)}', flush=True)",
        json.dumps(commands, default=str),
    )
    outputs = re.split(r"^status (\d+)\n", done.stdout, flags=re.MULTILINE)
    assert outputs[1::2] == ["0"] * len(commands), done.stderr
    assert all(outputs[:-1:2])
    assert (tmp_path / "run.csv" / "acks.csv").exists()
    assert (tmp_path / "compare.csv" / "runs.csv").exists()


MISSING = {
    "result.flows": "Result.flows needs pandas",
    "result.links": "Result.links needs pandas",
    "result.cuts": "cwnd.tables needs pyarrow",
    "result.plot()": "a plot needs matplotlib",
    "result.report('x.html')": "a report needs jinja2 and plotly",
    "cwnd.tables.samples(result)": "cwnd.tables needs pyarrow",
}


def test_a_missing_library_in_python():
    done = base(
        "import cwnd\n"
        "result = cwnd.run(cwnd.Scenario.dumbbell(time='2s').add_flow('reno'))\n"
        "for expression in sys.argv[1:]:\n"
        "    try:\n        eval(expression)\n"
        "    except cwnd.MissingExtraError as error:\n"
        "        print(error, isinstance(error, ImportError))",
        *MISSING,
    )
    told = [f"{said}: pip install 'cwnd[plots]' True" for said in MISSING.values()]
    assert done.stdout.splitlines() == told, done.stderr


def test_notebooks_show_text_without_extras():
    done = base(
        "import cwnd\n"
        "scenario = cwnd.Scenario.dumbbell(time='2s').add_flow('reno')\n"
        "objects = [scenario, cwnd.run(scenario), cwnd.algorithms(), cwnd.algorithms()[0],\n"
        "    cwnd.compare(['simd'], time='2s', repeat=2, flows=2)]\n"
        "print([each._repr_html_() for each in objects], objects[-1])"
    )
    assert done.stdout.startswith(f"[{', '.join(['None'] * 5)}] <Comparison"), done.stderr


def test_the_last_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(cwnd.MissingExtraError) as error:
        require("query", "pandas", "duckdb")
    assert str(error.value) == "query needs pandas and duckdb: pip install 'cwnd[sweep]'"
    assert error.value.name == "pandas"


def test_doctor_tells_the_libraries_of_the_base():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {r.split(">=")[0] for r in project["dependencies"] if "python_version" not in r}
    (libraries,) = (finding.detail for finding in examine() if finding.name == "libraries")
    assert {library.split()[0] for library in libraries.split(", ")} == needed


def test_doctor_tells_extras(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    found = {finding.name: finding for finding in examine()}
    assert found["cwnd[plots]"].present
    assert "pandas " in found["cwnd[plots]"].detail
    assert not found["cwnd[sweep]"].present
    assert found["cwnd[sweep]"].detail == "missing: duckdb"
