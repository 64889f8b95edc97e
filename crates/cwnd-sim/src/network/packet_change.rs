//! Changes of the packet size of a flow.

use crate::check::{Checked, check_spans, invalid};
use cwnd::Dur;

/// A change of the packet size, as after a discovery of the path MTU (RFC 8899). New packets have
/// the new size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketChange {
    /// Time of the change after the start of the flow.
    pub at: Dur,
    /// Payload of a data packet in bytes; of QUIC the largest UDP payload that the path carries.
    pub packet: u32,
}

impl PacketChange {
    /// Checks the times of changes, and their sizes by `check_size`.
    pub(super) fn check(changes: &[Self], check_size: impl Fn(u32) -> Checked) -> Checked {
        for change in changes {
            check_spans([("packet_changes", change.at)])?;
            check_size(change.packet)?;
        }
        if !changes.is_sorted_by(|one, next| one.at < next.at) {
            return invalid("packet_changes", "the times of the changes are not ascending");
        }
        Ok(())
    }
}
