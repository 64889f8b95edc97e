//! Our sockets against the reference library, UDT 4.11, in another process: both roles, both directions,
//! and a bad network between them. `CWND_INTEROP_MB` is the size of a stream (64 unless set).

#![cfg(all(unix, feature = "net"))]

mod common;
mod support;

use cwnd_udt::{CloseReason, Config, Endpoint, SocketType, UdtListener, UdtStream};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use support::reference::{self, Reference};
use support::relay::{Faults, Relay};
use support::{
    Hash, PATIENCE, local, message, message_config, patient, recv_messages, recv_stream,
    send_stream, stream_config,
};

const MB: u64 = 1_000_000;
const SIZE: u64 = 4000;
const SEED: u64 = 5;
/// The errors of UDT4: the connection was broken, and the socket is not there any more.
const PEER_CLOSED: [&str; 2] = ["2001", "5004"];

/// What our end is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Listens,
    Connects,
    Meets,
}

const ROLES: [Role; 3] = [Role::Listens, Role::Connects, Role::Meets];

fn stream_bytes() -> u64 {
    std::env::var("CWND_INTEROP_MB").map_or(64, |text| text.parse().unwrap()) * MB
}

/// Two ends that are connected, perhaps over a bad network.
struct Ends {
    stream: UdtStream,
    reference: Reference,
    relay: Option<Relay>,
}

/// A UDP port that nobody has now.
fn free_port() -> u16 {
    UdpSocket::bind(local()).unwrap().local_addr().unwrap().port()
}

impl Ends {
    /// Connects our end to one of UDT4's that is started with `words`. `faults` are those of datagrams
    /// to our end and from it.
    fn connect(role: Role, config: &Config, words: &str, faults: Option<[Faults; 2]>) -> Ends {
        let kind = if config.socket_type == SocketType::Message { "--message" } else { "" };
        let words = format!("{kind} {words}");
        let towards = |target: SocketAddr, [to_target, back]: [Faults; 2]| {
            Relay::start(target, [to_target, back], SEED)
        };
        let (stream, reference, relay) = match role {
            Role::Listens => {
                let listener = UdtListener::bind(local(), config).unwrap();
                let relay = faults.map(|faults| towards(listener.local_addr(), faults));
                let to = relay.as_ref().map_or(listener.local_addr(), |relay| relay.addr);
                let reference = Reference::start(&format!("connect --to {to} {words}"));
                let (stream, _) = listener.accept_until(Some(Instant::now() + PATIENCE)).unwrap();
                (stream, reference, relay)
            }
            Role::Connects => {
                let (reference, target) = Reference::listen(&words);
                let relay = faults.map(|[here, there]| towards(target, [there, here]));
                let to = relay.as_ref().map_or(target, |relay| relay.addr);
                (UdtStream::connect(to, config).unwrap(), reference, relay)
            }
            Role::Meets => {
                let port = free_port();
                let target = SocketAddr::from(([127, 0, 0, 1], port));
                let endpoint = Endpoint::bind(local()).unwrap();
                let relay = faults.map(|[here, there]| towards(target, [there, here]));
                let to = relay.as_ref().map_or(target, |relay| relay.addr);
                let from = relay.as_ref().map_or(endpoint.local_addr(), |relay| relay.back);
                let words = format!("meet --port {port} --to {from} {words}");
                let reference = Reference::start(&words);
                reference.expect("port");
                (endpoint.rendezvous(to, config).unwrap(), reference, relay)
            }
        };
        reference.expect("connected");
        patient(&stream);
        Ends { stream, reference, relay }
    }

    /// Both ends send `[from here, from there]` bytes at the same time, and close: ours first if
    /// `we_close`.
    fn exchange(
        role: Role,
        config: &Config,
        bytes: [u64; 2],
        (words, we_close): (&str, bool),
        faults: Option<[Faults; 2]>,
    ) {
        let what = format!("{role:?} {bytes:?} {words} {we_close} {faults:?}");
        println!("{what}");
        let began = Instant::now();
        let [here, there] = bytes;
        let mut all = format!("--perfmon --seed {SEED} {words}");
        if there > 0 {
            all += &format!(" --send {there}");
        }
        if here > 0 {
            all += &format!(" --recv {here}");
        }
        if we_close {
            all += " --until-closed";
        }
        let Ends { stream, reference, relay } = Ends::connect(role, config, &all, faults);
        let (sent, received) = std::thread::scope(|scope| {
            let sender = scope.spawn(|| send_stream(&stream, here, SEED + 1).unwrap());
            let received = recv_stream(&stream, there).unwrap();
            (sender.join().unwrap(), received)
        });
        // The two lines come in any order.
        let mut hashes = [Hash::EMPTY; 2];
        for _ in 0..bytes.iter().filter(|count| **count > 0).count() {
            let line = loop {
                let Some(line) = reference.line(PATIENCE) else {
                    panic!("{what}: the peer says nothing; {:?}", stream.stats(false));
                };
                if !line.starts_with("perfmon") {
                    break line;
                }
            };
            let words: Vec<_> = line.split_whitespace().collect();
            let hash = |text| Hash(u64::from_str_radix(text, 16).unwrap());
            match words[..] {
                ["sent", _, text, _] => hashes[0] = hash(text),
                ["received", _, text, _] => hashes[1] = hash(text),
                _ => panic!("{what}: {line}"),
            }
        }
        assert_eq!([received, sent], hashes, "{what}");
        let stats = stream.stats(false);
        let loses = faults.is_some_and(|ways| ways.iter().any(|way| way.loss > 0.0));
        finish(stream, &reference, we_close, loses);
        println!(
            "    {:.2} s, {:.1} ms RTT, {} retransmitted, lost and passed {:?}",
            began.elapsed().as_secs_f64(),
            stats.ms_rtt,
            stats.total.pkt_retrans,
            relay.map(|relay| relay.counts()),
        );
    }
}

/// Ends a connection and looks that both ends know. On a path that loses, ours may hear nothing any more:
/// UDT4 says only once that it closes.
fn finish(stream: UdtStream, reference: &Reference, we_close: bool, loses: bool) {
    if we_close {
        stream.close_until(Some(Instant::now() + PATIENCE)).unwrap();
        let code = reference.expect("peer-closed").remove(0);
        assert!(PEER_CLOSED.contains(&code.as_str()), "{code}");
    } else {
        let end = stream.read_until(&mut [0], Some(Instant::now() + PATIENCE));
        let unheard = loses && stream.close_reason() == Some(CloseReason::Lost);
        if !unheard {
            assert_eq!((end.unwrap(), stream.close_reason()), (0, Some(CloseReason::Peer)));
        }
    }
    reference.expect("closed");
}

/// Each role, each direction and both at once, closed by either.
#[test]
fn streams_arrive_whole() {
    if !reference::is_here() {
        return;
    }
    let config = stream_config("udt");
    for role in ROLES {
        let size = stream_bytes() / if role == Role::Connects { 1 } else { 4 };
        for bytes in [[size, 0], [0, size], [size / 8, size / 8]] {
            for we_close in [true, false] {
                Ends::exchange(role, &config, bytes, ("", we_close), None);
            }
        }
    }
}

#[test]
fn a_gigabyte_arrives_whole() {
    if !reference::is_here() {
        return;
    }
    for bytes in [[1000 * MB, 0], [0, 1000 * MB]] {
        Ends::exchange(Role::Connects, &stream_config("udt"), bytes, ("", true), None);
    }
}

/// Window laws and others drive a transfer to a UDT4 receiver.
#[test]
fn other_laws_send_to_the_reference() {
    if !reference::is_here() {
        return;
    }
    for law in ["reno", "cubic", "daimd", "tfrc"] {
        let faults = Some([Faults::default(), Faults::loss(0.001)]);
        Ends::exchange(Role::Connects, &stream_config(law), [4 * MB, 0], ("", true), faults);
    }
}

/// A reader that comes late: the window closes, and the rest follows when it opens.
#[test]
fn a_late_reader_is_waited_for() {
    if !reference::is_here() {
        return;
    }
    let idle = Duration::from_secs(4);
    let size = 30 * MB;
    let words = format!("--seed {SEED} --idle {} --recv {size} --until-closed", idle.as_millis());
    let Ends { stream, reference, .. } =
        Ends::connect(Role::Connects, &stream_config("udt"), &words, None);
    let began = Instant::now();
    let hash = send_stream(&stream, size, SEED).unwrap();
    assert_eq!(reference.hash("received"), hash);
    let took = began.elapsed();
    finish(stream, &reference, true, false);

    let words = format!("--seed {SEED} --send {size}");
    let Ends { stream, reference, .. } =
        Ends::connect(Role::Connects, &stream_config("udt"), &words, None);
    std::thread::sleep(idle);
    let began = Instant::now();
    let hash = recv_stream(&stream, size).unwrap();
    assert_eq!(reference.hash("sent"), hash);
    println!("to the reference {took:?}, from it {:?} once it reads", began.elapsed());
    finish(stream, &reference, false, false);
    assert!(took < idle + Duration::from_secs(8), "{took:?}");
}

/// The smaller packet size counts, and the receiver's window is kept.
#[test]
fn sizes_are_negotiated() {
    if !reference::is_here() {
        return;
    }
    let ours = |packet_size| Config { packet_size, ..stream_config("udt") };
    for role in ROLES {
        for (packet_size, mss) in [(1500, 1000), (1000, 1500), (9000, 9000)] {
            let words = format!("--mss {mss} --window 512");
            Ends::exchange(role, &ours(packet_size), [4 * MB, 4 * MB], (&words, true), None);
        }
    }
}

/// A client's first sequence is also the listener's: both directions pass the end of the numbers.
#[test]
fn sequences_wrap() {
    if !reference::is_here() {
        return;
    }
    for back in [1, 1000] {
        let words = format!("--isn {}", (1u64 << 31) - 1 - back);
        for faults in [None, Some([Faults::loss(0.01); 2])] {
            let bytes = [6 * MB, 6 * MB];
            Ends::exchange(Role::Listens, &stream_config("udt"), bytes, (&words, true), faults);
        }
    }
}

/// Both directions, each over the faults that `faults` gives.
fn survives(faults: Faults, size: u64) {
    if !reference::is_here() {
        return;
    }
    for (role, bytes) in
        [(Role::Connects, [size, 0]), (Role::Listens, [0, size]), (Role::Meets, [size / 4; 2])]
    {
        let config = Config {
            connect_timeout: cwnd::Dur::from_millis(30_000),
            patience: cwnd::Dur::from_millis(20_000),
            ..stream_config("udt")
        };
        Ends::exchange(role, &config, bytes, ("", bytes[0] > 0), Some([faults; 2]));
    }
}

#[test]
fn a_loss_of_a_thousandth_is_survived() {
    survives(Faults::loss(0.001), 20 * MB);
}

#[test]
fn a_loss_of_a_hundredth_is_survived() {
    survives(Faults::loss(0.01), 10 * MB);
}

#[test]
fn a_loss_of_a_twentieth_is_survived() {
    survives(Faults::loss(0.05), 2 * MB);
}

#[test]
fn reordering_is_survived() {
    let held = Duration::from_millis(5);
    survives(Faults { reorder: 0.05, held, ..Faults::default() }, 10 * MB);
}

#[test]
fn duplicates_are_survived() {
    survives(Faults { duplicate: 0.05, ..Faults::default() }, 10 * MB);
}

#[test]
fn replayed_datagrams_are_survived() {
    survives(Faults { replay: 0.05, ..Faults::default() }, 10 * MB);
}

/// Thousands of packets are lost, and many of those that repair them, which UDT4 reports only once.
#[test]
fn a_storm_is_survived() {
    survives(Faults { storm: (1500, 5500), ..Faults::default() }, 12 * MB);
}

/// 100 ms there and back.
#[test]
fn a_long_way_is_survived() {
    survives(Faults { delay: Duration::from_millis(50), ..Faults::default() }, 10 * MB);
}

fn send_messages(stream: &UdtStream, count: u64, in_order: bool) {
    for n in 0..count {
        stream.send_message(&message(SEED, n, SIZE), None, in_order).unwrap();
    }
}

/// Messages of many sizes, in order or as they come, over a clean and a lossy path.
#[test]
fn messages_arrive_whole() {
    if !reference::is_here() {
        return;
    }
    let count = 2000;
    let config = message_config("udt");
    for role in ROLES {
        for in_order in [true, false] {
            for faults in [None, Some([Faults::loss(0.02); 2])] {
                println!("{role:?} {in_order} {faults:?}");
                let order = if in_order { "--in-order" } else { "" };
                let words = format!("--seed {SEED} --size {SIZE}");

                let receives = format!("{words} --recv {count} --until-closed");
                let ends = Ends::connect(role, &config, &receives, faults);
                send_messages(&ends.stream, count, in_order);
                let seen = ends.reference.messages();
                assert_eq!((seen.whole, seen.wrong), (count, 0));
                assert!(!in_order || seen.early == 0, "{seen:?}");
                finish(ends.stream, &ends.reference, true, faults.is_some());

                let sends = format!("{words} --send {count} {order}");
                let ends = Ends::connect(role, &config, &sends, faults);
                let seen = recv_messages(&ends.stream, count, SEED, SIZE);
                assert_eq!((seen.whole, seen.wrong), (count, 0));
                assert!(!in_order || seen.early == 0, "{seen:?}");
                ends.reference.expect("sent");
                ends.reference.expect("closed");
            }
        }
    }
}

/// Messages whose time is over are left out, and those after them arrive. UDT4 sends every message once,
/// however late; we do not, so that ours must not all be written at the same moment.
#[test]
fn messages_expire() {
    if !reference::is_here() {
        return;
    }
    let count = 500;
    let ttl = 40;
    let config = message_config("udt");
    let faults = Faults { loss: 0.05, delay: Duration::from_millis(20), ..Faults::default() };
    for role in [Role::Connects, Role::Listens] {
        let words = format!("--seed {SEED} --size {SIZE}");
        let check = |what: &str, seen: support::Messages| {
            println!("{role:?} {what}: {seen:?}");
            assert!(seen.wrong == 0 && (count / 50..count).contains(&seen.whole), "{seen:?}");
        };

        let receives = format!("{words} --recv {count} --until-closed");
        let ends = Ends::connect(role, &config, &receives, Some([faults; 2]));
        for n in 0..count {
            let ttl = (n + 1 < count).then_some(Duration::from_millis(ttl));
            ends.stream.send_message(&message(SEED, n, SIZE), ttl, true).unwrap();
            std::thread::sleep(Duration::from_millis(4));
        }
        ends.stream.close_until(Some(Instant::now() + PATIENCE)).unwrap();
        check("to the reference", ends.reference.messages());

        let sends = format!("{words} --send {count} --ttl {ttl} --in-order --hold");
        let ends = Ends::connect(role, &config, &sends, Some([faults; 2]));
        ends.stream.set_read_timeout(Some(Duration::from_secs(3)));
        check("from the reference", recv_messages(&ends.stream, count, SEED, SIZE));
    }
}

/// Nobody is lost when both close at the same moment, and what was written arrives.
#[test]
fn both_may_close_at_once() {
    if !reference::is_here() {
        return;
    }
    for role in ROLES {
        let words = format!("--seed {SEED} --send {MB} --recv {MB} --hold");
        let mut ends = Ends::connect(role, &stream_config("udt"), &words, None);
        send_stream(&ends.stream, MB, SEED).unwrap();
        recv_stream(&ends.stream, MB).unwrap();
        for _ in 0..2 {
            let line = ends.reference.line(PATIENCE).unwrap();
            assert!(line.starts_with("sent") || line.starts_with("received"), "{line}");
        }
        // UDT4 hands data to its user before it sends the acknowledgement, which a shutdown may then precede.
        let deadline = Instant::now() + PATIENCE;
        while ends.stream.unacknowledged() > 0 {
            assert!(Instant::now() < deadline, "the last data are not acknowledged");
            std::thread::sleep(Duration::from_millis(1));
        }
        ends.reference.go_on();
        ends.stream.close_until(Some(Instant::now() + PATIENCE)).unwrap();
        ends.reference.expect("closed");
    }
}

/// One socket type does not talk to the other.
#[test]
fn another_type_is_refused() {
    if !reference::is_here() {
        return;
    }
    let (_reference, to) = Reference::listen("--message");
    let refused = UdtStream::connect(to, &stream_config("udt")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "{refused}");

    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let reference = Reference::start(&format!("connect --message --to {}", listener.local_addr()));
    let line = reference.line(PATIENCE).unwrap();
    assert!(line.starts_with("error connect"), "{line}");
}
