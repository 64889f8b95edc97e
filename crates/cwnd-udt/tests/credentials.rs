//! Key pairs and one-time codes over sockets.

#![cfg(all(unix, feature = "net"))]

mod common;
mod support;

use cwnd::Dur;
use cwnd_udt::secure::{Code, Credentials, Key, KeyPair, PublicKey};
use cwnd_udt::{Config, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use support::{PATIENCE, local, patient, stream_config};

fn config(credentials: Credentials) -> Config {
    Config {
        credentials: Some(credentials),
        connect_timeout: Dur::from_millis(900),
        ..stream_config("udt")
    }
}

fn pair(own: &KeyPair, peers: &[PublicKey], psk: Option<&Key>) -> Config {
    config(Credentials::Pair { own: own.clone(), peers: peers.to_vec(), psk: psk.cloned() })
}

fn code(code: &Code) -> Config {
    config(Credentials::Code(code.clone()))
}

/// Connects and checks that a word passes.
fn pass(listener: &UdtListener, config: &Config) -> [UdtStream; 2] {
    let client = UdtStream::connect(listener.local_addr(), config).unwrap();
    let (server, _) = listener.accept_until(Some(Instant::now() + PATIENCE)).unwrap();
    for end in [&client, &server] {
        patient(end);
    }
    (&client).write_all(b"a word").unwrap();
    let mut word = [0; 6];
    (&server).read_exact(&mut word).unwrap();
    assert_eq!(&word, b"a word");
    [client, server]
}

fn kept_out(listener: &UdtListener, config: &Config) -> String {
    let error = UdtStream::connect(listener.local_addr(), config).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::ConnectionRefused), "{error}");
    error.to_string()
}

#[test]
fn ends_know_whom_they_talk_to() {
    let [server, alice, bob, mallory] = [(); 4].map(|()| KeyPair::generate().unwrap());
    let bytes: [u8; 32] = std::array::from_fn(|at| at as u8);
    let psk = Key::from_file_contents(&bytes).unwrap();
    for psk in [None, Some(&psk)] {
        let both = [alice.public(), bob.public()];
        let listener = UdtListener::bind(local(), &pair(&server, &both, psk)).unwrap();
        for who in [&alice, &bob] {
            let [near, far] = pass(&listener, &pair(who, &[server.public()], psk));
            assert_eq!(far.identity(), Some(who.public()));
            assert_eq!(near.identity(), Some(server.public()));
        }
        let text = kept_out(&listener, &pair(&mallory, &[server.public()], psk));
        assert!(text.contains("none that has this public key and lets this end's in"), "{text}");
        kept_out(&listener, &pair(&alice, &[mallory.public()], psk));
        kept_out(&listener, &config(Credentials::Key(Key::from_file_contents(&bytes).unwrap())));
        let text = kept_out(&listener, &stream_config("udt"));
        assert!(text.contains("refused"), "{text}");
    }
    let with = UdtListener::bind(local(), &pair(&server, &[alice.public()], Some(&psk))).unwrap();
    let text = kept_out(&with, &pair(&alice, &[server.public()], None));
    assert!(text.contains("another one"), "{text}");
    let error = UdtStream::connect(local(), &pair(&alice, &both(&bob, &server), None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = UdtListener::bind(local(), &pair(&alice, &[], None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

fn both(one: &KeyPair, two: &KeyPair) -> [PublicKey; 2] {
    [one.public(), two.public()]
}

#[test]
fn a_code_connects_one_client_at_a_time_until_it_is_spent() {
    let ours = Code::generate().unwrap();
    let listener = UdtListener::bind(local(), &code(&ours)).unwrap();
    let [first, first_far] = pass(&listener, &code(&ours));
    // A sender that was interrupted comes again: it takes the place of its old connection.
    let [second, _second_far] = pass(&listener, &code(&ours));
    assert_eq!((&first).read(&mut [0]).unwrap_or(0), 0);
    assert!(first.close_reason().is_some() && first_far.close_reason().is_some());
    assert_eq!(second.close_reason(), None);
    assert_eq!(second.identity(), None);
    listener.spend_code();
    let text = kept_out(&listener, &code(&ours));
    assert!(text.starts_with("nobody answered"), "{text}");
    (&second).write_all(b"goes on").unwrap();
    assert_eq!(second.close_reason(), None);
}

#[test]
fn wrong_guesses_make_a_code_void() {
    let ours: Code = "4821-kavo-miro".parse().unwrap();
    let listener = UdtListener::bind(local(), &code(&ours)).unwrap();
    let soon = || Some(Instant::now() + Duration::from_millis(50));
    for guess in 0..5 {
        assert_eq!(listener.accept_until(soon()).unwrap_err().kind(), ErrorKind::TimedOut);
        let wrong: Code = format!("482{guess}-kavo-mira").parse().unwrap();
        assert_eq!(kept_out(&listener, &code(&wrong)), "the code is wrong or has expired");
    }
    let error = listener.accept_until(soon()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(error.to_string(), "the code is void: there were 5 wrong guesses");
    kept_out(&listener, &code(&ours));
}

/// Who comes with something else is no guess.
#[test]
fn other_clients_are_no_guesses() {
    let ours = Code::generate().unwrap();
    let listener = UdtListener::bind(local(), &code(&ours)).unwrap();
    let pairs = [(); 2].map(|()| KeyPair::generate().unwrap());
    for _ in 0..6 {
        kept_out(&listener, &pair(&pairs[0], &[pairs[1].public()], None));
        kept_out(&listener, &stream_config("udt"));
    }
    pass(&listener, &code(&ours));
}
