//! Streams are delivered complete and in order over any path.

use crate::common::{PERFECT, Pair, Path, config, pattern};
use cwnd::{Dur, Time};
use cwnd_udt::{CloseReason, Event};
use proptest::prelude::*;

#[test]
fn streams_are_delivered_over_a_perfect_path() {
    for law in ["udt", "daimd", "tfrc", "reno", "cubic", "simd"] {
        let mut pair = Pair::open(&config(law), 5, PERFECT, 1);
        let data = pattern(3_000_000, 1);
        let [there, back] = pair.exchange([&data, b"and back"], Dur::from_millis(60_000));
        assert!(there == data && back == b"and back", "{law}");
        let stats = pair.ends[0].stats(pair.now, false);
        assert_eq!((stats.total.pkt_retrans, stats.total.pkt_ignored), (0, 0), "{law}");
        println!("{law}: {:?}, {} datagrams", pair.now, pair.datagrams);
    }
}

fn path() -> impl Strategy<Value = Path> {
    (1u64..40, 0u64..8, 0.0..0.2f64, 0.0..0.1f64, prop::bool::ANY).prop_map(
        |(delay, jitter, loss, duplicate, narrow)| Path {
            delay: Dur::from_millis(delay),
            jitter: Dur::from_millis(jitter),
            // 100 Mb/s with a queue of 40 packets.
            nanos_per_byte: if narrow { 80.0 } else { 0.0 },
            queue: 60_000.0,
            loss,
            duplicate,
            ..PERFECT
        },
    )
}

const LAWS: [&str; 5] = ["udt", "daimd", "tfrc", "reno", "cubic"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Both directions at once, across the wrap of the sequence.
    #[test]
    fn streams_are_delivered_over_any_path(
        path in path(),
        seed: u64,
        law in prop::sample::select(&LAWS[..]),
        before_wrap in 0u32..300,
        lengths in (0usize..400_000, 0usize..100_000),
    ) {
        let config = config(law);
        let initial = (1 << 31) - 1 - before_wrap;
        let mut pair = Pair::connecting([&config, &config], initial, path, seed);
        // The handshake can time out after 3 s, because up to a fifth of the datagrams are lost.
        prop_assume!(pair.try_connect());
        let data = [pattern(lengths.0, seed), pattern(lengths.1, !seed)];
        let arrived = pair.exchange([&data[0], &data[1]], Dur::from_millis(600_000));
        prop_assert!(arrived == data);
    }
}

#[test]
fn closing_delivers_written_data() {
    let path = Path { loss: 0.1, ..PERFECT };
    let mut pair = Pair::open(&config("udt"), 9, path, 3);
    let data = pattern(200_000, 3);
    let written = pair.ends[0].write(&data).unwrap();
    assert_eq!(written, data.len());
    pair.ends[0].shutdown(pair.now);
    assert!(pair.ends[0].write(b"more").is_err());
    let (mut arrived, mut buffer) = (Vec::new(), [0; 4096]);
    let reason = loop {
        match pair.ends[1].read(pair.now, &mut buffer) {
            Ok(0) => assert!(pair.step()),
            Ok(count) => arrived.extend_from_slice(&buffer[..count]),
            Err(error) => break error,
        }
    };
    assert_eq!(reason, cwnd_udt::Error::Closed(CloseReason::Peer));
    assert!(arrived == data);
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Local));
    assert_eq!(pair.events[0].last(), Some(&Event::Closed(CloseReason::Local)));
    pair.run_for(Dur::from_millis(10_000));
    assert!(pair.ends[0].is_drained(pair.now) && pair.ends[1].is_drained(pair.now));
}

#[test]
fn a_silent_peer_times_out() {
    let mut pair = Pair::open(&config("udt"), 9, PERFECT, 3);
    pair.ends[0].write(&[1; 5000]).unwrap();
    pair.run_for(Dur::from_millis(1_000));
    let began = pair.now;
    pair.path.outage = (pair.now, Time::NEVER);
    pair.ends[0].write(&[1; 5000]).unwrap();
    while pair.ends.iter().any(|end| end.is_open()) {
        assert!(pair.step());
    }
    for end in 0..2 {
        assert_eq!(pair.ends[end].close_reason(), Some(CloseReason::Lost));
    }
    // UDT4: 17 expiries, each 300 ms longer than the previous one.
    let took = pair.now.since(began).as_secs();
    assert!((40.0..60.0).contains(&took), "{took}");
}

/// An idle connection sends a few datagrams per second.
#[test]
fn an_idle_connection_stays_open() {
    let mut pair = Pair::open(&config("udt"), 9, PERFECT, 3);
    pair.ends[0].write(b"hello").unwrap();
    pair.run_for(Dur::from_millis(2_000));
    let before = pair.datagrams;
    pair.run_for(Dur::from_millis(100_000));
    assert!(pair.ends.iter().all(|end| end.is_open()));
    assert!(pair.datagrams - before < 1000, "{}", pair.datagrams - before);
}

/// The sender stops when the receiver does not read, and continues when it reads again.
#[test]
fn a_slow_reader_limits_the_sender() {
    for law in ["udt", "cubic"] {
        let mut pair = Pair::open(&config(law), 9, PERFECT, 3);
        let data = pattern(1_000_000, 8);
        let (mut written, mut arrived) = (0, Vec::new());
        let mut buffer = [0; 100_000];
        while arrived.len() < data.len() {
            written += pair.ends[0].write(&data[written..]).unwrap();
            pair.run_for(Dur::from_millis(500));
            let count = pair.ends[1].read(pair.now, &mut buffer).unwrap();
            arrived.extend_from_slice(&buffer[..count]);
        }
        assert!(arrived == data);
        let stats = pair.ends[0].stats(pair.now, false).total;
        assert!(stats.pkt_retrans < 200, "{law}: {stats:?}");
    }
}

/// Keep-alives are sent while the window is closed, because UDT4 then checks its timers; at most a
/// hundred per second.
#[test]
fn keep_alives_are_sent_to_a_silent_receiver() {
    let mut pair = Pair::open(&config("reno"), 9, PERFECT, 3);
    pair.run_for(Dur::from_millis(100));
    pair.path.outage = (pair.now, Time::NEVER);
    pair.captured = Some(Vec::new());
    pair.ends[0].write(&[1; 100_000]).unwrap();
    pair.run_for(Dur::from_millis(200));
    let keep_alives = |datagram: &&Vec<u8>| datagram[..4] == [0x80, 1, 0, 0];
    let count = pair.captured.unwrap().iter().filter(keep_alives).count();
    assert!((3..=20).contains(&count), "{count}");
}
