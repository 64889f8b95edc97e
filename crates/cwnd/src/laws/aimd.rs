//! **AIMD(α, β)**, general additive increase, multiplicative decrease.
//!
//! Chiu and Jain 1989; Yang and Lam, *General AIMD congestion control*, TR-2000-09; TCP Reno is
//! AIMD(1, 1/2) (RFC 5681).
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
//! TCP-friendly without timeouts: `alpha = 3 beta / (2 - beta)` (SIMD paper, section 2). With
//! timeouts (Yang and Lam): `alpha = 4 (1 - kept^2) / 3`, where `kept = 1 - beta` is what that paper
//! calls beta.
//!
//! Slow-start threshold: at most half of the window in slow start and after a timeout (RFC 5681
//! equation 4). Yang and Lam halve at the first congestion indication, which ends slow start; of the
//! threshold after a timeout they say nothing.
//!
//! Known deviations: none. With byte counting (RFC 3465) an ACK of n packets counts as n; Yang and
//! Lam count ACKs, so that delayed ones halve `alpha`.

use crate::law::{Context, Signal, WindowLaw};

/// AIMD(α, β): see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    alpha: f64,
    beta: f64,
}

impl Aimd {
    /// AIMD that gains `alpha` packets each round-trip time and gives up `beta` of its window.
    pub const fn new(alpha: f64, beta: f64) -> Self {
        Aimd { alpha, beta }
    }

    /// TCP Reno's AIMD(1, 1/2) (RFC 5681).
    pub const fn reno() -> Self {
        Aimd::new(1.0, 0.5)
    }

    /// The GAIMD paper's GAIMD(α, β), whose β is the fraction of the window `kept`.
    pub const fn gaimd(alpha: f64, kept: f64) -> Self {
        Aimd::new(alpha, 1.0 - kept)
    }

    /// α and β.
    pub const fn parameters(&self) -> (f64, f64) {
        (self.alpha, self.beta)
    }

    /// The α that makes `beta` TCP-friendly when timeouts do not matter: 3β/(2−β).
    pub const fn friendly(beta: f64) -> f64 {
        3.0 * beta / (2.0 - beta)
    }

    /// The α that makes `beta` TCP-friendly with timeouts: 4(1−κ²)/3 with κ = 1−β (Yang and Lam).
    pub const fn friendly_with_timeouts(beta: f64) -> f64 {
        let kept = 1.0 - beta;
        4.0 * (1.0 - kept * kept) / 3.0
    }
}

impl WindowLaw for Aimd {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        w + self.alpha * acked / w
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        w - self.beta * w
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_friendly_pairs() {
        assert_eq!(Aimd::friendly(0.5), 1.0);
        assert_eq!(Aimd::friendly_with_timeouts(0.5), 1.0);
        assert_eq!(Aimd::friendly_with_timeouts(0.125), 0.3125);
        assert!((Aimd::friendly(1.0 / 16.0) - 0.0968).abs() < 1e-4);
    }
}
