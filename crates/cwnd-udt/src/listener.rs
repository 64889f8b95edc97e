//! The accepting side before a connection exists. It keeps no state of clients: a cookie that only the owner of the
//! client's address can return takes its place (RFC 4987 section 3.6).

use crate::cast::low32;
use crate::handshake::{Handshake, Request, SocketType, VERSION};
use crate::packet::{Body, Control, HEADER, Packet};
use cwnd::Time;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// The interval in nanoseconds after which cookies change. A cookie is valid for one more interval.
const SLOT: u64 = 60_000_000_000;

/// Answers connection requests without keeping state.
#[derive(Clone, Debug)]
pub struct Listener {
    key: [u8; 16],
    socket_type: SocketType,
}

/// A request with a valid cookie, for [`crate::Connection::accept`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Invitation {
    /// The client's address.
    pub from: SocketAddr,
    /// The client's handshake.
    pub handshake: Handshake,
    /// Whether the client is of this crate and knows [resets](crate::reset): its control packets have time
    /// stamps, which UDT4 leaves 0.
    pub knows_resets: bool,
}

/// A listener's answer to a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// No answer: not a request, or an invalid cookie.
    Ignore,
    /// A datagram to send back, no longer than the request.
    Reply([u8; HEADER + Handshake::LENGTH]),
    /// A client to be accepted, or refused with [`Listener::refuse`].
    Accept(Invitation),
}

impl Listener {
    /// Creates a listener for one type of socket. `key` is random and secret.
    pub const fn new(key: [u8; 16], socket_type: SocketType) -> Self {
        Listener { key, socket_type }
    }

    /// Processes a datagram addressed to socket 0.
    pub fn handle(&self, now: Time, from: SocketAddr, datagram: &[u8]) -> Answer {
        let Ok(Packet {
            timestamp,
            destination: 0,
            body: Body::Control(Control::Handshake(asked)),
        }) = Packet::parse(datagram)
        else {
            return Answer::Ignore;
        };
        if !asked.is_sound() {
            return Answer::Ignore;
        }
        let slot = now.as_nanos() / SLOT;
        match asked.request {
            Request::Connect => {
                let cookie = self.cookie(from, slot);
                Answer::Reply(reply(&Handshake { cookie, ..asked }))
            }
            Request::Agree => {
                let good = [slot, slot.wrapping_sub(1)]
                    .into_iter()
                    .any(|slot| self.cookie(from, slot) == asked.cookie);
                if !good {
                    Answer::Ignore
                } else if asked.version != VERSION || asked.socket_type != self.socket_type {
                    Answer::Reply(Listener::refuse(&asked))
                } else {
                    let knows_resets = timestamp != 0;
                    Answer::Accept(Invitation { from, handshake: asked, knows_resets })
                }
            }
            _ => Answer::Ignore,
        }
    }

    /// The datagram that refuses a client.
    pub fn refuse(asked: &Handshake) -> [u8; HEADER + Handshake::LENGTH] {
        reply(&Handshake { request: Request::Refused, ..*asked })
    }

    fn cookie(&self, from: SocketAddr, slot: u64) -> u32 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        match from.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write_u16(from.port());
        hasher.write_u64(slot);
        low32(hasher.finish())
    }
}

fn reply(handshake: &Handshake) -> [u8; HEADER + Handshake::LENGTH] {
    let mut datagram = [0; HEADER + Handshake::LENGTH];
    Control::Handshake(*handshake).encode(0, handshake.socket, &mut datagram);
    datagram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Seq;
    use proptest::prelude::*;

    const KEY: [u8; 16] = *b"0123456789abcdef";

    fn from() -> SocketAddr {
        "192.0.2.1:9000".parse().unwrap()
    }

    fn at(secs: u64) -> Time {
        Time::from_nanos(secs * 1_000_000_000)
    }

    fn request() -> Handshake {
        Handshake {
            version: VERSION,
            socket_type: SocketType::Stream,
            initial: Seq::new(77),
            packet_size: 1500,
            flow_window: 8192,
            request: Request::Connect,
            socket: 5,
            cookie: 0,
            peer: [0; 16],
        }
    }

    fn ask(listener: &Listener, now: Time, from: SocketAddr, handshake: Handshake) -> Answer {
        let mut datagram = [0; 64];
        Control::Handshake(handshake).encode(0, 0, &mut datagram);
        listener.handle(now, from, &datagram)
    }

    /// The cookie in the listener's answer.
    fn cookie(listener: &Listener, now: Time) -> u32 {
        let Answer::Reply(datagram) = ask(listener, now, from(), request()) else {
            panic!("no reply")
        };
        let packet = Packet::parse(&datagram).unwrap();
        assert_eq!(packet.destination, 5);
        let Body::Control(Control::Handshake(answer)) = packet.body else { panic!("no handshake") };
        assert_eq!(answer, Handshake { cookie: answer.cookie, ..request() });
        answer.cookie
    }

    #[test]
    fn a_cookie_opens_the_door_for_its_address_and_a_minute_or_two() {
        let listener = Listener::new(KEY, SocketType::Stream);
        let cookie = cookie(&listener, at(59));
        let agree = Handshake { request: Request::Agree, cookie, ..request() };
        let accepted =
            Answer::Accept(Invitation { from: from(), handshake: agree, knows_resets: false });
        for now in [59, 60, 119] {
            assert_eq!(ask(&listener, at(now), from(), agree), accepted);
        }
        assert_eq!(ask(&listener, at(120), from(), agree), Answer::Ignore);
        for other in ["192.0.2.1:9001", "192.0.2.2:9000"] {
            assert_eq!(ask(&listener, at(59), other.parse().unwrap(), agree), Answer::Ignore);
        }
        let stranger = Listener::new([1; 16], SocketType::Stream);
        assert_eq!(ask(&stranger, at(59), from(), agree), Answer::Ignore);
    }

    #[test]
    fn another_version_or_type_is_refused() {
        let listener = Listener::new(KEY, SocketType::Stream);
        let cookie = cookie(&listener, at(0));
        let agree = Handshake { request: Request::Agree, cookie, ..request() };
        for wrong in [
            Handshake { version: 3, ..agree },
            Handshake { socket_type: SocketType::Message, ..agree },
        ] {
            let Answer::Reply(datagram) = ask(&listener, at(0), from(), wrong) else {
                panic!("not refused")
            };
            let Body::Control(Control::Handshake(answer)) = Packet::parse(&datagram).unwrap().body
            else {
                panic!("no handshake")
            };
            assert_eq!(answer.request, Request::Refused);
        }
    }

    proptest! {
        /// Random datagrams are not accepted, and no answer is longer than the request.
        #[test]
        fn a_flood_is_answered_without_memory(
            mut bytes in prop::collection::vec(any::<u8>(), 0..100),
            guessed: u32,
        ) {
            let listener = Listener::new(KEY, SocketType::Stream);
            if let Answer::Reply(reply) = listener.handle(at(1), from(), &bytes) {
                prop_assert!(reply.len() <= bytes.len());
            }
            let right = cookie(&listener, at(1));
            let agree = Handshake { request: Request::Agree, cookie: guessed, ..request() };
            let accepted = matches!(ask(&listener, at(1), from(), agree), Answer::Accept(_));
            prop_assert_eq!(accepted, guessed == right);
            bytes.truncate(15);
            prop_assert_eq!(listener.handle(at(1), from(), &bytes), Answer::Ignore);
        }
    }
}
