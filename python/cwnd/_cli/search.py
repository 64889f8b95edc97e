"""The command `search`: the networks on which a controller is worst, as scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cwnd._cli import shared
from cwnd._cli.cluster import ClusterOptions, open_cluster, with_cluster
from cwnd._cli.outputs import check_directory, print_json, show_progress
from cwnd._cli.terminal import echo
from cwnd._cli.values import OBJECTIVE, SPEC
from cwnd._runs.defaults import SEARCH_BUDGET, SEARCH_FINDINGS, SEARCH_OBJECTIVE, SEED


@click.command()
@click.argument("controller", type=SPEC)
@click.option(
    "--against",
    metavar="REFERENCE",
    type=SPEC,
    help="Reference: a controller, or capacity; by default cubic, and reno for cubic.",
)
@click.option(
    "--bounds", metavar="FILE", type=click.Path(), help="Bounds of the networks, in TOML."
)
@click.option(
    "--objective",
    metavar="NAME",
    multiple=True,
    default=(SEARCH_OBJECTIVE,),
    type=OBJECTIVE,
    help="What is worse than under the reference; may be repeated.",
)
@shared.budget(default=SEARCH_BUDGET)
@click.option(
    "--findings",
    type=click.IntRange(1),
    default=SEARCH_FINDINGS,
    help="Largest number of findings for each objective.",
)
@shared.seed(default=SEED, help="Seed of the search and of its runs.")
@shared.out(default="out/search", help="Directory of the scenarios and of all runs.")
@with_cluster
@click.option(
    "--confirm",
    type=click.Choice(["linux"]),
    help="Run each finding over the kernel's TCP too: two minutes each, as root.",
)
@shared.json()
def search(
    controller: str,
    *,
    out: str,
    objective: tuple[str, ...],
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> int:
    """Find the networks on which CONTROLLER is worst beside a reference.

    The directory gets a scenario worst-N.toml of each confirmed weakness, reduced to what it needs,
    with a bound that the reference meets: `cwnd run worst-1.toml --check` exits with 1. index.html
    shows them, and all networks. All runs are a data set for `cwnd query`. The same command resumes
    a search.
    """
    from cwnd._search.search import search as find

    check_directory("out", Path(out))
    cluster = {name: options.pop(name) for name in ClusterOptions._fields}
    with (
        open_cluster(ClusterOptions(**cluster)) as client,
        show_progress("searching") as progress,
    ):
        found = find(
            controller, objective=objective, out=out, dask=client, progress=progress, **options
        )
    if as_json:
        print_json(found.to_json())
    else:
        from cwnd._cli.tables import print_search

        print_search(found)
    if found.findings:
        echo(f"scenarios: {Path(out) / 'worst-*.toml'}", err=True)
    page = Path(out) / "index.html"
    found.report(page)
    echo(f"report: {page}", err=True)
    return 0
