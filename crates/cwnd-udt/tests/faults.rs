//! What goes wrong around real sockets: peers that die, requests that lead nowhere, damaged datagrams,
//! and a thousand connections on a port.

#![cfg(all(unix, feature = "net"))]

mod common;
mod support;

use common::Random;
use cwnd::Dur;
use cwnd_udt::handshake::{Handshake, Request, VERSION};
use cwnd_udt::packet::{Body, Control, Packet};
use cwnd_udt::{Config, Endpoint, Seq, SocketType, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};
use support::reference::{self, Reference};
use support::relay::{Faults, Relay};
use support::{Hash, PATIENCE, local, patient, recv_stream, send_stream, stream_config};

const MB: u64 = 1_000_000;

/// Who measures a rate is alone with the machine, as far as these tests go.
static MACHINE: RwLock<()> = RwLock::new(());

fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + PATIENCE)
}

/// UDT4's 46 s of patience are a minute of tests.
fn impatient() -> Config {
    Config { patience: Dur::from_millis(10_000), ..stream_config("udt") }
}

/// What `wait` ends with: an error of one of the kinds of a peer that is gone.
fn ends_as_gone(what: &str, wait: impl FnOnce() -> std::io::Result<()>) {
    let began = Instant::now();
    let error = wait().expect_err(what);
    println!("{what}: {error}, after {:.1} s", began.elapsed().as_secs_f64());
    let kinds = [ErrorKind::ConnectionAborted, ErrorKind::ConnectionRefused, ErrorKind::BrokenPipe];
    assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
}

/// A peer's process is killed while there is no connection, an idle one, one that it sends or receives
/// on, and one that is being closed.
#[test]
fn a_killed_peer_is_noticed() {
    let _with_others = shared();
    if !reference::is_here() {
        return;
    }
    let connect = |words: &str| {
        let (reference, to) = Reference::listen(words);
        let stream = UdtStream::connect(to, &impatient()).unwrap();
        patient(&stream);
        (reference, stream)
    };
    let read_all = |mut stream: &UdtStream| loop {
        if stream.read(&mut [0; 1 << 16])? == 0 {
            return Ok(());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut reference, to) = Reference::listen("");
            reference.kill();
            let error = UdtStream::connect(to, &stream_config("udt")).unwrap_err();
            let kinds = [ErrorKind::ConnectionRefused, ErrorKind::TimedOut];
            assert!(kinds.contains(&error.kind()), "{error:?}");
        });
        scope.spawn(|| {
            let (mut reference, stream) = connect("--hold");
            reference.kill();
            ends_as_gone("idle", || read_all(&stream));
        });
        scope.spawn(|| {
            let (mut reference, stream) = connect("--send 100000000000 --plain");
            recv_stream(&stream, MB).unwrap();
            reference.kill();
            ends_as_gone("receiving", || read_all(&stream));
        });
        scope.spawn(|| {
            let (mut reference, stream) = connect("--recv 100000000000 --plain");
            send_stream(&stream, MB, 1).unwrap();
            reference.kill();
            ends_as_gone("sending", || send_stream(&stream, u64::MAX, 1).map(drop));
        });
        scope.spawn(|| {
            // Nobody reads: what does not fit into the peer's window stays.
            let (mut reference, stream) = connect("--hold");
            stream.set_write_timeout(Some(Duration::from_secs(2)));
            send_stream(&stream, u64::MAX, 1).unwrap_err();
            stream.finish();
            reference.kill();
            ends_as_gone("closing", || stream.close_until(soon()));
        });
    });
}

/// A client's end of a handshake, by hand.
struct Asker {
    socket: UdpSocket,
    asked: Handshake,
}

impl Asker {
    fn new(to: SocketAddr, random: &mut Random) -> Self {
        let socket = UdpSocket::bind(local()).unwrap();
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut asker = Asker {
            socket,
            asked: Handshake {
                version: VERSION,
                socket_type: SocketType::Stream,
                initial: Seq::new(0),
                packet_size: 1500,
                flow_window: 8192,
                request: Request::Connect,
                socket: 0,
                cookie: 0,
                peer: [0; 16],
            },
        };
        asker.become_another(random);
        asker
    }

    /// Asks as another socket of the same address.
    fn become_another(&mut self, random: &mut Random) {
        self.asked.socket = 1 + random.below((1 << 31) - 1) as u32;
        self.asked.initial = Seq::new(random.next() as u32);
    }

    fn send(&self, request: Request, cookie: u32) {
        let mut bytes = [0; 64];
        Control::Handshake(Handshake { request, cookie, ..self.asked }).encode(0, 0, &mut bytes);
        // A full buffer at the other side is no matter.
        let _ = self.socket.send(&bytes);
    }

    fn answer(&self) -> Option<Handshake> {
        let mut bytes = [0; 2000];
        let length = self.socket.recv(&mut bytes).ok()?;
        match Packet::parse(&bytes[..length]).ok()?.body {
            Body::Control(Control::Handshake(answer)) => Some(answer),
            _ => None,
        }
    }

    fn cookie(&self) -> u32 {
        for _ in 0..20 {
            self.send(Request::Connect, 0);
            if let Some(answer) = self.answer() {
                return answer.cookie;
            }
        }
        panic!("no cookie")
    }
}

/// A client that opens a connection and is never heard again; others are served meanwhile.
#[test]
fn a_half_open_connection_ends() {
    let _with_others = shared();
    let config = impatient();
    let listener = UdtListener::bind(local(), &config).unwrap();
    let asker = Asker::new(listener.local_addr(), &mut Random(1));
    let cookie = asker.cookie();
    asker.send(Request::Agree, cookie);
    let (silent, _) = listener.accept_until(soon()).unwrap();
    assert_eq!(asker.answer().unwrap().request, Request::Agree);
    patient(&silent);

    let to = listener.local_addr();
    let client = std::thread::spawn(move || {
        let stream = UdtStream::connect(to, &config).unwrap();
        let hash = send_stream(&stream, MB, 3).unwrap();
        stream.close_until(soon()).unwrap();
        hash
    });
    let (stream, _) = listener.accept_until(soon()).unwrap();
    patient(&stream);
    let hash = recv_stream(&stream, MB).unwrap();
    assert_eq!(client.join().unwrap(), hash);
    ends_as_gone("half open", || (&silent).read(&mut [0]).map(drop));
}

/// Sends requests until it is over: `per_second` with guessed cookies, or with one that is good.
fn flood(to: SocketAddr, (per_second, good): (u64, bool), over: &AtomicBool, sent: &AtomicU64) {
    let mut random = Random(7);
    let mut asker = Asker::new(to, &mut random);
    let cookie = if good { asker.cookie() } else { 0 };
    let began = Instant::now();
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        let due = (began.elapsed().as_secs_f64() * per_second as f64) as u64;
        while count < due {
            asker.become_another(&mut random);
            match (good, count % 2) {
                (true, _) => asker.send(Request::Agree, cookie),
                (false, 0) => asker.send(Request::Connect, 0),
                (false, _) => asker.send(Request::Agree, random.next() as u32),
            }
            count += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    sent.fetch_add(count, Ordering::Relaxed);
}

/// Bytes of memory that this process really uses.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).map_or(0, |pages| pages.parse().unwrap());
    4096 * pages
}

/// The rate of a transfer without and with each kind of flood: it keeps at least this share.
fn a_transfer_beside_floods(config: &Config, per_second: u64, share: f64) {
    let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    let listener = UdtListener::bind(local(), config).unwrap();
    let to = listener.local_addr();
    let client = UdtStream::connect(to, config).unwrap();
    let (server, _) = listener.accept_until(soon()).unwrap();
    let (over, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    let rate = |span: Duration| {
        let (before, began) = (arrived.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(span);
        let bytes = arrived.load(Ordering::Relaxed) - before;
        8e-6 * bytes as f64 / began.elapsed().as_secs_f64()
    };
    let outcomes = std::thread::scope(|scope| {
        scope.spawn(|| {
            let piece = vec![1; 1 << 20];
            while !over.load(Ordering::Relaxed) {
                (&client).write_all(&piece).unwrap();
            }
            client.abort();
        });
        scope.spawn(|| {
            let mut piece = vec![0; 1 << 20];
            while let Ok(count @ 1..) = (&server).read(&mut piece) {
                arrived.fetch_add(count as u64, Ordering::Relaxed);
            }
        });
        let span = Duration::from_secs(1);
        std::thread::sleep(span);
        let outcomes = [false, true].map(|good| {
            let (mut alone, mut beside) = (0.0_f64, 0.0_f64);
            let (requests, memory) = (AtomicU64::new(0), resident());
            // The best of some rounds: anything may have the machine for a while.
            for _ in 0..3 {
                alone = alone.max(rate(span));
                let enough = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| flood(to, (per_second, good), &enough, &requests));
                    beside = beside.max(rate(span));
                    enough.store(true, Ordering::Relaxed);
                });
            }
            let late = Some(Instant::now() + Duration::from_millis(20));
            // Who guesses is never let in.
            assert_eq!(listener.accept_until(late).is_ok(), good);
            (good, alone, beside, requests.into_inner(), resident().saturating_sub(memory))
        });
        over.store(true, Ordering::Relaxed);
        outcomes
    });
    for (good, alone, beside, requests, more) in outcomes {
        println!(
            "good cookies {good}: {alone:.0} Mb/s alone, {beside:.0} beside {requests} requests, \
             {more} bytes more"
        );
        assert!(requests > per_second, "the flood is a trickle");
        assert!(beside > share * alone, "{beside:.0} of {alone:.0} Mb/s, good cookies {good}");
        assert!(more < 64 << 20, "{more} bytes");
    }
}

/// A transfer that leaves the machine time goes on, whatever else the machine does.
#[test]
fn a_transfer_goes_on_in_a_flood() {
    let config = stream_config("udt");
    // Buffers that do not count beside what strangers might take.
    let config =
        Config { send_buffer: 1024, receive_buffer: 1024, rate_limit: Some(100e6), ..config };
    a_transfer_beside_floods(&config, 10_000, 0.1);
}

#[test]
#[ignore = "a rate, which needs an idle machine: make bench-udt runs it"]
fn a_transfer_keeps_its_rate_in_a_flood() {
    let config = Config { rate_limit: Some(1e9), ..stream_config("udt") };
    a_transfer_beside_floods(&config, 10_000, 0.9);
}

/// A connection through damage may come to nothing: it is not waited for any longer.
const HURRY: Duration = Duration::from_secs(6);

/// Connects through a relay with these faults there and back, sends and closes: the hashes of what was
/// sent and what arrived, if all went well.
fn damaged(
    listener: &UdtListener,
    faults: Faults,
    seed: u64,
    size: u64,
) -> Option<(Hash, std::io::Result<Hash>)> {
    let relay = Relay::start(listener.local_addr(), [faults; 2], seed);
    let config = Config { connect_timeout: Dur::from_millis(6_000), ..stream_config("udt") };
    let client = UdtStream::connect(relay.addr, &config).ok()?;
    client.set_write_timeout(Some(HURRY));
    let sender = std::thread::spawn(move || {
        let hash = send_stream(&client, size, seed);
        let _ = client.close_until(Some(Instant::now() + HURRY));
        hash
    });
    let server = listener.accept_until(Some(Instant::now() + HURRY)).ok();
    let arrived = server.as_ref().map(|(stream, _)| {
        stream.set_read_timeout(Some(HURRY));
        recv_stream(stream, size)
    });
    drop(server);
    let sent = sender.join().unwrap();
    Some((sent.ok()?, arrived?))
}

/// Cut, flipped and repeated datagrams at every stage, handshakes and farewells included. UDT has no
/// checksum of its own: what arrives may be wrong. Nothing hangs, and the port serves the next client.
#[test]
fn damaged_datagrams_are_survived() {
    let _with_others = shared();
    let held = Duration::from_millis(3);
    let some = Faults { loss: 0.01, duplicate: 0.02, reorder: 0.02, held, ..Faults::default() };
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    for seed in 0..12 {
        let faults = match seed % 4 {
            0 => Faults { truncate: 0.02, ..some },
            1 => Faults { flip: 0.02, ..some },
            2 => Faults { truncate: 0.2, flip: 0.2, replay: 0.2, ..some },
            _ => Faults { replay: 0.1, ..some },
        };
        let outcome = damaged(&listener, faults, seed, MB);
        println!("{seed}: {outcome:?}");
        if seed % 4 == 3 {
            let (sent, arrived) = outcome.expect("a connection");
            assert_eq!(arrived.expect("a whole stream"), sent);
        }
        // Those that never came to anything.
        while listener.accept_until(Some(Instant::now())).is_ok() {}
        let (sent, arrived) = damaged(&listener, Faults::default(), seed, MB).expect("a client");
        assert_eq!(arrived.unwrap(), sent);
    }
}

const MANY: usize = 1000;
const LITTLE: u64 = 10_000;

/// Answers `MANY` connections, once all are there.
fn echo(listener: &UdtListener) {
    let streams: Vec<_> =
        (0..MANY).map(|_| listener.accept_until(soon()).expect("a connection").0).collect();
    let mut bytes = vec![0; LITTLE as usize];
    for mut stream in &streams {
        patient(stream);
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    }
    for stream in &streams {
        assert_eq!(stream.read_until(&mut bytes, soon()).unwrap(), 0);
    }
}

/// A thousand connections at once between two ports.
#[test]
fn a_thousand_connections_share_a_port() {
    let _with_others = shared();
    const THREADS: usize = 8;
    let config = Config { connect_timeout: Dur::from_millis(60_000), ..stream_config("udt") };
    let listener = UdtListener::bind(local(), &config).unwrap();
    let to = listener.local_addr();
    let endpoint = Endpoint::bind(local()).unwrap();
    let all_there = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&listener));
        for thread in 0..THREADS {
            let (endpoint, config, all_there) = (&endpoint, &config, &all_there);
            scope.spawn(move || {
                let mine: Vec<_> = (thread..MANY)
                    .step_by(THREADS)
                    .map(|_| endpoint.connect(to, config).unwrap())
                    .collect();
                all_there.wait();
                let sent: Vec<_> = (mine.iter().zip(0..))
                    .map(|(stream, n)| {
                        patient(stream);
                        send_stream(stream, LITTLE, 1000 * thread as u64 + n).unwrap()
                    })
                    .collect();
                for (stream, hash) in mine.iter().zip(sent) {
                    assert_eq!(recv_stream(stream, LITTLE).unwrap(), hash);
                }
                all_there.wait();
                mine.into_iter().for_each(|stream| stream.close_until(soon()).unwrap());
            });
        }
    });
}

/// The same with UDT4's clients: the port does not mix them up.
#[test]
fn a_thousand_clients_of_the_reference_share_a_port() {
    let _with_others = shared();
    if !reference::is_here() {
        return;
    }
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let words = format!("--count {MANY} --send {LITTLE} --recv {LITTLE} --hold");
    let to = listener.local_addr();
    let mut clients = Reference::start(&format!("connect --to {to} {words}"));
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&listener));
        let mut hashes = Vec::new();
        while hashes.len() < 2 * MANY {
            let line = clients.line(PATIENCE).expect("a line");
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                ["sent" | "received", _, hash, _] => hashes.push(hash.to_owned()),
                ["connected"] => {}
                _ => panic!("{line}"),
            }
        }
        assert!(hashes.iter().all(|hash| *hash == hashes[0]));
        clients.go_on();
    });
}
