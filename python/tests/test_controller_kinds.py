"""Window laws, rate laws and whole controllers written in Python: results, hooks, errors."""

import math
import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import cwnd
from cwnd import SpecError, events, udt
from cwnd._controllers.registry import describe
from cwnd._native import controller_hooks
from cwnd.controller import (
    ControllerHooks,
    Cut,
    Need,
    Output,
    RateHooks,
    WindowHooks,
    controller_kind,
    read_controller,
)
from cwnd.errors import ControllerWarning
from cwnd.model import law

NANOS = 1e9
CRATE = Path(__file__).parents[2] / "crates" / "cwnd" / "src"


class Reno:
    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w / 2


class Vegas:
    """The registry's ``vegas``."""

    def __init__(self, alpha=2.0, beta=4.0, gamma=1.0):
        self.alpha, self.beta, self.gamma = alpha, beta, gamma
        self.round_began, self.least, self.queued = 0.0, math.inf, None

    def grow(self, w, acked, cx):
        queued, self.queued = self.queued, None
        if queued is None:
            return w
        diff = w * queued
        if diff < self.alpha:
            return w + 1
        return min(max(w - 1, 2.0), w) if diff > self.beta else w

    def cut(self, w, why, cx):
        return w / 2

    def enter(self, w, cx):
        self.round_began, self.least, self.queued = cx.now, math.inf, None

    def observe(self, acked, cx):
        if acked.rtt is not None:
            self.least = min(self.least, acked.rtt)
        if acked.sent_at < self.round_began:
            return
        if cx.rtt is not None and 0 < self.least < math.inf:
            self.queued = 1 - cx.min_rtt / self.least
            self.round_began, self.least = cx.now, math.inf

    def leave_slow_start(self, w, cx):
        queued, self.queued = self.queued, None
        return queued is not None and w * queued > self.gamma

    def gauges(self):
        return {"queued": math.nan if self.queued is None else self.queued}


class Daimd:
    """The registry's ``daimd(delay=off)``."""

    interval = 0.01
    clock = "timer"
    uses_capacity = True

    def __init__(self):
        self.capacity = self.arrival = self.flow_window = None

    def tick(self, rate, cx):
        capacity = 0.0 if self.capacity is None else self.capacity * 8.0 * cx.packet
        spare = capacity - rate * 8.0 * cx.packet
        if spare <= 0:
            return rate
        packets = 10.0 ** (math.ceil(math.log10(spare)) - 9.0) * (1500.0 / cx.packet)
        return rate + packets * NANOS / 1e7

    def cut(self, rate, fresh, why, cx):
        return (1.0 - 1.0 / 9.0) * rate if fresh else rate

    def start(self, w, cx):
        if self.arrival is not None:
            return self.arrival
        rtt = 0 if cx.rtt is None else round(cx.rtt * NANOS)
        return w * NANOS / (rtt + 10_000_000)

    def observe(self, report, cx):
        if report.capacity is not None:
            self.capacity = report.capacity
        if report.arrival is not None:
            self.arrival = report.arrival
            arrived = report.arrival * ((10_000_000 + round(report.rtt * NANOS)) / NANOS)
            old = self.flow_window
            self.flow_window = arrived if old is None else 0.875 * old + (1 - 0.875) * arrived

    def window(self, cx):
        return self.flow_window

    def gauges(self):
        values = {"arrival": self.arrival, "capacity": self.capacity}
        return {name: math.nan if value is None else value for name, value in values.items()}


class WholeReno:
    """The registry's ``reno`` with the machine around it, by the rules of the RFCs."""

    def begin(self, settings):
        self.window, self.largest = settings.initial_window, settings.max_window
        self.limit, self.ssthresh = settings.slow_start_limit, math.inf
        self.recovering, self.last_cut, self.saved, self.last = False, 0.0, None, None

    def on(self, now, event):
        match event:
            case events.Acked():
                self.acked(event)
            case events.Lost(sent_at=sent_at) if not self.recovering and sent_at >= self.last_cut:
                self.shrink(now, "loss")
                self.recovering = True
            case events.Marked(sent_at=sent_at) if not self.recovering and sent_at >= self.last_cut:
                self.shrink(now, "mark")
            case events.Recovered():
                self.recovering = False
            case events.Timeout():
                self.recovering = False
                self.shrink(now, "timeout")
            case events.Undo() if self.saved is not None:
                self.recovering = False
                window, self.ssthresh = self.saved
                self.window, self.saved = max(window, self.window), None

    def acked(self, acked):
        if self.recovering or acked.echo or acked.credit == 0:
            return
        full = acked.limit == "receiver" and self.window >= self.largest
        if acked.limit not in {"window", "pacing"} and not full:
            return
        if self.window < self.ssthresh:
            self.window = min(self.window + min(acked.credit, self.limit), self.ssthresh)
        else:
            self.window += acked.credit / self.window
        self.window = min(self.window, self.largest)

    def shrink(self, now, why):
        before = min(self.window, self.largest)
        self.saved = self.window, self.ssthresh
        self.ssthresh = max(before / 2, 2.0)
        self.window = 1.0 if why == "timeout" else min(self.ssthresh, before)
        self.last_cut = now
        self.last = Cut(why, before, self.window)

    def output(self):
        return Output(self.window)

    def take_cut(self):
        last, self.last = self.last, None
        return last

    def gauges(self):
        return {"ssthresh": self.ssthresh}


class Steady:
    """Sends 200 packets per second, and asks for a tick each 100 ms."""

    needs = ("delivery_rate",)

    def __init__(self):
        self.seen, self.wake, self.rate = [], 0.1, math.nan

    def begin(self, settings):
        self.seen.append((0.0, settings))

    def on(self, now, event):
        self.seen.append((now, event))
        if isinstance(event, events.Tick):
            self.wake = now + 0.1
        if isinstance(event, events.Acked) and event.delivery is not None:
            self.rate = event.delivery.rate or self.rate

    def output(self):
        return 1000.0, 200.0, self.wake

    def gauges(self):
        return {"delivery": self.rate}


def dumbbell(time="6s"):
    # Linux counts Reno's window in whole packets; PRR is for window laws only.
    scenario = cwnd.Scenario.dumbbell(rate="5mbit", rtt="40ms", time=time, conventions="rfc5681")
    return scenario.with_values({"tcp.overhead": "0s"})


def same_flows(ours, theirs):
    for one, other in zip(ours.record["flows"], theirs.record["flows"], strict=True):
        for name in ("window", "rtt", "ssthresh", "sent", "delivered"):
            assert np.array_equal(one[name], other[name], equal_nan=True), name
        assert one["gauges"].keys() == other["gauges"].keys()
        for name, values in one["gauges"].items():
            assert np.array_equal(values, other["gauges"][name], equal_nan=True), name
        for name in ("time", "before", "after"):
            assert np.array_equal(one["cuts"][name], other["cuts"][name]), name
        assert one["cuts"]["cause"] == other["cuts"]["cause"]


@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        (Reno, "reno", {}),
        (Vegas, "vegas", {}),
        (Daimd, "daimd(delay=off)", {}),
        (WholeReno, "reno", {}),
        # Over UDT slow start is HyStart++, which the whole controller does not have.
        (Reno, "reno", {"protocol": "udt"}),
        (Vegas, "vegas", {"protocol": "udt"}),
        (Daimd, "daimd(delay=off)", {"protocol": "udt"}),
    ],
)
def test_a_twin_in_python_gives_the_results_of_the_registry(ours, theirs, options):
    twin = cwnd.run(dumbbell().add_flow(ours, count=2, **options))
    built_in = cwnd.run(dumbbell().add_flow(theirs, count=2, **options))
    # Vegas fills no queue.
    cut = any(flow["cuts"]["time"].size for flow in built_in.record["flows"])
    assert cut or theirs == "vegas"
    same_flows(twin, built_in)


def test_gauges_stand_in_the_tables():
    from cwnd.tables import samples

    columns = samples(cwnd.run(dumbbell().add_flow(Daimd).add_flow(Steady))).column_names
    assert {"arrival", "capacity", "delivery", "rate"} <= set(columns)


def test_a_capture_shows_the_packets_of_a_rate_law_as_datagrams(tmp_path):
    paths = tmp_path / "twin.pcap", tmp_path / "built-in.pcap"
    for controller, path in zip((Daimd, "daimd(delay=off)"), paths, strict=True):
        cwnd.run(dumbbell("1s").add_flow(controller), pcap=("left-right", path))
    one, other = (path.read_bytes() for path in paths)
    assert len(one) > 1000
    assert one == other


def logged(base, *hooks):
    """A subclass whose hooks append their arguments and answers to ``calls``, and that list."""
    calls = []

    def log(name):
        def hook(self, *arguments):
            method = getattr(base, name, None)
            answer = method(self, *arguments) if method else None
            calls.append((name, *arguments, answer))
            return answer

        return hook

    return type("Logged", (base,), {name: log(name) for name in hooks}), calls


def of(calls, name):
    return [call[1:] for call in calls if call[0] == name]


def test_a_window_laws_hooks_are_called_with_the_values_of_the_run():
    made, calls = logged(Reno, "grow", "cut", "threshold", "enter", "round", "observe")
    made.__copy__ = lambda self: self
    result = cwnd.run(dumbbell().add_flow(made))
    record = result.record["flows"][0]
    cuts = of(calls, "cut")
    times = record["cuts"]["time"]
    assert [w for w, *_ in cuts] == list(record["cuts"]["before"])
    assert [cx.now for _, _, cx, _ in cuts] == list(times)
    assert [why for _, why, *_ in cuts] == record["cuts"]["cause"]
    assert cuts[0][2].slow_start
    assert [cx.last_cut for _, _, cx, _ in cuts[1:]] == list(times[:-1])
    assert [(cut, why) for cut, why, _ in of(calls, "threshold")] == [
        (cut, why) for _, why, _, cut in cuts
    ]
    # Congestion avoidance begins at the answer of a cut: at once, or after a slow start.
    entered = {w for w, *_ in of(calls, "enter")}
    followed = pairwise(cuts)
    recovered = {one[-1] for one, other in followed if (one[1], other[1]) == ("loss", "loss")}
    assert recovered
    assert recovered <= entered
    assert entered <= {max(cut, 2.0) for *_, cut in cuts}
    rounds = of(calls, "round")
    spans = np.subtract.outer([0.0, *times], [0.0, *times])
    assert all(np.isclose(spans, finished.took).any() for finished, *_ in rounds)
    assert all(finished.lost > 0 and finished.sent > 0 for finished, *_ in rounds)
    assert sum(finished.sent for finished, *_ in rounds) <= record["packets_sent"]
    acks = of(calls, "observe")
    acked = sum(acked.packets for acked, *_ in acks)
    assert record["delivered"][-1] - 9 <= acked <= record["packets_sent"]
    assert {acked.limit for acked, *_ in acks} <= {"window", "receiver", "application", "pacing"}
    for acked, cx, _ in acks:
        assert acked.rtt is None or cx.now - acked.sent_at == pytest.approx(acked.rtt, abs=1e-3)
        assert acked.delivery is None
        assert cx.packet == record["packet_bytes"]
        assert cx.min_rtt >= 0.04 - 1e-9
    assert all(acked > 0 for _, acked, *_ in of(calls, "grow"))


def marking():
    """A network whose queue marks above five packets."""
    step = {"limit": "200p", "min": "5p", "max": "5p", "gentle": False, "weight": 1}
    return cwnd.Scenario.dumbbell(
        rate="20mbit",
        rtt="20ms",
        time="4s",
        queue={"kind": "red", "ecn": True, **step},
        conventions="linux",
    ).with_values({"tcp.ecn": True})


@pytest.mark.parametrize("needing", [{"needs_ecn": True}, {"needs": ("ecn",)}], ids=str)
def test_the_syn_of_a_controller_that_needs_ecn_is_capable_of_it(needing, tmp_path):
    captures = []
    for members in ({}, needing):
        made = type("Needing", (WholeReno if "needs" in needing else Reno,), members)
        captures.append(tmp_path / f"{len(captures)}.pcap")
        cwnd.run(marking().add_flow(made), pcap=("left-right", captures[-1]))
    plain, capable = (capture.read_bytes() for capture in captures)
    # The ECN field (RFC 3168) of the first packet, after the headers of the file and the packet.
    assert (plain[41], capable[41]) == (0x00, 0x02)


def test_a_law_may_leave_marks_unanswered():
    class Careful(Reno):
        def answers_mark(self, cx):
            return cx.now - cx.last_cut > 1.0

    spaces = []
    for each in (Reno, Careful):
        record = cwnd.run(marking().add_flow(each)).record["flows"][0]
        assert record["packets_marked"] > 0
        cuts = zip(record["cuts"]["time"], record["cuts"]["cause"], strict=True)
        spaces.append(np.diff([at for at, why in cuts if why == "mark"]).min())
    assert spaces[0] < 1 < spaces[1]


def test_a_law_may_grow_after_a_mark():
    made, calls = logged(Reno, "grow", "cut")
    made.__copy__ = lambda self: self
    grown = []
    for grows in (False, True):
        calls.clear()
        made.grows_after_mark = grows
        cwnd.run(marking().with_values({"tcp.accecn": True}).add_flow(made))
        cuts = [cx.now for _, why, cx, _ in of(calls, "cut") if why == "mark"]
        times = [cx.now for _, _, cx, _ in of(calls, "grow")]
        grown.append(
            sum(any(cut < time < cut + 0.01 for time in times) for cut in cuts) / len(cuts)
        )
    assert grown[1] > grown[0]


def test_a_law_adopts_the_rules_of_the_stack_and_hears_of_its_reductions():
    made, calls = logged(Reno, "adopt", "reduced")
    made.__copy__ = lambda self: self
    idle = {"source": {"kind": "on_off", "on": "500ms", "off": "3s"}}
    for conventions in ("rfc", "linux"):
        scenario = dumbbell("8s").with_values({"tcp.conventions": conventions})
        cwnd.run(scenario.add_flow(made, **idle))
    assert [rules.whole_packets for rules, _ in of(calls, "adopt")] == [False, True]
    assert all(rules.least_window == 1 for rules, _ in of(calls, "adopt"))
    assert of(calls, "reduced")
    assert all(w >= 1 for w, _ in of(calls, "reduced"))


def test_a_rate_law_has_a_least_rate():
    class Shrinks(Daimd):
        least = 50.0

        def tick(self, rate, cx):
            return 0.0

    with pytest.warns(ControllerWarning, match="tick: the answer is less than the least rate"):
        record = cwnd.run(dumbbell().add_flow(Shrinks)).record["flows"][0]
    rates = record["gauges"]["rate"]
    assert rates[-1] == 50.0


def methods(trait):
    """The methods of a trait of Rust."""
    text = "".join((CRATE / name).read_text() for name in ("law.rs", "controller.rs"))
    (body,) = re.findall(rf"^pub trait {trait}\b.*?^}}", text, flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"^    fn (\w+)", body, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("kind", "trait", "hooks"),
    [
        ("window", "WindowLaw", WindowHooks),
        ("rate", "RateLaw", RateHooks),
        ("whole", "Controller", ControllerHooks),
    ],
)
def test_the_hooks_are_those_of_the_traits(kind, trait, hooks):
    ((required, optional),) = [hooks for name, _, *hooks in controller_hooks() if name == kind]
    # A whole controller of Rust begins by its constructor.
    assert {*required, *optional} - {"begin"} == methods(trait)
    assert {name for name in vars(hooks) if not name.startswith("_")} == set(optional)
    documented = (CRATE.parents[2] / "docs" / "controllers.md").read_text()
    titles = {"window": "Window law", "rate": "Rate law", "whole": "Whole controller"}
    section = documented.partition(f"### {titles[kind]}\n")[2].partition("\n\n`")[0]
    rows = re.findall(r"^\| (`.*?) \|", section.partition("###")[0], flags=re.MULTILINE)
    assert {*re.findall(r"`(\w+)", " ".join(rows))} == {*required, *optional}


def test_the_needs_are_those_of_rust():
    body = (CRATE / "controller.rs").read_text().partition("pub struct Needs {")[2]
    fields = re.findall(r"pub (\w+): bool", body.partition("}")[0])
    assert set(get_args(Need)) == set(fields)
    for name in fields:
        needing = type("Needing", (WholeReno,), {"needs": (name,)})
        protocol = {"protocol": "udt"} if name in {"reports", "capacity"} else {}
        cwnd.run(dumbbell("1s").add_flow(needing, **protocol))


MISSPELT = """
import functools

class Law:
    needs_ec = True

    def grow(self, w, acked, cx):
        return w + self.rescaled + getattr(self, "enters")(w)

    def cut(self, w, why, cx):
        return w / 2

    def answers_marks(self, cx):
        return False

    def losses(self, lost, rate, cx):
        pass

    def cuts(self):
        pass

    def observed(self, acked, cx):
        pass

    def enters(self, w):
        return w

    def rounds(self):
        return 1

    @functools.cached_property
    def rescaled(self):
        return self.rounds()
"""


def test_members_that_are_never_used_are_said_once(tmp_path):
    # Of each file, although their texts and lines are equal.
    for name in ("one.py", "other.py"):
        file = tmp_path / name
        file.write_text(MISSPELT)
        with pytest.warns(ControllerWarning) as caught:
            read_controller(f"{file}:Law")
        assert [str(each.message) for each in caught] == [
            "needs_ec is never used: a window law has needs_ecn",
            "answers_marks is never used: a window law has answers_mark",
            "losses is never called: it is a hook of a rate law, and this is a window law",
            "observed is never used: a window law has observe",
        ]
        assert {each.filename for each in caught} == {str(file)}
        lines = MISSPELT.splitlines()
        assert "def answers_marks" in lines[caught[1].lineno - 1]
        read_controller(f"{file}:Law")


def test_a_class_without_a_file_runs_and_is_warned_of():
    names = {"__name__": "nowhere"}
    exec(
        "class Law:\n"
        "    uses_deliveryrate = True\n"
        "    def __init__(self):\n"
        "        self.cut = lambda w, why, cx: 2 * w\n"
        "    def grow(self, w, acked, cx):\n"
        "        return w + acked / w\n"
        "    def cut(self, w, why, cx):\n"
        "        return w\n",
        names,
    )
    with pytest.warns(ControllerWarning, match="cut: the answer is more than the window"):
        cwnd.run(dumbbell("2s").add_flow(names["Law"]))


def test_an_error_keeps_its_own_notes():
    class Noting(Reno):
        def cut(self, w, why, cx):
            problem = RuntimeError("no cut")
            problem.__notes__ = ["its own"]
            raise problem

    with pytest.raises(RuntimeError) as caught:
        cwnd.run(dumbbell("2s").add_flow(Noting))
    assert caught.value.__notes__ == ["its own", "in dumbbell with python:Noting, seed 1"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cut": lambda _, w, why, cx: w + 1}, "cut: the answer is more than the window"),
        ({"cut": lambda _, w, why, cx: -w}, "cut: the answer is negative"),
        ({"grow": lambda _, w, acked, cx: 0.5}, "grow: the answer is less than one packet"),
    ],
)
def test_an_answer_that_is_changed_is_said_once(change, text):
    with pytest.warns(ControllerWarning) as caught:
        cwnd.run(dumbbell("2s").add_flow(type("Changed", (Reno,), change)))
    (only,) = caught
    assert str(only.message).startswith(text)
    assert only.filename == __file__


def test_a_window_of_less_than_a_packet_is_said():
    class Small(WholeReno):
        def output(self):
            return Output(0.5)

    with pytest.warns(ControllerWarning, match="output: the window is less than one packet"):
        cwnd.run(dumbbell("1s").add_flow(Small))


def test_a_threshold_of_the_law_replaces_the_halving():
    class Cautious(Reno):
        def threshold(self, cut, why):
            return 3.0

    record = cwnd.run(dumbbell().add_flow(Cautious)).record["flows"][0]
    assert set(record["cuts"]["after"]) == {3.0}


@pytest.mark.parametrize("kind", ["attribute", "method"])
def test_a_window_law_can_ask_for_delivery_rates(kind):
    made, calls = logged(Reno, "observe")
    made.uses_delivery_rate = True if kind == "attribute" else lambda _self: True
    made.__copy__ = lambda self: self
    cwnd.run(dumbbell().add_flow(made))
    samples = [acked.delivery for acked, *_ in of(calls, "observe") if acked.delivery]
    rates = [sample.rate for sample in samples if sample.rate is not None]
    assert max(rates) == pytest.approx(5e6 / 8 / 1500, rel=0.1)
    last = samples[-1]
    assert last.interval == max(last.send_elapsed, last.ack_elapsed)
    assert last.rate == pytest.approx(last.delivered / last.interval)


def test_a_law_decides_whether_a_timeout_ends_its_round():
    ended, timeouts = {}, 0
    for ends in (True, False):
        made, calls = logged(Reno, "cut", "round")
        made.timeout_ends_round = ends
        made.__copy__ = lambda self: self
        cwnd.run(dumbbell("20s").add_flow(made).with_values({"dumbbell.loss": 0.15}))
        timeouts = sum(why == "timeout" for _, why, *_ in of(calls, "cut"))
        ended[ends] = len(of(calls, "round"))
    assert timeouts > 0
    assert ended[True] > ended[False] > 0


def test_a_rate_laws_hooks_are_called_with_the_values_of_the_run():
    hooks = ("tick", "cut", "start", "observe", "losses", "window")
    made, calls = logged(Daimd, *hooks)
    result = cwnd.run(dumbbell().add_flow(made))
    record = result.record["flows"][0]
    assert len(of(calls, "start")) == 1
    cuts = [(rate, cx) for rate, fresh, why, cx, after in of(calls, "cut") if after < rate]
    assert [rate for rate, _ in cuts] == list(record["cuts"]["before"])
    assert [cx.now for _, cx in cuts] == list(record["cuts"]["time"])
    times = [cx.now for _, cx, _ in of(calls, "tick")]
    assert min(np.diff(times)) >= 0.01 - 1e-9
    assert sum(lost.packets for lost, *_ in of(calls, "losses")) == record["packets_lost"]
    reports = [report for report, *_ in of(calls, "observe")]
    known = [report.capacity for report in reports if report.capacity is not None]
    assert known[-1] == pytest.approx(5e6 / 8 / 1500, rel=0.1)
    assert all(report.rtt >= 0.04 - 1e-9 for report in reports)
    assert of(calls, "window")


def test_a_rising_delay_is_a_signal_of_a_rate_law():
    class Delayed(Daimd, RateHooks):
        def delay_rises(self, cx):
            return cx.now - cx.last_cut > 0.5

    result = cwnd.run(dumbbell().add_flow(Delayed))
    causes = result.record["flows"][0]["cuts"]["cause"]
    assert causes.count("delay") >= 8
    Delayed.delay_rises = lambda self, cx: None
    with pytest.raises(SpecError, match=r"delay_rises.*the answer is True or False"):
        cwnd.run(dumbbell().add_flow(Delayed))


def test_a_whole_controller_may_need_reports():
    class Reported(Steady):
        needs = ("reports", "capacity")

    made = Reported()
    cwnd.run(dumbbell().add_flow(lambda_of(made)))
    reports = [event for _, event in made.seen if isinstance(event, events.Report)]
    assert not any(isinstance(event, events.Acked) for _, event in made.seen)
    assert sum(report.packets for report in reports) == pytest.approx(200 * 6, abs=20)
    assert reports[-1].arrival == pytest.approx(200, rel=0.01)
    assert reports[-1].capacity == pytest.approx(5e6 / 8 / 1500, rel=0.1)


def test_a_tick_is_followed_by_a_later_wake_up():
    class Stuck(Steady):
        def output(self):
            return 10.0, None, 0.1

    with pytest.raises(SpecError, match=r"a wake-up time that is not after the Tick at 0\.1 s\n"):
        cwnd.run(dumbbell().add_flow(Stuck))


def test_a_whole_controller_sees_every_event_and_sets_pace_and_timer():
    made = Steady()
    result = cwnd.run(dumbbell().add_flow(lambda_of(made)))
    record = result.record["flows"][0]
    assert isinstance(made.seen[0][1], events.Settings)
    times = [now for now, _ in made.seen]
    assert times == sorted(times)
    ticks = [now for now, event in made.seen if isinstance(event, events.Tick)]
    assert np.diff(ticks) == pytest.approx(0.1, abs=1e-6)
    assert len(ticks) == pytest.approx(59, abs=1)
    # The handshake takes a round-trip time.
    assert record["packets_sent"] == pytest.approx(200 * (6 - 0.04), abs=2)
    acks = [event for _, event in made.seen if isinstance(event, events.Acked)]
    assert acks[-1].delivery.rate == pytest.approx(200, rel=0.01)
    assert record["gauges"]["delivery"][-1] == pytest.approx(200, rel=0.01)


def lambda_of(made):
    """A factory of one object, with a name."""

    def factory():
        return made

    return factory


class Fast(Steady):
    def output(self):
        return 100.0, 10_000.0, self.wake


@pytest.mark.parametrize("made", [Daimd, WholeReno, Fast])
def test_udt_sockets_are_driven_by_every_kind(made, transfer):
    assert transfer(made, 1_000_000) == 1_000_000


def test_kinds_are_recognised_by_methods():
    assert [controller_kind(made()) for made in (Reno, Daimd, Steady)] == [
        "window",
        "rate",
        "whole",
    ]
    assert [describe(made).kind for made in (Reno, Daimd, Steady)] == ["window", "rate", "whole"]


def test_inherited_hooks_are_not_called():
    class Plain(Reno, WindowHooks):
        pass

    class Rated(Daimd, RateHooks):
        pass

    class Own(WholeReno, ControllerHooks):
        pass

    for made, known in ((Plain, "reno"), (Rated, "daimd(delay=off)"), (Own, "reno")):
        same_flows(cwnd.run(dumbbell().add_flow(made)), cwnd.run(dumbbell().add_flow(known)))


def test_models_step_rate_laws_and_refuse_whole_controllers():
    assert law.rounds(Daimd, 10, 3, capacity=1000).tolist() == (
        law.rounds("daimd", 10, 3, capacity=1000).tolist()
    )
    with pytest.raises(SpecError, match=r"^WholeReno is not a law: the models need a law$"):
        law.rounds(WholeReno, 10, 3)


@pytest.mark.slow
def test_a_run_of_a_comparison_and_a_sweep_takes_every_kind(tmp_path):
    comparison = cwnd.compare([Daimd, WholeReno], time="4s", repeat=2, flows=2)
    names = {record["controller"] for record in comparison.to_json()["alone"]}
    assert {"python:Daimd", "python:WholeReno"} <= names
    plan = {"controllers": [Daimd, Steady], "repeat": 1, "base": {"time": "2s"}, "axes": {}}
    swept = cwnd.sweep(plan, out=tmp_path / "out")
    assert (len(swept), swept.failed) == (2, 0)


KINDS = {
    "window": (Reno, ("adopt", "grow", "cut", "threshold", "enter", "round", "observe")),
    "rate": (Daimd, ("tick", "cut", "start", "observe", "losses", "window")),
    "whole": (WholeReno, ("begin", "on", "output", "take_cut")),
}


@pytest.mark.parametrize(
    ("kind", "hook"),
    [(kind, hook) for kind, (_, hooks) in KINDS.items() for hook in (*hooks, "gauges")]
    # Only the machine of a window law reverts a reduction.
    + [("window", "__copy__")],
)
def test_an_exception_in_any_hook_ends_the_run(kind, hook):
    def fail(self, *arguments):
        raise RuntimeError(f"no {hook}")

    made = type("Failing", (KINDS[kind][0],), {hook: fail})
    with pytest.raises(RuntimeError, match=f"^no {hook}\nin dumbbell with python:Failing, seed 1$"):
        cwnd.run(dumbbell().add_flow(made))


WRONG = [
    ("window", "grow", None, "grow answered None: a window is a finite number"),
    ("window", "cut", math.nan, "cut answered nan: a window is a finite number"),
    ("window", "threshold", "x", "threshold answered 'x': a threshold is a finite number or None"),
    ("window", "leave_slow_start", 2.5, "leave_slow_start answered 2.5: the answer is True or"),
    ("window", "gauges", [1], r"gauges answered \[1\]: gauges are a dict of numbers by name"),
    ("window", "gauges", {"a": "b"}, "gauges are a dict of numbers by name"),
    ("window", "gauges", {"rtt": 1.0}, 'gauges answered "rtt", the name of another series'),
    ("window", "gauges", {"ssthresh": 1.0}, "the name of another series"),
    (
        "window",
        "uses_delivery_rate",
        7,
        "uses_delivery_rate answered 7: the value is True or False",
    ),
    ("rate", "tick", math.inf, "tick answered inf: a rate is a finite number"),
    ("rate", "cut", None, "cut answered None: a rate is a finite number"),
    ("rate", "start", [], r"start answered \[\]: a rate is a finite number"),
    ("rate", "window", math.nan, "window answered nan: a flow window is a finite number or None"),
    ("rate", "interval", 0, "interval answered 0: an interval is a positive number of seconds"),
    ("rate", "clock", "sun", 'clock answered \'sun\': the clock is "timer" or "reports"'),
    ("rate", "gauges", {"rate": 1.0}, "the name of another series"),
    ("whole", "output", 10.0, r"output answered 10.0: an output is a tuple \(window, pace, wake\)"),
    ("whole", "output", (math.nan, None, None), "output answered nan: the window is a finite"),
    ("whole", "output", (9.0, 0.0, None), "the pacing rate is positive or None"),
    ("whole", "output", (9.0, None, "x"), "the wake-up time is a finite number or None"),
    ("whole", "needs", ("rates",), 'needs are a tuple of "delivery_rate"'),
    ("whole", "take_cut", ("loss", 2.0, 1.0), "a cut is None or a tuple"),
    ("whole", "take_cut", ("loss", 2.0, math.nan, "window"), "a cut is None or a tuple"),
    ("whole", "take_cut", ("luck", 2.0, 1.0, "window"), "a cut is None or a tuple"),
]


@pytest.mark.parametrize(("kind", "hook", "answer", "message"), WRONG)
def test_a_wrong_answer_is_one_line(kind, hook, answer, message):
    made = type("Wrong", (KINDS[kind][0],), {hook: lambda self, *arguments: answer})
    with pytest.raises(SpecError, match=f"^python:Wrong: .*{message}") as caught:
        cwnd.run(dumbbell().add_flow(made))
    assert "\n" not in str(caught.value)


def test_gauges_keep_their_names():
    class Changing(Reno):
        def __init__(self):
            self.count = 0

        def gauges(self):
            self.count += 1
            return {"a": 1.0} if self.count < 3 else {"b": 1.0}

    with pytest.raises(SpecError, match=r"gauges have the same names each time: a\n"):
        cwnd.run(dumbbell().add_flow(Changing))


@pytest.mark.parametrize(
    ("base", "members", "message"),
    [
        (object, {}, "Odd is not a controller: a window law has grow and cut, a rate law has"),
        (Reno, {"tick": Daimd.tick}, "a window law by its method grow and a rate law by its"),
        (object, {"on": print}, "Odd has no method output: a whole controller has on and output"),
        (object, {"tick": print, "cut": print}, "Odd has no attribute interval: a rate law has"),
        (Reno, {"cut": 1}, "Odd has no method cut"),
        (Reno, {"round": 3}, "round is not a method"),
        (Daimd, {"tick": lambda self, rate: rate}, "takes 2 positional arguments but 3 were given"),
    ],
)
def test_an_object_that_fits_no_kind_is_one_line(base, members, message):
    made = type("Odd", (base,), members)
    with pytest.raises(SpecError, match=f"^python:Odd: .*{re.escape(message)}"):
        cwnd.run(dumbbell().add_flow(made))


def test_an_object_that_fits_no_kind_opens_no_connection():
    made = type("Odd", (Reno,), {"tick": Daimd.tick})
    with udt.listen(0, "127.0.0.1") as listener, pytest.raises(SpecError, match=r"^Odd: Odd is a "):
        udt.connect(*listener.address, controller=made)


def test_an_instance_of_a_whole_controller_is_copied_for_each_flow():
    instance = Steady()
    names = [read_controller(instance)[0], read_controller(Daimd())[0]]
    assert names[0].startswith("python:Steady(")
    assert names[1] == "python:Daimd"
    cwnd.run(dumbbell("2s").add_flow(instance, count=2))
    assert instance.seen == []
