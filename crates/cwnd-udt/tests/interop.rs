//! Interoperability with the reference library, UDT 4.11, in another process: all roles, both
//! directions, and impaired networks. `CWND_INTEROP_MB` is the size of a stream in megabytes
//! (default 16).

use crate::support::reference::{self, Program, Reference};
use crate::support::relay::{Faults, Relay};
use crate::support::{
    self, Hash, TIMEOUT, local, message, message_config, recv_messages, recv_stream, send_stream,
    set_timeouts, stream_config, wait_until,
};
use cwnd_udt::{CloseReason, Config, Endpoint, SocketType, UdtListener, UdtStream};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const MB: u64 = 1_000_000;
const SIZE: u64 = 4000;
const SEED: u64 = 5;
/// The error codes of UDT4 for a broken connection and a closed socket.
const PEER_CLOSED: [&str; 2] = ["2001", "5004"];

/// The role of this crate's end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Listen,
    Connect,
    Rendezvous,
}

const ROLES: [Role; 3] = [Role::Listen, Role::Connect, Role::Rendezvous];

fn stream_bytes() -> u64 {
    std::env::var("CWND_INTEROP_MB").map_or(16, |text| text.parse().unwrap()) * MB
}

/// Two connected ends, possibly with a relay between them.
struct Ends {
    stream: UdtStream,
    reference: Reference,
    relay: Option<Relay>,
}

impl Ends {
    /// Connects to a UDT4 end that is started with the arguments `words`. `faults` are those of
    /// datagrams to this crate's end and from it.
    fn connect(
        udt4: Program,
        role: Role,
        config: &Config,
        words: &str,
        faults: Option<[Faults; 2]>,
    ) -> Ends {
        let kind = if config.socket_type == SocketType::Message { "--message" } else { "" };
        let words = format!("{kind} {words}");
        let towards = |target: SocketAddr, [to_target, back]: [Faults; 2]| {
            Relay::start(target, [to_target, back], SEED)
        };
        let (stream, reference, relay) = match role {
            Role::Listen => {
                let listener = UdtListener::bind(local(), config).unwrap();
                let relay = faults.map(|faults| towards(listener.local_addr(), faults));
                let to = relay.as_ref().map_or(listener.local_addr(), |relay| relay.addr);
                let reference = udt4.start(&format!("connect --to {to} {words}"));
                let (stream, _) = listener.accept_until(Some(Instant::now() + TIMEOUT)).unwrap();
                (stream, reference, relay)
            }
            Role::Connect => {
                let (reference, target) = udt4.listen(&words);
                let relay = faults.map(|[here, there]| towards(target, [there, here]));
                let to = relay.as_ref().map_or(target, |relay| relay.addr);
                (UdtStream::connect(to, config).unwrap(), reference, relay)
            }
            Role::Rendezvous => {
                let (mut reference, target) = udt4.rendezvous(&words);
                let endpoint = Endpoint::bind(local()).unwrap();
                let relay = faults.map(|[here, there]| towards(target, [there, here]));
                let to = relay.as_ref().map_or(target, |relay| relay.addr);
                let from = relay.as_ref().map_or(endpoint.local_addr(), |relay| relay.back);
                reference.set_peer(from);
                (endpoint.rendezvous(to, config).unwrap(), reference, relay)
            }
        };
        reference.expect("connected");
        set_timeouts(&stream);
        Ends { stream, reference, relay }
    }

    /// Both ends send data at the same time, `bytes` from this crate's end and from UDT4. Then one
    /// end closes the connection: this crate's if `close_here`.
    fn exchange(
        udt4: Program,
        role: Role,
        config: &Config,
        bytes: [u64; 2],
        (words, close_here): (&str, bool),
        faults: Option<[Faults; 2]>,
    ) {
        let what = format!("{role:?} {bytes:?} {words} {close_here} {faults:?}");
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
        if close_here {
            all += " --until-closed";
        }
        let Ends { stream, reference, relay } = Ends::connect(udt4, role, config, &all, faults);
        let (sent, received) = std::thread::scope(|scope| {
            let sender = scope.spawn(|| send_stream(&stream, here, SEED + 1).unwrap());
            let received = recv_stream(&stream, there).unwrap();
            (sender.join().unwrap(), received)
        });
        // The two lines are in any order.
        let mut hashes = [Hash::EMPTY; 2];
        for _ in 0..bytes.iter().filter(|count| **count > 0).count() {
            let line = loop {
                let Some(line) = reference.line(TIMEOUT) else {
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
        if faults.is_none() && config.packet_size == 1500 && !words.contains("--mss") {
            // The packets are full. The rest are retransmissions and the ends of writes.
            assert!(
                stats.total.pkt_sent <= 20 + stats.total.pkt_retrans + here / 1400,
                "{what}: {stats:?}"
            );
        }
        let lossy = faults.is_some_and(|both| both.iter().any(|faults| faults.loss > 0.0));
        finish(stream, &reference, close_here, lossy);
        println!(
            "    {:.2} s, {:.1} ms RTT, {} retransmitted, lost and passed {:?}",
            began.elapsed().as_secs_f64(),
            stats.ms_rtt,
            stats.total.pkt_retrans,
            relay.map(|relay| relay.counts()),
        );
    }
}

/// Closes a connection and checks that both ends have noticed. On a lossy path the shutdown of UDT4
/// may be lost: it is sent only once.
fn finish(stream: UdtStream, reference: &Reference, close_here: bool, lossy: bool) {
    if close_here {
        stream.close_until(Some(Instant::now() + TIMEOUT)).unwrap();
        let code = reference.expect("peer-closed").remove(0);
        assert!(PEER_CLOSED.contains(&code.as_str()), "{code}");
    } else {
        let end = stream.read_until(&mut [0], Some(Instant::now() + TIMEOUT));
        let unheard = lossy && stream.close_reason() == Some(CloseReason::Lost);
        if !unheard {
            assert_eq!((end.unwrap(), stream.close_reason()), (0, Some(CloseReason::Peer)));
        }
    }
    reference.expect("closed");
}

/// Each role, each direction and both at once, closed by either end.
#[test]
fn streams_are_delivered() {
    let Some(udt4) = reference::program() else { return };
    let config = stream_config("udt");
    for role in ROLES {
        let size = stream_bytes();
        for bytes in [[size, 0], [0, size], [size / 8, size / 8]] {
            for close_here in [true, false] {
                Ends::exchange(udt4, role, &config, bytes, ("", close_here), None);
            }
        }
    }
}

#[test]
fn long_streams_are_delivered() {
    let Some(udt4) = reference::program() else { return };
    for bytes in [[250 * MB, 0], [0, 250 * MB]] {
        Ends::exchange(udt4, Role::Connect, &stream_config("udt"), bytes, ("", true), None);
    }
}

/// Window laws and other rate laws send to a UDT4 receiver.
#[test]
fn other_controllers_send_to_udt4() {
    let Some(udt4) = reference::program() else { return };
    for law in ["reno", "cubic", "daimd", "tfrc"] {
        let faults = Some([Faults::default(), Faults::loss(0.001)]);
        Ends::exchange(udt4, Role::Connect, &stream_config(law), [4 * MB, 0], ("", true), faults);
    }
}

/// The window closes, and the rest of the data is sent when it opens.
#[test]
fn a_sender_waits_for_a_late_reader() {
    let Some(udt4) = reference::program() else { return };
    let idle = Duration::from_secs(4);
    let size = 30 * MB;
    let words = format!("--seed {SEED} --idle {} --recv {size} --until-closed", idle.as_millis());
    let Ends { stream, reference, .. } =
        Ends::connect(udt4, Role::Connect, &stream_config("udt"), &words, None);
    let began = Instant::now();
    let hash = send_stream(&stream, size, SEED).unwrap();
    assert_eq!(reference.hash("received"), hash);
    let took = began.elapsed();
    finish(stream, &reference, true, false);

    let words = format!("--seed {SEED} --send {size}");
    let Ends { stream, reference, .. } =
        Ends::connect(udt4, Role::Connect, &stream_config("udt"), &words, None);
    std::thread::sleep(idle);
    let began = Instant::now();
    let hash = recv_stream(&stream, size).unwrap();
    assert_eq!(reference.hash("sent"), hash);
    println!("to the reference {took:?}, from it {:?} once it reads", began.elapsed());
    finish(stream, &reference, false, false);
    assert!(took < idle + Duration::from_secs(8), "{took:?}");
}

/// The smaller packet size is used, and the receiver's window is obeyed.
#[test]
fn packet_sizes_are_negotiated() {
    let Some(udt4) = reference::program() else { return };
    let config_of = |packet_size| Config { packet_size, ..stream_config("udt") };
    for role in ROLES {
        for (packet_size, mss) in [(1500, 1000), (1000, 1500), (9000, 9000)] {
            let words = format!("--mss {mss} --window 512");
            Ends::exchange(
                udt4,
                role,
                &config_of(packet_size),
                [4 * MB, 4 * MB],
                (&words, true),
                None,
            );
        }
    }
}

/// The listener uses the client's initial sequence number: both directions wrap.
#[test]
fn sequence_numbers_wrap() {
    let Some(udt4) = reference::program() else { return };
    for back in [1, 1000] {
        let words = format!("--isn {}", (1u64 << 31) - 1 - back);
        for faults in [None, Some([Faults::loss(0.01); 2])] {
            let bytes = [6 * MB, 6 * MB];
            Ends::exchange(
                udt4,
                Role::Listen,
                &stream_config("udt"),
                bytes,
                (&words, true),
                faults,
            );
        }
    }
}

/// Streams over a relay with faults in both directions, in each role.
#[test]
fn streams_are_delivered_over_impaired_paths() {
    let Some(udt4) = reference::program() else { return };
    let config = Config { idle_timeout: cwnd::Dur::from_millis(20_000), ..stream_config("udt") };
    let (reorder_delay, delay) = (Duration::from_millis(5), Duration::from_millis(50));
    let none = Faults::default();
    let paths = [
        ("0.1 percent loss", Faults::loss(0.001), 20 * MB),
        ("1 percent loss", Faults::loss(0.01), 10 * MB),
        ("5 percent loss", Faults::loss(0.05), 2 * MB),
        ("reordering", Faults { reorder: 0.05, reorder_delay, ..none }, 10 * MB),
        ("duplicates", Faults { duplicate: 0.05, ..none }, 10 * MB),
        ("replays", Faults { replay: 0.05, ..none }, 10 * MB),
        // Thousands of packets and many of their retransmissions are lost; UDT4 reports each loss
        // once.
        ("heavy loss", Faults { heavy_loss: (1500, 5500), ..none }, 12 * MB),
        ("a round-trip time of 100 ms", Faults { delay, ..none }, 10 * MB),
    ];
    at_once(
        paths,
        |(path, _, _)| (*path).into(),
        |(_, faults, size)| {
            for (role, bytes) in [
                (Role::Connect, [size, 0]),
                (Role::Listen, [0, size]),
                (Role::Rendezvous, [size / 4; 2]),
            ] {
                Ends::exchange(udt4, role, &config, bytes, ("", bytes[0] > 0), Some([faults; 2]));
            }
        },
    );
}

/// Tries all cases at once, as most of the time passes on their paths. A failure has the case as
/// the name of its thread.
fn at_once<T: Send>(
    cases: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> String,
    run: impl Fn(T) + Sync,
) {
    let run = &run;
    std::thread::scope(|scope| {
        for case in cases {
            let thread = std::thread::Builder::new().name(name(&case));
            thread.spawn_scoped(scope, move || run(case)).unwrap();
        }
    });
}

fn send_messages(stream: &UdtStream, count: u64, in_order: bool) {
    for n in 0..count {
        stream.send_message(&message(SEED, n, SIZE), None, in_order).unwrap();
    }
}

/// Messages of many sizes, ordered and unordered, over a perfect and a lossy path, in each role.
#[test]
fn messages_are_delivered() {
    let Some(udt4) = reference::program() else { return };
    let count = 1000;
    let config = message_config("udt");
    at_once(
        ROLES,
        |role| format!("{role:?}"),
        |role| {
            for in_order in [true, false] {
                for faults in [None, Some([Faults::loss(0.02); 2])] {
                    println!("{role:?} {in_order} {faults:?}");
                    let order = if in_order { "--in-order" } else { "" };
                    let words = format!("--seed {SEED} --size {SIZE}");

                    let receives = format!("{words} --recv {count} --until-closed");
                    let ends = Ends::connect(udt4, role, &config, &receives, faults);
                    send_messages(&ends.stream, count, in_order);
                    let seen = ends.reference.messages();
                    assert_eq!((seen.whole, seen.wrong), (count, 0));
                    assert!(!in_order || seen.early == 0, "{seen:?}");
                    finish(ends.stream, &ends.reference, true, faults.is_some());

                    let sends = format!("{words} --send {count} {order}");
                    let ends = Ends::connect(udt4, role, &config, &sends, faults);
                    let seen = recv_messages(&ends.stream, count, SEED, SIZE);
                    assert_eq!((seen.whole, seen.wrong), (count, 0));
                    assert!(!in_order || seen.early == 0, "{seen:?}");
                    ends.reference.expect("sent");
                    ends.reference.expect("closed");
                }
            }
        },
    );
}

/// Expired messages are skipped, and later ones are delivered. UDT4 sends every message at least
/// once. This crate does not send expired messages, so that they are written over some time.
#[test]
fn expired_messages_are_skipped() {
    let Some(udt4) = reference::program() else { return };
    let count = 500;
    let ttl = 40;
    let config = message_config("udt");
    let faults = Faults { loss: 0.05, delay: Duration::from_millis(20), ..Faults::default() };
    for role in [Role::Connect, Role::Listen] {
        let words = format!("--seed {SEED} --size {SIZE}");
        let check = |what: &str, seen: support::Messages| {
            println!("{role:?} {what}: {seen:?}");
            // A busy machine sends few before they expire.
            assert!(seen.wrong == 0 && (1..count).contains(&seen.whole), "{seen:?}");
        };

        let receives = format!("{words} --recv {count} --until-closed");
        let ends = Ends::connect(udt4, role, &config, &receives, Some([faults; 2]));
        for n in 0..count {
            let ttl = (n + 1 < count).then_some(Duration::from_millis(ttl));
            ends.stream.send_message(&message(SEED, n, SIZE), ttl, true).unwrap();
            std::thread::sleep(Duration::from_millis(4));
        }
        ends.stream.close_until(Some(Instant::now() + TIMEOUT)).unwrap();
        check("to the reference", ends.reference.messages());

        let sends = format!("{words} --send {count} --ttl {ttl} --in-order --hold");
        let ends = Ends::connect(udt4, role, &config, &sends, Some([faults; 2]));
        ends.stream.set_read_timeout(Some(Duration::from_secs(3)));
        check("from the reference", recv_messages(&ends.stream, count, SEED, SIZE));
    }
}

/// Both ends close at the same time, and all data is delivered.
#[test]
fn both_ends_can_close_at_once() {
    let Some(udt4) = reference::program() else { return };
    for role in ROLES {
        let words = format!("--seed {SEED} --send {MB} --recv {MB} --hold");
        let mut ends = Ends::connect(udt4, role, &stream_config("udt"), &words, None);
        send_stream(&ends.stream, MB, SEED).unwrap();
        recv_stream(&ends.stream, MB).unwrap();
        for _ in 0..2 {
            let line = ends.reference.line(TIMEOUT).unwrap();
            assert!(line.starts_with("sent") || line.starts_with("received"), "{line}");
        }
        // UDT4 delivers data before it sends the acknowledgement: its shutdown may precede the
        // acknowledgement.
        wait_until(|| ends.stream.unacknowledged() == 0);
        ends.reference.resume();
        ends.stream.close_until(Some(Instant::now() + TIMEOUT)).unwrap();
        ends.reference.expect("closed");
    }
}

#[test]
fn another_socket_type_is_refused() {
    let Some(udt4) = reference::program() else { return };
    let (_reference, to) = udt4.listen("--message");
    let refused = UdtStream::connect(to, &stream_config("udt")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "{refused}");

    let listener = UdtListener::bind(local(), &stream_config("udt")).unwrap();
    let reference = udt4.start(&format!("connect --message --to {}", listener.local_addr()));
    let line = reference.line(TIMEOUT).unwrap();
    assert!(line.starts_with("error connect"), "{line}");
}
