//! Resets: a connection that the listener no longer knows ends at once, and forged resets are
//! ignored.

use crate::common::{self, Random, fill};
use crate::support::reference;
use crate::support::relay::{Faults, Relay};
use crate::support::{connect, local, set_timeouts, stream_config, wait_until};
use cwnd::Time;
use cwnd_udt::packet::{Control, HEADER};
use cwnd_udt::reset::{self, LENGTH};
use cwnd_udt::secure::{Credentials, KeyPair};
use cwnd_udt::{CloseReason, Config, Connection, Event, Seq, UdtListener, UdtStream};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Shorter than UDT4's timeout of 46 s.
const SHORT_TIMEOUT: Duration = Duration::from_secs(20);
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
        "key" => Some(Credentials::Key(common::key(0))),
        _ => {
            let (own, peer) = if listens { ("A", "E") } else { ("E", "A") };
            let peers = vec![pair(peer).public()];
            Some(Credentials::Pair { own: pair(own), peers, psk: None })
        }
    };
    Config { credentials, ..stream_config("udt") }
}

/// A process that receives at a port. [`Receiver::kill`] ends it and returns the port.
struct Receiver {
    child: Child,
    addr: SocketAddr,
}

impl Receiver {
    fn start(kind: &str, port: u16) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["reset::receiver", "--exact", "--ignored", "--nocapture"])
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
#[ignore = "a process that other tests start"]
fn receiver() {
    let Ok(words) = std::env::var(RECEIVER) else { return };
    let (kind, port) = words.split_once(' ').unwrap();
    let port: u16 = port.parse().unwrap();
    let listener = UdtListener::bind(("127.0.0.1", port), &config(kind, true)).unwrap();
    println!("\nlistens at {}", listener.local_addr().port());
    while let Ok((mut stream, _)) = listener.accept() {
        let mut chunk = vec![0; 1 << 16];
        while stream.read(&mut chunk).unwrap_or(0) > 0 {}
    }
}

/// Writes until the connection ends. Returns the error and the time.
fn write_until_error(mut stream: &UdtStream) -> (std::io::Error, Instant) {
    loop {
        if let Err(error) = stream.write_all(&[7; 1 << 16]) {
            return (error, Instant::now());
        }
    }
}

#[test]
fn a_restarted_receiver_resets_its_sender() {
    for kind in KINDS {
        let receiver = Receiver::start(kind, 0);
        let client = UdtStream::connect(receiver.addr, &config(kind, false)).unwrap();
        set_timeouts(&client);
        let (error, waited) = thread::scope(|scope| {
            let writer = scope.spawn(|| write_until_error(&client));
            thread::sleep(Duration::from_millis(300));
            let port = receiver.kill();
            thread::sleep(Duration::from_millis(200));
            let start = Instant::now();
            let _again = Receiver::start(kind, port);
            let (error, ended) = writer.join().unwrap();
            _again.kill();
            (error, ended.saturating_duration_since(start))
        });
        println!("{kind}: {waited:?}: {error}");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{kind}: {error}");
        assert!(error.to_string().contains("does not know this connection"), "{error}");
        assert_eq!(client.close_reason(), Some(CloseReason::Reset));
        assert!(waited < SHORT_TIMEOUT, "{kind}: {waited:?}");
    }
}

/// The client's first keep-alive is answered by a reset.
#[test]
fn a_restarted_receiver_resets_an_idle_client() {
    for kind in KINDS {
        let receiver = Receiver::start(kind, 0);
        let mut client = UdtStream::connect(receiver.addr, &config(kind, false)).unwrap();
        client.write_all(b"something").unwrap();
        wait_until(|| client.unacknowledged() == 0);
        let again = Receiver::start(kind, receiver.kill());
        client.set_read_timeout(Some(SHORT_TIMEOUT));
        let error = client.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{kind}: {error}");
        again.kill();
    }
}

/// A forged shutdown ends the listener's connection, whose reset then ends the client's.
#[test]
fn a_spoofed_shutdown_is_followed_by_a_reset() {
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let [client, server] = connect(&listener, listener.local_addr(), &stream_config("udt"));
    let now = Instant::now();
    spoof_shutdown(&server);
    let (error, ended) = write_until_error(&client);
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    assert!(ended - now < SHORT_TIMEOUT, "{:?}", ended - now);
}

#[test]
fn a_reset_must_echo_a_recent_header() {
    let now = Time::from_nanos(5_000_000);
    let sent = |client_end: &mut Connection| {
        client_end.write(&[5; 4000]).unwrap();
        let batch = client_end.poll_transmit(now, 9).unwrap();
        let first = batch.iter().next().unwrap();
        <[u8; HEADER]>::try_from(&first[..HEADER]).unwrap()
    };
    let config = common::config("cubic");
    let [mut client_end, _] = common::ends(&config, [4, 7], 9);
    let header = sent(&mut client_end);
    for bit in 0..8 * HEADER {
        let mut forged = header;
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(!client_end.handle_reset(now, &forged), "bit {bit}");
    }
    assert!(!client_end.handle_reset(now, &[0; HEADER]));
    assert!(client_end.is_open());
    assert!(client_end.handle_reset(now, &header));
    assert_eq!(client_end.close_reason(), Some(CloseReason::Reset));
    assert!(!client_end.handle_reset(now, &header), "it has ended already");
    assert_eq!(client_end.next_wakeup(), None, "no shutdown is sent");
    let events: Vec<_> = std::iter::from_fn(|| client_end.poll_event()).collect();
    assert_eq!(events.last(), Some(&Event::Closed(CloseReason::Reset)));

    // The header of an acknowledged packet is not accepted.
    let [mut client_end, mut listener_end] = common::ends(&config, [4, 7], 9);
    let header = sent(&mut client_end);
    let later = Time::from_nanos(6_000_000);
    let next = Seq::new(9).plus(3);
    client_end.handle_datagram(later, &common::encoded(Control::LightAck(next), 4));
    assert_eq!(client_end.unacknowledged(), 0);
    assert!(!client_end.handle_reset(later, &header));
    assert!(client_end.is_open());
    // The header of a recent control packet is accepted.
    listener_end.write(b"x").unwrap();
    let data = listener_end.poll_transmit(later, 1).unwrap().datagrams.to_vec();
    client_end.handle_datagram(later, &data);
    let answered_packet = client_end.poll_transmit(later, 1).unwrap().datagrams.to_vec();
    let answer = reset::answer(&answered_packet).expect("an odd id");
    assert!(answer.len() <= answered_packet.len());
    assert!(client_end.handle_reset(later, &reset::parse(&answer).unwrap()));
}

/// Datagrams to unknown ids.
#[test]
fn resets_are_rate_limited_and_not_longer_than_the_datagrams() {
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
        let start = Instant::now();
        for _ in 0..MANY {
            let mut datagram = [0; 44];
            fill(&mut random, &mut datagram);
            if kind == "plain" {
                datagram[0] &= 0x7f;
                datagram[15] |= 1;
            } else {
                datagram[0] = 0xf4;
            }
            sent += flooder.send(&datagram).unwrap_or(0);
            receive(false);
        }
        receive(true);
        let took = start.elapsed();
        println!("{kind}: {answers} answers to {MANY} in {took:?}");
        assert!(answers > 0, "{kind}");
        assert!(bytes <= sent, "{kind}: {bytes} bytes for {sent}");
        // A burst of 1,024 and 20,000 per second.
        let budget = 1_100.0 + 20_000.0 * took.as_secs_f64();
        assert!(f64::from(answers) <= budget, "{kind}: {answers} answers in {took:?}");
    }
}

/// A relay to a listener, and the numbers of datagrams to the listener and of resets from it.
fn counting_relay(listener: &UdtListener) -> (Relay, impl Fn() -> [usize; 2]) {
    let seen = Arc::<[AtomicUsize; 2]>::default();
    let counts = Arc::clone(&seen);
    let relay = Relay::observe(listener.local_addr(), move |to_listener, datagram| {
        if to_listener {
            seen[0].fetch_add(1, Ordering::Relaxed);
        } else if reset::parse(datagram).is_some() || datagram[0] == 0xf8 {
            seen[1].fetch_add(1, Ordering::Relaxed);
        }
    });
    (relay, move || [0, 1].map(|which| counts[which].load(Ordering::Relaxed)))
}

/// Ends the listener's end of a connection with a forged shutdown of its client.
fn spoof_shutdown(server: &UdtStream) {
    server.with_connection(|connection| {
        let shutdown = common::encoded(Control::Shutdown, connection.id());
        connection.handle_datagram(Time::from_nanos(1), &shutdown);
    });
}

/// Random resets, in the listener's name, do not end a connection.
#[test]
fn forged_resets_are_ignored() {
    for kind in KINDS {
        let listener = UdtListener::bind(local(), &config(kind, true)).unwrap();
        let relay = Relay::start(listener.local_addr(), [Faults::default(); 2], 1);
        let [mut client, mut server] = connect(&listener, relay.addr, &config(kind, false));
        let target = ("127.0.0.1", client.local_addr().port());
        let mut random = Random(12);
        for _ in 0..2_000 {
            let mut bytes = [0; 28];
            fill(&mut random, &mut bytes);
            let plain = kind == "plain";
            bytes[0] = if plain { 0xff } else { 0xf8 };
            if plain {
                bytes[1..4].copy_from_slice(&[0xff, 0x43, 0x58]);
            }
            relay.front.send_to(&bytes[..if plain { LENGTH } else { 28 }], target).unwrap();
        }
        client.write_all(b"still here").unwrap();
        let mut text = [0; 10];
        server.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"still here", "{kind}");
        assert_eq!(client.close_reason(), None);
    }
}

/// A UDT4 client gets an even id, and no resets when its connection has ended.
#[test]
fn udt4_receives_no_resets() {
    let Some(udt4) = reference::program() else { return };
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let (relay, seen) = counting_relay(&listener);
    let client = udt4.start(&format!("connect --to {} --send 200000000", relay.addr));
    let (server, _) = listener.accept().unwrap();
    client.expect("connected");
    assert_eq!(server.with_connection(|connection| connection.id()) % 2, 0);
    spoof_shutdown(&server);
    drop(server);
    thread::sleep(Duration::from_millis(200));
    let [before, _] = seen();
    thread::sleep(Duration::from_millis(1500));
    wait_until(|| seen()[0] > before);
    assert_eq!(seen()[1], 0);

    // A client of this crate receives a reset.
    let (relay, seen) = counting_relay(&listener);
    let [client, server] = connect(&listener, relay.addr, &stream_config("udt"));
    assert_eq!(server.with_connection(|connection| connection.id()) % 2, 1);
    spoof_shutdown(&server);
    drop(server);
    assert_eq!(write_until_error(&client).0.kind(), ErrorKind::ConnectionReset);
    assert!(seen()[1] > 0);
}
