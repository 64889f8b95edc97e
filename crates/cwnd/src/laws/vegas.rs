//! **Vegas**: the window follows the queueing delay.
//!
//! Brakmo and Peterson, *TCP Vegas: end to end congestion avoidance on a global Internet*, IEEE
//! JSAC 13(8), 1995.
//!
//! ```text
//! each round-trip time: diff = w (1 - base / rtt), packets in the queues
//! w <- w + 1 if diff < alpha; w <- w - 1 if diff > beta
//! slow start: ends when diff > gamma
//! at a loss: w <- w / 2
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `alpha` | least packets in the queues | packets | 0 < alpha <= 1000 | 2 |
//! | `beta` | most packets in the queues | packets | 0 < beta <= 1000 | 4 |
//! | `gamma` | packets in the queues that end slow start | packets | 0 < gamma <= 1000 | 1 |
//! | `base` | smallest round-trip time of the connection | s | | |
//! | `rtt` | smallest round-trip time of the round | s | | |
//!
//! Has a small share beside TCP, which fills the queues.
//!
//! Known deviations:
//!
//! * Slow start doubles the window every round-trip time, Vegas every other.
//! * Losses are detected and answered as in Reno, without the fine-grained timers of Vegas and its
//!   reduction by 1/4; the slow-start threshold is half of the window.
//! * rtt is the smallest sample of its round, against delayed acknowledgements.
//! * The window does not decrease below two packets.
//! * The handshake gives no base: Linux begins it anew after the handshake (tcp_vegas_init), and
//!   also where it sends with nothing in flight (CA_EVENT_TX_START), which is not done here.

use crate::event::Acked;
use crate::law::{Context, Signal, WindowLaw};
use crate::units::{Dur, Time};

/// Vegas: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    round_began: Time,
    /// The smallest sample of the current round.
    least: Dur,
    /// The fraction of the window in the queues during the last round, until used.
    queued: Option<f64>,
}

impl Vegas {
    /// Vegas that holds between `alpha` and `beta` packets in the queues and leaves slow start at
    /// `gamma`.
    pub const fn new(alpha: f64, beta: f64, gamma: f64) -> Self {
        let (round_began, least) = (Time::ZERO, Dur::MAX);
        Vegas { alpha, beta, gamma, round_began, least, queued: None }
    }
}

impl WindowLaw for Vegas {
    #[inline]
    fn grow(&mut self, w: f64, _acked: f64, _cx: &Context) -> f64 {
        let Some(queued) = self.queued.take() else { return w };
        let diff = w * queued;
        if diff < self.alpha {
            w + 1.0
        } else if diff > self.beta {
            (w - 1.0).max(2.0).min(w)
        } else {
            w
        }
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        w / 2.0
    }

    fn enter(&mut self, _w: f64, cx: &Context) {
        self.round_began = cx.now;
        self.least = Dur::MAX;
        self.queued = None;
    }

    #[inline]
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        self.least = acked.rtt.map_or(self.least, |sample| self.least.min(sample));
        // The first packet sent in this round is acknowledged: the round is over.
        if acked.sent_at < self.round_began {
            return;
        }
        // A handshake gives no smallest sample.
        let rtt = cx.rtt.filter(|rtt| rtt.min < Dur::MAX);
        if let (Some(rtt), false) = (rtt, self.least == Dur::MAX || self.least.is_zero()) {
            self.queued = Some(1.0 - rtt.min.as_secs() / self.least.as_secs());
            self.round_began = cx.now;
            self.least = Dur::MAX;
        }
    }

    fn leave_slow_start(&mut self, w: f64, _cx: &Context) -> bool {
        self.queued.take().is_some_and(|queued| w * queued > self.gamma)
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("queued", self.queued.unwrap_or(f64::NAN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::at;
    use crate::testing::{at_ms, ms, sampled};

    /// An acknowledgement at `now` ms of a packet sent `rtt` ms ago; the base is 100 ms.
    fn ack(law: &mut Vegas, now: u64, rtt: u64) -> Context {
        let cx = at(at_ms(now));
        law.observe(&sampled(1, cx.now, ms(rtt)), &cx);
        cx
    }

    /// 20 packets with a fifth of the round-trip time in queues: 4 packets queued.
    #[test]
    fn one_decision_a_round() {
        let mut law = Vegas::new(2.0, 4.0, 1.0);
        let cx = ack(&mut law, 1000, 125);
        assert_eq!(law.grow(20.0, 1.0, &cx), 20.0);
        // Still the same round.
        let cx = ack(&mut law, 1010, 100);
        assert_eq!(law.grow(20.0, 1.0, &cx), 20.0);
        // The next one: nothing queued.
        let cx = ack(&mut law, 1110, 100);
        assert_eq!(law.grow(20.0, 1.0, &cx), 21.0);
        assert_eq!(law.grow(21.0, 1.0, &cx), 21.0);
        // 21 (1 - 100/200) is more than 4.
        let cx = ack(&mut law, 1400, 200);
        assert_eq!(law.grow(21.0, 1.0, &cx), 20.0);
    }

    #[test]
    fn slow_start_ends_with_the_first_packet_queued() {
        let mut law = Vegas::new(2.0, 4.0, 1.0);
        let cx = ack(&mut law, 1000, 104);
        // 20 (1 - 100/104) = 0.77.
        assert!(!law.leave_slow_start(20.0, &cx));
        let cx = ack(&mut law, 1200, 106);
        assert!(law.leave_slow_start(20.0, &cx));
    }
}
