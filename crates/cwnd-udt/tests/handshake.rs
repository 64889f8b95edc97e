//! Connection establishment and its failures.

use crate::common::{PERFECT, Pair, Path, config, messages, pattern, server};
use cwnd::{Dur, Time};
use cwnd_udt::{CloseReason, Config, Connection, Event, Seq};
use proptest::prelude::*;

#[test]
fn the_smaller_packet_size_and_the_receive_window_are_used() {
    let small = Config { packet_size: 1000, receive_buffer: 100, ..config("udt") };
    let large = Config { packet_size: 8000, ..config("udt") };
    for configs in [[&small, &large], [&large, &small]] {
        let mut pair = Pair::connecting(configs, 77, PERFECT, 1).connect();
        for end in 0..2 {
            assert_eq!(pair.events[end][0], Event::Connected);
            let stats = pair.ends[end].stats(pair.now, false);
            assert_eq!(stats.byte_avail_snd_buf, 256 * (1000 - 44));
            let window = if configs[1 - end].packet_size == small.packet_size { 100 } else { 256 };
            assert_eq!(stats.pkt_flow_window, window);
        }
        let data = pattern(50_000, 1);
        let arrived = pair.exchange([&data, &data], Dur::from_millis(10_000));
        assert!(arrived == [data.clone(), data]);
    }
}

#[test]
fn another_socket_type_is_refused() {
    let (stream, message) = (config("udt"), messages("udt"));
    let mut pair = Pair::connecting([&stream, &message], 77, PERFECT, 1);
    assert!(!pair.try_connect());
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Refused));
}

#[test]
fn an_unanswered_request_times_out() {
    let path = Path { loss: 1.0, ..PERFECT };
    let config = config("udt");
    let mut pair = Pair::connecting([&config, &config], 77, path, 1);
    assert!(!pair.try_connect());
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::ConnectTimeout));
    assert_eq!(pair.now, Time::from_nanos(3_000_000_000));
    assert!(pair.ends[0].is_drained(pair.now));
    // One request per 250 ms.
    assert_eq!(pair.datagrams, 12);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// A rendezvous succeeds if handshakes are lost, duplicated or delayed.
    #[test]
    fn a_rendezvous_succeeds(
        seed: u64,
        initials: [u32; 2],
        loss in 0.0..0.5f64,
        jitter in 0u64..400,
        packet_sizes in prop::array::uniform2(500u32..3000),
    ) {
        let path = Path { loss, duplicate: 0.1, jitter: Dur::from_millis(jitter), ..PERFECT };
        let configs = packet_sizes.map(|packet_size| Config {
            packet_size,
            connect_timeout: Dur::from_millis(30_000),
            ..config("udt")
        });
        let mut pair = Pair::rendezvous([&configs[0], &configs[1]], initials, path, seed);
        prop_assert!(pair.try_connect());
        pair.path.loss = loss / 5.0;
        let data = [pattern(20_000, seed), pattern(30_000, !seed)];
        let arrived = pair.exchange([&data[0], &data[1]], Dur::from_millis(600_000));
        prop_assert!(arrived == data);
    }
}

#[test]
fn a_rendezvous_with_another_socket_type_fails() {
    let (stream, message) = (config("udt"), messages("udt"));
    let mut pair = Pair::rendezvous([&stream, &message], [1, 2], PERFECT, 1);
    assert!(!pair.try_connect());
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Incompatible));
}

#[test]
fn an_unopened_connection_rejects_reads_and_writes() {
    let config = config("udt");
    let mut end = Connection::connect(&config, Time::ZERO, 1, Seq::new(0), server().ip());
    assert_eq!(end.write(b"x"), Err(cwnd_udt::Error::NotConnected));
    assert_eq!(end.read(Time::ZERO, &mut [0]), Err(cwnd_udt::Error::NotConnected));
    end.shutdown(Time::ZERO);
    assert_eq!(end.write(b"x"), Err(cwnd_udt::Error::Closed(CloseReason::Local)));
    assert_eq!(end.poll_transmit(Time::ZERO, 1), None);
    assert_eq!(end.next_wakeup(), None);
}
