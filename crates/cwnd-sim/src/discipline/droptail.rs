//! DropTail: first in, first out; a packet that exceeds the limit is dropped.

use super::interface::{Action, Occupancy};
use super::table::{LinkUse, MIN_DEFAULT, QueueLimit, QueueTable};
use crate::check::Checked;

/// Returns the limit of a scenario.
pub(super) fn limit(table: &QueueTable, link: &LinkUse) -> Checked<QueueLimit> {
    Ok(match (table.limit(link)?, link.rate, link.rtt) {
        (Some(limit), ..) => limit,
        (None, Some(_), Some(_)) => QueueLimit::Packets(link.bdp(1.0)?.max(MIN_DEFAULT)),
        // An access link is not the bottleneck.
        (None, ..) => QueueLimit::INFINITE,
    })
}

/// The limit in both units.
pub(crate) struct DropTail {
    packets: u32,
    bytes: u64,
}

impl DropTail {
    pub(super) const INFINITE: DropTail = DropTail { packets: u32::MAX, bytes: u64::MAX };

    pub(super) fn new(limit: QueueLimit) -> Self {
        match limit {
            QueueLimit::Packets(packets) => DropTail { packets, ..DropTail::INFINITE },
            QueueLimit::Bytes(bytes) => DropTail { bytes, ..DropTail::INFINITE },
        }
    }

    /// Decides on a packet of `size` bytes.
    #[inline]
    pub(super) fn admit(&self, queue: Occupancy, is_idle: bool, size: u64) -> Action {
        let full =
            queue.packets >= self.packets as usize || queue.bytes.saturating_add(size) > self.bytes;
        if full && !is_idle { Action::Drop } else { Action::Accept }
    }
}
