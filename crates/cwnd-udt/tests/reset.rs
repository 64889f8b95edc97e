//! Connections whose listener has lost them end at once, and nobody else can end them.

#![cfg(all(unix, feature = "net"))]

mod common;
mod support;

use common::Random;
use cwnd::Time;
use cwnd_udt::packet::{Control, HEADER};
use cwnd_udt::reset::{self, LENGTH};
use cwnd_udt::secure::{Credentials, Key, KeyPair};
use cwnd_udt::{CloseReason, Config, Connection, Event, Seq, UdtListener, UdtStream};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::reference::{self, Reference};
use support::{local, patient, stream_config};

/// UDT4's timers would take 46 s.
const SOON: Duration = Duration::from_secs(3);
const KINDS: [&str; 3] = ["plain", "key", "pair"];
const RECEIVER: &str = "CWND_TEST_RECEIVER";

/// The configuration of a client or a listener with credentials of a kind.
fn config(kind: &str, listens: bool) -> Config {
    let pair = |digit: &str| {
        let text = format!("cwnd-private-key-v1 {}=", digit.repeat(43));
        KeyPair::from_file_contents(text.as_bytes()).unwrap()
    };
    let credentials = match kind {
        "plain" => None,
        "key" => {
            let bytes: [u8; 32] = std::array::from_fn(|at| at as u8);
            Some(Credentials::Key(Key::from_file_contents(&bytes).unwrap()))
        }
        _ => {
            let (own, peer) = if listens { ("A", "E") } else { ("E", "A") };
            let peers = vec![pair(peer).public()];
            Some(Credentials::Pair { own: pair(own), peers, psk: None })
        }
    };
    Config { credentials, ..stream_config("udt") }
}

/// A process that receives at a port, which is not there any more after [`Receiver::kill`].
struct Receiver {
    child: Child,
    addr: SocketAddr,
}

impl Receiver {
    fn start(kind: &str, port: u16) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["receiver", "--exact", "--ignored", "--nocapture"])
            .env(RECEIVER, format!("{kind} {port}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        let port = lines.find_map(|line| line.strip_prefix("listens at ")?.parse().ok());
        Receiver { child, addr: SocketAddr::from(([127, 0, 0, 1], port.expect("a port"))) }
    }

    fn kill(self) -> u16 {
        self.addr.port()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
#[ignore = "the process that other tests start"]
fn receiver() {
    let Ok(words) = std::env::var(RECEIVER) else { return };
    let (kind, port) = words.split_once(' ').unwrap();
    let port: u16 = port.parse().unwrap();
    let listener = UdtListener::bind(("127.0.0.1", port), &config(kind, true)).unwrap();
    println!("\nlistens at {}", listener.local_addr().port());
    while let Ok((mut stream, _)) = listener.accept() {
        let mut piece = vec![0; 1 << 16];
        while stream.read(&mut piece).unwrap_or(0) > 0 {}
    }
}

/// Writes until the connection ends: why, and when.
fn pour(mut stream: &UdtStream) -> (std::io::Error, Instant) {
    loop {
        if let Err(error) = stream.write_all(&[7; 1 << 16]) {
            return (error, Instant::now());
        }
    }
}

#[test]
fn a_sender_hears_that_its_receiver_was_restarted() {
    for kind in KINDS {
        let receiver = Receiver::start(kind, 0);
        let client = UdtStream::connect(receiver.addr, &config(kind, false)).unwrap();
        patient(&client);
        let (error, waited) = thread::scope(|scope| {
            let pouring = scope.spawn(|| pour(&client));
            thread::sleep(Duration::from_millis(300));
            let port = receiver.kill();
            thread::sleep(Duration::from_millis(200));
            let begun = Instant::now();
            let _again = Receiver::start(kind, port);
            let (error, ended) = pouring.join().unwrap();
            _again.kill();
            (error, ended.saturating_duration_since(begun))
        });
        println!("{kind}: {waited:?}: {error}");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{kind}: {error}");
        assert!(error.to_string().contains("does not know this connection"), "{error}");
        assert_eq!(client.close_reason(), Some(CloseReason::Reset));
        assert!(waited < SOON, "{kind}: {waited:?}");
    }
}

/// A client that has nothing to send hears of it with its first keep-alive.
#[test]
fn an_idle_client_hears_of_it_too() {
    for kind in KINDS {
        let receiver = Receiver::start(kind, 0);
        let mut client = UdtStream::connect(receiver.addr, &config(kind, false)).unwrap();
        client.write_all(b"something").unwrap();
        let quiet = Instant::now() + SOON;
        while client.unacknowledged() > 0 && Instant::now() < quiet {
            thread::sleep(Duration::from_millis(10));
        }
        let again = Receiver::start(kind, receiver.kill());
        client.set_read_timeout(Some(SOON));
        let error = client.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{kind}: {error}");
        again.kill();
    }
}

/// Somebody ends the receiver's connection with a shutdown that the client never sent.
#[test]
fn a_spoofed_shutdown_ends_both_ends() {
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let client = UdtStream::connect(listener.local_addr(), &stream_config("udt")).unwrap();
    let (server, _) = listener.accept().unwrap();
    patient(&client);
    let now = Instant::now();
    lose(&server);
    let (error, ended) = pour(&client);
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    assert!(ended - now < SOON, "{:?}", ended - now);
}

/// Both ends of a connection without sockets, the server's id `id`.
fn ends(id: u32) -> [Connection; 2] {
    let config = common::config("cubic");
    let now = Time::ZERO;
    let mut near = Connection::connect(&config, now, 4, Seq::new(9), common::server().ip());
    let listener = cwnd_udt::Listener::new([1; 16], config.socket_type);
    loop {
        let asked = near.poll_transmit(now, 1).unwrap();
        match listener.handle(now, common::client(), asked.datagrams) {
            cwnd_udt::Answer::Reply(reply) => near.handle_datagram(now, &reply),
            cwnd_udt::Answer::Accept(asked) => {
                assert!(
                    asked.knows_resets,
                    "the request of the first microsecond has a time stamp"
                );
                let mut far = Connection::accept(&config, now, id, &asked);
                let answer = far.poll_transmit(now, 1).unwrap().datagrams.to_vec();
                near.handle_datagram(now, &answer);
                assert!(near.is_open());
                return [near, far];
            }
            cwnd_udt::Answer::Ignore => panic!("ignored"),
        }
    }
}

#[test]
fn a_reset_counts_if_it_repeats_what_was_sent() {
    let now = Time::from_nanos(5_000_000);
    let sent = |near: &mut Connection| {
        near.write(&[5; 4000]).unwrap();
        let batch = near.poll_transmit(now, 9).unwrap();
        let first = batch.iter().next().unwrap();
        <[u8; HEADER]>::try_from(&first[..HEADER]).unwrap()
    };
    let [mut near, _] = ends(7);
    let header = sent(&mut near);
    for bit in 0..8 * HEADER {
        let mut forged = header;
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(!near.handle_reset(now, &forged), "bit {bit}");
    }
    assert!(!near.handle_reset(now, &[0; HEADER]));
    assert!(near.is_open());
    assert!(near.handle_reset(now, &header));
    assert_eq!(near.close_reason(), Some(CloseReason::Reset));
    assert!(!near.handle_reset(now, &header), "it has ended already");
    assert_eq!(near.next_wakeup(), None, "nobody is there to be told");
    let events: Vec<_> = std::iter::from_fn(|| near.poll_event()).collect();
    assert_eq!(events.last(), Some(&Event::Closed(CloseReason::Reset)));

    // What was delivered is not outstanding: an old header ends nothing.
    let [mut near, mut far] = ends(7);
    let header = sent(&mut near);
    let later = Time::from_nanos(6_000_000);
    let mut ack = [0; 64];
    let next = Seq::new(9).plus(3);
    let length = Control::LightAck(next).encode(1, 4, &mut ack);
    near.handle_datagram(later, &ack[..length]);
    assert_eq!(near.unacknowledged(), 0);
    assert!(!near.handle_reset(later, &header));
    assert!(near.is_open());
    // A control packet that was sent lately.
    far.write(b"x").unwrap();
    let data = far.poll_transmit(later, 1).unwrap().datagrams.to_vec();
    near.handle_datagram(later, &data);
    let told = near.poll_transmit(later, 1).unwrap().datagrams.to_vec();
    let answer = reset::answer(&told).expect("an odd id");
    assert!(answer.len() <= told.len());
    assert!(near.handle_reset(later, &reset::parse(&answer).unwrap()));
}

/// Datagrams to ids that are not known: no more answers than the budget, and no more bytes than were sent.
#[test]
fn a_flood_gets_few_and_short_answers() {
    const MANY: usize = 20_000;
    for kind in KINDS {
        let listener = UdtListener::bind(local(), &config(kind, true)).unwrap();
        let flooder = UdpSocket::bind(local()).unwrap();
        flooder.connect(listener.local_addr()).unwrap();
        flooder.set_nonblocking(true).unwrap();
        let mut random = Random(11);
        let (mut sent, mut answers, mut bytes) = (0, 0, 0);
        let mut answer = [0; 2048];
        let mut receive = |wait: bool| {
            let deadline = Instant::now() + Duration::from_millis(300);
            loop {
                match flooder.recv(&mut answer) {
                    Ok(length) => {
                        answers += 1;
                        bytes += length;
                        let short = if kind == "plain" { LENGTH } else { 28 };
                        assert_eq!(length, short, "{kind}");
                    }
                    Err(_) if wait && Instant::now() < deadline => thread::yield_now(),
                    Err(_) => break,
                }
            }
        };
        let begun = Instant::now();
        for _ in 0..MANY {
            let mut datagram = [0; 44];
            for word in datagram.chunks_mut(4) {
                word.copy_from_slice(&(random.next() as u32).to_be_bytes());
            }
            if kind == "plain" {
                datagram[0] &= 0x7f;
                datagram[15] |= 1;
            } else {
                datagram[0] = 0xf4;
            }
            sent += flooder.send(&datagram).unwrap_or(0);
            receive(false);
        }
        let took = begun.elapsed();
        receive(true);
        println!("{kind}: {answers} answers to {MANY} in {took:?}");
        assert!(answers > 0, "{kind}");
        assert!(bytes <= sent, "{kind}: {bytes} bytes for {sent}");
        // 1,024 at once and 20,000 a second.
        let budget = 1_100.0 + 20_000.0 * (took.as_secs_f64() + 0.3);
        assert!(f64::from(answers) <= budget, "{kind}: {answers} answers in {took:?}");
    }
}

/// Between a client and a listener: passes datagrams on and can say something in the listener's name.
struct Middle {
    front: UdpSocket,
    back: UdpSocket,
    client: Mutex<Option<SocketAddr>>,
    /// Datagrams of the client, and resets to it.
    seen: [AtomicUsize; 2],
    over: AtomicBool,
}

impl Middle {
    fn new(to: SocketAddr) -> Self {
        let [front, back] = [(); 2].map(|()| UdpSocket::bind(local()).unwrap());
        back.connect(to).unwrap();
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        }
        Middle {
            front,
            back,
            client: Mutex::default(),
            seen: Default::default(),
            over: AtomicBool::new(false),
        }
    }

    fn addr(&self) -> SocketAddr {
        self.front.local_addr().unwrap()
    }

    fn say(&self, datagram: &[u8]) {
        let client = self.client.lock().unwrap().expect("a client");
        self.front.send_to(datagram, client).unwrap();
    }

    /// Passes datagrams on until it is over, in two threads.
    fn run<'a>(&'a self, scope: &'a thread::Scope<'a, '_>) {
        scope.spawn(|| {
            let mut bytes = [0; 2048];
            while !self.over.load(Ordering::Relaxed) {
                if let Ok((length, from)) = self.front.recv_from(&mut bytes) {
                    *self.client.lock().unwrap() = Some(from);
                    self.seen[0].fetch_add(1, Ordering::Relaxed);
                    let _ = self.back.send(&bytes[..length]);
                }
            }
        });
        scope.spawn(|| {
            let mut bytes = [0; 2048];
            while !self.over.load(Ordering::Relaxed) {
                if let Ok(length) = self.back.recv(&mut bytes) {
                    let datagram = &bytes[..length];
                    let reset = reset::parse(datagram).is_some() || datagram[0] == 0xf8;
                    self.seen[1].fetch_add(usize::from(reset), Ordering::Relaxed);
                    self.say(datagram);
                }
            }
        });
    }

    fn seen(&self) -> [usize; 2] {
        [0, 1].map(|which| self.seen[which].load(Ordering::Relaxed))
    }
}

/// Ends a connection at the listener's side as a shutdown of its client would.
fn lose(server: &UdtStream) {
    server.look(|connection| {
        let mut shutdown = [0; 32];
        let length = Control::Shutdown.encode(0, connection.id(), &mut shutdown);
        connection.handle_datagram(Time::from_nanos(1), &shutdown[..length]);
    });
}

/// Resets that somebody on the way makes up do not end a connection.
#[test]
fn forged_resets_change_nothing() {
    for kind in KINDS {
        let listener = UdtListener::bind(local(), &config(kind, true)).unwrap();
        let middle = Middle::new(listener.local_addr());
        thread::scope(|scope| {
            middle.run(scope);
            let client = UdtStream::connect(middle.addr(), &config(kind, false)).unwrap();
            let (server, _) = listener.accept().unwrap();
            patient(&server);
            let mut random = Random(12);
            for _ in 0..2_000 {
                let mut bytes = [0; 28];
                for word in bytes.chunks_mut(4) {
                    word.copy_from_slice(&(random.next() as u32).to_be_bytes());
                }
                let plain = kind == "plain";
                bytes[0] = if plain { 0xff } else { 0xf8 };
                if plain {
                    bytes[1..4].copy_from_slice(&[0xff, 0x43, 0x58]);
                }
                middle.say(&bytes[..if plain { LENGTH } else { 28 }]);
            }
            (&client).write_all(b"still here").unwrap();
            let mut text = [0; 10];
            (&server).read_exact(&mut text).unwrap();
            assert_eq!(&text, b"still here", "{kind}");
            assert_eq!(client.close_reason(), None);
            middle.over.store(true, Ordering::Relaxed);
        });
    }
}

/// A client of UDT4 gets an even id, and no reset when its connection is not known any more.
#[test]
fn udt4_is_never_sent_one() {
    if !reference::is_here() {
        return;
    }
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let middle = Middle::new(listener.local_addr());
    thread::scope(|scope| {
        middle.run(scope);
        let to = middle.addr();
        let client = Reference::start(&format!("connect --to {to} --send 200000000"));
        let (server, _) = listener.accept().unwrap();
        client.expect("connected");
        assert_eq!(server.look(|connection| connection.id()) % 2, 0);
        lose(&server);
        drop(server);
        thread::sleep(Duration::from_millis(200));
        let [before, _] = middle.seen();
        thread::sleep(Duration::from_millis(1500));
        let [after, resets] = middle.seen();
        middle.over.store(true, Ordering::Relaxed);
        assert!(after > before, "the client has given up");
        assert_eq!(resets, 0);
    });
    // The same with this crate's client, which is sent one.
    let middle = Middle::new(listener.local_addr());
    thread::scope(|scope| {
        middle.run(scope);
        let client = UdtStream::connect(middle.addr(), &stream_config("udt")).unwrap();
        let (server, _) = listener.accept().unwrap();
        assert_eq!(server.look(|connection| connection.id()) % 2, 1);
        lose(&server);
        drop(server);
        patient(&client);
        assert_eq!(pour(&client).0.kind(), ErrorKind::ConnectionReset);
        assert!(middle.seen()[1] > 0);
        middle.over.store(true, Ordering::Relaxed);
    });
}
