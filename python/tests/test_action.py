"""The GitHub Action: its scripts, run as GitHub runs them, without the installation."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BOUND = '[expect]\ngoodput.min = "{}"\n'


@pytest.fixture
def step(complete, tmp_path):
    """Run a step of the action in a folder."""
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    scripts = {each["name"]: each["run"] for each in steps if "run" in each}
    folder = Path(sys.executable).parent

    def run(name, **environment):
        path = f"{folder}:{os.environ['PATH']}"
        return complete(
            *("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", scripts[name]),
            cwd=tmp_path,
            env=os.environ | {"PATH": path} | environment,
        )

    return run


def test_a_bound_that_fails_fails_the_step(step, tmp_path, two):
    for name, bound in (("a", "> 0"), ("b", "> 1gbit"), ("c", "> 0")):
        (tmp_path / f"{name}.toml").write_text(two + BOUND.format(bound))
    done = step("Check", CHECK="*.toml")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.endswith(".toml")] == ["a.toml", "b.toml", "c.toml"]
    assert [line.split()[0] for line in lines if "goodput" in line] == ["holds", "fails", "holds"]
    assert step("Check", CHECK="a.toml c.toml").returncode == 0


def test_an_evaluation_without_a_card_keeps_its_status(step, tmp_path):
    summary = str(tmp_path / "summary.md")
    failed = step("Evaluate", GITHUB_STEP_SUMMARY=summary, CONTROLLERS="none", OPTIONS="")
    assert failed.returncode == 2
    assert "none" in failed.stderr


def test_each_line_is_a_controller_whose_card_is_in_the_summary(step, tmp_path):
    summary = tmp_path / "summary.md"
    options = {
        "CONTROLLERS": "aimd(0.31, 1/8)\n\nsimd\n",
        "OPTIONS": "--quick --test aqm-utilization",
    }
    done = step("Evaluate", GITHUB_STEP_SUMMARY=str(summary), **options)
    assert done.returncode == 0, done.stderr
    lines = summary.read_text().splitlines()
    assert sum(line.startswith("| 7.1 Active queue management |") for line in lines) == 2
    titles = [line for line in lines if line.startswith("### ")]
    assert len(titles) == 2
    assert "aimd" in titles[0]
    assert "simd" in titles[1]


def test_the_example_has_inputs_of_the_action():
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    jobs = yaml.safe_load((ROOT / "examples/workflow.yml").read_text())["jobs"].values()
    used = [each["with"] for job in jobs for each in job["steps"] if "with" in each]
    assert len(used) == 2
    assert all(set(each) <= set(inputs) for each in used)
