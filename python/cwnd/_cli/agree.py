"""The command `agree`: one scenario on several backends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwnd._cli import shared
from cwnd._cli.outputs import (
    announce,
    check_outputs,
    print_json,
    print_repeats,
    save,
    show_progress,
)
from cwnd._cli.values import BACKENDS, SCENARIO_FILE
from cwnd._runs.defaults import AGREE_BACKENDS, AGREE_REPEATS
from cwnd._runs.repetition import MAX_REPEATS_REAL, read_repeat

if TYPE_CHECKING:
    from cwnd._runs.repetition import Repeat


@click.command()
@click.argument("file", type=SCENARIO_FILE)
@click.option(
    "--on",
    default=",".join(AGREE_BACKENDS),
    metavar="sim,udt,linux,quic",
    type=BACKENDS,
    help="Two or more backends; the first is the reference.",
)
@shared.repeat(
    AGREE_REPEATS,
    MAX_REPEATS_REAL,
    "Seeds on each backend; auto uses {}, until every figure is decided.",
)
@shared.seed(help="The first seed; the scenario's seed by default.")
@shared.outputs
def agree(
    file: str,
    on: str,
    repeat: Repeat,
    seed: int | None,
    as_json: bool,  # noqa: FBT001
    **outputs: Any,  # noqa: ANN401
) -> None:
    """Run the scenario FILE simulated and with real sockets, and test where they agree.

    FILE is a path or a name of `cwnd scenarios`. Real sockets are UDT's, the kernel's TCP or those
    of QUIC stacks, on an emulated network with the simulator's queues; they need Linux and root.
    Each of their runs takes the scenario's duration in real time.
    """
    check_outputs(**outputs)
    from cwnd._runs.run import check_seed
    from cwnd._runs.scenario import Scenario
    from cwnd._tasks.agreement.run import agree as agree_backends
    from cwnd._tasks.agreement.run import check_backends

    places = [place.strip() for place in on.split(",")]
    scenario = Scenario.from_toml(Path(file))
    check_backends(places, scenario)
    if seed is not None:
        check_seed(seed)
    seconds = scenario.validate()["duration_s"]
    real = [place for place in places if place != "sim"]
    _, most = read_repeat(repeat, AGREE_REPEATS, real=True)
    announce(" and ".join(real), most * len(real), seconds, at_most=repeat == "auto")
    with show_progress("running") as progress:
        agreement = agree_backends(
            Path(file), on=places, repeat=repeat, seed=seed, progress=progress
        )
    save(agreement, **outputs)
    if as_json:
        print_json(agreement.to_json())
    else:
        from cwnd._cli.tables import print_agreement

        print_agreement(agreement)
    print_repeats(repeat, len(agreement.results[places[0]]), agreement.undecided)
