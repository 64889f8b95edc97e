//! Which of cwnd's events and fields each stack gives.
//!
#![doc = include_str!("../events.md")]

use std::fmt::Write;

/// How an adapter gets an event or a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The stack reports it.
    Exact,
    /// It is computed from other data, as the text says.
    Derived(&'static str),
    /// It is missing, as the text says.
    Absent(&'static str),
}

use Source::{Absent, Derived, Exact};

/// An event, or a field of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// [`Acked::packets`](cwnd::Acked::packets).
    AckedPackets,
    /// [`Acked::credit`](cwnd::Acked::credit).
    Credit,
    /// [`Acked::sent_at`](cwnd::Acked::sent_at).
    SentAt,
    /// [`Acked::rtt`](cwnd::Acked::rtt).
    Rtt,
    /// [`Acked::in_flight`](cwnd::Acked::in_flight).
    InFlight,
    /// `sent` of all events.
    Sent,
    /// [`Limit::Application`](cwnd::Limit::Application).
    ApplicationLimit,
    /// [`Limit::Pacing`](cwnd::Limit::Pacing).
    PacingLimit,
    /// [`Limit::Window`](cwnd::Limit::Window).
    WindowLimit,
    /// [`Limit::Receiver`](cwnd::Limit::Receiver).
    ReceiverLimit,
    /// [`Acked::delivery`](cwnd::Acked::delivery).
    Delivery,
    /// [`Acked::marked`](cwnd::Acked::marked).
    AckedMarked,
    /// [`Acked::received_at`](cwnd::Acked::received_at).
    ReceivedAt,
    /// [`Acked::departure`](cwnd::Acked::departure).
    Departure,
    /// [`Event::Lost`](cwnd::Event::Lost) and its packets.
    Lost,
    /// [`Lost::delivery`](cwnd::Lost::delivery).
    LostDelivery,
    /// [`Event::PersistentCongestion`](cwnd::Event::PersistentCongestion).
    PersistentCongestion,
    /// [`Event::Marked`](cwnd::Event::Marked).
    Marked,
    /// [`Marked::packets`](cwnd::Marked::packets).
    MarkedPackets,
    /// [`Event::Undo`](cwnd::Event::Undo).
    Undo,
    /// [`Event::Mtu`](cwnd::Event::Mtu).
    Mtu,
    /// [`Event::Tick`](cwnd::Event::Tick).
    Tick,
    /// [`Event::Report`](cwnd::Event::Report).
    Report,
    /// [`Report::arrival`](cwnd::Report::arrival).
    Arrival,
    /// [`Report::capacity`](cwnd::Report::capacity).
    Capacity,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The event or field.
    pub item: Item,
    /// Its name in the table.
    pub name: &'static str,
    /// How noq gives it.
    pub noq: Source,
    /// How quinn gives it.
    pub quinn: Source,
}

const fn row(item: Item, name: &'static str, noq: Source, quinn: Source) -> Row {
    Row { item, name, noq, quinn }
}

const BYTES: Source = Derived("bytes / packet size");
const ALONE: Source = Derived("always 1: the stack does not count marks");
const NEXT: Source = Derived("reported with the next callback, because the stack gives no time");

/// All events and fields that a stack of QUIC could give.
pub const TABLE: &[Row] = &[
    row(Item::AckedPackets, "`Acked::packets`", Exact, Exact),
    row(Item::Credit, "`Acked::credit`", BYTES, BYTES),
    row(Item::SentAt, "`Acked::sent_at`", Exact, Exact),
    row(
        Item::Rtt,
        "`Acked::rtt`",
        Derived("time since the largest packet was sent, by its number"),
        Derived("the same, by the time of sending: the stack gives no number"),
    ),
    row(Item::InFlight, "`Acked::in_flight`", BYTES, BYTES),
    row(Item::Sent, "`sent`", Exact, Derived("bytes / packet size, pure acknowledgements too")),
    row(Item::ApplicationLimit, "`Limit::Application`", Exact, Exact),
    row(
        Item::WindowLimit,
        "`Limit::Window`",
        Exact,
        Absent("reported as `Pacing`, for which the window grows too"),
    ),
    row(
        Item::PacingLimit,
        "`Limit::Pacing`",
        Derived("neither of the two"),
        Derived("not `Application`"),
    ),
    row(
        Item::ReceiverLimit,
        "`Limit::Receiver`",
        Absent("reported as `Application`"),
        Absent("reported as `Application`"),
    ),
    row(
        Item::Delivery,
        "`Acked::delivery`",
        Exact,
        Derived("of transmissions, which are batches of packets"),
    ),
    row(Item::AckedMarked, "`Acked::marked`", Absent("0"), Absent("0")),
    row(Item::ReceivedAt, "`Acked::received_at`", Absent(""), Absent("")),
    row(Item::Departure, "`Acked::departure`", Absent(""), Absent("")),
    row(Item::Lost, "`Lost`", Exact, Derived("bytes / packet size")),
    row(Item::LostDelivery, "`Lost::delivery`", Exact, Derived("of transmissions")),
    row(Item::PersistentCongestion, "`PersistentCongestion`", Exact, Exact),
    row(Item::Marked, "`Marked`", Exact, Derived("a congestion event without lost bytes")),
    row(Item::MarkedPackets, "`Marked::packets`", ALONE, ALONE),
    row(Item::Undo, "`Undo`", NEXT, Absent("")),
    row(Item::Mtu, "`Mtu`", NEXT, NEXT),
    row(
        Item::Tick,
        "`Tick`",
        Derived("with the next callback after its time: the stack has no timer for it"),
        Derived("the same"),
    ),
    row(
        Item::Report,
        "`Report`",
        Derived("from acknowledgements, every 10 ms"),
        Derived("the same"),
    ),
    row(
        Item::Arrival,
        "`Report::arrival`",
        Derived("packets acknowledged / time"),
        Derived("the same"),
    ),
    row(Item::Capacity, "`Report::capacity`", Absent(""), Absent("")),
];

/// The table in Markdown, as it stands above.
pub fn markdown() -> String {
    let cell = |source: Source| match source {
        Exact => "exact".to_string(),
        Derived(how) => format!("derived: {how}"),
        Absent("") => "absent".to_string(),
        Absent(instead) => format!("absent: {instead}"),
    };
    let mut text = String::from("| | noq | quinn |\n|---|---|---|\n");
    for row in TABLE {
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} | {} | {} |", row.name, cell(row.noq), cell(row.quinn));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `events.md` is part of this module's documentation, and of docs/quic.md.
    #[test]
    fn the_documentation_contains_the_table() {
        assert_eq!(include_str!("../events.md"), markdown());
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/quic.md");
        let docs = std::fs::read_to_string(docs).expect("docs/quic.md exists");
        assert!(docs.contains(&markdown()), "docs/quic.md lacks the table");
    }
}
