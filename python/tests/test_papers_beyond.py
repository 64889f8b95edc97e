"""The grid of all laws: its networks, and how shares are taken together."""

import numpy as np
import pytest

import cwnd
from cwnd._papers.beyond.exhibits import Meetings, Met, meet
from cwnd._papers.beyond.networks import GRID, HALVES, LAWS, QUARTER, SMALL, Network, versus
from cwnd._papers.exhibit import exhibits


def test_the_exhibit_is_new():
    (matrix,) = exhibits("beyond")
    assert (matrix.id, matrix.new) == ("matrix", True)


def test_the_grid_is_complete_and_its_quarter_even():
    assert len(set(GRID)) == 16
    assert len(QUARTER) == 4
    for attribute in Network._fields:
        values = [getattr(network, attribute) for network in QUARTER]
        assert all(values.count(value) == 2 for value in values)


def test_each_half_of_the_grid_has_half_of_the_quarter():
    for half in HALVES.values():
        assert len(half) == 8
        assert sum(network in half for network in QUARTER) == 2
    assert len(SMALL) == 4


@pytest.mark.parametrize("law", LAWS)
def test_every_law_can_run_on_every_network(law):
    for network in GRID:
        assert versus(law, "TCP", network).validate()["flows"] == 2 * network.flows


def test_buffers_are_half_and_two_products():
    # 20 Mb/s, 120 ms: 200 packets of 1500 bytes.
    assert Network(20e6, 0.12, deep=False, flows=1).queue == 100
    assert Network(20e6, 0.12, deep=True, flows=1).queue == 400
    # 4 Mb/s, 20 ms: 6.7 packets; not below 8 and 16.
    assert (
        Network(4e6, 0.02, deep=False, flows=1).queue,
        Network(4e6, 0.02, deep=True, flows=1).queue,
    ) == (8, 16)


def test_shares_come_from_both_orders():
    network = GRID[0]
    met = Meetings(
        {
            ("TCP", "SIMD", network): [Met(0.6, 0.5, 1.0, 0.0, 0.1)],
            ("SIMD", "TCP", network): [Met(0.3, 0.7, 1.0, 0.0, 0.1)],
            ("TCP", "TCP", network): [Met(0.8, 0.4, 0.9, 0.01, 0.2)],
        },
        [network],
    )
    # 0.6 as the first, 1 - 0.3 as the second.
    assert met.shares("TCP", "SIMD") == pytest.approx(np.array([[0.65]]))
    assert met.ratios("SIMD") == pytest.approx([0.35 / 0.65])
    assert met.queue("SIMD", "TCP", [network]) == pytest.approx(0.7)
    assert met.shares("TCP", "TCP") == pytest.approx(np.array([[0.5]]))
    assert met.alone("TCP", "used") == pytest.approx([0.9])
    assert met.alone("TCP", "used", [network]) == pytest.approx([0.9])
    # 8 packets at 4 Mb/s take 24 ms: 0.7 of them beside 20 ms. The limit is 1667 bit s.
    assert met.eq_20("SIMD", [network]) == pytest.approx(
        [(0.02 + 0.7 * 0.024) ** 2 * 4e6 / 1667], rel=1e-3
    )


def test_losses_at_the_same_time():
    # Windows between (1 - β) and 1 times the largest, grown by α a round: TCP's is between 1 and 2.
    def rate(alpha, beta):
        return alpha * (1 - beta / 2) / beta

    [printed] = [
        c.printed for k, c in exhibits("beyond")[0].text.claims.items() if k == "synchronous"
    ]
    assert rate(0.31, 1 / 8) / rate(1, 1 / 2) == pytest.approx(float(printed), abs=0.005)


def test_a_run_is_measured():
    network = Network(4e6, 0.02, deep=True, flows=1)
    run = cwnd.run(versus("TCP", "DAIMD", network, quick=True), 1)
    met = meet(run)
    first, second = (run.goodput_bps(flow) for flow in run.measured_flows)
    assert met.share == pytest.approx(first / (first + second))
    assert 0.0 < met.queue <= 1.0
    assert met.queue * 16 * 12e3 / 4e6 == pytest.approx(run.bottleneck["delay"]["mean"])
    assert 0.8 < met.used <= 1.0
    assert met.variation > 0.0
