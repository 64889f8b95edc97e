//! The handshake of the connecting end: its requests, their repetition, and the answers that open the connection
//! (draft-gg-udt-03 section 5).

use crate::config::{CloseReason, Config};
use crate::handshake::{Handshake, Request, VERSION, address};
use crate::seq::Seq;
use cwnd::{Dur, Time};
use std::net::IpAddr;

/// The time between two requests (UDT4).
const REPEAT: Dur = Dur::from_millis(250);

/// The result of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// Wait, or send another request.
    Wait,
    /// The connection is open with this peer.
    Open(Handshake),
    /// The connection fails.
    Fail(CloseReason),
}

/// A connecting end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    request: Handshake,
    rendezvous: bool,
    /// A rendezvous peer, as far as it is known.
    peer: Option<Handshake>,
    next_send: Time,
    deadline: Time,
}

impl Opening {
    pub(crate) fn new(
        config: &Config,
        now: Time,
        (id, initial): (u32, Seq),
        to: IpAddr,
        rendezvous: bool,
    ) -> Self {
        Opening {
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

    /// A rendezvous peer that has agreed and may have opened its connection.
    pub(crate) fn peer(&self) -> Option<Handshake> {
        self.peer.filter(|_| self.request.request == Request::Agree)
    }

    /// The handshake to send now, and its destination socket.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(Handshake, u32)> {
        if self.next_send > now {
            return None;
        }
        self.next_send = now + REPEAT;
        Some((self.request, self.peer.map_or(0, |peer| peer.socket)))
    }

    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.deadline <= now
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        self.next_send.min(self.deadline)
    }

    /// Processes a handshake.
    pub(crate) fn handle(&mut self, now: Time, answer: &Handshake) -> Step {
        if self.rendezvous { self.meet(now, answer) } else { self.answered(now, answer) }
    }

    fn fits(&self, answer: &Handshake) -> bool {
        answer.version == VERSION && answer.socket_type == self.request.socket_type
    }

    fn answered(&mut self, now: Time, answer: &Handshake) -> Step {
        // A listener repeats the initial sequence number: an answer without it is not from a host that has seen the
        // request.
        if answer.initial != self.request.initial {
            return Step::Wait;
        }
        match answer.request {
            Request::Connect if self.request.request == Request::Connect => {
                self.request.request = Request::Agree;
                self.request.cookie = answer.cookie;
                self.next_send = now;
                Step::Wait
            }
            Request::Refused => Step::Fail(CloseReason::Refused),
            Request::Agree if self.request.request == Request::Agree => {
                if !self.fits(answer) || answer.packet_size > self.request.packet_size {
                    Step::Fail(CloseReason::Incompatible)
                } else if answer.is_sound() {
                    Step::Open(*answer)
                } else {
                    Step::Wait
                }
            }
            _ => Step::Wait,
        }
    }

    fn meet(&mut self, now: Time, answer: &Handshake) -> Step {
        let first = match answer.request {
            Request::Rendezvous => true,
            Request::Agree => false,
            // UDT4 leaves version and type 0 in this handshake, which only follows one that has them.
            Request::Confirm if self.peer.is_some() => false,
            _ => return Step::Wait,
        };
        let same = self.peer.is_none_or(|peer| peer.socket == answer.socket);
        if !answer.is_sound() || !same {
            return Step::Wait;
        }
        if answer.request != Request::Confirm && !self.fits(answer) {
            return Step::Fail(CloseReason::Incompatible);
        }
        self.peer = Some(*answer);
        if first || self.request.request == Request::Rendezvous {
            self.request.request = Request::Agree;
            self.next_send = now;
            return Step::Wait;
        }
        Step::Open(*answer)
    }
}
