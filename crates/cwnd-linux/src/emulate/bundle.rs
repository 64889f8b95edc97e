//! Packets that are written together: what a late tool, or a fast link, has to release at once. To
//! the kernel it is what a network card's receive offload makes of them, and costs as little.

use super::packet::{
    GSO_NONE, GSO_TCP, NEEDS_CHECKSUM, PREFIX, PUSH, SHORTEST, TCP, TCP_CHECKSUM, fold, put, sum,
    word,
};

/// Packets in a bundle: as many as Linux waits for before it acknowledges a full stream anyway.
const MOST: usize = 16;
/// The flags of a segment of a stream that has nothing to say besides.
const ACK: u8 = 0x10;
const REFUSED: u8 = !(ACK | PUSH);

/// Packets that go to one end of the network, as one.
#[derive(Default)]
pub(super) struct Bundle {
    bytes: Vec<u8>,
    count: usize,
    /// Length of the IPv4 header, and of all headers.
    ip: usize,
    headers: usize,
    /// Payload of each packet but the last, which may have less.
    segment: usize,
    /// Whether another packet can be added.
    open: bool,
}

impl Bundle {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a packet with its prefix and an IPv4 header of so many bytes. False if it must be written
    /// after the others and apart from them.
    pub(super) fn add(&mut self, packet: &[u8], ip: usize) -> bool {
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.extend_from_slice(packet);
            self.count = 1;
            self.ip = ip;
            let payload = payload(packet, ip);
            self.headers = payload.unwrap_or(0);
            self.segment = payload.map_or(0, |headers| packet.len() - PREFIX - headers);
            self.open = self.segment > 0 && packet[PREFIX + ip + 13] & PUSH == 0;
            return true;
        }
        if !self.continues(packet, ip) {
            return false;
        }
        let (_, data) = packet.split_at(PREFIX + self.headers);
        self.bytes.extend_from_slice(data);
        self.count += 1;
        let flags = packet[PREFIX + ip + 13];
        self.bytes[PREFIX + ip + 13] = flags;
        self.open = data.len() == self.segment && flags & PUSH == 0 && self.count < MOST;
        true
    }

    /// Whether a packet is the next of the same stream, and the same in all that is not its place.
    fn continues(&self, packet: &[u8], ip: usize) -> bool {
        if !self.open || payload(packet, ip) != Some(self.headers) || ip != self.ip {
            return false;
        }
        let (first, next) = (&self.bytes[PREFIX..], &packet[PREFIX..]);
        let same = |from: usize, to: usize| first[from..to] == next[from..to];
        let number = |of: &[u8]| u32::from(word(of, ip + 4)) << 16 | u32::from(word(of, ip + 6));
        let carried = (first.len() - self.headers) as u32;
        let data = next.len() - self.headers;
        let tcp = ip + SHORTEST;
        data <= self.segment
            && number(next) == number(first).wrapping_add(carried)
            && same(0, 2)
            && same(6, 10)
            && same(12, ip + 4)
            && same(ip + 8, ip + 13)
            && same(ip + 14, ip + TCP_CHECKSUM)
            && same(ip + 18, tcp)
            && same(tcp, self.headers)
    }

    /// What is to be written, of which nothing is kept.
    pub(super) fn take(&mut self) -> &[u8] {
        if self.count > 1 {
            let (prefix, packet) = self.bytes.split_at_mut(PREFIX);
            let (ip, size) = (self.ip, packet.len());
            prefix[0] = NEEDS_CHECKSUM;
            prefix[1] = GSO_TCP;
            prefix[2..4].copy_from_slice(&(self.headers as u16).to_ne_bytes());
            prefix[4..6].copy_from_slice(&(self.segment as u16).to_ne_bytes());
            put(packet, 2, size as u16);
            put(packet, 10, 0);
            let checksum = !sum(&packet[..ip]);
            put(packet, 10, checksum);
            let pseudo = u32::from(sum(&packet[12..20])) + u32::from(TCP) + (size - ip) as u32;
            put(packet, ip + TCP_CHECKSUM, fold(pseudo));
        }
        self.count = 0;
        &self.bytes
    }
}

/// The length of all headers of a packet that others can be joined to: TCP with data and nothing
/// special, its checksum left open.
fn payload(bytes: &[u8], ip: usize) -> Option<usize> {
    let packet = &bytes[PREFIX..];
    let open = bytes[0] & NEEDS_CHECKSUM != 0 && bytes[1] == GSO_NONE;
    let fragment = word(packet, 6) & 0x3fff != 0;
    if !open || fragment || packet[9] != TCP || packet.len() < ip + SHORTEST {
        return None;
    }
    let headers = ip + 4 * usize::from(packet[ip + 12] >> 4);
    let plain = packet[ip + 13] & REFUSED == 0;
    (plain && headers >= ip + SHORTEST && headers < packet.len()).then_some(headers)
}
