"""The fluid of window laws at one bottleneck, beside closed forms and the simulator."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cwnd
from cwnd._runs.run import simulate
from cwnd.errors import ArgumentError
from cwnd.model.fluid import DropTail, Flows, Red, equilibrium, transient
from cwnd.model.stationary import stationary

CAPACITY = 3750.0  # 30 Mb/s in packets of 1000 bytes
STEADY = Red(limit=1000, low=20, high=600)


class TestEquilibrium:
    @pytest.mark.parametrize("queue", [STEADY, Red(1000, 50, 150), DropTail(150)])
    def test_tcp_has_a_constant(self, queue):
        """W^2 p = 2, and the link is full."""
        e = equilibrium(Flows("reno", 20, 0.1), CAPACITY, queue)
        assert e.window[0] ** 2 * e.loss == pytest.approx(2, rel=1e-3)
        assert 20 * e.rate[0] * (1 - e.loss) == pytest.approx(CAPACITY, rel=1e-9)
        assert e.rtt[0] == pytest.approx(0.1 + e.queue / CAPACITY)
        if isinstance(queue, Red):
            assert queue.drops(e.queue) == pytest.approx(e.loss)
        else:
            assert e.queue == 150

    @pytest.mark.parametrize(("alpha", "beta"), [(0.31, 0.125), (0.2, 0.125), (2, 0.5)])
    def test_aimd_has_one_too(self, alpha, beta):
        """Gains alpha, losses beta W at a rate of W p: W^2 p = alpha / beta."""
        e = equilibrium(Flows(f"aimd({alpha}, {beta})", 20, 0.1), CAPACITY, STEADY)
        assert e.window[0] ** 2 * e.loss == pytest.approx(alpha / beta, rel=1e-3)

    def test_simd(self):
        """Periodic losses at W: beta W in T = 2 sqrt(beta W) / alpha round-trip times, Eq. 2 and 3.

        So a = alpha sqrt(beta W) / 2 = 3 beta / (2 sqrt(2) (1 - 2 beta / 3)), for every W.
        """
        beta = 1 / 16
        e = equilibrium(Flows("simd(beta=1/16)", 20, 0.1), CAPACITY, STEADY)
        constant = 3 / (2 * math.sqrt(2) * (1 - 2 * beta / 3))
        # The first acknowledgements are steps, not yet the square.
        assert e.window[0] ** 2 * e.loss == pytest.approx(constant, rel=0.02)

    def test_shares_of_classes(self):
        """TCP's window does not depend on its round-trip time: its rate goes with the inverse."""
        far = equilibrium([Flows("reno", 10, 0.05), Flows("reno", 10, 0.2)], CAPACITY, STEADY)
        assert far.window[0] == pytest.approx(far.window[1], rel=1e-3)
        assert far.rate[0] / far.rate[1] == pytest.approx(far.rtt[1] / far.rtt[0], rel=1e-3)
        mixed = equilibrium(
            [Flows("reno", 10, 0.1), Flows("aimd(0.2, 1/8)", 10, 0.1)], 3750, STEADY
        )
        share = mixed.window[1] / mixed.window[0]
        assert share == pytest.approx(math.sqrt(1.6 / 2), rel=1e-3)

    def test_red_inverts(self):
        for red in (STEADY, Red(500, 20, 60, 0.02), Red(500, 20, 60, wait=False)):
            for average in np.linspace(red.low + 1, 2 * red.high - 1, 20):
                drops = red.drops(float(average))
                assert 0 < drops < 1
                assert red.average(drops) == pytest.approx(average)

    def test_refusals(self):
        flows = Flows("reno", 20, 0.1)
        with pytest.raises(ArgumentError, match="depends on the delay"):
            equilibrium(Flows("vegas", 20, 0.1), CAPACITY, STEADY)
        with pytest.raises(ArgumentError, match="has no cycle"):
            equilibrium(Flows("aira", 20, 0.1), CAPACITY, STEADY)
        with pytest.raises(cwnd.SpecError, match="a law for the window"):
            equilibrium(Flows("udt", 20, 0.1), CAPACITY, STEADY)
        with pytest.raises(ArgumentError, match="too many"):
            equilibrium(Flows("reno", 5000, 0.1), CAPACITY, STEADY)
        with pytest.raises(ArgumentError, match="low < high"):
            equilibrium(flows, CAPACITY, Red(100, 50, 20))
        with pytest.raises(ArgumentError, match="one class"):
            equilibrium([], CAPACITY, STEADY)
        with pytest.raises(ArgumentError, match="one window for each"):
            transient(flows, CAPACITY, STEADY, 10, start=[1, 2])
        with pytest.raises(ArgumentError, match="step"):
            transient(flows, CAPACITY, STEADY, 10, step=0.1)


class TestTransient:
    def test_it_settles_at_the_equilibrium(self):
        flows = [Flows("reno", 10, 0.1), Flows("simd", 10, 0.12)]
        e = equilibrium(flows, CAPACITY, STEADY)
        run = transient(flows, CAPACITY, STEADY, 160, step=0.02)
        np.testing.assert_allclose(run.window[-1], e.window, rtol=1e-3)
        assert run.queue[-1] == pytest.approx(e.queue, rel=1e-2)
        assert run.loss[-1] == pytest.approx(e.loss, rel=1e-2)
        assert run.error < 1e-3
        assert run.average[-1] == pytest.approx(run.queue[-1], rel=1e-2)

    def test_before_the_first_loss_windows_grow_as_the_law_does(self):
        run = transient(Flows("aimd(0.5, 1/2)", 1, 0.1), 1e4, DropTail(1000), 5, start=[10])
        np.testing.assert_allclose(run.window[:, 0], 10 + 0.5 * run.time / 0.1, rtol=1e-6)
        assert (run.queue == 0).all()

    def test_the_error_is_of_second_order(self):
        """A smooth part: RED's average and the windows before the queue is empty again."""
        start = [21.0]
        runs = [
            transient(Flows("reno", 20, 0.1), CAPACITY, STEADY, 8, step=h, start=start)
            for h in (0.02, 0.01, 0.005)
        ]
        a, b, c = (run.window[-1, 0] for run in runs)
        assert 3 < (a - b) / (b - c) < 6

    def test_a_steep_red_oscillates(self):
        """The instability that the model is known for: a small average weight and a steep slope."""
        steep = transient(Flows("reno", 20, 0.1), CAPACITY, Red(1000, 50, 150), 60, step=0.01)
        flat = transient(Flows("reno", 20, 0.1), CAPACITY, STEADY, 60, step=0.01)
        half = slice(len(steep.time) // 2, None)
        assert steep.queue[half].std() > 10 * flat.queue[half].std()
        assert steep.queue.min() == 0
        assert steep.queue.max() <= 1000

    def test_droptail_is_full_or_cuts(self):
        run = transient(Flows("reno", 20, 0.1), CAPACITY, DropTail(150), 30, step=0.01)
        assert run.queue.max() == 150
        assert (run.loss[run.queue < 150] == 0).all()
        assert run.loss.max() > 0


def red_dumbbell(low: int, high: int) -> cwnd.Scenario:
    """20 Reno flows at 30 Mb/s with round-trip times of 90 to 110 ms."""
    queue = {"kind": "red", "limit": "1000p", "min": f"{low}p", "max": f"{high}p", "max_p": 0.1}
    return cwnd.Scenario(
        {
            "duration": "90s",
            "warmup": "30s",
            "sample": "50ms",
            "dumbbell": {"rate": "30mbit", "delay": "20ms", "queue": queue},
            "tcp": {"conventions": "ns2-2001", "packet": 1000},
            "flow": [{"controller": "reno", "count": 20, "rtt": "90ms..110ms", "start": "0s..5s"}],
        }
    )


class TestSimulator:
    def test_twenty_flows_through_red(self):
        """The fluid's windows are the simulator's; its loss is larger by what windows vary.

        It takes E[W^2] = E[W]^2, so that E[W]^2 p = 2. Regular losses give 3/2, random ones what
        the chain of a single window says; RED's are between. The queue is where RED drops so much.
        """
        runs = simulate([(red_dumbbell(20, 600), seed) for seed in range(6)])
        links = [link for r in runs for link in r.record["links"] if link["drops"]]
        assert len(links) == 6
        queue = np.array([link["mean_queue"] for link in links])
        loss = np.array([link["drops"] / link["arrivals"] for link in links])
        e = equilibrium(Flows("reno", 20, 0.1), CAPACITY, STEADY)
        windows = np.array([np.mean([f["mean_window"] for f in r.record["flows"]]) for r in runs])
        # Flows with the rate C / N: their windows differ as their round-trip times, by the queue.
        assert windows.mean() == pytest.approx(e.window[0], rel=0.02)

        def error(x: np.ndarray) -> float:
            return float(x.std(ddof=1) / math.sqrt(x.size))

        constants = windows**2 * loss
        random = stationary("reno", loss.mean())
        assert constants.mean() > 1.5 - 3 * error(constants)
        assert constants.mean() < random.mean**2 * random.p + 3 * error(constants)
        drawn = np.array([STEADY.average(float(p)) for p in loss])
        assert abs(queue.mean() - drawn.mean()) < 4 * math.hypot(error(queue), error(drawn))
        assert queue.mean() < e.queue

    def test_both_oscillate_under_a_steep_red(self):
        run = simulate([(red_dumbbell(50, 150), 1)])[0]
        queue = next(link["queue"] for link in run.record["links"] if link["drops"])[600:]
        fluid = transient(Flows("reno", 20, 0.1), CAPACITY, Red(1000, 50, 150), 90, step=0.01)
        flow = fluid.queue[len(fluid.queue) // 3 :]
        # Both empty the queue again and again; their means are as near as that lets them be.
        assert queue.std() > 20
        assert flow.std() > 20
        assert abs(queue.mean() - flow.mean()) < queue.std() / 2
