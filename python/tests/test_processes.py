"""The fixture `spawn`: its processes end with their test, and SIGINT interrupts them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is not Linux")
# A test that runs a script, which writes process identifiers, and ends in a given way.
TEST = """
import subprocess
import time
from pathlib import Path

def test(spawn):
    process = spawn("sh", "-c", {script!r}, stdout=subprocess.PIPE, text=True)
    Path("part").write_text(process.stdout.readline())
    Path("part").rename("identifiers")
    {end}
"""


def runs(process: str) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        # The state follows the name, which is in parentheses.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_until(condition) -> None:
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.fixture
def begin(spawn, tmp_path):
    """Begin a test of `spawn` in another pytest; give that pytest and the identifiers."""

    def start(script: str, end: str) -> tuple[subprocess.Popen[str], list[str]]:
        shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
        (tmp_path / "test_it.py").write_text(TEST.format(script=script, end=end))
        words = [sys.executable, "-m", "pytest", "--timeout", "3"]
        inner = spawn(*words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        wait_until((tmp_path / "identifiers").exists)
        return inner, (tmp_path / "identifiers").read_text().split()

    return start


@on_linux
@pytest.mark.parametrize("end", ["assert False", "time.sleep(600)"])
def test_processes_end_with_a_failed_test(begin, end):
    inner, processes = begin("sleep 600 & echo $$ $!; wait", end)
    assert "1 failed" in inner.communicate(timeout=30)[0]
    assert len(processes) == 2
    wait_until(lambda: not any(map(runs, processes)))


@on_linux
def test_a_process_ends_with_a_killed_pytest(begin):
    inner, [process] = begin("echo $$; exec sleep 600", "time.sleep(600)")
    assert runs(process)
    inner.kill()
    wait_until(lambda: not runs(process))


@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL])
def test_processes_are_interrupted_where_the_parent_ignores_it(spawn, action):
    before = signal.signal(signal.SIGINT, action)
    try:
        process = spawn("sh", "-c", "echo ready; exec sleep 600", stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == -signal.SIGINT
