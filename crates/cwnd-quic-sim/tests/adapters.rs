//! The adapters of `cwnd-quic`: what they tell the controllers.

use crate::common::STACKS;
use crate::events::check;
use crate::fixed::Fixed;
use cwnd::record::{Record, replay};
use cwnd::registry::{Kind, algorithms};
use cwnd::{Event, Output, Packets};
use cwnd_quic::events::TABLE;
use cwnd_quic::{Controllers, Recording, Recordings};
use cwnd_quic_sim::{Outcome, Run};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Losses, reordering, and a while without a path.
const DISTURBED: &str = r#"
queue = "1bdp"
loss = 0.01
reorder = { probability = 0.01, delay = "15ms" }
blackout = [{ at = "0.3s", for = "1.5s" }]
"#;
/// Marks.
const MARKED: &str =
    "queue = { kind = \"red\", limit = \"70p\", min = \"10p\", max = \"60p\", ecn = true }";
const UNDISTURBED: &str = "queue = \"1bdp\"";

/// A transfer.
struct Transfer {
    run: Run,
    /// Packets that the stack counts as lost.
    lost: u64,
    /// The controller's record.
    recording: Recording,
}

/// Sends `bytes` bytes over 20 Mb/s and 40 ms with a link of these keys.
fn transfer(stack: &str, controllers: Controllers, bytes: usize, link: &str) -> Transfer {
    let text = format!(
        "duration = \"60s\"\n[dumbbell]\nrate = \"20mbit\"\ndelay = \"20ms\"\n{link}\n\
         [[flow]]\nprotocol = \"quic\"\nstack = \"{stack}\"\ncontroller = \"own:cubic\""
    );
    let (recordings, lost) = (Recordings::new(), Arc::new(AtomicU64::new(0)));
    let controllers = controllers.record(&recordings);
    macro_rules! run {
        ($stack:ident, $proto:ident, $factory:ident, $lost:expr) => {{
            use $proto::{Connection, Dir, Event, Side, StreamEvent, VarInt};
            struct Client(usize, Arc<AtomicU64>);
            impl cwnd_quic_sim::$stack::Application for Client {
                fn handle(
                    &mut self,
                    now: std::time::Instant,
                    event: Option<Event>,
                    connection: &mut Connection,
                ) {
                    match event {
                        Some(Event::Connected) => {
                            let id = connection.streams().open(Dir::Uni).unwrap();
                            let mut stream = connection.send_stream(id);
                            assert_eq!(stream.write(&vec![0; self.0]).unwrap(), self.0);
                            stream.finish().unwrap();
                        }
                        Some(Event::Stream(StreamEvent::Finished { .. })) => {
                            self.1.store($lost(connection), Ordering::Relaxed);
                            connection.close(now, VarInt::from_u32(0), Vec::new().into());
                        }
                        _ => {}
                    }
                }
            }
            let factory = cwnd_quic::$stack::$factory(controllers).unwrap();
            let config = |_: Side| {
                let mut config = $proto::TransportConfig::default();
                // The client writes all data at once.
                config.stream_receive_window(VarInt::from_u32(10_000_000));
                config.congestion_controller_factory(factory.clone());
                config
            };
            let application = |side: Side| -> Option<Box<dyn cwnd_quic_sim::$stack::Application>> {
                (side == Side::Client).then(|| Box::new(Client(bytes, lost.clone())) as _)
            };
            let scenario = cwnd_quic_sim::$stack::Scenario::from_toml(&text).unwrap();
            let runs = scenario.transport(config).application(application).run().unwrap();
            runs.iter().next().unwrap().clone()
        }};
    }
    let run = match stack {
        "noq" => run!(noq, noq_proto, factory, |connection: &mut Connection| {
            connection.stats().lost_packets
        }),
        _ => run!(quinn, quinn_proto, factory_even_if_paced, |connection: &mut Connection| {
            connection.stats().path.lost_packets
        }),
    };
    // The copies that are not in use have no events.
    let recording = recordings.to_vec().into_iter().max_by_key(|each| each.record.entries.len());
    Transfer { run, lost: lost.load(Ordering::Relaxed), recording: recording.unwrap() }
}

fn named(name: &str) -> Controllers {
    Controllers::try_from(name).unwrap()
}

/// Each event that the table calls exact or derived occurs in a connection, and each absent one
/// does not.
#[test]
fn the_table_of_events_is_true() {
    for stack in STACKS {
        let records: [Record; 3] = [("bbr3", DISTURBED), ("daimd", DISTURBED), ("reno", MARKED)]
            .map(|(name, link)| transfer(stack, named(name), 5_000_000, link).recording.record);
        for row in TABLE {
            check(row, if stack == "noq" { row.noq } else { row.quinn }, &records);
        }
    }
}

/// The packets of all loss events are those that the stack counts. quinn reports bytes, and some of
/// its packets are smaller than others.
#[test]
fn the_losses_are_those_of_the_stack() {
    for stack in STACKS {
        let Transfer { lost, recording, .. } = transfer(stack, named("reno"), 5_000_000, DISTURBED);
        let reported = recording.record.entries.iter().map(|entry| match entry.event {
            Event::Lost(lost) => u64::from(lost.packets),
            _ => 0,
        });
        let reported = reported.sum::<u64>();
        let most = if stack == "noq" { 0 } else { 2 };
        assert!(lost > 50 && reported.abs_diff(lost) <= most, "{stack}: {reported} of {lost}");
    }
}

/// The record of a connection replays to the same answers, bit by bit, also through its text.
#[test]
fn records_replay_bit_for_bit() {
    for stack in STACKS {
        let mut names = vec!["reno", "cubic(start=hystart)", "simd(beta=1/16)", "bbr3", "c4"];
        if stack == "noq" {
            names.push("tfrc");
        }
        for name in names {
            let Transfer { run, recording, .. } =
                transfer(stack, named(name), 3_000_000, DISTURBED);
            assert_eq!(run.outcome, Outcome::Done, "{stack} {name}");
            let Recording { settings, record, .. } = &recording;
            assert!(record.entries.len() > 100, "{stack} {name}");
            let read: Record = record.to_string().parse().unwrap();
            replay(named(name).controller(settings), &read)
                .unwrap_or_else(|mismatch| panic!("{stack} {name}: {mismatch}"));
        }
    }
}

/// quinn sends while the bytes in flight are less than the window, so that two packets must be
/// more than two packets.
#[test]
fn any_window_lets_two_packets_leave() {
    for stack in STACKS {
        let half = Arc::new(Fixed(Output::window(Packets::new(0.5))));
        let Transfer { run, .. } = transfer(stack, Controllers::from(half), 100_000, UNDISTURBED);
        assert_eq!(run.outcome, Outcome::Done, "{stack}");
        // 100 kB in packets of up to 1452 bytes, two in each round-trip time of 40 ms.
        let rounds = run.at / 0.040;
        assert!((30.0..60.0).contains(&rounds), "{stack}: {rounds} round-trip times");
    }
}

/// Without its pacing rate, a rate law sends without bound.
#[test]
fn every_controller_completes_a_disturbed_transfer() {
    for stack in STACKS {
        for algorithm in algorithms() {
            let name = algorithm.name;
            if stack == "quinn" && algorithm.kind() == Kind::Rate {
                continue;
            }
            let Transfer { run, .. } = transfer(stack, named(name), 300_000, DISTURBED);
            assert_eq!(run.outcome, Outcome::Done, "{stack} {name}");
        }
    }
}

/// A law as a text is a controller like any other.
#[test]
fn a_law_in_a_text_completes_a_transfer() {
    let text = "law gentle \"AIMD(1, 1/4)\"\non grow:\n    return w + acked / w\n\
                on cut:\n    return 3 * w / 4\n";
    let law = cwnd_quic::law("text.law", text).unwrap();
    let Transfer { run, .. } = transfer("noq", Controllers::from(law), 100_000, UNDISTURBED);
    assert_eq!(run.outcome, Outcome::Done);
}
