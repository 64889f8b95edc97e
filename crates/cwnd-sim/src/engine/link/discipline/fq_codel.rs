//! Flow queueing with CoDel (RFC 8290).
//!
//! Drops at the limit do not count in CoDel's state (RFC 8289 section 5.4); in Linux they do.

use super::codel::{Parameters, State};
use super::flow_queues::FlowQueues;
use super::{Discipline, Effects, Queued};
use crate::engine::clock::Clock;
use crate::engine::link::admission::Occupancy;
use crate::network::{self, QueueLimit};

/// Most packets dropped at once from the queue with most bytes (RFC 8290 section 4.1).
const DROP_BATCH: u32 = 64;

pub(super) struct FqCodel {
    limit: QueueLimit,
    quantum: u32,
    codel: Parameters,
    queues: FlowQueues<State>,
}

impl FqCodel {
    pub(super) fn new(fq_codel: &network::FqCodel, clock: Clock, seed: u64) -> Self {
        FqCodel {
            limit: fq_codel.codel.limit,
            quantum: fq_codel.quantum,
            codel: Parameters::new(&fq_codel.codel, fq_codel.ce_threshold, clock),
            queues: FlowQueues::new(fq_codel.flows, seed),
        }
    }

    fn is_over(&self) -> bool {
        let Occupancy { packets, bytes } = self.queues.occupancy();
        match self.limit {
            QueueLimit::Packets(most) => packets > most as usize,
            QueueLimit::Bytes(most) => bytes > most,
        }
    }

    /// Drops half of the packets of the queue with most bytes, from its head.
    fn drop_batch(&mut self, effects: &mut Effects) {
        let Some(index) = self.queues.fattest() else { return };
        let half = self.queues.get(index).packets.div_ceil(2);
        for _ in 0..half.min(DROP_BATCH) {
            if let Some(queued) = self.queues.pop(index) {
                effects.drop(queued);
            }
        }
    }
}

impl Discipline for FqCodel {
    fn enqueue(&mut self, queued: Queued, flow: u32, effects: &mut Effects) {
        let index = self.queues.queue_of(flow);
        let listed = self.queues.push(index, queued);
        if !listed {
            self.queues.get(index).credits = i64::from(self.quantum);
            self.queues.activate(index);
        }
        while self.is_over() {
            self.drop_batch(effects);
        }
    }

    fn bypass(&mut self, _: u64) -> bool {
        self.queues.clear_lists(State::idle);
        true
    }

    fn dequeue(&mut self, now: u64, effects: &mut Effects) -> Option<Queued> {
        let codel = &self.codel;
        self.queues.serve(
            self.quantum,
            |state, backlog| state.dequeue(now, codel, backlog, effects),
            |_| {},
        )
    }

    fn visit(&self, each: &mut dyn FnMut(&Queued)) {
        self.queues.visit(each);
    }

    fn occupancy(&self) -> Occupancy {
        self.queues.occupancy()
    }

    fn uses_flows(&self) -> bool {
        true
    }
}
