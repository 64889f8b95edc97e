"""The command `sweep`: all runs of a plan, into a Parquet data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cwnd.cli.cluster import open_cluster, with_cluster
from cwnd.cli.outputs import check_outputs, echo_warnings, print_json, show_progress
from cwnd.cli.values import SHARD
from cwnd.errors import ArgumentError

FAILED = 1
"""Exit status if a run failed, or a part is damaged."""


@click.command()
@click.argument("plan", type=click.Path(), required=False)
@click.option("--out", type=click.Path(), help="Directory of the Parquet data set.")
@with_cluster
@click.option(
    "--shard",
    metavar="I/N",
    type=SHARD,
    default="1/1",
    help="Make the I-th of N equal shares of the runs; all shares may run at the same time.",
)
@click.option("--report", type=click.Path(), help="Write a self-contained HTML page.")
@click.option(
    "--verify",
    metavar="OUT",
    type=click.Path(),
    help="Check every file of a data set instead, and name the runs to make again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def sweep(
    plan: str | None,
    out: str | None,
    shard: tuple[int, int],
    report: str | None,
    verify: str | None,
    as_json: bool,  # noqa: FBT001
    **cluster: Any,  # noqa: ANN401
) -> int:
    """Run every point of PLAN, and write the figures to a Parquet data set.

    A plan is a TOML file: a base, axes, controllers and seeds. The runs use all cores, or the
    workers of a Dask cluster. A failed run is a row with its error, and the exit status is 1. The
    same command resumes an interrupted sweep, and makes the runs of damaged files again.
    """
    if verify is not None:
        others = (plan, out, report, *cluster.values())
        if shard != (1, 1) or any(value is not None for value in others):
            raise click.UsageError("--verify excludes PLAN and all options but --json")
        return _verify(verify, as_json=as_json)
    if plan is None or out is None:
        raise click.UsageError("needs PLAN and --out OUT, or --verify OUT")
    from cwnd.sweeps.manifest import list_parts
    from cwnd.sweeps.reading import read_plan
    from cwnd.sweeps.sweep import Sweep
    from cwnd.sweeps.sweep import sweep as make_sweep

    check_outputs(report=report, plot=None)
    read = read_plan(Path(plan))
    click.echo(f"cwnd: {read}", err=True)
    try:
        with (
            echo_warnings(),
            open_cluster(**cluster) as client,
            show_progress("sweeping") as progress,
        ):
            made = make_sweep(read, out=out, dask=client, shard=shard, progress=progress)
    except KeyboardInterrupt:
        if list_parts(Path(out)):
            here = f"{len(Sweep(out)):,} of {len(read):,} runs are in {out}"
            click.echo(f"cwnd: {here}; the same command resumes the sweep", err=True)
        raise
    if as_json:
        print_json(made.to_json())
    else:
        from cwnd.cli.tables import print_sweep

        print_sweep(made)
    if report is not None:
        from cwnd.cli.query import save_sweep_report

        save_sweep_report(out, report)
    return FAILED if made.failed else 0


def _verify(out: str, *, as_json: bool) -> int:
    """Check the files of a data set; return the exit status."""
    from cwnd.sweeps.manifest import verify

    try:
        found = verify(Path(out))
    except ArgumentError as mistake:
        raise click.UsageError(mistake.problem) from None
    if as_json:
        print_json(found)
    else:
        from cwnd.cli.tables import print_verification

        print_verification(found)
    return FAILED if found["damaged"] else 0
