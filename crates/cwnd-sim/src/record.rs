//! The results of a run. Counters cover the time after the warm-up; series and window reductions
//! cover the whole run.

use cwnd::record::Record;
use cwnd::{Cut, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// A window reduction of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutRecord {
    /// Time of the reduction.
    pub at: Time,
    /// Size and cause of the reduction.
    pub cut: Cut,
}

/// All results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Sample times in seconds.
    pub time: Vec<f64>,
    /// Flows in the order of the scenario.
    pub flows: Vec<FlowRecord>,
    /// Links in the order of the scenario.
    pub links: Vec<LinkRecord>,
    /// Data packets sent by all flows, including the warm-up.
    pub packets: u64,
    /// Events processed by the simulator.
    pub events: u64,
    /// Notes on parts of the scenario that have no effect, or that the backend does not support or
    /// approximates: one sentence each.
    pub notes: Vec<String>,
}

/// Results of a flow. The serialized fields, with these names, are the flow's record in Python: a
/// new counter is also in JSON documents, tables and data sets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FlowRecord {
    /// Time in seconds at which all data had arrived at the receiver; NaN if some had not.
    #[serde(rename = "completed_s")]
    pub completed: f64,
    /// Time in seconds at which the sender received the acknowledgement of all data; NaN if it did
    /// not.
    #[serde(rename = "acknowledged_s")]
    pub acknowledged: f64,
    /// Transfers of an application in the whole run. A flow without an application that sends a
    /// number of bytes is one transfer, which is not listed: from its start to `acknowledged`.
    #[serde(skip)]
    pub transfers: Vec<Transfer>,
    /// Figures of a `video` or `media` source by name, over the whole run.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub application: Vec<(&'static str, f64)>,
    /// Data packets sent, including retransmissions. A SYN is no data packet.
    pub packets_sent: u64,
    /// Bytes of payload of the data packets sent.
    pub bytes_sent: u64,
    /// Data packets that arrived at the receiver for the first time, in any order.
    pub packets_delivered: u64,
    /// Bytes of payload that arrived at the receiver for the first time.
    pub bytes_delivered: u64,
    /// Data packets that arrived at the receiver, duplicates included.
    pub packets_received: u64,
    /// Data packets dropped by queues or lost on links.
    pub packets_lost: u64,
    /// Data packets received with the CE codepoint.
    pub packets_marked: u64,
    /// The end of a connection with an error; `None` if it had none, and for other protocols than
    /// QUIC.
    pub closed: Option<Closed>,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Window reductions in response to ECN marks.
    pub ecn_cuts: u64,
    /// Seconds for which `window`, `pacing`, the `receiver` or the `application` limited the
    /// sender.
    pub limited: Limited,
    /// Mean round-trip time sample of the sender in seconds; NaN without samples.
    #[serde(rename = "mean_rtt_s")]
    pub mean_rtt: f64,
    /// Minimum round-trip time in seconds; NaN without samples.
    #[serde(rename = "min_rtt_s")]
    pub min_rtt: f64,
    /// Window reductions.
    #[serde(skip)]
    pub cuts: Vec<CutRecord>,
    /// Sampled variables.
    #[serde(flatten, skip_serializing)]
    pub series: FlowSeries,
    /// The controller's events and outputs, if
    /// [`Options::record_events`](crate::Options::record_events) is set.
    #[serde(skip)]
    pub events: Option<Record>,
    /// The packets that the source sent and received, if
    /// [`Options::record_packets`](crate::Options::record_packets) is set.
    #[serde(skip)]
    pub packets: Vec<PacketRecord>,
}

/// A packet that the source of a flow sent or received.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketRecord {
    /// Time of the transmission or of the arrival.
    pub at: Time,
    /// Bytes on the wire.
    pub size: u16,
    /// Contents.
    pub kind: PacketKind,
}

/// The contents of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum PacketKind {
    /// Sent: the data packet with this number, or the SYN, whose number is 0. The network does not
    /// see the numbers in datagrams: the protocol describes them.
    Data(Option<u32>),
    /// Sent: a packet without data.
    Control,
    /// Received: the acknowledgement of the packets before `next` and of those in `ranges`, each
    /// from its first number to one past its last.
    Acknowledgement {
        /// The number of the first packet that has not arrived.
        next: Option<u32>,
        /// Packets that arrived after it (SACK).
        ranges: Box<[(u32, u32)]>,
    },
    /// Received: a report of lost packets, each range from its first number to one past its last.
    Losses(Box<[(u32, u32)]>),
    /// Sent: the packets of a datagram of QUIC.
    QuicSent(Box<[QuicPacket]>),
    /// Received: the packets of a datagram of QUIC.
    QuicReceived(Box<[QuicPacket]>),
}

/// A packet of QUIC (RFC 9000 section 12).
#[derive(Clone, Debug, PartialEq)]
pub struct QuicPacket {
    /// Its type.
    pub kind: QuicKind,
    /// Its number in its space; of a packet received, the bits that it has of it.
    pub number: u64,
    /// Bytes of the packet, without the headers of IP and UDP.
    pub size: u16,
    /// Whether it elicits an acknowledgement.
    pub eliciting: bool,
    /// The data of streams: a stream's identifier, the offset and the length.
    pub streams: Vec<(u64, u64, u64)>,
    /// The packets that it acknowledges, each range from its first number to its last.
    pub acked: Vec<(u64, u64)>,
}

/// The type of a packet of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuicKind {
    /// Initial.
    Initial,
    /// Handshake.
    Handshake,
    /// 1-RTT.
    OneRtt,
}

/// The end of a connection with an error.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Closed {
    /// Time in seconds.
    #[serde(rename = "at_s")]
    pub at: f64,
    /// Which end closed it, and why.
    pub reason: String,
}

/// Seconds for which each limit held back a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Limited {
    /// The congestion window, or the flow window.
    pub window: f64,
    /// The pacing rate.
    pub pacing: f64,
    /// The receiver's window.
    pub receiver: f64,
    /// The data that the application had written.
    pub application: f64,
}

impl Limited {
    /// Returns the seconds in the order of [`cwnd::Limit`].
    pub fn seconds(self) -> [f64; 4] {
        let Limited { window, pacing, receiver, application } = self;
        [window, pacing, receiver, application]
    }
}

impl From<[f64; 4]> for Limited {
    fn from([window, pacing, receiver, application]: [f64; 4]) -> Self {
        Limited { window, pacing, receiver, application }
    }
}

fn as_map<S: Serializer>(pairs: &[(&'static str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}

/// A transfer of an application: an on period, a response or a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Time in seconds at which the data was requested or its writing began.
    pub begin: f64,
    /// Size in bytes.
    pub bytes: u64,
    /// Time in seconds at which the sender received the acknowledgement of the last byte; NaN if
    /// incomplete.
    pub end: f64,
}

/// Samples of a flow at the times [`Records::time`].
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct FlowSeries {
    /// Congestion window in packets; flow window of a paced flow.
    pub window: Vec<f64>,
    /// Last round-trip time in seconds; NaN before the first sample.
    pub rtt: Vec<f64>,
    /// Data packets sent so far.
    pub sent: Vec<f64>,
    /// Bytes of payload sent so far.
    pub sent_bytes: Vec<f64>,
    /// Data packets that have arrived for the first time so far, in any order.
    pub delivered: Vec<f64>,
    /// Bytes of payload that have arrived for the first time so far.
    pub delivered_bytes: Vec<f64>,
    /// Variables of the controller by name.
    #[schemars(with = "BTreeMap<String, Vec<f64>>")]
    pub gauges: Vec<(&'static str, Vec<f64>)>,
}

impl FlowSeries {
    /// Returns the series by name, without the variables of the controller.
    pub fn by_name(self) -> [(&'static str, Vec<f64>); 6] {
        let FlowSeries { window, rtt, sent, sent_bytes, delivered, delivered_bytes, gauges: _ } =
            self;
        [
            ("window", window),
            ("rtt", rtt),
            ("sent", sent),
            ("sent_bytes", sent_bytes),
            ("delivered", delivered),
            ("delivered_bytes", delivered_bytes),
        ]
    }
}

/// Results of a link, serialized as those of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LinkRecord {
    /// Packets that arrived at the queue.
    pub arrivals: u64,
    /// Packets of which `drops`, `losses` and `marks` are a part: the arrivals, and with
    /// disciplines that decide at departure those that waited at the end of the warm-up.
    pub offered: u64,
    /// Packets that left the queue for the transmitter.
    pub departures: u64,
    /// Packets dropped by the queue.
    pub drops: u64,
    /// Packets marked by the queue.
    pub marks: u64,
    /// Packets lost on the link after the queue.
    pub losses: u64,
    /// Bytes transmitted: a packet counts for the part of its transmission in the measured time.
    pub bytes_departed: f64,
    /// `bytes_departed` divided by the bytes that the link could transmit: at its rate, at its mean
    /// rate if that varies, at most those for which a shaper has tokens. NaN for an infinite rate.
    pub utilization: f64,
    /// Time average of the queue length in packets.
    pub mean_queue: f64,
    /// Queueing delay in seconds: `mean`, `p50`, `p95` and `p99`.
    pub delay: Delay,
    /// Queue length in packets at the sample times.
    #[serde(skip_serializing)]
    pub queue: Vec<f64>,
    /// Packets dropped or lost so far, at the sample times.
    #[serde(skip_serializing)]
    pub drops_series: Vec<f64>,
    /// Mean rate in bits per second that the link offers in the sampling interval that begins at
    /// each sample time; empty if the rate is constant.
    #[serde(rename = "capacity_bps", skip_serializing)]
    pub capacity: Vec<f64>,
}

/// Mean and percentiles of a delay in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Delay {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}
