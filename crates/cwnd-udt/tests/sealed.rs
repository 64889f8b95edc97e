//! Sockets with a shared key, over loopback and over impaired networks.

use crate::common::{Random, key};
use crate::support::relay::{Faults, Relay};
use crate::support::{
    connect, local, pair, share_a_port, short_timeout, stream_config, transfer,
    transfer_under_attack,
};
use cwnd_udt::secure::{Credentials, Key};
use cwnd_udt::{Config, SocketType, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const MB: u64 = 1_000_000;

fn with_key(key: Option<Key>) -> Config {
    Config { credentials: key.map(Credentials::Key), ..stream_config("udt") }
}

fn keyed(law: &str) -> Config {
    Config { credentials: Some(Credentials::Key(key(1))), ..stream_config(law) }
}

#[test]
fn streams_are_delivered() {
    for law in ["udt", "cubic"] {
        let [client, server] = pair(&keyed(law));
        thread::scope(|scope| {
            scope.spawn(|| transfer(&client, &server, 60 * MB, 7));
            transfer(&server, &client, 20 * MB, 8);
        });
        let closed = thread::spawn(move || client.close());
        assert_eq!((&server).read(&mut [0]).unwrap(), 0, "{law}: the peer has closed");
        closed.join().unwrap().unwrap();
    }
}

#[test]
fn sealed_packets_of_any_size_are_delivered() {
    for packet_size in [100, 1_500, 9_000, 65_535] {
        let [client, server] = pair(&Config { packet_size, ..keyed("cubic") });
        transfer(&client, &server, 2 * MB, 9);
    }
}

#[test]
fn messages_are_delivered() {
    let [client, server] = pair(&Config { socket_type: SocketType::Message, ..keyed("udt") });
    for size in [1, 1424, 1425, 100_000] {
        client.send_message(&vec![7; size], None, true).unwrap();
        assert_eq!(server.next_message_until(None).unwrap(), Some(vec![7; size]));
    }
}

#[test]
fn many_connections_share_a_port() {
    let small = Config { send_buffer: 64, receive_buffer: 64, ..keyed("udt") };
    share_a_port(&small, 150, 10_000);
}

/// Asserts that a listener with the key `listener_key` does not accept a client, and returns the
/// client's error.
fn expect_rejected(client: &Config, listener_key: Option<Key>) -> (ErrorKind, String) {
    let listener = UdtListener::bind(local(), &with_key(listener_key)).unwrap();
    let error = UdtStream::connect(listener.local_addr(), client).unwrap_err();
    let late = Some(Instant::now() + Duration::from_millis(20));
    assert_eq!(listener.accept_until(late).unwrap_err().kind(), ErrorKind::TimedOut);
    (error.kind(), error.to_string())
}

#[test]
fn clients_with_another_key_or_none_are_rejected() {
    let no_answer = "no answer: there is no listener, or it has another key".to_owned();
    for [client_key, listener_key] in [[Some(key(2)), Some(key(1))], [Some(key(1)), None]] {
        let outcome = expect_rejected(&short_timeout(with_key(client_key)), listener_key);
        assert_eq!(outcome, (ErrorKind::TimedOut, no_answer.clone()));
    }
    let (kind, refused) = expect_rejected(&with_key(None), Some(key(1)));
    assert_eq!(kind, ErrorKind::ConnectionRefused);
    assert!(refused.contains("requires credentials"), "{refused}");
}

#[test]
fn a_listener_accepts_its_clients_after_rejected_ones() {
    let listener = UdtListener::bind(local(), &keyed("udt")).unwrap();
    let to = listener.local_addr();
    UdtStream::connect(to, &with_key(None)).unwrap_err();
    UdtStream::connect(to, &short_timeout(with_key(Some(key(3))))).unwrap_err();
    let [client, server] = connect(&listener, to, &keyed("udt"));
    transfer(&client, &server, MB, 4);
    // The port of a listener with a key can open connections without one.
    let other = UdtListener::bind(local(), &with_key(None)).unwrap();
    let plain = listener.endpoint().connect(other.local_addr(), &with_key(None)).unwrap();
    transfer(&plain, &other.accept().unwrap().0, MB, 5);
}

#[test]
fn a_rendezvous_with_a_key_is_rejected() {
    let error = UdtStream::rendezvous(local(), local(), &keyed("udt")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("does not support credentials"));
}

/// Lost, corrupted, truncated, duplicated and replayed datagrams at every stage.
#[test]
fn streams_are_delivered_over_a_hostile_network() {
    let faults = Faults {
        loss: 0.01,
        duplicate: 0.01,
        reorder: 0.01,
        reorder_delay: Duration::from_millis(2),
        truncate: 0.005,
        flip: 0.01,
        replay: 0.02,
        ..Faults::default()
    };
    for (seed, law) in [(1, "udt"), (2, "cubic")] {
        let config = keyed(law);
        let listener = UdtListener::bind(local(), &config).unwrap();
        let relay = Relay::start(listener.local_addr(), [faults; 2], seed);
        let [client, server] = connect(&listener, relay.addr, &config);
        transfer(&client, &server, 5 * MB, seed);
        transfer(&server, &client, 5 * MB, seed + 2);
        assert!(relay.counts()[0] > 10, "{law}: nothing was lost");
    }
}

/// How often the text of a stream and UDT's handshake occur in the datagrams of a connection.
fn count_plaintext(config: &Config) -> [usize; 2] {
    const TEXT: &[u8] = b"It was a dark and stormy night; ";
    let listener = UdtListener::bind(local(), config).unwrap();
    let seen = Arc::<Mutex<Vec<u8>>>::default();
    let record = Arc::clone(&seen);
    let relay = Relay::observe(listener.local_addr(), move |_, datagram| {
        record.lock().unwrap().extend_from_slice(datagram);
    });
    let [mut client, mut server] = connect(&listener, relay.addr, config);
    client.write_all(&TEXT.repeat(1000)).unwrap();
    let mut arrived = vec![0; 1000 * TEXT.len()];
    server.read_exact(&mut arrived).unwrap();
    assert!(arrived == TEXT.repeat(1000));
    let seen = seen.lock().unwrap();
    // Search for 8 bytes of the text, and for the version and the socket type of a handshake.
    let request = [0, 0, 0, 4, 0, 0, 0, 1];
    [&TEXT[..8], &request].map(|words| seen.windows(8).filter(|bytes| bytes == &words).count())
}

#[test]
fn datagrams_contain_no_plaintext() {
    let [text, requests] = count_plaintext(&stream_config("udt"));
    assert!(text > 900 && requests >= 4, "without encryption: {text} and {requests}");
    assert_eq!(count_plaintext(&keyed("udt")), [0, 0]);
}

/// Both ports receive random datagrams during a transfer, some of them with valid headers.
#[test]
fn random_datagrams_do_not_disturb_a_transfer() {
    let mut random = Random(11);
    transfer_under_attack(&pair(&keyed("udt")), 10 * MB, |n| {
        let mut bytes: Vec<u8> = (0..25).flat_map(|_| random.next().to_le_bytes()).collect();
        // The lengths of a hello (72), a cookie (56) and sealed datagrams (at least 28), among
        // others.
        bytes.truncate([72, 60, 56, 28, 200][n % 5]);
        if n % 3 > 0 {
            let kind = 0xf1 + random.below(4) as u8;
            bytes[..4].copy_from_slice(&[kind, 1, 0, 0]);
        }
        bytes
    });
}
