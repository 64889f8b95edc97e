//! Controlled delay (RFC 8289).

use super::interface::{Discipline, Effects, Fifo, Occupancy, Queued, exceeds};
use super::table::{LinkUse, QueueLimit, QueueTable};
use crate::cast::whole;
use crate::check::{Checked, check_positive, check_size};
use crate::clock::Clock;
use crate::units::Span;
use cwnd::Dur;

pub(super) const KEYS: &[&str] = &["ecn", "target", "interval"];

/// CoDel's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codel {
    /// The largest queue.
    pub limit: QueueLimit,
    /// Acceptable sojourn time of a standing queue (`TARGET`).
    pub target: Dur,
    /// Time for which the sojourn time must exceed `target` before the first drop (`INTERVAL`).
    pub interval: Dur,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Queue in bytes up to which nothing is dropped: the largest packet (`maxpacket`).
    pub maxpacket: u32,
}

impl Codel {
    pub(super) fn new(table: &QueueTable, link: &LinkUse) -> Checked<Self> {
        Self::with_defaults(table, link, 1000, false)
    }

    /// Converts the keys; the default of `limit` is `packets`, that of `ecn` is `ecn`.
    pub(super) fn with_defaults(
        table: &QueueTable,
        link: &LinkUse,
        packets: u32,
        ecn: bool,
    ) -> Checked<Self> {
        Ok(Codel {
            limit: table.limit_or(packets, link)?,
            target: table.target.map_or(Dur::from_millis(5), Span::dur),
            interval: table.interval.map_or(Dur::from_millis(100), Span::dur),
            ecn: table.ecn.unwrap_or(ecn),
            maxpacket: link.packet,
        })
    }

    pub(super) fn check(&self) -> Checked {
        check_positive([("target", self.target), ("interval", self.interval)])?;
        check_size("maxpacket", self.maxpacket)
    }
}

/// A queue that CoDel controls.
pub(super) trait ControlledQueue {
    fn pop(&mut self) -> Option<Queued>;

    /// Returns the bytes that wait for the transmitter, in all queues (RFC 8289 section 4.4).
    fn backlog(&self) -> u64;
}

impl ControlledQueue for Fifo {
    fn pop(&mut self) -> Option<Queued> {
        Fifo::pop(self)
    }

    fn backlog(&self) -> u64 {
        self.bytes
    }
}

/// CoDel's parameters in ticks.
#[derive(Clone)]
pub(super) struct Parameters {
    target: u64,
    interval: u64,
    /// 16 intervals: for this time after leaving the drop state, its drop rate is a good starting
    /// point.
    memory: u64,
    ecn: bool,
    maxpacket: u64,
    /// Sojourn time above which each ECN-capable packet is marked.
    ce_threshold: u64,
}

impl Parameters {
    pub(super) fn new(codel: &Codel, ce_threshold: Option<Dur>, clock: Clock) -> Self {
        let ticks = |span: Dur| clock.ticks(span.as_nanos());
        let interval = ticks(codel.interval);
        Parameters {
            target: ticks(codel.target),
            interval,
            memory: interval.saturating_mul(16),
            ecn: codel.ecn,
            maxpacket: u64::from(codel.maxpacket),
            ce_threshold: ce_threshold.map_or(u64::MAX, ticks),
        }
    }

    /// Returns the time of the drop that follows one at `time` (RFC 8289 section 5.6).
    fn control_law(&self, time: u64, count: u32) -> u64 {
        time.saturating_add(whole(self.interval as f64 / f64::from(count).sqrt()))
    }
}

/// CoDel's state (RFC 8289 section 5.2).
#[derive(Clone, Default)]
pub(super) struct State {
    /// Time at which the sojourn time will have been above the target for an interval; 0 while it
    /// is below.
    first_above_time: u64,
    drop_next: u64,
    /// Drops since the drop state was entered.
    count: u32,
    /// `count` when the drop state was last entered.
    lastcount: u32,
    dropping: bool,
}

impl State {
    /// Removes the first packet. Returns it and whether it may be dropped (RFC 8289 section 5.6,
    /// `dodequeue`).
    fn pop(
        &mut self,
        now: u64,
        codel: &Parameters,
        queue: &mut impl ControlledQueue,
    ) -> (Option<Queued>, bool) {
        let first = queue.pop();
        let above = first.is_some_and(|queued| {
            queued.sojourn(now) >= codel.target && queue.backlog() > codel.maxpacket
        });
        if !above {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now.saturating_add(codel.interval);
        } else {
            return (first, now >= self.first_above_time);
        }
        (first, false)
    }

    /// Removes the packet to transmit next (RFC 8289 section 5.5). Where the RFC drops, ECN-capable
    /// packets are marked.
    pub(super) fn dequeue(
        &mut self,
        now: u64,
        codel: &Parameters,
        queue: &mut impl ControlledQueue,
        effects: &mut Effects,
    ) -> Option<Queued> {
        let (mut first, ok_to_drop) = self.pop(now, codel, queue);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping
                && now >= self.drop_next
                && let Some(queued) = &mut first
            {
                self.count = self.count.saturating_add(1);
                if codel.ecn && queued.is_capable() {
                    effects.mark(queued);
                    self.drop_next = codel.control_law(self.drop_next, self.count);
                    break;
                }
                effects.drop(*queued);
                (first, self.dropping) = self.pop(now, codel, queue);
                if self.dropping {
                    self.drop_next = codel.control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop && let Some(queued) = &mut first {
            if codel.ecn && queued.is_capable() {
                effects.mark(queued);
            } else {
                effects.drop(*queued);
                first = self.pop(now, codel, queue).0;
            }
            self.enter(now, codel);
        }
        if let Some(queued) = &mut first
            && queued.sojourn(now) > codel.ce_threshold
            && queued.is_capable()
        {
            effects.mark(queued);
        }
        first
    }

    /// Leaves the drop state: the queue is empty.
    pub(super) fn idle(&mut self) {
        self.first_above_time = 0;
        self.dropping = false;
    }

    /// Enters the drop state. The drop rate begins at that of the last time if this was recent.
    fn enter(&mut self, now: u64, codel: &Parameters) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.lastcount);
        let recent = now < self.drop_next.saturating_add(codel.memory);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = codel.control_law(now, self.count);
        self.lastcount = self.count;
    }
}

/// One queue with CoDel.
#[derive(Clone)]
pub(super) struct CodelQueue {
    limit: QueueLimit,
    parameters: Parameters,
    state: State,
    queue: Fifo,
}

impl CodelQueue {
    pub(super) fn new(codel: &Codel, clock: Clock) -> Self {
        CodelQueue {
            limit: codel.limit,
            parameters: Parameters::new(codel, None, clock),
            state: State::default(),
            queue: Fifo::default(),
        }
    }
}

impl Discipline for CodelQueue {
    fn enqueue(&mut self, queued: Queued, _: u32, effects: &mut Effects) {
        if exceeds(self.limit, self.queue.occupancy(), queued.size()) {
            effects.drop(queued);
        } else {
            self.queue.push(queued);
        }
    }

    fn bypass(&mut self, _: u64) -> bool {
        self.state.idle();
        true
    }

    fn dequeue(&mut self, now: u64, effects: &mut Effects) -> Option<Queued> {
        self.state.dequeue(now, &self.parameters, &mut self.queue, effects)
    }

    fn visit(&self, each: &mut dyn FnMut(&Queued)) {
        self.queue.visit(each);
    }

    fn occupancy(&self) -> Occupancy {
        self.queue.occupancy()
    }
}
