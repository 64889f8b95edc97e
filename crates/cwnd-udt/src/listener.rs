//! The stateless handshake responder of a listener. It keeps no state of clients; instead, a client
//! must return a cookie that is sent to its address (RFC 4987 section 3.6).

use crate::cast::low32;
use crate::handshake::{ANSWER_TIMESTAMP, Handshake, Request, SocketType, VERSION};
use crate::packet::{Body, Control, HEADER, Packet};
use cwnd::Time;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// The period in nanoseconds after which cookies change. A cookie is valid for one more period.
const COOKIE_PERIOD: u64 = 60_000_000_000;

/// Answers connection requests without keeping state of clients.
#[derive(Clone, Debug)]
pub struct Listener {
    key: [u8; 16],
    socket_type: SocketType,
}

/// A connection request with a valid cookie, for [`crate::Connection::accept`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Incoming {
    /// The client's address.
    pub from: SocketAddr,
    /// The client's handshake.
    pub handshake: Handshake,
    /// Whether the client is an implementation of this crate, which supports
    /// [resets](crate::reset): its control packets have timestamps, which are 0 in UDT4.
    pub supports_resets: bool,
}

/// A listener's answer to a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// No answer: the datagram is not a request, or its cookie is invalid.
    Ignore,
    /// A datagram to send back, no longer than the request.
    Reply([u8; HEADER + Handshake::LENGTH]),
    /// A request to accept, or to refuse with [`Listener::refuse`].
    Accept(Incoming),
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
            body: Body::Control(Control::Handshake(request)),
        }) = Packet::parse(datagram)
        else {
            return Answer::Ignore;
        };
        if !request.is_valid() {
            return Answer::Ignore;
        }
        let period = now.as_nanos() / COOKIE_PERIOD;
        match request.request {
            Request::Connect => {
                let cookie = self.cookie(from, period);
                Answer::Reply(reply(&Handshake { cookie, ..request }))
            }
            Request::Agree => {
                let valid = [period, period.wrapping_sub(1)]
                    .into_iter()
                    .any(|period| self.cookie(from, period) == request.cookie);
                if !valid {
                    Answer::Ignore
                } else if request.version != VERSION || request.socket_type != self.socket_type {
                    Answer::Reply(Listener::refuse(&request))
                } else {
                    let supports_resets = timestamp != 0;
                    Answer::Accept(Incoming { from, handshake: request, supports_resets })
                }
            }
            _ => Answer::Ignore,
        }
    }

    /// Encodes the datagram that refuses a request.
    pub fn refuse(request: &Handshake) -> [u8; HEADER + Handshake::LENGTH] {
        reply(&Handshake { request: Request::Refused, ..*request })
    }

    fn cookie(&self, from: SocketAddr, period: u64) -> u32 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        match from.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write_u16(from.port());
        hasher.write_u64(period);
        low32(hasher.finish())
    }
}

fn reply(handshake: &Handshake) -> [u8; HEADER + Handshake::LENGTH] {
    let mut datagram = [0; HEADER + Handshake::LENGTH];
    Control::Handshake(*handshake).encode(ANSWER_TIMESTAMP, handshake.socket, &mut datagram);
    datagram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use proptest::prelude::*;

    const KEY: [u8; 16] = *b"0123456789abcdef";

    fn from() -> SocketAddr {
        "192.0.2.1:9000".parse().unwrap()
    }

    fn at(secs: u64) -> Time {
        Time::from_nanos(secs * 1_000_000_000)
    }

    fn request_to(
        listener: &Listener,
        now: Time,
        from: SocketAddr,
        handshake: Handshake,
    ) -> Answer {
        let mut datagram = [0; 64];
        Control::Handshake(handshake).encode(0, 0, &mut datagram);
        listener.handle(now, from, &datagram)
    }

    /// The cookie in the listener's answer.
    fn cookie(listener: &Listener, now: Time) -> u32 {
        let Answer::Reply(datagram) = request_to(listener, now, from(), request()) else {
            panic!("no reply")
        };
        let packet = Packet::parse(&datagram).unwrap();
        assert_eq!(packet.destination, 5);
        let Body::Control(Control::Handshake(answer)) = packet.body else { panic!("no handshake") };
        assert_eq!(answer, Handshake { cookie: answer.cookie, ..request() });
        answer.cookie
    }

    #[test]
    fn a_cookie_is_valid_for_its_address_and_for_up_to_two_periods() {
        let listener = Listener::new(KEY, SocketType::Stream);
        let cookie = cookie(&listener, at(59));
        let agree = Handshake { request: Request::Agree, cookie, ..request() };
        let accepted =
            Answer::Accept(Incoming { from: from(), handshake: agree, supports_resets: false });
        for now in [59, 60, 119] {
            assert_eq!(request_to(&listener, at(now), from(), agree), accepted);
        }
        assert_eq!(request_to(&listener, at(120), from(), agree), Answer::Ignore);
        for other in ["192.0.2.1:9001", "192.0.2.2:9000"] {
            assert_eq!(
                request_to(&listener, at(59), other.parse().unwrap(), agree),
                Answer::Ignore
            );
        }
        let other_listener = Listener::new([1; 16], SocketType::Stream);
        assert_eq!(request_to(&other_listener, at(59), from(), agree), Answer::Ignore);
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
            let Answer::Reply(datagram) = request_to(&listener, at(0), from(), wrong) else {
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
        fn random_datagrams_and_guessed_cookies_are_not_accepted(
            mut bytes in prop::collection::vec(any::<u8>(), 0..100),
            guessed: u32,
        ) {
            let listener = Listener::new(KEY, SocketType::Stream);
            if let Answer::Reply(reply) = listener.handle(at(1), from(), &bytes) {
                prop_assert!(reply.len() <= bytes.len());
            }
            let right = cookie(&listener, at(1));
            let agree = Handshake { request: Request::Agree, cookie: guessed, ..request() };
            let accepted = matches!(request_to(&listener, at(1), from(), agree), Answer::Accept(_));
            prop_assert_eq!(accepted, guessed == right);
            bytes.truncate(15);
            prop_assert_eq!(listener.handle(at(1), from(), &bytes), Answer::Ignore);
        }
    }
}
