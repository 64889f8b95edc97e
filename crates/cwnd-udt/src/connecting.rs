//! The handshake of a client or a rendezvous end: its requests, their repetition, and the peer's
//! answers (draft-gg-udt-03 section 5).

use crate::config::{CloseReason, Config};
use crate::handshake::{Handshake, Request, VERSION, address};
use crate::packet::{HEADER, IP_UDP_HEADERS};
use crate::seq::Seq;
use cwnd::{Dur, Time};
use std::net::IpAddr;

/// The interval between two requests (UDT4).
const REQUEST_INTERVAL: Dur = Dur::from_millis(250);

/// The length of a handshake without padding.
const LENGTH: usize = HEADER + Handshake::LENGTH;

/// The outcome of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The handshake continues.
    Pending,
    /// The handshake is complete: the peer's handshake.
    Open(Handshake),
    /// The handshake has failed.
    Failed(CloseReason),
}

/// The state of a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Connecting {
    /// The handshake to send.
    request: Handshake,
    rendezvous: bool,
    /// The packet sizes of padded requests, in descending order; and the number of those sent since
    /// the last request without padding.
    probes: Vec<u32>,
    probed: usize,
    /// A listener of this crate has answered the request without padding, and no padded one.
    unprobed: bool,
    /// The last handshake received from a rendezvous peer.
    peer: Option<Handshake>,
    next_send: Time,
    deadline: Time,
}

impl Connecting {
    pub(crate) fn new(
        config: &Config,
        now: Time,
        (id, initial): (u32, Seq),
        to: IpAddr,
        rendezvous: bool,
    ) -> Self {
        Connecting {
            request: Handshake {
                version: VERSION,
                socket_type: config.socket_type,
                initial,
                packet_size: config.packet_size,
                flow_window: config.flow_window,
                request: if rendezvous { Request::Rendezvous } else { Request::Connect },
                socket: id,
                cookie: 0,
                peer: address(to),
            },
            rendezvous,
            // A rendezvous does not probe, and a probe is larger than a request without padding.
            probes: config
                .probes
                .iter()
                .copied()
                .filter(|size| !rendezvous && *size as usize > LENGTH + IP_UDP_HEADERS)
                .collect(),
            probed: 0,
            unprobed: false,
            peer: None,
            next_send: now,
            deadline: now + config.connect_timeout,
        }
    }

    pub(crate) fn request(&self) -> &Handshake {
        &self.request
    }

    pub(crate) fn is_rendezvous(&self) -> bool {
        self.rendezvous
    }

    /// The handshake of a rendezvous peer that may have opened its connection.
    pub(crate) fn peer(&self) -> Option<Handshake> {
        self.peer.filter(|_| self.request.request == Request::Agree)
    }

    /// The handshake to send now, its destination socket, and the length of the datagram.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(Handshake, u32, usize)> {
        if self.next_send > now {
            return None;
        }
        if self.request.request == Request::Connect
            && let Some(&packet_size) = self.probes.get(self.probed)
        {
            self.probed += 1;
            let length = packet_size as usize - IP_UDP_HEADERS;
            return Some((Handshake { packet_size, ..self.request }, 0, length));
        }
        self.probed = 0;
        self.next_send = now + REQUEST_INTERVAL;
        Some((self.request, self.peer.map_or(0, |peer| peer.socket), LENGTH))
    }

    pub(crate) fn has_timed_out(&self, now: Time) -> bool {
        self.deadline <= now
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        self.next_send.min(self.deadline)
    }

    /// Processes a handshake from the peer, in a datagram of `length` bytes; `is_ours` if it has
    /// the timestamp of those of this crate's listeners.
    pub(crate) fn handle(
        &mut self,
        now: Time,
        answer: &Handshake,
        length: usize,
        is_ours: bool,
    ) -> Outcome {
        if self.rendezvous {
            return self.handle_rendezvous(now, answer);
        }
        // A listener repeats the initial sequence number: the sender of an answer without it has
        // not seen the request.
        if answer.initial != self.request.initial {
            return Outcome::Pending;
        }
        match answer.request {
            Request::Connect if self.request.request == Request::Connect => {
                // The path carries this size in both directions. The largest probe is sent first,
                // and the request without padding last.
                let probe = |size: &&u32| **size as usize - IP_UDP_HEADERS == length;
                match (self.probes.iter().find(probe), self.probes.last()) {
                    (Some(size), _) => self.request.packet_size = *size,
                    // The probes were lost, perhaps by chance: they are repeated once. Then the
                    // smallest size is used.
                    (None, Some(_)) if is_ours && !self.unprobed => {
                        self.unprobed = true;
                        return Outcome::Pending;
                    }
                    (None, Some(least)) if is_ours => self.request.packet_size = *least,
                    _ => {}
                }
                self.request.request = Request::Agree;
                self.request.cookie = answer.cookie;
                self.next_send = now;
                Outcome::Pending
            }
            Request::Refused => Outcome::Failed(CloseReason::Refused),
            Request::Agree if self.request.request == Request::Agree => {
                if !self.is_compatible(answer) || answer.packet_size > self.request.packet_size {
                    Outcome::Failed(CloseReason::Incompatible)
                } else if answer.is_valid() {
                    Outcome::Open(*answer)
                } else {
                    Outcome::Pending
                }
            }
            _ => Outcome::Pending,
        }
    }

    fn is_compatible(&self, answer: &Handshake) -> bool {
        answer.version == VERSION && answer.socket_type == self.request.socket_type
    }

    fn handle_rendezvous(&mut self, now: Time, answer: &Handshake) -> Outcome {
        let first = match answer.request {
            Request::Rendezvous => true,
            Request::Agree => false,
            // UDT4 leaves version and type 0 in a confirmation. It follows a handshake that has
            // them.
            Request::Confirm if self.peer.is_some() => false,
            _ => return Outcome::Pending,
        };
        let same_peer = self.peer.is_none_or(|peer| peer.socket == answer.socket);
        if !answer.is_valid() || !same_peer {
            return Outcome::Pending;
        }
        if answer.request != Request::Confirm && !self.is_compatible(answer) {
            return Outcome::Failed(CloseReason::Incompatible);
        }
        // A confirmation of UDT4 has the packet size that this end has offered, and not that of its
        // own buffers.
        let least = self.peer.map_or(u32::MAX, |peer| peer.packet_size);
        let answer = Handshake { packet_size: answer.packet_size.min(least), ..*answer };
        self.peer = Some(answer);
        if first || self.request.request == Request::Rendezvous {
            self.request.request = Request::Agree;
            self.next_send = now;
            return Outcome::Pending;
        }
        Outcome::Open(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwnd::Spec;

    /// UDT4 with a smaller packet size confirms this end's size, which its buffers do not hold.
    #[test]
    fn a_confirmation_does_not_raise_the_packet_size() {
        let config = Config::new(Spec::parse("udt").unwrap());
        let (now, ip) = (Time::ZERO, "192.0.2.1".parse().unwrap());
        let mut ours = Connecting::new(&config, now, (1, Seq::new(5)), ip, true);
        let offer = Handshake { packet_size: 1000, socket: 2, ..*ours.request() };
        assert!(matches!(ours.handle(now, &offer, LENGTH, false), Outcome::Pending));
        let request = Request::Confirm;
        let confirmation = Handshake { packet_size: 1500, request, ..offer };
        let outcome = ours.handle(now, &confirmation, LENGTH, false);
        assert!(matches!(outcome, Outcome::Open(peer) if peer.packet_size == 1000));
    }
}
