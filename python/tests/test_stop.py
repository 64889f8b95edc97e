"""Ctrl-C and SIGTERM end every command soon, with its child processes."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import cwnd
from cwnd._runs.real_time import emulates

pytestmark = pytest.mark.realtime

SECONDS = 4.0
"""Longest time from a signal to the end: two seconds on an idle machine."""

# Runs the command line; the call of a function is the first sign of work.
TELLING = """
import pkgutil, sys
of, name = pkgutil.resolve_name(sys.argv[1]), sys.argv[2]
called = getattr(of, name)
def tell(*arguments, **options):
    sys.stderr.write("at work\\n")
    sys.stderr.flush()
    return called(*arguments, **options)
setattr(of, name, tell)
del sys.argv[1:3]
from cwnd.__main__ import main
main()
"""

# Runs the command line; an interrupt breaks a function, as it breaks a lock of `threading`.
BREAKING = """
import pkgutil, signal, sys
of, name = sys.argv.pop(1).split(":")
def broken(*arguments, **options):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("release unlocked lock")
setattr(pkgutil.resolve_name(of), name, broken)
from cwnd.__main__ import main
main()
"""

LAWS = """
import sys

class Endless:
    def grow(self, w, acked, cx):
        sys.stderr.write("at work\\n")
        sys.stderr.flush()
        while True:
            pass

    def cut(self, w, why, cx):
        return w / 2
"""

PLAN = """
controllers = ["reno"]
repeat = 1000
[base]
rate = "100mbit"
time = "20s"
flows = 2
"""

SIMULATE = ("cwnd._native", "simulate")
LONG = ("--rate", "10gbit", "--time", "2h")
JOIN = "select count(*) from range(10000000) a, range(10000000) b where a.range + b.range < 0"
SLOWLY = ("--rate-limit", "1mbit", "big")
LAW = ("--spec", "laws.py:Endless", "--p", "0.01")

COMMANDS = {
    "run": (SIMULATE, ["run", "net.toml"]),
    "run a law": (None, ["run", "law.toml"]),
    "compare": (SIMULATE, ["compare", "simd", *LONG]),
    "evaluate": (SIMULATE, ["evaluate", "reno", "--quick"]),
    "score a law": (("cwnd._tasks.score.apart:Apart", "run"), ["score", "laws.py:Endless"]),
    "sweep": (SIMULATE, ["sweep", "plan.toml", "--out", "out"]),
    "sweep a law": (None, ["sweep", "law-plan.toml", "--out", "out"]),
    "query": (("cwnd._sweeps.query", "_apart"), ["query", "small", JOIN]),
    "reproduce": (("multiprocessing.pool:Pool", "imap_unordered"), ["reproduce", "--quick"]),
    "model": (None, ["model", "stationary-figures", *LAW]),
    "emulate": (None, ["emulate", "--", "sh", "-c", "echo at work >&2; exec sleep 60"]),
    "run in real time": (("cwnd._native", "run_real"), ["run", "net.toml", "--on", "udt"]),
    "agree": (("cwnd._native", "run_real"), ["agree", "net.toml", "--on", "udt,sim"]),
    "recv": (("cwnd._native", "transfer_receive"), ["recv", "--port", "0"]),
    "send": (("cwnd._native", "transfer_send"), ["send", *SLOWLY, "127.0.0.1:PORT"]),
    "perf -s": (("cwnd.perf:Server", "serve"), ["perf", "-s", "-p", "0"]),
    "perf -c": (("cwnd.perf", "measure"), ["perf", "-c", "127.0.0.1", "-p", "PORT", "-t", "60"]),
}
EMULATED = {"emulate", "run in real time", "agree"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("folder")
    (home / "laws.py").write_text(LAWS)
    net = cwnd.Scenario.dumbbell(rate="10gbit", rtt="40ms", time="2h").add_flow("reno").to_toml()
    (home / "net.toml").write_text(net)
    (home / "law.toml").write_text(net.replace('"reno"', '"laws.py:Endless"'))
    (home / "plan.toml").write_text(PLAN)
    (home / "law-plan.toml").write_text(PLAN.replace('"reno"', '"reno", "laws.py:Endless"'))
    cwnd.sweep({"base": {"time": "1s"}, "controllers": ["reno"]}, out=home / "small")
    (home / "big").write_bytes(bytes(10_000_000))
    return home


def marked(mark: str) -> list[str]:
    """Return the command lines of the processes that inherited a variable."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().decode())
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_signals_end_a_command(name, folder, tmp_path, spawn):
    sign, words = COMMANDS[name]
    if name in EMULATED:
        try:
            emulates()
        except OSError as problem:
            pytest.skip(f"no emulated links here: {problem}")
    if "PORT" in " ".join(words):
        port = start_peer(spawn, tmp_path, name)
        words = [word.replace("PORT", port) for word in words]
    start = ["-m", "cwnd"] if sign is None else ["-c", TELLING, *sign]
    started = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        mark = secrets.token_hex(16)
        home = tmp_path / number.name
        home.mkdir()
        for file in folder.iterdir():
            (home / file.name).symlink_to(file)
        process = spawn(
            *[sys.executable, *start, *words],
            cwd=home,
            env=os.environ | {"MARK": mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started[number] = process, mark
    begins = {}
    for number, (process, _) in started.items():
        assert "at work\n" in iter(process.stderr.readline, "")
        begins[number] = time.monotonic()
        process.send_signal(number)
    for number, (process, mark) in started.items():
        status = process.wait(timeout=60)
        seconds = time.monotonic() - begins[number]
        said = process.stderr.read()
        assert status == 128 + number, said
        assert "Traceback" not in said
        assert name == "emulate" or said.endswith("cwnd: interrupted\n")
        assert seconds < SECONDS
        while left := marked(mark):
            assert time.monotonic() < begins[number] + SECONDS, left
            time.sleep(0.02)


@pytest.mark.parametrize("of", ["cwnd._native:simulate", "cwnd._cli:run"])
def test_an_error_that_an_interrupt_causes_is_the_interrupt(of, folder, spawn):
    words = [sys.executable, "-c", BREAKING, of, "run", "net.toml"]
    process = spawn(*words, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.communicate()[1] == "cwnd: interrupted\n"
    assert process.returncode == 128 + signal.SIGINT


def start_peer(spawn, home, words: str) -> str:
    """Start the receiver or server that a command needs; return its port."""
    own = ["perf", "-s", "-p", "0"] if words.startswith("perf") else ["recv", "--port", "0"]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = spawn(sys.executable, "-m", "cwnd", *own, cwd=home, **output)
    port = re.compile(r"port (\d+)|listening on (\d+)")
    found = next(match for match in map(port.search, process.stdout) if match)
    return found[1] or found[2]
