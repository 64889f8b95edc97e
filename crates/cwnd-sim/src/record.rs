//! What a run leaves behind. Counters run from the end of the warm-up to the end of the run; series
//! and cuts cover the whole run.

use cwnd::record::Record;
use cwnd::{Cut, Time};

/// A cut of a flow's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutRecord {
    /// When.
    pub at: Time,
    /// What was cut and why.
    pub cut: Cut,
}

/// Everything a run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Times of the samples in seconds.
    pub time: Vec<f64>,
    /// One for each flow, in the order of the scenario.
    pub flows: Vec<FlowRecord>,
    /// One for each link.
    pub links: Vec<LinkRecord>,
    /// Data packets that all flows sent, warm-up included.
    pub packets: u64,
    /// Events that the simulator dealt with.
    pub events: u64,
}

/// What a flow did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRecord {
    /// Data packets put on the wire, retransmissions included.
    pub packets_sent: u64,
    /// Data packets that arrived in order, each once.
    pub packets_delivered: u64,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Data packets that queues dropped or links lost.
    pub packets_lost: u64,
    /// Data packets that arrived with a congestion mark.
    pub packets_marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Cuts that answered a mark.
    pub ecn_cuts: u64,
    /// Seconds limited by the window, pacing, the receiver and the application.
    pub limited: [f64; 4],
    /// Mean of the round-trip times that the sender measured, in seconds; NaN without any.
    pub mean_rtt: f64,
    /// Smallest round-trip time in seconds; NaN without any.
    pub min_rtt: f64,
    /// When the transfer was complete, in seconds; NaN if it was not.
    pub completed: f64,
    /// Every cut of the window.
    pub cuts: Vec<CutRecord>,
    /// Samples.
    pub series: FlowSeries,
    /// Every event told to the controller, if that was asked for.
    pub told: Option<Record>,
}

/// Samples of a flow, one for each of [`Records::time`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSeries {
    /// Congestion window in packets (a paced flow's flow window).
    pub window: Vec<f64>,
    /// Round-trip time in seconds; NaN before the first.
    pub rtt: Vec<f64>,
    /// Data packets sent so far.
    pub sent: Vec<f64>,
    /// Data packets delivered in order so far.
    pub delivered: Vec<f64>,
    /// The controller's own variables, by name.
    pub gauges: Vec<(&'static str, Vec<f64>)>,
}

/// What a link did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRecord {
    /// Packets that arrived at its queue.
    pub arrivals: u64,
    /// Packets that its queue accepted and its transmitter began to send.
    pub departures: u64,
    /// Packets that its queue dropped.
    pub drops: u64,
    /// Packets that its queue marked.
    pub marks: u64,
    /// Packets lost in its pipe.
    pub losses: u64,
    /// Bytes that departed.
    pub bytes_departed: u64,
    /// Fraction of its rate used; NaN for an infinite rate.
    pub utilization: f64,
    /// Mean number of packets waiting, over time.
    pub mean_queue: f64,
    /// Queueing delay in seconds: mean, median, 95th and 99th percentile.
    pub delay: [f64; 4],
    /// Packets waiting, one for each of [`Records::time`].
    pub queue: Vec<f64>,
    /// Packets dropped or lost so far, likewise.
    pub drops_series: Vec<f64>,
}
