"""Checks of recorded connections against the rules of RFC 5681, RFC 9002 and RFC 9438."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from cwnd import _native
from cwnd._base.files import read_text
from cwnd._base.law_files import known_laws, path_of_law, use_law
from cwnd.controller import read_controller
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd._runs.scenario import Scenario

STARTS = ("\x1e", "{", "[")
"""How a qlog starts, and not a record: as JSON-SEQ (RFC 7464), or as JSON, which is refused."""


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


class Recording(TypedDict):
    """What a recording has after each event; counts and windows are in packets.

    ``replayed`` has the windows of another controller that was given the same events.
    """

    time_s: list[float]
    sent: list[int]
    acked: list[int]
    lost: list[int]
    in_flight: list[int]
    window: list[float]
    rtt_s: list[float | None]
    replayed: list[float] | None


class Difference(TypedDict):
    """The first event after which a replayed window differs by more than a packet."""

    at_s: float
    entry: int
    recorded: float
    replayed: float


class Replay(TypedDict):
    """The windows of a controller with the events of a recording, means over the events."""

    controller: str
    events: int
    mean_recorded: float
    mean_replayed: float
    difference: Difference | None


def read_recording(path: Path, protocol: str | None, controller: str | None) -> Recording:
    """Return the series of a recording, with the windows of ``controller``."""
    text, is_qlog = _read(path)
    laws = {} if controller is None else _laws_of(controller)
    try:
        with known_laws(laws):
            return _native.recording_series(text, is_qlog, _is_quic(protocol), controller)
    except ValueError as problem:
        raise ArgumentError("file", f"{path}: {problem}") from None


def summarize_replay(recording: Recording, controller: str) -> Replay:
    """Compare the replayed windows of a recording with the recorded ones."""
    recorded, replayed = recording["window"], recording["replayed"] or []
    pairs = list(zip(recording["time_s"], recorded, replayed, strict=True))
    first = next((n for n, (_, one, other) in enumerate(pairs) if abs(one - other) > 1), None)
    return {
        "controller": controller,
        "events": len(pairs),
        "mean_recorded": sum(recorded) / len(pairs),
        "mean_replayed": sum(replayed) / len(pairs),
        "difference": None
        if first is None
        else {
            "at_s": pairs[first][0],
            "entry": first,
            "recorded": pairs[first][1],
            "replayed": pairs[first][2],
        },
    }


def check_recording(path: Path, law: str | None, protocol: str | None) -> Connection:
    """Check a qlog, or a record that cwnd wrote, such as one of ``cwnd kernel trace --record``."""
    text, is_qlog = _read(path)
    try:
        return _native.conform_recording(
            text, is_qlog, path.name, law or "other", _is_quic(protocol)
        )
    except ValueError as problem:
        raise ArgumentError("file", f"{path}: {problem}") from None


def check_run(scenario: Scenario, seed: int, law: str | None) -> list[Connection]:
    """Run a scenario, and check its flows against the rules of ``law`` or their controllers."""
    if scenario.controllers:
        names = ", ".join(scenario.controllers)
        raise ArgumentError("file", f"controllers in Python cannot be checked: {names}")
    with known_laws(scenario.laws):
        found: list[Connection] = _native.conform_scenario(scenario.to_json(), seed, law)
    if not found:
        raise ArgumentError("file", "no flow has a controller of cwnd, whose events are recorded")
    return found


def outcome_text(finding: Finding) -> str:
    """Return the outcome of a rule in words."""
    found = finding["violation"]
    if found is None:
        checks = finding["checks"]
        return "not exercised" if checks is None else f"held at {checks} events"
    low = found["most"] is None or found["after"] < found["least"]
    bound = f"at least {found['least']:.2f}" if low else f"at most {found['most']:.2f}"
    return (
        f"violated at {found['at_s']:.6f} s, entry {found['entry']}: {found['before']:.2f} to "
        f"{found['after']:.2f} packets, {bound} permitted"
    )


def replay_text(replay: Replay) -> str:
    """Return the comparison of a replay in words."""
    text = (
        f"{replay['controller']} with the same {replay['events']} events: a mean window of "
        f"{replay['mean_replayed']:.2f} packets, recorded {replay['mean_recorded']:.2f}; "
    )
    found = replay["difference"]
    if found is None:
        return f"{text}no window differs by more than a packet"
    return (
        f"{text}the windows differ by more than a packet from {found['at_s']:.6f} s on, entry "
        f"{found['entry']}: {found['replayed']:.2f}, recorded {found['recorded']:.2f}"
    )


def _laws_of(controller: str) -> dict[str, str]:
    """Return the text of the file that a controller to be replayed names, by its name."""
    try:
        name, factory = read_controller(controller)
        if factory is not None:
            raise ArgumentError("replay", f"controllers in Python cannot be replayed: {controller}")
        law = path_of_law(name)
        return {} if law is None else {law: use_law(law)}
    except _native.SpecError as problem:
        raise ArgumentError("replay", str(problem)) from None


def _read(path: Path) -> tuple[str, bool]:
    """Read a recording; return its text, and whether it is a qlog by its name or its start."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8"
        raise ArgumentError("file", f"cannot read {path}: {reason}") from None
    return text, path.suffix != ".txt" or text.startswith(STARTS)


def _is_quic(protocol: str | None) -> bool | None:
    """Test whether a protocol is QUIC; None without one."""
    return None if protocol is None else protocol == "quic"
