//! The adapters under real connections in memory.

mod support;

use cwnd::record::{Record, replay};
use cwnd::registry::{Kind, algorithms};
use cwnd::{Event, Output, Packets};
use cwnd_quic::events::TABLE;
use cwnd_quic::{Controllers, Error, Recording, Recordings};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::events::check;
use support::fixed::Fixed;
use support::link::{Datagram, Link, Outcome, PASS};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stack {
    Noq,
    Quinn,
}

const STACKS: [Stack; 2] = [Stack::Noq, Stack::Quinn];

/// A transfer with the controllers at the sender, and their records.
fn transfer(
    stack: Stack,
    controllers: Controllers,
    bytes: u64,
    link: Link,
) -> (Outcome, Vec<Recording>) {
    let (outcome, _, recordings) = counted_transfer(stack, controllers, bytes, link);
    (outcome, recordings)
}

/// The same, with the packets that the stack counts as lost.
fn counted_transfer(
    stack: Stack,
    controllers: Controllers,
    bytes: u64,
    link: Link,
) -> (Outcome, u64, Vec<Recording>) {
    let recordings = Recordings::new();
    let controllers = controllers.record(&recordings);
    let (start, deadline) = (Instant::now(), Duration::from_secs(60));
    macro_rules! run {
        ($stack:ident, $proto:ident, $factory:ident) => {{
            let mut transport = $proto::TransportConfig::default();
            let factory = cwnd_quic::$stack::$factory(controllers).expect("it was read");
            transport.congestion_controller_factory(factory);
            let mut client = support::$stack::Host::client(start, bytes, transport);
            let mut server = support::$stack::Host::server($proto::TransportConfig::default());
            let outcome = link.run(start, [&mut client, &mut server], bytes, deadline);
            (outcome, client.counts().1)
        }};
    }
    let (outcome, lost) = match stack {
        Stack::Noq => run!(noq, noq_proto, factory),
        Stack::Quinn => run!(quinn, quinn_proto, factory_even_if_paced),
    };
    (outcome, lost, recordings.to_vec())
}

fn named(name: &str) -> Controllers {
    Controllers::try_from(name).expect("it is in the registry")
}

/// Losses, a mark, reordering, and a while without a path.
fn fate(number: u64, time: Duration, datagram: &mut Datagram) -> Option<Duration> {
    if number == 300 {
        assert_ne!(datagram.ecn, 0, "it is ECN-capable");
        datagram.ecn = 0b11;
    }
    let lost =
        (1000..2500).contains(&time.as_millis()) || number > 1000 && number.is_multiple_of(97);
    let held = if number == 60 { Duration::from_millis(15) } else { Duration::ZERO };
    (!lost).then_some(held)
}

/// Each event that the table calls exact or derived occurs in a connection, and each absent one
/// does not.
#[test]
fn the_table_of_events_is_true() {
    for stack in STACKS {
        let records: Vec<Record> = ["bbr3", "daimd"]
            .into_iter()
            .flat_map(|name| transfer(stack, named(name), 5_000_000, Link::new(fate)).1)
            .map(|recording| recording.record)
            .collect();
        for row in TABLE {
            let source = if stack == Stack::Noq { row.noq } else { row.quinn };
            check(row, source, &records);
        }
    }
}

/// The packets of all loss events are those that the stack counts. quinn reports bytes, and some of
/// its packets are smaller than others.
#[test]
fn the_losses_are_those_of_the_stack() {
    for stack in STACKS {
        let (_, lost, recordings) =
            counted_transfer(stack, named("reno"), 5_000_000, Link::new(fate));
        let reported = recordings[0].record.entries.iter().map(|entry| match entry.event {
            Event::Lost(lost) => u64::from(lost.packets),
            _ => 0,
        });
        let reported = reported.sum::<u64>();
        let most = if stack == Stack::Noq { 0 } else { 2 };
        assert!(lost > 50 && reported.abs_diff(lost) <= most, "{stack:?}: {reported} of {lost}");
    }
}

/// The record of a connection replays to the same answers, bit by bit, also through its text.
#[test]
fn records_replay_bit_for_bit() {
    for stack in STACKS {
        let mut names = vec!["reno", "cubic(start=hystart)", "simd(beta=1/16)", "bbr3", "c4"];
        if stack == Stack::Noq {
            names.push("tfrc");
        }
        for name in names {
            let (outcome, recordings) = transfer(stack, named(name), 3_000_000, Link::new(fate));
            assert_eq!((outcome.received, outcome.closed), (3_000_000, None), "{stack:?} {name}");
            let [Recording { settings, record, .. }] = &recordings[..] else {
                panic!("{stack:?} {name}: {} records", recordings.len());
            };
            assert!(record.entries.len() > 100, "{stack:?} {name}");
            let read: Record = record.to_string().parse().expect("it is the text of a record");
            replay(named(name).controller(settings), &read)
                .unwrap_or_else(|mismatch| panic!("{stack:?} {name}: {mismatch}"));
        }
    }
}

/// quinn sends while the bytes in flight are less than the window, so that two packets must be
/// more than two packets.
#[test]
fn any_window_lets_two_packets_leave() {
    for stack in STACKS {
        let link = Link::new(|_, _, _| PASS);
        let half = Arc::new(Fixed(Output::window(Packets::new(0.5))));
        let (outcome, _) = transfer(stack, Controllers::from(half), 100_000, link);
        assert_eq!(outcome.received, 100_000, "{stack:?}");
        // 100 kB in packets of up to 1452 bytes, two in each round-trip time of 40 ms.
        let rounds = outcome.time.as_secs_f64() / 0.040;
        assert!((30.0..60.0).contains(&rounds), "{stack:?}: {rounds} round-trip times");
    }
}

/// Under losses, a mark, reordering and a while without a path. Without its pacing rate, a rate law
/// sends without bound.
#[test]
fn every_controller_completes_a_transfer() {
    for stack in STACKS {
        for algorithm in algorithms() {
            let name = algorithm.name;
            if stack == Stack::Quinn && algorithm.kind() == Kind::Rate {
                continue;
            }
            let (outcome, _) = transfer(stack, named(name), 300_000, Link::new(fate));
            assert_eq!((outcome.received, outcome.closed), (300_000, None), "{stack:?} {name}");
        }
    }
}

/// quinn ignores pacing rates, and so refuses the controllers that set one.
#[test]
fn quinn_refuses_controllers_that_pace() {
    let refused: Vec<_> = algorithms()
        .iter()
        .map(|algorithm| algorithm.name)
        .filter(|name| cwnd_quic::quinn::factory(*name).is_err())
        .collect();
    assert_eq!(refused, ["prague", "daimd", "udt", "tfrc", "bbr", "bbr3", "copa", "c4"]);
    let error = cwnd_quic::quinn::factory("reno(pacing=1.25)").expect_err("it paces");
    assert_eq!(
        error.to_string(),
        "reno(pacing=1.25) sets a pacing rate, which quinn ignores: it would send bursts \
         (factory_even_if_paced accepts it)"
    );
    assert!(cwnd_quic::quinn::factory_even_if_paced("bbr3").is_ok());
}

const GENTLE: &str = r#"
law gentle "AIMD(alpha, 1/4)"
parameter alpha = 1 in [0, 10] "packets in a round-trip time"
on grow:
    return w + alpha * acked / w
on cut:
    return 3 * w / 4
"#;

/// A law in a file, by its path, with values of its parameters.
#[test]
fn laws_are_read_from_files_and_texts() {
    let folder = std::env::temp_dir().join(format!("cwnd-quic-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    let path = folder.join("gentle.law").display().to_string();
    let read = |text: &str| Controllers::try_from(text).map(|controllers| controllers.to_string());
    let failed = |text: &str| read(text).expect_err("it is faulty").to_string();
    assert!(failed(&path).starts_with(&format!("{path}: ")), "{}", failed(&path));
    std::fs::write(&path, GENTLE).expect("the folder is writable");
    assert_eq!(read(&path).expect("it is right"), "gentle.law");
    assert_eq!(read(&format!("{path}(alpha=2)")).expect("it is right"), "gentle.law(alpha=2)");
    std::fs::write(&path, GENTLE.replace("3 * w", "3 * v")).expect("the folder is writable");
    assert!(failed(&path).starts_with(&format!("{path}:7:16: ")), "{}", failed(&path));
    std::fs::remove_dir_all(&folder).expect("it is there");

    let link = Link::new(|_, _, _| PASS);
    let law = cwnd_quic::law("text.law", GENTLE).expect("it is right");
    let (outcome, _) = transfer(Stack::Noq, Controllers::from(law), 100_000, link);
    assert_eq!(outcome.received, 100_000);
    assert!(matches!(cwnd_quic::law("text.law", "law"), Err(Error::Law { .. })));
}
