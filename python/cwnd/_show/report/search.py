"""Page of a search: a map of the weaknesses, and the worst ones over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cwnd._runs.run import run
from cwnd._search.networks import CANDIDATE, OTHERS, PARAMETERS
from cwnd._search.objective import CAPACITY
from cwnd._show.colors import PALETTE, REFERENCE
from cwnd._show.report.page import render
from cwnd._show.report.sides import Side, sides_data

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cwnd._base.records import FlowRecord, JsonObject
    from cwnd._runs.result import Result
    from cwnd._search.finding import Finding
    from cwnd._search.search import Search
    from cwnd._search.space import Parameter

MOST = 10
"""Findings with a plot over time."""

_TICKS = 7
"""Largest number of ticks of an axis of the map."""


def search_page(found: Search) -> str:
    """Create the HTML page of a search."""
    worst = found.findings[:MOST]
    # The page begins with the objective of the worst finding.
    objectives = dict.fromkeys(
        [
            *(one.objective.name for one in worst),
            *(name for _, sizes in found.explored for name in sizes),
        ]
    )
    return render(
        "search.html",
        title=f"Networks on which {found.controller} is worse than {found.against}",
        summary=[
            ("Findings", str(len(found.findings)), "confirmed with fresh seeds"),
            ("Other suspects", str(len(found.rejected)), "not confirmed or undecided"),
            ("Networks", str(len(found.explored)), "explored"),
            ("Runs", str(found.runs), ""),
        ],
        findings=[
            (one, file, file.read_text(encoding="utf-8"), _sensitivity(one))
            for one, file in zip(worst, found.files, strict=False)
        ],
        more=len(found.findings) - len(worst),
        rejected=[(one.sentence, one.objective.meaning, one.verdict) for one in found.rejected],
        objectives=list(objectives),
        parameters=[one.name for one in found.space.parameters],
        chosen=_choose_axes(found),
        data={
            "parameters": {
                one.name: {
                    "title": _title(one),
                    "ticks": _ticks(one),
                    "lacking": str(PARAMETERS[one.name].default or "none"),
                }
                for one in found.space.parameters
            },
            "networks": [
                {"values": network, "places": _places(found, network), "sizes": sizes}
                for network, sizes in found.explored
            ],
            "findings": [
                {
                    "objective": one.objective.name,
                    "places": _places(found, one.network),
                    "sentence": one.sentence,
                }
                for one in found.findings
            ],
            "runs": [_over_time(found, one) for one in worst],
        },
    )


def _places(found: Search, network: Mapping[str, Any]) -> dict[str, float]:
    """Return the fraction of the bounds of each parameter that is on."""
    return {name: float(f"{found.space[name].place(value):.4g}") for name, value in network.items()}


def _choose_axes(found: Search) -> list[str]:
    """Return two parameters: those that most findings need, then those that change the size most.

    The change is the correlation of a parameter's place with the size under any objective.
    """

    def weight(one: Parameter) -> tuple[int, float]:
        needed = sum(one.name in finding.special for finding in found.findings)
        on = [
            (one.place(network[one.name]), max(sizes.values()))
            for network, sizes in found.explored
            if one.name in network
        ]
        if len(on) < 3 or min(np.ptp(on, axis=0)) == 0:
            return needed, 0.0
        return needed, abs(float(np.corrcoef(np.transpose(on))[0, 1]))

    names = [one.name for one in sorted(found.space.parameters, key=weight, reverse=True)]
    return [names[0], names[min(1, len(names) - 1)]]


def _title(parameter: Parameter) -> str:
    """Return the meaning of a parameter, with the unit of its bounds."""
    span = parameter.axis.sampled
    meaning = PARAMETERS[parameter.name].meaning
    return f"{meaning} ({span.unit})" if span is not None and span.unit else meaning


def _ticks(parameter: Parameter) -> list[tuple[float, str]]:
    """Return fractions of the bounds with the values there: round ones in a range."""
    span = parameter.axis.sampled
    if span is None:
        return [(parameter.place(value), str(value)) for value in parameter.axis.values]
    if span.log:
        tens = range(math.floor(math.log10(span.low)), math.ceil(math.log10(span.high)) + 1)
        rounds = [[factor * 10.0**ten for ten in tens for factor in of] for of in ((1, 2, 5), (1,))]
    else:
        ten = 10.0 ** math.floor(math.log10(span.high - span.low))
        steps = [ten * factor for factor in (0.1, 0.2, 0.5, 1)]
        rounds = [
            [step * n for n in range(math.ceil(span.low / step), int(span.high / step) + 1)]
            for step in steps
        ]
    inside = [[value for value in of if span.low <= value <= span.high] for of in rounds]
    values = next((of for of in inside if len(of) <= _TICKS), inside[-1])
    return [(parameter.place(f"{value:.6g}{span.unit}"), f"{value:.6g}") for value in values]


def _sensitivity(finding: Finding) -> list[tuple[str, str, str]]:
    """Return the size with each number of a network halved and doubled."""

    def shown(size: float | None) -> str:
        return "" if size is None else f"{size:.2g}"

    return [
        (name, shown(half), shown(double)) for name, (half, double) in finding.sensitivity.items()
    ]


def _over_time(found: Search, finding: Finding) -> JsonObject | None:
    """Run a finding under both controllers with a fresh seed; None if none has both values."""
    pairs = zip(finding.seeds, *finding.values, strict=True)
    seed = next((seed for seed, *both in pairs if all(map(math.isfinite, both))), None)
    if seed is None:
        return None
    names = [name for name in (finding.controller, finding.against) if name != CAPACITY]
    results = [run(found.plan.scenario_of(finding.network, name), seed=seed) for name in names]
    sides = zip(results, (found.controller, found.against), (PALETTE[0], REFERENCE), strict=False)
    return {"title": finding.sentence, "seed": seed} | sides_data(
        [
            Side(
                name,
                color,
                result,
                [
                    (name, "solid", _flows(result, CANDIDATE)),
                    (f"flows beside {name}", "dot", _flows(result, OTHERS)),
                ],
            )
            for result, name, color in sides
        ]
    )


def _flows(result: Result, group: str) -> list[FlowRecord]:
    """Return the flows of a group."""
    return [one for one in result.measured_flows if one["name"].startswith(group)]
