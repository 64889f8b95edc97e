"""The commands, each a thin layer over the Python package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from cwnd._base.machine import require
from cwnd._cli import shared
from cwnd._cli.agree import agree
from cwnd._cli.check import check_expectations, print_run
from cwnd._cli.cluster import ClusterOptions, open_cluster, with_cluster
from cwnd._cli.config import VARIABLE, name_variables, read_config
from cwnd._cli.conform import conform
from cwnd._cli.credentials import keygen
from cwnd._cli.emulate import emulate
from cwnd._cli.evaluate import evaluate
from cwnd._cli.kernel import kernel
from cwnd._cli.law import law as law_command
from cwnd._cli.man import man
from cwnd._cli.model import model
from cwnd._cli.new_controller import new_controller
from cwnd._cli.outputs import (
    announce,
    check_directory,
    check_outputs,
    print_json,
    print_repeats,
    save,
    save_plot,
    save_report,
    show_progress,
)
from cwnd._cli.perf import perf
from cwnd._cli.query import query
from cwnd._cli.scenarios import new_scenario, scenarios
from cwnd._cli.score import score
from cwnd._cli.search import search
from cwnd._cli.sweep import sweep
from cwnd._cli.terminal import echo
from cwnd._cli.trace import trace as trace_command
from cwnd._cli.transfer import recv, send
from cwnd._cli.values import (
    DOCUMENT,
    EXHIBIT,
    METRIC,
    PAPER,
    QUEUE,
    SCENARIO_FILE,
    SPEC,
    complete_files,
)
from cwnd._runs.defaults import COMPARE_REPEATS, DUMBBELL, PANELS, REFERENCE
from cwnd._runs.packaged import packaged
from cwnd._runs.repetition import MAX_REPEATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

    from cwnd._runs.repetition import Repeat

SHELLS = ("bash", "zsh", "fish")

_SYSTEMS: dict[click.Command | None, Literal["Linux", "Unix"]] = {
    emulate: "Linux",
    kernel: "Linux",
    send: "Unix",
    recv: "Unix",
    keygen: "Unix",
    perf: "Unix",
}
"""Commands that need one of these systems."""


def _complete_compared(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a controller or of a scenario file."""
    controllers = SPEC.shell_complete(context, parameter, incomplete)
    files = [f"{each.name}.toml" for each in packaged("scenarios")]
    named = [item.value for item in controllers if item.type == "plain"]
    return complete_files([*named, *files], incomplete, ".toml")


def _version(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
    """Print the version and exit."""
    if value and not context.resilient_parsing:
        from cwnd._base.version import __version__

        echo(f"cwnd {__version__}")
        context.exit()


class Interrupted(Exception):  # noqa: N818
    """The user interrupted the command."""


class ReaderGone(Exception):  # noqa: N818
    """The reader of standard output is gone."""


class _Commands(click.Group):
    """The commands in the order of their definition."""

    def invoke(self, context: click.Context) -> Any:  # noqa: ANN401
        """Run a command; convert interrupts and broken pipes before Click handles them."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            raise Interrupted from None
        except BrokenPipeError:
            raise ReaderGone from None

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; refuse one that needs another system before its arguments are read."""
        name, found, rest = super().resolve_command(context, args)
        if found in _SYSTEMS and not context.resilient_parsing:
            require(f"cwnd {name}", _SYSTEMS[found])
        return name, found, rest

    def list_commands(self, _: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version.",
)
@click.option(
    "--config",
    type=click.Path(),
    metavar="FILE",
    envvar=VARIABLE,
    help="Read defaults of options from FILE; ~/.config/cwnd/config.toml by default.",
)
@click.pass_context
def cwnd(context: click.Context, config: str | None) -> None:
    """Compare congestion controllers on simulated and emulated networks, and transfer data.

    Rates and times have a unit, as in tc: 15mbit, 100ms. Controllers are names with optional
    parameters, such as reno, aimd(0.31, 1/8) or simd(beta=1/16): see `cwnd algorithms`. A class in
    a Python file is a controller too: mine.py:Law(beta=1/8).

    Each option has an environment variable, such as CWND_SEND_CC for --cc of `cwnd send`, and a key
    in the configuration file, such as cc in the table [send]. The command line overrides the
    variable, and the variable overrides the file.

    Exit status: 0 for success, 1 if a check, run, test or transfer failed, 2 for arguments or files
    that the command cannot use, 130 if interrupted (143 by SIGTERM), 141 if the reader of the
    output is gone. A fault that `cwnd law check` finds is a failed check; other commands cannot use
    the file. `cwnd doctor` and `cwnd kernel check` describe the machine: they do not fail for what
    it lacks. `cwnd emulate` exits with the status of its command.
    """
    if context.invoked_subcommand is None:
        echo(*context.get_help().split("\n"))
    else:
        context.default_map = read_config(cwnd, config)


@cwnd.command()
@click.argument(
    "controllers",
    metavar="[FILE.toml] CONTROLLERS...",
    nargs=-1,
    required=True,
    shell_complete=_complete_compared,
)
@click.option(
    "--reference",
    default=REFERENCE,
    type=SPEC,
    help="Controller that the others are compared with.",
)
@click.option("--rate", default=DUMBBELL["rate"], help="Rate of the bottleneck.")
@click.option(
    "--rtt",
    default=DUMBBELL["rtt"],
    metavar="TIME|TIME,...|TIME..TIME",
    help="Round-trip time without queueing: one, a list dealt evenly, or a range to draw from.",
)
@click.option(
    "--queue",
    default=DUMBBELL["queue"],
    metavar="KIND|red-ecn|SIZE",
    type=QUEUE,
    help="Queue of the bottleneck: a KIND of `cwnd keys queue`, such as red, or the SIZE of a "
    "DropTail queue: 20p, 64kb or 1.5bdp.",
)
@click.option("--flows", default=DUMBBELL["flows"], help="Flows in each run, an even number.")
@click.option("--time", default=DUMBBELL["time"], help="Length of each run.")
@click.option("--warmup", help="Warm-up, which figures exclude; a quarter of --time by default.")
@click.option("--loss", help="Probability of random loss at the bottleneck, such as 0.1%.")
@shared.conventions()
@click.option("--pairs", is_flag=True, help="Let every pair of controllers compete.")
@click.option(
    "--panel",
    type=click.Choice(PANELS),
    help="Draw only this panel of --plot: the three verdicts, goodput against delay, the shares of "
    "all pairs, or windows over time.",
)
@click.option(
    "--measure",
    "measures",
    metavar="METRIC",
    type=METRIC,
    multiple=True,
    help="Show a metric too, by its name in [expect], such as fct.p95; may be repeated.",
)
@shared.values()
@shared.repeat(
    COMPARE_REPEATS,
    MAX_REPEATS,
    "Runs of each case; auto makes {}, until every verdict is decided.",
)
@shared.seed(help="Seed of the first run; that of FILE by default, or 1.")
@shared.backend()
@shared.outputs
@shared.trace()
def compare(  # noqa: PLR0913
    *,
    controllers: tuple[str, ...],
    assignments: tuple[str, ...],
    reference: str,
    pairs: bool,
    panel: str | None,
    measures: tuple[str, ...],
    repeat: Repeat,
    seed: int | None,
    on: str,
    as_json: bool,
    report: str | None,
    plot: str | None,
    column: bool,
    trace: str | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Compare CONTROLLERS on one network: each alone, and in competition with a reference.

    The network is a dumbbell, or the scenario FILE.toml: a file, or one of `cwnd scenarios`. The
    controllers replace those of its measured flows: all of them in runs alone, every second one
    against the reference. Without CONTROLLERS, those of FILE's flows are compared. The options
    --rate to --conventions describe the dumbbell; use --set to change a FILE, such as --set
    tcp.conventions=linux.
    """
    check_outputs(report=report, plot=plot, column=column, panel=panel, trace=trace)
    files = [name for name in controllers if name.endswith(".toml")]
    names = [name for name in controllers if name not in files]
    if len(files) > 1:
        raise click.UsageError(f"only one network is possible, not {' and '.join(files)}")
    with show_progress("comparing") as progress:
        from cwnd._runs.networks import overridden
        from cwnd._runs.scenario_keys import read_values
        from cwnd._tasks.comparison.run import Plan

        values, file = read_values(assignments), files[0] if files else None
        unused = options if files else overridden(values)
        # Defaults of the dumbbell's options are ignored with a file or with a value of --set.
        given = {
            name: value
            for name, value in options.items()
            if name not in unused or shared.is_given(name)
        }
        plan = Plan(
            names,
            reference,
            file,
            values,
            given,
            repeat,
            seed,
            on,
            pairs=pairs,
            measures=measures,
        )
        if on != "sim":
            announce(on, plan.most_runs, plan.duration_s, at_most=repeat == "auto")
        comparison = plan.run(progress)
    save(comparison, report=report, plot=plot, column=column, panel=panel, trace=trace)
    if as_json:
        print_json(comparison.to_json())
    else:
        from cwnd._cli.tables import print_comparison

        print_comparison(comparison)
    print_repeats(repeat, comparison.network["repeat"], comparison.undecided)


def _refuse_in_real_time(*, pcap: bool, qlog: bool, no_lookahead: bool, acks: bool) -> None:
    """Refuse options that only the backend sim has."""
    for given, problem in (
        (pcap, "--pcap: packet capture needs the backend sim"),
        (qlog, "--qlog: only the backend sim writes qlogs"),
        (no_lookahead, "--no-lookahead: only the backend sim has lookahead"),
        (acks, "--acks: only the backend sim records acknowledgements"),
    ):
        if given:
            raise click.UsageError(problem)


@cwnd.command()
@click.argument("file", type=SCENARIO_FILE)
@shared.values()
@shared.seed(help="Seed of all random values; the file's by default. With --repeat the first.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    metavar="N",
    help="Run N seeds, and print means with 95 % intervals.",
)
@click.option(
    "--fork-at",
    metavar="TIME",
    help="Run also with the values of --set from TIME on, such as 12s, and show both.",
)
@shared.backend()
@shared.outputs
@shared.trace()
@click.option("--acks", is_flag=True, help="Add a table of all acknowledgements to --trace.")
@click.option("--pcap", type=click.Path(), help="Write the packets of a link, for Wireshark.")
@click.option("--link", help="Name of the link of --pcap.")
@click.option(
    "--qlog", type=click.Path(), help="Write a qlog of each flow to a directory, for qvis."
)
@click.option(
    "--no-lookahead",
    is_flag=True,
    help="Simulate all packets in the order of time: slower, with the same results.",
)
@click.option("--check", is_flag=True, help="Check [expect] of FILE: exit with 1 if a bound fails.")
def run(  # noqa: PLR0913, PLR0917
    file: str,
    assignments: tuple[str, ...],
    seed: int | None,
    repeat: int | None,
    fork_at: str | None,
    on: str,
    as_json: bool,  # noqa: FBT001
    report: str | None,
    plot: str | None,
    acks: bool,  # noqa: FBT001
    column: bool,  # noqa: FBT001
    no_lookahead: bool,  # noqa: FBT001
    check: bool,  # noqa: FBT001
    **options: str | None,
) -> int:
    """Run the scenario FILE: a path, or a name of `cwnd scenarios`.

    With --repeat the tables have means over the seeds, and there is no plot or trace. With
    --check it prints one line for each bound of the table [expect], and no tables. FILE has
    the conventions of TCP: --set tcp.conventions=linux replaces them. With --fork-at the
    figures exclude the time before, and the values of --set can be rate, delay and loss of
    links, controllers of TCP flows, and starts and stops of flows.
    """
    if fork_at is not None:
        return _run_fork(
            file,
            fork_at,
            assignments,
            seed,
            as_json=as_json,
            report=report,
            plot=plot,
            column=column,
            lookahead=not no_lookahead,
        )
    if repeat is not None:
        shared.refuse(
            "with --repeat", "plot", "column", "trace", "acks", "pcap", "link", "qlog", "check"
        )
    trace, pcap, link, qlog = (options[name] for name in ("trace", "pcap", "link", "qlog"))
    check_outputs(report=report, plot=plot, column=column, pcap=pcap, trace=trace, qlog=qlog)
    from cwnd._runs.real_time import check_backend
    from cwnd._runs.run import check_seed, run_command
    from cwnd._runs.run import run as run_scenario
    from cwnd._runs.scenario import load
    from cwnd._runs.scenario_keys import read_values

    values = read_values(assignments)
    read, path, text = load(Path(file))
    scenario = read.with_values(values)
    compiled = scenario.validate()
    check_backend(on, [scenario])
    if seed is not None:
        check_seed(seed)
    links = compiled["links"]
    if check:
        check_expectations(scenario, links, (path, text))
    _check_capture(pcap, link, links)
    if acks and trace is None:
        raise click.UsageError("--acks needs --trace")
    if on != "sim":
        _refuse_in_real_time(
            pcap=pcap is not None, qlog=qlog is not None, no_lookahead=no_lookahead, acks=acks
        )
        announce(on, repeat or 1, compiled["duration_s"])
    if repeat is not None:
        return _run_repeated(
            Path(file),
            repeat,
            seed,
            as_json=as_json,
            report=report,
            on=on,
            values=values,
            lookahead=not no_lookahead,
        )
    with show_progress("running") as progress:
        capture = None if link is None or pcap is None else (link, pcap)
        result = run_scenario(
            scenario,
            seed,
            on=on,
            pcap=capture,
            qlog=qlog,
            lookahead=not no_lookahead,
            acks=acks,
            progress=progress,
        )
    result.rerun = run_command(Path(file), values, result.seed, on)
    save(result, report=report, plot=plot, column=column, trace=trace)
    if pcap is not None:
        echo(f"packets: {pcap}", err=True)
    if qlog is not None:
        echo(f"qlogs: {qlog}", err=True)
    return print_run(result, as_json=as_json, check=check)


def _run_fork(
    file: str,
    at: str,
    assignments: tuple[str, ...],
    seed: int | None,
    *,
    as_json: bool,
    lookahead: bool,
    **outputs: Any,  # noqa: ANN401
) -> int:
    """Run a scenario as it is and with other values from a time on, and print both."""
    shared.refuse_others(
        "with --fork-at",
        "file",
        "fork_at",
        "assignments",
        "seed",
        "report",
        "plot",
        "column",
        "no_lookahead",
    )
    if not assignments:
        raise click.UsageError("--fork-at needs --set PATH=VALUE")
    check_outputs(**outputs)
    from cwnd._runs.fork import fork_run
    from cwnd._runs.scenario_keys import read_values

    values = read_values(assignments)
    with show_progress("running") as progress:
        fork = fork_run(Path(file), at, values, seed, lookahead=lookahead, progress=progress)
    save_report(fork, outputs["report"])
    if outputs["plot"] is not None:
        save_plot(fork.plot(column=outputs["column"]), outputs["plot"])
    if as_json:
        print_json(fork.to_json())
    else:
        from cwnd._cli.tables import print_fork

        print_fork(fork)
    return 0


def _check_capture(pcap: str | None, link: str | None, links: Sequence[str]) -> None:
    """Check that the packets of a link can be written."""
    if (link is None) != (pcap is None):
        missing, given = ("--link", "--pcap") if link is None else ("--pcap", "--link")
        raise click.UsageError(f"{given} needs {missing} (the links are {', '.join(links)})")
    if link is not None and link not in links:
        raise click.UsageError(f"--link: {link!r} is not one of {', '.join(links)}")


def _run_repeated(
    file: Path,
    repeat: int,
    seed: int | None,
    *,
    as_json: bool,
    report: str | None,
    **how: Any,  # noqa: ANN401
) -> int:
    """Run a scenario with several seeds, and print means and intervals."""
    from cwnd._runs.repeated import run_repeated

    with show_progress("running") as progress:
        repeated = run_repeated(file, repeat, seed, progress=progress, **how)
    save_report(repeated, report)
    if as_json:
        print_json(repeated.to_json())
    else:
        from cwnd._cli.tables import print_repeated

        print_repeated(repeated)
    return 0


@cwnd.command()
@click.argument("papers", nargs=-1, metavar="[PAPER]...", type=PAPER)
@click.option("--exhibit", type=EXHIBIT, help="Only the exhibits with this ID, such as table-1.")
@click.option("--quick", is_flag=True, help="Fewer seeds and shorter runs.")
@click.option("--repeat", type=int, help="Seeds of each case; each exhibit has its own default.")
@with_cluster
@shared.json()
@shared.out(default="out/reproduce", help="Directory of the report.")
def reproduce(
    papers: tuple[str, ...],
    exhibit: str | None,
    quick: bool,  # noqa: FBT001
    repeat: int | None,
    as_json: bool,  # noqa: FBT001
    out: str,
    **cluster: Any,  # noqa: ANN401
) -> None:
    """Reproduce the evaluation of each PAPER, or of all.

    PAPER is simd, gaimd, aira, daimd, aiad, today (BBR, CUBIC, Copa and C4) or beyond (all laws).

    For every table and figure the report has the published and the measured values and verdicts.
    The same command resumes an interrupted run.
    """
    check_directory("out", Path(out))
    with (
        open_cluster(ClusterOptions(**cluster)) as client,
        show_progress("reproducing") as progress,
    ):
        from cwnd._papers.runner import reproduce as reproduce_papers

        document = reproduce_papers(
            papers,
            exhibit=exhibit,
            quick=quick,
            repeat=repeat,
            out=out,
            dask=client,
            progress=progress,
        )
    if as_json:
        print_json(document)
    else:
        from cwnd._cli.tables import print_reproduction

        print_reproduction(document)
    echo(f"report: {Path(out) / 'index.html'}", err=True)


for other in (
    evaluate,
    score,
    sweep,
    search,
    agree,
    conform,
    query,
    model,
    send,
    recv,
    keygen,
    perf,
    emulate,
    kernel,
):
    cwnd.add_command(other)
cwnd.add_command(trace_command)
cwnd.add_command(law_command)


@cwnd.command()
@click.argument("name", required=False, type=SPEC)
@shared.json()
def algorithms(name: str | None, as_json: bool) -> None:  # noqa: FBT001
    """List the controllers, or describe NAME: one of them, mine.law, or mine.py:Law in Python."""
    from cwnd._controllers import registry

    known = registry.algorithms() if name is None else [registry.describe(name)]
    if as_json:
        print_json({"algorithms": [algorithm.to_json() for algorithm in known]})
    else:
        from cwnd._cli.tables import print_algorithm, print_algorithms

        if name is None:
            print_algorithms(known)
        else:
            print_algorithm(known[0])


def _complete_table(_: click.Context, __: click.Parameter, begin: str) -> list[str]:
    """Complete the name of a table of scenario files."""
    from cwnd._runs.scenario_keys import expect_table, key_tables

    names = dict.fromkeys(table.name for table in (*key_tables(), expect_table()))
    return [name for name in names if name.startswith(begin)]


@cwnd.command()
@click.argument("table", required=False, shell_complete=_complete_table)
@shared.json()
def keys(table: str | None, as_json: bool) -> None:  # noqa: FBT001
    """List the tables of scenario files, or the keys of TABLE: flow, tcp, queue or another one."""
    from cwnd._runs.scenario_keys import expect_table, key_tables

    tables = [*key_tables(), expect_table()]
    chosen = [each for each in tables if table in {None, each.name}]
    if not chosen:
        names = ", ".join(dict.fromkeys(each.name for each in tables))
        raise click.UsageError(f"no table is named {table}; the tables are {names}")
    if as_json:
        rows = [each._asdict() | {"keys": [key._asdict() for key in each.keys]} for each in chosen]
        print_json({"tables": rows})
        return
    from cwnd._cli.tables import print_key_tables, print_keys

    if table is None:
        print_key_tables(chosen)
    else:
        print_keys(chosen)


cwnd.add_command(scenarios)
cwnd.add_command(new_scenario)


@cwnd.command()
@click.argument("document", type=DOCUMENT, default="scenario")
def schema(document: str) -> None:
    """Print the JSON Schema of scenario files, of a card, or of the output of a command's --json.

    DOCUMENT is scenario, card or a command such as run or kernel-list; an output of the same
    command with another structure has a name of its own, such as sweep-verify.
    """
    from cwnd._cli.documents import document_schema, schema_names

    if document not in schema_names():
        raise click.UsageError(f"{document!r} is not one of {', '.join(schema_names())}")
    print_json(document_schema(document))


@cwnd.command()
@shared.json()
def doctor(as_json: bool) -> None:  # noqa: FBT001
    """Check optional dependencies."""
    from cwnd._cli.doctor import examine

    findings = examine()
    if as_json:
        print_json({"findings": [finding.to_json() for finding in findings]})
    else:
        from cwnd._cli.tables import print_findings

        print_findings(findings)


@cwnd.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of SHELL: eval "$(cwnd completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    echo(*kind(cwnd, {}, "cwnd", "_CWND_COMPLETE").source().split("\n"))


cwnd.add_command(new_controller)
cwnd.add_command(man)
name_variables(cwnd)
