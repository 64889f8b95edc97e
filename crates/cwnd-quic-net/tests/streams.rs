//! Streams over loopback.

use cwnd_quic_net::{
    Connecting, Controllers, Error, Stream, StreamListener, StreamOptions, client_socket,
};
use cwnd_sim::network::QuicStack;
use cwnd_udt::Admission;
use cwnd_udt::secure::{Credentials, Key, KeyPair};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const STACKS: [QuicStack; 2] = [QuicStack::Noq, QuicStack::Quinn];

fn options(stack: QuicStack, credentials: Option<&Credentials>) -> StreamOptions {
    StreamOptions {
        stack,
        controller: String::new(),
        controllers: Some(Controllers::try_from("cubic").expect("known")),
        mtu: 1500,
        credentials: credentials.cloned(),
    }
}

fn listen(stack: QuicStack, credentials: Option<&Credentials>) -> StreamListener {
    listen_to(stack, credentials, Admission::default())
}

fn listen_to(
    stack: QuicStack,
    credentials: Option<&Credentials>,
    admission: Admission,
) -> StreamListener {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    StreamListener::new(socket, options(stack, credentials), admission).expect("listens")
}

fn connect(
    stack: QuicStack,
    peer: SocketAddr,
    credentials: Option<&Credentials>,
) -> io::Result<Box<dyn Stream>> {
    let socket = client_socket(None, peer)?;
    let mut connecting = Connecting::new(socket, peer, options(stack, credentials), PATIENCE)
        .expect("the options are valid");
    connecting.until(soon())
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + PATIENCE)
}

/// Returns both ends of a connection.
fn ends(stacks: [QuicStack; 2]) -> [Box<dyn Stream>; 2] {
    let listener = listen(stacks[1], None);
    let client = connect(stacks[0], listener.local(), None).expect("connects");
    // A client's stream exists for the listener when it has data.
    assert_eq!(client.write_until(b"x", soon()).expect("room"), 1);
    let server = listener.accept_until(soon()).expect("accepts");
    assert_eq!(server.read_until(&mut [0], soon()).expect("arrives"), 1);
    [client, server]
}

fn read_all(stream: &dyn Stream) -> io::Result<u64> {
    let (mut buffer, mut sum) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read_until(&mut buffer, soon())? {
            0 => return Ok(sum),
            bytes => sum += bytes as u64,
        }
    }
}

fn write_all(stream: &dyn Stream, mut data: &[u8]) {
    while !data.is_empty() {
        data = &data[stream.write_until(data, soon()).expect("room")..];
    }
}

#[test]
fn bytes_arrive_in_both_directions_and_their_arrival_is_known() {
    // A listener that is gone leaves its connections open.
    for stacks in [STACKS, [STACKS[1], STACKS[0]]] {
        let [client, server] = ends(stacks);
        let data = vec![7; 5_000_000];
        for (from, to) in [(&client, &server), (&server, &client)] {
            thread::scope(|scope| {
                scope.spawn(|| write_all(from.as_ref(), &data));
                let mut buffer = vec![0; data.len()];
                let mut count = 0;
                while count < data.len() {
                    count += to.read_until(&mut buffer[count..], soon()).expect("arrives");
                }
                assert_eq!(buffer, data);
            });
            let begin = Instant::now();
            while from.stats().unread > 0 {
                assert!(begin.elapsed() < PATIENCE, "{:?}", from.stats());
                thread::sleep(Duration::from_millis(1));
            }
            let stats = from.stats();
            assert!(stats.window > 0 && stats.rtt > Duration::ZERO, "{stats:?}");
        }
        let reader = thread::spawn(move || read_all(server.as_ref()));
        client.close_until(soon()).expect("all has arrived");
        assert_eq!(reader.join().expect("reads").expect("closed"), 0);
        let error = client.write_until(b"x", soon()).expect_err("closed");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
    }
}

#[test]
fn what_was_written_before_a_close_is_read_after_it() {
    for stack in STACKS {
        let [client, server] = ends([stack; 2]);
        write_all(client.as_ref(), &[1; 100_000]);
        client.close_until(soon()).expect("all has arrived");
        assert_eq!(read_all(server.as_ref()).expect("closed"), 100_000);
    }
}

#[test]
fn an_abort_ends_a_wait_of_the_peer_and_of_this_end() {
    let [client, server] = ends(STACKS);
    let error = server.read_until(&mut [0], Some(Instant::now())).expect_err("no data");
    assert!(error.kind() == ErrorKind::TimedOut && error.get_ref().is_none(), "{error:?}");
    thread::scope(|scope| {
        let local = scope.spawn(|| client.read_until(&mut [0], soon()));
        let remote = scope.spawn(|| server.read_until(&mut [0], soon()));
        thread::sleep(Duration::from_millis(50));
        client.abort();
        assert_eq!(remote.join().expect("waits").expect("closed"), 0);
        let error = local.join().expect("waits").expect_err("aborted");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
    });
}

#[test]
fn only_equal_credentials_open_a_connection() {
    let key = |first: u8| {
        let bytes: Vec<u8> = (first..first + 32).collect();
        Key::from_file_contents(&bytes).expect("a key")
    };
    let [one, two, three] = [(); 3].map(|()| KeyPair::generate().expect("random numbers"));
    let pair = |own: &KeyPair, peer: &KeyPair, psk| Credentials::Pair {
        own: own.clone(),
        peers: vec![peer.public()],
        psk,
    };
    let shared = Credentials::Key(key(0));
    let listening = pair(&one, &two, None);
    let cases = [
        (Some(&shared), Some(shared.clone()), None),
        (Some(&shared), Some(Credentials::Key(key(1))), Some("the peer has other credentials")),
        (Some(&shared), Some(pair(&two, &one, None)), Some("the peer has other credentials")),
        (Some(&shared), None, Some("one end has credentials and the other has none")),
        (None, Some(shared.clone()), Some("one end has credentials and the other has none")),
        (Some(&listening), Some(pair(&two, &one, None)), None),
        (Some(&listening), Some(pair(&two, &three, None)), Some("the peer has other credentials")),
        (Some(&listening), Some(pair(&three, &one, None)), Some("the peer has other credentials")),
        (
            Some(&listening),
            Some(pair(&two, &one, Some(key(0)))),
            Some("the peer has other credentials"),
        ),
    ];
    for (index, (theirs, ours, refusal)) in cases.into_iter().enumerate() {
        let [stack, other] = [STACKS[index % 2], STACKS[(index + 1) % 2]];
        let listener = listen(other, theirs);
        match (connect(stack, listener.local(), ours.as_ref()), refusal) {
            (Ok(client), None) => {
                write_all(client.as_ref(), b"x");
                let server = listener.accept_until(soon()).expect("accepts");
                assert_eq!(server.read_until(&mut [0; 9], soon()).expect("arrives"), 1);
            }
            (Err(error), Some(refusal)) => {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{index}: {error}");
                assert_eq!(error.to_string(), refusal, "{index}");
                let accepted = listener.accept_until(Some(Instant::now()));
                assert!(accepted.is_err(), "{index}");
            }
            (outcome, _) => panic!("{index}: {outcome:?}"),
        }
    }
}

#[test]
fn an_address_has_a_number_of_connections_and_others_get_no_answer() {
    let admission = Admission { per_address: Some(1), ..Admission::default() };
    let listener = listen_to(STACKS[0], None, admission);
    let first = connect(STACKS[0], listener.local(), None).expect("connects");
    write_all(first.as_ref(), b"x");
    let accepted = listener.accept_until(soon()).expect("accepts");
    let attempt = |peer| {
        let socket = client_socket(None, peer).expect("a port");
        let patience = Duration::from_millis(300);
        let mut connecting = Connecting::new(socket, peer, options(STACKS[1], None), patience)
            .expect("the options are valid");
        connecting.until(soon())
    };
    let error = attempt(listener.local()).expect_err("one is open");
    assert_eq!(error.to_string(), "no answer: no QUIC server is there");
    drop((first, accepted));
    let begin = Instant::now();
    while attempt(listener.local()).is_err() {
        assert!(begin.elapsed() < PATIENCE, "the place is taken");
    }
    let elsewhere = Admission {
        allow: vec!["192.0.2.0/24".parse().expect("a network")],
        ..Admission::default()
    };
    let listener = listen_to(STACKS[0], None, elsewhere);
    assert_eq!(attempt(listener.local()).expect_err("not allowed").kind(), ErrorKind::TimedOut);
}

#[test]
fn options_that_a_stack_does_not_have_are_refused() {
    let refusal = |options| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        match StreamListener::new(socket, options, Admission::default()) {
            Err(Error::Refused(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    let small = StreamOptions { mtu: 1247, ..options(STACKS[0], None) };
    assert_eq!(refusal(small), "packets of 1247 bytes: QUIC needs 1248 bytes or more");
    let own = |stack, name: &str| StreamOptions {
        controller: name.into(),
        controllers: None,
        ..options(stack, None)
    };
    assert_eq!(refusal(own(STACKS[0], "own:bbr")), "the stack has no controller bbr");
    assert_eq!(refusal(own(STACKS[1], "own:bbr3")), "the stack has no controller bbr3");
}
