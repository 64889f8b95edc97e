//! Packets in flight whose arrivals need events: a FIFO list for each link and each host.
//!
//! The packets are in small chunks of one pool, and the chunk freed last is used first: the memory
//! is that of the packets in flight, however many lists there are, and stays in the cache.

use super::schedule::NONE;
use crate::cast::{low32, saturate32};
use crate::packet::Packet;

/// Places in a chunk. The last one has the index of the next chunk instead of a packet: it is next
/// to the packet before, and in the cache.
const CHUNK: u32 = 32;
const LAST: u32 = CHUNK - 1;
/// No index. As behind the last packet of a chunk, a link follows.
const NOTHING: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Default)]
struct InFlight {
    arrives: u64,
    packet: Packet,
}

/// The indices of the first and the last packet of a list; [`NOTHING`] if it is empty.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

/// The lists, numbered as in event keys.
#[derive(Clone)]
pub(super) struct Lists {
    lists: Vec<List>,
    /// The chunks of all lists, and the free ones.
    places: Vec<InFlight>,
    /// The free chunk to use first; [`NOTHING`] if there is none.
    free: u32,
}

impl Lists {
    pub(super) fn new(count: usize) -> Self {
        let lists = vec![List { first: NOTHING, last: NOTHING }; count];
        Lists { lists, places: Vec::new(), free: NOTHING }
    }

    /// Number of lists.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.lists.len()
    }

    /// Appends a packet to a list. Returns whether it is the only one.
    #[inline(always)]
    pub(super) fn push(&mut self, list: usize, arrives: u64, packet: Packet) -> bool {
        let List { last, .. } = &mut self.lists[list];
        let at = *last + 1;
        if at % CHUNK == LAST {
            return self.push_to_chunk(list, arrives, packet);
        }
        *last = at;
        self.places[at as usize] = InFlight { arrives, packet };
        false
    }

    /// Appends a packet to a list whose last chunk is full, or that has none.
    #[inline(never)]
    fn push_to_chunk(&mut self, list: usize, arrives: u64, packet: Packet) -> bool {
        let at = self.take_chunk();
        self.places[at as usize] = InFlight { arrives, packet };
        let list = &mut self.lists[list];
        let last = std::mem::replace(&mut list.last, at);
        if last == NOTHING {
            list.first = at;
            return true;
        }
        *self.next_chunk(last) = at.into();
        false
    }

    /// Returns the first place of a chunk.
    #[inline(always)]
    fn take_chunk(&mut self) -> u32 {
        let chunk = self.free;
        if chunk == NOTHING {
            return self.new_chunk();
        }
        self.free = low32(*self.next_chunk(chunk));
        chunk
    }

    #[cold]
    #[inline(never)]
    fn new_chunk(&mut self) -> u32 {
        let chunk = saturate32(self.places.len());
        self.places.extend([InFlight::default(); CHUNK as usize]);
        chunk
    }

    /// The link of the chunk that contains a place.
    #[inline(always)]
    fn next_chunk(&mut self, place: u32) -> &mut u64 {
        &mut self.places[(place | LAST) as usize].arrives
    }

    /// Removes the first packet of a list. Returns it and the arrival time of the following one;
    /// `None` if there is no such list. The list must not be empty.
    #[inline(always)]
    pub(super) fn pop(&mut self, list: usize) -> Option<(Packet, Option<u64>)> {
        let List { first, last } = self.lists.get_mut(list)?;
        let at = *first;
        let InFlight { packet, .. } = self.places[at as usize];
        if at == *last {
            (*first, *last) = (NOTHING, NOTHING);
            self.release(at);
            return Some((packet, None));
        }
        let mut following = at + 1;
        if following % CHUNK == LAST {
            following = low32(*self.next_chunk(at));
            self.release(at);
        }
        self.lists[list].first = following;
        Some((packet, Some(self.places[following as usize].arrives)))
    }

    /// Frees the chunk that contains a place.
    #[inline(always)]
    fn release(&mut self, place: u32) {
        let free = std::mem::replace(&mut self.free, place & !LAST);
        *self.next_chunk(place) = free.into();
    }

    /// The first packet of a list and its arrival time.
    #[inline(always)]
    pub(super) fn first(&self, list: usize) -> Option<(u64, Packet)> {
        let first = self.lists.get(list)?.first;
        let &InFlight { arrives, packet } = self.places.get(first as usize)?;
        Some((arrives, packet))
    }

    /// The arrival time of the first packet of a list; [`NONE`] if there is neither.
    pub(super) fn first_arrival(&self, list: usize) -> u64 {
        self.first(list).map_or(NONE, |(arrives, _)| arrives)
    }

    #[inline(always)]
    pub(super) fn is_empty(&self, list: usize) -> bool {
        self.lists[list].first == NOTHING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn lists_are_queues_that_share_their_chunks(
            steps in prop::collection::vec((0usize..3, 0u32..5), 0..600),
        ) {
            let (mut lists, mut models) = (Lists::new(3), vec![VecDeque::new(); 3]);
            let mut most = 0;
            for (at, (list, step)) in (0u64..).zip(steps) {
                let model = &mut models[list];
                prop_assert_eq!(lists.is_empty(list), model.is_empty());
                prop_assert_eq!(lists.first_arrival(list), model.front().map_or(NONE, |&at| at));
                if step < 3 {
                    let alone = lists.push(list, at, Packet::new(saturate32(list), 0, 0, 0, 0));
                    prop_assert_eq!(alone, model.is_empty());
                    model.push_back(at);
                } else if model.pop_front().is_some() {
                    let (packet, following) = lists.pop(list).unwrap();
                    prop_assert_eq!(packet.seq() as usize, list);
                    prop_assert_eq!(following, model.front().copied());
                }
                // The first and the last chunk of a list may not be full.
                let chunks = |model: &VecDeque<u64>| model.len().div_ceil(LAST as usize) + 1;
                most = most.max(models.iter().map(chunks).sum::<usize>());
                prop_assert!(lists.places.len() <= most * CHUNK as usize);
            }
            prop_assert!(lists.pop(3).is_none());
        }
    }
}
