"""What a user of Python controllers sees: events, parts, types, messages, the reference page."""

import copy
import math
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cwnd
from cwnd import events
from cwnd.controller import ControllerHooks, RateHooks, WindowHooks
from cwnd.parts import RoundCounter, WindowedMax, WindowedMin

SCENARIO = cwnd.Scenario.dumbbell(rate="5mbit", rtt="40ms", time="6s")

PAGE = Path(__file__).parents[2] / "docs" / "controllers.md"


def test_events_are_constructed_with_defaults_and_shown():
    acked = events.Acked(packets=2, delivery=events.RateSample(delivered=3))
    assert acked.delivery is not None
    assert (acked.packets, acked.credit, acked.limit, acked.delivery.delivered) == (
        2,
        1,
        "window",
        3,
    )
    assert repr(events.Lost(sent_at=0.5)) == "Lost(packets=1, sent_at=0.5, sent=0, delivery=None)"
    assert repr(events.Tick()) == "Tick()"
    with pytest.raises(AttributeError):
        acked.packets = 3
    context = events.Context(rtt=0.1, slow_start=True)
    assert (context.rtt, context.min_rtt, context.packet, context.slow_start) == (
        0.1,
        None,
        1500,
        True,
    )


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_events_are_values(copied):
    """Objects with equal fields are equal, and so are their copies."""
    classes = [each for each in map(vars(events).get, events.__all__) if isinstance(each, type)]
    for made in classes:
        one, other = made(), made()
        assert (one, hash(one)) == (other, hash(other))
        assert copied(one) == one
        assert one not in {each() for each in classes if each is not made}
    sample = events.RateSample(delivered=3)
    acked = events.Acked(packets=2, delivery=sample)
    assert copied(acked) == events.Acked(packets=2, delivery=events.RateSample(delivered=3))
    assert acked != events.Acked(packets=2)
    assert acked != events.Acked(packets=2, delivery=events.RateSample(delivered=4))


def test_shared_parts():
    lowest = WindowedMin(10.0)
    assert lowest.get() is None
    assert [lowest.add(0.5, 0.04), lowest.add(1.0, 0.05), lowest.add(12.0, 0.06)] == [
        0.04,
        0.04,
        0.06,
    ]
    kept = copy.copy(lowest)
    lowest.clear()
    assert (lowest.get(), kept.get()) == (None, 0.06)
    with pytest.raises(ValueError, match="length is -1"):
        WindowedMax(-1)
    with pytest.raises(ValueError, match="value is not a number"):
        WindowedMax(1).add(0, math.nan)
    rounds = RoundCounter()
    sample = events.RateSample
    began = [
        rounds.acked(sample(prior_delivered=prior, delivered=delivered))
        for prior, delivered in ((0, 1), (0, 2), (1, 10))
    ]
    assert (began, rounds.count()) == ([True, False, True], 2)


@pytest.mark.slow
def test_the_command_line_names_file_line_and_message(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Broken:\n"
        "    def on(self, now, event):\n"
        "        raise ValueError('not mine')\n"
        "    def output(self):\n"
        "        return 10.0, None, None\n"
        "class Wrong(Broken):\n"
        "    def on(self, now, event):\n"
        "        pass\n"
        "    def output(self):\n"
        "        return None\n"
        "class Both(Broken):\n"
        "    def grow(self, w, acked, cx):\n"
        "        return w\n"
    )
    expected = {
        "Broken": "cwnd: mine.py:3: in on: ValueError: not mine (in dumbbell with mine.py:Broken",
        "Wrong": "cwnd: mine.py:Wrong: output answered None: an output is a tuple "
        "(window, pace, wake) (in dumbbell with mine.py:Wrong",
        "Both": "cwnd: mine.py:Both: Both is a window law by its method grow and a whole "
        "controller by its method on\n",
    }
    for name, line in expected.items():
        words = ["-m", "cwnd", "compare", f"mine.py:{name}", "--time", "2s", "--repeat", "2"]
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.startswith(line)
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_mypy_checks_a_law(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "mine.py").write_text(
        "import cwnd\n"
        "from cwnd.controller import Output, RateHooks, Signal, WindowHooks\n"
        "from cwnd.events import Context, Event\n"
        "class Law(WindowHooks):\n"
        "    def grow(self, w: float, acked: float, cx: Context) -> float:\n"
        "        return w + acked / w\n"
        "    def cut(self, w: float, why: Signal, cx: Context) -> float:\n"
        "        return w / 2\n"
        "    def threshold(self, cut: float, why: Signal) -> str:\n"
        "        return 'x'\n"
        "class Fixed:\n"
        "    def on(self, now: float, event: Event) -> None:\n"
        "        pass\n"
        "    def output(self) -> Output:\n"
        "        return Output(10.0)\n"
        "class Rate(RateHooks):\n"
        "    interval = 0.01\n"
        "    def clock(self) -> int:\n"
        "        return 1\n"
        "law: cwnd.WindowLaw = Law()\n"
        "whole: cwnd.Controller = Fixed()\n"
        "rate: cwnd.RateLaw = Rate()\n"
        "cwnd.run(cwnd.Scenario.dumbbell().add_flow(Fixed))\n"
    )
    out, _, status = api.run([str(tmp_path / "mine.py"), "--strict"])
    lines = [line.split(":", 2)[1] for line in out.splitlines() if ": error: " in line]
    assert (status, lines) == (1, ["9", "22"]), out


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("mine.py").write_text(blocks[0])
    Path("whole.py").write_text(blocks[1])
    result = cwnd.run(SCENARIO.add_flow("mine.py:Gentle").add_flow("whole.py:Constant"))
    assert (result.flows["packets_sent"] > 100).all()
    names: dict[str, object] = {}
    exec(blocks[2], names)
    names["test_growth"]()


def test_the_page_lists_every_hook_and_attribute():
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]*)`", PAGE.read_text("utf-8")))))
    for kind in (WindowHooks, RateHooks, ControllerHooks):
        assert {name for name in vars(kind) if not name.startswith("_")} <= words
    for name in events.__all__:
        shown = vars(getattr(events, name)) if name != "Event" else {}
        assert {name, *(field for field in shown if not field.startswith("_"))} - {"Event"} <= words


def test_beta_and_kept_are_parts_of_the_same_window():
    from cwnd.model import law

    same = [law.rounds(spec, 20, 30) for spec in ("aimd(0.31, 1/8)", "gaimd(0.31, 7/8)")]
    assert same[0].tolist() == same[1].tolist()
    assert law.cut("aimd(0.31, 1/8)", 80) == law.cut("gaimd(0.31, 7/8)", 80)
    text = (Path(__file__).parents[2] / "docs/controllers.md").read_text("utf-8")
    section = text.partition("## `beta` and `kept`")[2].partition("\n## ")[0]
    kept = {each.name for each in cwnd.algorithms() for p in each.parameters if p.name == "kept"}
    assert {*re.findall(r"^\| `(\w+)\(", section, re.MULTILINE)} == {*kept, "aimd"}
