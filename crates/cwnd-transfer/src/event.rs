//! Events of a transfer, as plain values that are serialised to JSON.

use serde::Serialize;
use std::collections::BTreeMap;

/// Shares of the time by limit. They sum to 1; empty without measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Shares(pub BTreeMap<&'static str, f64>);

impl Shares {
    pub(crate) fn new<const N: usize>(times: [(&'static str, f64); N]) -> Self {
        let sum: f64 = times.iter().map(|(_, time)| time).sum();
        let divisor = if sum > 0.0 { sum } else { return Shares::default() };
        Shares(times.into_iter().map(|(name, time)| (name, time / divisor)).collect())
    }
}

/// Outcome of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    /// All of its data crossed the network.
    Sent,
    /// It was already at the receiver.
    Present,
    /// A part of it was already at the receiver.
    Resumed,
}

/// Outcome of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All files arrived.
    Complete,
    /// The transfer ended, but some entries were not sent.
    Incomplete,
    /// The transfer failed.
    Failed,
}

/// An event. Paths and reasons are printable: they contain no control characters.
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

/// Progress of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    /// The transfer's number.
    pub transfer: u64,
    /// The file in transit.
    pub name: String,
    /// Bytes of files that are complete or need not be sent.
    pub done_bytes: u64,
    /// Bytes of files that crossed the network.
    pub moved_bytes: u64,
    /// Bytes of all files, if known.
    pub total_bytes: Option<u64>,
    /// Files that are complete.
    pub files: u64,
    /// Bit/s across the network since an earlier progress event.
    pub rate_bps: f64,
    /// The smoothed round-trip time in seconds.
    pub rtt_s: f64,
    /// Packet loss rate, 0 to 1.
    pub loss_rate: f64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// Shares of the time by limit since the transfer began.
    pub limited: Shares,
}

/// The end of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct End {
    /// The transfer's number.
    pub transfer: u64,
    /// The peer's address.
    pub peer: String,
    /// Outcome.
    pub outcome: Outcome,
    /// Files that are complete at the receiver.
    pub files: u64,
    /// Their sizes in bytes.
    pub bytes: u64,
    /// Bytes of these that were already at the receiver.
    pub present_bytes: u64,
    /// Bytes of files that crossed the network.
    pub moved_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Mean bit/s across the network.
    pub rate_bps: f64,
    /// Files, folders and links that were not sent, or were refused.
    pub not_sent: u64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// The smoothed round-trip time in seconds.
    pub rtt_s: f64,
    /// Shares of the time by limit.
    pub limited: Shares,
    /// Reason of the failure.
    pub reason: Option<String>,
}

/// Receives the events of a transfer.
pub type Observe<'a> = &'a (dyn Fn(Event) + Send + Sync);
