"""The command `evaluate`: report cards of controllers, and single runs of their tests."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from cwnd._base.files import read_text
from cwnd._cli import shared
from cwnd._cli.cluster import ClusterOptions, open_cluster, with_cluster
from cwnd._cli.outputs import (
    FAILED,
    announce,
    check_directory,
    check_outputs,
    print_json,
    save,
    show_progress,
)
from cwnd._cli.terminal import echo, say
from cwnd._cli.values import SPEC, SUITE, TEST
from cwnd._runs.conventions import CONVENTIONS
from cwnd._runs.defaults import CARD_BUDGET, SEED, STACKS
from cwnd._runs.defaults import SUITE as DEFAULT_SUITE
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._runs.result import Result
    from cwnd._tasks.evaluation.card import Card
    from cwnd._tasks.evaluation.single import SingleRun

MAX_LABEL = 100
"""Longest list of tests in the name of a file."""

_SINGLE = ("cell", "seed", "scenario", "report", "trace")
"""Options of a single run."""

_CARDS = ("quick", "search", "budget", "out", *ClusterOptions._fields, "against", "require")
"""Options of cards."""


@click.command()
@click.argument("controllers", nargs=-1, type=SPEC)
@click.option("--suite", default=DEFAULT_SUITE, type=SUITE, help="Suite of tests, or all.")
@click.option(
    "--test", metavar="NAME", multiple=True, type=TEST, help="Only this test; may be repeated."
)
@click.option(
    "--quick", is_flag=True, help="Three to five seeds on a part of the networks: about a minute."
)
@shared.backend(help="linux for the kernel's TCP: the tests that real time permits.")
@shared.conventions()
@click.option(
    "--stack",
    type=click.Choice(STACKS),
    help="Make the measured flows connections of this QUIC stack, beside its own CUBIC.",
)
@click.option(
    "--search", is_flag=True, help="Add networks on which a search finds the controller worst."
)
@shared.budget(default=CARD_BUDGET)
@shared.out(default="out/evaluate", help="Directory of the cards and runs.")
@with_cluster
@click.option(
    "--against", type=click.Path(), metavar="CARD.json", help="List the changes since this card."
)
@click.option("--require", type=SUITE, help="Exit with 1 and name the tests of SUITE that fail.")
@shared.json()
@click.option(
    "--list", "as_list", is_flag=True, help="List the tests, or the networks of a --test."
)
@click.option(
    "--cell", metavar="NETWORK", help="Make one run of a --test on this network: 'RTT 40 ms'."
)
@shared.seed(help=f"Make one run of a --test with this seed; {SEED} by default.")
@click.option("--scenario", is_flag=True, help="Print the scenario of that run, for `cwnd run`.")
@shared.report(help="Write a page of that run.")
@shared.trace(help="Write tables of that run to DIR.")
def evaluate(
    controllers: tuple[str, ...],
    as_json: bool,  # noqa: FBT001
    as_list: bool,  # noqa: FBT001
    **options: Any,  # noqa: ANN401
) -> int:
    """Grade each CONTROLLER by the tests of RFC 9743 and of other suites.

    Each test is a scenario with a metric and thresholds, which were fixed before any result. The
    grades are meets, concern, fails, undecided and does not apply. For each controller the
    directory gets a page, JSON, a summary in Markdown and a badge; those of a part of a suite have
    names of their own. The same command resumes an interrupted evaluation. It exits with 1 if a run
    has no value. With --search the card also has what a search found, without a grade, and the
    directory search/CONTROLLER the scenarios.

    With --cell, --seed, --scenario, --report or --trace it makes a single run of one test.
    """
    single = {name: options.pop(name) for name in _SINGLE}
    if as_list:
        shared.refuse("for a list", *_SINGLE, *_CARDS, "conventions")
        return _list(controllers, as_json=as_json, **options)
    if not controllers:
        raise ArgumentError("controllers", "name at least one controller")
    if any(value not in {None, False} for value in single.values()):
        return _run_one(controllers, options, as_json=as_json, **single)
    return _make_cards(controllers, as_json=as_json, **options)


def _make_cards(
    controllers: tuple[str, ...],
    *,
    out: str,
    against: str | None,
    require: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> int:
    """Write and print the cards of some controllers; return the exit status."""
    from cwnd._experiments.experiment import check_suite, experiments
    from cwnd._tasks.evaluation.card import changes_since
    from cwnd._tasks.evaluation.evaluate import evaluate as make_cards

    if require is not None:
        check_suite("require", require)
        chosen = experiments(
            options["suite"], options["test"], options["on"], stack=options["stack"]
        )
        suites = {suite for each in chosen for one in each.tests for suite in (*one.suites, "all")}
        if require not in suites:
            raise ArgumentError("require", f"no test of {require} is in this evaluation")
    before = None if against is None else _read_card(Path(against))
    if before is not None and len(controllers) > 1:
        raise ArgumentError("against", "compares one controller with a card")
    if not options["search"]:
        shared.refuse("without --search", "budget")
    check_directory("out", Path(out))
    cluster = {name: options.pop(name) for name in ClusterOptions._fields}
    with (
        open_cluster(ClusterOptions(**cluster)) as client,
        show_progress("evaluating") as progress,
    ):
        cards = make_cards(controllers, out=out, dask=client, progress=progress, **options)
    changes = [] if before is None else changes_since(before, cards[0])
    index = _write(cards, Path(out), changes)
    if as_json:
        print_json({"cards": [card.to_json() for card in cards], "changes": changes})
    else:
        from cwnd._cli.tables import print_cards

        print_cards(cards, changes)
    echo(f"report: {index}", err=True)
    failed = [(card, name) for card in cards for name in card.failed(require or "")]
    problems = [(card, card.problem) for card in cards if card.problem]
    for card, name in failed:
        say(f"{card.controller} fails {name}")
    for card, problem in problems:
        say(f"{card.controller}: {problem}")
    return FAILED if failed or problems else 0


def _list(
    controllers: tuple[str, ...],
    *,
    suite: str,
    test: tuple[str, ...],
    on: str,
    stack: str | None,
    as_json: bool,
    **_: Any,  # noqa: ANN401
) -> int:
    """Print the tests of a suite, or some tests with their networks."""
    from cwnd._experiments.experiment import experiments, order

    if controllers:
        raise ArgumentError("list", f"lists tests, not controllers such as {controllers[0]}")
    tests: list[JsonObject] = [
        {
            "id": one.id,
            "section": one.section,
            "title": one.title,
            "suites": list(one.suites),
            "metric": one.metric.name,
            "baseline": each.baseline,
            "networks": list(each.networks),
            "quick": [
                each.networks[point] for point in each.points(quick=True) if each.on == "sim"
            ],
        }
        for each in experiments(suite, test, on, stack=stack)
        for one in each.tests
    ]
    tests.sort(key=lambda one: order(one["section"]))
    if as_json:
        print_json({"tests": tests})
    else:
        from cwnd._cli.tables import print_networks, print_tests

        (print_networks if test else print_tests)(tests)
    return 0


def _run_one(
    controllers: tuple[str, ...],
    options: JsonObject,
    *,
    cell: str | None,
    seed: int | None,
    scenario: bool,
    report: str | None,
    trace: str | None,
    as_json: bool,
) -> int:
    """Print the scenario of one run of a test, or make the run."""
    from cwnd._experiments.experiment import check_suite
    from cwnd._tasks.evaluation.single import single_run

    shared.refuse(f"for a single run (--{', --'.join(_SINGLE)})", *_CARDS)
    if scenario:
        shared.refuse("with --scenario, which makes no run", "report", "trace", "as_json")
    check_suite("suite", options["suite"])
    if len(controllers) != 1 or len(options["test"]) != 1:
        raise ArgumentError("test", "a single run needs one controller and one --test NAME")
    check_outputs(report=report, trace=trace)
    one = single_run(
        controllers[0],
        options["test"][0],
        cell=cell,
        seed=SEED if seed is None else seed,
        on=options["on"],
        conventions=options["conventions"],
        stack=options["stack"],
    )
    if scenario:
        echo(*one.to_toml().rstrip("\n").split("\n"))
        return 0
    if one.on != "sim":
        announce(one.on, 1, one.scenario.validate()["duration_s"])
    result = _result(one)
    if result is None:
        return FAILED
    save(result, report=report, trace=trace)
    value = one.test.metric.value(result)
    if as_json:
        of = {"test": one.test.id, "network": one.network, "metric": one.test.metric.name}
        print_json({**result.to_json(), **of, "value": value if math.isfinite(value) else None})
    else:
        from cwnd._cli.tables import print_result

        print_result(result)
        echo(f"{one.test.metric.name}: {one.test.metric.measure.shown(value)}")
    return 0 if math.isfinite(value) else FAILED


def _result(one: SingleRun) -> Result | None:
    """Make a run; None, with the reason on standard error, if the controller fails."""
    from cwnd._native import ScenarioError, SpecError
    from cwnd.controller import explain_failure

    try:
        with show_progress("running") as progress:
            return one.run(progress)
    except Exception as problem:
        known = str(problem) if isinstance(problem, ScenarioError | SpecError) else None
        message = explain_failure(problem) or known
        if message is None:
            raise
        say(message)
        return None


def _write(cards: list[Card], out: Path, changes: list[str]) -> Path:
    """Write the files of the cards, and a table of several; return the page to open."""
    from cwnd._base.files import write_text
    from cwnd._runs.result import dumps
    from cwnd._show.report.evaluate import cards_page

    names = [_name(card.controller, card) for card in cards]
    for card, name in zip(cards, names, strict=True):
        card.report(out / f"{name}.html")
        write_text(out / f"{name}.json", dumps(card.to_json()) + "\n")
        write_text(out / f"{name}.md", card.to_markdown(changes))
        write_text(out / f"{name}.svg", card.to_svg())
        if card.found is not None:
            card.found.report(card.found.out / "index.html")
    if len(cards) == 1:
        return out / f"{names[0]}.html"
    index = out / f"{_name('index', cards[0])}.html"
    write_text(index, cards_page(cards, [f"{name}.html" for name in names]))
    return index


def _name(title: str, card: Card) -> str:
    """Return the name of a file: a title, and the part of a suite that a card covers.

    For a card of all tests of the suite rfc9743 it is the title alone.

    Examples
    --------
    >>> from cwnd._tasks.evaluation.card import Card
    >>> _name("simd(beta=1/16)", Card("simd(beta=1/16)", "aqm", False, ()))
    'simd-beta-1-16-aqm'
    >>> _name("index", Card("kernel:bbr", "rfc9743", False, (), "linux", None, ("high-loss",)))
    'index-linux-high-loss'
    """
    from cwnd._tasks.evaluation.card import file_name

    tests = "-".join(card.tests)
    if len(tests) > MAX_LABEL:
        import hashlib

        tests = hashlib.sha256(tests.encode()).hexdigest()[:16]
    parts = [
        title,
        "" if card.on == "sim" else card.on,
        card.stack or "",
        "" if card.conventions == CONVENTIONS else card.conventions,
        "" if card.suite == "rfc9743" else card.suite,
        tests,
        "quick" if card.quick else "",
    ]
    return file_name(*parts)


def _read_card(path: Path) -> JsonObject:
    """Read a card that this command wrote."""
    try:
        card = json.loads(read_text(path))
    except OSError as problem:
        raise ArgumentError("against", f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        card = None
    if not _is_card(card):
        raise ArgumentError("against", f"{path} is not a card of `cwnd evaluate`")
    return cast("JsonObject", card)


def _is_card(card: object) -> bool:
    """Test whether a JSON document has what `changes_since` reads."""
    if not isinstance(card, dict):
        return False
    tests, conventions = card.get("tests"), card.get("conventions", [])
    if not isinstance(tests, list) or not isinstance(conventions, list):
        return False
    texts = [
        test.get(key) if isinstance(test, dict) else None
        for test in tests
        for key in ("id", "grade")
    ]
    texts += [card[key] for key in ("controller", "suite", "on") if key in card]
    plain = all(isinstance(text, str) for text in (*texts, *conventions))
    return plain and isinstance(card.get("quick", False), bool)
