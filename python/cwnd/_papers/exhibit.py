"""Exhibits: reproducible tables, figures and claims of a paper."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from cwnd._papers.figure import Figure, Table
from cwnd._papers.grades import Grade, no_more, number
from cwnd._papers.text import ExhibitText, Reason, Wording, read_text
from cwnd._papers.trial import Trial
from cwnd._runs import run as running
from cwnd._runs.conventions import all_conventions
from cwnd.stats import POSITIVE, Range, estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from cwnd._base.records import JsonObject
    from cwnd._papers.grades import Rating
    from cwnd._papers.text import Kind
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario

Known: TypeAlias = "dict[tuple[str, Callable[[Result], Any], int], Any]"
"""Measurements by scenario (JSON), measure and seed."""

K = TypeVar("K")
M = TypeVar("M")
R = TypeVar("R", bound="tuple[str | float, ...]")
T = TypeVar("T")

PAPERS = ("simd", "gaimd", "aira", "daimd", "aiad", "today", "beyond")
"""Short names of the papers; each has a package in this folder."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an exhibit with its verdict."""

    name: str
    words: Wording
    grade: Grade
    verdict: Rating
    """The verdict of ``grade``, or ``depends``."""
    reason: Reason | None
    """Why it deviates; None if it agrees."""
    trials: dict[str, Grade] = field(default_factory=dict)
    """Its grade under each trial of the exhibit."""

    def conclude(self, text: ExhibitText, claims: Iterable[Claim]) -> Claim:
        """Return the claim with the verdict and the cause that the exhibit's trials leave it.

        A number that is close has a cause only if it is shown.
        """
        reason = self.reason
        if reason is None:
            return self
        readings = [self.trials[name] for name in self.trials if text.trials[name].permits]
        depends = any(grade.verdict == "agrees" for grade in readings)
        if reason.proof in text.trials:
            tried = self.trials.get(reason.proof)
            good = {"agrees", "close"} if self.verdict == "differs" else {"agrees"}
            proven = tried is not None and tried.verdict in good
        else:
            shown = [c.grade.verdict for c in claims if fnmatchcase(c.name, reason.proof)]
            proven = bool(shown) and all(verdict == "agrees" for verdict in shown)
        if self.verdict != "differs":
            return self if proven else replace(self, reason=None)
        return replace(
            self,
            verdict="depends" if depends else "differs",
            reason=reason if proven else reason._replace(cause="unknown"),
        )

    def to_json(self) -> JsonObject:
        """Return the claim as plain data; numbers that are not finite become None."""
        grade = self.grade
        known = isinstance(grade.measured, str) or math.isfinite(grade.measured)
        return {
            "name": self.name,
            "text": self.words.text,
            "kind": self.words.kind,
            "published": self.words.says or grade.published or None,
            "measured": grade.measured if known else None,
            "interval": list(grade.interval) if grade.interval else None,
            "runs": grade.runs,
            "rule": grade.rule,
            "verdict": self.verdict,
            "cause": self.reason.cause if self.reason else None,
            "why": self.reason.why if self.reason else "",
            "proof": self.reason.proof if self.reason else "",
            "trials": [
                {
                    "name": name,
                    "measured": tried.measured,
                    "interval": list(tried.interval) if tried.interval else None,
                    "verdict": tried.verdict,
                }
                for name, tried in self.trials.items()
            ],
        }


@dataclass(slots=True)
class Findings:
    """Results of an exhibit; ``scenario`` is the first one that it ran.

    ``conventions`` are those of the TCP flows of all its scenarios.
    """

    claims: list[Claim] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    scenario: Scenario | None = None
    conventions: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Exhibit:
    """An exhibit of a paper."""

    paper: str
    id: str
    """Such as ``table-1`` or ``fig-5``."""
    new: bool
    """Whether it extends the paper."""
    cost: float
    """Approximate CPU seconds of the full run; exhibits start in descending order."""
    seeds: tuple[int, int]
    """Initial and largest numbers of seeds for each case, added while a claim is undecided."""
    quick: tuple[int, int]
    """The same in the quick run."""
    beside: str
    """Another exhibit of the paper with runs in common, or this one."""
    function: Callable[[Lab], None]

    @property
    def text(self) -> ExhibitText:
        """Texts of the exhibit."""
        return read_text(self.paper).exhibits[self.id]

    def run(self, lab: Lab) -> Findings:
        """Run the exhibit, and in the full run its trials with the same seeds."""
        findings = self._run(lab)
        if lab.quick:
            return findings
        random = lab.random
        for name, trial in self.text.trials.items():
            lab.begin(self.text, lab.seeds, trial)
            self.function(lab)
            tried = {claim.name: claim.grade for claim in lab.findings.claims}
            for claim in findings.claims:
                if claim.name in tried:
                    claim.trials[name] = tried[claim.name]
        lab.random = random
        claims = findings.claims
        findings.claims = [claim.conclude(self.text, claims) for claim in claims]
        return findings

    def _run(self, lab: Lab) -> Findings:
        """Run the exhibit; double the seeds while a claim is undecided, up to the limit."""
        seeds, most = self.quick if lab.quick else self.seeds
        if lab.repeat is not None:
            seeds = most = lab.repeat
        while True:
            lab.begin(self.text, seeds)
            self.function(lab)
            undecided = any(claim.grade.verdict == "undecided" for claim in lab.findings.claims)
            if not undecided or seeds >= most or not lab.random:
                return lab.findings
            seeds = min(2 * seeds, most)


_EXHIBITS: dict[str, list[Exhibit]] = {paper: [] for paper in PAPERS}


def exhibit(
    name: str,
    *,
    cost: float,
    seeds: tuple[int, int] = (5, 20),
    quick: tuple[int, int] = (5, 5),
    new: bool = False,
    beside: str = "",
) -> Callable[[Callable[[Lab], None]], Callable[[Lab], None]]:
    """Register a function as the `Exhibit` ``name`` of the paper of its package.

    Runs shared with the earlier exhibit ``beside`` (same scenario and measure) are done only once.
    """

    def register(function: Callable[[Lab], None]) -> Callable[[Lab], None]:
        paper = function.__module__.split(".")[2]
        _EXHIBITS[paper].append(
            Exhibit(paper, name, new, cost, seeds, quick, beside or name, function)
        )
        return function

    return register


def exhibits(paper: str) -> list[Exhibit]:
    """List the exhibits of a paper, one of `PAPERS`, in the order of its text file.

    Examples
    --------
    >>> [e.id for e in exhibits("simd")][:2]
    ['fig-1', 'eq-6']
    """
    import_module(f"cwnd._papers.{paper}")
    order = list(read_text(paper).exhibits)
    return sorted(_EXHIBITS[paper], key=lambda e: order.index(e.id))


class Lab:
    """Runs the simulations of an exhibit, and collects its findings.

    ``repeat`` overrides the exhibit's number of seeds, 0 ``threads`` means one per core, and
    ``known`` has measurements of earlier exhibits.
    """

    def __init__(
        self,
        *,
        quick: bool = False,
        repeat: int | None = None,
        threads: int = 0,
        known: Known | None = None,
    ) -> None:
        self.quick = quick
        self.repeat = repeat
        self.threads = threads
        self._known: Known = {} if known is None else known
        self.begin(ExhibitText(""), 1)

    def begin(self, text: ExhibitText, seeds: int, trial: Trial | None = None) -> None:
        """Start an exhibit, or a trial of it, with a number of seeds and empty findings."""
        self.text = text
        self.trial = trial or Trial("")
        self.seeds = seeds
        self.findings = Findings()
        self.random = False

    def pick(self, full: T, quick: T) -> T:
        """Choose between values for the full and for the quick run."""
        return quick if self.quick else full

    def option(self, name: str, default: str) -> str:
        """Return the value that the trial gives to an option, or the default."""
        return self.trial.options.get(name, default)

    def run(
        self,
        cases: Mapping[K, Scenario],
        measure: Callable[[Result], M],
        *,
        seeds: int | None = None,
    ) -> dict[K, list[M]]:
        """Return the measurements of each scenario, one for each seed.

        ``measure`` must be a module's function, so that repeated runs are recognised. ``seeds`` is
        given for deterministic runs, or curves without claims.
        """
        cases = {key: self.trial.change(scenario) for key, scenario in cases.items()}
        if self.findings.scenario is None:
            self.findings.scenario = next(iter(cases.values()), None)
        self.findings.conventions = all_conventions(
            [
                self.findings.conventions,
                *(case.validate()["conventions"] for case in cases.values()),
            ]
        )
        if seeds is None:
            self.random = True
        numbers = range(1, 1 + (seeds or self.seeds))
        keys = {
            case: [(scenario.to_json(), measure, seed) for seed in numbers]
            for case, scenario in cases.items()
        }
        jobs = {
            key: (cases[case], key[-1])
            for case in cases
            for key in keys[case]
            if key not in self._known
        }
        measured = running.measure(
            list(jobs.values()), lambda _, run: measure(run), threads=self.threads
        )
        self._known.update(zip(jobs, measured, strict=True))
        return {case: [self._known[key] for key in keys[case]] for case in cases}

    def claim(self, key: str, grade: Grade, kind: Kind | None = None, /, **of: object) -> None:
        """Add the claim with a key of the text file; ``kind`` replaces the kind there.

        ``of`` are values for the placeholders of the text, and are appended to the claim's name.
        A reason is found by the full name, or by the name without its last values.
        """
        words = self.text.claims[key]
        parts = [key, *(str(value) for value in of.values())]
        name, *shorter = (" ".join(parts[:n]) for n in range(len(parts), 0, -1))
        text, says = words.text.format(**of), words.says.format(**of)
        self._add(name, Wording(text, says, words.printed, kind or words.kind), grade, *shorter)

    def number(
        self, key: str, values: Iterable[float] | float, within: Range = POSITIVE, **of: object
    ) -> None:
        """Add the claim of a number printed in the text file; see `grades.number`."""
        self.claim(key, number(self.text.claims[key].printed, values, within), **of)

    def cells(
        self,
        table: str,
        found: Mapping[str, Mapping[str, Iterable[float] | float]],
        within: Mapping[str, Range] | None = None,
        *,
        kind: Kind = "cell",
        law: str = "",
        at_most: Collection[str] = (),
    ) -> None:
        """Add a claim for each cell of a printed table, and show printed and measured values.

        ``found`` has, by row and column, one value for each run or a computed value; rows that are
        not printed are only shown. ``within`` has the ranges of quantities that are not zero or
        more. ``law``, if several laws are compared with one table, is prepended to the names of the
        claims, and reasons are looked up with it first. The cells of columns in ``at_most`` are
        upper bounds.
        """
        printed = self.text.printed[table]
        shown: list[list[str | float]] = []
        for row, by in found.items():
            cells = dict(zip(printed.columns, printed.rows.get(row, ()), strict=False))
            line: list[str | float] = [row]
            for column in printed.columns:
                values = by.get(column)
                line.append(cells.get(column, ""))
                if values is None:
                    line.append("")
                    continue
                kept = values if isinstance(values, (int, float)) else list(values)
                limits = (within or {}).get(column, POSITIVE)
                line.append(_format_mean(kept, limits))
                if cells.get(column):
                    if column in at_most and not isinstance(kept, (int, float)):
                        grade = no_more(cells[column], kept, limits)
                    else:
                        grade = number(cells[column], kept, limits)
                    before, comma = (f"{law} ", f"{law}, ") if law else ("", "")
                    keys = [f"{before}{column}", f"{before}{row}", law, column, row]
                    words = Wording(f"{comma}{row}: {column}", kind=kind)
                    self._add(f"{before}{row} {column}", words, grade, *keys)
            shown.append(line)
        heads = [part for c in printed.columns for part in (f"{c}: printed", "measured")]
        name, title = (f"{table}-{law}", f"{law}: printed") if law else (table, "Printed")
        self.show(Table(name, f"{title} and measured", ["", *heads], shown))

    def means(self, heads: list[str], runs: Mapping[R, Iterable[Sequence[float]]]) -> None:
        """Show means over the runs; the key of a row has its first cells."""
        rows: list[list[str | float]] = [
            [*row, *np.mean([*found], axis=0).tolist()] for row, found in runs.items()
        ]
        self.show(Table("means", "Means over the runs", heads, rows))

    def show(self, *items: Figure | Table) -> None:
        """Add figures and tables to the findings."""
        for item in items:
            if isinstance(item, Figure):
                self.findings.figures.append(item)
            else:
                self.findings.tables.append(item)

    def _add(self, name: str, words: Wording, grade: Grade, *keys: str) -> None:
        """Add a claim, with the reason found by its name or keys."""
        reasons = self.text.why
        reason = next((reasons[key] for key in (name, *keys) if key in reasons), None)
        if grade.verdict == "differs":
            reason = reason or Reason("unknown", "Not known.")
        elif grade.verdict != "close":
            reason = None
        self.findings.claims.append(Claim(name, words, grade, grade.verdict, reason))


def _format_mean(values: float | list[float], within: Range) -> str | float:
    """Format a mean with its interval."""
    if isinstance(values, (int, float)):
        return values
    e = estimate(values, within)
    return f"{e.mean:.4g} ({e.low:.4g} to {e.high:.4g})" if e.known else e.mean
