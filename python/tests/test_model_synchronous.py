"""Laws without a network and the synchronous model, beside the closed forms and the papers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cwnd
from cwnd.errors import ArgumentError
from cwnd.model import law
from cwnd.model import synchronous as sync

SPECS = {"tcp": "reno", "aimd": "friendly(beta=1/16)", "iiad": "iiad", "simd": "simd(beta=1/16)"}
# Table 3 of the SIMD paper: the analytic columns, to the digits that it prints.
EXPERIMENT_1 = {"tcp": (6.1, 99.6, 88.7), "aimd": (7.9, 99.2, 1217), "simd": (6.6, 96.3, 852)}
EXPERIMENT_2 = {
    "aimd": (12.7, 31.0, 342, 18.3),
    "iiad": (11.8, 31.2, 1242, 7.6),
    "simd": (10.2, 33.2, 85.1, 12.3),
}


class TestLaw:
    @pytest.mark.parametrize("spec", ["reno", "simd", "aimd(0.31, 1/8)", "cubic(fast=off)"])
    def test_the_simulator_grows_as_the_model_does(self, spec):
        """Between two losses of a run there are as many rounds as in the model, and recovery.

        On an infinite link the packets of a round arrive at one instant: recovery lasts for a
        round, the part of a round up to the next loss counts as a whole one, and what is
        acknowledged at the end of recovery grows the window by up to a round: between 0 and 2
        rounds more. A loss among the last three packets of a round is found a round later.
        """
        link = {"from": "a", "to": "b", "rate": "infinite", "delay": "50ms", "loss": 1e-3}
        scenario = cwnd.Scenario(
            {
                "duration": "200s",
                "sample": "1s",
                "link": [link],
                "tcp": {"conventions": "ns2-2001"},
                "flow": [{"controller": spec, "from": "a", "to": "b"}],
            }
        )
        cuts = cwnd.run(scenario, seed=1).record["flows"][0]["cuts"]
        more = []
        for i in range(1, len(cuts["cause"]) - 1):
            took = (cuts["time"][i + 1] - cuts["time"][i]) / 0.1
            if cuts["cause"][i : i + 2] == ["loss", "loss"] and took > 2:
                windows = law.rounds(spec, cuts["before"][i], math.ceil(took) + 1, at_loss=True)
                assert cuts["after"][i] == windows[0]
                rounds = np.arange(windows.size)
                more.append(took - np.interp(cuts["before"][i + 1], windows, rounds))
        assert len(more) > 50
        assert 0 <= min(more) <= max(more) <= 3

    def test_simd_follows_its_square(self):
        """Equation 4, from a loss at 160: Appendix B's rule is within 1 % of it after 20 rounds."""
        beta, w_max = 1 / 16, 160.0
        windows = law.rounds("simd(beta=1/16)", w_max, 60, at_loss=True)
        t = np.arange(61)
        square = (1 - beta) * w_max + 9 * beta * t**2 / (8 * (1 - 2 * beta / 3) ** 2 * w_max)
        assert windows[0] == square[0] == 150
        first = law.acks("simd(beta=1/16)", w_max, 1, at_loss=True)[1]
        alpha = 3 * math.sqrt(beta) / ((1 - 2 * beta / 3) * math.sqrt(2 * w_max))
        assert first == pytest.approx(150 + alpha**2 / (4 * 150), abs=1e-12)
        np.testing.assert_allclose(windows[20:], square[20:], rtol=0.01)

    @given(w=st.floats(2, 1e5))
    def test_cuts(self, w):
        assert law.cut("reno", w) == max(w / 2, 1)
        assert law.cut("gaimd(0.31, 7/8)", w) == pytest.approx(7 / 8 * w)
        assert law.cut("iiad", w) == pytest.approx(w - 2 / 3)
        assert law.cut("daimd", w) == pytest.approx(8 / 9 * w)

    @pytest.mark.parametrize(("alpha", "beta"), [(1, 0.5), (0.31, 0.125), (0.2, 0.125)])
    def test_the_sawtooth_of_aimd(self, alpha, beta):
        at_loss = np.array([50.0, 400.0])
        tooth = law.sawtooth(f"aimd({alpha}, {beta})", at_loss)
        np.testing.assert_allclose(tooth.decrease, beta)
        # dw/dn = alpha / w; a round is w packets. A step is one packet, or 1/64 of a round.
        packets = (1 - (1 - beta) ** 2) * at_loss**2 / (2 * alpha)
        np.testing.assert_allclose(tooth.packets, packets, atol=at_loss[1] / 64)
        np.testing.assert_allclose(tooth.increase, alpha, rtol=1 / at_loss[0] ** 2)

    def test_what_has_more_memory_has_no_plain_sawtooth(self):
        assert not law.forgets("bic")
        with pytest.raises(ArgumentError, match="has no cycle"):
            law.sawtooth("aira", 50)

    def test_refusals(self):
        class Mine:
            pass

        with pytest.raises(cwnd.SpecError, match="Mine is not a controller"):
            law.acks(Mine, 10, 1)
        with pytest.raises(cwnd.SpecError, match="a law for the window is needed"):
            law.acks("udt", 10, 1)
        with pytest.raises(cwnd.SpecError, match="a slow start of its own"):
            law.rounds("tfrc", 10, 1, capacity=100)
        with pytest.raises(cwnd.SpecError, match="did you mean"):
            law.cut("renno", 10)
        with pytest.raises(ArgumentError, match="capacity"):
            law.rounds("daimd", 10, 1)
        with pytest.raises(ArgumentError, match="window"):
            law.acks("reno", 0.5, 1)
        with pytest.raises(ArgumentError, match="one number"):
            law.acks("reno", [1, 2], 1)
        with pytest.raises(ArgumentError, match="per"):
            law.rounds("reno", 10, 1, per="packet")

    def test_daimd_steps_by_its_own_clock(self):
        """Equation 8 at 1 Gb/s: 10^(9 - 9) packets each 10 ms until 100 Mb/s are left."""
        capacity = 1e9 / 8 / 1500
        windows = law.rounds("daimd", 100, 3, rtt=0.1, capacity=capacity * 0.1)
        # 10 intervals of 1 packet / SYN: each adds 100 packets/s, 10 packets of a window.
        np.testing.assert_allclose(np.diff(windows), 100)
        short = law.rounds("daimd", 100, 30, rtt=0.004, capacity=capacity * 0.004)
        assert np.count_nonzero(np.diff(short)) == 12


class TestTrajectory:
    def test_the_plane_of_chiu_and_jain(self):
        run = sync.trajectory("reno", [10, 80], 100, 60, per="round")
        assert run.losses.tolist()[:3] == [5, 30, 55]
        np.testing.assert_allclose(run.after[5], [7.5, 42.5])
        np.testing.assert_allclose(run.windows[30], [32.5, 67.5])
        unchanged = np.setdiff1d(np.arange(61), run.losses)
        np.testing.assert_array_equal(run.windows[unchanged], run.after[unchanged])

    def test_laws_of_different_kinds_share(self):
        run = sync.trajectory(["reno", "cubic", "daimd", "aira"], [10, 20, 30, 40], 500, 2000)
        assert run.windows.shape == (2001, 4)
        assert np.isfinite(run.windows).all()
        assert run.losses.size > 10
        # Nobody grows on a loss.
        assert (run.after <= run.windows).all()

    @settings(max_examples=30)
    @given(
        a=st.floats(1, 45),
        c=st.floats(1, 45),
        spec=st.sampled_from(["reno", "simd", "iiad", "friendly(beta=1/16)", "sqrt"]),
    )
    def test_convergence_is_read_off_the_trajectory(self, a, c, spec):
        found = sync.convergence(spec, a, c, 100, 5, per="round", limit=5000)
        rounds = int(found.t1 + found.t2)
        run = sync.trajectory(spec, [a, c], 100, rounds, per="round")
        assert run.losses[0] == found.t1
        gap = np.abs(np.diff(run.windows, axis=1)).ravel()
        after = np.abs(np.diff(run.after, axis=1)).ravel()
        assert gap[run.losses[0]] == found.delta
        assert min(gap[-1], after[-1]) < 5
        assert (gap[run.losses[0] : -1] >= 5).all()
        if found.delta < 5:
            assert found.t2 == found.epochs == 0
        else:
            assert run.losses.size - (gap[-1] < 5 and rounds in run.losses) == found.epochs

    def test_arrays_are_broadcast(self):
        found = sync.convergence("reno", [[10.0], [20.0]], [30.0, 40.0, 50.0], 100, 1)
        assert np.shape(found.t1) == np.shape(found.t2) == (2, 3)
        assert found.t2[1, 2] == sync.convergence("reno", 20, 50, 100, 1).t2

    def test_what_never_converges_is_infinite(self):
        found = sync.convergence("scalable", 20, 40, 100, 1, limit=2000)
        assert math.isfinite(found.t1)
        assert found.t2 == found.epochs == math.inf

    def test_refusals(self):
        with pytest.raises(ArgumentError, match="2 specifications for 3 windows"):
            sync.trajectory(["reno", "simd"], [1, 2, 3], 100, 10)
        with pytest.raises(ArgumentError, match="windows"):
            sync.trajectory("reno", [], 100, 10)
        with pytest.raises(ArgumentError, match="epsilon"):
            sync.convergence("reno", 1, 2, 100, 0)
        with pytest.raises(ArgumentError, match="below the line"):
            sync.table1("tcp", 60, 50, 100, 1)
        with pytest.raises(ArgumentError, match="must be one of"):
            sync.table1("cubic", 10, 50, 100, 1)
        with pytest.raises(ArgumentError, match="TCP's is 1/2"):
            sync.table1("tcp", 10, 50, 100, 1, 0.25)


class TestClosedForms:
    @pytest.mark.parametrize("name", EXPERIMENT_1)
    def test_table_3_experiment_1(self, name):
        w1, w2, published = EXPERIMENT_1[name]
        epochs = sync.fairness_epochs(name, w2 - w1, 110, 10)
        near = sync.table1(name, 55, 55, 110, 10)
        assert near.t2 == 0
        # Table 1's length of an epoch, from a difference of one contraction.
        length = sync.table1(name, 50, 60, 110, 10 * sync.contraction(name, 110)).t2
        assert epochs * length == pytest.approx(published, abs=0.5 if published > 100 else 0.05)

    @pytest.mark.parametrize("name", EXPERIMENT_2)
    def test_table_3_experiment_2(self, name):
        w1, w2, t1, delta = EXPERIMENT_2[name]
        row = sync.table1(name, w1, w2, 110, 10)
        # The paper cuts 342.55 off to 342.
        assert row.t1 == pytest.approx(t1, abs=0.6 if t1 > 100 else 0.05)
        assert row.delta == pytest.approx(delta, abs=0.05)

    def test_tcp_is_aimd(self):
        a, b = sync.table1("tcp", 10, 30, 100, 1), sync.table1("aimd", 10, 30, 100, 1, 0.5)
        assert (a.t1, a.delta, a.t2) == (b.t1, b.delta, b.t2)

    @pytest.mark.parametrize("name", SPECS)
    def test_t1_and_delta_agree_with_the_iteration(self, name):
        """Within a round, and for SIMD within the lag of steps behind the square.

        With s = sqrt(w - w0), steps are s' = sqrt(s^2 + alpha s) = s + alpha/2 - alpha^2 / (8 s):
        after t of them they are (ln t) / 2 + O(1) behind s = alpha t / 2. IIAD's are ahead of
        w^2 = w0^2 + 2 t by the sum of 1 / w^2 over them, which is ln(w / w0).
        """
        rng = np.random.default_rng(7)
        w1, w2 = rng.uniform(5, 90, (2, 200))
        exact = sync.convergence(SPECS[name], w1, w2, 200, 100, per="round")
        closed = sync.table1(name, w1, w2, 200, 1)
        lag = exact.t1 - closed.t1
        ahead = np.log(200 / np.minimum(w1, w2)) / 2 if name == "iiad" else 1e-6
        behind = 1 + np.log(closed.t1) / 2 if name == "simd" else 1e-6
        assert (lag >= -ahead).all()
        assert (lag < 1 + behind).all()
        # The difference changes by less than what is gained in the rounds between.
        gained = {"tcp": 0.0, "aimd": 0.0, "iiad": 1 / 5}.get(name, 2 * (200 - w1 - w2) / closed.t1)
        assert (np.abs(exact.delta - closed.delta) <= gained * (1 + np.abs(lag)) + 1e-6).all()

    @pytest.mark.parametrize("name", ["tcp", "aimd", "simd"])
    def test_an_epoch_agrees_with_the_iteration(self, name):
        """On a line at 20,000 packets, where a round is short and the overshoot is small."""
        beta = sync.BETAS[name]
        run = sync.trajectory(SPECS[name], [5000, 15000], 20_000, 60_000, per="round")
        first, second = run.losses[0], run.losses[1]
        start = run.after[first]
        length = sync.epoch_length(name, *start)
        assert second - first == pytest.approx(length, abs=2 + math.log(length) / 2)
        shrunk = np.diff(run.after[second]) / np.diff(start)
        assert shrunk[0] == pytest.approx(sync.contraction(name, 20_000, beta), abs=3 / length)

    def test_iiads_bounds(self):
        """The contraction is a bound of that of an epoch; Table 1's T2 is none.

        It counts every epoch with the length W / 3 of the last; 4/3 W1 W2 / W is less than that.
        """
        run = sync.trajectory("iiad", [400, 600], 1000, 20_000, per="round")
        starts = run.after[run.losses]
        gaps = np.diff(starts, axis=1).ravel()
        shrunk = (gaps[-1] / gaps[0]) ** (1 / (gaps.size - 1))
        assert gaps.size > 50
        assert shrunk >= sync.contraction("iiad", starts.sum(axis=1).min())
        exact = sync.convergence("iiad", 10, 100, 110, 10, per="round")
        assert exact.t1 == 0
        assert exact.t2 < 0.9 * sync.table1("iiad", 10, 100, 110, 10).t2

    @pytest.mark.parametrize("name", SPECS)
    def test_the_sum_of_epochs_agrees_with_the_iteration(self, name):
        """Experiment 1's W and epsilon, from the line: within an epoch."""
        w1, w2 = np.array([15.0, 25.0, 35.0]), np.array([95.0, 85.0, 75.0])
        exact = sync.convergence(SPECS[name], w1, w2, 110, 10, per="round")
        summed = sync.epoch_sum(name, w1, w2, 10)
        epoch = sync.epoch_length(name, 55, 55)
        # SIMD's steps are behind the square in every epoch; IIAD's closed form is a lower bound.
        late = np.asarray(exact.epochs) * (2 if name == "simd" else 0)
        assert (exact.t2 >= summed - epoch).all()
        assert (exact.t2 <= summed * (1.05 if name == "iiad" else 1) + epoch + late).all()


class TestRegions:
    def test_figure_4a_is_the_line_of_one_third(self):
        rng = np.random.default_rng(4)
        x = rng.uniform(0, 1, (2, 4000))
        x1, x2 = x[:, (x.sum(axis=0) < 1) & (np.abs(x.sum(axis=0) - 1 / 3) > 1e-6)]
        np.testing.assert_array_equal(sync.simd_fairer(x1, x2), x1 + x2 > 1 / 3)

    def test_figure_4c(self):
        side = np.linspace(2, 98, 25)
        w1, w2 = np.meshgrid(side, side)
        below = (w1 < w2) & (w1 + w2 < 100)
        closed = sync.plane(w1[below], w2[below])
        exact = sync.plane(w1[below], w2[below], exact=True)
        # "In most cases SIMD converges faster than AIMD": of these starts, further apart than
        # epsilon, those where it does not are in a corner.
        for points in (closed, exact):
            assert points.simd_faster.mean() > 0.95
            slower = ~points.simd_faster
            assert (points.w1 + points.w2)[slower].max() < 100 / 3
            # "IIAD is much slower … in all cases": not in that corner.
            assert points.iiad_slowest[points.w1 + points.w2 > 100 / 3].all()
        assert (closed.simd_faster == exact.simd_faster).mean() > 0.98


def test_the_phase_plane_is_the_trajectory_with_its_losses():
    path = sync.phase_plane("reno", 10, 80, 100, 40, per="round")
    run = sync.trajectory("reno", [10, 80], 100, 40, per="round")
    points = [tuple(run.windows[0])]
    for i in range(1, 41):
        points.append(tuple(run.windows[i]))
        if i in run.losses:
            points.append(tuple(run.after[i]))
    assert list(zip(path.w1.tolist(), path.w2.tolist(), strict=True)) == points
    # A loss keeps the ratio, and a round without one keeps the difference.
    difference = [c - a for a, c in points]
    assert difference == sorted(difference, reverse=True)
    assert difference[-1] < difference[0] / 2


def test_a_start_on_the_line_has_a_loss():
    path = sync.phase_plane("reno", 50, 50, 100, 1, per="round")
    assert path.w1.tolist() == [50, 25, 26]
    assert path.w1.tolist() == path.w2.tolist()
