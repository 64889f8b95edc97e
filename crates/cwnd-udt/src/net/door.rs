//! A listener's clients before a connection exists: handshakes, sessions and the limits of both.

use super::port::random;
use crate::secure::{Credentials, Refused, Reply, Responder, Session, destination, is_hello};
use crate::{Answer, Config, Invitation, Listener};
use cwnd::{Dur, Time};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// The burst and the interval of answers to clients without a connection: a token bucket. It bounds the cost of a flood
/// of requests.
const ANSWERS: u64 = 1024;
const ANSWER_EVERY: Dur = Dur::from_nanos(50_000);
/// The price of checking a hello, in answers: it takes about 10 µs, several times as long as an answer in clear.
const HELLO: u64 = 4;
/// The price of a hello whose check multiplies public keys, which takes about 150 µs.
const COSTLY: u64 = 40;
/// The largest number of authenticated clients without a connection, and the time after which a silent one is dropped.
const GUESTS: usize = 1024;
const PATIENCE: Dur = Dur::from_millis(5_000);

/// A token bucket of answers.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// The due time of the next answer at one answer per interval. It may be up to a burst later than now.
    due: Time,
}

impl Budget {
    /// Takes `price` answers from the budget. Returns false if it is exhausted.
    pub(super) fn spend(&mut self, now: Time, price: u64) -> bool {
        let time = |answers| Dur::from_nanos(answers * ANSWER_EVERY.as_nanos());
        let may = self.due <= now + time(ANSWERS);
        if may {
            self.due = self.due.max(now) + time(price);
        }
        may
    }
}

/// The budgets of a port for datagrams that belong to no connection.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    /// The listener's answers to clients.
    pub answers: Budget,
    /// Resets sent and resets checked.
    pub resets: Budget,
}

/// The reaction to a datagram.
#[derive(Debug)]
pub(super) enum Word {
    Nothing,
    Say(Vec<u8>),
    /// Accept the client, in this session if the listener has credentials.
    Accept(Invitation, Option<Box<Session>>),
    /// The listener's one-time code has become void.
    Void,
}

/// Handles the datagrams of a listener's clients, with or without credentials.
#[derive(Debug)]
pub(super) enum Door {
    Plain(Listener),
    Locked(Box<Mutex<Hall>>),
}

/// The state of a listener with credentials: sessions of clients that have no connection yet.
#[derive(Debug)]
pub(super) struct Hall {
    listener: Listener,
    responder: Responder,
    guests: HashMap<u32, Guest>,
    /// [`Word::Void`] was returned.
    void: bool,
}

#[derive(Debug)]
struct Guest {
    from: SocketAddr,
    session: Box<Session>,
    until: Time,
}

impl Door {
    /// Creates the door of a listener bound to `local`.
    pub(super) fn new(config: &Config, local: SocketAddr) -> io::Result<Self> {
        let listener = Listener::new(random()?, config.socket_type);
        Ok(match &config.credentials {
            None => Door::Plain(listener),
            Some(credentials) => {
                let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
                credentials.check_listener().map_err(wrong)?;
                Door::Locked(Box::new(Mutex::new(Hall::new(listener, credentials, local)?)))
            }
        })
    }

    pub(super) fn is_locked(&self) -> bool {
        matches!(self, Door::Locked(_))
    }

    /// Admits no further clients with the listener's one-time code.
    pub(super) fn spend_code(&self) {
        if let Door::Locked(hall) = self {
            let mut hall = hall.lock().unwrap_or_else(PoisonError::into_inner);
            hall.spend_code();
        }
    }

    /// Handles a datagram. `id` generates session ids; `room` returns whether another connection can be accepted. A
    /// client that gets no answer repeats its request.
    pub(super) fn hear(
        &self,
        (now, from): (Time, SocketAddr),
        datagram: &mut [u8],
        budgets: &mut Budgets,
        id: impl FnMut() -> u32,
        room: impl FnOnce() -> bool,
    ) -> Word {
        match self {
            Door::Plain(listener) => match listener.handle(now, from, datagram) {
                Answer::Reply(reply) if budgets.answers.spend(now, 1) => Word::Say(reply.to_vec()),
                Answer::Accept(asked) if room() => Word::Accept(asked, None),
                _ => Word::Nothing,
            },
            Door::Locked(hall) => {
                let mut hall = hall.lock().unwrap_or_else(PoisonError::into_inner);
                hall.hear((now, from), datagram, budgets, id, room)
            }
        }
    }
}

/// Identifies a listener among those with the same credentials: by the machine and the local address, which survive a
/// restart.
fn place(local: SocketAddr) -> Vec<u8> {
    // Systems without this file are identified by their host name.
    let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
    let uname = rustix::system::uname();
    [&machine, &b"\n"[..], uname.nodename().to_bytes(), b"\n", local.to_string().as_bytes()]
        .concat()
}

impl Hall {
    fn new(listener: Listener, credentials: &Credentials, local: SocketAddr) -> io::Result<Self> {
        let responder = Responder::new(credentials, random()?, &place(local));
        Ok(Hall { listener, responder, guests: HashMap::new(), void: false })
    }

    fn spend_code(&mut self) {
        self.responder.spend_code();
        // Only clients with a one-time code are dropped: other credentials stay valid.
        if self.responder.has_code() {
            self.guests.clear();
        }
    }

    fn hear(
        &mut self,
        (now, from): (Time, SocketAddr),
        datagram: &mut [u8],
        budgets: &mut Budgets,
        id: impl FnMut() -> u32,
        room: impl FnOnce() -> bool,
    ) -> Word {
        let name = destination(datagram).unwrap_or_default();
        if let Some(guest) = self.guests.get_mut(&name) {
            if guest.from != from {
                return Word::Nothing;
            }
            return match guest.session.opener.open(datagram) {
                Ok(plain) => self.serve(now, name, plain, room),
                Err(_) => Word::Nothing,
            };
        }
        if is_hello(datagram) {
            let costly = self.responder.is_costly(now, from, datagram);
            if !budgets.answers.spend(now, if costly { COSTLY } else { HELLO }) {
                return Word::Nothing;
            }
        }
        match self.responder.handle(now, from, datagram, id) {
            Reply::Send(answer) => Word::Say(answer),
            Reply::Refuse(refusal) if budgets.answers.spend(now, 1) => Word::Say(refusal.to_vec()),
            Reply::Open(session, first) => {
                self.guests.retain(|_, guest| guest.until > now);
                let name = session.id();
                if self.guests.len() < GUESTS {
                    self.guests.insert(name, Guest { from, session, until: now });
                }
                self.serve(now, name, first, room)
            }
            Reply::Ignore(Refused::Unknown) if budgets.resets.spend(now, 1) => {
                let reset = self.responder.reset(datagram);
                reset.map_or(Word::Nothing, |reset| Word::Say(reset.to_vec()))
            }
            Reply::Ignore(Refused::WrongKey) if self.responder.is_void() && !self.void => {
                self.void = true;
                Word::Void
            }
            _ => Word::Nothing,
        }
    }

    /// Handles a guest's UDT datagram after it has been opened.
    fn serve(&mut self, now: Time, name: u32, plain: &[u8], room: impl FnOnce() -> bool) -> Word {
        let Some(guest) = self.guests.get_mut(&name) else { return Word::Nothing };
        guest.until = now + PATIENCE;
        match self.listener.handle(now, guest.from, plain) {
            Answer::Ignore => Word::Nothing,
            Answer::Reply(reply) => {
                let mut wire = Vec::new();
                let sealed = guest.session.sealer.seal(&reply, reply.len(), &mut wire);
                sealed.map_or(Word::Nothing, |_| Word::Say(wire))
            }
            Answer::Accept(asked) if room() => {
                Word::Accept(asked, self.guests.remove(&name).map(|guest| guest.session))
            }
            Answer::Accept(_) => Word::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secure::{Initiator, Key};
    use crate::{Connection, Seq, SocketType};

    const ASKED: usize = GUESTS + 100;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Clients that open a session and request a cookie are kept up to a limit, and dropped when they are silent.
    #[test]
    fn guests_are_limited_and_expire() {
        let key =
            Key::from_file_contents(&std::array::from_fn::<u8, 32, _>(|at| at.to_le_bytes()[0]))
                .unwrap();
        let (key, local) = (Credentials::Key(key), "192.0.2.2:9".parse().unwrap());
        let mut hall = Hall::new(Listener::new([1; 16], SocketType::Stream), &key, local).unwrap();
        let (from, mut last) = ("192.0.2.1:9".parse().unwrap(), 0);
        let mut ask = |hall: &mut Hall, now: Time| {
            let id = || {
                last += 1;
                last
            };
            let budget = &mut Budgets::default();
            let mut initiator = Initiator::new(&key, now, 7, Dur::from_millis(100)).unwrap();
            let mut hello = initiator.poll(now).unwrap().to_vec();
            let word = hall.hear((now, from), &mut hello, budget, id, || true);
            let Word::Say(answer) = word else { panic!("{word:?}") };
            let mut session = initiator.handle(now, &answer).unwrap().unwrap();
            let config = Config::new(cwnd::Spec::parse("udt").unwrap());
            let mut client = Connection::connect(&config, now, 7, Seq::new(1), from.ip());
            let asked = client.poll_transmit(now, 1).unwrap();
            let mut wire = Vec::new();
            session.sealer.seal(asked.datagrams, asked.segment, &mut wire).unwrap();
            let word = hall.hear((now, from), &mut wire, budget, || 0, || true);
            let mut answers = 0;
            if let Word::Say(mut reply) = word {
                // The sealed cookie.
                assert_eq!(session.opener.open(&mut reply).unwrap().len(), 64);
                answers += 1;
            }
            answers
        };
        let answers: usize = (0..ASKED).map(|_| ask(&mut hall, at(10))).sum();
        assert_eq!((answers, hall.guests.len(), hall.responder.waiting()), (GUESTS, GUESTS, 0));
        assert_eq!(ask(&mut hall, at(5_009)), 0);
        assert_eq!(ask(&mut hall, at(5_011)), 1);
        assert_eq!(hall.guests.len(), 1);
    }

    #[test]
    fn a_budget_lets_a_burst_through_and_then_a_stream() {
        let mut budget = Budget::default();
        let burst = (0..5_000).filter(|_| budget.spend(at(1_000), 1)).count() as u64;
        assert!(burst.abs_diff(ANSWERS) <= 1, "{burst}");
        let later = (0..5_000).filter(|_| budget.spend(at(1_010), 1)).count() as u64;
        assert!(later.abs_diff(10_000_000 / ANSWER_EVERY.as_nanos()) <= 1, "{later}");
    }
}
