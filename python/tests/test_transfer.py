from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import random
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cwnd.transfer import Outcome, TransferError, receive, send
from cwnd.transfer.connection import Observer
from cwnd.transfer.frames import CHUNK

PART = ".cwnd-part"


@pytest.fixture
def transfer(wires, tmp_path):
    """Send something into tmp_path/"in", and give what both sides say came of it."""
    into = tmp_path / "in"
    into.mkdir()

    def run(source: Path | bytes, *lines: list[str]) -> tuple[Outcome, Outcome]:
        ours, theirs = wires()
        said, heard = (Observer(one.append) for one in (*lines, [], [])[:2])

        def side(end, work):
            try:
                return work()
            finally:
                end.close()

        with ThreadPoolExecutor(2) as pool:
            name = source if isinstance(source, bytes) else os.fsencode(source)
            outgoing = pool.submit(side, ours, lambda: send(ours, name, said))
            incoming = pool.submit(side, theirs, lambda: receive(theirs, into, heard))
        return outgoing.result(), incoming.result()

    run.into = into
    return run


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """What is in a directory: modes, times and bytes by name."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, data)
    return found


@pytest.mark.parametrize("size", [0, 1, 65535, CHUNK, CHUNK + 1, 9 * CHUNK + 12345])
def test_a_file_arrives_with_its_mode_and_time(transfer, tmp_path, size):
    source = tmp_path / "a file\nof two lines"
    source.write_bytes(noise(size))
    source.chmod(0o751)
    os.utime(source, ns=(1, 1_234_567_890_123_456_789))
    sent, received = transfer(source)
    assert sent == received == Outcome(files=1, bytes=size, moved=size)
    there = transfer.into / source.name
    assert there.read_bytes() == source.read_bytes()
    assert stat.S_IMODE(there.stat().st_mode) == 0o751
    assert there.stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert [path.name for path in transfer.into.iterdir()] == [source.name]


def test_a_directory_arrives_whole(transfer, tmp_path):
    source = tmp_path / "folder"
    (source / "empty").mkdir(parents=True)
    (source / "größe").mkdir()
    for number in range(50):
        (source / "größe" / f"{number} x").write_bytes(noise(number * 1000, number))
    (source / os.fsdecode(b"\xff\xfe not UTF-8")).write_bytes(b"x")
    (source / "größe").chmod(0o555)
    source.chmod(0o700)
    sent, received = transfer(source)
    (source / "größe").chmod(0o755)
    assert sent == received
    assert sent.files == 51
    there = transfer.into / "folder"
    assert stat.S_IMODE((there / "größe").stat().st_mode) == 0o555
    (there / "größe").chmod(0o755)
    assert tree(there) == tree(source)


def test_more_files_than_are_offered_at_once(transfer, tmp_path):
    source = tmp_path / "many"
    source.mkdir()
    for number in range(3000):
        (source / f"{number}").write_bytes(b"%d" % number)
    sent, received = transfer(source)
    assert sent == received
    assert sent.files == 3000
    assert tree(transfer.into / "many") == tree(source)


def test_directories_are_merged_and_files_replaced(transfer, tmp_path):
    source = tmp_path / "d"
    source.mkdir()
    (source / "a").write_bytes(b"new")
    there = transfer.into / "d"
    there.mkdir()
    (there / "a").write_bytes(b"old, and longer")
    (there / "b").write_bytes(b"stays")
    transfer(source)
    assert (there / "a").read_bytes() == b"new"
    assert (there / "b").read_bytes() == b"stays"


def test_what_is_there_is_not_sent_again(transfer, tmp_path):
    source = tmp_path / "d"
    source.mkdir()
    for name in "abc":
        (source / name).write_bytes(noise(100_000))
    transfer(source)
    (source / "b").write_bytes(noise(100_000, 2))
    (source / "c").chmod(0o600)
    said: list[str] = []
    sent, received = transfer(source, said)
    assert sent == received == Outcome(files=3, bytes=300_000, moved=100_000)
    assert said == [f"begun anew: {source}/b: other bytes are here than its own"]
    assert tree(transfer.into / "d") == tree(source)


def test_links_and_devices_are_skipped_and_told(transfer, tmp_path):
    source = tmp_path / "d"
    source.mkdir()
    (source / "file").write_bytes(b"x")
    (source / "link").symlink_to("/etc/passwd")
    (source / "loop").symlink_to(source)
    os.mkfifo(source / "pipe")
    (source / f"half{PART}").write_bytes(b"x")
    said: list[str] = []
    sent, _ = transfer(source, said)
    assert sent == Outcome(files=1, bytes=1, moved=1, skipped=4)
    assert said == [
        f"skipped: {source}/half{PART}: a half-received file",
        f"skipped: {source}/link: a symbolic link",
        f"skipped: {source}/loop: a symbolic link",
        f"skipped: {source}/pipe: a device or a pipe",
    ]
    assert {path.name for path in (transfer.into / "d").iterdir()} == {"file"}


def test_a_link_that_the_user_names_is_followed(transfer, tmp_path):
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to("target")
    transfer(tmp_path / "link")
    assert not (transfer.into / "link").is_symlink()
    assert (transfer.into / "link").read_bytes() == b"x"


def test_no_setuid_bit_arrives(transfer, tmp_path):
    source = tmp_path / "d"
    source.mkdir()
    (source / "program").write_bytes(b"x")
    (source / "program").chmod(0o6755)
    source.chmod(0o3777)
    transfer(source)
    there = transfer.into / "d"
    assert stat.S_IMODE((there / "program").stat().st_mode) == 0o755
    assert stat.S_IMODE(there.stat().st_mode) == 0o777


def test_standard_input_arrives_as_a_file(transfer, tmp_path):
    data = noise(3 * CHUNK + 5)
    (tmp_path / "data").write_bytes(data)
    saved = os.dup(0)
    with (tmp_path / "data").open("rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        sent, received = transfer(b"-")
    finally:
        os.dup2(saved, 0)
        os.close(saved)
    assert sent == received == Outcome(files=1, bytes=len(data), moved=len(data))
    assert (transfer.into / "stdin").read_bytes() == data


class Cut:
    """A connection that breaks after so many bytes."""

    def __init__(self, wire, left: int) -> None:
        self._wire = wire
        self._left = left

    def __getattr__(self, name):
        return getattr(self._wire, name)

    def send(self, data) -> None:
        if len(data) > self._left:
            self._wire.send(memoryview(data)[: self._left])
            self._wire.close()
            raise ConnectionResetError(errno.ECONNRESET, "cut")
        self._left -= len(data)
        self._wire.send(data)


def interrupt(wires, source: Path, into: Path, after: int) -> None:
    """Break a transfer after so many bytes."""
    ours, theirs = wires()
    with ThreadPoolExecutor(2) as pool:
        outgoing = pool.submit(send, Cut(ours, after), os.fsencode(source))
        incoming = pool.submit(receive, theirs, into)
    assert isinstance(outgoing.exception(), OSError | TransferError)
    assert isinstance(incoming.exception(), TransferError)
    theirs.close()


def test_an_interrupted_transfer_goes_on_where_it_stopped(transfer, wires, tmp_path):
    source = tmp_path / "large"
    source.write_bytes(noise(10 * CHUNK))
    interrupt(wires, source, transfer.into, 6 * CHUNK)
    part = transfer.into / f"large{PART}"
    assert [path.name for path in transfer.into.iterdir()] == [part.name]
    have = part.stat().st_size
    assert have == 5 * CHUNK
    sent, received = transfer(source)
    assert sent == received == Outcome(files=1, bytes=10 * CHUNK, moved=10 * CHUNK - have)
    assert (transfer.into / "large").read_bytes() == source.read_bytes()
    assert not part.exists()


def test_an_interrupted_directory_goes_on_where_it_stopped(transfer, wires, tmp_path):
    source = tmp_path / "d"
    source.mkdir()
    for number in range(8):
        (source / f"{number}").write_bytes(noise(CHUNK, number))
    interrupt(wires, source, transfer.into, 5 * CHUNK)
    sent, received = transfer(source)
    assert sent == received
    assert sent.files == 8
    assert sent.moved <= 4 * CHUNK
    assert tree(transfer.into / "d") == tree(source)


def test_a_source_that_changed_meanwhile_is_sent_anew(transfer, wires, tmp_path):
    source = tmp_path / "large"
    source.write_bytes(noise(10 * CHUNK))
    interrupt(wires, source, transfer.into, 6 * CHUNK)
    source.write_bytes(noise(10 * CHUNK, 2))
    said: list[str] = []
    sent, _ = transfer(source, said)
    assert sent.moved == 10 * CHUNK
    assert said == [f"begun anew: {source}: other bytes are here than its own"]
    assert (transfer.into / "large").read_bytes() == source.read_bytes()


def test_a_source_that_became_shorter_is_sent_anew(transfer, wires, tmp_path):
    source = tmp_path / "large"
    source.write_bytes(noise(10 * CHUNK))
    interrupt(wires, source, transfer.into, 6 * CHUNK)
    source.write_bytes(noise(100, 2))
    transfer(source)
    assert (transfer.into / "large").read_bytes() == source.read_bytes()
    assert [path.name for path in transfer.into.iterdir()] == ["large"]


class Meddler:
    """A connection that does something once, before so many bytes have gone."""

    def __init__(self, wire, act, after: int = 0) -> None:
        self._wire = wire
        self._act = act
        self._after = after

    def __getattr__(self, name):
        return getattr(self._wire, name)

    def send(self, data) -> None:
        self._after -= len(data)
        if self._after < 0 and self._act:
            act, self._act = self._act, None
            act()
        self._wire.send(data)


@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite"])
def test_a_source_that_changes_under_way_is_not_completed(wires, tmp_path, change):
    into = tmp_path / "in"
    into.mkdir()
    source = tmp_path / "log"
    source.write_bytes(noise(6 * CHUNK))

    def act():
        if change == "rewrite":
            source.write_bytes(noise(6 * CHUNK, 2))
        else:
            os.truncate(source, (7 if change == "grow" else 5) * CHUNK)

    ours, theirs = wires()
    said: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        outgoing = pool.submit(
            send, Meddler(ours, act, 3 * CHUNK), os.fsencode(source), Observer(said.append)
        )
        incoming = pool.submit(receive, theirs, into)
    assert outgoing.result().failed == incoming.result().failed == 1
    assert len(said) == 1
    assert "while it was sent" in said[0]
    assert [path.name for path in into.iterdir()] == [f"log{PART}"]


def test_a_bit_that_changes_on_the_way_is_found(wires, tmp_path):
    into = tmp_path / "in"
    into.mkdir()
    source = tmp_path / "f"
    source.write_bytes(bytes(3 * CHUNK))

    class Flip(Meddler):
        def send(self, data) -> None:
            if len(data) == CHUNK and self._act:
                self._act = None
                data = bytes(CHUNK - 1) + b"\x01"
            self._wire.send(data)

    ours, theirs = wires()
    said: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        outgoing = pool.submit(send, Flip(ours, print), os.fsencode(source), Observer(said.append))
        pool.submit(receive, theirs, into)
    assert outgoing.result().failed == 1
    assert said == [f"not sent: {source}: its hash differs from the sender's"]
    assert list(into.iterdir()) == []


def test_a_full_disk_is_one_sentence_and_keeps_the_part(wires, tmp_path, monkeypatch):
    into = tmp_path / "in"
    into.mkdir()
    source = tmp_path / "f"
    source.write_bytes(noise(20 * CHUNK))
    write, left = os.write, [4 * CHUNK]

    def full(fd, data):
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= len(data)
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    ours, theirs = wires()

    def incoming():
        try:
            receive(theirs, into)
        finally:
            theirs.close()

    with ThreadPoolExecutor(2) as pool:
        outgoing = pool.submit(send, ours, os.fsencode(source))
        received = pool.submit(incoming)
    words = "No space left on device at the receiver"
    assert str(received.exception()) == words
    assert str(outgoing.exception()) == f"the receiver gave up: {words}"
    assert (into / f"f{PART}").stat().st_size == 4 * CHUNK


def test_a_file_that_cannot_be_read_does_not_stop_the_others(transfer, tmp_path, monkeypatch):
    source = tmp_path / "d"
    source.mkdir()
    for name in "abc":
        (source / name).write_bytes(name.encode())
    really = os.open

    def guarded(path, *rest, **options):
        if path == os.fsencode(source / "b"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return really(path, *rest, **options)

    monkeypatch.setattr(os, "open", guarded)
    said: list[str] = []
    heard: list[str] = []
    sent, received = transfer(source, said, heard)
    assert sent.failed == received.failed == 1
    assert sent.files == received.files == 2
    assert said == [f"not sent: {source}/b: Permission denied"]
    assert heard == ["not sent: d/b: Permission denied"]


def test_two_senders_of_one_name_do_not_mix(wires, transfer, tmp_path):
    source = tmp_path / "f"
    source.write_bytes(b"x" * 100)
    with (transfer.into / f"f{PART}").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        said: list[str] = []
        sent, _ = transfer(source, said)
    assert sent.failed == 1
    assert said == [f"not sent: {source}: it is being received from another sender"]


def test_a_directory_stands_where_a_file_should(transfer, tmp_path):
    source = tmp_path / "d"
    source.mkdir()
    (source / "a").write_bytes(b"x")
    (source / "b").mkdir()
    (source / "b" / "c").write_bytes(b"x")
    (transfer.into / "d" / "a").mkdir(parents=True)
    (transfer.into / "d" / "b").write_bytes(b"mine")
    said: list[str] = []
    sent, received = transfer(source, said)
    assert sent.failed == received.failed == 3
    assert said == [
        f"not sent: {source}/a: a directory has its name",
        f"not sent: {source}/b: a file or a link stands where a directory is needed",
        f"not sent: {source}/b/c: a file or a link stands where a directory is needed",
    ]
    assert (transfer.into / "d" / "b").read_bytes() == b"mine"


def test_what_neither_side_holds_open_stays_open(transfer, tmp_path):
    source = tmp_path / "d"
    source.mkdir()
    for number in range(20):
        (source / f"{number}").write_bytes(noise(1000))
    before = len(list(Path("/proc/self/fd").iterdir()))
    transfer(source)
    transfer(source)
    threads = [t.name for t in threading.enumerate() if t.name.startswith(("hash", "answers"))]
    # Two pairs of sockets of the test's own are closed by then.
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert threads == []


def test_the_hash_is_sha256(tmp_path):
    from cwnd.transfer.digest import Chunks, new_hash

    path = tmp_path / "f"
    path.write_bytes(noise(5 * CHUNK + 17))
    chunks, found = Chunks(), new_hash()
    with path.open("rb") as file:
        assert chunks.add_file(found, file.fileno(), 10 * CHUNK) == 5 * CHUNK + 17
    chunks.close()
    assert found.digest() == hashlib.sha256(path.read_bytes()).digest()


def test_a_receiver_without_its_folder(wires, tmp_path):
    ours, _ = wires()
    with pytest.raises(FileNotFoundError):
        receive(ours, tmp_path / "nowhere")
