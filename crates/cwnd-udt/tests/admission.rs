//! Who is let in by address, and what a connection costs before it is accepted.

#![cfg(all(unix, feature = "net"))]

mod common;
mod support;

use cwnd::Dur;
use cwnd_udt::{Admission, Config, Endpoint, UdtListener, UdtStream};
use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};
use support::reference::{self, Reference};
use support::{PATIENCE, local, message_config, patient, recv_stream, send_stream, stream_config};

const PACKET: u64 = 1456;
/// Packets that are buffered until `accept`.
const UNACCEPTED: u64 = 64;

fn hasty(admission: Admission) -> Config {
    Config { admission, connect_timeout: Dur::from_millis(600), ..stream_config("udt") }
}

fn allow(nets: &[&str]) -> Admission {
    let allow = nets.iter().map(|net| net.parse().unwrap()).collect();
    Admission { allow, per_address: None }
}

#[test]
fn networks_contain_mapped_addresses() {
    let ours = allow(&["192.0.2.0/24", "fd00::/8"]);
    for (ip, inside) in [
        ("192.0.2.7", true),
        ("::ffff:192.0.2.7", true),
        ("192.0.3.7", false),
        ("fd12::1", true),
        ("fe80::1", false),
        ("::1", false),
    ] {
        assert_eq!(ours.allows(ip.parse().unwrap()), inside, "{ip}");
        assert!(Admission::default().allows(ip.parse().unwrap()));
    }
}

#[test]
fn an_address_outside_the_networks_gets_no_answer() {
    for (nets, heard) in [(&["10.0.0.0/8"][..], false), (&["127.0.0.0/8"], true)] {
        // The port of IPv6 sees clients of IPv4 by their mapped addresses.
        for to in ["127.0.0.1:0", "[::]:0"] {
            let listener = UdtListener::bind(to, &hasty(allow(nets))).unwrap();
            let to = ("127.0.0.1", listener.local_addr().port());
            match UdtStream::connect(to, &hasty(Admission::default())) {
                Ok(_) => assert!(heard),
                Err(error) => {
                    assert!(!heard, "{error}");
                    assert_eq!(error.kind(), ErrorKind::TimedOut);
                }
            }
        }
    }
}

#[test]
fn an_address_has_so_many_open_connections() {
    let config = hasty(Admission { per_address: Some(2), ..Admission::default() });
    let listener = UdtListener::bind(local(), &config).unwrap();
    let to = listener.local_addr();
    let port = Endpoint::bind(local()).unwrap();
    let mut open: Vec<_> = (0..2).map(|_| port.connect(to, &config).unwrap()).collect();
    // Another port of the same address makes no difference.
    let error = UdtStream::connect(to, &config).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    open.pop().unwrap().close().unwrap();
    let again = UdtStream::connect(to, &config).unwrap();
    assert!(UdtStream::connect(to, &config).is_err());
    // An end that this side has closed makes room at once, not once it is forgotten.
    for _ in 0..2 {
        drop(listener.accept().unwrap());
    }
    let (server, _) = listener.accept().unwrap();
    server.close().unwrap();
    UdtStream::connect(to, &config).unwrap();
    drop(again);
}

/// The bytes that a sender has got rid of once nothing moves any more.
fn settled(mut sent: impl FnMut() -> u64) -> u64 {
    let mut last = sent();
    loop {
        thread::sleep(Duration::from_millis(300));
        let now = sent();
        if now == last {
            return now;
        }
        last = now;
    }
}

/// A connection that nobody accepts buffers no more than its few packets; once accepted it runs at the full
/// window at once.
#[test]
fn a_connection_buffers_little_until_it_is_accepted() {
    const BYTES: u64 = 30_000_000;
    for law in ["udt", "cubic"] {
        let config = stream_config(law);
        let listener = UdtListener::bind(local(), &config).unwrap();
        let client = UdtStream::connect(listener.local_addr(), &config).unwrap();
        patient(&client);
        thread::scope(|scope| {
            let sending = scope.spawn(|| send_stream(&client, BYTES, 3).unwrap());
            // UDT lets two packets through to a full receiver, which drops them.
            let arrived = settled(|| client.stats(false).total.byte_sent);
            assert!(arrived >= UNACCEPTED / 2 * PACKET, "{law}: {arrived} bytes");
            assert!(arrived <= (UNACCEPTED + 4) * PACKET, "{law}: {arrived} bytes");
            let begun = Instant::now();
            let (server, _) = listener.accept().unwrap();
            patient(&server);
            let arrived = recv_stream(&server, BYTES).unwrap();
            assert_eq!(arrived, sending.join().unwrap());
            let took = begun.elapsed();
            println!("{law}: all after {took:?}");
            assert!(took < Duration::from_secs(5), "{law}: {took:?}");
            let window = client.stats(false).pkt_flow_window;
            assert!(window > 8192, "{law}: a window of {window}");
        });
    }
}

/// A message that is larger than the room until `accept` comes as a whole.
#[test]
fn a_large_message_is_not_cut_before_it_is_accepted() {
    let config = message_config("udt");
    let listener = UdtListener::bind(local(), &config).unwrap();
    let client = UdtStream::connect(listener.local_addr(), &config).unwrap();
    let message: Vec<u8> = (0..300 * PACKET as usize).map(|at| at as u8).collect();
    client.send_message(&message, None, true).unwrap();
    settled(|| client.stats(false).total.byte_sent);
    let (server, _) = listener.accept().unwrap();
    patient(&server);
    assert_eq!(server.next_message_until(None).unwrap(), Some(message));
}

/// The same with a client of UDT4, which obeys the room in acknowledgements.
#[test]
fn a_client_of_udt4_waits_until_it_is_accepted() {
    const MEGABYTES: u64 = 30;
    if !reference::is_here() {
        return;
    }
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let to = listener.local_addr();
    let client = Reference::start(&format!("connect --to {to} --send {}", MEGABYTES * 1_000_000));
    thread::sleep(Duration::from_millis(1500));
    let begun = Instant::now();
    let (server, _) = listener.accept_until(Some(begun + PATIENCE)).unwrap();
    patient(&server);
    let arrived = server.stats(false).total.byte_recv;
    let room = server.stats(false).byte_avail_rcv_buf;
    assert!(arrived >= UNACCEPTED / 2 * PACKET, "{arrived} bytes");
    // Some may have come since `accept`.
    assert!(arrived <= 1000 * PACKET, "{arrived} bytes");
    assert!(room > 15_000 * PACKET, "room for {room} bytes");
    let hash = recv_stream(&server, MEGABYTES * 1_000_000).unwrap();
    let took = begun.elapsed();
    println!("all after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    client.expect("connected");
    assert_eq!(hash, client.hash("sent"));
}
