//! Qlog files of flows: JSON text sequences of the version 0.3, which qvis reads
//! (draft-ietf-quic-qlog-main-schema-04 and draft-ietf-quic-qlog-quic-events-04).
//!
//! A flow has one file, from the view of its source. Times are milliseconds from the start of the
//! run. As in QUIC every transmission has a packet number of its own, in the order of sending: the
//! retransmission of a TCP segment has a new number, and the same offset in the stream. Windows
//! and packets in flight are bytes of payload.
//!
//! * `recovery:parameters_set`: the packet size and the initial window, and each later packet size.
//! * `transport:packet_sent`: `raw.length` is the size on the wire. A SYN is a PING frame, data are
//!   a STREAM frame.
//! * `transport:packet_received`: an acknowledgement, with the packet numbers that it newly
//!   acknowledges. A segment that was retransmitted counts as its last transmission.
//! * `recovery:packet_lost`: one event for each packet that the sender declares lost. Where the
//!   sender's loss recovery does not order losses by time, the oldest original transmissions are
//!   taken first.
//! * `recovery:metrics_updated`: the values that an event of the controller changed.
//! * `recovery:congestion_state_updated`: the state of a window law.
//!
//! A file of QUIC has its packets, numbers and frames. UDT's reports have the number of packets that
//! arrived after the first missing one, not which: those that were never reported as lost count
//! before the retransmissions.

mod read;
mod write;

pub use read::{Qlog, QlogError, read};
pub use write::write;

use serde::{Deserialize, Serialize};

/// The separator of records (RFC 7464).
const SEPARATOR: u8 = 0x1e;
const VERSION: &str = "0.3";
const FORMAT: &str = "JSON-SEQ";

/// Names of events.
const SENT: &str = "transport:packet_sent";
const RECEIVED: &str = "transport:packet_received";
const LOST: &str = "recovery:packet_lost";
const PARAMETERS: &str = "recovery:parameters_set";
const METRICS: &str = "recovery:metrics_updated";
const STATE: &str = "recovery:congestion_state_updated";

const APPLICATION_LIMITED: &str = "application_limited";
const RECOVERY: &str = "recovery";
const PERSISTENT_CONGESTION: &str = "persistent_congestion";

/// The first record of a file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Header {
    qlog_version: String,
    qlog_format: String,
    title: String,
    trace: Trace,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Trace {
    title: String,
    common_fields: CommonFields,
    vantage_point: VantagePoint,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct CommonFields {
    time_format: String,
    protocol_type: Vec<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct VantagePoint {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

/// An event: the fields of all events that are written or read.
#[derive(Debug, Deserialize, Serialize)]
struct Event<N> {
    /// Milliseconds.
    time: f64,
    name: N,
    #[serde(default)]
    data: Data,
}

/// The data of an event, of which each kind has some.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<PacketHeader>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<Vec<Frame>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_datagram_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<u64>,
    /// Bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct PacketHeader {
    packet_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet_number: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
struct Raw {
    length: u64,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
struct Frame {
    frame_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    /// One or two numbers each: the first packet and the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    acked_ranges: Option<Vec<Vec<u64>>>,
}
