from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from cwnd.errors import ArgumentError
from cwnd.model import aira

rates = st.floats(min_value=0, max_value=1)
increases = st.floats(min_value=0.1, max_value=1)


def test_mail_falls_on_a_line():
    """Eq. 23 and Fig. 13: 1 at the start, 0.1 from 100 rounds on."""
    assert aira.mail([0, 10, 50, 100, 500]) == pytest.approx([1, 0.91, 0.55, 0.1, 0.1])
    with pytest.raises(ArgumentError, match="whole number"):
        aira.mail(1.5)


@given(increases, rates, rates)
def test_the_rules(increase, loss, previous):
    after = aira.next_increase(increase, loss, previous)
    if loss > previous:
        assert after == pytest.approx(increase * (1 - loss))
    elif loss < previous:
        assert after == pytest.approx(increase * (1 + previous - loss))
        assert after > increase or previous - loss < 1e-15
    else:
        assert after == increase


@given(increases, rates, rates, st.floats(min_value=1, max_value=1e4))
def test_the_rules_are_the_desired_slopes(increase, loss, previous, window):
    """The rules set the next round's slope, a/W, to the one desired."""
    if loss > previous:
        slope = aira.desired_slope_decrease(increase, loss, window)
    else:
        slope = aira.desired_slope_increase(increase, loss, previous, window)
    assert aira.next_increase(increase, loss, previous) / window == pytest.approx(slope)


def test_reset():
    assert aira.reset_threshold([20, 30]).tolist() == [30, 45]
    assert aira.extra_time(0.5, 10) == pytest.approx(6)
    assert aira.total_time(0.5, 10) == pytest.approx(26)


def test_two_rounds_in_the_first_ten():
    """Section 6.3: a flow within its first 10 rounds takes less than 2 rounds."""
    assert aira.total_time(aira.mail(10)) < 2


def test_one_flow_on_its_link():
    """One flow keeps an empty-queue link busy at its rate once its window fills the pipe."""
    flow = aira.one_flow(60, rate=1000, rtt=0.02, queue=20)
    # W = 40 and W/2 = 20 is just the pipe: never idle.
    assert flow.packets == pytest.approx(1000 * flow.seconds)
    assert flow.increase[0] == 1
    assert np.all(flow.increase >= aira.mail(np.arange(60)) - 1e-12)
    assert np.all(np.diff(flow.seconds) > 0)


def test_one_flow_without_a_queue_gets_three_quarters():
    flow = aira.one_flow(10, rate=1000, rtt=0.02, queue=0)
    assert flow.packets[-1] / flow.seconds[-1] == pytest.approx(750)


def test_one_flow_is_a_window_stepped_through():
    """The closed forms of a round against its window, in small steps."""
    rate, rtt, queue = 400.0, 0.05, 30.0
    flow = aira.one_flow(3, rate, rtt, queue, lost=2)
    peak, end, data = rate * rtt + queue, [], []
    time = packets = 0.0
    for increase in flow.increase:
        w = np.linspace(peak / 2, peak, 20001)
        time += trapezoid(np.maximum(rtt, w / rate) / increase, w)
        packets += trapezoid(w / increase, w)
        end.append(time)
        data.append(packets)
    assert flow.seconds == pytest.approx(end, rel=1e-6)
    assert flow.packets == pytest.approx(data, rel=1e-6)
    # p rises from 0 to that of the first round, so a falls; then it stays or grows a little.
    assert flow.increase[1] == pytest.approx(1 - flow.loss[0])


def test_five_megabytes_in_fifty_rounds():
    """Fig. 14a: 5 MB of 1000-byte packets within 50 rounds, from Table 1's link upwards."""
    for rate, rtt in ((125, 0.04), (250, 0.04), (1250, 0.02), (1250, 0.1)):
        flow = aira.one_flow(50, rate, rtt, queue=max(15, rate * rtt))
        assert flow.packets[-1] >= 5000


def test_mail_alone_is_the_slowest():
    fast = aira.one_flow(80, 125, 0.04, 15)
    slow = aira.one_flow(80, 125, 0.04, 15, slowest=True)
    assert slow.increase == pytest.approx(aira.mail(np.arange(80)))
    assert np.all(slow.seconds >= fast.seconds - 1e-9)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: aira.next_increase(0, 0, 0), "increase"),
        (lambda: aira.next_increase(1, 1.1, 0), "loss"),
        (lambda: aira.desired_slope_decrease(1, 0, 0), "window"),
        (lambda: aira.extra_time(0), "increase"),
        (lambda: aira.one_flow(0, 1, 1, 1), "rounds"),
        (lambda: aira.one_flow(1, 10, 0.1, 0, lost=5), "lost"),
    ],
)
def test_arguments_outside_their_domain(call, name):
    with pytest.raises(ArgumentError, match=f"^{name}: "):
        call()
