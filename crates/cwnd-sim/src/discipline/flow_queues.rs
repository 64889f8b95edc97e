//! Queues of flows and their deficit round robin with a list of new and a list of old queues (RFC
//! 8290 section 4.2).
//!
//! Packets are in one array and linked to queues: a queue allocates nothing. A hash bucket gets a
//! queue at its first packet.

use super::codel::ControlledQueue;
use super::interface::{Occupancy, Queued};
use crate::cast::{low32, saturate32};
use crate::check::{Checked, invalid};
use std::ops::RangeInclusive;

/// Bytes of an Ethernet frame, the default quantum of FQ-CoDel.
pub(super) const ETHERNET: u32 = 1514;
/// The default number of flow queues.
pub(super) const FLOWS: u32 = 1024;
/// Quanta in bytes. With less than 64 bytes, a large packet would wait for a thousand rounds.
const QUANTA: RangeInclusive<u32> = 64..=1 << 20;
/// The largest number of flow queues, as in Linux.
const MAX_FLOWS: u32 = 65_536;

/// No packet, or no queue.
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    queued: Queued,
    next: u32,
}

/// The packets of all queues.
#[derive(Clone)]
struct Packets {
    nodes: Vec<Node>,
    /// The first of the unused nodes, which are linked.
    unused: u32,
    total: Occupancy,
}

impl Packets {
    #[inline(always)]
    fn insert(&mut self, queued: Queued) -> u32 {
        self.total.packets += 1;
        self.total.bytes += queued.size();
        let node = Node { queued, next: NIL };
        let index = self.unused;
        if let Some(slot) = self.nodes.get_mut(index as usize) {
            self.unused = slot.next;
            *slot = node;
            return index;
        }
        self.nodes.push(node);
        saturate32(self.nodes.len() - 1)
    }

    /// Removes a packet. Returns it and the one that follows in its queue.
    #[inline(always)]
    fn remove(&mut self, index: u32) -> (Queued, u32) {
        let node = &mut self.nodes[index as usize];
        let Node { queued, next } = *node;
        node.next = self.unused;
        self.unused = index;
        self.total.packets -= 1;
        self.total.bytes -= queued.size();
        (queued, next)
    }
}

/// The queue of a flow, with a state of the discipline.
#[derive(Clone, Default)]
pub(super) struct FlowQueue<S> {
    first: u32,
    last: u32,
    pub packets: u32,
    pub bytes: u64,
    /// Bytes that it may still send in this round.
    pub credits: i64,
    /// The following queue in its list.
    next: u32,
    listed: bool,
    pub state: S,
}

/// The queues of one of the two lists, in the order of their service.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

/// Where the queue to be served is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    New,
    Old,
}

#[derive(Clone)]
pub(super) struct FlowQueues<S> {
    seed: u64,
    /// The queue of each hash bucket.
    buckets: Vec<u32>,
    queues: Vec<FlowQueue<S>>,
    lists: [List; 2],
    packets: Packets,
}

/// The packets of one queue.
pub(super) struct Backlog<'a> {
    first: &'a mut u32,
    count: &'a mut u32,
    bytes: &'a mut u64,
    packets: &'a mut Packets,
}

impl ControlledQueue for Backlog<'_> {
    #[inline(always)]
    fn pop(&mut self) -> Option<Queued> {
        if *self.first == NIL {
            return None;
        }
        let (queued, next) = self.packets.remove(*self.first);
        *self.first = next;
        *self.count -= 1;
        *self.bytes -= queued.size();
        Some(queued)
    }

    fn backlog(&self) -> u64 {
        self.packets.total.bytes
    }
}

impl<S: Default> FlowQueues<S> {
    /// `flows` hash buckets, whose hash function `seed` selects.
    pub(super) fn new(flows: u32, seed: u64) -> Self {
        FlowQueues {
            seed,
            buckets: vec![NIL; flows as usize],
            queues: Vec::new(),
            lists: [List { first: NIL, last: NIL }; 2],
            packets: Packets { nodes: Vec::new(), unused: NIL, total: Occupancy::default() },
        }
    }

    /// Returns the index of the queue of a flow.
    #[inline(always)]
    pub(super) fn queue_of(&mut self, flow: u32) -> usize {
        // With the constants of splitmix64, each bit of the flow and the seed changes every bit of
        // the bucket with probability 1/2.
        let mut hash = (u64::from(flow) ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^= hash >> 32;
        let bucket = (u64::from(low32(hash)) * self.buckets.len() as u64) >> 32;
        let index = &mut self.buckets[low32(bucket) as usize];
        if *index == NIL {
            *index = saturate32(self.queues.len());
            let empty = FlowQueue { first: NIL, last: NIL, next: NIL, ..FlowQueue::default() };
            self.queues.push(empty);
        }
        *index as usize
    }

    pub(super) fn get(&mut self, index: usize) -> &mut FlowQueue<S> {
        &mut self.queues[index]
    }

    pub(super) fn occupancy(&self) -> Occupancy {
        self.packets.total
    }

    /// Appends a packet to a queue. Returns whether the queue is in one of the lists.
    #[inline(always)]
    pub(super) fn push(&mut self, index: usize, queued: Queued) -> bool {
        let node = self.packets.insert(queued);
        let queue = &mut self.queues[index];
        queue.packets += 1;
        queue.bytes += queued.size();
        let last = std::mem::replace(&mut queue.last, node);
        if queue.first == NIL {
            queue.first = node;
        } else {
            self.packets.nodes[last as usize].next = node;
        }
        queue.listed
    }

    /// Removes the first packet of a queue.
    pub(super) fn pop(&mut self, index: usize) -> Option<Queued> {
        let FlowQueue { first, packets: count, bytes, .. } = &mut self.queues[index];
        Backlog { first, count, bytes, packets: &mut self.packets }.pop()
    }

    /// Appends a queue to the list of new queues.
    pub(super) fn activate(&mut self, index: usize) {
        self.queues[index].listed = true;
        self.append(Which::New, saturate32(index));
    }

    fn append(&mut self, which: Which, index: u32) {
        self.queues[index as usize].next = NIL;
        let list = &mut self.lists[which as usize];
        if list.first == NIL {
            list.first = index;
        } else {
            self.queues[list.last as usize].next = index;
        }
        list.last = index;
    }

    /// Returns the queue to be served next, with its list. A queue without credits gets `quantum`
    /// and becomes the last of the old ones.
    #[inline(always)]
    fn next_with_credits(&mut self, quantum: u32) -> Option<(Which, u32)> {
        loop {
            let [new, old] = &mut self.lists;
            let (which, list) =
                if new.first == NIL { (Which::Old, old) } else { (Which::New, new) };
            let index = list.first;
            // NIL is the index of no queue.
            let queue = self.queues.get_mut(index as usize)?;
            if queue.credits > 0 {
                return Some((which, index));
            }
            queue.credits += i64::from(quantum);
            list.first = queue.next;
            self.append(Which::Old, index);
        }
    }

    fn remove_first(&mut self, which: Which) {
        let list = &mut self.lists[which as usize];
        list.first = self.queues[list.first as usize].next;
    }

    /// Removes the packet to transmit next: `take` is called on queues in the order of service
    /// until it finds a packet. Calls `emptied` on each queue that leaves the lists.
    #[inline]
    pub(super) fn serve(
        &mut self,
        quantum: u32,
        mut take: impl FnMut(&mut S, &mut Backlog<'_>) -> Option<Queued>,
        mut emptied: impl FnMut(&mut S),
    ) -> Option<Queued> {
        loop {
            let (which, index) = self.next_with_credits(quantum)?;
            let queue = self.queues.get_mut(index as usize)?;
            let FlowQueue { first, packets: count, bytes, state, credits, .. } = queue;
            let mut backlog = Backlog { first, count, bytes, packets: &mut self.packets };
            if let Some(queued) = take(state, &mut backlog) {
                *credits -= i64::from(queued.packet.size());
                return Some(queued);
            }
            self.remove_first(which);
            // An empty new queue passes through the old ones: otherwise it could come back at once
            // and starve them.
            if which == Which::New {
                self.append(Which::Old, index);
            } else {
                let queue = &mut self.queues[index as usize];
                queue.listed = false;
                emptied(&mut queue.state);
            }
        }
    }

    /// Removes the queues from both lists, as repeated service does when all are empty. Calls
    /// `emptied` on each.
    #[inline]
    pub(super) fn clear_lists(&mut self, mut emptied: impl FnMut(&mut S)) {
        for which in [Which::New, Which::Old] {
            while self.lists[which as usize].first != NIL {
                let queue = &mut self.queues[self.lists[which as usize].first as usize];
                queue.listed = false;
                emptied(&mut queue.state);
                self.remove_first(which);
            }
        }
    }

    /// Returns the queue with most bytes.
    pub(super) fn fattest(&self) -> Option<usize> {
        let longest = |best: usize, index: usize| {
            if self.queues[index].bytes > self.queues[best].bytes { index } else { best }
        };
        (0..self.queues.len()).reduce(longest)
    }

    pub(super) fn visit(&self, each: &mut dyn FnMut(&Queued)) {
        for queue in &self.queues {
            let mut index = queue.first;
            while index != NIL {
                let node = &self.packets.nodes[index as usize];
                each(&node.queued);
                index = node.next;
            }
        }
    }
}

pub(super) fn check_quantum(field: &'static str, quantum: u32) -> Checked {
    if QUANTA.contains(&quantum) {
        return Ok(());
    }
    let (least, most) = (QUANTA.start(), QUANTA.end());
    invalid(field, format!("a quantum is from {least} to {most} bytes, not {quantum}"))
}

pub(super) fn check_flows(flows: u32) -> Checked {
    if (1..=MAX_FLOWS).contains(&flows) {
        return Ok(());
    }
    invalid("flows", format!("there are from 1 to {MAX_FLOWS} flow queues, not {flows}"))
}
