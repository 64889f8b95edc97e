"""What the tests share: one small comparison and one small run, made once."""

from __future__ import annotations

import gc
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from jsonschema import Draft202012Validator

import cwnd
from cwnd import _cli as cli
from cwnd import udt
from cwnd._cli.documents import document_schema
from cwnd.model.catalog import models

# Imports allocate for seconds, and what they allocate stays.
gc.disable()

# Machines are noisy: how long an example takes decides nothing.
settings.register_profile("cwnd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cwnd")

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start processes or run commands as slow: `make check` leaves them out."""
    for item in items:
        if not {"spawn", "module_spawn", "command"}.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Exclude the objects of all imported libraries from garbage collections."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_defaults(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the configuration file and the variables of this user out of the tests."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    for name in [name for name in os.environ if name.startswith("CWND_")]:
        del os.environ[name]


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


# On Linux the kernel kills the process when pytest ends.
_SETPRIV = shutil.which("setpriv")
_LAUNCHER = [_SETPRIV, "--pdeathsig", "KILL", "--"] if _SETPRIV else []


@contextmanager
def _handled_interrupts() -> Iterator[None]:
    """Let new processes have the default action of SIGINT, which a shell ignores in its jobs.

    An ignored signal stays ignored in a new process; one with a handler does not.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def start_processes() -> Iterator[Callable[..., subprocess.Popen[Any]]]:
    """Start processes; each is killed at the end of the fixture, with its process group.

    The context manager of `subprocess.Popen` waits for the process, even after a failed assertion.
    """
    started: list[subprocess.Popen[Any]] = []

    def start(*words: object, **options: Any) -> subprocess.Popen[Any]:
        command = [*_LAUNCHER, *map(str, words)]
        with _handled_interrupts():
            started.append(subprocess.Popen(command, start_new_session=True, **options))
        return started[-1]

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # Input that the process did not read cannot be written any more.
        with suppress(BrokenPipeError):
            process.__exit__(None, None, None)


spawn = pytest.fixture(start_processes, name="spawn")
module_spawn = pytest.fixture(start_processes, name="module_spawn", scope="module")


@pytest.fixture
def complete(spawn) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a process to its end, as `subprocess.run` does, for at most a minute."""

    def run(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        pipe = subprocess.PIPE
        given = options.pop("input", None)
        stdin = None if given is None else pipe
        process = spawn(*words, stdin=stdin, stdout=pipe, stderr=pipe, text=True, **options)
        out, err = process.communicate(given, timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    return run


@pytest.fixture
def command(capfd, monkeypatch):
    """Run the command line in this process, which has imported its modules already."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as context:
            if cwd is not None:
                context.chdir(cwd)
            status = cli.run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        words = [str(argument) for argument in arguments]
        if "--json" in words and status != 2:
            name = document_name(words)
            for text in out.splitlines() if name == "send" else [out]:
                check_document(name, json.loads(text))
        return subprocess.CompletedProcess(arguments, status, out, err)

    return run


def document_name(words: list[str]) -> str:
    """Return the name of the document that a command line with ``--json`` prints."""
    verb, *rest = words
    flags = {
        "run": {"--repeat": "repeat", "--fork-at": "fork"},
        "evaluate": {"--list": "list", "--cell": "run", "--seed": "run"},
        "sweep": {"--dry-run": "dry-run", "--verify": "verify", "--forget": "forget"},
    }.get(verb, {})
    for word, name in flags.items():
        if word in rest:
            return f"{verb}-{name}"
    if verb in ("trace", "law"):
        return f"{verb}-{rest[0]}"
    if verb == "kernel":
        return f"kernel-{'load' if rest[0] == 'unload' else rest[0]}"
    if verb == "model" and rest[0] not in {"NAME", *(model.name for model in models())}:
        return "models" if rest[0].startswith("-") else "model-law"
    if verb == "query" and not any(word.lower().startswith("select") for word in rest):
        return "query-tables"
    return "send" if verb == "recv" else verb


def check_document(name: str, document: Any) -> None:
    """Validate a document of a command, all of whose keys are known."""
    schema = document_schema(name)
    for each in schema["$defs"].values():
        if "properties" in each:
            each.setdefault("additionalProperties", False)
    assert [each.message for each in Draft202012Validator(schema).iter_errors(document)] == []


@pytest.fixture(scope="session")
def documents() -> types.SimpleNamespace:
    """The functions that name and validate the document of a command."""
    return types.SimpleNamespace(name=document_name, check=check_document)


@pytest.fixture
def transfer():
    """Send bytes over a UDT connection on loopback; the number of bytes that arrived."""

    def run(controller: Any, size: int) -> int:
        got = []

        def serve(listener: Any) -> None:
            with listener.accept(timeout=10) as connection:
                while data := connection.recv():
                    got.append(len(data))

        with udt.listen(0, "127.0.0.1") as listener:
            thread = Thread(target=serve, args=[listener])
            thread.start()
            with udt.connect(*listener.address, controller=controller) as connection:
                connection.send(bytes(size))
            thread.join()
        return sum(got)

    return run


class Wire:
    """One end of a reliable stream of bytes, as transfers and tests of speed need it."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.peer = ("127.0.0.1", 9000)
        self.address = ("127.0.0.1", 9001)

    def send(self, data) -> None:
        self.socket.sendall(data)

    def recv(self, size: int, *, timeout: float | None = None) -> bytes:
        if timeout is None:
            return self.socket.recv(size)
        if not select.select([self.socket], [], [], timeout)[0]:
            raise TimeoutError
        return self.socket.recv(size)

    def abort(self) -> None:
        self.close()

    def close(self) -> None:
        # A thread that waits for data would hold a closed socket open.
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def stats(self) -> dict[str, float]:
        return {"ms_rtt": 0.0}


class Door:
    """A listener whose connections are `Wire`s over TCP."""

    def __init__(self, port: int, host: str) -> None:
        host = "127.0.0.1" if host in {"::", "0.0.0.0"} else host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.create_server((host, port), family=family)
        self.address = self.socket.getsockname()

    def accept(self, *, timeout: float | None = None) -> Wire:
        self.socket.settimeout(timeout)
        end, peer = self.socket.accept()
        end.settimeout(None)
        wire = Wire(end)
        wire.peer = peer
        return wire

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def tcp(monkeypatch):
    """Put TCP in the place of UDT; gives what was asked of it."""
    asked: list[dict] = []

    def connect(host: str, port: int, *, timeout=None, **options) -> Wire:
        asked.append(options)
        wire = Wire(socket.create_connection((host, port), timeout))
        wire.socket.settimeout(None)
        wire.peer = (host, port)
        return wire

    def listen(port: int, host: str = "0.0.0.0", **options) -> Door:
        asked.append(options)
        return Door(port, host)

    udt = types.ModuleType("cwnd.udt")
    udt.connect, udt.listen = connect, listen
    monkeypatch.setitem(sys.modules, "cwnd.udt", udt)
    return asked


@pytest.fixture
def wires():
    """Make two ends of a connection; what is left open is closed after the test."""
    made: list[Wire] = []

    def make() -> tuple[Wire, Wire]:
        one, other = map(Wire, socket.socketpair())
        made.extend((one, other))
        return one, other

    yield make
    for wire in made:
        wire.close()


@pytest.fixture
def isolated(
    complete: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a shell script in network and mount namespaces of its own; skip where there are none."""
    if os.geteuid() != 0:
        pytest.skip("only root can make namespaces")
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            pytest.skip(f"it needs the program {program}")
    made = subprocess.run(["unshare", "-m", "-n", "true"], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("this user may make no namespaces")

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return complete("unshare", "-m", "-n", "--propagation", "private", "bash", "-c", script)

    return run


def keys_of(value: Any) -> set[str]:
    """Return the keys of all objects in a JSON document."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


@pytest.fixture(scope="session")
def check_json() -> Callable[..., None]:
    """Compare a JSON document with its schema and a section of docs/json.md, or a row of a table.

    The document of the place's command is the first one of a list. The place names all keys but
    those of ``data``. The document has the keys that begin the rows of the section's tables, or
    those of the row outside parentheses, but the ``absent`` ones.
    """
    text = (Path(__file__).parents[2] / "docs/json.md").read_text("utf-8")

    def words(of: str) -> set[str]:
        return {word for code in re.findall("`([^`]+)`", of) for word in re.findall(r"\w+", code)}

    def check(
        document: Any, place: str, *, absent: Iterable[str] = (), data: Iterable[str] = ()
    ) -> None:
        begin, end = ("^", "(?=^## |\\Z)") if place.startswith("## ") else ("^\\| ", "$")
        part = re.search(rf"{begin}{re.escape(place)}((?s:.*?)){end}", text, re.MULTILINE)[1]
        heads = " ".join(re.findall(r"^\| (.*?) \|", part, re.MULTILINE))
        heads = heads or re.sub(r"\([^()]*\)", "", part)
        found = re.search("`cwnd ([^…]*?)`", place)
        if found or place.endswith(" |"):
            line = shlex.split(found[1]) if found else ["send"]
            whole = document[0] if isinstance(document, list) else document
            check_document(document_name(line), whole)
        used = keys_of(document)
        assert used - words(part) - set(data) == set(), place
        assert set(re.findall(r"`(\w+)`", heads)) - used == set(absent), place

    return check
