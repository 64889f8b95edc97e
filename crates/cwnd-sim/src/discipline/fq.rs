//! Flow queueing as in Linux's `sch_fq`, without pacing and bands.
//!
//! Deficit round robin with new and old queues. A queue keeps its credits while it is empty; after
//! 40 ms it has at least a quantum again.

use super::codel::ControlledQueue;
use super::flow_queues::{ETHERNET, FLOWS, FlowQueues, check_flows, check_quantum};
use super::interface::{Discipline, Effects, Occupancy, Queued, exceeds};
use super::table::{LinkUse, QueueLimit, QueueTable, size};
use crate::check::{Checked, invalid};
use crate::clock::Clock;

pub(super) const KEYS: &[&str] = &["flows", "quantum", "initial_quantum", "flow_limit"];

/// Time after which an empty queue has at least a quantum again, in nanoseconds
/// (`flow_refill_delay`).
const REFILL_DELAY: u64 = 40_000_000;

/// Parameters of flow queueing as in Linux's `sch_fq`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fq {
    /// The largest queue of all flows together.
    pub limit: QueueLimit,
    /// The largest queue of a flow in packets.
    pub flow_limit: u32,
    /// Number of flow queues.
    pub flows: u32,
    /// Bytes that a flow queue may send in a round.
    pub quantum: u32,
    /// Bytes that a flow may send in its first round.
    pub initial_quantum: u32,
}

impl Fq {
    pub(super) fn new(table: &QueueTable, link: &LinkUse) -> Checked<Self> {
        Ok(Fq {
            limit: table.limit_or(10_000, link)?,
            flow_limit: table.flow_limit.unwrap_or(100),
            flows: table.flows.unwrap_or(FLOWS),
            quantum: size(table.quantum, 2 * ETHERNET),
            initial_quantum: size(table.initial_quantum, 10 * ETHERNET),
        })
    }

    pub(super) fn check(&self) -> Checked {
        check_flows(self.flows)?;
        check_quantum("quantum", self.quantum)?;
        check_quantum("initial_quantum", self.initial_quantum)?;
        if self.flow_limit == 0 {
            return invalid("flow_limit", "a queue holds at least one packet");
        }
        Ok(())
    }
}

/// The state of a flow's queue.
#[derive(Clone, Default)]
struct Flow {
    /// Whether the flow has had packets.
    known: bool,
    /// Time at which the queue left the lists.
    emptied_at: u64,
}

#[derive(Clone)]
pub(super) struct FqQueue {
    fq: Fq,
    refill_delay: u64,
    queues: FlowQueues<Flow>,
}

impl FqQueue {
    pub(super) fn new(fq: &Fq, clock: Clock, seed: u64) -> Self {
        FqQueue {
            fq: *fq,
            refill_delay: clock.ticks(REFILL_DELAY),
            queues: FlowQueues::new(fq.flows, seed),
        }
    }
}

impl Discipline for FqQueue {
    fn enqueue(&mut self, queued: Queued, flow: u32, effects: &mut Effects) {
        let index = self.queues.queue_of(flow);
        if exceeds(self.fq.limit, self.queues.occupancy(), queued.size())
            || self.queues.get(index).packets >= self.fq.flow_limit
        {
            effects.drop(queued);
            return;
        }
        let listed = self.queues.push(index, queued);
        if !listed {
            let queue = self.queues.get(index);
            if !queue.state.known {
                queue.state.known = true;
                queue.credits = i64::from(self.fq.initial_quantum);
            } else if queued.enqueued_at - queue.state.emptied_at > self.refill_delay {
                queue.credits = queue.credits.max(i64::from(self.fq.quantum));
            }
            self.queues.activate(index);
        }
    }

    fn bypass(&mut self, now: u64) -> bool {
        self.queues.clear_lists(|flow| flow.emptied_at = now);
        true
    }

    fn dequeue(&mut self, now: u64, _: &mut Effects) -> Option<Queued> {
        self.queues.serve(self.fq.quantum, |_, backlog| backlog.pop(), |flow| flow.emptied_at = now)
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
