"""Output of `send` and `recv`: events as JSON lines, text lines, or bars on a terminal."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from cwnd._base.progress import PATIENCE
from cwnd._cli.terminal import echo, echo_json, say
from cwnd._runs.transport_limits import conclude_limits, main_limit
from cwnd.units import counted, format_rate, format_size, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from typing_extensions import Self

Event = dict[str, Any]

_TOTALS = ("transfers", "complete", "incomplete", "failed", "files", "bytes", "moved_bytes")

_LINES = 100
"""Lines about single files per transfer: bounds the output that a peer can cause."""

_JSON_EVERY = 1.0
_LINES_EVERY = 5.0
_BARS_EVERY = 0.1
"""Seconds between two progress reports, by kind of output."""

_MIN_NAME, _MAX_NAME = 8, 24
"""Smallest and largest width of a file name on a terminal, in columns."""

_WIDE = 110
"""Smallest width of a terminal for a bar beside the text, in columns."""


class Monitor:
    """Prints the events of transfers, as JSON lines with ``as_json``.

    ``verb`` is ``sent`` or ``received``; ``names`` are the peers' by public key.
    """

    def __init__(
        self,
        verb: str,
        *,
        as_json: bool,
        names: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> None:
        self.total: Event = {"event": "total"} | dict.fromkeys(_TOTALS, 0)
        self._wanted: list[int] = []
        self._dry_run = dry_run
        self._verb = verb
        self._as_json = as_json
        self._names = names or {}
        self._peers: dict[int, str] = {}
        self._lines: dict[int, int] = {}
        self._due: dict[int, float] = {}
        self._bars: _Bars | None = None
        self._lock = threading.Lock()
        if as_json:
            self._every = _JSON_EVERY
        elif sys.stderr.isatty():
            self._every = _BARS_EVERY
            self._bars = _Bars()
        else:
            self._every = _LINES_EVERY

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the bars."""
        if self._bars is not None:
            self._bars.close()

    def observe(self, event: Event) -> None:
        """Print an event; called from any thread."""
        with self._lock:
            if event["event"] == "progress" and not self._is_due(event["transfer"]):
                return
            if self._as_json:
                self.print_document(event)
            else:
                show = getattr(self, f"_show_{event['event']}", None)
                if show is not None:
                    show(event)
            if event["event"] == "end":
                self._add(event)

    def _add(self, end: Event) -> None:
        """Add a finished transfer to the total, and remove its state."""
        self.total["transfers"] += 1
        self.total[end["outcome"]] += 1
        for name in ("files", "bytes", "moved_bytes"):
            self.total[name] += end[name]
        for kept in (self._peers, self._lines, self._due):
            kept.pop(end["transfer"], None)

    def print_document(self, document: Event) -> None:
        """Print a JSON document on one line."""
        echo_json(json.dumps(document, allow_nan=False, ensure_ascii=False))

    def _is_due(self, transfer: int) -> bool:
        """Test whether the next progress report of a transfer is due."""
        now = time.monotonic()
        first = now + max(self._every, PATIENCE if self._bars is not None else 0.0)
        if now < self._due.setdefault(transfer, first):
            return False
        self._due[transfer] = now + self._every
        return True

    def _say(self, line: str) -> None:
        if self._bars is None:
            say(line)
        else:
            self._bars.say(line)

    def _say_limited(self, transfer: int, line: str) -> None:
        """Print a line about a single file, up to a limit for each transfer."""
        count = self._lines[transfer] = self._lines.get(transfer, 0) + 1
        if count <= _LINES:
            self._say(line)
        elif count == _LINES + 1:
            self._say("further lines about single files are omitted; --json prints all events")

    def _show_connected(self, event: Event) -> None:
        name = self._names.get(event["identity"] or "", "")
        self._peers[event["transfer"]] = name

    def _show_file(self, event: Event) -> None:
        if self._dry_run and event["outcome"] == "sent":
            self._wanted.append(event["bytes"])
            self._print(f"would send {event['path']} ({format_size(event['bytes'])})")

    def _show_error(self, event: Event) -> None:
        word = "not sent" if self._verb == "sent" else "refused"
        where = f"{event['path']}: " if event["path"] else ""
        self._say_limited(event["transfer"], f"{word}: {where}{event['reason']}")

    def _show_note(self, event: Event) -> None:
        where = f"{event['path']}: " if event["path"] else ""
        self._say_limited(event["transfer"], f"{where}{event['reason']}")

    def _show_retry(self, event: Event) -> None:
        self._say(
            f"{event['reason']}: retry {event['attempt']} of {event['of']} "
            f"in {format_time(event['delay_s'])}"
        )

    def _show_progress(self, event: Event) -> None:
        if not event["name"] and not event["done_bytes"]:
            # No line without progress: an idle peer must not fill a log.
            return
        if self._bars is not None:
            self._bars.draw(event)
        else:
            self._say(describe_progress(event))

    def _show_end(self, event: Event) -> None:
        if self._bars is not None:
            self._bars.remove(event["transfer"])
        peer = ""
        if self._verb == "received":
            name = self._peers.get(event["transfer"], "")
            peer = f"from {event['peer']}{f' ({name})' if name else ''}: "
            if event["outcome"] == "failed":
                self._say(f"{peer}{event['reason']}")
                return
        elif event["outcome"] == "failed":
            # The command reports the reason.
            return
        if self._dry_run:
            files, size = counted(len(self._wanted), "file"), format_size(sum(self._wanted))
            present = f"{counted(event['files'] - len(self._wanted), 'file')} present"
            self._print(f"would send {files}, {size}; {present}{_not_sent(event)}")
            return
        self._print(f"{self._verb} {peer}{describe_end(event)}")
        if event["moved_bytes"]:
            self._print(conclude_limits(event["limited"], event["advice"]))

    def _print(self, line: str) -> None:
        if self._bars is not None:
            self._bars.pause()
        echo(line)


def describe_progress(event: Event) -> str:
    """Describe the progress of a transfer.

    Examples
    --------
    >>> describe_progress({"name": "a/b", "done_bytes": 5 * 10**8, "total_bytes": 10**9,
    ...     "rate_bps": 9.4e7, "rtt_s": 0.1, "loss_rate": 0.001, "limited": {"window": 0.83}})
    'a/b: 50 % of 1 GB, 94 Mbit/s, rtt 100 ms, loss 0.1 %, window 83 %, 0:43 left'
    """
    name = f"{event['name']}: " if event["name"] else ""
    return f"{name}{_describe_rate(event)}"


def _describe_rate(event: Event) -> str:
    done, total, bps = event["done_bytes"], event["total_bytes"], event["rate_bps"]
    if total:
        parts = [f"{100 * done / total:.0f} % of {format_size(total)}"]
    else:
        parts = [format_size(done)]
    parts.append(format_rate(bps, 3))
    if event["rtt_s"]:
        parts.append(f"rtt {format_time(event['rtt_s'], 3)}")
    parts.append(f"loss {100 * event['loss_rate']:.2g} %")
    limit = main_limit(event["limited"])
    if limit is not None:
        parts.append(f"{limit[0]} {100 * limit[1]:.0f} %")
    if total and bps:
        minutes, seconds = divmod(round(8 * max(0, total - done) / bps), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}" if hours else f"{minutes}"
        parts.append(f"{clock}:{seconds:02} left")
    return ", ".join(parts)


def describe_end(event: Event) -> str:
    """Summarise a finished transfer; data already present are excluded from the rate.

    Examples
    --------
    >>> end = {"files": 2, "bytes": 3_000_000, "present_bytes": 1_000_000, "seconds": 2.0,
    ...     "moved_bytes": 2_000_000, "rate_bps": 8e6, "not_sent": 1}
    >>> describe_end(end)
    '2 files, 3 MB in 2.00 s: 2 MB moved (8 Mbit/s), 1 MB already present; 1 name not sent'
    >>> new = end | {"present_bytes": 0, "not_sent": 0}
    >>> describe_end(new | {"moved_bytes": 3_000_000, "rate_bps": 1.2e7})
    '2 files, 3 MB in 2.00 s (12 Mbit/s)'
    >>> describe_end(new)
    '2 files, 3 MB in 2.00 s: 2 MB moved (8 Mbit/s), the rest holes or hard links'
    >>> there = {"files": 1, "bytes": 400_000, "present_bytes": 400_000, "moved_bytes": 0}
    >>> describe_end(new | there)
    '1 file in 2.00 s: 400 kB already present'
    """
    moved, present = event["moved_bytes"], event["present_bytes"]
    files, seconds = counted(event["files"], "file"), f"{event['seconds']:.2f} s"
    rate = f" ({format_rate(event['rate_bps'])})" if moved else ""
    parts = []
    if present:
        parts.append(f"{format_size(present)} already present")
    if moved + present < event["bytes"]:
        parts.append("the rest holes or hard links")
    if moved == 0 and present == event["bytes"] and present:
        text = f"{files} in {seconds}"
    elif parts:
        text = f"{files}, {format_size(event['bytes'])} in {seconds}"
        parts.insert(0, f"{format_size(moved)} moved{rate}")
    else:
        text = f"{files}, {format_size(moved)} in {seconds}{rate}"
    return text + (f": {', '.join(parts)}" if parts else "") + _not_sent(event)


def _not_sent(event: Event) -> str:
    return f"; {counted(event['not_sent'], 'name')} not sent" if event["not_sent"] else ""


class _Bars:
    """Bars on standard error, one for each transfer."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._tasks: dict[int, Any] = {}

    def draw(self, event: Event) -> None:
        """Update the bar of a transfer."""
        if self._progress is None:
            # Import rich only when a bar is needed.
            self._progress = _make_progress()
            self._progress.start()
        text = _describe_rate(event)
        values = {
            "completed": event["done_bytes"],
            "total": event["total_bytes"] or None,
            "description": _shorten(event["name"], self._progress.console.width - len(text) - 1),
            "text": text,
        }
        task = self._tasks.get(event["transfer"])
        if task is None:
            self._tasks[event["transfer"]] = self._progress.add_task(**values)
        else:
            self._progress.update(task, **values)

    def remove(self, transfer: int) -> None:
        """Remove the bar of a finished transfer."""
        task = self._tasks.pop(transfer, None)
        if task is not None:
            self._progress.remove_task(task)

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self.pause()
        say(line)

    def pause(self) -> None:
        """Remove the bars until the next report."""
        if self._progress is not None:
            self.close()
            self._tasks.clear()

    def close(self) -> None:
        """Remove the bars."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _make_progress() -> Any:  # noqa: ANN401
    """Create rich's display: the name, a bar if there is room, and the text."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    console = Console(stderr=True)
    name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    text = TextColumn(
        "{task.fields[text]}",
        markup=False,
        table_column=Column(no_wrap=True, overflow="ellipsis"),
    )
    bar = [BarColumn(bar_width=None)] if console.width >= _WIDE else []
    return Progress(name, *bar, text, console=console, transient=True)


def _shorten(name: str, room: int) -> str:
    """Truncate a name at its beginning to fit the terminal."""
    width = max(_MIN_NAME, min(room, _MAX_NAME))
    return name if len(name) <= width else f"…{name[1 - width :]}"
