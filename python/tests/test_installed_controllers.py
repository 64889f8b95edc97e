"""Controllers that installed packages add."""

from __future__ import annotations

import importlib
import json
import sys

import pytest

import cwnd
from cwnd import controller
from cwnd.controller import names_python

LAW = """
from . import factor

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
reno = lawpack.laws:Halving
missing = lawpack.nothing:Law
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """A package as pip installs it."""
    folder = tmp_path / "site"
    (folder / "lawpack").mkdir(parents=True)
    (folder / "lawpack" / "__init__.py").touch()
    (folder / "lawpack" / "factor.py").write_text("BETA = 0.5\n")
    (folder / "lawpack" / "laws.py").write_text(LAW)
    about = folder / "lawpack-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lawpack\nVersion: 1.0\n")
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
    assert names_python("Halving(beta=1/4)")
    assert not names_python("reno")
    assert names_python("lawpack:reno")
    found = cwnd.compare(["halving", "Halving(beta=1/4)"], reference="reno", time="4s", repeat=2)
    assert [row["controller"] for row in found.to_json()["alone"]] == [
        "reno",
        "lawpack:halving",
        "lawpack:halving(beta=1/4)",
    ]
    told = capfd.readouterr()
    assert "grows" in told.err
    assert "grows" not in told.out
    flow = {"controller": "halving"}
    document = {"duration": "2s", "dumbbell": {"rate": "1mbit", "delay": "5ms"}, "flow": [flow]}
    (tmp_path / "net.json").write_text(json.dumps(document))
    result = cwnd.run(cwnd.Scenario(document))
    assert result.record["flows"][0]["controller"] == "lawpack:halving"


def test_errors_name_the_package():
    with pytest.raises(cwnd.SpecError, match=r"^lawpack:missing: lawpack\.nothing:Law can"):
        cwnd.compare(["missing"], time="2s")
    with pytest.raises(cwnd.SpecError, match=r"unexpected keyword"):
        cwnd.compare(["halving(gamma=1)"], time="2s")


def test_an_exception_has_the_line_of_the_module(command):
    done = command("compare", "halving(beta=9)", "--time", "2s")
    assert done.returncode == 2
    assert "lawpack.laws:13: in cut: ValueError: nine" in done.stderr


def test_the_list_has_the_controllers_of_packages():
    with pytest.warns(cwnd.errors.ControllerWarning, match="missing"):
        found = {algorithm.name: algorithm for algorithm in cwnd.algorithms()}
    assert found["lawpack:halving"].title == "A law of a package."
    assert found["reno"].source != found["lawpack:reno"].source
