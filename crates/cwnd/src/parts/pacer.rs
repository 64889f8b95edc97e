//! Pacing: when the next packet may leave.

use crate::units::{Dur, Rate, Time};

/// The earliest departure time of the next packet at a pacing rate (draft-ietf-ccwg-bbr,
/// C.next_send_time; RFC 9002 section 7.7).
///
/// A sender that was late, for instance because its timer is coarse, makes up for at most
/// `catch_up`.
///
/// ```
/// use cwnd::parts::Pacer;
/// use cwnd::{Dur, Rate, Time};
///
/// let at = |millis| Time::ZERO + Dur::from_millis(millis);
/// let mut pacer = Pacer::new(Dur::ZERO);
/// assert_eq!(pacer.departure(at(5)), at(5));
/// pacer.sent(at(5), 1, Some(Rate::per_sec(100.0)));
/// assert_eq!(pacer.departure(at(6)), at(15));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacer {
    next: Time,
    catch_up: Dur,
}

impl Pacer {
    /// A pacer whose first packet may leave at once, and that makes up for delays of up to
    /// `catch_up`.
    pub const fn new(catch_up: Dur) -> Self {
        Pacer { next: Time::ZERO, catch_up }
    }

    /// The earliest departure time of the next packet, at `now` or later.
    #[inline]
    pub fn departure(&self, now: Time) -> Time {
        self.next.max(now)
    }

    /// `packets` packets leave at `now`; the next one follows at `pace`, or at once without one.
    #[inline]
    pub fn sent(&mut self, now: Time, packets: u32, pace: Option<Rate>) {
        let gap = pace.map_or(Dur::ZERO, |pace| pace.time_for(f64::from(packets)));
        self.next = self.next.max(now - self.catch_up) + gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};

    #[test]
    fn a_late_sender_catches_up_by_no_more_than_its_bound() {
        let pace = Some(Rate::per_sec(1000.0));
        let mut pacer = Pacer::new(ms(3));
        pacer.sent(at_ms(100), 1, pace);
        assert_eq!(pacer.departure(at_ms(100)), at_ms(100));
        for _ in 0..3 {
            pacer.sent(at_ms(100), 1, pace);
        }
        assert_eq!(pacer.departure(at_ms(100)), at_ms(101));
    }

    #[test]
    fn a_burst_takes_its_time() {
        let mut pacer = Pacer::new(Dur::ZERO);
        pacer.sent(at_ms(10), 4, Some(Rate::per_sec(1000.0)));
        assert_eq!(pacer.departure(at_ms(10)), at_ms(14));
        pacer.sent(at_ms(14), 1, None);
        assert_eq!(pacer.departure(at_ms(14)), at_ms(14));
        pacer.sent(at_ms(14), 1, Some(Rate::ZERO));
        assert_eq!(pacer.departure(at_ms(20)), Time::NEVER);
    }

    /// draft-ietf-ccwg-bbr section 5.6.2: next_send_time = max(Now(), next_send_time) + size /
    /// pacing_rate.
    #[test]
    fn an_idle_sender_accumulates_no_credit() {
        let pace = Some(Rate::per_sec(100.0));
        let mut pacer = Pacer::new(Dur::ZERO);
        pacer.sent(at_ms(0), 1, pace);
        assert_eq!(pacer.departure(at_ms(3)), at_ms(10));
        // On time, early and late.
        pacer.sent(at_ms(10), 1, pace);
        pacer.sent(at_ms(15), 1, pace);
        assert_eq!(pacer.departure(at_ms(16)), at_ms(30));
        pacer.sent(at_ms(500), 1, pace);
        assert_eq!(pacer.departure(at_ms(500)), at_ms(510));
    }

    /// Departures at a coarse timer keep the rate if the bound covers the timer's period.
    #[test]
    fn a_coarse_timer_keeps_the_rate() {
        let pace = Some(Rate::per_sec(1000.0));
        let mut pacer = Pacer::new(ms(10));
        let mut sent = 0;
        for tick in 0..100 {
            while pacer.departure(at_ms(10 * tick)) == at_ms(10 * tick) {
                pacer.sent(at_ms(10 * tick), 1, pace);
                sent += 1;
            }
        }
        // One second, and a burst at the start.
        assert!((990..=1011).contains(&sent), "{sent}");
    }
}
