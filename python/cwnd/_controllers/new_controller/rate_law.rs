//! **$Type**: to fill in, what it does in one sentence.
//!
//! Source: to fill in, authors, title, where and when published. Until then it is AIMD(α, β) of the
//! sending rate.
//!
//! ```text
//! each SYN with ACKs and no loss: x <- x + alpha SYN
//! at each congestion event: x <- x - beta x
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `x` | sending rate | packets/s | | |
//! | `alpha` | rate gained each second | packets/s^2 | 0 < alpha <= 1000000 | 1000 |
//! | `beta` | reduction at a congestion event as a fraction of the rate | | 0 < beta < 1 | 1/8 |
//! | `SYN` (`syn`) | control interval | s | 0.0001s <= syn <= 10s | 10ms |
//!
//! TCP-friendly without timeouts: `alpha = 3 beta / ((2 - beta) RTT^2)`.
//!
//! Slow start ends once, at the first loss report or timeout, or at the largest window, at the rate
//! `w / (RTT + SYN)`. A congestion event begins with a loss report whose newest lost packet was
//! sent after the last reduction.
//!
//! Known deviations: none.

use crate::law::{Clock, Context, RateLaw, Signal};
use crate::units::{Dur, Rate};

/// $Type: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct $Type {
    alpha: f64,
    beta: f64,
    syn: Dur,
    /// State: the rate at the last cut; `None` before the first one.
    last: Option<Rate>,
}

impl $Type {
    /// $Type that gains `alpha` packets/s each second, every `syn`, and gives up `beta` of its
    /// rate.
    pub const fn new(alpha: f64, beta: f64, syn: Dur) -> Self {
        $Type { alpha, beta, syn, last: None }
    }
}

impl RateLaw for $Type {
    fn clock(&self) -> Clock {
        Clock::Timer
    }

    fn interval(&self) -> Dur {
        self.syn
    }

    fn tick(&mut self, rate: Rate, _cx: &Context) -> Rate {
        Rate::per_sec(rate.as_per_sec() + self.alpha * self.syn.as_secs())
    }

    fn cut(&mut self, rate: Rate, fresh: bool, _why: Signal, _cx: &Context) -> Rate {
        if !fresh {
            return rate;
        }
        self.last = Some(rate);
        Rate::per_sec((1.0 - self.beta) * rate.as_per_sec())
    }

    fn start(&mut self, w: f64, cx: &Context) -> Rate {
        let rtt = cx.rtt.map_or(Dur::ZERO, |rtt| rtt.smoothed);
        Rate::over(w, rtt + self.syn)
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("last", self.last.map_or(f64::NAN, Rate::as_per_sec));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::at;
    use crate::units::Time;

    const SYN: Dur = Dur::from_millis(10);

    #[test]
    fn gains_alpha_each_second() {
        let mut law = $Type::new(100.0, 0.5, SYN);
        let rate = law.tick(Rate::per_sec(500.0), &at(Time::ZERO));
        assert_eq!(rate.as_per_sec(), 501.0);
    }

    #[test]
    fn gives_up_beta_of_its_rate_once_in_a_congestion_event() {
        let mut law = $Type::new(100.0, 0.25, SYN);
        let rate = law.cut(Rate::per_sec(400.0), true, Signal::Loss, &at(Time::ZERO));
        assert_eq!(rate.as_per_sec(), 300.0);
        let again = law.cut(rate, false, Signal::Loss, &at(Time::ZERO));
        assert_eq!(again, rate);
    }
}
