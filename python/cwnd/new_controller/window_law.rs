//! **$Type**: to fill in, what it does in one sentence.
//!
//! Source: to fill in, authors, title, where and when published. Until then it is AIMD(α, β).
//!
//! ```text
//! each round-trip time   w <- w + alpha          each ACK   w <- w + alpha / w
//! at a loss              w <- w - beta w
//! ```
//!
//! | symbol | meaning | range | default |
//! |---|---|---|---|
//! | `alpha` | packets gained each round-trip time | > 0 | 1 |
//! | `beta` | fraction of the window given up at a loss | 0 < beta < 1 | 1/2 |
//!
//! TCP-friendly without timeouts: `alpha = 3 beta / (2 - beta)`.
//!
//! Slow-start threshold: at most half of the window in slow start and after a timeout (RFC 5681
//! equation 4).
//!
//! Known deviations: to fill in, or none.

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
    use crate::laws::testing::context;

    #[test]
    fn gains_alpha_packets_each_round_trip_time() {
        let mut law = $Type::new(1.0, 0.5);
        assert_eq!(law.grow(10.0, 10.0, &context()), 11.0);
    }

    #[test]
    fn gives_up_beta_of_its_window() {
        let mut law = $Type::new(1.0, 0.25);
        assert_eq!(law.cut(40.0, Signal::Loss, &context()), 30.0);
        assert_eq!(law.last, Some(40.0));
    }
}
