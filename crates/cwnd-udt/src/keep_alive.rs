//! Keep-alives that make a UDT4 receiver send a due acknowledgement.
//!
//! UDT4 checks its timers only when a packet arrives, or every 100 ms. A sender that has used up
//! its window sends no packets, so that the acknowledgement that opens the window is up to 100 ms
//! late. UDT4 sends it at once when a keep-alive arrives after the acknowledgement has become due.

use crate::sender::SYN;
use cwnd::{Dur, Time};

/// The longest interval between two keep-alives.
const MAX_INTERVAL: Dur = Dur::from_millis(1000);

/// The timer of these keep-alives, with exponential backoff.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepAliveTimer {
    /// When the last full acknowledgement arrived: the next one becomes due one SYN after it was
    /// sent.
    last_full_ack: Time,
    /// The shortest round-trip time that this end has measured. UDT4's own estimate starts at 100
    /// ms and takes a second to converge.
    min_rtt: Option<Dur>,
    /// When the last keep-alive was sent.
    last_sent: Time,
    /// Keep-alives sent since the receiver last made progress.
    unanswered: u32,
}

impl KeepAliveTimer {
    /// The timer of a connection that opens at `now`.
    pub(crate) fn new(now: Time) -> Self {
        KeepAliveTimer { last_full_ack: now, min_rtt: None, last_sent: now, unanswered: 0 }
    }

    /// Records the arrival of a full acknowledgement.
    pub(crate) fn full_ack_received(&mut self, now: Time) {
        self.last_full_ack = self.last_full_ack.max(now);
    }

    /// Records a round-trip time sample.
    pub(crate) fn rtt_sample(&mut self, rtt: Dur) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// The minimum round-trip time; `Dur::MAX` before the first sample.
    pub(crate) fn min_rtt(&self) -> Dur {
        self.min_rtt.unwrap_or(Dur::MAX)
    }

    /// Resets the backoff: the receiver has acknowledged packets or increased its window.
    pub(crate) fn reset_backoff(&mut self) {
        self.unanswered = 0;
    }

    /// Records that a keep-alive is sent.
    pub(crate) fn sent(&mut self, now: Time) {
        self.last_sent = now;
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// When the next keep-alive is due to a receiver whose window is closed. The last data packet
    /// was sent at `last_data`.
    ///
    /// The first keep-alive is sent when the next acknowledgement is due, and not within the
    /// minimum round-trip time after the last data packet. A data packet sent later than that has
    /// already triggered the receiver's timers, and the keep-alive is due one SYN after it. The
    /// interval doubles with each unanswered keep-alive.
    pub(crate) fn due(&self, last_data: Time) -> Time {
        let min_rtt = self.min_rtt.unwrap_or_default();
        let ack_due = self.last_full_ack + SYN;
        let due = if last_data >= ack_due { last_data + SYN } else { ack_due };
        let first = due.max(last_data + min_rtt);
        if self.unanswered == 0 {
            return first;
        }
        let doubled = min_rtt.max(SYN).as_nanos().saturating_mul(1 << self.unanswered.min(16));
        first.max(self.last_sent + Dur::from_nanos(doubled).min(MAX_INTERVAL.max(min_rtt)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn the_first_keep_alive_is_sent_when_an_acknowledgement_is_due() {
        let mut timer = KeepAliveTimer::new(at(0));
        assert_eq!(timer.due(at(0)), at(10));
        timer.full_ack_received(at(50));
        timer.rtt_sample(Dur::from_millis(1));
        assert_eq!(timer.due(at(52)), at(60));
        // A data packet sent after the acknowledgement was due has triggered the receiver's timers.
        assert_eq!(timer.due(at(61)), at(71));
        // The acknowledgement cannot have arrived within the minimum round-trip time.
        let mut long_path = timer;
        long_path.min_rtt = Some(Dur::from_millis(40));
        assert_eq!(long_path.due(at(52)), at(92));
    }

    #[test]
    fn intervals_double_until_the_receiver_makes_progress() {
        let mut timer = KeepAliveTimer::new(at(0));
        let (mut now, mut intervals) = (timer.due(at(0)), Vec::new());
        for _ in 0..9 {
            timer.sent(now);
            let next = timer.due(at(0));
            intervals.push(next.since(now).as_nanos() / 1_000_000);
            now = next;
        }
        assert_eq!(intervals, [20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
        timer.reset_backoff();
        assert_eq!(timer.due(now), now + SYN);
    }
}
