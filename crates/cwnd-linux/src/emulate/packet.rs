//! IPv4 packets of a TUN device: the fields that a queue reads, ECN marks, and segmentation of
//! super-packets.

use std::ops::Range;

use cwnd_sim::live::{Arrival, Ecn};

/// Bytes of the `virtio_net_hdr` before each packet.
pub(super) const VNET_HEADER: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
pub(super) const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_NONE` and `VIRTIO_NET_HDR_GSO_TCPV4`.
pub(super) const GSO_NONE: u8 = 0;
pub(super) const GSO_TCP: u8 = 1;

/// Bytes of an IPv4 or TCP header without options.
pub(super) const MIN_HEADER: usize = 20;
pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
pub(super) const TCP_CHECKSUM: usize = 16;
const FIN: u8 = 1;
const SYN: u8 = 2;
pub(super) const PSH: u8 = 8;
const CWR: u8 = 0x80;

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Folds a sum of 16-bit words into their ones' complement sum (RFC 1071).
fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let mut total = 0u32;
    let (pairs, rest) = bytes.as_chunks::<2>();
    for &pair in pairs {
        total += u32::from(u16::from_be_bytes(pair));
    }
    if let [last] = rest {
        total += u32::from(*last) << 8;
    }
    fold(total)
}

/// Writes the checksum of an IPv4 header of `ip_header` bytes.
fn put_ip_checksum(packet: &mut [u8], ip_header: usize) {
    put_u16(packet, 10, 0);
    let checksum = !ones_complement_sum(&packet[..ip_header]);
    put_u16(packet, 10, checksum);
}

/// Writes the length and the checksum of the IPv4 header of a TCP segment, and the partial checksum
/// of its TCP header: the sum of the pseudo-header.
pub(super) fn put_length_and_checksums(packet: &mut [u8], ip_header: usize) {
    let size = packet.len();
    put_u16(packet, 2, size as u16);
    put_ip_checksum(packet, ip_header);
    let pseudo = u32::from(ones_complement_sum(&packet[12..20]))
        + u32::from(TCP)
        + (size - ip_header) as u32;
    put_u16(packet, ip_header + TCP_CHECKSUM, fold(pseudo));
}

/// Returns the length of the IPv4 header; `None` if the packet is not IPv4, or truncated.
pub(super) fn header_length(packet: &[u8]) -> Option<usize> {
    if packet.len() < MIN_HEADER || packet[0] >> 4 != 4 {
        return None;
    }
    let length = 4 * usize::from(packet[0] & 15);
    let total = usize::from(u16_at(packet, 2));
    (length >= MIN_HEADER && length <= total && total <= packet.len()).then_some(length)
}

/// Returns the source and destination address of an IPv4 packet.
pub(super) fn addresses(packet: &[u8]) -> (u32, u32) {
    (u32_at(packet, 12), u32_at(packet, 16))
}

/// Returns a hash of the protocol, the addresses, and the ports of UDP and TCP. Only the first
/// fragment of a packet has ports: they are left out of all fragments.
fn flow_hash(packet: &[u8], header: usize, first: bool) -> u32 {
    let whole = first && u16_at(packet, 6) & 0x2000 == 0;
    let has_ports = whole && matches!(packet[9], TCP | UDP);
    let ports = packet.get(header..header + 4).filter(|_| has_ports).unwrap_or_default();
    // FNV-1a.
    let hash = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    packet[12..20].iter().chain(&packet[9..10]).chain(ports).fold(0x811c_9dc5, hash)
}

/// Returns the fields of an IPv4 packet that a queue reads; its IPv4 header has `header` bytes. A
/// packet is dataless if it is a TCP segment without payload, SYN and FIN.
pub(super) fn arrival(packet: &[u8], header: usize) -> Arrival {
    let size = u16_at(packet, 2);
    let first = u16_at(packet, 6) & 0x1fff == 0;
    let tcp = packet
        .get(header..usize::from(size))
        .filter(|tcp| packet[9] == TCP && first && tcp.len() >= MIN_HEADER);
    Arrival {
        size,
        ecn: match packet[1] & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        },
        flow: flow_hash(packet, header, first),
        dataless: tcp.is_some_and(|tcp| {
            tcp.len() <= 4 * usize::from(tcp[12] >> 4) && tcp[13] & (SYN | FIN) == 0
        }),
    }
}

/// Sets congestion experienced in an IPv4 header (RFC 3168), and updates the checksum (RFC 1624).
pub(super) fn mark(packet: &mut [u8]) {
    let old = u16_at(packet, 0);
    let new = old | 3;
    put_u16(packet, 0, new);
    let checksum = u32::from(!u16_at(packet, 10)) + u32::from(!old) + u32::from(new);
    put_u16(packet, 10, !fold(checksum));
}

/// Splits a read from a TUN device into packets of the link (GSO), and passes each, with a
/// `virtio_net_hdr` and the length of its IPv4 header, to `emit`. `scratch` holds one packet. Reads
/// that are not IPv4 are discarded.
pub(super) fn segment(
    read: &mut [u8],
    scratch: &mut Vec<u8>,
    mut emit: impl FnMut(&mut [u8], usize),
) {
    let Some((prefix, packet)) = read.split_at_mut_checked(VNET_HEADER) else { return };
    let Some(ip_header) = header_length(packet) else { return };
    let host_u16 = |at: usize| u16::from_ne_bytes([prefix[at], prefix[at + 1]]);
    let (gso_type, segment_size) = (prefix[1], usize::from(host_u16(4)));
    if gso_type == GSO_NONE {
        // A partial checksum remains partial: the kernel knows that the packet has not left this
        // machine.
        prefix[1..6].fill(0);
        emit(read, ip_header);
    } else if gso_type & 0x7f == GSO_TCP && segment_size > 0 {
        segment_tcp(packet, ip_header, segment_size, scratch, &mut emit);
    }
}

fn segment_tcp(
    packet: &[u8],
    ip_header: usize,
    segment_size: usize,
    scratch: &mut Vec<u8>,
    emit: &mut impl FnMut(&mut [u8], usize),
) {
    let Some(tcp) = packet.get(ip_header..).filter(|tcp| tcp.len() >= MIN_HEADER) else { return };
    let headers = ip_header + 4 * usize::from(tcp[12] >> 4);
    let total = usize::from(u16_at(packet, 2));
    if headers < ip_header + MIN_HEADER || headers > total {
        return;
    }
    let sequence = u32_at(tcp, 4);
    let identification = u16_at(packet, 4);
    let mut from = headers;
    let mut number = 0u16;
    while from < total {
        let payload: Range<usize> = from..total.min(from + segment_size);
        scratch.clear();
        scratch.extend([NEEDS_CHECKSUM, GSO_NONE, 0, 0, 0, 0]);
        scratch.extend((ip_header as u16).to_ne_bytes());
        scratch.extend((TCP_CHECKSUM as u16).to_ne_bytes());
        scratch.extend(&packet[..headers]);
        scratch.extend(&packet[payload.clone()]);
        let segment = &mut scratch[VNET_HEADER..];
        put_u16(segment, 4, identification.wrapping_add(number));
        let segment_sequence = sequence.wrapping_add((from - headers) as u32);
        segment[ip_header + 4..ip_header + 8].copy_from_slice(&segment_sequence.to_be_bytes());
        if payload.end < total {
            segment[ip_header + 13] &= !(FIN | PSH);
        }
        if number > 0 {
            segment[ip_header + 13] &= !CWR;
        }
        put_length_and_checksums(segment, ip_header);
        emit(scratch, ip_header);
        from = payload.end;
        number = number.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::gro::Coalescer;

    /// What a device returns for `data` bytes of a stream: a super-packet if there are several
    /// segments.
    fn device_read(data: usize, segment: usize, flags: u8, options: usize) -> Vec<u8> {
        let kind = if data > segment { GSO_TCP } else { GSO_NONE };
        let size = if data > segment { segment as u16 } else { 0 };
        let mut bytes = vec![NEEDS_CHECKSUM, kind, 0, 0];
        bytes.extend(size.to_ne_bytes());
        bytes.extend([20u16, TCP_CHECKSUM as u16].into_iter().flat_map(u16::to_ne_bytes));
        let ip = bytes.len();
        bytes.extend([0x45, 2, 0, 0, 0xff, 0xff, 0x40, 0, 64, TCP, 0, 0]);
        bytes.extend([198, 18, 0, 2, 198, 18, 0, 1]);
        bytes.extend([0x80, 0, 0x13, 0x89, 0xff, 0xff, 0xff, 0, 1, 2, 3, 4]);
        bytes.extend([(5 + options as u8 / 4) << 4, flags, 9, 9, 0, 0, 0, 0]);
        bytes.extend((0..options).map(|at| at as u8));
        bytes.extend((0..data).map(|at| (at * at % 251) as u8));
        put_length_and_checksums(&mut bytes[ip..], 20);
        bytes
    }

    fn segments(mut bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        segment(&mut bytes, &mut Vec::new(), |packet, header| {
            assert_eq!(header, 20);
            packets.push(packet.to_vec());
        });
        packets
    }

    /// Completes the checksum as a network card does, and verifies it as a receiver does.
    fn has_valid_checksums(bytes: &[u8]) -> bool {
        let mut packet = bytes[VNET_HEADER..].to_vec();
        let length = packet.len() - 20;
        let checksum = !ones_complement_sum(&packet[20..]);
        put_u16(&mut packet, 36, checksum);
        let pseudo =
            u32::from(ones_complement_sum(&packet[12..20])) + u32::from(TCP) + length as u32;
        let total = fold(pseudo + u32::from(ones_complement_sum(&packet[20..])));
        total == 0xffff
            && ones_complement_sum(&packet[..20]) == 0xffff
            && header_length(&packet) == Some(20)
    }

    #[test]
    fn super_packets_are_segmented() {
        for (data, options) in [(4000, 12), (2896, 12), (1449, 0), (64_000, 12)] {
            let flags = CWR | 0x10 | PSH | FIN;
            let whole = device_read(data, 1448, flags, options);
            let packets = segments(whole.clone());
            assert_eq!(packets.len(), data.div_ceil(1448));
            let headers = VNET_HEADER + 40 + options;
            let joined: Vec<u8> = packets.iter().flat_map(|p| p[headers..].to_vec()).collect();
            assert_eq!(joined, whole[headers..]);
            let last = packets.len() - 1;
            for (number, packet) in packets.iter().enumerate() {
                assert!(has_valid_checksums(packet));
                let ip = &packet[VNET_HEADER..];
                assert_eq!(u32_at(ip, 24), 0xffff_ff00u32.wrapping_add(1448 * number as u32));
                assert_eq!(u16_at(ip, 4), 0xffffu16.wrapping_add(number as u16));
                assert_eq!(ip[33] & (FIN | PSH) != 0, number == last);
                assert_eq!(ip[33] & CWR != 0, number == 0);
            }
        }
    }

    #[test]
    fn other_packets_are_unchanged() {
        let whole = device_read(1448, 1448, 0x10, 12);
        assert_eq!(segments(whole.clone()), [whole]);
        // IPv6, a header that is too long, and too few bytes.
        for (at, byte) in [(VNET_HEADER, 0x60), (VNET_HEADER, 0x4f), (VNET_HEADER + 2, 0xff)] {
            let mut bytes = device_read(10, 1448, 0x10, 0);
            bytes[at] = byte;
            if byte != 0x4f {
                assert!(segments(bytes).is_empty());
            }
        }
        for length in 0..50 {
            let mut bytes = device_read(3000, 1448, 0x10, 12);
            bytes.truncate(length);
            assert!(segments(bytes).is_empty());
        }
        let mut bytes = device_read(3000, 1448, 0x10, 12);
        bytes[4..6].fill(0);
        assert!(segments(bytes).is_empty());
    }

    #[test]
    fn marks_update_the_checksum() {
        for tos in 0..=255 {
            let mut bytes = device_read(100, 1448, 0x10, 0);
            let packet = &mut bytes[VNET_HEADER..];
            packet[1] = tos;
            put_ip_checksum(packet, 20);
            let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(tos & 3)];
            assert_eq!(arrival(packet, 20).ecn, ecn);
            mark(packet);
            assert_eq!(packet[1], tos | 3);
            assert_eq!(ones_complement_sum(&packet[..20]), 0xffff);
        }
    }

    #[test]
    fn flows_are_identified_by_protocol_addresses_and_ports() {
        let packet = device_read(100, 1448, 0x10, 0)[VNET_HEADER..].to_vec();
        let changed = |at: usize| {
            let mut packet = packet.clone();
            packet[at] ^= 1;
            arrival(&packet, 20).flow
        };
        let flow = arrival(&packet, 20).flow;
        // ECN, identification and sequence number do not matter.
        assert!([1, 5, 27].into_iter().all(|at| changed(at) == flow));
        assert!([9, 12, 19, 20, 23].into_iter().all(|at| changed(at) != flow));
        // Fragments of a datagram have the same hash, with and without ports.
        let mut fragment = packet.clone();
        fragment[6] = 0x20;
        let first = arrival(&fragment, 20).flow;
        fragment[6..8].copy_from_slice(&[0, 9]);
        fragment[20] ^= 0xff;
        assert_eq!(arrival(&fragment, 20).flow, first);
    }

    #[test]
    fn acknowledgements_are_dataless() {
        let dataless =
            |data, flags| arrival(&device_read(data, 1448, flags, 12)[VNET_HEADER..], 20).dataless;
        assert!(dataless(0, 0x10));
        assert!(!dataless(1, 0x10));
        assert!(!dataless(0, SYN));
        assert!(!dataless(0, 0x10 | FIN));
    }

    #[test]
    fn coalescing_restores_the_super_packet() {
        let whole = device_read(5000, 1448, 0x10, 12);
        let packets = segments(whole.clone());
        let mut coalescer = Coalescer::default();
        for packet in &packets {
            assert!(coalescer.add(packet, 20));
        }
        // A short segment is the last one.
        assert!(!coalescer.add(&packets[0], 20));
        let segment = coalescer.take().to_vec();
        // A device may omit the length of the headers; the coalescer writes it.
        assert_eq!(segment[VNET_HEADER..], whole[VNET_HEADER..]);
        assert_eq!(
            (&segment[..2], &segment[4..VNET_HEADER]),
            (&whole[..2], &whole[4..VNET_HEADER])
        );
        assert!(has_valid_checksums(&segment));
        assert!(coalescer.is_empty());
        // A single packet is unchanged.
        assert!(coalescer.add(&packets[1], 20));
        assert_eq!(coalescer.take(), packets[1]);
    }

    #[test]
    fn packets_with_other_headers_are_not_coalesced() {
        let packets = segments(device_read(5000, 1448, 0x10, 12));
        let is_added = |change: &dyn Fn(&mut [u8])| {
            let mut coalescer = Coalescer::default();
            assert!(coalescer.add(&packets[0], 20));
            let mut next = packets[1].clone();
            change(&mut next[VNET_HEADER..]);
            coalescer.add(&next, 20)
        };
        assert!(is_added(&|_| {}));
        // A mark, another acknowledgement number, window, option, flag or sequence number.
        assert!(!is_added(&|packet| mark(packet)));
        for at in [8, 12, 19, 20, 23, 27, 28, 34, 33, 40, 51] {
            assert!(!is_added(&|packet| packet[at] ^= 0x41), "{at}");
        }
        let mut coalescer = Coalescer::default();
        assert!(coalescer.add(&packets[0], 20));
        assert!(!coalescer.add(&packets[2], 20));
    }
}
