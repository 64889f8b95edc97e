//! Keep-alives that wake a silent receiver.
//!
//! UDT4 looks at its timers only when a packet arrives, or every 100 ms. When a sender has used up its window, no
//! packet arrives, and the acknowledgement that would open the window comes up to 100 ms late. A keep-alive that
//! arrives after the acknowledgement has become due makes UDT4 send it.

use crate::sender::SYN;
use cwnd::{Dur, Time};

/// The longest time between two keep-alives.
const LONGEST: Dur = Dur::from_millis(1000);

/// When the next keep-alive that wakes the receiver is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nudge {
    /// When the last full acknowledgement arrived: the next one becomes due one SYN after it was sent.
    heard: Time,
    /// The shortest round-trip time that this end has measured. The peer's own estimate begins at 100 ms in
    /// UDT4 and takes a second to come down.
    quickest: Option<Dur>,
    /// When the last keep-alive left, and how many have left since the receiver last answered.
    last: Time,
    unanswered: u32,
}

impl Nudge {
    /// The state of a connection that opens at `now`.
    pub(crate) fn new(now: Time) -> Self {
        Nudge { heard: now, quickest: None, last: now, unanswered: 0 }
    }

    /// Records the arrival of a full acknowledgement.
    pub(crate) fn heard(&mut self, now: Time) {
        self.heard = self.heard.max(now);
    }

    /// Records a round-trip time.
    pub(crate) fn sample(&mut self, rtt: Dur) {
        self.quickest = Some(self.quickest.map_or(rtt, |least| least.min(rtt)));
    }

    /// The shortest round-trip time that this end has measured; the longest possible one before.
    pub(crate) fn round_trip(&self) -> Dur {
        self.quickest.unwrap_or(Dur::MAX)
    }

    /// Records that the receiver has acknowledged packets or given room: the intervals begin anew.
    pub(crate) fn answered(&mut self) {
        self.unanswered = 0;
    }

    /// Records that a keep-alive leaves.
    pub(crate) fn sent(&mut self, now: Time) {
        self.last = now;
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// When the next keep-alive is due towards a receiver whose window is closed and to which the last packet
    /// left at `last_sent`.
    ///
    /// The first one leaves when the receiver's acknowledgement is due and the last packet can have been
    /// answered. A data packet that left later than that has woken the receiver already and gets one SYN. The
    /// interval doubles with each keep-alive that is not answered.
    pub(crate) fn due(&self, last_sent: Time) -> Time {
        let answer = self.quickest.unwrap_or_default();
        let acknowledged = self.heard + SYN;
        let due = if last_sent >= acknowledged { last_sent + SYN } else { acknowledged };
        let first = due.max(last_sent + answer);
        if self.unanswered == 0 {
            return first;
        }
        let doubled = answer.max(SYN).as_nanos().saturating_mul(1 << self.unanswered.min(16));
        first.max(self.last + Dur::from_nanos(doubled).min(LONGEST.max(answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Dur::from_millis(millis)
    }

    #[test]
    fn the_first_follows_the_last_acknowledgement() {
        let mut nudge = Nudge::new(at(0));
        assert_eq!(nudge.due(at(0)), at(10));
        nudge.heard(at(50));
        nudge.sample(Dur::from_millis(1));
        assert_eq!(nudge.due(at(52)), at(60));
        // Packets that left when the acknowledgement was due have woken the receiver.
        assert_eq!(nudge.due(at(61)), at(71));
        // No answer can have come earlier.
        let mut far = nudge;
        far.quickest = Some(Dur::from_millis(40));
        assert_eq!(far.due(at(52)), at(92));
    }

    #[test]
    fn intervals_double_until_an_answer_comes() {
        let mut nudge = Nudge::new(at(0));
        let (mut now, mut gaps) = (nudge.due(at(0)), Vec::new());
        for _ in 0..9 {
            nudge.sent(now);
            let next = nudge.due(at(0));
            gaps.push(next.since(now).as_nanos() / 1_000_000);
            now = next;
        }
        assert_eq!(gaps, [20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
        nudge.answered();
        assert_eq!(nudge.due(now), now + SYN);
    }
}
