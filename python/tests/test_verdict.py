from __future__ import annotations

import math

import numpy as np
import pytest

from cwnd._runs.repetition import MAX_REPEATS, targets
from cwnd._tasks.comparison.verdict import Figures, judge
from cwnd.stats import UNIT, Estimate, estimate

NOTHING = estimate([])


def sure(value: float) -> Estimate:
    return Estimate(value, value, value, 5)


def verdict(share=0.5, roughness=1.0, queue=1.0, limits=None):
    figures = [v if isinstance(v, Estimate) else sure(v) for v in (share, roughness, queue)]
    return judge("simd", "reno", Figures(*figures, sure(0.02), 0.4, limits or {}))


@pytest.mark.parametrize(
    ("ratio", "word"),
    [
        (1.0, "fair"),
        (1.24, "fair"),
        (0.81, "fair"),
        (1.26, "roughly fair"),
        (0.79, "roughly fair"),
        (1.99, "roughly fair"),
        (2.01, "takes more"),
        (0.49, "yields"),
        (1e9, "takes more"),
    ],
)
def test_fairness(ratio, word):
    assert verdict(share=ratio / (1 + ratio)).fairness == word


@pytest.mark.parametrize(
    ("ratio", "word"), [(0.79, "smoother"), (1.0, "as smooth"), (1.26, "less smooth")]
)
def test_smoothness(ratio, word):
    assert verdict(roughness=ratio).smoothness == word


@pytest.mark.parametrize(
    ("ratio", "word"), [(0.79, "less queue"), (1.2, "as much queue"), (2.0, "more queue")]
)
def test_queue(ratio, word):
    assert verdict(queue=ratio).queue == word


def test_two_seeds_leave_it_undecided():
    """Two runs with a share of 0.56 ± 1.07 were once probably roughly fair."""
    share = estimate([0.475, 0.644], UNIT)
    found = verdict(share=share)
    assert found.fairness == "undecided"
    assert found.sentence.startswith(
        "undecided between yields, roughly fair, fair and takes more (share 0.56 against reno, "
        f"95 % interval {share.low:.2f} to {share.high:.2f})"
    )


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.46, 0.54, ["fair"]),
        (4 / 9, 5 / 9, ["fair"]),
        (0.45, 0.56, ["fair", "roughly fair"]),
        (0.44, 0.56, ["roughly fair", "fair"]),
        (0.56, 0.66, ["roughly fair"]),
        (0.34, 0.44, ["roughly fair"]),
        (0.31, 0.78, ["yields", "roughly fair", "fair", "takes more"]),
        (0.6, 0.7, ["roughly fair", "takes more"]),
        (0.7, 1.0, ["takes more"]),
    ],
)
def test_the_whole_interval_decides(low, high, words):
    found = verdict(share=Estimate((low + high) / 2, low, high, 5))
    assert "probably" not in found.sentence
    if len(words) == 1:
        assert found.fairness == words[0]
        assert "undecided" not in found.sentence
    else:
        assert found.fairness == "undecided"
        said = f"{', '.join(words[:-1])} and {words[-1]}"
        assert f"undecided between {said} (" in found.sentence


def test_smoothness_and_queue_are_undecided_too():
    wide = Estimate(1.2, 1.0, 1.4, 5)
    found = verdict(roughness=wide, queue=wide)
    assert (found.fairness, found.smoothness, found.queue) == ("fair", "undecided", "undecided")
    assert (
        "undecided between as smooth and less smooth (its rate varies 1.20 times as much, 95 %"
        in (found.sentence)
    )
    assert "undecided between as much queue and more queue (1.20 times" in found.sentence


def test_looking_again_costs_little():
    """`auto` looks at 10, 20, 40 and 80 repeats: a share on a bound is rarely called fair."""
    random = np.random.default_rng(1)
    wrong = 0
    for _ in range(500):
        shares = random.normal(5 / 9, 0.05, MAX_REPEATS)
        looks = (estimate(shares[:n], UNIT) for n in targets(10, MAX_REPEATS))
        wrong += any(verdict(share=look).fairness == "fair" for look in looks)
    assert 0 < wrong <= 50


def test_one_run_decides_nothing():
    one = Estimate(0.5, math.nan, math.nan, 1)
    found = verdict(share=one, roughness=one, queue=one)
    assert {found.fairness, found.smoothness, found.queue} == {"undecided"}
    assert "undecided with one run (share 0.50 against reno)" in found.sentence


def test_everything_and_nothing():
    assert "takes everything" in verdict(share=1.0).sentence
    assert "gets 0.00 times" in verdict(share=0.0).sentence


def test_what_is_not_known_is_not_claimed():
    unknown = verdict(share=NOTHING, roughness=NOTHING, queue=NOTHING)
    assert {unknown.fairness, unknown.smoothness, unknown.queue} == {"unknown"}
    assert "is unknown" in unknown.sentence


def test_other_limits_are_told():
    assert "Limited by receiver" in verdict(limits={"receiver": 0.4}).sentence


def test_the_reference_is_not_compared_with_itself():
    figures = Figures(sure(0.5), sure(1.0), sure(1.0), sure(0.02), 0.4, {})
    assert "smooth" not in judge("reno", "reno", figures).sentence
