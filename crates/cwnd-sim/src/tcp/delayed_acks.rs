//! When Linux's receiver acknowledges (`tcp_event_data_recv` and `__tcp_ack_snd_check` in net/ipv4/tcp_input.c, `tcp_send_delayed_ack` in
//! net/ipv4/tcp_output.c). Times are in ticks.
//!
//! Not modelled: the compression of SACKs, receive offload (GRO), and the limit of the delay by the receiver's own round-trip time.

use crate::engine::clock::Clock;
use crate::network::Tcp;

/// `TCP_MAX_QUICKACKS`: packets acknowledged at once at the start and after a pause.
const MAX_QUICKACKS: u32 = 16;
/// Packets acknowledged at once after the first CE mark.
const MARK_QUICKACKS: u32 = 2;
/// `TCP_DELACK_MAX` in nanoseconds.
const DELACK_MAX: u64 = 200_000_000;

/// State of the delayed acknowledgements.
#[derive(Debug)]
pub(super) struct DelayedAcks {
    /// Packets that are still acknowledged at once.
    quick: u32,
    /// Data packets in order since the last acknowledgement.
    unacked: u32,
    /// The delay (`icsk_ack.ato`); 0 before the first packet.
    ato: u64,
    /// `TCP_ATO_MIN`.
    min: u64,
    max: u64,
    /// A pause of this length begins quick acknowledgements again: at most the receiver's retransmission timeout.
    pause: u64,
    /// Arrival of the last packet.
    last: u64,
}

impl DelayedAcks {
    pub(super) fn new(tcp: &Tcp, clock: Clock) -> Self {
        let min = clock.ticks(tcp.ack_delay.as_nanos());
        DelayedAcks {
            quick: 0,
            unacked: 0,
            ato: 0,
            min,
            max: clock.ticks(DELACK_MAX).max(min),
            pause: clock.ticks(tcp.min_rto.as_nanos()),
            last: 0,
        }
    }

    /// A packet arrived.
    pub(super) fn received(&mut self, now: u64, in_order: bool) {
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
        self.unacked += u32::from(in_order);
    }

    /// The first CE mark arrived.
    pub(super) fn marked(&mut self) {
        self.quick = self.quick.max(MARK_QUICKACKS);
        self.ato = self.min.max(1);
    }

    /// A duplicate arrived.
    pub(super) fn duplicate(&mut self) {
        self.quick = self.quick.max(MAX_QUICKACKS);
        self.ato = self.min.max(1);
    }

    /// The delay of the acknowledgement; `None` to send it at once: in quick mode and for every second packet.
    pub(super) fn delay(&self) -> Option<u64> {
        (self.quick == 0 && self.unacked < 2).then(|| self.ato.min(self.max))
    }

    /// An acknowledgement is sent.
    pub(super) fn acknowledged(&mut self) {
        self.unacked = 0;
        self.quick = self.quick.saturating_sub(1);
    }

    /// The delay expired before a second packet arrived.
    pub(super) fn expired(&mut self) {
        self.ato = self.ato.saturating_mul(2).min(self.pause.max(self.min));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn acks() -> DelayedAcks {
        let (quick, unacked, ato, last) = (0, 0, 0, 0);
        let (min, max, pause) = (40 * MS, 200 * MS, 200 * MS);
        DelayedAcks { quick, unacked, ato, min, max, pause, last }
    }

    /// Packets at the given times: which are acknowledged at once.
    fn at_once(acks: &mut DelayedAcks, times: impl Iterator<Item = u64>) -> Vec<bool> {
        let arrive = |at| {
            acks.received(at, true);
            let at_once = acks.delay().is_none();
            if at_once {
                acks.acknowledged();
            }
            at_once
        };
        times.map(arrive).collect()
    }

    #[test]
    fn sixteen_packets_are_acknowledged_at_once_and_then_every_second_one() {
        let mut acks = acks();
        let seen = at_once(&mut acks, (1..=22).map(|at| at * MS));
        assert!(seen[..16].iter().all(|&at_once| at_once));
        assert_eq!(seen[16..], [false, true, false, true, false, true]);
        // A pause begins quick acknowledgements again.
        assert_eq!(at_once(&mut acks, [300 * MS, 301 * MS].into_iter()), [true, true]);
    }

    #[test]
    fn the_delay_follows_the_gaps_between_packets() {
        let mut acks = acks();
        at_once(&mut acks, (1..=17).map(|at| at * MS));
        assert_eq!(acks.delay(), Some(40 * MS));
        // A gap of 30 ms: 40 / 2 + 30.
        acks.acknowledged();
        acks.received(47 * MS, true);
        assert_eq!(acks.delay(), Some(50 * MS));
        acks.expired();
        assert_eq!(acks.delay(), Some(100 * MS));
        acks.expired();
        acks.expired();
        assert_eq!(acks.delay(), Some(200 * MS));
    }

    #[test]
    fn the_first_mark_and_duplicates_are_acknowledged_at_once() {
        let mut acks = acks();
        at_once(&mut acks, (1..=16).map(|at| at * MS));
        acks.marked();
        assert_eq!(at_once(&mut acks, (17..=19).map(|at| at * MS)), [true, true, false]);
        acks.duplicate();
        assert_eq!(acks.delay(), None);
    }
}
