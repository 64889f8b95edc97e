//! Checks of the table of events against records.

use cwnd::record::Record;
use cwnd::{Acked, Event, Limit, Time};
use cwnd_quic::events::{Item, Row, Source};

/// Checks that the records contain the event or field of `row`, unless its `source` is absent.
pub(crate) fn check(row: &Row, source: Source, records: &[Record]) {
    let expected = !matches!(source, Source::Absent(_));
    assert_eq!(contains(row.item, records), expected, "{}", row.name);
}

/// Whether the records contain the event or field of a line of the table.
fn contains(item: Item, records: &[Record]) -> bool {
    let acked =
        |is: &dyn Fn(&Acked) -> bool| any_event(records, |e| matches!(e, Event::Acked(a) if is(a)));
    let any = |is: &dyn Fn(&Event) -> bool| any_event(records, is);
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

fn any_event(records: &[Record], is: impl Fn(&Event) -> bool) -> bool {
    records.iter().flat_map(|record| &record.entries).any(|entry| is(&entry.event))
}
