//! Tests of the encryption. `tests/secure.rs` tests connections in sessions.

mod credentials;

use super::handshake::{Proof, noise_with};
use super::wire::{HEAD, MESSAGE};
use super::*;
use cwnd::{Dur, Time};
use proptest::prelude::*;
use std::net::SocketAddr;

// By `tests/secure_vector.py`, from another implementation of everything.
const HELLO: &str = "f102000001020304000000000000000000000000000000007b4e909bbe7ffe44c465a220\
    037d608ee35897d31ef972f07f74892cb0f73f1300f17c5c70b7f884a295667bedec33c6";
const ANSWER: &str = "f3020000010203040faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf26\
    78570f20ab51ce7ccb8adf8990982633a31a4ebda7922664a40c800d55b6410067b304d4";
const THERE: &str = "f4000000000000000a0b0c0dd2ad07a15b15edb90b39453396846b462a21b3df9d";
const BACK: &str = "f4000000000000000102030424f877ec16e6d3b216a4f530b5a0bf4270799307";
const REKEYED: &str = "f4000000100000000a0b0c0dd8d87d650ea9c0fa8f2171a03b8c11dcae537304b0";
const RESET: &str = "f8000000000000000a0b0c0d4519accdee7e1e6c49b7c7c0f4915f3d";

const PLACE: &[u8] = b"here";
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

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn initiator(key: &Credentials, id: u32) -> (Initiator, Vec<u8>) {
    let mut initiator = Initiator::new(key, Time::ZERO, id, TIMEOUT).unwrap();
    let hello = initiator.poll(Time::ZERO).unwrap().to_vec();
    (initiator, hello)
}

fn answer(responder: &mut Responder, hello: &[u8], id: u32) -> Vec<u8> {
    match responder.handle(Time::ZERO, from(), &mut hello.to_vec(), || id) {
        Reply::Send(answer) => answer,
        other => panic!("{other:?}"),
    }
}

/// Both ends of a session: client 17 and listener 18.
fn sessions() -> [Session; 2] {
    let mut responder = Responder::new(&key(), [1; 32], PLACE);
    let (mut initiator, hello) = initiator(&key(), 17);
    let answer = answer(&mut responder, &hello, 18);
    let mut near = initiator.handle(Time::ZERO, &answer).unwrap().unwrap();
    let mut first = one(&mut near, b"first");
    let Reply::Open(far, text) = responder.handle(Time::ZERO, from(), &mut first, || 0) else {
        panic!("not opened")
    };
    assert_eq!(text, b"first");
    [near, *far]
}

/// One sealed datagram.
fn one(session: &mut Session, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let segment = session.sealer.seal(text, text.len(), &mut out).unwrap();
    assert_eq!((segment, out.len()), (text.len() + OVERHEAD, text.len() + OVERHEAD));
    out
}

fn open(session: &mut Session, datagram: &[u8]) -> Result<Vec<u8>, Refused> {
    session.opener.open(&mut datagram.to_vec()).map(|text| text.to_vec())
}

/// The reason why a datagram is ignored, if it is.
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
fn handshake_and_datagrams_are_as_another_implementation_makes_them() {
    let (client, server) = (0x0102_0304, 0x0a0b_0c0d);
    let key_file = key_from(0);
    let proof = Proof::Shared(&key_file.psk);
    let noise = noise_with(proof, client, true, Some(&[0x11; 32])).unwrap();
    let mut initiator = Initiator::with_noise(&key(), Time::ZERO, client, TIMEOUT, noise).unwrap();
    let hello = initiator.poll(Time::ZERO).unwrap().to_vec();
    assert_eq!(hex(&hello), HELLO);

    let mut noise = noise_with(proof, client, false, Some(&[0x22; 32])).unwrap();
    let question = &hello[MESSAGE..];
    noise.read_message(question, &mut []).unwrap();
    let mut responder = Responder::new(&key(), [1; 32], PLACE);
    let begun = responder.begin(Time::ZERO, (from(), client), question, noise, || server);
    let answer = begun.unwrap();
    assert_eq!(hex(&answer), ANSWER);

    let mut near = initiator.handle(Time::ZERO, &answer).unwrap().unwrap();
    let mut there = one(&mut near, b"there");
    assert_eq!(hex(&there), THERE);
    let reset = Responder::new(&key(), [9; 32], PLACE).reset(&there).unwrap();
    assert_eq!(hex(&reset), RESET);
    assert!(near.is_reset(&reset));
    let Reply::Open(mut far, _) = responder.handle(Time::ZERO, from(), &mut there, || 0) else {
        panic!("not opened")
    };
    assert_eq!((near.id(), far.id()), (client, server));
    assert_eq!(hex(&one(&mut far, b"back")), BACK);
    near.sealer.skip_to(1 << 28);
    assert_eq!(hex(&one(&mut near, b"there")), REKEYED);
}

#[test]
fn a_flipped_bit_or_a_cut_anywhere_is_refused() {
    let [mut near, mut far] = sessions();
    let good = one(&mut near, b"some words");
    for bit in 0..8 * good.len() {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&mut far, &bad).is_err(), "bit {bit}");
    }
    for length in 0..good.len() {
        assert!(open(&mut far, &good[..length]).is_err(), "{length} bytes");
    }
    assert_eq!(open(&mut far, &[&good[..], b"!"].concat()), Err(Refused::Forged));
    assert_eq!(open(&mut far, &good).unwrap(), b"some words");
    let refused = far.opener.refused();
    assert_eq!(refused.foreign + refused.replayed + refused.forged, 8 * 38 + 38 + 1);
}

#[test]
fn a_flipped_bit_or_a_cut_in_the_handshake_is_refused() {
    let mut responder = Responder::new(&key(), [1; 32], PLACE);
    let (mut initiator, hello) = initiator(&key(), 17);
    // A cookie counts only when the responder is busy.
    let cookie = 8 * HEAD..8 * MESSAGE;
    for bit in (0..8 * hello.len()).filter(|bit| !cookie.contains(bit)) {
        let mut bad = hello.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(ignored(&mut responder, Time::ZERO, from(), &bad).is_some(), "bit {bit}");
    }
    for length in 0..hello.len() {
        let refused = ignored(&mut responder, Time::ZERO, from(), &hello[..length]);
        assert_eq!(refused, Some(Refused::Foreign), "{length} bytes");
    }
    assert_eq!(responder.waiting(), 0);
    let answer = answer(&mut responder, &hello, 18);
    for bit in 0..8 * answer.len() {
        let mut bad = answer.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(initiator.handle(Time::ZERO, &bad).is_err(), "bit {bit}");
    }
    for length in 0..answer.len() {
        assert!(initiator.handle(Time::ZERO, &answer[..length]).is_err(), "{length} bytes");
    }
    // None of these has invalidated the valid one.
    assert!(initiator.handle(Time::ZERO, &answer).unwrap().is_some());
}

#[test]
fn every_connection_and_direction_has_its_own_keys() {
    let [mut near, mut far] = sessions();
    let [mut near_too, mut far_too] = sessions();
    let there = one(&mut near, b"words");
    assert_ne!(there, one(&mut near_too, b"words"));
    // The ids are the same: only the keys differ.
    assert_eq!(open(&mut far_too, &there), Err(Refused::Forged));
    let mut reflected = there.clone();
    reflected[8..12].copy_from_slice(&17u32.to_be_bytes());
    assert_eq!(open(&mut near, &reflected), Err(Refused::Forged));
    // Neither end has had a datagram of this number.
    let [_, _, mut back] = std::array::from_fn(|_| one(&mut far, b"words"));
    assert_eq!(open(&mut far_too, &back), Err(Refused::Foreign), "another id");
    back[8..12].copy_from_slice(&18u32.to_be_bytes());
    assert_eq!(open(&mut far, &back), Err(Refused::Forged));
    assert_eq!(open(&mut far, &there).unwrap(), b"words");
}

#[test]
fn keys_change_on_the_way_whatever_the_order() {
    let [mut near, mut far] = sessions();
    for edge in [1u64 << 28, 2 << 28, 7 << 28] {
        near.sealer.skip_to(edge - 3);
        far.opener.skip_to(edge - 3);
        let datagrams: Vec<_> = (0..6u8).map(|n| one(&mut near, &[n])).collect();
        for n in [4, 1, 5, 0, 3, 2] {
            assert_eq!(open(&mut far, &datagrams[n]).unwrap(), [byte(n)], "{edge} {n}");
            assert_eq!(open(&mut far, &datagrams[n]), Err(Refused::Replayed));
        }
    }
    // A datagram more than one key ahead is not from a valid peer.
    near.sealer.skip_to((8 << 28) + 5);
    let next = one(&mut near, b"next");
    near.sealer.skip_to(9 << 28);
    assert_eq!(open(&mut far, &one(&mut near, b"far")), Err(Refused::Forged));
    assert_eq!(open(&mut far, &next).unwrap(), b"next");
}

#[test]
fn counters_end() {
    let [mut near, mut far] = sessions();
    near.sealer.skip_to((1 << 40) - 2);
    far.opener.skip_to((1 << 40) - 2);
    let mut out = Vec::new();
    assert_eq!(near.sealer.seal(b"abc", 1, &mut out), Err(Exhausted));
    assert!(out.is_empty());
    near.sealer.seal(b"ab", 1, &mut out).unwrap();
    assert_eq!(far.opener.open_batch(&mut out, 1 + OVERHEAD).length, 2);
    assert_eq!(near.sealer.seal(b"c", 1, &mut out), Err(Exhausted));
    assert_eq!(near.sealer.sealed(), 1 << 40);
}

#[test]
fn another_key_or_none_is_told_apart() {
    let mut responder = Responder::new(&key(), [1; 32], PLACE);
    let (mut stranger, mut hello) = initiator(&other_key(), 17);
    let reply = responder.handle(Time::ZERO, from(), &mut hello, || 18);
    assert!(matches!(reply, Reply::Ignore(Refused::WrongKey)), "{reply:?}");
    assert!(!stranger.is_over(at(2_999)) && stranger.is_over(at(3_000)));
    assert!(stranger.poll(at(100)).is_none() && stranger.poll(at(250)).is_some());

    let mut elsewhere = Responder::new(&other_key(), [1; 32], PLACE);
    let (mut initiator, hello) = initiator(&key(), 17);
    let (_, theirs) = super::tests::initiator(&other_key(), 17);
    let answer = answer(&mut elsewhere, &theirs, 18);
    assert_eq!(initiator.handle(Time::ZERO, &answer).err(), Some(Refused::WrongKey));

    let mut newer = hello;
    newer[1] = 3;
    let reply = responder.handle(Time::ZERO, from(), &mut newer, || 18);
    assert!(matches!(reply, Reply::Ignore(Refused::Version)), "{reply:?}");
    assert_eq!(responder.waiting(), 0);
}

#[test]
fn an_answer_is_repeated_and_a_session_begins_once() {
    let mut responder = Responder::new(&key(), [1; 32], PLACE);
    let (mut initiator, hello) = initiator(&key(), 17);
    let first = answer(&mut responder, &hello, 18);
    assert_eq!(answer(&mut responder, &hello, 19), first);
    assert_eq!(responder.waiting(), 1);
    let mut near = initiator.handle(Time::ZERO, &first).unwrap().unwrap();
    let datagram = one(&mut near, b"words");
    let elsewhere = "192.0.2.7:9000".parse().unwrap();
    let foreign = Some(Refused::Foreign);
    assert_eq!(ignored(&mut responder, Time::ZERO, elsewhere, &datagram), foreign);
    assert_eq!(ignored(&mut responder, at(5_000), from(), &datagram), foreign, "too late");
    assert_eq!(ignored(&mut responder, at(4_999), from(), &datagram), None);
    assert_eq!(responder.waiting(), 0);
    let unknown = Some(Refused::Unknown);
    assert_eq!(ignored(&mut responder, Time::ZERO, from(), &datagram), unknown);
    // A copy of the hello opens nothing for whoever repeats the first datagram, and is forgotten.
    answer(&mut responder, &hello, 18);
    assert_eq!(ignored(&mut responder, Time::ZERO, from(), &datagram), Some(Refused::Forged));
    assert_eq!(responder.waiting(), 1);
    let (_, next) = super::tests::initiator(&key(), 17);
    assert_eq!(ignored(&mut responder, at(6_000), from(), &next), None);
    assert_eq!(responder.waiting(), 1);
}

#[test]
fn a_flood_of_known_hellos_has_to_show_where_it_is_from() {
    let mut responder = Responder::new(&key(), [1; 32], PLACE);
    let mut ids = 100..;
    let mut ask = |responder: &mut Responder, from: SocketAddr, hello: &[u8]| match responder
        .handle(Time::ZERO, from, &mut hello.to_vec(), || ids.next().unwrap())
    {
        Reply::Send(reply) => {
            assert!(reply.len() <= hello.len());
            Ok(reply)
        }
        Reply::Ignore(refused) => Err(refused),
        other => panic!("{other:?}"),
    };
    // One hello, repeated from many addresses.
    let (_, hello) = initiator(&key(), 5);
    for port in 1..1000 {
        let _ = ask(&mut responder, (from().ip(), port).into(), &hello);
    }
    assert_eq!(responder.waiting(), 64);

    let (mut client, hello) = initiator(&key(), 17);
    let cookie = ask(&mut responder, from(), &hello).unwrap();
    assert_eq!(cookie[0], 0xf2);
    let mut bad = cookie.clone();
    for bit in 0..8 * cookie.len() {
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(client.handle(Time::ZERO, &bad).is_err(), "bit {bit}");
        bad[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(client.poll(Time::ZERO).is_none());
    assert!(client.handle(Time::ZERO, &cookie).unwrap().is_none());
    let shown = client.poll(Time::ZERO).unwrap().to_vec();
    let elsewhere = ask(&mut responder, "192.0.2.9:9".parse().unwrap(), &shown).unwrap();
    assert_eq!(elsewhere[0], 0xf2);
    let answer = ask(&mut responder, from(), &shown).unwrap();
    assert!(client.handle(Time::ZERO, &answer).unwrap().is_some());
    assert_eq!(responder.waiting(), 65);

    // With good cookies as well, memory is bounded.
    let mut refused = 0;
    for id in 1000..2000 {
        let (mut client, hello) = initiator(&key(), id);
        let cookie = ask(&mut responder, from(), &hello).unwrap();
        client.handle(Time::ZERO, &cookie).unwrap();
        let shown = client.poll(Time::ZERO).unwrap();
        refused += u32::from(ask(&mut responder, from(), shown) == Err(Refused::Busy));
    }
    assert_eq!((responder.waiting(), refused), (1024, 1000 - (1024 - 65)));
    assert!(matches!(
        responder.handle(at(7_000), from(), &mut hello.clone(), || 1),
        Reply::Send(_)
    ));
    assert_eq!(responder.waiting(), 1);
}

proptest! {
    /// Any order, copies and forgeries: each datagram is opened once, unless it is later than the window.
    #[test]
    fn each_datagram_is_opened_once(
        order in prop::collection::vec((0usize..60, prop::bool::weighted(0.1)), 0..300),
    ) {
        let [mut near, mut far] = sessions();
        let datagrams: Vec<_> = (0..60u8).map(|n| one(&mut near, &[n; 30])).collect();
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
            prop_assert_eq!(open(&mut far, &datagram), expected);
        }
    }

    #[test]
    fn a_sealed_packet_fits_and_is_of_whole_blocks(on_the_wire in 72u32..65_536) {
        let full = packet_size(on_the_wire) + u32::try_from(OVERHEAD).unwrap();
        prop_assert!(full <= on_the_wire && on_the_wire - full < 16);
        prop_assert_eq!((packet_size(on_the_wire) - 28) % 16, 0);
    }

    /// A batch with any invalid datagrams is opened to the valid ones, concatenated.
    #[test]
    fn a_batch_comes_out_whole(
        lengths in (1usize..200, 1usize..20, 1usize..200),
        bad in prop::collection::vec(prop::option::weighted(0.2, 0usize..228), 20),
    ) {
        let (segment, count, last) = lengths;
        let text: Vec<u8> = (0..(count - 1) * segment + last.min(segment)).map(byte).collect();
        let [mut near, mut far] = sessions();
        let mut wire = Vec::new();
        let sealed = near.sealer.seal(&text, segment, &mut wire).unwrap();
        prop_assert_eq!(sealed, segment + OVERHEAD);
        prop_assert_eq!(wire.len(), text.len() + count * OVERHEAD);
        let mut expected = Vec::new();
        for ((datagram, text), bad) in wire.chunks_mut(sealed).zip(text.chunks(segment)).zip(bad) {
            match bad {
                Some(byte) => datagram[byte % datagram.len()] ^= 0x10,
                None => expected.extend_from_slice(text),
            }
        }
        let filled = far.opener.open_batch(&mut wire, sealed);
        prop_assert_eq!(filled.segment, segment);
        prop_assert_eq!(&wire[..filled.length], &expected[..]);
    }

    /// No datagram causes a panic, is accepted, or gets an answer longer than itself.
    #[test]
    fn arbitrary_datagrams_do_nothing(
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
        let mut responder = Responder::new(&key(), [1; 32], PLACE);
        let (mut initiator, hello) = initiator(&key(), 17);
        answer(&mut responder, &hello, 18);
        prop_assert!(initiator.handle(Time::ZERO, &bytes).is_err());
        match responder.handle(Time::ZERO, from(), &mut bytes.clone(), || 19) {
            Reply::Ignore(_) => {}
            Reply::Refuse(reply) => prop_assert!(reply.len() <= bytes.len()),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(responder.waiting(), 1);
        let [_, mut far] = sessions();
        prop_assert!(open(&mut far, &bytes).is_err());
        prop_assert_eq!(far.opener.open_batch(&mut bytes, segment).length, 0);
    }
}
