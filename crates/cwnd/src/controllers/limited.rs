//! Application-limited phases that a controller declares itself.

/// Packets that the model ignores: those sent while the controller held the window down. A packet
/// is identified by the delivered count at its transmission (MarkConnectionAppLimited of
/// draft-ietf-ccwg-bbr section 4.1.2.4).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LimitedPhase {
    /// The first and the last delivered count.
    counts: Option<(u64, u64)>,
}

impl LimitedPhase {
    /// The phase includes now, when `delivered` packets are delivered and `in_flight` in flight.
    pub(super) fn extend(&mut self, delivered: u64, in_flight: u32) {
        let from = self.counts.map_or(
            delivered,
            |(from, to)| {
                if to >= delivered { from } else { delivered }
            },
        );
        self.counts = Some((from, delivered + u64::from(in_flight)));
    }

    /// Whether a packet was sent in the phase, when `delivered` packets were delivered.
    pub(super) fn contains(&self, delivered: u64) -> bool {
        self.counts.is_some_and(|(from, to)| (from..=to).contains(&delivered))
    }
}
