//! A listener under a flood. Alone in its process, as it takes a processor.

#![cfg(all(unix, feature = "net"))]

use cwnd::Spec;
use cwnd_udt::handshake::{Handshake, Request, VERSION};
use cwnd_udt::packet::Control;
use cwnd_udt::{Config, Seq, SocketType, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const HERE: &str = "127.0.0.1:0";
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

/// A flood of requests, with and without cookies, costs a transfer on the same port little.
#[test]
fn a_flood_of_requests_does_not_stop_a_transfer() {
    let limited = Config { rate_limit: Some(200e6), ..Config::new(Spec::parse("udt").unwrap()) };
    let listener = UdtListener::bind(HERE, &limited).unwrap();
    let client = UdtStream::connect(listener.local_addr(), &limited).unwrap();
    let (server, _) = listener.accept().unwrap();
    let timed = || {
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| (&client).write_all(&DATA).unwrap());
            let mut arrived = vec![0; DATA.len()];
            (&server).read_exact(&mut arrived).unwrap();
        });
        start.elapsed().as_secs_f64()
    };
    let to = listener.local_addr();
    let flooded = || {
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
    let shares: Vec<_> = (0..5).map(|_| timed() / flooded()).collect();
    let best = shares.iter().copied().fold(0.0, f64::max);
    assert!(best > 0.9, "{shares:?} of the rate");
    // Nobody was let in.
    let late = Some(Instant::now() + Duration::from_millis(20));
    assert_eq!(listener.accept_until(late).unwrap_err().kind(), ErrorKind::TimedOut);
}
