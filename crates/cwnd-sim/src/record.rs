//! The results of a run. Counters cover the time after the warm-up; series and window reductions cover the whole run.

use cwnd::record::Record;
use cwnd::{Cut, Time};

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
}

/// Results of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRecord {
    /// Data packets sent, including retransmissions. A SYN is no data packet.
    pub packets_sent: u64,
    /// Bytes of their payload.
    pub bytes_sent: u64,
    /// Data packets that arrived at the receiver for the first time, in any order.
    pub packets_delivered: u64,
    /// Bytes of their payload.
    pub bytes_delivered: u64,
    /// Data packets that arrived at the receiver, duplicates included.
    pub packets_received: u64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// Data packets dropped by queues or lost on links.
    pub packets_lost: u64,
    /// Data packets received with the CE codepoint.
    pub packets_marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Window reductions in response to ECN marks.
    pub ecn_cuts: u64,
    /// Seconds limited by the window, by pacing, by the receiver and by the application.
    pub limited: [f64; 4],
    /// Mean round-trip time sample of the sender in seconds; NaN without samples.
    pub mean_rtt: f64,
    /// Minimum round-trip time in seconds; NaN without samples.
    pub min_rtt: f64,
    /// Time in seconds at which all data had arrived at the receiver; NaN if some had not.
    pub completed: f64,
    /// Time in seconds at which the sender received the acknowledgement of all data; NaN if it did not.
    pub acknowledged: f64,
    /// Window reductions.
    pub cuts: Vec<CutRecord>,
    /// Transfers of an application in the whole run. A flow without an application that sends a number of bytes is one
    /// transfer, which is not listed: from its start to `acknowledged`.
    pub transfers: Vec<Transfer>,
    /// Figures of a `video` or `media` application in the whole run, by name.
    pub application: Vec<(&'static str, f64)>,
    /// Sampled variables.
    pub series: FlowSeries,
    /// The controller's events and outputs, if [`Options::record_events`](crate::Options::record_events) is set.
    pub events: Option<Record>,
}

/// A transfer of an application: an on period, a response or a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Time in seconds at which the data was requested or its writing began.
    pub begin: f64,
    /// Size in bytes.
    pub bytes: u64,
    /// Time in seconds at which the sender received the acknowledgement of the last byte; NaN if incomplete.
    pub end: f64,
}

/// Samples of a flow at the times [`Records::time`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSeries {
    /// Congestion window in packets; flow window of a paced flow.
    pub window: Vec<f64>,
    /// Last round-trip time in seconds; NaN before the first sample.
    pub rtt: Vec<f64>,
    /// Data packets sent so far.
    pub sent: Vec<f64>,
    /// Bytes of their payload.
    pub sent_bytes: Vec<f64>,
    /// Data packets that have arrived for the first time so far, in any order.
    pub delivered: Vec<f64>,
    /// Bytes of their payload.
    pub delivered_bytes: Vec<f64>,
    /// Variables of the controller by name.
    pub gauges: Vec<(&'static str, Vec<f64>)>,
}

/// Results of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRecord {
    /// Packets that arrived at the queue.
    pub arrivals: u64,
    /// Denominator of the loss and mark rates: arrivals, and for queues that drop at departure the packets queued at the end of the
    /// warm-up.
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
    /// `bytes_departed` divided by the bytes that the link could transmit: at its rate, at its mean rate if that varies, at most
    /// those for which a shaper has tokens. NaN for an infinite rate.
    pub utilization: f64,
    /// Time average of the queue length in packets.
    pub mean_queue: f64,
    /// Queueing delay in seconds: mean, median, 95th and 99th percentile.
    pub delay: [f64; 4],
    /// Queue length in packets at the times [`Records::time`].
    pub queue: Vec<f64>,
    /// Packets dropped or lost so far at the times [`Records::time`].
    pub drops_series: Vec<f64>,
    /// Mean rate in bits per second that the link offers in the sampling interval that begins at each of the times
    /// [`Records::time`]; empty if the rate is constant.
    pub capacity: Vec<f64>,
}
