"""Controllers that installed packages add."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from pathlib import Path

import pytest

import cwnd
from cwnd import controller
from cwnd.controller import names_python

ROOT = Path(__file__).parents[2]

LAW = """
import threading

from . import factor

LOCK = threading.Lock()
print("imported")

class Halving:
    \"\"\"A law of a package.\"\"\"
    def __init__(self, beta=factor.BETA):
        self.beta = beta
    def grow(self, w, acked, cx):
        print("grows")
        return w + acked / w
    def cut(self, w, why, cx):
        if self.beta == 9:
            raise ValueError("nine")
        return self.beta * w
"""
ENTRIES = """[cwnd.controllers]
halving = lawpack.laws:Halving
half-law = lawpack.laws:Halving
reno = lawpack.laws:Halving
missing = lawpack.nothing:Law
exits = lawpack.exits:Law
int = builtins:int
two words = lawpack.laws:Halving
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """A package as pip installs it."""
    folder = tmp_path / "site"
    (folder / "lawpack").mkdir(parents=True)
    (folder / "lawpack" / "__init__.py").touch()
    (folder / "lawpack" / "factor.py").write_text("BETA = 0.5\n")
    (folder / "lawpack" / "laws.py").write_text(LAW)
    (folder / "lawpack" / "exits.py").write_text("print('begins')\nraise SystemExit(7)\n")
    about = folder / "lawpack-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: Law_Pack\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    controller.installed_controllers.cache_clear()
    yield folder
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.startswith("lawpack")]:
        del sys.modules[name]
    controller.installed_controllers.cache_clear()
    controller._read_installed.cache_clear()


def test_a_name_of_a_package_is_a_controller(tmp_path, capfd):
    assert names_python("law-pack:reno(beta=1/4)")
    assert not names_python("reno")
    assert not names_python("halving")
    assert not names_python("kernel:reno")
    specs = ["law-pack:halving", "law-pack:half-law(beta=1/4)"]
    found = cwnd.compare(specs, reference="reno", time="4s", repeat=2)
    assert [row["controller"] for row in found.to_json()["alone"]] == ["reno", *specs]
    file = tmp_path / "net.toml"
    file.write_text(
        'duration = "2s"\n[dumbbell]\nrate = "1mbit"\ndelay = "5ms"\n'
        '[[flow]]\ncontroller = "law-pack:half-law(beta=1/4)"\n'
    )
    for result in (
        cwnd.run(file),
        cwnd.run(cwnd.Scenario(cwnd.Scenario.from_toml(file).to_dict())),
    ):
        assert result.record["flows"][0]["controller"] == specs[1]
    told = capfd.readouterr()
    assert {"imported", "grows"} <= set(told.err.split())
    assert told.out == ""


def test_a_sweep_imports_the_package(tmp_path, monkeypatch, package):
    monkeypatch.setenv("PYTHONPATH", f"{package}{os.pathsep}{ROOT / 'python'}")
    plan = {"controllers": ["law-pack:halving"], "repeat": 2, "base": {"time": "2s"}}
    made = cwnd.sweep(plan, out=tmp_path / "out")
    assert set(made.runs["controller"]) == {"law-pack:halving"}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("law-pack:missing", r"^law-pack:missing: lawpack\.nothing:Law cannot be loaded: Module"),
        ("law-pack:exits", r"^law-pack:exits: lawpack\.exits:Law cannot be loaded: SystemExit\(7"),
        ("law-pack:int", "^law-pack:int: "),
        ("law-pack:halving(gamma=1)", "unexpected keyword"),
        ("law-pack:halving(", "^law-pack:halving"),
        ("law-pack:two words", "unknown controller"),
        ("halving", "unknown controller"),
    ],
)
def test_errors_name_the_package(spec, text):
    with pytest.raises(cwnd.SpecError, match=text):
        cwnd.compare([spec], time="2s")


def test_an_exception_has_the_line_of_the_module(command):
    done = command("compare", "law-pack:halving(beta=9)", "--time", "2s")
    assert done.returncode == 2
    assert re.search(r"lawpack\.laws:[0-9]+: in cut: ValueError: nine", done.stderr)


def test_a_single_run_of_an_evaluation_names_the_package(command):
    words = ["evaluate", "law-pack:halving", "--test", "high-loss", "--seed", "3", "--scenario"]
    cells = json.loads(command("evaluate", "--list", "--test", "high-loss", "--json").stdout)
    cell = cells["tests"][0]["networks"][0]
    done = command(*words, "--cell", cell if isinstance(cell, str) else cell["name"])
    assert 'controller = "law-pack:halving"' in done.stdout


def test_the_list_has_the_controllers_of_packages(complete, package):
    with pytest.warns(cwnd.errors.ControllerWarning, match=r"cannot be loaded|law-pack:int"):
        found = {algorithm.name: algorithm for algorithm in cwnd.algorithms()}
    assert found["law-pack:halving"].title == "A law of a package."
    assert found["reno"].source != found["law-pack:reno"].source
    path = f"{package}{os.pathsep}{ROOT / 'python'}"
    words = sys.executable, "-m", "cwnd", "algorithms", "--json"
    told = complete(*words, env=os.environ | {"PYTHONPATH": path})
    assert json.loads(told.stdout)
    lines = [line for line in told.stderr.splitlines() if line.startswith("cwnd: ")]
    assert [line.split(": ")[1] for line in lines] == [
        "law-pack:missing",
        "law-pack:exits",
        "law-pack:int",
    ]


def test_a_broken_package_is_one_line(package, command):
    (package / "lawpack-1.0.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe")
    controller.installed_controllers.cache_clear()
    done = command("compare", "law-pack:halving")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
