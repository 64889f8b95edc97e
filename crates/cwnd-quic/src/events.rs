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
    /// How s2n-quic gives it.
    pub s2n: Source,
}

const fn row(item: Item, name: &'static str, [noq, quinn, s2n]: [Source; 3]) -> Row {
    Row { item, name, noq, quinn, s2n }
}

const BYTES: Source = Derived("bytes / packet size");
const SAME: Source = Derived("the same");
const NONE: Source = Absent("");
const ALONE: Source = Derived("always 1: the stack does not count marks");
const NEXT: Source = Derived("with the next callback: the stack gives no time");

/// All events and fields that a QUIC stack could give.
pub const TABLE: &[Row] = &[
    row(Item::AckedPackets, "`Acked::packets`", [Exact, Exact, BYTES]),
    row(Item::Credit, "`Acked::credit`", [BYTES; 3]),
    row(Item::SentAt, "`Acked::sent_at`", [Exact; 3]),
    row(
        Item::Rtt,
        "`Acked::rtt`",
        [
            Derived("since the largest packet was sent, by its number"),
            Derived("the same, by the time of sending: the stack gives no number"),
            Exact,
        ],
    ),
    row(Item::InFlight, "`Acked::in_flight`", [BYTES; 3]),
    row(
        Item::Sent,
        "`sent`",
        [Exact, Derived("bytes / packet size, pure acknowledgements too"), Exact],
    ),
    row(
        Item::ApplicationLimit,
        "`Limit::Application`",
        [Exact, Exact, Derived("as of the last packet, if the window has room")],
    ),
    row(
        Item::WindowLimit,
        "`Limit::Window`",
        [
            Exact,
            Derived("if the packets in flight filled the window"),
            Derived("if the last packet filled the window"),
        ],
    ),
    row(
        Item::PacingLimit,
        "`Limit::Pacing`",
        [Derived("otherwise"), Derived("otherwise"), Derived("otherwise")],
    ),
    row(Item::ReceiverLimit, "`Limit::Receiver`", [Absent("reported as `Application`"); 3]),
    row(
        Item::Delivery,
        "`Acked::delivery`",
        [Exact, Derived("of transmissions, which are batches of packets"), Exact],
    ),
    row(Item::AckedMarked, "`Acked::marked`", [Absent("0"), Absent("0"), Exact]),
    row(Item::ReceivedAt, "`Acked::received_at`", [NONE; 3]),
    row(Item::Departure, "`Acked::departure`", [NONE; 3]),
    row(
        Item::Lost,
        "`Lost`",
        [Exact, BYTES, Derived("an event for each packet, before the acknowledgement")],
    ),
    row(Item::LostDelivery, "`Lost::delivery`", [Exact, Derived("of transmissions"), Exact]),
    row(Item::PersistentCongestion, "`PersistentCongestion`", [Exact; 3]),
    row(
        Item::Marked,
        "`Marked`",
        [
            Derived("after the losses, as the stack reports it"),
            Derived("the same; a congestion event without lost bytes"),
            Exact,
        ],
    ),
    row(Item::MarkedPackets, "`Marked::packets`", [ALONE, ALONE, Exact]),
    row(Item::Undo, "`Undo`", [NEXT, NONE, NONE]),
    row(Item::Mtu, "`Mtu`", [NEXT; 3]),
    row(
        Item::Tick,
        "`Tick`",
        [
            Derived("with the next callback after its time: the stack has no timer for it"),
            SAME,
            SAME,
        ],
    ),
    row(
        Item::Report,
        "`Report`",
        [Derived("from acknowledgements, every 10 ms or more"), SAME, SAME],
    ),
    row(Item::Arrival, "`Report::arrival`", [Derived("packets acknowledged / time"), SAME, SAME]),
    row(Item::Capacity, "`Report::capacity`", [NONE; 3]),
];

/// The table in Markdown, as it stands above.
pub fn markdown() -> String {
    let cell = |source: Source| match source {
        Exact => "exact".to_string(),
        Derived(how) => format!("derived: {how}"),
        Absent("") => "absent".to_string(),
        Absent(instead) => format!("absent: {instead}"),
    };
    let mut text = String::from("| | noq | quinn | s2n-quic |\n|---|---|---|---|\n");
    for row in TABLE {
        let [noq, quinn, s2n] = [row.noq, row.quinn, row.s2n].map(cell);
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} | {noq} | {quinn} | {s2n} |", row.name);
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
