//! Stateless resets: the answer to a datagram for an unknown connection, as in RFC 9000 section
//! 10.3.
//!
//! A reset is a user-defined control packet that echoes the header of the datagram. The sender of
//! that header ends its connection at once instead of after a timeout. The header authenticates the
//! reset: only hosts on the path see it.
//!
//! A reset has 20 bytes, the length of UDT4's shortest control packet. It carries word 0 of the
//! echoed header as the additional information, word 1 as the timestamp, word 3 as the socket id,
//! and word 2 as the first word of information.

use crate::packet::{HEADER, word};

/// The subtype of this user-defined control packet.
pub const RESET: u16 = 0x4358;
/// The length of a reset in bytes.
pub const LENGTH: usize = HEADER + 4;

/// The first word of a reset.
const FIRST: [u8; 4] = {
    let [high, low] = RESET.to_be_bytes();
    [0xff, 0xff, high, low]
};
/// The types of control packets that are not answered: a handshake precedes the connection, and the
/// sender of a shutdown has ended its connection.
const UNANSWERED: [u8; 2] = [0, 5];

/// Whether a datagram for the unknown socket `id` is answered with a reset. A listener assigns odd
/// ids to clients of this crate and even ids to all others, so that UDT4 receives no resets.
pub fn is_answered(id: u32) -> bool {
    id % 2 == 1
}

/// Encodes the reset that answers `datagram`. `None` if the datagram is shorter than a reset; is a
/// reset, handshake or shutdown; or is for an id that is not [answered](is_answered).
pub fn answer(datagram: &[u8]) -> Option<[u8; LENGTH]> {
    if datagram.len() < LENGTH {
        return None;
    }
    let (header, _) = datagram.split_first_chunk::<HEADER>()?;
    let id = word(header, 12);
    let control = header[0] & 0x80 != 0;
    let unanswered =
        control && (header[..4] == FIRST || header[0] == 0x80 && UNANSWERED.contains(&header[1]));
    if unanswered || !is_answered(id) {
        return None;
    }
    let mut reset = [0; LENGTH];
    reset[..4].copy_from_slice(&FIRST);
    reset[4..12].copy_from_slice(&header[..8]);
    reset[12..16].copy_from_slice(&header[12..]);
    reset[16..].copy_from_slice(&header[8..12]);
    Some(reset)
}

/// The header that a reset echoes; `None` if `datagram` is not a reset.
pub fn parse(datagram: &[u8]) -> Option<[u8; HEADER]> {
    if datagram.len() != LENGTH || datagram[..4] != FIRST {
        return None;
    }
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&datagram[4..12]);
    header[8..12].copy_from_slice(&datagram[16..]);
    header[12..].copy_from_slice(&datagram[12..16]);
    Some(header)
}

/// The headers of the last control packets sent, against which resets are checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentHeaders {
    headers: [[u8; HEADER]; RecentHeaders::CAPACITY],
    next: usize,
}

impl RecentHeaders {
    /// Few are enough: a peer that has lost the connection sends no packets that require control
    /// packets in return.
    const CAPACITY: usize = 8;

    #[inline]
    pub(crate) fn add(&mut self, datagram: &[u8]) {
        if let Some(header) = datagram.first_chunk() {
            self.headers[self.next] = *header;
            self.next = (self.next + 1) % Self::CAPACITY;
        }
    }

    pub(crate) fn contains(&self, header: &[u8; HEADER]) -> bool {
        self.headers.contains(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Control, Packet};
    use crate::seq::AckNo;
    use proptest::prelude::*;

    #[test]
    fn only_packets_of_a_connection_with_an_odd_id_are_answered() {
        let datagram = |control: Control, id: u32| {
            let mut bytes = [0; 100];
            let length = control.encode(9, id, &mut bytes);
            bytes[..length].to_vec()
        };
        let alive = datagram(Control::KeepAlive, 7);
        let reset = answer(&alive).unwrap();
        assert!(reset.len() <= alive.len());
        assert_eq!(parse(&reset).unwrap()[..], alive[..HEADER]);
        assert!(answer(&datagram(Control::Ack2(AckNo::new(3)), 7)).is_some());
        for unanswered in [
            datagram(Control::KeepAlive, 8),
            datagram(Control::Shutdown, 7),
            alive[..HEADER + 3].to_vec(),
            reset.to_vec(),
        ] {
            assert_eq!(answer(&unanswered), None, "{unanswered:?}");
        }
        // For UDT4 a reset is a user-defined control packet.
        assert!(Packet::parse(&reset).is_ok());
    }

    proptest! {
        #[test]
        fn a_reset_echoes_the_header_and_is_not_longer_than_the_datagram(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            match answer(&bytes) {
                None => prop_assert!(parse(&bytes).is_some() || bytes.len() < LENGTH
                    || bytes[15] % 2 == 0 || matches!(bytes[..2], [0x80, 0 | 5])),
                Some(reset) => {
                    prop_assert!(reset.len() <= bytes.len());
                    prop_assert_eq!(&parse(&reset).unwrap()[..], &bytes[..HEADER]);
                    prop_assert_eq!(answer(&reset), None, "no reset answers a reset");
                }
            }
        }
    }
}
