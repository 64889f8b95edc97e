//! **SIMD(β)**, square increase, multiplicative decrease.
//!
//! Jin, Guo, Matta and Bestavros, *TCP-friendly SIMD congestion control and its convergence
//! behavior*, BU-CS-2001-006.
//!
//! ```text
//! each round-trip time: w <- w + alpha sqrt(w - w0)                                             (1)
//! each ACK: w <- w + alpha sqrt(w - w0) / w                                                     (9)
//! the first ACK: w <- w0 + alpha^2 / (4 w0)                                            (appendix B)
//! alpha = 3 sqrt(beta) / ((1 - 2 beta / 3) sqrt(2 w_max))                                       (3)
//! at a loss: w_max <- w, w <- w - beta w, w0 <- w                                               (1)
//! at a timeout: w_max <- w, w0 <- 1                                                     (appendix B)
//! so that w(t) = w0 + alpha^2 t^2 / 4, t in round-trip times                                    (2)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `beta` | reduction at a loss as a fraction of the window | | 0 < beta < 1 | 1/16 |
//! | `alpha` | increase, by Eq. 3; changes at each decrease | | > 0 | |
//! | `w_max` | window before the last decrease | packets | | |
//! | `w0` | window after it | packets | | |
//! | `reset` | what sets w0 after a timeout: the decrease to one packet, or the start of congestion avoidance | | decrease, avoidance | decrease |
//!
//! TCP-friendly under random losses by the choice of `alpha` (section 3).
//!
//! Section 5.1 says that all laws of the paper use TCP's timeouts. ns-2 halves the threshold as
//! well.
//!
//! Known deviations:
//!
//! * The source has no rule for the slow-start threshold: in slow start and after a timeout it is
//!   at most half of the window (RFC 5681 equation 4).
//! * After a loss in slow start w0 is at most half of w_max. Eq. 3 has w0 = (1 - beta) w_max.
//! * Where slow start ends without a loss, w0 = w and w_max = w0 / (1 - beta).
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.

use crate::law::{Context, Signal, WindowLaw};
use crate::parts::PERSISTENT_WINDOW;
use libm::sqrt;

/// SIMD(β): see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simd {
    beta: f64,
    reset: SimdReset,
    alpha: f64,
    w0: f64,
    /// Set from a reduction until congestion avoidance begins again.
    w_max: Option<f64>,
    /// Whether that reduction, a timeout, has set `w0`.
    restarted: bool,
}

/// What sets w0 after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimdReset {
    /// The decrease of the window to its least value (appendix B).
    Decrease,
    /// The start of congestion avoidance: the rule of footnote 2 for the first slow start.
    Avoidance,
}

impl Simd {
    /// SIMD that reduces its window by the fraction `beta`.
    pub const fn new(beta: f64, reset: SimdReset) -> Self {
        Simd { beta, reset, alpha: 0.0, w0: 0.0, w_max: None, restarted: false }
    }

    /// The α of Eq. 3 for a window of `w_max` before the last decrease.
    pub fn alpha(beta: f64, w_max: f64) -> f64 {
        3.0 * sqrt(beta) / ((1.0 - 2.0 * beta / 3.0) * sqrt(2.0 * w_max))
    }
}

impl WindowLaw for Simd {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        let each = if w > self.w0 {
            self.alpha * sqrt(w - self.w0)
        } else {
            self.alpha * self.alpha / 4.0
        };
        w + each * acked / w
    }

    fn cut(&mut self, w: f64, why: Signal, _cx: &Context) -> f64 {
        self.w_max = Some(w);
        self.restarted = why.restarts() && self.reset == SimdReset::Decrease;
        if self.restarted {
            self.w0 = if why == Signal::Timeout { 1.0 } else { PERSISTENT_WINDOW };
        }
        w - self.beta * w
    }

    fn enter(&mut self, w: f64, _cx: &Context) {
        if !core::mem::take(&mut self.restarted) {
            self.w0 = w;
        }
        let w_max = self.w_max.take().unwrap_or(w / (1.0 - self.beta));
        self.alpha = Simd::alpha(self.beta, w_max);
    }

    fn rescale(&mut self, factor: f64) {
        self.w0 *= factor;
        self.w_max = self.w_max.map(|w_max| w_max * factor);
        // Eq. 3: alpha is proportional to 1 / sqrt(w_max).
        self.alpha /= sqrt(factor);
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("alpha", self.alpha);
        emit("w0", self.w0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::context;

    /// For beta = 3/8 and w_max = 32: 3 sqrt(3/8) / ((1 - 1/4) sqrt(64)) = sqrt(3/8) / 2.
    fn after_a_loss_at_32() -> (Simd, f64) {
        let mut law = Simd::new(0.375, SimdReset::Decrease);
        let w = law.cut(32.0, Signal::Loss, &context());
        assert_eq!(w, 20.0);
        law.enter(w, &context());
        (law, 0.375_f64.sqrt() / 2.0)
    }

    #[test]
    fn alpha_follows_from_the_window_before_the_loss() {
        let (law, alpha) = after_a_loss_at_32();
        assert!((law.alpha - alpha).abs() < 1e-15);
        assert_eq!(law.w0, 20.0);
    }

    #[test]
    fn the_first_ack_starts_the_square() {
        let (mut law, alpha) = after_a_loss_at_32();
        let first = law.grow(20.0, 1.0, &context());
        assert!((first - (20.0 + alpha * alpha / 80.0)).abs() < 1e-12);
        let second = law.grow(29.0, 2.0, &context());
        assert!((second - (29.0 + 2.0 * alpha * 3.0 / 29.0)).abs() < 1e-12);
    }

    /// Appendix B: w0 is the window of one packet, also when congestion avoidance begins again at
    /// half of the window before the timeout.
    #[test]
    fn a_timeout_resets_w0_to_its_window() {
        for (reset, w0) in [(SimdReset::Decrease, 1.0), (SimdReset::Avoidance, 16.0)] {
            let mut law = Simd::new(0.375, reset);
            law.cut(32.0, Signal::Timeout, &context());
            law.enter(16.0, &context());
            assert_eq!((law.w0, law.alpha), (w0, Simd::alpha(0.375, 32.0)));
            // The next loss sets it to the window after the loss.
            let w = law.cut(24.0, Signal::Loss, &context());
            law.enter(w, &context());
            assert_eq!(law.w0, 15.0);
        }
        let mut law = Simd::new(0.375, SimdReset::Decrease);
        law.cut(32.0, Signal::PersistentCongestion, &context());
        law.enter(16.0, &context());
        assert_eq!(law.w0, 2.0);
    }

    /// Eq. 2, with as many ACKs in a round as the window has packets.
    #[test]
    fn grows_with_the_square_of_time() {
        let (mut law, alpha) = after_a_loss_at_32();
        let (mut w, mut t) = (20.0, 0.0);
        while t < 40.0 {
            t += 1.0 / w;
            w = law.grow(w, 1.0, &context());
        }
        let expected = 20.0 + alpha * alpha * t * t / 4.0;
        assert!((w - expected).abs() < 0.02 * expected, "{w} against {expected}");
    }

    /// Four times the packets: the same law after a loss at 128 packets, in recovery and after it.
    #[test]
    fn rescaling_is_the_same_law_at_scaled_windows() {
        let mut expected = Simd::new(0.375, SimdReset::Decrease);
        let w = expected.cut(128.0, Signal::Loss, &context());
        let mut in_recovery = Simd::new(0.375, SimdReset::Decrease);
        in_recovery.cut(32.0, Signal::Loss, &context());
        in_recovery.rescale(4.0);
        for law in [&mut expected, &mut in_recovery] {
            law.enter(w, &context());
        }
        assert_eq!(in_recovery, expected);
        let (mut law, _) = after_a_loss_at_32();
        law.rescale(4.0);
        assert_eq!((law.w0, law.w_max), (expected.w0, expected.w_max));
        assert!((law.alpha - expected.alpha).abs() < 1e-15);
    }

    #[test]
    fn slow_start_without_a_loss_sets_both_windows() {
        let mut law = Simd::new(0.5, SimdReset::Decrease);
        law.enter(16.0, &context());
        assert_eq!(law.w0, 16.0);
        assert_eq!(law.alpha, Simd::alpha(0.5, 32.0));
    }
}
