"""`cwnd.transfer` over UDT on loopback. The engine has tests of its own in crates/cwnd-transfer."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cwnd import udt
from cwnd.errors import ArgumentError
from cwnd.transfer import (
    ReceiveOptions,
    SendOptions,
    SourceError,
    TransferError,
    receive,
    send,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).parents[2]
SEND = (
    "import sys; from cwnd.transfer import send; send(sys.argv[2:], '127.0.0.1', int(sys.argv[1])"
)


RECEIVE = """
import sys
from cwnd import udt
from cwnd.transfer import ReceiveOptions, receive
with udt.listen(int(sys.argv[1]), "127.0.0.1") as listener:
    print("ready", flush=True)
    receive(listener, sys.argv[2], options=ReceiveOptions(reserve="0"))
"""


class Inbox:
    """A receiver in a thread."""

    def __init__(self, out: Path, options: ReceiveOptions, *, port: int = 0, **listening) -> None:
        out.mkdir(exist_ok=True)
        self.out = out
        self.events: list[dict] = []
        self.stop = threading.Event()
        self.listener = udt.listen(port, "127.0.0.1", **listening)
        self.address = self.listener.address
        self.thread = threading.Thread(target=self._receive, args=[options])
        self.thread.start()

    def _receive(self, options: ReceiveOptions) -> None:
        receive(
            self.listener, self.out, options=options, observe=self.events.append, stop=self.stop
        )

    def close(self) -> None:
        self.stop.set()
        self.thread.join(20)
        self.listener.close()


@pytest.fixture
def inbox(tmp_path):
    """Start receivers; they are stopped after the test."""
    made: list[Inbox] = []

    def start(options: ReceiveOptions | None = None, name: str = "in", **listening) -> Inbox:
        chosen = options or ReceiveOptions(reserve="0")
        made.append(Inbox(tmp_path / name, chosen, **listening))
        return made[-1]

    yield start
    for each in made:
        each.close()


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def kinds(events: list[dict]) -> list[str]:
    return [event["event"] for event in events if event["event"] != "progress"]


def test_a_folder_and_its_events(inbox, tmp_path):
    source = tmp_path / "folder"
    (source / "below").mkdir(parents=True)
    (source / "below" / "large").write_bytes(noise(5_000_000))
    (source / os.fsdecode(b"\xff\x1b[2J")).touch()
    (source / "out").symlink_to("/etc")
    there, events = inbox(), []
    outcome = send([source], *there.address, observe=events.append, controller="reno")
    assert (outcome.outcome, outcome.files, outcome.not_sent) == ("incomplete", 2, 1)
    assert outcome.bytes == outcome.moved_bytes == 5_000_000
    assert outcome.rate_bps == pytest.approx(8 * 5_000_000 / outcome.seconds)
    assert sum(outcome.limited.values()) == pytest.approx(1)
    assert kinds(events) == ["error", "plan", "connected", "file", "file", "end"]
    assert events[0]["path"] == "folder/out"
    assert {event.get("path") for event in events} >= {"folder/\\xff\\u{1b}[2J"}
    json.dumps(events)
    assert (there.out / "folder" / "below" / "large").read_bytes() == noise(5_000_000)
    deadline = time.monotonic() + 10
    while "end" not in kinds(there.events) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert kinds(there.events) == ["connected", "plan", "file", "file", "end"]
    assert set(there.events[-1]["limited"]) == {"disk", "processor", "sender"}


def test_what_is_there_counts_into_no_rate(inbox, tmp_path):
    source = tmp_path / "f"
    source.write_bytes(noise(400_000))
    there = inbox()
    assert send([source], *there.address).moved_bytes == 400_000
    again = send([os.fsencode(source)], *there.address)
    assert (again.files, again.bytes, again.moved_bytes, again.rate_bps) == (1, 400_000, 0, 0)


def test_nothing_is_overwritten_unless_asked(inbox, tmp_path):
    source = tmp_path / "f"
    source.write_bytes(b"new")
    there = inbox()
    (there.out / "f").write_bytes(b"old, and longer")
    assert send([source], *there.address).not_sent == 1
    assert (there.out / "f").read_bytes() == b"old, and longer"
    there = inbox(ReceiveOptions(overwrite=True, reserve="0"))
    assert send([source], *there.address).outcome == "complete"
    assert (there.out / "f").read_bytes() == b"new"


def test_once_returns_after_a_transfer_that_came_to_its_end(inbox, tmp_path):
    source = tmp_path / "f"
    source.write_bytes(b"x")
    there = inbox(ReceiveOptions(once=True, reserve="0"))
    with udt.connect(*there.address) as stranger:
        stranger.send(b"x")
    there.thread.join(1)
    assert there.thread.is_alive()
    send([source], *there.address)
    there.thread.join(20)
    assert not there.thread.is_alive()


def test_standard_input(inbox):
    there, data = inbox(), noise(3_000_000)
    command = [sys.executable, "-c", SEND + ")", str(there.address[1]), "-"]
    subprocess.run(command, input=data, check=True, timeout=60)
    assert (there.out / "stdin").read_bytes() == data
    assert (there.out / "stdin").stat().st_mtime == pytest.approx(time.time(), abs=60)


def test_a_slow_pipe_keeps_its_connection(inbox, spawn):
    there = inbox()
    command = [sys.executable, "-c", SEND + ")", there.address[1], "-"]
    sender = spawn(*command, stdin=subprocess.PIPE)
    assert sender.stdin is not None
    sender.stdin.write(b"first")
    sender.stdin.flush()
    time.sleep(17)
    sender.communicate(b"second", timeout=60)
    assert sender.returncode == 0
    assert (there.out / "stdin").read_bytes() == b"firstsecond"


@pytest.fixture
def sending(inbox, tmp_path, spawn) -> tuple[Inbox, Path, subprocess.Popen]:
    """A process in the middle of a transfer."""
    source, there = tmp_path / "large", inbox()
    source.write_bytes(noise(30_000_000))
    words = SEND + ", rate_limit='40mbit')"
    command = [sys.executable, "-c", words, there.address[1], source]
    sender = spawn(*command, stderr=subprocess.PIPE)
    part, deadline = there.out / "large.cwnd-part", time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 3 << 20) and time.monotonic() < deadline:
        time.sleep(0.02)
    return there, source, sender


def test_after_kill_9_the_next_sender_takes_over_at_once(sending):
    there, source, sender = sending
    sender.kill()
    start = time.monotonic()
    outcome = send([source], *there.address)
    assert time.monotonic() - start < 8
    assert outcome.outcome == "complete"
    assert outcome.moved_bytes < 28_000_000
    assert (there.out / "large").read_bytes() == source.read_bytes()


def test_an_interrupt_ends_it_at_once_and_the_next_call_resumes(sending):
    there, source, sender = sending
    sender.send_signal(signal.SIGINT)
    start = time.monotonic()
    _, said = sender.communicate(timeout=20)
    assert time.monotonic() - start < 2
    assert b"KeyboardInterrupt" in said
    events: list[dict] = []
    assert send([source], *there.address, observe=events.append).moved_bytes < 28_000_000
    assert [e["outcome"] for e in events if e["event"] == "file"] == ["resumed"]


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_after_a_restart_of_the_receiver_the_sender_continues(tmp_path, spawn):
    source, out, port = tmp_path / "large", tmp_path / "in", free_port()
    source.write_bytes(noise(20_000_000))
    out.mkdir()
    receivers: list[subprocess.Popen[str]] = []

    def start() -> None:
        command = [sys.executable, "-c", RECEIVE, port, out]
        receivers.append(spawn(*command, stdout=subprocess.PIPE, text=True))
        assert receivers[-1].stdout is not None
        assert receivers[-1].stdout.readline() == "ready\n"

    def observe(event: dict) -> None:
        events.append(event)
        if event["event"] == "progress" and event["done_bytes"] > 5 << 20 and len(receivers) == 1:
            receivers[0].kill()
            receivers[0].wait()
            start()

    events: list[dict] = []
    start()
    begin = time.monotonic()
    outcome = send([source], "127.0.0.1", port, observe=observe, rate_limit="80mbit")
    assert time.monotonic() - begin < 15
    assert outcome.outcome == "complete"
    assert outcome.moved_bytes < 30_000_000
    assert "retry" in kinds(events)
    assert (out / "large").read_bytes() == source.read_bytes()


def test_nobody_answers(tmp_path):
    (tmp_path / "f").touch()
    events: list[dict] = []
    with pytest.raises(TransferError):
        send(
            [tmp_path / "f"],
            *("127.0.0.1", free_port()),
            observe=events.append,
            timeout=0.3,
            options=SendOptions(retry=1),
        )
    assert kinds(events) == ["plan", "retry", "end"]
    assert events[-1]["outcome"] == "failed"


def test_a_receiver_that_starts_later_is_found(inbox, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    port, there = free_port(), []

    def observe(event: dict) -> None:
        if event["event"] == "retry" and not there:
            there.append(inbox(port=port))

    outcome = send([tmp_path / "f"], "127.0.0.1", port, observe=observe, timeout=0.3)
    assert outcome.outcome == "complete"
    assert len(there) == 1


def test_a_wrong_code_is_one_guess(inbox, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    code = udt.generate_code()
    wrong = code[:-1] + ("a" if code[-1] != "a" else "e")
    there, events = inbox(code=code), []
    with pytest.raises(TransferError, match="the code is wrong or has expired"):
        send([tmp_path / "f"], *there.address, code=wrong, timeout=0.5, observe=events.append)
    assert kinds(events) == ["plan", "end"]
    assert send([tmp_path / "f"], *there.address, code=code).outcome == "complete"


def test_arguments_that_make_no_sense(inbox, tmp_path):
    (tmp_path / "f").touch()
    with pytest.raises(ArgumentError, match="a\\[b"):
        send([tmp_path / "f"], "127.0.0.1", 9, options=SendOptions(include=["a[b"]))
    with pytest.raises(ArgumentError, match="port"):
        send([tmp_path / "f"], "127.0.0.1", 0)
    with pytest.raises(SourceError, match="No such file"):
        send([tmp_path / "none"], "127.0.0.1", 9)
    with pytest.raises(SourceError, match="two sources have the name f"):
        send([tmp_path / "f", tmp_path / "f"], "127.0.0.1", 9)
    listener = inbox().listener
    with pytest.raises(ArgumentError, match="5 parsecs"):
        receive(listener, tmp_path, options=ReceiveOptions(reserve="5 parsecs"))
    with pytest.raises(TransferError, match="No such file"):
        receive(listener, tmp_path / "none")


KINDS = ["none", "key", "pair", "code"]


def credentials(kind: str, folder: Path) -> tuple[dict, dict, list[dict]]:
    """Return the options of a listener, of its peer, and of peers that it does not know."""
    other = noise(32)
    if kind == "pair":
        names = ("there", "here", "other")
        public = {name: udt.generate_pair(folder / name) for name in names}
        own = {name: {"pair": udt.read_secret(folder / name)} for name in names}
        to = {"peers": [public["there"]]}
        return (
            own["there"] | {"peers": [public["here"]]},
            own["here"] | to,
            [{}, own["other"] | to, {"key": other}],
        )
    secrets = {
        "none": [{}],
        "key": [{"key": bytes(range(32))}, {}, {"key": other}],
        "code": [{"code": udt.generate_code()}, {}, {"key": other}, {"code": udt.generate_code()}],
    }
    same, *unknown = secrets[kind]
    return same, same, unknown


@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_of_the_folder_hold_for_every_accepted_peer(inbox, tmp_path, kind):
    listening, sending, _ = credentials(kind, tmp_path)
    source = tmp_path / "source"
    source.mkdir()
    for name in ("new", "kept", ".profile"):
        (source / name).write_bytes(name.encode())
    there = inbox(ReceiveOptions(reserve="0", max_files=3), **listening)
    (there.out / "kept").write_bytes(b"old, and longer")
    events: list[dict] = []
    paths = [source / name for name in ("new", "kept", ".profile")]
    assert send(paths, *there.address, observe=events.append, **sending).files == 1
    reasons = {event["path"]: event["reason"] for event in events if event["event"] == "error"}
    assert reasons["kept"] == "a different file exists"
    assert "--allow-dotfiles" in reasons[".profile"]
    assert send([source], *there.address, **sending).files == 1
    assert {path.name for path in there.out.rglob("*")} == {"new", "kept", "source", ".profile"}
    assert not (there.out / ".profile").exists()
    assert (there.out / "kept").read_bytes() == b"old, and longer"


@pytest.mark.parametrize("kind", KINDS[1:])
def test_an_unknown_peer_can_do_nothing(inbox, tmp_path, kind):
    listening, sending, unknown = credentials(kind, tmp_path)
    (tmp_path / "f").write_bytes(b"x")
    there = inbox(**listening)
    for options in unknown:
        with pytest.raises(TransferError):
            send(
                [tmp_path / "f"],
                *there.address,
                options=SendOptions(retry=0),
                timeout=0.5,
                **options,
            )
    assert there.events == []
    assert list(there.out.iterdir()) == []
    assert send([tmp_path / "f"], *there.address, **sending).outcome == "complete"


def test_the_tests_of_the_security_page_exist():
    page = (ROOT / "docs/security.md").read_text("utf-8")
    sources = [*ROOT.glob("python/tests/*.py"), *ROOT.glob("crates/*/tests/*.rs")]
    sources += ROOT.glob("crates/*/src/**/*.rs")
    text = "\n".join(path.read_text("utf-8") for path in sources)
    known = set(re.findall(r"^ *(?:fn|def) (\w+)\(", text, re.MULTILINE))
    table = page.partition("## What a sender can do")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+){2,})`", table)
    assert len(named) > 20
    assert [name for name in named if name not in known] == []


def test_senders_with_a_key_share_more_places(inbox, tmp_path):
    key = bytes(range(32))
    (tmp_path / "f").write_bytes(b"x")
    there = inbox(key=key)
    waiting = [udt.connect(*there.address, key=key) for _ in range(6)]
    outcome = send([tmp_path / "f"], *there.address, key=key)
    assert outcome.outcome == "complete"
    for each in waiting:
        each.abort()


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """Mount a file system of 8 MiB in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_disk_that_fills_up_during_a_transfer(inbox, small_disk, tmp_path):
    """The sender is told why, and continues when there is room again."""
    source = tmp_path / "data"
    source.write_bytes(noise(6_000_000))
    receiver = inbox(name="disk")
    assert receiver.out == small_disk

    def fill(event: dict) -> None:
        if event["event"] == "progress" and event["moved_bytes"] > 3_000_000:
            with suppress(OSError):
                (small_disk / "filler").write_bytes(bytes(8 << 20))

    with pytest.raises(TransferError, match="No space left on device at the receiver"):
        send([source], *receiver.address, rate_limit="20mbit", observe=fill)
    assert not (small_disk / "data").exists()
    (small_disk / "filler").unlink()
    outcome = send([source], *receiver.address)
    assert outcome.outcome == "complete"
    assert 0 < outcome.moved_bytes < 6_000_000
    assert (small_disk / "data").read_bytes() == source.read_bytes()
