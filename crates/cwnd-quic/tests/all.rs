//! The adapters under real connections in memory.

mod support;

use cwnd::record::{Record, replay};
use cwnd::registry::algorithms;
use cwnd::{
    Acked, AnyController, Controller, Event, Limit, MakeController, Output, Packets, Settings, Time,
};
use cwnd_quic::events::{Item, Row, Source, TABLE};
use cwnd_quic::{Controllers, Error, Recording, Recordings};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::link::{Fate, Link, Outcome};

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
            link.run(start, [&mut client, &mut server], bytes, deadline)
        }};
    }
    let outcome = match stack {
        Stack::Noq => run!(noq, noq_proto, factory),
        Stack::Quinn => run!(quinn, quinn_proto, factory_even_if_paced),
    };
    (outcome, recordings.to_vec())
}

fn named(name: &str) -> Controllers {
    Controllers::try_from(name).expect("it is in the registry")
}

/// Losses, a mark, reordering, and a second without a path.
fn fate(number: u64, time: Duration) -> Fate {
    let milliseconds = time.as_millis();
    match number {
        _ if (1000..2500).contains(&milliseconds) => Fate::Drop,
        300 => Fate::Mark,
        60 => Fate::Delay(Duration::from_millis(15)),
        _ if number > 1000 && number % 97 == 0 => Fate::Drop,
        _ => Fate::Pass,
    }
}

/// Whether the records contain the event or field of a line of the table.
fn contains(item: Item, records: &[Record]) -> bool {
    let acked =
        |is: &dyn Fn(&Acked) -> bool| move_any(records, |e| matches!(e, Event::Acked(a) if is(a)));
    let any = |is: &dyn Fn(&Event) -> bool| move_any(records, is);
    match item {
        Item::AckedPackets => acked(&|acked| acked.packets > 1),
        Item::Credit => acked(&|acked| acked.credit > 0),
        Item::SentAt => acked(&|acked| acked.sent_at > Time::ZERO),
        Item::Rtt => acked(&|acked| acked.rtt.is_some()),
        Item::InFlight => acked(&|acked| acked.in_flight > 0),
        Item::Sent => acked(&|acked| acked.sent > 0),
        Item::ApplicationLimit => acked(&|acked| acked.limit == Limit::Application),
        Item::WindowLimit => acked(&|acked| acked.limit == Limit::Window),
        Item::PacingLimit => acked(&|acked| acked.limit == Limit::Pacing),
        Item::ReceiverLimit => acked(&|acked| acked.limit == Limit::Receiver),
        Item::Delivery => acked(&|acked| acked.delivery.is_some_and(|sample| sample.reliable)),
        Item::AckedMarked => acked(&|acked| acked.marked > 0),
        Item::ReceivedAt => acked(&|acked| acked.received_at.is_some()),
        Item::Departure => acked(&|acked| acked.departure.is_some()),
        Item::Lost => any(&|event| matches!(event, Event::Lost(lost) if lost.packets > 0)),
        Item::LostDelivery => {
            any(&|event| matches!(event, Event::Lost(lost) if lost.delivery.is_some()))
        }
        Item::PersistentCongestion => any(&|event| *event == Event::PersistentCongestion),
        Item::Marked | Item::MarkedPackets => any(&|event| matches!(event, Event::Marked(_))),
        Item::Undo => any(&|event| *event == Event::Undo),
        Item::Mtu => any(&|event| matches!(event, Event::Mtu { .. })),
        Item::Tick => any(&|event| *event == Event::Tick),
        Item::Report => any(&|event| matches!(event, Event::Report(_))),
        Item::Arrival => {
            any(&|event| matches!(event, Event::Report(report) if report.arrival.is_some()))
        }
        Item::Capacity => {
            any(&|event| matches!(event, Event::Report(report) if report.capacity.is_some()))
        }
        _ => panic!("{item:?} has no check"),
    }
}

fn move_any(records: &[Record], is: impl Fn(&Event) -> bool) -> bool {
    records.iter().flat_map(|record| &record.entries).any(|entry| is(&entry.event))
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
        for Row { item, name, noq, quinn, .. } in TABLE {
            let source = if stack == Stack::Noq { noq } else { quinn };
            let expected = !matches!(source, Source::Absent(_));
            assert_eq!(contains(*item, &records), expected, "{stack:?}: {name}");
        }
    }
}
