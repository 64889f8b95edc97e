//! Queue disciplines that decide at the arrival of a packet: DropTail and RED.

use super::red::Red;
use crate::cast::saturate32;
use crate::engine::clock::Clock;
use crate::network::{self, Queue, QueueLimit};
use crate::rng::Rng;

/// What a discipline does with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Accept,
    Mark,
    Drop,
}

/// Length of a queue, without the packet in transmission.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Occupancy {
    pub packets: usize,
    pub bytes: u64,
}

pub(super) enum Admission {
    DropTail { packets: u32, bytes: u64 },
    Red(Box<Red>),
}

impl Admission {
    /// Returns the discipline of link number `index`.
    pub(super) fn new(link: &network::Link, clock: Clock, index: usize, seed: u64) -> Self {
        match &link.queue {
            Queue::DropTail { limit: QueueLimit::Packets(packets) } => {
                Admission::DropTail { packets: *packets, bytes: u64::MAX }
            }
            Queue::DropTail { limit: QueueLimit::Bytes(bytes) } => {
                Admission::DropTail { packets: u32::MAX, bytes: *bytes }
            }
            Queue::Red(red) => {
                let rng = Rng::new(seed, "red", index as u64);
                let drain = link.rate.unwrap_or(f64::MAX) / clock.ticks_in(1.0);
                Admission::Red(Box::new(Red::new(red, drain, rng)))
            }
            // They decide themselves.
            Queue::Codel(_)
            | Queue::FqCodel(_)
            | Queue::Fq(_)
            | Queue::Pie(_)
            | Queue::DualPi2(_) => Admission::DropTail { packets: u32::MAX, bytes: u64::MAX },
        }
    }

    /// Whether every packet is accepted unchanged while the transmitter is idle.
    pub(super) fn accepts_when_idle(&self) -> bool {
        matches!(self, Admission::DropTail { .. })
    }

    /// Decides on a packet of `size` bytes. `idle` is the time in ticks since the transmitter became idle, `None` if it is busy;
    /// `ect` whether the packet is ECN-capable.
    #[inline]
    pub(super) fn admit(
        &mut self,
        queue: Occupancy,
        idle: Option<u64>,
        size: u64,
        ect: bool,
    ) -> Action {
        match self {
            Admission::DropTail { packets, bytes } => {
                let full =
                    queue.packets >= *packets as usize || queue.bytes.saturating_add(size) > *bytes;
                if full && idle.is_none() { Action::Drop } else { Action::Accept }
            }
            Admission::Red(red) => red.admit(saturate32(queue.packets), idle, ect),
        }
    }
}
