"""The letter on AIAD: its networks, and what is read from runs and captures."""

import struct
from types import SimpleNamespace

import numpy as np
import pytest

import cwnd
from cwnd._papers.aiad import analysis, measures
from cwnd._papers.aiad.exhibits import TICK
from cwnd._papers.aiad.networks import KAPPA, PHI, RHO, letter, lossy_reverse, steady_reverse
from cwnd._papers.exhibit import Lab, exhibits
from cwnd.model import aiad as model


def test_every_exhibit_of_the_list_is_there():
    ids = [e.id for e in exhibits("aiad")]
    assert ids == ["eq-2-3", "eq-4-7", "fig-2", "lost-acks", "fig-3", "buffers", "granularity"]
    assert [e.id for e in exhibits("aiad") if e.new] == ["granularity"]


@pytest.mark.parametrize(
    ("scenario", "flows"),
    [
        (letter(KAPPA), 2),
        (letter(PHI, 200), 201),
        (letter(PHI, 20, queue=200, clock="1s", scale=10.0), 21),
        (steady_reverse(PHI, 2e6, duration=30.0), 2),
    ],
)
def test_networks_can_run(scenario, flows):
    assert scenario.validate()["flows"] == flows


def test_the_network_is_the_letters():
    document = letter(KAPPA, 5).to_dict()
    assert document["dumbbell"] == {"rate": 3e6, "delay": "50ms", "queue": "19p"}
    tcp = document["tcp"]
    assert (tcp["packet"], tcp["header"], tcp["ack"]) == (1000, 0, 40)
    assert RHO == 0.04
    (cbr,) = document["cbr"]
    assert (cbr["rate"], cbr["on"], cbr["off"], cbr["start"]) == (2e6, 50.0, 50.0, 50.0)
    assert cbr["reverse"]


def record(seconds, nanos, packet):
    return struct.pack("<IIII", seconds, nanos, len(packet), len(packet)) + packet


def segment(flow, value, echo, *, flags=0x10, protocol=6):
    """An ACK: IPv4, TCP, two no-ops and timestamps."""
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
    expected = np.array([[1, 1.3, 1.4, 1.5], [2, 1.8, 1.9, 2.0]])
    assert measures.read_stamps(data) == pytest.approx(expected)


def test_a_capture_has_the_three_rates():
    """One flow that fills 3 Mb/s: packets arrive 2.667 ms apart, at most."""
    samples = measures.capture(PHI, 1, 1)
    assert np.median(samples.receiving) == pytest.approx(3e6, rel=1e-3)
    assert samples.receiving.max() <= 3e6 * (1 + TICK)
    assert samples.acks.max() > 3e6 * (1 + TICK)
    assert set(samples.share) == {1.0}


def test_shares_of_the_flows_are_counted():
    """Eq. 2 sample by sample: φ is C over the packets sent from one of the flow to the next."""
    samples = measures.capture(PHI, 2, 3)
    assert np.median(samples.receiving / (3e6 * samples.share)) == pytest.approx(1.0, rel=1e-2)
    assert samples.share.min() < 1.0


def test_kappa_overestimates_only_while_the_reverse_path_is_busy():
    found = [measures.alone(cwnd.run(letter(KAPPA, duration=150.0), seed)) for seed in (1, 2, 3)]
    assert np.mean([f.on for f in found]) > 1.1
    assert [f.off for f in found] == pytest.approx([1.0] * 3, abs=0.02)


def test_only_the_reverse_path_loses():
    run = cwnd.run(lossy_reverse(PHI, 0.3, duration=150.0), 1)
    links = {link["name"]: link["losses"] for link in run.record["links"]}
    (flow,) = run.measured_flows
    assert links["left-right"] == 0
    # The CBR flow is on for 50 s.
    passed = flow["packets_received"] + 50 * 2e6 / 8000
    assert links["right-left"] == pytest.approx(0.3 * passed, rel=0.05)
    assert measures.alone(run).on == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "verdict"), [(None, "differs"), ("all", "agrees")])
def test_the_bound_holds_if_all_rates_change(name, verdict):
    (exhibit,) = [e for e in exhibits("aiad") if e.id == "eq-4-7"]
    lab = Lab(quick=True)
    lab.begin(exhibit.text, 1, exhibit.text.trials.get(name))
    exhibit.function(lab)
    found = {claim.name: claim.verdict for claim in lab.findings.claims}
    assert {found[key] for key in ("modes", "settles constant", "settles varying")} == {verdict}
    assert {v for key, v in found.items() if not key.startswith(("modes", "settles"))} == {"agrees"}


def test_evenness_is_of_all_flows():
    run = cwnd.run(letter(PHI, 4, duration=20.0), 1)
    found = measures.spread(run)
    rates = np.array([run.goodput_bps(flow) for flow in run.measured_flows])
    assert rates.size == 4
    # Jain's index is 1 / (1 + cov²).
    assert found.jain == pytest.approx(1 / (1 + (rates.std() / rates.mean()) ** 2))
    assert found.deviation == pytest.approx(rates.std() * 4 / 3e6)


def test_fluctuation_is_that_of_each_flow_over_time():
    time = np.arange(0, 41, 0.5)
    steady, bursty = 10 * time, np.interp(time, [0, 20, 40], [0, 400, 400])
    flows = [{"delivered": of, "packet_bytes": 1000} for of in (steady, bursty)]
    run = SimpleNamespace(measured_flows=flows, time=time)
    # Over 10 s: one rate, and 20, 20, 0 and 0 packets per second, of which it is √(4/3).
    assert measures.fluctuation(run) == pytest.approx(3**-0.5)
    flows.append({"delivered": 0 * time, "packet_bytes": 1000})
    assert measures.fluctuation(run) == pytest.approx(3**-0.5)


def test_quality_of_one_flow():
    run = cwnd.run(letter(PHI, duration=60.0), 1)
    found = measures.quality(run)
    total, most = measures.filtered(run)
    assert found.error == pytest.approx(1 - total, abs=0.01)
    assert most == pytest.approx(1.0, abs=0.01)
    assert found.drops == pytest.approx(100 * run.bottleneck["drops"] / run.bottleneck["arrivals"])


def test_reductions_by_hand():
    assert measures.deviation([0.5e6, 1.5e6], 2e6) == 0.5
    on = measures.busy([0.0, 54.9, 55.0, 99.9, 105.0, 155.0], on=True)
    assert on.tolist() == [False, False, True, True, False, True]
    off = measures.busy([10.0, 105.0, 155.0], on=False)
    assert off.tolist() == [False, True, False]


@pytest.mark.parametrize("moving", analysis.READINGS)
def test_the_grid_has_points_on_both_sides_of_the_bounds(moving):
    found = analysis.linear(moving)
    assert found["conditions"].size == 6 * 8 * 5 * 25 * 3
    for name in ("roots", "kappa-bound", "modes"):
        assert 1000 < found[name].size < found["conditions"].size


@pytest.mark.parametrize("moving", analysis.READINGS)
@pytest.mark.parametrize("flows", [1, 5])
def test_integrated_systems_are_below_their_bound(flows, moving):
    """Five flows below the bound by one flow's rate oscillate; the others settle."""
    s = analysis.sharpness(flows, moving)
    rest = model.equilibrium(flows, analysis.PPS, analysis.DELAY, analysis.LOSS)
    slope = s * analysis.LOSS / analysis.PPS
    bound = model.queue_delay_bound(flows, analysis.PPS, analysis.LOSS, slope, moving=moving)
    assert rest.queue_delay == pytest.approx(analysis.NEAR * bound)
    motion = analysis.settle(flows, s, held=True)
    assert motion.rates[0].sum() == pytest.approx(analysis.PPS * (1 + analysis.KICK))
    assert (analysis.left(motion) < 0.1) == (flows == 1 or moving == "all")
