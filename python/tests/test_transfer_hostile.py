"""What a transfer does with a peer that means harm, or knows no better."""

from __future__ import annotations

import os
import socket
import stat
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cwnd.transfer import Outcome, TransferError, frames, receive, send
from cwnd.transfer.connection import Observer
from cwnd.transfer.digest import new_hash
from cwnd.transfer.folder import Folder, Refusal
from cwnd.transfer.frames import Answer, Channel, Kind, Offer, ProtocolError, Verdict, What
from cwnd.transfer.names import LONGEST, LONGEST_NAME, PART, part_name, printable, split_path

GREETING = frames.MAGIC + bytes([frames.VERSION])
NAMES = st.one_of(
    st.binary(max_size=30),
    st.lists(
        st.sampled_from([b"..", b".", b"", b"a", b"b", b"\xff", b"C:", b"x\0y"]), max_size=6
    ).map(b"/".join),
)


@given(NAMES)
def test_a_path_is_refused_or_stays_below(path):
    try:
        names = split_path(path)
    except ValueError:
        return
    assert b"/".join(names) == path
    assert os.path.normpath(b"/folder/" + path).startswith(b"/folder/")
    assert not any(name in {b"", b".", b".."} or b"\0" in name for name in names)


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/etc/passwd",
        b"..",
        b"../x",
        b"a/../../x",
        b"a//b",
        b"./a",
        b"a/",
        b"a\0b",
        b"x" * 256,
        b"a/" * 2048 + b"a",
        b"x" + PART,
        b"x" + PART + b"/y",
    ],
)
def test_paths_that_are_refused(path):
    with pytest.raises(ValueError, match=r"\w"):
        split_path(path)


@pytest.mark.parametrize(
    "path", [b"C:\\Windows\\x", b"C:", b"aux", b"nul.txt", b"-rf", b"~", b"a\n", b"\xff"]
)
def test_names_that_are_names_like_others(path):
    assert split_path(path) == (path,)


@given(st.binary(min_size=1, max_size=LONGEST_NAME), st.binary(min_size=1, max_size=LONGEST_NAME))
def test_parts_have_names_of_their_own(one, other):
    assert len(part_name(one)) <= LONGEST_NAME
    assert part_name(one).endswith(PART)
    assert (part_name(one) == part_name(other)) == (one == other)


def test_long_names_that_begin_alike_have_parts_of_their_own():
    assert part_name(b"x" * 254 + b"1") != part_name(b"x" * 254 + b"2")


@given(st.binary())
def test_a_terminal_sees_only_what_can_be_printed(name):
    assert printable(name).isprintable()


@given(
    st.builds(
        Offer,
        st.sampled_from(What),
        st.integers(0, 0o7777),
        st.integers(0, 2**64 - 1),
        st.integers(-(2**63), 2**63 - 1),
        st.binary(max_size=LONGEST),
    )
)
def test_offers_are_read_as_they_were_written(offer):
    assert Offer.unpack(offer.pack()) == offer


@given(st.integers(0, 2**64 - 1), st.sampled_from(Verdict), st.integers(0, 2**64 - 1), st.text())
def test_answers_are_read_as_they_were_written(number, verdict, offset, why):
    answer = Answer.unpack(Answer(number, verdict, offset, why).pack())
    assert (answer.number, answer.verdict, answer.offset) == (number, verdict, offset)
    assert len(why) > 100 or answer.why == printable(
        why.encode("utf-8", "backslashreplace").decode()
    )


class Script:
    """A connection whose peer has said everything already, in pieces of some size."""

    def __init__(self, words: bytes, piece: int = 1 << 20) -> None:
        self.words = words
        self.piece = piece
        self.sent = bytearray()

    def send(self, data) -> None:
        self.sent += data

    def recv(self, size: int, **_) -> bytes:
        count = min(size, self.piece)
        data, self.words = self.words[:count], self.words[count:]
        return data


@given(st.lists(st.binary(max_size=100_000), max_size=5), st.integers(1, 70_000))
@settings(max_examples=30, deadline=None)
def test_frames_are_read_as_they_were_written(payloads, piece):
    out = Script(b"")
    channel = Channel(out)
    for payload in payloads:
        channel.write(Kind.DATA, payload)
    channel.flush()
    channel = Channel(Script(bytes(out.sent), piece))
    for payload in payloads:
        kind, length = channel.read()
        assert kind is Kind.DATA
        buffer = memoryview(bytearray(length))
        channel.payload_into(buffer)
        assert buffer == payload


@given(st.binary(max_size=300), st.integers(1, 300))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_noise_ends_a_receiver_in_one_sentence(tmp_path, noise, piece):
    connection = Script(GREETING + noise, piece)
    with pytest.raises(TransferError) as caught:
        receive(connection, tmp_path)
    assert "\n" not in str(caught.value)


def frame(kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("!BI", kind, len(payload)) + payload


def offer(path: bytes, size: int = 3, what: What = What.FILE) -> bytes:
    return frame(Kind.OFFER, Offer(what, 0o644, size, 0, path).pack())


def whole(number: int, data: bytes = b"abc") -> bytes:
    found = new_hash()
    found.update(data)
    return (
        frame(Kind.BEGIN, frames.pack_begin(number, 0))
        + frame(Kind.DATA, data)
        + frame(Kind.END, found.digest())
    )


DONE = frame(Kind.DONE)


@pytest.mark.parametrize(
    "words",
    [
        frame(99),
        frame(Kind.DATA, b"x"),
        frame(Kind.END, bytes(32)),
        frame(Kind.ANSWER, bytes(17)),
        frame(Kind.OFFER, b"x"),
        frame(Kind.BEGIN, frames.pack_begin(0, 0)),
        frame(Kind.CLAIM, frames.pack_claim(0, 1, bytes(32))),
        frame(Kind.ABORT, frames.pack_abort(0, "")),
        struct.pack("!BI", Kind.DATA, frames.CHUNK + 1),
        struct.pack("!BI", Kind.OFFER, 2**32 - 1),
        offer(b"a") + DONE,
        offer(b"a") + frame(Kind.BEGIN, frames.pack_begin(0, 1)),
        offer(b"a") + frame(Kind.BEGIN, frames.pack_begin(0, 0)) * 2,
        offer(b"a") + frame(Kind.BEGIN, frames.pack_begin(0, 0)) + frame(Kind.DATA),
        offer(b"a") + frame(Kind.BEGIN, frames.pack_begin(0, 0)) + frame(Kind.DATA, b"four"),
        b"".join(offer(b"%d" % n) for n in range(frames.WINDOW + 1)),
    ],
)
def test_a_sender_that_breaks_the_rules(tmp_path, words):
    connection = Script(GREETING + words)
    with pytest.raises(ProtocolError):
        receive(connection, tmp_path)
    assert frame(Kind.STOP)[:1] in bytes(connection.sent)
    assert not any(path.name == "a" for path in tmp_path.iterdir())


def test_neither_cwnd_nor_its_version(tmp_path):
    with pytest.raises(TransferError, match="neither cwnd send nor"):
        receive(Script(b"GET / HTTP/1.1\r\n"), tmp_path)
    with pytest.raises(TransferError, match="version 9 of the protocol"):
        receive(Script(frames.MAGIC + b"\x09"), tmp_path)


def test_who_says_nothing_takes_no_place(wires, tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "PATIENCE", 0.1)
    ours, theirs = wires()
    with pytest.raises(TransferError, match="the other side says nothing"):
        receive(ours, tmp_path)
    assert theirs.recv(100) == GREETING


def inside_and_outside(tmp_path: Path) -> tuple[Path, Path]:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_bytes(b"mine")
    return inside, outside


@pytest.mark.parametrize(
    "path",
    [b"../out/secret", b"/abs/x", b"link/secret", b"link/new", b"file-link", b"hard", b"pipe"],
)
def test_nothing_is_written_outside(tmp_path, path):
    inside, outside = inside_and_outside(tmp_path)
    (inside / "link").symlink_to(outside)
    (inside / "file-link").symlink_to(outside / "secret")
    (inside / f"hard{PART.decode()}").hardlink_to(outside / "secret")
    os.mkfifo(inside / "pipe")
    heard: list[str] = []
    words = GREETING + offer(b"first") + offer(path) + offer(b"last")
    words += whole(0) + (whole(1) if path == b"hard" else b"") + whole(2) + DONE
    outcome = receive(Script(words), inside, Observer(heard.append))
    assert outcome == Outcome(files=2, bytes=6, moved=6, failed=1)
    assert heard[0].startswith(f"refused: {path.decode()}: ")
    assert [p.name for p in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_bytes() == b"mine"
    assert (inside / "first").read_bytes() == (inside / "last").read_bytes() == b"abc"


@pytest.mark.parametrize("what", [What.DIRECTORY, What.SEAL])
def test_no_directory_is_made_or_changed_outside(tmp_path, what):
    inside, outside = inside_and_outside(tmp_path)
    outside.chmod(0o700)
    (inside / "link").symlink_to(outside)
    words = GREETING + offer(b"link", what=what) + offer(b"link/x", what=what)
    outcome = receive(Script(words + offer(b"..", what=what) + DONE), inside)
    assert outcome.failed == 3
    assert stat.S_IMODE(outside.stat().st_mode) == 0o700
    assert [p.name for p in outside.iterdir()] == ["secret"]


def test_a_link_that_appears_under_way_is_not_followed(tmp_path):
    inside, outside = inside_and_outside(tmp_path)
    (inside / "d").mkdir()

    class Late(Script):
        def recv(self, size: int, **_) -> bytes:
            if self.words.startswith(frame(Kind.BEGIN, frames.pack_begin(0, 0))):
                (inside / "d").rmdir()
                (inside / "d").symlink_to(outside)
            return super().recv(size)

    words = GREETING + offer(b"d/secret")
    outcome = receive(Late(words + whole(0) + DONE, len(words)), inside)
    assert outcome.failed == 1
    assert (outside / "secret").read_bytes() == b"mine"


def test_one_name_twice(tmp_path):
    words = GREETING + offer(b"a") + offer(b"a") + whole(0) + whole(1, b"xyz") + DONE
    assert receive(Script(words), tmp_path).files == 2
    assert (tmp_path / "a").read_bytes() == b"xyz"


def test_what_is_there_is_not_told(tmp_path):
    """A stranger hears how long a file is, at most: no hash of it."""
    (tmp_path / "secret").write_bytes(b"abc")
    connection = Script(
        GREETING + offer(b"secret") + frame(Kind.CLAIM, frames.pack_claim(0, 3, bytes(32)))
    )
    with pytest.raises(TransferError, match="ended"):
        receive(connection, tmp_path)
    found = new_hash()
    found.update(b"abc")
    assert found.digest() not in bytes(connection.sent)
    assert (tmp_path / "secret").read_bytes() == b"abc"


def test_a_long_name_gets_its_part(tmp_path):
    name = b"x" * 255
    words = GREETING + offer(name) + whole(0) + DONE
    assert receive(Script(words), tmp_path).files == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x" * 255]


def test_times_and_modes_that_no_file_has(tmp_path):
    extreme = Offer(What.FILE, 0xFFFF, 3, -(2**63), b"a")
    words = GREETING + frame(Kind.OFFER, extreme.pack()) + whole(0) + DONE
    receive(Script(words), tmp_path)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o777


def test_a_folder_refuses_what_is_in_the_way(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    folder = Folder(tmp_path)
    try:
        with pytest.raises(Refusal):
            folder.part((b"a", b"b"))
        with pytest.raises(Refusal):
            folder.make((b"a",), 0o755)
    finally:
        folder.close()


def replies(*answers: Answer) -> bytes:
    return GREETING + b"".join(frame(Kind.ANSWER, answer.pack()) for answer in answers)


@pytest.mark.parametrize(
    "words",
    [
        replies(Answer(7, Verdict.SEND)),
        replies(Answer(0, Verdict.SETTLED)),
        replies(Answer(0, Verdict.HAVE, 0)),
        replies(Answer(0, Verdict.HAVE, 4)),
        replies(Answer(0, Verdict.SEND, 2)),
        replies(Answer(0, Verdict.SEND), Answer(0, Verdict.SEND)),
        replies(Answer(0, Verdict.HAVE, 3), Answer(0, Verdict.HAVE, 3)),
        replies(Answer(0, Verdict.HAVE, 3), Answer(0, Verdict.SEND, 2)),
        GREETING + frame(Kind.DATA, b"x"),
        GREETING + frame(Kind.OFFER, b"x"),
        GREETING + frame(99),
        GREETING + struct.pack("!BI", Kind.ANSWER, 2**31),
        GREETING + frame(Kind.ANSWER, b"x"),
        GREETING + frame(Kind.DONE),
    ],
)
def test_a_receiver_that_breaks_the_rules(tmp_path, words):
    source = tmp_path / "f"
    source.write_bytes(b"abc")
    connection = Script(words)
    with pytest.raises(ProtocolError):
        send(connection, os.fsencode(source))
    assert frame(Kind.STOP)[:1] in bytes(connection.sent)


def test_a_receivers_words_cannot_play_with_the_terminal(tmp_path):
    source = tmp_path / "f"
    source.write_bytes(b"abc")
    said: list[str] = []
    words = replies(Answer(0, Verdict.REFUSED, 0, "\x1b[2J\nhello"))
    with pytest.raises(TransferError):
        send(Script(words), os.fsencode(source), Observer(said.append))
    assert said == [f"not sent: {source}: \\x1b[2J\\nhello"]


@given(st.binary(max_size=200))
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_noise_ends_a_sender_in_one_sentence(tmp_path, noise):
    source = tmp_path / "f"
    source.write_bytes(b"abc")
    with pytest.raises(TransferError) as caught:
        send(Script(GREETING + noise), os.fsencode(source))
    assert "\n" not in str(caught.value)


def test_a_receiver_that_never_listens_costs_no_memory(wires, tmp_path):
    """Offers wait for their answers; answers to what nobody asked end it."""
    source = tmp_path / "d"
    source.mkdir()
    for number in range(frames.WINDOW + 50):
        (source / f"{number}").touch()
    ours, theirs = wires()
    theirs.socket.settimeout(2)
    with ThreadPoolExecutor(1) as pool:
        outgoing = pool.submit(send, ours, os.fsencode(source))
        theirs.send(GREETING)
        heard = bytearray()
        while heard.count(b"d/") < frames.WINDOW - 1:
            heard += theirs.socket.recv(1 << 16)
        theirs.socket.settimeout(0.2)
        with pytest.raises(socket.timeout):
            heard += theirs.socket.recv(1 << 16)
        theirs.close()
        assert isinstance(outgoing.exception(), TransferError)
    assert heard.count(b"d/") == frames.WINDOW - 1
