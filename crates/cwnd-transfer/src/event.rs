//! What a transfer reports, as plain values: they become JSON documents.

use crate::report::Shares;
use serde::Serialize;

/// What came of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    /// All of it crossed the network.
    Sent,
    /// It was there.
    Present,
    /// A part of it was there.
    Resumed,
}

/// What came of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything has arrived.
    Complete,
    /// It came to its end, and something was not sent.
    Incomplete,
    /// It did not come to its end.
    Failed,
}

/// An event. Paths and sentences hold nothing that a terminal would obey.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "docs/transfer.md describes the events")]
pub enum Event {
    Connected { transfer: u64, peer: String, identity: Option<String>, attempt: u32 },
    Plan { transfer: u64, files: u64, bytes: u64 },
    File { transfer: u64, path: String, outcome: FileOutcome, bytes: u64, moved_bytes: u64 },
    Error { transfer: u64, path: Option<String>, reason: String },
    Note { transfer: u64, path: Option<String>, reason: String },
    Progress(Progress),
    Retry { transfer: u64, attempt: u32, of: u32, delay_s: f64, reason: String },
    End(End),
}

/// How far a transfer is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    /// The transfer's number.
    pub transfer: u64,
    /// The file in transit.
    pub name: String,
    /// Bytes of files that need not be sent any more.
    pub done_bytes: u64,
    /// Bytes of files that crossed the network.
    pub moved_bytes: u64,
    /// Bytes of all files, if known.
    pub total_bytes: Option<u64>,
    /// Files that are complete.
    pub files: u64,
    /// Bits a second of what crosses the network, since the last progress event.
    pub rate_bps: f64,
    /// The smoothed round-trip time in seconds.
    pub rtt_s: f64,
    /// The share of packets that were lost.
    pub loss_rate: f64,
    /// What limited the rate since the transfer began.
    pub limited: Shares,
}

/// The end of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct End {
    /// The transfer's number.
    pub transfer: u64,
    /// The peer's address.
    pub peer: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Files that are complete at the receiver.
    pub files: u64,
    /// Their sizes in bytes.
    pub bytes: u64,
    /// Bytes of these that were there before.
    pub present_bytes: u64,
    /// Bytes of files that crossed the network.
    pub moved_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Bits a second that crossed the network.
    pub rate_bps: f64,
    /// Files, folders and links that were not sent or were refused.
    pub not_sent: u64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// The smoothed round-trip time in seconds.
    pub rtt_s: f64,
    /// What limited the rate: shares of the time.
    pub limited: Shares,
    /// What could be done about it, if one share is over a third.
    pub advice: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
}

/// Receives the events of a transfer.
pub type Observe<'a> = &'a (dyn Fn(Event) + Send + Sync);
