//! **Scalable TCP**: multiplicative increase, multiplicative decrease.
//!
//! Kelly, *Scalable TCP: improving performance in highspeed wide area networks*, ACM SIGCOMM
//! Computer Communication Review 33(2), 2003.
//!
//! ```text
//! each ACK: w <- w + a
//! at a loss: w <- w - b w
//! up to `low`: w <- w + 1 / w and w <- w / 2, as Reno
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `a` | growth at each ACK | packets | 0 < a <= 1 | 0.01 |
//! | `b` | reduction at a loss as a fraction of the window | | 0 < b < 1 | 1/8 |
//! | `low` | the legacy window, up to which the law is Reno | packets | 1 <= low <= 1000000 | 16 |
//!
//! Recovers from a loss in about `b / a` round-trip times at any window. TCP-friendly only up to
//! `low`.
//!
//! In slow start and after a timeout Linux sets the threshold to `1 - b` of the window. Table 6 of
//! the DAIMD paper prints `0.1 w` for the paper's `0.01 w`.
//!
//! Known deviations:
//!
//! * The source has no rule for the slow-start threshold: in slow start and after a timeout it is
//!   at most half of the window (RFC 5681 equation 4).
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.

use crate::law::{Context, Signal, WindowLaw};

/// Scalable TCP: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalable {
    a: f64,
    b: f64,
    low: f64,
}

impl Scalable {
    /// Scalable TCP that grows by `a` packets at each ACK, reduces its window by the fraction `b`,
    /// and is Reno up to `low` packets.
    pub const fn new(a: f64, b: f64, low: f64) -> Self {
        Scalable { a, b, low }
    }
}

impl WindowLaw for Scalable {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        let each = if w > self.low { self.a } else { 1.0 / w };
        w + each * acked
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        if w > self.low { w - self.b * w } else { w / 2.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::context;

    #[test]
    fn scales_above_the_legacy_window_and_is_reno_below() {
        let mut law = Scalable::new(0.01, 0.125, 16.0);
        assert_eq!(law.grow(100.0, 3.0, &context()), 100.0 + 0.03);
        assert_eq!(law.cut(100.0, Signal::Loss, &context()), 87.5);
        assert_eq!(law.grow(16.0, 1.0, &context()), 16.0 + 1.0 / 16.0);
        assert_eq!(law.cut(16.0, Signal::Loss, &context()), 8.0);
    }

    /// From 7/8 w back to w at 1 % a round-trip time: ln(8/7) / ln(1.01) = 13.4, at any window.
    #[test]
    fn recovers_in_the_same_time_at_any_window() {
        for w in [100.0, 10_000.0] {
            let mut law = Scalable::new(0.01, 0.125, 16.0);
            let (mut now, mut rounds) = (law.cut(w, Signal::Loss, &context()), 0);
            while now < w {
                now = law.grow(now, now, &context());
                rounds += 1;
            }
            assert_eq!(rounds, 14);
        }
    }
}
