"""Score a candidate: stages, from the reading of its text to runs in the kernel."""

from __future__ import annotations

import json
import math
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd._base.law_files import held_laws, path_of_law, read_law_text
from cwnd._runs.defaults import SCORE_STAGE, SCORE_STAGES, SCORE_SUITE, SEED
from cwnd._runs.real_time import check_backend
from cwnd._runs.run import check_seed, run
from cwnd._runs.scenario import Scenario
from cwnd._tasks.score.explain import explain
from cwnd._tasks.score.here import Here
from cwnd._tasks.score.measure import Facts, facts, run_networks
from cwnd._tasks.score.objectives import combined, objectives, score_network
from cwnd._tasks.score.suite import Network, Search, Suite, read_suite
from cwnd.controller import names_python, read_controller
from cwnd.errors import ArgumentError, ControllerWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cwnd._base.records import JsonObject
    from cwnd._runs.defaults import Stage
    from cwnd._tasks.score.here import Runner

_known: dict[tuple[str, int, str], Facts] = {}
"""Facts of the references, by name, seed and scenario."""

MOST_KNOWN = 10_000
"""Number of facts above which those of earlier suites and seeds are forgotten."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a candidate.

    ``metrics`` and ``artifacts`` are those of OpenEvolve's ``EvaluationResult``.

    Attributes
    ----------
    candidate, suite, seed
        What was scored.
    stage
        The last stage that was completed.
    metrics
        Numbers by name: ``combined_score``, and those of the stages and objectives.
    artifacts
        Texts by name: ``explanation``, and ``error``, ``warnings`` and ``printed`` if there are
        any.
    networks
        A row for each network: ``part``, ``label``, ``score``, the objectives or ``error``, and
        the reference with the highest score, ``best``, with its ``best_score``.
    """

    candidate: str
    suite: str
    seed: int
    stage: Stage
    metrics: dict[str, float]
    artifacts: dict[str, str]
    networks: list[JsonObject]

    @property
    def combined_score(self) -> float:
        """The score, from 0 to 1; docs/score.md says what it is made of."""
        return self.metrics["combined_score"]

    def to_json(self) -> JsonObject:
        """Return the score as plain data."""
        return asdict(self)


def score(
    candidate: str | Path,
    suite: str = SCORE_SUITE,
    *,
    seed: int = SEED,
    stage: str = SCORE_STAGE,
    progress: Callable[[float], None] | None = None,
) -> Score:
    """Score a candidate for a controller, whatever it does.

    Parameters
    ----------
    candidate
        The file of a law, ``mine.law``, a class in a Python file, ``mine.py:Law``, or a controller
        of the registry, with parameters in brackets. A class runs in a process of its own, with
        limits of time and memory.
    suite
        Name of a packaged suite, or the path of a file ``NAME.toml``.
    seed
        Seed of the networks and of the runs.
    stage
        The last stage: ``parse``, ``quick``, ``full``, ``search``, ``held-out`` or ``kernel``. A
        stage that fails is the last one, and a suite without a search has no stage ``search``.
    progress
        Called with the completed fraction.

    Returns
    -------
    Score
        Also of a faulty candidate, whose ``combined_score`` is 0.

    Raises
    ------
    ArgumentError
        ``suite``, ``seed`` or ``stage`` is invalid, or there is no such candidate.
    KernelError
        The stage ``kernel`` is not possible on this machine or for this user.

    Examples
    --------
    >>> import cwnd
    >>> cwnd.score("reno", stage="parse").metrics
    {'combined_score': 0.0}
    """
    if stage not in SCORE_STAGES:
        raise ArgumentError("stage", f"{stage!r} is not one of {', '.join(SCORE_STAGES)}")
    check_seed(seed)
    if stage == "kernel":
        if names_python(str(candidate)):
            raise ArgumentError("stage", "a class in Python has no kernel implementation")
        check_backend("linux")
    read = read_suite(suite)
    if read.search is not None:
        from cwnd._search.search import check_search_seed

        check_search_seed(seed)
    elif stage == "search":
        raise ArgumentError("stage", f"the suite {read.name} has no table [search]")
    return _Scoring(str(candidate), read, seed).score(SCORE_STAGES.index(stage), progress)


class _Scoring:
    """The stages of one candidate."""

    def __init__(self, candidate: str, suite: Suite, seed: int) -> None:
        self.candidate = candidate
        self.suite = suite
        self.seed = seed
        self.metrics: dict[str, float] = {"combined_score": 0.0}
        self.artifacts: dict[str, str] = {}
        self.rows: list[JsonObject] = []
        self.found: list[str] = []
        self.sentences: list[str] = []
        self.notes: list[str] = []

    def score(self, last: int, progress: Callable[[float], None] | None) -> Score:
        """Execute the stages up to the last one."""
        if names_python(self.candidate):
            if sys.platform == "win32":
                raise ArgumentError("candidate", "Windows has no limits for a class in Python")
            from cwnd._tasks.score.apart import Apart

            file = Path(self.candidate.partition(".py:")[0] + ".py")
            if ".py:" in self.candidate and not file.is_file():
                raise ArgumentError("candidate", f"{file}: no such file")
            with Apart(self.candidate, self.seed) as process:
                found = self._stages(process, process.error, last, progress)
                if process.printed:
                    self.artifacts["printed"] = process.printed
                self.notes += process.warnings
        else:
            held, error = self._read()
            with warnings.catch_warnings(record=True) as caught, held_laws(held):
                warnings.simplefilter("always", ControllerWarning)
                found = self._stages(Here(self.candidate, self.seed), error, last, progress)
            self.notes += [str(each.message) for each in caught]
        if self.notes:
            self.artifacts["warnings"] = "\n".join(dict.fromkeys(self.notes))
        if found == "parse":
            explanation = self.artifacts.get("error", "The candidate can be read.")
        else:
            none = ["No reference was better on the networks that were run."]
            explanation = "\n".join([*self.found, *self.sentences] or none)
        self.artifacts["explanation"] = explanation
        if progress is not None:
            progress(1.0)
        return Score(
            self.candidate,
            self.suite.name,
            self.seed,
            found,
            self.metrics,
            self.artifacts,
            self.rows,
        )

    def _read(self) -> tuple[dict[str, str], str | None]:
        """Return the text of the candidate by its name, if it is a law, and what is wrong."""
        path = path_of_law(self.candidate)
        if path is None:
            try:
                read_controller(self.candidate)
            except _native.SpecError as problem:
                raise ArgumentError("candidate", str(problem)) from None
            if self.candidate.startswith("own:"):
                raise ArgumentError("candidate", f"{self.candidate} is of a QUIC stack: no score")
            return {}, None
        if not Path(path).is_file():
            raise ArgumentError("candidate", f"{path}: no such file")
        try:
            text = read_law_text(path)
            found, shown = _native.check_law(path, text)
            if found["law"] is None:
                return {}, "\n".join(shown)
            self.notes += shown
            with held_laws({path: text}), warnings.catch_warnings():
                warnings.simplefilter("ignore", ControllerWarning)
                read_controller(self.candidate)
        except _native.SpecError as problem:
            return {}, str(problem)
        return {path: text}, None

    def _stages(
        self,
        runner: Runner,
        error: str | None,
        last: int,
        progress: Callable[[float], None] | None,
    ) -> Stage:
        """Execute the stages of a candidate that was read; return the last completed one."""
        if error is not None:
            self.artifacts["error"] = error
            return "parse"
        training = self.suite.networks("training", self.seed)
        quick = self.suite.quick
        parts = {
            "quick": training[:quick],
            "full": training[quick:],
            "held-out": self.suite.networks("held-out", self.seed),
        }
        done: Stage = "parse"
        found: list[Facts | str] = []
        for number, stage in enumerate(SCORE_STAGES[1 : last + 1], start=1):
            if stage == "search":
                if self.suite.search is None:
                    continue
                self._search(self.suite.search, runner)
            elif stage == "kernel":
                self._run_in_kernel(training)
            else:
                result = list(runner.run(parts[stage]))
                if stage == "held-out":
                    value = self._add("held-out", parts[stage], result)
                else:
                    found += result
                    value = self._add("training", training[: len(found)], found)
                    self.metrics["combined_score"] = value
                self.metrics[f"{stage.replace('-', '_')}_score"] = value
            done = stage
            if progress is not None:
                progress(number / (last + 1))
            if stage == "quick" and value < self.suite.enough and last > number:
                self.notes.append(
                    f"the quick score is below {self.suite.enough:g}: no further stage was run"
                )
                break
        return done

    def _search(self, search: Search, runner: Runner) -> None:
        """Search for weaknesses, which reduce the score."""
        from cwnd._tasks.score.weakness import explain_finding, find_weaknesses, score_finding

        findings = find_weaknesses(search, self.candidate, self.seed, runner)
        value = combined(list(map(score_finding, findings)))
        self.metrics["search_score"] = value
        self.metrics["combined_score"] *= value**search.weight
        for one in findings:
            if one is not None:
                row: JsonObject = {"part": "search", "label": one.sentence}
                self.rows.append(row | {"score": score_finding(one)})
                self.found.append(explain_finding(one))

    def _add(self, part: str, networks: Sequence[Network], found: Sequence[Facts | str]) -> float:
        """Add the rows of some networks, and the metrics and sentences of training networks.

        Returns their score.
        """
        weights = self.suite.weights
        known = {name: _reference(name, networks, self.seed) for name in self.suite.references}
        self.rows = [row for row in self.rows if row["part"] != part]
        values = []
        for place, (network, own) in enumerate(zip(networks, found, strict=True)):
            bests = {
                name: score_network(objectives(each[place]), weights)
                for name, each in known.items()
            }
            best = max(bests, key=lambda name: bests[name])
            row: JsonObject = {"part": part, "label": network.label, "score": 0.0}
            if isinstance(own, str):
                row["error"] = own
            else:
                each = objectives(own)
                row |= {"score": score_network(each, weights), **each}
            values.append(row["score"])
            self.rows.append(row | {"best": best, "best_score": bests[best]})
        if part == "training":
            self.sentences = explain(networks, found, known, weights)
            for name in weights:
                numbers = [row[name] for row in self.rows if name in row]
                if numbers:
                    self.metrics[name] = combined(numbers)
                elif any(name in objectives(one) for each in known.values() for one in each):
                    self.metrics[name] = 0.0
        return combined(values)

    def _run_in_kernel(self, networks: Sequence[Network]) -> None:
        """Run the first network with one flow in real time, in the kernel's TCP."""
        network = networks[0]
        scenario = Scenario(network.scenario(self.candidate))
        try:
            result = run(scenario, self.seed, on="linux")
        except (ArgumentError, _native.SpecError) as problem:
            self.metrics["kernel_score"] = 0.0
            self.notes.append(f"in the kernel: {problem}")
            return
        each = objectives(facts(result, network))
        value = score_network(each, self.suite.weights)
        self.metrics["kernel_score"] = value
        self.rows.append({"part": "kernel", "label": network.label, "score": value, **each})


def _reference(name: str, networks: Sequence[Network], seed: int) -> list[Facts]:
    """Return the facts of a reference, which are computed once."""
    keys = [(name, seed, json.dumps(network.scenario(name))) for network in networks]
    missing = [place for place, key in enumerate(keys) if key not in _known]
    if len(_known) > MOST_KNOWN:
        _known.clear()
        missing = list(range(len(keys)))
    run_networks(
        name,
        [networks[place] for place in missing],
        seed,
        seconds=math.inf,
        made=lambda number, found: _known.__setitem__(keys[missing[number]], found),
    )
    return [_known[key] for key in keys]
