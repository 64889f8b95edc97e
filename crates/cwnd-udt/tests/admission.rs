//! Admission by client address, and the receive window of connections that are not accepted yet.

use crate::support::reference;
use crate::support::relay::Relay;
use crate::support::{
    TIMEOUT, local, message_config, recv_stream, send_stream, set_timeouts, short_timeout,
    stream_config, wait_until,
};
use cwnd_udt::{Admission, Config, Endpoint, UdtListener, UdtStream};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PACKET: u64 = 1456;
/// The receive window in packets before `accept`.
const UNACCEPTED: u64 = 64;
/// Packets that the receive window exceeds afterwards.
const ACCEPTED: u64 = 8192;

fn admitting(admission: Admission) -> Config {
    Config { admission, ..stream_config("udt") }
}

fn allow(nets: &[&str]) -> Admission {
    let allow = nets.iter().map(|net| net.parse().unwrap()).collect();
    Admission { allow, per_address: None }
}

#[test]
fn allowed_networks_contain_mapped_addresses() {
    let admission = allow(&["192.0.2.0/24", "fd00::/8"]);
    for (ip, inside) in [
        ("192.0.2.7", true),
        ("::ffff:192.0.2.7", true),
        ("192.0.3.7", false),
        ("fd12::1", true),
        ("fe80::1", false),
        ("::1", false),
    ] {
        assert_eq!(admission.allows(ip.parse().unwrap()), inside, "{ip}");
        assert!(Admission::default().allows(ip.parse().unwrap()));
    }
}

#[test]
fn an_address_outside_the_allowed_networks_gets_no_answer() {
    for (nets, answered) in [(&["10.0.0.0/8"][..], false), (&["127.0.0.0/8"], true)] {
        // An IPv6 socket sees IPv4 clients with mapped addresses.
        for to in ["127.0.0.1:0", "[::]:0"] {
            let listener = UdtListener::bind(to, &admitting(allow(nets))).unwrap();
            let to = ("127.0.0.1", listener.local_addr().port());
            if answered {
                UdtStream::connect(to, &stream_config("udt")).unwrap();
            } else {
                let client = short_timeout(stream_config("udt"));
                assert_eq!(
                    UdtStream::connect(to, &client).unwrap_err().kind(),
                    ErrorKind::TimedOut
                );
            }
        }
    }
}

#[test]
fn connections_per_address_are_limited() {
    let config = admitting(Admission { per_address: Some(2), ..Admission::default() });
    let listener = UdtListener::bind(local(), &config).unwrap();
    let to = listener.local_addr();
    let port = Endpoint::bind(local()).unwrap();
    let mut open: Vec<_> = (0..2).map(|_| port.connect(to, &config).unwrap()).collect();
    // The limit is per address, not per port.
    let refused = || UdtStream::connect(to, &short_timeout(config.clone())).unwrap_err().kind();
    assert_eq!(refused(), ErrorKind::TimedOut);
    open.pop().unwrap().close().unwrap();
    let again = UdtStream::connect(to, &config).unwrap();
    assert_eq!(refused(), ErrorKind::TimedOut);
    // A connection that the server has closed no longer counts.
    for _ in 0..2 {
        drop(listener.accept().unwrap());
    }
    let (server, _) = listener.accept().unwrap();
    server.close().unwrap();
    UdtStream::connect(to, &config).unwrap();
    drop(again);
}

/// Waits until a number of bytes exceeds half of the small window and does not change any more,
/// and returns it.
fn wait_until_stable(sent: impl Fn() -> u64) -> u64 {
    wait_until(|| sent() >= UNACCEPTED / 2 * PACKET);
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

/// Before `accept` a connection buffers a few packets; afterwards it uses the full window at once.
#[test]
fn the_receive_window_is_small_until_the_connection_is_accepted() {
    const BYTES: u64 = 30_000_000;
    for law in ["udt", "cubic"] {
        let config = stream_config(law);
        let listener = UdtListener::bind(local(), &config).unwrap();
        let client = UdtStream::connect(listener.local_addr(), &config).unwrap();
        set_timeouts(&client);
        thread::scope(|scope| {
            let sending = scope.spawn(|| send_stream(&client, BYTES, 3).unwrap());
            // UDT sends two packets to a full receiver, which drops them.
            let arrived = wait_until_stable(|| client.stats(false).total.byte_sent);
            assert!(arrived <= (UNACCEPTED + 4) * PACKET, "{law}: {arrived} bytes");
            let (server, _) = listener.accept().unwrap();
            set_timeouts(&server);
            // Nothing is read yet.
            wait_until(|| client.stats(false).total.byte_sent > ACCEPTED * PACKET);
            let arrived = recv_stream(&server, BYTES).unwrap();
            assert_eq!(arrived, sending.join().unwrap());
            let window = client.stats(false).pkt_flow_window;
            assert!(window > ACCEPTED, "{law}: a window of {window}");
        });
    }
}

/// A message larger than the receive window before `accept` is delivered.
#[test]
fn a_large_message_sent_before_accept_is_delivered_whole() {
    let config = message_config("udt");
    let listener = UdtListener::bind(local(), &config).unwrap();
    let client = UdtStream::connect(listener.local_addr(), &config).unwrap();
    let message: Vec<u8> = (0..300 * PACKET as usize).map(|at| at as u8).collect();
    client.send_message(&message, None, true).unwrap();
    wait_until_stable(|| client.stats(false).total.byte_sent);
    let (server, _) = listener.accept().unwrap();
    set_timeouts(&server);
    assert_eq!(server.next_message_until(None).unwrap(), Some(message));
}

/// UDT4 obeys the window in acknowledgements.
#[test]
fn a_udt4_client_obeys_the_small_window_until_it_is_accepted() {
    const MEGABYTES: u64 = 30;
    let Some(udt4) = reference::program() else { return };
    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let sent = Arc::<AtomicU64>::default();
    let count = Arc::clone(&sent);
    let relay = Relay::observe(listener.local_addr(), move |to_listener, datagram| {
        let is_data = datagram[0] & 0x80 == 0;
        count.fetch_add(u64::from(to_listener && is_data) * PACKET, Ordering::Relaxed);
    });
    let words = format!("connect --to {} --send {}", relay.addr, MEGABYTES * 1_000_000);
    let client = udt4.start(&words);
    let arrived = wait_until_stable(|| sent.load(Ordering::Relaxed));
    // UDT4 repeats packets that the receiver has dropped.
    assert!(arrived <= 4 * UNACCEPTED * PACKET, "{arrived} bytes");
    let (server, _) = listener.accept_until(Some(Instant::now() + TIMEOUT)).unwrap();
    set_timeouts(&server);
    // Nothing is read yet.
    wait_until(|| server.stats(false).total.byte_recv > ACCEPTED * PACKET);
    let hash = recv_stream(&server, MEGABYTES * 1_000_000).unwrap();
    client.expect("connected");
    assert_eq!(hash, client.hash("sent"));
}
