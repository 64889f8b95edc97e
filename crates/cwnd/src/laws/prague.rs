//! **Prague**: DCTCP for the Internet, with L4S.
//!
//! The reference implementation of De Schepper, Tilmans, Briscoe and Goel, *Prague Congestion
//! Control*, draft-briscoe-iccrg-prague-congestion-control: `net/ipv4/tcp_prague.c` of
//! `L4STeam/linux` at commit 02573a2.
//!
//! ```text
//! each ACK: w <- w + f (acknowledged - marked) / w       (prague_update_cwnd)
//! f = min(1, rtt / rtt_virt)^2 after transition rounds, else 1  (prague_rate_scaled_ai_ack_increase)
//! each max(rtt, rtt_virt) from the first mark on: M = marked / acknowledged  (prague_update_alpha)
//! alpha <- (1 - g) alpha + g M                           (prague_update_alpha)
//! at a mark: w <- w (1 - alpha / 2)                      (prague_enter_cwr)
//! at most one reduction in max(rtt, rtt_virt)            (prague_enter_cwr)
//! at a loss: w <- w / 2                                  (prague_enter_loss)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `g` | gain of the estimate of the marked fraction | | 0 < g < 1 | 1/16 |
//! | `rtt_virt` | least round-trip time that the flow behaves as if it had; 0 for none | s | 0s <= rtt_virt <= 1s | 25ms |
//! | `transition` | rounds of congestion avoidance before rtt_virt applies | | 0 <= transition <= 1000000 | 500 |
//! | `alpha` | estimated fraction of marked packets, 1 at first | | | |
//! | `M` | fraction of marked packets | | | |
//! | `rtt` | smoothed round-trip time | s | | |
//!
//! Needs accurate ECN feedback and packets with ECT(1): `tcp = { ecn = "l4s", accecn = true }`.
//! Through DualPI2 its rate is up to about twice that of Reno or CUBIC at equal propagation delays
//! (`docs/validation.md`, Prague beside Reno).
//!
//! Known deviations:
//!
//! * A mark in less than rtt_virt after a reduction is ignored, as in the draft; in the
//!   implementation it begins another round without reductions.
//! * The window is real-valued; the implementation changes it by at most a packet at each
//!   acknowledgement.
//! * Below half of the slow-start threshold the implementation paces at twice the rate; here the
//!   driver's factor decides.
//! * Without accurate ECN feedback the implementation becomes Reno; here each packet of an
//!   acknowledgement with ECN-Echo counts as marked.
//! * A loss of a packet sent before the reduction at a mark does not reduce the window again.
//! * Slow start grows on marked packets too; the first mark ends it.
//! * The least window after a mark is two packets.
//! * A spurious reduction restores alpha and its counters too, except with the conventions of
//!   Linux.
//! * The detection of classic ECN queues, which is off by default, is not implemented.

use crate::event::Acked;
use crate::law::{Context, Signal, WindowLaw};
use crate::units::{Dur, Time};

/// The least window after a mark in packets.
const MIN_WINDOW: f64 = 2.0;

/// Prague: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prague {
    g: f64,
    rtt_virt: Dur,
    transition: u32,
    alpha: f64,
    /// Packets acknowledged and marked since the last update.
    acked: u32,
    marked: u32,
    /// Time of the last update: the next one follows when a packet sent afterwards is acknowledged.
    began: Time,
    /// Time of the last reduction at a mark, or of the start.
    reduced: Time,
    /// Updates in congestion avoidance.
    rounds: u32,
    /// Marks of the last acknowledgement.
    latest: u32,
    /// Whether there was a mark: before, nothing says that the path has an AQM.
    seen: bool,
}

/// Packets that an acknowledgement reports as marked.
fn marks(acked: &Acked) -> u32 {
    if acked.echo { acked.packets } else { acked.marked }
}

impl Prague {
    /// Prague with the gain `g` and the virtual round-trip time `rtt_virt` after `transition`
    /// rounds.
    pub const fn new(g: f64, rtt_virt: Dur, transition: u32) -> Self {
        Prague {
            g,
            rtt_virt,
            transition,
            alpha: 1.0,
            acked: 0,
            marked: 0,
            began: Time::ZERO,
            reduced: Time::ZERO,
            rounds: 0,
            latest: 0,
            seen: false,
        }
    }

    /// Whether the virtual round-trip time applies.
    fn independent(&self, cx: &Context) -> bool {
        !cx.slow_start && self.rounds >= self.transition
    }

    /// The increase in each round-trip time, in packets.
    fn increase(&self, cx: &Context) -> f64 {
        match cx.rtt {
            Some(rtt) if rtt.smoothed < self.rtt_virt && self.independent(cx) => {
                let ratio = rtt.smoothed.as_secs() / self.rtt_virt.as_secs();
                ratio * ratio
            }
            _ => 1.0,
        }
    }
}

impl WindowLaw for Prague {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
        w + self.increase(cx) * (acked - f64::from(self.latest)).max(0.0) / w
    }

    fn cut(&mut self, w: f64, why: Signal, cx: &Context) -> f64 {
        if why != Signal::Mark {
            return w / 2.0;
        }
        self.reduced = cx.now;
        (w * (1.0 - self.alpha / 2.0)).max(MIN_WINDOW).min(w)
    }

    fn answers_mark(&self, cx: &Context) -> bool {
        !self.independent(cx) || cx.now.since(self.reduced) >= self.rtt_virt
    }

    fn grows_after_mark(&self) -> bool {
        true
    }

    fn needs_ecn(&self) -> bool {
        true
    }

    fn threshold(&self, cut: f64, why: Signal) -> Option<f64> {
        (why == Signal::Mark).then_some(cut)
    }

    #[inline]
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        self.latest = marks(acked);
        self.seen |= self.latest > 0;
        self.acked = self.acked.saturating_add(acked.packets);
        self.marked = self.marked.saturating_add(self.latest);
        let early = self.independent(cx) && cx.now.since(self.began) < self.rtt_virt;
        if acked.sent_at < self.began || self.acked == 0 || early {
            return;
        }
        if self.seen {
            // A driver may report marks of packets that were acknowledged before.
            let fraction = (f64::from(self.marked) / f64::from(self.acked)).min(1.0);
            self.alpha += self.g * (fraction - self.alpha);
        }
        self.rounds = self.rounds.saturating_add(u32::from(!cx.slow_start));
        (self.acked, self.marked, self.began) = (0, 0, cx.now);
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtt::Rtt;
    use crate::testing::{at_ms, ms};

    const G: f64 = 1.0 / 16.0;
    const VIRTUAL: Dur = ms(25);

    /// Congestion avoidance at `now` ms with a round-trip time of `rtt` ms.
    fn at(now: u64, rtt: u64) -> Context {
        Context::new(at_ms(now), Some(Rtt::first(ms(rtt))))
    }

    fn ack(law: &mut Prague, now: u64, rtt: u64, packets: u32, marked: u32) {
        let sent_at = at_ms(now - rtt);
        law.observe(&Acked { marked, ..Acked::new(packets, sent_at) }, &at(now, rtt));
    }

    /// prague_update_alpha: alpha stays 1 until the first mark, and then follows the marked
    /// fraction.
    #[test]
    fn alpha_follows_the_marks_from_the_first_one_on() {
        let mut law = Prague::new(G, VIRTUAL, 500);
        for round in 1..10 {
            ack(&mut law, 100 * round, 100, 10, 0);
        }
        assert_eq!(law.alpha, 1.0);
        ack(&mut law, 1000, 100, 10, 5);
        assert_eq!(law.alpha, 1.0 + G * (0.5 - 1.0));
        for round in 11..300 {
            ack(&mut law, 100 * round, 100, 10, 2);
        }
        assert!((law.alpha - 0.2).abs() < 1e-6, "{}", law.alpha);
        let cut = law.cut(100.0, Signal::Mark, &at(30_000, 100));
        assert!((cut - 90.0).abs() < 1e-3, "{cut}");
    }

    /// prague_update_cwnd: marked packets do not increase the window.
    #[test]
    fn unmarked_packets_increase_the_window() {
        let mut law = Prague::new(G, VIRTUAL, 500);
        ack(&mut law, 100, 50, 4, 1);
        assert_eq!(law.grow(10.0, 4.0, &at(100, 50)), 10.3);
        ack(&mut law, 101, 50, 2, 7);
        assert_eq!(law.grow(10.0, 2.0, &at(101, 50)), 10.0);
    }

    /// prague_rate_scaled_ai_ack_increase: (rtt / rtt_virt)^2 below rtt_virt, after the transition.
    #[test]
    fn short_round_trip_times_increase_as_the_virtual_one() {
        let mut law = Prague::new(G, VIRTUAL, 3);
        for round in 1..=3_u64 {
            assert_eq!(law.grow(10.0, 1.0, &at(5 * round, 5)), 10.1, "round {round}");
            ack(&mut law, 5 * round, 5, 10, 0);
        }
        assert_eq!(law.grow(10.0, 1.0, &at(20, 5)), 10.0 + 0.2 * 0.2 / 10.0);
        assert_eq!(law.grow(10.0, 1.0, &at(20, 25)), 10.1);
        assert_eq!(law.grow(10.0, 1.0, &at(20, 80)), 10.1);
    }

    /// prague_should_update_ewma and prague_enter_cwr: after the transition at most one update and
    /// one reduction in each rtt_virt.
    #[test]
    fn the_virtual_round_trip_time_spaces_updates_and_reductions() {
        let mut law = Prague::new(G, VIRTUAL, 0);
        ack(&mut law, 100, 5, 10, 10);
        ack(&mut law, 110, 5, 10, 0);
        assert_eq!(law.alpha, 1.0, "an update after 10 ms");
        ack(&mut law, 125, 5, 20, 0);
        // 10 marks of 40 packets would be wrong: those of the first update are gone.
        assert_eq!(law.alpha, 1.0 - G);
        assert!(law.answers_mark(&at(130, 5)));
        assert_eq!(law.cut(100.0, Signal::Mark, &at(130, 5)), 100.0 * (1.0 - law.alpha / 2.0));
        assert!(!law.answers_mark(&at(154, 5)));
        assert!(law.answers_mark(&at(155, 5)));
    }

    /// prague_enter_loss.
    #[test]
    fn losses_halve_the_window() {
        let mut law = Prague::new(G, VIRTUAL, 500);
        assert_eq!(law.cut(40.0, Signal::Loss, &at(0, 50)), 20.0);
        assert_eq!(law.threshold(20.0, Signal::Loss), None);
    }

    #[test]
    fn two_packets_remain_after_a_mark() {
        let mut law = Prague::new(G, VIRTUAL, 500);
        assert_eq!(law.cut(2.5, Signal::Mark, &at(0, 50)), 2.0);
        assert_eq!(law.cut(1.0, Signal::Mark, &at(900, 50)), 1.0);
    }
}
