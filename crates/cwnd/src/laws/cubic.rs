//! **CUBIC**: the window as a cubic function of the time since the last loss.
//!
//! Xu, Ha, Rhee, Goel and Eggert, *CUBIC for fast and long-distance networks*, RFC 9438.
//!
//! ```text
//! W(t) = C (t - K)^3 + w_max,   K = cbrt((w_max - w0) / C), t in seconds since w was w0   (1, 2)
//! W_est <- W_est + alpha acked / w,   alpha = 3 (1 - kept) / (1 + kept), 1 from w_prior       (4)
//! each ACK:  w <- W_est, if W(t) < W_est;  else w <- w + (target - w) / w
//!            target = W(t + RTT), at least w, at most 3/2 w
//! at a loss: w_prior <- w;  w_max <- w, or (1 + kept) w / 2 if w < w_max;  w <- kept w
//! threshold: ssthresh <- kept w, at a loss, in slow start and after a timeout
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `C` (`c`) | growth | packets/s^3 | 0.001..100 | 0.4 |
//! | `kept` | the RFC's beta: what is kept of the window | | 0 < kept < 1 | 0.7 |
//! | `fast` | fast convergence | | on, off | on |
//! | `w0` | window at the start of congestion avoidance | packets | | |
//!
//! TCP-friendly where W_est is the larger: short round-trip times or small windows.
//!
//! Slow-start threshold: `kept` w after every signal, in slow start (section 4.6) and after a timeout
//! (section 4.8) too.
//!
//! Known deviations: `kept` is of the window, not of what is in flight (section 4.6 allows it where the
//! window does not grow unused), and a mark leaves two packets at least, where the RFC allows one. Where
//! congestion avoidance begins without a loss in it (slow start left
//! by its own, or a timeout before), K = 0 and w_max = w0 (section 4.8, 4.10). Time in which the
//! application, the receiver or the pacing limits the sender does not count (section 4.2).

use crate::event::{Acked, Limit};
use crate::law::{Context, Signal, WindowLaw};
use crate::units::Time;
use libm::cbrt;

/// CUBIC: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cubic {
    c: f64,
    kept: f64,
    fast: bool,
    /// The additive increase that makes `kept` TCP-friendly.
    alpha: f64,
    w_max: f64,
    /// In seconds.
    k: f64,
    epoch: Time,
    w_est: f64,
    w_prior: f64,
    /// Whether the last cut was a loss or a mark: `k` follows from it.
    after_loss: bool,
    observed: Time,
}

impl Cubic {
    /// CUBIC that grows with `c` and keeps `kept` of its window at a loss, with fast convergence or
    /// without.
    pub const fn new(c: f64, kept: f64, fast: bool) -> Self {
        Cubic {
            c,
            kept,
            fast,
            alpha: 3.0 * (1.0 - kept) / (1.0 + kept),
            w_max: 0.0,
            k: 0.0,
            epoch: Time::ZERO,
            w_est: 0.0,
            w_prior: f64::INFINITY,
            after_loss: false,
            observed: Time::ZERO,
        }
    }

    /// W(t), t in seconds.
    #[inline]
    fn window(&self, t: f64) -> f64 {
        let x = t - self.k;
        self.c * x * x * x + self.w_max
    }
}

impl Default for Cubic {
    /// The RFC's parameters.
    fn default() -> Self {
        Cubic::new(0.4, 0.7, true)
    }
}

impl WindowLaw for Cubic {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
        let t = cx.now.since(self.epoch).as_secs();
        let rtt = cx.rtt.map_or(0.0, |rtt| rtt.smoothed.as_secs());
        let alpha = if self.w_est < self.w_prior { self.alpha } else { 1.0 };
        self.w_est += alpha * acked / w;
        if self.window(t) < self.w_est {
            return self.w_est.max(w);
        }
        let target = self.window(t + rtt).max(w).min(1.5 * w);
        w + (target - w) * (acked / w).min(1.0)
    }

    fn cut(&mut self, w: f64, why: Signal, _cx: &Context) -> f64 {
        self.w_prior = w;
        self.w_max = if self.fast && w < self.w_max { (1.0 + self.kept) * w / 2.0 } else { w };
        self.after_loss = !why.restarts();
        self.kept * w
    }

    fn threshold(&self, cut: f64, _why: Signal) -> Option<f64> {
        Some(cut)
    }

    fn enter(&mut self, w: f64, cx: &Context) {
        self.epoch = cx.now;
        self.w_est = w;
        if !self.after_loss {
            self.w_max = w;
        }
        self.k = cbrt((self.w_max - w).max(0.0) / self.c);
    }

    #[inline]
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        if acked.limit != Limit::Window {
            self.epoch += cx.now.since(self.observed);
        }
        self.observed = cx.now;
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("w_max", self.w_max);
        emit("w_est", self.w_est);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::at;
    use crate::units::Dur;

    fn seconds(s: f64) -> Context {
        at(Time::ZERO + Dur::from_secs(s))
    }

    /// From w_max = 100: w0 = 70 and K = cbrt(30 / 0.4) = cbrt(75) = 4.217 s.
    fn after_a_loss_at_100() -> Cubic {
        let mut law = Cubic::default();
        assert_eq!(law.cut(100.0, Signal::Loss, &seconds(0.0)), 70.0);
        law.enter(70.0, &seconds(0.0));
        assert!((law.k - 75_f64.cbrt()).abs() < 1e-12);
        law
    }

    #[test]
    fn the_cubic_passes_through_both_windows() {
        let law = after_a_loss_at_100();
        assert!((law.window(0.0) - 70.0).abs() < 1e-9);
        assert!((law.window(law.k) - 100.0).abs() < 1e-9);
    }

    /// At t = 2 s, the target is W(2.1) with a round-trip time of 100 ms.
    #[test]
    fn each_ack_goes_a_windowth_of_the_way() {
        let mut law = after_a_loss_at_100();
        let x: f64 = 2.1 - 75_f64.cbrt();
        let target = 100.0 + 0.4 * x * x * x;
        let w = law.grow(80.0, 1.0, &seconds(2.0));
        assert!((w - (80.0 + (target - 80.0) / 80.0)).abs() < 1e-9);
    }

    /// alpha = 3 * 0.3 / 1.7 = 9/17 a round-trip time.
    #[test]
    fn small_windows_follow_reno() {
        let mut law = Cubic::default();
        law.cut(10.0, Signal::Loss, &seconds(0.0));
        law.enter(7.0, &seconds(0.0));
        let w = law.grow(7.0, 7.0, &seconds(0.01));
        assert!((w - (7.0 + 9.0 / 17.0)).abs() < 1e-9);
        // From the window before the loss on, a whole packet each round-trip time.
        law.w_est = 10.0;
        assert!((law.grow(10.0, 10.0, &seconds(0.02)) - 11.0).abs() < 1e-9);
    }

    #[test]
    fn fast_convergence_gives_way() {
        let mut law = Cubic::default();
        law.cut(100.0, Signal::Loss, &seconds(0.0));
        law.cut(90.0, Signal::Loss, &seconds(1.0));
        assert!((law.w_max - 0.85 * 90.0).abs() < 1e-9);
        let mut law = Cubic::new(0.4, 0.7, false);
        law.cut(100.0, Signal::Loss, &seconds(0.0));
        law.cut(90.0, Signal::Loss, &seconds(1.0));
        assert_eq!(law.w_max, 90.0);
    }

    #[test]
    fn without_a_loss_the_cubic_starts_flat() {
        let mut law = Cubic::default();
        law.enter(50.0, &seconds(3.0));
        assert_eq!((law.k, law.w_max), (0.0, 50.0));
    }
}
