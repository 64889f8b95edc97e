"""The command `trace`: recorded links in the formats of several tools."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import click

from cwnd._cli import shared
from cwnd._cli.outputs import check_file, print_json, same_file
from cwnd._cli.terminal import echo, say
from cwnd._runs.defaults import TRACE_FORMATS


@click.group(name="trace")
def trace() -> None:
    """Describe and convert recorded links: rates over time.

    The formats are mahimahi's, which scenarios have, Pensieve's (time in s and rate in Mbit/s),
    netem-trace's JSON, and CSV with a header such as time_s,rate_bps,delay_ms.
    """


_FROM = click.option(
    "--from",
    "form",
    type=click.Choice(TRACE_FORMATS),
    help="Format of FILE; by default the one that its first line has.",
)
_INTERVAL = click.option("--interval", help="Duration of each line of a CSV without times.")


@trace.command()
@click.argument("file", type=click.Path())
@_FROM
@_INTERVAL
@shared.json()
def info(file: str, form: str | None, interval: str | None, as_json: bool) -> None:  # noqa: FBT001
    """Describe the trace in FILE: duration, rates in windows of about 1 s, outages and delays."""
    from cwnd._runs.link_traces import read_link_trace
    from cwnd.units import format_rate, format_time

    duration = _seconds(interval)
    with shared.positional():
        found, form = read_link_trace(file, form, duration)
    summary = found.summary()
    if as_json:
        print_json({"format": form, **summary})
        return
    rates = [format_rate(summary[f"{which}_rate_bps"]) for which in ("mean", "min", "max")]
    echo(f"{file}: {form}, {format_time(summary['duration_s'])}")
    echo(f"rate: {rates[0]} on average, {rates[1]} to {rates[2]} in windows of about 1 s")
    echo(f"longest time without capacity: {format_time(summary['longest_outage_s'])}")
    if found.delays_s is not None:
        delays = [format_time(summary[f"{which}_delay_s"]) for which in ("mean", "min", "max")]
        echo(f"delay: {delays[0]} on average, {delays[1]} to {delays[2]}")


@trace.command()
@click.argument("file", type=click.Path())
@click.argument("out", type=click.Path())
@_FROM
@click.option("--to", default="mahimahi", type=click.Choice(TRACE_FORMATS), help="Format of OUT.")
@_INTERVAL
@click.option(
    "--delays",
    type=click.Path(),
    help="Write the delays to a file too: ms, one a line for each 10 ms.",
)
def convert(
    file: str, out: str, form: str | None, to: str, interval: str | None, delays: str | None
) -> None:
    """Write the trace in FILE to OUT in another format, by default that of a scenario's `trace`."""
    from cwnd._base.files import write_text
    from cwnd._runs.link_traces import read_link_trace, write_delays, write_link_trace

    files = {"FILE": file, "OUT": out} | ({} if delays is None else {"--delays": delays})
    for (name, path), (other, taken) in combinations(files.items(), 2):
        if same_file(Path(path), Path(taken)):
            raise click.UsageError(f"{name} and {other} are the same file, {taken}")
    if delays is not None:
        check_file("delays", Path(delays))
    duration = _seconds(interval)
    with shared.positional():
        found, _ = read_link_trace(file, form, duration)
        text = write_link_trace(found, to)
        delay_text = "" if delays is None else write_delays(found)
    write_text(out, text)
    if delays is not None:
        write_text(delays, delay_text)
    elif found.delays_s is not None and to != "csv":
        say("the delays are not written: --delays FILE writes them")


def _seconds(interval: str | None) -> float | None:
    from cwnd.errors import read_argument
    from cwnd.units import parse_time

    return None if interval is None else read_argument("interval", parse_time, interval)
