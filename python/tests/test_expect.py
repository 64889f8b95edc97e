from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

import cwnd
from cwnd._base import toml as tomllib

SCENARIOS = Path(cwnd.__file__).parent / "scenarios"

HEAD = """duration = "5s"
[dumbbell]
rate = "10mbit"
delay = "10ms"
[[flow]]
controller = "reno"
count = 2
[[flow]]
controller = "aimd(0.31, 1/8)"
name = "gentle"
[expect]
"""


@pytest.fixture
def write(tmp_path):
    def write(bounds: str) -> str:
        path = tmp_path / "x.toml"
        path.write_text(HEAD + bounds)
        return str(path)

    return write


def with_expectations() -> list[Path]:
    files = sorted(SCENARIOS.glob("*.toml"))
    tables = {path: tomllib.loads(path.read_text(encoding="utf-8")) for path in files}
    return [path for path, table in tables.items() if "expect" in table]


@pytest.mark.parametrize("path", with_expectations(), ids=lambda path: path.stem)
def test_the_scenarios_meet_their_expectations(command, path):
    done = command("run", str(path), "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_some_scenarios_have_expectations():
    assert len(with_expectations()) >= 4


def test_a_line_for_each_bound(command, write):
    done = command("run", write('jain = [">= 0.5", "<= 1"]\nloss_rate.reno = "< 20%"\n'), "--check")
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "holds  jain >= 0.5",
        "holds  jain <= 1",
        "holds  loss_rate.reno < 20%",
    ]
    assert done.stderr == ""


def test_a_failure_is_named(command, write):
    file = write('goodput.gentle = ">= 11mbit"\njain = ">= 0.5"\n')
    done = command("run", file, "--check")
    assert done.returncode == 1
    assert "fails  goodput.gentle >= 11mbit: " in done.stdout
    assert done.stderr == "cwnd: 1 of 2 expectations failed: goodput.gentle\n"
    document = json.loads(command("run", file, "--check", "--json").stdout)
    found = {each["metric"]: each for each in document["expectations"]}
    assert found["goodput.gentle"]["limit"] == 11e6
    assert not found["goodput.gentle"]["holds"]
    assert found["jain"]["value"] == document["metrics"]["jain"]


def test_a_scenario_may_be_a_pipe(complete, two):
    """It is read once: for the run, and for the lines of messages."""
    words = [sys.executable, "-m", "cwnd", "run", "/dev/stdin", "--check"]
    done = complete(*words, input=f'{two}\n[expect]\njain = "> 0"\n')
    assert (done.returncode, done.stderr) == (0, "")
    done = complete(*words, input=f'{two}\n[expect]\njain = "0"\n')
    line = two.count("\n") + 3
    assert done.returncode == 2
    assert done.stderr.startswith(f"cwnd: /dev/stdin:{line}: expect.jain: ")


def test_without_check_nothing_changes(command, write):
    with_table = command("run", write('jain = "< 0"\n'), "--json")
    without = command("run", write(""), "--json")
    documents = [json.loads(done.stdout) for done in (with_table, without)]
    for document in documents:
        del document["engine"]["wall_s"]
    assert documents[0] == documents[1]


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ('a.b = "< 1"', ":12: expect.a.b: unknown metric"),
        ('jain = "< 1"\n\ngoodput.ren = "< 1bit"', ":14: expect.goodput.ren: "),
        ('goodput.reno = ">= 4ms"', ":12: expect.goodput.reno: '4ms' is not a rate"),
        ('goodput.reno = ">= 4"', ":12: expect.goodput.reno: a rate needs a unit"),
        ('queue_delay.p95 = "<= 3mbit"', ":12: expect.queue_delay.p95: '3mbit' is not a time"),
        ('queue_delay.reno = "<= 3ms"', "links: left-right, right-left"),
        ('jain = [\n"< 1",\n"= 1"]', ':12: expect.jain: "= 1" is not a bound'),
        ('jain = "<= 90"', "'90' is not a fraction"),
        ('timeouts = "<= 3%"', "'3%' is not a number"),
        ('convergence_time.reno = "<= 3s"', "it is a metric of the run"),
        ("jain = 1", ":12: expect.jain: expected a bound"),
        ('jain = ">= "', ':12: expect.jain: ">= " is not a bound'),
        ('"goodput@1s..6s" = "> 0"', "expect.goodput@1s..6s: 1s..6s is not within the run of 5 s"),
        ("", ": expect: no expectations"),
    ],
)
def test_a_mistake_is_found_before_the_run(command, write, bounds, words):
    done = command("run", write(bounds), "--check")
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_value_fails(write):
    result = cwnd.run(write('jain = "<= 1"\n'))
    # Flows that have not converged have no convergence time.
    assert math.isnan(result.metrics["convergence_time_s"])
    (outcome,) = result.check({"convergence_time": ">= 0s"})
    assert not outcome.holds
    assert outcome.text == "fails  convergence_time >= 0s: unknown"


def test_the_metrics_are_those_of_the_document(write):
    result = cwnd.run(write(""))
    document = result.to_json()
    flows = {flow["name"]: flow for flow in document["flows"]}
    link = next(each for each in document["links"] if each["name"] == "left-right")
    expected = {
        "goodput": document["metrics"]["goodput_bps"],
        "goodput.reno": flows["reno-1"]["goodput_bps"] + flows["reno-2"]["goodput_bps"],
        "goodput.reno-2": flows["reno-2"]["goodput_bps"],
        "goodput.min": min(flow["goodput_bps"] for flow in flows.values()),
        "throughput.gentle": flows["gentle"]["throughput_bps"],
        "rtt.gentle": flows["gentle"]["mean_rtt_s"],
        "rtt.min": min(flow["min_rtt_s"] for flow in flows.values()),
        "timeouts": sum(flow["timeouts"] for flow in flows.values()),
        "smoothness": document["metrics"]["smoothness"][1]["cov"],
        "loss_rate": document["metrics"]["loss_rate"],
        "loss_rate.gentle": flows["gentle"]["loss_rate"],
        "mark_rate.left-right": 0.0,
        "retransmission_rate": document["metrics"]["retransmission_rate"],
        "utilization": link["utilization"],
        "queue_delay.left-right": link["queue_delay_s"]["mean"],
        "queue_delay.p99": link["queue_delay_s"]["p99"],
    }
    found = result.check(dict.fromkeys(expected, ">= 0"))
    assert {each.expectation.metric.name: each.value for each in found} == pytest.approx(expected)


def test_rates_over_a_span_are_those_of_the_packets_sizes():
    """A flow alone on its link has one goodput, in packets of 500 and of 1400 bytes."""
    result = cwnd.run(
        cwnd.Scenario.from_toml(
            'duration = "20s"\n[dumbbell]\nrate = "5mbit"\ndelay = "10ms"\nqueue = "50p"\n'
            '[[flow]]\nname = "a"\ncontroller = "reno"\ntcp = {packet = 500, header = 0}\n'
            'packet_changes = [{at = "10s", packet = 1400}]\n'
        )
    )
    bounds = {
        f"{name}.a@{span}": ">= 4.8mbit"
        for name in ("goodput", "throughput")
        for span in ("2s..9s", "12s..19s")
    }
    # More than the link's rate would be packets of another size.
    outcomes = [
        *result.check(bounds | {"time_to.4800kbit.a@12s..19s": "<= 100ms"}),
        *result.check(dict.fromkeys(bounds, "<= 5.1mbit")),
    ]
    assert all(outcome.holds for outcome in outcomes), [outcome.text for outcome in outcomes]
    (flow,) = result.measured_flows
    assert flow["delivered_bytes"][-1] == pytest.approx(flow["bytes_delivered"], rel=0.01)


def test_useful_is_the_fraction_of_first_arrivals():
    """Packets of one set: the fraction is one without duplicates, whatever the measured window."""
    text = (
        'duration = "12s"\nwarmup = "{}"\ntcp = {{ conventions = "ns2", window = {} }}\n'
        '[dumbbell]\nrate = "{}"\ndelay = "300ms"\nqueue = "50p"\n'
        '[[flow]]\ncontroller = "reno"\ncount = 20\n'
    )
    for window, rate, duplicates in ((2, "10mbit", False), (100, "200kbit", True)):
        for warmup in ("0s", "3s", "11500ms"):
            result = cwnd.run(cwnd.Scenario.from_toml(text.format(warmup, window, rate)))
            (useful,) = result.check({"useful": ">= 0"})
            received = sum(flow["packets_received"] for flow in result.measured_flows)
            delivered = sum(flow["packets_delivered"] for flow in result.measured_flows)
            assert useful.value * received == pytest.approx(delivered)
            assert useful.value <= 1
            if warmup == "0s":
                assert (useful.value < 1) == duplicates
