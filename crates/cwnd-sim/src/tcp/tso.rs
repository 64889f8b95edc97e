//! Bursts of Linux's sender: TSO autosizing (`tcp_tso_autosize`) and deferral (`tcp_tso_should_defer` in net/ipv4/tcp_output.c).
//!
//! The sender hands segments of several packets to the device. A segment has the data of a millisecond at the pacing rate, at least
//! two packets. A smaller one waits for a further acknowledgement if that is due within a millisecond.

use crate::cast::whole32;
use crate::engine::clock::Clock;

/// Linux's `sysctl_tcp_min_tso_segs`.
const MIN_PACKETS: u32 = 2;
/// Linux's `sk_pacing_shift`: a segment has the data of 2^-10 s.
const SEGMENTS_PER_SECOND: f64 = 1024.0;
/// Linux's `GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER + 1`: the largest segment in bytes.
const MAX_BYTES: u32 = 65_536 - 321;
/// Linux's `sysctl_tcp_tso_rtt_log`: 2^9 us of the minimum round-trip time halve the additional bytes of a segment.
const RTT_LOG: u32 = 9;
/// Linux's `sysctl_tcp_tso_win_divisor`.
const WINDOW_DIVISOR: u32 = 3;
/// The pacing rate over the window per round-trip time, in slow start and later (`sysctl_tcp_pacing_ss_ratio`, `_ca_ratio`).
const PACING_RATIOS: [f64; 2] = [2.0, 1.2];

/// Sizes of segments.
pub(super) struct Tso {
    clock: Clock,
    /// Bytes of data in a packet.
    packet: u32,
    millisecond: u64,
}

/// What the sender knows of its path and window when it may send. Times are in ticks.
#[derive(Clone, Copy)]
pub(super) struct Opportunity {
    pub now: u64,
    /// Time of the last transmission.
    pub sent_at: u64,
    /// Time at which the oldest outstanding packet was sent; `None` without one.
    pub oldest: Option<u64>,
    pub srtt: Option<u64>,
    /// `u64::MAX` without a sample.
    pub min_rtt: u64,
    /// The congestion window in packets.
    pub window: u32,
    /// The window is below half of the threshold.
    pub slow_start: bool,
    /// Packets outstanding.
    pub outstanding: u32,
    /// Packets that the congestion window and the receiver's window permit.
    pub room: u32,
}

impl Tso {
    pub(super) fn new(clock: Clock, packet: u32) -> Self {
        Tso { clock, packet: packet.max(1), millisecond: clock.ticks(1_000_000) }
    }

    /// Returns how many packets to send at once: at most a segment, and at most half of the window (`tcp_cwnd_test`). `None` if the
    /// sender waits for the next acknowledgement. `left` packets have data.
    pub(super) fn burst(&self, at: Opportunity, left: u32) -> Option<u32> {
        let segment = self.segment(at);
        let whole = left <= at.room.min(segment);
        if left > 1 && !whole && self.defers(at, segment) {
            return None;
        }
        Some(segment.min(at.room).min((at.window / 2).max(1)))
    }

    /// The packets of a full segment (`tcp_tso_autosize`).
    fn segment(&self, at: Opportunity) -> u32 {
        let rate = at.srtt.map_or(f64::INFINITY, |srtt| {
            let [slow_start, later] = PACING_RATIOS;
            let ratio = if at.slow_start { slow_start } else { later };
            let packets = f64::from(at.window.max(at.outstanding));
            ratio * packets * f64::from(self.packet) / self.clock.seconds(srtt.max(1))
        });
        let halvings = (self.clock.nanos(at.min_rtt) / 1000) >> RTT_LOG;
        let more = if at.min_rtt < u64::MAX && halvings < 32 { MAX_BYTES >> halvings } else { 0 };
        let bytes = (rate / SEGMENTS_PER_SECOND).floor() + f64::from(more);
        (whole32(bytes.min(f64::from(MAX_BYTES))) / self.packet).max(MIN_PACKETS)
    }

    /// Whether less than a full segment waits for the next acknowledgement (`tcp_tso_should_defer`).
    fn defers(&self, at: Opportunity, segment: u32) -> bool {
        let (Some(oldest), Some(srtt)) = (at.oldest, at.srtt) else { return false };
        // An acknowledgement is due within this time, or overdue.
        let soon = (srtt / 2).min(self.millisecond);
        at.now <= at.sent_at.saturating_add(self.millisecond)
            && at.room < segment
            && at.room < at.window / WINDOW_DIVISOR
            && oldest.saturating_add(srtt) <= at.now.saturating_add(soon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwnd::Dur;

    const MS: u64 = 1_000_000;

    fn tso() -> (Tso, Clock) {
        let clock = Clock::widest(Dur::from_secs(1000.0));
        (Tso::new(clock, 1000), clock)
    }

    /// A window of 200 packets of 1000 bytes and 40 ms; one packet may be sent, 0.1 ms after the last, and the next acknowledgement
    /// is due.
    fn opportunity(clock: Clock) -> Opportunity {
        let ms = |ms: u64| clock.ticks(ms * MS);
        Opportunity {
            now: ms(1000),
            sent_at: ms(1000) - clock.ticks(MS / 10),
            oldest: Some(ms(960)),
            srtt: Some(ms(40)),
            min_rtt: ms(40),
            window: 200,
            slow_start: false,
            outstanding: 199,
            room: 1,
        }
    }

    /// 1.2 times 200 packets in 40 ms are 5.86 in 1/1024 s, and 9.77 in slow start.
    #[test]
    fn a_segment_has_a_millisecond_of_the_pacing_rate() {
        let (tso, clock) = tso();
        let at = opportunity(clock);
        assert_eq!(tso.segment(at), 5);
        assert_eq!(tso.segment(Opportunity { slow_start: true, ..at }), 9);
        assert_eq!(tso.segment(Opportunity { window: 10, outstanding: 9, ..at }), MIN_PACKETS);
        assert_eq!(tso.segment(Opportunity { outstanding: 400, ..at }), 11);
        assert_eq!(tso.segment(Opportunity { srtt: None, ..at }), MAX_BYTES / 1000);
        // 1.2 ms are two halvings of 65,215 bytes, 40 ms all of them.
        let near = Opportunity { min_rtt: clock.ticks(12 * MS / 10), ..at };
        assert_eq!(tso.segment(near), (5859 + (MAX_BYTES >> 2)) / 1000);
    }

    #[test]
    fn less_than_a_segment_waits_for_an_acknowledgement_that_is_due() {
        let (tso, clock) = tso();
        let at = opportunity(clock);
        assert_eq!(tso.burst(at, 1000), None);
        assert_eq!(tso.burst(Opportunity { room: 4, ..at }, 1000), None);
        assert_eq!(tso.burst(Opportunity { room: 5, ..at }, 1000), Some(5));
        assert_eq!(tso.burst(Opportunity { room: 9, ..at }, 1000), Some(5));
        // The last packets have no others to wait for.
        assert_eq!(tso.burst(at, 1), Some(1));
    }

    #[test]
    fn each_exception_sends_at_once() {
        let (tso, clock) = tso();
        let at = opportunity(clock);
        // The last transmission is more than a millisecond ago.
        let idle = Opportunity { sent_at: at.now - clock.ticks(MS) - 1, ..at };
        // The next acknowledgement is due in more than a millisecond.
        let early = Opportunity { oldest: Some(at.now - clock.ticks(39 * MS) + 1), ..at };
        let none = Opportunity { oldest: None, ..at };
        // A third of the window is free.
        let free = Opportunity { window: 6, room: 2, outstanding: 4, slow_start: true, ..at };
        for at in [idle, early, none, free] {
            assert_eq!(tso.burst(at, 1000), Some(at.room));
        }
    }

    #[test]
    fn two_segments_are_in_a_window() {
        let (tso, clock) = tso();
        let at =
            Opportunity { window: 3, outstanding: 0, oldest: None, room: 3, ..opportunity(clock) };
        assert_eq!(tso.burst(at, 1000), Some(1));
    }
}
