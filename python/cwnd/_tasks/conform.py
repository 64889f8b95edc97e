"""Checks of recorded connections against the rules of RFC 5681, RFC 9002 and RFC 9438."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from cwnd import _native
from cwnd._base.law_files import known_laws
from cwnd._base.text_file import read_text
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd._runs.scenario import Scenario

SEPARATOR = "\x1e"
"""The first character of a qlog (RFC 7464)."""


class Violation(TypedDict):
    """The first event that violates a rule, with the windows in packets that the rule permits.

    ``most`` is None without a limit.
    """

    at_s: float
    entry: int
    before: float
    after: float
    least: float
    most: float | None
    cause: str


class Finding(TypedDict):
    """A rule of an RFC, and whether a connection keeps it."""

    rule: str
    source: str
    statement: str
    outcome: Literal["held", "violated", "not exercised"]
    checks: int | None
    violation: Violation | None


class Connection(TypedDict):
    """A connection that was checked."""

    name: str
    law: Literal["reno", "cubic", "other"]
    protocol: Literal["tcp", "udt", "quic"]
    findings: list[Finding]


def check_recording(path: Path, law: str | None, protocol: str | None) -> Connection:
    """Check a qlog, or a record that cwnd wrote, such as one of ``cwnd kernel trace --record``."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8"
        raise ArgumentError("file", f"cannot read {path}: {reason}") from None
    quic = None if protocol is None else protocol == "quic"
    try:
        if text.startswith(SEPARATOR):
            return _native.conform_qlog(text, path.name, law or "other", quic)
        return _native.conform_record(text, path.name, law or "other", quic or False)
    except ValueError as problem:
        raise ArgumentError("file", f"{path}: {problem}") from None


def check_run(scenario: Scenario, seed: int, law: str | None) -> list[Connection]:
    """Run a scenario, and check its flows against the rules of ``law`` or their controllers."""
    if scenario.controllers:
        names = ", ".join(scenario.controllers)
        raise ArgumentError("file", f"controllers in Python cannot be checked: {names}")
    with known_laws(scenario.laws):
        return _native.conform_scenario(scenario.to_json(), seed, law)
