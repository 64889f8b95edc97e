"""The stationary distribution under random losses, beside closed forms and the simulator."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cwnd
from cwnd._runs.run import simulate
from cwnd.errors import ArgumentError
from cwnd.model import throughput
from cwnd.model.stationary import aimd_moments, figures, stationary

GAIMD = [(1, 0.5), (0.31, 0.125), (0.2, 0.125), (3 / 31, 1 / 16)]


class TestClosedForm:
    def test_the_constant_of_ott_kemperman_and_mathis(self):
        assert aimd_moments(1, 0.5, 1e-4).mean * 1e-2 == pytest.approx(1.3098, abs=5e-5)

    @pytest.mark.parametrize(("alpha", "beta"), GAIMD)
    def test_the_chain_goes_to_the_limit(self, alpha, beta):
        """The difference goes with 1 / w, that is with sqrt(p); what is left of it with 1 / w^2."""
        spec = f"aimd({alpha!r}, {beta!r})"
        large, small = (stationary(spec, p, ideal=True, points=300) for p in (4e-3, 1e-3))
        limit = aimd_moments(alpha, beta, 1.0)
        scaled = [r.mean * math.sqrt(r.p) for r in (large, small)]
        assert scaled[0] < scaled[1] < limit.mean
        assert 2 * scaled[1] - scaled[0] == pytest.approx(limit.mean, rel=1 / large.mean**2)
        # The grid adds to the deviation: h^2 is not small beside beta^2 w^2 for small beta.
        assert 2 * small.cv - large.cv == pytest.approx(limit.cv, rel=4e-3)

    @pytest.mark.slow
    def test_gains_balance_losses(self):
        """alpha = p beta E W^2, whatever the distribution, up to a packet's growth."""
        for alpha, beta in GAIMD:
            r = stationary(f"aimd({alpha!r}, {beta!r})", 4e-3, ideal=True)
            square = r.variance + r.mean**2
            assert r.p * beta * square == pytest.approx(alpha, rel=2 / r.mean)
            m = aimd_moments(alpha, beta, 1e-3)
            assert 1e-3 * beta * (m.variance + m.mean**2) == pytest.approx(alpha)

    def test_the_gaimd_formula_is_its_limit_of_small_cuts(self):
        """Equation 3 has losses at regular distances: random ones are the same for small beta."""
        p, ratios = 1e-5, []
        for beta in (0.5, 0.125, 1 / 64):
            alpha = 3 * beta / (2 - beta)
            # The TD part is the time for a packet.
            formula = 1 / throughput.gaimd_td(p, 1.0, alpha=alpha, beta=beta)
            ratios.append(aimd_moments(alpha, beta, p).mean / formula)
        assert ratios[0] == pytest.approx(1.3098 / math.sqrt(1.5), abs=1e-4)
        assert ratios[0] > ratios[1] > ratios[2] > 1
        assert ratios[2] == pytest.approx(1, abs=0.005)

    def test_arrays_are_broadcast(self):
        m = aimd_moments([1, 0.31], [0.5, 0.125], [[1e-2], [1e-3]])
        assert np.shape(m.mean) == np.shape(m.cv) == (2, 2)
        # The spread does not depend on p: everything scales with 1 / sqrt(p).
        np.testing.assert_allclose(m.cv[0], m.cv[1])


class TestChain:
    @pytest.mark.slow
    def test_refinement_is_of_second_order(self):
        for spec in ("reno", "aimd(0.31, 1/8)"):
            runs = [stationary(spec, 4e-3, ideal=True, points=n) for n in (100, 200, 400)]
            for figure in ("mean", "cv"):
                a, b, c = (getattr(run, figure) for run in runs)
                assert 3 < (a - b) / (b - c) < 5

    @pytest.mark.parametrize("spec", ["reno", "simd", "iiad", "cubic(fast=off)", "highspeed"])
    def test_a_distribution(self, spec):
        r = stationary(spec, 3e-3, rtt=0.05)
        assert r.over_time.sum() == pytest.approx(1)
        assert r.at_loss.sum() == pytest.approx(1)
        windows, density = r.density()
        assert (density >= 0).all()
        assert np.trapezoid(density, windows) == pytest.approx(1, abs=2e-3)
        assert r.over_time @ r.grid == pytest.approx(r.mean, rel=1e-4)
        low, middle, high = r.quantile([0.05, 0.5, 0.95])
        assert low < middle < high
        assert abs(middle - r.mean) < math.sqrt(r.variance)
        # A cut for so many packets, sent at this rate, between two cuts.
        assert r.epoch * r.rate * r.loss_events == pytest.approx(1)
        assert r.loss_events < r.p
        assert r.rate_variance == pytest.approx(r.variance / 0.0025)

    def test_recovery_costs_and_every_loss_counts_in_the_ideal(self):
        real, ideal = stationary("reno", 1e-2), stationary("reno", 1e-2, ideal=True)
        assert real.mean < ideal.mean
        assert ideal.loss_events == pytest.approx(1e-2, rel=1e-6)
        # Losses of a window are answered once: one in 1 / p packets and the window behind it.
        at_loss = real.at_loss @ real.grid
        assert real.loss_events == pytest.approx(1 / (100 + at_loss), rel=0.01)

    def test_simd_under_random_losses(self):
        """Section 3 equates mean increases and ignores how they vary: SIMD gets 5.5 % less."""
        tcp, simd = (stationary(s, 1e-3, ideal=True) for s in ("reno", "simd(beta=1/16)"))
        assert simd.mean / tcp.mean == pytest.approx(0.945, abs=0.005)
        # Half of TCP's spread, where AIMD of the same beta has less than a third.
        assert simd.cv / tcp.cv == pytest.approx(0.48, abs=0.01)
        assert aimd_moments(3 / 31, 1 / 16, 1e-3).cv < simd.cv

    def test_the_round_trip_time_is_only_for_laws_with_a_clock(self):
        reno = [stationary("reno", 1e-2, rtt=r) for r in (0.01, 0.1)]
        assert reno[0].mean == reno[1].mean
        assert reno[0].rate == pytest.approx(10 * reno[1].rate)
        cubic = [stationary("cubic(fast=off)", 3e-3, rtt=r, points=60) for r in (0.01, 0.2)]
        assert cubic[1].mean > 1.2 * cubic[0].mean

    def test_figures_are_those_of_the_distribution(self):
        f = figures("reno", [[1e-2, 2e-2]], rtt=0.2)
        r = stationary("reno", 2e-2, rtt=0.2)
        assert np.shape(f.mean) == (1, 2)
        assert (f.mean[0, 1], f.cv[0, 1], f.rate[0, 1]) == (r.mean, r.cv, r.rate)
        assert (f.low[0, 1], f.high[0, 1]) == tuple(r.quantile([0.05, 0.95]))

    def test_refusals(self):
        for spec in ("cubic", "bic", "aira", "westwood"):
            with pytest.raises(ArgumentError, match="has more memory than the window"):
                stationary(spec, 1e-2)
        with pytest.raises(cwnd.SpecError, match="a law for the window"):
            stationary("daimd", 1e-2)
        with pytest.raises(ArgumentError, match="p"):
            stationary("reno", 1e-8)
        with pytest.raises(ArgumentError, match="points"):
            stationary("reno", 1e-2, points=3)
        with pytest.raises(ArgumentError, match="q"):
            stationary("reno", 1e-2).quantile(1.0)
        with pytest.raises(ArgumentError, match="beta"):
            aimd_moments(1, 1, 1e-3)


def random_loss(spec: str, p: float, seconds: int) -> cwnd.Scenario:
    """The scenario random-loss without a largest window."""
    link = {"from": "source", "to": "sink", "rate": "infinite", "delay": "50ms", "loss": p}
    return cwnd.Scenario(
        {
            "duration": f"{seconds}s",
            "warmup": "50s",
            "sample": "100ms",
            "link": [link],
            "tcp": {"conventions": "ns2-2001"},
            "flow": [{"controller": spec, "from": "source", "to": "sink"}],
        }
    )


def sampled(spec: str, p: float, seeds: int, seconds: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and coefficient of variation of the sampled window, for each seed."""
    runs = simulate([(random_loss(spec, p, seconds), seed) for seed in range(seeds)])
    windows = [run.record["flows"][0]["window"][run.record["time"] > 50] for run in runs]
    means = np.array([w.mean() for w in windows])
    return means, np.array([w.std() for w in windows]) / means


class TestSimulator:
    @pytest.mark.parametrize("spec", ["reno", "aimd(0.31, 1/8)", "simd(beta=1/16)"])
    def test_mean_and_spread_of_a_single_flow(self, spec):
        """At p = 1e-3, within what seeds leave open: four standard errors."""
        model = stationary(spec, 1e-3)
        for found, expected in zip(
            sampled(spec, 1e-3, 8, 750), (model.mean, model.cv), strict=True
        ):
            error = found.std(ddof=1) / math.sqrt(found.size)
            assert error < 0.05 * expected
            assert abs(found.mean() - expected) < 4 * error

    @pytest.mark.parametrize(("spec", "below"), [("reno", 0.03), ("simd(beta=1/16)", 0.04)])
    def test_timeouts_are_what_is_missing_at_more_loss(self, spec, below):
        """At p = 1e-2 a loss in 80 ends in a timeout, by a retransmission that is lost again.

        What it costs is not in the model: the simulated window is smaller.
        """
        model = stationary(spec, 1e-2)
        means, _ = sampled(spec, 1e-2, 6, 550)
        assert (1 - below) * model.mean < means.mean() < model.mean
