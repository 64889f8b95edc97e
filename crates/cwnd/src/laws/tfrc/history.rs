//! The receiver's half of TFRC: loss events, the intervals between them and their average (RFC 5348
//! sections 5.2 to 5.5).

use crate::units::{Dur, Time};

/// Loss intervals in the average, besides the open one: the RFC's n.
const INTERVALS: usize = 8;
/// `w_0` to `w_(n-1)` (section 5.4).
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// The smallest discount (section 5.5).
const THRESHOLD: f64 = 0.25;

/// The most recent loss intervals and their discounts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct History {
    /// `I_0` to `I_n` in packets; `I_0` is open.
    lengths: [f64; INTERVALS + 1],
    /// `DF_i`, the discounts of the closed intervals.
    discounts: [f64; INTERVALS + 1],
    /// `DF`, the discount of all of them while `I_0` is long.
    discount: f64,
    /// The number of closed intervals, at most n.
    known: usize,
    /// When the first lost packet of the last loss event was sent, and the packets sent until its
    /// report.
    event: (Time, u64),
}

impl History {
    /// The history before the first loss.
    pub(super) const fn new() -> Self {
        History {
            lengths: [0.0; INTERVALS + 1],
            discounts: [1.0; INTERVALS + 1],
            discount: 1.0,
            known: 0,
            event: (Time::ZERO, 0),
        }
    }

    /// Records the loss of a packet sent at `sent_at`, when `sent` packets were sent in all.
    /// Packets sent within `rtt` of the first lost packet of an event belong to it. `first` returns
    /// the interval before the first event.
    pub(super) fn lost(&mut self, sent_at: Time, sent: u64, rtt: Dur, first: impl FnOnce() -> f64) {
        if self.known == 0 {
            self.lengths[1] = first();
        } else if sent_at.since(self.event.0) > rtt {
            self.advance(sent);
            for i in (1..=INTERVALS).rev() {
                let discount = if i == 1 { 1.0 } else { self.discounts[i - 1] * self.discount };
                (self.lengths[i], self.discounts[i]) = (self.lengths[i - 1], discount);
            }
        } else {
            return;
        }
        self.known = (self.known + 1).min(INTERVALS);
        (self.lengths[0], self.discount, self.event) = (0.0, 1.0, (sent_at, sent));
    }

    /// Extends the open interval to `sent` packets sent in all. An open interval of more than twice
    /// the average discounts the others.
    pub(super) fn advance(&mut self, sent: u64) {
        if self.known > 0 {
            self.lengths[0] = sent.saturating_sub(self.event.1) as f64;
            let twice = 2.0 * self.closed();
            let long = self.lengths[0] > twice;
            self.discount = if long { (twice / self.lengths[0]).max(THRESHOLD) } else { 1.0 };
        }
    }

    /// The average without the open interval.
    fn closed(&self) -> f64 {
        average((1..=self.known).map(|i| (self.lengths[i], WEIGHTS[i - 1] * self.discounts[i])))
    }

    /// The average with the open interval.
    fn open(&self) -> f64 {
        average((0..self.known).map(|i| {
            let discount = if i == 0 { 1.0 } else { self.discounts[i] * self.discount };
            (self.lengths[i], WEIGHTS[i] * discount)
        }))
    }

    /// The loss event rate p; `None` before the first loss. The open interval counts if it
    /// increases the average.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.known > 0).then(|| 1.0 / self.closed().max(self.open()).max(1.0))
    }
}

/// The weighted mean of (value, weight) pairs.
fn average(items: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, weight) = items.fold((0.0, 0.0), |(sum, all), (x, w)| (sum + x * w, all + w));
    sum / weight
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Dur = Dur::from_millis(100);

    /// Losses a second apart that close intervals of these lengths, the oldest first. The first
    /// length is that before the first loss event.
    fn history(lengths: &[u64]) -> (History, Time, u64) {
        let (mut history, mut at, mut sent) = (History::new(), Time::from_nanos(1), 1000);
        history.lost(at, sent, RTT, || lengths[0] as f64);
        for length in &lengths[1..] {
            at += Dur::from_millis(1000);
            sent += length;
            history.lost(at, sent, RTT, || unreachable!("only the first loss event needs it"));
        }
        (history, at, sent)
    }

    fn interval(history: &History) -> f64 {
        1.0 / history.rate().unwrap()
    }

    /// (100 + 200 + 300 + 400 + 0.8 * 500 + 0.6 * 600 + 0.4 * 700 + 0.2 * 800) / 6 = 2200 / 6.
    #[test]
    fn the_weights_fall_after_four_intervals() {
        let (history, ..) = history(&[800, 700, 600, 500, 400, 300, 200, 100]);
        assert!((interval(&history) - 2200.0 / 6.0).abs() < 1e-9);
        // A ninth interval has no weight.
        let (longer, ..) = self::history(&[9999, 800, 700, 600, 500, 400, 300, 200, 100]);
        assert_eq!(longer.rate(), history.rate());
    }

    /// Fewer intervals have the first weights: (100 + 200 + 300) / 3.
    #[test]
    fn a_short_history_is_averaged() {
        assert_eq!(History::new().rate(), None);
        assert_eq!(interval(&history(&[300]).0), 300.0);
        assert!((interval(&history(&[300, 200, 100]).0) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let (mut history, at, sent) = history(&[300, 200]);
        let before = history;
        history.lost(at + Dur::from_millis(40), sent + 3, RTT, || 1.0);
        history.lost(at + RTT, sent + 5, RTT, || 1.0);
        // A packet sent before the event began.
        history.lost(at - RTT, sent + 7, RTT, || 1.0);
        assert_eq!(history, before);
        history.lost(at + RTT + Dur::from_nanos(1), sent + 9, RTT, || 1.0);
        // (9 + 200 + 300) / 3.
        assert!((interval(&history) - 509.0 / 3.0).abs() < 1e-9);
    }

    /// With two intervals of 100, an open one counts from 100 on: (150 + 100) / 2.
    #[test]
    fn the_open_interval_counts_if_it_increases_the_average() {
        let (mut history, _, sent) = history(&[100, 100]);
        for (open, expected) in [(0, 100.0), (99, 100.0), (100, 100.0), (150, 125.0)] {
            history.advance(sent + open);
            assert!((interval(&history) - expected).abs() < 1e-9, "{open}");
        }
    }

    /// Section 5.5: an open interval of 400 packets is four times the average of 100, so the others
    /// count half. With two closed intervals the average is (400 + 0.5 * 100) / 1.5 = 300.
    #[test]
    fn a_long_open_interval_discounts_the_others() {
        let (mut history, at, sent) = history(&[100, 100]);
        history.advance(sent + 200);
        assert_eq!(history.discount, 1.0);
        history.advance(sent + 400);
        assert_eq!(history.discount, 0.5);
        assert!((interval(&history) - 300.0).abs() < 1e-9);
        // At least a quarter: (4000 + 0.25 * 100) / 1.25.
        history.advance(sent + 4000);
        assert!((interval(&history) - 3220.0).abs() < 1e-9);
        // A loss preserves the discount of the intervals before it: (4000 + 2 * 0.25 * 100) / 1.5.
        history.lost(at + Dur::from_millis(9000), sent + 4000, RTT, || 1.0);
        assert_eq!(
            (history.discount, history.discounts[1], history.discounts[2]),
            (1.0, 1.0, 0.25)
        );
        assert!((interval(&history) - 2700.0).abs() < 1e-9);
    }
}
