"""`cwnd perf` as processes of their own, over UDT."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.realtime


@pytest.fixture
def start(spawn):
    """Start a verb beside the test; gives the process and the port that it tells."""

    def begin(*arguments: str) -> tuple[subprocess.Popen[str], int]:
        process = spawn(
            *[sys.executable, "-u", "-m", "cwnd", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for line in process.stdout:
            if found := re.search(r"port (\d+)$|listening on (\d+)", line):
                return process, int(found[1] or found[2])
        raise AssertionError(process.wait())

    return begin


@pytest.mark.parametrize("flags", [(), ("-R", "-C", "reno")])
def test_perf_over_udt(start, command, flags):
    server, port = start("perf", "-s", "-p", "0")
    done = command("perf", "-c", "127.0.0.1", "-p", f"{port}", "-t", "1", "-P", "2", "-J", *flags)
    assert done.returncode == 0, done.stderr
    end = json.loads(done.stdout)["end"]
    assert end["sum_received"]["bytes"] > 1_000_000
    # The two sides end their measurements at different times, each with its own duration.
    ratio = end["sum_sent"]["bits_per_second"] / end["sum_received"]["bits_per_second"]
    assert 0.5 < ratio < 2
    if not flags:
        assert any("receiver" in line for line in server.stdout)
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=30)
    assert server.returncode == 130


@pytest.mark.parametrize("flags", [(), ("-R",)])
def test_a_killed_client_does_not_block_the_server(start, command, flags):
    _, port = start("perf", "-s", "-p", "0")
    words = ("perf", "-c", "127.0.0.1", "-p", f"{port}", *flags)
    killed, _ = start(*words, "-t", "60", "-i", "0.1")
    for line in killed.stdout:
        if "Mbits/sec" in line or "Gbits/sec" in line:
            break
    killed.kill()
    began = time.monotonic()
    words += ("-t", "0.5", "-b", "8M", "-J")
    done = command(*words)
    # The server may still read what the client sent before.
    while "the server is busy" in done.stderr and time.monotonic() - began < 12:
        done = command(*words)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 12


@pytest.fixture
def keys(tmp_path):
    """Two files with keys."""
    files = []
    for name in ("one", "other"):
        files.append(tmp_path / name)
        files[-1].write_bytes(random.Random(name).randbytes(32))
        files[-1].chmod(0o600)
    # The same key may be written in another way.
    (tmp_path / "digits").write_text(files[0].read_bytes().hex() + "\n")
    (tmp_path / "digits").chmod(0o600)
    return files[0], tmp_path / "digits", files[1]


def test_perf_with_a_key(start, command, keys):
    one, same, _ = keys
    _, port = start("perf", "-s", "-p", "0", "--key", str(one))
    words = ["-p", str(port), "-t", "0.5", "-i", "0", "-P", "2", "-b", "8M", "-J"]
    words += ["--key", str(same)]
    for more in ([], ["-R"]):
        done = command("perf", "-c", "127.0.0.1", *words, *more)
        assert done.returncode == 0, done.stderr + done.stdout
        assert json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] > 1e6
