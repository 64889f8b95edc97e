"""`cwnd send` compared with `rsync -a` to its daemon, over loopback with a warm cache.

    python bench/transfer.py [--rounds 5] [--files 10000] [--large 1000] [NAME ...]

Three cases: many files of 4 KB copied into an empty folder (`first`), the same again with nothing
to do (`again`), and one large file (`large`). Each round runs rsync, cwnd without encryption and
cwnd with a shared key in turn and measures the time from the start to the end of the sending
process; the ratios are those of the medians to rsync's. Without rsync its column is omitted with a
message. The files are in TMPDIR, which should be an idle disk.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CASES = ("first", "again", "large")
SMALL_BYTES = 4096
FILES_PER_FOLDER = 100
RSYNC_CONFIG = """
use chroot = no
pid file = {folder}/rsyncd.pid
[in]
path = {out}
read only = false
"""


@dataclass(frozen=True)
class Receiver:
    """A running receiver: the command that sends a source to it, and its folder."""

    name: str
    command: Callable[[Path], list[str]]
    out: Path


def make_sources(folder: Path, files: int, megabytes: int) -> tuple[Path, Path]:
    """Write the sources: a folder with many small files, and one large file."""
    many, large = folder / "many", folder / "large"
    noise = random.Random(1)
    for number in range(files):
        below = many / f"{number // FILES_PER_FOLDER}"
        if number % FILES_PER_FOLDER == 0:
            below.mkdir(parents=True)
        (below / f"{number}").write_bytes(noise.randbytes(SMALL_BYTES))
    piece = noise.randbytes(1 << 20)
    with large.open("wb") as file:
        for _ in range(megabytes * 1_000_000 // len(piece)):
            file.write(piece)
    return many, large


@contextmanager
def stopping(process: subprocess.Popen[str]) -> Iterator[None]:
    """Terminate a process at the end."""
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def cwnd_receiver(name: str, out: Path, *credentials: str) -> Iterator[Receiver]:
    """Run `cwnd recv` on a free port."""
    program = str(Path(sys.executable).parent / "cwnd")
    arguments = ["--port", "0", "--out", str(out), "--reserve", "0%", *credentials]
    process = subprocess.Popen(
        [program, "recv", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    with stopping(process):
        assert process.stderr is not None
        found = re.search(r"port (\d+)", process.stderr.readline())
        assert found is not None
        address = f"127.0.0.1:{found[1]}"
        yield Receiver(
            name, lambda source: [program, "send", str(source), address, *credentials], out
        )


@contextmanager
def rsync_receiver(out: Path) -> Iterator[Receiver]:
    """Run rsync's daemon on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = out.parent / "rsyncd.conf"
    # Started by root, the daemon would run as nobody.
    root = "uid = 0\ngid = 0\n" if os.geteuid() == 0 else ""
    config.write_text(RSYNC_CONFIG.format(folder=out.parent, out=out) + root)
    options = ["--daemon", "--no-detach", "--address=127.0.0.1", f"--port={port}"]
    process = subprocess.Popen(["rsync", *options, f"--config={config}"], text=True)
    with stopping(process):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        address = f"rsync://127.0.0.1:{port}/in/"
        yield Receiver("rsync", lambda source: ["rsync", "-a", str(source), address], out)


def run(receiver: Receiver, source: Path) -> float:
    """Send a source; return the wall time in seconds."""
    start = time.perf_counter()
    done = subprocess.run(receiver.command(source), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{receiver.name}: {done.stderr.strip()}")
    return seconds


def measure(
    receivers: list[Receiver], source: Path, rounds: int, *, fresh: bool
) -> list[list[float]]:
    """Return the times of all rounds for each receiver, in seconds."""
    seconds: list[list[float]] = [[] for _ in receivers]
    for _ in range(rounds):
        for receiver, taken in zip(receivers, seconds, strict=True):
            there = receiver.out / source.name
            if fresh and there.exists():
                # Renaming is used because removing many files loads the journal of the file system.
                there.rename(Path(tempfile.mkdtemp(dir=receiver.out.parent)) / source.name)
            elif not fresh and not there.exists():
                run(receiver, source)
            taken.append(run(receiver, source))
    return seconds


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=1000, help="megabytes of the large file")
    arguments = parser.parse_args()
    names = arguments.names or list(CASES)
    if unknown := set(names) - set(CASES):
        parser.error(f"unknown case {', '.join(unknown)}; the cases are {', '.join(CASES)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        many, large = make_sources(folder, arguments.files, arguments.large)
        inboxes = [folder / name / "in" for name in ("rsync", "clear", "keyed")]
        for inbox in inboxes:
            inbox.mkdir(parents=True)
        key = str(folder / "key")
        subprocess.run([sys.executable, "-m", "cwnd", "keygen", key], check=True)
        with (
            rsync_or_nothing(inboxes[0]) as others,
            cwnd_receiver("cwnd", inboxes[1]) as clear,
            cwnd_receiver("cwnd with a key", inboxes[2], "--key", key) as keyed,
        ):
            receivers = [*others, clear, keyed]
            rows = []
            for name in names:
                source = large if name == "large" else many
                seconds = measure(receivers, source, arguments.rounds, fresh=name != "again")
                medians = [statistics.median(taken) for taken in seconds]
                ratios = [f"{median / medians[0]:.2f}" for median in medians[1:] if others]
                rows.append([name, *(f"{median:.2f}" for median in medians), *ratios])
    sources = f"{arguments.files} files of {SMALL_BYTES} bytes, one of {arguments.large} MB"
    title = f"{sources}: seconds, medians of {arguments.rounds} rounds"
    table(
        title,
        ["case", *(each.name for each in receivers), *(["ratio", "with a key"] if others else [])],
        rows,
    )


@contextmanager
def rsync_or_nothing(out: Path) -> Iterator[list[Receiver]]:
    """Run rsync's daemon, if rsync is installed."""
    if shutil.which("rsync") is None:
        print("rsync is not installed: its column is omitted")
        yield []
        return
    with rsync_receiver(out) as receiver:
        yield [receiver]


if __name__ == "__main__":
    main()
