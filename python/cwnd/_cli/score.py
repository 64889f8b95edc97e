"""The command `score`: a number for programs that write controllers."""

from __future__ import annotations

import click

from cwnd._cli import shared
from cwnd._cli.outputs import print_json, show_progress
from cwnd._cli.terminal import echo
from cwnd._cli.values import SCORE_SUITE, SPEC
from cwnd._runs.defaults import SCORE_STAGE, SCORE_STAGES, SEED
from cwnd._runs.defaults import SCORE_SUITE as DEFAULT_SUITE


@click.command()
@click.argument("candidate", type=SPEC)
@click.option(
    "--suite",
    default=DEFAULT_SUITE,
    metavar="NAME",
    type=SCORE_SUITE,
    help="Suite of networks: the name of a packaged one, or a file NAME.toml.",
)
@click.option(
    "--stage",
    default=SCORE_STAGE,
    type=click.Choice(SCORE_STAGES),
    help="The last stage; kernel is in real time, as root.",
)
@shared.seed(default=SEED, help="Seed of the networks and of the runs.")
@shared.json()
def score(candidate: str, suite: str, stage: str, seed: int, as_json: bool) -> None:  # noqa: FBT001
    """Score CANDIDATE from 0 to 1, and say where it lost.

    CANDIDATE is a law such as mine.law, which runs here, or a class such as mine.py:Law, which runs
    in a process with limits of time and memory. Its networks are drawn from the ranges of a suite,
    and those of the stage held-out apart from the others. A faulty candidate has a score too, and
    the exit status 0.
    """
    with show_progress("scoring") as progress:
        from cwnd._tasks.score.score import score as score_candidate

        found = score_candidate(candidate, suite, stage=stage, seed=seed, progress=progress)
    if as_json:
        print_json(found.to_json())
        return
    for name, value in found.metrics.items():
        echo(f"{name:<16} {value:.4f}")
    echo()
    for name in ("explanation", "warnings", "printed"):
        if name in found.artifacts:
            echo(*found.artifacts[name].split("\n"))
