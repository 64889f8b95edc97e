"""Output of ``cwnd run``, and its option --check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._cli.outputs import FAILED, print_json
from cwnd._cli.terminal import echo, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._runs.expect import Outcome
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario


def check_expectations(scenario: Scenario, links: Sequence[str], source: tuple[str, str]) -> None:
    """Check the names, units and operators of ``[expect]`` before the run."""
    from cwnd._runs.expect import read_expectations
    from cwnd._runs.measures import places_of_scenario
    from cwnd.units import parse_time

    document = scenario.to_dict()
    duration = document["duration"]
    duration_s = parse_time(duration) if isinstance(duration, str) else float(duration)
    places = places_of_scenario(scenario, links)
    read_expectations(document.get("expect", {}), places, source, duration_s)


def print_run(result: Result, *, as_json: bool, check: bool) -> int:
    """Print a run, or with ``check`` one line for each expectation; return the exit status."""
    outcomes = result.check() if check else None
    if as_json:
        document = result.to_json()
        if outcomes is not None:
            document["expectations"] = [outcome.to_json() for outcome in outcomes]
        print_json(document)
    elif outcomes is None:
        from cwnd._cli.tables import print_result

        print_result(result)
    else:
        for outcome in outcomes:
            echo(outcome.text)
    return _report_failures(outcomes or [])


def _report_failures(outcomes: Sequence[Outcome]) -> int:
    """Name the failed expectations on standard error; return the exit status."""
    failed = [outcome.expectation.metric.name for outcome in outcomes if not outcome.holds]
    if failed:
        names = ", ".join(dict.fromkeys(failed))
        say(f"{len(failed)} of {len(outcomes)} expectations failed: {names}")
    return FAILED if failed else 0
