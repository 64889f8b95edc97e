//! When Linux's receiver acknowledges (`tcp_event_data_recv` and `__tcp_ack_snd_check` in
//! net/ipv4/tcp_input.c, `tcp_send_delayed_ack` in net/ipv4/tcp_output.c). Times are in ticks. A
//! packet with PSH is acknowledged at once (`tcp_measure_rcv_mss`, `tcp_cleanup_rbuf`): the
//! application reads it when it arrives, and does not answer it.
//!
//! Not modelled: receive offload (GRO), and the limit of the delay by the receiver's own round-trip
//! time.

use crate::clock::Clock;
use crate::network::Tcp;
use crate::tcp::scoreboard::DUP_THRESH;

/// `TCP_MAX_QUICKACKS`: packets acknowledged at once at the start and after a pause.
const MAX_QUICKACKS: u32 = 16;
/// Packets acknowledged at once after the first CE mark.
const MARK_QUICKACKS: u32 = 2;
/// `TCP_DELACK_MAX` in nanoseconds.
const DELACK_MAX: u64 = 200_000_000;
/// `tcp_comp_sack_delay_ns` and `tcp_comp_sack_slack_ns`: the longest time for which SACKs are
/// compressed, in nanoseconds, and the slack of its timer.
const COMPRESSION: u64 = 1_000_000;
const COMPRESSION_SLACK: u64 = 100_000;
/// SACKs are compressed for at most a 20th of the round-trip time.
const COMPRESSION_RTT: u64 = 20;
/// `tcp_comp_sack_nr`: the most packets that a compressed SACK waits for.
const MAX_COMPRESSED: u32 = 44;
/// Duplicate acknowledgements that are not compressed: the sender retransmits by them.
const UNCOMPRESSED: u32 = DUP_THRESH;

/// State of the delayed acknowledgements.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayedAcks {
    /// Packets that are still acknowledged at once.
    quick: u32,
    /// The next expected packet in the last acknowledgement (`rcv_wup`).
    acked: u32,
    /// Packets since the last acknowledgement whose SACKs are compressed.
    compressed: u32,
    /// Duplicate acknowledgements of this packet, up to [`UNCOMPRESSED`].
    duplicates: (u32, u32),
    /// How long SACKs are compressed, with the slack.
    compression: u64,
    slack: u64,
    /// Arrival of the SYN, until the first data packet ends the handshake.
    syn: Option<u64>,
    /// The delay (`icsk_ack.ato`); 0 before the first packet.
    ato: u64,
    /// `TCP_ATO_MIN`.
    min: u64,
    max: u64,
    /// A pause of this length begins quick acknowledgements again: at most the receiver's
    /// retransmission timeout.
    pause: u64,
    /// Arrival of the last packet.
    last: u64,
}

impl DelayedAcks {
    pub(super) fn new(tcp: &Tcp, clock: Clock) -> Self {
        let min = clock.ticks(tcp.ack_delay.as_nanos());
        DelayedAcks {
            compression: clock.ticks(COMPRESSION + COMPRESSION_SLACK),
            slack: clock.ticks(COMPRESSION_SLACK),
            min,
            max: clock.ticks(DELACK_MAX).max(min),
            pause: clock.ticks(tcp.min_rto.as_nanos()),
            ..DelayedAcks::default()
        }
    }

    /// A packet arrived in order. `syn`: it is the SYN.
    pub(super) fn received(&mut self, now: u64, syn: bool) {
        if let Some(syn) = std::mem::replace(&mut self.syn, syn.then_some(now)) {
            let rtt = now - syn;
            self.compression = self.compression.min(rtt / COMPRESSION_RTT + self.slack);
        }
        let gap = now - self.last;
        if self.ato == 0 {
            self.quick = MAX_QUICKACKS;
            self.ato = self.min.max(1);
        } else if gap <= self.min / 2 {
            self.ato = (self.ato / 2 + self.min / 2).max(1);
        } else if gap < self.ato {
            self.ato = self.ato / 2 + gap;
        } else if gap > self.pause {
            self.quick = self.quick.max(MAX_QUICKACKS);
        }
        self.last = now;
    }

    /// The first CE mark arrived.
    pub(super) fn marked(&mut self) {
        self.quick = self.quick.max(MARK_QUICKACKS);
        self.ato = self.min.max(1);
    }

    /// A duplicate of an acknowledged packet arrived.
    pub(super) fn duplicate(&mut self) {
        self.quick = self.quick.max(MAX_QUICKACKS);
        self.ato = self.min.max(1);
    }

    /// The delay of the acknowledgement after an arrival; `None` to send it at once: in quick mode,
    /// for every second packet in order, and for the first duplicate acknowledgements. `expected`
    /// is the next expected packet; `holes`: packets above it have arrived.
    pub(super) fn delay(&mut self, expected: u32, holes: bool) -> Option<u64> {
        if self.quick > 0 || expected - self.acked > 1 {
            return None;
        }
        if !holes {
            return Some(self.ato.min(self.max));
        }
        if self.compressed >= MAX_COMPRESSED {
            return None;
        }
        if self.duplicates.0 != expected {
            self.duplicates = (expected, 0);
        }
        if self.duplicates.1 < UNCOMPRESSED {
            self.duplicates.1 += 1;
            return None;
        }
        self.compressed += 1;
        Some(self.compression)
    }

    /// Whether a compressed SACK waits.
    pub(super) fn compresses(&self) -> bool {
        self.compressed > 0
    }

    /// An acknowledgement is sent; `expected` is the next expected packet.
    pub(super) fn acknowledged(&mut self, expected: u32) {
        self.acked = expected;
        self.compressed = 0;
        self.quick = self.quick.saturating_sub(1);
    }

    /// The delay of an acknowledgement expired before a second packet arrived, or that of a
    /// compressed SACK.
    pub(super) fn expired(&mut self) {
        if self.compresses() {
            return;
        }
        self.ato = self.ato.saturating_mul(2).min(self.pause.max(self.min));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn acks() -> DelayedAcks {
        DelayedAcks {
            compression: MS + MS / 10,
            slack: MS / 10,
            min: 40 * MS,
            max: 200 * MS,
            pause: 200 * MS,
            ..DelayedAcks::default()
        }
    }

    /// Packets in order at the given times, of which the first one has the number `first`: which
    /// are acknowledged at once.
    fn at_once(acks: &mut DelayedAcks, first: u32, times: impl Iterator<Item = u64>) -> Vec<bool> {
        let arrive = |(expected, at)| {
            acks.received(at, false);
            let at_once = acks.delay(expected, false).is_none();
            if at_once {
                acks.acknowledged(expected);
            }
            at_once
        };
        (first + 1..).zip(times).map(arrive).collect()
    }

    #[test]
    fn sixteen_packets_are_acknowledged_at_once_and_then_every_second_one() {
        let mut acks = acks();
        let seen = at_once(&mut acks, 0, (1..=22).map(|at| at * MS));
        assert!(seen[..16].iter().all(|&at_once| at_once));
        assert_eq!(seen[16..], [false, true, false, true, false, true]);
        // A pause begins quick acknowledgements again.
        assert_eq!(at_once(&mut acks, 22, [300 * MS, 301 * MS].into_iter()), [true, true]);
    }

    #[test]
    fn the_delay_follows_the_gaps_between_packets() {
        let mut acks = acks();
        at_once(&mut acks, 0, (1..=17).map(|at| at * MS));
        assert_eq!(acks.delay(17, false), Some(40 * MS));
        // A gap of 30 ms: 40 / 2 + 30.
        acks.acknowledged(17);
        acks.received(47 * MS, false);
        assert_eq!(acks.delay(18, false), Some(50 * MS));
        acks.expired();
        assert_eq!(acks.delay(18, false), Some(100 * MS));
        acks.expired();
        acks.expired();
        assert_eq!(acks.delay(18, false), Some(200 * MS));
    }

    #[test]
    fn the_first_mark_and_duplicates_are_acknowledged_at_once() {
        let mut acks = acks();
        at_once(&mut acks, 0, (1..=16).map(|at| at * MS));
        acks.marked();
        assert_eq!(at_once(&mut acks, 16, (17..=19).map(|at| at * MS)), [true, true, false]);
        acks.duplicate();
        assert_eq!(acks.delay(19, false), None);
    }

    /// Three duplicate acknowledgements are sent at once; then one for 44 packets or for a
    /// millisecond.
    #[test]
    fn sacks_are_compressed_after_three_duplicate_acknowledgements() {
        let mut acks = acks();
        at_once(&mut acks, 0, (1..=16).map(|at| at * MS));
        for _ in 0..3 {
            assert_eq!(acks.delay(16, true), None);
            acks.acknowledged(16);
        }
        for _ in 0..44 {
            assert_eq!(acks.delay(16, true), Some(MS + MS / 10));
        }
        assert_eq!(acks.delay(16, true), None);
        acks.acknowledged(16);
        assert_eq!(acks.delay(16, true), Some(MS + MS / 10));
        // The timer of a compressed SACK leaves the delay of others.
        acks.expired();
        acks.acknowledged(16);
        assert_eq!(acks.ato, 40 * MS);
        // The next packet is expected now: its duplicate acknowledgements are not compressed.
        assert_eq!(acks.delay(17, true), None);
    }

    /// A 20th of the round-trip time, if that is less.
    #[test]
    fn the_compression_is_shorter_than_the_round_trip_time() {
        let mut acks = acks();
        acks.received(5 * MS, true);
        acks.received(15 * MS, false);
        assert_eq!(acks.compression, MS / 2 + MS / 10);
    }
}
