//! **HighSpeed TCP**: Reno whose increase and decrease depend on the window.
//!
//! Floyd, *HighSpeed TCP for large congestion windows*, RFC 3649 section 5.
//!
//! ```text
//! each ACK: w <- w + a(w) / w
//! at a loss: w <- w - b(w) w
//! w <= W: a(w) = 1, b(w) = 1/2
//! w > W: p(w) = P (w / W)^(1/S), S = (ln W1 - ln W) / (ln P1 - ln P)
//! b(w) = 1/2 - (1/2 - B1) (ln w - ln W) / (ln W1 - ln W)
//! a(w) = 2 w^2 b(w) p(w) / (2 - b(w))
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `W`, `low` | window up to which the law is Reno | packets | 1 <= low <= 1000 | 38 |
//! | `W1`, `high` | window of the highest speed | packets | 1001 <= high <= 1000000000 | 83000 |
//! | `P`, `plow` | loss rate at which the window is `W` | | 1e-5 <= plow <= 0.1 | 0.001 |
//! | `P1`, `phigh` | loss rate at which the window is `W1` | | 1e-12 <= phigh <= 1e-6 | 1e-7 |
//! | `B1`, `bhigh` | reduction at `W1` as a fraction of the window | | 0 < bhigh <= 0.5 | 0.1 |
//!
//! TCP-friendly up to `W`.
//!
//! In slow start and after a timeout Linux sets the threshold to `1 - b(w)` of the window.
//!
//! Known deviations:
//!
//! * The source has no rule for the slow-start threshold: in slow start and after a timeout it is
//!   at most half of the window (RFC 5681 equation 4).
//! * a(w) is recomputed when the window has changed by a packet, not at each ACK.
//! * Beyond W1, where the RFC has no rule, b stays B1 and a follows its equation.
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.

use crate::law::{Context, Signal, WindowLaw};
use libm::{exp, log};

/// HighSpeed TCP: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HighSpeed {
    low: f64,
    high_decrease: f64,
    ln_low: f64,
    /// ln W1 - ln W.
    span: f64,
    ln_p_low: f64,
    /// 1/S.
    slope: f64,
    /// The window at which `a` was computed.
    at: f64,
    a: f64,
}

impl HighSpeed {
    /// HighSpeed TCP that is Reno up to a window of `low.0` packets, its window at a loss rate of
    /// `low.1`. At a loss rate of `high.1` the window is `high.0` packets, which a loss reduces by
    /// the fraction `high_decrease`.
    pub fn new(low: (f64, f64), high: (f64, f64), high_decrease: f64) -> Self {
        let (ln_low, ln_p_low) = (log(low.0), log(low.1));
        let span = log(high.0) - ln_low;
        let slope = (log(high.1) - ln_p_low) / span;
        let low = low.0;
        HighSpeed { low, high_decrease, ln_low, span, ln_p_low, slope, at: 0.0, a: 1.0 }
    }

    /// The reduction at a loss at window `w`, as a fraction of it.
    pub fn decrease(&self, w: f64) -> f64 {
        if w <= self.low {
            return 0.5;
        }
        let part = (log(w) - self.ln_low) / self.span;
        (0.5 - (0.5 - self.high_decrease) * part).max(self.high_decrease)
    }

    /// The growth in each round-trip time at window `w`, in packets.
    pub fn increase(&self, w: f64) -> f64 {
        if w <= self.low {
            return 1.0;
        }
        let p = exp(self.ln_p_low + self.slope * (log(w) - self.ln_low));
        let b = self.decrease(w);
        2.0 * w * w * b * p / (2.0 - b)
    }
}

impl Default for HighSpeed {
    /// The RFC's parameters.
    fn default() -> Self {
        HighSpeed::new((38.0, 1e-3), (83_000.0, 1e-7), 0.1)
    }
}

impl WindowLaw for HighSpeed {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        if (w - self.at).abs() >= 1.0 {
            self.at = w;
            self.a = self.increase(w);
        }
        w + self.a * acked / w
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        w - self.decrease(w) * w
    }

    /// W and W1 stay: the response function is one of windows in packets of any size.
    fn rescale(&mut self, factor: f64) {
        self.at *= factor;
        self.a = self.increase(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::context;

    /// The rows of RFC 3649's appendix B: the smallest window for each whole a(w), and b(w) there.
    #[test]
    fn agrees_with_the_table_of_the_rfc() {
        let law = HighSpeed::default();
        for (w, a, b) in [
            (118.0, 2.0, 0.44),
            (221.0, 3.0, 0.41),
            (347.0, 4.0, 0.38),
            (495.0, 5.0, 0.37),
            (1058.0, 8.0, 0.33),
        ] {
            assert!((law.increase(w) / a - 1.0).abs() < 0.02, "a({w}) = {}", law.increase(w));
            assert!((law.decrease(w) - b).abs() < 0.006, "b({w}) = {}", law.decrease(w));
        }
    }

    #[test]
    fn is_reno_at_small_windows() {
        let mut law = HighSpeed::default();
        assert_eq!(law.grow(38.0, 1.0, &context()), 38.0 + 1.0 / 38.0);
        assert_eq!(law.cut(38.0, Signal::Loss, &context()), 19.0);
    }

    /// Within a packet of the scaled window, where a(w) is not recomputed.
    #[test]
    fn rescaling_recomputes_the_increase() {
        let mut law = HighSpeed::default();
        law.grow(50.0, 1.0, &context());
        law.rescale(0.99);
        let a = law.increase(49.5);
        assert_eq!(law.grow(49.6, 1.0, &context()), 49.6 + a / 49.6);
    }

    #[test]
    fn the_ends_are_the_parameters() {
        let law = HighSpeed::default();
        assert!((law.decrease(83_000.0) - 0.1).abs() < 1e-12);
        assert_eq!(law.decrease(1e7), 0.1);
    }
}
