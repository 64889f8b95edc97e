//! Tests of key pairs, one-time codes and resets.

use super::*;
use crate::secure::handshake::Exchange;
use crate::secure::pending_exchanges::MAX_WRONG_GUESSES;
use crate::secure::wire::MAC_LEN;
use base64ct::Encoding;

const PAIR_HELLO: &str = "f70200000102030400000000000000000000000000000000ac5f324f3591b86ac05a3a70\
    e83d87bb7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13\
    4f23917abce4c12df4919a35e7a1f562166f2f65e21e9ec5c8c0a5dbcdc40e34a593129b\
    42aa1c6670178305515256016cfe3bc6959c806574fb04061a5fc4bf";
const PAIR_ANSWER: &str = "f3020000010203040faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf26\
    78570f2059be51eed815aef45cb4c16c8d342eb3cdabc9847bf5f24a07884179672fbfb3";
const PAIR_THERE: &str = "f4000000000000000a0b0c0d729754f343925aaf85bd76d1b6cf67c7dda7077dc8";

/// The pair whose private key consists of `byte`.
fn own(byte: u8) -> KeyPair {
    let text = base64ct::Base64::encode_string(&[byte; 32]);
    KeyPair::from_file_contents(format!("cwnd-private-key-v1 {text}").as_bytes()).unwrap()
}

fn pair(byte: u8, peers: &[u8], psk: Option<Key>) -> Credentials {
    let peers = peers.iter().map(|byte| own(*byte).public()).collect();
    Credentials::Pair { own: own(byte), peers, psk }
}

fn code(text: &str) -> Credentials {
    Credentials::Code(text.parse().unwrap())
}

/// Runs a handshake and returns the client's session, or the reason for the failure.
fn run_handshake(client: &mut Initiator, responder: &mut Responder) -> Result<Session, Refused> {
    for _ in 0..4 {
        let request = client.poll(Time::ZERO).expect("a request is due").to_vec();
        let reply = send_request(responder, Time::ZERO, from(), &request, 18)?;
        if let Some(session) = client.handle(Time::ZERO, &reply)? {
            return Ok(session);
        }
    }
    panic!("the handshake does not end")
}

fn client(credentials: &Credentials, id: u32) -> Initiator {
    Initiator::new(credentials, Time::ZERO, id, TIMEOUT).unwrap()
}

#[test]
fn a_handshake_with_pairs_matches_another_implementation() {
    let (client, server) = (0x0102_0304, 0x0a0b_0c0d);
    let listener = own(0x44);
    let (client_credentials, listener_credentials) = (own(0x33), pair(0x44, &[0x33], None));
    let public = listener.public();
    let params = NoiseParams::Pair(&client_credentials, Some(&public), None);
    let state = State::hello(noise_with(params, client, true, Some(&[0x11; 32]))).unwrap();
    let credentials = pair(0x33, &[0x44], None);
    let initiator = Initiator::with_state(&credentials, Time::ZERO, client, TIMEOUT, state);
    let mut initiator = initiator.unwrap();
    let hello = initiator.poll(Time::ZERO).unwrap().to_vec();
    assert_eq!(hex(&hello), PAIR_HELLO);

    let params = NoiseParams::Pair(&listener, None, None);
    let mut noise = noise_with(params, client, false, Some(&[0x22; 32])).unwrap();
    let request = &hello[MESSAGE_OFFSET..];
    noise.read_message(&request[MAC_LEN..], &mut []).unwrap();
    let mut responder = Responder::new(&listener_credentials, [1; 32], LISTENER_ID);
    let answer = responder.begin(Time::ZERO, (from(), client), request, noise, || server).unwrap();
    assert_eq!(hex(&answer), PAIR_ANSWER);
    let mut client_end = initiator.handle(Time::ZERO, &answer).unwrap().unwrap();
    assert_eq!(hex(&seal_one(&mut client_end, b"there")), PAIR_THERE);
    assert_eq!(client_end.identity(), Some(public));
}

#[test]
fn only_listed_public_keys_are_accepted() {
    let psk = Some(key_from(3));
    let mut responder = Responder::new(&pair(1, &[2, 3], psk.clone()), [1; 32], LISTENER_ID);
    let mut client_end =
        run_handshake(&mut client(&pair(3, &[1], psk.clone()), 17), &mut responder).unwrap();
    let listener_end = opened(&mut client_end, &mut responder);
    assert_eq!(client_end.identity(), Some(own(1).public()));
    assert_eq!(listener_end.identity(), Some(own(3).public()));

    // An unlisted public key; another listener's public key; a shared key.
    let refused = |credentials: &Credentials, responder: &mut Responder| {
        run_handshake(&mut client(credentials, 19), responder).unwrap_err()
    };
    assert_eq!(refused(&pair(4, &[1], psk.clone()), &mut responder), Refused::WrongKey);
    assert_eq!(refused(&pair(3, &[2], psk), &mut responder), Refused::WrongKey);
    assert_eq!(refused(&key(), &mut responder), Refused::Foreign);
    assert_eq!(responder.pending(), 0);
    // Without the additional pre-shared key, the client cannot decrypt the answer.
    assert_eq!(refused(&pair(3, &[1], None), &mut responder), Refused::WrongKey);
    for (peers, count) in [(&[][..], 0), (&[1, 2], 2)] {
        let error = Initiator::new(&pair(3, peers, None), Time::ZERO, 5, TIMEOUT).unwrap_err();
        assert_eq!(error, Refused::Credentials(CredentialsError::OneListener(count)));
    }
    assert_eq!(pair(3, &[], None).check_listener(), Err(CredentialsError::NoPeers));
}

/// Requests without the listener's public key, or without a cookie for their address, cause no
/// elliptic-curve operations and leave no state.
#[test]
fn a_hello_of_a_pair_is_checked_by_mac_and_cookie_first() {
    let mut responder = Responder::new(&pair(1, &[2], None), [1; 32], LISTENER_ID);
    let mut initiator = client(&pair(2, &[1], None), 17);
    let hello = initiator.poll(Time::ZERO).unwrap().to_vec();
    let cookie = 8 * HANDSHAKE_HEADER..8 * MESSAGE_OFFSET;
    for (bit, bad) in with_flipped_bits(&hello).filter(|(bit, _)| !cookie.contains(bit)) {
        assert!(send_request(&mut responder, Time::ZERO, from(), &bad, 18).is_err(), "bit {bit}");
        assert!(!responder.is_costly(Time::ZERO, from(), &bad));
    }
    let cookie = send_request(&mut responder, Time::ZERO, from(), &hello, 18).unwrap();
    for (bit, bad) in with_flipped_bits(&cookie) {
        assert!(initiator.handle(Time::ZERO, &bad).is_err(), "bit {bit}");
    }
    initiator.handle(Time::ZERO, &cookie).unwrap();
    let with_cookie = initiator.poll(Time::ZERO).unwrap().to_vec();
    let elsewhere = "192.0.2.9:9".parse().unwrap();
    assert!(!responder.is_costly(Time::ZERO, elsewhere, &with_cookie));
    assert!(responder.is_costly(Time::ZERO, from(), &with_cookie));
    assert_eq!(
        send_request(&mut responder, Time::ZERO, elsewhere, &with_cookie, 18).unwrap()[0],
        0xf2
    );
    assert_eq!(responder.pending(), 0);
    let answer = send_request(&mut responder, Time::ZERO, from(), &with_cookie, 18).unwrap();
    assert_eq!(send_request(&mut responder, Time::ZERO, from(), &with_cookie, 18).unwrap(), answer);
    assert_eq!(responder.pending(), 1);
    assert!(initiator.handle(Time::ZERO, &answer).unwrap().is_some());
}

#[test]
fn only_clients_with_the_code_are_accepted() {
    let listener_credentials = code("4821-kavo-miro");
    let mut responder = Responder::new(&listener_credentials, [1; 32], LISTENER_ID);
    let mut client_end =
        run_handshake(&mut client(&code("4821 KAVO MIRO"), 17), &mut responder).unwrap();
    let mut listener_end = opened(&mut client_end, &mut responder);
    let back = seal_one(&mut listener_end, b"back");
    assert_eq!(open(&mut client_end, &back).unwrap(), b"back");
    assert_eq!((client_end.identity(), responder.is_revoked()), (None, false));
    // The code is valid until it is spent.
    run_handshake(&mut client(&listener_credentials, 19), &mut responder).unwrap();
    let mut late = client(&listener_credentials, 20);
    responder.spend_code();
    assert_eq!(run_handshake(&mut late, &mut responder).unwrap_err(), Refused::Revoked);
    assert_eq!(responder.pending(), 0);
    assert!(late.timeout_reason().starts_with("no answer"));
}

#[test]
fn wrong_guesses_are_counted_once_and_revoke_the_code() {
    let listener_credentials = code("4821-kavo-miro");
    let mut responder = Responder::new(&listener_credentials, [1; 32], LISTENER_ID);
    for guess in 0..MAX_WRONG_GUESSES {
        assert!(!responder.is_revoked());
        let mut attacker = client(&code(&format!("000{guess}-kavo-miro")), 17 + guess);
        assert_eq!(run_handshake(&mut attacker, &mut responder).unwrap_err(), Refused::WrongKey);
        assert_eq!(attacker.timeout_reason(), "the code is wrong or has expired");
        // A repeated hello is not counted, and does not continue the exchange.
        for millis in [250, 500, 750, 1_000] {
            let again = attacker.poll(at(millis)).unwrap().to_vec();
            assert_eq!(again[0], 0xf1);
            let refused = send_request(&mut responder, at(millis), from(), &again, 18).unwrap_err();
            assert_eq!(refused, Refused::Foreign);
        }
    }
    assert!(responder.is_revoked());
    assert_eq!(
        run_handshake(&mut client(&listener_credentials, 40), &mut responder).unwrap_err(),
        Refused::Revoked
    );
}

#[test]
fn an_exchange_is_valid_for_one_hello_of_its_client() {
    let listener_credentials = code("4821-kavo-miro");
    let mut responder = Responder::new(&listener_credentials, [1; 32], LISTENER_ID);
    let mut good = client(&listener_credentials, 17);
    let mut recorded = Vec::new();
    let session = loop {
        let request = good.poll(Time::ZERO).unwrap().to_vec();
        let reply = send_request(&mut responder, Time::ZERO, from(), &request, 18).unwrap();
        // The answer may be lost: the same request gets the same answer, and no guess is counted.
        assert_eq!(send_request(&mut responder, Time::ZERO, from(), &request, 18).unwrap(), reply);
        recorded.push(request);
        if let Some(session) = good.handle(Time::ZERO, &reply).unwrap() {
            break session;
        }
    };
    let mut client_end = session;
    opened(&mut client_end, &mut responder);
    assert_eq!(recorded.iter().map(|q| q[0]).collect::<Vec<_>>(), [0xf5, 0xf5, 0xf1]);
    // A hello without an exchange is rejected, from any address.
    let refused = |responder: &mut Responder, from, hello: &[u8]| {
        send_request(responder, at(1), from, hello, 18).unwrap_err()
    };
    let elsewhere = "192.0.2.9:9".parse().unwrap();
    assert_eq!(refused(&mut responder, from(), &recorded[2]), Refused::Foreign);
    assert_eq!(refused(&mut responder, elsewhere, &recorded[2]), Refused::Foreign);
    // A replayed request starts another exchange, which needs another hello.
    let reply = send_request(&mut responder, at(1), from(), &recorded[1], 18).unwrap();
    assert_eq!(reply[0], 0xf6);
    assert_eq!(refused(&mut responder, from(), &recorded[2]), Refused::WrongKey);
    // A client accepts one valid message of an exchange.
    let mut careful = client(&listener_credentials, 21);
    let request = careful.poll(Time::ZERO).unwrap().to_vec();
    let cookie = send_request(&mut responder, Time::ZERO, from(), &request, 18).unwrap();
    careful.handle(Time::ZERO, &cookie).unwrap();
    let request = careful.poll(Time::ZERO).unwrap().to_vec();
    let reply = send_request(&mut responder, Time::ZERO, from(), &request, 18).unwrap();
    let mut forged = reply.clone();
    let foreign = (0..).find(|byte| !Exchange::is_point(&[*byte; 32])).unwrap();
    forged[HANDSHAKE_HEADER..].fill(foreign);
    assert!(careful.handle(Time::ZERO, &forged).is_err(), "not a point on the curve");
    careful.handle(Time::ZERO, &reply).unwrap();
    assert_eq!(careful.handle(Time::ZERO, &reply).err(), Some(Refused::Foreign));
}

#[test]
fn exchanges_are_limited_and_expire() {
    let listener_credentials = code("4821-kavo-miro");
    let mut responder = Responder::new(&listener_credentials, [1; 32], LISTENER_ID);
    let begin = |responder: &mut Responder, now: Time, from: SocketAddr, id: u32| {
        let mut client = Initiator::new(&listener_credentials, now, id, TIMEOUT).unwrap();
        let request = client.poll(now).unwrap().to_vec();
        let cookie = send_request(responder, now, from, &request, 18)?;
        assert_eq!(cookie[0], 0xf2, "a cookie is required first");
        client.handle(now, &cookie)?;
        let request = client.poll(now).unwrap().to_vec();
        let reply = send_request(responder, now, from, &request, 18)?;
        client.handle(now, &reply)?;
        Ok::<_, Refused>(client.poll(now).unwrap().to_vec())
    };
    let address = |host: u8| SocketAddr::from(([192, 0, 2, host], 9));
    for id in 0..8 {
        begin(&mut responder, Time::ZERO, address(1), id).unwrap();
    }
    assert_eq!(begin(&mut responder, Time::ZERO, address(1), 8), Err(Refused::Busy));
    let hello = begin(&mut responder, Time::ZERO, address(2), 8).unwrap();
    let others =
        (3..200).filter(|host| begin(&mut responder, Time::ZERO, address(*host), 8).is_ok());
    assert_eq!(others.count(), 64 - 9);
    assert_eq!(
        send_request(&mut responder, at(10_000), address(2), &hello, 18),
        Err(Refused::Foreign)
    );
    assert!(begin(&mut responder, at(10_000), address(1), 9).is_ok());
}

#[test]
fn only_the_listener_can_make_resets() {
    let credentials = [key(), pair(1, &[2], None)];
    let clients = [key(), pair(2, &[1], None)];
    for (listener_credentials, client_credentials) in credentials.iter().zip(&clients) {
        let mut responder = Responder::new(listener_credentials, [1; 32], LISTENER_ID);
        let mut client_end =
            run_handshake(&mut client(client_credentials, 17), &mut responder).unwrap();
        let mut listener_end = opened(&mut client_end, &mut responder);
        let sent = seal_one(&mut client_end, b"words");
        // The listener is restarted with the same listener id.
        let restarted = Responder::new(listener_credentials, [2; 32], LISTENER_ID);
        let reset = restarted.reset(&sent).unwrap();
        assert!(reset.len() < sent.len());
        assert!(client_end.is_reset(&reset));
        assert_eq!(restarted.reset(&reset), None, "a reset is not answered");
        assert_eq!(restarted.reset(&sent[..reset.len()]), None, "no longer than the request");
        for (bit, bad) in with_flipped_bits(&reset) {
            assert!(!client_end.is_reset(&bad), "bit {bit}");
        }
        // Resets of a datagram that was not sent, and of an old one.
        let mut later = sent.clone();
        later[7] += 1;
        assert!(!client_end.is_reset(&restarted.reset(&later).unwrap()));
        client_end.sealer.skip_to(2 + (1 << 20));
        assert!(!client_end.is_reset(&reset));
        // Another listener id. The listener's end accepts no resets.
        let elsewhere = Responder::new(listener_credentials, [1; 32], b"there")
            .reset(&seal_one(&mut client_end, b"words"));
        assert!(!client_end.is_reset(&elsewhere.unwrap()));
        let back = seal_one(&mut listener_end, b"back");
        assert!(!listener_end.is_reset(&restarted.reset(&back).unwrap()));
    }
    assert_eq!(
        Responder::new(&code("4821-kavo-miro"), [1; 32], LISTENER_ID).reset(&[0xf4; 99]),
        None
    );
}

#[test]
fn debug_output_has_no_secrets() {
    for credentials in [key(), pair(1, &[2], Some(key_from(5))), code("4821-kavo-miro")] {
        let initiator = Initiator::new(&credentials, Time::ZERO, 1, TIMEOUT);
        let mut text =
            format!("{credentials:?} {:?}", Responder::new(&credentials, [7; 32], LISTENER_ID));
        if let Ok(initiator) = initiator {
            text += &format!("{initiator:?}");
        }
        for secret in ["kavo", "AQEBAQEB", "1, 1, 1, 1, 1, 1", "7, 7, 7, 7, 7, 7"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

proptest! {
    /// No datagram causes a panic, opens a session, or is answered by a longer one.
    #[test]
    fn arbitrary_datagrams_open_no_session(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(&[0xf1u8, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8][..]),
        length in prop::sample::select(&[None, Some(28), Some(40), Some(56), Some(72), Some(136)][..]),
    ) {
        if let Some(length) = length {
            bytes.resize(length, 1);
            bytes[..8].copy_from_slice(&[kind, 2, 0, 0, 0, 0, 0, 17]);
        }
        let code = code("4821-kavo-miro");
        for (listener_credentials, client_credentials) in
            [(pair(1, &[2], None), pair(2, &[1], None)), (code.clone(), code), (key(), key())]
        {
            let mut responder = Responder::new(&listener_credentials, [1; 32], LISTENER_ID);
            match responder.handle(Time::ZERO, from(), &mut bytes.clone(), || 18) {
                Reply::Send(reply) => prop_assert!(reply[0] == 0xf2 && reply.len() <= bytes.len()),
                Reply::Refuse(reply) => prop_assert!(reply.len() <= bytes.len()),
                Reply::Ignore(_) => {}
                Reply::Open(..) => prop_assert!(false, "opened"),
            }
            prop_assert_eq!((responder.pending(), responder.is_revoked()), (0, false));
            if let Some(reset) = responder.reset(&bytes) {
                prop_assert!(reset.len() < bytes.len());
            }
            let mut initiator = client(&client_credentials, 17);
            prop_assert!(!matches!(initiator.handle(Time::ZERO, &bytes), Ok(Some(_))));
        }
    }
}
