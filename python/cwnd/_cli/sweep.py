"""The command `sweep`: all runs of a plan, into a Parquet data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cwnd._cli import shared
from cwnd._cli.cluster import ClusterOptions, open_cluster, with_cluster
from cwnd._cli.outputs import FAILED, check_outputs, print_json, show_progress
from cwnd._cli.terminal import echo, say
from cwnd._cli.values import PLAN_FILE, SHARE_OF_RUNS
from cwnd._runs.defaults import SHARD
from cwnd.units import counted


@click.command()
@click.argument("plan", type=PLAN_FILE, required=False)
@shared.out(help="Directory of the Parquet data set.")
@with_cluster
@click.option(
    "--shard",
    metavar="I/N",
    type=SHARE_OF_RUNS,
    default=SHARD,
    show_default=False,
    help="Make the I-th of N equal shares of the runs; all shares may run at the same time.",
)
@shared.report()
@shared.dry_run(
    help="Count the missing runs, and estimate their time and size from a few of them.",
)
@click.option(
    "--verify",
    metavar="OUT",
    type=click.Path(),
    help="Check every file of a data set instead, and name the runs to make again.",
)
@click.option(
    "--forget",
    metavar="WHERE",
    help="Remove runs from --out instead, by a condition such as \"controller = 'cubic'\".",
)
@shared.json()
def sweep(
    *,
    plan: str | None,
    out: str | None,
    verify: str | None,
    forget: str | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> int:
    """Run every point of PLAN, and write the figures to a Parquet data set.

    PLAN is a TOML file with a base, axes, controllers and seeds, or a name of `cwnd scenarios`. The
    runs use all cores, or the workers of a Dask cluster. A failed run is a row with its error, and
    the exit status is 1. The same command resumes an interrupted sweep, and makes the runs of
    damaged files again.
    """
    if verify is not None:
        shared.refuse_others("with --verify", "verify")
        return _verify(verify, as_json=as_json)
    if forget is not None:
        shared.refuse_others("with --forget", "forget", "out")
        if out is None:
            raise click.UsageError("--forget needs --out OUT")
        return _forget(out, forget, as_json=as_json)
    if plan is None or out is None:
        raise click.UsageError("needs PLAN and --out OUT, or --verify OUT")
    if dry_run:
        shared.refuse_others("with --dry-run", "dry_run", "plan", "out", "shard")
        return _estimate(plan, out, options["shard"], as_json=as_json)
    return _sweep(plan, out, as_json=as_json, **options)


def _sweep(
    plan: str,
    out: str,
    *,
    shard: tuple[int, int],
    report: str | None,
    as_json: bool,
    **cluster: Any,  # noqa: ANN401
) -> int:
    """Make the runs; return the exit status."""
    from cwnd._sweeps.manifest import list_parts
    from cwnd._sweeps.reading import read_plan
    from cwnd._sweeps.sweep import Sweep
    from cwnd._sweeps.sweep import sweep as make_sweep

    check_outputs(report=report)
    read = read_plan(Path(plan))
    say(str(read))
    try:
        with (
            open_cluster(ClusterOptions(**cluster)) as client,
            show_progress("sweeping") as progress,
        ):
            made = make_sweep(read, out=out, dask=client, shard=shard, progress=progress)
    except KeyboardInterrupt:
        if list_parts(Path(out)):
            here = f"{len(Sweep(out)):,} of {len(read):,} runs are in {out}"
            say(f"{here}; the same command resumes the sweep")
        raise
    if as_json:
        print_json(made.to_json())
    else:
        from cwnd._cli.tables import print_sweep

        print_sweep(made)
    if report is not None:
        from cwnd._cli.query import save_sweep_report

        save_sweep_report(out, report)
    return FAILED if made.failed else 0


def _estimate(plan: str, out: str, shard: tuple[int, int], *, as_json: bool) -> int:
    """Estimate a sweep; return the exit status."""
    from cwnd._sweeps.estimate import estimate
    from cwnd._sweeps.reading import read_plan

    read = read_plan(Path(plan))
    say(str(read))
    found = estimate(read, out=out, shard=shard)
    if as_json:
        print_json(found)
    else:
        from cwnd._cli.tables import print_estimate

        print_estimate(found)
    return 0


def _forget(out: str, where: str, *, as_json: bool) -> int:
    """Remove runs of a data set; return the exit status."""
    from cwnd._sweeps.forget import forget

    with shared.positional():
        removed = forget(out, where)
    if as_json:
        print_json({"out": out, "forgotten": removed})
    else:
        echo(f"{counted(removed, 'run')} removed from {out}")
    return 0


def _verify(out: str, *, as_json: bool) -> int:
    """Check the files of a data set; return the exit status."""
    from cwnd._sweeps.manifest import verify

    with shared.positional():
        found = verify(Path(out))
    if as_json:
        print_json(found)
    else:
        from cwnd._cli.tables import print_verification

        print_verification(found)
    return FAILED if found["damaged"] else 0
