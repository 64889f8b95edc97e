"""The letter on AIAD: its networks, and what is read from runs and captures."""

import struct

import numpy as np
import pytest

import cwnd
from cwnd.papers import aiad
from cwnd.papers import aiad_networks as networks
from cwnd.papers.aiad_networks import KAPPA, PHI, letter, steady_reverse
from cwnd.papers.aiad_stability import DELAY, LOSS, PPS, settle, stability_grid
from cwnd.papers.exhibit import exhibits


def test_every_exhibit_of_the_list_is_there():
    ids = [e.id for e in exhibits("aiad")]
    assert ids == ["eq-2-3", "eq-4-7", "fig-2", "fig-3", "buffers", "granularity"]
    assert [e.id for e in exhibits("aiad") if e.new] == ["granularity"]


@pytest.mark.parametrize(
    ("scenario", "flows"),
    [
        (letter(KAPPA), 2),
        (letter(PHI, 200), 201),
        (letter(PHI, 20, queue=200, clock="1s", scale=10.0), 21),
        (steady_reverse(PHI, 2e6, duration=30.0), 2),
        (steady_reverse(KAPPA, 0.0, duration=30.0), 1),
    ],
)
def test_networks_can_run(scenario, flows):
    assert scenario.validate()["flows"] == flows


def test_the_network_is_the_letters():
    document = letter(KAPPA, 5).to_dict()
    assert document["dumbbell"]["queue"] == "19p"
    tcp = document["tcp"]
    assert (tcp["packet"], tcp["header"], tcp["ack"]) == ("1000b", "0b", "40b")
    assert networks.RHO == 0.04
    (cbr,) = document["cbr"]
    assert (cbr["rate"], cbr["on"], cbr["off"], cbr["start"]) == ("2mbit", "50s", "50s", "50s")


def record(seconds, nanos, packet):
    return struct.pack("<IIII", seconds, nanos, len(packet), len(packet)) + packet


def segment(flow, value, echo, *, flags=0x10, protocol=6):
    """An acknowledgement: IPv4, TCP, two no-ops and timestamps."""
    ip = bytearray(20)
    ip[0], ip[9] = 0x45, protocol
    ip[12:16] = bytes([10, 128, flow >> 8, flow & 255])
    tcp = bytearray(20)
    tcp[12], tcp[13] = 8 << 4, flags
    return bytes(ip) + bytes(tcp) + b"\x01\x01" + struct.pack(">BBII", 8, 10, value, echo)


def test_stamps_are_read_from_a_capture():
    data = bytes(24)
    data += record(1, 500_000_000, segment(1, 1_400_000, 1_300_000))
    data += record(1, 600_000_000, segment(7, 0, 0, protocol=17))
    data += record(1, 700_000_000, segment(1, 5, 5, flags=0x12))
    data += record(2, 0, segment(2, 1_900_000, 1_800_000))
    assert networks.read_stamps(data) == pytest.approx(
        np.array([[1, 1.3, 1.4, 1.5], [2, 1.8, 1.9, 2.0]])
    )


def test_a_capture_gives_the_three_rates():
    """One flow that fills 3 Mb/s: packets arrive 2.667 ms apart, acknowledgements return so."""
    (samples,) = networks.capture(letter(PHI, duration=40.0), 1, 20.0, 40.0)
    assert np.median(samples.receiving) == pytest.approx(3e6, rel=1e-3)
    assert np.median(samples.acks) == pytest.approx(3e6, rel=1e-3)
    assert samples.receiving.max() <= 3e6 * (1 + aiad.TICK)
    assert set(samples.share) == {1.0}


def test_shares_of_the_flows_are_counted():
    first, second = networks.capture(letter(PHI, 2, duration=30.0), 3, 15.0, 30.0)
    both = np.concatenate([first.share, second.share])
    # Eq. 2 sample by sample: φ is C among those that were sent between two packets.
    phi = np.concatenate([first.receiving, second.receiving])
    assert np.median(phi / (3e6 * both)) == pytest.approx(1.0, rel=1e-2)
    assert both.min() < 1.0


def test_kappa_is_too_large_only_while_the_way_back_is_busy():
    runs = [cwnd.run(letter(KAPPA, duration=150.0), seed) for seed in (1, 2, 3)]
    found = [networks.alone(run) for run in runs]
    assert np.mean([f.on for f in found]) > 1.1
    assert [f.off for f in found] == pytest.approx([1.0] * 3, abs=0.02)


def test_evenness_is_of_all_flows():
    run = cwnd.run(letter(PHI, 4, duration=20.0), 1)
    found = networks.spread(run)
    rates = np.array([run.goodput_bps(flow) for flow in run.measured_flows])
    assert rates.size == 4
    mean = rates.mean()
    # Jain's index is 1 / (1 + cov²).
    assert found.jain == pytest.approx(1 / (1 + (rates.std() / mean) ** 2))
    assert found.deviation == pytest.approx(rates.std() * 4 / 3e6)


def test_reductions_by_hand():
    assert networks.deviation([0.5e6, 1.5e6], 2e6) == 0.5
    on = networks.busy([0.0, 54.9, 55.0, 99.9, 105.0, 155.0], on=True)
    assert on.tolist() == [False, False, True, True, False, True]
    off = networks.busy([10.0, 105.0, 155.0], on=False)
    assert off.tolist() == [False, True, False]


def test_the_grid_is_wide_and_both_sides_of_the_bound_are_on_it():
    grid = stability_grid()
    assert grid.phi_root.shape == (6, 8, 5, 25, 3)
    assert grid.phi_short.any()
    assert not grid.phi_short.all()
    assert grid.kappa_eq_7.any()
    assert not grid.kappa_eq_7.all()


def test_one_flow_returns_and_five_with_a_sharp_loss_do_not():
    assert settle(1, 2.0, held=True).rates[-1].sum() == pytest.approx(PPS, rel=1e-6)
    motion = settle(5, 60.0, held=True)
    late = motion.rates[motion.time > 18.0].sum(axis=1)
    assert np.abs(late / PPS - 1).max() > 0.05
    rest = aiad.model.equilibrium(5, PPS, DELAY, LOSS)
    assert rest.queue_delay < aiad.model.queue_delay_bound(5, PPS, LOSS, 60.0 * LOSS / PPS)
