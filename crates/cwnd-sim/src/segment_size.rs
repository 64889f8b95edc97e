//! The segment size of a flow, which changes where the sender discovers another path MTU (RFC
//! 8899). A packet keeps the size with which it was sent first.

use crate::cast::{low32, saturate16, saturate32, to_index};
use crate::clock::Clock;
use crate::network::Tcp;
use std::collections::VecDeque;

/// Bytes on the wire of a packet, and of the last packet of a transfer.
#[derive(Clone, Copy)]
pub(crate) struct SegmentSize {
    each: u16,
    last: u16,
}

impl SegmentSize {
    /// Returns the sizes of packets that carry `bytes` bytes, `payload` each, and their number.
    pub(crate) fn new(bytes: Option<u64>, payload: u32, header: u32) -> (Self, u32) {
        let packets = bytes.map(|bytes| saturate32(to_index(bytes.div_ceil(u64::from(payload)))));
        let remainder = low32(bytes.map_or(0, |bytes| bytes % u64::from(payload)));
        let last = if remainder == 0 { payload } else { remainder };
        let [each, last] = [payload, last].map(|payload| saturate16((payload + header) as usize));
        (SegmentSize { each, last }, packets.unwrap_or(u32::MAX))
    }

    /// Returns the size of a packet of a transfer that ends before packet `total`.
    #[inline(always)]
    pub(crate) fn of(self, packet: u32, total: u32, changes: Option<&SizeChanges>) -> u16 {
        if packet + 1 == total {
            self.last
        } else if let Some(changes) = changes {
            changes.former(packet).unwrap_or(self.each)
        } else {
            self.each
        }
    }
}

/// The changes of a flow's segment size.
#[derive(Clone)]
pub(crate) struct SizeChanges {
    /// Times in ticks, and payloads.
    to_come: VecDeque<(u64, u32)>,
    /// The first packet of each former size, and the size on the wire.
    former: Vec<(u32, u16)>,
    /// The first packet of the present size, and the bytes of data from there on; `None` for no
    /// limit.
    first: u32,
    bytes: Option<u64>,
    payload: u32,
    header: u32,
}

impl SizeChanges {
    /// Returns the changes of a flow whose data begins with packet `first`; `None` without any.
    pub(crate) fn new(tcp: &Tcp, clock: Clock, first: u32) -> Option<Self> {
        let changes = tcp.packet_changes.iter();
        let to_come = changes.map(|change| (clock.ticks(change.at.as_nanos()), change.packet));
        (!tcp.packet_changes.is_empty()).then(|| SizeChanges {
            to_come: to_come.collect(),
            former: Vec::new(),
            first,
            bytes: tcp.bytes,
            payload: tcp.packet,
            header: tcp.header,
        })
    }

    /// The flow starts at `now`: the times of the changes count from there.
    pub(crate) fn start(&mut self, now: u64) {
        self.to_come.iter_mut().for_each(|change| change.0 += now);
    }

    /// Applies the changes that are due to the packets from `next` on, the first one that has not
    /// been sent, and to the end of the transfer, `total`. Returns the new payload in bytes if
    /// there is one.
    pub(crate) fn apply(
        &mut self,
        now: u64,
        next: u32,
        sizes: &mut SegmentSize,
        total: &mut u32,
    ) -> Option<u32> {
        let mut payload = None;
        while let Some(&(at, new)) = self.to_come.front()
            && at <= now
        {
            self.to_come.pop_front();
            payload = Some(new);
        }
        let payload = payload.filter(|&new| new != self.payload)?;
        let former = std::mem::replace(&mut self.payload, payload);
        // A transfer that has been sent completely keeps its sizes.
        if next < *total {
            let next = next.max(self.first);
            let sent = u64::from(next - self.first) * u64::from(former);
            self.former.push((self.first, sizes.each));
            self.first = next;
            self.bytes = self.bytes.map(|bytes| bytes.saturating_sub(sent));
            let packets;
            (*sizes, packets) = SegmentSize::new(self.bytes, payload, self.header);
            *total = next.saturating_add(packets);
        }
        Some(payload)
    }

    /// Returns the size of a packet that was sent before the last change.
    #[cold]
    fn former(&self, packet: u32) -> Option<u16> {
        let mut former = self.former.iter().rev();
        former.find(|former| packet < self.first && former.0 <= packet).map(|former| former.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Traffic;
    use crate::scenario::Scenario;
    use cwnd::Dur;

    /// A flow of 10,000 bytes in packets of 1000, later 500 and 2000 bytes, with 40 bytes of
    /// headers and a SYN.
    struct Flow {
        changes: SizeChanges,
        sizes: SegmentSize,
        total: u32,
    }

    impl Flow {
        fn new() -> Self {
            let text = "duration = \"1s\"\n[dumbbell]\nrate = \"1mbit\"\ndelay = \"1ms\"\n[[flow]]\n\
                controller = \"reno\"\nbytes = 10000\ntcp.packet = 1000\n\
                packet_changes = [{ at = \"10ms\", packet = 500 }, { at = \"20ms\", packet = 2000 }]";
            let network = Scenario::from_toml(text, "test").unwrap().network(1).unwrap();
            let Traffic::Tcp(tcp) = &*network.flows[0].traffic else { panic!("no TCP") };
            let (sizes, packets) = SegmentSize::new(tcp.bytes, tcp.packet, tcp.header);
            Flow { changes: SizeChanges::new(tcp, clock(), 1).unwrap(), sizes, total: 1 + packets }
        }

        /// Applies the changes of the first `millis` milliseconds.
        fn change(&mut self, millis: u64, next: u32) -> Option<u32> {
            let now = clock().ticks(millis * 1_000_000);
            self.changes.apply(now, next, &mut self.sizes, &mut self.total)
        }

        fn sizes<const N: usize>(&self, packets: [u32; N]) -> [u16; N] {
            packets.map(|packet| self.sizes.of(packet, self.total, Some(&self.changes)))
        }
    }

    fn clock() -> Clock {
        Clock::widest(Dur::from_millis(1000))
    }

    #[test]
    fn new_packets_have_the_new_size() {
        let mut flow = Flow::new();
        assert_eq!((flow.total, flow.sizes([3, 10])), (11, [1040, 1040]));
        assert_eq!(flow.change(9, 4), None);
        // Three packets have been sent: 7000 bytes are left.
        assert_eq!(flow.change(11, 4), Some(500));
        assert_eq!((flow.total, flow.sizes([3, 4, 17])), (18, [1040, 540, 540]));
        assert_eq!(flow.change(12, 9), None);
        // Five more: 4500 bytes are left.
        assert_eq!(flow.change(25, 9), Some(2000));
        assert_eq!(flow.total, 12);
        let sizes = flow.sizes([1, 3, 4, 8, 9, 10, 11]);
        assert_eq!(sizes, [1040, 1040, 540, 540, 2040, 2040, 540]);
    }

    #[test]
    fn of_several_changes_the_last_one_counts_and_none_after_the_end() {
        let mut skipped = Flow::new();
        assert_eq!(skipped.change(25, 1), Some(2000));
        assert_eq!((skipped.total, skipped.sizes([5])), (6, [2040]));
        let mut sent = Flow::new();
        assert_eq!(sent.change(15, 11), Some(500));
        assert_eq!(sent.change(25, 11), Some(2000));
        assert_eq!((sent.total, sent.sizes([10])), (11, [1040]));
        // A change to the present size is none, also after the end.
        let mut back = Flow::new();
        back.changes.to_come[1].1 = 1000;
        assert_eq!([15, 25].map(|millis| back.change(millis, 11)), [Some(500), Some(1000)]);
    }
}
