//! IPv4 packets as a TUN device gives them: what a queue must know of them, marks, and super-packets
//! cut into those that would be on the wire.

use std::ops::Range;

use cwnd_sim::queue::Arrival;

/// Bytes of the `virtio_net_hdr` before each packet.
pub(super) const PREFIX: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_NONE` and `VIRTIO_NET_HDR_GSO_TCPV4`.
const GSO_NONE: u8 = 0;
const GSO_TCP: u8 = 1;

const SHORTEST: usize = 20;
const TCP: u8 = 6;
const TCP_CHECKSUM: usize = 16;
const FIN: u8 = 1;
const SYN: u8 = 2;
const PUSH: u8 = 8;
const CONGESTION_REDUCED: u8 = 0x80;

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of 16-bit words in ones' complement (RFC 1071).
fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn sum(bytes: &[u8]) -> u16 {
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
