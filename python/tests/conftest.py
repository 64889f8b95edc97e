"""What the tests share: one small comparison and one small run, made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cwnd

TWO = """
name = "two"
title = "Two of each"
duration = "20s"
warmup = "5s"

[dumbbell]
rate = "10mbit"
delay = "20ms"
queue = "droptail"

[[flow]]
controller = "reno"
count = 2
start = "0s..1s"

[[flow]]
controller = "simd"
count = 2
start = "0s..1s"

[[flow]]
controller = "reno"
name = "back"
reverse = true
measured = false
"""


@pytest.fixture(scope="session")
def comparison() -> cwnd.Comparison:
    return cwnd.compare(
        ["simd", "aimd(0.31, 1/8)"], rate="10mbit", rtt="40ms", time="60s", repeat=3, flows=4
    )


@pytest.fixture(scope="session")
def result() -> cwnd.Result:
    return cwnd.run(cwnd.Scenario.from_toml(TWO), seed=7)


@pytest.fixture(scope="session")
def two() -> str:
    """The text of a scenario file."""
    return TWO


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(TWO)
    return path


@pytest.fixture
def command():
    """Run the command line as a user does."""

    def run(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cwnd", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=os.environ | {"COLUMNS": "100"},
            **options,
        )

    return run
