//! Two connections in simulated time, and a path between them that loses, delays, reorders,
//! duplicates and corrupts datagrams at random, reproducibly by its seed.

#![allow(dead_code, reason = "each test uses a part")]

use cwnd::{Dur, Spec, Time};
use cwnd_udt::handshake::{Handshake, Request, VERSION};
use cwnd_udt::packet::Control;
use cwnd_udt::secure::{Credentials, packet_size};
use cwnd_udt::{Answer, Config, Connection, Event, Listener, Seq, SocketType};
use sealing::{Opened, Sealing};
use std::collections::BTreeMap;
use std::net::SocketAddr;

mod sealing;

pub(crate) const KEY: [u8; 16] = [7; 16];

pub(crate) fn client() -> SocketAddr {
    "192.0.2.1:1000".parse().unwrap()
}

pub(crate) fn server() -> SocketAddr {
    "192.0.2.2:2000".parse().unwrap()
}

/// The first request of a client's stream connection.
pub(crate) fn request() -> Handshake {
    Handshake {
        version: VERSION,
        socket_type: SocketType::Stream,
        initial: Seq::new(9),
        packet_size: 1500,
        flow_window: 8192,
        request: Request::Connect,
        socket: 11,
        cookie: 0,
        peer: [0; 16],
    }
}

/// The datagram of a control packet to a socket.
pub(crate) fn encoded(control: Control<'_>, to: u32) -> Vec<u8> {
    let mut bytes = vec![0; 1500];
    let length = control.encode(0, to, &mut bytes);
    bytes.truncate(length);
    bytes
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < probability
    }
}

/// A key of consecutive bytes.
pub(crate) fn key(first: u8) -> cwnd_udt::secure::Key {
    let bytes: [u8; 32] = std::array::from_fn(|at| at as u8 + first);
    cwnd_udt::secure::Key::from_file_contents(&bytes).unwrap()
}

/// The impairments of the path, equal in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub delay: Dur,
    /// The largest additional random delay, which reorders datagrams.
    pub jitter: Dur,
    /// The transmission time of a byte in nanoseconds; 0 is an unlimited rate.
    pub nanos_per_byte: f64,
    /// The queue in bytes.
    pub queue: f64,
    pub loss: f64,
    pub duplicate: f64,
    pub flip: f64,
    /// The period in which all datagrams are lost.
    pub outage: (Time, Time),
    /// Larger datagrams are lost.
    pub largest: usize,
}

pub(crate) const PERFECT: Path = Path {
    delay: Dur::from_millis(5),
    jitter: Dur::ZERO,
    nanos_per_byte: 0.0,
    queue: 1e12,
    loss: 0.0,
    duplicate: 0.0,
    flip: 0.0,
    outage: (Time::NEVER, Time::NEVER),
    largest: usize::MAX,
};

/// Two connections and the path between them.
pub(crate) struct Pair {
    pub now: Time,
    pub path: Path,
    pub random: Random,
    pub ends: [Connection; 2],
    pub events: [Vec<Event>; 2],
    /// Datagrams in transit by arrival time and a tie breaker: the receiving end and the bytes.
    in_transit: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    free_at: [f64; 2],
    order: u64,
    pub datagrams: u64,
    /// The listener until it has accepted the client, and the configuration and the id of its
    /// connection.
    listening: Option<(Listener, Config, u32)>,
    /// All datagrams sent, if they are captured.
    pub captured: Option<Vec<Vec<u8>>>,
    pub most: usize,
    /// Replaces the capacity in acknowledgements to the first end, in packets per second.
    pub capacity: Option<u32>,
    /// An end whose driver is stalled: it receives datagrams, but neither sends nor processes
    /// timers.
    pub stalled: Option<usize>,
    /// The sequence number of a data packet of the first end that is always lost.
    pub hole: Option<u32>,
    /// The encryption, if the ends have keys.
    pub sealing: Option<Sealing>,
}

pub(crate) fn config(law: &str) -> Config {
    let mut config = Config::new(Spec::parse(law).unwrap());
    config.send_buffer = 256;
    config.receive_buffer = 256;
    config
}

pub(crate) fn messages(law: &str) -> Config {
    Config { socket_type: SocketType::Message, ..config(law) }
}

impl Pair {
    pub(crate) fn new(ends: [Connection; 2], path: Path, seed: u64) -> Self {
        Pair {
            now: Time::ZERO,
            path,
            random: Random(seed),
            ends,
            events: [Vec::new(), Vec::new()],
            in_transit: BTreeMap::new(),
            free_at: [0.0; 2],
            order: 0,
            datagrams: 0,
            listening: None,
            captured: None,
            most: 16,
            capacity: None,
            stalled: None,
            hole: None,
            sealing: None,
        }
    }

    /// A client that connects to a listener.
    pub(crate) fn connecting(configs: [&Config; 2], initial: u32, path: Path, seed: u64) -> Self {
        let [asks, listens] = configs;
        let first = Connection::connect(asks, Time::ZERO, 11, Seq::new(initial), server().ip());
        // A placeholder until the client is accepted.
        let second = Connection::connect(listens, Time::ZERO, 22, Seq::new(0), client().ip());
        let mut pair = Pair::new([first, second], path, seed);
        pair.listening = Some((Listener::new(KEY, listens.socket_type), listens.clone(), 22));
        pair
    }

    /// A client and a listener of one configuration, after they have connected.
    pub(crate) fn open(config: &Config, initial: u32, path: Path, seed: u64) -> Self {
        Pair::connecting([config, config], initial, path, seed).connect()
    }

    /// A client that connects to a listener, both with credentials, in packets that are at most
    /// 1500 bytes large after encryption.
    pub(crate) fn sealed(credentials: [&Credentials; 2], path: Path, seed: u64) -> Self {
        let config = Config { packet_size: packet_size(1500), ..config("cubic") };
        let mut pair = Pair::connecting([&config, &config], 9, path, seed);
        pair.sealing = Some(Sealing::new(credentials));
        pair
    }

    /// Two ends that connect by rendezvous.
    pub(crate) fn rendezvous(
        configs: [&Config; 2],
        initials: [u32; 2],
        path: Path,
        seed: u64,
    ) -> Self {
        let [a, b] = initials.map(Seq::new);
        let first = Connection::rendezvous(configs[0], Time::ZERO, 11, a, server().ip());
        let second = Connection::rendezvous(configs[1], Time::ZERO, 22, b, client().ip());
        Pair::new([first, second], path, seed)
    }

    /// Runs until both ends are connected.
    pub(crate) fn connect(mut self) -> Self {
        assert!(self.try_connect(), "not connected: {:?}", self.events);
        self
    }

    /// Runs until both ends are connected. Returns false if the handshake fails.
    pub(crate) fn try_connect(&mut self) -> bool {
        while self.listening.is_some() || !self.ends.iter().all(Connection::is_open) {
            if !self.step() || self.ends[0].close_reason().is_some() {
                return false;
            }
        }
        true
    }

    /// Whether an end exists and is not stalled.
    fn runs(&self, end: usize) -> bool {
        let exists = match end {
            0 => self.sealing.as_ref().is_none_or(|sealing| sealing.sessions[0].is_some()),
            _ => self.listening.is_none(),
        };
        exists && self.stalled != Some(end)
    }

    pub(crate) fn send(&mut self, from: usize, mut datagram: Vec<u8>) {
        self.datagrams += 1;
        if let Some(captured) = &mut self.captured {
            captured.push(datagram.clone());
        }
        if let (1, 40, Some(capacity)) = (from, datagram.len(), self.capacity)
            && datagram[..4] == [0x80, 2, 0, 0]
        {
            datagram[36..].copy_from_slice(&capacity.to_be_bytes());
        }
        let path = self.path;
        let now = self.now.as_nanos() as f64;
        let took = datagram.len() as f64 * path.nanos_per_byte;
        let waits = (self.free_at[from] - now).max(0.0);
        let full = path.nanos_per_byte > 0.0 && waits / path.nanos_per_byte > path.queue;
        let out = path.outage.0 <= self.now && self.now < path.outage.1;
        let hole = from == 0 && self.hole.is_some_and(|seq| datagram[..4] == seq.to_be_bytes());
        let large = datagram.len() > path.largest;
        if full || out || hole || large || self.random.chance(path.loss) {
            return;
        }
        self.free_at[from] = now + waits + took;
        if self.random.chance(path.flip) {
            let bit = self.random.below(8 * datagram.len() as u64);
            datagram[bit as usize / 8] ^= 1 << (bit % 8);
        }
        let copies = if self.random.chance(path.duplicate) { 2 } else { 1 };
        for _ in 0..copies {
            let jitter = self.random.below(path.jitter.as_nanos() + 1);
            let late = (waits + took) as u64 + path.delay.as_nanos() + jitter;
            self.order += 1;
            let at = self.now + Dur::from_nanos(late);
            self.in_transit.insert((at, self.order), (1 - from, datagram.clone()));
        }
    }

    /// Sends datagrams of an end's connection, all but the last of one length.
    fn send_plain(&mut self, from: usize, mut datagrams: Vec<Vec<u8>>) {
        if let Some(sealing) = &mut self.sealing {
            datagrams = sealing.seal(from, datagrams);
        }
        datagrams.into_iter().for_each(|datagram| self.send(from, datagram));
    }

    fn transmit(&mut self, end: usize) {
        if let (0, Some(sealing)) = (end, &mut self.sealing)
            && let Some(hello) = sealing.hello(self.now)
        {
            self.send(0, hello);
        }
        if !self.runs(end) {
            return;
        }
        loop {
            let now = self.now;
            let Some(transmit) = self.ends[end].poll_transmit(now, self.most) else { break };
            assert!(transmit.datagrams.len() <= self.most * transmit.segment);
            let datagrams: Vec<_> = transmit.iter().map(<[u8]>::to_vec).collect();
            assert!(!datagrams.is_empty() && datagrams.iter().all(|d| !d.is_empty()));
            self.send_plain(end, datagrams);
        }
        while let Some(event) = self.ends[end].poll_event() {
            self.events[end].push(event);
        }
    }

    /// Delivers a datagram of the path.
    fn receive(&mut self, end: usize, mut datagram: Vec<u8>) {
        let Some(sealing) = &mut self.sealing else { return self.deliver(end, &datagram) };
        match (sealing.open(self.now, end, &mut datagram), &self.listening) {
            (Opened::Nothing, _) => {}
            (Opened::Answer(answer), _) => self.send(1, answer),
            (Opened::Session, None) => unreachable!("accepted before its session is open"),
            (Opened::Session, Some((_, config, _))) => {
                let ip = server().ip();
                self.ends[0] = Connection::connect(config, self.now, 11, Seq::new(9), ip);
            }
            (Opened::Plain(plain), _) => self.deliver(end, &plain),
        }
    }

    /// Delivers a datagram to the connection or the listener of an end.
    pub(crate) fn deliver(&mut self, end: usize, datagram: &[u8]) {
        if let (1, Some((listener, config, id))) = (end, &self.listening) {
            match listener.handle(self.now, client(), datagram) {
                Answer::Ignore => {}
                Answer::Reply(reply) => self.send_plain(1, vec![reply.to_vec()]),
                Answer::Accept(incoming) => {
                    self.ends[1] = Connection::accept(config, self.now, *id, &incoming);
                    self.listening = None;
                }
            }
            return;
        }
        self.ends[end].handle_datagram(self.now, datagram);
    }

    /// Processes the next event. Returns false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        (0..2).for_each(|end| self.transmit(end));
        let wakes =
            (0..2).filter(|end| self.runs(*end)).filter_map(|end| self.ends[end].next_wakeup());
        let hello = self.sealing.as_ref().and_then(|sealing| sealing.next_hello(self.now));
        // A time in the past means at once, which `transmit` has handled.
        let wakes = wakes.chain(hello).map(|at| at.max(self.now + Dur::from_nanos(1)));
        let arrival = self.in_transit.keys().next().map(|(at, _)| *at);
        let Some(next) = wakes.chain(arrival).min() else { return false };
        self.now = next.max(self.now);
        while let Some(entry) = self.in_transit.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (end, datagram) = entry.remove();
            self.receive(end, datagram);
        }
        for end in 0..2 {
            if self.runs(end) {
                self.ends[end].handle_timeout(self.now);
            }
        }
        (0..2).for_each(|end| self.transmit(end));
        true
    }

    pub(crate) fn run_for(&mut self, span: Dur) {
        let end = self.now + span;
        while self.now < end && self.step() {}
    }

    /// Sends `data[end]` from each end to the other, and returns the data that arrives in the same
    /// order.
    pub(crate) fn exchange(&mut self, data: [&[u8]; 2], limit: Dur) -> [Vec<u8>; 2] {
        let deadline = self.now + limit;
        let mut written = [0, 0];
        let mut arrived = [Vec::new(), Vec::new()];
        let mut buffer = vec![0; 5000];
        while (0..2).any(|end| arrived[1 - end].len() < data[end].len()) {
            for end in 0..2 {
                let rest = &data[end][written[end]..];
                let chunk = rest.len().min(1 + self.random.below(9000) as usize);
                written[end] += self.ends[end].write(&rest[..chunk]).unwrap();
                loop {
                    let size = 1 + self.random.below(5000) as usize;
                    let count = self.ends[end].read(self.now, &mut buffer[..size]).unwrap();
                    if count == 0 {
                        break;
                    }
                    arrived[end].extend_from_slice(&buffer[..count]);
                }
            }
            assert!(
                self.now < deadline,
                "late: {:?} of {:?} arrived, {written:?} written\n{:?}\n{:?}",
                [arrived[1].len(), arrived[0].len()],
                [data[0].len(), data[1].len()],
                self.ends[0].stats(self.now, false),
                self.ends[1].stats(self.now, false),
            );
            assert!(self.step(), "nothing left to do");
        }
        let [a, b] = arrived;
        [b, a]
    }
}

/// Both ends of a connection that is open at time 0, with these ids: the client's, and the
/// listener's.
pub(crate) fn ends(config: &Config, ids: [u32; 2], initial: u32) -> [Connection; 2] {
    let now = Time::ZERO;
    let mut client_end = Connection::connect(config, now, ids[0], Seq::new(initial), server().ip());
    let listener = Listener::new(KEY, config.socket_type);
    loop {
        let request = client_end.poll_transmit(now, 1).unwrap().datagrams.to_vec();
        match listener.handle(now, client(), &request) {
            Answer::Ignore => panic!("ignored"),
            Answer::Reply(reply) => client_end.handle_datagram(now, &reply),
            Answer::Accept(incoming) => {
                assert!(
                    incoming.supports_resets,
                    "the request of the first microsecond has a time stamp"
                );
                let mut listener_end = Connection::accept(config, now, ids[1], &incoming);
                client_end
                    .handle_datagram(now, listener_end.poll_transmit(now, 1).unwrap().datagrams);
                assert!(client_end.is_open());
                return [client_end, listener_end];
            }
        }
    }
}

/// Fills `bytes` with random ones.
pub(crate) fn fill(random: &mut Random, bytes: &mut [u8]) {
    for word in bytes.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
    }
}

/// Pseudo-random bytes.
pub(crate) fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(&mut Random(seed), &mut bytes);
    bytes
}
