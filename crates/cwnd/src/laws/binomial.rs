//! **Binomial(k, l, α, β)**: increase by a power of the window, decrease by another.
//!
//! Bansal and Balakrishnan, *Binomial congestion control algorithms*, INFOCOM 2001; as the SIMD
//! paper (BU-CS-2001-006) uses it.
//!
//! ```text
//! each ACK: w <- w + alpha / w^(k+1)
//! at a loss: w <- w - beta w^l
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `k` | power of the increase: 0 AIMD, 1 IIAD, 1/2 SQRT | | 0 <= k <= 4 | 1 |
//! | `l` | power of the decrease: 1 AIMD, 0 IIAD, 1/2 SQRT | | 0 <= l <= 1 | 0 |
//! | `alpha` | growth in each round-trip time at a window of 1 | packets | 0 < alpha <= 1000 | 1 |
//! | `beta` | reduction at a loss at a window of 1 | packets | 0 < beta < 1 | 2/3 |
//!
//! TCP-friendly for `k + l = 1` and `alpha = 3 beta / 2`: an epoch lasts `beta w / alpha`
//! round-trip times, in which `1/p = beta w^2 / alpha` packets pass, so that `w = sqrt(alpha /
//! (beta p))`, which is TCP's `sqrt(3 / (2p))` (footnote 9 of the SIMD paper for IIAD; SQRT has the
//! same relation).
//!
//! Known deviations:
//!
//! * The source has no rule for the slow-start threshold: in slow start and after a timeout it is
//!   at most half of the window (RFC 5681 equation 4).
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.
//! * alpha and beta of SQRT follow the TCP-friendly relation alpha = 3 beta / 2, as those of IIAD
//!   do.

use crate::law::{Context, Signal, WindowLaw};
use libm::{pow, sqrt};

/// A binomial law: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binomial {
    k: f64,
    l: f64,
    alpha: f64,
    beta: f64,
}

impl Binomial {
    /// A binomial law with these parameters.
    pub const fn new(k: f64, l: f64, alpha: f64, beta: f64) -> Self {
        Binomial { k, l, alpha, beta }
    }

    /// k, l, α and β.
    pub const fn parameters(&self) -> (f64, f64, f64, f64) {
        (self.k, self.l, self.alpha, self.beta)
    }

    /// Inverse increase, additive decrease, as the SIMD paper runs it: (k, l, α, β) = (1, 0, 1,
    /// 2/3).
    pub const fn iiad() -> Self {
        Binomial::new(1.0, 0.0, 1.0, 2.0 / 3.0)
    }

    /// Both powers a square root: (1/2, 1/2, 1, 2/3).
    pub const fn sqrt() -> Self {
        Binomial::new(0.5, 0.5, 1.0, 2.0 / 3.0)
    }
}

/// w^p, without a logarithm for the powers that the named laws use.
#[inline]
fn power(w: f64, p: f64) -> f64 {
    if p == 0.0 {
        1.0
    } else if p == 1.0 {
        w
    } else if p == 0.5 {
        sqrt(w)
    } else {
        pow(w, p)
    }
}

impl WindowLaw for Binomial {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        w + self.alpha * acked / (w * power(w, self.k))
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        w - self.beta * power(w, self.l)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::Aimd;
    use crate::laws::testing::context;

    #[test]
    fn iiad_gains_the_inverse_and_loses_a_constant() {
        let mut iiad = Binomial::iiad();
        assert_eq!(iiad.grow(10.0, 1.0, &context()), 10.0 + 1.0 / 100.0);
        assert_eq!(iiad.cut(10.0, Signal::Loss, &context()), 10.0 - 2.0 / 3.0);
    }

    #[test]
    fn sqrt_gains_and_loses_by_the_root() {
        let mut law = Binomial::sqrt();
        // 16^(3/2) = 64 and 16^(1/2) = 4.
        assert_eq!(law.grow(16.0, 2.0, &context()), 16.0 + 2.0 / 64.0);
        assert_eq!(law.cut(16.0, Signal::Loss, &context()), 16.0 - 4.0 * (2.0 / 3.0));
    }

    #[test]
    fn aimd_is_the_case_of_k_0_and_l_1() {
        let (mut binomial, mut aimd) =
            (Binomial::new(0.0, 1.0, 0.31, 0.125), Aimd::new(0.31, 0.125));
        assert_eq!(binomial.grow(7.0, 1.0, &context()), aimd.grow(7.0, 1.0, &context()));
        let why = Signal::Mark;
        assert_eq!(binomial.cut(7.0, why, &context()), aimd.cut(7.0, why, &context()));
    }

    #[test]
    fn other_powers_go_through_the_logarithm() {
        let mut law = Binomial::new(2.0, 0.25, 1.0, 0.5);
        assert!((law.grow(3.0, 1.0, &context()) - (3.0 + 1.0 / 27.0)).abs() < 1e-12);
        assert!((law.cut(16.0, Signal::Loss, &context()) - 15.0).abs() < 1e-12);
    }
}
