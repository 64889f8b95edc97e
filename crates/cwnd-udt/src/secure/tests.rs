//! Tests of the handshake and the encryption. `tests/secure.rs` tests connections.

mod credentials;

use super::handshake::{NoiseParams, noise_with};
use super::initiator::State;
use super::wire::{HANDSHAKE_HEADER, MESSAGE_OFFSET};
use super::*;
use crate::testing::at;
use cwnd::{Dur, Time};
use proptest::prelude::*;
use std::net::SocketAddr;

// Computed by `tests/secure_vector.py`, an independent implementation.
const HELLO: &str = "f102000001020304000000000000000000000000000000007b4e909bbe7ffe44c465a220\
    037d608ee35897d31ef972f07f74892cb0f73f1300f17c5c70b7f884a295667bedec33c6";
const ANSWER: &str = "f3020000010203040faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf26\
    78570f20ab51ce7ccb8adf8990982633a31a4ebda7922664a40c800d55b6410067b304d4";
const THERE: &str = "f4000000000000000a0b0c0dd2ad07a15b15edb90b39453396846b462a21b3df9d";
const BACK: &str = "f4000000000000000102030424f877ec16e6d3b216a4f530b5a0bf4270799307";
const REKEYED: &str = "f4000000100000000a0b0c0dd8d87d650ea9c0fa8f2171a03b8c11dcae537304b0";
const RESET: &str = "f8000000000000000a0b0c0d4519accdee7e1e6c49b7c7c0f4915f3d";

const LISTENER_ID: &[u8] = b"here";
const TIMEOUT: Dur = Dur::from_millis(3_000);

/// The lowest byte of a number.
fn byte(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

fn key_from(first: u8) -> Key {
    Key::from_file_contents(&std::array::from_fn::<u8, 32, _>(|at| byte(at) + first)).unwrap()
}

fn key() -> Credentials {
    Credentials::Key(key_from(0))
}

fn other_key() -> Credentials {
    Credentials::Key(key_from(1))
}

fn from() -> SocketAddr {
    "192.0.2.1:9000".parse().unwrap()
}

fn initiator(key: &Credentials, id: u32) -> (Initiator, Vec<u8>) {
    let mut initiator = Initiator::new(key, Time::ZERO, id, TIMEOUT).unwrap();
    let hello = initiator.poll(Time::ZERO).unwrap().to_vec();
    (initiator, hello)
}

/// Passes a request to a responder, whose next id is `id`, and returns the answer or the reason why
/// there is none. Asserts that the answer is not longer than the request.
fn send_request(
    responder: &mut Responder,
    now: Time,
    from: SocketAddr,
    datagram: &[u8],
    id: u32,
) -> Result<Vec<u8>, Refused> {
    match responder.handle(now, from, &mut datagram.to_vec(), || id) {
        Reply::Send(reply) => {
            assert!(reply.len() <= datagram.len());
            Ok(reply)
        }
        Reply::Ignore(refused) => Err(refused),
        other => panic!("{other:?}"),
    }
}

fn answer(responder: &mut Responder, hello: &[u8], id: u32) -> Vec<u8> {
    send_request(responder, Time::ZERO, from(), hello, id).unwrap()
}

/// Opens a session with the client's first datagram and returns the listener's end.
fn opened(client_end: &mut Session, responder: &mut Responder) -> Session {
    let mut first = seal_one(client_end, b"first");
    match responder.handle(Time::ZERO, from(), &mut first, || 0) {
        Reply::Open(listener_end, text) => {
            assert_eq!(text, b"first");
            *listener_end
        }
        other => panic!("{other:?}"),
    }
}

/// Copies of a datagram with one bit flipped, with the number of the bit.
fn with_flipped_bits(datagram: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..8 * datagram.len()).map(|bit| {
        let mut bad = datagram.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        (bit, bad)
    })
}

/// Both ends of a session: the client with id 17 and the listener with id 18.
fn sessions() -> [Session; 2] {
    let mut responder = Responder::new(&key(), [1; 32], LISTENER_ID);
    let (mut initiator, hello) = initiator(&key(), 17);
    let answer = answer(&mut responder, &hello, 18);
    let mut client_end = initiator.handle(Time::ZERO, &answer).unwrap().unwrap();
    let listener_end = opened(&mut client_end, &mut responder);
    [client_end, listener_end]
}

/// Seals one datagram.
fn seal_one(session: &mut Session, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let segment = session.sealer.seal(text, text.len(), &mut out).unwrap();
    assert_eq!((segment, out.len()), (text.len() + OVERHEAD, text.len() + OVERHEAD));
    out
}

fn open(session: &mut Session, datagram: &[u8]) -> Result<Vec<u8>, Refused> {
    session.opener.open(&mut datagram.to_vec()).map(|text| text.to_vec())
}

/// The reason why a datagram is ignored; `None` if it is not.
fn ignored(
    responder: &mut Responder,
    now: Time,
    from: SocketAddr,
    datagram: &[u8],
) -> Option<Refused> {
    match responder.handle(now, from, &mut datagram.to_vec(), || 18) {
        Reply::Ignore(refused) => Some(refused),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn handshake_and_datagrams_match_another_implementation() {
    let (client, server) = (0x0102_0304, 0x0a0b_0c0d);
    let key_file = key_from(0);
    let params = NoiseParams::Shared(&key_file.psk);
    let state = State::hello(noise_with(params, client, true, Some(&[0x11; 32]))).unwrap();
    let mut initiator = Initiator::with_state(&key(), Time::ZERO, client, TIMEOUT, state).unwrap();
    let hello = initiator.poll(Time::ZERO).unwrap().to_vec();
    assert_eq!(hex(&hello), HELLO);

    let mut noise = noise_with(params, client, false, Some(&[0x22; 32])).unwrap();
    let request = &hello[MESSAGE_OFFSET..];
    noise.read_message(request, &mut []).unwrap();
    let mut responder = Responder::new(&key(), [1; 32], LISTENER_ID);
    let answer = responder.begin(Time::ZERO, (from(), client), request, noise, || server).unwrap();
    assert_eq!(hex(&answer), ANSWER);

    let mut client_end = initiator.handle(Time::ZERO, &answer).unwrap().unwrap();
    let mut there = seal_one(&mut client_end, b"there");
    assert_eq!(hex(&there), THERE);
    let reset = Responder::new(&key(), [9; 32], LISTENER_ID).reset(&there).unwrap();
    assert_eq!(hex(&reset), RESET);
    assert!(client_end.is_reset(&reset));
    let Reply::Open(mut listener_end, _) = responder.handle(Time::ZERO, from(), &mut there, || 0)
    else {
        panic!("not opened")
    };
    assert_eq!((client_end.id(), listener_end.id()), (client, server));
    assert_eq!(hex(&seal_one(&mut listener_end, b"back")), BACK);
    client_end.sealer.skip_to(1 << 28);
    assert_eq!(hex(&seal_one(&mut client_end, b"there")), REKEYED);
}

#[test]
fn corrupted_and_truncated_datagrams_are_rejected() {
    let [mut client_end, mut listener_end] = sessions();
    let good = seal_one(&mut client_end, b"some words");
    for (bit, bad) in with_flipped_bits(&good) {
        assert!(open(&mut listener_end, &bad).is_err(), "bit {bit}");
    }
    for length in 0..good.len() {
        assert!(open(&mut listener_end, &good[..length]).is_err(), "{length} bytes");
    }
    assert_eq!(open(&mut listener_end, &[&good[..], b"!"].concat()), Err(Refused::Forged));
    assert_eq!(open(&mut listener_end, &good).unwrap(), b"some words");
    let refused = listener_end.opener.refused();
    assert_eq!(refused.foreign + refused.replayed + refused.forged, 8 * 38 + 38 + 1);
}

#[test]
fn corrupted_and_truncated_handshakes_are_rejected() {
    let mut responder = Responder::new(&key(), [1; 32], LISTENER_ID);
    let (mut initiator, hello) = initiator(&key(), 17);
    // The cookie is checked only when many sessions are pending.
    let cookie = 8 * HANDSHAKE_HEADER..8 * MESSAGE_OFFSET;
    for (bit, bad) in with_flipped_bits(&hello).filter(|(bit, _)| !cookie.contains(bit)) {
        assert!(ignored(&mut responder, Time::ZERO, from(), &bad).is_some(), "bit {bit}");
    }
    for length in 0..hello.len() {
        let refused = ignored(&mut responder, Time::ZERO, from(), &hello[..length]);
        assert_eq!(refused, Some(Refused::Foreign), "{length} bytes");
    }
    assert_eq!(responder.pending(), 0);
    let answer = answer(&mut responder, &hello, 18);
    for (bit, bad) in with_flipped_bits(&answer) {
        assert!(initiator.handle(Time::ZERO, &bad).is_err(), "bit {bit}");
    }
    for length in 0..answer.len() {
        assert!(initiator.handle(Time::ZERO, &answer[..length]).is_err(), "{length} bytes");
    }
    // The valid answer is still accepted.
    assert!(initiator.handle(Time::ZERO, &answer).unwrap().is_some());
}

#[test]
fn each_connection_and_direction_has_separate_keys() {
    let [mut client_end, mut listener_end] = sessions();
    let [mut other_client_end, mut other_listener_end] = sessions();
    let there = seal_one(&mut client_end, b"words");
    assert_ne!(there, seal_one(&mut other_client_end, b"words"));
    // Both connections have the same ids, but different keys.
    assert_eq!(open(&mut other_listener_end, &there), Err(Refused::Forged));
    let mut reflected = there.clone();
    reflected[8..12].copy_from_slice(&17u32.to_be_bytes());
    assert_eq!(open(&mut client_end, &reflected), Err(Refused::Forged));
    // No datagram with this counter has arrived.
    let [_, _, mut back] = std::array::from_fn(|_| seal_one(&mut listener_end, b"words"));
    assert_eq!(open(&mut other_listener_end, &back), Err(Refused::Foreign), "another id");
    back[8..12].copy_from_slice(&18u32.to_be_bytes());
    assert_eq!(open(&mut listener_end, &back), Err(Refused::Forged));
    assert_eq!(open(&mut listener_end, &there).unwrap(), b"words");
}

#[test]
fn keys_change_with_datagrams_out_of_order() {
    let [mut client_end, mut listener_end] = sessions();
    for edge in [1u64 << 28, 2 << 28, 7 << 28] {
        client_end.sealer.skip_to(edge - 3);
        listener_end.opener.skip_to(edge - 3);
        let datagrams: Vec<_> = (0..6u8).map(|n| seal_one(&mut client_end, &[n])).collect();
        for n in [4, 1, 5, 0, 3, 2] {
            assert_eq!(open(&mut listener_end, &datagrams[n]).unwrap(), [byte(n)], "{edge} {n}");
            assert_eq!(open(&mut listener_end, &datagrams[n]), Err(Refused::Replayed));
        }
    }
    // A datagram more than one epoch ahead is rejected.
    client_end.sealer.skip_to((8 << 28) + 5);
    let next = seal_one(&mut client_end, b"next");
    client_end.sealer.skip_to(9 << 28);
    assert_eq!(open(&mut listener_end, &seal_one(&mut client_end, b"far")), Err(Refused::Forged));
    assert_eq!(open(&mut listener_end, &next).unwrap(), b"next");
}

#[test]
fn counters_are_exhausted() {
    let [mut client_end, mut listener_end] = sessions();
    client_end.sealer.skip_to((1 << 40) - 2);
    listener_end.opener.skip_to((1 << 40) - 2);
    let mut out = Vec::new();
    assert_eq!(client_end.sealer.seal(b"abc", 1, &mut out), Err(Exhausted));
    assert!(out.is_empty());
    client_end.sealer.seal(b"ab", 1, &mut out).unwrap();
    assert_eq!(listener_end.opener.open_batch(&mut out, 1 + OVERHEAD).length, 2);
    assert_eq!(client_end.sealer.seal(b"c", 1, &mut out), Err(Exhausted));
    assert_eq!(client_end.sealer.sealed(), 1 << 40);
}

#[test]
fn another_key_or_version_is_rejected() {
    let mut responder = Responder::new(&key(), [1; 32], LISTENER_ID);
    let (mut attacker, mut hello) = initiator(&other_key(), 17);
    let reply = responder.handle(Time::ZERO, from(), &mut hello, || 18);
    assert!(matches!(reply, Reply::Ignore(Refused::WrongKey)), "{reply:?}");
    assert!(!attacker.has_timed_out(at(2_999)) && attacker.has_timed_out(at(3_000)));
    assert!(attacker.poll(at(100)).is_none() && attacker.poll(at(250)).is_some());

    let mut elsewhere = Responder::new(&other_key(), [1; 32], LISTENER_ID);
    let (mut initiator, hello) = initiator(&key(), 17);
    let (_, client_credentials) = super::tests::initiator(&other_key(), 17);
    let answer = answer(&mut elsewhere, &client_credentials, 18);
    assert_eq!(initiator.handle(Time::ZERO, &answer).err(), Some(Refused::WrongKey));

    let mut newer = hello;
    newer[1] = 3;
    let reply = responder.handle(Time::ZERO, from(), &mut newer, || 18);
    assert!(matches!(reply, Reply::Ignore(Refused::Version)), "{reply:?}");
    assert_eq!(responder.pending(), 0);
}

#[test]
fn an_answer_is_repeated_and_a_session_opens_once() {
    let mut responder = Responder::new(&key(), [1; 32], LISTENER_ID);
    let (mut initiator, hello) = initiator(&key(), 17);
    let first = answer(&mut responder, &hello, 18);
    assert_eq!(answer(&mut responder, &hello, 19), first);
    assert_eq!(responder.pending(), 1);
    let mut client_end = initiator.handle(Time::ZERO, &first).unwrap().unwrap();
    let datagram = seal_one(&mut client_end, b"words");
    let elsewhere = "192.0.2.7:9000".parse().unwrap();
    let foreign = Some(Refused::Foreign);
    assert_eq!(ignored(&mut responder, Time::ZERO, elsewhere, &datagram), foreign);
    assert_eq!(ignored(&mut responder, at(5_000), from(), &datagram), foreign, "too late");
    assert_eq!(ignored(&mut responder, at(4_999), from(), &datagram), None);
    assert_eq!(responder.pending(), 0);
    let unknown = Some(Refused::Unknown);
    assert_eq!(ignored(&mut responder, Time::ZERO, from(), &datagram), unknown);
    // A replayed hello creates a session with other keys: a replay of the first datagram does not
    // open it, and it expires.
    answer(&mut responder, &hello, 18);
    assert_eq!(ignored(&mut responder, Time::ZERO, from(), &datagram), Some(Refused::Forged));
    assert_eq!(responder.pending(), 1);
    let (_, next) = super::tests::initiator(&key(), 17);
    assert_eq!(ignored(&mut responder, at(6_000), from(), &next), None);
    assert_eq!(responder.pending(), 1);
}

#[test]
fn many_pending_sessions_require_cookies() {
    let mut responder = Responder::new(&key(), [1; 32], LISTENER_ID);
    let mut ids = 100..;
    let mut send_request = |responder: &mut Responder, from: SocketAddr, hello: &[u8]| {
        send_request(responder, Time::ZERO, from, hello, ids.next().unwrap())
    };
    // One hello, repeated from many addresses.
    let (_, hello) = initiator(&key(), 5);
    for port in 1..1000 {
        let _ = send_request(&mut responder, (from().ip(), port).into(), &hello);
    }
    assert_eq!(responder.pending(), 64);

    let (mut client, hello) = initiator(&key(), 17);
    let cookie = send_request(&mut responder, from(), &hello).unwrap();
    assert_eq!(cookie[0], 0xf2);
    for (bit, bad) in with_flipped_bits(&cookie) {
        assert!(client.handle(Time::ZERO, &bad).is_err(), "bit {bit}");
    }
    assert!(client.poll(Time::ZERO).is_none());
    assert!(client.handle(Time::ZERO, &cookie).unwrap().is_none());
    let with_cookie = client.poll(Time::ZERO).unwrap().to_vec();
    let elsewhere =
        send_request(&mut responder, "192.0.2.9:9".parse().unwrap(), &with_cookie).unwrap();
    assert_eq!(elsewhere[0], 0xf2);
    let answer = send_request(&mut responder, from(), &with_cookie).unwrap();
    assert!(client.handle(Time::ZERO, &answer).unwrap().is_some());
    assert_eq!(responder.pending(), 65);

    // The number of pending sessions is also bounded with valid cookies.
    let mut refused = 0;
    for id in 1000..2000 {
        let (mut client, hello) = initiator(&key(), id);
        let cookie = send_request(&mut responder, from(), &hello).unwrap();
        client.handle(Time::ZERO, &cookie).unwrap();
        let with_cookie = client.poll(Time::ZERO).unwrap();
        refused +=
            u32::from(send_request(&mut responder, from(), with_cookie) == Err(Refused::Busy));
    }
    assert_eq!((responder.pending(), refused), (1024, 1000 - (1024 - 65)));
    assert!(matches!(
        responder.handle(at(7_000), from(), &mut hello.clone(), || 1),
        Reply::Send(_)
    ));
    assert_eq!(responder.pending(), 1);
}

proptest! {
    /// Each datagram is opened once, in any order and with duplicates and forgeries.
    #[test]
    fn each_datagram_is_opened_once(
        order in prop::collection::vec((0usize..60, prop::bool::weighted(0.1)), 0..300),
    ) {
        let [mut client_end, mut listener_end] = sessions();
        let datagrams: Vec<_> = (0..60u8).map(|n| seal_one(&mut client_end, &[n; 30])).collect();
        let mut seen = [false; 60];
        for (n, bad) in order {
            let mut datagram = datagrams[n].clone();
            if bad {
                datagram[12 + n % 30] ^= 1;
            }
            let expected = match (seen[n], bad) {
                (true, _) => Err(Refused::Replayed),
                (_, true) => Err(Refused::Forged),
                _ => Ok(vec![byte(n); 30]),
            };
            seen[n] |= expected.is_ok();
            prop_assert_eq!(open(&mut listener_end, &datagram), expected);
        }
    }

    #[test]
    fn a_sealed_packet_fits_and_has_whole_blocks(on_the_wire in 72u32..65_536) {
        let full = packet_size(on_the_wire) + u32::try_from(OVERHEAD).unwrap();
        prop_assert!(full <= on_the_wire && on_the_wire - full < 16);
        prop_assert_eq!((packet_size(on_the_wire) - 28) % 16, 0);
    }

    /// The result is the concatenation of the valid plaintexts.
    #[test]
    fn a_batch_is_opened_without_its_invalid_datagrams(
        lengths in (1usize..200, 1usize..20, 1usize..200),
        bad in prop::collection::vec(prop::option::weighted(0.2, 0usize..228), 20),
    ) {
        let (segment, count, last) = lengths;
        let text: Vec<u8> = (0..(count - 1) * segment + last.min(segment)).map(byte).collect();
        let [mut client_end, mut listener_end] = sessions();
        let mut wire = Vec::new();
        let sealed = client_end.sealer.seal(&text, segment, &mut wire).unwrap();
        prop_assert_eq!(sealed, segment + OVERHEAD);
        prop_assert_eq!(wire.len(), text.len() + count * OVERHEAD);
        let mut expected = Vec::new();
        for ((datagram, text), bad) in wire.chunks_mut(sealed).zip(text.chunks(segment)).zip(bad) {
            match bad {
                Some(byte) => datagram[byte % datagram.len()] ^= 0x10,
                None => expected.extend_from_slice(text),
            }
        }
        let filled = listener_end.opener.open_batch(&mut wire, sealed);
        prop_assert_eq!(filled.segment, segment);
        prop_assert_eq!(&wire[..filled.length], &expected[..]);
    }

    /// No datagram causes a panic, is accepted, or is answered by a longer one.
    #[test]
    fn arbitrary_datagrams_are_rejected(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(&[0xf1u8, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0x80, 0][..]),
        fitting: bool,
        segment in 0usize..100,
    ) {
        if fitting && bytes.len() >= 12 {
            bytes[..8].copy_from_slice(&[kind, 2, 0, 0, 0, 0, 0, 17]);
            bytes[8..12].copy_from_slice(&[0, 0, 0, 18]);
        }
        let _ = destination(&bytes);
        let mut responder = Responder::new(&key(), [1; 32], LISTENER_ID);
        let (mut initiator, hello) = initiator(&key(), 17);
        answer(&mut responder, &hello, 18);
        prop_assert!(initiator.handle(Time::ZERO, &bytes).is_err());
        match responder.handle(Time::ZERO, from(), &mut bytes.clone(), || 19) {
            Reply::Ignore(_) => {}
            Reply::Refuse(reply) => prop_assert!(reply.len() <= bytes.len()),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(responder.pending(), 1);
        let [_, mut listener_end] = sessions();
        prop_assert!(open(&mut listener_end, &bytes).is_err());
        prop_assert_eq!(listener_end.opener.open_batch(&mut bytes, segment).length, 0);
    }
}
