//! **$Type**: to fill in, what it does in one sentence.
//!
//! Source: to fill in, authors, title, where and when published. Until then it is AIMD(α, β).
//!
//! ```text
//! each ACK: w <- w + alpha / w
//! at a loss: w <- w - beta w
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `alpha` | growth in each round-trip time | packets | 0 < alpha <= 1000 | 1 |
//! | `beta` | reduction at a loss as a fraction of the window | | 0 < beta < 1 | 1/2 |
//!
//! TCP-friendly without timeouts: `alpha = 3 beta / (2 - beta)`.
//!
//! Known deviations:
//!
//! * The source has no rule for the slow-start threshold: in slow start and after a timeout it is
//!   at most half of the window (RFC 5681 equation 4).
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.

use crate::law::{Context, Signal, WindowLaw};

/// $Type: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct $Type {
    alpha: f64,
    beta: f64,
    /// State: the window at the last cut; `None` before the first one.
    last: Option<f64>,
}

impl $Type {
    /// $Type that gains `alpha` packets each round-trip time and gives up `beta` of its window.
    pub const fn new(alpha: f64, beta: f64) -> Self {
        $Type { alpha, beta, last: None }
    }
}

impl WindowLaw for $Type {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        w + self.alpha * acked / w
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        self.last = Some(w);
        w - self.beta * w
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("last", self.last.unwrap_or(f64::NAN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::at;
    use crate::units::Time;

    #[test]
    fn gains_alpha_packets_each_round_trip_time() {
        let mut law = $Type::new(1.0, 0.5);
        assert_eq!(law.grow(10.0, 10.0, &at(Time::ZERO)), 11.0);
    }

    #[test]
    fn gives_up_beta_of_its_window() {
        let mut law = $Type::new(1.0, 0.25);
        assert_eq!(law.cut(40.0, Signal::Loss, &at(Time::ZERO)), 30.0);
        assert_eq!(law.last, Some(40.0));
    }
}
