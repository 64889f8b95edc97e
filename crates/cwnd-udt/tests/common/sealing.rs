//! The encryption between two connections and their path.

use super::client;
use cwnd::{Dur, Time};
use cwnd_udt::secure::{Credentials, Initiator, Refused, Reply, Responder, Session};
use std::collections::HashSet;

/// The encryption of a client and a listener.
pub(crate) struct Sealing {
    pub initiator: Initiator,
    responder: Responder,
    pub sessions: [Option<Session>; 2],
    pub ignored: Vec<Refused>,
    /// The plaintexts that each end has sealed.
    sealed: [HashSet<Vec<u8>>; 2],
}

/// What a datagram of the path is to an end.
pub(crate) enum Opened {
    Nothing,
    /// The answer to a hello.
    Answer(Vec<u8>),
    /// The client's session is open.
    Session,
    Plain(Vec<u8>),
}

impl Sealing {
    pub(crate) fn new(credentials: [&Credentials; 2]) -> Self {
        let [asks, listens] = credentials;
        Sealing {
            initiator: Initiator::new(asks, Time::ZERO, 5, Dur::from_millis(3_000)).unwrap(),
            responder: Responder::new(listens, [3; 32], b"here"),
            sessions: [None, None],
            ignored: Vec::new(),
            sealed: Default::default(),
        }
    }

    /// The client's next hello.
    pub(crate) fn hello(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.sessions[0].is_some() {
            return None;
        }
        self.initiator.poll(now).map(<[u8]>::to_vec)
    }

    /// When the client says hello again.
    pub(crate) fn next_hello(&self, now: Time) -> Option<Time> {
        let waits = self.sessions[0].is_none() && !self.initiator.has_timed_out(now);
        waits.then(|| self.initiator.next_wakeup())
    }

    pub(crate) fn seal(&mut self, from: usize, datagrams: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut wire = Vec::new();
        let session = self.sessions[from].as_mut().unwrap();
        let segment =
            session.sealer.seal(&datagrams.concat(), datagrams[0].len(), &mut wire).unwrap();
        self.sealed[from].extend(datagrams);
        wire.chunks(segment).map(<[u8]>::to_vec).collect()
    }

    pub(crate) fn open(&mut self, now: Time, end: usize, datagram: &mut [u8]) -> Opened {
        let plain = match (&mut self.sessions[end], end) {
            (Some(session), _) => session.opener.open(datagram).map(|plain| plain.to_vec()),
            (None, 0) => match self.initiator.handle(now, datagram) {
                Ok(None) => return Opened::Nothing,
                Ok(session) => {
                    self.sessions[0] = session;
                    return Opened::Session;
                }
                Err(refused) => Err(refused),
            },
            (None, _) => match self.responder.handle(now, client(), datagram, || 6) {
                Reply::Send(answer) => return Opened::Answer(answer),
                Reply::Open(session, first) => {
                    let first = first.to_vec();
                    self.sessions[1] = Some(*session);
                    Ok(first)
                }
                Reply::Ignore(refused) => Err(refused),
                Reply::Refuse(_) => Err(Refused::NoKey),
            },
        };
        match plain {
            Err(refused) => {
                self.ignored.push(refused);
                Opened::Nothing
            }
            Ok(plain) => {
                assert!(self.sealed[1 - end].contains(&plain), "a forged datagram was accepted");
                Opened::Plain(plain)
            }
        }
    }
}
