//! A listener with a key under a flood of first messages. Alone in its process, whose memory is looked at.

#![cfg(all(target_os = "linux", feature = "net"))]

mod common;
mod support;

use cwnd::{Dur, Time};
use cwnd_udt::secure::{Credentials, Initiator, Key};
use cwnd_udt::{Config, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::{local, resident, stream_config};

/// Sockets that the flood comes from, and messages that were recorded.
const MANY: usize = 256;
static DATA: [u8; 8_000_000] = [7; 8_000_000];

/// Sends first messages, half of them made up and half of them somebody's that were recorded, now from many
/// ports, and returns how many.
fn flood(to: SocketAddr, key: &Credentials, stop: &AtomicBool) -> usize {
    let strangers: Vec<_> = (0..MANY).map(|_| UdpSocket::bind(local()).unwrap()).collect();
    let second = Dur::from_millis(1_000);
    let recorded: Vec<Vec<u8>> = (0..MANY)
        .map(|n| Initiator::new(key, Time::ZERO, n as u32, second).unwrap())
        .map(|mut client| client.poll(Time::ZERO).unwrap().to_vec())
        .collect();
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut hello = recorded[count / 2 / MANY % MANY].clone();
        if count.is_multiple_of(2) {
            hello[60] ^= 1;
        }
        let _ = strangers[count / 2 % MANY].send_to(&hello, to);
        count += 1;
    }
    count
}

/// The parts of its rate that a transfer of 200 Mb/s on the same port keeps, and what the flood left in
/// memory. Nobody is let in.
fn beside_floods(rounds: usize, buffer: u32) -> (Vec<f64>, u64) {
    let bytes: [u8; 32] = std::array::from_fn(|at| at as u8);
    let key = Credentials::Key(Key::from_file_contents(&bytes).unwrap());
    let limited = Config {
        rate_limit: Some(200e6),
        send_buffer: buffer,
        receive_buffer: buffer,
        credentials: Some(key.clone()),
        ..stream_config("udt")
    };
    let listener = UdtListener::bind(local(), &limited).unwrap();
    let client = UdtStream::connect(listener.local_addr(), &limited).unwrap();
    let (server, _) = listener.accept().unwrap();
    let to = listener.local_addr();
    let mut arrived = vec![0; DATA.len()];
    let mut timed = || {
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| (&client).write_all(&DATA).unwrap());
            (&server).read_exact(&mut arrived).unwrap();
        });
        assert!(arrived == DATA);
        start.elapsed().as_secs_f64()
    };
    let _warm = timed();
    let before = resident();
    let mut shares = Vec::new();
    for _ in 0..rounds {
        let quiet = timed();
        let stop = AtomicBool::new(false);
        let flooded = thread::scope(|scope| {
            let flood = scope.spawn(|| flood(to, &key, &stop));
            let took = timed();
            stop.store(true, Ordering::Relaxed);
            assert!(flood.join().unwrap() > 1_000);
            took
        });
        shares.push(quiet / flooded);
    }
    let grown = resident().saturating_sub(before);
    let late = Some(Instant::now() + Duration::from_millis(20));
    assert_eq!(listener.accept_until(late).unwrap_err().kind(), ErrorKind::TimedOut);
    println!("hellos: {shares:.2?} of the rate, {grown} bytes more");
    (shares, grown)
}

#[test]
fn a_flood_of_hellos_leaves_nothing_in_memory() {
    let (_, grown) = beside_floods(4, 1024);
    // The connection's buffers have 3 MB. Sessions of 6 KiB for half of the 5,000 hellos that are looked at
    // each second would be 20 MB.
    assert!(grown < 8 << 20, "{grown} bytes more");
}

#[test]
#[ignore = "a rate, which needs an idle machine: make bench-udt runs it"]
fn a_transfer_keeps_its_rate_in_a_flood() {
    let (shares, _) = beside_floods(5, 16_384);
    // Where other work takes the processors, a transfer is late now and then with and without.
    assert!(shares.iter().any(|share| *share > 0.9), "{shares:?} of the rate");
}
