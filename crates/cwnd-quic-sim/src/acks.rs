//! The acknowledged bytes of a stream, of which the stacks tell nothing before its end.

use crate::frames::{Frame, frames};
use crate::ranges::Ranges;
use std::collections::BTreeMap;

/// The bytes of a connection's only stream.
#[derive(Default)]
pub(crate) struct Acks {
    /// The ends of the ranges in unacknowledged packets, by the packet's number and the start.
    sent: BTreeMap<(u64, u64), u64>,
    acknowledged: Ranges,
}

impl Acks {
    /// A datagram was sent.
    pub(crate) fn sent(&mut self, datagram: &[u8]) {
        frames(datagram, |number, frame| {
            if let Frame::Stream(frame) = frame {
                self.sent.insert((number, frame.range.start), frame.range.end);
            }
        });
    }

    /// A datagram of the receiver arrived.
    pub(crate) fn received(&mut self, datagram: &[u8]) {
        frames(datagram, |_, frame| {
            let Frame::Ack(numbers) = frame else { return };
            let mut places = (*numbers.start(), 0)..=(*numbers.end(), u64::MAX);
            while let Some((&place, &end)) = self.sent.range(places.clone()).next() {
                self.sent.remove(&place);
                self.acknowledged.add(place.1..end);
                places = place..=*places.end();
            }
        });
    }

    /// All bytes below are acknowledged.
    pub(crate) fn next(&self) -> u64 {
        self.acknowledged.next()
    }
}
