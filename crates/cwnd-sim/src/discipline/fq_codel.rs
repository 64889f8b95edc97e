//! Flow queueing with CoDel (RFC 8290).
//!
//! Drops at the limit do not count in CoDel's state (RFC 8289 section 5.4); in Linux they do.

use super::codel::{Codel, Parameters, State};
use super::flow_queues::{ETHERNET, FLOWS, FlowQueues, check_flows, check_quantum};
use super::interface::{Discipline, Effects, Occupancy, Queued};
use super::table::{LinkUse, QueueLimit, QueueTable, size};
use crate::check::{Checked, check_spans};
use crate::clock::Clock;
use crate::units::Span;
use cwnd::Dur;

pub(super) const KEYS: &[&str] = &["ecn", "target", "interval", "ce_threshold", "flows", "quantum"];

/// Most packets dropped at once from the queue with most bytes (RFC 8290 section 4.1).
const DROP_BATCH: u32 = 64;

/// FQ-CoDel's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodel {
    /// CoDel of each flow queue. Its limit is that of all queues together.
    pub codel: Codel,
    /// Number of flow queues.
    pub flows: u32,
    /// Bytes that a flow queue may send in a round.
    pub quantum: u32,
    /// Sojourn time above which each ECN-capable packet is marked; `None` for never.
    pub ce_threshold: Option<Dur>,
}

impl FqCodel {
    pub(super) fn new(table: &QueueTable, link: &LinkUse) -> Checked<Self> {
        Ok(FqCodel {
            codel: Codel::with_defaults(table, link, 10_240, true)?,
            flows: table.flows.unwrap_or(FLOWS),
            quantum: size(table.quantum, ETHERNET),
            ce_threshold: table.ce_threshold.map(Span::dur),
        })
    }

    pub(super) fn check(&self) -> Checked {
        self.codel.check()?;
        check_flows(self.flows)?;
        check_quantum("quantum", self.quantum)?;
        check_spans([("ce_threshold", self.ce_threshold.unwrap_or_default())])
    }
}

#[derive(Clone)]
pub(super) struct FqCodelQueue {
    limit: QueueLimit,
    quantum: u32,
    codel: Parameters,
    queues: FlowQueues<State>,
}

impl FqCodelQueue {
    pub(super) fn new(fq_codel: &FqCodel, clock: Clock, seed: u64) -> Self {
        FqCodelQueue {
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

impl Discipline for FqCodelQueue {
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
