//! **Scalable TCP**: multiplicative increase, multiplicative decrease.
//!
//! Kelly, *Scalable TCP: improving performance in highspeed wide area networks*, ACM SIGCOMM Computer
//! Communication Review 33(2), 2003.
//!
//! ```text
//! each ACK       w <- w + a
//! at a loss      w <- w - b w
//! below `low`    w <- w + 1 / w   and   w <- w / 2, as Reno
//! ```
//!
//! | symbol | meaning | range | default |
//! |---|---|---|---|
//! | `a` | packets gained at each ACK | 0 < a <= 1 | 1/100 |
//! | `b` | fraction of the window given up at a loss | 0 < b < 1 | 1/8 |
//! | `low` | the legacy window, in packets | 1..10^6 | 16 |
//!
//! Recovers from a loss in about `b / a` round-trip times whatever the window. TCP-friendly only
//! below `low`.
//!
//! Slow-start threshold: at most half of the window in slow start and after a timeout (RFC 5681
//! equation 4); the equations above are for congestion avoidance. Linux keeps `1 - b`.
//!
//! Known deviations: none. (Table 6 of the DAIMD paper prints `0.1 w` for what is `0.01 w` here.)

use crate::law::{Context, Signal, WindowLaw};

/// Scalable TCP: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalable {
    a: f64,
    b: f64,
    low: f64,
}

impl Scalable {
    /// Scalable TCP that gains `a` at each ACK, gives up `b`, and is Reno up to `low` packets.
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
