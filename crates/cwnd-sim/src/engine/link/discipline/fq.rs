//! Flow queueing as in Linux's `sch_fq`, without pacing and bands.
//!
//! Deficit round robin with new and old queues. A queue keeps its credits while it is empty; after 40 ms it has at least a quantum again.

use super::codel::ControlledQueue;
use super::flow_queues::FlowQueues;
use super::{Discipline, Effects, Queued, exceeds};
use crate::engine::clock::Clock;
use crate::engine::link::admission::Occupancy;
use crate::network::{self, QueueLimit};

/// Time after which an empty queue has at least a quantum again, in nanoseconds (`flow_refill_delay`).
const REFILL_DELAY: u64 = 40_000_000;

/// The state of a flow's queue.
#[derive(Default)]
struct Flow {
    /// Whether the flow has had packets.
    known: bool,
    /// Time at which the queue left the lists.
    emptied_at: u64,
}

pub(super) struct Fq {
    limit: QueueLimit,
    flow_limit: u32,
    quantum: u32,
    initial_quantum: u32,
    refill_delay: u64,
    queues: FlowQueues<Flow>,
}

impl Fq {
    pub(super) fn new(fq: &network::Fq, clock: Clock, seed: u64) -> Self {
        Fq {
            limit: fq.limit,
            flow_limit: fq.flow_limit,
            quantum: fq.quantum,
            initial_quantum: fq.initial_quantum,
            refill_delay: clock.ticks(REFILL_DELAY),
            queues: FlowQueues::new(fq.flows, seed),
        }
    }
}

impl Discipline for Fq {
    fn enqueue(&mut self, queued: Queued, flow: u32, effects: &mut Effects) {
        let index = self.queues.queue_of(flow);
        if exceeds(self.limit, self.queues.occupancy(), queued.size())
            || self.queues.get(index).packets >= self.flow_limit
        {
            effects.drop(queued);
            return;
        }
        let listed = self.queues.push(index, queued);
        if !listed {
            let queue = self.queues.get(index);
            if !queue.state.known {
                queue.state.known = true;
                queue.credits = i64::from(self.initial_quantum);
            } else if queued.enqueued_at - queue.state.emptied_at > self.refill_delay {
                queue.credits = queue.credits.max(i64::from(self.quantum));
            }
            self.queues.activate(index);
        }
    }

    fn bypass(&mut self, now: u64) -> bool {
        self.queues.clear_lists(|flow| flow.emptied_at = now);
        true
    }

    fn dequeue(&mut self, now: u64, _: &mut Effects) -> Option<Queued> {
        self.queues.serve(self.quantum, |_, backlog| backlog.pop(), |flow| flow.emptied_at = now)
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
