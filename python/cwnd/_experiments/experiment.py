"""Experiments of an evaluation: data files with a scenario, axes and tests."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING, Any

from cwnd._base import toml as tomllib
from cwnd._experiments.bound import Bound, read_bounds
from cwnd._experiments.label import ONLY, label
from cwnd._runs.conventions import CONVENTIONS, read_conventions
from cwnd._runs.defaults import STACKS
from cwnd._runs.measures import places_of_scenario, read_metric
from cwnd._runs.scenario import Scenario
from cwnd._sweeps.dataset import METRICS
from cwnd.errors import ArgumentError, PlanError, read_argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd._base.records import JsonObject
    from cwnd._runs.measures import Metric, Places

SUITES = {
    "rfc9743": "RFC 9743 (BCP 133), sections 5 to 7",
    "aqm": "Active queue management: RFC 9743 section 7.1, RFC 7928",
    "bbr": "The known faults of BBR: loss in short buffers, shares beside CUBIC",
    "c4": "Tests of draft-huitema-ccwg-c4-test on changing, long and jittery paths",
    "rmcat": "Interactive media: RFC 8867, for controllers of video calls",
    "starvation": "Starvation: RFC 9743 section 5.2, Arun and others 2022",
    "tcpeval": "The common evaluation suite of ICCRG, draft-irtf-iccrg-tcpeval-01",
}
"""Suites of tests, with their sources."""

BADGES = {
    "rfc9743": "RFC 9743",
    "aqm": "RFC 7928",
    "bbr": "faults of BBR",
    "c4": "tests of C4",
    "rmcat": "RFC 8867",
    "starvation": "starvation",
    "tcpeval": "tcpeval",
    "all": "all suites",
}
"""Names of the suites on a badge."""

BACKENDS = ("sim", "linux")
"""Backends of an evaluation."""

RECEIVE_WINDOW = "2mb"
"""Window of the receivers of QUIC flows. The stacks close a connection with more than 1024 gaps in
a stream: in a larger window the overflow of a slow start may leave as many."""

_KEYS = ("baseline", "only", "quick", "scenario", "axes", "linux", "test")
_TEST_KEYS = (
    *("id", "section", "suites", "title", "metric", "meets", "fails"),
    *("reason", "source", "finding"),
)


@dataclass(frozen=True, slots=True)
class Test:
    """A metric of an experiment with its thresholds."""

    __test__ = False

    id: str
    section: str
    """Section of RFC 9743."""
    suites: tuple[str, ...]
    title: str
    metric: Metric
    meets: tuple[Bound, ...]
    fails: tuple[Bound, ...]
    """One of ``meets`` has to hold, or all of ``fails``; see `cwnd._experiments.bound`."""
    reason: str
    """Why the thresholds are these."""
    source: str
    """Where the test comes from."""
    finding: str
    """Failure as a sentence, with ``{value}``, ``{baseline}``, ``{ratio}`` and ``{cell}``."""

    @property
    def relative(self) -> bool:
        """Whether a threshold is a multiple of the baseline."""
        return any(bound.relative for bound in (*self.meets, *self.fails))


@dataclass(frozen=True, slots=True)
class Experiment:
    """A scenario with the axes that vary, and its tests."""

    name: str
    baseline: str
    """Controller that replaces the tested one in the baseline's runs."""
    only: tuple[str, ...]
    """Controllers that the experiment applies to, without parameters; all if empty."""
    scenario: Scenario
    """Its measured flows are those of the tested controller."""
    axes: Mapping[str, Sequence[object]]
    """Values of the keys that vary; a network for each combination, the last axis fastest."""
    quick: tuple[str, ...]
    """Names of the networks of a quick evaluation; empty for all."""
    linux: Mapping[str, Sequence[object]] | None
    """Values of some axes in real time with the kernel's TCP; None if it does not run there."""
    tests: tuple[Test, ...]
    metrics: tuple[str, ...]
    """Names of the metrics of all tests of the file, so that a data set serves any of them."""
    on: str = "sim"
    """Backend of the runs: ``sim`` or ``linux``."""
    conventions: str = CONVENTIONS
    """Conventions of TCP in the simulator."""
    stack: str | None = None
    """QUIC stack of the measured flows."""

    @property
    def networks(self) -> tuple[str, ...]:
        """Name of each network, by the number of its point in the plan."""
        groups = [flow["name"] for flow in self.scenario.to_dict()["flow"]]
        values = (dict(zip(self.axes, each, strict=True)) for each in product(*self.axes.values()))
        return tuple(label(groups, each) for each in values)

    def points(self, *, quick: bool) -> tuple[int, ...]:
        """Return the numbers of the networks of a full or of a quick evaluation."""
        names = self.networks
        return tuple(
            n for n, name in enumerate(names) if not (quick and self.quick) or name in self.quick
        )

    def point(self, name: str | None) -> int:
        """Find a network by comma-separated parts of its name; None is the only network."""
        wanted = _parts("" if name == ONLY else name or "")
        found = [n for n, each in enumerate(self.networks) if wanted <= _parts(each)]
        if len(found) == 1:
            return found[0]
        names = "; ".join(self.networks[n] for n in found) or "; ".join(self.networks) or ONLY
        if name is None:
            raise ArgumentError("cell", f"name one of the {len(found)} networks: {names}")
        count = f"{len(found)} networks" if found else "no network"
        raise ArgumentError("cell", f"{name!r} names {count}: {names}")

    def plan(self, controllers: Sequence[Any], seeds: int) -> JsonObject:
        """Return the plan of a sweep with the runs of some controllers and of the baseline."""
        baseline = [] if self.baseline in controllers else [self.baseline]
        return {
            "base": self.scenario.to_dict(),
            "axes": self.axes,
            "controllers": [*controllers, *baseline],
            "repeat": seeds,
            "measures": [name for name in self.metrics if name not in METRICS],
            "on": self.on,
        }

    def with_conventions(self, conventions: str) -> Experiment:
        """Return the experiment with these conventions of TCP."""
        scenario = self.scenario.with_values({"tcp.conventions": conventions})
        return replace(self, scenario=scenario, conventions=conventions)

    def in_stack(self, stack: str) -> Experiment | None:
        """Return the experiment with measured flows in a QUIC stack, if it has none of TCP alone.

        The experiments for certain controllers need ECT(1) or the number of marks, which the stacks
        do not have.
        """
        document = self.scenario.to_dict()
        measured = [flow for flow in document["flow"] if flow.get("measured", True)]
        if self.only or any("tcp" in flow for flow in measured):
            return None
        for flow in measured:
            own = {"stack": stack, "controller": f"own:{flow['controller']}"}
            flow.update({"protocol": "quic", **own, "quic": {"receive_window": RECEIVE_WINDOW}})
        scenario = Scenario(document)
        return replace(self, baseline=f"own:{self.baseline}", scenario=scenario, stack=stack)

    def on_linux(self) -> Experiment | None:
        """Return the experiment in real time, with the kernel's controllers, if there is one."""
        if self.linux is None:
            return None
        document = self.scenario.to_dict()
        for flow in document["flow"]:
            flow["controller"] = f"kernel:{flow['controller']}"
        return replace(
            self,
            baseline=f"kernel:{self.baseline}",
            only=tuple(f"kernel:{name}" for name in self.only),
            scenario=Scenario(document),
            axes={**self.axes, **self.linux},
            quick=(),
            on="linux",
        )


def experiments(
    suite: str = "all",
    names: Sequence[str] = (),
    on: str = "sim",
    conventions: str = CONVENTIONS,
    stack: str | None = None,
) -> list[Experiment]:
    """Return the experiments of a suite, or of ``all``, each with the tests of that suite.

    ``names`` are the tests to include, all if empty; ``on`` is ``linux`` for experiments in real
    time; ``stack`` is a QUIC stack for experiments with measured flows in it.

    Examples
    --------
    >>> [e.name for e in experiments(names=["high-loss"])]
    ['shallow']
    """
    check_suite("suite", suite)
    every, option = _restricted(on, stack)
    followed = read_argument("conventions", read_conventions, conventions)
    if on != "sim" and followed != CONVENTIONS:
        raise ArgumentError("conventions", "the kernel's TCP has its own: leave out --conventions")
    found = []
    known = []
    others: dict[str, str] = {}
    for each in every:
        others |= {one.id: one.suites[0] for one in each.tests}
        tests = [one for one in each.tests if suite == "all" or suite in one.suites]
        known += [one.id for one in tests]
        kept = tuple(one for one in tests if not names or one.id in names)
        if kept:
            found.append(replace(each, tests=kept).with_conventions(followed))
    if not known:
        raise ArgumentError("suite", f"{suite} has no tests with {option}")
    for name in names:
        if name not in known:
            raise ArgumentError("test", _unknown(name, suite, option, others))
    return found


def _restricted(on: str, stack: str | None) -> tuple[Iterable[Experiment], str]:
    """Return all experiments on a backend or in a QUIC stack, and the option that selects them."""
    if on not in BACKENDS:
        raise ArgumentError("on", f"{on!r} is not one of {', '.join(BACKENDS)}")
    if stack not in (None, *STACKS):
        raise ArgumentError("stack", f"{stack!r} is not one of {', '.join(STACKS)}")
    if stack is not None and on != "sim":
        raise ArgumentError("stack", f"on {on} the flows are the kernel's: leave out --stack")
    if stack is not None:
        return filter(None, (each.in_stack(stack) for each in _all())), f"--stack {stack}"
    if on != "sim":
        return filter(None, map(Experiment.on_linux, _all())), f"--on {on}"
    return _all(), ""


def _unknown(name: str, suite: str, option: str, others: Mapping[str, str]) -> str:
    """Say that a suite has no test of a name, and where to find it; ``others`` maps all tests."""
    if name in others:
        return f"{name!r} is a test of {others[name]}: add --suite {others[name]}"
    close = difflib.get_close_matches(name, others)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    where = "any suite" if suite == "all" else f"the suite {suite}"
    where += f" with {option}" if option else ""
    command = "cwnd evaluate --list" + ("" if suite == "rfc9743" else f" --suite {suite}")
    command += f" {option}" if option else ""
    return f"{name!r} is not a test of {where}: {hint}`{command}` lists them"


def check_suite(argument: str, suite: str) -> None:
    """Check the name of a suite."""
    if suite not in (*SUITES, "all"):
        raise ArgumentError(argument, f"{suite!r} is not one of {', '.join(SUITES)}, all")


@cache
def _all() -> tuple[Experiment, ...]:
    """Read all experiments of the package, in the order of the sections of their first tests."""
    home = files("cwnd._experiments")
    read = [
        read_experiment(file.name.removesuffix(".toml"), file.read_text(encoding="utf-8"))
        for file in home.iterdir()
        if file.name.endswith(".toml")
    ]
    names = [test.id for each in read for test in each.tests]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"evaluation: two tests are named {name}")
    return tuple(sorted(read, key=lambda each: (order(each.tests[0].section), each.name)))


def order(section: str) -> tuple[int, ...]:
    """Return the numbers of a section, to sort by.

    Examples
    --------
    >>> order("5.1.3") < order("5.2") < order("7.10")
    True
    """
    return tuple(int(part) for part in section.split("."))


def read_experiment(name: str, text: str) -> Experiment:
    """Read an experiment from TOML (docs/evaluate.md); a PlanError names the file and the key."""
    try:
        return _read(name, tomllib.loads(text))
    except (ValueError, KeyError, TypeError) as mistake:
        problem = f"missing key {mistake}" if isinstance(mistake, KeyError) else mistake
        raise PlanError(f"{name}.toml: {problem}") from None


def _read(name: str, document: JsonObject) -> Experiment:
    _check_keys("", document, _KEYS)
    table = document["scenario"]
    tcp = {"conventions": CONVENTIONS, **table.get("tcp", {})}
    scenario = Scenario({"name": name, **table, "tcp": tcp})
    compiled = scenario.validate()
    if compiled["conventions"] not in ([CONVENTIONS], []):
        raise ValueError("scenario: the conventions of TCP are those of --conventions")
    places = places_of_scenario(scenario, compiled["links"])
    tests = tuple(_read_test(table, places) for table in document["test"])
    experiment = Experiment(
        name,
        document.get("baseline", "cubic"),
        tuple(document.get("only", [])),
        scenario,
        document.get("axes", {}),
        tuple(document.get("quick", [])),
        document.get("linux"),
        tests,
        tuple(dict.fromkeys(test.metric.name for test in tests)),
    )
    networks = experiment.networks
    for one in experiment.quick:
        if one not in networks:
            raise ValueError(f"quick: {one!r} is not one of the networks: {'; '.join(networks)}")
    return experiment


def _read_test(table: JsonObject, places: Places) -> Test:
    _check_keys(f"test {table.get('id', '')}: ", table, _TEST_KEYS)
    metric = read_metric(table["metric"], places)
    for suite in table["suites"]:
        if suite not in SUITES:
            raise ValueError(f"test {table['id']}: unknown suite {suite!r}")
    dimension = metric.measure.dimension
    return Test(
        table["id"],
        table["section"],
        tuple(table["suites"]),
        table["title"],
        metric,
        read_bounds(dimension, table["meets"]),
        read_bounds(dimension, table["fails"]),
        table["reason"],
        table["source"],
        table["finding"],
    )


def _parts(name: str) -> set[str]:
    """Return the parts of the name of a network, in lower case."""
    return {part.strip().lower() for part in name.split(",") if part.strip()}


def _check_keys(where: str, table: JsonObject, known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"{where}{key}: unknown key; the keys are {', '.join(known)}")
