//! Support for tests over sockets: a peer with the reference library, an impaired network, and test
//! data that both ends can generate.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod raw_client;
pub(crate) mod reference;
pub(crate) mod relay;

use crate::common::{Random, fill};
use cwnd::{Dur, Spec};
use cwnd_udt::{Config, Endpoint, SocketType, UdtListener, UdtStream};
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The timeout of a single step of a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);
const CHUNK: usize = 1 << 20;

pub(crate) fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// The resident memory of this process in bytes.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    1024 * line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
}

/// With a connection timeout that a busy machine does not reach.
pub(crate) fn stream_config(law: &str) -> Config {
    Config { connect_timeout: TIMEOUT.into(), ..Config::new(Spec::parse(law).unwrap()) }
}

/// The configuration of a client that gets no answer.
pub(crate) fn short_timeout(config: Config) -> Config {
    Config { connect_timeout: Dur::from_millis(600), ..config }
}

pub(crate) fn message_config(law: &str) -> Config {
    Config { socket_type: SocketType::Message, ..stream_config(law) }
}

pub(crate) fn set_timeouts(stream: &UdtStream) {
    stream.set_read_timeout(Some(TIMEOUT));
    stream.set_write_timeout(Some(TIMEOUT));
}

/// Connects a client to a listener, at its address or at that of a relay. Returns both ends.
pub(crate) fn connect(listener: &UdtListener, to: SocketAddr, config: &Config) -> [UdtStream; 2] {
    let client = UdtStream::connect(to, config).unwrap();
    let (server, _) = listener.accept_until(Some(Instant::now() + TIMEOUT)).unwrap();
    set_timeouts(&client);
    set_timeouts(&server);
    [client, server]
}

/// Connects a client to a new listener. Returns both ends.
pub(crate) fn pair(config: &Config) -> [UdtStream; 2] {
    let listener = UdtListener::bind(local(), config).unwrap();
    let [client, server] = connect(&listener, listener.local_addr(), config);
    assert_eq!(server.peer_addr().port(), client.local_addr().port());
    [client, server]
}

/// An FNV-1a hash of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(pub u64);

impl Hash {
    pub(crate) const EMPTY: Hash = Hash(0xcbf2_9ce4_8422_2325);

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Writes `total` bytes generated from `seed` and returns their hash.
pub(crate) fn send_stream(mut stream: &UdtStream, total: u64, seed: u64) -> std::io::Result<Hash> {
    let (mut random, mut hash) = (Random(seed), Hash::EMPTY);
    let mut chunk = vec![0; CHUNK];
    let mut left = total;
    while left > 0 {
        let length = left.min(CHUNK as u64) as usize;
        fill(&mut random, &mut chunk[..length]);
        hash.add(&chunk[..length]);
        stream.write_all(&chunk[..length])?;
        left -= length as u64;
    }
    Ok(hash)
}

/// Reads `total` bytes and returns their hash.
pub(crate) fn recv_stream(mut stream: &UdtStream, total: u64) -> std::io::Result<Hash> {
    let mut hash = Hash::EMPTY;
    let mut chunk = vec![0; CHUNK];
    let mut left = total;
    while left > 0 {
        let most = left.min(CHUNK as u64) as usize;
        match stream.read(&mut chunk[..most])? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => {
                hash.add(&chunk[..count]);
                left -= count as u64;
            }
        }
    }
    Ok(hash)
}

/// Sends `bytes` bytes from `from` to `to` and asserts that they arrive.
pub(crate) fn transfer(from: &UdtStream, to: &UdtStream, bytes: u64, seed: u64) {
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| send_stream(from, bytes, seed).unwrap());
        assert_eq!(recv_stream(to, bytes).unwrap(), sent.join().unwrap());
    });
}

/// Waits until `condition` holds.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts that a transfer is not disturbed by 20,000 datagrams, made by `forge` with their number,
/// to the ports of both ends.
pub(crate) fn transfer_under_attack(
    [client, server]: &[UdtStream; 2],
    bytes: u64,
    mut forge: impl FnMut(usize) -> Vec<u8>,
) {
    let targets = [client.local_addr().port(), server.local_addr().port()];
    let attacker = UdpSocket::bind(local()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| transfer(client, server, bytes, 5));
        for n in 0..20_000 {
            let _ = attacker.send_to(&forge(n), ("127.0.0.1", targets[n / 10 % 2]));
        }
    });
}

/// Transfers `length` + n bytes over each connection n of `many` between two ports, and one byte
/// back.
pub(crate) fn share_a_port(config: &Config, many: u8, length: usize) {
    let listener = UdtListener::bind(local(), config).unwrap();
    let to = listener.local_addr();
    let port = Endpoint::bind(local()).unwrap();
    std::thread::scope(|scope| {
        for n in 0..many {
            let port = &port;
            scope.spawn(move || {
                let mut stream = port.connect(to, config).unwrap();
                stream.write_all(&vec![n; length + usize::from(n)]).unwrap();
                let mut answer = [0];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(answer[0], n);
                stream.close().unwrap();
            });
        }
        for _ in 0..many {
            let (mut stream, peer) = listener.accept().unwrap();
            assert_eq!(peer, port.local_addr());
            scope.spawn(move || {
                let mut data = vec![0; length];
                stream.read_exact(&mut data).unwrap();
                let n = data[0];
                let mut rest = vec![0; usize::from(n)];
                stream.read_exact(&mut rest).unwrap();
                assert!(data.iter().chain(&rest).all(|byte| *byte == n));
                stream.write_all(&[n]).unwrap();
                assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            });
        }
    });
}

/// Message `n`: the number `n` in eight bytes, and up to `size` bytes generated from it.
pub(crate) fn message(seed: u64, n: u64, size: u64) -> Vec<u8> {
    let mut random = Random(seed ^ n);
    let mut bytes = vec![0; 8 + (random.next() % (size + 1)) as usize];
    fill(&mut random, &mut bytes);
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    bytes
}

/// Counts of received messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Messages {
    pub whole: u64,
    pub wrong: u64,
    /// Messages delivered after one that was sent later.
    pub early: u64,
}

/// Receives up to `count` messages; fewer if the peer closes or the read times out.
pub(crate) fn recv_messages(stream: &UdtStream, count: u64, seed: u64, size: u64) -> Messages {
    let mut seen = Messages::default();
    let mut next = 0;
    let mut bytes = vec![0; size as usize + 9];
    while seen.whole + seen.wrong < count {
        let length = match stream.recv_message(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(length) => length,
        };
        let mut number = [0; 8];
        let given = length.min(8);
        number[..given].copy_from_slice(&bytes[..given]);
        let n = u64::from_le_bytes(number);
        let good = message(seed, n, size) == bytes[..length];
        *(if good { &mut seen.whole } else { &mut seen.wrong }) += 1;
        seen.early += u64::from(n < next);
        next = n.wrapping_add(1);
    }
    seen
}
