//! Packets that an endpoint need not look at when they arrive, in the order in which they will.
//!
//! A receiver that answers by a clock of its own only counts most packets. Those it finds in here when
//! it next has something to do, each with its time; an event is left to a packet that it answers at
//! once, the one after a gap.

use super::packet::Packet;
use super::ring::Ring;
use super::schedule::NONE;

#[derive(Clone, Copy, Default)]
struct Item {
    /// When it arrives, [`NONE`] if an event brings it.
    at: u64,
    packet: Packet,
}

pub(crate) struct Inbox {
    items: Ring<Item>,
    /// One past the highest number among the packets put in.
    highest: u32,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Inbox { items: Ring::new(), highest: 0 }
    }

    /// Puts in a packet that arrives at `at`. False if an event must bring it: where it comes after
    /// a gap, or starts the receiver's clock. That is `running`, or what is in here already starts it.
    #[inline(always)]
    pub(crate) fn put(&mut self, at: u64, packet: Packet, running: bool) -> bool {
        let seq = packet.seq();
        let waits = seq <= self.highest && (running || self.items.len() > 0);
        self.highest = self.highest.max(seq + 1);
        self.items.push(Item { at: if waits { at } else { NONE }, packet });
        waits
    }

    /// Takes the first packet if it has arrived by `now` and no event brings it.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: u64) -> Option<(u64, Packet)> {
        let at = self.next()?;
        (at <= now).then(|| (at, self.items.pop().packet))
    }

    /// Takes the first packet if no event brings it; one that an event has brought leaves unseen.
    #[inline(always)]
    pub(crate) fn take_before_event(&mut self) -> Option<(u64, Packet)> {
        if self.items.len() == 0 {
            return None;
        }
        let Item { at, packet } = self.items.pop();
        (at != NONE).then_some((at, packet))
    }

    /// When the first packet arrives: [`NONE`] if an event tells.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<u64> {
        (self.items.len() > 0).then(|| self.items.get(0).at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(seq: u32) -> Packet {
        Packet::new(seq, 0, 0, 1500, 0)
    }

    #[test]
    fn packets_after_a_gap_come_in_events() {
        let mut inbox = Inbox::new();
        let waits: Vec<_> = [(1, 0), (2, 1), (3, 4), (3, 5), (4, 2), (5, 8)]
            .map(|(at, seq)| inbox.put(at, data(seq), true))
            .into();
        assert_eq!(waits, [true, true, false, true, true, false]);
        let seen = |taken: Option<(u64, Packet)>| taken.map(|(at, packet)| (at, packet.seq()));
        assert_eq!(seen(inbox.take(1)), Some((1, 0)));
        assert_eq!(seen(inbox.take(1)), None);
        // Packet 4 arrives: packet 1 was before it.
        assert_eq!(seen(inbox.take_before_event()), Some((2, 1)));
        assert_eq!(seen(inbox.take_before_event()), None);
        assert_eq!(seen(inbox.take(9)), Some((3, 5)));
        assert_eq!(seen(inbox.take(9)), Some((4, 2)));
        // Packet 8 is left to its event.
        assert_eq!(seen(inbox.take(9)), None);
        assert_eq!(inbox.next(), Some(NONE));
    }

    #[test]
    fn one_packet_starts_the_clock() {
        let mut inbox = Inbox::new();
        assert!(!inbox.put(1, data(0), false));
        // Its event comes first.
        assert!(inbox.put(2, data(1), false));
        assert!(inbox.take(9).is_none());
        assert!(inbox.take_before_event().is_none());
        assert!(inbox.take(9).is_some());
        assert!(!inbox.put(3, data(2), false));
    }
}
