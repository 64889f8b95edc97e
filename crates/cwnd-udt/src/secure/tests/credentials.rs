//! Key pairs, one-time codes and resets.

use super::*;
use crate::secure::exchanges::GUESSES;
use crate::secure::handshake::Exchange;
use crate::secure::wire::MAC;
use base64ct::Encoding;

const PAIR_HELLO: &str = "f70200000102030400000000000000000000000000000000ac5f324f3591b86ac05a3a70\
    e83d87bb7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13\
    4f23917abce4c12df4919a35e7a1f562166f2f65e21e9ec5c8c0a5dbcdc40e34a593129b\
    42aa1c6670178305515256016cfe3bc6959c806574fb04061a5fc4bf";
const PAIR_ANSWER: &str = "f3020000010203040faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf26\
    78570f2059be51eed815aef45cb4c16c8d342eb3cdabc9847bf5f24a07884179672fbfb3";
const PAIR_THERE: &str = "f4000000000000000a0b0c0d729754f343925aaf85bd76d1b6cf67c7dda7077dc8";

/// The pair whose private key is `byte` in all places.
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

/// What a responder answers, or why it does not. No answer is longer than its question.
fn ask(
    responder: &mut Responder,
    now: Time,
    from: SocketAddr,
    datagram: &[u8],
) -> Result<Vec<u8>, Refused> {
    match responder.handle(now, from, &mut datagram.to_vec(), || 18) {
        Reply::Send(reply) => {
            assert!(reply.len() <= datagram.len());
            Ok(reply)
        }
        Reply::Ignore(refused) => Err(refused),
        other => panic!("{other:?}"),
    }
}

/// Lets a client and a responder talk: the client's session, or why there is none.
fn meet(client: &mut Initiator, responder: &mut Responder) -> Result<Session, Refused> {
    for _ in 0..4 {
        let question = client.poll(Time::ZERO).expect("something to say").to_vec();
        let reply = ask(responder, Time::ZERO, from(), &question)?;
        if let Some(session) = client.handle(Time::ZERO, &reply)? {
            return Ok(session);
        }
    }
    panic!("no end of questions")
}

/// The listener's end of a session, which the client opens with its first datagram.
fn opened(near: &mut Session, responder: &mut Responder) -> Session {
    let mut first = one(near, b"first");
    match responder.handle(Time::ZERO, from(), &mut first, || 0) {
        Reply::Open(far, _) => *far,
        other => panic!("{other:?}"),
    }
}

fn client(credentials: &Credentials, id: u32) -> Initiator {
    Initiator::new(credentials, Time::ZERO, id, TIMEOUT).unwrap()
}

#[test]
fn a_pair_shakes_hands_as_another_implementation_does() {
    let (client, server) = (0x0102_0304, 0x0a0b_0c0d);
    let listener = own(0x44);
    let (theirs, ours) = (own(0x33), pair(0x44, &[0x33], None));
    let public = listener.public();
    let proof = Proof::Pair(&theirs, Some(&public), None);
    let noise = noise_with(proof, client, true, Some(&[0x11; 32])).unwrap();
    let credentials = pair(0x33, &[0x44], None);
    let initiator = Initiator::with_noise(&credentials, Time::ZERO, client, TIMEOUT, noise);
    let mut initiator = initiator.unwrap();
    let hello = initiator.poll(Time::ZERO).unwrap().to_vec();
    assert_eq!(hex(&hello), PAIR_HELLO);

    let proof = Proof::Pair(&listener, None, None);
    let mut noise = noise_with(proof, client, false, Some(&[0x22; 32])).unwrap();
    let question = &hello[MESSAGE..];
    noise.read_message(&question[MAC..], &mut []).unwrap();
    let mut responder = Responder::new(&ours, [1; 32], PLACE);
    let begun = responder.begin(Time::ZERO, (from(), client), question, noise, || server);
    let answer = begun.unwrap();
    assert_eq!(hex(&answer), PAIR_ANSWER);
    let mut near = initiator.handle(Time::ZERO, &answer).unwrap().unwrap();
    assert_eq!(hex(&one(&mut near, b"there")), PAIR_THERE);
    assert_eq!(near.identity(), Some(public));
}

#[test]
fn a_pair_lets_in_those_on_its_list() {
    let psk = Some(key_from(3));
    let mut responder = Responder::new(&pair(1, &[2, 3], psk.clone()), [1; 32], PLACE);
    let mut near = meet(&mut client(&pair(3, &[1], psk.clone()), 17), &mut responder).unwrap();
    let far = opened(&mut near, &mut responder);
    assert_eq!(near.identity(), Some(own(1).public()));
    assert_eq!(far.identity(), Some(own(3).public()));

    // Not on the list; another listener's key; a key, not a pair.
    let refused = |credentials: &Credentials, responder: &mut Responder| {
        meet(&mut client(credentials, 19), responder).unwrap_err()
    };
    assert_eq!(refused(&pair(4, &[1], psk.clone()), &mut responder), Refused::WrongKey);
    assert_eq!(refused(&pair(3, &[2], psk), &mut responder), Refused::WrongKey);
    assert_eq!(refused(&key(), &mut responder), Refused::Foreign);
    assert_eq!(responder.waiting(), 0);
    // Without the secret besides, the client cannot read the answer.
    assert_eq!(refused(&pair(3, &[1], None), &mut responder), Refused::WrongKey);
    for (peers, count) in [(&[][..], 0), (&[1, 2], 2)] {
        let error = Initiator::new(&pair(3, peers, None), Time::ZERO, 5, TIMEOUT).unwrap_err();
        assert_eq!(error, Refused::Credentials(CredentialsError::OneListener(count)));
    }
    assert_eq!(pair(3, &[], None).check_listener(), Err(CredentialsError::NoPeers));
}

/// Nothing is multiplied, and nothing kept, for who does not know the listener's public key or is not at its
/// address.
#[test]
fn a_pairs_hello_is_checked_cheaply_first() {
    let mut responder = Responder::new(&pair(1, &[2], None), [1; 32], PLACE);
    let mut initiator = client(&pair(2, &[1], None), 17);
    let hello = initiator.poll(Time::ZERO).unwrap().to_vec();
    for bit in (0..8 * hello.len()).filter(|bit| !(8 * HEAD..8 * MESSAGE).contains(bit)) {
        let mut bad = hello.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(ask(&mut responder, Time::ZERO, from(), &bad).is_err(), "bit {bit}");
        assert!(!responder.is_costly(Time::ZERO, from(), &bad));
    }
    let cookie = ask(&mut responder, Time::ZERO, from(), &hello).unwrap();
    for bit in 0..8 * cookie.len() {
        let mut bad = cookie.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(initiator.handle(Time::ZERO, &bad).is_err(), "bit {bit}");
    }
    initiator.handle(Time::ZERO, &cookie).unwrap();
    let shown = initiator.poll(Time::ZERO).unwrap().to_vec();
    let elsewhere = "192.0.2.9:9".parse().unwrap();
    assert!(!responder.is_costly(Time::ZERO, elsewhere, &shown));
    assert!(responder.is_costly(Time::ZERO, from(), &shown));
    assert_eq!(ask(&mut responder, Time::ZERO, elsewhere, &shown).unwrap()[0], 0xf2);
    assert_eq!(responder.waiting(), 0);
    let answer = ask(&mut responder, Time::ZERO, from(), &shown).unwrap();
    assert_eq!(ask(&mut responder, Time::ZERO, from(), &shown).unwrap(), answer);
    assert_eq!(responder.waiting(), 1);
    assert!(initiator.handle(Time::ZERO, &answer).unwrap().is_some());
}

#[test]
fn a_code_lets_in_who_has_it() {
    let ours = code("4821-kavo-miro");
    let mut responder = Responder::new(&ours, [1; 32], PLACE);
    let mut near = meet(&mut client(&code("4821 KAVO MIRO"), 17), &mut responder).unwrap();
    let mut far = opened(&mut near, &mut responder);
    let back = one(&mut far, b"back");
    assert_eq!(open(&mut near, &back).unwrap(), b"back");
    assert_eq!((near.identity(), responder.is_void()), (None, false));
    // It is good until it is spent.
    meet(&mut client(&ours, 19), &mut responder).unwrap();
    let mut late = client(&ours, 20);
    responder.spend_code();
    assert_eq!(meet(&mut late, &mut responder).unwrap_err(), Refused::Void);
    assert_eq!(responder.waiting(), 0);
    assert!(late.silence().starts_with("nobody answered"));
}

#[test]
fn wrong_guesses_are_counted_once_and_make_a_code_void() {
    let ours = code("4821-kavo-miro");
    let mut responder = Responder::new(&ours, [1; 32], PLACE);
    for guess in 0..GUESSES {
        assert!(!responder.is_void());
        let mut stranger = client(&code(&format!("000{guess}-kavo-miro")), 17 + guess);
        assert_eq!(meet(&mut stranger, &mut responder).unwrap_err(), Refused::WrongKey);
        assert_eq!(stranger.silence(), "the code is wrong or has expired");
        // Repeating the hello is no other guess, and does not go on with the exchange.
        for millis in [250, 500, 750, 1_000] {
            let again = stranger.poll(at(millis)).unwrap().to_vec();
            assert_eq!(again[0], 0xf1);
            let refused = ask(&mut responder, at(millis), from(), &again).unwrap_err();
            assert_eq!(refused, Refused::Foreign);
        }
    }
    assert!(responder.is_void());
    assert_eq!(meet(&mut client(&ours, 40), &mut responder).unwrap_err(), Refused::Void);
}

#[test]
fn an_exchange_is_good_for_one_hello_of_its_client() {
    let ours = code("4821-kavo-miro");
    let mut responder = Responder::new(&ours, [1; 32], PLACE);
    let mut good = client(&ours, 17);
    let mut recorded = Vec::new();
    let session = loop {
        let question = good.poll(Time::ZERO).unwrap().to_vec();
        let reply = ask(&mut responder, Time::ZERO, from(), &question).unwrap();
        // The answer may be lost: the same question gets the same answer, and no guess is counted.
        assert_eq!(ask(&mut responder, Time::ZERO, from(), &question).unwrap(), reply);
        recorded.push(question);
        if let Some(session) = good.handle(Time::ZERO, &reply).unwrap() {
            break session;
        }
    };
    let mut near = session;
    opened(&mut near, &mut responder);
    assert_eq!(recorded.iter().map(|q| q[0]).collect::<Vec<_>>(), [0xf5, 0xf5, 0xf1]);
    // The hello without its exchange is nothing, from there or from elsewhere.
    let refused = |responder: &mut Responder, from, hello: &[u8]| {
        ask(responder, at(1), from, hello).unwrap_err()
    };
    let elsewhere = "192.0.2.9:9".parse().unwrap();
    assert_eq!(refused(&mut responder, from(), &recorded[2]), Refused::Foreign);
    assert_eq!(refused(&mut responder, elsewhere, &recorded[2]), Refused::Foreign);
    // The ask begins another exchange, whose hello is another one.
    let reply = ask(&mut responder, at(1), from(), &recorded[1]).unwrap();
    assert_eq!(reply[0], 0xf6);
    assert_eq!(refused(&mut responder, from(), &recorded[2]), Refused::WrongKey);
    // A client takes one message of an exchange, whoever sent it.
    let mut careful = client(&ours, 21);
    let question = careful.poll(Time::ZERO).unwrap().to_vec();
    let cookie = ask(&mut responder, Time::ZERO, from(), &question).unwrap();
    careful.handle(Time::ZERO, &cookie).unwrap();
    let question = careful.poll(Time::ZERO).unwrap().to_vec();
    let reply = ask(&mut responder, Time::ZERO, from(), &question).unwrap();
    let mut forged = reply.clone();
    let foreign = (0..).find(|byte| !Exchange::is_point(&[*byte; 32])).unwrap();
    forged[HEAD..].fill(foreign);
    assert!(careful.handle(Time::ZERO, &forged).is_err(), "no point of the curve");
    careful.handle(Time::ZERO, &reply).unwrap();
    assert_eq!(careful.handle(Time::ZERO, &reply).err(), Some(Refused::Foreign));
}

#[test]
fn exchanges_are_few_and_end() {
    let ours = code("4821-kavo-miro");
    let mut responder = Responder::new(&ours, [1; 32], PLACE);
    let begin = |responder: &mut Responder, now: Time, from: SocketAddr, id: u32| {
        let mut client = Initiator::new(&ours, now, id, TIMEOUT).unwrap();
        let question = client.poll(now).unwrap().to_vec();
        let cookie = ask(responder, now, from, &question)?;
        assert_eq!(cookie[0], 0xf2, "an exchange for who has not shown a cookie");
        client.handle(now, &cookie)?;
        let question = client.poll(now).unwrap().to_vec();
        let reply = ask(responder, now, from, &question)?;
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
    assert_eq!(ask(&mut responder, at(10_000), address(2), &hello), Err(Refused::Foreign));
    assert!(begin(&mut responder, at(10_000), address(1), 9).is_ok());
}

#[test]
fn only_the_listener_makes_resets() {
    let credentials = [key(), pair(1, &[2], None)];
    let clients = [key(), pair(2, &[1], None)];
    for (ours, theirs) in credentials.iter().zip(&clients) {
        let mut responder = Responder::new(ours, [1; 32], PLACE);
        let mut near = meet(&mut client(theirs, 17), &mut responder).unwrap();
        let mut far = opened(&mut near, &mut responder);
        let sent = one(&mut near, b"words");
        // The listener forgets everything and is started again at the same place.
        let restarted = Responder::new(ours, [2; 32], PLACE);
        let reset = restarted.reset(&sent).unwrap();
        assert!(reset.len() < sent.len());
        assert!(near.is_reset(&reset));
        assert_eq!(restarted.reset(&reset), None, "no reset answers a reset");
        assert_eq!(restarted.reset(&sent[..reset.len()]), None, "no longer than the question");
        for bit in 0..8 * reset.len() {
            let mut bad = reset;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!near.is_reset(&bad), "bit {bit}");
        }
        // A datagram that was not sent, or long ago.
        let mut later = sent.clone();
        later[7] += 1;
        assert!(!near.is_reset(&restarted.reset(&later).unwrap()));
        near.sealer.skip_to(2 + (1 << 20));
        assert!(!near.is_reset(&reset));
        // Another session, another place, another secret; and a client's token is the listener's alone.
        let elsewhere = Responder::new(ours, [1; 32], b"there").reset(&one(&mut near, b"words"));
        assert!(!near.is_reset(&elsewhere.unwrap()));
        let back = one(&mut far, b"back");
        assert!(!far.is_reset(&restarted.reset(&back).unwrap()));
    }
    assert_eq!(Responder::new(&code("4821-kavo-miro"), [1; 32], PLACE).reset(&[0xf4; 99]), None);
}

#[test]
fn nothing_secret_is_printed() {
    for credentials in [key(), pair(1, &[2], Some(key_from(5))), code("4821-kavo-miro")] {
        let initiator = Initiator::new(&credentials, Time::ZERO, 1, TIMEOUT);
        let mut text =
            format!("{credentials:?} {:?}", Responder::new(&credentials, [7; 32], PLACE));
        if let Ok(initiator) = initiator {
            text += &format!("{initiator:?}");
        }
        for secret in ["kavo", "AQEBAQEB", "1, 1, 1", "7, 7, 7"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

proptest! {
    /// Nothing that comes from the network panics, opens anything, or gets an answer longer than itself.
    #[test]
    fn arbitrary_datagrams_open_nothing(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(&[0xf1u8, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8][..]),
        length in prop::sample::select(&[None, Some(28), Some(40), Some(56), Some(72), Some(136)][..]),
    ) {
        if let Some(length) = length {
            bytes.resize(length, 1);
            bytes[..8].copy_from_slice(&[kind, 2, 0, 0, 0, 0, 0, 17]);
        }
        let code = code("4821-kavo-miro");
        for (ours, theirs) in
            [(pair(1, &[2], None), pair(2, &[1], None)), (code.clone(), code), (key(), key())]
        {
            let mut responder = Responder::new(&ours, [1; 32], PLACE);
            match responder.handle(Time::ZERO, from(), &mut bytes.clone(), || 18) {
                Reply::Send(reply) => prop_assert!(reply[0] == 0xf2 && reply.len() <= bytes.len()),
                Reply::Refuse(reply) => prop_assert!(reply.len() <= bytes.len()),
                Reply::Ignore(_) => {}
                Reply::Open(..) => prop_assert!(false, "opened"),
            }
            prop_assert_eq!((responder.waiting(), responder.is_void()), (0, false));
            if let Some(reset) = responder.reset(&bytes) {
                prop_assert!(reset.len() < bytes.len());
            }
            let mut initiator = client(&theirs, 17);
            prop_assert!(!matches!(initiator.handle(Time::ZERO, &bytes), Ok(Some(_))));
        }
    }
}
