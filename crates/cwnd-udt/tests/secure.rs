//! Connections with a shared key in simulated time, over a path that loses, delays, reorders,
//! duplicates and corrupts datagrams.

use crate::common::{self, PERFECT, Pair, Path, client, config, pattern, server};
use cwnd::{Dur, Time};
use cwnd_udt::secure::{Credentials, Initiator, OVERHEAD, Refused, Reply, Responder};
use cwnd_udt::{Answer, CloseReason, Connection, Listener, Seq, SocketType};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn key(first: u8) -> Credentials {
    Credentials::Key(common::key(first))
}

/// Sends `data` from one end and returns the data that arrives at the other.
fn transfer(pair: &mut Pair, from: usize, data: &[u8]) -> Vec<u8> {
    let deadline = pair.now + Dur::from_millis(600_000);
    let (mut written, mut arrived, mut buffer) = (0, Vec::new(), [0; 4096]);
    while arrived.len() < data.len() {
        written += pair.ends[from].write(&data[written..]).unwrap();
        while let count @ 1.. = pair.ends[1 - from].read(pair.now, &mut buffer).unwrap() {
            arrived.extend_from_slice(&buffer[..count]);
        }
        assert!(pair.step() && pair.now < deadline, "{} of {}", arrived.len(), data.len());
    }
    arrived
}

#[test]
fn streams_are_delivered_in_packets_of_the_configured_size() {
    let mut pair = Pair::sealed([&key(1), &key(1)], PERFECT, 1);
    pair.captured = Some(Vec::new());
    assert!(pair.try_connect());
    assert_eq!(
        pair.now,
        Time::from_nanos(30 * MS),
        "three round trips: one more than without encryption"
    );
    let data = pattern(1_000_000, 1);
    assert!(transfer(&mut pair, 0, &data) == data);
    assert!(transfer(&mut pair, 1, &data) == data);
    // The largest multiple of the AES block size that fits into 1500 bytes.
    assert_eq!(pair.captured.iter().flatten().map(Vec::len).max(), Some(1496 - 28));
    assert_eq!(pair.sealing.as_ref().unwrap().ignored, []);
    let stats = pair.ends[0].stats(pair.now, false);
    assert_eq!((stats.total.pkt_retrans, stats.total.pkt_ignored), (0, 0));
    assert_eq!(OVERHEAD, 28);

    pair.ends[0].shutdown(pair.now);
    while pair.ends[1].close_reason().is_none() {
        assert!(pair.step());
    }
    assert_eq!(pair.ends[1].close_reason(), Some(CloseReason::Peer));
}

#[test]
fn another_key_gets_no_answer() {
    let mut pair = Pair::sealed([&key(1), &key(2)], PERFECT, 1);
    assert!(!pair.try_connect());
    let sealing = pair.sealing.unwrap();
    assert!(sealing.initiator.has_timed_out(pair.now) && sealing.sessions[0].is_none());
    assert_eq!(sealing.ignored, [Refused::WrongKey; 12]);
}

#[test]
fn ends_with_and_without_a_key_do_not_connect() {
    // A plain client is refused at once.
    let config = config("udt");
    let mut plain = Connection::connect(&config, Time::ZERO, 11, Seq::new(9), server().ip());
    let mut responder = Responder::new(&key(1), [3; 32], b"here");
    let mut request = plain.poll_transmit(Time::ZERO, 1).unwrap().datagrams.to_vec();
    let Reply::Refuse(refusal) = responder.handle(Time::ZERO, client(), &mut request, || 6) else {
        panic!("not refused")
    };
    assert_eq!(refusal.len(), request.len());
    plain.handle_datagram(Time::ZERO, &refusal);
    assert_eq!(plain.close_reason(), Some(CloseReason::Refused));
    // A plain listener ignores a hello.
    let mut initiator = Initiator::new(&key(1), Time::ZERO, 5, Dur::from_millis(3_000)).unwrap();
    let hello = initiator.poll(Time::ZERO).unwrap();
    let listener = Listener::new(common::KEY, SocketType::Stream);
    assert_eq!(listener.handle(Time::ZERO, client(), hello), Answer::Ignore);
}

/// Regression: loss reports arrived, nothing was retransmitted, and the connection timed out.
#[test]
fn lost_retransmissions_are_repeated() {
    let seed = 461_623_177_719_057_632;
    let path = Path {
        delay: Dur::from_millis(1),
        loss: 0.134_352_547_291_989_13,
        duplicate: 0.048_157_843_765_603_09,
        ..PERFECT
    };
    let mut pair = Pair::sealed([&key(1), &key(1)], path, seed);
    assert!(pair.try_connect());
    let data = pattern(22_785, seed);
    assert!(transfer(&mut pair, 0, &data) == data);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Corrupted and replayed datagrams do not reach the connection.
    #[test]
    fn streams_are_delivered(
        delay in 1u64..40,
        jitter in 0u64..8,
        loss in 0.0..0.15f64,
        duplicate in 0.0..0.1f64,
        flip in 0.0..0.05f64,
        seed: u64,
        length in 0usize..200_000,
    ) {
        let [delay, jitter] = [delay, jitter].map(Dur::from_millis);
        let path = Path { delay, jitter, loss, duplicate, flip, ..PERFECT };
        let mut pair = Pair::sealed([&key(1), &key(1)], path, seed);
        prop_assume!(pair.try_connect());
        let data = pattern(length, seed);
        prop_assert!(transfer(&mut pair, 0, &data) == data);
        prop_assert!(transfer(&mut pair, 1, &data) == data);
    }
}
