//! **DCTCP**: reduces the window by the fraction of marked packets.
//!
//! Bensley, Thaler, Balasubramanian, Eggert and Judd, *Data Center TCP (DCTCP): TCP Congestion
//! Control for Data Centers*, RFC 8257.
//!
//! ```text
//! each ACK: w <- w + (acknowledged - marked) / w  (section 3.4; RFC 3168 section 6.1.2)
//! each window of data: M = marked / acknowledged  (section 3.3, step 5)
//! alpha <- (1 - g) alpha + g M                    (section 3.3, step 6)
//! at a mark: w <- w (1 - alpha / 2)               (section 3.3, step 9)
//! at a loss: w <- w / 2                           (section 3.5)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `g` | gain of the estimate of the marked fraction | | 0 < g < 1 | 1/16 |
//! | `alpha` | estimated fraction of marked packets, 1 at first | | | |
//! | `M` | fraction of marked packets in the last window of data | | | |
//!
//! For data centers: it starves TCP beside it where marks begin at a short queue (section 5). A
//! queue that marks above a threshold is `{ kind = "red", min = K, max = K, gentle = false, weight
//! = 1, ecn = true }`. Without accurate ECN feedback it cannot measure M.
//!
//! Known deviations:
//!
//! * Packets count instead of bytes, and packets acknowledged selectively count too.
//! * Without accurate ECN feedback each packet of an acknowledgement with ECN-Echo counts as
//!   marked. Only the receiver of section 3.2 makes this exact; the echo of RFC 3168 lasts a
//!   round-trip time, and the window does not grow on it.
//! * A window of data ends when a packet sent afterwards is acknowledged, selectively too. The
//!   acknowledgement of the SYN ends one without marks, so that alpha is 15/16 at the first data.
//! * A mark in slow start ends it with the reduction by alpha / 2, not by a half.
//! * A mark may leave a window of one packet, which the next ones do not reduce; RFC 3168 section
//!   6.1.2 has a timer for it, and Linux keeps two packets.
//! * A loss of a packet sent before the reduction at a mark does not reduce the window again.
//! * A spurious reduction restores alpha and its counters too, except with the conventions of
//!   Linux.

use crate::event::Acked;
use crate::law::{Context, Signal, WindowLaw};
use crate::units::Time;

/// DCTCP: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dctcp {
    g: f64,
    alpha: f64,
    /// Packets acknowledged and marked in the current window of data.
    acked: u64,
    marked: u64,
    /// Marks of the last acknowledgement.
    latest: u32,
    /// Beginning of the window of data: it ends when a packet sent afterwards is acknowledged.
    began: Time,
}

/// Packets that an acknowledgement reports as marked.
pub(super) fn marks(acked: &Acked) -> u32 {
    if acked.echo { acked.packets } else { acked.marked }
}

impl Dctcp {
    /// DCTCP with the gain `g`.
    pub const fn new(g: f64) -> Self {
        Dctcp { g, alpha: 1.0, acked: 0, marked: 0, latest: 0, began: Time::ZERO }
    }
}

impl WindowLaw for Dctcp {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        w + (acked - f64::from(self.latest)).max(0.0) / w
    }

    fn cut(&mut self, w: f64, why: Signal, _cx: &Context) -> f64 {
        match why {
            Signal::Mark => w * (1.0 - self.alpha / 2.0),
            _ => w / 2.0,
        }
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
        self.acked += u64::from(acked.packets);
        self.marked += u64::from(self.latest);
        if acked.sent_at < self.began || self.acked == 0 {
            return;
        }
        // A driver may report marks of packets that were acknowledged before.
        let fraction = (self.marked as f64 / self.acked as f64).min(1.0);
        self.alpha += self.g * (fraction - self.alpha);
        (self.acked, self.marked, self.began) = (0, 0, cx.now);
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::{at, context};
    use crate::testing::at_ms;

    const G: f64 = 1.0 / 16.0;

    /// An acknowledgement at `now` of packets sent at `sent` ms.
    fn ack(law: &mut Dctcp, now: u64, sent: u64, packets: u32, marked: u32) {
        law.observe(&Acked { marked, ..Acked::new(packets, at_ms(sent)) }, &at(at_ms(now)));
    }

    /// Section 3.3: alpha is 1 at first, so that the first mark halves the window.
    #[test]
    fn the_first_mark_halves_the_window() {
        let mut law = Dctcp::new(G);
        assert_eq!(law.cut(40.0, Signal::Mark, &context()), 20.0);
        assert_eq!(law.threshold(20.0, Signal::Mark), Some(20.0));
    }

    /// Section 3.3, steps 4 to 8: one update for each window of data, with the fraction of its
    /// packets.
    #[test]
    fn alpha_is_updated_once_for_each_window_of_data() {
        let mut law = Dctcp::new(G);
        ack(&mut law, 100, 0, 1, 0);
        let first = 1.0 - G;
        assert_eq!(law.alpha, first);
        // Packets sent before the window began at 100 ms do not end it.
        ack(&mut law, 150, 50, 2, 1);
        ack(&mut law, 199, 99, 4, 0);
        assert_eq!(law.alpha, first);
        ack(&mut law, 200, 100, 2, 1);
        assert_eq!(law.alpha, first + G * (0.25 - first));
        // The counters began anew.
        let second = law.alpha;
        ack(&mut law, 300, 200, 1, 1);
        assert_eq!(law.alpha, second + G * (1.0 - second));
    }

    /// Section 4.2: alpha stays between 0 and 1, with more marks than packets too.
    #[test]
    fn alpha_converges_to_the_marked_fraction() {
        let mut law = Dctcp::new(G);
        for round in 1..200 {
            ack(&mut law, 100 * round, 100 * (round - 1), 10, 1);
        }
        assert!((law.alpha - 0.1).abs() < 1e-4, "{}", law.alpha);
        // Section 3.3, step 9.
        let cut = law.cut(100.0, Signal::Mark, &context());
        assert!((cut - 95.0).abs() < 0.01, "{cut}");
        ack(&mut law, 30_000, 29_900, 1, 100);
        assert!(law.alpha <= 1.0);
    }

    /// RFC 3168 section 6.1.2: the window does not grow for packets that were marked.
    #[test]
    fn marked_packets_do_not_enlarge_the_window() {
        let mut law = Dctcp::new(G);
        for (marked, grown) in [(0, 4.0), (1, 3.0), (4, 0.0), (9, 0.0)] {
            ack(&mut law, 100, 50, 4, marked);
            assert_eq!(law.grow(40.0, 4.0, &context()), 40.0 + grown / 40.0);
        }
    }

    /// Section 3.5: a loss and a timeout are answered as in conventional TCP, whatever alpha is.
    #[test]
    fn losses_halve_the_window() {
        let mut law = Dctcp::new(G);
        for round in 1..100 {
            ack(&mut law, 100 * round, 100 * (round - 1), 10, 0);
        }
        assert!(law.alpha < 0.01);
        for why in [Signal::Loss, Signal::Timeout] {
            assert_eq!(law.cut(40.0, why, &context()), 20.0);
            assert_eq!(law.threshold(20.0, why), None);
        }
    }

    /// Section 3.3, step 3: with ECE every acknowledged packet counts as marked.
    #[test]
    fn an_echo_marks_its_acknowledgement() {
        let mut law = Dctcp::new(0.5);
        ack(&mut law, 100, 0, 1, 0);
        let before = law.alpha;
        let echo = Acked { echo: true, ..Acked::new(2, at_ms(100)) };
        law.observe(&echo, &at(at_ms(200)));
        assert_eq!(law.alpha, before + 0.5 * (1.0 - before));
    }

    /// Section 3.4: growth as in RFC 5681, a packet in each window of data.
    #[test]
    fn growth_is_that_of_reno() {
        assert_eq!(Dctcp::new(G).grow(10.0, 2.0, &context()), 10.2);
    }
}
