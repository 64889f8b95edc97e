//! DropTail: first in, first out; a packet that exceeds the limit is dropped.

use super::interface::{Action, Occupancy, exceeds};
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

/// Decides on a packet of `size` bytes.
#[inline]
pub(super) fn admit(limit: QueueLimit, queue: Occupancy, is_idle: bool, size: u64) -> Action {
    if exceeds(limit, queue, size) && !is_idle { Action::Drop } else { Action::Accept }
}
