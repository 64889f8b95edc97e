//! Key pairs and one-time codes over sockets.

use crate::common::key;
use crate::support::{connect, local, short_timeout, stream_config};
use cwnd::Dur;
use cwnd_udt::secure::{Code, Credentials, Key, KeyPair, PublicKey};
use cwnd_udt::{Config, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

fn config(credentials: Credentials) -> Config {
    Config { credentials: Some(credentials), ..stream_config("udt") }
}

fn pair(own: &KeyPair, peers: &[PublicKey], psk: Option<&Key>) -> Config {
    config(Credentials::Pair { own: own.clone(), peers: peers.to_vec(), psk: psk.cloned() })
}

fn code(code: &Code) -> Config {
    config(Credentials::Code(code.clone()))
}

/// Connects, and checks that data arrives.
fn connect_and_exchange(listener: &UdtListener, config: &Config) -> [UdtStream; 2] {
    let [client, server] = connect(listener, listener.local_addr(), config);
    (&client).write_all(b"a word").unwrap();
    let mut word = [0; 6];
    (&server).read_exact(&mut word).unwrap();
    assert_eq!(&word, b"a word");
    [client, server]
}

/// Asserts that a handshake is not completed, and that this is the likely reason.
fn expect_timeout(listener: &UdtListener, config: &Config, reason: &str) {
    let error = UdtStream::connect(listener.local_addr(), config).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

/// With an answer that arrives before the timeout, the likely reason is another.
fn with_time_for_an_answer(config: Config) -> Config {
    Config { connect_timeout: Dur::from_millis(3_000), ..config }
}

fn expect_no_answer(listener: &UdtListener, config: Config) {
    expect_timeout(listener, &short_timeout(config), "no answer");
}

/// Asserts that a client without credentials is refused.
fn expect_refused(listener: &UdtListener) {
    let error = UdtStream::connect(listener.local_addr(), &stream_config("udt")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
}

#[test]
fn ends_authenticate_each_other_by_key_pairs() {
    let [server, alice, bob, mallory] = [(); 4].map(|()| KeyPair::generate().unwrap());
    let psk = key(0);
    for psk in [None, Some(&psk)] {
        let both = [alice.public(), bob.public()];
        let listener = UdtListener::bind(local(), &pair(&server, &both, psk)).unwrap();
        for client in [&alice, &bob] {
            let [client_end, listener_end] =
                connect_and_exchange(&listener, &pair(client, &[server.public()], psk));
            assert_eq!(listener_end.identity(), Some(client.public()));
            assert_eq!(client_end.identity(), Some(server.public()));
        }
        let unlisted = short_timeout(pair(&mallory, &[server.public()], psk));
        expect_timeout(&listener, &unlisted, "does not accept this end's public key");
        expect_no_answer(&listener, pair(&alice, &[mallory.public()], psk));
        expect_no_answer(&listener, config(Credentials::Key(key(0))));
        expect_refused(&listener);
    }
    let with = UdtListener::bind(local(), &pair(&server, &[alice.public()], Some(&psk))).unwrap();
    let without = pair(&alice, &[server.public()], None);
    expect_timeout(&with, &with_time_for_an_answer(without), "the peer has another key");
    let error = UdtStream::connect(local(), &pair(&alice, &both(&bob, &server), None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = UdtListener::bind(local(), &pair(&alice, &[], None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

fn both(one: &KeyPair, two: &KeyPair) -> [PublicKey; 2] {
    [one.public(), two.public()]
}

#[test]
fn a_code_is_valid_for_one_client_at_a_time_until_it_is_spent() {
    let valid_code = Code::generate().unwrap();
    let listener = UdtListener::bind(local(), &code(&valid_code)).unwrap();
    let [first, first_accepted] = connect_and_exchange(&listener, &code(&valid_code));
    // A reconnecting client replaces its old connection.
    let [second, _second_accepted] = connect_and_exchange(&listener, &code(&valid_code));
    assert_eq!((&first).read(&mut [0]).unwrap_or(0), 0);
    assert!(first.close_reason().is_some() && first_accepted.close_reason().is_some());
    assert_eq!(second.close_reason(), None);
    assert_eq!(second.identity(), None);
    listener.spend_code();
    expect_no_answer(&listener, code(&valid_code));
    (&second).write_all(b"goes on").unwrap();
    assert_eq!(second.close_reason(), None);
}

#[test]
fn wrong_guesses_revoke_a_code() {
    let valid_code: Code = "4821-kavo-miro".parse().unwrap();
    let listener = UdtListener::bind(local(), &code(&valid_code)).unwrap();
    let short_deadline = || Some(Instant::now() + Duration::from_millis(50));
    for guess in 0..5 {
        assert_eq!(
            listener.accept_until(short_deadline()).unwrap_err().kind(),
            ErrorKind::TimedOut
        );
        let wrong: Code = format!("482{guess}-kavo-mira").parse().unwrap();
        let guess = with_time_for_an_answer(code(&wrong));
        expect_timeout(&listener, &guess, "the code is wrong or has expired");
    }
    let error = listener.accept_until(short_deadline()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(error.to_string(), "the code was revoked after 5 wrong guesses");
    expect_no_answer(&listener, code(&valid_code));
}

#[test]
fn clients_with_other_credentials_are_not_counted_as_guesses() {
    let valid_code = Code::generate().unwrap();
    let listener = UdtListener::bind(local(), &code(&valid_code)).unwrap();
    let pairs = [(); 2].map(|()| KeyPair::generate().unwrap());
    for _ in 0..6 {
        expect_no_answer(&listener, pair(&pairs[0], &[pairs[1].public()], None));
        expect_refused(&listener);
    }
    connect_and_exchange(&listener, &code(&valid_code));
}
