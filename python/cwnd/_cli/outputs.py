"""Outputs of commands: standard output, files, and a progress bar."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from cwnd._base.extras import is_csv, require
from cwnd._base.files import replacing
from cwnd._base.progress import PATIENCE
from cwnd._cli.terminal import echo, echo_json, say
from cwnd._runs.repetition import repeats_text
from cwnd.errors import ControllerWarning, DataSetWarning
from cwnd.units import format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from matplotlib.figure import Figure

    from cwnd._runs.fork import Fork
    from cwnd._runs.repeated import Repeated
    from cwnd._runs.repetition import Repeat
    from cwnd._runs.result import Result
    from cwnd._tasks.agreement.outcome import Agreement
    from cwnd._tasks.comparison.outcome import Comparison

FAILED = 1
"""Exit status of a failed check, run, test or transfer."""

PLOTS = (".pdf", ".png", ".svg")


def save(
    outcome: Agreement | Comparison | Result,
    *,
    report: str | None,
    plot: str | None = None,
    column: bool = False,
    panel: str | None = None,
    trace: str | None = None,
) -> None:
    """Write the report, the plot and the tables, and print their paths."""
    save_report(outcome, report)
    if plot is not None:
        part = {} if panel is None else {"panel": panel}
        save_plot(outcome.plot(column=column, **part), plot)
    if trace is not None:
        _save_tables(outcome, trace)
        echo(f"tables: {trace}", err=True)


def save_report(
    outcome: Agreement | Comparison | Fork | Repeated | Result, report: str | None
) -> None:
    """Write the report if there is to be one, and print its path."""
    if report is not None:
        outcome.report(report)
        echo(f"report: {report}", err=True)


def _save_tables(outcome: Agreement | Comparison | Result, directory: str) -> None:
    """Write the tables of a comparison or of a run."""
    from cwnd._runs.result import Result
    from cwnd._tasks.comparison.outcome import Comparison
    from cwnd.tables import write_trace

    if isinstance(outcome, Comparison):
        outcome.trace(directory)
    elif isinstance(outcome, Result):
        write_trace(outcome, directory)


def announce(on: str, runs: int, seconds: float, *, at_most: bool = False) -> None:
    """Print an estimate of the time that runs of ``seconds`` each will take in real time."""
    each = f"{runs} runs of {format_time(seconds)}, one after the other" if runs > 1 else "one run"
    least = "at most " if at_most else ""
    say(f"on {on} in real time: {least}{each}: {format_time(runs * seconds)}")


def check_outputs(  # noqa: C901
    *,
    report: str | None = None,
    plot: str | None = None,
    column: bool = False,
    panel: str | None = None,
    pcap: str | None = None,
    trace: str | None = None,
    qlog: str | None = None,
) -> None:
    """Check that outputs can be written, before any work is done.

    ``trace`` and ``qlog`` are directories.
    """
    for option, path, libraries in (
        ("--report", report, ("jinja2", "plotly")),
        ("--plot", plot, ("matplotlib",)),
    ):
        if path is not None:
            require(option, *libraries)
    if trace is not None and not is_csv(trace):
        require("--trace DIR (not DIR.csv)", "pyarrow")
    for option, given in (("--column", column), ("--panel", panel is not None)):
        if given and plot is None:
            raise click.UsageError(f"{option} needs --plot")
    if plot is not None and Path(plot).suffix.lower() not in PLOTS:
        raise click.UsageError(f"--plot: {plot!r} must end in .pdf, .png or .svg")
    for option, path in (("report", report), ("plot", plot), ("pcap", pcap)):
        if path is not None:
            check_file(option, Path(path))
    for option, path in (("trace", trace), ("qlog", qlog)):
        if path is not None:
            check_directory(option, Path(path))


def print_repeats(repeat: Repeat, made: int, undecided: list[str]) -> None:
    """Print how many repeats ``auto`` made."""
    if repeat == "auto":
        echo(repeats_text(made, undecided), err=True)


def print_json(document: Mapping[str, object]) -> None:
    """Print one JSON document."""
    from cwnd._runs.result import dumps

    echo_json(dumps(document))


def save_plot(figure: Figure, path: str) -> None:
    """Write a figure, and print its path."""
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format=Path(path).suffix[1:].lower(), dpi=150)
    echo(f"plot: {path}", err=True)


@contextmanager
def show_progress(task: str) -> Iterator[Callable[[float], None] | None]:
    """Show a progress bar on standard error if that is a terminal and the work takes long.

    Yield a function that takes the completed fraction; None if no bar can be shown.
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(task)
    try:
        yield bar.update
    finally:
        bar.close()


@contextmanager
def echo_warnings() -> Iterator[None]:
    """Print warnings about data sets and controllers as one line each on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataSetWarning)
        show = warnings.showwarning

        def tell(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, DataSetWarning):
                say(str(message))
            elif issubclass(category, ControllerWarning):
                # A package that cannot be loaded has no line.
                own = Path(filename).is_relative_to(Path(__file__).parents[1])
                say(str(message) if own else f"{filename}:{lineno}: {message}")
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = tell
        yield


class _Bar:
    """A progress bar that appears after a delay."""

    def __init__(self, task: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(task, total=1.0)
        self._start = time.monotonic()
        self._shown = False

    def update(self, fraction: float) -> None:
        """Show the completed fraction."""
        if not self._shown and time.monotonic() - self._start > PATIENCE:
            self._progress.start()
            self._shown = True
        self._progress.update(self._task, completed=fraction)

    def close(self) -> None:
        """Remove the bar."""
        if self._shown:
            self._progress.stop()


def check_file(option: str, path: Path) -> None:
    """Check that a file can be written, and that the command neither reads nor writes it too."""
    for name, value in click.get_current_context().params.items():
        if name != option and any(same_file(path, Path(other)) for other in _paths(value)):
            raise click.UsageError(f"--{option}: the command reads or writes {path} already")
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
    except OSError as problem:
        raise click.UsageError(f"--{option}: cannot write {path}: {problem.strerror}") from None
    if not existed:
        path.unlink()


def same_file(path: Path, other: Path) -> bool:
    """Test whether two paths are of one file, which may not exist yet."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def _paths(value: object) -> Iterator[str]:
    """Yield what may be a path in the value of a parameter, such as `KEY=FILE:CLASS(…)`."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from _paths(each)
    elif isinstance(value, str):
        for text in (value, value.partition("=")[2]):
            yield from (text, re.split("[:(]", text)[0])


def check_directory(option: str, path: Path) -> None:
    """Check that files can be written to a directory; create it if missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise click.UsageError(f"--{option}: cannot create {path}: {problem.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise click.UsageError(f"--{option}: cannot write to {path}")
