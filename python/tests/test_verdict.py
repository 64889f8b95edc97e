from __future__ import annotations

import math

import pytest

from cwnd.stats import Estimate
from cwnd.verdict import Figures, judge

NOTHING = Estimate(math.nan, math.nan, math.nan)


def sure(value: float) -> Estimate:
    return Estimate(value, value, value)


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


def test_an_interval_across_a_bound_is_only_probable():
    assert "probably fair" in verdict(share=Estimate(0.5, 0.4, 0.6)).sentence
    assert "probably" not in verdict(share=Estimate(0.5, 0.46, 0.54)).sentence
    assert "probably" in verdict(share=Estimate(0.5, math.nan, math.nan)).sentence


def test_everything_and_nothing():
    assert "takes everything" in verdict(share=1.0).sentence
    assert "gets 0.00 times" in verdict(share=0.0).sentence


def test_what_is_not_known_is_not_claimed():
    unknown = verdict(share=NOTHING, roughness=NOTHING, queue=NOTHING)
    assert {unknown.fairness, unknown.smoothness, unknown.queue} == {"unknown"}
    assert "not known" in unknown.sentence


def test_other_limits_are_told():
    assert "Limited by receiver" in verdict(limits={"receiver": 0.4}).sentence


def test_the_reference_is_not_compared_with_itself():
    figures = Figures(sure(0.5), sure(1.0), sure(1.0), sure(0.02), 0.4, {})
    assert "smooth" not in judge("reno", "reno", figures).sentence
