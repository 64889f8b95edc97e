//! A listener under a flood. Alone in its process, as it takes a processor.

#![cfg(all(unix, feature = "net"))]

use cwnd::{Dur, Spec, Time};
use cwnd_udt::handshake::{Handshake, Request, VERSION};
use cwnd_udt::packet::Control;
use cwnd_udt::secure::{Initiator, Key};
use cwnd_udt::{Config, Seq, SocketType, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const HERE: &str = "127.0.0.1:0";
/// Sockets that a flood comes from.
const MANY: usize = 256;
static DATA: [u8; 8_000_000] = [7; 8_000_000];

/// Sends requests for connections, each from another socket and half of them with a guessed cookie, and
/// returns how many.
fn flood(to: SocketAddr, stop: &AtomicBool) -> u32 {
    let stranger = UdpSocket::bind(HERE).unwrap();
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        let asked = Handshake {
            version: VERSION,
            socket_type: SocketType::Stream,
            initial: Seq::new(count),
            packet_size: 1500,
            flow_window: 8192,
            request: if count % 2 == 0 { Request::Agree } else { Request::Connect },
            socket: count,
            cookie: count,
            peer: [0; 16],
        };
        let mut bytes = [0; 64];
        Control::Handshake(asked).encode(0, 0, &mut bytes);
        let _ = stranger.send_to(&bytes, to);
    }
    count
}

/// Sends first messages of the sealing's handshake, half of them made up and half of them somebody's that
/// were recorded, now from many ports, and returns how many.
fn sealed_flood(to: SocketAddr, key: &Key, stop: &AtomicBool) -> u32 {
    let strangers: Vec<_> = (0..MANY).map(|_| UdpSocket::bind(HERE).unwrap()).collect();
    let recorded: Vec<Vec<u8>> = (0..MANY)
        .map(|n| {
            let long = Dur::from_millis(1_000);
            let mut client = Initiator::new(key, Time::ZERO, n as u32, long).unwrap();
            client.poll(Time::ZERO).unwrap().to_vec()
        })
        .collect();
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let at = count as usize;
        let mut hello = recorded[at / 2 / MANY % MANY].clone();
        if at.is_multiple_of(2) {
            hello[60] ^= 1;
        }
        let _ = strangers[at / 2 % MANY].send_to(&hello, to);
        count += 1;
    }
    count
}

/// Memory of this process, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// A flood costs a transfer on the same port little time and no memory, and nobody is let in.
fn withstands(config: &Config, flood: impl Fn(SocketAddr, &AtomicBool) -> u32 + Sync) {
    let limited = Config { rate_limit: Some(200e6), ..config.clone() };
    let listener = UdtListener::bind(HERE, &limited).unwrap();
    let client = UdtStream::connect(listener.local_addr(), &limited).unwrap();
    let (server, _) = listener.accept().unwrap();
    let mut arrived = vec![0; DATA.len()];
    let mut timed = || {
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| (&client).write_all(&DATA).unwrap());
            (&server).read_exact(&mut arrived).unwrap();
        });
        start.elapsed().as_secs_f64()
    };
    let to = listener.local_addr();
    let flooded = |timed: &mut dyn FnMut() -> f64| {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let flood = scope.spawn(|| flood(to, &stop));
            let took = timed();
            stop.store(true, Ordering::Relaxed);
            assert!(flood.join().unwrap() > 1_000);
            took
        })
    };
    // Where other work takes the processors, a transfer is late now and then with and without.
    let first = timed() / flooded(&mut timed);
    let before = memory();
    assert!(before > 0);
    let mut shares: Vec<_> = (0..4).map(|_| timed() / flooded(&mut timed)).collect();
    shares.push(first);
    let best = shares.iter().copied().fold(0.0, f64::max);
    assert!(best > 0.9, "{shares:?} of the rate");
    let grown = memory().saturating_sub(before);
    println!("{shares:?} of the rate, {grown} bytes more");
    // The connection's buffers may grow by 48 MB. A session for each recorded message would be 200 MB.
    assert!(grown < 64 << 20, "{grown} bytes more");
    // Nobody was let in.
    let late = Some(Instant::now() + Duration::from_millis(20));
    assert_eq!(listener.accept_until(late).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn a_flood_of_requests_does_not_stop_a_transfer() {
    let config = Config::new(Spec::parse("udt").unwrap());
    withstands(&config, flood);
    let secret: [u8; 32] = std::array::from_fn(|at| at as u8);
    let key = Key::from_file_contents(&secret).unwrap();
    let keyed = Config { key: Some(key.clone()), ..config };
    withstands(&keyed, |to, stop| sealed_flood(to, &key, stop));
}
