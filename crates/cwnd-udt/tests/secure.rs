//! Connections with a shared key in simulated time, over a path that loses, delays, reorders,
//! duplicates and corrupts datagrams.

use crate::common::{self, PERFECT, Path, Random, client, config, pattern, server};
use cwnd::{Dur, Time};
use cwnd_udt::secure::{
    Credentials, Initiator, OVERHEAD, Refused, Reply, Responder, Session, packet_size,
};
use cwnd_udt::{Answer, CloseReason, Config, Connection, Listener, Seq, SocketType};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

const MS: u64 = 1_000_000;

fn key(first: u8) -> Credentials {
    Credentials::Key(common::key(first))
}

/// A client, a listener with a key, and the path between them.
struct Simulation {
    now: Time,
    path: Path,
    random: Random,
    in_transit: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    order: u64,
    initiator: Initiator,
    responder: Responder,
    listener: Listener,
    config: Config,
    sessions: [Option<Session>; 2],
    ends: [Option<Connection>; 2],
    ignored: Vec<Refused>,
    largest: usize,
    /// The plaintexts that each end has sealed.
    sealed: [HashSet<Vec<u8>>; 2],
}

impl Simulation {
    fn new(keys: [&Credentials; 2], path: Path, seed: u64) -> Self {
        let config = Config { packet_size: packet_size(1500), ..config("cubic") };
        Simulation {
            now: Time::ZERO,
            path,
            random: Random(seed),
            in_transit: BTreeMap::new(),
            order: 0,
            initiator: Initiator::new(keys[0], Time::ZERO, 5, Dur::from_millis(3_000)).unwrap(),
            responder: Responder::new(keys[1], [3; 32], b"here"),
            listener: Listener::new(common::KEY, SocketType::Stream),
            config,
            sessions: [None, None],
            ends: [None, None],
            ignored: Vec::new(),
            largest: 0,
            sealed: Default::default(),
        }
    }

    /// Sends a datagram from the end `from` over the path.
    fn send(&mut self, from: usize, mut datagram: Vec<u8>) {
        self.largest = self.largest.max(datagram.len());
        if self.random.chance(self.path.loss) {
            return;
        }
        if self.random.chance(self.path.flip) {
            let bit = self.random.below(8 * datagram.len() as u64);
            datagram[bit as usize / 8] ^= 1 << (bit % 8);
        }
        for _ in 0..1 + u32::from(self.random.chance(self.path.duplicate)) {
            let jitter = Dur::from_nanos(self.random.below(self.path.jitter.as_nanos() + 1));
            self.order += 1;
            let at = self.now + self.path.delay + jitter;
            self.in_transit.insert((at, self.order), (1 - from, datagram.clone()));
        }
    }

    fn send_sealed(&mut self, from: usize, plain: &[u8], segment: usize) {
        self.sealed[from].extend(plain.chunks(segment).map(<[u8]>::to_vec));
        let mut wire = Vec::new();
        let session = self.sessions[from].as_mut().unwrap();
        let segment = session.sealer.seal(plain, segment, &mut wire).unwrap();
        wire.chunks(segment).for_each(|datagram| self.send(from, datagram.to_vec()));
    }

    fn transmit(&mut self, end: usize) {
        let now = self.now;
        if end == 0
            && self.sessions[0].is_none()
            && let Some(hello) = self.initiator.poll(now).map(<[u8]>::to_vec)
        {
            self.send(0, hello);
        }
        while let Some((plain, segment)) = self.ends[end]
            .as_mut()
            .and_then(|connection| connection.poll_transmit(now, 16))
            .map(|transmit| (transmit.datagrams.to_vec(), transmit.segment))
        {
            self.send_sealed(end, &plain, segment);
        }
    }

    fn receive(&mut self, end: usize, mut datagram: Vec<u8>) {
        let now = self.now;
        let plain = match (&mut self.sessions[end], end) {
            (Some(session), _) => session.opener.open(&mut datagram).map(|plain| plain.to_vec()),
            (None, 0) => match self.initiator.handle(now, &datagram) {
                Ok(Some(session)) => {
                    self.sessions[0] = Some(session);
                    let ip = server().ip();
                    let hello_wakeup = Connection::connect(&self.config, now, 11, Seq::new(9), ip);
                    self.ends[0] = Some(hello_wakeup);
                    return;
                }
                Ok(None) => return,
                Err(refused) => Err(refused),
            },
            (None, _) => match self.responder.handle(now, client(), &mut datagram, || 6) {
                Reply::Send(answer) => return self.send(1, answer),
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
            Err(refused) => self.ignored.push(refused),
            Ok(plain) => self.handle_plaintext(end, &plain),
        }
    }

    /// Processes a decrypted datagram.
    fn handle_plaintext(&mut self, end: usize, plain: &[u8]) {
        assert!(self.sealed[1 - end].contains(plain), "a forged datagram was accepted");
        let now = self.now;
        if let Some(connection) = &mut self.ends[end] {
            return connection.handle_datagram(now, plain);
        }
        match self.listener.handle(now, client(), plain) {
            Answer::Ignore => {}
            Answer::Reply(reply) => self.send_sealed(1, &reply, reply.len()),
            Answer::Accept(incoming) => {
                self.ends[1] = Some(Connection::accept(&self.config, now, 22, &incoming));
            }
        }
    }

    /// Processes the next event. Returns false if there is none.
    fn step(&mut self) -> bool {
        (0..2).for_each(|end| self.transmit(end));
        let soon = self.now + Dur::from_nanos(1);
        let wakes = self.ends.iter().flatten().filter_map(Connection::next_wakeup);
        let hello_wakeup = (self.sessions[0].is_none() && !self.initiator.has_timed_out(self.now))
            .then(|| self.initiator.next_wakeup());
        let arrival = self.in_transit.keys().next().map(|(at, _)| *at);
        let next = wakes.chain(hello_wakeup).map(|at| at.max(soon)).chain(arrival).min();
        let Some(next) = next else { return false };
        self.now = next.max(self.now);
        while let Some(entry) =
            self.in_transit.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let (end, datagram) = entry.remove();
            self.receive(end, datagram);
        }
        let now = self.now;
        self.ends.iter_mut().flatten().for_each(|end| end.handle_timeout(now));
        (0..2).for_each(|end| self.transmit(end));
        true
    }

    /// Connects. Returns false if the handshake fails.
    fn connect(&mut self) -> bool {
        while !self.ends.iter().all(|end| end.as_ref().is_some_and(Connection::is_open)) {
            let failed = self.ends[0].as_ref().is_some_and(|end| end.close_reason().is_some());
            if failed || !self.step() {
                return false;
            }
        }
        true
    }

    /// Sends `data` from one end and returns the data that arrives at the other.
    fn transfer(&mut self, from: usize, data: &[u8]) -> Vec<u8> {
        let deadline = self.now + Dur::from_millis(600_000);
        let (mut written, mut arrived, mut buffer) = (0, Vec::new(), [0; 4096]);
        while arrived.len() < data.len() {
            let now = self.now;
            written += self.ends[from].as_mut().unwrap().write(&data[written..]).unwrap();
            let reader = self.ends[1 - from].as_mut().unwrap();
            while let count @ 1.. = reader.read(now, &mut buffer).unwrap() {
                arrived.extend_from_slice(&buffer[..count]);
            }
            assert!(self.step() && self.now < deadline, "{} of {}", arrived.len(), data.len());
        }
        arrived
    }
}

#[test]
fn streams_are_delivered_in_packets_of_the_configured_size() {
    let mut simulation = Simulation::new([&key(1), &key(1)], PERFECT, 1);
    assert!(simulation.connect());
    assert_eq!(
        simulation.now,
        Time::from_nanos(30 * MS),
        "three round trips: one more than without encryption"
    );
    let data = pattern(1_000_000, 1);
    assert!(simulation.transfer(0, &data) == data);
    assert!(simulation.transfer(1, &data) == data);
    // The largest multiple of the AES block size that fits into 1500 bytes.
    assert_eq!(simulation.largest, 1496 - 28);
    assert_eq!(simulation.ignored, []);
    let stats = simulation.ends[0].as_mut().unwrap().stats(simulation.now, false);
    assert_eq!((stats.total.pkt_retrans, stats.total.pkt_ignored), (0, 0));
    assert_eq!(OVERHEAD, 28);

    simulation.ends[0].as_mut().unwrap().shutdown(simulation.now);
    while simulation.ends[1].as_ref().unwrap().close_reason().is_none() {
        assert!(simulation.step());
    }
    assert_eq!(simulation.ends[1].as_ref().unwrap().close_reason(), Some(CloseReason::Peer));
}

#[test]
fn another_key_gets_no_answer() {
    let mut simulation = Simulation::new([&key(1), &key(2)], PERFECT, 1);
    assert!(!simulation.connect());
    assert!(simulation.initiator.has_timed_out(simulation.now) && simulation.sessions[0].is_none());
    assert_eq!(simulation.ignored, [Refused::WrongKey; 12]);
}

#[test]
fn ends_with_and_without_a_key_do_not_connect() {
    // A plain client is refused at once.
    let config = config("udt");
    let mut plain = Connection::connect(&config, Time::ZERO, 11, Seq::new(9), server().ip());
    let mut responder = Responder::new(&key(1), [3; 32], b"here");
    let mut request = plain.poll_transmit(Time::ZERO, 1).unwrap().datagrams.to_vec();
    let Reply::Refuse(refusal) = responder.handle(Time::ZERO, client(), &mut request, || 6) else {
        panic!("not refused")
    };
    assert_eq!(refusal.len(), request.len());
    plain.handle_datagram(Time::ZERO, &refusal);
    assert_eq!(plain.close_reason(), Some(CloseReason::Refused));
    // A plain listener ignores a hello.
    let mut initiator = Initiator::new(&key(1), Time::ZERO, 5, Dur::from_millis(3_000)).unwrap();
    let hello = initiator.poll(Time::ZERO).unwrap();
    let listener = Listener::new(common::KEY, SocketType::Stream);
    assert_eq!(listener.handle(Time::ZERO, client(), hello), Answer::Ignore);
}

/// Regression: loss reports arrived, nothing was retransmitted, and the connection timed out.
#[test]
fn lost_retransmissions_are_repeated() {
    let seed = 461_623_177_719_057_632;
    let path = Path {
        delay: Dur::from_millis(1),
        loss: 0.134_352_547_291_989_13,
        duplicate: 0.048_157_843_765_603_09,
        ..PERFECT
    };
    let mut simulation = Simulation::new([&key(1), &key(1)], path, seed);
    assert!(simulation.connect());
    let data = pattern(22_785, seed);
    assert!(simulation.transfer(0, &data) == data);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Corrupted and replayed datagrams do not reach the connection.
    #[test]
    fn streams_are_delivered(
        delay in 1u64..40,
        jitter in 0u64..8,
        loss in 0.0..0.15f64,
        duplicate in 0.0..0.1f64,
        flip in 0.0..0.05f64,
        seed: u64,
        length in 0usize..200_000,
    ) {
        let [delay, jitter] = [delay, jitter].map(Dur::from_millis);
        let path = Path { delay, jitter, loss, duplicate, flip, ..PERFECT };
        let mut simulation = Simulation::new([&key(1), &key(1)], path, seed);
        prop_assume!(simulation.connect());
        let data = pattern(length, seed);
        prop_assert!(simulation.transfer(0, &data) == data);
        prop_assert!(simulation.transfer(1, &data) == data);
    }
}
