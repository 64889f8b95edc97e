"""A network that was found: its verdict, its scenario and its description."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from cwnd._base.law_files import path_of_law
from cwnd._search.networks import PARAMETERS, network, packets
from cwnd.controller import command_specification
from cwnd.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd._base.records import JsonObject
    from cwnd._experiments.bound import Grade, Measured
    from cwnd._search.confirm import Confirmation
    from cwnd._search.objective import Objective
    from cwnd.controller import Factory
    from cwnd.stats import Estimate

Verdict: TypeAlias = Literal["confirmed", "not confirmed", "undecided"]
"""Whether runs with fresh seeds have the weakness."""

_UNITS = {"mbit": "Mbit/s", "kbit": "kbit/s", "gbit": "Gbit/s", "bit": "bit/s"}


def verdict_of(grade: Grade) -> Verdict:
    """Return the verdict of runs with fresh seeds."""
    if grade == "fails":
        return "confirmed"
    return "undecided" if grade == "undecided" else "not confirmed"


@dataclass(frozen=True)
class Finding:
    """A network on which the controller may be worse than the reference."""

    objective: Objective
    verdict: Verdict
    controller: str
    against: str
    network: Mapping[str, Any]
    """Values of the parameters that are on."""
    reduced: bool
    """Whether nothing more can be removed or rounded without the weakness."""
    size: Estimate
    """Size of the weakness with fresh seeds: the base-2 logarithm of the ratio."""
    measured: Measured
    """The metric under the controller and under the reference, with fresh seeds."""
    seeds: tuple[int, ...]
    """The fresh seeds."""
    values: tuple[tuple[float, ...], tuple[float, ...]]
    """The metric with each fresh seed, of the controller and of the reference."""
    sensitivity: Mapping[str, tuple[float | None, float | None]]
    """Size of the weakness with each number halved and doubled, by parameter."""
    errors: tuple[str, ...]
    """Errors of failed runs of the controller."""
    special: tuple[str, ...]
    """Parameters that the weakness needs."""
    confirmation: Confirmation | None = None
    """Runs in real time; None if they were not asked for."""

    @property
    def sentence(self) -> str:
        """What is special about the network, such as "a buffer of 14 packets"."""
        parts: list[str] = []
        for name in PARAMETERS:
            if name not in self.special:
                continue
            text = PARAMETERS[name].phrase.format(_shown(name, self.network))
            if text.startswith(("by ", "in ", "for ", "from ")) and parts:
                parts[-1] += f" {text}"
            else:
                parts.append(text)
        if not parts:
            return "any network of the bounds"
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

    @property
    def network_sentence(self) -> str:
        """What the weakness needs, or what the network has if the reduction is not complete."""
        if self.reduced:
            return f"It needs {self.sentence}."
        return f"The network has {self.sentence}; the reduction is not complete."

    @property
    def comparison(self) -> str:
        """The metric under the controller beside that under the reference."""
        shown = self.objective.test.metric.measure.shown
        own, base = self.measured.value.mean, self.measured.baseline.mean
        without = sum(not math.isfinite(value) for value in self.values[0])
        runs = len(self.seeds)
        note = f" (without {without} of {runs} runs, which have none)" if 0 < without < runs else ""
        return (
            f"{self.objective.metric}: {shown(own)} under {self.controller}{note}, "
            f"{shown(base)} under {self.against}"
        )

    @property
    def threshold(self) -> str:
        """The test of the report card that fails, with its thresholds."""
        bounds = " and ".join(bound.text for bound in self.objective.test.fails)
        return f"{self.objective.test.id}: {bounds}"

    @property
    def evidence(self) -> str:
        """The size of the weakness and both values, with their intervals."""
        shown = self.objective.test.metric.measure.shown
        return (
            f"size {_interval(self.size, '{:.2g}'.format)}; "
            f"{self.controller} {_interval(self.measured.value, shown)}, "
            f"{self.against} {_interval(self.measured.baseline, shown)}"
        )

    @property
    def confirmation_text(self) -> str:
        """What the runs in real time have shown; empty if they were not asked for."""
        one = self.confirmation
        if one is None:
            return ""
        text = f"over the kernel's TCP: {one.verdict}"
        if one.measured is not None:
            shown = self.objective.test.metric.measure.shown
            own, base = (
                _interval(one.measured.value, shown),
                _interval(one.measured.baseline, shown),
            )
            text += f"; {self.controller} {own}, {self.against} {base}"
        return f"{text} ({one.note})" if one.note else text

    def expectation(self) -> tuple[int, str] | None:
        """Return a seed, and a bound that the reference meets and the controller does not.

        None if there is no such seed.
        """
        relation = self.objective.test.meets[0].operator
        relation = ">=" if relation in (">=", ">") else "<="
        more = relation == ">="
        dimension = self.objective.test.metric.measure.dimension
        for seed, own, base in zip(self.seeds, *self.values, strict=True):
            if not math.isfinite(base):
                continue
            if not math.isfinite(own):
                limit = base / 2 if more else base * 2
            elif own <= 0 or base <= 0:
                limit = (own + base) / 2
            else:
                limit = math.sqrt(own * base)
            text, rounded = _bound(dimension, limit)
            failed = not math.isfinite(own) or (own < rounded if more else own > rounded)
            if failed and (base >= rounded if more else base <= rounded):
                return seed, f"{relation} {text}"
        return None

    def document(self, title: str, home: Path, factories: Mapping[str, Factory]) -> JsonObject:
        """Return the scenario as plain data, with ``[expect]``, for a file in a directory."""
        made = network(self.network, _from(home, self.controller, factories))
        expected = self.expectation()
        head: JsonObject = {
            "title": title,
            "description": f"{self.comparison}. {self.network_sentence}",
        }
        if expected is not None:
            seed, bound = expected
            head["seed"] = seed
            made["expect"] = {self.objective.metric: bound}
        return {**head, **made}

    def to_toml(self, title: str, home: Path, factories: Mapping[str, Factory]) -> str:
        """Return the text of a scenario file in a directory."""
        import tomli_w

        measured = self.measured
        shown = self.objective.test.metric.measure.shown
        lines = [
            self.network_sentence,
            f"{self.objective.meaning} ({self.objective.metric}):",
            f"  {self.controller} {_interval(measured.value, shown)}",
            f"  {self.against} {_interval(measured.baseline, shown)}",
            f"{self.verdict} with {len(self.seeds)} fresh seeds",
        ]
        lines += [f"error: {error}" for error in self.errors]
        if self.confirmation is not None:
            lines.append(self.confirmation_text)
        if self.sensitivity:
            lines.append(f"size of the weakness, 2^x: x = {self.size.mean:.2g}; with a number")
            for name, (half, double) in self.sensitivity.items():
                sides = [
                    f"{word} {size:.2g}"
                    for word, size in (("halved", half), ("doubled", double))
                    if size is not None
                ]
                lines.append(f"  {name} {', '.join(sides)}")
        text = tomli_w.dumps(self.document(title, home, factories))
        return "".join(f"# {line}\n" for line in lines) + "\n" + text

    def to_json(self) -> JsonObject:
        """Return the finding as plain data."""
        return {
            "objective": self.objective.name,
            "metric": self.objective.metric,
            "test": self.objective.test.id,
            "fails": [bound.text for bound in self.objective.test.fails],
            "verdict": self.verdict,
            "sentence": self.sentence,
            "network": dict(self.network),
            "reduced": self.reduced,
            "size": self.size.to_json(),
            "value": self.measured.value.to_json(),
            "reference": self.measured.baseline.to_json(),
            "seeds": list(self.seeds),
            "errors": list(self.errors),
            "sensitivity": [
                {"parameter": name, "halved": half, "doubled": double}
                for name, (half, double) in self.sensitivity.items()
            ],
            "confirmation": None if self.confirmation is None else self.confirmation.to_json(),
        }


def _interval(found: Estimate, shown: Any) -> str:  # noqa: ANN401
    """Format a mean with its interval."""
    if not found.known:
        return str(shown(found.mean))
    return f"{shown(found.mean)} ({shown(found.low)} to {shown(found.high)})"


def _shown(name: str, values: Mapping[str, Any]) -> str:
    """Format the value of a parameter for a sentence."""
    value = values[name] if name in values else PARAMETERS[name].default
    if name == "buffer":
        return f"{packets(values)} packets"
    if name in ("loss", "reordering", "fall", "short"):
        return f"{100 * value:.3g} %"
    if name in ("flows", "others_count"):
        return counted(value, "flow")
    if name == "rtt_change":
        return f"a factor of {value:.3g}"
    if isinstance(value, str) and (match := re.fullmatch(r"([0-9.]+)([a-z]+)", value)):
        return f"{float(match[1]):.3g} {_UNITS.get(match[2], match[2])}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _bound(dimension: str, limit: float) -> tuple[str, float]:
    """Return a limit as the text of a bound, with two digits, and its value."""
    factor, unit = {"rate": (1e6, "mbit"), "time": (1e-3, "ms"), "fraction": (0.01, "%")}.get(
        dimension, (1.0, "")
    )
    number = float(f"{limit / factor:.2g}")
    return np.format_float_positional(number, trim="-") + unit, number * factor


def _from(home: Path, controller: str, factories: Mapping[str, Factory]) -> str:
    """Return the specification of a controller in a file of a directory."""
    law = path_of_law(controller)
    if law is not None:
        return Path(os.path.relpath(law, home)).as_posix() + controller.removeprefix(law)
    if controller not in factories:
        return controller
    found = command_specification(controller, factories[controller])
    if found is None:
        return controller
    path, _, rest = found.partition(".py:")
    return f"{Path(os.path.relpath(f'{path}.py', home)).as_posix()}:{rest}"
