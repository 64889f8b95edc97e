from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import cwnd
from cwnd._base import toml as tomllib

ROOT = Path(__file__).parents[2]


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_importing_is_light():
    loaded = json.loads(python("import sys, json, cwnd; print(json.dumps(list(sys.modules)))"))
    heavy = {"numpy", "pandas", "matplotlib", "plotly", "pyarrow", "scipy", "rich", "click"}
    assert heavy.isdisjoint(loaded)


def test_the_version_imports_little():
    command = [sys.executable, "-X", "importtime", "-m", "cwnd", "--version"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "cwnd._cli" in loaded
    heavy = {"numpy", "pandas", "matplotlib", "plotly", "pyarrow", "scipy", "rich", "distributed"}
    assert heavy.isdisjoint(loaded)


def test_public_names():
    assert set(cwnd.__all__) <= set(dir(cwnd))
    for name in cwnd.__all__:
        assert getattr(cwnd, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = cwnd.nothing


def test_submodules_are_attributes():
    code = "import cwnd; print(cwnd.metrics.jain([1.0, 1.0]), cwnd.model.throughput.pftk.__name__)"
    assert python(code) == "1.0 pftk\n"
    for package in (cwnd, cwnd.model):
        home = Path(package.__file__).parent
        listed = [n for n in dir(package) if isinstance(getattr(package, n), types.ModuleType)]
        assert listed
        for name in listed:
            assert (home / f"{name}.py").exists() or (home / name / "__init__.py").exists()
    files = {path.stem for path in (ROOT / "python/cwnd/model").glob("*.py")}
    assert set(cwnd.model.__all__) == files - {"__init__", "checks", "quantities"}


def test_text_files_have_the_same_bytes_on_every_system():
    """Without `newline` Windows would write CRLF."""
    sources = sorted((ROOT / "python/cwnd").rglob("*.py"))
    found = [
        (f"{path.relative_to(ROOT)}:{call.lineno}", {each.arg for each in call.keywords})
        for path in sources
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and _writes_text(call)
    ]
    assert len(found) >= 4
    assert [place for place, keywords in found if not {"newline", "encoding"} <= keywords] == []


def _writes_text(call: ast.Call) -> bool:
    """Whether a call writes a text file: `write_text` of a path, or `open` with such a mode."""
    match call.func:
        case ast.Attribute(attr="write_text"):
            return True
        case ast.Attribute(attr="open") | ast.Name(id="open"):
            words = {each.value for each in ast.walk(call) if isinstance(each, ast.Constant)}
            return bool(words & {"w", "x", "a", "w+", "wt"})
        case _:
            return False


@pytest.mark.slow
def test_documented_names_exist():
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    names = {
        name
        for path in documents
        for name in re.findall(r"(?<![\w/.-])cwnd((?:\.[a-z]\w*)+)", path.read_text("utf-8"))
    }
    # The group of entry points.
    names.remove(".controllers")
    assert {".metrics.jain", ".model.law", ".udt"} <= names
    code = "import cwnd\n" + "\n".join(f"cwnd{name}" for name in sorted(names))
    assert python(code) == ""


def test_submodules_do_not_hide_functions():
    code = "import cwnd; cwnd.compare; cwnd.run; cwnd.algorithms; print(callable(cwnd.compare))"
    assert python(code) == "True\n"


def test_algorithms():
    names = [algorithm.name for algorithm in cwnd.algorithms()]
    assert {"reno", "aimd", "simd", "aira", "aiad", "daimd", "udt", "cubic"} <= set(names)
    for algorithm in cwnd.algorithms():
        assert algorithm.kind in ("window", "rate", "whole")
        assert algorithm.equations
        assert algorithm.source
        assert cwnd.canonical(algorithm.name) == algorithm.name


def test_controllers_of_the_kernel_are_no_algorithms():
    assert cwnd.canonical("kernel:cubic") == "kernel:cubic"
    with pytest.raises(cwnd.SpecError, match="it has no parameters"):
        cwnd.canonical("kernel:cubic(beta=1/2)")
    with pytest.raises(cwnd.SpecError, match="the Linux kernel's own"):
        cwnd._controllers.registry.describe("kernel:cubic")


@pytest.mark.parametrize("name", [a.name for a in cwnd.algorithms()])
def test_every_algorithm_runs(name):
    scenario = cwnd.Scenario.dumbbell(rate="5mbit", rtt="40ms", time="5s")
    result = cwnd.run(scenario.add_flow(name))
    assert result.metrics["goodput_bps"] > 0.2 * 5e6


@pytest.mark.slow
def test_contributing_is_true():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    out = python(example)
    assert "python:Cautious" in out
    assert "fair" in out
    for path in re.findall(r"`((?:crates|python)/[^`\s]*\.(?:rs|py))`", text):
        assert (ROOT / path).exists(), path


def test_the_citation_has_the_version():
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {manifest['workspace']['package']['version']}" in citation


def test_every_file_of_rust_tests_is_compiled():
    """Cargo finds no files in these crates: the manifest or `all.rs` has to name them."""
    for binary in ROOT.glob("crates/*/tests/all.rs"):
        manifest = tomllib.loads((binary.parents[1] / "Cargo.toml").read_text(encoding="utf-8"))
        named = {target["name"] for target in manifest["test"]}
        named.update(re.findall(r"^mod (\w+);", binary.read_text(encoding="utf-8"), re.MULTILINE))
        assert {file.stem for file in binary.parent.glob("*.rs")} <= named, binary


def test_the_documents_are_documented(comparison, result, check_json):
    check_json(result.to_json(), "## `cwnd run --json`", absent={"expectations"})
    times = [f"fct{part}_s" for part in ("", "_p50", "_p95", "_p99")]
    transfers = {*times, *(f"reference_{time}" for time in times), "harm_fct"}
    tables = {"runs", "links"}
    check_json(comparison.to_json(), "## `cwnd compare --json`", absent=transfers | tables)


def test_the_metrics_are_documented():
    from cwnd import metrics

    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for name, value in vars(metrics).items():
        if callable(value) and value.__module__.startswith("cwnd.metrics") and name.islower():
            assert name.startswith("_") or f"`{name}`" in text or name == "binned_rate"
