//! Sizes of delivered packets after changes of the maximum packet size.

use crate::units::to_f64;

/// Changes that matter at a time: those of the last round trips.
const CHANGES: usize = 4;

/// The sizes of the packets of a connection in order of delivery, to convert volumes of
/// delivery-rate samples.
///
/// A [sample](crate::delivery::RateSample) counts packets whatever their size. After a change of
/// the maximum packet size ([`Event::Mtu`](crate::Event::Mtu)) the packets in flight still have the
/// old one.
///
/// ```
/// use cwnd::parts::PacketSizes;
///
/// let mut sizes = PacketSizes::new(1000);
/// // 100 packets are delivered and 10 in flight; packets sent from now on are larger by a quarter.
/// assert_eq!(sizes.change(1250, 100, 10), 0.8);
/// // Of twenty packets after the hundredth ten are old.
/// assert_eq!(sizes.volume(100, 20), 18.0);
/// assert_eq!(sizes.volume(110, 20), 20.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketSizes {
    packet: f64,
    /// The delivered count up to which packets have an old size, and that size in bytes, the oldest
    /// first.
    old: [(u64, f64); CHANGES],
}

impl PacketSizes {
    /// Packets of `packet` bytes.
    pub fn new(packet: u32) -> Self {
        PacketSizes { packet: f64::from(packet.max(1)), old: [(0, 0.0); CHANGES] }
    }

    /// The present size in bytes.
    pub const fn packet(&self) -> f64 {
        self.packet
    }

    /// Changes the size to `packet` bytes when `delivered` packets are delivered and `in_flight` in
    /// flight. Returns the factor by which volumes in packets and rates change.
    pub fn change(&mut self, packet: u32, delivered: u64, in_flight: u32) -> f64 {
        let until = delivered.saturating_add(u64::from(in_flight));
        let before = core::mem::replace(&mut self.packet, f64::from(packet.max(1)));
        for (old, _) in &mut self.old {
            *old = until.min(*old);
        }
        self.old.rotate_left(1);
        self.old[CHANGES - 1] = (until, before);
        before / self.packet
    }

    /// The volume in packets of the present size of the `count` packets that follow the first
    /// `delivered` ones.
    pub fn volume(&self, delivered: u64, count: u64) -> f64 {
        let (mut from, end) = (delivered, delivered.saturating_add(count));
        if from >= self.old[CHANGES - 1].0 {
            return to_f64(count);
        }
        let mut bytes = 0.0;
        for (until, packet) in self.old {
            let until = until.clamp(from, end);
            bytes += (until - from) as f64 * packet;
            from = until;
        }
        (bytes + (end - from) as f64 * self.packet) / self.packet
    }
}

/// The largest window in packets: drivers count packets in 32 bits. A limit of as many is none.
pub(crate) const MAX_WINDOW: f64 = u32::MAX as f64;

/// The largest window `most` when volumes in packets change by `factor`: the same number of bytes,
/// at least `least` packets. Without a largest window there is none afterwards.
pub(crate) fn rescale_max_window(most: f64, factor: f64, least: f64) -> f64 {
    if most < MAX_WINDOW { (most * factor).clamp(least, MAX_WINDOW) } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_largest_window_stays_the_same_bytes_and_none_stays_none() {
        assert_eq!(rescale_max_window(100.0, 0.5, 1.0), 50.0);
        assert_eq!(rescale_max_window(1.0, 0.5, 2.0), 2.0);
        assert_eq!(rescale_max_window(1e9, 10.0, 1.0), MAX_WINDOW);
        for none in [MAX_WINDOW, f64::INFINITY] {
            assert_eq!(rescale_max_window(none, 0.5, 1.0), none);
        }
    }

    /// Two changes within a round trip: packets 0 to 9, 10 to 14, and the others have three sizes.
    #[test]
    fn volumes_span_changes() {
        let mut sizes = PacketSizes::new(1000);
        assert_eq!(sizes.change(2000, 4, 6), 0.5);
        assert_eq!(sizes.change(4000, 8, 7), 0.5);
        assert_eq!(sizes.volume(0, 10), 2.5);
        assert_eq!(sizes.volume(8, 10), 2.0 * 0.25 + 5.0 * 0.5 + 3.0);
        assert_eq!(sizes.volume(15, 10), 10.0);
        assert_eq!(sizes.volume(0, 0), 0.0);
    }

    /// Packets in flight that were lost are not delivered: the count of the packets of the size
    /// before ends there.
    #[test]
    fn losses_shorten_the_old_packets() {
        let mut sizes = PacketSizes::new(1000);
        sizes.change(2000, 0, 100);
        sizes.change(4000, 10, 0);
        assert_eq!(sizes.volume(0, 20), 2.5 + 10.0);
    }

    /// Of more changes than are kept the oldest is forgotten: its packets count with the size after
    /// it.
    #[test]
    fn the_oldest_change_is_forgotten() {
        let mut sizes = PacketSizes::new(500);
        for step in 1..=5 {
            sizes.change(500 + 500 * step, 10 * u64::from(step), 0);
        }
        assert_eq!(sizes.volume(0, 10), 10.0 * 1000.0 / 3000.0);
        assert_eq!(sizes.volume(u64::MAX, u64::MAX), u64::MAX as f64);
    }
}
