//! Who comes to a listener before there is a connection.

use super::port::random;
use crate::secure::{Credentials, Key, Reply, Responder, Session, destination, is_hello};
use crate::{Answer, Config, Invitation, Listener};
use cwnd::{Dur, Time};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// Answers to strangers: so many at once, and one more in each interval. A flood of requests costs
/// established connections no more than that.
const ANSWERS: u64 = 1024;
const ANSWER_EVERY: Dur = Dur::from_nanos(50_000);
/// Looking at a hello takes some 10 µs, several times what an answer in clear takes.
const HELLO: u64 = 4;
/// Clients that have shown the key and are not connected yet, at most, and for how long they may be silent.
const GUESTS: usize = 1024;
const PATIENCE: Dur = Dur::from_millis(5_000);

/// What a listener may still answer.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// The next answer is due then, as if there were one in each interval.
    due: Time,
}

impl Budget {
    /// Whether one may be answered that takes the time of so many.
    fn spend(&mut self, now: Time, price: u64) -> bool {
        let time = |answers| Dur::from_nanos(answers * ANSWER_EVERY.as_nanos());
        let may = self.due <= now + time(ANSWERS);
        if may {
            self.due = self.due.max(now) + time(price);
        }
        may
    }
}

/// What is to be done about a datagram.
#[derive(Debug)]
pub(super) enum Word {
    Nothing,
    Say(Vec<u8>),
    /// In this session, if there is a key.
    Accept(Invitation, Option<Box<Session>>),
}

/// Where a listener's clients come in.
#[derive(Debug)]
pub(super) enum Door {
    Plain(Listener),
    Locked(Box<Mutex<Hall>>),
}

/// Behind a door with a key: sessions that are open, of clients whose connection is not.
#[derive(Debug)]
pub(super) struct Hall {
    listener: Listener,
    responder: Responder,
    guests: HashMap<u32, Guest>,
}

#[derive(Debug)]
struct Guest {
    from: SocketAddr,
    session: Box<Session>,
    until: Time,
}

impl Door {
    pub fn new(config: &Config) -> io::Result<Self> {
        let listener = Listener::new(random()?, config.socket_type);
        Ok(match &config.credentials {
            None => Door::Plain(listener),
            Some(Credentials::Key(key)) => {
                Door::Locked(Box::new(Mutex::new(Hall::new(listener, key)?)))
            }
            Some(_) => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    pub fn is_locked(&self) -> bool {
        matches!(self, Door::Locked(_))
    }

    /// Lets nobody in any more with the listener's one-time code.
    pub fn spend_code(&self) {
        if let Door::Locked(hall) = self {
            let mut hall = hall.lock().unwrap_or_else(PoisonError::into_inner);
            hall.responder.spend_code();
        }
    }

    /// A datagram came in; `id` makes ids for sessions, and `room` says whether one more can be accepted.
    /// A client that gets no answer, or finds no room, asks again.
    pub fn hear(
        &self,
        (now, from): (Time, SocketAddr),
        datagram: &mut [u8],
        budget: &mut Budget,
        id: impl FnMut() -> u32,
        room: impl FnOnce() -> bool,
    ) -> Word {
        match self {
            Door::Plain(listener) => match listener.handle(now, from, datagram) {
                Answer::Reply(reply) if budget.spend(now, 1) => Word::Say(reply.to_vec()),
                Answer::Accept(asked) if room() => Word::Accept(asked, None),
                _ => Word::Nothing,
            },
            Door::Locked(hall) => {
                let mut hall = hall.lock().unwrap_or_else(PoisonError::into_inner);
                hall.hear((now, from), datagram, budget, id, room)
            }
        }
    }
}

impl Hall {
    fn new(listener: Listener, key: &Key) -> io::Result<Self> {
        let responder = Responder::new(key, random()?);
        Ok(Hall { listener, responder, guests: HashMap::new() })
    }

    fn hear(
        &mut self,
        (now, from): (Time, SocketAddr),
        datagram: &mut [u8],
        budget: &mut Budget,
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
        if is_hello(datagram) && !budget.spend(now, HELLO) {
            return Word::Nothing;
        }
        match self.responder.handle(now, from, datagram, id) {
            Reply::Send(answer) => Word::Say(answer),
            Reply::Refuse(refusal) if budget.spend(now, 1) => Word::Say(refusal.to_vec()),
            Reply::Open(session, first) => {
                self.guests.retain(|_, guest| guest.until > now);
                let name = session.id();
                if self.guests.len() < GUESTS {
                    self.guests.insert(name, Guest { from, session, until: now });
                }
                self.serve(now, name, first, room)
            }
            _ => Word::Nothing,
        }
    }

    /// A guest has said something of UDT.
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
    use crate::secure::Initiator;
    use crate::{Connection, Seq, SocketType};

    const ASKED: usize = GUESTS + 100;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Clients that open a session and then ask for a cookie, again and again, are kept up to a number, and
    /// not for ever.
    #[test]
    fn guests_are_so_many_and_no_more() {
        let key =
            Key::from_file_contents(&std::array::from_fn::<u8, 32, _>(|at| at as u8)).unwrap();
        let mut hall = Hall::new(Listener::new([1; 16], SocketType::Stream), &key).unwrap();
        let (from, mut last) = ("192.0.2.1:9".parse().unwrap(), 0);
        let mut ask = |hall: &mut Hall, now: Time| {
            let id = || {
                last += 1;
                last
            };
            let budget = &mut Budget::default();
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
                // The cookie, in the session.
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
