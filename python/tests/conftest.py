"""What the tests share: one small comparison and one small run, made once."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import types
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import cwnd

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
