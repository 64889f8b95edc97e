//! The segment size of a flow, which changes where the sender discovers another path MTU (RFC 8899). A packet keeps the size with which it
//! was sent first.

use crate::cast::{low32, saturate16, saturate32, to_index};
use crate::engine::clock::Clock;
use crate::network::Tcp;
use std::collections::VecDeque;

/// The sizes of the packets of a flow.
pub(crate) struct SegmentSize {
    /// Bytes on the wire of the packets from `first` on, and of the last one.
    size: u16,
    last: u16,
    first: u32,
    /// Present if the size changes.
    changes: Option<Box<Changes>>,
}

struct Changes {
    /// Times in ticks from the start of the flow, and payloads.
    to_come: VecDeque<(u64, u32)>,
    /// The first packet of each former size, and the size on the wire.
    former: Vec<(u32, u16)>,
    start: u64,
    /// Bytes of data from packet `first` on; `None` for no limit.
    bytes: Option<u64>,
    payload: u32,
    header: u32,
}

impl SegmentSize {
    /// Returns the sizes of a transfer whose data begins with packet `first`, and one past its last packet.
    pub(crate) fn new(tcp: &Tcp, clock: Clock, first: u32) -> (Self, u32) {
        let changes = (!tcp.packet_changes.is_empty()).then(|| {
            let ticks = |change: &crate::network::PacketChange| {
                (clock.ticks(change.at.as_nanos()), change.packet)
            };
            Box::new(Changes {
                to_come: tcp.packet_changes.iter().map(ticks).collect(),
                former: Vec::new(),
                start: 0,
                bytes: tcp.bytes,
                payload: tcp.packet,
                header: tcp.header,
            })
        });
        let mut sizes = SegmentSize { size: 0, last: 0, first, changes };
        let total = sizes.set(tcp.bytes, tcp.packet, tcp.header);
        (sizes, total)
    }

    /// Sets the size of the packets from `first` on, which carry `bytes` bytes. Returns one past the last of them.
    fn set(&mut self, bytes: Option<u64>, payload: u32, header: u32) -> u32 {
        let packets = bytes
            .map_or(u32::MAX, |bytes| saturate32(to_index(bytes.div_ceil(u64::from(payload)))));
        let remainder = low32(bytes.map_or(0, |bytes| bytes % u64::from(payload)));
        let last = if remainder == 0 { payload } else { remainder };
        self.size = saturate16((payload + header) as usize);
        self.last = saturate16((last + header) as usize);
        self.first.saturating_add(packets)
    }

    /// The flow starts at `now`.
    pub(crate) fn start(&mut self, now: u64) {
        if let Some(changes) = &mut self.changes {
            changes.start = now;
        }
    }

    /// Returns the size on the wire in bytes of a packet of a transfer that ends before packet `total`.
    #[inline(always)]
    pub(crate) fn of(&self, packet: u32, total: u32) -> u16 {
        if packet + 1 == total {
            self.last
        } else if packet >= self.first {
            self.size
        } else {
            self.former(packet)
        }
    }

    #[cold]
    fn former(&self, packet: u32) -> u16 {
        let former = self.changes.iter().flat_map(|changes| changes.former.iter().rev());
        former.clone().find(|former| former.0 <= packet).map_or(self.size, |former| former.1)
    }

    /// Applies the changes that are due to the packets from `next` on, the first one that has not been sent, and to the end of the
    /// transfer, `total`. Returns the new payload in bytes if there is one.
    #[inline(always)]
    pub(crate) fn change(&mut self, now: u64, next: u32, total: &mut u32) -> Option<u32> {
        self.changes.as_ref()?;
        self.apply(now, next, total)
    }

    #[cold]
    fn apply(&mut self, now: u64, next: u32, total: &mut u32) -> Option<u32> {
        let changes = self.changes.as_mut()?;
        let mut payload = None;
        while let Some(&(at, new)) = changes.to_come.front()
            && changes.start + at <= now
        {
            changes.to_come.pop_front();
            payload = Some(new);
        }
        let payload = payload.filter(|&new| new != changes.payload)?;
        // What has been sent keeps its size; of a transfer that was sent to its end nothing is left.
        if next < *total {
            let next = next.max(self.first);
            let sent = u64::from(next - self.first) * u64::from(changes.payload);
            changes.former.push((self.first, self.size));
            changes.bytes = changes.bytes.map(|bytes| bytes.saturating_sub(sent));
            changes.payload = payload;
            self.first = next;
            let (bytes, header) = (changes.bytes, changes.header);
            *total = self.set(bytes, payload, header);
        }
        Some(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Traffic;
    use crate::scenario::Scenario;
    use cwnd::Dur;

    /// The sizes of a flow of 10,000 bytes in packets of 1000, later 500 and 2000 bytes, with 40 bytes of headers and a SYN.
    fn sizes() -> (SegmentSize, u32) {
        let text = "duration = \"1s\"\n[dumbbell]\nrate = \"1mbit\"\ndelay = \"1ms\"\n[[flow]]\n\
            controller = \"reno\"\nbytes = 10000\ntcp.packet = 1000\n\
            packet_changes = [{ at = \"10ms\", packet = 500 }, { at = \"20ms\", packet = 2000 }]";
        let network = Scenario::from_toml(text, "test").unwrap().network(1).unwrap();
        let Traffic::Tcp(tcp) = &*network.flows[0].traffic else { panic!("no TCP") };
        SegmentSize::new(tcp, clock(), 1)
    }

    fn clock() -> Clock {
        Clock::widest(Dur::from_millis(1000))
    }

    fn at(millis: u64) -> u64 {
        clock().ticks(millis * 1_000_000)
    }

    #[test]
    fn new_packets_have_the_new_size() {
        let (mut sizes, mut total) = sizes();
        assert_eq!((total, sizes.of(3, total), sizes.of(10, total)), (11, 1040, 1040));
        assert_eq!(sizes.change(at(9), 4, &mut total), None);
        // Three packets have been sent: 7000 bytes are left.
        assert_eq!(sizes.change(at(11), 4, &mut total), Some(500));
        assert_eq!(total, 18);
        assert_eq!([3, 4, 17].map(|packet| sizes.of(packet, total)), [1040, 540, 540]);
        assert_eq!(sizes.change(at(12), 9, &mut total), None);
        // Five more: 4500 bytes are left.
        assert_eq!(sizes.change(at(25), 9, &mut total), Some(2000));
        assert_eq!(total, 12);
        let all = [1, 3, 4, 8, 9, 10, 11].map(|packet| sizes.of(packet, total));
        assert_eq!(all, [1040, 1040, 540, 540, 2040, 2040, 540]);
    }

    #[test]
    fn of_several_changes_the_last_one_counts_and_none_after_the_end() {
        let (mut skipped, mut total) = sizes();
        assert_eq!(skipped.change(at(25), 1, &mut total), Some(2000));
        assert_eq!((total, skipped.of(5, total)), (6, 2040));
        let (mut sent, mut total) = sizes();
        assert_eq!(sent.change(at(25), 11, &mut total), Some(2000));
        assert_eq!((total, sent.of(10, total)), (11, 1040));
    }
}
