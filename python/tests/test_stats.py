from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cwnd.stats import estimate


def test_the_interval_is_students():
    x = [3.0, 4.0, 8.0, 5.0]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(x), scale=stats.sem(x))
    found = estimate(x)
    assert (found.mean, found.low, found.high) == pytest.approx((5.0, low, high))


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(5)
    draws = [estimate(rng.normal(1.0, 0.3, 5)) for _ in range(4000)]
    covered = np.mean([draw.low <= 1.0 <= draw.high for draw in draws])
    assert covered == pytest.approx(0.95, abs=0.015)


def test_few_repeats():
    assert estimate([2.0]).mean == 2.0
    assert not estimate([2.0]).known
    assert math.isnan(estimate([]).mean)
    assert estimate([1.0, math.nan, 3.0]).mean == 2.0


def test_json():
    assert estimate([2.0]).to_json() == {"mean": 2.0, "interval": None}
    assert estimate([]).to_json() == {"mean": None, "interval": None}
    assert estimate([2.0, 2.0]).to_json() == {"mean": 2.0, "interval": [2.0, 2.0]}
