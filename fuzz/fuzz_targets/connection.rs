//! Arbitrary calls and datagrams, including those of a peer that knows the connection's numbers:
//! the connection neither panics nor sends oversized datagrams, and always has a next wake-up or a
//! close reason.

#![no_main]

use cwnd::{Dur, Spec, Time};
use cwnd_udt::{Answer, Config, Connection, Listener, Seq, SocketType};
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;

const ID: u32 = 22;
const PEER: u32 = 11;
const INITIAL: u32 = (1 << 31) - 20;
const LAWS: [&str; 4] = ["udt", "reno", "cubic", "tfrc"];

/// Splits the input; yields zeros at its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let options = input.byte();
    let messages = options & 1 != 0;
    let mut config = Config::new(Spec::parse(LAWS[usize::from(options >> 1 & 3)]).unwrap());
    config.send_buffer = 64;
    config.receive_buffer = 64;
    config.socket_type = if messages { SocketType::Message } else { SocketType::Stream };
    let mut end = connection(&config, options >> 3);
    let mut now = Time::ZERO;
    let mut buffer = vec![0; 64 * 1456];
    while !input.0.is_empty() {
        match input.byte() % 8 {
            0 => now = now + Dur::from_nanos(u64::from(input.byte()).pow(4)),
            1 => now = end.next_wakeup().unwrap_or(now).max(now),
            2 => {
                let length = 40 * usize::from(input.byte());
                let _ = end.write(&buffer[..length]).map(drop);
                let ttl = (input.byte() % 2 == 0).then(|| Dur::from_millis(20));
                let _ = end.send_message(now, &buffer[..length], ttl, length % 80 == 0).map(drop);
            }
            3 => {
                let length = 400 * usize::from(input.byte());
                let length = length.min(buffer.len());
                let _ = end.read(now, &mut buffer[..length]).map(drop);
                let _ = end.recv_message(now, &mut buffer[..length]).map(drop);
            }
            4 if input.byte() == 0 => end.shutdown(now),
            _ => {
                let datagram = datagram(&mut input);
                end.handle_datagram(now, &datagram);
            }
        }
        end.handle_timeout(now);
        for _ in 0..64 {
            let Some(transmit) = end.poll_transmit(now, 4) else { break };
            assert!(transmit.segment <= 1472 && transmit.datagrams.len() <= 4 * 1472);
        }
        while end.poll_event().is_some() {}
        let _ = end.stats(now, options & 64 != 0);
        assert!(end.next_wakeup().is_some() || end.close_reason().is_some());
    }
});

/// A datagram from the input's bytes, whose header may be that of a peer that knows the numbers.
fn datagram(input: &mut Input<'_>) -> Vec<u8> {
    let kind = input.byte();
    let length = usize::from(input.byte());
    let rest = input.take(length);
    let mut datagram = vec![0; 16];
    let word = if kind & 128 == 0 {
        let near = u32::from(kind & 127);
        (INITIAL + near) & 0x7fff_ffff
    } else {
        1 << 31 | u32::from(kind & 7) << 16
    };
    datagram[..4].copy_from_slice(&word.to_be_bytes());
    if let Some(&second) = rest.first() {
        datagram[4] = second & 0xe0;
        datagram[7] = second & 0x1f;
    }
    datagram[12..].copy_from_slice(&ID.to_be_bytes());
    datagram.extend_from_slice(rest);
    datagram
}

fn address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 9000))
}

fn connection(config: &Config, role: u8) -> Connection {
    let initial = Seq::new(INITIAL);
    match role % 3 {
        0 => Connection::connect(config, Time::ZERO, ID, initial, address().ip()),
        1 => Connection::rendezvous(config, Time::ZERO, ID, initial, address().ip()),
        _ => accepted(config, initial),
    }
}

/// A connection accepted by a listener.
fn accepted(config: &Config, initial: Seq) -> Connection {
    let listener = Listener::new([0; 16], config.socket_type);
    let mut client = Connection::connect(config, Time::ZERO, PEER, initial, address().ip());
    loop {
        let request = client.poll_transmit(Time::ZERO, 1).unwrap().datagrams.to_vec();
        match listener.handle(Time::ZERO, address(), &request) {
            Answer::Ignore => panic!("ignored"),
            Answer::Reply(reply) => client.handle_datagram(Time::ZERO, &reply),
            Answer::Accept(incoming) => {
                return Connection::accept(config, Time::ZERO, ID, &incoming);
            }
        }
    }
}
