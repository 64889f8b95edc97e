"""cwnd on macOS and Windows, as far as Linux can show it: what those systems lack is hidden."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SYSTEMS = ("darwin", "win32")

# Libraries load their own parts for this system first. Each command runs in a fork of the process
# that has imported them. The fork removes signals and flags of Unix, and what the native module has
# on Linux or Unix only; modules of Unix cannot be imported.
_SERVER = """
import gc, importlib, json, os, select, signal, sys
for library in {libraries}:
    importlib.import_module(library)
from cwnd import _native

def hide(system, hidden):
    for name in hidden:
        delattr(_native, name)
    del os.sched_getaffinity
    if system == "win32":
        for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_NOCTTY", "geteuid", "getuid"):
            delattr(os, name)
        for name in ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGPIPE", "SIGALRM"):
            delattr(signal, name)
        for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios"):
            sys.modules[name] = None
        def no_select(*_):
            raise OSError("only sockets")
        select.select = no_select
        class msvcrt:
            LK_NBLCK, locked = 2, set()
            def locking(opened, mode, size):
                import posix
                if msvcrt.locked.add(posix.fstat(opened).st_ino):
                    raise OSError(13, "Permission denied")
        sys.modules["msvcrt"] = msvcrt
    sys.modules["pyroute2"] = None
    sys.platform = system

def execute(system, hidden, words, folder, streams):
    for target, path in enumerate([os.devnull, *streams]):
        opened = os.open(path, os.O_WRONLY if target else os.O_RDONLY)
        os.dup2(opened, target)
        os.close(opened)
    os.chdir(folder)
    hide(system, hidden)
    sys.argv[1:] = words
    from cwnd.__main__ import main
    main()

# The end of a fork would otherwise collect the objects of all libraries.
gc.collect()
gc.freeze()
for line in iter(sys.stdin.readline, ""):
    child = os.fork()
    if child == 0:
        execute(*json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_LIBRARIES = (
    *("asyncio", "ctypes", "multiprocessing.context", "multiprocessing.popen_spawn_posix"),
    *("multiprocessing.pool", "concurrent.futures.process", "subprocess", "tempfile", "shutil"),
    *("numpy", "scipy.special", "scipy.optimize", "pandas", "pyarrow.parquet"),
    *("jinja2", "duckdb", "cloudpickle", "click.shell_completion", "rich.console"),
)


def hidden(system: str) -> list[str]:
    """Return the names that the native module has not on a system, from the module's source."""
    source = (ROOT / "crates/cwnd-py/src/lib.rs").read_text()
    exported = re.compile(
        r"#\[cfg\((target_os = \"linux\"|unix)\)\]\s*#\[pymodule_export\]\s*"
        r"(?:use [\w:]+::(?:\{([^}]*)\}|(\w+))|const (\w+))"
    )
    renamed = {"Bridge": "Emulation", "Trace": "KernelTrace"}
    renamed |= {"Listener": "UdtListener", "Stream": "UdtStream"}
    found = []
    for where, several, one, constant in exported.findall(source):
        if where != "unix" or system == "win32":
            names = re.findall(r"\w+", several) or [one or constant]
            found += [renamed.get(name, name) for name in names]
    return found


@pytest.fixture(scope="module")
def server(module_spawn):
    script = _SERVER.format(libraries=_LIBRARIES)
    return module_spawn(
        *(sys.executable, "-c", script),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT / "python")},
    )


@pytest.fixture
def elsewhere(server, tmp_path, tmp_path_factory):
    def run(system, *words):
        streams = [tmp_path_factory.mktemp("streams") / name for name in ("out", "err")]
        for stream in streams:
            stream.touch()
        request = [system, hidden(system), words, tmp_path, streams]
        server.stdin.write(json.dumps(request, default=str) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        out, err = (stream.read_text() for stream in streams)
        return subprocess.CompletedProcess(words, status, out, err)

    return run


def without_times(text):
    return re.sub(r'"wall_s": [0-9.e-]+', "", text)


def test_simulations_are_those_of_linux(elsewhere, complete, scenario_file):
    for words in (
        ["compare", "reno", "cubic", "--time", "4s", "--repeat", "2", "--json"],
        ["run", scenario_file, "--json"],
    ):
        here = complete(sys.executable, "-m", "cwnd", *words)
        for system in SYSTEMS:
            there = elsewhere(system, *words)
            assert (there.returncode, there.stderr) == (0, ""), system
            assert without_times(there.stdout) == without_times(here.stdout), system


PLAN = """
controllers = ["reno"]
repeat = 1
[base]
time = "2s"
[axes]
rate = ["5mbit", "10mbit"]
"""

LAW = """
class Law:
    def grow(self, w, acked, cx):
        return w + acked / w
    def cut(self, w, why, cx):
        return w / 2
"""


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_other_commands_work(elsewhere, tmp_path, system):
    (tmp_path / "mine.py").write_text(LAW)
    (tmp_path / "plan.toml").write_text(PLAN)
    for words in (
        ["--version"],
        ["doctor"],
        ["algorithms", "cubic"],
        ["compare", "mine.py:Law", "--time", "4s", "--repeat", "2", "--report", "page.html"],
        ["model", "reno-response", "--p", "0.01"],
        ["sweep", "plan.toml", "--out", "points"],
        ["query", "points", "select count(*) from runs"],
        # Python itself starts processes otherwise on Windows.
        ["reproduce", "simd", "--exhibit", "table-1", "--quick"] if system == "darwin" else [],
    ):
        done = elsewhere(system, *words)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("system", "words", "told"),
    [
        ("darwin", ["emulate", "--nothing"], "cwnd emulate needs Linux"),
        ("win32", ["emulate", "no-such-command"], "cwnd emulate needs Linux"),
        ("darwin", ["kernel", "list"], "cwnd kernel needs Linux"),
        ("win32", ["send"], "cwnd send needs Linux or macOS"),
        ("win32", ["keygen"], "cwnd keygen needs Linux or macOS"),
        ("win32", ["perf", "host"], "cwnd perf needs Linux or macOS"),
    ],
)
def test_what_needs_another_system_says_so(elsewhere, system, words, told):
    done = elsewhere(system, *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"cwnd: {told}\n")


def test_processes_of_controllers_need_unix(elsewhere, tmp_path):
    (tmp_path / "mine.py").write_text(LAW)
    (tmp_path / "plan.toml").write_text(PLAN.replace("reno", "mine.py:Law"))
    done = elsewhere("win32", "sweep", "plan.toml", "--out", "points")
    told = "cwnd: a sweep of Python controllers needs Linux or macOS\n"
    assert done.returncode == 2
    assert done.stderr.endswith(told)


def test_real_time_needs_linux(elsewhere, scenario_file):
    for words in (["run", scenario_file, "--on", "udt"], ["agree", scenario_file]):
        done = elsewhere("darwin", *words)
        assert done.returncode == 2
        assert re.fullmatch(
            r"cwnd: --on \w+, which emulates the network, needs Linux\n", done.stderr
        )


def test_output_is_utf_8(complete):
    for words in (["model"], ["model", "pftk", "--help"], ["algorithms"]):
        done = complete(
            *(sys.executable, "-m", "cwnd", *words), env=os.environ | {"PYTHONIOENCODING": "cp1252"}
        )
        assert done.returncode == 0, done.stderr
