//! IPv4 packets as a TUN device gives them: what a queue must know of them, marks, and super-packets
//! cut into those that would be on the wire.

use std::ops::Range;

use cwnd_sim::queue::Arrival;

/// Bytes of the `virtio_net_hdr` before each packet.
pub(super) const PREFIX: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
pub(super) const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_NONE` and `VIRTIO_NET_HDR_GSO_TCPV4`.
pub(super) const GSO_NONE: u8 = 0;
pub(super) const GSO_TCP: u8 = 1;

/// Bytes of an IPv4 or TCP header without options.
pub(super) const SHORTEST: usize = 20;
pub(super) const TCP: u8 = 6;
pub(super) const TCP_CHECKSUM: usize = 16;
const FIN: u8 = 1;
const SYN: u8 = 2;
pub(super) const PUSH: u8 = 8;
const CONGESTION_REDUCED: u8 = 0x80;

pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of 16-bit words in ones' complement (RFC 1071).
pub(super) fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

pub(super) fn sum(bytes: &[u8]) -> u16 {
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

/// The length of an IPv4 header, if that is what the bytes are: whole, and no longer than they.
pub(super) fn header(packet: &[u8]) -> Option<usize> {
    if packet.len() < SHORTEST || packet[0] >> 4 != 4 {
        return None;
    }
    let length = 4 * usize::from(packet[0] & 15);
    let total = usize::from(word(packet, 2));
    (length >= SHORTEST && length <= total && total <= packet.len()).then_some(length)
}

/// Source and destination of an IPv4 packet.
pub(super) fn ends(packet: &[u8]) -> (u32, u32) {
    let address = |at: usize| u32::from(word(packet, at)) << 16 | u32::from(word(packet, at + 2));
    (address(12), address(16))
}

/// What a queue must know of an IPv4 packet with a header of so many bytes. Packets without data are
/// TCP's that carry neither payload nor SYN nor FIN.
pub(super) fn arrival(packet: &[u8], header: usize) -> Arrival {
    let size = word(packet, 2);
    let first = word(packet, 6) & 0x1fff == 0;
    let tcp = packet
        .get(header..usize::from(size))
        .filter(|tcp| packet[9] == TCP && first && tcp.len() >= SHORTEST);
    Arrival {
        size,
        capable: packet[1] & 3 != 0,
        dataless: tcp.is_some_and(|tcp| {
            tcp.len() <= 4 * usize::from(tcp[12] >> 4) && tcp[13] & (SYN | FIN) == 0
        }),
    }
}

/// Marks an IPv4 packet: congestion experienced (RFC 3168), with its checksum as RFC 1624 has it.
pub(super) fn mark(packet: &mut [u8]) {
    let before = word(packet, 0);
    let after = before | 3;
    put(packet, 0, after);
    let checksum = u32::from(!word(packet, 10)) + u32::from(!before) + u32::from(after);
    put(packet, 10, !fold(checksum));
}

/// Shows one after the other the packets that a read from a TUN device stands for, each with a
/// prefix for the device at the other end and made in `scratch`. What is no IPv4 is not shown.
pub(super) fn split(
    read: &mut [u8],
    scratch: &mut Vec<u8>,
    mut show: impl FnMut(&mut [u8], usize),
) {
    let Some((prefix, packet)) = read.split_at_mut_checked(PREFIX) else { return };
    let Some(length) = header(packet) else { return };
    let host = |at: usize| u16::from_ne_bytes([prefix[at], prefix[at + 1]]);
    let (kind, segment) = (prefix[1], usize::from(host(4)));
    if kind == GSO_NONE {
        // A checksum that is left open stays so: the other end knows it never left this machine.
        prefix[1..6].fill(0);
        show(read, length);
    } else if kind & 0x7f == GSO_TCP && segment > 0 {
        split_tcp(packet, length, segment, scratch, &mut show);
    }
}

fn split_tcp(
    packet: &[u8],
    length: usize,
    segment: usize,
    scratch: &mut Vec<u8>,
    show: &mut impl FnMut(&mut [u8], usize),
) {
    let Some(tcp) = packet.get(length..).filter(|tcp| tcp.len() >= SHORTEST) else { return };
    let headers = length + 4 * usize::from(tcp[12] >> 4);
    let total = usize::from(word(packet, 2));
    if headers < length + SHORTEST || headers > total {
        return;
    }
    let sequence = u32::from(word(tcp, 4)) << 16 | u32::from(word(tcp, 6));
    let identification = word(packet, 4);
    let mut from = headers;
    let mut number = 0u16;
    while from < total {
        let piece: Range<usize> = from..total.min(from + segment);
        let size = headers + piece.len();
        scratch.clear();
        scratch.extend([NEEDS_CHECKSUM, GSO_NONE, 0, 0, 0, 0]);
        scratch.extend((length as u16).to_ne_bytes());
        scratch.extend((TCP_CHECKSUM as u16).to_ne_bytes());
        scratch.extend(&packet[..headers]);
        scratch.extend(&packet[piece.clone()]);
        let made = &mut scratch[PREFIX..];
        put(made, 2, size as u16);
        put(made, 4, identification.wrapping_add(number));
        put(made, 10, 0);
        let checksum = !sum(&made[..length]);
        put(made, 10, checksum);
        let ahead = sequence.wrapping_add((from - headers) as u32);
        put(made, length + 4, (ahead >> 16) as u16);
        put(made, length + 6, ahead as u16);
        if piece.end < total {
            made[length + 13] &= !(FIN | PUSH);
        }
        if number > 0 {
            made[length + 13] &= !CONGESTION_REDUCED;
        }
        // Open: the sum of the pseudo-header, for the rest to be added.
        let pseudo = u32::from(sum(&made[12..20])) + u32::from(TCP) + (size - length) as u32;
        put(made, length + TCP_CHECKSUM, fold(pseudo));
        show(scratch, length);
        from = piece.end;
        number = number.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::bundle::Bundle;

    /// What a device gives for `data` bytes of a stream: a super-packet when it has segments.
    fn read(data: usize, segment: usize, flags: u8, options: usize) -> Vec<u8> {
        let headers = 40 + options;
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
        let packet = &mut bytes[ip..];
        put(packet, 2, (headers + data) as u16);
        let checksum = !sum(&packet[..20]);
        put(packet, 10, checksum);
        let pseudo =
            u32::from(sum(&packet[12..20])) + u32::from(TCP) + (headers - 20 + data) as u32;
        put(packet, 36, fold(pseudo));
        bytes
    }

    fn shown(mut bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        split(&mut bytes, &mut Vec::new(), |packet, header| {
            assert_eq!(header, 20);
            packets.push(packet.to_vec());
        });
        packets
    }

    /// Closes the checksum as a network card does, and checks it as a receiver does.
    fn is_whole(bytes: &[u8]) -> bool {
        let mut packet = bytes[PREFIX..].to_vec();
        let length = packet.len() - 20;
        let checksum = !sum(&packet[20..]);
        put(&mut packet, 36, checksum);
        let pseudo = u32::from(sum(&packet[12..20])) + u32::from(TCP) + length as u32;
        let total = fold(pseudo + u32::from(sum(&packet[20..])));
        total == 0xffff && sum(&packet[..20]) == 0xffff && header(&packet) == Some(20)
    }

    #[test]
    fn super_packets_are_cut_into_those_of_the_wire() {
        for (data, options) in [(4000, 12), (2896, 12), (1449, 0), (64_000, 12)] {
            let flags = CONGESTION_REDUCED | 0x10 | PUSH | FIN;
            let whole = read(data, 1448, flags, options);
            let packets = shown(whole.clone());
            assert_eq!(packets.len(), data.div_ceil(1448));
            let headers = PREFIX + 40 + options;
            let joined: Vec<u8> = packets.iter().flat_map(|p| p[headers..].to_vec()).collect();
            assert_eq!(joined, whole[headers..]);
            let last = packets.len() - 1;
            for (number, packet) in packets.iter().enumerate() {
                assert!(is_whole(packet));
                let ip = &packet[PREFIX..];
                let sequence = u32::from_be_bytes([ip[24], ip[25], ip[26], ip[27]]);
                assert_eq!(sequence, 0xffff_ff00u32.wrapping_add(1448 * number as u32));
                assert_eq!(word(ip, 4), 0xffffu16.wrapping_add(number as u16));
                assert_eq!(ip[33] & (FIN | PUSH) != 0, number == last);
                assert_eq!(ip[33] & CONGESTION_REDUCED != 0, number == 0);
            }
        }
    }

    #[test]
    fn other_packets_stay_as_they_are() {
        let whole = read(1448, 1448, 0x10, 12);
        assert_eq!(shown(whole.clone()), [whole]);
        // IPv6, a header that is too long, and too few bytes.
        for (at, byte) in [(PREFIX, 0x60), (PREFIX, 0x4f), (PREFIX + 2, 0xff)] {
            let mut bytes = read(10, 1448, 0x10, 0);
            bytes[at] = byte;
            if byte != 0x4f {
                assert!(shown(bytes).is_empty());
            }
        }
        for length in 0..50 {
            let mut bytes = read(3000, 1448, 0x10, 12);
            bytes.truncate(length);
            assert!(shown(bytes).is_empty());
        }
        let mut bytes = read(3000, 1448, 0x10, 12);
        bytes[4..6].fill(0);
        assert!(shown(bytes).is_empty());
    }

    #[test]
    fn marks_keep_the_checksum() {
        for tos in 0..=255 {
            let mut bytes = read(100, 1448, 0x10, 0);
            let packet = &mut bytes[PREFIX..];
            packet[1] = tos;
            put(packet, 10, 0);
            let checksum = !sum(&packet[..20]);
            put(packet, 10, checksum);
            assert_eq!(arrival(packet, 20).capable, tos & 3 != 0);
            mark(packet);
            assert_eq!(packet[1], tos | 3);
            assert_eq!(sum(&packet[..20]), 0xffff);
        }
    }

    #[test]
    fn acknowledgements_carry_no_data() {
        let dataless = |data, flags| arrival(&read(data, 1448, flags, 12)[PREFIX..], 20).dataless;
        assert!(dataless(0, 0x10));
        assert!(!dataless(1, 0x10));
        assert!(!dataless(0, SYN));
        assert!(!dataless(0, 0x10 | FIN));
    }

    #[test]
    fn bundles_are_super_packets_again() {
        let whole = read(5000, 1448, 0x10, 12);
        let packets = shown(whole.clone());
        let mut bundle = Bundle::default();
        for packet in &packets {
            assert!(bundle.add(packet, 20));
        }
        // A short packet is the last.
        assert!(!bundle.add(&packets[0], 20));
        let made = bundle.take().to_vec();
        // The length of the headers, which a device may leave out, stands in a bundle.
        assert_eq!(made[PREFIX..], whole[PREFIX..]);
        assert_eq!((&made[..2], &made[4..PREFIX]), (&whole[..2], &whole[4..PREFIX]));
        assert!(is_whole(&made));
        assert!(bundle.is_empty());
        // Alone it stays what it was.
        assert!(bundle.add(&packets[1], 20));
        assert_eq!(bundle.take(), packets[1]);
    }

    #[test]
    fn what_differs_is_not_bundled() {
        let packets = shown(read(5000, 1448, 0x10, 12));
        let alone = |change: &dyn Fn(&mut [u8])| {
            let mut bundle = Bundle::default();
            assert!(bundle.add(&packets[0], 20));
            let mut next = packets[1].clone();
            change(&mut next[PREFIX..]);
            bundle.add(&next, 20)
        };
        assert!(alone(&|_| {}));
        // A mark, another acknowledgement, another window, other options, flags and places.
        assert!(!alone(&|packet| mark(packet)));
        for at in [8, 12, 19, 20, 23, 27, 28, 34, 33, 40, 51] {
            assert!(!alone(&|packet| packet[at] ^= 0x41), "{at}");
        }
        let mut bundle = Bundle::default();
        assert!(bundle.add(&packets[0], 20));
        assert!(!bundle.add(&packets[2], 20));
    }
}
