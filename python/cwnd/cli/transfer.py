"""The verbs `send` and `recv`: files and folders over UDT."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwnd.cli.outputs import PATIENCE, check_directory
from cwnd.cli.peers import (
    FAILED,
    PLAIN,
    NoConnection,
    explain,
    fail,
    key_option,
    name_peer,
    open_connection,
    open_listener,
    read_key,
    say,
    split_address,
)

if TYPE_CHECKING:
    from types import TracebackType

    from cwnd.transfer import Outcome, Progress
    from cwnd.transfer.connection import Connection, Listener

PORT = 9000
_SENDERS = 16
"""Senders that are served at once; others wait."""

_LINES = 100
"""Lines about single files of one transfer: a stranger does not fill a disk with them."""

_TICK = 0.1
"""Seconds between two looks at a bar; also how long Ctrl-C may wait for a listener."""


@click.command(epilog=PLAIN)
@click.argument("source", metavar="FILE|DIR|-")
@click.argument("address", metavar="HOST:PORT")
@click.option("--cc", metavar="SPEC", default="udt", show_default=True, help="The controller.")
@click.option("--rate-limit", metavar="RATE", help="Send no faster than this, such as 100mbit.")
@key_option
def send(source: str, address: str, cc: str, rate_limit: str | None, key: str | None) -> None:
    """Send a file, a folder with all that is in it, or standard input (-) to `cwnd recv`.

    Names, modes and times are kept, and each file's SHA-256 is compared at the end. What was
    interrupted goes on where it stopped when the same command is given again. Symbolic links and
    devices are skipped.
    """
    from cwnd import canonical
    from cwnd.errors import read_argument
    from cwnd.units import parse_rate

    host, port = split_address(address, PORT)
    limit = None if rate_limit is None else read_argument("rate-limit", parse_rate, rate_limit)
    options = {"controller": canonical(cc), "rate_limit": limit, **read_key(key)}
    path = _check_source(source)
    from cwnd.transfer import TransferError
    from cwnd.transfer import send as send_path
    from cwnd.transfer.connection import Observer

    try:
        connection = open_connection(host, port, **options)
    except NoConnection as problem:
        fail(str(problem))
    start = time.monotonic()
    try:
        with Bars() as bars:
            bar = bars.add("sending", connection)
            outcome = send_path(connection, path, Observer(bar.say, bar.show))
    except (TransferError, OSError) as problem:
        connection.abort()
        fail(f"{host}, port {port}: {explain(problem)}: the same command goes on where it stopped")
    except BaseException:
        connection.abort()
        raise
    _close(connection)
    click.echo(f"sent {summary(outcome, time.monotonic() - start)}")
    if outcome.failed:
        fail(f"{_count(outcome.failed, 'name')} could not be sent")


@click.command(epilog=PLAIN)
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--out", type=click.Path(), default=".", show_default=True, help="The folder to write into."
)
@click.option("--once", is_flag=True, help="Leave after one sender.")
@key_option
def recv(port: int, out: str, once: bool, key: str | None) -> None:  # noqa: FBT001
    """Receive what `cwnd send` sends, into one folder and nowhere else.

    A file has its name when it is complete, and not before: until then it is NAME.cwnd-part, and
    there it goes on after an interruption. A complete file replaces one of its name; folders are
    merged. Whoever reaches the port may send, unless there is a --key.
    """
    folder = Path(out)
    check_directory("out", folder)
    with closing(open_listener(port, **read_key(key))) as listener, Bars() as bars:
        click.echo(f"cwnd: receiving into {folder} at port {listener.address[1]}", err=True)
        hall = _Hall(listener, folder, bars)
        if once:
            if not hall.serve_one():
                click.get_current_context().exit(FAILED)
        else:
            hall.serve()


class _Hall:
    """Where senders are served."""

    def __init__(self, listener: Listener, folder: Path, bars: Bars) -> None:
        self._listener = listener
        self._folder = folder
        self._bars = bars
        self._places = threading.BoundedSemaphore(_SENDERS)

    def serve(self) -> None:
        """Serve whoever comes, until somebody interrupts it."""
        while True:
            # Without a place, those who come wait in the listener.
            while not self._places.acquire(timeout=_TICK):
                pass
            connection = self._accept()
            threading.Thread(target=self._serve_beside, args=(connection,), daemon=True).start()

    def serve_one(self) -> bool:
        """Serve one sender; say whether everything went well."""
        return self._serve(self._accept())

    def _accept(self) -> Connection:
        """Wait for a sender, and for Ctrl-C."""
        while True:
            with suppress(TimeoutError):
                return self._listener.accept(timeout=_TICK)

    def _serve_beside(self, connection: Connection) -> None:
        try:
            self._serve(connection)
        finally:
            self._places.release()

    def _serve(self, connection: Connection) -> bool:
        """Receive from one sender, and say what came of it."""
        from cwnd.transfer import TransferError, receive
        from cwnd.transfer.connection import Observer

        host, port = name_peer(connection)
        start = time.monotonic()
        bar = self._bars.add(f"from {host}", connection)
        try:
            outcome = receive(connection, self._folder, Observer(bar.say, bar.show))
        except (TransferError, OSError) as problem:
            self._bars.say(f"{host}, port {port}: {explain(problem)}")
            _close(connection)
            return False
        except BaseException:
            connection.abort()
            raise
        finally:
            bar.close()
        _close(connection)
        seconds = time.monotonic() - start
        click.echo(f"received from {host}, port {port}: {summary(outcome, seconds)}")
        return not outcome.failed


class Bars:
    """Bars on standard error, one for each transfer; none where that is no terminal."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._shown = False
        self._lock = threading.Lock()
        if sys.stderr.isatty():
            self._progress = _make_bars()

    def __enter__(self) -> Bars:  # noqa: PYI034
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._progress.stop()

    def add(self, task: str, connection: Connection) -> Bar:
        """Add a bar for one transfer."""
        return Bar(self, task, connection)

    def draw(self, number: int | None, values: dict[str, Any]) -> int | None:
        """Show how far one transfer is; gives its number."""
        if self._progress is None:
            return None
        with self._lock:
            if number is None:
                # What was there before the first look is no part of the rate.
                number = int(self._progress.add_task(**values))
            else:
                self._progress.update(number, **values)
            if not self._shown:
                self._progress.start()
                self._shown = True
        return number

    def remove(self, number: int | None) -> None:
        """Remove the bar of a transfer that has ended."""
        if number is not None:
            with self._lock:
                self._progress.remove_task(number)

    def say(self, line: str) -> None:
        """Say something above the bars."""
        if self._shown:
            self._progress.console.print(f"cwnd: {line}", markup=False, highlight=False)
        else:
            say(line)


class Bar:
    """The bar of one transfer, for an `Observer`."""

    def __init__(self, bars: Bars, task: str, connection: Connection) -> None:
        self._bars = bars
        self._task = task
        self._connection = connection
        self._number: int | None = None
        self._due = time.monotonic() + PATIENCE
        self._lines = 0

    def say(self, line: str) -> None:
        """Say something about one file."""
        self._lines += 1
        if self._lines <= _LINES:
            self._bars.say(line)
        elif self._lines == _LINES + 1:
            self._bars.say("there is more of this kind")

    def show(self, progress: Progress) -> None:
        """Show how far the transfer is, a few times a second."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _TICK
        stats: dict[str, Any] = {}
        with suppress(OSError):
            stats = dict(self._connection.stats())
        self._number = self._bars.draw(
            self._number,
            {
                "completed": progress.done,
                "total": progress.total or None,
                "description": f"{self._task} {_shorten(progress.name)}",
                "rtt": f"rtt {stats.get('ms_rtt', 0.0):.3g} ms",
                "loss": f"loss {100 * loss(stats):.2g} %",
            },
        )

    def close(self) -> None:
        """Remove it."""
        self._bars.remove(self._number)
        self._number = None


def _make_bars() -> Any:  # noqa: ANN401
    """Make the bars of rich: part, rate, round-trip time, loss and time left."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.fields[rtt]}"),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def loss(stats: dict[str, Any]) -> float:
    """Say what part of the packets was lost, as one end of a connection knows it.

    Parameters
    ----------
    stats
        As `cwnd.udt.Connection.stats` gives them.

    Returns
    -------
    float
        From 0 to 1: of the direction that carries more.
    """
    sent, received = stats.get("pkt_sent_total", 0), stats.get("pkt_recv_total", 0)
    if sent > received:
        return float(min(1.0, stats.get("pkt_retrans_total", 0) / sent))
    lost = stats.get("pkt_rcv_loss_total", 0)
    return float(lost / (received + lost)) if received else 0.0


def summary(outcome: Outcome, seconds: float) -> str:
    """Say what a transfer has done.

    Parameters
    ----------
    outcome
        What came of it.
    seconds
        How long it took.

    Examples
    --------
    >>> from cwnd.transfer import Outcome
    >>> summary(Outcome(files=2, bytes=3_000_000, moved=2_000_000, skipped=1), 2.0)
    '2 files, 3 MB in 2.00 s (8 Mbit/s); 1 MB of it were there already; 1 name skipped'
    """
    from cwnd.units import format_rate

    rate = format_rate(8 * outcome.moved / max(seconds, 1e-9))
    text = f"{_count(outcome.files, 'file')}, {size(outcome.bytes)} in {seconds:.2f} s ({rate})"
    if outcome.bytes > outcome.moved:
        text += f"; {size(outcome.bytes - outcome.moved)} of it were there already"
    if outcome.skipped:
        text += f"; {_count(outcome.skipped, 'name')} skipped"
    if outcome.failed:
        text += f"; {_count(outcome.failed, 'name')} failed"
    return text


def size(count: int) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> size(999), size(1_234_567), size(2 * 10**13)
    ('999 B', '1.235 MB', '20 TB')
    """
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= factor:
            return f"{count / factor:.4g} {prefix}B"
    return f"{count} B"


def _close(connection: Connection) -> None:
    """Let the last words arrive; the other side may be gone as soon as it has heard them."""
    with suppress(OSError):
        connection.close()


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _shorten(name: str, width: int = 24) -> str:
    """Keep the end of a name that is too long for a line."""
    return name if len(name) <= width else f"…{name[1 - width :]}"


def _check_source(source: str) -> bytes:
    """Refuse what cannot be sent, before anybody is called."""
    path = os.fsencode(source)
    if path == b"-":
        return path
    from cwnd.transfer.source import top_name

    mode = Path(source).stat().st_mode
    if stat.S_ISREG(mode):
        with Path(source).open("rb"):
            pass
    elif stat.S_ISDIR(mode):
        with os.scandir(path):
            pass
    else:
        raise click.UsageError(f"{source} is neither a file nor a folder")
    try:
        top_name(path)
    except ValueError as problem:
        raise click.UsageError(f"{source}: {problem}") from None
    return path
