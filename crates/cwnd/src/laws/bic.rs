//! **BIC**, binary increase.
//!
//! Xu, Harfoush and Rhee, *Binary increase congestion control (BIC) for fast long-distance
//! networks*, INFOCOM 2004.
//!
//! ```text
//! each ACK, w < max: w <- w + s / w, s = (max + w) / 2 - w, at least smin, at most smax
//! each ACK, w >= max: w <- w + s / w, s = 1, doubled each time w has grown by it, at most smax
//! at a loss: max <- w, or (2 - beta) w / 2 if w < max (fast convergence); w <- w - beta w
//! below `low`: w <- w + 1 / w and w <- w / 2, as Reno
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `smax` | largest growth in a round-trip time | packets | 1 <= smax <= 1000 | 32 |
//! | `smin` | smallest growth in a round-trip time | packets | 0 < smin <= 1 | 0.01 |
//! | `beta` | reduction at a loss as a fraction of the window | | 0 < beta < 1 | 1/8 |
//! | `low` | window below which the law is Reno | packets | 1 <= low <= 1000 | 14 |
//!
//! TCP-friendly below `low`; at large windows close to AIMD(smax, beta).
//!
//! In slow start and after a timeout Linux sets the threshold to `1 - beta` of the window.
//!
//! Known deviations:
//!
//! * The source has no rule for the slow-start threshold: in slow start and after a timeout it is
//!   at most half of the window (RFC 5681 equation 4).
//! * The least increment applies at each ACK; the paper ends its binary search when a step falls
//!   below it.
//! * Before the first loss the maximum is infinite: the window grows by smax.
//! * Fast convergence compares with the last maximum in the probe beyond it too, as Linux does; the
//!   paper's code resets it there.
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.

use crate::law::{Context, Signal, WindowLaw};

/// BIC's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BicParameters {
    /// The largest growth in a round-trip time, in packets.
    pub smax: f64,
    /// The smallest growth in a round-trip time, in packets.
    pub smin: f64,
    /// The reduction at a loss as a fraction of the window.
    pub beta: f64,
    /// The window below which the law is Reno, in packets.
    pub low: f64,
}

impl Default for BicParameters {
    fn default() -> Self {
        BicParameters { smax: 32.0, smin: 0.01, beta: 0.125, low: 14.0 }
    }
}

/// BIC: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bic {
    parameters: BicParameters,
    /// The target of the binary search: the window at the last loss.
    max: f64,
    /// Past `max`: the step of the probe, and the window at which it doubles.
    probe: Option<(f64, f64)>,
}

impl Bic {
    /// BIC with these parameters.
    pub const fn new(parameters: BicParameters) -> Self {
        Bic { parameters, max: f64::INFINITY, probe: None }
    }

    /// The growth in a round-trip time beyond the old maximum, in packets.
    fn probe(&mut self, w: f64) -> f64 {
        let (mut step, mut doubles_at) = self.probe.unwrap_or((1.0, w + 1.0));
        if w >= doubles_at && step < self.parameters.smax {
            step = (2.0 * step).min(self.parameters.smax);
            doubles_at = w + step;
        }
        self.probe = Some((step, doubles_at));
        step
    }
}

impl WindowLaw for Bic {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        let BicParameters { smax, smin, low, .. } = self.parameters;
        let step = if w < low {
            1.0
        } else if w < self.max {
            ((self.max - w) / 2.0).min(smax).max(smin)
        } else {
            self.probe(w)
        };
        w + step * acked / w
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        let BicParameters { beta, low, .. } = self.parameters;
        self.probe = None;
        if w < low {
            return w / 2.0;
        }
        self.max = if w < self.max && self.max.is_finite() { (2.0 - beta) * w / 2.0 } else { w };
        w - beta * w
    }

    /// The steps stay: the parameters bound them in packets of any size.
    fn rescale(&mut self, factor: f64) {
        self.max *= factor;
        self.probe =
            self.probe.map(|(step, doubles_at)| (step, (doubles_at - step) * factor + step));
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("w_max", self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::context;

    #[test]
    fn it_halves_the_way_to_the_old_maximum() {
        let mut law = Bic::new(BicParameters::default());
        assert_eq!(law.cut(400.0, Signal::Loss, &context()), 350.0);
        // Half of the way is 25; at 100 packets below it would be 50, more than smax.
        assert_eq!(law.grow(350.0, 1.0, &context()), 350.0 + 25.0 / 350.0);
        assert_eq!(law.grow(300.0, 1.0, &context()), 300.0 + 32.0 / 300.0);
        assert_eq!(law.grow(399.999, 1.0, &context()), 399.999 + 0.01 / 399.999);
    }

    #[test]
    fn past_the_maximum_it_doubles_its_steps() {
        let mut law = Bic::new(BicParameters::default());
        law.cut(400.0, Signal::Loss, &context());
        let steps = [(400.0, 1.0), (400.5, 1.0), (401.0, 2.0), (403.0, 4.0), (407.0, 8.0)];
        for (w, step) in steps {
            assert_eq!(law.grow(w, 1.0, &context()), w + step / w);
        }
        for (w, step) in [(415.0, 16.0), (431.0, 32.0), (463.0, 32.0)] {
            assert_eq!(law.grow(w, 1.0, &context()), w + step / w);
        }
    }

    #[test]
    fn a_loss_below_the_old_maximum_lowers_the_target() {
        let mut law = Bic::new(BicParameters::default());
        law.cut(400.0, Signal::Loss, &context());
        law.cut(320.0, Signal::Loss, &context());
        // (2 - 1/8) / 2 * 320, halfway between 320 and the 280 after the loss.
        assert_eq!(law.max, 300.0);
    }

    #[test]
    fn rescaling_moves_the_maximum_and_the_probe() {
        let mut law = Bic::new(BicParameters::default());
        law.cut(400.0, Signal::Loss, &context());
        law.rescale(2.0);
        assert_eq!(law.grow(760.0, 1.0, &context()), 760.0 + 20.0 / 760.0);
        assert_eq!(law.grow(800.0, 1.0, &context()), 800.0 + 1.0 / 800.0);
        // The probe began at 800 packets, 1600 of the smaller ones: it doubles its step one packet
        // beyond.
        law.rescale(2.0);
        assert_eq!(law.grow(1600.5, 1.0, &context()), 1600.5 + 1.0 / 1600.5);
        assert_eq!(law.grow(1601.0, 1.0, &context()), 1601.0 + 2.0 / 1601.0);
    }

    #[test]
    fn it_is_reno_at_small_windows() {
        let mut law = Bic::new(BicParameters::default());
        assert_eq!(law.grow(10.0, 1.0, &context()), 10.1);
        assert_eq!(law.cut(10.0, Signal::Loss, &context()), 5.0);
    }
}
