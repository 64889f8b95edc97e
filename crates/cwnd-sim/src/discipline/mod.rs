//! Queue disciplines. The file of a discipline has `KEYS`, its keys in a scenario besides `kind`
//! and `limit`; its parameters in base units; `new`, which converts the keys and has their
//! defaults; `check`, which has the limits of the values; and its code.

mod codel;
mod droptail;
mod dualpi2;
mod flow_queues;
mod fq;
mod fq_codel;
mod interface;
mod pie;
mod red;
mod table;
#[cfg(test)]
mod tests;

pub use codel::Codel;
pub use dualpi2::DualPi2;
pub use fq::Fq;
pub use fq_codel::FqCodel;
pub(crate) use interface::{Action, Discipline, Effects, Fifo, Occupancy, Queued};
pub use pie::Pie;
pub use red::Red;
pub(crate) use table::LinkUse;
pub use table::{QueueKind, QueueLimit, QueueTable};

use crate::cast::saturate32;
use crate::check::Checked;
use crate::clock::Clock;
use crate::rng::Rng;
use codel::CodelQueue;
use dualpi2::DualPi2Queue;
use fq::FqQueue;
use fq_codel::FqCodelQueue;
use pie::PieQueue;
use red::RedState;

/// The kinds with their keys besides `kind` and `limit`.
pub(crate) const KINDS: [(QueueKind, &[&str]); 7] = [
    (QueueKind::DropTail, &[]),
    (QueueKind::Red, red::KEYS),
    (QueueKind::Codel, codel::KEYS),
    (QueueKind::FqCodel, fq_codel::KEYS),
    (QueueKind::Fq, fq::KEYS),
    (QueueKind::Pie, pie::KEYS),
    (QueueKind::DualPi2, dualpi2::KEYS),
];

/// A queue discipline. Queue lengths exclude the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// First in, first out; a packet that exceeds the limit is dropped.
    DropTail {
        /// The largest queue.
        limit: QueueLimit,
    },
    /// Random early detection (Floyd and Jacobson 1993) as in ns-2, with lengths in packets.
    Red(Red),
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// Flow queueing with CoDel on each queue (RFC 8290).
    FqCodel(FqCodel),
    /// Flow queueing as in Linux's `sch_fq`, without pacing.
    Fq(Fq),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(Pie),
    /// Coupled dual queue with a PI² controller (RFC 9332, appendix A).
    DualPi2(DualPi2),
}

impl Queue {
    /// A queue without a limit.
    pub const INFINITE: Queue = Queue::DropTail { limit: QueueLimit::INFINITE };

    /// Converts the keys of a scenario and checks the parameters.
    pub(crate) fn new(table: &QueueTable, link: &LinkUse) -> Checked<Self> {
        let queue = match table.kind {
            QueueKind::DropTail => Queue::DropTail { limit: droptail::limit(table, link)? },
            QueueKind::Red => Queue::Red(Red::new(table, link)?),
            QueueKind::Codel => Queue::Codel(Codel::new(table, link)?),
            QueueKind::FqCodel => Queue::FqCodel(FqCodel::new(table, link)?),
            QueueKind::Fq => Queue::Fq(Fq::new(table, link)?),
            QueueKind::Pie => Queue::Pie(Pie::new(table, link)?),
            QueueKind::DualPi2 => Queue::DualPi2(DualPi2::new(table, link)?),
        };
        queue.check()?;
        Ok(queue)
    }

    /// Returns the largest queue.
    #[must_use]
    pub fn limit(&self) -> QueueLimit {
        match self {
            Queue::DropTail { limit } => *limit,
            Queue::Red(red) => QueueLimit::Packets(red.limit),
            Queue::Codel(codel) => codel.limit,
            Queue::FqCodel(fq_codel) => fq_codel.codel.limit,
            Queue::Fq(fq) => fq.limit,
            Queue::Pie(pie) => pie.limit,
            Queue::DualPi2(dualpi2) => dualpi2.limit,
        }
    }

    /// Checks the parameters of the discipline.
    pub(crate) fn check(&self) -> Checked {
        match self {
            Queue::DropTail { .. } => Ok(()),
            Queue::Red(red) => red.check(),
            Queue::Codel(codel) => codel.check(),
            Queue::FqCodel(fq_codel) => fq_codel.check(),
            Queue::Fq(fq) => fq.check(),
            Queue::Pie(pie) => pie.check(),
            Queue::DualPi2(dualpi2) => dualpi2.check(),
        }
    }

    /// Creates the discipline of link number `index` with a rate in bits per second.
    pub(crate) fn create(&self, rate: Option<f64>, clock: Clock, index: usize, seed: u64) -> Code {
        let rng = |name| Rng::new(seed, name, index as u64);
        Code::Departure(match self {
            Queue::DropTail { limit } => {
                return Code::Arrival(Admission::DropTail(*limit));
            }
            Queue::Red(red) => {
                let drain = rate.unwrap_or(f64::MAX) / clock.ticks_in(1.0);
                let red = RedState::new(*red, drain, rng("red"));
                return Code::Arrival(Admission::Red(Box::new(red)));
            }
            Queue::Codel(codel) => Box::new(CodelQueue::new(codel, clock)),
            Queue::FqCodel(fq_codel) => {
                Box::new(FqCodelQueue::new(fq_codel, clock, rng("flow hash").bits()))
            }
            Queue::Fq(fq) => Box::new(FqQueue::new(fq, clock, rng("flow hash").bits())),
            Queue::Pie(pie) => Box::new(PieQueue::new(pie, clock, rng("pie"))),
            Queue::DualPi2(dualpi2) => Box::new(DualPi2Queue::new(dualpi2, clock)),
        })
    }
}

/// The code of a discipline.
pub(crate) enum Code {
    /// Decides at the arrival of a packet.
    Arrival(Admission),
    /// Decides at the departure too.
    Departure(Box<dyn Discipline>),
}

/// A discipline that decides at the arrival of a packet.
#[derive(Clone)]
pub(crate) enum Admission {
    DropTail(QueueLimit),
    Red(Box<RedState>),
}

impl Admission {
    /// Accepts every packet.
    pub(crate) const ALL: Admission = Admission::DropTail(QueueLimit::INFINITE);

    /// Whether every packet is accepted unchanged while the transmitter is idle.
    pub(crate) fn accepts_when_idle(&self) -> bool {
        matches!(self, Admission::DropTail(_))
    }

    /// Decides on a packet of `size` bytes. `idle` is the time in ticks since the transmitter
    /// became idle, `None` if it is busy; `ect` whether the packet is ECN-capable.
    #[inline(always)]
    pub(crate) fn admit(
        &mut self,
        queue: Occupancy,
        idle: Option<u64>,
        size: u64,
        ect: bool,
    ) -> Action {
        match self {
            Admission::DropTail(limit) => droptail::admit(*limit, queue, idle.is_some(), size),
            Admission::Red(red) => red.admit(saturate32(queue.packets), idle, ect),
        }
    }
}
