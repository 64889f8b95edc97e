//! Sockets with a key, over loopback and over bad networks.

#![cfg(all(unix, feature = "net"))]

mod common;
mod support;

use common::Random;
use cwnd::Dur;
use cwnd_udt::secure::{Credentials, Key};
use cwnd_udt::{Config, Endpoint, SocketType, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::relay::{Faults, Relay};
use support::{local, patient, recv_stream, send_stream, stream_config};

const MB: u64 = 1_000_000;

fn key(first: u8) -> Option<Key> {
    let bytes: [u8; 32] = std::array::from_fn(|at| at as u8 + first);
    Some(Key::from_file_contents(&bytes).unwrap())
}

fn keyed(law: &str) -> Config {
    Config { credentials: key(1).map(Credentials::Key), ..stream_config(law) }
}

/// One that gives up early.
fn hasty(key: Option<Key>) -> Config {
    Config {
        credentials: key.map(Credentials::Key),
        connect_timeout: Dur::from_millis(700),
        ..stream_config("udt")
    }
}

fn pair(config: &Config) -> [UdtStream; 2] {
    let listener = UdtListener::bind(local(), config).unwrap();
    let client = UdtStream::connect(listener.local_addr(), config).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(peer.port(), client.local_addr().port());
    [client, server].map(|end| {
        patient(&end);
        end
    })
}

/// Bytes arrive as they were sent, from `from` to `to`.
fn carry(from: &UdtStream, to: &UdtStream, bytes: u64, seed: u64) {
    thread::scope(|scope| {
        let sent = scope.spawn(|| send_stream(from, bytes, seed).unwrap());
        assert_eq!(recv_stream(to, bytes).unwrap(), sent.join().unwrap());
    });
}

#[test]
fn a_stream_arrives_as_it_was_sent() {
    for law in ["udt", "cubic"] {
        let [client, server] = pair(&keyed(law));
        thread::scope(|scope| {
            scope.spawn(|| carry(&client, &server, 60 * MB, 7));
            carry(&server, &client, 20 * MB, 8);
        });
        let closed = thread::spawn(move || client.close());
        assert_eq!((&server).read(&mut [0]).unwrap(), 0, "{law}: the peer has closed");
        closed.join().unwrap().unwrap();
    }
}

#[test]
fn packets_of_any_size_fit_with_their_seals() {
    for packet_size in [100, 1_500, 9_000, 65_535] {
        let [client, server] = pair(&Config { packet_size, ..keyed("cubic") });
        carry(&client, &server, 2 * MB, 9);
    }
}

#[test]
fn messages_travel_too() {
    let [client, server] = pair(&Config { socket_type: SocketType::Message, ..keyed("udt") });
    for size in [1, 1424, 1425, 100_000] {
        client.send_message(&vec![7; size], None, true).unwrap();
        assert_eq!(server.next_message_until(None).unwrap(), Some(vec![7; size]));
    }
}

#[test]
fn many_connections_share_a_port_at_each_end() {
    const MANY: usize = 150;
    let small = Config { send_buffer: 64, receive_buffer: 64, ..keyed("udt") };
    let patient = Config { connect_timeout: Dur::from_millis(30_000), ..small.clone() };
    let listener = UdtListener::bind(local(), &small).unwrap();
    let to = listener.local_addr();
    let port = Endpoint::bind(local()).unwrap();
    thread::scope(|scope| {
        for n in 0..MANY {
            let (port, patient) = (&port, &patient);
            scope.spawn(move || {
                let mut stream = port.connect(to, patient).unwrap();
                stream.write_all(&[n as u8; 10_000]).unwrap();
                let mut answer = [0];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(answer[0], n as u8);
            });
        }
        for _ in 0..MANY {
            let (mut stream, _) = listener.accept().unwrap();
            scope.spawn(move || {
                let mut data = [0; 10_000];
                stream.read_exact(&mut data).unwrap();
                assert!(data.iter().all(|byte| *byte == data[0]));
                stream.write_all(&data[..1]).unwrap();
                assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            });
        }
    });
}

/// A client with `theirs` comes to a listener with `ours` and is not let in: what it is told.
fn kept_out(theirs: Option<Key>, ours: Option<Key>) -> (ErrorKind, String) {
    let listener = UdtListener::bind(local(), &hasty(ours)).unwrap();
    let error = UdtStream::connect(listener.local_addr(), &hasty(theirs)).unwrap_err();
    let late = Some(Instant::now() + Duration::from_millis(20));
    assert_eq!(listener.accept_until(late).unwrap_err().kind(), ErrorKind::TimedOut);
    (error.kind(), error.to_string())
}

#[test]
fn who_has_another_key_or_none_is_kept_out() {
    let silence = "nobody answered: no listener there, or none that has this key".to_owned();
    assert_eq!(kept_out(key(2), key(1)), (ErrorKind::TimedOut, silence.clone()));
    assert_eq!(kept_out(key(1), None), (ErrorKind::TimedOut, silence));
    let (kind, refused) = kept_out(None, key(1));
    assert_eq!(kind, ErrorKind::ConnectionRefused);
    assert!(refused.contains("only those who have its key"), "{refused}");
}

#[test]
fn a_listener_with_a_key_still_serves_its_own_after_strangers() {
    let listener = UdtListener::bind(local(), &keyed("udt")).unwrap();
    let to = listener.local_addr();
    UdtStream::connect(to, &hasty(None)).unwrap_err();
    UdtStream::connect(to, &hasty(key(3))).unwrap_err();
    let client = UdtStream::connect(to, &keyed("udt")).unwrap();
    let (server, _) = listener.accept().unwrap();
    carry(&client, &server, MB, 4);
    // A port with a key at its door is free to call others in clear.
    let other = UdtListener::bind(local(), &hasty(None)).unwrap();
    let plain = listener.endpoint().connect(other.local_addr(), &hasty(None)).unwrap();
    carry(&plain, &other.accept().unwrap().0, MB, 5);
}

#[test]
fn there_is_no_rendezvous_with_a_key() {
    let error = UdtStream::rendezvous(local(), local(), &keyed("udt")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("no rendezvous with credentials"));
}

/// Losses, flipped bits, cuts, copies and datagrams from before, at every stage.
#[test]
fn a_hostile_network_changes_nothing() {
    let faults = Faults {
        loss: 0.01,
        duplicate: 0.01,
        reorder: 0.01,
        held: Duration::from_millis(2),
        truncate: 0.005,
        flip: 0.01,
        replay: 0.02,
        ..Faults::default()
    };
    for (seed, law) in [(1, "udt"), (2, "cubic")] {
        let patience = Dur::from_millis(30_000);
        let config = Config { connect_timeout: patience, ..keyed(law) };
        let listener = UdtListener::bind(local(), &config).unwrap();
        let relay = Relay::start(listener.local_addr(), [faults; 2], seed);
        let client = UdtStream::connect(relay.addr, &config).unwrap();
        let (server, _) = listener.accept().unwrap();
        patient(&client);
        patient(&server);
        carry(&client, &server, 5 * MB, seed);
        carry(&server, &client, 5 * MB, seed + 2);
        assert!(relay.counts()[0] > 10, "{law}: nothing was lost");
    }
}

/// Carries datagrams between one client and `target` until `over`, and gives all that it saw.
fn watch(socket: &UdpSocket, target: SocketAddr, over: &AtomicBool) -> Vec<u8> {
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (mut client, mut seen) = (target, Vec::new());
    let mut bytes = [0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        let Ok((count, from)) = socket.recv_from(&mut bytes) else { continue };
        seen.extend_from_slice(&bytes[..count]);
        if from != target {
            client = from;
        }
        socket.send_to(&bytes[..count], if from == target { client } else { target }).unwrap();
    }
    seen
}

/// How often the text of a stream, and UDT's handshake, are to be read on the way.
fn readable(config: &Config) -> [usize; 2] {
    const TEXT: &[u8] = b"It was a dark and stormy night; ";
    let listener = UdtListener::bind(local(), config).unwrap();
    let relay = UdpSocket::bind(local()).unwrap();
    let (over, at) = (AtomicBool::new(false), relay.local_addr().unwrap());
    let seen = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&relay, listener.local_addr(), &over));
        let mut client = UdtStream::connect(at, config).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&TEXT.repeat(1000)).unwrap();
        let mut arrived = vec![0; 1000 * TEXT.len()];
        server.read_exact(&mut arrived).unwrap();
        assert!(arrived == TEXT.repeat(1000));
        over.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    // Eight bytes of a text anywhere are enough; a request says the version and the type of socket.
    let request = [0, 0, 0, 4, 0, 0, 0, 1];
    [&TEXT[..8], &request].map(|words| seen.windows(8).filter(|bytes| bytes == &words).count())
}

#[test]
fn nothing_can_be_read_on_the_way() {
    let [text, requests] = readable(&stream_config("udt"));
    assert!(text > 900 && requests >= 4, "in clear there are {text} and {requests}");
    assert_eq!(readable(&keyed("udt")), [0, 0]);
}

/// Anything at all comes to both ports while a transfer goes on, some of it in the form of the sealing.
#[test]
fn garbage_on_the_ports_disturbs_nobody() {
    let config = keyed("udt");
    let listener = UdtListener::bind(local(), &config).unwrap();
    let client = UdtStream::connect(listener.local_addr(), &config).unwrap();
    let (server, _) = listener.accept().unwrap();
    let targets = [client.local_addr().port(), listener.local_addr().port()];
    let stranger = UdpSocket::bind(local()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| carry(&client, &server, 10 * MB, 5));
        let mut random = Random(11);
        for n in 0..20_000 {
            let mut bytes: Vec<u8> = (0..25).flat_map(|_| random.next().to_le_bytes()).collect();
            // A hello has 72 bytes, an answer 60, a cookie 56; sealed ones any from 28 on.
            bytes.truncate([72, 60, 56, 28, 200][n % 5]);
            if n % 3 > 0 {
                let kind = 0xf1 + random.below(4) as u8;
                bytes[..4].copy_from_slice(&[kind, 1, 0, 0]);
            }
            let _ = stranger.send_to(&bytes, ("127.0.0.1", targets[n / 5 % 2]));
        }
    });
}
