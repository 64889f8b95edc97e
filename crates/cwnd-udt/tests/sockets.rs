//! Sockets over loopback.

use crate::common::{Random, fill};
use crate::support::relay::{Faults, Relay};
use crate::support::{
    TIMEOUT, connect, local, pair, recv_stream, send_stream, share_a_port, short_timeout,
    stream_config, transfer, transfer_under_attack,
};
use cwnd::Dur;
use cwnd_udt::{CloseReason, Config, Endpoint, SocketType, UdtListener, UdtStream};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const MB: u64 = 1_000_000;

fn config(law: &str) -> Config {
    Config { linger: Dur::from_millis(20_000), ..stream_config(law) }
}

fn messages() -> Config {
    Config { socket_type: SocketType::Message, ..config("udt") }
}

#[test]
fn a_large_stream_is_delivered() {
    for law in ["udt", "cubic"] {
        let [client, server] = pair(&config(law));
        let sent = thread::spawn(move || {
            let hash = send_stream(&client, 100 * MB, 7).unwrap();
            client.close().unwrap();
            hash
        });
        let arrived = recv_stream(&server, 100 * MB).unwrap();
        assert_eq!((&server).read(&mut [0]).unwrap(), 0, "{law}: the peer has closed");
        assert_eq!(arrived, sent.join().unwrap(), "{law}");
    }
}

#[test]
fn both_directions_are_delivered_at_once() {
    let [client, server] = pair(&config("udt"));
    thread::scope(|scope| {
        scope.spawn(|| transfer(&client, &server, 20 * MB, 1));
        transfer(&server, &client, 20 * MB, 2);
    });
    let stats = client.stats(false);
    assert_eq!((stats.total.byte_recv, stats.byte_avail_snd_buf > 0), (20 * MB, true));
}

#[test]
fn many_connections_share_a_port() {
    let small = Config { send_buffer: 64, receive_buffer: 64, ..config("udt") };
    share_a_port(&small, 200, 50_000);
}

#[test]
fn packet_sizes_and_address_families() {
    for (packet_size, bind) in [
        (100, "127.0.0.1:0"),
        (9_000, "127.0.0.1:0"),
        (65_535, "127.0.0.1:0"),
        (1_500, "[::1]:0"),
        // An IPv4 client of an IPv6 socket.
        (1_500, "[::]:0"),
    ] {
        let config = Config { packet_size, ..config("cubic") };
        let listener = UdtListener::bind(bind, &config).unwrap();
        let mut to = listener.local_addr();
        if to.ip().is_unspecified() {
            to = SocketAddr::from(([127, 0, 0, 1], to.port()));
        }
        let [client, server] = connect(&listener, to, &config);
        assert_eq!(server.peer_addr().ip(), to.ip());
        println!("{packet_size} {bind}");
        transfer(&client, &server, 2 * MB, 9);
    }
}

#[test]
fn either_end_can_close_first() {
    for client_first in [true, false] {
        let [client, server] = pair(&config("udt"));
        let (mut first, mut second) =
            if client_first { (client, server) } else { (server, client) };
        first.write_all(b"the last words").unwrap();
        first.close().unwrap();
        let mut words = String::new();
        second.read_to_string(&mut words).unwrap();
        assert_eq!(words, "the last words");
        assert_eq!(second.close_reason(), Some(CloseReason::Peer));
        assert_eq!(second.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        second.close().unwrap();
    }
}

#[test]
fn data_of_a_dropped_stream_is_delivered() {
    let [mut client, mut server] = pair(&config("reno"));
    client.write_all(&[3; 200_000]).unwrap();
    drop(client);
    let mut data = Vec::new();
    server.read_to_end(&mut data).unwrap();
    assert_eq!(data, [3; 200_000]);
}

#[test]
fn a_full_receiver_blocks_the_sender_without_loss() {
    let mut small = config("udt");
    (small.send_buffer, small.receive_buffer) = (32, 32);
    let [client, server] = pair(&small);
    let mut written = 0;
    let start = Instant::now();
    loop {
        match client.write_until(&[1; 1000], Some(Instant::now() + Duration::from_millis(300))) {
            Ok(count) => written += count,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                // Both buffers, except for partially filled packets.
                if written >= 48 * 1456 || start.elapsed() > TIMEOUT {
                    break;
                }
            }
        }
    }
    assert!((48 * 1456..=66 * 1456).contains(&written), "{written} bytes");
    let mut arrived = vec![0; written];
    (&server).read_exact(&mut arrived).unwrap();
    assert!(arrived.iter().all(|byte| *byte == 1));
    // The buffers have room again.
    client.write_until(&[1; 1000], Some(Instant::now() + TIMEOUT)).unwrap();
}

#[test]
fn connection_errors_have_the_right_kind() {
    let silent = UdpSocket::bind(local()).unwrap();
    let client = short_timeout(config("udt"));
    let error = UdtStream::connect(silent.local_addr().unwrap(), &client).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::TimedOut, "no answer".into()));

    let listener = UdtListener::bind(local(), &messages()).unwrap();
    let error = UdtStream::connect(listener.local_addr(), &config("udt")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);

    let error = UdtListener::bind(listener.local_addr(), &messages()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let late = Some(Instant::now() + Duration::from_millis(20));
    assert_eq!(listener.accept_until(late).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn a_vanished_peer_is_detected() {
    let config = Config { idle_timeout: Dur::from_millis(2_000), ..config("udt") };
    let listener = UdtListener::bind(local(), &config).unwrap();
    let relay = Relay::start(listener.local_addr(), [Faults::default(); 2], 1);
    let [mut client, mut server] = connect(&listener, relay.addr, &config);
    client.write_all(b"hello").unwrap();
    server.read_exact(&mut [0; 5]).unwrap();
    relay.cut();
    client.write_all(b"is anybody there?").unwrap();
    let start = Instant::now();
    let errors = thread::scope(|scope| {
        [&client, &server]
            .map(|mut end| scope.spawn(move || end.read(&mut [0]).unwrap_err().kind()))
            .map(|task| task.join().unwrap())
    });
    assert_eq!(errors, [ErrorKind::ConnectionAborted; 2]);
    // The timeout is checked when the expiry timer expires: after 0.3 s, 0.9 s, 1.8 s, 3 s.
    assert!(start.elapsed() > Duration::from_millis(1_500), "{:?}", start.elapsed());
    // Without the configured timeout it would be 46 s.
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(client.close().unwrap_err().kind(), ErrorKind::ConnectionAborted);
}

#[test]
fn random_datagrams_do_not_disturb_a_transfer() {
    let ends = pair(&config("udt"));
    let mut random = Random(1);
    transfer_under_attack(&ends, 20 * MB, |n| {
        let mut bytes = vec![0; 200];
        fill(&mut random, &mut bytes);
        if n % 2 == 0 {
            // A control packet for socket 0.
            bytes[0] |= 0x80;
            bytes[12..16].fill(0);
        }
        bytes.truncate(random.below(200) as usize);
        bytes
    });
    let ignored = ends.map(|end| end.stats(false).total.pkt_ignored);
    assert_eq!(ignored, [0, 0], "what is foreign does not reach a connection");
}

#[test]
fn message_boundaries_are_preserved() {
    let [client, server] = pair(&messages());
    let sizes = [1, 1456, 1457, 100_000, 5];
    for size in sizes {
        client.send_message(&vec![size as u8; size], None, true).unwrap();
    }
    let mut buffer = vec![0; 100_000];
    for size in sizes {
        let length = server.recv_message(&mut buffer).unwrap();
        assert_eq!(length, size);
        assert!(buffer[..length].iter().all(|byte| *byte == size as u8));
    }
    client.send_message(&[1; 50], None, false).unwrap();
    let short = server.recv_message(&mut [0; 10]).unwrap_err();
    assert_eq!(
        (short.kind(), short.to_string()),
        (ErrorKind::InvalidInput, "the next message has 50 bytes".into())
    );
    assert_eq!(server.next_message_until(None).unwrap(), Some(vec![1; 50]));
    server.set_read_timeout(Some(Duration::from_millis(20)));
    assert_eq!(server.recv_message(&mut buffer).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!((&server).write(b"x").unwrap_err().kind(), ErrorKind::InvalidInput);
    client.close().unwrap();
    assert_eq!(server.next_message_until(None).unwrap(), None);
}

#[test]
fn a_rendezvous_connects() {
    let ports = [0, 1].map(|_| Endpoint::bind(local()).unwrap());
    let [a, b] = [ports[0].local_addr(), ports[1].local_addr()];
    let config = config("udt");
    let streams = thread::scope(|scope| {
        let first = scope.spawn(|| ports[0].rendezvous(b, &config).unwrap());
        thread::sleep(Duration::from_millis(100));
        [ports[1].rendezvous(a, &config).unwrap(), first.join().unwrap()]
    });
    transfer(&streams[0], &streams[1], MB, 3);
}
