//! **AIMD(α, β)**, general additive increase, multiplicative decrease.
//!
//! Chiu and Jain 1989; Yang and Lam, *General AIMD congestion control*, TR-2000-09; TCP Reno is
//! AIMD(1, 1/2) (RFC 5681).
//!
//! ```text
//! each ACK: w <- w + alpha / w
//! at a loss: w <- w - beta w
//! at a loss: w <- kept w                                                         (GAIMD's notation)
//! without timeouts: alpha = 3 beta / (2 - beta)                             (SIMD paper, section 2)
//! with timeouts: alpha = 4 (1 - (1 - beta)^2) / 3                                    (Yang and Lam)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `alpha` | growth in each round-trip time | packets | 0 < alpha <= 1000 | 1, gaimd: 0.31 |
//! | `beta` | reduction at a loss as a fraction of the window | | 0 < beta < 1 | 1/2, friendly: 1/8 |
//! | `kept` | 1 - beta, which Yang and Lam call beta | | 0 < kept < 1 | 7/8 |
//! | `threshold` | threshold after a timeout: half of the window, or `kept` times it | | half, kept | half |
//! | `timeouts` | whether alpha accounts for TCP's timeouts | | on or off | off |
//!
//! TCP-friendly with the alpha of the last two equations.
//!
//! Known deviations:
//!
//! * The source has no rule for the slow-start threshold: in slow start and after a timeout it is
//!   at most half of the window (RFC 5681 equation 4).
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.
//! * Yang and Lam halve the window at the congestion indication that ends slow start, as RFC 5681
//!   equation 4 allows; they have no rule for the threshold after a timeout (see `threshold`).
//! * The paper's beta is `kept`: the `beta` of `aimd` is a reduction.
//! * Under Linux's conventions AIMD(1, 1/2) counts whole packets (tcp_cong.c).

use crate::conventions::Conventions;
use crate::law::{Context, Signal, WindowLaw};
use crate::whole::Credit;
use libm::floor;

/// AIMD(α, β): see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    alpha: f64,
    beta: f64,
    /// Whether the threshold after a timeout is `1 - beta` times the window, not half of it.
    keeps_threshold: bool,
    /// Of Linux's Reno, which counts whole packets.
    credit: Option<Credit>,
}

impl Aimd {
    /// AIMD that grows by `alpha` packets in each round-trip time and reduces its window by the
    /// fraction `beta`.
    pub const fn new(alpha: f64, beta: f64) -> Self {
        Aimd { alpha, beta, keeps_threshold: false, credit: None }
    }

    /// TCP Reno's AIMD(1, 1/2) (RFC 5681).
    pub const fn reno() -> Self {
        Aimd::new(1.0, 0.5)
    }

    /// The GAIMD paper's GAIMD(α, β), whose β is `kept`: the window after a loss over that before
    /// it.
    pub const fn gaimd(alpha: f64, kept: f64) -> Self {
        Aimd::new(alpha, 1.0 - kept)
    }

    /// With a threshold of (1 − β) w after a timeout, not of w / 2.
    pub const fn keeping_threshold(self) -> Self {
        Aimd { keeps_threshold: true, ..self }
    }

    /// α and β.
    pub const fn parameters(&self) -> (f64, f64) {
        (self.alpha, self.beta)
    }

    /// The TCP-friendly α for `beta` without timeouts: 3β/(2−β).
    pub const fn friendly(beta: f64) -> f64 {
        3.0 * beta / (2.0 - beta)
    }

    /// The TCP-friendly α for `beta` with timeouts: 4(1−κ²)/3 with κ = 1−β (Yang and Lam).
    pub const fn friendly_with_timeouts(beta: f64) -> f64 {
        let kept = 1.0 - beta;
        4.0 * (1.0 - kept * kept) / 3.0
    }
}

impl WindowLaw for Aimd {
    fn adopt(&mut self, conventions: &'static Conventions) {
        let whole = conventions.whole_packets && *self == Aimd::reno();
        self.credit = whole.then(Credit::default);
    }

    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        match &mut self.credit {
            None => w + self.alpha * acked / w,
            Some(credit) => f64::from(credit.grow(w as u32, acked as u32, w as u32)),
        }
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        let cut = w - self.beta * w;
        match &mut self.credit {
            None => cut,
            Some(credit) => {
                *credit = Credit::default();
                floor(cut)
            }
        }
    }

    fn threshold(&self, cut: f64, why: Signal) -> Option<f64> {
        (self.keeps_threshold && why == Signal::Timeout).then_some(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::context;

    #[test]
    fn the_threshold_after_a_timeout_is_half_or_kept() {
        let mut law = Aimd::gaimd(0.31, 0.875).keeping_threshold();
        let cut = law.cut(80.0, Signal::Timeout, &context());
        assert_eq!(law.threshold(cut, Signal::Timeout), Some(70.0));
        assert_eq!(law.threshold(cut, Signal::Loss), None);
        assert_eq!(Aimd::gaimd(0.31, 0.875).threshold(cut, Signal::Timeout), None);
    }

    #[test]
    fn published_friendly_pairs() {
        assert_eq!(Aimd::friendly(0.5), 1.0);
        assert_eq!(Aimd::friendly_with_timeouts(0.5), 1.0);
        assert_eq!(Aimd::friendly_with_timeouts(0.125), 0.3125);
        assert!((Aimd::friendly(1.0 / 16.0) - 0.0968).abs() < 1e-4);
    }
}
