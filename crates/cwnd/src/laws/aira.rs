//! **AIRA**, the additive increase rate accelerator.
//!
//! Psaras and Tsaoussidis, *On the properties of an additive increase rate accelerator*, Computer
//! Networks.
//!
//! ```text
//! each ACK: w <- w + a / w                                                                      (1)
//! at a loss: w <- w - beta w                                                                    (2)
//! after round i: p_i = lost / sent, p_0 = 0                                                    (22)
//! decrease, if p_i > p_(i-1): a <- a (1 - p_i)                                                  (5)
//! increase, if p_i < p_(i-1): a <- a (1 + p_(i-1) - p_i)                                       (14)
//! bound: a >= 0.1                                                                     (section 6.1)
//! MAIL: a >= 1 - 0.9 R_N / 100, R_N rounds completed                                           (23)
//! reset: a <- 1 once w reaches 3/2 W, W its value at the last loss                    (section 6.3)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `a` | growth in each round-trip time, 1 at the start | packets | bound..1 | |
//! | `beta` | reduction at a loss as a fraction of the window; `b` in the paper | | 0 < beta < 1 | 1/2 |
//! | `bound` | the lower bound of a; 0 is off | packets | 0 <= bound <= 1 | 0.1 |
//! | `mail` | the minimum additive increase limit (Eq. 23) | | on or off | on |
//! | `reset` | the reset condition (section 6.3) | | on or off | on |
//! | `increase` | the increase rule (Eq. 14) | | on or off | on |
//! | `decrease` | the decrease rule (Eq. 5) | | on or off | on |
//! | `rounds` | rounds in which MAIL falls to the bound | | 1 <= rounds <= 10000 | 100 |
//! | `ratio` | window over W at which `a` is reset | | 1 < ratio <= 10 | 3/2 |
//! | `timeout` | effect of a timeout on the current round | | continues, ends | continues |
//! | `peak` | W of the reset condition: the window at the last loss, or the mean or the largest of those at the last 30 | | last, mean, largest | last |
//!
//! Never more aggressive than TCP: `a <= 1`.
//!
//! Section 6.3 assumes that the window oscillates between W/2 and W before other flows leave, and
//! does not say how a sender finds W where its peaks differ: `peak` has three readings.
//!
//! Timeouts. A round is "the interval between two cwnd multiplicative decreases" (section 4.1,
//! definition 2), and the introduction lists "timeouts and multiplicative decreases" separately: a
//! timeout is no such decrease, so the round continues, and the packets declared lost then count as
//! its losses. The pseudo-code's "upon loss or triple-duplicate ack" has another reading:
//! `timeout=ends` ends the round at a timeout outside recovery.
//!
//! Known deviations:
//!
//! * The source has no rule for the slow-start threshold: in slow start and after a timeout it is
//!   at most half of the window (RFC 5681 equation 4).
//! * a never exceeds 1, which section 6.3 calls the fastest.
//! * The 0.9 of Eq. 23 is 1 - bound.
//! * A timeout ends no round (see `timeout`).
//! * A timeout does not change W.
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.

use crate::law::{Context, Round, Signal, WindowLaw};
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// AIRA's parameters and the switches of its rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AiraParameters {
    /// The reduction at a loss as a fraction of the window.
    pub beta: f64,
    /// The lower bound of `a`, in packets per round-trip time; 0 is off.
    pub bound: f64,
    /// The minimum additive increase limit (Eq. 23).
    pub mail: bool,
    /// The reset condition (section 6.3).
    pub reset: bool,
    /// Rounds in which MAIL falls to the bound.
    pub rounds: f64,
    /// The ratio of the window at which `a` is reset to W.
    pub ratio: f64,
    /// W of the reset condition.
    pub peak: AiraPeak,
    /// The increase rule (Eq. 14).
    pub increase: bool,
    /// The decrease rule (Eq. 5).
    pub decrease: bool,
    /// Whether a timeout ends a round.
    pub timeout_ends_round: bool,
}

impl Default for AiraParameters {
    fn default() -> Self {
        AiraParameters {
            beta: 0.5,
            bound: 0.1,
            mail: true,
            reset: true,
            rounds: 100.0,
            ratio: 1.5,
            peak: AiraPeak::Last,
            increase: true,
            decrease: true,
            timeout_ends_round: false,
        }
    }
}

/// W of the reset condition, from the windows at the last losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AiraPeak {
    /// The last one.
    Last,
    /// The mean of the last 30.
    Mean,
    /// The largest of the last 30.
    Largest,
}

/// Windows that [`AiraPeak::Mean`] and [`AiraPeak::Largest`] are taken of.
const PEAKS: usize = 30;

/// AIRA: see the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Aira {
    /// Not used for each acknowledgement.
    losses: Box<Losses>,
    a: f64,
    /// The loss rate of the last round.
    p: f64,
    rounds: u32,
    /// The window at which `a` is reset.
    reset_at: f64,
}

/// The parameters, and the windows at the last losses, the newest last, unless W is the last one.
#[derive(Clone, Debug, PartialEq)]
struct Losses {
    parameters: AiraParameters,
    peaks: VecDeque<f64>,
}

impl Losses {
    /// W after a loss at window `w`.
    fn peak(&mut self, w: f64) -> f64 {
        if self.parameters.peak == AiraPeak::Last {
            return w;
        }
        let peaks = &mut self.peaks;
        if peaks.len() == PEAKS {
            peaks.pop_front();
        }
        peaks.push_back(w);
        match self.parameters.peak {
            AiraPeak::Mean => peaks.iter().sum::<f64>() / peaks.len() as f64,
            _ => peaks.iter().copied().fold(w, f64::max),
        }
    }
}

impl Aira {
    /// The initial, and the greatest, additive increase.
    const A: f64 = 1.0;

    /// AIRA with these parameters.
    pub fn new(parameters: AiraParameters) -> Self {
        let losses = Box::new(Losses { parameters, peaks: VecDeque::new() });
        Aira { losses, a: Self::A, p: 0.0, rounds: 0, reset_at: f64::INFINITY }
    }

    /// The additive increase `a` in packets per round-trip time.
    pub const fn a(&self) -> f64 {
        self.a
    }

    /// The lower bound after the rounds completed so far.
    fn least(&self) -> f64 {
        let AiraParameters { bound, mail, rounds, .. } = self.losses.parameters;
        let mail = if mail { 1.0 - (1.0 - bound) * f64::from(self.rounds) / rounds } else { 0.0 };
        bound.max(mail)
    }
}

impl WindowLaw for Aira {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        if w >= self.reset_at {
            self.a = Self::A;
        }
        w + self.a * acked / w
    }

    fn cut(&mut self, w: f64, why: Signal, _cx: &Context) -> f64 {
        if self.losses.parameters.reset && !why.restarts() {
            self.reset_at = self.losses.parameters.ratio * self.losses.peak(w);
        }
        w - self.losses.parameters.beta * w
    }

    fn round(&mut self, round: &Round, _cx: &Context) {
        let p = round.lost.min(round.sent) as f64 / round.sent.max(1) as f64;
        self.rounds = self.rounds.saturating_add(1);
        if p > self.p && self.losses.parameters.decrease {
            self.a *= 1.0 - p;
        } else if p < self.p && self.losses.parameters.increase {
            self.a *= 1.0 + self.p - p;
        }
        self.a = self.a.max(self.least()).min(Self::A);
        self.p = p;
    }

    /// The increase `a` stays, as the bounds do: packets of the new size for each round-trip time.
    fn rescale(&mut self, factor: f64) {
        self.reset_at *= factor;
        self.losses.peaks.iter_mut().for_each(|peak| *peak *= factor);
    }

    fn timeout_ends_round(&self) -> bool {
        self.losses.parameters.timeout_ends_round
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("a", self.a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::context;
    use crate::units::Dur;

    fn round(lost: u64, sent: u64) -> Round {
        Round { sent, lost, marked: 0, took: Dur::ZERO }
    }

    fn unbounded() -> AiraParameters {
        AiraParameters { bound: 0.0, mail: false, ..AiraParameters::default() }
    }

    #[test]
    fn the_peak_is_the_last_the_mean_or_the_largest() {
        for (peak, expected) in
            [(AiraPeak::Last, 20.0), (AiraPeak::Mean, 100.0 / 3.0), (AiraPeak::Largest, 40.0)]
        {
            let mut law = Aira::new(AiraParameters { peak, ..AiraParameters::default() });
            // The first is older than the last 30.
            let peaks = [40.0, 40.0, 20.0].into_iter().cycle().take(30);
            for w in [100.0].into_iter().chain(peaks) {
                law.cut(w, Signal::Loss, &context());
            }
            law.cut(500.0, Signal::Timeout, &context());
            assert!((law.reset_at - 1.5 * expected).abs() < 1e-9, "{}", law.reset_at);
        }
    }

    #[test]
    fn more_loss_lowers_and_less_loss_raises_the_increase() {
        let mut law = Aira::new(unbounded());
        law.round(&round(1, 10), &context());
        assert_eq!(law.a(), 0.9);
        law.round(&round(2, 8), &context());
        assert_eq!(law.a(), 0.9 * 0.75);
        law.round(&round(1, 8), &context());
        assert_eq!(law.a(), 0.9 * 0.75 * 1.125);
        // The same loss rate changes nothing.
        law.round(&round(2, 16), &context());
        assert_eq!(law.a(), 0.9 * 0.75 * 1.125);
        assert_eq!(law.grow(10.0, 1.0, &context()), 10.0 + law.a() / 10.0);
    }

    #[test]
    fn the_bound_and_mail_hold_it_up() {
        let mut law = Aira::new(AiraParameters { mail: false, ..AiraParameters::default() });
        law.round(&round(99, 100), &context());
        assert_eq!(law.a(), 0.1);
        // Eq. 23: 0.991 after one round, 0.1 after a hundred.
        let mut law = Aira::new(AiraParameters::default());
        law.round(&round(99, 100), &context());
        assert!((law.a() - 0.991).abs() < 1e-12);
        for lost in (1..100).map(|i| 99 + i % 2) {
            law.round(&round(lost, 100), &context());
        }
        assert!((law.a() - 0.1).abs() < 1e-12, "{}", law.a());
    }

    #[test]
    fn it_resets_at_three_halves_of_the_window_at_the_last_loss() {
        let mut law = Aira::new(unbounded());
        assert_eq!(law.cut(20.0, Signal::Loss, &context()), 10.0);
        law.round(&round(1, 2), &context());
        law.grow(29.9, 1.0, &context());
        assert_eq!(law.a(), 0.5);
        law.grow(30.0, 1.0, &context());
        assert_eq!(law.a(), 1.0);
    }

    #[test]
    fn the_free_choices_move_mail_and_the_reset() {
        let free = AiraParameters { rounds: 10.0, ratio: 1.25, ..AiraParameters::default() };
        let mut law = Aira::new(free);
        law.cut(20.0, Signal::Loss, &context());
        law.round(&round(99, 100), &context());
        assert!((law.a() - 0.91).abs() < 1e-12);
        law.grow(24.9, 1.0, &context());
        assert!((law.a() - 0.91).abs() < 1e-12);
        law.grow(25.0, 1.0, &context());
        assert_eq!(law.a(), 1.0);
    }

    #[test]
    fn rescaling_moves_the_window_of_the_reset() {
        let mut law = Aira::new(unbounded());
        law.cut(20.0, Signal::Loss, &context());
        law.round(&round(1, 2), &context());
        law.rescale(2.0);
        assert_eq!(law.grow(59.9, 1.0, &context()), 59.9 + 0.5 / 59.9);
        assert_eq!(law.grow(60.0, 1.0, &context()), 60.0 + 1.0 / 60.0);
    }

    #[test]
    fn every_rule_can_be_switched_off() {
        let off = AiraParameters {
            beta: 0.5,
            bound: 0.0,
            mail: false,
            reset: false,
            increase: false,
            decrease: false,
            ..AiraParameters::default()
        };
        let mut law = Aira::new(off);
        law.cut(2.0, Signal::Loss, &context());
        for lost in [5, 1, 7] {
            law.round(&round(lost, 10), &context());
            assert_eq!(law.a(), 1.0);
        }
        let mut law = Aira::new(AiraParameters { decrease: true, ..off });
        law.cut(2.0, Signal::Loss, &context());
        law.round(&round(1, 2), &context());
        law.round(&round(1, 4), &context());
        law.grow(100.0, 1.0, &context());
        assert_eq!(law.a(), 0.5);
    }
}
