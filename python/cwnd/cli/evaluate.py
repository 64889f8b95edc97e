"""The command `evaluate`: report cards of controllers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwnd.cli.outputs import check_directory, print_json, show_progress
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from cwnd.evaluation.card import Card
    from cwnd.records import JsonObject

FAILED = 1
"""Exit status if a test required by ``--require`` fails."""


@click.command()
@click.argument("controllers", nargs=-1, required=True)
@click.option("--suite", default="rfc9743", show_default=True, help="Suite of tests, or all.")
@click.option("--test", metavar="NAME", help="Only this test.")
@click.option("--quick", is_flag=True, help="Fewer networks and seeds: under a minute.")
@click.option(
    "--on",
    default="sim",
    show_default=True,
    help="linux for the kernel's TCP: the tests that real time permits.",
)
@click.option(
    "--out",
    type=click.Path(),
    default="out/evaluate",
    show_default=True,
    help="Directory of the cards and runs.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Run on the workers of a Dask scheduler, such as tcp://10.0.0.1:8786.",
)
@click.option(
    "--against", type=click.Path(), metavar="CARD.json", help="List the changes since this card."
)
@click.option(
    "--require", metavar="SUITE", help="Exit with 1 and name the tests of SUITE that fail."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def evaluate(
    controllers: tuple[str, ...],
    out: str,
    against: str | None,
    require: str | None,
    as_json: bool,  # noqa: FBT001
    **options: Any,  # noqa: ANN401
) -> int:
    """Grade each CONTROLLER by the tests of RFC 9743 and of other suites.

    Each test is a scenario with a metric and thresholds, which were fixed before any result. The
    grades are meets, concern, fails, undecided and does not apply. For each controller the
    directory gets a page, JSON, a summary in Markdown and a badge. The same command resumes an
    interrupted evaluation.
    """
    from cwnd.evaluation.card import changes_since
    from cwnd.evaluation.evaluate import evaluate as make_cards
    from cwnd.evaluation.experiment import check_suite

    if require is not None:
        check_suite("require", require)
    before = None if against is None else _read_card(Path(against))
    if before is not None and len(controllers) > 1:
        raise ArgumentError("against", "compares one controller with a card")
    check_directory("out", Path(out))
    with show_progress("evaluating") as progress:
        cards = make_cards(controllers, out=out, progress=progress, **options)
    changes = [] if before is None else changes_since(before, cards[0])
    index = _write(cards, Path(out), changes)
    if as_json:
        print_json({"cards": [card.to_json() for card in cards], "changes": changes})
    else:
        from cwnd.cli.tables import print_cards

        print_cards(cards, changes)
    click.echo(f"report: {index}", err=True)
    failed = [(card, name) for card in cards for name in card.failed(require or "")]
    for card, name in failed:
        click.echo(f"cwnd: {card.controller} fails {name}", err=True)
    return FAILED if failed else 0


def _write(cards: list[Card], out: Path, changes: list[str]) -> Path:
    """Write the files of the cards, and a table of several; return the page to open."""
    from cwnd.report.evaluate import cards_page
    from cwnd.result import dumps, write_text

    names = [_file_name(card) for card in cards]
    for card, name in zip(cards, names, strict=True):
        card.report(out / f"{name}.html")
        write_text(out / f"{name}.json", dumps(card.to_json()) + "\n")
        write_text(out / f"{name}.md", card.to_markdown(changes))
        write_text(out / f"{name}.svg", card.to_svg())
    if len(cards) == 1:
        return out / f"{names[0]}.html"
    write_text(out / "index.html", cards_page(cards, [f"{name}.html" for name in names]))
    return out / "index.html"


def _file_name(card: Card) -> str:
    """Return a file name for a card.

    Examples
    --------
    >>> from cwnd.evaluation.card import Card
    >>> _file_name(Card("simd(beta=1/16)", "aqm", False, ()))
    'simd-beta-1-16'
    >>> _file_name(Card("kernel:bbr", "aqm", False, (), on="linux"))
    'kernel-bbr-linux'
    """
    name = card.controller if card.on == "sim" else f"{card.controller}-{card.on}"
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")


def _read_card(path: Path) -> JsonObject:
    """Read a card that this command wrote."""
    try:
        card: JsonObject = json.loads(path.read_text(encoding="utf-8"))
        _ = [(test["id"], test["grade"]) for test in card["tests"]]
    except OSError as problem:
        raise ArgumentError("against", f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ArgumentError("against", f"{path} is not a card of `cwnd evaluate`") from None
    return card
