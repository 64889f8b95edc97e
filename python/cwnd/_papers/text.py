"""Text files of each paper: printed values, open choices, reasons of deviations, and contents.

``paper.toml`` in the folder of a paper contains

* ``title`` and ``citation``;
* ``[[headline]]``: a main claim in plain words (``claim``), the claims that it rests on
  (``rests_on``: patterns of ``exhibit/claim``) and what its verdict depends on (``hangs_on``);
* ``[trials]``: by name, a `Trial`;
* ``[reasons]``: by name, a cause (one of `CAUSES`), a sentence, and its proof: the name of a trial
  of the exhibit under which the claim agrees or is close, or a pattern of claims of the exhibit
  that agree. Without a proof, and where it fails, the cause is reported as not known;
* ``[exhibit.ID]``: ``title``; ``varied``, the variations of the scenario shown; ``inferred``,
  choices that the paper does not state; ``trials``, the names of its trials, which the full run
  includes; ``[exhibit.ID.claims]``: by the claim's key, a sentence or
  a table (see `Wording`); ``[exhibit.ID.printed]``: printed tables, each with ``columns`` and
  ``rows``; ``[exhibit.ID.why]``: by the claim's name or key, the name of a reason.

``contents.toml`` beside it, for the five papers, contains

* ``[parts]``: by the number of an equation, a figure, a table or a section, a `Part`;
* ``ungraded``: quantitative sentences without a claim, each with its section and line (``where``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from cwnd._base import toml as tomllib
from cwnd._papers.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Mapping

Cause: TypeAlias = Literal["paper", "setting", "reading", "rule", "unknown"]

CAUSES: dict[Cause, str] = {
    "paper": "The paper is wrong or contradicts itself.",
    "setting": "A setting that the paper does not print determines the result.",
    "reading": "The result depends on the interpretation of the text.",
    "rule": "The rule of the verdict is stricter than the claim.",
    "unknown": "No run shows the cause.",
}
"""Causes of claims that differ."""

Kind: TypeAlias = Literal["headline", "cell", "check", "ns-2"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of claims: one that a headline rests on, a number or sentence of an exhibit, a check of
this project, or a comparison with ns-2. The first two are the paper's."""


class Reason(NamedTuple):
    """Cause of a deviation, its explanation and its proof; see the text file."""

    cause: Cause
    why: str
    proof: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """A main claim of a paper; see the text file for the attributes."""

    claim: str
    rests_on: tuple[str, ...]
    hangs_on: str


@dataclass(frozen=True, slots=True)
class Wording:
    """Text of a claim."""

    text: str
    """With the unit; ``{name}`` is replaced by a value from the exhibit."""
    says: str = ""
    """The paper's own words if it prints no number."""
    printed: str = ""
    """The printed number."""
    kind: Kind = "cell"


@dataclass(frozen=True, slots=True)
class Printed:
    """A printed table: column headers, and cells by row name, empty if not printed."""

    columns: list[str]
    rows: dict[str, list[str]]

    def column(self, name: str) -> dict[str, str]:
        """Return the cells of a column by row name."""
        at = self.columns.index(name)
        return {row: cells[at] for row, cells in self.rows.items()}


@dataclass(frozen=True, slots=True)
class ExhibitText:
    """Texts of an exhibit; see the text file for the attributes."""

    title: str
    varied: str = ""
    inferred: list[str] = field(default_factory=list)
    claims: dict[str, Wording] = field(default_factory=dict)
    printed: dict[str, Printed] = field(default_factory=dict)
    why: dict[str, Reason] = field(default_factory=dict)
    trials: dict[str, Trial] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        document: Mapping[str, Any],
        reasons: Mapping[str, Reason],
        trials: Mapping[str, Trial],
    ) -> ExhibitText:
        """Create it from a table of the text file."""
        claims = {
            key: Wording(words) if isinstance(words, str) else Wording(**words)
            for key, words in document.get("claims", {}).items()
        }
        printed = {name: Printed(**table) for name, table in document.get("printed", {}).items()}
        why = {name: reasons[reason] for name, reason in document.get("why", {}).items()}
        plain = {key: document[key] for key in ("title", "varied", "inferred") if key in document}
        tried = {name: trials[name] for name in document.get("trials", [])}
        return cls(**plain, claims=claims, printed=printed, why=why, trials=tried)


@dataclass(frozen=True, slots=True)
class Part:
    """A numbered part of a paper: the exhibits that show it, and what is lost."""

    exhibits: list[str] = field(default_factory=list)
    note: str = ""


class Ungraded(NamedTuple):
    """A quantitative sentence without a claim: its section and line, and the sentence."""

    where: str
    says: str


@dataclass(frozen=True, slots=True)
class PaperText:
    """Texts of a paper; see the text files for the attributes."""

    title: str
    citation: str
    headlines: list[Headline]
    exhibits: dict[str, ExhibitText]
    parts: dict[str, Part]
    ungraded: list[Ungraded]


@cache
def read_text(paper: str) -> PaperText:
    """Read the text files of a paper by its short name."""
    folder = files("cwnd._papers").joinpath(paper)
    document = tomllib.loads(folder.joinpath("paper.toml").read_text(encoding="utf-8"))
    path = folder.joinpath("contents.toml")
    contents = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    reasons = {name: Reason(*reason) for name, reason in document.get("reasons", {}).items()}
    trials = {name: Trial(**trial) for name, trial in document.get("trials", {}).items()}
    return PaperText(
        document["title"],
        document["citation"],
        [
            Headline(h["claim"], tuple(h["rests_on"]), h["hangs_on"])
            for h in document.get("headline", [])
        ],
        {
            name: ExhibitText.read(exhibit, reasons, trials)
            for name, exhibit in document["exhibit"].items()
        },
        {name: Part(**part) for name, part in contents.get("parts", {}).items()},
        [Ungraded(**sentence) for sentence in contents.get("ungraded", [])],
    )
