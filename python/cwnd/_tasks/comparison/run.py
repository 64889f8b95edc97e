"""Compare controllers on one network: each alone, and in competition with a reference."""

from __future__ import annotations

import math
import shlex
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cwnd import _native, metrics
from cwnd._base.law_files import listed_twice
from cwnd._base.progress import with_notebook_bar
from cwnd._runs.conventions import CONVENTIONS
from cwnd._runs.defaults import BACKEND, COMPARE_REPEATS, REFERENCE
from cwnd._runs.flow_groups import first_kind, name_of_group
from cwnd._runs.goodput_limit import goodput_limit
from cwnd._runs.measures import places_of_scenario, read_metric, values
from cwnd._runs.networks import Network, any_network, dumbbell, measured_controllers
from cwnd._runs.real_time import check_backend
from cwnd._runs.repetition import Repeat, read_repeat, targets
from cwnd._runs.result import (
    Result,
    link_loss_rate,
    link_mark_rate,
    mean_of_known,
    retransmission_rate_of,
)
from cwnd._runs.run import check_seed, measure, part_of
from cwnd._runs.scenario import check_units
from cwnd._runs.scenario_keys import write_values
from cwnd._tasks.comparison.outcome import Comparison, Row
from cwnd.controller import command_specification, read_controller
from cwnd.errors import ArgumentError, read_list

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from pathlib import Path

    from cwnd._base.records import FlowRecord, LinkRecord
    from cwnd._runs.scenario import Scenario
    from cwnd.controller import Spec
    from cwnd.units import Quantity

_ASSIGNMENTS = {
    "rate": "dumbbell.rate=15mbit",
    "rtt": "flow[0].rtt=100ms",
    "queue": "dumbbell.queue=red",
    "flows": "flow[0].count=8",
    "time": "duration=120s",
    "warmup": "warmup=30s",
    "loss": "dumbbell.loss=0.1%",
    "conventions": f"tcp.conventions={CONVENTIONS}",
}
"""Assignments that replace the arguments of the dumbbell if the network is a scenario."""

_Measured: TypeAlias = tuple[dict[str, float], Result]
"""Figures of a run, and the run."""


@with_notebook_bar
def compare(  # noqa: PLR0913
    controllers: Sequence[Spec] = (),
    *,
    reference: Spec = REFERENCE,
    network: Scenario | str | Path | None = None,
    values: Mapping[str, object] | None = None,
    rate: str | None = None,
    rtt: str | None = None,
    queue: str | None = None,
    flows: int | None = None,
    time: str | None = None,
    warmup: str | None = None,
    loss: Quantity | None = None,
    conventions: str | None = None,
    pairs: bool = False,
    measures: Sequence[str] = (),
    repeat: Repeat = COMPARE_REPEATS,
    seed: int | None = None,
    on: str = BACKEND,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Compare controllers with a reference, on a dumbbell or on any network.

    Every controller runs alone (all flows are its own) and against the reference (half of the
    flows are the reference's). On the dumbbell access delays and start times are random, drawn from
    the seed.

    Parameters
    ----------
    controllers
        Specifications such as ``simd(beta=1/16)``, and Python classes with ``grow`` and ``cut``.
        May be empty with a ``network``: the controllers of its measured flows are then compared.
    reference
        The controller that the others are compared with.
    network
        A scenario, the path of its file or the name of a packaged one (`cwnd scenarios`), instead
        of the dumbbell. The controllers replace those of its measured flows: all of them in runs
        alone, every second one against the reference.
        If the two halves have different paths, the controllers alternate between them from repeat
        to repeat.
    values
        Values of the network to replace, by path; see `Scenario.with_values`.
    rate
        Rate of the bottleneck; ``15mbit`` by default. This argument and those up to
        ``conventions`` describe the dumbbell.
    rtt
        Round-trip time without queueing; ``100ms`` by default. With a list
        (``20ms,100ms``) each controller has equally many flows of each value; with a range
        (``20ms..200ms``) each flow draws its own value.
    queue
        ``red`` (the parameters of SIMD's Table 2), ``red-ecn`` (the same, marking), ``droptail``
        (one bandwidth-delay product), or the size of a DropTail queue: ``20p``, ``64kb``,
        ``1.5bdp``. ``red`` by default.
    flows
        Flows in each run, an even number; 8 by default.
    time
        Length of each run; ``120s`` by default.
    warmup
        Length of the warm-up, which all figures exclude; a quarter of the run by default.
    loss
        Probability of random loss at the bottleneck, such as ``0.1%``; 0 by default.
    conventions
        Conventions of TCP: ``linux`` by default, ``rfc``, ``rfc5681``, ``ns2`` or ``ns2-2001``. A
        ``network`` has its own.
    pairs
        Whether every other pair of controllers competes too, half and half, as each controller and
        the reference do: `Comparison.shares` is then a full matrix.
    measures
        Further metrics by their names in ``[expect]``, such as ``fct.p95``: of the controller's
        flows, or of the bottleneck.
    repeat
        Runs of each case, with the seeds ``seed``, ``seed + 1`` and so on. Fewer than five leave
        most verdicts undecided. ``auto`` starts with 10 and doubles the number until every verdict
        is decided, up to 80 (20 in real time).
    seed
        The seed of the first run; the seed of the ``network`` by default, or 1. Simulations with
        the same arguments and seed always have the same result.
    on
        Backend: ``sim``, or ``udt`` or ``linux`` in real time, one run at a time; see `cwnd.run`.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    Comparison
        Tables, verdicts, plots.

    Raises
    ------
    ValueError
        An argument is invalid; the message names it. ``SpecError`` and ``ScenarioError`` are
        subclasses.

    Examples
    --------
    >>> import cwnd
    >>> comparison = cwnd.compare(["aimd(0.31, 1/8)"], time="8s", repeat=2, flows=2)
    >>> comparison.against.loc[:, "share"].columns.tolist()
    ['mean', 'low', 'high']
    """
    options = {
        "rate": rate,
        "rtt": rtt,
        "queue": queue,
        "flows": flows,
        "time": time,
        "warmup": warmup,
        "loss": loss,
        "conventions": conventions,
    }
    plan = Plan(
        controllers,
        reference,
        network,
        values or {},
        options,
        repeat,
        seed,
        on,
        pairs=pairs,
        measures=measures,
    )
    return plan.run(progress)


def cases(controllers: Sequence[Spec], reference: Spec) -> tuple[list[str], list[str]]:
    """List the controllers that run alone, and those that run against the reference.

    Examples
    --------
    >>> cases(["vegas"], "reno")
    (['reno', 'vegas'], ['vegas'])
    """
    names = [read_controller(spec)[0] for spec in controllers]
    if not names:
        raise ArgumentError("controllers", "name at least one controller")
    home = read_controller(reference)[0]
    alone = names if home in names else [home, *names]
    if (twice := listed_twice(alone)) is not None:
        raise ArgumentError("controllers", f"{twice} is listed twice")
    return alone, names


class Plan:
    """The arguments of `compare`, checked; a None among ``options`` is the dumbbell's default.

    ``most`` is the largest number of repeats, ``most_runs`` that of runs.
    """

    def __init__(  # noqa: PLR0913
        self,
        controllers: Sequence[Spec],
        reference: Spec,
        network: Scenario | str | Path | None,
        values: Mapping[str, object],
        options: Mapping[str, Any],
        repeat: Repeat,
        seed: int | None,
        on: str,
        *,
        pairs: bool = False,
        measures: Sequence[str] = (),
    ) -> None:
        self.first, self.most = read_repeat(repeat, COMPARE_REPEATS, real=on != "sim")
        self.on = on
        controllers = read_list("controllers", controllers)
        given = {name: value for name, value in options.items() if value is not None}
        check_units(given)
        if network is None:
            if "conventions" in given and "tcp.conventions" in values:
                raise ArgumentError("conventions", "tcp.conventions is among the values too")
            net = dumbbell(given, values, controllers=2)
        else:
            for name in given:
                raise ArgumentError(
                    name,
                    "the network is a scenario: use --set PATH=VALUE, such as "
                    f"--set {_ASSIGNMENTS[name]}",
                )
            net = any_network(network, values)
        self._flows, self.duration_s = net.check(net.scenario)
        if network is None:
            _check_halves(net.scenario)
        elif not controllers:
            controllers = _without_reference(measured_controllers(net.scenario), reference)
        self.seed = net.scenario.seed if seed is None else seed
        check_seed(self.seed, self.most)
        read = [(spec, *read_controller(spec)) for spec in [reference, *controllers]]
        self.specs = {name: spec for spec, name, _ in read}
        self._commands = {name: command_specification(name, made) for _, name, made in read}
        self.alone, self.names = cases(controllers, reference)
        self.reference = read_controller(reference)[0]
        self.pairs = pairs
        duels = [(name, self.reference) for name in self.names]
        if pairs:
            others = [name for name in self.alone if name != self.reference]
            if len(others) < 2:
                problem = (
                    "three controllers, the reference included, are the fewest with more pairs"
                )
                raise ArgumentError("pairs", problem)
            duels += combinations(others, 2)
        self.most_runs = self.most * (len(self.alone) + len(duels))
        self._asked = net
        self.network = net.sampled(self.most_runs, self._flows, self.duration_s)
        self.cases = [*((name, "") for name in self.alone), *duels]
        self.scenarios = [
            [self._scenario(one, other, turn) for turn in (0, 1)] for one, other in self.cases
        ]
        self.turns = 2 if any(a.to_json() != b.to_json() for a, b in self.scenarios) else 1
        if self.most % self.turns:
            raise ArgumentError(
                "repeat",
                f"{repeat} is odd: the paths of {net.scenario.title} differ, so that the "
                "controllers change places from repeat to repeat",
            )
        check_backend(on, [turns[0] for turns in self.scenarios])
        self._groups: set[str] = set()
        self.measures = self._read_measures(measures)

    def _read_measures(self, names: Sequence[str]) -> list[str]:
        """Check the names of metrics, of which each run of a controller has to have the places."""
        names = read_list("measures", names)
        for name in names:
            if names.count(name) > 1:
                raise ArgumentError("measure", f"{name} is listed twice")
        if names:
            for one, (scenario, _) in zip(self.alone, self.scenarios, strict=False):
                places = places_of_scenario(scenario, scenario.validate()["links"])
                self._groups |= places.groups
                for name in names:
                    try:
                        read_metric(name, places)
                    except ValueError as mistake:
                        raise ArgumentError("measure", f"{mistake} ({one} alone)") from None
        return list(names)

    def _scenario(self, one: str, other: str, turn: int) -> Scenario:
        against = self.specs[other] if other else None
        return self.network.with_controllers(self.specs[one], against, turn)

    def run(self, progress: Callable[[float], None] | None = None) -> Comparison:
        """Run all cases; ``progress`` receives the completed fraction."""
        runs: list[list[_Measured]] = [[] for _ in self.scenarios]
        network = self.network
        if network.rtt_s is None:
            # The time scales and the bottleneck of the first run apply to all runs.
            (run,) = measure([(self.scenarios[0][0], self.seed)], lambda _, run: run, on=self.on)
            network = network.seen(run)
            run.scales = network.scales_s or run.scales
            runs[0].append((self._figures(0, run, network), run))
        for target in targets(self.first, self.most):
            self._extend(runs, target, network, progress)
            comparison = self._outcome(runs, network)
            if target == self.most or not comparison.undecided:
                break
        if progress is not None:
            progress(1.0)
        return comparison

    def _extend(
        self,
        runs: list[list[_Measured]],
        target: int,
        network: Network,
        progress: Callable[[float], None] | None,
    ) -> None:
        """Add runs to each case up to a number of repeats."""
        jobs = [(case, i) for case, made in enumerate(runs) for i in range(len(made), target)]
        done = sum(map(len, runs))
        part = None
        if progress is not None:
            part = part_of(progress, done, len(jobs), self.most_runs)

        def keep(job: int, run: Result) -> _Measured:
            return self._figures(jobs[job][0], run, network), run

        kept = measure(
            [(self.scenarios[case][i % 2], self.seed + i) for case, i in jobs],
            keep,
            progress=part,
            scales=network.scales_s,
            on=self.on,
        )
        for (case, _), each in zip(jobs, kept, strict=True):
            runs[case].append(each)

    def _figures(self, case: int, run: Result, network: Network) -> dict[str, float]:
        """Return the figures of a run of a case."""
        link = network.bottleneck(run)
        own = self._own_flows(case, run)
        if case < len(self.alone):
            figures = _alone_figures(run, link)
        else:
            figures = _against_figures(run, link, own)
        if not self.measures:
            return figures
        # A figure that every comparison has keeps its meaning.
        own = [_with_own_name(flow, self._groups) for flow in own]
        return dict(zip(self.measures, values(run, self.measures, own), strict=True)) | figures

    def _own_flows(self, case: int, run: Result) -> list[FlowRecord]:
        """Return the flows of the first controller in a run, alone or beside another one."""
        (name, other), flows = self.cases[case], run.measured_flows
        if not other:
            return flows
        if name == other:
            return flows[: len(flows) // 2]
        return [flow for flow in flows if flow["controller"] == name]

    def _outcome(self, runs: list[list[_Measured]], network: Network) -> Comparison:
        """Build the comparison from the runs."""
        alone, repeat = len(self.alone), len(runs[0])
        for case, made in enumerate(runs[alone:], alone):
            solo = runs[self.alone.index(self.cases[case][1])]
            for (figures, run), (own, single) in zip(made, solo, strict=True):
                others = len(run.measured_flows) - len(self._own_flows(case, run))
                figures.update(_harm(own, figures, len(single.measured_flows), others))
        rows = [
            Row(
                name,
                [figures for figures, _ in made],
                [run for _, run in made],
                self.turns if other else 1,
                goodput_limit(made[0][1], made[0][1].measured_flows),
                other,
            )
            for (name, other), made in zip(self.cases, runs, strict=True)
        ]
        end = alone + len(self.names)
        described = network.describe(
            [run for row in rows for run in row.results],
            turns=self.turns,
            repeat=repeat,
            seed=self.seed,
            on=self.on,
        )
        rerun, problem = self._command(repeat)
        return Comparison(
            described,
            self.reference,
            rows[:alone],
            rows[alone:end],
            rows[end:],
            measures=self.measures,
            rerun=rerun,
            no_rerun=problem,
        )

    def _command(self, repeat: int) -> tuple[str, str]:
        """Return the command that repeats the comparison, or the reason why there is none."""
        words = self.network.words
        if words is None:
            return "", "the network was built in Python and has no file"
        specs = self._commands
        for name, spec in specs.items():
            if spec is None:
                return "", f"{name} is not a class at the top of a Python file"
        names = [str(specs[name]) for name in self.names]
        command = ["cwnd", "compare"]
        file = self.network.asked["file"]
        command += names if file is None else [words[0], *names]
        command += ["--reference", str(specs[self.reference])]
        command += words if file is None else words[1:]
        command += ["--pairs"] if self.pairs else []
        command += [word for name in self.measures for word in ("--measure", name)]
        # `auto` chose the sampling period for the largest number of runs.
        again = self._asked.sampled(repeat * len(self.scenarios), self._flows, self.duration_s)
        if again.sample_s != self.network.sample_s:
            command += write_values({"sample": self.network.sample_s})
        command += ["--repeat", str(repeat), "--seed", str(self.seed)]
        command += [] if self.on == "sim" else ["--on", self.on]
        return shlex.join(command), ""


def _without_reference(known: Mapping[str, Spec], reference: Spec) -> list[Spec]:
    """Return the controllers without the reference, unless it is the only one."""
    home = read_controller(reference)[0]
    return [spec for name, spec in known.items() if name != home] or list(known.values())


def _alone_figures(run: Result, link: LinkRecord) -> dict[str, float]:
    """Return the figures of a run whose flows are all of one controller."""
    flows = run.measured_flows
    return {
        "goodput_bps": run.total_goodput_bps(flows),
        **_network_figures(link),
        "jain": _jain(run),
        **_group_figures(run, flows),
        **_completion("fct", run, flows),
    }


def _against_figures(run: Result, link: LinkRecord, own: list[FlowRecord]) -> dict[str, float]:
    """Return the figures of a run shared by the flows ``own`` and the reference's flows."""
    names = {flow["name"] for flow in own}
    others = [flow for flow in run.measured_flows if flow["name"] not in names]
    return {
        "share": metrics.friendliness(run.goodputs_bps(own), run.goodputs_bps(others)),
        "jain": _jain(run),
        "goodput_bps": run.total_goodput_bps(own),
        "reference_goodput_bps": run.total_goodput_bps(others),
        **_network_figures(link),
        **_group_figures(run, own),
        **_completion("fct", run, own),
        **_completion("reference_fct", run, others),
    }


def _jain(run: Result) -> float:
    """Return Jain's index of the first kind of flows; NaN without two flows of one kind."""
    return metrics.jain(run.goodputs_bps(first_kind(run.measured_flows)))


def _with_own_name(flow: FlowRecord, groups: Container[str]) -> FlowRecord:
    """Return a flow of a group that was shared, ``web-a-3``, as one of the group itself."""
    name, group = flow["name"], name_of_group(flow["name"])
    own = group.removesuffix("-a")
    if group in groups or own not in groups:
        return flow
    return {**flow, "name": own + name.removeprefix(group)}


def _completion(name: str, run: Result, flows: list[FlowRecord]) -> dict[str, float]:
    """Return mean and percentiles of the completion times of transfers, if there are any."""
    times = run.transfers(flows).fct
    if not times.size:
        return {}
    found = metrics.spread(times)
    parts = {"p50": found.p50, "p95": found.p95, "p99": found.p99}
    return {f"{name}_s": found.mean} | {f"{name}_{part}_s": t for part, t in parts.items()}


def _harm(
    alone: Mapping[str, float], beside: Mapping[str, float], flows: int, others: int
) -> dict[str, float]:
    """Return the harm to the reference's flows, compared with a run among themselves.

    There are ``flows`` of them alone, and ``others`` beside the controller's.
    """
    mine, other = alone["goodput_bps"] / flows, beside["reference_goodput_bps"] / max(others, 1)
    pairs = [("delay", "queue_delay_p95_s", "queue_delay_p95_s")]
    pairs += [("loss", "loss_rate", "loss_rate")]
    if "fct_s" in alone and "reference_fct_s" in beside:
        pairs.append(("fct", "fct_s", "reference_fct_s"))
    return {
        "harm_goodput": metrics.harm(mine, other, more_is_better=True),
        **{
            f"harm_{name}": metrics.harm(alone[solo], beside[shared], more_is_better=False)
            for name, solo, shared in pairs
        },
    }


def _network_figures(link: LinkRecord) -> dict[str, float]:
    """Return the figures of the bottleneck."""
    return {
        "utilization": link["utilization"],
        "loss_rate": link_loss_rate(link),
        "mark_rate": link_mark_rate(link),
        "queue_delay_s": link["delay"]["mean"],
        "queue_delay_p95_s": link["delay"]["p95"],
        "queue_delay_p99_s": link["delay"]["p99"],
        "mean_queue": link["mean_queue"],
    }


def _group_figures(run: Result, flows: list[FlowRecord]) -> dict[str, float]:
    """Return the figures of the flows of one controller."""
    seconds = sum(run.seconds(flow) for flow in flows) or math.nan
    smooth = [run.smoothness(flow) for flow in flows]
    # Flows that start after the end have no time.
    limits = [flow["limited"] for flow in flows if run.seconds(flow) > 0]
    cuts = sum(int(np.count_nonzero(f["cuts"]["time"] >= run.warmup_s)) for f in flows)
    return {
        **{
            f"cov_{unit}rtt": mean_of_known([s[scale] for s in smooth])
            for unit, scale in zip(_native.SCALES, run.scales, strict=True)
        },
        "retransmission_rate": retransmission_rate_of(flows),
        "timeouts": float(sum(flow["timeouts"] for flow in flows)),
        "cuts": float(cuts),
        "mean_window": mean_of_known([flow["mean_window"] for flow in flows]),
        "mean_rtt_s": mean_of_known([flow["mean_rtt_s"] for flow in flows]),
        "limited_window": sum(limit["window"] for limit in limits) / seconds,
        "limited_pacing": sum(limit["pacing"] for limit in limits) / seconds,
        "limited_receiver": sum(limit["receiver"] for limit in limits) / seconds,
        "limited_application": sum(limit["application"] for limit in limits) / seconds,
    }


def _check_halves(scenario: Scenario) -> None:
    """Check that two controllers can share the flows of a dumbbell evenly."""
    for group, flow in enumerate(scenario.to_dict()["flow"]):
        count = flow.get("count", 1)
        if count % 2:
            problem = f"flow[{group}].count: {count} is odd, and two controllers share these flows"
            raise ArgumentError("set", problem)
