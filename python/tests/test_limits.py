"""Tests of the limits of a rate and the advice on them."""

from __future__ import annotations

import pytest

from cwnd._runs.transport_limits import Path, advise, check_state

QUEUE = [(0.040, 0), (0.070, 0), (0.080, 9), (0.078, 20)]
"""Round-trip times and losses of a flow that fills a queue."""
RANDOM = [(0.040, 0), (0.041, 4), (0.040, 9), (0.042, 15)]
FREE = [(0.040, 0), (0.041, 0), (0.040, 0)]


def measured(samples: list[tuple[float, int]]) -> Path:
    path = Path()
    for rtt_s, lost in samples:
        path.add(rtt_s, lost)
    return path


@pytest.mark.parametrize(
    ("samples", "state"),
    [(QUEUE, "full"), (RANDOM, "lossy"), (FREE, "free"), ([], None), ([(0.0, 3)], None)],
)
def test_a_path_is_full_or_lossy_or_free(samples, state):
    assert measured(samples).state == state


def test_losses_of_a_full_queue_at_the_start_are_not_random():
    # A slow law after the losses of its slow start.
    start = [(0.040, 0), (0.085, 60), (0.080, 120), (0.055, 125)]
    assert measured(start + [(0.041, 125)] * 40).state == "free"


def test_jitter_of_hosts_is_no_queue():
    assert measured([(0.0001, 0), (0.0008, 0), (0.0009, 5)]).state == "lossy"


@pytest.mark.parametrize("limit", ["window", "pacing"])
@pytest.mark.parametrize(
    ("samples", "controller", "named"),
    [
        (RANDOM, "cubic", "bbr3"),
        (RANDOM, "bbr3(aging=draft)", None),
        (FREE, "udt", "cubic"),
        (FREE, "Cubic", None),
        (QUEUE, "udt", None),
    ],
)
def test_advice_names_the_controller_that_suits_the_path(limit, samples, controller, named):
    advice = advise({limit: 0.8}, measured(samples).state, controller)
    assert advice is not None
    assert advice.endswith("(80 % of the time)")
    assert [name for name in ("bbr3", "cubic") if name in advice] == ([named] if named else [])


def test_other_limits_are_not_the_controllers():
    for limit in ("receiver", "disk", "processor", "application"):
        advice = advise({limit: 0.9}, "lossy", "udt")
        assert advice is not None
        assert "bbr3" not in advice
    assert "queue" not in str(advise({"window": 0.9}))


@pytest.mark.parametrize("value", ["empty", 3, True])
def test_a_peers_state_is_checked(value):
    with pytest.raises(ValueError, match=str(value)):
        check_state(value)
    assert check_state(None) is None
