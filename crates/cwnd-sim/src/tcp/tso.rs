//! Bursts of Linux's sender: TSO autosizing (`tcp_tso_autosize`) and deferral
//! (`tcp_tso_should_defer` in net/ipv4/tcp_output.c).
//!
//! The sender hands segments of several packets to the device. A segment has the data of a
//! millisecond at the pacing rate, at least two packets. A smaller one waits for a further
//! acknowledgement if that is due within a millisecond. A paced sender sends a segment at once; the
//! next one follows after the time that the whole segment takes at the pacing rate. The last packet
//! of a segment of several has PSH (`__tcp_transmit_skb`), and that of the data. Not modelled: PSH
//! on retransmitted segments, and at the end of each write of an application that always has data.

use crate::cast::whole32;
use crate::clock::Clock;
use crate::fast_path;

/// Linux's `sysctl_tcp_min_tso_segs`.
const MIN_PACKETS: u32 = 2;
/// BBR's `bbr_min_tso_rate` in bytes per second: below it a segment may have a single packet
/// (`bbr_min_tso_segs`).
const MIN_TSO_RATE: f64 = 1_200_000.0 / 8.0;
/// Linux's `sk_pacing_shift`: a segment has the data of 2^-10 s.
const SEGMENTS_PER_SECOND: f64 = 1024.0;
/// Linux's `GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER + 1`: the largest segment in bytes.
const MAX_BYTES: u32 = 65_536 - 321;
/// Linux's `sysctl_tcp_tso_rtt_log`: 2^9 us of the minimum round-trip time halve the additional
/// bytes of a segment.
const RTT_LOG: u32 = 9;
/// Linux's `sysctl_tcp_tso_win_divisor`.
const WINDOW_DIVISOR: u32 = 3;
/// The pacing rate over the window per round-trip time, in slow start and later
/// (`sysctl_tcp_pacing_ss_ratio`, `_ca_ratio`).
const PACING_RATIOS: [f64; 2] = [2.0, 1.2];
/// More than the relative rounding error of a pacing rate.
const ROUNDING: f64 = 1e-12;

/// Sizes of segments.
#[derive(Clone)]
pub(super) struct Tso {
    clock: Clock,
    /// Bytes of data in a packet.
    packet: u32,
    millisecond: u64,
    /// Seconds of a tick, but for rounding.
    tick: f64,
}

/// The pacing rate that determines the size of segments (`sk_pacing_rate`).
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// Linux's, `ratio` times the window per round-trip time (`tcp_update_pacing_rate`), for a
    /// sender that is not paced.
    Window { ratio: f64 },
    /// That of a paced window law, in packets per second.
    Law(f64),
    /// That of a controller that computes it itself, as BBR does, in packets per second.
    Controller(f64),
}

/// What the sender knows of its path and window when it may send. Times are in ticks.
#[derive(Clone, Copy)]
pub(super) struct Opportunity {
    pub now: u64,
    /// Time of the last transmission; of a paced sender, the time at which the next segment was
    /// due.
    pub sent_at: u64,
    /// Time at which the oldest outstanding packet was sent; `None` without one.
    pub oldest: Option<u64>,
    pub srtt: Option<u64>,
    /// `u64::MAX` without a sample.
    pub min_rtt: u64,
    /// The congestion window in packets.
    pub window: u32,
    pub pace: Pace,
    /// Fast recovery or recovery after a timeout: the sender never waits for a larger segment.
    pub recovering: bool,
    /// Packets outstanding.
    pub outstanding: u32,
    /// Packets that the congestion window and the receiver's window permit.
    pub room: u32,
}

impl Pace {
    /// The pacing rate of a sender that is not paced. `slow_start`: its window is below half of the
    /// threshold.
    pub(super) const fn window(slow_start: bool) -> Self {
        let [in_slow_start, later] = PACING_RATIOS;
        Pace::Window { ratio: if slow_start { in_slow_start } else { later } }
    }
}

impl Tso {
    pub(super) fn new(clock: Clock, packet: u32) -> Self {
        let tick = 1.0 / clock.ticks_in(1.0);
        Tso { clock, packet: packet.max(1), millisecond: clock.ticks(1_000_000), tick }
    }

    /// Packets carry `packet` bytes of data from now on.
    pub(super) fn resized(&mut self, packet: u32) {
        self.packet = packet.max(1);
    }

    /// Returns how many packets to send at once: at most a segment, and at most half of the window
    /// (`tcp_cwnd_test`). `None` if the sender waits for the next acknowledgement. `left` packets
    /// have data.
    pub(super) fn burst(&self, at: &Opportunity, left: u32) -> Option<u32> {
        if left > at.room.max(1) && !at.recovering && self.defers(at) {
            return None;
        }
        Some(self.segment_up_to(at, at.room.min((at.window / 2).max(1))))
    }

    /// The packets of a full segment, or `most` if they are more. Without pacing a product decides
    /// that they are more, except where rounding might.
    fn segment_up_to(&self, at: &Opportunity, most: u32) -> u32 {
        if let Pace::Window { ratio } = at.pace
            && let Some(srtt) = at.srtt
            && fast_path::permitted()
        {
            let bytes = f64::from(most) * f64::from(self.packet);
            let time = srtt.max(1) as f64 * self.tick;
            let least = bytes * SEGMENTS_PER_SECOND * time * (1.0 + ROUNDING);
            let paced_bytes = self.paced_bytes(at, ratio);
            let full = bytes <= f64::from(MAX_BYTES) && paced_bytes > least;
            if full || most <= MIN_PACKETS {
                return most;
            }
        }
        self.segment(at).min(most)
    }

    /// The bytes for each round-trip time by which Linux computes the pacing rate of a sender that
    /// is not paced.
    fn paced_bytes(&self, at: &Opportunity, ratio: f64) -> f64 {
        ratio * f64::from(at.window.max(at.outstanding)) * f64::from(self.packet)
    }

    /// The packets of a full segment (`tcp_tso_autosize`).
    pub(super) fn segment(&self, at: &Opportunity) -> u32 {
        let packet = f64::from(self.packet);
        let rate = match at.pace {
            Pace::Law(rate) | Pace::Controller(rate) => rate * packet,
            Pace::Window { ratio } => at.srtt.map_or(f64::INFINITY, |srtt| {
                self.paced_bytes(at, ratio) / self.clock.seconds(srtt.max(1))
            }),
        };
        let least = match at.pace {
            Pace::Controller(_) if rate < MIN_TSO_RATE => 1,
            _ => MIN_PACKETS,
        };
        let halvings = (self.clock.nanos(at.min_rtt) / 1000) >> RTT_LOG;
        let more = if at.min_rtt < u64::MAX && halvings < 32 { MAX_BYTES >> halvings } else { 0 };
        let bytes = whole32((rate / SEGMENTS_PER_SECOND).min(f64::from(MAX_BYTES))) + more;
        (bytes.min(MAX_BYTES) / self.packet).max(least)
    }

    /// Whether less than a full segment waits for the next acknowledgement
    /// (`tcp_tso_should_defer`).
    fn defers(&self, at: &Opportunity) -> bool {
        let (Some(oldest), Some(srtt)) = (at.oldest, at.srtt) else { return false };
        // An acknowledgement is due within this time, or overdue.
        let soon = (srtt / 2).min(self.millisecond);
        at.now <= at.sent_at.saturating_add(self.millisecond)
            && at.room < at.window / WINDOW_DIVISOR
            && oldest.saturating_add(srtt) <= at.now.saturating_add(soon)
            && at.room < self.segment_up_to(at, at.room + 1)
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

    /// A window of 200 packets of 1000 bytes and 40 ms; one packet may be sent, 0.1 ms after the
    /// last, and the next acknowledgement is due.
    fn opportunity(clock: Clock) -> Opportunity {
        let ms = |ms: u64| clock.ticks(ms * MS);
        Opportunity {
            now: ms(1000),
            sent_at: ms(1000) - clock.ticks(MS / 10),
            oldest: Some(ms(960)),
            srtt: Some(ms(40)),
            min_rtt: ms(40),
            window: 200,
            pace: Pace::window(false),
            recovering: false,
            outstanding: 199,
            room: 1,
        }
    }

    /// 1.2 times 200 packets in 40 ms are 5.86 in 1/1024 s, and 9.77 in slow start.
    #[test]
    fn a_segment_has_a_millisecond_of_the_pacing_rate() {
        let (tso, clock) = tso();
        let at = opportunity(clock);
        assert_eq!(tso.segment(&at), 5);
        assert_eq!(tso.segment(&Opportunity { pace: Pace::window(true), ..at }), 9);
        assert_eq!(tso.segment(&Opportunity { window: 10, outstanding: 9, ..at }), MIN_PACKETS);
        assert_eq!(tso.segment(&Opportunity { outstanding: 400, ..at }), 11);
        assert_eq!(tso.segment(&Opportunity { srtt: None, ..at }), MAX_BYTES / 1000);
        // 1.2 ms are two halvings of 65,215 bytes, 40 ms all of them.
        let near = Opportunity { min_rtt: clock.ticks(12 * MS / 10), ..at };
        assert_eq!(tso.segment(&near), (5859 + (MAX_BYTES >> 2)) / 1000);
    }

    /// The data of 1/1024 s, rounded down to whole packets; `bbr_min_tso_segs` below.
    #[test]
    fn a_pacing_rate_determines_the_segment() {
        let (tso, clock) = tso();
        let at = opportunity(clock);
        let segment = |pace| tso.segment(&Opportunity { pace, ..at });
        // Packets of 1000 bytes: 150 in a second are 1.2 Mb/s.
        for (rate, packets) in [
            (0.0, 1),
            (149.9, 1),
            (150.0, 2),
            (3071.9, 2),
            (3072.0, 3),
            (12_500.0, 12),
            (66_000.0, 64),
            (1e9, MAX_BYTES / 1000),
        ] {
            assert_eq!(segment(Pace::Controller(rate)), packets, "{rate}");
            assert_eq!(segment(Pace::Law(rate)), packets.max(MIN_PACKETS), "{rate}");
        }
        // 1.2 ms are two halvings of 65,215 bytes.
        let near = Opportunity { min_rtt: clock.ticks(12 * MS / 10), ..at };
        let near = Opportunity { pace: Pace::Controller(1024.0), ..near };
        assert_eq!(tso.segment(&near), (1000 + (MAX_BYTES >> 2)) / 1000);
    }

    #[test]
    fn less_than_a_segment_waits_for_an_acknowledgement_that_is_due() {
        let (tso, clock) = tso();
        let at = opportunity(clock);
        assert_eq!(tso.burst(&at, 1000), None);
        assert_eq!(tso.burst(&Opportunity { room: 4, ..at }, 1000), None);
        assert_eq!(tso.burst(&Opportunity { room: 5, ..at }, 1000), Some(5));
        assert_eq!(tso.burst(&Opportunity { room: 9, ..at }, 1000), Some(5));
        // The last packets have no others to wait for.
        assert_eq!(tso.burst(&at, 1), Some(1));
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
        let pace = Pace::window(true);
        let free = Opportunity { window: 6, room: 2, outstanding: 4, pace, ..at };
        let recovering = Opportunity { recovering: true, ..at };
        for at in [idle, early, none, free, recovering] {
            assert_eq!(tso.burst(&at, 1000), Some(at.room));
        }
    }

    #[test]
    fn two_segments_are_in_a_window() {
        let (tso, clock) = tso();
        let at =
            Opportunity { window: 3, outstanding: 0, oldest: None, room: 3, ..opportunity(clock) };
        assert_eq!(tso.burst(&at, 1000), Some(1));
    }
}
