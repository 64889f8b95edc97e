from __future__ import annotations

import io
import itertools
import json
import math
import shlex
from typing import ClassVar

import numpy as np
import pytest

import cwnd
import cwnd._runs.networks
from cwnd import metrics, udt
from cwnd._cli import run as command_line
from cwnd._cli import tables
from cwnd._show.report.compare import compare_page
from cwnd._show.sheets import against_columns, alone_columns
from cwnd._tasks.comparison.outcome import Row
from cwnd.errors import ArgumentError

SMALL = {"rate": "10mbit", "rtt": "40ms", "time": "10s", "repeat": 2, "flows": 4}


class Reno:
    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w - 0.5 * w


class Timid:
    """Stays at its window, and looks at all it is shown."""

    seen: ClassVar[list[tuple]] = []

    def grow(self, w, acked, cx):
        if len(self.seen) < 100:
            self.seen.append((cx.now, cx.rtt, cx.min_rtt, cx.last_cut, cx.packet))
        return w

    def cut(self, w, why, cx):
        assert why in ("loss", "mark", "timeout")
        return w * 0.3


def test_the_json_document_has_the_promised_names(comparison):
    document = comparison.to_json()
    assert {"network", "reference", "alone", "against"} <= set(document)
    assert [row["controller"] for row in document["alone"]] == [
        "reno",
        "simd",
        "aimd(alpha=0.31, beta=1/8)",
    ]
    for row in document["against"]:
        assert {"controller", "share", "jain"} <= set(row)
    for row in [*document["alone"], *document["against"]]:
        for name, figure in row.items():
            if name != "controller":
                assert set(figure) == {"mean", "interval", "values"}
                assert len(figure["values"]) == document["network"]["repeat"]
                known = [value for value in figure["values"] if value is not None]
                assert figure["mean"] == pytest.approx(np.mean(known))
                assert figure["interval"] is None or len(figure["interval"]) == 2
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_shares_and_goodputs_agree(comparison):
    for row in comparison.rows_against:
        for repeat in row.repeats:
            both = repeat["goodput_bps"] + repeat["reference_goodput_bps"]
            assert repeat["share"] == pytest.approx(repeat["goodput_bps"] / both)
            # What waited for a hole to be filled may be delivered after the warm-up.
            assert 0.5 * 10e6 < both < 1.1 * 10e6


def test_frames(comparison):
    assert list(comparison.alone.index) == ["reno", "simd", "aimd(alpha=0.31, beta=1/8)"]
    share = comparison.against["share"]
    assert (share["low"] <= share["mean"]).all()
    assert (share["mean"] <= share["high"]).all()


def test_published_smoothness(comparison):
    """SIMD and AIMD(0.31, 1/8) vary less than TCP: Jin et al. 2001, Yang and Lam 2000."""
    cov = comparison.alone["cov_10rtt"]["mean"]
    assert cov["simd"] < cov["reno"]
    assert cov["aimd(alpha=0.31, beta=1/8)"] < cov["reno"]


def test_an_interval_of_a_goodput_ends_at_the_rate_of_the_link():
    repeats = [{"goodput_bps": rate, "mean_rtt_s": rate} for rate in (1e7, 4e7, 4.9e7)]
    figures = Row("reno", repeats, [], goodput_limit=5e7).figures
    assert 0 <= figures["goodput_bps"].low < 3.3e7 < figures["goodput_bps"].high <= 5e7
    assert figures["mean_rtt_s"].high > 5e7


def test_the_rate_of_a_link_limits_flows_that_cross_it_alone(comparison):
    assert comparison.network["rate_bps"] == 1e7
    assert {row.goodput_limit for row in comparison.rows_against} == {1e7}
    short = {"duration": "2s", "warmup": "0s"}
    several = cwnd.compare(["reno"], network="parking-lot", values=short, repeat=2)
    assert {row.goodput_limit for row in several.rows_alone} == {float("inf")}
    values = {"dumbbell.changes": [{"at": "1s", "rate": "20mbit"}]}
    varying = cwnd.compare(["reno"], **SMALL | {"time": "2s", "repeat": 1}, values=values)
    assert {row.goodput_limit for row in varying.rows_alone} == {float("inf")}


def test_a_bdp_is_that_of_the_queue():
    comparison = cwnd.compare(["reno"], **SMALL | {"time": "2s", "repeat": 1}, queue="1bdp")
    network = comparison.network
    assert network["bdp_packets"] == pytest.approx(1e7 * 0.04 / (8 * 1500))
    assert network["queue_limit"] == pytest.approx(network["bdp_packets"], abs=1)


def test_intervals_stay_inside_their_range(comparison):
    for row in [*comparison.rows_alone, *comparison.rows_against]:
        for name in ("share", "jain", "utilization", "loss_rate", "retransmission_rate"):
            if name in row.figures:
                figure = row.figures[name]
                assert 0 <= figure.low <= figure.mean <= figure.high <= 1
        for name in ("goodput_bps", "reference_goodput_bps"):
            if name in row.figures:
                assert 0 <= row.figures[name].low <= row.figures[name].high <= 1e7
    # Two seeds: Student's interval of a share reaches far below 0 and above 1.
    two = cwnd.compare(["simd"], **SMALL)
    share = two.rows_against[0].figures["share"]
    assert 0 <= share.low < share.mean < share.high <= 1
    assert two.verdicts[0].fairness == "undecided"


@pytest.mark.slow
def test_the_default_decides(comparison):
    """The default number of runs decides all but a share at a bound, see docs/metrics.md."""
    verdicts = cwnd.compare(["simd", "aiad"], time="60s").verdicts
    words = {word for v in verdicts for word in (v.fairness, v.smoothness, v.queue)}
    assert "undecided" not in words


def test_every_controller_gets_a_verdict(comparison):
    assert [v.controller for v in comparison.verdicts] == ["simd", "aimd(alpha=0.31, beta=1/8)"]
    assert all(v.sentence.endswith(".") for v in comparison.verdicts)


def test_the_command_repeats_it(comparison):
    words = shlex.split(comparison.rerun)
    assert words[:4] == ["cwnd", "compare", "simd", "aimd(alpha=0.31, beta=1/8)"]
    for option, value in [("--rate", "10mbit"), ("--rtt", "40ms"), ("--repeat", "3")]:
        assert words[words.index(option) + 1] == value


def test_every_pair_competes_once(command):
    """The matrix has each share, and its mirror image, of runs that the rerun command repeats."""
    found = cwnd.compare(["vegas", "cubic"], pairs=True, **SMALL)
    assert [(row.controller, row.against) for row in found.rows_pairs] == [("vegas", "cubic")]
    pair = found.rows_pairs[0]
    alone = {row.controller: row for row in found.rows_alone}
    for figures, own in zip(pair.repeats, alone["cubic"].repeats, strict=True):
        both = figures["goodput_bps"] + figures["reference_goodput_bps"]
        assert figures["share"] == pytest.approx(figures["goodput_bps"] / both)
        # The harm is to the second controller.
        harm = 1 - 2 * figures["reference_goodput_bps"] / own["goodput_bps"]
        assert figures["harm_goodput"] == pytest.approx(harm)
    for run in pair.results:
        names = [flow["controller"] for flow in run.measured_flows]
        assert names == ["vegas"] * 2 + ["cubic"] * 2
    names = ["reno", "vegas", "cubic"]
    assert set(found.share_of) == set(itertools.permutations(names, 2))
    assert found.shares.index.tolist() == names
    for one, other in itertools.combinations(names, 2):
        there, back = found.shares.loc[one, other], found.shares.loc[other, one]
        assert there["mean"] + back["mean"] == pytest.approx(1)
        assert there["low"] + back["high"] == pytest.approx(1)
        assert there["low"] <= there["mean"] <= there["high"]
    assert found.shares["reno"]["mean"].isna().tolist() == [True, False, False]
    (written,) = found.to_json()["pairs"]
    assert (written["controller"], written["against"]) == ("vegas", "cubic")
    assert written["share"]["mean"] == pair.figures["share"].mean
    words = shlex.split(found.rerun)
    assert "--pairs" in words
    assert json.loads(command(*words[1:], "--json").stdout)["pairs"] == [written]


def test_the_matrix_is_a_table_in_parts_and_a_heat_map(command):
    words = ["compare", "vegas", "cubic", *("--time", "3s", "--repeat", "2", "--pairs")]
    lines = command(*words).stdout.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("Share of the row"))
    assert lines[begin + 1].split() == ["1", "2", "3"]
    assert lines[begin + 3].split()[:2] == ["1", "reno"]
    found = cwnd.compare(["vegas", "cubic"], time="3s", repeat=2, pairs=True)
    page = compare_page(found)
    table = page.partition("Share of the row against the column")[2].partition("</table>")[0]
    for (one, other), share in found.share_of.items():
        side = "above" if share.mean > 0.5 else "below"
        cell = f'<td class="{side}" style="--heat:{100 * abs(share.mean - 0.5):.0f}%">'
        assert f"{cell}{share.mean:.3f}<small>" in table, (one, other)


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_the_terminal(comparison, width):
    """At 80 columns intervals were cut: 0.403–0.9…"""
    text = io.StringIO()
    console = tables._Console(file=text, width=width)
    columns = against_columns(comparison)
    tables._print_estimates(console, "Against", comparison.rows_against, columns)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for row in comparison.rows_against:
        for column in columns:
            figure = row.figures[column.name]
            cells = " ".join(lines).split()
            assert column.mean(figure) in cells
            assert column.interval(figure) in cells


SHORT = {
    "name": "short",
    "duration": "6s",
    "warmup": "1s",
    "dumbbell": {"rate": "10mbit", "delay": "10ms"},
    "flow": [
        {"controller": "reno", "count": 2},
        {
            "controller": "reno",
            "name": "web",
            "arrivals": {"load": 0.3, "sizes": "20kb"},
        },
    ],
}


def test_measures_are_those_of_the_controllers_flows():
    names = ["fct.p95.web", "completed", "goodput.min", "utilization", "slowdown.p50"]
    found = cwnd.compare(["vegas"], network=cwnd.Scenario(SHORT), repeat=2, measures=names)
    assert found.measures == names
    for row in [*found.rows_alone, *found.rows_against]:
        for run, figures in zip(row.results, row.repeats, strict=True):
            own = [f for f in run.measured_flows if f["controller"] == row.controller]
            others = [f for f in run.measured_flows if f not in own]
            assert bool(others) == bool(row.against)
            times = run.transfers(own).fct
            assert figures["fct_p95_s"] == metrics.spread(times).p95
            assert figures["fct.p95.web"] == pytest.approx(figures["fct_p95_s"])
            assert figures["completed"] == pytest.approx(np.isfinite(times).mean())
            assert figures["goodput.min"] == pytest.approx(min(run.goodputs_bps(own)))
            assert figures["slowdown.p50"] > 0
        assert row.figures["completed"].high <= 1
    titles = [column.title for column in against_columns(found)]
    assert [title for title in titles if title in names] == names
    assert {"FCT, p99", "resent", "RTT"} <= set(titles)
    # A measure that is a column already is shown once.
    shown = [column.name for column in alone_columns(found)]
    assert shown.count("utilization") == 1


def test_the_option_measure(command):
    words = ["compare", "reno", *("--time", "3s", "--repeat", "2", "--flows", "2")]
    words += ["--measure", "goodput.min", "--measure", "queue_delay.p50"]
    document = json.loads(command(*words, "--json").stdout)
    for row in [*document["alone"], *document["against"]]:
        assert 0 < row["goodput.min"]["mean"] <= 15e6
        assert 0 < row["queue_delay.p50"]["mean"] < row["queue_delay_p95_s"]["mean"]
    assert shlex.split(document["rerun"]).count("--measure") == 2
    assert "queue_delay.p50" in command(*words).stdout


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["fct.p9"], '"p9" is not allowed after fct'),
        (["speed"], 'unknown metric "speed"'),
        (["goodput.web"], r'"web" is not allowed .*\(reno alone\)'),
        (["fct", "fct"], "fct is listed twice"),
    ],
)
def test_a_wrong_measure_is_named(names, problem):
    with pytest.raises(ValueError, match=f"measure: {problem}"):
        cwnd.compare(["simd"], measures=names, **SMALL)


def test_two_controllers_have_no_more_pairs():
    with pytest.raises(ValueError, match="pairs: three controllers, the reference included"):
        cwnd.compare(["simd", "reno"], pairs=True, **SMALL)


def test_a_class_is_as_good_as_a_native_law():
    # Linux counts Reno's window in whole packets, and no other law's.
    comparison = cwnd.compare([Reno, "reno"], **SMALL, conventions="rfc")
    python, native = comparison.rows_alone
    assert python.controller == "python:Reno"
    for one, other in zip(python.results, native.results, strict=True):
        for flow, twin in zip(one.record["flows"], other.record["flows"], strict=True):
            np.testing.assert_array_equal(flow["window"], twin["window"])
            np.testing.assert_array_equal(flow["delivered"], twin["delivered"])


def test_a_class_sees_its_context():
    cwnd.compare([Timid], **SMALL)
    now, rtt, min_rtt, last_cut, packet = Timid.seen[-1]
    assert 0 <= last_cut <= now <= 10
    assert 0.04 <= min_rtt <= rtt * 1.2
    assert packet in (1448, 1500)


def test_a_class_may_be_the_reference():
    comparison = cwnd.compare(["simd"], reference=Reno, **SMALL)
    assert comparison.reference == "python:Reno"
    assert 0 < comparison.against.loc["simd", ("share", "mean")] < 1


def test_mistakes_in_a_class_come_back():
    class Broken:
        def grow(self, w, acked, cx):
            raise KeyError("no such thing")

        def cut(self, w, why, cx):
            return w / 2

    with pytest.raises(KeyError, match="no such thing"):
        cwnd.compare([Broken], **SMALL)


@pytest.mark.parametrize(("own", "kept"), [(True, 0.9), (False, 0.5), (None, 0.5)])
def test_a_class_decides_its_own_threshold(own, kept):
    calls = []

    class Law(Reno):
        def cut(self, w, why, cx):
            calls.append((why, w))
            return 0.9 * w

        def enter(self, w, cx):
            calls.append(("enter", w))

    if own is not None:
        Law.threshold = lambda self, cut, why: cut if own else None
    link = {"rate": "10mbit", "delay": "20ms", "queue": "50p", "loss": 0.05}
    # RACK and tail loss probes leave hardly any timeout.
    document = {"duration": "60s", "dumbbell": link, "tcp": {"conventions": "rfc5681"}}
    cwnd.run(cwnd.Scenario(document).add_flow(Law))
    thresholds = [
        (kept * before, after)
        for (why, before), (then, after) in itertools.pairwise(calls)
        if why == "timeout" and then == "enter" and kept * before > 2
    ]
    assert thresholds
    for expected, after in thresholds:
        assert after == pytest.approx(expected)


@pytest.mark.parametrize("own", [True, lambda self, cut, why: "yes"])
def test_mistakes_in_a_threshold_come_back(own):
    class Law(Reno):
        threshold = own

    with pytest.raises(cwnd.SpecError, match=r"^python:Law: threshold "):
        cwnd.compare([Law], **SMALL)


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), "wide", None])
def test_a_class_that_answers_nonsense(answer):
    class Wild:
        def grow(self, w, acked, cx):
            return answer

        def cut(self, w, why, cx):
            return w / 2

    with pytest.raises(cwnd.SpecError, match=r"^python:Wild: "):
        cwnd.compare([Wild], **SMALL)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rate": "15mbps"}, "rate"),
        ({"rate": 0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rtt": "-1s"}, "rtt"),
        ({"time": "soon"}, "time"),
        ({"queue": "blue"}, "queue"),
        ({"flows": 0}, "flows"),
        ({"flows": 3}, "flows"),
        ({"flows": 10**9}, "flows"),
        ({"repeat": 0}, "repeat"),
        ({"repeat": 10**9}, "repeat"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64 - 1, "repeat": 2}, f"seed: {2**64 - 1} is not .* for 2 repeats"),
        ({"rate": "1e300mbit"}, "rate: a rate is at most 10tbit$"),
        ({"reference": "renno"}, "renno"),
    ],
)
def test_mistakes_are_named(change, named):
    with pytest.raises(ValueError, match=named) as caught:
        cwnd.compare(["reno"], **(SMALL | change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("controllers", [[], ["reno", "reno"], ["aimd(1, 1/2)", "aimd"], ["x"]])
def test_impossible_lists(controllers):
    with pytest.raises(ValueError, match=r"at least one|twice|unknown"):
        cwnd.compare(controllers, **SMALL)


@pytest.mark.parametrize("queue", ["red", "red-ecn", "droptail", "20p", "64kb", "1.5bdp"])
def test_queues(queue):
    comparison = cwnd.compare(["simd"], **(SMALL | {"queue": queue}))
    row = comparison.rows_alone[0].figures
    assert row["utilization"].mean > 0.5
    if queue == "red-ecn":
        assert row["mark_rate"].mean > 0


def test_one_repeat_has_no_interval():
    comparison = cwnd.compare(["simd"], **(SMALL | {"repeat": 1}))
    assert not comparison.rows_against[0].figures["share"].known
    verdict = comparison.verdicts[0]
    assert {verdict.fairness, verdict.smoothness, verdict.queue} == {"undecided"}
    assert "undecided with one run" in verdict.sentence
    assert math.isnan(comparison.against.loc["simd", ("share", "low")])


@pytest.mark.parametrize(
    "change", [{"time": "100ms"}, {"rtt": "5s"}, {"rate": "10kbit"}, {"rtt": "10us"}]
)
def test_extreme_networks_end_well(change):
    comparison = cwnd.compare(["simd"], **(SMALL | change))
    json.dumps(comparison.to_json(), allow_nan=False)


@pytest.mark.slow
def test_plot(comparison, tmp_path):
    comparison.plot().savefig(tmp_path / "comparison.png")
    assert (tmp_path / "comparison.png").stat().st_size > 10_000


MIXED = """
name = "mixed"
duration = "10s"
warmup = "2s"

[dumbbell]
rate = "10mbit"
delay = "10ms"
queue = "droptail"

[[flow]]
controller = "simd"
name = "near"
start = "0s..1s"
rtt = "20ms"

[[flow]]
controller = "reno"
name = "far"
start = "0s..1s"
rtt = "100ms"

[[flow]]
controller = "reno"
name = "back"
reverse = true
measured = false
"""


@pytest.fixture
def mixed(tmp_path):
    path = tmp_path / "mixed.toml"
    path.write_text(MIXED)
    return path


def test_a_scenario_is_a_network(mixed):
    comparison = cwnd.compare(network=mixed, repeat=4)
    assert [row.controller for row in comparison.rows_alone] == ["reno", "simd"]
    assert [row.controller for row in comparison.rows_against] == ["simd"]
    (against,) = comparison.rows_against
    controllers = [
        {flow["name"]: flow["controller"] for flow in run.record["flows"]}
        for run in against.results
    ]
    near_first = {"back": "reno", "near": "simd", "far": "reno"}
    far_first = {"back": "reno", "far": "simd", "near": "reno"}
    assert controllers == [near_first, far_first, near_first, far_first]
    for repeat, run in zip(against.repeats, against.results, strict=True):
        (own,) = (flow for flow in run.measured_flows if flow["controller"] == "simd")
        assert repeat["goodput_bps"] == pytest.approx(run.goodput_bps(own))
    network = comparison.network
    assert network["file"] == str(mixed)
    assert network["scenario"] == "mixed"
    assert (network["flows"], network["turns"]) == (2, 2)
    assert network["bottleneck"] == "left-right"
    # The shortest round-trip time of the two is the median's lower half.
    assert 0.02 < network["rtt_s"] < 0.1
    scales = {tuple(run.scales) for run in comparison.results}
    assert scales == {tuple(network["scales_s"])}


@pytest.mark.slow
def test_turns_balance_unequal_paths(mixed):
    """A class that does as Reno does gets as much, though one path is five times as long."""
    values = {"duration": "60s", "dumbbell.queue": "20p"}
    comparison = cwnd.compare([Reno], network=mixed, repeat=10, values=values)
    (row,) = comparison.rows_against
    near, far = row.values("share")[::2], row.values("share")[1::2]
    assert min(near) > 0.6
    assert max(far) < 0.4
    share = row.figures["share"]
    assert share.n == 5
    assert share.low < 0.5 < share.high
    assert share.high - share.low < 0.1
    document = comparison.to_json()["against"][0]["share"]
    assert document["values"] == row.values("share")
    with pytest.raises(ValueError, match="repeat: 3 is odd"):
        cwnd.compare(["simd"], network=mixed, repeat=3)


def test_the_reference_against_itself(two):
    scenario = cwnd.Scenario.from_toml(two)
    comparison = cwnd.compare(["reno"], network=scenario, values={"duration": "8s"}, repeat=2)
    (row,) = comparison.rows_against
    goodputs = [comparison.results[0].goodput_bps(f) for f in comparison.results[0].measured_flows]
    assert row.values("goodput_bps")[0] == pytest.approx(sum(goodputs[:2]))
    assert row.values("reference_goodput_bps")[0] == pytest.approx(sum(goodputs[2:]))


def test_the_bottleneck_is_one_link_in_all_runs():
    """Of two links in a row, the busiest of the first run is the bottleneck of all."""
    chain = cwnd.Scenario(
        {
            "name": "chain",
            "duration": "8s",
            "warmup": "2s",
            "chain": {"routers": 3, "rate": "10mbit", "delay": "5ms", "queue": "20p"},
            "flow": [
                {"controller": "reno", "name": "long", "count": 2},
                {"controller": "reno", "name": "short", "cross": True},
            ],
        }
    )
    comparison = cwnd.compare(["simd", "vegas"], network=chain, repeat=2)
    name = comparison.network["bottleneck"]
    assert name in {"r1-r2", "r2-r3"}
    for row in [*comparison.rows_alone, *comparison.rows_against]:
        for repeat, run in zip(row.repeats, row.results, strict=True):
            (link,) = (link for link in run.record["links"] if link["name"] == name)
            assert repeat["utilization"] == link["utilization"]
    # Of four flows on two links, half belong to either controller.
    for run in comparison.rows_against[0].results:
        controllers = [flow["controller"] for flow in run.measured_flows]
        assert set(controllers) == {"simd", "reno"}
    assert comparison.rerun == ""
    assert comparison.no_rerun == "the network was built in Python and has no file"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rate": "5mbit"}, r"rate: the network is a scenario: .* --set dumbbell\.rate=15mbit"),
        ({"rtt": "100ms"}, r"rtt: .* --set flow\[0\]\.rtt="),
        ({"flows": 4}, r"flows: .* --set flow\[0\]\.count="),
        ({"time": "5s"}, r"time: .* --set duration="),
        ({"values": {"flow[5].count": 2}}, r"flow\[5\]"),
        ({"values": {"dumbbell.rate": "15"}}, r"set: dumbbell\.rate: a rate needs a unit"),
        ({"values": {"flow[1].count": 0}}, "does not have two measured flows"),
    ],
)
def test_mistakes_with_a_scenario(mixed, arguments, said):
    with pytest.raises(ValueError, match=said):
        cwnd.compare(["vegas"], network=mixed, **arguments)


@pytest.mark.parametrize("value", ["simd", 3])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("controllers", lambda value: cwnd.compare(value, **SMALL)),
        ("controllers", lambda value: cwnd.evaluate(value, out="cards")),
        ("measures", lambda value: cwnd.compare(["simd"], measures=value, **SMALL)),
        ("on", lambda value: cwnd.agree(cwnd.Scenario.from_toml(MIXED), on=value)),
        ("peers", lambda value: udt.listen(0, peers=value)),
        ("allow", lambda value: udt.listen(0, allow=value)),
    ],
)
def test_a_text_is_no_list(name, call, value):
    with pytest.raises(ArgumentError, match=f"^{name}: a list is needed, not {value!r}$"):
        call(value)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("test", lambda value: cwnd.evaluate(["simd"], test=value, out="cards")),
        ("objective", lambda value: cwnd.search("simd", objective=value, out="found")),
    ],
)
def test_what_is_neither_a_text_nor_a_list(name, call):
    with pytest.raises(ArgumentError, match=f"^{name}: a list is needed, not 3$"):
        call(3)


def test_the_seed_is_that_of_the_scenario(mixed):
    scenario = cwnd.Scenario.from_toml(mixed).with_values({"seed": 7})
    comparison = cwnd.compare(["vegas"], network=scenario, repeat=2)
    assert comparison.network["seed"] == 7
    assert [run.seed for run in comparison.rows_alone[0].results] == [7, 8]
    assert cwnd.compare(["vegas"], network=scenario, repeat=2, seed=3).network["seed"] == 3


def test_flows_that_never_start_have_no_figures(mixed):
    comparison = cwnd.compare(["vegas"], network=mixed, values={"flow[0].start": "1h"}, repeat=2)
    document = comparison.to_json()
    assert document["alone"][0]["limited_window"]["mean"] is not None
    never = {"flow[0].start": "1h", "flow[1].start": "1h"}
    document = cwnd.compare(["vegas"], network=mixed, values=never, repeat=2).to_json()
    assert document["alone"][0]["limited_application"]["mean"] is None


def test_values_replace_those_of_the_dumbbell():
    values = {"dumbbell.rate": "5mbit", "tcp.packet": "1000b"}
    comparison = cwnd.compare(["simd"], values=values, **SMALL)
    assert comparison.network["rate_bps"] == 5e6
    assert comparison.network["packet_bytes"] == 1000
    assert "--set dumbbell.rate=5mbit --set tcp.packet=1000b" in comparison.rerun


TRACED = ("dumbbell.trace=opportunities", "dumbbell.back.trace=opportunities")


@pytest.mark.parametrize(
    "assignments",
    [
        TRACED,
        ('dumbbell.model={kind="cellular"}',),
        ('dumbbell.model={kind="wifi"}',),
        ("tcp.conventions=rfc",),
    ],
    ids=lambda assignments: assignments[0].partition("=")[2],
)
def test_values_take_the_place_of_defaults(command, tmp_path, assignments):
    """The command that repeats the comparison has no option that the values refuse."""
    (tmp_path / "opportunities").write_text("1\n2\n3\n")
    words = [word for each in assignments for word in ("--set", each)]
    words += ["--time", "2s", "--flows", "2", "--repeat", "1", "--json"]
    done = command("compare", "reno", "simd", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    again = command(*shlex.split(document["rerun"])[1:], "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["alone"] == document["alone"]


def test_a_rate_beside_a_trace_is_refused(command, tmp_path):
    (tmp_path / "opportunities").write_text("1\n")
    words = [word for each in TRACED for word in ("--set", each)]
    done = command("compare", "reno", *words, "--rate", "15mbit", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "cwnd: --rate: `trace` sets the rate of the link\n"


@pytest.mark.parametrize("queue", [{"kind": "red", "limit": 40}, "20p"])
def test_the_command_has_the_queue(capsys, queue):
    comparison = cwnd.compare(["simd"], **(SMALL | {"queue": queue, "repeat": 1}))
    assert command_line([*shlex.split(comparison.rerun)[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["alone"] == comparison.to_json()["alone"]


def test_a_short_round_trip_has_no_more_samples_than_are_kept():
    comparison = cwnd.compare(["simd"], **(SMALL | {"rtt": "1us", "repeat": 1}))
    (run,) = comparison.rows_alone[0].results
    assert len(run.record["flows"][0]["window"]) <= 2401


def test_loss_and_warm_up():
    comparison = cwnd.compare(["simd"], **SMALL, loss="1%", warmup=0, queue="infinite")
    network = comparison.network
    assert (network["loss"], network["warmup_s"]) == (0.01, 0.0)
    assert 0.005 < comparison.alone.loc["reno", ("loss_rate", "mean")] < 0.015
    assert "--warmup 0ns --loss 0.01" in comparison.rerun
    assert comparison.to_json()["network"]["queue_limit"] is None
    # No queue is full where it has no end.
    assert "of a full queue" not in comparison.verdicts[0].sentence


def test_round_trip_times_are_dealt_evenly():
    comparison = cwnd.compare(["simd"], **(SMALL | {"rtt": "20ms,80ms", "flows": 8, "repeat": 1}))
    (run,) = comparison.rows_against[0].results
    for controller in ("simd", "reno"):
        trips = [f["min_rtt_s"] for f in run.measured_flows if f["controller"] == controller]
        near, far = [t for t in trips if t < 0.05], [t for t in trips if t > 0.079]
        assert (len(near), len(far)) == (2, 2)
    assert comparison.network["rtt"] == "20ms,80ms"
    assert comparison.network["rtt_s"] == pytest.approx(0.05)
    with pytest.raises(ValueError, match="flows: 4 is not a multiple of 6"):
        cwnd.compare(["simd"], **(SMALL | {"rtt": "20ms,80ms,40ms"}))


def test_each_flow_draws_its_round_trip_time():
    comparison = cwnd.compare(["simd"], **(SMALL | {"rtt": "20ms..200ms", "flows": 20}))
    run = comparison.rows_alone[0].results[0]
    trips = sorted(flow["min_rtt_s"] for flow in run.measured_flows)
    assert trips[0] > 0.02
    assert trips[-1] > 2 * trips[0]
    assert comparison.network["rtt"] == "20ms..200ms"


@pytest.mark.slow
def test_auto_adds_seeds_until_all_is_decided():
    law = "simd(reset=avoidance)"
    done, small = [], SMALL | {"conventions": "ns2"}
    sure = cwnd.compare([law], progress=done.append, **(small | {"repeat": "auto"}))
    repeat = sure.network["repeat"]
    assert sure.undecided == []
    assert repeat in (20, 40)
    assert f"--repeat {repeat} " in sure.rerun
    assert done == sorted(done)
    assert done[-1] == 1.0
    assert cwnd.compare([law], **(small | {"repeat": repeat // 2})).undecided
    assert cwnd.compare([law], **(small | {"repeat": repeat})).to_json() == sure.to_json()


def test_auto_has_a_limit():
    """Two flows share a second of a slow link: chance decides which gets more."""
    small = {"rate": "500kbit", "rtt": "20ms", "queue": "droptail", "flows": 2, "time": "1s"}
    comparison = cwnd.compare(["reno"], repeat="auto", **small)
    assert comparison.network["repeat"] == 80
    assert comparison.undecided == ["fairness of reno"]
    for row in [*comparison.rows_alone, *comparison.rows_against]:
        assert [run.seed for run in row.results] == list(range(1, 81))


def test_seeds_of_auto_must_exist():
    with pytest.raises(ValueError, match="seed: "):
        cwnd.compare(["reno"], **(SMALL | {"repeat": "auto", "seed": 2**64 - 20}))


def test_why_there_is_no_command(mixed):
    class Inner(Reno):
        pass

    comparison = cwnd.compare([Inner], **(SMALL | {"repeat": 1}))
    assert comparison.rerun == ""
    assert comparison.no_rerun == "python:Inner is not a class at the top of a Python file"
    assert comparison.to_json()["rerun"] is None
    comparison.report(mixed.with_suffix(".html"))
    assert f"No command: {comparison.no_rerun}." in mixed.with_suffix(".html").read_text()
    top = cwnd.compare([Reno], **(SMALL | {"repeat": 1}))
    assert "test_compare.py:Reno --reference reno" in top.rerun
    scenario = cwnd.Scenario.from_toml(mixed)
    assert cwnd.compare(network=scenario, repeat=2).no_rerun


def test_the_command_of_auto_has_its_samples(monkeypatch, capsys):
    """`auto` leaves room for the samples of 80 repeats: the command says how long they are."""
    monkeypatch.setattr(cwnd._runs.networks, "MAX_SAMPLES", 80 * 3 * 4 * 110)
    small = SMALL | {"conventions": "ns2", "repeat": "auto"}
    sure = cwnd.compare(["vegas"], **small)
    assert sure.network["repeat"] < 80
    words = shlex.split(sure.rerun)
    assert words[words.index("--set") + 1].startswith("sample=")
    assert command_line([*words[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    document = sure.to_json()
    assert again["alone"] == document["alone"]
    assert again["against"] == document["against"]


@pytest.mark.parametrize("name", ["rate", "rtt", "queue", "time", "warmup"])
def test_a_number_without_a_unit_is_refused(name):
    with pytest.raises(ValueError, match=rf'^{name}: a \w+ needs a unit: write text such as "'):
        cwnd.compare(["simd"], **{name: 40})
    with pytest.raises(ValueError, match=r"^set: dumbbell\.delay: a time needs a unit"):
        cwnd.compare(["simd"], values={"dumbbell.delay": 40})
