//! Faults with sockets: killed peers, half-open connections, corrupted datagrams, and a thousand
//! connections on a port.

use crate::common::Random;
use crate::support::raw_client::RawClient;
use crate::support::reference;
use crate::support::relay::{Faults, Relay};
use crate::support::{
    Hash, TIMEOUT, local, recv_stream, send_stream, set_timeouts, short_timeout, stream_config,
};
use cwnd::Dur;
use cwnd_udt::handshake::Request;
use cwnd_udt::{Config, Endpoint, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const MB: u64 = 1_000_000;

fn deadline() -> Option<Instant> {
    Some(Instant::now() + TIMEOUT)
}

/// UDT4's timeout of 46 s would take too long.
fn short_idle_timeout() -> Config {
    Config { idle_timeout: Dur::from_millis(10_000), ..stream_config("udt") }
}

/// Asserts that `wait` ends with an error that reports a lost peer.
fn expect_peer_gone(what: &str, wait: impl FnOnce() -> std::io::Result<()>) {
    let began = Instant::now();
    let error = wait().expect_err(what);
    println!("{what}: {error}, after {:.1} s", began.elapsed().as_secs_f64());
    // Another test can be given the port of a peer that was killed, and answer with a reset.
    let kinds = [
        ErrorKind::ConnectionAborted,
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
    ];
    assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
}

/// The peer's process is killed before the connection, while it is idle, sending or receiving, and
/// while the connection is closed.
#[test]
fn a_killed_peer_is_detected() {
    let Some(udt4) = reference::program() else { return };
    let connect = |words: &str| {
        let (reference, to) = udt4.listen(words);
        let stream = UdtStream::connect(to, &short_idle_timeout()).unwrap();
        set_timeouts(&stream);
        (reference, stream)
    };
    let read_all = |mut stream: &UdtStream| loop {
        if stream.read(&mut [0; 1 << 16])? == 0 {
            return Ok(());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut reference, to) = udt4.listen("");
            reference.kill();
            let config = short_timeout(stream_config("udt"));
            let error = UdtStream::connect(to, &config).unwrap_err();
            let kinds = [ErrorKind::ConnectionRefused, ErrorKind::TimedOut];
            assert!(kinds.contains(&error.kind()), "{error:?}");
        });
        scope.spawn(|| {
            let (mut reference, stream) = connect("--hold");
            reference.kill();
            expect_peer_gone("idle", || read_all(&stream));
        });
        scope.spawn(|| {
            let (mut reference, stream) = connect("--send 100000000000 --plain");
            recv_stream(&stream, MB).unwrap();
            reference.kill();
            expect_peer_gone("receiving", || read_all(&stream));
        });
        scope.spawn(|| {
            let (mut reference, stream) = connect("--recv 100000000000 --plain");
            send_stream(&stream, MB, 1).unwrap();
            reference.kill();
            expect_peer_gone("sending", || send_stream(&stream, u64::MAX, 1).map(drop));
        });
        scope.spawn(|| {
            // The peer does not read: data remains undelivered.
            let (mut reference, stream) = connect("--hold");
            stream.set_write_timeout(Some(Duration::from_secs(2)));
            send_stream(&stream, u64::MAX, 1).unwrap_err();
            stream.finish();
            reference.kill();
            expect_peer_gone("closing", || stream.close_until(deadline()));
        });
    });
}

/// A client opens a connection and then stays silent. Other clients are served in the meantime.
#[test]
fn a_half_open_connection_times_out() {
    let config = short_idle_timeout();
    let listener = UdtListener::bind(local(), &config).unwrap();
    let raw_client = RawClient::new(listener.local_addr(), &mut Random(1));
    let cookie = raw_client.cookie();
    raw_client.send(Request::Agree, cookie);
    let (silent, _) = listener.accept_until(deadline()).unwrap();
    assert_eq!(raw_client.answer().unwrap().request, Request::Agree);
    set_timeouts(&silent);

    let to = listener.local_addr();
    let client = std::thread::spawn(move || {
        let stream = UdtStream::connect(to, &config).unwrap();
        let hash = send_stream(&stream, MB, 3).unwrap();
        stream.close_until(deadline()).unwrap();
        hash
    });
    let (stream, _) = listener.accept_until(deadline()).unwrap();
    set_timeouts(&stream);
    let hash = recv_stream(&stream, MB).unwrap();
    assert_eq!(client.join().unwrap(), hash);
    expect_peer_gone("half open", || (&silent).read(&mut [0]).map(drop));
}

/// Transfers data through a relay with faults in both directions, each step within `timeout`.
/// Returns the hashes of the sent and the received data if the connection succeeded.
fn transfer_with_faults(
    listener: &UdtListener,
    faults: Faults,
    seed: u64,
    timeout: Duration,
) -> Option<(Hash, std::io::Result<Hash>)> {
    let relay = Relay::start(listener.local_addr(), [faults; 2], seed);
    let config = Config { connect_timeout: timeout.into(), ..stream_config("udt") };
    let client = UdtStream::connect(relay.addr, &config).ok()?;
    client.set_write_timeout(Some(timeout));
    let sender = std::thread::spawn(move || {
        let hash = send_stream(&client, MB, seed);
        let _ = client.close_until(Some(Instant::now() + timeout));
        hash
    });
    let server = listener.accept_until(Some(Instant::now() + timeout)).ok();
    let arrived = server.as_ref().map(|(stream, _)| {
        stream.set_read_timeout(Some(timeout));
        recv_stream(stream, MB)
    });
    drop(server);
    let sent = sender.join().unwrap();
    Some((sent.ok()?, arrived?))
}

/// Truncated, corrupted and replayed datagrams at every stage, including handshakes and shutdowns.
/// UDT has no checksum, so that received data may be wrong. Nothing hangs, and the port serves the
/// next client.
#[test]
fn damaged_datagrams_do_not_break_the_port() {
    let reorder_delay = Duration::from_millis(3);
    let some =
        Faults { loss: 0.01, duplicate: 0.02, reorder: 0.02, reorder_delay, ..Faults::default() };
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    for seed in 0..12 {
        let faults = match seed % 4 {
            0 => Faults { truncate: 0.02, ..some },
            1 => Faults { flip: 0.02, ..some },
            2 => Faults { truncate: 0.2, flip: 0.2, replay: 0.2, ..some },
            _ => Faults { replay: 0.1, ..some },
        };
        let may_fail = seed % 4 < 3;
        let timeout = if may_fail { Duration::from_secs(6) } else { TIMEOUT };
        let outcome = transfer_with_faults(&listener, faults, seed, timeout);
        println!("{seed}: {outcome:?}");
        if !may_fail {
            let (sent, arrived) = outcome.expect("a connection");
            assert_eq!(arrived.expect("a whole stream"), sent);
        }
        // Discard half-open connections.
        while listener.accept_until(Some(Instant::now())).is_ok() {}
        let (sent, arrived) =
            transfer_with_faults(&listener, Faults::default(), seed, TIMEOUT).expect("a client");
        assert_eq!(arrived.unwrap(), sent);
    }
}

const MANY: usize = 1000;
const LITTLE: u64 = 10_000;

/// Echoes the data of `MANY` connections after all are accepted.
fn echo(listener: &UdtListener) {
    let streams: Vec<_> =
        (0..MANY).map(|_| listener.accept_until(deadline()).expect("a connection").0).collect();
    let mut bytes = vec![0; LITTLE as usize];
    for mut stream in &streams {
        set_timeouts(stream);
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    }
    for stream in &streams {
        assert_eq!(stream.read_until(&mut bytes, deadline()).unwrap(), 0);
    }
}

/// A thousand concurrent connections between two ports.
#[test]
fn a_thousand_connections_share_a_port() {
    const THREADS: usize = 8;
    let config = stream_config("udt");
    let listener = UdtListener::bind(local(), &config).unwrap();
    let to = listener.local_addr();
    let endpoint = Endpoint::bind(local()).unwrap();
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&listener));
        for thread in 0..THREADS {
            let (endpoint, config, barrier) = (&endpoint, &config, &barrier);
            scope.spawn(move || {
                let mine: Vec<_> = (thread..MANY)
                    .step_by(THREADS)
                    .map(|_| endpoint.connect(to, config).unwrap())
                    .collect();
                barrier.wait();
                let sent: Vec<_> = (mine.iter().zip(0..))
                    .map(|(stream, n)| {
                        set_timeouts(stream);
                        send_stream(stream, LITTLE, 1000 * thread as u64 + n).unwrap()
                    })
                    .collect();
                for (stream, hash) in mine.iter().zip(sent) {
                    assert_eq!(recv_stream(stream, LITTLE).unwrap(), hash);
                }
                barrier.wait();
                mine.into_iter().for_each(|stream| stream.close_until(deadline()).unwrap());
            });
        }
    });
}

/// A thousand concurrent connections of UDT4 clients.
#[test]
fn a_thousand_clients_of_the_reference_share_a_port() {
    let Some(udt4) = reference::program() else { return };
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let words = format!("--count {MANY} --send {LITTLE} --recv {LITTLE} --hold");
    let to = listener.local_addr();
    let mut clients = udt4.start(&format!("connect --to {to} {words}"));
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&listener));
        let mut hashes = Vec::new();
        while hashes.len() < 2 * MANY {
            let line = clients.line(TIMEOUT).expect("a line");
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                ["sent" | "received", _, hash, _] => hashes.push(hash.to_owned()),
                ["connected"] => {}
                _ => panic!("{line}"),
            }
        }
        assert!(hashes.iter().all(|hash| *hash == hashes[0]));
        clients.resume();
    });
}
