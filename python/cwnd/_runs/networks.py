"""Networks for comparisons: a dumbbell, or any scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from cwnd import _native
from cwnd._runs.conventions import all_conventions, read_conventions
from cwnd._runs.defaults import DUMBBELL
from cwnd._runs.scenario import Scenario, dumbbell_document
from cwnd._runs.scenario_keys import check_values, write_values
from cwnd.errors import ArgumentError, read_argument
from cwnd.units import Quantity, parse_rate, parse_time, scenario_time, tc_rate, tc_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import JsonObject, LinkRecord
    from cwnd._runs.defaults import DumbbellArguments
    from cwnd._runs.result import Result
    from cwnd.controller import Spec

WARMUP = 0.25
"""Warm-up of a run on a dumbbell, as a fraction of the run."""

STARTS = 0.05
"""Fraction of a run within which the flows start at random."""

ACCESS = 1 / 80
"""Longest access-link delay in round-trip times; a round trip crosses four, up to 5 % in total."""

SPREAD = 1 + 4 * ACCESS
"""Ratio of the longest to the shortest round-trip time among flows of one configured value."""

MAX_RATE_BPS = 1e13
"""Largest rate of a dumbbell, as that of any link."""

MAX_FLOWS = 10_000
"""Largest number of flows in one run on a dumbbell."""

MAX_FLOWS_TOTAL = 100_000
"""Largest number of flows in all runs together."""

MAX_SAMPLES = 5_000_000
"""Largest number of samples of all flows and runs together: about 600 MB of series."""

MAX_SAMPLES_EACH = 2400
"""Largest number of samples of one series on a dumbbell."""

MIN_SAMPLES = 100
"""Smallest number of samples of each series."""

ENDLESS = 2**32 - 1
"""Limit of an unlimited queue, in packets."""

_ARGUMENTS = {
    "duration": "time",
    "warmup": "warmup",
    "sample": "time",
    "dumbbell.rate": "rate",
    "dumbbell.delay": "rtt",
    "dumbbell.bdp_rtt": "rtt",
    "dumbbell.queue": "queue",
    "dumbbell.loss": "loss",
    "tcp.conventions": "conventions",
}
"""Scenario keys of a dumbbell, by argument."""


class RequestedNetwork(TypedDict):
    """Arguments that describe a network; None for those that it was not built from."""

    file: str | None
    rtt: str | None
    """As in the argument, in the units of ``tc``."""
    queue: str | JsonObject | None
    loss: float | None


class NetworkSummary(RequestedNetwork):
    """Network of a comparison, with estimates from its first run, and how it was run."""

    scenario: str
    values: dict[str, object]
    """Set on the scenario, by path."""
    bottleneck: str
    rate_bps: float
    rtt_s: float
    """Without queueing; NaN if unknown."""
    queue_limit: float
    queue_limit_unit: str
    """``packets`` or ``bytes``."""
    bdp_packets: float
    packet_bytes: int
    flows: int
    duration_s: float
    warmup_s: float
    scales_s: list[float]
    """Time scales of smoothness."""
    turns: int
    """Number of repeats that balance the paths."""
    repeat: int
    seed: int
    """Seed of the first repeat."""
    on: str
    """One of `cwnd._runs.real_time.BACKENDS`."""
    conventions: list[str]
    """Conventions of TCP in all runs."""


@dataclass(frozen=True)
class Network:
    """A network on which controllers are compared."""

    scenario: Scenario
    values: Mapping[str, object]
    """Set on the scenario, by path; ``scenario`` already contains them."""
    words: Sequence[str] | None
    """Arguments that select the network on a command line; None if it was built in Python."""
    asked: RequestedNetwork
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Scenario keys by the argument that sets them."""
    rtt_s: float | None = None
    """Without queueing; None before a run."""
    link: str | None = None
    """Name of the bottleneck; None before a run."""

    @property
    def sample_s(self) -> float:
        """Sampling period of the series in seconds."""
        return scenario_time(self.scenario.to_dict().get("sample", 0.1))

    @property
    def scales_s(self) -> list[float] | None:
        """Time scales of smoothness in seconds, the same for all runs."""
        if self.rtt_s is None:
            return None
        unit = max(self.sample_s, self.rtt_s)
        return [float(f"{scale * unit:.6g}") for scale in _native.SCALES]

    def sampled(self, runs: int, flows: int, duration_s: float) -> Network:
        """Return the network with the sampling rate adapted to the memory limit.

        With too many flows it raises an ArgumentError.
        """
        if flows * runs > MAX_FLOWS_TOTAL:
            raise ArgumentError(
                "repeat",
                f"{runs} runs of {flows} flows are too many: the limit for all runs together is "
                f"{MAX_FLOWS_TOTAL} flows",
            )
        most = MAX_SAMPLES / (flows * runs)
        needed = min(duration_s / most, duration_s / MIN_SAMPLES)
        if needed <= self.sample_s:
            return self
        return replace(self, scenario=self.scenario.with_values({"sample": needed}))

    def with_controllers(self, one: Spec, other: Spec | None, turn: int) -> Scenario:
        """Return the network with the controllers of a case, validated."""
        scenario = self.scenario.with_controllers(one, other, turn=turn)
        self.check(scenario)
        return scenario

    def check(self, scenario: Scenario) -> tuple[int, float]:
        """Return the number of flows and the length in seconds; errors name the argument."""
        try:
            compiled = scenario.validate()
        except _native.ScenarioError as mistake:
            key, _, problem = str(mistake).partition(": ")
            if key not in self.arguments or key in self.values:
                raise
            raise ArgumentError(self.arguments[key], problem) from None
        return compiled["flows"], compiled["duration_s"]

    def seen(self, run: Result) -> Network:
        """Return the network with the round-trip time and bottleneck found in its first run."""
        trips = [flow["min_rtt_s"] for flow in run.measured_flows]
        known = [trip for trip in trips if math.isfinite(trip)]
        # Two digits: the estimate is from a single run.
        rtt = float(f"{np.median(known):.2g}") if known else self.sample_s
        return replace(self, rtt_s=rtt, link=run.bottleneck["name"])

    def bottleneck(self, run: Result) -> LinkRecord:
        """Return the link whose figures are reported, the same one in all runs."""
        links = (link for link in run.record["links"] if link["name"] == self.link)
        return next(links, run.bottleneck)

    def describe(
        self, runs: Sequence[Result], *, turns: int, repeat: int, seed: int, on: str
    ) -> NetworkSummary:
        """Describe the network and the runs of a comparison on it."""
        run = runs[0]
        link = self.bottleneck(run)
        flows, limit = run.measured_flows, link["queue_limit"]
        packet, rtt = flows[0]["packet_bytes"], self.rtt_s or math.nan
        # As for a queue in `bdp`, with headers.
        on_the_wire = packet + flows[0]["header_bytes"]
        return {
            "scenario": run.scenario,
            **self.asked,
            "values": dict(self.values),
            "bottleneck": link["name"],
            "rate_bps": link["rate_bps"],
            "rtt_s": rtt,
            "queue_limit": limit if limit < ENDLESS else math.inf,
            "queue_limit_unit": link["queue_limit_unit"],
            "bdp_packets": link["rate_bps"] * rtt / (8 * on_the_wire),
            "packet_bytes": packet,
            "flows": len(flows),
            "duration_s": run.duration_s,
            "warmup_s": run.warmup_s,
            "scales_s": run.scales,
            "turns": turns,
            "repeat": repeat,
            "seed": seed,
            "on": on,
            "conventions": all_conventions(each.record["conventions"] for each in runs),
        }


def dumbbell(
    given: Mapping[str, Any], values: Mapping[str, object], *, controllers: int = 1
) -> Network:
    """Create a dumbbell from arguments of `DUMBBELL`, as for `cwnd.compare`.

    ``queue`` may be a table of a scenario file; ``controllers`` is the number of controllers that
    evenly share the flows of each round-trip time.
    """
    arguments = cast("DumbbellArguments", {**DUMBBELL, **given})
    unused = overridden(values) - given.keys()
    queue, warmup = arguments["queue"], arguments["warmup"]
    flows: Any = arguments["flows"]
    bps = read_argument("rate", parse_rate, arguments["rate"])
    if bps > MAX_RATE_BPS:
        # A scenario's link may be infinite, but a dumbbell's may not.
        raise ArgumentError("rate", "a rate is at most 10tbit")
    trips, ranged = read_argument("rtt", _read_rtt, arguments["rtt"])
    seconds = read_argument("time", parse_time, arguments["time"])
    rest = WARMUP * seconds
    if warmup is not None:
        rest = read_argument("warmup", lambda text: parse_time(text, zero=True), warmup)
    lost = read_argument("loss", _read_probability, arguments["loss"])
    kinds = 1 if ranged else len(trips)
    least = kinds * controllers
    whole = isinstance(flows, Integral) and not isinstance(flows, bool)
    if not whole or not 1 <= flows <= MAX_FLOWS or flows % least:
        of = f"a multiple of {least}" if least > 1 else "a whole number"
        each = f": {controllers} for each of {kinds} round-trip times" if kinds > 1 else ""
        problem = f"{flows} is not {of} from {least} to {MAX_FLOWS}{each}"
        raise ArgumentError("flows", problem)
    trip = float(np.mean(trips))
    document = dumbbell_document(
        rate=bps,
        trip=trip,
        queue=queue,
        time=seconds,
        warmup=rest,
        sample=max(min(trip, seconds / MIN_SAMPLES), seconds / MAX_SAMPLES_EACH),
        access=f"0s..{trip * ACCESS:.9f}s" if len(trips) == 1 else 0.0,
        conventions=read_argument("conventions", read_conventions, arguments["conventions"]),
    )
    if "rate" in unused:
        del document["dumbbell"]["rate"]
    scenario = Scenario(document)
    start = f"0s..{seconds * STARTS:.9f}s"
    if len(trips) == 1:
        scenario.add_flow("reno", count=flows, start=start)
    else:
        scenario = scenario.with_values({"dumbbell.delay": min(trips) / 2})
        spans = [tuple(trips)] if ranged else [(each, each * SPREAD) for each in trips]
        for low, high in spans:
            between = f"{low:.9f}s..{high:.9f}s"
            scenario.add_flow("reno", count=flows // kinds, start=start, rtt=between)
    if lost:
        scenario = scenario.with_values({"dumbbell.loss": lost})
    written = (".." if ranged else ",").join(map(tc_time, trips))
    words = [] if "rate" in unused else ["--rate", tc_rate(bps)]
    words += ["--rtt", written]
    words += (
        ["--queue", queue] if isinstance(queue, str) else write_values({"dumbbell.queue": queue})
    )
    words += ["--flows", str(flows)]
    words += ["--time", tc_time(seconds)]
    words += [] if warmup is None else ["--warmup", tc_time(rest)]
    words += ["--loss", repr(lost)] if lost else []
    if "conventions" not in unused:
        words += ["--conventions", scenario.to_dict()["tcp"]["conventions"]]
    asked: RequestedNetwork = {"file": None, "rtt": written, "queue": queue, "loss": lost}
    net = Network(scenario, {}, words, asked, _ARGUMENTS, rtt_s=trip, link="left-right")
    return _with_values(net, values)


def overridden(values: Mapping[str, object]) -> set[str]:
    """Return the arguments of a dumbbell whose defaults do not apply beside these values."""
    model = values.get("dumbbell.model")
    varies = isinstance(model, Mapping) and model.get("kind") != "wifi"
    names = {"rate"} if varies or "dumbbell.trace" in values else set()
    return names | ({"conventions"} if "tcp.conventions" in values else set())


def any_network(network: Scenario | str | Path, values: Mapping[str, object]) -> Network:
    """Use a scenario, or the file of one, as a network."""
    path = None if isinstance(network, Scenario) else str(network)
    scenario = network if isinstance(network, Scenario) else Scenario.from_toml(Path(network))
    asked: RequestedNetwork = {"file": path, "rtt": None, "queue": None, "loss": None}
    words = None if path is None else [path]
    return _with_values(Network(scenario, {}, words, asked), values)


def measured_controllers(scenario: Scenario) -> dict[str, Spec]:
    """Return the controllers of a scenario's measured flows, by name."""
    flows = scenario.to_dict().get("flow", [])
    names = [flow["controller"] for flow in flows if flow.get("measured", True)]
    made = scenario.controllers
    return {name: made[name] if name.startswith("python:") else name for name in names}


def _with_values(network: Network, values: Mapping[str, object]) -> Network:
    """Set values of a network."""
    check_values(values)
    words = None if network.words is None else [*network.words, *write_values(values)]
    scenario = network.scenario.with_values(values)
    return replace(network, scenario=scenario, values=values, words=words)


def _read_rtt(rtt: Quantity) -> tuple[list[float], bool]:
    """Parse a round-trip time, list or range; the flag is true for a range."""
    if not isinstance(rtt, str):
        return [parse_time(rtt)], False
    ends = rtt.split("..")
    if len(ends) == 2:
        low, high = map(parse_time, ends)
        if not low < high:
            raise ValueError(f"{rtt!r}: A must be less than B in A..B")
        return [low, high], True
    return [parse_time(each) for each in rtt.split(",")], False


def _read_probability(value: Quantity) -> float:
    """Parse a number from 0 to 1, or a percentage."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1:
        raise ValueError(f"{value!r} is not a probability such as 0.1% or 0.001, below 1")
    return number
