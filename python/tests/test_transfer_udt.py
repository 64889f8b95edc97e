"""`cwnd send`, `recv` and `perf` as processes of their own, over UDT."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from cwnd.cli import run


@pytest.fixture
def start():
    """Start a verb beside the test; gives the process and the port that it tells."""
    running: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "cwnd", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running.append(process)
        for line in process.stdout:
            if found := re.search(r"port (\d+)$|listening on (\d+)", line):
                return process, int(found[1] or found[2])
        raise AssertionError(process.wait())

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_folder_over_udt(start, command, tmp_path):
    source = tmp_path / "folder"
    (source / "below").mkdir(parents=True)
    (source / "below" / "large").write_bytes(random.Random(1).randbytes(5_000_000))
    (source / "empty").touch()
    receiver, port = start("recv", "--once", "--port", "0", "--out", str(tmp_path / "in"))
    done = command("send", source, f"localhost:{port}", "--cc", "reno")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sent 2 files, 5 MB in ")
    said, _ = receiver.communicate(timeout=60)
    assert receiver.returncode == 0, said
    there = tmp_path / "in" / "folder" / "below" / "large"
    assert there.read_bytes() == (source / "below" / "large").read_bytes()


def test_an_interrupted_sender_goes_on_over_udt(start, command, tmp_path):
    source, into = tmp_path / "large", tmp_path / "in"
    source.write_bytes(random.Random(1).randbytes(20_000_000))
    receiver, port = start("recv", "--once", "--port", "0", "--out", str(into))
    sender = subprocess.Popen(
        [sys.executable, "-m", "cwnd", "send", source, f"127.0.0.1:{port}", "--rate-limit=20mbit"],
        stderr=subprocess.PIPE,
        text=True,
    )
    part = into / "large.cwnd-part"
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 1 << 20) and time.monotonic() < deadline:
        time.sleep(0.02)
    sender.send_signal(signal.SIGINT)
    assert sender.communicate(timeout=60)[1] == "cwnd: interrupted\n"
    assert sender.returncode == 130
    assert "the other side has ended the connection" in receiver.communicate(timeout=60)[0]
    assert receiver.returncode == 1
    assert [path.name for path in into.iterdir()] == [part.name]
    assert part.stat().st_size < 20_000_000

    receiver, port = start("recv", "--once", "--port", "0", "--out", str(into))
    done = command("send", source, f"127.0.0.1:{port}")
    assert done.returncode == 0, done.stderr
    assert re.search(r"MB of it were there already$", done.stdout)
    assert receiver.communicate(timeout=60)
    assert (into / "large").read_bytes() == source.read_bytes()
    assert not part.exists()


def test_standard_input_over_udt(start, tmp_path):
    data = os.urandom(3_000_000)
    receiver, port = start("recv", "--once", "--port", "0", "--out", str(tmp_path))
    arguments = [sys.executable, "-m", "cwnd", "send", "-", f"127.0.0.1:{port}"]
    assert subprocess.run(arguments, input=data, check=True, timeout=60, capture_output=True)
    receiver.communicate(timeout=60)
    assert (tmp_path / "stdin").read_bytes() == data


def test_a_receivers_port_in_use(start, command, tmp_path):
    _, port = start("recv", "--port", "0", "--out", str(tmp_path))
    done = command("recv", "--port", f"{port}", "--out", tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(rf"cwnd: .*port {port}.* in use.*\n", done.stderr)


@pytest.mark.parametrize("flags", [(), ("-R", "-C", "reno")])
def test_perf_over_udt(start, command, flags):
    server, port = start("perf", "-s", "-p", "0")
    done = command("perf", "-c", "127.0.0.1", "-p", f"{port}", "-t", "1", "-P", "2", "-J", *flags)
    assert done.returncode == 0, done.stderr
    end = json.loads(done.stdout)["end"]
    assert end["sum_received"]["bytes"] > 1_000_000
    # What a sender counts is acknowledged: it has arrived, but for what is on its way at the end.
    assert abs(end["sum_sent"]["bytes"] - end["sum_received"]["bytes"]) < 50_000_000
    server.send_signal(signal.SIGINT)
    assert "receiver" in server.communicate(timeout=30)[0] or flags
    assert server.returncode == 130


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


def test_a_file_with_a_key(start, command, keys, monkeypatch, capsys, tmp_path):
    one, same, other = keys
    source, into = tmp_path / "large", tmp_path / "in"
    source.write_bytes(random.Random(2).randbytes(5_000_000))
    receiver, port = start("recv", "--once", "--port=0", "--out", str(into), "--key", str(one))
    # Who has no key is told so, and who has another one only that nobody answers.
    refused = command("send", source, f"127.0.0.1:{port}")
    assert refused.returncode == 1
    assert re.fullmatch(r"cwnd: no connection to .*only those who have its key\n", refused.stderr)
    monkeypatch.setattr("cwnd.cli.peers.CONNECT_TIMEOUT", 0.5)
    assert run(["send", str(source), f"127.0.0.1:{port}", "--key", str(other)]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r"cwnd: no connection to .*none that has this key\n", said)
    done = command("send", source, f"127.0.0.1:{port}", "--key", same)
    assert (done.returncode, done.stderr) == (0, "")
    said, _ = receiver.communicate(timeout=60)
    assert receiver.returncode == 0, said
    assert (into / "large").read_bytes() == source.read_bytes()


def test_perf_with_a_key(start, command, keys):
    one, same, _ = keys
    _, port = start("perf", "-s", "-p", "0", "--key", str(one))
    words = ["-p", str(port), "-t", "0.5", "-i", "0", "-P", "2", "-J", "--key", str(same)]
    for more in ([], ["-R"]):
        done = command("perf", "-c", "127.0.0.1", *words, *more)
        assert done.returncode == 0, done.stderr + done.stdout
        assert json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] > 1e6
