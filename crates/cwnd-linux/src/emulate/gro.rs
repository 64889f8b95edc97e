//! Receive offload: coalesces TCP segments that are due at the same time into one super-packet, as
//! a network card does (GRO). One write per super-packet costs less than one per packet.

use super::packet::{
    GSO_NONE, GSO_TCP, MIN_HEADER, NEEDS_CHECKSUM, PSH, TCP, TCP_CHECKSUM, VNET_HEADER,
    put_length_and_checksums, u16_at, u32_at,
};

/// Maximum number of segments in a super-packet. Linux acknowledges a stream of full segments no
/// more often anyway.
const MAX_SEGMENTS: usize = 16;
/// Only segments without other flags are coalesced.
const ACK: u8 = 0x10;
const EXCLUDED_FLAGS: u8 = !(ACK | PSH);

/// Segments for one end of the network.
#[derive(Default)]
pub(super) struct Coalescer {
    bytes: Vec<u8>,
    segments: usize,
    /// Length of the IPv4 header.
    ip_header: usize,
    /// Length of the IPv4 and TCP headers.
    headers: usize,
    /// Payload bytes of each segment; the last may have fewer.
    segment_size: usize,
    /// Whether another segment can be added.
    open: bool,
}

impl Coalescer {
    pub(super) fn is_empty(&self) -> bool {
        self.segments == 0
    }

    /// Adds a packet with its `virtio_net_hdr` and an IPv4 header of `ip_header` bytes. Returns
    /// false if the packet does not continue the segments: it must be written after them.
    pub(super) fn add(&mut self, packet: &[u8], ip_header: usize) -> bool {
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.extend_from_slice(packet);
            self.segments = 1;
            self.ip_header = ip_header;
            let headers = headers_length(packet, ip_header);
            self.headers = headers.unwrap_or(0);
            self.segment_size = headers.map_or(0, |headers| packet.len() - VNET_HEADER - headers);
            self.open = self.segment_size > 0 && packet[VNET_HEADER + ip_header + 13] & PSH == 0;
            return true;
        }
        if !self.continues(packet, ip_header) {
            return false;
        }
        let (_, data) = packet.split_at(VNET_HEADER + self.headers);
        self.bytes.extend_from_slice(data);
        self.segments += 1;
        let flags = packet[VNET_HEADER + ip_header + 13];
        self.bytes[VNET_HEADER + ip_header + 13] = flags;
        self.open =
            data.len() == self.segment_size && flags & PSH == 0 && self.segments < MAX_SEGMENTS;
        true
    }

    /// Whether a packet is the next segment of the same stream, with the same headers except for
    /// lengths, checksums, the identification, the sequence number and PSH.
    fn continues(&self, packet: &[u8], ip_header: usize) -> bool {
        if !self.open
            || headers_length(packet, ip_header) != Some(self.headers)
            || ip_header != self.ip_header
        {
            return false;
        }
        let (first, next) = (&self.bytes[VNET_HEADER..], &packet[VNET_HEADER..]);
        let same = |from: usize, to: usize| first[from..to] == next[from..to];
        let sequence = |of: &[u8]| u32_at(of, ip_header + 4);
        let coalesced_bytes = (first.len() - self.headers) as u32;
        let data = next.len() - self.headers;
        let tcp = ip_header + MIN_HEADER;
        data <= self.segment_size
            && sequence(next) == sequence(first).wrapping_add(coalesced_bytes)
            && same(0, 2)
            && same(6, 10)
            && same(12, ip_header + 4)
            && same(ip_header + 8, ip_header + 13)
            && same(ip_header + 14, ip_header + TCP_CHECKSUM)
            && same(ip_header + 18, tcp)
            && same(tcp, self.headers)
    }

    /// Returns the bytes to write, and removes all segments.
    pub(super) fn take(&mut self) -> &[u8] {
        if self.segments > 1 {
            let (prefix, packet) = self.bytes.split_at_mut(VNET_HEADER);
            prefix[0] = NEEDS_CHECKSUM;
            prefix[1] = GSO_TCP;
            prefix[2..4].copy_from_slice(&(self.headers as u16).to_ne_bytes());
            prefix[4..6].copy_from_slice(&(self.segment_size as u16).to_ne_bytes());
            put_length_and_checksums(packet, self.ip_header);
        }
        self.segments = 0;
        &self.bytes
    }
}

/// Returns the length of the IPv4 and TCP headers of a packet that can be coalesced: TCP with data,
/// no fragment, no flags but ACK and PSH, and a partial checksum.
fn headers_length(bytes: &[u8], ip_header: usize) -> Option<usize> {
    let packet = &bytes[VNET_HEADER..];
    let partial_checksum = bytes[0] & NEEDS_CHECKSUM != 0 && bytes[1] == GSO_NONE;
    let fragment = u16_at(packet, 6) & 0x3fff != 0;
    if !partial_checksum || fragment || packet[9] != TCP || packet.len() < ip_header + MIN_HEADER {
        return None;
    }
    let headers = ip_header + 4 * usize::from(packet[ip_header + 12] >> 4);
    let allowed = packet[ip_header + 13] & EXCLUDED_FLAGS == 0;
    (allowed && headers >= ip_header + MIN_HEADER && headers < packet.len()).then_some(headers)
}
