//! Arbitrary datagrams of the secure handshake, and changed ones of a client with the credentials:
//! neither end panics, an answer is not longer than its request, and a changed datagram opens no
//! session.

#![no_main]

use cwnd::{Dur, Time};
use cwnd_udt::secure::{Credentials, Initiator, Key, KeyPair, Reply, Responder};
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;

const OWN: &[u8] = b"6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19";

/// The place of the cookie in a request.
const COOKIE: std::ops::Range<usize> = 8..24;

/// The credentials of a client and of its listener.
fn credentials(kind: u8) -> (Credentials, Credentials) {
    let psk = Key::from_file_contents(OWN).ok();
    match kind % 3 {
        0 => {
            let key = || Credentials::Key(psk.clone().unwrap());
            (key(), key())
        }
        1 => {
            let (client, listener) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
            let (ours, theirs) = (client.public(), listener.public());
            let pair = |own, peer| Credentials::Pair { own, peers: vec![peer], psk: psk.clone() };
            (pair(client, theirs), pair(listener, ours))
        }
        _ => {
            let code = || Credentials::Code("4821-kavo-miro".parse().unwrap());
            (code(), code())
        }
    }
}

fuzz_target!(|input: (u8, Vec<(u16, u8)>, Vec<Vec<u8>>)| {
    let (kind, changes, noise) = input;
    let (client, listener) = credentials(kind);
    let (now, from) = (Time::ZERO, SocketAddr::from(([192, 0, 2, 1], 9000)));
    let mut responder = Responder::new(&listener, [0; 32], b"here");
    let mut initiator = Initiator::new(&client, now, 17, Dur::from_millis(3_000)).unwrap();
    for datagram in &noise {
        let _ = initiator.handle(now, datagram);
        let mut datagram = datagram.clone();
        let length = datagram.len();
        match responder.handle(now, from, &mut datagram, || 18) {
            Reply::Send(answer) => assert!(answer.len() <= length),
            Reply::Open(..) => panic!("noise opened a session"),
            Reply::Ignore(_) | Reply::Refuse(_) => {}
        }
    }
    let Some(sent) = initiator.poll(now).map(<[u8]>::to_vec) else { return };
    let mut hello = sent.clone();
    for (at, bits) in changes {
        let at = usize::from(at) % hello.len();
        // A listener that asks for no cookie ignores it.
        if !COOKIE.contains(&at) {
            hello[at] ^= bits;
        }
    }
    let changed = hello != sent;
    let reply = responder.handle(now, from, &mut hello, || 19);
    let Reply::Send(answer) = reply else { return };
    assert!(answer.len() <= sent.len());
    if let Ok(session) = initiator.handle(now, &answer) {
        assert!(!changed || session.is_none(), "a changed request opened a session");
    }
});
