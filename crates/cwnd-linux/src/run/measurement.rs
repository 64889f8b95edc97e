//! Measurement of a flow: converts snapshots and events to the simulator's flow record.

use std::sync::{Mutex, PoisonError};

use cwnd::{Cut, Dur, Limit, Time};
use cwnd_sim::network::Network;
use cwnd_sim::record::{CutRecord, FlowRecord, FlowSeries};

use super::flow_config::FlowConfig;
use crate::emulate::FlowReport;

/// State of a flow at one time. Counters start with the flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// Data packets sent, including retransmissions.
    pub sent: u64,
    /// Bytes of their payload.
    pub bytes_sent: u64,
    /// Bytes of payload of the kernel's TCP that are acknowledged.
    pub bytes_acknowledged: u64,
    /// Bytes of payload that arrived at the sink for the first time; `None` if only the links count
    /// them.
    pub delivered: Option<u64>,
    pub retransmitted: u64,
    pub timeouts: u64,
    /// Cuts in response to marks, if the transport tells them.
    pub ecn_cuts: u64,
    /// Window in packets; `None` before the connection is open.
    pub window: Option<f64>,
    /// Smoothed round-trip time in seconds, for flows without samples.
    pub rtt: Option<f64>,
    pub min_rtt: Option<f64>,
    /// Seconds limited by the window, by pacing, by the receiver and by the application.
    pub limited: [f64; 4],
    /// Time in seconds at which all data were acknowledged, and the time of the last arrival at the
    /// sink.
    pub acknowledged: Option<f64>,
    pub last_arrival: f64,
    /// Variables of the controller, by name.
    pub gauges: Vec<(&'static str, f64)>,
}

/// Seconds limited by each limit, and the time up to which they are counted.
pub(super) struct LimitTimes(Mutex<([f64; 4], Time)>);

impl LimitTimes {
    pub(super) fn new(start: Time) -> Self {
        LimitTimes(Mutex::new(([0.0; 4], start)))
    }

    /// Counts the time since the last call for a limit; `None` if the flow has no data to send.
    pub(super) fn add(&self, now: Time, limit: Option<Limit>) {
        let mut limited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (seconds, since) = &mut *limited;
        if let Some(limit) = limit {
            seconds[limit as usize] += now.since(*since).as_secs();
        }
        *since = now;
    }

    pub(super) fn seconds(&self) -> [f64; 4] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }
}

/// An event of a flow between two snapshots.
#[derive(Clone, Copy, Debug)]
pub(super) enum FlowEvent {
    /// A round-trip time sample in seconds.
    Rtt(Time, f64),
    /// A cut.
    Cut(Time, Cut),
    /// The last cut was for a timeout; the next cut replaces it.
    CutReplaced,
    /// Rate of a rate law in packets per second.
    Rate(f64),
}

/// Sum, number and minimum of round-trip time samples, in seconds.
#[derive(Clone, Copy, Debug)]
struct RttStats {
    sum: f64,
    count: u64,
    min: f64,
}

impl RttStats {
    const NONE: RttStats = RttStats { sum: 0.0, count: 0, min: f64::INFINITY };

    fn add(&mut self, rtt: f64) {
        self.sum += rtt;
        self.count += 1;
        self.min = self.min.min(rtt);
    }
}

/// The measurement of a flow.
pub(super) struct Measurement {
    /// Bytes of a packet on the links, and of its payload.
    packet_size: f64,
    payload: f64,
    initial_window: f64,
    warmup: Dur,
    at_start: Snapshot,
    cuts: Vec<CutRecord>,
    /// Statistics of all round-trip time samples, and of those since the warm-up.
    rtts: [RttStats; 2],
    last_rtt: f64,
    rate: Option<f64>,
    series: FlowSeries,
}

impl Measurement {
    pub(super) fn new(flow: &FlowConfig, network: &Network) -> Self {
        Measurement {
            packet_size: f64::from(flow.packet_size),
            payload: f64::from(flow.payload()),
            initial_window: flow.initial_window,
            warmup: network.warmup,
            at_start: Snapshot::default(),
            cuts: Vec::new(),
            rtts: [RttStats::NONE; 2],
            last_rtt: f64::NAN,
            rate: None,
            series: FlowSeries::default(),
        }
    }

    /// Records an event.
    pub(super) fn add_event(&mut self, event: FlowEvent) {
        match event {
            FlowEvent::Rtt(at, rtt) => self.add_rtt(at, rtt),
            FlowEvent::Cut(at, cut) => self.cuts.push(CutRecord { at, cut }),
            FlowEvent::CutReplaced => drop(self.cuts.pop()),
            FlowEvent::Rate(rate) => self.rate = Some(rate),
        }
    }

    fn add_rtt(&mut self, at: Time, rtt: f64) {
        self.last_rtt = rtt;
        self.rtts[0].add(rtt);
        if at >= Time::ZERO + self.warmup {
            self.rtts[1].add(rtt);
        }
    }

    /// Starts the measurement after the warm-up.
    pub(super) fn start(&mut self, snapshot: &Snapshot) {
        self.at_start = snapshot.clone();
    }

    /// Adds a sample to the series.
    pub(super) fn sample(&mut self, snapshot: &Snapshot) {
        let index = self.series.sent.len();
        self.series.sent.push(snapshot.sent as f64);
        let packets = snapshot.delivered.map(|bytes| (bytes as f64 / self.payload).floor());
        self.series.delivered.extend(packets);
        self.series.sent_bytes.push(snapshot.bytes_sent as f64);
        self.series.delivered_bytes.extend(snapshot.delivered.map(|bytes| bytes as f64));
        self.series.window.push(snapshot.window.unwrap_or(self.initial_window));
        // A sample is more accurate than the kernel's average.
        let last_rtt = Some(self.last_rtt).filter(|rtt| rtt.is_finite());
        self.series.rtt.push(last_rtt.or(snapshot.rtt).unwrap_or(f64::NAN));
        let rate = self.rate.map(|rate| ("rate", rate));
        for (name, value) in snapshot.gauges.iter().copied().chain(rate) {
            let gauges = &mut self.series.gauges;
            let at = gauges.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                gauges.push((name, Vec::new()));
                gauges.len() - 1
            });
            // Samples before the first value are NaN.
            gauges[at].1.resize(index, f64::NAN);
            gauges[at].1.push(value);
        }
    }

    /// Returns the record. `last` is the final snapshot, `report` has the counters of the links,
    /// and `time` the times of the samples.
    pub(super) fn finish(
        mut self,
        last: &Snapshot,
        report: &FlowReport,
        time: &[f64],
    ) -> FlowRecord {
        let since = |get: fn(&Snapshot) -> u64| get(last) - get(&self.at_start);
        let sample_count = time.len();
        let warmup_samples = time.partition_point(|&at| at < self.warmup.as_secs());
        let (delivered, bytes) = match last.delivered {
            Some(all) => {
                let before = self.at_start.delivered.unwrap_or(0);
                let packets = |bytes: u64| (bytes as f64 / self.payload).floor();
                (packets(all) - packets(before), all - before)
            }
            None => {
                let packets = |bytes: &f64| (bytes / self.packet_size).round();
                self.series.delivered = report.bytes_series.iter().map(packets).collect();
                self.series.delivered.truncate(sample_count);
                let bytes = self.series.delivered.iter().map(|packets| packets * self.payload);
                self.series.delivered_bytes = bytes.collect();
                let before =
                    self.series.delivered.get(warmup_samples).filter(|_| warmup_samples > 0);
                let packets = packets(&(report.bytes as f64)) - before.unwrap_or(&0.0);
                (packets, (packets.max(0.0) * self.payload) as u64)
            }
        };
        // Without samples, use the sampled averages of the kernel.
        if self.rtts[0].count == 0 {
            let samples = self.series.rtt.iter().skip(warmup_samples).filter(|rtt| rtt.is_finite());
            samples.for_each(|&rtt| self.rtts[1].add(rtt));
        }
        let [all, measured] = self.rtts;
        let min_rtt = last.min_rtt.unwrap_or(f64::INFINITY).min(all.min);
        FlowRecord {
            packets_sent: since(|snapshot| snapshot.sent),
            bytes_sent: since(|snapshot| snapshot.bytes_sent),
            packets_delivered: delivered.max(0.0) as u64,
            bytes_delivered: bytes,
            packets_received: report.packets.saturating_sub(report.lost),
            closed: None,
            retransmissions: since(|snapshot| snapshot.retransmitted),
            packets_lost: report.lost,
            packets_marked: report.marked,
            timeouts: since(|snapshot| snapshot.timeouts),
            ecn_cuts: since(|snapshot| snapshot.ecn_cuts),
            limited: std::array::from_fn(|k| (last.limited[k] - self.at_start.limited[k]).max(0.0))
                .into(),
            mean_rtt: measured.sum / measured.count as f64,
            min_rtt: if min_rtt.is_finite() { min_rtt } else { f64::NAN },
            completed: last.acknowledged.map_or(f64::NAN, |_| last.last_arrival),
            acknowledged: last.acknowledged.unwrap_or(f64::NAN),
            cuts: self.cuts,
            transfers: Vec::new(),
            application: Vec::new(),
            series: self.series,
            events: None,
            packets: Vec::new(),
        }
    }
}
