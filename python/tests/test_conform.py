"""Qlogs of runs, and `cwnd conform`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import cwnd
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """
duration = "5s"
[dumbbell]
rate = "8mbit"
delay = "10ms"
queue = "20p"
[[flow]]
controller = "cubic"
[[cbr]]
rate = "1mbit"
"""
OWN = SCENARIO.replace('controller = "cubic"', 'protocol = "quic"\ncontroller = "own:cubic"')
RECORD = """\
50000000 acked 2 2 8 10 0 50000000 - 0 0 window | 12 - -
61000000 lost 1 50000000 14 | 7.14 - -
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario of a connection and a source without feedback."""
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_a_run_writes_the_qlog_of_each_connection_which_conform_reads(
    command: Any, scenario: Path, tmp_path: Path
) -> None:
    qlogs = tmp_path / "logs"
    done = command("run", scenario, "--qlog", qlogs)
    assert (done.returncode, done.stderr) == (0, f"qlogs: {qlogs}\n")
    assert [path.name for path in qlogs.iterdir()] == ["0.sqlog"]
    header, *events = (qlogs / "0.sqlog").read_text(encoding="utf-8").split("\x1e")[1:]
    assert json.loads(header)["qlog_version"] == "0.3"
    names = [json.loads(event)["name"] for event in events]
    assert names.count("transport:packet_sent") > 1000
    assert names.count("recovery:packet_lost") > 5
    for file, options in ((qlogs / "0.sqlog", ["--law", "cubic"]), (scenario, [])):
        document = json.loads(command("conform", file, *options, "--json").stdout)
        (connection,) = document["connections"]
        assert (connection["law"], connection["protocol"]) == ("cubic", "tcp")
        outcomes = {each["rule"]: each["outcome"] for each in connection["findings"]}
        assert "violated" not in outcomes.values()
        assert outcomes["reduction"] == outcomes["avoidance"] == "held"


def test_a_violation_has_its_numbers_and_cause(command: Any, tmp_path: Path) -> None:
    record = tmp_path / "1.txt"
    record.write_text(RECORD, encoding="utf-8")
    done = command("conform", record, "--law", "cubic")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "1.txt: cubic over tcp"
    at = next(n for n, line in enumerate(lines) if "violated" in line)
    assert "\n".join(lines[at : at + 3]) == (
        "  reduction             violated at 0.061000 s, entry 1: 12.00 to 7.14 packets, "
        "at least 7.40 permitted\n"
        "    RFC 5681 section 3.1, RFC 9002 section 7.3.2, RFC 9438 section 4.6: a congestion "
        "signal reduces the window to half of it, CUBIC's to 0.7\n"
        "    the window is multiplied by 0.595, not by 0.7: the factor is applied to the window "
        "that fast convergence has reduced already"
    )
    assert "  timeout               not exercised" in lines
    assert command("conform", record, "--protocol", "quic", "--json").returncode == 0


def test_a_recording_is_replayed_through_another_controller(command: Any, tmp_path: Path) -> None:
    record = tmp_path / "1.txt"
    record.write_text(RECORD, encoding="utf-8")
    page = tmp_path / "page.html"
    done = command("conform", record, "--replay", "reno", "--report", page)
    assert (done.returncode, done.stderr) == (0, f"report: {page}\n")
    assert done.stdout.splitlines()[-1] == (
        "reno with the same 2 events: a mean window of 9.00 packets, recorded 9.57; the windows "
        "differ by more than a packet from 0.061000 s on, entry 1: 6.00, recorded 7.14"
    )
    assert "reno with the same 2 events" in page.read_text(encoding="utf-8")
    document = json.loads(command("conform", record, "--replay", "reno", "--json").stdout)
    assert document["replay"]["difference"] == {
        "at_s": 0.061,
        "entry": 1,
        "recorded": 7.14,
        "replayed": 6.0,
    }
    law = tmp_path / "mine.law"
    law.write_text(
        'law mine "Mine"\n\non grow:\n    return w + acked / w\n\non cut:\n    return w / 2\n',
        encoding="utf-8",
    )
    done = command("conform", record, "--replay", law)
    assert f"{law} with the same 2 events: a mean window of 9.00 packets" in done.stdout


@pytest.mark.parametrize("protocol", ["udt", "quic"])
def test_qlogs_of_udt_and_quic_have_the_verdicts_of_their_runs(
    command: Any, tmp_path: Path, protocol: str
) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        SCENARIO.replace("[[flow]]", f'[[flow]]\nprotocol = "{protocol}"'), encoding="utf-8"
    )
    assert command("run", scenario, "--qlog", tmp_path).returncode == 0
    file = command("conform", tmp_path / "0.sqlog", "--law", "cubic", "--json")
    outcomes = [
        [(each["rule"], each["outcome"]) for each in json.loads(text)["connections"][0]["findings"]]
        for text in (file.stdout, command("conform", scenario, "--json").stdout)
    ]
    assert outcomes[0] == outcomes[1]
    assert ("reduction", "held") in outcomes[0]


@pytest.mark.parametrize(
    ("name", "text", "options", "error"),
    [
        ("r.txt", RECORD, ["--replay", "bbr3"], "bbr3 needs delivery rates, which a recording"),
        ("r.txt", RECORD, ["--replay", "mine.py:Law"], "mine.py: "),
        ("r.txt", RECORD, ["--replay", "mine.law"], "mine.law: No such file"),
        ("r.txt", RECORD, ["--replay", "nope"], 'unknown controller "nope"'),
        ("r.txt", "", [], "r.txt: there are no events"),
        ("r.txt", "# a comment\n", ["--json"], "r.txt: there are no events"),
        ("r.txt", "", ["--replay", "reno"], "r.txt: there are no events"),
        ("r.sqlog", "", [], "r.sqlog: expected a qlog of the version 0.3 in the format JSON-SEQ"),
        ("r.qlog", "events", [], "r.qlog: expected a qlog of the version 0.3 in the format JSON-"),
        ("r.qlog", "[]", [], "JSON-SEQ, whose records begin with U+001E, not in JSON"),
        ("r.txt", "{}", [], "JSON-SEQ, whose records begin with U+001E, not in JSON"),
        ("r.txt", RECORD[:-1], [], "r.txt: line 2: expected a line feed at the end of the line"),
        ("r.txt", RECORD[:-6], ["--replay", "reno"], "r.txt: line 2: expected "),
        ("s.toml", SCENARIO, ["--replay", "reno"], "--replay: not with a scenario"),
        ("r.txt", "1 acked", [], "r.txt: line 1: expected a number of packets"),
        ("r.sqlog", "\x1e{}", [], "r.sqlog: expected a qlog of the version 0.3"),
        ("r.txt", RECORD, ["--seed", "1"], "--seed: not with a recording"),
        ("s.toml", SCENARIO, ["--protocol", "quic"], "--protocol: not with a scenario"),
        ("s.toml", OWN, [], "no flow has a controller of cwnd"),
        ("none.txt", None, [], "none.txt: No such file or directory"),
    ],
)
def test_errors_are_one_line(
    command: Any, tmp_path: Path, name: str, text: str | None, options: list[str], error: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = command("conform", tmp_path / name, *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert error in done.stderr


def test_only_the_simulator_writes_qlogs(command: Any, scenario: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="only the backend sim writes qlogs"):
        cwnd.run(scenario, on="udt", qlog=tmp_path)
    done = command("run", scenario, "--repeat", "2", "--qlog", tmp_path)
    assert (done.returncode, "--qlog: not with --repeat" in done.stderr) == (2, True)
