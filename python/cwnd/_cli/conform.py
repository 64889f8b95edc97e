"""The command `conform`: recorded connections against the rules of the RFCs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cwnd._cli import shared
from cwnd._cli.outputs import FAILED, check_outputs, print_json
from cwnd._cli.terminal import echo
from cwnd._cli.values import SCENARIO_FILE, SPEC
from cwnd._runs.defaults import CHECKED_LAWS, CHECKED_PROTOCOLS

if TYPE_CHECKING:
    from cwnd._tasks.conform import Connection

RECORDINGS = (".sqlog", ".qlog", ".txt")


@click.command()
@click.argument("file", type=SCENARIO_FILE)
@shared.values()
@shared.seed(help="Seed of the run of a scenario; the file's by default.")
@click.option(
    "--law",
    type=click.Choice(CHECKED_LAWS),
    help="Rules that count; those of a scenario's controllers by default, otherwise of any law.",
)
@click.option(
    "--protocol",
    type=click.Choice(CHECKED_PROTOCOLS),
    help="Transport of a recording: that of the qlog by default, of a record tcp.",
)
@click.option(
    "--replay",
    metavar="SPEC",
    type=SPEC,
    help="Give the events of a recording to this controller too, and compare its windows.",
)
@shared.report(help="Write a self-contained HTML page of a recording.")
@shared.json()
def conform(
    file: str,
    assignments: tuple[str, ...],
    seed: int | None,
    law: str | None,
    protocol: str | None,
    replay: str | None,
    report: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Check FILE against the rules of RFC 5681, RFC 9002 and RFC 9438.

    FILE is a qlog (.sqlog or .qlog, version 0.3 as JSON-SEQ), the record of a controller (.txt, of
    `cwnd kernel trace --record`), or a scenario, which is run: a path, or a name of `cwnd
    scenarios`. The exit status is 1 if a rule is violated.
    """
    replayed = None
    if Path(file).suffix in RECORDINGS:
        shared.refuse("with a recording", "assignments", "seed")
        check_outputs(report=report)
        from cwnd._tasks.conform import check_recording, read_recording, summarize_replay

        with shared.positional():
            connections = [check_recording(Path(file), law, protocol)]
            if replay is not None or report is not None:
                recording = read_recording(Path(file), protocol, replay)
        if replay is not None:
            replayed = summarize_replay(recording, replay)
        if report is not None:
            from cwnd._base.files import write_text
            from cwnd._show.report.conform import recording_page

            write_text(report, recording_page(connections[0], recording, replayed))
            echo(f"report: {report}", err=True)
    else:
        shared.refuse("with a scenario", "protocol", "replay", "report")
        from cwnd._runs.run import check_seed, read_run
        from cwnd._runs.scenario_keys import read_values
        from cwnd._tasks.conform import check_run

        _, scenario = read_run(Path(file), read_values(assignments))
        scenario.validate()
        seed = scenario.seed if seed is None else seed
        check_seed(seed)
        with shared.positional():
            connections = check_run(scenario, seed, law)
    if as_json:
        print_json({"connections": connections, "replay": replayed})
    else:
        for connection in connections:
            _print(connection)
        if replayed is not None:
            from cwnd._tasks.conform import replay_text

            echo(replay_text(replayed))
    if any(each["violation"] for one in connections for each in one["findings"]):
        click.get_current_context().exit(FAILED)


def _print(connection: Connection) -> None:
    """Print a line for each rule, and two more for a violation."""
    from cwnd._tasks.conform import outcome_text

    echo(f"{connection['name']}: {connection['law']} over {connection['protocol']}")
    for finding in connection["findings"]:
        echo(f"  {finding['rule']:<22}{outcome_text(finding)}")
        found = finding["violation"]
        if found is not None:
            echo(f"    {finding['source']}: {finding['statement']}")
            echo(f"    {found['cause']}")
