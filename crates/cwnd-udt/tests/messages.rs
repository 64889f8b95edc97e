//! Messages are delivered complete, in order if requested, and not after they have expired.

use crate::common::{PERFECT, Pair, Path, messages, pattern};
use cwnd::{Dur, Time};
use cwnd_udt::Error;
use proptest::prelude::*;

/// Receives all available messages of an end.
fn receive(pair: &mut Pair, end: usize, into: &mut Vec<Vec<u8>>) {
    while let Some(length) = pair.ends[end].next_message() {
        let mut message = vec![0; length];
        assert_eq!(pair.ends[end].recv_message(pair.now, &mut message), Ok(Some(length)));
        into.push(message);
    }
}

fn number(message: &[u8]) -> u32 {
    u32::from_le_bytes(message[..4].try_into().unwrap())
}

fn message(number: usize, length: usize) -> Vec<u8> {
    let mut bytes = pattern(length.max(4), number as u64);
    bytes[..4].copy_from_slice(&(number as u32).to_le_bytes());
    bytes
}

/// Sends messages of `lengths` bytes in both directions until all have arrived.
fn exchange(pair: &mut Pair, lengths: &[usize], in_order: bool) -> [Vec<Vec<u8>>; 2] {
    let deadline = pair.now + Dur::from_millis(600_000);
    let (mut sent, mut arrived) = ([0, 0], [Vec::new(), Vec::new()]);
    while arrived.iter().any(|arrived: &Vec<_>| arrived.len() < lengths.len()) {
        for end in 0..2 {
            while let Some(&length) = lengths.get(sent[end]) {
                let bytes = message(sent[end], length);
                if !pair.ends[end].send_message(pair.now, &bytes, None, in_order).unwrap() {
                    break;
                }
                sent[end] += 1;
            }
            receive(pair, end, &mut arrived[end]);
        }
        assert!(
            pair.now < deadline && pair.step(),
            "{sent:?} sent, {:?} arrived\n{:?}\n{:?}",
            [arrived[0].len(), arrived[1].len()],
            pair.ends[0].stats(pair.now, false),
            pair.ends[1].stats(pair.now, false),
        );
    }
    arrived
}

fn path() -> impl Strategy<Value = Path> {
    (1u64..20, 0u64..5, 0.0..0.2f64, 0.0..0.1f64).prop_map(|(delay, jitter, loss, duplicate)| {
        Path {
            delay: Dur::from_millis(delay),
            jitter: Dur::from_millis(jitter),
            loss,
            duplicate,
            ..PERFECT
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_delivered_once_and_complete(
        path in path(),
        seed: u64,
        in_order: bool,
        before_wrap in 0u32..100,
        lengths in prop::collection::vec(
            prop_oneof![1usize..100, 1400usize..1500, 1usize..60_000],
            0..60,
        ),
        law in prop::sample::select(&["udt", "reno"][..]),
    ) {
        let config = messages(law);
        let initial = (1 << 31) - 1 - before_wrap;
        let mut pair = Pair::connecting([&config, &config], initial, path, seed);
        prop_assume!(pair.try_connect());
        for mut arrived in exchange(&mut pair, &lengths, in_order) {
            if !in_order {
                arrived.sort_by_key(|message| number(message));
            }
            let expected: Vec<_> =
                lengths.iter().enumerate().map(|(n, &length)| message(n, length)).collect();
            prop_assert!(arrived == expected);
        }
    }

    /// Only expired messages are missing, and delivered messages are complete.
    #[test]
    fn only_expired_messages_are_dropped(
        path in path(),
        seed: u64,
        in_order: bool,
        lengths in prop::collection::vec(4usize..20_000, 1..60),
        ttl in 1u64..100,
    ) {
        let config = messages("udt");
        let mut pair = Pair::connecting([&config, &config], (1 << 31) - 20, path, seed);
        prop_assume!(pair.try_connect());
        let (mut arrived, mut sent) = (Vec::new(), 0);
        let deadline = pair.now + Dur::from_millis(600_000);
        let ttl = |n: usize| (!n.is_multiple_of(3)).then(|| Dur::from_millis(ttl));
        let never_expires = |n: &usize| n.is_multiple_of(3);
        let last = lengths.len() / 3 * 3;
        while sent < lengths.len() || pair.ends[0].unacknowledged() > 0 {
            while sent < lengths.len() {
                let bytes = message(sent, lengths[sent]);
                if !pair.ends[0].send_message(pair.now, &bytes, ttl(sent), in_order).unwrap() {
                    break;
                }
                sent += 1;
            }
            receive(&mut pair, 1, &mut arrived);
            prop_assert!(pair.now < deadline && pair.step(), "{:?}", pair.ends[0].stats(pair.now, false));
        }
        pair.run_for(Dur::from_millis(1_000));
        receive(&mut pair, 1, &mut arrived);
        for bytes in &arrived {
            let n = number(bytes) as usize;
            prop_assert_eq!(bytes, &message(n, lengths[n]));
        }
        let mut numbers: Vec<_> = arrived.iter().map(|bytes| number(bytes) as usize).collect();
        if in_order {
            prop_assert!(numbers.is_sorted());
        }
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), all);
        let delivered: Vec<_> = numbers.into_iter().filter(never_expires).collect();
        prop_assert_eq!(delivered, (0..lengths.len()).filter(never_expires).collect::<Vec<_>>());
        // The connection still delivers messages.
        prop_assert!(pair.ends[0].send_message(pair.now, &message(last, 9), None, true).unwrap());
        pair.run_for(Dur::from_millis(3_000));
        prop_assert!(pair.ends[1].next_message().is_some());
    }
}

#[test]
fn an_unordered_message_is_delivered_before_an_incomplete_one() {
    let path = Path { delay: Dur::from_millis(50), ..PERFECT };
    let mut pair = Pair::open(&messages("udt"), 4, path, 1);
    pair.run_for(Dur::from_millis(1_000));
    pair.path.loss = 1.0;
    pair.ends[0].send_message(pair.now, &message(0, 10), None, false).unwrap();
    pair.run_for(Dur::from_millis(1));
    pair.path.loss = 0.0;
    pair.ends[0].send_message(pair.now, &message(1, 3_000), None, false).unwrap();
    pair.ends[0].send_message(pair.now, &message(2, 10), None, true).unwrap();
    let mut arrived = Vec::new();
    pair.run_for(Dur::from_millis(60));
    receive(&mut pair, 1, &mut arrived);
    assert_eq!(arrived.iter().map(|m| number(m)).collect::<Vec<_>>(), [1]);
    pair.run_for(Dur::from_millis(300));
    receive(&mut pair, 1, &mut arrived);
    assert_eq!(arrived.iter().map(|m| number(m)).collect::<Vec<_>>(), [1, 0, 2]);
}

#[test]
fn invalid_message_operations_are_rejected() {
    let mut pair = Pair::open(&messages("udt"), 4, PERFECT, 1);
    let room = 256 * 1456;
    let error = pair.ends[0].send_message(pair.now, &vec![0; room + 1], None, true);
    assert_eq!(error, Err(Error::MessageTooLarge { length: room + 1, room }));
    assert_eq!(pair.ends[0].write(b"x"), Err(Error::WrongType));
    assert!(pair.ends[0].send_message(Time::ZERO, &message(0, room), None, true).unwrap());
    assert!(!pair.ends[0].send_message(pair.now, b"x", None, true).unwrap());
    pair.run_for(Dur::from_millis(5_000));
    let error = pair.ends[1].recv_message(pair.now, &mut [0; 10]);
    assert_eq!(error, Err(Error::BufferTooSmall(room)));
    let mut arrived = Vec::new();
    receive(&mut pair, 1, &mut arrived);
    assert_eq!(arrived, [message(0, room)]);
}
