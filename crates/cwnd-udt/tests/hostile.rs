//! Arbitrary datagrams do not make a connection panic, exceed its memory bounds, or fail.

use crate::common::{
    self, PERFECT, Pair, Path, Random, client, config, encoded, messages, pattern, request, server,
};
use cwnd::{Dur, Time};
use cwnd_udt::handshake::{Handshake, Request};
use cwnd_udt::packet::{Ack, Control, DropRequest, NakWriter, Progress, Range};
use cwnd_udt::seq::{AckNo, MessageNo};
use cwnd_udt::{Answer, CloseReason, Config, Connection, Listener, Seq, SocketType};
use proptest::prelude::*;

/// Valid control packets with numbers around those of the connection.
fn control() -> impl Strategy<Value = Vec<u8>> {
    let seq = || (-300i64..600).prop_map(|n| Seq::new(9u32.wrapping_add_signed(n as i32)));
    let control = prop_oneof![
        (seq(), any::<u32>(), 0u32..300).prop_map(|(next, number, available)| {
            let number = AckNo::new(number % 50);
            let (rtt_us, rtt_var_us) = (available * 1000, available);
            let rates = Some((available, available));
            Control::Ack(Ack { number, next, rtt_us, rtt_var_us, available, rates })
        }),
        seq().prop_map(Control::LightAck),
        (0u32..50).prop_map(|number| Control::Ack2(AckNo::new(number))),
        (0u32..20, seq(), seq()).prop_map(|(number, first, last)| {
            Control::Drop(DropRequest { message: MessageNo::new(number), first, last })
        }),
        (seq(), seq(), 0u32..300).prop_map(|(next, highest, missing)| {
            Control::Progress(Progress { next, highest, missing })
        }),
        Just(Control::KeepAlive),
    ];
    control.prop_map(|control| encoded(control, 22))
}

fn loss_report() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((0u32..600, 0u32..300), 1..50).prop_map(|ranges| {
        let mut info = [0; 400];
        let mut writer = NakWriter::new(&mut info);
        for (first, more) in ranges {
            writer.push(Range { first: Seq::new(first), last: Seq::new(first + more) });
        }
        encoded(Control::Nak(writer.finish().unwrap()), 22)
    })
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    (0u32..700, any::<u32>(), 0usize..2000).prop_map(|(seq, message, length)| {
        let mut bytes = vec![0; 16 + length];
        for (n, word) in [seq, message, 0, 22].into_iter().enumerate() {
            bytes[4 * n..4 * n + 4].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// A peer sends arbitrary datagrams at arbitrary times.
    #[test]
    fn arbitrary_packets_do_not_break_a_connection(
        datagrams in prop::collection::vec(
            prop_oneof![
                3 => control(),
                2 => loss_report(),
                4 => data(),
                1 => prop::collection::vec(any::<u8>(), 0..100),
            ],
            0..200,
        ),
        stream: bool,
        law in prop::sample::select(&["udt", "reno", "tfrc"][..]),
        seed: u64,
    ) {
        let config = if stream { config(law) } else { messages(law) };
        let mut pair = Pair::open(&config, 9, PERFECT, seed);
        let mut random = Random(seed);
        let mut buffer = vec![0; 1 << 20];
        for datagram in datagrams {
            let end = &mut pair.ends[1];
            let mut now = pair.now + Dur::from_nanos(random.below(20_000_000));
            let bytes = pattern(random.below(10_000) as usize, seed);
            let _ = if stream {
                end.write(&bytes).map(drop)
            } else {
                let ttl = random.chance(0.5).then(|| Dur::from_millis(random.below(50)));
                end.send_message(now, &bytes, ttl, random.chance(0.5)).map(drop)
            };
            for _ in 0..1000 {
                if end.poll_transmit(now, 4).is_none() {
                    break;
                }
            }
            end.handle_datagram(now, &datagram);
            if random.chance(0.5) {
                let _ = end.read(now, &mut buffer).map(drop);
                let _ = end.recv_message(now, &mut buffer).map(drop);
            }
            if let Some(wake) = end.next_wakeup() {
                now = now.max(wake.min(now + Dur::from_millis(400)));
            }
            end.handle_timeout(now);
            let stats = end.stats(now, random.chance(0.5));
            prop_assert!(stats.byte_avail_snd_buf <= 256 * 1456);
            prop_assert!(stats.byte_avail_rcv_buf <= 256 * 1456);
            pair.now = now;
        }
        prop_assert!(pair.ends[1].poll_transmit(pair.now, 4).is_none_or(|t| t.segment <= 1472));
    }

    /// Bits are flipped in packets of every stage. Received data may be wrong, because UDT relies
    /// on UDP's checksum.
    #[test]
    fn flipped_bits_do_not_break_a_connection(seed: u64, flip in 0.01..0.3f64, message: bool) {
        let config = if message { messages("udt") } else { config("udt") };
        let path = Path { flip, loss: 0.02, ..PERFECT };
        let mut pair = Pair::connecting([&config, &config], (1 << 31) - 9, path, seed);
        let connected = pair.try_connect();
        let bytes = pattern(20_000, seed);
        let mut buffer = vec![0; 1 << 20];
        for _ in 0..if connected { 2000 } else { 0 } {
            for end in &mut pair.ends {
                if message {
                    let _ = end.send_message(pair.now, &bytes, None, true).map(drop);
                    let _ = end.recv_message(pair.now, &mut buffer).map(drop);
                } else {
                    let _ = end.write(&bytes).map(drop);
                    let _ = end.read(pair.now, &mut buffer).map(drop);
                }
            }
            if !pair.step() {
                break;
            }
        }
    }

    /// All datagrams of one connection are replayed in another, possibly truncated. The other
    /// connection delivers its own data.
    #[test]
    fn replayed_and_truncated_datagrams_are_ignored(seed: u64, truncate: bool) {
        let config = config("udt");
        let path = Path { loss: 0.05, ..PERFECT };
        let mut first = Pair::connecting([&config, &config], 500, path, seed);
        prop_assume!(first.try_connect());
        first.captured = Some(Vec::new());
        let data = pattern(100_000, seed);
        let _ = first.exchange([&data, &data], Dur::from_millis(600_000));
        let captured = first.captured.take().unwrap();
        // Another initial sequence number: replayed packets are far outside of the window.
        let mut second = Pair::connecting([&config, &config], 1 << 29, path, seed);
        prop_assume!(second.try_connect());
        let mut random = Random(seed);
        for datagram in &captured {
            let length = if truncate { random.below(datagram.len() as u64) as usize } else { datagram.len() };
            let end = random.below(2) as usize;
            second.deliver(end, &datagram[..length]);
        }
        let arrived = second.exchange([&data, &data], Dur::from_millis(600_000));
        prop_assert!(arrived == [data.clone(), data]);
    }
}

/// Invalid values in requests and in answers are ignored.
#[test]
fn invalid_handshakes_are_ignored() {
    let listener = Listener::new(common::KEY, SocketType::Stream);
    let config = config("udt");
    for invalid in [
        Handshake { packet_size: 0, ..request() },
        Handshake { packet_size: u32::MAX, ..request() },
        Handshake { flow_window: 0, ..request() },
        Handshake { socket: 0, ..request() },
    ] {
        let bytes = encoded(Control::Handshake(invalid), 0);
        assert_eq!(listener.handle(Time::ZERO, client(), &bytes), Answer::Ignore);
        let mut connecting =
            Connection::connect(&config, Time::ZERO, 11, request().initial, server().ip());
        for request in [Request::Connect, Request::Agree] {
            let answer = Control::Handshake(Handshake { request, ..invalid });
            connecting.handle_datagram(Time::ZERO, &encoded(answer, 11));
        }
        assert!(!connecting.is_open());
    }
}

/// A peer offers a window of 2^32 - 1 packets.
#[test]
fn a_large_offered_window_does_not_raise_the_memory_bounds() {
    let listener = Listener::new(common::KEY, SocketType::Stream);
    let request = Handshake { flow_window: u32::MAX, ..request() };
    let bytes = encoded(Control::Handshake(request), 0);
    let Answer::Reply(mut reply) = listener.handle(Time::ZERO, client(), &bytes) else {
        panic!("no reply")
    };
    // The client's second request: the reply with request type -1, to socket 0.
    reply[12..16].fill(0);
    reply[36..40].fill(0xff);
    let Answer::Accept(incoming) = listener.handle(Time::ZERO, client(), &reply) else {
        panic!("not accepted")
    };
    let config = Config { send_buffer: 100, ..config("reno") };
    let mut end = Connection::accept(&config, Time::ZERO, 22, &incoming);
    assert_eq!(end.write(&vec![0; 1 << 20]), Ok(100 * 1456));
    assert!(end.stats(Time::ZERO, false).pkt_flow_window <= 1 << 20);
}

/// Requests with guessed cookies lead to answers only.
#[test]
fn a_flood_of_requests_does_not_disturb_a_transfer() {
    let mut pair = Pair::open(&config("udt"), 9, PERFECT, 3);
    let listener = Listener::new(common::KEY, SocketType::Stream);
    let mut random = Random(5);
    let data = pattern(100_000, 3);
    let mut replies = 0;
    for n in 0..20_000u32 {
        let request = [Request::Connect, Request::Agree][random.below(2) as usize];
        let cookie = random.next() as u32;
        let handshake = Handshake { socket: 1 + n, request, cookie, ..request_from(&mut random) };
        let bytes = encoded(Control::Handshake(handshake), 0);
        match listener.handle(pair.now, client(), &bytes) {
            Answer::Ignore => {}
            Answer::Reply(_) => replies += 1,
            Answer::Accept(_) => panic!("a guessed cookie"),
        }
        pair.deliver(1, &bytes);
    }
    assert!(replies > 5_000);
    let arrived = pair.exchange([&data, b""], Dur::from_millis(10_000));
    assert!(arrived[0] == data);
}

fn request_from(random: &mut Random) -> Handshake {
    Handshake { initial: Seq::new(random.next() as u32), flow_window: 100, ..request() }
}

/// Packets after the peer's shutdown are ignored.
#[test]
fn a_shutdown_is_final() {
    let mut pair = Pair::open(&config("udt"), 9, PERFECT, 3);
    pair.ends[1].handle_datagram(pair.now, &encoded(Control::Shutdown, 22));
    assert_eq!(pair.ends[1].close_reason(), Some(CloseReason::Peer));
    pair.ends[1].handle_datagram(pair.now, &encoded(Control::KeepAlive, 22));
    assert_eq!(pair.ends[1].poll_transmit(pair.now, 1), None);
    assert_eq!(pair.ends[1].next_wakeup(), None);
}
